"""The audit of a release whose data were taken away on purpose: what stays of it is as it was entered.

Evidence, ledger and archive stay, and with them everything that its entry was worked out from: later releases go by its
figures, so these are worked out again as those of any other. What needs its table is not looked at, and says so.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import wraps
from pathlib import Path

from funnel.audit.extras.base import Release
from funnel.audit.extras.earlier import Missing, as_entered
from funnel.audit.extras.parts import archived, copy_of
from funnel.audit.kernel import claims
from funnel.audit.kernel.check import PRIVATE, PUBLISHED, Claims, findings
from funnel.audit.kernel.opened import Once, Opened, content, holds_only, parsed
from funnel.audit.kernel.verdict import Broken, Finding, Unchecked, agree
from funnel.format import attestation, cells, manifest
from funnel.format.cells import CellsFile
from funnel.format.fields import RELEASE_ID
from funnel.format.protocol import NAME as PROTOCOL
from funnel.format.protocol import ProtocolFile
from funnel.format.pruned import FOLDER, STAYS, PrunedFile, is_whole

GONE = "its table and pages were taken away"
_OF_THE_TABLE = ("file-hashes", "released", "draw-outputs", "draw-independence")
"""Claims of the kernel that nothing shows without the files."""
_REPLACED = ("file-list",)
"""Those in whose place stands what is left."""


class Left(Release):
    """A release without its published files: of its protocol and its cells stand the private folder's copies."""

    has_table = False

    @Once
    def protocol(self) -> ProtocolFile:
        """As the ledger names it. Raises Broken."""
        if (found := archived(self, self.entries[-1])) is None:
            what = "no copy is left of what a pruned release was drawn by"
            raise Broken(PROTOCOL, what, self.entries[-1].protocol_sha256, None)
        return found

    @Once
    def cells(self) -> CellsFile:
        """As release.json names them. Raises Broken."""
        sha256 = self.manifest.files[cells.NAME].sha256
        try:
            return parsed(CellsFile, cells.NAME, as_entered(self.entries[-1], sha256, copy_of(self, sha256)))
        except Missing:
            raise Broken(cells.NAME, "no copy is left of the cells of a pruned release", sha256, None) from None

    @property
    def lacks(self) -> str | None:
        """What is not there any more without which nothing can be measured again; None where all is, or is damaged."""
        try:
            if archived(self, self.entries[-1]) is None:
                return "no copy of its protocol is left"
            listed = self.manifest.files.get(cells.NAME) if self.terms.wide else None
            gone = listed is not None and not copy_of(self, listed.sha256).is_file()
            return "it was made of cells, of which the private folder keeps no copy" if gone else None
        except Broken:
            return None


def marker(private: Path, release: str) -> Path | None:
    """Where the private folder, or the release's own in it, says that a release was pruned; None where it does not."""
    root = private.parent if private.name == release else private
    path = root / FOLDER / release
    return path if path.exists() else None


def pruned_folder(given: Path, private: Path) -> Path | None:
    """The release's own folder where its marker says that it was pruned, wholly or not; None where none does.

    It has the name by which it is asked for, or the one of the folder that this leads to. A copy of which all is there
    is looked at as any release.
    """
    folder = Path(os.path.realpath(given))  # a link may lead to itself
    names = {name for name in ((Path.cwd() / given).name, folder.name) if re.fullmatch(RELEASE_ID, name)}
    marks = [mark for name in names if (mark := marker(private, name))]
    return folder if marks and not any(is_whole(folder, mark) for mark in marks) else None


def pruned(release: Left, private: Path) -> tuple[Finding, ...]:
    """What is found of a release that its marker says was pruned: what stays, by the marker, ledger and evidence."""
    folder = release.release

    def left(opened: Opened) -> str:
        """Data and pages were taken away on purpose, and release.json stayed as it was."""
        one = opened.manifest
        if (path := marker(private, one.release)) is None:
            raise Broken(FOLDER, "nothing says that this release was pruned", one.release, None)
        told = parsed(PrunedFile, path.name, content(path))
        own = opened.entry(opened.release / manifest.NAME).sha256
        agree(path.name, [("release", one.release, told.release), ("hash of the manifest", own, told.manifest_sha256)])
        try:
            holds_only(folder, {manifest.NAME, *((attestation.NAME,) if one.signed else ())})
        except Broken:
            what = "pruning it was cut off; run `funnel prune` again"
            raise Broken(folder.name, what, sorted(STAYS), sorted(path.name for path in folder.iterdir())) from None
        return f"pruned {told.written}, as its mark says"

    looked_at: Claims = {
        "pruned": left,
        "manifest": claims.manifest,
        "evidence": claims.evidence,
        "ledger-chain": claims.ledger_chain,
        "ledger-entry": claims.ledger_entry,
    }
    others = {name: test for name, test in (PUBLISHED | PRIVATE).items() if name not in (*looked_at, *_REPLACED)}
    why = release.lacks
    for name in others if why else _OF_THE_TABLE:
        others[name] = _left_out(others[name], why or GONE)
    return tuple(findings(release, looked_at | others))


def _left_out(test: Callable[[Opened], str | Unchecked], why: str) -> Callable[[Opened], str | Unchecked]:
    """A claim that is named, with the reason why nobody looked."""

    @wraps(test)
    def told(opened: Opened) -> Unchecked:
        return Unchecked(why)

    return told
