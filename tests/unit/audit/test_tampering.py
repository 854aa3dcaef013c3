"""What happens to a release after it was written: hashes, the evidence and the ledger catch it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from funnel.audit import audit_release
from tests.unit.audit import samples
from tests.unit.audit.forge import Forgery, Place, edit, sha256, write_parquet
from tests.unit.audit.samples import audited, detail, failures, statuses
from tests.unit.audit.test_honest import LEDGER_ENTRY

FLIPS = 24
FILES = ("data", "protocol.json", "release.json", "report.html", "report.json")


def flip(path: Path, position: int, bit: int) -> None:
    """Turn one bit of a file over."""
    content = bytearray(path.read_bytes())
    content[position] ^= 1 << bit
    path.write_bytes(bytes(content))


def positions(path: Path, seed: int) -> list[tuple[int, int]]:
    """Seeded positions over a whole file, its first and last bytes among them, and a bit for each."""
    random = np.random.default_rng(seed)
    size = path.stat().st_size
    places = {0, 1, size // 2, size - 2, size - 1, *random.integers(0, size, FLIPS).tolist()}
    return [(place, int(random.integers(8))) for place in sorted(places)]


@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_anywhere_in_a_published_file_fails(name: str, form: str, tmp_path: Path) -> None:
    place = samples.one_block(data=form).write(tmp_path)
    path = place.folder / (f"data.{form}" if name == "data" else name)
    whole = path.read_bytes()
    expected = {"manifest", "manifest-hash"} if name == "release.json" else {"file-hashes"}
    for position, bit in positions(path, len(name)):
        flip(path, position, bit)
        report = audited(place)
        assert failures(report) & expected, (position, bit)
        path.write_bytes(whole)
    assert audited(place).passed


@pytest.mark.parametrize("name", ["evidence.json", "policy.yaml", "plan.json"])
def test_a_flipped_bit_in_the_evidence_never_ends_in_a_traceback(name: str, tmp_path: Path) -> None:
    place = samples.two_blocks().write(tmp_path)
    path = place.kept / name
    whole = path.read_bytes()
    caught = 0
    for position, bit in positions(path, 7):
        flip(path, position, bit)
        caught += not audited(place).passed
        path.write_bytes(whole)
    flips = len(positions(path, 7))
    assert caught == flips if name != "evidence.json" else caught > flips // 3


@pytest.mark.parametrize("name", FILES)
def test_a_truncated_file_fails(name: str, tmp_path: Path) -> None:
    place = samples.one_block().write(tmp_path)
    path = place.folder / ("data.parquet" if name == "data" else name)
    whole = path.read_bytes()
    for length in (0, 1, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        assert failures(audited(place)) & {"file-hashes", "manifest-hash", "manifest"}
    path.write_bytes(whole + b"\n")
    assert failures(audited(place)) & {"file-hashes", "manifest-hash"}


def relist(place: Place, name: str) -> None:
    """A tamperer who also corrects the manifest."""
    path = place.folder / name
    listed = {"sha256": sha256(path), "bytes": path.stat().st_size}
    edit(place.folder / "release.json", lambda manifest: manifest["files"].update({name: listed}))


def test_a_tamperer_who_corrects_the_manifest_meets_the_evidence(tmp_path: Path) -> None:
    place = samples.one_block().write(tmp_path)
    (place.folder / "report.html").write_text("<p>all is well</p>", encoding="utf-8")
    relist(place, "report.html")
    assert audit_release(place.folder).passed
    assert failures(audited(place)) == {"manifest-hash", "ledger-entry"}


def test_a_tamperer_who_also_corrects_the_evidence_meets_the_ledger(tmp_path: Path) -> None:
    place = samples.one_block().write(tmp_path)
    edit(place.folder / "release.json", lambda manifest: manifest["versions"].update(python="4"))
    new = sha256(place.folder / "release.json")
    edit(place.kept / "evidence.json", lambda evidence: evidence.update(manifest_sha256=new))
    assert failures(audited(place)) == {"ledger-entry"}


def test_a_table_of_another_release_fails(tmp_path: Path) -> None:
    place = samples.one_block().write(tmp_path / "a")
    other = samples.one_block(seed=1).write(tmp_path / "b")
    (place.folder / "data.parquet").write_bytes((other.folder / "data.parquet").read_bytes())
    assert "file-hashes" in failures(audited(place))
    relist(place, "data.parquet")
    assert {"draw-outputs", "manifest-hash"} <= failures(audited(place))


def test_a_protocol_of_another_release_fails(tmp_path: Path) -> None:
    place, other = samples.one_block().write(tmp_path / "a"), samples.two_blocks().write(tmp_path / "b")
    (place.folder / "protocol.json").write_bytes((other.folder / "protocol.json").read_bytes())
    assert {"file-hashes", "protocol-manifest"} <= failures(audited(place))


@pytest.mark.parametrize("kept", ["policy", "plan"])
def test_another_policy_or_plan_than_was_hashed_fails(kept: str, tmp_path: Path) -> None:
    place = samples.one_block().write(tmp_path)
    path = place.kept / ("policy.yaml" if kept == "policy" else "plan.json")
    path.write_bytes(path.read_bytes() + b"# later\n")
    assert failures(audited(place)) == {f"{kept}-hash"}
    path.unlink()
    assert failures(audited(place)) == {f"{kept}-hash"}


@pytest.mark.parametrize("kept", ["policy", "plan"])
def test_manifest_and_evidence_must_name_the_same_policy_and_plan(kept: str, tmp_path: Path) -> None:
    place = samples.one_block().write(tmp_path)
    edit(place.kept / "evidence.json", lambda evidence: evidence.update({f"{kept}_sha256": "a" * 64}))
    assert failures(audited(place)) == {f"{kept}-hash"}


# --- the ledger


def with_history(tmp_path: Path) -> Place:
    """A release whose ledger has two earlier entries."""
    forgery = samples.one_block()
    forgery.ledger = [LEDGER_ENTRY, LEDGER_ENTRY | {"release": "20261121T000000Z-111111"}]
    return forgery.write(tmp_path)


def rewrite(place: Place, change: Callable[[list[bytes]], list[bytes]]) -> set[str]:
    """Change the ledger's lines; the claims that then fail."""
    lines = place.ledger.read_bytes().splitlines(keepends=True)
    place.ledger.write_bytes(b"".join(change(lines)))
    return failures(audited(place))


LEDGER: dict[str, tuple[str, Callable[[list[bytes]], list[bytes]]]] = {
    "the first line removed": ("ledger-chain", lambda lines: lines[1:]),
    "a line in the middle removed": ("ledger-chain", lambda lines: [lines[0], lines[2]]),
    "the release's own line removed": ("ledger-chain", lambda lines: lines[:2]),
    "lines exchanged": ("ledger-chain", lambda lines: [lines[1], lines[0], lines[2]]),
    "an old line edited": ("ledger-chain", lambda lines: [lines[0].replace(b"0.5", b"0.4"), *lines[1:]]),
    "a line twice": ("ledger-chain", lambda lines: [*lines, lines[-1]]),
    "everything removed": ("ledger-chain", lambda lines: []),
    "the last line end removed": ("ledger-chain", lambda lines: [*lines[:-1], lines[-1].rstrip()]),
    "an empty line": ("ledger-chain", lambda lines: [*lines, b"\n"]),
    "a line that is not JSON": ("ledger-chain", lambda lines: [*lines, b"{'a': 1}\n"]),
    "a line that is a list": ("ledger-chain", lambda lines: [*lines, b"[]\n"]),
    "a line that is not UTF-8": ("ledger-chain", lambda lines: [*lines, b"\xff\n"]),
}


@pytest.mark.parametrize("change", LEDGER)
def test_a_changed_ledger_fails(change: str, tmp_path: Path) -> None:
    claim, how = LEDGER[change]
    assert rewrite(with_history(tmp_path), how) == {claim}


OWN_ENTRY: dict[str, dict[str, Any]] = {
    "another manifest": {"manifest_sha256": "a" * 64},
    "another policy": {"policy_sha256": "a" * 64},
    "another protocol": {"protocol_sha256": "a" * 64},
    "another name": {"name": "another"},
    "another notion": {"notion": "ldp"},
    "another epsilon": {"epsilon": 0.5},
    "no epsilon": {"epsilon": None},
    "other draws": {"draws": "permanent"},
    "another key": {"key_fingerprint": "0123456789abcdef"},
    "a lower leakage": {"leakage": {"lip": 0.1, "ldp": 0.3658, "mutual_information": 0.0085}},
    "a leakage nobody measured": {"leakage": {"lip": 0.2204, "renyi": 0.1}},
    "a leakage that is a text": {"leakage": {"lip": "0.2204"}},
}


@pytest.mark.parametrize("lie", OWN_ENTRY)
def test_the_release_s_own_entry_must_say_what_the_manifest_says(lie: str, tmp_path: Path) -> None:
    place = samples.one_block().write(tmp_path)
    entry = json.loads(place.ledger.read_bytes()) | OWN_ENTRY[lie]
    del entry["sequence"], entry["written"], entry["previous"]
    place.keep([entry])
    assert failures(audited(place)) == {"ledger-entry"}


def test_a_ledger_cut_back_together_with_its_head_still_lacks_the_entry(tmp_path: Path) -> None:
    place = samples.one_block().write(tmp_path)
    place.keep([LEDGER_ENTRY])
    assert failures(audited(place)) == {"ledger-entry"}


def test_later_entries_cannot_be_cut_off_unseen(tmp_path: Path) -> None:
    place = samples.one_block().write(tmp_path)
    own = place.ledger.read_bytes()
    entry = json.loads(own)
    del entry["sequence"], entry["written"], entry["previous"]
    place.keep([entry, LEDGER_ENTRY])
    assert audited(place).passed
    place.ledger.write_bytes(place.ledger.read_bytes().splitlines(keepends=True)[0])
    report = audited(place)
    assert failures(report) == {"ledger-chain"}
    assert "expected 2, found 1" in detail(report, "ledger-chain")


def test_what_a_crash_leaves_behind_the_head_does_no_harm(tmp_path: Path) -> None:
    """A torn line never counted; a whole one counts, though the head does not confirm it yet."""
    place = samples.one_block().write(tmp_path)
    own, entry = place.ledger.read_bytes(), json.loads(place.ledger.read_bytes())
    place.ledger.write_bytes(own + own[:40])
    assert audited(place).passed
    head = place.head.read_bytes()
    del entry["sequence"], entry["written"], entry["previous"]
    place.keep([entry, LEDGER_ENTRY])
    place.head.write_bytes(head)
    assert audited(place).passed
    place.ledger.write_bytes(own)
    place.head.unlink()
    assert audited(place).passed


HEADS: dict[str, bytes | None] = {
    "none": None,
    "nothing": b"",
    "of another line": json.dumps({"sequence": 3, "sha256": "a" * 64}).encode(),
    "before the first": json.dumps({"sequence": 0, "sha256": "0" * 64}).encode(),
    "beyond the last": json.dumps({"sequence": 4, "sha256": "0" * 64}).encode(),
    "with more keys": json.dumps({"sequence": 3, "sha256": "0" * 64, "key": "k"}).encode(),
    "a list": b"[3]",
}


@pytest.mark.parametrize("head", HEADS)
def test_a_head_that_does_not_fit_fails(head: str, tmp_path: Path) -> None:
    place = with_history(tmp_path)
    content = HEADS[head]
    if content is None:
        place.head.unlink()
    else:
        place.head.write_bytes(content)
    assert failures(audited(place)) == {"ledger-chain"}


def test_two_entries_for_one_release_fail(tmp_path: Path) -> None:
    place = samples.one_block().write(tmp_path)
    entry = json.loads(place.ledger.read_bytes())
    del entry["sequence"], entry["written"], entry["previous"]
    place.keep([entry, entry])
    report = audited(place)
    assert failures(report) == {"ledger-entry"}
    assert "found 2" in detail(report, "ledger-entry")


def test_a_number_in_the_chain_must_follow_the_one_before(tmp_path: Path) -> None:
    place = samples.one_block().write(tmp_path)
    entry = json.loads(place.ledger.read_bytes()) | {"sequence": 2}
    place.ledger.write_text(json.dumps(entry) + "\n", encoding="utf-8")
    assert failures(audited(place)) == {"ledger-chain"}


# --- files of the wrong kind


def replaced(path: Path, kind: str) -> None:
    """Put something else in a file's place."""
    target = path.with_name("elsewhere")
    path.rename(target)
    if kind == "a link":
        away = path.parent.parent / "elsewhere"
        target.rename(away)
        path.symlink_to(away)
        return
    target.unlink()
    if kind == "a folder":
        path.mkdir()
    elif kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a dangling link":
        path.symlink_to("nowhere")


@pytest.mark.parametrize("kind", ["nothing", "a link", "a dangling link", "a folder", "a pipe"])
@pytest.mark.parametrize("name", ["data.parquet", "protocol.json", "release.json", "report.html"])
def test_something_else_in_a_published_file_s_place_fails(name: str, kind: str, tmp_path: Path) -> None:
    place = samples.one_block().write(tmp_path)
    replaced(place.folder / name, kind)
    report = audited(place)
    assert failures(report) & {"manifest", "file-hashes"}
    assert statuses(report)["draw-outputs"] == "not checked" or name == "report.html"
    assert name in report.text()


@pytest.mark.parametrize("kind", ["nothing", "a link", "a folder", "a pipe"])
@pytest.mark.parametrize("name", ["evidence.json", "policy.yaml", "ledger.jsonl"])
def test_something_else_in_a_private_file_s_place_fails(name: str, kind: str, tmp_path: Path) -> None:
    place = samples.one_block().write(tmp_path)
    path = place.ledger if name == "ledger.jsonl" else place.kept / name
    claim = {"evidence.json": "evidence", "policy.yaml": "policy-hash", "ledger.jsonl": "ledger-chain"}[name]
    replaced(path, kind)
    assert claim in failures(audited(place))


# --- JSON that no writer writes


def nasty(forgery: Forgery) -> dict[str, bytes]:
    """Contents of a JSON file that a careless reader chokes on."""
    honest = json.dumps(forgery.manifest)
    return {
        "nothing": b"",
        "not UTF-8": honest.encode("utf-16"),
        "a stray byte": honest.encode().replace(b"forged", b"forg\xe9d"),
        "a byte order mark": b"\xef\xbb\xbf" + honest.encode(),
        "a list": b"[]",
        "a number": b"7",
        "null": b"null",
        "a text": b'"release"',
        "nested without end": b"[" * 200_000,
        "objects nested without end": b'{"a":' * 200_000,
        "a number of a million digits": honest.replace('"rows": 770', '"rows": ' + "9" * 10**6).encode(),
        "a number beyond floats": honest.replace('"epsilon": 1.0', '"epsilon": 1e999').encode(),
        "a float of a million digits": honest.replace(
            '"epsilon": 1.0', '"epsilon": 1.' + "0" * 10**6
        ).encode(),
        "NaN": honest.replace('"epsilon": 1.0', '"epsilon": NaN').encode(),
        "Infinity": honest.replace('"epsilon": 1.0', '"epsilon": Infinity').encode(),
        "a key twice": honest.replace('"rows": 770', '"rows": 770, "rows": 771').encode(),
        "half a surrogate": honest.replace('"forged"', '"\\ud800"').encode(),
        "two documents": honest.encode() * 2,
    }


@pytest.mark.parametrize("case", nasty(samples.one_block()))
@pytest.mark.parametrize("name", ["release.json", "protocol.json", "evidence.json", "ledger.jsonl"])
def test_json_that_no_writer_writes_is_a_finding(case: str, name: str, tmp_path: Path) -> None:
    forgery = samples.one_block()
    place = forgery.write(tmp_path)
    content = nasty(forgery)[case]
    path = {"evidence.json": place.kept, "ledger.jsonl": place.private}.get(name, place.folder) / name
    path.write_bytes(content if name != "ledger.jsonl" else content + b"\n")
    claim = {"release.json": "manifest", "protocol.json": "protocol", "evidence.json": "evidence"}.get(
        name, "ledger-chain"
    )
    report = audited(place)
    assert claim in failures(report)
    assert name in detail(report, claim)
    assert len(detail(report, claim)) < 1000


def test_a_label_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    place = samples.one_block().write(tmp_path)
    (place.folder / "\x1b[2Jgone\n\u202e").write_text("", encoding="utf-8")
    edit(place.folder / "release.json", lambda manifest: manifest.update(notion="\x1b]0;owned\x07" * 1000))
    text = audited(place).text()
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\u202e" not in text
    assert len(text.splitlines()) == len(audited(place).findings) + 1


def test_a_parquet_file_that_lists_right_and_is_garbage_fails(tmp_path: Path) -> None:
    place = samples.one_block().write(tmp_path)
    path = place.folder / "data.parquet"
    whole = path.read_bytes()
    random = np.random.default_rng(3)
    for content in (b"", b"PAR1", whole[: len(whole) // 2], whole[:-8], b"PAR1" + random.bytes(500) + b"PAR1",
                    whole[:40] + random.bytes(40) + whole[80:]):  # fmt: skip
        path.write_bytes(content)
        relist(place, "data.parquet")
        assert failures(audit_release(place.folder)) & {
            "data-columns",
            "data-rows",
            "data-values",
            "data-order",
        }


def test_a_damaged_parquet_file_that_lists_right_never_ends_in_a_traceback(tmp_path: Path) -> None:
    """Someone who can rewrite the manifest can feed the reader any bytes; it may refuse them, not break."""
    place = samples.one_block().write(tmp_path)
    path = place.folder / "data.parquet"
    whole = path.read_bytes()
    caught = 0
    for position, bit in positions(path, 11):
        flip(path, position, bit)
        relist(place, "data.parquet")
        caught += not audit_release(place.folder).passed
        path.write_bytes(whole)
    assert caught > FLIPS // 2


def test_a_parquet_file_may_carry_no_metadata_of_its_own(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    place = samples.one_block().write(tmp_path)
    path = place.folder / "data.parquet"
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({"counts": "430,340"}), path)
    relist(place, "data.parquet")
    report = audit_release(place.folder)
    assert failures(report) == {"data-columns"}
    assert "counts" in detail(report, "data-columns")
    write_parquet(path, pa.table({"education": table["education"].dictionary_encode()}))
    relist(place, "data.parquet")
    assert audit_release(place.folder).passed


def test_a_parquet_column_may_hold_nothing_but_plain_values(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    place = samples.one_block().write(tmp_path)
    path = place.folder / "data.parquet"
    for column in (pa.array([["10th"]] * 770), pa.array([b"10th"] * 770), pa.array([{"a": "10th"}] * 770)):
        pq.write_table(pa.table({"education": column}), path)
        relist(place, "data.parquet")
        assert failures(audit_release(place.folder)) == {"data-columns"}


CSV: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "more after an open quote": ("data-rows", lambda whole: whole + b'"hidden\nnotes\n'),
    "a quote in a quoted text": ("data-rows", lambda whole: whole.replace(b"10th", b'"1"0th"', 1)),
    "a field too many": ("data-rows", lambda whole: whole.replace(b"10th", b"10th,s0", 1)),
    "a comment": ("data-rows", lambda whole: whole + b"# made from 430 records\n"),
    "no line end": ("data-rows", lambda whole: whole[:-1] + b"x"),
    "no header": ("data-columns", lambda whole: whole.split(b"\n", 1)[1]),
    "nothing": ("data-columns", lambda whole: b""),
    "not UTF-8": ("data-columns", lambda whole: whole.replace(b"10th", b"10\xff", 1)),
    "a zero byte": ("data-values", lambda whole: whole.replace(b"10th", b"10\x00h", 1)),
}


@pytest.mark.parametrize("case", CSV)
def test_a_csv_file_that_lists_right_and_says_more_fails(case: str, tmp_path: Path) -> None:
    claim, change = CSV[case]
    place = samples.one_block(data="csv").write(tmp_path)
    path = place.folder / "data.csv"
    path.write_bytes(change(path.read_bytes()))
    relist(place, "data.csv")
    assert claim in failures(audit_release(place.folder))
