"""Tampering with whatever the auditor reads: a thousand seeded changes to honest releases, all of which must be caught.

    python -m tests.trials tampering --runs 1200 --seed 1          [--list]  [--case SEED]  [--json]

Honest releases of many policies are made with the real program. Each case copies the releases of one ledger, changes
something, recomputes as many hashes as its forger could, and asks the auditor, as `funnel audit` does: with the
evidence, with the public key alone (and then `funnel verify` too), as `latest`, or about all releases of the ledger.
Caught means a claim that fails, with its place; anything else is a finding: an audit that passes, and also a traceback.
What leaves all bytes as they were, or says the same in other bytes, does not count.

The forger may write everything but has no signing key. What such a one can do unseen is make another honest release:
counts, draws, rows and figures that agree all through. Outside therefore, and not drawn here, are
- another table (only `--table` shows that one), other draws that chance explains, other labels for what nobody else
  names, given consistently in published files and evidence; `rule` and versions; the fingerprint of a first key;
- times of writing that keep their order; the newest releases left out with evidence and entry, for an earlier ledger is
  true as far as it goes; an entry more, with its protocol, for a release that is said never to have been visible;
- a proof left out altogether: the bound is then reported as not checked;
- the whole published folder as it was some nights before, its releases.json with it, to a reader who has no later list;
  a release that is pruned and truly marked, and the time in its mark.
The signature shows every one of them that touches a published file to whoever has the public key from elsewhere.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from funnel.api import audit
from funnel.errors import FunnelError
from tests.trials.tampered.ground import CASES, Ground, make
from tests.trials.tampered.judge import KINDS, Tried, controls, name_of, tamper, trial, verdict

ROOT = Path(__file__).resolve().parents[2]


def summary(found: Sequence[Tried]) -> str:
    """What was tried, by kind, and how it was caught."""
    lines = [f"{'what was changed':<46} {'tried':>6} {'caught':>6}  by which claims most"]
    for kind in KINDS:
        own = [one for one in found if one.kind == kind]
        claims = Counter(claim for one in own for claim in one.claims)
        most = ", ".join(claim for claim, _ in claims.most_common(4))
        lines.append(f"{kind:<46} {len(own):>6,} {sum(not one.wrong for one in own):>6,}  {most}")
    for title, of in (("made to fit afterwards", "seal"), ("given to the auditor", "view")):
        counts = Counter(getattr(one, of) for one in found)
        lines.append(f"{title}: " + ", ".join(f"{name} {many:,}" for name, many in counts.most_common()))
    different = len({(one.release, one.what, one.seal, one.view) for one in found})
    missed = sum(one.wrong is not None for one in found)
    caught = f"{len(found) - missed:,} caught, {missed:,} not"
    lines.append(f"{len(found):,} tamperings tried, {different:,} of them different, {caught}")
    return "\n".join(lines)


def commands(ground: Ground, seeds: Sequence[int]) -> list[str]:
    """The same by the real command: exit code 1, a claim that fails or an error, and no traceback."""
    wrong = []
    for seed in seeds:
        with tempfile.TemporaryDirectory(prefix="funnel-tampering-") as scratch:
            spoilt = tamper(ground, seed, Path(scratch))
            releases, private = spoilt.given
            call = ["audit", str(releases), *(["--private", str(private)] if private else []),
                    *(["--public-key", str(spoilt.key)] if spoilt.key else [])]  # fmt: skip
            done = subprocess.run(
                [sys.executable, "-m", "funnel", *call],
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
        said = done.stdout + done.stderr
        if (
            done.returncode != 1
            or "Traceback" in said
            or not ("FAIL" in said or "[release-unreadable]" in said)
        ):
            wrong.append(f"{seed}: funnel audit ended with {done.returncode}: {said.strip()[-200:]}")
    return wrong


def show(ground: Ground, seed: int) -> int:
    """One tampering again, with the auditor's whole answer."""
    with tempfile.TemporaryDirectory(prefix="funnel-tampering-") as scratch:
        spoilt = tamper(ground, seed, Path(scratch))
        releases, private = spoilt.given
        print(
            f"{spoilt.move.kind}: {spoilt.what} [{name_of(ground, spoilt.place)}; {spoilt.seal}; given {spoilt.view}]"
        )
        try:
            print(audit(releases, private, public_key=spoilt.key).text())
        except FunnelError as error:
            print(error.text())
        _, wrong = verdict(spoilt)
    print(wrong or "caught")
    return 1 if wrong else 0


def main(arguments: list[str]) -> int:
    """Run from the command line; exit code 1 where something was not caught."""
    asked = _parser().parse_args(arguments)
    told: Callable[[str], None] = partial(print, file=sys.stderr, flush=True)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="funnel-ground-") as folder:
        ground = make(Path(asked.keep or folder), tuple(CASES), told)
        if asked.case is not None:
            return show(ground, asked.case)
        wrong = list(controls(ground))
        seeds = range(asked.seed * 10**6, asked.seed * 10**6 + asked.runs)
        found = [] if wrong else trial(ground, seeds, asked.jobs, told)
        wrong += commands(ground, seeds[: asked.sample]) if found else []
        made = f"{len(ground.cases)} policies, {len(ground.targets)} releases"
    bad = bool(wrong) or any(one.wrong for one in found)
    if asked.json:
        print(
            json.dumps(
                {"held": not bad, "controls": wrong, "tried": [asdict(one) for one in found]}, indent=1
            )
        )
        return int(bad)
    for one in found:
        if asked.list or one.wrong:
            print(one.text())
    print("\n".join([*wrong, summary(found)]))
    print(
        f"{made}, {min(asked.sample, len(found))} tamperings by the command too; {time.monotonic() - begun:.0f} s"
    )
    return int(bad)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.trials tampering",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--runs", type=int, default=1200, help="tamperings to try; some come out alike")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument(
        "--sample", type=int, default=10, help="of these, how many also by the command `funnel audit`"
    )
    parser.add_argument(
        "--case", type=int, metavar="SEED", help="show and repeat one tampering; needs --keep to be the same"
    )
    parser.add_argument("--keep", metavar="DIR", help="where the honest releases are kept, and found again")
    parser.add_argument("--list", action="store_true", help="print every tampering")
    parser.add_argument("--json", action="store_true")
    return parser
