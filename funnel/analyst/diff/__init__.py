"""What changed between two policies, locks or releases, in terms of privacy."""

from funnel.analyst.diff.compare import Difference, compare
from funnel.analyst.diff.sides import Side, read_side, read_sides

__all__ = ["Difference", "Side", "compare", "read_side", "read_sides"]
