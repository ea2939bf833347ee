"""Standard events as a vendor's stream: what the three vendors have in common (draft, section 7.1)."""

from __future__ import annotations

import time

from .. import fields, payload
from .._backend import ContentDelta, ContentStop, StreamEnd, StreamError, StreamStart, ToolCall, Usage
from ..request.reading import read
from ..rules import MAX_BLOCKS, MAX_INTEGER
from ..transcoder.losses import CUT
from ..transcoder.writer import CHOICE, CHOICE_TEXT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, ClassVar

    from .._backend import Event

__all__ = ["Answer", "VendorWriter", "pieces"]

PIECE = 2**20
"""Characters of text in one event: no reader's limit is near."""

NOT_JSON = ("internal_error", "the arguments of a tool call are not what the format can carry")
TOO_MANY = ("internal_error", "more answers than a stream can have")

METADATA = frozenset(
    (
        *("logprobs", "logprobsResult", "top_tokens", "tokens", "moderations", "trace", "logs"),
        *("signature", "thoughtSignature", "thought_signature"),
        *("stop_reason", "stop_sequence", "stop_details", "finish_message", "container", "invocation_id"),
        *("index", "choice"),
    )
)
"""Extensions that say something of the answer and are no part of it. Any other that has no place is counted."""

ORDER = {"content_filter": 4, "max_tokens": 3, "tool_use": 2, "end_turn": 0}
"""Which of the stop reasons of several blocks is that of the answer: the one that says most. Other words are at 1."""


class Answer:
    """One answer of the stream: its ``index``, how many ``calls`` it has had, and why it stopped. ``head`` is what a
    writer keeps to write its next text."""

    __slots__ = ("_reason", "calls", "head", "index")

    def __init__(self, index: int) -> None:
        self.index = index
        self.calls = 0
        self.head = b""
        self._reason = ""

    def stop(self, reason: str) -> None:
        """One of its blocks stopped."""
        if reason and (not self._reason or ORDER.get(reason, 1) > ORDER.get(self._reason, 1)):
            self._reason = reason

    @property
    def reason(self) -> str:
        """Why it stopped, in the draft's words. One that ended with calls ended for them (section 4.8)."""
        reason = self._reason or "end_turn"
        return "tool_use" if reason == "end_turn" and self.calls else reason


class VendorWriter:
    """Writes standard events as the stream of a vendor, for clients that read that::

        writer = llmstream.writer_for("anthropic")
        for event in events:
            yield writer.write(event)
        yield writer.close()

    Text, reasoning and tool calls are written as they come. The stop reason and the end mark are written with the
    StreamEnd and not before, so that a stream that is cut never looks complete: it ends with the vendor's own error.
    Usage is written once, with the last counts. Each event has one line of data. Memory does not grow with the stream.

    ``model``          what is said where no StreamStart names the model; by default ""
    ``response_id``    what the vendor's id of the response is; by default the ``request_id`` of the StreamStart
    ``alternatives``   whether an index counts alternative answers (``Parser.alternatives``); else all blocks are one
                       answer. Anthropic's stream has the first alternative only
    ``free_text``      whether the input of a custom tool, a call marked ``<dialect>:custom``, is the text itself, as a
                       parser of a vendor's dialect gives it; by default it is a JSON string, as the standard stream
                       has it
    ``include_usage``  whether OpenAI's stream has a chunk with the counts, as its client asks by ``stream_options``
    ``clock``          gives the Unix time where the StreamStart does not; what it raises leaves the writer as it was

    A call whose arguments are no JSON (for Gemini: no JSON object) is left out, and the stream then ends with an error.
    The text for a custom tool is ``{"input": text}`` where the vendor has functions only.
    Of extensions the refusals are written, ``<dialect>:refusal`` (for OpenAI as such, for the others as text, with
    their stop reason for it), the reasoning of a transcoded stream, ``<dialect>:reasoning``, and what its other choices
    say, as choices again. ``left_out`` counts what has no place: events, and extensions that are a part of the answer,
    such as citations, images and what the vendor's own tools did. One writer belongs to one stream.
    """

    __slots__ = (
        "_answers",
        "_clock",
        "_closed",
        "_fault",
        "_last",
        "_usage",
        "alternatives",
        "block",
        "complete",
        "created",
        "ended",
        "free_text",
        "include_usage",
        "left_out",
        "model",
        "response_id",
        "started",
    )

    dialect: ClassVar[str]
    """The name of the dialect that reads what is written."""

    takes_alternatives: ClassVar[bool] = True
    takes_any_json: ClassVar[bool] = True

    def __init__(
        self,
        *,
        model: str | None = None,
        response_id: str | None = None,
        alternatives: bool = False,
        free_text: bool = False,
        include_usage: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.model = fields.optional_text("model", model) or ""
        self.response_id = fields.optional_text("response_id", response_id) or ""
        self.alternatives = alternatives
        self.free_text = free_text
        self.include_usage = include_usage
        self.block = 0
        self.created = 0
        self.started = self.ended = self.complete = False
        self.left_out = 0
        self._clock = clock
        self._closed = False
        self._answers: dict[int, Answer] = {}
        self._last: Answer | None = None
        self._usage: tuple[int, int] | None = None
        self._fault: tuple[str, str] | None = None

    # What a caller does

    def write(self, event: Event) -> bytes:
        """The bytes of an event; b"" where there are none, or none yet. Raises ValueError after ``close``."""
        if self._closed:
            raise ValueError("the writer is closed")
        if self.ended:
            self.left_out += 1
            return b""
        kind = type(event)
        if kind is ContentDelta:
            return self._delta(event)  # type: ignore[arg-type]
        if isinstance(event, StreamStart):
            return self._begin(event)
        if isinstance(event, ToolCall):
            return self._begin() + self._tool_call(event)
        if isinstance(event, ContentStop):
            given = event.extensions
            answer = self._answer(event.index, self._choice(given))
            if answer is not None:
                answer.stop(event.stop_reason or "")
            if given:
                self._count_lost(given)
        elif isinstance(event, Usage):
            self._usage = (event.input_tokens or 0, event.output_tokens or 0)
        elif isinstance(event, StreamError):
            return self._begin() + self._fail(event.code or "internal_error", event.message or "")
        elif isinstance(event, StreamEnd):
            return self._begin() + self._end()
        else:
            self.left_out += 1
        return b""

    def close(self) -> bytes:
        """Ends the stream: with an error where there was no StreamEnd. Idempotent."""
        found = b"" if self._closed else self.fail(*(self._fault or CUT))
        self._closed = True
        return found

    def fail(self, code: str = "internal_error", message: str = "") -> bytes:
        """Ends the stream with the vendor's error; b"" where it has ended. ``code`` is one of section 5.3.6. Raises
        TypeError or ValueError for words that cannot be written."""
        code, message = fields.text("code", code), fields.text("message", message)
        return b"" if self.ended else self._begin() + self._fail(code, message)

    def keep_alive(self) -> bytes:
        """A comment, for a producer that is silent for long; to stand between any two outputs. b"" after the end."""
        return b"" if self.ended else b": keep-alive\n\n"

    # What is the same for all vendors

    def _begin(self, event: StreamStart | None = None) -> bytes:
        if self.started:
            self.left_out += event is not None
            return b""
        created = None if event is None else event.created
        self.created = int(self._clock()) if created is None else created  # it may raise: nothing has been done
        self.started = True
        if event is not None:
            self.model = event.model or self.model
            self.response_id = self.response_id or event.request_id or ""
        return self._write_start()

    def _choice(self, given: dict[str, Any]) -> int:
        """Which choice beside the answer an event of a transcoded stream belongs to, by its extensions; 0 where it does
        to the answer."""
        choice = 0 if self.alternatives else given.get(CHOICE)
        return choice if type(choice) is int and 0 < choice <= MAX_INTEGER else 0

    def _answer(self, index: int, choice: int = 0) -> Answer | None:
        """The answer that a block belongs to, or that choice; None where the format has no place for it."""
        if not self.alternatives:
            index = choice
        if index and not self.takes_alternatives:
            return None
        last = self._last
        if last is not None and last.index == index:
            return last
        found = self._answers.get(index)
        if found is None:
            if len(self._answers) >= MAX_BLOCKS:
                self._fault = self._fault or TOO_MANY
                return None
            found = self._answers[index] = Answer(index)
        self._last = found
        return found

    def _delta(self, event: ContentDelta) -> bytes:
        start = b"" if self.started else self._begin()
        text, thought, given = event.text, event.reasoning, event.extensions
        # Other choices have no text there.
        choice = self._choice(given) if given and not (text or thought) else 0
        answer = self._answer(event.index, choice)
        if answer is None:
            self.left_out += 1
            return start
        self.block = event.index
        refusal = ""
        if given:
            text, thought, refusal = self._said(given, choice, text, thought)
        if not (thought or refusal) and len(text) <= PIECE:
            words = self._write_text(answer, text) if text else b""
            return start + words if start else words
        out = [start, *(self._write_thought(answer, piece) for piece in pieces(thought or ""))]
        out += [self._write_text(answer, piece) for piece in pieces(text)]
        return b"".join([*out, *(self._write_refusal(answer, piece) for piece in pieces(refusal))])

    def _said(self, given: dict[str, Any], choice: int, text: str, thought: str | None) -> tuple[str, str | None, str]:
        """Text, reasoning and refusal of a fragment with those that extensions hold; the rest of them is counted."""
        refusal, rest = "", {}
        for key, value in given.items():
            name = key.partition(":")[2]
            is_own = bool(choice) or not key.startswith("llmstream:")
            if not isinstance(value, str) or not is_own:
                rest[key] = value
            elif name == "refusal":
                refusal += value
            elif name == "reasoning" and not thought:
                thought = value
            elif key == CHOICE_TEXT:
                text = value
            else:
                rest[key] = value
        self._count_lost(rest)
        return text, thought, refusal

    def _count_lost(self, given: dict[str, Any]) -> None:
        """Counts those of the extensions that have no place and are a part of the answer."""
        self.left_out += sum(bool(value) and key.partition(":")[2] not in METADATA for key, value in given.items())

    def _tool_call(self, event: ToolCall) -> bytes:
        # A call without a name is one still, as a Transcoder has it: whoever runs calls has no such tool.
        name, arguments = event.name or "", event.arguments
        answer = self._answer(event.index)
        if answer is None:
            self.left_out += 1
            return b""
        words = self._custom_input(event)
        if words is not None:
            found = self._write_custom_call(answer, event.id or f"call-{answer.calls}", name, words)
            answer.calls += 1
            return found
        is_object = self.takes_any_json or (arguments or "").lstrip(" \t\r\n").startswith("{")
        # A reader of dialects marks a call that came damaged, even where what is left of it is JSON.
        is_damaged = any(key.endswith(":invalid_arguments") for key in event.extensions)
        if arguments is None or not is_object or is_damaged or not payload.is_json(arguments):
            self._fault = self._fault or NOT_JSON
            self.left_out += 1
            return b""
        id = event.id or f"call-{answer.calls}"
        found = self._write_call(answer, id, name, arguments)
        answer.calls += 1
        return found

    def _custom_input(self, event: ToolCall) -> str | None:
        """The text that a custom tool is called with; None for the call of a function."""
        if not any(value is True and key.endswith(":custom") for key, value in event.extensions.items()):
            return None
        text = event.arguments or ""
        if self.free_text:
            return text
        if not text.lstrip(" \t\r\n").startswith('"'):
            return None
        # It replaces half a surrogate pair, which an escape may stand for.
        found, _, fault = read(text, max_size=MAX_INTEGER, max_depth=1)
        return found if fault is None and isinstance(found, str) else None

    def _end(self) -> bytes:
        if self._fault is not None:
            return self._fail(*self._fault)
        answers = [self._answers[index] for index in sorted(self._answers)] or [Answer(0)]
        written = self._write_end(answers, self._usage)
        self.ended = self.complete = True
        return written

    def _fail(self, code: str, message: str) -> bytes:
        written = self._write_error(code, message, self._usage)
        self.ended = True
        return written

    # What each vendor has its own way for

    def _write_start(self) -> bytes:
        raise NotImplementedError

    def _write_text(self, answer: Answer, text: str) -> bytes:
        raise NotImplementedError

    def _write_thought(self, answer: Answer, text: str) -> bytes:
        raise NotImplementedError

    def _write_refusal(self, answer: Answer, text: str) -> bytes:
        answer.stop("content_filter")
        return self._write_text(answer, text)

    def _write_call(self, answer: Answer, id: str, name: str, arguments: str) -> bytes:
        raise NotImplementedError

    def _write_custom_call(self, answer: Answer, id: str, name: str, words: str) -> bytes:
        return self._write_call(answer, id, name, payload.dumps({"input": words}))

    def _write_end(self, answers: list[Answer], usage: tuple[int, int] | None) -> bytes:
        raise NotImplementedError

    def _write_error(self, code: str, message: str, usage: tuple[int, int] | None) -> bytes:
        raise NotImplementedError


def pieces(text: str) -> Iterator[str]:
    """``text`` in parts of at most ``PIECE`` characters; none where it is empty."""
    return (text[at : at + PIECE] for at in range(0, len(text), PIECE))
