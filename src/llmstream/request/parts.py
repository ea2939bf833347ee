"""Views of a request's JSON objects: their base, and the parts of a message's content (draft, section 4.3.1)."""

from __future__ import annotations

from ..rules import MAX_INTEGER, REQUEST_LOOSE_BASE64, REQUEST_NOT_BASE64, RULES
from . import values
from .reading import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, ClassVar, NoReturn, Self

__all__ = ["AudioPart", "DocumentPart", "ImagePart", "MediaPart", "Part", "TextPart", "UnknownPart"]


class View:
    """Base of a request and what it is made of: a view of one JSON object, which it keeps whole.

    Immutable. Two are equal when they are of one class and their JSON objects are equal; ``repr`` shows lengths, never
    text (draft, section 8.1).
    """

    __slots__ = ("_members",)

    known: ClassVar[frozenset[str]] = frozenset()
    """The names of the members that the draft gives this object."""

    _members: dict[str, Any]

    def _keep(self, members: dict[str, Any], extra: Mapping[str, Any] | None) -> None:
        if extra is not None:
            more = values.mapping("extra", extra)
            if not self.known.isdisjoint(more):
                raise ValueError("extra has a member that has a keyword of its own")
            members.update(more)
        object.__setattr__(self, "_members", members)

    @classmethod
    def _of(cls, members: dict[str, Any]) -> Self:
        made = cls.__new__(cls)
        object.__setattr__(made, "_members", members)
        return made

    @property
    def extra(self) -> dict[str, Any]:
        """The members that the draft does not name: kept, and otherwise ignored."""
        found = {name: value for name, value in self._members.items() if name not in self.known}
        copy: dict[str, Any] = values.copied(found)
        return copy

    def json(self) -> dict[str, Any]:
        """The whole object as Python values, a copy."""
        copy: dict[str, Any] = values.copied(self._members)
        return copy

    def _text(self, name: str) -> str | None:
        found = self._members.get(name)
        return found if isinstance(found, str) else None

    def _object(self, name: str) -> dict[str, Any]:
        found = self._members.get(name)
        return found if isinstance(found, dict) else {}

    def _array(self, name: str) -> list[Any]:
        found = self._members.get(name)
        return found if isinstance(found, list) else []

    def _key(self) -> bytes:
        return values.write(values.ordered(self._members))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, View) or type(other) is not type(self):
            return NotImplemented
        return self._members is other._members or self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._key()))

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} is immutable: {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} is immutable: {name}")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (rebuild, (type(self), values.write(self._members)))

    def _shown(self) -> str:
        return ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._shown()})"


def rebuild(kind: type[View], text: bytes) -> View:
    """What a pickle holds."""
    members, _, _ = read(text, max_size=MAX_INTEGER, max_depth=values.MAX_DEPTH)
    return kind._of(members)


def lengths(**shown: Any) -> str:
    """``name=<3>`` for each that is there: how long, never what."""
    return ", ".join(f"{name}=<{len(value)}>" for name, value in shown.items() if value)


class Part(View):
    """Base of the parts of a content; ``type`` is the draft's name of its kind, None where it has none."""

    __slots__ = ()

    @property
    def type(self) -> str | None:
        """The name of its kind."""
        return self._text("type")


class TextPart(Part):
    """Plain text."""

    __slots__ = ()
    __match_args__ = ("text",)
    known = frozenset({"type", "text"})

    def __init__(self, *, text: str, extra: Mapping[str, Any] | None = None) -> None:
        self._keep({"type": "text", "text": values.text("text", text)}, extra)

    @property
    def text(self) -> str:
        """The text; empty where it is absent or not a string."""
        return self._text("text") or ""

    def _shown(self) -> str:
        return f"text=<{len(self.text)} characters>"


class MediaPart(Part):
    """Base of the parts that carry a file: its ``media_type`` and its ``data``, which is base64."""

    __slots__ = ()
    __match_args__ = ("media_type", "data")
    known = frozenset({"type", "media_type", "data"})
    kind: ClassVar[str]

    def __init__(
        self, *, media_type: str, data: str | bytes | bytearray | memoryview, extra: Mapping[str, Any] | None = None
    ) -> None:
        if not isinstance(data, str):
            from binascii import b2a_base64

            data = b2a_base64(data, newline=False).decode()
        members = {
            "type": self.kind,
            "media_type": values.text("media_type", media_type),
            "data": values.text("data", data),
        }
        self._keep(members, extra)

    @property
    def media_type(self) -> str | None:
        """The media type, None where it is absent or not a string."""
        return self._text("media_type")

    @property
    def data(self) -> str:
        """The file in base64, as it came; empty where it is absent or not a string."""
        return self._text("data") or ""

    def decoded(self) -> bytes:
        """The bytes of the file. The alphabet for URLs and absent padding are accepted; raises ValueError for
        anything else that is not base64 as RFC 4648 has it in section 4."""
        data = self.data
        if base64_fault(data) == REQUEST_NOT_BASE64:
            raise ValueError(f"data: {RULES[REQUEST_NOT_BASE64].message}")
        from binascii import a2b_base64

        plain = data.rstrip("=").translate({0x2D: "+", 0x5F: "/"})
        return a2b_base64(plain + "=" * (-len(plain) % 4))

    def _shown(self) -> str:
        return f"data=<{len(self.data)} characters>"


class ImagePart(MediaPart):
    """An image."""

    __slots__ = ()
    kind = "image"


class DocumentPart(MediaPart):
    """A document."""

    __slots__ = ()
    kind = "document"


class AudioPart(MediaPart):
    """Recorded sound."""

    __slots__ = ()
    kind = "audio"


class UnknownPart(Part):
    """A part of a kind that the draft does not know; its members are in ``extra``."""

    __slots__ = ()
    __match_args__ = ("type",)
    known = frozenset({"type"})

    def __init__(self, *, type: str, extra: Mapping[str, Any] | None = None) -> None:
        if type in KINDS:
            raise ValueError("type has a class of its own")
        self._keep({"type": values.text("type", type)}, extra)


KINDS: dict[str, type[Part]] = {
    "text": TextPart,
    "image": ImagePart,
    "document": DocumentPart,
    "audio": AudioPart,
}
"""Section 4.3.1."""


def part(item: Any) -> Part:
    """The view of one item of a content."""
    if not isinstance(item, dict):
        return UnknownPart._of({})
    name = item.get("type")
    kind = KINDS.get(name, UnknownPart) if isinstance(name, str) else UnknownPart
    return kind._of(item)


def base64_fault(data: str) -> int | None:
    """The rule that base64 text breaks, None for none: the standard alphabet with padding is right, that for URLs or
    absent padding is a deviation. Nothing is decoded."""
    padding = 2 if data.endswith("==") else 1 if data.endswith("=") else 0
    digits = len(data) - padding
    rest = digits % 4
    if rest == 1 or (padding and padding != -digits % 4):
        return REQUEST_NOT_BASE64
    if not _consists_of(data, digits, STANDARD_ALPHABET):
        return REQUEST_LOOSE_BASE64 if _consists_of(data, digits, STANDARD_ALPHABET + b"-_") else REQUEST_NOT_BASE64
    if rest and not padding:
        return REQUEST_LOOSE_BASE64
    if rest and data[digits - 1] not in ("AQgw" if rest == 2 else "AEIMQUYcgkosw048"):
        return REQUEST_LOOSE_BASE64  # bits that encoders leave at zero (section 3.5)
    return None


STANDARD_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
SLICE = 64 * 1024


def _consists_of(text: str, end: int, alphabet: bytes) -> bool:
    """Whether there is nothing else up to ``end``; a slice at a time, so that no copy is as large as the text."""
    for start in range(0, end, SLICE):
        if text[start : min(start + SLICE, end)].encode("utf-8", "replace").translate(None, alphabet):
            return False
    return True
