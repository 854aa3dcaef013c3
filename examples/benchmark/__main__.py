"""`python examples/benchmark NAME [options]`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import optimal
import parted
import polytope
import throughput
import wide

BENCHMARKS = {
    "throughput": throughput.main,
    "spark": parted.main,
    "polytope": polytope.main,
    "optimal": optimal.main,
    "wide": wide.main,
}

if len(sys.argv) < 2 or sys.argv[1] not in BENCHMARKS:
    sys.exit(f"usage: python examples/benchmark {{{','.join(BENCHMARKS)}}} [options]")
BENCHMARKS[sys.argv[1]](sys.argv[2:])
