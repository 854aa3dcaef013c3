"""people.json: a private digest of who is in a release with which values, and its hash in the ledger.

What later releases need to know of this one: whether identifiers mean the same people and values the same things.
Identifiers stand in it as words of a function under the private folder's own key, never as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from funnel.format.fields import Count, Fingerprint, Label, Sha256, Text
from funnel.format.schema import Grid, InRange

NAME = "people.json"
KEY = "people.key"
"""What words for identifiers are made with, in a private folder."""
MOST = 1 << 13
"""People in a sample on average, at most; where there are no more of them, all are in it."""
BITS = 63
"""Of a word that is drawn for a person: what a signed whole number of 64 bits holds."""


@dataclass(frozen=True)
class PeopleFile:
    """A sample of people with what they were drawn for, and a digest of all that was counted.

    `table` is a hash of the name of the table as it is seen from the private folder, and of how the policy has a CSV
    read; `key` the fingerprint of the key that words are made with. `content` is a hash of all rows, whatever their
    order: of whom they are about and the values counted, or without an `entity` of `table` and the values counted. In
    the sample is everybody who has a word (the same in every release) that begins with `bits` zeros. `labels` are the
    values in the sample of each secret column and then of each public one; its rows are [word, code, …], in order.
    Without an entity it is empty.
    """

    format: Literal["funnel-people/1"]
    table: Sha256
    key: Fingerprint
    entity: Text | None
    rows: Count
    content: Sha256
    bits: Annotated[int, InRange(0, 62)]
    secret: tuple[Text, ...]
    public: tuple[Text, ...]
    labels: tuple[Label, ...]
    sample: Grid
