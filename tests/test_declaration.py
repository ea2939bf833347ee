"""Paths and forms: what a dialect declares, and a provider that is nothing but a declaration."""

from __future__ import annotations

import json
from importlib import import_module

import pytest

import splits


@pytest.fixture
def declaration(llmstream):
    return import_module("llmstream.declaration")


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("a", ("a",)),
        ("choices[0].delta.content", ("choices", 0, "delta", "content")),
        ("a[0][12].b", ("a", 0, 12, "b")),
        ('["a.b"]["c[0]"].d', ("a.b", "c[0]", "d")),
        ('a[""]', ("a", "")),
        ("@type", ("@type",)),
    ],
)
def test_paths(declaration, text, steps):
    assert declaration.parse_path(text) == steps


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "a.",
        ".a",
        "a..b",
        "[0]",
        "a[",
        "a[]",
        "a[-1]",
        "a[x]",
        "a[1001]",
        "a[0]b",
        'a["b',
        "a]",
        ".".join("a" * 17),
    ],
)
def test_what_is_no_path(declaration, text):
    with pytest.raises(ValueError, match="path"):
        declaration.parse_path(text)


def test_a_delta_names_one_fragment(llmstream):
    for wrong in ({}, {"text": "a", "reasoning": "b"}, {"text": "a", "input_tokens": "b"}, {"text": "a", "call": "b"}):
        with pytest.raises(ValueError, match=r"Delta names|call goes"):
            llmstream.Delta(**wrong)


def test_one_tree_of_all_paths(llmstream, declaration):
    forms = [
        llmstream.Delta(text="c[0].d.t", index="c[0].i", absent=["c[1]", "c[0].d"], when={"k": "x"}),
        llmstream.Delta(reasoning="c[0].d.r", empty=["c[0].d.t"], input_tokens="u.i", output_tokens="u.o"),
    ]
    declared = declaration.Declaration(forms, paths=["k"])
    assert len(declared.paths) == len(set(declared.paths)) == 8
    assert declared.add("k") == 0
    assert declared.add(None) == -1
    first, second = declared.forms
    assert first.kind == "text"
    assert second.kind == "reasoning"
    assert declared.paths[first.content] == ("c", 0, "d", "t") == declared.paths[second.empty[0]]
    assert (first.call, first.input_tokens, second.index) == (-1, -1, -1)
    with pytest.raises(ValueError, match="both"):
        declared.add("c.d")
    with pytest.raises(ValueError, match="more than 60"):
        declaration.Declaration(paths=[f"p{number}" for number in range(61)])


@pytest.mark.parametrize("over", [0, 1])
def test_bounds_of_a_declaration(llmstream, declaration, over):
    """Both twins refuse the same, when the dialect is made or a parser for it."""

    def kind(*deltas):
        return type("Wide", (llmstream.Dialect,), {"name": "wide", "text": "t", "deltas": deltas})

    paths = [f"a{number}.b" for number in range(31)]  # two steps each, and one for the text
    paths += ["c"] * over + ["d"]
    many = {f"k{number}": True for number in range(8 + over)}
    makers = [
        lambda: llmstream.Parser(kind(llmstream.Delta(text="t", absent=paths))),
        lambda: llmstream.Parser(kind(llmstream.Delta(text="t", when=many))),
        lambda: llmstream.Parser(kind(llmstream.Delta(text="t", absent=[f"p{at}" for at in range(59 + over)]))),
    ]
    words = ["more than 64 steps", "more than 8 constants", "more than 60 paths"]
    for make, said in zip(makers, words, strict=True):
        if over:
            with pytest.raises(ValueError, match=said):
                make()
        else:
            parser = make()
            body = dict.fromkeys(many, True) | {"t": "said"}
            data = b"data: " + json.dumps(body).encode() + b"\n\n"
            assert parser.feed_text(data * 3) == "said" * 3


# A provider in a few lines


def example(llmstream):
    class Example(llmstream.Dialect):
        name = "example"
        text = "output[0].text"
        reasoning = "output[0].thought"
        index = "output[0].number"
        stop_reason = "output[0].finish"
        stop_reasons = {"complete": "end_turn"}  # noqa: RUF012
        model = "about.model"
        created = "about.at"
        request_id = "about.id"
        input_tokens = "usage.in"
        output_tokens = "usage.out"
        error_code = "fault.kind"
        error_message = "fault.words"
        error_codes = {"busy": "overloaded"}  # noqa: RUF012
        end_mark = "[END]"

    return Example


def body(*payloads):
    return b"".join(b"data: " + (p if isinstance(p, bytes) else json.dumps(p).encode()) + b"\n\n" for p in payloads)


def test_a_declared_provider(llmstream):
    pieces = [{"output": [{"text": f"piece {number} ", "number": 0}]} for number in range(20)]
    stream = body(
        {"about": {"model": "m-1", "at": 1700000000, "id": "r-7"}},
        {"output": [{"thought": "hm"}]},
        *pieces,
        {"output": [{"text": "", "number": 1}]},
        {"output": [{"text": "counted", "thought": None}], "usage": {"in": 3, "out": 21}},
        {"output": [{"finish": "complete"}]},
        b"[END]",
    )
    for chunks in splits.some_ways(stream):
        parser = llmstream.Parser(example(llmstream))
        events = [event for chunk in chunks for event in parser.feed(chunk)] + parser.close()
        assert [event.seq for event in events] == list(range(len(events)))
        start, thought, *texts = events[:22]
        assert (start.model, start.created, start.request_id) == ("m-1", 1700000000, "r-7")
        assert (thought.text, thought.reasoning) == ("", "hm")
        assert [event.text for event in texts] == [f"piece {number} " for number in range(20)]
        assert events[22:] == [
            llmstream.ContentDelta(text="counted", seq=22),
            llmstream.Usage(input_tokens=3, output_tokens=21, seq=23),
            llmstream.ContentStop(stop_reason="end_turn", seq=24, extensions={"example:stop_reason": "complete"}),
            llmstream.StreamEnd(request_id="r-7", seq=25),
        ]
        assert parser.complete
        assert not parser.violations


def test_a_declared_provider_rides_the_shapes(llmstream):
    pieces = [{"output": [{"text": f"piece {number} ", "number": 0}]} for number in range(50)]
    parser = llmstream.Parser(example(llmstream))
    parser.feed(body({"about": {"model": "m-1"}}, *pieces))
    assert parser.shape_hits > 45


@pytest.mark.parametrize(
    ("payload", "code", "message", "own"),
    [
        ({"fault": {"kind": "busy", "words": "wait"}}, "overloaded", "wait", "busy"),
        ({"fault": {"kind": "odd"}}, "odd", "", "odd"),
        ({"fault": {"words": "wait"}}, "internal_error", "wait", None),
        ({"error": {"code": 429, "message": "slow down"}}, "rate_limited", "slow down", 429),
        ({"error": "down"}, "internal_error", "down", None),
    ],
)
def test_errors_of_a_declared_provider(llmstream, payload, code, message, own):
    result = llmstream.parse(body({"about": {"model": "m"}}, payload, payload), dialect=example(llmstream))
    assert (result.error.code, result.error.message) == (code, message)
    assert result.error.extensions == ({} if own is None else {"example:code": own})
    assert not result.complete


def test_one_count_alone(llmstream):
    result = llmstream.parse(
        body({"usage": {"in": 5}, "output": [{"text": "a"}]}, b"[END]"), dialect=example(llmstream)
    )
    assert (result.usage.input_tokens, result.usage.output_tokens) == (5, 0)
    assert [violation.requirement for violation in result.violations] == ["L-USAGE"]
    assert result.complete


def test_stops_make_it_complete_without_an_end_mark(llmstream):
    whole = [{"output": [{"text": "a", "number": n, "finish": "complete"}]} for n in (0, 1)]
    half = {"output": [{"text": "a", "number": 1}]}
    assert llmstream.parse(body(*whole), dialect=example(llmstream)).complete
    assert not llmstream.parse(body(whole[0], half), dialect=example(llmstream)).complete


def test_forms_follow_from_the_paths_only_where_they_say_all(llmstream):
    base = example(llmstream)
    assert [form.reasoning is None for form in base.deltas] == [True, True, False, False]

    class Renamed(base):
        name = "renamed"

    class Moved(base):
        text = "elsewhere"

    class Own(base):
        def translate(self, payload, event):
            return self.begin(payload, [self.delta(0, "own")])

    class Chosen(base):
        deltas = (llmstream.Delta(text="x"),)

    class Plain(llmstream.Dialect):
        json = False
        text = "x"

    class Further(Chosen):
        text = "y"

    assert len(Renamed.deltas) == 4
    assert Moved.deltas[0].text == "elsewhere"
    assert Own.deltas == Plain.deltas == ()
    assert Further.deltas is Chosen.deltas
    assert llmstream.parse(body({"output": [{"text": "a"}]}, {}), dialect=Own).text == "ownown"


def test_a_bad_path_is_refused_when_the_class_is_made(llmstream):
    with pytest.raises(ValueError, match="not a path"):
        type("Wrong", (llmstream.Dialect,), {"text": "a..b"})


@pytest.mark.parametrize(
    ("members", "error"),
    [
        ({"text": 5}, TypeError),
        ({"text": ["a"]}, TypeError),
        ({"stop_reason": b"a"}, TypeError),
        ({"end_mark": 5}, TypeError),
        ({"stop_reasons": ["stop"]}, TypeError),
        ({"stop_reasons": None}, TypeError),
        ({"error_codes": "x"}, TypeError),
        ({"framings": 1}, TypeError),
        ({"name": 5}, TypeError),
        ({"name": b"x"}, TypeError),
        ({"name": "Bad Name:x"}, ValueError),
        ({"name": "a:b"}, ValueError),
        ({"name": "a b"}, ValueError),
        ({"name": "é"}, ValueError),
        ({"name": "a\n"}, ValueError),
        ({"name": "-"}, ValueError),
        ({"name": "x" * 65}, ValueError),
    ],
)
def test_what_is_no_declaration_is_refused_when_the_class_is_made(llmstream, members, error):
    with pytest.raises(error, match=r"name of a dialect|must be"):
        type("Wrong", (llmstream.Dialect,), members)


def test_a_dialect_needs_a_name_when_it_is_used(llmstream):
    class Base(llmstream.Dialect):  # others may be made from it
        text = "x"

    class Named(Base):
        name = "a.b-c_1"

    with pytest.raises(ValueError, match="name of a dialect"):
        llmstream.Parser(Base)
    for wrong, error in (("a:b", ValueError), ("", ValueError), (5, TypeError)):
        with pytest.raises(error, match="name of a dialect"):
            Named(wrong)
    assert llmstream.Parser(Named).dialect == "a.b-c_1"
    assert Base("given").name == "given"


def test_a_model_that_is_named_after_the_first_words(llmstream):
    class Late(llmstream.Dialect):
        name = "late"
        text = "text"
        model = "model"
        stop_reason = "stop"
        input_tokens = "in"
        output_tokens = "out"
        end_mark = "[DONE]"

    words, stop = [{"text": "a"}, {"text": "b"}], {"stop": "end_turn"}
    for last in ([{**stop, "model": "m"}], [stop, {"in": 1, "out": 2, "model": "m"}]):
        for shapes in (True, False):
            data = body(*words, *last) + b"data: [DONE]\n\n"
            parser = llmstream.Parser(Late, shapes=shapes)
            events = parser.feed(data) + parser.close()
            assert events[0].model is None
            assert events[-1].extensions == {"late:model": "m"}
            assert llmstream.parse(data, dialect=Late).model == "m"
    named = body({"text": "a", "model": "first"}, {"stop": "end_turn", "model": "second"})
    assert llmstream.parse(named, dialect=Late).model == "first"


def test_a_dialect_of_text(llmstream):
    class Lines(llmstream.Dialect):
        name = "lines"
        json = False
        end_mark = "BYE"

        def translate(self, payload, event):
            assert isinstance(payload, str)
            return self.begin({}, [self.delta(0, payload)])

    result = llmstream.parse(b"data: {not json\n\ndata: b\n\ndata: BYE\n\n", dialect=Lines)
    assert result.text == "{not jsonb"
    assert result.complete


# Members that a walk over the bytes has to mind


@pytest.mark.parametrize(
    "name", ['a"b', "a\\b", "a\tb", "\\", '"', "\x00", "a\x1fb", "b\\\\", "\u00e9\\", "n", "a\\tb"]
)
@pytest.mark.parametrize("behind", ["", " " * 40])
def test_a_member_is_known_by_its_name_not_by_its_bytes(llmstream, name, behind):
    """A name with a quote, a backslash or a control character is written with escapes, in more ways than one; its bytes
    as they are would be another name, or none."""
    kind = type("Odd", (llmstream.Dialect,), {"name": "odd", "text": f'["{name}"]'})
    inside = {
        json.dumps(name),
        json.dumps(name, ensure_ascii=False),
        '"' + "".join(rf"\u{ord(c):04x}" for c in name) + '"',
    }
    for written in inside:
        data = f'data: {{{written}:"said"}}{behind}\n\n'.encode()
        assert llmstream.Parser(kind).feed_text(data) == "said"
        assert llmstream.parse(data, dialect=kind).text == "said"
    payload = f'{{"{name}":"said"}}'
    try:
        members = json.loads(payload)
    except ValueError:
        members = {}
    data = f"data: {payload}{behind}\n\n".encode()
    assert llmstream.Parser(kind).feed_text(data) == members.get(name, "")
    assert llmstream.parse(data, dialect=kind).text == members.get(name, "")


@pytest.mark.parametrize("unknown", [0, 1, 20, 39, 40, 41, 57, 200])
@pytest.mark.parametrize("place", ["before", "behind", "between"])
@pytest.mark.parametrize("wanted", [16, 17, 56, 57, 59])
def test_many_declared_members_among_many_others(llmstream, unknown, place, wanted):
    """However many there are of both, each event gives its text, whether or not a shape of it can be learned."""
    names = [f"w{number}" for number in range(wanted)]
    deltas = (llmstream.Delta(text="text", empty=names),)
    kind = type("Many", (llmstream.Dialect,), {"name": "many", "text": "text", "deltas": deltas})
    declared = [f'"{name}":""' for name in names]
    for shapes in (True, False):
        parser = llmstream.Parser(kind, shapes=shapes)
        for number in range(6):
            others = [f'"u{at}":{number * at}' for at in range(unknown)]
            if place == "between":
                members = [part for pair in zip(declared, others, strict=False) for part in pair]
                members += declared[unknown:] + others[wanted:]
            else:
                members = others + declared if place == "before" else declared + others
            members.insert(len(members) // 2, f'"text":"t{number}"')
            assert parser.feed_text(f"data: {{{','.join(members)}}}\n\n".encode()) == f"t{number}"
