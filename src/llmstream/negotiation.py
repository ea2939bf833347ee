"""Media types of requests and responses, and what an endpoint makes of them (draft, sections 4.1, 4.9, 7 and 9.1).

Sans-I/O: header values in, decisions and header values out. The grammar is that of RFC 9110, sections 5.6, 8.3 and
12.5.1; it is read in one pass, and a value that breaks it decides nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, NoReturn

__all__ = [
    "EVENT_STREAM",
    "PROFILE",
    "REQUEST",
    "MediaRange",
    "MediaType",
    "format_accept",
    "parse_accept",
    "parse_media_type",
    "quality",
    "request_format",
    "request_headers",
    "response_format",
    "response_headers",
]

REQUEST = "application/llm-request+json"
"""The media type of a request (section 4.1)."""

EVENT_STREAM = "text/event-stream"
"""The media type of a response (section 4.9)."""

PROFILE = "llm-stream-1.0"
"""The parameter ``profile`` by which a client asks for the standard stream (section 7.3)."""

VERSION = "1.0"
"""The parameter ``version`` of a request's media type, also where it is absent (section 9.1)."""

VENDOR_REQUESTS = ("application/json",)
VENDOR_RESPONSES = (EVENT_STREAM, "application/json")

ALWAYS_UTF8 = frozenset({EVENT_STREAM, "application/json"})
"""What is UTF-8 by its definition, whether a parameter says so or not."""

MAX_RANGES = 1000
"""How many ranges of an Accept header count."""

_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


class MediaType:
    """A media type: ``type`` and ``subtype`` in lower case, and ``parameters`` with their names in lower case, as the
    value of ``charset`` is. ``str`` of it is the value of a Content-Type header.

    Immutable. Raises ValueError where a header could not hold it.
    """

    __slots__ = ("_parameters", "subtype", "type")
    __match_args__ = ("essence",)

    type: str
    subtype: str
    _parameters: dict[str, str]

    def __init__(self, essence: str, parameters: Mapping[str, str] | None = None) -> None:
        kind, _, subtype = essence.partition("/")
        if not _is_token(kind) or not _is_token(subtype):
            raise ValueError("not a media type")
        given = dict(parameters or {})
        found = {name.lower(): value for name, value in given.items()}
        if len(found) != len(given) or not all(map(_is_token, found)):
            raise ValueError("not the names of parameters")
        if not all(map(_is_quotable, found.values())):
            raise ValueError("a parameter that a header cannot hold")
        if "charset" in found:
            found["charset"] = found["charset"].lower()
        set_once = object.__setattr__
        set_once(self, "type", kind.lower())
        set_once(self, "subtype", subtype.lower())
        set_once(self, "_parameters", found)

    @property
    def essence(self) -> str:
        """``type/subtype``."""
        return f"{self.type}/{self.subtype}"

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters, a copy."""
        return dict(self._parameters)

    def includes(self, other: MediaType) -> bool:
        """Whether this, read as a range, matches another: each part equal or ``*``, each parameter there and equal.
        Where the other is UTF-8 by definition, ``charset=utf-8`` is there."""
        there = other._parameters
        if "charset" not in there and other.essence in ALWAYS_UTF8:
            there = {**there, "charset": "utf-8"}
        return (
            self.type in ("*", other.type)
            and self.subtype in ("*", other.subtype)
            and all(there.get(name) == value for name, value in self._parameters.items())
        )

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} is immutable: {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} is immutable: {name}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MediaType):
            return NotImplemented
        return self.essence == other.essence and self._parameters == other._parameters

    def __hash__(self) -> int:
        return hash((self.essence, frozenset(self._parameters.items())))

    def __reduce__(self) -> tuple[Any, ...]:
        return (MediaType, (self.essence, self._parameters))

    def __str__(self) -> str:
        return self.essence + "".join(f"; {name}={_quoted(value)}" for name, value in self._parameters.items())

    def __repr__(self) -> str:
        return f"MediaType({str(self)!r})"


class MediaRange:
    """One range of an Accept header: ``media_type``, which may have ``*``, and ``quality`` from 0 to 1, kept with the
    three decimals that a header has; what is more than 0 stays so, since 0 refuses (RFC 9110, section 12.4.2)."""

    __slots__ = ("media_type", "quality")
    __match_args__ = ("media_type", "quality")

    media_type: MediaType
    quality: float

    def __init__(self, media_type: MediaType, quality: float = 1.0) -> None:
        if not 0 <= quality <= 1:
            raise ValueError("a quality is from 0 to 1")
        object.__setattr__(self, "media_type", media_type)
        object.__setattr__(self, "quality", max(round(float(quality), 3), 0.001) if quality else 0.0)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"a MediaRange is immutable: {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a MediaRange is immutable: {name}")

    def _key(self) -> tuple[MediaType, float]:
        return (self.media_type, self.quality)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, MediaRange) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[Any, ...]:
        return (MediaRange, self._key())

    def __str__(self) -> str:
        if self.quality == 1:
            return str(self.media_type)
        digits = f"{self.quality:.3f}".rstrip("0").rstrip(".")
        return f"{self.media_type}; q={digits}"

    def __repr__(self) -> str:
        return f"MediaRange({str(self)!r})"


# ---------------------------------------------------------------------------------------------------------------------
# Decisions


def request_format(
    content_type: str | bytes | None, *, standard: bool = True, vendor: Iterable[str] = VENDOR_REQUESTS
) -> str | None:
    """What the Content-Type of a request says it is: "standard", "vendor", or None, for which an endpoint answers 415
    (section 7.2).

    ``standard`` and ``vendor`` are what the endpoint takes. Another ``version`` than 1.0 is not the standard's, and a
    Content-Type that is absent or breaks the grammar is None.
    """
    found = parse_media_type(content_type)
    if found is None:
        return None
    if found.essence == REQUEST:
        return "standard" if standard and found._parameters.get("version", VERSION) == VERSION else None
    return "vendor" if found.essence in {name.lower() for name in vendor} else None


def response_format(
    accept: str | bytes | None,
    *,
    request: str = "standard",
    standard: bool = True,
    vendor: Iterable[str] = VENDOR_RESPONSES,
) -> str | None:
    """Which stream the Accept header asks for: "standard", "vendor", or None, for which an endpoint answers 406.

    ``request`` is what ``request_format`` found; ``standard`` and the media types of ``vendor`` are what the endpoint
    can send. The higher quality wins; among equals the standard where Accept names its profile, then the format of the
    request. An Accept that is absent, or has nothing that is right by the grammar, accepts all.
    """
    ranges = parse_accept(accept) or [MediaRange(MediaType("*/*"))]
    best: tuple[float, bool, bool] = (0.0, False, False)
    chosen: str | None = None
    offers = [("vendor", MediaType(essence)) for essence in vendor]
    if standard:
        offers.insert(0, ("standard", MediaType(EVENT_STREAM, {"profile": PROFILE})))
    for name, offer in offers:
        match = _closest(ranges, offer)
        if match is not None and match.quality > 0:
            named = name == "standard" and "profile" in match.media_type._parameters
            rank = (match.quality, named, name == request)
            if rank > best:
                best, chosen = rank, name
    return chosen


def quality(accept: str | bytes | None, media_type: MediaType) -> float:
    """How much an Accept header wants a media type, from 0 to 1 (RFC 9110, section 12.5.1)."""
    match = _closest(parse_accept(accept) or [MediaRange(MediaType("*/*"))], media_type)
    return 0.0 if match is None else match.quality


def _closest(ranges: list[MediaRange], offer: MediaType) -> MediaRange | None:
    """The most specific range that matches (RFC 9110, section 12.5.1); of equals, the one of the highest quality."""
    matching = [item for item in ranges if item.media_type.includes(offer)]
    return max(matching, key=_specificity, default=None)


def _specificity(item: MediaRange) -> tuple[bool, bool, int, float]:
    media = item.media_type
    return (media.type != "*", media.subtype != "*", len(media._parameters), item.quality)


def request_headers() -> list[tuple[str, str]]:
    """The headers by which a client asks for a standard stream (sections 4.1 and 7.3)."""
    return [("content-type", REQUEST), ("accept", f'{EVENT_STREAM}; profile="{PROFILE}"')]


def response_headers() -> list[tuple[str, str]]:
    """The headers of a stream (sections 4.9 and 5.5): nobody may store it or hold it back, and it has no Content-Length
    (section 3). One is for proxies that buffer."""
    return [("content-type", EVENT_STREAM), ("cache-control", "no-cache"), ("x-accel-buffering", "no")]


# ---------------------------------------------------------------------------------------------------------------------
# The grammar


def parse_media_type(value: str | bytes | None) -> MediaType | None:
    """The media type of a Content-Type header; None where it is absent or breaks the grammar, also by two values for
    one parameter. Raises TypeError for what is neither text nor bytes."""
    text = _decoded(value)
    found = _media_type(text, 0)
    if found is None or found[1] != len(text):
        return None
    kind, _, parameters = found
    if "*" in kind.split("/"):
        return None
    return _made(kind, parameters)


def parse_accept(value: str | bytes | None) -> list[MediaRange]:
    """The ranges of an Accept header, in their order. An element that breaks the grammar is left out; at most 1,000
    are read. Raises TypeError for what is neither text nor bytes."""
    text = _decoded(value)
    ranges: list[MediaRange] = []
    at = 0
    while at < len(text) and len(ranges) < MAX_RANGES:
        if text[at] in ", \t":  # elements may be empty
            at += 1
            continue
        found = _media_type(text, at)
        if found is None:
            at = _next_element(text, at)
            continue
        kind, end, parameters = found
        if end < len(text) and text[end] != ",":
            at = _next_element(text, end)
            continue
        at = end + 1
        made = _range(kind, parameters)
        if made is not None:
            ranges.append(made)
    return ranges


def format_accept(ranges: Iterable[MediaRange | MediaType]) -> str:
    """The value of an Accept header."""
    return ", ".join(map(str, ranges))


def _decoded(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (bytes, bytearray, memoryview)):
        value = bytes(value).decode("latin-1")
    elif not isinstance(value, str):
        raise TypeError(f"the value of a header is a str or bytes, not {type(value).__name__}")
    return str(value).strip(" \t")


def _made(kind: str, parameters: list[tuple[str, str]]) -> MediaType | None:
    found: dict[str, str] = {}
    for name, value in parameters:
        if found.setdefault(name, value) != value:
            return None
    return MediaType(kind, found)


def _range(kind: str, parameters: list[tuple[str, str]]) -> MediaRange | None:
    """A range without its weight among the parameters: whichever is named q, wherever that stands (section 12.5.1)."""
    if kind.startswith("*/") and kind != "*/*":
        return None
    weights = [value for name, value in parameters if name == "q"]
    made = _made(kind, [(name, value) for name, value in parameters if name != "q"])
    if made is None or len(weights) > 1:
        return None
    quality = _quality(weights[0]) if weights else 1.0
    return None if quality is None else MediaRange(made, quality)


def _quality(text: str) -> float | None:
    """A weight: 0 or 1 with at most three decimals, and not more than 1."""
    whole, point, decimals = text.partition(".")
    if whole not in ("0", "1") or len(decimals) > 3 or (decimals and not (decimals.isascii() and decimals.isdigit())):
        return None
    quality = float(f"{whole}.{decimals}0")
    return quality if quality <= 1 and (point or not decimals) else None


def _media_type(text: str, at: int) -> tuple[str, int, list[tuple[str, str]]] | None:
    """A media type or range from ``at``, where it ends (after white space), and its parameters; None for no such."""
    at = _after_space(text, at)
    slash = _after_token(text, at)
    if slash == at or not text.startswith("/", slash):
        return None
    end = _after_token(text, slash + 1)
    if end == slash + 1:
        return None
    kind = text[at:end]
    parameters: list[tuple[str, str]] = []
    while True:
        end = _after_space(text, end)
        if not text.startswith(";", end):
            return kind, end, parameters
        at = _after_space(text, end + 1)
        equals = _after_token(text, at)
        if equals == at:  # a parameter may be empty
            end = at
            continue
        if not text.startswith("=", equals):
            return None
        value = _value(text, equals + 1)
        if value is None:
            return None
        parameters.append((text[at:equals].lower(), value[0]))
        end = value[1]


def _value(text: str, at: int) -> tuple[str, int] | None:
    """A token or a quoted string from ``at``, and where it ends."""
    if not text.startswith('"', at):
        end = _after_token(text, at)
        return (text[at:end], end) if end > at else None
    pieces: list[str] = []
    at += 1
    while at < len(text):
        character = text[at]
        if character == '"':
            return "".join(pieces), at + 1
        if character == "\\":
            at += 1
            character = text[at : at + 1]
        if not character or not _is_quotable(character):
            return None
        pieces.append(character)
        at += 1
    return None


def _next_element(text: str, at: int) -> int:
    """The start of the next element of a list: after a comma that is not in a quoted string."""
    quoted = False
    while at < len(text):
        character = text[at]
        if character == "\\" and quoted:
            at += 1
        elif character == '"':
            quoted = not quoted
        elif character == "," and not quoted:
            return at + 1
        at += 1
    return len(text)


def _after_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t":
        at += 1
    return at


def _after_token(text: str, at: int) -> int:
    while at < len(text) and text[at] in _TOKEN:
        at += 1
    return at


def _is_token(text: str) -> bool:
    return bool(text) and _TOKEN.issuperset(text)


def _is_quotable(text: str) -> bool:
    """Whether a quoted string can hold it: no control character but the tab, and one byte a character."""
    return all(
        (character >= " " and character != "\x7f" and character <= "\xff") or character == "\t" for character in text
    )


def _quoted(value: str) -> str:
    if _is_token(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
