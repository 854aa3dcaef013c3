"""`python examples/papers NAME [options]`: an experiment of the papers again, its figure beside the printed values."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import ds_mechanisms
import ds_optima
import page
import pf
import rldp
from draw import figure
from findings import Findings, Run, load, save

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Experiment:
    """How an experiment is run, and the draws that the paper takes (1 where nothing is drawn)."""

    find: Callable[[Run], Findings]
    draws: int = 100


EXPERIMENTS = {
    "ds-3": Experiment(ds_optima.figure_3, 10),
    "ds-4": Experiment(ds_optima.figure_4, 10),
    "ds-5": Experiment(ds_mechanisms.figure_5, 1),
    "ds-6": Experiment(ds_mechanisms.figure_6),
    "ds-7": Experiment(ds_mechanisms.figure_7),
    "ds-8": Experiment(ds_mechanisms.figure_8, 1),
    "rldp-2": Experiment(rldp.figure_2, 1),
    "rldp-3": Experiment(rldp.figure_3),
    "rldp-4": Experiment(rldp.figure_4),
    "rldp-5": Experiment(rldp.figure_5),
    "rldp-table-2": Experiment(rldp.table_2),
    "pf-1": Experiment(pf.figure_1, 1),
}


def main(arguments: list[str]) -> None:
    """Run what was asked for, write its JSON and SVG, and say what came out."""
    options = _options(arguments)
    results = options.to / "results"
    names = (
        list(EXPERIMENTS) if "all" in options.names else [name for name in options.names if name != "page"]
    )
    for name in names:
        _run(name, options.draws, options.seed, results)
    if {"all", "page"} & set(options.names):
        print(page.write(options.to))


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python examples/papers",
        description=__doc__,
        epilog="DS: Data Sanitisation Protocols. RLDP: Mechanisms for Robust Local Differential Privacy. "
        "PF: From the Information Bottleneck to the Privacy Funnel. `page` builds README.md from stored results.",
    )
    names = [*EXPERIMENTS, "all", "page"]
    parser.add_argument("names", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--draws", type=int, help="random tables; as many as the paper takes, unless given")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--to", type=Path, default=HERE, metavar="DIR", help="folder of README.md and results/"
    )
    return parser.parse_args(arguments)


def _run(name: str, draws: int | None, seed: int, results: Path) -> None:
    """One experiment."""
    experiment = EXPERIMENTS[name]
    number = experiment.draws if draws is None or experiment.draws == 1 else draws
    with _progress(name) as say:
        run = Run(number, seed, say)
        findings = experiment.find(run)
    command = ["python", "examples/papers", name]
    if experiment.draws > 1:
        command += ["--draws", str(number)]
    if seed != 1:
        command += ["--seed", str(seed)]
    saved = save(results, name, shlex.join(command), run, findings)
    _, kept = load(saved)
    if kept.panels:
        saved.with_suffix(".svg").write_text(figure(kept.panels, page.TITLES[name].title), encoding="utf-8")
    for claim in findings.claims:
        print(
            f"{name}: {page.verdict(claim.holds)}: {claim.said}; printed: {claim.printed}; here: {claim.ours}"
        )
    print(saved, flush=True)


class _progress:  # noqa: N801
    """One line that is written over on a terminal; nothing in a log."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> Callable[[str], None]:
        return self._say if sys.stderr.isatty() else lambda _: None

    def _say(self, text: str) -> None:
        print(f"\r\033[K{self._name}: {text}", end="", file=sys.stderr, flush=True)

    def __exit__(self, *_: object) -> None:
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
