"""`funnel`, and `python -m funnel`: the command line, loaded where an interrupt is already understood."""

import gc
import os
import sys

from funnel.cli import streams
from funnel.cli.signals import INTERRUPTION, heed_termination, interrupted, leave, tell

_THRESHOLD = 100_000
"""Objects made and not let go before cycles are looked for; at Python's own 700 that is a tenth of a start."""


def begin() -> None:
    """What holds for a process that is a command, before anything is imported."""
    gc.set_threshold(_THRESHOLD)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # nobody else has a say in how a policy is read
    streams.begin()


def main() -> None:
    """Run the command line."""
    heed_termination()
    begin()
    try:
        if sys.argv[1:] == ["--version"]:  # scripts ask at every start: nothing is loaded for it
            from funnel.version import __version__

            print(f"funnel {__version__}")
            leave(0)
        from funnel.cli.app import main as run

        run()
    except KeyboardInterrupt:
        tell("interrupted", INTERRUPTION, sys.argv)
        leave(interrupted())
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            leave(end.code or 0)
        raise


if __name__ == "__main__":
    main()
