"""people.json of releases: the digest that was entered, held to the records that its own release counts."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from pathlib import Path

import numpy as np

from funnel.audit.extras.base import Release
from funnel.audit.kernel.drawing import FALSE_ALARM, strays
from funnel.audit.kernel.exact import IntArray
from funnel.audit.kernel.opened import content, parsed
from funnel.audit.kernel.verdict import Broken, agree
from funnel.data.alphabet import OTHER
from funnel.draw.people import sample_bits
from funnel.format import people
from funnel.format.journal import ReleaseEntry
from funnel.format.people import PeopleFile

Values = tuple[str | None, ...]
"""Of secret and public columns."""


def digest(folder: Path, entry: ReleaseEntry) -> PeopleFile | None:
    """The digest; None where it is gone. Raises Broken where it is not the one that was entered."""
    path = folder / people.NAME
    if not path.is_file():
        return None
    raw = content(path)
    if (found := hashlib.sha256(raw).hexdigest()) != entry.identity.people_sha256:
        what = f"this is not the digest of {entry.release} that was entered"
        raise Broken(people.NAME, what, entry.identity.people_sha256, found)
    return _people(raw)


def by(root: Path, entry: ReleaseEntry) -> str | None:
    """The column by which a release knows people; None where it knows none, or nobody knows. Raises Broken."""
    if entry.entity is not None:
        return entry.entity
    found = digest(root / entry.release, entry)
    return None if found is None else found.entity


@lru_cache(maxsize=32)
def _people(raw: bytes) -> PeopleFile:
    """The digest of a night, with which every later one in a folder is compared. Raises Broken."""
    return parsed(PeopleFile, people.NAME, raw)


def fits(opened: Release, file: PeopleFile) -> None:
    """A digest is of the columns and records that were counted. Raises Broken."""
    columns = tuple(chain.from_iterable(opened.manifest.public))
    words, below = [row[0] for row in file.sample], 1 << (63 - file.bits)
    sizes = list(map(len, file.labels))
    agree(people.NAME, [
        ("entity", opened.terms.entity, file.entity),
        ("columns", (opened.manifest.sensitive, columns), (file.secret, file.public)),
        ("words", True, words == sorted(set(words)) and all(one < below for one in words)),
        ("codes", True, len(sizes) == len(file.secret) + len(columns) and all(
            len(row) == len(sizes) + 1 and all(code < size for code, size in zip(row[1:], sizes, strict=True))
            for row in file.sample)),
    ])  # fmt: skip
    present = opened.entries[-1].present
    unknown = 0 if present is None else present.unseen
    rows = opened.records.rows + unknown
    if file.entity is not None or opened.terms.missing != "drop":
        agree(people.NAME, [("rows", rows, file.rows)])
    elif present is not None and present.absent is not None:
        # Of nobody's rows it is of all that the filter lets in, of which those with missing values are left out.
        most = opened.records.rows + present.absent
        if not rows <= file.rows <= most:
            raise Broken(people.NAME, "there are not as many rows", f"{rows} to {most}", file.rows)
    agree(people.NAME, [("how many people are in the sample", sample_bits(file.rows), file.bits)])
    if file.entity is not None:
        _is_sampled(file)
    _is_counted(opened, file)


def _is_counted(opened: Release, file: PeopleFile) -> None:
    """People in the sample have values that are counted; where all are in it, all that are. Raises Broken.

    Those who have another one are left out, as a lock does.
    """
    named = [{*one.values} for one in opened.alphabets]
    ends = [*accumulate((len(one.columns) for one in opened.alphabets), initial=len(file.secret))]
    kept, left_out = Counter[Values](), False
    for row in file.sample:
        values = tuple(labels[code] for labels, code in zip(file.labels, row[1:], strict=True))
        if all(values[i:j] in one for (i, j), one in zip(pairwise(ends), named, strict=True)):
            kept[values] += 1
        else:
            left_out = True
    counted = Counter[Values]()
    for values, number in opened.by_label().items():
        counted[tuple(chain.from_iterable(values))] += number
    whole = not file.bits and file.entity is not None and not left_out
    if kept - counted or (left_out and opened.manifest.locked is None) or (whole and kept != counted):
        raise Broken(people.NAME, "the sample is not of the records counted", "values that they have", "others")
    if file.bits and file.entity is not None:
        # Of those counted under `other` a lock does not know all values.
        sure = {cell: n for cell, n in counted.items() if opened.manifest.locked is None or OTHER not in cell}
        secret, *public = [*range(ends[0])], *range(ends[0], ends[-1])
        columns = [[*secret, *public], *([*secret, one] for one in public)]
        for places in columns:
            found, what = _in_sample(sure, kept, places), "with each value in the sample as chance has"
            _by_chance(what, found, share=0.5**file.bits, often=len(columns))


def _in_sample(counted: Mapping[Values, int], kept: Counter[Values], places: Sequence[int]) -> IntArray:
    """Of each combination of some columns' values, how many are in a sample, and how many are not, (m, 2)."""
    every, found = Counter[Values](), Counter[Values]()
    for cell, number in counted.items():
        some = tuple(cell[place] for place in places)
        every[some] += number
        found[some] += kept[cell]
    rows = [[found[one], number - found[one]] for one, number in every.items()]
    return np.array(rows, np.int64).reshape(-1, 2)


def _is_sampled(file: PeopleFile) -> None:
    """All people are in the sample, or of more about as many as have a word that begins so. Raises Broken."""
    found, what = len(file.sample), "people in the sample"
    if not file.bits:
        agree(people.NAME, [(what, file.rows, found)])
        return
    _by_chance(f"{what} as chance has in one", np.array([[found, file.rows - found]]), share=0.5**file.bits)


def _by_chance(what: str, found: IntArray, *, share: float, often: int = 1) -> None:
    """Of each row of people (m, 2) about a share is in a sample, of whom that is asked so often. Raises Broken."""
    chance, _ = strays(found.sum(axis=1, keepdims=True) * np.array([[share, 1 - share]]), found)
    if not chance * often >= FALSE_ALARM:
        told = f"there are not as many {what}"
        raise Broken(people.NAME, told, f"about one in {round(1 / share)}", found[:, 0].tolist(), improbable=True)
