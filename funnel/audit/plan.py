"""plan.json: the plan that the release was made by, and that it is one for what the release claims."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from funnel.audit.evidence import Evidence, same_file
from funnel.audit.fields import Field, parse
from funnel.audit.files import content
from funnel.audit.findings import broken
from funnel.audit.manifest import Manifest


def same_plan(folder: Path, evidence: Evidence, manifest: Manifest) -> str:
    """plan.json has the hash that manifest and evidence name, and is of this policy. Raises AuditFailure."""
    told = same_file(folder / "plan.json", manifest.plan_sha256, evidence.plan_sha256)
    root = parse("plan.json", content(folder / "plan.json"))
    known = {"name": manifest.name, "policy_sha256": manifest.policy_sha256}
    for field, expected in (*((root[key], value) for key, value in known.items()), *_steps(root, manifest)):
        if field.value != expected:
            raise broken(
                field.file, f"{field.path} is not the release's", expected=expected, found=field.value
            )
    return told


def _steps(root: Field, manifest: Manifest) -> Iterator[tuple[Field, object]]:
    """What the steps of a plan say of the terms, and what the manifest does."""
    known: dict[str, dict[str, object]] = {
        "count": {"secret": list(manifest.sensitive), "minimum": 1 if manifest.locked else manifest.minimum},
        "solve": {"notion": manifest.notion},
        "draw": {"kind": manifest.draws},
        "write": {"format": manifest.data.removeprefix("data.")},
    }
    for step in root["steps"].items():
        for key, expected in known.get(step["step"].text(), {}).items():
            yield step[key], expected
