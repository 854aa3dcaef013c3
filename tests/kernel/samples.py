"""Releases made by hand: small random tables, simple mechanisms, values drawn. No code of the writer."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from funnel.audit.audit import finding
from funnel.audit.extras import agreed, averages, everybody, fit, noise, pinned, promises, spent, uncertainty
from funnel.audit.extras.base import Release
from funnel.audit.kernel.check import findings
from funnel.audit.kernel.verdict import Finding
from funnel.format import (
    counts,
    draws,
    drift,
    estimated,
    evidence,
    journal,
    manifest,
    people,
    population,
    protocol,
    released,
    robust,
    solution,
    terms,
)
from funnel.format.canonical import encode
from funnel.format.fields import Alphabet
from funnel.format.manifest import FileEntry
from funnel.format.schema import as_json, write
from funnel.format.sealed import sealed
from tests.kernel import brute
from tests.support.ledger import NOTHING, PEOPLE
from tests.support.terms import plain_column

ID, MADE = "20260102T030405Z-0a1b2c", "2026-01-02T03:04:05Z"
KEY = "0123456789abcdef"
BITS = 12


def alphabet(name: str, size: int) -> Alphabet:
    return Alphabet((name,), tuple((f"{name}{i}",) for i in range(size)))


def response(values: Alphabet, strength: float) -> protocol.Weights:
    """Randomised response with odds e^strength, on 2^BITS."""
    a, whole = len(values.values), 1 << BITS
    other = int(whole / (math.exp(strength) + a - 1))
    rows = tuple(tuple(whole - (a - 1) * other if x == y else other for x in range(a)) for y in range(a))
    return protocol.Weights("weights", values.columns, None, values.values, values.values, BITS, rows)


def conditional(values: Alphabet, secret: Alphabet) -> protocol.Weights:
    """Reads the secret: y = x with chance 1/2, else noise that depends on s."""
    a, c, half = len(values.values), len(secret.values), 1 << BITS - 1
    noise = np.full((c, a), half // a)
    noise[:, 0] += half - noise.sum(axis=1)
    noise[:, 0] += np.arange(c)
    noise[:, 1] -= np.arange(c)
    rows = np.broadcast_to(noise.T[:, :, None], (a, c, a)) + half * np.eye(a, dtype=int)[:, None, :]
    grid = tuple(tuple(tuple(row) for row in part) for part in rows.tolist())
    return protocol.Weights("weights", values.columns, secret, values.values, values.values, BITS, grid)


def merged(values: Alphabet) -> protocol.Weights:
    """A partition: the first two values become one."""
    a = len(values.values)
    to = [0, 0, *range(1, a - 1)]
    rows = tuple(tuple((1 << BITS) * (to[x] == y) for x in range(a)) for y in range(a - 1))
    return protocol.Weights("weights", values.columns, None, values.values, values.values[:-1], BITS, rows)


def coins(values: Alphabet) -> protocol.Sets:
    return protocol.Sets("unary", values.columns, values.values, BITS, 1 << BITS - 1, 1 << BITS - 2, "set")


@dataclass
class Sample:
    """The records of a release, before they are written."""

    manifest: manifest.Manifest
    protocol: protocol.ProtocolFile
    released: released.ReleasedFile
    counts: counts.CountsFile
    draws: draws.DrawsFile
    terms: terms.TermsFile
    robust: robust.RobustFile | None = None
    lock: str | None = None
    population: population.PopulationFile | None = None
    earlier: tuple[journal.Entry, ...] = ()
    composed: journal.Together | None = None
    plain: dict[str, bytes] = field(
        default_factory=lambda: {"policy.yaml": b"version: 1\n", "groups.json": b"{}\n", "plan.json": b"{}\n"}
    )

    def write(self, root: Path) -> tuple[Path, Path]:
        """Both folders, with every hash as it should be."""
        public, private = root / "releases" / ID, root / "private" / ID
        for folder in (public, private):
            folder.mkdir(parents=True, exist_ok=True)
        page = {"report.json": b'{"rows":1}\n', "report.html": b"<html></html>\n"}
        told = dict.fromkeys(manifest.CATALOGUES, b"{}\n")
        shown = {
            protocol.NAME: write(self.protocol),
            released.NAME: write(self.released),
            self.manifest.data: self.table(),
        } | page | told
        hidden = (
            {
                counts.NAME: write(self.counts),
                draws.NAME: write(self.draws),
                terms.NAME: write(self.terms),
                people.NAME: write(PEOPLE),
                solution.NAME: write(
                    solution.SolutionFile("funnel-solution/1", ("by hand",), (None,), (1.0,), None)
                ),
            }
            | page
            | self.plain
        )
        if self.robust:
            hidden[robust.NAME] = write(self.robust)
        if self.population:
            hidden[population.NAME] = write(self.population)
        if self.lock:
            hidden["lock.yaml"], hidden[drift.NAME] = self.lock.encode(), b"{}\n"
        for folder, files in ((public, shown), (private, hidden)):
            for name, content in files.items():
                (folder / name).write_bytes(content)
        whole = replace(
            self.manifest,
            files=entries(public, shown),
            policy_sha256=digest(hidden["policy.yaml"]),
            plan_sha256=digest(hidden["plan.json"]),
            terms_sha256=digest(hidden[terms.NAME]),
        )
        (public / manifest.NAME).write_bytes(write(whole))
        bound = evidence.EvidenceFile("funnel-evidence/1", ID, digest(write(whole)), entries(private, hidden))
        (private / evidence.NAME).write_bytes(write(bound))
        self._enter(private.parent, whole, write(bound))
        if self.counts.private:
            self._keep(private.parent, self.counts.private)
        return public, private.parent

    def table(self) -> bytes:
        blocks, lines = self.protocol.blocks, [",".join(self.released.columns)]
        for *codes, count in self.released.rows:
            cells = [
                str(code) if brute.is_sets(block) else str(block.outputs[code][0])
                for block, code in zip(blocks, codes, strict=True)
            ]
            lines += [",".join(cells)] * count
        return "\n".join([*lines, ""]).encode()

    def _keep(self, folder: Path, told: counts.Private) -> None:
        """What was drawn for the estimate, once."""
        cells = tuple(zip(*(row[-3:] for row in told.cells), strict=True))
        kept = estimated.EstimatedFile("funnel-estimate/1", told.name, "0" * 64, told.epsilon, cells)
        (folder / estimated.FOLDER).mkdir(exist_ok=True)
        (folder / estimated.file_name(told.name)).write_bytes(write(kept))

    def _enter(self, folder: Path, whole: manifest.Manifest, bound: bytes) -> None:
        releases = [one for one in self.earlier if isinstance(one, journal.ReleaseEntry)]
        measure = MEASURES.get(whole.notion, MEASURES["lip"])[0]
        figure = whole.leakage.get(measure)
        together = self.composed or journal.Together(
            measure, whole.sensitive, figure, figure, "exact", len(releases) + 1, None
        )
        since = next((one.promises[0].since for one in releases), ID)
        promise = journal.Promise(
            whole.name, whole.notion, whole.epsilon, whole.parameters, self.terms.budget, since, None, together
        )
        own = journal.ReleaseEntry(
            release=ID,
            name=whole.name,
            policy_sha256=whole.policy_sha256,
            manifest_sha256=digest(write(whole)),
            evidence_sha256=digest(bound),
            protocol_sha256=whole.files[protocol.NAME].sha256,
            notion=whole.notion,
            epsilon=whole.epsilon,
            leakage=whole.leakage,
            draws=whole.draws.kind,
            key_fingerprint=whole.draws.key_fingerprint,
            entity=self.terms.entity,
            drawn=tuple(
                journal.Drawn(columns, (KEY,) * len(columns), (KEY,) * len(columns), None, (), (ID,) * len(columns))
                for columns in whole.public
            ),
            present=None,
            promises=(promise,),
            identity=journal.Identity(NOTHING, NOTHING, digest(write(PEOPLE)), ID, ID, (), None),
            lock=whole.locked.checksum if whole.locked else None,
        )
        write_journal(folder, (*self.earlier, own))


def write_journal(folder: Path, told: tuple[journal.Entry, ...]) -> None:
    lines, last = b"", journal.START
    for number, entry in enumerate(told, start=1):
        line = write(journal.Line(number, MADE, last, "0" * 32, entry))
        lines, last = lines + line, digest(line)
    (folder / journal.NAME).write_bytes(lines)
    (folder / journal.HEAD).write_bytes(write(journal.Head(len(told), last)))


def digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def entries(folder: Path, names: Any) -> dict[str, FileEntry]:
    return {name: FileEntry(digest(raw), len(raw)) for name in names for raw in [(folder / name).read_bytes()]}


def refit(public: Path, private: Path) -> None:
    """What a forger does who has changed files: every hash anew, down to the ledger's head."""
    own = private / ID
    stated = json.loads((public / manifest.NAME).read_bytes())
    stated["files"] = {name: vars(one) for name, one in entries(public, stated["files"]).items()}
    for key, name in (
        ("policy_sha256", "policy.yaml"),
        ("plan_sha256", "plan.json"),
        ("terms_sha256", terms.NAME),
    ):
        stated[key] = digest((own / name).read_bytes())
    (public / manifest.NAME).write_bytes(encode(stated))
    bound = json.loads((own / evidence.NAME).read_bytes())
    bound["files"] = {name: vars(one) for name, one in entries(own, bound["files"]).items()}
    bound["manifest_sha256"] = digest(encode(stated))
    (own / evidence.NAME).write_bytes(encode(bound))
    last, lines = journal.START, b""
    for text in (private / journal.NAME).read_bytes().splitlines():
        line = json.loads(text)
        line["previous"] = last
        if line["entry"].get("release") == ID:
            line["entry"] |= {
                "manifest_sha256": digest(encode(stated)),
                "evidence_sha256": digest(encode(bound)),
                "policy_sha256": stated["policy_sha256"],
                "protocol_sha256": stated["files"][protocol.NAME]["sha256"],
            }
            line["entry"]["identity"]["people_sha256"] = digest((own / people.NAME).read_bytes())
        lines, last = lines + encode(line), digest(encode(line))
    (private / journal.NAME).write_bytes(lines)
    (private / journal.HEAD).write_bytes(encode({"sequence": lines.count(b"\n"), "sha256": last}))


KEPT = (agreed, averages, everybody, noise, promises, fit, pinned, spent, uncertainty)
"""Extras whose claims a release made by hand keeps."""


def judged(public: Path, private: Path) -> list[Finding]:
    """What the kernel and these extras say."""
    opened = Release(public, private)
    return [*findings(opened), *(finding(extra, opened) for extra in KEPT)]


def up(ratio: Fraction | None, digits: int) -> float | None:
    """ln, rounded up."""
    return None if ratio is None else above(math.log(ratio.numerator) - math.log(ratio.denominator), digits)


def above(nats: float, digits: int) -> float:
    return math.ceil(nats * 10**digits - 1e-9) / 10**digits


MEASURES = {
    "lip": ("lip", brute.lip),
    "perfect": ("lip", brute.lip),
    "ldp": ("ldp", brute.ldp),
    "ldp-x": ("ldp_x", brute.ldp_x),
    "srlip": ("srlip", brute.srlip),
    "pml": ("pml", brute.pml),
    "alip": ("alip", brute.pml),
    "rldp": ("rldp", None),
    "mutual-information": ("mutual_information", None),
}


def cells_of(table: np.ndarray) -> tuple[tuple[int, ...], ...]:
    return tuple((*codes, int(table[codes])) for codes in map(tuple, np.argwhere(table).tolist()))


def draw(generator: np.random.Generator, cells: Any, blocks: Any) -> tuple[Any, Any]:
    """Released rows and draws, every record by itself."""
    together: Counter[tuple[int, ...]] = Counter()
    alone: list[Counter[tuple[int, int]]] = [Counter() for _ in blocks]
    for s, *x, count in cells:
        codes = []
        for block, code, tally in zip(blocks, x, alone, strict=True):
            chances = [float(brute.chance(block, s, code, y)) for y in brute.outputs(block)]
            drawn = generator.choice(len(chances), size=count, p=np.array(chances) / sum(chances))
            codes.append(drawn)
            reads = not brute.is_sets(block) and block.secret is not None
            for y in drawn.tolist():
                if brute.is_sets(block):
                    a = len(block.inputs)
                    tally.update([(code, other) for other in range(a) if y >> (a - 1 - other) & 1] + [(code, a)])
                else:
                    tally[(code + reads * s * len(block.inputs), y)] += 1
        together.update(zip(*(one.tolist() for one in codes), strict=True))
    rows = tuple((*codes, count) for codes, count in sorted(together.items()))
    return rows, tuple(tuple((*pair, n) for pair, n in sorted(tally.items())) for tally in alone)


def sample(  # noqa: PLR0915 - a release has many parts
    notion: str = "lip",
    kind: str = "response",
    sizes: tuple[int, ...] = (4,),
    *,
    secret: int = 3,
    seed: int = 0,
    rows: int = 3000,
    epsilon: float | None = None,
    private: bool = False,
    locked: bool = False,
    permanent: bool = True,
    named: bool = False,
    absent: bool = False,
) -> Sample:
    """A release of a random table with `sizes` public values."""
    generator = np.random.default_rng(seed)
    hidden = alphabet("secret", secret)
    blocks = tuple(alphabet(f"column{j}", size) for j, size in enumerate(sizes))
    names = hidden.columns
    if notion == "rldp":
        pairs = tuple((f"secret{s}", f"u{u}") for s in range(secret) for u in range(2))
        blocks = (Alphabet(("secret", "u"), pairs),)
    shape = (secret, *(len(one.values) for one in blocks))
    if notion == "perfect":
        table = np.multiply.outer(np.arange(1, secret + 1), np.arange(10, 10 + sizes[0]) * 5)
    elif notion == "rldp":
        table = np.zeros(shape, int)
        table[np.arange(2 * secret) // 2, np.arange(2 * secret)] = generator.integers(300, 500, 2 * secret)
    else:
        chances = generator.dirichlet(np.full(math.prod(shape), 3.0))
        table = generator.multinomial(rows, chances).reshape(shape)
    made = {
        "response": lambda one: response(one, 0.8),
        "conditional": lambda one: conditional(one, hidden),
        "merged": merged,
        "coins": coins,
    }[kind]
    protocols = tuple(made(one) for one in blocks)
    true = cells_of(table)
    used, noisy, grids = true, None, None
    if private:
        flat = np.argwhere(np.ones(shape, bool))
        p = math.exp(-0.25)
        noise = generator.geometric(1 - p, len(flat)) - generator.geometric(1 - p, len(flat))
        found = table[tuple(flat.T)] + noise
        used = tuple((*code, max(int(n), 1)) for code, n in zip(flat.tolist(), found.tolist(), strict=True))
        grids = tuple(
            (*code, int(n), max(int(z), 0), max(-int(z), 0))
            for code, n, z in zip(flat.tolist(), table[tuple(flat.T)].tolist(), noise.tolist(), strict=True)
        )
        noisy = counts.Private("estimate-1", "1/2", grids, tuple(row[-3] for row in grids))
    answers, drawn = draw(generator, true, protocols)
    measure, own = MEASURES[notion]
    digits = min(4, int(math.log10(max(table.sum() // 2, 1))))
    figures = {"lip": up(brute.lip(used, protocols), digits), "ldp": up(brute.ldp(used, protocols), digits)}
    figures["mutual_information"] = max(above(brute.information(used, protocols), digits), 0.0)
    parameters, certificate = manifest.Parameters(), None
    if own:
        figures[measure] = up(own(used, protocols), digits)
    if notion == "alip":
        parameters = manifest.Parameters(lower=2.0)
    if notion == "srlip":
        parameters = manifest.Parameters(solve="sequential")
    if notion == "rldp":
        weights = protocols[0].weights
        figures["rldp"] = up(max(Fraction(max(row), min(row)) for row in weights), digits)
        parameters = manifest.Parameters(order=2.0, confidence=0.95, radius=0.02)
        certificate = robust.RobustFile("funnel-robust/1", ())
    if epsilon is None:
        epsilon = 0.0 if notion == "perfect" else math.ceil((figures[measure] or 3) * 100 + 1) / 100
    kept, whole = brute.information(used, protocols, public=True), brute.entropy(used)
    utility = manifest.Utility(*(round(one, digits) for one in (kept, whole, kept / whole)), None)
    file = protocol.ProtocolFile("funnel-protocol/1", "by hand", protocols)
    key = KEY if permanent else None
    text = None
    if locked:
        facts: dict[str, Any] = {
            "protocol": digest(encode(as_json(protocols))), "made": MADE, "rows": int(table.sum()),
            "mechanism": "randomised-response", "parameters": as_json(parameters),
        }  # fmt: skip
        if noisy:
            cells = sorted([*row[:-3], row[-3] + row[-2] - row[-1]] for row in noisy.cells)
            facts |= {
                "estimated": noisy.name,
                "noisy": digest(encode([[as_json(one) for one in (hidden, *blocks)], cells])),
            }
        text = sealed(facts, "by hand")
    stated = manifest.Manifest(
        "funnel-release/1", ID, MADE, "sample", "by hand", names, tuple(one.columns for one in blocks), notion, epsilon,
        parameters, "randomised-response", None, None, (round(1 / len(blocks), 12),) * len(blocks),
        manifest.Draws("permanent" if permanent else "fresh", key), None,
        manifest.Estimate(1, "private" if private else "counts", 0.5 if private else None, 1 if private else None,
                          0.5 if private else None),
        int(table.sum()), (manifest.Key("id", "BIGINT"),) if named else (), "csv", "records", figures, None, utility,
        manifest.Sizes(secret, shape[1:], tuple(len(brute.outputs(one)) for one in protocols)),
        manifest.Locked(text.rstrip()[-65:-1], MADE) if text else None, None, "0" * 64, "0" * 64, "0" * 64,
        {"funnel": "0"}, {},
    )  # fmt: skip
    declared = {one.columns[0]: tuple(v for (v,) in one.values) for one in (hidden, *blocks)} if private else None
    columns = tuple(
        tuple(map(plain_column, one.columns)) for one in blocks
    )
    asked = terms.TermsFile(
        "funnel-terms/1", digest(b"version: 1\n"), "sample", "by hand", "id" if permanent else None, None, "error",
        names, columns, (), notion, epsilon, replace(parameters, radius=None), stated.split,
        {"kind": "randomised-response"}, stated.draws.kind,
        terms.EstimateTerms(1, stated.estimate.kind, "1/2" if private else None, "1" if private else None, declared),
        None, (), "csv", "records", "refuse", ("id",) if named else (),
    )  # fmt: skip
    records = tuple(tuple(table.sum(axis=tuple(set(range(table.ndim)) - {j})).tolist()) for j in range(1, table.ndim))
    kept_counts = counts.CountsFile(
        "funnel-counts/1", hidden, blocks, used, noisy, records if locked and not private else None
    )
    made = Sample(
        stated, file, released.ReleasedFile("funnel-released/1", tuple(n for one in blocks for n in one.columns),
                                            ("VARCHAR",) * sum(len(one.columns) for one in blocks), answers),
        kept_counts, draws.DrawsFile("funnel-draws/1", drawn), asked, certificate, text,
        earlier=(journal.EstimateEntry("estimate-1", "1/2", "0" * 64),) if private else (),
    )  # fmt: skip
    return left_out(made) if absent else made


def left_out(one: Sample) -> Sample:
    """The same, but that the policy lets in who is `ok`; others are in the source."""
    file, told = one.counts, {"steps": [{"step": "everybody", "own": "ok"}]}
    cells = [(s, *(x + 1 for x in codes), 1, n) for s, *codes, n in file.cells]
    cells.append((0, *(0 for _ in file.blocks), 0, 7))
    people = (population.People(file.secret, file.blocks, tuple(sorted(cells))),)
    return replace(
        one,
        population=population.PopulationFile("funnel-population/1", "ok", ("ok",), people),
        manifest=replace(one.manifest, absent=manifest.Absent(("filter",), ())),
        terms=replace(one.terms, filter="ok"),
        plain=one.plain | {"plan.json": encode(told)},
    )


KINDS: dict[str, dict[str, Any]] = {
    "lip": {},
    "ldp": {"notion": "ldp"},
    "pml": {"notion": "pml"},
    "alip": {"notion": "alip"},
    "ldp-x": {"notion": "ldp-x"},
    "perfect": {"notion": "perfect"},
    "mutual-information": {"notion": "mutual-information", "kind": "merged"},
    "rldp": {"notion": "rldp"},
    "srlip, two blocks": {"notion": "srlip", "sizes": (3, 2)},
    "two blocks": {"sizes": (3, 4)},
    "three blocks": {"sizes": (2, 3, 2), "permanent": False},
    "reads the secret": {"kind": "conditional"},
    "sets": {"kind": "coins"},
    "sets, ldp": {"kind": "coins", "notion": "ldp"},
    "sets beside sets": {"kind": "coins", "sizes": (3, 2)},
    "sets, srlip": {"kind": "coins", "notion": "srlip"},
    "rows with names": {"named": True, "sizes": (3, 2)},
    "private": {"private": True},
    "locked": {"locked": True},
    "private and locked": {"private": True, "locked": True},
    "people left out": {"absent": True},
}
"""One release of every kind."""
