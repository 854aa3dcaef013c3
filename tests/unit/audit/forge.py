"""A writer of releases for tests: every file by its format, honest unless a test makes it lie.

It shares nothing with the program: leakage is a brute-force sum of fractions, NumPy draws. A test
edits the documents of a `Forgery` before `write` (the hashes then follow: a writer that lies consistently),
or the files afterwards (damage and tampering).
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections import Counter
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

RELEASE = "20261121T112034Z-3f9a1c"
Weights = list[Any]


@dataclass
class Block:
    """One public block: its columns, labels and weights ([y][x], or [y][s][x] where it reads the secret)."""

    columns: list[str]
    inputs: list[list[str | None]]
    outputs: list[list[str | None]]
    bits: int
    weights: Weights
    reads_secret: bool = False

    def weight(self, y: int, s: int, x: int) -> int:
        """W[y, s, x]."""
        return self.weights[y][s][x] if self.reads_secret else self.weights[y][x]


@dataclass
class Forgery:
    """The documents of one release, before they are sealed with hashes and written."""

    protocol: dict[str, Any]
    manifest: dict[str, Any]
    evidence: dict[str, Any]
    rows: list[tuple[str | None, ...]]
    columns: list[str]
    report: dict[str, Any] | None = None
    policy: bytes = b""
    plan: bytes = b""
    entity: str | None = None
    ledger: list[dict[str, Any]] = field(default_factory=list)
    own_entry: bool = True
    seal: bool = True
    bounds: list[float | None] = field(default_factory=list)
    certificate: dict[str, Any] | None = None
    proof: bytes | None = None

    @property
    def terms(self) -> bytes:
        """A policy that asks for just what the manifest claims."""
        claims = self.manifest
        told = {key: value for key, value in (claims.get("parameters") or {}).items() if value is not None}
        if "confidence" in told:
            told.pop("radius", None)
        privacy = {"notion": claims.get("notion"), "epsilon": claims.get("epsilon")} | told
        policy = {
            "version": 1,
            "name": claims.get("name"),
            "description": claims.get("description"),
            "source": {"table": "people.parquet"} | ({"entity": self.entity} if self.entity else {}),
            "estimate": {"minimum": (claims.get("estimate") or {}).get("minimum")},
            "sensitive": claims.get("sensitive"),
            "public": claims.get("public"),
            "privacy": {key: value for key, value in privacy.items() if value is not None},
            "mechanism": claims.get("mechanism"),
            "draws": {"kind": (claims.get("draws") or {}).get("kind")},
            "release": {"format": claims.get("format_of_data")},
        }
        return yaml.safe_dump(policy, sort_keys=False, allow_unicode=True).encode()

    @property
    def own_plan(self) -> bytes:
        """The plan that was given, or one for the policy."""
        told = {"format": "funnel-plan/1", "name": self.manifest.get("name")}
        told |= {"policy_sha256": hashlib.sha256(self.policy).hexdigest(), "steps": []}
        return self.plan or json.dumps(told).encode() + b"\n"

    def write(self, home: Path) -> Place:
        """Write everything under `home`; with `seal`, every hash is that of what is written."""
        place = Place(home / "releases", home / "private", self.manifest["release"])
        place.folder.mkdir(parents=True)
        place.kept.mkdir(parents=True)
        data = place.folder / f"data.{self.manifest['format_of_data']}"
        write_table(data, self.columns, self.rows)
        write_json(place.folder / "protocol.json", self.protocol)
        write_json(place.folder / "report.json", self.report or as_report(self.manifest, self.protocol))
        (place.folder / "report.html").write_text("<!doctype html><title>report</title>\n", encoding="utf-8")
        if not self.policy:
            self.policy = self.terms
        (place.kept / "policy.yaml").write_bytes(self.policy)
        (place.kept / "plan.json").write_bytes(self.own_plan)
        write_json(place.kept / "solution.json", self._solution())
        if self.proof is not None:
            (place.kept / "proof.bin").write_bytes(self.proof)
        if self.seal:
            self._seal(place, data)
        write_json(place.folder / "release.json", self.manifest)
        if self.seal:
            self.evidence["manifest_sha256"] = sha256(place.folder / "release.json")
        write_json(place.kept / "evidence.json", self.evidence)
        entries = [*self.ledger, *([self._entry(place)] if self.own_entry else [])]
        place.keep(entries)
        (place.releases / "latest").symlink_to(self.manifest["release"])
        return place

    def _solution(self) -> dict[str, Any]:
        blocks = len(self.protocol["blocks"])
        how = {"how": ["by tests"] * blocks, "upper_bounds": self.bounds or [None] * blocks}
        told = {"format": "funnel-solution/1", **how, "budgets": [self.manifest.get("epsilon")] * blocks}
        return told | {"certificate": self.certificate}

    def _seal(self, place: Place, data: Path) -> None:
        for name, content in (("policy", self.policy), ("plan", self.own_plan)):
            hashed = hashlib.sha256(content).hexdigest()
            self.manifest[f"{name}_sha256"] = self.evidence[f"{name}_sha256"] = hashed
        listed = (data, *(place.folder / name for name in ("protocol.json", "report.html", "report.json")))
        self.manifest["files"] = {
            path.name: {"sha256": sha256(path), "bytes": path.stat().st_size} for path in listed
        }

    def _entry(self, place: Place) -> dict[str, Any]:
        told = ("name", "notion", "epsilon", "leakage", "policy_sha256", "release")
        return {
            **{key: self.manifest.get(key) for key in told},
            "manifest_sha256": sha256(place.folder / "release.json"),
            "protocol_sha256": sha256(place.folder / "protocol.json"),
            "key_fingerprint": self.manifest["draws"]["key_fingerprint"],
            "draws": self.manifest["draws"]["kind"],
        }


@dataclass(frozen=True)
class Place:
    """Where a forgery was written."""

    releases: Path
    private: Path
    release: str

    @property
    def folder(self) -> Path:
        """The published folder of the release."""
        return self.releases / self.release

    @property
    def kept(self) -> Path:
        """The private folder of the release."""
        return self.private / self.release

    @property
    def ledger(self) -> Path:
        """The ledger of all releases."""
        return self.private / "ledger.jsonl"

    @property
    def head(self) -> Path:
        """How far the ledger reaches."""
        return self.private / "ledger.head"

    def keep(self, entries: list[dict[str, Any]]) -> None:
        """Write the ledger and its head."""
        lines = chained(entries)
        self.ledger.write_bytes(lines)
        if entries:
            last = hashlib.sha256(lines.splitlines()[-1]).hexdigest()
            self.head.write_text(
                json.dumps({"sequence": len(entries), "sha256": last}) + "\n", encoding="utf-8"
            )


def forge(
    counts: Any,
    blocks: list[Block],
    *,
    notion: str = "lip",
    epsilon: float | None = 1.0,
    minimum: int = 1,
    data: str = "parquet",
    secrets: list[list[str | None]] | None = None,
    rows: list[tuple[int, ...]] | None = None,
    seed: int = 0,
    hidden: str = "secret",
    parameters: dict[str, Any] | None = None,
    mechanism: str | None = None,
    own: Fraction | None = None,
) -> Forgery:
    """An honest release of N[s, x_1, …, x_k]; `rows` replaces the drawn codes, record by record.

    `own` is the ratio of a notion that is not measured here (nats for mutual information).
    """
    table, blocks = np.asarray(counts), copy.deepcopy(blocks)
    names = secrets or [[f"s{i}"] for i in range(table.shape[0])]
    records = [
        tuple(cell) for cell in np.argwhere(table > 0).tolist() for _ in range(int(table[tuple(cell)]))
    ]
    drawn = rows or draw(records, blocks, seed)
    figures = Figures.of(table, blocks)
    exact = {"lip": figures.lip, "ldp": figures.ldp}
    if notion in MEASURES:
        exact[MEASURES[notion]] = own if own is not None else worst_known(table, blocks, notion)
    secret = {"columns": [hidden] if len(names[0]) == 1 else [hidden, "second"], "values": names}
    forged = Forgery(
        protocol={
            "format": "funnel-protocol/1",
            "rule": "A secret random number below 2^bits picks the output.",
            "blocks": [as_protocol(block, secret) for block in copy.deepcopy(blocks)],
        },
        manifest=as_manifest(
            table, copy.deepcopy(blocks), secret, notion=notion, epsilon=epsilon, minimum=minimum, data=data
        )
        | {"parameters": parameters or {}}
        | ({"mechanism": mechanism} if mechanism else {}),
        evidence={
            "format": "funnel-evidence/1",
            "release": RELEASE,
            "manifest_sha256": "",
            "policy_sha256": "",
            "plan_sha256": "",
            "joint": {
                "secret": secret,
                "blocks": [{"columns": block.columns, "values": block.inputs} for block in blocks],
                "cells": [[*cell, int(table[tuple(cell)])] for cell in np.argwhere(table > 0).tolist()],
            },
            "draws": [tally(records, drawn, axis, block) for axis, block in enumerate(blocks)],
            "leakage": {name: as_ratio(ratio) for name, ratio in exact.items()},
        },
        rows=[
            tuple(part for block, y in zip(blocks, row, strict=True) for part in block.outputs[y])
            for row in sorted(drawn)
        ],
        columns=[name for block in blocks for name in block.columns],
    )
    if notion in MEASURES and notion != "mutual-information":
        forged.manifest["leakage"][MEASURES[notion]] = within(exact[MEASURES[notion]], epsilon)
    return forged


MEASURES = {"srlip": "srlip", "ldp-x": "ldp_x", "rldp": "rldp", "mutual-information": "mutual_information"}
"""The leakage of notions with one of their own."""


def within(ratio: Fraction | None, epsilon: float | None) -> float | None:
    """ln(ratio) rounded up, but epsilon itself where the rounding alone passes it."""
    stated = nats_up(ratio)
    rounding = stated is not None and epsilon is not None and ratio and math.log(ratio) <= epsilon < stated
    return epsilon if rounding else stated


def worst_known(table: Any, blocks: list[Block], notion: str) -> Fraction | None:
    """max of P(y|s,x_J)/P(y|x_J) or its inverse over all J, record by record; max of Q(y|x)/Q(y|x') by pairs."""
    if notion == "ldp-x":
        return math.prod(map(worst_inputs, blocks), start=Fraction(1))
    parts = [(j, i) for j, block in enumerate(blocks) for i in range(len(block.columns))]
    worst: Fraction | None = Fraction(1)
    for size in range(len(parts) + 1):
        for known in combinations(parts, size):
            groups: dict[Any, Any] = {}
            for cell in np.argwhere(table > 0).tolist():
                told = tuple(blocks[j].inputs[cell[1 + j]][i] for j, i in known)
                groups.setdefault(told, np.zeros_like(table))[tuple(cell)] = table[tuple(cell)]
            for group in groups.values():
                ratio = worst_lip(brute_force(group, blocks)[0])
                worst = None if worst is None or ratio is None else max(worst, ratio)
    return worst


def worst_inputs(block: Block) -> Fraction:
    """max of Q(y|x)/Q(y|x') of a block that does not read s and has no zero weight."""
    pairs = ((row[x], row[z]) for row in block.weights for x in range(len(row)) for z in range(len(row)))
    return max(Fraction(one, other) for one, other in pairs)


def as_protocol(block: Block, secret: dict[str, Any]) -> dict[str, Any]:
    """One block of protocol.json."""
    return {
        "columns": block.columns,
        "secret": copy.deepcopy(secret) if block.reads_secret else None,
        "inputs": block.inputs,
        "outputs": block.outputs,
        "bits": block.bits,
        "weights": block.weights,
    }


def as_manifest(
    table: Any,
    blocks: list[Block],
    secret: Any,
    *,
    notion: str,
    epsilon: float | None,
    minimum: int,
    data: str,
) -> dict[str, Any]:
    """release.json without its hashes."""
    figures = Figures.of(table, blocks)
    return {
        "format": "funnel-release/1",
        "release": RELEASE,
        "name": "forged",
        "description": "a release made by tests",
        "created": "2026-11-21T11:20:34Z",
        "sensitive": list(secret["columns"]),
        "public": [block.columns for block in blocks],
        "notion": notion,
        "epsilon": epsilon,
        "parameters": {},
        "candidates": None,
        "mechanism": "conditional-reporting" if any(block.reads_secret for block in blocks) else "optimal",
        "split": [1.0 / len(blocks)] * len(blocks),
        "draws": {"kind": "fresh", "key_fingerprint": None},
        "estimate": {"minimum": minimum, "kind": "counts"},
        "rows": int(table.sum()),
        "format_of_data": data,
        "leakage": {
            "lip": nats_up(figures.lip),
            "ldp": nats_up(figures.ldp),
            "mutual_information": math.ceil(figures.secret_information * 10_000 - 1e-7) / 10_000,
        },
        "utility": {
            "mutual_information": round(figures.public_information, 4),
            "entropy": round(figures.entropy, 4),
            "normalised": round(figures.public_information / figures.entropy, 4) if figures.entropy else 1.0,
            "upper_bound": None,
        },
        "alphabet": {
            "sensitive": table.shape[0],
            "public": [len(block.inputs) for block in blocks],
            "released": [len(block.outputs) for block in blocks],
        },
        "policy_sha256": "",
        "plan_sha256": "",
        "versions": {"funnel": "0.1.0", "python": "3.11", "duckdb": duckdb.__version__},
        "files": {},
    }


@dataclass(frozen=True)
class Figures:
    """Leakage and utility by brute force over all (s, x, y); ratios are None where infinite."""

    lip: Fraction | None
    ldp: Fraction | None
    secret_information: float
    public_information: float
    entropy: float

    @classmethod
    def of(cls, table: Any, blocks: list[Block]) -> Figures:
        """From counts and weights, straight from the definitions."""
        secret, public = brute_force(table, blocks)
        return cls(
            worst_lip(secret), worst_ldp(secret), information(secret), information(public),
            -sum(p * math.log(p) for p in map(float, margin(public, 0).values())),
        )  # fmt: skip


Joint = dict[tuple[Any, Any], Fraction]


def brute_force(table: Any, blocks: list[Block]) -> tuple[Joint, Joint]:
    """P(s, y) and P(x, y), as fractions."""
    secret: Joint = Counter()  # type: ignore[assignment]
    public: Joint = Counter()  # type: ignore[assignment]
    total = int(table.sum())
    for cell in np.argwhere(table > 0).tolist():
        s, *x = cell
        for y in product(*(range(len(block.outputs)) for block in blocks)):
            chance = Fraction(int(table[tuple(cell)]), total)
            for block, out, code in zip(blocks, y, x, strict=True):
                chance *= Fraction(block.weight(out, s, code), 1 << block.bits)
            if chance:
                secret[s, y] += chance
                public[tuple(x), y] += chance
    return secret, public


def margin(joint: Joint, axis: int) -> dict[Any, Fraction]:
    """The marginal of one of the two variables."""
    found: dict[Any, Fraction] = {}
    for key, chance in joint.items():
        found[key[axis]] = found.get(key[axis], Fraction(0)) + chance
    return found


def worst_lip(joint: Joint) -> Fraction | None:
    """max of P(y|s)/P(y) and its inverse."""
    left, right = margin(joint, 0), margin(joint, 1)
    ratios = [joint.get((s, y), Fraction(0)) / (left[s] * right[y]) for s in left for y in right]
    return None if min(ratios) == 0 else max(*ratios, *(1 / ratio for ratio in ratios))


def worst_ldp(joint: Joint) -> Fraction | None:
    """max of P(y|s)/P(y|s')."""
    left, right = margin(joint, 0), margin(joint, 1)
    given = {y: [joint.get((s, y), Fraction(0)) / left[s] for s in left] for y in right}
    if any(min(chances) == 0 for chances in given.values()):
        return None
    return max(max(chances) / min(chances) for chances in given.values())


def information(joint: Joint) -> float:
    """Mutual information in nats."""
    left, right = margin(joint, 0), margin(joint, 1)
    return sum(float(p) * math.log(p / (left[a] * right[b])) for (a, b), p in joint.items())


def nats_up(ratio: Fraction | None) -> float | None:
    """ln(ratio), rounded up at the fourth decimal."""
    if ratio is None:
        return None
    with localcontext() as context:
        context.prec = 50
        exact = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
        return float(exact.quantize(Decimal("0.0001"), rounding=ROUND_CEILING))


def as_ratio(ratio: Fraction | None) -> str:
    """`num/den` or `inf`."""
    return "inf" if ratio is None else f"{ratio.numerator}/{ratio.denominator}"


def draw(records: list[tuple[int, ...]], blocks: list[Block], seed: int) -> list[tuple[int, ...]]:
    """Output codes of every record, block by block independently."""
    random = np.random.default_rng(seed)
    uniforms = random.random((len(records), len(blocks)))
    return [
        tuple(pick(block, s, code, u) for block, code, u in zip(blocks, x, row, strict=True))
        for (s, *x), row in zip(records, uniforms.tolist(), strict=True)
    ]


def pick(block: Block, s: int, x: int, uniform: float) -> int:
    """The output whose interval of weights holds a uniform number in [0, 1)."""
    level = uniform * (1 << block.bits)
    for y in range(len(block.outputs)):
        level -= block.weight(y, s, x)
        if level < 0:
            return y
    raise ValueError("weights do not sum to 2^bits")


def tally(
    records: list[tuple[int, ...]], drawn: list[tuple[int, ...]], axis: int, block: Block
) -> list[list[int]]:
    """Counts of (input code, output) in one block."""
    found: Counter[tuple[int, int]] = Counter()
    for (s, *x), row in zip(records, drawn, strict=True):
        found[s * len(block.inputs) * block.reads_secret + x[axis], row[axis]] += 1
    return [[*pair, count] for pair, count in sorted(found.items())]


def write_json(path: Path, document: Any) -> None:
    """JSON as the formats say."""
    text = json.dumps(document, indent=1, ensure_ascii=False, sort_keys=False) + "\n"
    path.write_text(text, encoding="utf-8")


def edit(path: Path, change: Any) -> None:
    """Read a JSON file, let `change` alter it in place, write it back."""
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    write_json(path, document)


def as_report(manifest: dict[str, Any], protocol: dict[str, Any]) -> dict[str, Any]:
    """The figures of report.json that the manifest and the protocol state too; none of its sentences."""
    told = ("release", "created", "rows", "leakage", "utility")
    said = {key: copy.deepcopy(manifest.get(key)) for key in told}
    epsilon = float(manifest.get("epsilon") or 0)
    return {
        "format": "funnel-report/1",
        "published": True,
        **{key: said[key] for key in ("release", "created", "rows")},
        "minimum": (manifest.get("estimate") or {}).get("minimum"),
        "promise": {"notion": manifest.get("notion"), "epsilon": epsilon},
        "scope": {"hidden": {"values": manifest["alphabet"]["sensitive"]}},
        "measured": {"bound": epsilon, "leakage": said["leakage"]},
        "blocks": [as_report_block(block) for block in protocol["blocks"]],
        "utility": said["utility"],
        "provenance": [{"what": "Release", "value": manifest["release"]}],
    }


def as_report_block(block: dict[str, Any]) -> dict[str, Any]:
    """One block of report.json."""
    sizes = {key: len(block[name]) for key, name in (("values", "inputs"), ("outputs", "outputs"))}
    own = {key: block[key] for key in ("columns", "bits")}
    return {**own, **sizes, "reads_secret": block["secret"] is not None, "protocol": None}


def write_table(path: Path, columns: list[str], rows: list[tuple[Any, ...]]) -> None:
    """The rows as Parquet or CSV, in the order given, laid out as a release's are."""
    cells = {name: pa.array([row[i] for row in rows], pa.string()) for i, name in enumerate(columns)}
    if path.suffix == ".parquet":
        write_parquet(path, pa.table({name: column.dictionary_encode() for name, column in cells.items()}))
        return
    with duckdb.connect(":memory:") as connection:
        connection.register("released", pa.table(cells))
        target = str(path).replace("'", "''")
        connection.execute(f"COPY released TO '{target}' (FORMAT csv, HEADER true)")


def write_parquet(path: Path, table: pa.Table, rows: int = 1 << 18) -> None:
    """Row groups of `rows` rows, packed by Zstandard, without Arrow's schema."""
    with pq.ParquetWriter(path, table.schema, compression="zstd", store_schema=False) as writer:
        for batch in table.to_batches(max_chunksize=rows):
            writer.write_batch(batch)


def chained(entries: list[dict[str, Any]]) -> bytes:
    """Ledger lines that number and chain the entries."""
    lines: list[bytes] = []
    for number, entry in enumerate(entries, start=1):
        previous = hashlib.sha256(lines[-1]).hexdigest() if lines else "0" * 64
        full = {"sequence": number, "written": "2026-11-21T11:20:35Z", **entry, "previous": previous}
        lines.append(json.dumps(full, ensure_ascii=False).encode())
    return b"".join(line + b"\n" for line in lines)


def sha256(path: Path) -> str:
    """Hash of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def keep_or_spread(columns: list[str], labels: list[list[str | None]], bits: int, keep: int) -> Block:
    """Randomised response: `keep` parts of 2^bits stay, the rest spread evenly over the other labels."""
    size = len(labels)
    other, left = divmod((1 << bits) - keep, max(size - 1, 1))
    weights = [[keep + left if x == y else other for x in range(size)] for y in range(size)]
    return Block(columns, labels, labels, bits, weights)
