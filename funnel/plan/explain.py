"""A plan for people: the steps in order, their SQL, and the sizes that decide which solver serves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from funnel.data.alphabet import folded
from funnel.engine import Engine
from funnel.engine.counting import cardinalities, occurring
from funnel.mechanisms import Outlook
from funnel.notions import Shape
from funnel.plan import stages as steps
from funnel.plan.stages import Plan
from funnel.policy import Policy
from funnel.release.export import selection


@dataclass(frozen=True)
class Sizes:
    """Cardinalities: c values of the secret, a_j values of each block, and the solver expected for each.

    `outlooks` say more of a solver that searches: None for any other.
    """

    secret: int
    blocks: tuple[int, ...]
    solvers: tuple[str, ...]
    arrangement: str = ""
    outlooks: tuple[Outlook | None, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """JSON form."""
        told = {
            "sensitive": self.secret,
            "public": list(self.blocks),
            "solver": list(self.solvers),
            "search": [None if outlook is None else outlook.as_dict() for outlook in self.outlooks],
        }
        return told | ({"arrangement": self.arrangement} if self.arrangement else {})


def sizes(policy: Policy, plan: Plan, engine: Engine) -> Sizes:
    """Count distinct values, nothing else, and ask the mechanism how it would solve problems of that size."""
    scan = next(step for step in plan.steps if isinstance(step, steps.Scan))
    count = next(step for step in plan.steps if isinstance(step, steps.Count))
    engine.prepare(scan.statements + count.statements)
    secret, *blocks = cardinalities(engine, len(count.secret), [len(block) for block in count.blocks])
    shape = _shape(policy, count, tuple(blocks), engine)
    ahead = policy.privacy.foresee(shape, policy.estimate.minimum)
    solved = (shape.combinations,) if ahead.together else shape.blocks
    outlooks = tuple(_outlook(policy, secret, shape, solved, index) for index in range(len(solved)))
    solvers = tuple(
        policy.mechanism.forecast(policy.privacy, secret, size) if outlook is None else outlook.words()
        for size, outlook in zip(solved, outlooks, strict=True)
    )
    return Sizes(secret, tuple(blocks), solvers, ahead.why, outlooks)


def _outlook(
    policy: Policy, secret: int, shape: Shape, solved: tuple[int, ...], index: int
) -> Outlook | None:
    """What to expect of the search for a block's protocol; sizes are those of the worst data."""
    extent = policy.privacy.extent(secret, shape, solved, index)
    return None if extent is None else policy.mechanism.outlook(extent)


def _shape(policy: Policy, count: steps.Count, blocks: tuple[int, ...], engine: Engine) -> Shape:
    """Cardinalities by which a notion arranges the blocks."""
    combinations, fewest = occurring(engine, [len(block) for block in count.blocks])
    hidden = {folded(column) for column in policy.sensitive}
    public = {folded(column) for block in policy.blocks for column in block.columns}
    return Shape(blocks, combinations, fewest, hidden <= public)


def explain(plan: Plan, found: Sizes | None = None) -> str:
    """The plan as text; `found` adds sizes."""
    lines = [f"plan {plan.sha256[:12]} for {plan.name}"]
    for number, step in enumerate(plan.steps, start=1):
        lines += ["", f"{number}. {step.title}: {_summary(step)}"]
        lines += [f"   {note}" for note in _notes(step, found)]
        lines += [f"     {statement}" for statement in _statements(step)]
    return "\n".join(lines)


def _summary(step: steps.Step) -> str:
    """What a step does, in one line."""
    match step:
        case steps.Solve():
            chosen = "best of several protocols" if step.candidates else f"{step.mechanism} protocol"
            return f"{chosen} under {step.notion}, epsilon {step.epsilon:g} nats"
        case steps.Count():
            blocks = ", ".join("+".join(block) for block in step.blocks)
            noise = "" if step.noise is None else f", with noise on every count (epsilon {step.noise:g} nats)"
            least = f"at least {step.minimum} records per public value"
            return f"N[{', '.join(step.secret)}; {blocks}]{noise}, {least}"
        case steps.Pin() if step.noise is not None:
            return "take the protocols of a lock, at the noisy counts that it pins; nothing is estimated or solved"
        case steps.Draw():
            return f"{step.kind} draws, one per record and block"
        case steps.Write():
            shown = {None: "", "set": ", a list of values each", "bits": ", a 0/1 column for each value"}[
                step.sets
            ]
            return f"{', '.join(step.columns)} as {step.format}{shown}, sorted by released value"
        case steps.Publish():
            return f"to {step.to} (evidence in {step.private})"
        case _:
            return (type(step).__doc__ or "").split(".")[0]


def _notes(step: steps.Step, found: Sizes | None) -> Iterator[str]:
    """Sizes, where they are known and matter."""
    if found is None:
        return
    if isinstance(step, steps.Count):
        yield f"sensitive {'+'.join(step.secret)}: {found.secret:,} values"
        for block, size in zip(step.blocks, found.blocks, strict=True):
            yield f"public {'+'.join(block)}: {size:,} values"
    if isinstance(step, steps.Solve) and found.arrangement:
        yield found.arrangement
    if isinstance(step, steps.Solve):
        if step.candidates:
            yield f"candidates: {', '.join(step.candidates)}"
        if step.search:
            yield "the split of epsilon is searched for, beginning with these shares"
        shares = step.shares if len(step.shares) == len(found.solvers) else (1.0,)
        for number, (share, solver) in enumerate(zip(shares, found.solvers, strict=True), start=1):
            yield f"block {number}, share {share:g} of epsilon: {solver}"


def _statements(step: steps.Step) -> Sequence[str]:
    """The SQL of a step, in the order of execution."""
    match step:
        case steps.Scan():
            return step.statements
        case steps.Inspect():
            return [step.statement]
        case steps.Identify():
            return [step.spread, step.dense if step.integer else step.general]
        case steps.Count():
            return [*step.statements, step.cells]
        case steps.Draw():
            return [*step.codes, step.statement]
        case steps.Write():
            # The columns of sets have the names of values, which a plan does not know.
            query = selection(step.columns, step.types)
            return [] if step.sets else [f"COPY ({query}) TO '<release>/data.{step.format}'"]
        case _:
            return []
