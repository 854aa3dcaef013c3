"""Claims about the published files: what they say by themselves, and of each other."""

from __future__ import annotations

import re
from fractions import Fraction

from funnel.audit.kernel.exact import rational
from funnel.audit.kernel.files import holds_only
from funnel.audit.kernel.notions import NOTIONS, STEP
from funnel.audit.kernel.opened import Opened
from funnel.audit.kernel.verdict import Broken, counted, shown
from funnel.format import manifest, protocol, released

_NEAR = 1e-9
_REPORTS = ("report.json", "report.html")


def stated(opened: Opened) -> str:
    """release.json is whole, of a known version, and its parts fit.

    Figures have four decimals, for more would tell counts; a leakage may be epsilon itself.
    """
    one = opened.manifest
    notion = NOTIONS.get(one.notion, NOTIONS["lip"])
    columns = [name for block in one.public for name in block]
    named = {key for key, value in vars(one.parameters).items() if value is not None}
    private = (one.estimate.epsilon, one.estimate.estimates, one.estimate.spent)
    composed = (one.composed.leakage,) if one.composed else ()
    shares = (candidate.normalised for candidate in one.candidates or ())
    rounded = {*one.leakage.values(), *vars(one.utility).values(), *composed, *shares} - {None, one.epsilon}
    for what, holds in (
        ("notion", one.notion in NOTIONS),
        ("parameters", notion.required <= named <= notion.parameters),
        ("parameters", one.parameters.confidence not in (0, 1) and one.parameters.order != 0),
        ("created", re.sub("[-:]", "", one.created) == one.release[:16]),
        ("public", columns and all(one.public) and len(set(columns)) == len(columns)),
        ("sensitive", one.sensitive and len(set(one.sensitive)) == len(one.sensitive)),
        ("epsilon", (one.epsilon > 0) != (one.notion == "perfect")),
        ("split", len(one.split) == len(one.public) and all(one.split) and abs(sum(one.split) - 1) <= _NEAR),
        ("alphabet", len(one.public) == len(one.alphabet.public) == len(one.alphabet.released)),
        ("draws", (one.draws.kind == "permanent") == (one.draws.key_fingerprint is not None)),
        ("estimate", all((value is not None) == (one.estimate.kind == "private") for value in private)),
        ("leakage", set(one.leakage) == {"lip", "ldp", "mutual_information", notion.measure}),
        ("utility", all((rational(figure) / STEP).denominator == 1 for figure in rounded if figure is not None)),
        ("files", set(one.files) == {one.data, protocol.NAME, released.NAME, *_REPORTS}),
        ("rows", one.rows > 0),
    ):
        if not holds:
            raise Broken(manifest.NAME, f"{what} does not fit the rest", what, getattr(one, what))
    return f"{one.release}, {counted(one.rows, 'row')}, {shown(', '.join(columns))}"


def listed(opened: Opened) -> str:
    """The folder holds the manifest, the files it lists, release.sig if it is signed, and nothing else."""
    signature = (manifest.SIGNATURE,) if opened.manifest.signed else ()
    holds_only(opened.release, {manifest.NAME, *opened.manifest.files, *signature})
    return counted(len(opened.manifest.files), "listed file")


def hashed(opened: Opened) -> str:
    """Every listed file has the stated size and SHA-256."""
    return opened.unchanged(opened.release, opened.manifest.files)


def protocols(opened: Opened) -> str:
    """The protocol is sound, labels distinct and whole weights that sum to 2^bits, and as the manifest states it."""
    sizes = (f"{len(one.inputs)} to {one.outputs} at 2^{one.bits}" for one in opened.blocks)
    return f"{counted(len(opened.blocks), 'block')}: {', '.join(sizes)}"


def answered(opened: Opened) -> str:
    """The released values are ones that the protocol can produce, as many as the manifest states."""
    return f"{counted(len(opened.answers), 'distinct row')} for {counted(opened.manifest.rows, 'record')}"


def promised(opened: Opened) -> str:
    """The leakage that the manifest states, which leakage-stated shows to be the true one, is at most epsilon."""
    one = opened.manifest
    measure = NOTIONS[one.notion].measure
    figure = one.leakage[measure]
    if figure is None or Fraction(figure) > Fraction(one.epsilon):
        raise Broken(manifest.NAME, f"the stated {measure} leakage is above epsilon", one.epsilon, figure)
    return f"{measure} {figure} <= {one.epsilon} nats"
