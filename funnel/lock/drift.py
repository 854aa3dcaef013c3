"""How far the current distribution has moved from the one that a lock was made from."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from funnel.data import Alphabet, Joint, Label
from funnel.format.drift import DriftFile
from funnel.lock.lock import Lock
from funnel.lock.relabel import Relabelled
from funnel.measure.figures import round_up, spelt
from funnel.text import counted, portion

ORDER = 2.0
"""Order of the Rényi divergence that is told where the notion names none."""


def drift(
    lock: Lock,
    reference: Joint | None,
    current: Relabelled,
    measure: str,
    leakage: float,
    order: float | None,
) -> DriftFile:
    """Compare the current counts, and their leakage in nats, with those of the lock (None where these are not kept).

    With the names and records of what is new or gone: for the private folder.
    """
    joint, radius, order = current.joint, lock.parameters.get("radius"), order or ORDER
    distance, divergence = (None, None) if reference is None else _distances(reference, joint, order)
    came, went = (None, None) if reference is None else _secrets(reference, joint)
    return DriftFile(
        "funnel-drift/1",
        lock=lock.checksum,
        made=lock.made,
        measure=measure,
        leakage_then=lock.leakage.get(measure),
        leakage_now=leakage if math.isfinite(leakage) else None,
        rows_then=lock.rows,
        rows_now=joint.rows,
        known=reference is not None,
        distance=distance,
        order=order,
        divergence=divergence,
        radius=radius,
        inside=None
        if reference is None or radius is None
        else divergence is not None and divergence <= radius,
        noisy=lock.noisy is not None,
        unseen=current.unseen,
        gone=tuple(_gone(joint)),
        new_secrets=came,
        gone_secrets=went,
    )


def told(found: DriftFile) -> dict[str, Any]:
    """The drift for `run --json`: how many values came and went, and not which ones; rows once for each block.

    Nothing of a lock over a private estimate: figures of the current counts themselves have no noise.
    """
    if found.noisy:
        return {"lock": found.lock, "made": found.made, "told": False}
    names = ("gone", "new_secrets", "gone_secrets")
    figures = {key: value for key, value in vars(found).items() if key not in ("format", "unseen", *names)}
    return figures | {
        "new": len(found.unseen),
        "dropped": rows(found, "drop"),
        "pooled": rows(found, "other"),
        **{name: None if (one := getattr(found, name)) is None else len(one) for name in names},
    }


def words(found: DriftFile) -> str:
    """One line for a person."""
    if found.noisy:
        return "not told, for figures of tonight's own counts have no noise; the private report of a release has them"
    then = "without bound" if found.leakage_then is None else f"at most {spelt(found.leakage_then)}"
    parts = [f"{found.measure} {then} then, {_nats(found.leakage_now)} nats now"]
    if found.distance is not None:
        parts.append(f"{portion(found.distance)} of the distribution (values as drawn for) moved")
    if found.inside is not None:
        far = "beyond any" if found.divergence is None else f"{found.divergence:.3g} nats away"
        parts.append(f"{far}, {'within' if found.inside else 'OUTSIDE'} the {found.radius:.3g} of the lock")
    counts = (
        (len(found.unseen), "new value", ""),
        (len(found.gone), "value", " without rows"),
        (len(found.new_secrets or ()), "new secret value", ""),
        (len(found.gone_secrets or ()), "secret value", " gone"),
        (found.new_keys or 0, "row", " with a new key"),
        (found.gone_keys or 0, "key", " gone"),
        (rows(found, "other"), "row", f" under other{_times(found, 'other')}"),
        (rows(found, "drop"), "row", f" dropped{_times(found, 'drop')}"),
    )
    return "; ".join([*parts, *(counted(number, what) + more for number, what, more in counts if number)])


def rows(found: DriftFile, rule: str) -> int:
    """Records of unseen values that went the way of this rule; one with several counts once for each block."""
    return sum(one.rows for one in found.unseen if one.rule == rule)


def _times(found: DriftFile, rule: str) -> str:
    """That a row may have been counted several times."""
    several = len({one.columns for one in found.unseen if one.rule == rule}) > 1
    return " (one for each block)" if several else ""


def _gone(joint: Joint) -> Iterator[Label]:
    """The public values without records."""
    for j, block in enumerate(joint.blocks):
        records = joint.table(j).sum(axis=0)
        yield from (value for value, rows in zip(block.values, records, strict=True) if not rows)


def _nats(figure: float | None) -> str:
    return "without bound" if figure is None else f"{round_up(figure):.4f}"


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


def _secrets(reference: Joint, current: Joint) -> tuple[tuple[Label, ...], tuple[Label, ...]]:
    """The values of S that are new, and those that are gone."""
    columns, before, after = (
        reference.secret.columns,
        set(reference.secret.values),
        set(current.secret.values),
    )
    return Alphabet.of(columns, [*after - before]).values, Alphabet.of(columns, [*before - after]).values
