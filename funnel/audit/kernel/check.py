"""Every claim that the kernel looks at, in the order in which they rest on each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from funnel.audit.kernel import drawing, figures, ledger, noise, private, published
from funnel.audit.kernel.opened import Opened
from funnel.audit.kernel.verdict import NEEDS_PRIVATE, Broken, Finding, Unchecked

Check = Callable[[Opened], str | Unchecked]

PUBLISHED: dict[str, tuple[str, Check]] = {
    "manifest": ("release.json is whole, of a known version, and its parts fit", published.stated),
    "file-list": ("the folder holds the manifest and the files it lists, and nothing else", published.listed),
    "file-hashes": ("every listed file has the stated size and SHA-256", published.hashed),
    "protocol": (
        "the protocol is sound: distinct labels, whole weights that sum to 2^bits",
        published.protocols,
    ),
    "released": (
        "the released values are what the protocol can produce, as many as stated",
        published.answered,
    ),
    "stated-bound": ("the leakage that the manifest states keeps the bound it promises", published.promised),
}
"""Claims that the published files can prove or refute by themselves."""
PRIVATE: dict[str, tuple[str, Check]] = {
    "evidence": ("the private files are whole and belong to this release", private.belonging),
    "policy-terms": ("the manifest states what the policy's terms ask for", private.asked),
    "lock": ("the protocol is, weight by weight, the one that the lock fixed", private.pinned),
    "counts": (
        "the counts are of the protocol's inputs, for as many records as stated",
        private.counted_right,
    ),
    "minimum": ("every public value has at least the promised number of records", private.enough),
    "estimate-noise": ("the counts that claims are about have the noise of a private estimate", noise.lawful),
    "estimate-spent": (
        "what private estimates of these people have spent is what the ledger says",
        noise.spent,
    ),
    "uncertainty": (
        "the set of distributions protected against is as large as its confidence asks",
        noise.confident,
    ),
    "leakage-bound": (
        "the leakage of the channel released, measured exactly, keeps the bound",
        figures.bounded,
    ),
    "leakage-stated": (
        "the manifest's leakage is the exact one, rounded up at the fourth decimal",
        figures.stated,
    ),
    "information-stated": (
        "the manifest's I(S;Y) is the true one, rounded up at the fourth decimal",
        figures.informed,
    ),
    "utility-stated": ("the manifest's I(X;Y), H(X) and their ratio are the true ones", figures.useful),
    "draw-inputs": ("every record was drawn for exactly once, in every block", drawing.every_record),
    "draw-outputs": ("the drawn values are those that were released", drawing.into_table),
    "draw-support": ("nothing was drawn that the protocol gives no weight", drawing.possible),
    "draw-fit": ("within each block the draws follow the protocol's chances", drawing.fits),
    "draw-independence": (
        "across blocks the draws are as independent as the channel says",
        drawing.independent,
    ),
    "ledger-chain": ("the ledger's chain of hashes is unbroken", ledger.unbroken),
    "ledger-entry": (
        "the ledger has one entry for this release, with its hashes and figures",
        ledger.entered,
    ),
    "ledger-budget": (
        "what this release and all before it tell together is within the budget",
        ledger.affordable,
    ),
}
"""Claims that need the counts, the draws or the ledger."""
LEFT = (
    "whether the data file and the reports are those of released.json; the bound on utility; whether policy.yaml"
    " reads as terms.json says; how the composed leakage was worked out; a signature"
)
"""What the kernel does not look at, beside the hashes."""
UNKNOWABLE = (
    "that the counts are the source's; that nobody drew or estimated several times and chose; who else holds the key; "
    "what is released about the same people elsewhere"
)
"""What nobody can know from these files."""


def check(release: Path, private_folder: Path | None = None, *, staged: bool = False) -> list[Finding]:
    """One finding for each claim. `staged`: the release is being written, and what the ledger says waits."""
    return [*findings(Opened(release, private_folder, staged=staged))]


def findings(opened: Opened) -> Iterator[Finding]:
    """The same, one by one. What breaks a claim breaks none of those that rest on it: they were not looked at."""
    blamed: dict[str, str] = {}
    for claim, (title, test) in (PUBLISHED | PRIVATE).items():
        if claim in PRIVATE and opened.private is None:
            yield Finding(claim, title, "not checked", NEEDS_PRIVATE)
            continue
        try:
            told = test(opened)
        except Broken as broken:
            first = blamed.setdefault(str(broken), claim)
            if first == claim:
                yield Finding(claim, title, "failed", str(broken))
            else:
                yield Finding(claim, title, "not checked", f"rests on {first}, which does not hold")
        except (ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
            yield Finding(
                claim, title, "failed", f"the check came to no end: {type(error).__name__}: {error}"
            )
        else:
            if isinstance(told, Unchecked):
                yield Finding(claim, title, "not checked", told.reason)
            else:
                yield Finding(claim, title, "passed", told)


def verdict(found: list[Finding]) -> str:
    """What was shown, what was not looked at, and what nobody can know."""
    failed = [one.claim for one in found if one.status == "failed"]
    waiting = [one.claim for one in found if one.status == "not checked" and one.claimed]
    lines = [f"FAILS: {', '.join(failed)}" if failed else "every claim that was looked at holds"]
    if waiting:
        lines.append(f"not checked: {', '.join(waiting)}")
    return "\n".join(
        [*lines, f"not looked at here: {LEFT}", f"nobody can know from these files: {UNKNOWABLE}"]
    )
