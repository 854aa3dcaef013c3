"""Releases to report on: census data, two blocks, and tables made to be awkward."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from funnel.data import Alphabet, Joint, Label, Protocol
from funnel.data.channel import released_table
from funnel.measure.information import public_entropy, released_information
from funnel.measure.leakage import ldp, lip
from funnel.report import wording

CENSUS = Path(__file__).parents[3] / "examples" / "census" / "census.parquet"
PARAMETERS: dict[str, dict[str, Any]] = {
    "srlip": {"solve": "joint"},
    "alip": {"lower": 2.0},
    "rldp": {"order": 2.0, "confidence": 0.95, "radius": 0.0123},
}
HOSTILE = (
    "<script>alert(1)</script>",
    "$x^2$ & 'q' \"d\"",
    "a_b_c",
    "",
    None,
    "漢字かな" * 6,
    "\u202egnp.exe\u0000",
    "é" * 300,
)


def joint_of(records: Sequence[tuple[Label, ...]], columns: Sequence[tuple[str, ...]]) -> Joint:
    """Count records (secret, block 1, …) into a Joint; `columns` names each part's columns."""
    counted = Counter(records)
    alphabets = [Alphabet.of(names, [record[i] for record in counted]) for i, names in enumerate(columns)]
    codes = [{value: code for code, value in enumerate(alphabet.values)} for alphabet in alphabets]
    cells = sorted(
        (*(code[part] for code, part in zip(codes, record, strict=True)), n) for record, n in counted.items()
    )
    table = np.array(cells, np.int64)
    return Joint(alphabets[0], tuple(alphabets[1:]), table[:, :-1], table[:, -1])


def census(secret: str, *public: str) -> Joint:
    """The census table's joint of one secret column and one block per public column."""
    from pyarrow import parquet

    table = parquet.read_table(CENSUS, columns=[secret, *public]).to_pydict()
    rows = zip(*(table[name] for name in (secret, *public)), strict=True)
    return joint_of(
        [tuple((part,) for part in row) for row in rows], [(secret,), *((name,) for name in public)]
    )


def response(inputs: Alphabet, strength: float, bits: int = 16) -> Protocol:
    """Randomised response GRR^strength, in whole weights; what rounding leaves over goes to the truth."""
    a = len(inputs)
    other = math.floor((1 << bits) / (math.exp(strength) + a - 1))
    weights = np.full((a, a), other, np.int64)
    np.fill_diagonal(weights, (1 << bits) - other * (a - 1))
    return Protocol(inputs, inputs, bits, weights[:, None, :])


def conditional(joint: Joint, strength: float, bits: int = 12) -> Protocol:
    """Conditional reporting CR^strength on the first block: weights [y][s][x]."""
    counts = joint.table().astype(float)
    given = counts / counts.sum(axis=1, keepdims=True)
    c, a = counts.shape
    keep = np.full((c, c), 1.0) + (math.exp(strength) - 1) * np.eye(c)
    keep /= keep.sum(axis=1, keepdims=True)
    others = (keep * (1 - np.eye(c))) @ given
    weights = np.floor(np.repeat(others.T[:, :, None], a, axis=2) * (1 << bits)).astype(np.int64)
    x = np.arange(a)
    weights[x, :, x] += (1 << bits) - weights.sum(axis=0).T
    return Protocol(joint.blocks[0], joint.blocks[0], bits, weights, joint.secret)


def manifest(
    joint: Joint, protocols: Sequence[Protocol], notion: str = "lip", **changes: Any
) -> dict[str, Any]:
    """A release.json for these protocols, with ε just above what they leak."""
    table = released_table(joint, protocols)
    leakage = {"lip": _up(lip(table).nats), "ldp": _up(ldp(table).nats)}
    kept, total = released_information(joint, protocols, table), public_entropy(joint)
    flat = table.reshape(len(table), -1).astype(float)
    p = flat / flat.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        about = np.nansum(p * np.log(p / (p.sum(axis=0) * p.sum(axis=1, keepdims=True))))
    leakage |= {"mutual_information": _up(max(float(about), 0.0))}
    if notion == "ldp-x":
        leakage["ldp_x"] = _up(sum(spread(protocol) for protocol in protocols))
    if notion in {"srlip", "pml", "alip", "rldp"}:
        leakage[notion] = leakage["ldp" if notion == "rldp" else "lip"]
    worst = leakage[wording.notion(notion).measure] or 0.0
    return {
        "format": "funnel-release/1", "release": "20261121T112034Z-3f9a1c", "name": "census-education",
        "description": "Education of adults; marital status stays hidden", "created": "2026-11-21T11:20:34Z",
        "sensitive": list(joint.secret.columns), "public": [list(block.columns) for block in joint.blocks],
        "notion": notion, "epsilon": 0.0 if notion == "perfect" else math.ceil(worst * 20) / 20 or 0.05,
        "parameters": PARAMETERS.get(notion, {}),
        "mechanism": "randomised-response", "split": [1 / len(protocols)] * len(protocols),
        "draws": {"kind": "permanent", "key_fingerprint": "9d1e6f0a42c7b835"},
        "estimate": {"minimum": 10, "kind": "counts"}, "rows": joint.rows, "format_of_data": "parquet",
        "leakage": leakage,
        "utility": {"mutual_information": round(kept, 4), "entropy": round(total, 4),
                    "normalised": round(kept / total, 4) if total else None, "upper_bound": None},
        "alphabet": {"sensitive": len(joint.secret), "public": [len(p.inputs) for p in protocols],
                     "released": [len(p.outputs) for p in protocols]},
        "policy_sha256": "5b0f" * 16, "plan_sha256": "c3a1" * 16,
        "versions": {"funnel": "0.1.0", "python": "3.11.2", "duckdb": "2.0.0", "numpy": "2.4.0"},
    } | changes  # fmt: skip


def spread(protocol: Protocol) -> float:
    """max ln Q(y|x)/Q(y|x') in nats."""
    rows = protocol.weights.reshape(len(protocol.outputs), -1).astype(float)
    rows = rows[rows.any(axis=1)]
    least = rows.min(axis=1)
    return math.inf if (least == 0).any() else float(np.log(rows.max(axis=1) / least).max())


def _up(nats: float) -> float | None:
    return math.ceil(nats * 1e4 - 1e-7) / 1e4 + 0.0 if math.isfinite(nats) else None


Sample = tuple[dict[str, Any], list[Protocol], Joint]


def one_block() -> Sample:
    """Marital status hidden, education released by randomised response."""
    joint = census("marital_status", "education")
    protocols = [response(joint.blocks[0], 4.0)]
    return manifest(joint, protocols), protocols, joint


def two_blocks() -> Sample:
    """Sex hidden; relationship and workclass released side by side."""
    joint = census("sex", "workclass", "race")
    protocols = [response(joint.blocks[0], 3.0), response(joint.blocks[1], 2.0)]
    return (
        manifest(joint, protocols, "ldp", name="census-work", description="Work and race; sex stays hidden"),
        protocols,
        joint,
    )


def awkward() -> Sample:
    """Hostile labels everywhere, missing values, small groups, a column with one value, draws that read s."""
    rng = np.random.default_rng(7)
    sizes = (400, 260, 150, 90, 40, 12, 5, 2)
    secrets = [(label,) for label, size in zip(HOSTILE, sizes, strict=True) for _ in range(size)]
    records = [(s, (HOSTILE[int(rng.integers(len(HOSTILE)))],), ("only <b>one</b>",)) for s in secrets]
    joint = joint_of(records, [("S_<i>secret</i>",), ("weird{{ 7*7 }}",), ("constant",)])
    only = Protocol(joint.blocks[1], joint.blocks[1], 0, np.ones((1, 1, 1), np.int64))
    protocols = [conditional(joint.block(0), 1.5), only]
    changes = {"mechanism": "conditional-reporting", "name": "<img src=x onerror=alert(1)>",
               "description": "{{ 7*7 }} <b>bold</b>",
               "draws": {"kind": "fresh", "key_fingerprint": None}}  # fmt: skip
    return manifest(joint, protocols, **changes), protocols, joint


def independent() -> Sample:
    """Perfect privacy: every value of X is replaced by one of two, whatever it was."""
    joint = Joint.from_table([[120, 60, 20], [30, 15, 5]], "illness", "town")
    outputs = Alphabet(("town",), joint.blocks[0].values[:2])
    protocols = [Protocol(joint.blocks[0], outputs, 3, np.array([[5, 2, 1], [3, 6, 7]])[:, None, :])]
    return manifest(joint, protocols, "perfect", mechanism="optimal"), protocols, joint
