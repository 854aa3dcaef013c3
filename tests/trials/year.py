"""A year of nightly exports of a changing table, with everything that happens in a year, and an attacker at the end.

    python -m tests.trials year --nights 365 --seed 1 --folder /tmp/year-kept

People arrive, leave, move, grow older; districts open that the lock does not know; the mixture of illnesses drifts.
The key is rotated, the policy changed, the lock made anew where the commands ask for it, and ten faults are injected.
Identifiers are given out anew once; every ninth of the year other policies come into the folder, with a filter on the
secret, another secret, a wide block, and a column is called otherwise: each is refused or let in, and attacked.
Each night is a process of its own that runs `funnel run --locked`; some nights are run by examples/nightly/nightly.

Held every night: published rows are what the key draws, an unchanged person answers as before, the ledger's composed
leakage is not below what a Bayesian attacker with all releases gains (`nights.attacker`), nor below what any answers
could give; and at the end `funnel audit` accepts the whole chain.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from funnel.ledger.journal import Journal
from tests.trials.nights.attacker import Attacker
from tests.trials.nights.draws import answers, as_rows, published
from tests.trials.nights.faults import FAULTS
from tests.trials.nights.seconds import SECONDS
from tests.trials.nights.shell import Outcome
from tests.trials.nights.summary import Night, judged, summary
from tests.trials.nights.table import Table, Truth
from tests.trials.nights.world import ROOM, World

SIZE = 4000
UNSEEN = 0.02
"""Part of the rows under a value that the lock does not know, above which the operator makes a new one."""
SCRIPTED = 30
"""Every so many nights are run by the script of examples/nightly."""
_FEWEST = 12


class Year:
    """The whole simulation."""

    def __init__(self, folder: Path, nights: int, seed: int, faults: int) -> None:
        self.nights, self.world = nights, World(folder, seed)
        self.new = {self._at(0.3): "harbour", self._at(0.72): "airport"}
        self.table = Table(seed, SIZE, nights, self.new)
        self.rotation, self.change, self.renumbering = self._at(0.15), self._at(0.55), self._at(0.85)
        self.every = max(len(SECONDS) + 2, nights // 9)
        chosen = self.world.random.sample(range(3, nights + 1), faults)
        kinds = self.world.random.sample(FAULTS, faults)
        self.faults = dict(zip(chosen, kinds, strict=True))
        self.attacker, self.found, self.changes = Attacker(), list[Night](), dict[str, int]()
        self.keys, self.locks, self.injected = 1, 0, list[str]()
        self.unseen, self.read = 0.0, 0
        self.audit: dict[str, Any] = {}

    def as_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            "held": not self.world.wrong, "wrong": self.world.wrong, "nights": [one.as_dict() for one in self.found],
            "faults": self.injected, "changes": self.changes, "audit": self.audit, "cost": self.cost(),
        }  # fmt: skip

    def text(self) -> str:
        """The summary for a stranger."""
        return summary(self.nights, self.as_dict(), self.found)

    def cost(self) -> dict[str, float]:
        """Seconds of processor time that a run took, at the beginning and at the end: the median of some nights."""
        spent = list(self.world.cpu.values())
        some = max(1, len(spent) // 10)
        return {"first": statistics.median(spent[:some]), "last": statistics.median(spent[-some:])}

    def _at(self, part: float) -> int:
        return max(2, round(part * self.nights))

    def run(self) -> None:
        """All nights."""
        self.table.write(self.world.source)
        self._relock([], "the first lock")
        for night in range(1, self.nights + 1):
            self.world.night = night
            self._pass(night)
            if sys.stderr.isatty():
                print(f"\rnight {night} of {self.nights} ", end="", file=sys.stderr)

    def _pass(self, night: int) -> None:
        why: list[str] = []
        if night > 1:
            for name, many in self.table.pass_night(night).items():
                self.changes[name] = self.changes.get(name, 0) + many
            self.table.write(self.world.source)
        self._operate(night, why)
        outcome = self._fault(night, why) or self._release(why)
        if self.world.expect(outcome.code == 0, f"nothing was released: {outcome.err or outcome.out}"):
            self.world.tidy("after a night that worked")
            self.world.keep()
            self._attack(night, outcome.json, why)
            self._others(night, why)

    def _others(self, night: int, why: list[str]) -> None:
        """After the night's run somebody else has a policy for the same folder."""
        place = night % self.every - 2
        if 0 <= place < len(SECONDS):
            second = SECONDS[place]
            told = second(self.world, self.attacker, self.table)
            why.append(f"{str(second.__doc__).rstrip('.')} ({told})")

    def _operate(self, night: int, why: list[str]) -> None:
        """What the operator does before the night's run."""
        if night in self.new:
            why.append(f"district {self.new[night]} opens")
        if night == self.renumbering:
            self.table.renumber()
            self.table.write(self.world.source)
            why.append("all identifiers are given out anew")
        if night == self.rotation:
            told = self.world.rotate()
            self.keys += 1
            why.append(f"key rotated, to cost {told['cost']:.4f}")
        if night == self.change:
            self._change_policy(why)
        elif self.unseen > UNSEEN:
            self._relock(why, f"{self.unseen:.1%} of the rows were under values that the lock did not know")

    def _change_policy(self, why: list[str]) -> None:
        """A stricter epsilon, and the optimal mechanism; the old lock is refused, the new one is reviewed."""
        old = self.world.folder / "before.yaml"
        old.write_text(self.world.policy.read_text())
        self.world.write_policy(privacy={"notion": "lip", "epsilon": 0.25}, mechanism="optimal")
        self.world.answered(self.world.run(), "lock-policy", "lock --force")
        self.world.expect(
            self.world.shell("diff", old.name, "people.yaml").code == 0, "a stricter policy is not stronger"
        )
        self._relock(why, "policy changed: epsilon 0.3 to 0.25, optimal mechanism")

    def _relock(self, why: list[str], reason: str) -> None:
        self.world.relock()
        self.locks += 1
        self.unseen = 0.0
        why.append(f"lock {self.locks}: {reason}")

    def _fault(self, night: int, why: list[str]) -> Outcome | None:
        """Let something go wrong, and look at what is left of it."""
        fault = self.faults.get(night)
        if fault is None:
            return None
        told = str(fault.__doc__).rstrip(".")
        why.append(f"fault: {told}")
        self.injected.append(f"night {night}: {told}")
        visible, lines = self.world.visible(), self.world.lines()
        outcome = fault(self.world)
        self.world.whole(visible, lines, f"fault {fault.__name__}")
        return outcome if outcome is not None and outcome.code == 0 else None

    def _release(self, why: list[str]) -> Outcome:
        """The night's run; where the lock does not keep its bound any more, a new one, and the run again."""
        scripted = self.world.night % SCRIPTED == 1
        outcome = self.world.by_script() if scripted else self.world.run()
        if outcome.error == "lock-leaks":
            shown = f"funnel lock --room {ROOM} people.yaml` shows its cost, promise by promise; `--force`"
            self.world.answered(outcome, "lock-leaks", shown)
            self._relock(why, "the table had drifted too far")
            outcome = self.world.run()
        return outcome

    def _attack(self, night: int, told: dict[str, Any], why: list[str]) -> None:
        """Add the release to what the attacker has, and compare with what the ledger says."""
        truth = self.table.truth()
        for name in self.world.visible()[self.read :]:
            self._read(self.world.to / name, truth)
        self.unseen = told["locked"]["pooled"] / told["rows"]
        # Those who have left are still in the releases that were made.
        unchanged = [name for name, one in self.attacker.people.items() if len(one.values) == 1]
        here = sum(len(self.attacker.people[one].values) == 1 for one in truth)
        composed = Journal(self.world.private).releases()[-1].own.together  # how it was measured, not how it is told
        one = Night(
            night, f"lock {self.locks}, key {self.keys}", told["rows"], told["leakage"]["lip"], composed.figure,
            composed.measured, composed.how, composed.varying,
            self.attacker.beliefs(truth, unchanged), self.attacker.worst(truth),
            here, len(truth) - here, self._per_value(truth), why,
        )  # fmt: skip
        self.found.append(one)
        for wrong in judged(one, self.found, len(self.attacker.sources)):
            self.world.expect(False, wrong)

    def _read(self, release: Path, truth: Truth) -> None:
        """One release, linked to its people; the rows have to be what the key draws, and nobody answers anew."""
        self.read += 1
        sources = self.attacker.read(release, f"key {self.keys}, numbers {self.table.numbered}")
        blocks = [self.attacker.blocks[one] for one in sources]
        numbers = self.table.numbers()
        named = answers(self.world.key, blocks, {numbers[one]: what for one, what in truth.items()})
        given = {one: named[numbers[one]] for one in truth}
        self.world.expect(as_rows(blocks, given) == published(release), "the rows are not what the key draws")
        otherwise = self.attacker.link(sources, truth, given)
        self.world.expect(not otherwise, f"{len(otherwise)} people changed their answer to the same question")

    def _per_value(self, truth: Truth) -> float:
        """What the attacker gains for each value of a person, at most, where values changed at times that are known."""
        paths = [self.attacker.paths(one) for one in truth if len(self.attacker.people[one].values) > 1]
        return max((nats / many for nats, many in paths), default=0.0)


def audit(year: Year) -> dict[str, Any]:
    """`funnel audit` of the whole chain, and what the ledger says of it."""
    world = year.world
    begun = time.monotonic()
    outcome = world.shell("audit", world.to, "--private", world.private, "--json")
    told = outcome.json
    world.expect(outcome.code == 0 and told.get("passed") is True, f"the audit fails: {_failed(told)}")
    ledger = world.funnel("ledger", "--json", world.policy.name).json
    world.expect(
        ledger["composed"] == year.found[-1].figure, "the ledger's last figure is not that of the last night"
    )
    entered, visible = len(ledger["releases"]), world.visible()
    return {
        "passed": told.get("passed"), "verdict": told.get("verdict", "none"),
        "releases": len(visible), "entries": entered,
        "seconds": round(time.monotonic() - begun, 1), "cpu": round(outcome.cpu, 1), "budget": ledger["budget"],
        "left": ledger["left"],
    }  # fmt: skip


def _failed(told: dict[str, Any]) -> str:
    """The claims that failed, the first of them."""
    if "error" in told:
        return str(told["error"])
    reports = [told, *told["releases"]]
    failed = [one for report in reports for one in report["findings"] if one["status"] == "failed"]
    return "; ".join([told["verdict"], *(f"{one['title']}: {one['detail']}" for one in failed[:3])])


def main(arguments: list[str]) -> int:
    """Run from the command line; exit code 1 where something did not hold."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.trials year",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--nights", type=int, default=365, help="nights, 12 at least")
    parser.add_argument("--seed", type=int, default=1, help="of the table, the faults and their moments")
    parser.add_argument("--faults", type=int, default=len(FAULTS), help="how many of the faults are injected")
    parser.add_argument(
        "--folder", type=Path, help="an empty folder to keep everything in; default: none is kept"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object for a program")
    asked = parser.parse_args(arguments)
    if asked.nights < _FEWEST or not 0 <= asked.faults <= len(FAULTS):
        parser.error(f"at least {_FEWEST} nights, and at most {len(FAULTS)} faults")
    with tempfile.TemporaryDirectory() as scratch:
        year = simulate(asked.folder or Path(scratch) / "year", asked.nights, asked.seed, asked.faults)
        print(json.dumps(year.as_dict(), indent=1, allow_nan=False) if asked.json else year.text())
    return 1 if year.world.wrong else 0


def simulate(folder: Path, nights: int, seed: int, faults: int) -> Year:
    """All nights, and the audit at the end; what was wrong stands in `year.world.wrong`."""
    year = Year(folder, nights, seed, faults)
    try:
        year.run()
        year.audit = audit(year)
    finally:
        year.world.close()
    return year
