"""What the Python twin reads JSON with: regular expressions and the standard library's reader. They are most of what
``import llmstream`` would cost, so they are loaded with the first parser. Part of the Python twin."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable
    from typing import Any


class _Pattern:
    """A regular expression, compiled by ``_prepare``."""

    __slots__ = ("fullmatch", "match", "search", "source", "sub")

    match: Callable[..., re.Match[Any] | None]
    search: Callable[..., re.Match[Any] | None]
    fullmatch: Callable[..., re.Match[Any] | None]
    sub: Callable[..., Any]

    def __init__(self, source: str | bytes) -> None:
        self.source = source
        _patterns.append(self)


_patterns: list[_Pattern] = []


class _Number:
    """A JSON number as it was written."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class _Members(dict):  # type: ignore[type-arg]
    """An object that knows whether one of its names came twice."""

    __slots__ = ("names",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.names = [name for name, _ in pairs]

    def repeats(self, wanted: Iterable[str]) -> bool:
        return len(self.names) != len(self) and any(self.names.count(name) > 1 for name in wanted)


class _Reader:
    """The standard library's JSON reader. ``scan_string``, ``scan_value`` and ``scan_pairs`` (objects are tuples of
    their members, even of those that are repeated) read what begins at a place and say where it ends; ``read_members``
    (objects are ``_Members``, no number is converted) reads a whole text. A number that is no integer is a ``_Number``
    for all but ``scan_payload``, which is as ``payload.loads``."""

    __slots__ = ("read_members", "ready", "scan_pairs", "scan_payload", "scan_string", "scan_value")

    scan_string: Callable[[str, int, bool], tuple[str, int]]
    scan_value: Callable[[str, int], tuple[Any, int]]
    scan_pairs: Callable[[str, int], tuple[Any, int]]
    scan_payload: Callable[[str, int], tuple[Any, int]]
    read_members: Callable[[str], Any]

    def __init__(self) -> None:
        self.ready = False


_reader = _Reader()


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _prepare() -> None:
    """Loads all of it, once."""
    if _reader.ready:
        return
    import json
    import re

    strict: dict[str, Any] = {"parse_float": _Number, "parse_constant": _no_constant}
    _reader.scan_string = json.decoder.scanstring  # type: ignore[attr-defined]
    _reader.scan_value = json.JSONDecoder(**strict).scan_once  # type: ignore[attr-defined]
    _reader.scan_pairs = json.JSONDecoder(**strict, object_pairs_hook=tuple).scan_once  # type: ignore[attr-defined]
    _reader.scan_payload = json.JSONDecoder(parse_constant=_no_constant).scan_once  # type: ignore[attr-defined]
    _reader.read_members = json.JSONDecoder(**strict, parse_int=_Number, object_pairs_hook=_Members).decode
    for pattern in _patterns:
        compiled = re.compile(pattern.source)
        pattern.match, pattern.search = compiled.match, compiled.search
        pattern.fullmatch, pattern.sub = compiled.fullmatch, compiled.sub
    _reader.ready = True
