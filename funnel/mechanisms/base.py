"""What every mechanism offers: a protocol for one block that keeps a notion's bound."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from funnel.data import AnyProtocol, Joint, Protocol
from funnel.data.channel import released_table
from funnel.data.protocol import MAX_BITS
from funnel.errors import SolverError
from funnel.measure import clock
from funnel.measure.information import released_information
from funnel.notions import NOTIONS, Demand, Notion
from funnel.text import number

if TYPE_CHECKING:
    from funnel.data.alphabet import Alphabet
    from funnel.optimise.certificate import Certificate, Prices
    from funnel.optimise.cost import Extent

LOSS = 2e-5
"""Share of the information that rounding an optimum to integers may cost; it decides how fine the weights are."""
NEAR = 1e-4
"""Share of the information by which a calibrated mechanism on few bits may differ from itself on many."""

_SEARCHING = 0.8
"""Share of the time that is left by the clock for a search: rounding and measuring come after it."""
_SLACK = 20
"""The finest strength is found up to a part of 2^-20: it only says what coarser weights should come near to."""
_STEPS = 2
"""Steps, of as many parts as X has values, by which a coarse strength may be off before nobody looks there."""


@dataclass(frozen=True)
class Solved:
    """A protocol for one block; `bound` is a certified upper bound of I(X;Y) in nats, None if none is claimed.

    `certificate` is what shows it: about rows over public values, or over those of the secret, which bound I(S;Y)
    and with it I(X;Y) <= H(X|S) + I(S;Y).
    """

    protocol: AnyProtocol
    bound: float | None
    how: str
    certificate: Certificate | None = None
    about: Literal["public", "secret"] = "public"
    totals: Totals | None = None

    def unproven(self) -> Solved:
        """The same without what was shown of this block alone, or of other beliefs than the true ones."""
        kept = None if self.totals is None else replace(self.totals, prices=None)
        return replace(self, bound=None, certificate=None, totals=kept)


@dataclass(frozen=True, eq=False)
class Totals:
    """What a protocol of least expected cost leaves of totals.

    `deviation` is the largest |E[M_y] - N_y| in records, None where totals are not kept; `prices` show that no protocol
    of the notion costs less than `optimum`, None where other blocks are released beside, or what was kept is stricter.
    """

    deviation: float | None
    optimum: float
    prices: Prices | None


@dataclass(frozen=True)
class Outlook:
    """A search over a cone that is to come: its sizes at most, seconds and share of H(X) at which it ends."""

    extent: Extent
    time_limit: float
    gap: float

    def words(self) -> str:
        """For a plan."""
        from funnel.optimise.cost import expected_cost

        return f"{expected_cost(self.extent).words()}; ends after {self.time_limit:g} s or within {self.gap:g} of H(X)"

    def as_dict(self) -> dict[str, Any]:
        """JSON form."""
        from funnel.optimise.cost import expected_cost

        return expected_cost(self.extent).as_dict() | {"time_limit": self.time_limit, "gap": self.gap}


@dataclass(frozen=True)
class Choice:
    """Mechanisms to choose from, ready to solve, by name; and the seconds that they have together."""

    ready: dict[str, Mechanism]
    seconds: float


class Mechanism(BaseModel, ABC):
    """A mechanism with its options; validated straight from the policy's `mechanism` section."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    reads_secret: ClassVar[bool] = False
    """Whether draws depend on the hidden secret as well as on x."""
    serves: ClassVar[frozenset[str] | None] = None
    """The notions that the mechanism is made for; None where `fits` asks them for what it needs."""
    releases_secret: ClassVar[bool | None] = None
    """True where the secret must be among the public columns, False where it must not, None where both will do."""

    reference_for: ClassVar[frozenset[str]] = frozenset()
    """Notions that the mechanism does *not* keep, but shows the cost of: it keeps the one that it serves instead."""
    plain: ClassVar[bool] = True
    """Whether what it releases are values of X, one each; `auto` looks at no other, and no other answers cells."""

    shows_shares: ClassVar[bool] = False
    """Whether means of P(x|s) of each block stand in the weights themselves."""
    needs_numbers: ClassVar[bool] = False
    """Whether every public column must be rounded to numbers."""

    of_counts: ClassVar[bool] = True
    """Whether chances follow from the counts; else from epsilon and the number of values alone."""
    any_form: ClassVar[bool] = False
    """Whether nothing is said of its protocols but what is measured: one that was made for other counts serves too."""
    of_beliefs: ClassVar[bool] = False
    """Whether it makes protocols from rounded beliefs alone (`data.beliefs`)."""

    kind: str

    @abstractmethod
    def solve(self, joint: Joint, demand: Demand) -> Solved:
        """The protocol for a joint of one block, which must keep the demand of the notion. Raises SolverError."""

    def check_values(self, block: Alphabet) -> None:
        """Refuse a block whose values it can make nothing of, before anything is solved or spent. Raises PlanError."""

    @classmethod
    def fits(cls, notion: type[Notion]) -> bool:
        """Whether the mechanism has what a notion asks for; asked where it is not made for some by name."""
        return True

    @classmethod
    def one_block(cls, notion: type[Notion]) -> bool:
        """Whether it keeps the notion only where the policy has a single public block."""
        return False

    @classmethod
    def served(cls) -> list[str]:
        """The names of the notions that the mechanism can keep."""
        return [
            name
            for name, notion in NOTIONS.items()
            if (cls.fits(notion) if cls.serves is None else name in cls.serves)
        ]

    @classmethod
    def misfit(cls, notion: str, *, secret_public: bool) -> str | None:
        """Why the mechanism cannot serve a notion, in words that follow its name; None where it can."""
        if notion not in (served := cls.served()):
            return f"does not serve the notion {notion}, only {', '.join(sorted(served))}"
        if cls.releases_secret is True and not secret_public:
            return "releases the secret too, randomised: name the sensitive columns under `public` as well"
        if cls.releases_secret is False and secret_public:
            return "needs a secret that is not released: remove it from `public`"
        return None

    def may_read_secret(self, notion: str, *, secret_public: bool) -> bool:
        """Whether draws under a notion might depend on the hidden secret: what a plan must know beforehand."""
        return self.reads_secret

    def choice(self, notion: str, *, secret_public: bool) -> Choice | None:
        """What the mechanism chooses from under a notion; None for one that solves blocks itself."""
        return None

    @property
    def of_totals(self) -> Literal["kept", "free"] | None:
        """Whether every total stays as it is on average; None for a mechanism that is not about totals."""
        return None

    def form_of_sets(self) -> str | None:
        """How sets of values are written; None for a mechanism that releases plain values."""
        return None

    def outlook(self, extent: Extent) -> Outlook | None:
        """What to expect of the search over a cone of these sizes; None for a mechanism that searches none."""
        return None

    def forecast(self, notion: Notion, secret: int, public: int) -> str:
        """How a problem of c = `secret` and a = `public` values would be solved without such a search, in words."""
        return "bisection on the measured leakage"


def searching(time_limit: float) -> float:
    """Seconds for a search that may take so many: no more than the clock leaves, with some for what comes after."""
    return min(time_limit, _SEARCHING * clock.left())


def calibrate(build: Callable[[int, int], Protocol], joint: Joint, demand: Demand) -> Protocol:
    """The most informative protocol of a one-parameter family, on as few bits as that needs.

    `build(strength, bits)` gives the protocol whose 2^bits parts hold `strength` parts of signal, 0 up to
    2^bits (all signal: X itself). Leakage is non-decreasing in the strength ([DS] section VII), up to
    rounding, so bisection on integers finds it; the last word has the measurement. The finest weights say what
    there is to keep, and about where coarser ones must look.
    Raises SolverError where not even the finest weights keep the bound, or the time is over.
    """

    def strongest(bits: int, guess: int, step: int = 1, slack: int = 0) -> int | None:
        return _strongest(lambda part: demand.keeps(build(part, bits).weights), bits, guess, step, slack)

    for finest in (32, 48, MAX_BITS):
        strength = strongest(finest, 1 << finest, 1 << (finest - 1), _SLACK)
        if strength is not None:
            break
    else:
        raise nothing_kept(demand)
    wanted, a = _utility(joint, build(strength, finest)), len(joint.blocks[0])
    for bits in range(4, finest, 2):
        guess = strength >> (finest - bits)
        if _off(_utility(joint, build(guess, bits)), wanted) > NEAR + _STEPS * a / max(guess, 1):
            continue
        coarse = strongest(bits, guess)
        # Near from both sides: rounding can also gain, but then it is no longer the mechanism that was named.
        if coarse is not None and _off(_utility(joint, build(coarse, bits)), wanted) <= NEAR:
            return build(coarse, bits)
    return build(strength, finest)


def nothing_kept(demand: Demand) -> SolverError:
    """Not even the weakest signal keeps the bound."""
    fitting = "greedy-funnel" if demand.notion.notion == "mutual-information" else "optimal"
    return SolverError(
        "nothing-to-release",
        f"no setting of the mechanism that can be drawn exactly (weights over a power of two) keeps "
        f"{demand.notion.notion} at epsilon {number(demand.notion.epsilon)} on this table",
        status="empty",
        advice=f"`mechanism: {fitting}` may keep something, and so may the public columns of several blocks in one; "
        f"or use {demand.notion.looser}.",
    )


def _strongest(keeps: Callable[[int], bool], bits: int, guess: int, step: int, slack: int) -> int | None:
    """The largest strength of 2^bits that keeps the bound, near a guess; None where not even 0 does.

    With `slack`, up to a part of 2^-slack below the largest. Steps, each twice the one before, lead away from the
    guess until the bound lies between two strengths, then bisection. Raises SolverError when the time is over.
    """
    low, high = 0, 1 << bits
    if keeps(guess):
        low = guess
        while low + step < high and keeps(low + step):
            low, step = low + step, 2 * step
        high = min(low + step, high)
        if low == 1 << bits or (high == 1 << bits and keeps(high)):
            return 1 << bits
    else:
        high = guess
        while high - step > 0 and not keeps(high - step):
            high, step = high - step, 2 * step
        low = max(high - step, 0)
        if low == 0 and not keeps(0):
            return None
    while high - low > max(1, low >> slack if slack else 0):
        clock.check()
        middle = (low + high) // 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def _off(utility: float, wanted: float) -> float:
    """How far a utility is from the one wanted, as a part of it; rounding noise where there is none to want."""
    return abs(utility - wanted) / max(wanted, 1e-12)


def _utility(joint: Joint, protocol: Protocol) -> float:
    """I(X;Y) in nats."""
    return released_information(joint, [protocol], released_table(joint, [protocol]))
