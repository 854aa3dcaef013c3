"""One reading that counts and draws, and the table in a database: killed at every step."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tests.support.postgres import Server
from tests.trials.faulting import oracle
from tests.trials.faulting.case import Case, Tried
from tests.trials.faulting.fuse import Harm
from tests.trials.faulting.world import ROWS, TABLE, Bench, World

LOCKED = ("run", "policy.yaml", "--locked", "--json")
ALSO = ("also", "policy.yaml", "--json")
RUN = ("run", "policy.yaml", "--json")
ASKED = ("execute", "adbc_ingest", "commit")
OLD = "funnel release 20200101T000000Z-000000 of plain"


def places(bench: Bench, server: Server | None) -> Iterator[Case]:
    """Every step of a run that reads once; where there is a server, all that a run and `also` ask of it."""
    for at, step in enumerate(bench.steps("locked-1", *LOCKED)):
        yield Case("killed in a run of one reading", f"{at} {step}", "locked-1", partial(_locked, at))
    if server is None:
        return
    for what, command in (("the database of a run", RUN), ("`also`", ALSO)):
        for at, step in _steps(bench, server, command):
            yield Case(f"killed in {what}", f"{at} {step}", "also-1", partial(_sent, server, command, at))


def _locked(at: int, bench: Bench, world: World) -> Tried:
    """Then it can be done again, under the same lock."""
    outcomes = [bench.run(world, *LOCKED, harm=Harm(str(world.folder), "kill", at))]
    again = bench.run(world, *LOCKED)
    wrong = [f"it cannot be done again: {again.err.strip()[-300:]}"] * (again.code != 0)
    return Tried([*outcomes, again], wrong=wrong)


def _steps(bench: Bench, server: Server, command: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """The steps of a command that nothing happens to, of which those that ask the database something, and the last."""
    log = bench.root / "steps"
    with bench.world("also-1") as world:
        _own(bench, world, server)
        outcome = bench.run(world, *command, harm=Harm(str(world.folder), log=str(log), database=True))
        assert outcome.code == 0, outcome
    steps = [line.split()[0] for line in log.read_text().splitlines()]
    yield from ((at, step) for at, step in enumerate(steps) if step in ASKED or at == len(steps) - 1)


def _own(bench: Bench, world: World, server: Server) -> str:
    """The world's own table, with an old release in it."""
    table = f"public.{bench.root.name.lower()}"
    policy = world.folder / "policy.yaml"
    policy.write_text(policy.read_text().replace(TABLE, table))
    server.run(
        f"DROP TABLE IF EXISTS {table}; CREATE TABLE {table} AS SELECT 'p' AS x, 'u' AS y; "
        f"COMMENT ON TABLE {table} IS '{OLD}'"
    )
    return table


def _sent(server: Server, command: tuple[str, ...], at: int, bench: Bench, world: World) -> Tried:
    """The table is the old one or the new one, whole; and `also` writes what is not there."""
    table = _own(bench, world, server)
    outcome = bench.run(world, *command, harm=Harm(str(world.folder), "kill", at, database=True))
    newest = max(path.name for path in world.to.iterdir() if path.name[0] == "2")
    new = f"{ROWS} funnel release {newest} of plain"
    found = _there(server, table)
    wrong = [f"the table holds {found}"] * (found not in (f"1 {OLD}", new))
    again = bench.run(world, *ALSO)
    wrong += [f"also: {one}" for one in oracle.refusal(again)]
    wrong += [f"`also` leaves {found}"] * ((found := _there(server, table)) != new)
    return Tried([outcome], wrong=wrong)


def _there(server: Server, table: str) -> str:
    """How many rows it has, and what its comment says."""
    return server.run(f"SELECT count(*) || ' ' || obj_description('{table}'::regclass, 'pg_class') FROM {table}")
