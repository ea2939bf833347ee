"""Framing: bytes to blocks (WHATWG HTML, section 9.2.6), and SSEDecoder. Part of ``_parser.pyx``; twin of
``_framing_py.py``."""


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


cdef inline pointer bytes_end(Bytes *buffer) noexcept:
    # C does not allow to add even 0 to a null pointer.
    return buffer.data + buffer.size if buffer.size else buffer.data


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


cdef void framer_begin_at(Framer *f, unsigned long long offset) noexcept:
    """The stream's first bytes, a byte order mark among them, were taken off before."""
    f.bom = 4
    f.offset = offset


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
                return framer_dispatch(f, f.carry.data, bytes_end(&f.carry), False)
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


cdef bint framer_unfinished(Framer *f) noexcept:
    """Whether an event was begun: a field came, or a part of a line that is no comment."""
    if f.skipping:
        return True
    return f.carried and (
        f.any_field or (f.carry.size > f.line_at and f.carry.data[f.line_at] != c":")
    )


cdef int framer_close(Framer *f) except -1:
    """The unfinished last event, if it holds data."""
    cdef size_t size
    cdef long long retry = f.retry
    cdef long long retry_of_block = f.retry_of_block
    if f.skipping or not f.carried:
        return FRAMER_NOTHING
    size = f.carry.size - f.line_at
    if size:
        framer_field(f, f.carry.data, f.line_at, size)
        f.retry = retry  # of a number that is cut, nobody knows the rest
        f.retry_of_block = retry_of_block
        if not f.simple:
            framer_flush(f, f.carry.data)
    f.id_changed = False
    f.ends = 0
    return framer_dispatch(f, f.carry.data, bytes_end(&f.carry), False)


cdef inline bytes _as_bytes(chunk):
    return <bytes> chunk if PyBytes_CheckExact(chunk) else _copied(chunk)


cdef bytes _copied(chunk):
    cdef Py_buffer view
    cdef bytes copy
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
    cdef bint _busy
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
        if self._framer.max_event_size:
            raise TypeError("a decoder cannot be initialised twice")
        self._framer.max_event_size = _size("max_event_size", max_event_size)
        self._framer.dataless = bool(dataless)
        cdef bytes start = fields.text("last_event_id", last_event_id).encode()
        cdef pointer data = <pointer> PyBytes_AS_STRING(start)
        bytes_set(&self._framer.id, data, <size_t> len(start))
        bytes_set(&self._framer.committed_id, data, <size_t> len(start))
        self._strict = _errors(errors)
        self._unfinished = bool(unfinished)
        self._id = start.decode()

    def __reduce__(self):
        raise TypeError("a decoder cannot be copied or pickled")

    @property
    def last_event_id(self):
        """The last event id, as a client sends it back when it reconnects."""
        return bytes_copy(&self._framer.committed_id).decode("utf-8", "replace")

    @property
    def retry(self):
        """The latest reconnection time in milliseconds, at most 2**63 - 1; None where the stream gave none."""
        return None if self._framer.retry < 0 else self._framer.retry

    @cython.critical_section
    def feed(self, chunk):
        """The events that are complete with this chunk (any contiguous bytes-like object)."""
        cdef bytes data = _as_bytes(chunk)
        if self._closed:
            raise ValueError("the decoder is closed")
        if self._busy:
            raise RuntimeError("the decoder is being fed already")
        cdef pointer begin = <pointer> PyBytes_AS_STRING(data)
        cdef pointer p = begin
        cdef pointer end = begin + PyBytes_GET_SIZE(data)
        cdef Framer *f = &self._framer
        cdef int found
        cdef list out = []
        self._busy = True
        try:
            framer_begin(f, &p, end)
            while p < end:
                found = framer_next(f, begin, &p, end)
                if found >= FRAMER_BLOCK:
                    out.append(self._event(found, True, out))
        except BaseException:
            self._closed = True  # after an error, and an interrupt may have broken off anywhere
            raise
        finally:
            self._busy = False
        f.offset += <unsigned long long> (end - begin)
        return out

    @cython.critical_section
    def close(self):
        """Ends the stream. An unfinished last event is dropped, or handed out with ``unfinished``. Idempotent."""
        if self._busy:
            raise RuntimeError("the decoder is being fed already")
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
