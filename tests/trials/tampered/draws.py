"""What was drawn, and the proof that no protocol could have kept more."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from random import Random

from tests.trials.tampered.moves import (
    AS_IT_IS,
    EVIDENCE,
    FOLDER,
    SEALED,
    move,
)
from tests.trials.tampered.place import Json, Place, edit, pick, read
from tests.trials.tampered.weights import column_of


@move("what was drawn", AS_IT_IS, SEALED, views=(EVIDENCE, FOLDER))
def draws(place: Place, rng: Random) -> str | None:
    """One count of the draws that were kept."""
    told = place.draws
    block = rng.choice(told["blocks"])
    cell, by = rng.choice(block), rng.choice([1, -1, 30])
    if cell[-1] + by < 1:
        return None
    cell[-1] += by
    edit(place.kept / "draws.json", lambda old: old.update(told))
    return f"draws of input {cell[0]}, output {cell[1]} by {by:+d}"


@move("what was drawn", SEALED, views=(EVIDENCE, FOLDER))
def not_drawn(place: Place, rng: Random) -> str | None:
    """Every record answers with its most likely output, or the least likely: rows and draws agree, chance does not."""
    blocks, told = place.protocol["blocks"], place.draws
    if len(blocks) > 1 or blocks[0]["kind"] != "weights":
        return None
    (block,), (drawn,) = blocks, told["blocks"]
    best, totals = rng.choice([max, min]), Counter[int]()
    for x, _, many in drawn:
        totals[x] += many
    new, size = [], len(block["inputs"])
    for x, many in sorted(totals.items()):
        column = column_of(block, x % size, x // size)
        new.append([x, column.index(best(weight for weight in column if weight)), many])
    if all(max(column_of(block, x % size, x // size)) == 1 << block["bits"] for x in totals):
        return None
    edit(place.kept / "draws.json", lambda old: old.update(blocks=[new]))
    place.forged.answer((y,) for _, y, many in new for _ in range(many))
    return f"every record answers with its {'most' if best is max else 'least'} likely output, rows and draws alike"


@move("what was drawn", SEALED, views=(EVIDENCE, FOLDER))
def blocks_paired(place: Place, rng: Random) -> str | None:
    """Each column keeps its values, but they no longer fall independently."""
    found = place.forged.rows()
    if len(place.protocol["blocks"]) < 2:
        return None
    by_column = [sorted(column, reverse=bool(rng.randrange(2))) for column in zip(*found, strict=True)]
    place.forged.answer(zip(*by_column, strict=True))
    return "the values of two blocks paired in order"


# --- proofs


@move("the proof of the bound", SEALED, views=(EVIDENCE, FOLDER))
def proof_of_another(place: Place, rng: Random) -> str | None:
    """The certificate and proof of another policy, its bound claimed."""
    own = read(place.kept / "solution.json")
    found = [
        path for path in (place.kept_of(one) for one in place.others())
        if _size(read(path / "solution.json")) == _size(own) is not None
    ]  # fmt: skip
    other = pick(rng, found)
    if other is None or read(other / "solution.json")["certificate"] == own["certificate"]:
        return None
    theirs = read(other / "solution.json")
    own["certificate"] = theirs["certificate"]
    if not theirs["certificate"]["proof"] or theirs["upper_bounds"][0] >= own["upper_bounds"][0]:
        return None
    edit(place.kept / "solution.json", lambda old: old.update(own))
    _copy_proof(other, place.kept)
    return f"the certificate of {other.parent.parent.name}, and its proof"


def _copy_proof(other: Path, own: Path) -> None:
    (own / "proof.bin").unlink(missing_ok=True)
    if (other / "proof.bin").is_file():
        shutil.copy(other / "proof.bin", own / "proof.bin")


def _size(solution: Json) -> int | None:
    certificate = solution.get("certificate")
    return None if not certificate or None in solution["upper_bounds"] else len(certificate["duals"])


@move("the proof of the bound", SEALED, views=(EVIDENCE, FOLDER))
def proof_ill(place: Place, rng: Random) -> str | None:
    """Numbers of the proof that no proof can have."""
    solution = read(place.kept / "solution.json")
    told = (solution["certificate"] or {}).get("proof")
    if not told:
        return None
    key = rng.choice(["inequalities", "boxes", "multipliers", "packed"])
    path = place.kept / "proof.bin"
    if key == "packed":
        path.write_bytes(path.read_bytes()[:-3])
    else:
        told[key] += rng.choice([1, -1])
        edit(place.kept / "solution.json", lambda old: old.update(solution))
    return f"proof: {key} changed"
