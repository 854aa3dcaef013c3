"""The policy language: a strict reader, frozen models, and errors that know their line."""

from __future__ import annotations

from funnel.policy.blocks import Block, Cells
from funnel.policy.columns import Attribute
from funnel.policy.load import load, loads
from funnel.policy.model import Draws, Estimate, Policy, Source
from funnel.policy.release import Release
from funnel.policy.schema import json_schema

__all__ = [
    "Attribute", "Block", "Cells", "Draws", "Estimate", "Policy", "Release", "Source", "json_schema",
    "load", "loads",
]  # fmt: skip
