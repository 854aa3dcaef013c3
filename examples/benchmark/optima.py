"""What the optimum is measured on: tables, notions, what is asked of each, and what each is compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import duckdb
import numpy as np
from measuring import Row, against_polytope, kept, solved

from funnel.data import Alphabet, Joint
from funnel.data.joint import IntArray
from funnel.notions import NOTIONS, Notion

CENSUS = Path(__file__).parent.parent / "census" / "census.parquet"
RECORDS = 32_561
EPSILONS = (0.5, 1.0, 2.0)
_QUICK = 10.0
"""Seconds on the wall for a search that would take long."""


@dataclass(frozen=True)
class Case:
    """Rows of one table, in one process of its own that has `limit` seconds; quick ones take the first row only."""

    about: str
    limit: float
    rows: Callable[[bool], Iterator[Row]]


def notion(kind: str, epsilon: float, **options: str) -> Notion:
    """A notion at an epsilon in nats."""
    return NOTIONS[kind](notion=kind, epsilon=epsilon, **options)


@cache
def census(secret: str, *public: str) -> Joint:
    """N[s, x] of census columns, the public ones as one block; `?` is a value like any other."""
    columns = ", ".join(f'"{name}"' for name in (secret, *public))
    rows = duckdb.sql(f"SELECT {columns}, count(*) FROM '{CENSUS}' GROUP BY ALL ORDER BY ALL").fetchall()
    s, x = Alphabet.of((secret,), [row[:1] for row in rows]), Alphabet.of(public, [row[1:-1] for row in rows])
    places = [{value: place for place, value in enumerate(one.values)} for one in (s, x)]
    cells = np.array([[places[0][row[:1]], places[1][row[1:-1]]] for row in rows])
    return Joint(s, (x,), cells, np.array([row[-1] for row in rows]))


@cache
def records(secret: str, rest: str) -> Joint:
    """Whole records of the census: the secret is released too, so X = (S, U)."""
    apart = census(secret, rest)
    return whole(apart.table())


def whole(table: IntArray) -> Joint:
    """Counts N[s, u] as a joint distribution of S and X = (S, U), over the cells that occur."""
    cells = np.argwhere(table > 0)
    values = tuple((f"s{s}", f"u{u}") for s, u in cells)
    secret = Alphabet(("S",), tuple((f"s{s}",) for s in range(len(table))))
    places = np.column_stack([cells[:, 0], np.arange(len(cells))])
    return Joint(secret, (Alphabet(("S", "U"), values),), places, table[table > 0])


@cache
def drawn(shape: tuple[int, ...], count: int = RECORDS) -> IntArray:
    """Counts of records drawn from a Dirichlet distribution with parameter 1/2, seed 0, of the same generator."""
    generator = np.random.default_rng(0)
    chances = generator.dirichlet(np.full(int(np.prod(shape)), 0.5))
    return np.asarray(generator.multinomial(count, chances).reshape(shape), np.int64)


def binary() -> Joint:
    """Two secret values and a thousand public ones, less those that no record has."""
    table = drawn((2, 1000))
    return Joint.from_table(table[:, table.any(axis=0)])


@cache
def even(shape: tuple[int, ...], count: int = 1_000_000) -> IntArray:
    """Counts in proportion to chances that are uniform on [0, 1), from seed 1."""
    chances = np.random.default_rng(1).uniform(size=shape)
    return np.asarray(np.rint(chances / chances.sum() * count), np.int64)


def attributes(shape: tuple[int, ...], *, skewed: bool = False) -> Joint:
    """A binary secret and one public block of several columns of these sizes; `skewed` has many rare values."""
    table = (drawn if skewed else even)((2, *shape)) + 1
    cells = np.argwhere(table > 0)
    columns = tuple(f"X{j}" for j in range(1, len(shape) + 1))
    values = tuple(tuple(f"v{value}" for value in x) for x in np.ndindex(*shape))
    places = np.column_stack([cells[:, 0], np.ravel_multi_index(tuple(cells[:, 1:].T), shape)])
    return Joint(Alphabet(("S",), (("s0",), ("s1",))), (Alphabet(columns, values),), places, table[table > 0])


def beliefs(joint: Callable[[], Joint], gap: float, seconds: float, quick: bool) -> Iterator[Row]:
    """LIP and LDP at three epsilons."""
    for kind in ("lip", "ldp"):
        for epsilon in EPSILONS[:1] if quick else EPSILONS:
            yield solved(joint(), notion(kind, epsilon), gap, seconds, listing=5.0 if quick else 60.0)


def side(joint: Callable[[], Joint], gap: float, seconds: float, quick: bool) -> Iterator[Row]:
    """SRLIP over all columns as one alphabet."""
    for epsilon in EPSILONS[:1] if quick else EPSILONS:
        asked = notion("srlip", epsilon, solve="joint")
        yield solved(joint(), asked, gap, seconds, limit=_QUICK if quick else None, listing=5.0)


def boxes(joint: Callable[[], Joint], gap: float, seconds: float, quick: bool) -> Iterator[Row]:
    """Robust LDP by way of boxes."""
    for epsilon in EPSILONS[:1] if quick else EPSILONS[:2]:
        asked = notion("rldp", epsilon)
        yield solved(joint(), asked, gap, seconds, limit=_QUICK if quick else None, least=4.0)


def robust(gap: float, seconds: float, quick: bool) -> Iterator[Row]:
    """Robust LDP exactly, on tables drawn as in [RLDP] section 8.2."""
    for shape in ((2, 2), (2, 5), (5, 2), (5, 6))[: 1 if quick else 4]:
        for count in (RECORDS, 500):
            yield kept(whole(drawn(shape, count)), notion("rldp", 1.0), "optimal", gap, seconds, str(shape))


def theorem(quick: bool) -> Iterator[Row]:
    """The polytope of [DS] Theorem 2; a = 5 takes it minutes."""
    for a in (3, 4) if quick else (3, 4, 5):
        yield against_polytope(a, 2, 0.5, asked=20_000.0 if a == 5 else None)


CASES: dict[str, Case] = {
    "education": Case(
        "census, occupation hidden (15), education public (16)",
        900,
        partial(beliefs, partial(census, "occupation", "education"), 1e-6, 5.0),
    ),
    "country": Case(
        "census, relationship hidden (6), native country public (42)",
        1200,
        partial(beliefs, partial(census, "relationship", "native_country"), 1e-6, 20.0),
    ),
    "binary": Case("a binary secret, a thousand values", 600, partial(beliefs, binary, 1e-9, 5.0)),
    "side-3x3x4": Case(
        "side knowledge, 3 x 3 x 4", 300, partial(side, partial(attributes, (3, 3, 4)), 1e-3, 60.0)
    ),
    "side-5x4x4": Case(
        "side knowledge, 5 x 4 x 4", 300, partial(side, partial(attributes, (5, 4, 4)), 1e-3, 60.0)
    ),
    "side-skewed": Case(
        "side knowledge, 3 x 3 x 4, most values rare",
        300,
        partial(side, partial(attributes, (3, 3, 4), skewed=True), 1e-3, 60.0),
    ),
    "side-16x6x2": Case(
        "side knowledge, census: education, relationship and sex public, income hidden",
        300,
        partial(side, partial(census, "income", "education", "relationship", "sex"), 1e-2, 60.0),
    ),
    "box-15x16": Case(
        "robust by boxes, census: occupation (15, hidden) and education (16)",
        1500,
        partial(boxes, partial(records, "occupation", "education"), 1e-2, 600.0),
    ),
    "box-42x6": Case(
        "robust by boxes, census: native country (42, hidden) and relationship (6)",
        1500,
        partial(boxes, partial(records, "native_country", "relationship"), 1e-2, 600.0),
    ),
    "robust": Case("exactly robust, c x a2 drawn, 32,561 and 500 records", 900, partial(robust, 1e-3, 60.0)),
    "theorem-2": Case("the literal polytope of [DS] Theorem 2, c = 2, epsilon 0.5", 900, theorem),
}
