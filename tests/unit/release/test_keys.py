"""A key opens nothing to whoever sees its object, its messages or its file's mode."""

from __future__ import annotations

import base64
import copy
import os
import pickle
import stat
from pathlib import Path

import pytest

from funnel.draw.keys import Key, one_time_key
from funnel.errors import AGAIN, DrawError, ReleaseError
from funnel.release.keys import load_key, new_key, write_key
from tests.support.samples import fixed_key

SECRET = bytes(range(32))


def stored(path: Path, content: str, mode: int = 0o600) -> Path:
    path.write_text(content)
    path.chmod(mode)
    return path


def refusal(reference: str, base: Path) -> DrawError:
    with pytest.raises(DrawError) as caught:
        load_key(reference, base)
    return caught.value


def test_a_new_key_loads_from_both_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = new_key()
    monkeypatch.setenv("FUNNEL_KEY", text)
    stored(tmp_path / "k", text + "\n")
    from_variable, from_file = load_key("env:FUNNEL_KEY", tmp_path), load_key("file:k", tmp_path)
    assert from_variable.fingerprint == from_file.fingerprint
    assert from_variable.derive("a") == from_file.derive("a")
    assert load_key(f"file:{tmp_path / 'k'}", Path("/nowhere")).fingerprint == from_file.fingerprint


def test_new_keys_differ_and_fit_one_line() -> None:
    keys = {new_key() for _ in range(20)}
    assert len(keys) == 20
    assert all(len(key.split()) == 1 and key.startswith("funnel-key-1:") for key in keys)


def test_purposes_and_keys_are_apart() -> None:
    key = fixed_key()
    derived = [key.derive("a"), key.derive("b"), fixed_key("b").derive("a"), key.derive("")]
    assert len(set(derived)) == 4
    assert all(len(part) == 32 for part in derived)
    assert key.derive("a") == fixed_key().derive("a")
    assert key.fingerprint not in {part.hex()[:16] for part in derived}


def test_one_time_keys_are_not_repeated() -> None:
    assert one_time_key().fingerprint != one_time_key().fingerprint


def test_a_key_shows_its_fingerprint_only() -> None:
    key = Key(SECRET)
    shown = f"{key} {key!r} {key!s:>80} {[key]}"
    for form in (
        SECRET.hex(),
        repr(SECRET),
        base64.b64encode(SECRET).decode(),
        base64.urlsafe_b64encode(SECRET).decode(),
    ):
        assert form[:12] not in shown
    assert len(key.fingerprint) == 16
    assert key.fingerprint in repr(key)
    assert not hasattr(key, "__dict__")


def test_a_key_does_not_leave_the_process() -> None:
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(Key(SECRET))
    assert copy.deepcopy(key := Key(SECRET)) is key
    assert copy.copy(key) is key


def test_a_key_cannot_be_changed() -> None:
    key = Key(SECRET)
    with pytest.raises(AttributeError):
        key._secret = bytes(32)
    with pytest.raises(AttributeError):
        del key._secret


@pytest.mark.parametrize("size", [0, 16, 31, 33])
def test_a_key_has_thirty_two_bytes(size: int) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        Key(bytes(size))


def test_every_mistyped_character_is_noticed(tmp_path: Path) -> None:
    text = new_key()
    for place in range(len(text)):
        wrong = "A" if text[place] != "A" else "B"
        stored(tmp_path / "k", text[:place] + wrong + text[place + 1 :])
        assert refusal("file:k", tmp_path).code == "key-unreadable"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "\n",
        "secret",
        "funnel-key-1:",
        "funnel-key-1:AAAA",
        "funnel-key-2:" + "A" * 48,
        "A" * 48,
        "\0" * 60,
        "ä" * 60,
        "funnel-key-1:" + "A" * 48,
        "funnel-key-1:" + "A" * 5000,
    ],
)
def test_what_is_not_a_key(content: str, tmp_path: Path) -> None:
    stored(tmp_path / "k", content)
    error = refusal("file:k", tmp_path)
    assert error.code == "key-unreadable"
    assert "funnel key new" in (error.advice or "")
    assert error.__context__ is None, "a decoder's error could quote what it read"


def test_messages_never_hold_the_keys_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut short in a file, in a variable, with the wrong mode, or pasted where its name belongs."""
    text = new_key()
    body = text.partition(":")[2]
    stored(tmp_path / "short", text[:-3])
    stored(tmp_path / "open", text, 0o644)
    monkeypatch.setenv("SHORT", text[:-3])
    for reference in (
        "file:short",
        "file:open",
        "env:SHORT",
        text,
        f"env:{text}",
        f"file:{text}",
        f"env:{body}-",
        body,
    ):
        error = refusal(reference, tmp_path)
        assert body[:10] not in error.text()
        assert body[:10] not in str(error.as_dict())


def test_a_missing_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    monkeypatch.setenv("EMPTY_KEY", "  ")
    for reference, name in (
        ("env:NO_SUCH_KEY", "NO_SUCH_KEY"),
        ("env:EMPTY_KEY", "EMPTY_KEY"),
        ("file:gone", "gone"),
    ):
        error = refusal(reference, tmp_path)
        assert error.code == "key-missing"
        assert name in error.text()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o602, 0o610, 0o777])
def test_a_key_that_others_can_use(mode: int, tmp_path: Path) -> None:
    path = stored(tmp_path / "k", new_key(), mode)
    error = refusal("file:k", tmp_path)
    assert error.code == "key-permissions"
    assert f"chmod 600 {path}" in (error.advice or "")


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_key_of_its_owner(mode: int, tmp_path: Path) -> None:
    stored(tmp_path / "k", new_key(), mode)
    assert len(load_key("file:k", tmp_path).fingerprint) == 16


def test_what_is_not_a_plain_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "loop").symlink_to("loop")
    for name in ("folder", "pipe", "loop", "nul\0byte", "x" * 300):
        assert refusal(f"file:{name}", tmp_path).code == "key-unreadable"


@pytest.mark.parametrize("reference", ["", "env:", "file:", "FUNNEL_KEY", "vault:x", "env:A-B", "ENV:X"])
def test_a_reference_of_no_known_kind(reference: str, tmp_path: Path) -> None:
    error = refusal(reference, tmp_path)
    assert error.code == "key-unreadable"
    assert "env:NAME or file:PATH" in error.message


def test_write_key_makes_a_file_for_its_owner_only(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        key = write_key(tmp_path / "k")
    finally:
        os.umask(previous)
    assert stat.S_IMODE((tmp_path / "k").stat().st_mode) == 0o600
    assert load_key("file:k", tmp_path).fingerprint == key.fingerprint


def test_write_key_never_overwrites(tmp_path: Path) -> None:
    stored(tmp_path / "k", "precious")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("k", "link"):
        with pytest.raises(DrawError, match="never overwritten") as caught:
            write_key(tmp_path / name)
        assert caught.value.code == "key-write"
    assert (tmp_path / "k").read_text() == "precious"
    assert not (tmp_path / "elsewhere").exists()


def test_write_key_leaves_no_half_key_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ReleaseError, match="No space left") as caught:
        write_key(tmp_path / "k")
    assert (caught.value.code, caught.value.exit_code) == ("disk-full", AGAIN)
    assert list(tmp_path.iterdir()) == []


def test_write_key_where_there_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(DrawError, match="No such file") as caught:
        write_key(tmp_path / "none" / "k")
    assert caught.value.code == "key-write"
