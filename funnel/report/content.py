"""The content of a privacy report: everything the page shows, as one JSON-able dict."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from funnel.data import AnyProtocol, Joint
from funnel.errors import InternalError
from funnel.measure import leakage as measures
from funnel.measure.information import mutual_information
from funnel.report import figures, text, wording
from funnel.report.blocks import block, untouched
from funnel.report.case import Case
from funnel.report.consequences import consequences, scale
from funnel.report.drawing import drawing
from funnel.report.glossary import glossary, papers
from funnel.report.limits import limits
from funnel.report.measured import measured
from funnel.report.noise import as_estimated
from funnel.report.realised import realised
from funnel.report.utility import utility

FORMAT = "funnel-report/1"

_AGREE = 1.01e-4
"""How far a manifest's leakage may lie above the measured one: it is rounded up at four decimals."""


def compose(
    manifest: Mapping[str, Any], protocols: Sequence[AnyProtocol], joint: Joint, *, published: bool,
    bounds: Sequence[float | None] | None = None, certificate: Mapping[str, Any] | None = None,
    protocol_sha256: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The report of a release with this manifest (release.json) and one protocol per block of `joint`.

    `published`: figures are rounded, and nothing is said of groups below the manifest's `estimate.minimum`;
    otherwise full figures with counts. `bounds` are certified upper bounds of I(X_j;Y_j) in nats per block; they
    are told of a single block only, for a block beside others is bounded under conditions that depend on those.
    `certificate` is what solution.json keeps of the proof. `protocol_sha256` is the hash of protocol.json; the
    manifest's `files`, if there, serve as well.
    Raises InternalError where the manifest's leakage is not that of the protocols, or a notion has no words.
    """
    case = Case(manifest, protocols, joint, published)
    _agree(case)
    proven = bounds if bounds and len(protocols) == 1 else [None] * len(protocols)
    blocks = [block(case, j, bound) for j, bound in enumerate(proven)]
    found, same = measured(case), untouched(case)
    follows = consequences(case, found["guess"])
    return {
        "format": FORMAT,
        **_title(case),
        "promise": _promise(case),
        "headline": _headline(case),
        "scope": _scope(case),
        "measured": found,
        "blocks": blocks,
        "realised": realised(case),
        "drawing": drawing(case),
        "utility": utility(case, blocks, same, certificate),
        "consequences": follows,
        "scale": scale(case),
        "limits": limits(case, same),
        "audit": _audit(case),
        "provenance": _provenance(case, protocol_sha256),
        "glossary": glossary(case.manifest["notion"], ceiling=_ceiling(case) is not None),
        "papers": papers([case.notion.definition, *(str(row["because"]) for row in follows)]),
    }


def _agree(case: Case) -> None:
    """A report never repeats a claim that its own measurement contradicts."""
    for measure, exact in (("lip", measures.lip), ("ldp", measures.ldp)):
        claimed, measured = case.leakage(measure), figures.finite(exact(case.table).nats)
        if measure not in case.manifest["leakage"] or claimed is measured is None:
            continue
        _check(measure, claimed, measured)
    if (average := case.leakage("mutual_information")) is not None:
        _check("mutual_information", average, mutual_information(case.table))


def _check(measure: str, claimed: figures.Figure, measured: figures.Figure) -> None:
    if claimed is None or measured is None or not -1e-9 <= claimed - measured <= _AGREE:
        raise InternalError(f"the manifest claims {measure} {claimed}, the protocols give {measured}")


def _title(case: Case) -> dict[str, Any]:
    manifest = case.manifest
    minimum = figures.counted(case.minimum, "record")
    notice = (
        f"Shares and beliefs are rounded, to steps of {figures.percent_text(case.step)} at the finest, and none "
        f"is given for groups of fewer than {minimum}."
        if case.published
        else "Private: this version holds counts of people. Keep it with the evidence; publish the other one."
    )
    return {
        "published": case.published,
        "title": text.printable(manifest["name"]),
        "description": " ".join(map(text.printable, (manifest.get("description") or "").split())),
        "release": manifest["release"],
        "created": manifest["created"],
        "date": figures.date_text(manifest["created"]),
        "rows": manifest["rows"],
        "minimum": case.minimum,
        "step": case.step,
        "notice": notice,
    }


def _promise(case: Case) -> dict[str, Any]:
    notion = case.notion
    return {
        "notion": case.manifest["notion"],
        "name": notion.title,
        "epsilon": case.epsilon,
        "sentence": notion.promise(case.terms),
        "condition": notion.condition(case.terms) + as_estimated(case),
        "observer": notion.observer(case.terms) + as_estimated(case),
        "definition": notion.definition,
        "strength": notion.strength(case.terms),
    }


def _headline(case: Case) -> list[dict[str, str]]:
    """The three figures to remember: bound, measured, information kept."""
    measured, kept = case.leakage(case.notion.measure), case.manifest["utility"]
    promised = (
        "a factor of " + figures.factor_text(case.epsilon) if case.notion.worst_case else "nats, on average"
    )
    return [
        {"label": "Promised", "figure": wording.bound_sentence(case.manifest["notion"], case.epsilon),
         "note": f"{promised}; epsilon 0 would tell nothing" if case.epsilon else "nothing can be learnt"},
        {"label": "Measured", "figure": figures.nats_text(measured),
         "note": _of_bound(case, measured)},
        {"label": "Information kept", "figure": _percent(kept.get("normalised")),
         "note": _of_information(case)},
    ]  # fmt: skip


def _of_information(case: Case) -> str:
    ceiling = _ceiling(case)
    if case.all_as_is:
        return "the true values are released as they are"
    if ceiling is None:
        return "of what the true values say"
    return f"proven: no more than {ceiling} is possible by drawing from {case.public} alone"


def _ceiling(case: Case) -> str | None:
    """The certified bound as text; None where none is proven, or where it bounds nothing."""
    certified = figures.finite(case.manifest["utility"].get("upper_bound"))
    if certified is None or case.all_as_is or len(case.protocols) > 1 or certified >= 1:
        return None
    return figures.most_text(certified)


def _percent(value: object) -> str:
    number = figures.finite(value)
    return "none to keep" if number is None else figures.share_text(number)


def _of_bound(case: Case, measured: figures.Figure) -> str:
    """The measured leakage beside its bound; an average beside the strongest single change."""
    if measured is None:
        return "no finite bound"
    if case.epsilon == 0:
        return "exactly as promised" if measured == 0 else "above the promise"
    part = figures.share_text(measured / case.epsilon)
    if case.notion.worst_case:
        return f"{part} of the bound; a factor of {figures.factor_text(measured)}"
    worst = case.leakage("lip")
    single = (
        "beliefs without limit"
        if worst is None
        else f"a belief by up to a factor of {figures.factor_text(worst)}"
    )
    return f"{part} of the bound, on average; single released values change {single}"


def _scope(case: Case) -> dict[str, Any]:
    hidden = case.terms.secret
    itself = [] if case.secret_released else [f"{hidden} itself"]
    each = "each is drawn for on its own"
    if case.certain:
        each = f"each is {'released as it is' if case.all_as_is else 'replaced on its own'}"
    withheld = text.listed(
        [*itself, "every other column", "identifiers", "the counts behind the figures",
         "the order of the records (the table is sorted by released value)"]
    )  # fmt: skip
    return {
        "hidden": {"name": hidden, "values": len(case.joint.secret)},
        "records": f"{figures.counted(case.manifest['rows'], 'record')}, after the policy’s filter and rows left "
        f"out for missing values{_unseen(case)}, if any; {each}",
        "as_is": case.all_as_is,
        "together": _together(case),
        "secret_released": case.secret_released,
        "withheld": f"{withheld[:1].upper()}{withheld[1:]}.",
    }


def _unseen(case: Case) -> str:
    """Under a lock rows may also be left out because nobody knew their values when it was made."""
    return " or for values that the lock does not know" if case.manifest.get("locked") else ""


def _together(case: Case) -> list[str]:
    """What is said where several columns are drawn as one value, or the secret is among those released."""
    said = []
    if case.secret_released:
        said.append(
            f"The secret itself is released, randomised: the table has {case.terms.secret} among its columns, with "
            "values that are drawn like all others and are not the true ones, or only by chance."
        )
    for names in case.manifest["public"]:
        if len(names) > 1:
            block = text.listed([text.human(name) for name in names])
            said.append(
                f"{block[:1].upper()}{block[1:]} are drawn together, as one value: a block of columns."
            )
    return said


def _audit(case: Case) -> dict[str, Any]:
    folder = shlex.quote(case.manifest["release"])
    return {
        "commands": [
            {"command": f"funnel audit {folder}",
             "does": "From the published files alone, in the folder that holds the release: that no file was "
             "altered, that rows, columns and values are those declared, and that the protocol is well "
             "formed. It lists what it could not check."},
            {"command": f"funnel audit {folder} --private PRIVATE_FOLDER",
             "does": "With the private evidence: recomputes the leakage from the counts in exact arithmetic, "
             "compares it with the promise and with every figure claimed, and checks what was drawn against "
             "the protocol. It shares no code with what made the release."},
            *_signed(case, folder),
        ],
        "exit": "Exit code 0: every claim checked holds. Exit code 1: a claim fails, and which.",
    }  # fmt: skip


def _signed(case: Case, folder: str) -> list[dict[str, str]]:
    """How a signature is checked, where there is one."""
    if "signed" not in case.manifest:
        return []
    does = (
        "With the publisher’s public key, obtained from the publisher and not from this folder: that the release is "
        "signed, whole and unchanged. A signature tells who published it, and nothing of its promise."
    )
    return [{"command": f"funnel audit {folder} --public-key KEY", "does": does}]


def _provenance(case: Case, protocol_sha256: str | None) -> list[dict[str, str]]:
    """What identifies this release, as pairs of text."""
    manifest = case.manifest
    listed = manifest.get("files", {}).get("protocol.json", {}).get("sha256")
    pairs = {
        "Release": manifest["release"],
        "Created": manifest["created"],
        "Notion and mechanism": f"{manifest['notion']}, {manifest['mechanism']}",
        "Draws": manifest["draws"]["kind"],
        "Key fingerprint": manifest["draws"].get("key_fingerprint"),
        "Policy, SHA-256": manifest.get("policy_sha256"),
        "Plan, SHA-256": manifest.get("plan_sha256"),
        "Protocol, SHA-256": protocol_sha256 or listed,
        "Versions": ", ".join(f"{name} {version}" for name, version in manifest.get("versions", {}).items()),
        "Signed by": manifest.get("signed", {}).get("public_key"),
    }
    return [{"what": what, "value": str(value)} for what, value in pairs.items() if value]
