"""`python -m funnel.audit.kernel RELEASE [--private PRIVATE]`: a line for every claim, and a verdict.

Exit code 0: every claim that was looked at holds; 1: one fails; 2: wrong usage.
"""

from __future__ import annotations

import sys
from pathlib import Path

from funnel.audit.kernel.check import findings, unbounded, verdict
from funnel.audit.kernel.opened import Opened
from funnel.format.place import release_in


def main(arguments: list[str]) -> int:
    """The exit code."""
    folders = [*map(Path, arguments[::2] if arguments[1:-1] == ["--private"] else arguments)]
    missing = [str(folder) for folder in folders if not folder.is_dir()]
    if missing or len(folders) not in (1, 2):
        told = [f"{one}: there is no such folder\n" for one in missing if not one.startswith("-")]
        usage = f"usage: {Path(sys.argv[0]).name} RELEASE [--private PRIVATE], two folders"
        print(*told, usage, sep="", file=sys.stderr)
        return 2
    opened = Opened(release_in(folders[0]), *folders[1:])
    found = [*findings(opened)]
    print("\n".join([*(one.text() for one in found), verdict(found, unbounded(opened))]))
    return int(any(one.status == "failed" for one in found))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
