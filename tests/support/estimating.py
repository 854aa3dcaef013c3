"""A policy with a private estimate, and what its releases say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import duckdb

import funnel
from funnel.format import schema
from funnel.format.manifest import Manifest
from funnel.format.protocol import ProtocolFile
from funnel.format.released import ReleasedFile
from funnel.format.reported import Published
from funnel.report import published
from tests.support.policies import write_policy

PEOPLE = "SELECT 's' || (i % 2) AS s, 'x' || (hash(i) % 3) AS x FROM range(600) t(i)"


VALUES = {"s": ["s0", "s1", "never"], "x": ["x0", "x1", "x2"]}


def policy(folder: Path, query: str = PEOPLE, **changes) -> Path:
    duckdb.sql(f"COPY ({query}) TO '{folder}/table.parquet'")
    terms = {
        "source": {"table": "table.parquet"}, "sensitive": ["s"], "public": ["x"], "draws": None,
        "estimate": {"kind": "private", "epsilon": 1.0, "minimum": 1, "values": VALUES},
    }  # fmt: skip
    return write_policy(folder, **{**terms, **changes})


def claims(report: funnel.AuditReport) -> dict[str, tuple[str, str]]:
    return {one.claim: (one.status, one.detail) for one in report.findings}


def text(folder: Path, name: str) -> dict:
    return json.loads((folder / name).read_text())


def as_published(release: Path, drawn: Path) -> tuple[Manifest, ProtocolFile, dict]:
    """What a release publishes beside its table, told of the values that were drawn for another one.

    Its report.json is a pure function of the three files that are read here, as its audit has found.
    """
    stated = schema.read(Manifest, "release.json", (release / "release.json").read_bytes())
    shown = schema.read(ProtocolFile, "protocol.json", (release / "protocol.json").read_bytes())
    table = schema.read(ReleasedFile, "released.json", (drawn / "released.json").read_bytes())
    named = replace(stated, release="id", created="2026-01-01T00:00:00Z", plan_sha256="", files={})
    return named, shown, published(Published(named, shown, table))  # the plan names folders
