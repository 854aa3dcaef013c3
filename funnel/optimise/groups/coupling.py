"""Whole rows from parts: put the parts of all groups side by side so that every row has about the same total."""

from __future__ import annotations

import numpy as np

from funnel.data.joint import FloatArray, IntArray
from funnel.optimise.groups.levels import Groups

_SWEEPS = 12
"""Times that every group is put in order again."""
_LEAST = 1e-12
"""Share of the length under which a piece is a rounding error."""


def coupled(groups: Groups, parts: list[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """Rows (k, a) that use every part as much as given: per group, parts (j, n) and multipliers (j,) of equal sum.

    Each group's parts are laid along one length in the order opposite to the total of all other groups, one group
    after the other, several times over: the rearrangement that makes totals as equal as they come. Rows are
    where no group changes its part, so there are about as many as parts.
    """
    length = float(np.mean([used.sum() for _, used in parts]))
    mass = [part @ groups.prior[s] for s, (part, _) in enumerate(parts)]
    used = [each * (length / each.sum()) for _, each in parts]
    labels, pieces = np.zeros((1, groups.count), np.int64), np.array([length])
    done: set[int] = set()
    order = np.argsort([-float(np.ptp(each)) for each in mass])
    for _ in range(_SWEEPS):
        for s in order:
            done.discard(int(s))
            labels[:, s] = 0
            labels, pieces = _merged(labels, pieces)
            rest = np.sum([mass[t][labels[:, t]] for t in done], axis=0) + np.zeros(len(labels))
            labels, pieces = _laid(labels, pieces, rest, int(s), mass[s], used[s])
            done.add(int(s))
    return groups.joined(np.stack([part[labels[:, s]] for s, (part, _) in enumerate(parts)], axis=1))


def _merged(labels: IntArray, pieces: FloatArray) -> tuple[IntArray, FloatArray]:
    """Pieces that are alike as one."""
    distinct, which = np.unique(labels, axis=0, return_inverse=True)
    return distinct, np.asarray(np.bincount(which.ravel(), pieces, len(distinct)), float)


def _laid(
    labels: IntArray, pieces: FloatArray, rest: FloatArray, group: int, mass: FloatArray, used: FloatArray
) -> tuple[IntArray, FloatArray]:
    """The heaviest part of a group where the rest is lightest, and so on."""
    order, own = np.argsort(rest, kind="stable"), np.argsort(-mass, kind="stable")
    ends, own_ends = np.cumsum(pieces[order]), np.cumsum(used[own])
    length = own_ends[-1]
    ends[-1] = length
    cuts = np.unique(np.concatenate([ends, own_ends]))
    cuts = cuts[np.append(np.diff(cuts) > _LEAST * length, True)]
    middles = cuts - np.diff(cuts, prepend=0.0) / 2
    labels = labels[order][np.minimum(np.searchsorted(ends, middles), len(ends) - 1)]
    labels[:, group] = own[np.minimum(np.searchsorted(own_ends, middles), len(own) - 1)]
    return labels, np.diff(cuts, prepend=0.0)
