"""Requests and streams between the standard form and OpenAI, Anthropic and Gemini (draft, section 7.1)."""

from __future__ import annotations

from .losses import Loss, Translated
from .requests import from_vendor, to_vendor
from .streams import StreamTranslator, atranslate_stream, translate_stream, writer_for
from .writer import VendorWriter

__all__ = [
    "Loss",
    "StreamTranslator",
    "Translated",
    "VendorWriter",
    "atranslate_stream",
    "from_vendor",
    "to_vendor",
    "translate_stream",
    "writer_for",
]
