"""Privacy notions: one file each, named in a policy under `privacy.notion`."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, get_args

from pydantic import Field

from funnel.notions.alip import Alip
from funnel.notions.base import Amiss, Arranged, Demand, Implied, Notion
from funnel.notions.ldp import Ldp
from funnel.notions.ldp_x import LdpX
from funnel.notions.lip import Lip
from funnel.notions.mutual_information import MutualInformation
from funnel.notions.perfect import Perfect
from funnel.notions.pml import Pml
from funnel.notions.rldp import Rldp
from funnel.notions.robust import RobustDemand, as_robust
from funnel.notions.shape import Foreseen, Shape
from funnel.notions.srlip import Srlip

_EVERY: tuple[type[Notion], ...] = (Lip, Ldp, Srlip, Rldp, LdpX, Pml, Alip, MutualInformation, Perfect)
"""The one list: whatever reads policies, schemas or files knows the notions from here."""

NOTIONS: dict[str, type[Notion]] = {
    str(get_args(one.model_fields["notion"].annotation)[0]): one for one in _EVERY
}
"""By name, as policies and manifests write it."""

if TYPE_CHECKING:
    AnyNotion = Notion
else:
    AnyNotion = Annotated[reduce(or_, _EVERY), Field(discriminator="notion")]

__all__ = [
    "NOTIONS",
    "Alip",
    "Amiss",
    "AnyNotion",
    "Arranged",
    "Demand",
    "Foreseen",
    "Implied",
    "Ldp",
    "LdpX",
    "Lip",
    "MutualInformation",
    "Notion",
    "Perfect",
    "Pml",
    "Rldp",
    "RobustDemand",
    "Shape",
    "Srlip",
    "as_robust",
]
