"""Wide blocks of a release against those that its policy makes of the source: columns, trees, profiles, distances."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from funnel.audit.extras.base import Release
from funnel.audit.kernel.exact import FloatArray, IntArray
from funnel.audit.kernel.opened import parsed
from funnel.audit.kernel.verdict import Broken, agree
from funnel.cells.cells import Cells
from funnel.cells.record import written
from funnel.format import cells, distances
from funnel.format.cells import Wide
from funnel.format.distances import BlockDistances, DistancesFile

OTHERWISE = 1000
"""One weight of so many may differ by a step: on another machine floats may round otherwise, and a weight with them."""
_NEAR = 1e-4
"""Shares of records by which distances may differ for that reason."""


def inside(opened: Release, made: Sequence[Cells], near: DistancesFile | None) -> str:
    """What was compared of wide blocks, in words, empty where there are none. Raises Broken.

    `made` are the cells of the source, none under a lock, whose cells are those of another night.
    """
    if not opened.wide:
        return ""
    for one, own in zip(opened.wide, made, strict=False):
        same(one, own)
    if near is None:
        raise Broken(cells.NAME, "the cells are not those of the source", "the policy's", "others")
    kept = parsed(DistancesFile, distances.NAME, opened.read(distances.NAME))
    agree(distances.NAME, [("wide blocks", [one.name for one in near.blocks], [one.name for one in kept.blocks])])
    for there, here in zip(near.blocks, kept.blocks, strict=True):
        _near(there, here)
    return f"; {'' if opened.manifest.locked else 'cells, what fills their rows, and '}distances made again"


def outline(one: Cells) -> tuple[object, ...]:
    """What has to be the same to the letter: columns, their values, the tree; whatever fills rows."""
    told = written(one)
    return told.name, told.columns, tuple(node for node in told.nodes if node.kind != "cell"), len(told.nodes)


def same(one: Cells, own: Cells) -> None:
    """The cells are those of the source, but for the seed. Raises Broken."""
    there, here = written(own), written(one)
    agree(cells.NAME, [
        *((f"{what} of {here.name}", getattr(there, what), getattr(here, what)) for what in ("columns", "nodes")),
        (f"what columns of {here.name} depend on", _links(there), _links(here)),
    ])  # fmt: skip
    wrong = told = far = 0
    for mine, its in zip(one.profiles, own.profiles, strict=True):
        for left, right in ((mine.links, its.links), (mine.values, its.values)):
            wrong += int((left != right).sum())
            told += int(((left > 0) | (right > 0)).sum())
            far += int((np.abs(left - right) > _steps(right)[..., None]).sum())
    if far or wrong * OTHERWISE > told:
        what = f"what rows of {one.name} are filled with is not what the source says"
        most = f"{told} weights, one of {OTHERWISE} otherwise at most, by the step of its group"
        raise Broken(cells.NAME, what, most, f"{wrong} others, {far} by more")


def _steps(weights: IntArray) -> IntArray:
    """By how much a weight moves, at most, where the end of its share is rounded otherwise: what divides all beside it.

    Weights of few records are multiples of a power of two (`funnel.cells.profile`).
    """
    every: IntArray = np.bitwise_or.reduce(weights, axis=-1)
    return every & -every


def _links(told: Wide) -> list[tuple[int | None, object]]:
    return [(profile.parent, profile.groups) for profile in told.profiles]


def _near(there: BlockDistances, here: BlockDistances) -> None:
    """Distances and shares are those of the source, up to rounding. Raises Broken."""
    name = here.name
    agree(distances.NAME, [("quantiles", there.quantiles, here.quantiles),
                           (f"columns of {name}", _rare(there), _rare(here))])  # fmt: skip
    for what, mine, its in (
        ("shares of rows that show their own value", _own(here), _own(there)),
        ("distances", np.array(here.release), np.array(there.release)),
        ("distances at epsilon 0", np.array(here.at_zero), np.array(there.at_zero)),
    ):
        if mine.shape != its.shape or not (np.abs(mine - its) <= _NEAR).all():
            raise Broken(distances.NAME, f"{what} of {name} are not those of the source", "no more apart", _NEAR)


def _rare(block: BlockDistances) -> list[tuple[str, int, int]]:
    return [(one.name, one.values, one.records) for one in block.columns]


def _own(block: BlockDistances) -> FloatArray:
    return np.array([(one.label, one.own, one.at_zero) for one in block.columns])
