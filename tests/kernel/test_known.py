"""What somebody may know, as the kernel reads it: its measure against the definition, and files that do not fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from funnel.audit.extras import partitions
from funnel.audit.kernel import channel as kernel
from funnel.audit.kernel import notions, records
from funnel.audit.kernel.channel import Channel, Known
from funnel.audit.kernel.records import Block
from funnel.audit.kernel.verdict import Broken
from funnel.data.convert import known_file
from funnel.format.cells import Values, Wide
from funnel.format.known import MERGED, NAME, KnownFile, Level
from funnel.format.manifest import Parameters
from funnel.measure.side import Knowledge, uncovered
from tests.kernel.samples import sample
from tests.support.knowing import by_definition, known_joint, known_records


def kernel_known(joint, knows, minimum: int) -> Known:
    file = known_file(joint.finer)
    rows = np.array(file.cells)
    width = len(joint.shape)
    columns = tuple(level.column for level in file.levels)
    return Known(columns, rows[:, :width], rows[:, width:-1], rows[:, -1], knows, minimum)


@given(known_records(), st.sampled_from([1, 2, ("age",), ("sex", "age")]), st.sampled_from([1, 6]), st.data())
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_measure_is_the_definition(made, knows, minimum, data):
    records, columns = made
    joint = known_joint(records, columns, minimum)
    weights = []
    for block in joint.blocks:
        top = np.array([data.draw(st.integers(0, 8)) for _ in range(len(block))])
        weights.append(np.stack([top, 8 - top]))
    blocks = tuple(Block(axis, one.columns, one.values, 3, rows[:, None, :])
                   for axis, (one, rows) in enumerate(zip(joint.blocks, weights, strict=True)))  # fmt: skip
    known = kernel_known(joint, knows, minimum)
    found = notions.srlip(Channel(joint.dense(), blocks, Parameters(knows=knows), known=known))
    expected = by_definition(records, columns, weights, knows, minimum)
    assert found.text == notions.worst(expected).text
    assert by_hand(joint.finer, known) == uncovered(joint.finer, Knowledge.of(knows))


def by_hand(finer, known: Known) -> tuple[int, int, int]:
    """People with an x_J that too few share, columns by their finest levels; pairs of person and J; how many J."""
    finest = {places[0] for places in finer.columns().values()}
    sets = [places for places in known.sets() if {*places} <= finest]
    missed = np.zeros(len(known.number), int)
    for places in sets:
        told = [tuple(row) for row in known.values[:, list(places)]]
        for row, own in enumerate(told):
            shared = sum(known.number[other] for other, one in enumerate(told) if one == own)
            missed[row] += bool(places) and (0 in own or shared < known.minimum)
    return int(known.number[missed > 0].sum()), int(missed @ known.number), len(sets)


def made(change=lambda file: file):
    """A release of two columns, and what may be known of them."""
    one = sample("srlip", sizes=(3, 2))
    stated = replace(one.manifest, parameters=replace(one.manifest.parameters, knows=1))
    blocks = records.blocks(one.protocol, stated)
    joint = records.joint(one.counts, blocks, stated)
    values = [(block.columns[0], tuple(label[0] for label in block.values)) for block in joint.alphabets[1:]]
    levels = tuple(Level(column, "own", labels) for column, labels in values)
    rows = tuple((*codes, *(code + 1 for code in codes[1:]), number)
                 for codes, number in zip(joint.cells.tolist(), joint.number.tolist(), strict=True))  # fmt: skip
    return change(KnownFile("funnel-known/1", levels, rows)), joint, stated


def groups(known: Known) -> list[set[int]]:
    return sorted((set(rows.tolist()) for rows in known.groups()), key=sorted)


def test_what_is_released_may_be_known_whatever_the_file_says_of_it():
    honest = kernel.known(*made())
    assert honest.knows == 1
    assert groups(honest) == groups(kernel.known(*made(other_value))) == groups(kernel.known(*made(hidden_value)))
    assert groups(honest) == groups(kernel.known(*made(fewer_levels)))


def test_own_values_that_one_label_puts_together_may_be_known():
    """Of a column that is told as it is alone, though one of its labels stands for two values."""
    told, honest = (groups(kernel.known(*made(change))) for change in (put_together, lambda file: file))
    file, joint, _ = made(put_together)
    both = [i for i, row in enumerate(file.cells) if row[1] == 0]
    alone = {i for i in both if file.cells[i][3] > len(joint.alphabets[1].values)}
    assert alone and alone < {*both} and alone in told and {*both} in told and alone not in honest


def put_together(file):
    """Somebody with the first value of the first column has another one of their own."""
    one, *rest = file.levels
    first = [i for i, row in enumerate(file.cells) if row[1] == 0][-1]
    cells = [(*row[:3], len(one.values) + 1, *row[4:]) if i == first else row for i, row in enumerate(file.cells)]
    return replace(file, levels=(replace(one, values=(*one.values, "new")), *rest), cells=tuple(cells))


def other_count(file):
    (*codes, number), *rest = file.cells
    return replace(file, cells=((*codes, number + 1), *rest))


def other_value(file):
    one, *rest = file.levels
    return replace(file, levels=(replace(one, values=tuple(reversed(one.values))), *rest))


def hidden_value(file):
    (s, x, z, _, *others), *rest = file.cells
    return replace(file, cells=((s, x, z, 0, *others), *rest))


def test_own_values_are_the_first_level_of_a_column():
    """Of the levels that tell what is released the kernel goes by the labels, and not by the last one told."""
    file, *_ = made()
    column = file.levels[0].column
    own, released = Level(column, "own", ("0",)), Level(column, "released", ("1",))
    assert not [*replace(file, levels=(own, released)).flaws()]
    for levels in ((released, own), (own, own), (own, released, released)):
        assert [*replace(file, levels=levels).flaws()]


def fewer_levels(file):
    return replace(file, levels=file.levels[1:], cells=tuple((*row[:3], *row[4:]) for row in file.cells))


def test_other_records_are_refused():
    with pytest.raises(Broken) as broken:
        kernel.known(*made(other_count))
    assert broken.value.file == NAME


def renamed(file):
    one, *rest = file.levels
    return replace(file, levels=(replace(one, column="a"), *rest))


def wide(*inside, labels=("column00", "column01", "column02")):
    """Cells named as the first column of the release, over other columns, which are released with these labels."""
    values = tuple(Values(name, "VARCHAR", labels, None, None, None) for name in inside)
    return (Wide("column0", values, (), (), "0" * 64),)


def test_columns_inside_cells_have_no_label_to_be_compared_with():
    assert kernel.known(*made(renamed), wide("a")).knows == 1


@pytest.mark.parametrize("cells", [wide(), (*wide("a"), *wide("b")), wide("column1"), wide("a", "a")])
def test_a_column_is_not_called_a_cell_so_that_nobody_is_said_to_know_it(cells):
    """Cells over no column, told of twice, or over a column that is released beside: less had to be measured."""

    def told(file):
        two = replace(file.levels[0], column="b")
        return replace(file, levels=(*renamed(file).levels, two),
                       cells=tuple((*row[:-1], row[3], row[-1]) for row in file.cells))  # fmt: skip

    with pytest.raises(Broken, match=r"cells\.json"):
        kernel.known(*made(told), cells)


def merged(file):
    """With the second and the third value of the column put together, as they are released."""
    file = renamed(file)
    level = Level("a", MERGED, (file.levels[0].values[0], "other"))
    return replace(file, levels=(*file.levels, level),
                   cells=tuple((*row[:-1], min(row[3], 2), row[-1]) for row in file.cells))  # fmt: skip


def no_longer_itself(file):
    file = merged(file)
    return replace(file, cells=tuple((*row[:-2], 3 - row[-2], row[-1]) for row in file.cells))


def rarely_itself(file):
    file = merged(file)
    return replace(file, cells=tuple((*row[:-2], 0, row[-1]) for row in file.cells))


def test_what_values_inside_cells_are_put_together_to_may_be_known():
    labels = (first(), "other")
    assert kernel.known(*made(merged), wide("a", labels=labels)).columns.count("a") == 2
    partitions.as_known(column(labels), made(merged)[0])
    for change in (renamed, no_longer_itself, rarely_itself):
        with pytest.raises(Broken, match="what is released of a column"):
            partitions.as_known(column(labels), made(change)[0])
    with pytest.raises(Broken, match="what is released of a column"):
        partitions.as_known(column((first(), "another")), made(merged)[0])


def column(labels):
    return wide("a", labels=labels)[0].columns[0]


def test_rare_values_inside_cells_are_put_together_to_something():
    def rare(file):
        return hidden_value(renamed(file))

    with pytest.raises(Broken, match="what is released of a column"):
        partitions.as_known(column(("column00", "column01", "column02")), made(rare)[0])


def first():
    return made()[0].levels[0].values[0]


def test_nothing_that_may_be_known_is_left_out():
    """A column inside a cell, or one that the promise names, of which no level tells."""
    with pytest.raises(Broken, match="may be known"):
        kernel.known(*made(), wide("a"))
    file, joint, stated = made()
    named = replace(stated, parameters=replace(stated.parameters, knows=("column0", "elsewhere")))
    with pytest.raises(Broken, match="elsewhere"):
        kernel.known(file, joint, named, ())


def test_who_knows_nothing_is_there_however_few_the_records_are():
    """Under a lock tonight's records may be fewer than the minimum, and then nothing was measured."""
    file, joint, stated = made()
    few = replace(stated, estimate=replace(stated.estimate, minimum=10 * joint.rows))
    none = replace(file, cells=tuple((*row[:3], 0, 0, row[-1]) for row in file.cells))
    assert len([*kernel.known(none, joint, few, ()).groups()]) == 1
