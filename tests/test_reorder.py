"""Events put back in the order of their numbers (draft, section 5.2.1)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import drafts


def delta(llmstream: Any, seq: int | None, text: str = "") -> Any:
    return llmstream.ContentDelta(text=text or f"t{seq}", seq=seq)


def run(llmstream: Any, numbers: Any, window: int = 64) -> tuple[list[int | None], Any]:
    from llmstream.reordering import ReorderBuffer

    buffer = ReorderBuffer(window)
    found = [event for seq in numbers for event in buffer.push(delta(llmstream, seq))]
    return [event.seq for event in found + buffer.close()], buffer


def test_in_order_nothing_waits(llmstream):
    """R5.2.1-4."""
    from llmstream.reordering import ReorderBuffer

    buffer = ReorderBuffer()
    for seq in range(100):
        assert [event.seq for event in buffer.push(delta(llmstream, seq))] == [seq]
    assert buffer.close() == []
    assert (buffer.gaps, buffer.late, buffer.repeated) == ([], 0, 0)


def test_out_of_order(llmstream):
    """R5.2.1-4: seq is the canonical order of buffered events."""
    from llmstream.reordering import reorder

    arrived = [delta(llmstream, seq) for seq in (1, 0, 4, 3, 2, 5)]
    found = reorder(iter(arrived), window=4)
    assert "".join(event.text for event in found) == "t0t1t2t3t4t5"


def test_a_lost_event_is_waited_for_and_given_up(llmstream):
    """R5.2.1-3."""
    from llmstream.reordering import ReorderBuffer

    buffer = ReorderBuffer(3)
    assert len(buffer.push(delta(llmstream, 0))) == 1
    for seq in (2, 3, 4):
        assert buffer.push(delta(llmstream, seq)) == []
    assert [event.seq for event in buffer.push(delta(llmstream, 6))] == [2, 3, 4]
    assert buffer.gaps == [(1, 1)]
    assert [event.seq for event in buffer.close()] == [6]
    assert buffer.gaps == [(1, 1), (5, 5)]


def test_late_and_repeated_events_are_dropped_and_counted(llmstream):
    """R5.2.1-1."""
    found, buffer = run(llmstream, [0, 0, 2, 2, 3, 4, 1, 3], window=2)
    assert found == [0, 2, 3, 4]
    assert buffer.gaps == [(1, 1)]
    assert buffer.late == 1
    assert buffer.repeated == 3


def counts(buffer: Any) -> tuple[int, int]:
    return buffer.late, buffer.repeated


def test_late_beyond_the_noted_gaps(llmstream):
    """More runs are given up than gaps are listed: what comes after them is still late, and only once."""
    evens = range(0, 2 * 3000, 2)
    _, buffer = run(llmstream, evens, window=1)
    assert len(buffer.gaps) == 1000
    for seq in range(1, 2 * 2999, 2):
        assert buffer.push(delta(llmstream, seq)) == []
    assert counts(buffer) == (2999, 0)
    for seq in range(2 * 2999):
        assert buffer.push(delta(llmstream, seq)) == []
    assert counts(buffer) == (2999, 2 * 2999)


def test_late_where_an_event_without_a_number_may_be_the_missing_one(llmstream):
    """A-4: no gap is noted, and yet the number was given up."""
    _, buffer = run(llmstream, [0, None, 2, 3, 1, 1, 2], window=1)
    assert buffer.gaps == []
    assert counts(buffer) == (1, 2)


def test_a_late_event_that_comes_twice_is_late_once(llmstream):
    _, buffer = run(llmstream, [0, 9, 10, 5, 4, 6, 5, 1, 8, 8, 7, 3, 2, 2, 9, 0], window=1)
    assert buffer.gaps == [(1, 8)]
    assert counts(buffer) == (8, 5)


def test_repeated_events_take_no_place_among_those_that_wait(llmstream):
    """They are counted when they are pushed, and the missing event is not given up for them."""
    from llmstream.reordering import ReorderBuffer

    buffer = ReorderBuffer(2)
    assert [buffer.push(delta(llmstream, seq)) for seq in (1, 1, 1, 2, 2, 1)] == [[]] * 6
    assert counts(buffer) == (0, 4)
    assert [event.seq for event in buffer.push(delta(llmstream, 0))] == [0, 1, 2]
    assert buffer.close() == []
    assert (buffer.gaps, *counts(buffer)) == ([], 0, 4)


def test_what_is_remembered_is_bounded(llmstream, monkeypatch):
    """Of forgotten runs each event counts as late; above them the counts stay exact."""
    from llmstream import reordering

    monkeypatch.setattr(reordering, "_MAX_RUNS", 3)
    _, buffer = run(llmstream, range(0, 20, 2), window=1)  # given up: 1, 3, ... 17; remembered: 13, 15, 17
    assert counts(buffer) == (0, 0)
    for seq, found in ((11, (1, 0)), (2, (2, 0)), (12, (2, 1)), (13, (3, 1)), (13, (3, 2)), (18, (3, 3))):
        assert buffer.push(delta(llmstream, seq)) == []
        assert counts(buffer) == found


@given(numbers=st.lists(st.one_of(st.integers(0, 30), st.none()), max_size=60), window=st.integers(1, 6))
def test_the_counts_are_as_they_are_defined(twins, numbers, window):
    """Repeated: its number was pushed before. Late: it was not, and the turn of its number has passed."""
    with twins.python.active():
        from llmstream.reordering import ReorderBuffer

        package = twins.python.package
        buffer = ReorderBuffer(window)
        pushed: set[int] = set()
        passed = late = repeated = 0
        for seq in numbers:
            if seq in pushed:
                repeated += 1
            elif seq is not None:
                late += seq < passed
                pushed.add(seq)
            for event in buffer.push(delta(package, seq)):
                if event.seq is not None:
                    passed = event.seq + 1
            assert counts(buffer) == (late, repeated)
        buffer.close()
        assert counts(buffer) == (late, repeated)


def test_the_first_of_repeated_events_counts(llmstream):
    from llmstream.reordering import reorder

    arrived = [delta(llmstream, 0), delta(llmstream, 2, "first"), delta(llmstream, 2, "second"), delta(llmstream, 1)]
    assert [event.text for event in reorder(arrived)] == ["t0", "t1", "first"]


def test_events_without_a_number_leave_at_once(llmstream):
    """A-4: they may be the missing ones, so no gap is noted."""
    found, buffer = run(llmstream, [0, None, 2, 3])
    assert found == [0, None, 2, 3]
    assert buffer.gaps == []
    found, buffer = run(llmstream, [0, None, 1, 3])
    assert found == [0, None, 1, 3]
    assert buffer.gaps == [(2, 2)]
    found, buffer = run(llmstream, [0, 2, None, 4])
    assert found == [0, None, 2, 4]


def test_a_stream_that_does_not_begin_with_0(llmstream):
    found, buffer = run(llmstream, [7, 6, 5])
    assert found == [5, 6, 7]
    assert buffer.gaps == [(0, 4)]


def test_numbers_near_the_limit(llmstream):
    """R5.2.1-5: exact up to 2^63 - 1."""
    found, buffer = run(llmstream, [0, 2**63 - 1, 2**63 - 2, 1])
    assert found == [0, 1, 2**63 - 2, 2**63 - 1]
    assert buffer.gaps == [(2, 2**63 - 3)]


@pytest.mark.parametrize("window", [0, -1, 2**63, 1.5, "1", None, True])
def test_a_bad_window(llmstream, window):
    from llmstream.reordering import ReorderBuffer, reorder

    with pytest.raises((TypeError, ValueError)):
        ReorderBuffer(window)
    with pytest.raises((TypeError, ValueError)):
        next(reorder([], window))


@given(
    numbers=st.lists(st.one_of(st.integers(0, 40), st.none()), max_size=60),
    window=st.integers(1, 8),
)
def test_order_and_bounds_hold_for_any_arrival(twins, numbers, window):
    """Numbers rise, nothing comes twice, no more than the window waits, and every event is accounted for."""
    with twins.python.active():
        from llmstream.reordering import ReorderBuffer

        package = twins.python.package
        buffer = ReorderBuffer(window)
        found: list[Any] = []
        for pushed, seq in enumerate(numbers, 1):
            found += buffer.push(delta(package, seq))
            waiting = pushed - len(found) - buffer.late - buffer.repeated
            assert 0 <= waiting <= window
        found += buffer.close()
        known = [event.seq for event in found if event.seq is not None]
        assert known == sorted(set(known))
        assert len(found) + buffer.late + buffer.repeated == len(numbers)
        lost = {number for first, last in buffer.gaps for number in range(first, last + 1)}
        assert not lost & set(known)
        if None not in numbers and known:
            assert lost | set(known) == set(range(max(known) + 1))


@given(order=st.permutations(range(20)))
def test_any_permutation_that_fits_the_window(twins, order):
    """R5.2.1-4."""
    with twins.python.active():
        found, buffer = run(twins.python.package, order, window=20)
        assert found == list(range(20))
        assert (buffer.gaps, buffer.late, buffer.repeated) == ([], 0, 0)


def test_with_a_parser_for_each_piece(llmstream):
    """Events of one stream that came over two connections."""
    from llmstream.reordering import reorder

    first = drafts.start() + drafts.delta(2, "b") + drafts.delta(4, "d")
    second = drafts.delta(1, "a") + drafts.delta(3, "c") + drafts.stop(5) + drafts.usage(6) + drafts.end(7)
    events = drafts.run(llmstream, first)[1] + drafts.run(llmstream, second)[1]
    found = list(reorder(events))
    assert [event.seq for event in found] == list(range(8))
    assert "".join(event.text for event in found if event.type == "content.delta") == "abcd"
