"""A writer that lies consistently, with every hash in order: each lie fails the claim that it breaks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from funnel.audit import audit_release
from tests.unit.audit import samples
from tests.unit.audit.forge import Forgery, Place, edit, sha256, write_json
from tests.unit.audit.samples import failures, lies

Change = Callable[[Forgery], Any]


def of_manifest(*path: str, to: Any) -> Change:
    """Set one field of release.json."""
    return lambda forgery: put(forgery.manifest, path, to)


def of_protocol(*path: Any, to: Any) -> Change:
    """Set one field of protocol.json's first block."""
    return lambda forgery: put(forgery.protocol["blocks"][0], path, to)


def of_evidence(*path: Any, to: Any) -> Change:
    """Set one field of evidence.json."""
    return lambda forgery: put(forgery.evidence, path, to)


def put(document: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        document = document[key]
    document[path[-1]] = value


def drop(document: str, *path: Any) -> Change:
    """Leave out one field."""

    def change(forgery: Forgery) -> None:
        at = getattr(forgery, document)
        for key in path[:-1]:
            at = at[key]
        del at[path[-1]]

    return change


MANIFEST: dict[str, Change] = {
    "another format": of_manifest("format", to="funnel-release/2"),
    "a missing field": drop("manifest", "split"),
    "a field nobody expects": of_manifest("counts", to={"s0": 430}),
    "an id that is a path": of_manifest("release", to="../../etc"),
    "an id with a line end": of_manifest("release", to="20261121T112034Z-3f9a1c\n"),
    "a time without a zone": of_manifest("created", to="2026-11-21 11:20"),
    "a notion unknown": of_manifest("notion", to="differential"),
    "no epsilon": of_manifest("epsilon", to=None),
    "epsilon zero": of_manifest("epsilon", to=0),
    "epsilon below zero": of_manifest("epsilon", to=-1.0),
    "epsilon as text": of_manifest("epsilon", to="1.0"),
    "epsilon zero where it must be positive": of_manifest("epsilon", to=0.0),
    "a split of the wrong length": of_manifest("split", to=[]),
    "epsilon true": of_manifest("epsilon", to=True),
    "rows as a float": of_manifest("rows", to=770.0),
    "rows true": of_manifest("rows", to=True),
    "rows below one": of_manifest("rows", to=0),
    "more rows than people": of_manifest("rows", to=10**15),
    "a column twice": of_manifest("public", to=[["education"], ["education"]]),
    "no public column": of_manifest("public", to=[]),
    "an empty block": of_manifest("public", to=[[]]),
    "no sensitive column": of_manifest("sensitive", to=[]),
    "draws without a fingerprint": of_manifest("draws", to={"kind": "permanent", "key_fingerprint": None}),
    "draws with a key": of_manifest(
        "draws", to={"kind": "fresh", "key_fingerprint": None, "key": "c2VjcmV0"}
    ),
    "a finer figure than is published": of_manifest("leakage", "lip", to=0.2203941234),
    "a leakage below zero": of_manifest("leakage", "lip", to=-0.1),
    "a leakage missing": drop("manifest", "leakage", "ldp"),
    "a share above one": of_manifest("utility", "normalised", to=1.1),
    "too many shares": of_manifest("split", to=[0.5, 0.5]),
    "too many sizes": of_manifest("alphabet", "released", to=[4, 4]),
    "a size of zero": of_manifest("alphabet", "sensitive", to=0),
    "a version that is no text": of_manifest("versions", "funnel", to=0.1),
    "a format of data unknown": of_manifest("estimate", "kind", to="guess"),
    "a text that cannot be written": of_manifest("policy_sha256", to="F" * 64),
}


@pytest.mark.parametrize("lie", MANIFEST)
def test_an_ill_formed_manifest_fails(lie: str, tmp_path: Path) -> None:
    forgery = samples.one_block()
    place = forgery.write(tmp_path)
    MANIFEST[lie](forgery)
    from tests.unit.audit.forge import write_json

    write_json(place.folder / "release.json", forgery.manifest)
    assert "manifest" in failures(samples.audited(place))


@pytest.mark.parametrize("column", ["education", "sex"])
def test_a_column_may_not_stand_in_two_blocks(column: str, tmp_path: Path) -> None:
    forgery = samples.two_blocks()
    forgery.manifest["public"] = [[column], [column, "hours"]]
    assert failures(lies(forgery, tmp_path)) == {"manifest"}


def test_perfect_privacy_has_no_epsilon_or_zero(tmp_path: Path) -> None:
    for index, epsilon in enumerate((None, 0, 0.0)):
        assert lies(samples.perfect(epsilon=epsilon), tmp_path / str(index)).verdict == samples.WHOLE
    assert failures(lies(samples.perfect(epsilon=1.0), tmp_path / "some")) == {"manifest"}


def reweigh(rows: list[list[Any]]) -> Change:
    """Replace the first block's weights."""
    return of_protocol("weights", to=rows)


RIGHT = [[130, 42, 42, 42], [42, 130, 42, 42], [42, 42, 130, 42], [42, 42, 42, 130]]

PROTOCOL: dict[str, Change] = {
    "another format": lambda forgery: put(forgery.protocol, ("format",), "funnel-protocol/0"),
    "no blocks": lambda forgery: put(forgery.protocol, ("blocks",), []),
    "a rule that is no text": lambda forgery: put(forgery.protocol, ("rule",), None),
    "a field nobody expects": of_protocol("prior", to=[0.3, 0.7]),
    "an input twice": of_protocol("inputs", to=[["10th"], ["10th"], ["Doctorate"], [None]]),
    "an output twice": of_protocol("outputs", to=[["10th"], ["Bachelors"], ["Bachelors"], [None]]),
    "a label of another width": of_protocol("inputs", 1, to=["Bachelors", "Masters"]),
    "a label that is a number": of_protocol("inputs", 1, to=[7]),
    "a label that is no list": of_protocol("inputs", 1, to="Bachelors"),
    "no labels": of_protocol("outputs", to=[]),
    "a column twice": of_protocol("columns", to=["education", "education"]),
    "bits that are too fine": of_protocol("bits", to=63),
    "bits below zero": of_protocol("bits", to=-1),
    "bits true": of_protocol("bits", to=True),
    "a column sum off by one": reweigh([[131, *RIGHT[0][1:]], *RIGHT[1:]]),
    "a column sum of twice the whole": reweigh([[2 * weight for weight in row] for row in RIGHT]),
    "a negative weight": reweigh([[-1, 42, 42, 42], [172, 130, 42, 42], *RIGHT[2:]]),
    "a weight that is a float": reweigh([[130.0, 42, 42, 42], *RIGHT[1:]]),
    "a weight that is true": reweigh([[True, 42, 42, 42], *RIGHT[1:]]),
    "a weight that is a text": reweigh([["130", 42, 42, 42], *RIGHT[1:]]),
    "a weight of thirty digits": reweigh([[10**30, 42, 42, 42], *RIGHT[1:]]),
    "a weight that is null": reweigh([[None, 42, 42, 42], *RIGHT[1:]]),
    "a row too few": reweigh(RIGHT[:3]),
    "a row too short": reweigh([RIGHT[0][:3], *RIGHT[1:]]),
    "weights nested too deep": reweigh([[[weight] for weight in row] for row in RIGHT]),
    "weights that are no list": of_protocol("weights", to={"0": 256}),
    "a secret without values": of_protocol("secret", to={"columns": ["secret"], "values": []}),
    "a secret the weights do not read": of_protocol(
        "secret", to={"columns": ["secret"], "values": [["a"], ["b"]]}
    ),
}


@pytest.mark.parametrize("lie", PROTOCOL)
def test_an_ill_formed_protocol_fails(lie: str, tmp_path: Path) -> None:
    forgery = samples.one_block()
    PROTOCOL[lie](forgery)
    report = lies(forgery, tmp_path)
    assert "protocol" in failures(report)
    assert samples.statuses(report)["leakage-bound"] == "not checked"


def test_weights_that_sum_right_only_by_wrapping_around_fail(tmp_path: Path) -> None:
    """Five weights of 2^62 sum to 2^62 modulo 2^64."""
    forgery = samples.one_block()
    block = forgery.protocol["blocks"][0]
    block["outputs"] = [[str(y)] for y in range(5)]
    block["bits"] = 62
    block["weights"] = [[1 << 62] * 4 for _ in range(5)]
    forgery.manifest["alphabet"]["released"] = [5]
    assert "protocol" in failures(lies(forgery, tmp_path))


def add_row(forgery: Forgery) -> None:
    forgery.rows.insert(0, forgery.rows[0])


def move_rows(forgery: Forgery) -> None:
    """As many rows of each value as before, but two of them change places."""
    forgery.rows[0], forgery.rows[-1] = forgery.rows[-1], forgery.rows[0]


def other_group_first(forgery: Forgery) -> None:
    """Equal rows together, but the group that comes first is not the first of any order."""
    order = {"Bachelors": 0, "10th": 1, None: 2, "Doctorate": 3}
    forgery.rows.sort(key=lambda row: order[row[0]])


def change_row(forgery: Forgery) -> None:
    """One person's answer, changed to another output, in its sorted place."""
    last = max(i for i, row in enumerate(forgery.rows) if row == ("10th",))
    forgery.rows[last] = ("Bachelors",)


def another_protocol(forgery: Forgery) -> None:
    """The protocol of a release with other weights."""
    weights = forgery.protocol["blocks"][0]["weights"]
    for x in range(4):
        weights[x][x] -= 12
        weights[(x + 1) % 4][x] += 12


def other_labels(forgery: Forgery) -> None:
    block = forgery.protocol["blocks"][0]
    block["inputs"] = [block["inputs"][i] for i in (1, 0, 2, 3)]


def move_count(forgery: Forgery) -> None:
    """One record of the counts moves to the other secret."""
    cells = forgery.evidence["joint"]["cells"]
    cells[0][-1] -= 1
    cells[4][-1] += 1


def move_input(forgery: Forgery) -> None:
    cells = forgery.evidence["joint"]["cells"]
    cells[0][-1] -= 1
    cells[1][-1] += 1


def move_draw(forgery: Forgery) -> None:
    draws = forgery.evidence["draws"][0]
    draws[0][-1] -= 1
    draws[1][-1] += 1


def move_draw_input(forgery: Forgery) -> None:
    draws = forgery.evidence["draws"][0]
    draws[0][-1] -= 1
    draws[4][-1] += 1


CLAIMS: dict[str, tuple[str, Change]] = {
    "an epsilon that the channel breaks": ("leakage-bound", of_manifest("epsilon", to=0.2)),
    "an epsilon below the stated leakage": ("stated-bound", of_manifest("epsilon", to=0.2)),
    "perfect privacy, not so": (
        "leakage-bound",
        lambda forgery: forgery.manifest.update(notion="perfect", epsilon=0),
    ),
    "a lip too low": ("leakage-stated", of_manifest("leakage", "lip", to=0.2203)),
    "a lip too high": ("leakage-stated", of_manifest("leakage", "lip", to=0.2206)),
    "a lip of zero": ("leakage-stated", of_manifest("leakage", "lip", to=0)),
    "an infinite lip": ("leakage-stated", of_manifest("leakage", "lip", to=None)),
    "an ldp too low": ("leakage-stated", of_manifest("leakage", "ldp", to=0.3656)),
    "an ldp absurdly high": ("leakage-stated", of_manifest("leakage", "ldp", to=999999.0)),
    "an information too low": ("information-stated", of_manifest("leakage", "mutual_information", to=0.0084)),
    "an information too high": (
        "information-stated",
        of_manifest("leakage", "mutual_information", to=0.0086),
    ),
    "a utility too high": ("utility-stated", of_manifest("utility", "mutual_information", to=0.2)),
    "an entropy too low": ("utility-stated", of_manifest("utility", "entropy", to=1.3)),
    "a share too high": ("utility-stated", of_manifest("utility", "normalised", to=0.2)),
    "an upper bound below what was reached": ("utility-bound", of_manifest("utility", "upper_bound", to=0.1)),
    "rows that are not there": ("data-rows", of_manifest("rows", to=771)),
    "records that are not there": ("counts", of_manifest("rows", to=771)),
    "a minimum that is not met": ("minimum", of_manifest("estimate", "minimum", to=121)),
    "sizes that are not so": ("protocol-manifest", of_manifest("alphabet", "released", to=[3])),
    "another number of secrets": ("alphabets", of_manifest("alphabet", "sensitive", to=3)),
    "another sensitive column": ("alphabets", of_manifest("sensitive", to=["income"])),
    "another public column": ("data-columns", of_manifest("public", to=[["schooling"]])),
    "another column in the protocol": ("protocol-manifest", of_protocol("columns", to=["schooling"])),
    "another release's protocol": ("leakage-exact", another_protocol),
    "inputs in another order": ("alphabets", other_labels),
    "a row too many": ("data-rows", add_row),
    "a row too few": ("data-rows", lambda forgery: forgery.rows.pop()),
    "a row changed": ("draw-outputs", change_row),
    "rows out of order": ("data-order", move_rows),
    "groups of rows out of order": ("data-order", other_group_first),
    "a value that is no output": ("data-values", lambda forgery: put(forgery.rows, (-1,), ("PhD",))),
    "a missing value where none can be": ("data-values", lambda forgery: put(forgery.rows, (0,), ("",))),
    "a column renamed": ("data-columns", lambda forgery: put(forgery.columns, (0,), "Education")),
    "a count moved to another secret": ("leakage-exact", move_count),
    "a count moved to another input": ("draw-inputs", move_input),
    "a count beyond the alphabet": ("counts", of_evidence("joint", "cells", 0, 1, to=9)),
    "a cell twice": ("evidence", of_evidence("joint", "cells", 1, to=[0, 0, 200])),
    "a count of zero": ("evidence", of_evidence("joint", "cells", 0, 2, to=0)),
    "a count below zero": ("evidence", of_evidence("joint", "cells", 0, 2, to=-100)),
    "a count that is a float": ("evidence", of_evidence("joint", "cells", 0, 2, to=100.0)),
    "counts beyond every table": ("counts", of_evidence("joint", "cells", 0, 2, to=(1 << 63) - 1)),
    "no counts": ("evidence", of_evidence("joint", "cells", to=[])),
    "a secret of other labels": ("evidence", of_evidence("joint", "secret", "values", to=[["s0"], ["s0"]])),
    "another lip ratio": ("leakage-exact", of_evidence("leakage", "lip", to="4267/3424")),
    "another ldp ratio": ("leakage-exact", of_evidence("leakage", "ldp", to="inf")),
    "a ratio over zero": ("evidence", of_evidence("leakage", "ldp", to="1/0")),
    "a ratio of a million digits": ("evidence", of_evidence("leakage", "lip", to="9" * 10**6 + "/1")),
    "evidence of another release": ("evidence", of_evidence("release", to="20261121T112034Z-ffffff")),
    "evidence of another version": ("evidence", of_evidence("format", to="funnel-evidence/9")),
    "evidence without draws": ("evidence", drop("evidence", "draws")),
    "draws of too few blocks": ("counts", of_evidence("draws", to=[])),
    "a draw moved to another output": ("draw-outputs", move_draw),
    "a draw moved to another input": ("draw-inputs", move_draw_input),
    "an input that does not exist": ("draw-inputs", of_evidence("draws", 0, 0, 0, to=4)),
    "an output that does not exist": ("draw-support", of_evidence("draws", 0, 0, 1, to=4)),
    "a pair drawn twice": ("evidence", of_evidence("draws", 0, 1, to=[0, 0, 5])),
    "a pair never drawn": ("evidence", of_evidence("draws", 0, 0, 2, to=0)),
}


@pytest.mark.parametrize("lie", CLAIMS)
def test_a_consistent_lie_fails_the_claim_it_breaks(lie: str, tmp_path: Path) -> None:
    claim, change = CLAIMS[lie]
    forgery = samples.one_block()
    change(forgery)
    report = lies(forgery, tmp_path)
    assert claim in failures(report), report.text()
    assert not report.passed
    assert "FAIL" in report.verdict


@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.parametrize("lie", ["a row too many", "a row too few", "a row changed", "rows out of order",
                                 "a value that is no output", "a column renamed"])  # fmt: skip
def test_lies_about_the_table_fail_in_either_format(lie: str, form: str, tmp_path: Path) -> None:
    claim, change = CLAIMS[lie]
    forgery = samples.one_block(data=form)
    change(forgery)
    assert claim in failures(lies(forgery, tmp_path))


def test_swapped_weights_fail_the_leakage(tmp_path: Path) -> None:
    """Two rows, or two weights of a column, change places: still a protocol, with the same sums."""
    forgery = samples.one_block()
    weights = forgery.protocol["blocks"][0]["weights"]
    weights[0], weights[1] = weights[1], weights[0]
    assert {"draw-fit"} <= failures(lies(forgery, tmp_path))
    skewed = samples.one_block()
    weights = skewed.protocol["blocks"][0]["weights"]
    weights[0][0], weights[1][0] = weights[1][0], weights[0][0]
    assert {"leakage-exact", "draw-fit"} <= failures(lies(skewed, tmp_path / "skewed"))


def test_a_protocol_may_not_read_another_secret_than_the_counts(tmp_path: Path) -> None:
    for index, secret in enumerate(({"columns": ["secret"], "values": [["s1"], ["s0"]]},
                                    {"columns": ["income"], "values": [["s0"], ["s1"]]})):  # fmt: skip
        forgery = samples.reads_secret()
        forgery.protocol["blocks"][0]["secret"] = secret
        report = lies(forgery, tmp_path / str(index))
        assert failures(report) & {"alphabets", "protocol-manifest"}
        assert not report.passed


def test_an_extra_column_fails_even_where_it_is_constant(tmp_path: Path) -> None:
    forgery = samples.one_block()
    forgery.columns.append("batch")
    forgery.rows = [(*row, "7") for row in forgery.rows]
    assert "data-columns" in failures(lies(forgery, tmp_path))


def test_columns_in_another_order_fail(tmp_path: Path) -> None:
    forgery = samples.two_blocks()
    forgery.columns = [forgery.columns[i] for i in (1, 0, 2)]
    forgery.rows = [tuple(row[i] for i in (1, 0, 2)) for row in forgery.rows]
    assert "data-columns" in failures(lies(forgery, tmp_path))


def test_blocks_in_another_order_fail(tmp_path: Path) -> None:
    forgery = samples.two_blocks()
    forgery.protocol["blocks"].reverse()
    assert "protocol-manifest" in failures(lies(forgery, tmp_path))


def test_a_perfect_release_may_leak_nothing_at_all(tmp_path: Path) -> None:
    """A single weight moved by one in 2^62 breaks perfect privacy, though no float can tell."""
    forgery = samples.perfect()
    block = forgery.protocol["blocks"][0]
    block["bits"] = 62
    block["weights"] = [
        [1 << 61, 1 << 61, 1 << 61, (1 << 61) + 1],
        [1 << 61, 1 << 61, 1 << 61, (1 << 61) - 1],
    ]
    assert "leakage-bound" in failures(lies(forgery, tmp_path))


def test_more_combinations_than_can_be_measured_prove_nothing(tmp_path: Path) -> None:
    """A forged product of blocks must not eat the machine's memory; nor may it pass."""
    forgery = samples.three_blocks()
    labels = [[str(y)] for y in range(1000)]
    weights = [[1, 1] if y < 64 else [0, 0] for y in range(1000)]
    for block in forgery.protocol["blocks"]:
        block |= {"outputs": copy.deepcopy(labels), "weights": weights}
    forgery.manifest["alphabet"]["released"] = [1000] * 3
    report = lies(forgery, tmp_path)
    assert "channel" in failures(report)
    assert samples.statuses(report)["leakage-bound"] == "not checked"


PAGES = {
    "by its mark": '<meta name="funnel-report" content="private">',
    "by its notice": '<p class="private">Private: this version holds counts of people.</p>',
}
REPORTS = {
    "the private one": {"format": "funnel-report/1", "published": False},
    "of unknown kind": {"format": "funnel-report/1", "published": None},
    "with counts by block": {"published": True, "blocks": [{"name": "age", "counts": {"records": [[3, 4]]}}]},
    "with records by value": {"published": True, "blocks": [{"shares": [{"value": "x", "records": 12}]}]},
    "with a count in a list of lists": {"published": True, "deep": [[{"records": 0}]]},
}


def relisted(place: Place, name: str) -> Place:
    """The manifest lists the file as it is now, so that only its content can give it away."""
    path = place.folder / name
    listed = {"sha256": sha256(path), "bytes": path.stat().st_size}
    edit(place.folder / "release.json", lambda manifest: manifest["files"].update({name: listed}))
    return place


@pytest.mark.parametrize("mark", PAGES)
def test_the_private_page_may_not_be_published(mark: str, tmp_path: Path) -> None:
    place = samples.one_block().write(tmp_path)
    (place.folder / "report.html").write_text(f"<!doctype html>{PAGES[mark]}", encoding="utf-8")
    report = audit_release(relisted(place, "report.html").folder)
    assert failures(report) == {"nothing-private"}
    assert "holds the private report" in samples.detail(report, "nothing-private")


@pytest.mark.parametrize("kind", REPORTS)
def test_private_figures_may_not_be_published(kind: str, tmp_path: Path) -> None:
    place = samples.one_block().write(tmp_path)
    write_json(place.folder / "report.json", REPORTS[kind])
    told = failures(audit_release(relisted(place, "report.json").folder))
    assert told == {"nothing-private", "report-figures"}


def test_a_report_that_cannot_be_read_is_not_called_free_of_private_figures(tmp_path: Path) -> None:
    place = samples.one_block().write(tmp_path)
    (place.folder / "report.json").write_text('{"published": true', encoding="utf-8")
    told = failures(audit_release(relisted(place, "report.json").folder))
    assert told == {"nothing-private", "report-figures"}


def test_words_about_records_are_no_counts(tmp_path: Path) -> None:
    place = samples.one_block().write(tmp_path)
    told = {"published": True, "rows": 770, "scope": {"records": "770 records, each drawn for on its own"}}
    write_json(place.folder / "report.json", told)
    (place.folder / "report.html").write_text(
        '<meta name="funnel-report" content="published">&lt;p class=&#34;private&#34;&gt;', encoding="utf-8"
    )
    relisted(relisted(place, "report.json"), "report.html")
    assert "nothing-private" not in failures(audit_release(place.folder))


@pytest.mark.parametrize("lie", ["a suspect name", "another name", "evidence under a harmless name"])
def test_nothing_else_may_lie_in_the_published_folder(lie: str, tmp_path: Path) -> None:
    place = samples.one_block().write(tmp_path)
    if lie == "evidence under a harmless name":
        (place.folder / "notes.json").write_bytes((place.kept / "evidence.json").read_bytes())
    else:
        name = "evidence.json" if lie == "a suspect name" else "readme.txt"
        (place.folder / name).write_text("hello", encoding="utf-8")
    failed = failures(samples.audited(place))
    assert failed == ({"file-list"} if lie == "another name" else {"file-list", "nothing-private"})
