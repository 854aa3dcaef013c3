"""What the kept policy asks for, read anew: a manifest with other terms is no release of that policy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain
from typing import Any

import yaml

from funnel.audit.findings import broken
from funnel.audit.manifest import NEAR, STEP, Manifest
from funnel.audit.protocols import Blocks
from funnel.audit.shapes import shapes

MECHANISMS = (
    *("optimal", "randomised-response", "conditional-reporting", "unary-encoding", "polyopt"),
    *(
        "secret-randomised-response",
        "independent-reporting",
        "non-robust",
        "greedy-funnel",
        "gaussian-funnel",
    ),
)
"""Mechanisms of this version."""

READERS = ("conditional-reporting",)
"""Those whose protocols read a secret that is not released."""

_NOTHING = ("", "~", "null", "Null", "NULL")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WHOLE = re.compile(r"[0-9]{1,20}")


def as_named(blocks: Blocks, manifest: Manifest) -> str:
    """The protocol is of the mechanism named, and reads the secret just where that does. Raises AuditFailure.

    Where several mechanisms were compared, the one named kept most.
    """
    if manifest.mechanism not in MECHANISMS:
        raise broken(
            "release.json",
            "this mechanism is unknown",
            expected=" | ".join(MECHANISMS),
            found=manifest.mechanism,
        )
    reads = manifest.mechanism in READERS
    told = f"{manifest.mechanism} reads {'the secret' if reads else 'the public values alone'}"
    for block in blocks:
        if (block.secret is not None) != reads:
            found = f"the protocol of {', '.join(block.columns)} does {'not' if reads else 'otherwise'}"
            raise broken("protocol.json", "this is no protocol of its mechanism", expected=told, found=found)
    _best(manifest)
    return "; ".join(dict.fromkeys([told, *shapes(blocks, manifest)]))


def _best(manifest: Manifest) -> None:
    """Of the mechanisms compared, none kept more than the one used."""
    if manifest.candidates is None:
        return
    kept = {one.mechanism: one.normalised for one in manifest.candidates}
    own, most = (
        kept.get(manifest.mechanism),
        max((one for one in kept.values() if one is not None), default=None),
    )
    reached = manifest.stated.normalised
    if own is None or own != most or abs(own - reached) > STEP:
        raise broken(
            "release.json",
            "the mechanism used is not the one of the candidates that keeps most",
            expected=f"{manifest.mechanism} with {float(reached)} of H(X), and none with more",
            found={name: share if share is None else float(share) for name, share in kept.items()},
        )


def as_asked(policy: bytes, manifest: Manifest) -> tuple[bytes, str]:
    """The policy, once secret, public columns, notion, ε, split, mechanism, draws, minimum, format are the manifest's.

    Values are read as text, so that nothing depends on how a YAML library resolves them. Raises AuditFailure.
    """
    claimed = _claimed(manifest)
    asked = _asked(read_policy(policy), manifest)
    for term, wanted in asked.items():
        if not _same(term, wanted, claimed[term]):
            raise broken(
                "policy.yaml", f"the policy asks for another {term}", expected=wanted, found=claimed[term]
            )
    return policy, f"{', '.join(asked)}: as the policy says"


def _same(term: str, asked: Any, claimed: Any) -> bool:
    if term != "split" or len(asked) != len(claimed):
        return bool(asked == claimed)
    return all(abs(one - other) <= NEAR for one, other in zip(asked, claimed, strict=True))


def _claimed(manifest: Manifest) -> dict[str, Any]:
    """Every term that a policy may set, as the manifest has it."""
    parameters = manifest.parameters
    return {
        "name": manifest.name,
        "description": manifest.description,
        "secret": list(manifest.sensitive),
        "public columns": [list(block) for block in manifest.public],
        "notion": manifest.notion,
        "epsilon": manifest.epsilon,
        "split": list(manifest.split),
        "mechanism": "auto" if manifest.candidates is not None else manifest.mechanism,
        "way to solve": parameters.solve,
        "order": parameters.order,
        "confidence": parameters.confidence,
        "radius": parameters.radius,
        "lower": parameters.lower,
        "kind of draws": manifest.draws,
        "minimum": manifest.minimum,
        "kind of estimate": manifest.estimate,
        "epsilon of the estimate": None if manifest.noise is None else manifest.noise.epsilon,
        "format": manifest.data.removeprefix("data."),
    }


def _asked(policy: Any, manifest: Manifest) -> dict[str, Any]:
    """The terms that the policy settles, with the language's defaults; what it leaves open is not among them."""
    try:
        source, privacy = policy["source"], policy["privacy"]
        mechanism = policy.get("mechanism", "optimal")
        default = "permanent" if "entity" in source else "fresh"
        sensitive, estimate = policy["sensitive"], policy.get("estimate", {})
        secret = [sensitive] if isinstance(sensitive, str) else sensitive
        listed = [list(_block(item)) for item in policy["public"]]
        public = [list(chain.from_iterable(listed))] if _together(secret, listed, manifest) else listed
        return {
            "name": policy["name"],
            "description": policy.get("description", ""),
            "secret": secret,
            "public columns": public,
            "notion": privacy["notion"],
            "epsilon": _decimal(privacy.get("epsilon", "0")),
            **_split(privacy.get("split", "equal"), listed, public),
            **_mechanism(mechanism if isinstance(mechanism, str) else mechanism["kind"], manifest),
            **_parameters(privacy),
            "kind of draws": policy.get("draws", {}).get("kind", default),
            "minimum": _whole(estimate.get("minimum", "10")),
            "kind of estimate": estimate.get("kind", "counts"),
            "epsilon of the estimate": _decimal(estimate["epsilon"]) if "epsilon" in estimate else None,
            "format": policy["release"].get("format", "parquet"),
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise broken(
            "policy.yaml",
            "the policy does not say what was asked for",
            expected="a policy",
            found=f"{type(error).__name__}: {error}",
        ) from None


def _mechanism(asked: str, manifest: Manifest) -> dict[str, Any]:
    """The mechanism, unless a lock fixed which one `auto` chose."""
    return {} if asked == "auto" and manifest.locked else {"mechanism": asked}


def _together(secret: list[str], listed: list[list[str]], manifest: Manifest) -> bool:
    """Whether all public columns are one alphabet: robust notions are about whole records, SRLIP may be solved so,
    and a record whose secret is released too is one value (s, u).
    """
    solved = manifest.notion == "srlip" and manifest.parameters.solve == "joint"
    told = set(secret) <= {name for block in listed for name in block}
    return manifest.notion == "rldp" or solved or told


def _parameters(privacy: Any) -> dict[str, Any]:
    """What the policy says of the notion's parameters."""
    if privacy["notion"] == "srlip":
        way = privacy.get("solve", "auto")
        return {} if way == "auto" else {"way to solve": way}
    if privacy["notion"] == "alip":
        return {"lower": None if privacy.get("lower") in _NOTHING else _decimal(privacy["lower"])}
    if privacy["notion"] != "rldp":
        return {}
    given = {key: value for key, value in privacy.items() if value not in _NOTHING}
    order = {"order": _decimal(given.get("order", "2"))}
    if "radius" in given:
        return order | {"radius": _decimal(given["radius"]), "confidence": None}
    return order | {"confidence": _decimal(given.get("confidence", "0.95"))}


def _split(split: Any, listed: list[list[str]], public: list[list[str]]) -> dict[str, Any]:
    """The shares of epsilon, unless the policy leaves them open; blocks put together have all of it."""
    if len(public) < len(listed) or split == "optimal":
        return {"split": [Fraction(1)]} if len(public) == 1 else {}
    return {"split": _shares(split, listed)}


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


def budget_of(policy: bytes, *section: str) -> Fraction | None:
    """The `budget` of a section of policy.yaml, of the whole policy without one; None: none. Raises AuditFailure."""
    try:
        found = read_policy(policy)
        for name in section:
            found = found.get(name, {})
        return _decimal(found["budget"]) if "budget" in found else None
    except (TypeError, ValueError, AttributeError) as error:
        what = "the policy's budget cannot be read"
        raise broken("policy.yaml", what, expected="a number of nats", found=type(error).__name__) from None


def _decimal(text: str) -> Fraction:
    """A number as the manifest would write it."""
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text} is no decimal number")
    return Fraction(repr(float(text)))


def _whole(text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{text} is no whole number")
    return int(text)


def read_policy(policy: bytes) -> Any:
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
