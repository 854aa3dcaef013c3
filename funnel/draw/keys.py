"""Secrets of 32 bytes: the key from which every draw of a policy follows, and others."""

from __future__ import annotations

import hmac
import os
from typing import NoReturn, Self

SIZE = 32


class Secret:
    """32 bytes that are never shown: printing gives their fingerprint, and pickling fails."""

    __slots__ = ("_secret",)
    _secret: bytes

    def __init__(self, secret: bytes) -> None:
        if len(secret) != SIZE:
            raise ValueError(f"a key has {SIZE} bytes")
        object.__setattr__(self, "_secret", bytes(secret))

    @property
    def fingerprint(self) -> str:
        """Hex digits that tell secrets apart and say nothing else about them."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}(fingerprint={self.fingerprint})"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a key cannot be changed")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a key cannot be changed")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a key cannot be pickled: it would leave this process")


class Key(Secret):
    """The secret of permanent draws."""

    __slots__ = ()

    @property
    def fingerprint(self) -> str:
        """16 hex digits that tell keys apart and say nothing else about them."""
        return hmac.digest(self._secret, b"funnel key fingerprint 1", "sha256")[:8].hex()

    def derive(self, purpose: str) -> bytes:
        """32 bytes for one purpose, independent of those for any other (HKDF-Expand, RFC 5869, SHA-256)."""
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

        info = b"funnel key purpose 1 " + purpose.encode()
        return HKDFExpand(algorithm=SHA256(), length=SIZE, info=info).derive(self._secret)

    def carried(self) -> bytes:
        """The secret itself, for processes of an engine that draw where the rows are; nobody else asks for it."""
        return self._secret


def one_time_key() -> Key:
    """A key for one release with fresh draws; it exists in this process only."""
    return Key(os.urandom(SIZE))
