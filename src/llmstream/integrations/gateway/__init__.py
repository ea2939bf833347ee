"""A gateway to LLM endpoints as an ASGI application (draft, section 7; extra ``gateway``)."""

from __future__ import annotations

from .application import Gateway
from .exchange import Exchange
from .limits import Limits
from .upstream import Upstream

__all__ = ["Exchange", "Gateway", "Limits", "Upstream"]
