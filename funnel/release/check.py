"""Did the draws follow the protocol? A look at what came out, whatever the kernel's proofs say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from funnel.errors import DrawError, SourceError
from funnel.model import Joint, Protocol
from funnel.model.channel import check_size
from funnel.model.joint import FloatArray, IntArray
from funnel.release.goodness import Fit, g_test
from funnel.release.tally import Tally

CHANCE = 1e-9
"""A release is refused when chance alone would explain its draws less often than this."""

_FAULT = "Nothing was published. This points at a fault in the program or the machine: please report it."


def check_draws(tally: Tally, protocols: Sequence[Protocol], joint: Joint) -> None:
    """Compare what was drawn with what the counts and the protocols say.

    Raises SourceError source-changed when the rows drawn are not the rows counted, and DrawError
    draw-distribution for an output of weight zero, for a block whose outputs do not follow its protocol, and
    for released combinations that do not follow the product of the blocks (blocks that share randomness).
    """
    for block, (table, protocol) in enumerate(zip(tally.tables, protocols, strict=True)):
        _check_margins(table, _counts(joint, protocol, block), protocol)
    for table, protocol in zip(tally.tables, protocols, strict=True):
        _check_block(table, protocol)
    _check_released(tally, protocols, joint)


def _counts(joint: Joint, protocol: Protocol, block: int) -> IntArray:
    """Rows N (inputs,) of each input code that the joint distribution counted."""
    table = joint.table(block)
    return table.ravel() if protocol.reads_secret else table.sum(axis=0)


def _check_margins(table: IntArray, counts: IntArray, protocol: Protocol) -> None:
    difference = table.sum(axis=1) - counts
    if not difference.any():
        return
    more, fewer = int(difference[difference > 0].sum()), int(-difference[difference < 0].sum())
    raise SourceError(
        "source-changed",
        f"the source changed between counting and drawing: {max(more, fewer):,} rows came, went or moved to "
        f"another value of {_name(protocol)} ({int(counts.sum()):,} counted, {int(table.sum()):,} drawn)",
        advice="Nothing was published. Run again when the table is at rest, or read from a snapshot.",
    )


def _check_block(table: IntArray, protocol: Protocol) -> None:
    """M[input, y] against N[input]·W[input, y]/2^bits, with the totals of every input given."""
    weights = np.diff(protocol.thresholds(), axis=1, prepend=0)
    expected = table.sum(axis=1, keepdims=True) * (weights / float(1 << protocol.bits))
    _refuse_impossible(table, weights == 0, _name(protocol))
    cells = expected > 0
    _refuse_misfit(g_test(table[cells], expected[cells], np.nonzero(cells)[0]), _name(protocol))


def _check_released(tally: Tally, protocols: Sequence[Protocol], joint: Joint) -> None:
    """Released combinations against their expectation over all records.

    Records differ in their distribution, so the counts vary less than a multinomial's: the test is cautious.
    """
    expected = expected_released(joint, protocols)
    observed = np.zeros(expected.shape, np.int64)
    codes, counts = tally.released
    observed[tuple(codes.T)] = counts
    what = " with ".join(_name(protocol) for protocol in protocols)
    _refuse_impossible(observed, expected == 0, what)
    cells = expected > 0
    _refuse_misfit(g_test(observed[cells], expected[cells], np.zeros(int(cells.sum()), np.int64)), what)


def expected_released(joint: Joint, protocols: Sequence[Protocol]) -> FloatArray:
    """Expected rows of every released combination, shape (b_1, …, b_k): Σ N[s, x_1, …] Π_j Q_j(y_j | s, x_j).

    Raises PlanError when the product of the blocks is too large, as measuring its leakage would.
    """
    check_size(joint, [len(protocol.outputs) for protocol in protocols])
    table = joint.dense().astype(float)
    if not any(protocol.reads_secret for protocol in protocols):
        table = table.sum(axis=0, keepdims=True)
    for axis, protocol in enumerate(protocols, start=1):
        moved = np.moveaxis(table, axis, -1)
        flat = moved.reshape(len(moved), -1, moved.shape[-1])
        sent = flat @ protocol.probabilities().transpose(1, 2, 0)
        table = np.moveaxis(sent.reshape(*moved.shape[:-1], -1), -1, axis)
    return np.asarray(table.sum(axis=0), np.float64)


def _refuse_impossible(counts: IntArray, forbidden: npt.NDArray[np.bool_], what: str) -> None:
    impossible = int(counts[forbidden].sum())
    if impossible:
        raise DrawError(
            "draw-distribution",
            f"{impossible:,} rows of {what} hold values that their protocol never draws",
            advice=_FAULT,
        )


def _refuse_misfit(fit: Fit, what: str) -> None:
    if fit.chance < CHANCE:
        raise DrawError(
            "draw-distribution",
            f"the draws of {what} do not follow the protocol: G = {fit.statistic:.1f} with {fit.freedom:,} "
            f"degrees of freedom, which chance explains with p = {fit.chance:.1e}",
            advice=_FAULT,
        )


def _name(protocol: Protocol) -> str:
    return " + ".join(protocol.inputs.columns)
