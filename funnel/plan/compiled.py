"""A policy and its source made one: the plan, an engine on the table, and what is refused before a row is read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from funnel.engine import Dialect, Engine, Source, found_for, open_engine
from funnel.errors import SourceError
from funnel.plan.build import compile_plan
from funnel.plan.population import NOTHING, Wanted
from funnel.plan.stages import Plan
from funnel.policy import Policy
from funnel.text import SIZE

if TYPE_CHECKING:
    from funnel.lock.lock import Lock


MOST_THREADS = 1024
"""Of an engine: each begun takes memory, and a machine has an end of them."""


@dataclass(frozen=True)
class Limits:
    """What the engine may use: memory such as 2GB or 1.5GiB, threads (None: all cores). Raises ValueError."""

    memory: str = "2GB"
    threads: int | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(SIZE, self.memory):
            raise ValueError(f"memory is a number with a unit, such as 2GB, and not {self.memory!r}")
        if self.threads is not None and not 1 <= self.threads <= MOST_THREADS:
            raise ValueError(f"threads are from one to {MOST_THREADS:,}, and not {self.threads:,}")


USUAL = Limits()
"""What the engine may use where nobody says."""


@contextmanager
def planned(
    policy: Policy, limits: Limits = USUAL, lock: Lock | None = None, wanted: Wanted = NOTHING
) -> Iterator[tuple[Plan, Engine, Source]]:
    """The plan of a policy, and an engine on its source. Raises FunnelError.

    `wanted` is what other releases of the folder ask of everybody.
    """
    found = found_source(policy)
    with open_engine(found, memory=limits.memory, threads=limits.threads) as engine:
        plan, source, columns = _compiled(policy, found, engine.schema(), lock, wanted)
        if source is found:  # to open an engine takes as long as to count a small table
            engine.fetch(columns)
            yield plan, engine, source
            return
    with open_engine(source, memory=limits.memory, threads=limits.threads) as engine:
        engine.fetch(columns)
        yield plan, engine, source


def compiled(
    policy: Policy, limits: Limits, lock: Lock | None, wanted: Wanted
) -> tuple[Plan, Source, tuple[str, ...]]:
    """The plan, its source, and the columns that it reads; no row is read. Raises FunnelError."""
    source = found_source(policy)
    with open_engine(source, memory=limits.memory, threads=limits.threads) as engine:
        schema = engine.schema()
    return _compiled(policy, source, schema, lock, wanted)


def found_source(policy: Policy) -> Source:
    """The table that a policy names. Raises SourceError."""
    table, settings = policy.source.table, policy.spark or {}
    return found_for(policy.engine, settings, table, policy.directory, dialect(policy))


def _compiled(
    policy: Policy, source: Source, schema: Mapping[str, str], lock: Lock | None, wanted: Wanted
) -> tuple[Plan, Source, tuple[str, ...]]:
    plan = compile_plan(policy, schema, source, lock.checksum if lock else None, wanted)
    columns = plan.reads(schema)
    if source.files:  # which are read where they lie: no such table counts by itself
        return plan, source, columns
    from funnel.plan.counted import seen, words

    looked_at = seen(policy, plan, columns)
    counting = None if looked_at is None else source.counting(looked_at)
    if looked_at is None or counting is None:
        return plan, source, columns
    return replace(plan, scan=replace(plan.scan, counted=words(looked_at))), counting, tuple(looked_at)


def dialect(policy: Policy) -> Dialect:
    """How a CSV is written, as the policy says."""
    told = policy.source.csv
    return Dialect() if told is None else Dialect(told.header, told.delimiter, told.decimal, told.names)


@contextmanager
def located(source: Source) -> Iterator[None]:
    """Errors about the table say which one it is, where they know no better place."""
    try:
        yield
    except SourceError as error:
        if error.where is None:
            error.where = source.name
            error.args = (error.text(),)
        raise


def check_apart(policy: Policy, source: Source) -> None:
    """A pattern that reaches into the release folders would read a release as the people. Raises SourceError."""
    for folder in (policy.to, policy.private):
        inside = os.path.realpath(folder)  # a link may lead to itself
        if any(file.resolve().is_relative_to(inside) for file in source.files):
            raise SourceError(
                "release-path",
                "the pattern of the source also matches files in a release folder",
                where=source.name,
                advice="Narrow `source.table`, or release somewhere else.",
            )
