"""What all catalogues are told of a release: one record, in no catalogue's words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote

from funnel.format.manifest import FileEntry, Manifest, Metadata
from funnel.format.reported import Published
from funnel.release.folders import in_order
from funnel.report import words
from funnel.report.catalogue.columns import Column, columns
from funnel.report.content import limits, promise
from funnel.report.facts import Facts

_NOTHING = Metadata(None, None, None, None, None, {})
_TYPES = {
    "parquet": "application/vnd.apache.parquet",
    "csv": "text/csv",
    "json": "application/json",
    "html": "text/html",
}


@dataclass(frozen=True)
class File:
    """A published file; `is_data` tells the table from what stands beside it."""

    name: str
    sha256: str
    bytes: int
    media: str
    is_data: bool


@dataclass(frozen=True)
class Record:
    """A release for catalogues.

    `promise` says what is promised of the table, `against` to whom knowing what, and for which distributions, `limits`
    what is not promised, by titles, each in sentences of the report; `notion` is the notion's name in words, and
    `epsilon` bounds its `measure`, in nats.
    """

    stated: Manifest
    told: Metadata
    notion: str
    epsilon: float
    measure: str
    promise: str
    against: str
    limits: Mapping[str, str]
    drawing: tuple[str, ...]
    columns: tuple[Column, ...]
    files: tuple[File, ...]

    @classmethod
    def of(cls, shown: Published, files: Mapping[str, FileEntry]) -> Record:
        """From published files and what release.json says of them. Raises InternalError, ValueError."""
        t = Facts.of(shown)
        notion, mechanism = words.notion(t), words.mechanism(t)
        said = promise(t, notion)
        tables = in_order(replace(t.m, files=dict(files)).tables)
        rest = {*files} - {*tables}
        parts = (said[key] for key in ("unbounded", "alone", "sentence", "identity", "absent"))
        return cls(
            stated=t.m,
            told=t.m.metadata or _NOTHING,
            notion=notion["title"],
            epsilon=t.epsilon,
            measure=notion["measure"],
            promise=" ".join(filter(None, parts)),
            against=f"{said['observer']} {said['strength']}",
            limits={one["title"]: one["text"] for one in limits(t, notion, mechanism)},
            drawing=tuple(words.paragraphs("drawing.txt", t=t, notion=notion, mechanism=mechanism)),
            columns=columns(shown),
            files=tuple(_file(name, files[name], is_data=name in tables) for name in [*tables, *sorted(rest)]),
        )

    @property
    def title(self) -> str:
        """The publisher's title, or the policy's name."""
        return self.told.title or self.stated.name

    @property
    def description(self) -> str:
        """What the publisher says it is, then what is promised and against whom, with which it is to be read."""
        own = " ".join((self.told.description or self.stated.description).split())
        ended = own if not own or own[-1] in ".!?" else f"{own}."
        return " ".join(filter(None, (ended, self.promise, self.against)))

    @property
    def not_promised(self) -> list[str]:
        """What is not promised, each in its sentences behind its title."""
        return [f"{title}: {text}" for title, text in self.limits.items()]

    @property
    def license(self) -> str | None:
        """The address of its license."""
        given = self.told.license
        return given if given is None or "://" in given else f"https://spdx.org/licenses/{given}"

    @property
    def address(self) -> str | None:
        """Where the release's own folder can be read, with a slash behind; None where that is not said."""
        return None if self.told.url is None else f"{self.told.url.rstrip('/')}/{self.stated.release}/"

    @property
    def data(self) -> tuple[File, ...]:
        """The files of the table, in the order of its rows."""
        return tuple(one for one in self.files if one.is_data)

    @property
    def folders(self) -> str | None:
        """The column that is in the names of the table's folders alone; None where it has none."""
        return self.stated.folders

    @property
    def several(self) -> bool:
        """Whether the table is more than one file, or could be."""
        return self.stated.partition is not None

    def url(self, file: File) -> str:
        """Where a file is, seen from the release's folder where nobody says where that lies."""
        return f"{self.address or ''}{quote(file.name, safe='/=')}"


def _file(name: str, entry: FileEntry, *, is_data: bool) -> File:
    media = _TYPES.get(name.rpartition(".")[2], "application/octet-stream")
    return File(name, entry.sha256, entry.bytes, media, is_data)
