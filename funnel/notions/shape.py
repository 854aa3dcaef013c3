"""What a notion sees of a table before it is solved: its sizes, and how its blocks will be arranged."""

from __future__ import annotations

from dataclasses import dataclass

from funnel.data import Joint
from funnel.data.arrange import tells_secret, together


@dataclass(frozen=True)
class Shape:
    """Cardinalities that decide how blocks are arranged.

    Sizes of the blocks, how many combinations of public values occur, in how few records one of them does, and
    whether the secret is among the public columns. `columns`: where it matters, how many values may be known of each.
    """

    blocks: tuple[int, ...]
    combinations: int
    fewest: int
    secret_public: bool
    columns: tuple[int, ...] = ()

    @classmethod
    def of(cls, joint: Joint) -> Shape:
        """The shape of a joint distribution."""
        whole = together(joint)
        fewest = int(whole.table().sum(axis=0).min())
        columns = () if joint.finer is None else joint.finer.sizes()
        return cls(joint.shape[1:], len(whole.blocks[0]), fewest, tells_secret(joint), columns)


@dataclass(frozen=True)
class Foreseen:
    """Whether all public columns will be one alphabet, and why the blocks are arranged as they are ("": as asked)."""

    together: bool
    why: str
