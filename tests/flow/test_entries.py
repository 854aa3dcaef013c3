"""Entries of earlier releases: later figures go by them, wherever the releases have gone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import funnel
from funnel.audit.audit import EXTRAS, PUBLISHED, audit_release
from funnel.audit.extras import entries, meanings, newest, policy, signature, table
from funnel.audit.history import HistoryReport, audit_history
from funnel.audit.kernel import check as kernel
from tests.support.audited import detail, failures, statuses
from tests.support.estimating import policy as estimated
from tests.support.forging import Forged, edit, lines_of, rechain, seal, sha
from tests.support.policies import write_policy

Json = dict[str, Any]
FIRST: Json = {
    "name": "first", "source": {"table": "people.parquet", "entity": "id", "filter": "ward = 'east'"},
    "sensitive": ["s"], "public": ["x"], "privacy": {"notion": "lip", "epsilon": 0.2}, "accept": "unbounded",
    "mechanism": "randomised-response", "release": {"to": "first", "private": "private"},
}  # fmt: skip
SECOND = FIRST | {
    "name": "second", "public": ["z"], "release": {"to": "second", "private": "private"},
    "source": {"table": "people.parquet", "entity": "id"},
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, key: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """400 people of two wards: x leans on s, z too."""
    monkeypatch.setenv("FUNNEL_KEY", key)
    duckdb.sql(
        f"""COPY (SELECT i AS id, 's' || (i % 2) AS s, CASE WHEN i % 3 = 0 THEN 'east' ELSE 'west' END AS ward,
                  'x' || ((i % 2 + CASE WHEN i % 10 < 6 THEN 0 ELSE i % 3 END) % 3) AS x,
                  'z' || (CASE WHEN i % 5 < 3 THEN i // 7 ELSE i END % 2) AS z
            FROM range(400) t(i)) TO '{tmp_path}/people.parquet' (FORMAT parquet)"""
    )
    return tmp_path


def run(folder: Path, terms: Json, **changes: Any) -> Path:
    return Path(funnel.run(write_policy(folder, **(terms | changes))).release)


def change_first(folder: Path, change: Callable[[Json], object]) -> None:
    """The first line of the ledger is another, and the chain as good as ever."""
    lines = lines_of(folder / "private")
    change(lines[0]["entry"])
    rechain(folder / "private", lines)


def audits(folder: Path, release: Path) -> tuple[set[str], set[str]]:
    """What fails in the audit of one release, and of its folder."""
    alone = audit_release(release, folder / "private")
    return failures(alone), {one.claim for one in history(folder, release).failed}


def history(folder: Path, release: Path) -> HistoryReport:
    return audit_history(release.parent, folder / "private")


def lower(entry: Json) -> None:
    """Less was told, by the release and by all."""
    entry["leakage"]["lip"] /= 2
    for key in ("figure", "measured"):
        entry["promises"][0]["together"][key] /= 2


def silent(copies: Path, entered: Json) -> str:
    """The hash of a copy of a protocol that tells nothing, of the same columns."""
    made = copies / "made"
    shutil.copy(copies / f"{entered['protocol_sha256']}.json", made)
    edit(made, lambda file: file["blocks"][0].update(weights=[[1 << file["blocks"][0]["bits"]] * len(row) if not place
         else [0] * len(row) for place, row in enumerate(file["blocks"][0]["weights"])]))  # fmt: skip
    name = sha(made.read_bytes())
    made.rename(copies / f"{name}.json")
    return name


LIES: dict[str, Callable[[Json], object]] = {
    "nobody is absent": lambda one: one.update(present=None),
    "others are absent": lambda one: one["present"].update(predicate=None, columns=[], unseen=1),
    "of noisy counts": lambda one: one.update(noisy=True),
    "keys": lambda one: one.update(identify=["ward"]),
    "nothing was drawn for anybody": lambda one: one.update(draws="fresh", entity=None, key_fingerprint=None),
    "other values": lambda one: one["drawn"][0].update(meaning=["0" * 16], base=["0" * 16]),
    "less": lower,
    "another budget": lambda one: one["promises"][0].update(budget="1/10"),
    "another source": lambda one: one["identity"].update(table="0" * 64),
    "under a lock": lambda one: one.update(lock="0" * 64),
    "another table": lambda one: one.update(policy_sha256="0" * 64),
}
OF_TERMS = {"others are absent", "other values", "another budget"}
OF_MANIFEST = {"less", "under a lock", "another protocol"}
"""What no other file tells."""


@pytest.mark.parametrize("lie", [*LIES, "another protocol"])
@pytest.mark.parametrize("kept", ["all", "manifest", "terms"])
def test_an_entry_that_says_anything_else_than_what_is_kept_fails(folder: Path, lie: str, kept: str) -> None:
    """Its release has gone, and with it perhaps the copy of its manifest, or else its terms and people."""
    first, second = run(folder, FIRST), run(folder, SECOND)
    own, copies = folder / "private" / first.name, folder / "private" / "protocols"
    entered = lines_of(folder / "private")[0]["entry"]
    shutil.rmtree(first.parent)
    if kept == "terms":
        (copies / f"{entered['manifest_sha256']}.json").unlink()
    if kept == "manifest":
        (own / "terms.json").unlink()
    assert audits(folder, second) == (set(), set())
    shown = detail(audit_release(second, folder / "private"), "ledger-kept")
    lost = {"terms": "release.json", "manifest": "terms.json"}.get(kept)
    assert (f"no {lost} is kept of {first.name}" in shown) == (lost is not None)
    change_first(folder, LIES.get(lie, lambda one: one.update(protocol_sha256=silent(copies, entered))))
    alone, together = audits(folder, second)
    unseen = {"terms": OF_MANIFEST, "manifest": OF_TERMS}.get(kept, set())
    assert ("ledger-kept" in alone, "history-kept" in together) == ((lie not in unseen,) * 2)


def test_what_entries_of_another_folder_say_of_a_third_promise_is_worked_out_from_what_is_kept(folder: Path) -> None:
    """By the release alone it is the ledger's word, and that is said."""
    run(folder, FIRST | {"source": SECOND["source"]})
    run(folder, SECOND)
    third = run(folder, SECOND, name="third", sensitive=["ward"], release__to="third")
    assert audits(folder, third) == (set(), set())
    lines = lines_of(folder / "private")
    assert lines[1]["entry"]["promises"][1]["policy"] == "first"
    lines[1]["entry"]["promises"][1]["together"]["measured"] /= 2
    rechain(folder / "private", lines)
    told = audit_release(third, folder / "private")
    assert "what all told together, is looked at where they are, in their own audits" in detail(told, "ledger-kept")
    assert {one.claim for one in history(folder, third).failed} == {"history-kept"}


def test_a_promise_in_an_entry_between_is_as_it_was_made_and_ends_where_that_says_so(folder: Path) -> None:
    """A later release goes by the entry before it, whose own release may be in another folder."""
    run(folder, FIRST, source={"table": "people.parquet", "entity": "id"}, budget=1.0, accept=None)
    run(folder, SECOND, public=["s"], sensitive=["ward"], accept=["first", "unbounded"])
    every = ["first", "second", "unbounded"]
    third = run(folder, SECOND, name="third", public=["x"], release__to="third", accept=every)
    whole = lines_of(folder / "private")
    promise = whole[1]["entry"]["promises"][1]
    assert (promise["policy"], promise["ended"]) == ("first", whole[1]["entry"]["release"])
    for change in ({"budget": "50"}, {"ended": None}, {"epsilon": 9.0}, {"since": whole[1]["entry"]["release"]}):
        lines = lines_of(folder / "private")
        for one in (one for line in lines[1:] for one in line["entry"]["promises"] if one["policy"] == "first"):
            one.update(change)
        rechain(folder / "private", lines)
        assert "ledger-promises" in failures(audit_release(third, folder / "private")), change
    rechain(folder / "private", whole)
    assert audits(folder, third) == (set(), set())


def test_a_set_of_distributions_is_as_wide_as_its_confidence_asks_for(folder: Path) -> None:
    """Its promise goes on in later entries by the radius that it was entered with."""
    robust = {"privacy": {"notion": "rldp", "epsilon": 1.5, "confidence": 0.95}, "mechanism": "polyopt"}
    first = run(folder, FIRST, source=SECOND["source"], **robust)
    second = run(folder, SECOND, accept=["first", "unbounded"])
    assert audits(folder, second) == (set(), set())
    own, lines = folder / "private" / first.name, lines_of(folder / "private")
    for promise in (one for line in lines for one in line["entry"]["promises"] if one["policy"] == "first"):
        promise["parameters"]["radius"] = 1e-9
    rechain(folder / "private", lines)
    edit(first / "release.json", lambda old: old["parameters"].update(radius=1e-9))
    seal([Forged(first, own)])
    raw = (first / "release.json").read_bytes()
    (folder / "private" / "protocols" / f"{sha(raw)}.json").write_bytes(raw)
    assert "too small for its confidence" in detail(audit_release(second, folder / "private"), "ledger-kept")
    assert "history-kept" in audits(folder, second)[1]


def test_cells_that_no_term_asks_for_excuse_a_pruned_release_from_nothing(folder: Path) -> None:
    plain = FIRST | {"source": SECOND["source"]}
    first, second = run(folder, plain), run(folder, plain)
    (first / "cells.json").write_text("{}")
    seal([Forged(first, folder / "private" / first.name)])
    raw = (first / "release.json").read_bytes()
    (folder / "private" / "protocols" / f"{sha(raw)}.json").write_bytes(raw)
    funnel.prune(write_policy(folder, **plain), keep=1)
    found = history(folder, second)
    told = next(one for one in found.releases if one.release.name == first.name)
    assert "made of cells" not in told.text()
    assert "whether there are cells" in detail(audit_release(second, folder / "private"), "ledger-kept")


def test_noisy_counts_of_a_release_that_has_gone_are_those_that_were_drawn(tmp_path: Path) -> None:
    first = Path(funnel.run(estimated(tmp_path, name="one", release__to="one")).release)
    second = Path(funnel.run(estimated(tmp_path, name="two", release__to="two", accept=["one", "unbounded"])).release)
    whole = first.rename(tmp_path / "aside")
    assert audits(tmp_path, second) == (set(), set())
    whole.rename(first)
    own = tmp_path / "private" / first.name
    counts = json.loads((own / "counts.json").read_bytes())
    cells, drawn = counts["cells"], counts["private"]["name"]
    edit(own / "counts.json", lambda old: old.update(cells=[[*cell[:-1], 2 * cell[-1]] for cell in cells]))
    seal([Forged(first, own)])
    shutil.rmtree(first)
    (broken,) = (one.detail for one in history(tmp_path, second).failed)  # as many of each again: no figure moves
    assert "counts.json" in broken
    (kept,) = (path for path in (tmp_path / "private" / "estimates").iterdir() if path.stem == drawn)
    kept.unlink()
    assert audits(tmp_path, second)[1] == set()
    assert f"no figure is worked out without estimates/{drawn}.json of {first.name}" in kept_of(tmp_path, second)


def test_all_that_an_audit_looks_at_but_its_table_and_pages_is_looked_at_of_a_release_that_has_gone() -> None:
    """A claim that is new is asked of earlier releases, too, or named here."""
    every = {**kernel.PUBLISHED, **kernel.PRIVATE}
    of_files = {"file-list", "file-hashes", "released", "evidence", "ledger-chain", "draw-outputs", "draw-independence"}
    asked = {*entries._BASE, *entries._MEASURED}
    assert {claim for claim, test in every.items() if test not in asked} == of_files
    shown = {meanings, policy}  # `_meant`, and `has_its_terms` beside `check`
    left_out = {one for one in EXTRAS if one.check not in asked} - shown
    assert left_out == {*PUBLISHED, signature, newest, table, entries}


@pytest.mark.parametrize(("notion", "figure"), [("lip", "mutual_information"), ("srlip", "lip"), ("srlip", "srlip")])
def test_every_figure_that_an_entry_states_is_worked_out_again(folder: Path, notion: str, figure: str) -> None:
    """Also those that no promise is about, and those given what others know of wide blocks."""
    terms = FIRST | {"source": SECOND["source"]}
    if notion == "srlip":
        cells = {"name": "person", "columns": ["z", "ward"], "cells": {"most": 4, "minimum": 30}}
        terms |= {"privacy": {"notion": notion, "epsilon": 0.4, "knows": ["ward"]}, "public": ["x", cells]}
    first, second = run(folder, terms), run(folder, SECOND)
    own, less = folder / "private" / first.name, {figure: 0.0}
    assert json.loads((first / "release.json").read_bytes())["leakage"][figure] > 0
    edit(first / "release.json", lambda old: old["leakage"].update(less))
    change_first(folder, lambda one: one["leakage"].update(less))
    seal([Forged(first, own)])
    raw = (first / "release.json").read_bytes()
    (folder / "private" / "protocols" / f"{sha(raw)}.json").write_bytes(raw)
    shutil.rmtree(first)
    assert "history-kept" in audits(folder, second)[1]
    if notion == "srlip":
        cells_copy(folder, first.name).unlink()
        assert f"not every figure is worked out without cells.json of {first.name}" in kept_of(folder, second)


def test_no_entry_between_says_that_less_was_told_than_it_measured(folder: Path) -> None:
    run(folder, FIRST)
    second = run(folder, SECOND)
    lines = lines_of(folder / "private")
    for line in lines:
        (first,) = (one["together"] for one in line["entry"]["promises"] if one["policy"] == "first")
        first["figure"] = lines[0]["entry"]["promises"][0]["together"]["measured"] / 2
    lines[1]["entry"]["promises"][1]["together"]["measured"] = first["figure"]  # else the release's own would tell more
    rechain(folder / "private", lines)
    told = detail(audit_release(second, folder / "private"), "ledger-promises")
    assert "less is told of first than was measured" in told


def test_evidence_of_an_earlier_release_is_that_of_its_manifest(folder: Path) -> None:
    """An entry may name a copy of release.json that is another one, or a list that leaves a file out."""
    first, second = run(folder, FIRST), run(folder, SECOND)
    own, copies = folder / "private" / first.name, folder / "private" / "protocols"
    whole = lines_of(folder / "private")
    manifest = copies / f"{whole[0]['entry']['manifest_sha256']}.json"
    forged = folder / "forged"
    shutil.copy(manifest, forged)
    edit(forged, lambda file: file["leakage"].update(lip=0.05))
    shutil.copy(forged, copies / f"{sha(forged.read_bytes())}.json")
    for name in (sha(forged.read_bytes()), "0" * 64):
        change_first(folder, lambda one, name=name: one.update(manifest_sha256=name))
        assert audits(folder, second) == ({"ledger-kept"}, {"history-kept"})
        rechain(folder / "private", whole)
    listed = (own / "evidence.json").read_bytes()
    edit(own / "evidence.json", lambda file: file["files"].pop("population.json"))
    change = {"evidence_sha256": sha((own / "evidence.json").read_bytes()), "present": None}
    change_first(folder, lambda one: one.update(change))
    assert "ledger-kept" in audits(folder, second)[0]
    (own / "population.json").rename(folder / "population.json")
    assert "ledger-kept" in audits(folder, second)[0], "people.json counts those who are absent, too"
    (folder / "population.json").rename(own / "population.json")
    (own / "evidence.json").write_bytes(listed)
    rechain(folder / "private", whole)
    assert audits(folder, second) == (set(), set())


def test_draws_that_are_kept_of_a_release_that_has_gone_are_for_the_people_who_were_counted(folder: Path) -> None:
    first, second = run(folder, FIRST), run(folder, SECOND)
    own = folder / "private" / first.name
    edit(own / "draws.json", lambda old: old["blocks"][0][0].append(old["blocks"][0][0].pop() + 9))
    seal([Forged(first, own)])
    shutil.rmtree(first)
    assert "history-kept" in audits(folder, second)[1]
    told = next(one.detail for one in history(folder, second).failed if one.claim == "history-kept")
    assert "draws.json" in told


def cells_copy(folder: Path, release: str) -> Path:
    """Where the private folder keeps the cells of a release, as release.json names them."""
    copies = folder / "private" / "protocols"
    (entry,) = (line["entry"] for line in lines_of(folder / "private") if line["entry"].get("release") == release)
    manifest = json.loads((copies / f"{entry['manifest_sha256']}.json").read_text())
    return copies / f"{manifest['files']['cells.json']['sha256']}.json"


@pytest.mark.parametrize("where", ["pruned", "gone"])
def test_without_its_cells_an_entry_is_held_to_all_else_that_is_kept(folder: Path, where: str) -> None:
    """Later figures go by a release of wide blocks, too: with its data goes cells.json, and a copy may be lost."""
    cells = {"name": "person", "columns": ["z", "ward"], "cells": {"most": 4, "minimum": 30}}
    wide = FIRST | {"source": SECOND["source"], "public": ["x", cells]}
    first, second = run(folder, wide), run(folder, wide)
    if where == "pruned":
        funnel.prune(write_policy(folder, **wide), keep=1)
    else:
        shutil.rmtree(first)
        (folder / "private" / first.name / "published").unlink()
    assert audits(folder, second) == (set(), set())
    assert "cells.json" not in kept_of(folder, second)
    copy = cells_copy(folder, first.name)
    raw = copy.read_bytes()
    copy.write_bytes(raw + b" ")
    assert "history-kept" in audits(folder, second)[1] or where == "pruned"
    assert "ledger-kept" in audits(folder, second)[0]
    copy.unlink()
    assert audits(folder, second) == (set(), set())
    assert f"no cells.json is kept of {first.name}" in kept_of(folder, second)
    whole = lines_of(folder / "private")
    assert [one["inside"] for one in whole[0]["entry"]["drawn"]] == [[], ["z", "ward"]]
    for place, change in ((0, {"meaning": ["0" * 16]}), (0, {"base": ["0" * 16]}), (1, {"inside": ["z"]})):
        change_first(folder, lambda entry, at=place, new=change: entry["drawn"][at].update(new))
        alone, together = audits(folder, second)
        assert "ledger-kept" in alone and "history-kept" in together, change
        rechain(folder / "private", whole)
    change_first(folder, lower)
    assert "history-kept" in audits(folder, second)[1]


@pytest.mark.parametrize("pruned", [False, True])
def test_a_release_of_wide_blocks_cannot_pass_for_one_without(folder: Path, pruned: bool) -> None:
    """All that is composed of it would be of a plain column, which nobody knows the inside of."""
    cells = {"name": "person", "columns": ["z", "ward"], "cells": {"most": 4, "minimum": 30}}
    release = run(folder, FIRST | {"source": SECOND["source"], "public": ["x", cells]})
    own = folder / "private" / release.name
    (release / "cells.json").unlink()
    (own / "distances.json").unlink()
    change_first(folder, lambda entry: entry["drawn"][1].update(inside=[]))
    seal([Forged(release, own)])
    if pruned:
        told = {"format": "funnel-pruned/1", "release": release.name, "written": "2026-11-29T00:00:00Z"}
        told["manifest_sha256"] = sha((release / "release.json").read_bytes())
        (folder / "private" / "pruned").mkdir()
        (folder / "private" / "pruned" / release.name).write_text(json.dumps(told))
        for path in release.iterdir():
            if path.name != "release.json":
                path.unlink()
    assert "whether there are cells" in detail(audit_release(release, folder / "private"), "cells")


def test_a_folder_that_became_a_link_to_another_one_has_not_got_its_releases(folder: Path) -> None:
    first, second = run(folder, FIRST), run(folder, SECOND)
    shutil.rmtree(first.parent)
    first.parent.symlink_to(second.parent.name)
    found = audit_history(first.parent, folder / "private")
    assert [one.claim for one in found.failed] == ["history-released"]
    assert audits(folder, second) == (set(), set())


def test_where_all_releases_are_in_the_folder_none_is_looked_at_twice(folder: Path) -> None:
    release = run(folder, FIRST)
    told = {one.claim: one for one in history(folder, release).findings}
    assert (told["history-kept"].status, told["history-kept"].claimed) == ("not checked", False)
    assert statuses(audit_release(release, folder / "private"))["ledger-kept"] == "not checked"


def test_what_is_lost_of_a_release_that_has_gone_is_told_and_what_is_another_file_fails(folder: Path) -> None:
    first, second = run(folder, FIRST), run(folder, SECOND)
    own, copies = folder / "private" / first.name, folder / "private" / "protocols"
    copy = copies / f"{lines_of(folder / 'private')[0]['entry']['manifest_sha256']}.json"
    whole = copy.read_bytes()
    copy.write_bytes(b"damaged")
    assert audits(folder, second) == ({"ledger-kept"}, {"history-kept"})
    beside = shutil.copytree(first, second.parent / first.name)
    assert failures(audit_release(second, folder / "private")) == set(), "one whole copy is enough"
    shutil.rmtree(beside)
    copy.write_bytes(whole)
    shutil.rmtree(first.parent)
    for path in (copy, own / "evidence.json", own / "terms.json"):
        whole = path.read_bytes()
        path.write_bytes(whole + b" ")
        alone, together = audits(folder, second)
        assert ("ledger-kept" in alone, "history-kept" in together) == (True, True), path
        path.write_bytes(whole)
    for name in ("people.json", "draws.json", "population.json"):
        whole = (own / name).read_bytes()
        (own / name).unlink()
        assert audits(folder, second) == (set(), set()), name
        assert f"no figure is worked out without {name} of {first.name}" in kept_of(folder, second)
        (own / name).write_bytes(whole)
    (own / "evidence.json").rename(folder / "evidence.json")
    assert audits(folder, second) == (set(), set())
    (claim,) = (one.detail for one in audit_release(second, folder / "private").findings if one.claim == "ledger-kept")
    assert f"no evidence.json is kept of {first.name}" in claim and claim.count(" is kept of ") == 1
    (folder / "evidence.json").rename(own / "evidence.json")
    assert kept_of(folder, second) == "1 release"
    (own / "plan.json").rename(folder / "plan.json")
    (told,) = (one.detail for one in history(folder, second).failed)
    assert told.startswith("1 release published, and not here, nor by a plan that is kept in another folder")
    (folder / "plan.json").rename(own / "plan.json")
    shutil.rmtree(own)
    assert audits(folder, second) == (set(), set())
    assert f"no figure is worked out without evidence.json of {first.name}" in kept_of(folder, second)
    copies.joinpath(f"{lines_of(folder / 'private')[0]['entry']['protocol_sha256']}.json").unlink()
    assert "history-released" in audits(folder, second)[1]


def kept_of(folder: Path, release: Path) -> str:
    """What the audit of a folder says of releases that are not in it."""
    return next(one.detail for one in history(folder, release).findings if one.claim == "history-kept")


def test_a_charge_that_an_earlier_release_stated_is_in_the_ledger(tmp_path: Path) -> None:
    """Without it the estimates of all nights would have spent less than they did."""
    private = tmp_path / "private"
    first = Path(funnel.run(estimated(tmp_path, estimate__budget=3.0)).release)
    whole, name = lines_of(private), json.loads((private / first.name / "counts.json").read_text())["private"]["name"]
    rechain(private, [line for line in whole if "release" in line["entry"]])
    (private / "estimates" / f"{name}.json").unlink()
    second = Path(funnel.run(estimated(tmp_path, estimate__budget=3.0)).release)
    assert failures(audit_release(second, private)) == {"ledger-kept"}


def test_terms_that_an_earlier_policy_does_not_have_fail(folder: Path) -> None:
    """With their hashes in manifest, evidence and entry."""
    first, second = run(folder, FIRST), run(folder, SECOND)
    made = Forged(first, folder / "private" / first.name)
    edit(made.kept / "terms.json", lambda terms: terms.update(budget="50"))
    seal([made])
    change_first(folder, lambda one: one["promises"][0].update(budget="50"))
    alone, together = audits(folder, second)
    assert "ledger-kept" in alone and "history-kept" in together
