"""Cones whose coordinates fall into groups that meet in two numbers only, far beyond what can be listed or searched."""

from funnel.optimise.groups.levels import GroupCone
from funnel.optimise.groups.search import maximise_groups, serves

__all__ = ["GroupCone", "maximise_groups", "serves"]
