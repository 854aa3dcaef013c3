"""The kernel as one file that an auditor keeps, `python FILE.pyz RELEASE [--private PRIVATE]`, with numpy alone.

With cryptography it verifies signatures, too: `python FILE.pyz verify RELEASE --key KEY`.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

_ROOMS = ("format", "audit/kernel", "audit/verify")
_MAIN = """import sys

try:
    import numpy
except ImportError:
    raise SystemExit("this needs numpy, and nothing else: python -m pip install numpy") from None
if sys.argv[1:2] == ["verify"]:
    from funnel.audit.verify.__main__ import main

    raise SystemExit(main(sys.argv[2:]))
from funnel.audit.kernel.__main__ import main

code = main(sys.argv[1:])
if code == 2:
    print("or: verify RELEASE --key publisher.pub, where cryptography is installed", file=sys.stderr)
raise SystemExit(code)
"""
_MADE = (1980, 1, 1, 0, 0, 0)
"""The same for every file, so that the same kernel makes the same bytes."""


def write_standalone(path: Path) -> Path:
    """Write a zip file of `funnel.format`, the kernel and `audit.verify` that Python runs; returns where it lies.

    Its bytes follow from theirs alone, so that two auditors can compare what they hold. Raises OSError.
    """
    root = Path(__file__).parents[1]
    files = {f"funnel/{one.relative_to(root).as_posix()}": one.read_text() for one in _sources(root)}
    bare = {"__main__.py": _MAIN, "funnel/__init__.py": "", "funnel/audit/__init__.py": ""}
    with path.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, text in sorted((files | bare).items()):
                archive.writestr(zipfile.ZipInfo(name, _MADE), text)
    return path


def _sources(root: Path) -> list[Path]:
    """The modules of these rooms."""
    return [one for room in _ROOMS for one in (root / room).glob("*.py")]
