"""One thing wrong with a good stream, of every kind: it is found, where it is, under the right requirement."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import producing
import splits
from drafts import sse

Stream = list[dict[str, Any]]
Mutation = Callable[[Stream, int], "tuple[list[Any], int | None] | None"]

MUTATIONS: list[tuple[str, str, Mutation]] = []


def mutation(requirement: str) -> Callable[[Mutation], Mutation]:
    """Registers a mutation: from the envelopes of a good stream and a number that chooses one of them, to the envelopes
    (or bytes) of a bad one and the number of the event at fault, None where it is not told; or None: not applicable."""

    def register(function: Mutation) -> Mutation:
        MUTATIONS.append((function.__name__, requirement, function))
        return function

    return register


def written(items: list[Any]) -> bytes:
    parts = []
    for item in items:
        if isinstance(item, bytes):
            parts.append(item)
        else:
            parts.append(sse(json.dumps(item, ensure_ascii=False, separators=(",", ":")), item["type"]))
    return b"".join(parts)


def line(item: dict[str, Any]) -> str:
    return json.dumps(item, ensure_ascii=False, separators=(",", ":"))


def renumbered(items: list[Any]) -> list[Any]:
    return [{**item, "seq": seq} if isinstance(item, dict) else item for seq, item in enumerate(items)]


def choose(stream: Stream, number: int, *types: str, inner: bool = False) -> int | None:
    """The place of an event of these types (any: of all); ``inner``: neither the first nor the last."""
    places = [at for at, item in enumerate(stream) if not types or item["type"] in types]
    if inner:
        places = [at for at in places if 0 < at < len(stream) - 1]
    return places[number % len(places)] if places else None


def with_member(stream: Stream, at: int | None, name: str, *value: Any) -> tuple[list[Any], int | None] | None:
    """The stream with one member of one event set, or left out."""
    if at is None:
        return None
    item = {key: kept for key, kept in stream[at].items() if key != name}
    if value:
        item[name] = value[0]
    return [*stream[:at], item, *stream[at + 1 :]], at


# Whole events


@mutation("R5.2.1-3")
def an_event_dropped(stream, number):
    at = choose(stream, number, inner=True)
    return None if at is None else ([*stream[:at], *stream[at + 1 :]], at)


@mutation("R5.3.1-1")
def the_start_dropped(stream, number):
    return stream[1:], 0


@mutation("R5.3.7-2")
def the_end_dropped(stream, number):
    if any(item["type"] == "error" for item in stream):
        return None
    return stream[:-1], None


@mutation("R5.3.6-3")
def the_end_after_an_error_dropped(stream, number):
    if not any(item["type"] == "error" for item in stream):
        return None
    return stream[:-1], None


@mutation("R5.4-1")
def a_stop_dropped(stream, number):
    at = choose(stream, number, "content.stop")
    if at is None or any(item["type"] == "error" for item in stream):
        return None
    index = stream[at]["index"]
    if not any(item.get("index") == index for item in stream[:at]):
        return None
    return renumbered([*stream[:at], *stream[at + 1 :]]), len(stream) - 2


@mutation("R5.3.5-3")
def every_usage_dropped(stream, number):
    if any(item["type"] == "error" for item in stream):
        return None
    left = renumbered([item for item in stream if item["type"] != "usage"])
    return left, len(left) - 1


def repeated(stream: Stream, at: int | None) -> tuple[list[Any], int | None] | None:
    return None if at is None else ([*stream[: at + 1], stream[at], *stream[at + 1 :]], at + 1)


@mutation("R5.2.1-1")
def an_event_repeated(stream, number):
    return repeated(stream, choose(stream, number, inner=True))


@mutation("R5.3.1-2")
def the_start_repeated(stream, number):
    return renumbered([stream[0], *stream]), 1


@mutation("R5.3.1-2")
def a_second_start_later(stream, number):
    at = 1 + number % (len(stream) - 1)
    return renumbered([*stream[:at], stream[0], *stream[at:]]), at


@mutation("R5.3-2")
def a_stop_repeated(stream, number):
    found = repeated(stream, choose(stream, number, "content.stop"))
    return None if found is None else (renumbered(found[0]), found[1])


@mutation("R5.3.4-2")
def a_call_repeated(stream, number):
    found = repeated(stream, choose(stream, number, "tool.call"))
    return None if found is None else (renumbered(found[0]), found[1])


@mutation("R5.3-5")
def an_error_repeated(stream, number):
    found = repeated(stream, choose(stream, number, "error"))
    return None if found is None else (renumbered(found[0]), found[1])


@mutation("R5.3.7-1")
def the_end_repeated(stream, number):
    return renumbered([*stream, stream[-1]]), len(stream)


@mutation("R5.3.7-1")
def an_event_after_the_end(stream, number):
    at = choose(stream, number, inner=True)
    return None if at is None else (renumbered([*stream, stream[at]]), len(stream))


@mutation("R5.3.7-1")
def a_done_mark_after_the_end(stream, number):
    return [*stream, b"data: [DONE]\n\n"], len(stream)


@mutation("R5.3.7-1")
def the_end_too_early(stream, number):
    at = choose(stream, number, inner=True)
    return None if at is None else (renumbered([*stream[:at], stream[-1], *stream[at:-1]]), at + 1)


@mutation("R5.2.1-1")
def two_events_swapped(stream, number):
    at = choose(stream, number, inner=True)
    if at is None or at + 1 >= len(stream) - 1:
        return None
    return [*stream[:at], stream[at + 1], stream[at], *stream[at + 2 :]], at + 1


@mutation("R5.4-1")
def a_delta_after_its_stop(stream, number):
    at = choose(stream, number, "content.stop")
    if at is None or any(item["type"] == "error" for item in stream):
        return None
    late = {"v": "1.0", "seq": 0, "type": "content.delta", "index": stream[at]["index"], "role": "assistant"}
    return renumbered([*stream[: at + 1], {**late, "delta": {"text": "x"}}, *stream[at + 1 :]]), at + 1


@mutation("R5.3.6-3")
def a_delta_after_an_error(stream, number):
    at = choose(stream, number, "error")
    if at is None:
        return None
    late = {"v": "1.0", "seq": 0, "type": "content.delta", "index": 77, "role": "assistant", "delta": {"text": "x"}}
    return renumbered([*stream[: at + 1], late, *stream[at + 1 :]]), at + 1


# The envelope


@mutation("R5.2-1")
def v_wrong(stream, number):
    return with_member(stream, choose(stream, number), "v", ("2.0", 1.0, None, "1")[number % 4])


@mutation("R5.2-1")
def v_left_out(stream, number):
    return with_member(stream, choose(stream, number), "v")


@mutation("R5.2-2")
def seq_wrong(stream, number):
    return with_member(stream, choose(stream, number), "seq", ("1", None, -1, 1.5, True, [0])[number % 6])


@mutation("R5.2-2")
def seq_left_out(stream, number):
    return with_member(stream, choose(stream, number), "seq")


@mutation("R5.2.1-3")
def seq_higher(stream, number):
    at = choose(stream, number, inner=True)
    return None if at is None else with_member(stream, at, "seq", at + 1 + number)


@mutation("R5.2.1-1")
def seq_lower(stream, number):
    at = choose(stream, number, inner=True)
    return None if at is None else with_member(stream, at, "seq", number % at)


@mutation("R5.2.1-2")
def the_start_is_not_0(stream, number):
    return with_member(stream, 0, "seq", 1 + number)


@mutation("R5.2.1-6")
def seq_over_2_53(stream, number):
    at = choose(stream, number, inner=True)
    return None if at is None else with_member(stream, at, "seq", 2**53 + 1 + number)


def as_bytes(stream: Stream, at: int | None, data: Callable[[str], bytes]) -> tuple[list[Any], int | None] | None:
    """The stream with the bytes of one event made from its JSON."""
    return None if at is None else ([*stream[:at], data(line(stream[at])), *stream[at + 1 :]], at)


@mutation("R5.2-4")
def type_wrong(stream, number):
    at = choose(stream, number)
    kind = stream[at]["type"]
    item = {**stream[at], "type": (None, 7, {}, False)[number % 4]}
    return [*stream[:at], sse(line(item), kind), *stream[at + 1 :]], at


@mutation("R5.2-4")
def type_left_out(stream, number):
    at = choose(stream, number)
    item = {key: value for key, value in stream[at].items() if key != "type"}
    return [*stream[:at], sse(line(item), stream[at]["type"]), *stream[at + 1 :]], at


@mutation("R5.2-5")
def another_event_line(stream, number):
    return as_bytes(stream, choose(stream, number), lambda text: sse(text, "no.such.event"))


@mutation("R5.2-5")
def another_type(stream, number):
    at = choose(stream, number, inner=True)
    if at is None:
        return None
    return [*stream[:at], sse(line({**stream[at], "type": "no.such"}), stream[at]["type"]), *stream[at + 1 :]], at


@mutation("R5.2-5")
def no_event_line(stream, number):
    return as_bytes(stream, choose(stream, number), sse)


# The bytes


@mutation("R5.1-3")
def json_cut(stream, number):
    at = choose(stream, number)
    return as_bytes(stream, at, lambda text: sse(text[: -1 - number % 9], stream[at]["type"]))


@mutation("R5.1-3")
def json_in_an_array(stream, number):
    at = choose(stream, number)
    return as_bytes(stream, at, lambda text: sse(f"[{text}]", stream[at]["type"]))


@mutation("R5.1-3")
def json_twice(stream, number):
    at = choose(stream, number)
    return as_bytes(stream, at, lambda text: sse(text + text, stream[at]["type"]))


@mutation("R5.1-3")
def json_with_nan(stream, number):
    at = choose(stream, number)
    return as_bytes(stream, at, lambda text: sse(text[:-1] + ',"x":NaN}', stream[at]["type"]))


@mutation("R5.1-3")
def framed_twice(stream, number):
    at = choose(stream, number)
    return as_bytes(stream, at, lambda text: sse("data: " + text, stream[at]["type"]))


@mutation("R5.1-3")
def json_over_two_events(stream, number):
    at = choose(stream, number)
    kind = stream[at]["type"]
    return as_bytes(stream, at, lambda text: sse(text[:20], kind) + sse(text[20:], kind))


@mutation("R5.1-1")
def json_folded(stream, number):
    at = choose(stream, number)
    return as_bytes(stream, at, lambda text: sse(text.replace(',"seq"', ',\n  "seq"', 1), stream[at]["type"]))


@mutation("R5.1-1")
def two_data_lines(stream, number):
    at = choose(stream, number)
    return as_bytes(stream, at, lambda text: sse(text.replace(',"seq"', ',\ndata: "seq"', 1), stream[at]["type"]))


@mutation("R5.1-1")
def an_id_line(stream, number):
    at = choose(stream, number)
    return as_bytes(stream, at, lambda text: b"id: 5\n" + sse(text, stream[at]["type"]))


@mutation("R5.1-1")
def an_event_without_data(stream, number):
    at = choose(stream, number)
    return [*stream[:at], b"event: ping\n\n", *stream[at:]], at


@mutation("L-TAIL")
def no_blank_line_at_the_end(stream, number):
    return [*stream[:-1], written(stream[-1:])[:-1]], len(stream) - 1


@mutation("L-UTF8")
def invalid_utf_8(stream, number):
    at = choose(stream, number)
    return as_bytes(
        stream, at, lambda text: sse(text[:-1] + ',"x":"?"}', stream[at]["type"]).replace(b'"?"}', b'"\xff"}')
    )


@mutation("L-DUPLICATE")
def a_member_twice(stream, number):
    at = choose(stream, number)
    return as_bytes(stream, at, lambda text: sse(text[:-1] + f',"seq":{stream[at]["seq"]}}}', stream[at]["type"]))


@mutation("L-SURROGATE")
def half_a_surrogate_pair(stream, number):
    at = choose(stream, number, "content.delta")
    half = '"text":"\\ud83d'
    return as_bytes(stream, at, lambda text: sse(text.replace('"text":"', half, 1), stream[at]["type"]))


# Members


def without(requirement: str, kind: str, *names: str) -> None:
    for name in names:

        def left_out(stream: Stream, number: int, name: str = name) -> Any:
            return with_member(stream, choose(stream, number, kind), name)

        def wrong(stream: Stream, number: int, name: str = name) -> Any:
            return with_member(stream, choose(stream, number, kind), name, (None, [1], {"x": 1}, False)[number % 4])

        MUTATIONS.append((f"{kind}_without_{name}", requirement, left_out))
        if name != "delta":
            MUTATIONS.append((f"{kind}_with_a_wrong_{name}", requirement, wrong))


without("R5.3.1-3", "stream.start", "model", "created")
without("R5.3.2-1", "content.delta", "index", "role", "delta")
without("R5.3.3-1", "content.stop", "index", "stop_reason")
without("R5.3.4-1", "tool.call", "index", "id", "name", "arguments")
without("R5.3.5-1", "usage", "input_tokens", "output_tokens")
without("R5.3.6-1", "error", "code", "message")


@mutation("R5.3.1-3")
def created_in_milliseconds(stream, number):
    return with_member(stream, 0, "created", 1_749_292_800_000 + number)


@mutation("R5.3.1-4")
def request_id_wrong(stream, number):
    return with_member(stream, (0, len(stream) - 1)[number % 2], "request_id", (None, 7, [])[number % 3])


@mutation("R5.3.7-3")
def request_id_not_that_of_the_start(stream, number):
    if "request_id" not in stream[0]:
        return None
    return with_member(stream, len(stream) - 1, "request_id", stream[0]["request_id"] + "x")


@mutation("R5.3.2-2")
def a_delta_without_text(stream, number):
    return with_member(
        stream, choose(stream, number, "content.delta"), "delta", ({}, {"text": None}, {"text": 1})[number % 3]
    )


@mutation("R5.3.3-2")
def an_unknown_stop_reason(stream, number):
    at = choose(stream, number, "content.stop")
    if at is None or any(i["type"] == "tool.call" and i["index"] == stream[at]["index"] for i in stream):
        return None
    return with_member(stream, at, "stop_reason", "stop_sequence")


@mutation("R4.8-1")
def a_call_that_stops_otherwise(stream, number):
    called = {item["index"] for item in stream if item["type"] == "tool.call"}
    places = [at for at, item in enumerate(stream) if item["type"] == "content.stop" and item["index"] in called]
    return with_member(stream, places[number % len(places)], "stop_reason", "end_turn") if places else None


@mutation("R5.3.4-4")
def arguments_that_are_no_json(stream, number):
    at = choose(stream, number, "tool.call")
    return with_member(stream, at, "arguments", ("", "{", "Vienna", "{}{}", "NaN")[number % 5])


@mutation("R5.3.6-2")
def an_unknown_error_code(stream, number):
    return with_member(stream, choose(stream, number, "error"), "code", "timeout")


# What one fault may bring with it, later in the stream or in the same event.
BESIDES = {"R5.1-1": {"R5.1-3"}, "R5.1-3": {"R5.1-1"}}
ANYWAY = {
    *("R4.8-1", "R5.2.1-1", "R5.2.1-3", "R5.3-2", "R5.3-5", "R5.3.1-1", "R5.3.1-2", "R5.3.4-2"),
    *("R5.3.5-3", "R5.3.6-3", "R5.3.7-2", "R5.4-1"),
}


@settings(max_examples=max(20, settings.default.max_examples // 5))
@given(steps=producing.streams(), number=st.integers(0, 11), seed=st.integers(0, 2**32))
def test_each_mutation_is_found(twins, steps, number, seed):
    with twins.python.active():
        data = producing.written(twins.python.package, steps)
    stream = envelopes(data)
    bodies = []
    for name, requirement, mutate in MUTATIONS:
        found = mutate(stream, number)
        if found is not None:
            bodies.append((name, requirement, written(found[0]), found[1]))
    reports = []
    for twin in (twins.python, twins.cython):
        with twin.active():
            from llmstream.conformance import check

            for cut in (False, True):
                ways = [splits.at_random(body, seed, 30) if cut else [body] for _, _, body, _ in bodies]
                reports.append([check(iter(chunks)) for chunks in ways])
            assert not any(check(body, strict=True).ok for _, _, body, _ in bodies)
    texts = [[report.to_json() for report in row] for row in reports]
    assert texts == [texts[0]] * 4
    for (name, requirement, _, place), report in zip(bodies, reports[0], strict=True):
        hits = [violation for violation in report.violations if violation.requirement == requirement]
        assert hits, name
        assert place is None or any(violation.event == place for violation in hits), name
        others = {violation.requirement for violation in report.violations} - {requirement}
        assert others <= ANYWAY | BESIDES.get(requirement, set()), name


def envelopes(data: list[bytes]) -> Stream:
    return [json.loads(event.decode().split("\n")[1].removeprefix("data: ")) for event in data]


def test_the_mutations_break_the_good_stream_they_are_made_from(twins):
    """Each of them applies to this stream or to that with an error, so none is skipped everywhere."""
    steps: list[tuple[str, dict[str, Any]]] = [
        ("StreamStart", {"model": "m", "created": 1, "request_id": "r"}),
        ("ContentDelta", {"text": "a"}),
        ("ContentDelta", {"text": "b", "index": 1}),
        ("ToolCall", {"id": "c", "name": "f", "arguments": "{}", "index": 2}),
        ("ContentStop", {"stop_reason": "end_turn", "index": 0}),
        ("ContentStop", {"stop_reason": "end_turn", "index": 1}),
        ("ContentStop", {"stop_reason": "tool_use", "index": 2}),
        ("Usage", {"input_tokens": 1, "output_tokens": 1}),
        ("StreamEnd", {"request_id": "r"}),
    ]
    failed = [*steps[:4], ("StreamError", {"code": "overloaded", "message": "m"}), ("StreamEnd", {})]
    with twins.cython.active():
        from llmstream.conformance import check

        for name, requirement, mutate in MUTATIONS:
            applied = 0
            for source in (steps, failed):
                data = producing.written(twins.cython.package, source)
                assert check(b"".join(data), strict=True).ok
                stream = envelopes(data)
                for number in range(12):
                    found = mutate(stream, number)
                    if found is not None:
                        applied += 1
                        assert requirement in [v.requirement for v in check(written(found[0])).violations], name
            assert applied, name
