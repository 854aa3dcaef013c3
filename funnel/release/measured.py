"""What a channel tells and keeps, measured once: for the one who runs it in full, for publication rounded."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

from funnel.format.manifest import Utility
from funnel.ledger.stated import own_figure
from funnel.measure import leakage
from funnel.measure.faithful import Faithful, at_zero, faithful
from funnel.measure.figures import leakage_figure, round_to, round_up
from funnel.measure.information import mutual_information, public_entropy
from funnel.mechanisms.product import Protection
from funnel.notions import Notion


@dataclass(frozen=True)
class Measured:
    """Leakage and utility of the channel released, in nats; `lip` and `ldp` are exact ratios.

    `own` is the leakage that epsilon bounds, and `measure` its name; `faithful` is what is left as it is, `nobody` the
    same at ε = 0 with the same blocks.
    """

    lip: leakage.Leakage
    ldp: leakage.Leakage
    own: leakage.AnyLeakage
    measure: str
    secret_information: float
    kept_information: float
    entropy: float
    bound: float | None
    faithful: Faithful
    nobody: Faithful

    @property
    def normalised(self) -> float:
        """I(X;Y)/H(X); a constant X loses nothing."""
        return self.kept_information / self.entropy if self.entropy else 1.0

    @property
    def normalised_bound(self) -> float | None:
        """The certified upper bound over H(X)."""
        if self.bound is None:
            return None
        return min(self.bound / self.entropy, 1.0) if self.entropy else 1.0

    @property
    def gap(self) -> float | None:
        """What another protocol might keep more, as a share of H(X)."""
        bound = self.normalised_bound
        return None if bound is None else max(bound - self.normalised, 0.0)

    def leakage(self) -> dict[str, float | None]:
        """Nats by measure, None where infinite."""
        common = {"lip": self.lip.nats, "ldp": self.ldp.nats, "mutual_information": self.secret_information}
        found = common | {self.measure: self.own.nats}
        return {name: nats if isfinite(nats) else None for name, nats in found.items()}

    def faith(self) -> dict[str, Any]:
        """What is left as it is, and what would be at ε = 0: shares of records, and the error of a raw total."""
        return _faith(self.faithful) | {"at_zero": _faith(self.nobody)}

    def utility(self) -> dict[str, float | None]:
        """Nats, and shares of H(X)."""
        return {
            "mutual_information": self.kept_information,
            "entropy": self.entropy,
            "normalised": self.normalised,
            "upper_bound": self.normalised_bound,
            "gap": self.gap,
        }


def _faith(told: Faithful) -> dict[str, Any]:
    return {"unchanged": told.unchanged, "accuracy": told.accuracy, "error": told.error}


def measure(protection: Protection) -> Measured:
    """Measure the channel that is released, over all blocks together."""
    joint, table = protection.joint, protection.channel.table
    lip = leakage.lip(table)
    return Measured(
        lip,
        leakage.ldp(table),
        protection.leakage,
        protection.notion.measure,
        # Where no belief moves, nothing is told: the noise of floats would be rounded up to 0.0001.
        0.0 if lip.ratio == 1 else mutual_information(table),
        protection.kept,
        public_entropy(joint),
        protection.bound,
        faithful(joint, protection.protocols),
        at_zero(joint),
    )


def stated_leakage(measured: Measured, notion: Notion, decimals: int) -> dict[str, float | None]:
    """Figures for publication: rounded up, yet never above the epsilon that the exact ratio keeps."""
    figures = {
        "lip": leakage_figure(measured.lip.ratio, decimals=decimals),
        "ldp": leakage_figure(measured.ldp.ratio, decimals=decimals),
        "mutual_information": round_up(measured.secret_information, decimals),
    }
    return figures | {notion.measure: own_figure(measured.own, notion, decimals)}


def stated_utility(measured: Measured, decimals: int) -> Utility:
    """Figures for publication: to the nearest, the bound rounded up; none where they would have no decimals."""
    if not decimals:
        return Utility(None, None, None, None)
    bound = measured.normalised_bound
    return Utility(
        round_to(measured.kept_information, decimals),
        round_to(measured.entropy, decimals),
        round_to(measured.normalised, decimals),
        None if bound is None else round_up(bound, decimals),
    )
