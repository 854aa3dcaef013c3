"""A copy of some releases with all that belongs to them, and a forger's tools: whatever needs no key is made to fit."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from tests.trials.tampered.ratios import worst
from tests.unit.audit.forge import write_parquet

Json = dict[str, Any]
KEPT = ("evidence.json", "lock.yaml", "plan.json", "policy.yaml", "proof.bin", "solution.json")
"""Files of a release's private folder that the auditor reads."""
CHAINS = ("ledger", "estimates")
"""Records in the private folder, NAME.jsonl with NAME.head."""


def sha(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def read(path: Path) -> Any:
    return json.loads(path.read_bytes())


def write(path: Path, document: Any) -> None:
    """As the program writes JSON."""
    path.write_bytes((json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode())


def edit(path: Path, change: Callable[[Any], Any]) -> None:
    """Change a JSON file in place; one that says the same afterwards keeps its bytes."""
    before, after = read(path), read(path)
    change(after)
    if after != before:
        write(path, after)


@dataclass(frozen=True)
class Place:
    """`home` holds the folders `releases` and `private`; `release` is the one looked at; `other` are other cases."""

    home: Path
    release: str
    signed: bool
    ground: Path

    def at(self, release: str) -> Place:
        """Another release of the same ledger."""
        return Place(self.home, release, self.signed, self.ground)

    @property
    def releases(self) -> list[str]:
        """Of this ledger, oldest first."""
        return sorted(path.name for path in (self.home / "releases").glob("2*"))

    @property
    def private(self) -> Path:
        return self.home / "private"

    @property
    def folder(self) -> Path:
        return self.home / "releases" / self.release

    @property
    def kept(self) -> Path:
        return self.private / self.release

    @property
    def manifest(self) -> Json:
        found: Json = read(self.folder / "release.json")
        return found

    @property
    def protocol(self) -> Json:
        found: Json = read(self.folder / "protocol.json")
        return found

    @property
    def evidence(self) -> Json:
        found: Json = read(self.kept / "evidence.json")
        return found

    @property
    def data(self) -> Path:
        return next(self.folder.glob("data.*"))

    @property
    def has_sets(self) -> bool:
        return any("kind" in block for block in self.protocol["blocks"])

    def others(self) -> list[Path]:
        """Honest release folders elsewhere, with this one's other nights first."""
        own = [self.home / "releases" / name for name in self.releases if name != self.release]
        return own + sorted(self.ground.glob("*/releases/2*"))

    def kept_of(self, release: Path) -> Path:
        """The private folder that belongs to a release folder."""
        return release.parent.parent / "private" / release.name

    # --- the ledger

    @property
    def entries(self) -> list[Json]:
        return self.record("ledger")

    def record(self, name: str) -> list[Json]:
        """The entries of a record."""
        lines = (self.private / f"{name}.jsonl").read_bytes().split(b"\n")[:-1]
        return [json.loads(line) for line in lines]

    def rechain(self, entries: list[Json], name: str = "ledger") -> None:
        """A record and its head, written anew with numbers and hashes that fit."""
        lines: list[bytes] = []
        for number, entry in enumerate(entries, start=1):
            previous = sha(lines[-1]) if lines else "0" * 64
            full = entry | {"sequence": number, "previous": previous}
            lines.append(json.dumps(full, ensure_ascii=False).encode())
        (self.private / f"{name}.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
        head = {"sequence": len(lines), "sha256": sha(lines[-1]) if lines else "0" * 64}
        (self.private / f"{name}.head").write_bytes(json.dumps(head).encode() + b"\n")

    def enter(self, change: Callable[[Json], None]) -> None:
        """Change this release's entry, and chain all anew."""
        entries = self.entries
        for entry in entries:
            if entry["release"] == self.release:
                change(entry)
        self.rechain(entries)

    # --- hashes

    def relist(self) -> None:
        """The manifest's list of files, as they are now; it is all that is needed to change a published folder."""
        files = {
            path.name: {"sha256": sha(path.read_bytes()), "bytes": path.stat().st_size}
            for path in sorted(self.folder.iterdir())
            if path.is_file() and path.name not in ("release.json", "release.sig")
        }
        edit(self.folder / "release.json", lambda manifest: manifest.update(files=files))

    def seal(self) -> None:
        """Every hash and checksum of every release and of the ledger, as a forger without the signing key can."""
        entries = {entry["release"]: entry for entry in self.entries}
        for release in self.releases:
            place = self.at(release)
            place._seal_private()
            place._seal_report()
            place.relist()
            place._seal_evidence()
            if release in entries:
                place._seal_entry(entries[release])
        self.rechain([entries.get(entry["release"], entry) | {} for entry in self.entries])

    def _seal_private(self) -> None:
        """Proof, lock, policy and plan, and what the manifest says of them."""
        proof, lock = self.kept / "proof.bin", self.kept / "lock.yaml"
        solution = read(self.kept / "solution.json")
        if proof.is_file() and (solution.get("certificate") or {}).get("proof"):
            solution["certificate"]["proof"]["sha256"] = sha(proof.read_bytes())
            edit(self.kept / "solution.json", lambda told: told.update(solution))
        policy = sha((self.kept / "policy.yaml").read_bytes())
        edit(self.kept / "plan.json", lambda plan: plan.update(policy_sha256=policy))
        plan = sha((self.kept / "plan.json").read_bytes())
        edit(self.folder / "release.json", lambda told: told.update(policy_sha256=policy, plan_sha256=plan))
        edit(self.kept / "evidence.json", lambda told: told.update(policy_sha256=policy, plan_sha256=plan))
        if lock.is_file():
            checksum = self._seal_lock(lock)
            edit(self.folder / "release.json", lambda told: told.get("locked", {}).update(checksum=checksum))

    def _seal_lock(self, lock: Path) -> str:
        """A lock that fixed the protocol as it is now."""
        blocks = json.dumps(self.protocol["blocks"], sort_keys=True, separators=(",", ":")).encode()
        lines = lock.read_text().splitlines(keepends=True)[:-1]
        facts = [f'protocol: "{sha(blocks)}"\n' if line.startswith("protocol: ") else line for line in lines]
        body = "".join(facts).encode()
        lock.write_bytes(body + f'checksum: "{sha(body)}"\n'.encode())
        return sha(body)

    def _seal_report(self) -> None:
        """The hashes that the report tells."""
        manifest = self.manifest
        known = {"Policy, SHA-256": manifest["policy_sha256"], "Plan, SHA-256": manifest["plan_sha256"],
                 "Protocol, SHA-256": sha((self.folder / "protocol.json").read_bytes())}  # fmt: skip

        def change(report: Json) -> None:
            for one in report["provenance"]:
                one["value"] = known.get(one["what"], one["value"])

        edit(self.folder / "report.json", change)

    def _seal_evidence(self) -> None:
        hashed = sha((self.folder / "release.json").read_bytes())
        edit(self.kept / "evidence.json", lambda evidence: evidence.update(manifest_sha256=hashed))

    def _seal_entry(self, entry: Json) -> None:
        """The hashes in the ledger, and the copy of the protocol that goes with it."""
        raw = (self.folder / "protocol.json").read_bytes()
        (self.private / "protocols" / f"{sha(raw)}.json").write_bytes(raw)
        manifest = self.folder / "release.json"
        entry.update(
            manifest_sha256=sha(manifest.read_bytes()), protocol_sha256=sha(raw),
            policy_sha256=read(manifest)["policy_sha256"],
        )  # fmt: skip
        if "kept" in entry:
            entry["kept"] = {
                path.name: sha(path.read_bytes())
                for path in sorted(self.kept.iterdir())
                if path.name != "published" and path.stem != "report"
            }

    # --- the table

    def rows(self) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Columns and rows of the released table."""
        if self.data.suffix == ".parquet":
            table = pq.read_table(self.data)
            return table.column_names, list(zip(*(c.to_pylist() for c in table.columns), strict=True))
        found = duckdb.sql(f"SELECT * FROM read_csv('{self.data}', header = true, all_varchar = true)")
        return found.columns, found.fetchall()

    def rewrite(self, columns: list[str], rows: list[tuple[Any, ...]], *, count: bool = True) -> None:
        """The table as its writer would write these rows, in the order that they have; the manifest counts them."""
        known = {row: place for place, row in enumerate(self.rows()[1])} if self.has_sets else {}
        rows = sorted(rows, key=lambda row: (known.get(row, len(known)), row))
        if self.data.suffix == ".parquet":
            write_parquet(self.data, self._table(columns, rows))
        else:
            table = pa.table({name: [row[i] for row in rows] for i, name in enumerate(columns)})
            with duckdb.connect(":memory:") as connection:
                connection.register("released", table)
                quoted = ", FORCE_QUOTE *" if self.data.read_bytes().startswith(b'"') else ""
                connection.execute(f"COPY released TO '{self.data}' (FORMAT csv, HEADER true{quoted})")
        if count:
            self.claim("rows", len(rows))

    def _table(self, columns: list[str], rows: list[tuple[Any, ...]]) -> pa.Table:
        """Columns of the types they had, texts by a dictionary."""
        schema, arrays = pq.read_schema(self.data), []
        for i, field in enumerate(schema):
            text = pa.types.is_string(field.type)
            array = pa.array([row[i] for row in rows], pa.string() if text else field.type)
            arrays.append(array.dictionary_encode() if text else array)
        return pa.table(dict(zip(columns, arrays, strict=True)))

    # --- claims

    def claim(self, key: str, value: Any) -> None:
        """A figure, in the manifest and where the report tells it too."""
        edit(self.folder / "release.json", lambda manifest: manifest.update({key: value}))
        edit(self.folder / "report.json", lambda report: key in report and report.update({key: value}))

    def tell_chances(self) -> None:
        """The chances in the report, as the protocol has them now."""
        blocks = self.protocol["blocks"]

        def change(report: Json) -> None:
            for told, block in zip(report["blocks"], blocks, strict=True):
                if told.get("protocol") and "weights" in block and block["secret"] is None:
                    whole = 1 << block["bits"]
                    told["protocol"]["chances"] = [
                        [round(w / whole, 3) for w in row] for row in block["weights"]
                    ]

        edit(self.folder / "report.json", change)

    def told_truly(self) -> bool:
        """Whether lip and ldp in the evidence are still those of its counts and of the protocol, by brute force."""
        evidence = self.evidence
        found = worst(evidence["joint"], self.protocol["blocks"])
        return all(evidence["leakage"][name] == told for name, told in found.items())


def pick(rng: random.Random, items: list[Any]) -> Any:
    """One of several, None of none."""
    return rng.choice(items) if items else None
