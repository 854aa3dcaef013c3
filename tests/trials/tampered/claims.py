"""Other figures and terms in manifest, terms, ledger and policy, and other reports."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

from tests.trials.tampered.moves import (
    ALL_VIEWS,
    EVERY,
    EVIDENCE,
    FOLDER,
    LISTED,
    SEALED,
    move,
)
from tests.trials.tampered.place import Json, Place, edit, read

LATER = {"release.json", "terms.json", "ledger", "policy.yaml"}


@move("a wrong epsilon", *EVERY, views=ALL_VIEWS)
def epsilon(place: Place, rng: Random) -> str | None:
    """In some places only, or everywhere and below what the channel leaks."""
    old = place.manifest["epsilon"]
    if not old:
        return None
    where = sorted(rng.sample(sorted(LATER), rng.randrange(1, 5)))
    new = round(
        old * rng.choice([0.2, 0.5, 0.9] if set(where) == LATER else [0.2, 0.5, 0.9, 0.999, 1.5, 10]), 6
    )
    if set(where) == LATER and new >= _own(place.manifest):
        return None
    _say_epsilon(place, where, old, new)
    return f"epsilon {old:g} is now {new:g} in {', '.join(where)}"


def _own(manifest: Json) -> float:
    """The leakage that epsilon bounds."""
    measure = {"ldp-x": "ldp_x", "mutual-information": "mutual_information"}.get(
        manifest["notion"], manifest["notion"]
    )
    found = manifest["leakage"].get(measure)
    return float("inf") if found is None else float(found)


def _say_epsilon(place: Place, where: list[str], old: float, new: float) -> None:
    if "release.json" in where:
        edit(place.folder / "release.json", lambda manifest: manifest.update(epsilon=new))
    if "terms.json" in where:
        edit(place.kept / "terms.json", lambda terms: terms.update(epsilon=new))
    if "ledger" in where:
        place.enter(lambda entry: entry.update(epsilon=new))
    if "policy.yaml" in where:
        path = place.kept / "policy.yaml"
        at = path.read_text().index("privacy:")
        text = path.read_text()
        path.write_text(
            text[:at] + re.sub(rf"epsilon: {old:g}\b|epsilon: {old}\b", f"epsilon: {new}", text[at:], count=1)
        )


@move("a lower leakage claimed", *EVERY, views=ALL_VIEWS)
def leakage(place: Place, rng: Random) -> str | None:
    """In manifest and ledger alike."""
    figures = {name: told for name, told in place.manifest["leakage"].items() if told}
    if not figures:
        return None
    name = rng.choice(sorted(figures))
    new = _lower(figures[name], rng, place.digits)

    def change(document: Json) -> None:
        document["leakage"][name] = new

    edit(place.folder / "release.json", change)
    place.enter(change)
    return f"leakage.{name} {figures[name]} is now {new}"


def _lower(figure: float, rng: Random, digits: int = 4) -> float:
    """Lower by two steps of rounding at least."""
    return max(0.0, round(min(figure * rng.choice([0.1, 0.5, 0.9, 1]), figure - 2 / 10**digits), digits))


@move("a lower leakage claimed", SEALED, views=(EVIDENCE, FOLDER))
def composed(place: Place, rng: Random) -> str | None:
    """In ledger and manifest."""
    old = place.entry["promises"][0]["together"]["figure"]
    if not old:
        return None
    new, keys = _lower(old, rng), rng.choice([("figure", "measured"), ("figure",), ("measured",)])
    place.enter(lambda entry: entry["promises"][0]["together"].update(dict.fromkeys(keys, new)))
    if place.manifest["composed"]:
        edit(place.folder / "release.json", lambda told: told["composed"].update(leakage=new))
    return f"composed {old} is now {new} ({', '.join(keys)})"


@move("more usefulness claimed", *EVERY, views=ALL_VIEWS)
def utility(place: Place, rng: Random) -> str | None:
    told = place.manifest["utility"]
    name, step = rng.choice(["mutual_information", "entropy", "normalised"]), 1 / 10**place.digits
    if told[name] is None:
        return None
    new = told[name] * rng.choice([0.5, 0.9]) if rng.randrange(2) else min(told[name] + max(0.01, 2 * step), 1.9)
    new = round(new, place.digits)
    if abs(new - told[name]) < 1.5 * step or (name == "normalised" and new > 1):
        return None
    edit(place.folder / "release.json", lambda document: document["utility"].update({name: new}))
    return f"utility.{name} {told[name]} is now {new}"


@move("more usefulness claimed", *EVERY, views=ALL_VIEWS)
def upper_bound(place: Place, rng: Random) -> str | None:
    """Below what was reached, or above what was proven."""
    told = place.manifest["utility"]
    old, one = told["upper_bound"], len(place.manifest["public"]) == 1
    if not old:
        return None
    step = 1 / 10**place.digits
    below, above = told["normalised"] - rng.choice([2 * step, 0.1]), old + max(0.01, 2 * step)
    new = round(below if rng.randrange(2) or not one else above, place.digits)
    edit(place.folder / "release.json", lambda document: document["utility"].update(upper_bound=new))
    words = f"utility.upper_bound {old} is now {new}"
    if new < old and one and rng.randrange(2):
        nats = new * told["entropy"]
        edit(place.kept / "solution.json", lambda solution: solution.update(upper_bounds=[nats]))
        words += ", also in solution.json"
        if (read(place.kept / "solution.json")["certificate"] or {}).get(
            "peak"
        ) is not None and rng.randrange(2):
            by = (old - new) * told["entropy"] + step
            edit(place.kept / "solution.json", lambda solution: solution["certificate"].update(
                peak=solution["certificate"]["peak"] - by))  # fmt: skip
            words += " with a lower peak"
    return words


OTHER: dict[str, tuple[Any, ...]] = {
    "notion": ("lip", "ldp", "perfect", "mutual-information"),
    "mechanism": ("optimal", "randomised-response", "conditional-reporting", "greedy-funnel", "none"),
    "sensitive": (["x"], ["t"], ["s", "t"], ["S"]),
    "rows": (1, 599, 601, 10**6),
    "name": ("another", ""),
    "description": ("nothing is hidden here", "the secret is t"),
    "created": ("2020-01-01T00:00:00Z", "2030-01-01T00:00:00Z"),
    "split": ([0.5, 0.5], [0.9, 0.1], [1.0], [0.3]),
    "format_of_data": ("parquet", "csv"),
    "rows_of_data": ("records", "counts"),
    "estimate": tuple({"minimum": least, "kind": "counts", "epsilon": None, "estimates": None, "spent": None}
                      for least in (100, 6)),
    "draws": ({"kind": "fresh", "key_fingerprint": None}, {"kind": "permanent", "key_fingerprint": "0" * 16}),
    "public": ([["y"]], [["x"], ["y"]], [["z"], ["x"]]),
    "parameters": tuple(dict.fromkeys(("solve", "order", "confidence", "radius", "lower")) | told for told in (
        {}, {"solve": "joint"}, {"order": 2.0, "confidence": 0.99, "radius": 0.001})),
    "candidates": ([{"mechanism": "optimal", "normalised": 1.0, "reason": None}], None),
    "composed": (None, {"leakage": 0.01, "how": "exact", "releases": 2, "assumes": []}),
}


@move("another claim of the manifest", LISTED, SEALED, views=ALL_VIEWS)
def claim(place: Place, rng: Random) -> str | None:
    """With the ledger made to agree where it tells the same."""
    key = rng.choice(sorted(OTHER))
    new = rng.choice(OTHER[key])
    if place.manifest.get(key) == new:
        return None
    place.claim(key, new)
    if key in ("notion", "name"):
        place.enter(lambda entry: entry.update({key: new}))
    if key == "draws":
        place.enter(lambda entry: entry.update(draws=new["kind"], key_fingerprint=new["key_fingerprint"]))
    return f"{key} is now {new}"


@move("another claim of the manifest", *EVERY, views=ALL_VIEWS)
def sizes(place: Place, rng: Random) -> str | None:
    key, by = rng.choice(["sensitive", "public", "released"]), rng.choice([1, -1, 100])
    alphabet = place.manifest["alphabet"]
    alphabet[key] = alphabet[key] + by if key == "sensitive" else [alphabet[key][0] + by, *alphabet[key][1:]]
    place.claim("alphabet", alphabet)
    return f"alphabet.{key} by {by:+d}"


REPORTS = "a report of other figures"
"""A kind of its own: hashes are made to fit, and the report stays as the forger wrote it."""


@move(REPORTS, *EVERY, views=ALL_VIEWS)
def published_report(place: Place, rng: Random) -> str | None:
    """One number that the published report tells, anywhere in it."""
    return _other_number(place.folder / "report.json", rng)


@move(REPORTS, *EVERY, views=(EVIDENCE, FOLDER))
def full_report(place: Place, rng: Random) -> str | None:
    """The same of the full one."""
    return _other_number(place.kept / "report.json", rng)


@move(REPORTS, *EVERY, views=ALL_VIEWS)
def page(place: Place, rng: Random) -> str | None:
    """Words of a page."""
    path = rng.choice([place.folder, place.kept]) / "report.html"
    words = sorted({word for word in re.findall(r"[a-z]{5,}", path.read_text()) if word not in ("class", "style")})
    word = rng.choice(words)
    path.write_text(path.read_text().replace(word, word[::-1] + "x", 1))
    return f"{path.parent.name}/report.html: {word} turned around"


def _other_number(path: Path, rng: Random) -> str | None:
    document = read(path)
    keys, old = rng.choice(list(_numbers(document, ())))
    new = old + 1 if isinstance(old, int) else round(old * rng.choice([0.1, 0.5, 2]) + 0.05, 4)
    if new == old:
        return None
    at = document
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = new
    edit(path, lambda whole: whole.update(document))
    return f"{path.parent.name}/report.json: {'.'.join(map(str, keys))} {old} is now {new}"


def _numbers(value: Any, path: tuple[Any, ...]) -> Any:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _numbers(part, (*path, key))
    elif isinstance(value, list):
        for key, part in enumerate(value):
            yield from _numbers(part, (*path, key))
    elif type(value) in (int, float):
        yield path, value
