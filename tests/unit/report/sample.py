"""Releases to report on: census data, two blocks, and tables made to be awkward."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from funnel.data import Alphabet, AnyProtocol, Joint, Label, Protocol, UnaryProtocol
from funnel.data.channel import released_table
from funnel.data.convert import cells_of, grid, protocol_file
from funnel.format import fields
from funnel.format.counts import CountsFile
from funnel.format.draws import DrawsFile
from funnel.format.drift import DriftFile
from funnel.format.manifest import Draws, Estimate, Manifest, Parameters, Sizes, Utility
from funnel.format.protocol import ProtocolFile
from funnel.format.released import ReleasedFile
from funnel.format.reported import Evidence, Published
from funnel.format.solution import SolutionFile
from funnel.format.terms import EstimateTerms, TermsFile
from funnel.measure.information import mutual_information, public_entropy, released_information
from funnel.measure.leakage import ldp, lip
from funnel.report import full, published
from tests.support.terms import plain_column

CENSUS = Path(__file__).parents[3] / "examples" / "census" / "census.parquet"
PARAMETERS = {
    "srlip": Parameters(solve="joint"),
    "alip": Parameters(lower=2.0),
    "rldp": Parameters(order=2.0, confidence=0.95, radius=0.0123),
}
MEASURES = {"perfect": "lip", "ldp-x": "ldp_x", "mutual-information": "mutual_information"}
"""The leakage that ε bounds, where it is not named like the notion."""
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


@dataclass(frozen=True, eq=False)
class Sample:
    """The records of one release, and what they were made from."""

    manifest: Manifest
    protocol: ProtocolFile
    released: ReleasedFile
    counts: CountsFile
    draws: DrawsFile
    solution: SolutionFile
    terms: TermsFile
    protocols: tuple[AnyProtocol, ...]
    joint: Joint
    drift: DriftFile | None = None

    @property
    def shown(self) -> Published:
        return Published(self.manifest, self.protocol, self.released)

    def published(self) -> dict[str, Any]:
        return self.content(True)

    def full(self) -> dict[str, Any]:
        return self.content(False)

    def content(self, public: bool) -> dict[str, Any]:
        return deepcopy(self._content(public))

    @cache  # noqa: B019 - a few samples, of which many tests ask
    def _content(self, public: bool) -> dict[str, Any]:
        if public:
            return published(self.shown)
        return full(self.shown, Evidence(self.counts, self.draws, self.solution, self.terms, self.drift))

    def stating(self, **changes: Any) -> Sample:
        """The same with another manifest."""
        return replace(self, manifest=replace(self.manifest, **changes))


def sample(joint: Joint, protocols: Sequence[AnyProtocol], notion: str = "lip", **changes: Any) -> Sample:
    """A release of these protocols, with ε just above what they leak, and records drawn with a fixed seed."""
    rows, draws = drawn(joint, protocols)
    blocks = tuple(fields.Alphabet(block.columns, block.values) for block in joint.blocks)
    secret = fields.Alphabet(joint.secret.columns, joint.secret.values)
    columns = tuple(name for block in joint.blocks for name in block.columns)
    stated = manifest(joint, protocols, notion, **changes)
    return Sample(
        stated,
        protocol_file(protocols),
        ReleasedFile("funnel-released/1", columns, ("VARCHAR",) * len(columns), rows),
        CountsFile("funnel-counts/1", secret, blocks, grid(cells_of(joint)), None, None),
        DrawsFile("funnel-draws/1", draws),
        SolutionFile(
            "funnel-solution/1",
            ("closed form",) * len(protocols),
            (None,) * len(protocols),
            stated.split,
            None,
        ),
        terms(stated),
        tuple(protocols),
        joint,
    )


def terms(m: Manifest) -> TermsFile:
    """The terms of a release."""
    public = tuple(
        tuple(map(plain_column, block)) for block in m.public
    )
    return TermsFile(
        "funnel-terms/1", "a" * 64, m.name, m.description, None, None, "error", m.sensitive, public, (), m.notion,
        m.epsilon, m.parameters, m.split, {"kind": m.mechanism}, m.draws.kind,
        EstimateTerms(m.estimate.minimum, m.estimate.kind, None, None, None), None, (), m.format_of_data,
        m.rows_of_data, "refuse",
        tuple(key.name for key in m.identify),
    )  # fmt: skip


def drawn(joint: Joint, protocols: Sequence[AnyProtocol]) -> tuple[Any, Any]:
    """Rows of released.json and the blocks of draws.json, drawn record by record."""
    rng = np.random.default_rng(11)
    cells = np.repeat(joint.cells, joint.counts, axis=0)
    outputs, blocks = [], []
    for index, protocol in enumerate(protocols):
        s, x, a = cells[:, 0], cells[:, 1 + index], len(protocol.inputs)
        if isinstance(protocol, UnaryProtocol):
            bits = rng.random((len(cells), a)) < protocol.telling()[:, 0, x].T
            outputs.append(bits @ (1 << np.arange(a)[::-1]))
            pairs = np.array(
                [(one, held) for one, row in zip(x, bits, strict=True) for held in [*np.flatnonzero(row), a]]
            )
        else:
            chances = protocol.probabilities()[:, s if protocol.reads_secret else 0 * s, x]
            outputs.append((np.cumsum(chances, axis=0) <= rng.random(len(cells))).sum(axis=0))
            pairs = np.column_stack([s * a + x if protocol.reads_secret else x, outputs[-1]])
        blocks.append(_tallied(pairs))
    return _tallied(np.column_stack(outputs)), tuple(blocks)


def _tallied(rows: np.ndarray) -> tuple[tuple[int, ...], ...]:
    """Distinct rows with their counts."""
    found, count = np.unique(rows, axis=0, return_counts=True)
    return grid(np.column_stack([found, count]))


def manifest(joint: Joint, protocols: Sequence[AnyProtocol], notion: str = "lip", **changes: Any) -> Manifest:
    """A release.json for these protocols, with ε just above what they leak."""
    table = released_table(joint, protocols)
    leakage = {"lip": _up(lip(table).nats), "ldp": _up(ldp(table).nats)}
    kept, total = released_information(joint, protocols, table), public_entropy(joint)
    leakage |= {"mutual_information": _up(mutual_information(table))}
    if notion == "ldp-x":
        leakage["ldp_x"] = _up(sum(spread(protocol) for protocol in protocols))
    if notion in {"srlip", "rldp", "pml", "alip"}:
        leakage[notion] = leakage["ldp" if notion == "rldp" else "lip"]
    worst = leakage[MEASURES.get(notion, notion)] or 0.0
    stated: dict[str, Any] = {
        "format": "funnel-release/1", "release": "20261121T112034Z-3f9a1c", "created": "2026-11-21T11:20:34Z",
        "name": "census-education", "description": "Education of adults; marital status stays hidden",
        "sensitive": joint.secret.columns, "public": tuple(block.columns for block in joint.blocks), "notion": notion,
        "epsilon": 0.0 if notion == "perfect" else math.ceil(worst * 20) / 20 or 0.05,
        "parameters": PARAMETERS.get(notion, Parameters()), "mechanism": "randomised-response", "totals": None,
        "candidates": None,
        "split": (1 / len(protocols),) * len(protocols), "draws": Draws("permanent", "9d1e6f0a42c7b835"),
        "absent": None,
        "estimate": Estimate(10, "counts", None, None, None), "rows": joint.rows, "format_of_data": "parquet",
        "rows_of_data": "records",
        "identify": (), "leakage": leakage, "composed": None,
        "utility": Utility(round(kept, 4), round(total, 4) + 0.0, round(kept / total, 4) if total else 0.0, None),
        "alphabet": Sizes(len(joint.secret), tuple(len(p.inputs) for p in protocols),
                          tuple(len(p.outputs) for p in protocols)),
        "locked": None, "signed": None, "policy_sha256": "5b0f" * 16, "terms_sha256": "77aa" * 16,
        "plan_sha256": "c3a1" * 16, "files": {},
        "versions": {"funnel": "0.1.0", "python": "3.11.2", "duckdb": "2.0.0", "numpy": "2.4.0"},
    }  # fmt: skip
    return Manifest(**(stated | changes))


def spread(protocol: Protocol) -> float:
    """max ln Q(y|x)/Q(y|x') in nats."""
    rows = protocol.weights.reshape(len(protocol.outputs), -1).astype(float)
    rows = rows[rows.any(axis=1)]
    least = rows.min(axis=1)
    return math.inf if (least == 0).any() else float(np.log(rows.max(axis=1) / least).max())


def _up(nats: float) -> float | None:
    return math.ceil(nats * 1e4 - 1e-7) / 1e4 + 0.0 if math.isfinite(nats) else None


def one_block() -> Sample:
    """Marital status hidden, education released by randomised response."""
    joint = census("marital_status", "education")
    protocols = [response(joint.blocks[0], 4.0)]
    return sample(joint, protocols)


def two_blocks() -> Sample:
    """Sex hidden; relationship and workclass released side by side."""
    joint = census("sex", "workclass", "race")
    protocols = [response(joint.blocks[0], 3.0), response(joint.blocks[1], 2.0)]
    return sample(joint, protocols, "ldp", name="census-work", description="Work and race; sex stays hidden")


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
               "draws": Draws("fresh", None)}  # fmt: skip
    return sample(joint, protocols, **changes)


def independent() -> Sample:
    """Perfect privacy: every value of X is replaced by one of two, whatever it was."""
    joint = Joint.from_table([[120, 60, 20], [30, 15, 5]], "illness", "town")
    outputs = Alphabet(("town",), joint.blocks[0].values[:2])
    protocols = [Protocol(joint.blocks[0], outputs, 3, np.array([[5, 2, 1], [3, 6, 7]])[:, None, :])]
    return sample(joint, protocols, "perfect", mechanism="optimal")


def sets() -> Sample:
    """Unary encoding: sets of towns."""
    joint = Joint.from_table([[400, 200, 100], [150, 250, 300]], "illness", "town")
    return sample(joint, [UnaryProtocol(joint.blocks[0], 8, 128, 60)], mechanism="unary-encoding")
