"""Standard events as the events of Anthropic's messages."""

from __future__ import annotations

from .._backend import quoted
from .writer import VendorWriter, pieces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

    from .writer import Answer

__all__ = ["AnthropicWriter"]

REASONS = {"content_filter": "refusal"}

ERRORS = {"rate_limited": "rate_limit_error", "internal_error": "api_error", "overloaded": "overloaded_error"}
INVALID = ("context_length_exceeded", "content_filtered")
"""Codes that Anthropic has no type for: they stand beside it."""

UNKNOWN = b',"llmstream:usage":"unknown"'
"""Clients need counts in message_start and message_delta. Zeros that nobody counted are told by this beside them."""


class AnthropicWriter(VendorWriter):
    """The events of a message. Its blocks follow one another: text, thoughts and calls begin a new one where another
    kind, or the text of another standard block, comes."""

    __slots__ = ("_count", "_index", "_open")

    dialect: ClassVar[str] = "anthropic"
    takes_alternatives: ClassVar[bool] = False

    def _write_start(self) -> bytes:
        self._count = 0  # blocks so far, the open one too
        self._open: tuple[str, int] | None = None  # the open block: its kind, and the standard block that it is of
        message = b'"id":%b,"type":"message","role":"assistant","model":%b,"content":[],"stop_reason":null' % (
            quoted(self.response_id or "msg_llmstream"),
            quoted(self.model),
        )
        more = b'"stop_sequence":null,"usage":{"input_tokens":0,"output_tokens":0}'
        start = b'event: message_start\ndata: {"type":"message_start","message":{%b,%b%b}}\n\n'
        return start % (message, more, UNKNOWN)

    def _write_text(self, answer: Answer, text: str) -> bytes:
        start = b""
        if self._open != ("text", self.block):
            start = self._block("text", b'"text":""', answer, b'text_delta","text":')
        return start + answer.head + quoted(text) + b"}}\n\n"

    def _write_thought(self, answer: Answer, text: str) -> bytes:
        start = b""
        if self._open != ("thinking", self.block):
            block = b'"thinking":"","signature":""'
            start = self._block("thinking", block, answer, b'thinking_delta","thinking":')
        return start + answer.head + quoted(text) + b"}}\n\n"

    def _write_call(self, answer: Answer, id: str, name: str, arguments: str) -> bytes:
        block = b'"id":%b,"name":%b,"input":{}' % (quoted(id), quoted(name))
        out = [self._block("tool_use", block, answer, b'input_json_delta","partial_json":')]
        out += [b"%b%b}}\n\n" % (answer.head, quoted(piece)) for piece in pieces(arguments)]
        return b"".join([*out, self._stop()])

    def _block(self, kind: str, members: bytes, answer: Answer, delta: bytes) -> bytes:
        """Begins a block, after the end of the one before; its deltas then have ``answer.head`` before their text."""
        stop = self._stop()
        index = self._count
        self._count += 1
        self._open = (kind, self.block)
        answer.head = (
            b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":"%b'
            % (index, delta)
        )
        block = b'{"type":"%b",%b}' % (kind.encode(), members)
        start = b'event: content_block_start\ndata: {"type":"content_block_start","index":%d,"content_block":%b}\n\n'
        return stop + start % (index, block)

    def _stop(self) -> bytes:
        if self._open is None:
            return b""
        self._open = None
        stop = b'event: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n'
        return stop % (self._count - 1)

    def _write_end(self, answers: list[Answer], usage: tuple[int, int] | None) -> bytes:
        reason = quoted(REASONS.get(answers[0].reason, answers[0].reason))
        end = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
        return self._stop() + self._message(reason, usage) + end

    def _write_error(self, code: str, message: str, usage: tuple[int, int] | None) -> bytes:
        known = "invalid_request_error" if code in INVALID else ERRORS.get(code, code)
        error = b'"type":%b,"message":%b' % (quoted(known), quoted(message))
        if code in INVALID:
            error += b',"code":%b' % quoted(code)
        counts = b"" if usage is None else self._message(b"null", usage)
        return counts + b'event: error\ndata: {"type":"error","error":{%b}}\n\n' % error

    def _message(self, reason: bytes, usage: tuple[int, int] | None) -> bytes:
        counts = b'"output_tokens":0' if usage is None else b'"input_tokens":%d,"output_tokens":%d' % usage
        delta = b'{"stop_reason":%b,"stop_sequence":null}' % reason
        mark = UNKNOWN if usage is None else b""
        form = b'event: message_delta\ndata: {"type":"message_delta","delta":%b,"usage":{%b}%b}\n\n'
        return form % (delta, counts, mark)
