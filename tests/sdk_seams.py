"""The tests that the accelerations of all SDKs must pass: what is replaced, when, and how it comes back.

A test file imports them all and has the fixtures ``sdk``, ``fast`` and ``words`` (the events of a stream with text).
"""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import warnings
import weakref
from importlib import import_module
from itertools import islice
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
        assert fast.restore(object.__new__(type("Any", (), {}))) is not None


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

    monkeypatch.setattr(base_of(sdk), SEAMS[0], other)
    check_left_alone(sdk, fast, words, "not the SDK's own")
    other.__module__ = own.__module__
    check_left_alone(sdk, fast, words, "other parameters")


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

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
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

    threads = [threading.Thread(target=work) for _ in range(4)]
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
