"""The part of the Python interface that is about keys: for permanent draws, and for signatures."""

from __future__ import annotations

from pathlib import Path

from funnel.lock.pin import lock_of
from funnel.plan.prepare import Limits, Report, silent
from funnel.plan.rotate import Rotation, rotate
from funnel.policy import load
from funnel.release import keys
from funnel.release import sign as signing

__all__ = ["new_key", "new_signing_key", "public_key", "rotate_key", "write_key", "write_signing_key"]


def new_key() -> str:
    """A fresh key as one line of text, from the operating system's randomness."""
    return keys.new_key()


def write_key(path: Path | str) -> str:
    """Write a fresh key to a new file that only its owner can read; returns its fingerprint. Raises DrawError."""
    return keys.write_key(Path(path)).fingerprint


def new_signing_key() -> str:
    """A fresh private key for signing releases, as one line of text."""
    return signing.new_signing_key()


def write_signing_key(path: Path | str) -> str:
    """Write a fresh signing key to a new file for its owner only; returns its fingerprint. Raises DrawError."""
    return signing.write_signing_key(Path(path)).fingerprint


def public_key(reference: str) -> str:
    """The public half of a signing key, named by `env:NAME`, `file:PATH` or a path, as one line. Raises DrawError."""
    named = reference if reference.startswith(("env:", "file:")) else f"file:{reference}"
    return signing.load_signing_key(named, Path()).public_text


def rotate_key(
    policy: Path | str,
    to: Path | str | None = None,
    *,
    accept: bool = False,
    locked: bool = False,
    memory: str = "2GB",
    threads: int | None = None,
    progress: Report = silent,
) -> Rotation:
    """What a new key costs a policy; then make it in a new file, or accept the one that the policy names now.

    `locked`: with the protocol that the policy's lock pins. Raises FunnelError.
    """
    loaded = load(Path(policy))
    return rotate(
        loaded,
        None if to is None else Path(to),
        accept=accept,
        lock=lock_of(loaded) if locked else None,
        limits=Limits(memory, threads),
        progress=progress,
    )
