"""`python FILE.pyz verify RELEASE --key KEY [--feed FILE]`: what `funnel verify` says, where funnel is not installed.

Exit code 0: every claim that was looked at holds; 1: one fails, or nothing can be verified; 2: wrong usage.
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

from funnel.audit.verify.envelope import NoKeyError, public_key
from funnel.audit.verify.verify import verify
from funnel.format.place import release_in
from funnel.format.pruned import STAYS


def main(arguments: list[str]) -> int:
    """The exit code. Raises SystemExit where there is nothing to verify, or nothing to do it with."""
    asked = _parser().parse_args(arguments)
    given: Path = asked.release
    folder = release_in(given)
    if not folder.is_dir():
        raise SystemExit(f"{given}: there is no such folder")
    if {path.name for path in folder.iterdir()} <= STAYS:
        raise SystemExit(f"{given}: no release, or only what stays of one whose data were taken away, or lost")
    if find_spec("cryptography") is None:
        raise SystemExit("this needs cryptography: python -m pip install cryptography")
    try:
        found = verify(folder, public_key(asked.key), given, asked.feed)
    except NoKeyError as error:
        raise SystemExit(f"{error.where}: {error}" if error.where else str(error)) from None
    print(found.text())
    return int(not found.passed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"{Path(sys.argv[0]).name} verify")
    parser.add_argument("release", type=Path, help="a release, or the folder of all: then the latest")
    parser.add_argument("--key", required=True, help="the publisher's public key, or a file with it")
    parser.add_argument("--feed", type=Path, help="a releases.json kept from before: none beside may be older")
    return parser


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
