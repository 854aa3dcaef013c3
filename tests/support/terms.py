"""Terms of policies, as terms.json has them."""

from __future__ import annotations

from funnel.format.terms import Attribute


def plain_column(name: str) -> Attribute:
    """A column that is released as it is."""
    return Attribute(name, None, None, None, None, None, None, trim=False, unseen="error")
