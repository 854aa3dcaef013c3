"""What earlier releases mean for a new one: what all of them together give away, and what is left of the budget."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from funnel.data import AnyProtocol
from funnel.data.alphabet import folded
from funnel.errors import LedgerError
from funnel.ledger.archive import kept_protocol
from funnel.ledger.composition import Together, own_figure, together
from funnel.ledger.drawn import Drawn
from funnel.mechanisms.product import Protection
from funnel.policy import Policy
from funnel.policy.columns import Attribute

MOST_PROTOCOLS = 400
"""Different protocols in a ledger that are composed exactly; beyond, nothing is read and the ceiling is stated."""

Entry = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Outlook:
    """What the ledger will say of a release beside the release's own figures."""

    drawn: tuple[Drawn, ...]
    together: Together
    alone: float | None
    """The release's own leakage, rounded up."""

    def entry(self) -> dict[str, Any]:
        """The keys of the ledger's entry: what was drawn from what, and the composed leakage."""
        drawn = [
            {
                "columns": list(one.columns),
                "meaning": list(one.meaning),
                "base": None if one.base is None else list(one.base),
                "reads": None if one.reads is None else list(one.reads),
            }
            for one in self.drawn
        ]
        return {"entity": self.drawn[0].entity, "drawn": drawn, "composed": self.together.as_dict()}

    def stated(self) -> dict[str, Any] | None:
        """What the manifest says; None of the first release, which is all there is."""
        if self.together.releases == 1:
            return None
        return {
            "leakage": self.together.figure,
            "how": self.together.how,
            "releases": self.together.releases,
        }


def outlook(policy: Policy, protection: Protection, source: str, entries: Sequence[Entry]) -> Outlook:
    """Measure a release together with all that the ledger's `entries` tell of.

    `source` is what the draws' randomness comes from: the key's fingerprint, or the release where they are fresh.
    Raises LedgerError where a protocol that was kept is damaged.
    """
    own = _own(policy, protection, source)
    earlier = _Earlier(policy, entries).drawn()
    composed = [entry.get("composed") or {} for entry in entries]
    found = together(protection.notion, protection.joint, own, earlier, protection.leakage, composed)
    return Outlook(tuple(own), found, own_figure(protection.leakage, protection.notion))


def check_budget(policy: Policy, found: Together) -> None:
    """Refuse a release that would bring the composed leakage above the policy's budget. Raises LedgerError."""
    if policy.budget is None or (found.figure is not None and found.figure <= policy.budget):
        return
    total = "no finite bound" if found.figure is None else f"{found.figure:.4f} nats"
    others = f" together with the {found.releases - 1:,} before it" if found.releases > 1 else ""
    raise LedgerError(
        "budget",
        f"this release{others} would leak {total} of {found.measure} ({found.how}); the budget is {policy.budget:g}",
        where=policy.file,
        advice="Nothing was drawn. An unchanged protocol under the same key, with permanent draws, adds nothing; "
        "a smaller epsilon or fewer columns add less. `funnel ledger` lists what was released.",
    )


def warnings(found: Outlook) -> list[str]:
    """What a reader of a release has to know of those before it, where together they tell more than it alone."""
    composed = found.together
    if composed.figure == found.alone:
        return []
    told = (
        f"has no finite bound ({composed.measure}, {composed.how})"
        if composed.figure is None
        else f"is up to {composed.figure:.4f} nats ({composed.measure}, {composed.how})"
    )
    return [
        f"this is release {composed.releases:,} in this ledger; what all of them together tell about a person whose "
        f"values stay the same {told}"
    ]


def _own(policy: Policy, protection: Protection, source: str) -> list[Drawn]:
    return [
        _as_drawn(
            policy, protocol, source, policy.source.entity if policy.draws.kind == "permanent" else None
        )
        for protocol in protection.protocols
    ]


def _as_drawn(policy: Policy, protocol: AnyProtocol, source: str, entity: str | None) -> Drawn:
    reads = protocol.secret.columns if protocol.secret else None
    columns = protocol.inputs.columns
    known = {folded(one.name): one for block in policy.blocks for one in block.attributes}
    attributes = [known[folded(column)] for column in columns]
    meanings = tuple(
        _meaning(attribute, {value[place] for value in protocol.inputs.values})
        for place, attribute in enumerate(attributes)
    )
    return Drawn(columns, meanings, reads, source, entity, protocol, tuple(map(_base, attributes)))


def _meaning(attribute: Attribute, values: set[str | None]) -> str:
    """A short hash of what a column's values stand for: the same text may mean other people elsewhere.

    Bins, rounding and clipping; and where rare or unseen values are one, which ones are not.
    """
    told = attribute.model_dump(mode="json", exclude={"name", "unseen"}, exclude_none=True)
    if attribute.top is not None or attribute.unseen == "other":
        told["values"] = sorted(json.dumps(value) for value in values)
    return _short(told)


def _base(attribute: Attribute) -> str:
    """The same but for which values are not put under `other`."""
    return _short(attribute.model_dump(mode="json", exclude={"name", "unseen", "top"}, exclude_none=True))


def _short(told: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


class _Earlier:
    """The blocks that a ledger tells of, with their protocols where these are left."""

    def __init__(self, policy: Policy, entries: Sequence[Entry]) -> None:
        self.policy, self.entries = policy, entries
        self._private, self._to = policy.path(policy.release.private), policy.path(policy.release.to)
        self._known: dict[str, tuple[AnyProtocol, ...] | None] = {}
        self._too_many = len({entry["protocol_sha256"] for entry in entries}) > MOST_PROTOCOLS

    def drawn(self) -> list[Drawn]:
        """Every block, but once where permanent draws only repeat it."""
        found: dict[object, Drawn] = {}
        for entry in self.entries:
            source = entry["key_fingerprint"] if entry["draws"] == "permanent" else entry["release"]
            for place, one in enumerate(self._blocks(entry, str(source))):
                key = (entry["protocol_sha256"], place, one.source, one.entity, one.meaning, one.columns)
                found.setdefault(key, one)
        return list(found.values())

    def _blocks(self, entry: Entry, source: str) -> list[Drawn]:
        protocols = self._protocols(entry)
        if "drawn" in entry:
            parts = protocols or (None,) * len(entry["drawn"])
            return [
                Drawn(
                    tuple(told["columns"]),
                    tuple(told["meaning"]),
                    None if told["reads"] is None else tuple(told["reads"]),
                    source,
                    entry["entity"],
                    protocol,
                    tuple(told["base"]) if told.get("base") else None,
                )
                for told, protocol in zip(entry["drawn"], parts, strict=True)
            ]
        return self._before_meanings(entry, source, protocols)

    def _before_meanings(
        self, entry: Entry, source: str, protocols: Sequence[AnyProtocol] | None
    ) -> list[Drawn]:
        """Entries of the first version: they mean what tonight's policy means only where it is the same file."""
        permanent = entry["draws"] == "permanent"
        if protocols is None:
            return [Drawn((), (), (), source, None, None)]
        if entry["policy_sha256"] == self.policy.sha256:
            entity = self.policy.source.entity if permanent else None
            return [_as_drawn(self.policy, one, source, entity) for one in protocols]
        return [
            Drawn(
                one.inputs.columns,
                (f"policy {entry['policy_sha256']}",) * len(one.inputs.columns),
                one.secret.columns if one.secret else None,
                source,
                None,
                one,
            )
            for one in protocols
        ]

    def _protocols(self, entry: Entry) -> tuple[AnyProtocol, ...] | None:
        sha256 = entry["protocol_sha256"]
        if self._too_many:
            return None
        if sha256 not in self._known:
            published = self._to / entry["release"] / "protocol.json"
            self._known[sha256] = kept_protocol(self._private, sha256, published)
        return self._known[sha256]
