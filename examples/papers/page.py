"""The page README.md, built from stored results alone: each figure, what the paper prints, and what comes out "
"here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from draw import figure
from findings import Findings, Table, load

PAPERS = {
    "DS": "[DS] M. Lopuhaä-Zwakenberg, H. Tong, B. Škorić. *Data Sanitisation Protocols for the Privacy Funnel with "
    "Differential Privacy Guarantees*. International Journal on Advances in Security 13(3&4), 2020.",
    "RLDP": "[RLDP] M. Lopuhaä-Zwakenberg, J. Goseling. *Mechanisms for Robust Local Differential Privacy*. Entropy "
    "26, 233, 2024.",
    "PF": "[PF] A. Makhdoumi, S. Salamatian, N. Fawaz, M. Médard. *From the Information Bottleneck to the Privacy "
    "Funnel*. IEEE Information Theory Workshop, 2014.",
}


@dataclass(frozen=True)
class Heading:
    """Where an experiment stands in its paper, and what it is about."""

    where: str
    title: str


TITLES = {
    "ds-3": Heading("[DS] Figure 3", "LDP against LIP: time and information"),
    "ds-4": Heading("[DS] Figure 4", "LIP against SRLIP: time and information"),
    "ds-5": Heading("[DS] Figure 5", "Four mechanisms on the census at the same LIP"),
    "ds-6": Heading("[DS] Figure 6", "Randomised response against conditional reporting"),
    "ds-7": Heading("[DS] Figure 7", "What a difference in α explains"),
    "ds-8": Heading("[DS] Figure 8", "α of GRR and CR on the census"),
    "rldp-2": Heading("[RLDP] Figure 2", "Robust mechanisms on the census"),
    "rldp-3": Heading("[RLDP] Figure 3", "Robust mechanisms on random tables"),
    "rldp-4": Heading("[RLDP] Figure 4", "What is really given away"),
    "rldp-5": Heading("[RLDP] Figure 5", "Information under the estimate and under the truth"),
    "rldp-table-2": Heading("[RLDP] Table 2", "The price of confidence"),
    "pf-1": Heading("[PF] Figure 1", "The greedy privacy funnel"),
}
HEAD = """# The papers again

Experiments of the papers behind funnel, run with funnel's own mechanisms. One command runs one, and draws its figure:

    python examples/papers NAME [--draws N] [--to DIR]
    python examples/papers all --draws 3        # everything, quickly
    python examples/papers page                 # this page again, from the stored results

They need what the tests need (`pip install -e '.[dev]'`): cddlib lists rays and vertices for comparison.

NAME is one of {names}.

What is kept in `results/` are aggregates, each with the command that made it and the versions it ran on. Means come
with their standard error. Times are ratios of what was measured in one run on one machine, never seconds. A figure
printed without numbers can be compared by its shape only: what lies above what.

"""


def verdict(holds: bool | None) -> str:
    """One word or two for the last column."""
    return {True: "comes out", False: "does not come out", None: "see notes"}[holds]


def write(folder: Path) -> Path:
    """Build `folder/README.md`, and the figures again, from what is in `folder/results`."""
    parts = [HEAD.format(names=", ".join(TITLES))]
    paper = ""
    for name, heading in TITLES.items():
        stored = folder / "results" / f"{name}.json"
        if not stored.exists():
            continue
        family = heading.where[1 : heading.where.index("]")]
        if family != paper:
            parts.append(f"## {family}\n\n{PAPERS[family]}\n\n")
            paper = family
        about, findings = load(stored)
        if findings.panels:
            stored.with_suffix(".svg").write_text(figure(findings.panels, heading.title), encoding="utf-8")
        parts.append(_section(name, heading, about, findings))
    path = folder / "README.md"
    path.write_text("".join(parts).rstrip() + "\n", encoding="utf-8")
    return path


def _section(name: str, heading: Heading, about: dict[str, Any], findings: Findings) -> str:
    """One experiment."""
    parts = [f"### {heading.where}: {heading.title}\n"]
    if findings.panels:
        parts.append(f"![{heading.title}](results/{name}.svg)\n")
    if findings.table:
        parts.append(_table(findings.table))
    claims = [[one.said, one.printed, one.ours, verdict(one.holds)] for one in findings.claims]
    parts.append(_table(Table(["the paper", "printed", "here", ""], claims)))
    parts.append("".join(f"- {note}\n" for note in findings.notes))
    versions = ", ".join(f"{package} {number}" for package, number in about["versions"].items())
    drawn = f"{about['draws']} draws, seed {about['seed']}; " if about["draws"] > 1 else ""
    parts.append(f"`{about['command']}`: {drawn}{versions}.\n\n")
    return "\n".join(parts)


def _table(table: Table) -> str:
    """A table in Markdown."""
    rows: list[Sequence[str]] = [table.head, ["---"] * len(table.head), *table.rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows)
