"""An endpoint behind a gateway: where it is, what it speaks, and how it is asked."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from ..._registry import DIALECTS, STANDARD
from ...negotiation import request_headers
from ...translation import to_vendor
from ..in_band import FAMILIES, vendor_of
from .refusing import RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ...request import Request
    from ...translation import Loss
    from .routing import Route

__all__ = ["CREDENTIALS", "Sent", "Upstream", "credential", "query_items"]

KEY_HEADERS = {"openai": "authorization", "anthropic": "x-api-key", "gemini": "x-goog-api-key"}
CREDENTIALS = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
"""Headers that hold a key."""

MAX_PARAMETERS = 1000
"""Of a URL's query."""

FIXED = {"anthropic": [("anthropic-version", "2023-06-01")]}
"""Headers without which a vendor does not answer."""

NOT_PASSED = frozenset(
    {
        *("connection", "content-length", "expect", "host", "http2-settings", "keep-alive", "proxy-authorization"),
        *("proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"),  # of one connection
        *("accept-encoding", "cookie", "forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip"),
        "x-forwarded-proto",
    }
)
"""Headers of a client that no upstream gets."""


class Sent(NamedTuple):
    """A request as it goes to an upstream, and what of the client's could not be carried."""

    url: str
    headers: list[tuple[str, str]]
    body: bytes
    lost: list[Loss]


class Upstream:
    """An endpoint behind a ``Gateway``.

    ``dialect``  "openai", "anthropic", "gemini", any name of the OpenAI family ("groq", "vllm", ...), or "llm-stream"
                 for one that speaks the standard itself
    ``url``      what comes before "/chat/completions", "/messages" or "/models/...", the version included:
                 "https://api.openai.com/v1"; of a standard endpoint, the whole URL
    ``key``      what it is asked with. None: each client's own key is handed on
    ``models``   the models that it answers, as patterns ("gpt-*"); the first upstream that fits is asked
    ``headers``  further headers for it
    ``name``     what it is called in records and logs; by default the host

    ``repr`` does not show the key. Raises ValueError for a dialect whose requests are not known, and for no URL.
    """

    def __init__(
        self,
        dialect: str,
        url: str,
        *,
        key: str | None = None,
        models: Iterable[str] = ("*",),
        headers: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError("url must be that of an endpoint over HTTP, without a query")
        self.dialect = dialect
        self.vendor = None if dialect == STANDARD else vendor_of(dialect)
        known = dialect == STANDARD or dialect in FAMILIES or (dialect in DIALECTS and _is_openai_like(dialect))
        if not known:
            raise ValueError(f"no request is known for {dialect!r}")
        self.url = url.rstrip("/")
        self.host = parts.hostname
        self.port = parts.port or (443 if parts.scheme == "https" else 80)
        self.name = name or self.host
        self.models = (models,) if isinstance(models, str) else tuple(models)
        self._key = key
        self._headers = {key.lower(): value for key, value in (headers or {}).items()}

    @property
    def has_key(self) -> bool:
        """Whether it is asked with a key of its own."""
        return self._key is not None

    def takes(self, model: str) -> bool:
        """Whether it answers a model."""
        return any(fnmatchcase(model, pattern) for pattern in self.models)

    def translated(self, request: Request, key: str | None, body: bytes | None = None) -> Sent:
        """A standard request in its format (section 7.1); ``key`` is the client's, ``body`` the request as it came, if
        it was a standard one. Raises RequestError for what has no translation."""
        if self.vendor is None:
            return Sent(self.url, self._asking(request_headers(), key), body or request.to_json(), [])
        found = to_vendor(request, self.vendor)  # type: ignore[arg-type]
        tail = {"openai": "/chat/completions", "anthropic": "/messages"}.get(self.vendor)
        tail = tail or f"/models/{quote(found.model, safe='')}:streamGenerateContent?alt=sse"
        headers = [("content-type", "application/json"), ("accept", "text/event-stream"), *FIXED.get(self.vendor, [])]
        return Sent(self.url + tail, self._asking(headers, key), found.to_json(), found.lost)

    def passed(
        self, route: Route, query: list[tuple[str, str]], headers: Iterable[tuple[str, str]], body: bytes
    ) -> Sent:
        """A request in its own format, as the client made it but for what belongs to one connection; where the upstream
        has a key of its own, the client's stays here."""
        given = list(headers)
        nominated = {name.strip().lower() for key, value in given if key == "connection" for name in value.split(",")}
        left_out = NOT_PASSED | nominated | (frozenset(CREDENTIALS) if self.has_key else frozenset())
        kept = [(name, value) for name, value in given if name not in left_out]
        text = urlencode([item for item in query if not (self.has_key and item[0] == "key")])
        url = f"{self.url}{route.tail}"
        return Sent(f"{url}?{text}" if text else url, self._asking(kept, None), body, [])

    def _asking(self, headers: list[tuple[str, str]], key: str | None) -> list[tuple[str, str]]:
        key = self._key if self.has_key else key
        found: dict[str, str] = {}
        for name, value in headers:
            found[name] = f"{found[name]}, {value}" if name in found else value
        found["accept-encoding"] = "identity"  # what is compressed cannot be read along with, and is held back
        if key is not None:
            name = KEY_HEADERS.get(self.vendor or "", "authorization")
            found[name] = f"Bearer {key}" if name == "authorization" else key
        return [*(found | self._headers).items()]

    def __repr__(self) -> str:
        return f"Upstream({self.dialect!r}, {self.url!r}, name={self.name!r}, models={self.models!r})"


def credential(headers: Mapping[str, str]) -> str | None:
    """The key that a client sent, by whichever header."""
    for name in CREDENTIALS:
        value = headers.get(name)
        if value:
            scheme, _, rest = value.partition(" ")
            return rest.strip() if name == "authorization" and scheme.lower() == "bearer" else value
    return None


def query_items(query: bytes) -> list[tuple[str, str]]:
    """The parameters of a URL in their order. Raises RefusedError for too many."""
    try:
        return parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=MAX_PARAMETERS)
    except ValueError:
        raise RefusedError(400, "invalid_request", "too many parameters in the URL") from None


def _is_openai_like(dialect: str) -> bool:
    from ...dialects import VARIANTS

    return dialect in VARIANTS["openai"]
