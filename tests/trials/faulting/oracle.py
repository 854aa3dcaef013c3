"""What must be so after a fault, whatever it was; found out with code of its own, and with the auditor."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from funnel.errors import CATALOGUE, EXITS, FAULT
from tests.trials.faulting.world import Bench, Outcome, World

ID = r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}"
KEPT = {".lock", "ledger.jsonl", "ledger.head", "people.key", "protocols", "locks", "estimates"}
COMPARED = {"people.json", "counts.json", "evidence.json"}
"""What is kept of a release that was entered and that nobody saw."""
"""All that may lie in a private folder beside the evidence of releases."""


@dataclass(frozen=True)
class Seen:
    """What a world shows: releases by name with a digest of all their bytes, and the ledger's lines."""

    visible: dict[str, str]
    ledger: tuple[bytes, ...]

    @classmethod
    def of(cls, world: World) -> Seen:
        """Look at a world."""
        return cls(
            {path.name: _digest(path) for path in _releases(world.to)},
            _lines(world.private / "ledger.jsonl"),
        )


def after(world: World, before: Seen, outcomes: Sequence[Outcome]) -> list[str]:
    """What is wrong right after runs that something happened to."""
    now = Seen.of(world)
    new = sorted(set(now.visible) - set(before.visible))
    done = sum(one.code == 0 or one.shown for one in outcomes)
    dead = sum(one.code is not None and one.code < 0 for one in outcomes)
    wrong = [
        f"{name} was changed or removed"
        for name, digest in before.visible.items()
        if now.visible.get(name) != digest
    ]
    if not done <= len(new) <= done + dead:
        wrong.append(f"{len(new)} new releases after {done} runs that ended well and {dead} that were killed")
    wrong += [problem for one in outcomes for problem in refusal(one)]
    if done or dead:
        wrong += counted(world, now)
    return wrong + latest(world, now)


def refusal(outcome: Outcome) -> list[str]:
    """What is wrong with what a run said as it refused; nothing of one that ended well or was killed."""
    if outcome.code == 0 or outcome.code is None or outcome.code < 0:
        return []
    told = outcome.error
    wrong = [f"exit code {outcome.code}"] * (outcome.code != EXITS.get((told or {}).get("code"), FAULT))
    if not told or told["code"] not in CATALOGUE or told["code"] == "internal":
        wrong.append("no error with a code")
    elif not told["where"] or not told["advice"]:
        wrong.append(f"an error without place or advice: {told}")
    if "Traceback" in outcome.err:
        wrong.append("a traceback")
    return [f"{one}: {outcome.err.strip()[-300:]}" for one in wrong]


def counted(world: World, now: Seen) -> list[str]:
    """Whether the ledger is a chain in which every visible release stands once, and every estimate was charged."""
    wrong, previous, entries = [], "0" * 64, []
    for number, line in enumerate(now.ledger, start=1):
        told = json.loads(line)
        if told["previous"] != previous or told["sequence"] != number:
            wrong.append(f"line {number} of the ledger does not follow")
        previous = hashlib.sha256(line + b"\n").hexdigest()
        entries.append(told["entry"])
    known = released(now)
    wrong += [f"{name} is not in the ledger once" for name in now.visible if known.count(name) != 1]
    if known != sorted(known, key=lambda name: name[:16]):
        wrong.append("the ledger is not in the order of the names")
    charged = {entry["name"] for entry in entries if entry["kind"] == "estimate"}
    kept = {path.stem for path in world.private.glob("estimates/[!.]*")}
    wrong += [f"{name} was drawn and not charged" for name in sorted(kept - charged)]
    estimated = {name: one for name in now.visible if (one := _estimate(world.private / name))}
    return wrong + [f"{name} was not charged" for name, one in estimated.items() if one not in charged]


def released(now: Seen) -> list[str]:
    """The releases that the ledger tells of."""
    entries = (json.loads(line)["entry"] for line in now.ledger)
    return [entry["release"] for entry in entries if entry["kind"] == "release"]


def _estimate(evidence: Path) -> str | None:
    """The estimate that a release whose evidence can be read was made from; None where its counts have no noise."""
    try:
        told = json.loads((evidence / "counts.json").read_bytes())["private"]
        return None if told is None else str(told["name"])
    except (OSError, ValueError, KeyError):
        return None


def latest(world: World, now: Seen) -> list[str]:
    """Whether `latest` is a link to something that a reader sees."""
    link = world.to / "latest"
    if link.is_symlink() and link.readlink().name not in now.visible:
        return [f"latest points at {link.readlink()}, which nobody can see"]
    return []


def settled(bench: Bench, world: World, before: Seen, outcome: Outcome, *, audited: bool = True) -> list[str]:
    """What is wrong after a run to which nothing happened, the fault being over and its advice followed.

    That run has audited its own release; with `audited`, all releases and the ledger are audited again.
    """
    if outcome.code != 0:
        return [f"the next run failed: {outcome.code} {outcome.err.strip()[-400:]}"]
    now = Seen.of(world)
    wrong = [f"{name} was changed" for name, one in before.visible.items() if now.visible.get(name) != one]
    wrong += counted(world, now)
    wrong += [f"{name} is not as its manifest says" for name in now.visible if not _whole(world.to / name)]
    if now.ledger[: len(before.ledger)] != before.ledger or len(now.ledger) <= len(before.ledger):
        wrong.append("the ledger lost entries")
    if (world.to / "latest").resolve().name != _newest(now):
        wrong.append("latest is not the newest release")
    if audited:
        audit = bench.run(world, "audit", "releases", "--private", "private", "--json")
        wrong += [f"the audit fails: {_failed(audit)}"] * (audit.code != 0)
    return wrong + tidy(world, now)


def _newest(now: Seen) -> str:
    return (released(now) or ["no entry"])[-1]


def _whole(release: Path) -> bool:
    """Every file that the manifest lists is there, as it was written, and the manifest too."""
    try:
        listed = json.loads((release / "release.json").read_bytes())["files"]
        same = [
            hashlib.sha256((release / name).read_bytes()).hexdigest() == one["sha256"]
            for name, one in listed.items()
        ]
        return bool(same) and all(same)
    except (OSError, ValueError, KeyError):
        return False


def tidy(world: World, now: Seen) -> list[str]:
    """Whatever lies about that no run will need again."""
    known = set(released(now))
    names = {path.name for path in world.private.iterdir()} - KEPT - set(now.visible)
    left = [world.private / name for name in sorted(names - known)]
    unseen = (path for name in sorted(names & known) for path in (world.private / name).iterdir())
    left += [path for path in unseen if path.name not in COMPARED]
    left += [path for path in world.to.iterdir() if path.name.startswith(".")]
    entries = [one for line in now.ledger if (one := json.loads(line)["entry"])["kind"] == "release"]
    wanted = {f"{entry[what]}.json" for entry in entries for what in ("protocol_sha256", "manifest_sha256")}
    left += [path for path in (world.private / "protocols").iterdir() if path.name not in wanted]
    left += [path for path in world.temporary.iterdir() if not _of_the_library(path)]
    return [f"left lying: {path.relative_to(world.folder)}" for path in left]


def _of_the_library(path: Path) -> bool:
    """Python tries out a temporary folder with a file of this content; a kill at that very moment leaves it."""
    return path.is_file() and path.read_bytes() in (b"", b"bl", b"blat")


def _failed(audit: Outcome) -> Any:
    try:
        told = json.loads(audit.out)
        reports = [told, *told.get("releases", [])]
        return [
            one["claim"] + ": " + one["detail"]
            for each in reports
            for one in each["findings"]
            if one["status"] == "failed"
        ]
    except (ValueError, KeyError):
        return audit.err[-300:]


def _releases(folder: Path) -> list[Path]:
    """What a reader sees, `latest` aside, and the list of releases, which the audit of the folder looks at."""
    if not folder.is_dir():
        return []
    beside = ("latest", "releases.json")
    return sorted(path for path in folder.iterdir() if path.name[0] != "." and path.name not in beside)


def _lines(path: Path) -> tuple[bytes, ...]:
    """The whole lines of a file."""
    return tuple(path.read_bytes().split(b"\n")[:-1]) if path.is_file() else ()


def _digest(folder: Path) -> str:
    if not re.fullmatch(ID, folder.name) or not folder.is_dir():
        return "not a release"
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        whole.update(path.name.encode() + b"\0" + (path.read_bytes() if path.is_file() else b""))
    return whole.hexdigest()
