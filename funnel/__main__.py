"""`python -m funnel`."""

from funnel.cli import main

main()
