"""From a policy and a source's schema to a plan: the list of steps that `plan` prints and `run` executes."""

from funnel.planner.compile import compile_plan
from funnel.planner.plan import Plan

__all__ = ["Plan", "compile_plan"]
