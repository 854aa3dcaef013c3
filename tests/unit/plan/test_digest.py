"""The digest of a table: the same people the same words and sample, whatever else of the table is different."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv

import funnel
from funnel.draw.people import Words
from funnel.format.people import BITS, PeopleFile
from funnel.ledger.people import PeopleKey, keep_key, people_key, table_name
from funnel.plan.compiled import planned
from funnel.plan.count import count
from funnel.plan.digest import digest as digested
from tests.support.policies import write_policy

KEY = PeopleKey(bytes(range(32)))
TERMS = {"sensitive": ["s"], "public": ["x"], "estimate": {"minimum": 1}}


def taken(folder: Path, table: pa.Table, name: str = "t.parquet", key: PeopleKey = KEY, **terms) -> PeopleFile:
    """The digest of a table under a policy."""
    (csv.write_csv if name.endswith("csv") else pq.write_table)(table, folder / name)
    policy = funnel.load(write_policy(folder, **({"source": {"table": name, "entity": "id"}} | TERMS | terms)))
    with planned(policy) as (plan, engine, source):
        count(policy, plan, engine)
        return digested(policy, plan, source, engine, key)


def people(ids, s=None, x=None) -> pa.Table:
    many = len(ids)
    return pa.table({"id": ids, "s": s or ["a", "b"] * (many // 2), "x": x or ["u", "u", "v", "v"] * (many // 4)})


@pytest.mark.parametrize("ids", [[*range(40)], [f"p{i}" for i in range(40)], [-(10**17) + i for i in range(40)]])
def test_order_does_not_matter(tmp_path: Path, ids) -> None:
    table = people(ids)
    backwards = table.take(list(reversed(range(40))))
    assert taken(tmp_path, table) == taken(tmp_path, backwards)


def test_an_identifier_is_the_same_as_number_and_as_text(tmp_path: Path) -> None:
    """42 and "42" are one person, in a file with types and in one without."""
    numbers, texts = people([*range(40)]), people([str(i) for i in range(40)])
    files = [taken(tmp_path, numbers), taken(tmp_path, texts), taken(tmp_path, numbers, "t.csv")]
    assert len({(one.sample, one.labels) for one in files}) == 1
    assert files[0].table != files[2].table


@pytest.mark.parametrize("place", [0, 39])
@pytest.mark.parametrize("column", ["id", "s", "x"])
def test_any_change_of_one_person_changes_the_hash_of_all(tmp_path: Path, column: str, place: int) -> None:
    table = people([*range(40)])
    values = table.column(column).to_pylist()
    values[place] = {"id": 99, "s": "b" if values[place] == "a" else "a", "x": "w"}[column]
    changed = table.set_column(table.schema.get_field_index(column), column, [values])
    before, after = taken(tmp_path, table), taken(tmp_path, changed)
    assert before.content != after.content
    assert sum(one != other for one, other in zip(before.sample, after.sample, strict=True)) > 0 or column == "x"


def test_missing_is_a_value_of_its_own_and_what_is_left_out_is_not_there(tmp_path: Path) -> None:
    holes = people([*range(40)], x=[None, "u", "", "v"] * 10)
    source = {"table": "t.parquet", "entity": "id"}
    told = taken(tmp_path, holes, source=source | {"missing": "category"})
    assert set(told.labels[1]) == {None, "", "u", "v"}
    assert (told.rows, len(told.sample)) == (40, 40)
    dropped = taken(tmp_path, holes, source=source | {"missing": "drop"})
    assert (dropped.rows, len(dropped.sample)) == (30, 30)
    assert {row[0] for row in dropped.sample} < {row[0] for row in told.sample}


def test_of_many_people_the_same_ones_are_kept_every_night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Larger tables keep fewer of the same order of words, so that any two nights have people in common."""
    monkeypatch.setattr("funnel.draw.people.MOST", 64)
    small, large = taken(tmp_path, people([*range(100)])), taken(tmp_path, people([*range(1000)]))
    assert (small.bits, large.bits) == (1, 4)
    below = 1 << (BITS - large.bits)
    known = {row[0] for row in small.sample if row[0] < below}
    assert known == {row[0] for row in large.sample} & {row[0] for row in small.sample}
    assert 20 <= len(large.sample) <= 150
    assert all(row[0] < below for row in large.sample)


@settings(max_examples=20)
@given(st.lists(st.integers(-(10**19), 10**19) | st.text(max_size=40), min_size=1, max_size=50, unique_by=str))
def test_words_are_of_the_key_and_the_identifier_alone(whose) -> None:
    column = pa.array([str(one) for one in whose])
    words, other = Words(KEY).of(column), Words(PeopleKey(bytes(32))).of(column)
    assert [Words(KEY).of(pa.array([str(one)]))[0] for one in whose] == words.tolist()
    assert len(set(words.tolist())) == len(whose)
    assert (words >= 0).all()
    assert not set(words.tolist()) & set(other.tolist())


def test_another_key_has_other_words_and_hashes(tmp_path: Path) -> None:
    one, other = (taken(tmp_path, people([*range(40)]), key=key) for key in (KEY, PeopleKey(bytes(32))))
    assert one.key != other.key
    assert one.content != other.content
    assert not {row[0] for row in one.sample} & {row[0] for row in other.sample}


def test_a_table_of_nobody_has_a_hash_of_its_name_and_its_counts(tmp_path: Path) -> None:
    """Rows that are nobody's say no more of who is in it, and under another name nothing at all."""
    table, source = people([*range(40)]), {"table": "t.parquet"}
    fresh = {"source": source, "draws": {"kind": "fresh"}}
    one, again = (taken(tmp_path, people(ids), **fresh) for ids in ([*range(40)], [*range(1, 41)]))
    assert one == again
    moved = taken(tmp_path, people([*range(40)], x=["u"] * 30 + ["v"] * 10), **fresh)
    elsewhere = taken(tmp_path, table, "u.parquet", **(fresh | {"source": {"table": "u.parquet"}}))
    assert len({one.content, moved.content, elsewhere.content}) == 3
    assert (one.sample, one.labels, one.entity) == ((), ((), ()), None)


def test_a_folder_keeps_one_key_and_a_damaged_one_stops_it(tmp_path: Path) -> None:
    first = people_key(tmp_path)
    assert people_key(tmp_path).fingerprint != first.fingerprint
    keep_key(tmp_path, first)
    keep_key(tmp_path, people_key(tmp_path))
    assert people_key(tmp_path).fingerprint == first.fingerprint
    (tmp_path / "people.key").write_text("spoilt")
    with pytest.raises(funnel.LedgerError, match="cannot be read"):
        people_key(tmp_path)


def test_tables_are_named_as_the_private_folder_sees_them(tmp_path: Path) -> None:
    """Both may be moved together; policies in two folders name one table; a server's address is itself."""
    here, there = tmp_path / "a", tmp_path / "b"
    assert table_name("t.csv", here, here / "private") == table_name("t.csv", there, there / "private")
    assert table_name("../x/t.csv", here, here / "private") == table_name("t.csv", tmp_path / "x", here / "private")
    assert table_name("t.csv", here, here / "private") != table_name("u.csv", here, here / "private")
    assert table_name("s3://x/t.csv", here, here) == table_name("s3://x/t.csv", there, there / "p")


def test_links_to_one_private_folder_give_two_tables_no_common_name(tmp_path: Path) -> None:
    """What is made of both would be taken for draws from one column. A link that leads to the newest is a name."""
    (tmp_path / "shared").mkdir()
    for name in ("a", "b"):
        (tmp_path / name / "old").mkdir(parents=True)
        (tmp_path / name / "private").symlink_to("../shared")
    a, b = (tmp_path / name for name in ("a", "b"))
    assert table_name("t.csv", a, a / "private") != table_name("t.csv", b, b / "private")
    assert table_name("t.csv", a, a / "private") == table_name("../a/t.csv", b, b / "private")
    (a / "newest").symlink_to("old")
    before = table_name("newest/t.csv", a, a / "private")
    assert before != table_name("old/t.csv", a, a / "private")
    (a / "away").symlink_to(b / "old")
    assert table_name("away/../t.csv", a, a / "private") == table_name("t.csv", b, b / "private")
