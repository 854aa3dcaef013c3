"""Signatures: who holds the public key can tell that a release is whole and by whom, with no private file."""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path

from funnel.draw.keys import SIZE, Secret
from funnel.files import writing
from funnel.format.manifest import NAME, SIGNATURE, Signed
from funnel.release.keys import Form, load_secret, write_secret

_PREFIX = "funnel-signature-1:"
_DOMAIN = b"funnel release signature 1\0"
_SIGNING = Form(
    "funnel-signing-1:", b"funnel signing key checksum 1 ", "Make one with `funnel key new --signing`."
)
_PUBLIC = Form(
    "funnel-public-1:", b"funnel public key checksum 1 ", "Print one with `funnel key public FILE`."
)


class SigningKey(Secret):
    """The secret of an Ed25519 key pair (RFC 8032); all that is ever shown of it is its public half."""

    __slots__ = ()

    @property
    def public(self) -> bytes:
        """The 32 bytes of the public key."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self._secret).public_key().public_bytes_raw()

    @property
    def public_text(self) -> str:
        """The public key as one line of text, for whoever is to check releases."""
        return _PUBLIC.text(self.public)

    @property
    def fingerprint(self) -> str:
        """32 hex digits of the public key's SHA-256, by which a manifest names it."""
        return hashlib.sha256(b"funnel public key fingerprint 1 " + self.public).hexdigest()[:32]

    def stated(self) -> Signed:
        """What a manifest says: it is signed itself, so that nobody can put another name here."""
        return Signed("ed25519", self.fingerprint)

    def sign(self, manifest: bytes) -> str:
        """The line of `release.sig` for the bytes of a manifest."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        signature = Ed25519PrivateKey.from_private_bytes(self._secret).sign(_DOMAIN + manifest)
        return _PREFIX + base64.urlsafe_b64encode(signature).decode() + "\n"

    def sign_release(self, folder: Path) -> None:
        """Sign every byte of a folder's release.json, which has the SHA-256 of all other files. Raises ReleaseError."""
        with writing(folder):
            text = self.sign((folder / NAME).read_bytes())
            (folder / SIGNATURE).write_text(text, encoding="ascii")


def new_signing_key() -> str:
    """A fresh private key as one line of text, from the operating system's randomness."""
    return _SIGNING.text(os.urandom(SIZE))


def write_signing_key(path: Path) -> SigningKey:
    """Make a signing key and store it in a new file that only its owner can read. Raises DrawError."""
    text = new_signing_key()
    write_secret(path, text)
    return SigningKey(_SIGNING.parse(text, str(path)))


def load_signing_key(reference: str, base: Path) -> SigningKey:
    """The signing key that `env:NAME` or `file:PATH` names, PATH relative to `base`. Raises DrawError."""
    return SigningKey(load_secret(reference, base, _SIGNING))
