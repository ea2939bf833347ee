"""Envelopes: JSON text to members, and the one validating walk over a payload (RFC 8259) that finds wanted values and
where they stand. Part of the Python twin; twin of ``_envelope.pxi`` and ``_json.h``."""

from __future__ import annotations

from . import payload, rules
from ._json_py import _Members, _Number, _Pattern, _reader
from .declaration import Declaration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .declaration import Node

_OK, _INVALID, _DEEP = 0, 1, 2

_SPACE = _Pattern(rb"[ \t\n\r]*+")
_STRING = _Pattern(rb'"((?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+)"')
_NUMBER = _Pattern(rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
_WORDS = ((b"true", True), (b"false", False), (b"null", None))


class _Walk:
    """``status``, ``values`` (leaf -> value), ``spans`` (start, stop, leaf, is a string) of strings without their
    quotes and numbers in order, and ``repeated`` (whether a wanted member came more than once in its object)."""

    __slots__ = ("fault", "is_object", "repeated", "spans", "status", "values")

    def __init__(self, data: bytes, root: Node, max_depth: int) -> None:
        self.values: dict[int, Any] = {}
        self.spans: list[tuple[int, int, int, bool]] = []
        self.repeated = False
        self.is_object = False
        self.status = self._walk(data, root, max_depth)

    def _walk(self, data: bytes, root: Node, max_depth: int) -> int:
        space, size = _SPACE, len(data)
        stack: list[tuple[bool, Node | None, int, set[Any] | None]] = []  # the containers around the current one
        is_array, node, item = False, None, 0
        seen: set[Any] | None = None
        depth, leaf, child = 0, -1, root
        at = space.match(data).end()  # type: ignore[union-attr]
        while True:
            # A value is due.
            byte = data[at] if at < size else 0
            if byte in b"{[" and byte:
                depth += 1
                if depth > max_depth:
                    return _DEEP
                array = byte == 91
                if depth == 1:
                    self.is_object = not array
                if leaf >= 0:
                    self.values[leaf] = [] if array else {}
                stack.append((is_array, node, item, seen))
                is_array, item, seen = array, 0, None if array else set()
                node = child if child is not None and child.is_array == array else None
                at = space.match(data, at + 1).end()  # type: ignore[union-attr]
                if at < size and data[at] == (93 if array else 125):
                    at += 1
                    is_array, node, item, seen = stack.pop()
                    depth -= 1
                elif array:
                    leaf, child = self._item(node, 0)
                    continue
                else:
                    at, leaf, child = self._member(data, at, node, seen)
                    if at < 0:
                        return _INVALID
                    continue
            elif byte == 34:
                found = _STRING.match(data, at)
                if found is None:
                    return _INVALID
                if leaf >= 0:
                    self.values[leaf] = _unescape(found[1])
                self.spans.append((at + 1, found.end() - 1, leaf, True))
                at = found.end()
            elif byte == 45 or 48 <= byte <= 57:
                found = _NUMBER.match(data, at)
                if found is None:
                    return _INVALID
                if leaf >= 0:
                    self.values[leaf] = _Number(found[0].decode())
                self.spans.append((at, found.end(), leaf, False))
                at = found.end()
            else:
                for word, value in _WORDS:
                    if data.startswith(word, at):
                        if leaf >= 0:
                            self.values[leaf] = value
                        at += len(word)
                        break
                else:
                    return _INVALID
            # A value is over: what follows?
            while True:
                at = space.match(data, at).end()  # type: ignore[union-attr]
                if depth == 0:
                    return _OK if at == size else _INVALID
                byte = data[at] if at < size else 0
                at += 1
                if byte == 44:
                    at = space.match(data, at).end()  # type: ignore[union-attr]
                    if is_array:
                        item += 1
                        leaf, child = self._item(node, item)
                    else:
                        at, leaf, child = self._member(data, at, node, seen)
                        if at < 0:
                            return _INVALID
                    break
                if byte != (93 if is_array else 125):
                    return _INVALID
                is_array, node, item, seen = stack.pop()
                depth -= 1

    @staticmethod
    def _item(node: Node | None, item: int) -> tuple[int, Any]:
        if node is None:
            return -1, None
        return node.leaves.get(item, -1), node.children.get(item)

    def _member(self, data: bytes, at: int, node: Node | None, seen: Any) -> tuple[int, int, Any]:
        found = _STRING.match(data, at)
        if found is None:
            return -1, -1, None
        at = _SPACE.match(data, found.end()).end()  # type: ignore[union-attr]
        if data[at : at + 1] != b":":
            return -1, -1, None
        at = _SPACE.match(data, at + 1).end()  # type: ignore[union-attr]
        if node is None:
            return at, -1, None
        name = _unescape(found[1])
        leaf, child = node.leaves.get(name, -1), node.children.get(name)
        if leaf >= 0 or child is not None:
            if name in seen:
                # The last one wins, with everything under it.
                self.repeated = True
                for below in node.below(name):
                    self.values.pop(below, None)
            seen.add(name)
        return at, leaf, child


def _unescape(body: bytes) -> str:
    text = body.decode()
    return _reader.scan_string(text + '"', 0, True)[0] if "\\" in text else text


_SPELLING = _Pattern(r"(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?)([0-9]+))?")


def _integer(value: Any) -> tuple[int | None, bool]:
    """A JSON number as an integer from 0 to 2**63 - 1, and whether it was written as one (resolution A-17)."""
    if type(value) is int:
        return (value, True) if 0 <= value <= rules.MAX_INTEGER else (None, False)
    if type(value) is not _Number:
        return None, False
    sign, whole, fraction, exponent_sign, exponent = _SPELLING.fullmatch(value.text).groups("")  # type: ignore[union-attr]
    if not sign and len(whole) == len(value.text):
        found = int(whole) if len(whole) <= 19 else rules.MAX_INTEGER + 1
        return (found, True) if found <= rules.MAX_INTEGER else (None, False)
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return 0, False
    exponent = exponent.lstrip("0")
    scale = int(exponent or "0") if len(exponent) <= 12 else 10**12
    scale = (-scale if exponent_sign == "-" else scale) - len(fraction)
    significant = digits.rstrip("0")
    scale += len(digits) - len(significant)
    if sign or scale < 0 or len(significant) + scale > 16:
        return None, False
    found = int(significant) * 10**scale
    return (found, False) if found <= rules.MAX_SEQUENCE else (None, False)


_HALF = _Pattern("[\ud800-\udfff]")

_ENVELOPE_PATHS = (
    "v",
    "seq",
    "type",
    "index",
    "role",
    "delta",
    "delta.text",
    "model",
    "created",
    "request_id",
    "stop_reason",
    "id",
    "name",
    "arguments",
    "input_tokens",
    "output_tokens",
    "code",
    "message",
)
_ENVELOPE = Declaration(paths=_ENVELOPE_PATHS)
_ENVELOPE_NAMES = tuple(path for path in _ENVELOPE_PATHS if "." not in path)
_SEQ_LEAF = _ENVELOPE_PATHS.index("seq")
_INDEX_LEAF = _ENVELOPE_PATHS.index("index")
_TEXT_LEAF = _ENVELOPE_PATHS.index("delta.text")
_KINDS = {name: number for number, name in enumerate(rules.EVENT_TYPES[:7])}
_UNKNOWN = 7

# Beyond this many brackets the recursive reader is not trusted with a text.
_SAFE_BRACKETS = 200


def _read_envelope(text: str, max_depth: int) -> tuple[int, Any, bool]:
    """Status, the value (only wanted members if it is nested deeply) and whether a wanted member was repeated."""
    if text.count("{") + text.count("[") <= min(_SAFE_BRACKETS, max_depth):
        try:
            return _read_shallow(text)
        except RecursionError:
            pass  # the caller's own stack is nearly used up
    walk = _Walk(text.encode(), _ENVELOPE.root, max_depth)
    if walk.status != _OK:
        return walk.status, None, False
    if not walk.is_object:
        return _OK, [], False
    members = {name: walk.values[leaf] for leaf, name in enumerate(_ENVELOPE_PATHS) if leaf in walk.values}
    if _TEXT_LEAF in walk.values:
        members["delta"] = {"text": members.pop("delta.text")}
    return _OK, members, walk.repeated


def _read_shallow(text: str) -> tuple[int, Any, bool]:
    try:
        value = _reader.read_members(text)
    except ValueError:
        return _INVALID, None, False
    if not isinstance(value, _Members):
        return _OK, value, False
    delta = value.get("delta")
    inner = isinstance(delta, _Members) and delta.repeats(("text",))
    return _OK, value, inner or value.repeats(_ENVELOPE_NAMES)


def _read_delta(text: str, max_depth: int) -> dict[str, Any] | None:
    """An envelope in which no name hides another, read sooner: it has as many colons as members, or else its pairs are
    looked at. None for any other, and where Python's own reader would not do."""
    if text.count("{") + text.count("[") > min(_SAFE_BRACKETS, max_depth) or ("-" in text and "-0" in text):
        return None
    try:
        value, stop = _reader.scan_value(text, 0)
        if stop != len(text) or type(value) is not dict:
            return None
        delta = value.get("delta")
        if text.count(":") == len(value) + (len(delta) if type(delta) is dict else 0):
            return value
        return _without_repeats(_reader.scan_pairs(text, 0)[0])
    except (RecursionError, StopIteration, ValueError):
        return None


def _without_repeats(pairs: Any) -> dict[str, Any] | None:
    value = dict(pairs)
    delta = value.get("delta")
    if type(delta) is tuple:
        value["delta"] = dict(delta)
        if len(value["delta"]) != len(delta):
            return None
    return value if len(value) == len(pairs) else None


def _read_payload(text: str) -> Any:
    """As ``payload.loads``, without its two searches for white space."""
    if text.startswith("{"):
        try:
            value, stop = _reader.scan_payload(text, 0)
            if stop == len(text):
                return value
        except (StopIteration, ValueError):
            pass
    return payload.loads(text)


_MISSING: Any = object()


def _gather(root: Node, value: Any) -> dict[int, Any]:
    """What stands at the wanted paths, by the number of the leaf."""
    found: dict[int, Any] = {}
    open_nodes = [(root, value)]
    for node, container in open_nodes:
        if node.is_array:
            items: Any = enumerate(container) if type(container) is list else ()
        else:
            items = container.items() if type(container) is dict else ()
        leaves, children = node.leaves, node.children
        for step, item in items:
            if step in leaves:
                found[leaves[step]] = item
            if step in children:
                open_nodes.append((children[step], item))
    return found
