"""OpenAI chat completions, as OpenAI, Azure and some thirty other vendors and servers stream them."""

from __future__ import annotations

from ..declaration import Delta
from ..framing.json_values import JSONFraming
from ..rules import BAD_PAYLOAD
from . import failures
from .base import Dialect
from .values import compact, items, members, number, text, word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, ClassVar

    from .._backend import Event

__all__ = ["CONTENTS", "OpenAI"]

THOUGHTS = ("reasoning_content", "reasoning", "reasoning_text")
"""Members of a delta that hold reasoning. Where several do, they hold the same, and the first one counts."""

LISTS = ("annotations", "executed_tools", "images")
"""Lists in a delta that are handed on as extensions."""

CONTENTS = ("content", "tool_calls", "function_call", "refusal", "reasoning_details", "audio", *THOUGHTS, *LISTS)
"""What a delta is there for; one without any of it does not say that there are deltas."""

REPEATED = ("citations", "search_results")
"""What some vendors repeat in every payload; it is handed on once, with the stop reason."""


def _forms() -> Iterator[Delta]:
    """Every form has one choice, and in its delta nothing but the one fragment."""
    content = "choices[0].delta.content"
    thoughts = [f"choices[0].delta.{name}" for name in THOUGHTS]
    details = "choices[0].delta.reasoning_details"
    calls = "choices[0].delta.tool_calls"
    one_choice = [
        "choices[1]",
        "choices[0].error",
        "choices[0].logprobs.content",
        "choices[0].logprobs.refusal",
        "error",
        "x_groq.error",
        "choices[0].delta.audio",
        "choices[0].delta.function_call",
        *(f"choices[0].delta.{name}[0]" for name in LISTS),
    ]
    no_call = [*one_choice, f"{calls}[0]", f"{details}[0]"]
    one_part = [*no_call, f"{content}[1]"]
    no_stop = ["choices[0].finish_reason", "choices[0].delta.refusal"]
    no_thought = [*no_stop, *thoughts]

    yield from _counted(text=content, absent=no_call, empty=no_thought)
    # The details repeat a thought. Their texts are no paths here, so that shapes may pass over them.
    one_thought = [*one_choice, f"{calls}[0]", f"{details}[0].signature", f"{details}[0].data", f"{details}[1]"]
    for before, path in enumerate(thoughts):
        yield from _counted(reasoning=path, absent=one_thought, empty=[*no_stop, content, *thoughts[:before]])
    yield from _counted(
        arguments=f"{calls}[0].function.arguments",
        call=f"{calls}[0].index",
        absent=[*one_choice, f"{calls}[1]", f"{calls}[0].custom", f"{details}[0]"],
        empty=[*no_thought, content, f"{calls}[0].id", f"{calls}[0].function.name"],
    )
    # Mistral's lists of parts.
    yield from _counted(
        reasoning=f"{content}[0].thinking[0].text",
        when={f"{content}[0].type": "thinking"},
        absent=[*one_part, f"{content}[0].thinking[1]"],
        empty=no_thought,
    )
    yield from _counted(
        text=f"{content}[0].text",
        when={f"{content}[0].type": "text"},
        absent=one_part,
        empty=no_thought,
    )


def _counted(**form: Any) -> Iterator[Delta]:
    """A form without token counts, and the same with them."""
    absent = [*form.pop("absent"), "x_groq.usage", "choices[0].usage"]
    counts = {"input_tokens": "usage.prompt_tokens", "output_tokens": "usage.completion_tokens"}
    form["index"] = "choices[0].index"
    yield Delta(absent=[*absent, *counts.values()], **form)
    form.update(counts)
    yield Delta(absent=absent, **form)


class OpenAI(Dialect):
    """Chat completions. Reasoning is taken from wherever the vendor puts it, and text from ``delta``: where there are
    deltas, ``message`` and ``choices[].text`` repeat them. Refusals, log probabilities, annotations and the like are
    extensions."""

    name = "openai"
    end_mark = "[DONE]"
    alternatives = True
    framings: ClassVar = {ord("{"): JSONFraming}
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

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._has_deltas = self._is_misread = False

    @classmethod
    def recognises(cls, payload: dict[str, Any], event: str | None) -> bool:
        choices = items(payload.get("choices"))
        if choices:
            return "delta" in members(choices[0]) or "message" in members(choices[0])
        return payload.get("object") == "chat.completion.chunk"

    def touch(self, index: int) -> None:
        super().touch(index)
        self._has_deltas = True

    def translate(self, payload: dict[str, Any], event: str | None) -> list[Event]:
        events: list[Event] = []
        choices = payload.get("choices")
        groq = members(payload.get("x_groq"))
        usages = [payload.get("usage"), groq.get("usage")]
        for position, choice in enumerate(items(choices)):
            if type(choice) is dict:
                events += self.choice(position, choice, payload)
                usages.append(choice.get("usage"))
        usages = [usage for usage in usages if type(usage) is dict]
        if usages:
            events += self.count(_first(usages, "prompt_tokens"), _first(usages, "completion_tokens"))
        events += self.fail(failures.find(payload) or failures.find(groq))
        if choices is None:
            events += self.fail(failures.body(payload) or (None if self._started else failures.page(payload)))
            if event == "error":
                events += self.fail(failures.read(payload))
        return self.begin(payload, events)

    def choice(self, position: int, choice: dict[str, Any], payload: dict[str, Any]) -> list[Event]:
        index = number(choice.get("index"))
        index = position if index is None else index
        self.see(index)
        delta = members(choice.get("delta"))
        if not self._has_deltas:
            self._has_deltas = any(map(delta.get, CONTENTS))
        if not self._has_deltas:
            # The whole answer at once, from a server that does not stream.
            delta = members(choice.get("message")) or delta
            if text(choice.get("text")) and "delta" not in choice and "message" not in choice:
                self.misread()
        events = self._content(index, delta, choice)
        self.read_tool_calls(index, delta)
        reason = word(choice.get("finish_reason"))
        if reason:
            # Once: as many stops as there are choices would multiply them.
            extras = None if self._stopped else {name: items(payload.get(name)) for name in REPEATED}
            events += self.stop(index, reason, extras)
        return events + self.fail(failures.find(choice))

    def misread(self) -> None:
        """A choice has its text where the other of the two APIs has it: reported once."""
        if not self._is_misread:
            self._is_misread = True
            self.reports.append(BAD_PAYLOAD)

    def _content(self, index: int, delta: dict[str, Any], choice: dict[str, Any]) -> list[Event]:
        """Reasoning, text and what travels beside them."""
        thought = ""
        extras: dict[str, Any] = {}
        for name in THOUGHTS:
            thought = thought or text(delta.get(name))
        if delta.get("reasoning_details"):
            details = [members(each) for each in items(delta["reasoning_details"])]
            thought = thought or "".join(text(each.get("text")) or text(each.get("summary")) for each in details)
            extras["reasoning_details"] = [each for each in details if each.get("signature") or each.get("data")]
        for name in LISTS:
            if delta.get(name):
                extras[name] = items(delta[name])
        if delta.get("refusal"):
            extras["refusal"] = text(delta["refusal"])
        if delta.get("audio"):
            extras["audio"] = members(delta["audio"])
        logprobs = choice.get("logprobs")
        if type(logprobs) is dict and (logprobs.get("content") or logprobs.get("refusal")):
            extras["logprobs"] = logprobs

        events: list[Event] = []
        if thought:
            events.append(self.delta(index, reasoning=thought))
        content = delta.get("content")
        if type(content) is list:
            events += self._parts(index, content)
        if text(content) or (extras and any(extras.values())):
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

    def read_tool_calls(self, index: int, delta: dict[str, Any]) -> None:
        calls, legacy = delta.get("tool_calls"), delta.get("function_call")
        if calls:
            for each in items(calls):
                if type(each) is dict:
                    self.read_tool_call(index, number(each.get("index")), each)
        if legacy and type(legacy) is dict:
            self.read_tool_call(index, 0, {"function": legacy})  # there is one

    def read_tool_call(self, index: int, place: int | None, piece: dict[str, Any]) -> None:
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


def _first(usages: list[Any], name: str) -> int | None:
    for usage in usages:
        count = number(usage.get(name))
        if count is not None:
            return count
    return None
