"""Claims about the published files: what they say by themselves, and of each other."""

from __future__ import annotations

import re
from fractions import Fraction

from funnel.audit.kernel.exact import rational
from funnel.audit.kernel.files import holds_only
from funnel.audit.kernel.notions import NOTIONS, STEP
from funnel.audit.kernel.opened import Opened
from funnel.audit.kernel.verdict import Broken, counted, shown
from funnel.format import cells, protocol, released
from funnel.format.manifest import NAME, SIGNATURE

_NEAR = 1e-9
_REPORTS = ("report.json", "report.html")


def stated(opened: Opened) -> str:
    """release.json is whole, of a known version, and its parts fit.

    Figures have four decimals, for more would tell counts; a leakage may be epsilon itself.
    """
    manifest = opened.manifest
    notion = NOTIONS.get(manifest.notion, NOTIONS["lip"])
    columns = [name for block in manifest.public for name in block]
    keys = [key.name for key in manifest.identify]
    named = {key for key, value in vars(manifest.parameters).items() if value is not None}
    private = (manifest.estimate.epsilon, manifest.estimate.estimates, manifest.estimate.spent)
    composed = (manifest.composed.leakage,) if manifest.composed else ()
    shares = (candidate.normalised for candidate in manifest.candidates or ())
    rounded = {*manifest.leakage.values(), *vars(manifest.utility).values(), *composed, *shares}
    rounded -= {None, manifest.epsilon}
    split = manifest.split
    for what, holds in (
        ("notion", manifest.notion in NOTIONS),
        ("parameters", notion.required <= named <= notion.parameters),
        ("parameters", manifest.parameters.confidence not in (0, 1) and manifest.parameters.order != 0),
        ("created", re.sub("[-:]", "", manifest.created) == manifest.release[:16]),
        ("public", columns and all(manifest.public) and len(set(columns)) == len(columns)),
        ("sensitive", manifest.sensitive and len(set(manifest.sensitive)) == len(manifest.sensitive)),
        ("identify", len({*keys} - {*columns, *manifest.sensitive}) == len(keys)),
        ("epsilon", (manifest.epsilon > 0) != (manifest.notion == "perfect")),
        ("split", len(split) == len(manifest.public) and all(split) and abs(sum(split) - 1) <= _NEAR),
        ("alphabet", len(manifest.public) == len(manifest.alphabet.public) == len(manifest.alphabet.released)),
        ("draws", (manifest.draws.kind == "permanent") == (manifest.draws.key_fingerprint is not None)),
        ("estimate", all((value is not None) == (manifest.estimate.kind == "private") for value in private)),
        ("leakage", set(manifest.leakage) == {"lip", "ldp", "mutual_information", notion.measure}),
        ("utility", all((rational(figure) / STEP).denominator == 1 for figure in rounded if figure is not None)),
        ("files", set(manifest.files) - {cells.NAME} == {manifest.data, protocol.NAME, released.NAME, *_REPORTS}),
        ("rows", manifest.rows > 0),
    ):
        if not holds:
            raise Broken(NAME, f"{what} does not fit the rest", what, getattr(manifest, what))
    return f"{manifest.release}, {counted(manifest.rows, 'row')}, {shown(', '.join(columns))}"


def listed(opened: Opened) -> str:
    """The folder holds the manifest, the files it lists, release.sig if it is signed, and nothing else."""
    signature = (SIGNATURE,) if opened.manifest.signed else ()
    holds_only(opened.release, {NAME, *opened.manifest.files, *signature})
    return counted(len(opened.manifest.files), "listed file")


def hashed(opened: Opened) -> str:
    """Every listed file has the stated size and SHA-256."""
    return opened.unchanged(opened.release, opened.manifest.files)


def protocols(opened: Opened) -> str:
    """The protocol is sound, labels distinct and whole weights that sum to 2^bits, and as the manifest states it."""
    bits, sizes = {one.bits for one in opened.blocks}, opened.manifest.alphabet
    told = (f"{inputs} to {outputs}" for inputs, outputs in zip(sizes.public, sizes.released, strict=True))
    return f"{', '.join(told)} values, weights of {', '.join(map(str, sorted(bits)))} bits"


def answered(opened: Opened) -> str:
    """The released values are ones that the protocol can produce, as many as the manifest states."""
    return f"{counted(len(opened.answers), 'distinct row')} for {counted(opened.manifest.rows, 'record')}"


def promised(opened: Opened) -> str:
    """The leakage that the manifest states, which leakage-stated shows to be the true one, is at most epsilon."""
    manifest = opened.manifest
    measure = NOTIONS[manifest.notion].measure
    figure = manifest.leakage[measure]
    if figure is None or Fraction(figure) > Fraction(manifest.epsilon):
        raise Broken(NAME, f"the stated {measure} leakage is above epsilon", manifest.epsilon, figure)
    return f"{measure} {figure} <= {manifest.epsilon} nats"
