"""A plan for people: the stages in order, their SQL, and the sizes that decide which solver serves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from funnel.data.channel import MAX_CELLS
from funnel.engine.sql import identifier
from funnel.mechanisms import MECHANISMS
from funnel.notions import NOTIONS
from funnel.plan import stages
from funnel.plan.population import warning
from funnel.plan.stages import Plan
from funnel.plan.survey import Sizes
from funnel.text import counted, number

_OLD = {"replace": "replaced", "keep": "kept by its date"}


@dataclass(frozen=True)
class Explained:
    """A plan with the sizes that were found for it."""

    plan: Plan
    sizes: Sizes

    def text(self) -> str:
        """The steps for a person."""
        return explain(self.plan, self.sizes)

    def as_dict(self) -> dict[str, Any]:
        """JSON form."""
        return self.plan.as_dict() | {"plan_sha256": self.plan.sha256, "sizes": self.sizes.as_dict()}


def explain(plan: Plan, found: Sizes | None = None) -> str:
    """The plan as text; `found` adds sizes."""
    lines = [f"plan {plan.sha256[:12]} for {plan.name}"]
    for place, stage in enumerate(plan.stages, start=1):
        lines += ["", f"{place}. {stage.title}: {_summary(stage)}"]
        lines += [f"   {note}" for note in (*_told(stage, plan), *_notes(stage, found))]
        lines += [f"     {statement}" for statement in _statements(stage)]
    return "\n".join([*lines, "", f"the table is read {readings(plan)}"])


def readings(plan: Plan) -> str:
    """How often the table is read at most: what an engine knows from statistics of the files, it need not read."""
    own = [(stage.title, _reads(stage, plan)) for stage in plan.stages]
    told = ", ".join(f"{title} {times}" for title, times in own if times)
    several = f"{sum(times for _, times in own)} times at most ({told})"
    once = "where it holds only values that the lock knows"
    if plan.once is not None:
        behind = sum(_reads(one, plan) for one in (plan.know, plan.everybody) if one is not None)
        texts = plan.identify is not None and not plan.identify.integer  # of which it is asked apart who is there twice
        times = 1 + behind + texts
        return f"{'once' if times == 1 else f'{times} times'} {once}, else {several} more"
    return f"{several}; under a lock once {once}" if plan.may_be_read_once else several


def _reads(stage: stages.Stage, plan: Plan) -> int:
    """How many statements of a stage go through the rows of the table."""
    match stage:
        case stages.Inspect() | stages.Know() | stages.Count():
            return 1
        case stages.Identify() | stages.Name():
            return 2
        case stages.Everybody():
            return len(stage.counts) + (stage.once is not None)
        case stages.MakeCells():
            return len(stage.blocks)
        case stages.People() if plan.draw.whose:
            return 0
        case stages.People():
            return sum(one is not None for one in (stage.entities, stage.sampled)) + (not stage.of_counts)
        case stages.Draw():
            return int(stage.statement is not None)
        case _:
            return 0


def _summary(stage: stages.Stage) -> str:
    """What a stage does, in one line."""
    match stage:
        case stages.Solve():
            chosen = "best of several protocols" if stage.candidates else f"{stage.mechanism} protocol"
            steps = f", from beliefs rounded outward to steps of {number(stage.beliefs or 0)}"
            rounded = "" if stage.beliefs is None else steps
            return f"{chosen} under {stage.notion}, epsilon {number(stage.epsilon)} nats{rounded}"
        case stages.MakeCells():
            told = (f"{counted(len(one.columns), 'column')} of {one.name} in {counted(one.most, 'cell')} at most, of "
                    f"at least {counted(one.minimum, 'record')} each" for one in stage.blocks)  # fmt: skip
            return "; ".join(told) + "; the secret is not read"
        case stages.Count():
            blocks = ", ".join("+".join(block) for block in stage.blocks)
            noise = (
                "" if stage.noise is None else f", with noise on every count (epsilon {number(stage.noise)} nats)"
            )
            least = f"at least {stage.minimum} records per public value"
            return f"N[{', '.join(stage.secret)}; {blocks}]{noise}, {least}"
        case stages.Know():
            columns = counted(len({column for column, _, _ in stage.levels}), "column")
            levels = f"{counted(len(stage.levels), 'level')}, where at least {stage.minimum} records share a value"
            return f"the same records by what somebody may know: {columns}, {levels}"
        case stages.Everybody():
            others = len(stage.classes) - (stage.own is not None)
            own = "everybody" if stage.own is None else f"those with {stage.own}"
            return f"in this release are {own}; {others:,} predicates of other releases"
        case stages.Pin() if stage.noise is not None:
            return "take the protocols of a lock, at the noisy counts that it pins; nothing is estimated or solved"
        case stages.Draw():
            how = "" if stage.statement else ", for the counts: no record is read again"
            how += "; whose rows they are is looked at in the same reading" if stage.whose else ""
            return f"{stage.kind} draws, one per record and block{how}"
        case stages.Write():
            forms = {"set": "one column of lists", "bits": "a 0/1 column for each value"}
            shown = f", {forms[stage.sets]} for each block that is randomised" if stage.sets else ""
            keys = f"{', '.join(stage.keys)} untouched, then " if stage.keys else ""
            order = "key" if stage.keys else "released value"
            count = ", each distinct row once with its count" if stage.counted else ""
            parts = _parts(stage)
            return f"{keys}{', '.join(stage.columns)} as {stage.format}{shown}{count}{parts}, sorted by {order}"
        case stages.Publish():
            then = f", then to {stage.also}, its old table {_OLD[stage.old]}" if stage.old else ""
            return f"to {stage.to} (evidence in {stage.private}){then}"
        case _:
            return (type(stage).__doc__ or "").split(".")[0]


def _told(stage: stages.Stage, plan: Plan) -> Iterator[str]:
    """What the counts give away by the protocol, unless these are noisy or beliefs are rounded; what a filter tells."""
    if isinstance(stage, stages.Scan) and stage.counted is not None:
        yield f"the database counts distinct rows by {stage.counted}; nothing else leaves it"
    if isinstance(stage, stages.Everybody):
        yield from warning(stage)
    notion = plan.protect.notion
    # The usual LDP has nothing to do with the secret, nor have chances that are made for it.
    tells = notion != "ldp-x" and plan.protect.beliefs is None and MECHANISMS[plan.protect.mechanism].of_counts
    if isinstance(stage, stages.Count) and stage.noise is None and tells:
        yield (
            "chances made from these counts tell beliefs, of small groups too; `run` says how many it narrows down, "
            "where that is computed"
        )
        if ways := ", ".join(_ways_out(plan)):
            yield f"ways out, where the table allows them: {ways}"


def _ways_out(plan: Plan) -> Iterator[str]:
    """What keeps chances from telling counts, of that what the policy's other choices allow."""
    asked = plan.protect
    made, searched = MECHANISMS[asked.mechanism], isinstance(asked, stages.Solve) and asked.search
    shown = set(plan.count.secret) <= {column for block in plan.count.blocks for column in block}
    if not NOTIONS[asked.notion].no_beliefs and made.of_beliefs and not shown and not searched:
        yield "estimate.beliefs"
    if asked.notion != "rldp" and made.misfit("rldp", secret_public=shown) is None:
        yield "rldp"
    if plan.cells is None:
        yield "estimate.kind: private, with values declared"


def _notes(stage: stages.Stage, found: Sizes | None) -> Iterator[str]:
    """Sizes, where they are known and matter."""
    if found is None:
        return
    if isinstance(stage, stages.Count):
        yield f"sensitive {'+'.join(stage.secret)}: {found.secret:,} values"
        for block, size, inner in zip(stage.blocks, found.blocks, found.inside, strict=True):
            what = f"cells of {', '.join(inner)}" if inner else "values"
            yield f"public {'+'.join(block)}: {size:,} {what}"
        yield f"together {found.product:,} combinations with the secret; up to {MAX_CELLS:,} can be measured"
        yield from (one.words() for one in found.merged if one.values)
    if isinstance(stage, stages.Publish):
        yield from found.noted
    if isinstance(stage, stages.Solve) and found.arrangement:
        yield found.arrangement
    if isinstance(stage, stages.Solve):
        if stage.candidates:
            yield f"candidates: {', '.join(stage.candidates)}"
        if stage.search and len(found.solvers) > 1:
            yield "the split of epsilon is searched for, beginning with these shares"
        shares = stage.shares if len(stage.shares) == len(found.solvers) else (1.0,)
        for number, (share, solver) in enumerate(zip(shares, found.solvers, strict=True), start=1):
            yield f"block {number}, share {share:g} of epsilon: {solver}"


def _parts(stage: stages.Write) -> str:
    """How the table lies in several files, in words."""
    if stage.partition is None:
        return ""
    column, rows = stage.partition
    if column is not None:
        return f", a folder for each {column}, {rows:,} rows a file at most"
    return f", in files of about {rows:,} rows by a hash of the key" if stage.keys else f", in files of {rows:,} rows"


def _target(stage: stages.Write) -> str:
    """Where the table goes, in SQL."""
    if stage.partition is None:
        return f"'<release>/data.{stage.format}'"
    if stage.partition[0] is None:
        return f"'<release>/data/part-*.{stage.format}'"
    return f"'<release>/data' (FORMAT {stage.format}, PARTITION_BY ({identifier(stage.partition[0])}))"


def _statements(stage: stages.Stage) -> Sequence[str]:
    """The SQL of a stage, in the order of execution."""
    match stage:
        case stages.Scan():
            return stage.statements
        case stages.Once():
            return [*stage.statements, stage.statement]
        case stages.Inspect() | stages.Know():
            return [stage.statement]
        case stages.Name():
            return [stage.statement, stage.listing]
        case stages.Identify():
            return [stage.spread, stage.dense] if stage.integer else [stage.listing]
        case stages.Everybody():
            return [*stage.statements, *stage.counts]
        case stages.MakeCells():
            macros = (f"CREATE TEMP MACRO {one.macro}({', '.join(one.keys)}) AS <the cell that these lie in>"
                      for one in stage.blocks)  # fmt: skip
            return [*stage.statements, *(one.statement for one in stage.blocks), *macros]
        case stages.Count():
            return [*stage.statements, *(one.statement for one in stage.rare), stage.labelled, stage.cells]
        case stages.People():
            return [one for one in (stage.content, stage.entities, stage.sampled) if one is not None]
        case stages.Draw():
            return [one for one in (*stage.codes, stage.statement) if one is not None]
        case stages.Write():
            # The columns of sets have the names of values, which a plan does not know; rows with keys are not repeated.
            query = stage.statement
            return [] if query is None else [f"COPY ({query}) TO {_target(stage)}"]
        case _:
            return []
