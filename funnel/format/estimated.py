"""estimates/NAME.json: one private estimate, drawn once and taken again; private, and of no release alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from funnel.format.fields import Positive, Sha256, Text
from funnel.format.schema import Grid

FOLDER = "estimates"


@dataclass(frozen=True)
class EstimatedFile:
    """An estimate by the `name` and the `terms` of its entry in the ledger, ε_est in nats.

    `cells` are three lists, for every cell of the declared domain in order: what was counted when the noise was drawn,
    the noise added and the noise taken.
    """

    format: Literal["funnel-estimate/1"]
    name: Text
    terms: Sha256
    epsilon: Positive
    cells: Grid


def file_name(name: str) -> str:
    """Where the estimate of a name lies, within the private folder."""
    return f"{FOLDER}/{name}.json"
