"""What was measured on the channel released: the leakage in words, and what each secret value has of it."""

from __future__ import annotations

from typing import Any

from funnel.report import figures
from funnel.report.beliefs import guess, secrets
from funnel.report.case import Case
from funnel.report.noise import measured_where


def measured(case: Case) -> dict[str, Any]:
    """The leakage of the channel released, in words and nats, and what each secret value has of it."""
    entries = secrets(case)
    return {
        "sentence": " ".join(filter(None, (_strongest(case), _whose(case)))) + measured_where(case),
        "bound": case.epsilon,
        "width": case.width,
        "each": case.notion.worst_case,
        "withheld": any(entry["pooled"] or None in (entry["lowest"], entry["highest"]) for entry in entries),
        "leakage": {name: case.leakage(name) for name in case.manifest["leakage"]},
        "secrets": entries,
        "guess": guess(case),
    }


def _strongest(case: Case) -> str:
    """The measured leakage in the notion's own measure, as a sentence."""
    worst, subject = case.leakage(case.notion.measure), case.notion.subject(case.terms)
    together = ", taken with the others of its record," if len(case.protocols) > 1 else ""
    if not case.notion.worst_case:
        return _strongest_single(case, together)
    if worst is None:
        return f"Some released value{together} rules out a value of {case.terms.secret} altogether."
    if worst == 0:
        return f"No released value{together} changes {subject} at all."
    return (
        f"No released value{together} changes {subject} by more than a factor of "
        f"{figures.factor_text(worst)}."
    )


def _whose(case: Case) -> str:
    """For whom the table of beliefs is drawn up, where the promise is about more than it shows."""
    if case.manifest["notion"] == "ldp-x":
        return f"The table shows what that means for {case.terms.secret}."
    if case.manifest["notion"] == "rldp":
        return "The table shows the changes under the distribution as counted."
    if case.manifest["notion"] == "srlip" and case.terms.columns > 1:
        return "The table is for someone who knows none of the true values."
    return ""


def _strongest_single(case: Case, together: str) -> str:
    """The measured average, and beside it the strongest change that a single record can meet."""
    told, worst = case.leakage("mutual_information"), case.leakage("lip")
    average = f"An average record tells {figures.nats_text(told)} nats about {case.terms.secret}."
    if worst == 0:
        return f"{average} No released value{together} changes any belief about {case.terms.secret} at all."
    strongest = (
        f"some released value{together} rules out a value of {case.terms.secret} altogether"
        if worst is None
        else f"some released value{together} changes a belief about {case.terms.secret} by a factor of "
        f"{figures.factor_text(worst)}"
    )
    return (
        f"{average} That is an average, and single records may be affected more: {strongest}. The table shows "
        "how far beliefs really move; the promise sets no limit to that."
    )
