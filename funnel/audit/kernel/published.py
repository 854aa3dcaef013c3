"""Claims about the published files: what they say by themselves, and of each other."""

from __future__ import annotations

import re
from fractions import Fraction

from funnel.audit.kernel.exact import rational
from funnel.audit.kernel.files import holds_only, unchanged
from funnel.audit.kernel.notions import NOTIONS, STEP
from funnel.audit.kernel.opened import Opened
from funnel.audit.kernel.verdict import Broken, counted, shown
from funnel.format import manifest, protocol, released

_NEAR = 1e-9
REPORTS = ("report.json", "report.html")


def stated(opened: Opened) -> str:
    """release.json has its form, and its parts fit each other."""
    one = opened.manifest
    columns = [name for block in one.public for name in block]
    private = (one.estimate.epsilon, one.estimate.estimates, one.estimate.spent)
    notion = NOTIONS.get(one.notion, NOTIONS["lip"])
    named = {key for key, value in vars(one.parameters).items() if value is not None}
    for what, holds in (
        ("notion", one.notion in NOTIONS),
        ("parameters", named <= notion.parameters),
        ("created", re.sub("[-:]", "", one.created) == one.release[:16]),
        ("public", columns and all(one.public) and len(set(columns)) == len(columns)),
        ("sensitive", one.sensitive and len(set(one.sensitive)) == len(one.sensitive)),
        ("epsilon", (one.epsilon > 0) != (one.notion == "perfect")),
        ("split", len(one.split) == len(one.public) and all(one.split) and abs(sum(one.split) - 1) <= _NEAR),
        ("alphabet", len(one.public) == len(one.alphabet.public) == len(one.alphabet.released)),
        ("draws", (one.draws.kind == "permanent") == (one.draws.key_fingerprint is not None)),
        ("estimate", all((value is not None) == (one.estimate.kind == "private") for value in private)),
        ("leakage", set(one.leakage) == {"lip", "ldp", "mutual_information", notion.measure}),
        ("files", set(one.files) == {one.data, protocol.NAME, released.NAME, *REPORTS}),
        ("rows", one.rows > 0),
    ):
        if not holds:
            raise Broken(manifest.NAME, f"{what} does not fit the rest", what, getattr(one, what))
    _rounded(one)
    return f"{one.release}, {counted(one.rows, 'row')}, {shown(', '.join(columns))}"


def _rounded(one: manifest.Manifest) -> None:
    """Figures have four decimals, for more would tell counts; a leakage may be epsilon itself. Raises Broken."""
    figures = [
        *one.leakage.values(),
        *vars(one.utility).values(),
        *((one.composed.leakage,) if one.composed else ()),
    ]
    figures += [candidate.normalised for candidate in one.candidates or ()]
    for figure in figures:
        if figure is not None and figure != one.epsilon and (rational(figure) / STEP).denominator != 1:
            raise Broken(
                manifest.NAME, "a figure has too many decimals", f"{manifest.DECIMALS} decimals", figure
            )


def listed(opened: Opened) -> str:
    """The folder holds release.json, the files that it lists, release.sig if it is signed, and nothing else."""
    names = {
        manifest.NAME,
        *opened.manifest.files,
        *((manifest.SIGNATURE,) if opened.manifest.signed else ()),
    }
    holds_only(opened.release, names)
    return counted(len(names), "file")


def hashed(opened: Opened) -> str:
    """Every listed file has the size and SHA-256 that release.json states."""
    return unchanged(opened.release, opened.manifest.files)


def protocols(opened: Opened) -> str:
    """See `sound.blocks`."""
    sizes = (f"{len(one.inputs)} to {one.outputs} at 2^{one.bits}" for one in opened.blocks)
    return f"{counted(len(opened.blocks), 'block')}: {', '.join(sizes)}"


def answered(opened: Opened) -> str:
    """See `sound.answers`."""
    return f"{counted(len(opened.answers), 'distinct row')} for {counted(opened.manifest.rows, 'record')}"


def promised(opened: Opened) -> str:
    """The stated leakage, which other claims show to be at least the true one, is at most epsilon."""
    one = opened.manifest
    measure = NOTIONS[one.notion].measure
    figure = one.leakage[measure]
    if figure is None or Fraction(figure) > Fraction(one.epsilon):
        raise Broken(manifest.NAME, f"the stated {measure} leakage is above epsilon", one.epsilon, figure)
    return f"{measure} {figure} <= {one.epsilon} nats"
