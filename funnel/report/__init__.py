"""The privacy report: one JSON-able content, and the page that shows it."""

from funnel.report.content import FORMAT, compose
from funnel.report.page import render

__all__ = ["FORMAT", "compose", "render"]
