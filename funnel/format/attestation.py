"""attestation.json: an in-toto Statement about the files of a release, in a DSSE envelope that its publisher signed.

Both are others' formats (github.com/in-toto/attestation, github.com/secure-systems-lab/dsse), so that others' tools
check them too. What is signed are the payload's own bytes, and no second spelling of them.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from funnel.format import schema
from funnel.format.fields import Nats, ReleaseId, Sha256, Text
from funnel.format.schema import Flaws, Matches

NAME = "attestation.json"
PAYLOAD: Final = "application/vnd.in-toto+json"
STATEMENT: Final = "https://in-toto.io/Statement/v1"
RELEASE: Final = "https://funnel.example/release/v1"
"""What is stated; a name and no address, for `.example` is nobody's (RFC 2606)."""
SIZE = 64
"""Bytes of an Ed25519 signature."""


@dataclass(frozen=True)
class Digest:
    """The hash of a file."""

    sha256: Sha256


@dataclass(frozen=True)
class Subject:
    """A file by its name and hash."""

    name: Text
    digest: Digest


@dataclass(frozen=True)
class Promised:
    """What is promised of the files, and not: `not_promised` has a title for each thing.

    `ledger_sha256` is the hash of the release's line in the ledger, and so of all lines before it; the line is blinded.
    """

    release: ReleaseId
    policy: Text
    notion: Text
    epsilon: Nats
    promise: Text
    not_promised: tuple[Text, ...]
    ledger_sha256: Sha256


@dataclass(frozen=True)
class Attestation:
    """The statement about a release; its subjects are all files of the published folder but the attestation itself."""

    _type: Literal["https://in-toto.io/Statement/v1"]
    subject: tuple[Subject, ...]
    predicateType: Literal["https://funnel.example/release/v1"]  # noqa: N815 - in-toto's name
    predicate: Promised


@dataclass(frozen=True)
class Signature:
    """By which key, and 64 bytes in base 64."""

    keyid: Annotated[str, Matches(r"[0-9a-f]{32}")]
    sig: Text


@dataclass(frozen=True)
class Envelope:
    """A payload in base 64 and its one signature."""

    payload: Text
    payloadType: Literal["application/vnd.in-toto+json"]  # noqa: N815 - DSSE's name
    signatures: tuple[Signature, ...]

    def flaws(self) -> Flaws:
        """Bytes are spelt in one way only, and signed once."""
        if len(self.signatures) != 1 or len(_bytes(self.signatures[0].sig) or b"") != SIZE:
            yield "signatures", f"one of {SIZE} bytes in base 64", len(self.signatures)
        if _bytes(self.payload) is None:
            yield "payload", "base 64", self.payload

    @property
    def content(self) -> bytes:
        """What was signed."""
        return base64.b64decode(self.payload)

    @property
    def signature(self) -> bytes:
        """The bytes of the signature."""
        return base64.b64decode(self.signatures[0].sig)

    @property
    def signed_by(self) -> str:
        """The fingerprint of the key that it names."""
        return self.signatures[0].keyid


def sealed(content: bytes, keyid: str, signature: bytes) -> Envelope:
    """The envelope of a payload that was signed."""
    return Envelope(_text(content), PAYLOAD, (Signature(keyid, _text(signature)),))


def to_sign(content: bytes) -> bytes:
    """The bytes that a signature is over: the pre-authentication encoding of DSSE v1, of type and content."""
    return b"DSSEv1 %d %s %d %s" % (len(PAYLOAD), PAYLOAD.encode(), len(content), content)


def subjects(files: Mapping[str, str]) -> tuple[Subject, ...]:
    """Files and their hashes, in the order of their names."""
    return tuple(Subject(name, Digest(sha256)) for name, sha256 in sorted(files.items()))


def attested(files: Mapping[str, str], promised: Promised) -> bytes:
    """The payload about files with these hashes."""
    return schema.write(Attestation(STATEMENT, subjects(files), RELEASE, promised))


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _bytes(text: str) -> bytes | None:
    """What a text in base 64 holds; None where it could be written in another way."""
    try:
        found = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return found if _text(found) == text else None
