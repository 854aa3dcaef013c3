"""The faithful protocol: as few records change as the bound allows, and every total stays as it is on average.

What answering y instead of x costs is how far the one value of a block is from the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast, get_args

import numpy as np
from pydantic import Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from funnel.data import Alphabet, Joint, Protocol
from funnel.data.joint import FloatArray
from funnel.errors import PlanError
from funnel.mechanisms.base import Mechanism, Solved, Totals, searching
from funnel.mechanisms.optimal import TimeLimit
from funnel.notions import Demand, Notion, as_robust

if TYPE_CHECKING:
    from funnel.optimise.bent import Bent
    from funnel.optimise.convex.cone import SeparationOracle
    from funnel.optimise.interior import Interior
    from funnel.optimise.rounding.totals import Nearly
    from funnel.optimise.transport import Transport, TransportPlan

Rule = Literal["match", "order"]
"""match: 0 or 1. order: places between two numbers, as a share of the most there can be; 1 to what is no number. Of
values in groups in groups, or in a tree: what part of the way from the root the two do not have in common."""


RULES = get_args(Rule)
DISTANCE_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"enum": [*RULES]},
        {"type": "object", "minProperties": 1, "additionalProperties": {"enum": [*RULES]}},
    ]
}
MANY = 30_000
"""Coefficients of the sides of one row beyond which corners are too many to be gone along."""
_OPEN = 1e-5
"""Distance between a plan and its bound beyond which the program was not solved."""


def as_distance(given: Any) -> Rule | dict[str, Rule]:
    """A rule, or one for each of some columns. Raises PydanticCustomError at the place."""
    told = given if isinstance(given, dict) and given else {(): given}
    for name, rule in told.items():
        if rule not in RULES:
            said = f"it must be one of {', '.join(RULES)}, or a mapping from columns to these"
            raise PydanticCustomError("wrong-value", "{said}", {"said": said, "at": (name,) if name else ()})
    return cast("Rule | dict[str, Rule]", given)


def distances(block: Alphabet, rule: Rule | Mapping[str, Rule]) -> FloatArray:
    """d(y, x) (a, a) in [0, 1]: `match` of whole values, or else the mean over the block's columns, each by its rule.

    Raises PlanError where a column has no order.
    """
    if rule == "match":
        return np.asarray(1.0 - np.eye(len(block)))
    parts = [_of_column(block, place, one) for place, one in enumerate(_rules(block, rule))]
    return np.asarray(np.mean(parts, axis=0))


def _rules(block: Alphabet, rule: Rule | Mapping[str, Rule]) -> list[Rule]:
    """The rule of each of a block's columns."""
    return [rule if isinstance(rule, str) else rule.get(column, "match") for column in block.columns]


def _of_column(block: Alphabet, place: int, rule: Rule) -> FloatArray:
    """d(y, x) of one column alone."""
    values, name = [value[place] for value in block.values], block.columns[place]
    if rule == "match":
        return np.array([[float(y != x) for x in values] for y in values])
    if name in block.paths:
        return _in_tree(values, block.paths[name])
    ranks, most = _ranked(block, place)
    return np.array([[float(between(y, x, most)) for x in zip(values, ranks, strict=True)]
                     for y in zip(values, ranks, strict=True)])  # fmt: skip


def _ranked(block: Alphabet, place: int) -> tuple[Sequence[int | None], int]:
    """The ranks of a column's values, and the highest. Raises PlanError where they have no order."""
    ranks, name = block.ranks(place), block.columns[place]
    most = len({rank for rank in ranks if rank is not None}) - 1
    if most < 1:
        raise PlanError(
            "column-type",
            f"{name} holds fewer than two numbers and no groups of several levels, so its values have no order",
            advice="Use `bins` or `round` on a numeric column, `groups` of several levels, or `distance: match`.",
        )
    return ranks, most


def between(one: tuple[str | None, int | None], two: tuple[str | None, int | None], most: int) -> Fraction:
    """Of two parts with their ranks."""
    if one[1] is None or two[1] is None:
        return Fraction(one[0] != two[0])
    return Fraction(abs(one[1] - two[1]), most)


def _in_tree(values: Sequence[str | None], paths: Mapping[str, tuple[str, ...]]) -> FloatArray:
    """1 - depth of the innermost group of both / depth of the deeper value; what is missing is alone."""
    ways = [() if value is None else (*paths.get(value, ()), value) for value in values]
    return np.array([[float(0 if y == x else apart(y, x)) for x in ways] for y in ways])


def apart(one: Sequence[str], two: Sequence[str]) -> Fraction:
    """Of two ways from the root to different values, these included."""
    both = enumerate(zip(one, two, strict=False))
    shared = next((depth for depth, (a, b) in both if a != b), min(len(one), len(two)))
    return 1 - Fraction(shared, max(len(one), len(two)))


Distance = Annotated[
    Rule | dict[str, Rule],
    PlainValidator(as_distance),
    WithJsonSchema(DISTANCE_SCHEMA),
    Field(
        description="match: as few records change as possible; order: numbers, bins, groups in groups and cells change "
        "to near ones; or a mapping with one of these for each column"
    ),
]


class Invariant(Mechanism):
    """Invariant PRAM (Gouweleeuw, Kooiman, Willenborg and de Wolf) at its best for a named secret.

    Σ_x p_x Q(y|x) = p_y for every y, so that raw totals are right in expectation, at the least expected distance
    between what is true and what is answered. With `totals: free` the distance alone counts.
    """

    any_form: ClassVar[bool] = True
    of_beliefs: ClassVar[bool] = True

    kind: Literal["invariant"]
    totals: Literal["kept", "free"] = Field(
        "kept", description="kept: raw totals are right on average; free: whatever is nearest to the truth"
    )
    distance: Distance = "match"
    time_limit: TimeLimit = 300.0

    @property
    def of_totals(self) -> Literal["kept", "free"]:
        """As the policy asks."""
        return self.totals

    @classmethod
    def fits(cls, notion: type[Notion]) -> bool:
        """Notions that have a cone of rows."""
        return notion.linear

    def check_values(self, block: Alphabet) -> None:
        """What is to be near to something has an order."""
        for place, rule in enumerate(_rules(block, self.distance)):
            if rule == "order" and block.columns[place] not in block.paths:
                _ranked(block, place)

    def solve(self, joint: Joint, demand: Demand) -> Solved:
        """Minimise the expected distance over the cone, then round to integers. Raises SolverError, PlanError."""
        from funnel.optimise.budget import Budget
        from funnel.optimise.rounding.totals import Near, round_equal, round_kept

        block, counts, kept = joint.blocks[0], joint.table().sum(axis=0), self.totals == "kept"
        cost = distances(block, self.distance)
        budget = Budget(searching(self.time_limit))
        oracle, equalities, fine = _sides(joint, demand)
        program = _program(cost, counts / joint.rows, oracle, kept=kept, equalities=equalities, fine=fine)
        best = program.solve(budget)
        near = Near(cost, counts, best.cost, lambda weights: demand.keeps(weights[:, None, :]), kept)
        if equalities:
            found = round_equal(near, best, equalities)
        else:
            found = round_kept(near, best, lambda room: program.solve(budget, room))
        return self._solved(block, best, found, _stricter(demand))

    def _solved(self, block: Alphabet, best: TransportPlan, found: Nearly, stricter: bool) -> Solved:
        """The protocol, each output by its own name; those that are never answered have none."""
        used = np.flatnonzero(found.weights.any(axis=1))
        outputs = Alphabet(block.columns, tuple(block.values[y] for y in used))
        protocol = Protocol(block, outputs, found.bits, found.weights[used][:, None, :])
        how = f"linear program, {len(best.prices.owner):,} inequalities that bind; expected distance {best.cost:.6g}"
        if best.cost > best.bound + _OPEN:
            how += f", of at least {best.bound:.6g} as far as was found in time"
        deviation = found.deviation if self.totals == "kept" else None
        return Solved(protocol, None, how, totals=Totals(deviation, best.bound, None if stricter else best.prices))

    def forecast(self, notion: Notion, secret: int, public: int) -> str:
        """One program."""
        return f"a linear program in {public**2:,} chances"


def _sides(joint: Joint, demand: Demand) -> tuple[SeparationOracle, tuple[tuple[int, ...], ...], float]:
    """What tells the inequalities of rows, the exact equations that they lie on, and how finely they are to be met."""
    from funnel.mechanisms.exactly_robust import adversary, polytope
    from funnel.optimise.transport import FINE, Facets

    robust = as_robust(demand)
    if (oracle := demand.oracle()) is not None:
        return oracle, (), FINE
    if robust is None:
        cone = demand.cone()
        return Facets(cone), cone.equalities, 0.0
    known = adversary(robust)
    return (Facets(polytope(joint, robust)), (), 0.0) if known is None else (known, (), FINE)


def _stricter(demand: Demand) -> bool:
    """Whether the conditions are those of boxes around a set of distributions, which ask for more than the promise."""
    from funnel.mechanisms.exactly_robust import adversary

    robust = as_robust(demand)
    return robust is not None and robust.radius > 0 and adversary(robust) is None


def _program(
    cost: FloatArray,
    prior: FloatArray,
    oracle: SeparationOracle,
    *,
    kept: bool,
    equalities: tuple[tuple[int, ...], ...],
    fine: float,
) -> Interior | Transport | Bent:
    """The program: by corners where few sides bear on rows, else through the inside; in pieces where sides are bent."""
    from funnel.optimise.bent import Bent, bends
    from funnel.optimise.interior import Interior
    from funnel.optimise.masses import Worst
    from funnel.optimise.transport import Facets, Transport

    if kept and isinstance(oracle, Worst) and (limits := bends(oracle)) is not None:
        return Bent(cost, prior, limits, oracle)
    listed = oracle.listed if isinstance(oracle, Facets) and not equalities else None
    if listed is not None and listed.size > MANY:
        return Interior(cost, prior, oracle, listed, kept=kept)
    return Transport(cost, prior, oracle, kept=kept, equal=_floats(equalities, len(prior)), fine=fine)


def _floats(equalities: tuple[tuple[int, ...], ...], size: int) -> FloatArray:
    """The equations (e, a), scaled to largest coefficient 1; those that say nothing left out."""
    from funnel.optimise.cone import Cone

    return Cone(np.zeros((0, size)), equalities).constraints(np.ones(size))
