"""`python -m funnel.audit.kernel RELEASE [--private PRIVATE]`: a line for every claim, and a verdict.

Exit code 0: every claim that was looked at holds; 1: one fails; 2: wrong usage.
"""

from __future__ import annotations

import sys
from pathlib import Path

from funnel.audit.kernel.check import findings, unbounded, verdict
from funnel.audit.kernel.opened import Opened


def main(arguments: list[str]) -> int:
    """The exit code."""
    folders = [Path(one) for one in arguments if one != "--private"]
    missing = next((folder for folder in folders if not folder.is_dir()), None)
    if len(folders) not in (1, 2) or missing is not None:
        if missing is not None and not str(missing).startswith("-"):
            print(f"{missing}: there is no such folder", file=sys.stderr)
        print(f"usage: {Path(sys.argv[0]).name} RELEASE [--private PRIVATE], two folders", file=sys.stderr)
        return 2
    opened = Opened(*folders)
    found = [*findings(opened)]
    print("\n".join([*(one.text() for one in found), verdict(found, unbounded(opened))]))
    return int(any(one.status == "failed" for one in found))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
