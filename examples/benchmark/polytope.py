"""The optimal LDP protocol through the notion's cone, against the literal polytope of [DS] Theorem 2.

The theorem enumerates the vertices of all a x a protocols that keep the bound, a polytope of a(a-1) dimensions,
and takes the best. The cone of a single row has a-1 dimensions and the same optimum.
"""

from __future__ import annotations

import argparse
import math

import cdd
import numpy as np
from sides import in_turn, table

from funnel.data import Joint
from funnel.data.joint import FloatArray
from funnel.measure.information import kept_information
from funnel.notions import Ldp
from funnel.optimise.solve import maximise

COUNTS = 10**6


def random_joint(a: int, c: int) -> Joint:
    """A uniform random table, as counts."""
    probabilities = np.random.default_rng(1).uniform(size=(c, a))
    return Joint.from_table(np.rint(probabilities / probabilities.sum() * COUNTS).astype(np.int64))


def by_cone(joint: Joint, epsilon: float) -> float:
    """I(X;Y) of funnel's solution."""
    prior = joint.table().sum(axis=0) / joint.rows
    return maximise(Ldp(notion="ldp", epsilon=epsilon).cone_of(joint.table()), prior, budget=600).value


def by_polytope(joint: Joint, epsilon: float) -> tuple[float, int]:
    """The best vertex of {Q : Q >= 0, columns sum to one, every row keeps the bound}, and the number of vertices."""
    counts = joint.table()
    given, prior = counts / counts.sum(axis=1, keepdims=True), counts.sum(axis=0) / joint.rows
    c = len(given)
    rows = [given[s] - math.exp(epsilon) * given[t] for s in range(c) for t in range(c) if s != t]
    return best_vertex(np.array(rows), prior)


def best_vertex(rows: FloatArray, prior: FloatArray) -> tuple[float, int]:
    """The best vertex of the protocols Q (a, a) with A v <= 0 for every row v of Q, A = `rows`; how many there are."""
    a = len(prior)
    # The last row of Q is one minus the others: the free variables are the first a-1 rows.
    free = a * (a - 1)
    last = np.tile(np.eye(a), a - 1)
    inequalities = [np.append(0, row) for row in np.eye(free)]
    inequalities += [np.append(1, -row) for row in last]
    for row in rows:
        for y in range(a - 1):
            inequalities.append(np.append(0, -np.kron(np.eye(a - 1)[y], row)))
        inequalities.append(np.append(-row.sum(), row @ last))
    matrix = cdd.matrix_from_array(inequalities, rep_type=cdd.RepType.INEQUALITY)
    vertices = np.array(cdd.copy_generators(cdd.polyhedron_from_matrix(matrix)).array)[:, 1:]
    best = 0.0
    for vertex in vertices:
        top = np.clip(vertex.reshape(a - 1, a), 0, None)
        best = max(best, kept_information(prior, np.vstack([top, np.clip(1 - top.sum(axis=0), 0, None)])))
    return best, len(vertices)


def main(arguments: list[str]) -> None:
    """Run the comparison and print the table."""
    parser = argparse.ArgumentParser(prog="benchmark polytope", description=__doc__.splitlines()[0])
    parser.add_argument("--a", type=int, default=5, help="values of the public column")
    parser.add_argument("--c", type=int, default=2, help="values of the secret")
    parser.add_argument("--epsilon", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args(arguments)
    joint = random_joint(options.a, options.c)
    found: dict[str, tuple[float, int]] = {}
    seconds = in_turn(
        {
            "cone": lambda: found.update(cone=(by_cone(joint, options.epsilon), 0)),
            "polytope": lambda: found.update(polytope=by_polytope(joint, options.epsilon)),
        },
        options.rounds,
    )
    print(f"a = {options.a}, c = {options.c}, epsilon = {options.epsilon:g}")
    (cone, _), (polytope, vertices) = found["cone"], found["polytope"]
    print(f"I(X;Y): cone {cone:.10f}, polytope {polytope:.10f} ({vertices:,} vertices)")
    print(table(seconds, "cone"))
