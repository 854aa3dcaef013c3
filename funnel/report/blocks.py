"""One public block: how its values are drawn, and its values before and after."""

from __future__ import annotations

from typing import Any

import numpy as np

from funnel.data import AnyProtocol, Label, UnaryProtocol
from funnel.data.joint import FloatArray
from funnel.measure.information import entropy, kept_information
from funnel.measure.leakage import lip
from funnel.measure.splitting import public_information
from funnel.report import figures, text
from funnel.report.beliefs import belief_map
from funnel.report.case import Case
from funnel.report.disclosure import withheld

MATRIX_CELLS = 4096
"""Largest protocol, in cells, that the report spells out; protocol.json always holds it."""


RARE = 0.1
"""A value that is released as itself with a smaller chance can be estimated only with a wide error."""


def block(case: Case, index: int, bound: float | None) -> dict[str, Any]:
    """What the report says of one block; `bound` is its certified upper bound of I(X;Y) in nats, or None."""
    protocol = case.protocols[index]
    prior = _prior(case, index)
    matrix = seen(case, index)
    return {
        "name": text.listed([text.human(column) for column in protocol.inputs.columns]),
        "columns": list(protocol.inputs.columns),
        "values": len(protocol.inputs),
        "outputs": len(protocol.outputs),
        "bits": protocol.bits,
        "reads_secret": protocol.reads_secret,
        "as_is": case.as_is[index],
        "leakage": figures.finite(lip(case.block_tables[index]).nats),
        "sets": isinstance(protocol, UnaryProtocol),
        "utility": _utility(prior, _told(case, index, matrix), bound),
        "rank": _rank(matrix),
        "kept": figures.share(float(prior @ _alone(protocol, matrix)), case.step),
        "shares": _shares(case, index, prior, matrix),
        "protocol": _matrix(case, protocol, matrix),
        "beliefs": belief_map(case, index),
    } | ({} if case.published else {"counts": _counts(case, index)})


def seen(case: Case, index: int) -> FloatArray:
    """Q(y|x), (b, a), for someone who knows x but not s: its mean given x where a mechanism reads s.

    Where sets are released: the chance that the set holds y, (a, a).
    """
    protocol = case.protocols[index]
    if isinstance(protocol, UnaryProtocol):
        return protocol.chances().T
    if not protocol.reads_secret:
        return protocol.probabilities()[:, 0, :]
    given = case.joint.table(index) / case.joint.table(index).sum(axis=0)
    return np.asarray(np.einsum("ysx,sx->yx", protocol.probabilities(), given))


def _rank(matrix: FloatArray) -> int:
    """Q's rank: a value with a single output, or an output with a single value, adds one and goes, with its partner."""
    links = matrix > 0
    by_row, by_column = links.sum(axis=1), links.sum(axis=0)
    gone = 0
    while (by_row == 1).any() or (by_column == 1).any():
        x = int((by_column == 1).argmax())
        y = int(links[:, x].argmax() if by_column[x] == 1 else (by_row == 1).argmax())
        x = x if by_column[x] == 1 else int(links[y].argmax())
        by_row, by_column = by_row - links[:, x], by_column - links[y]
        links[y], links[:, x], by_row[y], by_column[x] = False, False, 0, 0
        gone += 1
    rest = matrix[np.ix_(by_row > 0, by_column > 0)]
    return gone + (int(np.linalg.matrix_rank(rest)) if rest.size else 0)


def _told(case: Case, index: int, matrix: FloatArray) -> float:
    """I(X;Y) of one block in nats."""
    protocol = case.protocols[index]
    if isinstance(protocol, UnaryProtocol):
        return public_information(_prior(case, index), *protocol.shares).low
    return kept_information(_prior(case, index), matrix)


def _utility(prior: FloatArray, kept: float, bound: float | None) -> dict[str, figures.Figure]:
    """I(X;Y) and H(X) in nats; what is kept and could be kept as parts of H(X), None where that is 0."""
    total = entropy(prior)
    return {
        "mutual_information": round(kept, 4),
        "entropy": round(total, 4) + 0.0,
        "normalised": round(kept / total, 4) if total > 0 else None,
        "upper_bound": round(bound / total, 4) if bound is not None and total > 0 else None,
    }


def _names(protocol: AnyProtocol) -> tuple[Label, ...]:
    """What the rows of `seen` stand for: outputs, or the values that sets hold."""
    return protocol.inputs.values if isinstance(protocol, UnaryProtocol) else protocol.outputs.values


def _alone(protocol: AnyProtocol, matrix: FloatArray) -> FloatArray:
    """The chance (a,) that x is released and nothing else: a set must hold no other value."""
    if not isinstance(protocol, UnaryProtocol):
        return _kept(protocol, matrix)
    present, absent = protocol.shares
    return np.full(len(protocol.inputs), present * (1 - absent) ** (len(protocol.inputs) - 1))


def _kept(protocol: AnyProtocol, matrix: FloatArray) -> FloatArray:
    """Q(x|x), (a,): the chance that a value is released as it is, or stands in the set released."""
    place = {value: row for row, value in enumerate(_names(protocol))}
    rows = [place.get(value) for value in protocol.inputs.values]
    return np.array([0.0 if row is None else matrix[row, x] for x, row in enumerate(rows)])


def _shares(case: Case, index: int, prior: FloatArray, matrix: FloatArray) -> list[dict[str, Any]]:
    """One entry per value, in the order of its alphabet: its share before, the share expected after, how
    often it is kept, and how often it is true where it is released. None where groups are too small.
    """
    protocol = case.protocols[index]
    small = _small(case, prior)
    entries = []
    for x, (value, kept) in enumerate(zip(protocol.inputs.values, _kept(protocol, matrix), strict=True)):
        entry: dict[str, Any] = {"value": text.label(value)}
        if not case.published:
            entry["records"] = int(case.joint.table(index)[:, x].sum())
        reached, true = _truth(protocol, prior, matrix, x)
        entries.append(entry | {
            "before": None if small else figures.share(float(prior[x]), case.step),
            "after": None if small else figures.share(reached, case.step),
            "kept": figures.share(float(kept), _finest(case, protocol)),
            "true": None if small or true is None else figures.share(true, case.step),
        })  # fmt: skip
    return entries


def _small(case: Case, prior: FloatArray) -> bool:
    """Whether some value has too few records for a published report to tell shares."""
    return case.published and bool(withheld(prior * case.joint.rows, case.minimum).any())


def _truth(
    protocol: AnyProtocol, prior: FloatArray, matrix: FloatArray, x: int
) -> tuple[float, float | None]:
    """How often value x is expected among those released, and how often it is true there; None if never seen."""
    value = protocol.inputs.values[x]
    if value not in _names(protocol):
        return 0.0, None
    y = _names(protocol).index(value)
    reached = float(matrix[y] @ prior)
    return reached, float(prior[x] * matrix[y, x]) / reached if reached else None


def seldom_true(case: Case, index: int) -> list[tuple[str, float]]:
    """Released values that are true in fewer than half the records that show them, with that unrounded share."""
    prior, protocol, matrix = _prior(case, index), case.protocols[index], seen(case, index)
    if _small(case, prior):
        return []
    shares = [
        (value, _truth(protocol, prior, matrix, x)[1]) for x, value in enumerate(protocol.inputs.values)
    ]
    return [(text.label(value), true) for value, true in shares if true is not None and true < 0.5]


def seldom_kept(case: Case, index: int) -> list[tuple[str, float]]:
    """Values that are released as themselves with a chance below RARE, with that unrounded chance."""
    protocol = case.protocols[index]
    chances = zip(protocol.inputs.values, _kept(protocol, seen(case, index)).tolist(), strict=True)
    return [(text.label(value), kept) for value, kept in chances if kept < RARE]


def _finest(case: Case, protocol: AnyProtocol) -> float:
    """The step of a published Q(y|x): coarser where it is a mean over the secret, so a figure of the table."""
    if not case.published:
        return figures.EXACT
    return max(case.step, 0.01) if protocol.reads_secret else figures.FLOOR


def _prior(case: Case, index: int) -> FloatArray:
    """Shares of the true values of a block, (a,)."""
    return np.asarray(case.joint.table(index).sum(axis=0) / case.joint.rows)


def _matrix(case: Case, protocol: AnyProtocol, matrix: FloatArray) -> dict[str, Any] | None:
    """Labels and Q(y|x); published to three decimals, two or fewer where the chances are means over the secret."""
    if matrix.size > MATRIX_CELLS:
        return None
    finest = _finest(case, protocol)
    return {
        "inputs": [text.label(value) for value in protocol.inputs.values],
        "outputs": [text.label(value) for value in _names(protocol)],
        "chances": [[figures.share(float(chance), finest) for chance in row] for row in matrix],
    }


def _counts(case: Case, index: int) -> dict[str, Any]:
    """Records N[s, x] of the block, for the private report."""
    return {
        "secret": [text.label(value) for value in case.joint.secret.values],
        "public": [text.label(value) for value in case.protocols[index].inputs.values],
        "records": case.joint.table(index).tolist(),
    }


def untouched(case: Case) -> float:
    """Share of records expected to be released exactly as they are, in every block."""
    chance = case.joint.counts.astype(float)
    for index, protocol in enumerate(case.protocols):
        if isinstance(protocol, UnaryProtocol):
            kept = _alone(protocol, protocol.chances())[None, :]
        else:
            kept = np.stack([_kept(protocol, layer) for layer in np.moveaxis(protocol.probabilities(), 1, 0)])
        secret = case.joint.cells[:, 0] if protocol.reads_secret else 0
        chance = chance * kept[secret, case.joint.cells[:, 1 + index]]
    return figures.share(float(chance.sum() / case.joint.rows), case.step)
