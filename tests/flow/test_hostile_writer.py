"""A hostile writer: the program itself, changed to lie in one thing at a time, and silent about its own audit.

Every hash fits, for the program works them out; reports and tables follow from the lie. Nobody but an auditor who works
everything out again can tell, and it has to say which claim does not hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funnel
from funnel.format.manifest import Manifest
from funnel.ledger import estimates
from funnel.plan import count, run, write
from funnel.plan.draw import DrawnRows
from funnel.plan.reading import Read
from funnel.release import written
from tests.support.audited import failures
from tests.support.policies import write_policy
from tests.trials.tampered.ground import BASE, PRIVATE, people

Patch = pytest.MonkeyPatch
Lie = Callable[[Patch], None]


def wrapped(room: Any, name: str, change: Callable[..., Any]) -> Lie:
    """A function of the program that returns something else than it found."""

    def tell(patch: Patch) -> None:
        honest = getattr(room, name)
        patch.setattr(room, name, lambda *given, **named: change(honest(*given, **named)))

    return tell


def stated(**changes: Callable[[Manifest], Any]) -> Lie:
    """Parts of release.json that are made from what it would say."""
    return wrapped(
        write, "manifest_file", lambda old: replace(old, **{key: make(old) for key, make in changes.items()})
    )


def figure(part: str, name: str, by: float) -> Lie:
    """One figure of a part of release.json."""

    def change(old: Manifest) -> Any:
        held = getattr(old, part)
        told = held if isinstance(held, dict) else vars(held)
        new = told | {name: round(told[name] + by, 4)}
        return new if isinstance(held, dict) else type(held)(**new)

    return stated(**{part: change})


def leakage_everywhere(patch: Patch) -> None:
    """The leakage, in manifest and ledger, and the composed one with it."""
    figure("leakage", "lip", -0.05)(patch)
    composed(figure=lambda old: round(old.figure - 0.05, 4), measured=lambda old: round(old.measured - 0.05, 4))(patch)


def entered(**changes: Callable[[Any], Any]) -> Lie:
    """Parts of the ledger's entry."""
    return wrapped(
        write, "release_entry", lambda old: replace(old, **{key: make(old) for key, make in changes.items()})
    )


def composed(**changes: Callable[[Any], Any]) -> Lie:
    """Figures of what all releases tell together."""

    def told(old: Any) -> Any:
        own, *others = old.promises
        figures = replace(own.together, **{key: make(own.together) for key, make in changes.items()})
        return replace(own, together=figures), *others

    return entered(promises=told)


def weights(change: Callable[[np.ndarray], None]) -> Lie:
    """The first block's weights, after they were measured and drawn from."""

    def other(old: Any) -> Any:
        block = old.blocks[0]
        table = np.array(block.weights)
        change(table)
        new = replace(block, weights=tuple(map(tuple, table.tolist())))
        return replace(old, blocks=(new, *old.blocks[1:]))

    return wrapped(write, "protocol_file", other)


def louder(table: np.ndarray) -> None:
    """More weight on the likeliest output of the first value, taken from the next likeliest."""
    *_, second, best = np.argsort(table[:, 0])
    moved = int(table[second, 0]) // 2
    table[best, 0] += moved
    table[second, 0] -= moved


def exchanged(old: Any) -> Any:
    """Two inputs bear each other's names."""
    one = old.blocks[0]
    return replace(old, blocks=(replace(one, inputs=(one.inputs[1], one.inputs[0], *one.inputs[2:])),))


def rows_of(part: str, change: Callable[[list[list[int]]], None]) -> Callable[[Any], Any]:
    """Rows of numbers in a record."""

    def other(old: Any) -> Any:
        rows = [list(row) for row in getattr(old, part)]
        change(rows)
        return replace(old, **{part: tuple(map(tuple, rows))})

    return other


def first_to_second(rows: list[list[int]]) -> None:
    """Ten records of one row told as of the next."""
    rows[0][-1] -= 10
    rows[1][-1] += 10


def one_more(rows: list[list[int]]) -> None:
    rows[0][-1] += 1


def another_secret(rows: list[list[int]]) -> None:
    """Most records of one cell told as of another secret value: enough for a figure of one decimal to be another."""
    moved = rows[0][-1] * 9 // 10
    rows[0][-1] -= moved
    next(row for row in rows if row[0] != rows[0][0] and row[1:-1] == rows[0][1:-1])[-1] += moved


def of_draws(old: Any) -> Any:
    rows = [list(row) for row in old.blocks[0]]
    first_to_second(rows)
    return replace(old, blocks=(tuple(map(tuple, rows)), *old.blocks[1:]))


def likeliest(old: Any) -> Any:
    """Nothing left to chance: every value answers with its likeliest output, in draws and rows alike."""
    (table,) = old.tables
    new = np.zeros_like(table)
    new[np.arange(len(table)), table.argmax(axis=1)] = table.sum(axis=1)
    totals = new.sum(axis=0)
    return replace(old, tables=(new,), codes=np.flatnonzero(totals)[:, None], counts=totals[totals > 0])


def paired(old: Any) -> Any:
    """Two blocks drawn from one number: each column as it was, and the two in the same order."""
    columns = [np.repeat(code, old.counts) for code in old.codes.T]
    codes, counts = np.unique(np.column_stack([np.sort(one) for one in columns]), axis=0, return_counts=True)
    return replace(old, codes=codes, counts=counts)


def other_table(patch: Patch) -> None:
    """The data file is of other rows than released.json."""
    honest = written.export
    change = rows_of("rows", first_to_second)

    def another(protocols: Any, told: Any, *rest: Any, **more: Any) -> Any:
        return honest(protocols, change(told), *rest, **more)

    patch.setattr(written, "export", another)


def of_report(room: str) -> Lie:
    """A report with another number of rows."""
    return wrapped(write.report, room, lambda old: old | {"rows": 7})


def no_noise(patch: Patch) -> None:
    """A private estimate whose noise is none; the counts that follow are then the true ones."""
    patch.setattr(estimates, "discrete_laplace", lambda *_: 0)


def lower_bound(old: Any) -> Any:
    """A smaller bound of usefulness than was proven, the certificate's peak as much smaller."""
    solved, proof = old
    certificate = replace(solved.certificate, peak=solved.certificate.peak - 0.01)
    bounds = tuple(one - 0.01 for one in solved.upper_bounds)
    return replace(solved, upper_bounds=bounds, certificate=certificate), proof


def lower_everywhere(patch: Patch) -> None:
    wrapped(write, "solution_file", lower_bound)(patch)

    def told(old: Manifest) -> Any:
        bound = round(old.utility.upper_bound - 0.01 / old.utility.entropy, 4)
        return replace(old.utility, upper_bound=max(bound, old.utility.normalised))

    stated(utility=told)(patch)


def smaller_radius(patch: Patch) -> None:
    stated(parameters=lambda old: replace(old.parameters, radius=old.parameters.radius / 4))(patch)


def nothing_shown(patch: Patch) -> None:
    from funnel.format.robust import RobustFile
    from funnel.notions.rldp import Rldp

    patch.setattr(Rldp, "certificate", lambda *_: RobustFile("funnel-robust/1", ()))


FRESH = {"draws": {"kind": "fresh"}, "source": {"table": "people.parquet"}}
PLAIN = {"mechanism": "randomised-response"}
TWO = {"public": ["z", "w"], "privacy__epsilon": 0.5}
ESTIMATE = {"estimate": PRIVATE | {"epsilon": 0.5}, "privacy__epsilon": 0.5}
ROBUST = {"privacy": {"notion": "rldp", "epsilon": 1.5}, "public": ["s", "w"], "mechanism": "polyopt"}
LIES: dict[str, tuple[Lie, set[str], dict[str, Any]]] = {
    "a lower leakage": (leakage_everywhere, {"leakage-stated"}, {}),
    "a lower leakage of a measure that nothing bounds": (figure("leakage", "ldp", -0.01), {"leakage-stated"}, {}),
    "a lower information": (figure("leakage", "mutual_information", -0.1), {"averages-stated"}, {}),
    "a smaller epsilon": (stated(epsilon=lambda old: 0.9 * old.epsilon), {"policy-terms", "leakage-bound"}, {}),
    "another notion": (stated(notion=lambda _: "perfect", epsilon=lambda _: 0.0), {"policy-terms"}, {}),
    "more usefulness": (figure("utility", "mutual_information", 0.1), {"averages-stated"}, {}),
    "less to tell": (figure("utility", "entropy", -0.1), {"averages-stated"}, {}),
    "a larger share": (figure("utility", "normalised", 0.1), {"averages-stated"}, {}),
    "a bound below what was proven": (lower_everywhere, {"utility-bound"}, {}),
    "a larger minimum": (
        stated(estimate=lambda old: replace(old.estimate, minimum=100)), {"policy-terms", "minimum"}, {},
    ),
    "columns that were not rounded": (
        stated(coarsened=lambda _: ()), {"policy-terms"}, FRESH | {"public": [{"name": "id", "round": 100}]},
    ),
    "more records": (stated(rows=lambda old: old.rows + 1), {"released", "counts"}, {}),
    "a louder weight": (weights(louder), {"leakage-stated"}, {}),
    "inputs exchanged": (wrapped(write, "protocol_file", exchanged), {"counts"}, {}),
    "another mechanism": (stated(mechanism=lambda _: "randomised-response"), {"policy-terms", "mechanism"}, {}),
    "records of another secret": (
        wrapped(write, "counts_file", rows_of("cells", another_secret)), {"leakage-stated", "ledger-identity"}, {},
    ),
    "a record too many in the counts": (
        wrapped(write, "counts_file", rows_of("cells", one_more)), {"counts"}, {},
    ),
    "draws told otherwise": (wrapped(write, "draws_file", of_draws), {"draw-outputs"}, {}),
    "draws without chance": (wrapped(Read, "drawn", likeliest), {"draw-fit"}, {}),
    "blocks drawn together": (wrapped(Read, "drawn", paired), {"draw-independence"}, TWO),
    "released labels told otherwise": (
        wrapped(write, "released_file", rows_of("rows", first_to_second)), {"draw-outputs"}, {},
    ),
    "another table": (other_table, {"data-export"}, {}),
    "another table in text": (other_table, {"data-export"}, {"release__format": "csv"}),
    "a report that says otherwise": (of_report("published"), {"report"}, {}),
    "a full report that says otherwise": (of_report("full"), {"report"}, {}),
    "terms that nobody asked for": (
        wrapped(write, "terms_file", lambda old: replace(old, filter="s = 's0'")), {"policy"}, {},
    ),
    "a budget that nobody set": (
        wrapped(write, "terms_file", lambda old: replace(old, budget="1000000")), {"policy"}, {"budget": 0.5},
    ),
    "a lower composed leakage": (composed(figure=lambda _: 0.01, measured=lambda _: 0.01), {"ledger-composed"}, {}),
    "a figure below the measured one": (composed(figure=lambda _: 0.01), {"ledger-promises"}, {}),
    "values that change tell less": (composed(varying=lambda old: old.varying / 2), {"ledger-composed"}, PLAIN),
    "an earlier release forgotten": (composed(releases=lambda _: 7), {"ledger-entry"}, {}),
    "another meaning": (
        entered(drawn=lambda old: (replace(old.drawn[0], meaning=("0" * 16,)),)), {"ledger-drawn"}, {},
    ),
    "drawn for somebody else": (entered(entity=lambda _: "x"), {"ledger-drawn"}, {}),
    "no noise": (no_noise, {"estimate-noise"}, ESTIMATE),
    "less spent": (
        stated(estimate=lambda old: replace(old.estimate, spent=0.25)), {"estimate-spent"}, ESTIMATE,
    ),
    "a smaller set of distributions": (smaller_radius, {"uncertainty"}, ROBUST),
    "robust, and nothing shows it": (nothing_shown, {"leakage-bound"}, ROBUST),
    "the best of those compared": (
        stated(candidates=lambda old: tuple(replace(one, normalised=1.0) if one.normalised else one
                                            for one in old.candidates)),
        {"mechanism"}, {"mechanism": "auto"},
    ),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("what", LIES)
def test_a_writer_that_lies_is_refused_by_a_claim(what: str, tmp_path: Path, key: str, monkeypatch: Patch) -> None:
    lie, claims, changes = LIES[what]
    people(tmp_path, 0)
    monkeypatch.setenv("FUNNEL_KEY", key)
    monkeypatch.setattr(run, "audit", lambda *_: [])
    policy = write_policy(tmp_path, **(BASE | {"privacy__epsilon": 0.3} | changes))
    lie(monkeypatch)
    made = funnel.run(policy)
    monkeypatch.undo()
    found = failures(funnel.audit_release(made.release, tmp_path / "private"))
    assert claims <= found, sorted(found)


def test_two_nights_whose_leakage_adds_up_are_not_told_as_one(tmp_path: Path, monkeypatch: Patch) -> None:
    """Fresh draws every night, and a ledger that goes on to state what one night tells."""
    people(tmp_path, 0)
    policy = write_policy(tmp_path, **(BASE | FRESH | {"privacy__epsilon": 0.3}))
    first = funnel.run(policy)
    monkeypatch.setattr(run, "audit", lambda *_: [])
    alone = first.composed.together
    composed(figure=lambda _: alone.figure, measured=lambda _: alone.measured)(monkeypatch)
    stated(composed=lambda old: replace(old.composed, leakage=alone.figure))(monkeypatch)
    second = funnel.run(policy)
    monkeypatch.undo()
    assert failures(funnel.audit_release(second.release, tmp_path / "private")) == {"ledger-composed"}


def test_counts_of_another_table_are_found_with_the_table(tmp_path: Path, key: str, monkeypatch: Patch) -> None:
    """A writer who counts, solves and draws for people of his own, and lies in no digest of them."""
    people(tmp_path, 0)
    monkeypatch.setenv("FUNNEL_KEY", key)
    policy = write_policy(tmp_path, **(BASE | {"privacy__epsilon": 0.3}))
    honest, source, private = count.counting.joint_distribution, tmp_path / "people.parquet", tmp_path / "private"
    first = funnel.run(policy).release
    assert failures(funnel.audit_release(first, private, table=source)) == set()

    def other(*given: Any) -> Any:
        joint = honest(*given)
        numbers = joint.counts.copy()
        numbers[:2] += (5, -5)
        return replace(joint, counts=numbers)

    monkeypatch.setattr(count.counting, "joint_distribution", other)
    monkeypatch.setattr(Read, "drawn", drawn_for_others)
    monkeypatch.setattr(run, "audit", lambda *_: [])
    second = funnel.run(policy).release
    monkeypatch.undo()
    assert failures(funnel.audit_release(second, private)) == {"ledger-identity"}
    assert failures(funnel.audit_release(second, private, table=source)) == {"source-counts", "ledger-identity"}


def drawn_for_others(read: Read, _: Any, protected: Any) -> DrawnRows:
    """Values drawn for the counts that were told, from chance alone."""
    (protocol,), random = protected.protection.protocols, np.random.default_rng(3)
    chances = protocol.weights[:, 0, :] / (1 << protocol.bits)
    records = read.joint.table().sum(axis=0)
    table = np.array([random.multinomial(n, p) for n, p in zip(records, chances.T, strict=True)])
    totals = table.sum(axis=0)
    return DrawnRows(np.flatnonzero(totals)[:, None], totals[totals > 0], (table,))
