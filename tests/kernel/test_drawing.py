"""A drawer that is wrong in any way that shows is refused by the claims about its draws; a right one is not."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

from funnel.audit.extras import fit
from funnel.audit.kernel import drawing
from funnel.audit.kernel import records as kernel
from funnel.audit.kernel.channel import Channel
from funnel.audit.kernel.records import Block, Joint
from funnel.audit.kernel.verdict import Broken
from funnel.data import Protocol, UnaryProtocol
from funnel.draw.draw import Drawer
from funnel.draw.tally import Tally
from funnel.format.draws import DrawsFile
from funnel.format.fields import Alphabet
from funnel.format.manifest import Parameters
from funnel.format.protocol import Sets
from tests.support.samples import alphabet, batch, fixed_key, protocol, random_protocol

ROWS = 60_000
CLAIMS = (drawing.draw_inputs, drawing.draw_outputs, drawing.draw_support, drawing.draw_fit)
CLAIMS += (drawing.draw_independence, fit.check)


class Table:
    """A table of one secret and correlated blocks, and its protocols, drawn for by the writer's Drawer."""

    def __init__(
        self,
        sizes: tuple[int, ...] = (5, 4),
        rows: int = ROWS,
        outputs: tuple[int, ...] = (6, 4),
        bits: int = 16,
    ) -> None:
        rng = np.random.default_rng(1)
        self.s = rng.integers(0, 3, rows)
        self.x = [
            np.concatenate([np.arange(size), (rng.integers(0, size, rows - size) + self.s[size:] % 2) % size])
            for size in sizes
        ]
        self.s[:3] = range(3)
        self.protocols: list[Protocol | UnaryProtocol] = [
            random_protocol(i, "xzvw"[i], a, b, bits) for i, (a, b) in enumerate(zip(sizes, outputs, strict=True))
        ]

    def draw(self) -> list[np.ndarray]:
        rows = batch(np.arange(len(self.s)), s=self.s, **{f"x{i}": x for i, x in enumerate(self.x)})
        out = Drawer(self.protocols, fixed_key(), permanent=True).draw(rows)
        return [out.column(i).to_numpy().astype(np.int64) for i in range(len(self.x))]

    def failed(self, drawn: list[np.ndarray]) -> set[str]:
        """The claims about these draws that do not hold."""
        opened, found = self._opened(drawn), set()
        for claim in CLAIMS:
            try:
                claim(opened)
            except Broken:
                found.add(claim.__name__)
        return found

    def _opened(self, drawn: list[np.ndarray]) -> SimpleNamespace:
        """What the claims read of the files of a release with these draws."""
        tally = Tally(self.protocols)
        inputs = [
            self.s * len(one.inputs) + x if one.reads_secret else x
            for one, x in zip(self.protocols, self.x, strict=True)
        ]
        tally.count(inputs, drawn)
        cells, number = np.unique(np.column_stack([self.s, *self.x]), axis=0, return_counts=True)
        names = [Alphabet(("s",), alphabet("s", 3).values)]
        names += [Alphabet(one.inputs.columns, one.inputs.values) for one in self.protocols]
        blocks = tuple(block for axis, one in enumerate(self.protocols) for block in as_blocks(axis, one))
        records = Joint(tuple(names), cells, number)
        channel = Channel(records.dense(), blocks, Parameters())
        codes, counts = tally.released
        manifest = SimpleNamespace(rows=len(self.s))
        return SimpleNamespace(
            blocks=blocks,
            records=records,
            channel=channel,
            drawn=kernel.drawn(DrawsFile("funnel-draws/1", tuple(map(grid, tally.tables))), blocks),
            answers=kernel.answers(np.column_stack([codes, counts]), blocks),
            manifest=manifest,
            counts=SimpleNamespace(private=None),
        )


def grid(table: np.ndarray) -> tuple:
    return grid_of(np.argwhere(table), table[table > 0])


def grid_of(codes: np.ndarray, numbers: np.ndarray) -> tuple:
    return tuple(map(tuple, np.column_stack([codes, numbers]).tolist()))


def as_blocks(axis: int, one: Protocol | UnaryProtocol) -> list[Block]:
    return kernel._parts(axis, protocol_file(one)) if isinstance(one, UnaryProtocol) else [
        Block(axis, one.inputs.columns, one.inputs.values, one.bits, one.weights,
              one.secret and Alphabet(one.secret.columns, one.secret.values))
    ]  # fmt: skip


def protocol_file(one: UnaryProtocol) -> Sets:
    return Sets("unary", one.inputs.columns, one.inputs.values, one.bits, one.present, one.absent, "set")


@pytest.mark.parametrize(
    "table",
    [
        Table(),
        Table((7,), outputs=(3,)),
        Table((2, 2, 2), 500, (2, 2, 2)),
        Table((40, 30), 3000, (40, 30)),
        Table((1,), 50, (2,), 4),
        Table((300,), 2000, (280,)),
        Table((3,), 100, (1,)),
    ],
    ids=[
        "two blocks",
        "one block",
        "few rows",
        "mostly rare cells",
        "constant",
        "less than a row a cell",
        "one output",
    ],
)
def test_an_honest_drawer_passes(table: Table) -> None:
    assert table.failed(table.draw()) == set()


def test_a_protocol_that_reads_the_secret_passes_and_is_checked_by_secret() -> None:
    table = Table((4,), outputs=(5,))
    weights = np.random.default_rng(5).multinomial(1 << 8, np.full(5, 0.2), size=12)
    table.protocols = [protocol("x", weights, alphabet("s", 3))]
    drawn = table.draw()
    assert table.failed(drawn) == set()
    # Drawn as if everybody had the secret of the next person: right over all, wrong for each s.
    table.protocols = [protocol("x", np.roll(weights, 4, axis=0), alphabet("s", 3))]
    assert "draw_fit" in table.failed(drawn)


def biased(table: Table, drawn: list[np.ndarray]) -> list[np.ndarray]:
    """One answer in fifty is output 0, whatever the weights say."""
    return [np.where(np.arange(ROWS) % 50 == 0, 0, drawn[0]), drawn[1]]


def wrong_input(table: Table, drawn: list[np.ndarray]) -> list[np.ndarray]:
    """Each draw answers for the row before."""
    return [np.roll(drawn[0], 1), drawn[1]]


def stuck(table: Table, drawn: list[np.ndarray]) -> list[np.ndarray]:
    """The first tenth of the rows is repeated to the end: right in kind, too many of each."""
    order = np.lexsort((np.arange(ROWS), table.x[0]))
    copied = drawn[0].copy()
    for x in range(5):
        places = order[table.x[0][order] == x]
        copied[places] = drawn[0][places[np.arange(len(places)) // 500 * 500]]
    return [copied, drawn[1]]


def off_by_one(table: Table, drawn: list[np.ndarray]) -> list[np.ndarray]:
    """The next output in one case of thirty, as a drawer with wrong thresholds would."""
    return [np.where(np.arange(ROWS) % 30 == 0, (drawn[0] + 1) % 6, drawn[0]), drawn[1]]


@pytest.mark.parametrize("fault", [biased, wrong_input, stuck, off_by_one])
def test_a_faulty_drawer_is_caught(fault: Callable[[Table, list[np.ndarray]], list[np.ndarray]]) -> None:
    table = Table()
    assert "draw_fit" in table.failed(fault(table, table.draw()))


def test_blocks_that_share_randomness_are_caught() -> None:
    """Each block alone is perfect, so only the released combinations can tell."""
    table = Table((4, 4), outputs=(4, 4))
    uniform = np.random.default_rng(9).integers(0, 1 << 16, ROWS)
    shared = [
        (one.thresholds()[x] <= uniform[:, None]).sum(axis=1) for one, x in zip(table.protocols, table.x, strict=True)
    ]
    assert table.failed(shared) == {"draw_independence", "check"}


def test_a_large_sparse_table_is_still_tested_as_a_whole() -> None:
    """No (input, output) cell expects even one row, but the outputs over all inputs do."""
    table = Table((300,), 2000, (280,))
    (drawn,) = table.draw()
    assert "draw_fit" in table.failed([np.where(np.arange(2000) % 2 == 0, drawn // 2 * 2, drawn)])


def test_an_output_of_weight_zero() -> None:
    table = Table((2,), 1000, (3,))
    table.protocols = [protocol("x", [[16, 0, 0], [8, 8, 0]])]
    (drawn,) = table.draw()
    assert table.failed([drawn]) == set()
    drawn[np.flatnonzero(table.x[0] == 0)[:2]] = 1
    assert "draw_support" in table.failed([drawn])


def coins(rows: int = 40_000) -> Table:
    table = Table((5,), rows, (5,))
    table.protocols = [UnaryProtocol(alphabet("x", 5), 16, 1 << 15, 9_000)]
    return table


def test_honest_coins_pass() -> None:
    assert coins().failed(coins().draw()) == set()
    assert coins(50).failed(coins(50).draw()) == set()


def leaning(sets: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """One value's coin falls on 1 more often."""
    return sets | (random.random(len(sets)) < 0.03).astype(np.int64) << 1


def tied(sets: np.ndarray, _: np.random.Generator) -> np.ndarray:
    """Two coins share their uniform."""
    return sets & ~1 | sets >> 1 & 1


def shuffled(sets: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Sets that have nothing to do with their record."""
    return random.permutation(sets)


@pytest.mark.parametrize(
    ("fault", "claim"), [(leaning, "draw_fit"), (tied, "draw_independence"), (shuffled, "draw_fit")]
)
def test_coins_that_fall_otherwise_are_caught(fault, claim: str) -> None:
    (drawn,) = coins().draw()
    assert claim in coins().failed([fault(drawn, np.random.default_rng(2))])


@pytest.mark.parametrize(("size", "bits", "rows"), [(22, 12, 1 << 22), (15, 62, 1 << 15)])
def test_sets_too_many_to_be_listed_are_tried_value_by_value_and_two_by_two(size, bits, rows):
    """There are no more sets than records, but of every secret too many, or of too many bits: no fault of the draws."""
    x, secret = alphabet("x", size), alphabet("s", 2)
    coins = kernel._parts(0, Sets("unary", x.columns, x.values, bits, 1 << bits - 1, 1 << bits - 2, "set"))
    joint = Joint((secret, x), np.array([[0, 0], [1, 0]]), np.array([rows // 2, rows // 2]))
    opened = SimpleNamespace(
        blocks=tuple(coins), answers=np.array([[0] * size + [rows]]), records=joint,
        manifest=SimpleNamespace(rows=rows), channel=Channel(joint.dense(), tuple(coins), Parameters()),
    )  # fmt: skip
    assert len([*drawing.across(opened)]) == size * (size - 1) // 2
