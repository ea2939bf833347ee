"""Puts our parts into an SDK, for one client or for all, and takes them out again."""

from __future__ import annotations

import inspect
import sys
import threading
import warnings
import weakref
from importlib import import_module
from types import FunctionType, MethodType, SimpleNamespace

from .decoder import Decoder, event_class
from .objects import Templates, process
from .template import same

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from types import FrameType, ModuleType
    from typing import Any

__all__ = ["Acceleration"]

PROCESS = "_process_response_data"
DECODER = "_make_sse_decoder"
SEAMS = {PROCESS: ["self", "data", "cast_to", "response"], DECODER: ["self"]}
"""The functions that are replaced, and their parameters."""

REPLACED = {"SSEDecoder": ("iter_bytes", "aiter_bytes", "decode"), "ServerSentEvent": ("json",)}
"""Methods whose work our decoder does instead."""

READING = ("_iter_events", "__stream__")
"""Methods of a stream that see payloads before they are objects."""


class _Doubt(Exception):  # noqa: N818 (told as a warning)
    """Why an SDK, or a client, is left as it is."""


class Acceleration:
    """The acceleration of one SDK; its library is imported when it is used.

    ``sdk``      the name of its package
    ``majors``   the major versions that it is tested with
    ``texts``    the classes whose streams carry text: module and name
    ``sample``   an answer that the first of them is built of, one event a part: alike but for the text, more than two
    """

    def __init__(
        self,
        sdk: str,
        *,
        majors: tuple[int, ...],
        texts: tuple[tuple[str, str], ...],
        sample: tuple[bytes, ...],
    ) -> None:
        self.sdk = sdk
        self.majors = majors
        self.texts = texts
        self.sample = sample
        self._lock = threading.RLock()
        self._parts: _Parts | None = None
        self._told: set[str] = set()

    def accelerate(self, client: Any) -> None:
        """Puts our parts into one client; where there is a doubt, it is left as it is, with a warning."""
        with self._lock:
            try:
                parts = self._checked_parts()
                if not isinstance(client, parts.base):
                    raise TypeError(f"not a client of {self.sdk}: {type(client).__name__}")
                for name in SEAMS:
                    is_ours = _function(vars(client).get(name)) is parts.of_client[name]
                    if (name in vars(client) and not is_ours) or getattr(type(client), name) not in parts.known[name]:
                        raise _Doubt(f"{type(client).__name__} has a {name} of its own")
            except _Doubt as doubt:
                self._warn(doubt)
                return
            for name, ours in parts.of_client.items():
                if getattr(vars(client).get(name), "__self__", None) is not client:  # a copy has those of the original
                    setattr(client, name, MethodType(ours, client))

    def restore(self, client: Any) -> None:
        """Takes our parts out of one client; what has been put over them stays."""
        with self._lock:
            for name, ours in self._parts.of_client.items() if self._parts else ():
                if _function(getattr(client, "__dict__", {}).get(name)) is ours:
                    delattr(client, name)

    def install(self) -> None:
        """Puts our parts into the class of all clients; where there is a doubt, it is left, with a warning."""
        with self._lock:
            try:
                parts = self._checked_parts()
                for name in SEAMS:
                    if vars(parts.base)[name] not in parts.known[name]:
                        raise _Doubt(f"{name} is not the SDK's own")
            except _Doubt as doubt:
                self._warn(doubt)
                return
            parts.installed = True
            for name, ours in parts.of_class.items():
                setattr(parts.base, name, ours)

    def uninstall(self) -> None:
        """Puts the SDK's own functions back. What has been put over ours stays, and comes to the SDK's through them."""
        with self._lock:
            parts = self._parts
            if parts is None:
                return
            parts.installed = False
            for name, ours in parts.of_class.items():
                if vars(parts.base)[name] is ours:
                    setattr(parts.base, name, parts.originals[name])

    def _checked_parts(self) -> _Parts:
        if self._parts is None:
            parts = _Parts(self)
            parts.check()
            self._parts = parts
        return self._parts

    def _warn(self, doubt: _Doubt) -> None:
        message = f"{self.sdk} is not accelerated: {doubt}"
        if message not in self._told:
            self._told.add(message)
            warnings.warn(message, RuntimeWarning, stacklevel=4)


class _Parts:
    """The functions of an SDK's clients, the SDK's own and ours.

    ``originals``   the SDK's
    ``of_class``    ours for all clients
    ``of_client``   ours for one client: they come to the SDK's through the client's class, whatever is there then
    ``known``       those that may be replaced
    """

    def __init__(self, acceleration: Acceleration) -> None:
        sdk = self.sdk = acceleration.sdk
        self.texts = acceleration.texts
        self.sample = acceleration.sample
        self.installed = False
        package = import_module(sdk)
        try:
            version = str(package.__version__)
            self.streaming: Any = import_module(f"{sdk}._streaming")
            base_module = import_module(f"{sdk}._base_client")
            self.base: Any = base_module.BaseClient
            self.originals = {name: vars(self.base)[name] for name in SEAMS}
            self.event = event_class(self.streaming.ServerSentEvent)
            self.streams = (self.streaming.Stream, self.streaming.AsyncStream)
            methods = [(name, vars(kind)[name]) for kind in self.streams for name in READING]
            for kind, names in REPLACED.items():
                methods += [(name, vars(getattr(self.streaming, kind))[name]) for name in names]
            pydantic = str(import_module("pydantic").VERSION)
        except (AttributeError, ImportError, KeyError, TypeError) as error:
            raise _Doubt("this version of the SDK has other parts") from error
        if version.partition(".")[0] not in map(str, acceleration.majors):
            raise _Doubt(f"version {version} is not known")
        if pydantic.partition(".")[0] != "2":
            raise _Doubt(f"version {pydantic} of pydantic is not known")
        for module, functions in ((base_module, self.originals.items()), (self.streaming, methods)):
            for name, function in functions:
                if not _is_own(function, name, module):
                    raise _Doubt(f"{name} is not the SDK's own")
        for name, original in self.originals.items():
            if list(inspect.signature(original, follow_wrapped=False).parameters) != SEAMS[name]:
                raise _Doubt(f"{name} has other parameters")

        def through_class(client: Any, **keywords: Any) -> Any:
            return getattr(type(client), PROCESS)(client, **keywords)

        self.of_class = {PROCESS: process(self.originals[PROCESS], self.is_text), DECODER: self._class_decoder()}
        self.of_client = {PROCESS: process(through_class, self.is_text), DECODER: self._client_decoder()}
        self.known = {name: (self.originals[name], self.of_class[name]) for name in SEAMS}
        for ours in (self.of_class, self.of_client):
            for name, function in ours.items():
                function.__doc__ = self.originals[name].__doc__

    def is_text(self, cast_to: object) -> bool:
        """Whether templates are learned from streams of this class."""
        for module, name in self.texts:
            text = getattr(sys.modules.get(module), name, None)
            if text is not None and (cast_to is text or cast_to == text):
                return True
        return False

    def _class_decoder(self) -> Callable[..., Any]:
        def _make_sse_decoder(self: Any) -> Any:
            if not parts.installed:
                return parts.originals[DECODER](self)
            return parts.decoder(self, parts.of_class, inspect.currentframe())

        parts = self
        return _make_sse_decoder

    def _client_decoder(self) -> Callable[..., Any]:
        def _make_sse_decoder(self: Any) -> Any:
            theirs = getattr(type(self), DECODER)
            if theirs not in parts.known[DECODER]:
                return theirs(self)
            return parts.decoder(self, parts.of_client, inspect.currentframe())

        parts = self
        return _make_sse_decoder

    def decoder(self, client: Any, ours: dict[str, Any], frame: FrameType | None) -> Decoder:
        """The decoder that a client gives to a stream. ``frame`` is that of our function, called by the stream."""
        stream = self._stream_within(frame)
        weak = None if stream is None else weakref.ref(stream)  # it holds the decoder

        def templates(decoder: Decoder) -> Templates | None:
            """New templates for a stream that hands our payloads to our function, with nothing on the way."""
            stream = None if weak is None else weak()
            if weak is None or (stream is not None and stream._decoder is not decoder):
                return None
            if _function(getattr(client, PROCESS, None)) is not ours[PROCESS]:
                return None
            return Templates(self.sdk) if getattr(type(client), PROCESS) in self.known[PROCESS] else None

        return Decoder(self.event, templates)

    def _stream_within(self, frame: FrameType | None) -> Any:
        """The stream whose ``__init__`` asks for a decoder, if it is one of the SDK's own, as it came."""
        caller = None if frame is None else frame.f_back
        stream = None if caller is None else caller.f_locals.get("self")
        kind = type(stream)
        if kind not in self.streams or not all(_is_own(vars(kind)[name], name, self.streaming) for name in READING):
            return None
        return stream

    def check(self) -> None:
        """Streams the sample through the SDK's own code, with its parts and with ours; raises _Doubt if they differ."""
        module, name = self.texts[0]
        try:
            cast_to = getattr(import_module(module), name)
            own_decoder = self.originals[DECODER](None)
            expected = self._stream("Stream", cast_to, self.originals[PROCESS], own_decoder)
            for kind in ("Stream", "AsyncStream"):
                templates = Templates(self.sdk)
                decoder = Decoder(self.event, lambda _, templates=templates: templates)  # type: ignore[misc]
                made = self._stream(kind, cast_to, self.of_class[PROCESS], decoder)
                if len(made) != len(self.sample) or not same(expected, made):
                    raise _Doubt("the test stream gave other objects")
                if not templates.hits:
                    raise _Doubt("no object of the test stream could be built")
        except _Doubt:
            raise
        except Exception as error:
            raise _Doubt("the test stream could not be read") from error

    def _stream(self, kind: str, cast_to: Any, process: Any, decoder: Any) -> list[Any]:
        chunks = self.sample
        client = SimpleNamespace(_strict_response_validation=False, _make_sse_decoder=lambda: decoder)
        client._process_response_data = MethodType(process, client)

        async def asynchronous_chunks() -> AsyncIterator[bytes]:
            for chunk in chunks:
                yield chunk

        async def close() -> None:
            pass

        async def collect() -> list[Any]:
            return [item async for item in stream]

        # HTTP/2, as the rest of an HTTP/1.1 response is read to its end, which this one has not.
        response = SimpleNamespace(
            iter_bytes=lambda: iter(chunks), aiter_bytes=asynchronous_chunks, close=lambda: None, aclose=close,
            http_version="HTTP/2", request=None, status_code=200, headers={},
        )  # fmt: skip
        stream = getattr(self.streaming, kind)(cast_to=cast_to, response=response, client=client)
        if kind == "Stream":
            return list(stream)
        waiting = collect()
        try:
            waiting.send(None)  # nothing in it waits, so no event loop is needed
        except StopIteration as stop:
            found: list[Any] = stop.value
            return found
        finally:
            waiting.close()
        raise _Doubt("an asynchronous stream waited")


def _function(method: Any) -> Any:
    return getattr(method, "__func__", None)


def _is_own(function: Any, name: str, module: ModuleType) -> bool:
    """Whether this is a function that a module has defined. A patch may say so by all its attributes, and have the
    class of one it wraps; the variables that it sees are those of where it was written."""
    return type(function) is FunctionType and function.__globals__ is vars(module) and function.__code__.co_name == name
