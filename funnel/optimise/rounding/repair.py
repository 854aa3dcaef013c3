"""Bringing a protocol inside its cone by mixing it with the uninformative one."""

from __future__ import annotations

import numpy as np

from funnel.data.joint import FloatArray
from funnel.optimise.cone import Cone


def repair(protocol: FloatArray, cone: Cone) -> tuple[FloatArray, float]:
    """Q' = (1-t)·Q + t·w_k·1 with ONE least t for all rows, so that columns still sum to one; Q' and t.

    A row that exceeds its worst inequality by f_k (in units of the all-ones vector) needs t·w_k >= (1-t)·f_k.
    With the w_k free, the least t has w_k proportional to f_k and t/(1-t) = Σ_k f_k. An equality cannot be
    repaired this way: there only negative entries are.
    """
    need = np.maximum(-protocol.min(axis=1), 0.0) if cone.equalities else cone.violation(protocol)
    scale = 1 + need.sum()
    return (protocol + need[:, None]) / scale, float(need.sum() / scale)
