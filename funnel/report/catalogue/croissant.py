"""croissant.json: Croissant 1.1 with the fields for responsible use, RAI 1.0 (docs.mlcommons.org/croissant)."""

from __future__ import annotations

from typing import Any

from funnel.report.catalogue.columns import Column
from funnel.report.catalogue.record import Record
from funnel.text import number

_CR, _RAI = "http://mlcommons.org/croissant/", "http://mlcommons.org/croissant/RAI/"
_TERMS = (
    "citeAs", "column", "dataType", "equivalentProperty", "examples", "extract", "field", "fileObject", "fileProperty",
    "fileSet", "format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet",
    "references", "regex", "repeated", "replace", "samplingRate", "separator", "source", "subField", "transform",
)  # fmt: skip
_TYPES = {"integer": "Integer", "number": "Float", "date": "Date", "datetime": "DateTime", "boolean": "Boolean"}
CONTEXT: dict[str, Any] = {
    "@vocab": "https://schema.org/",
    "cr": _CR,
    "rai": _RAI,
    "sc": "https://schema.org/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    **{name: f"cr:{name}" for name in _TERMS},
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
}
"""The terms of the standard; its texts are in the language of the release."""


def _media(media: str) -> str:
    """The media type as readers of Croissant know it: Parquet by its older name alone."""
    return {"application/vnd.apache.parquet": "application/x-parquet"}.get(media, media)


def croissant(record: Record) -> dict[str, Any]:
    """The table's files and columns; what is promised, and what is not, in the fields of RAI."""
    m, told = record.stated, record.told
    owner = None
    if told.publisher is not None:
        where = {} if told.publisher.url is None else {"url": told.publisher.url}
        owner = {"@type": "sc:Organization", "name": told.publisher.name} | where
    bound = f"{record.notion}, epsilon {number(record.epsilon)} nats."
    optional = {"license": record.license, "url": record.address, "creator": owner, "publisher": owner}
    return {
        "@context": {"@language": m.language, **CONTEXT},
        "@type": "sc:Dataset",
        "conformsTo": [f"{_CR}1.1", f"{_RAI}1.0"],
        "name": m.name,
        "alternateName": record.title,
        "identifier": m.release,
        "description": record.description,
        "datePublished": m.created,
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": file.name,
                "name": file.name,
                "contentUrl": record.url(file) if record.address else file.name,
                "contentSize": f"{file.bytes} B",
                "encodingFormat": _media(file.media),
                "sha256": file.sha256,
            }
            for file in record.files
        ]
        + _set(record),
        "recordSet": [_records(record)],
        "rai:personalSensitiveInformation": [bound, record.promise, record.against],
        "rai:dataManipulationProtocol": list(record.drawing),
        "rai:dataLimitations": record.not_promised,
        **{key: value for key, value in optional.items() if value is not None},
    }


def _set(record: Record) -> list[dict[str, Any]]:
    """The files of a table that has several, as one."""
    if not record.several:
        return []
    media, form = record.data[0].media, record.stated.format_of_data
    files = f"data/*.{form}" if record.folders is None else f"data/*/*.{form}"
    one = {"@id": "data", "name": "data", "encodingFormat": _media(media), "includes": files}
    return [{"@type": "cr:FileSet", **one}]


def _source(column: Column, record: Record) -> dict[str, Any]:
    if not record.several:
        return {"fileObject": {"@id": record.data[0].name}, "extract": {"column": column.name}}
    files = {"fileSet": {"@id": "data"}}
    if column.name != record.folders:
        return files | {"extract": {"column": column.name}}
    return files | {"extract": {"fileProperty": "fullpath"}, "transform": {"regex": "data/[^/=]*=([^/]*)/"}}


def _records(record: Record) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": "rows",
        "name": "rows",
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"rows/{column.name}",
                "name": f"rows/{column.name}",
                "description": column.words,
                "dataType": f"sc:{_TYPES.get(column.kind, 'Text')}",
                "source": _source(column, record),
            }
            for column in record.columns
        ],
    }
