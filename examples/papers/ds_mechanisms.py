"""[DS] Figures 5 to 8: conditional reporting, randomised response, unary encoding and the optimum, at the same "
"LIP."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import tables
from findings import Claim, Findings, Panel, Run, Series, clouds, curve, mean, share
from solving import CR, GRR, OUE, cr_strength, grr_strength, kept, lip, optimum, solved

from funnel.data import Joint, UnaryProtocol
from funnel.measure.information import public_entropy

CENSUS_EPSILONS = (0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0)
EPSILONS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
COUNTED = "funnel works on counts: each distribution became 10⁹ records, every cell rounded to the nearest."
EXACT = "Calibrations are funnel's own: on integers, against the exactly measured LIP of the channel."
KEPT = "I(X;Y) / H(X)"
SHAPES = ((5, 2), (2, 5), (5, 5), (3, 5), (5, 7), (7, 5))
"""(a, c) of the panels of Figure 6."""
PRINTED_CORRELATIONS = {1.0: 0.9815, 1.5: 0.9889, 2.0: 0.9731}
CENSUS_PANELS = (
    ("marital_status", "education"),
    ("occupation", "education"),
    ("marital_status", "relationship"),
    ("occupation", "relationship"),
    ("marital_status", "sex"),
    ("occupation", "sex"),
)


def figure_5(run: Run, epsilons: Sequence[float] = CENSUS_EPSILONS, panels: int = 6) -> Findings:
    """Opt-LIP, CR, GRR and OUE on the census."""
    charts = []
    for letter, (secret, public) in zip("abcdef"[:panels], CENSUS_PANELS, strict=False):
        run.say(f"S = {secret}, X = {public}")
        joint = tables.census(secret, public)
        charts.append(Panel(_title(letter, secret, public), "ε (LIP)", KEPT, _census_series(joint, epsilons)))
    return Findings(charts, _claims_5(charts), [
        EXACT,
        "Opt-LIP is real-valued, with at most 60 s for each point. All panels have it and OUE, also where the paper "
        "could not compute them.",
        "CR reads the secret too, which a protocol on X does not: it may keep more than Opt-LIP, as where X is sex "
        "and ε small. Where ε is small, CR and GRR can also fall below OUE.",
        "Where X itself keeps the bound, OUE is shown at its limit H(X)/2; funnel would release X as it is.",
        "The census table is the training part of Adult, 32,561 records, with `?` as a value of its own; the paper "
        "does not say what it did with these records.",
    ])  # fmt: skip


def _title(letter: str, secret: str, public: str) -> str:
    return f"({letter}) S = {secret.replace('_', ' ')}, X = {public}"


def _census_series(joint: Joint, epsilons: Sequence[float]) -> list[Series]:
    """The four curves of one panel."""
    entropy = public_entropy(joint)
    measures = {
        "Opt-LIP": lambda e: optimum(joint, lip(e)).value / entropy,
        "CR": lambda e: kept(joint, solved(joint, CR, lip(e))),
        "GRR": lambda e: kept(joint, solved(joint, GRR, lip(e))),
        "OUE": lambda e: _unary(joint, e),
    }
    return [Series(name, [[e, measure(e), 0.0] for e in epsilons]) for name, measure in measures.items()]


def _unary(joint: Joint, epsilon: float) -> float:
    """I(X;Y)/H(X) of OUE; half where α is infinite."""
    protocol = solved(joint, OUE, lip(epsilon))
    return kept(joint, protocol) if isinstance(protocol, UnaryProtocol) else 0.5


def _claims_5(panels: Sequence[Panel]) -> list[Claim]:
    """What section VIII.C says about the figure."""
    curves = [{one.name: np.array(one.points)[:, 1] for one in panel.series} for panel in panels]
    grr, cr = ([bool(x) for c in curves for x in c[name] <= c["Opt-LIP"] + 1e-5] for name in ("GRR", "CR"))
    above = [bool(x) for c in curves for name in ("CR", "GRR") for x in c[name] >= c["OUE"] - 1e-3]
    close = [min(c["CR"][-1], c["GRR"][-1]) / c["Opt-LIP"][-1] for c in curves]
    half = max(float(c["OUE"].max()) for c in curves)
    return [
        Claim("GRR is below Opt-LIP", "shown", f"at {share(grr)} points", all(grr)),
        Claim("CR is below Opt-LIP", "shown", f"at {share(cr)} points", all(cr)),
        Claim("GRR and CR are above OUE", "shown", f"at {share(above)} points", all(above)),
        Claim("GRR and CR grow close to Opt-LIP as ε grows", "no number",
              f"{min(close):.2f} to {max(close):.2f} of it at the largest ε", min(close) > 0.8),
        Claim("OUE has ½ H(X) as its limit", "0.5", f"at most {half:.3f}", half <= 0.5 + 1e-6),
    ]  # fmt: skip


def figure_6(run: Run, shapes: Sequence[tuple[int, int]] = SHAPES) -> Findings:
    """GRR against CR on tables from the Jeffreys prior: mean and standard deviation."""
    charts, gains = [], {}
    for letter, (a, c) in zip("abcdef", shapes, strict=False):
        found = {name: {e: list[float]() for e in EPSILONS} for name in ("CR", "GRR")}
        for generator in run.generators(f"a = {a}, c = {c}:"):
            joint = tables.joint(tables.jeffreys(generator, (c, a)))
            for e in EPSILONS:
                found["CR"][e].append(kept(joint, solved(joint, CR, lip(e))))
                found["GRR"][e].append(kept(joint, solved(joint, GRR, lip(e))))
        series = [curve(name, values, deviation=True) for name, values in found.items()]
        charts.append(Panel(f"({letter}) a = {a}, c = {c}", "ε (LIP)", KEPT, series))
        gains[a, c] = mean([x - y for x, y in zip(found["CR"][1.0], found["GRR"][1.0], strict=True)])
    notes = [COUNTED, EXACT, "Bars are the standard deviation of the draws."]
    return Findings(charts, [_gain(gains), _spread(charts)], notes)


def _gain(gains: dict[tuple[int, int], list[float]]) -> Claim:
    """What section VIII.D says about a and c, at ε = 1."""
    order = sorted(gains, key=lambda shape: shape[0] / shape[1])
    told = "; ".join(f"{a}x{c}: {gains[a, c][0]:+.3f} ± {gains[a, c][1]:.3f}" for a, c in order)
    return Claim(
        "The larger a is compared to c, the more CR gains over GRR",
        "no number",
        f"CR - GRR at ε = 1, a x c: {told}",
        gains[order[-1]][0] > gains[order[0]][0],
    )


def _spread(panels: Sequence[Panel]) -> Claim:
    """What it says about tables and mechanisms."""
    wider = [
        grr[2] > abs(cr[1] - grr[1])
        for panel in panels
        for cr, grr in zip(panel.series[0].points, panel.series[1].points, strict=True)
    ]
    return Claim(
        "The difference between tables has more impact than that between mechanisms",
        "no number",
        f"the standard deviation of GRR is above the mean difference at {share(wider)} points",
        sum(wider) > 0.8 * len(wider),
    )


def figure_7(run: Run, size: int = 5) -> Findings:
    """The difference of α against that of information, GRR and CR, a = c = 5."""
    points: dict[float, list[list[float]]] = {e: [] for e in PRINTED_CORRELATIONS}
    left_out = 0
    for generator in run.generators():
        joint = tables.joint(tables.jeffreys(generator, (size, size)))
        for e, cloud in points.items():
            cr, grr = solved(joint, CR, lip(e)), solved(joint, GRR, lip(e))
            difference = cr_strength(cr, size) - grr_strength(grr)
            if math.isfinite(difference):
                cloud.append([difference, kept(joint, cr) - kept(joint, grr)])
            else:
                left_out += 1
    charts = [
        clouds(f"({letter}) ε = {e:g}", "α of CR - α of GRR", "difference of I(X;Y) / H(X)", {e: cloud})
        for letter, (e, cloud) in zip("abc", points.items(), strict=True)
    ]
    return Findings(charts, [_correlation(e, cloud) for e, cloud in points.items()], [
        COUNTED, EXACT, *([f"{left_out} points with an infinite α are left out."] if left_out else []),
        "The paper does not say whether information is normalised by H(X) here; it is, as in its Figure 6.",
    ])  # fmt: skip


def _correlation(epsilon: float, cloud: Sequence[Sequence[float]]) -> Claim:
    """Pearson's ρ beside the printed one, with the interval that Fisher's transformation gives it."""
    printed, here = PRINTED_CORRELATIONS[epsilon], 0.0
    low, high = -1.0, 1.0
    if len(cloud) > 3:
        here = float(np.corrcoef(np.array(cloud).T)[0, 1])
        low, high = (
            math.tanh(math.atanh(here) + side * 1.96 / math.sqrt(len(cloud) - 3)) for side in (-1, 1)
        )
    said = f"The difference in α explains the difference in information, ε = {epsilon:g}"
    ours = f"ρ = {here:.4f} (95 %: {low:.3f} to {high:.3f}; {len(cloud)} tables)"
    return Claim(said, f"ρ = {printed:.4f}", ours, here > 0.9)


def figure_8(run: Run, epsilons: Sequence[float] = CENSUS_EPSILONS) -> Findings:
    """α of GRR and CR against ε on the census."""
    charts = []
    for letter, public in zip("ab", ("education", "relationship"), strict=True):
        joint = tables.census("occupation", public)
        strengths = {
            "α of CR": [cr_strength(solved(joint, CR, lip(e)), len(joint.secret)) for e in epsilons],
            "α of GRR": [grr_strength(solved(joint, GRR, lip(e))) for e in epsilons],
        }
        series = [Series(name, [[e, alpha, 0.0] for e, alpha in zip(epsilons, found, strict=True)])
                  for name, found in strengths.items()]  # fmt: skip
        charts.append(Panel(_title(letter, "occupation", public), "ε (LIP)", "α", series))
    return Findings(
        charts, _claims_8(charts), [EXACT, "Panel (a) belongs to Figure 5(b), panel (b) to Figure 5(d)."]
    )


def _claims_8(panels: Sequence[Panel]) -> list[Claim]:
    """Which α is larger."""
    larger = [
        [cr[1] > grr[1] for cr, grr in zip(panel.series[0].points, panel.series[1].points, strict=True)]
        for panel in panels
    ]
    grr, cr = (sum(not one for one in larger[0]), sum(larger[1]))
    return [
        Claim("X = education: α of GRR is above α of CR", "shown", f"at {grr} of {len(larger[0])} values of ε",
              grr == len(larger[0])),
        Claim("X = relationship: α of CR is above α of GRR", "shown", f"at {cr} of {len(larger[1])} values of ε",
              cr == len(larger[1])),
    ]  # fmt: skip
