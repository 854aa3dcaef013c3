"""How values are drawn, in words: one sentence per mechanism, and what is said of draws and of blocks."""

from __future__ import annotations

from typing import Any

from funnel.report.case import Case
from funnel.report.text import printable

MECHANISMS: dict[str, str] = {
    "optimal":
        "The chances of drawing each value were computed to keep as much information about the true "
        "values as the promise allows.",
    "randomised-response":
        "The true value is kept with one fixed probability; otherwise another value is drawn, each "
        "equally likely.",
    "unary-encoding":
        "Every possible value is reported as present or absent by a coin of its own, biased towards the "
        "truth.",
    "conditional-reporting":
        "A value of the secret is drawn by randomised response. If it is the true one the true value is "
        "released, else a value typical of the secret value that was drawn.",
    "polyopt":
        "The chances of drawing each value were computed to keep as much information about the true values as "
        "is possible under a condition that is sufficient for the promise and somewhat stricter than it (a simpler set "
        "around the uncertainty set): another protocol may keep more.",
    "secret-randomised-response":
        "The true record is kept with the highest chance; any record with another secret has a lower one, and any "
        "other record with the same secret the lowest. The chances depend on ε and on the number of values alone, "
        "and keep the promise whatever the distribution of the values.",
    "independent-reporting":
        "The secret and the other columns are drawn for apart, each by randomised response, and released side by "
        "side; the second is calibrated on how strongly the other values can depend on the secret anywhere in the "
        "uncertainty set.",
    "non-robust":
        "The chances were computed for the estimated distribution alone, as if it were the true one, to keep as "
        "much information as that allows. This is a reference to compare with: it promises nothing for any other "
        "distribution.",
    "greedy-funnel":
        "True values were merged into groups, step by step, until the promise was kept, each step chosen to give up "
        "much about the secret for little about the true values. Every true value has one released value, with "
        "certainty: records with the same true value always show the same released value, and whoever knows the true "
        "value knows the released one.",
    "gaussian-funnel":
        "The true values are numbers. Noise with a normal distribution is added to each record’s numbers, most where "
        "they tell most about the secret, and what is released is the best estimate of the true numbers that the "
        "noise leaves, with a stated precision. Estimates lie nearer to the mean than the true numbers do. The noise "
        "was set for an average leakage, not for a worst case.",
}  # fmt: skip

_CLOSED = 1e-3
"""Share of H(X) between utility and proven ceiling that rounding to integers may explain."""
_BEST_FOUND = (
    "The chances of drawing each value were computed to keep as much information about the true values as could be "
    "found in the time allowed; another protocol may keep more, but no more than the proven ceiling."
)

_GIVEN_BEFORE = (
    "The chances were computed block by block, each time to keep as much information about the true values as the "
    "promise allows given what the blocks before release; all blocks together may keep less than would be possible."
)

_APART = (
    "The chances were computed for each block by itself, to keep as much information about its true values as its "
    "share of ε allows; all blocks together may keep less than would be possible."
)

_PER_ATTRIBUTE = (
    "The chances were computed for each block by itself, against someone who knows any of the other columns. That "
    "alone would not keep the promise for all blocks together, so the shares of ε were lowered until all blocks "
    "together, as measured, keep it. Nothing is claimed about how close this comes to the best."
)

_JOINT = (
    " All released columns are drawn as one value: of all protocols that draw from the true values alone and keep the "
    "promise, this is the best, or as near to it as the proven ceiling says."
)

_DRAWS = {
    "permanent": "Draws are permanent: a record gets the same released values every time under the same key, as "
    "long as the protocol and its true values are the same. When counts change, the protocol is solved anew, and "
    "released values may change with it.",
    "fresh": "Draws are fresh: every release draws anew.",
}

RULE = (
    "Each value is drawn by comparing a secret whole number with the whole-number weights in protocol.json. That "
    "number comes from a keyed function that, as far as is known, nobody without the key can tell from chance. "
    "So the chances are exactly those in protocol.json; the ones shown here are rounded."
)


def drawing(case: Case) -> dict[str, Any]:
    """How values are drawn and, where the policy leaves it open, what the mechanism was chosen from."""
    used, tried = case.manifest["mechanism"], case.manifest.get("candidates")
    chosen = {"candidates": [{**one, "used": one["mechanism"] == used} for one in tried]} if tried else {}
    return chosen | _told(case)


def _told(case: Case) -> dict[str, str]:
    """The mechanism, the kind of draws and the rule, a few sentences each."""
    if case.all_as_is:
        return {
            "mechanism": case.why_as_is,
            "draws": "Nothing is left to chance.",
            "rule": "protocol.json gives every true value itself, with certainty.",
        }
    if case.certain:
        return {
            "mechanism": mechanism(case),
            "draws": "Nothing is left to chance, and no key plays a part.",
            "rule": "protocol.json names the one value that each true value is released as.",
        }
    return {
        "mechanism": mechanism(case),
        "draws": _DRAWS["permanent" if case.manifest["draws"]["kind"] == "permanent" else "fresh"],
        "rule": RULE,
    }


def mechanism(case: Case) -> str:
    """How the mechanism draws; several blocks are each at their best, but not all together."""
    name, notion = case.manifest["mechanism"], case.manifest["notion"]
    way = case.terms.parameters.get("solve")
    if name == "optimal" and len(case.protocols) > 1:
        return _PER_ATTRIBUTE if way == "per-attribute" else _APART if notion == "ldp-x" else _GIVEN_BEFORE
    utility = case.manifest["utility"]
    proven = utility.get("upper_bound") is not None
    open_gap = proven and utility["upper_bound"] - utility["normalised"] > _CLOSED
    sentence = MECHANISMS.get(
        name, f"The chances of each value were set by the mechanism “{printable(name)}”."
    )
    if name == "optimal" and way == "joint" and case.terms.columns > 1 and proven:
        return sentence + _JOINT
    if name == "optimal" and (notion == "rldp" or open_gap):
        return _BEST_FOUND
    return sentence
