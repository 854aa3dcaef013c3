"""The publisher's public key, as those who check give it."""

from __future__ import annotations

from funnel.audit.verify.envelope import NoKeyError, public_key
from funnel.errors import ReleaseError

_ADVICE = "A public key is one line that begins with funnel-public-1:; `funnel key public FILE` prints it."


def read_public_key(given: str) -> bytes:
    """The 32 bytes of an Ed25519 public key, given as its line of text or as a file that holds it.

    Raises ReleaseError (`key-unreadable`).
    """
    try:
        return public_key(given)
    except NoKeyError as error:
        raise ReleaseError("key-unreadable", str(error), where=error.where, advice=_ADVICE) from None
