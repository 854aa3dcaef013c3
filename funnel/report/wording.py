"""What the report promises, in words: one entry per notion, one sentence per mechanism."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from funnel.errors import InternalError
from funnel.model import Label
from funnel.model.joint import FloatArray
from funnel.report.figures import epsilon_text, factor_text


@dataclass(frozen=True)
class Secret:
    """How sentences speak of the sensitive columns."""

    name: str
    any_value: str

    @classmethod
    def of(cls, columns: Sequence[str]) -> Secret:
        """`marital status` and `any marital status`, or the columns listed and `any combination of …`."""
        name = listed([human(column) for column in columns])
        return cls(name, f"any {name}" if len(columns) == 1 else f"any combination of {name}")


@dataclass(frozen=True)
class Wording:
    """The words of one notion, and how it looks at one belief.

    `measure` is the manifest's leakage that its ε bounds; `subject` is what that leakage is about.
    `change(before, after)` is the signed change of a belief in nats that ε bounds, written as `quantity`;
    `within(before, ε)` are the beliefs that the promise still allows. `condition` says for whom the promise holds,
    so briefly that it can be quoted with it; `observer` says the same in full.
    """

    title: str
    measure: str
    definition: str
    quantity: str
    promise: Callable[[Secret, float], str]
    subject: Callable[[Secret], str]
    observer: Callable[[Secret], str]
    condition: Callable[[Secret], str]
    change: Callable[[FloatArray, FloatArray], FloatArray]
    within: Callable[[float, float], tuple[float, float]]


def _lip_promise(secret: Secret, epsilon: float) -> str:
    return (
        "Whoever sees a record’s released values can raise or lower the probability they give to "
        f"{secret.any_value} by at most a factor of {factor_text(epsilon)}."
    )


def _ldp_promise(secret: Secret, epsilon: float) -> str:
    return (
        "Whoever sees a record’s released values can shift the odds between any two values of "
        f"{secret.name} by at most a factor of {factor_text(epsilon)}, whatever they believed before."
    )


def _perfect_promise(secret: Secret, _: float) -> str:
    return (
        f"Whoever sees a record’s released values learns nothing about {secret.name}: "
        f"the probability of {secret.any_value} stays what it was."
    )


def _knows_the_table(secret: Secret) -> str:
    return (
        "The promise is made against someone who knows how all values are distributed in the table, sees "
        "the released values and knows how they were drawn, but knows nothing else about the person. "
        f"{_starting(secret)}"
    )


def _starting(secret: Secret) -> str:
    return f"Before looking, such a person gives each value of {secret.name} its frequency in the table."


def _any_belief(secret: Secret) -> str:
    return (
        "The promise is made against someone who may have believed anything about the person’s "
        f"{secret.name} beforehand, sees the released values and knows how they were drawn, but, apart from "
        "that, knows no more about the person’s true public values than how they are distributed among "
        f"people with the same {secret.name}."
    )


def _nothing_else(_: Secret) -> str:
    return (
        "This holds for someone who knows how the values are distributed in the table, and nothing else about "
        "the person."
    )


def _whatever_believed(secret: Secret) -> str:
    return (
        f"This holds whatever was believed about the person’s {secret.name} before, for someone who knows no more "
        f"about the true public values than how they are distributed in the table for each {secret.name}."
    )


def _factor(before: FloatArray, after: FloatArray) -> FloatArray:
    """ln P(s|y)/P(s)."""
    return np.asarray(np.log(after / before))


def _odds(before: FloatArray, after: FloatArray) -> FloatArray:
    """ln of the odds of s against not s, after over before."""
    return np.asarray(np.log(after / (1 - after)) - np.log(before / (1 - before)))


def _within_factor(before: float, epsilon: float) -> tuple[float, float]:
    """P(s|y) and, summed over all other values, 1 - P(s|y) both stay within a factor e^ε."""
    down, up, rest = math.exp(-epsilon), math.exp(epsilon), 1 - before
    return max(before * down, 1 - up * rest), min(before * up, 1 - down * rest)


def _within_odds(before: float, epsilon: float) -> tuple[float, float]:
    """The odds of s against not s, a mixture of the other values, stay within a factor e^ε."""
    down, up, rest = math.exp(-epsilon), math.exp(epsilon), 1 - before
    return before * down / (before * down + rest), before * up / (before * up + rest)


def _belief(secret: Secret) -> str:
    return f"any belief about {secret.name}"


def _any_odds(secret: Secret) -> str:
    return f"the odds between any two values of {secret.name}"


# Notions that bound an average (mutual information), side knowledge (SRLIP) or a set of distributions (RLDP)
# join this table with promises of their own; nothing else in the report names a notion.
NOTIONS: dict[str, Wording] = {
    "lip": Wording(
        "Local information privacy",
        "lip",
        "exp(−ε) ≤ P(s | y) / P(s) ≤ exp(ε) for every secret value s and every released y [DS, Definition 2]",
        "ln P(s | y) / P(s)",
        _lip_promise, _belief, _knows_the_table, _nothing_else, _factor, _within_factor,
    ),
    "ldp": Wording(
        "Local differential privacy of the secret",
        "ldp",
        "P(y | s) ≤ exp(ε) · P(y | s′) for all secret values s, s′ and every released y [DS, Definition 1]",
        "the logarithm of how the odds of s change",
        _ldp_promise, _any_odds, _any_belief, _whatever_believed, _odds, _within_odds,
    ),
    "perfect": Wording(
        "Perfect privacy",
        "lip",
        "P(s | y) = P(s) for every secret value s and every released y",
        "ln P(s | y) / P(s)",
        _perfect_promise, _belief, _any_belief, _whatever_believed, _factor, _within_factor,
    ),
}  # fmt: skip

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
}  # fmt: skip


def notion(name: str) -> Wording:
    """The words of a notion. Raises InternalError where it has none: no report without a promise."""
    if name not in NOTIONS:
        raise InternalError(f"the report has no wording for the notion {name!r}")
    return NOTIONS[name]


_BLOCK_BY_BLOCK = (
    "The chances were computed block by block, each time to keep as much information about the true values as the "
    "promise allows given what the blocks before release; all blocks together may keep less than would be possible."
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


def draws(kind: str) -> str:
    """What is said of permanent or fresh draws."""
    return _DRAWS["permanent" if kind == "permanent" else "fresh"]


def mechanism(name: str, blocks: int = 1) -> str:
    """How a mechanism draws, in a sentence; several blocks are each at their best, but not all together."""
    if name == "optimal" and blocks > 1:
        return _BLOCK_BY_BLOCK
    return MECHANISMS.get(name, f"The chances of each value were set by the mechanism “{printable(name)}”.")


def bound_sentence(name: str, epsilon: float) -> str:
    """The bound in symbols, for the headline."""
    return "exactly 0" if name == "perfect" else f"ε = {epsilon_text(epsilon)}"


def human(column: str) -> str:
    """A column's name as a reader says it: `marital_status` becomes `marital status`."""
    return printable(" ".join(column.replace("_", " ").split()) or column)


def listed(words: Sequence[str], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def label(value: Label) -> str:
    """A value as one text: missing and empty parts in words, nothing invisible."""
    return ", ".join("(missing)" if part is None else printable(part) for part in value)


def printable(text: str) -> str:
    """The text with control, format and unpaired characters spelt out, so that none can disturb a page."""
    spelt = "".join(f"\\u{ord(c):04x}" if unicodedata.category(c) in _INVISIBLE else c for c in text)
    return spelt if spelt.strip() else "(blank)" if spelt else "(empty)"


_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
