"""`TemplateAudit`: the result of `audit_template`, with its page."""

from __future__ import annotations

from ..html_report.page import framed
from .findings import Findings
from .template_audit_page import page_of

__all__ = ["TemplateAudit"]


class TemplateAudit(Findings):
    """The result of `audit_template`."""

    def to_html(self) -> str:
        """Returns the result as a page."""
        return page_of(self)

    def _repr_html_(self) -> str:
        """Returns the page for notebooks, in a frame."""
        return framed(self.to_html())
