"""What pydantic found, in plain words: one finding for each of its errors, unless a check says it better."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from funnel.errors import CATALOGUE
from funnel.mechanisms import MECHANISMS
from funnel.notions import NOTIONS
from funnel.notions.base import MAX_EPSILON
from funnel.policy.blocks import Block, CellLimits, is_wide
from funnel.policy.columns import SHOWN, Attribute
from funnel.policy.document import Finding, Path, choice, described, dotted, listed, nearest, shortened
from funnel.policy.metadata import Metadata, Publisher
from funnel.policy.model import NAME_LENGTH, UNBOUNDED, Csv, Draws, EstimateSection, Policy, SourceSection
from funnel.policy.reader import is_number
from funnel.policy.release import Also, ReleaseSection

SECTIONS: dict[Path, type[BaseModel]] = {
    (): Policy, ("source",): SourceSection, ("source", "csv"): Csv, ("estimate",): EstimateSection, ("draws",): Draws,
    ("release",): ReleaseSection, ("release", "also"): Also,
}  # fmt: skip
_TAGS: dict[str, tuple[str, Mapping[str, type[BaseModel]]]] = {
    "privacy": ("notion", NOTIONS), "mechanism": ("kind", MECHANISMS),
}  # fmt: skip
"""Sections whose keys depend on what one of them says."""

_TYPES = {
    "string_type": "a text", "int_type": "a whole number", "float_type": "a number", "tuple_type": "a list",
    "model_type": "a mapping", "model_attributes_type": "a mapping", "dict_type": "a mapping",
    "bool_type": "true or false",
}  # fmt: skip
_EITHER: dict[Path, str] = {
    ("sensitive",): "a column's name or a list of them",
    ("release", "identify"): "a column's name or a list of them",
    ("release", "also"): "the address of a table or a mapping with `table`",
    ("accept",): "`unbounded`, a policy's name, or a list of them",
    ("mechanism",): "a mechanism's name or a mapping with `kind`",
}
_BOUNDS = {
    "greater_than": "must be above {gt:g}", "greater_than_equal": "must be {ge:g} or more",
    "less_than": "must be below {lt:g}", "less_than_equal": "must be {le:g} or less",
    "finite_number": "must be finite", "too_short": "must not be empty",
    "string_too_short": "must not be empty",
    "string_too_long": "must be at most {max_length} letters long",
    "string_pattern_mismatch": "must not be blank",
}  # fmt: skip


def translate(error: ValidationError, data: Any) -> Iterator[Finding]:
    """The findings in a validation error of `Policy`; `data` is what was validated.

    An absent key whose misspelling was found is not reported as well.
    """
    details = error.errors(include_url=False)
    meant: set[Path] = set()
    for detail in details:
        path = path_of(detail["loc"], data)
        if detail["type"] == "extra_forbidden":
            unknown, intended = _unknown_key(path, data)
            meant |= {intended} if intended else set()
            yield unknown
    for detail in details:
        path = path_of(detail["loc"], data)
        if detail["type"] == "missing" and path not in meant:
            yield _missing(path, data)
        elif detail["type"] not in {"missing", "extra_forbidden"}:
            yield from _value(path, detail, data)


def beside_tag(data: dict[str, Any]) -> Iterator[Finding]:
    """What else is wrong in a section whose notion, or kind, is none or is missing: pydantic stops there.

    A key is read as by any notion (mechanism) that knows it, and best by the one that was probably meant.
    """
    for section, (tag, registry) in _TAGS.items():
        told = data.get(section)
        named = told.get(tag) if isinstance(told, dict) else None
        if not isinstance(told, dict) or (isinstance(named, str) and named in registry):
            continue
        meant = nearest(named, registry) if isinstance(named, str) else None
        ordered = [*([meant] if meant else []), *registry]
        for key, value in told.items():
            if key != tag:
                known = [name for name in ordered if key in registry[name].model_fields]
                yield from _alone(section, known[0] if known else None, key, value, data)


def _alone(section: str, name: str | None, key: str, value: Any, data: dict[str, Any]) -> Iterator[Finding]:
    """One key of a section, read as by the notion or mechanism of this name; None: nobody knows it."""
    tag, registry = _TAGS[section]
    if name is None:
        every = {field for model in registry.values() for field in model.model_fields}
        if nearest(key, every) != tag:  # that one is missing, and said to be
            said = f"unknown key `{shortened(key)}`{_place((section,))}"
            yield Finding((section, key), "unknown-key", said, choice(key, every), key=True)
        return
    part = {tag: name, key: value}
    try:
        registry[name].model_validate(part)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            if detail["loc"][:1] == (key,):
                yield from _value((section, *detail["loc"]), detail, data | {section: part})


def path_of(loc: tuple[str | int, ...], data: Any) -> Path:
    """The path in the policy file of a location in its models.

    Unions add their tag to a location, and a public item that is not a list is validated as a list of one.
    """
    match loc:
        case ("privacy" | "mechanism" as section, _, *rest):
            return (section, *rest)
        case ("public", int(index), *rest) if is_wide(item := data["public"][index]):
            return ("public", index, *rest) if isinstance(item.get("cells"), dict) else _of_number(loc)
        case ("public", int(index), "columns", int(member), *rest):
            return ("public", index, *((member,) if isinstance(data["public"][index], list) else ()), *rest)
        case ("public", int(index), "columns"):
            return ("public", index)
    return loc


def _of_number(loc: Path) -> Path:
    """Where `cells` is a plain number, what is wrong with it is wrong with its `most`."""
    return loc[:-1] if loc[-2:] == ("cells", "most") else loc


def _tag(section: str, data: Any) -> str:
    """The notion or mechanism that the policy names, which also is a model's name in its registry."""
    named = data[section]
    return str(named if isinstance(named, str) else named[_TAGS[section][0]])


def _model(path: Path, data: Any) -> type[BaseModel]:
    """The model that a mapping at a path is read into."""
    match path:
        case ("privacy" | "mechanism" as section,):
            return _TAGS[section][1][_tag(section, data)]
        case ("public", int(index)) if is_wide(data["public"][index]):
            return Block
        case ("public", *_, "cells"):
            return CellLimits
        case ("metadata",):  # not among the sections: a misplaced `columns` or `url` was hardly meant for it
            return Metadata
        case ("metadata", "publisher"):
            return Publisher
    return SECTIONS.get(path, Attribute)


def _fields(path: Path, data: Any) -> dict[str, FieldInfo]:
    """The keys of a mapping at a path, as policies spell them."""
    return {field.alias or name: field for name, field in _model(path, data).model_fields.items()}


def _place(path: Path) -> str:
    """` in privacy`, or nothing at the top."""
    return f" in `{dotted(path)}`" if path else ""


def _unknown_key(path: Path, data: Any) -> tuple[Finding, Path | None]:
    """A key that is not part of the language, and the path that was probably meant."""
    parent, key = path[:-1], str(path[-1])
    home, fields = _home(parent, key), {*_fields(parent, data), *_beside(parent)}
    said = f"unknown key `{shortened(key)}`{_place(parent)}"
    if home is not None:
        advice = f"It belongs {f'under `{home[0]}`' if home else 'at the top'}."
        return Finding(path, "unknown-key", said, advice, key=True), (*home, key)
    if parent in {("privacy",), ("mechanism",)}:
        said = f"`{_tag(str(parent[0]), data)}` takes no `{shortened(key)}`"
    word = nearest(key, fields)
    alone = (
        "It belongs to a wide block, which lists its `columns`." if key == "cells" and word == key else None
    )
    finding = Finding(path, "unknown-key", said, alone or choice(key, fields), key=True)
    return finding, (*parent, word) if word else None


def _beside(parent: Path) -> tuple[str, ...]:
    """Keys that an item of `public` may have where it is a wide block."""
    return ("columns", "cells") if parent[:1] == ("public",) and len(parent) == 2 else ()


def _home(parent: Path, key: str) -> Path | None:
    """The section that a key belongs to, if it is not the one where it stands."""
    if parent == ("privacy",):
        return None
    if any(key in notion.model_fields for notion in NOTIONS.values()):
        return ("privacy",)
    homes = (path for path, model in SECTIONS.items() if key in model.model_fields and path != parent)
    return next(homes, None)


def _missing(path: Path, data: Any) -> Finding:
    """A required key that is absent; its description says what to write."""
    field = _fields(path[:-1], data)[str(path[-1])]
    said = f"`{path[-1]}` is missing{_place(path[:-1])}"
    return Finding(path, "missing-key", said, field.description, key=True)


def _value(path: Path, detail: ErrorDetails, data: Any) -> Iterator[Finding]:
    """A value of the wrong type or outside what is allowed."""
    kind, given, context = detail["type"], detail["input"], detail.get("ctx", {})
    if path[:2] == ("privacy", "split") or (kind == "too_short" and given):
        return  # the checks read the split; a list of wrong items is not empty, whatever pydantic counts
    if kind in CATALOGUE:
        yield Finding((*path, *context.get("at", ())), kind, f"`{dotted(path)}`: {detail['msg']}")
    elif path == ("version",):
        yield _version(given)
    elif kind == "union_tag_not_found":
        yield _untagged(path)
    elif kind in {"literal_error", "union_tag_invalid"}:
        yield _not_a_choice(path, kind, given, context, data)
    elif path == ("privacy", "epsilon"):
        yield _epsilon(path, given, data)
    elif kind in _TYPES:
        yield _wrong_type(path, kind, given)
    else:
        yield _out_of_bounds(path, detail, data)


def _code(path: Path, code: str) -> str:
    """Bins have a code of their own."""
    return "bins" if "bins" in path else code


def _version(given: Any) -> Finding:
    """Another version of the language, or no version at all."""
    if type(given) is int and given > 1:
        said = f"version {given} of the policy language is newer than this version of funnel"
        return Finding(("version",), "unsupported", said, "Install a newer funnel, or write `version: 1`.")
    said = f"`version` must be 1, not {described(given)}"
    return Finding(("version",), "wrong-value", said, "Write `version: 1`.")


def _untagged(path: Path) -> Finding:
    """A section without the key that says what it is about."""
    key, allowed = _TAGS[str(path[0])]
    said = f"`{key}` is missing{_place(path)}"
    return Finding((*path, key), "missing-key", said, f"Use {listed(allowed)}.", key=True)


def _not_a_choice(path: Path, kind: str, given: Any, context: dict[str, Any], data: Any) -> Finding:
    """A word that is not among those allowed."""
    allowed = re.findall(r"'([^']*)'", context.get("expected", ""))
    if kind == "union_tag_invalid":
        key, registry = _TAGS[str(path[0])]
        path, given, allowed = (*path, key), data[path[0]], list(registry)
        given = given[key] if isinstance(given, dict) else given
    place = dotted(path[:1] if isinstance(data[path[0]], str) else path)
    advice = choice(given, allowed) if isinstance(given, str) else f"Use {listed(allowed)}."
    return Finding(path, "wrong-value", f"`{place}` cannot be {described(given)}", advice)


def _epsilon(path: Path, given: Any, data: Any) -> Finding:
    """Epsilon is a positive number up to a limit; the notion without one says so."""
    if NOTIONS[_tag("privacy", data)].exact_zero:
        said = f"`{_tag('privacy', data)}` means epsilon 0, not {described(given)}"
        return Finding(path, "epsilon", said, "Leave `epsilon` out.")
    said = f"`epsilon` must be a positive number of nats, {MAX_EPSILON:g} at most, not {described(given)}"
    return Finding(path, "epsilon", said, _quotes("float_type", given))


def _wrong_type(path: Path, kind: str, given: Any) -> Finding:
    """A number where a text belongs, and the like."""
    wanted = _EITHER.get(path, _TYPES[kind])
    if path[:1] == ("public",) and isinstance(path[-1], int) and not {"bins", "clip"} & set(path):
        wanted = "a column's name, or a mapping with `name`"
    said = f"`{dotted(path)}` must be {wanted}, not {described(given)}"
    return Finding(path, _code(path, "wrong-type"), said, _quotes(kind, given))


def _quotes(kind: str, given: Any) -> str | None:
    """Most wrong types are a matter of quotes."""
    if kind in {"float_type", "int_type"} and isinstance(given, str) and is_number(given):
        return "Remove the quotes."
    text = kind in {"string_type", "model_type"} and isinstance(given, int | float)
    return "Put it into quotes if it is a name." if text else None


def _out_of_bounds(path: Path, detail: ErrorDetails, data: Any) -> Finding:
    """A value of the right type that is too small, too long, or not spelt as it must be."""
    kind, given, context = detail["type"], detail["input"], detail.get("ctx", {})
    if path in (("draws", "key"), ("release", "sign")):  # never repeat it: it may be the key itself
        said = f"`{dotted(path)}` must be `env:NAME` or `file:PATH`, where the key is kept"
        return Finding(path, "wrong-value", said, "The key itself never stands in a policy.")
    if path[:1] == ("accept",) and kind != "too_short":
        said = f"`{dotted(path)}` must be `{UNBOUNDED}` or a policy's name, not {described(given)}"
        return Finding(path, "wrong-value", said)
    if path == ("name",) and given != UNBOUNDED:
        slug = re.sub(r"[^a-z0-9]+", "-", given.lower()).strip("-")[:NAME_LENGTH]
        wanted = f"letters, digits, -, _ and inner dots, {NAME_LENGTH} at most"
        said = f"`name` must be {wanted}, not {described(given)}"
        return Finding(path, "wrong-value", said, f"Try `{slug}`." if slug else None)
    if kind == "string_pattern_mismatch" and context["pattern"] != SHOWN:
        return _misspelt(path, given, data)
    said = _BOUNDS[kind].format(**context) if kind in _BOUNDS else detail["msg"]
    shown = f", not {described(given)}" if isinstance(given, int | float) else ""
    return Finding(path, _code(path, "wrong-value"), f"`{dotted(path)}` {said}{shown}")


def _misspelt(path: Path, given: str, data: Any) -> Finding:
    """A text, or the key of a mapping, of another form; the description of what it belongs to says of which."""
    *above, last = path[:-2] if (key := path[-1] == "[key]") else path
    field = _fields(tuple(above), data)[str(last)]
    said = f"takes no `{shortened(given)}`" if key else f"cannot be {described(given)}"
    where = path[:-1] if key else path
    return Finding(where, "wrong-value", f"`{dotted((*above, last))}` {said}", field.description, key=key)
