"""The figures of a run: measured leakage and utility, and the one object that a program reads."""

from __future__ import annotations

import os
from dataclasses import dataclass
from math import isfinite, prod
from typing import Any

from funnel.data import Joint
from funnel.draw.histogram import Estimated
from funnel.ledger.composition import Together, own_figure
from funnel.lock.drift import Drift, Untold
from funnel.measure import leakage
from funnel.measure.figures import leakage_figure, round_up
from funnel.measure.information import mutual_information, public_entropy
from funnel.mechanisms.product import Protection
from funnel.notions import Notion
from funnel.policy import Policy


@dataclass(frozen=True)
class Measured:
    """Leakage and utility of the channel released, in nats; `lip` and `ldp` are exact ratios.

    `own` is the leakage that epsilon bounds, and `measure` its name.
    """

    lip: leakage.Leakage
    ldp: leakage.Leakage
    own: leakage.AnyLeakage
    measure: str
    secret_information: float
    kept_information: float
    entropy: float
    bound: float | None

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

    def utility(self) -> dict[str, float | None]:
        """Nats, and shares of H(X)."""
        return {
            "mutual_information": self.kept_information,
            "entropy": self.entropy,
            "normalised": self.normalised,
            "upper_bound": self.normalised_bound,
            "gap": self.gap,
        }


def measure(protection: Protection) -> Measured:
    """Measure the channel that is released, over all blocks together."""
    joint, table = protection.joint, protection.channel.table
    return Measured(
        leakage.lip(table),
        leakage.ldp(table),
        protection.leakage,
        protection.notion.measure,
        mutual_information(table),
        protection.kept,
        public_entropy(joint),
        protection.bound,
    )


def stated_leakage(measured: Measured, notion: Notion) -> dict[str, float | None]:
    """Figures for publication: rounded up, yet never above the epsilon that the exact ratio keeps."""
    figures = {
        "lip": leakage_figure(measured.lip.ratio),
        "ldp": leakage_figure(measured.ldp.ratio),
        "mutual_information": round_up(measured.secret_information),
    }
    return figures | {notion.measure: own_figure(measured.own, notion)}


@dataclass(frozen=True)
class Summary:
    """What one run did; `release` is None after a dry run, `drift` where nothing is locked."""

    policy: Policy
    protection: Protection
    measured: Measured
    release: str | None
    together: Together
    warnings: tuple[str, ...] = ()
    drift: Drift | Untold | None = None
    estimated: Estimated | None = None
    """The records' own counts, where `joint` holds noisy ones."""

    @property
    def rows(self) -> int:
        """Number of records."""
        return self.joint.rows if self.estimated is None else self.estimated.rows

    @property
    def joint(self) -> Joint:
        """The joint distribution in the blocks that were sanitised."""
        return self.protection.joint

    def as_dict(self) -> dict[str, Any]:
        """The object that `run --json` prints."""
        blocks = [
            {
                "columns": list(protocol.inputs.columns),
                "public": len(protocol.inputs),
                "released": len(protocol.outputs),
                "epsilon": budget,
                "bits": protocol.bits,
                "solver": solved.how,
            }
            for protocol, budget, solved in zip(
                self.protection.protocols, self.protection.budgets, self.protection.solved, strict=True
            )
        ]
        return {
            "release": self.release,
            "name": self.policy.name,
            "rows": self.rows,
            "notion": self.policy.privacy.notion,
            "epsilon": self.policy.privacy.epsilon,
            "mechanism": self.protection.mechanism.kind,
            "candidates": self.protection.told_candidates(),
            "split": list(self.protection.shares),
            "leakage": self.measured.leakage(),
            "composed": self.together.as_dict(),
            "utility": self.measured.utility(),
            "alphabet": {
                "sensitive": len(self.joint.secret),
                "public": prod(len(b) for b in self.joint.blocks),
                "released": prod(len(p.outputs) for p in self.protection.protocols),
            },
            "blocks": blocks,
            "locked": None if self.drift is None else self.drift.as_dict(),
            "warnings": list(self.warnings),
        }

    def text(self) -> str:
        """A few lines for a person."""
        measured, notion = self.measured, self.policy.privacy
        bound = measured.normalised_bound
        folder = os.path.relpath(self.release) if self.release else None
        lines = [
            f"released   {folder or 'nothing (dry run)'}",
            f"rows       {self.rows:,}",
            f"leakage    {measured.own.nats:.4f} of {notion.epsilon:g} nats allowed "
            f"({notion.notion}, {'certified' if notion.certified else 'measured exactly'}"
            f"{'' if self.estimated is None else ', over noisy counts'})",
            f"kept       {measured.normalised:.2%} of the information in the public columns"
            + ("" if bound is None else f"; proven ceiling {bound:.2%}, gap {measured.gap:.2%}"),
        ]
        if self.together.releases > 1:
            lines.insert(3, f"composed   {self.together.text()}")
        if self.drift is not None:
            lines.append(f"drift      {self.drift.text()}")
        lines += self._chosen()
        if folder:
            lines.append(f"report     {folder}/report.html")
        return "\n".join(lines)

    def _chosen(self) -> list[str]:
        """The mechanism that was chosen among its candidates, and the split that was searched for."""
        lines = [
            f"{'candidates' if place == 0 else '':<11}{one.mechanism:<27}"
            + (f"{one.normalised:.2%}" if one.normalised is not None else f"{one.reason}")
            + (", used" if one.mechanism == self.protection.mechanism.kind else "")
            for place, one in enumerate(self.protection.candidates or ())
        ]
        if self.policy.privacy.split == "optimal":
            shares = zip(self.joint.blocks, self.protection.shares, strict=True)
            told = ", ".join(f"{'+'.join(block.columns)} {share:.3g}" for block, share in shares)
            lines.append(f"split      {told}")
        return lines
