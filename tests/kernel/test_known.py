"""What somebody may know, as the kernel reads it: its measure against the definition, and files that do not fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from funnel.audit.kernel import counts, notions, protocol
from funnel.audit.kernel import known as kernel
from funnel.audit.kernel.channel import Channel
from funnel.audit.kernel.exact import nats
from funnel.audit.kernel.known import Known
from funnel.audit.kernel.protocol import Block
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
    return Known(file.levels, rows[:, :width], rows[:, width:-1], rows[:, -1], knows, minimum)


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
    assert found.text == nats(expected)
    assert known.uncovered() == uncovered(joint.finer, Knowledge.of(knows))


def made(change=lambda file: file):
    """A release of two columns, and what may be known of them."""
    one = sample("srlip", sizes=(3, 2))
    stated = replace(one.manifest, parameters=replace(one.manifest.parameters, knows=1))
    blocks = protocol.blocks(one.protocol, stated)
    joint = counts.joint(one.counts, blocks, stated)
    values = [(block.columns[0], tuple(label[0] for label in block.values)) for block in joint.alphabets[1:]]
    levels = tuple(Level(column, "own", labels) for column, labels in values)
    rows = tuple((*codes, *(code + 1 for code in codes[1:]), number)
                 for codes, number in zip(joint.cells.tolist(), joint.number.tolist(), strict=True))  # fmt: skip
    return change(KnownFile("funnel-known/1", levels, rows)), joint, stated


def test_what_is_released_may_be_known():
    known = kernel.known(*made(), ())
    assert known.knows == 1
    assert known.uncovered() == (0, 0, 3)


def other_count(file):
    (*codes, number), *rest = file.cells
    return replace(file, cells=((*codes, number + 1), *rest))


def other_value(file):
    one, *rest = file.levels
    return replace(file, levels=(replace(one, values=tuple(reversed(one.values))), *rest))


def hidden_value(file):
    (s, x, z, _, *others), *rest = file.cells
    return replace(file, cells=((s, x, z, 0, *others), *rest))


def fewer_levels(file):
    return replace(file, levels=file.levels[1:], cells=tuple((*row[:3], *row[4:]) for row in file.cells))


@pytest.mark.parametrize("change", [other_count, other_value, hidden_value, fewer_levels])
def test_files_that_do_not_fit_the_counts_are_refused(change):
    with pytest.raises(Broken) as broken:
        kernel.known(*made(change), ())
    assert broken.value.file == NAME


def test_a_notion_that_does_not_say_what_may_be_known_has_no_such_file():
    file, joint, stated = made()
    with pytest.raises(Broken):
        kernel.known(file, joint, replace(stated, parameters=Parameters()), ())


def renamed(file):
    one, *rest = file.levels
    return replace(file, levels=(replace(one, column="a"), *rest))


def wide(*inside, labels=("column00", "column01", "column02")):
    """Cells named as the first column of the release, over other columns, which are released with these labels."""
    values = tuple(Values(name, "VARCHAR", labels, None, None, None) for name in inside)
    return (Wide("column0", values, (), (), "0" * 64),)


def test_columns_inside_cells_have_no_label_to_be_compared_with():
    assert kernel.known(*made(renamed), wide("a")).knows == 1


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
    assert [level.level for level in kernel.known(*made(merged), wide("a", labels=labels)).levels][-1] == MERGED
    for change in (renamed, no_longer_itself, rarely_itself):
        with pytest.raises(Broken, match="what is released of a column"):
            kernel.known(*made(change), wide("a", labels=labels))
    with pytest.raises(Broken, match="what is released of a column"):
        kernel.known(*made(merged), wide("a", labels=(first(), "another")))


def test_rare_values_inside_cells_are_put_together_to_something():
    def rare(file):
        return hidden_value(renamed(file))

    with pytest.raises(Broken, match="what is released of a column"):
        kernel.known(*made(rare), wide("a"))


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
