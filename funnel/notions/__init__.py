"""Privacy notions: one file each, named in a policy under `privacy.notion`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from funnel.notions.base import Arranged, Demand, Notion, Shape
from funnel.notions.ldp import Ldp
from funnel.notions.ldp_x import LdpX
from funnel.notions.lip import Lip
from funnel.notions.mutual_information import MutualInformation
from funnel.notions.perfect import Perfect
from funnel.notions.rldp import Rldp, RobustDemand
from funnel.notions.srlip import Srlip

AnyNotion = Annotated[
    Lip | Ldp | Srlip | Rldp | LdpX | MutualInformation | Perfect, Field(discriminator="notion")
]

NOTIONS: dict[str, type[Notion]] = {
    "lip": Lip,
    "ldp": Ldp,
    "srlip": Srlip,
    "rldp": Rldp,
    "ldp-x": LdpX,
    "mutual-information": MutualInformation,
    "perfect": Perfect,
}

__all__ = [
    "NOTIONS",
    "AnyNotion",
    "Arranged",
    "Demand",
    "Ldp",
    "LdpX",
    "Lip",
    "MutualInformation",
    "Notion",
    "Perfect",
    "Rldp",
    "RobustDemand",
    "Shape",
    "Srlip",
]
