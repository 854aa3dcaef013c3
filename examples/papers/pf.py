"""[PF] Figure 1: the least and the most that merged values tell about the secret, on the census."""

from __future__ import annotations

import numpy as np
import tables
from findings import Claim, Findings, Panel, Run, Series

from funnel.optimise.partitions.merging import Path, bottleneck, funnel

AGES = "least((age - 15) // 10, 6)"
"""Seven bands: to 24, 25 to 34, … , 75 and more."""
EDUCATION = (
    "CASE WHEN education_num < 9 THEN 'no diploma' WHEN education_num = 9 THEN 'high school' "
    "WHEN education_num < 13 THEN 'some college' ELSE 'degree' END"
)
SECRET = f"concat_ws(', ', {AGES}, income)"
PUBLIC = f"concat_ws(', ', {AGES}, sex, {EDUCATION})"


def figure_1(run: Run) -> Findings:
    """Algorithm 1, Algorithm 2 as printed with its whole range of floors, and the trade-off per nat."""
    table = tables.census(SECRET, PUBLIC).table()
    run.say(f"{table.shape[1]} values")
    low, high = funnel([table], power=0.0), bottleneck([table])
    curves = {"bottleneck (most)": high, "funnel (least)": low, "funnel, priced by I(X;Y)": funnel([table])}
    series = [Series(name, [[float(x), float(y)] for x, y in zip(*_track(path), strict=True)], "rule")
              for name, path in curves.items()]  # fmt: skip
    floors = np.linspace(0.05, 0.95, 10) * low.secret[0].mean()
    ends = [bottleneck([table], printed=True, secret_floor=float(floor)) for floor in floors]
    series.append(
        Series(
            "Algorithm 2 as printed",
            [[float(one.public[-1]), float(one.secret[-1].mean())] for one in ends],
            "dots",
        )
    )
    panel = Panel("S = (age, income), X = (age, sex, education)", "I(X;Y) in nats", "I(S;Y) in nats", series)
    return Findings([panel], _claims(low, high), [
        "The paper does not give its seven age bands and four education groups: here ages to 24, 25 to 34, and so "
        "on to 75 and more; no diploma, high school, some college or an associate degree, bachelor's degree and "
        "more. Only the shape can be compared.",
        "The lower curve is Algorithm 1 run to the end; the third curve merges the pair of the largest drop of "
        "I(S;Y) per drop of I(X;Y) to the power 0.75, funnel's default. Algorithm 2 stops at a floor of I(S;Y): its "
        "dots are the ends for ten floors; the upper curve loses least I(S;Y) per nat of I(X;Y) at each step.",
    ])  # fmt: skip


def _track(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """I(X;Y) and I(S;Y) along a path."""
    return path.public, path.secret.mean(axis=1)


def _claims(low: Path, high: Path) -> list[Claim]:
    """The shape of the figure."""
    (x_low, y_low), (x_high, y_high) = _track(low), _track(high)
    middle = np.linspace(0.1, 0.9, 9) * x_low[0]
    under = [np.interp(middle, x[::-1], y[::-1]) for x, y in ((x_low, y_low), (x_high, y_high))]
    ratio = float((under[0] / under[1]).mean())
    return [
        Claim("The least I(S;Y) falls with I(X;Y)", "shown", f"from {y_low[0]:.3f} to {abs(y_low[-1]):.3f} nats",
              bool((np.diff(y_low) <= 1e-12).all()) and abs(float(y_low[-1])) < 1e-9),
        Claim("The funnel's curve lies under the bottleneck's", "shown",
              f"at {int((under[0] < under[1]).sum())} of 9 values of I(X;Y), {ratio:.2f} of it on average",
              bool((under[0] < under[1]).all())),
    ]  # fmt: skip
