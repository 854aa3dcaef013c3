"""What released values count for, so that rows have tonight's totals: a correction for a table that moved under a lock.

A protocol that is fixed keeps the totals of the table that it was made for. Of another one, with totals N, what is
released has E[M] = Q N, so only a part of a change shows. Counting a row that says y as N̂_y / M_y, with Q N̂ = M, undoes
that: it takes published files alone, and is post-processing of them.
"""

from __future__ import annotations

from fractions import Fraction

from funnel.data.joint import IntArray
from funnel.data.protocol import Protocol


def reweighed(protocol: Protocol, seen: IntArray) -> tuple[Fraction, ...] | None:
    """What a row of each output (b,) counts for, exactly, `seen` (b,) being the rows that show it; they add up to all.

    N̂ is free of bias as long as none of it is negative; a negative estimate counts as none, and the others are lowered
    in proportion. Outputs that no row shows count for one. None where true totals do not follow from the released ones:
    outputs are not the inputs, draws read the secret, or Q has no inverse.
    """
    if protocol.reads_secret or protocol.outputs.values != protocol.inputs.values:
        return None
    found = _undone(protocol.weights[:, 0, :], [int(one) << protocol.bits for one in seen])
    if found is None:
        return None
    kept, rows = [max(one, Fraction(0)) for one in found], int(seen.sum())
    told = sum((one for one, count in zip(kept, seen, strict=True) if count), Fraction(0))
    if not told:
        return None
    return tuple(
        one * rows / (told * int(count)) if count else Fraction(1) for one, count in zip(kept, seen, strict=True)
    )


def _undone(weights: IntArray, released: list[int]) -> list[Fraction] | None:
    """N with W N = `released` for whole weights (a, a); None where that has no single answer."""
    from flint import fmpz_mat

    matrix = fmpz_mat(weights.tolist())
    try:
        found = matrix.solve(fmpz_mat([[one] for one in released]))
    except ZeroDivisionError:
        return None
    return [Fraction(int(one.p), int(one.q)) for (one,) in found.tolist()]
