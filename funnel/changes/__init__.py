"""What changed between two policies, locks or releases, in terms of privacy."""

from funnel.changes.compare import Difference, compare
from funnel.changes.sides import Side, read_side

__all__ = ["Difference", "Side", "compare", "read_side"]
