"""The certified bound of usefulness is proven anew, whatever the certificate says; what does not prove it fails."""

from __future__ import annotations

import copy
import hashlib
import math
import pickle
import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from funnel.audit import vertices
from funnel.audit.boxes import Replay, Tree, check_tree
from funnel.audit.cones import Rows
from funnel.audit.solution import read_solution
from funnel.errors import AuditFailure
from tests.unit.audit import samples, search
from tests.unit.audit.forge import Block, Forgery, edit, forge, keep_or_spread
from tests.unit.audit.samples import audited, detail, failures, statuses

COUNTS = np.array([[90, 40, 70, 30], [20, 110, 60, 50], [60, 30, 20, 120]])
PAIRS: list[list[str | None]] = [["a", "x"], ["a", "y"], ["b", "x"], ["b", "y"]]
ROOM = 2e-3
"""Nats by which the peaks of these proofs lie above the highest price: fewer boxes."""


@dataclass
class Case:
    """A table, a notion, and what proves its optimum."""

    notion: str
    epsilon: float
    counts: Any
    rows: Any
    duals: Any
    peak: float
    boxes: search.Boxes | None
    about: str = "public"
    beside: float = 0.0
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def entropy(self) -> float:
        """H(X)."""
        return entropy(self.counts.sum(axis=0))

    @property
    def bound(self) -> float:
        """What is proven of I(X;Y)."""
        return float(sum(self.duals)) + self.peak + self.beside

    def forgery(self) -> Forgery:
        """A release that keeps the notion, with this bound and this certificate."""
        size = self.counts.shape[1]
        columns, labels = (
            (["one", "two"], PAIRS) if self.notion == "srlip" else (["x"], [[str(i)] for i in range(size)])
        )
        block = keep_or_spread(columns, labels, 8, 256 // size + 8)
        if self.notion == "perfect":
            block = Block(columns, labels, labels[:2], 3, [[5] * size, [3] * size])
        forged = forge(self.counts, [block], notion=self.notion, epsilon=self.epsilon, **self.options)
        share = min(self.bound / self.entropy, 1.0)
        forged.manifest["utility"]["upper_bound"] = math.ceil(share * 10_000 - 1e-7) / 10_000
        told = None
        if self.boxes is not None:
            forged.proof, told = self.boxes.packed()
        forged.bounds = [self.bound]
        forged.certificate = {
            "about": self.about, "duals": list(map(float, self.duals)), "peak": self.peak,
            "boxes": 0 if self.boxes is None else len(self.boxes), "proof": told,
        }  # fmt: skip
        return forged


def entropy(counts: Any) -> float:
    share = counts[counts > 0] / counts.sum()
    return float(-(share * np.log(share)).sum())


def linear_of(counts: Any, duals: Any) -> Any:
    prior = counts.sum(axis=0) / counts.sum()
    return np.log(prior) + duals / prior


def priced(points: Any, linear: Any) -> Any:
    return (search.xlogx(points) - points * linear).sum(axis=1)


def side_cone(counts: Any, epsilon: float) -> Any:
    """SRLIP over the two columns of PAIRS: LIP, and LIP given the value of either column."""
    rows = [search.cone(counts, "lip", epsilon)]
    for group in ([0, 1], [2, 3], [0, 2], [1, 3]):
        wide = np.zeros((2 * len(counts), 4))
        wide[:, group] = search.cone(counts[:, group], "lip", epsilon)
        rows.append(wide)
    return np.vstack(rows)


@cache
def proven(notion: str, epsilon: float) -> Case:
    """An optimum by brute force, and boxes that prove it up to ROOM."""
    rows = side_cone(COUNTS, epsilon) if notion == "srlip" else search.cone(COUNTS, notion, epsilon)
    equal = notion == "perfect"
    points = search.vertices(rows, equal=equal)
    _, duals = search.optimum(points, COUNTS.sum(axis=0) / COUNTS.sum())
    linear = linear_of(COUNTS, duals)
    peak = float(priced(points, linear).max()) + ROOM
    boxes = search.search(rows, linear, peak, equal=equal)
    options = {"parameters": {"solve": "joint"}} if notion == "srlip" else {}
    return Case(notion, epsilon, COUNTS, rows, duals, peak, boxes, options=options)


def lip() -> Case:
    """A case that a test may spoil."""
    return copy.deepcopy(proven("lip", 0.4))


PROVEN = [("lip", 0.4), ("ldp", 0.7), ("ldp-x", 0.9), ("perfect", 0.0), ("srlip", 0.9)]


@pytest.mark.parametrize(("notion", "epsilon"), PROVEN)
def test_a_bound_with_its_boxes_is_proven_anew(notion: str, epsilon: float, tmp_path: Path) -> None:
    case = proven(notion, epsilon)
    report = audited(case.forgery().write(tmp_path))
    assert failures(report) == set()
    assert statuses(report)["utility-bound"] == "passed"
    told = detail(report, "utility-bound")
    assert told.startswith(f"I(X;Y) <= {case.bound:.6f} nats") and told.endswith("gone through again")


@pytest.mark.parametrize(
    ("notion", "epsilon"), [("lip", 0.4), ("ldp", 0.7), ("srlip", 0.4), ("perfect", 0.0)]
)
def test_of_two_secret_values_all_pairs_are_priced(notion: str, epsilon: float, tmp_path: Path) -> None:
    counts = COUNTS[:2]
    rows = search.cone(counts, "lip" if notion == "srlip" else notion, epsilon)
    points = search.vertices(rows, equal=notion == "perfect")
    _, duals = search.optimum(points, counts.sum(axis=0) / counts.sum())
    peak = float(priced(points, linear_of(counts, duals)).max())
    case = Case(notion, epsilon, counts, rows, duals, peak, None)
    forged = case.forgery()
    if notion == "srlip":
        block = keep_or_spread(["x"], [[str(i)] for i in range(4)], 8, 72)
        forged = one_column(case, block)
    report = audited(forged.write(tmp_path / "honest"))
    assert failures(report) == set()
    assert detail(report, "utility-bound").endswith("values and pairs of values priced")
    forged.certificate["peak"] -= 1e-6  # type: ignore[index]
    assert failures(audited(forged.write(tmp_path / "lowered"))) == {"utility-bound"}


def one_column(case: Case, block: Block) -> Forgery:
    """SRLIP of one column, which is LIP."""
    plain = replace(case, notion="lip").forgery()
    forged = forge(case.counts, [block], notion="srlip", epsilon=case.epsilon, parameters={"solve": "joint"})
    forged.manifest["utility"], forged.bounds = plain.manifest["utility"], plain.bounds
    forged.certificate = plain.certificate
    return forged


@given(st.lists(st.integers(1, 60), min_size=10, max_size=10), st.floats(0.05, 2), st.data())
def test_the_highest_price_of_pairs_is_that_of_all_vertices(
    numbers: list[int], epsilon: float, data: st.DataObject
) -> None:
    counts = np.array(numbers).reshape(2, 5)
    linear = np.array(data.draw(st.lists(st.floats(-3, 3), min_size=5, max_size=5)))
    told, first = counts[0] / counts.sum(axis=0), counts[0].sum() / counts.sum()
    high = math.exp(epsilon) * first
    low, high = (
        max(first / math.exp(epsilon), 1 - math.exp(epsilon) * (1 - first)),
        min(high, 1 - (1 - first) / math.exp(epsilon)),
    )
    points = search.vertices(search.cone(counts, "lip", epsilon))
    expected = priced(points, linear).max()
    assert vertices.highest_of_two(told, low, high, linear)[0] == pytest.approx(expected, abs=1e-7)


def test_rows_of_two_different_entries_are_all_vertices_of_the_usual_ldp(tmp_path: Path) -> None:
    case = replace(proven("ldp-x", 0.9), boxes=None)
    points = search.vertices(case.rows)
    prices = priced(points, linear_of(COUNTS, case.duals))
    prior = COUNTS.sum(axis=0) / COUNTS.sum()
    found, number = vertices.highest_of_odds(prior, math.exp(0.9), linear_of(COUNTS, case.duals))
    assert number == 2**4
    assert found == pytest.approx(max(prices.max(), -sum(case.duals)))
    report = audited(case.forgery().write(tmp_path))
    assert detail(report, "utility-bound").endswith("16 rows of two different entries priced")


def about_the_secret() -> Case:
    """I(X;Y) <= H(X|S) + I(S;Y), the latter by duals over S."""
    by_secret = COUNTS.sum(axis=1)[None]
    points = search.vertices(search.cone(by_secret, "ldp-x", 0.7))
    worth, duals = search.optimum(points, by_secret[0] / by_secret.sum())
    hidden = entropy(COUNTS.ravel()) - entropy(by_secret[0])
    return Case("ldp", 0.7, COUNTS, None, duals, worth - sum(duals) + 1e-9, None, "secret", hidden)


def test_a_bound_by_way_of_the_secret_is_proven_anew(tmp_path: Path) -> None:
    forged = about_the_secret().forgery()
    report = audited(forged.write(tmp_path / "honest"))
    assert statuses(report)["utility-bound"] == "passed"
    assert detail(report, "utility-bound").endswith("8 rows of two different entries priced")
    forged.certificate["duals"][0] -= 1e-4  # type: ignore[index]
    assert failures(audited(forged.write(tmp_path / "false"))) == {"utility-bound"}


def test_a_bound_by_way_of_the_secret_holds_for_odds_between_secret_values_only(tmp_path: Path) -> None:
    case = replace(about_the_secret(), notion="lip", epsilon=0.4)
    report = audited(case.forgery().write(tmp_path))
    assert statuses(report)["utility-bound"] == "not checked"


def spoilt(change: Callable[[search.Boxes], None]) -> Callable[[Case], Forgery]:
    """The same release with other boxes."""

    def forged(case: Case) -> Forgery:
        assert case.boxes is not None
        change(case.boxes)
        return case.forgery()

    return forged


def lowered(case: Case) -> Forgery:
    return replace(case, peak=case.peak - ROOM - 1e-4).forgery()


def other_dual(case: Case) -> Forgery:
    duals = case.duals.copy()
    duals[0], duals[1] = duals[0] - 0.01, duals[1] + 0.01
    return replace(case, duals=duals).forgery()


def left_out(boxes: search.Boxes) -> None:
    boxes.multipliers = [np.zeros_like(one) for one in boxes.multipliers]


def too_large(boxes: search.Boxes) -> None:
    """Any multipliers prove something, but these prove less than is claimed."""
    boxes.multipliers = [3 * one for one in boxes.multipliers]


def beyond_numbers(boxes: search.Boxes) -> None:
    """What floats make of these is not a number, which is neither above a peak nor below."""
    boxes.multipliers = [np.full_like(one, 1.7e308) for one in boxes.multipliers]


def levels_beyond_numbers(boxes: search.Boxes) -> None:
    boxes.multipliers = [np.full_like(one, 1e300) for one in boxes.multipliers]
    boxes.levels = [(-1) ** k * 1.7e308 for k in range(len(boxes))]


def scaled_beyond_numbers(boxes: search.Boxes) -> None:
    boxes.inequalities = boxes.inequalities * 1e307
    boxes.multipliers = [one * 1e10 + 1e10 for one in boxes.multipliers]


def below_zero(boxes: search.Boxes) -> None:
    boxes.multipliers = [-one for one in boxes.multipliers]


def no_number(boxes: search.Boxes) -> None:
    boxes.multipliers[0] = np.full_like(boxes.multipliers[0], math.nan)


def infinite_level(boxes: search.Boxes) -> None:
    boxes.levels[-1] = math.inf


def cut_nowhere(boxes: search.Boxes) -> None:
    parent, which, _, _ = boxes.cuts[1]
    boxes.cuts[1:3] = [(parent, which, math.nan, False), (parent, which, math.nan, True)]


def dropped(boxes: search.Boxes) -> None:
    boxes.cuts, boxes.multipliers, boxes.levels = boxes.cuts[:-1], boxes.multipliers[:-1], boxes.levels[:-1]


def moved(boxes: search.Boxes) -> None:
    """One half is cut further down, so that a strip between the halves is in neither."""
    parent, which, at, upper = boxes.cuts[-1]
    boxes.cuts[-1] = (parent, which, at + 0.01, upper)


def same_half_twice(boxes: search.Boxes) -> None:
    parent, which, at, _ = boxes.cuts[-1]
    boxes.cuts[-1] = (parent, which, at, False)


def other_parent(boxes: search.Boxes) -> None:
    """The last two boxes hang on a box that is split already."""
    for k in (-2, -1):
        boxes.cuts[k] = (0, *boxes.cuts[k][1:])


def ahead_of_its_parent(boxes: search.Boxes) -> None:
    boxes.cuts[1] = (len(boxes) - 1, *boxes.cuts[1][1:])


def own_parent(boxes: search.Boxes) -> None:
    boxes.cuts[2] = (2, *boxes.cuts[2][1:])


def no_coordinate(boxes: search.Boxes) -> None:
    boxes.cuts[1:3] = [(0, 4, 0.5, False), (0, 4, 0.5, True)]


def tighter(boxes: search.Boxes) -> None:
    boxes.inequalities = boxes.inequalities + 0.05


def smaller(boxes: search.Boxes) -> None:
    boxes.inequalities = np.full_like(boxes.inequalities, math.inf)


FALSE: dict[str, tuple[str, Callable[[Case], Forgery]]] = {
    "a lower bound": ("more than the peak", lowered),
    "other duals": ("more than the peak", other_dual),
    "multipliers left out": ("more than the peak", spoilt(left_out)),
    "multipliers three times as large": ("more than the peak", spoilt(too_large)),
    "multipliers beyond numbers": ("not split", spoilt(beyond_numbers)),
    "levels beyond numbers": ("not split", spoilt(levels_beyond_numbers)),
    "inequalities beyond numbers": ("not split", spoilt(scaled_beyond_numbers)),
    "a multiplier below zero": ("a multiplier is not one", spoilt(below_zero)),
    "a multiplier that is no number": ("a multiplier is not one", spoilt(no_number)),
    "a level that is no number": ("a level that is no number", spoilt(infinite_level)),
    "a cut that is no number": ("is cut at no number", spoilt(cut_nowhere)),
    "a box dropped": ("into one half only", spoilt(dropped)),
    "a box moved": ("at two places at once", spoilt(moved)),
    "the same half twice": ("half", spoilt(same_half_twice)),
    "another parent": ("a half twice", spoilt(other_parent)),
    "a child before its parent": ("does not follow its parent", spoilt(ahead_of_its_parent)),
    "a box that is its own parent": ("does not follow its parent", spoilt(own_parent)),
    "a coordinate that does not exist": ("across no coordinate", spoilt(no_coordinate)),
    "a tighter inequality": ("none that lip asks for", spoilt(tighter)),
    "an infinite inequality": ("none that lip asks for", spoilt(smaller)),
}


@pytest.mark.parametrize("what", FALSE)
def test_what_does_not_prove_the_bound_fails(what: str, tmp_path: Path) -> None:
    said, change = FALSE[what]
    report = audited(change(lip()).write(tmp_path))
    assert failures(report) == {"utility-bound"}
    assert said in detail(report, "utility-bound")


def test_an_inequality_of_another_notion_is_not_taken(tmp_path: Path) -> None:
    loose, tight = proven("lip", 0.4), proven("ldp-x", 0.9)
    stolen = replace(tight, notion="lip", epsilon=0.4, boxes=copy.deepcopy(tight.boxes))
    report = audited(stolen.forgery().write(tmp_path))
    assert failures(report) == {"utility-bound"}
    assert loose.bound > stolen.bound


def sizes(**changes: Any) -> Callable[[Path], None]:
    """solution.json says other sizes."""

    def damage(kept: Path) -> None:
        edit(kept / "solution.json", lambda told: told["certificate"]["proof"].update(changes))

    return damage


def file_of(content: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """Another proof.bin, with its own hash."""

    def damage(kept: Path) -> None:
        packed = content((kept / "proof.bin").read_bytes())
        (kept / "proof.bin").write_bytes(packed)
        sizes(sha256=hashlib.sha256(packed).hexdigest())(kept)

    return damage


def bomb(_: bytes) -> bytes:
    """Many zeros in few bytes."""
    return zlib.compress(bytes(1 << 26), 1)


def linked(kept: Path) -> None:
    (kept / "proof.bin").rename(kept / "elsewhere")
    (kept / "proof.bin").symlink_to("elsewhere")


def of_certificate(**changes: Any) -> Callable[[Path], None]:
    """Another certificate in solution.json."""

    def damage(kept: Path) -> None:
        edit(kept / "solution.json", lambda told: told["certificate"].update(changes))

    return damage


def of_solution(**changes: Any) -> Callable[[Path], None]:
    def damage(kept: Path) -> None:
        edit(kept / "solution.json", lambda told: told.update(changes))

    return damage


DAMAGE: dict[str, tuple[str, Callable[[Path], None]]] = {
    "one byte changed": (
        "not the one that was kept",
        lambda kept: (kept / "proof.bin").write_bytes((kept / "proof.bin").read_bytes()[:-1] + b"!"),
    ),
    "cut short": ("another size", file_of(lambda packed: packed[:-9])),
    "something after it": ("another size", file_of(lambda packed: packed + b"and more")),
    "less in it": ("another size", file_of(lambda packed: zlib.compress(zlib.decompress(packed)[:-8]))),
    "one number more in it": (
        "another size",
        file_of(lambda packed: zlib.compress(zlib.decompress(packed) + bytes(8))),
    ),
    "nothing at all": ("another size", file_of(lambda _: b"")),
    "a pickled object": ("cannot be unpacked", file_of(lambda _: pickle.dumps({"boxes": []}))),
    "a pickled object, packed": ("another size", file_of(lambda _: zlib.compress(pickle.dumps([1])))),
    "a bomb": ("another size", file_of(bomb)),
    "no file": ("cannot be read", lambda kept: (kept / "proof.bin").unlink()),
    "a link": ("not a plain file", linked),
    "huge sizes": ("at most", sizes(multipliers=1 << 26)),
    "sizes without end": ("wrong", sizes(boxes=1 << 60)),
    "another number of boxes": ("another size", sizes(boxes=3)),
    "no boxes": ("a whole number from 1", sizes(boxes=0)),
    "sizes that are no numbers": ("a whole number", sizes(boxes="many")),
    "an inequality too few": ("another size", sizes(inequalities=1)),
    "a peak that is none": ("a number from", of_certificate(peak=None)),
    "a huge dual": ("a number from", of_certificate(duals=[1e300, 0, 0, 0])),
    "duals that are no prices": ("no prices", of_certificate(duals=[-1e8, 0, 0, 1e-8])),
    "too few duals": ("4 numbers", of_certificate(duals=[0.1])),
    "duals of what is not known": ("public | secret", of_certificate(about="everything")),
    "an unknown key": ("other keys", of_certificate(trust="me")),
    "another format": ("funnel-solution/1", of_solution(format="funnel-solution/2")),
    "no bound": ("not the bound that the solver certified", of_solution(upper_bounds=[None])),
    "another bound": ("not the bound that the solver certified", of_solution(upper_bounds=[0.5])),
    "two bounds": ("1 bounds", of_solution(upper_bounds=[1.0, 1.0])),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_certificate_fails_with_its_place_and_never_breaks_the_audit(
    what: str, tmp_path: Path
) -> None:
    said, damage = DAMAGE[what]
    place = lip().forgery().write(tmp_path)
    damage(place.kept)
    report = audited(place)
    assert failures(report) == {"utility-bound"}
    assert said in detail(report, "utility-bound")
    assert detail(report, "utility-bound").split(":")[0] in ("solution.json", "proof.bin", "release.json")


def test_a_bomb_is_never_unpacked(tmp_path: Path) -> None:
    place = lip().forgery().write(tmp_path)
    file_of(bomb)(place.kept)
    tracemalloc.start()
    try:
        with pytest.raises(AuditFailure):
            read_solution(place.kept, {"public": 4, "secret": 3}, 1)
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()


def test_a_bound_above_what_is_proven_may_be_stated_but_none_below(tmp_path: Path) -> None:
    forged = lip().forgery()
    forged.bounds = [forged.bounds[0] + 1e-7]  # type: ignore[operator]
    assert statuses(audited(forged.write(tmp_path / "above")))["utility-bound"] == "passed"
    forged.bounds = [forged.bounds[0] - 2e-7]
    report = audited(forged.write(tmp_path / "below"))
    assert "one of another bound" in detail(report, "utility-bound")


def test_a_bound_below_what_the_release_tells_fails(tmp_path: Path) -> None:
    case = lip()
    case.duals = case.duals * 1e-4
    case.peak = 1e-5
    forged = case.forgery()
    forged.manifest["utility"]["upper_bound"] = forged.manifest["utility"]["normalised"]
    report = audited(forged.write(tmp_path))
    assert "utility-bound" in failures(report)


def test_the_entropy_of_x_takes_no_certificate(tmp_path: Path) -> None:
    forged = lip().forgery()
    whole = entropy(COUNTS.sum(axis=0))
    forged.manifest["utility"]["upper_bound"], forged.bounds, forged.certificate = 1.0, [whole], None
    report = audited(forged.write(tmp_path))
    assert statuses(report)["utility-bound"] == "passed"
    assert detail(report, "utility-bound") == f"H(X) = {whole:.6f} nats, which bounds everything"


def test_a_bound_without_a_certificate_is_not_checked_and_says_why(tmp_path: Path) -> None:
    forged = lip().forgery()
    forged.certificate = None
    place = forged.write(tmp_path)
    assert detail(audited(place), "utility-bound") == (
        "the evidence holds no certificate of it, only the solver's word"
    )
    edit(place.kept / "solution.json", lambda told: told.pop("certificate"))  # as the first releases have it
    report = audited(place)
    assert report.passed
    assert statuses(report)["utility-bound"] == "not checked"


def test_a_peak_without_boxes_is_not_checked_where_vertices_are_not_known(tmp_path: Path) -> None:
    report = audited(replace(lip(), boxes=None).forgery().write(tmp_path))
    assert report.passed
    assert "no proof of the peak" in detail(report, "utility-bound")


def test_without_the_evidence_a_stated_bound_waits_for_it(tmp_path: Path) -> None:
    from funnel.audit import audit_release
    from funnel.audit.findings import NEEDS_PRIVATE

    place = lip().forgery().write(tmp_path)
    assert detail(audit_release(place.folder), "utility-bound") == NEEDS_PRIVATE
    assert "utility-bound" in samples.missing(audit_release(place.folder))


@given(
    st.lists(st.integers(1, 40), min_size=8, max_size=8),
    st.floats(0.1, 1.5),
    st.integers(0, 6),
    st.integers(0, 2**32 - 1),
)
def test_no_boxes_whatever_prove_less_than_the_highest_price(
    numbers: list[int], epsilon: float, splits: int, seed: int
) -> None:
    counts, random = np.array(numbers).reshape(2, 4), np.random.default_rng(seed)
    rows = search.cone(counts, "lip", epsilon)
    scale = np.abs(rows).max(axis=1)
    assume((scale > 0).all())
    linear = random.normal(size=4)
    highest = float(priced(search.vertices(rows), linear).max())
    cuts = [(-1, 0, 0.0, False)]
    for split in range(splits):
        parent, which, at = split, int(random.integers(4)), float(random.uniform(-0.1, 1.1))
        cuts += [(parent, which, at, False), (parent, which, at, True)]
    parent, which, at, upper = map(np.array, zip(*cuts, strict=True))
    count = len(cuts)
    tree = Tree(
        parent, which, at, upper, np.arange(0, 2 * count + 1, 2), random.integers(4, size=2 * count),
        random.exponential(size=2 * count) * random.choice([0, 1, 100], 2 * count), random.normal(size=count),
    )  # fmt: skip
    replay = Replay(
        tree, check_tree(tree, "here", 4, free=False), rows / scale[:, None], linear, highest - 1e-6
    )
    with pytest.raises(AuditFailure):
        replay.run("here")


def test_inequalities_are_matched_whatever_their_scale_and_order() -> None:
    rows = search.cone(COUNTS, "ldp", 0.7)
    own = Rows(rows / np.abs(rows).max(axis=1, keepdims=True))
    order = np.random.default_rng(0).permutation(len(rows))
    times = np.linspace(0.01, 300, len(rows))[:, None]
    found, scale = own.match(own.rows[order] * times)
    assert found.tolist() == order.tolist()
    assert scale == pytest.approx(times.ravel())
    assert own.match(own.rows[order] * times + 1e-3)[0].tolist() == [-1] * len(rows)
