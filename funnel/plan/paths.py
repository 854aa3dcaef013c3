"""What holds the values of public columns: groups of several levels, and the tree of a wide block's cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from funnel.cells.cells import Cells
from funnel.data import Joint
from funnel.data.alphabet import Paths
from funnel.policy import Policy
from funnel.policy.columns import Attribute


def placed(policy: Policy, cells: Sequence[Cells], joint: Joint) -> Joint:
    """The joint distribution, its blocks told what holds their values."""
    grouped = {one.name: one for block in policy.blocks if block.cells is None for one in block.attributes
               if len(one.groups or ()) > 1}  # fmt: skip
    paths: Paths = {one.name: one.ways() for one in cells}
    blocks = tuple(
        replace(block, paths={
            **{name: paths[name] for name in block.columns if name in paths},
            **{name: _of_groups(grouped[name], {value[place] for value in block.values})
               for place, name in enumerate(block.columns) if name in grouped},
        })
        for block in joint.blocks
    )  # fmt: skip
    return replace(joint, blocks=blocks)


def _of_groups(attribute: Attribute, values: set[str | None]) -> dict[str, tuple[str, ...]]:
    return {value: tuple(reversed(attribute.above(value))) for value in values if value is not None}
