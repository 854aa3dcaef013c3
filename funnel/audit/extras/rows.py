"""Two nights of which one hash says that all rows are the same: so are their counts, and the people of their digests.

So is what may be known of them, of a column's own values or groups as far as both nights tell of these.

Values are compared as far as both nights mean and name the same by them. Where a lock does not know a value, its rows
are in no count, or under `other`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from funnel.audit.extras.knowable import Cells, Column, Knowable, columns_of, known_alike
from funnel.audit.kernel.verdict import Broken
from funnel.data.alphabet import OTHER, folded
from funnel.format import people
from funnel.format.counts import CountsFile
from funnel.format.known import NAME as KNOWN
from funnel.ledger.nights import Night, Shared

Pairs = Sequence[tuple[Column, Column]]
"""The columns of both nights, in one order: in which blocks they stand is each night's own."""


def same_rows(
    nights: tuple[Night, Night],
    counted: tuple[CountsFile, CountsFile | None],
    told: tuple[Knowable, Knowable] | None,
) -> None:
    """Tonight's rows are those of an earlier night, as far as the files of both show. Raises Broken.

    Under another key no hash is the same.
    """
    own, night = nights
    columns = columns_of(own.drawn), columns_of(night.drawn)
    read = [[*map(folded, each.secret), "", *(folded(one.name) for one in found)]
            for each, found in zip(nights, columns, strict=True)]  # fmt: skip
    if read[0] != read[1]:
        what = f"its hash of all rows is that of {night.release}, which read other columns"
        raise Broken(people.NAME, what, read[1], read[0])
    one, other = own.digest, night.digest
    if one is None:
        return
    if other is not None and one.key != other.key:
        what = f"its hash of all rows is that of {night.release}, and it was made with another key"
        raise Broken(people.NAME, what, other.key, one.key)
    pairs = [*zip(*columns, strict=True)]
    then = one.rows if other is None else other.rows  # as many, if all are the same
    found = [("rows", one.rows == then)]
    if counted[1] is not None:
        tables = _cells(counted[0]), _cells(counted[1])
        out = one.rows - tables[0].total(), then - tables[1].total()
        found += _counts(nights, pairs, out, tables)
        if told is not None:
            less = _less(nights, pairs, out)
            by_known = known_alike(pairs, told, _alike(pairs), less)
            found.append((KNOWN, by_known is not None and _may_be(by_known, less)))
    if one.entity is not None and other is not None:
        both = Shared(own, night, (one, other))
        kept = both.secret_kept()
        names = [mine.name for (mine, _), same in zip(pairs, _alike(pairs), strict=True) if same]
        found += [("people", both.sizes == [len(both)] * 2), ("secrets", kept is None or bool(kept.all()))]
        found += [(name, both.texts(0, name) == both.texts(1, name)) for name in names]
        found += [(mine.name, _kept(both, mine, then)) for mine, then in pairs if mine.base == then.base]
    for name, same in found:
        if not same:
            what = f"its hash says that all rows are those of {night.release}: {name} of them are not"
            raise Broken(people.NAME, what, "the same", "others")


def _kept(both: Shared, mine: Column, then: Column) -> bool:
    """Whether nobody has another value of a column, as far as both nights name their values.

    Of a block of several, a combination may be without a name though each of its values has one.
    """
    if len(mine.block.columns) == len(then.block.columns) == 1:
        kept = both.kept(mine.name)
        return kept is None or bool(kept.all())
    found = both.texts(0, mine.name), both.texts(1, mine.name)
    if found[0] is None or found[1] is None:
        return True
    told = zip(both.drawn(0, mine.name, found[0]), both.drawn(1, mine.name, found[1]), strict=True)
    return all(now == was or OTHER in (now, was) for now, was in told)


def _cells(file: CountsFile) -> Cells:
    """Records by the values of the secret and of each column."""
    values, found = [one.values for one in file.blocks], Cells()
    for s, *codes, number in file.cells:
        texts = chain.from_iterable(labels[code] for labels, code in zip(values, codes, strict=True))
        found[file.secret.values[s], *((text,) for text in texts)] += number
    return found


def _alike(pairs: Pairs) -> list[bool]:
    """Whether both nights mean the same by the values of each column, and by those that stand in its block.

    In other blocks values without a name are put together otherwise.
    """
    return [
        mine.block.meaning == then.block.meaning
        if mine.block.columns == then.block.columns
        else mine.meaning == then.meaning and all(one.block.meaning == one.block.base for one in (mine, then))
        for mine, then in pairs
    ]


def _counts(
    nights: tuple[Night, Night], pairs: Pairs, out: tuple[int, int], tables: tuple[Cells, Cells]
) -> Iterator[tuple[str, bool]]:
    """Of all columns that mean the same together, and of every other one, whether counts may be of the same rows.

    `out` is how many rows no counts of a night have.
    """
    alike = _alike(pairs)
    places = [place for place, same in enumerate(alike) if same]
    names = ", ".join(pairs[place][0].name for place in places)
    yield names or "secrets", _may_be([_of(table, places) for table in tables], _less(nights, pairs, out))
    for place, (mine, then) in enumerate(pairs):
        if not alike[place] and mine.base == then.base:
            columns = [_of(table, [place]) for table in tables]
            known = nights[0].values(mine.name) & nights[1].values(then.name)
            pooled = [_pooled(one, known) for one in columns]
            # Of a block of several columns the values that are known may be in a combination that is not.
            several = any(len(one.block.columns) > 1 for one in (mine, then))
            less = [n + several * one.total() for n, one in zip(out, pooled, strict=True)]
            yield mine.name, _may_be([one - aside for one, aside in zip(columns, pooled, strict=True)], less)


def _less(nights: tuple[Night, Night], pairs: Pairs, out: tuple[int, int]) -> list[int]:
    """Of each night how many rows may be missing that the other one counts: none where it knows all of its values."""
    alike = all(_alike(pairs)) and all(mine.block.columns == then.block.columns for mine, then in pairs)
    return [0 if alike and _has_all(nights[place], nights[1 - place]) else out[place] for place in (0, 1)]


def _of(table: Cells, places: Sequence[int]) -> Cells:
    """Records by secret and some columns."""
    found = Cells()
    for (secret, *labels), number in table.items():
        found[secret, *(labels[place] for place in places)] += number
    return found


def _pooled(table: Cells, known: frozenset[str | None]) -> Cells:
    """Records whose value of a column only one night has a name for."""
    return Cells({cell: n for cell, n in table.items() if cell[1][0] == OTHER or cell[1][0] not in known})


def _may_be(tables: Sequence[Cells], less: Sequence[int]) -> bool:
    """Whether of each night no more records are missing in the other one than are in none of its counts, `less`."""
    return all((tables[1 - place] - tables[place]).total() <= less[place] for place in (0, 1))


def _has_all(one: Night, other: Night) -> bool:
    """Whether a night knows all values of blocks that another one knows, and so counts all that this counts."""
    return all(theirs is not None and mine is not None and mine >= theirs
               for mine, theirs in zip(one.named, other.named, strict=True))  # fmt: skip
