"""What a mechanism keeps of a table, through funnel's own doors."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from funnel.data import AnyProtocol, Joint, Protocol
from funnel.data.channel import Channel
from funnel.data.joint import FloatArray
from funnel.measure.information import public_entropy, released_information
from funnel.mechanisms import ConditionalReporting, Mechanism, Optimal, RandomisedResponse, UnaryEncoding
from funnel.notions import Lip, Notion
from funnel.optimise.cone import Cone
from funnel.optimise.solve import Solution, maximise

SECONDS = 60.0
OPTIMAL = Optimal(kind="optimal")
GRR = RandomisedResponse(kind="randomised-response")
CR = ConditionalReporting(kind="conditional-reporting")
OUE = UnaryEncoding(kind="unary-encoding")


def lip(epsilon: float) -> Lip:
    """The notion of most figures."""
    return Lip(notion="lip", epsilon=epsilon)


def prior(joint: Joint) -> FloatArray:
    """p_x (a,)."""
    return np.asarray(joint.table().sum(axis=0) / joint.rows)


def optimum(joint: Joint, notion: Notion, seconds: float = SECONDS) -> Solution:
    """The best real-valued protocol for a joint of one block: no rounding to integers, for figures only."""
    return best(notion.demand(joint, {}, 0).cone(), prior(joint), seconds)


def best(cone: Cone, prior: FloatArray, seconds: float = SECONDS) -> Solution:
    """The same for a cone."""
    return maximise(cone, prior, budget=seconds)


def solved(joint: Joint, mechanism: Mechanism, notion: Notion) -> AnyProtocol:
    """The protocol on integers that a policy would get."""
    return mechanism.solve(joint, notion.demand(joint, {}, 0)).protocol


def kept_nats(joint: Joint, *protocols: AnyProtocol) -> float:
    """I(X;Y) of protocols side by side."""
    return released_information(joint, protocols, Channel(joint, protocols).table)


def kept(joint: Joint, *protocols: AnyProtocol) -> float:
    """I(X;Y)/H(X) of protocols side by side."""
    return kept_nats(joint, *protocols) / public_entropy(joint)


def seconds(task: Callable[[], object], times: int = 3) -> float:
    """Seconds of processor time that a task takes, the least of several tries: fair on a busy machine too."""
    return min(_once(task) for _ in range(times))


def _once(task: Callable[[], object]) -> float:
    start = time.process_time()
    task()
    return time.process_time() - start


def grr_strength(protocol: Protocol) -> float:
    """α of GRR^α: the logarithm of keeping x over saying another value; infinite where X is released as it is."""
    other = int(protocol.weights[1, 0, 0])
    return math.log(int(protocol.weights[0, 0, 0]) / other) if other else math.inf


def cr_strength(protocol: Protocol, secrets: int) -> float:
    """α of CR^α: the logarithm of keeping s over drawing another value of it."""
    keep = int(protocol.weights[0, 0, 0] - protocol.weights[0, 0, 1]) / (1 << protocol.bits)
    change = (1 - keep) / (secrets - 1)
    return math.log(keep / change) if change > 0 else math.inf
