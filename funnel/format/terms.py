"""terms.json: the policy with every default spelt out, so that nobody has to read its YAML a second time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from funnel.format.fields import Count, Nats, Positive, Sha256, Share, Text
from funnel.format.manifest import Parameters, Partition, Period

NAME = "terms.json"


@dataclass(frozen=True)
class Attribute:
    """A public column and what is done to it before anything is counted; None where nothing is.

    `bins` are edges, numbers or dates; `groups` levels, lowest first, from names to those of the groups above them.
    """

    name: Text
    bins: tuple[float | str, ...] | None
    round: float | Period | None
    clip: tuple[float, float] | None
    top: Count | None
    groups: tuple[dict[str, Text], ...] | None
    rare: Literal["error", "other", "bin"] | None
    trim: bool
    unseen: Literal["error", "other", "drop"]

    @property
    def edges(self) -> list[str]:
        """The edges of bins as they stand in labels."""
        return [edge if isinstance(edge, str) else f"{edge:.15g}" for edge in self.bins or ()]

    @property
    def is_changed(self) -> bool:
        """Whether its values are others than the source's."""
        merged = self.rare in ("other", "bin") or self.trim
        return merged or any((self.bins, self.round, self.top, self.groups))


@dataclass(frozen=True)
class WideTerms:
    """A wide block: the name of its alphabet's column, its own columns, at most how many cells, of how many records."""

    name: Text
    columns: tuple[Attribute, ...]
    most: Count
    minimum: Count


@dataclass(frozen=True)
class EstimateTerms:
    """How the distribution is to be estimated; budgets and ε_est in nats, `values` those declared for each column.

    `beliefs` are the steps that beliefs are rounded to, None where they are not.
    """

    minimum: Count
    kind: Literal["counts", "private"]
    epsilon: Positive | None
    budget: Positive | None
    values: dict[str, tuple[str, ...]] | None
    beliefs: Share | None = None


@dataclass(frozen=True)
class TermsFile:
    """terms.json: all that decides what is promised to whom; `policy_sha256` names the YAML file it was read from.

    `parameters` are as asked for (a radius that follows from a confidence is not among them), `split` as resolved
    where it is not searched for, `mechanism` the kind with its options. In `public` a wide block is one column, its
    cell; what it is made of stands in `wide`. `accept` is what a release may end: `unbounded`, or promises of other
    policies by name. `identify` are the key columns, `partition` how the table lies in folders.
    """

    format: Literal["funnel-terms/1"]
    policy_sha256: Sha256
    name: Text
    description: str
    entity: Text | None
    filter: Text | None
    missing: Literal["category", "drop", "error"]
    sensitive: tuple[Text, ...]
    public: tuple[tuple[Attribute, ...], ...]
    wide: tuple[WideTerms, ...]
    notion: Text
    epsilon: Nats
    parameters: Parameters
    split: tuple[Share, ...] | Literal["optimal"]
    mechanism: dict[str, str | float | bool | dict[str, str] | None]
    draws: Literal["permanent", "fresh"]
    estimate: EstimateTerms
    budget: Positive | None
    accept: tuple[Text, ...]
    format_of_data: Literal["parquet", "csv"]
    rows_of_data: Literal["records", "counts"]
    formulas: Literal["refuse", "keep"]
    identify: tuple[Text, ...]
    partition: Partition | None = None
