"""Files and figures that a release of its kind does not have: reports would show them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

import funnel
from funnel.audit.audit import audit_release
from tests.support.audited import detail, failures
from tests.support.forging import Forged, edit, seal
from tests.support.policies import write_policy

Json = dict[str, Any]
PLAIN: Json = {
    "source": {"table": "people.parquet"}, "sensitive": ["s"], "public": ["x"], "draws": {"kind": "fresh"},
    "privacy": {"notion": "lip", "epsilon": 0.5}, "mechanism": "optimal",
}  # fmt: skip


@pytest.fixture
def make(tmp_path: Path) -> Any:
    """A release of some policy, under a lock or not."""
    duckdb.sql(
        f"""COPY (SELECT 's' || (i % 2) AS s, 'x' || ((i % 2 + CASE WHEN i % 10 < 6 THEN 0 ELSE i % 3 END) % 3) AS x,
            'z' || (i // 7 % 2) AS z
            FROM range(600) t(i)) TO '{tmp_path}/people.parquet' (FORMAT parquet)"""
    )

    def made(*, locked: bool = False, **changes: Any) -> Forged:
        policy = write_policy(tmp_path, **PLAIN | changes)
        if locked:
            funnel.make_lock(policy)
        folder = Path(str(funnel.run(policy, locked=locked).release))
        return Forged(folder, tmp_path / "private" / folder.name)

    return made


def audited(one: Forged) -> set[str]:
    seal([one])
    return failures(audit_release(one.folder, one.private))


@pytest.mark.parametrize(
    "name", ["drift.json", "lock.yaml", "distances.json", "robust.json", "known.json", "proof.bin", "another.json"]
)
def test_a_file_that_no_release_of_its_kind_has_fails(make: Any, name: str) -> None:
    """As the drift of a lock, of a release without one."""
    one = make()
    assert audited(one) == set()
    assert detail(audit_release(one.folder, one.private), "utility-bound").startswith("I(X;Y) <= ")
    (one.kept / name).write_bytes(b"{}\n")
    listed = json.loads((one.kept / "evidence.json").read_bytes())["files"]["terms.json"]
    edit(one.kept / "evidence.json", lambda old: old["files"].update({name: listed}))
    assert "evidence-files" in audited(one)
    told = detail(audit_release(one.folder, one.private), "evidence-files")
    assert ("these are not the files" if name == "another.json" else f"whether {name} is listed") in told


def test_no_certificate_is_told_of_several_blocks(make: Any) -> None:
    one = make(public=["x", "z"], mechanism="randomised-response")
    assert audited(one) == set()
    nothing = {"about": "public", "boxes": 0, "duals": [0.0, 0.0, 0.0], "peak": 0.0, "proof": None}
    edit(one.kept / "solution.json", lambda old: old.update(certificate=nothing))
    assert "a certificate is told of" in detail(_sealed(one), "utility-bound")


@pytest.mark.parametrize("locked", [False, True])
def test_a_bound_that_nothing_proves_fails_also_where_it_is_not_told(make: Any, locked: bool) -> None:
    """Private reports say of a certificate that it proves a ceiling; under a lock nothing was solved."""
    one = make(locked=locked, mechanism="randomised-response")
    solution = one.kept / "solution.json"
    whole, stated = solution.read_bytes(), json.loads((one.folder / "release.json").read_bytes())["utility"]
    assert stated["upper_bound"] is None
    nothing = {"about": "public", "boxes": 0, "duals": [0.0, 0.0, 0.0], "peak": 0.0, "proof": None}
    edit(solution, lambda old: old.update(certificate=nothing))
    assert "utility-bound" in audited(one)
    solution.write_bytes(whole)
    edit(solution, lambda old: old.update(upper_bounds=[9.0], certificate=nothing))
    edit(one.folder / "release.json", lambda old: old["utility"].update(upper_bound=1.0))
    assert "utility-bound" in audited(one), "though H(X) bounds everything"
    solution.write_bytes(whole)
    if locked:
        edit(one.folder / "release.json", lambda old: old["utility"].update(upper_bound=stated["normalised"]))
        assert "a bound is stated of a protocol that a lock fixed" in detail(_sealed(one), "utility-bound")


def _sealed(one: Forged) -> Any:
    seal([one])
    return audit_release(one.folder, one.private)


def test_no_least_distance_is_above_that_of_the_protocol_itself(make: Any) -> None:
    """Also where its prices cannot be looked at."""
    robust = {"privacy": {"notion": "rldp", "epsilon": 1.0}, "mechanism": "invariant"}
    one = make(**robust)
    assert audited(one) == set()
    edit(one.kept / "solution.json", lambda old: [told.update(optimum=0.9) for told in old["totals"]])
    assert "better than the optimum" in detail(_sealed(one), "totals")


@pytest.mark.parametrize("lower", [0.5, 0.7])
def test_a_lock_of_which_the_lower_promise_leaves_room_is_honest(make: Any, lower: float) -> None:
    one = make(locked=True, privacy={"notion": "alip", "epsilon": 0.5, "lower": lower})
    assert audited(one) == set()


@pytest.mark.parametrize("kept", [True, False])
def test_what_drift_says_of_tonight_is_so_though_the_counts_of_the_lock_are_lost(make: Any, kept: bool) -> None:
    one = make(locked=True)
    if not kept:
        for path in (one.private / "locks").iterdir():
            path.unlink()
    edit(one.kept / "drift.json", lambda old: old.update(new_secrets=[["nobody"]]))
    assert "drift" in audited(one)


def test_no_lock_over_a_private_estimate_keeps_the_protocol_of_another(make: Any) -> None:
    noisy = {"kind": "private", "epsilon": 1.0, "minimum": 1, "values": {"s": ["s0", "s1"], "x": ["x0", "x1", "x2"]}}
    one = make(locked=True, mechanism="randomised-response", estimate=noisy)
    assert audited(one) == set()
    text = (one.kept / "lock.yaml").read_text()
    (one.kept / "lock.yaml").write_text(text.replace("\nfunnel: ", '\nfixed: "2020-01-01T00:00:00Z"\nfunnel: ', 1))
    edit(one.folder / "release.json", lambda old: old["locked"].update(fixed="2020-01-01T00:00:00Z"))
    assert "where no lock keeps another" in detail(_sealed(one), "lock")
