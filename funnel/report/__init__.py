"""The privacy report: one content, a pure function of a release's files, and the page that shows it."""

from funnel.report.content import FORMAT, full, published
from funnel.report.pages import page

__all__ = ["FORMAT", "full", "page", "published"]
