"""What was found about groups of records: figures with their errors, as text, CSV, JSON or Arrow."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection
from dataclasses import dataclass
from itertools import chain
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

from funnel.data.alphabet import Label
from funnel.text import label, number, shown, table

if TYPE_CHECKING:
    import pyarrow as pa

    from funnel.format.manifest import Coarsened, Manifest

Flag = Literal["unknown", "nothing fits", "noisy", "modelled"]
"""Why a figure cannot be used: the protocol does not tell these values apart; no value that could be released is
meant; the error is too large. Or why its interval may miss the truth: it stands on what cells.json says of cells."""
MEANING: dict[Flag, str] = {
    "unknown": "unknown: no figure from the released rows would be right on average, whatever the truth is",
    "nothing fits": "nothing fits: no value that this release can hold is meant",
    "noisy": "noisy: a count below zero; an error that is over half of the figure, or of the range of a mean or share, "
    "or over a quarter of their records, or would be with one record more; a count or sum that one record more can "
    "carry out of its interval, by over a quarter of it; or an error so large that no interval ends. Who leaves such "
    "figures out keeps small ones where chance made them large, and of those fewer intervals hold the truth",
    "modelled": "modelled: as cells.json has it, which is pooled, fitted and rounded; the error is of drawing cells "
    "alone, and the truth may often lie outside the interval",
}
NOISY = 0.5
"""Part of a count or sum, or of the range of a mean or share, above which its standard error makes it useless."""
THIN = 0.25
"""The same of the number of records that a mean or share is about; and part of a count or sum, above which one record
more must not carry it out of its interval."""


@dataclass(frozen=True)
class Figure:
    """One figure about one group: unbiased (a mean or share: the ratio of two that are), so a count may be negative.

    `standard_error` is that of the random draws, or larger where the rows do not show it; `low` and `high` are the
    interval. All None where nothing is known.
    """

    group: Label
    figure: str
    estimate: float | None
    standard_error: float | None
    low: float | None
    high: float | None
    flag: Flag | None


@dataclass(frozen=True)
class Tabulated:
    """The answer to one question: a figure after the other, group by group. `by` are the columns of `group`."""

    release: str
    rows: int
    confidence: float
    by: tuple[str, ...]
    where: str | None
    figures: tuple[Figure, ...]
    notes: tuple[str, ...]

    def text(self) -> str:
        """A table for a terminal, and what its flags mean."""
        head = [*self.by, "figure", "estimate", "std. error", "interval", ""]
        numbers = range(len(self.by) + 1, len(head) - 1)
        lines = table([[one and shown(one) for one in head], *map(_row, self.figures)], numbers)
        about = f", of {self.rows:,} rows those where {shown(self.where)}" if self.where else f", {self.rows:,} rows"
        first = f"{self.release}{about}; intervals at {self.confidence:.6g} confidence"
        flags = dict.fromkeys(one.flag for one in self.figures if one.flag)
        return "\n".join([first, *lines, *(MEANING[one] for one in flags), *(f"Note: {one}" for one in self.notes)])

    def as_dict(self) -> dict[str, Any]:
        """JSON form."""
        figures = [vars(one) | {"group": dict(zip(self.by, one.group, strict=True))} for one in self.figures]
        return vars(self) | {"figures": figures}

    __str__ = text

    def csv(self) -> str:
        """A line for each figure under a header; what is missing or unknown is empty."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*self.by, *_COLUMNS])
        for one in self.figures:
            writer.writerow([*one.group, *(getattr(one, name) for name in _COLUMNS)])
        return text.getvalue()

    def table(self) -> pa.Table:
        """The same as an Arrow table."""
        import pyarrow as pa

        texts = {name: pa.array([one.group[i] for one in self.figures], pa.string()) for i, name in enumerate(self.by)}
        kinds = {name: pa.string() if name in ("figure", "flag") else pa.float64() for name in _COLUMNS}
        told = {name: pa.array([getattr(one, name) for one in self.figures], kind) for name, kind in kinds.items()}
        return pa.table([*texts.values(), *told.values()], names=[*texts, *told])


def coarsened(manifest: Manifest, columns: Collection[str]) -> list[str]:
    """What was made of values of these columns before anything was counted, which no released value shows."""
    told = (one for one in manifest.coarsened if one.name in columns)
    ways = {one.name: _ways(one, inside=one.name not in chain.from_iterable(manifest.public)) for one in told}
    return [
        f"values of {name} were made coarser before anything was counted: {way}; figures are about these"
        for name, way in ways.items()
    ]


def _ways(one: Coarsened, *, inside: bool) -> str:
    """How, in words; `inside` cells or not."""
    ways = list[str]()
    if one.clip is not None:
        ways.append("those beyond {} and {} put at the nearer end".format(*map(number, one.clip)))
    if one.step is not None:
        to = f"the {one.step} they lie in" if isinstance(one.step, str) else f"multiples of {number(one.step)}"
        ways.append(f"rounded to {to}")
    if one.rare:
        near = "told as one that cells.json lists" if inside else "replaced by the nearest that is released"
        ways.append(f"each that is not left, being rare or one of many, {near}")
    if one.other:
        ways.append("rare ones “other”, a value of its own")
    return ", ".join(ways)


_COLUMNS = ("figure", "estimate", "standard_error", "low", "high", "flag")


def reach(error: float, swing: float, confidence: float) -> float:
    """How far an interval goes to each side of a total, of which another answer to one record changes `swing` at most.

    Where few records are expected to be answered otherwise than they are, the total moves by whole records and follows
    no normal law: the error is taken with one record more. So it is where it seems far smaller than that, as it does
    where the answers that count for most were drawn for nobody by chance.
    """
    return _normal(confidence) * math.hypot(error, swing)


def total(
    value: float,
    variance: float,
    least: float,
    most: float,
    confidence: float,
    one: float = 0.0,
    swing: float = 0.0,
) -> tuple[float, float, float, float, Flag | None]:
    """Estimate, standard error and interval of a count or a sum that lies in a range, and whether it is of use.

    `one` is the most that a single record counts for, nothing where its answer is certain. Where one record more would
    carry a figure far out of its interval, the error may be small by chance alone, since no such record was seen.
    `swing` as in `reach`.
    """
    error = math.sqrt(max(variance, 0.0))
    far = reach(error, swing, confidence)
    possible = min(max(value, least), most)  # a count far below zero is no better than one of nothing
    beyond = one > max(far, THIN * abs(possible))
    flag: Flag | None = "noisy" if beyond or _unsure(error, one) > NOISY * abs(possible) else None
    return value, error, value - far, value + far, flag


def _unsure(error: float, one: float) -> float:
    """A standard error with one record more of the answer that counts for most.

    Errors are worked out from the answers that were seen: where a few of them count for much, they may be far too small
    because one of these happens to be missing, and intervals may seldom hold the truth.
    """
    return math.hypot(error, one)


def ratio(
    above: float,
    below: float,
    variances: tuple[float, float, float],
    confidence: float,
    one: float = 0.0,
    span: float = math.inf,
    swing: float = 0.0,
) -> tuple[float | None, float | None, float | None, float | None, Flag | None]:
    """The same of a ratio of two totals, by the variances of both and, last, their covariance.

    `one` is of the total below, `span` how far apart two records can be, `swing` as in `reach`, of the total above less
    the ratio times that below. The standard error is that of the linearised ratio. The interval holds every value that
    the totals do not speak against (E. C. Fieller, Journal of the Royal Statistical Society B 16, 1954); where that is
    no interval, none.
    """
    over, under, both = variances
    if below <= 0:
        return None, None, None, None, "noisy"
    found = above / below
    spread = math.sqrt(max(over - 2 * found * both + found**2 * under, 0.0))
    error, z2 = spread / below, _normal(confidence) ** 2
    more = reach(spread, swing, confidence) ** 2 - z2 * spread**2
    lead, middle, last = below**2 - z2 * under, above * below - z2 * both, above**2 - z2 * over - more
    if lead <= 0:
        return found, error, None, None, "noisy"
    far = math.sqrt(max(middle**2 - lead * last, 0.0))
    thin = _unsure(math.sqrt(max(under, 0.0)), one) > THIN * below
    flag: Flag | None = "noisy" if thin or error > NOISY * span else None
    return found, error, (middle - far) / lead, (middle + far) / lead, flag


def _normal(confidence: float) -> float:
    return -NormalDist().inv_cdf((1 - confidence) / 2)


def _row(one: Figure) -> list[str]:
    group = [shown(label((part,))) for part in one.group]
    if one.estimate is None or one.standard_error is None:
        return [*group, shown(one.figure), "-", "-", "-", one.flag or ""]
    numbers = [one.estimate, one.standard_error, *(end for end in (one.low, one.high) if end is not None)]
    places = _places(one)
    estimate, error, *ends = (f"{round(number, places) + 0.0:,.{places}f}" for number in numbers)
    return [*group, shown(one.figure), estimate, error, " to ".join(ends) if len(ends) == 2 else "-", one.flag or ""]


def _places(one: Figure) -> int:
    """Digits after the point: one for totals, for means and shares two of the error."""
    if one.figure == "count" or one.figure.startswith("sum "):
        return 1
    error = one.standard_error or 0.0
    return min(max(1 - math.floor(math.log10(error)), 0), 6) if error > 1e-6 else 4
