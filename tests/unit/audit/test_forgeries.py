"""Releases whose every hash is in order, and whose files still say more, or other things, than they may."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from funnel.audit import audit_release
from funnel.audit.parquet import read_layout
from funnel.audit.rewrite import nothing_beside
from funnel.audit.table import Run, Source, Table
from funnel.errors import AuditFailure
from tests.unit.audit import samples
from tests.unit.audit.forge import Forgery, Place, edit, sha256, write_parquet
from tests.unit.audit.samples import detail, failures, lies

PAYLOAD = base64.b64encode(json.dumps([["flu", "10th"], ["none", "Doctorate"]] * 40).encode())


def resealed(place: Place) -> Place:
    """Manifest, evidence, ledger and head as a writer would leave them, for the files as they are now."""
    manifest = json.loads((place.folder / "release.json").read_bytes())
    for name in manifest["files"]:
        path = place.folder / name
        manifest["files"][name] = {"sha256": sha256(path), "bytes": path.stat().st_size}
    edit(place.folder / "release.json", lambda old: old.update(manifest))
    hashed = sha256(place.folder / "release.json")
    edit(place.kept / "evidence.json", lambda evidence: evidence.update(manifest_sha256=hashed))
    entry = json.loads(place.ledger.read_bytes().splitlines()[-1])
    place.keep([{key: value for key, value in entry.items() if key not in {"sequence", "previous"}}
                | {"manifest_sha256": hashed}])  # fmt: skip
    return place


def spoilt(home: Path, name: str, change: Callable[[bytes], bytes], **options: Any) -> set[str]:
    """The claims that fail once one file's bytes are changed and everything is sealed again."""
    place = samples.one_block(**options).write(home)
    path = place.folder / name
    path.write_bytes(change(path.read_bytes()))
    return failures(samples.audited(resealed(place)))


def test_sealing_again_changes_nothing(tmp_path: Path) -> None:
    assert spoilt(tmp_path, "data.parquet", bytes) == set()


# --- what a data file may hide


def footer_at(raw: bytes) -> int:
    return len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")


def in_footer(raw: bytes, more: bytes) -> bytes:
    """The footer with more Thrift before its end."""
    start = footer_at(raw)
    footer = raw[start:-9] + more + b"\0"
    return raw[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def text_field(delta: int) -> bytes:
    """A Thrift field of bytes, its number `delta` above the one before."""
    return bytes([delta << 4 | 8, len(PAYLOAD) & 127 | 128, len(PAYLOAD) >> 7]) + PAYLOAD


def skippable() -> bytes:
    """A Zstandard frame that every reader skips."""
    return b"\x50\x2a\x4d\x18" + len(PAYLOAD).to_bytes(4, "little") + PAYLOAD


HIDDEN: dict[str, Callable[[bytes], bytes]] = {
    "before the footer": lambda raw: raw[: footer_at(raw)] + PAYLOAD + raw[footer_at(raw) :],
    "after the magic": lambda raw: raw[:4] + PAYLOAD + raw[4:],
    "after the file": lambda raw: raw + PAYLOAD,
    "in a field of the footer that no reader knows": lambda raw: in_footer(raw, text_field(6)),
    "in the footer after its end": lambda raw: in_footer(raw, b"\0" + PAYLOAD),
    "in a skipped frame before the footer": lambda raw: raw[: footer_at(raw)] + skippable() + raw[footer_at(raw) :],
    "in the writer's name": lambda raw: raw.replace(b"parquet-cpp-arrow", b"parquet-cpp-flu10"),
    "in the name of the schema": lambda raw: raw.replace(b"\x06schema", b"\x06flu=ab"),
    "in statistics": lambda raw: raw.replace(b"\x0510th", b"\x05flu!") if b"\x0510th" in raw
    else in_footer(raw, text_field(6)),
}  # fmt: skip


@pytest.mark.parametrize("where", HIDDEN)
def test_bytes_beside_the_table_fail_a_parquet_file(where: str, tmp_path: Path) -> None:
    assert spoilt(tmp_path, "data.parquet", HIDDEN[where]) & {"data-bytes", "data-columns", "data-rows"}


def written(home: Path, table: Callable[[pa.Table], pa.Table], **options: Any) -> set[str]:
    """The claims that fail once Arrow has written the data anew with other options."""
    place = samples.one_block().write(home)
    path = place.folder / "data.parquet"
    sane: dict[str, Any] = {"compression": "zstd", "store_schema": False}
    pq.write_table(table(pq.read_table(path)), path, **sane | options)
    return failures(samples.audited(resealed(place)))


def in_column(table: pa.Table) -> pa.Table:
    fields = [field.with_metadata({"payload": PAYLOAD}) for field in table.schema]
    return table.cast(pa.schema(fields))


def in_dictionary(table: pa.Table) -> pa.Table:
    """A word that no row says, in the list of words that rows refer to."""
    codes = table["education"].combine_chunks().dictionary_encode()
    words = pa.concat_arrays([codes.dictionary, pa.array([PAYLOAD.decode()])])
    return pa.table({"education": pa.DictionaryArray.from_arrays(codes.indices, words)})


REWRITTEN: dict[str, tuple[Callable[[pa.Table], pa.Table], dict[str, Any]]] = {
    "metadata of a column": (in_column, {"store_schema": True}),
    "a word that no row says": (in_dictionary, {}),
    "an index of pages": (lambda table: table, {"write_page_index": True}),
    "another packing": (lambda table: table, {"compression": "snappy"}),
    "no packing": (lambda table: table, {"compression": "none"}),
    "pages of the second version": (lambda table: table, {"data_page_version": "2.0"}),
    "row groups of many sizes": (lambda table: table, {"row_group_size": 7}),
    "checksums": (lambda table: table, {"write_page_checksum": True}),
    "sorting columns": (lambda table: table, {"sorting_columns": [pq.SortingColumn(0)]}),
}


@pytest.mark.parametrize("how", REWRITTEN)
def test_another_way_of_writing_the_same_rows_fails(how: str, tmp_path: Path) -> None:
    change, options = REWRITTEN[how]
    assert written(tmp_path, change, **options) & {"data-bytes", "data-columns"}


@pytest.mark.parametrize("name", [b"ARROW:schema", b"pandas", b"flu"])
def test_no_name_excuses_metadata(name: bytes, tmp_path: Path) -> None:
    place = samples.one_block().write(tmp_path)
    path = place.folder / "data.parquet"
    table = pq.read_table(path)
    with pq.ParquetWriter(path, table.schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({name: PAYLOAD})
    assert name in path.read_bytes() and PAYLOAD in path.read_bytes()
    assert "data-columns" in failures(samples.audited(resealed(place)))
    with pytest.raises(AuditFailure, match="more than its table"):
        read_layout(path, 770)


@pytest.mark.parametrize("quoted", [b'"10th"', b"10th\r"])
def test_quotes_and_line_ends_may_not_speak_in_a_csv_file(quoted: bytes, tmp_path: Path) -> None:
    failed = spoilt(tmp_path, "data.csv", lambda raw: raw.replace(b"10th", quoted, 1), data="csv")
    assert failed & {"data-bytes", "data-values", "data-rows"}


def test_data_of_another_version_of_arrow_is_judged_by_its_layout(tmp_path: Path) -> None:
    """Packed otherwise by then, perhaps: neither passed nor failed, but gaps are still found."""
    place = samples.one_block().write(tmp_path)
    path = place.folder / "data.parquet"
    version = f"arrow version {pa.cpp_version}".encode()
    older = version.replace(pa.cpp_version[:1].encode(), b"1", 1)
    path.write_bytes(path.read_bytes().replace(version, older))
    report = samples.audited(resealed(place))
    assert report.passed
    assert "data-bytes" in samples.missing(report)
    raw = path.read_bytes()
    path.write_bytes(raw[: footer_at(raw)] + PAYLOAD + raw[footer_at(raw) :])
    assert "data-bytes" in failures(samples.audited(resealed(place)))


def large(rows: int) -> tuple[pa.Table, Table]:
    """Sorted rows of numbers, dates, truths and texts with gaps, as a table and as the auditor holds it."""
    days = [date(2024, 1, 1) + timedelta(day) for day in range(5)]
    labels = [(n, d, t, n > 1) for n in (1, 2, 30) for d in (*days, None) for t in ("a", "b", None)]
    ends = np.linspace(0, rows, len(labels) + 1).astype(int).tolist()
    runs, places = [], np.zeros(rows, int)
    for row, (label, start, stop) in enumerate(zip(labels, ends[:-1], ends[1:], strict=True)):
        text = tuple(None if part is None else str(part).lower() for part in label)
        runs.append(Run(text, stop - start, start, stop - 1))
        places[start:stop] = row
    columns = {f"c{i}": pa.array([label[i] for label in labels]) for i in range(4)}
    columns["c2"] = columns["c2"].dictionary_encode()
    index = pa.array(places)
    table = pa.table({name: column.take(index) for name, column in columns.items()})
    return table, Table("data.parquet", rows, tuple(runs))


def test_a_large_file_of_several_row_groups_is_its_rows_and_nothing_else(tmp_path: Path) -> None:
    table, rows = large(600_000)
    path = tmp_path / "data.parquet"
    write_parquet(path, table)
    layout = read_layout(path, 600_000)
    assert layout.groups == (262_144, 262_144, 75_712)
    assert layout.pages > 3 * 4 * 2
    source: Any = Source(path, None, list(table.column_names), [])  # type: ignore[arg-type]
    assert "byte for byte" in str(nothing_beside(source, rows, None))  # type: ignore[arg-type]
    raw = path.read_bytes()
    second = pq.ParquetFile(path).metadata.row_group(1).column(0).dictionary_page_offset
    path.write_bytes(raw[:second] + PAYLOAD + raw[second:])
    with pytest.raises(AuditFailure, match="more than its table"):
        read_layout(path, 600_000)


def test_no_cut_and_no_flip_of_a_footer_is_an_internal_error(tmp_path: Path) -> None:
    place = samples.one_block().write(tmp_path)
    path, chance = place.folder / "data.parquet", random.Random(7)
    raw = path.read_bytes()
    for _ in range(400):
        spoiled = bytearray(raw)
        spoiled[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
        path.write_bytes(bytes(spoiled[: chance.choice([len(raw), chance.randrange(len(raw))])]))
        try:
            assert read_layout(path, 770).groups == (770,)
        except AuditFailure as failure:
            assert failure.where == "data.parquet"


# --- reports


def in_report(*path: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(report: dict[str, Any]) -> None:
        at: Any = report
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = to

    return change


RESAMPLED = {"resamples": 1000, "median": 0.2, "p95": 0.3, "largest": 0.4, "share_above": 0.0}

REPORTS: dict[str, Callable[[dict[str, Any]], None]] = {
    "a smaller epsilon": in_report("promise", "epsilon", to=0.01),
    "a smaller bound": in_report("measured", "bound", to=0.01),
    "another notion": in_report("promise", "notion", to="perfect"),
    "a smaller leakage": in_report("measured", "leakage", "lip", to=0.001),
    "no ldp": in_report("measured", "leakage", "ldp", to=None),
    "more utility": in_report("utility", "normalised", to=0.99),
    "other rows": in_report("rows", to=771),
    "rows that are a text": in_report("rows", to="770"),
    "another minimum": in_report("minimum", to=1),
    "another release": in_report("release", to="20261121T112034Z-000000"),
    "another time": in_report("created", to="2026-11-22T11:20:34Z"),
    "the private version": in_report("published", to=False),
    "published as a number": in_report("published", to=1),
    "a table of pairs": in_report("pairs", to=[["flu", "10th"]]),
    "pairs in a block": in_report("blocks", 0, "rows", to=[["flu", "10th"]]),
    "counts in a block": in_report("blocks", 0, "counts", to={"records": [[1, 2]]}),
    "pairs in a sentence's place": in_report("notice", to=[["flu", "10th"]]),
    "pairs in place of a figure": in_report("rows", to={"flu": "10th"}),
    "a list longer than any alphabet": in_report("glossary", to=[{"term": "flu", "meaning": "10th"}] * 65),
    "another block": in_report("blocks", 0, "columns", to=["income"]),
    "a block that reads the secret": in_report("blocks", 0, "reads_secret", to=True),
    "blocks that are not there": in_report("blocks", to=[]),
    "other chances": in_report(
        "blocks", 0, "protocol",
        to={"inputs": [""] * 4, "outputs": [""] * 4, "chances": [[0.25] * 4] * 4},
    ),
    "chances of another size": in_report(
        "blocks", 0, "protocol", to={"inputs": [""] * 4, "outputs": [""] * 4, "chances": [[0.25] * 4]}
    ),
    "another hash of the policy": in_report(
        "provenance", to=[{"what": "Policy, SHA-256", "value": "0" * 64}]
    ),
    "provenance of its own": in_report("provenance", to=[{"what": "Data", "value": "flu,10th"}]),
    "another format": in_report("format", to="funnel-report/2"),
    "a comparison that was not made": in_report(
        "drawing", to={"candidates": [{"mechanism": "optimal", "normalised": 0.9, "reason": None, "used": True}]}
    ),
    "a median above the largest": in_report("realised", to=RESAMPLED | {"median": 0.5}),
    "a share of more than all": in_report("realised", to=RESAMPLED | {"share_above": 1.5}),
    "pairs among the resamples": in_report("realised", to=RESAMPLED | {"pairs": 3}),
}  # fmt: skip


@pytest.mark.parametrize("lie", REPORTS)
def test_a_report_that_lies_fails(lie: str, tmp_path: Path) -> None:
    place = samples.one_block().write(tmp_path)
    edit(place.folder / "report.json", REPORTS[lie])
    assert "report-figures" in failures(samples.audited(resealed(place)))


def test_a_report_may_show_the_chances_of_the_protocol(tmp_path: Path) -> None:
    place = samples.one_block().write(tmp_path)
    weights = json.loads((place.folder / "protocol.json").read_bytes())["blocks"][0]["weights"]
    chances = [[round(weight / 256, 3) for weight in row] for row in weights]
    shown = {"inputs": ["w", "x", "y", "z"], "outputs": ["w", "x", "y", "z"], "chances": chances}
    edit(place.folder / "report.json", in_report("blocks", 0, "protocol", to=shown))
    assert failures(samples.audited(resealed(place))) == set()


def test_a_report_may_tell_of_resampled_truths(tmp_path: Path) -> None:
    place = samples.one_block().write(tmp_path)
    edit(place.folder / "report.json", in_report("realised", to=RESAMPLED | {"largest": None}))
    assert failures(samples.audited(resealed(place))) == set()


def test_what_the_page_says_is_left_to_a_reader_and_never_called_passed(tmp_path: Path) -> None:
    place = samples.one_block().write(tmp_path)
    (place.folder / "report.html").write_text("<h1>epsilon 0.001, perfectly private</h1>", encoding="utf-8")
    for report in (samples.audited(resealed(place)), audit_release(place.folder)):
        assert report.passed
        assert "report-page" in samples.missing(report)
        assert "hashes" in detail(report, "report-page")
    assert samples.audited(place).verdict == "every claim that can be checked holds; 1 was not checked"


# --- terms


def with_policy(change: Callable[[bytes], bytes]) -> Callable[[Forgery], None]:
    def apply(forgery: Forgery) -> None:
        forgery.policy = change(forgery.terms)

    return apply


def asked(**sections: Any) -> Callable[[Forgery], None]:
    """The kept policy with some sections changed."""
    return with_policy(lambda policy: yaml.safe_dump(yaml.safe_load(policy) | sections).encode())


def claimed(**fields: Any) -> Callable[[Forgery], None]:
    """The manifest with some fields changed, the kept policy as it was before."""

    def apply(forgery: Forgery) -> None:
        forgery.policy = forgery.terms
        forgery.manifest.update(fields)

    return apply


TERMS: dict[str, tuple[str, Callable[[Forgery], None]]] = {
    "a private estimate": ("manifest", claimed(estimate={"minimum": 10, "kind": "private"})),
    "a private estimate asked for": ("policy-terms", asked(estimate={"minimum": 10, "kind": "private"})),
    "epsilon twice": (
        "policy-terms", with_policy(lambda policy: policy.replace(b"  epsilon", b"  epsilon: 0.001\n  epsilon"))
    ),
    "a section twice": ("policy-terms", with_policy(lambda policy: b"sensitive: [income]\n" + policy)),
    "an anchor": ("policy-terms", with_policy(lambda policy: policy.replace(b"epsilon: ", b"epsilon: &e "))),
    "an alias": (
        "policy-terms",
        with_policy(lambda policy: b"description: &n forged\n" + policy.replace(b"name: forged", b"name: *n")),
    ),
    "a merge key": ("policy-terms", with_policy(lambda policy: policy + b"<<: {sensitive: [income]}\n")),
    "a tag": ("policy-terms", with_policy(lambda policy: policy.replace(b"epsilon: ", b"epsilon: !!float "))),
    "a second document": ("policy-terms", with_policy(lambda policy: policy + b"---\nversion: 1\n")),
    "an epsilon with an underscore": (
        "policy-terms", with_policy(lambda policy: policy.replace(b"epsilon: 1.0", b"epsilon: 0_1"))
    ),
    "a key that is a list": ("policy-terms", with_policy(lambda policy: policy + b"? [a]\n: b\n")),
    "a mechanism that reads the secret, which this does not": (
        "mechanism", lambda forgery: forgery.manifest.update(mechanism="conditional-reporting")
    ),
    "a mechanism that nobody knows": (
        "mechanism", lambda forgery: forgery.manifest.update(mechanism="gaussian-funnel")
    ),
    "a tiny share": ("manifest", claimed(split=[0.000001])),
    "a share of nothing": ("manifest", claimed(split=[0.0])),
    "a share above one": ("manifest", claimed(split=[1.5])),
    "fresh draws with a key": ("manifest", claimed(draws={"kind": "fresh", "key_fingerprint": "0" * 16})),
}  # fmt: skip


@pytest.mark.parametrize("lie", TERMS)
def test_other_terms_than_the_policy_s_fail(lie: str, tmp_path: Path) -> None:
    claim, change = TERMS[lie]
    forgery = samples.one_block()
    change(forgery)
    assert claim in failures(lies(forgery, tmp_path))


@pytest.mark.parametrize("mechanism", ["optimal", "randomised-response"])
def test_a_protocol_that_reads_the_secret_is_not_theirs(mechanism: str, tmp_path: Path) -> None:
    forgery = samples.reads_secret()
    assert lies(forgery, tmp_path / "honest").passed
    forgery.policy = b""
    forgery.manifest["mechanism"] = mechanism
    assert failures(lies(forgery, tmp_path / "lie")) == {"mechanism"}


SPLITS: dict[str, tuple[list[float], Any, bool]] = {
    "equal by default": ([0.5, 0.5], None, True),
    "equal": ([0.5, 0.5], "equal", True),
    "another than equal": ([0.6, 0.4], "equal", False),
    "by name": ([0.6, 0.4], {"sex": 0.6, "occupation+hours": 0.4}, True),
    "by name with a comma": ([0.6, 0.4], {"occupation,hours": 0.4, "sex": 0.6}, True),
    "the shares exchanged": ([0.4, 0.6], {"sex": 0.6, "occupation+hours": 0.4}, False),
    "a block that is not there": ([0.6, 0.4], {"sex": 0.6, "age": 0.4}, False),
    "a block twice": ([0.6, 0.4], {"sex": 0.6, "occupation+hours": 0.4, "occupation,hours": 0.4}, False),
    "a block too few": ([0.6, 0.4], {"sex": 1.0}, False),
    "left open": ([0.7, 0.3], "optimal", True),
    "another word": ([0.5, 0.5], "half", False),
}


@pytest.mark.parametrize("case", SPLITS)
def test_the_split_is_the_policy_s(case: str, tmp_path: Path) -> None:
    split, wanted, holds = SPLITS[case]
    forgery = samples.two_blocks()
    forgery.manifest["split"] = split
    privacy = {"notion": "lip", "epsilon": 1.0} | ({} if wanted is None else {"split": wanted})
    asked(privacy=privacy)(forgery)
    assert failures(lies(forgery, tmp_path)) == (set() if holds else {"policy-terms"})


def test_values_of_a_secret_that_the_protocol_names_have_the_minimum_too(tmp_path: Path) -> None:
    """340 of 770 records have the second secret; every public value has fewer records than that."""
    smallest = int(samples.ONE.sum(axis=0).min())
    assert lies(samples.reads_secret(minimum=smallest), tmp_path / "kept").passed
    tall = np.array([[400, 400, 400, 400], [3, 3, 2, 2]])
    block = samples.reads_secret().protocol["blocks"][0]
    from tests.unit.audit.forge import Block, forge

    reads = Block(["education"], samples.EDUCATION, samples.EDUCATION, 4, block["weights"], reads_secret=True)
    assert lies(forge(tall, [reads], minimum=10), tmp_path / "ten").passed
    report = lies(forge(tall, [reads], minimum=11), tmp_path / "eleven")
    assert failures(report) == {"minimum"}
    assert "secret" in detail(report, "minimum")
    blind = samples.keep_or_spread(["education"], samples.EDUCATION, 8, 128)
    assert lies(forge(tall, [blind], minimum=11), tmp_path / "blind").passed


# --- single flips of what is kept


@pytest.mark.parametrize("name", ["evidence.json", "ledger.jsonl", "ledger.head"])
def test_a_flipped_bit_passes_only_where_it_changes_no_value(name: str, tmp_path: Path) -> None:
    place = samples.reads_secret().write(tmp_path)
    path = {"evidence.json": place.kept / name}.get(name, place.private / name)
    raw, chance = path.read_bytes(), random.Random(11)
    for at in chance.sample(range(len(raw)), min(150, len(raw))):
        spoiled = bytearray(raw)
        spoiled[at] ^= 1 << chance.randrange(8)
        path.write_bytes(bytes(spoiled))
        if samples.audited(place).passed:
            assert json.loads(bytes(spoiled)) == json.loads(raw), f"byte {at}"
    path.write_bytes(raw)


def test_a_ratio_is_kept_in_lowest_terms(tmp_path: Path) -> None:
    forgery = samples.one_block()
    ratio = forgery.evidence["leakage"]["lip"]
    over, under = map(int, ratio.split("/"))
    forgery.evidence["leakage"]["lip"] = f"{2 * over}/{2 * under}"
    assert failures(lies(forgery, tmp_path)) == {"evidence"}
