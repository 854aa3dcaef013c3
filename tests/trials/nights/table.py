"""A table of people that changes night by night, and who was in it with which values: the truth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

ILLNESS = ("none", "diabetes", "depression")
DISTRICTS = ("centre", "north", "other", "south", "west")
EDGES = (18, 35, 55)

_OF_ILLNESS = np.array([0.62, 0.23, 0.15])
_OF_DISTRICT = np.array(
    [[0.30, 0.25, 0.10, 0.20, 0.15], [0.22, 0.20, 0.10, 0.28, 0.20], [0.36, 0.16, 0.10, 0.18, 0.20]]
)
_OF_AGE = (44.0, 50.0, 42.0)
_LATER = np.array([0.55, 0.30, 0.15])
"""Illnesses of those who arrive at the end of the year: the table drifts."""

_MOVE_AT_ONCE, _ARRIVE_THERE = 0.06, 0.08
"""Parts of the people who move to a district as it opens, and of those who arrive in a new one."""

Truth = dict[int, tuple[str, tuple[str, str]]]
"""For every person in the table: the secret, and the two public values as they are."""


@dataclass
class People:
    """Arrays (n,) of one night's people; `birthday` is the night of the year on which one is a year older.

    `number` is what the table calls a person tonight, `person` who that is.
    """

    person: npt.NDArray[np.int64]
    number: npt.NDArray[np.int64]
    illness: npt.NDArray[np.int64]
    district: npt.NDArray[np.object_]
    age: npt.NDArray[np.int64]
    birthday: npt.NDArray[np.int64]

    def take(self, kept: npt.NDArray[np.bool_]) -> People:
        """Some of them."""
        return People(*(column[kept] for column in vars(self).values()))

    def with_others(self, others: People) -> People:
        """These and others."""
        pairs = zip(vars(self).values(), vars(others).values(), strict=True)
        return People(*(np.concatenate(pair) for pair in pairs))


class Table:
    """The table of a year of `nights`, `size` people at first; `new` says which districts open on which night."""

    def __init__(self, seed: int, size: int, nights: int, new: dict[int, str]) -> None:
        self.random = np.random.default_rng([seed, 1])
        self.size, self.nights, self.new = size, nights, new
        self.open = list(DISTRICTS)
        self._last, self.numbered = 100, 1
        self.people = self._arriving(size, 0.0)

    def pass_night(self, night: int) -> dict[str, int]:
        """Departures, arrivals, moves and birthdays between two nights; how many of each, and of new values."""
        leaving = self.random.random(len(self.people.person)) < 1.2 / self.nights
        self.people = self.people.take(~leaving)
        arriving = int(self.random.poisson(1.2 * self.size / self.nights))
        self.people = self.people.with_others(self._arriving(arriving, night / self.nights))
        older = self.people.birthday == night % 365
        self.people.age[older] += 1
        moving = np.flatnonzero(self.random.random(len(self.people.person)) < 0.5 / self.nights)
        self.people.district[moving] = self.random.choice(self.open, len(moving))
        opened = self._open(night)
        return {
            "left": int(leaving.sum()), "arrived": arriving, "moved": len(moving) + opened,
            "birthdays": int(older.sum()), "to a new district": opened,
        }  # fmt: skip

    def _open(self, night: int) -> int:
        """A district opens, and some move there at once."""
        if night not in self.new:
            return 0
        self.open.append(self.new[night])
        movers = self.random.random(len(self.people.person)) < _MOVE_AT_ONCE
        self.people.district[movers] = self.new[night]
        return int(movers.sum())

    def _arriving(self, many: int, late: float) -> People:
        """People who arrive when a part `late` of the year is over."""
        chances = (1 - late) * _OF_ILLNESS + late * _LATER
        illness = self.random.choice(len(ILLNESS), many, p=chances)
        district = np.array([self._district(s) for s in illness], object)
        age = np.clip(self.random.normal(np.array(_OF_AGE)[illness], 15), EDGES[0], 97).astype(np.int64)
        # Numbers with gaps, in no order that says when somebody came.
        person = self._last + 1 + self.random.permutation(2 * many)[:many]
        self._last += 2 * many
        person = person.astype(np.int64)
        return People(person, person.copy(), illness, district, age, self.random.integers(0, 365, many))

    def _district(self, illness: int) -> str:
        opened = self.open[len(DISTRICTS) :]
        if opened and self.random.random() < _ARRIVE_THERE:
            return str(self.random.choice(opened))
        return str(self.random.choice(DISTRICTS, p=_OF_DISTRICT[illness]))

    def write(self, path: Path) -> None:
        """The source table, in no particular order."""
        order = self.random.permutation(len(self.people.person))
        people = self.people
        columns = {
            "person": people.number[order],
            "illness": np.array(ILLNESS, object)[people.illness[order]],
            "district": people.district[order],
            "age": people.age[order],
        }
        pq.write_table(pa.table(columns), path)

    def renumber(self) -> None:
        """Everybody has a number that nobody had before."""
        many = len(self.people.number)
        self.people.number = (self._last + 1 + self.random.permutation(2 * many)[:many]).astype(np.int64)
        self._last += 2 * many
        self.numbered += 1

    def numbers(self) -> dict[int, int]:
        """What the table calls everybody tonight."""
        return dict(zip(self.people.person.tolist(), self.people.number.tolist(), strict=True))

    def truth(self) -> Truth:
        """Who is in the table tonight."""
        people = self.people
        rows = zip(
            people.person.tolist(), people.illness.tolist(), people.district, people.age.tolist(), strict=True
        )
        return {person: (ILLNESS[s], (str(district), band(age))) for person, s, district, age in rows}


def band(age: int) -> str:
    """The half-open interval of an age, as a release names it."""
    below = max(i for i, edge in enumerate(EDGES) if age >= edge)
    if below == len(EDGES) - 1:
        return f"[{EDGES[-1]}, ∞)"
    return f"[{EDGES[below]}, {EDGES[below + 1]})"
