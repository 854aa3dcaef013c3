"""`funnel`, and `python -m funnel`: the command line, loaded where an interrupt is already understood."""

import sys

from funnel.signals import INTERRUPTED, TERMINATED, heed_termination, interrupted, leave
from funnel.version import __version__


def main() -> None:
    """Run the command line."""
    heed_termination()
    try:
        if sys.argv[1:] == ["--version"]:  # scripts ask at every start: nothing is loaded for it
            print(f"funnel {__version__}")
            return
        from funnel.cli.app import main as run

        run()
    except KeyboardInterrupt:
        print("interrupted; nothing was published by halves [interrupted]", file=sys.stderr)
        leave(interrupted())
    except SystemExit as end:
        if end.code in (INTERRUPTED, TERMINATED):
            leave(end.code)
        raise


if __name__ == "__main__":
    main()
