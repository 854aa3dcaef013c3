"""The policy language: a strict reader, frozen models, and errors that know their line."""

from __future__ import annotations

from funnel.policy.blocks import Block, CellLimits
from funnel.policy.columns import Attribute
from funnel.policy.load import load, loads
from funnel.policy.model import Draws, EstimateSection, Policy, SourceSection
from funnel.policy.release import ReleaseSection
from funnel.policy.schema import json_schema

__all__ = [
    "Attribute", "Block", "CellLimits", "Draws", "EstimateSection", "Policy", "ReleaseSection", "SourceSection",
    "json_schema", "load", "loads",
]  # fmt: skip
