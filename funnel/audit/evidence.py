"""evidence.json: the counts, the draws and the exact leakage that the writer kept, read strictly."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from funnel.audit.fields import Field, IntArray, Label, parse
from funnel.audit.files import MAX_EVIDENCE, content
from funnel.audit.findings import broken
from funnel.audit.manifest import Manifest
from funnel.audit.protocols import Blocks

FORMAT = "funnel-evidence/1"
_SHA = r"[0-9a-f]{64}"
EPSILON = r"[1-9][0-9]{0,40}(/[1-9][0-9]{0,40})?"
_RATIO = r"(0|[1-9][0-9]{0,3999})/[1-9][0-9]{0,3999}"


@dataclass(frozen=True)
class Alphabet:
    """Columns and the distinct values they take together; a value's index is its code."""

    columns: tuple[str, ...]
    values: tuple[Label, ...]


@dataclass(frozen=True, eq=False)
class Noisy:
    """A private estimate: all cells (m, 1+k) of its domain, their true counts (m,) and the noise on them (m,).

    Under a lock both are of the night that it was made, and `tonight` (m,) are the counts of the records released.
    """

    epsilon: Fraction
    cells: IntArray
    counted: IntArray
    noise: IntArray
    tonight: IntArray | None = None

    @property
    def records(self) -> IntArray:
        """Records released, by cell (m,)."""
        return self.counted if self.tonight is None else self.tonight


@dataclass(frozen=True, eq=False)
class Evidence:
    """Counts N[s, x_1, …, x_k]: `cells` (m, 1+k), `counts` (m,); draws by block: (input, output, count)."""

    manifest_sha256: str
    policy_sha256: str
    plan_sha256: str
    secret: Alphabet
    blocks: tuple[Alphabet, ...]
    cells: IntArray
    counts: IntArray
    draws: tuple[IntArray, ...]
    lip: Fraction | None
    ldp: Fraction | None
    own: Fraction | None = None
    locked: tuple[IntArray, ...] | None = None
    """Records of each public value (a_j,) on the night that the lock was made, None where nobody knows."""
    noisy: Noisy | None = None
    """Where `counts` are noisy ones; the records are `noisy.records`."""

    @property
    def rows(self) -> int:
        """Number of records, as `counts` have it."""
        return sum(self.counts.tolist())

    @property
    def records(self) -> int:
        """Number of records released."""
        return self.rows if self.noisy is None else sum(self.noisy.records.tolist())

    @property
    def shape(self) -> tuple[int, ...]:
        """(c, a_1, …, a_k)."""
        return (len(self.secret.values), *(len(block.values) for block in self.blocks))

    def dense(self) -> IntArray:
        """N as an array (c, a_1, …, a_k); the caller bounds its size."""
        table = np.zeros(self.shape, np.int64)
        table[tuple(self.cells.T)] = self.counts
        return table


def read_evidence(folder: Path, manifest: Manifest) -> tuple[Evidence, str]:
    """The evidence for one manifest. Raises AuditFailure where it is ill-formed or of another release."""
    root = parse("evidence.json", content(folder / "evidence.json", MAX_EVIDENCE))
    root["format"].among(FORMAT)
    root.keys(
        *(
            "format",
            "release",
            "manifest_sha256",
            "policy_sha256",
            "plan_sha256",
            "joint",
            "draws",
            "leakage",
        ),
        *(("locked",) if manifest.locked else ()),
        *(("private",) if manifest.noise else ()),
    )
    if root["release"].text() != manifest.release:
        raise broken(
            "evidence.json",
            "this is the evidence of another release",
            expected=manifest.release,
            found=root["release"].value,
        )
    joint, leakage = root["joint"], root["leakage"]
    joint.keys("secret", "blocks", "cells")
    leakage.keys(*dict.fromkeys(("lip", "ldp", manifest.measure)))
    blocks = tuple(_alphabet(block) for block in joint["blocks"].items())
    cells = _distinct(joint["cells"], joint["cells"].whole_grid(-1, 2 + len(blocks)))
    evidence = Evidence(
        manifest_sha256=root["manifest_sha256"].text(_SHA),
        policy_sha256=root["policy_sha256"].text(_SHA),
        plan_sha256=root["plan_sha256"].text(_SHA),
        secret=_alphabet(joint["secret"]),
        blocks=blocks,
        cells=cells[:, :-1],
        counts=cells[:, -1],
        draws=tuple(_distinct(draws, draws.whole_grid(-1, 3)) for draws in root["draws"].items()),
        lip=_ratio(leakage["lip"]),
        ldp=_ratio(leakage["ldp"]),
        own=_ratio(leakage[manifest.measure]),
        locked=_locked(root["locked"]["records"], blocks) if manifest.locked else None,
        noisy=_noisy(root["private"], len(blocks), bool(manifest.locked)) if manifest.noise else None,
    )
    return evidence, f"{len(evidence.counts)} cells of counts, {sum(map(len, evidence.draws))} of draws"


def _noisy(field: Field, blocks: int, locked: bool) -> Noisy:
    """Cells with their true count, and the noise added to and taken from it."""
    field.keys("epsilon", "cells", *(("tonight",) if locked else ()))
    grid = field["cells"].whole_grid(-1, 4 + blocks)
    if len(np.unique(grid[:, :-3], axis=0)) != len(grid) or not len(grid):
        raise field["cells"].wrong("distinct cells")
    epsilon = Fraction(field["epsilon"].text(EPSILON))
    tonight = field["tonight"].whole_grid(len(grid)) if locked else None
    return Noisy(epsilon, grid[:, :-3], grid[:, -3], grid[:, -2] - grid[:, -1], tonight)


def _locked(field: Field, blocks: tuple[Alphabet, ...]) -> tuple[IntArray, ...] | None:
    """Records of the lock's night, one list for each block."""
    if field.value is None:
        return None
    if len(field.items()) != len(blocks):
        raise field.wrong(f"one list for each of {len(blocks)} blocks")
    return tuple(one.whole_grid(len(block.values)) for one, block in zip(field.items(), blocks, strict=True))


def _alphabet(field: Field) -> Alphabet:
    field.keys("columns", "values")
    columns = field["columns"].names()
    return Alphabet(columns, field["values"].labels(len(columns)))


def _distinct(field: Field, grid: IntArray) -> IntArray:
    """Sparse counts, cell by cell: each cell once, with a positive count."""
    if not len(grid) or grid[:, -1].min() < 1:
        raise broken(
            field.file, f"{field.path} lists a cell without a count", expected="positive counts", found=0
        )
    if len(np.unique(grid[:, :-1], axis=0)) != len(grid):
        raise broken(
            field.file, f"{field.path} lists a cell twice", expected="distinct cells", found="a repetition"
        )
    return grid


def _ratio(field: Field) -> Fraction | None:
    """`num/den`, or `inf`."""
    text = field.text(f"inf|{_RATIO}")
    if text == "inf":
        return None
    ratio = Fraction(text)
    if text != f"{ratio.numerator}/{ratio.denominator}":
        raise field.wrong("a ratio in lowest terms")
    return ratio


def same_manifest(evidence: Evidence, manifest: Manifest) -> str:
    """The evidence was written for exactly these bytes. Raises AuditFailure."""
    if evidence.manifest_sha256 != manifest.sha256:
        raise broken(
            "release.json",
            "the manifest is not the one that the evidence was written for",
            expected=evidence.manifest_sha256,
            found=manifest.sha256,
        )
    return f"SHA-256 {manifest.sha256[:16]}…"


def same_policy(folder: Path, evidence: Evidence, manifest: Manifest) -> tuple[bytes, str]:
    """The bytes of policy.yaml, which has the hash that manifest and evidence name. Raises AuditFailure."""
    path = folder / "policy.yaml"
    return content(path), same_file(path, manifest.policy_sha256, evidence.policy_sha256)


def same_file(path: Path, claimed: str, kept: str) -> str:
    """The file's hash is the manifest's and the evidence's. Raises AuditFailure."""
    found = hashlib.sha256(content(path)).hexdigest()
    if not found == claimed == kept:
        raise broken(
            path.name,
            "the file, the manifest and the evidence do not name the same SHA-256",
            expected=f"manifest {claimed}, evidence {kept}",
            found=found,
        )
    return f"SHA-256 {found[:16]}…"


def counts_whole(evidence: Evidence, manifest: Manifest) -> tuple[Evidence, str]:
    """The evidence, once its codes lie within their alphabets and its counts add up. Raises AuditFailure."""
    if len(evidence.draws) != len(evidence.blocks):
        raise broken(
            "evidence.json",
            "the draws do not cover the blocks",
            expected=len(evidence.blocks),
            found=len(evidence.draws),
        )
    for axis, size in enumerate(evidence.shape):
        cells = evidence.cells if evidence.noisy is None else evidence.noisy.cells
        if (top := max(int(cells[:, axis].max()), int(evidence.cells[:, axis].max()))) >= size:
            raise broken(
                "evidence.json",
                f"axis {axis} of the counts has a code beyond its alphabet",
                expected=f"below {size}",
                found=top,
            )
    if evidence.records != manifest.rows:
        raise broken(
            "evidence.json",
            "the counts are of another number of records than were released",
            expected=manifest.rows,
            found=evidence.records,
        )
    return evidence, f"{evidence.records} records over {' x '.join(map(str, evidence.shape))} values"


def same_alphabets(evidence: Evidence, blocks: Blocks, manifest: Manifest) -> tuple[Evidence, str]:
    """The evidence, once the protocol's inputs and secret are those of the counts. Raises AuditFailure."""
    secret = evidence.secret
    for what, expected, found in (
        ("secret columns", manifest.sensitive, secret.columns),
        ("number of secret values", manifest.sizes[0], len(secret.values)),
        ("columns", [block.columns for block in evidence.blocks], [block.columns for block in blocks]),
        ("inputs", [block.values for block in evidence.blocks], [block.inputs for block in blocks]),
    ):
        if expected != found:
            raise broken(
                "evidence.json",
                f"the {what} differ between counts and release",
                expected=expected,
                found=found,
            )
    for block in blocks:
        if block.secret and (block.secret_columns, block.secret) != (secret.columns, secret.values):
            raise broken(
                "protocol.json",
                "the secret that a block reads is not that of the counts",
                expected=secret.values,
                found=block.secret,
            )
    sizes = " x ".join(str(len(block.inputs)) for block in blocks)
    return evidence, f"{len(secret.values)} secret values; {sizes} inputs"
