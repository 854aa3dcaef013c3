"""release.sig: that the manifest is, byte for byte, the one that the holder of a private key signed."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from pathlib import Path

from funnel.audit.files import content
from funnel.audit.findings import NOT_CLAIMED, Unchecked, broken
from funnel.audit.manifest import SIGNATURE, Manifest
from funnel.errors import ReleaseError

_KEY = "funnel-public-1:"
_SIGNED = "funnel-signature-1:"
_DOMAIN = b"funnel release signature 1\0"
_SIZE, _CHECK, _SIGNATURE_SIZE = 32, 4, 64
_LONGEST = 4096
_ADVICE = f"A public key is one line that begins with {_KEY}; `funnel key public FILE` prints it."


def read_public_key(given: str) -> bytes:
    """The 32 bytes of an Ed25519 public key, given as its line of text or as a file that holds it.

    Raises ReleaseError (`key-unreadable`); what was given is not repeated where it may be a private key.
    """
    text = given
    if not re.match(r"funnel-[a-z]+-[0-9]+:", given.strip()):
        try:
            with Path(given).open("rb") as file:
                text = file.read(_LONGEST).decode("ascii", errors="replace")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "its name is not usable"
            raise _unusable(f"the public key cannot be read: {reason}", given) from None
    if text.strip().startswith("funnel-signing-"):
        raise _unusable("this is a private key, and an auditor must never have it")
    try:
        scheme, _, encoded = text.strip().partition(":")
        whole = base64.b64decode(encoded, altchars=b"-_", validate=True) if f"{scheme}:" == _KEY else b""
    except (binascii.Error, ValueError):
        whole = b""
    key = whole[:_SIZE]
    if len(whole) != _SIZE + _CHECK or whole[_SIZE:] != _checksum(key):
        raise _unusable("this is not a public key, or it was cut short or mistyped")
    return key


def fingerprint(key: bytes) -> str:
    """The 32 hex digits by which a manifest names a public key."""
    return hashlib.sha256(b"funnel public key fingerprint 1 " + key).hexdigest()[:32]


def signed(folder: Path, manifest: Manifest, key: bytes | None) -> str | Unchecked:
    """The manifest's bytes are those that the holder of the private key to `key` signed.

    Raises AuditFailure.
    """
    if key is None:
        return _without_key(folder, manifest)
    given = fingerprint(key)
    if manifest.signed is None:
        raise broken(
            "release.json", "the release is not signed", expected=f"signed by {given}", found="no signature"
        )
    if manifest.signed != given:
        raise broken("release.json", "another key signed", expected=given, found=manifest.signed)
    if not _verifies(key, _signature(folder), _DOMAIN + content(folder / "release.json")):
        raise broken(
            SIGNATURE,
            "the signature is not that of this manifest: it was changed, or signed with another key, or belongs to "
            "another release",
            expected=f"a signature of release.json by {given}",
            found="one of something else, or by someone else",
        )
    return f"by {given}, over release.json and so over every file that it lists"


def _without_key(folder: Path, manifest: Manifest) -> Unchecked:
    """Nobody is taken at their word: without the public key only the signature's form can be looked at."""
    if manifest.signed is None:
        return Unchecked(NOT_CLAIMED + "the release is not signed")
    _signature(folder)
    return Unchecked(f"signed by {manifest.signed}, not checked: give that key with --public-key")


def _signature(folder: Path) -> bytes:
    """The 64 bytes in release.sig, which can be written in one way only. Raises AuditFailure."""
    raw = content(folder / SIGNATURE)
    try:
        encoded = raw.decode("ascii").removeprefix(_SIGNED).removesuffix("\n")
        signature = base64.b64decode(encoded, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        signature = b""
    again = f"{_SIGNED}{base64.urlsafe_b64encode(signature).decode()}\n".encode()
    if len(signature) != _SIGNATURE_SIZE or raw != again:
        raise broken(
            SIGNATURE,
            "this is not a signature",
            expected=f"one line: {_SIGNED} and 64 bytes",
            found="other text",
        )
    return signature


def _verifies(key: bytes, signature: bytes, message: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _checksum(key: bytes) -> bytes:
    return hashlib.sha256(b"funnel public key checksum 1 " + key).digest()[:_CHECK]


def _unusable(what: str, where: str | None = None) -> ReleaseError:
    return ReleaseError("key-unreadable", what, where=where, advice=_ADVICE)
