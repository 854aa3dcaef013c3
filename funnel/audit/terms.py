"""What the kept policy asks for, read anew: a manifest with other terms is no release of that policy."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import yaml

from funnel.audit.findings import broken
from funnel.audit.manifest import Manifest


def as_asked(policy: bytes, manifest: Manifest) -> str:
    """Secret, public columns, notion, ε, mechanism, draws, minimum and format are those of policy.yaml.

    Values are read as text, so that nothing depends on how a YAML library resolves them. Raises AuditFailure.
    """
    claimed = _claimed(manifest)
    for term, asked in _asked(_read(policy)).items():
        if asked != claimed[term]:
            raise broken(
                "policy.yaml", f"the policy asks for another {term}", expected=asked, found=claimed[term]
            )
    return f"{', '.join(claimed)}: as the policy says"


def _claimed(manifest: Manifest) -> dict[str, Any]:
    return {
        "name": manifest.name,
        "secret": list(manifest.sensitive),
        "public columns": [list(block) for block in manifest.public],
        "notion": manifest.notion,
        "epsilon": manifest.epsilon,
        "mechanism": manifest.mechanism,
        "kind of draws": manifest.draws,
        "minimum": manifest.minimum,
        "format": manifest.data.removeprefix("data."),
    }


def _asked(policy: Any) -> dict[str, Any]:
    """The same terms from the policy, with the language's defaults."""
    try:
        source, privacy = policy["source"], policy["privacy"]
        mechanism = policy.get("mechanism", "optimal")
        default = "permanent" if "entity" in source else "fresh"
        sensitive = policy["sensitive"]
        return {
            "name": policy["name"],
            "secret": [sensitive] if isinstance(sensitive, str) else sensitive,
            "public columns": [list(_block(item)) for item in policy["public"]],
            "notion": privacy["notion"],
            "epsilon": Fraction(repr(float(privacy.get("epsilon", "0")))),
            "mechanism": mechanism if isinstance(mechanism, str) else mechanism["kind"],
            "kind of draws": policy.get("draws", {}).get("kind", default),
            "minimum": int(policy.get("estimate", {}).get("minimum", "10")),
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


def _read(policy: bytes) -> Any:
    try:
        return yaml.load(policy.decode("utf-8-sig"), Loader=yaml.BaseLoader)  # noqa: S506
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise broken(
            "policy.yaml", "the policy cannot be read", expected="YAML", found=type(error).__name__
        ) from None
