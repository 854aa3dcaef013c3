"""Balls around an estimate, and what lies in them."""

from __future__ import annotations

import math

import numpy as np


def divergence(order: float, p: np.ndarray, q: np.ndarray) -> float:
    """D_α(p||q) by its definition."""
    p, q = np.ravel(p), np.ravel(q)
    q = q[p > 0]
    p = p[p > 0]
    if order == 1:
        return float((p * np.log(p / q)).sum()) if q.all() else math.inf
    if order > 1 and not q.all():
        return math.inf
    total = float((p**order * q ** (1 - order)).sum())
    return math.log(total) / (order - 1) if total else math.inf


def onto(order: float, bound: float, p: np.ndarray, towards: np.ndarray) -> np.ndarray:
    """The last point of the ball on the way from p to another distribution."""
    if divergence(order, p, towards) <= bound:
        return towards
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        inside = divergence(order, p, p + middle * (towards - p)) <= bound
        low, high = (middle, high) if inside else (low, middle)
    return p + low * (towards - p)
