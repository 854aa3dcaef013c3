"""What an experiment finds, and the small JSON file that keeps it: aggregates and figures, never raw tables."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np

Kind = Literal["line", "dots", "band", "box", "rule"]
"""line: [x, y, spread]; dots: [x, y]; band: [x, low, high]; box: [place, least, q1, median, q3, most]; rule: [x, y]."""
PACKAGES = ("funnel-sanitiser", "numpy", "scipy", "highspy", "pycddlib-standalone")
DIGITS = 4


@dataclass(frozen=True)
class Series:
    """One curve or cloud of a panel."""

    name: str
    points: list[list[float]]
    kind: Kind = "line"


@dataclass(frozen=True)
class Panel:
    """One chart: what its axes are, and the series in it. `places` name the positions of boxes."""

    title: str
    x: str
    y: str
    series: list[Series]
    places: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Claim:
    """Something the paper says, how it is printed, what comes out here, and whether that agrees (None: see notes)."""

    said: str
    printed: str
    ours: str
    holds: bool | None = None


@dataclass(frozen=True)
class Table:
    """A table of the paper with our values in it."""

    head: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Findings:
    """All that the page needs of one experiment."""

    panels: list[Panel]
    claims: list[Claim]
    notes: list[str]
    table: Table | None = None


@dataclass(frozen=True)
class Run:
    """How many random tables to draw, from which seed, and whom to tell how far it is."""

    draws: int
    seed: int = 1
    say: Callable[[str], None] = lambda _: None

    def generators(self, what: str = "", draws: int | None = None) -> Iterator[np.random.Generator]:
        """The generator, once per draw: draw i is the same however many follow."""
        number, generator = self.draws if draws is None else draws, np.random.default_rng(self.seed)
        for index in range(number):
            self.say(f"{what} draw {index + 1} of {number}".strip())
            yield generator


def mean(values: Sequence[float]) -> list[float]:
    """[mean, standard error], the error 0 of a single value."""
    array = np.asarray(values, float)
    spread = array.std(ddof=1) / np.sqrt(len(array)) if len(array) > 1 else 0.0
    return [float(array.mean()), float(spread)]


def told(values: Sequence[float], digits: int = 3) -> str:
    """`mean ± standard error` in text."""
    middle, spread = mean(values)
    return f"{middle:.{digits}f} ± {spread:.{digits}f}" if len(values) > 1 else f"{middle:.{digits}f}"


def save(folder: Path, name: str, command: str, run: Run, findings: Findings) -> Path:
    """Write `folder/name.json`; the same findings give the same bytes."""
    versions = {"python": platform.python_version()} | {package: version(package) for package in PACKAGES}
    data = {"name": name, "command": command, "draws": run.draws, "seed": run.seed, "versions": versions}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    text = json.dumps(data | _short(asdict(findings)), ensure_ascii=False, allow_nan=False)
    path.write_text(
        text.replace('"panels"', '\n"panels"').replace('{"name"', '\n{"name"') + "\n", encoding="utf-8"
    )
    return path


def load(path: Path) -> tuple[dict[str, Any], Findings]:
    """What `save` wrote: the circumstances of the run, and its findings."""
    data = json.loads(path.read_text(encoding="utf-8"))
    panels = [
        Panel(**{**panel, "series": [Series(**one) for one in panel["series"]]})
        for panel in data.pop("panels")
    ]
    claims = [Claim(**claim) for claim in data.pop("claims")]
    table = data.pop("table")
    return data, Findings(panels, claims, data.pop("notes"), Table(**table) if table else None)


def _short(value: Any) -> Any:
    """Numbers with four significant digits: a figure shows no more."""
    if isinstance(value, np.generic):
        return _short(value.item())
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: _short(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_short(inner) for inner in value]
    return value


def clouds(title: str, x: str, y: str, points: dict[float, list[list[float]]]) -> Panel:
    """A panel with one cloud per ε."""
    return Panel(
        title, x, y, [Series(f"ε = {epsilon:g}", cloud, "dots") for epsilon, cloud in points.items()]
    )


def curve(name: str, values: dict[float, list[float]], *, deviation: bool = False) -> Series:
    """Means over the draws at each x, with their standard error, or the standard deviation of the draws."""
    points = []
    for x, drawn in values.items():
        middle, spread = mean(drawn)
        points.append([x, middle, spread * np.sqrt(len(drawn)) if deviation else spread])
    return Series(name, [[float(part) for part in point] for point in points])


def share(held: Sequence[bool]) -> str:
    """`39 of 40`."""
    return f"{sum(held)} of {len(held)}"
