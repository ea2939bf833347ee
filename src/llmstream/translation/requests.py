"""Requests of the standard form to a vendor's body, and back (draft, sections 4 and 7.1)."""

from __future__ import annotations

from ..request.model import Request
from ..request.reading import DEFAULT_MAX_SIZE, json_of, read
from ..rules import REQUEST_NOT_OBJECT, RULES
from . import anthropic, gemini, openai
from .losses import Losses, Translated, join, refused
from .members import DEPTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType
    from typing import Any, Literal

    Vendor = Literal["openai", "anthropic", "gemini"]

__all__ = ["from_vendor", "to_vendor"]

VENDORS: dict[str, tuple[ModuleType, str]] = {
    "openai": (openai, "OpenAI"),
    "anthropic": (anthropic, "Anthropic"),
    "gemini": (gemini, "Gemini"),
}


def to_vendor(request: Request, dialect: Vendor) -> Translated[dict[str, Any]]:
    """The body that asks a vendor what a standard request asks: of OpenAI's chat completions, Anthropic's messages or
    Gemini's generateContent.

    What the vendor has no place for is in ``lost``, and so is what had to be changed or added. Extensions are never
    interpreted (section 8.3); of the metadata only ``user_id`` goes along, where the vendor asks for it.

    Raises RequestError where the request itself has an error (``Request.validate``), naming its path, and ValueError
    for an unknown vendor.
    """
    module, name = _vendor(dialect)
    if not isinstance(request, Request):
        raise TypeError(f"to_vendor takes a Request, not {type(request).__name__}")
    request.raise_for_violations(strict=False)
    envelope = request.json()
    losses = Losses(f"{name} has no place for it")
    losses.rest(envelope, Request.known, "")
    body: dict[str, Any] = module.write(envelope, losses)
    for key in envelope.get("extensions") or {}:
        losses.add(join("extensions", key))
    return Translated(body, losses.found, model=envelope["model"], stream=envelope["stream"])


def from_vendor(
    body: Mapping[str, Any] | bytes | bytearray | memoryview | str,
    dialect: Vendor,
    *,
    model: str | None = None,
    stream: bool | None = None,
    max_size: int = DEFAULT_MAX_SIZE,
) -> Translated[Request]:
    """The standard request that a vendor's client asks: the body of OpenAI's chat completions, Anthropic's messages or
    Gemini's generateContent, as JSON text or as a mapping.

    ``model`` and ``stream`` are what the URL says, for Gemini; given for another vendor, they go before the body.
    ``max_size`` bounds the body, in bytes. What the draft has no place for is in ``lost``.

    Raises RequestError for what is no such body, naming the path and never the content, TypeError for what JSON does
    not have, and ValueError for an unknown vendor.
    """
    module, _ = _vendor(dialect)
    if model is not None and not isinstance(model, str):
        raise TypeError(f"model must be a str, not {type(model).__name__}")
    if stream is not None and not isinstance(stream, bool):
        raise TypeError(f"stream must be a bool, not {type(stream).__name__}")
    if not isinstance(body, (bytes, bytearray, memoryview, str)):
        body, broken = json_of(body)
        if broken is not None:
            raise refused(broken[1], broken[2] or RULES[broken[0]].message, RULES[broken[0]].requirement)
    value, odd, fault = read(body, max_size=max_size, max_depth=DEPTH)
    if fault is None and not isinstance(value, dict):
        fault = (REQUEST_NOT_OBJECT, "")
    if fault is not None:
        raise refused(fault[1], RULES[fault[0]].message, RULES[fault[0]].requirement)
    losses = Losses("the draft has no place for it")
    for rule, path in odd.told:
        losses.add(path, RULES[rule].message)
    envelope: dict[str, Any] = module.read(value, losses, model, stream)
    return Translated(Request._of(envelope), losses.found, model=envelope["model"], stream=envelope["stream"])


def _vendor(dialect: str) -> tuple[ModuleType, str]:
    found = VENDORS.get(dialect)
    if found is None:
        raise ValueError(f"unknown vendor {dialect!r}; requests are translated for {', '.join(VENDORS)}")
    return found
