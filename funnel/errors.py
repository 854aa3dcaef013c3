"""Every error funnel can raise: one tree, one catalogue of codes.

    FunnelError                 exit 1; 4 where a person must decide, 5 to try again (`EXITS`)
    ├── PolicyError             the policy is at fault; holds every problem found, with line and column
    ├── SourceError             the table is missing, unreadable, changed, or not what the policy says
    ├── PlanError               policy and table do not fit together
    ├── SolverError             no protocol could be computed (carries the solver's status)
    ├── DrawError               the key is at fault
    ├── ReleaseError            the release could not be written
    ├── LockError               the lock is missing, damaged, of another policy, or its claim no longer holds
    ├── LedgerError             the ledger is damaged or refuses the release
    ├── AccessError             this user may not read or write a file
    ├── AuditFailure            a claim does not hold (carries bound and achieved)
    └── InternalError           our bug; exit 3

An error is data: a stable code from `CATALOGUE`, what is wrong, where, and what to do next.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

CATALOGUE: dict[str, str] = {
    # policy
    "policy-unreadable": "the policy file cannot be read",
    "policy-syntax": "the policy is not valid YAML",
    "policy-too-large": "the policy is larger or deeper than any policy needs to be",
    "policy-alias": "the policy uses a YAML feature that policies do not need",
    "duplicate-key": "a key appears twice",
    "unknown-key": "a key is not part of the policy language",
    "missing-key": "a required key is absent",
    "wrong-type": "a value has the wrong type",
    "wrong-value": "a value is outside what is allowed",
    "unsupported": "this version of funnel does not offer the feature",
    "unfinished": "a place of the policy still says TODO",
    "epsilon": "epsilon must be a positive, finite number",
    "split": "the split of epsilon over the blocks does not add up",
    "bins": "the edges of the bins are not increasing numbers",
    "duplicate-column": "a column is named twice",
    "sensitive-public": "a sensitive column is also public",
    "mechanism-notion": "the mechanism does not serve the notion",
    "unknown-column": "a column is not in the source table",
    "filter": "the filter is not one plain expression over source columns",
    "entity": "the entity column cannot identify a person",
    "identify": "a key column cannot be published untouched",
    "column-type": "a column has a type that the policy's use of it does not allow",
    "release-path": "the release folders are not usable as named",
    # source
    "source-missing": "the source table does not exist",
    "source-unreadable": "the source table cannot be read",
    "source-unreachable": "the source table cannot be reached",
    "source-empty": "the source table has no rows to release",
    "source-nulls": "a used column has missing values",
    "source-all-null": "a used column holds nothing but missing values",
    "source-header": "the source table's header is not usable",
    "source-changed": "the source table changed while it was being read",
    "entity-repeated": "a person has more than one row",
    "entity-null": "a row has no entity",
    "identify-repeated": "rows of the release have the same key",
    "identify-null": "a row of the release has no key",
    "identifier": "a public column has a value of its own for most records",
    "below-minimum": "a public value has too few records",
    "below-bins": "a value lies below the first bin",
    "not-a-date": "a column of dates holds something else",
    "unseen-value": "a value is not among those that the lock knows",
    "undeclared-value": "a value is not among those that the policy declares",
    "formula": "a value would be carried out by a spreadsheet",
    "alphabet-too-large": "a domain has more values than a protocol can hold",
    "partition": "the table cannot lie in folders by the values of this column",
    "cells-support": "a wide block cannot have cells or values of the records that it asks for",
    "cells-most": "a wide block asks for more cells than a protocol can have",
    "cells-size": "the columns of a wide block take more combinations than can be held at once",
    "rare-values": "a column has values that too few records share",
    "nothing-to-propose": "the table has no columns that a starter policy could use",
    "one-secret": "the sensitive columns take a single value",
    # solver and mechanism
    "solver-time": "the solver did not finish in its time limit",
    "solver-size": "the problem is too large for the available solver",
    "solver-failed": "the solver failed",
    "nothing-to-release": "no informative release that satisfies the notion was found",
    "precision": "the bound needs finer weights than the sampler has",
    # draws and release
    "key-missing": "the key is not where the policy says",
    "key-unreadable": "the key cannot be read or is not a key",
    "key-permissions": "the key file can be read by others",
    "key-changed": "the key is not that of the last release",
    "key-unchanged": "the key is that of the last release",
    "key-write": "the key file could not be written",
    "release-write": "the release could not be written",
    "also-write": "the release is published, but may not be in the database that the policy names beside",
    "also-refused": "the release is published, and the database that the policy names beside does not take it",
    "disk-full": "the disk, or what may be written to it, is full",
    "release-busy": "another run is writing to the same folder",
    "library-missing": "an optional library is not installed",
    "release-unreadable": "the release cannot be read",
    "release-pruned": "the data of the release were taken away",
    "question": "the release cannot answer what is asked of it",
    "lock-missing": "the policy has no lock",
    "lock-damaged": "the lock is not as `funnel lock` wrote it",
    "lock-policy": "the lock belongs to another policy, or to an earlier state of this one",
    "lock-exists": "the policy has a lock already",
    "lock-leaks": "the pinned protocol does not keep its bound at these counts",
    "ledger": "the ledger is damaged",
    "cells-changed": "columns of a wide block were released before by other cells, or by cells filled otherwise",
    "budget": "the releases together would leak more than the policy's budget",
    "promise-ends": "the release would end what a policy has promised",
    "accept": "the policy accepts the end of a promise that nobody has made",
    "permission": "this user may not read or write a file",
    "unreachable": "a disk or a share does not answer",
    "no-path": "the system takes no such path",
    "audit-failed": "a claim of the release does not hold",
    "internal": "funnel has a bug",
    "interrupted": "the run was interrupted",
}

DONE, FAULT, USAGE, BUG, DECIDE, AGAIN = range(6)
"""Exit codes: done; policy, data, claim or disk at fault; wrong usage; our bug; a person must decide; try again."""
EXITS: dict[str, int] = {
    "internal": BUG,
    # drift, budgets, promises, keys: nothing is at fault, and nothing happens by itself
    **dict.fromkeys(("budget", "promise-ends", "key-changed", "cells-changed", "lock-leaks", "unseen-value"), DECIDE),
    # a rival, a full disk, a share or a table that is out of reach, or does not stand still, a database that did not
    # take a release
    **dict.fromkeys(("release-busy", "also-write", "disk-full", "unreachable"), AGAIN),
    **dict.fromkeys(("source-unreachable", "source-changed"), AGAIN),
}
"""The codes whose exit is another one than FAULT."""


def worst(codes: Iterable[int]) -> int:
    """The exit code of several: our bug before a fault, that before what a person must decide, that before what may be
    tried again."""
    return min(codes, key=(BUG, FAULT, DECIDE, AGAIN, DONE).index, default=DONE)


class FunnelError(Exception):
    """Base of all errors: `code` (a key of CATALOGUE), `message`, `where`, `advice`; `exit_code` for the CLI.

    `values` are people's: what an error prints goes into logs and mail, so no text and no JSON has them unasked.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        where: str | None = None,
        advice: str | None = None,
        values: str | None = None,
    ) -> None:
        if code not in CATALOGUE:
            raise KeyError(f"error code {code!r} is not in the catalogue")
        self.code, self.message, self.where, self.advice, self.values = code, message, where, advice, values
        super().__init__(self.text())

    @property
    def exit_code(self) -> int:
        """What a command that ends with this error exits with."""
        return EXITS.get(self.code, FAULT)

    def text(self, *, values: bool = False) -> str:
        """One paragraph for a person: where, what, the code, and what to do next; with people's `values` if asked."""
        place = f"{self.where}: " if self.where else ""
        named = f": {self.values}" if values and self.values else ""
        hint = f"\n  {self.advice}" if self.advice else ""
        return f"{place}{self.message}{named} [{self.code}]{hint}"

    def as_dict(self) -> dict[str, Any]:
        """The same for a program."""
        return {"code": self.code, "message": self.message, "where": self.where, "advice": self.advice}


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a policy; line and column count from 1 (0: the file as a whole)."""

    code: str
    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    suggestion: str | None = None

    def text(self) -> str:
        """`file:line:column: message [code]`, as editors and compilers print it."""
        hint = f"\n  {self.suggestion}" if self.suggestion else ""
        return f"{self.file}:{self.line}:{self.column}: {self.message} [{self.code}]{hint}"


class PolicyError(FunnelError):
    """A policy is at fault. `problems` holds all of them, in file order."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = sorted(problems, key=lambda p: (p.file, p.line, p.column))
        first = self.problems[0]
        super().__init__(
            first.code,
            first.message,
            where=f"{first.file}:{first.line}:{first.column}",
            advice=first.suggestion,
        )

    def text(self, *, values: bool = False) -> str:
        """Every problem on its own line; a policy's are no values of people."""
        return "\n".join(problem.text() for problem in self.problems)

    def as_dict(self) -> dict[str, Any]:
        """The first problem's code and message, and the list of all."""
        return super().as_dict() | {"problems": [asdict(problem) for problem in self.problems]}


class SourceError(FunnelError):
    """The source table is missing, unreadable, changed, or does not hold what the policy needs."""


class PlanError(FunnelError):
    """The policy and the table do not fit together."""


class SolverError(FunnelError):
    """No protocol was computed; `status` is one of time, size, failed, empty, precision."""

    def __init__(self, code: str, message: str, *, status: str, advice: str | None = None) -> None:
        self.status = status
        super().__init__(code, message, advice=advice)


class DrawError(FunnelError):
    """The key cannot be used, or what was drawn does not follow the protocol."""


class ReleaseError(FunnelError):
    """The release could not be written or read; `release` is the folder of one that everybody can see all the same."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        where: str | None = None,
        advice: str | None = None,
        values: str | None = None,
        release: str | None = None,
    ) -> None:
        self.release = release
        super().__init__(code, message, where=where, advice=advice, values=values)


class LockError(FunnelError):
    """The lock is missing or damaged, belongs to another policy, or what it claims no longer holds."""


class LedgerError(FunnelError):
    """The ledger is damaged, or has no room for the release."""


class AccessError(FunnelError):
    """This user may not read or write a file, or its disk does not answer; whatever else was concluded from that."""


class AuditFailure(FunnelError):  # noqa: N818  a claim that fails is not an error of the program
    """A claim does not hold; `bound` and `achieved` are what was promised and what was measured.

    What was measured may name values of people.
    """

    def __init__(self, message: str, *, bound: str, achieved: str, where: str | None = None) -> None:
        self.bound, self.achieved = bound, achieved
        super().__init__(
            "audit-failed", message, where=where, values=achieved, advice="Do not use this release; run funnel again."
        )


class InternalError(FunnelError):
    """Something that cannot happen did: our bug."""

    def __init__(self, message: str, *, values: str | None = None) -> None:
        advice = "Please report this with the output of --traceback."
        super().__init__("internal", message, values=values, advice=advice)
