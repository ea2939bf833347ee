"""Media types and what an endpoint makes of them (draft, sections 3, 4.1, 4.9, 7 and 9.1; RFC 9110)."""

from __future__ import annotations

import importlib
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

STANDARD = 'text/event-stream; profile="llm-stream-1.0"'


@pytest.fixture(scope="session")
def kit(llmstream: Any) -> Any:
    return importlib.import_module("llmstream.negotiation")


@pytest.mark.parametrize(
    ("value", "essence", "parameters"),
    [
        ("application/llm-request+json", "application/llm-request+json", {}),
        ("Application/LLM-Request+JSON", "application/llm-request+json", {}),
        ('application/llm-request+json; version="1.0"', "application/llm-request+json", {"version": "1.0"}),
        ("a/b;c=d", "a/b", {"c": "d"}),
        ("a/b ;\tC=D ; e=F", "a/b", {"c": "D", "e": "F"}),
        (" \ta/b \t", "a/b", {}),
        ("a/b;;; c=d;", "a/b", {"c": "d"}),
        ('a/b;c="d;,\\"\\\\ \te\xe9"', "a/b", {"c": 'd;,"\\ \te\xe9'}),
        ('a/b;c=""', "a/b", {"c": ""}),
        ("a/b;c=d;c=d", "a/b", {"c": "d"}),
        # The examples of RFC 9110, section 8.3.1, which are equivalent.
        ("text/html;charset=utf-8", "text/html", {"charset": "utf-8"}),
        ('Text/HTML;Charset="utf-8"', "text/html", {"charset": "utf-8"}),
        ('text/html; charset="utf-8"', "text/html", {"charset": "utf-8"}),
        ("text/html;charset=UTF-8", "text/html", {"charset": "utf-8"}),
    ],
)
def test_r9_1_1_a_media_type(kit: Any, value: str, essence: str, parameters: dict[str, str]) -> None:
    for data in (value, value.encode("latin-1")):
        found = kit.parse_media_type(data)
        assert (found.essence, found.parameters) == (essence, parameters)
        assert kit.parse_media_type(str(found)) == found
        assert pickle.loads(pickle.dumps(found)) == found
        assert hash(found) == hash(kit.MediaType(essence, parameters))


@pytest.mark.parametrize(
    "value",
    [
        *(None, "", " ", "a", "a/", "/b", "a/b/c", "a /b", "a/ b", "a b/c", "a/b c", "a/b,c/d", "*/*", "a/*", "a/b;c"),
        *(
            "a/b;c=",
            "a/b;=d",
            "a/b;c =d",
            "a/b;c= d",
            'a/b;c="d',
            'a/b;c="d"e',
            'a/b;c="\x01"',
            'a/b;c="\n"',
            "a/b\r\n;c=d",
        ),
        *(
            'a/b;c="\\',
            'a/b;c="\\\x01"',
            "a/b;c=d;c=e",
            "a/b;c=d;C=e",
            "\xe9/b",
            "a/b;c=\xe9",
            "a/b;c=\u20ac",
            'a/b;c="\u20ac"',
        ),
    ],
)
def test_what_is_no_media_type(kit: Any, value: str | None) -> None:
    assert kit.parse_media_type(value) is None
    assert kit.request_format(value) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("application/llm-request+json", "standard"),
        ("application/LLM-request+json ; Version=1.0", "standard"),
        ('application/llm-request+json; version="1.0"; new=x', "standard"),
        ('application/llm-request+json; version="2.0"', None),
        ("application/llm-request+json; version=1", None),
        ('application/llm-request+json; version=""', None),
        ("application/json", "vendor"),
        ("application/json; charset=utf-8", "vendor"),
        ("text/plain", None),
        ("application/llm-request", None),
        ("multipart/form-data; boundary=x", None),
    ],
)
def test_r4_1_1_r9_1_1_the_format_of_a_request(kit: Any, value: str, expected: str | None) -> None:
    assert kit.request_format(value) == expected


def test_r7_2_1_an_endpoint_without_the_standard(kit: Any) -> None:
    """None is what an endpoint answers with 415."""
    assert kit.request_format("application/llm-request+json", standard=False) is None
    assert kit.request_format("application/json", standard=False) == "vendor"
    assert kit.request_format("application/json", vendor=()) is None
    assert kit.request_format("application/x-VENDOR", vendor=["Application/x-vendor"]) == "vendor"


@pytest.mark.parametrize(
    ("accept", "standard_request", "vendor_request"),
    [
        (None, "standard", "vendor"),
        ("", "standard", "vendor"),
        ("*/*", "standard", "vendor"),
        ("text/*", "standard", "vendor"),
        ("text/event-stream", "standard", "vendor"),
        (STANDARD, "standard", "standard"),
        ("text/event-stream; profile=llm-stream-1.0", "standard", "standard"),
        ("Text/Event-Stream;PROFILE=llm-stream-1.0", "standard", "standard"),
        (f"{STANDARD}, text/event-stream", "standard", "standard"),
        (f"{STANDARD}; q=0.5, text/event-stream", "vendor", "vendor"),
        (f"text/event-stream; q=0.5, {STANDARD}", "standard", "standard"),
        (f"{STANDARD}; q=0, */*", "vendor", "vendor"),
        ('text/event-stream; profile="LLM-stream-1.0"', None, None),
        ('text/event-stream; profile="llm-stream-2.0"', None, None),
        ("application/json", "vendor", "vendor"),
        ("application/json, text/event-stream; q=0.9", "vendor", "vendor"),
        ("text/html", None, None),
        ("text/event-stream; q=0", None, None),
        ("*/*; q=0", None, None),
        ("*/*; q=0.001", "standard", "vendor"),
        ("garbage", "standard", "vendor"),
        (f"garbage, {STANDARD}", "standard", "standard"),
        (f'text/html; x=",{STANDARD}', "standard", "vendor"),
        # A stream and JSON are UTF-8, whether they say so or not.
        ("text/event-stream; charset=utf-8", "standard", "vendor"),
        ('text/event-stream; charset="UTF-8"', "standard", "vendor"),
        (f"{STANDARD}; charset=utf-8", "standard", "standard"),
        ("application/json; charset=utf-8", "vendor", "vendor"),
        ("text/event-stream; charset=utf-8; q=0, */*", "vendor", "vendor"),
        ("text/event-stream; charset=iso-8859-1", None, None),
        ("text/event-stream; charset=utf-16, application/json", "vendor", "vendor"),
        ("text/event-stream; other=x", None, None),
    ],
)
def test_r7_3_1_the_format_of_a_response(
    kit: Any, accept: str | None, standard_request: str | None, vendor_request: str | None
) -> None:
    assert kit.response_format(accept) == standard_request
    assert kit.response_format(accept, request="vendor") == vendor_request


def test_r7_3_1_what_an_endpoint_can_send(kit: Any) -> None:
    assert kit.response_format("*/*", standard=False) == "vendor"
    assert kit.response_format(STANDARD, standard=False) is None
    assert kit.response_format("*/*", request="vendor", vendor=()) == "standard"
    assert kit.response_format("application/json", vendor=()) is None
    amazon = "application/vnd.amazon.eventstream"
    assert kit.response_format(amazon, request="vendor") is None
    assert kit.response_format(amazon, request="vendor", vendor=[amazon]) == "vendor"


# The table of RFC 9110, section 12.5.1.
@pytest.mark.parametrize(
    ("value", "quality"),
    [
        ("text/plain;format=flowed", 1.0),
        ("text/plain", 0.7),
        ("text/html", 0.3),
        ("image/jpeg", 0.5),
        ("text/plain;format=fixed", 0.4),
        ("text/html;level=3", 0.3),
    ],
)
def test_the_table_of_rfc_9110(kit: Any, value: str, quality: float) -> None:
    accept = "text/*;q=0.3, text/plain;q=0.7, text/plain;format=flowed, text/plain;format=fixed;q=0.4, */*;q=0.5"
    assert kit.quality(accept, kit.parse_media_type(value)) == quality
    backwards = ", ".join(reversed(accept.split(", ")))
    assert kit.quality(backwards, kit.parse_media_type(value)) == quality
    assert kit.quality("a/b", kit.parse_media_type(value)) == 0


def test_the_closer_range_counts_and_not_the_higher_quality(kit: Any) -> None:
    for ranges in (
        "text/*;q=0.9, text/plain;q=0.1",
        "*/*;q=0.9, text/*;q=0.1",
        "a/b, text/plain;q=0.9, text/plain;x=y;q=0.1",
    ):
        assert kit.quality(ranges, kit.MediaType("text/plain", {"x": "y"})) == 0.1
        assert kit.quality(", ".join(reversed(ranges.split(", "))), kit.MediaType("text/plain", {"x": "y"})) == 0.1


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("audio/*; q=0.2, audio/basic", ["audio/*; q=0.2", "audio/basic"]),
        (
            "text/plain; q=0.5, text/html, text/x-dvi; q=0.8, text/x-c",
            ["text/plain; q=0.5", "text/html", "text/x-dvi; q=0.8", "text/x-c"],
        ),
        (",,a/b, ,\t,c/d,", ["a/b", "c/d"]),
        ("a/b;q=1", ["a/b"]),
        ("a/b;q=1.000", ["a/b"]),
        ("a/b;q=1.", ["a/b"]),
        ("a/b;Q=0.123", ["a/b; q=0.123"]),
        ("a/b;q=0.", ["a/b; q=0"]),
        ("a/b;q=0.5;x=y", ["a/b; x=y; q=0.5"]),
        # A parameter q is the weight wherever it stands (section 12.5.1), and quoted it is the same (section 8.3.1).
        ('a/b;x=",";q="0.5", c/d', ['a/b; x=","; q=0.5', "c/d"]),
        ('a/b;q="0"', ["a/b; q=0"]),
        ('a/b;q="\\1"', ["a/b"]),
        ('a/b;q="", a/c;q=" 1", a/d;q="1;x=y", a/e', ["a/e"]),
        ("a/b;q=2, a/c;q=-1, a/d;q=0.1234, a/e;q=1.001, a/f;q=x, a/g;q=.5, a/h;q=01, a/i;q=1e0, a/j", ["a/j"]),
        ("a/b;q=0.\u0661, a/b;q=0.5;q=0.5, */b, a, a/b c/d, e/f", ["e/f"]),
        ('a/b;x="\\"";y="\\, c/d", e/f', ['a/b; x="\\""; y=", c/d"', "e/f"]),
        ('a b;x="\\", c/d", e/f', ["e/f"]),
        ('a/b;x="c/d, e/f', []),
    ],
)
def test_r7_3_1_an_accept_header(kit: Any, accept: str, expected: list[str]) -> None:
    found = kit.parse_accept(accept)
    assert [str(item) for item in found] == expected
    assert kit.parse_accept(kit.format_accept(found)) == found
    assert pickle.loads(pickle.dumps(found)) == found
    assert [hash(item) for item in kit.parse_accept(accept)] == [hash(item) for item in found]


def test_r4_1_1_r7_3_1_what_a_client_sends(kit: Any) -> None:
    headers = dict(kit.request_headers())
    assert headers == {
        "content-type": "application/llm-request+json",
        "accept": 'text/event-stream; profile="llm-stream-1.0"',
    }
    assert kit.request_format(headers["content-type"]) == "standard"
    assert kit.response_format(headers["accept"], request="vendor") == "standard"


def test_r3_6_r4_9_1_what_a_producer_sends(kit: Any) -> None:
    headers = kit.response_headers()
    assert headers == [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-cache"),
        ("x-accel-buffering", "no"),
    ]
    assert "content-length" not in dict(headers)
    headers.clear()
    assert kit.response_headers()


def test_building(kit: Any) -> None:
    profile = kit.MediaType("text/event-stream", {"profile": "llm-stream-1.0", "Title": 'a "b" \\'})
    assert str(profile) == 'text/event-stream; profile=llm-stream-1.0; title="a \\"b\\" \\\\"'
    assert repr(profile) == f"MediaType({str(profile)!r})"
    assert kit.format_accept([kit.MediaRange(profile, 0.25), kit.MediaType("*/*")]) == f"{profile}; q=0.25, */*"
    assert repr(kit.MediaRange(kit.MediaType("a/*"), 0)) == "MediaRange('a/*; q=0')"
    assert profile != "text/event-stream"
    for value, name in ((profile, "type"), (kit.MediaRange(profile), "quality")):
        with pytest.raises(AttributeError):
            setattr(value, name, 1)
        with pytest.raises(AttributeError):
            delattr(value, name)


@pytest.mark.parametrize(
    ("essence", "parameters"),
    [
        ("text", None),
        ("text/", None),
        ("text/a b", None),
        ("text/plain\r\nx: y", None),
        ("text/plain", {"a": "b\r\nx: y"}),
        ("text/plain", {"a": "\0"}),
        ("text/plain", {"a": "\u20ac"}),
        ("text/plain", {"a b": "c"}),
        ("text/plain", {"": "c"}),
        ("text/plain", {"a": "b", "A": "c"}),
    ],
)
def test_what_a_header_cannot_hold(kit: Any, essence: str, parameters: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        kit.MediaType(essence, parameters)


@pytest.mark.parametrize("value", [5, 0, 3.5, True, ["a/b"], [97], {"a": 1}, object(), (97,)])
def test_what_is_no_header_value(kit: Any, value: Any) -> None:
    """Neither text nor bytes: bytes(5) would be five zeros."""
    for read in (kit.parse_media_type, kit.parse_accept, kit.request_format, kit.response_format):
        with pytest.raises(TypeError, match=type(value).__name__):
            read(value)
    with pytest.raises(TypeError, match=type(value).__name__):
        kit.quality(value, kit.MediaType("a/b"))


def test_any_bytes_are_a_header_value(kit: Any) -> None:
    for kind in (bytes, bytearray, memoryview):
        assert kit.parse_media_type(kind(b"a/b")) == kit.MediaType("a/b")
        assert kit.parse_accept(kind(b"a/b")) == [kit.MediaRange(kit.MediaType("a/b"))]


def test_charsets_are_compared_in_any_case(kit: Any) -> None:
    """RFC 9110, section 8.3.2; of any other parameter the case counts."""
    assert kit.MediaType("text/html", {"Charset": "UTF-8"}) == kit.MediaType("text/html", {"charset": "utf-8"})
    assert kit.MediaType("a/b", {"x": "UTF-8"}) != kit.MediaType("a/b", {"x": "utf-8"})
    plain = kit.MediaType("text/plain")
    assert kit.quality("text/plain; charset=utf-8", plain) == 0  # it may be something else
    assert kit.quality("text/plain; charset=utf-8", kit.MediaType("text/plain", {"charset": "UTF-8"})) == 1


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        *((0.0004, 0.001), (0.0001, 0.001), (5e-324, 0.001), (0.0016, 0.002), (0.5, 0.5), (1 / 3, 0.333), (0, 0.0)),
        *((0.999, 0.999), (0.9996, 1.0), (1, 1.0)),
    ],
)
def test_a_quality_is_what_a_header_can_say(kit: Any, given: float, kept: float) -> None:
    """RFC 9110, section 12.4.2: three decimals; and 0, which is "not acceptable", is said by nothing but 0."""
    made = kit.MediaRange(kit.MediaType("a/b"), given)
    assert made.quality == kept
    assert kit.parse_accept(str(made)) == [made]


@pytest.mark.parametrize("quality", [-0.1, 1.1, float("nan"), -1e-9, 1 + 1e-9])
def test_a_quality_is_from_0_to_1(kit: Any, quality: float) -> None:
    with pytest.raises(ValueError, match="quality"):
        kit.MediaRange(kit.MediaType("a/b"), quality)


TOKEN = st.text("abcXYZ019!#$%&'*+-.^_`|~", min_size=1, max_size=5)
VALUE = st.text(
    st.characters(min_codepoint=32, max_codepoint=255, blacklist_characters="\x7f") | st.just("\t"), max_size=6
)
MEDIA = st.tuples(
    TOKEN, TOKEN, st.dictionaries(TOKEN.map(str.lower).filter(lambda name: name != "q"), VALUE, max_size=3)
)


@given(made=st.lists(st.tuples(MEDIA, st.integers(0, 1000)), max_size=4))
def test_what_is_built_is_read(kit: Any, made: Any) -> None:
    ranges = [
        kit.MediaRange(kit.MediaType(f"{kind}/{subtype}", parameters), quality / 1000)
        for (kind, subtype, parameters), quality in made
        if kind != "*" or subtype == "*"
    ]
    assert kit.parse_accept(kit.format_accept(ranges)) == ranges
    for item in ranges:
        media = item.media_type
        if "*" not in (media.type, media.subtype):
            assert kit.parse_media_type(str(media)) == media


@given(text=st.text('ab/;,=*"\\ q01.\t\x00\xe9', max_size=30) | st.text() | st.binary())
def test_nothing_that_comes_raises(kit: Any, text: Any) -> None:
    kit.parse_media_type(text)
    assert all(0 <= item.quality <= 1 for item in kit.parse_accept(text))
    assert kit.request_format(text) in ("standard", "vendor", None)
    assert kit.response_format(text) in ("standard", "vendor", None)


@pytest.mark.parametrize(
    "piece", ['a/b;c="', "a/b;", ",", '"', "\\", "a/b,", "a/b;q=0.5,", 'a/b;c="\\"', " ", 'a"b/c;d="\x01', "a"]
)
def test_long_headers_are_read_within_bounds(kit: Any, piece: str) -> None:
    text = piece * (100_000 // len(piece))
    kit.parse_media_type(text)
    assert len(kit.parse_accept(text)) <= 1000
    assert kit.response_format(text) in ("standard", "vendor", None)
