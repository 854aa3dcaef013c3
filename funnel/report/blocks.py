"""One public block: how its values are drawn, and its values before and after."""

from __future__ import annotations

from typing import Any

import numpy as np

from funnel.model import Protocol
from funnel.model.information import entropy, kept_information
from funnel.model.joint import FloatArray
from funnel.model.leakage import lip
from funnel.report import figures, wording
from funnel.report.beliefs import belief_map
from funnel.report.case import Case
from funnel.report.disclosure import withheld

MATRIX_CELLS = 4096
"""Largest protocol, in cells, that the report spells out; protocol.json always holds it."""


def block(case: Case, index: int, bound: float | None) -> dict[str, Any]:
    """What the report says of one block; `bound` is its certified upper bound of I(X;Y) in nats, or None."""
    protocol = case.protocols[index]
    prior = case.joint.table(index).sum(axis=0) / case.joint.rows
    matrix = seen(case, index)
    return {
        "name": wording.listed([wording.human(column) for column in protocol.inputs.columns]),
        "columns": list(protocol.inputs.columns),
        "values": len(protocol.inputs),
        "outputs": len(protocol.outputs),
        "bits": protocol.bits,
        "reads_secret": protocol.reads_secret,
        "share": _share(case, index),
        "leakage": figures.finite(lip(case.block_tables[index]).nats),
        "utility": _utility(prior, matrix, bound),
        "rank": int(np.linalg.matrix_rank(matrix)),
        "kept": figures.share(float(prior @ _kept(protocol, matrix)), case.published),
        "shares": _shares(case, index, prior, matrix),
        "protocol": _matrix(case, protocol, matrix),
        "beliefs": belief_map(case, index),
    } | ({} if case.published else {"counts": _counts(case, index)})


def seen(case: Case, index: int) -> FloatArray:
    """Q(y|x), (b, a), for someone who knows x but not s: its mean given x where a mechanism reads s."""
    protocol = case.protocols[index]
    if not protocol.reads_secret:
        return protocol.probabilities()[:, 0, :]
    given = case.joint.table(index) / case.joint.table(index).sum(axis=0)
    return np.asarray(np.einsum("ysx,sx->yx", protocol.probabilities(), given))


def _share(case: Case, index: int) -> float:
    """The block's share of ε."""
    split = case.manifest.get("split") or [1.0 / len(case.protocols)] * len(case.protocols)
    return float(split[index])


def _utility(prior: FloatArray, matrix: FloatArray, bound: float | None) -> dict[str, figures.Figure]:
    """I(X;Y) and H(X) in nats; what is kept and could be kept as parts of H(X), None where that is 0."""
    kept, total = kept_information(prior, matrix), entropy(prior)
    return {
        "mutual_information": round(kept, 4),
        "entropy": round(total, 4) + 0.0,
        "normalised": round(kept / total, 4) if total > 0 else None,
        "upper_bound": round(bound / total, 4) if bound is not None and total > 0 else None,
    }


def _kept(protocol: Protocol, matrix: FloatArray) -> FloatArray:
    """Q(x|x), (a,): the chance that a value is released as it is."""
    place = {value: row for row, value in enumerate(protocol.outputs.values)}
    rows = [place.get(value) for value in protocol.inputs.values]
    return np.array([0.0 if row is None else matrix[row, x] for x, row in enumerate(rows)])


def _shares(case: Case, index: int, prior: FloatArray, matrix: FloatArray) -> list[dict[str, Any]]:
    """One entry per value, in the order of its alphabet: its share before, the share expected after, how
    often it is kept, and how often it is true where it is released. None where groups are too small.
    """
    protocol = case.protocols[index]
    small = case.published and bool(withheld(prior * case.joint.rows, case.minimum).any())
    after = dict(zip(protocol.outputs.values, (matrix @ prior).tolist(), strict=True))
    entries = []
    for x, (value, kept) in enumerate(zip(protocol.inputs.values, _kept(protocol, matrix), strict=True)):
        entry: dict[str, Any] = {"value": wording.label(value)}
        if not case.published:
            entry["records"] = int(case.joint.table(index)[:, x].sum())
        reached = after.get(value, 0.0)
        entries.append(entry | {
            "before": None if small else figures.share(float(prior[x]), case.published),
            "after": None if small else figures.share(reached, case.published),
            "kept": figures.share(float(kept), case.published),
            "true": None if small or reached == 0 else
                    figures.share(float(prior[x] * kept / reached), case.published),
        })  # fmt: skip
    return entries


def _matrix(case: Case, protocol: Protocol, matrix: FloatArray) -> dict[str, Any] | None:
    """Labels and Q(y|x); published to three decimals, two where the chances are means over the secret."""
    if matrix.size > MATRIX_CELLS:
        return None
    digits = 6 if not case.published else 2 if protocol.reads_secret else 3
    return {
        "inputs": [wording.label(value) for value in protocol.inputs.values],
        "outputs": [wording.label(value) for value in protocol.outputs.values],
        "chances": [[round(float(chance), digits) for chance in row] for row in matrix],
    }


def _counts(case: Case, index: int) -> dict[str, Any]:
    """Records N[s, x] of the block, for the private report."""
    return {
        "secret": [wording.label(value) for value in case.joint.secret.values],
        "public": [wording.label(value) for value in case.protocols[index].inputs.values],
        "records": case.joint.table(index).tolist(),
    }


def untouched(case: Case) -> float:
    """Share of records expected to be released exactly as they are, in every block."""
    chance = case.joint.counts.astype(float)
    for index, protocol in enumerate(case.protocols):
        kept = np.stack([_kept(protocol, layer) for layer in np.moveaxis(protocol.probabilities(), 1, 0)])
        secret = case.joint.cells[:, 0] if protocol.reads_secret else 0
        chance = chance * kept[secret, case.joint.cells[:, 1 + index]]
    return figures.share(float(chance.sum() / case.joint.rows), case.published)
