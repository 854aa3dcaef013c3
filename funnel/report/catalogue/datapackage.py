"""datapackage.json: a Data Package, version 2.0 (datapackage.org)."""

from __future__ import annotations

from typing import Any

from funnel.report.catalogue.columns import Column
from funnel.report.catalogue.record import File, Record

_PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
_TWICE = "report.json"
"""Says what report.html says; readers of packages take its name for that of a report of their own."""
Json = dict[str, Any]


def datapackage(record: Record) -> Json:
    """Files with their bytes and hashes, the table's with its columns; the promise under `privacy`."""
    m, told = record.stated, record.told
    beside = [_resource(one) for one in record.files if not one.is_data and one.name != _TWICE]
    found: Json = {
        "$schema": _PROFILE,
        "name": m.name.lower(),
        "id": m.release,
        "title": record.title,
        "description": record.description,
        "created": m.created,
        "resources": [_table(record), *beside],
        "privacy": {
            "notion": record.notion,
            "epsilon": record.epsilon,
            "unit": "nats",
            "bounds": record.measure,
            "measured": m.leakage[record.measure],
            "promise": record.promise,
            "against": record.against,
            "drawing": list(record.drawing),
            "not_promised": record.not_promised,
        },
    }
    if record.license is not None and told.license is not None:
        named = {} if "://" in told.license else {"name": told.license}
        found["licenses"] = [named | {"path": record.license}]
    if told.publisher is not None:
        where = {} if told.publisher.url is None else {"path": told.publisher.url}
        found["contributors"] = [{"title": told.publisher.name, "roles": ["publisher"]} | where]
    if record.address is not None:
        found["homepage"] = record.address
    return found


def _resource(file: File) -> Json:
    return {
        "name": file.name.lower(),
        "path": file.name,
        "format": file.name.rpartition(".")[2],
        "mediatype": file.media,
        "bytes": file.bytes,
        "hash": f"sha256:{file.sha256}",
    }


def _table(record: Record) -> Json:
    """The table; of many files, the schema is that of each, and the column of the folders stands beside it."""
    file = record.data[0]
    found = _resource(file) | ({"encoding": "utf-8"} if file.media == "text/csv" else {})
    # Of a CSV, readers of packages take an empty text for a missing one.
    fields = {one.name: _field(one, empty=file.media != "text/csv") for one in record.columns}
    if record.folders is not None:
        found["partition"] = fields.pop(record.folders)
    if record.several:
        found["path"] = [one.name for one in record.data]
        del found["bytes"], found["hash"]  # which are those of one file; croissant.json has each file's
    return found | {"name": "data", "type": "table", "schema": {"fields": [*fields.values()]}}


def _field(column: Column, *, empty: bool) -> Json:
    """A column; times are as the writer writes them, whose blank between date and time is not the standard's T."""
    found: Json = {"name": column.name, "type": column.kind, "description": column.words}
    if column.kind == "datetime":
        found["format"] = "any"
    if values := [one for one in column.values if one or empty]:
        found["categories"] = [*map(int, values)] if column.kind == "integer" else values
    return found
