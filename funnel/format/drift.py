"""drift.json: how far the table has moved since its lock, with values that came and went; private, without noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from funnel.format.fields import Count, Label, Nats, Sha256, Share, Text, Time

NAME = "drift.json"


@dataclass(frozen=True)
class Unseen:
    """A value of a block that the lock does not know, its records, and what became of them."""

    columns: tuple[Text, ...]
    value: Label
    rows: Count
    rule: Literal["other", "drop"]


@dataclass(frozen=True)
class DriftFile:
    """Leakage in nats of `measure`, None where infinite, and records: of the lock, as it states them, and tonight's.

    `leakage_then` is rounded up to the decimals that the lock has, `leakage_now` is as measured.
    `distance` is the total variation between the distributions of secret and public values, `divergence` the Rényi
    divergence of `order` from the reference to the current one in nats (None: infinite); both None where the counts of
    the lock are not kept (`known`). `radius` is that of the lock's uncertainty set, `inside` whether the current
    distribution lies in it. `noisy`: the lock is of a private estimate, and its figures are of noisy counts.
    `new_keys` and `gone_keys` are rows whose key was not there, or is not any more; None where nobody can know.
    """

    format: Literal["funnel-drift/1"]
    lock: Sha256
    made: Time
    measure: Text
    leakage_then: Nats | None
    leakage_now: Nats | None
    rows_then: Count
    rows_now: Count
    known: bool
    distance: Share | None
    order: float
    divergence: Nats | None
    radius: Nats | None
    inside: bool | None
    noisy: bool
    unseen: tuple[Unseen, ...]
    gone: tuple[Label, ...]
    new_secrets: tuple[Label, ...] | None
    gone_secrets: tuple[Label, ...] | None
    new_keys: Count | None = None
    gone_keys: Count | None = None
