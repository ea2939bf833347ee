"""The tests that the accelerations of all SDKs must pass: what is replaced, when, and how it comes back.

A test file imports them all and has the fixtures ``sdk``, ``fast`` and ``words`` (the events of a stream with text).
"""

from __future__ import annotations

import copy
import functools
import gc
import json
import subprocess
import sys
import threading
import warnings
import weakref
from importlib import import_module
from itertools import islice
from types import FunctionType
from typing import Any

import pytest

from sdk_streams import SDK, alike, assert_same

SEAMS = ("_process_response_data", "_make_sse_decoder")


def base_of(sdk: SDK) -> Any:
    return import_module(f"{sdk.package.__name__}._base_client").BaseClient


def functions(sdk: SDK) -> list[Any]:
    return [vars(base_of(sdk))[name] for name in SEAMS]


def test_an_import_replaces_nothing(sdk: SDK, fast: Any) -> None:
    program = f"""
import sys
import llmstream
import llmstream.integrations.{sdk.package.__name__}
assert not {{"openai", "anthropic", "pydantic", "httpx", "httpx2"}} & set(sys.modules)
import {sdk.package.__name__}._base_client as base
for name in {SEAMS}:
    assert getattr(base.BaseClient, name).__module__ == base.__name__
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_uninstall_restores_the_very_same_objects(sdk: SDK, fast: Any, words: list[bytes]) -> None:
    before = functions(sdk)
    fast.uninstall()
    for _ in range(2):
        fast.install()
        fast.install()
        assert not set(map(id, functions(sdk))) & set(map(id, before))
        fast.uninstall()
        assert all(one is other for one, other in zip(functions(sdk), before, strict=True))
        fast.uninstall()


def test_restore_leaves_no_trace(sdk: SDK, fast: Any, words: list[bytes]) -> None:
    client = sdk.client(words)
    before = dict(vars(client))
    assert fast.restore(client) is client
    assert fast.accelerate(client) is client
    replaced = {name: vars(client)[name] for name in SEAMS}
    assert fast.accelerate(client) is client
    assert all(vars(client)[name] is replaced[name] for name in SEAMS)
    assert fast.restore(client) is client
    assert vars(client) == before
    client.close()


def test_one_client_alone_is_accelerated(sdk: SDK, fast: Any, words: list[bytes]) -> None:
    before = functions(sdk)
    client = fast.accelerate(sdk.client(words))
    other = sdk.client(words)
    assert functions(sdk) == before
    assert not set(SEAMS) & set(vars(other))
    copied = client.with_options(timeout=1)
    assert not set(SEAMS) & set(vars(copied))
    expected = sdk.read(other, sdk.start)
    assert_same(expected, sdk.read(copied, sdk.start))


def test_client_and_class_go_together(sdk: SDK, fast: Any, words: list[bytes]) -> None:
    stock = sdk.outcome(words)
    client = fast.accelerate(sdk.client(words))
    fast.install()
    assert_same(stock, sdk.outcome(words))
    assert_same(stock, sdk.read(client, sdk.start))
    fast.restore(client)
    client = fast.accelerate(sdk.client(words))
    fast.uninstall()
    assert_same(stock, sdk.read(client, sdk.start))


def test_a_patch_over_ours_stays_and_gets_plain_json(
    sdk: SDK, fast: Any, words: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    stock = sdk.outcome(words)
    fast.install()
    ours = functions(sdk)[0]
    seen: list[Any] = []

    def theirs(self: Any, **keywords: Any) -> Any:
        seen.append(keywords["data"])
        return ours(self, **keywords)

    with monkeypatch.context() as patch:
        patch.setattr(base_of(sdk), SEAMS[0], theirs)
        for _ in range(2):
            assert_same(stock, sdk.outcome(words))
            assert len(seen) == len(stock[0])
            assert {type(data) for data in seen} == {dict}
            seen.clear()
            fast.uninstall()
            assert functions(sdk)[0] is theirs
        with pytest.warns(RuntimeWarning, match="not the SDK's own"):
            fast.install()
        client = sdk.client(words)
        with pytest.warns(RuntimeWarning, match="of its own"):
            fast.accelerate(client)
        assert_same(stock, sdk.read(client, sdk.start))
    assert functions(sdk)[0] is ours  # as their patch put it back
    assert_same(stock, sdk.outcome(words))
    fast.install()
    fast.uninstall()
    assert functions(sdk)[0] is not ours


def test_a_decoder_over_ours_stays(sdk: SDK, fast: Any, words: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    stock = sdk.outcome(words)
    fast.install()
    ours = functions(sdk)[1]
    monkeypatch.setattr(base_of(sdk), SEAMS[1], lambda self: [ours(self)][0])
    assert_same(stock, sdk.outcome(words))
    fast.uninstall()
    decoder = base_of(sdk)._make_sse_decoder(sdk.client(words))
    assert type(decoder) is import_module(f"{sdk.package.__name__}._streaming").SSEDecoder
    assert_same(stock, sdk.outcome(words))


def test_a_patch_of_the_class_reaches_an_accelerated_client(
    sdk: SDK, fast: Any, words: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = functions(sdk)[0]
    seen: list[Any] = []
    client = fast.accelerate(sdk.client(words))
    monkeypatch.setattr(base_of(sdk), SEAMS[0], lambda self, **keywords: seen.append(1) or own(self, **keywords))
    found, _ = sdk.read(client, sdk.start)
    assert len(seen) == len(found) > 0


def test_a_client_of_the_users_own_class_is_left_alone(sdk: SDK, fast: Any, words: list[bytes]) -> None:
    seen: list[Any] = []

    class Mine(getattr(sdk.package, sdk.name)):  # type: ignore[misc]
        def _process_response_data(self, **keywords: Any) -> Any:
            seen.append(keywords["data"])
            return super()._process_response_data(**keywords)

    stock = sdk.outcome(words)
    client = Mine(api_key="none", http_client=sdk.client(words)._client)
    before = dict(vars(client))
    with pytest.warns(RuntimeWarning, match="Mine has a _process_response_data of its own"):
        fast.accelerate(client)
    assert vars(client) == before
    fast.install()
    assert_same(stock, sdk.read(client, sdk.start))
    assert {type(data) for data in seen} == {dict}


def test_what_is_no_client_is_refused(fast: Any) -> None:
    for value in (None, 1, object(), type):
        with pytest.raises(TypeError, match="not a client"):
            fast.accelerate(value)
    for value in (None, 1, object(), type, type("Any", (), {})()):
        assert fast.restore(value) is value


def test_without_the_sdk_there_is_an_error(sdk: SDK, fast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, sdk.package.__name__, None)
    with pytest.raises(ModuleNotFoundError):
        fast.install()
    with pytest.raises(ModuleNotFoundError):
        fast.accelerate(None)
    fast.uninstall()


def test_a_version_that_is_not_known_is_left_alone_with_one_warning(
    sdk: SDK, fast: Any, words: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sdk.package, "__version__", "99.0.0")
    check_left_alone(sdk, fast, words, "99.0.0")


def test_another_pydantic_is_left_alone(
    sdk: SDK, fast: Any, words: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("pydantic"), "VERSION", "1.10.0")
    check_left_alone(sdk, fast, words, "pydantic")


def test_an_sdk_without_the_seam_is_left_alone(
    sdk: SDK, fast: Any, words: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    streaming = import_module(f"{sdk.package.__name__}._streaming")
    event = streaming.ServerSentEvent
    monkeypatch.delattr(streaming, "ServerSentEvent")
    check_left_alone(sdk, fast, (), "other parts")
    monkeypatch.setattr(streaming, "ServerSentEvent", event, raising=False)


def test_a_seam_of_another_form_is_left_alone(
    sdk: SDK, fast: Any, words: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = functions(sdk)[0]

    def other(self: Any, *, data: Any, cast_to: Any, response: Any, more: Any = None) -> Any:
        return own(self, data=data, cast_to=cast_to, response=response)

    other.__name__ = SEAMS[0]
    monkeypatch.setattr(base_of(sdk), SEAMS[0], other)
    check_left_alone(sdk, fast, words, "not the SDK's own")
    other = FunctionType(other.__code__.replace(co_name=SEAMS[0]), own.__globals__, closure=other.__closure__)
    other.__kwdefaults__ = {"more": None}
    monkeypatch.setattr(base_of(sdk), SEAMS[0], other)
    check_left_alone(sdk, fast, words, "other parameters")


@pytest.mark.parametrize("number", [0, 1], ids=SEAMS)
def test_a_patch_that_takes_the_name_of_what_it_wraps_is_not_the_sdks_own(
    sdk: SDK, fast: Any, words: list[bytes], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """``functools.wraps`` gives a patch the name, the module and the signature of the SDK's own function."""
    name, own = SEAMS[number], functions(sdk)[number]
    seen: list[Any] = []

    @functools.wraps(own)
    def theirs(*arguments: Any, **keywords: Any) -> Any:
        seen.append(1)
        return own(*arguments, **keywords)

    monkeypatch.setattr(base_of(sdk), name, theirs)
    stock = sdk.outcome(words)
    expected = len(seen)
    assert expected
    with pytest.warns(RuntimeWarning, match=f"{name} is not the SDK's own"):
        fast.install()
    client = fast.accelerate(sdk.client(words))
    seen.clear()
    assert_same(stock, sdk.read(client, sdk.start))
    assert len(seen) == expected


@pytest.mark.parametrize("name", ["ServerSentEvent.json", "SSEDecoder.decode", "Stream._iter_events"])
def test_a_patch_of_what_our_decoder_stands_for_is_heeded(
    sdk: SDK, fast: Any, words: list[bytes], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    kind, _, method = name.partition(".")
    owner = getattr(import_module(f"{sdk.package.__name__}._streaming"), kind)
    own = vars(owner)[method]
    seen: list[Any] = []
    monkeypatch.setattr(owner, method, functools.wraps(own)(lambda *given: seen.append(1) or own(*given)))
    with pytest.warns(RuntimeWarning, match=f"{method} is not the SDK's own"):
        fast.install()
    assert not seen
    sdk.outcome(words)
    assert seen


class Looking:
    """A decoder around another, which reads and changes the payloads that come through it."""

    def __init__(self, inner: Any, seen: list[Any]) -> None:
        self.inner = inner
        self.seen = seen

    def see(self, event: Any) -> Any:
        value = event.json()
        assert type(value) is dict
        self.seen.append(json.dumps(value))
        return event

    def iter_bytes(self, chunks: Any) -> Any:
        return map(self.see, self.inner.iter_bytes(chunks))

    async def aiter_bytes(self, chunks: Any) -> Any:
        async for event in self.inner.aiter_bytes(chunks):
            yield self.see(event)


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("where", ["class", "client", "accelerated client", "stream"])
def test_a_decoder_around_ours_sees_plain_json(
    sdk: SDK, fast: Any, words: list[bytes], monkeypatch: pytest.MonkeyPatch, where: str, asynchronous: bool
) -> None:
    stock = sdk.outcome(words)
    expected = [json.dumps(json.loads(word.partition(b"data: ")[2])) for word in words]
    seen: list[Any] = []
    client = sdk.client(words, asynchronous=asynchronous)
    start = sdk.start
    fast.install()
    if where == "accelerated client":
        fast.accelerate(client)
    if where == "class":
        ours = functions(sdk)[1]
        monkeypatch.setattr(base_of(sdk), SEAMS[1], lambda self: Looking(ours(self), seen))
    elif where == "stream":

        def opened(stream: Any) -> Any:
            stream._decoder = Looking(stream._decoder, seen)
            return stream

        async def later(stream: Any) -> Any:
            return opened(await stream)

        def start(client: Any) -> Any:
            return (later if asynchronous else opened)(sdk.start(client))

    else:
        own = client._make_sse_decoder
        client._make_sse_decoder = lambda: Looking(own(), seen)
    assert_same(stock, sdk.read(client, start, asynchronous=asynchronous))
    assert seen == expected


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("where", ["a class of theirs", "the class"])
def test_a_stream_that_is_not_the_sdks_own_gets_plain_json(
    sdk: SDK, fast: Any, words: list[bytes], monkeypatch: pytest.MonkeyPatch, where: str, asynchronous: bool
) -> None:
    """What it writes into a payload, and what it asks of it, is heeded; so is a change that is not seen in a dict."""
    streaming = import_module(f"{sdk.package.__name__}._streaming")
    kind = streaming.AsyncStream if asynchronous else streaming.Stream

    def changed(event: Any) -> Any:
        value = event.json()
        assert type(value) is dict
        value["note"] = json.dumps(value)
        event.json = lambda: value
        return event

    class Event(streaming.ServerSentEvent):  # type: ignore[name-defined,misc]
        """One whose JSON may be set."""

    def again(event: Any) -> Any:
        made = Event(event=event.event, data=event.data, id=event.id, retry=event.retry)
        made.json = event.json
        return changed(made)

    def events(self: Any) -> Any:
        return map(again, kind._iter_events_of_the_sdk(self))

    async def later_events(self: Any) -> Any:
        async for event in kind._iter_events_of_the_sdk(self):
            yield again(event)

    fast.install()
    fast.uninstall()
    replaced = later_events if asynchronous else events
    monkeypatch.setattr(kind, "_iter_events_of_the_sdk", kind._iter_events, raising=False)
    if where == "the class":
        monkeypatch.setattr(kind, "_iter_events", replaced)
        start = sdk.start
    else:
        mine = type("Mine", (kind,), {"_iter_events": replaced})

        def of_mine(stream: Any) -> Any:
            return mine(
                cast_to=stream._cast_to, response=stream.response, client=stream._client, options=stream._options
            )

        async def later(stream: Any) -> Any:
            return of_mine(await stream)

        def start(client: Any) -> Any:
            return (later if asynchronous else of_mine)(sdk.start(client))

    stock = sdk.outcome(words, start=start, asynchronous=asynchronous)
    assert len(stock[0]) == len(words)
    assert all(item.note for item in stock[0])
    fast.install()
    assert_same(stock, sdk.outcome(words, start=start, asynchronous=asynchronous))
    assert_same(stock, sdk.outcome(words, fast.accelerate, start=start, asynchronous=asynchronous))


def test_a_copy_of_an_accelerated_client_is_its_own(sdk: SDK, fast: Any, words: list[bytes]) -> None:
    client = fast.accelerate(sdk.client(words))
    copied = copy.copy(client)
    assert fast.accelerate(copied) is copied
    assert all(vars(copied)[name].__self__ is copied for name in SEAMS)
    assert all(vars(client)[name].__self__ is client for name in SEAMS)
    fast.restore(copied)
    assert not set(SEAMS) & set(vars(copied))
    assert set(SEAMS) <= set(vars(client))
    client.close()


def test_an_sdk_that_builds_other_objects_is_left_alone(
    sdk: SDK, fast: Any, words: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The self-check: the same function is there, and gives something else each time."""
    base = import_module(f"{sdk.package.__name__}._base_client")
    own = base.construct_type
    count = iter(range(10**9))
    monkeypatch.setattr(base, "construct_type", lambda **keywords: [own(**keywords), next(count)])
    check_left_alone(sdk, fast, (), "other objects")
    monkeypatch.setattr(base, "construct_type", lambda **keywords: [own(**keywords)])
    check_left_alone(sdk, fast, (), "could be built")
    monkeypatch.setattr(base, "construct_type", None)
    check_left_alone(sdk, fast, (), "could not be read")


def check_left_alone(sdk: SDK, fast: Any, words: Any, reason: str) -> None:
    before = functions(sdk)
    client = sdk.client(words)
    with pytest.warns(RuntimeWarning, match=f"{sdk.package.__name__} is not accelerated: .*{reason}") as told:  # noqa: PT031
        fast.install()
        fast.install()
        assert fast.accelerate(client) is client
    assert len(told) == 1
    assert told[0].filename == __file__
    assert functions(sdk) == before
    assert not set(SEAMS) & set(vars(client))
    fast.uninstall()
    fast.restore(client)
    client.close()
    if words:
        assert sdk.outcome(words)[0]


def test_threads(sdk: SDK, fast: Any, words: list[bytes]) -> None:
    """Installing, taking out and reading in many threads at once: every stream is whole."""
    stock = sdk.outcome(words)
    before = functions(sdk)
    failures: list[BaseException] = []
    start = threading.Barrier(6)

    def work(number: int) -> None:
        try:
            start.wait()
            for _ in range(10):
                if number < 3:
                    fast.install()
                    assert alike(sdk.outcome(words)[0], stock[0])
                    fast.uninstall()
                else:
                    client = fast.accelerate(sdk.client(words))
                    assert alike(sdk.read(client, sdk.start)[0], stock[0])
                    fast.restore(client)
        except BaseException as error:  # noqa: BLE001 (it is raised in the test's own thread)
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert all(one is other for one, other in zip(functions(sdk), before, strict=True))


def test_one_client_streams_in_many_threads(sdk: SDK, fast: Any, words: list[bytes]) -> None:
    stock = sdk.outcome(words)
    client = fast.accelerate(sdk.client(words))
    found: list[Any] = []

    def work() -> None:
        for _ in range(5):
            with sdk.start(client) as stream:
                found.append(list(stream))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client.close()
    assert len(found) == 20
    assert all(alike(one, stock[0]) for one in found)


def test_a_stream_under_way_is_not_affected(sdk: SDK, fast: Any, words: list[bytes]) -> None:
    stock = sdk.outcome(words)
    for step in range(len(stock[0])):
        fast.install()
        with sdk.client(words) as client, sdk.start(client) as stream:
            found = list(islice(stream, step))
            fast.uninstall()
            found += stream
        assert alike(found, stock[0])


def test_an_accelerated_client_is_collected(sdk: SDK, fast: Any, words: list[bytes]) -> None:
    client = fast.accelerate(sdk.client(words))
    client.close()
    gone = weakref.ref(client)
    del client
    gc.collect()
    assert gone() is None


def test_no_warning_without_a_doubt(sdk: SDK, fast: Any, words: list[bytes]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fast.install()
        sdk.outcome(words, fast.accelerate)
