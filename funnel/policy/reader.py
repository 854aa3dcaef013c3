"""A strict reader of YAML that remembers where everything stands.

It takes PyYAML's events, not its loaders: no object is ever built from a tag, nothing is repeated by an
alias, no key silently replaces another, and unquoted scalars follow YAML 1.2.

An unquoted scalar means what YAML 1.2's core schema says, so that `no` is text and `1e-3` a number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import yaml

from funnel.errors import PolicyError
from funnel.policy.document import Document, Mark, Path, dotted, shortened

MAX_BYTES = 256 * 1024
MAX_DEPTH = 16
MAX_NODES = 20_000

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_ADVICE = {
    "mapping values are not allowed here": "Put a text that holds a colon and a blank into quotes.",
    "found character '\\t' that cannot start any token": "Indent with blanks, not with tabs.",
    "could not find expected ':'": "Every line of a mapping is `key: value`.",
}
Scalar = str | int | float | bool | None

_WORDS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_WHOLE = re.compile(r"[-+]?[0-9]+")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"([-+]?)\.(inf|Inf|INF)")
_NOT_A_NUMBER = re.compile(r"\.(nan|NaN|NAN)")
_PADDED = re.compile(r"[-+]?0[0-9]+")
_LONGEST_WHOLE = 30
"""Longer runs of digits become floats: nobody counts so far, and Python refuses to print long integers."""


def read(text: str, file: str) -> Document:
    """The document in a text; its `problems` hold what can be read around.

    Raises PolicyError, with all problems met so far, where reading cannot go on.
    """
    return _Reader(text, file).document


class _Reader:
    """One pass over the events of one text."""

    def __init__(self, text: str, file: str) -> None:
        self.document = Document(file)
        self.document.places.values[()] = (1, 1)
        self.nodes = 0
        if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
            self.stop((1, 1), "policy-too-large", f"the policy is larger than {MAX_BYTES // 1024} KiB")
        self.events = self.parse(text.removeprefix("\ufeff"))
        self.stream()

    def parse(self, text: str) -> Iterator[Any]:
        """The events of the text; what is not YAML stops the reader."""
        try:
            loader = yaml.SafeLoader(text)
            while loader.check_event():
                yield loader.get_event()  # type: ignore[no-untyped-call]
        except yaml.MarkedYAMLError as error:
            problem = error.problem or error.context or "unreadable"
            self.stop(
                _mark(error.problem_mark or error.context_mark),
                "policy-syntax",
                f"this is not valid YAML: {shortened(problem, 120)}",
                _ADVICE.get(problem),
            )
        except yaml.reader.ReaderError as error:
            before = text[: error.position]
            mark = (before.count("\n") + 1, error.position - before.rfind("\n"))
            character = f"U+{ord(text[error.position]):04X}"
            self.stop(mark, "policy-syntax", f"this is not valid YAML: it holds the character {character}")
        except (ValueError, OverflowError):
            # PyYAML passes on what chr() and int() say of an impossible \U escape or %YAML version.
            self.stop(
                _mark(loader.get_mark()), "policy-syntax", "this is not valid YAML: a number is out of range"
            )

    def stop(self, mark: Mark, code: str, message: str, suggestion: str | None = None) -> None:
        """Raise everything noted so far and this."""
        self.document.refuse(mark, code, message, suggestion)
        raise PolicyError(self.document.problems)

    def stream(self) -> None:
        """One document, or none; a second one is refused."""
        read = False
        for event in self.events:
            if not isinstance(event, yaml.DocumentStartEvent):
                continue
            mark = _mark(event.start_mark)
            if read:
                self.document.refuse(
                    mark,
                    "policy-syntax",
                    "the file holds several documents",
                    "Keep each policy in a file of its own.",
                )
                return
            if event.tags:
                self.document.refuse(mark, "policy-alias", "a %TAG directive is not allowed", "Remove it.")
            self.document.data = self.node(next(self.events), ())
            read = True

    def node(self, event: Any, path: Path) -> Any:
        """The plain data of the node that begins with this event."""
        mark = _mark(event.start_mark)
        self.document.places.values[path] = mark
        self.count(mark, path)
        self.check_features(event, mark, path)
        if isinstance(event, yaml.MappingStartEvent):
            return self.mapping(path)
        if isinstance(event, yaml.SequenceStartEvent):
            return self.sequence(path)
        return self.scalar(event, mark, path) if isinstance(event, yaml.ScalarEvent) else None

    def count(self, mark: Mark, path: Path) -> None:
        """Stop at a depth or a number of parts that no policy needs."""
        self.nodes += 1
        if len(path) > MAX_DEPTH:
            self.stop(mark, "policy-too-large", f"the policy is nested more than {MAX_DEPTH} levels deep")
        if self.nodes > MAX_NODES:
            self.stop(mark, "policy-too-large", f"the policy has more than {MAX_NODES:,} parts")

    def check_features(self, event: Any, mark: Mark, path: Path) -> None:
        """Refuse anchors, aliases and tags."""
        if event.anchor is not None:
            alias = isinstance(event, yaml.AliasEvent)
            said = f"the {'alias' if alias else 'anchor'} `{shortened(event.anchor)}` is not allowed"
            self.document.broken |= {path} if alias else set()
            self.document.refuse(mark, "policy-alias", said, "Write the value out.")
        if getattr(event, "tag", None) is not None:
            self.document.broken.add(path)
            self.document.refuse(
                mark,
                "policy-alias",
                f"the tag `{shortened(event.tag)}` is not allowed",
                "Remove the tag; put a text that looks like a number into quotes.",
            )

    def sequence(self, path: Path) -> list[Any]:
        """The items up to the end of the list."""
        items: list[Any] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            items.append(self.node(event, (*path, len(items))))
        return items

    def mapping(self, path: Path) -> dict[str, Any]:
        """The entries up to the end of the mapping; of equal keys the first one counts."""
        entries: dict[str, Any] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            mark = _mark(event.start_mark)
            key = self.key(event, path)
            if key is None or key in entries:
                self.repeated(key, mark, path)
                self.node(next(self.events), (*path, "?"))
            else:
                self.document.places.keys[*path, key] = mark
                entries[key] = self.node(next(self.events), (*path, key))
        return entries

    def repeated(self, key: str | None, mark: Mark, path: Path) -> None:
        """Note a key that stood before (None: a key that is no key at all, noted already)."""
        if key is not None:
            line, column = self.document.places.keys[*path, key]
            said = f"the key `{shortened(key)}` appears twice; first at line {line}, column {column}"
            self.document.refuse(mark, "duplicate-key", said, "Keep one of them.")

    def key(self, event: Any, path: Path) -> str | None:
        """The text of a key, exactly as written: keys are names, also `no` and `2020`."""
        mark = _mark(event.start_mark)
        inner = (*path, "?")
        if not isinstance(event, yaml.ScalarEvent):
            self.node(event, inner)
            if not isinstance(event, yaml.AliasEvent):
                self.document.refuse(mark, "policy-syntax", "a key must be a plain text")
            return None
        if event.value == "<<" and event.style is None:
            self.document.refuse(mark, "policy-alias", "merge keys (<<) are not allowed", "Write them out.")
            return None
        self.count(mark, inner)
        self.check_features(event, mark, inner)
        return self.text(event.value, mark, inner)

    def scalar(self, event: Any, mark: Mark, path: Path) -> Any:
        """A quoted or block scalar is text; an unquoted one is what it looks like, but never nothing."""
        if event.style is not None:
            return self.text(event.value, mark, path)
        try:
            value = resolve(event.value)
            if value is None and path:
                self.document.broken.add(path)
                self.document.refuse(
                    mark,
                    "wrong-type",
                    f"`{dotted(path)}` has no value",
                    "Give it a value; what is not required may be left out.",
                )
            return value
        except ValueError as error:
            self.document.broken.add(path)
            self.document.refuse(
                mark,
                "wrong-value",
                f"`{shortened(event.value)}`: {error}",
                "Remove the zeros, or put it into quotes if it is a text.",
            )
            return None

    def text(self, value: str, mark: Mark, path: Path) -> str:
        """A text without control characters, which escapes could bring in and no name or path can hold.

        Where there are some, a stand-in goes on to the checks.
        """
        if found := _CONTROL.search(value):
            self.document.broken.add(path)
            self.document.refuse(mark, "policy-syntax", f"the text holds the character U+{ord(found[0]):04X}")
            return _CONTROL.sub("\ufffd", value)
        return value


def _mark(mark: Any) -> Mark:
    """PyYAML counts from 0, people from 1."""
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)


def resolve(text: str) -> Scalar:
    """The value of an unquoted scalar. Raises ValueError where YAML 1.1 and 1.2 would read another number."""
    if text in _WORDS:
        return _WORDS[text]
    if _PADDED.fullmatch(text):
        raise ValueError("a number with leading zeros is octal to some readers and decimal to others")
    if _WHOLE.fullmatch(text) and len(text) <= _LONGEST_WHOLE:
        return int(text)
    if is_number(text):
        return float(text)
    if infinite := _INFINITE.fullmatch(text):
        return -math.inf if infinite[1] == "-" else math.inf
    return math.nan if _NOT_A_NUMBER.fullmatch(text) else text


def is_number(text: str) -> bool:
    """Whether a text would be a finite decimal number without quotes."""
    return _NUMBER.fullmatch(text) is not None
