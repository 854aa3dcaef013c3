"""A claim says what was compared: words written into a report are found where it is written again, and named there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import funnel
from funnel.audit.audit import EXTRAS, audit_release
from funnel.audit.extras import fit, noise, policy
from funnel.audit.extras.base import Release
from funnel.audit.kernel import drawing
from funnel.audit.kernel.check import ITEM, LEFT, NOBODY, PRIVATE, PUBLISHED, UNKNOWABLE, verdict
from funnel.audit.kernel.drawing import FALSE_ALARM
from funnel.audit.kernel.verdict import Broken, Unchecked
from funnel.errors import AGAIN, FAULT
from funnel.format.canonical import encode
from tests.support.audited import detail, failures
from tests.support.census import CENSUS
from tests.support.forging import Forged, edit, seal
from tests.support.kernel import check
from tests.support.policies import write_policy

COUNTS = "One thousand seven hundred and twenty-three people are Masters; twelve of those are widowed"


@pytest.fixture(scope="module")
def honest(tmp_path_factory, key: str) -> Path:
    """The folder of a small honest release, which is only read."""
    folder = tmp_path_factory.mktemp("honest")
    source = {"source__filter": "person_id < 3000", "source__entity": "person_id", "estimate": {"minimum": 1}}
    with pytest.MonkeyPatch.context() as inside:
        inside.setenv("FUNNEL_KEY", key)
        funnel.run(write_policy(folder, **source))
    return folder


@pytest.fixture
def made(honest: Path, tmp_path: Path) -> Forged:
    """A copy of it, to be changed."""
    shutil.copytree(honest, tmp_path / "made", symlinks=True)
    folder = next(path for path in (tmp_path / "made" / "releases").iterdir() if path.name != "latest")
    return Forged(folder, tmp_path / "made" / "private" / folder.name)


def on_the_page(folder: Path) -> None:
    page = folder / "report.html"
    page.write_text(page.read_text().replace("</footer>", f" {COUNTS}.</footer>"))


def in_a_comment(folder: Path) -> None:
    page = folder / "report.html"
    page.write_text(page.read_text().replace("</body>", f"<!-- {COUNTS} --></body>"))


def in_a_sentence(folder: Path) -> None:
    told = json.loads((folder / "report.json").read_text())
    told["limits"][0]["text"] += f" {COUNTS}."
    (folder / "report.json").write_bytes(encode(told))


def in_a_new_key(folder: Path) -> None:
    told = json.loads((folder / "report.json").read_text())
    (folder / "report.json").write_bytes(encode(told | {"note": COUNTS}))


@pytest.mark.long
@pytest.mark.parametrize("room", ["published", "full"])
@pytest.mark.parametrize("tell", [on_the_page, in_a_comment, in_a_sentence, in_a_new_key])
def test_counts_in_words_fail_by_name_with_every_hash_refitted(
    made: Forged, tell: Callable[[Path], None], room: str
) -> None:
    tell(made.folder if room == "published" else made.kept)
    seal([made], reports=False)
    with_all = audit_release(made.folder, made.private)
    assert [one.claim for one in with_all.of("failed")] == ["report"]
    alone = audit_release(made.folder)
    assert [one.claim for one in alone.of("failed")] == (["report"] if room == "published" else [])
    # The kernel reads no report, and says so.
    found = check(made.folder, made.private)
    assert not [one for one in found if one.status == "failed"]
    assert "what catalogues read: their hashes are stated, and whatever stands in them" in verdict(found)


def test_a_plan_that_lacks_a_step_or_has_one_under_another_name_fails(made: Forged) -> None:
    path = made.kept / "plan.json"
    whole = path.read_bytes()
    for name in (None, "solved", "draw"):
        plan = json.loads(whole)
        steps = [one | {"step": name} if one["step"] == "solve" else one for one in plan["steps"]]
        path.write_bytes(encode(plan | {"steps": [one for one in steps if one["step"] is not None]}))
        seal([made])
        assert "policy" in {one.claim for one in audit_release(made.folder, made.private).of("failed")}


def test_a_plan_that_does_otherwise_than_the_policy_says_fails(made: Forged) -> None:
    """Also where it says what plans of other policies may say: noise, a search, sets, files of a table."""
    path = made.kept / "plan.json"
    whole = path.read_bytes()
    for title, change in (
        ("count", {"blocks": [["age"]]}), ("count", {"noise": 0.5}),
        ("solve", {"shares": [0.5]}), ("solve", {"candidates": ["optimal"]}), ("solve", {"search": True}),
        ("solve", {"beliefs": 0.02}), ("draw", {"parted": 100}), ("draw", {"whose": False}),
        ("draw", {"keys": ["k0"]}), ("draw", {"seed": 1}), ("write", {"sets": "bits"}),
        ("write", {"counted": True}), ("write", {"partition": [None, 100]}), ("write", {"keys": ["id"]}),
    ):  # fmt: skip
        path.write_bytes(whole)
        edit(path, lambda old, title=title, change=change: [
            step.update(change) for step in old["steps"] if step["step"] == title
        ])  # fmt: skip
        seal([made])
        with pytest.raises(Broken, match="the plan is one for something else"):
            policy.check(Release(made.folder, made.private))


def test_a_table_without_a_column_that_the_policy_releases_fails_whatever_the_plan_says_of_its_type(
    made: Forged,
) -> None:
    edit(made.folder / "released.json", lambda old: old.update(columns=["another", *old["columns"][1:]]))
    edit(made.kept / "plan.json", lambda old: [
        step.update(types=[None, *step["types"][1:]]) for step in old["steps"] if step["step"] == "write"
    ])  # fmt: skip
    with pytest.raises(Broken, match="columns that the policy releases, and are not there"):
        policy.check(Release(made.folder, made.private))


def test_the_other_steps_of_a_plan_are_compared_with_the_table_alone(made: Forged) -> None:
    """And the claims say so: of how files are read, which an auditor may keep in another form, nothing is compared."""
    path = made.kept / "plan.json"
    whole = path.read_bytes()
    for title in ("scan", "inspect", "people", "audit", "publish"):
        path.write_bytes(whole)
        edit(path, lambda old, title=title: old.update(steps=[one for one in old["steps"] if one["step"] != title]))
        seal([made])
        assert not [*funnel.audit_release(made.folder, made.private).of("failed")]
        failed = {one.claim for one in funnel.audit_release(made.folder, made.private, table=CENSUS).of("failed")}
        assert failed == (set() if title in ("scan", "publish") else {"source-counts"}), title


def test_protocol_json_says_how_values_are_drawn_in_no_other_words(made: Forged) -> None:
    edit(made.folder / "protocol.json", lambda old: old.update(rule="Every value is drawn without a look at anybody."))
    seal([made])
    assert [one.claim for one in audit_release(made.folder).of("failed")] == ["mechanism"]


def test_what_is_compared_with_nothing_is_said_a_line_for_each(made: Forged, command) -> None:
    first, *rest = UNKNOWABLE
    sentence = ITEM.join([NOBODY, *UNKNOWABLE])
    assert sentence in verdict(check(made.folder))
    assert {f"  - {one}" for one in LEFT} <= set(verdict(check(made.folder)).splitlines())
    for private in ((), ("--private", made.private)):
        audit = command("audit", made.folder, *private)
        *_, head, begun = audit.out.splitlines()[: -len(rest)]
        assert (head, begun.startswith(f"  - {first}")) == (NOBODY, True), audit.out
        assert audit.out.splitlines()[-len(rest) :] == [f"  - {one}" for one in rest]
        told = command("audit", made.folder, *private, "--json").json["unknowable"]
        assert (told[0].startswith(first), told[1:]) == (True, rest)
    assert sentence in command("audit", made.folder.parent, "--private", made.private).out


def test_whoever_counts_the_source_again_still_takes_its_word(made: Forged, command) -> None:
    table = next(line for line in (made.kept / "policy.yaml").read_text().splitlines() if "table:" in line)
    audit = command("audit", made.folder, "--private", made.private, "--table", table.partition(": ")[2])
    assert audit.code == 0, audit.out
    assert "that the table counted again is the source" in audit.out.partition(NOBODY)[2]


LEFT_OF = {
    "data-export": "data file", "report": "both reports", "catalogue": "what catalogues read",
    "mechanism": "form of the mechanism", "policy": "policy asks",
    "policy-terms": "policy asks", "evidence-files": "for these files",
    "lock": "its lock fixed", "drift": "drift.json", "estimate-declared": "which values",
    "estimate-noise": "their noise", "cells": "cells.json",
    "estimate-spent": "estimates spent", "uncertainty": "uncertainty set", "rounded-beliefs": "beliefs round alike",
    "leakage-true": "at the true counts", "whole-table": "the whole table", "averages-stated": "I(S;Y)",
    "utility-bound": "utility and its bound", "draw-chances": "too even", "totals": "totals that stay",
    "absent": "who is absent", "ledger-drawn": "drawn for whom", "ledger-identity": "private digests",
    "ledger-kept": "all earlier entries",
    "draws-repeat": "permanent ones follow from the key",
    "ledger-composed": "composed leakage", "ledger-promises": "the budget", "signature": "a signature",
    "newest": "the newest",
}  # fmt: skip
"""What the kernel says that it leaves to an extra, by the extra's claim."""


def test_the_kernel_says_of_every_extra_that_it_does_not_look_there_itself() -> None:
    said = "; ".join(LEFT)
    assert set(LEFT_OF) == {one.CLAIM for one in EXTRAS} - {"source-counts"}
    assert [claim for claim, words in LEFT_OF.items() if words not in said] == []
    assert all(name in UNKNOWABLE[0] for name in ("counts.json", "known.json", "population.json", "the source's"))
    assert any("no draw or noise was used a second time" in one for one in UNKNOWABLE)


def test_no_title_claims_what_nobody_compared() -> None:
    """Titles name the files that are compared; none says of a figure, a row or a report that it is true."""
    titles = [(one.__doc__ or "").partition("\n")[0] for one in (PUBLISHED | PRIVATE).values()]
    for title in [*titles, *(one.TITLE for one in EXTRAS)]:
        assert not {"true", "truth", "honest", "whole evidence", "rightly"} & set(title.split()) or title in TRUE, title


TRUE = {
    "the leakage at the true counts, where the claims are about noisy ones",
    noise.TITLE,
}
"""Those that mean by `true` the counts before noise or draws."""


def test_a_source_that_is_not_there_breaks_no_claim(command, honest: Path, tmp_path: Path) -> None:
    """The release is honest: who counts the table again is told that it is not there, or does not answer."""
    given = ("audit", honest / "releases" / "latest", "--private", honest / "private", "--table")
    for table, code, said in (
        (tmp_path / "nowhere.parquet", FAULT, "[source-missing]"),
        ("postgresql://nobody@127.0.0.1:1/x#t", AGAIN, "[source-unreachable]"),
    ):
        audit = command(*given, table)
        assert audit.code == code and said in audit.err and "FAIL" not in audit.out, audit


def test_a_column_of_one_value_loses_nothing_and_nothing_else_is_said(tmp_path: Path) -> None:
    """Where H(X) is zero their ratio is one, by what funnel says of itself, and not whatever is stated."""
    (tmp_path / "table.csv").write_text("s,x\n" + "a,p\nb,p\n" * 200)
    policy = write_policy(tmp_path, source={"table": "table.csv"}, sensitive=["s"], public=["x"], draws__kind="fresh")
    folder = Path(funnel.run(policy).release)
    made = Forged(folder, tmp_path / "private" / folder.name)
    told = detail(audit_release(folder, made.private), "averages-stated")
    assert told.endswith("H(X) = 0.000000 nats, ratio 1.000000")
    edit(folder / "release.json", lambda old: old["utility"].update(normalised=0.5))
    seal([made])
    assert failures(audit_release(folder, made.private)) == {"averages-stated"}


def test_what_chance_cannot_tell_is_named_where_draws_are_looked_at() -> None:
    """Two blocks of many values have no outcome that is expected often; three that agree in pairs are no pair."""
    many = ("many", np.full((1, 160), 2.5), np.full((1, 160), 2))
    few = ("few", np.full((1, 4), 100.0), np.array([[90, 105, 103, 102]]))
    told = drawing._tried(iter([many, few]))
    assert told == "3 degrees of freedom in what is expected 5 times or more, p <= 1; of 1 of 2 tables nothing"
    assert drawing._tried(iter([few])) == "3 degrees of freedom in what is expected 5 times or more, p <= 1"
    assert isinstance(drawing._tried(iter([many])), Unchecked)
    assert "Any two blocks" in (drawing.draw_independence.__doc__ or "")
    assert f"({fit._DEGREES_EVEN} degrees of freedom)" in fit.TITLE


def test_what_is_tried_often_alarms_as_seldom_as_what_is_tried_once() -> None:
    """Of thirty values of a set every two are tried: an honest release must not fail for that."""

    def told(off: int, often: int) -> float | None:
        expected, seen = np.array([[1000.0, 1000.0]]), np.array([[1000 + off, 1000 - off]])
        return fit.refuse("draws.json", "all", expected, seen, even=False, often=often)

    for off in range(100, 200):
        try:
            told(off, 1)
        except Broken:
            break
    assert told(off, 495) == told(off, 10**6)
    exact = 2 * float(binom.cdf(1000 - off, 2000, 0.5))
    assert 1e-12 < exact < FALSE_ALARM, "what is refused is rarer than it says, though the law is that of large numbers"


@pytest.mark.parametrize("degrees", [fit._DEGREES_EVEN - 1, fit._DEGREES_EVEN])
def test_from_how_many_degrees_on_draws_may_be_too_even(degrees: int) -> None:
    expected = np.full((1, degrees + 1), 200.0)
    if degrees < fit._DEGREES_EVEN:
        assert fit.refuse("draws.json", "all", expected, expected.astype(int), even=True) == 1
    else:
        with pytest.raises(Broken, match="too even to be random"):
            fit.refuse("draws.json", "all", expected, expected.astype(int), even=True)
