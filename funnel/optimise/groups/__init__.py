"""Cones whose coordinates fall into groups that meet in two numbers only, far beyond what can be listed or searched."""

from funnel.optimise.groups.cone import GroupCone
from funnel.optimise.groups.search import GAP, maximise_groups, serves

__all__ = ["GAP", "GroupCone", "maximise_groups", "serves"]
