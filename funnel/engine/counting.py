"""From a plan's counting steps to the joint distribution, refusing tables that a protocol cannot serve."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from funnel.data import Alphabet, Joint, Label
from funnel.data.channel import MAX_CELLS
from funnel.engine.base import Engine
from funnel.engine.checks import check_identifier
from funnel.engine.sql import identifier, listed
from funnel.errors import PlanError, SourceError
from funnel.text import counted, some

MAX_ALPHABET = 2_048
"""Largest alphabet of S or of one block: a protocol over it is a dense matrix."""

_LONGEST = 80
"""Characters of a value in an error."""

def joint_distribution(
    engine: Engine, cells: str, secret: Sequence[str], blocks: Sequence[Sequence[str]]
) -> Joint:
    """Read the cells s…, x…, n into a Joint.

    Raises PlanError when a domain is too large, when the secret takes one value.
    """
    _check_sizes(engine, [secret, *blocks])
    rows = engine.rows(cells)
    alphabets, codes, start = [], [], 0
    for names in (secret, *blocks):
        values: list[Label] = [row[start : start + len(names)] for row in rows]
        alphabet = Alphabet.of(names, values)
        index = {value: code for code, value in enumerate(alphabet.values)}
        alphabets.append(alphabet)
        codes.append([index[value] for value in values])
        start += len(names)
    if len(alphabets[0]) < 2:
        raise PlanError(
            "one-secret",
            f"the sensitive columns {', '.join(secret)} take a single value; there is nothing to hide",
            advice="Check `sensitive` and `source.filter`.",
        )
    counts = np.array([row[start] for row in rows], np.int64)
    return Joint(alphabets[0], tuple(alphabets[1:]), np.array(codes, np.int64).T, counts)


def check_minimum(joint: Joint, minimum: int, *, secret_published: bool, noisy: bool = False) -> None:
    """Refuse public values that too few records share: their column of the protocol would disclose them.

    The same for values of the secret, where the mechanism reads it and its protocol therefore names them. Where counts
    are `noisy`, which values are rare must not shape the columns, and other ways out are told.
    Raises SourceError; its own where a column is an identifier.
    """
    if secret_published:
        _check_secret(joint, minimum, noisy)
    for index, block in enumerate(joint.blocks):
        counts = joint.table(index).sum(axis=0)
        rare = np.flatnonzero(counts < minimum)
        if len(rare):
            for place, column in enumerate(block.columns):
                check_identifier(column, len({value[place] for value in block.values}), joint.rows)
            names = block.names()
            missing = all(part is None for x in rare for part in block.values[x])
            shown = some([f"{quoted(names[x])} ({counts[x]})" for x in rare], 8)
            raise SourceError(
                "below-minimum",
                f"{len(rare)} of {counted(len(block), 'value')} of {' + '.join(block.columns)} "
                f"{_have(len(rare), minimum, noisy)}",
                values=shown,
                advice=f"{_merge(block, joint.secret.columns, noisy=noisy, missing=missing)}; or lower "
                "`estimate.minimum` if that disclosure is acceptable."
                if noisy or joint.rows >= minimum
                else "Lower `estimate.minimum`, if that disclosure is acceptable: all records are fewer.",
            )


def quoted(value: str) -> str:
    """A value as an error names it: on one line, and no longer than a person reads."""
    return repr(value if len(value) <= _LONGEST else f"{value[:_LONGEST]}…")


def rare_secrets(joint: Joint, minimum: int) -> int:
    """How many values of the secret have fewer than `minimum` records."""
    counts = np.bincount(joint.cells[:, 0], weights=joint.counts)
    return int((counts < minimum).sum())


def _merge(block: Alphabet, secret: Sequence[str], *, noisy: bool, missing: bool) -> str:
    """What makes values common enough: `rare` looks at one column, and combinations can be rarer than their parts.

    A secret that is released too is released as it is hidden: nothing merges its values here. What is `missing` goes
    into no group, bin or rest.
    """
    if not set(block.columns) - set(secret):
        return "Merge values of the secret in the source, for it is released as it is hidden"
    if set(block.columns) & set(secret):
        return (
            "Merge values of the columns beside the secret by meaning with `groups` or `bins`, and its own in the "
            "source, for it is released as it is hidden"
        )
    if missing:
        other = "merge it with `rare: other` (not beside `top`, nor for `gaussian-funnel`), or "
        helps = other if len(block.columns) == 1 and not noisy else ""
        return (
            f"No group, bin or `top` takes in the missing value: {helps}leave such records out with `missing: drop` "
            "under `source`"
        )
    if noisy:  # neither `rare` nor `top` goes with a private estimate
        return "Merge values by meaning with `groups` or `bins`, by what is known of the column and not from this table"
    if len(block.columns) == 1:
        return (
            "Merge them with `rare: other` (numbers and dates, as far as they are told as such: `rare: bin`), by "
            "meaning with `groups`, or by `top` or `bins` (for `gaussian-funnel` with `rare: bin`, or a coarser "
            "`round`)"
        )
    return (
        "Merge values of these columns by meaning with `groups`, or by `top` or `bins` (`rare` merges only what is "
        "rare in a column by itself), or put the columns into blocks of their own"
    )


def _have(rare: int, minimum: int, noisy: bool) -> str:
    if noisy:
        return f"{'has a noisy count' if rare == 1 else 'have noisy counts'} below {minimum:,}"
    return f"{'has' if rare == 1 else 'have'} fewer than {counted(minimum, 'record')}"


def _check_secret(joint: Joint, minimum: int, noisy: bool) -> None:
    rare = rare_secrets(joint, minimum)
    if rare:
        raise SourceError(
            "below-minimum",
            f"{rare} of {counted(len(joint.secret), 'value')} of {' + '.join(joint.secret.columns)} "
            f"{_have(rare, minimum, noisy)}, and this mechanism publishes how each value of the secret is treated",
            advice="Use `mechanism: optimal` (under `mutual-information`: `greedy-funnel`), which does not, or merge "
            "rare values of the secret in the source.",
        )


def _axes(secret: int, blocks: Sequence[int]) -> list[list[str]]:
    """The key columns of S and of each block, as the plan names them."""
    return [[f"s{i}" for i in range(secret)]] + [
        [f"x{j}_{i}" for i in range(width)] for j, width in enumerate(blocks)
    ]


def _check_sizes(engine: Engine, names: Sequence[Sequence[str]]) -> None:
    """Measure the domains inside the engine, before anything large is fetched."""
    axes = _axes(len(names[0]), [len(block) for block in names[1:]])
    (rows,) = engine.row("SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM cells")
    sizes = cardinalities(engine, len(names[0]), [len(block) for block in names[1:]])
    for size, columns, keys in zip(sizes, names, axes, strict=True):
        if size > MAX_ALPHABET:
            for column, distinct in zip(columns, _distinct(engine, keys), strict=True):
                check_identifier(column, distinct, rows)
            raise PlanError(
                "alphabet-too-large",
                f"{' + '.join(columns)} takes {size:,} values; a protocol holds up to {MAX_ALPHABET:,}",
                advice="Shrink it with `bins` (numbers), `groups` or, but for a private estimate, `top`, or leave it "
                "out; several columns can be a wide block, of cells.",
            )
    (cells,) = engine.row("SELECT count(*) FROM cells")
    if cells > MAX_CELLS:
        raise PlanError(
            "alphabet-too-large",
            f"secret and public columns together take {cells:,} combinations; "
            f"up to {MAX_CELLS:,} can be measured",
            advice="Release fewer columns in this policy, or shrink them with `bins` or `groups`.",
        )


def _distinct(engine: Engine, keys: Sequence[str]) -> tuple[int, ...]:
    """How many values each of some keys takes."""
    return engine.row(f"SELECT {listed(f'count(DISTINCT {identifier(key)})' for key in keys)} FROM cells")


def cardinalities(engine: Engine, secret: int, blocks: Sequence[int]) -> list[int]:
    """Number of distinct values of S and of each block, given the number of columns of each."""
    return [
        int(
            engine.row(
                f"SELECT count(*) FROM (SELECT DISTINCT {listed(identifier(key) for key in keys)} FROM cells)"
            )[0]
        )
        for keys in _axes(secret, blocks)
    ]


def occurring(engine: Engine, blocks: Sequence[int]) -> tuple[int, int]:
    """How many combinations of public values occur, and in how few records the rarest does."""
    keys = listed(identifier(key) for block in _axes(0, blocks)[1:] for key in block)
    combinations, fewest = engine.row(
        f"SELECT count(*), min(n) FROM (SELECT sum(n) AS n FROM cells GROUP BY {keys})"
    )
    return int(combinations), int(fewest or 0)
