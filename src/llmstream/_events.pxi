"""What the engine hands out: events, violations and the events of SSE. Part of ``_parser.pyx``; twin of
``_events_py.py``."""


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
        return payload.read(self.data)

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
        if self._size == PyBytes_GET_SIZE(self._source):
            return self._source  # events of one payload share it
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
            return payload.read(self.raw.decode("utf-8", "replace"))
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
