"""The gateway: requests in, one upstream's stream out, in the form that the client asked for."""

from __future__ import annotations

import contextlib
import hmac
import logging
from functools import lru_cache

from ... import payload
from ...dialects.hints import dialect_for
from ...errors import RequestError
from ...negotiation import EVENT_STREAM, REQUEST, request_format, response_format
from ...observer import Observer
from ...request import Request
from .answering import Answer
from .client import Client
from .exchange import Exchange
from .limits import Limits
from .reading import GoneError, headers_of, read_body
from .refusing import RefusedError
from .routing import Route, route
from .translating import read_request
from .upstream import CREDENTIALS, credential, query_items

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from typing import Any, Self

    from ..asgi import Receive, Scope, Send
    from .upstream import Sent, Upstream

__all__ = ["Gateway"]

log = logging.getLogger("llmstream.gateway")


class Gateway:
    """An ASGI application in front of LLM endpoints, by itself or mounted in another::

        gateway = Gateway([
            Upstream("openai", "https://api.openai.com/v1", key=..., models=["gpt-*"]),
            Upstream("anthropic", "https://api.anthropic.com/v1", key=..., models=["claude-*"]),
        ])
        app.mount("/", gateway)                   # Starlette, FastAPI

    A POST of application/llm-request+json, to any of its paths, is translated for the upstream that answers the model,
    and comes back as the standard stream (draft, sections 4 and 7.1). A vendor's own request, at a path of the vendor's
    API, is passed on and its answer comes back byte for byte, read along with by an ``Observer``; where only an
    upstream of another format answers its model, request and answer are translated, and the header "llmstream-lost"
    names what could not be carried. Where Accept names the profile "llm-stream-1.0", the answer is the standard stream
    (section 7.3).

    ``path``        of the standard endpoint
    ``keys``        what clients have to know, as a bearer token or in a vendor's header; none: whoever can reach it
    ``limits``      what is bounded
    ``strict``      whether a standard request that has a harmless fault is refused too
    ``keep_alive``  seconds of silence after which a stream that is rewritten gets a comment; None: never
    ``observer``    makes what reads along with a stream, from the Exchange, the dialect (as ``Parser`` takes it) and
                    the headers of the client by name; by default an ``Observer``
    ``on_end``      called with the ``Exchange`` of each request that went to an upstream, at its end. By default it is
                    logged by ``llmstream.gateway``. What it raises is logged by its name and does no other harm

    What is wrong with a request is a status, and its body is an error as the client's format has it: 401, 404 (path or
    model), 405, 406, 408, 413, 415, 400 with the path of the fault in the request, 503 where there are too many
    streams. So is what is wrong with the upstream before the first byte: its own status where that is about the
    request, else 502, 503 or 504. After it there is an error within the stream, and never a good end (section 5.3.6).
    Where a client leaves, the upstream's connection is closed.
    """

    def __init__(
        self,
        upstreams: Iterable[Upstream],
        *,
        path: str = "/v1/stream",
        keys: Collection[str] = (),
        limits: Limits | None = None,
        strict: bool = True,
        keep_alive: float | None = 15.0,
        observer: Callable[[Exchange, Any, dict[str, str]], Observer] | None = None,
        on_end: Callable[[Exchange], object] | None = None,
    ) -> None:
        self.upstreams = list(upstreams)
        if not self.upstreams:
            raise ValueError("a gateway needs an upstream")
        self.limits = limits or Limits()
        self._vendors = [each for each in self.upstreams if each.vendor is not None]
        self.open = 0  # streams under way
        self._path = path
        self._keys = [key.encode() for key in ((keys,) if isinstance(keys, str) else keys)]
        self._strict = strict
        self._keep_alive = keep_alive
        self._observer = observer or _observer
        self._on_end = on_end or _log
        self._client = Client(self.limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await _Call(self, scope, receive, send).run()
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close"})

    async def aclose(self) -> None:
        """Closes the connections to the upstreams; where it is served by itself, the server does this."""
        await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *fault: object) -> None:
        await self.aclose()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self.aclose()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    def _is_known(self, key: str | None) -> bool:
        given = (key or "").encode("utf-8", "surrogateescape")
        # All of them are looked at, so that the time tells nothing.
        return not self._keys or sum(hmac.compare_digest(given, each) for each in self._keys) > 0

    def _takes(self, found: Route) -> bool:
        """Whether a vendor's own request is taken at an endpoint."""
        return found.has_translation or any(each.vendor == found.vendor for each in self._vendors)

    def _same(self, model: str | None, found: Route) -> Upstream | None:
        """The upstream that a vendor's request can be passed on to, as it is; None where it has to be translated."""
        same = [each for each in self._vendors if each.vendor == found.vendor]
        for each in same:
            if each.takes(model or ""):
                return each
        if not found.has_translation:
            raise _no_upstream()
        return None

    def _upstream(self, model: str | None) -> Upstream:
        """The first upstream that answers a model."""
        for each in self.upstreams:
            if each.takes(model or ""):
                return each
        raise _no_upstream()


class _Call:
    """One request."""

    def __init__(self, gateway: Gateway, scope: Scope, receive: Receive, send: Send) -> None:
        self.gateway = gateway
        self.scope = scope
        self.receive = receive
        self.answer: Answer | None = None  # once it is known which upstream is asked
        self.vendor: str | None = None  # in whose format the client reads errors
        self.headers: dict[str, str] = {}
        self.send = send

    async def run(self) -> None:
        try:
            await self._answer()
        except GoneError:
            if self.answer is not None:
                self.answer.exchange.gone = True
        except RefusedError as refused:
            if self.answer is not None:
                self.answer.failed(refused, self.vendor)
            if self.answer is None or not self.answer.started:
                with contextlib.suppress(OSError):
                    await refused.send(self.send, self.vendor)
        except Exception:
            if self.answer is not None:
                self.answer.exchange.error = self.answer.exchange.error or "internal_error"
            raise
        finally:
            if self.answer is not None:
                self._record(self.answer)

    async def _answer(self) -> None:
        gateway, scope = self.gateway, self.scope
        root = scope.get("root_path", "")
        path = scope["path"]
        found = route(path.removeprefix(root) if root else path, gateway._path)
        if found is None:
            raise RefusedError(404, "not_found", "there is no such endpoint")
        self.vendor = found.vendor
        if scope["method"] != "POST":
            allow = (("allow", "POST"),)
            raise RefusedError(405, "method_not_allowed", "a request is a POST (section 3)", headers=allow)
        pairs, headers = headers_of(scope)
        self.headers = headers
        taken = ("application/json",) if gateway._takes(found) else ()
        asked = _known(_asked, headers.get("content-type"), taken)
        if asked == "standard":
            self.vendor = None
        if asked is None or headers.get("content-encoding", "identity") != "identity":
            kinds = ", ".join((REQUEST, *taken))
            raise RefusedError(
                415, "unsupported_media_type", f"a request here is {kinds}", headers=(("accept", kinds),)
            )
        wanted = _known(_wanted, headers.get("accept"), asked)
        if wanted is None:
            raise RefusedError(406, "not_acceptable", f"a stream is {EVENT_STREAM}")
        key = credential(headers) or _query_key(scope)
        if not gateway._is_known(key):
            raise RefusedError(401, "unauthenticated", "a key is needed", headers=(("www-authenticate", "Bearer"),))
        if gateway.open >= gateway.limits.streams:
            raise RefusedError(503, "overloaded", "too many streams at once", headers=(("retry-after", "1"),))
        gateway.open += 1
        try:
            body = await read_body(self.receive, headers, gateway.limits)
            key = None if gateway._keys else key
            try:
                if asked == "standard":
                    self.answer, sent = self._standard_request(body, key)
                else:
                    self.answer, sent = self._vendor_request(found, pairs, body, key)
            except RequestError as error:
                raise RefusedError(
                    400, "invalid_request", str(error), path=error.path, requirement=error.requirement
                ) from None
            await self.answer.run(sent, wanted)
        finally:
            gateway.open -= 1

    # What is sent

    def _standard_request(self, body: bytes, key: str | None) -> tuple[Answer, Sent]:
        gateway = self.gateway
        request = Request.from_json(body, strict=gateway._strict, max_size=gateway.limits.request_size)
        request.raise_for_violations(strict=gateway._strict)
        upstream = gateway._upstream(request.model)
        sent = upstream.translated(request, key, body)
        answer = self._begin(upstream, request.model, upstream.dialect)
        answer.exchange.request_id = request.request_id
        answer.exchange.lost = sent.lost
        return answer, sent

    def _vendor_request(
        self, found: Route, pairs: list[tuple[str, str]], body: bytes, key: str | None
    ) -> tuple[Answer, Sent]:
        """As it is to an upstream of its format, else translated."""
        gateway = self.gateway
        model = found.model or _model(body)
        query = query_items(self.scope.get("query_string", b""))
        upstream = gateway._same(model, found)
        if upstream is None:
            return self._translated_request(found, query, body, key, model)
        if gateway._keys:  # a key of the gateway is for nobody else
            pairs = [pair for pair in pairs if pair[0] not in CREDENTIALS]
            query = [item for item in query if item[0] != "key"]
        answer = self._begin(upstream, model, dialect_for(path=found.tail))
        return answer, upstream.passed(found, query, pairs, body)

    def _translated_request(
        self, found: Route, query: list[tuple[str, str]], body: bytes, key: str | None, model: str | None
    ) -> tuple[Answer, Sent]:
        gateway = self.gateway
        # Whose model nobody answers has no need to know what else is wrong.
        upstream = None if model is None else gateway._upstream(model)
        request, client, lost = read_request(found, query, body, gateway.limits.request_size)
        upstream = upstream or gateway._upstream(request.model)
        sent = upstream.translated(request, key)
        answer = self._begin(upstream, request.model, upstream.dialect)
        answer.client = client
        answer.exchange.lost = [*lost, *sent.lost]
        return answer, sent

    def _begin(self, upstream: Upstream, model: str | None, dialect: Any) -> Answer:
        gateway, exchange = self.gateway, Exchange(upstream=upstream, model=model)
        observer = gateway._observer(exchange, dialect, self.headers)
        asgi = (self.scope, self.receive, self.send)
        return Answer(gateway._client, exchange, observer, dialect, asgi, self.headers, gateway._keep_alive)

    def _record(self, answer: Answer) -> None:
        try:
            answer.end()
            self.gateway._on_end(answer.exchange)
        except Exception as error:  # noqa: BLE001 (whatever it is, the answer is over)
            log.warning("recording an exchange raised %s", type(error).__name__)


def _asked(content_type: str | None, taken: tuple[str, ...]) -> str | None:
    return request_format(content_type, vendor=taken)


def _wanted(accept: str | None, asked: str) -> str | None:
    offered = () if asked == "standard" else (EVENT_STREAM, "application/json")
    return response_format(accept, request=asked, vendor=offered)


@lru_cache(maxsize=256)
def _remembered(decision: Callable[[str | None, Any], str | None], value: str | None, given: Any) -> str | None:
    return decision(value, given)


def _known(decision: Callable[[str | None, Any], str | None], value: str | None, given: Any) -> str | None:
    """What a decision makes of a header. Those of most clients are few, short, and the same again and again."""
    return decision(value, given) if len(value or "") > 200 else _remembered(decision, value, given)


def _no_upstream() -> RefusedError:
    return RefusedError(404, "model_not_found", "no upstream answers this model", path="model")


def _observer(exchange: Exchange, dialect: Any, headers: dict[str, str]) -> Observer:
    return Observer(dialect)


def _log(exchange: Exchange) -> None:
    seen = exchange.observation
    if seen is None or not log.isEnabledFor(logging.INFO):
        return
    log.info(
        "%s: status %s, %s, %s and %s tokens, %s bytes in %.3f s%s%s",
        exchange.upstream.name,
        exchange.status,
        "client left" if exchange.gone else exchange.error or "complete",
        seen.input_tokens,
        seen.output_tokens,
        seen.byte_count,
        seen.duration,
        ", not carried: " if exchange.lost else "",
        ", ".join(loss.path for loss in exchange.lost[:20]),
    )


def _model(body: bytes) -> str | None:
    """The model that a vendor's request names; None where that cannot be read, which the upstream will say better."""
    try:
        value = payload.read(body.decode("utf-8-sig", "replace"))
    except ValueError:
        return None
    found = value.get("model") if isinstance(value, dict) else None
    return found if isinstance(found, str) else None


def _query_key(scope: Scope) -> str | None:
    return next((value for name, value in query_items(scope.get("query_string", b"")) if name == "key"), None)
