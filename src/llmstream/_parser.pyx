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
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL

cdef extern from "_scan.h" nogil:
    enum:
        SCAN_STRING_OK
    unsigned SCAN_ESCAPE
    unsigned SCAN_HIGH
    unsigned SCAN_LONE
    const unsigned char *scan_line_end(const unsigned char *p, const unsigned char *end)
    int scan_string(
        const unsigned char *p, const unsigned char *end, const unsigned char **stop, unsigned *flags
    )
    int scan_utf8_valid(const unsigned char *p, const unsigned char *end)
    size_t scan_utf8_replace(const unsigned char *p, const unsigned char *end, unsigned char *out)
    size_t scan_unescape(const unsigned char *p, const unsigned char *end, unsigned char *out)
    const unsigned char *scan_number(const unsigned char *p, const unsigned char *end)

cdef extern from "_json.h" nogil:
    enum:
        JSON_STRING
        JSON_NUMBER
        JSON_TRUE
        JSON_FALSE
        JSON_NULL
        JSON_OBJECT
        JSON_ARRAY
        JSON_OK
        JSON_INVALID
        JSON_TOO_DEEP
        JSON_NOT_UTF8
        JSON_NOT_OBJECT
        JSON_INTEGER_NO
        JSON_INTEGER_EXACT
        JSON_INTEGER_LENIENT
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
cdef Py_ssize_t MAX_PENDING = 64
cdef Py_ssize_t MAX_PENDING_SIZE = 64 * 1024
cdef size_t KEPT_CAPACITY = 16 * 1024  # a buffer over this is given back after its event

cdef enum:
    MAX_SHAPES = 4
    LEVELS = 513  # bytes for the default depth, on the stack

cdef unsigned long long MAX_SEQUENCE = rules.MAX_SEQUENCE


# ---------------------------------------------------------------------------------------------------------------------
# What the engine hands out


@cython.final
cdef class Violation:
    """One deviation from a rule: ``requirement`` of the draft ("R5.2-1") or a rule of ours ("L-..."), ``severity``
    ("error" or "warning"), ``event`` (its number, from 0), ``offset`` (of the event's first byte in the stream) and
    ``message`` (never text of the stream)."""

    cdef readonly str requirement
    cdef readonly str severity
    cdef readonly object event
    cdef readonly object offset
    cdef readonly str message

    def __init__(self, str requirement, str severity, event, offset, str message):
        self.requirement = requirement
        self.severity = severity
        self.event = event
        self.offset = offset
        self.message = message

    def _key(self):
        return (self.requirement, self.severity, self.event, self.offset, self.message)

    def __eq__(self, other):
        return self._key() == other._key() if isinstance(other, Violation) else NotImplemented

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        return (
            f"Violation(requirement={self.requirement!r}, severity={self.severity!r}, event={self.event}, "
            f"offset={self.offset}, message={self.message!r})"
        )

    def __reduce__(self):
        return (_rebuild, ("violation", self._key()))


@cython.final
@cython.freelist(64)
cdef class ServerSentEvent:
    """One event of an SSE stream (WHATWG HTML, section 9.2): ``event`` ("message" where the stream names none),
    ``data``, ``id`` (the last event id, kept from event to event), ``retry`` (milliseconds, of this block only, at
    most 2**63 - 1) and ``complete`` (False for an unfinished last event)."""

    cdef readonly str event
    cdef readonly str data
    cdef readonly str id
    cdef long long _retry
    cdef readonly bint complete

    def __init__(self, event="message", data="", id="", retry=None, complete=True):
        self.event = fields.text("event", event)
        self.data = fields.text("data", data)
        self.id = fields.text("id", id)
        retry = fields.optional_integer("retry", retry)
        self._retry = -1 if retry is None else retry
        self.complete = bool(complete)

    @property
    def retry(self):
        return None if self._retry < 0 else self._retry

    def json(self):
        """The data as a JSON value; raises ValueError where it is none (RFC 8259: no NaN, no Infinity)."""
        return payload.loads(self.data)

    def _key(self):
        return (self.event, self.data, self.id, self.retry, self.complete)

    def __eq__(self, other):
        return self._key() == other._key() if isinstance(other, ServerSentEvent) else NotImplemented

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        tail = "" if self.complete else ", complete=False"
        return (
            f"ServerSentEvent(event={self.event!r}, data={self.data!r}, id={self.id!r}, "
            f"retry={self.retry!r}{tail})"
        )

    def __reduce__(self):
        return (_rebuild, ("sse", self._key()))


@cython.freelist(256)
cdef class Event:
    """Base of all events. ``type`` is the draft's name, ``seq`` the sequence number (None: unknown), ``raw`` the bytes
    of the data field (several data lines joined by LF), ``extensions`` the vendor's own members (draft, section 4.7).

    Events are immutable. An event keeps the chunk it was read from alive; ``detach()`` lets go of it."""

    __match_args__ = ()
    type = ""

    # One layout for all events, without a reference that could close a cycle: made and freed at the least cost.
    cdef bytes _source
    cdef Py_ssize_t _start
    cdef Py_ssize_t _size
    cdef long long _seq
    cdef str _extensions
    cdef bint _in_envelope
    cdef str _first
    cdef str _second
    cdef str _third
    cdef long long _number
    cdef long long _other

    def __init__(self):
        raise TypeError("Event is only a base class")

    @property
    def seq(self):
        return None if self._seq < 0 else self._seq

    @property
    def raw(self):
        if self._source is None:
            return b""
        return PyBytes_FromStringAndSize(PyBytes_AS_STRING(self._source) + self._start, self._size)

    @property
    def extensions(self):
        if self._in_envelope:
            return fields.extensions_of(self.raw)
        return {} if self._extensions is None else payload.loads(self._extensions)

    def detach(self):
        """Let go of the chunk this event was read from: only its own bytes are kept."""
        self._source = self.raw
        self._start = 0

    def json(self):
        """The whole payload as Python values: unknown members too. An event that was built by hand gives the envelope
        that it would have. Raises ValueError where the payload is no JSON."""
        if self._size:
            return payload.loads(self.raw.decode("utf-8", "replace"))
        return fields.envelope(self.type, self.seq, self._envelope_members(), self.extensions)

    def _own(self):
        return ()

    def _members(self):
        return dict(zip(self.__match_args__, self._own()))

    def _envelope_members(self):
        return self._members()

    def _key(self):
        found = self.extensions
        return (self.type, self.seq, self._own(), payload.canonical(found) if found else None)

    def __eq__(self, other):
        return self._key() == other._key() if type(other) is type(self) else NotImplemented

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        shown = [f"{name}={value!r}" for name, value in self._members().items()]
        shown.append(f"seq={self.seq!r}")
        found = self.extensions
        if found:
            shown.append(f"extensions={found!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def __reduce__(self):
        kind = "unknown" if isinstance(self, UnknownEvent) else self.type
        lazily = True if self._in_envelope else self._extensions
        return (_rebuild, (kind, (self.raw, self.seq, lazily, *self._own())))


cdef int _build(Event event, seq, extensions) except -1:
    seq = fields.optional_integer("seq", seq)
    event._seq = -1 if seq is None else seq
    event._extensions = fields.extensions(extensions)
    return 0


cdef long long _or_none(value) except? -1:
    return -1 if value is None else value


@cython.final
cdef class StreamStart(Event):
    """The endpoint accepted the request (draft, section 5.3.1): ``model``, ``created`` (Unix seconds) and
    ``request_id``, each None where the stream gave none."""

    __match_args__ = ("model", "created", "request_id")
    type = "stream.start"

    def __init__(self, *, model=None, created=None, request_id=None, seq=None, extensions=None):
        self._first = fields.optional_text("model", model)
        self._number = _or_none(fields.optional_integer("created", created))
        self._second = fields.optional_text("request_id", request_id)
        _build(self, seq, extensions)

    @property
    def model(self):
        return self._first

    @property
    def created(self):
        return None if self._number < 0 else self._number

    @property
    def request_id(self):
        return self._second

    def _own(self):
        return (self._first, self.created, self._second)


@cython.final
cdef class ContentDelta(Event):
    """A fragment of generated text (draft, section 5.3.2): ``text``, ``index`` of its block, ``role``. ``reasoning`` is
    a fragment of what a vendor's model thought; it is never part of ``text``."""

    __match_args__ = ("text", "index", "role", "reasoning")
    type = "content.delta"

    def __init__(
        self, *, text="", index=0, role="assistant", reasoning=None, seq=None, extensions=None
    ):
        self._first = fields.text("text", text)
        self._number = fields.integer("index", index)
        self._second = fields.text("role", role)
        self._third = fields.optional_text("reasoning", reasoning)
        _build(self, seq, extensions)

    @property
    def text(self):
        return self._first

    @property
    def index(self):
        return self._number

    @property
    def role(self):
        return self._second

    @property
    def reasoning(self):
        return self._third

    def _own(self):
        return (self._first, self._number, self._second, self._third)

    def _envelope_members(self):
        return {"index": self._number, "role": self._second, "delta": {"text": self._first}}


@cython.final
cdef class ContentStop(Event):
    """The end of a content block (draft, section 5.3.3): ``stop_reason`` in the draft's words (a word that is none of
    them is handed on; None where the stream gave none) and ``index`` of the block."""

    __match_args__ = ("stop_reason", "index")
    type = "content.stop"

    def __init__(self, *, stop_reason=None, index=0, seq=None, extensions=None):
        self._first = fields.optional_text("stop_reason", stop_reason)
        self._number = fields.integer("index", index)
        _build(self, seq, extensions)

    @property
    def stop_reason(self):
        return self._first

    @property
    def index(self):
        return self._number

    def _own(self):
        return (self._first, self._number)


@cython.final
cdef class ToolCall(Event):
    """The model asks for a tool (draft, section 5.3.4): ``id``, ``name``, ``arguments`` (JSON text, as it came) and
    ``index`` of the block."""

    __match_args__ = ("id", "name", "arguments", "index")
    type = "tool.call"

    def __init__(
        self, *, id=None, name=None, arguments=None, index=0, seq=None, extensions=None
    ):
        self._first = fields.optional_text("id", id)
        self._second = fields.optional_text("name", name)
        self._third = fields.optional_text("arguments", arguments)
        self._number = fields.integer("index", index)
        _build(self, seq, extensions)

    @property
    def id(self):
        return self._first

    @property
    def name(self):
        return self._second

    @property
    def arguments(self):
        return self._third

    @property
    def index(self):
        return self._number

    def _own(self):
        return (self._first, self._second, self._third, self._number)


@cython.final
cdef class Usage(Event):
    """Token counts (draft, section 5.3.5): ``input_tokens`` and ``output_tokens``. The last usage of a stream holds its
    totals; nothing is to be summed."""

    __match_args__ = ("input_tokens", "output_tokens")
    type = "usage"

    def __init__(self, *, input_tokens=None, output_tokens=None, seq=None, extensions=None):
        self._number = _or_none(fields.optional_integer("input_tokens", input_tokens))
        self._other = _or_none(fields.optional_integer("output_tokens", output_tokens))
        _build(self, seq, extensions)

    @property
    def input_tokens(self):
        return None if self._number < 0 else self._number

    @property
    def output_tokens(self):
        return None if self._other < 0 else self._other

    def _own(self):
        return (self.input_tokens, self.output_tokens)


@cython.final
cdef class StreamError(Event):
    """Generation failed (draft, section 5.3.6): ``code`` in the draft's words (an unknown one is handed on) and
    ``message``, the endpoint's own words."""

    __match_args__ = ("code", "message")
    type = "error"

    def __init__(self, *, code=None, message=None, seq=None, extensions=None):
        self._first = fields.optional_text("code", code)
        self._second = fields.optional_text("message", message)
        _build(self, seq, extensions)

    @property
    def code(self):
        return self._first

    @property
    def message(self):
        return self._second

    def _own(self):
        return (self._first, self._second)

    def __repr__(self):
        # The endpoint's words may quote the prompt (draft, section 8.1).
        return f"StreamError(code={self._first!r}, seq={self.seq!r})"


@cython.final
cdef class StreamEnd(Event):
    """The stream ended as its protocol says (draft, section 5.3.7); ``request_id`` is echoed or None."""

    __match_args__ = ("request_id",)
    type = "stream.end"

    def __init__(self, *, request_id=None, seq=None, extensions=None):
        self._first = fields.optional_text("request_id", request_id)
        _build(self, seq, extensions)

    @property
    def request_id(self):
        return self._first

    def _own(self):
        return (self._first,)


@cython.final
cdef class UnknownEvent(Event):
    """An event whose ``type`` is none of the draft's seven; its content is in ``raw`` and ``json()``."""

    __match_args__ = ("type",)

    def __init__(self, *, type="", seq=None, extensions=None):
        self._first = fields.text("type", type)
        _build(self, seq, extensions)

    @property
    def type(self):
        return self._first

    def _own(self):
        return (self._first,)

    def _envelope_members(self):
        return {}


def _rebuild(str kind, tuple state):
    """What a pickle or a copy is made from again; public under the package so that either twin can read it."""
    if kind == "violation":
        return Violation(*state)
    if kind == "sse":
        return ServerSentEvent(*state)
    raw, seq, extensions, *own = state
    cls = _EVENT_CLASSES[kind]
    cdef Event event = cls(**dict(zip(cls.__match_args__, own)), seq=seq)
    if raw:
        event._source = raw
        event._size = len(raw)
    if extensions is True:
        event._in_envelope = True
    else:
        event._extensions = extensions
    return event


_rebuild.__module__ = "llmstream"

_EVENT_CLASSES = {
    "stream.start": StreamStart,
    "content.delta": ContentDelta,
    "content.stop": ContentStop,
    "tool.call": ToolCall,
    "usage": Usage,
    "error": StreamError,
    "stream.end": StreamEnd,
    "unknown": UnknownEvent,
}


# ---------------------------------------------------------------------------------------------------------------------
# Framing: bytes to blocks (WHATWG HTML, section 9.2.6)

cdef struct Bytes:
    unsigned char *data
    size_t size
    size_t capacity


cdef int bytes_reserve(Bytes *buffer, size_t size) except -1:
    cdef size_t capacity = buffer.capacity
    cdef unsigned char *data
    if size > capacity:
        capacity = max(size, capacity + capacity // 2, <size_t> 64)
        data = <unsigned char *> realloc(buffer.data, capacity)
        if data == NULL:
            raise MemoryError()
        buffer.data = data
        buffer.capacity = capacity
    return 0


cdef inline int bytes_add(Bytes *buffer, pointer data, size_t size) except -1:
    if size:
        if buffer.size + size > buffer.capacity:
            bytes_reserve(buffer, buffer.size + size)
        memcpy(buffer.data + buffer.size, data, size)
        buffer.size += size
    return 0


cdef inline int bytes_set(Bytes *buffer, pointer data, size_t size) except -1:
    buffer.size = 0
    return bytes_add(buffer, data, size)


cdef void bytes_free(Bytes *buffer) noexcept:
    free(buffer.data)
    memset(buffer, 0, sizeof(Bytes))


cdef inline void bytes_clear(Bytes *buffer) noexcept:
    buffer.size = 0
    if buffer.capacity > KEPT_CAPACITY:
        bytes_free(buffer)


cdef inline bytes bytes_copy(Bytes *buffer):
    return PyBytes_FromStringAndSize(<char *> buffer.data, <Py_ssize_t> buffer.size)


cdef enum:
    FRAMER_MORE = 0  # the chunk is used up
    FRAMER_NOTHING = 1  # a block without an event is over
    FRAMER_BLOCK = 2
    FRAMER_TOO_LARGE = 3
    ENDS_LF = 1
    ENDS_CRLF = 2
    ENDS_CR = 4


# The event under way is "simple" while it lies in one piece from its first byte: its values are then offsets from that
# byte, valid in the chunk and in the carry alike. Otherwise its values are kept apart and only the unfinished line is.
cdef struct Framer:
    size_t max_event_size
    bint dataless
    bint watch_stray
    bint stray_lost
    int bom  # bytes of the byte order mark seen; 4: the stream is past it
    bint swallow  # an LF that comes first belongs to a CR before it
    bint skipping  # to the blank line after an event that was too large
    bint skip_line  # that line is not empty
    unsigned long long offset  # of the chunk's first byte
    unsigned long long event_offset
    long long retry
    Bytes id
    Bytes committed_id
    bint id_changed
    unsigned long long id_number  # how many there were
    Bytes stray
    # the event under way
    bint carried  # it began in an earlier chunk
    bint simple
    bint flushed
    bint any_field
    bint has_name
    bint name_kept
    bint has_id
    bint id_spaced
    bint data_joined
    unsigned char ends
    size_t held
    size_t data_lines
    size_t data_at
    size_t data_size
    size_t name_at
    size_t name_size
    size_t id_at
    size_t id_size
    long long retry_of_block
    size_t line_at  # of the unfinished line, in the carry
    Bytes carry
    Bytes joined
    Bytes name
    # the block just found
    pointer block_begin
    pointer block_end
    pointer block_data
    size_t block_size
    pointer block_name
    size_t block_name_size
    bint block_in_place
    bint block_learnable


cdef void framer_free(Framer *f) noexcept:
    bytes_free(&f.id)
    bytes_free(&f.committed_id)
    bytes_free(&f.stray)
    bytes_free(&f.carry)
    bytes_free(&f.joined)
    bytes_free(&f.name)


cdef inline void framer_reset(Framer *f) noexcept:
    f.carried = False
    f.simple = True
    f.flushed = f.any_field = f.has_name = f.name_kept = f.has_id = f.data_joined = False
    f.ends = 0
    f.held = f.data_lines = f.data_size = f.name_size = 0
    f.retry_of_block = -1
    f.line_at = 0


cdef int framer_begin(Framer *f, pointer *place, pointer end) except -1:
    """What has to be settled at a chunk's first bytes: the byte order mark, the LF of a CRLF that was cut."""
    cdef pointer p = place[0]
    cdef pointer mark = b"\xef\xbb\xbf"
    if f.bom < 4:
        while p < end and f.bom < 3 and p[0] == mark[f.bom]:
            f.bom += 1
            p += 1
        if f.bom == 3:
            f.bom = 4
        elif p < end:
            if f.bom:
                # What looked like a mark belongs to the first line.
                bytes_add(&f.carry, mark, <size_t> f.bom)
                f.carried = True
                f.event_offset = 0
            f.bom = 4
    if f.swallow and p < end:
        f.swallow = False
        if p[0] == c"\n":
            if f.carried and f.simple:
                bytes_add(&f.carry, p, 1)
                f.line_at = f.carry.size
                f.ends |= ENDS_CRLF
            p += 1
        else:
            f.ends |= ENDS_CR
    place[0] = p
    return 0


cdef int framer_next(Framer *f, pointer chunk, pointer *place, pointer end) except -1:
    """Goes on to the next block, or to the end of the chunk."""
    cdef pointer p = place[0]
    cdef pointer begin = p
    cdef pointer stop
    cdef pointer after
    cdef size_t size
    if f.skipping:
        return framer_skip(f, place, end)
    if not f.carried:
        if f.carry.size or f.joined.size:
            bytes_clear(&f.carry)
            bytes_clear(&f.joined)
        framer_reset(f)
        f.event_offset = f.offset + <unsigned long long> (p - chunk)
    while True:
        stop = scan_line_end(p, end)
        size = <size_t> (stop - p)
        if f.carried:
            size += f.carry.size - f.line_at
        after = stop
        if stop < end:
            after += 1
            if stop[0] == c"\r":
                if after == end:
                    f.swallow = True
                elif after[0] == c"\n":
                    after += 1
                    f.ends |= ENDS_CRLF
                else:
                    f.ends |= ENDS_CR
            else:
                f.ends |= ENDS_LF
        if f.held + size > f.max_event_size:
            place[0] = after
            return framer_too_large(f, stop == end)
        if stop == end:
            place[0] = end
            if f.carried:
                bytes_add(&f.carry, p, <size_t> (end - p))
            elif end > begin:
                if f.simple:
                    bytes_add(&f.carry, begin, <size_t> (end - begin))
                    f.line_at = <size_t> (p - begin)
                else:
                    framer_flush(f, begin)
                    bytes_add(&f.carry, p, <size_t> (end - p))
                f.carried = True
            return FRAMER_MORE
        if size == 0:
            place[0] = after
            if f.carried:
                if f.simple:
                    bytes_add(&f.carry, stop, <size_t> (after - stop))
                return framer_dispatch(f, f.carry.data, f.carry.data + f.carry.size, False)
            return framer_dispatch(f, begin, after, True)
        if f.carried:
            bytes_add(&f.carry, p, <size_t> (stop - p))
            framer_field(f, f.carry.data, f.line_at, size)
            if f.simple:
                bytes_add(&f.carry, stop, <size_t> (after - stop))
                f.line_at = f.carry.size
            else:
                framer_flush(f, f.carry.data)
                f.carry.size = f.line_at = 0
        else:
            framer_field(f, begin, <size_t> (p - begin), size)
        p = after


cdef int framer_skip(Framer *f, pointer *place, pointer end) except -1:
    cdef pointer p = place[0]
    cdef pointer stop
    cdef bint empty
    while p < end:
        stop = scan_line_end(p, end)
        if stop > p:
            f.skip_line = True
        if stop == end:
            break
        empty = not f.skip_line
        f.skip_line = False
        p = stop + 1
        if stop[0] == c"\r":
            if p == end:
                f.swallow = True
            elif p[0] == c"\n":
                p += 1
        if empty:
            f.skipping = False
            place[0] = p
            return FRAMER_NOTHING
    place[0] = end
    return FRAMER_MORE


cdef int framer_too_large(Framer *f, bint in_line) except -1:
    f.skipping = True
    f.skip_line = in_line
    if f.id_changed:
        bytes_set(&f.id, f.committed_id.data, f.committed_id.size)
        f.id_changed = False
    bytes_clear(&f.carry)
    bytes_clear(&f.joined)
    framer_reset(f)
    return FRAMER_TOO_LARGE


cdef int framer_flush(Framer *f, pointer base) except -1:
    """Keeps the values apart from the bytes of the event, which are about to go."""
    if not f.flushed:
        f.flushed = True
        if f.data_lines == 1 and not f.data_joined:
            bytes_set(&f.joined, base + f.data_at, f.data_size)
            f.data_joined = True
        if f.has_name and not f.name_kept:
            bytes_set(&f.name, base + f.name_at, f.name_size)
            f.name_kept = True
    return 0


cdef int framer_field(Framer *f, pointer base, size_t at, size_t size) except -1:
    """One line that is not empty, at an offset from the event's first byte (or from the carry's)."""
    cdef pointer line = base + at
    cdef pointer colon = <pointer> memchr(line, c":", size)
    cdef size_t name_size = size if colon == NULL else <size_t> (colon - line)
    cdef pointer value = line + size
    cdef bint spaced = False
    if colon != NULL:
        if name_size == 0:
            f.simple = False
            return 0
        value = colon + 1
        if value < line + size and value[0] == c" ":
            value += 1
            spaced = True
    cdef size_t value_size = <size_t> (line + size - value)
    if name_size == 4 and memcmp(line, b"data", 4) == 0:
        f.any_field = True
        f.held += value_size + (f.data_lines > 0)
        if f.data_lines == 0 and not f.flushed:
            f.data_at = <size_t> (value - base)
            f.data_size = value_size
        else:
            if f.data_lines and not f.data_joined:
                bytes_set(&f.joined, base + f.data_at, f.data_size)
            if f.data_lines:
                bytes_add(&f.joined, b"\n", 1)
                f.simple = False
            else:
                f.joined.size = 0
            bytes_add(&f.joined, value, value_size)
            f.data_joined = True
        f.data_lines += 1
    elif name_size == 5 and memcmp(line, b"event", 5) == 0:
        f.any_field = True
        f.held = f.held - f.name_size + value_size
        f.name_size = value_size
        if f.has_name:
            f.simple = False
        f.has_name = True
        if f.flushed:
            bytes_set(&f.name, value, value_size)
            f.name_kept = True
        else:
            f.name_at = <size_t> (value - base)
            f.name_kept = False
    elif name_size == 2 and memcmp(line, b"id", 2) == 0:
        f.any_field = True
        if value_size and memchr(value, 0, value_size) != NULL:
            f.simple = False
            return 0
        f.held += value_size
        bytes_set(&f.id, value, value_size)
        f.id_changed = True
        f.id_number += 1
        if f.has_id or colon == NULL:
            f.simple = False
        f.has_id = True
        f.id_at = <size_t> (value - base)
        f.id_size = value_size
        f.id_spaced = spaced
    elif name_size == 5 and memcmp(line, b"retry", 5) == 0:
        f.any_field = True
        f.simple = False
        framer_retry(f, value, value_size)
    else:
        f.simple = False
        if f.watch_stray:
            framer_watch(f, line, size)
    return 0


cdef void framer_retry(Framer *f, pointer value, size_t size) noexcept:
    cdef long long found = 0
    cdef size_t at
    cdef int digit
    if size == 0:
        return
    for at in range(size):
        digit = value[at] - c"0"
        if digit < 0 or digit > 9:
            return
        if found > (MAX_RETRY - digit) // 10:
            found = MAX_RETRY
        else:
            found = found * 10 + digit
    f.retry = f.retry_of_block = found


cdef int framer_watch(Framer *f, pointer line, size_t size) except -1:
    # A JSON body where a stream was expected is no field of SSE; it may hold the error that explains everything.
    cdef size_t at = 0
    if f.stray_lost:
        return 0
    if f.stray.size == 0:
        while at < size and (line[at] == c" " or 9 <= line[at] <= 13):
            at += 1
        if at == size or (line[at] != c"{" and line[at] != c"["):
            return 0
    if f.stray.size + size + 1 > MAX_STRAY:
        f.stray_lost = True
        bytes_free(&f.stray)
        return 0
    bytes_add(&f.stray, line, size)
    return bytes_add(&f.stray, b"\n", 1)


cdef int framer_dispatch(Framer *f, pointer begin, pointer end, bint in_place) except -1:
    f.carried = False
    if f.id_changed:
        bytes_set(&f.committed_id, f.id.data, f.id.size)
        f.id_changed = False
    if f.data_lines == 0 and not (f.dataless and f.any_field):
        return FRAMER_NOTHING
    f.block_begin = begin
    f.block_end = end
    f.block_in_place = in_place and not f.data_joined
    if f.data_lines == 0:
        f.block_data = begin
        f.block_size = 0
    elif f.data_joined:
        f.block_data = f.joined.data
        f.block_size = f.joined.size
    else:
        f.block_data = begin + f.data_at
        f.block_size = f.data_size
    f.block_name = begin + f.name_at
    if f.name_kept:
        f.block_name = f.name.data
    f.block_name_size = f.name_size
    # A CR whose LF may still come is no whole line end.
    f.block_learnable = (
        f.simple
        and f.data_lines == 1
        and not f.swallow
        and (f.ends == ENDS_LF or f.ends == ENDS_CRLF)
    )
    return FRAMER_BLOCK


cdef int framer_close(Framer *f) except -1:
    """The unfinished last event, if it holds data."""
    cdef size_t size
    if f.skipping or not f.carried:
        return FRAMER_NOTHING
    size = f.carry.size - f.line_at
    if size:
        framer_field(f, f.carry.data, f.line_at, size)
        if not f.simple:
            framer_flush(f, f.carry.data)
    f.id_changed = False
    f.ends = 0
    return framer_dispatch(f, f.carry.data, f.carry.data + f.carry.size, False)


cdef bytes _as_bytes(chunk):
    cdef Py_buffer view
    cdef bytes copy
    if PyBytes_CheckExact(chunk):
        return <bytes> chunk
    if isinstance(chunk, str):
        raise TypeError("a chunk must be bytes-like, not str")
    try:
        PyObject_GetBuffer(chunk, &view, PyBUF_SIMPLE)
    except (BufferError, TypeError):
        raise TypeError(
            f"a chunk must be a contiguous bytes-like object, not {type(chunk).__name__}"
        ) from None
    try:
        copy = PyBytes_FromStringAndSize(<char *> view.buf, view.len)
    finally:
        PyBuffer_Release(&view)
    return copy


cdef size_t _size(str name, value) except? 0:
    if fields.integer(name, value) < 1:
        raise ValueError(f"{name} must be at least 1")
    return value


cdef bint _errors(value) except -1:
    if value not in ("replace", "strict"):
        raise ValueError('errors must be "replace" or "strict"')
    return value == "strict"


cdef str _decode(pointer data, size_t size):
    return PyUnicode_DecodeUTF8(<const char *> data, <Py_ssize_t> size, b"replace")


@cython.final
cdef class SSEDecoder:
    """Reads a stream of Server-Sent Events (WHATWG HTML, section 9.2), in chunks cut anywhere.

    ``max_event_size``   bytes that one event may hold; more raises EventTooLargeError
    ``errors``           "replace" (invalid UTF-8 becomes U+FFFD, as WHATWG says) or "strict" (SSEError)
    ``dataless``         also hand out blocks without a data line, as some peers do
    ``unfinished``       ``close()`` hands out the last event without its blank line, its ``complete`` False
    ``last_event_id``    the id to start with, after a reconnection

    After an error the decoder is closed; ``feed`` on a closed decoder raises ValueError.
    """

    cdef Framer _framer
    cdef bint _strict
    cdef bint _unfinished
    cdef bint _closed
    cdef unsigned long long _number
    cdef str _id  # the id as text, and which of them it is
    cdef unsigned long long _id_number

    def __cinit__(self):
        memset(&self._framer, 0, sizeof(Framer))
        self._framer.retry = -1
        framer_reset(&self._framer)

    def __dealloc__(self):
        framer_free(&self._framer)

    def __init__(
        self,
        *,
        max_event_size=DEFAULT_MAX_EVENT_SIZE,
        errors="replace",
        dataless=False,
        unfinished=False,
        last_event_id="",
    ):
        self._framer.max_event_size = _size("max_event_size", max_event_size)
        self._framer.dataless = bool(dataless)
        cdef bytes start = fields.text("last_event_id", last_event_id).encode()
        cdef pointer data = <pointer> PyBytes_AS_STRING(start)
        bytes_set(&self._framer.id, data, <size_t> len(start))
        bytes_set(&self._framer.committed_id, data, <size_t> len(start))
        self._strict = _errors(errors)
        self._unfinished = bool(unfinished)
        self._id = start.decode()

    @property
    def last_event_id(self):
        """The last event id, as a client sends it back when it reconnects."""
        return bytes_copy(&self._framer.committed_id).decode("utf-8", "replace")

    @property
    def retry(self):
        """The latest reconnection time in milliseconds, at most 2**63 - 1; None where the stream gave none."""
        return None if self._framer.retry < 0 else self._framer.retry

    def feed(self, chunk):
        """The events that are complete with this chunk (any contiguous bytes-like object)."""
        if self._closed:
            raise ValueError("the decoder is closed")
        cdef bytes data = _as_bytes(chunk)
        cdef pointer begin = <pointer> PyBytes_AS_STRING(data)
        cdef pointer p = begin
        cdef pointer end = begin + PyBytes_GET_SIZE(data)
        cdef Framer *f = &self._framer
        cdef int found
        cdef list out = []
        framer_begin(f, &p, end)
        while p < end:
            found = framer_next(f, begin, &p, end)
            if found >= FRAMER_BLOCK:
                out.append(self._event(found, True, out))
        f.offset += <unsigned long long> (end - begin)
        return out

    def close(self):
        """Ends the stream. An unfinished last event is dropped, or handed out with ``unfinished``. Idempotent."""
        if self._closed:
            return []
        self._closed = True
        if framer_close(&self._framer) != FRAMER_BLOCK or not self._unfinished:
            return []
        return [self._event(FRAMER_BLOCK, False, [])]

    cdef ServerSentEvent _event(self, int found, bint complete, list out):
        cdef Framer *f = &self._framer
        cdef ServerSentEvent event
        if found == FRAMER_TOO_LARGE:
            self._closed = True
            raise EventTooLargeError(
                _message(rules.TOO_LARGE, self._number, f.event_offset, f.max_event_size),
                offset=f.event_offset,
                events=out,
            )
        if self._strict and not (
            scan_utf8_valid(f.block_data, f.block_data + f.block_size)
            and scan_utf8_valid(f.block_name, f.block_name + f.block_name_size)
            and scan_utf8_valid(f.id.data, f.id.data + f.id.size)
        ):
            self._closed = True
            message = _message(rules.BAD_UTF8, self._number, f.event_offset)
            raise SSEError(message, offset=f.event_offset, events=out)
        self._number += 1
        if self._id_number != f.id_number:
            self._id = _decode(f.id.data, f.id.size)
            self._id_number = f.id_number
        event = ServerSentEvent.__new__(ServerSentEvent)
        event.event = _decode(f.block_name, f.block_name_size) if f.block_name_size else "message"
        event.data = _decode(f.block_data, f.block_size)
        event.id = self._id
        event._retry = f.retry_of_block
        event.complete = complete
        return event


cdef str _message(int rule, event, offset, detail=None):
    found = rules.RULES[rule]
    return f"{found.requirement}: {_words(rule, detail)} (event {event}, offset {offset})"


cdef str _words(int rule, detail):
    text = rules.RULES[rule].message
    return text if detail is None else f"{text}: {detail}"


# ---------------------------------------------------------------------------------------------------------------------
# The JSON walk: declared paths as the tables that json_walk follows

cdef enum:
    KIND_TEXT = 0
    KIND_REASONING = 1
    KIND_ARGUMENTS = 2
    MAX_CONSTANTS = 8

cdef struct Constant:
    short leaf
    unsigned char kind  # JSON_STRING, JSON_TRUE, JSON_FALSE
    pointer text
    size_t size


cdef struct FormTable:
    int kind
    short content
    short index
    short call
    short input_tokens
    short output_tokens
    unsigned long long absent
    unsigned long long empty
    int constant_count
    Constant constants[MAX_CONSTANTS]


@cython.final
cdef class Tables:
    """A Declaration in the form that the walk reads; made once for each."""

    cdef json_node *nodes
    cdef json_edge *edges
    cdef FormTable *forms
    cdef int form_count
    cdef list keys  # keeps the bytes of keys and constants alive

    def __cinit__(self, declaration):
        self.keys = []
        all_nodes = []
        queue = [declaration.root]
        while queue:
            node = queue.pop(0)
            all_nodes.append(node)
            queue.extend(node.children.values())
        edge_total = sum(len(node.steps()) for node in all_nodes)
        if edge_total > 64:
            raise ValueError("more than 64 steps on declared paths")
        self.nodes = <json_node *> malloc(max(len(all_nodes), 1) * sizeof(json_node))
        self.edges = <json_edge *> malloc(max(edge_total, 1) * sizeof(json_edge))
        self.forms = <FormTable *> malloc(max(len(declaration.forms), 1) * sizeof(FormTable))
        if self.nodes == NULL or self.edges == NULL or self.forms == NULL:
            raise MemoryError()
        self._fill_nodes(all_nodes)
        for number, form in enumerate(declaration.forms):
            self._fill_form(&self.forms[number], form)
        self.form_count = len(declaration.forms)

    def __dealloc__(self):
        free(self.nodes)
        free(self.edges)
        free(self.forms)

    cdef int _fill_nodes(self, list all_nodes) except -1:
        numbers = {id(node): number for number, node in enumerate(all_nodes)}
        first = {}
        cdef int at = 0
        cdef json_edge *edge
        for number, node in enumerate(all_nodes):
            steps = node.steps()
            first[number] = at
            self.nodes[<int> number].first_edge = at
            self.nodes[<int> number].edge_count = len(steps)
            self.nodes[<int> number].is_array = node.is_array
            at += len(steps)

        def edges_below(node):
            found = 0
            start = first[numbers[id(node)]]
            for place, step in enumerate(node.steps()):
                found |= 1 << (start + place)
                if step in node.children:
                    found |= edges_below(node.children[step])
            return found

        for number, node in enumerate(all_nodes):
            for place, step in enumerate(node.steps()):
                edge = &self.edges[<int> (first[number] + place)]
                memset(edge, 0, sizeof(json_edge))
                if node.is_array:
                    edge.item = step
                else:
                    edge.key = self._text(step)
                    edge.key_length = len(<bytes> self.keys[len(self.keys) - 1])
                    if '"' not in step and "\\" not in step and min(step, default="x") >= " ":
                        edge.item = JSON_PLAIN_KEY
                edge.leaf = node.leaves.get(step, -1)
                child = node.children.get(step)
                edge.child = -1 if child is None else numbers[id(child)]
                edge.leaves_below = sum(1 << leaf for leaf in node.below(step))
                edge.edges_below = 0 if child is None else edges_below(child)
        return 0

    cdef int _fill_form(self, FormTable *table, form) except -1:
        memset(table, 0, sizeof(FormTable))
        table.kind = ("text", "reasoning", "arguments").index(form.kind)
        table.content = form.content
        table.index = form.index
        table.call = form.call
        table.input_tokens = form.input_tokens
        table.output_tokens = form.output_tokens
        table.absent = sum({1 << leaf for leaf in form.absent})
        table.empty = sum({1 << leaf for leaf in form.empty})
        if len(form.when) > MAX_CONSTANTS:
            raise ValueError(f"more than {MAX_CONSTANTS} constants in a Delta")
        table.constant_count = len(form.when)
        cdef Constant *constant
        for place, (leaf, value) in enumerate(form.when):
            constant = &table.constants[<int> place]
            constant.leaf = leaf
            if isinstance(value, str):
                constant.kind = JSON_STRING
                constant.text = self._text(value)
                constant.size = len(<bytes> self.keys[len(self.keys) - 1])
            else:
                constant.kind = JSON_TRUE if value else JSON_FALSE
        return 0

    cdef pointer _text(self, text) except NULL:
        cdef bytes kept = text.encode()
        self.keys.append(kept)
        return <pointer> PyBytes_AS_STRING(kept)


cdef Tables _tables_of(declaration):
    if declaration.compiled is None:
        declaration.compiled = Tables(declaration)
    return declaration.compiled


# ---------------------------------------------------------------------------------------------------------------------
# Envelopes: JSON text to members

cdef enum:
    LEAF_V = 0
    LEAF_SEQ
    LEAF_TYPE
    LEAF_INDEX
    LEAF_ROLE
    LEAF_DELTA
    LEAF_TEXT
    LEAF_MODEL
    LEAF_CREATED
    LEAF_REQUEST_ID
    LEAF_STOP_REASON
    LEAF_ID
    LEAF_NAME
    LEAF_ARGUMENTS
    LEAF_INPUT_TOKENS
    LEAF_OUTPUT_TOKENS
    LEAF_CODE
    LEAF_MESSAGE

cdef enum:
    EVENT_START = 0
    EVENT_DELTA
    EVENT_STOP
    EVENT_TOOL_CALL
    EVENT_USAGE
    EVENT_ERROR
    EVENT_END
    EVENT_UNKNOWN

cdef enum:
    STATE_NEW = 0
    STATE_STREAMING
    STATE_ERRORED
    STATE_ENDED

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

cdef unsigned char _next_state[4][8]
cdef int _broken_rule[4][8]


cdef int _load_lifecycle() except -1:
    for number, state in enumerate(rules.STATES):
        for kind, (following, rule) in enumerate(rules.LIFECYCLE[state]):
            _next_state[<int> number][<int> kind] = rules.STATES.index(following)
            _broken_rule[<int> number][<int> kind] = rule
    return 0


_load_lifecycle()


cdef inline bint _is(pointer data, size_t size, const char *word, size_t word_size) noexcept nogil:
    return size == word_size and memcmp(data, word, word_size) == 0


cdef int _kind_of(pointer name, size_t size) noexcept nogil:
    if _is(name, size, b"content.delta", 13):
        return EVENT_DELTA
    if _is(name, size, b"stream.start", 12):
        return EVENT_START
    if _is(name, size, b"content.stop", 12):
        return EVENT_STOP
    if _is(name, size, b"tool.call", 9):
        return EVENT_TOOL_CALL
    if _is(name, size, b"usage", 5):
        return EVENT_USAGE
    if _is(name, size, b"error", 5):
        return EVENT_ERROR
    if _is(name, size, b"stream.end", 10):
        return EVENT_END
    return EVENT_UNKNOWN


# ---------------------------------------------------------------------------------------------------------------------
# The parser


cdef str _text(pointer data, size_t size, unsigned flags, Bytes *scratch):
    """The body of a JSON string as a str."""
    cdef str text
    if flags & SCAN_ESCAPE:
        bytes_reserve(scratch, size)
        size = scan_unescape(data, data + size, scratch.data)
        return PyUnicode_DecodeUTF8(<const char *> scratch.data, <Py_ssize_t> size, NULL)
    if flags & SCAN_HIGH:
        return PyUnicode_DecodeUTF8(<const char *> data, <Py_ssize_t> size, NULL)
    if size == 0:
        return ""
    text = PyUnicode_New(<Py_ssize_t> size, 127)
    memcpy(PyUnicode_DATA(text), data, size)
    return text


cdef int _add_span(
    shape_span *spans, int count, size_t *place, size_t start, size_t length, int kind
) noexcept:
    spans[count].gap = <unsigned> (start - place[0])
    spans[count].value = <unsigned> length
    spans[count].kind = <unsigned char> kind
    spans[count].fixed = kind >= SLOT_ANY_STRING
    place[0] = start + length
    return count + 1


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
    cdef bint _started
    cdef bint _skip_version
    cdef bint _too_many
    cdef bint _detecting
    cdef bint _undecided
    cdef bint _untold
    cdef bint _alternatives
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
    cdef Bytes _scratch
    cdef Bytes _replaced
    cdef Bytes _texts
    cdef bint _texts_high
    cdef bint _text_only
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
        if self._out is not None:
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
        self._out = []
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

    def feed(self, chunk):
        """The events that are complete with this chunk (any contiguous bytes-like object)."""
        cdef bytes data = _as_bytes(chunk)
        self._begin()
        try:
            if self._head is not None:
                data = self._sniff(data)
            self._bytes(data)
        finally:
            self._end()
        return self._take_out()

    def feed_payload(self, data, event=None):
        """The events of one payload that came without SSE around it; ``event`` names it where its framing does."""
        cdef bytes source = _as_bytes(data)
        self._begin()
        try:
            self._frame(event, source, self._framer.offset)
            self._framer.offset += <unsigned long long> len(source)
        finally:
            self._end()
        return self._take_out()

    def feed_text(self, chunk):
        """Only the text of this chunk: of the primary answer, in order of arrival."""
        if self._strict or self._errors_strict:
            # An error carries the events before it, so they are needed.
            return self._text_of(self.feed(chunk))
        cdef bytes data = _as_bytes(chunk)
        cdef str text
        self._begin()
        self._text_only = True
        self._texts_high = False
        try:
            if self._head is not None:
                data = self._sniff(data)
            self._bytes(data)
            text = _text(
                self._texts.data, self._texts.size, SCAN_HIGH if self._texts_high else 0, NULL
            )
        finally:
            self._text_only = False
            bytes_clear(&self._texts)
            self._end()
            self._take_out()
        return text

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
            if head:
                self._bytes(head)
            self._tail()
            self._close_framing()
            self._stray()
            self._offset = self._framer.offset
            self._forget_payload()
            if self._detecting and self._error is None:
                self._give_up()
            if self._dialect is not None and not self._detecting:
                self._accept(self._call(self._dialect.finish, (False,)), NULL, 0)
            self._finish()
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
        return 0

    cdef int _end(self) except -1:
        self._busy = False
        self._chunk = None
        self._payload_bytes = None
        return 0

    cdef list _take_out(self):
        cdef list out = self._out
        self._out = []
        return out

    cdef str _text_of(self, list events):
        texts = []
        for event in events:
            if type(event) is ContentDelta and not (self._alternatives and event.index):
                texts.append(event.text)
        return "".join(texts)

    cdef int _bytes(self, bytes data) except -1:
        if self._framing is not None:
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
                after = self._match(p, end)
                if after != NULL:
                    p = after
                    continue
            found = framer_next(f, begin, &p, end)
            if found >= FRAMER_BLOCK:
                self._block(found)
        f.offset += <unsigned long long> (end - begin)
        return 0

    cdef bytes _sniff(self, bytes data):
        """Tells the framing by the first byte; what came so far is held until there is one."""
        head = self._head + data
        body = head.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
        if not body or (len(head) < 3 and b"\xef\xbb\xbf".startswith(head)):
            self._head = head
            return b""
        self._head = None
        factory = self._dialect.framings.get(<unsigned char> body[0])
        if factory is None:
            return head
        self._framing = factory(self._framer.max_event_size)
        self._framing_at = len(head) - len(body)
        self._framer.offset = self._framing_at
        return body

    cdef int _frames(self, method, tuple arguments) except -1:
        try:
            frames = method(*arguments)
        except EventTooLargeError as error:
            for frame in error.events:
                self._frame(frame.event, frame.data, self._framing_at + frame.offset)
            self._offset = self._framing_at + (error.offset or 0)
            self._seq = -1
            self._record(rules.TOO_LARGE, self._framer.max_event_size)
            self._number += 1
            return 0
        for frame in frames:
            self._frame(frame.event, frame.data, self._framing_at + frame.offset)
        return 0

    cdef int _close_framing(self) except -1:
        if self._framing is None:
            return 0
        self._frames(self._framing.close, ())
        self._offset = self._framer.offset
        if self._framing.broken:
            self._record(rules.FRAMING)
        elif self._framing.unfinished:
            self._record(rules.TAIL_DROPPED)
        return 0

    cdef int _frame(self, event, bytes data, offset) except -1:
        cdef bytes name = b"" if event is None else event.encode("utf-8", "replace")
        cdef pointer begin = <pointer> PyBytes_AS_STRING(data)
        self._in_place = True
        self._chunk = data
        self._chunk_begin = begin
        self._payload(
            offset,
            <pointer> PyBytes_AS_STRING(name),
            <size_t> len(name),
            False,
            begin,
            <size_t> len(data),
            False,
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
            after = self._match(f.block_begin, f.block_end)
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
        cdef int learn  # the form by which a shape may be learned; -2: none
        if self._dialect is None:
            learn = self._envelope(name, name_size, framed, data, size, &result)
        else:
            learn = self._vendor(name, name_size, data, size, &result)
        self._settle()
        self._number += 1
        if learn != -2 and learnable and before == self._violation_count and not result.duplicates:
            self._remember(learn, &result, missed)
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

    cdef int _place(self, Event event, pointer data, size_t size) except -1:
        """Where an event's payload lies."""
        if self._in_place:
            event._source = self._chunk
            event._start = data - self._chunk_begin
        else:
            if self._payload_bytes is None:
                self._payload_bytes = PyBytes_FromStringAndSize(
                    <const char *> data, <Py_ssize_t> size
                )
            event._source = self._payload_bytes
            event._start = 0
        event._size = <Py_ssize_t> size
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
            if leaf.flags & SCAN_LONE:
                self._record(rules.LONE_SURROGATE)
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

    cdef str _string(self, pointer base, json_result *result, int number, rule):
        cdef json_leaf *leaf = self._leaf(result, number)
        if leaf == NULL or leaf.kind != JSON_STRING:
            self._record(rule)
            return None
        if leaf.flags & SCAN_LONE:
            self._record(rules.LONE_SURROGATE)
        return _text(base + leaf.start, leaf.length, leaf.flags, &self._scratch)

    cdef str _read_request_id(self, pointer base, json_result *result):
        if self._leaf(result, LEAF_REQUEST_ID) == NULL:
            return None
        return self._string(base, result, LEAF_REQUEST_ID, rules.BAD_REQUEST_ID)

    cdef StreamStart _read_start(self, pointer base, json_result *result):
        cdef StreamStart made = StreamStart.__new__(StreamStart)
        made._first = self._string(base, result, LEAF_MODEL, rules.BAD_MODEL)
        made._number = self._count(base, result, LEAF_CREATED, rules.BAD_CREATED)
        made._second = self._read_request_id(base, result)
        if self._request_id is None:
            self._request_id = made._second
        return made

    cdef ContentDelta _read_delta(self, pointer base, json_result *result):
        cdef long long index = self._count(base, result, LEAF_INDEX, rules.BAD_DELTA_INDEX)
        cdef json_leaf *role = self._leaf(result, LEAF_ROLE)
        cdef json_leaf *delta = self._leaf(result, LEAF_DELTA)
        cdef json_leaf *text = NULL
        cdef str other_role = "assistant"
        if index < 0:
            index = 0
        if not self._equals(base, role, b"assistant", 9):
            self._record(rules.BAD_ROLE)
            if role != NULL and role.kind == JSON_STRING:
                if role.flags & SCAN_LONE:
                    self._record(rules.LONE_SURROGATE)
                other_role = _text(base + role.start, role.length, role.flags, &self._scratch)
        if delta == NULL or delta.kind != JSON_OBJECT:
            self._record(rules.BAD_DELTA)
        else:
            text = self._leaf(result, LEAF_TEXT)
            if text == NULL or text.kind != JSON_STRING:
                text = NULL
                self._record(rules.BAD_TEXT)
            elif text.flags & SCAN_LONE:
                self._record(rules.LONE_SURROGATE)
        self._open(index)
        if self._text_only:
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
        cdef long long index = self._count(base, result, LEAF_INDEX, rules.BAD_STOP_INDEX)
        if index < 0:
            index = 0
        made._number = index
        made._first = self._string(base, result, LEAF_STOP_REASON, rules.BAD_STOP_REASON)
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
        cdef long long index = self._count(base, result, LEAF_INDEX, rules.BAD_CALL_INDEX)
        if index < 0:
            index = 0
        made._number = index
        made._first = self._string(base, result, LEAF_ID, rules.BAD_CALL_ID)
        made._second = self._string(base, result, LEAF_NAME, rules.BAD_CALL_NAME)
        made._third = self._string(base, result, LEAF_ARGUMENTS, rules.BAD_ARGUMENTS)
        if made._first is not None:
            if self._call_ids is None:
                self._call_ids = set()
            if made._first in self._call_ids:
                self._record(rules.REPEATED_CALL_ID)
            elif self._room(len(self._call_ids)):
                self._call_ids.add(made._first)
        if made._third is not None and not self._is_json(made._third):
            self._record(rules.ARGUMENTS_NOT_JSON)
        self._open(index)
        return made

    cdef bint _is_json(self, str text) except -1:
        cdef Py_ssize_t size
        cdef const char *data = PyUnicode_AsUTF8AndSize(text, &size)
        return self._is_json_text(<pointer> data, <size_t> size)

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
        made._number = self._count(base, result, LEAF_INPUT_TOKENS, rules.BAD_INPUT_TOKENS)
        made._other = self._count(base, result, LEAF_OUTPUT_TOKENS, rules.BAD_OUTPUT_TOKENS)
        return made

    cdef StreamError _read_error(self, pointer base, json_result *result):
        cdef StreamError made = StreamError.__new__(StreamError)
        made._first = self._string(base, result, LEAF_CODE, rules.BAD_CODE)
        made._second = self._string(base, result, LEAF_MESSAGE, rules.BAD_MESSAGE)
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
                self._add_str(made)
        else:
            self._out.append(made)
        if kind is Usage:
            self._usage = <Usage> made
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
        if self._started:
            for at in range(self._tables.form_count):
                if self._fit(&self._tables.forms[at], base, result, &found):
                    self._yield_form(&self._tables.forms[at], &found, data, size)
                    return at
        text = _decode(base, base_size)
        whole, halves = payload.without_lone_surrogates(text)
        if halves:
            self._record(rules.LONE_SURROGATE)
        value = self._value(whole)
        if value is not None:
            self._accept(self._call(dialect.translate, (value, event)), data, size)
        return -2

    cdef object _value(self, str text):
        try:
            return payload.loads(text)
        except RecursionError:
            self._record(rules.TOO_DEEP)
        return None

    cdef bint _fit(
        self, FormTable *form, pointer base, json_result *result, shape_found *found
    ) except -1:
        """Whether a payload has this form, and its fragment, index, call and token counts (-1: none)."""
        cdef json_leaf *leaf = self._leaf(result, form.content)
        cdef unsigned long long bits
        cdef int at
        cdef Constant *constant
        if leaf == NULL or leaf.kind != JSON_STRING or leaf.length == 0 or leaf.flags & SCAN_LONE:
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
                if leaf.kind != JSON_NULL and not (
                    leaf.kind == JSON_STRING and leaf.length == 0 and not (form.absent >> at) & 1
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
            self._dialect.touch(found.index)
        if form.kind == KIND_ARGUMENTS:
            text = _text(
                found.content, found.content_size, found.content_flags, &self._scratch
            )
            self._dialect.append_arguments(found.index, found.call, text)
            self._drain()
        elif self._text_only:
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
            self._dialect.counted(self._usage.input_tokens, self._usage.output_tokens)
        try:
            events = list(method(*arguments))
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
            events = []
            self._record(rules.BAD_PAYLOAD)
        self._drain()
        return events

    cdef int _drain(self) except -1:
        reports = self._dialect.reports
        if reports:
            self._dialect.reports = []
            for rule in reports:
                self._record(rule)
        return 0

    cdef int _accept(self, list events, pointer data, size_t size) except -1:
        """Numbers a dialect's events and takes note of what they say."""
        cdef Event event
        cdef Event made
        for event in events:
            if self._state == STATE_ENDED:
                break
            kind = type(event)
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
        found = self._dialect.detect(event, copy)
        if found is not None:
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
            self._record(rules.UNKNOWN_DIALECT, ", ".join(self._dialect.candidates))
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
        was_complete = self._dialect is not None and self._dialect.complete
        self._in_tail = True
        f.block_learnable = False
        self._block(FRAMER_BLOCK)
        if was_complete:
            self._in_tail = False
        return 0

    cdef bint _is_whole(self, pointer data, size_t size) except -1:
        if not scan_utf8_valid(data, data + size):
            bytes_reserve(&self._replaced, scan_utf8_replace(data, data + size, NULL))
            size = scan_utf8_replace(data, data + size, self._replaced.data)
            data = self._replaced.data
        return self._is_json_text(data, size)

    cdef int _stray(self) except -1:
        """A JSON body outside the framing, which may be the error that explains the rest."""
        if self._framer.stray.size == 0:
            return 0
        cdef bytes stray = bytes_copy(&self._framer.stray)
        self._offset = self._framer.offset
        try:
            value = payload.loads(stray.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return 0
        self._record(rules.STRAY_BYTES)
        if self._state != STATE_ENDED:
            self._in_place = False
            self._payload_bytes = stray.rstrip()
            self._accept(
                _registry.bare(self._dialect, value), NULL, <size_t> len(self._payload_bytes)
            )
            self._settle()
        return 0

    cdef int _finish(self) except -1:
        if self._state == STATE_ENDED:
            return 0
        if self._error is None:
            return self._record(rules.NOT_ENDED)
        if self._dialect is None:
            return self._record(rules.END_AFTER_ERROR_MISSING)
        return 0

    # Shapes

    cdef pointer _match(self, pointer p, pointer end) except? NULL:
        """Reads the event at ``p`` by a learned shape; returns the place after it, or NULL."""
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
            after = shape_apply(known, p, end, self._next_seq, &found)
            if after == NULL or <size_t> (after - p) > self._framer.max_event_size:
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
            if self._in_place:
                self._offset = self._framer.offset + <unsigned long long> (p - self._chunk_begin)
            if known.form >= 0:
                self._yield_form(
                    &self._tables.forms[known.form],
                    &found,
                    found.data,
                    <size_t> (found.data_end - found.data),
                )
            elif self._text_only:
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

    cdef int _remember(self, int form, json_result *result, unsigned missed) except -1:
        """Learns the shape of an event that the careful path has just read without a violation."""
        cdef shape *made
        cdef int at
        self._misses += 1
        if missed >= 8 and self._number & 63:
            return 0
        made = self._learn(form, result)
        if made == NULL:
            return 0
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

    cdef shape *_learn(self, int form, json_result *result) except? NULL:
        """The shape of the event just read, which lies from block_begin to block_end."""
        cdef Framer *f = &self._framer
        cdef pointer begin = f.block_begin
        cdef unsigned data_at = <unsigned> (f.block_data - begin)
        cdef size_t place = 0
        cdef size_t start
        cdef size_t length
        cdef int kind
        cdef int at
        cdef int count = 0
        cdef bint id_done = not f.has_id
        cdef size_t brace = f.block_size - 1
        cdef size_t padding = 0
        cdef shape_span spans[SHAPE_SPANS]
        cdef shape *made
        cdef unsigned char *copy
        while padding < brace and (
            f.block_data[brace - padding - 1] == c" " or f.block_data[brace - padding - 1] == c"\t"
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
                kind = SLOT_SPACE if at == result.span_count and f.block_data[brace] == c"}" else -1
            start += data_at
            # The id line may lie before the payload or after it.
            if not id_done and (at > result.span_count or f.id_at < start):
                id_done = True
                count = _add_span(spans, count, &place, f.id_at, f.id_size, SLOT_ID)
            if kind >= 0:
                count = _add_span(spans, count, &place, start, length, kind)
        # What is kept: everything but the values of slots.
        start = <size_t> (f.block_end - begin)
        for at in range(count):
            if not spans[at].fixed:
                start -= spans[at].value
        if start > SHAPE_LITERALS:
            return NULL
        made = shape_new(count, <unsigned> start)
        if made == NULL:
            raise MemoryError()
        made.form = form
        made.id_spaced = f.id_spaced
        made.data_at = data_at
        made.end_at = data_at + <unsigned> f.block_size
        copy = made.bytes
        place = 0
        for at in range(count):
            made.spans[at] = spans[at]
            length = spans[at].gap + (spans[at].value if spans[at].fixed else 0)
            memcpy(copy, begin + place, length)
            copy += length
            place += spans[at].gap + spans[at].value
        memcpy(copy, begin + place, <size_t> (f.block_end - begin) - place)
        if not shape_compile(made):
            shape_free(made)
            return NULL
        return made
