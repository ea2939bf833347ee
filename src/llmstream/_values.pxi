"""A payload that was found valid, as Python values. Part of ``_parser.pyx``; the Python twin has ``payload.loads``, to
which this is equal."""

cdef extern from "Python.h":
    double PyOS_string_to_double(const char *text, char **end, void *overflow) except? -1.0
    int PyDict_SetItem(object holder, object key, object value) except -1
    int PyList_Append(object holder, object value) except -1

cdef extern from "_scan.h" nogil:
    int scan_string(
        const unsigned char *p,
        const unsigned char *end,
        const unsigned char **stop,
        unsigned *flags,
    )
    const unsigned char *scan_number(const unsigned char *p, const unsigned char *end)

cdef extern from "_json.h" nogil:
    const unsigned char *json_skip_space(const unsigned char *p, const unsigned char *end)


cdef object _read_number(pointer p, pointer stop):
    cdef size_t size = <size_t> (stop - p)
    cdef long long value = 0
    cdef pointer at = p
    cdef bint negative = p[0] == c"-"
    cdef bytes text
    if negative:
        at += 1
    if size <= 18:
        while at < stop and c"0" <= at[0] <= c"9":
            value = value * 10 + (at[0] - c"0")
            at += 1
        if at == stop:
            return -value if negative else value
    elif memchr(p, c".", size) == NULL and memchr(p, c"e", size) == NULL and memchr(p, c"E", size) == NULL:
        text = PyBytes_FromStringAndSize(<const char *> p, <Py_ssize_t> size)
        try:
            return int(text)
        except ValueError:
            return float(text)
    return PyOS_string_to_double(
        PyBytes_AS_STRING(PyBytes_FromStringAndSize(<const char *> p, <Py_ssize_t> size)), NULL, NULL
    )


cdef object _read_value(pointer *at, pointer end, Bytes *scratch):
    """The value that begins at a byte that is no whitespace; ``at`` goes behind it. Its nesting has a bound."""
    cdef pointer p = at[0]
    cdef pointer stop
    cdef unsigned flags = 0
    if p[0] == c'"':
        p += 1
        scan_string(p, end, &stop, &flags)
        at[0] = stop + 1
        return _text(p, <size_t> (stop - p), flags, scratch)
    if p[0] == c"{":
        return _read_object(at, end, scratch)
    if p[0] == c"[":
        return _read_array(at, end, scratch)
    if p[0] == c"n":
        at[0] = p + 4
        return None
    if p[0] == c"t":
        at[0] = p + 4
        return True
    if p[0] == c"f":
        at[0] = p + 5
        return False
    at[0] = scan_number(p, end)
    return _read_number(p, at[0])


cdef dict _read_object(pointer *at, pointer end, Bytes *scratch):
    cdef dict found = {}
    cdef pointer p = json_skip_space(at[0] + 1, end)
    cdef pointer stop
    cdef unsigned flags = 0
    cdef str key
    while p[0] != c"}":
        if p[0] == c",":
            p = json_skip_space(p + 1, end)
        p += 1
        scan_string(p, end, &stop, &flags)
        key = _text(p, <size_t> (stop - p), flags, scratch)
        at[0] = json_skip_space(json_skip_space(stop + 1, end) + 1, end)
        PyDict_SetItem(found, key, _read_value(at, end, scratch))
        p = json_skip_space(at[0], end)
    at[0] = p + 1
    return found


cdef list _read_array(pointer *at, pointer end, Bytes *scratch):
    cdef list found = []
    cdef pointer p = json_skip_space(at[0] + 1, end)
    while p[0] != c"]":
        if p[0] == c",":
            p = json_skip_space(p + 1, end)
        at[0] = p
        PyList_Append(found, _read_value(at, end, scratch))
        p = json_skip_space(at[0], end)
    at[0] = p + 1
    return found
