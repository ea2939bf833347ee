"""The engine, compiled: framing, envelopes, learned shapes, events.

Twin of ``_parser_py.py``: the same names in the same order and the same behaviour to the byte. What may vary between
the twins is only how often a learned shape is used.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport (
    PyBytes_AS_STRING,
    PyBytes_CheckExact,
    PyBytes_FromStringAndSize,
    PyBytes_GET_SIZE,
)
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memchr, memcmp, memcpy, memset

from . import _registry, fields, payload, rules
from .declaration import Declaration, declare
from .errors import EventTooLargeError, SSEError, UpstreamError

cdef extern from "Python.h":
    str PyUnicode_New(Py_ssize_t size, Py_UCS4 largest)
    void *PyUnicode_DATA(object text)
    str PyUnicode_FromOrdinal(int character)
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL

cdef extern from "_scan.h" nogil:
    unsigned SCAN_ESCAPE
    unsigned SCAN_HIGH
    unsigned SCAN_LONE
    const unsigned char *scan_line_end(const unsigned char *p, const unsigned char *end)
    int scan_utf8_valid(const unsigned char *p, const unsigned char *end)
    size_t scan_utf8_replace(const unsigned char *p, const unsigned char *end, unsigned char *out)
    size_t scan_unescape(const unsigned char *p, const unsigned char *end, unsigned char *out)
    size_t scan_utf8_count(const unsigned char *p, const unsigned char *end, unsigned *greatest)
    void scan_utf8_fill_1(const unsigned char *p, const unsigned char *end, unsigned char *out)
    void scan_utf8_fill_2(const unsigned char *p, const unsigned char *end, unsigned short *out)
    void scan_utf8_fill_4(const unsigned char *p, const unsigned char *end, unsigned int *out)

cdef extern from "_json.h" nogil:
    enum:
        JSON_STRING
        JSON_NUMBER
        JSON_TRUE
        JSON_FALSE
        JSON_NULL
        JSON_OBJECT
        JSON_OK
        JSON_INVALID
        JSON_TOO_DEEP
        JSON_NOT_UTF8
        JSON_NOT_OBJECT
        JSON_INTEGER_NO
        JSON_INTEGER_EXACT
        JSON_SPANS
        JSON_PLAIN_KEY
    ctypedef struct json_edge:
        const unsigned char *key
        unsigned short key_length
        short item
        short leaf
        short child
        unsigned long long leaves_below
        unsigned long long edges_below
    ctypedef struct json_node:
        unsigned short first_edge
        unsigned short edge_count
        unsigned char is_array
    void json_link(json_node *node, json_edge *edges)
    ctypedef struct json_leaf:
        size_t start
        size_t length
        unsigned char kind
        unsigned char flags
    ctypedef struct json_span:
        size_t start
        size_t length
        short leaf
        unsigned char kind
    ctypedef struct json_result:
        json_leaf leaves[64]
        unsigned long long found
        unsigned long long duplicates
        json_span spans[56]
        int span_count
        int spans_lost
        unsigned flags
    int json_walk(
        const unsigned char *data,
        size_t length,
        const json_node *nodes,
        const json_edge *edges,
        unsigned max_depth,
        unsigned char *levels,
        json_result *out,
    )
    int json_integer(const unsigned char *p, size_t length, long long *value)

cdef extern from "_shape.h" nogil:
    enum:
        SLOT_SEQ
        SLOT_TEXT
        SLOT_INDEX
        SLOT_CALL
        SLOT_INPUT
        SLOT_OUTPUT
        SLOT_ID
        SLOT_ANY_STRING
        SLOT_ANY_NUMBER
        SLOT_SPACE
        SHAPE_LITERALS
        SHAPE_SPANS
    ctypedef struct shape_span:
        unsigned gap
        unsigned value
        unsigned char kind
        unsigned char fixed
    ctypedef struct shape:
        int form
        int id_spaced
        int bare
        unsigned data_at
        unsigned end_at
        shape_span *spans
        unsigned char *bytes
    ctypedef struct shape_found:
        const unsigned char *data
        const unsigned char *data_end
        const unsigned char *content
        size_t content_size
        unsigned content_flags
        const unsigned char *id
        size_t id_size
        bint has_id
        long long index
        long long call
        long long input_tokens
        long long output_tokens
    shape *shape_new(int span_count, unsigned size)
    void shape_free(shape *known)
    int shape_compile(shape *known)
    int shape_widen(shape *known, const shape *other)
    const unsigned char *shape_apply(
        shape *known,
        const unsigned char *p,
        const unsigned char *end,
        unsigned long long seq,
        shape_found *found,
    )

ctypedef const unsigned char *pointer

implementation = "cython"

cdef size_t DEFAULT_MAX_EVENT_SIZE = 16 * 2**20
cdef unsigned DEFAULT_MAX_DEPTH = 4096
cdef long long MAX_RETRY = 2**63 - 1
cdef size_t MAX_STRAY = 64 * 1024
cdef Py_ssize_t MAX_BLANKS = 1024
cdef int MAX_SWITCHES = 4  # a dialect found may itself have to find out which
cdef Py_ssize_t MAX_PENDING = 64
cdef Py_ssize_t MAX_PENDING_SIZE = 64 * 1024
cdef size_t SHORT_TEXT = 128
cdef size_t KEPT_CAPACITY = 16 * 1024  # a buffer over this is given back after its event

cdef enum:
    MAX_SHAPES = 4
    MANY_EVENTS = 4  # of one payload: they share a copy of it, lest each that is detached makes its own
    LEVELS = 513  # bytes for the default depth, on the stack

cdef unsigned long long MAX_SEQUENCE = rules.MAX_SEQUENCE
# Rules that events are read by: as C integers, so that a member in order costs no look-up of its rule.
cdef int BAD_REQUEST_ID = rules.BAD_REQUEST_ID
cdef int BAD_MODEL = rules.BAD_MODEL
cdef int BAD_CREATED = rules.BAD_CREATED
cdef int BAD_DELTA_INDEX = rules.BAD_DELTA_INDEX
cdef int BAD_STOP_INDEX = rules.BAD_STOP_INDEX
cdef int BAD_STOP_REASON = rules.BAD_STOP_REASON
cdef int BAD_CALL_INDEX = rules.BAD_CALL_INDEX
cdef int BAD_CALL_ID = rules.BAD_CALL_ID
cdef int BAD_CALL_NAME = rules.BAD_CALL_NAME
cdef int BAD_ARGUMENTS = rules.BAD_ARGUMENTS
cdef int BAD_INPUT_TOKENS = rules.BAD_INPUT_TOKENS
cdef int BAD_OUTPUT_TOKENS = rules.BAD_OUTPUT_TOKENS
cdef int BAD_CODE = rules.BAD_CODE
cdef int BAD_MESSAGE = rules.BAD_MESSAGE

include "_events.pxi"
include "_framing.pxi"
include "_envelope.pxi"


cdef str _valid(pointer data, size_t size):
    """UTF-8 that was found valid as a str: short text faster than the interpreter's decoder, which has to check."""
    cdef unsigned greatest = 0
    cdef unsigned int character = 0
    cdef size_t count
    cdef str text
    if size > SHORT_TEXT:
        return PyUnicode_DecodeUTF8(<const char *> data, <Py_ssize_t> size, NULL)
    count = scan_utf8_count(data, data + size, &greatest)
    if count <= 1:
        scan_utf8_fill_4(data, data + size, &character)
        return PyUnicode_FromOrdinal(<int> character) if count else ""
    if greatest < 0xC4:
        text = PyUnicode_New(<Py_ssize_t> count, 127 if greatest < 0x80 else 255)
        scan_utf8_fill_1(data, data + size, <unsigned char *> PyUnicode_DATA(text))
    elif greatest < 0xF0:
        text = PyUnicode_New(<Py_ssize_t> count, 0xFFFF)
        scan_utf8_fill_2(data, data + size, <unsigned short *> PyUnicode_DATA(text))
    else:
        text = PyUnicode_New(<Py_ssize_t> count, 0x10FFFF)
        scan_utf8_fill_4(data, data + size, <unsigned int *> PyUnicode_DATA(text))
    return text


cdef inline str _text(pointer data, size_t size, unsigned flags, Bytes *scratch):
    """The body of a JSON string as a str."""
    cdef str text
    if flags & SCAN_ESCAPE:
        bytes_reserve(scratch, size)
        return _valid(scratch.data, scan_unescape(data, data + size, scratch.data))
    if flags & SCAN_HIGH:
        return _valid(data, size)
    if size <= 1:
        return PyUnicode_FromOrdinal(data[0]) if size else ""
    text = PyUnicode_New(<Py_ssize_t> size, 127)
    memcpy(PyUnicode_DATA(text), data, size)
    return text


include "_values.pxi"


cdef int _add_span(
    shape_span *spans, int count, size_t *place, size_t start, size_t length, int kind
) noexcept:
    spans[count].gap = <unsigned> (start - place[0])
    spans[count].value = <unsigned> length
    spans[count].kind = <unsigned char> kind
    spans[count].fixed = kind >= SLOT_ANY_STRING
    place[0] = start + length
    return count + 1


cdef frozenset _EVENT_KINDS = frozenset(_EVENT_CLASSES.values())


@cython.final
cdef class Parser:
    """Reads a stream of an LLM's answer, in chunks cut anywhere, as the events of draft-spk-agentproto-llm-stream-00.

    ``dialect``          "llm-stream" (the draft), the name of a vendor's format, "auto", or a Dialect class
    ``strict``           raise at the first error instead of recording it
    ``max_event_size``   bytes that one event may hold
    ``max_depth``        nesting of JSON that is read
    ``errors``           "replace" (invalid UTF-8 becomes U+FFFD, a warning) or "strict" (SSEError)
    ``shapes``           learn the form of events that repeat; the results are the same without

    Lenient, a parser raises for no bytes: it delivers all that can be read and records every deviation in
    ``violations``. Strict, it raises a subclass of LLMStreamError at the first one; ``error.events`` are the events
    before it, and the parser is closed. ``feed`` on a closed parser raises ValueError.
    What a dialect or its framing raises is a violation; any other exception, as an interrupt, closes the parser.
    """

    cdef Framer _framer
    cdef unsigned _depth
    cdef bint _errors_strict
    cdef bint _strict
    cdef bint _use_shapes
    cdef bint _busy
    cdef bint _closed
    cdef bint _complete
    cdef bint _in_tail
    cdef bint _torn  # whether the bytes ended within something that no event tells
    cdef bint _started
    cdef bint _skip_version
    cdef bint _too_many
    cdef bint _detecting
    cdef bint _undecided
    cdef bint _untold
    cdef bint _alternatives
    cdef int _switches
    cdef int _state
    cdef long long _seq
    cdef unsigned long long _next_seq
    cdef unsigned long long _unread
    cdef unsigned long long _number
    cdef unsigned long long _offset
    cdef unsigned long long _after_end
    cdef unsigned long long _violation_count
    cdef unsigned long long _error_count
    cdef unsigned long long _hits
    cdef unsigned _misses
    cdef unsigned _tries
    cdef long long _index  # the last fast delta's
    cdef long long _open_index  # of a block known to be open
    cdef shape *_shapes[MAX_SHAPES]
    cdef int _shape_count
    cdef bytes _bare_name  # of the frames that shapes were learned from
    cdef Bytes _scratch
    cdef Bytes _replaced
    cdef Bytes _texts
    cdef bint _texts_high
    cdef bint _text_only
    cdef bint _keeps_others  # beside the text, events of other kinds
    cdef Py_ssize_t _delta_count  # in place of events
    cdef Py_ssize_t _usage_count
    cdef unsigned char *_levels  # for a depth that does not fit the stack
    cdef bytes _chunk  # what is being read
    cdef pointer _chunk_begin
    cdef bint _in_place  # the payload under way lies in the chunk
    cdef bytes _payload_bytes  # else a copy of it, once one is needed
    cdef list _out
    cdef dict _blocks  # index -> whether it was stopped
    cdef set _call_ids
    cdef str _request_id
    cdef str _type_name  # of an event that is none of the seven
    cdef Usage _usage
    cdef StreamError _error
    cdef list _violations
    cdef list _gaps
    cdef object _dialect
    cdef bytes _end_mark
    cdef object _framing
    cdef unsigned long long _framing_at  # where its first byte lies in the stream
    cdef bint _framing_failed
    cdef bint _framing_threw  # what a framing of others throws is the last that is read of it
    cdef list _pending
    cdef Py_ssize_t _pending_size
    cdef bytes _head
    cdef Tables _tables

    def __cinit__(self):
        memset(&self._framer, 0, sizeof(Framer))
        self._framer.retry = -1
        framer_reset(&self._framer)

    def __dealloc__(self):
        cdef int at
        framer_free(&self._framer)
        bytes_free(&self._scratch)
        bytes_free(&self._replaced)
        bytes_free(&self._texts)
        free(self._levels)
        for at in range(self._shape_count):
            shape_free(self._shapes[at])

    def __init__(
        self,
        dialect="llm-stream",
        *,
        strict=False,
        max_event_size=DEFAULT_MAX_EVENT_SIZE,
        max_depth=DEFAULT_MAX_DEPTH,
        errors="replace",
        shapes=True,
    ):
        if self._framer.max_event_size:
            raise TypeError("a parser cannot be initialised twice")
        self._framer.max_event_size = _size("max_event_size", max_event_size)
        self._framer.watch_stray = True
        self._depth = <unsigned> min(_size("max_depth", max_depth), <size_t> 2**31)
        if self._depth // 8 + 1 > LEVELS:
            self._levels = <unsigned char *> malloc(self._depth // 8 + 1)
            if self._levels == NULL:
                raise MemoryError()
        self._errors_strict = _errors(errors)
        self._strict = bool(strict)
        self._use_shapes = bool(shapes)
        self._seq = -1
        self._index = -1
        self._open_index = -1
        self._take(_registry.resolve(dialect))
        if self._dialect is not None and self._dialect.framings:
            self._head = b""

    cdef int _take(self, dialect) except -1:
        self._dialect = dialect
        self._detecting = dialect is not None and hasattr(dialect, "detect")
        self._end_mark = None
        self._alternatives = False
        if dialect is None:
            declaration = _ENVELOPE
        else:
            self._alternatives = bool(dialect.alternatives)
            if dialect.end_mark is not None:
                self._end_mark = dialect.end_mark.encode()
            declaration = declare(dialect.deltas)
        self._tables = _tables_of(declaration)
        return 0

    def __reduce__(self):
        raise TypeError("a parser cannot be copied or pickled")

    # What a parser knows

    @property
    def dialect(self):
        """The name of the dialect; of the one found, once ``auto`` has decided."""
        return "llm-stream" if self._dialect is None else self._dialect.name

    @property
    def alternatives(self):
        """Whether an index counts alternative answers, of which number 0 is the primary one, and not blocks of one."""
        return self._alternatives

    @property
    def complete(self):
        """Whether the stream ended as its protocol says."""
        return self._complete

    @property
    def error(self):
        """The first error that the endpoint reported in the stream."""
        return self._error

    @property
    def usage(self):
        """The last token counts."""
        return self._usage

    @property
    def usage_count(self):
        """How many times token counts were given."""
        return self._usage_count

    @property
    def gaps(self):
        """The first and the last sequence number of every run of lost events (draft, section 5.2.1)."""
        return [] if self._gaps is None else list(self._gaps)

    @property
    def next_seq(self):
        """The sequence number that the next event should have."""
        return self._next_seq

    @property
    def shape_hits(self):
        """How many events were read by a learned shape."""
        return self._hits

    @property
    def last_event_id(self):
        """The last event id of the SSE layer."""
        return bytes_copy(&self._framer.committed_id).decode("utf-8", "replace")

    @property
    def retry(self):
        """The latest reconnection time in milliseconds, at most 2**63 - 1."""
        return None if self._framer.retry < 0 else self._framer.retry

    @property
    def violations(self):
        """The first 1,000 deviations, in the order they were found."""
        if self._violations is None:
            return []
        found = list(self._violations)
        if self._after_end > 1:
            # One violation for all of them, so its count is known last.
            words = _words(rules.AFTER_END, 1)
            for at, violation in enumerate(found):
                if violation.message == words:
                    found[at] = self._violation(
                        rules.AFTER_END, violation.event, violation.offset, self._after_end
                    )
        return found

    @property
    def violation_count(self):
        """How many deviations there were in all."""
        return self._violation_count

    @property
    def error_count(self):
        """How many of them were errors, and not warnings."""
        return self._error_count

    # Feeding

    @cython.critical_section
    def feed(self, chunk):
        """The events that are complete with this chunk (any contiguous bytes-like object)."""
        cdef bytes data = _as_bytes(chunk)
        self._begin()
        try:
            if self._head is not None:
                data = self._sniff(data)
            self._bytes(data)
        except BaseException:
            self._abandon()
            raise
        finally:
            self._end()
        return self._take_out()

    @cython.critical_section
    def feed_payload(self, data, event=None):
        """The events of one payload that came without SSE around it; ``event`` names it where its framing does."""
        cdef bytes source = _as_bytes(data)
        if event is not None:
            event = fields.text("event", event)
        self._begin()
        try:
            self._frame(event, source, self._framer.offset)
            self._framer.offset += <unsigned long long> len(source)
        except BaseException:
            self._abandon()
            raise
        finally:
            self._end()
        return self._take_out()

    @cython.critical_section
    def feed_text(self, chunk):
        """Only the text of this chunk: of the primary answer, in order of arrival."""
        if self._strict or self._errors_strict:
            # An error carries the events before it, so they are needed.
            return self._text_of(self.feed(chunk))
        text = self._feed_text(_as_bytes(chunk), False)
        self._out = None
        return text

    @cython.critical_section
    def feed_summary(self, chunk):
        """As ``feed``, with the fragments of this chunk put together: its text as ``feed_text`` gives it, how many
        ContentDeltas there were, and the events of other kinds, but no Usage, of which ``usage`` is the last."""
        if self._strict or self._errors_strict:
            # As above.
            return self._summary_of(self.feed(chunk))
        text = self._feed_text(_as_bytes(chunk), True)
        return text, self._delta_count, self._take_out()

    cdef str _feed_text(self, bytes data, bint keeps_others):
        self._begin()
        self._text_only = True
        self._keeps_others = keeps_others
        self._texts_high = False
        self._delta_count = 0
        try:
            if self._head is not None:
                data = self._sniff(data)
            self._bytes(data)
            return _text(
                self._texts.data, self._texts.size, SCAN_HIGH if self._texts_high else 0, NULL
            )
        except BaseException:
            if self._texts.size > 0:
                self._complete = False
            self._abandon()
            raise
        finally:
            self._text_only = self._keeps_others = False
            bytes_clear(&self._texts)
            self._end()

    @cython.critical_section
    def close(self):
        """Ends the stream and returns the events that were due. Idempotent. In strict mode a stream that is cut raises
        IncompleteStreamError."""
        if self._closed:
            return []
        self._begin()
        self._seq = -1
        cdef bytes head
        try:
            head, self._head = self._head, None
            if head is not None:
                framer_begin_at(&self._framer, self._framing_at)
                self._bytes(head)
            self._tail()
            self._close_framing()
            in_band = self._error is not None
            self._stray()
            self._offset = self._framer.offset
            self._forget_payload()
            if self._detecting and self._error is None:
                self._give_up()
            if self._dialect is not None and not self._detecting:
                self._accept(self._call(self._dialect.finish, (False,)), NULL, 0)
            self._finish(in_band)
        except BaseException:
            self._abandon()
            raise
        finally:
            self._end()
        out = self._take_out()
        self._closed = True
        return out

    cdef int _begin(self) except -1:
        if self._closed:
            raise ValueError("the parser is closed")
        if self._busy:
            raise RuntimeError("the parser is being fed already")
        self._busy = True
        self._out = []
        return 0

    cdef int _abandon(self) except -1:
        """After an exception nothing more is read: strict ends so, and what an interrupt broke off is lost."""
        self._closed = True
        if self._out:
            self._complete = False
        self._out = None
        return 0

    cdef int _end(self) except -1:
        self._busy = False
        self._chunk = None
        self._payload_bytes = None
        return 0

    cdef inline list _take_out(self):
        cdef list out = self._out
        self._out = None
        return out

    cdef str _text_of(self, list events):
        texts = []
        for event in events:
            if type(event) is ContentDelta and not (self._alternatives and event.index):
                texts.append(event.text)
        return "".join(texts)

    def _summary_of(self, list events):
        """Events as ``feed_summary`` tells them."""
        others = [event for event in events if type(event) is not ContentDelta and type(event) is not Usage]
        count = sum([type(event) is ContentDelta for event in events])
        return self._text_of(events), count, others

    cdef int _bytes(self, bytes data) except -1:
        if self._framing is not None or self._framing_threw:
            if not self._framing_threw:
                self._frames(self._framing.feed, (data,))
            self._framer.offset += <unsigned long long> len(data)
            return 0
        cdef Framer *f = &self._framer
        cdef pointer begin = <pointer> PyBytes_AS_STRING(data)
        cdef pointer p = begin
        cdef pointer end = begin + PyBytes_GET_SIZE(data)
        cdef pointer after
        cdef int found
        self._chunk = data
        self._chunk_begin = begin
        framer_begin(f, &p, end)
        while p < end:
            if self._shape_count and not f.carried and not f.skipping:
                self._in_place = True
                after = self._match(p, end, False)
                if after != NULL:
                    p = after
                    continue
            found = framer_next(f, begin, &p, end)
            if found >= FRAMER_BLOCK:
                self._block(found)
        f.offset += <unsigned long long> (end - begin)
        return 0

    cdef bytes _sniff(self, bytes data):
        """Tells the framing by the first byte that is no blank. Blank lines before it mean nothing in any framing;
        blanks before it on its line are held, since in SSE they do."""
        cdef bytes head = self._head + data
        cdef bytes body
        cdef Py_ssize_t at, first, line
        if self._framing_at == 0 and len(head) < 3 and b"\xef\xbb\xbf".startswith(head):
            self._head = head
            return b""
        at = 3 if self._framing_at == 0 and head.startswith(b"\xef\xbb\xbf") else 0
        body = head[at:].lstrip(b" \t\r\n")
        first = len(head) - len(body)
        line = max(head.rfind(b"\n", 0, first), head.rfind(b"\r", 0, first)) + 1 or at
        self._framing_at += line
        if not body and len(head) - line <= MAX_BLANKS:
            self._head = head[line:]
            return b""
        self._head = None
        factory = None
        if body:
            factory = self._dialect.framings.get(<unsigned char> body[0])
        if factory is None:
            framer_begin_at(&self._framer, self._framing_at)
            return head[line:]
        self._framing_at += first - line
        self._framer.offset = self._framing_at
        try:
            self._framing = factory(self._framer.max_event_size)
        except Exception:
            self._framing_thrown()
        return body

    cdef int _frames(self, method, tuple arguments) except -1:
        too_large = None
        try:
            frames = method(*arguments)
        except EventTooLargeError as error:
            frames, too_large = error.events, error
        except Exception:
            return self._framing_thrown()
        framing = self._framing
        reports, framing.reports = framing.reports, []
        cdef Py_ssize_t at = 0
        for frame in frames:
            # Between the frames around it, however the chunks were cut.
            while at < len(reports) and reports[at][0] < frame.offset:
                self._framing_fault(rules.FRAMING, reports[at][0], reports[at][1])
                at += 1
            self._frame(frame.event, frame.data, self._framing_at + frame.offset)
        for offset, reason in reports[at:]:
            self._framing_fault(rules.FRAMING, offset, reason)
        if too_large is not None:
            self._framing_failed = True
            self._offset = self._framing_at + (too_large.offset or 0)
            self._seq = -1
            if self._state == STATE_ENDED:
                self._ended()
            else:
                self._record(rules.TOO_LARGE, self._framer.max_event_size)
            self._number += 1
        elif framing.broken and not self._framing_failed:
            self._framing_failed = True
            self._framing_fault(rules.FRAMING, framing.fault_offset, framing.reason)
        return 0

    cdef int _framing_thrown(self) except -1:
        self._framing_failed = self._framing_threw = True
        return self._framing_fault(rules.FRAMING, self._framer.offset - self._framing_at, "its reader failed")

    cdef int _framing_fault(self, int rule, offset, reason) except -1:
        self._offset = self._framing_at + offset
        self._seq = -1
        return self._record(rule, reason)

    cdef int _close_framing(self) except -1:
        if self._framing_threw:
            self._torn = True
        if self._framing is None or self._framing_threw:
            return 0
        self._frames(self._framing.close, ())
        self._torn = self._framing_failed or self._framing.unfinished
        if self._framing.unfinished and not self._framing_failed:
            self._framing_fault(
                rules.FRAME_CUT, self._framing.fault_offset, self._framing.reason
            )
        return 0

    cdef int _frame(self, event, bytes data, offset) except -1:
        cdef bytes name = b"" if event is None else event.encode("utf-8", "replace")
        cdef pointer begin = <pointer> PyBytes_AS_STRING(data)
        self._in_place = True
        self._payload_bytes = None
        self._chunk = data
        self._chunk_begin = begin
        if self._shape_count and name == self._bare_name:
            self._offset = offset
            if self._match(begin, begin + len(data), True) != NULL:
                return 0
        self._payload(
            offset,
            <pointer> PyBytes_AS_STRING(name),
            <size_t> len(name),
            False,
            begin,
            <size_t> len(data),
            self._use_shapes,
        )
        return 0

    cdef int _block(self, int found) except -1:
        cdef Framer *f = &self._framer
        cdef pointer after
        self._offset = f.event_offset
        self._seq = -1
        if found == FRAMER_TOO_LARGE:
            if self._state == STATE_ENDED:
                self._ended()
            else:
                self._record(rules.TOO_LARGE, f.max_event_size)
                self._unread += 1
            self._settle()
            self._number += 1
            return 0
        self._in_place = f.block_in_place
        self._payload_bytes = None
        if not f.block_in_place and f.block_learnable and self._shape_count:
            # A carried event gets its one try now that it is complete.
            after = self._match(f.block_begin, f.block_end, False)
            if after == f.block_end:
                return 0
        self._payload(
            f.event_offset,
            f.block_name,
            f.block_name_size,
            True,
            f.block_data,
            f.block_size,
            f.block_learnable and self._use_shapes,
        )
        return 0

    cdef int _payload(
        self,
        unsigned long long offset,
        pointer name,
        size_t name_size,
        bint framed,
        pointer data,
        size_t size,
        bint learnable,
    ) except -1:
        """One payload, by the careful path."""
        self._offset = offset
        self._seq = -1
        if self._detecting:
            return self._detect(name, name_size, framed, data, size)
        cdef json_result result
        cdef unsigned long long before = self._violation_count
        cdef unsigned missed = self._misses
        cdef pointer bare = NULL
        cdef int learn  # the form by which a shape may be learned; -2: none
        if self._dialect is None:
            learn = self._envelope(name, name_size, framed, data, size, &result)
        else:
            learn = self._vendor(name, name_size, data, size, &result)
        self._settle()
        self._number += 1
        if learn != -2 and learnable and before == self._violation_count and not result.duplicates:
            if not framed:
                bare = data
            self._remember(learn, &result, missed, bare, size, name, name_size)
        return 0

    # Recording

    cdef Violation _violation(self, int rule, event, offset, detail):
        found = rules.RULES[rule]
        return Violation(found.requirement, found.severity, event, offset, _words(rule, detail))

    cdef int _record(self, int rule, detail=None) except -1:
        self._violation_count += 1
        if self._violations is None:
            self._violations = []
        if len(self._violations) < rules.MAX_VIOLATIONS:
            self._violations.append(self._violation(rule, self._number, self._offset, detail))
        if rules.RULES[rule].severity == "error":
            self._error_count += 1
            if self._strict:
                self._raise(
                    rules.RULES[rule].error, _message(rule, self._number, self._offset, detail)
                )
        return 0

    cdef int _raise(self, error, message) except -1:
        self._closed = True
        seq = None if self._seq < 0 else self._seq
        raise error(message, seq=seq, offset=self._offset, events=self._take_out())

    cdef int _settle(self) except -1:
        """After each event: an error in band ends a strict parser."""
        if self._strict and self._error is not None:
            self._closed = True
            raise UpstreamError(
                self._error.code or "",
                self._error.message or "",
                seq=self._error.seq,
                offset=self._offset,
                events=self._take_out(),
            )
        return 0

    cdef int _bad_utf8(self) except -1:
        if self._errors_strict:
            self._raise(SSEError, _message(rules.BAD_UTF8, self._number, self._offset))
        return self._record(rules.BAD_UTF8)

    cdef int _forget_payload(self) except -1:
        self._in_place = False
        self._payload_bytes = b""
        return 0

    cdef inline int _place(self, Event event, pointer data, size_t size) except -1:
        """Where an event's payload lies."""
        if self._in_place:
            event._source = self._chunk
            event._start = data - self._chunk_begin
        else:
            self._copy_payload(data, size)
            event._source = self._payload_bytes
        event._size = <Py_ssize_t> size
        return 0

    cdef int _copy_payload(self, pointer data, size_t size) except -1:
        if self._payload_bytes is None:
            self._payload_bytes = PyBytes_FromStringAndSize(<const char *> data, <Py_ssize_t> size)
        return 0

    cdef int _walk(
        self, pointer *data, size_t *size, Tables tables, unsigned depth, json_result *result
    ) except -1:
        """Walks a payload; one with invalid UTF-8 is replaced by its decoded form. Returns the walk's status."""
        cdef unsigned char stack[LEVELS]
        cdef unsigned char *levels = self._levels
        if levels == NULL:
            levels = stack
        cdef int status = json_walk(
            data[0], size[0], tables.nodes, tables.edges, depth, levels, result
        )
        if status == JSON_NOT_UTF8:
            self._bad_utf8()
            bytes_reserve(&self._replaced, scan_utf8_replace(data[0], data[0] + size[0], NULL))
            size[0] = scan_utf8_replace(data[0], data[0] + size[0], self._replaced.data)
            data[0] = self._replaced.data
            status = json_walk(
                data[0], size[0], tables.nodes, tables.edges, depth, levels, result
            )
        elif status == JSON_INVALID or status == JSON_TOO_DEEP:
            if not scan_utf8_valid(data[0], data[0] + size[0]):
                self._bad_utf8()
        return status

    # The draft's envelopes (section 5.2)

    cdef int _ended(self) except -1:
        self._after_end += 1
        if self._after_end == 1:
            self._record(rules.AFTER_END, 1)
        return 0

    cdef int _envelope(
        self,
        pointer name,
        size_t name_size,
        bint framed,
        pointer data,
        size_t size,
        json_result *result,
    ) except -3:
        if self._state == STATE_ENDED:
            self._ended()
            return -2
        cdef pointer base = data
        cdef size_t base_size = size
        cdef int status = self._walk(&base, &base_size, self._tables, self._depth, result)
        if status != JSON_OK:
            self._unread += 1
            if status == JSON_TOO_DEEP:
                self._record(rules.TOO_DEEP)
            else:
                self._record(rules.NOT_OBJECT if status == JSON_NOT_OBJECT else rules.NOT_JSON)
            return -2
        if result.duplicates:
            self._record(rules.DUPLICATE_KEY)
        if result.flags & SCAN_LONE:
            self._record(rules.LONE_SURROGATE)
        cdef json_leaf *leaf = self._leaf(result, LEAF_V)
        if not self._skip_version and not self._equals(base, leaf, b"1.0", 3):
            self._skip_version = True
            self._record(rules.BAD_VERSION)
        cdef int exact
        self._seq = self._integer(base, result, LEAF_SEQ, &exact)
        if exact != JSON_INTEGER_EXACT:
            self._record(rules.BAD_SEQUENCE)
        cdef int kind = self._type(base, result, name, name_size, framed)
        cdef int broken = _broken_rule[self._state][kind]
        cdef bint is_start = kind == EVENT_START and not self._started
        cdef bint first = is_start and self._state == STATE_NEW
        self._state = _next_state[self._state][kind]
        if broken and not (is_start and not first):
            # A start that comes late is no second one; that the stream began without it was said.
            self._record(broken)
        self._order(is_start, first)
        if is_start:
            self._started = True
        cdef Event made
        if kind == EVENT_DELTA:
            made = self._read_delta(base, result)
        elif kind == EVENT_START:
            made = self._read_start(base, result)
        elif kind == EVENT_STOP:
            made = self._read_stop(base, result)
        elif kind == EVENT_TOOL_CALL:
            made = self._read_tool_call(base, result)
        elif kind == EVENT_USAGE:
            made = self._read_usage(base, result)
        elif kind == EVENT_ERROR:
            made = self._read_error(base, result)
        elif kind == EVENT_END:
            made = self._read_end(base, result)
        else:
            made = UnknownEvent.__new__(UnknownEvent)
            made._first = self._type_name
        if made is not None:
            self._place(made, data, size)
            made._seq = self._seq
            made._in_envelope = True
            self._deliver(made)
        if kind == EVENT_END:
            self._at_end()
        return -1 if kind == EVENT_DELTA else -2

    cdef inline json_leaf *_leaf(self, json_result *result, int number) noexcept:
        """A leaf that was found, or NULL."""
        return &result.leaves[number] if (result.found >> number) & 1 else NULL

    cdef bint _equals(self, pointer base, json_leaf *leaf, const char *word, size_t size) except -1:
        """Whether a leaf is a string of these bytes, however it is spelled."""
        cdef pointer text
        cdef size_t length
        if leaf == NULL or leaf.kind != JSON_STRING:
            return False
        text = base + leaf.start
        length = leaf.length
        if leaf.flags & SCAN_ESCAPE:
            if leaf.flags & SCAN_LONE or length > 6 * size:
                return False
            bytes_reserve(&self._scratch, length)
            length = scan_unescape(text, text + length, self._scratch.data)
            text = self._scratch.data
        return length == size and memcmp(text, word, size) == 0

    cdef long long _integer(
        self, pointer base, json_result *result, int number, int *exact
    ) noexcept:
        """A leaf as an integer from 0 to 2**63 - 1, -1 if it is none (resolution A-17)."""
        cdef json_leaf *leaf = self._leaf(result, number)
        cdef long long value = -1
        exact[0] = JSON_INTEGER_NO
        if leaf != NULL and leaf.kind == JSON_NUMBER:
            exact[0] = json_integer(base + leaf.start, leaf.length, &value)
        return -1 if exact[0] == JSON_INTEGER_NO else value

    cdef long long _count(
        self, pointer base, json_result *result, int number, int rule
    ) except? -2:
        cdef int exact
        cdef long long value = self._integer(base, result, number, &exact)
        if exact != JSON_INTEGER_EXACT:
            self._record(rule)
        return value

    cdef int _type(
        self,
        pointer base,
        json_result *result,
        pointer name,
        size_t name_size,
        bint framed,
    ) except -1:
        cdef json_leaf *leaf = self._leaf(result, LEAF_TYPE)
        cdef pointer text
        cdef bint same
        cdef str found
        if leaf == NULL or leaf.kind != JSON_STRING:
            self._record(rules.BAD_TYPE)
            found = _decode(name, name_size)
        else:
            text = base + leaf.start
            if not leaf.flags:
                if (framed or name_size) and not _is(
                    text, leaf.length, <const char *> name, name_size
                ):
                    self._record(
                        rules.TYPE_MISMATCH if name_size else rules.TYPE_WITHOUT_EVENT
                    )
                kind = _kind_of(text, leaf.length)
                if kind != EVENT_UNKNOWN:
                    return kind
                self._type_name = _text(text, leaf.length, 0, &self._scratch)
                return kind
            found = _text(text, leaf.length, leaf.flags, &self._scratch)
            same = not leaf.flags & SCAN_LONE and found == _decode(name, name_size)
            if (framed or name_size) and not same:
                self._record(rules.TYPE_MISMATCH if name_size else rules.TYPE_WITHOUT_EVENT)
        self._type_name = found
        encoded = found.encode()
        return _kind_of(<pointer> PyBytes_AS_STRING(encoded), <size_t> len(encoded))

    cdef int _order(self, bint is_start, bint first) except -1:
        """Section 5.2.1: gaps, repeats and numbers that are too high."""
        cdef unsigned long long seq = <unsigned long long> self._seq
        cdef unsigned long long lost
        if self._seq < 0:
            self._unread += 1
            return 0
        if is_start and seq:
            self._record(rules.START_NOT_ZERO)
        if first:
            pass
        elif seq < self._next_seq:
            self._record(rules.SEQUENCE_NOT_AHEAD)
        elif seq > self._next_seq + self._unread:
            lost = self._next_seq + self._unread
            if self._gaps is None:
                self._gaps = []
            if len(self._gaps) < rules.MAX_VIOLATIONS:
                self._gaps.append((lost, seq - 1))
            self._record(rules.SEQUENCE_GAP, seq - lost)
        if first or seq >= self._next_seq:
            self._next_seq = seq + 1
            self._unread = 0
        if seq > MAX_SEQUENCE:
            self._record(rules.SEQUENCE_TOO_HIGH)
        return 0

    cdef str _string(self, pointer base, json_result *result, int number, int rule):
        cdef json_leaf *leaf = self._leaf(result, number)
        if leaf == NULL or leaf.kind != JSON_STRING:
            self._record(rule)
            return None
        return _text(base + leaf.start, leaf.length, leaf.flags, &self._scratch)

    cdef str _read_request_id(self, pointer base, json_result *result):
        if self._leaf(result, LEAF_REQUEST_ID) == NULL:
            return None
        return self._string(base, result, LEAF_REQUEST_ID, BAD_REQUEST_ID)

    cdef StreamStart _read_start(self, pointer base, json_result *result):
        cdef StreamStart made = StreamStart.__new__(StreamStart)
        made._first = self._string(base, result, LEAF_MODEL, BAD_MODEL)
        made._number = self._count(base, result, LEAF_CREATED, BAD_CREATED)
        made._second = self._read_request_id(base, result)
        if self._request_id is None:
            self._request_id = made._second
        return made

    cdef ContentDelta _read_delta(self, pointer base, json_result *result):
        cdef long long index = self._count(base, result, LEAF_INDEX, BAD_DELTA_INDEX)
        cdef json_leaf *role = self._leaf(result, LEAF_ROLE)
        cdef json_leaf *delta = self._leaf(result, LEAF_DELTA)
        cdef json_leaf *text = NULL
        cdef str other_role = "assistant"
        if index < 0:
            index = 0
        if not self._equals(base, role, b"assistant", 9):
            self._record(rules.BAD_ROLE)
            if role != NULL and role.kind == JSON_STRING:
                other_role = _text(base + role.start, role.length, role.flags, &self._scratch)
        if delta == NULL or delta.kind != JSON_OBJECT:
            self._record(rules.BAD_DELTA)
        else:
            text = self._leaf(result, LEAF_TEXT)
            if text == NULL or text.kind != JSON_STRING:
                text = NULL
                self._record(rules.BAD_TEXT)
        self._open(index)
        if self._text_only:
            self._delta_count += 1
            if text != NULL:
                self._add_text(base + text.start, text.length, text.flags, index)
            return None
        cdef ContentDelta made = ContentDelta.__new__(ContentDelta)
        if text == NULL:
            made._first = ""
        else:
            made._first = _text(base + text.start, text.length, text.flags, &self._scratch)
        made._second = other_role
        made._number = index
        return made

    cdef ContentStop _read_stop(self, pointer base, json_result *result):
        cdef ContentStop made = ContentStop.__new__(ContentStop)
        cdef long long index = self._count(base, result, LEAF_INDEX, BAD_STOP_INDEX)
        if index < 0:
            index = 0
        made._number = index
        made._first = self._string(base, result, LEAF_STOP_REASON, BAD_STOP_REASON)
        if made._first is not None and made._first not in rules.STOP_REASONS:
            self._record(rules.UNKNOWN_STOP_REASON)
        if self._blocks is None:
            self._blocks = {}
        if self._open_index == index:
            self._open_index = -1
        if self._blocks.get(index):
            self._record(rules.SECOND_STOP)
        elif index in self._blocks or self._room(len(self._blocks)):
            self._blocks[index] = True
        return made

    cdef ToolCall _read_tool_call(self, pointer base, json_result *result):
        cdef ToolCall made = ToolCall.__new__(ToolCall)
        cdef bint is_json = True
        cdef long long index = self._count(base, result, LEAF_INDEX, BAD_CALL_INDEX)
        if index < 0:
            index = 0
        made._number = index
        made._first = self._string(base, result, LEAF_ID, BAD_CALL_ID)
        made._second = self._string(base, result, LEAF_NAME, BAD_CALL_NAME)
        made._third = self._read_arguments(base, result, &is_json)
        if made._first is not None:
            if self._call_ids is None:
                self._call_ids = set()
            # A long id is not kept for the sake of this check.
            key = made._first if len(made._first) <= 256 else str(hash(made._first))
            if key in self._call_ids:
                self._record(rules.REPEATED_CALL_ID)
            elif self._room(len(self._call_ids)):
                self._call_ids.add(key)
        if not is_json:
            self._record(rules.ARGUMENTS_NOT_JSON)
        self._open(index)
        return made

    cdef str _read_arguments(self, pointer base, json_result *result, bint *is_json):
        """Checked as UTF-8, before they are a str: that may take four bytes for a character."""
        cdef json_leaf *leaf = self._leaf(result, LEAF_ARGUMENTS)
        cdef pointer data
        cdef size_t size
        cdef unsigned flags
        if leaf == NULL or leaf.kind != JSON_STRING:
            self._record(BAD_ARGUMENTS)
            return None
        data = base + leaf.start
        size = leaf.length
        flags = leaf.flags
        if flags & SCAN_ESCAPE:
            bytes_reserve(&self._scratch, size)
            size = scan_unescape(data, data + size, self._scratch.data)
            data = self._scratch.data
            flags = SCAN_HIGH
        is_json[0] = self._is_json_text(data, size)
        return _text(data, size, flags, &self._scratch)

    cdef bint _is_json_text(self, pointer data, size_t size) except -1:
        cdef json_result result
        cdef unsigned char stack[LEVELS]
        cdef unsigned char *levels = self._levels
        cdef Tables tables = _tables_of(_ENVELOPE)
        if levels == NULL:
            levels = stack
        cdef int status = json_walk(
            data, size, tables.nodes, tables.edges, self._depth, levels, &result
        )
        return status == JSON_OK or status == JSON_NOT_OBJECT

    cdef Usage _read_usage(self, pointer base, json_result *result):
        cdef Usage made = Usage.__new__(Usage)
        made._number = self._count(base, result, LEAF_INPUT_TOKENS, BAD_INPUT_TOKENS)
        made._other = self._count(base, result, LEAF_OUTPUT_TOKENS, BAD_OUTPUT_TOKENS)
        return made

    cdef StreamError _read_error(self, pointer base, json_result *result):
        cdef StreamError made = StreamError.__new__(StreamError)
        made._first = self._string(base, result, LEAF_CODE, BAD_CODE)
        made._second = self._string(base, result, LEAF_MESSAGE, BAD_MESSAGE)
        if made._first is not None and made._first not in rules.ERROR_CODES:
            self._record(rules.UNKNOWN_CODE)
        return made

    cdef StreamEnd _read_end(self, pointer base, json_result *result):
        cdef StreamEnd made = StreamEnd.__new__(StreamEnd)
        made._first = self._read_request_id(base, result)
        if (
            made._first is not None
            and self._request_id is not None
            and made._first != self._request_id
        ):
            self._record(rules.REQUEST_ID_DIFFERS)
        return made

    cdef bint _room(self, Py_ssize_t used) except -1:
        if used < rules.MAX_BLOCKS:
            return True
        if not self._too_many:
            self._too_many = True
            self._record(rules.TOO_MANY_BLOCKS)
        return False

    cdef int _open(self, long long index) except -1:
        if index == self._open_index:
            return 0
        if self._blocks is None:
            self._blocks = {}
        stopped = self._blocks.get(index)
        if stopped:
            self._record(rules.DELTA_AFTER_STOP)
        elif stopped is None:
            if self._room(len(self._blocks)):
                self._blocks[index] = False
                self._open_index = index
        else:
            self._open_index = index
        return 0

    cdef bint _is_open(self, long long index) except -1:
        if index == self._open_index:
            return True
        if self._blocks is None or self._blocks.get(index) is not False:
            return False
        self._open_index = index
        return True

    cdef int _at_end(self) except -1:
        """What has to be there once the stream has ended (section 5.4)."""
        if self._error is None:
            if self._blocks is not None:
                for stopped in self._blocks.values():
                    if not stopped:
                        self._record(rules.BLOCK_NOT_STOPPED)
            if self._usage is None:
                self._record(rules.NO_USAGE)
        if not self._in_tail and self._next_seq <= MAX_SEQUENCE + 1:
            self._complete = True
        return 0

    cdef int _deliver(self, Event made) except -1:
        """Hands an event out and takes note of what it says."""
        kind = type(made)
        if self._text_only:
            if kind is ContentDelta:
                self._delta_count += 1
                self._add_str(made)
            elif self._keeps_others and kind is not Usage:
                self._out.append(made)
        else:
            self._out.append(made)
        if kind is Usage:
            self._usage = <Usage> made
            self._usage_count += 1
        elif kind is StreamError:
            if self._error is None:
                self._error = <StreamError> made
        return 0

    cdef int _add_text(self, pointer data, size_t size, unsigned flags, long long index) except -1:
        """Text for feed_text, as UTF-8."""
        if self._alternatives and index:
            return 0
        if not flags & SCAN_ESCAPE:
            if flags & SCAN_HIGH:
                self._texts_high = True
            return bytes_add(&self._texts, data, size)
        self._texts_high = True
        bytes_reserve(&self._texts, self._texts.size + size)
        self._texts.size += scan_unescape(data, data + size, self._texts.data + self._texts.size)
        return 0

    cdef int _add_str(self, Event made) except -1:
        cdef Py_ssize_t size
        cdef const char *data = PyUnicode_AsUTF8AndSize(made._first, &size)
        return self._add_text(<pointer> data, <size_t> size, SCAN_HIGH, made._number)

    # Vendors' payloads

    cdef int _vendor(
        self, pointer name, size_t name_size, pointer data, size_t size, json_result *result
    ) except -3:
        dialect = self._dialect
        cdef bint is_end = self._end_mark is not None and _is(
            data, size, PyBytes_AS_STRING(self._end_mark), <size_t> len(self._end_mark)
        )
        if self._state == STATE_ENDED:
            if not is_end:
                self._ended()
            return -2
        if is_end:
            self._accept(self._call(dialect.finish, (True,)), data, size)
            return -2
        event = _decode(name, name_size) if name_size else None
        cdef pointer base = data
        cdef size_t base_size = size
        cdef int at
        if not dialect.json:
            if not scan_utf8_valid(data, data + size):
                self._bad_utf8()
            self._accept(
                self._call(dialect.translate, (_decode(data, size), event)), data, size
            )
            return -2
        cdef unsigned depth = min(self._depth, <unsigned> payload.MAX_DEPTH)
        cdef int status = self._walk(&base, &base_size, self._tables, depth, result)
        if status != JSON_OK:
            if status == JSON_TOO_DEEP:
                self._record(rules.TOO_DEEP)
            else:
                self._record(rules.NOT_OBJECT if status == JSON_NOT_OBJECT else rules.NOT_JSON)
            return -2
        cdef shape_found found
        if self._started and not result.flags & SCAN_LONE:
            for at in range(self._tables.form_count):
                if self._fit(&self._tables.forms[at], base, result, &found):
                    self._yield_form(&self._tables.forms[at], &found, data, size)
                    return at
        if result.flags & SCAN_LONE:
            self._record(rules.LONE_SURROGATE)
        value = self._value(base, base_size)
        self._index = -1  # a dialect may have closed it, and wants to be told of the next fragment
        self._accept(self._call(dialect.translate, (value, event)), data, size)
        return -2

    cdef object _value(self, pointer data, size_t size):
        cdef pointer at = json_skip_space(data, data + size)
        return _read_value(&at, data + size, &self._scratch)

    cdef bint _fit(
        self, FormTable *form, pointer base, json_result *result, shape_found *found
    ) except -1:
        """Whether a payload has this form, and its fragment, index, call and token counts (-1: none)."""
        cdef json_leaf *leaf = self._leaf(result, form.content)
        cdef unsigned long long bits
        cdef int at
        cdef Constant *constant
        if leaf == NULL or leaf.kind != JSON_STRING or leaf.length == 0:
            return False
        found.content = base + leaf.start
        found.content_size = leaf.length
        found.content_flags = leaf.flags
        for at in range(form.constant_count):
            constant = &form.constants[at]
            leaf = self._leaf(result, constant.leaf)
            if leaf == NULL or leaf.kind != constant.kind:
                return False
            if constant.kind == JSON_STRING and not self._equals(
                base, leaf, <const char *> constant.text, constant.size
            ):
                return False
        bits = (form.absent | form.empty) & result.found
        at = 0
        while bits:
            if bits & 1:
                leaf = &result.leaves[at]
                if (form.items >> at) & 1 or (
                    leaf.kind != JSON_NULL
                    and not (
                        leaf.kind == JSON_STRING and leaf.length == 0 and not (form.absent >> at) & 1
                    )
                ):
                    return False
            bits >>= 1
            at += 1
        if not self._exact(base, result, form.index, 0, &found.index):
            return False
        if not self._exact(base, result, form.call, 0, &found.call):
            return False
        if not self._exact(base, result, form.input_tokens, -1, &found.input_tokens):
            return False
        if not self._exact(base, result, form.output_tokens, -1, &found.output_tokens):
            return False
        return (found.input_tokens < 0) == (found.output_tokens < 0)

    cdef bint _exact(
        self, pointer base, json_result *result, int number, long long missing, long long *value
    ) noexcept:
        """An integer written as one, or what stands for a leaf that is not there."""
        cdef json_leaf *leaf = NULL if number < 0 else self._leaf(result, number)
        value[0] = missing
        if leaf == NULL:
            return True
        return leaf.kind == JSON_NUMBER and (
            json_integer(base + leaf.start, leaf.length, value) == JSON_INTEGER_EXACT
        )

    cdef int _yield_form(
        self, FormTable *form, shape_found *found, pointer data, size_t size
    ) except -1:
        cdef ContentDelta made
        cdef Usage usage
        if found.index != self._index:
            self._index = found.index
            self._tell(self._dialect.touch, (found.index,))
        if form.kind == KIND_ARGUMENTS:
            text = _text(
                found.content, found.content_size, found.content_flags, &self._scratch
            )
            self._tell(self._dialect.append_arguments, (found.index, found.call, text))
        elif self._text_only:
            self._delta_count += 1
            if form.kind == KIND_TEXT:
                self._add_text(
                    found.content, found.content_size, found.content_flags, found.index
                )
            self._next_seq += 1
        else:
            made = ContentDelta.__new__(ContentDelta)
            made._first = _text(
                found.content, found.content_size, found.content_flags, &self._scratch
            )
            if form.kind == KIND_REASONING:
                made._third = made._first
                made._first = ""
            made._second = "assistant"
            made._number = found.index
            made._seq = <long long> self._next_seq
            self._place(made, data, size)
            self._out.append(made)
            self._next_seq += 1
        if found.input_tokens >= 0:
            usage = Usage.__new__(Usage)
            usage._number = found.input_tokens
            usage._other = found.output_tokens
            usage._seq = <long long> self._next_seq
            self._place(usage, data, size)
            self._next_seq += 1
            self._deliver(usage)
            self._untold = True
        return 0

    cdef list _call(self, method, tuple arguments):
        """A dialect's answer. What it cannot make sense of is a violation, never an exception."""
        if self._untold:
            # The dialect learns of token counts that its forms have read once it has to know.
            self._untold = False
            self._tell(
                self._dialect.counted, (self._usage.input_tokens, self._usage.output_tokens)
            )
        events = []
        try:
            found = list(method(*arguments))
            events = [event for event in found if type(event) in _EVENT_KINDS]
            whole = len(events) == len(found)
        except Exception:
            whole = False
        if not whole:
            self._record(rules.BAD_PAYLOAD)
        self._drain()
        return events

    cdef int _tell(self, method, tuple arguments) except -1:
        """Hands something to a dialect that has no answer."""
        try:
            method(*arguments)
        except Exception:
            self._record(rules.BAD_PAYLOAD)
        return self._drain()

    cdef int _drain(self) except -1:
        reports = None if self._dialect is None else self._dialect.reports
        if reports:
            self._dialect.reports = []
            for rule in reports:
                known = type(rule) is int and rule in rules.STREAM
                self._record(rule if known else rules.BAD_PAYLOAD)
        return 0

    cdef int _accept(self, list events, pointer data, size_t size) except -1:
        """Numbers a dialect's events and takes note of what they say. The first one is a StreamStart, the only one."""
        cdef Event event
        cdef Event made
        if events and not self._started:
            start_at = next((at for at, one in enumerate(events) if type(one) is StreamStart), -1)
            events.insert(0, events.pop(start_at) if start_at >= 0 else StreamStart())
        if len(events) > MANY_EVENTS and self._in_place:
            self._in_place = False
            self._payload_bytes = None
        for event in events:
            if self._state == STATE_ENDED:
                break
            kind = type(event)
            if (kind is StreamStart and self._started) or (kind is StreamEnd and self._torn):
                continue
            made = kind.__new__(kind)
            made._extensions = event._extensions
            made._in_envelope = event._in_envelope
            made._first = event._first
            made._second = event._second
            made._third = event._third
            made._number = event._number
            made._other = event._other
            made._seq = <long long> self._next_seq
            self._place(made, data, size)
            self._next_seq += 1
            self._deliver(made)
            if kind is StreamStart:
                self._started = True
            elif kind is StreamEnd:
                self._state = STATE_ENDED
                self._complete = not self._in_tail
        return 0

    # Telling a dialect (auto)

    cdef int _detect(
        self, pointer name, size_t name_size, bint framed, pointer data, size_t size
    ) except -1:
        cdef bytes copy = PyBytes_FromStringAndSize(<const char *> data, <Py_ssize_t> size)
        event = _decode(name, name_size) if name_size else None
        if self._pending is None:
            self._pending = []
        self._pending.append((self._number, self._offset, event, framed, copy))
        self._number += 1
        if self._undecided:
            return self._hand_out_unknown()
        self._pending_size += len(copy)
        try:
            found = self._dialect.detect(event, copy)
        except Exception:
            found = None
        if found is not None and self._switches < MAX_SWITCHES:
            self._switches += 1
            self._take(None if found == "llm-stream" else found)
            self._replay()
        elif len(self._pending) >= MAX_PENDING or self._pending_size > MAX_PENDING_SIZE:
            self._give_up()
        return 0

    cdef int _replay(self) except -1:
        pending, self._pending = self._pending, []
        cdef unsigned long long number = self._number
        cdef bytes name
        cdef bytes data
        self._in_place = False
        for own, offset, event, framed, data in pending:
            self._number = own
            self._payload_bytes = data
            name = b"" if event is None else event.encode()
            self._payload(
                offset,
                <pointer> PyBytes_AS_STRING(name),
                <size_t> len(name),
                framed,
                <pointer> PyBytes_AS_STRING(data),
                <size_t> len(data),
                False,
            )
        self._number = number
        return 0

    cdef int _give_up(self) except -1:
        """No dialect fits: everything is handed out as it is."""
        if not self._undecided:
            self._undecided = True
            # Where nothing came, no candidate is nearer than another.
            self._record(rules.UNKNOWN_DIALECT, ", ".join(self._dialect.candidates) if self._pending else None)
        return self._hand_out_unknown()

    cdef int _hand_out_unknown(self) except -1:
        if not self._pending:
            return 0
        pending, self._pending = self._pending, []
        cdef UnknownEvent made
        for _, _, event, _, data in pending:
            made = UnknownEvent.__new__(UnknownEvent)
            made._first = event or ""
            made._source = data
            made._size = len(data)
            made._seq = <long long> self._next_seq
            self._next_seq += 1
            self._deliver(made)
        return 0

    # The end

    cdef int _tail(self) except -1:
        cdef Framer *f = &self._framer
        cdef bint is_end
        cdef bint was_complete
        self._torn = framer_unfinished(f)
        if framer_close(f) != FRAMER_BLOCK:
            return 0
        self._offset = f.event_offset
        is_end = self._end_mark is not None and _is(
            f.block_data,
            f.block_size,
            PyBytes_AS_STRING(self._end_mark),
            <size_t> len(self._end_mark),
        )
        if self._strict or not (is_end or self._is_whole(f.block_data, f.block_size)):
            self._record(rules.TAIL_DROPPED)
            return 0
        self._record(rules.TAIL_DELIVERED)
        self._torn = False
        was_complete = self._dialect is not None and self._dialect.complete
        self._in_tail = not was_complete
        f.block_learnable = False
        before = len(self._out)
        self._block(FRAMER_BLOCK)
        # Content in a tail shows that the answer went on.
        self._torn = was_complete and any(type(event) in (ContentDelta, ToolCall) for event in self._out[before:])
        return 0

    cdef bint _is_whole(self, pointer data, size_t size) except -1:
        if not scan_utf8_valid(data, data + size):
            bytes_reserve(&self._replaced, scan_utf8_replace(data, data + size, NULL))
            size = scan_utf8_replace(data, data + size, self._replaced.data)
            data = self._replaced.data
        return self._is_json_text(data, size)

    cdef int _stray(self) except -1:
        """A JSON body outside the framing, which may be the error that explains the rest."""
        if self._framer.stray.size == 0 and not self._framer.stray_lost:
            return 0
        cdef bytes stray = bytes_copy(&self._framer.stray)
        self._offset = self._framer.offset
        self._record(rules.STRAY_BYTES)
        if self._framer.stray_lost or self._state == STATE_ENDED:
            return 0
        try:
            value = payload.first_value(stray.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return 0
        events = self._call(_registry.bare, (self._dialect, value))
        if self._dialect is None:
            self._started = True  # no start is made up for the draft's own stream
        self._in_place = False
        self._payload_bytes = stray.rstrip()
        self._accept(events, NULL, <size_t> len(self._payload_bytes))
        return self._settle()

    cdef int _finish(self, bint in_band) except -1:
        """``in_band``: whether an error came as an event; of the draft's own stream, one outside of it ends nothing."""
        if self._state == STATE_ENDED:
            return 0
        if self._error is None or (self._dialect is None and not in_band):
            return self._record(rules.NOT_ENDED)
        if self._dialect is None:
            return self._record(rules.END_AFTER_ERROR_MISSING)
        return 0

    # Shapes

    cdef pointer _match(self, pointer p, pointer end, bint bare) except? NULL:
        """Reads the event at ``p`` by a learned shape; returns the place after it, or NULL. A bare payload has to end
        at ``end``."""
        cdef int at
        cdef pointer after
        cdef shape *known
        cdef shape_found found
        cdef ContentDelta made
        if self._dialect is None:
            if self._state != STATE_STREAMING:
                return NULL
        elif not self._started or self._state == STATE_ENDED:
            return NULL
        if self._misses >= 8:
            self._tries += 1
            if self._tries & 7:
                return NULL
        for at in range(self._shape_count):
            known = self._shapes[at]
            if known.bare != bare:
                continue
            after = shape_apply(known, p, end, self._next_seq, &found)
            if after == NULL or <size_t> (after - p) > self._framer.max_event_size:
                continue
            if bare and after != end:
                continue
            if known.form < 0:
                if self._next_seq > MAX_SEQUENCE or not self._is_open(found.index):
                    continue
            elif found.content_size == 0:
                continue
            if at:
                self._shapes[at] = self._shapes[0]
                self._shapes[0] = known
            self._hits += 1
            self._misses >>= 1
            if found.has_id:
                bytes_set(&self._framer.id, found.id, found.id_size)
                bytes_set(&self._framer.committed_id, found.id, found.id_size)
            if self._in_place and not bare:
                self._offset = self._framer.offset + <unsigned long long> (p - self._chunk_begin)
            if known.form >= 0:
                self._yield_form(
                    &self._tables.forms[known.form],
                    &found,
                    found.data,
                    <size_t> (found.data_end - found.data),
                )
            elif self._text_only:
                self._delta_count += 1
                self._add_text(
                    found.content, found.content_size, found.content_flags, found.index
                )
                self._next_seq += 1
                self._unread = 0
            else:
                made = ContentDelta.__new__(ContentDelta)
                made._first = _text(
                    found.content, found.content_size, found.content_flags, &self._scratch
                )
                made._second = "assistant"
                made._number = found.index
                made._seq = <long long> self._next_seq
                made._in_envelope = True
                self._place(made, found.data, <size_t> (found.data_end - found.data))
                self._out.append(made)
                self._next_seq += 1
                self._unread = 0
            self._number += 1
            return after
        return NULL

    cdef int _remember(
        self,
        int form,
        json_result *result,
        unsigned missed,
        pointer bare,
        size_t size,
        pointer name,
        size_t name_size,
    ) except -1:
        """Learns the shape of an event that the careful path has just read without a violation. ``bare``: where it is a
        payload that came without Server-Sent Events around it, under a name."""
        cdef shape *made
        cdef int at
        self._misses += 1
        if missed >= 8 and self._number & 63:
            return 0
        made = self._learn(form, result, bare, size)
        if made == NULL:
            return 0
        if bare != NULL:
            self._bare_name_is(name, name_size)
        for at in range(self._shape_count):
            if shape_widen(self._shapes[at], made):
                shape_free(made)
                return 0
        if self._shape_count < MAX_SHAPES:
            self._shape_count += 1
        else:
            shape_free(self._shapes[MAX_SHAPES - 1])
        for at in range(self._shape_count - 1, 0, -1):
            self._shapes[at] = self._shapes[at - 1]
        self._shapes[0] = made
        return 0

    cdef int _bare_name_is(self, pointer name, size_t name_size) except -1:
        """Shapes of bare payloads are of one name: those that were learned under another are forgotten."""
        cdef bytes found = PyBytes_FromStringAndSize(<const char *> name, <Py_ssize_t> name_size)
        cdef int at = 0
        if found == self._bare_name:
            return 0
        self._bare_name = found
        while at < self._shape_count:
            if self._shapes[at].bare:
                shape_free(self._shapes[at])
                self._shape_count -= 1
                self._shapes[at] = self._shapes[self._shape_count]
            else:
                at += 1
        return 0

    cdef int _slot(self, int form, short leaf) noexcept:
        """What a wanted leaf is to this form; -1: a literal."""
        cdef FormTable *table
        if form < 0:
            if leaf == LEAF_SEQ:
                return SLOT_SEQ
            if leaf == LEAF_INDEX:
                return SLOT_INDEX
            return SLOT_TEXT if leaf == LEAF_TEXT else -1
        table = &self._tables.forms[form]
        if leaf == table.content:
            return SLOT_TEXT + table.kind
        if leaf == table.index:
            return SLOT_INDEX
        if leaf == table.call:
            return SLOT_CALL
        if leaf == table.input_tokens:
            return SLOT_INPUT
        return SLOT_OUTPUT if leaf == table.output_tokens else -1

    cdef shape *_learn(self, int form, json_result *result, pointer bare, size_t size) except? NULL:
        """The shape of the event just read, which lies from block_begin to block_end or is a bare payload."""
        cdef Framer *f = &self._framer
        cdef pointer begin = f.block_begin if bare == NULL else bare
        cdef pointer end = f.block_end if bare == NULL else bare + size
        cdef pointer data = f.block_data if bare == NULL else bare
        cdef unsigned data_at = <unsigned> (data - begin)
        cdef size_t place = 0
        cdef size_t start
        cdef size_t length
        cdef int kind
        cdef int at
        cdef int count = 0
        cdef bint id_done = bare != NULL or not f.has_id
        cdef size_t brace = size - 1
        cdef size_t padding = 0
        cdef shape_span spans[SHAPE_SPANS]
        cdef shape *made
        cdef unsigned char *copy
        while padding < brace and (
            data[brace - padding - 1] == c" " or data[brace - padding - 1] == c"\t"
        ):
            padding += 1
        for at in range(result.span_count + 2):
            if at < result.span_count:
                start = result.spans[at].start
                length = result.spans[at].length
                if result.spans[at].leaf >= 0:
                    kind = self._slot(form, result.spans[at].leaf)
                elif result.spans[at].kind == JSON_STRING:
                    kind = SLOT_ANY_STRING
                else:
                    kind = SLOT_ANY_NUMBER
            else:
                start = brace - padding
                length = padding
                kind = SLOT_SPACE if at == result.span_count and data[brace] == c"}" else -1
            start += data_at
            # The id line may lie before the payload or after it.
            if not id_done and (at > result.span_count or f.id_at < start):
                id_done = True
                count = _add_span(spans, count, &place, f.id_at, f.id_size, SLOT_ID)
            if kind >= 0:
                count = _add_span(spans, count, &place, start, length, kind)
        # What is kept: everything but the values of slots.
        start = <size_t> (end - begin)
        for at in range(count):
            if not spans[at].fixed:
                start -= spans[at].value
        if start > SHAPE_LITERALS:
            return NULL
        made = shape_new(count, <unsigned> start)
        if made == NULL:
            raise MemoryError()
        made.form = form
        made.id_spaced = bare == NULL and f.id_spaced
        made.bare = bare != NULL
        made.data_at = data_at
        made.end_at = data_at + <unsigned> size
        copy = made.bytes
        place = 0
        for at in range(count):
            made.spans[at] = spans[at]
            length = spans[at].gap + (spans[at].value if spans[at].fixed else 0)
            memcpy(copy, begin + place, length)
            copy += length
            place += spans[at].gap + spans[at].value
        memcpy(copy, begin + place, <size_t> (end - begin) - place)
        if not shape_compile(made):
            shape_free(made)
            return NULL
        return made
