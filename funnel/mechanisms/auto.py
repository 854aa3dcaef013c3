"""Whichever mechanism keeps most of X, as measured on the table at hand."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from funnel.data import Joint
from funnel.errors import InternalError
from funnel.mechanisms.base import Choice, Mechanism, Solved
from funnel.mechanisms.single import SINGLE, named
from funnel.notions import Demand, Notion


class Auto(Mechanism):
    """Tries every mechanism that fits and releases values of X; uses the best; `choice.choose` does the work."""

    kind: Literal["auto"]
    time_limit: float = Field(
        120.0,
        gt=0,
        allow_inf_nan=False,
        description="Seconds for all mechanisms together; each gets an equal part of what is left",
    )

    def solve(self, joint: Joint, demand: Demand) -> Solved:
        """Never called: what is chosen is chosen for all blocks together. Raises InternalError."""
        raise InternalError("`auto` solves no block; it chooses who does")

    @classmethod
    def misfit(cls, notion: str, *, secret_public: bool) -> str | None:
        """None where some mechanism fits."""
        if candidates(notion, secret_public=secret_public):
            return None
        return f"finds no mechanism that serves the notion {notion} here"

    def choice(self, notion: str, *, secret_public: bool) -> Choice:
        """Every candidate, with its defaults."""
        found = candidates(notion, secret_public=secret_public)
        return Choice({kind: one(kind=kind) for kind, one in found.items()}, self.time_limit)

    def may_read_secret(self, notion: str, *, secret_public: bool) -> bool:
        """Whether a mechanism that might be chosen draws with the secret."""
        return any(one.reads_secret for one in candidates(notion, secret_public=secret_public).values())

    def forecast(self, notion: Notion, secret: int, public: int) -> str:
        """The candidates themselves are named by the plan."""
        return f"the best of the candidates, as measured, within {self.time_limit:g} s"


def fitting(notion: str, *, secret_public: bool) -> dict[str, type[Mechanism]]:
    """The mechanisms that can serve a notion, by name, the optimal one first."""
    fit = {
        kind: mechanism
        for kind, mechanism in named(SINGLE).items()
        if mechanism.misfit(notion, secret_public=secret_public) is None
    }
    return dict(sorted(fit.items(), key=lambda item: item[0] != "optimal"))


def candidates(notion: str, *, secret_public: bool) -> dict[str, type[Mechanism]]:
    """The mechanisms that `auto` chooses from, by name, the optimal one first: the table keeps its values."""
    fit = fitting(notion, secret_public=secret_public)
    return {kind: mechanism for kind, mechanism in fit.items() if mechanism.plain}
