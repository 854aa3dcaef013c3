"""What releases tell together is worked out again from their protocols, for every notion and every way to draw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import funnel
from tests.support.audited import failures, statuses
from tests.support.forging import edit, lines_of, rechain
from tests.support.policies import write_policy
from tests.trials.tampered.ground import BASE, people

NIGHTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "fresh": ({"draws": {"kind": "fresh"}}, {}),
    "another epsilon under one key": ({}, {"privacy__epsilon": 0.2}),
    "robust": ({"privacy": {"notion": "rldp", "epsilon": 1.5}, "public": ["w"], "draws": {"kind": "fresh"}}, {}),
    "robust without a bound": ({"privacy": {"notion": "lip", "epsilon": 5.0}, "public": ["w"]},
                               {"privacy": {"notion": "rldp", "epsilon": 1.5, "order": 0.5, "radius": 3.0},
                                "accept": ["unbounded", "test"]}),
    "sets": ({"mechanism": "unary-encoding", "draws": {"kind": "fresh"}}, {}),
    "sets of another epsilon": ({"mechanism": "unary-encoding"}, {"privacy__epsilon": 0.2}),
    "side knowledge": ({"privacy": {"notion": "srlip", "epsilon": 0.5}, "public": [["z", "w"]]},
                       {"privacy": {"notion": "srlip", "epsilon": 0.3}}),
    "the usual ldp": ({"privacy": {"notion": "ldp-x", "epsilon": 1.0}, "draws": {"kind": "fresh"}}, {}),
    "an average": ({"privacy": {"notion": "mutual-information", "epsilon": 0.02}, "mechanism": "greedy-funnel"},
                   {"privacy": {"notion": "mutual-information", "epsilon": 0.01}}),
    "reads the secret": ({"mechanism": "conditional-reporting", "draws": {"kind": "fresh"}}, {}),
    "other columns": ({"mechanism": "randomised-response", "privacy": {"notion": "ldp", "epsilon": 0.5}},
                      {"public": ["z"]}),
    "a column more": ({"mechanism": "randomised-response"}, {"public": ["x", "z"]}),
    "two blocks, one of them the same": ({"public": ["z", "w"], "draws": {"kind": "fresh"}},
                                         {"public": ["w"], "accept": "unbounded"}),
    "another secret": ({}, {"sensitive": ["z"]}),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("what", NIGHTS)
def test_the_figure_of_two_releases_is_the_one_that_their_protocols_have(
    what: str, tmp_path: Path, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, change = NIGHTS[what]
    people(tmp_path, 0)
    monkeypatch.setenv("FUNNEL_KEY", key)
    terms = BASE | {"privacy": {"notion": "lip", "epsilon": 0.3}} | first
    if "draws" in first:
        terms |= {"source": {"table": "people.parquet"}}
    funnel.run(write_policy(tmp_path, **terms))
    made = funnel.run(write_policy(tmp_path, **(terms | change)))
    private, release, told = tmp_path / "private", Path(made.release), made.composed.together
    found = funnel.audit_release(release, private)
    assert failures(found) == set()
    assert statuses(found)["ledger-composed"] == "passed"
    for lie in ([] if told.measured is None else [round(told.measured - 0.001, 4), None]) or [1.0]:
        lines = lines_of(private)
        lines[-1]["entry"]["promises"][0]["together"] |= {"measured": lie, "figure": lie}
        rechain(private, lines)
        edit(release / "release.json", lambda stated, lie=lie: stated["composed"].update(leakage=lie))
        assert "ledger-composed" in failures(funnel.audit_release(release, private))
