"""Privacy notions: one file each, named in a policy under `privacy.notion`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from funnel.notions.base import Notion
from funnel.notions.ldp import Ldp
from funnel.notions.lip import Lip
from funnel.notions.perfect import Perfect

AnyNotion = Annotated[Lip | Ldp | Perfect, Field(discriminator="notion")]

NOTIONS: dict[str, type[Notion]] = {"lip": Lip, "ldp": Ldp, "perfect": Perfect}

__all__ = ["NOTIONS", "AnyNotion", "Ldp", "Lip", "Notion", "Perfect"]
