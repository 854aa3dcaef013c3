"""Files are read once; nothing in them steers the terminal, ends the audit, or passes a test for being no number."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from funnel.audit.kernel import drawing
from funnel.audit.kernel import opened as files
from funnel.audit.kernel.check import findings
from funnel.audit.kernel.drawing import _tried, strays
from funnel.audit.kernel.exact import exp, exp_below
from funnel.audit.kernel.notions import worst
from funnel.audit.kernel.opened import Once, Opened, parsed
from funnel.audit.kernel.records import Joint
from funnel.audit.kernel.verdict import Broken, Finding
from funnel.format import journal
from funnel.format.canonical import encode
from tests.kernel.samples import ID, KINDS, alphabet, sample
from tests.support.kernel import check


@pytest.mark.parametrize("kind", ["two blocks", "private and locked", "rldp"])
def test_every_file_is_read_once_and_what_is_hashed_is_what_was_parsed(kind, tmp_path, monkeypatch):
    public, private = sample(**KINDS[kind]).write(tmp_path)
    read: Counter[Path] = Counter()
    opened = files.plain

    def counting(path: Path):
        read[path] += 1
        return opened(path)

    monkeypatch.setattr(files, "plain", counting)
    assert not [one for one in check(public, private) if one.status == "failed"]
    assert {
        private / "ledger.jsonl",
        private / "ledger.head",
        public / "data.csv",
        public / "release.json",
    } <= {*read}
    assert set(read.values()) == {1}


def test_a_file_that_is_exchanged_while_it_is_audited_is_not_mistaken_for_the_one_that_was_hashed(tmp_path):
    public, private = sample().write(tmp_path)
    opened = Opened(public, private)
    honest = opened.counts
    (opened.folder / "counts.json").write_bytes(b"{}\n")
    assert not [one for one in findings(opened) if one.status == "failed"]
    assert opened.counts is honest


def test_no_text_of_a_release_reaches_a_terminal_raw():
    long = "ü — a detail of an honest release, " * 20
    said = Finding("policy-terms", "as the policy says", "passed", f"\x1b[2Jlip\r\n\u202e{long}").text()
    assert said.isprintable()
    assert "\\u001b[2Jlip" in said
    assert long in said
    assert str(Broken("protocol.json", "weights of \x1b[2J", 1, "\x07")).isprintable()


@pytest.mark.parametrize("name", ["../release.json", "/etc/hostname", "a/b", "..", ".", "", "a\0b"])
def test_a_name_that_is_none_fails_claims_and_ends_nothing(name, tmp_path):
    public, private = sample().write(tmp_path)
    for path, listed, claim in (
        (private / ID / "evidence.json", "counts.json", "evidence"),
        (public / "release.json", "protocol.json", "manifest"),
    ):
        content = json.loads(path.read_bytes())
        content["files"][name] = content["files"][listed]
        path.write_bytes(encode(content))
        found = {one.claim: one.status for one in check(public, private)}
        assert found[claim] == "failed"
        assert "failed" not in {found["file-list"], found["file-hashes"]}


def test_whatever_a_check_stumbles_over_is_a_failed_claim(tmp_path, monkeypatch):
    def stumble(*_: object) -> None:
        raise AssertionError("\x1b[2J")

    monkeypatch.setattr("funnel.audit.kernel.records.joint", stumble)
    found = {one.claim: one for one in check(*sample().write(tmp_path))}
    assert found["counts"].status == "failed" or found["policy-terms"].status == "failed"
    assert "AssertionError" in next(one for one in found.values() if one.status == "failed").detail
    assert all(one.text().isprintable() for one in found.values())


def test_a_failure_excuses_claims_that_rest_on_it_and_no_others_that_sound_alike(tmp_path):
    def alike(opened: Opened) -> str:
        raise Broken("counts.json", "the same words", 1, 2)

    class Shared(Opened):
        asked = Once(alike)

    claims = {"one": alike, "two": alike, "three": lambda one: one.asked, "four": lambda one: one.asked}
    found = [*findings(Shared(*sample().write(tmp_path)), claims)]
    assert [one.status for one in found] == ["failed", "failed", "failed", "not checked"]
    assert found[3].detail == "rests on three, which does not hold"


def test_what_is_no_number_passes_no_test_of_fit(monkeypatch):
    means, seen = np.full((1, 40), 100.0), np.full((1, 40), 100)
    assert strays(means, seen) == (1.0, 39)
    monkeypatch.setattr(drawing, "bound", lambda strayed, degrees: float("nan"))
    with pytest.raises(Broken):
        _tried(iter([("draws", means, seen)]))


def test_counts_beyond_what_a_double_holds_are_added_exactly():
    cells, number = np.array([[0, 0], [0, 1], [1, 0]]), np.array([1 << 53, 1, (1 << 60) + 1])
    joint = Joint((alphabet("s", 2), alphabet("x", 2)), cells, number)
    assert joint.of_axis(0).tolist() == [(1 << 53) + 1, (1 << 60) + 1]
    assert joint.of_axis(1).tolist() == [(1 << 53) + (1 << 60) + 1, 1]


def test_powers_of_e_end_however_large_the_exponent():
    huge = Fraction(10**308)
    for exponent in (huge, -huge):
        with pytest.raises(Broken):
            exp(exponent)
    assert exp_below(-huge) == 0
    assert exp_below(Fraction(10_000)) == exp_below(huge)
    assert worst(Fraction(2**200)).within(huge)
    assert not worst(Fraction(2)).within(-huge)


def test_times_and_names_are_of_plain_digits():
    written = "2026-01-02T03:04:05Z"
    head = {
        "entry": {"kind": "key", "name": "n", "new": "0" * 16, "old": "0" * 16},
        "previous": "0" * 64,
        "blind": "0" * 32,
        "sequence": 1,
    }
    assert parsed(journal.Line, "l", encode(head | {"written": written})).written == written
    with pytest.raises(Broken):
        parsed(journal.Line, "l", encode(head | {"written": written.replace("2", "٢")}))
