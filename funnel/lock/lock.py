"""The lock of a policy: what its solved protocol is, and what was claimed of it, as a text to keep beside it.

It holds what a release's protocol.json and release.json hold, and no counts: whoever may read releases may read it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from funnel.data import Alphabet, AnyProtocol, Label, Protocol, UnaryProtocol
from funnel.data.convert import block_record
from funnel.errors import LockError
from funnel.files import replace_file, writing
from funnel.format import canonical, schema
from funnel.format.sealed import SealError, sealed, unsealed

FORMAT = "funnel-lock/1"
MOST_BYTES = 1 << 27
_COMMENT = """\
The lock of a funnel policy: nightly runs draw from the protocol below and solve nothing (`funnel run --locked`).
Keep it under version control beside the policy. It is written by `funnel lock` and not meant to be edited;
`funnel lock --check` says whether it fits the policy, `funnel diff` what another one changes for privacy.
It holds no counts. `inputs` lists [value, weights of the outputs in their order], out of 2^bits."""
_AGAIN = (
    "Restore it from version control, or make it anew with `funnel lock --force`, which shows what changes."
)


@dataclass(frozen=True, eq=False)
class Lock:
    """What is pinned.

    `terms` are the policy's; `parameters` those of the settled notion; `mechanism` the one used;
    `room` the part of epsilon left to drift; `leakage` and
    `utility` the figures of the night it was made (nats, rounded up, and shares). `secret` names the values of S that
    had the minimum of records, of `secrets` in all. `counts` is a keyed hash of the counts, None without a key.
    Of a private estimate, `estimated` is the name under which its cost is on record and `noisy` the hash of its noisy
    counts, to which all figures belong; else None. `checksum` is that of the text, "" before it is written.
    """

    name: str
    made: str
    version: str
    terms: Mapping[str, Any]
    parameters: Mapping[str, Any]
    mechanism: str
    room: float
    shares: tuple[float, ...]
    budgets: tuple[float, ...]
    rows: int
    leakage: Mapping[str, float | None]
    utility: Mapping[str, float | None]
    secret: tuple[Label, ...]
    secrets: int
    counts: str | None
    protocols: tuple[AnyProtocol, ...]
    checksum: str = ""
    estimated: str | None = None
    noisy: str | None = None

    def text(self) -> str:
        """The file."""
        facts = {
            "format": FORMAT,
            "policy": self.name,
            "made": self.made,
            "funnel": self.version,
            "terms": _by_line(self.terms),
            "parameters": dict(self.parameters),
            "mechanism": self.mechanism,
            "room": self.room,
            "shares": list(self.shares),
            "budgets": list(self.budgets),
            "rows": self.rows,
            "counts": self.counts,
            **({} if self.noisy is None else {"estimated": self.estimated, "noisy": self.noisy}),
            "leakage": dict(self.leakage),
            "utility": dict(self.utility),
            "secrets": self.secrets,
            "secret": tuple(list(value) for value in self.secret),
            "protocol": protocols_digest(self.protocols),
            **{f"block.{place}": _block(one) for place, one in enumerate(self.protocols)},
        }
        return sealed(facts, _COMMENT)


def read_lock(path: Path) -> Lock:
    """The lock in a file. Raises LockError: lock-missing, lock-damaged."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise LockError(
            "lock-missing",
            "there is no lock",
            where=str(path),
            advice="Make one with `funnel lock`, review it, and keep it under version control.",
        ) from None
    except OSError as error:
        raise damaged_lock(path, error.strerror or "it cannot be read") from None
    if len(content) > MOST_BYTES:
        raise damaged_lock(path, f"it has more than {MOST_BYTES >> 20} MiB")
    try:
        return parse_lock(content.decode())
    except (SealError, UnicodeDecodeError) as error:
        raise damaged_lock(path, str(error)) from None


def parse_lock(text: str) -> Lock:
    """Inverse of `Lock.text`. Raises SealError."""
    facts, checksum = unsealed(text)
    if facts.get("format") != FORMAT:
        raise SealError(f"its format is {facts.get('format')!r}, and this version of funnel reads {FORMAT}")
    try:
        protocols = tuple(
            _protocol(facts[f"block.{place}"])
            for place in range(sum(key.startswith("block.") for key in facts))
        )
        lock = Lock(
            name=facts["policy"],
            made=facts["made"],
            version=facts["funnel"],
            terms=facts["terms"],
            parameters=facts["parameters"],
            mechanism=facts["mechanism"],
            room=facts["room"],
            shares=tuple(facts["shares"]),
            budgets=tuple(facts["budgets"]),
            rows=facts["rows"],
            leakage=facts["leakage"],
            utility=facts["utility"],
            secret=tuple(tuple(value) for value in facts["secret"] or ()),
            secrets=facts["secrets"],
            counts=facts["counts"],
            protocols=protocols,
            checksum=checksum,
            estimated=facts.get("estimated"),
            noisy=facts.get("noisy"),
        )
    except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise SealError(f"it does not hold what a lock holds ({type(error).__name__}: {error})") from None
    if facts.get("protocol") != protocols_digest(protocols):
        raise SealError("its weights are not those of the protocol it names")
    return lock


def write_lock(path: Path, text: str) -> None:
    """Put the file where `path` is, readable like any other; readers find the old or the new. Raises ReleaseError."""
    with writing(path.parent):
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
        replace_file(path, text.encode())
        path.chmod(mode)


def protocols_digest(protocols: Sequence[AnyProtocol]) -> str:
    """SHA-256 of the blocks of protocol.json, whatever its other contents."""
    return hashlib.sha256(
        canonical.encode([schema.as_json(block_record(one)) for one in protocols])
    ).hexdigest()


def damaged_lock(path: Path, reason: str) -> LockError:
    """The error of a file that is not as it was written."""
    return LockError(
        "lock-damaged", f"this is not a lock that can be used: {reason}", where=str(path), advice=_AGAIN
    )


def _by_line(terms: Mapping[str, Any]) -> dict[str, Any]:
    """Public blocks one a line."""
    return {key: tuple(value) if key == "public" else value for key, value in terms.items()}


def _block(protocol: AnyProtocol) -> dict[str, Any]:
    """One block of the file."""
    whole = schema.as_json(block_record(protocol))
    told = {key: value for key, value in whole.items() if key not in ("inputs", "outputs", "weights")}
    values = whole["inputs"]
    if isinstance(protocol, UnaryProtocol):
        return told | {"inputs": tuple(values)}
    weights = np.moveaxis(protocol.weights, -1, 0)
    rows = weights.transpose(0, 2, 1) if protocol.reads_secret else weights[:, :, 0]
    return told | {
        "outputs": tuple(whole["outputs"]),
        "inputs": tuple([value, row.tolist()] for value, row in zip(values, rows, strict=True)),
    }


def _protocol(block: Mapping[str, Any]) -> AnyProtocol:
    """Inverse of `_block`. A secret that is read is a section of its own."""
    columns, inputs = tuple(block["columns"]), block["inputs"]
    if block["kind"] == "unary":
        odds = (block["bits"], block["present"], block["absent"], block["form"])
        return UnaryProtocol(_alphabet(columns, inputs), *odds)
    told = block["secret"]
    secret = None if told is None else _alphabet(tuple(told["columns"]), told["values"])
    weights = np.array([row for _, row in inputs], np.int64)
    return Protocol(
        _alphabet(columns, [value for value, _ in inputs]),
        _alphabet(columns, block["outputs"]),
        block["bits"],
        np.ascontiguousarray(weights.transpose(2, 1, 0) if secret else weights.T[:, None, :]),
        secret,
    )


def _alphabet(columns: tuple[str, ...], values: Sequence[Sequence[str | None]]) -> Alphabet:
    return Alphabet(columns, tuple(map(tuple, values)))
