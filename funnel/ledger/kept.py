"""PRIVATE/estimates: what noise was drawn, so that none is drawn twice for the same terms."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from funnel.data.convert import grid
from funnel.data.joint import IntArray
from funnel.files import replace_file, sync, writing
from funnel.format import schema
from funnel.format.estimated import FOLDER, EstimatedFile, file_name


@dataclass(frozen=True, eq=False)
class Kept:
    """One estimate: its name in the ledger, the counts (m,) that noise was added to, and those with their noise."""

    name: str
    true: IntArray
    noisy: IntArray


def path_of(private: Path, name: str) -> Path:
    """Where an estimate is kept."""
    return private / file_name(name)


def keep(private: Path, kept: Kept, terms: str, epsilon: Fraction) -> None:
    """Keep an estimate durably; only then may anything be made of it. Raises ReleaseError."""
    noise = kept.noisy - kept.true
    cells = grid(np.stack([kept.true, np.maximum(noise, 0), np.maximum(-noise, 0)]))
    told = EstimatedFile("funnel-estimate/1", kept.name, terms, str(epsilon), cells)
    with writing(private):
        if not (private / FOLDER).is_dir():
            (private / FOLDER).mkdir(mode=0o700)
            sync(private)
        replace_file(path_of(private, kept.name), schema.write(told))


def read(private: Path, name: str) -> Kept:
    """The estimate of a name. Raises OSError (FileNotFoundError where none is kept), ValueError."""
    path = path_of(private, name)
    told = schema.read(EstimatedFile, path.name, path.read_bytes())
    if told.name != name:
        raise ValueError("it is another estimate's")
    true, added, taken = np.array(told.cells, np.int64).reshape(3, -1)
    return Kept(name, true, true + added - taken)
