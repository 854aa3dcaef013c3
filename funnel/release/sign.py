"""Signing: who holds the public key can tell that a release is whole and by whom, with no private file."""

from __future__ import annotations

import os
from pathlib import Path

from funnel.draw.keys import SIZE, Secret
from funnel.format.attestation import Envelope, sealed, to_sign
from funnel.format.keyline import PUBLIC, fingerprint
from funnel.format.manifest import Signed
from funnel.release.keys import Form, load_secret, write_secret

_SIGNING = Form(
    "funnel-signing-1:", b"funnel signing key checksum 1 ", "Make one with `funnel key new --signing --to FILE`."
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
        return PUBLIC.text(self.public)

    @property
    def fingerprint(self) -> str:
        """32 hex digits of the public key's SHA-256, by which a manifest names it."""
        return fingerprint(self.public)

    def stated(self) -> Signed:
        """What a manifest says: it is signed itself, so that nobody can put another name here."""
        return Signed("ed25519", self.fingerprint)

    def seal(self, content: bytes) -> Envelope:
        """A statement in an envelope, signed."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        signature = Ed25519PrivateKey.from_private_bytes(self._secret).sign(to_sign(content))
        return sealed(content, self.fingerprint, signature)


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
