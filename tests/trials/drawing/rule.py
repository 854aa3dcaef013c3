"""The rule by which draws are published to happen, written a second time and without the kernel's tables.

A word is the first half of one AES block. Permanent draws encrypt [entity | tag of the input's label], or for a text
the chain [length | tag], then its bytes; fresh ones [row | block]. The word's top bits are u, and y is the first
output whose cumulative weight exceeds u.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from funnel.data import AnyProtocol, UnaryProtocol

Words = npt.NDArray[np.uint64]
Codes = npt.NDArray[np.int64]


def derived(secret: bytes, purpose: str) -> bytes:
    """32 bytes for a purpose: the first block of HKDF-Expand (RFC 5869)."""
    return hmac.digest(secret, b"funnel key purpose 1 " + purpose.encode() + b"\x01", "sha256")


def sealed(key: bytes, plain: Words) -> Words:
    """AES-256 of every row (n, 2)."""
    cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    return np.frombuffer(cipher.update(plain.astype("<u8").tobytes()), "<u8").reshape(-1, 2)


class Rule:
    """What a `Drawer` of these protocols under this secret must answer; `nonce` is that of fresh draws."""

    def __init__(self, protocols: Sequence[AnyProtocol], secret: bytes, nonce: bytes | None) -> None:
        self._protocols = protocols
        self._secret = secret
        self._nonce = nonce
        self._rows = 0

    def draw(self, codes: Sequence[int], rows: int, entities: Codes | npt.NDArray[np.uint8]) -> list[Codes]:
        """Outputs (rows,) of every block, all rows having one input `codes[block]`.

        `entities` are numbers (rows,), or texts of one length as bytes (rows, length); fresh draws ignore them.
        """
        drawn = [self._block(block, code, rows, entities) for block, code in enumerate(codes)]
        self._rows += rows
        return drawn

    def _block(self, block: int, code: int, rows: int, entities: npt.NDArray[np.generic]) -> Codes:
        protocol = self._protocols[block]
        if self._nonce is not None:
            key = derived(self._secret, f"draw/fresh {self._nonce.hex()}")
            counter = np.arange(self._rows, self._rows + rows, dtype=np.uint64)
            words = sealed(key, np.column_stack([counter, np.full(rows, block, np.uint64)]))
        else:
            words = self._permanent(protocol, code, entities)
        if isinstance(protocol, UnaryProtocol):
            return self._coins(protocol, code, words)
        return _first_above(
            protocol.weights.reshape(len(protocol.outputs), -1)[:, code], protocol.bits, words[:, 0]
        )

    def _permanent(self, protocol: AnyProtocol, code: int, entities: npt.NDArray[np.generic]) -> Words:
        columns = json.dumps(list(protocol.inputs.columns))
        tag = _tag(derived(self._secret, f"draw/tag {columns}"), protocol, code)
        if entities.ndim == 1:
            plain = np.column_stack([entities.astype(np.uint64), np.full(len(entities), tag)])
            return sealed(derived(self._secret, f"draw/number {columns}"), plain)
        key, (rows, length) = derived(self._secret, f"draw/text {columns}"), entities.shape
        state = sealed(key, np.column_stack([np.full(rows, length, np.uint64), np.full(rows, tag)]))
        padded = np.zeros((rows, -(-length // 16) * 16), np.uint8)
        padded[:, :length] = entities
        for start in range(0, length, 16):
            part = np.ascontiguousarray(padded[:, start : start + 16]).view("<u8")
            state = sealed(key, state ^ part)
        return state

    def _coins(self, protocol: UnaryProtocol, code: int, words: Words) -> Codes:
        columns = json.dumps(list(protocol.inputs.columns))
        key, secret = (derived(self._secret, f"draw/coin {part}{columns}") for part in ("", "tag "))
        drawn = np.zeros(len(words), np.int64)
        for value in range(len(protocol.inputs)):
            tag = np.array([0, _tag(secret, protocol, value)], np.uint64)
            uniform = sealed(key, words ^ tag)[:, 0] >> np.uint64(64 - protocol.bits)
            hit = uniform < np.uint64(protocol.present if value == code else protocol.absent)
            drawn = 2 * drawn + hit
        return drawn


def _tag(secret: bytes, protocol: AnyProtocol, code: int) -> np.uint64:
    """64 bits of the label of an input: its columns and values, and the secret's where the protocol reads s."""
    hidden, x = divmod(code, len(protocol.inputs))
    label = [list(protocol.inputs.columns), list(protocol.inputs.values[x]), None, None]
    if protocol.secret is not None:
        label[2:] = [list(protocol.secret.columns), list(protocol.secret.values[hidden])]
    return np.uint64(int.from_bytes(hmac.digest(secret, json.dumps(label).encode(), "sha256")[:8], "little"))


def _first_above(weights: npt.NDArray[np.int64], bits: int, words: Words) -> Codes:
    """The first output whose cumulative weight exceeds the words' top bits."""
    cumulative = np.array(list(accumulate(weights.tolist())), np.uint64)
    return np.searchsorted(cumulative, words >> np.uint64(64 - bits), side="right").astype(np.int64)
