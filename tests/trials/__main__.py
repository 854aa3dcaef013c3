"""Long trials, each a command of its own; a small version of each runs with the tests.

python -m tests.trials             the trials, a line each
python -m tests.trials year        one of them   [--help]
"""

from __future__ import annotations

import importlib
import sys

TRIALS = {
    "year": "365 nights of a changing table, with faults, audited as one chain and attacked",
    "tampering": "a thousand changes to releases, evidence and ledger, each of which the auditor has to catch",
    "draws": "ten thousand million draws against the exact weights, with the power to see a bias of 1e-4",
    "faults": "runs killed at every step and at random moments, full disks, rivals, broken files",
    "policies": "mutated policies through the loader, the planner and the commands",
    "coverage": "intervals of estimates over redraws: how often they hold the truth, and from which size on",
    "attackers": "whoever was told more than was said: what is claimed, and what published files tell",
}


def main(arguments: list[str]) -> int:
    """Run the trial named first with the rest of `arguments`; its exit code, or 2 where none is named."""
    if arguments and arguments[0] in TRIALS:
        trial = importlib.import_module(f"tests.trials.{arguments[0]}")
        return int(trial.main(arguments[1:]))
    print("python -m tests.trials NAME [options]\n")
    for name, what in TRIALS.items():
        print(f"  {name:<10} {what}")
    return 0 if not arguments or arguments[0] in {"-h", "--help"} else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
