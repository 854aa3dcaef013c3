"""A few kills and one fault of every kind; and that the oracle would notice what it looks for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import funnel
from funnel import api
from tests.support.postgres import programs
from tests.trials import faults
from tests.trials.faulting import oracle
from tests.trials.faulting.case import Case, Result, Tried, carry_out
from tests.trials.faulting.forked import ROOT
from tests.trials.faulting.oracle import Seen
from tests.trials.faulting.world import POLICY, Outcome, World, found

KILLS = 12
KINDS = 44
REFUSED = json.dumps(
    {"error": {"code": "release-write", "where": "here", "advice": "free space", "message": "x"}}
)


def test_one_of_every_kind() -> None:
    """The command itself, in a process that may have mounts of its own."""
    command = [sys.executable, "-m", "tests.trials", "faults", "--kills", f"{KILLS}", "--each", "1", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    told = json.loads(done.stdout)
    assert [one for one in told["results"] if one["violations"]] == []
    assert done.returncode == 0
    kinds = {one["fault"] for one in told["results"]}
    assert len(kinds) >= KINDS - 3 * (not told["mounts"]) - 2 * (programs() is None)
    assert sum("random moment" in one["fault"] for one in told["results"]) == KILLS
    assert {"published whole", "nothing published"} < {one["outcome"] for one in told["results"]}


# What the oracle notices.


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A world with one release."""
    world = found(tmp_path_factory.mktemp("faults") / "world", POLICY)
    funnel.run(world.folder / "policy.yaml")
    return world


@pytest.fixture
def world(made: World, tmp_path: Path) -> World:
    """A copy of it, to be hurt."""
    shutil.copytree(made.folder, tmp_path / "world", symlinks=True)
    return World(tmp_path / "world")


class Auditing:
    """A bench whose only command is the audit."""

    def run(self, world: World, *command: str) -> Outcome:
        report = api.audit(world.to, world.private)
        return Outcome(0 if report.passed else 1, json.dumps(report.as_dict()))


def release(world: World) -> Path:
    return (world.to / "latest").resolve()


def lost_entry(world: World) -> None:
    (world.private / "ledger.jsonl").write_text("")


def two_links(world: World) -> None:
    (world.to / "latest").unlink()
    (world.to / "latest").symlink_to("20200101T000000Z-000000")


NOTHING = Seen({}, ())
HARM: dict[str, tuple[Callable[[World], object], str]] = {
    "a file of a release is gone": (
        lambda world: (release(world) / "report.html").unlink(),
        "the audit fails",
    ),
    "the evidence is gone": (
        lambda world: shutil.rmtree(world.private / release(world).name),
        "the audit fails",
    ),
    "an entry is gone": (lost_entry, "is not in the ledger once"),
    "a release of a bad name": (lambda world: (world.to / "2026").mkdir(), "is not in the ledger once"),
    "a link to nothing": (two_links, "latest is not the newest release"),
    "a staged folder": (lambda world: (world.to / ".staging-x").mkdir(), "left lying: releases/.staging-x"),
    "private rubbish": (lambda world: (world.private / ".x.new").touch(), "left lying: private/.x.new"),
    "a spilt folder": (lambda world: (world.temporary / "funnel-x").mkdir(), "left lying: tmp/funnel-x"),
    "a protocol": (
        lambda world: (world.private / "protocols" / "x").touch(),
        "left lying: private/protocols/x",
    ),
}


@pytest.mark.parametrize("harm", HARM)
def test_a_world_that_is_not_as_it_should_be_is_noticed(harm: str, world: World) -> None:
    do, told = HARM[harm]
    do(world)
    wrong = oracle.settled(Auditing(), world, NOTHING, Outcome(0))  # type: ignore[arg-type]
    assert any(told in one for one in wrong), wrong


def test_a_world_that_is_as_it_should_be_is_fine(world: World) -> None:
    assert oracle.settled(Auditing(), world, NOTHING, Outcome(0)) == []  # type: ignore[arg-type]


def test_what_was_there_before_has_to_be_there_after(world: World) -> None:
    before = Seen.of(world)
    assert oracle.after(world, before, [Outcome(1, REFUSED)]) == []
    assert oracle.after(world, before, [Outcome(0)]) != [], "nothing new, and the run ended well"
    (release(world) / "release.json").write_text("{}")
    assert oracle.after(world, before, [Outcome(1, REFUSED)]) == [
        f"{release(world).name} was changed or removed"
    ]
    assert oracle.after(world, NOTHING, [Outcome(1, REFUSED)]) != [], "refused, and yet published"


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(3, json.dumps({"error": {"code": "internal", "where": "a", "advice": "b"}})),
        Outcome(1, REFUSED.replace('"here"', '""')),
        Outcome(1, REFUSED.replace("free space", "")),
        Outcome(1, REFUSED.replace("release-write", "no-such-code")),
        Outcome(1, REFUSED, "Traceback (most recent call last)"),
        Outcome(1, ""),
    ],
)
def test_a_refusal_that_helps_nobody_is_noticed(outcome: Outcome) -> None:
    assert oracle.refusal(outcome)
    assert (
        oracle.refusal(Outcome(1, REFUSED)) == oracle.refusal(Outcome(-9)) == oracle.refusal(Outcome(0)) == []
    )


def test_a_trial_that_fails_itself_is_a_finding() -> None:
    class Broken:
        def world(self, base: str) -> Iterator[World]:
            raise OSError("no room")

    result = carry_out(Broken(), Case("kind", "which", "base", lambda *_: Tried([])))  # type: ignore[arg-type]
    assert result.violations == ["the trial failed: OSError: no room"]
    assert "kind       1           1  not judged 1" in faults.table(
        [result, Result("other", "x", "refused: x", [])]
    )
    assert os.environ.get(faults.MOUNTS) is None
