"""groups.json: the files of groups that policy.yaml names, so that the policy can be read again; private."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

NAME = "groups.json"


@dataclass(frozen=True)
class GroupsFile:
    """The text of every file, under the name that the policy gives it."""

    format: Literal["funnel-groups/1"]
    files: dict[str, str]
