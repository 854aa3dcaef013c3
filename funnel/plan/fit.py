"""Do the policy and the source's schema fit together?"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Generator, Iterator, Mapping

from funnel.data.alphabet import folded
from funnel.engine.expressions import ExpressionError, check_compared, check_condition, parse
from funnel.errors import Problem
from funnel.plan.columns import BINNED, DATES, FLOATS, NUMBERS, inner_column, public_key
from funnel.policy import Attribute, Policy
from funnel.policy.document import Path

_OPAQUE = ("STRUCT", "MAP", "UNION", "BLOB", "BIT", "JSON", "VARIANT", "GEOMETRY", "INTERVAL")
_INEXACT = (*FLOATS, "BOOLEAN")
_PLAIN = "; only plain values can be used"


def column_of(name: str, schema: Mapping[str, str]) -> str | None:
    """The source's spelling of a column; DuckDB's names, and the policy's roles, ignore the case of ASCII letters."""
    if name in schema:
        return name
    return next((column for column in schema if folded(column) == folded(name)), None)


def check_fit(
    policy: Policy, schema: Mapping[str, str], texts: Collection[str] = ()
) -> tuple[list[Problem], str | None]:
    """Problems of columns, types and filter, and the filter's checked SQL (None without one).

    `texts` are columns that are read as the text that stands there, whatever type was guessed.
    """
    read = {**schema, **dict.fromkeys(texts, "VARCHAR")}
    unusable, predicate = _filter(policy, read)
    return [*_columns(policy, schema), *_keys(policy, read), *unusable], predicate


def _columns(policy: Policy, schema: Mapping[str, str]) -> Iterator[Problem]:
    """What is wrong with the columns that are read, each for its use."""
    for name in policy.sensitive:
        yield from _typed(policy, schema, policy.place(name), name, _PLAIN)
    for attribute in (one for block in policy.blocks for one in block.attributes):
        if policy.mechanism.needs_numbers:
            yield from _numbers(policy, attribute)
        kinds, needed = _asked(attribute)
        yield from _typed(policy, schema, policy.place(attribute.name), attribute.name, needed, kinds=kinds)
    for attribute in (one for block in policy.blocks if block.cells for one in block.attributes):
        yield from _told_apart(policy, schema, attribute)
    if (entity := policy.source.entity) is not None:
        needed, advice = ", which cannot identify a person", "Use a column of integers or text."
        yield from _typed(policy, schema, ("source", "entity"), entity, needed, "entity", advice, other=_INEXACT)


def _asked(one: Attribute) -> tuple[tuple[str, ...], str]:
    """The types that a public column may have for what is to become of it, and why."""
    for asked, kinds, needed in (
        (one.is_number, NUMBERS, "; `bins`, `round` and `clip` by numbers need a number"),
        (one.is_date, DATES, "; dates need a DATE, a TIMESTAMP, or text"),
        (one.rare == "bin" and not one.is_measured, BINNED, "; `rare: bin` needs numbers or dates"),
        (one.trim, ("VARCHAR",), "; only texts have blanks to `trim`"),
    ):
        if asked:
            return kinds, needed
    return ("",), _PLAIN


def _keys(policy: Policy, schema: Mapping[str, str]) -> Iterator[Problem]:
    needed, advice = ", which cannot name a row", "Use columns of integers, text or dates."
    for place, name in enumerate(policy.release.identify):
        path = ("release", "identify", place)
        yield from _typed(policy, schema, path, name, needed, "identify", advice, other=_INEXACT)


def _typed(
    policy: Policy, schema: Mapping[str, str], path: Path, name: str, needed: str, code: str = "column-type",
    advice: str | None = None, *, kinds: tuple[str, ...] = ("",), other: tuple[str, ...] = (),
) -> Iterator[Problem]:  # fmt: skip
    """That a column holds plain values of one of these kinds, and not of any other."""
    kind = yield from _known(policy, schema, path, name)
    if kind is not None and (opaque(kind) or not kind.startswith(kinds) or kind.startswith(other)):
        yield policy.problem(path, code, f"column {name} is {kind}{needed}", advice)


def _known(
    policy: Policy, schema: Mapping[str, str], path: Path, name: str
) -> Generator[Problem, None, str | None]:
    """The type of a column; or None, and a problem with the nearest name."""
    column = column_of(name, schema)
    if column is not None:
        return schema[column]
    yield policy.problem(path, "unknown-column", f"the source has no column {name}", _nearest(name, schema))
    return None


def _numbers(policy: Policy, one: Attribute) -> Iterator[Problem]:
    """A mechanism that releases numbers needs to know how precise they are to be, and nothing else among them."""
    kind, place = policy.mechanism.kind, policy.place(one.name)
    if not isinstance(one.round, float):
        said = f"{kind} releases numbers, so {one.name} needs `round`, the precision of what is released"
        advice = f"Write `{{name: {one.name}, round: 1}}` where it holds numbers; else name another mechanism."
        yield policy.problem(place, "missing-key", said, advice)
    if one.rare == "other":
        said = f"{kind} releases numbers, and `rare: other` of {one.name} makes a text"
        yield policy.problem(place, "wrong-value", said, "Use `rare: bin`, or a coarser `round`.")


def _told_apart(policy: Policy, schema: Mapping[str, str], one: Attribute) -> Iterator[Problem]:
    """Inside cells what is no text stays none: its rare values have no name for all of them."""
    kind = schema.get(column_of(one.name, schema) or "")
    if one.rare != "other" or kind is None:
        return
    if inner_column(public_key("w", one, kind), one, kind).type != "VARCHAR":
        said = f"inside cells {one.name} is no text, and has no value `other`: rare ones are told as others of it"
        yield policy.problem(policy.place(one.name), "wrong-value", said, "Leave `rare` out.")


def opaque(kind: str) -> bool:
    """Whether values of a type have no plain text form that can be released."""
    return kind.startswith(_OPAQUE) or kind.endswith("]")


def _filter(policy: Policy, schema: Mapping[str, str]) -> tuple[list[Problem], str | None]:
    """What is wrong with the filter, and its SQL."""
    if policy.source.filter is None:
        return [], None
    path = ("source", "filter")
    try:
        expression = parse(policy.source.filter)
        unknown = [one for column in expression.columns for one in _known(policy, schema, path, column)]
        if not unknown:
            check_compared(policy.source.filter, schema)
            check_condition(expression, schema)
        return unknown, expression.sql
    except ExpressionError as error:
        advice = "Write one condition over source columns, such as `age >= 18 AND income IS NOT NULL`."
        return [policy.problem(path, "filter", f"the filter is not usable: {error}", advice)], None


def _nearest(name: str, schema: Mapping[str, str]) -> str:
    """A suggestion: the closest column, or all of them when few."""
    close = difflib.get_close_matches(name, list(schema), 1, 0.6)
    if close:
        return f"Did you mean {close[0]}?"
    return "Its columns are " + ", ".join(list(schema)[:20]) + (", …" if len(schema) > 20 else ".")
