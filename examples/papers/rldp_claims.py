"""What [RLDP] section 8 says about its figures and its table, held against what comes out here."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from findings import Claim, Panel, mean, share, told
from robust import BOXES, PRINTED, THEOREM

Size = tuple[int, int]
HALF_DIGIT = 0.0006
"""By which a printed value may differ from itself, and a little for rounding to integers."""

PRINTED_TABLE = {
    (2, 5): {
        "SRR": (0.231, 0.231, 0.231),
        PRINTED: (0.727, 0.723, 0.719),
        THEOREM: (0.512, 0.501, 0.492),
    },
    (5, 2): {
        "SRR": (0.126, 0.126, 0.126),
        PRINTED: (0.374, 0.372, 0.370),
        THEOREM: (0.169, 0.165, 0.162),
    },
    (15, 16): {"SRR": (0.009, 0.009, 0.009), THEOREM: (0.055, 0.053, 0.051)},
    (42, 6): {"SRR": (0.005, 0.005, 0.005), THEOREM: (0.052, 0.052, 0.052)},
}


def _curves(panel: Panel) -> dict[str, np.ndarray]:
    """Heights of a panel's curves, by name."""
    return {one.name: np.array(one.points)[:, 1] for one in panel.series}


def order_claims(panels: Sequence[Panel], last: float) -> list[Claim]:
    """What sections 8.1 and 8.2 say about who is above whom."""
    curves = [_curves(panel) for panel in panels]
    small = [one for one in curves if PRINTED in one]

    def above(over: str, under: str, among: Sequence[dict[str, np.ndarray]], where: str = "") -> Claim:
        held = [
            bool(x >= y * (1 - 1e-3)) for one in among for x, y in zip(one[over], one[under], strict=True)
        ]
        return Claim(f"{over} is above {under}{where}", "shown", f"at {share(held)} points", all(held))

    low = [bool(one[THEOREM][0] >= one["SRR"][0]) for one in curves]
    high = [bool(one[THEOREM][-1] <= one["SRR"][-1]) for one in small]
    claims = [
        above(PRINTED, "IR", small),
        above(PRINTED, "SRR", small),
        Claim("IR is above SRR at the lowest ε", "shown", f"{THEOREM}: in {share(low)} panels", all(low)),
        Claim("SRR overtakes IR for high ε where X is small", "by a little",
              f"{THEOREM}: in {share(high)} panels, at ε = {last:g}", any(high)),
        above(THEOREM, "SRR", [one for one in curves if PRINTED not in one], " in the larger panels"),
        above("SRR", "GRR", curves),
        above("NR", PRINTED, small),
        above("NR", BOXES, small),
    ]  # fmt: skip
    lead = [float(one["NR"][-1] - one[PRINTED][-1]) for one in small]
    if lead:
        claims.append(Claim("NR is above PolyOpt by a small margin only for higher ε", "no number",
                            f"by {min(lead):.3f} to {max(lead):.3f} at ε = {last:g}", max(lead) < 0.1))  # fmt: skip
    return [claim for claim in claims if "0 of 0" not in claim.ours]


def realised_claims(
    found: dict[tuple[tuple[int, int], str], dict[float, list[float]]], epsilons: Sequence[float]
) -> list[Claim]:
    """What section 8.3 says about the figure."""
    over = [
        value > e
        for (_, name), values in found.items()
        if name == "NR"
        for e in epsilons
        for value in values[e]
    ]
    under = [
        value <= e
        for (_, name), values in found.items()
        if name == PRINTED
        for e in epsilons
        for value in values[e]
    ]
    low = {
        size: _upper_quartile(values[epsilons[0]]) for (size, name), values in found.items() if name == "NR"
    }
    told_low = ", ".join(
        f"{value:.3f} ± {error:.3f} at {size[0]} x {size[1]}" for size, (value, error) in low.items()
    )
    near = [abs(value - 0.3897) <= 3 * error for value, error in low.values()]
    return [
        Claim("ε* of NR is consistently above ε", "shown", f"in {share(over)} cases", float(np.mean(over)) > 0.95),
        Claim("ε* of PolyOpt is consistently below ε", "with probability 95 % at least", f"in {share(under)} cases",
              float(np.mean(under)) >= 0.95),
        Claim(f"The 75 % quantile of ε* of NR at ε = {epsilons[0]:g} is several times ε", "0.3897, more than 5 ε",
              told_low, all(near) if len(next(iter(found.values()))[epsilons[0]]) > 1 else None),
    ]  # fmt: skip


def _upper_quartile(values: Sequence[float]) -> tuple[float, float]:
    """The 75 % quantile and its standard error, by drawing from the values again."""
    again = np.random.default_rng(1).choice(values, (500, len(values)))
    return float(np.quantile(values, 0.75)), float(np.quantile(again, 0.75, axis=1).std())


def row_claim(
    size: tuple[int, int], name: str, printed: Sequence[float], found: Sequence[Sequence[float]]
) -> Claim:
    """Whether a printed row lies within three standard errors, those of its own hundred tables included, of ours."""
    near = []
    for value, drawn in zip(printed, found, strict=False):
        middle, error = mean(drawn)
        near.append(abs(value - middle) <= 3 * error * (1 + len(drawn) / 100) ** 0.5 + HALF_DIGIT)
    ours = ", ".join(told(one) for one in found)
    holds = all(near) if len(found[0]) > 1 else None
    return Claim(
        f"{name} at {size[0]} x {size[1]}", ", ".join(f"{value:.3f}" for value in printed), ours, holds
    )
