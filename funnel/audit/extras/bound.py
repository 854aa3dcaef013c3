"""The bound of usefulness: that no protocol of the notion tells more about X than is stated, proven anew.

For duals λ, η = λ/p, a row v with w = p∘v and Σ w = 1 is worth D(w || p), so where D(w || p) - η·w is at most a peak
for all rows of the cone, every protocol has I(X;Y) <= Σ λ + peak (mathematics, column generation). The peak is what is
checked here: over all vertices where they are few, else box by box. Any λ and any multipliers prove something, so only
the cone has to be trusted, and that is built from the counts. About the secret: I(X;Y) <= H(X|S) + I(S;Y), and a
channel on S has I(S;Y) <= Σ λ + peak where it keeps LDP at the estimate. It is no privacy claim.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from funnel.audit.extras.base import Release, entropy
from funnel.audit.extras.boxes import MARGIN, FloatArray, Replay, Tree, children_of, read_proof, xlogx
from funnel.audit.extras.conditions import Condition, about_secret, conditions
from funnel.audit.extras.cones import Rows, robust_rows, rows_of
from funnel.audit.kernel.verdict import NEEDS_PRIVATE, NOT_CLAIMED, Broken, Unchecked
from funnel.format.manifest import Manifest
from funnel.format.solution import NAME, PROOF, Certificate, Proof, SolutionFile

CLAIM = "utility-bound"
TITLE = "no protocol that keeps the bound and reads X alone tells more about X than is stated"
PRIVATE = False
MOST_WORK = 1_000_000_000
"""Boxes times values beyond which nobody waits."""
MOST_LISTED, MOST_PAIRED = 20, 20_000
"""Values up to which all rows of two different entries, and all pairs of values, are looked at."""
_AT_ONCE = 1 << 20
_FLOAT, _EDGE = 1e-9, 1e-12
_LARGEST = 1e6
"""Prices of a unit of w beyond which floats have nothing to say."""


def check(opened: Release) -> str | Unchecked:
    """The stated bound follows from the certificate in the evidence, with no solver's word. Raises Broken."""
    stated, reached = opened.manifest.utility.upper_bound, opened.manifest.utility.normalised
    step, several = float(opened.manifest.step), len(opened.protocol.blocks) > 1
    if stated is not None and reached is not None and stated < reached - step:
        raise Broken("release.json", "utility.upper_bound is below what the release reached", reached, stated)
    if opened.private is None:
        return Unchecked(NEEDS_PRIVATE if stated is not None else f"{NOT_CLAIMED}no upper bound is stated")
    certificate = opened.solution.certificate
    if certificate is not None and several:
        raise Broken(NAME, "a certificate is told of", "one block", len(opened.protocol.blocks))
    if stated is not None and opened.manifest.locked is not None:
        raise Broken("release.json", "a bound is stated of a protocol that a lock fixed", "none", stated)
    if stated is None and certificate is None:
        return Unchecked(NOT_CLAIMED + "no upper bound is stated")
    if several:
        return Unchecked("a bound of several blocks together is not known how to check")
    table, solution = opened.table.astype(float), opened.solution
    whole = entropy(table.sum(axis=0))
    bound = _as_stated(solution, whole, stated, step)
    all_there_is = f"H(X) = {whole:.6f} nats, which bounds everything" if bound >= whole - _FLOAT else None
    if certificate is None:
        return all_there_is or Unchecked("the evidence holds no certificate of it, only the solver's word")
    beside = 0.0 if certificate.about == "public" else entropy(table.ravel()) - entropy(table.sum(axis=1))
    proven = sum(certificate.duals) + certificate.peak + beside
    if proven > bound + _FLOAT and all_there_is is None:
        raise Broken(NAME, "the certificate is one of another bound", f"{bound:.9g} nats", f"{proven:.9g} nats")
    if (table.sum(axis=0) == 0).any():
        return Unchecked("a public value does not occur, so no row can be priced")
    how = _Case(opened, table, certificate).proven()
    if isinstance(how, Unchecked) or all_there_is:
        return all_there_is or how
    nats, share = (math.ceil(one * 1e6) / 1e6 for one in (bound, bound / whole))
    return f"I(X;Y) <= {nats:.6f} nats, {share:.6f} of H(X): {how}"


def _as_stated(solution: SolutionFile, whole: float, stated: float | None, step: float) -> float:
    """The bound in nats, once the manifest's figure is its share of H(X), rounded up; or not told. Raises Broken."""
    bound = solution.upper_bounds[0] if len(solution.upper_bounds) == 1 else None
    share = None if bound is None else min(bound / whole, 1.0) if whole else 1.0
    if bound is None or share is None or not (stated is None or share - _FLOAT <= stated <= share + step + _FLOAT):
        what = "utility.upper_bound is not the bound that the solver certified"
        raise Broken("release.json", what, "none" if share is None else f"{share:.6f} rounded up", stated)
    return bound


@dataclass(frozen=True, eq=False)
class _Case:
    """One certificate about one table N[s, x] (c, a)."""

    opened: Release
    table: FloatArray
    certificate: Certificate

    @property
    def manifest(self) -> Manifest:
        return self.opened.manifest

    @property
    def public(self) -> bool:
        return self.certificate.about == "public"

    @property
    def prior(self) -> FloatArray:
        """P(x), or P(s) of the secret values that occur."""
        mass = self.table.sum(axis=0 if self.public else 1)
        return np.asarray(mass[mass > 0] / mass.sum())

    def proven(self) -> str | Unchecked:
        """How the peak was proven, or why it was not. Raises Broken where it is wrong."""
        duals, prior = np.array(self.certificate.duals), self.prior
        if duals.shape != prior.shape:
            raise Broken(NAME, "the certificate has another number of duals", len(prior), len(duals))
        linear = np.log(prior) + duals / prior
        if not np.abs(linear).max() <= _LARGEST:
            raise Broken(NAME, "the certificate's duals are no prices", "prices of rows", np.abs(linear).max())
        if self.certificate.proof is not None:
            return self._by_boxes(self.certificate.proof, linear)
        found = self._by_vertices(prior, linear)
        if found is None:
            return Unchecked("the evidence holds no proof of the peak, and its vertices are too many to look at")
        highest, told = found
        if highest > self.certificate.peak + MARGIN:
            what = "some row of the cone is worth more than the certificate allows"
            raise Broken(NAME, what, f"at most {self.certificate.peak:.9g} nats", f"{highest:.9g} nats")
        return told

    def _rows(self, given: FloatArray) -> Rows | None:
        """The inequalities of the cone that the certificate is about; None where they are not to be had here."""
        hidden, (block, *_) = self.opened.secret, self.opened.alphabets
        if self.public and self.manifest.notion == "rldp":
            return robust_rows(self.manifest, hidden, block, self.table, given)
        asked = self._asked() if self.public else about_secret(self.manifest, len(self.prior))
        return None if asked is None else rows_of(asked, self.prior)

    def _asked(self) -> list[Condition] | None:
        """What the notion asks of a row; None where that cannot be written out."""
        known = None if self.manifest.parameters.knows is None else self.opened.knowledge
        return conditions(self.manifest, self.opened.alphabets[0], self.opened.table, known)

    def _by_boxes(self, told: Proof, linear: FloatArray) -> str | Unchecked:
        """Through the tree of a branch and bound, with inequalities that follow from the counts."""
        if told.boxes * len(linear) > MOST_WORK:
            return Unchecked(f"its proof of {told.boxes:,} boxes is too large to be gone through again")
        given, tree = read_proof(self.opened.read(PROOF), told, len(linear))
        own = self._rows(given)
        if own is None:
            return Unchecked(f"the cone of {self.manifest.notion} has no inequalities that can be written out here")
        children = children_of(tree, len(linear), free=own.equal)
        boxes = Replay(self._own(given, tree, own), children, own.rows, linear, self.certificate.peak).run()
        return f"{boxes} boxes gone through again"

    @np.errstate(all="ignore")
    def _own(self, given: FloatArray, tree: Tree, own: Rows) -> Tree:
        """The tree with the inequalities that follow from the counts in place of those given. Raises Broken."""
        found, scale = own.match(given)
        used = np.unique(tree.index[tree.value != 0])
        if (found[used] < 0).any():
            what = f"{int((found[used] < 0).sum())} inequalities are none that {self.manifest.notion} asks for"
            raise Broken(PROOF, what, "inequalities that follow from the counts", "others")
        value = np.where(tree.value != 0, tree.value * scale[tree.index], 0.0)
        index = np.maximum(found, 0)[tree.index]
        return Tree(tree.parent, tree.which, tree.at, tree.upper, tree.starts, index, value, tree.level)

    def _by_vertices(self, prior: FloatArray, linear: FloatArray) -> tuple[float, str] | None:
        """The largest price over all vertices of the slice, and their number; None where they are unknown or many."""
        notion = self.manifest.notion
        if not self.public or notion == "ldp-x":
            if len(prior) > MOST_LISTED or notion not in ("ldp", "rldp", "ldp-x"):
                return None
            best = highest_of_odds(prior, math.exp(self.manifest.epsilon), linear)
            return best, f"{1 << len(prior)} rows of two different entries priced"
        counts = self.table[self.table.any(axis=1)]
        limits = self._limits(counts)
        if limits is None or counts.shape[1] > MOST_PAIRED:
            return None
        best, number = highest_of_two(counts[0] / counts.sum(axis=0), *limits, linear)
        return best, f"{number} values and pairs of values priced"

    def _limits(self, counts: FloatArray) -> tuple[float, float] | None:
        """What P(s|y) of the first of two secret values may be; None where the notion asks for more than that."""
        asked = self._asked() if len(counts) == 2 else None
        if asked is None:
            return None
        told, own = counts[0] / counts.sum(axis=0), rows_of(asked, self.prior)
        rows = own.rows if own.equal else own.rows[own.rows.max(axis=1) > 0]
        return between(told, np.concatenate([rows, -rows]) if own.equal else rows)


def between(told: FloatArray, rows: FloatArray) -> tuple[float, float] | None:
    """Where told·w may lie, `told` (a,), Σ w = 1, if rows (m, a)·w <= 0 are about nothing else; None if they are."""
    first, last = int(told.argmin()), int(told.argmax())
    width = max(float(told[last] - told[first]), _EDGE)
    slopes = (rows[:, last] - rows[:, first]) / width
    levels = rows[:, first] - slopes * told[first]
    if np.abs(levels[:, None] + slopes[:, None] * told - rows).max(initial=0.0) > _FLOAT:
        return None
    up, down = slopes > _EDGE, slopes < -_EDGE
    return (
        float((-levels[down] / slopes[down]).max(initial=0.0)),
        float((-levels[up] / slopes[up]).min(initial=1.0)),
    )


def highest_of_two(told: FloatArray, low: float, high: float, linear: FloatArray) -> tuple[float, int]:
    """The largest price Σ w ln w - linear·w where low <= told·w <= high, `told` (a,) being P(s|x); and of how many.

    The price is convex, so it is largest at a vertex: the values x inside, and on either end the pairs of a value below
    and one above.
    """
    inside = (told >= low - _EDGE) & (told <= high + _EDGE)
    best, count = float((-linear[inside]).max(initial=-np.inf)), int(inside.sum())
    for end in {low, high}:
        below, above = np.flatnonzero(told < end), np.flatnonzero(told > end)
        step = max(1, _AT_ONCE // max(len(above), 1))
        for start in range(0, len(below) if len(above) else 0, step):
            part = below[start : start + step, None]
            share = (told[above] - end) / (told[above] - told[part])
            price = xlogx(share) + xlogx(1 - share) - share * linear[part] - (1 - share) * linear[above]
            best, count = max(best, float(price.max())), count + price.size
    return best, count


def highest_of_odds(prior: FloatArray, ratio: float, linear: FloatArray) -> float:
    """The largest price where no two entries of a row v = w/prior differ by more than a factor `ratio`.

    Vertices have entries in {1, ratio} only (Kairouz, Oh and Viswanath, Extremal Mechanisms for Local Differential
    Privacy, Theorem 2), so there are 2^a.
    """
    size, best = len(prior), -math.inf
    step = max(1, _AT_ONCE // size)
    for start in range(0, 1 << size, step):
        chosen = np.arange(start, min(start + step, 1 << size))[:, None] >> np.arange(size) & 1
        mass = np.where(chosen == 1, ratio, 1.0) * prior
        mass /= mass.sum(axis=1, keepdims=True)
        best = max(best, float((xlogx(mass) - mass * linear).sum(axis=1).max()))
    return best
