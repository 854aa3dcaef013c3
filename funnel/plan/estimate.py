"""Which private estimate a command is about: one that is kept, or one that is entered and then drawn."""

from __future__ import annotations

import hashlib
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from funnel.errors import InternalError
from funnel.format.canonical import encode
from funnel.format.schema import as_json
from funnel.measure.exact import rational
from funnel.plan.people import named_table
from funnel.plan.stages import Plan
from funnel.policy import Policy

if TYPE_CHECKING:
    from funnel.data.domain import Domain
    from funnel.data.joint import IntArray
    from funnel.ledger.estimates import EstimateRequest, Kept, Spent


@dataclass(frozen=True)
class Taking:
    """What will do: with `fresh` an estimate of these hours, else any that is kept, for nothing new is published of it.

    `held`: the caller holds the private folder.
    """

    fresh: bool
    held: bool


LOOK = Taking(fresh=False, held=False)
RELEASE = Taking(fresh=True, held=True)


def taken(
    policy: Policy, plan: Plan, declared: Domain, counted: IntArray, taking: Taking
) -> tuple[Kept, Spent]:
    """The estimate to go by, drawn on the counts (m,) where none will do; and what all of them have spent by now.

    Raises LedgerError where the budget does not allow it, ReleaseError where another command is at work.
    """
    from funnel.ledger.estimates import PREFIX, STANDS, estimate, spent, standing
    from funnel.ledger.journal import Journal
    from funnel.release.holding import alone
    from funnel.release.naming import new_release_id
    from funnel.release.publish import check_hidden

    journal, asked = Journal(policy.private), _asked(policy, plan, declared)
    within = STANDS if taking.fresh else None
    kept = standing(journal, asked, within)
    if kept is None:
        check_hidden(policy.to, policy.private)
        with nullcontext() if taking.held else alone(policy.private):
            # Another command may have been at it until now.
            name = f"{PREFIX}{new_release_id(datetime.now(UTC))}"
            kept = standing(journal, asked, within) or estimate(journal, name, asked, counted)
    return kept, spent(journal.lines())


def _asked(policy: Policy, plan: Plan, declared: Domain) -> EstimateRequest:
    """What is counted: the table, the domain, and the statements that count its cells. Nothing follows from the counts.

    Statements do not say of which table they are: all that come from elsewhere are read by one name.
    """
    from funnel.data.convert import alphabet_record
    from funnel.ledger.estimates import EstimateRequest

    epsilon, budget = policy.estimate.epsilon, policy.estimate.budget
    if epsilon is None:
        raise InternalError("a private estimate without its epsilon")
    count = plan.count
    statements = [*plan.scan.statements, *count.statements, count.labelled, count.cells]
    alphabets = [as_json(alphabet_record(one)) for one in (declared.secret, *declared.blocks)]
    told = [named_table(policy), alphabets, declared.cells.tolist(), statements, str(rational(epsilon))]
    terms = hashlib.sha256(encode(told)).hexdigest()
    return EstimateRequest(terms, rational(epsilon), None if budget is None else rational(budget))
