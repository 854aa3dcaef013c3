"""The digest of a run's table, under the key of its private folder: one hash of all rows, and a sample of people."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from typing import Any

from funnel.data import Alphabet
from funnel.data.alphabet import Label
from funnel.draw.keys import Key
from funnel.draw.people import Sampling, Words, sample_bits
from funnel.engine import Engine, Source
from funnel.format.people import PeopleFile
from funnel.ledger.people import PeopleKey, people_key
from funnel.ledger.whose import Whose
from funnel.plan.draw import BATCH
from funnel.plan.people import SAMPLE, VERSION, named_table
from funnel.plan.prepare import Prepared
from funnel.plan.reading import Read
from funnel.plan.stages import People, Plan
from funnel.policy import Policy

Row = tuple[int, ...]
Sampled = tuple[tuple[Label, ...], tuple[Row, ...]]


def take(run: Prepared, engine: Engine, progress: Callable[[str], None], read: Read | None = None) -> Whose:
    """The digest of a run's table, under the key of its private folder. Raises SourceError, LedgerError.

    Where it was `read` once that reading has it.
    """
    if read is None:
        progress(run.plan.people.title)
        key = people_key(run.policy.private)
        return Whose(run.release, digest(run.policy, run.plan, run.source, engine, key), key)
    (version,) = engine.row(f"SELECT {VERSION}")
    told = read.reading.rows, str(read.reading.content), version
    words, values = read.sample()
    sample = _coded(run.plan.people, words.tolist(), values)
    found = _file(run.policy, run.plan, read.key, _reading(run.plan), told, sample)
    return Whose(run.release, found, read.key)


def digest(policy: Policy, plan: Plan, source: Source, engine: Engine, key: PeopleKey) -> PeopleFile:
    """Carry out the stage on a table that was counted. Raises SourceError."""
    stage, read = plan.people, [*_table(policy, source), *_reading(plan)]
    engine.variables(people=key.salt)
    told = engine.row(stage.content)
    return _file(policy, plan, key, read, told, _sampled(stage, engine, key, sample_bits(told[0])))


def _file(
    policy: Policy, plan: Plan, key: PeopleKey, read: Sequence[str], told: Sequence[Any], sampled: Sampled
) -> PeopleFile:
    """people.json: what was `read`, and `told` of its rows: how many, their hash, and by which version of it."""
    stage, rows, (labels, sample) = plan.people, told[0], sampled
    content = hashlib.sha256(json.dumps([read, *told]).encode()).hexdigest()
    return PeopleFile(
        "funnel-people/1", named_table(policy), key.fingerprint, stage.entity, rows, content, sample_bits(rows),
        stage.secret, stage.public, labels, sample,
    )  # fmt: skip


def _reading(plan: Plan) -> list[str]:
    """The statements by which rows are read."""
    return [*(() if plan.cells is None else plan.cells.statements), plan.count.statements[0]]


def _table(policy: Policy, source: Source) -> list[str]:
    """What tells rows that are nobody's apart: their table; where that lies elsewhere, one equals no other."""
    if policy.source.entity is not None:
        return []
    own = named_table(policy)
    return [own] if source.files else [own, os.urandom(16).hex()]


def _sampled(stage: People, engine: Engine, key: Key, bits: int) -> Sampled:
    """The sample of people, from the engine."""
    if stage.entities is None or stage.sampled is None:
        return tuple(() for _ in (*stage.secret, *stage.public)), ()
    found = engine.map(stage.entities, BATCH, Sampling(key, bits))
    chosen = dict.fromkeys(one for batch in found for one in batch.column(0).to_pylist())
    engine.provide(SAMPLE, Alphabet(("entity",), tuple((one,) for one in chosen)))
    words, whose, values = Words(key), list[int](), list[Label]()
    for batch in engine.stream(stage.sampled, BATCH):
        entity, *texts = batch.columns
        whose += words.of(entity).tolist()
        values += zip(*(one.to_pylist() for one in texts), strict=True)
    return _coded(stage, whose, values)


def _coded(stage: People, whose: Sequence[int], values: Sequence[Label]) -> Sampled:
    """The values of each column in the sample, and its rows of word and codes."""
    columns = (*stage.secret, *stage.public)
    labels = [Alphabet.of((name,), [(value[i],) for value in values]) for i, name in enumerate(columns)]
    codes = [{value: code for code, (value,) in enumerate(one.values)} for one in labels]
    sample = (
        (word, *(code[text] for code, text in zip(codes, value, strict=True)))
        for word, value in zip(whose, values, strict=True)
    )
    return tuple(tuple(value for (value,) in one.values) for one in labels), tuple(sorted(sample))
