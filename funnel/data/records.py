"""Records that are released with their secret: x = (s, u), apart and together again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from funnel.data.alphabet import Alphabet, Label
from funnel.data.joint import IntArray, Joint


@dataclass(frozen=True, eq=False)
class Records:
    """What every x of a block is made of: codes of s (a,) and of u (a,); `rest` are the values of U, a2 of them.

    `places` are the positions of the sensitive columns in the block, in the order of `secret`.
    """

    secret: Alphabet
    columns: tuple[str, ...]
    places: tuple[int, ...]
    rest: tuple[Label, ...]
    s: IntArray
    u: IntArray

    @classmethod
    def of(cls, joint: Joint) -> Records:
        """Of a joint of one block whose columns include the sensitive ones; ValueError where they do not."""
        (block,) = joint.blocks
        places = tuple(block.columns.index(column) for column in joint.secret.columns)
        told = [tuple(value[i] for i in places) for value in block.values]
        others = [tuple(part for i, part in enumerate(value) if i not in places) for value in block.values]
        rest = Alphabet.of(tuple(c for c in block.columns if c not in joint.secret.columns), others).values
        code = {value: i for i, value in enumerate(joint.secret.values)}
        place = {value: i for i, value in enumerate(rest)}
        return cls(
            joint.secret,
            block.columns,
            places,
            rest,
            np.array([code[value] for value in told], np.int64),
            np.array([place[value] for value in others], np.int64),
        )

    def everything(self) -> Alphabet:
        """All c·a2 combinations of s and u as an alphabet of the block's columns, s by s, seen or not."""
        return Alphabet(self.columns, tuple(self._label(s, u) for s in self.secret.values for u in self.rest))

    def _label(self, s: Label, u: Label) -> Label:
        """One record's value, its parts in the order of the block's columns."""
        secret, rest = dict(zip(self.places, s, strict=True)), iter(u)
        return tuple(secret[i] if i in secret else next(rest) for i in range(len(self.columns)))
