"""attestation.json: a statement about just the files that lie there, in terms of release.json."""

from __future__ import annotations

from funnel.audit.kernel.opened import Opened, parsed
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked, agree, counted
from funnel.audit.verify.envelope import envelope, signed
from funnel.format.attestation import NAME, Attestation, subjects
from funnel.format.keyline import fingerprint
from funnel.format.manifest import NAME as MANIFEST


def attested(opened: Opened, key: bytes | None) -> str | Unchecked:
    """The owner of the public key signed the hash of every published file, and the promise of release.json.

    Raises Broken. Nobody is taken at their word: without the key only what the signature is about can be looked at.
    """
    stated = opened.manifest.signed
    if key is None:
        if stated is None:
            return Unchecked(NOT_CLAIMED + "the release is not signed")
        found = envelope(NAME, opened.content(opened.release / NAME))
        agree(NAME, [("key", stated.public_key, found.signed_by)])
        attestation(opened)
        return Unchecked(f"signed by {stated.public_key}, not checked: give that key, which the publisher has")
    given = fingerprint(key)
    if stated is None or stated.public_key != given:
        told = "no signature" if stated is None else stated.public_key
        raise Broken(MANIFEST, "the release is not signed with this key", given, told)
    signed(NAME, envelope(NAME, opened.content(opened.release / NAME)), key)
    return f"by {given}, over {counted(len(attestation(opened).subject), 'file')}"


def attestation(opened: Opened) -> Attestation:
    """The statement, whoever signed it: of these files, and with what release.json says. Raises Broken."""
    one, own = opened.manifest, opened.entry(opened.release / MANIFEST).sha256
    found = parsed(Attestation, NAME, envelope(NAME, opened.content(opened.release / NAME)).content)
    told = found.predicate
    files = {name: entry.sha256 for name, entry in one.files.items()} | {MANIFEST: own}
    agree(NAME, [
        ("files and their hashes", subjects(files), found.subject),
        ("release", one.release, told.release),
        ("policy", one.name, told.policy),
        ("promise", (one.notion, one.epsilon), (told.notion, told.epsilon)),
    ])  # fmt: skip
    return found
