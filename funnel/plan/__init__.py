"""From a policy and a source's schema to a plan: the stages that `plan` prints and `run` carries out."""

from funnel.plan.build import compile_plan
from funnel.plan.stages import Plan

__all__ = ["Plan", "compile_plan"]
