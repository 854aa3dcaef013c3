"""Releases that are unlike in more than one respect, or noisy in part, have no bound, for ledger and auditor alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.audit.extras.composition import unlike_twice
from funnel.format.journal import Drawn, Present, ReleaseEntry
from funnel.ledger.unlike import NOISY, Frame, respects, unproven
from tests.support.ledger import ENTRY, an_id

Change = Callable[[ReleaseEntry], ReleaseEntry]


def drawn(one: ReleaseEntry, **changes: object) -> ReleaseEntry:
    return replace(one, drawn=tuple(replace(block, **changes) for block in one.drawn))


def of(one: ReleaseEntry, **changes: object) -> ReleaseEntry:
    return replace(one, identity=replace(one.identity, **changes))


RESPECTS: dict[str, Change] = {
    "a filter": lambda one: replace(one, present=Present("ward = 'east'", ("ward",), (), 0, 7)),
    "another table": lambda one: of(one, table="1" * 64),
    "another entity": lambda one: replace(one, entity="row"),
    "a draw from the secret": lambda one: drawn(one, reads=("S",)),
    "other names": lambda one: drawn(one, meaning=("1" * 16,)),
    "another column": lambda one: drawn(one, since=(an_id(1),)),
}
ANOTHER = RESPECTS["another table"]
ALIKE: dict[str, Change] = {
    "as it was": lambda one: one,
    "other people's numbers": lambda one: of(one, numbered=an_id(1)),
    "other rows": lambda one: of(one, content="1" * 64),
    "fresh draws": lambda one: replace(one, draws="fresh", key_fingerprint=None, entity=None),
    "another key": lambda one: replace(one, key_fingerprint="b" * 16),
    "another block": lambda one: replace(
        one, drawn=(Drawn(("Z",), ("2" * 16,), ("2" * 16,), None, (), (ENTRY.release,)),)
    ),
}


def why(*entries: ReleaseEntry) -> str | None:
    """What the ledger says; the auditor finds the same without it."""
    frames = [Frame.of(one) for one in entries]
    found = respects(frames)
    assert unlike_twice(entries) == (len(found) > 1 or NOISY in found)
    return unproven(frames, ENTRY.own.together.sensitive)


@pytest.mark.parametrize("one", RESPECTS)
@pytest.mark.parametrize("alike", ALIKE)
def test_in_one_respect_releases_may_be_unlike(one: str, alike: str) -> None:
    assert why(ENTRY, ALIKE[alike](ENTRY), RESPECTS[one](ENTRY)) is None


@pytest.mark.parametrize(("one", "other"), list(combinations(RESPECTS, 2)))
def test_in_two_respects_nothing_is_proven(one: str, other: str) -> None:
    """Whether one release has both or two have one each."""
    said = why(ENTRY, RESPECTS[one](ENTRY), RESPECTS[other](ENTRY))
    assert said is not None and said.startswith("no proof is about releases of which ")
    assert why(ENTRY, RESPECTS[one](RESPECTS[other](ENTRY))) == said


@pytest.mark.parametrize("alike", ALIKE)
def test_noisy_counts_beside_plain_ones_are_never_proven(alike: str) -> None:
    """A figure would be about neither: counts that no record has, or those of the records."""
    noisy = replace(ENTRY, noisy=True)
    assert why(ENTRY, ALIKE[alike](noisy)) == why(noisy, ALIKE[alike](ENTRY)) is not None
    assert why(noisy, ALIKE[alike](noisy)) is None


def test_a_release_by_itself_is_proven_in_every_respect() -> None:
    entry = ENTRY
    for change in RESPECTS.values():
        entry = change(entry)
    assert why(entry) is why(entry, entry) is None


def test_two_secrets_whose_names_read_alike_are_two() -> None:
    """A column with a blank in its name is no pair of columns: neither is another column under the other's name."""

    def hiding(sensitive: tuple[str, ...], since: str) -> ReleaseEntry:
        one = of(ENTRY, secret=since)
        own = replace(one.own, together=replace(one.own.together, sensitive=sensitive))
        return replace(one, promises=(own,))

    both = hiding(("a b",), an_id(0)), hiding(("a", "b"), an_id(1))
    assert respects([Frame.of(one) for one in both]) == []
    assert why(*both, ANOTHER(ENTRY)) is None


def test_people_whom_a_lock_left_out_are_others_every_night() -> None:
    left_out = replace(ENTRY, present=Present(None, (), (), 3, 3))
    assert why(left_out, left_out) is None
    assert why(left_out, ANOTHER(left_out)) is not None


def test_a_filter_over_another_table_is_another_filter() -> None:
    filtered = RESPECTS["a filter"](ENTRY)
    assert why(filtered, RESPECTS["another table"](filtered)) is not None


def test_names_of_columns_and_people_are_compared_as_tables_compare_them() -> None:
    assert why(ENTRY, replace(drawn(ENTRY, columns=("x",)), entity="ID"), ANOTHER(ENTRY)) is None
    assert why(ENTRY, drawn(ENTRY, columns=("x",), meaning=("1" * 16,)), ANOTHER(ENTRY)) is not None


def test_the_secret_is_a_column_that_may_be_another_one() -> None:
    assert why(ENTRY, of(ENTRY, secret=an_id(1)), ANOTHER(ENTRY)) is not None


@given(st.lists(st.lists(st.sampled_from([*RESPECTS.values(), *ALIKE.values()]), max_size=4), min_size=1, max_size=4))
def test_ledger_and_auditor_agree_on_every_history(changes: list[list[Change]]) -> None:
    entries = []
    for several in changes:
        entry = ENTRY
        for change in several:
            entry = change(entry)
        entries.append(entry)
    why(*entries)
