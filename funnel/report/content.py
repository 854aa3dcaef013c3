"""The content of a privacy report, all that its page shows: a pure function of the records of a release's files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from funnel.format.released import ReleasedFile
from funnel.format.reported import Evidence as Kept
from funnel.format.reported import Published
from funnel.report import asked, figures, wide, words
from funnel.report.evidence import Evidence
from funnel.report.facts import Facts
from funnel.report.promise import consequences, scale
from funnel.report.released import block
from funnel.text import argument, printable

FORMAT = "funnel-report/1"

PAPERS = {
    "[DS]": "M. Lopuhaä-Zwakenberg, H. Tong, B. Škorić: Data Sanitisation Protocols for the Privacy Funnel with "
    "Differential Privacy Guarantees",
    "[PF]": "A. Makhdoumi, S. Salamatian, N. Fawaz, M. Médard: From the Information Bottleneck to the Privacy Funnel",
    "[RLDP]": "M. Lopuhaä-Zwakenberg, J. Goseling: Mechanisms for Robust Local Differential Privacy",
}


def published(shown: Published) -> dict[str, Any]:
    """The published report, from published files alone; the manifest's `files` make no difference.

    Raises InternalError where a notion or a mechanism has no words, ValueError where the files do not fit together.
    """
    return _content(Facts.of(shown), shown.released, None)


def full(shown: Published, kept: Kept) -> dict[str, Any]:
    """The private report: all of the published one, and what only the evidence tells. Raises as `published` does."""
    facts = Facts.of(shown)
    return _content(facts, shown.released, Evidence.of(facts, kept))


def _content(t: Facts, released: ReleasedFile, evidence: Evidence | None) -> dict[str, Any]:
    notion, mechanism = words.notion(t), words.mechanism(t)
    blocks = [block(t, index, released) for index in range(len(t.protocols))]
    private = None if evidence is None else evidence.told(notion, released)
    follows = consequences(t, notion, None if private is None else private["guess"])
    content = {
        "format": FORMAT,
        "language": t.language,
        "published": evidence is None,
        **_title(t),
        "promise": promise(t, notion),
        "headline": _headline(t, notion),
        "scope": _scope(t),
        "measured": _measured(t, notion),
        "blocks": blocks,
        "wide": wide.told(t, released),
        "drawing": _drawing(t, notion, mechanism),
        "utility": _utility(t, blocks),
        "asked": asked.told(t, released),
        "truth": words.paragraphs("truth.txt", t=t, shown=[one for one in blocks if one["truth"]]),
        "consequences": follows,
        "scale": scale(t, notion),
        "limits": limits(t, notion, mechanism),
        "audit": _audit(t),
        "provenance": _provenance(t),
        "glossary": _glossary(t, notion),
        "papers": _papers(notion["definition"], *(str(row["because"]) for row in follows)),
    }
    return content if private is None else content | {"evidence": private}


def _title(t: Facts) -> dict[str, Any]:
    return {
        "title": printable(t.m.name),
        "description": " ".join(map(printable, t.m.description.split())),
        "release": t.m.release,
        "created": t.m.created,
        "date": _date(t),
        "rows": t.m.rows,
        "minimum": t.m.estimate.minimum,
    }


def _date(t: Facts) -> str:
    day, month, year, *rest = figures.date(t.m.created).split(" ")
    return t.say("{day} {month} {year}, {time} UTC").format(
        day=day, month=t.say(month), year=year.rstrip(","), time=rest[0]
    )


def promise(t: Facts, notion: Mapping[str, str]) -> dict[str, Any]:
    """The promise, as the notion's template words it; before it, where that is so, that no bound holds together."""
    estimated = f" {notion['estimated']}".rstrip()
    return {
        "unbounded": words.said("unbounded.txt", t=t),
        "notion": t.m.notion,
        "name": notion["title"],
        "epsilon": t.epsilon,
        "alone": notion["alone"],
        "sentence": notion["promise"],
        "identity": words.said("identity.txt", t=t),
        "absent": words.said("absent.txt", t=t, notion=notion),
        "condition": notion["condition"] + estimated,
        "observer": notion["observer"] + estimated,
        "definition": notion["definition"],
        "strength": notion["strength"],
    }


def _headline(t: Facts, notion: Mapping[str, str]) -> list[dict[str, str]]:
    """The figures to remember: bound, measured, information kept, and all releases together where that is more.

    Where these have no bound, that comes first.
    """
    said = words.blocks("headline.txt", t=t, notion=notion)
    names, unbounded = ["promised", "measured", "kept"], t.m.composed is not None and t.m.composed.leakage is None
    names.insert(0 if unbounded else len(names), "composed")
    tiles = [{"label": said[f"{name}_label"], "figure": said[name], "note": said[f"{name}_note"]} for name in names]
    return [tile for tile in tiles if tile["figure"]]


def _scope(t: Facts) -> dict[str, Any]:
    said = words.blocks("scope.txt", t=t)
    records, withheld = said.pop("records"), said.pop("withheld")
    return {
        "hidden": {"name": t.secret, "values": t.m.alphabet.sensitive},
        "as_is": not t.drawn,
        "key": t.key,
        "secret_released": t.secret_released,
        "records": records,
        "withheld": withheld,
        "sentences": [one for one in said.values() if one],
    }


def _measured(t: Facts, notion: Mapping[str, str]) -> dict[str, Any]:
    """The leakage in nats by measure, in words, and how far the promise lets beliefs move."""
    falls, rises = (words.nats_in(notion[name]) for name in ("falls", "rises"))
    return {
        "sentence": notion["measured"],
        "measure": notion["measure"],
        "leakage": dict(t.m.leakage),
        "kind": notion["kind"],
        "falls": falls if math.isfinite(falls) else None,
        "rises": rises if math.isfinite(rises) else None,
        "rises_alone": bool(notion["rises_alone"]),
    }


def _drawing(t: Facts, notion: Mapping[str, str], mechanism: Mapping[str, str]) -> dict[str, Any]:
    """How values are drawn and, where the policy leaves it open, what the mechanism was chosen from."""
    tried = [
        {"mechanism": one.mechanism, "normalised": one.normalised, "reason": one.reason,
         "kept": None if one.normalised is None else t.share(one.normalised), "used": one.mechanism == t.m.mechanism}
        for one in t.m.candidates or ()
    ]  # fmt: skip
    return {
        "sentences": words.paragraphs("drawing.txt", t=t, notion=notion, mechanism=mechanism),
        "candidates": tried,
    }


def _utility(t: Facts, blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """The manifest's figures, and sentences that explain them."""
    found = t.m.utility
    return {
        "mutual_information": found.mutual_information,
        "entropy": found.entropy,
        "normalised": found.normalised,
        "upper_bound": found.upper_bound,
        "sentences": words.paragraphs("analyst.txt", t=t, blocks=blocks),
    }


def limits(t: Facts, notion: Mapping[str, str], mechanism: Mapping[str, str]) -> list[dict[str, str]]:
    """Title and text of each thing that is not promised, or that the promise rests on."""
    said = words.blocks("limits.txt", t=t, notion=notion, mechanism=mechanism)
    pairs = [(said[f"{name}_title"], text) for name, text in said.items() if not name.endswith("_title")]
    return [{"title": title, "text": text} for title, text in pairs if title and text]


def _audit(t: Facts) -> list[dict[str, str]]:
    """Commands, and what each does."""
    folder = argument(t.m.release)
    said = words.blocks("audit.txt", t=t)
    commands = {
        "files": f"funnel audit {folder}",
        "evidence": f"funnel audit {folder} --private PRIVATE_FOLDER",
        "signature": f"funnel verify {folder} --key KEY",
    }
    return [{"command": commands[name], "does": does} for name, does in said.items() if does]


def _provenance(t: Facts) -> list[dict[str, str]]:
    """What identifies this release, as pairs of text."""
    pairs = {
        "Release": t.m.release,
        "Created": t.m.created,
        "Notion and mechanism": f"{t.m.notion}, {t.m.mechanism}",
        "Draws": t.m.draws.kind,
        "Key fingerprint": t.m.draws.key_fingerprint,
        "Policy, SHA-256": t.m.policy_sha256,
        "Terms, SHA-256": t.m.terms_sha256,
        "Plan, SHA-256": t.m.plan_sha256,
        "Protocol, SHA-256": t.protocol_sha256,
        "Lock, checksum": t.m.locked and t.m.locked.checksum,
        "Versions": ", ".join(f"{name} {version}" for name, version in sorted(t.m.versions.items())),
        "Signed by": t.m.signed and t.m.signed.public_key,
    }
    return [{"what": t.say(what), "value": value} for what, value in pairs.items() if value]


def _glossary(t: Facts, notion: Mapping[str, str]) -> list[dict[str, str]]:
    """Term and meaning, in reading order, with the notion's own words; the ceiling only where the report has one."""
    bound = t.m.utility.upper_bound
    ceiling = bound is not None and bound < 1 and bool(t.drawn) and len(t.protocols) == 1
    terms = _terms(words.said("glossary.txt", t=t, ceiling=ceiling)) | _terms(notion["words"])
    return [{"term": term, "meaning": meaning} for term, meaning in terms.items()]


def _terms(said: str) -> dict[str, str]:
    """Meanings by term, from `* Term: meaning` one after another."""
    return dict(one.strip().split(": ", 1) for one in said.split("* ") if one.strip())


def _papers(*citing: str) -> list[dict[str, str]]:
    """Tag and title of each paper that one of the texts cites."""
    cited = " ".join(citing)
    return [{"tag": tag, "title": title} for tag, title in PAPERS.items() if tag[:-1] in cited]
