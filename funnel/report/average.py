"""The words of notions that bound an average over all records, and promise nothing for a single one."""

from __future__ import annotations

from funnel.report.figures import nats_unit
from funnel.report.terms import Terms, Wording, factor


def _promise(terms: Terms) -> str:
    return (
        f"On average over all records, the released values tell at most {nats_unit(terms.epsilon)} of information "
        f"about {terms.secret}; about a single record they can tell more."
    )


def _strength(terms: Terms) -> str:
    return (
        "The promise is about an average: it weighs every record and every released value by how often it occurs. It "
        "sets no bound for a single record or a single released value, and a rare one may even give the secret away; "
        "the strongest change that this release allows was measured, and is shown below. Where each "
        f"person’s {terms.secret} must be protected, this promise is not enough."
    )


def _subject(terms: Terms) -> str:
    return f"what an average record tells about {terms.secret}"


def _observer(terms: Terms) -> str:
    return (
        "The promise is made against someone who knows how all values are distributed in the table, sees "
        "the released values and knows how they were drawn, but knows nothing else about the person. "
        f"Before looking, such a person gives each value of {terms.secret} its frequency in the table. What "
        "is bounded is how much surer the released values make them, measured as information and averaged "
        "over all records."
    )


def _condition(_: Terms) -> str:
    return (
        "This holds for someone who knows how the values are distributed in the table, and nothing else about the "
        "person. It is an average: no bound is promised for any one person, and single records may be "
        "affected much more than the average."
    )


def _recognised(terms: Terms) -> str:
    return (
        f"what they say about {terms.secret} is bounded on average over all records only, not for "
        "this record; what they say about the released columns is not bounded."
    )


def _elsewhere(terms: Terms) -> str:
    return (
        "The promise is about someone who starts from the frequencies in the table, and about the average of all "
        "records. For someone who already knows more about the person (that they are one of a few, say, or another "
        "column), or who starts from another belief, it promises nothing. Nor does it bound what the true "
        f"values of {terms.public} say about {terms.secret} to someone who knows them already."
    )


MUTUAL_INFORMATION = Wording(
    "Mutual information, an average", "mutual_information", "I(S;Y) ≤ {}",
    "I(S;Y) = Σ P(s, y) · ln( P(s | y) / P(s) ) ≤ ε, the sum taken over all secret values s and released y [PF]",
    "ln P(s | y) / P(s)", _promise, _strength, _subject, _observer, _condition, _recognised, _elsewhere, factor, None,
)  # fmt: skip
