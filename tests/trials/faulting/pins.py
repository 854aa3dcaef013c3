"""The lock of a policy: cut, changed, lost, of another policy; and making one, killed at every step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.trials.faulting import oracle
from tests.trials.faulting.case import Case, Tried
from tests.trials.faulting.fuse import Harm
from tests.trials.faulting.world import LOCK, Bench, World

RUN = ("run", "policy.yaml", "--locked", "--json")
REFUSED = ("lock-missing", "lock-damaged", "lock-policy")


def pins(bench: Bench) -> Iterator[Case]:
    """Every fault of a policy's lock."""
    with bench.world("locked-1") as world:
        lock = world.folder / "policy.lock.yaml"
        (counts,) = (world.private / "locks").iterdir()
        kept = {lock: "policy's lock", counts: "counts of a policy's lock"}
        files = {path.relative_to(world.folder): (what, path.read_bytes()) for path, what in kept.items()}
    for name, (what, content) in files.items():
        for place in range(0, len(content), len(content) // 8):
            yield Case(
                f"{what} cut", f"after {place} bytes", "locked-1", partial(_put, name, content[:place])
            )
            changed = bytes([*content[:place], content[place] ^ 1, *content[place + 1 :]])
            yield Case(f"{what} changed", f"byte {place}", "locked-1", partial(_put, name, changed))
        yield Case(f"{what} removed", "", "locked-1", partial(_put, name, None))
    for base in ("plain-1", "rich-1"):
        for at, step in enumerate(bench.steps(base, *LOCK)):
            yield Case("killed while locking", f"{base} {at} {step}", base, partial(_killed, at))


def _put(name: Path, content: bytes | None, bench: Bench, world: World) -> Tried:
    """It is refused, or it does no harm; the advice is to restore the file."""
    path = world.folder / name
    kept = path.read_bytes()
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    outcome = bench.run(world, *RUN)
    wrong = [f"told {outcome.err.strip()}"] * (outcome.code in (1, 5) and outcome.error.get("code") not in REFUSED)
    advice: Callable[[], object] = lambda: path.write_bytes(kept)  # noqa: E731
    return Tried([outcome], advice, wrong=wrong)


def _killed(at: int, bench: Bench, world: World) -> Tried:
    """Then there is a lock that can be used, or none, and it can be made again."""
    outcomes = [bench.run(world, *LOCK, harm=Harm(str(world.folder), "kill", at))]
    locked = bench.run(world, *RUN)
    wrong = oracle.refusal(locked)
    if locked.code in (1, 5) and locked.error.get("code") != "lock-missing":
        wrong.append(f"told {locked.err.strip()[-300:]}")
    again = bench.run(world, *LOCK)
    wrong += [f"the lock cannot be made again: {again.err.strip()[-300:]}"] * (again.code != 0)
    after = bench.run(world, *RUN)
    wrong += [f"the lock cannot be used: {after.err.strip()[-300:]}"] * (after.code != 0)
    return Tried([*outcomes, *(one for one in (locked, after) if one.code == 0)], wrong=wrong)
