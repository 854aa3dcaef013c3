"""Releases that were tampered with: any byte changed fails a claim by name, with the hashes refitted as well."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from funnel.format.canonical import encode
from tests.kernel.samples import ID, KINDS, Sample, judged, refit, sample

PUBLISHED = ("release.json", "protocol.json", "released.json", "data.csv", "report.json", "report.html")
PRIVATE = (
    "evidence.json", "counts.json", "draws.json", "terms.json", "solution.json", "policy.yaml", "plan.json",
    "report.json", "report.html",
)  # fmt: skip
LEDGER = ("ledger.jsonl", "ledger.head")


def failed(public: Path, private: Path) -> list[str]:
    return [one.claim for one in judged(public, private) if one.status == "failed"]


@pytest.fixture(scope="module")
def honest(tmp_path_factory) -> Callable[[str], tuple[Path, Path]]:
    """Copies of one release of a kind, each to be spoilt by one test."""
    made: dict[str, Path] = {}

    def copy(kind: str) -> tuple[Path, Path]:
        if kind not in made:
            made[kind] = tmp_path_factory.mktemp("honest")
            sample(**KINDS[kind]).write(made[kind])
        root = tmp_path_factory.mktemp("spoilt")
        shutil.copytree(made[kind], root, dirs_exist_ok=True)
        return root / "releases" / ID, root / "private"

    return copy


def paths(public: Path, private: Path) -> list[Path]:
    found = [public / name for name in PUBLISHED] + [private / ID / name for name in PRIVATE]
    found += [private / name for name in LEDGER]
    return [
        *found,
        *(one for name in ("lock.yaml", "robust.json", "population.json") if (one := private / ID / name).exists()),
        *private.glob("estimates/*"),
    ]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["two blocks", "rldp", "private and locked", "sets", "people left out"])
def test_any_byte_of_any_file_changed_fails_a_claim(kind, honest):
    chance = random.Random(kind)
    public, private = honest(kind)
    for path in paths(public, private):
        raw = path.read_bytes()
        for _ in range(3):
            place = chance.randrange(len(raw))
            path.write_bytes(raw[:place] + bytes([raw[place] ^ chance.randrange(1, 256)]) + raw[place + 1 :])
            assert failed(public, private), (path.name, place)
        for changed in (raw[:-1], raw + b"\n", b"", raw + raw):
            path.write_bytes(changed)
            assert failed(public, private), path.name
        path.unlink()
        assert failed(public, private), path.name
        path.write_bytes(raw)
    assert not failed(public, private)


@pytest.mark.parametrize("where", ["releases", "private"])
def test_nothing_else_may_lie_in_either_folder(where, honest):
    public, private = honest("lip")
    (public if where == "releases" else private / ID).joinpath("notes.txt").write_text("n")
    assert failed(public, private) == ["file-list" if where == "releases" else "evidence"]


def test_a_link_is_no_file(honest):
    public, private = honest("lip")
    (public / "report.html").rename(public.parent / "elsewhere")
    (public / "report.html").symlink_to(public.parent / "elsewhere")
    assert failed(public, private) == ["file-hashes"]


LEFT = {
    "release.json": (
        "versions",
        "files",
        "policy_sha256",
        "terms_sha256",
        "plan_sha256",
        "upper_bound",
        "solve",
        "radius",
    ),
    "protocol.json": ("rule", "outputs"),
    "released.json": ("columns", "types"),
    "counts.json": ("secret",),
    "draws.json": (),
    "terms.json": (
        "entity",
        "solve",
        "radius",
        "filter",
        "missing",
        "bins",
        "round",
        "clip",
        "top",
        "unseen",
        "values",
        "formulas",
    ),
}
"""What the kernel leaves to the extras, or to hashes that the forger makes anew; how secret values are spelt; a larger
set than asked for."""


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from leaves(part, (*path, key))
    if not parts:
        yield path


def altered(value: Any) -> list[Any]:
    if isinstance(value, bool) or value is None:
        return ["x", 1]
    if isinstance(value, str):
        return [value + "x", value[:-1]]
    return [value + 1, round(value * 0.9, 4) if isinstance(value, float) else max(value - 1, 0)]


@pytest.mark.long
@pytest.mark.parametrize("name", LEFT)
@pytest.mark.parametrize("kind", ["lip", "two blocks", "rldp", "private and locked", "sets, ldp", "alip"])
def test_no_value_changed_escapes_even_if_all_hashes_are_refitted(kind, name, honest):
    chance = random.Random(kind + name)
    public, private = honest(kind)
    path = (public if name in PUBLISHED else private / ID) / name
    raw = path.read_bytes()
    saved = {one: one.read_bytes() for one in paths(public, private)}
    places = [one for one in leaves(json.loads(raw)) if not set(one) & set(LEFT[name])]
    for place in chance.sample(places, min(len(places), 10)):
        whole = json.loads(raw)
        *outer, last = place
        inner = whole
        for key in outer:
            inner = inner[key]
        before = inner[last]
        for value in altered(before):
            if value == before:
                continue
            inner[last] = value
            path.write_bytes(encode(whole))
            refit(public, private)
            assert failed(public, private), (place, before, value)
        for one, content in saved.items():
            one.write_bytes(content)


@pytest.mark.parametrize("place", [-1, -2])
def test_everybody_is_who_was_counted_even_if_all_hashes_are_refitted(place, honest):
    """One more of those who are in the release, or somebody who is said not to be."""
    public, private = honest("people left out")
    path = private / ID / "population.json"
    whole = json.loads(path.read_bytes())
    for row in whole["people"][0]["cells"][1:]:
        row[place] ^= 1
        path.write_bytes(encode(whole))
        refit(public, private)
        assert failed(public, private) == ["absent"]
        row[place] ^= 1


def stated(**changes: Any) -> Callable[[Sample], None]:
    def change(one: Sample) -> None:
        one.manifest = replace(one.manifest, **changes)

    return change


def leaking(measure: str, more: float) -> Callable[[Sample], None]:
    def change(one: Sample) -> None:
        leakage = dict(one.manifest.leakage)
        leakage[measure] = round((leakage[measure] or 0) + more, one.manifest.decimals)
        one.manifest = replace(one.manifest, leakage=leakage)

    return change


def useful(key: str, more: float) -> Callable[[Sample], None]:
    def change(one: Sample) -> None:
        told = round(getattr(one.manifest.utility, key) + more, one.manifest.decimals)
        utility = replace(one.manifest.utility, **{key: told})
        one.manifest = replace(one.manifest, utility=utility)

    return change


def tight(epsilon: float) -> Callable[[Sample], None]:
    """Promise less than the channel keeps, in manifest and terms alike, and state a figure that fits."""

    def change(one: Sample) -> None:
        leakage = one.manifest.leakage | {"lip": epsilon}
        one.manifest = replace(one.manifest, epsilon=epsilon, leakage=leakage)
        one.terms = replace(one.terms, epsilon=epsilon)

    return change


def moved(one: Sample) -> None:
    """One record is told to have had another value, in counts and draws alike, so that only the protocol tells."""
    rows = [list(row) for row in one.draws.blocks[0]]
    rows[0][2] += 400
    rows[1][2] = max(rows[1][2] - 400, 1)
    one.draws = replace(one.draws, blocks=(tuple(map(tuple, rows)), *one.draws.blocks[1:]))


def permuted(one: Sample) -> None:
    """The protocol names the secret's values in another order than the counts."""
    (block,) = one.protocol.blocks
    secret = replace(block.secret, values=block.secret.values[::-1])
    one.protocol = replace(one.protocol, blocks=(replace(block, secret=secret),))


def rare(one: Sample) -> None:
    one.manifest = replace(one.manifest, estimate=replace(one.manifest.estimate, minimum=10_000))
    one.terms = replace(one.terms, estimate=replace(one.terms.estimate, minimum=10_000))


def drawn_unevenly(one: Sample) -> None:
    """Every record of input 0 answers by its own value: sums of outputs are kept, chances are not."""
    table: dict[tuple[int, int], int] = {(x, y): n for x, y, n in one.draws.blocks[0]}
    flow = min(table[0, 1], table[1, 0]) * 9 // 10
    for pair, more in {(0, 1): -flow, (1, 0): -flow, (0, 0): flow, (1, 1): flow}.items():
        table[pair] += more
    one.draws = replace(one.draws, blocks=(tuple((*pair, n) for pair, n in sorted(table.items())),))


def budgeted(one: Sample) -> None:
    one.terms = replace(one.terms, budget="1/100")


def falling(one: Sample) -> None:
    parameters = replace(one.manifest.parameters, lower=0.05)
    one.manifest = replace(one.manifest, parameters=parameters)
    one.terms = replace(one.terms, parameters=parameters)


LIES: dict[str, tuple[str, Callable[[Sample], None], str]] = {
    "lip too low": ("lip", leaking("lip", -0.001), "leakage-stated"),
    "lip too high": ("lip", leaking("lip", 0.002), "leakage-stated"),
    "ldp too low": ("lip", leaking("ldp", -0.001), "leakage-stated"),
    "srlip too low": ("srlip, two blocks", leaking("srlip", -0.001), "leakage-stated"),
    "ldp_x too high": ("ldp-x", leaking("ldp_x", 0.002), "leakage-stated"),
    "rldp too low": ("rldp", leaking("rldp", -0.01), "leakage-stated"),
    "I(S;Y) too low": ("lip", leaking("mutual_information", -0.001), "averages-stated"),
    "I(X;Y) too high": ("lip", useful("mutual_information", 0.001), "averages-stated"),
    "H(X) too high": ("two blocks", useful("entropy", 0.001), "averages-stated"),
    "ratio too high": ("sets", useful("normalised", 0.001), "averages-stated"),
    "a promise that is not kept": ("lip", tight(0.05), "leakage-bound"),
    "beliefs that fall too far": ("alip", falling, "leakage-bound"),
    "fewer rows": ("lip", stated(rows=17), "released"),
    "a minimum that no value has": ("lip", rare, "minimum"),
    "another notion": ("lip", stated(notion="pml"), "manifest"),
    "an unknown notion": ("lip", stated(notion="lipp"), "manifest"),
    "another secret": ("lip", stated(sensitive=("other",)), "policy-terms"),
    "another split": ("two blocks", stated(split=(0.25, 0.75)), "policy-terms"),
    "another mechanism": ("lip", stated(mechanism="optimal"), "policy-terms"),
    "more decimals": (
        "lip",
        stated(leakage={"lip": 0.12345, "ldp": 1.0, "mutual_information": 0.0}),
        "manifest",
    ),
    "another order of secret values": ("reads the secret", permuted, "counts"),
    "other draws": ("lip", moved, "draw-inputs"),
    "draws that favour the truth": ("lip", drawn_unevenly, "draw-fit"),
    "a budget that is passed": ("lip", budgeted, "ledger-promises"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_writer_that_lies_in_one_thing_is_refused(lie, tmp_path):
    kind, change, claim = LIES[lie]
    one = sample(**KINDS[kind])
    change(one)
    assert claim in failed(*one.write(tmp_path))
