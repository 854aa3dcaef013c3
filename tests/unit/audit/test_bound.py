"""The certified bound of usefulness is proven anew, whatever the certificate says; what does not prove it fails."""

from __future__ import annotations

import copy
import hashlib
import math
import pickle
import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from funnel.audit.extras import bound
from funnel.audit.extras.base import Release
from funnel.audit.extras.boxes import Replay, Tree, children_of
from funnel.audit.extras.conditions import apart, conditions
from funnel.audit.extras.cones import Rows, rows_of
from funnel.audit.kernel.verdict import Broken, Unchecked
from funnel.format.fields import Alphabet
from funnel.format.manifest import Parameters, Utility
from funnel.format.solution import Certificate, Proof, SolutionFile
from tests.kernel.samples import cells_of, sample, write
from tests.support.forging import edit
from tests.unit.audit import search

COUNTS = np.array([[90, 40, 70, 30], [20, 110, 60, 50], [60, 30, 20, 120]])
PAIRS = (("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"))
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
    lower: float | None = None

    @property
    def bound(self) -> float:
        """What is proven of I(X;Y)."""
        return float(sum(self.duals)) + self.peak + self.beside

    def write(self, home: Path, **changes: Any) -> Release:
        """A release with this bound and this certificate; `changes` are other parts of solution.json."""
        c, a = self.counts.shape
        made = sample(self.notion, sizes=(a,), secret=c, epsilon=max(self.epsilon, 0.01))
        block = made.counts.blocks[0]
        if self.notion == "srlip" and a == len(PAIRS):
            block = Alphabet(("one", "two"), PAIRS)
        shown = replace(made.protocol.blocks[0], columns=block.columns, inputs=block.values, outputs=block.values)
        made.protocol = replace(made.protocol, blocks=(shown,))
        made.counts = replace(made.counts, blocks=(block,), cells=cells_of(self.counts))
        share = min(self.bound / entropy(self.counts.sum(axis=0)), 1.0)
        told = math.ceil(share * 10_000 - 1e-7) / 10_000
        parameters = Parameters(lower=self.lower) if self.notion == "alip" else Parameters()
        made.manifest = replace(
            made.manifest, public=(block.columns,), epsilon=self.epsilon, parameters=parameters,
            utility=Utility(0.1, 1.0, 0.01, told),
        )  # fmt: skip
        public, private = made.write(home)
        kept = private / public.name
        packed, proof = (None, None) if self.boxes is None else self.boxes.packed()
        if packed is not None:
            (kept / "proof.bin").write_bytes(packed)
        certificate = Certificate(
            self.about, tuple(map(float, self.duals)), self.peak, 0, None if proof is None else Proof(**proof)
        )
        solution = SolutionFile("funnel-solution/1", ("by tests",), (self.bound,), (self.epsilon,), certificate)
        (kept / "solution.json").write_bytes(write(replace(solution, **changes)))
        return Release(public, private)


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
    c, lower = len(COUNTS), 1.5 if notion == "alip" else None
    rows = side_cone(COUNTS, epsilon) if notion == "srlip" else search.cone(COUNTS, notion, epsilon)
    if notion in ("pml", "alip"):
        rows = search.cone(COUNTS, "lip", epsilon)[:c]
    if lower is not None:
        rows = np.vstack([rows, search.cone(COUNTS, "lip", lower)[c:]])
    equal = notion == "perfect"
    points = search.vertices(rows, equal=equal)
    _, duals = search.optimum(points, COUNTS.sum(axis=0) / COUNTS.sum())
    linear = linear_of(COUNTS, duals)
    peak = float(priced(points, linear).max()) + ROOM
    boxes = search.search(rows, linear, peak, equal=equal)
    return Case(notion, epsilon, COUNTS, rows, duals, peak, boxes, lower=lower)


def lip() -> Case:
    """A case that a test may spoil."""
    return copy.deepcopy(proven("lip", 0.4))


PROVEN = [("lip", 0.4), ("ldp", 0.7), ("ldp-x", 0.9), ("perfect", 0.0), ("srlip", 0.9), ("pml", 0.4), ("alip", 0.4)]


@pytest.mark.long
@pytest.mark.parametrize(("notion", "epsilon"), PROVEN)
def test_a_bound_with_its_boxes_is_proven_anew(notion: str, epsilon: float, tmp_path: Path) -> None:
    case = proven(notion, epsilon)
    told = bound.check(case.write(tmp_path))
    shown = math.ceil(case.bound * 1e6) / 1e6
    assert told.startswith(f"I(X;Y) <= {shown:.6f} nats") and told.endswith("gone through again")


@pytest.mark.parametrize(("notion", "epsilon"), [("lip", 0.4), ("ldp", 0.7), ("pml", 0.3), ("perfect", 0.0)])
def test_of_two_secret_values_all_pairs_are_priced(notion: str, epsilon: float, tmp_path: Path) -> None:
    counts = COUNTS[:2]
    rows = search.cone(counts, "lip" if notion == "pml" else notion, epsilon)
    rows = rows[:2] if notion == "pml" else rows
    points = search.vertices(rows, equal=notion == "perfect")
    _, duals = search.optimum(points, counts.sum(axis=0) / counts.sum())
    peak = float(priced(points, linear_of(counts, duals)).max())
    case = Case(notion, epsilon, counts, rows, duals, peak, None)
    assert bound.check(case.write(tmp_path / "honest")).endswith("values and pairs of values priced")
    with pytest.raises(Broken, match="worth more"):
        bound.check(replace(case, peak=peak - 1e-6).write(tmp_path / "lowered"))


@given(st.lists(st.integers(1, 60), min_size=10, max_size=10), st.floats(0.05, 2), st.data())
def test_the_highest_price_of_pairs_is_that_of_all_vertices(
    numbers: list[int], epsilon: float, data: st.DataObject
) -> None:
    counts = np.array(numbers).reshape(2, 5)
    linear = np.array(data.draw(st.lists(st.floats(-3, 3), min_size=5, max_size=5)))
    told, first, ratio = counts[0] / counts.sum(axis=0), counts[0].sum() / counts.sum(), math.exp(epsilon)
    low, high = max(first / ratio, 1 - ratio * (1 - first)), min(ratio * first, 1 - (1 - first) / ratio)
    points = search.vertices(search.cone(counts, "lip", epsilon))
    expected = priced(points, linear).max()
    assert bound.highest_of_two(told, low, high, linear)[0] == pytest.approx(expected, abs=1e-7)


def test_rows_of_two_different_entries_are_all_vertices_of_the_usual_ldp(tmp_path: Path) -> None:
    case = replace(proven("ldp-x", 0.9), boxes=None)
    prices = priced(search.vertices(case.rows), linear_of(COUNTS, case.duals))
    prior = COUNTS.sum(axis=0) / COUNTS.sum()
    found = bound.highest_of_odds(prior, math.exp(0.9), linear_of(COUNTS, case.duals))
    assert found == pytest.approx(max(prices.max(), -sum(case.duals)))
    assert bound.check(case.write(tmp_path)).endswith("16 rows of two different entries priced")


def about_the_secret() -> Case:
    """I(X;Y) <= H(X|S) + I(S;Y), the latter by duals over S."""
    by_secret = COUNTS.sum(axis=1)[None]
    points = search.vertices(search.cone(by_secret, "ldp-x", 0.7))
    worth, duals = search.optimum(points, by_secret[0] / by_secret.sum())
    hidden = entropy(COUNTS.ravel()) - entropy(by_secret[0])
    return Case("ldp", 0.7, COUNTS, None, duals, worth - sum(duals) + 1e-9, None, "secret", hidden)


def test_a_bound_by_way_of_the_secret_is_proven_anew(tmp_path: Path) -> None:
    case = about_the_secret()
    assert bound.check(case.write(tmp_path / "honest")).endswith("8 rows of two different entries priced")
    case.duals[0] -= 1e-4
    with pytest.raises(Broken):
        bound.check(case.write(tmp_path / "false"))


def test_a_bound_by_way_of_the_secret_holds_for_odds_between_secret_values_only(tmp_path: Path) -> None:
    assert isinstance(bound.check(replace(about_the_secret(), notion="lip", epsilon=0.4).write(tmp_path)), Unchecked)


def of_boxes(change: Callable[[search.Boxes], None]) -> Callable[[Case], None]:
    """Other boxes."""
    return lambda case: change(case.boxes)


def lowered(case: Case) -> None:
    case.peak -= ROOM + 1e-4


def other_dual(case: Case) -> None:
    case.duals = case.duals + np.array([-0.01, 0.01, 0, 0])


def times(factor: float) -> Callable[[search.Boxes], None]:
    """Any multipliers prove something, but these prove less than is claimed."""

    def change(boxes: search.Boxes) -> None:
        boxes.multipliers = [factor * one for one in boxes.multipliers]

    return change


def beyond_numbers(boxes: search.Boxes) -> None:
    """What floats make of these is not a number, which is neither above a peak nor below."""
    boxes.multipliers = [np.full_like(one, 1.7e308) for one in boxes.multipliers]


def levels_beyond_numbers(boxes: search.Boxes) -> None:
    boxes.multipliers = [np.full_like(one, 1e300) for one in boxes.multipliers]
    boxes.levels = [(-1) ** k * 1.7e308 for k in range(len(boxes))]


def scaled_beyond_numbers(boxes: search.Boxes) -> None:
    boxes.inequalities = boxes.inequalities * 1e307
    boxes.multipliers = [one * 1e10 + 1e10 for one in boxes.multipliers]


def no_number(boxes: search.Boxes) -> None:
    boxes.multipliers[0] = np.full_like(boxes.multipliers[0], math.nan)


def infinite_level(boxes: search.Boxes) -> None:
    boxes.levels[-1] = math.inf


def cuts(places: slice, change: Callable[..., list[tuple[int, int, float, bool]]]) -> Callable[[search.Boxes], None]:
    """Other boxes at some places of the list."""

    def spoil(boxes: search.Boxes) -> None:
        boxes.cuts[places] = change(boxes, *boxes.cuts[places])

    return spoil


def dropped(boxes: search.Boxes) -> None:
    boxes.cuts, boxes.multipliers, boxes.levels = boxes.cuts[:-1], boxes.multipliers[:-1], boxes.levels[:-1]


def tighter(boxes: search.Boxes) -> None:
    boxes.inequalities = boxes.inequalities + 0.05


def infinite(boxes: search.Boxes) -> None:
    boxes.inequalities = np.full_like(boxes.inequalities, math.inf)


FALSE: dict[str, tuple[str, Callable[[Case], None]]] = {
    "a lower bound": ("more than the peak", lowered),
    "other duals": ("more than the peak", other_dual),
    "multipliers left out": ("more than the peak", of_boxes(times(0))),
    "multipliers three times as large": ("more than the peak", of_boxes(times(3))),
    "multipliers beyond numbers": ("not split", of_boxes(beyond_numbers)),
    "levels beyond numbers": ("not split", of_boxes(levels_beyond_numbers)),
    "inequalities beyond numbers": ("not split", of_boxes(scaled_beyond_numbers)),
    "a multiplier below zero": ("a multiplier is not one", of_boxes(times(-1))),
    "a multiplier that is no number": ("a multiplier is not one", of_boxes(no_number)),
    "a level that is no number": ("a multiplier is not one", of_boxes(infinite_level)),
    "a cut that is no number": ("no half of one before it", of_boxes(cuts(slice(1, 3), lambda boxes, one, _: [
        (*one[:2], math.nan, upper) for upper in (False, True)]))),
    "a box dropped": ("two halves at one place", of_boxes(dropped)),
    "a box moved": ("two halves at one place", of_boxes(cuts(slice(-1, None), lambda boxes, one: [
        (*one[:2], one[2] + 0.01, one[3])]))),
    "the same half twice": ("two halves at one place", of_boxes(cuts(slice(-1, None), lambda boxes, one: [
        (*one[:3], False)]))),
    "another parent": ("two halves at one place", of_boxes(cuts(slice(-2, None), lambda boxes, *some: [
        (0, *one[1:]) for one in some]))),
    "a child before its parent": ("no half of one before it", of_boxes(cuts(slice(1, 2), lambda boxes, one: [
        (len(boxes) - 1, *one[1:])]))),
    "a box that is its own parent": ("no half of one before it", of_boxes(cuts(slice(2, 3), lambda boxes, one: [
        (2, *one[1:])]))),
    "a coordinate that does not exist": ("no half of one before it", of_boxes(cuts(slice(1, 3), lambda boxes, *_: [
        (0, 4, 0.5, False), (0, 4, 0.5, True)]))),
    "a tighter inequality": ("none that lip asks for", of_boxes(tighter)),
    "an infinite inequality": ("none that lip asks for", of_boxes(infinite)),
}  # fmt: skip


@pytest.mark.parametrize("what", FALSE)
def test_what_does_not_prove_the_bound_fails(what: str, tmp_path: Path) -> None:
    said, change = FALSE[what]
    case = lip()
    change(case)
    with pytest.raises(Broken, match=said):
        bound.check(case.write(tmp_path))


def test_an_inequality_of_another_notion_is_not_taken(tmp_path: Path) -> None:
    loose, tight = proven("lip", 0.4), proven("ldp-x", 0.9)
    stolen = replace(tight, notion="lip", epsilon=0.4, boxes=copy.deepcopy(tight.boxes))
    assert loose.bound > stolen.bound
    with pytest.raises(Broken):
        bound.check(stolen.write(tmp_path))


def sizes(**changes: Any) -> Callable[[Path], None]:
    """solution.json says other sizes."""
    return lambda kept: edit(kept / "solution.json", lambda told: told["certificate"]["proof"].update(changes))


def file_of(content: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """Another proof.bin, with its own hash."""

    def damage(kept: Path) -> None:
        packed = content((kept / "proof.bin").read_bytes())
        (kept / "proof.bin").write_bytes(packed)
        sizes(sha256=hashlib.sha256(packed).hexdigest())(kept)

    return damage


def of_certificate(**changes: Any) -> Callable[[Path], None]:
    """Another certificate in solution.json."""
    return lambda kept: edit(kept / "solution.json", lambda told: told["certificate"].update(changes))


def of_solution(**changes: Any) -> Callable[[Path], None]:
    return lambda kept: edit(kept / "solution.json", lambda told: told.update(changes))


def bomb(_: bytes) -> bytes:
    """Many zeros in few bytes."""
    return zlib.compress(bytes(1 << 26), 1)


def linked(kept: Path) -> None:
    (kept / "proof.bin").rename(kept / "elsewhere")
    (kept / "proof.bin").symlink_to("elsewhere")


DAMAGE: dict[str, tuple[str, Callable[[Path], None]]] = {
    "cut short": ("another size", file_of(lambda packed: packed[:-9])),
    "something after it": ("another size", file_of(lambda packed: packed + b"and more")),
    "less in it": ("another size", file_of(lambda packed: zlib.compress(zlib.decompress(packed)[:-8]))),
    "one number more in it": ("another size", file_of(lambda raw: zlib.compress(zlib.decompress(raw) + bytes(8)))),
    "nothing at all": ("another size", file_of(lambda _: b"")),
    "a pickled object": ("cannot be unpacked", file_of(lambda _: pickle.dumps({"boxes": []}))),
    "a pickled object, packed": ("another size", file_of(lambda _: zlib.compress(pickle.dumps([1])))),
    "a bomb": ("another size", file_of(bomb)),
    "no file": ("cannot be read", lambda kept: (kept / "proof.bin").unlink()),
    "a link": ("cannot be read", linked),
    "huge sizes": ("at most", sizes(multipliers=1 << 26)),
    "another number of boxes": ("another size", sizes(boxes=3)),
    "no boxes": ("the proof is none", sizes(boxes=0)),
    "sizes that are no numbers": ("a whole number", sizes(boxes="many")),
    "an inequality too few": ("another size", sizes(inequalities=1)),
    "a peak that is none": ("a number", of_certificate(peak=None)),
    "a huge dual": ("another bound", of_certificate(duals=[1e300, 0, 0, 0])),
    "duals that are no prices": ("no prices", of_certificate(duals=[-1e8, 0, 0, 1e-8])),
    "too few duals": ("another number of duals", of_certificate(duals=[0.1])),
    "duals of what is not known": ("'public' or 'secret'", of_certificate(about="everything")),
    "an unknown key": ("an object of", of_certificate(trust="me")),
    "another format": ("funnel-solution/1", of_solution(format="funnel-solution/2")),
    "no bound": ("not the bound that the solver certified", of_solution(upper_bounds=[None])),
    "another bound": ("not the bound that the solver certified", of_solution(upper_bounds=[0.5])),
    "two bounds": ("not the bound that the solver certified", of_solution(upper_bounds=[1.0, 1.0])),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_certificate_fails_with_its_place(what: str, tmp_path: Path) -> None:
    said, damage = DAMAGE[what]
    made = lip().write(tmp_path)
    damage(made.folder)
    with pytest.raises(Broken, match=said) as caught:
        bound.check(Release(made.release, made.private))
    assert caught.value.file in ("solution.json", "proof.bin", "release.json")


def test_a_bomb_is_never_unpacked(tmp_path: Path) -> None:
    made = lip().write(tmp_path)
    file_of(bomb)(made.folder)
    again = Release(made.release, made.private)
    tracemalloc.start()
    try:
        with pytest.raises(Broken):
            bound.check(again)
        assert tracemalloc.get_traced_memory()[1] < 1 << 23
    finally:
        tracemalloc.stop()


def test_a_bound_above_what_is_proven_may_be_stated_but_none_below(tmp_path: Path) -> None:
    case = lip()
    assert isinstance(bound.check(case.write(tmp_path / "above", upper_bounds=(case.bound + 1e-7,))), str)
    with pytest.raises(Broken, match="one of another bound"):
        bound.check(case.write(tmp_path / "below", upper_bounds=(case.bound - 2e-7,)))


def test_a_bound_below_what_the_release_reached_fails(tmp_path: Path) -> None:
    made = lip().write(tmp_path)
    edit(made.release / "release.json", lambda told: told["utility"].update(normalised=0.99))
    with pytest.raises(Broken, match="below what the release reached"):
        bound.check(Release(made.release, made.private))


def test_the_entropy_of_x_takes_no_certificate(tmp_path: Path) -> None:
    case, whole = lip(), entropy(COUNTS.sum(axis=0))
    case.peak += 10
    told = bound.check(case.write(tmp_path, upper_bounds=(whole,), certificate=None))
    assert told == f"H(X) = {whole:.6f} nats, which bounds everything"


def test_what_is_not_proven_is_not_checked_and_says_why(tmp_path: Path) -> None:
    assert "only the solver's word" in bound.check(lip().write(tmp_path / "word", certificate=None)).reason
    assert "no proof of the peak" in bound.check(replace(lip(), boxes=None).write(tmp_path / "peak")).reason
    made = lip().write(tmp_path / "published")
    assert "private evidence" in bound.check(Release(made.release)).reason


@given(
    st.lists(st.integers(1, 40), min_size=8, max_size=8), st.floats(0.1, 1.5), st.integers(0, 6),
    st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_no_boxes_whatever_prove_less_than_the_highest_price(
    numbers: list[int], epsilon: float, splits: int, seed: int
) -> None:
    counts, random = np.array(numbers).reshape(2, 4), np.random.default_rng(seed)
    rows = search.cone(counts, "lip", epsilon)
    assume((np.abs(rows).max(axis=1) > 0).all())
    linear = random.normal(size=4)
    highest = float(priced(search.vertices(rows), linear).max())
    told = [(-1, 0, 0.0, False)]
    for split in range(splits):
        which, at = int(random.integers(4)), float(random.uniform(-0.1, 1.1))
        told += [(split, which, at, False), (split, which, at, True)]
    parent, which, at, upper = (np.array(part) for part in zip(*told, strict=True))
    count = len(told)
    tree = Tree(
        parent, which, at, upper.astype(int), np.arange(0, 2 * count + 1, 2), random.integers(4, size=2 * count),
        random.exponential(size=2 * count) * random.choice([0, 1, 100], 2 * count), random.normal(size=count),
    )  # fmt: skip
    with pytest.raises(Broken):
        Replay(tree, children_of(tree, 4, free=False), Rows.of(rows).rows, linear, highest - 1e-6).run()


def test_inequalities_are_matched_whatever_their_scale_and_order() -> None:
    own = Rows.of(search.cone(COUNTS, "ldp", 0.7))
    order = np.random.default_rng(0).permutation(len(own.rows))
    times = np.linspace(0.01, 300, len(own.rows))[:, None]
    found, scale = own.match(own.rows[order] * times)
    assert found.tolist() == order.tolist()
    assert scale == pytest.approx(times.ravel())
    assert own.match(own.rows[order] * times + 1e-3)[0].tolist() == [-1] * len(own.rows)


@pytest.mark.long
@given(st.lists(st.tuples(st.integers(1, 200), st.integers(1, 200)), min_size=2, max_size=6), st.floats(0.05, 3))
def test_with_two_secrets_conditions_leave_the_interval_of_the_closed_form(counts: list[Any], epsilon: float) -> None:
    """What a notion says in whole numbers is, for two secret values, what its definition gives by hand.

    Mathematics, c = 2 in closed form.
    """
    table, e = np.array(counts).T, math.exp(epsilon)
    assume(len({Fraction(one, one + two) for one, two in counts}) > 1)
    one, two = (table.sum(axis=1) / table.sum()).tolist()
    forms = {
        "lip": (max(one / e, 1 - e * two), min(e * one, 1 - two / e)),
        "srlip": (max(one / e, 1 - e * two), min(e * one, 1 - two / e)),
        "pml": (max(0.0, 1 - e * two), min(1.0, e * one)),
        "ldp": (one / (one + e * two), e * one / (e * one + two)),
        "perfect": (one, one),
    }
    block = Alphabet(("x",), tuple((str(x),) for x in range(len(counts))))
    for notion, closed in forms.items():
        manifest = replace(sample(notion, sizes=(len(counts),), secret=2).manifest, epsilon=epsilon)
        asked = conditions(manifest, block, table)
        assert asked is not None
        own = rows_of(asked, table.sum(axis=0) / table.sum())
        rows = np.concatenate([own.rows, -own.rows]) if own.equal else own.rows[own.rows.max(axis=1) > 0]
        told = table[0] / table.sum(axis=0)
        ends = bound.between(told, rows)
        assert ends is not None and np.clip(ends, told.min(), told.max()) == pytest.approx(
            np.clip(closed, told.min(), told.max()), abs=1e-9
        ), notion
    one_by_one = apart(len(counts), Fraction(epsilon))
    assert one_by_one is not None
    if len(counts) > 2:
        rows = rows_of(one_by_one, table.sum(axis=0) / table.sum()).rows
        assert bound.between(table[0] / table.sum(axis=0), rows) is None, "the usual LDP is about every value"
