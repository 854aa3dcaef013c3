"""Did the draws follow the protocol? A look at what came out, whatever the kernel's proofs say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from funnel.data import AnyProtocol, Joint, Protocol, UnaryProtocol
from funnel.data.channel import check_size, released_table
from funnel.data.joint import FloatArray, IntArray
from funnel.data.subsets import Subsets
from funnel.draw.goodness import Fit, g_test
from funnel.draw.pairs import each_coin, each_column, worst_pair
from funnel.draw.tally import Tally
from funnel.errors import DrawError, PlanError, SourceError

CHANCE = 1e-9
"""A release is refused when chance alone would explain its draws less often than this."""
MOST_DISTINCT = 4_000_000
"""Distinct rows that a release may have: an auditor holds them all at once."""

_FAULT = "Nothing was published. This points at a fault in the program or the machine: please report it."


def check_draws(tally: Tally, protocols: Sequence[AnyProtocol], joint: Joint) -> None:
    """Compare what was drawn with what the counts and the protocols say.

    Raises SourceError source-changed when the rows drawn are not the rows counted, and DrawError
    draw-distribution for an output of weight zero, for a block whose outputs do not follow its protocol, and
    for released combinations that do not follow the product of the blocks (blocks that share randomness).
    """
    for block, (table, protocol) in enumerate(zip(tally.tables, protocols, strict=True)):
        _check_margins(table, _counts(joint, protocol, block), protocol)
    for table, protocol in zip(tally.tables, protocols, strict=True):
        if isinstance(protocol, UnaryProtocol):
            _check_coins(table, protocol)
        else:
            _check_block(table, protocol)
    _check_released(tally, protocols, joint)


def _counts(joint: Joint, protocol: AnyProtocol, block: int) -> IntArray:
    """Rows N (inputs,) of each input code that the joint distribution counted."""
    table = joint.table(block)
    return table.ravel() if protocol.reads_secret else table.sum(axis=0)


def _check_margins(table: IntArray, counts: IntArray, protocol: AnyProtocol) -> None:
    drawn = table[:, -1] if isinstance(protocol, UnaryProtocol) else table.sum(axis=1)
    difference = drawn - counts
    if not difference.any():
        return
    more, fewer = int(difference[difference > 0].sum()), int(-difference[difference < 0].sum())
    raise SourceError(
        "source-changed",
        f"the source changed between counting and drawing: {max(more, fewer):,} rows came, went or moved to "
        f"another value of {_name(protocol)} ({int(counts.sum()):,} counted, {int(drawn.sum()):,} drawn)",
        advice="Nothing was published. Run again when the table is at rest, or read from a snapshot.",
    )


def _check_block(table: IntArray, protocol: Protocol) -> None:
    """M[input, y] against N[input]·W[input, y]/2^bits, with the totals of every input given."""
    weights = np.diff(protocol.thresholds(), axis=1, prepend=0)
    expected = table.sum(axis=1, keepdims=True) * (weights / float(1 << protocol.bits))
    _refuse_impossible(table, weights == 0, _name(protocol))
    cells = expected > 0
    _refuse_misfit(g_test(table[cells], expected[cells], np.nonzero(cells)[0]), _name(protocol))


def _check_coins(table: IntArray, protocol: UnaryProtocol) -> None:
    """Ones M[x, x'] against N[x] times their chances, one by one and summed over x. No bit is impossible."""
    for fit in (each_coin(table, protocol), each_column(table, protocol)):
        _refuse_misfit(fit, _name(protocol))


def _check_released(tally: Tally, protocols: Sequence[AnyProtocol], joint: Joint) -> None:
    """Released combinations against their expectation over all records, and the bits of each set pair by pair.

    Records differ in their distribution, so the counts vary less than a multinomial's: the test is cautious.
    """
    codes, counts = tally.released
    if len(counts) > MOST_DISTINCT:
        raise PlanError(
            "alphabet-too-large",
            f"the release would have {len(counts):,} different rows; up to {MOST_DISTINCT:,} can be audited",
            advice="Make the public columns coarser with `top` or `bins`.",
        )
    for block, protocol in enumerate(protocols):
        if isinstance(protocol, UnaryProtocol):
            _refuse_ties(codes[:, block], counts, tally.tables[block], protocol)
    if len(protocols) == 1 and isinstance(protocols[0], UnaryProtocol):
        return
    expected = expected_released(joint, protocols)
    observed = np.zeros(expected.shape, np.int64)
    observed[tuple(codes.T)] = counts
    what = " with ".join(_name(protocol) for protocol in protocols)
    _refuse_impossible(observed, expected == 0, what)
    cells = expected > 0
    _refuse_misfit(g_test(observed[cells], expected[cells], np.zeros(int(cells.sum()), np.int64)), what)


def _refuse_ties(codes: IntArray, counts: IntArray, table: IntArray, protocol: UnaryProtocol) -> None:
    chance, pair = worst_pair(codes, counts, table, protocol)
    if chance < CHANCE:
        raise DrawError(
            "draw-distribution",
            f"the coins of {_name(protocol)} do not fall independently: {pair} go together, which chance "
            f"explains with p = {chance:.1e}",
            advice=_FAULT,
        )


def expected_released(joint: Joint, protocols: Sequence[AnyProtocol]) -> FloatArray:
    """Expected rows of every released combination, shape (b_1, …, b_k): Σ N[s, x_1, …] Π_j Q_j(y_j | s, x_j).

    Raises PlanError when the product of the blocks is too large, as measuring its leakage would.
    """
    plain = [protocol for protocol in protocols if isinstance(protocol, Protocol)]
    if len(plain) == len(protocols):
        return _expected(joint, plain)
    exact = released_table(joint, protocols)
    if isinstance(exact, Subsets):
        raise PlanError("alphabet-too-large", "the sets of unary encoding are too many to expect one by one")
    by_output = exact.sum(axis=0)
    return np.asarray(by_output / by_output.sum() * joint.rows, np.float64)


def _expected(joint: Joint, protocols: Sequence[Protocol]) -> FloatArray:
    """The same where every protocol has its chances written out."""
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


def _name(protocol: AnyProtocol) -> str:
    return " + ".join(protocol.inputs.columns)
