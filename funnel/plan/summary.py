"""What one run did: the one object that a program reads, and a few lines for a person."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

from funnel.draw.histogram import Estimated
from funnel.errors import LedgerError
from funnel.format import schema
from funnel.format.journal import Promise, Together
from funnel.ledger.budget import check_promises, unbounded, warnings
from funnel.ledger.promises import over_counts
from funnel.ledger.stated import own_figure
from funnel.ledger.view import promise_dict
from funnel.ledger.whose import told
from funnel.lock import drift
from funnel.measure.figures import round_up, spelt
from funnel.mechanisms.product import Candidate
from funnel.plan.also import Sent
from funnel.plan.population import warning
from funnel.plan.protect import Settled
from funnel.policy import Policy
from funnel.release.measured import Measured
from funnel.release.narrowed import Narrowed, narrowed
from funnel.report import observer
from funnel.text import counted, number, portion


@dataclass(frozen=True, eq=False)
class Summary(Settled):
    """What one run did, stage by stage; `target` is the release's folder, None after a dry run.

    `noted` tells of runs that were cut off, whose leftovers were removed, and of what hardly ever happens; `evidence`
    is what the full report says beside the published one, `also` where else the release is.
    """

    target: Path | None = None
    noted: tuple[str, ...] = ()
    evidence: Mapping[str, Any] | None = None
    also: Sent | None = None

    @property
    def release(self) -> str | None:
        """The release's folder as text, None after a dry run."""
        return None if self.target is None else str(self.target)

    @property
    def policy(self) -> Policy:
        """The policy, with its notion as it was settled over the counts."""
        return self.counted.policy

    @property
    def estimated(self) -> Estimated | None:
        """The records' own counts, where `joint` holds noisy ones."""
        return self.counted.estimated

    @property
    def measured(self) -> Measured:
        """What they leak and keep."""
        return self.protected.measured

    @property
    def together(self) -> Together:
        """What this release and all before it tell together."""
        return self.composed.together

    @property
    def refused(self) -> LedgerError | None:
        """What the policies of the folder say to a release that was measured and not judged; None: they let it pass."""
        try:
            check_promises(self.policy, self.composed, self.run.release)
        except LedgerError as error:
            return error
        return None

    @property
    def observer(self) -> Mapping[str, Any] | None:
        """What the full report says of who sees the whole table (`report.observer`); None without a release."""
        return None if self.evidence is None else self.evidence["observer"]

    @cached_property
    def narrowed(self) -> Narrowed | None:
        """How many counts published files narrow down: those of the release, else those of one with expected totals.

        None over noisy counts, and where it is not computed.
        """
        if self.estimated is not None:
            return None
        if self.evidence is not None:
            told = self.evidence["narrowed"]
            return None if told is None else Narrowed(**told)
        found, minimum = self.protection, self.policy.estimate.minimum
        own = self.protected.pinned is None
        shown, kept = own and found.mechanism.shows_shares, own and found.mechanism.of_totals == "kept"
        return narrowed(self.joint, found.protocols, minimum, shown=shown, kept=kept)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the one who runs it should know."""
        whole = None if self.observer is None else observer.warning(self.observer)
        dry = self.run.release if self.target is None else None
        told = (*warning(self.run.plan.everybody), *warnings(self.composed, dry), *self.composed.told)
        return (*self.run.told, *self.noted, *told, *([whole] if whole else []))

    def as_dict(self) -> dict[str, Any]:
        """The object that `run --json` prints."""
        pinned = self.protected.pinned
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
        first = unbounded(self.composed.promises)
        return ({} if first is None else {"unbounded": first}) | {
            "release": self.release,
            "name": self.policy.name,
            **({} if self.also is None else {"also": self.also.table}),
            "rows": self.rows,
            "identify": list(self.policy.release.identify),
            "notion": self.policy.privacy.notion,
            "epsilon": self.policy.privacy.epsilon,
            "mechanism": self.protection.mechanism.kind,
            "candidates": self.protection.told_candidates(),
            "split": list(self.protection.shares),
            "leakage": self.measured.leakage(),
            "composed": schema.as_json(self.together) | {"how": self.together.found},
            "promises": [self._promise(one) for one in self.composed.promises],
            "observer": None if self.observer is None else dict(self.observer),
            "identity": told(self.composed.identity) | ({"numbered": None} if self.target is None else {}),
            "utility": self.measured.utility(),
            "faithful": self.measured.faith(),
            "alphabet": {
                "sensitive": len(self.joint.secret),
                "public": prod(len(b) for b in self.joint.blocks),
                "released": prod(len(p.outputs) for p in self.protection.protocols),
            },
            "blocks": blocks,
            "rare": [asdict(one) for one in self.counted.merged],
            "estimate": self.counted.told(),
            "locked": None if pinned is None else drift.told(pinned.drift),
            "narrowed": None if self.narrowed is None else asdict(self.narrowed),
            "warnings": list(self.warnings),
        }

    def _promise(self, one: Promise) -> dict[str, Any]:
        """A promise; of a dry run nothing that names a release which there never will be."""
        told = promise_dict(one)
        none = dict.fromkeys((key for key in ("since", "ended") if told[key] == self.run.release), None)
        return told | none if self.target is None else told

    def text(self) -> str:
        """A few lines for a person."""
        measured, notion, named = self.measured, self.policy.privacy, self.policy.release.identify
        bound, figure = measured.normalised_bound, own_figure(measured.own, notion, 4)
        leaked, kept = "without bound" if figure is None else spelt(figure), measured.normalised
        gap = portion(measured.gap or 0.0)  # whose ceiling is not rounded
        folder = os.path.relpath(self.release) if self.release else None
        lines = [
            f"released   {folder or 'nothing (dry run)'}",
            f"rows       {self.rows:,}" + (f", each named by {' + '.join(named)}" if named else ""),
            f"leakage    {leaked} of {number(notion.epsilon)} nats allowed "
            f"({notion.notion}, {'certified' if notion.certified else 'measured exactly'}"
            f"{over_counts(self.estimated is not None)})",
            f"kept       {portion(kept)} of the information in the "
            f"{'cells and other public columns' if self.counted.cells else 'public columns'}"
            + ("" if bound is None else f"; proven ceiling {portion(round_up(bound))}, gap {gap}"),
        ]
        if measured.entropy:
            own, nobody = measured.faithful.unchanged, measured.nobody.unchanged
            cells = ", by their cells" if self.counted.cells else ""
            told = f"unchanged  {portion(own)} of records{cells}; at epsilon 0, drawn for nobody, {portion(nobody)}"
            lines.append(told)
        if self.estimated is None:
            lines.append(f"counts     {self._counts()}")
        if self.together.releases > 1 or self.composed.present is not None:
            lines.insert(3, f"composed   {_told(self.together, over_counts(self.estimated is not None))}")
        if self.observer is not None:
            lines.append(f"whole      {observer.line(self.observer)}")
        lines += [f"estimate   {one}" for one in self.counted.words()]
        if (first := unbounded(self.composed.promises)) is not None:
            lines.insert(0, first)
        moved = None if self.protected.pinned is None else self.protected.pinned.drift
        also = ", counted with those of them that are dropped" if moved and drift.rows(moved, "drop") else ""
        lines += [f"rare       {one.words()}{also}" for one in self.counted.merged if one.values]
        if moved is not None:
            lines.append(f"drift      {drift.words(moved)}")
        lines += self._chosen()
        if self.also is not None:
            lines.append(f"also       {self.also.table}")
        if folder:
            lines.append(f"report     {folder}/report.html")
        return "\n".join(lines)

    def _counts(self) -> str:
        """What the published chances and figures tell of the counts, for a person."""
        told, secret = self.narrowed, " + ".join(self.policy.sensitive)
        if told is None:
            return ("what the published chances tell of them was not computed: there are too many, sets are released, "
                    "the protocol tells nothing, or the linear programs took too many steps")  # fmt: skip
        least, minimum = f"at least {told.narrowed:,} of {told.cells:,}", self.policy.estimate.minimum
        by = "what is published" if self.target is not None else "what a release with the totals expected publishes"
        return (f"{least} narrowed to fewer than {counted(minimum, 'record')} by {by}, "
                f"for who knows how often each {secret} occurs, which answers move beliefs in it and odds the most, "
                "and how far")  # fmt: skip

    def _chosen(self) -> list[str]:
        """The mechanism that was chosen among its candidates, and the split that was searched for."""
        lines = [
            f"{'candidates' if place == 0 else '':<11}{one.mechanism:<27}"
            + (_kept(one) if one.normalised is not None else f"{one.reason}")
            + (", used" if one.mechanism == self.protection.mechanism.kind else "")
            for place, one in enumerate(self.protection.candidates or ())
        ]
        if self.policy.privacy.split == "optimal":
            shares = zip(self.joint.blocks, self.protection.shares, strict=True)
            told = ", ".join(f"{'+'.join(block.columns)} {share:.3g}" for block, share in shares)
            lines.append(f"split      {told}")
        return lines


def _kept(one: Candidate) -> str:
    """What a candidate keeps of information, rows and totals."""
    kept = portion(one.normalised or 0.0)
    if one.faithful is None:
        return kept
    off = one.faithful.estimated
    return (
        f"{kept}; {portion(one.faithful.unchanged)} of records unchanged; a total is expected to be off by "
        f"{one.faithful.face:,.0f} records as it stands, "
        f"{'and has no estimate' if off is None else f'{off:,.0f} as estimated'}"
    )


def _told(together: Together, counts: str) -> str:
    """The composed leakage for a person, and of which `counts`."""
    measure, figure = together.measure, together.figure
    total = f"no finite bound known ({measure})" if figure is None else f"{spelt(figure)} nats of {measure}"
    many = f"{together.releases:,} release{'s' * (together.releases != 1)}"
    return f"{total}, over {many} ({together.found}{counts})"
