"""An envelope opened with the publisher's public key. What is in it is looked at only after its signature."""

from __future__ import annotations

import re
from pathlib import Path

from funnel.audit.kernel.opened import parsed
from funnel.audit.kernel.verdict import Broken
from funnel.format.attestation import Envelope, to_sign
from funnel.format.keyline import PUBLIC, fingerprint

_LONGEST = 4096


class NoKeyError(ValueError):
    """What was given as a public key is none; `where` is the file, where that may be told."""

    def __init__(self, what: str, where: str | None = None) -> None:
        super().__init__(what)
        self.where = where


def public_key(given: str) -> bytes:
    """The 32 bytes of an Ed25519 public key, given as its line of text or as a file that holds it.

    Raises NoKeyError; what was given is not repeated where it may be a private key.
    """
    text = given
    if not re.match(r"funnel-[a-z]+-[0-9]+:", given.strip()):
        try:
            with Path(given).open("rb") as file:
                text = file.read(_LONGEST).decode("ascii", errors="replace")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "its name is not usable"
            raise NoKeyError(f"the public key cannot be read: {reason}", given) from None
    if text.strip().startswith("funnel-signing-"):
        raise NoKeyError("this is a private key, and nobody who checks a release must ever have it")
    key = PUBLIC.content(text)
    if key is None:
        raise NoKeyError("this is not a public key, or it was cut short or mistyped")
    return key


def envelope(name: str, raw: bytes) -> Envelope:
    """The envelope in a file's bytes, in the one way in which it can be written. Raises Broken."""
    return parsed(Envelope, name, raw)


def signed(name: str, found: Envelope, key: bytes) -> bytes:
    """What the holder of a key signed, by the envelope in a file. Raises Broken."""
    given = fingerprint(key)
    if found.signed_by != given:
        raise Broken(name, "it is not signed with this key", given, found.signed_by)
    if not _verifies(key, found.signature, to_sign(found.content)):
        what = "the signature is not that of this content: one of the two was changed, or another key made it"
        raise Broken(name, what, f"a signature by {given}", "one of something else")
    return found.content


def _verifies(key: bytes, signature: bytes, message: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True
