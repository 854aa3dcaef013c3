"""Strict reading: whatever stands in a file, the auditor answers with a finding that a person can read."""

from __future__ import annotations

import copy
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from funnel.audit import audit_release, files
from funnel.audit.fields import Field, parse
from funnel.audit.files import content, digest
from funnel.audit.findings import shown
from funnel.errors import AuditFailure, ReleaseError
from tests.unit.audit import samples
from tests.unit.audit.forge import Place, write_json

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


def field(value: Any) -> Field:
    return Field("file.json", "path", value)


def refused(read: Callable[[], Any]) -> bool:
    """Whether reading ends in a finding, with the place in it."""
    try:
        read()
    except AuditFailure as failure:
        assert failure.where == "file.json"
        return True
    return False


@given(st.binary(max_size=60))
@settings(deadline=None)
def test_any_bytes_are_json_or_a_finding(raw: bytes) -> None:
    if not refused(lambda: parse("file.json", raw)):
        assert json.loads(raw) == parse("file.json", raw).value


@given(JSON)
@settings(deadline=None)
def test_a_document_is_read_as_it_was_written(document: Any) -> None:
    raw = json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")
    if not refused(lambda: parse("file.json", raw)):
        assert parse("file.json", raw).value == document


@given(JSON)
@settings(deadline=None)
def test_only_whole_numbers_are_whole(value: Any) -> None:
    assert refused(lambda: field(value).whole()) == (type(value) is not int or not 0 <= value < 1 << 63)


@given(JSON)
@settings(deadline=None)
def test_numbers_are_the_decimals_that_are_written(value: Any) -> None:
    right = type(value) in (int, float) and 0 <= value <= 1e9
    assert refused(lambda: field(value).number()) != right
    if right:
        assert float(field(value).number()) == value


@pytest.mark.parametrize("value", [0, 1, 0.5, 0.1234, 2.0, 1e-4])
def test_a_published_figure_has_four_decimals(value: float) -> None:
    assert float(field(value).rounded()) == value


@pytest.mark.parametrize("value", [0.12345, 1e-5, -0.1, True, "0.1", None, 1e10, [0.1]])
def test_a_finer_or_odder_figure_is_refused(value: Any) -> None:
    assert refused(lambda: field(value).rounded())


@given(st.lists(st.lists(st.text(max_size=2) | st.none(), min_size=1, max_size=2), max_size=5))
@settings(deadline=None)
def test_alphabets_are_distinct_labels_of_one_width(values: list[list[str | None]]) -> None:
    plain = all(part is None or part.isascii() or not any("\ud800" <= ch <= "\udfff" for ch in part)
                for value in values for part in value)  # fmt: skip
    distinct = len({tuple(value) for value in values}) == len(values) > 0
    right = plain and distinct and all(len(value) == 2 for value in values)
    assert refused(lambda: field(values).labels(2)) != right


@given(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=1, max_size=4))
@settings(deadline=None)
def test_a_grid_is_read_cell_by_cell(rows: list[list[int]]) -> None:
    grid = field(rows).whole_grid(-1, 3)
    assert grid.dtype == np.int64
    assert grid.tolist() == rows


GRIDS: dict[str, Any] = {
    "a ragged row": [[1, 2], [3]],
    "too deep": [[[1], [2]]],
    "too flat": [1, 2],
    "a float": [[1, 2.0]],
    "true": [[True, 2]],
    "a text": [["1", 2]],
    "below zero": [[-1, 2]],
    "too large": [[1 << 63, 2]],
    "no list": {"0": [1, 2]},
    "null": None,
}


@pytest.mark.parametrize("kind", GRIDS)
def test_an_odd_grid_is_refused(kind: str) -> None:
    assert refused(lambda: field(GRIDS[kind]).whole_grid(-1, 2))


def test_an_object_has_the_keys_of_its_format_and_no_others() -> None:
    both = field({"a": 1, "b": 2})
    both.keys("a", "b")
    assert refused(lambda: both.keys("a"))
    assert refused(lambda: both.keys("a", "b", "c"))
    assert refused(lambda: field([1]).keys("a"))
    assert refused(lambda: both["c"])
    assert refused(lambda: list(field(3).members()))
    assert refused(lambda: field({"a": 1}).items())


@given(st.text(max_size=400) | JSON)
@settings(deadline=None)
def test_what_is_shown_is_printable_and_short(value: Any) -> None:
    text = shown(value)
    assert text.isprintable()
    assert len(text) <= 160
    assert shown("plain é text") == "plain é text"


def paths(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a document, the document itself left out; of long lists the first elements."""
    keys = (
        list(document)
        if isinstance(document, dict)
        else range(min(len(document), 2))
        if isinstance(document, list)
        else ()
    )
    for key in keys:
        yield (*path, key)
        yield from paths(document[key], (*path, key))


def with_value(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy with one place replaced."""
    changed = copy.deepcopy(document)
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return changed


@pytest.fixture(scope="module")
def whole() -> Iterator[tuple[Place, dict[str, Any]]]:
    """A release on disk, and its documents by file name."""
    with tempfile.TemporaryDirectory() as home:
        place = samples.two_blocks().write(Path(home))
        located = {
            name: located_at(place, name) for name in ("release.json", "protocol.json", "evidence.json")
        }
        yield place, {name: json.loads(path.read_text(encoding="utf-8")) for name, path in located.items()}


def located_at(place: Place, name: str) -> Path:
    return (place.kept if name == "evidence.json" else place.folder) / name


@pytest.mark.parametrize("name", ["release.json", "protocol.json", "evidence.json"])
@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_value_in_any_place_ends_in_a_report(name: str, data: st.DataObject, whole: Any) -> None:
    place, documents = whole
    path = data.draw(st.sampled_from(sorted(paths(documents[name]), key=str)))
    value = data.draw(JSON)
    changed = with_value(documents[name], path, value)
    write_json(located_at(place, name), changed)
    try:
        report = samples.audited(place)
    finally:
        write_json(located_at(place, name), documents[name])
    json.dumps(report.as_dict(), allow_nan=False).encode()
    same = json.dumps(changed) == json.dumps(documents[name])
    if name != "evidence.json" and not same:
        assert not report.passed


def test_a_file_of_absurd_size_is_refused_unread(tmp_path: Path) -> None:
    """A sparse file of a terabyte costs nothing to make; reading it would."""
    for name in ("protocol.json", "release.json"):
        place = samples.one_block().write(tmp_path / name)
        with (place.folder / name).open("r+b") as file:
            file.truncate(1 << 40)
        report = audit_release(place.folder)
        claim = "manifest" if name == "release.json" else "protocol"
        assert "too large" in samples.detail(report, claim)
    place = samples.one_block().write(tmp_path / "evidence")
    with (place.kept / "evidence.json").open("r+b") as file:
        file.truncate(1 << 40)
    assert "too large" in samples.detail(samples.audited(place), "evidence")


def test_a_folder_that_cannot_be_listed_is_an_error_with_advice(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError) as caught:
        files.names(tmp_path / "gone")
    assert caught.value.code == "release-unreadable"
    assert caught.value.advice


@pytest.mark.parametrize("read", [content, digest])
def test_a_file_that_becomes_a_link_between_look_and_reading_is_refused(
    read: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("secret", encoding="utf-8")
    link.symlink_to(real)
    monkeypatch.setattr(files, "plain_size", lambda path: 6)
    with pytest.raises(AuditFailure):
        read(link)
    assert read(real)


def test_reading_does_not_wait_for_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for read in (content, digest):
        with pytest.raises(AuditFailure, match="plain file"):
            read(tmp_path / "pipe")
