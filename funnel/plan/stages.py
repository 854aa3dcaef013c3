"""A plan: frozen, typed steps with their SQL. It holds no data values, so it can be hashed and diffed."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from funnel.format.canonical import encode


@dataclass(frozen=True)
class Scan:
    """Name the source's rows that the policy lets in."""

    title: ClassVar[str] = "scan"
    files: str
    statements: tuple[str, ...]


@dataclass(frozen=True)
class Inspect:
    """Count rows and present values per used column, before missing values are treated."""

    title: ClassVar[str] = "inspect"
    columns: tuple[str, ...]
    statement: str


@dataclass(frozen=True)
class Identify:
    """Check that no entity has two rows. The dense form serves integers in a narrow range."""

    title: ClassVar[str] = "identify"
    column: str
    integer: bool
    spread: str
    dense: str
    general: str


@dataclass(frozen=True)
class Count:
    """Count N[s, x] over the raw values and turn them into labels; `noise` is ε_est of a private estimate, in nats."""

    title: ClassVar[str] = "count"
    statements: tuple[str, ...]
    cells: str
    secret: tuple[str, ...]
    blocks: tuple[tuple[str, ...], ...]
    minimum: int
    noise: float | None = None


@dataclass(frozen=True)
class Solve:
    """Compute one protocol per block under the notion.

    `candidates` are the mechanisms that `auto` chooses from; with `search`, the shares are where the search
    for the best split begins.
    """

    title: ClassVar[str] = "solve"
    notion: str
    epsilon: float
    mechanism: str
    shares: tuple[float, ...]
    candidates: tuple[str, ...] = ()
    search: bool = False


@dataclass(frozen=True)
class Pin:
    """Take the protocols of a lock and measure them at tonight's counts; nothing is solved.

    Over a private estimate (`noise`, its ε_est in nats) they are measured at the noisy counts that the lock pins.
    """

    title: ClassVar[str] = "measure the lock"
    lock: str
    notion: str
    epsilon: float
    mechanism: str
    noise: float | None = None


@dataclass(frozen=True)
class Draw:
    """Stream the rows as codes and draw each block's released value."""

    title: ClassVar[str] = "draw"
    kind: str
    codes: tuple[str, ...]
    statement: str


@dataclass(frozen=True)
class Write:
    """Write the released rows, sorted by released value.

    `sets`: blocks of unary encoding are written as one list of values ("set") or as a 0/1 column for each value
    ("bits"), under names that the values give; None where every mechanism in question releases plain values.
    """

    title: ClassVar[str] = "write"
    columns: tuple[str, ...]
    types: tuple[str, ...]
    format: str
    sets: str | None = None


@dataclass(frozen=True)
class Audit:
    """Check the draws against the protocol, then every claim from the files written."""

    title: ClassVar[str] = "audit"


@dataclass(frozen=True)
class Publish:
    """Make the release visible, whole, in the published folder."""

    title: ClassVar[str] = "publish"
    to: str
    private: str


Step = Scan | Inspect | Identify | Count | Solve | Pin | Draw | Write | Audit | Publish


@dataclass(frozen=True)
class Plan:
    """What will be done for a policy, in order; `policy_sha256` ties it to the file that was compiled."""

    name: str
    policy_sha256: str
    steps: tuple[Step, ...]

    @property
    def counting(self) -> tuple[Step, ...]:
        """The steps up to the count of N[s, x], that included."""
        count = next(index for index, step in enumerate(self.steps) if isinstance(step, Count))
        return self.steps[: count + 1]

    @property
    def releasing(self) -> tuple[Step, ...]:
        """The steps after the count."""
        return self.steps[len(self.counting) :]

    def as_dict(self) -> dict[str, Any]:
        """JSON form: each step with its name and fields; nothing of noise where there is none."""
        steps = [
            {
                key: value
                for key, value in ({"step": step.title} | asdict(step)).items()
                if (key, value) != ("noise", None)
            }
            for step in self.steps
        ]
        return {
            "format": "funnel-plan/1",
            "name": self.name,
            "policy_sha256": self.policy_sha256,
            "steps": steps,
        }

    def text(self) -> str:
        """The JSON text that is hashed and kept as evidence."""
        return encode(self.as_dict()).decode()

    @property
    def sha256(self) -> str:
        """Hash of `text`."""
        return hashlib.sha256(self.text().encode()).hexdigest()
