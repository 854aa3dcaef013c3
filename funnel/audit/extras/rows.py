"""Two nights of which one hash says that all rows are the same: so are their counts, and the people of their digests.

So is what may be known of them, of a column's own values or groups as far as both nights tell of these.

Values are compared as far as both nights mean and name the same by them. Where a lock does not know a value, its rows
are in no count, or under `other`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from funnel.audit.extras.told import Cells, Told, told_alike
from funnel.audit.kernel.verdict import Broken
from funnel.data.alphabet import OTHER, folded
from funnel.format import people
from funnel.format.counts import CountsFile
from funnel.format.known import NAME as KNOWN
from funnel.ledger.nights import Night, Shared


def same_rows(
    nights: tuple[Night, Night],
    counted: tuple[CountsFile, CountsFile | None],
    told: tuple[Told, Told] | None,
) -> None:
    """Tonight's rows are those of an earlier night, as far as the files of both show. Raises Broken.

    Under another key no hash is the same.
    """
    own, night = nights
    read = [[tuple(map(folded, names)) for names in (each.secret, *(block.columns for block in each.drawn))]
            for each in nights]  # fmt: skip
    if read[0] != read[1]:
        what = f"its hash of all rows is that of {night.release}, which read other columns"
        raise Broken(people.NAME, what, read[1], read[0])
    one, other = own.digest, night.digest
    if one is None or other is None:
        return
    if one.key != other.key:
        what = f"its hash of all rows is that of {night.release}, and it was made with another key"
        raise Broken(people.NAME, what, other.key, one.key)
    found = [("rows", one.rows == other.rows)]
    if counted[1] is not None:
        tables = _cells(counted[0]), _cells(counted[1])
        out = one.rows - tables[0].total(), other.rows - tables[1].total()
        found += _counts(nights, out, tables)
        if told is not None:
            less = _less(nights, out)
            by_known = told_alike((nights[0].drawn, nights[1].drawn), told, _alike(nights), less)
            found.append((KNOWN, by_known is not None and _may_be(by_known, less)))
    if one.entity is not None:
        both = Shared(own, night, (one, other))
        kept = both.secret_kept()
        alike = zip(own.drawn, _alike(nights), strict=True)
        names = [name for block, same in alike if same for name in block.columns]
        found += [("people", both.sizes == [len(both)] * 2), ("secrets", kept is None or bool(kept.all()))]
        found += [(name, both.texts(0, name) == both.texts(1, name)) for name in names]
    for name, same in found:
        if not same:
            what = f"its hash says that all rows are those of {night.release}: {name} of them are not"
            raise Broken(people.NAME, what, "the same", "others")


def _cells(file: CountsFile) -> Cells:
    """Records by the values of the secret and of each block."""
    values = [one.values for one in (file.secret, *file.blocks)]
    found = Cells()
    for *codes, number in file.cells:
        found[tuple(labels[code] for labels, code in zip(values, codes, strict=True))] += number
    return found


def _alike(nights: tuple[Night, Night]) -> list[bool]:
    """Whether both nights mean the same by the values of each block."""
    return [mine.meaning == then.meaning for mine, then in zip(nights[0].drawn, nights[1].drawn, strict=True)]


def _counts(
    nights: tuple[Night, Night], out: tuple[int, int], tables: tuple[Cells, Cells]
) -> Iterator[tuple[str, bool]]:
    """Of all blocks that mean the same together, and of every other column, whether counts may be of the same rows.

    `out` is how many rows no counts of a night have.
    """
    blocks, alike = nights[0].drawn, _alike(nights)
    places = [place for place, same in enumerate(alike) if same]
    names = ", ".join(name for place in places for name in blocks[place].columns)
    yield names or "secrets", _may_be([_of(table, places) for table in tables], _less(nights, out))
    for place, (mine, then) in enumerate(zip(blocks, nights[1].drawn, strict=True)):
        for axis, name in enumerate(mine.columns if not alike[place] else ()):
            if mine.base[axis] == then.base[axis]:
                columns = [_of(table, [place], axis) for table in tables]
                known = nights[0].values(name) & nights[1].values(name)
                pooled = [_pooled(one, known) for one in columns]
                # Of a block of several columns the values that are known may be in a combination that is not.
                several = len(mine.columns) > 1
                less = [n + several * one.total() for n, one in zip(out, pooled, strict=True)]
                yield name, _may_be([one - aside for one, aside in zip(columns, pooled, strict=True)], less)


def _less(nights: tuple[Night, Night], out: tuple[int, int]) -> list[int]:
    """Of each night how many rows may be missing that the other one counts: none where it knows all of its values."""
    return [0 if _has_all(nights[place], nights[1 - place]) else out[place] for place in (0, 1)]


def _of(table: Cells, places: Sequence[int], axis: int | None = None) -> Cells:
    """Records by secret and some blocks, or one column of a block."""
    found = Cells()
    for (secret, *labels), number in table.items():
        some = [labels[place] for place in places]
        found[secret, *(some if axis is None else [(label[axis],) for label in some])] += number
    return found


def _pooled(table: Cells, known: frozenset[str | None]) -> Cells:
    """Records whose value of a column only one night has a name for."""
    return Cells({cell: n for cell, n in table.items() if cell[1][0] == OTHER or cell[1][0] not in known})


def _may_be(tables: Sequence[Cells], less: Sequence[int]) -> bool:
    """Whether of each night no more records are missing in the other one than are in none of its counts, `less`."""
    return all((tables[1 - place] - tables[place]).total() <= less[place] for place in (0, 1))


def _has_all(one: Night, other: Night) -> bool:
    """Whether a night counts all rows that another one of the same rows counts: it knows all values that this knows."""
    known = [theirs is not None and mine is not None and mine >= theirs
             for mine, theirs in zip(one.named, other.named, strict=True)]  # fmt: skip
    return all(known) and all(_alike((one, other)))
