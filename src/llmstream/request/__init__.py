"""The request envelope: built, read, validated and written; and the client's tool loop (draft, sections 4 and 8.2)."""

from __future__ import annotations

from .findings import RequestViolation
from .model import MEDIA_TYPE, VERSION, Message, Parameters, Request, Tool
from .parts import AudioPart, DocumentPart, ImagePart, Part, TextPart, UnknownPart
from .tools import check_tool_call, screen_tool_calls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .tools import Confirm as Confirm
    from .tools import SchemaCheck as SchemaCheck

__all__ = [
    "MEDIA_TYPE",
    "VERSION",
    "AudioPart",
    "DocumentPart",
    "ImagePart",
    "Message",
    "Parameters",
    "Part",
    "Request",
    "RequestViolation",
    "TextPart",
    "Tool",
    "UnknownPart",
    "check_tool_call",
    "screen_tool_calls",
]
