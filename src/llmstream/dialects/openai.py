"""OpenAI chat completions, as OpenAI, Azure and some thirty other vendors and servers stream them."""

from __future__ import annotations

from ..declaration import Delta
from . import failures
from .base import Dialect
from .values import compact, items, members, number, text, word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, ClassVar

    from .._backend import Event

__all__ = ["OpenAI"]

_DELTA = "choices[0].delta."
_CALL = _DELTA + "tool_calls[0]."

THOUGHTS = ("reasoning_content", "reasoning", "reasoning_text")
"""Members of a delta that hold reasoning. Where several do, they hold the same, and the first one counts."""

LISTS = ("annotations", "executed_tools", "images")
"""Lists in a delta that are handed on as extensions."""

REPEATED = ("citations", "search_results")
"""What some vendors repeat in every payload; it is handed on once, with the stop reason."""


def _forms() -> Iterator[Delta]:
    details = _DELTA + "reasoning_details[0]."
    part = _DELTA + "content[0]."
    content = _DELTA + "content"
    thoughts = [_DELTA + name for name in THOUGHTS]
    summaries = [details + "text", details + "summary"]
    one_choice = ["choices[1]", "choices[0].error", "error", "choices[0].logprobs.content", "choices[0].logprobs.refusal"]
    one_choice += [details + "signature", details + "data", _DELTA + "reasoning_details[1]"]
    one_choice += [_DELTA + "audio", _DELTA + "function_call", *(f"{_DELTA}{name}[0]" for name in LISTS)]
    no_call = [*one_choice, _DELTA + "tool_calls[0]"]
    no_stop = ["choices[0].finish_reason", _DELTA + "refusal"]
    one_call = [*one_choice, _DELTA + "tool_calls[1]", _CALL + "custom"]
    no_head = [*no_stop, _CALL + "id", _CALL + "function.name"]
    silent = [*thoughts, *summaries]
    one_part = [*no_call, _DELTA + "content[1]"]

    yield from _counted(text=content, absent=no_call, empty=[*no_stop, *silent])
    for at, path in enumerate([*thoughts, summaries[0]]):
        yield from _counted(reasoning=path, absent=no_call, empty=[*no_stop, content, *thoughts[:at]])
    yield from _counted(
        arguments=_CALL + "function.arguments",
        call=_CALL + "index",
        absent=one_call,
        empty=[*no_head, content, *silent],
    )
    yield from _counted(
        reasoning=part + "thinking[0].text",
        when={part + "type": "thinking", part + "thinking[0].type": "text"},
        absent=[*one_part, part + "thinking[1]"],
        empty=[*no_stop, *silent],
    )
    yield from _counted(
        text=part + "text",
        when={part + "type": "text"},
        absent=one_part,
        empty=[*no_stop, *silent],
    )


def _counted(*, absent: list[str], **form: Any) -> Iterator[Delta]:
    """A form without token counts, and the same with them."""
    elsewhere = ["x_groq.usage", "choices[0].usage"]
    counts = {"input_tokens": "usage.prompt_tokens", "output_tokens": "usage.completion_tokens"}
    index = "choices[0].index"
    yield Delta(index=index, absent=[*absent, *elsewhere, *counts.values()], **form)
    yield Delta(index=index, absent=[*absent, *elsewhere], **counts, **form)


class OpenAI(Dialect):
    """Chat completions. Reasoning is taken from wherever the vendor puts it; text comes from ``delta`` alone, since
    ``message`` and ``choices[].text`` repeat it. Extensions: ``refusal``, ``logprobs``, ``annotations`` and such."""

    name = "openai"
    end_mark = "[DONE]"
    alternatives = True
    model = "model"
    created = "created"
    request_id = "id"
    deltas = tuple(_forms())
    stop_reasons: ClassVar = {
        "stop": "end_turn",
        "eos": "end_turn",
        "eos_token": "end_turn",
        "stop_sequence": "end_turn",
        "length": "max_tokens",
        "model_length": "max_tokens",
        "tool_calls": "tool_use",
        "function_call": "tool_use",
        "guardrail": "content_filter",
        "refusal": "content_filter",
        "safety": "content_filter",
        "sensitive": "content_filter",
    }

    @classmethod
    def recognises(cls, payload: dict[str, Any], event: str | None) -> bool:
        choices = items(payload.get("choices"))
        if choices:
            return "delta" in members(choices[0])
        kind = text(payload.get("object"))
        return kind == "chat.completion.chunk" or failures.body(payload) is not None

    def translate(self, payload: dict[str, Any], event: str | None) -> list[Event]:
        events: list[Event] = []
        choices = payload.get("choices")
        usages = [members(payload.get("usage")), members(members(payload.get("x_groq")).get("usage"))]
        for position, choice in enumerate(items(choices)):
            if type(choice) is dict:
                events += self._choice(position, choice, payload)
                usages.append(members(choice.get("usage")))
        events += self.count(_first(usages, "prompt_tokens"), _first(usages, "completion_tokens"))
        events += self.fail(failures.body(payload) if choices is None else failures.find(payload))
        if choices is None and event == "error":
            events += self.fail(failures.read(payload))
        return self.begin(payload, events)

    def _choice(self, position: int, choice: dict[str, Any], payload: dict[str, Any]) -> list[Event]:
        index = number(choice.get("index"))
        index = position if index is None else index
        self.see(index)
        delta = members(choice.get("delta"))
        events = self._content(index, delta, choice)
        self._tool_calls(index, delta)
        reason = word(choice.get("finish_reason"))
        if reason:
            repeated = {name: items(payload.get(name)) for name in REPEATED}
            events += self.stop(index, reason, repeated)
        events += self.fail(failures.find(choice))
        return events

    def _content(self, index: int, delta: dict[str, Any], choice: dict[str, Any]) -> list[Event]:
        details = [members(each) for each in items(delta.get("reasoning_details"))]
        extras = {name: items(delta.get(name)) for name in LISTS}
        extras["reasoning_details"] = [each for each in details if each.get("signature") or each.get("data")]
        more: dict[str, Any] = {"refusal": text(delta.get("refusal")), "audio": members(delta.get("audio"))}
        more["logprobs"] = _logprobs(choice.get("logprobs"))
        extras = {name: value for name, value in {**extras, **more}.items() if value}

        events: list[Event] = []
        thought = next((text(delta.get(name)) for name in THOUGHTS if text(delta.get(name))), "")
        thought = thought or "".join(text(each.get("text")) or text(each.get("summary")) for each in details)
        if thought:
            events.append(self.delta(index, reasoning=thought))
        content = delta.get("content")
        if type(content) is list:
            events += self._parts(index, content)
            content = ""
        if text(content) or extras:
            events.append(self.delta(index, text(content), extras=extras))
        return events

    def _parts(self, index: int, content: list[Any]) -> list[Event]:
        """Content as Mistral has it: a list of texts, thoughts and references."""
        events: list[Event] = []
        for part in items(content):
            kind, words = text(members(part).get("type")), text(members(part).get("text")) or text(part)
            if kind == "thinking":
                thinking = part.get("thinking")
                thought = text(thinking) or "".join(text(members(each).get("text")) for each in items(thinking))
                if thought:
                    events.append(self.delta(index, reasoning=thought))
            elif kind in ("", "text"):
                if words:
                    events.append(self.delta(index, words))
            else:
                events.append(self.delta(index, extras={kind: part}))
        return events

    def _tool_calls(self, index: int, delta: dict[str, Any]) -> None:
        for each in items(delta.get("tool_calls")):
            if type(each) is dict:
                self._tool_call(index, number(each.get("index")), each)
        legacy = members(delta.get("function_call"))
        if legacy:
            self._tool_call(index, None, {"function": legacy})

    def _tool_call(self, index: int, place: int | None, piece: dict[str, Any]) -> None:
        custom = members(piece.get("custom"))
        function = custom or members(piece.get("function"))
        id, name = text(piece.get("id")), text(function.get("name"))
        arguments = function.get("input" if custom else "arguments")
        arguments = compact(arguments) if type(arguments) is dict else text(arguments)
        if not (id or name or arguments):
            return
        call = self.calls.piece(index, place, id, name)
        if call is not None:
            call.kind = "custom" if custom else call.kind
            self.calls.append(call, arguments)
        self.check_limit()


def _first(usages: list[dict[str, Any]], name: str) -> int | None:
    return next((count for usage in usages if (count := number(usage.get(name))) is not None), None)


def _logprobs(value: Any) -> dict[str, Any]:
    found = members(value)
    return found if found.get("content") or found.get("refusal") else {}
