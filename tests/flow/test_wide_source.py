"""What is said of columns inside cells against the source: a forger fits every hash, and the table tells."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funnel
from funnel.audit.audit import AuditReport
from funnel.audit.extras.wide import OTHERWISE, same
from funnel.audit.kernel.verdict import Broken
from funnel.cells.cells import Cells
from funnel.cells.make import make
from tests.support.forging import Forged, edit, seal
from tests.support.policies import write_policy
from tests.support.towns import WIDE, people
from tests.support.wide import mixed

Change = Callable[[Any], None]


@pytest.fixture(scope="module", params=["made", "locked"])
def honest(request: pytest.FixtureRequest, tmp_path_factory, key) -> Path:
    """The folder of an honest release, which is only read; or of one under a lock."""
    folder = tmp_path_factory.mktemp(request.param)
    people(folder)
    with pytest.MonkeyPatch.context() as inside:
        inside.setenv("FUNNEL_KEY", key)
        policy = write_policy(folder, **WIDE)
        if request.param == "locked":
            funnel.make_lock(policy)
        funnel.run(policy, locked=request.param == "locked")
    return folder


def forged(honest: Path, folder: Path, name: str, change: Change) -> AuditReport:
    """One file changed, all that follows from it and every hash made to fit; audited with the source."""
    for room in ("releases", "private"):
        shutil.copytree(honest / room, folder / room, symlinks=True)
    release = (folder / "releases" / "latest").resolve()
    one = Forged(release, folder / "private" / release.name)
    edit((one.kept if name == "distances.json" else one.folder) / name, change)
    one.write_data()
    seal([one])
    if name == "distances.json":
        assert funnel.audit_release(release, folder / "private").passed, "no file shows it"
    return funnel.audit_release(release, folder / "private", table=honest / "people.parquet")


def nearer(content: Any) -> None:
    """Every distance of two columns told as half of what it is."""
    block = content["blocks"][0]
    block["release"] = [[round(one / 2, 6) for one in row] for row in block["release"]]


def truer(content: Any) -> None:
    block = content["blocks"][0]
    block["columns"][0]["own"] = min(1.0, block["columns"][0]["own"] + 0.01)


def fewer_merged(content: Any) -> None:
    merged = max(content["blocks"][0]["columns"], key=lambda one: one["records"])
    merged["records"] += 1


def prettier(content: Any) -> None:
    """Two values of one column change places in every cell: what rows are filled in with, and no share of a cell."""
    profile = next(one for one in content["blocks"][0]["profiles"] if any(len(row) >= 4 for row in one["values"]))
    group = profile["groups"]
    for row in profile["values"]:
        pairs = [(code, place) for place, code in enumerate(row[::2])]
        same = [(one, two) for one in pairs for two in pairs if one < two and group[one[0]] == group[two[0]]]
        for (_, one), (_, two) in same[:1]:
            row[2 * one + 1], row[2 * two + 1] = row[2 * two + 1], row[2 * one + 1]


FORGERIES: dict[str, tuple[str, Change, str]] = {
    "distances": ("distances.json", nearer, "distances of person are not those of the source"),
    "shares of own values": ("distances.json", truer, "show their own value of person are not those of the source"),
    "merged records": ("distances.json", fewer_merged, "columns of person"),
    "what rows are filled in with": ("cells.json", prettier, "is not what the source says"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_with_every_hash_refitted_is_refused_with_the_table(name: str, honest: Path, tmp_path: Path) -> None:
    file, change, said = FORGERIES[name]
    found = forged(honest, tmp_path, file, change)
    failed = {one.claim: one.detail for one in found.of("failed")}
    if file == "cells.json" and honest.name.startswith("locked"):
        assert set(failed) & {"lock", "policy", "source-counts"}, found.text()
    else:
        assert {"source-counts"} <= set(failed) <= {"source-counts", "ledger-drawn"}, found.text()
        assert said in failed["source-counts"]


def test_an_honest_one_passes_and_says_what_was_made_again(honest: Path) -> None:
    found = funnel.audit_release(honest / "releases", honest / "private", table=honest / "people.parquet")
    assert found.passed, found.text()
    told = next(one.detail for one in found.findings if one.claim == "source-counts")
    assert "distances made again" in told
    assert ("cells, what fills their rows" in told) == honest.name.startswith("made")


def test_a_weight_in_a_thousand_may_be_rounded_otherwise_and_no_more() -> None:
    """On another machine floats may round otherwise: so much is let; all else of cells is to the letter."""
    made = make("p", mixed(1), most=60, minimum=20, support=5, seed=bytes(32)).cells
    weights = sum(int((one.links > 0).sum() + (one.values > 0).sum()) for one in made.profiles)
    assert weights > 2 * OTHERWISE

    def moved(number: int) -> Cells:
        """So many weights told otherwise."""
        first, *rest = made.profiles
        values = first.values.copy()
        values[tuple(np.argwhere(values > 0)[:number].T)] += 1
        return replace(made, profiles=(replace(first, values=values), *rest), seed=b"another")

    same(moved(weights // OTHERWISE), made)
    first, *rest = made.profiles
    row = np.argmax((first.values > 1).sum(axis=1))
    high, low = first.values[row].argmax(), np.flatnonzero(first.values[row])[0]
    assert high != low
    traded = first.values.copy()
    traded[row, [high, low]] = traded[row, [low, high]]
    renamed = replace(made, columns=(replace(made.columns[0], name="years"), *made.columns[1:]))
    others = moved(weights // OTHERWISE + 1), replace(made, shares=np.roll(made.shares, 1)), renamed
    for other in (*others, replace(made, profiles=(replace(first, values=traded), *rest))):
        with pytest.raises(Broken):
            same(other, made)
