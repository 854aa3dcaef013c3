"""Randomising the same column with other libraries, where they are installed: one call a value, as they offer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib import import_module

import numpy as np

EPSILON = 0.5
_SECONDS = 1.0
"""How long each is watched."""


def _ldpy(values: int) -> Callable[[int], object]:
    client = import_module("multi_freq_ldpy.pure_frequency_oracles.GRR").GRR_Client
    return lambda value: client(value, values, EPSILON)


def _pure(values: int) -> Callable[[int], object]:
    from functools import partial

    found = import_module("pure_ldp.frequency_oracles.direct_encoding").DEClient(EPSILON, values, lambda x: x)
    return partial(found.privatise)


def _opendp(values: int) -> Callable[[int], object]:
    dp = import_module("opendp.prelude")
    dp.enable_features("contrib")
    made = dp.m.make_randomized_response(list(range(values)), prob=_kept(values))
    found: Callable[[int], object] = made
    return found


def _diffprivlib(values: int) -> Callable[[int], object]:
    mechanisms = import_module("diffprivlib.mechanisms")
    alike = [[str(one), str(other), 1.0] for one in range(values) for other in range(one)]
    found = mechanisms.ExponentialCategorical(epsilon=EPSILON, utility_list=alike)
    return lambda value: found.randomise(str(value))


def _kept(values: int) -> float:
    """The chance that randomised response keeps a value."""
    return float(np.exp(EPSILON) / (np.exp(EPSILON) + values - 1))


PEERS: dict[str, Callable[[int], Callable[[int], object]]] = {
    "multi-freq-ldpy": _ldpy, "pure-ldp": _pure, "OpenDP": _opendp, "diffprivlib": _diffprivlib,
}  # fmt: skip


def compared(own: float, values: int) -> Iterator[str]:
    """Rows a processor second of each, beside those of a whole release and how many times more these are."""
    yield "rows a processor second of the same column (others draw alone, one call a value: no count, no audit)"
    yield f"  {'funnel fresh, records':<28}{own:>14,.0f}"
    for name, peer in PEERS.items():
        try:
            draw = peer(values)
        except ImportError:
            yield f"  {name:<28}{'not installed':>14}"
            continue
        rate = _rate(draw, values)
        yield f"  {name:<28}{rate:>14,.0f}{own / rate:>10,.0f} times as many"


def _rate(draw: Callable[[int], object], values: int) -> float:
    codes = np.random.default_rng(1).integers(values, size=1_000).tolist()
    draw(codes[0])  # compiles, where it does
    start, done = time.process_time(), 0
    while (spent := time.process_time() - start) < _SECONDS:
        for code in codes:
            draw(code)
        done += len(codes)
    return done / spent
