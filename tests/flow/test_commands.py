"""Every command as its users meet it: help with an example, exit codes, JSON, quiet in a log."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import funnel
from tests.support.census import CENSUS
from tests.support.policies import finished, write_policy

ROOT = Path(funnel.__file__).parent.parent
COMMANDS = [
    "init",
    "check",
    "plan",
    "run",
    "lock",
    "diff",
    "compare",
    "ledger",
    "audit",
    "report",
    "estimate",
    "key new",
    "key rotate",
    "schema",
]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(command, name):
    done = command(*name.split(), "--help")
    assert done.code == 0
    assert f"funnel {name}" in done.out.split("Example")[1] or "Example: export" in done.out


@pytest.mark.long
def test_init_check_plan_run_audit_report_estimate(cli, command, tmp_path):
    """The way of a new user, from a table to an estimate, with nothing but the commands; the run as a process."""
    assert command("init", CENSUS, "--to", tmp_path / "people.yaml").code == 0
    again = command("init", CENSUS, "--to", tmp_path / "people.yaml")
    assert again.code == 1
    assert "[release-write]" in again.err
    (tmp_path / "people.yaml").write_text(finished((tmp_path / "people.yaml").read_text()))

    checked = command("check", tmp_path / "people.yaml", "--json")
    assert checked.code == 0
    assert checked.json["ok"] is True

    planned = command("plan", tmp_path / "people.yaml", "--json")
    assert planned.code == 0
    assert [step["step"] for step in planned.json["steps"]][-1] == "publish"
    assert planned.json["sizes"]["sensitive"] >= 2

    run = cli("run", tmp_path / "people.yaml")
    assert run.code == 0, run.err
    assert run.err == ""
    assert "leakage" in run.out

    release = next(tmp_path.glob("releases/*/latest"))
    private = next(tmp_path.glob("private/*"))
    assert command("audit", release, "--private", private).code == 0
    assert command("report", release, "--private", private, "--to", tmp_path / "full").code == 0
    assert stat.S_IMODE((tmp_path / "full" / "report.json").stat().st_mode) == 0o600
    estimate = command("estimate", release, "--json")
    assert estimate.code == 0
    assert json.loads(estimate.out)


@pytest.mark.parametrize("place", ["{release}", "{release}/../latest", "{release}/deeper", "{release}/.."])
def test_the_full_report_never_goes_where_readers_are(command, tmp_path, place):
    assert command("run", write_policy(tmp_path, mechanism="randomised-response")).code == 0
    release = (tmp_path / "releases" / "latest").resolve()
    before = {path.name: path.read_bytes() for path in release.iterdir()}
    target = place.format(release=release)
    done = command("report", release, "--private", tmp_path / "private", "--to", target)
    assert done.code == 1
    assert {path.name: path.read_bytes() for path in release.iterdir()} == before


def test_check_reports_every_policy_and_every_error(command, tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text("version: 1\nname: bad\nprivaci: {}\nsensitive: [a]\npublic: [b, b]\n")
    good = write_policy(tmp_path)
    done = command("check", good, bad)
    assert done.code == 1
    assert f"{good}: ok" in done.out
    lines = [line for line in done.err.splitlines() if line.startswith(str(bad))]
    assert len(lines) >= 3
    assert all(line.split(":")[1].isdigit() for line in lines)


def test_check_without_the_table_checks_the_rest(command, tmp_path):
    done = command("check", write_policy(tmp_path, source__table="not-here.parquet"))
    assert done.code == 0
    assert "not checked" in done.out


def test_a_new_key_is_private_and_never_overwritten(command, tmp_path):
    first, second = command("key", "new").out, command("key", "new").out
    assert first != second
    assert first.startswith("funnel-key-1:")
    assert command("key", "new", "--to", tmp_path / "my.key").code == 0
    assert stat.S_IMODE((tmp_path / "my.key").stat().st_mode) == 0o600
    assert command("key", "new", "--to", tmp_path / "my.key").code == 1
    assert command("run", write_policy(tmp_path, draws__key="file:my.key"), env={"FUNNEL_KEY": ""}).code == 0


def test_the_schema_is_json_schema(command):
    schema = command("schema").json
    assert schema["$schema"].startswith("https://json-schema.org/draft/2020-12")
    assert {"source", "sensitive", "public", "privacy", "release"} <= set(schema["properties"])


@pytest.mark.parametrize("memory", ["lots", "0", "-1GB", "5"])
def test_a_size_that_is_none_is_wrong_usage(command, tmp_path, memory):
    assert command("run", write_policy(tmp_path), "--memory", memory).code == 2


def test_progress_shows_on_a_terminal_only(tmp_path, key):
    """On a pseudo-terminal the steps can be seen; the words of the result stay free of control codes."""
    path = write_policy(tmp_path, mechanism="randomised-response")
    master, slave = pty.openpty()
    environment = {**os.environ, "FUNNEL_KEY": key, "PYTHONPATH": str(ROOT), "TERM": "xterm"}
    process = subprocess.Popen([sys.executable, "-m", "funnel", "run", str(path)], env=environment,
                               stdout=subprocess.PIPE, stderr=slave, text=True)  # fmt: skip
    os.close(slave)
    seen = b""
    while True:
        try:
            piece = os.read(master, 4096)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    out, _ = process.communicate(timeout=60)
    os.close(master)
    assert process.returncode == 0
    assert b"draw" in seen or b"solve" in seen
    assert "\x1b" not in out


@pytest.mark.long
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_what_the_output_has_no_letters_for_is_escaped(tmp_path, encoding):
    """A release that is out is not said to have failed because a cron has no Greek, and JSON stays JSON."""
    table = tmp_path / "t.csv"
    table.write_text("id,αβ,x\n" + "".join(f"{i},{'uv'[i % 2]},{'ab'[i // 2 % 2]}\n" for i in range(80)))
    named = {"source": {"table": str(table)}, "sensitive": ["αβ"], "public": ["x"], "draws": {"kind": "fresh"}}
    path = write_policy(tmp_path, mechanism="randomised-response", release__to="αβ", **named)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": encoding}

    def told(*words: object) -> str:
        asked = [sys.executable, "-m", "funnel", *map(str, words)]
        return subprocess.run(asked, env=environment, capture_output=True, check=True).stdout.decode(encoding)

    assert "αβ" in str(json.loads(told("plan", path, "--json")))
    assert "\\u03b1\\u03b2" in told("run", path)
    assert "passed" in told("audit", tmp_path / "αβ" / "latest", "--private", tmp_path / "private")


def test_the_interface_is_there_before_what_few_commands_need():
    """Whoever imports it all does not wait for what few commands need."""
    code = "import sys, funnel.api; print(*{'scipy', 'highspy', 'flint', 'jinja2', 'pyarrow.compute'} & {*sys.modules})"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_commands_that_are_named_can_be_given_to_a_shell(command, tmp_path):
    table, key = tmp_path / "a table.csv", tmp_path / "a key"
    table.write_text("id,town,disease\n" + "".join(f"{i},t{i % 3},{'flu' if i % 5 else 'none'}\n" for i in range(300)))
    made = command("init", table, "--to", tmp_path / "a policy.yaml")
    for said in (made, command("key", "new", "--signing", "--to", key)):
        assert said.code == 0, said.err
        (named,) = re.findall(r"`funnel ([^`]*)`", " ".join((said.out + said.err).split()))
        assert command(*shlex.split(named)).code in (0, 1)
        assert len(shlex.split(named)) == len(named.split("'")[0].split()) + 1


def test_a_table_of_a_database_is_not_said_to_be_missing_by_what_reads_files(command, tmp_path):
    done = command("init", "s3://bucket/people/", "--to", tmp_path / "p.yaml")
    assert (done.code, "files are read here" in done.err) == (2, True)


def test_an_argument_that_means_nothing_is_a_value_error(tmp_path):
    """Not the table's fault, nor anybody's guess: the command line refuses the same as wrong usage."""
    policy = write_policy(tmp_path)
    for call in (
        lambda: funnel.run(policy, memory="abc"),
        lambda: funnel.run(policy, threads=0),
        lambda: funnel.make_lock(policy, room=1.0),
        lambda: funnel.prune(policy, 0),
    ):
        with pytest.raises(ValueError, match=r"memory|threads|room|keep"):
            call()


def test_a_csv_without_a_header_is_noticed_and_can_be_named(command, tmp_path):
    table = tmp_path / "people.csv"
    table.write_text("".join(f"{i},{' ' * (i % 2)}t{i % 3},{'flu' if i % 5 else 'none'}\n" for i in range(300)))
    refused = command("init", table, "--to", tmp_path / "p.yaml")
    assert (refused.code, "--names" in refused.err) == (1, True)
    twice = command("init", table, "--to", tmp_path / "p.yaml", "--names", "id,town,Town")
    assert (twice.code, "two columns cannot have one name" in twice.err) == (1, True)
    done = command("init", table, "--to", tmp_path / "p.yaml", "--names", "id,town,disease", "--trim")
    assert done.code == 0, done.err
    text = (tmp_path / "p.yaml").read_text()
    assert "150 with blanks at an end" in text
    (tmp_path / "p.yaml").write_text(finished(text))
    assert command("check", tmp_path / "p.yaml").code == 0
    policy = funnel.load(tmp_path / "p.yaml")
    assert policy.sensitive == ("disease",)
    assert [(one.name, one.trim) for one in policy.blocks[0].attributes] == [("town", True)]


@pytest.mark.parametrize("signing", [False, True], ids=["draws", "signatures"])
def test_a_key_is_never_shown_wherever_it_was_given_by_mistake(command, tmp_path, signing):
    """A log that has it lets whoever reads it undo the draws."""
    key = (funnel.new_signing_key() if signing else funnel.new_key()).strip()
    (tmp_path / "a.key").write_text(key)
    secret = key.partition(":")[2][:8]
    given = [tmp_path / "a.key", key]
    wrong = (f"draws: {key}", f"draws: {{kind: {key}}}", f"draws: {{{key}: 1}}", f"public: [{key}]")
    for place, text in enumerate(wrong):
        (tmp_path / f"{place}.yaml").write_text(f"version: 1\nname: a\n{text}\n")
        given.append(tmp_path / f"{place}.yaml")
    for one in given:
        for words in (["check", one], ["check", one, "--json"], ["run", one, "--log", "json"], ["diff", one, one]):
            done = command(*words)
            assert done.code != 0 and secret not in done.out + done.err
    rotate = ["key", "rotate", tmp_path / "0.yaml", key]
    for words in ([key], rotate, ["check", f"--{key}"], ["run", "--traceback", key]):
        done = command(*words)
        assert done.code == 2 and secret not in done.out + done.err
