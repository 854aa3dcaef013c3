"""Libraries that not every machine has: each is asked for only where a policy needs it."""

from __future__ import annotations

import importlib
from typing import Any

from funnel.errors import SourceError


def library(module: str, extra: str, where: str) -> Any:
    """The module. Raises SourceError that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise SourceError(
            "source-unreadable",
            f"tables of this kind need a library that is not installed ({module.partition('.')[0]})",
            where=where,
            advice=f"Install it: `pip install 'funnel-sanitiser[{extra}]'`.",
        ) from None
