"""`python examples/benchmark NAME [options]`; each benchmark needs libraries of its own."""

import sys
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

BENCHMARKS = {
    "throughput": "throughput",
    "spark": "parted",
    "polytope": "polytope",
    "optimal": "optimal",
    "wide": "wide",
}
"""Their modules."""

if len(sys.argv) < 2 or sys.argv[1] not in BENCHMARKS:
    sys.exit(f"usage: python examples/benchmark {{{','.join(BENCHMARKS)}}} [options]")
import_module(BENCHMARKS[sys.argv[1]]).main(sys.argv[2:])
