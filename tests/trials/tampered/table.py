"""Secret counts and the rows of the released table."""

from __future__ import annotations

import shutil
from collections import Counter
from random import Random

from funnel.errors import FunnelError
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
from tests.trials.tampered.place import Place, edit, pick, read


@move("the secret counts", AS_IT_IS, SEALED, views=(EVIDENCE, FOLDER))
def counts(place: Place, rng: Random) -> str | None:
    """Records moved to another secret value with the same x, to another x, or taken away; a lie if a figure then is."""
    told = place.counts
    cells = told["cells"]
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
    edit(place.kept / "counts.json", lambda old: old.update(told))
    if words == "moved to another secret value" and (place.has_sets or place.told_truly()):
        return None
    return f"{by} records of one cell {words}"


@move("the secret counts", AS_IT_IS, SEALED, views=(EVIDENCE, FOLDER))
def noise(place: Place, rng: Random) -> str | None:
    """Of a private estimate: less noise, or counts that do not follow from it."""
    counted = place.counts
    if counted["private"] is None:
        return None
    told, what = counted["private"], rng.choice(["true count", "noise", "epsilon", "cell gone"])
    cell = rng.choice(told["cells"])
    if what == "true count":
        cell[-3] += 1
    elif what == "noise":
        cell[-2] += 1
    elif what == "epsilon":
        told["epsilon"] = "2"
    else:
        told["cells"].remove(cell)
    edit(place.kept / "counts.json", lambda old: old.update(counted))
    return f"private estimate: {what} changed"


# --- rows, as codes of what was released


@move("rows of the table", *EVERY, views=ALL_VIEWS)
def rows(place: Place, rng: Random) -> str | None:
    found = place.forged.rows()
    before, many = Counter(found), rng.choice([1, 1, 3, 50])
    how = rng.choice(["dropped", "doubled", "altered"])
    for _ in range(many):
        row = found.pop(rng.randrange(len(found)))
        if how == "doubled":
            found += [row, row]
        elif how == "altered":
            found.append(rng.choice(sorted(before)))
    if Counter(found) == before:
        return None
    place.forged.answer(found, count=bool(rng.randrange(4)))
    return f"{many} rows {how}"


@move("rows of the table", *EVERY, views=ALL_VIEWS)
def data_alone(place: Place, rng: Random) -> str | None:
    """In the data file only, which then is no export of the released labels."""
    kept, found = (place.folder / "released.json").read_bytes(), place.forged.rows()
    found.append(rng.choice(found)) if rng.randrange(2) else found.pop(rng.randrange(len(found)))
    place.forged.answer(found, count=False)
    (place.folder / "released.json").write_bytes(kept)
    return f"the data file has {len(found)} rows, and released.json not"


@move("rows moved between releases", AS_IT_IS, SEALED, views=(EVIDENCE, KEY, FOLDER))
def row_moved(place: Place, rng: Random) -> str | None:
    """Between two nights of one ledger."""
    other = pick(rng, [place.at(name) for name in place.releases if name != place.release])
    if other is None:
        return None
    found, theirs, many = place.forged.rows(), other.forged.rows(), rng.choice([1, 1, 10])
    taken = [theirs.pop(rng.randrange(len(theirs))) for _ in range(many)]
    swapped = bool(rng.randrange(2))
    if swapped:
        back = [found.pop(rng.randrange(len(found))) for _ in range(many)]
        theirs += back
        if Counter(back) == Counter(taken):
            return None
    try:
        other.forged.answer(theirs)
        place.forged.answer(found + taken)
    except IndexError:
        return None
    return f"{many} rows {'exchanged with' if swapped else 'taken from'} another night"


@move("rows moved between releases", *EVERY, views=ALL_VIEWS)
def table_of_another(place: Place, rng: Random) -> str | None:
    """What was released there, and its table."""
    own = read(place.folder / "released.json")
    places = [Place(one.parent.parent, one.name, False, place.ground) for one in place.others()]
    told = [(one, read(one.folder / "released.json")) for one in places if one.data.name == place.data.name]
    alike = [(one, other) for one, other in told if other["columns"] == own["columns"] and other != own]
    if not alike:
        return None
    other, there = rng.choice(alike)
    shutil.copy(other.data, place.data)
    shutil.copy(other.folder / "released.json", place.folder / "released.json")
    place.claim("rows", sum(row[-1] for row in there["rows"]))
    return f"the table of {other.home.name} {other.release}"


@move("columns swapped", *EVERY, views=ALL_VIEWS)
def columns_swapped(place: Place, rng: Random) -> str | None:
    told, blocks = read(place.folder / "released.json"), place.protocol["blocks"]
    if len(told["columns"]) < 2 or place.has_sets:
        return None
    i, j = rng.sample(range(len(told["columns"])), 2)
    if rng.randrange(2) or len(blocks) < 2:
        for key in ("columns", "types"):
            told[key][i], told[key][j] = told[key][j], told[key][i]
        edit(place.folder / "released.json", lambda old: old.update(told))
        place.forged.write_data()
        return f"names of columns {i} and {j} exchanged"
    found = place.forged.rows()
    swapped = [tuple(reversed(row)) for row in found]
    sizes = [len(block["outputs"]) for block in blocks]
    fits = all(y < size for row in swapped for y, size in zip(row, sizes, strict=True))
    if Counter(swapped) == Counter(found) or not fits:
        return None
    place.forged.answer(swapped)
    return "values of the blocks exchanged"


@move("outputs renamed", *EVERY, views=ALL_VIEWS)
def outputs_renamed(place: Place, rng: Random) -> str | None:
    """In the protocol alone or in the table alone: renamed in both, it is a true release of another protocol."""
    honest = place.protocol["blocks"]
    blocks = place.protocol["blocks"]
    block = rng.randrange(len(blocks))
    outputs = blocks[block]["inputs" if blocks[block]["kind"] == "unary" else "outputs"]
    i, j = rng.randrange(len(outputs)), rng.randrange(len(outputs))
    if i == j:
        outputs[i] = [*outputs[i][:-1], "never seen"]
    outputs[i], outputs[j] = outputs[j], outputs[i]
    edit(place.folder / "protocol.json", lambda old: old.update(blocks=blocks))
    if rng.randrange(2):
        return f"outputs {i} and {j} of the protocol renamed"
    try:
        place.forged.write_data()
    except (FunnelError, ValueError):
        return None
    edit(place.folder / "protocol.json", lambda old: old.update(blocks=honest))
    return f"outputs {i} and {j} of block {block} renamed in the table"
