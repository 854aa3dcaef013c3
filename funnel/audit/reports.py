"""report.json: of the form of a published report, with the figures of the manifest and of the protocol."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from funnel.audit.fields import Field, parse
from funnel.audit.files import content
from funnel.audit.findings import Unchecked, broken
from funnel.audit.manifest import Manifest
from funnel.audit.promises import MEASURES
from funnel.audit.protocols import Block, Blocks
from funnel.audit.unary import UnaryBlock

FORMAT = "funnel-report/1"
_LONGEST_LIST = 64
_LEAF: Any = None
_ROUNDED = Fraction(6, 10_000)
"""Chances are published to three decimals."""

_BLOCK = {
    **dict.fromkeys(("name", "values", "outputs", "bits", "reads_secret", "sets", "share", "as_is", "leakage")),
    **dict.fromkeys(("rank", "kept")),
    "columns": [_LEAF],
    "utility": dict.fromkeys(("mutual_information", "entropy", "normalised", "upper_bound")),
    "shares": [dict.fromkeys(("value", "before", "after", "kept", "true"))],
    "protocol": {"inputs": [_LEAF], "outputs": [_LEAF], "chances": [[_LEAF]]},
    "beliefs": {
        **dict.fromkeys(("unit", "quantity", "bound")),
        "secret": [_LEAF], "released": [_LEAF], "change": [[_LEAF]],
    },
}  # fmt: skip
_SHAPE = {
    **dict.fromkeys(("format", "published", "title", "description", "release", "created", "date", "rows")),
    **dict.fromkeys(("minimum", "notice", "step")),
    "promise": dict.fromkeys(
        ("notion", "name", "epsilon", "sentence", "observer", "definition", "condition", "strength")
    ),
    "headline": [dict.fromkeys(("label", "figure", "note"))],
    "scope": {
        **dict.fromkeys(("as_is", "records", "withheld", "secret_released")),
        "hidden": dict.fromkeys(("name", "values")), "together": [_LEAF],
    },
    "measured": {
        **dict.fromkeys(("sentence", "bound", "withheld", "width", "each")),
        "leakage": dict.fromkeys(MEASURES.values()),
        "secrets": [{
            **dict.fromkeys(("value", "pooled", "before", "lowest", "highest", "change")),
            "promised": [_LEAF], "moves": [_LEAF],
        }],
        "guess": dict.fromkeys(("before", "after")),
    },
    "realised": dict.fromkeys(("sentence", "resamples", "median", "p95", "largest", "share_above")),
    "blocks": [_BLOCK],
    "drawing": {
        **dict.fromkeys(("mechanism", "draws", "rule")),
        "candidates": [dict.fromkeys(("mechanism", "normalised", "reason", "used"))],
    },
    "utility": {
        **dict.fromkeys(("mutual_information", "entropy", "normalised", "upper_bound", "untouched", "command")),
        "sentences": [_LEAF],
    },
    "consequences": [dict.fromkeys(("claim", "because", "implied", "measured"))],
    "scale": {
        **dict.fromkeys(("caption", "factor")),
        "rows": [dict.fromkeys(("epsilon", "here", "factor", "from", "to"))],
    },
    "limits": [dict.fromkeys(("title", "text"))],
    "audit": {"commands": [dict.fromkeys(("command", "does"))], "exit": _LEAF},
    "provenance": [dict.fromkeys(("what", "value"))],
    "glossary": [dict.fromkeys(("term", "meaning"))],
    "papers": [dict.fromkeys(("tag", "title"))],
}  # fmt: skip
"""The published report: what each object may hold, a list as a list of one; the private one holds more."""

_WHOLE = ("format", "published", "release", "created", "rows", "minimum", "promise", "measured", "blocks")


def page() -> Unchecked:
    """What is written for people is as it was listed, and no more is known of it."""
    return Unchecked("only their hashes: sentences and pictures are for a reader to compare with the figures")


def as_claimed(folder: Path, blocks: Blocks, manifest: Manifest) -> str:
    """The report's form, and every figure of it that the manifest or the protocol states too.

    Raises AuditFailure.
    """
    root = parse("report.json", content(folder / "report.json"))
    root["format"].among(FORMAT)
    for key in _WHOLE:
        root[key]
    released = [len(block.outputs) for block in blocks if not isinstance(block, UnaryBlock)]
    most = max(_LONGEST_LIST, manifest.sizes[0], *manifest.sizes[1], *released)
    _formed(root, _SHAPE, most)
    compared = 0
    for field, expected in (*_stated(root, manifest), *_of_blocks(root["blocks"], blocks, manifest)):
        _same(field, expected)
        compared += 1
    return f"{compared} figures are those of the manifest and the protocol"


def _formed(field: Field, shape: Any, most: int) -> None:
    """Nothing but what the shape names, in lists no longer than an alphabet."""
    value = field.value
    if isinstance(value, dict) and isinstance(shape, dict):
        if unknown := [key for key in value if key not in shape]:
            raise field.wrong(f"a published report, without {unknown[0]}")
        for key, member in field.members():
            _formed(member, shape[key], most)
    elif isinstance(value, list) and isinstance(shape, list):
        if len(value) > most:
            raise field.wrong(f"at most {most} entries")
        for item in field.items():
            _formed(item, shape[0], most)
    elif isinstance(value, dict | list):
        raise field.wrong("a published report, nothing nested here")
    elif value is not None and shape is not _LEAF:
        raise field.wrong("a list or an object")


def _stated(root: Field, manifest: Manifest) -> Iterator[tuple[Field, Any]]:
    """Fields of the report, and what the manifest says."""
    stated, measured, promise = manifest.stated, root["measured"], root["promise"]
    yield root["published"], True
    for key in ("release", "created", "rows", "minimum"):
        yield root[key], getattr(manifest, key)
    for key, expected in (("title", manifest.name), ("description", manifest.description)):
        if key in root.value:
            yield root[key], expected
    yield promise["notion"], manifest.notion
    for epsilon in (promise["epsilon"], measured["bound"]):
        yield epsilon, manifest.epsilon
    yield root["scope"]["hidden"]["values"], manifest.sizes[0]
    utility = {"mutual_information": stated.public_information, "entropy": stated.entropy}
    kept = {"normalised": stated.normalised, "upper_bound": stated.upper_bound}
    for of, figures in ((measured["leakage"], manifest.leakage), (root["utility"], utility | kept)):
        for name, figure in figures.items():
            yield of[name], figure
    yield from _provenance(root["provenance"], manifest)
    yield from _candidates(root, manifest)
    _realised(root)


def _candidates(root: Field, manifest: Manifest) -> Iterator[tuple[Field, Any]]:
    """The mechanisms compared, where the report tells of them."""
    drawing = root.value.get("drawing")
    if not isinstance(drawing, dict) or drawing.get("candidates") is None:
        return
    told, kept = root["drawing"]["candidates"].items(), manifest.candidates or ()
    if len(told) != len(kept):
        raise root["drawing"]["candidates"].wrong(f"{len(kept)} candidates")
    for field, one in zip(told, kept, strict=True):
        yield field["mechanism"], one.mechanism
        yield field["normalised"], one.normalised
        yield field["reason"], one.reason
        yield field["used"], one.mechanism == manifest.mechanism


def _realised(root: Field) -> None:
    """Leakage under resampled truths: nats in order and a share of the resamples; the draws cannot be repeated here."""
    if root.value.get("realised") is None:
        return
    field = root["realised"]
    field["resamples"].whole(1)
    field["share_above"].number(high=1)
    quantiles = [field[name] for name in ("median", "p95", "largest")]
    finite = [one.number() for one in quantiles if one.value is not None]
    if finite != sorted(finite) or [one.value is None for one in quantiles] != sorted(
        one.value is None for one in quantiles
    ):
        raise field.wrong("median, p95 and largest in ascending order")


def _provenance(field: Field, manifest: Manifest) -> Iterator[tuple[Field, Any]]:
    versions = ", ".join(f"{name} {version}" for name, version in manifest.versions.items())
    known = {
        "Release": manifest.release, "Created": manifest.created,
        "Notion and mechanism": f"{manifest.notion}, {manifest.mechanism}", "Draws": manifest.draws,
        "Key fingerprint": manifest.fingerprint, "Policy, SHA-256": manifest.policy_sha256,
        "Plan, SHA-256": manifest.plan_sha256, "Protocol, SHA-256": manifest.files["protocol.json"][0],
        "Versions": versions, "Signed by": manifest.signed,
    }  # fmt: skip
    for entry in field.items():
        yield entry["value"], known[entry["what"].among(*known)]


def _of_blocks(field: Field, blocks: Blocks, manifest: Manifest) -> Iterator[tuple[Field, Any]]:
    """Fields of the report's blocks, and what the protocol says."""
    told = field.items()
    if len(told) != len(blocks):
        raise field.wrong(f"{len(blocks)} blocks")
    for one, block, share in zip(told, blocks, manifest.split, strict=True):
        yield one["columns"], list(block.columns)
        yield one["values"], len(block.inputs)
        yield one["outputs"], len(block.outputs)
        yield one["bits"], block.bits
        yield one["reads_secret"], block.secret is not None
        if "share" in one.value:
            yield one["share"], share
        if isinstance(block, UnaryBlock):
            _coins(one["protocol"], block)
        else:
            _chances(one["protocol"], block)


def _coins(field: Field, block: UnaryBlock) -> None:
    """The chances of each value's coin, true values down, are those of the weights."""
    if field.value is None:
        return
    chances = [[float(chance.number(high=1)) for chance in row.items()] for row in field["chances"].items()]
    if [len(row) for row in chances] != [len(block.inputs)] * len(block.inputs):
        raise field.wrong("a row and a chance for each value")
    far = np.abs(np.array(chances).T - block.chances).max()
    if far > float(_ROUNDED):
        raise broken(field.file, f"{field.path} are not the protocol's chances", expected="coins / 2^bits",
                     found=f"up to {far:.4f} away")  # fmt: skip


def _chances(field: Field, block: Block) -> None:
    """The chances shown are those of the weights; a mean over the secret is only looked at for its size."""
    if field.value is None:
        return
    chances = [[chance.number(high=1) for chance in row.items()] for row in field["chances"].items()]
    names = (len(field["outputs"].items()), len(field["inputs"].items()))
    if names != (len(block.outputs), len(block.inputs)) or {len(chances)} | {*map(len, chances)} != {*names}:
        raise field.wrong("a row per output and a chance per input")
    if block.secret is None:
        far = np.abs(np.array(chances, float) - block.weights[:, 0, :] / float(1 << block.bits))
        if far.max() > float(_ROUNDED):
            raise broken(field.file, f"{field.path} are not the protocol's chances", expected="W / 2^bits", found=
                         f"up to {far.max():.4f} away")  # fmt: skip


def _same(field: Field, expected: Any) -> None:
    found = field.value
    number = isinstance(expected, Fraction) and type(found) in (int, float)
    same = (
        Fraction(repr(found)) == expected if number else type(found) is type(expected) and found == expected
    )
    if not same:
        shown = float(expected) if isinstance(expected, Fraction) else expected
        raise broken(field.file, f"{field.path} is not what the release states", expected=shown, found=found)
