"""Cells as the record of cells.json, and back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

import numpy as np

from funnel.cells.cells import Cells
from funnel.cells.columns import Vocabulary, numbers
from funnel.cells.profile import BITS, Profile
from funnel.cells.tree import Node, Tree
from funnel.data.joint import IntArray
from funnel.format.canonical import FormatError, encode
from funnel.format.cells import NAME, Among, Below, Cell, CellsFile, ColumnProfile, Values, Wide
from funnel.format.schema import as_json

RULE = (
    "rows of a label are drawn column by column, parents first; n rows of the same cell and group are put in the order"
    " of words of SHAKE-256(seed), and row i takes the value where the sum of weights passes (i 2^16 + u) / n,"
    " u being a word of the same"
)


def file_of(blocks: Sequence[Cells]) -> CellsFile:
    """cells.json of a release with these wide blocks."""
    return CellsFile("funnel-cells/1", RULE, tuple(map(written, blocks)))


def written(cells: Cells) -> Wide:
    """The record of one block."""
    return Wide(
        cells.name,
        _values(cells),
        tuple(_node(cells, node) for node in cells.tree.nodes),
        tuple(_drawn(profile) for profile in cells.profiles),
        cells.seed.hex(),
    )


def opened(wide: Wide) -> Cells:
    """The cells of a record. Raises FormatError where it contradicts itself."""
    columns = tuple(Vocabulary(v.name, v.type, v.values, v.cuts, v.other, v.missing) for v in wide.columns)
    for column in columns:
        _check_column(column)
    tree = Tree(tuple(_nodes(wide, columns)))
    if len(wide.profiles) != len(columns):
        raise FormatError(NAME, "profiles", f"{len(columns)} of them", len(wide.profiles))
    try:
        profiles = tuple(_profile(wide, len(tree), place) for place in range(len(columns)))
    except (TypeError, ValueError) as error:  # lists of other depths than a profile's
        raise (
            error if isinstance(error, FormatError) else FormatError(NAME, "profiles", "lists", error)
        ) from None
    _check_order(profiles)
    shares = np.array([node.share for node in wide.nodes if isinstance(node, Cell)], np.int64)
    if shares.sum() != 1 << BITS:
        raise FormatError(NAME, "nodes", f"shares of sum {1 << BITS}", int(shares.sum()))
    return Cells(wide.name, columns, tree, profiles, shares, bytes.fromhex(wide.seed))


def _values(cells: Cells) -> tuple[Values, ...]:
    return tuple(Values(c.name, c.type, c.values, c.cuts, c.other, c.missing) for c in cells.columns)


def _node(cells: Cells, node: Node) -> Below | Among | Cell:
    if node.column < 0:
        return Cell("cell", int(cells.shares[node.cell]))
    if cells.columns[node.column].ordered:
        return Below("below", node.column, int(node.left.sum()))
    return Among("among", node.column, tuple(np.flatnonzero(node.left).tolist()))


def _drawn(profile: Profile) -> ColumnProfile:
    return ColumnProfile(
        None if profile.parent < 0 else profile.parent,
        tuple(profile.groups.tolist()),
        _by_cell(profile.links),
        tuple(_pairs(profile.values)),
    )


def _by_cell(links: IntArray) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """The pairs of each cell (m,) and group of the parent."""
    pairs, width = _pairs(links.reshape(-1, links.shape[2])), links.shape[1]
    return tuple(tuple(pairs[start : start + width]) for start in range(0, len(pairs), width))


def _pairs(weights: IntArray) -> list[tuple[int, ...]]:
    """Of each row (n, v) code, weight, code, weight, … of what is not zero."""
    rows, codes = np.nonzero(weights)
    flat = np.column_stack([codes, weights[rows, codes]]).ravel().tolist()
    ends = (2 * np.searchsorted(rows, np.arange(len(weights) + 1))).tolist()
    return [tuple(flat[start:stop]) for start, stop in pairwise(ends)]


def _nodes(wide: Wide, columns: Sequence[Vocabulary]) -> Iterator[Node]:
    """The nodes of the walk: the left part is the next node, the right one follows the left's last cell."""
    behind = _behind(wide)
    cell = 0
    for place, node in enumerate(wide.nodes):
        if isinstance(node, Cell):
            yield Node(-1, np.empty(0, bool), -1, -1, cell)
            cell += 1
            continue
        if node.column >= len(columns):
            raise FormatError(NAME, f"nodes[{place}].column", f"below {len(columns)}", node.column)
        column = columns[node.column]
        codes = range(node.below) if isinstance(node, Below) else node.codes
        left = np.zeros(len(column), bool)
        if any(not isinstance(code, int) or code >= len(column) for code in codes):
            raise FormatError(NAME, f"nodes[{place}]", f"codes below {len(column)}", str(codes))
        left[list(codes)] = True
        if not 0 < left.sum() < len(column) or isinstance(node, Below) != column.ordered:
            raise FormatError(NAME, f"nodes[{place}]", "a split of the column's values", str(codes))
        yield Node(node.column, left, place + 1, behind[place], -1)


def _behind(wide: Wide) -> dict[int, int]:
    """Of every split, the node that its right part begins with."""
    found, waiting = dict[int, int](), list[int]()
    for place, node in enumerate(wide.nodes):
        if place and not waiting and not isinstance(wide.nodes[place - 1], (Below, Among)):
            raise FormatError(NAME, f"nodes[{place}]", "no more nodes", node.kind)
        if place and isinstance(wide.nodes[place - 1], Cell):
            found[waiting.pop()] = place
        if not isinstance(node, Cell):
            waiting.append(place)
    if waiting or not wide.nodes:
        raise FormatError(NAME, "nodes", "a whole tree", f"{len(wide.nodes)} nodes")
    return found


def _profile(wide: Wide, cells: int, place: int) -> Profile:
    """A profile whose weights are of the right sizes and sums."""
    drawn, path = wide.profiles[place], f"profiles[{place}]"
    groups = np.array(drawn.groups, np.int64)
    number = int(groups.max(initial=-1)) + 1
    if len(groups) != len(wide.columns[place].values) or set(drawn.groups) != set(range(number)):
        raise FormatError(NAME, f"{path}.groups", "a group for each value", drawn.groups)
    if drawn.parent is not None and drawn.parent >= len(wide.profiles):
        raise FormatError(NAME, f"{path}.parent", f"below {len(wide.profiles)}", drawn.parent)
    contexts = 1 if drawn.parent is None else max(wide.profiles[drawn.parent].groups) + 1
    if len(drawn.links) != cells or any(len(cell) != contexts for cell in drawn.links):
        raise FormatError(NAME, f"{path}.links", f"{cells} cells of {contexts} groups", "others")
    flat = [context for cell in drawn.links for context in cell]
    links = _dense(flat, number, f"{path}.links").reshape(cells, contexts, number)
    values = _dense(drawn.values, len(groups), f"{path}.values")
    sums = values @ np.eye(number, dtype=np.int64)[groups]
    whole = np.isin(links.sum(axis=2), (0, 1 << BITS)).all() and len(values) == cells
    if not whole or (sums[links.any(axis=1)] != 1 << BITS).any():
        raise FormatError(NAME, path, f"weights of sum {1 << BITS}", "another sum")
    return Profile(-1 if drawn.parent is None else drawn.parent, groups, links, values)


def _dense(rows: Sequence[Sequence[int]], size: int, path: str) -> IntArray:
    """Weights (r, size) from lists of codes and weights, the codes of each in order."""
    lengths = np.array([len(row) for row in rows], np.int64)
    flat = np.fromiter(chain.from_iterable(rows), np.int64, int(lengths.sum()))
    row, codes = np.repeat(np.arange(len(rows)), lengths // 2), flat[::2]
    place = row * size + codes[: len(row)]
    whole = not (lengths % 2).any() and not (flat[1::2] > 1 << BITS).any()
    if not whole or (codes >= size).any() or (np.diff(place) <= 0).any():
        raise FormatError(NAME, path, f"lists of codes below {size}, in order, and weights", "others")
    found = np.zeros((len(rows), size), np.int64)
    found[row, codes] = flat[1::2]
    return found


def _check_column(column: Vocabulary) -> None:
    values, last = column.values, len(column.values) - 1
    missing_last = None not in values[:last]
    there = len([one for one in values if one is not None])
    fits = column.cuts is None or len(column.cuts) == max(there - 1, 0)
    cuts = numbers(column.cuts or (), column.type)
    fits &= all(low < high for low, high in pairwise(cuts))
    codes = [code for code in (column.other, column.missing) if code is not None]
    if (
        not values
        or len(set(values)) != len(values)
        or not missing_last
        or not fits
        or max(codes, default=0) > last
    ):
        raise FormatError(
            NAME, f"columns.{column.name}", "distinct values, a missing one last, cuts between", values
        )


def _check_order(profiles: Sequence[Profile]) -> None:
    """Parents form trees, and every group that a parent's value may have says what is drawn."""
    for place, profile in enumerate(profiles):
        path = f"profiles[{place}]"
        above, steps = place, 0
        while above >= 0:
            above, steps = profiles[above].parent, steps + 1
            if steps > len(profiles):
                raise FormatError(NAME, f"{path}.parent", "a column that does not depend on this one", place)
        reached = profile.links.any(axis=2)
        if profile.parent >= 0:
            reached = reached | ~profiles[profile.parent].links.any(axis=1)
        if not reached.all():
            raise FormatError(NAME, f"{path}.links", f"weights of sum {1 << BITS}", "none")


def meaning(cells: Cells) -> str:
    """A short hash of what labels stand for and of what fills their rows: all but the block's name and the seed.

    Weights of the same cells that were made of other counts, or with another minimum, would together tell single
    counts that neither tells.
    """
    told = as_json(written(cells))
    return hashlib.sha256(encode({key: told[key] for key in ("columns", "nodes", "profiles")})).hexdigest()[:16]
