"""Keys, clocks, and records that were cut, changed or lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import funnel
from tests.trials.faulting.case import Case, Tried
from tests.trials.faulting.oracle import Seen
from tests.trials.faulting.world import Bench, World

KEY_CODES = ("key-missing", "key-unreadable", "key-permissions", "key-changed")
DAY = 86_400


def records(bench: Bench) -> Iterator[Case]:
    """Every fault of this kind."""
    for base in ("plain-1", "rich-1"):
        for which, spoil in KEYS.items():
            yield Case("key missing or wrong", f"{base} {which}", base, partial(_key, "draw.key", spoil))
    for which, spoil in KEYS.items():
        if which != "another key":
            yield Case("signing key missing or wrong", which, "rich-1", partial(_key, "sign.key", spoil))
    for back in (1, 60, DAY, 365 * DAY, 20 * 365 * DAY, -DAY, -365 * DAY):
        yield Case("clock gone back", f"{back} s", "plain-1", partial(_clock, back))
    for base in ("plain-2", "rich-2"):
        yield from _damaged(bench, base)


# Keys.


def _shorter(path: Path) -> None:
    path.write_text(path.read_text().strip()[:-9] + "\n")


def _mistyped(path: Path) -> None:
    text = path.read_text()
    path.write_text(text[:20] + ("A" if text[20] != "A" else "B") + text[21:])


def _other(path: Path) -> None:
    path.unlink()
    funnel.write_key(path)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


KEYS: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "empty": lambda path: path.write_text(""),
    "cut short": _shorter,
    "mistyped": _mistyped,
    "noise": lambda path: path.write_bytes(bytes(range(256))),
    "another key": _other,
    "readable by others": lambda path: path.chmod(0o644),
    "readable by nobody": lambda path: path.chmod(0),
    "a folder": _folder,
}


def _key(name: str, spoil: Callable[[Path], object], bench: Bench, world: World) -> Tried:
    """Nothing is drawn with another key, or with none; the advice is to give the old one back."""
    path, kept = world.folder / name, world.folder / f"kept.{name}"
    shutil.copy2(path, kept)
    before = Seen.of(world)
    spoil(path)
    outcome = bench.run(world, no_override=True)
    wrong = ["a run without its key changed something"] * (Seen.of(world) != before)

    def give_back() -> None:
        if path.is_dir():
            path.rmdir()
        path.unlink(missing_ok=True)
        kept.rename(path)

    return Tried([outcome], give_back, KEY_CODES, wrong)


# Clocks.


def _clock(back: int, bench: Bench, world: World) -> Tried:
    """The order holds, and a clock that lags by more than a minute is told of."""
    outcomes = [
        bench.run(world, clock=-back),
        bench.run(world, clock=-2 * back),
        bench.run(world, clock=-back),
    ]
    wrong = [f"refused: {one.err}" for one in outcomes if one.code != 0]
    told = [any("clock" in warning for warning in one.warnings) for one in outcomes if one.code == 0]
    if back > 120 and not all(told):
        wrong.append(f"nobody was told of the clock: {told}")
    return Tried(outcomes, wrong=wrong)


# Records.


def _damaged(bench: Bench, base: str) -> Iterator[Case]:
    """Every record of the private folder: cut at and inside every line, every byte of a sample changed, lost."""
    with bench.world(base) as world:
        files = {
            path.relative_to(world.private): path.read_bytes()
            for path in sorted(world.private.rglob("*"))
            if path.is_file() and path.stat().st_size and path.parent.name in ("private", "protocols")
        }
    for name, content in files.items():
        for place in sorted({0, *_ends(content), *(end // 2 for end in _ends(content)), len(content) - 1}):
            if place < len(content):
                case = partial(_cut, name, content[:place])
                yield Case("record cut", f"{base} {name} after {place} bytes", base, case)
        for place in range(0, len(content), max(len(content) // 4, 1)):
            changed = bytes([*content[:place], content[place] ^ 1, *content[place + 1 :]])
            case = partial(_cut, name, changed)
            yield Case("a byte of a record changed", f"{base} {name} byte {place}", base, case)
        yield Case("record removed", f"{base} {name}", base, partial(_lost, (name,)))
    chains = [name for name in files if name.suffix in (".jsonl", ".head")]
    for stem in sorted({name.stem for name in chains}):
        pair = tuple(name for name in chains if name.stem == stem)
        yield Case("record and its head removed", f"{base} {stem}", base, partial(_lost, pair))
        yield Case("record and its head of an older day", f"{base} {stem}", base, partial(_older, stem))
    yield Case("private folder lost", base, base, partial(_lost, (Path(),)))
    yield Case("private folder of an older day", base, base, partial(_older, ""))


def _ends(content: bytes) -> list[int]:
    """Where lines end; of a file of one line, nowhere else than at its end."""
    found = [place + 1 for place, byte in enumerate(content) if byte == 10]
    return found if len(found) < 10 else found[len(found) // 2 :: len(found)]


def _cut(name: Path, content: bytes, bench: Bench, world: World) -> Tried:
    return _restored(lambda: (world.private / name).write_bytes(content), bench, world)


def _lost(names: tuple[Path, ...], bench: Bench, world: World) -> Tried:
    def remove() -> None:
        for name in names:
            path = world.private / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return _restored(remove, bench, world)


def _older(stem: str, bench: Bench, world: World) -> Tried:
    """As a backup of the day before would have it: after one release of the two."""
    older = bench.templates / f"{world_base(world)}-1" / "private"

    def put_back() -> None:
        if not stem:
            shutil.rmtree(world.private)
            shutil.copytree(older, world.private)
        else:
            for path in older.glob(f"{stem}.*"):
                shutil.copy2(path, world.private / path.name)

    return _restored(put_back, bench, world)


def world_base(world: World) -> str:
    """The template that a world was copied from, without its number."""
    name = next(
        line for line in (world.folder / "policy.yaml").read_text().splitlines() if line.startswith("name:")
    )
    return name.split()[1]


def _restored(damage: Callable[[], object], bench: Bench, world: World) -> Tried:
    """It is refused, or it does no harm; the advice is to restore the private folder from a backup."""
    backup = world.folder.with_name("backup")
    shutil.copytree(world.private, backup, symlinks=True)
    damage()
    outcome = bench.run(world)
    if outcome.code == 0:
        lost = undercounted(world, backup)
        return Tried([outcome], wrong=[f"{problem}, and the run went on" for problem in lost])

    def restore() -> None:
        shutil.rmtree(world.private, ignore_errors=True)
        backup.rename(world.private)

    return Tried([outcome], restore, ("ledger",))


def undercounted(world: World, backup: Path) -> list[str]:
    """What was recorded before the damage, and is not any more though a run went on."""
    before, now = (entered(folder / "ledger.jsonl") for folder in (backup, world.private))
    return [f"{entry} is not in the ledger any more" for entry in before if entry not in now]


def entered(ledger: Path) -> list[dict[str, Any]]:
    """The entries of a ledger, whatever their place in it."""
    lines = ledger.read_text().splitlines() if ledger.is_file() else []
    return [json.loads(line)["entry"] for line in lines]
