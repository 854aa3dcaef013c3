"""Files of a release: one spelling for every content, and no content that is not of its schema."""

import contextlib
import json
from dataclasses import dataclass
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.format import canonical, schema
from funnel.format.draws import DrawsFile
from funnel.format.fields import Alphabet
from funnel.format.journal import START, EstimateEntry, KeyEntry, Line
from funnel.format.protocol import ProtocolFile, Sets, Weights

KEY = Line(1, "2026-11-22T05:54:31Z", START, "0" * 32, KeyEntry("census", "0" * 16, "1" * 16))
ESTIMATE = Line(2, "2026-11-22T05:54:31Z", START, "0" * 32, EstimateEntry("census", "1/2", START))
PROTOCOL = ProtocolFile(
    "funnel-protocol/1",
    "drawn",
    (
        Sets("unary", ("a",), (("x",), ("y",)), 3, 4, 2, "set"),
        Weights("weights", ("b", "c"), Alphabet(("s",), (("0",),)), (("x", None),), (("x", None),), 1, (((2,),),)),
    ),
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.long
@given(json_values)
def test_decoding_undoes_encoding(value: object) -> None:
    try:
        raw = canonical.encode(value)
    except ValueError:  # half a surrogate is no text that a file can hold
        return
    assert canonical.decode("x.json", raw) == value


@pytest.mark.parametrize("record", [KEY, ESTIMATE, PROTOCOL])
def test_a_record_comes_back_as_it_was(record: object) -> None:
    assert schema.read(type(record), "x.json", schema.write(record)) == record


@dataclass(frozen=True)
class Grown:
    """A record that has had `new` since some version, and `same` from the first."""

    LATER: ClassVar[frozenset[str]] = frozenset({"new"})

    old: int
    same: int = 2
    new: int = 3


def test_what_a_version_before_did_not_know_is_as_if_it_were_not_there() -> None:
    assert schema.read(Grown, "x.json", canonical.encode({"old": 1, "same": 2})) == Grown(1)
    whole = {"old": 1, "same": 2}
    for wrong in ({"old": 1}, {"old": 1, "new": 3}, whole | {"more": 1}, whole | {"new": None}):
        with pytest.raises(canonical.FormatError):
            schema.read(Grown, "x.json", canonical.encode(wrong))


@given(st.data())
def test_no_changed_byte_reads_as_the_same_record(data: st.DataObject) -> None:
    raw = bytearray(schema.write(PROTOCOL))
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] = data.draw(st.integers(0, 255).filter(lambda byte: byte != raw[place]))
    with contextlib.suppress(canonical.FormatError):
        assert schema.read(ProtocolFile, "protocol.json", bytes(raw)) != PROTOCOL


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"sequence": True}, "sequence"),
        ({"sequence": 1.0}, "sequence"),
        ({"sequence": 0}, "sequence"),
        ({"previous": "g" * 64}, "previous"),
        ({"more": 1}, ""),
        ({"entry": {"kind": "other"}}, "entry"),
        ({"entry": {"kind": ["key"]}}, "entry"),
        ({"entry": {"kind": "estimate", "name": "", "epsilon": "1/2", "terms": START}}, "entry.name"),
        ({"entry": {"kind": "estimate", "name": None, "epsilon": "1/2", "terms": START}}, "entry.name"),
        ({"entry": {"kind": "estimate", "name": "census", "epsilon": "0.5", "terms": START}}, "entry.epsilon"),
    ],
)
def test_what_is_not_of_the_schema_is_refused_with_its_place(changed: dict[str, object], path: str) -> None:
    raw = canonical.encode({**json.loads(schema.write(KEY)), **changed})
    with pytest.raises(canonical.FormatError) as refused:
        schema.read(Line, "ledger.jsonl", raw)
    assert refused.value.path == path


@pytest.mark.parametrize(
    "raw", [b"", b"{", b'{"a":1}', b'{"a": 1}\n', b'{"a":1,"a":1}\n', b"NaN\n", b'{"a":1}\n\n', b"1e2\n", b"\xff\n"]
)
def test_other_spellings_are_refused(raw: bytes) -> None:
    with pytest.raises(canonical.FormatError):
        canonical.decode("x.json", raw)


@pytest.mark.parametrize("grid", [[[1, 2.0]], [[1, True]], [[1, -1]], [[1, 1 << 63]], [[1, "2"]], [[1, None]], 1])
def test_grids_hold_whole_numbers_only(grid: object) -> None:
    with pytest.raises(canonical.FormatError):
        schema.read(schema.Grid, "x.json", canonical.encode(grid))


@pytest.mark.parametrize("rows", [[[[1, 2], [3]]], [[[1]], [[2]]], [[], []], [[]], [], [1, 2], [[1], [2, 3]]])
def test_rows_are_of_whole_numbers(rows: object) -> None:
    """A count that is a list could not be added, and the reader stumbled where it should have refused."""
    raw = canonical.encode({"blocks": [rows], "format": "funnel-draws/1"})
    with pytest.raises(canonical.FormatError, match="blocks\\[0\\]"):
        schema.read(DrawsFile, "draws.json", raw)


def test_lists_in_hundreds_of_lists_are_refused() -> None:
    raw = b'{"blocks":[' + b"[" * 700 + b"1" + b"]" * 700 + b'],"format":"funnel-draws/1"}\n'
    with pytest.raises(canonical.FormatError, match=r"draws\.json"):
        schema.read(DrawsFile, "draws.json", raw)
