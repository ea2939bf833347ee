"""The producer's inner part, compiled: text as JSON strings, and the event that a stream consists of.

Twin of ``_writer_py.py``: the same names in the same order and the same behaviour to the byte.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_CheckExact
from libc.string cimport memcpy

cdef extern from *:
    """
    /* Up to Python 3.11 a str may still have to be made compact. */
    #if PY_VERSION_HEX < 0x030C0000
    #  define llmstream_ready(text) PyUnicode_READY(text)
    #else
    #  define llmstream_ready(text) 0
    #endif
    """
    int llmstream_ready(object text) except -1

cdef extern from "Python.h":
    int PyUnicode_KIND(object text)
    void *PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    unsigned long long PY_SSIZE_T_MAX

cdef extern from "_quote.h" nogil:
    ctypedef struct quote_text:
        const void *data
        size_t length
        int kind
        unsigned long long size
        int escaped
    void quote_fill_table()
    int quote_measure(quote_text *text)
    unsigned char *quote_write(const quote_text *text, unsigned char *out)

cdef extern from *:
    """
    #define LLMSTREAM_HEAD "event: content.delta\\ndata: {\\"v\\":\\"1.0\\",\\"seq\\":"
    #define LLMSTREAM_TAIL "}}\\n\\n"
    enum { LLMSTREAM_HEAD_SIZE = sizeof(LLMSTREAM_HEAD) - 1, LLMSTREAM_TAIL_SIZE = sizeof(LLMSTREAM_TAIL) - 1 };
    """
    const char *HEAD "LLMSTREAM_HEAD"
    const char *TAIL "LLMSTREAM_TAIL"
    Py_ssize_t HEAD_SIZE "LLMSTREAM_HEAD_SIZE"
    Py_ssize_t TAIL_SIZE "LLMSTREAM_TAIL_SIZE"

ctypedef unsigned char *target

quote_fill_table()


cdef int _measure(text, quote_text *found) except -1:
    if not PyUnicode_CheckExact(text):
        raise TypeError(f"text must be a str, not {type(text).__name__}")
    llmstream_ready(text)
    found.data = PyUnicode_DATA(text)
    found.length = <size_t> PyUnicode_GET_LENGTH(text)
    found.kind = PyUnicode_KIND(text)
    if not quote_measure(found):
        raise ValueError("half a surrogate pair cannot be written")
    if found.size > PY_SSIZE_T_MAX // 2:
        raise MemoryError
    return 0


cdef inline target _put(target out, const quote_text *text) noexcept:
    out[0] = c'"'
    out = quote_write(text, out + 1)
    out[0] = c'"'
    return out + 1


def quoted(text):
    """``text`` as a JSON string in UTF-8 and in one line: escapes for the quote, the backslash, control characters,
    U+0085, U+2028 and U+2029, and for nothing else. Raises TypeError for what is no str, or of a subclass, and
    ValueError for half a surrogate pair."""
    cdef quote_text words
    _measure(text, &words)
    cdef bytes found = PyBytes_FromStringAndSize(NULL, <Py_ssize_t> words.size + 2)
    _put(<target> PyBytes_AS_STRING(found), &words)
    return found


def content_delta(long long seq, str members not None, text):
    """The bytes of a content.delta (draft, section 5.3.2) with the number ``seq``, from 0: ``members`` is the JSON text
    from the comma behind the number to the colon before the text. Raises as ``quoted``."""
    cdef unsigned char digits[20]
    cdef target digit = digits + 20
    cdef unsigned long long left = <unsigned long long> seq
    cdef Py_ssize_t digit_count
    cdef Py_ssize_t member_size
    cdef const char *member_text = PyUnicode_AsUTF8AndSize(members, &member_size)
    cdef quote_text words
    _measure(text, &words)
    while True:
        digit -= 1
        digit[0] = <unsigned char> (c"0" + left % 10)
        left //= 10
        if not left:
            break
    digit_count = digits + 20 - digit
    cdef bytes found = PyBytes_FromStringAndSize(
        NULL, HEAD_SIZE + digit_count + member_size + <Py_ssize_t> words.size + 2 + TAIL_SIZE
    )
    cdef target out = <target> PyBytes_AS_STRING(found)
    memcpy(out, HEAD, <size_t> HEAD_SIZE)
    out += HEAD_SIZE
    memcpy(out, digit, <size_t> digit_count)
    out += digit_count
    memcpy(out, member_text, <size_t> member_size)
    out = _put(out + member_size, &words)
    memcpy(out, TAIL, <size_t> TAIL_SIZE)
    return found
