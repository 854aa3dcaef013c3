"""A release is only as private as all releases about the same people together: measured before anything is drawn."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

import funnel
from funnel.audit.kernel import opened
from funnel.data import Alphabet, Joint
from funnel.data.convert import protocol_file
from funnel.errors import LedgerError
from funnel.files import sha256_file
from funnel.format import schema
from funnel.format.journal import ReleaseEntry
from funnel.ledger import history
from funnel.ledger.archive import FOLDER, keep, kept_protocol
from funnel.ledger.budget import check_promises, warnings
from funnel.ledger.history import MOST_PROTOCOLS, compose
from funnel.ledger.journal import Journal
from funnel.measure.figures import round_up
from funnel.measure.information import mutual_information
from funnel.mechanisms.product import protect
from funnel.policy import Policy
from tests.support.ledger import an_entry, an_id, whose
from tests.support.people import FRESH, MONDAY, SMALL, TUESDAY, ceiling, people
from tests.support.policies import write_policy


class Nights:
    """Releases of one ledger up to the drawing: counted, solved, looked back on, entered; nothing is drawn."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.private, self.key, self.warnings = folder, folder / "private", "aa" * 8, [""]
        self.private.mkdir()

    def __call__(self, counts=MONDAY, labels=("x0", "x1", "x2"), **changes) -> dict:
        """The composed part of the entry of one more release."""
        policy = funnel.load(write_policy(self.folder, **(SMALL | changes)))
        joint = as_joint(policy, np.array(counts), labels)
        solved = protect(joint, policy.privacy, policy.mechanism, policy.shares(), minimum=1)
        release = an_id(len(self.entries) + 1)
        permanent = policy.draws.kind == "permanent"
        source, told = self.key if permanent else release, whose(self.private, release)
        found = compose(policy, solved, release, source, self.entries, told)
        check_promises(policy, found, release)
        self.warnings = warnings(found)
        path = self.folder / "protocol.json"
        path.write_bytes(schema.write(protocol_file(solved.protocols)))
        keep(self.private, path)
        entry = an_entry(
            release,
            protocol_sha256=sha256_file(path),
            draws=policy.draws.kind,
            key_fingerprint=self.key if permanent else None,
            entity=found.drawn[0].entity,
            drawn=tuple(one.told() for one in found.drawn),
            promises=found.promises,
            identity=found.identity,
        )
        Journal(self.private).append(entry)
        return asdict(found.together) | {"alone": found.alone}

    @property
    def entries(self) -> tuple[ReleaseEntry, ...]:
        return Journal(self.private).releases()


def as_joint(policy: Policy, table: np.ndarray, labels: Sequence[str]) -> Joint:
    """N[s, x] as the joint of the policy's blocks; a second block z is the parity of s + x."""
    cells, counts = np.argwhere(table > 0), table[table > 0]
    blocks = [Alphabet(policy.blocks[0].columns, tuple((one,) for one in labels))]
    if len(policy.blocks) > 1:
        cells = np.column_stack([cells, cells.sum(axis=1) % 2])
        blocks.append(Alphabet(policy.blocks[1].columns, (("even",), ("odd",))))
    secret = Alphabet(policy.sensitive, tuple((f"s{i}",) for i in range(len(table))))
    return Joint(secret, tuple(blocks), cells, counts)


@pytest.fixture
def night(tmp_path) -> Nights:
    return Nights(tmp_path)


@pytest.fixture
def run(tmp_path, key, monkeypatch):
    """Make a real release of a table of people."""
    monkeypatch.setenv("FUNNEL_KEY", key)

    def make(counts=MONDAY, **changes) -> dict:
        people(tmp_path, counts)
        return funnel.run(write_policy(tmp_path, **(SMALL | changes))).as_dict()

    return make


def bins(*edges: float) -> list[dict]:
    return [{"name": "n", "bins": list(edges)}]


def test_a_repetition_under_one_key_adds_nothing(night):
    first = night()
    second = night()
    for number, found in enumerate((first, second), start=1):
        assert found["figure"] == found["alone"]
        assert (found["releases"], found["how"]) == (number, "exact")
        assert night.warnings == []
    assert [entry.own.together.figure for entry in night.entries] == [first["figure"]] * 2


def test_a_new_protocol_under_one_key_is_measured_on_the_overlap(night):
    first = night()
    second = night(TUESDAY)
    assert first["figure"] < second["figure"] <= ceiling(TUESDAY) + 1e-4
    (warning,) = night.warnings
    assert "release 2" in warning
    assert f"{second['figure']:.4f} nats" in warning


def test_a_new_key_costs_what_a_second_answer_tells(night):
    alone = night()["figure"]
    night.key = "bb" * 8
    rotated = night()
    assert rotated["how"] == "exact"
    assert alone < rotated["figure"] <= min(2 * rotated["varying"], ceiling(MONDAY)) + 1e-4


def test_fresh_draws_creep_up_to_the_ceiling(night):
    figures = [night(**FRESH)["figure"] for _ in range(8)]
    assert figures == sorted(figures)
    assert len(set(figures)) == 8
    assert figures[-1] <= ceiling(MONDAY) + 1e-4


def test_many_fresh_nights_stay_quick_and_are_bounded(night):
    """A year of fresh nights is entered without being measured one by one; the next run still is exact or bounded."""
    night(**FRESH)
    (entry,) = night.entries
    year = [entry, *(replace(entry, release=an_id(2 + i)) for i in range(364))]
    policy = funnel.load(write_policy(night.folder, **(SMALL | FRESH)))
    joint = as_joint(policy, np.array(MONDAY), ("x0", "x1", "x2"))
    solved = protect(joint, policy.privacy, policy.mechanism, (1.0,), minimum=1)
    found = compose(policy, solved, an_id(400), "tonight", year, whose(night.private, an_id(400))).together
    assert (found.releases, found.how) == (366, "ceiling")
    assert found.figure == pytest.approx(ceiling(MONDAY), abs=1e-4)
    assert found.varying == pytest.approx(366 * entry.own.together.varying, rel=1e-2)


def test_the_figure_never_falls(night):
    before = night(privacy={"notion": "ldp", "epsilon": 0.3})
    after = night([[50, 40, 30], [50, 40, 31]], privacy={"notion": "ldp", "epsilon": 0.01})
    assert after["figure"] == max(before["figure"], after["measured"])


def test_another_measure_has_a_figure_of_its_own(night):
    night()
    told = night(privacy={"notion": "mutual-information", "epsilon": 0.002})
    assert (told["measure"], told["how"]) == ("mutual_information", "exact")
    assert 0 < told["figure"] <= mutual_information(np.array(MONDAY)) + 1e-4


def test_a_column_more_is_measured_with_the_rest(night):
    first = night()
    second = night(public=["x", "z"])
    assert second["how"] == "exact"
    assert second["figure"] >= first["figure"]


def test_other_bins_without_a_common_label_add_up(night):
    first = night(public=bins(0, 1), labels=("a", "b", "c"))
    second = night(public=bins(0, 2), labels=("d", "e", "f"))
    assert second["how"] == "sum"
    assert second["figure"] == pytest.approx(second["alone"] + first["varying"], abs=2e-4)


def test_bins_that_share_a_label_share_its_uniform_and_nothing_is_known(night):
    """The same text under both: one uniform serves two meanings, and only infinity is sound."""
    night(public=bins(0, 1), labels=("a", "b", "c"))
    found = night(public=bins(0, 2), labels=("d", "e", "c"), accept="unbounded")
    assert found["figure"] is None
    assert found["varying"] is None
    assert night.warnings[0].startswith("No finite bound is known: what all releases so far tell together about s")


def test_another_key_makes_other_bins_independent(night):
    first = night(public=bins(0, 1), labels=("a", "b", "c"))
    night.key = "bb" * 8
    found = night(public=bins(0, 2), labels=("d", "e", "c"))
    assert found["figure"] == pytest.approx(found["alone"] + first["varying"], abs=2e-4)


def test_rare_values_that_were_one_value_are_not_those_of_another_night(night):
    """With `top`, what `other` stands for follows from the values beside it."""
    top = {"public": [{"name": "x", "top": 2}]}
    night(**top)
    same = night(TUESDAY, **top)
    assert same["how"] == "exact"
    night.key = "bb" * 8
    assert night(labels=("x0", "x3", "x2"), accept="unbounded", **top)["how"] == "sum"


def test_another_entity_column_has_unknown_uniforms(night):
    night()
    found = night(TUESDAY, source={"table": "people.parquet", "entity": "other_id"})
    assert (found["figure"], found["how"]) == (pytest.approx(ceiling(TUESDAY), abs=1e-4), "ceiling")


def test_a_protocol_that_reads_the_secret_has_no_ceiling(night):
    reading = {"mechanism": "conditional-reporting", "privacy": {"notion": "lip", "epsilon": 0.2}}
    first = night(**reading)
    found = night(TUESDAY, **reading)
    assert found["how"] == "exact"
    assert found["figure"] >= first["figure"]
    other = {"source": {"table": "people.parquet", "entity": "other_id"}, "accept": "unbounded"}
    refused = night(TUESDAY, **(reading | other))
    assert refused["figure"] is None


def test_sets_are_composed_while_they_are_few(night):
    unary = {"mechanism": "unary-encoding", "privacy": {"notion": "ldp", "epsilon": 0.2}}
    first = night(**unary)
    second = night(TUESDAY, **unary)
    assert second["how"] == "exact"
    assert first["figure"] < second["figure"] <= ceiling(TUESDAY) + 1e-4


@pytest.mark.parametrize("notion", ["lip", "ldp", "pml", "alip", "srlip", "ldp-x", "rldp"])
def test_every_notion_measures_the_composed_channel(night, notion):
    privacy = {"privacy": {"notion": notion, "epsilon": 0.2}}
    if notion == "rldp":
        privacy["privacy"]["confidence"] = 0.5
    first = night(**privacy)
    night.key = "bb" * 8
    second = night(**privacy)
    assert second["how"] == "exact"
    assert first["figure"] < second["figure"]
    if notion == "ldp-x":
        assert second["figure"] == pytest.approx(2 * first["figure"], abs=2e-4)


def test_the_usual_ldp_of_a_new_value_adds_up(night):
    """Of the usual LDP records are compared that were drawn for alike; nobody is told apart by being new."""
    usual = {"privacy": {"notion": "ldp-x", "epsilon": 0.2}}
    first = night(labels=("x0", "x1", "x9"), **usual)
    night.key = "bb" * 8
    found = night(**usual)
    assert found["how"] == "sum"
    assert found["figure"] <= first["varying"] + found["alone"] + 2e-4


# The budget.


def test_a_release_beyond_the_budget_is_refused(night):
    night()
    with pytest.raises(LedgerError) as refused:
        night(TUESDAY, budget=0.2)
    assert refused.value.code == "budget"
    assert "together with the 1 before it" in refused.value.message
    assert "the budget is 0.2" in refused.value.message
    assert "Nothing was published" in (refused.value.advice or "")
    assert len(night.entries) == 1


def test_a_release_within_the_budget_is_made(night):
    first = night(budget=0.2)
    again = night(budget=first["figure"])
    assert again["figure"] == first["figure"]


def test_no_finite_bound_is_beyond_every_budget(night):
    night(public=bins(0, 1))
    with pytest.raises(LedgerError, match="no finite bound"):
        night(public=bins(0, 2), budget=1e6)


# What the ledger keeps.


def test_every_protocol_is_kept_by_its_hash(night):
    night()
    night()
    night(TUESDAY)
    hashes = {entry.protocol_sha256 for entry in night.entries}
    kept = night.private / FOLDER
    assert {path.stem for path in kept.iterdir()} == hashes
    assert len(hashes) == 2
    for path in kept.iterdir():
        assert path.stat().st_mode & 0o077 == 0
        assert kept_protocol(night.private, path.stem) is not None


def test_a_damaged_copy_stops_the_next_release(night):
    night()
    (path,) = (night.private / FOLDER).iterdir()
    path.write_text(path.read_text().replace("1", "2", 1))
    with pytest.raises(LedgerError, match="not the one that was released"):
        night()


def test_a_lost_copy_is_found_in_the_release_or_bounded(night):
    first = night()
    (path,) = (night.private / FOLDER).iterdir()
    published = night.folder / "releases" / an_id(1) / "protocol.json"
    published.parent.mkdir(parents=True)
    path.rename(published)
    assert night(TUESDAY)["how"] == "exact"
    published.write_text("{}")
    found = night(TUESDAY)
    assert found["how"] == "ceiling"
    assert found["figure"] == pytest.approx(ceiling(TUESDAY), abs=1e-4)
    assert found["figure"] >= first["figure"]


def test_more_protocols_than_are_composed(night, monkeypatch):
    night()
    monkeypatch.setattr(history, "MOST_PROTOCOLS", 0)
    found = night(TUESDAY)
    assert MOST_PROTOCOLS >= 365
    assert found["how"] == "ceiling"
    assert found["figure"] == pytest.approx(ceiling(TUESDAY), abs=1e-4)


# Real releases.


def test_what_a_run_says_and_publishes(run, tmp_path):
    first = run()
    second = run(TUESDAY)
    # Another warning, of what the whole table tells, hangs on the draws.
    said = [[one for one in night["warnings"] if "in this ledger" in one] for night in (first, second)]
    assert (said[0], first["composed"]["releases"]) == ([], 1)
    (warning,) = said[1]
    told = json.loads((Path(second["release"]) / "release.json").read_text())["composed"]
    figure = second["composed"]["figure"]
    assumed = ["identifiers unchanged", "values unchanged", "comings and goings tell nothing"]
    assert told == {"leakage": round_up(figure, 1), "how": "unchanged", "releases": 2, "assumes": assumed}
    assert f"{figure:.4f}" in warning
    assert json.loads((Path(first["release"]) / "release.json").read_text())["composed"] is None
    for folder in (Path(second["release"]), tmp_path / "private" / Path(second["release"]).name):
        report = json.loads((folder / "report.json").read_text())
        (limit,) = [one["text"] for one in report["limits"] if one["title"] == "Several releases"]
        assert f"{told['leakage']:.1f} nats" in limit
    entry = Journal(tmp_path / "private").releases()[-1]
    assert schema.as_json(entry.own.together) == second["composed"]
    assert kept_protocol(tmp_path / "private", entry.protocol_sha256) is not None


def test_a_refused_run_leaves_nothing_behind(run, tmp_path):
    before = sorted(path.name for path in tmp_path.rglob("*"))
    with pytest.raises(LedgerError, match="the budget is"):
        run(budget=0.001)
    added = {path.name for path in tmp_path.rglob("*")} - set(before)
    assert added == {"people.parquet", "policy.yaml", "private", "releases", ".lock"}


@pytest.fixture
def read(monkeypatch) -> Counter[str]:
    """How many records of each kind were read from files."""
    found = Counter[str]()

    def counting(record, file, raw):
        found[record.__name__] += 1
        return genuine(record, file, raw)

    genuine = schema.read
    monkeypatch.setattr(schema, "read", counting)
    monkeypatch.setattr(opened, "read", counting)
    return found


def test_a_night_reads_no_more_of_those_before_it_the_more_there_are(run, read):
    """One digest that shows that values change will do, and every line of the ledger is read once."""
    told = []
    for night in range(6):
        read.clear()
        run([[60 + night, 40, 30], [30, 50, 45]])
        told.append((read["PeopleFile"], read["Line"]))
    assert told[2:] == [told[1]] * 4, told


def test_an_audit_of_many_nights_reads_each_of_their_lines_and_digests_once(run, read, tmp_path):
    for night in range(4):
        run([[60 + night, 40, 30], [30, 50, 45]])
    read.clear()
    assert funnel.audit_history(tmp_path / "releases", tmp_path / "private").passed
    assert (read["Line"], read["PeopleFile"]) == (4, 4)
