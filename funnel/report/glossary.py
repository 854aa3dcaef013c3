"""Words that a reader without statistics needs, and the papers that the report cites."""

from __future__ import annotations

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
)


def glossary(*, ceiling: bool) -> list[dict[str, str]]:
    """Term and meaning, in reading order; the ceiling only where the report has one."""
    return [{"term": term, "meaning": meaning} for term, meaning in TERMS if ceiling or term != CEILING]


def papers() -> list[dict[str, str]]:
    """Tag and title of each paper cited."""
    return [{"tag": tag, "title": title} for tag, title in PAPERS]
