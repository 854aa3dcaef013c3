"""Secrets as one line of text, in an environment variable or a file that only its owner can read."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from funnel.draw.keys import SIZE, Key
from funnel.errors import DrawError
from funnel.files import FULL, write_all, write_error
from funnel.format.keyline import KeyLine

_LONGEST = 4096
_PASTED = re.compile(r"funnel-[a-z]+-[0-9]+:")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


@dataclass(frozen=True)
class Form(KeyLine):
    """How one kind of secret is written, and what makes one."""

    make: str

    def parse(self, text: str, where: str) -> bytes:
        """The 32 bytes in one line of text; nothing of the text reaches a message. Raises DrawError."""
        content = self.content(text)
        if content is None:
            raise DrawError(
                "key-unreadable",
                "this is not a key, or it was cut short or mistyped",
                where=where,
                advice=f"A key is one line that begins with {self.prefix}. {self.make}",
            )
        return content


DRAWS = Form("funnel-key-1:", b"funnel key checksum 1 ", "Make a key with `funnel key new --to FILE`, and keep it.")


def new_key() -> str:
    """A fresh key as one line of text, from the operating system's randomness."""
    return DRAWS.text(os.urandom(SIZE))


def write_key(path: Path) -> Key:
    """Make a key and store it in a new file that only its owner can read. Raises DrawError."""
    text = new_key()
    write_secret(path, text)
    return Key(DRAWS.parse(text, str(path)))


def write_secret(path: Path, text: str) -> None:
    """Store one line in a new file that only its owner can read, durably.

    Raises DrawError (key-write), and ReleaseError where the disk is full.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
            write_all(descriptor, text.encode() + b"\n")
            os.fsync(descriptor)
        except OSError:
            path.unlink()
            raise
        finally:
            os.close(descriptor)
    except FileExistsError as error:
        raise DrawError(
            "key-write",
            "the file exists already, and a key is never overwritten",
            where=str(path),
            advice="Name another file, or move this one away.",
        ) from error
    except OSError as error:
        if error.errno in FULL:
            raise write_error(error, path) from error
        raise DrawError(
            "key-write",
            f"the key could not be written: {error.strerror}",
            where=str(path),
            advice="Name a file in a folder that you can write to, with space left on its disk.",
        ) from error


def load_key(reference: str, base: Path) -> Key:
    """The key that a policy names: `env:NAME`, or `file:PATH` with PATH relative to `base`.

    Raises DrawError: key-missing, key-unreadable (not a key, damaged, not a file), key-permissions.
    """
    return Key(load_secret(reference, base, DRAWS))


def load_secret(reference: str, base: Path, form: Form) -> bytes:
    """The 32 bytes that a reference names, where they are of this form. Raises DrawError as `load_key` does."""
    scheme, _, name = reference.partition(":")
    if scheme == "env" and _VARIABLE.fullmatch(name):
        return form.parse(_from_environment(name, form), f"env:{name}")
    if scheme == "file" and name and not _PASTED.search(name):
        return form.parse(_from_file(base / name, form), f"file:{base / name}")
    # The reference is not repeated: whoever pastes the key itself here must not find it in a log.
    raise DrawError("key-unreadable", "a key is named by env:NAME or file:PATH", advice=form.make)


def _from_environment(name: str, form: Form) -> str:
    text = os.environ.get(name, "")
    if not text.strip():
        raise DrawError(
            "key-missing",
            f"the environment variable {name} is not set",
            where=f"env:{name}",
            advice=f"{form.make} Then `export {name}=$(cat FILE)`.",
        )
    return text


def _from_file(path: Path, form: Form) -> str:
    where = f"file:{path}"
    try:
        # Non-blocking, so that a named pipe is refused instead of waited for.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise DrawError(
            "key-missing", "the key file does not exist", where=where, advice=form.make
        ) from error
    except (OSError, ValueError) as error:
        raise DrawError(
            "key-unreadable",
            f"the key file cannot be read: {_reason(error)}",
            where=where,
            advice="Run as the user who owns the key.",
        ) from error
    try:
        _check_mode(os.fstat(descriptor).st_mode, path, form)
        content = os.read(descriptor, _LONGEST)
    finally:
        os.close(descriptor)
    return content.decode("ascii", errors="replace")


def _check_mode(mode: int, path: Path, form: Form) -> None:
    if not stat.S_ISREG(mode):
        raise DrawError("key-unreadable", "this is not a plain file", where=f"file:{path}", advice=form.make)
    if mode & 0o077:
        raise DrawError(
            "key-permissions",
            f"others can use this key file (mode {mode & 0o777:03o})",
            where=f"file:{path}",
            advice=f"Run: chmod 600 {path}",
        )


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or "its name is not usable"
