"""Which endpoint a path is: the standard one, or one of a vendor's that can be passed on."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["Route", "route"]

VENDOR_PATHS = (
    ("openai", re.compile(r"(?:/v\d[\w.]*)?(?P<tail>/chat/completions|/completions|/responses)", re.ASCII)),
    ("anthropic", re.compile(r"(?:/v\d[\w.]*)?(?P<tail>/messages)", re.ASCII)),
    (
        "gemini",
        re.compile(
            r"(?:/v\d[\w.]*)?(?P<tail>/models/(?P<model>[\w.\-]+):(?:streamGenerateContent|generateContent))", re.ASCII
        ),
    ),
)
"""Paths are matched whole: nothing else reaches an upstream. A version before them is the upstream's own matter."""

PASSED_ON_ONLY = ("/completions", "/responses")
"""Requests that have no translation: only an upstream of the same format takes them."""


class Route(NamedTuple):
    """``vendor`` is None for the standard endpoint; ``tail`` follows the upstream's URL; ``model`` is that of the
    path, where it has one."""

    vendor: str | None
    tail: str
    model: str | None

    @property
    def has_translation(self) -> bool:
        """Whether a request here can go to an upstream of another format, too."""
        return self.vendor is not None and self.tail not in PASSED_ON_ONLY


def route(path: str, standard: str) -> Route | None:
    """The endpoint at a path; None where there is none."""
    if path == standard:
        return Route(None, "", None)
    for vendor, pattern in VENDOR_PATHS:
        found = pattern.fullmatch(path)
        if found is not None:
            return Route(vendor, found["tail"], found.groupdict().get("model"))
    return None
