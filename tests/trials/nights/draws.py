"""The draws once more, with code of its own: who answered what, from the key, as SECURITY.md describes the operator.

Releases name nobody, so the trial works out each person's answer with the operator's key, and holds that the rows
published are just these. That is how the attacker is told which rows are of one person.
"""

from __future__ import annotations

import base64
import hmac
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from tests.trials.nights.attacker import Block
from tests.trials.nights.table import Truth

Answers = dict[int, tuple[int, ...]]


def answers(key: str, blocks: Sequence[Block], truth: Truth) -> Answers:
    """The number of the output of each block, for every person of the night."""
    secret = base64.urlsafe_b64decode(key.partition(":")[2])[:32]
    people = list(truth)
    given = [
        _block(secret, one, people, [str(one.label(truth[person][1][place])) for person in people])
        for place, one in enumerate(blocks)
    ]
    return dict(zip(people, zip(*given, strict=True), strict=True))


def _block(secret: bytes, block: Block, people: Sequence[int], labels: Sequence[str]) -> list[int]:
    """AES of [person | tag of the label] is the uniform number; the answer is the first whose weights exceed it."""
    name = json.dumps(block.columns, ensure_ascii=True)
    tagging = _derived(secret, f"draw/tag {name}")
    tags = {
        label: hmac.digest(
            tagging, json.dumps([block.columns, [label], None, None], ensure_ascii=True).encode(), "sha256"
        )[:8]
        for label in set(labels)
    }
    plain = b"".join(
        person.to_bytes(8, "little") + tags[label] for person, label in zip(people, labels, strict=True)
    )
    sealed = (
        Cipher(algorithms.AES(_derived(secret, f"draw/number {name}")), modes.ECB()).encryptor().update(plain)
    )
    uniform = np.frombuffer(sealed, "<u8")[::2] >> np.uint64(64 - block.bits)
    found, asked = np.empty(len(people), np.int64), np.array(labels, object)
    for label in tags:
        here = asked == label
        found[here] = np.searchsorted(np.array(block.ends[label], np.uint64), uniform[here], side="right")
    return found.tolist()


def _derived(secret: bytes, purpose: str) -> bytes:
    return HKDFExpand(SHA256(), 32, b"funnel key purpose 1 " + purpose.encode()).derive(secret)


def published(release: Path) -> Counter[tuple[str, ...]]:
    """The rows of a release."""
    table = pq.read_table(release / "data.parquet", memory_map=False)
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def as_rows(blocks: Sequence[Block], given: Answers) -> Counter[tuple[str, ...]]:
    """The same of answers."""
    return Counter(
        tuple(one.outputs[y] for one, y in zip(blocks, row, strict=True)) for row in given.values()
    )
