"""Words that a reader without statistics needs, and the papers that the report cites."""

from __future__ import annotations

from collections.abc import Sequence

CEILING = "Proven ceiling"

TERMS: tuple[tuple[str, str], ...] = (
    (
        "Record",
        "One row of the table: one person, or one event, as the source has it.",
    ),
    (
        "Secret, S",
        "The sensitive attribute: the column, or columns together, that the release must not give away. s "
        "is one of its values.",
    ),
    (
        "Public values, X",
        "The true values of the columns that are released in sanitised form. x is one of them.",
    ),
    (
        "Released values, Y",
        "What the table shows in place of the true values. y is one of them.",
    ),
    (
        "Block",
        "Columns that are sanitised together, as one value.",
    ),
    (
        "Protocol, Q",
        "The fixed chances Q(y | x) with which a true value x is replaced by a released value y, for every "
        "record on its own.",
    ),
    (
        "Belief before and after",
        "The probability P(s) that someone gives to a secret value without having seen the release, and P(s"
        " | y) after seeing released values y (prior and posterior).",
    ),
    (
        "Odds",
        "The probability of one value divided by that of another.",
    ),
    (
        "ε (epsilon)",
        "The bound that was promised. exp(ε) is the factor by which beliefs or odds may change. Smaller is "
        "more private.",
    ),
    (
        "Nat",
        "The unit of information and leakage here: natural logarithms. One nat is 1.44 bits; a factor f is "
        "ln f nats.",
    ),
    (
        "LIP",
        "Local information privacy: bounds the factor by which any belief changes, up or down.",
    ),
    (
        "LDP",
        "Local differential privacy of the secret: bounds the factor by which the odds between any two "
        "values of the secret change.",
    ),
    (
        "Leakage",
        "The largest such change that the released table really allows, as a natural logarithm, computed "
        "from whole numbers and rounded up.",
    ),
    (
        "Mutual information",
        "I(S;Y) and I(X;Y): how much released values say, in an average record, about the secret and about "
        "the true values. 0 means nothing.",
    ),
    (
        "Entropy, H(X)",
        "All the information that the true values hold. I(X;Y) / H(X) is the share that is kept.",
    ),
    (
        CEILING,
        "A proven limit of usefulness: no protocol that keeps the promise and draws from the true public values "
        "alone can keep more information.",
    ),
    (
        "Rank",
        "How many independent figures about the true values can be worked out from the released ones.",
    ),
    (
        "Permanent and fresh draws",
        "Permanent: a record gives the same answer every time under the same key, the same protocol and the "
        "same true values; when counts change, the protocol is solved anew. Fresh: every release draws anew.",
    ),
    (
        "SHA-256",
        "A fingerprint of a file: if one letter changes, so does the fingerprint.",
    ),
)

OWN: dict[str, dict[str, str]] = {
    "srlip": {
        "SRLIP": "Side-channel resistant LIP: the same bound also for those who know the true values of some released "
        "columns. x_J are the true values of the columns in J.",
    },
    "ldp-x": {
        "LDP": "Local differential privacy. Of the true values: bounds the factor by which the odds between any two "
        "true values change. Of the secret: the same for the odds between two values of the secret, which follows.",
    },
    "rldp": {
        "RLDP": "Robust LDP: bounds the factor by which the odds between two values of the secret change, for every "
        "distribution of an uncertainty set.",
        "Uncertainty set": "The distributions near the counted one that the truth may be, since the counts are those "
        "of a limited number of records.",
        "Rényi divergence": "A measure of how far one distribution lies from another; 0 for equal ones.",
    },
    "mutual-information": {
        "ε (epsilon)": "The bound that was promised, in nats, of the information I(S;Y) that an average record gives "
        "away about the secret. Smaller is more private.",
    },
}
"""Words that one notion needs, or needs in another meaning."""

PAPERS: tuple[tuple[str, str], ...] = (
    (
        "[DS]",
        "M. Lopuhaä-Zwakenberg, H. Tong, B. Škorić: Data Sanitisation Protocols for the Privacy Funnel with"
        " Differential Privacy Guarantees",
    ),
    (
        "[PF]",
        "A. Makhdoumi, S. Salamatian, N. Fawaz, M. Médard: From the Information Bottleneck to the Privacy "
        "Funnel",
    ),
    (
        "[RLDP]",
        "M. Lopuhaä-Zwakenberg, J. Goseling: Mechanisms for Robust Local Differential Privacy",
    ),
)


def glossary(notion: str, *, ceiling: bool) -> list[dict[str, str]]:
    """Term and meaning, in reading order; the ceiling only where the report has one, and the notion's own words."""
    own = OWN.get(notion, {})
    terms = {term: own.get(term, meaning) for term, meaning in TERMS if ceiling or term != CEILING}
    return [{"term": term, "meaning": meaning} for term, meaning in (terms | own).items()]


def papers(citing: Sequence[str]) -> list[dict[str, str]]:
    """Tag and title of each paper that one of the texts cites."""
    cited = " ".join(citing)
    return [{"tag": tag, "title": title} for tag, title in PAPERS if tag[:-1] in cited]
