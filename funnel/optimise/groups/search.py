"""The optimum over rows whose averages over several groups stay close, where there are too many coordinates to search.

With groups s of coordinates and sets D_s of weights, a row v is allowed when R·v_s <= ratio · R'·v_s' for all R in
D_s, R' in D_s', s ≠ s' (`worst_case`). Branch and bound over all coordinates is hopeless at hundreds of them; but the
groups of a row meet in two numbers only, its least average and its total, so each is searched by itself.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from funnel.data.joint import FloatArray
from funnel.errors import SolverError
from funnel.optimise.groups.argument import GroupCertificate
from funnel.optimise.groups.coupling import coupled
from funnel.optimise.groups.descent import descend
from funnel.optimise.groups.levels import Groups, Limits, of_labels
from funnel.optimise.groups.listed import Listed, large_group
from funnel.optimise.groups.master import Mode, Parts
from funnel.optimise.groups.proof import Proof, Prover
from funnel.optimise.master import master
from funnel.optimise.solve import Solution
from funnel.optimise.workers import Workers
from funnel.optimise.worst_case import Sets

GAP = 0.008
"""Share of the value by which the optimum may be higher."""
_LARGE = 0.3
"""Share of the mass from which a group may be special from the start."""
_RHOS = 6
"""Values of ρ that such a group starts with."""
_SEARCH, _FINISH = 0.4, 0.95
"""Shares of the time that parts may take, and everything but the last linear program."""
_LAST = 30.0
"""Seconds at least for the last linear program."""
_MISSED = 1e-6
"""Worth (nats) of parts that are not looked for any more."""
_ROUNDING = 1e-9
"""Nats by which a bound from lists is raised against rounding errors."""
_ROUNDS = 40
"""Times that what a proof finds is added and the proof begun anew."""


def serves(sets: Sets) -> bool:
    """Whether the groups are two or more, and share no coordinate."""
    members = np.concatenate(sets.members)
    return len(sets.members) > 1 and len(members) == sets.dimension == len(np.unique(members))


def maximise_groups(
    sets: Sets,
    ratio: float,
    prior: FloatArray,
    *,
    time_limit: float,
    gap: float = GAP,
    ceiling: float = math.inf,
) -> Solution:
    """The most informative protocol, b <= a, whose rows keep the groups close, and a bound on all of them.

    Groups share no coordinate (`serves`); the bound is certified by prices λ and a search of every group. It ends when
    the bound is within the share `gap` of the value, or with the time (seconds): then the bound may be `ceiling`.
    SolverError (time, failed) where not even a first protocol is found.
    """
    return _Search(Groups.of(sets, prior), ratio, prior, time_limit, gap, ceiling).run()


class _Search:
    """Parts, the protocol made of them, and the proof."""

    def __init__(
        self, groups: Groups, ratio: float, prior: FloatArray, time_limit: float, gap: float, ceiling: float
    ) -> None:
        self.groups, self.ratio, self.prior, self.gap, self.ceiling = groups, ratio, prior, gap, ceiling
        now = time.monotonic()
        self.search, self.deadline = now + _SEARCH * time_limit, now + _FINISH * time_limit
        modes = [Mode(-1, 1.0)]
        for s in np.flatnonzero(groups.prior.sum(axis=1) > _LARGE):
            modes += [Mode(int(s), float(rho)) for rho in np.exp(np.linspace(0, math.log(ratio), _RHOS))]
        self.parts = Parts(groups, ratio, modes)
        self.nodes, self.workers = 0, Workers()

    def run(self) -> Solution:
        """The search, on all cores."""
        with self.workers:
            return self.searched()

    def searched(self) -> Solution:
        """Find parts, make rows of them, prove that no others are much better; begin anew with what that finds."""
        best: Solution | None = None
        for _ in range(_ROUNDS):
            answer = self.parts.run(self.search if best is None else self.deadline, _MISSED)
            if not answer.optimal or len(answer.point) == 0:
                break
            found = self.protocol(answer.point)
            if best is None or found.value > best.value:
                best = (
                    self.listed(found)
                    if best is None
                    else replace(found, bound=best.bound, certificate=best.certificate)
                )
                if best.bound - best.value <= self.gap * best.value:
                    break
            prices = self.parts.prices(answer)
            proof = self.proved(prices.rows, float(prices.mass[0]), prices.length[0], best.value)
            duals = answer.multipliers[: self.groups.dimension]
            certificate = GroupCertificate(
                duals, proof.peak, self.gap * best.value, proof.nodes, pieces=tuple(proof.pieces)
            )
            if certificate.bound < best.bound:
                best = replace(best, bound=certificate.bound, certificate=certificate)
            if best.bound - best.value <= self.gap * best.value or not self.learnt(proof):
                break
        if best is None:
            raise SolverError(
                "solver-time",
                "no parts of rows were found in time",
                status="time",
                advice="Raise mechanism.time_limit, or shrink the public alphabet with `bins` or `top`.",
            )
        return replace(best, bound=max(best.bound, best.value), nodes=self.nodes, rays=len(self.parts.parts))

    def listed(self, found: Solution) -> Solution:
        """A bound by listing all vertices beside those of a large group, where there is one; better rows, too."""
        large = large_group(self.groups)
        if large is None:
            return found
        vertices = Listed(self.groups, self.ratio, large)
        enough = (1 + self.gap) * found.value
        best = descend(vertices.price, self.prior, found.protocol, enough=enough, deadline=self.search)
        certificate = GroupCertificate(
            best.duals,
            best.peak + _ROUNDING,
            self.gap * found.value,
            vertices.size,
            listing=vertices.listing,
        )
        self.nodes += vertices.size
        if not math.isfinite(best.peak):
            return found
        if best.bound > enough:
            better = self.mixed(best.rows)
            found = better if better.value > found.value else found
        return replace(found, bound=certificate.bound, certificate=certificate)

    def proved(self, rows: FloatArray, kappa: float, reached: FloatArray, value: float) -> Proof:
        """A proof at these prices, with all of the gap as its aim; at the first thing it finds, that instead."""
        prover = Prover(
            self.groups,
            self.ratio,
            rows,
            kappa,
            aim=self.gap * value,
            known=set(self.parts.modes),
            pool=self.parts.labels(),
            deadline=self.deadline,
            workers=self.workers,
        )
        proof = prover.proof
        proof.modes = prover.scan()
        if not proof.modes:
            prover.plain(reached)
        if not proof.modes and not proof.parts and proof.peak < math.inf:
            prover.between()
        if proof.modes or proof.parts:
            proof.peak = math.inf
        self.nodes += proof.nodes
        return proof

    def learnt(self, proof: Proof) -> bool:
        """Let what a proof found take part; whether there is anything."""
        new = False
        for group, labels in proof.parts:
            limits = Limits(np.array([group]), np.ones(1), np.array([self.ratio]))
            part, _ = of_labels(self.groups, limits, np.zeros((1, len(labels))), labels[None])
            new |= self.parts.add(0, group, part[0], labels)
        fresh = [mode for mode in proof.modes if mode not in self.parts.modes]
        if fresh:
            self.parts = self.parts.extended(fresh)
        return new or bool(fresh)

    def protocol(self, used: FloatArray) -> Solution:
        """Whole rows of the parts in use, and the best protocol of them."""
        rows = [np.ones((1, self.groups.dimension))]
        for mode in range(len(self.parts.modes)):
            mine = [j for j in np.flatnonzero(used > 0) if self.parts.parts[j].mode == mode]
            by_group = [[j for j in mine if self.parts.parts[j].group == s] for s in range(self.groups.count)]
            if all(by_group):
                laid = [(np.array([self.parts.parts[j].z for j in each]), used[each]) for each in by_group]
                rows.append(coupled(self.groups, laid))
        return self.mixed(np.vstack(rows))

    def mixed(self, rays: FloatArray) -> Solution:
        """The best protocol of some rows (k, a)."""
        from scipy.sparse import csr_array

        rays = rays / (rays @ self.prior)[:, None]
        best = master(csr_array(rays), self.prior, budget=_LAST)
        chosen = np.flatnonzero(best.theta)
        protocol = rays[chosen] * best.theta[chosen, None]
        return Solution(
            protocol / protocol.sum(axis=0), best.value, self.ceiling, "columns", len(rays), self.nodes
        )
