"""The ledger notices every change, tells a crash from damage, and keeps every visible release's entry."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.errors import LedgerError, ReleaseError
from funnel.ledger.journal import Ledger


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A ledger of three entries."""
    for number in range(1, 4):
        Ledger(tmp_path).append({"release": f"r{number}", "name": "Zürich"})
    return tmp_path


def names(private: Path) -> list[str]:
    return [entry["release"] for entry in Ledger(private).entries()]


def lines(private: Path) -> list[bytes]:
    return (private / "ledger.jsonl").read_bytes().splitlines(keepends=True)


def rewrite(private: Path, content: list[bytes]) -> None:
    (private / "ledger.jsonl").write_bytes(b"".join(content))


def damage(private: Path) -> LedgerError:
    with pytest.raises(LedgerError) as reading:
        Ledger(private).entries()
    with pytest.raises(LedgerError):
        Ledger(private).append({"release": "next"})
    assert reading.value.code == "ledger"
    assert "Restore" in (reading.value.advice or "")
    return reading.value


def test_entries_come_back_in_order_with_their_links(private: Path) -> None:
    entries = Ledger(private).entries()
    raw = (private / "ledger.jsonl").read_bytes().split(b"\n")
    assert [(entry["sequence"], entry["release"], entry["name"]) for entry in entries] == [
        (1, "r1", "Zürich"),
        (2, "r2", "Zürich"),
        (3, "r3", "Zürich"),
    ]
    assert [entry["previous"] for entry in entries] == [
        "0" * 64,
        *(hashlib.sha256(line).hexdigest() for line in raw[:2]),
    ]
    assert entries[0].keys() == {"sequence", "written", "release", "name", "previous"}
    assert "Zürich".encode() in raw[0]


def test_a_new_ledger_is_empty(tmp_path: Path) -> None:
    assert Ledger(tmp_path).entries() == []
    assert list(tmp_path.iterdir()) == [], "reading writes nothing"


def test_append_returns_what_it_wrote(private: Path) -> None:
    written = Ledger(private).append({"release": "r4"})
    assert Ledger(private).entries()[-1] == written
    assert written["sequence"] == 4


def test_ledger_files_are_their_owners(private: Path) -> None:
    for path in private.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_entry_may_not_write_the_ledgers_own_fields(private: Path) -> None:
    for field in ("sequence", "written", "previous"):
        with pytest.raises(ValueError, match="own"):
            Ledger(private).append({field: 1})
    assert len(names(private)) == 3


# Damage.


def test_every_changed_byte_is_noticed(private: Path) -> None:
    """A flipped bit anywhere, the newlines included."""
    content = (private / "ledger.jsonl").read_bytes()
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1
        (private / "ledger.jsonl").write_bytes(bytes(changed))
        damage(private)


def test_every_cut_is_noticed(private: Path) -> None:
    """Also one at the end of a line, and the loss of the file."""
    content = (private / "ledger.jsonl").read_bytes()
    for length in range(len(content)):
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
    entries = [json.loads(line) for line in lines(private)]
    entries[0]["release"] = "other"
    previous, forged = "0" * 64, []
    for entry in entries:
        line = json.dumps(entry | {"previous": previous}, ensure_ascii=False).encode()
        previous = hashlib.sha256(line).hexdigest()
        forged.append(line + b"\n")
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
        Ledger(private).entries()


# Crashes.


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_torn_last_line_is_a_crash(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The line was not confirmed, so its release was never visible: it does not count, and goes away."""
    private = tmp_path_factory.mktemp("private")
    for number in range(data.draw(st.integers(0, 3))):
        Ledger(private).append({"release": f"r{number}"})
    before = names(private)
    torn = json.dumps({"sequence": len(before) + 1, "release": "torn" * 100, "previous": "x"}).encode()
    with (private / "ledger.jsonl").open("ab") as file:
        file.write(torn[: data.draw(st.integers(0, len(torn)))])
    assert names(private) == before
    Ledger(private).append({"release": "next"})
    assert names(private) == [*before, "next"]


def test_a_whole_line_that_a_crash_left_unconfirmed_counts(private: Path) -> None:
    """Nothing shows whether its release became visible; counting it errs on the safe side."""
    head = (private / "ledger.head").read_bytes()
    Ledger(private).append({"release": "r4"})
    (private / "ledger.head").write_bytes(head)
    assert names(private) == ["r1", "r2", "r3", "r4"]
    Ledger(private).append({"release": "r5"})
    assert names(private) == ["r1", "r2", "r3", "r4", "r5"]


def test_the_first_entry_may_be_unconfirmed_too(tmp_path: Path) -> None:
    Ledger(tmp_path).append({"release": "r1"})
    (tmp_path / "ledger.head").unlink()
    assert names(tmp_path) == ["r1"]
    Ledger(tmp_path).append({"release": "r2"})
    assert names(tmp_path) == ["r1", "r2"]


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
            Ledger(private).append({"release": "next"})
        except ReleaseError:
            monkeypatch.setattr(os, call, original)
            if json.loads((private / "ledger.head").read_text())["sequence"] == 4:
                # Failed when all was written: the entry stands, chain and head agree.
                assert names(private) == ["r1", "r2", "r3", "next"]
                return
            assert (private / "ledger.jsonl").read_bytes() == content
        else:
            break
    monkeypatch.setattr(os, call, original)
    assert names(private) == ["r1", "r2", "r3", "next"]
    Ledger(private).append({"release": "after"})
    assert names(private)[-1] == "after"
