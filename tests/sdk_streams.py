"""What the tests of the accelerated SDKs share: streams through an SDK's client, and what must be the same."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any

import pytest

DUMPS: list[dict[str, Any]] = [
    {"warnings": False, **more}
    for more in ({}, {"exclude_unset": True}, {"exclude_none": True}, {"exclude_defaults": True}, {"by_alias": True})
]
Outcome = tuple[list[Any], Exception | None]


class SDK:
    """An SDK and how a stream is opened with it.

    ``start`` gets a client and returns its stream, or an awaitable of it.
    """

    def __init__(self, name: str, client: str, start: Callable[[Any], Any], **options: Any) -> None:
        self.package = import_module(name)
        self.http = import_module(import_module(f"{name}._streaming").Stream.__annotations__["response"].split(".")[0])
        self.options = {"api_key": "none", "max_retries": 0, **options}
        self.name = client
        self.start = start

    @property
    def version(self) -> str:
        return str(self.package.__version__)

    def client(self, chunks: Sequence[bytes], *, asynchronous: bool = False, name: str = "", **options: Any) -> Any:
        """A client whose requests are all answered with these chunks, without a connection."""
        http = self.http

        class Body(http.SyncByteStream, http.AsyncByteStream):  # type: ignore[name-defined,misc]
            def __iter__(self) -> Any:
                yield from chunks

            async def __aiter__(self) -> Any:
                for chunk in chunks:
                    yield chunk

        def answer(request: Any) -> Any:
            return http.Response(200, headers={"content-type": "text/event-stream"}, stream=Body())

        session = (http.AsyncClient if asynchronous else http.Client)(transport=http.MockTransport(answer))
        kind = getattr(self.package, ("Async" if asynchronous else "") + (name or self.name))
        return kind(http_client=session, **{**self.options, **options})

    def outcome(
        self,
        chunks: Sequence[bytes],
        change: Callable[[Any], Any] = lambda client: client,
        *,
        start: Callable[[Any], Any] | None = None,
        asynchronous: bool = False,
        name: str = "",
        **options: Any,
    ) -> Outcome:
        """The objects of a stream, and the error that ended it."""
        client = change(self.client(chunks, asynchronous=asynchronous, name=name, **options))
        return self.read(client, start or self.start, asynchronous=asynchronous)

    @staticmethod
    def read(client: Any, start: Callable[[Any], Any], *, asynchronous: bool = False) -> Outcome:
        found: list[Any] = []

        def read() -> None:
            with client, start(client) as stream:
                found.extend(stream)

        async def read_asynchronously() -> None:
            async with client, await start(client) as stream:
                async for item in stream:
                    found.append(item)  # noqa: PERF401 (those before an error count)

        try:
            asyncio.run(read_asynchronously()) if asynchronous else read()
        except Exception as error:  # noqa: BLE001 (whatever it is, the other side must raise it too)
            return found, error
        return found, None


def assert_same(stock: Outcome, ours: Outcome) -> None:
    """Everything that a user can ask of the objects, and the error, are the same."""
    (expected, error), (found, our_error) = stock, ours
    assert (type(our_error), str(our_error)) == (type(error), str(error))
    assert len(found) == len(expected)
    for one, other in zip(expected, found, strict=True):
        assert_same_object(one, other)


def assert_same_object(one: Any, other: Any) -> None:
    assert alike(one, other)
    if not hasattr(one, "model_dump"):
        return
    assert repr(other) == repr(one)
    if "nan" not in repr(one):
        assert other == one
        assert one == other
    for keywords in DUMPS:
        assert outcome(lambda: repr(other.model_dump(**keywords))) == outcome(lambda: repr(one.model_dump(**keywords)))  # noqa: B023
        assert outcome(lambda: other.model_dump_json(**keywords)) == outcome(lambda: one.model_dump_json(**keywords))  # noqa: B023
    for again in (copy.copy, copy.deepcopy, lambda item: item.model_copy(deep=True), round_trip):
        assert alike(outcome(lambda: again(one)), outcome(lambda: again(other)))  # noqa: B023
    assert other.__reduce_ex__(4)[0] is one.__reduce_ex__(4)[0]


def round_trip(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def outcome(call: Callable[[], Any]) -> Any:
    """The result, or the kind of error: some payloads make objects that cannot be written."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001
        return type(error)


def alike(one: Any, other: Any) -> bool:
    """The same types and values all the way down, members in the same order, given and undeclared ones apart."""
    if type(one) is not type(other):
        return False
    if hasattr(one, "model_fields_set"):
        return (
            alike(one.__dict__, other.__dict__)
            and one.model_fields_set == other.model_fields_set
            and type(one.__pydantic_fields_set__) is type(other.__pydantic_fields_set__)
            and alike(one.__pydantic_extra__, other.__pydantic_extra__)
            and alike(one.__pydantic_private__, other.__pydantic_private__)
        )
    if isinstance(one, dict):
        return list(one) == list(other) and all(alike(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == other) or repr(one) == repr(other) == "nan"


def mutable_parts(value: Any) -> Iterable[int]:
    """The identities of everything in an object that can be changed."""
    if hasattr(value, "model_fields_set"):
        yield from (id(value), id(value.__pydantic_fields_set__))
        yield from mutable_parts(value.__dict__)
        yield from mutable_parts(value.__pydantic_extra__)
    elif isinstance(value, dict | list):
        yield id(value)
        for item in value.values() if isinstance(value, dict) else value:
            yield from mutable_parts(item)


def sse(payload: Any, event: str = "", *, escaped: bool = False) -> bytes:
    """One event; the payload as it is, or as JSON."""
    text = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=escaped, separators=(",", ":"))
    return (f"event: {event}\n" if event else "").encode() + b"data: " + text.encode() + b"\n\n"


@pytest.fixture
def fast(llmstream: Any, sdk: SDK) -> Iterator[Any]:
    """What accelerates the SDK, as it is in a fresh process."""
    module = import_module(f"llmstream.integrations.{sdk.package.__name__}")
    known = module._acceleration._parts, set(module._acceleration._told)
    module._acceleration._parts = None
    module._acceleration._told.clear()
    yield module
    module.uninstall()
    module._acceleration._parts, module._acceleration._told = known


@pytest.fixture
def words(make_event: Callable[[str], bytes]) -> list[bytes]:
    return [make_event(f"word {number}") for number in range(8)]
