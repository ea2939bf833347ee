"""Where gateways break: the cases of one table, each for a stream that is passed on and one that is rewritten.

What the client got is read by a few lines of Python and its json module, and not by ours."""

from __future__ import annotations

import contextlib
import json
from typing import NamedTuple

import pytest
from gateway_server import WAIT, Recorder, behind, broken, served, until

import vendors

httpx2 = pytest.importorskip("httpx2")
pytest.importorskip("hypercorn")
pytest.importorskip("aiohttp")

WORDS = ["Hello", " w\u00f6rld", " \U0001f600", " d\u2028e\u0085f", " g"]
TEXT = "".join(WORDS)
QUESTION = [{"role": "user", "content": "?"}]
JSON = {"content-type": "application/json"}
KEEP_ALIVE = b": keep-alive\n\n"


class Way(NamedTuple):
    """From an upstream to a client; ``client`` None is one of the standard."""

    upstream: str
    client: str | None

    @property
    def is_passed_on(self):
        return self.upstream == self.client

    def request(self, url):
        body = {"model": "m", "messages": QUESTION, "stream": True}
        if self.client is None:
            headers = {"content-type": "application/llm-request+json"}
            return {"url": f"{url}/v1/stream", "headers": headers, "content": json.dumps({"version": "1.0", **body})}
        path = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}[self.client]
        return {"url": url + path, "headers": JSON, "content": json.dumps({**body, "max_tokens": 9})}


WAYS = [
    Way("openai", "openai"),
    Way("anthropic", "anthropic"),
    Way("openai", None),
    Way("anthropic", None),
    Way("anthropic", "openai"),
    Way("openai", "anthropic"),
]
every_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way.upstream}>{way.client or 'standard'}")


class Said(NamedTuple):
    """What an answer says to a client: its text, whether it has the end of a whole answer, and its error."""

    text: str
    is_whole: bool
    error: dict | None


def said(client, body):
    """Of a stream with LF and one line of data an event."""
    text, stop, end, error = "", None, False, None
    for block in body.split(b"\n\n"):
        data = [line[6:] for line in block.split(b"\n") if line.startswith(b"data: ")]
        if not data:
            continue
        if data == [b"[DONE]"]:
            end = True
            continue
        event = json.loads(data[0])
        kind = event.get("type")
        if client is None:
            text += event["delta"]["text"] if kind == "content.delta" else ""
            stop = event["stop_reason"] if kind == "content.stop" else stop
            error = event if kind == "error" else error
            end = end or kind == "stream.end"
        elif event.get("error"):
            error = event["error"]
        elif client == "openai":
            for choice in event["choices"]:
                text += choice["delta"].get("content") or ""
                stop = choice["finish_reason"] or stop
        else:
            delta = event.get("delta", {})
            text += delta.get("text", "")
            stop = delta.get("stop_reason") or stop
            end = end or kind == "message_stop"
    return Said(text, stop in ("stop", "end_turn") and end and error is None, error)


@pytest.fixture
def ask(gateway_module, replay):
    """``ask(way, body, ...)``: the status and what the client got of it, up to a cut of the connection."""

    def do(way, body, **playing):
        with behind(gateway_module, {way.upstream: (replay(body, **playing), {})}) as here:
            return got(way.request(here.url))

    return do


def got(request):
    found = []
    with httpx2.Client(timeout=WAIT) as client, client.stream("POST", **request) as response:
        try:
            found.extend(response.iter_raw())
            is_cut = False
        except httpx2.RemoteProtocolError:
            is_cut = True
    return response.status_code, b"".join(found), is_cut


def events_of(way):
    return vendors.VENDORS[way.upstream](WORDS)


def cut_at(way, mark, offset=0):
    body = b"".join(events_of(way))
    return body[: body.index(mark) + offset]


CHANGES = {
    "comments": lambda body: body.replace(b"\n\n", b"\n\n" + KEEP_ALIVE),
    "a byte order mark": lambda body: b"\xef\xbb\xbf" + body,
    "CRLF": lambda body: body.replace(b"\n", b"\r\n"),
    "CR": lambda body: body.replace(b"\n", b"\r"),
    "raw U+2028 and U+0085": lambda body: body,
    "unknown members": lambda body: body.replace(b"data: {", b'data: {"unknown":{"a":[1.50,null]},'),
    "an event of 300 kB": lambda body: body.replace(b" g", b" " + b"g" * 300_000),
}


@every_way
@pytest.mark.parametrize("chunk", ["event", "1"])
@pytest.mark.parametrize("change", CHANGES)
def test_nothing_is_lost(ask, way, chunk, change):
    """With ``chunk`` "1" each byte is a chunk, and so no character is whole in one."""
    body = CHANGES[change](b"".join(events_of(way)))
    text = TEXT.replace("g", "g" * 300_000) if "300 kB" in change else TEXT
    status, found, is_cut = ask(way, body, chunk="997" if len(body) > 100_000 and chunk == "1" else chunk)
    assert (status, is_cut) == (200, False)
    if way.is_passed_on:
        assert found == body
    else:
        assert said(way.client, found) == Said(text, True, None)


@every_way
def test_a_comment_is_no_silence(gateway_module, replay, client, way):
    """While the upstream has nothing but comments, the client has some too: those, or ours."""
    events = events_of(way)
    at = next(number for number, event in enumerate(events) if b"Hello" in event) + 1
    body = [*events[:at], KEEP_ALIVE * 3, *events[at:]]
    stalls = replay(b"".join(body[: at + 1]) + b": x", fault="stall", after=1, chunk="whole")
    with behind(gateway_module, {way.upstream: (stalls, {})}, keep_alive=0.05) as here:
        found = b""
        with client.stream("POST", **way.request(here.url)) as response:
            for chunk in response.iter_raw():
                found += chunk
                if b"Hello" in found and found.count(KEEP_ALIVE) >= 2:
                    break


@every_way
def test_a_connection_that_is_cut(gateway_module, way):
    """It is seen: a cut connection or an error, and no good end."""
    body = cut_at(way, b" g") + b'data: {"ha'
    with (
        broken(body) as url,
        served(gateway_module.Gateway([gateway_module.Upstream(way.upstream, url)])) as port,
    ):
        status, found, is_cut = got(way.request(f"http://127.0.0.1:{port}"))
    assert status == 200
    if way.is_passed_on:
        assert is_cut
        assert found == body
    else:
        answer = said(way.client, found)
        assert (answer.text, answer.is_whole) == ("".join(WORDS[:-1]), False)
        assert answer.error is not None


@every_way
@pytest.mark.parametrize("place", ["half an event", "no end mark", "no stop reason"])
def test_an_end_that_is_none(ask, way, place):
    """HTTP ends well, and the stream is not whole: nobody makes a good end of it. It is whole for OpenAI's format once
    the stop reason was there, which many who speak it leave without an end mark (docs/providers.md)."""
    reason = {"openai": b'"finish_reason":"stop"', "anthropic": b'"stop_reason":"end_turn"'}[way.upstream]
    mark = {"openai": b"data: [DONE]", "anthropic": b"event: message_stop"}[way.upstream]
    events = events_of(way)
    last = next(number for number, event in enumerate(events) if b" g" in event) + 1
    body = {
        "half an event": cut_at(way, b" g", -5),
        "no end mark": b"".join(events)[: b"".join(events).index(mark)],
        "no stop reason": b"".join(events[:last]),
    }[place]
    assert (reason in body) is (place == "no end mark")
    status, found, is_cut = ask(way, body)
    assert (status, is_cut) == (200, False)
    if way.is_passed_on:
        assert found == body
    elif (way.upstream, place) == ("openai", "no end mark"):
        assert said(way.client, found) == Said(TEXT, True, None)
    else:
        answer = said(way.client, found)
        assert answer.text == "".join(WORDS[:-1] if place == "half an event" else WORDS)
        assert not answer.is_whole
        assert answer.error is not None
        assert b"[DONE]" not in found
        assert b"message_stop" not in found


ERRORS = {
    "openai": (
        b'data: {"error":{"message":"too many cooks","type":"rate_limit_error","code":"rate_limit_exceeded"}}\n\n'
    ),
    "anthropic": (
        b'event: error\ndata: {"type":"error","error":{"type":"rate_limit_error","message":"too many cooks"}}\n\n'
    ),
}


@every_way
def test_an_error_event(ask, way):
    """Its kind and its words are kept, in the format of the client."""
    last = next(number for number, event in enumerate(events_of(way)) if b" g" in event)
    status, found, is_cut = ask(way, [*events_of(way)[:last], ERRORS[way.upstream]], pace=100)
    assert (status, is_cut) == (200, False)
    answer = said(way.client, found)
    assert (answer.text, answer.is_whole) == ("".join(WORDS[:-1]), False)
    assert answer.error["message"] == "too many cooks"
    if way.client is None:
        assert answer.error["code"] == "rate_limited"
    else:
        assert answer.error["type"] == "rate_limit_error"
    if way.client == "openai":
        assert answer.error["code"] == "rate_limit_exceeded"


@every_way
@pytest.mark.parametrize("when", ["silent", "busy"])
def test_a_client_that_leaves(gateway_module, replay, way, when):
    """The upstream is let go, and does not run to its own end, which would be minutes away."""
    playing = {"fault": "stall", "after": 5} if when == "silent" else {"pace": 20}
    events = events_of(way)
    at = next(number for number, event in enumerate(events) if b"Hello" in event)
    upstream = Recorder(replay([*events[:at], *events[at : at + 1] * 2000], **playing))
    with behind(gateway_module, {way.upstream: (upstream, {})}) as here:
        with (
            httpx2.Client(timeout=WAIT) as client,
            client.stream("POST", **way.request(here.url)) as response,
            contextlib.closing(response.iter_raw()) as chunks,
        ):
            next(chunks)
            assert upstream.over == 0
        until(lambda: upstream.over == 1)
        until(lambda: here.exchanges)
    assert here.exchanges[0].gone
