"""Every claim that the kernel looks at. What a claim says is the first line of the function that checks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from funnel.audit.kernel import claims, drawing
from funnel.audit.kernel.opened import Opened
from funnel.audit.kernel.verdict import (
    CHANCE,
    NEEDS_PRIVATE,
    Broken,
    Finding,
    Improbable,
    Unchecked,
    printable,
    shown,
)

PUBLISHED: dict[str, Callable[[Opened], str | Unchecked]] = {
    "manifest": claims.manifest_whole,
    "file-list": claims.listed,
    "file-hashes": claims.hashed,
    "protocol": claims.protocols,
    "released": claims.answered,
    "stated-bound": claims.promised,
}
"""Claims that the published files can prove or refute by themselves."""
PRIVATE: dict[str, Callable[[Opened], str | Unchecked]] = {
    "evidence": claims.belonging,
    "counts": claims.counts_fit,
    "minimum": claims.enough,
    "known": claims.knowing,
    "leakage-bound": claims.bounded,
    "leakage-stated": claims.stated,
    "draw-inputs": drawing.every_record,
    "draw-outputs": drawing.into_table,
    "draw-support": drawing.possible,
    "draw-fit": drawing.fits,
    "draw-independence": drawing.independent,
    "ledger-chain": claims.unbroken,
    "ledger-entry": claims.entered,
}
"""Claims that need the counts, the draws or the ledger."""
LEFT = (
    "the data file, both reports and what catalogues read: their hashes are stated, and whatever stands in them, in"
    " words or numbers, passes here (extras write them again)",
    "what cells.json, distances.json and known.json say of columns inside cells",
    "whether the policy asks for what release.json promises, and its lock fixed this protocol",
    "the form of the mechanism, utility and its bound, totals that stay, and I(S;Y) where no notion bounds it",
    "which values a private estimate is about, the counts of which hour, their noise, and what estimates spent",
    "the leakage at the true counts beside noisy ones, and at other tables whose beliefs round alike",
    "how far the whole table moves beliefs about one of its rows",
    "whether an uncertainty set is as large as its confidence asks",
    "how the composed leakage was worked out, the budget, what the ledger says was drawn for whom, and who is absent",
    "whether people, columns and values are those of earlier releases, as far as private digests show",
    "whether draws are too even, and permanent ones follow from the key",
    "names, descriptions and other free text",
    "a signature",
)
"""What the kernel compares with nothing, beside hashes."""
UNKNOWABLE = (
    "that the counts are the source's",
    "whose rows they are, and that people, columns and values of several releases are the same",
    "that draws, noise, keys and seeds were made once, and not several times to choose from",
    "that answers stand beside the keys of those for whom they were drawn",
    "who else holds the key",
    "that the ledger is whole: a chain without an anchor, which whoever can write the private folder can write anew",
    "what is released about the same people elsewhere, or known of them",
)
"""What nobody can know from these files; the first can be known from the source."""
NOBODY = "Nobody can know from the files: {}."
"""The one sentence for it, whoever audits."""


def check(release: Path, private_folder: Path | None = None, *, staged: bool = False) -> list[Finding]:
    """One finding for each claim. `staged`: the release is being written, and what the ledger says waits."""
    return [*findings(Opened(release, private_folder, staged=staged))]


def findings(opened: Opened) -> Iterator[Finding]:
    """The same, one by one. What breaks a claim breaks none of those that rest on it: they were not looked at."""
    for claim, test in (PUBLISHED | PRIVATE).items():
        title = (test.__doc__ or claim).partition("\n")[0].rstrip(".")
        if claim in PRIVATE and opened.private is None:
            yield Finding(claim, title, "not checked", NEEDS_PRIVATE)
            continue
        try:
            told = test(opened)
        except Exception as error:  # noqa: BLE001 - whatever a file makes a check stumble over
            first = opened.blamed.setdefault(error, claim)
            if first != claim:
                yield Finding(claim, title, "not checked", f"rests on {first}, which does not hold")
                continue
            told = f"the check came to no end: {type(error).__name__}: {shown(str(error))}"
            said = str(error) if isinstance(error, Broken) else told
            yield Finding(claim, title, "failed", said, isinstance(error, Improbable))
        else:
            unchecked = isinstance(told, Unchecked)
            yield Finding(claim, title, "not checked" if unchecked else "passed", getattr(told, "reason", str(told)))


def unbounded(opened: Opened) -> str | None:
    """What is to be said before any verdict: that all releases so far have no finite bound; None where they have one.

    Where release.json cannot be read, nothing: its own claim fails.
    """
    try:
        stated = opened.manifest
    except Exception:  # noqa: BLE001 - whatever a file makes a reader stumble over
        return None
    if stated.composed is None or stated.composed.leakage is not None:
        return None
    alone = stated.composed.releases == 1
    tells = "this release tells by who is in it" if alone else "all releases so far tell together"
    return f"No finite bound: what {tells} about {printable(' + '.join(stated.sensitive))} may be everything"


def verdict(found: list[Finding], first: str | None = None) -> str:
    """What is to be said `first`, what holds, what was compared with nothing, and what nobody can know."""
    failed = [one.claim for one in found if one.status == "failed"]
    chance = [one.claim for one in found if one.improbable]
    waiting = [one.claim for one in found if one.status == "not checked" and one.claimed]
    lines = [*([first] if first else [])]
    lines.append(f"FAILS: {', '.join(failed)}" if failed else "every claim that was compared holds")
    if chance:
        lines.append(f"{', '.join(chance)}: {CHANCE}")
    if waiting:
        lines.append(f"not checked: {', '.join(waiting)}")
    lines += [f"compared with nothing here: {'; '.join(LEFT)}", NOBODY.format("; ".join(UNKNOWABLE))]
    return "\n".join(lines)
