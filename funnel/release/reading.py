"""How a release is read: by block, its columns, the true values that they can have, and how its answers are undone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from funnel.cells.cells import Cells
from funnel.cells.within import size, within
from funnel.data import AnyProtocol, Label, Protocol
from funnel.data.joint import FloatArray, IntArray
from funnel.data.unary import UnaryProtocol
from funnel.errors import ReleaseError
from funnel.format.manifest import Manifest
from funnel.format.released import ReleasedFile
from funnel.measure.functionals import AtFace
from funnel.measure.recovery import Inverse, inverse_of
from funnel.release.weights import cell_shares, solved_weights

MOST = 20_000_000
"""Numbers that a table of true values may have."""
GROUPS = 20_000
"""Groups that one question may be about."""
WORK = 2_000_000_000
"""Numbers that one question may take."""
MOST_TABULATED = WORK // 100
"""Combinations of answers that it may be about."""
_FEW = 1_000
"""Answers of a block that are all looked at, whether or not a record shows them."""


@dataclass(frozen=True, eq=False)
class Fine:
    """Values (z) of some columns, and the chance (z, a) of each among the records that have a value of the block."""

    columns: tuple[str, ...]
    values: tuple[Label, ...]
    chances: FloatArray


@dataclass(frozen=True, eq=False)
class Reading:
    """One block. `types` by column as SQL names them, None where nothing says it; `face` where totals may be read as
    they stand, or by weights."""

    protocol: AnyProtocol
    cells: tuple[Cells, ...]
    types: dict[str, str | None]
    face: AtFace | None

    @property
    def columns(self) -> tuple[str, ...]:
        """What can be asked for: its columns, and those inside cells, beside their labels."""
        return tuple(self.types)

    @property
    def inner(self) -> frozenset[str]:
        """Columns inside cells."""
        return frozenset(column.name for one in self.cells for column in one.columns)

    def told(self, codes: IntArray) -> IntArray:
        """The answers, each once, that errors are worked out from: those seen, and, of a few, those that were not.

        An answer that no record happens to show may count for much.
        """
        few = self.protocol.coins is None and self.protocol.size <= _FEW
        return np.arange(self.protocol.size) if few else np.unique(codes)

    def inverse(self, codes: IntArray) -> Inverse:
        """How answers (m,) are undone."""
        return inverse_of(self.protocol, codes)

    def fine(self, wanted: Sequence[str]) -> Fine:
        """The values of some of its columns together, in the order asked for. Raises ReleaseError where too many."""
        inputs = self.protocol.inputs
        plain = [inputs.columns.index(name) for name in wanted if name in inputs.columns]
        keys = [tuple(value[place] for place in plain) for value in inputs.values]
        distinct = list(dict.fromkeys(keys))
        values: list[Label] = list(distinct)
        code = {key: place for place, key in enumerate(distinct)}
        chances = np.zeros((len(distinct), len(keys)))
        chances[[code[key] for key in keys], np.arange(len(keys))] = 1
        order = [inputs.columns[place] for place in plain]
        for one in self.cells:
            own = [place for place, column in enumerate(one.columns) if column.name in wanted]
            if not own:
                continue
            table = self._inside(one, own, len(chances))
            values = [(*value, *more) for value in values for more in _combined(one, own)]
            chances = (chances[:, None, :] * table[None, :, :]).reshape(len(values), -1)
            order += [one.columns[place].name for place in own]
        there = chances.any(axis=1)
        ordered = [order.index(name) for name in wanted]
        kept = [values[z] for z in np.flatnonzero(there)]
        return Fine(tuple(wanted), tuple(tuple(value[place] for place in ordered) for value in kept), chances[there])

    def _inside(self, cells: Cells, own: Sequence[int], beside: int) -> FloatArray:
        """Chances (combinations, a) of columns inside cells, given the value of the block."""
        if size(cells.profiles, own) * beside > MOST:
            names = ", ".join(cells.columns[place].name for place in own)
            raise ReleaseError(
                "alphabet-too-large", f"{names} take too many values together to be asked for at once",
                advice="Ask for fewer columns of a wide block together.",
            )  # fmt: skip
        place = self.protocol.inputs.columns.index(cells.name)
        labels = [int(value[place] or 0) - 1 for value in self.protocol.inputs.values]
        return np.asarray(within(cells.profiles, own)[labels].reshape(len(labels), -1).T)


def _combined(cells: Cells, own: Sequence[int]) -> Iterator[Label]:
    """Values of some columns inside cells together, the last column's fastest."""
    sizes = [cells.columns[place].values for place in own]
    for codes in np.ndindex(*(len(values) for values in sizes)):
        yield tuple(values[code] for values, code in zip(sizes, codes, strict=True))


def readings(
    manifest: Manifest, protocols: Sequence[AnyProtocol], released: ReleasedFile, wide: Sequence[Cells]
) -> tuple[Reading, ...]:
    """How the blocks of a release are read, by its published files."""
    told = dict(zip(released.columns, released.types, strict=True))
    by_name = {one.name: one for one in wide}
    fixed = manifest.locked is None and manifest.estimate.kind == "counts"
    found = []
    for protocol in protocols:
        cells = tuple(by_name[name] for name in protocol.inputs.columns if name in by_name)
        types: dict[str, str | None] = {}
        for name in protocol.inputs.columns:
            # a set's column is of lists, whatever its values are
            own = None if isinstance(protocol, UnaryProtocol) else told.get(name)
            types[name] = "VARCHAR" if name in by_name else own
            types |= {column.name: column.type for column in (by_name[name].columns if name in by_name else ())}
        found.append(Reading(protocol, cells, types, _face(manifest, protocol, cells) if fixed else None))
    return tuple(found)


def _face(manifest: Manifest, protocol: AnyProtocol, cells: tuple[Cells, ...]) -> AtFace | None:
    """How released totals are read where they, or weighed ones, are right for the counts that the protocol is for."""
    if not isinstance(protocol, Protocol) or protocol.reads_secret:
        return None
    values, outputs = protocol.inputs.values, protocol.outputs.values
    if set(values) != set(outputs):
        return None
    weights, shares = np.ones(len(outputs)), None
    if cells and len(protocol.inputs.columns) == 1:
        solved = solved_weights(cells[0], protocol)
        if solved is None:
            return None
        weights = np.array([float(one) for one in solved])
        shares = np.array(cell_shares(cells[0], protocol), float) / float(cells[0].shares.sum())
    elif manifest.totals != "kept":
        return None
    place = np.array([values.index(value) for value in outputs], np.int64)
    return AtFace(protocol.probabilities()[:, 0, :], place, weights, shares)
