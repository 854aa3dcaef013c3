"""The bound of usefulness: that no protocol of the notion tells more about X than is stated, proven anew.

For duals λ, η = λ/p, a row v with w = p∘v and Σ w = 1 is worth D(w || p), so where D(w || p) - η·w is at most a peak
for all rows of the cone, every protocol has I(X;Y) <= Σ λ + peak. The peak is what is checked here: over all vertices
where they are few, else box by box. Any λ and any multipliers prove something, so only the cone has to be trusted, and
that is built from the counts. About the secret: I(X;Y) <= H(X|S) + I(S;Y), and a channel on S has I(S;Y) <= Σ λ + peak
where it keeps LDP at the estimate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from funnel.audit import cones, vertices
from funnel.audit.boxes import MARGIN, FloatArray, Replay, Tree, check_tree
from funnel.audit.cuts import robust_rows
from funnel.audit.evidence import Evidence
from funnel.audit.findings import NEEDS_PRIVATE, NOT_CLAIMED, Unchecked, broken, counted
from funnel.audit.information import entropy, public_information
from funnel.audit.leakage import Channel
from funnel.audit.manifest import STEP, Manifest
from funnel.audit.protocols import Block, Blocks
from funnel.audit.sets import over_sets
from funnel.audit.solution import PROOF, Certificate, Proof, Solution, read_solution

MOST_WORK = 1_000_000_000
"""Boxes times values beyond which nobody waits."""
_FLOAT = 1e-9
_LARGEST = 1e6
"""Prices of a unit of w beyond which floats have nothing to say."""


def plausible(manifest: Manifest) -> str | Unchecked:
    """A stated upper bound is at least what was reached; more takes the counts. Raises AuditFailure."""
    bound, reached = manifest.stated.upper_bound, manifest.stated.normalised
    if bound is None:
        return Unchecked(NOT_CLAIMED + "no upper bound is stated")
    if bound < reached - STEP:
        raise broken(
            "release.json",
            "utility.upper_bound is below what the release reached",
            expected=f"at least {float(reached)}",
            found=float(bound),
        )
    return Unchecked(NEEDS_PRIVATE)


def bounded(
    folder: Path, evidence: Evidence, blocks: Blocks, channel: Channel, manifest: Manifest
) -> str | Unchecked:
    """The stated bound follows from the certificate in the evidence, with no solver's word. Raises AuditFailure."""
    told = plausible(manifest)
    if manifest.stated.upper_bound is None:
        return told
    if len(blocks) > 1:
        return Unchecked("a bound of several blocks together is not known how to check")
    counts = evidence.dense()
    sizes = {"public": counts.shape[1], "secret": int(counts.any(axis=1).sum())}
    solution, whole = read_solution(folder, sizes, 1), entropy(counts.sum(axis=0).astype(float))
    bound = _as_stated(solution, whole, manifest)
    _reached(bound, evidence, blocks, channel)
    if bound >= whole - _FLOAT:
        return f"H(X) = {whole:.6f} nats, which bounds everything"
    certificate = solution.certificate
    if certificate is None:
        return Unchecked("the evidence holds no certificate of it, only the solver's word")
    beside = 0.0 if certificate.about == "public" else _hidden(counts.astype(float))
    if certificate.bound + beside > bound + _FLOAT:
        raise broken(
            "solution.json",
            "the certificate is one of another bound",
            expected=f"at most {bound:.9g} nats",
            found=f"{certificate.bound + beside:.9g} nats",
        )
    if (counts.sum(axis=0) == 0).any():
        return Unchecked("a public value does not occur, so no row can be priced")
    how = _Case(certificate, evidence, manifest).proven()
    more = "" if solution.over_sets is None else "; " + over_sets(solution.over_sets, evidence, manifest)
    if isinstance(how, Unchecked):
        return Unchecked(how.reason + more)
    return f"I(X;Y) <= {bound:.6f} nats, {bound / whole:.6f} of H(X): {how}{more}"


def _as_stated(solution: Solution, whole: float, manifest: Manifest) -> float:
    """The bound in nats, once the manifest's figure is its share of H(X), rounded up. Raises AuditFailure."""
    (bound,), stated = solution.upper_bounds, float(manifest.stated.upper_bound or 0)
    share = None if bound is None else min(bound / whole, 1.0) if whole else 1.0
    if bound is None or share is None or not share - _FLOAT <= stated <= share + float(STEP) + _FLOAT:
        raise broken(
            "release.json",
            "utility.upper_bound is not the bound that the solver certified",
            expected="none" if share is None else f"{share:.6f} rounded up",
            found=stated,
        )
    return bound


def _reached(bound: float, evidence: Evidence, blocks: Blocks, channel: Channel) -> None:
    """The release itself keeps to the bound. Raises AuditFailure."""
    (block,) = blocks
    if not isinstance(block, Block) or block.secret is not None:
        return
    kept = public_information(evidence, blocks, channel.table)
    if kept is not None and kept > bound + _FLOAT:
        raise broken(
            "solution.json",
            "the release tells more about X than the bound allows",
            expected=f"at most {bound:.9g} nats",
            found=f"{kept:.9g} nats",
        )


def _hidden(counts: FloatArray) -> float:
    """H(X|S)."""
    return entropy(counts.ravel()) - entropy(counts.sum(axis=1))


@dataclass(frozen=True, eq=False)
class _Case:
    """One certificate about one table of counts."""

    certificate: Certificate
    evidence: Evidence
    manifest: Manifest

    def proven(self) -> str | Unchecked:
        """How the peak was proven, or why it was not. Raises AuditFailure where it is wrong."""
        certificate, prior = self.certificate, self._prior()
        linear = np.log(prior) + certificate.duals / prior
        if not np.abs(linear).max() <= _LARGEST:
            raise broken(
                "solution.json", "the certificate's duals are no prices", expected="prices of rows",
                found=f"up to {np.abs(linear).max():.3g}"
            )  # fmt: skip
        if certificate.proof is not None:
            return self._by_boxes(certificate.proof, linear)
        found = self._by_vertices(prior, linear)
        if found is None:
            return Unchecked(
                "the evidence holds no proof of the peak, and its vertices are too many to look at"
            )
        highest, told = found
        if highest > certificate.peak + MARGIN:
            raise broken(
                "solution.json",
                "some row of the cone is worth more than the certificate allows",
                expected=f"at most {certificate.peak:.9g} nats",
                found=f"{highest:.9g} nats",
            )
        return told

    def _prior(self) -> FloatArray:
        """P(x), or P(s) of the secret values that occur."""
        counts = self.evidence.dense().astype(float)
        mass = counts.sum(axis=0) if self.certificate.about == "public" else counts.sum(axis=1)
        return np.asarray(mass[mass > 0] / mass.sum())

    def _rows(self, prior: FloatArray, proof: Proof) -> cones.Rows | None:
        """The inequalities of the cone that the certificate is about; None where they are not to be had here."""
        if self.certificate.about == "public" and self.manifest.notion == "rldp":
            robust = robust_rows(self.evidence, self.manifest, proof.inequalities)
            return None if robust is None else cones.Rows(robust)
        if self.certificate.about == "public":
            return cones.rows_of(self.evidence, self.manifest)
        if self.manifest.notion in ("ldp", "rldp") and len(prior) ** 3 < cones.MOST_NUMBERS:
            return cones.odds(prior, math.exp(self.manifest.epsilon))
        return None

    def _by_boxes(self, proof: Proof, linear: FloatArray) -> str | Unchecked:
        """Through the tree of a branch and bound, with the auditor's own inequalities."""
        own = self._rows(self._prior(), proof)
        if own is None:
            return Unchecked(
                f"the cone of {self.manifest.notion} has no inequalities that can be written out here"
            )
        if len(proof.tree) * len(linear) > MOST_WORK:
            return Unchecked(f"its proof of {len(proof.tree):,} boxes is too large to be gone through again")
        children = check_tree(proof.tree, PROOF, len(linear), own.equal)
        tree = self._own(proof, own)
        boxes = Replay(tree, children, own.rows, linear, self.certificate.peak).run(PROOF)
        return f"{counted(boxes, 'box', 'boxes')} gone through again"

    @np.errstate(all="ignore")
    def _own(self, proof: Proof, own: cones.Rows) -> Tree:
        """The tree with the auditor's inequalities in place of those that carry a multiplier. Raises AuditFailure."""
        found, scale = own.match(proof.inequalities)
        used = np.unique(proof.tree.index[proof.tree.value != 0])
        if (found[used] < 0).any():
            lost = int(used[found[used] < 0][0])
            raise broken(
                PROOF,
                f"inequality {lost} is none that {self.manifest.notion} asks for",
                expected="inequalities that follow from the counts",
                found=f"{int((found[used] < 0).sum())} others",
            )
        tree, index = proof.tree, np.maximum(found, 0)
        value = np.where(tree.value != 0, tree.value * scale[tree.index], 0.0)
        return Tree(
            *(tree.parent, tree.which, tree.at, tree.upper, tree.starts),
            *(index[tree.index], value, tree.level),
        )

    def _by_vertices(self, prior: FloatArray, linear: FloatArray) -> tuple[float, str] | None:
        """The largest price over all vertices of the slice, and their number; None where they are unknown or many."""
        notion, ratio = self.manifest.notion, math.exp(self.manifest.epsilon)
        if self.certificate.about == "secret" or notion == "ldp-x":
            if len(prior) > vertices.MOST_LISTED or notion not in ("ldp", "rldp", "ldp-x"):
                return None
            best, number = vertices.highest_of_odds(prior, ratio, linear)
            return best, f"{counted(number, 'row')} of two different entries priced"
        ends = self._ends(ratio)
        if ends is None:
            return None
        told, low, high = ends
        best, number = vertices.highest_of_two(told, low, high, linear)
        return best, f"{counted(number, 'value or pair of values', 'values and pairs of values')} priced"

    def _ends(self, ratio: float) -> tuple[FloatArray, float, float] | None:
        """P(s|x) of one of two secret values (a,), and what P(s|y) may be; None for more than two."""
        counts = self.evidence.dense().astype(float)
        counts, columns = counts[counts.any(axis=1)], len(self.evidence.blocks[0].columns)
        if len(counts) != 2 or counts.shape[1] > vertices.MOST_PAIRED:
            return None
        one, two = (counts.sum(axis=1) / counts.sum()).tolist()
        told = counts[0] / counts.sum(axis=0)
        if self.manifest.notion == "perfect":
            return told, one, one
        if self.manifest.notion == "ldp":
            return told, one / (one + ratio * two), ratio * one / (ratio * one + two)
        if self.manifest.notion == "lip" or (self.manifest.notion == "srlip" and columns == 1):
            low, high = max(one / ratio, 1 - ratio * two), min(ratio * one, 1 - two / ratio)
            return told, low, high
        if self.manifest.notion in ("pml", "alip"):
            lower = self.manifest.parameters.lower
            least = 0.0 if lower is None else math.exp(-lower)
            low, high = max(one * least, 1 - ratio * two), min(ratio * one, 1 - two * least)
            return told, low, high
        return None
