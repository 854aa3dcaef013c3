"""The files of one release, each read once and strictly, and what follows from them for several claims.

What stands here is worked out when a claim first asks, and raises Broken where that fails: nothing is shown about
files that do not hold together.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TypeVar

from funnel.audit.kernel import sound
from funnel.audit.kernel.channel import Block, Channel, Coins
from funnel.audit.kernel.exact import FloatArray, IntArray
from funnel.audit.kernel.files import content
from funnel.audit.kernel.information import secret_and_public
from funnel.audit.kernel.verdict import NEEDS_PRIVATE, Broken
from funnel.format import (
    counts,
    draws,
    evidence,
    journal,
    manifest,
    protocol,
    released,
    robust,
    solution,
    terms,
)

T = TypeVar("T")


def _published(record: type[T], name: str) -> cached_property[T]:
    return cached_property(lambda opened: sound.parsed(record, name, content(opened.release / name)))


def _private(record: type[T], name: str) -> cached_property[T]:
    return cached_property(lambda opened: sound.parsed(record, name, content(opened.folder / name)))


class Opened:
    """A release in a folder, or where its `latest` points; `private` is the private folder, or the release's in it.

    `staged`: the release is being written, and the ledger does not hold it yet.
    """

    manifest = _published(manifest.Manifest, manifest.NAME)
    protocol = _published(protocol.ProtocolFile, protocol.NAME)
    released = _published(released.ReleasedFile, released.NAME)
    evidence = _private(evidence.EvidenceFile, evidence.NAME)
    counts = _private(counts.CountsFile, counts.NAME)
    draws = _private(draws.DrawsFile, draws.NAME)
    terms = _private(terms.TermsFile, terms.NAME)
    solution = _private(solution.SolutionFile, solution.NAME)
    robust = _private(robust.RobustFile, robust.NAME)

    def __init__(self, release: Path, private: Path | None = None, *, staged: bool = False) -> None:
        inside = not (release / manifest.NAME).exists() and (release / "latest").exists()
        self.release = (release / "latest").resolve() if inside else release
        self.private, self.staged = private, staged

    @property
    def folder(self) -> Path:
        """The release's own folder of private files. Raises Broken where there is none to look at."""
        if self.private is None:
            raise Broken(evidence.NAME, NEEDS_PRIVATE, "--private DIR", None)
        inside = self.private / self.manifest.release
        return inside if inside.is_dir() else self.private

    @cached_property
    def blocks(self) -> tuple[Block | Coins, ...]:
        """The protocols, sound and as the manifest states them."""
        return sound.blocks(self.protocol, self.manifest)

    @cached_property
    def answers(self) -> IntArray:
        """Released rows [y_1, …, y_k, count] (m, k+1), which the protocols can produce."""
        return sound.answers(self.released, self.blocks, self.manifest)

    @cached_property
    def joint(self) -> sound.Joint:
        """The counts that all claims are about: of the records, or noisy ones of a private estimate."""
        return sound.joint(self.counts, self.blocks, self.manifest)

    @cached_property
    def records(self) -> sound.Joint:
        """The counts of the records that were drawn for."""
        return sound.records(self.counts, self.joint, self.manifest)

    @cached_property
    def drawn(self) -> tuple[IntArray, ...]:
        """For every block rows [input, output, count] (m, 3), codes within what the protocols have."""
        return sound.drawn(self.draws, self.blocks)

    @cached_property
    def channel(self) -> Channel:
        """The channel released, at the counts that claims are about."""
        robust = self.robust if self.manifest.notion == "rldp" else None
        return Channel(self.joint.dense(), self.blocks, self.manifest.parameters, robust, self.joint.possible())

    @cached_property
    def averaged(self) -> tuple[FloatArray, FloatArray] | None:
        """P(s, y) and P(x, y) of the channel, which averages are taken of; None where they are too large."""
        return secret_and_public(self.channel)

    @cached_property
    def journal(self) -> tuple[journal.Line, ...]:
        """ledger.jsonl, an unbroken chain that reaches as far as its head says."""
        folder = self.folder.parent
        return sound.chain(content(folder / journal.NAME), folder / journal.HEAD)
