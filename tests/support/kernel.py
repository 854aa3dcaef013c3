"""The kernel asked as its own command asks it."""

from __future__ import annotations

from pathlib import Path

from funnel.audit.kernel.check import findings
from funnel.audit.kernel.opened import Opened
from funnel.audit.kernel.verdict import Finding
from funnel.format.place import release_in


def check(release: Path, private: Path | None = None) -> list[Finding]:
    """One finding for each claim."""
    return [*findings(Opened(release_in(release), private))]
