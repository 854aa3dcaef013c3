"""How true a row is to its person, beside the table with the same totals whose rows are drawn for nobody, at ε = 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from funnel.data import Alphabet, AnyProtocol, Joint
from funnel.data.joint import IntArray
from funnel.measure.faithful import Faithful, at_zero, faithful
from funnel.measure.recovery import Recovered
from funnel.report.figures import nearest
from funnel.text import human

_VAGUE = 0.1
"""Of all records: estimates with larger errors together than this tell nothing of shares."""
_ANYBODY = Alphabet(("S",), (("anybody",),))


def truth(joint: Joint, protocol: AnyProtocol) -> dict[str, Any] | None:
    """Of one block the shares of records unchanged, and by column those that show their own value; and at ε = 0.

    And how far a raw total is from the true one, in records. None of sets, which show several values.
    """
    if protocol.coins:
        return None
    own, nobody = faithful(joint, [protocol]), at_zero(joint)
    return _told(own, nobody) | {"face": _two(own.error), "face_at_zero": _two(nobody.error)}


def estimated(protocol: AnyProtocol, found: Recovered | None) -> dict[str, Any] | None:
    """The same where only the released totals are known: at the true ones as estimated from these, with their errors.

    None where some true total has no estimate that could be used, or the chances depend on the secret.
    """
    known = found is not None and len(found.count) == len(protocol.inputs)
    if found is None or not known or protocol.coins or protocol.reads_secret:
        return None
    # An answer that nobody had adds nothing to an error, however much one record that has it would.
    if np.linalg.norm(np.hypot(found.error, found.one)) > _VAGUE * found.count.sum():
        return None
    joint = _anybody(protocol, np.rint(found.count[found.groups]).astype(np.int64))
    return _beside(joint, protocol, float(np.sqrt(np.mean(found.error**2))))


def as_released(protocol: AnyProtocol, seen: IntArray) -> dict[str, Any] | None:
    """The same where the released totals (b,) are the true ones on average: at these, with the errors of the draws."""
    if protocol.coins or protocol.reads_secret:
        return None
    own = dict(zip(protocol.told.values, seen.tolist(), strict=True))
    joint = _anybody(protocol, np.array([own.get(value, 0) for value in protocol.inputs.values], np.int64))
    return _beside(joint, protocol, float(np.sqrt(np.mean(faithful(joint, [protocol]).errors[0] ** 2))))


def _anybody(protocol: AnyProtocol, counts: IntArray) -> Joint:
    """Counts (a,) of true values, of which some may be none."""
    there = np.flatnonzero(counts > 0)
    cells = np.column_stack([np.zeros_like(there), there])
    return Joint(_ANYBODY, (protocol.inputs,), cells, counts[there], complete=False)


def _beside(joint: Joint, protocol: AnyProtocol, error: float) -> dict[str, Any]:
    nobody = at_zero(joint)
    errors = {"error": _two(error), "error_at_zero": _two(nobody.error)}
    return _told(faithful(joint, [protocol]), nobody) | errors


def _told(own: Faithful, nobody: Faithful) -> dict[str, Any]:
    columns = [
        {"name": human(name), "own": nearest(share, 3), "at_zero": nearest(nobody.accuracy[name], 3)}
        for name, share in own.accuracy.items()
    ]
    shares = {"unchanged": nearest(own.unchanged, 3), "at_zero": nearest(nobody.unchanged, 3)}
    return shares | {"columns": columns}


def _two(error: float) -> float:
    """Records, to two significant digits."""
    return float(f"{error:.2g}")
