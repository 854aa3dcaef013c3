"""The domain of a private estimate: every combination of the values that a policy declares."""

from __future__ import annotations

from funnel.data.alphabet import folded
from funnel.data.domain import MOST_CELLS, Domain
from funnel.engine.counting import MAX_ALPHABET
from funnel.errors import PlanError
from funnel.plan.columns import bin_labels
from funnel.policy import Policy


def domain(policy: Policy) -> Domain:
    """From declared values and bins alone; missing values are one more where they are a category.

    Raises PlanError alphabet-too-large.
    """
    declared = {folded(name): items for name, items in (policy.estimate.values or {}).items()}
    bins = {one.name: one.bins for block in policy.blocks for one in block.attributes if one.bins is not None}
    missing = (None,) if policy.source.missing == "category" else ()
    values = {
        column: (*(bin_labels(bins[column]) if column in bins else declared[folded(column)]), *missing)
        for column in dict.fromkeys(policy.columns)
    }
    try:
        found = Domain.of(values, policy.sensitive, [block.columns for block in policy.blocks])
    except ValueError as error:
        raise _too_large(str(error)) from None
    for alphabet in (found.secret, *found.blocks):
        if len(alphabet) > MAX_ALPHABET:
            raise _too_large(
                f"{' + '.join(alphabet.columns)} has {len(alphabet):,} declared values; a protocol holds up to "
                f"{MAX_ALPHABET:,}"
            )
    return found


def _too_large(what: str) -> PlanError:
    return PlanError(
        "alphabet-too-large",
        what,
        advice=f"Noise is added to {MOST_CELLS:,} combinations at most: release fewer columns in this policy, or "
        "declare fewer values.",
    )
