"""The lock of a policy: what its solved protocol is, and what was claimed of it, as a text to keep beside it.

It holds what a release's protocol.json, release.json and cells.json hold, and no counts beside: whoever may read
releases may read it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from funnel.cells.cells import Cells
from funnel.cells.record import opened, written
from funnel.data import AnyProtocol
from funnel.data.convert import block_record, protocol_of
from funnel.errors import LockError
from funnel.files import replace_file, writing
from funnel.format import canonical, schema
from funnel.format.cells import Wide
from funnel.format.lock import FORMAT, LockFacts
from funnel.format.protocol import Sets, Weights
from funnel.format.sealed import SealError, sealed, unsealed

MOST_BYTES = 1 << 27
_COMMENT = """\
The lock of a funnel policy: nightly runs draw from the protocol below and solve nothing (`funnel run --locked`).
Keep it under version control beside the policy. It is written by `funnel lock` and not meant to be edited;
`funnel lock --check` says whether it fits the policy, `funnel diff` what another one changes for privacy.
It holds no counts but that of all records, and of wide blocks what cells.json tells; two for the same wide block would
together tell single counts. `inputs` lists [value, weights of the outputs in order], out of 2^bits."""
_AGAIN = (
    "Restore it from version control, or make it anew with `funnel lock --force`: what changes then nobody is told, "
    "for it cannot be read."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Lock(LockFacts):
    """What is pinned; `checksum` is that of the text, "" before it is written."""

    protocols: tuple[AnyProtocol, ...]
    cells: tuple[Cells, ...] = ()
    checksum: str = ""

    def text(self) -> str:
        """The file: public blocks, values of the secret and inputs of a protocol stand one a line."""
        facts = {one.name: getattr(self, one.name) for one in fields(LockFacts)}
        if self.fixed is None:
            del facts["fixed"]
        if self.noisy is None:
            del facts["estimated"], facts["noisy"]
        lines = {
            "parameters": schema.as_json(self.parameters),  # as it is read again: a tuple would be a section
            "terms": {key: tuple(value) if key == "public" else value for key, value in self.terms.items()},
            "shares": list(self.shares),
            "budgets": list(self.budgets),
            "protocol": protocols_digest(self.protocols),
            **{f"block.{place}": _block(one) for place, one in enumerate(self.protocols)},
        }
        if self.cells:
            lines["cells"] = cells_digest(self.cells)
            lines |= {f"wide.{place}": _wide(one) for place, one in enumerate(self.cells)}
        return sealed({"format": FORMAT} | facts | lines, _COMMENT)


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
    if (found := facts.pop("format", None)) != FORMAT:
        raise SealError(f"its format is {found!r}, and this version of funnel reads {FORMAT}")
    named, blocks = facts.pop("protocol", None), sum(key.startswith("block.") for key in facts)
    pinned, wide = facts.pop("cells", None), sum(key.startswith("wide.") for key in facts)
    try:
        cells = tuple(_cells(facts.pop(f"wide.{place}")) for place in range(wide))
        protocols = tuple(_protocol(facts.pop(f"block.{place}")) for place in range(blocks))
        told = schema.typed(LockFacts, "lock", facts)
        lock = Lock(**vars(told), protocols=protocols, cells=cells, checksum=checksum)
    except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise SealError(f"it does not hold what a lock holds ({type(error).__name__}: {error})") from None
    if named != protocols_digest(protocols):
        raise SealError("its weights are not those of the protocol it names")
    if pinned != (cells_digest(cells) if cells else None):
        raise SealError("its cells are not those that it names")
    return lock


def write_lock(path: Path, text: str) -> None:
    """Put the file where `path` is, readable like any other; readers find the old or the new. Raises ReleaseError."""
    with writing(path.parent, "for the policy, since its lock lies beside it"):
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
        replace_file(path, text.encode(), mode=mode)


def protocols_digest(protocols: Sequence[AnyProtocol]) -> str:
    """SHA-256 of the blocks of protocol.json, whatever its other contents."""
    return hashlib.sha256(
        canonical.encode([schema.as_json(block_record(one)) for one in protocols])
    ).hexdigest()


def cells_digest(cells: Sequence[Cells]) -> str:
    """SHA-256 of the blocks of cells.json, whatever its other contents."""
    return hashlib.sha256(canonical.encode([schema.as_json(written(one)) for one in cells])).hexdigest()


def damaged_lock(path: Path, reason: str, advice: str = _AGAIN) -> LockError:
    """The error of a file that is not as it was written."""
    said = f"this is not a lock that can be used: {reason}"
    return LockError("lock-damaged", said, where=str(path), advice=advice)


def _block(protocol: AnyProtocol) -> dict[str, Any]:
    """One block of the file: as in protocol.json, but with each input's weights beside it."""
    told: dict[str, Any] = schema.as_json(block_record(protocol))
    inputs, outputs, weights = (told.pop(key, None) for key in ("inputs", "outputs", "weights"))
    if weights is None:
        return told | {"inputs": tuple(inputs)}
    rows = np.array(weights, np.int64).T.tolist()
    return told | {"outputs": tuple(outputs), "inputs": tuple(zip(inputs, rows, strict=True))}


def _wide(cells: Cells) -> dict[str, Any]:
    """The cells of a wide block: as in cells.json, each column, node and cell of a profile on a line of its own."""
    told: dict[str, Any] = schema.as_json(written(cells))
    profiles = {
        f"profile.{place}": one | {key: tuple(one[key]) for key in ("links", "values")}
        for place, one in enumerate(told.pop("profiles"))
    }
    return told | {"columns": tuple(told["columns"]), "nodes": tuple(told["nodes"])} | profiles


def _cells(told: dict[str, Any]) -> Cells:
    """Inverse of `_wide`."""
    profiles = [told.pop(f"profile.{place}") for place in range(sum(key.startswith("profile.") for key in told))]
    return opened(schema.typed(Wide, "lock", told | {"profiles": profiles}))


def _protocol(block: dict[str, Any]) -> AnyProtocol:
    """Inverse of `_block`."""
    if block["kind"] == "unary":
        return protocol_of(schema.typed(Sets, "lock", block))
    inputs, rows = zip(*block["inputs"], strict=True)
    weights = np.array(rows, np.int64).T.tolist()
    return protocol_of(schema.typed(Weights, "lock", block | {"inputs": list(inputs), "weights": weights}))
