"""A writer who puts counts into a report, in words, and makes every hash of the published folder fit again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import funnel
from tests.support.forging import Forged, edit
from tests.trials.attacking.bench import Bench, Table
from tests.trials.attacking.row import Row

NAME = "counts in words"
UNITS = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
TENS = ["-", "-", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def shipped(bench: Bench, table: Table, measure: str) -> Iterator[Row]:
    """In the page and in its JSON: the audit must refuse each, of the published folder alone as well."""
    named = bench.terms["sensitive"][0]
    values = sorted(set(table[named]))
    told = "; ".join(f"{value}: {spelled(list(table[named]).count(value))}" for value in values)
    for name in ("report.html", "report.json"):
        with bench.aside():
            folder = bench.releases[-1]
            forged = Forged(folder, bench.folder / "private" / folder.name)
            _hide(folder / name, told)
            forged.list_files()
            found = [funnel.audit_release(folder, private) for private in (None, bench.folder / "private")]
            failed = [" ".join(sorted(one.claim for one in report.of("failed"))) for report in found]
            yield Row(NAME, name, "audit fails", f"alone {failed[0]}; with evidence {failed[1]}", all(failed))


def _hide(path: Path, told: str) -> None:
    """Where a reader would take it for the report's own words."""
    if path.suffix == ".html":
        path.write_text(path.read_text().replace("<footer>", f"<p>{told}</p><footer>", 1))
        return
    edit(path, lambda content: content["limits"][0].update(text=f"{content['limits'][0]['text']} {told}"))


def spelled(number: int) -> str:
    """A number below a million in words."""
    if number >= 1000:
        return f"{spelled(number // 1000)} thousand {spelled(number % 1000)}"
    if number >= 100:
        return f"{UNITS[number // 100]} hundred {spelled(number % 100)}"
    return UNITS[number] if number < 20 else f"{TENS[number // 10]} {UNITS[number % 10]}"
