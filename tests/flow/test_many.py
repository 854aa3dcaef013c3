"""Many policies in one run: each whatever became of the others, a line of JSON for each, the worst of their codes."""

from __future__ import annotations

import json
import re
import stat

import pytest

import funnel
from funnel import api
from funnel.cli.metrics import exposition
from tests.support.people import MONDAY, SMALL, people
from tests.support.policies import write_policy


@pytest.fixture
def folder(tmp_path):
    """Three policies over one table: a good one, one over its budget, one with a mistake; and a lock among them."""
    people(tmp_path, MONDAY)
    for name, changes in (
        ("good", {"budget": 1.5}),
        ("spent", {"budget": 0.01}),
        ("wrong", {"sensitive": ["nothing"]}),
    ):
        own = {"name": name, "release": {"to": f"out/{name}", "private": f"kept/{name}"}}
        write_policy(tmp_path, **(SMALL | own | changes)).rename(tmp_path / f"{name}.yaml")
    (tmp_path / "good.lock.yaml").write_text("no lock of anything\n")
    return tmp_path


def test_one_failing_leaves_the_others_alone_and_each_has_a_line(command, folder):
    """The good one comes last: what failed before it did it no harm."""
    named = [folder / f"{name}.yaml" for name in ("wrong", "spent", "good", "good.lock")]
    done = command("run", "--json", *named)
    told = [json.loads(line) for line in done.out.splitlines()]
    assert [one["policy"] for one in told] == [str(path) for path in named[:3]]
    assert [one["code"] for one in told] == [1, 4, 0]
    assert done.code == 1
    for one in told:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", one["started"])
        assert one["seconds"] >= 0
    assert [one["left"] for one in told[:2]] == [None, 0.01]
    assert told[2]["left"] == pytest.approx(1.5 - told[2]["composed"]["figure"], abs=1e-4)
    assert [one.get("error", {}).get("code") for one in told] == ["unknown-column", "budget", None]
    assert [one["release"] is None for one in told] == [True, True, False]
    assert (folder / "out/good/latest/release.json").exists()
    assert not (folder / "out/spent").exists() or not list((folder / "out/spent").iterdir())


def test_people_are_told_which_policy_it_is(command, folder):
    done = command("run", folder / "spent.yaml", folder / "good.yaml", "--dry-run")
    assert done.code == 4
    assert done.out.startswith(
        f"{folder / 'spent.yaml'}:\n{folder / 'good.yaml'}:\nreleased   nothing (dry run)"
    )
    assert done.err.startswith(f"{folder / 'spent.yaml'}: exit code 4\n")
    assert "[budget]" in done.err
    twice = command("run", folder / "good.yaml", folder / "good.yaml")
    assert twice.code == 2
    assert "named twice" in twice.err


def test_a_bug_in_one_is_told_as_one_and_the_others_are_run(command, folder, monkeypatch):
    from funnel.plan import run

    whole = run.execute

    def sometimes(policy, **given):
        if policy.name == "spent":
            raise ZeroDivisionError("s1 of Mr Smith")
        return whole(policy, **given)

    monkeypatch.setattr(run, "execute", sometimes)
    done = command(
        "run",
        "--json",
        "--traceback",
        "--dry-run",
        *(folder / f"{one}.yaml" for one in ("spent", "wrong", "good")),
    )
    assert [json.loads(line)["code"] for line in done.out.splitlines()] == [3, 1, 0]
    assert done.code == 3
    assert "Smith" not in done.out
    assert "in sometimes" in done.err


FAMILY = re.compile(
    r"# HELP (?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*) [^\n]+\n# TYPE (?P=name) gauge\n(?P<samples>(?:[^#\n][^\n]*\n)+)"
)
SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)\{policy="((?:[^"\\\n]|\\[\\"n])*)"\} (\S+)\n')

PLAIN = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def parsed(text: str) -> dict[str, dict[str, float]]:
    """Families by name, each with its samples by policy; all of the text is of the format, and no sample twice."""
    found, end = {}, 0
    for family in FAMILY.finditer(text):
        assert family.start() == end
        end = family.end()
        samples = SAMPLE.findall(family["samples"])
        assert (
            "".join(f'{name}{{policy="{label}"}} {value}\n' for name, label, value in samples)
            == family["samples"]
        )
        assert {name for name, _, _ in samples} == {family["name"]}
        assert family["name"] not in found
        found[family["name"]] = {
            re.sub(r"\\.", lambda one: PLAIN[one[0]], label): float(value) for _, label, value in samples
        }
        assert len(found[family["name"]]) == len(samples)
    assert end == len(text)
    return found


def test_metrics_are_of_the_format_and_say_what_json_says(command, folder):
    odd = (folder / "good.yaml").rename(folder / 'a "good"\\one.yaml')
    named, target = [folder / "wrong.yaml", odd], folder / "funnel.prom"
    assert command("run", "--metrics", target, folder / "wrong.yaml").code == 1
    assert parsed(target.read_text())["funnel_run_code"] == {str(folder / "wrong.yaml"): 1}
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    target.chmod(0o644)
    done = command("run", "--json", "--metrics", target, *named)
    bad, good = (json.loads(line) for line in done.out.splitlines())
    found = parsed(target.read_text())
    assert stat.S_IMODE(target.stat().st_mode) == 0o644
    assert [path.name for path in folder.glob(".funnel*")] == []
    assert found["funnel_run_code"] == {str(named[0]): 1, str(odd): 0}
    assert found["funnel_run_seconds"] == {one["policy"]: one["seconds"] for one in (bad, good)}
    assert found["funnel_run_timestamp_seconds"].keys() == found["funnel_run_code"].keys()
    assert found["funnel_rows"] == {str(odd): good["rows"]}
    assert found["funnel_leakage_nats"] == {str(odd): good["leakage"]["ldp"]}
    assert found["funnel_epsilon_nats"] == {str(odd): 0.2}
    assert found["funnel_budget_left_nats"] == {str(odd): good["left"]}
    assert "funnel_drift_share" not in found


def test_what_has_no_bound_is_infinite_and_drift_is_told():
    told = {
        "policy": "a",
        "code": 0,
        "seconds": 1.5,
        "started": "2026-01-02T03:04:05Z",
        "left": None,
        "rows": 7,
    }
    told |= {
        "leakage": {"lip": 1.0, "ldp": None},
        "composed": {"measure": "ldp"},
        "locked": {"distance": 0.25},
    }
    found = {name: one["a"] for name, one in parsed(exposition([told])).items()}
    assert found["funnel_leakage_nats"] == float("inf")
    assert found["funnel_drift_share"] == 0.25
    assert found["funnel_run_timestamp_seconds"] == 1767323045
    assert "funnel_budget_left_nats" not in found


def test_an_interrupt_leaves_the_metrics_of_the_run_before_and_a_log_of_events_one(command, folder, monkeypatch):
    """An empty file would let the series of all policies end, and whoever watches how old they are see nothing."""
    target, policies = folder / "funnel.prom", [folder / "good.yaml", folder / "wrong.yaml"]
    command("run", "--metrics", target, *policies)
    before, ran = target.read_bytes(), funnel.run

    def interrupted(policy, **given):
        if policy.name == "wrong.yaml":
            raise KeyboardInterrupt
        return ran(policy, **given)

    monkeypatch.setattr(api, "run", interrupted)
    for log in (("--log", "json"), ("--log=json",)):
        done = command("run", "--json", *log, "--metrics", target, *policies)
        assert done.code == 130
        assert [json.loads(line)["code"] for line in done.out.splitlines()] == [0]
        events = [json.loads(line) for line in done.err.splitlines()]
        assert (events[-1]["event"], events[-1]["policy"]) == ("interrupted", str(policies[1]))
        assert target.read_bytes() == before
    assert "[interrupted]" in command("run", *policies).err


def test_a_log_of_events_is_one_object_a_line(command, folder):
    done = command("run", "--log", "json", folder / "wrong.yaml", folder / "good.yaml")
    events = [json.loads(line) for line in done.err.splitlines()]
    assert {"time", "event", "policy"} <= set.intersection(*(set(one) for one in events))
    ends = [one for one in events if one["event"] == "ended"]
    assert [(one["code"], one.get("error", {}).get("code")) for one in ends] == [
        (1, "unknown-column"),
        (0, None),
    ]
    stages = [(one["event"], one["stage"]) for one in events if "stage" in one]
    assert [name for event, name in stages if event == "stage-begun"] == [
        name for event, name in stages[1::2]
    ]
    assert {event for event, _ in stages[1::2]} == {"stage-ended"}
    assert "audit" in dict(map(reversed, stages))
    assert "released" in done.out
