"""release.json: what a release claims, read strictly."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from funnel.audit.fields import Field, parse
from funnel.audit.files import content
from funnel.audit.findings import broken, shown
from funnel.audit.promises import (
    MEASURES,
    Candidate,
    Parameters,
    Told,
    read_candidates,
    read_composed,
    read_parameters,
)

FORMAT = "funnel-release/1"
ESTIMATES = ("counts", "private")
NEAR = Fraction(1, 10**9)
"""How far a sum of shares may lie from one."""

_ID = r"\d{8}T\d{6}Z-[0-9a-f]{6}"
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
_SHA = r"[0-9a-f]{64}"
_KEYS = (
    *("format", "release", "name", "description", "created", "sensitive", "public", "notion", "epsilon"),
    *("mechanism", "split", "draws", "estimate", "rows", "format_of_data", "leakage", "utility", "alphabet"),
    *("policy_sha256", "plan_sha256", "versions", "files"),
)
_LATER = ("parameters", "candidates", "composed", "locked", "signed")
"""Keys that the first releases lack; the last two are there under a lock, or a signature, only."""
SIGNATURE = "release.sig"
MOST_ROWS = 10**10
STEP = Fraction(1, 10_000)
"""Published figures are rounded to this many nats."""


@dataclass(frozen=True)
class Stated:
    """Figures of the manifest, in nats (the last two as shares of H(X)); None: infinite, or not claimed.

    `own` is the leakage that epsilon bounds.
    """

    lip: Fraction | None
    ldp: Fraction | None
    own: Fraction | None
    secret_information: Fraction
    public_information: Fraction
    entropy: Fraction
    normalised: Fraction
    upper_bound: Fraction | None


@dataclass(frozen=True)
class Noise:
    """ε_est of a private estimate, how many estimates there were so far with it, and what they spent, in nats."""

    epsilon: Fraction
    estimates: int
    spent: Fraction


@dataclass(frozen=True)
class Manifest:
    """The claims of one release; `sizes` are c, the a_j and the b_j, `sha256` is of the manifest's bytes."""

    sha256: str
    release: str
    name: str
    description: str
    created: str
    sensitive: tuple[str, ...]
    public: tuple[tuple[str, ...], ...]
    notion: str
    epsilon: Fraction
    parameters: Parameters
    composed: Told | None
    mechanism: str
    candidates: tuple[Candidate, ...] | None
    split: tuple[Fraction, ...]
    draws: str
    fingerprint: str | None
    minimum: int
    estimate: str
    rows: int
    data: str
    stated: Stated
    sizes: tuple[int, tuple[int, ...], tuple[int, ...]]
    policy_sha256: str
    plan_sha256: str
    versions: dict[str, str]
    files: dict[str, tuple[str, int]]
    locked: tuple[str, str] | None = None
    """Checksum of the lock that fixed the protocol, and when it was made."""
    signed: str | None = None
    """Fingerprint of the public key to the signature in release.sig."""
    noise: Noise | None = None

    @property
    def listed(self) -> list[str]:
        """The names of all files that the release consists of."""
        return ["release.json", *self.files, *([SIGNATURE] if self.signed else [])]

    @property
    def columns(self) -> list[str]:
        """The released columns, in order."""
        return [name for block in self.public for name in block]

    @property
    def measure(self) -> str:
        """The leakage that epsilon bounds."""
        return MEASURES[self.notion]

    @property
    def leakage(self) -> dict[str, Fraction | None]:
        """The stated leakage by measure, in nats; None: infinite."""
        stated = self.stated
        common = {"lip": stated.lip, "ldp": stated.ldp, "mutual_information": stated.secret_information}
        return common | {self.measure: stated.own}


def read_manifest(folder: Path) -> tuple[Manifest, str]:
    """The manifest and what it is about, in words. Raises AuditFailure where it is not of its format."""
    raw = content(folder / "release.json")
    root = parse("release.json", raw)
    root["format"].among(FORMAT)
    root.keys(*_KEYS, optional=_LATER)
    draws, fingerprint = _draws(root["draws"])
    notion = root["notion"].among(*MEASURES)
    epsilon = _epsilon(root["epsilon"], notion)
    manifest = Manifest(
        sha256=hashlib.sha256(raw).hexdigest(),
        release=root["release"].text(_ID),
        name=root["name"].text(),
        description=root["description"].text(),
        created=_created(root),
        sensitive=root["sensitive"].names(),
        public=_public(root["public"]),
        notion=notion,
        epsilon=epsilon,
        parameters=read_parameters(root, notion),
        composed=read_composed(root),
        mechanism=root["mechanism"].text(),
        candidates=read_candidates(root),
        split=_split(root["split"], len(root["public"].items())),
        draws=draws,
        fingerprint=fingerprint,
        minimum=_minimum(root["estimate"]),
        estimate=root["estimate"]["kind"].among(*ESTIMATES),
        rows=root["rows"].whole(1, MOST_ROWS),
        data=f"data.{root['format_of_data'].among('parquet', 'csv')}",
        stated=_stated(root["leakage"], root["utility"], MEASURES[notion], epsilon),
        sizes=_sizes(root["alphabet"], len(root["public"].value)),
        policy_sha256=root["policy_sha256"].text(_SHA),
        plan_sha256=root["plan_sha256"].text(_SHA),
        versions={name: version.text() for name, version in root["versions"].members()},
        files=_files(root["files"], root["format_of_data"].value),
        locked=_locked(root["locked"]) if "locked" in root.value else None,
        signed=_signed(root["signed"]) if "signed" in root.value else None,
        noise=_noise(root["estimate"]),
    )
    return manifest, f"{manifest.release}, {manifest.rows} rows, {shown(', '.join(manifest.columns))}"


def _created(root: Field) -> str:
    """The time at which the release was made, which its own name begins with."""
    created = root["created"].text(_TIME)
    if re.sub(r"[-:]", "", created) != root["release"].text(_ID)[:16]:
        raise root["created"].wrong("the time that the release is named after")
    return created


def _split(field: Field, blocks: int) -> tuple[Fraction, ...]:
    """Every block's share of epsilon: positive, and one together."""
    shares = tuple(share.number(high=1) for share in field.items())
    if len(shares) != blocks or not all(shares) or not -NEAR <= sum(shares, Fraction(-1)) <= NEAR:
        raise field.wrong("one positive share per public block, which sum to 1")
    return shares


def _public(field: Field) -> tuple[tuple[str, ...], ...]:
    blocks = tuple(block.names() for block in field.items())
    columns = [name for block in blocks for name in block]
    if not columns or len(set(columns)) != len(columns):
        raise field.wrong("blocks of distinct columns")
    return blocks


def _epsilon(field: Field, notion: str) -> Fraction:
    """The bound in nats; perfect privacy has none, or zero."""
    if notion == "perfect":
        if field.value is not None and field.number() != 0:
            raise field.wrong("0 or null")
        return Fraction(0)
    epsilon = field.number(high=1e308)
    if epsilon == 0:
        raise field.wrong("a positive number")
    return epsilon


def _draws(field: Field) -> tuple[str, str | None]:
    field.keys("kind", "key_fingerprint")
    kind = field["kind"].among("permanent", "fresh")
    print_ = field["key_fingerprint"]
    if kind == "fresh":
        if print_.value is not None:
            raise print_.wrong("null: fresh draws have no key")
        return kind, None
    return kind, print_.text(r"[0-9a-f]{16}")


def _locked(field: Field) -> tuple[str, str]:
    field.keys("checksum", "made")
    return field["checksum"].text(_SHA), field["made"].text(_TIME)


def _signed(field: Field) -> str:
    field.keys("algorithm", "public_key")
    field["algorithm"].among("ed25519")
    return field["public_key"].text(r"[0-9a-f]{32}")


def _minimum(field: Field) -> int:
    private = field["kind"].value == "private"
    field.keys("minimum", "kind", *(("epsilon", "estimates", "spent") if private else ()))
    return field["minimum"].whole()


def _noise(field: Field) -> Noise | None:
    if field["kind"].value != "private":
        return None
    epsilon = field["epsilon"].number()
    if epsilon == 0:
        raise field["epsilon"].wrong("a positive number")
    return Noise(epsilon, field["estimates"].whole(1), field["spent"].number())


def _stated(leakage: Field, utility: Field, measure: str, epsilon: Fraction) -> Stated:
    leakage.keys(*dict.fromkeys(("lip", "ldp", "mutual_information", measure)))
    utility.keys("mutual_information", "entropy", "normalised", "upper_bound")
    bound, told = utility["upper_bound"], leakage["mutual_information"]
    own = _worst(leakage[measure], epsilon)
    information = own if measure == "mutual_information" else told.rounded()
    if information is None:
        raise told.wrong("a number: no information is infinite")
    return Stated(
        lip=_worst(leakage["lip"], epsilon),
        ldp=_worst(leakage["ldp"], epsilon),
        own=own,
        secret_information=information,
        public_information=utility["mutual_information"].rounded(),
        entropy=utility["entropy"].rounded(),
        normalised=utility["normalised"].rounded(1),
        upper_bound=None if bound.value is None else bound.rounded(2),
    )


def _worst(field: Field, epsilon: Fraction) -> Fraction | None:
    """A leakage in nats: four decimals, or epsilon itself where rounding up would pass it."""
    if field.value is None:
        return None
    return epsilon if field.number() == epsilon else field.rounded()


def _sizes(field: Field, blocks: int) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    field.keys("sensitive", "public", "released")
    public, released = (tuple(size.whole(1) for size in field[key].items()) for key in ("public", "released"))
    if not len(public) == len(released) == blocks:
        raise field.wrong("one size per public block")
    return field["sensitive"].whole(1), public, released


def _files(field: Field, data: str) -> dict[str, tuple[str, int]]:
    field.keys(f"data.{data}", "protocol.json", "report.html", "report.json")
    for _, entry in field.members():
        entry.keys("sha256", "bytes")
    return {name: (entry["sha256"].text(_SHA), entry["bytes"].whole()) for name, entry in field.members()}


def bound_kept(manifest: Manifest) -> str:
    """The stated leakage, an upper bound itself, is at most the promised one. Raises AuditFailure."""
    name, stated, epsilon = manifest.measure, manifest.stated.own, manifest.epsilon
    if stated is None or stated > epsilon:
        raise broken(
            "release.json",
            f"the stated {name} leakage is above the bound of {manifest.notion}",
            expected=f"at most {float(epsilon)} nats",
            found="infinite" if stated is None else float(stated),
        )
    return f"{name} {float(stated)} <= {float(epsilon)} nats"
