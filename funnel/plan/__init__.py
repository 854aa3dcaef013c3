"""From a policy and a source's schema to a plan: the list of steps that `plan` prints and `run` executes."""

from funnel.plan.build import compile_plan
from funnel.plan.stages import Plan

__all__ = ["Plan", "compile_plan"]
