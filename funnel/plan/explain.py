"""A plan for people: the stages in order, their SQL, and the sizes that decide which solver serves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from funnel.data.channel import MAX_CELLS
from funnel.plan import stages
from funnel.plan.population import warning
from funnel.plan.stages import Plan
from funnel.plan.survey import Sizes


def explain(plan: Plan, found: Sizes | None = None) -> str:
    """The plan as text; `found` adds sizes."""
    lines = [f"plan {plan.sha256[:12]} for {plan.name}"]
    for number, stage in enumerate(plan.stages, start=1):
        lines += ["", f"{number}. {stage.title}: {_summary(stage)}"]
        lines += [f"   {note}" for note in (*_told(stage, plan), *_notes(stage, found))]
        lines += [f"     {statement}" for statement in _statements(stage)]
    return "\n".join(lines)


def _summary(stage: stages.Stage) -> str:
    """What a stage does, in one line."""
    match stage:
        case stages.Solve():
            chosen = "best of several protocols" if stage.candidates else f"{stage.mechanism} protocol"
            rounded = "" if stage.beliefs is None else f", from beliefs rounded outward to steps of {stage.beliefs:g}"
            return f"{chosen} under {stage.notion}, epsilon {stage.epsilon:g} nats{rounded}"
        case stages.Cells():
            told = (f"{len(one.columns)} columns of {one.name} in {one.most:,} cells at most, of at least "
                    f"{one.minimum:,} records each" for one in stage.blocks)  # fmt: skip
            return "; ".join(told) + "; the secret is not read"
        case stages.Count():
            blocks = ", ".join("+".join(block) for block in stage.blocks)
            noise = (
                "" if stage.noise is None else f", with noise on every count (epsilon {stage.noise:g} nats)"
            )
            least = f"at least {stage.minimum} records per public value"
            return f"N[{', '.join(stage.secret)}; {blocks}]{noise}, {least}"
        case stages.Know():
            columns = len({column for column, _, _ in stage.levels})
            least = f"where at least {stage.minimum} records share a value"
            return f"the same records by what somebody may know: {columns} columns, {len(stage.levels)} levels, {least}"
        case stages.Everybody():
            others = len(stage.classes) - (stage.own is not None)
            own = "everybody" if stage.own is None else f"those with {stage.own}"
            return f"in this release are {own}; {others:,} predicates of other releases"
        case stages.Pin() if stage.noise is not None:
            return "take the protocols of a lock, at the noisy counts that it pins; nothing is estimated or solved"
        case stages.Draw():
            how = "" if stage.statement else ", for the counts: no record is read again"
            return f"{stage.kind} draws, one per record and block{how}"
        case stages.Write():
            shown = {None: "", "set": ", a list of values each", "bits": ", a 0/1 column for each value"}[
                stage.sets
            ]
            keys = f"{', '.join(stage.keys)} untouched, then " if stage.keys else ""
            order = "key" if stage.keys else "released value"
            return f"{keys}{', '.join(stage.columns)} as {stage.format}{shown}, sorted by {order}"
        case stages.Publish():
            return f"to {stage.to} (evidence in {stage.private})"
        case _:
            return (type(stage).__doc__ or "").split(".")[0]


def _told(stage: stages.Stage, plan: Plan) -> Iterator[str]:
    """What the counts give away by the protocol, unless these are noisy or beliefs are rounded; what a filter tells."""
    if isinstance(stage, stages.Everybody):
        yield from warning(stage)
    if isinstance(stage, stages.Count) and stage.noise is None and plan.protect.beliefs is None:
        yield "chances made from these counts tell beliefs, of small groups too; `run` says how many it narrows down"
        yield "ways out: estimate.beliefs, rldp, estimate.kind: private"


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
    if isinstance(stage, stages.Solve) and found.arrangement:
        yield found.arrangement
    if isinstance(stage, stages.Solve):
        if stage.candidates:
            yield f"candidates: {', '.join(stage.candidates)}"
        if stage.search:
            yield "the split of epsilon is searched for, beginning with these shares"
        shares = stage.shares if len(stage.shares) == len(found.solvers) else (1.0,)
        for number, (share, solver) in enumerate(zip(shares, found.solvers, strict=True), start=1):
            yield f"block {number}, share {share:g} of epsilon: {solver}"


def _statements(stage: stages.Stage) -> Sequence[str]:
    """The SQL of a stage, in the order of execution."""
    match stage:
        case stages.Scan():
            return stage.statements
        case stages.Inspect() | stages.Name() | stages.Know():
            return [stage.statement]
        case stages.Identify():
            return [stage.spread, stage.dense if stage.integer else stage.general]
        case stages.Everybody():
            return [*stage.statements, *stage.counts]
        case stages.Cells():
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
            return [] if query is None else [f"COPY ({query}) TO '<release>/data.{stage.format}'"]
        case _:
            return []
