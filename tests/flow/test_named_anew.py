"""Which values have a name decides what the others are drawn for: what that tells, once other ones have names."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import funnel
from tests.support.audited import failures
from tests.support.forging import edit, lines_of, rechain
from tests.support.nights import Steps, steps_of
from tests.support.policies import write_policy

TERMS: dict[str, Any] = {
    "source": {"table": "t.parquet", "entity": "id"}, "sensitive": ["s"], "mechanism": "randomised-response",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FUNNEL_KEY", funnel.new_key())
    return tmp_path


def people(folder: Path, many: dict[tuple[str, Any], int]) -> None:
    """A table of people by secret and x."""
    rows = [one for one, times in many.items() for _ in range(times)]
    (s, x), ids = zip(*rows, strict=True), [*range(len(rows))]
    pq.write_table(pa.table({"id": ids, "s": s, "x": x, "z": [str(i * 7 % 5 % 2) for i in ids]}), folder / "t.parquet")


def answers(one: Steps, other: Steps, *, shared: bool) -> dict[tuple[int, int], Fraction]:
    """The chances of two answers, from one number or from two."""
    if not shared:
        parts = [[high - low for low, high in pairwise((Fraction(0), *steps))] for steps in (one, other)]
        return {(i, j): a * b for i, a in enumerate(parts[0]) for j, b in enumerate(parts[1])}
    cuts = [Fraction(0), *sorted({*one, *other})]
    return {tuple(sum(end <= low for end in steps) for steps in (one, other)): high - low  # type: ignore[misc]
            for low, high in pairwise(cuts) if low < high}  # fmt: skip


def figures(folder: Path) -> dict[str, float | None]:
    """What all releases tell of each policy's promise."""
    entry = json.loads((folder / "private" / "ledger.jsonl").read_text().splitlines()[-1])["entry"]
    return {one["policy"]: one["together"]["figure"] for one in entry["promises"]}


def test_a_rare_number_was_drawn_for_as_the_nearest_and_that_is_counted(folder: Path) -> None:
    """Numbers of one secret were near to one another, and so they are told by both nights."""
    many = {(s, 200 + 10 * k): 19 for s in "01" for k in range(8)}
    for k in range(1, 11):
        for x, high in ((k, "0"), (50 + k, "1")):
            here = 6 if x in (2, 5, 8, 54, 58) else 10
            many |= {(high, x): here, ("1" if high == "0" else "0", x): 12 - here}
    people(folder, many)
    nights = []
    for column, minimum in (({"name": "x", "rare": "bin"}, 30), ("x", 10)):
        run = funnel.run(write_policy(
            folder, **TERMS, public=[column], privacy={"notion": "lip", "epsilon": 0.1}, accept="unbounded",
            estimate={"minimum": minimum},
        ))  # fmt: skip
        nights.append(steps_of(Path(run.release) / "protocol.json"))
        assert failures(funnel.audit_release(run.release, folder / "private")) == set()
    told: dict[tuple[int, int], Counter[str]] = defaultdict(Counter)
    for (s, x), times in many.items():
        labels = [min(night, key=lambda label: abs(float(label) - x)) for night in nights]
        steps = (night[label] for night, label in zip(nights, labels, strict=True))
        for answer, chance in answers(*steps, shared=labels[0] == labels[1]).items():
            told[answer][s] += times * chance
    number = Counter[str]()
    for (s, _), times in many.items():
        number[s] += times
    half = Fraction(number["0"], number.total())
    real = max(abs(math.log(one["0"] / one.total() / half)) for one in told.values())
    assert real > 0.5
    figure = figures(folder)["test"]
    assert figure is None or figure >= real


def test_who_knows_a_column_as_an_earlier_release_had_it_learns_no_more_than_is_stated(folder: Path) -> None:
    """Of two values that were `other` then and are told apart now; who knows which of the two it is learns less."""
    people(folder, dict(zip([(s, f"a{k}") for k in range(4) for s in "01"],
                            [100, 90, 80, 100, 24, 4, 4, 22], strict=True)))  # fmt: skip
    asked: dict[str, Any] = TERMS | {
        "privacy": {"notion": "srlip", "epsilon": 0.3}, "mechanism": "optimal", "estimate": {"minimum": 5},
    }  # fmt: skip
    runs = [funnel.run(write_policy(folder, **asked, public=[x])) for x in ({"name": "x", "top": 2}, "x")]
    then, now = (steps_of(Path(run.release) / "protocol.json") for run in runs)
    told: dict[tuple[int, int], Counter[str]] = defaultdict(Counter)
    for x, many in (("a2", {"0": 24, "1": 4}), ("a3", {"0": 4, "1": 22})):
        for answer, chance in answers(then["other"], now[x], shared=False).items():
            for s, times in many.items():
                told[answer][s] += chance * times
    prior = {"0": Fraction(28, 54), "1": Fraction(26, 54)}
    real = max(abs(math.log(one[s] / one.total() / prior[s])) for one in told.values() if one.total() for s in prior)
    stated = figures(folder)["test"]
    assert stated is not None and 0.35 < real <= stated
    private, last = folder / "private", runs[-1].release
    assert failures(funnel.audit_release(last, private)) == set()
    lines = lines_of(private)
    lines[-1]["entry"]["promises"][0]["together"] |= {"measured": 0.2999, "figure": 0.2999}
    rechain(private, lines)
    edit(Path(last) / "release.json", lambda release: release["composed"].update(leakage=0.2999))
    assert "ledger-composed" in failures(funnel.audit_release(last, private))

def test_a_value_that_has_a_name_tonight_was_drawn_for_twice_in_every_promise(folder: Path) -> None:
    """Also of a promise for which no counts are asked: all draws bound it, of values that stay."""
    people(folder, {("0", "a"): 90, ("1", "a"): 60, ("0", "b"): 30, ("1", "b"): 50, ("0", "c"): 30, ("1", "c"): 40})
    asked = {"notion": "ldp-x", "epsilon": 0.5}
    funnel.run(write_policy(folder, **TERMS, name="kept", public=["z"], privacy=asked))
    nights = []
    for top, accepted in ((1, ["unbounded"]), (3, ["unbounded", "kept"])):
        run = funnel.run(write_policy(
            folder, **TERMS, name="named", public=[{"name": "x", "top": top}], accept=accepted,
            privacy={"notion": "lip", "epsilon": 0.05},
        ))  # fmt: skip
        nights.append(steps_of(Path(run.release) / "protocol.json"))
        assert failures(funnel.audit_release(run.release, folder / "private")) == set()
    kept, named = (answers(nights[0][one], nights[1][two], shared=one == two) for one, two in ("aa", ("other", "b")))
    assert any(not kept.get(answer) for answer, chance in named.items() if chance)  # no finite bound
    assert figures(folder)["kept"] is None


def test_a_combination_that_has_a_name_tonight_was_drawn_for_twice_too(folder: Path) -> None:
    """A lock knew both of its parts, and not that they go together: it was drawn for as `other` of both columns."""
    pairs = [(x, z) for x, z in ("ac", "ae", "bc") for _ in range(60)] + [("other", "other")] * 60

    def table(rows: list[tuple[str, str]]) -> None:
        (x, z), ids = zip(*rows, strict=True), [*range(len(rows))]
        pq.write_table(pa.table({"id": ids, "s": [str(i % 2) for i in ids], "x": x, "z": z}), folder / "t.parquet")

    table(pairs)
    policy = write_policy(
        folder, **TERMS, public=[[{"name": "x", "unseen": "other"}, {"name": "z", "unseen": "other"}]],
        privacy={"notion": "ldp-x", "epsilon": 0.7}, accept="unbounded",
    )  # fmt: skip
    funnel.make_lock(policy)
    table([*pairs, *[("b", "e")] * 60])
    runs = [funnel.run(policy, locked=True), funnel.run(policy)]
    nights = [steps_of(Path(run.release) / "protocol.json") for run in runs]
    kept = answers(nights[0]["a", "c"], nights[1]["a", "c"], shared=True)
    named = answers(nights[0]["other", "other"], nights[1]["b", "e"], shared=False)
    assert any(not kept.get(answer) for answer, chance in named.items() if chance)  # no finite bound
    assert figures(folder)["test"] is None
    assert all(failures(funnel.audit_release(run.release, folder / "private")) == set() for run in runs)


def test_whom_a_lock_left_out_was_not_drawn_for_as_other(folder: Path) -> None:
    """With `top` a missing value stays one: a lock that has none leaves it out, and its absence tells which it is."""
    known = {(s, x): many for s in "01" for x, many in (("a", 100), ("b", 20), ("c", 20))}
    people(folder, known)
    asked: dict[str, Any] = TERMS | {
        "source": TERMS["source"] | {"missing": "category"}, "public": [{"name": "x", "top": 1, "unseen": "drop"}],
        "draws": {"kind": "fresh"}, "estimate": {"minimum": 5}, "accept": "unbounded",
    }  # fmt: skip
    for name, notion in (("first", {"notion": "ldp-x", "epsilon": 0.5}), ("second", {"notion": "ldp", "epsilon": 0.3})):
        policy = write_policy(folder, **asked, name=name, privacy=notion).rename(folder / f"{name}.yaml")
        funnel.make_lock(policy)
        people(folder, known | {("0", None): 5, ("1", None): 40})
        run = funnel.run(policy, locked=True)
        assert failures(funnel.audit_release(run.release, folder / "private", table=folder / "t.parquet")) == set()
    figure = figures(folder)["second"]
    assert figure is None or figure >= math.log((40 / 180) / (5 / 145))
