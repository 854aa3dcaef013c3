"""How far the current distribution has moved from the one that a lock was made from."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from funnel.data import Alphabet, Joint, Label
from funnel.format.drift import DriftFile, Unseen
from funnel.lock.lock import Lock
from funnel.lock.relabel import Relabelled

ORDER = 2.0
"""Order of the Rényi divergence that is told where the notion names none."""


@dataclass(frozen=True)
class Drift:
    """Tonight against the night of the lock. Leakage in nats, in the notion's measure; None where infinite.

    `distance` is the total variation of the two joint distributions of secret and public values, `divergence` the
    Rényi divergence of `order` from then to now in nats (None: infinite); both None where the counts of that night
    are not kept. `inside` says whether the current one lies in the ball of `radius` nats around it that a robust
    notion asked for. `new` and `gone` count values; `dropped` and `pooled` are rows of values that the lock does not
    know.
    """

    lock: str
    made: str
    measure: str
    leakage_then: float | None
    leakage_now: float | None
    rows_then: int
    rows_now: int
    known: bool
    distance: float | None
    order: float
    divergence: float | None
    radius: float | None
    inside: bool | None
    new: int
    dropped: int
    pooled: int
    gone: int
    new_secrets: int | None
    gone_secrets: int | None
    noisy: bool = False

    def as_dict(self) -> dict[str, Any]:
        """JSON form."""
        return asdict(self)

    def text(self) -> str:
        """One line for a person."""
        before, now = (_nats(one) for one in (self.leakage_then, self.leakage_now))
        at = (" at the noisy counts", " at the records' own") if self.noisy else ("", "")
        parts = [f"{self.measure} {before} then{at[0]}, {now} nats now{at[1]}"]
        if self.distance is not None:
            noise = ", noise included" if self.noisy else ""
            parts.append(f"{self.distance:.2%} of the distribution moved{noise}")
        if self.inside is not None:
            far = "beyond any" if self.divergence is None else f"{self.divergence:.3g} nats away"
            parts.append(f"{far}, {'within' if self.inside else 'OUTSIDE'} the {self.radius:.3g} of the lock")
        for count, what in (
            (self.new, "new values"),
            (self.gone, "values without rows"),
            (self.new_secrets, "new secret values"),
            (self.gone_secrets, "secret values gone"),
        ):
            if count:
                parts.append(f"{count:,} {what}")
        for rows, what in ((self.pooled, "rows under other"), (self.dropped, "rows dropped")):
            if rows:
                parts.append(f"{rows:,} {what}")
        return "; ".join(parts)


@dataclass(frozen=True)
class UnknownDrift:
    """What a run under a lock over a private estimate tells of the drift: nothing, for it has no noise."""

    lock: str
    made: str

    def as_dict(self) -> dict[str, Any]:
        """JSON form."""
        return asdict(self) | {"told": False}

    def text(self) -> str:
        """One line for a person."""
        return "not told, for figures of tonight's own counts have no noise; the private report of a release has them"


def drift(
    lock: Lock,
    reference: Joint | None,
    current: Relabelled,
    measure: str,
    leakage: float,
    order: float | None,
) -> Drift:
    """Compare the current counts, and their leakage in nats, with those of the lock (None where these are not kept)."""
    radius = lock.parameters.get("radius")
    distance, divergence = (
        (None, None) if reference is None else _distances(reference, current.joint, order or ORDER)
    )
    inside = None if reference is None or radius is None else divergence is not None and divergence <= radius
    new, gone = _secrets(reference, current)
    return Drift(
        lock=lock.checksum,
        made=lock.made,
        measure=measure,
        leakage_then=lock.leakage.get(measure),
        leakage_now=leakage if math.isfinite(leakage) else None,
        rows_then=lock.rows,
        rows_now=current.joint.rows,
        known=reference is not None,
        distance=distance,
        order=order or ORDER,
        divergence=divergence,
        radius=radius,
        inside=inside,
        new=len(current.unseen),
        dropped=current.rows("drop"),
        pooled=current.rows("other"),
        gone=sum(
            int((current.joint.table(j).sum(axis=0) == 0).sum()) for j in range(len(current.joint.blocks))
        ),
        new_secrets=None if new is None else len(new),
        gone_secrets=None if gone is None else len(gone),
        noisy=lock.noisy is not None,
    )


def drift_file(told: Drift, reference: Joint | None, current: Relabelled) -> DriftFile:
    """drift.json: the drift, with the names and records of what is new or gone; for the private evidence only."""
    joint = current.joint
    facts = {one.name: getattr(told, one.name) for one in fields(DriftFile) if hasattr(told, one.name)}
    came, went = _secrets(reference, current)
    return DriftFile(
        **facts
        | {
            "format": "funnel-drift/1",
            "unseen": tuple(Unseen(one.columns, one.value, one.rows, one.rule) for one in current.unseen),
            "gone": tuple(
                value
                for j, block in enumerate(joint.blocks)
                for value, rows in zip(block.values, joint.table(j).sum(axis=0), strict=True)
                if not rows
            ),
            "new_secrets": came,
            "gone_secrets": went,
        }
    )


def _nats(figure: float | None) -> str:
    return "without bound" if figure is None else f"{figure:.4f}"


def _distances(reference: Joint, now: Joint, order: float) -> tuple[float, float | None]:
    """Total variation, and D_order(reference || now) in nats, None where infinite; both in the lock's blocks."""
    codes: dict[Label, int] = {}
    secrets = [[codes.setdefault(s, len(codes)) for s in one.secret.values] for one in (reference, now)]
    cells = [
        np.column_stack([np.array(known)[one.cells[:, 0]], one.cells[:, 1:]])
        for one, known in zip((reference, now), secrets, strict=True)
    ]
    _, place = np.unique(np.concatenate(cells), axis=0, return_inverse=True)
    before, after = np.split(place.ravel(), [len(reference.cells)])
    p = np.bincount(before, reference.counts / reference.rows, minlength=int(place.max()) + 1)
    q = np.bincount(after, now.counts / now.rows, minlength=int(place.max()) + 1)
    return float(np.abs(p - q).sum() / 2), _renyi(p, q, order)


def _renyi(p: np.ndarray[Any, Any], q: np.ndarray[Any, Any], order: float) -> float | None:
    """D_α(p||q) = ln(Σ p^α q^(1-α))/(α-1), the relative entropy at α = 1; never below zero."""
    both = (p > 0) & (q > 0)
    if order >= 1 and (p[~both] > 0).any():
        return None
    logs = np.log(p[both]) - np.log(q[both])
    if order == 1:
        return max(float(p[both] @ logs), 0.0)
    if not both.any():
        return None
    powers = np.log(p[both]) + (order - 1) * logs
    most = float(powers.max())
    return max((most + math.log(float(np.exp(powers - most).sum()))) / (order - 1), 0.0)


def _secrets(
    reference: Joint | None, current: Relabelled
) -> tuple[tuple[Label, ...] | None, tuple[Label, ...] | None]:
    """The values of S that are new, and those that are gone; None where nobody knows."""
    if reference is None:
        return None, None
    columns, before, after = (
        reference.secret.columns,
        set(reference.secret.values),
        set(current.joint.secret.values),
    )
    return Alphabet.of(columns, [*after - before]).values, Alphabet.of(columns, [*before - after]).values
