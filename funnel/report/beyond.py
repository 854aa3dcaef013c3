"""What a worst-case promise does not say: about people who are recognised, and against those who know more."""

from __future__ import annotations

from funnel.report.figures import factor_text
from funnel.report.terms import Terms


def not_the_columns(terms: Terms) -> str:
    """Where the secret is released too, only the other columns are without a bound."""
    bounded = f"what they say about {terms.secret} is what the promise bounds"
    if not terms.others:
        return f"{bounded}."
    which = "released columns" if terms.others == terms.public else "other released columns"
    return f"{bounded}; what they say about the {which} is not bounded."


def the_columns_too(terms: Terms) -> str:
    """Of the usual LDP."""
    return f"what they say about {terms.public}, and so about {terms.secret}, is what the promise bounds."


def starts_from_table(terms: Terms) -> str:
    """Of LIP: [DS] Lemma 1 gives 2ε-LDP, which holds for every belief about S."""
    return (
        "The promise is about someone who starts from the frequencies in the table. Someone who "
        "already knows more about the person (that a true public value is one of a few, say, or another "
        "column) starts from another belief, and for them the change may be larger. For someone who differs "
        f"only in how likely they hold each {terms.secret}, and takes the true values to be distributed for each "
        "as in the table, it is at most the square of the factor promised: "
        f"{factor_text(2 * terms.epsilon)}. {already(terms)}"
    )


def starts_from_columns(terms: Terms) -> str:
    """Of SRLIP: the same given x_J; conditions without records are not bounded."""
    if terms.columns == 1:
        return starts_from_table(terms)
    return (
        "The promise covers those who know the true values of some released columns exactly. It does not hold as "
        "stated for other knowledge about the person: that a true value is one of a few, say, or a column that is not "
        "released. Such a person starts from another belief, and for them the change may be larger. For someone who "
        f"differs only in how likely they hold each {terms.secret}, given what they know, it is at most the square of "
        f"the factor promised: {factor_text(2 * terms.epsilon)}. {already(terms)} A condition that no record "
        "meets (a combination of true values that does not occur in the table) puts no constraint on the release: "
        "the promise says nothing about it."
    )


def already(terms: Terms) -> str:
    """What X itself says about S is no matter of the release."""
    return (
        f"Nor does the promise bound what the true values of {terms.others or terms.public} "
        f"say about {terms.secret} to someone who knows them already."
    )


def knows_the_values(terms: Terms) -> str:
    """Of LDP with respect to S, which takes p(x|s) as known."""
    return (
        f"The promise holds whatever was believed about the person’s {terms.secret}. It does not hold as "
        "stated for someone who knows more about the person’s true public values than their "
        f"distribution among people with the same {terms.secret}: that knowledge changes how much the "
        "released values say."
    )


def outside_the_set(terms: Terms) -> str:
    """Of RLDP, which takes p(x|s) to be that of some distribution of the set."""
    return (
        f"{knows_the_values(terms)} Nor does it hold under a distribution that is not in the "
        f"set (that for the people of one town, say). {unseen(terms)}"
    )


def unseen(terms: Terms) -> str:
    """Values with zero estimated mass put no constraint."""
    what = "combination of true values" if terms.others != terms.public else "true value"
    return (
        f"A value of {terms.secret}, or a {what}, that no record has was taken to be impossible: it puts no "
        "constraint on the release, and nothing is promised about it."
    )


def covered(terms: Terms) -> str:
    """Of the usual LDP, which holds for any knowledge W with W - X - Y."""
    return (
        "Knowledge from elsewhere is covered: the promise bounds how far the released values can move anyone’s odds, "
        "whatever they are. It does not bound what that knowledge tells by itself, "
        f"nor what the true values of {terms.others or terms.public} say about {terms.secret} "
        "to someone who knows them already."
    )


def independent(terms: Terms) -> str:
    """Independence of S and Y is a fact about p(x|s), whatever the p(s); more knowledge of x undoes it."""
    secret = terms.secret
    return (
        f"With the table’s distribution of {secret} and the true values, the released values are independent of "
        f"{secret}: they have the same chances for each {secret}. So someone with any other belief about "
        f"{secret} alone, who takes the true values to be distributed for each {secret} as in the table, learns "
        "nothing either. Someone who knows more about the person’s true public values than that (that one of "
        "them is one of a few, say, or another column that goes with them) may learn something. "
        f"{already(terms)}"
    )
