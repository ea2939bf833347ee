/* Text as a JSON string in one line of UTF-8 (RFC 8259, section 7): escapes for quote, backslash and controls, and for
   U+0085, U+2028 and U+2029, which some readers take for the end of a line. First its bytes are counted, then written.
   Text comes in units of 1, 2 or 4 bytes, one a code point. Nothing here allocates, or touches a byte outside. */
#ifndef LLMSTREAM_QUOTE_H
#define LLMSTREAM_QUOTE_H

#include "_scan.h"

typedef struct {
    const void *data;
    size_t length; /* in units */
    int kind;      /* bytes of a unit */
    /* What quote_measure finds: */
    uint64_t size; /* bytes between the quotes */
    int escaped;   /* some units are no plain UTF-8; of kind 1, no plain ASCII */
} quote_text;

enum { QUOTE_TABLE = 0x800, QUOTE_ENTRY = 8, QUOTE_RUN = 8, QUOTE_TAIL = 16, QUOTE_LANES = 16 };

/* What each code point below U+0800 is written as: its bytes, and their number in the last of the entry. */
static unsigned char quote_table[QUOTE_TABLE][QUOTE_ENTRY];

SCAN_INLINE void quote_put_escape(uint32_t c, unsigned char *out)
{
    static const char digits[] = "0123456789abcdef";
    out[0] = '\\';
    out[1] = 'u';
    out[2] = (unsigned char)digits[c >> 12];
    out[3] = (unsigned char)digits[c >> 8 & 15];
    out[4] = (unsigned char)digits[c >> 4 & 15];
    out[5] = (unsigned char)digits[c & 15];
}

/* To be called before anything else; a second time changes nothing. */
static void quote_fill_table(void)
{
    static const char short_escapes[] = "\"\"\\\\\bb\tt\nn\ff\rr"; /* character and letter */
    size_t at;
    uint32_t c;
    for (c = 0; c < QUOTE_TABLE; c++) {
        unsigned char *entry = quote_table[c];
        if (c < 0x20 || c == 0x85) {
            quote_put_escape(c, entry);
            entry[QUOTE_ENTRY - 1] = 6;
        } else if (c < 0x80) {
            entry[0] = (unsigned char)c;
            entry[QUOTE_ENTRY - 1] = 1;
        } else {
            entry[0] = (unsigned char)(0xC0 | c >> 6);
            entry[1] = (unsigned char)(0x80 | (c & 0x3F));
            entry[QUOTE_ENTRY - 1] = 2;
        }
    }
    for (at = 0; at + 2 < sizeof(short_escapes); at += 2) {
        unsigned char *entry = quote_table[(unsigned char)short_escapes[at]];
        entry[0] = '\\';
        entry[1] = (unsigned char)short_escapes[at + 1];
        entry[QUOTE_ENTRY - 1] = 2;
    }
}

/* kind, the bytes of a unit, is a constant where this is called. */
SCAN_INLINE uint32_t quote_unit(const void *data, size_t at, int kind)
{
    return kind == 1   ? ((const unsigned char *)data)[at]
           : kind == 2 ? ((const uint16_t *)data)[at]
                       : ((const uint32_t *)data)[at];
}

SCAN_INLINE int quote_is_separator(uint32_t c)
{
    return (c & ~(uint32_t)1) == 0x2028;
}

/* ---- counting ---- */

/* What is not written as it is. */
SCAN_INLINE scan_mask quote_mask(scan_block block)
{
    return scan_to_mask(scan_special(block)) | scan_high_mask(block);
}

static int quote_measure_bytes(quote_text *text)
{
    const unsigned char *p = (const unsigned char *)text->data;
    uint64_t size = 0;
    size_t length = text->length;
    size_t at = 0, stop;
    while (length - at >= SCAN_WIDTH) {
        stop = at + SCAN_WIDTH;
        if (quote_mask(scan_load(p + at)))
            for (; at < stop; at++)
                size += quote_table[p[at]][QUOTE_ENTRY - 1];
        else
            size += SCAN_WIDTH;
        at = stop;
    }
    for (; at < length; at++)
        size += quote_table[p[at]][QUOTE_ENTRY - 1];
    text->size = size;
    text->escaped = size != length;
    return 1;
}

SCAN_INLINE unsigned quote_length(uint32_t c)
{
    if (c < QUOTE_TABLE)
        return quote_table[c][QUOTE_ENTRY - 1];
    return quote_is_separator(c) ? 6u : 3u + (c >= 0x10000);
}

/* The bytes of a run as UTF-8, and whether there are halves of pairs in it, or what needs an escape: loops that compilers
   turn into vectors, all the better since every value in them is as wide as a unit. */
enum { QUOTE_BLOCK = 1 << 14, QUOTE_HAS_HALVES = 1, QUOTE_HAS_ESCAPES = 2 };

#define QUOTE_LOOK(name, unit, is_top)                                                                                 \
    static int name(const unit *p, size_t length, uint32_t *size)                                                      \
    {                                                                                                                  \
        unit bytes = 0, halves = 0, escapes = 0;                                                                       \
        size_t at;                                                                                                     \
        for (at = 0; at < length; at++) {                                                                              \
            unit c = p[at];                                                                                            \
            bytes = (unit)(bytes + 1 + (c >= 0x80) + (c >= 0x800) + (is_top));                                         \
            halves = (unit)(halves | ((c & (unit)~0x7FF) == 0xD800));                                                  \
            escapes = (unit)(escapes | (c < 0x20) | (c == '"') | (c == '\\') | (c == 0x85) |                           \
                             ((c & (unit)~1) == 0x2028));                                                              \
        }                                                                                                              \
        *size = bytes;                                                                                                 \
        return (halves ? QUOTE_HAS_HALVES : 0) | (escapes ? QUOTE_HAS_ESCAPES : 0);                                    \
    }

QUOTE_LOOK(quote_look_2, uint16_t, 0)
QUOTE_LOOK(quote_look_4, uint32_t, c >= 0x10000)

SCAN_INLINE int quote_measure_units(quote_text *text, int kind)
{
    const void *data = text->data;
    size_t length = text->length, at = 0;
    text->size = 0;
    text->escaped = 0;
    while (at < length) {
        size_t count = length - at < QUOTE_BLOCK ? length - at : QUOTE_BLOCK, stop = at + count;
        uint32_t bytes = 0;
        int found = kind == 2 ? quote_look_2((const uint16_t *)data + at, count, &bytes)
                              : quote_look_4((const uint32_t *)data + at, count, &bytes);
        if (found & QUOTE_HAS_HALVES)
            return 0;
        if (found) {
            text->escaped = 1;
            for (bytes = 0; at < stop; at++)
                bytes += quote_length(quote_unit(data, at, kind));
        }
        at = stop;
        text->size += bytes;
    }
    return 1;
}

/* Counts the bytes of a text; 0 where it holds half a surrogate pair. */
static int quote_measure(quote_text *text)
{
    if (text->kind == 1)
        return quote_measure_bytes(text);
    return text->kind == 2 ? quote_measure_units(text, 2) : quote_measure_units(text, 4);
}

/* ---- writing ---- */

SCAN_INLINE void quote_store(unsigned char *out, uint64_t word)
{
#if defined(SCAN_LITTLE_ENDIAN)
    memcpy(out, &word, 8);
#else
    int i;
    for (i = 0; i < 8; i++)
        out[i] = (unsigned char)(word >> (8 * i));
#endif
}

/* Writes one code point, and up to 8 bytes in all: there has to be room for them. */
SCAN_INLINE unsigned char *quote_put(uint32_t c, unsigned char *out)
{
    if (c < QUOTE_TABLE) {
        uint64_t entry = scan_word(quote_table[c]);
        quote_store(out, entry);
        return out + (entry >> 56);
    }
    if (c >= 0x10000) {
        out[0] = (unsigned char)(0xF0 | c >> 18);
        out[1] = (unsigned char)(0x80 | (c >> 12 & 0x3F));
        out[2] = (unsigned char)(0x80 | (c >> 6 & 0x3F));
        out[3] = (unsigned char)(0x80 | (c & 0x3F));
        return out + 4;
    }
    if (SCAN_UNLIKELY(quote_is_separator(c))) {
        quote_put_escape(c, out);
        return out + 6;
    }
    out[0] = (unsigned char)(0xE0 | c >> 12);
    out[1] = (unsigned char)(0x80 | (c >> 6 & 0x3F));
    out[2] = (unsigned char)(0x80 | (c & 0x3F));
    return out + 3;
}

/* The same for units without escapes, of which there are several. Words and emoji alternate in a way that no processor
   guesses, so there is no branch: each form is made in vectors, and one is taken. */
SCAN_INLINE unsigned char *quote_put_lanes(const uint32_t *p, unsigned char *out)
{
    uint32_t words[QUOTE_LANES], sizes[QUOTE_LANES];
    int at;
    for (at = 0; at < QUOTE_LANES; at++) {
        uint32_t c = p[at], low = c & 0x3F, middle = c >> 6 & 0x3F, high = c >> 12 & 0x3F;
        uint32_t two = 0x80C0u | c >> 6 | low << 8;
        uint32_t three = 0x8080E0u | c >> 12 | middle << 8 | low << 16;
        uint32_t four = 0x808080F0u | c >> 18 | high << 8 | middle << 16 | low << 24;
        uint32_t is_two = 0u - (c >= 0x80), is_three = 0u - (c >= 0x800), is_four = 0u - (c >= 0x10000);
        uint32_t word = (c & ~is_two) | (two & is_two);
        word = (word & ~is_three) | (three & is_three);
        words[at] = (word & ~is_four) | (four & is_four);
        sizes[at] = 1u - is_two - is_three - is_four;
    }
    for (at = 0; at < QUOTE_LANES; at++) {
        quote_store(out, words[at]);
        out += sizes[at];
    }
    return out;
}

SCAN_INLINE unsigned char *quote_write_units(const quote_text *text, int kind, unsigned char *out)
{
    unsigned char tail[(QUOTE_TAIL + 1) * QUOTE_ENTRY], *stop = tail;
    const void *data = text->data;
    size_t length = text->length, at = 0, next;
    /* Each unit becomes a byte at least: as long as more than these are left, there is room for a block or an entry. */
    if (kind == 4 && !text->escaped)
        for (; length - at >= QUOTE_LANES + QUOTE_TAIL; at += QUOTE_LANES)
            out = quote_put_lanes((const uint32_t *)data + at, out);
    while (length - at > QUOTE_TAIL) {
        if (kind == 1) {
            scan_block block = scan_load((const unsigned char *)data + at);
            if (!quote_mask(block)) {
                scan_store(out, block);
                out += SCAN_WIDTH;
                at += SCAN_WIDTH;
                continue;
            }
        }
        for (next = at + QUOTE_RUN; at < next; at++)
            out = quote_put(quote_unit(data, at, kind), out);
    }
    for (; at < length; at++)
        stop = quote_put(quote_unit(data, at, kind), stop);
    memcpy(out, tail, (size_t)(stop - tail));
    return out + (stop - tail);
}

/* Writes a text that was measured, and returns the place behind it. */
static unsigned char *quote_write(const quote_text *text, unsigned char *out)
{
    if (text->kind == 1 && !text->escaped) {
        memcpy(out, text->data, text->length);
        return out + text->length;
    }
    if (text->kind == 1)
        return quote_write_units(text, 1, out);
    return text->kind == 2 ? quote_write_units(text, 2, out) : quote_write_units(text, 4, out);
}

#endif
