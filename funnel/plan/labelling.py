"""Labels of a block some of whose columns merge rare values, where a lock says what becomes of any value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from funnel.data import Alphabet, Joint
from funnel.data.arrange import Recoder
from funnel.data.joint import IntArray
from funnel.plan.merging import MOST_VALUES, Text, of_lock
from funnel.plan.stages import Rare
from funnel.plan.tabulate import Merged

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Merging:
    """How a column's rare values are merged: those that a lock has are `known`, and stay."""

    rare: Rare
    known: Sequence[Text]


class Labels:
    """The values of a column as they come, what they `become`, and their records."""

    def __init__(self, alphabet: Alphabet, merging: Merging | None) -> None:
        self.become: dict[Text, Text] = {}
        self._records: dict[Text, int] = {}
        self._place = {value: code for code, (value,) in enumerate(alphabet.values)}
        self._merging = merging

    def codes(self, texts: pa.Array) -> IntArray:
        """The codes (n,) of texts in the alphabet, -1 for what it does not hold."""
        encoded = texts.dictionary_encode(null_encoding="encode")
        values, indices = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
        new = [value for value in values if value not in self.become]
        become = new if self._merging is None else of_lock(self._merging.rare, new, self._merging.known)
        self.become |= dict(zip(new, become, strict=True))
        for value, records in zip(values, np.bincount(indices, minlength=len(values)).tolist(), strict=True):
            self._records[value] = self._records.get(value, 0) + records
        own = np.array([self._place.get(self.become[value], -1) for value in values], np.int64)
        return np.asarray(own[indices])

    def merged(self, name: str) -> Merged:
        """How many values became another one, and of how many records."""
        moved = [value for value, label in self.become.items() if value != label]
        return Merged(name, len(moved), sum(self._records[value] for value in moved))


class Labelling:
    """The codes of a block in a lock's alphabet, of rows whose columns are merged one by one, by their places."""

    def __init__(self, alphabet: Alphabet, merging: Mapping[int, Merging]) -> None:
        alphabets = [Alphabet.of((name,), [(value[place],) for value in alphabet.values])
                     for place, name in enumerate(alphabet.columns)]  # fmt: skip
        places = [{value: code for code, (value,) in enumerate(one.values)} for one in alphabets]
        own = [[place[part] for place, part in zip(places, value, strict=True)] for value in alphabet.values]
        cells = np.column_stack([np.zeros(len(own), np.int64), own])
        nobody = Alphabet(("",), ((None,),))
        self._recoder = Recoder(Joint(nobody, tuple(alphabets), cells, np.ones(len(cells), np.int64)))
        self._order = np.lexsort(cells.T[::-1])
        self.columns = [Labels(one, merging.get(place)) for place, one in enumerate(alphabets)]

    def codes(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Codes (n,) of rows; missing for what the lock does not know, and for all once values are too many."""
        import pyarrow as pa

        parts = [column.codes(texts) for column, texts in zip(self.columns, columns, strict=True)]
        found = self._recoder(parts)
        unknown = np.logical_or.reduce([found < 0, *(own < 0 for own in parts)])
        unknown |= max(len(column.become) for column in self.columns) > MOST_VALUES
        return pa.array(self._order[found], mask=unknown)
