"""An honest release passes every claim, however named; nothing is called passed that was not looked at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from funnel.audit import audit_release
from funnel.audit.findings import BEYOND, NEEDS_PRIVATE, PRIVATE, PUBLISHED, TITLES
from funnel.errors import ReleaseError
from tests.unit.audit import samples
from tests.unit.audit.forge import RELEASE, Place, forge, keep_or_spread, write_parquet
from tests.unit.audit.samples import audited, detail, statuses

LEDGER_ENTRY = {
    "release": "20261120T112034Z-000000",
    "name": "forged",
    "policy_sha256": "0" * 64,
    "manifest_sha256": "1" * 64,
    "protocol_sha256": "2" * 64,
    "key_fingerprint": None,
    "draws": "fresh",
    "notion": "lip",
    "epsilon": 1.0,
    "leakage": {"lip": 0.5, "ldp": 0.9, "mutual_information": 0.1},
}


UNCLAIMED = dict.fromkeys(
    [
        *BEYOND,
        "lock",
        "ledger-kept",
        "uncertainty",
        "estimate-noise",
        "estimate-spent",
        "leakage-true",
        "utility-bound",
        "ledger-drawn",
        "ledger-composed",
        "ledger-budget",
    ],
    "not checked",
)
"""No lock, no set of distributions, noise, upper bound or budget is claimed; the report's words are for a reader."""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return samples.one_block().write(tmp_path)


@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.parametrize("kind", samples.HONEST)
def test_every_claim_of_an_honest_release_holds(kind: str, form: str, tmp_path: Path) -> None:
    report = audited(samples.HONEST[kind](data=form).write(tmp_path))
    assert {claim: status for claim, status in statuses(report).items() if status != "passed"} == UNCLAIMED
    assert report.passed
    assert report.verdict == samples.WHOLE


@pytest.mark.parametrize("notion", ["lip", "ldp"])
def test_the_bound_may_be_met_to_the_last_digit(notion: str, tmp_path: Path) -> None:
    exact = samples.one_block().manifest["leakage"][notion]
    assert audited(samples.one_block(notion=notion, epsilon=exact).write(tmp_path / "kept")).passed
    broken = audited(
        samples.one_block(notion=notion, epsilon=round(exact - 1e-4, 4)).write(tmp_path / "broken")
    )
    assert {"leakage-bound", "stated-bound"} <= samples.failures(broken)


def test_claims_come_once_each_and_always_in_the_same_order(place: Place) -> None:
    with_private, without = audited(place), audit_release(place.folder)
    assert [finding.claim for finding in with_private.findings] == list(TITLES)
    assert [finding.claim for finding in without.findings] == list(TITLES)
    assert {finding.title for finding in without.findings} == set(TITLES.values())


def test_without_the_evidence_its_claims_are_not_checked(place: Place) -> None:
    report = audit_release(place.folder)
    assert report.passed
    waiting = {*PRIVATE} - {"utility-bound"}
    assert samples.missing(report) == {*waiting, "report-page"}
    assert all(statuses(report)[claim] == "passed" for claim in PUBLISHED)
    assert {detail(report, claim) for claim in waiting} == {NEEDS_PRIVATE}
    assert detail(report, "utility-bound") == "not claimed: no upper bound is stated"
    assert report.verdict == (
        f"every claim that can be checked from the published files holds; {len(PRIVATE)} were not checked"
    )


def test_what_no_file_can_prove_is_never_called_passed(tmp_path: Path) -> None:
    forgery = samples.one_block()
    forgery.manifest["draws"] = {"kind": "permanent", "key_fingerprint": "0123456789abcdef"}
    report = audited(forgery.write(tmp_path))
    assert report.passed
    assert samples.missing(report) == set(BEYOND) - {"signature"}
    assert report.verdict == "every claim that can be checked holds; 2 were not checked"


def test_a_claim_that_is_not_made_is_neither_passed_nor_missing(place: Place) -> None:
    report = audited(place)
    assert detail(report, "draws-repeat") == "not claimed: every release draws anew"
    assert detail(report, "utility-bound") == "not claimed: no upper bound is stated"
    assert detail(report, "uncertainty") == "not claimed: the notion is about the estimate alone"
    assert {claim: statuses(report)[claim] for claim in UNCLAIMED} == UNCLAIMED
    assert samples.missing(report) == {"report-page"}
    assert report.verdict == samples.WHOLE
    told = [line for line in report.text().splitlines() if line.startswith("not claimed ")]
    assert len(told) == len(UNCLAIMED) - 1
    assert any(line.endswith("[draws-repeat]: every release draws anew") for line in told)
    assert any(line.endswith("[utility-bound]: no upper bound is stated") for line in told)


def test_one_claim_made_and_not_checked_is_counted_beside_one_not_made(tmp_path: Path) -> None:
    forgery = samples.one_block()
    forgery.manifest["draws"] = {"kind": "permanent", "key_fingerprint": "0123456789abcdef"}
    report = audited(forgery.write(tmp_path))
    assert samples.missing(report) == {"draws-repeat", "report-page"}
    assert report.verdict == "every claim that can be checked holds; 2 were not checked"


def test_whether_a_claim_is_made_stays_open_where_the_manifest_is_broken(place: Place) -> None:
    (place.folder / "release.json").write_text("{}", encoding="utf-8")
    assert set(BEYOND) <= samples.missing(audited(place))


def test_what_waits_for_the_private_evidence_is_told_in_one_line(place: Place) -> None:
    report = audit_release(place.folder)
    lines = report.text().splitlines()
    needing = [claim for claim in PRIVATE if claim != "utility-bound"]
    assert len(lines) == len(PUBLISHED) + 1 + 1 + len(BEYOND) + 1
    (waiting,) = [line for line in lines if "--private DIR" in line]
    assert waiting == (
        f"not checked {len(needing)} claims need the private evidence: --private DIR; only that shows the "
        f"counts, the leakage and the draws [{', '.join(needing)}]"
    )
    assert [finding["claim"] for finding in report.as_dict()["findings"]] == list(TITLES)


def test_nothing_is_counted_in_the_wrong_number(place: Place) -> None:
    text = audited(place).text() + audit_release(place.folder).text()
    assert "1 entry" not in detail(audited(place), "ledger-entry")
    assert detail(audited(place), "ledger-chain") == "1 entry"
    assert detail(audited(place), "draw-inputs") == "770 records in one block"
    assert detail(audited(place), "protocol") == "1 block: 4 to 4 at 2^8"
    assert "<= 1 nat, " in detail(audited(place), "leakage-bound")
    assert "(s)" not in text and " 1 entries" not in text and " 1 nats" not in text


def test_a_failure_heads_the_verdict(place: Place) -> None:
    (place.folder / "notes.txt").write_text("hello", encoding="utf-8")
    report = audit_release(place.folder)
    assert not report.passed
    assert report.verdict == f"1 claim FAILS; {len(PRIVATE)} were not checked"
    assert report.text().splitlines()[-1] == report.verdict
    (place.folder / "ledger.txt").write_text("hello", encoding="utf-8")
    assert audited(place).verdict == "2 claims FAIL; 1 was not checked"


def test_the_report_is_json_and_one_line_per_finding(place: Place) -> None:
    report = audited(place)
    document = json.loads(json.dumps(report.as_dict(), allow_nan=False))
    assert document["passed"] is True
    assert document["verdict"] == report.verdict
    assert document["release"] == str(place.folder)
    assert [set(finding) for finding in document["findings"]] == [
        {"claim", "title", "status", "detail"}
    ] * len(TITLES)
    lines = report.text().splitlines()
    assert len(lines) == len(TITLES) + 1
    assert all(f"[{finding.claim}]" in line for finding, line in zip(report.findings, lines, strict=False))


def test_the_release_may_be_named_in_three_ways(place: Place) -> None:
    for given in (place.folder, place.releases / "latest", place.releases):
        report = audit_release(given, place.private)
        assert report.release == place.folder
        assert report.verdict == samples.WHOLE


def test_the_evidence_may_be_named_in_two_ways(place: Place) -> None:
    assert audit_release(place.folder, place.kept).verdict == samples.WHOLE
    assert audit_release(place.folder, place.private).verdict == samples.WHOLE


def test_a_release_still_being_staged_is_not_missed_in_the_ledger(tmp_path: Path) -> None:
    forgery = samples.one_block()
    forgery.own_entry = False
    place = forgery.write(tmp_path)
    staged = place.private / ".staging"
    place.kept.rename(staged)
    report = audit_release(place.folder, staged, staged=True)
    assert report.passed
    assert samples.missing(report) == {
        *(
            "data-bytes",
            "ledger-chain",
            "ledger-entry",
            "ledger-kept",
            "ledger-drawn",
            "ledger-composed",
            "ledger-budget",
            "report-page",
        ),
    }
    assert "ledger-entry" in samples.failures(audit_release(place.folder, staged))


def test_earlier_and_later_entries_of_the_ledger_do_no_harm(tmp_path: Path) -> None:
    forgery = samples.one_block()
    forgery.ledger = [LEDGER_ENTRY, LEDGER_ENTRY | {"release": "20261121T000000Z-111111"}]
    report = audited(forgery.write(tmp_path))
    assert report.verdict == samples.WHOLE
    assert detail(report, "ledger-entry") == "entry 3 of 3"


def test_folders_with_wildcards_and_equal_signs_are_read_as_they_are_named(tmp_path: Path) -> None:
    for index, form in enumerate(("parquet", "csv")):
        place = samples.one_block(data=form).write(tmp_path / f"we[i]rd*?{index}" / "year=2026" / "o'clock")
        assert audited(place).verdict == samples.WHOLE


def test_columns_may_be_numbers_in_parquet(tmp_path: Path) -> None:
    import duckdb

    block = keep_or_spread(["hours"], [["10"], ["9"], [None], ["-1"]], 8, 128)
    forgery = forge(samples.ONE, [block])
    place = forgery.write(tmp_path)
    data = place.folder / "data.parquet"
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"CREATE TABLE t AS SELECT CAST(hours AS BIGINT) AS hours FROM '{data}'")
        write_parquet(data, connection.sql("FROM t").to_arrow_table())
    report = audit_release(place.folder)
    assert samples.failures(report) == {"file-hashes"}
    reseal(place, data)
    assert samples.failures(audit_release(place.folder)) == set()


def reseal(place: Place, data: Path) -> None:
    """Let the manifest list the data file as it is now."""
    from tests.unit.audit.forge import edit, sha256

    listed = {"sha256": sha256(data), "bytes": data.stat().st_size}
    edit(place.folder / "release.json", lambda manifest: manifest["files"].update({data.name: listed}))


def test_rows_sorted_by_text_are_in_a_fixed_order_too(tmp_path: Path) -> None:
    labels: list[list[str | None]] = [["b"], ["a"], [None], ["c"]]
    for index, missing in enumerate(("", "~")):
        forgery = forge(samples.ONE, [keep_or_spread(["x"], labels, 8, 128)])
        forgery.rows.sort(key=lambda row: row[0] or missing)
        assert audited(forgery.write(tmp_path / str(index))).verdict == samples.WHOLE


@pytest.mark.parametrize("missing", ["nothing", "a file", "an empty folder", "a dangling link"])
def test_where_there_is_no_release_an_error_says_what_to_do(missing: str, tmp_path: Path) -> None:
    given = tmp_path / "here"
    if missing == "a file":
        given.write_text("x", encoding="utf-8")
    elif missing == "an empty folder":
        given.mkdir()
    elif missing == "a dangling link":
        given.mkdir()
        (given / "latest").symlink_to("gone")
    with pytest.raises(ReleaseError) as caught:
        audit_release(given)
    assert caught.value.code == "release-unreadable"
    assert str(given) in caught.value.text()
    assert caught.value.advice


def test_where_there_is_no_private_folder_an_error_says_so(place: Place) -> None:
    with pytest.raises(ReleaseError, match="private"):
        audit_release(place.folder, place.private / "elsewhere")


def test_a_private_folder_without_this_release_fails_its_claims(place: Place, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    report = audit_release(place.folder, empty)
    assert {"evidence", "ledger-chain"} == samples.failures(report)
    assert statuses(report)["leakage-bound"] == "not checked"


def test_a_manifest_cannot_lead_the_auditor_out_of_the_private_folder(place: Place) -> None:
    from tests.unit.audit.forge import edit

    edit(place.folder / "release.json", lambda manifest: manifest.update(release=f"../private/{RELEASE}"))
    report = audited(place)
    assert "manifest" in samples.failures(report)
    assert statuses(report)["evidence"] == "not checked"
