"""What only the private evidence tells, for the full report: the counts, beliefs, shares, and what was really drawn.

Tables are exact integers, and one division makes a figure of them, so that it is the same on every machine.

Of a robust release it says what the leakage would be if the truth were not the counted distribution but one near it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.data import AnyProtocol, Joint
from funnel.data.channel import MAX_CELLS, released_table
from funnel.data.convert import finer_of, joint_of
from funnel.data.joint import FloatArray, IntArray
from funnel.data.sending import ExactArray, sent, through
from funnel.data.subsets import ReleasedTable, Subsets
from funnel.format.released import ReleasedFile
from funnel.format.reported import Evidence as Kept
from funnel.format.terms import Attribute
from funnel.measure.faithful import at_zero, share_unchanged
from funnel.measure.information import entropy, released_information
from funnel.measure.leakage import lip
from funnel.measure.side import Knowledge, uncovered
from funnel.mechanisms import MECHANISMS
from funnel.release.narrowed import narrowed
from funnel.report import words
from funnel.report.beliefs import Beliefs
from funnel.report.facts import Facts, kept, names
from funnel.report.figures import nearest
from funnel.report.observer import observer
from funnel.report.truth import truth
from funnel.report.wide import near
from funnel.text import label

Notion = Mapping[str, str]
Objects = npt.NDArray[np.object_]
RESAMPLES = 1000
"""Distributions drawn around the counted one."""

_CELLS = 200_000_000
"""Most cells that are looked at in all, so that a large table makes a report with fewer resamples."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """One release with its private files."""

    t: Facts
    joint: Joint
    kept: Kept

    @classmethod
    def of(cls, t: Facts, kept: Kept) -> Evidence:
        """The evidence of a release. Raises ValueError where the counts are none over their alphabets."""
        counts = kept.counts
        return cls(t, joint_of(counts.secret, counts.blocks, counts.cells), kept)

    @cached_property
    def table(self) -> ReleasedTable:
        """T[s, y_1, …, y_k] of the release, in exact integers."""
        return released_table(self.joint, self.t.protocols)

    @property
    def prepared(self) -> list[Attribute]:
        """The public columns of which something was made before they were counted."""
        wide = [column for block in self.kept.terms.wide for column in block.columns]
        columns = [column for block in self.kept.terms.public for column in block] + wide
        return [one for one in columns if one.is_changed]

    @property
    def absent(self) -> int:
        """Records of the source that are in no row; 0 where nobody counted them."""
        if self.kept.population is None:
            return 0
        return sum(int(row[-1]) for row in self.kept.population.people[0].cells) - self.t.m.rows

    @cached_property
    def secret_counts(self) -> list[int]:
        """Records of each secret value, (c,)."""
        return [
            int(count)
            for count in np.bincount(self.joint.cells[:, 0], self.joint.counts, len(self.joint.secret))
        ]

    def told(self, notion: Notion, released: ReleasedFile) -> dict[str, Any]:
        """What the full report says beside the published one."""
        beliefs = Beliefs.of(self.t, notion, self.joint, self.secret_counts)
        blocks = [self._block(beliefs, index) for index in range(len(self.t.protocols))]
        told = {
            "width": beliefs.width,
            "secrets": beliefs.secrets(self.table),
            "guess": self._guess(),
            "untouched": self._untouched(),
            "untouched_at_zero": nearest(at_zero(self.joint).unchanged, 6),
            "blocks": blocks,
            "observer": observer(self.t, released, self.kept.counts, notion),
            "uncovered": self._uncovered(),
            "realised": realised(self.t, self.joint),
            "narrowed": self._narrowed(released),
            "wide": [] if self.kept.distances is None else list(map(near, self.kept.distances.blocks)),
        }
        return told | words.blocks("evidence.txt", t=self.t, e=self, told=told, notion=notion)

    def _block(self, beliefs: Beliefs, index: int) -> dict[str, Any]:
        """One block: its shares before and after, its counts, and how its released values move beliefs."""
        protocol, counts = self.t.protocols[index], self.joint.table(index)
        alone = released_table(self.joint.block(index), [protocol])
        prior = counts.sum(axis=0) / self.joint.rows
        total = entropy(prior)
        found = released_information(self.joint.block(index), [protocol], alone)
        return {
            "name": self.t.names[index],
            "leakage": _finite(lip(alone).nats),
            "mutual_information": round(found, 4) + 0.0,
            "normalised": nearest(found / total, 3) if total > 0 else None,
            "shares": _shares(protocol, counts),
            "drawn": self._drawn(index),
            "truth": truth(self.joint.block(index), protocol),
            "map": beliefs.map(alone, names(protocol)),
            "counts": {
                "secret": [label(value) for value in self.joint.secret.values],
                "public": [label(value) for value in protocol.inputs.values],
                "records": counts.tolist(),
            },
        }

    def _guess(self) -> dict[str, float] | None:
        """Share of records whose secret is guessed right by always naming the likeliest value, before and after.

        None where there are too many sets to go through.
        """
        before = max(self.secret_counts) / self.joint.rows
        if isinstance(self.table, Subsets):
            if self.table.size > MAX_CELLS:
                return None
            after = float(self.table.chances().max(axis=0).sum())
        else:
            flat = self.table.reshape(len(self.table), -1)
            after = int(flat.max(axis=0).sum()) / int(flat.sum())
        return {"before": nearest(before, 6), "after": nearest(after, 6)}

    def _uncovered(self) -> dict[str, int] | None:
        """Whom the notion does not cover, as too few share what might be known of them; None: it covers all."""
        if self.kept.known is None:
            return None
        knows = self.t.m.parameters.knows
        people, pairs, sets = uncovered(finer_of(self.kept.known, self.t.m.estimate.minimum), Knowledge.of(knows))
        return {"people": people, "pairs": pairs, "sets": sets}

    def _narrowed(self, released: ReleasedFile) -> dict[str, int] | None:
        """How many counts published files narrow down; None over noisy counts, and where it is not computed."""
        if self.t.private:
            return None
        shown = MECHANISMS[self.t.m.mechanism].shows_shares and self.t.m.locked is None
        kept = self.t.m.totals == "kept" and self.t.m.locked is None
        rows, minimum = np.array(released.rows, np.int64), self.t.m.estimate.minimum
        found = narrowed(self.joint, self.t.protocols, minimum, released=rows, shown=shown, kept=kept)
        return None if found is None else asdict(found)

    def _untouched(self) -> float:
        """Share of records expected to be released exactly as they are, in every block."""
        return nearest(share_unchanged(self.joint, self.t.protocols), 6)

    def _drawn(self, index: int) -> float:
        """Share of records whose draw gave the true value, or a set that holds it."""
        protocol, a = self.t.protocols[index], len(self.t.protocols[index].inputs)
        place = {value: y for y, value in enumerate(protocol.told.values)}
        same = [place.get(value) for value in protocol.inputs.values]
        true: int = sum(count for x, y, count in self.kept.draws.blocks[index] if y == same[x % a])
        return nearest(true / self.t.m.rows, 6)


def _finite(nats: float) -> float | None:
    return round(math.ceil(nats * 1e4 - 1e-6) / 1e4, 4) + 0.0 if math.isfinite(nats) else None


def _shares(protocol: AnyProtocol, counts: IntArray) -> list[dict[str, Any]]:
    """For every value of a block its records, its share before, the share expected after, how likely it is kept,
    and how likely it is true where it is released, None where it never is.
    """
    place = {value: y for y, value in enumerate(protocol.told.values)}
    reached, both, total = _flows(protocol, counts)
    rows, entries = int(counts.sum()), []
    for x, value in enumerate(protocol.inputs.values):
        records, y = int(counts[:, x].sum()), place.get(value)
        after, true = (0, 0) if y is None else (int(reached[y]), int(both[x]))
        certain = float(kept(protocol)[0, x]) if records == 0 else true / (records * total)
        entries.append({
            "value": label(value),
            "records": records,
            "before": nearest(records / rows, 6),
            "after": nearest(after / (rows * total), 6),
            "kept": nearest(certain, 6),
            "true": nearest(true / after, 6) if after else None,
        })  # fmt: skip
    return entries


def _flows(protocol: AnyProtocol, counts: IntArray) -> tuple[ExactArray, Objects, int]:
    """Exact weights: of each output (b,), of each value drawn as itself (a,), and of one record."""
    place = {value: y for y, value in enumerate(protocol.told.values)}
    told, none = protocol.telling_weights, np.zeros(len(counts), np.int64)
    weights = np.broadcast_to(told, (len(told), *counts.shape))
    same = [weights[place[value], :, x] if value in place else none
            for x, value in enumerate(protocol.inputs.values)]  # fmt: skip
    true = (np.stack(same, axis=1).astype(object) * counts.astype(object)).sum(axis=0)
    return sent(counts, told).sum(axis=0), true, 1 << protocol.bits


def realised(t: Facts, joint: Joint) -> dict[str, Any] | None:
    """Quantiles of the LDP leakage over resampled truths in nats, and the share of these above ε.

    None unless the notion is about distributions near the counted one, which has a radius. The truth is drawn from the
    Dirichlet distribution with the counts as parameters: the posterior, without prior counts, given the records. The
    generator is seeded from the release's name, so that a report can be made again; nobody's privacy rests on it.
    """
    if t.m.parameters.radius is None:
        return None
    found = np.sort(np.fromiter(_leakages(t.m.release, t.protocols, joint), float))
    places = {"median": 0.5, "p95": 0.95, "largest": 1.0}
    at = {name: float(found[math.ceil(part * len(found)) - 1]) for name, part in places.items()}
    return {
        "resamples": len(found),
        **{name: round(value, 4) + 0.0 if math.isfinite(value) else None for name, value in at.items()},
        "share_above": nearest(float((found > t.epsilon * (1 + 1e-12)).mean()), 6),
    }


def _leakages(release: str, protocols: Sequence[AnyProtocol], joint: Joint) -> Iterator[float]:
    """max ln P(y|s)/P(y|s') of the release, for one distribution of the true values after another."""
    seed = hashlib.sha256(release.encode()).digest()
    random = np.random.default_rng(np.frombuffer(seed, np.uint32))
    cells = max(math.prod(joint.shape), len(joint.secret) * math.prod(one.size for one in protocols))
    for _ in range(max(50, min(RESAMPLES, _CELLS // cells))):
        table = np.zeros(joint.shape)
        table[tuple(joint.cells.T)] = random.standard_gamma(joint.counts)
        yield _ldp(protocols, table)


def _ldp(protocols: Sequence[AnyProtocol], table: FloatArray) -> float:
    """The LDP leakage in nats where the true values are distributed as `table` (c, a_1, …, a_k)."""
    rows = table.reshape(len(table), -1).sum(axis=1)
    sent = (table.reshape(len(table), -1)[rows > 0] / rows[rows > 0, None]).reshape(-1, *table.shape[1:])
    for axis, protocol in enumerate(protocols, start=1):
        weights, bits = protocol.likelihoods()
        sent = through(sent, axis, weights) / 2.0**bits
    chances = sent.reshape(len(sent), -1)
    chances = chances[:, chances.any(axis=0)]
    if (chances == 0).any():
        return math.inf
    return float(np.log(chances.max(axis=0) / chances.min(axis=0)).max())
