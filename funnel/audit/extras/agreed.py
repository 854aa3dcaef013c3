"""What the manifest promises against what the policy's terms ask for: the kernel holds a release to the manifest."""

from __future__ import annotations

from itertools import chain

from funnel.audit.extras.base import Release
from funnel.audit.kernel.verdict import Broken, agree, counted
from funnel.format.manifest import NAME, Parameters
from funnel.format.terms import TermsFile
from funnel.text import number

CLAIM = "policy-terms"
TITLE = "release.json states what terms.json asks for, but for what that leaves open: shares of ε, the way to solve"
PRIVATE = True
_ALIKE = ("policy_sha256", "name", "description", "sensitive", "notion", "epsilon", "format_of_data", "rows_of_data",
          "partition")
_ESTIMATE = ("minimum", "kind", "beliefs")
_NEAR = 1e-9


def check(opened: Release) -> str:
    """Terms and manifest agree, but for what the terms leave open. Raises Broken."""
    one, policy = opened.manifest, opened.terms
    blocks = tuple(tuple(column.name for column in block) for block in policy.public)
    # A robust notion is about whole records, SRLIP may be solved over them, and where the secret is released too, a
    # record is one value (s, u): then all public columns are one alphabet.
    told = set(one.sensitive) <= set(chain.from_iterable(blocks))
    merged = one.notion == "rldp" or one.parameters.solve == "joint" or told
    mechanism, noise = policy.mechanism.get("kind"), opened.counts.private
    chosen = one.candidates is not None or (mechanism == "auto" and one.locked is not None)
    free = _open(policy.parameters)
    # `auto` tries every mechanism as it is by default.
    totals = {"invariant": "kept"}.get(one.mechanism) if chosen else policy.mechanism.get("totals")
    agree(NAME, [
        *((key, getattr(policy, key), getattr(one, key)) for key in _ALIKE),
        *((key, value, vars(one.parameters)[key]) for key, value in vars(policy.parameters).items() if key not in free),
        ("whether a way was chosen", policy.parameters.solve is not None, one.parameters.solve not in (None, "auto")),
        ("public", (tuple(chain.from_iterable(blocks)),) if merged else blocks, one.public),
        ("identify", policy.identify, tuple(key.name for key in one.identify)),
        ("draws", policy.draws, one.draws.kind),
        *((f"estimate.{key}", getattr(policy.estimate, key), getattr(one.estimate, key)) for key in _ESTIMATE),
        ("epsilon of the estimate", policy.estimate.epsilon, noise and noise.epsilon),
        ("mechanism", mechanism, "auto" if chosen else one.mechanism),
        ("whether mechanisms were compared under a lock", False, bool(one.locked and one.candidates is not None)),
        ("totals", totals, one.totals),
        ("coarsened", _coarsened(policy), [tuple(vars(column).values()) for column in one.coarsened]),
    ])  # fmt: skip
    split = one.split if policy.split == "optimal" or (merged and len(blocks) > 1) else policy.split
    if len(split) != len(one.split) or any(abs(float(a) - b) > _NEAR for a, b in zip(split, one.split, strict=True)):
        raise Broken(NAME, "the policy asks for another split", split, one.split)
    promised = f"{policy.notion} at {number(policy.epsilon)}"
    searched = ["how ε is split"] if policy.split == "optimal" and len(split) > 1 else []
    searched += ["by which way it was solved"] if "solve" in free and one.parameters.solve else []
    but = f"; {' and '.join(searched)}, which the policy leaves open, is the publisher’s word" if searched else ""
    return f"{promised}, {counted(len(blocks), 'block')} of columns: as the policy says{but}"


def _coarsened(policy: TermsFile) -> list[tuple[object, ...]]:
    """The columns that the policy has coarser, those inside wide blocks last, where rare numbers are joined unasked."""
    wide = {one.name for one in policy.wide}
    columns = [(one, False) for block in policy.public for one in block if one.name not in wide]
    columns += [(one, one.rare is None and one.round is not None) for block in policy.wide for one in block.columns]
    told = []
    for one, unasked in columns:
        parts = one.round in ("month", "quarter")
        near, pooled = one.rare == "bin", one.rare == "other" and one.round is not None
        told.append((one.name, one.round, one.clip, near or (unasked and not parts), pooled or (unasked and parts)))
    return [one for one in told if one[1] is not None or one[3]]


def _open(asked: Parameters) -> set[str]:
    """What a policy leaves open: the way to solve, unless it names one, and a radius that follows from a confidence."""
    solve = {"solve"} if asked.solve in (None, "auto") else set()
    return solve | ({"radius"} if asked.radius is None and asked.confidence is not None else set())
