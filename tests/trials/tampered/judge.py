"""One tampering made, and the auditor asked: what `funnel audit` is given, and what counts as caught."""

from __future__ import annotations

import multiprocessing
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from funnel.api import audit, verify
from funnel.audit.history import HistoryReport
from funnel.audit.kernel.verdict import Finding
from funnel.errors import FunnelError, InternalError
from tests.trials.tampered import claims, draws, files, folders, ledger, newest, pruned, table, weights
from tests.trials.tampered.ground import Ground
from tests.trials.tampered.moves import (
    EVIDENCE,
    FOLDER,
    KEY,
    LATEST,
    LATEST_LEDGER,
    LISTED,
    MOVES,
    SEALED,
    Move,
)
from tests.trials.tampered.place import Place

ROOMS = (files, folders, weights, claims, table, draws, ledger, newest, pruned)
"""Where the moves are."""
KINDS = tuple(dict.fromkeys(move.kind for move in MOVES))
BY_KEY_ALONE = (
    files.signature_bytes,
    folders.signature_gone,
    folders.another_signer,
    folders.signature_of_another,
    newest.list_bytes,
    newest.list_of_another_signer,
    pruned.rest_spoilt,
)
BY_KEY = (KEY, LATEST)
"""What a reader gets, who has nothing private: `funnel verify` has to find what the audit finds."""
HASHES = {"file-hashes", "evidence", "ledger-chain", "history-chain"}
"""Claims about hashes alone: where all were made to fit, something else has to fail."""
_TRIES = 400


@dataclass(frozen=True)
class Tried:
    """One tampering: what was done to which release, what the auditor was given, and which claims failed."""

    seed: int
    kind: str
    what: str
    release: str
    seal: str
    view: str
    claims: tuple[str, ...]
    wrong: str | None
    """Why it does not count as caught."""

    def text(self) -> str:
        """One line."""
        found = self.wrong or f"caught: {', '.join(self.claims)}"
        return (
            f"{self.seed}  {self.kind}: {self.what} [{self.release}; {self.seal}; given {self.view}]  {found}"
        )


@dataclass(frozen=True)
class Spoilt:
    """A copy of releases after it was tampered with, ready to be audited."""

    place: Place
    move: Move
    what: str
    seal: str
    view: str
    key: Path | None

    @property
    def given(self) -> tuple[Path, Path | None]:
        """What the auditor gets: releases, and the private folder."""
        releases, private = self.place.home / "releases", self.place.private
        return {
            FOLDER: (releases, private),
            LATEST: (releases / "latest", None),
            LATEST_LEDGER: (releases / "latest", private),
            EVIDENCE: (self.place.folder, private),
            KEY: (self.place.folder, None),
        }[self.view]


def tamper(ground: Ground, seed: int, scratch: Path) -> Spoilt:
    """The tampering of one seed, in a folder under `scratch`; the same seed on the same releases is the same one.

    Kinds take turns, so that seeds in a row are of every kind.
    """
    rng, kind = Random(seed), KINDS[seed % len(KINDS)]
    for _ in range(_TRIES):
        move = rng.choice([one for one in MOVES if one.kind == kind])
        case, release = rng.choice(ground.targets)
        seal, view = rng.choice(move.seals), rng.choice(move.views)
        if view in BY_KEY and not ground.signed(case):
            continue
        shutil.rmtree(scratch / "case", ignore_errors=True)
        shutil.copytree(ground.home / case, scratch / "case", symlinks=True)
        place = Place(scratch / "case", release, ground.signed(case), ground.home)
        what = _changed(place, move, rng, seal)
        before = ground.home / case
        if what is None or _same(place.home, before, f"releases/{release}" if view == KEY else ""):
            continue
        needed = view in BY_KEY or move.change in BY_KEY_ALONE
        given = ground.signed(case) and (needed or (view == FOLDER and rng.randrange(2) == 0))
        if needed and not given:
            continue
        return Spoilt(place, move, what, seal, view, ground.public_key if given else None)
    raise LookupError(f"no release to tamper with: {kind}")


def _changed(place: Place, move: Move, rng: Random, seal: str) -> str | None:
    """Change, and make hashes fit as far as `seal` says; None where that cannot be."""
    what = move.change(place, rng)
    try:
        if what is not None and seal == LISTED:
            place.relist()
        elif what is not None and seal == SEALED:
            place.seal(reports=move.kind != claims.REPORTS)
    except (OSError, ValueError, KeyError):
        return None
    return what


def _same(one: Path, other: Path, under: str) -> bool:
    """Whether all bytes and names are as before."""
    return _bytes(one, under) == _bytes(other, under)


def _bytes(home: Path, under: str) -> dict[str, bytes | Path | None]:
    parts = [home / under] if under else [home / "releases", home / "private"]
    return {str(path.relative_to(home)): _of(path) for part in parts for path in sorted(part.rglob("*"))}


def _of(path: Path) -> bytes | Path | None:
    if path.is_symlink():
        return path.readlink()
    return path.read_bytes() if path.is_file() else None


def audited(releases: Path, private: Path | None, key: Path | None) -> list[Finding]:
    """The claims that fail, by the function that `funnel audit` calls."""
    found = audit(releases, private, public_key=key)
    if not isinstance(found, HistoryReport):
        failed = list(found.of("failed"))
    else:
        failed = [*found.failed, *(finding for one in found.releases for finding in one.of("failed"))]
    if found.passed != (not failed):
        raise InternalError("the verdict is not that of the findings")
    return failed


def attempt(ground: Ground, seed: int) -> Tried:
    """One tampering and what the auditor says of it."""
    with tempfile.TemporaryDirectory(prefix="funnel-tampering-") as scratch:
        spoilt = tamper(ground, seed, Path(scratch))
        claims, wrong = verdict(spoilt)
    return Tried(seed, spoilt.move.kind, spoilt.what, name_of(ground, spoilt.place), spoilt.seal, spoilt.view,
                 claims, wrong)  # fmt: skip


def name_of(ground: Ground, place: Place) -> str:
    return next(f"{case} {release}" for case, release in ground.targets if release == place.release)


def verdict(spoilt: Spoilt) -> tuple[tuple[str, ...], str | None]:
    """The claims that fail, and what is wrong with that."""
    try:
        failed = audited(*spoilt.given, spoilt.key)
    except InternalError as error:
        return (), f"NOT CAUGHT: {error.text()}"
    except FunnelError as error:
        return (error.code,), None if error.where else "CAUGHT, BUT NOBODY KNOWS WHERE"
    except Exception as error:  # noqa: BLE001  that is what is looked for
        return (), f"TRACEBACK: {type(error).__name__}: {error}"
    claims = tuple(dict.fromkeys(one.claim for one in failed))
    if not claims:
        return claims, "NOT CAUGHT"
    if spoilt.view in BY_KEY and verify(spoilt.given[0], str(spoilt.key)).passed:
        return claims, "NOT CAUGHT BY THE KEY ALONE"
    if not all(one.detail.strip() for one in failed):
        return claims, "CAUGHT, BUT NOBODY KNOWS WHERE"
    if spoilt.seal == SEALED and set(claims) <= HASHES:
        return claims, "CAUGHT BY A HASH THAT THE FORGER LEFT AS IT WAS"
    return claims, None


def controls(ground: Ground) -> Iterator[str]:
    """What must hold for the rest to mean anything: honest releases pass, also after a forger's tools ran idle."""
    for case in ground.cases:
        for release in ground.releases(case):
            with tempfile.TemporaryDirectory(prefix="funnel-tampering-") as scratch:
                home = Path(scratch) / "case"
                shutil.copytree(ground.home / case, home, symlinks=True)
                place = Place(home, release, ground.signed(case), ground.home)
                place.forged.answer(place.forged.rows())
                place.relist()
                place.seal()
                if not _same(home, ground.home / case, ""):
                    yield f"{case} {release}: the forger's tools change an honest release"
        home, key = ground.home / case, ground.public_key if ground.signed(case) else None
        for folder in (home / "releases", *sorted((home / "releases").glob("2*"))):
            if failed := audited(folder, home / "private", key):
                yield f"{case}: an honest release fails: {failed[0].text()}"


def trial(
    ground: Ground, seeds: Sequence[int], jobs: int = 1, told: Callable[[str], None] = lambda _: None
) -> list[Tried]:
    """All tamperings, in as many processes; `told` hears of each that is not caught."""
    found = []
    for one in _each(ground, seeds, jobs):
        found.append(one)
        if one.wrong:
            told(one.text())
        if len(found) % 100 == 0:
            told(f"{len(found):,} tried, {sum(not tried.wrong for tried in found):,} caught")
    return found


def _each(ground: Ground, seeds: Sequence[int], jobs: int) -> Iterator[Tried]:
    if jobs == 1:
        yield from (attempt(ground, seed) for seed in seeds)
        return
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(partial(attempt, ground), seeds, chunksize=10)
