"""What the kept policy asks for, read anew: a manifest with other terms is no release of that policy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import yaml

from funnel.audit.findings import broken
from funnel.audit.manifest import NEAR, Manifest
from funnel.audit.protocols import Blocks

READS_SECRET = {"optimal": False, "randomised-response": False, "conditional-reporting": True}
"""Mechanisms of this version, and whether their protocols read the secret."""

_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WHOLE = re.compile(r"[0-9]{1,20}")


def as_named(blocks: Blocks, manifest: Manifest) -> str:
    """The protocol reads the secret just where the mechanism named does. Raises AuditFailure."""
    if manifest.mechanism not in READS_SECRET:
        raise broken(
            "release.json",
            "this mechanism is unknown",
            expected=" | ".join(READS_SECRET),
            found=manifest.mechanism,
        )
    reads = READS_SECRET[manifest.mechanism]
    told = f"{manifest.mechanism} reads {'the secret' if reads else 'the public values alone'}"
    for block in blocks:
        if (block.secret is not None) != reads:
            found = f"the protocol of {', '.join(block.columns)} does {'not' if reads else 'otherwise'}"
            raise broken("protocol.json", "this is no protocol of its mechanism", expected=told, found=found)
    return told


def as_asked(policy: bytes, manifest: Manifest) -> str:
    """Secret, public columns, notion, ε and its split, mechanism, draws, minimum, format are policy.yaml's.

    Values are read as text, so that nothing depends on how a YAML library resolves them. Raises AuditFailure.
    """
    claimed = _claimed(manifest)
    for term, asked in _asked(_read(policy)).items():
        if not _same(term, asked, claimed[term]):
            raise broken(
                "policy.yaml", f"the policy asks for another {term}", expected=asked, found=claimed[term]
            )
    return f"{', '.join(claimed)}: as the policy says"


def _same(term: str, asked: Any, claimed: Any) -> bool:
    if term != "split" or len(asked) != len(claimed):
        return bool(asked == claimed)
    return all(abs(one - other) <= NEAR for one, other in zip(asked, claimed, strict=True))


def _claimed(manifest: Manifest) -> dict[str, Any]:
    return {
        "name": manifest.name,
        "secret": list(manifest.sensitive),
        "public columns": [list(block) for block in manifest.public],
        "notion": manifest.notion,
        "epsilon": manifest.epsilon,
        "split": list(manifest.split),
        "mechanism": manifest.mechanism,
        "kind of draws": manifest.draws,
        "minimum": manifest.minimum,
        "kind of estimate": manifest.estimate,
        "format": manifest.data.removeprefix("data."),
    }


def _asked(policy: Any) -> dict[str, Any]:
    """The same terms from the policy, with the language's defaults."""
    try:
        source, privacy = policy["source"], policy["privacy"]
        mechanism = policy.get("mechanism", "optimal")
        default = "permanent" if "entity" in source else "fresh"
        sensitive, estimate = policy["sensitive"], policy.get("estimate", {})
        public = [list(_block(item)) for item in policy["public"]]
        return {
            "name": policy["name"],
            "secret": [sensitive] if isinstance(sensitive, str) else sensitive,
            "public columns": public,
            "notion": privacy["notion"],
            "epsilon": _decimal(privacy.get("epsilon", "0")),
            "split": _shares(privacy.get("split", "equal"), public),
            "mechanism": mechanism if isinstance(mechanism, str) else mechanism["kind"],
            "kind of draws": policy.get("draws", {}).get("kind", default),
            "minimum": _whole(estimate.get("minimum", "10")),
            "kind of estimate": estimate.get("kind", "counts"),
            "format": policy["release"].get("format", "parquet"),
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise broken(
            "policy.yaml",
            "the policy does not say what was asked for",
            expected="a policy",
            found=f"{type(error).__name__}: {error}",
        ) from None


def _block(item: Any) -> Iterator[str]:
    """The column names of one item of `public`."""
    for part in item if isinstance(item, list) else [item]:
        yield part if isinstance(part, str) else part["name"]


def _shares(split: Any, public: list[list[str]]) -> list[Fraction]:
    """The share of each block; a mapping names a block by its columns, joined by + or by a comma."""
    if split == "equal":
        return [Fraction(1, len(public))] * len(public)
    named = [[name for name in {"+".join(block), ",".join(block)} if name in split] for block in public]
    if {len(names) for names in named} != {1} or len(split) != len(public):
        raise ValueError("the split does not name every block once")
    return [_decimal(split[names[0]]) for names in named]


def _decimal(text: str) -> Fraction:
    """A number as the manifest would write it."""
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text} is no decimal number")
    return Fraction(repr(float(text)))


def _whole(text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{text} is no whole number")
    return int(text)


def _read(policy: bytes) -> Any:
    """The one document, if every reader of YAML must read the same. Raises AuditFailure."""
    try:
        text = policy.decode("utf-8-sig")
        for event in yaml.parse(text, Loader=yaml.BaseLoader):
            _refuse_feature(event)
        root = yaml.compose(text, Loader=yaml.BaseLoader)
        if root is not None:
            _refuse_repetition(root)
        return yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        raise broken(
            "policy.yaml",
            "the policy cannot be read",
            expected="one document of plain YAML, every key once",
            found=f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}",
        ) from None


def _refuse_feature(event: Any) -> None:
    """No anchors, aliases, tags or directives: no value stands elsewhere, none is what its text is not."""
    if getattr(event, "anchor", None) is not None:
        raise ValueError(f"an anchor or an alias, {event.anchor}")
    if getattr(event, "tag", None) is not None or getattr(event, "tags", None):
        raise ValueError("a tag")


def _refuse_repetition(node: Any) -> None:
    """No key twice, no merge key, and no key that is more than a text."""
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_repetition(item)
    if not isinstance(node, yaml.MappingNode):
        return
    seen = set()
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.value == "<<" or key.value in seen:
            raise ValueError(f"the key {key.value} a second time, or one that is no plain text")
        seen.add(key.value)
        _refuse_repetition(value)
