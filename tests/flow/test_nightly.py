"""examples/nightly: the git check stops what it should, the night's script logs, the units are well formed."""

from __future__ import annotations

import configparser
import json
import operator
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import MagicMock

import pytest
import yaml

import funnel
from funnel.errors import AGAIN
from tests.support.people import MONDAY, SMALL, people
from tests.support.policies import write_policy

NIGHTLY = Path(funnel.__file__).parent.parent / "examples" / "nightly"


@pytest.fixture
def shell(tmp_path, key):
    """Run a command in the folder of a policy, with `funnel` as the scripts call it."""
    program = tmp_path / "bin" / "funnel"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m funnel "$@"\n')
    program.chmod(0o755)
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "FUNNEL": str(program), "FUNNEL_KEY": key,
        "PYTHONPATH": str(NIGHTLY.parent.parent), "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
    }  # fmt: skip
    (tmp_path / "work").mkdir()

    def run(*command: object, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*map(str, command)], cwd=tmp_path / "work", env=environment | env, capture_output=True, text=True,
            timeout=300, check=False,
        )  # fmt: skip

    return run


@pytest.mark.long
def test_the_git_check_stops_what_weakens_a_policy(shell, tmp_path):
    """A laxer policy is stopped, a stricter one passes, what cannot be compared needs a word; other YAML is let be."""
    work = tmp_path / "work"
    shell("git", "init", "-q")
    shell("git", "config", "user.email", "a@b.c")
    shell("git", "config", "user.name", "a")
    write_policy(work, **SMALL)
    (work / "other thing.yaml").write_text("a: 1\n")
    shell("git", "add", ".")
    assert shell(NIGHTLY / "pre-commit").returncode == 0
    shell("git", "commit", "-qm", "first")
    (work / "other thing.yaml").write_text("a: 2\n")

    outcomes = []
    for changes, env in (
        ({"privacy": {"notion": "ldp", "epsilon": 0.3}}, {}),
        ({"privacy": {"notion": "ldp", "epsilon": 0.1}}, {}),
        ({"source": SMALL["source"] | {"filter": "id > 1"}}, {}),
        ({"source": SMALL["source"] | {"filter": "id > 1"}}, {"FUNNEL_ALLOW": "1"}),
    ):
        write_policy(work, **(SMALL | changes))
        shell("git", "add", ".")
        done = shell(NIGHTLY / "pre-commit", **env)
        outcomes.append((done.returncode, done.stdout.splitlines()[-1]))
        assert "other thing" not in done.stdout
    verdicts = ["weaker", "stronger", "incomparable", "incomparable"]
    assert outcomes == [(code, f"privacy: {told}") for code, told in zip((1, 0, 1, 0), verdicts, strict=True)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("policy.YAML", lambda text: text),
        ("policy.yaml", lambda text: re.sub(r"(?m)^(\w+):", r'"\1" :', text)),
        ("policy.yml", lambda text: json.dumps(yaml.safe_load(text))),
        ("policy.yaml", lambda text: re.sub("(?m)^", "  ", text)),
        ("policy.yaml", lambda text: re.sub(r"(?m)^(sensitive|privacy):", r"? \1\n:", text)),
        ("münster.yaml", lambda text: text),
        ('a "b"\n\\c.yaml', lambda text: text),
    ],
)
def test_the_git_check_knows_a_policy_in_whatever_style_it_is_written(shell, tmp_path, name, written):
    work = tmp_path / "work"
    for words in (("init", "-q"), ("config", "user.email", "a@b.c"), ("config", "user.name", "a")):
        shell("git", *words)
    # Neither another policy's lock, whose name begins alike, nor what only speaks of such things is a policy.
    (work / "policy.young.lock.yaml").write_text("a: 1\n")
    (work / "openapi.yaml").write_text("properties:\n  sensitive: {}\n  privacy: {}\n")
    (work / ".gitattributes").write_text("* export-ignore\n")
    for epsilon, code in ((0.2, 0), (0.3, 1)):
        policy = write_policy(work, **SMALL | {"privacy": {"notion": "ldp", "epsilon": epsilon}})
        text = written(policy.read_text())
        policy.unlink()
        (work / name).write_text(text)
        shell("git", "add", ".")
        done = shell(NIGHTLY / "pre-commit")
        assert (done.returncode, f"{name}:" in done.stdout) == (code, True), done.stdout + done.stderr
        shell("git", "commit", "-qm", "as it is")


@pytest.mark.long
def test_the_git_check_knows_what_will_be_committed_whatever_its_name(shell, tmp_path, key, monkeypatch):
    """A lock alone, a policy that lies there otherwise, another name with another promise, a base that is none."""
    work = tmp_path / "work"
    for words in (("init", "-q"), ("config", "user.email", "a@b.c"), ("config", "user.name", "a")):
        shell("git", *words)
    people(work, MONDAY)
    monkeypatch.setenv("FUNNEL_KEY", key)
    policy = write_policy(work, **SMALL)
    lock, kept = funnel.make_lock(policy).path, policy.read_text()
    shell("git", "add", policy.name, lock.name)
    assert shell(NIGHTLY / "pre-commit").returncode == 0
    shell("git", "commit", "-qm", "first")
    assert shell(NIGHTLY / "pre-commit", "nowhere").returncode == 2
    lax = SMALL | {"privacy": {"notion": "ldp", "epsilon": 0.1}}
    funnel.make_lock(write_policy(work, **lax), force=True)
    policy.write_text(kept)
    shell("git", "add", lock.name)
    assert (done := shell(NIGHTLY / "pre-commit")).returncode == 1
    assert "privacy.epsilon is" in done.stdout
    shell("git", "reset", "-q", "--hard")
    write_policy(work, **lax)
    shell("git", "add", policy.name)
    policy.write_text(kept)
    assert (done := shell(NIGHTLY / "pre-commit")).returncode == 1
    assert "privacy.epsilon is" in done.stdout
    shell("git", "reset", "-q", "--hard")
    shell("git", "mv", policy.name, "other.yaml")
    shell("git", "rm", "-q", lock.name)
    assert (done := shell(NIGHTLY / "pre-commit")).returncode == 1
    assert f"{policy.name}:\nis gone" in done.stdout
    assert shell(NIGHTLY / "pre-commit", FUNNEL_ALLOW="1").returncode == 0


@pytest.mark.parametrize("name", ["g.csv", "Our grüppen.TXT", 'the "groups" '])
def test_the_git_check_reads_the_groups_that_a_policy_names(shell, tmp_path, name):
    """A file of them is part of the policy: other groups are another release, and a comment beside them is none."""
    work = tmp_path / "work"
    for words in (("init", "-q"), ("config", "user.email", "a@b.c"), ("config", "user.name", "a")):
        shell("git", *words)
    (work / name).write_text("value,group\na,one\nb,one\nc,two\n")
    public = [{"name": SMALL["public"][0], "groups": name}]
    policy = write_policy(work, **SMALL | {"public": public})
    shell("git", "add", ".")
    assert shell(NIGHTLY / "pre-commit").returncode == 0
    shell("git", "commit", "-qm", "first")
    policy.write_text(f"# a comment\n{policy.read_text()}")
    shell("git", "add", ".")
    assert (done := shell(NIGHTLY / "pre-commit")).returncode == 0, done.stdout + done.stderr
    (work / name).write_text("value,group\na,one\nb,two\nc,two\n")
    shell("git", "add", name)
    assert (done := shell(NIGHTLY / "pre-commit")).returncode == 1
    assert done.stdout.splitlines()[-1] == "privacy: incomparable"


@pytest.mark.long
def test_a_night_is_one_line_in_the_log(shell, tmp_path, key):
    """Published with its drift, or refused with its reason: either way the exit code of funnel and a line of JSON."""
    work, log = tmp_path / "work", tmp_path / "log.jsonl"
    people(work, MONDAY)
    policy = write_policy(work, **SMALL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FUNNEL_KEY", key)
        funnel.make_lock(policy)
    assert shell(NIGHTLY / "nightly", policy, log).returncode == 0
    people(work, [[200, 40, 3], [3, 50, 145]])
    assert shell(NIGHTLY / "nightly", policy, log).returncode == 4
    first, second = (json.loads(line) for line in log.read_text().splitlines())
    assert first["locked"]["distance"] == 0
    assert second["error"]["code"] == "lock-leaks"
    write_policy(work, **(SMALL | {"budget": 1.0}))
    refused = shell(NIGHTLY / "nightly", policy, log)
    assert refused.returncode == 1
    assert "budget is 1.0" in refused.stderr
    assert len(log.read_text().splitlines()) == 2


def test_the_units_are_well_formed(tmp_path):
    """By the reading of systemd itself where it is there; its paths are those of the script's example."""
    units = {}
    for name in ("funnel@.service", "funnel@.timer"):
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        parser.optionxform = str
        parser.read(NIGHTLY / name)
        units[name] = parser
        shutil.copy(NIGHTLY / name, tmp_path)
    service = units["funnel@.service"]["Service"]
    assert service["ExecStart"].split()[0].endswith("/examples/nightly/nightly")
    assert units["funnel@.timer"]["Timer"]["OnCalendar"]
    assert service["RestartForceExitStatus"].split() == [str(AGAIN)]
    assert "Restart" not in service, "nothing else is tried again"
    page = (NIGHTLY / "README.md").read_text()
    (program,) = re.findall(r"FUNNEL=(\S+)", service["Environment"])
    for needed in (program, f"--home-dir {service['WorkingDirectory']}", *service["ReadWritePaths"].split()):
        assert needed in page, "whoever follows the page has what the unit asks for"
    assert f"key new --to {service['LoadCredential'].split(':')[1]}" in page
    assert int(units["funnel@.service"]["Unit"]["StartLimitBurst"]) > 1
    analyse = shutil.which("systemd-analyze")
    if analyse:
        unit = tmp_path / "funnel@.service"
        unit.write_text(unit.read_text().replace(service["ExecStart"].split()[0], str(NIGHTLY / "nightly")))
        done = subprocess.run(
            [analyse, "verify", "--recursive-errors=no", str(tmp_path / "funnel@census.service")],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert [line for line in done.stderr.splitlines() if "funnel@" in line] == []


def test_airflow_tries_again_what_may_be_tried_again_and_nothing_else(tmp_path, monkeypatch):
    """The file over stand-ins for Airflow, with a `funnel` that ends as it is told to."""

    class Again(Exception):  # noqa: N818
        pass

    class Final(Again):
        pass

    stand_in = MagicMock()
    stand_in.exceptions.AirflowException, stand_in.exceptions.AirflowFailException = Again, Final
    stand_in.hooks.base.BaseHook.get_connection.return_value.password = "the key"
    for name in ("", ".exceptions", ".hooks", ".hooks.base", ".operators", ".operators.python"):
        part = operator.attrgetter(name[1:])(stand_in) if name else stand_in
        monkeypatch.setitem(sys.modules, f"airflow{name}", part)
    dag = runpy.run_path(str(NIGHTLY / "airflow_dag.py"))
    tasks = [call.kwargs for call in stand_in.operators.python.PythonOperator.call_args_list]
    assert [one["op_args"][0].split()[0] for one in tasks] == ["run", "audit"]

    program = tmp_path / "funnel"
    program.write_text('#!/bin/sh\nexit "$ENDS"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    dag["funnel"].__globals__["FOLDER"] = tmp_path
    outcomes = {}
    for code in range(6):
        monkeypatch.setenv("ENDS", str(code))
        try:
            dag["funnel"](tasks[0]["op_args"][0], **tasks[0]["op_kwargs"])
        except Again as error:
            outcomes[code] = type(error)
    assert outcomes == {1: Final, 2: Final, 3: Final, 4: Final, 5: Again}
