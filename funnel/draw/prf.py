"""The keyed pseudo-random function behind every draw: AES-256 on 16-byte blocks, in bulk."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from funnel.data import AnyProtocol
from funnel.data.joint import IntArray
from funnel.draw.entity import Entities, Texts
from funnel.draw.keys import Key
from funnel.errors import InternalError

Words = npt.NDArray[np.uint64]


class Buffer:
    """Room for `rows` blocks before and after encryption, used again for every chunk."""

    def __init__(self, rows: int) -> None:
        self.plain = np.empty((rows, 2), "<u8")
        # The library asks for one block less a byte of slack behind the output.
        self._sealed = np.empty(rows * 16 + 15, np.uint8)
        self.sealed: Words = self._sealed[: rows * 16].view("<u8").reshape(rows, 2)

    def encrypt(self, cipher: BlockCipher, rows: int) -> Words:
        """Encrypt the first `rows` plain blocks; a view (rows, 2) that the next call overwrites."""
        cipher.encryptor.update_into(self.plain[:rows].reshape(-1).view(np.uint8).data, self._sealed.data)
        return self.sealed[:rows]


class BlockCipher:
    """AES-256 under one derived key. ECB is the bare block function: every message here is one block, or
    is chained by hand, and no two messages under a key are equal unless their draws must be."""

    def __init__(self, key: Key, purpose: str) -> None:
        self.encryptor = Cipher(algorithms.AES(key.derive(purpose)), modes.ECB()).encryptor()  # noqa: S305


class PermanentUniforms:
    """Permanent draws of one block: words that are a function of key, block, entity and the input's label.

    The input enters by a 64-bit tag of its label, not by its code, so that a new category in the table
    leaves everybody else's answer as it was.
    """

    def __init__(self, key: Key, protocol: AnyProtocol) -> None:
        block = json.dumps(protocol.inputs.columns, ensure_ascii=True)
        self._numbers = BlockCipher(key, f"draw/number {block}")
        self._texts = BlockCipher(key, f"draw/text {block}")
        self._tags = input_tags(key.derive(f"draw/tag {block}"), protocol)

    def words(self, entities: Entities, inputs: IntArray, buffer: Buffer) -> Words:
        """The first 64-bit word of every row (n,); may be a view of the buffer."""
        return self.blocks(entities, inputs, buffer)[:, 0]

    def blocks(self, entities: Entities, inputs: IntArray, buffer: Buffer) -> Words:
        """Both 64-bit words of every row (n, 2); may be a view of the buffer."""
        tags = self._tags[inputs]
        if entities.texts is None:
            return self._number_blocks(entities.numbers, tags, buffer)
        blocks = self._number_blocks(entities.numbers, tags, buffer).copy()
        blocks[entities.texts.rows] = self._text_blocks(entities.texts, tags, buffer)
        return blocks

    def _number_blocks(self, numbers: IntArray, tags: Words, buffer: Buffer) -> Words:
        """One block [entity | tag]."""
        rows = len(numbers)
        buffer.plain[:rows, 0] = numbers.view(np.uint64)
        buffer.plain[:rows, 1] = tags
        return buffer.encrypt(self._numbers, rows)

    def _text_blocks(self, texts: Texts, tags: Words, buffer: Buffer) -> Words:
        """Chain [byte length | tag], then the text's blocks. The length comes first, so no message begins
        another, which makes the chain a pseudo-random function (CBC-MAC on prefix-free messages: Bellare,
        Kilian and Rogaway, JCSS 61, 2000)."""
        rows = len(texts.rows)
        buffer.plain[:rows, 0] = texts.lengths
        buffer.plain[:rows, 1] = tags[texts.rows]
        buffer.encrypt(self._texts, rows)
        for blocks in texts.blocks:
            active = len(blocks)
            np.bitwise_xor(buffer.sealed[:active], blocks, out=buffer.plain[:active])
            buffer.encrypt(self._texts, active)
        return buffer.sealed[:rows]


class FreshUniforms:
    """Fresh draws: a counter under a key that no other release, and no other `FreshUniforms`, has."""

    def __init__(self, key: Key, nonce: bytes) -> None:
        self._cipher = BlockCipher(key, f"draw/fresh {nonce.hex()}")

    def words(self, first_row: int, block: int, rows: int, buffer: Buffer) -> Words:
        """The first 64-bit word of every row (n,), a view of the buffer."""
        return self.blocks(first_row, block, rows, buffer)[:, 0]

    def blocks(self, first_row: int, block: int, rows: int, buffer: Buffer) -> Words:
        """One block [row number | block number] each, (n, 2); the caller never repeats a row number."""
        buffer.plain[:rows, 0] = np.arange(first_row, first_row + rows, dtype=np.uint64)
        buffer.plain[:rows, 1] = block
        return buffer.encrypt(self._cipher, rows)


def input_tags(secret: bytes, protocol: AnyProtocol) -> Words:
    """64-bit tags (inputs,) of the labels of a protocol's inputs, in the order of their codes."""
    digests = (hmac.digest(secret, text.encode(), "sha256") for text in _input_texts(protocol))
    tags = np.array([int.from_bytes(digest[:8], "little") for digest in digests], np.uint64)
    if len(np.unique(tags)) != len(tags):
        raise InternalError("two values of a block have the same 64-bit tag")
    return tags


def _input_texts(protocol: AnyProtocol) -> Iterator[str]:
    """Every input as unambiguous text: its columns and label, and the secret's where the protocol reads s."""
    public = (protocol.inputs.columns, protocol.inputs.values)
    secret = (protocol.secret.columns, protocol.secret.values) if protocol.secret else (None, (None,))
    for hidden in secret[1]:
        for label in public[1]:
            yield json.dumps([public[0], label, secret[0], hidden], ensure_ascii=True)
