"""Signatures, the folder of releases, the record of estimates and the lock."""

from __future__ import annotations

import shutil
from random import Random
from typing import Any

from funnel.release.sign import load_signing_key
from tests.support.forging import attest
from tests.trials.tampered.moves import AS_IT_IS, EVIDENCE, FOLDER, KEY, LISTED, SEALED, move
from tests.trials.tampered.place import Place, edit, pick

# --- signatures


@move("the signature", views=(KEY, FOLDER))
def signature_gone(place: Place, rng: Random) -> str | None:
    if not place.signed:
        return None
    (place.folder / "attestation.json").unlink()
    words = "attestation.json removed"
    if rng.randrange(2):
        edit(place.folder / "release.json", lambda manifest: manifest.update(signed=None))
        words += ", and what the manifest says of it"
    return words


@move("the signature", AS_IT_IS, SEALED, views=(KEY, FOLDER))
def another_signer(place: Place, rng: Random) -> str | None:
    if not place.signed:
        return None
    signer, words = load_signing_key("file:other.key", place.ground), "signed with another key"
    if rng.randrange(2):
        told = {"algorithm": "ed25519", "public_key": signer.fingerprint}
        edit(place.folder / "release.json", lambda manifest: manifest.update(signed=told))
        words += ", which the manifest then names"
    attest(place.folder, signer=signer)
    return words


@move("the signature", views=(KEY, FOLDER))
def signature_of_another(place: Place, rng: Random) -> str | None:
    other = pick(
        rng, [one for one in place.others() if (one / "attestation.json").is_file() and one != place.folder]
    )
    if not place.signed or other.name == place.release:
        return None
    shutil.copy(other / "attestation.json", place.folder / "attestation.json")
    return f"the signature of {other.parent.parent.name} {other.name}, by the right key"


@move("anything at all in a signed release", LISTED, SEALED, views=(KEY,))
def any_claim(place: Place, rng: Random) -> str | None:
    """What no evidence could show to be a lie: only the key can tell."""
    key = rng.choice(["description", "name", "created", "versions"])
    new = {"description": "nothing to see", "name": "another", "created": "2020-01-01T00:00:00Z",
           "versions": {"funnel": "9.9.9"}}[key]  # fmt: skip
    place.claim(key, new)
    return f"{key} is now {new}"


@move("anything at all in a signed release", LISTED, SEALED, views=(KEY,))
def any_page(place: Place, rng: Random) -> str | None:
    page = place.folder / "report.html"
    page.write_text(page.read_text().replace("<body", "<body data-more='1'", 1))
    return "one attribute more in report.html"


# --- the folder of releases


@move("the folder of releases", views=(FOLDER,))
def release_gone(place: Place, rng: Random) -> str | None:
    shutil.rmtree(place.folder)
    return "a release removed from the folder"


@move("the folder of releases", SEALED, views=(FOLDER,))
def release_forgotten(place: Place, rng: Random) -> str | None:
    """Not the newest one: a ledger that ends earlier is an earlier ledger, and true as such."""
    if place.release == place.releases[-1]:
        return None
    shutil.rmtree(place.folder)
    shutil.rmtree(place.kept)
    place.rechain([line for line in place.lines if line["entry"].get("release") != place.release])
    return "an earlier release removed with its evidence and its entry"


@move("the folder of releases", views=(FOLDER,))
def release_renamed(place: Place, rng: Random) -> str | None:
    name = place.release[:-1] + ("0" if place.release[-1] != "0" else "1")
    place.folder.rename(place.folder.with_name(name))
    return f"a release renamed to {name}"


@move("the folder of releases", views=(FOLDER,))
def release_added(place: Place, rng: Random) -> str | None:
    name = f"2020010{rng.randrange(1, 9)}T000000Z-{rng.randrange(1 << 24):06x}"
    shutil.copytree(place.folder, place.folder.with_name(name))
    return f"a copy of a release added as {name}"


@move("the folder of releases", views=(FOLDER,))
def foreign_release_added(place: Place, rng: Random) -> str | None:
    other = pick(rng, [one for one in place.others() if one.name not in place.releases])
    if other is None:
        return None
    shutil.copytree(other, place.home / "releases" / other.name)
    return f"a release of {other.parent.parent.name} added"


@move("the folder of releases", views=(FOLDER,))
def releases_exchanged(place: Place, rng: Random) -> str | None:
    other = pick(rng, [name for name in place.releases if name != place.release])
    if other is None:
        return None
    aside = place.home / "aside"
    place.folder.rename(aside)
    place.at(other).folder.rename(place.folder)
    aside.rename(place.at(other).folder)
    return "two releases bear each other's names"


@move("the folder of releases", views=(FOLDER,))
def release_replayed(place: Place, rng: Random) -> str | None:
    other = pick(rng, [name for name in place.releases if name != place.release])
    if other is None:
        return None
    shutil.rmtree(place.folder)
    shutil.copytree(place.at(other).folder, place.folder)
    return "another night's release copied over this one"


# --- the record of estimates and the lock


@move("the record of estimates", SEALED, views=(FOLDER,))
def estimates(place: Place, rng: Random) -> str | None:
    """In the ledger, chained anew."""
    lines = place.lines
    places = [i for i, line in enumerate(lines) if line["entry"]["kind"] == "estimate"]
    if not places:
        return None
    one, how = rng.choice(places), rng.choice(["lowered", "dropped", "doubled", "renamed"])
    if how == "lowered":
        lines[one]["entry"]["epsilon"] = "1/2"
    elif how == "dropped":
        del lines[one]
    elif how == "doubled":
        lines.insert(one, lines[one])
    else:
        lines[one]["entry"]["name"] = "20200101T000000Z-000000"
    place.rechain(lines)
    return f"an estimate in the ledger, chained anew: line {one + 1} {how}"


@move("the record of estimates", SEALED, views=(EVIDENCE, FOLDER))
def spent(place: Place, rng: Random) -> str | None:
    manifest, key = place.manifest, rng.choice(["epsilon", "estimates", "spent"])
    if manifest["estimate"][key] is None:
        return None
    new = manifest["estimate"] | {key: manifest["estimate"][key] + rng.choice([1, 2])}
    edit(place.folder / "release.json", lambda told: told.update(estimate=new))
    return f"estimate.{key} is now {new[key]}"


@move("the lock", AS_IT_IS, LISTED, SEALED, views=(EVIDENCE, FOLDER))
def lock(place: Place, rng: Random) -> str | None:
    path = place.kept / "lock.yaml"
    if not path.is_file():
        return None
    lines = path.read_text().splitlines(keepends=True)
    facts = [i for i, line in enumerate(lines) if line.startswith(("protocol: ", "made: "))]
    one = rng.choice(facts)
    old = lines[one].split('"')[1]
    new = ("0" if old[0] != "0" else "1") + old[1:]
    lines[one] = lines[one].replace(old, new)
    path.write_text("".join(lines))
    return f"lock.yaml: {lines[one].split(':')[0]} is now {new[:20]}"


@move("the lock", SEALED, views=(EVIDENCE, FOLDER))
def lock_denied(place: Place, rng: Random) -> str | None:
    if not place.manifest["locked"]:
        return None
    what = rng.choice(["checksum", "made", "all of it"])

    def change(manifest: dict[str, Any]) -> None:
        if what == "all of it":
            manifest["locked"] = None
        else:
            manifest["locked"][what] = "2020-01-01T00:00:00Z" if what == "made" else "a" * 64

    if what == "checksum":
        (place.kept / "lock.yaml").unlink()
    edit(place.folder / "release.json", change)
    return f"the manifest's word of the lock changed: {what}"
