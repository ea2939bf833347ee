"""The event classes: values that are made, read, compared, copied and let go of."""

from __future__ import annotations

import copy
import gc
import pickle
import sys

import pytest

import drafts
from drafts import delta, end, envelope, error, event, sse, start, stop, tool_call, usage

# Class, its own members with a value that is not the default, and what it has where nothing is given.
KINDS = {
    "StreamStart": (
        {"model": "m", "created": 7, "request_id": "r"},
        {"model": None, "created": None, "request_id": None},
    ),
    "ContentDelta": (
        {"text": "t", "index": 3, "role": "user", "reasoning": "why"},
        {"text": "", "index": 0, "role": "assistant", "reasoning": None},
    ),
    "ContentStop": ({"stop_reason": "end_turn", "index": 3}, {"stop_reason": None, "index": 0}),
    "ToolCall": (
        {"id": "c", "name": "f", "arguments": "{}", "index": 3},
        {"id": None, "name": None, "arguments": None, "index": 0},
    ),
    "Usage": ({"input_tokens": 1, "output_tokens": 2}, {"input_tokens": None, "output_tokens": None}),
    "StreamError": ({"code": "overloaded", "message": "busy"}, {"code": None, "message": None}),
    "StreamEnd": ({"request_id": "r"}, {"request_id": None}),
    "UnknownEvent": ({"type": "x.y"}, {"type": ""}),
}
TYPES = {
    "StreamStart": "stream.start",
    "ContentDelta": "content.delta",
    "ContentStop": "content.stop",
    "ToolCall": "tool.call",
    "Usage": "usage",
    "StreamError": "error",
    "StreamEnd": "stream.end",
    "UnknownEvent": "x.y",
}
EXTENSIONS = {"vendor:x": [1, {"a": None}], "b": "é"}

every_kind = pytest.mark.parametrize("name", KINDS)


def made(llmstream, name, **more):
    return getattr(llmstream, name)(**KINDS[name][0], **more)


def read(llmstream, *more):
    """One event of every kind as a parser reads them."""
    extensions = {"extensions": EXTENSIONS}
    data = (
        start(0, model="m", created=7, request_id="r", **extensions)
        + delta(1, "t", 3, **extensions)
        + stop(2, 3, **extensions)
        + tool_call(3, 3, id="c", **extensions)
        + usage(4, 1, 2, **extensions)
        + event("x.y", 5, **extensions)
        + error(6, **extensions)
        + end(7, request_id="r", **extensions)
    )
    return llmstream.Parser(*more).feed(data)


# Making


@every_kind
def test_members_are_those_given(llmstream, name):
    found = made(llmstream, name, seq=9, extensions=EXTENSIONS)
    for member, value in KINDS[name][0].items():
        assert getattr(found, member) == value
    assert found.type == TYPES[name]
    assert found.seq == 9
    assert found.extensions == EXTENSIONS
    assert found.raw == b""
    assert isinstance(found, llmstream.Event)


@every_kind
def test_members_have_defaults(llmstream, name):
    found = getattr(llmstream, name)()
    for member, value in KINDS[name][1].items():
        assert getattr(found, member) == value
    assert found.seq is None
    assert found.extensions == {}


@every_kind
def test_members_are_given_by_name(llmstream, name):
    with pytest.raises(TypeError):
        getattr(llmstream, name)("x")
    with pytest.raises(TypeError):
        getattr(llmstream, name)(unknown=1)


def test_the_base_is_not_made(llmstream):
    with pytest.raises(TypeError, match=r"^Event is only a base class$"):
        llmstream.Event()


@every_kind
def test_members_are_checked(llmstream, name):
    cls = getattr(llmstream, name)
    for member, value in KINDS[name][0].items():
        if isinstance(value, str):
            with pytest.raises(TypeError, match=f"^{member} must be a str, not int$"):
                cls(**{member: 5})
            with pytest.raises(TypeError, match=f"^{member} must be a str, not bytes$"):
                cls(**{member: b"x"})
        else:
            with pytest.raises(TypeError, match=f"^{member} must be an int, not str$"):
                cls(**{member: "5"})
            with pytest.raises(TypeError, match=f"^{member} must be an int, not bool$"):
                cls(**{member: True})
            with pytest.raises(TypeError, match=f"^{member} must be an int, not float$"):
                cls(**{member: 1.0})
            for bad in (-1, 2**63, 10**400):
                with pytest.raises(ValueError, match=rf"^{member} must be from 0 to 2\*\*63 - 1$"):
                    cls(**{member: bad})
            assert getattr(cls(**{member: 2**63 - 1}), member) == 2**63 - 1
        if KINDS[name][1][member] is not None:
            with pytest.raises(TypeError, match=f"^{member} must be"):
                cls(**{member: None})
    with pytest.raises(TypeError, match=r"^seq must be an int, not str$"):
        cls(seq="1")
    with pytest.raises(ValueError, match=r"^seq must be from 0"):
        cls(seq=-1)
    with pytest.raises(TypeError, match=r"^extensions must have str keys$"):
        cls(extensions={1: 2})
    with pytest.raises(ValueError):  # noqa: PT011 (json's own words)
        cls(extensions={"a": float("nan")})
    with pytest.raises(TypeError):
        cls(extensions={"a": object()})


def test_subclasses_of_str_and_int_become_plain(llmstream):
    class Text(str):
        __slots__ = ()

    class Number(int):
        pass

    found = llmstream.ContentDelta(text=Text("a"), index=Number(3))
    assert type(found.text) is str
    assert type(found.index) is int
    assert (found.text, found.index) == ("a", 3)


# Unchanging


@every_kind
def test_members_do_not_change(llmstream, name):
    found = made(llmstream, name)
    for member in [*KINDS[name][0], "seq", "raw", "extensions", "type", "new"]:
        before = getattr(found, member, None)
        with pytest.raises(AttributeError):
            setattr(found, member, before)
        with pytest.raises(AttributeError):
            delattr(found, member)
    assert not hasattr(found, "__dict__")


def test_extensions_are_a_copy(llmstream):
    for found in (made(llmstream, "Usage", extensions=EXTENSIONS), read(llmstream)[4]):
        found.extensions["b"] = 1
        assert found.extensions == EXTENSIONS
    given = {"a": [1]}
    found = made(llmstream, "Usage", extensions=given)
    given["a"].append(2)
    assert found.extensions == {"a": [1]}


# match


def test_match_by_name(llmstream):
    seen = []
    for found in read(llmstream):
        match found:
            case llmstream.StreamStart(model=model, created=created, request_id=request_id):
                seen.append((model, created, request_id))
            case llmstream.ContentDelta(text=text, index=index, role=role):
                seen.append((text, index, role))
            case llmstream.ContentStop(stop_reason=reason, index=index):
                seen.append((reason, index))
            case llmstream.ToolCall(id=call, name=name, arguments=arguments):
                seen.append((call, name, arguments))
            case llmstream.Usage(input_tokens=first, output_tokens=second):
                seen.append((first, second))
            case llmstream.StreamError(code=code, message=message):
                seen.append((code, message))
            case llmstream.StreamEnd(request_id=request_id):
                seen.append((request_id,))
            case llmstream.UnknownEvent(type=kind):
                seen.append((kind,))
    assert seen == [
        ("m", 7, "r"),
        ("t", 3, "assistant"),
        ("end_turn", 3),
        ("c", "f", "{}"),
        (1, 2),
        ("x.y",),
        ("overloaded", "busy"),
        ("r",),
    ]


@every_kind
def test_match_by_place(llmstream, name):
    cls = getattr(llmstream, name)
    assert cls.__match_args__ == tuple(KINDS[name][0])
    match made(llmstream, name):
        case cls(first):
            assert first == next(iter(KINDS[name][0].values()))
        case _:
            pytest.fail("no match")


# Equality, hash, repr


@every_kind
def test_equal_by_members_and_extensions(llmstream, name):
    cls = getattr(llmstream, name)
    values = {**KINDS[name][0], "seq": 1, "extensions": EXTENSIONS}
    found = cls(**values)
    same = cls(**{**values, "extensions": dict(reversed(EXTENSIONS.items()))})
    assert found == same
    assert hash(found) == hash(same)
    for member, value in values.items():
        if isinstance(value, str):
            changed = value + "x"
        elif isinstance(value, int):
            changed = value + 1
        else:
            changed = {"vendor:x": 1}
        other = cls(**{**values, member: changed})
        assert found != other, member
        assert hash(found) != hash(other), member
    assert found != cls(**{**values, "seq": None})
    assert found != cls(**{**values, "extensions": None})
    assert found != name
    assert found.__eq__(1) is NotImplemented
    assert cls(extensions={}) == cls()


def test_kinds_are_never_equal(llmstream):
    empty = [getattr(llmstream, name)() for name in KINDS]
    assert len(set(empty)) == len(KINDS)
    assert llmstream.StreamEnd(request_id="r") != llmstream.StreamStart(request_id="r")


def test_read_and_made_events_are_equal(llmstream):
    found = read(llmstream)[1]
    same = llmstream.ContentDelta(text="t", index=3, seq=1, extensions=EXTENSIONS)
    assert found == same
    assert hash(found) == hash(same)


def test_raw_does_not_count(llmstream):
    first, second = llmstream.Parser(), llmstream.Parser()
    one = first.feed(start())[0]
    two = second.feed(sse(envelope("stream.start", 0, model="m", created=1, unknown=1), "stream.start"))[0]
    assert one.raw != two.raw
    assert one == two
    assert hash(one) == hash(two)


def test_repr(llmstream):
    assert [repr(found) for found in read(llmstream)] == [
        f"StreamStart(model='m', created=7, request_id='r', seq=0, extensions={EXTENSIONS!r})",
        f"ContentDelta(text='t', index=3, role='assistant', reasoning=None, seq=1, extensions={EXTENSIONS!r})",
        f"ContentStop(stop_reason='end_turn', index=3, seq=2, extensions={EXTENSIONS!r})",
        f"ToolCall(id='c', name='f', arguments='{{}}', index=3, seq=3, extensions={EXTENSIONS!r})",
        f"Usage(input_tokens=1, output_tokens=2, seq=4, extensions={EXTENSIONS!r})",
        f"UnknownEvent(type='x.y', seq=5, extensions={EXTENSIONS!r})",
        "StreamError(code='overloaded', seq=6)",
        f"StreamEnd(request_id='r', seq=7, extensions={EXTENSIONS!r})",
    ]
    assert (
        repr(llmstream.ContentDelta()) == "ContentDelta(text='', index=0, role='assistant', reasoning=None, seq=None)"
    )


@every_kind
def test_repr_can_be_evaluated(llmstream, name):
    if name != "StreamError":  # its words may quote the prompt
        found = made(llmstream, name, seq=4, extensions=EXTENSIONS)
        assert eval(repr(found), vars(llmstream)) == found


# raw, json, extensions, detach


def test_raw_is_the_data_field(llmstream):
    first, second = '{"v":"1.0","seq":0,', '"type":"x","y":"\u00e9"}'
    data = f"event: x\ndata: {first}\ndata:{second}\n\n".encode()
    for end_of_line in (b"\n", b"\r\n", b"\r"):
        [found] = llmstream.Parser().feed(data.replace(b"\n", end_of_line))
        assert found.raw == f"{first}\n{second}".encode()
        assert found.json() == {"v": "1.0", "seq": 0, "type": "x", "y": "\u00e9"}
        assert type(found.raw) is bytes


def test_raw_keeps_invalid_utf8(llmstream):
    [found] = llmstream.Parser().feed(delta(0, "MARK").replace(b"MARK", b"\xff"))
    assert b"\xff" in found.raw
    assert found.json()["delta"] == {"text": "\ufffd"}


def test_raw_of_a_learned_event(llmstream):
    stream = start() + b"".join(delta(number, f"t{number}", x=number) for number in range(1, 30))
    parser = llmstream.Parser()
    events = parser.feed(stream)
    assert parser.shape_hits > 20
    assert [e.raw for e in events] == [block.split(b"data: ")[1] for block in stream.split(b"\n\n")[:-1]]
    assert [e.json()["x"] for e in events[1:]] == list(range(1, 30))


def test_extensions_of_a_learned_event_are_its_own(llmstream):
    stream = b"".join(delta(number, "t", extensions={"a:n": number, "a:s": f"s{number}"}) for number in range(1, 30))
    parser = llmstream.Parser()
    events = parser.feed(start() + stream)
    assert parser.shape_hits > 20
    assert [e.extensions for e in events[1:]] == [{"a:n": number, "a:s": f"s{number}"} for number in range(1, 30)]


def test_json_of_an_event_made_by_hand(llmstream):
    found = llmstream.Usage(input_tokens=1, seq=4, extensions={"a": 1})
    assert found.json() == {"v": "1.0", "seq": 4, "type": "usage", "input_tokens": 1, "extensions": {"a": 1}}
    found = llmstream.ContentDelta(text="t", index=2, seq=3)
    expected = {"v": "1.0", "seq": 3, "type": "content.delta", "index": 2, "role": "assistant", "delta": {"text": "t"}}
    assert found.json() == expected
    assert llmstream.UnknownEvent(type="x", seq=1).json() == {"v": "1.0", "seq": 1, "type": "x"}


@pytest.mark.parametrize("value", ["null", "1", "[]", '"x"', "{}"])
def test_extensions_that_are_no_object(llmstream, value):
    [found] = llmstream.Parser().feed(delta(0, raw_extensions=value))
    assert found.extensions == {}
    assert found.json()["extensions"] is not Ellipsis


def test_extensions_spelled_with_escapes(llmstream):
    payload = envelope("usage", 0, input_tokens=1, output_tokens=2)[:-1] + ',"extens\\u0069ons":{"a":1}}'
    [found] = llmstream.Parser().feed(sse(payload, "usage"))
    assert found.extensions == {"a": 1}


def test_extensions_are_those_of_the_top(llmstream):
    [found] = llmstream.Parser().feed(delta(0, delta={"text": "a", "extensions": {"a": 1}}, x={"extensions": {"b": 1}}))
    assert found.extensions == {}


def test_an_event_keeps_only_its_own_bytes_after_detach(llmstream):
    for filler in ("x" * 100_000, "\u00e9" * 50_000):
        stream = start() + delta(1, "a") + delta(2, filler)
        events = llmstream.Parser().feed(stream)
        before = [drafts.view(e) for e in events]
        for found in events:
            assert found.detach() is None
            found.detach()
        assert [drafts.view(e) for e in events] == before


def test_an_event_lets_go_of_its_chunk(llmstream):
    # A bytes object cannot be watched, so its references are counted.
    chunk = b"".join([start(), delta(1, "x" * 50)])
    before = sys.getrefcount(chunk)
    events = llmstream.Parser().feed(chunk)
    assert sys.getrefcount(chunk) > before
    for found in events:
        found.detach()
    assert sys.getrefcount(chunk) == before
    del events
    events = llmstream.Parser().feed(chunk)
    del events, found
    gc.collect()
    assert sys.getrefcount(chunk) == before


def test_a_mutable_chunk_is_copied(llmstream):
    chunk = bytearray(start() + delta(1, "text"))
    events = llmstream.Parser().feed(chunk)
    chunk[:] = bytes(len(chunk))
    assert events[1].text == "text"
    assert events[1].json()["delta"] == {"text": "text"}


# Pickle and copy


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_events_are_pickled(llmstream, protocol):
    for found in [*read(llmstream), *(made(llmstream, name, seq=1, extensions=EXTENSIONS) for name in KINDS)]:
        again = pickle.loads(pickle.dumps(found, protocol))
        assert type(again) is type(found)
        assert drafts.view(again) == drafts.view(found)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_events_are_copied(llmstream, duplicate):
    for found in [*read(llmstream), *(made(llmstream, name, seq=1, extensions=EXTENSIONS) for name in KINDS)]:
        again = duplicate(found)
        assert drafts.view(again) == drafts.view(found)


def test_a_pickle_holds_only_its_own_bytes(llmstream):
    sizes = []
    for filler in ("x", "x" * 100_000):
        events = llmstream.Parser().feed(start() + delta(1, "a") + delta(2, filler))
        sizes.append(len(pickle.dumps(events[1])))
        assert copy.copy(events[1]).raw == events[1].raw
    assert sizes[0] == sizes[1] < 1000


def test_what_one_twin_pickles_the_other_reads(twins):
    for writer, reader in ((twins.cython, twins.python), (twins.python, twins.cython)):
        with writer.active():
            events = read(writer.package)
            events += [made(writer.package, name, extensions=EXTENSIONS) for name in KINDS]
            parser = writer.package.Parser()
            parser.feed(sse("{"))
            sse_event = writer.package.ServerSentEvent("e", "d", "1", 2, False)
            found = [*events, sse_event, parser.violations[0]]
            written = [pickle.dumps(each) for each in found]
            shown = [repr(each) for each in found]
        with reader.active():
            again = [pickle.loads(each) for each in written]
            assert [repr(each) for each in again] == shown
            assert all(type(each) is getattr(reader.package, type(each).__name__) for each in again)


# Memory


def test_events_are_no_cycles(llmstream):
    events = read(llmstream)
    if llmstream.implementation == "cython":
        assert not any(gc.is_tracked(found) for found in events)
    for found in events:
        assert not any(referent is found for referent in gc.get_referents(found))
