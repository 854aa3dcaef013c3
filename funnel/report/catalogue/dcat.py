"""dcat.jsonld: DCAT-AP 3, and what protects people in terms of DPV 2, the Data Privacy Vocabulary.

DPV has no term for a bound, so the bound is a value with a name and a unit. Nothing here says that the data are
anonymous: deidentification, where no key is published, and a protocol that preserves privacy are measures taken.
"""

from __future__ import annotations

from typing import Any

from funnel.report.catalogue.record import File, Record
from funnel.text import number

Json = dict[str, Any]
_CONTEXT = {
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "dpv": "https://w3id.org/dpv#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "schema": "https://schema.org/",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "spdx": "http://spdx.org/rdf/terms#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
_MEDIA = "https://www.iana.org/assignments/media-types/"


def dcat(record: Record) -> Json:
    """One data set; a distribution for each file of the table."""
    m, owner = record.stated, record.told.publisher
    found: Json = {
        "@context": _CONTEXT,
        "@id": record.address or "./",
        "@type": "dcat:Dataset",
        "dct:identifier": m.release,
        "dct:title": record.title,
        "dct:description": record.description,
        "dct:issued": {"@type": "xsd:dateTime", "@value": m.created},
        "dct:provenance": {"@type": "dct:ProvenanceStatement", "rdfs:label": " ".join(record.drawing)},
        "dcat:distribution": [_distribution(one, record) for one in record.data],
        "dpv:hasTechnicalMeasure": [*([] if m.identify else [{"@type": "dpv:Deidentification"}]), _protocol(record)],
    }
    if owner is not None:
        where = {} if owner.url is None else {"foaf:homepage": {"@id": owner.url}}
        found["dct:publisher"] = {"@type": "foaf:Agent", "foaf:name": owner.name} | where
    return found


def _protocol(record: Record) -> Json:
    """The promise, its bound, against whom it holds, and what it does not cover."""
    return {
        "@type": "dpv:PrivacyPreservingProtocol",
        "dct:title": record.notion,
        "dct:description": record.promise,
        "skos:scopeNote": record.against,
        "skos:note": [f"Not promised. {one}" for one in record.not_promised],
        "schema:additionalProperty": {
            "@type": "schema:PropertyValue",
            "schema:name": "epsilon",
            "schema:value": {"@type": "xsd:double", "@value": number(record.epsilon)},
            "schema:unitText": "nats",
            "schema:measurementTechnique": record.measure,
        },
    }


def _distribution(file: File, record: Record) -> Json:
    """A file with its size and hash; where nobody says where the folder lies, addresses begin where this file lies."""
    address = {"@id": record.url(file)}
    rights = {} if record.license is None else {
        "dct:license": {"@id": record.license, "@type": "dct:LicenseDocument"}
    }  # fmt: skip
    return rights | {
        "@type": "dcat:Distribution",
        "dct:title": file.name,
        "dcat:accessURL": address,
        "dcat:downloadURL": address,
        "dcat:mediaType": {"@id": _MEDIA + file.media, "@type": "dct:MediaType"},
        "dcat:byteSize": {"@type": "xsd:nonNegativeInteger", "@value": str(file.bytes)},
        "spdx:checksum": {
            "@type": "spdx:Checksum",
            "spdx:algorithm": {"@id": "spdx:checksumAlgorithm_sha256"},
            "spdx:checksumValue": {"@type": "xsd:hexBinary", "@value": file.sha256},
        },
    }
