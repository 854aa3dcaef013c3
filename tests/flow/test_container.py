"""examples/container: what the image is made of is there, and the commands of its page do what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import funnel
from tests.support.people import MONDAY, SMALL, people
from tests.support.policies import write_policy

ROOT = Path(funnel.__file__).parent.parent
CONTAINER = ROOT / "examples" / "container"


def test_the_image_copies_what_is_there_and_runs_as_nobody_of_note():
    lines = (CONTAINER / "Dockerfile").read_text().splitlines()
    copied = [line.split()[1:-1] for line in lines if line.startswith("COPY") and "--from" not in line]
    assert copied
    assert all((ROOT / name).exists() for names in copied for name in names)
    last = lines[max(place for place, line in enumerate(lines) if line.startswith("FROM")) :]
    assert "USER 10001" in last
    assert not any(line.startswith("RUN") for line in last[last.index("USER 10001") :])
    assert any("exec funnel check --source policies/*.yaml" in line for line in last)


def test_a_table_that_is_gone_is_unhealthy_and_no_fault_of_a_policy_under_review(command, tmp_path):
    cases = ("gone.parquet", 1, "missing"), ("postgresql://nobody@127.0.0.1:1/x#t", 5, "unreachable")
    for table, code, error in cases:
        policy = write_policy(tmp_path, source__table=table)
        assert command("check", policy).code == 0
        told = command("check", "--source", policy)
        assert (told.code, f"[source-{error}]" in told.err) == (code, True)
        assert told.err.startswith(f"{policy}: "), "of fifty policies, which"


def test_a_night_an_upgrade_and_an_old_release_taken_away(command, tmp_path, key, monkeypatch):
    """The page's own commands, in the folders that it mounts."""
    monkeypatch.setenv("FUNNEL_KEY", key)
    page = (CONTAINER / "README.md").read_text()
    (night,) = re.findall(r"^  funnel (run .*) >> ", page, re.M)
    upgrade = re.findall(r"^funnel ((?:lock|run) [^#\n]*?) *(?:#.*)?$", page, re.M)
    assert len(upgrade) == 2
    for name in ("tables", "policies", "metrics"):
        (tmp_path / name).mkdir()
    people(tmp_path / "tables", MONDAY)
    own = {"source__table": "../tables/people.parquet", "release": {"to": "../releases/c", "private": "../private/c"}}
    policy = write_policy(tmp_path / "policies", **(SMALL | own)).rename(tmp_path / "policies" / "census.yaml")
    funnel.make_lock(policy)
    for asked in [*upgrade, night, night]:
        words = shlex.split(asked)
        if words[-1] == "policies/*.yaml":
            words[-1:] = sorted(f"policies/{one.name}" for one in policy.parent.glob("*.yaml"))
        done = command(*words, cwd=tmp_path)
        assert done.code == 0, (asked, done)
    assert 'funnel_run_code{policy="policies/census.yaml"} 0' in (tmp_path / "metrics/funnel.prom").read_text()

    releases, private = tmp_path / "releases" / "c", tmp_path / "private" / "c"
    oldest = min(one.name for one in releases.iterdir() if one.name != "latest")
    (releases / oldest).rename(tmp_path / "away")
    assert command("audit", releases, "--private", private).code == 1
    (private / oldest / "published").unlink()
    audited = command("audit", releases, "--private", private)
    assert audited.code == 0, audited
    assert f"taken away, or never visible: {oldest}" in audited.out
    assert command(*shlex.split(night.replace("policies/*.yaml", "policies/census.yaml")), cwd=tmp_path).code == 0
