"""Secret counts and the rows of the released table."""

from __future__ import annotations

import shutil
from collections import Counter
from random import Random
from typing import Any

from tests.trials.tampered.moves import (
    ALL_VIEWS,
    AS_IT_IS,
    EVERY,
    EVIDENCE,
    FOLDER,
    KEY,
    SEALED,
    move,
)
from tests.trials.tampered.place import Place, edit, pick


@move("the secret counts", AS_IT_IS, SEALED, views=(EVIDENCE, FOLDER))
def counts(place: Place, rng: Random) -> str | None:
    """Records moved to another secret value with the same x, to another x, or taken away; a lie if a figure then is."""
    evidence = place.evidence
    cells = evidence["joint"]["cells"]
    one, by = rng.randrange(len(cells)), rng.choice([1, 1, 5, 20])
    match rng.randrange(3):
        case 0:
            others = [i for i, cell in enumerate(cells) if cell[1:-1] == cells[one][1:-1] and i != one]
            words = "moved to another secret value"
        case 1:
            others = [i for i, cell in enumerate(cells) if cell[0] == cells[one][0] and i != one]
            words = "moved to another x"
        case _:
            others, words = [], "taken away"
    if cells[one][-1] <= by or (not others and words != "taken away"):
        return None
    cells[one][-1] -= by
    if others:
        cells[rng.choice(others)][-1] += by
    edit(place.kept / "evidence.json", lambda old: old.update(evidence))
    if words == "moved to another secret value" and (place.has_sets or place.told_truly()):
        return None
    return f"{by} records of one cell {words}"


@move("the secret counts", AS_IT_IS, SEALED, views=(EVIDENCE, FOLDER))
def noise(place: Place, rng: Random) -> str | None:
    """Of a private estimate: less noise, or counts that do not follow from it."""
    evidence = place.evidence
    if "private" not in evidence:
        return None
    told, what = evidence["private"], rng.choice(["true count", "noise", "epsilon", "cell gone"])
    cell = rng.choice(told["cells"])
    if what == "true count":
        cell[-3] += 1
    elif what == "noise":
        cell[-2] += 1
    elif what == "epsilon":
        told["epsilon"] = "2"
    else:
        told["cells"].remove(cell)
    edit(place.kept / "evidence.json", lambda old: old.update(evidence))
    return f"private estimate: {what} changed"


# --- rows


def _other_values(rows: list[tuple[Any, ...]], row: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    return sorted({one for one in rows if one != row})


@move("rows of the table", *EVERY, views=ALL_VIEWS)
def rows(place: Place, rng: Random) -> str | None:
    columns, found = place.rows()
    many, how = rng.choice([1, 1, 3, 50]), rng.choice(["dropped", "doubled", "altered"])
    if how == "altered" and len(set(found)) < 2:
        return None
    for _ in range(many):
        at = rng.randrange(len(found))
        row = found.pop(at)
        if how == "doubled":
            found += [row, row]
        elif how == "altered":
            found.append(rng.choice(_other_values(found, row)))
    if Counter(found) == Counter(place.rows()[1]):
        return None
    place.rewrite(columns, found, count=bool(rng.randrange(4)))
    return f"{many} rows {how}"


@move("rows moved between releases", AS_IT_IS, SEALED, views=(EVIDENCE, KEY, FOLDER))
def row_moved(place: Place, rng: Random) -> str | None:
    """Between two nights of one ledger, or from another policy's release."""
    columns, found = place.rows()
    own = [place.at(name) for name in place.releases if name != place.release]
    other = pick(rng, own)
    if other is None:
        return None
    many = rng.choice([1, 1, 10])
    theirs = other.rows()[1]
    taken = [theirs.pop(rng.randrange(len(theirs))) for _ in range(many)]
    swapped = bool(rng.randrange(2))
    if swapped:
        back = [found.pop(rng.randrange(len(found))) for _ in range(many)]
        theirs += back
        if Counter(back) == Counter(taken):
            return None
    other.rewrite(columns, theirs)
    place.rewrite(columns, found + taken)
    return f"{many} rows {'exchanged with' if swapped else 'taken from'} another night"


@move("rows moved between releases", *EVERY, views=ALL_VIEWS)
def table_of_another(place: Place, rng: Random) -> str | None:
    columns = place.rows()[0]
    places = [Place(one.parent.parent, one.name, False, place.ground) for one in place.others()]
    alike = [one for one in places if one.rows()[0] == columns and one.data.suffix == place.data.suffix]
    other = pick(rng, alike)
    if other is None or Counter(other.rows()[1]) == Counter(place.rows()[1]):
        return None
    shutil.copy(other.data, place.data)
    place.claim("rows", len(other.rows()[1]))
    return f"the table of {other.home.name} {other.release}"


@move("columns swapped", *EVERY, views=ALL_VIEWS)
def columns_swapped(place: Place, rng: Random) -> str | None:
    columns, found = place.rows()
    if len(columns) < 2:
        return None
    i, j = rng.sample(range(len(columns)), 2)
    if rng.randrange(2):
        columns[i], columns[j] = columns[j], columns[i]
        words = "names"
    else:
        found = [
            tuple({i: row[j], j: row[i]}.get(place, part) for place, part in enumerate(row)) for row in found
        ]
        words = "values"
    if words == "values" and Counter(found) == Counter(place.rows()[1]):
        return None
    place.rewrite(columns, found)
    return f"{words} of columns {i} and {j} exchanged"


@move("outputs renamed", *EVERY, views=ALL_VIEWS)
def outputs_renamed(place: Place, rng: Random) -> str | None:
    """In the table or in the protocol."""
    columns, found = place.rows()
    blocks = place.protocol["blocks"]
    if rng.randrange(2) or "outputs" not in blocks[0]:
        old, at = rng.choice(sorted(set(found))), rng.randrange(len(columns))
        new = rng.choice(
            [place.rows()[1][0][at], "never seen"] if isinstance(old[at], str) else [1 - old[at]]
        )
        if new == old[at]:
            return None
        place.rewrite(
            columns, [(*row[:at], new, *row[at + 1 :]) if row[at] == old[at] else row for row in found]
        )
        return f"{old[at]} is {new} in the table"
    block = rng.randrange(len(blocks))
    outputs = blocks[block]["outputs"]
    i, j = rng.randrange(len(outputs)), rng.randrange(len(outputs))
    if i == j:
        outputs[i] = [*outputs[i][:-1], "never seen"]
    outputs[i], outputs[j] = outputs[j], outputs[i]
    edit(place.folder / "protocol.json", lambda old: old.update(blocks=blocks))
    return f"outputs {i} and {j} of the protocol renamed"
