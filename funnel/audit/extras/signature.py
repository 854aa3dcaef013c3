"""release.sig: that the manifest is, byte for byte, the one that the holder of a private key signed (RFC 8032)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from pathlib import Path

from funnel.audit.extras.base import Release
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked
from funnel.errors import DrawError, ReleaseError
from funnel.format.manifest import NAME, SIGNATURE
from funnel.release.keys import Form

CLAIM = "signature"
TITLE = "the owner of the public key signed release.json as it is, and so the hash of every file that it lists"
PRIVATE = False
_SIGNED = "funnel-signature-1:"
_DOMAIN = b"funnel release signature 1\0"
_SIZE, _LONGEST = 64, 4096
_PUBLIC = Form("funnel-public-1:", b"funnel public key checksum 1 ", "")
_ADVICE = "A public key is one line that begins with funnel-public-1:; `funnel key public FILE` prints it."


def check(opened: Release) -> str | Unchecked:
    """The manifest's bytes are those that the holder of the private key signed. Raises Broken.

    Nobody is taken at their word: without the public key only the signature's form can be looked at.
    """
    signed, key = opened.manifest.signed, opened.public_key
    if key is None:
        if signed is None:
            return Unchecked(NOT_CLAIMED + "the release is not signed")
        _signature(opened)
        return Unchecked(f"signed by {signed.public_key}, not checked: give that key with --public-key")
    given = fingerprint(key)
    if signed is None or signed.public_key != given:
        found = "no signature" if signed is None else signed.public_key
        raise Broken(NAME, "the release is not signed with this key", given, found)
    if not _verifies(key, _signature(opened), _DOMAIN + opened.content(opened.release / NAME)):
        what = "the signature is not that of this manifest: one of the two was changed, or it was signed by another"
        raise Broken(SIGNATURE, what, f"a signature of {NAME} by {given}", "one of something else")
    return f"by {given}, over {NAME} and so over every file that it lists"


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
        return _PUBLIC.parse(text, "")
    except DrawError:
        raise _unusable("this is not a public key, or it was cut short or mistyped") from None


def fingerprint(key: bytes) -> str:
    """The 32 hex digits by which a manifest names a public key."""
    return hashlib.sha256(b"funnel public key fingerprint 1 " + key).hexdigest()[:32]


def _signature(opened: Release) -> bytes:
    """The 64 bytes in release.sig, which can be written in one way only. Raises Broken."""
    raw = opened.content(opened.release / SIGNATURE)
    try:
        encoded = raw.decode("ascii").removeprefix(_SIGNED).removesuffix("\n")
        signature = base64.b64decode(encoded, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        signature = b""
    again = f"{_SIGNED}{base64.urlsafe_b64encode(signature).decode()}\n".encode()
    if len(signature) != _SIZE or raw != again:
        raise Broken(SIGNATURE, "this is not a signature", f"one line: {_SIGNED} and {_SIZE} bytes", "other text")
    return signature


def _verifies(key: bytes, signature: bytes, message: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _unusable(what: str, where: str | None = None) -> ReleaseError:
    return ReleaseError("key-unreadable", what, where=where, advice=_ADVICE)
