"""A signing key opens nothing to whoever sees its object or its messages, and signs as RFC 8032 says."""

from __future__ import annotations

import base64
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from securesystemslib import dsse
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey

from funnel.audit.publisher import read_public_key
from funnel.errors import DrawError
from funnel.format import schema
from funnel.format.keyline import fingerprint
from funnel.format.manifest import Signed
from funnel.release.keys import load_key, new_key
from funnel.release.sign import SigningKey, load_signing_key, new_signing_key, write_signing_key

SEED = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
PUBLIC = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
"""RFC 8032, section 7.1, test 1."""


def test_the_public_half_is_that_of_the_standard_and_the_auditor_reads_it() -> None:
    key = SigningKey(SEED)
    assert key.public == PUBLIC
    assert read_public_key(key.public_text) == PUBLIC
    assert fingerprint(PUBLIC) == key.fingerprint
    assert key.stated() == Signed("ed25519", key.fingerprint)


def test_what_is_signed_is_type_and_content_as_the_envelope_s_own_standard_says() -> None:
    """A signature of a statement is none of the bare bytes, so none made elsewhere with this key fits here."""
    found = SigningKey(SEED).seal(b"{}")
    signed = b"DSSEv1 28 application/vnd.in-toto+json 2 {}"
    Ed25519PublicKey.from_public_bytes(PUBLIC).verify(found.signature, signed)
    assert found == SigningKey(SEED).seal(b"{}")
    assert found.signature != SigningKey(SEED).seal(b"{} ").signature


def test_another_reader_of_envelopes_verifies_it() -> None:
    key = SSlibKey(SigningKey(SEED).fingerprint, "ed25519", "ed25519", {"public": PUBLIC.hex()})
    found = json.loads(schema.write(SigningKey(SEED).seal(b'{"a":1}')))
    other = replace_payload(found, b'{"a":2}')
    assert dsse.Envelope.from_dict(found).verify([key], 1) == {key.keyid: key}
    with pytest.raises(VerificationError):
        dsse.Envelope.from_dict(other).verify([key], 1)


def replace_payload(found: dict[str, Any], content: bytes) -> dict[str, Any]:
    """The envelope around another content, under the signature that it had."""
    signatures = [dict(one) for one in found["signatures"]]
    return found | {"payload": base64.b64encode(content).decode(), "signatures": signatures}


def test_a_signing_key_shows_its_public_half_only(tmp_path: Path) -> None:
    key = write_signing_key(tmp_path / "k")
    body = (tmp_path / "k").read_text().strip().partition(":")[2]
    shown = f"{key} {key!r} {[key]} {key.stated()} {key.public_text} {key.seal(b'')}"
    assert body[:10] not in shown
    assert key._secret.hex() not in shown
    assert key.fingerprint in repr(key)
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(key)
    with pytest.raises(AttributeError):
        key._secret = bytes(32)
    assert (tmp_path / "k").stat().st_mode & 0o777 == 0o600


def test_the_two_kinds_of_keys_are_not_taken_for_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("DRAWS", new_key()), ("SIGNING", new_signing_key())):
        monkeypatch.setenv(name, text)
    for load, name in ((load_key, "SIGNING"), (load_signing_key, "DRAWS")):
        with pytest.raises(DrawError, match="not a key") as caught:
            load(f"env:{name}", tmp_path)
        assert caught.value.__context__ is None, "a decoder's error could quote what it read"
    assert (
        load_signing_key("env:SIGNING", tmp_path).fingerprint != load_key("env:DRAWS", tmp_path).fingerprint
    )


def test_every_mistyped_character_is_noticed_and_none_repeated(tmp_path: Path) -> None:
    text = new_signing_key()
    body = text.partition(":")[2]
    for place in range(len(text)):
        wrong = "A" if text[place] != "A" else "B"
        (tmp_path / "k").write_text(text[:place] + wrong + text[place + 1 :])
        (tmp_path / "k").chmod(0o600)
        with pytest.raises(DrawError) as caught:
            load_signing_key("file:k", tmp_path)
        assert caught.value.code == "key-unreadable"
        assert body[2:12] not in str(caught.value.as_dict())


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o602])
def test_a_signing_key_that_others_can_use_is_refused(mode: int, tmp_path: Path) -> None:
    write_signing_key(tmp_path / "k")
    (tmp_path / "k").chmod(mode)
    with pytest.raises(DrawError) as caught:
        load_signing_key("file:k", tmp_path)
    assert caught.value.code == "key-permissions"


def test_every_mistyped_character_of_a_public_key_is_noticed() -> None:
    from funnel.errors import ReleaseError

    text = SigningKey(SEED).public_text
    for place in range(len("funnel-public-1:"), len(text)):
        wrong = "A" if text[place] != "A" else "B"
        with pytest.raises(ReleaseError, match="not a public key"):
            read_public_key(text[:place] + wrong + text[place + 1 :])
