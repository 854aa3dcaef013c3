"""What a page says that only holds under some notion, estimate or figure."""

from __future__ import annotations

from typing import Any

import pytest

from funnel.format.reported import Evidence as Kept
from funnel.report.evidence import Evidence
from funnel.report.facts import Facts
from funnel.report.words import blocks, notion
from tests.unit.report import sample

RELEASE = sample.one_block()


def limits(**stated: Any) -> str:
    return " ".join(one["text"] for one in RELEASE.stating(**stated).published()["limits"])


def test_a_robust_notion_is_no_way_out_of_itself() -> None:
    plain, robust = limits(), limits(notion="rldp", leakage={**RELEASE.manifest.leakage, "rldp": 0.5})
    assert "a robust notion (rldp) or noisy counts (estimate.kind: private) are the ways out" in plain
    assert "Noisy counts (estimate.kind: private) are the way out, where the columns allow them, at a cost." in robust
    assert "a robust notion" not in robust


@pytest.mark.parametrize(("rises", "falls", "said"), [
    (1.2, None, "steigt eine Einschätzung von {} einer Zeile um höchstens 1,2000 Nat und kann auf nichts fallen"),
    (None, None, "kann eine Einschätzung von {} einer Zeile ohne Schranke steigen und auf nichts fallen"),
    (1.2, 0.5, "um höchstens 1,2000 Nat und fällt um höchstens 0,5000 Nat"),
])  # fmt: skip
def test_what_has_no_bound_is_said_in_whole_sentences(rises: float | None, falls: float | None, said: str) -> None:
    shown = RELEASE.stating(language="de")
    facts = Facts.of(shown.shown)
    kept = Evidence.of(facts, Kept(shown.counts, shown.draws, shown.solution, shown.terms, None))
    full = shown.full()["evidence"]
    told = full | {"observer": full["observer"] | {"rises": rises, "falls": falls, "odds": None}}
    text = blocks("evidence.txt", t=facts, e=kept, told=told, notion=notion(facts))["whole"]
    assert said.format(facts.secret) in text
