"""What an analyst computes from a release: unbiased counts of X with intervals, from the published files alone.

Given the true counts N, the released counts T of one block have mean Q N and covariance
diag(Q N) - Q diag(N) Qᵀ, because records are drawn independently. Nothing here needs the private evidence.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from funnel.analyst.figures import MEANING, Flag, coarsened, total
from funnel.analyst.opened import Data
from funnel.data import AnyProtocol
from funnel.data.alphabet import Label, readable
from funnel.data.joint import IntArray
from funnel.errors import ReleaseError
from funnel.format.manifest import Manifest
from funnel.measure.recovery import HOPELESS, Recovered, recovered
from funnel.release.reading import Reading
from funnel.text import counted, shown, table

DELICATE = 1e6
"""Condition number above which a warning is given."""


@dataclass(frozen=True)
class CountEstimate:
    """The number of records that hold one of `values`: unbiased, so it may be negative; `released`: how often seen.

    `flag` as in `figures`: where it is noisy, error and interval may be far too small.
    """

    values: tuple[Label, ...]
    released: int
    count: float
    standard_error: float
    low: float
    high: float
    flag: Flag | None = None


@dataclass(frozen=True)
class BlockEstimates:
    """One block: `released` has every output's count; `estimates` are of single values, or of groups of them.

    Where sets are released, `released` has the sets that hold each value, and `outputs` is the number of sets.
    """

    columns: tuple[str, ...]
    inputs: tuple[Label, ...]
    outputs: int
    rows: int
    released: dict[Label, int]
    rank: int
    condition: float
    estimates: tuple[CountEstimate, ...]
    notes: tuple[str, ...]

    def text(self) -> str:
        """A table: the estimates, then what was released under names that stand in no estimate."""
        named = {value for one in self.estimates for value in one.values}
        rest = [(value, count) for value, count in self.released.items() if value not in named]
        rows: list[tuple[str, ...]] = [("value", "released", "estimated", "std. error", "interval", "")]
        rows += [_row(one) for one in self.estimates]
        rows += [(shown(readable(value)), f"{count:,}", "-", "-", "-", "") for value, count in rest]
        rows.append(("total", f"{self.rows:,}", f"{float(self.rows):,.1f}", "0.0", "known", ""))
        notes = (f"  Note: {note}" for note in self.notes)
        sizes = f"{counted(len(self.inputs), 'value')}, {counted(self.outputs, 'output')}"
        head = f"{shown(', '.join(self.columns))}: {sizes}, rank of Q {self.rank}, condition number "
        head += f"{self.condition:,.3g}"
        return "\n".join([head, *(f"  {line}" for line in table(rows, range(1, 5))), *notes])

    def as_dict(self) -> dict[str, Any]:
        """JSON form; `complete` says whether every value has an estimate of its own."""
        complete = len(self.estimates) == len(self.inputs)
        head = {"columns": self.columns, "values": len(self.inputs), "outputs": self.outputs}
        return head | {
            "rank": self.rank, "condition": self.condition, "complete": complete, "notes": self.notes,
            "released": [{"value": value, "count": count} for value, count in self.released.items()],
            "estimates": [vars(one) for one in self.estimates],
        }  # fmt: skip


@dataclass(frozen=True)
class Estimates:
    """All blocks of one release."""

    release: str
    rows: int
    confidence: float
    blocks: tuple[BlockEstimates, ...]

    def text(self) -> str:
        """A table per block, for a terminal."""
        head = (
            f"{self.release}: {self.rows:,} rows, intervals at {self.confidence:.6g} confidence\n"
            "Counts of true values among these rows; errors are those of the random draws, or larger where the rows do "
            "not show these. An unbiased estimate of a small count may be negative."
        )
        flags = dict.fromkeys(one.flag for block in self.blocks for one in block.estimates if one.flag)
        return "\n\n".join([head, *(block.text() for block in self.blocks), *(MEANING[one] for one in flags)])

    def as_dict(self) -> dict[str, Any]:
        """JSON form."""
        return vars(self) | {"blocks": [block.as_dict() for block in self.blocks]}


def estimate(release: Path, confidence: float = 0.95) -> Estimates:
    """Unbiased counts of X for every block of a release's folder, or of the folder that holds `latest`.

    Raises ReleaseError: `release-unreadable` when the published files are missing, altered or inconsistent,
    `wrong-value` unless 0 < confidence < 1.
    """
    if not 0 < confidence < 1:
        raise ReleaseError("wrong-value", f"a confidence of {confidence} is not between 0 and 1",
                           advice="Give a share such as 0.95.")  # fmt: skip
    data = Data(release)
    _, rows = data.weighted()
    solved = (
        solve(one.protocol, rows[:, 1 + axis], rows[:, -1], confidence, stay=one.face is not None)
        for axis, one in enumerate(data.blocks)
    )
    found = tuple(_noted(*pair, data.manifest) for pair in zip(solved, data.blocks, strict=True))
    return Estimates(data.manifest.release, data.manifest.rows, confidence, found)


def _noted(one: BlockEstimates, read: Reading, manifest: Manifest) -> BlockEstimates:
    """With a word on what a cell is, where some column of the block is a wide block's, and on totals that stand."""
    notes, noisy = [*one.notes, *coarsened(manifest, read.columns)], any(each.standard_error for each in one.estimates)
    if read.cells:
        notes.append(
            "values are cells: cells.json and the report have their conditions; columns are read from the table itself"
        )
    elif read.face is not None and (noisy or len(one.estimates) < len(one.inputs)):
        more = ", and more precise than these estimates" if noisy else ""
        by = shown(shlex.quote(",".join(one.columns)))
        notes.append(
            f"released totals are right on average as they stand{more}: `--by {by}` gives them with their errors"
        )
    return replace(one, notes=tuple(notes))


def solve(
    block: AnyProtocol, codes: IntArray, counts: IntArray, confidence: float, *, stay: bool = False
) -> BlockEstimates:
    """Estimates of one block from the codes (m,) of its outputs, and how often each occurs: of sets, value by value.

    `stay`: its released totals are right on average as they stand, whether or not it tells values apart.
    """
    inputs, rows = block.inputs, int(counts.sum())
    times = block.times_told(codes, counts)
    found = recovered(block, times, rows)
    seen = dict(zip(block.told.values, times.tolist(), strict=True))
    names = [tuple(inputs.values[x] for x in group) for group in found.members()]
    figures = (each.tolist() for each in (found.count, found.error, found.one, found.vague))
    estimates = tuple(
        _estimate(values, sum(seen.get(value, 0) for value in values), rows, confidence, *told)
        for values, *told in zip(names, *figures, strict=True)
    )
    notes = tuple(_notes(block, found, stay=stay))
    head = (inputs.columns, inputs.values, block.size, rows, seen)
    return BlockEstimates(*head, found.rank, found.condition, estimates, notes)


def _estimate(
    values: tuple[Label, ...], released: int, rows: int, confidence: float,
    count: float, error: float, one: float, vague: bool,
) -> CountEstimate:  # fmt: skip
    """With its interval and flag, as for any other question."""
    found, error, low, high, flag = total(count, error**2, 0.0, rows, confidence, one, one)
    return CountEstimate(values, released, found, error, low, high, "noisy" if vague else flag)


def _notes(block: AnyProtocol, known: Recovered, *, stay: bool) -> list[str]:
    """What keeps values from being told apart, what is estimated instead, and what to be wary of."""
    rank, condition, found = known.rank, known.condition, len(known.count)
    notes, a = [], len(block.inputs)
    if block.coins is not None:
        notes.append("released: the sets that hold the value; a set may hold several values, or none")
    if found < a and block.secret is not None:
        notes.append("the protocol reads the secret, and a value's chances without it are not published")
    elif found < a and rank < a:
        notes.append(f"Q has rank {rank} for {a} values: different mixtures of them are released with the same chances")
    if condition > HOPELESS:
        notes.append("Q is so close to a lower rank that no estimate would mean anything")
    elif condition > DELICATE:
        notes.append("Q is close to a lower rank (condition number above 1e6): see the standard errors")
    if found < a and not stay:
        notes.append("only totals of groups have unbiased estimates" if found else
                     "only the number of rows is certain; the released counts are not the true ones")  # fmt: skip
    return notes


def _row(one: CountEstimate) -> tuple[str, ...]:
    numbers = (one.count, one.standard_error, one.low, one.high)
    count, error, low, high = (f"{round(number, 1) + 0.0:,.1f}" for number in numbers)
    values = " | ".join(shown(readable(value)) for value in one.values)
    return values, f"{one.released:,}", count, error, f"{low} to {high}", one.flag or ""
