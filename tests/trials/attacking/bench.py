"""A private folder and its releases as an operator makes them, and what an attacker keeps of each."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

import funnel
from funnel.errors import FunnelError
from tests.trials.attacking.row import Said
from tests.trials.attacking.together import Draw, blocks, learnt

POLICIES = Path(__file__).parents[3] / "policies"
CENSUS = Path(__file__).parents[3] / "examples" / "census" / "census.parquet"
DECIDE = 4
"""The exit code of a run that a person has to decide about."""
Table = Mapping[str, Sequence[Any]]


class Bench:
    """Nights of one folder. Row i of every table is person i, whose name may be another one from a `numbering` on."""

    def __init__(self, folder: Path, terms: Mapping[str, Any]) -> None:
        folder.mkdir(parents=True)
        os.environ.setdefault("FUNNEL_KEY", funnel.new_key())
        self.folder, self.terms = folder, dict(terms)
        self.paths: list[list[Draw | None]] = []
        self.releases: list[Path] = []
        self.secrets: list[Any] = []
        self.names: dict[str, None] = {}
        self.told: dict[str, Any] = {}

    @classmethod
    def shipped(cls, name: str, folder: Path) -> Bench:
        """Of a shipped policy, over its own table in this folder."""
        terms = yaml.safe_load((POLICIES / f"{name}.yaml").read_text())
        terms["source"] |= {"table": "people.parquet"}
        return cls(folder, terms | {"release": {"to": "releases", "private": "private"}})

    def night(
        self, table: Table, present: Sequence[bool] | None = None, numbering: int = 0, **changes: Any
    ) -> Said:
        """Write the table and release it: what is said then. `present` is who the policy does not leave out."""
        terms = self.terms | changes
        path = self._written(table, terms)
        try:
            made, refused = funnel.run(path), None
        except FunnelError as error:
            if error.exit_code != DECIDE:
                raise
            refused = error.code
            ended = [name for name in self.names if name != terms["name"]]
            path = self._written(table, terms | {"accept": [*ended, "unbounded"], "budget": None})
            made = funnel.run(path)
        self.names[terms["name"]] = None
        self.told = made.as_dict()
        self._keep(Path(made.release), table, terms, present, numbering)
        return self._said(path, Path(made.release), refused)

    def left(self) -> float | None:
        """What the ledger now says of the first policy's promise: nats, None where there is no bound."""
        path = self.folder / "policy.yaml"
        path.write_text(yaml.safe_dump(self.terms))
        figure: float | None = funnel.read_ledger(path).as_dict()["composed"]
        return figure

    def real(self, measure: str) -> float:
        """What all releases tell about people whose secrets are those of the first night, in nats: to who knows no more
        than the whole source, or also that somebody is in one of the tables."""
        people = Counter(zip(self.secrets, map(tuple, self.paths), strict=True))
        readers = [people]
        for place in range(len(self.paths[0])):
            inside = Counter({one: many for one, many in people.items() if one[1][place] is not None})
            readers += [inside] if inside not in readers else []
        return max(learnt(one, measure) for one in readers)

    @contextmanager
    def aside(self) -> Iterator[Bench]:
        """Nights that are forgotten afterwards, by attacker and ledger alike."""
        kept = self.folder.with_name(f"{self.folder.name}-kept")
        shutil.copytree(self.folder, kept, symlinks=True)
        before = [*self.paths], [*self.releases], [*self.secrets], {**self.names}
        self.paths = [[*path] for path in self.paths]
        try:
            yield self
        finally:
            shutil.rmtree(self.folder)
            kept.rename(self.folder)
            self.paths, self.releases, self.secrets, self.names = before

    def _written(self, table: Table, terms: Mapping[str, Any]) -> Path:
        pq.write_table(pa.table(dict(table)), self.folder / terms["source"]["table"])
        path = self.folder / "policy.yaml"
        path.write_text(yaml.safe_dump({name: value for name, value in terms.items() if value is not None}))
        return path

    def _keep(
        self, release: Path, table: Table, terms: Mapping[str, Any], present: Sequence[bool] | None, numbering: int
    ) -> None:
        """What the release has of each person."""
        rows = len(next(iter(table.values())))
        if not self.secrets:
            self.secrets = list(zip(*(table[name] for name in self.terms["sensitive"]), strict=True))
            self.paths = [[] for _ in range(rows)]
        permanent = terms.get("draws", {}).get("kind", "permanent") == "permanent"
        for block in blocks(release):
            source = (block.columns, numbering, None if permanent else len(self.releases), terms["draws"].get("key"))
            known: dict[tuple[Any, ...], Draw] = {}
            values = list(zip(*(table[name] for name in block.columns), strict=True))
            for i, value in enumerate(values):
                if value not in known:
                    label = block.label(value)
                    known[value] = (source, label), block.ends.get(label, ())
                self.paths[i].append(known[value] if present is None or present[i] else None)
        self.releases.append(release)

    def _said(self, path: Path, release: Path, refused: str | None) -> Said:
        """The run's figure; where others say otherwise of the same, in words."""
        told = self.told
        figure, ledger = told["composed"]["figure"], funnel.read_ledger(path).as_dict()["composed"]
        stated = json.loads((release / "release.json").read_text())["composed"]
        audit = funnel.audit_release(release, self.folder / "private")
        wrong = [f"the audit fails: {one.claim}" for one in audit.of("failed")]
        if ledger != figure:
            wrong.append(f"the ledger says {ledger}")
        if stated is not None and (stated["leakage"] is None) != (figure is None):
            wrong.append(f"the manifest says {stated['leakage']}")
        return Said(figure, refused, tuple(told["identity"]["assumes"]), tuple(wrong))
