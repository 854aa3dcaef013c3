"""What catalogues read of a release: the standards' own readers take it, and every figure in it is the release's."""

from __future__ import annotations

import hashlib
import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

import funnel
from funnel.errors import PolicyError
from funnel.format import schema
from funnel.format.manifest import CATALOGUES, FileEntry, Manifest
from tests.support.people import MONDAY, SMALL, people
from tests.support.policies import write_policy

TOLD = {
    "title": "People by place",
    "description": "Where people live.",
    "url": "https://data.example.org/people",
    "license": "CC-BY-4.0",
    "publisher": {"name": "City of X", "url": "https://example.org"},
    "columns": {"x": "Where they live"},
}
UNARY: dict[str, Any] = {"kind": "unary-encoding"}
KINDS: dict[str, dict[str, Any]] = {
    "parquet": {"metadata": TOLD},
    "counts": {"release__format": "csv", "release__rows": "counts"},
    "lists": {"release__format": "csv", "mechanism": UNARY | {"release": "set"}},
    "bits": {"release__format": "csv", "mechanism": UNARY | {"release": "bits"}, "metadata": TOLD},
    "named": {"release__format": "csv", "release__identify": ["id"], "metadata": {"license": "https://l.example/1"}},
}
SHAPE = """
@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix dcat: <http://www.w3.org/ns/dcat#> .
@prefix dct: <http://purl.org/dc/terms/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix spdx: <http://spdx.org/rdf/terms#> . @prefix foaf: <http://xmlns.com/foaf/0.1/> .
[] a sh:NodeShape ; sh:targetClass dcat:Dataset ; sh:nodeKind sh:IRI ;
  sh:property [ sh:path dct:title ; sh:minCount 1 ; sh:nodeKind sh:Literal ] ;
  sh:property [ sh:path dct:description ; sh:minCount 1 ; sh:nodeKind sh:Literal ] ;
  sh:property [ sh:path dct:issued ; sh:minCount 1 ; sh:maxCount 1 ; sh:datatype xsd:dateTime ] ;
  sh:property [ sh:path dct:publisher ; sh:maxCount 1 ; sh:class foaf:Agent ] ;
  sh:property [ sh:path dcat:distribution ; sh:minCount 1 ; sh:class dcat:Distribution ] .
[] a sh:NodeShape ; sh:targetClass dcat:Distribution ;
  sh:property [ sh:path dcat:accessURL ; sh:minCount 1 ; sh:nodeKind sh:IRI ] ;
  sh:property [ sh:path dcat:downloadURL ; sh:nodeKind sh:IRI ] ;
  sh:property [ sh:path dct:license ; sh:maxCount 1 ; sh:class dct:LicenseDocument ] ;
  sh:property [ sh:path dcat:byteSize ; sh:maxCount 1 ; sh:datatype xsd:nonNegativeInteger ] ;
  sh:property [ sh:path dcat:mediaType ; sh:maxCount 1 ; sh:nodeKind sh:IRI ] ;
  sh:property [ sh:path spdx:checksum ; sh:minCount 1 ; sh:maxCount 1 ;
    sh:node [ sh:property [ sh:path spdx:algorithm ; sh:hasValue spdx:checksumAlgorithm_sha256 ] ;
              sh:property [ sh:path spdx:checksumValue ; sh:minCount 1 ; sh:datatype xsd:hexBinary ] ] ] .
[] a sh:NodeShape ; sh:targetClass foaf:Agent ; sh:property [ sh:path foaf:name ; sh:minCount 1 ] .
"""
"""What DCAT-AP 3 asks of data sets, distributions and agents, as far as a release has them."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A release of each kind, and the private folder that it was made with beside it."""
    folder = tmp_path_factory.mktemp("catalogues")
    people(folder, MONDAY)
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FUNNEL_KEY", funnel.new_key())
        for kind, changes in KINDS.items():
            where = {"release__to": f"{kind}/releases", "release__private": f"{kind}/private"}
            found[kind] = Path(funnel.run(write_policy(folder, **(SMALL | where | changes))).release or "")
    return found


def read(release: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((release / name).read_text())
    return found


def stated(release: Path) -> Manifest:
    return schema.read(Manifest, "release.json", (release / "release.json").read_bytes())


def claims(release: Path, status: str = "failed") -> set[str]:
    return {one.claim for one in funnel.audit_release(release).of(status)}


@pytest.mark.parametrize("kind", KINDS)
def test_each_tells_the_promise_against_whom_and_what_is_not_promised(kind: str, made: dict[str, Path]) -> None:
    report = read(made[kind], "report.json")
    promise = report["promise"]["sentence"]
    stands = (promise, *(report["promise"][name] for name in ("observer", "strength")))  # the latter has a robust set
    for name in CATALOGUES:
        text = json.dumps(read(made[kind], name), ensure_ascii=False)
        for told in (*stands, *(one["text"] for one in report["limits"])):
            assert json.dumps(told, ensure_ascii=False)[1:-1] in text, name
        assert "0.2" in text
    assert read(made[kind], "datapackage.json")["privacy"]["epsilon"] == 0.2
    dcat = read(made[kind], "dcat.jsonld")
    assert "anonym" not in json.dumps(dcat).lower()
    measures = {one["@type"] for one in dcat["dpv:hasTechnicalMeasure"]}
    assert ("dpv:Deidentification" in measures) == (not stated(made[kind]).identify), "rows with a key have names"
    assert f". {promise}" in f". {dcat['dct:description']}", "a sentence ends before another begins"


@pytest.mark.parametrize("kind", KINDS)
def test_hashes_are_those_of_the_files_and_columns_those_of_the_table(kind: str, made: dict[str, Path]) -> None:
    release = made[kind]
    package, bread = read(release, "datapackage.json"), read(release, "croissant.json")
    for one in package["resources"]:
        raw = (release / one["path"]).read_bytes()
        assert (one["bytes"], one["hash"]) == (len(raw), f"sha256:{hashlib.sha256(raw).hexdigest()}")
    for one in bread["distribution"]:
        assert one["sha256"] == hashlib.sha256((release / one["@id"]).read_bytes()).hexdigest()
    data = release / stated(release).data
    columns = pq.read_schema(data).names if kind == "parquet" else data.read_text().splitlines()[0].split(",")
    columns = [name.strip('"') for name in columns]
    assert [one["name"] for one in package["resources"][0]["schema"]["fields"]] == columns
    assert [one["source"]["extract"]["column"] for one in bread["recordSet"][0]["field"]] == columns


@pytest.mark.parametrize(("written", "listed"), [("parquet", ["", "x1"]), ("csv", ["x1"])])
def test_an_empty_text_is_a_category_where_it_is_not_read_as_missing(
    tmp_path: Path, written: str, listed: list[str]
) -> None:
    rows = "SELECT i AS id, 's' || (i % 2) AS s, if(i % 3 = 0, '', 'x1') AS x FROM range(90) t(i)"
    duckdb.sql(f"COPY ({rows}) TO '{tmp_path}/people.parquet' (FORMAT parquet)")
    draws = {"draws": {"kind": "fresh"}, "release__format": written}
    made = Path(funnel.run(write_policy(tmp_path, **(SMALL | draws))).release or "")
    (field,) = read(made, "datapackage.json")["resources"][0]["schema"]["fields"]
    assert field["categories"] == listed


def test_fields_have_types_categories_and_descriptions(made: dict[str, Path]) -> None:
    fields = {kind: read(made[kind], "datapackage.json")["resources"][0]["schema"]["fields"] for kind in KINDS}
    x = ["x0", "x1", "x2"]
    drawn = "Drawn with the chances in protocol.json."
    assert fields["parquet"] == [
        {"name": "x", "type": "string", "categories": x, "description": f"Where they live. {drawn}"}
    ]
    counts = {"name": "count", "type": "integer", "description": "How many records the row stands for."}
    assert fields["counts"] == [{"name": "x", "type": "string", "categories": x, "description": drawn}, counts]
    assert [(one["name"], one["type"], "categories" in one) for one in fields["lists"]] == [("x", "array", False)]
    assert [(one["name"], one["type"], one["categories"]) for one in fields["bits"]] == [
        (f"x={value}", "integer", [0, 1]) for value in x
    ]
    assert all(one["description"].startswith("Where they live. 1 where") for one in fields["bits"])
    assert [(one["name"], one["type"]) for one in fields["named"]] == [("id", "integer"), ("x", "string")]
    assert fields["named"][0]["description"].startswith("Published untouched")


@pytest.mark.parametrize(
    ("changes", "english", "german"),
    [
        (
            {"epsilon": 9},
            "Not drawn: the value as the policy reads it.",
            "Nicht gezogen: der Wert, wie die Richtlinie ihn liest.",
        ),
        (
            {"notion": "mutual-information", "epsilon": 0.0275},
            "What protocol.json names for the true value: nothing is left to chance.",
            "Was protocol.json für den wahren Wert nennt: nichts bleibt dem Zufall überlassen.",
        ),
    ],
    ids=["same", "merged"],
)
def test_what_is_not_drawn_is_not_said_to_be(
    changes: dict[str, Any], english: str, german: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUNNEL_KEY", funnel.new_key())
    people(tmp_path, MONDAY)
    merging = {"mechanism": {"kind": "greedy-funnel"}} if "notion" in changes else {}
    asked = SMALL | merging | {f"privacy__{key}": value for key, value in changes.items()}
    for language, said in (("en", english), ("de", german)):
        where = {"release__to": f"{language}/out", "release__private": f"{language}/private"}
        release = Path(funnel.run(write_policy(tmp_path, **asked, **where, release__language=language)).release or "")
        (field,) = read(release, "datapackage.json")["resources"][0]["schema"]["fields"]
        (other,) = read(release, "croissant.json")["recordSet"][0]["field"]
        assert field["description"] == other["description"] == said
        assert "Drawn with" not in (release / "dcat.jsonld").read_text()
        assert not claims(release)


@pytest.mark.parametrize("kind", KINDS)
def test_frictionless_reads_package_and_rows(kind: str, made: dict[str, Path]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import frictionless

        # Its reader of Parquet counts no bytes; the test above does.
        skipped = ["byte-count"] if kind == "parquet" else []
        found = frictionless.validate(str(made[kind] / "datapackage.json"), skip_errors=skipped)
    assert found.valid, found.flatten(["type", "note"])


@pytest.mark.parametrize("kind", KINDS)
def test_mlcroissant_reads_the_file_and_its_fields(kind: str, made: dict[str, Path]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mlcroissant

        found = mlcroissant.Dataset(jsonld=str(made[kind] / "croissant.json")).metadata
    assert not found.issues.errors
    assert bool(found.license) == ("metadata" in KINDS[kind])
    assert found.data_limitations == read(made[kind], "croissant.json")["rai:dataLimitations"]


@pytest.mark.parametrize("kind", KINDS)
def test_dcat_has_what_the_profile_asks_for(kind: str, made: dict[str, Path]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pyshacl
        from rdflib import Graph

        graph = Graph().parse(made[kind] / "dcat.jsonld", format="json-ld", publicID="https://x.example/r/")
        shape = Graph().parse(data=SHAPE, format="turtle")
        holds, _, text = pyshacl.validate(graph, shacl_graph=shape)
        assert holds, text
        graph.remove((None, next(p for p in graph.predicates() if p.endswith("accessURL")), None))
        assert not pyshacl.validate(graph, shacl_graph=shape)[0], "the shape can fail"


def test_parquet_tells_its_columns(made: dict[str, Path]) -> None:
    notes = pq.read_metadata(made["parquet"] / "data.parquet").metadata
    assert json.loads(notes[b"columns"]) == {"x": "Where they live. Drawn with the chances in protocol.json."}


@pytest.mark.parametrize("kind", KINDS)
def test_the_audit_writes_them_again(kind: str, made: dict[str, Path], tmp_path: Path) -> None:
    assert not claims(made[kind]) and "catalogue" in claims(made[kind], "passed")
    copy = tmp_path / "copy"
    shutil.copytree(made[kind], copy)
    for name in CATALOGUES:
        raw = (copy / name).read_bytes()
        changed = raw.replace(b"nats", b"bits") if name == "croissant.json" else raw.replace(b"0.2", b"0.1")
        (copy / name).write_bytes(changed)
        files = stated(copy).files | {name: FileEntry(hashlib.sha256(changed).hexdigest(), len(changed))}
        whole = (copy / "release.json").read_bytes()
        value = json.loads(whole) | {"files": schema.as_json(files)}
        (copy / "release.json").write_bytes(schema.encode(value))
        assert claims(copy) == {"catalogue"}, name
        (copy / name).write_bytes(raw)
        (copy / "release.json").write_bytes(whole)


def test_metadata_changes_no_promise(tmp_path: Path) -> None:
    people(tmp_path, MONDAY)
    plain = funnel.load(write_policy(tmp_path, **SMALL))
    told = funnel.load(write_policy(tmp_path, **SMALL, metadata=TOLD))
    from funnel.policy.terms import beside, terms

    assert terms(plain) == terms(told) and beside(plain) == beside(told)


def test_what_is_described_must_be_released(tmp_path: Path) -> None:
    people(tmp_path, MONDAY)
    with pytest.raises(PolicyError, match=r"`s` is described and not released"):
        funnel.load(write_policy(tmp_path, **SMALL, metadata={"columns": {"s": "what is hidden"}}))
    for wrong in ({"license": "CC BY"}, {"url": "data"}, {"publisher": {"url": "https://x.example"}}):
        with pytest.raises(PolicyError, match="metadata"):
            funnel.load(write_policy(tmp_path, **SMALL, metadata=wrong))
