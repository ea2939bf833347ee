"""A vendor's stream as the answer that the vendor gives to a request without ``stream``."""

from __future__ import annotations

from ..._backend import SSEDecoder
from ...request import reading, values
from ...rules import MAX_INTEGER
from ...translation import writer_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ...translation.requests import Vendor

__all__ = ["Folder", "events_of"]

UNCOUNTED = "llmstream:usage"
"""The member by which the stream for Anthropic's clients says that nobody counted, at its start and at its end."""

AROUND = 20
"""Levels around the arguments of a call, which have ``MAX_DEPTH`` at most."""


class Folder:
    """Takes the bytes that a ``StreamTranslator`` writes and makes one answer of them: the vendor's error, as its body
    is over HTTP, where the stream ended with one. ``is_broken`` says so."""

    def __init__(self, vendor: Vendor) -> None:
        self.is_broken = False
        self._vendor: Vendor = vendor
        self._decoder = SSEDecoder(max_event_size=MAX_INTEGER)
        self._answer: dict[str, Any] = {}
        self._fold = {"openai": self._openai, "anthropic": self._anthropic, "gemini": self._gemini}[vendor]
        self._strands: dict[tuple[int | str, ...], list[str]] = {}

    def feed(self, written: bytes) -> None:
        """Takes whole events."""
        for event in self._decoder.feed(written):
            if event.data == "[DONE]" or self.is_broken:
                continue
            value = _read(event.data)
            if value is None:
                self._break()
            elif value.get("error") is not None:
                self.is_broken, self._answer = True, value
            else:
                self._fold(value)

    def close(self) -> bytes:
        """The answer as JSON, with numbers as they came in."""
        for (*place, last), pieces in self._strands.items():
            if self.is_broken:
                break
            holder: Any = self._answer
            for step in place:
                holder = holder[step]
            holder[last] = "".join(pieces)
            if last == "input" and place[0] == "content":  # Anthropic's arguments: JSON in the stream, a value here
                holder[last] = _read(holder[last] or "{}")
                if holder[last] is None:
                    self._break()
        return values.write(self._answer)

    def _break(self) -> None:
        written = writer_for(self._vendor).fail("internal_error", "the arguments of a tool call are nested too deep")
        *_, data = events_of(written)
        self.is_broken, self._answer = True, _read(data)

    def _add(self, text: str, *place: int | str) -> None:
        self._strands.setdefault(place, []).append(text)

    # OpenAI

    def _openai(self, chunk: dict[str, Any]) -> None:
        if not self._answer:
            message = {"role": "assistant", "content": None, "refusal": None}
            choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": None}
            self._answer = {**chunk, "object": "chat.completion", "choices": [choice]}
        if chunk.get("usage") is not None:
            self._answer["usage"] = chunk["usage"]
        for found in chunk["choices"]:
            if found["index"]:
                continue  # a client that asked for one answer gets one
            choice = self._answer["choices"][0]
            choice["finish_reason"] = found["finish_reason"]
            for name in ("content", "refusal", "reasoning_content"):
                if found["delta"].get(name):
                    self._add(found["delta"][name], "choices", 0, "message", name)
            for call in found["delta"].get("tool_calls", ()):
                self._openai_call(choice["message"].setdefault("tool_calls", []), call)
            is_told = choice["message"].get("tool_calls") or ("choices", 0, "message", "refusal") in self._strands
            if found["finish_reason"] is not None and not is_told:
                self._add("", "choices", 0, "message", "content")  # an empty answer is "", and not null

    def _openai_call(self, calls: list[dict[str, Any]], call: dict[str, Any]) -> None:
        position = call.pop("index")
        if position == len(calls):
            calls.append(call)
        kind = "custom" if "custom" in call else "function"
        member = "input" if kind == "custom" else "arguments"
        self._add(call[kind][member], "choices", 0, "message", "tool_calls", position, kind, member)

    # Anthropic

    def _anthropic(self, event: dict[str, Any]) -> None:
        kind = event["type"]
        if kind == "message_start":
            self._answer = event["message"]
        elif kind == "content_block_start":
            self._answer["content"].append(event["content_block"])
        elif kind == "content_block_delta":
            delta = event["delta"]
            for name, member in (("text", "text"), ("thinking", "thinking"), ("partial_json", "input")):
                if name in delta:
                    self._add(delta[name], "content", event["index"], member)
        elif kind == "message_delta":
            self._answer.pop(UNCOUNTED, None)
            self._answer |= event["delta"]
            self._answer["usage"] |= event["usage"]
            if UNCOUNTED in event:
                self._answer[UNCOUNTED] = event[UNCOUNTED]

    # Gemini

    def _gemini(self, chunk: dict[str, Any]) -> None:
        if not self._answer:
            candidate = {"content": {"parts": [], "role": "model"}, "index": 0}
            self._answer = {**chunk, "candidates": [candidate]}
        self._answer |= {name: value for name, value in chunk.items() if name != "candidates"}
        for found in chunk.get("candidates", ()):
            if found.get("index"):
                continue
            candidate = self._answer["candidates"][0]
            if "finishReason" in found:
                candidate["finishReason"] = found["finishReason"]
            for part in found["content"]["parts"]:
                self._gemini_part(candidate["content"]["parts"], part)

    def _gemini_part(self, parts: list[dict[str, Any]], part: dict[str, Any]) -> None:
        """Texts of one kind that follow one another are one part."""
        is_text = "text" in part
        if is_text and not part["text"] and parts:
            return
        if not (is_text and parts and "text" in parts[-1] and part.get("thought") == parts[-1].get("thought")):
            parts.append(part)
        if is_text:
            self._add(part["text"], "candidates", 0, "content", "parts", len(parts) - 1, "text")


def _read(text: str) -> Any:
    """JSON that a writer of ours wrote, with numbers that know how they came in; None where the caller has left too
    little of Python's stack for it."""
    return reading.read(text, max_size=MAX_INTEGER, max_depth=values.MAX_DEPTH + AROUND)[0]


def events_of(written: bytes) -> Iterator[str]:
    """The data of the events that were written."""
    return (event.data for event in SSEDecoder(max_event_size=MAX_INTEGER).feed(written))
