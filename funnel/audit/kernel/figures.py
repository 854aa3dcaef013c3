"""Claims about leakage and information, of the channel that was really released."""

from __future__ import annotations

from fractions import Fraction

from funnel.audit.kernel.exact import rational
from funnel.audit.kernel.notions import NOTIONS, Leakage, ldp, lip
from funnel.audit.kernel.opened import Opened
from funnel.audit.kernel.verdict import Broken
from funnel.format import manifest, protocol


def bounded(opened: Opened) -> str:
    """The leakage of the channel released, measured exactly as `notions` defines it, is at most epsilon.

    Of robust notions it is the stated figure, at most epsilon by `stated-bound`, that the certificate shows.
    """
    one, notion = opened.manifest, NOTIONS[opened.manifest.notion]
    found = notion.leakage(opened.channel)
    limit = rational(one.epsilon)
    figure = one.leakage[notion.measure]
    if not found.within(min(limit, rational(figure)) if figure is not None else limit):
        raise _above(one.notion, limit, found)
    words = f"{notion.measure} {found.text} <= {one.epsilon:g} nats"
    if notion.beside is None:
        return words
    if one.parameters.lower is None:
        return f"{words}; only rises are bounded"
    other, lower = notion.beside(opened.channel), rational(one.parameters.lower)
    if not other.within(lower):
        raise _above(f"{one.notion}, beliefs that fall", lower, other)
    return f"{words}, falling {other.text} <= {one.parameters.lower:g}"


def _above(what: str, limit: Fraction, found: Leakage) -> Broken:
    return Broken(protocol.NAME, f"the leakage breaks the bound of {what}", f"at most {float(limit)}", found.text)


def stated(opened: Opened) -> str:
    """The manifest's lip, ldp and own leakage are the exact ones, rounded up at the fourth decimal or to epsilon."""
    one, words = opened.manifest, []
    own = NOTIONS[one.notion]
    for measure, leakage in {"lip": lip, "ldp": ldp, own.measure: own.leakage}.items():
        figure, found = one.leakage[measure], leakage(opened.channel)
        if not found.is_stated_as(None if figure is None else rational(figure)):
            raise Broken(manifest.NAME, f"leakage.{measure} is not the exact one rounded up", found.text, figure)
        words.append(f"{measure} {'infinite' if figure is None else figure}")
    return f"{', '.join(words)} nats"
