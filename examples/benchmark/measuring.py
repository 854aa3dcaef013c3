"""One row of the benchmark of optima: what was asked, what was reached, and in what processor time."""

from __future__ import annotations

import math
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np
from listing import listed_optimum
from polytope import by_cone, by_polytope, random_joint

from funnel.data import Joint
from funnel.data.arrange import tells_secret
from funnel.errors import FunnelError
from funnel.measure import clock
from funnel.measure.information import entropy
from funnel.mechanisms import MECHANISMS
from funnel.mechanisms.auto import fitting
from funnel.mechanisms.product import protect
from funnel.notions import Notion, RobustDemand
from funnel.optimise.groups import maximise_groups
from funnel.optimise.solve import Solution, maximise

T = TypeVar("T")
ENOUGH, MOST = 1.0, 21
"""Processor seconds after which nothing is measured again, and times at most."""
_PATIENCE = 4.0
"""Times the seconds asked for that a search may take by the clock on the wall, as other work may share the machine."""
_EXPLICIT = 20.0
"""Seconds for each explicit mechanism."""
_SEARCHES = {"optimal", "polyopt", "non-robust"}
"""Not explicit, or not private in the same sense."""


@dataclass(frozen=True)
class Row:
    """One problem. Utility and bound in nats, time in processor seconds (the median of `runs`), gaps as shares of H(X).

    `faster`: times that listing all extreme rays, or what `than` names, takes longer; None where it did not finish.
    `better`: times what the best explicit mechanism keeps, which `explicit` names.
    """

    problem: str
    utility: float
    entropy: float
    bound: float | None
    seconds: float
    runs: int
    way: str
    columns: int | None = None
    nodes: int | None = None
    asked_gap: float | None = None
    asked_seconds: float | None = None
    than: str = ""
    faster: float | None = None
    asked_faster: float | None = None
    explicit: str = ""
    better: float | None = None
    asked_better: float | None = None

    @property
    def gap(self) -> float | None:
        """What the optimum may be worth more, as a share of H(X)."""
        return None if self.bound is None else max(self.bound - self.utility, 0.0) / self.entropy

    @property
    def reached(self) -> bool:
        """Whether all that was asked was reached."""
        most = ((self.gap, self.asked_gap), (self.seconds, self.asked_seconds))
        least = ((self.faster, self.asked_faster), (self.better, self.asked_better))
        return all(asked is None or (value is not None and value <= asked) for value, asked in most) and all(
            asked is None or (value is not None and value >= asked) for value, asked in least
        )

    def as_dict(self) -> dict[str, Any]:
        """JSON form."""
        return asdict(self) | {"gap": self.gap, "reached": self.reached}


def processor() -> float:
    """Seconds that this process and its ended children have used."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def timed(work: Callable[[], T], enough: float = ENOUGH) -> tuple[T, float, int]:
    """The last result, the median of processor seconds and the number of runs: several where one takes little."""
    seconds: list[float] = []
    while not seconds or (sum(seconds) < enough and len(seconds) < MOST):
        start = processor()
        result = work()
        seconds.append(processor() - start)
    return result, statistics.median(seconds), len(seconds)


def named(notion: Notion) -> str:
    """`lip 0.5`."""
    return f"{notion.notion} {notion.epsilon:g}"


def solved(
    joint: Joint, notion: Notion, gap: float, seconds: float, *,
    limit: float | None = None, listing: float = 0.0, least: float | None = None,
) -> Row:  # fmt: skip
    """The optimum over the notion's cone, that over boxes for a robust one, in `limit` seconds on the wall.

    `listing` are seconds for the list of all rays, `least` is the gain over explicit mechanisms that is asked for.
    """
    within = _PATIENCE * seconds if limit is None else limit
    arranged = notion.arrange(joint, 1)
    demand = arranged.notion.demand(arranged.joint, {}, 0)
    prior = arranged.joint.table().sum(axis=0) / joint.rows

    def work() -> Solution:
        if isinstance(demand, RobustDemand):
            ratio, ceiling = math.exp(notion.epsilon), demand.ceiling()
            return maximise_groups(demand.sets, ratio, prior, time_limit=within, ceiling=ceiling)
        return maximise(
            demand.cone(),
            prior,
            budget=within,
            gap=gap,
            ceiling=demand.ceiling(),
            rays=demand.rays(prior),
        )

    found, taken, runs = timed(work)
    slower = _listed(demand.cone, prior, found.value, listing) if listing else None
    name, most = explicit(joint, notion)
    return Row(
        named(notion),
        found.value,
        entropy(prior),
        found.bound,
        taken,
        runs,
        found.method,
        found.rays,
        found.nodes,
        gap,
        seconds,
        f"listing, {listing:g} s" if listing else "",
        None if slower is None else slower / taken,
        explicit=name,
        better=found.value / most if most else None,
        asked_better=least,
    )


def _listed(cone: Callable[[], Any], prior: np.ndarray, value: float, limit: float) -> float | None:
    """Processor seconds of the list of all extreme rays and its linear program; None beyond the limit."""

    if cone().lift is not None:
        return None
    listed, seconds, _ = timed(lambda: listed_optimum(cone(), prior, limit))
    if listed is None:
        return None
    if abs(listed - value) > 1e-5 * entropy(prior):
        raise AssertionError(f"listing finds {listed!r}, the search {value!r}")
    return seconds


def kept(joint: Joint, notion: Notion, kind: str, gap: float, seconds: float, about: str) -> Row:
    """The release of a mechanism that searches, rounded to integers and measured."""
    mechanism = MECHANISMS[kind](kind=kind, time_limit=seconds, gap=gap)
    found, taken, runs = timed(lambda: protect(joint, notion, mechanism, (1.0,)))
    name, most = explicit(joint, notion)
    return Row(
        f"{named(notion)}, {about}, {joint.rows:,} records",
        found.kept,
        found.entropy,
        found.bound,
        taken,
        runs,
        found.solved[0].how.split(",")[0],
        asked_gap=gap,
        asked_seconds=seconds,
        explicit=name,
        better=found.kept / most if most else None,
    )


def explicit(joint: Joint, notion: Notion) -> tuple[str, float]:
    """The explicit mechanism that keeps most (nats) at the same epsilon, and how much; "" where none serves."""
    best = ("", 0.0)
    for kind, mechanism in fitting(notion.notion, secret_public=tells_secret(joint)).items():
        if kind in _SEARCHES or mechanism.needs_numbers:
            continue
        try:
            with clock.within(_EXPLICIT):
                found = protect(joint, notion, mechanism(kind=kind), (1.0,))
        except FunnelError:
            continue
        best = max(best, (kind, found.kept), key=lambda one: one[1])
    return best


def against_polytope(a: int, c: int, epsilon: float, asked: float | None) -> Row:
    """LDP on a random table through the notion's cone, against the polytope in a(a-1) dimensions."""
    joint = random_joint(a, c)
    start = time.process_time()
    literal, vertices = by_polytope(joint, epsilon)
    slower = time.process_time() - start
    value, taken, runs = timed(lambda: by_cone(joint, epsilon))
    prior = joint.table().sum(axis=0) / joint.rows
    return Row(
        f"ldp {epsilon:g}, a = {a}, c = {c}",
        value,
        entropy(prior),
        max(value, literal),
        taken,
        runs,
        "planar",
        vertices,
        asked_gap=1e-9,
        than="the polytope",
        faster=slower / taken,
        asked_faster=asked,
    )
