"""The composed leakage of a forged ledger: true where a sum over all uniforms says so, and every lie is found.

The expected figures are counted by brute force; nothing of the program takes part.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from funnel.audit import audit_release
from tests.unit.audit import samples
from tests.unit.audit.forge import Block, Forgery, forge, nats_up, sha256, worst_lip, write_json
from tests.unit.audit.samples import detail, failures

TABLE = np.array([[100, 200], [150, 60]])
VALUES: list[list[str | None]] = [["low"], ["high"]]
KEYS = ("aa" * 8, "bb" * 8)
PLAIN = hashlib.sha256(b"{}").hexdigest()[:16]
"""What the values of a column stand for that is taken as it is."""


def law(*rows: list[int], bits: int = 3, reads: bool = False, columns: str = "level") -> Block:
    """A protocol with weights [y][x], or [y][s][x]."""
    values: list[list[str | None]] = [[f"y{y}"] for y in range(len(rows))]
    return Block([columns], VALUES, values, bits, list(rows), reads)


MILD = law([5, 3], [3, 5])
STRONG = law([6, 2], [2, 6])
SURE = law([8, 3], [0, 5])
FINE = law([9, 5], [7, 11], bits=4)
READING = law([[5, 3], [4, 3]], [[3, 5], [4, 5]], reads=True)


@dataclass
class Earlier:
    """A release that the ledger tells of: its block, its key (None: fresh), what else its entry says."""

    block: Block
    key: str | None = KEYS[0]
    meaning: str = PLAIN
    entity: str | None = "person"
    kept: bool = True
    told: dict[str, Any] = field(default_factory=dict)


def brute(releases: Sequence[Earlier]) -> dict[tuple[Any, Any], Fraction]:
    """P(s, y): one uniform number for each key and kind of input, all values of all of them tried."""
    sources = list(dict.fromkeys((one.key or id(one), one.block.reads_secret) for one in releases))
    bits = max(one.block.bits for one in releases)
    found: Counter[tuple[Any, Any]] = Counter()
    for s, x in np.ndindex(*TABLE.shape):
        for uniforms in product(range(1 << bits), repeat=len(sources)):
            of = dict(zip(sources, uniforms, strict=True))
            y = tuple(
                answer(
                    one.block, s, x, of[one.key or id(one), one.block.reads_secret] >> (bits - one.block.bits)
                )
                for one in releases
            )
            found[s, y] += int(TABLE[s, x])
    whole = int(TABLE.sum()) << (bits * len(sources))
    return {cell: Fraction(count, whole) for cell, count in found.items()}


def answer(block: Block, s: int, x: int, uniform: int) -> int:
    """The output in whose interval the number lies."""
    for y in range(len(block.outputs)):
        uniform -= block.weight(y, s, x)
        if uniform < 0:
            return y
    raise ValueError("beyond the weights")


def stated(releases: Sequence[Earlier], **changes: Any) -> dict[str, Any]:
    """What an honest entry says of the last of these releases."""
    figure = nats_up(worst_lip(brute(releases)))
    return {
        "measure": "lip",
        "sensitive": ["secret"],
        "figure": figure,
        "measured": figure,
        "how": "exact",
        "releases": len(releases),
        "groups": len({one.key or id(one) for one in releases}),
        "varying": None,
    } | changes


def told(one: Earlier, composed: dict[str, Any]) -> dict[str, Any]:
    """The later keys of an entry."""
    reads = ["secret"] if one.block.reads_secret else None
    drawn = [{"columns": one.block.columns, "meaning": [one.meaning], "reads": reads}]
    return {"entity": one.entity if one.key else None, "drawn": drawn, "composed": composed} | one.told


class Ledger:
    """A ledger of earlier releases and the forged one that comes last."""

    def __init__(self, home: Path, releases: Sequence[Earlier], last: dict[str, Any] | None = None) -> None:
        *before, own = releases
        self.forgery = forge(TABLE, [own.block], epsilon=9.0)
        self.home, self.own, self.before = home, own, before
        self.composed = stated(releases) if last is None else last
        if own.key:
            self.forgery.manifest["draws"] = {"kind": "permanent", "key_fingerprint": own.key}
            self.forgery.entity = own.entity
        if before:
            names = ("figure", "how", "releases")
            self.forgery.manifest["composed"] = dict(
                zip(("leakage", "how", "releases"), (self.composed[name] for name in names), strict=True)
            )

    def audited(self, change: Callable[[list[dict[str, Any]]], None] = lambda _: None):
        """Write everything, let `change` edit the entries, and audit the last release."""
        place = self.forgery.write(self.home)
        shared = json.loads(place.ledger.read_text().splitlines()[-1])
        own = {key: value for key, value in shared.items() if key not in ("sequence", "written", "previous")}
        entries = []
        for number, one in enumerate(self.before, start=1):
            path = self.home / f"{number}.json"
            write_json(path, forge(TABLE, [one.block]).protocol)
            kept = place.private / "protocols" / f"{sha256(path)}.json"
            kept.parent.mkdir(exist_ok=True)
            if one.kept:
                kept.write_bytes(path.read_bytes())
            entries.append(
                own
                | {
                    "release": f"2026010{number}T000000Z-abcdef",
                    "protocol_sha256": sha256(path),
                    "key_fingerprint": one.key,
                    "draws": "permanent" if one.key else "fresh",
                }
                | told(one, stated([*self.before[:number]]))
            )
        entries.append(own | told(self.own, self.composed))
        change(entries)
        place.keep(entries)
        return audit_release(place.folder, place.private)


HISTORIES: dict[str, list[Earlier]] = {
    "alone": [Earlier(MILD)],
    "repeated": [Earlier(MILD), Earlier(MILD)],
    "overlapping": [Earlier(STRONG), Earlier(FINE), Earlier(MILD)],
    "another key": [Earlier(MILD), Earlier(MILD, KEYS[1])],
    "fresh": [Earlier(MILD, None), Earlier(STRONG, None), Earlier(MILD, None)],
    "both": [Earlier(STRONG), Earlier(MILD, None), Earlier(FINE)],
    "with a zero": [Earlier(SURE), Earlier(MILD)],
    "reading the secret": [Earlier(READING), Earlier(MILD), Earlier(READING, KEYS[1])],
}


@pytest.mark.parametrize("name", HISTORIES)
def test_what_brute_force_counts_is_what_the_auditor_measures(name: str, tmp_path: Path) -> None:
    report = Ledger(tmp_path, HISTORIES[name]).audited()
    assert failures(report) <= {"mechanism"}, "no mechanism that reads the secret makes these weights"
    assert detail(report, "ledger-composed").endswith(
        f"(exact), over {len(HISTORIES[name])} release{'s' * (len(HISTORIES[name]) > 1)}"
    )


BOTH = [Earlier(STRONG), Earlier(MILD, KEYS[1])]
UP = 0.0002


@pytest.mark.parametrize(
    "lie",
    [
        {"figure": 0.0001, "measured": 0.0001},
        {"figure": None, "measured": None},
        {"measured": 0.0001},
        {"figure": 0.0001},
        {"how": "ceiling"},
        {"how": "sum"},
        {"releases": 1},
        {"releases": 3},
        {"groups": 1},
        {"measure": "ldp"},
        {"sensitive": ["other"]},
        {"varying": 0.5},
    ],
    ids=str,
)
def test_every_lie_about_the_composed_leakage_is_found(lie: dict[str, Any], tmp_path: Path) -> None:
    report = Ledger(tmp_path, BOTH, stated(BOTH) | lie).audited()
    assert failures(report) == {"manifest" if lie == {"releases": 1} else "ledger-composed"}


@pytest.mark.parametrize("by", [-UP, UP])
def test_the_figure_is_held_to_the_fourth_decimal(by: float, tmp_path: Path) -> None:
    honest = stated(BOTH)
    figure = round(honest["figure"] + by, 4)
    lying = Ledger(tmp_path, BOTH, honest | {"figure": figure, "measured": figure})
    assert failures(lying.audited()) == {"ledger-composed"}


def test_what_the_manifest_says_of_all_releases_is_the_ledgers(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, BOTH)
    ledger.forgery.manifest["composed"]["leakage"] = 0.1
    assert failures(ledger.audited()) == {"ledger-composed"}


def test_a_first_release_has_no_company(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, BOTH[:1])
    ledger.forgery.manifest["composed"] = {"leakage": 0.1, "how": "exact", "releases": 2}
    assert failures(ledger.audited()) == {"ledger-composed"}


@pytest.mark.parametrize(
    "change",
    [
        lambda entries: entries.pop(0),
        lambda entries: entries.insert(0, entries[0]),
        lambda entries: entries[0].update(key_fingerprint=KEYS[1]),
        lambda entries: entries[0].update(draws="fresh"),
        lambda entries: entries[0].update(entity="other"),
        lambda entries: entries[0]["drawn"][0].update(meaning=["cd" * 8]),
        lambda entries: entries[0]["drawn"][0].update(base=["cd" * 8, "cd" * 8]),
        lambda entries: entries[0]["drawn"][0].update(base=["level"]),
        lambda entries: entries[0]["drawn"][0].update(columns=["other"]),
        lambda entries: entries[0]["drawn"].append(entries[0]["drawn"][0]),
        lambda entries: entries[0]["composed"].update(figure=9.0),
        lambda entries: entries[1].pop("composed"),
        lambda entries: entries[1]["composed"].update(more=1),
    ],
)
def test_a_changed_past_does_not_fit(change: Callable[..., Any], tmp_path: Path) -> None:
    one_key = [Earlier(STRONG), Earlier(MILD)]
    assert "ledger-composed" in failures(Ledger(tmp_path, one_key).audited(change))


@pytest.mark.parametrize(
    "change",
    [
        lambda own: own["drawn"][0].update(meaning=["cd" * 8]),
        lambda own: own["drawn"][0].update(base=["cd" * 8]),
        lambda own: own.update(entity="household"),
    ],
)
def test_whom_and_what_a_release_drew_for_is_worked_out_again(
    change: Callable[..., Any], tmp_path: Path
) -> None:
    assert "ledger-drawn" in failures(
        Ledger(tmp_path, [Earlier(MILD)]).audited(lambda all_: change(all_[-1]))
    )


def test_a_protocol_that_was_changed_or_exchanged_is_noticed(tmp_path: Path) -> None:
    def damage(_: list[dict[str, Any]]) -> None:
        (path,) = (tmp_path / "private" / "protocols").iterdir()
        path.write_text(path.read_text().replace("6", "5"))

    report = Ledger(tmp_path, BOTH).audited(damage)
    assert failures(report) == {"ledger-composed"}
    assert "was changed" in detail(report, "ledger-composed")


def worst_of_x() -> Fraction:
    """The LIP of X itself."""
    total = int(TABLE.sum())
    ratios = [
        Fraction(int(TABLE[s, x]) * total, int(TABLE[s].sum()) * int(TABLE[:, x].sum()))
        for s, x in np.ndindex(*TABLE.shape)
    ]
    return max(*ratios, *(1 / ratio for ratio in ratios))


def test_without_its_protocol_a_release_is_bounded_by_x_itself(tmp_path: Path) -> None:
    lost = [Earlier(STRONG, kept=False), Earlier(MILD)]
    ceiling = nats_up(worst_of_x())
    honest = stated(lost, figure=ceiling, measured=ceiling, how="ceiling")
    assert failures(Ledger(tmp_path / "a", lost, honest).audited()) == set()
    assert failures(Ledger(tmp_path / "b", lost, stated(lost)).audited()) == {"ledger-composed"}


def test_other_columns_add_their_usual_ldp(tmp_path: Path) -> None:
    other = law([6, 2], [2, 6], columns="other")
    apart = [Earlier(other), Earlier(MILD)]
    own = worst_lip(brute(apart[1:]))
    assert own is not None
    figure = math.ceil((math.log(own) + math.log(3)) * 10_000) / 10_000
    honest = stated(apart, figure=figure, measured=figure, how="sum", groups=1)
    assert failures(Ledger(tmp_path / "a", apart, honest).audited()) == set()
    for lie in (figure - UP, figure + UP, None):
        said = honest | {"figure": lie, "measured": lie}
        assert failures(Ledger(tmp_path / f"b{lie}", apart, said).audited()) == {"ledger-composed"}


def test_one_uniform_for_two_meanings_has_no_bound(tmp_path: Path) -> None:
    tangled = [Earlier(STRONG, meaning="cd" * 8), Earlier(MILD)]
    honest = stated(tangled, figure=None, measured=None, how="sum")
    assert failures(Ledger(tmp_path / "a", tangled, honest).audited()) == set()
    for how in ("exact", "sum", "ceiling"):
        assert failures(Ledger(tmp_path / how, tangled, stated(tangled, how=how)).audited()) == {
            "ledger-composed"
        }


def test_the_usual_ldp_of_the_history_is_checked_where_it_is_stated(tmp_path: Path) -> None:
    keys = [Earlier(STRONG), Earlier(MILD, KEYS[1])]
    varying = math.ceil((math.log(3) + math.log(Fraction(5, 3))) * 10_000) / 10_000
    for figure, wrong in (
        (varying, set()),
        (varying - UP, {"ledger-composed"}),
        (varying + UP, {"ledger-composed"}),
    ):
        said = stated(keys, varying=round(figure, 4))
        assert failures(Ledger(tmp_path / str(figure), keys, said).audited()) == wrong


def test_the_figure_may_not_fall(tmp_path: Path) -> None:
    fallen = [Earlier(STRONG), Earlier(STRONG)]

    def before(entries: list[dict[str, Any]]) -> None:
        entries[0]["composed"].update(figure=1.5, measured=1.5)

    assert failures(Ledger(tmp_path / "a", fallen).audited(before)) == {"ledger-composed"}
    raised = Ledger(tmp_path / "b", fallen, stated(fallen, figure=1.5))
    assert failures(raised.audited(before)) == set()


def test_entries_of_the_first_version_before_it_leave_it_unchecked(tmp_path: Path) -> None:
    def strip(entries: list[dict[str, Any]]) -> None:
        for name in ("entity", "drawn", "composed"):
            entries[0].pop(name)

    report = Ledger(tmp_path, BOTH).audited(strip)
    assert failures(report) == set()
    assert "first version" in detail(report, "ledger-composed")


def test_an_honest_release_of_the_first_version_claims_nothing(tmp_path: Path) -> None:
    forgery: Forgery = samples.one_block()
    report = samples.audited(forgery.write(tmp_path))
    assert detail(report, "ledger-composed").startswith("not claimed")
