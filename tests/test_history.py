"""A release is only as private as all releases about the same people together; what is not measured is said."""

from __future__ import annotations

import pytest

import funnel
from funnel.history import warnings
from tests.policies import write_policy

ENTRY = {"draws": "permanent", "key_fingerprint": "aa", "protocol_sha256": "11"}


def test_the_first_release_and_its_repetitions_need_no_warning():
    assert warnings([], ENTRY) == []
    assert warnings([ENTRY, ENTRY], ENTRY) == []


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"key_fingerprint": "bb"}, "key"),
        ({"protocol_sha256": "22"}, "protocol"),
        ({"draws": "fresh", "key_fingerprint": None}, "fresh"),
    ],
)
def test_any_other_sequence_is_warned_of(change, word):
    (warning,) = warnings([ENTRY], ENTRY | change)
    assert word in warning
    assert "not measured" in warning
    assert warnings([ENTRY, ENTRY | change], ENTRY)


def test_a_run_says_so_in_json_and_on_the_terminal(tmp_path, key, monkeypatch):
    monkeypatch.setenv("FUNNEL_KEY", key)
    path = write_policy(tmp_path, mechanism="randomised-response")
    assert funnel.run(path).as_dict()["warnings"] == []
    assert funnel.run(path).as_dict()["warnings"] == []
    monkeypatch.setenv("FUNNEL_KEY", funnel.new_key())
    (warning,) = funnel.run(path).as_dict()["warnings"]
    assert "release 3" in warning
