"""What the noise of a private estimate protects, and what it does not."""

from __future__ import annotations

import math

from funnel.report.case import Case
from funnel.report.figures import counted


def private_estimate(case: Case) -> str:
    """The promise of the noise: how much the protocol and the figures can depend on one record."""
    estimate = case.manifest["estimate"]
    one, times, spent = estimate["epsilon"], estimate["estimates"], estimate["spent"]
    again = (
        f" The counts have been estimated {times:,} times, with new noise each time: whoever sees the outcome of all "
        f"of them has to reckon with a factor {_factor(spent)}, ε_est = {spent:g} together."
        if times > 1
        else " Every further estimate of the same counts spends as much again."
    )
    return (
        "The chances of drawing each value, and all figures in this report and in release.json but the number of "
        "records, were computed from counts with discrete Laplace noise on every combination of the values that the "
        f"policy lists, ε_est = {one:g}: if one record had other values, any outcome would have been at most "
        f"{_factor(one)} times as likely, or as unlikely. So the chances for a true value that only one person has do "
        f"not tell that person’s {case.terms.secret}.{again}{_locked(case)} The noise hides neither how many records "
        f"there are ({counted(case.manifest['rows'], 'record')}) nor the values that the policy lists, which were not "
        "found in the table."
    )


def _locked(case: Case) -> str:
    """Under a lock the noisy counts are those of one night, and tonight's have no part in what is published."""
    if not (locked := case.manifest.get("locked")):
        return ""
    return (
        f" They were estimated when the protocol was fixed, in the lock made at {locked['made']}: this release spent "
        "nothing more, and tonight’s records have a part only in the drawn values and in their number. How far the "
        "records have moved since then is therefore neither published, nor does any release wait for it: either would "
        "tell of tonight’s counts without noise."
    )


def is_private(case: Case) -> bool:
    """Whether the counts behind a release are noisy."""
    return bool(case.manifest["estimate"].get("kind") == "private")


def as_estimated(case: Case) -> str:
    """What a promise about the distribution means by it, where that was estimated with noise; else nothing."""
    if not is_private(case) or case.manifest["notion"] in ("ldp-x", "rldp"):
        return ""
    return (
        " The distribution meant is that of the noisy counts from which the chances were computed; under that of the "
        "records themselves, released values can tell more."
    )


def measured_where(case: Case) -> str:
    """At which counts the leakage was measured, where they are noisy."""
    return " This was measured at the noisy counts." if is_private(case) else ""


def private_promise(case: Case) -> str:
    """What the noise does to the promise on the released values."""
    if case.manifest["notion"] == "ldp-x":
        return "The promise holds whatever the distribution; the figures measured hold for the noisy counts."
    if case.manifest["notion"] == "rldp":
        when = " of the night that the protocol was fixed" if case.manifest.get("locked") else ""
        return (
            "The uncertainty set was widened so that, with the confidence stated, it holds the true distribution"
            f"{when} in spite of the noise; the beliefs and shares in this report are those under the noisy counts."
        )
    return (
        f"The promise is about the distribution as estimated{_then(case)}, noise included. Under the true one the "
        f"released values can tell more about {case.terms.secret} than it says, most of all where few records share a "
        "value; by how much, the publisher’s own audit measures, and that figure is not published, for it has no noise."
    )


def _then(case: Case) -> str:
    """On which night, where that is not tonight."""
    locked = case.manifest.get("locked")
    return f" when the protocol was fixed, at {locked['made']}" if locked else ""


def _factor(epsilon: float) -> str:
    """e^ε, rounded up to two decimals."""
    return f"{math.ceil(math.exp(epsilon) * 100 - 1e-9) / 100:.2f}"
