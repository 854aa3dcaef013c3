"""The file behind a policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path as FilePath

from funnel.policy.document import Path, Places


@dataclass(frozen=True)
class Origin:
    """Name and text of a policy file and where its parts stand.

    All origins are equal: two policies are equal when they say the same, wherever they were written.
    """

    file: str = field(default="policy.yaml", compare=False)
    text: str = field(default="", compare=False, repr=False)
    places: Places = field(default_factory=Places, compare=False, repr=False)
    columns: Mapping[str, Path] = field(default_factory=dict, compare=False, repr=False)

    @property
    def sha256(self) -> str:
        """SHA-256 of the file's bytes, in hexadecimal."""
        return sha256(self.text.encode("utf-8")).hexdigest()

    @property
    def directory(self) -> FilePath:
        """The folder that holds the file."""
        return FilePath(self.file).parent
