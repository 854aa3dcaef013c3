"""Weights of a protocol, or all of it, changed."""

from __future__ import annotations

import shutil
from random import Random
from typing import Any

from tests.trials.tampered.moves import (
    ALL_VIEWS,
    EVERY,
    EVIDENCE,
    FOLDER,
    SEALED,
    move,
)
from tests.trials.tampered.place import Json, Place, edit, read


def column_of(block: Json, x: int, s: int) -> list[int]:
    """Weights of every output for one input."""
    return [row[s][x] if block["secret"] else row[x] for row in block["weights"]]


def _set_column(block: Json, x: int, s: int, column: list[int]) -> None:
    for row, weight in zip(block["weights"], column, strict=True):
        if block["secret"]:
            row[s][x] = weight
        else:
            row[x] = weight


def _weights(place: Place, rng: Random, words: str, change: Any) -> str | None:
    """Change one column of weights; a column that stays as good is no lie."""
    protocol = place.protocol
    block = rng.choice(protocol["blocks"])
    if block["kind"] != "weights":
        return None
    x, s = (
        rng.randrange(len(block["inputs"])),
        rng.randrange(len(block["secret"]["values"])) if block["secret"] else 0,
    )
    column = column_of(block, x, s)
    new, told = change(list(column), rng)
    if new == column:
        return None
    _set_column(block, x, s, new)
    edit(place.folder / "protocol.json", lambda old: old.update(protocol))
    if sum(new) == sum(column) and place.told_truly():
        return None
    return f"{words}: {', '.join(block['columns'])}, input {x}, {told}"


@move("weights of a protocol", *EVERY, views=ALL_VIEWS)
def weights_swapped(place: Place, rng: Random) -> str | None:
    def change(column: list[int], rng: Random) -> tuple[list[int], str]:
        i, j = rng.randrange(len(column)), rng.randrange(len(column))
        column[i], column[j] = column[j], column[i]
        return column, f"outputs {i} and {j}"

    return _weights(place, rng, "two weights swapped", change)


@move("weights of a protocol", *EVERY, views=ALL_VIEWS)
def weight_off_by_one(place: Place, rng: Random) -> str | None:
    def change(column: list[int], rng: Random) -> tuple[list[int], str]:
        i, by = rng.randrange(len(column)), rng.choice([1, -1])
        column[i] += by
        return column, f"output {i} by {by:+d}"

    return _weights(place, rng, "a weight off by one", change)


@move("weights of a protocol", *EVERY, views=ALL_VIEWS)
def weight_moved(place: Place, rng: Random) -> str | None:
    """The least lie that there is: the column still sums to 2^bits."""

    def change(column: list[int], rng: Random) -> tuple[list[int], str]:
        i, j = rng.randrange(len(column)), rng.randrange(len(column))
        by = min(rng.choice([1, 1, 1, 1000]), column[i])
        column[i] -= by
        column[j] += by
        return column, f"{by} from output {i} to output {j}"

    return _weights(place, rng, "weight moved", change)


@move("weights of a protocol", *EVERY, views=ALL_VIEWS)
def inputs_swapped(place: Place, rng: Random) -> str | None:
    protocol = place.protocol
    block = rng.choice(protocol["blocks"])
    i, j = rng.randrange(len(block["inputs"])), rng.randrange(len(block["inputs"]))
    block["inputs"][i], block["inputs"][j] = block["inputs"][j], block["inputs"][i]
    if i == j:
        return None
    edit(place.folder / "protocol.json", lambda old: old.update(protocol))
    return f"the labels of inputs {i} and {j} exchanged"


@move("weights of a protocol", *EVERY, views=ALL_VIEWS)
def coins(place: Place, rng: Random) -> str | None:
    protocol = place.protocol
    block = rng.choice(protocol["blocks"])
    if block["kind"] != "unary":
        return None
    key, by = rng.choice(["present", "absent", "bits"]), rng.choice([1, -1])
    block[key] += by
    edit(place.folder / "protocol.json", lambda old: old.update(protocol))
    return f"{key} of the coins by {by:+d}"


@move("another policy's protocol", *EVERY, views=ALL_VIEWS)
def protocol_pasted(place: Place, rng: Random) -> str | None:
    """Of the same columns where there is one, so that only its figures can tell."""
    own = place.protocol["blocks"]
    others = [one for one in place.others() if read(one / "protocol.json")["blocks"] != own]
    alike = [one for one in others if _form(read(one / "protocol.json")["blocks"]) == _form(own)]
    other = rng.choice(alike if alike and rng.randrange(4) else others)
    shutil.copy(other / "protocol.json", place.folder / "protocol.json")
    words = f"the protocol of {other.parent.parent.name} {other.name}"
    if rng.randrange(2):
        place.claim("mechanism", read(other / "release.json")["mechanism"])
        words += ", and its mechanism's name"
    return words


def _form(blocks: list[Json]) -> Any:
    return [(block["kind"], block["columns"], block["inputs"], bool(block.get("secret"))) for block in blocks]


@move("another policy's protocol", SEALED, views=(EVIDENCE, FOLDER))
def policy_pasted(place: Place, rng: Random) -> str | None:
    name = rng.choice(["policy.yaml", "plan.json", "terms.json"])
    own, other = place.kept / name, place.kept_of(rng.choice(place.others())) / name
    if other.read_bytes() == own.read_bytes():
        return None
    shutil.copy(other, own)
    return f"{name} of {other.parent.parent.parent.name}"
