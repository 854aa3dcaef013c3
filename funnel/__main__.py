"""`funnel`, and `python -m funnel`: the command line, loaded where an interrupt is already understood."""

import sys


def main() -> None:
    """Run the command line."""
    try:
        from funnel.cli.app import main as run

        run()
    except KeyboardInterrupt:
        print("interrupted; nothing was published [interrupted]", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
