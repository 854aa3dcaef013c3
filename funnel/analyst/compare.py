"""Utility against epsilon: what every mechanism that fits a policy would keep, at several bounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from markupsafe import Markup

from funnel.analyst import SECONDS
from funnel.engine.counting import rare_secrets
from funnel.errors import PlanError, SolverError, SourceError
from funnel.measure import clock
from funnel.measure.faithful import FaithfulFigures, told_at_zero
from funnel.measure.figures import round_up
from funnel.mechanisms import MECHANISMS, Mechanism
from funnel.mechanisms.auto import fitting
from funnel.mechanisms.choice import PASSED_OVER, why_not
from funnel.mechanisms.product import Protection, arrange, protect
from funnel.notions import NOTIONS, Notion
from funnel.notions.base import MAX_EPSILON
from funnel.notions.implications import implied
from funnel.plan.compiled import USUAL, Limits, planned
from funnel.plan.count import Counted, count
from funnel.policy import Policy
from funnel.policy.model import MOST_STEP
from funnel.progress import Report, silent
from funnel.report.curves import Curve, Spot, page, picture
from funnel.report.svg import shortened
from funnel.text import number, portion, table

EPSILONS = (0.25, 0.5, 1.0, 1.5, 2.0)
"""Nats, where none are asked for."""


@dataclass(frozen=True)
class Point:
    """One mechanism at one epsilon (nats): the share of H(X) kept, a certified upper bound of that share where there
    is one, the leakage measured (nats), what is left of rows and totals as they are; or why there is nothing."""

    epsilon: float
    normalised: float | None
    upper_bound: float | None
    leakage: float | None
    reason: str | None
    faithful: FaithfulFigures | None = None


@dataclass(frozen=True)
class Line:
    """One mechanism; `keeps` names another notion than the policy's that a reference keeps, `implies` whether the
    policy's follows from it.

    `beliefs` are the steps that beliefs are rounded outward to: None as the policy says, 0 not at all.
    """

    mechanism: str
    keeps: str | None
    points: tuple[Point, ...]
    beliefs: float | None = None
    implies: bool = False

    @property
    def name(self) -> str:
        """The mechanism, what its protocol is made from, and what a reference is."""
        rounded = f", beliefs in steps of {number(self.beliefs)}" if self.beliefs else ""
        counted = "" if self.beliefs != 0 else " (reference, beliefs as counted)"
        only = "" if self.keeps is None else f" (reference, {self.keeps}{'' if self.implies else ' only'})"
        return f"{self.mechanism}{rounded}{counted}{only}"

    @property
    def reference(self) -> bool:
        """Whether it keeps something else than what the policy asks for."""
        return self.keeps is not None or self.beliefs == 0


@dataclass(frozen=True)
class Comparison:
    """All mechanisms that fit a policy, at the same bounds, on the same table.

    `at_zero` is what is left where every row is drawn for nobody in particular, Q(y|x) = p_y, at ε = 0; `estimate` the
    private estimate that all figures follow from, where there is one. `cells` are the wide blocks, of which all
    figures are about their cells.
    """

    name: str
    notion: str
    sensitive: tuple[str, ...]
    public: tuple[tuple[str, ...], ...]
    rows: int
    split: tuple[float, ...]
    lines: tuple[Line, ...]
    at_zero: FaithfulFigures
    estimate: dict[str, Any] | None = None
    cells: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """JSON form."""
        return asdict(self)

    def text(self) -> str:
        """A table for each mechanism's share, then what could not be solved and why."""
        rows = [["epsilon", *(number(point.epsilon) for point in self.lines[0].points)]]
        for line in self.lines:
            rows.append([line.name, *(_share(point.normalised) for point in line.points)])
            if any(point.upper_bound is not None for point in line.points):
                rows.append(["  at most, proven", *(_share(_up(point.upper_bound)) for point in line.points)])
            rows += self._left([point.faithful for point in line.points])
        rows += [["epsilon 0, drawn for nobody", *([_share(0.0)] * (len(rows[0]) - 1))]]
        rows += self._left([self.at_zero] * (len(rows[0]) - 1))
        return "\n".join([self.title, "", *table(rows, range(1, len(rows[0]))), *self._notes()])

    def _left(self, told: Sequence[FaithfulFigures | None]) -> Iterator[list[str]]:
        """Rows of what is left of rows and totals; none where no point has a figure."""
        if not any(told):
            return
        columns = sum(map(len, self.public))
        cells = ", by their cells" if self.cells else ""
        yield [f"  records unchanged{cells}", *(_share(one.unchanged if one else None) for one in told)]
        if columns > 1:
            yield ["  columns true, on average", *(_share(one.accuracy if one else None) for one in told)]
        yield ["  records a raw total is off", *(_records(one.face if one else None) for one in told)]
        yield ["  and one that is estimated", *(_records(one.estimated if one else None) for one in told)]

    @property
    def title(self) -> str:
        """What the figures are, in a sentence."""
        return (
            f"Information kept of {self._public} under {self.notion} about {', '.join(self.sensitive)}, "
            f"{self.rows:,} rows"
        )

    @property
    def _public(self) -> str:
        """What is kept of: columns, and of wide blocks their cells."""
        return ", ".join(f"{'cells of ' if block[0] in self.cells else ''}{'+'.join(block)}" for block in self.public)

    def _notes(self) -> Iterator[str]:
        """The private estimate, and points without a figure."""
        if self.estimate is not None:
            one = self.estimate
            spent = f"{number(one['spent'])} spent so far"
            yield f"- all figures follow from {one['name']}, of {number(one['epsilon'])} nats; {spent}"
        for line in self.lines:
            for reason in dict.fromkeys(p.reason for p in line.points if p.reason is not None):
                where = ", ".join(number(p.epsilon) for p in line.points if p.reason == reason)
                yield f"- {line.name} at epsilon {where}: {reason}"

    def svg(self) -> str:
        """The picture, as a file that stands by itself."""
        return str(self._drawn())

    def page(self) -> str:
        """The picture over the table, as an HTML page."""
        return page(self._drawn(), self.title, self.text())

    def _drawn(self) -> Markup:
        notes = [f"{self.rows:,} records"]
        if any(point.normalised is None for line in self.lines for point in line.points):
            notes.append("a cross: no figure at this epsilon")
        if any(line.reference for line in self.lines):
            notes.append("dashed: a reference with another promise")
        return picture(self._heading, "; ".join(notes), self._curves())

    @property
    def _heading(self) -> str:
        """The title, short enough for the head of a picture."""
        public = shortened(self._public, 15, 300)
        secret = shortened(", ".join(self.sensitive), 15, 180)
        return f"Information kept of {public}; hidden: {secret} ({self.notion})"

    def _curves(self) -> list[Curve]:
        return [
            Curve(
                line.name,
                tuple(
                    Spot(point.epsilon, point.normalised, point.reason, _up(point.upper_bound))
                    for point in line.points
                ),
                dashed=line.reference,
            )
            for line in self.lines
        ]


def compare(
    policy: Policy,
    epsilons: Sequence[float] = (),
    *,
    beliefs: Sequence[float] = (),
    seconds: float = SECONDS,
    limits: Limits = USUAL,
    progress: Report = silent,
) -> Comparison:
    """Count the table once and solve every fitting mechanism at every epsilon; nothing is released.

    A private estimate that is kept is taken; where none is, one is entered in the ledger, which spends, and drawn.
    For steps of `beliefs` the policy's mechanism is solved from beliefs rounded to each, 0 for beliefs as counted, and
    rldp stands beside it; a policy that rounds them is compared with beliefs as counted where none are asked for.
    A split of epsilon that the policy leaves to a search is the equal one here. `seconds` is for one mechanism at
    one epsilon. Raises PolicyError, SourceError, PlanError.
    """
    asked, steps = _epsilons(policy.privacy, epsilons), _steps(policy, beliefs)
    with planned(policy, limits) as (plan, engine, _):
        counted = count(policy, plan, engine, progress)
    policy = counted.policy
    tasks = [*_tasks(policy), *_rounded(policy, steps)]
    study = _Study(counted, seconds)
    done, lines = 0, []
    for keeps, mechanism, step in tasks:
        points = []
        for epsilon in asked:
            progress("compare", done, len(tasks) * len(asked))
            points.append(study.point(keeps, mechanism, epsilon, step))
            done += 1
        other = None if keeps is policy.privacy else keeps.notion
        told = None if step == policy.estimate.beliefs or other else step or 0.0
        implies = other is not None and implied(keeps, policy.privacy) is not None
        lines.append(Line(mechanism.kind, other, tuple(points), told, implies))
    blocks = tuple(block.labels for block in policy.blocks)
    return Comparison(
        policy.name,
        policy.privacy.notion,
        policy.sensitive,
        blocks,
        counted.rows,
        policy.shares(),
        tuple(lines),
        study.nobody(policy.privacy),
        counted.told(),
        tuple(one.name for one in counted.cells),
    )


def _epsilons(notion: Notion, asked: Sequence[float]) -> list[float]:
    """The bounds to compare at, ascending. Raises PlanError."""
    if notion.exact_zero:
        if any(asked):
            raise PlanError(
                "epsilon",
                f"{notion.notion} means epsilon 0, so there is nothing else to compare at",
                advice="Leave --epsilon out, or compare under another notion.",
            )
        return [0.0]
    wrong = [epsilon for epsilon in asked if not 0 < epsilon <= MAX_EPSILON]
    if wrong:
        raise PlanError(
            "epsilon",
            f"epsilon must be above 0 and at most {MAX_EPSILON:g} nats, not {wrong[0]:g}",
            advice="Try --epsilon 0.5,1,2.",
        )
    return sorted(set(asked or EPSILONS))


def _steps(policy: Policy, asked: Sequence[float]) -> list[float]:
    """Steps of beliefs to compare at. Raises PlanError."""
    if not asked:
        return [] if policy.estimate.beliefs is None else [0.0]
    wrong = [step for step in asked if not 0 <= step <= MOST_STEP]
    why = policy.privacy.no_beliefs
    if wrong:
        said = f"steps of beliefs are from 0 to {MOST_STEP:g}, not {wrong[0]:g}"
        advice = "Try --beliefs 0.01,0.02,0.05."
    elif why or policy.secret_public or policy.estimate.kind == "private":
        other = "a secret that is released too" if policy.secret_public else "a private estimate"
        said = f"{policy.privacy.notion} {why}" if why else f"beliefs are not rounded for {other}"
        advice = "Leave --beliefs out."
    else:
        return sorted(set(asked))
    raise PlanError("wrong-value" if wrong else "unsupported", said, advice=advice)


def _rounded(policy: Policy, steps: Sequence[float]) -> Iterator[_Task]:
    """The policy's mechanism at other steps, and what protects beliefs in another way."""
    own = policy.mechanism if policy.mechanism.of_beliefs else MECHANISMS["optimal"](kind="optimal")
    for step in steps:
        if (step or None) != policy.estimate.beliefs:
            yield policy.privacy, own, step or None
    if any(steps):
        yield NOTIONS["rldp"](notion="rldp", epsilon=policy.privacy.epsilon), own, None


def _tasks(policy: Policy) -> list[_Task]:
    """Every mechanism that fits, with the policy's options where it names it, and references last."""
    notion, public, step = policy.privacy, policy.secret_public, policy.estimate.beliefs
    numbers = all(isinstance(one.round, float) for block in policy.blocks for one in block.attributes)
    parted = policy.release.partition is not None and policy.release.partition.column is not None
    tasks: list[_Task] = [
        (notion, policy.mechanism if policy.mechanism.kind == kind else one(kind=kind), step)
        for kind, one in fitting(notion.notion, secret_public=public).items()
        if (numbers or not one.needs_numbers)
        and (one.plain or not (policy.wide or parted))
        and (len(policy.blocks) == 1 or not one.one_block(type(notion)))
        and (step is None or one.of_beliefs)
    ]
    if not tasks:
        raise PlanError("mechanism-notion", f"no mechanism serves {notion.notion} here")
    return [*tasks, *((*one, None) for one in _references(notion, public))]


def _references(notion: Notion, public: bool) -> Iterator[tuple[Notion, Mechanism]]:
    """Mechanisms that do not keep the notion, with the one that they keep instead: what the promise costs."""
    for kind, one in MECHANISMS.items():
        if notion.notion in one.reference_for:
            (instead,) = one.served()
            if one.misfit(instead, secret_public=public) is None:
                yield NOTIONS[instead](notion=instead, epsilon=notion.epsilon), one(kind=kind)


_Task = tuple[Notion, Mechanism, float | None]
"""A notion, a mechanism, and the steps that beliefs are rounded to."""


class _Study:
    """One table, and what may be spent on each point."""

    def __init__(self, counted: Counted, seconds: float) -> None:
        self._joint, self._seconds = counted.joint, seconds
        self._shares, self._minimum = counted.policy.shares(), counted.policy.estimate.minimum
        self._secret_rare = rare_secrets(self._joint, self._minimum) > 0

    def nobody(self, notion: Notion) -> FaithfulFigures:
        """What is left at ε = 0 of the blocks as the notion has them; as they are where it has none."""
        try:
            return told_at_zero(arrange(self._joint, notion, self._minimum).joint)
        except (SolverError, PlanError, SourceError):
            return told_at_zero(self._joint)

    def point(self, notion: Notion, mechanism: Mechanism, epsilon: float, step: float | None) -> Point:
        """Solve one mechanism at one epsilon, from beliefs rounded to a step."""
        if mechanism.reads_secret and self._secret_rare:
            return Point(epsilon, None, None, None, PASSED_OVER["below-minimum"])
        if (bound := notion.asked_at(epsilon)) is None:
            return Point(epsilon, None, None, None, "the policy's `lower` is below this epsilon")
        try:
            with clock.within(self._seconds):
                minimum = self._minimum
                found = protect(self._joint, bound, mechanism, self._shares, minimum=minimum, beliefs=step)
        except (SolverError, PlanError) as error:
            return Point(epsilon, None, None, None, why_not(error))
        kept, most = found.normalised, _upper_bound(found)
        return Point(epsilon, kept, most, found.leakage.nats, None, found.faithful)


def _upper_bound(found: Protection) -> float | None:
    """The certified bound as a share of H(X)."""
    if found.bound is None:
        return None
    return min(found.bound / found.entropy, 1.0) if found.entropy else 1.0


def _up(bound: float | None) -> float | None:
    """As many digits as are shown."""
    return None if bound is None else round_up(bound)


def _share(value: float | None) -> str:
    return ("–" if value is None else portion(value)).rjust(7)


def _records(value: float | None) -> str:
    """Three digits."""
    return ("–" if value is None else f"{float(f'{value:.3g}'):,.10g}").rjust(7)
