"""The page on the policy language names every key, with its default, and every mechanism with its options."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from funnel.mechanisms import MECHANISMS
from funnel.notions import NOTIONS
from funnel.policy.blocks import Block, CellLimits
from funnel.policy.columns import Attribute
from funnel.policy.metadata import Metadata
from funnel.policy.model import Csv, Draws, EstimateSection, Policy, SourceSection
from funnel.policy.release import Also, Parted, ReleaseSection

PAGE = (Path(__file__).parents[3] / "policies" / "README.md").read_text(encoding="utf-8")
SECTIONS: dict[str, type[BaseModel]] = {
    "The policy": Policy,
    "`source`": SourceSection,
    "`source.csv`": Csv,
    "`estimate`": EstimateSection,
    "A column of `public`": Attribute,
    "`draws`": Draws,
    "`metadata`": Metadata,
    "`release`": ReleaseSection,
    "`release.also`": Also,
    "`release.partition`": Parted,
}


def rows(title: str) -> list[list[str]]:
    """The cells of a section's table, without its head."""
    section = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def shown(field: FieldInfo) -> set[str]:
    """How the page may write a field's default."""
    if field.is_required():
        return {"required"}
    if field.default_factory is not None:
        return {"see below", "`optimal`"}
    if field.default in (None, ()):
        return {"none"}
    return _words(field.default) if field.default != "" else {"empty"}


def _words(default: Any) -> set[str]:
    """How a default may be written, bare or as code."""
    bare = {str(default), *([f"{default:g}"] if isinstance(default, float) else [])}
    return bare | {f"`{each}`" for each in bare}


@pytest.mark.parametrize("title", SECTIONS)
def test_every_key_of_a_section_stands_there_with_its_default(title: str) -> None:
    told = {key.strip("`"): default for key, default, _ in rows(title)}
    fields = SECTIONS[title].model_fields
    assert set(told) == set(fields)
    assert [name for name, field in fields.items() if told[name] not in shown(field)] == []


def test_every_key_of_a_wide_block_stands_there() -> None:
    told = {key.strip("`"): (default, text) for key, default, text in rows("A wide block of `public`")}
    assert set(told) == {field.alias or name for name, field in Block.model_fields.items()}
    default, text = told["cells"]
    assert default == f"`{CellLimits().most}`"
    assert f"`minimum` ({CellLimits().minimum})" in text
    assert "`most`" in text


def test_every_parameter_of_every_notion_stands_there() -> None:
    told = {key.strip("`"): (default, text) for key, default, text in rows("`privacy`")}
    fields: dict[str, FieldInfo] = {}
    for notion in NOTIONS.values():
        fields |= {name: field for name, field in notion.model_fields.items() if name not in fields}
    assert set(told) == set(fields)
    assert all(f"`{name}`" in told["notion"][1] for name in NOTIONS)
    wrong = {name for name, field in fields.items() if told[name][0] not in shown(field)}
    assert wrong == {"confidence"}, "its default holds only where no radius is given"
    assert "0.95" in str(NOTIONS["rldp"].model_fields["confidence"].description)


def test_every_mechanism_stands_there_with_its_options() -> None:
    told = {kind.strip("`"): options for kind, options, _ in rows("`mechanism`")}
    assert set(told) == set(MECHANISMS)
    for kind, mechanism in MECHANISMS.items():
        options = dict(re.findall(r"`(\w+)` \(([^)]+)\)", told[kind]))
        fields = {name: field for name, field in mechanism.model_fields.items() if name != "kind"}
        assert set(options) == set(fields), kind
        assert all(options[name] in _words(field.default) for name, field in fields.items()), kind


def test_every_release_that_the_first_page_reads_is_one_that_a_policy_here_writes():
    root = Path(__file__).parents[3]
    policies = [*(root / "policies").glob("*.yaml"), *(root / "examples").rglob("*.yaml")]
    written = {found for path in policies for found in re.findall(r"to: (?:\.\./)+(releases/[\w-]+)", path.read_text())}
    read = set(re.findall(r"releases/[\w-]+", (root / "README.md").read_text(encoding="utf-8")))
    assert read and read <= written, read - written
