"""Keys as one line of text: 32 bytes and a checksum in base 64, behind a word that says what kind of key it is."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass

SIZE = 32
"""Bytes of a key."""
_CHECK = 4


@dataclass(frozen=True)
class KeyLine:
    """How one kind of key is written: what its line begins with, and its domain of checksums."""

    prefix: str
    checked: bytes

    def text(self, content: bytes) -> str:
        """One line: the prefix, then the 32 bytes and a checksum in URL-safe base 64."""
        return self.prefix + base64.urlsafe_b64encode(content + self._checksum(content)).decode()

    def content(self, text: str) -> bytes | None:
        """The 32 bytes in one line of text; None where it is no such key, was cut short or mistyped."""
        scheme, _, encoded = text.strip().partition(":")
        try:
            right = f"{scheme}:" == self.prefix
            decoded = base64.b64decode(encoded, altchars=b"-_", validate=True) if right else b""
        except (binascii.Error, ValueError):
            return None
        content, checksum = decoded[:SIZE], decoded[SIZE:]
        whole = len(decoded) == SIZE + _CHECK and hmac.compare_digest(checksum, self._checksum(content))
        return content if whole else None

    def _checksum(self, content: bytes) -> bytes:
        return hashlib.sha256(self.checked + content).digest()[:_CHECK]


PUBLIC = KeyLine("funnel-public-1:", b"funnel public key checksum 1 ")
"""The public half of a key that signs."""


def fingerprint(key: bytes) -> str:
    """The 32 hex digits by which manifests and signatures name a public key."""
    return hashlib.sha256(b"funnel public key fingerprint 1 " + key).hexdigest()[:32]
