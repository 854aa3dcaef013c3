"""Every promise that policies of one ledger have made, and what all releases so far tell of what each one hides.

A promise is a policy's name, its secret, and the measure of its notion. Every release is measured against all of them:
its own first, and each other one at the counts of that secret and of what is released tonight. Where nobody knows how
the two go together, and for a notion that is about more than one table of counts, the usual LDP of the draws is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from funnel.data import Joint
from funnel.data.alphabet import folded
from funnel.data.population import Population
from funnel.format.journal import Identity, Promise, ReleaseEntry, Together
from funnel.format.manifest import Parameters
from funnel.ledger.composition import together, unchanged, unseen
from funnel.ledger.records import DrawRecord
from funnel.ledger.unlike import Frame, unproven
from funnel.ledger.whose import assuming, granted, hidden_versions
from funnel.measure.exact import rational
from funnel.measure.figures import round_up
from funnel.mechanisms.product import Protection
from funnel.notions import NOTIONS, MutualInformation, Notion
from funnel.policy import Policy

Secret = tuple[str, ...]
"""The columns of a secret, as its policy names them."""


@dataclass(frozen=True, eq=False)
class Tonight:
    """A release about to be drawn: what it draws, what was drawn before, and everybody by each secret.

    `frames` are of all releases, its own last.
    """

    policy: Policy
    protection: Protection
    release: str
    own: Sequence[DrawRecord]
    earlier: Sequence[DrawRecord]
    everybody: Sequence[Population]
    identity: Identity
    frames: Sequence[Frame]

    def every(self, notion: Notion, found: Together, entries: Sequence[ReleaseEntry]) -> Together:
        """The same about all secrets that were called alike: where one is not tonight's, counts say nothing of it.

        The usual LDP of all draws bounds what they tell, whatever is hidden.
        """
        here = {self.identity.secret} if found.sensitive == self.policy.sensitive else set[str]()
        if notion.between_values or len(here | hidden_versions(found.sensitive, entries)) < 2:
            return found
        whole = unchanged(self.own, self.earlier)
        told = None if whole is None else round_up(float(whole))
        figure = None if told is None or found.figure is None else max(told, found.figure)
        return replace(found, figure=figure, measured=told, how="sum")

    def proven(self, found: Together) -> Together:
        """No bound where no proof is about these releases."""
        return found if unproven(self.frames, found.sensitive) is None else without_bound(found)

    def people(self, secret: Secret) -> Population | None:
        """Everybody in the source by a secret; None where they were not counted."""
        return next((one for one in self.everybody if one.secret.columns == secret), None)

    def table(self, secret: Secret) -> Joint | None:
        """N[s', x] of the records of this release; None where they were not counted, or over a private estimate."""
        joint, found = self.protection.joint, self.people(secret)
        if self.policy.estimate.epsilon is not None:
            return None
        if secret == joint.secret.columns:
            return joint
        present = self.own[0].present
        rows = None if found is None else found.holds(present.predicate if present else None)
        if found is None or rows is None:
            return None
        return found.among(rows & found.named(joint.blocks), joint.blocks)


def standing(entries: Sequence[ReleaseEntry]) -> tuple[Promise, ...]:
    """The promises as the last release left them: none before the first."""
    return entries[-1].promises if entries else ()


def others(policy: Policy, entries: Sequence[ReleaseEntry]) -> tuple[Promise, ...]:
    """The promises that are not the policy's own."""
    return tuple(one for one in standing(entries) if not is_own(one, policy))


def own_before(policy: Policy, entries: Sequence[ReleaseEntry]) -> Promise | None:
    """The policy's own promise as it stood, None before its first release."""
    return next((one for one in standing(entries) if is_own(one, policy)), None)


def edited(policy: Policy, entries: Sequence[ReleaseEntry]) -> bool:
    """Whether the policy's promise was another one: about who knows other columns, or another set of distributions."""
    last = next((one for one in reversed(entries) if is_own(one.own, policy)), None)
    return last is not None and not in_terms_of(last.own, policy.privacy)


def averaged(found: Together) -> str:
    """Behind whom a figure is about: that it is an average, where it is."""
    return " on average over all records" if found.measure == MutualInformation.measure else ""


def over_counts(noisy: bool) -> str:
    """Behind a figure: that it is about noisy counts, where it is."""
    return ", over noisy counts" if noisy else ""


def untold(notion: Notion, found: Together) -> tuple[str, ...]:
    """What of a notion's promise a finite figure of several releases says nothing about, to stand beside it."""
    return (notion.unmeasured,) if notion.unmeasured and found.figure is not None else ()


def without_bound(found: Together) -> Together:
    """The same where no finite bound is known."""
    return replace(found, figure=None, measured=None, how="sum", varying=None)


def budget_of(policy: Policy) -> str | None:
    """What a policy lets all releases reach, in nats, as its promise has it; None where that is not bounded."""
    return None if policy.budget is None else str(rational(policy.budget))


def measured(tonight: Tonight, entries: Sequence[ReleaseEntry]) -> tuple[tuple[Promise, ...], Identity]:
    """All promises after a release, its own first, and what they take for granted; those that it ends are marked."""
    own = _own(tonight, entries)
    stated = _before(own.policy, tonight.protection.notion, own.together.sensitive, entries)
    found, known = [own], dict[object, Together]()
    for one in others(tonight.policy, entries):
        # What was told of each before is its own, however alike they are measured tonight.
        before = _before(one.policy, notion_of(one), one.together.sensitive, entries)
        asked = one.together.asked, one.notion, one.parameters, _same_table(tonight, one, entries), *before
        if asked not in known:
            alike = before == stated and _alike(tonight, one)
            known[asked] = own.together if alike else _told(tonight, one, before, entries)
        found.append(_after(tonight, replace(one, together=known[asked])))
    drawn = [block.told() for block in tonight.own]
    identity = granted(tonight.identity, [one.together for one in found], drawn, entries)
    return tuple(replace(one, together=assuming(one.together, identity)) for one in found), identity


def _alike(tonight: Tonight, one: Promise) -> bool:
    """Whether the measure of the release's own promise is that of another one as well.

    What may be known, and the set of distributions, are about the columns and values that each policy releases.
    """
    found = tonight.protection
    same = (found.notion.measure, found.joint.secret.columns) == one.together.asked
    return same and found.notion.of_one_table and tonight.policy.estimate.epsilon is None


def _own(tonight: Tonight, entries: Sequence[ReleaseEntry]) -> Promise:
    """The release's own promise: one that was passed is made anew where the policy allows as much by now."""
    policy, found = tonight.policy, tonight.protection
    stated = _before(policy.name, found.notion, policy.sensitive, entries)
    people = tonight.people(policy.sensitive)
    figures = together(found.notion, found.joint, tonight.own, tonight.earlier, found.leakage, stated, people)
    figures = tonight.proven(tonight.every(found.notion, figures, entries))
    if edited(policy, entries):
        figures = without_bound(figures)
    budget, notion = budget_of(policy), found.notion
    told = notion.notion, notion.epsilon, Parameters(**notion.parameters())
    made = Promise(policy.name, *told, budget, tonight.release, None, figures)
    before = own_before(policy, entries)
    if before is not None and (before.ended is None or not breaks(before) or breaks(made)):
        made = replace(made, since=before.since, ended=before.ended)
    return _after(tonight, made)


def _told(
    tonight: Tonight, one: Promise, before: Sequence[Together | None], entries: Sequence[ReleaseEntry]
) -> Together:
    """What all releases tell of another promise's secret."""
    notion, secret = notion_of(one), one.together.sensitive
    table = tonight.table(secret) if _same_table(tonight, one, entries) else None
    if table is None or not notion.of_one_table:
        found = unseen(notion, secret, tonight.own, tonight.earlier, before)
    else:
        found = together(notion, table, tonight.own, tonight.earlier, None, before, tonight.people(secret))
    return tonight.proven(tonight.every(notion, found, entries))


def _same_table(tonight: Tonight, one: Promise, entries: Sequence[ReleaseEntry]) -> bool:
    """Whether the secret of another policy is a column of tonight's table, as far as the tables' names show."""
    if one.together.sensitive == tonight.policy.sensitive:
        return True
    last = next((entry for entry in reversed(entries) if entry.own.name == one.name), None)
    return last is not None and last.identity.table == tonight.identity.table


def _before(name: str, notion: Notion, sensitive: Secret, entries: Sequence[ReleaseEntry]) -> list[Together | None]:
    """What each earlier release stated of a promise, or else of one that is measured alike; None: nothing."""
    asked = notion.measure, sensitive

    def told(entry: ReleaseEntry) -> Together | None:
        alike = [one for one in entry.promises if one.together.asked == asked]
        own = [one for one in alike if one.policy == name]
        return next((one.together for one in (*own, *(alike if notion.of_one_table else ()))), None)

    return [told(entry) for entry in entries]


def _after(tonight: Tonight, one: Promise) -> Promise:
    """The promise, ended by this release where it goes beyond it."""
    broken = breaks(one) or (not is_own(one, tonight.policy) and publishes(tonight.policy, one))
    return replace(one, ended=tonight.release) if broken and one.ended is None else one


def breaks(one: Promise) -> bool:
    """Whether more is told than the promise allows: than its budget, or without any bound."""
    figure = one.together.figure
    return figure is None or (one.budget is not None and rational(figure) > Fraction(one.budget))


def publishes(policy: Policy, one: Promise) -> bool:
    """Whether a policy releases a column that the promise hides, and does not hide it itself."""
    shown = {folded(column) for block in policy.blocks for column in (*block.labels, *block.columns)}
    shown |= {folded(column) for column in policy.release.identify}
    shown -= {folded(column) for column in policy.sensitive}
    return bool(shown & {folded(column) for column in one.together.sensitive})


def notion_of(one: Promise) -> Notion:
    """The notion that a promise is made in, as its policy asked for it."""
    kind, given = NOTIONS[one.notion], dict[str, Any](vars(one.parameters))
    if given["confidence"] is not None:
        del given["radius"]
    asked = {key: value for key, value in given.items() if value is not None and key in kind.model_fields}
    return kind.model_validate({"notion": one.notion, "epsilon": one.epsilon, **asked})


def in_terms_of(one: Promise, notion: Notion) -> bool:
    """Whether a promise is about whom and what a notion is about: who may know what, which distributions."""
    then, now = (_asked(each) for each in (notion_of(one), notion))
    return notion.of_one_table or then == now


def _asked(notion: Notion) -> dict[str, Any]:
    """What a notion is asked for beside epsilon, however it is solved, and in whichever order columns are named."""
    asked = notion.asked() | {"solve": None}
    return asked | ({"knows": sorted(asked["knows"])} if isinstance(asked.get("knows"), list) else {})


def is_own(one: Promise, policy: Policy) -> bool:
    """Whether a promise is the policy's own."""
    return one.name == (policy.name, policy.privacy.measure, policy.sensitive)
