"""The ledger notices every change, tells a crash from damage, and keeps every visible release's entry."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.errors import InternalError, LedgerError, ReleaseError
from funnel.format import schema
from funnel.format.journal import START, Head, Line
from funnel.ledger.journal import Journal
from tests.support.ledger import TIME, an_entry, an_id


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A ledger of three entries."""
    for number in range(1, 4):
        Journal(tmp_path).append(an_entry(number))
    return tmp_path


def names(private: Path) -> list[str]:
    return [entry.release for entry in Journal(private).releases()]


def lines(private: Path) -> list[bytes]:
    return (private / "ledger.jsonl").read_bytes().splitlines(keepends=True)


def rewrite(private: Path, content: list[bytes]) -> None:
    (private / "ledger.jsonl").write_bytes(b"".join(content))


def damage(private: Path) -> LedgerError:
    with pytest.raises(LedgerError) as reading:
        Journal(private).lines()
    with pytest.raises(LedgerError):
        Journal(private).append(an_entry(7))
    assert reading.value.code == "ledger"
    assert "Restore" in (reading.value.advice or "")
    return reading.value


def test_entries_come_back_in_order_with_their_links(private: Path) -> None:
    found = Journal(private).lines()
    assert [(line.sequence, line.entry) for line in found] == [(n, an_entry(n)) for n in (1, 2, 3)]
    assert [line.previous for line in found] == [
        START,
        *(hashlib.sha256(raw).hexdigest() for raw in lines(private)[:2]),
    ]
    assert "Zürich".encode() in lines(private)[0]


def test_a_new_ledger_is_empty(tmp_path: Path) -> None:
    assert Journal(tmp_path).lines() == ()
    assert list(tmp_path.iterdir()) == [], "reading writes nothing"


def test_append_returns_what_it_wrote(private: Path) -> None:
    written = Journal(private).append(an_entry(4))
    assert Journal(private).lines()[-1] == written
    assert written.sequence == 4


def test_a_clock_that_was_set_back_does_not_show(private: Path) -> None:
    last = Journal(private).lines()[-1]
    ahead = replace(last, written="2999-01-01T00:00:00Z")
    rewrite(private, [*lines(private)[:-1], schema.write(ahead)])
    (private / "ledger.head").write_bytes(
        schema.write(Head(3, hashlib.sha256(schema.write(ahead)).hexdigest()))
    )
    assert Journal(private).append(an_entry(4)).written == ahead.written


def test_ledger_files_are_their_owners(private: Path) -> None:
    for path in private.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_entry_that_could_not_be_read_again_is_not_written(private: Path) -> None:
    with pytest.raises(InternalError, match=r"entry\.name"):
        Journal(private).append(an_entry(4, name=""))
    assert len(names(private)) == 3


# Damage.


def places(private: Path) -> list[int]:
    """All places in the line between the others, its ends included, and every seventh in those, which are alike."""
    first, second, third = np.cumsum([len(line) for line in lines(private)]).tolist()
    return [*range(0, first - 1, 7), *range(first - 1, second), *range(second, third, 7)]


@pytest.mark.long
def test_every_changed_byte_is_noticed(private: Path) -> None:
    """A flipped bit anywhere, the newlines included."""
    content = (private / "ledger.jsonl").read_bytes()
    for place in places(private):
        changed = bytearray(content)
        changed[place] ^= 1
        (private / "ledger.jsonl").write_bytes(bytes(changed))
        damage(private)


@pytest.mark.long
def test_every_cut_is_noticed(private: Path) -> None:
    """Also one at the end of a line, and the loss of the file."""
    content = (private / "ledger.jsonl").read_bytes()
    for length in places(private):
        (private / "ledger.jsonl").write_bytes(content[:length])
        assert "the ledger had 3 entries" in damage(private).message
    (private / "ledger.jsonl").unlink()
    assert "line 1 " in damage(private).message


@pytest.mark.parametrize(
    ("order", "line"),
    [([1, 2], 1), ([0, 2], 2), ([0, 2, 1], 2), ([0, 0, 1, 2], 2), ([2, 1, 0], 1), ([0, 1], 3)],
)
def test_lines_removed_repeated_or_moved(order: list[int], line: int, private: Path) -> None:
    content = lines(private)
    rewrite(private, [content[i] for i in order])
    error = damage(private)
    assert f"line {line} " in error.message
    assert (error.where or "").endswith(f"ledger.jsonl:{line}")


@pytest.mark.parametrize("insert", [b"\n", b"[]\n", b"{}\n", b"\xff\xfe\n", b"null\n", b'{"sequence": 4}\n'])
def test_foreign_lines(insert: bytes, private: Path) -> None:
    content = lines(private)
    for place in range(4):
        rewrite(private, [*content[:place], insert, *content[place:]])
        assert f"line {place + 1} " in damage(private).message


def test_an_entry_edited_together_with_the_links_behind_it(private: Path) -> None:
    """Whoever repairs the chain by hand still does not match the head."""
    found = [schema.read(Line, "ledger.jsonl", raw) for raw in lines(private)]
    found[0] = replace(found[0], entry=an_entry(9))
    previous, forged = START, []
    for line in found:
        forged.append(schema.write(replace(line, previous=previous)))
        previous = hashlib.sha256(forged[-1]).hexdigest()
    rewrite(private, forged)
    assert "not the one that was written" in damage(private).message


@pytest.mark.parametrize(
    "head",
    [b"", b"{}", b"[]", b"x", b'{"sequence": "x", "sha256": ""}', b'{"sequence": 0, "sha256": ""}', b"\xff"],
)
def test_a_damaged_head(head: bytes, private: Path) -> None:
    (private / "ledger.head").write_bytes(head)
    damage(private)


def test_a_lost_head(private: Path) -> None:
    (private / "ledger.head").unlink()
    assert "ledger.head is missing" in damage(private).message


def test_a_ledger_that_is_a_folder(private: Path) -> None:
    (private / "ledger.jsonl").unlink()
    (private / "ledger.jsonl").mkdir()
    with pytest.raises(LedgerError, match="cannot be read"):
        Journal(private).lines()


# Crashes.


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_torn_last_line_is_a_crash(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The line was not confirmed, so its release was never visible: it does not count, and goes away."""
    private = tmp_path_factory.mktemp("private")
    for number in range(data.draw(st.integers(0, 3))):
        Journal(private).append(an_entry(number))
    before = names(private)
    torn = schema.write(Line(len(before) + 1, TIME, "f" * 64, "f" * 32, an_entry(6))).rstrip()
    with (private / "ledger.jsonl").open("ab") as file:
        file.write(torn[: data.draw(st.integers(0, len(torn)))])
    assert names(private) == before
    Journal(private).append(an_entry(7))
    assert names(private) == [*before, an_id(7)]


def test_a_whole_line_that_a_crash_left_unconfirmed_counts(private: Path) -> None:
    """Nothing shows whether its release became visible; counting it errs on the safe side."""
    head = (private / "ledger.head").read_bytes()
    Journal(private).append(an_entry(4))
    (private / "ledger.head").write_bytes(head)
    assert names(private) == [*map(an_id, (1, 2, 3, 4))]
    Journal(private).append(an_entry(5))
    assert names(private) == [*map(an_id, (1, 2, 3, 4, 5))]


def test_the_first_entry_may_be_unconfirmed_too(tmp_path: Path) -> None:
    Journal(tmp_path).append(an_entry(1))
    (tmp_path / "ledger.head").unlink()
    assert names(tmp_path) == [*map(an_id, (1,))]
    Journal(tmp_path).append(an_entry(2))
    assert names(tmp_path) == [*map(an_id, (1, 2))]


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_failed_append_leaves_the_ledger_as_it_was(
    call: str, private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of its calls fails first, and whichever comes after that, until none does."""
    original, content = getattr(os, call), (private / "ledger.jsonl").read_bytes()
    for survived in range(10):
        calls = iter(range(100))

        def failing(
            *arguments: object, _calls: object = calls, _survived: int = survived, **options: object
        ) -> object:
            if next(_calls) == _survived:  # type: ignore[call-overload]
                raise OSError(28, "No space left on device")
            return original(*arguments, **options)

        monkeypatch.setattr(os, call, failing)
        try:
            Journal(private).append(an_entry(7))
        except ReleaseError:
            monkeypatch.setattr(os, call, original)
            if json.loads((private / "ledger.head").read_text())["sequence"] == 4:
                # Failed when all was written: the entry stands, chain and head agree.
                assert names(private) == [*map(an_id, (1, 2, 3, 7))]
                return
            assert (private / "ledger.jsonl").read_bytes() == content
        else:
            break
    monkeypatch.setattr(os, call, original)
    assert names(private) == [*map(an_id, (1, 2, 3, 7))]
    Journal(private).append(an_entry(8))
    assert names(private)[-1] == an_id(8)
