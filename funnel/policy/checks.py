"""What no single section can see: columns in two roles, the split over the blocks, keys, folders.

The checks read a document's plain data, so that they find their problems whatever else is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any

from funnel.data.alphabet import folded
from funnel.format.released import COUNT
from funnel.mechanisms import MECHANISMS
from funnel.notions import Notion
from funnel.policy.blocks import adds_up, is_wide, spellings
from funnel.policy.columns import REDUCTIONS
from funnel.policy.document import Document, Finding, Path, choice, described, dotted, listed, shortened
from funnel.policy.estimate import private_estimate, rounded_beliefs
from funnel.policy.folders import folders
from funnel.policy.mention import (
    Mention,
    at,
    attribute,
    inside,
    items,
    keys,
    mechanism_of,
    members,
    mentions,
    named,
    notion_of,
    wide_blocks,
)  # fmt: skip
from funnel.policy.model import UNBOUNDED
from funnel.policy.parted import SETS, parted, partition
from funnel.policy.stored import storable
from funnel.policy.wide import wide
from funnel.text import bare


def check(document: Document, directory: FilePath | None) -> Iterator[Finding]:
    """Everything wrong between the sections; folders are relative to `directory`, and not looked at without one."""
    yield from _unfinished(document.data)
    yield from _columns(document)
    yield from wide(document)
    yield from _keys(document)
    yield from _mechanism(document.data)
    yield from _distances(document.data)
    yield from _changed_secrets(document.data)
    yield from _split(document.data)
    yield from _knows(document.data)
    yield from _budget(document.data)
    yield from _draws(document.data)
    yield from private_estimate(document.data)
    yield from rounded_beliefs(document.data)
    yield from _counted(document.data)
    yield from _sets(document.data)
    yield from parted(document.data)
    yield from _settings(document.data)
    yield from _readable(document.data)
    yield from storable(document.data)
    yield from _described(document.data)
    if directory is not None:
        yield from folders(document.data, directory)


_SAID = {"description", "metadata"}
"""What an author says in words of his own."""


def _unfinished(data: Any, path: Path = ()) -> Iterator[Finding]:
    """What a starter policy leaves to its author to say."""
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from _unfinished(value, (*path, key))
    elif isinstance(data, str) and path and path[0] in _SAID and re.match(r"TODO\b", data):
        said = f"`{dotted(path)}` is unfinished: {shortened(data)}"
        yield Finding(path, "unfinished", said, "Write what is to stand here, without the word TODO.")


def _columns(document: Document) -> Iterator[Finding]:
    """A column has one role and stands there once; names that differ in case only are the same to DuckDB."""
    seen, released = dict[str, Mention](), dict[str, Mention]()
    notion = notion_of(document.data)
    both = notion is not None and notion.secret_may_be_public
    for mention in mentions(document.data):
        first = seen.setdefault(folded(mention.column), mention)
        if first is not mention and both and (first.role, mention.role) == ("sensitive", "public"):
            earlier = released.setdefault(folded(mention.column), mention)
            if earlier is not mention:
                yield _second_mention(earlier, mention, document.places.of(earlier.path)[0])
            elif first.column != mention.column:
                said = f"`{shortened(mention.column)}` is the sensitive `{shortened(first.column)}` in other letters"
                yield Finding(mention.path, "sensitive-public", said, "Spell it the same way in both places.")
        elif first is not mention:
            line, _ = document.places.of(first.path)
            yield _second_mention(first, mention, line)


def _keys(document: Document) -> Iterator[Finding]:
    """A key is neither hidden nor drawn for, and named once; it may be the entity."""
    used = {folded(one.column): one for one in mentions(document.data) if one.role != "entity"}
    named = dict[str, Mention]()
    for key in keys(document.data):
        first, other = named.setdefault(folded(key.column), key), used.get(folded(key.column))
        if first is not key:
            yield _second_mention(first, key, document.places.of(first.path)[0])
        elif other is not None:
            line, _ = document.places.of(other.path)
            said = f"`{shortened(key.column)}` is {other.role} (line {line}), so it cannot be published untouched"
            yield Finding(key.path, "identify", said, "Name a column that is neither hidden nor drawn for.")


def _second_mention(first: Mention, again: Mention, line: int) -> Finding:
    """What is wrong about naming a column once more; `line` is where it was named first."""
    name = f"`{shortened(again.column)}`"
    if first.role == again.role:
        spelt = "" if first.column == again.column else f" as `{shortened(first.column)}`"
        return Finding(
            again.path,
            "duplicate-column",
            f"{name} is named twice; first on line {line}{spelt}",
            "Keep one of them; upper and lower case make no difference.",
        )
    if first.role == "entity":
        return Finding(
            again.path,
            "entity",
            f"{name} identifies persons (`source.entity`, line {line}), so it cannot be {again.role}",
            f"Remove it from `{again.role}`.",
        )
    said = f"{name} is sensitive (line {line}), so it cannot be public under this notion"
    return Finding(again.path, "sensitive-public", said, "Remove it from `public` or from `sensitive`.")


def _changed_secrets(data: Any) -> Iterator[Finding]:
    """A secret that is released too is released as it is hidden: a coarser one would be another column."""
    hidden = named(data, "sensitive")
    for path, member in members(data):
        name = member.get("name") if isinstance(member, dict) else None
        changes = _changing(member) if isinstance(member, dict) else []
        if isinstance(name, str) and folded(name) in hidden and changes:
            said = f"`{shortened(name)}` is sensitive, and what is released of it cannot have `{changes[0]}`"
            yield Finding((*path, changes[0]), "sensitive-public", said, "Release it as it is.", key=True)


def _changing(member: dict[str, Any]) -> list[str]:
    """Keys under which an attribute stands for something else than its column's values."""
    defaults = {"unseen": ("error", "drop"), "rare": (None, "error"), "trim": (False,)}
    return [key for key in REDUCTIONS if key in member] + [
        key for key, plain in defaults.items() if member.get(key, plain[0]) not in plain
    ]


def _mechanism(data: Any) -> Iterator[Finding]:
    """The mechanism can keep the notion, and finds the secret among the public columns where it needs it."""
    (kind, path), notion = mechanism_of(data), notion_of(data)
    if at(data, "mechanism") is None:  # the default one is wrong for the notion
        kind, path = "optimal", ("privacy", "notion")
    if kind is None or notion is None:
        return
    hidden, asked = named(data, "sensitive"), at(data, "privacy", "notion")
    both = bool(hidden) and hidden <= named(data, "public")
    reasons = {name: one.misfit(asked, secret_public=both) for name, one in MECHANISMS.items()}
    if reasons[kind] is not None:
        fitting = ", ".join(name for name, no in reasons.items() if no is None and _serves(name, data, notion))
        said = f"`{kind}` {reasons[kind]}"
        yield Finding(path, "mechanism-notion", said, f"Mechanisms that fit here: {fitting}.")
    elif MECHANISMS[kind].one_block(notion) and len(_blocks(data) or ()) > 1:
        said = f"`{kind}` keeps {asked} for a single block only"
        advice = "Write the public columns as one block, such as `public: [[education, age]]`."
        yield Finding(path, "mechanism-notion", said, advice)


def _serves(name: str, data: Any, notion: type[Notion]) -> bool:
    """Whether a mechanism that keeps the notion releases what the policy asks for: its blocks, numbers, folders."""
    mechanism, alone = MECHANISMS[name], len(_blocks(data) or ()) < 2
    numbers = all(isinstance(item, dict) and isinstance(item.get("round"), int | float) for _, item in members(data))
    return (
        (mechanism.plain or not any(wide_blocks(data)))
        and (alone or not mechanism.one_block(notion))
        and (numbers or not mechanism.needs_numbers)
        and (name != SETS or partition(data) is None)
        and (mechanism.of_beliefs or at(data, "estimate", "beliefs") is None)
    )


def _distances(data: Any) -> Iterator[Finding]:
    """Distances by column are of columns that are drawn for; a wide block is one, by its own name."""
    path, asked = ("mechanism", "distance"), at(data, "mechanism", "distance")
    wide = [str(block.get("name")) for _, block in wide_blocks(data)]
    known = [*wide, *(one.column for one in mentions(data) if one.role == "public" and "columns" not in one.path)]
    for name in asked if isinstance(asked, dict) else ():
        if name not in known:
            said = f"`{shortened(name)}` is no public column that is drawn for by itself"
            yield Finding((*path, name), "unknown-key", said, choice(name, known), key=True)


def _split(data: Any) -> Iterator[Finding]:
    """Either a word, or a positive share for every block that sums to one."""
    path, split = ("privacy", "split"), at(data, "privacy", "split")
    if isinstance(split, dict):
        yield from list(_shares(split)) or _names(split, _blocks(data))
    elif split not in (None, "equal", "optimal"):
        yield Finding(
            path,
            "split",
            f"`privacy.split` must be `equal`, `optimal` or a mapping, not {described(split)}",
            choice(split, ["equal", "optimal"]) if isinstance(split, str) else None,
        )


def _shares(split: dict[str, Any]) -> Iterator[Finding]:
    """Every share is a number above 0, and 1 at most."""
    for name, share in split.items():
        number = isinstance(share, int | float) and not isinstance(share, bool)
        if share is not None and not (number and 0 < share <= 1):
            wanted = f"must be a number above 0 and at most 1, not {described(share)}"
            yield Finding(("privacy", "split", name), "split", f"the share of `{shortened(name)}` {wanted}")


def _knows(data: Any) -> Iterator[Finding]:
    """Columns that others may know are among the public ones, spelt alike; where cells hide them, it has to be said."""
    known, notion = at(data, "privacy", "knows"), notion_of(data)
    if known is None and notion is not None and "knows" in notion.model_fields and any(wide_blocks(data)):
        said = "what others may know of columns inside a wide block is measured only where `knows` says how many"
        yield Finding(("privacy",), "unsupported", said, "Add `knows: 2`, or name the columns.", key=True)
    public = [one.column for one in mentions(data) if one.role == "public"]
    for place, name in enumerate(known if isinstance(known, list) else ()):
        if isinstance(name, str) and (name not in public or name in known[:place]):
            path = ("privacy", "knows", place)
            if name in public:
                yield Finding(path, "duplicate-column", f"`{shortened(name)}` is named twice", "Keep one of them.")
            else:
                left = [one for one in public if one not in known]
                yield Finding(path, "unknown-column", f"`{shortened(name)}` is no public column", choice(name, left))


def _blocks(data: Any) -> list[tuple[str, ...]] | None:
    """The columns of each public block's alphabet; None where some cannot be read, or stand there twice."""
    blocks = []
    for path, item in items(at(data, "public"), ("public",)):
        inner = [{"name": item.get("name")}] if is_wide(item) else [one for _, one in inside(item, path)]
        columns = tuple(found.column for member in inner for found in attribute(member, path))
        if len(columns) != len(inner) or not columns:
            return None
        blocks.append(columns)
    return blocks if len(set(blocks)) == len(blocks) > 0 else None


def _budget(data: Any) -> Iterator[Finding]:
    """A budget that all releases together may leave without any bound would be none."""
    accepts = at(data, "accept")
    if at(data, "budget") is not None and UNBOUNDED in (accepts if isinstance(accepts, list) else [accepts]):
        said = f"`accept: {UNBOUNDED}` gives up what `budget` bounds"
        advice = f"Remove `budget`, and nothing bounds the releases together; or remove `{UNBOUNDED}`, and it holds."
        yield Finding(("accept",), "wrong-value", said, advice, key=True)


def _names(split: dict[str, Any], blocks: list[tuple[str, ...]] | None) -> Iterator[Finding]:
    """The split names every block once, and its shares add up."""
    if blocks is None or None in split.values():
        return
    path, wrong, named = ("privacy", "split"), False, [0] * len(blocks)
    for name in split:
        fits = [index for index, columns in enumerate(blocks) if name in spellings(columns)]
        if len(fits) == 1:
            named[fits[0]] += 1
        if len(fits) != 1 or named[fits[0]] > 1:
            wrong = True
            left = [columns for columns in blocks if not any(one in split for one in spellings(columns))]
            yield _misnamed((*path, name), len(fits), left)
    absent = ["+".join(columns) for columns, times in zip(blocks, named, strict=True) if not times]
    if absent and not wrong:
        yield Finding(
            path,
            "split",
            f"the split leaves out {listed(absent, 'and')}",
            "Name every block of `public` once.",
            key=True,
        )
    elif not wrong and not adds_up(list(split.values())):
        yield Finding(path, "split", f"the shares add up to {sum(split.values()):.10g}, not to 1", key=True)


def _misnamed(path: Path, fits: int, blocks: list[tuple[str, ...]]) -> Finding:
    """A name in the split that stands for no block, for several, or for one that was named before.

    `blocks` are those that nobody names.
    """
    name = str(path[-1])
    reasons = {0: "is not a public block", 1: "was named before in another spelling"}
    advice = choice(name, ["+".join(columns) for columns in blocks]) if fits == 0 else None
    said = f"`{shortened(name)}` {reasons.get(fits, 'fits several blocks')}"
    return Finding(path, "split", said, advice, key=True)


def _draws(data: Any) -> Iterator[Finding]:
    """Permanent draws need an entity and a key; a key without either word is a misunderstanding."""
    draws, source = at(data, "draws"), at(data, "source")
    if not isinstance(draws, dict | None) or not isinstance(source, dict | None):
        return
    given, entity = draws or {}, "entity" in (source or {})
    kind = given.get("kind", "permanent" if entity else "fresh")
    if kind == "permanent" and not entity:
        yield Finding(
            ("draws", "kind"),
            "missing-key",
            "permanent draws need `source.entity`, which says whose record it is",
            "Name that column, or write `kind: fresh`.",
        )
    if kind == "permanent" and "key" not in given:
        yield Finding(
            ("draws", "key") if draws else ("source", "entity"),
            "missing-key",
            "permanent draws (the default where `source.entity` is given) need `draws.key`",
            "Make a key with `funnel key new` and name it as `key: env:NAME` or `key: file:PATH`; "
            "or write `kind: fresh`.",
            key=True,
        )
    if "kind" not in given and "key" in given and not entity:
        yield Finding(
            ("draws", "key"),
            "wrong-value",
            "this key would not be used: without `source.entity` draws are fresh in every release",
            "Name that column, or write `kind: fresh` if you mean it.",
        )


def _counted(data: Any) -> Iterator[Finding]:
    """Equal rows can be counted where no row is different from all others, and no column has the count's name."""
    if at(data, "release", "rows") != "counts":
        return
    path, wide = ("release", "rows"), next(wide_blocks(data), None)
    if any(keys(data)):
        said = "rows that have names (`identify`) are all different: there is nothing to count"
        yield Finding(path, "unsupported", said, "Write `rows: records`, or leave `identify` out.")
    if wide is not None:
        said = "rows of a wide block are filled in one by one, so that hardly two are alike"
        yield Finding(path, "unsupported", said, "Write `rows: records`.")
    for one in mentions(data):
        if one.role == "public" and folded(one.column) == COUNT:
            said = f"`{shortened(one.column)}` is the name of the column that says how often each row was drawn"
            yield Finding(one.path, "duplicate-column", said, "Write `rows: records` under `release`.")


def _sets(data: Any) -> Iterator[Finding]:
    """The sets of a block of several columns are one column, under all of their names: no other has that name."""
    kind = at(data, "mechanism", "kind") or at(data, "mechanism")
    form = MECHANISMS[kind].model_fields.get("release") if isinstance(kind, str) and kind in MECHANISMS else None
    if form is None or (at(data, "mechanism", "release") or form.default) != "set":
        return
    names = [folded("+".join(block)) for block in _blocks(data) or () if len(block) > 1]
    plain = [one for one in (*mentions(data), *keys(data)) if one.role in ("public", "identify")]
    same = [(one.path, one.column) for one in plain if folded(one.column) in names]
    same += [(("public",), name) for place, name in enumerate(names) if name in names[:place]]
    for path, name in same:
        said = f"`{shortened(name)}` is what the sets of a block of several columns are called"
        yield Finding(path, "duplicate-column", said, "Rename a column in the source, or write `release: bits`.")


def _readable(data: Any) -> Iterator[Finding]:
    """Readers of a CSV file leave out blanks around a column's name, and some stop at a carriage return in it."""
    if at(data, "release", "format") != "csv":
        return
    for one in (*mentions(data), *keys(data)):
        if one.role in ("public", "identify") and one.column != bare(one.column):
            said = f"`{shortened(one.column)}` has blanks around it, or a carriage return: readers of CSV lose them"
            yield Finding(one.path, "wrong-value", said, "Write `format: parquet`, or rename it in the source.")


def _settings(data: Any) -> Iterator[Finding]:
    """Settings of an engine are for that engine."""
    if at(data, "spark") is not None and at(data, "engine") != "spark":
        said = "settings of Spark, which does not read the table"
        yield Finding(("spark",), "unsupported", said, "Write `engine: spark`, or leave `spark` out.")


def _described(data: Any) -> Iterator[Finding]:
    """What is described is released."""
    described = at(data, "metadata", "columns")
    released = [one.column for one in (*mentions(data), *keys(data)) if one.role in ("public", "identify")]
    for name in described if isinstance(described, dict) else ():
        if isinstance(name, str) and name not in released:
            said = f"`{shortened(name)}` is described and not released"
            yield Finding(("metadata", "columns", name), "unknown-column", said, choice(name, released), key=True)
