"""Standard events as OpenAI's chat completion chunks."""

from __future__ import annotations

from .._backend import quoted
from .writer import VendorWriter, pieces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

    from .writer import Answer

__all__ = ["OpenAIWriter"]

REASONS = {"end_turn": "stop", "max_tokens": "length", "tool_use": "tool_calls"}

ERRORS = {
    "rate_limited": ("rate_limit_error", "rate_limit_exceeded"),
    "context_length_exceeded": ("invalid_request_error", "context_length_exceeded"),
    "content_filtered": ("invalid_request_error", "content_filter"),
    "internal_error": ("server_error", "server_error"),
    "overloaded": ("server_error", "service_unavailable"),
}
"""The draft's codes -> OpenAI's type and code. Another word is both."""


class OpenAIWriter(VendorWriter):
    """Chunks of a chat completion, ``[DONE]`` at the end. Reasoning is ``reasoning_content``, as many have it."""

    __slots__ = ("_head",)

    dialect: ClassVar[str] = "openai"

    def _write_start(self) -> bytes:
        self._head = b'data: {"id":%b,"object":"chat.completion.chunk","created":%d,"model":%b,"choices":[' % (
            quoted(self.response_id or "chatcmpl-llmstream"),
            self.created,
            quoted(self.model),
        )
        answer = None if self.alternatives else self._answer(0)
        return b"" if answer is None else self._role(answer)

    def _role(self, answer: Answer) -> bytes:
        """The first chunk of a choice."""
        answer.head = self._head + b'{"index":%d,"delta":{' % answer.index
        return answer.head + b'"role":"assistant","content":""},"finish_reason":null}]}\n\n'

    def _write_text(self, answer: Answer, text: str) -> bytes:
        start = b"" if answer.head else self._role(answer)
        return start + answer.head + b'"content":' + quoted(text) + b'},"finish_reason":null}]}\n\n'

    def _write_refusal(self, answer: Answer, text: str) -> bytes:
        start = b"" if answer.head else self._role(answer)
        return start + answer.head + b'"refusal":' + quoted(text) + b'},"finish_reason":null}]}\n\n'

    def _write_thought(self, answer: Answer, text: str) -> bytes:
        start = b"" if answer.head else self._role(answer)
        return start + answer.head + b'"reasoning_content":' + quoted(text) + b'},"finish_reason":null}]}\n\n'

    def _write_call(self, answer: Answer, id: str, name: str, arguments: str) -> bytes:
        return self._call(answer, id, name, arguments, b"function", b"arguments")

    def _write_custom_call(self, answer: Answer, id: str, name: str, words: str) -> bytes:
        return self._call(answer, id, name, words, b"custom", b"input")

    def _call(self, answer: Answer, id: str, name: str, given: str, kind: bytes, member: bytes) -> bytes:
        """A call that is ``given`` some text in the ``member`` of its ``kind``, in as many chunks as its size asks."""
        out = [] if answer.head else [self._role(answer)]
        head = b'"id":%b,"type":"%b","%b":{"name":%b,"%b":' % (quoted(id), kind, kind, quoted(name), member)
        for piece in pieces(given) if given else [""]:
            call = b'"tool_calls":[{"index":%d,%b%b}}]' % (answer.calls, head, quoted(piece))
            out.append(b'%b%b},"finish_reason":null}]}\n\n' % (answer.head, call))
            head = b'"%b":{"%b":' % (kind, member)
        return b"".join(out)

    def _write_end(self, answers: list[Answer], usage: tuple[int, int] | None) -> bytes:
        out = []
        for answer in answers:
            out += [] if answer.head else [self._role(answer)]
            reason = quoted(REASONS.get(answer.reason, answer.reason))
            out.append(b'%b},"finish_reason":%b}]}\n\n' % (answer.head, reason))
        return b"".join([*out, self._counts(usage), b"data: [DONE]\n\n"])

    def _write_error(self, code: str, message: str, usage: tuple[int, int] | None) -> bytes:
        kind, code = ERRORS.get(code, (code, code))
        error = b'data: {"error":{"message":%b,"type":%b,"param":null,"code":%b}}\n\n'
        return self._counts(usage) + error % (quoted(message), quoted(kind), quoted(code))

    def _counts(self, usage: tuple[int, int] | None) -> bytes:
        if usage is None or not self.include_usage:
            return b""
        counts = b'"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}' % (*usage, sum(usage))
        return b"%b],%b}\n\n" % (self._head, counts)
