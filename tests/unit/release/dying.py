"""Runs that kill themselves: `python -m tests.unit.release.dying` makes one for each line of its input.

A line is `TO PRIVATE ID STEP PAUSE`. The run publishes one small release and dies by SIGKILL at its STEP-th
call into the file system (a write dies after half of its bytes); with STEP beyond the last call, or negative,
it ends well. It is answered by a line with its process number as it begins, and one with its exit code.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from funnel.release.feed import Feed
from funnel.release.publish import Publisher
from funnel.release.sign import SigningKey
from tests.support.ledger import ENTRY, an_entry

CALLS = (
    "mkdir",
    "chmod",
    "symlink",
    "rename",
    "replace",
    "fsync",
    "open",
    "write",
    "ftruncate",
    "unlink",
    "rmdir",
    "close",
)


class Fuse:
    """Counts calls into the file system and dies at one of them."""

    def __init__(self, step: int) -> None:
        self.step, self.count = step, 0
        for name in CALLS:
            setattr(os, name, self.watched(name, getattr(os, name)))

    def watched(self, name: str, original: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            if self.count == self.step:
                if name == "write":
                    original(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            self.count += 1
            return original(*arguments, **options)

        return call


MANIFEST = f'{{"signed": {{"public_key": "{SigningKey(bytes(32)).fingerprint}"}}}}'


def feed(to: Path, private: Path) -> Feed:
    """The list of its policy, under a key that everybody knows."""
    return Feed(to, private, ENTRY.name, SigningKey(bytes(32)))


def release(to: Path, private: Path, release_id: str, pause: float = 0.0) -> None:
    """Two published files and three private ones, in the order of a real run."""
    with Publisher(to, private, release_id, feed(to, private)) as publisher:
        (publisher.public / "data.csv").write_text("education\nbachelor\n")
        (publisher.scratch / "spilled").write_text("raw rows")
        time.sleep(pause)
        (publisher.public / "release.json").write_text(MANIFEST)
        (publisher.private / "evidence.json").write_text("{}")
        (publisher.private / "people.json").write_text("{}")
        (publisher.private / "more").mkdir()
        (publisher.private / "more" / "plan.json").write_text("{}")
        publisher.publish(an_entry(release_id))


def main() -> None:
    """One process for each run, forked because an interpreter takes long to start."""
    for line in sys.stdin:
        to, private, release_id, step, pause = line.split()
        child = os.fork()
        if child == 0:
            Fuse(int(step))
            release(Path(to), Path(private), release_id, float(pause))
            os._exit(0)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
