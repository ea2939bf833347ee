"""Standard events as the chunks of Gemini's streamGenerateContent, with ``alt=sse``."""

from __future__ import annotations

from .. import verbatim
from .._backend import quoted
from .writer import VendorWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

    from .writer import Answer

__all__ = ["GeminiWriter"]

REASONS = {"end_turn": "STOP", "max_tokens": "MAX_TOKENS", "tool_use": "STOP", "content_filter": "SAFETY"}

OTHER = "OTHER"
"""Gemini's word for a reason that is none of its words."""

NOTHING = ("FINISH_REASON_UNSPECIFIED", "BLOCK_REASON_UNSPECIFIED")
"""Words by which an answer goes on."""

ERRORS = {
    "rate_limited": (429, "RESOURCE_EXHAUSTED"),
    "context_length_exceeded": (400, "INVALID_ARGUMENT"),
    "content_filtered": (400, "INVALID_ARGUMENT"),
    "internal_error": (500, "INTERNAL"),
    "overloaded": (503, "UNAVAILABLE"),
}
"""The draft's codes -> Gemini's, and their status."""


class GeminiWriter(VendorWriter):
    """Chunks with a part each. A call is whole in one, and its arguments are a JSON object."""

    __slots__ = ("_tail",)

    dialect: ClassVar[str] = "gemini"
    takes_any_json: ClassVar[bool] = False

    def _write_start(self) -> bytes:
        time = _time(self.created)
        created = b"" if time is None else b',"createTime":"%b"' % time.encode()
        names = quoted(self.model), quoted(self.response_id or "llmstream")
        self._tail = b',"modelVersion":%b,"responseId":%b%b}\n\n' % (*names, created)
        return b""

    def _write_text(self, answer: Answer, text: str) -> bytes:
        return self._part(answer, b'"text":%b' % quoted(text))

    def _write_thought(self, answer: Answer, text: str) -> bytes:
        return self._part(answer, b'"text":%b,"thought":true' % quoted(text))

    def _write_call(self, answer: Answer, id: str, name: str, arguments: str) -> bytes:
        call = b'"id":%b,"name":%b,"args":%b' % (quoted(id), quoted(name), _one_line(arguments))
        return self._part(answer, b'"functionCall":{%b}' % call)

    def _part(self, answer: Answer, part: bytes) -> bytes:
        return b'data: {"candidates":[%b}]%b' % (_content(answer, part), self._tail)

    def _write_end(self, answers: list[Answer], usage: tuple[int, int] | None) -> bytes:
        reasons = [quoted(_reason(answer.reason)) for answer in answers]
        candidates = [
            b'%b,"finishReason":%b}' % (_content(answer, b'"text":""'), reason)
            for answer, reason in zip(answers, reasons, strict=True)
        ]
        return b'data: {"candidates":[%b]%b%b' % (b",".join(candidates), _counts(usage), self._tail)

    def _write_error(self, code: str, message: str, usage: tuple[int, int] | None) -> bytes:
        number, status = ERRORS.get(code, (500, code))
        counts = b"" if usage is None else b"data: {%b%b" % (_counts(usage)[1:], self._tail)
        error = b'data: {"error":{"code":%d,"message":%b,"status":%b}}\n\n'
        return counts + error % (number, quoted(message), quoted(status))


def _reason(word: str) -> str:
    """Gemini's word for a stop reason. One that would be read as something else is OTHER: a number stands for a word,
    and what begins with ``prompt:`` is what readers call a prompt that was blocked."""
    if word in NOTHING or word.lstrip("+-").isdecimal() or word.startswith("prompt:"):
        return OTHER
    return REASONS.get(word, word)


def _content(answer: Answer, part: bytes) -> bytes:
    return b'{"content":{"parts":[{%b}],"role":"model"},"index":%d' % (part, answer.index)


def _counts(usage: tuple[int, int] | None) -> bytes:
    if usage is None:
        return b""
    counts = b'"promptTokenCount":%d,"candidatesTokenCount":%d,"totalTokenCount":%d' % (*usage, sum(usage))
    return b',"usageMetadata":{%b}' % counts


def _one_line(text: str) -> bytes:
    """Valid JSON as it came, its numbers too, in one line for every reader."""
    text = verbatim.compact(text)
    if not text.isascii():
        text = text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").replace("\x85", "\\u0085")
    return text.encode()


def _time(seconds: int) -> str | None:
    """Unix seconds as in RFC 3339; None where the year has not four digits."""
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
    except (OSError, OverflowError, ValueError):
        return None
