"""The words of notions that bound what any one released value tells about any one record."""

from __future__ import annotations

from funnel.report import beyond
from funnel.report.figures import factor_text, percent_text
from funnel.report.terms import Terms, Wording, factor, odds, within_factor, within_odds

_SEES = "Whoever sees a record’s released values"


def _lip(terms: Terms) -> str:
    return (
        f"{_SEES} can raise or lower the probability they give to "
        f"{terms.any_value} by at most a factor of {factor_text(terms.epsilon)}."
    )


def _ldp(terms: Terms) -> str:
    return (
        f"{_SEES} can shift the odds between any two values of "
        f"{terms.secret} by at most a factor of {factor_text(terms.epsilon)}, whatever they believed before."
    )


def _perfect(terms: Terms) -> str:
    return f"{_SEES} learns nothing about {terms.secret}: the probability of {terms.any_value} stays what it was."


def _srlip(terms: Terms) -> str:
    if terms.columns == 1:
        return _lip(terms)
    return (
        f"{_SEES}, even if they already know the true values of some of the released columns, can raise or lower "
        f"the probability they then give to {terms.any_value} by at most a factor of {factor_text(terms.epsilon)}."
    )


def _ldp_x(terms: Terms) -> str:
    return (
        f"{_SEES} can shift the odds between any two true values of {terms.public}{_and_secret(terms)}, "
        f"by at most a factor of {factor_text(terms.epsilon)}, whatever they believed or knew before."
    )


def _and_secret(terms: Terms) -> str:
    return f", and so between any two values of {terms.secret}" if terms.public != terms.secret else ""


def _rldp(terms: Terms) -> str:
    return (
        f"{_SEES} can shift the odds between any two values of {terms.secret} by at most a factor of "
        f"{factor_text(terms.epsilon)}, whatever they believed before; and this holds not only for the "
        f"distribution counted in the table, but for every distribution near it, in the set described below."
    )


def _each_record(_: Terms) -> str:
    return "The promise is worst-case: it holds for every record and every value that can be released, not on average."


def _each_distribution(terms: Terms) -> str:
    return f"{_each_record(terms)} {_uncertainty(terms)}"


def _uncertainty(terms: Terms) -> str:
    """The set of distributions, and what is known of the truth's being in it ([RLDP] Section 3)."""
    order, confidence = terms.parameters.get("order", 2), terms.parameters.get("confidence")
    size = (
        f"The set holds every distribution P of {_whole(terms)} whose Rényi divergence of order "
        f"{order:g} from the counted one, D(counted ‖ P), is at most {float(terms.parameters['radius']):.3g} nats"
        if "radius" in terms.parameters
        else "The set holds every distribution P of the true values near the counted one"
    )
    if confidence is None:
        return f"{size}. No probability is claimed that the true distribution lies in it."
    return (
        f"{size}. That radius was chosen so that, if the records are a random sample of a population, the set holds "
        f"the population’s distribution with a probability of about {percent_text(float(confidence))} (by the "
        "chi-squared approximation, which needs records enough of every value). In the remaining cases the true "
        "distribution lies outside, and nothing is promised for it."
    )


def _whole(terms: Terms) -> str:
    """What a whole record is made of."""
    return "the true values" if terms.others != terms.public else f"{terms.secret} and the true values"


def _knows_the_table(terms: Terms) -> str:
    return (
        "The promise is made against someone who knows how all values are distributed in the table, sees "
        "the released values and knows how they were drawn, but knows nothing else about the person. "
        f"Before looking, such a person gives each value of {terms.secret} its frequency in the table."
    )


def _knows_columns(terms: Terms) -> str:
    if terms.columns == 1:
        return (
            f"{_knows_the_table(terms)} Only one column is released, so there is no other column to know the true "
            "value of: here the promise is that of local information privacy."
        )
    return (
        "The promise is made against someone who knows how all values are distributed in the table, sees the released "
        "values and knows how they were drawn, and who may besides know the person’s true values in some of the "
        f"released columns ({terms.public}), whichever these are, but not in all{_short_of_all(terms)}. Before "
        f"looking, such a person gives each value of {terms.secret} its frequency among the records with the values "
        "that they know."
    )


def _short_of_all(terms: Terms) -> str:
    if terms.reads_secret:
        return (
            "; someone who knows them all is not covered, since the draws depend on the secret as well "
            "as on the true values"
        )
    return "; to someone who knows them all the released values, drawn from these alone, say nothing more"


def _any_belief(terms: Terms) -> str:
    return (
        "The promise is made against someone who may have believed anything about the person’s "
        f"{terms.secret} beforehand, sees the released values and knows how they were drawn, but, apart from "
        "that, knows no more about the person’s true public values than how they are distributed among "
        f"people with the same {terms.secret}."
    )


def _any_near_belief(terms: Terms) -> str:
    return (
        "The promise is made against someone who may have believed anything about the person’s "
        f"{terms.secret} beforehand, sees the released values and knows how they were drawn, but, apart from that, "
        "knows no more about the person’s true public values than how they are distributed among people with the "
        f"same {terms.secret}: as in the table, or as in any other distribution of the set described below."
    )


def _anyone(_: Terms) -> str:
    return (
        "The promise is made against anyone: whatever they know or believe about the person and about how values are "
        "distributed, and even if they know which two true values are possible, the odds change no more than that. "
        "Only the key of the draws must be unknown to them. It does not rest on the table’s distribution at all."
    )


def _nothing_else(_: Terms) -> str:
    return (
        "This holds for someone who knows how the values are distributed in the table, and nothing else about "
        "the person."
    )


def _some_columns(terms: Terms) -> str:
    if terms.columns == 1:
        return _nothing_else(terms)
    return (
        "This holds for someone who knows how the values are distributed in the table and the person’s true values in "
        "some of the released columns, whichever these are but not in all, and nothing else about the person."
    )


def _whatever_believed(terms: Terms) -> str:
    return (
        f"This holds whatever was believed about the person’s {terms.secret} before, for someone who knows no more "
        f"about the true public values than how they are distributed in the table for each {terms.secret}."
    )


def _whatever_near(terms: Terms) -> str:
    return (
        f"This holds whatever was believed about the person’s {terms.secret} before, for someone who knows no more "
        f"about the true public values than how they are distributed for each {terms.secret}, in the table or in any "
        "distribution of the set."
    )


def _whatever_known(_: Terms) -> str:
    return "This holds whatever was known or believed before, and however the values are distributed."


def _belief(terms: Terms) -> str:
    return f"any belief about {terms.secret}"


def _belief_given(terms: Terms) -> str:
    if terms.columns == 1:
        return _belief(terms)
    return (
        f"any belief about {terms.secret}, held by someone who knows the true values of some columns or none,"
    )


def _odds_of_secret(terms: Terms) -> str:
    return f"the odds between any two values of {terms.secret}"


def _odds_of_public(terms: Terms) -> str:
    return f"the odds between any two true values of {terms.public}"


def _odds_near(terms: Terms) -> str:
    return f"the odds between any two values of {terms.secret}, under any distribution of the set,"


_FACTOR, _ODDS = "ln P(s | y) / P(s)", "the logarithm of how the odds of s change"

LIP = Wording(
    "Local information privacy", "lip", "ε = {}",
    "exp(−ε) ≤ P(s | y) / P(s) ≤ exp(ε) for every secret value s and every released y [DS, Definition 2]",
    _FACTOR, _lip, _each_record, _belief, _knows_the_table, _nothing_else, beyond.not_the_columns,
    beyond.starts_from_table,
    factor, within_factor,
)  # fmt: skip
LDP = Wording(
    "Local differential privacy of the secret", "ldp", "ε = {}",
    "P(y | s) ≤ exp(ε) · P(y | s′) for all secret values s, s′ and every released y [DS, Definition 1]",
    _ODDS, _ldp, _each_record, _odds_of_secret, _any_belief, _whatever_believed, beyond.not_the_columns,
    beyond.knows_the_values,
    odds, within_odds,
)  # fmt: skip
PERFECT = Wording(
    "Perfect privacy", "lip", "exactly 0",
    "P(s | y) = P(s) for every secret value s and every released y",
    _FACTOR, _perfect, _each_record, _belief, _any_belief, _whatever_believed, beyond.not_the_columns,
    beyond.independent,
    factor, within_factor,
)  # fmt: skip
SRLIP = Wording(
    "Local information privacy with side knowledge", "srlip", "ε = {}",
    "exp(−ε) ≤ P(y | s, x_J) / P(y | x_J) ≤ exp(ε) for every secret value s, every released y, every set J of released "
    "columns, the empty one among them, and all true values x_J of these that occur [DS, Definition 3]",
    _FACTOR, _srlip, _each_record, _belief_given, _knows_columns, _some_columns, beyond.not_the_columns,
    beyond.starts_from_columns, factor, within_factor,
)  # fmt: skip
LDP_X = Wording(
    "Local differential privacy", "ldp_x", "ε = {}",
    "Q(y | x) ≤ exp(ε) · Q(y | x′) for all true values x, x′ and every released y [RLDP, Definition 2]",
    _ODDS, _ldp_x, _each_record, _odds_of_public, _anyone, _whatever_known, beyond.the_columns_too, beyond.covered,
    odds, within_odds,
)  # fmt: skip
RLDP = Wording(
    "Robust local differential privacy of the secret", "rldp", "ε = {}",
    "P(y | s) ≤ exp(ε) · P(y | s′) for all secret values s, s′, every released y and every distribution P of the "
    "uncertainty set [RLDP, Definition 1]",
    _ODDS, _rldp, _each_distribution, _odds_near, _any_near_belief, _whatever_near, beyond.not_the_columns,
    beyond.outside_the_set, odds, within_odds,
)  # fmt: skip
