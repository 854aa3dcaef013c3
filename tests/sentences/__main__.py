"""`python -m tests.sentences [TABLE…]` brings the tables up to date with the sentences, and tells what is open.

New sentences stand under `=> ?`. Behind the `?` may stand what made a sentence true that is gone and was like it, or
the function that prints it: look whether that makes it true, and take the `?` away.
"""

from __future__ import annotations

import sys

from tests.sentences.extract import SOURCES, found
from tests.sentences.table import fault, path_of, renewed, rows, written


def main(names: list[str]) -> int:
    """The exit code: 1 while a sentence has nothing that makes it true."""
    still = 0
    for name in names or SOURCES:
        fresh = renewed(found(name), rows(name) if path_of(name).exists() else {})
        written(name, fresh)
        for source, own in fresh.items():
            for sentence, witness in own.items():
                if (wrong := fault(witness)) is not None:
                    still += 1
                    print(f"{path_of(name).name}: {source}: {wrong}: {sentence}")
    print(f"{still} open")
    return int(still > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
