"""What the words of a notion are made of: the terms of one release, and how the notion looks at one belief."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from funnel.data.joint import FloatArray
from funnel.report.text import human, listed


@dataclass(frozen=True)
class Terms:
    """What one release promises, to whom, with how much: `secret`, `public` and `others` are listed column names.

    `others` are the released columns without those of the secret, which may be released too; "" if there are none.
    `columns` counts the released columns; `parameters` are the manifest's, beside `epsilon` in nats;
    `reads_secret`: draws depend on the secret as well as on the true public values.
    """

    secret: str
    any_value: str
    public: str
    others: str
    columns: int
    epsilon: float
    parameters: Mapping[str, Any] = field(default_factory=dict)
    reads_secret: bool = False

    @classmethod
    def of(
        cls, sensitive: Sequence[str], public: Sequence[str], epsilon: float,
        parameters: Mapping[str, Any] | None = None, *, reads_secret: bool = False,
    ) -> Terms:  # fmt: skip
        """`marital status` and `any marital status`, or the columns listed and `any combination of …`."""
        secret = listed([human(column) for column in sensitive])
        others = [human(column) for column in public if column not in sensitive]
        return cls(
            secret,
            f"any {secret}" if len(sensitive) == 1 else f"any combination of {secret}",
            listed([human(column) for column in public]),
            listed(others) if others else "",
            len(public),
            epsilon,
            parameters or {},
            reads_secret,
        )


Sentence = Callable[[Terms], str]


@dataclass(frozen=True)
class Wording:
    """The words of one notion, and how it looks at one belief.

    `measure` is the manifest's leakage that its ε bounds; `subject` is what that leakage is about; `symbol` the bound
    in symbols. `change(before, after)` is the signed change of a belief in nats, written as `quantity`.
    `within(before, ε)` are the beliefs that the promise still allows, None for a notion that bounds an average and
    so allows any. `condition` says for whom the promise holds, so briefly that it can be quoted with it; `observer`
    says the same in full, and `strength` whether each record is covered. `recognised` and `elsewhere` say what is
    not promised: about a person who is recognised, and against those who know more.
    """

    title: str
    measure: str
    symbol: str
    definition: str
    quantity: str
    promise: Sentence
    strength: Sentence
    subject: Sentence
    observer: Sentence
    condition: Sentence
    recognised: Sentence
    elsewhere: Sentence
    change: Callable[[FloatArray, FloatArray], FloatArray]
    within: Callable[[float, float], tuple[float, float]] | None

    @property
    def worst_case(self) -> bool:
        """Whether ε bounds the change of each belief by each released value, and not an average."""
        return self.within is not None


def factor(before: FloatArray, after: FloatArray) -> FloatArray:
    """ln P(s|y)/P(s)."""
    return np.asarray(np.log(after / before))


def odds(before: FloatArray, after: FloatArray) -> FloatArray:
    """ln of the odds of s against not s, after over before."""
    return np.asarray(np.log(after / (1 - after)) - np.log(before / (1 - before)))


def within_factor(before: float, epsilon: float) -> tuple[float, float]:
    """P(s|y) and, summed over all other values, 1 - P(s|y) both stay within a factor e^ε."""
    down, up, rest = math.exp(-epsilon), math.exp(epsilon), 1 - before
    return max(before * down, 1 - up * rest), min(before * up, 1 - down * rest)


def within_odds(before: float, epsilon: float) -> tuple[float, float]:
    """The odds of s against not s, a mixture of the other values, stay within a factor e^ε."""
    down, up, rest = math.exp(-epsilon), math.exp(epsilon), 1 - before
    return before * down / (before * down + rest), before * up / (before * up + rest)
