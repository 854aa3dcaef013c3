"""One release of people.yaml, under plain Python or spark-submit."""

import sys
from pathlib import Path

import funnel
from funnel.errors import FunnelError

try:
    made = funnel.run(Path(__file__).parent / "people.yaml")
except FunnelError as error:
    print(error, file=sys.stderr)
    sys.exit(error.exit_code)
print(made.release)
