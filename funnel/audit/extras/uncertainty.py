"""How large an uncertainty set has to be for its confidence ([RLDP] section III, equation 9).

The kernel shows robust LDP over the set that the manifest names. That the truth is in such a set with a confidence is
statistics, true of large tables: B = ln(1 + q/n) at order 2, else αq/2n, q the quantile of χ² with a degree of freedom
less than S x U has cells.
"""

from __future__ import annotations

from funnel.audit.extras.base import Release
from funnel.audit.extras.noise import noisy, width
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked, counted
from funnel.format.manifest import NAME
from funnel.measure.uncertainty import radius
from funnel.measure.widening import widened

CLAIM = "uncertainty"
TITLE = "the set of distributions protected against is as large as its confidence asks for, if records are a sample"
PRIVATE = True
_ROUNDING = 1e-9
"""Relative: by how much a radius may fall short, for a quantile is a float."""


def check(opened: Release) -> str | Unchecked:
    """The radius is the one needed, or larger. Raises Broken."""
    asked, joint, private = opened.manifest.parameters, opened.joint, opened.counts.private
    if opened.manifest.notion != "rldp" or asked.confidence is None or asked.radius is None or asked.order is None:
        return Unchecked(NOT_CLAIMED + "no confidence is stated")
    secret, values = joint.alphabets[0], joint.alphabets[1]
    named = secret.columns if set(secret.columns) <= set(values.columns) else ()
    own = [values.columns.index(name) for name in named]
    rest = {tuple(part for place, part in enumerate(one) if place not in own) for one in values.values}
    cells = len(secret.values) * len(rest)
    if private is not None and asked.order != 2:
        raise Broken(NAME, "what noise adds is known at order 2 alone", 2, asked.order)
    if private is None:
        needed = radius(asked.confidence, asked.order, joint.rows, cells)
    else:
        _, true, noise = noisy(private)
        needed = widened(true + noise, width(private, asked.confidence), int(true.sum()), asked.confidence)
    if not asked.radius >= needed * (1 - _ROUNDING):
        raise Broken(NAME, "the uncertainty set is too small for its confidence", needed, asked.radius)
    return f"radius {asked.radius:.6g} nats, {needed:.6g} needed for {asked.confidence:g} over {counted(cells, 'cell')}"
