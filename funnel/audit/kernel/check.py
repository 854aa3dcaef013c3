"""Every claim that the kernel looks at. What a claim says is the first line of the function that checks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from funnel.audit.kernel import claims, drawing
from funnel.audit.kernel.opened import Opened
from funnel.audit.kernel.verdict import CHANCE, NEEDS_PRIVATE, Broken, Finding, Unchecked, printable, shown

_FILES = (claims.manifest, claims.file_list, claims.file_hashes, claims.protocol, claims.released, claims.stated_bound)
_COUNTS = (claims.evidence, claims.counts, claims.minimum, claims.known, claims.leakage_bound, claims.leakage_stated)
_DRAWS = (drawing.draw_inputs, drawing.draw_outputs, drawing.draw_support, drawing.draw_fit, drawing.draw_independence)
_LEDGER = (claims.ledger_chain, claims.ledger_entry)
Claims = dict[str, Callable[[Opened], str | Unchecked]]
PUBLISHED: Claims = {one.__name__.replace("_", "-"): one for one in _FILES}
"""Claims that the published files can prove or refute by themselves."""
PRIVATE: Claims = {one.__name__.replace("_", "-"): one for one in (*_COUNTS, *_DRAWS, *_LEDGER)}
"""Claims that need the counts, the draws or the ledger."""
LEFT = (
    "the data file, names of columns and labels in it, both reports and what catalogues read: their hashes are stated,"
    " and whatever stands in them, in words or numbers, passes here (extras write them again)",
    "what cells.json, distances.json and known.json say of columns inside cells, and of values before any are merged",
    "whether the policy asks for what is promised, and for these files, and its lock fixed the protocol; drift.json",
    "the form of the mechanism, utility and its bound, totals that stay, and I(S;Y) where no notion bounds it",
    "which values a private estimate is about, the counts of which hour, their noise, and what estimates spent",
    "the leakage at the true counts beside noisy ones, and at other tables whose beliefs round alike",
    "how far the whole table moves beliefs about one of its rows; whether an uncertainty set is as large as it says",
    "how the composed leakage was worked out, the budget, what was drawn for whom, who is absent; all earlier entries",
    "whether people, columns and values are those of earlier releases, as far as private digests show",
    "whether draws are too even, and permanent ones follow from the key; free text; a signature, what is the newest",
)
"""What the kernel compares with nothing, beside hashes."""
UNKNOWABLE = (
    "that counts.json, known.json (what may be known) and population.json (who is in which release) are the source's",
    "whose rows they are, and that people, columns and values of several releases are the same",
    "that draws, noise, keys and seeds were not chosen among several, and no draw or noise was used a second time",
    "that answers stand beside the keys of those for whom they were drawn",
    "that permanent draws follow from the key that is named, and who else holds it",
    "that the ledger is whole: whoever can write the private folder can write it anew, but for lines that something"
    " signed names",
    "what is released about the same people elsewhere, or known of them",
)
"""What nobody can know from these files; the first can be known from the source."""
ITEM = "\n  - "
NOBODY = "Nobody can know from the files:"
"""The one sentence for it, whoever audits."""


def findings(opened: Opened, claims: Claims = PUBLISHED | PRIVATE) -> Iterator[Finding]:
    """One for each claim. What breaks a claim breaks none of those that rest on it: they were not looked at."""
    for claim, test in claims.items():
        title = (test.__doc__ or claim).partition("\n")[0].rstrip(".")
        if claim in PRIVATE and opened.private is None:
            yield Finding(claim, title, "not checked", NEEDS_PRIVATE)
            continue
        try:
            told = test(opened)
        except Exception as error:  # noqa: BLE001 - whatever a file makes a check stumble over
            first = opened.blamed.setdefault(error, claim)
            stumbled = f"the check came to no end: {type(error).__name__}: {shown(str(error))}"
            if first != claim:
                yield Finding(claim, title, "not checked", f"rests on {first}, which does not hold")
            else:
                told = str(error) if isinstance(error, Broken) else stumbled
                yield Finding(claim, title, "failed", told, getattr(error, "improbable", False))
        else:
            unchecked = isinstance(told, Unchecked)
            yield Finding(claim, title, "not checked" if unchecked else "passed", getattr(told, "reason", str(told)))


def unbounded(opened: Opened) -> str | None:
    """What is said before any verdict: that all releases so far have no finite bound; None where they have one."""
    try:
        secret, composed = opened.manifest.sensitive, opened.manifest.composed
    except Exception:  # noqa: BLE001 - release.json cannot be read, and its own claim fails
        return None
    if composed is None or composed.leakage is not None:
        return None
    tells = "this release tells by who is in it" if composed.releases == 1 else "all releases so far tell together"
    return f"No finite bound is known: what {tells} about {printable(' + '.join(secret))} may be everything"


def verdict(found: list[Finding], first: str | None = None) -> str:
    """What is to be said `first`, what holds, what was compared with nothing, and what nobody can know."""
    failed = ", ".join(one.claim for one in found if one.status == "failed")
    chance = ", ".join(one.claim for one in found if one.improbable)
    waiting = ", ".join(one.claim for one in found if one.status == "not checked" and one.claimed)
    lines = [
        first,
        f"FAILS: {failed}" if failed else "every claim that was compared holds",
        f"{chance}: {CHANCE}" if chance else None,
        f"not checked: {waiting}" if waiting else None,
        ITEM.join(["compared with nothing here:", *LEFT]),
        ITEM.join([NOBODY, *UNKNOWABLE]),
    ]
    return "\n".join(line for line in lines if line)
