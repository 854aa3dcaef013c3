"""The digest of a run's table, under the key of its private folder: one hash of all rows, and a sample of people."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable

from funnel.data import Alphabet
from funnel.data.alphabet import Label
from funnel.draw.keys import Key
from funnel.draw.people import Words
from funnel.engine import Engine, Source
from funnel.format.people import MOST, PeopleFile
from funnel.ledger.people import people_key, table_name
from funnel.ledger.whose import Whose
from funnel.plan.draw import BATCH
from funnel.plan.people import SAMPLE
from funnel.plan.prepare import Prepared
from funnel.plan.stages import People, Plan
from funnel.policy import Policy

Row = tuple[int, ...]


def take(run: Prepared, engine: Engine, progress: Callable[[str], None]) -> Whose:
    """The digest of a run's table, under the key of its private folder. Raises SourceError, LedgerError."""
    progress(run.plan.people.title)
    key = people_key(run.policy.path(run.policy.release.private))
    return Whose(run.release, digest(run.policy, run.plan, run.source, engine, key), key)


def digest(policy: Policy, plan: Plan, source: Source, engine: Engine, key: Key) -> PeopleFile:
    """Carry out the stage on a table that was counted. Raises SourceError."""
    stage, cells = plan.people, () if plan.cells is None else plan.cells.statements
    read = [*cells, plan.count.statements[0]] if stage.entity is not None else _columns(source)
    engine.variables(people=int.from_bytes(key.derive("people/content")[:7], "little"))
    rows, *told = engine.row(stage.content)
    content = hashlib.sha256(json.dumps([read, rows, *told]).encode()).hexdigest()
    bits = max(0, (max(rows, 1) - 1).bit_length() - (MOST.bit_length() - 1))
    labels, sample = _sampled(stage, engine, Words(key), bits)
    private = policy.path(policy.release.private)
    return PeopleFile(
        "funnel-people/1", table_name(policy.source.table, policy.directory, private), key.fingerprint,
        stage.entity, rows, content, bits, stage.secret, stage.public, labels, sample,
    )  # fmt: skip


def _columns(source: Source) -> list[str]:
    """What tells hashes of rows that are nobody's apart: where not all columns were fetched, one equals no other."""
    return [] if source.files else [os.urandom(16).hex()]


def _sampled(
    stage: People, engine: Engine, words: Words, bits: int
) -> tuple[tuple[Label, ...], tuple[Row, ...]]:
    """The values of each column in the sample, and its rows of word and codes."""
    columns = (*stage.secret, *stage.public)
    if stage.entities is None or stage.sampled is None:
        return tuple(() for _ in columns), ()
    read = (batch.column(0) for batch in engine.stream(stage.entities, BATCH))
    chosen = dict.fromkeys(words.sampled(read, bits))
    engine.provide(SAMPLE, Alphabet(("entity",), tuple((one,) for one in chosen)))
    whose, values = list[int](), list[Label]()
    for batch in engine.stream(stage.sampled, BATCH):
        entity, *texts = batch.columns
        whose += words.of(entity).tolist()
        values += zip(*(one.to_pylist() for one in texts), strict=True)
    labels = [Alphabet.of((name,), [(value[i],) for value in values]) for i, name in enumerate(columns)]
    codes = [{value: code for code, (value,) in enumerate(one.values)} for one in labels]
    sample = (
        (word, *(code[text] for code, text in zip(codes, value, strict=True)))
        for word, value in zip(whose, values, strict=True)
    )
    return tuple(tuple(value for (value,) in one.values) for one in labels), tuple(sorted(sample))
