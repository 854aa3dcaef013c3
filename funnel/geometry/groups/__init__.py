"""Cones whose coordinates fall into groups that meet in two numbers only, far beyond what can be listed or searched."""

from funnel.geometry.groups.argument import GroupCertificate, Listing, Piece
from funnel.geometry.groups.cone import GroupCone
from funnel.geometry.groups.search import GAP, maximise_groups, serves

__all__ = ["GAP", "GroupCertificate", "GroupCone", "Listing", "Piece", "maximise_groups", "serves"]
