"""Where a user may not read or write a file, that is what is said: who, where, what to do; not that something is lost.

The commands run in a process whose rights are those of the modes: root without the power to pass over them.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import funnel
from funnel.cli.metrics import write_metrics
from funnel.errors import AGAIN, LedgerError
from funnel.failed import as_error
from funnel.files import write_error
from tests.support.people import MONDAY, SMALL, people
from tests.support.policies import write_policy

POWERS = "-dac_override,-dac_read_search"
UNPRIVILEGED = ["setpriv", f"--bounding-set={POWERS}", f"--inh-caps={POWERS}"] if os.geteuid() == 0 else []
CASES = {
    "policy.yaml": (0o000, "read", "run"),
    "people.parquet": (0o000, "read", "run"),
    "key": (0o000, "read", "run"),
    "private/ledger.jsonl": (0o000, "read", "ledger"),
    "private/ledger.head": (0o000, "read", "run"),
    "private/.lock": (0o000, "read", "run"),
    "private": (0o500, "write into", "run"),
    "releases": (0o500, "write into", "run"),
    ".": (0o600, "enter", "check"),
}
SCRIPT = """
import contextlib, io, json, os, sys
from funnel.cli.app import main
told = []
for path, mode, command, policy in json.loads(sys.stdin.read()):
    before = os.stat(path).st_mode
    out, err = io.StringIO(), io.StringIO()
    os.chmod(path, mode)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([*command.split(), policy])
        except SystemExit as end:
            code = end.code
    os.chmod(path, before & 0o7777)
    told.append([code, out.getvalue() + err.getvalue()])
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> dict[str, tuple[int, str]]:
    """Of each case the exit code and what was said."""
    folder = tmp_path_factory.mktemp("access") / "work"
    folder.mkdir()
    people(folder, MONDAY)
    policy = write_policy(folder, **(SMALL | {"draws": {"key": "file:key"}}))
    funnel.write_key(folder / "key")
    funnel.run(policy)
    cases = [(folder / name, mode, command, policy) for name, (mode, _, command) in CASES.items()]
    return dict(zip(CASES, unprivileged(cases), strict=True))


def unprivileged(cases: Sequence[tuple[Path, int, str, Path]]) -> list[tuple[int, str]]:
    """Exit code and output of each command on a policy, while a path has a mode."""
    given = json.dumps([[str(path), mode, command, str(policy)] for path, mode, command, policy in cases])
    environment = os.environ | {"PYTHONPATH": str(Path(funnel.__file__).parent.parent)}
    done = subprocess.run(
        [*UNPRIVILEGED, sys.executable, "-c", SCRIPT], input=given, env=environment, capture_output=True,
        text=True, check=True, timeout=300,
    )  # fmt: skip
    return [(code, said) for code, said in json.loads(done.stdout)]


@pytest.mark.parametrize("name", CASES)
def test_wrong_rights_are_named_as_such(told, name):
    code, said = told[name]
    assert code == 1, said
    assert "[permission]" in said
    assert f"may not {CASES[name][1]} it; it belongs to user {os.geteuid()}" in said
    assert f"mode {CASES[name][0]:04o}" in said
    assert Path(name).name in said
    assert "backup" not in said
    assert "internal" not in said


def test_each_of_several_policies_is_pruned_though_one_has_a_folder_that_may_not_be_entered(tmp_path: Path) -> None:
    people(tmp_path, MONDAY)
    policies = list[Path]()
    for name in ("one", "two"):
        own = {"name": name, "release": {"to": f"out/{name}", "private": f"kept/{name}"}, "draws": {"kind": "fresh"}}
        policies.append(write_policy(tmp_path, **SMALL | own).rename(tmp_path / f"{name}.yaml"))
        for _ in range(2):
            funnel.run(policies[-1])
    first = {name: min((tmp_path / "out" / name).glob("*T*Z*")) for name in ("one", "two")}
    (code, said), = unprivileged([(first["one"], 0o000, f"prune --keep 1 {policies[0]}", policies[1])])
    assert code == 1
    assert "[permission]" in said and f"belongs to user {os.geteuid()}" in said
    assert (first["one"] / "data.parquet").exists() and not (first["two"] / "data.parquet").exists()


def test_a_folder_that_may_not_be_entered_is_neither_wrong_usage_nor_nothing(tmp_path: Path) -> None:
    people(tmp_path, MONDAY)
    made = funnel.run(write_policy(tmp_path, **SMALL | {"draws": {"kind": "fresh"}})).release
    private = tmp_path / "private"
    asked = [(private, 0o000, f"{one} --private {private}", made) for one in ("audit", "report")]
    evidence = private / Path(made).name
    asked += [(evidence, 0o000, f"audit --private {private}", one) for one in (made, Path(made).parent)]
    asked += [(made, 0o000, one, made) for one in ("audit", "estimate", "report", "verify --key funnel-public-1:AA==")]
    for code, said in unprivileged(asked):
        assert (code, "[permission]" in said, f"belongs to user {os.geteuid()}" in said) == (1, True, True), said


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_nobody_else_may_write_into_folders_that_are_made_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    """Who may write above the private folder could put another one in its place."""
    people(tmp_path, MONDAY)
    own = {"release": {"to": "out/deep/one", "private": "kept/deep/one"}, "draws": {"kind": "fresh"}}
    path = write_policy(tmp_path, **SMALL | own)
    before = os.umask(umask)
    try:
        release = Path(funnel.run(path).release)
        funnel.rebuild_report(release, tmp_path / "kept/deep/one", tmp_path / "full/deep")
    finally:
        os.umask(before)
    modes = {name: (tmp_path / name).stat().st_mode & 0o777 for name in
             ("kept", "kept/deep", "kept/deep/one", "out", "out/deep/one", "full", "full/deep")}  # fmt: skip
    assert modes == dict.fromkeys(modes, 0o755) | {"kept/deep/one": 0o700, "full/deep": 0o700}


def test_metrics_keep_owner_group_and_mode(tmp_path: Path) -> None:
    write_metrics(target := tmp_path / "funnel.prom", [])
    assert target.stat().st_mode & 0o777 == 0o640
    group = 1234 if os.geteuid() == 0 else max(os.getgroups())
    os.chown(target, -1, group)
    target.chmod(0o644)
    write_metrics(target, [])
    assert (target.stat().st_gid, target.stat().st_mode & 0o777) == (group, 0o644)


@pytest.mark.parametrize(
    "command", ["audit {}", "diff {} {}", "estimate {}", "report {}", "verify {} --key k", "check"]
)
def test_a_name_that_is_too_long_is_no_bug(cli, tmp_path: Path, command: str) -> None:
    long = "x" * 256
    path = write_policy(tmp_path, source={"table": f"{long}.parquet"}, draws={"kind": "fresh"})
    done = cli(*command.replace("{}", long).split(), *([path] if command == "check" else []), cwd=tmp_path)
    assert (done.code, "[no-path]" in done.err) == (1, True), done.err


def test_a_part_of_a_table_that_cannot_be_listed_is_not_left_out(tmp_path: Path) -> None:
    """The engine passes over it without a word, and so do Python's patterns."""
    for year in ("2023", "2024"):
        (tmp_path / "parts" / f"year={year}").mkdir(parents=True)
        people(tmp_path / "parts" / f"year={year}", MONDAY)
    policies = list[Path]()
    for name in ("parts", "parts/**/*.parquet", "parts/*/*.parquet"):
        home = tmp_path / f"policy{len(policies)}"
        home.mkdir()
        policies.append(write_policy(home, **SMALL | {"source": {"table": f"../{name}"}, "draws": {"kind": "fresh"}}))
    closed = tmp_path / "parts" / "year=2023"
    for mode, expected in ((0o000, 1), (0o755, 0)):
        for code, said in unprivileged([(closed, mode, "plan", one) for one in policies]):
            assert code == expected, said
            assert expected == 0 or ("year=2023" in said and "[permission]" in said)


def test_what_was_left_out_of_a_traceback_counts_and_other_errors_stay():
    def unreadable() -> None:
        try:
            raise PermissionError(13, "Permission denied", "/srv/ledger.jsonl")
        except OSError:
            raise LedgerError("ledger", "it is damaged") from None

    with pytest.raises(LedgerError) as damaged:
        unreadable()
    assert as_error(damaged.value).code == "permission"
    own = LedgerError("ledger", "it is damaged")
    assert as_error(own) is own
    assert as_error(FileNotFoundError("/srv")).code == "internal"


@pytest.mark.parametrize("number", [errno.ENOTCONN, errno.ESTALE, errno.EIO])
def test_a_share_that_does_not_answer_is_no_bug(number: int) -> None:
    told = as_error(OSError(number, os.strerror(number), "/net/out"))
    assert (told.code, told.exit_code, told.where) == ("unreachable", AGAIN, "/net/out")
    assert os.strerror(number) in told.message
    assert as_error(OSError(number, os.strerror(number))).code == "internal"  # of what, nobody says
    written = write_error(OSError(number, os.strerror(number)), Path("/net/out"))
    assert (written.code, written.exit_code, written.where) == ("unreachable", AGAIN, "/net/out")


def test_a_folder_that_is_a_link_to_itself_is_one_error(command, tmp_path: Path, key: str) -> None:
    """And no ledger that was lost."""
    people(tmp_path, MONDAY)
    (tmp_path / "loop").symlink_to("loop")
    for place, said in (("to", "it could not be written"), ("private", "Too many levels of symbolic links")):
        policy = write_policy(tmp_path, **SMALL | {f"release__{place}": "loop/here"})
        refused = command("run", policy, env={"FUNNEL_KEY": key})
        assert refused.code == 1 and said in refused.err and "backup" not in refused.err
