"""A signed release: the public key alone shows every change to what was published."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from securesystemslib import dsse
from securesystemslib.signer import SSlibKey

import funnel
from funnel.audit.audit import AuditReport
from funnel.audit.kernel.check import PUBLISHED
from funnel.audit.publisher import read_public_key
from funnel.errors import DrawError, PolicyError, ReleaseError
from funnel.format import reported, schema
from funnel.format.manifest import FileEntry, Manifest
from funnel.format.reported import Published
from funnel.plan.rebuild import rebuild
from funnel.report.catalogue import catalogue
from tests.support.forging import attest, lines_of, rechain
from tests.support.people import MONDAY, SMALL, people
from tests.support.policies import write_policy

SIGNED = SMALL | {"release__sign": "file:sign.key"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `releases` of two signed releases and one that is not, `private`, and two key pairs."""
    folder = tmp_path_factory.mktemp("signed")
    people(folder, MONDAY)
    for name in ("sign", "other"):
        funnel.write_signing_key(folder / f"{name}.key")
        (folder / f"{name}.pub").write_text(funnel.public_key(str(folder / f"{name}.key")) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FUNNEL_KEY", funnel.new_key())
        for name, changes in (("first", SIGNED), ("second", SIGNED), ("plain", SMALL)):
            release = Path(funnel.run(write_policy(folder, **changes)).release or "")
            (folder / name).symlink_to(release)
    return folder


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Path:
    """The first release, to be damaged."""
    shutil.copytree((made / "first").resolve(), tmp_path / "copy")
    return tmp_path / "copy"


def of(report: AuditReport, claim: str) -> tuple[str, str]:
    return next((one.status, one.detail) for one in report.findings if one.claim == claim)


def failing(folder: Path, key: Path) -> set[str]:
    return {one.claim for one in funnel.audit_release(folder, public_key=key).of("failed")}


def test_the_public_key_is_all_it_takes(made: Path) -> None:
    line = (made / "sign.pub").read_text()
    for given in (line, made / "sign.pub"):
        report = funnel.audit_release(made / "first", public_key=given)
        assert report.passed
        status, detail = of(report, "signature")
        assert status == "passed"
        assert json.loads((made / "first" / "release.json").read_text())["signed"]["public_key"] in detail
        assert "only that shows the counts, the leakage and the draws" in report.text()
    whole = funnel.audit_history(made / "releases", made / "private", public_key=made / "sign.pub")
    assert [one.passed for one in whole.releases].count(False) == 1, "one of them is not signed"


def test_without_the_public_key_a_signature_is_not_believed(made: Path) -> None:
    report = funnel.audit_release(made / "first", made / "private")
    assert report.passed
    status, detail = of(report, "signature")
    assert status == "not checked"
    assert detail.startswith("signed by ") and "not checked" in detail
    assert of(funnel.audit_release(made / "plain"), "signature")[1].startswith("not claimed: ")


def test_every_change_to_any_published_file_fails(made: Path, copy: Path) -> None:
    """One byte of each file changed, each file gone, one more file."""
    key = made / "sign.pub"
    assert not failing(copy, key)
    for path in sorted(copy.iterdir()):
        whole = path.read_bytes()
        for place in (0, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            assert failing(copy, key), (path.name, place)
        path.write_bytes(whole + b"\n")
        assert failing(copy, key), path.name
        path.unlink()
        assert failing(copy, key), path.name
        path.write_bytes(whole)
    (copy / "notes.txt").write_text("and one more thing")
    assert failing(copy, key) == {"file-list"}


def test_a_consistent_rewrite_fails_for_want_of_the_private_key(made: Path, copy: Path) -> None:
    """Every hash made right again, so that nothing but the signature can tell."""
    path = copy / "release.json"
    forged = replace(schema.read(Manifest, path.name, path.read_bytes()), description="something else")
    path.write_bytes(schema.write(forged))
    files = dict(forged.files)
    for written in rebuild(copy, None, made / "rewritten"):
        raw = written.read_bytes()
        (copy / written.name).write_bytes(raw)
        files[written.name] = FileEntry(hashlib.sha256(raw).hexdigest(), len(raw))
    for name, raw in catalogue(reported.read(Published, copy), files).items():
        (copy / name).write_bytes(raw)
        files[name] = FileEntry(hashlib.sha256(raw).hexdigest(), len(raw))
    path.write_bytes(schema.write(replace(forged, files=files)))
    assert failing(copy, made / "sign.pub") == {"signature"}
    attest(copy)
    assert funnel.audit_release(copy).passed
    assert failing(copy, made / "sign.pub") == {"signature"}


def test_another_key_another_release_and_no_signature_fail(made: Path, copy: Path) -> None:
    assert failing(copy, made / "other.pub") == {"signature"}
    assert failing(made / "plain", made / "sign.pub") == {"signature"}
    shutil.copy(made / "second" / "attestation.json", copy / "attestation.json")
    assert failing(copy, made / "sign.pub") == {"signature"}
    path = copy / "release.json"
    manifest = schema.read(Manifest, path.name, path.read_bytes())
    path.write_bytes(schema.write(replace(manifest, signed=None)))
    (copy / "attestation.json").unlink()
    assert failing(copy, made / "sign.pub") >= {"signature"}


def test_a_signature_by_another_key_under_the_first_ones_name_fails(made: Path, copy: Path) -> None:
    from funnel.release.sign import load_signing_key

    attest(copy, signer=load_signing_key("file:other.key", made))
    assert failing(copy, made / "sign.pub") == {"signature"}


@pytest.mark.parametrize("ending", ["", "\n\n", " \n", "\r\n"])
def test_a_signature_is_written_in_one_way_only(ending: str, made: Path, copy: Path) -> None:
    signature = copy / "attestation.json"
    signature.write_bytes(signature.read_bytes().rstrip(b"\n") + ending.encode())
    assert failing(copy, made / "sign.pub") == {"signature"}
    assert not funnel.audit_release(copy).passed


def test_what_is_no_public_key_is_refused_and_never_repeated(made: Path, tmp_path: Path) -> None:
    private = (made / "sign.key").read_text().strip()
    public = (made / "sign.pub").read_text().strip()
    (tmp_path / "empty").write_text("")
    (tmp_path / "short").write_text(public[:-2])
    for given in (
        private,
        made / "sign.key",
        public[:-1],
        tmp_path / "empty",
        tmp_path / "short",
        "nowhere",
        "\0",
    ):
        with pytest.raises(ReleaseError) as caught:
            funnel.audit_release(made / "first", public_key=given)
        assert caught.value.code == "key-unreadable"
        assert private[20:40] not in str(caught.value.as_dict())


def test_the_private_key_is_nowhere_but_in_its_file(made: Path) -> None:
    body = (made / "sign.key").read_bytes().strip().partition(b":")[2]
    for path in (*(made / "releases").rglob("*"), *(made / "private").rglob("*")):
        if path.is_file():
            assert body[:12] not in path.read_bytes(), path


def test_the_report_names_the_key_and_how_to_check(made: Path) -> None:
    print_ = json.loads((made / "first" / "release.json").read_text())["signed"]["public_key"]
    page = (made / "first" / "report.html").read_text()
    assert print_ in page and "funnel verify" in page
    assert "funnel verify" not in (made / "plain" / "report.html").read_text()


def test_a_run_without_its_signing_key_publishes_nothing(
    tmp_path: Path, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    people(tmp_path, MONDAY)
    monkeypatch.setenv("FUNNEL_KEY", key)
    path = write_policy(tmp_path, **SIGNED)
    with pytest.raises(DrawError) as caught:
        funnel.run(path)
    assert caught.value.code == "key-missing"
    (tmp_path / "sign.key").write_text(key)
    (tmp_path / "sign.key").chmod(0o600)
    with pytest.raises(DrawError, match="not a key") as caught:
        funnel.run(path)
    assert "funnel-signing-1:" in (caught.value.advice or "")
    assert not (tmp_path / "releases").exists()


def test_the_signing_key_may_not_lie_in_the_published_folder(tmp_path: Path) -> None:
    people(tmp_path, MONDAY)
    with pytest.raises(PolicyError, match=r"release.sign.*published folder"):
        funnel.load(write_policy(tmp_path, **SMALL | {"release__sign": "file:releases/sign.key"}))


def test_a_key_pasted_into_the_policy_is_not_repeated(tmp_path: Path) -> None:
    people(tmp_path, MONDAY)
    pasted = funnel.new_signing_key()
    with pytest.raises(PolicyError) as caught:
        funnel.load(write_policy(tmp_path, **SMALL | {"release__sign": pasted}))
    assert pasted[20:40] not in str(caught.value.as_dict())


def test_the_commands(command, made: Path, tmp_path: Path) -> None:
    new = command("key", "new", "--signing", "--to", tmp_path / "k")
    assert (new.code, new.err) == (0, "")
    assert (tmp_path / "k").read_text().strip() not in new.out
    body = (tmp_path / "k").read_text().strip().partition(":")[2]
    (tmp_path / "cut").write_text((tmp_path / "k").read_text().strip()[:-2])
    (tmp_path / "cut").chmod(0o600)
    broken = command("key", "public", tmp_path / "cut", "--traceback")
    assert broken.code == 1
    assert "Traceback" in broken.err and body[:10] not in broken.err
    shown = command("key", "public", tmp_path / "k")
    assert shown.out.startswith("funnel-public-1:") and len(shown.out.splitlines()) == 1
    assert command("audit", made / "first", "--public-key", made / "sign.pub").code == 0
    wrong = command("audit", made / "first", "--public-key", shown.out.strip(), "--json")
    assert wrong.code == 1
    assert [one["claim"] for one in wrong.json["findings"] if one["status"] == "failed"] == ["signature"]


# What a reader sees who has the key alone.


def test_verify_needs_no_private_file_and_tells_what_it_did_not_look_at(made: Path, copy: Path) -> None:
    for given in (made / "first", copy):
        found = funnel.verify(given, made / "sign.pub")
        assert found.passed
        assert {one.claim for one in found.findings if one.status == "passed"} == {*PUBLISHED, "signature"}
        assert "not that its promise is kept" in found.text()
    (copy / "data.csv").write_text("x\n")
    assert not funnel.verify(copy, made / "sign.pub").passed


def test_every_changed_byte_is_noticed_by_verify(made: Path, copy: Path) -> None:
    for path in sorted(copy.iterdir()):
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        found = funnel.verify(copy, made / "sign.pub")
        assert not found.passed and "FAIL" in found.verdict, path.name
        path.write_bytes(whole)


def test_the_statement_names_every_file_the_promise_its_limits_and_the_ledger(made: Path) -> None:
    release = (made / "first").resolve()
    told = json.loads(base64.b64decode(json.loads((release / "attestation.json").read_bytes())["payload"]))
    assert told["_type"] == "https://in-toto.io/Statement/v1"
    assert {one["name"]: one["digest"]["sha256"] for one in told["subject"]} == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in release.iterdir()
        if path.name != "attestation.json"
    }
    said, stated = told["predicate"], json.loads((release / "release.json").read_bytes())
    assert [said[key] for key in ("release", "policy", "notion", "epsilon")] == [
        stated[key] for key in ("release", "name", "notion", "epsilon")
    ]
    catalogue = json.loads((release / "datapackage.json").read_bytes())["privacy"]
    assert said["promise"].startswith(catalogue["promise"])
    assert [one.partition(": ")[0] for one in catalogue["not_promised"]] == said["not_promised"]
    lines = (made / "private" / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    assert said["ledger_sha256"] in {hashlib.sha256(line).hexdigest() for line in lines}


def test_another_reader_verifies_the_envelope_of_a_release(made: Path) -> None:
    raw = json.loads((made / "first" / "attestation.json").read_bytes())
    public = read_public_key(str(made / "sign.pub"))
    key = SSlibKey(raw["signatures"][0]["keyid"], "ed25519", "ed25519", {"public": public.hex()})
    found = dsse.Envelope.from_dict(raw)
    assert found.payload_type == "application/vnd.in-toto+json"
    assert found.verify([key], 1) == {key.keyid: key}


def test_a_ledger_that_was_written_anew_is_noticed(made: Path, tmp_path: Path) -> None:
    """The chain is whole and says the same; but its lines are not those that were signed."""
    private = tmp_path / "private"
    shutil.copytree(made / "private", private)
    lines = lines_of(private)
    rechain(private, [line | {"blind": "0" * 32} for line in lines])
    found = funnel.audit_release(made / "first", private)
    assert [one.claim for one in found.of("failed")] == ["signature"]
    assert "line of the ledger" in of(found, "signature")[1]


def test_no_two_lines_of_a_ledger_are_blinded_alike(made: Path) -> None:
    lines = lines_of(made / "private")
    assert len({line["blind"] for line in lines}) == len(lines)
    published = b"".join(path.read_bytes() for path in (made / "releases").rglob("*") if path.is_file())
    assert not [line for line in lines if line["blind"].encode() in published]


def test_the_command_tells_by_its_exit_code(command, made: Path, copy: Path) -> None:
    whole = command("verify", made / "first", "--key", made / "sign.pub")
    assert (whole.code, whole.err) == (0, "")
    assert whole.out.splitlines()[-2] == "whole, and signed with this key; not checked: newest"
    wrong = command("verify", copy, "--key", made / "other.pub", "--json")
    assert (wrong.code, wrong.json["passed"]) == (1, False)
    assert [one["claim"] for one in wrong.json["findings"] if one["status"] == "failed"] == ["signature"]
    assert command("verify", copy).code == 2
    unusable = command("verify", copy, "--key", made / "sign.key", "--json")
    assert (unusable.code, unusable.json["error"]["code"]) == (1, "key-unreadable")
    assert command("verify", made, "--key", made / "sign.pub").code == 1


def test_the_kernel_in_one_file_verifies_what_funnel_does(command, made: Path, copy: Path, tmp_path: Path) -> None:
    """With numpy and cryptography alone, and a line of what misses where cryptography does."""
    file, site = tmp_path / "kernel.pyz", str(Path(np.__file__).parents[1])
    assert "cryptography to verify a signature" in command("audit", "--standalone", file).out

    def told(*arguments: object, before: str = "") -> subprocess.CompletedProcess[str]:
        run = f"runpy.run_path({str(file)!r}, run_name='__main__')"
        start = f"import sys, runpy; sys.path.append({site!r}); {before}{run}"
        call = [sys.executable, "-I", "-S", "-c", start, *map(str, arguments)]
        return subprocess.run(call, capture_output=True, text=True, timeout=60, check=False)

    key = ("--key", made / "sign.pub")
    whole = told("verify", made / "second", *key)
    assert (whole.returncode, whole.stderr) == (0, "")
    assert whole.stdout == funnel.verify(made / "second", made / "sign.pub").text() + "\n"
    wrong = told("verify", copy, "--key", made / "other.pub")
    assert wrong.returncode == 1 and "1 claim FAILS: signature" in wrong.stdout
    stays = tmp_path / "stays"
    stays.mkdir()
    shutil.copy(copy / "release.json", stays)
    for unusable, words in (
        (told("verify", copy, *key, before="sys.modules['cryptography'] = None; "), "pip install cryptography"),
        (told("verify", copy, "--key", "nowhere.pub"), "nowhere.pub: the public key cannot be read"),
        (told("verify", copy, "--key", made / "sign.key"), "this is a private key"),
        (told("verify", tmp_path / "nowhere", *key), "there is no such folder"),
        (told("verify", stays, *key), "only what stays of one whose data were taken away"),
    ):
        assert unusable.returncode == 1 and not unusable.stdout
        assert words in unusable.stderr and "Traceback" not in unusable.stderr
    assert told("verify", copy).returncode == 2
    assert "verify RELEASE --key publisher.pub" in told().stderr
