"""What several rooms of the tests share."""

# ruff: noqa: E402

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

# Before numpy is loaded: matrices are small here, and workers that share the cores would wait for each other's threads.
for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import pytest
from hypothesis import settings

import funnel

if TYPE_CHECKING:
    from xdist.scheduler import WorkStealingScheduling

# No assertion depends on time. A judged run repeats what the last one tried; at the desk, every run tries anew.
# `--hypothesis-profile=thorough` looks harder, at the theorems in tests/property above all.
settings.register_profile(
    "quick", deadline=None, derandomize=os.environ.get("CI") == "true", max_examples=60
)
settings.register_profile("thorough", parent=settings.get_profile("quick"), max_examples=400)
settings.load_profile("quick")

# Commands in processes of their own read the modules that the first of them compiled.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.fixture(scope="session")
def key() -> str:
    """A key for permanent draws."""
    return funnel.new_key()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> WorkStealingScheduling:
    """Rooms of tests stay together: each worker would start a Spark, a server and every sample of its own else."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--long`, for what the README's command leaves out."""
    parser.addoption("--long", action="store_true", help="run what is marked long and left out else, and only that")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a test marked `long` the first case alone runs unless it is asked for; one without cases waits for `--long`.

    One marked `long(whole=True)` waits with all its cases, where the first takes long, too.
    A test that is asked for by its name runs as it is.
    """
    if any("::" in one for one in config.args):
        return
    seen, chosen, left = set[str](), list[pytest.Item](), list[pytest.Item]()
    for item in items:
        name, case, _ = item.nodeid.partition("[")
        mark = item.get_closest_marker("long")
        waits = mark is not None and (not case or name in seen or "whole" in mark.kwargs)
        seen.add(name)
        (chosen if waits is config.getoption("--long") else left).append(item)
    config.hook.pytest_deselected(items=left)
    items[:] = chosen
