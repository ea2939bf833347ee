"""The conformance checker: what of the draft a stream, a request, or both together break."""

from __future__ import annotations

from .checker import Checker, check
from .report import Report

__all__ = ["Checker", "Report", "check"]
