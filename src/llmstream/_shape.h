/* Learned shapes: an event as literals and slots, compared byte by byte with the next one.
   A match says "the same event but for its slots"; anything else says nothing. */
#ifndef LLMSTREAM_SHAPE_H
#define LLMSTREAM_SHAPE_H

#include <stdlib.h>
#include "_scan.h"

enum {
    SLOT_SEQ = 0, /* the next sequence number, written out */
    SLOT_TEXT,
    SLOT_REASONING,
    SLOT_ARGUMENTS,
    SLOT_INDEX,
    SLOT_CALL,
    SLOT_INPUT,
    SLOT_OUTPUT,
    SLOT_ID, /* the value of the id line */
    SLOT_ANY_STRING,
    SLOT_ANY_NUMBER,
    SLOT_SPACE /* before the payload's last brace, where some vendors pad */
};

#define SHAPE_SLOTS 15
#define SHAPE_SPANS 60
#define SHAPE_LITERALS 2048u
#define SHAPE_DIGITS 20 /* of a foretold number, at most */

/* A place in an event that may vary: a slot, or (fixed) a value that has been the same so far. */
typedef struct {
    unsigned gap;   /* literal bytes before it */
    unsigned value; /* its size in the event that was learned */
    unsigned char kind;
    unsigned char fixed;
} shape_span;

typedef struct {
    int form; /* which declared form it is of; -1: the draft's content.delta */
    int span_count;
    int slot_count;
    int id_spaced; /* a space was stripped before the id */
    int bare;      /* a payload that came without Server-Sent Events around it */
    unsigned char kinds[SHAPE_SLOTS];
    unsigned lengths[SHAPE_SLOTS + 1]; /* of the literals before, between and after the slots */
    int data_literal;                  /* the payload begins in this literal at this offset; likewise its end */
    unsigned data_offset;
    int end_literal;
    unsigned end_offset;
    unsigned data_at; /* where it lay in the event that was learned */
    unsigned end_at;
    shape_span *spans;
    unsigned char *bytes; /* gaps and fixed values in order: the literals, one after the other */
    unsigned size;
    /* What comes first, written out: the literals and the numbers that can be foretold. */
    unsigned char *lead;
    unsigned lead_size;
    unsigned lead_literals; /* how many of bytes are in it */
    int lead_slots;
    unsigned lead_seq_end; /* behind the sequence number's last digit; 0: has none */
    unsigned lead_seq_size;
    int lead_has_index;
    int lead_written;
    unsigned long long lead_seq;
    long long lead_index;
    unsigned lead_data; /* where the payload begins in it */
} shape;

/* What an event of a shape holds. */
typedef struct {
    const unsigned char *data;
    const unsigned char *data_end;
    const unsigned char *content;
    size_t content_size;
    unsigned content_flags;
    const unsigned char *id;
    size_t id_size;
    int has_id;
    long long index;
    long long call;
    long long input_tokens;
    long long output_tokens;
} shape_found;

static inline void shape_free(shape *known)
{
    if (known) {
        free(known->spans);
        free(known->bytes);
        free(known->lead);
        free(known);
    }
}

/* A shape with room for its spans and literals, or NULL. */
static inline shape *shape_new(int span_count, unsigned size)
{
    shape *made = (shape *)calloc(1, sizeof(shape));
    if (!made)
        return NULL;
    made->spans = (shape_span *)malloc((size_t)(span_count ? span_count : 1) * sizeof(shape_span));
    made->bytes = (unsigned char *)malloc(size);
    made->lead = (unsigned char *)malloc(size + 2 * SHAPE_DIGITS);
    made->span_count = span_count;
    made->size = size;
    if (made->spans && made->bytes && made->lead)
        return made;
    shape_free(made);
    return NULL;
}

/* Which literals hold the payload's first byte and the place after its last. */
static inline void shape_place_payload(shape *known)
{
    unsigned place = 0, start = 0; /* in the event that was learned; start: of the literal under way */
    int at, literal = 0;
    known->data_literal = known->end_literal = -1;
    for (at = 0; at <= known->span_count; at++) {
        unsigned value = 0;
        if (at < known->span_count) {
            place += known->spans[at].gap;
            value = known->spans[at].value;
            if (known->spans[at].fixed) {
                place += value;
                continue;
            }
        } else {
            place = (unsigned)-1;
        }
        if (known->data_literal < 0 && known->data_at < place) {
            known->data_literal = literal;
            known->data_offset = known->data_at - start;
        }
        if (known->end_literal < 0 && known->end_at <= place) {
            known->end_literal = literal;
            known->end_offset = known->end_at - start;
        }
        literal++;
        place += value;
        start = place;
    }
}

/* Literals and slots from the spans; 0 if they are too many. */
static inline int shape_compile(shape *known)
{
    unsigned literal = 0, tail = known->size;
    int at, slots = 0;
    for (at = 0; at < known->span_count; at++) {
        const shape_span *span = &known->spans[at];
        unsigned size = span->gap + (span->fixed ? span->value : 0);
        literal += size;
        tail -= size;
        if (span->fixed)
            continue;
        if (slots == SHAPE_SLOTS)
            return 0;
        known->kinds[slots] = span->kind;
        known->lengths[slots++] = literal;
        literal = 0;
    }
    known->lengths[slots] = literal + tail;
    known->slot_count = slots;
    known->lead_slots = 0;
    known->lead_has_index = 0;
    for (at = 0; at < slots && (known->kinds[at] == SLOT_SEQ || known->kinds[at] == SLOT_INDEX); at++) {
        if (known->kinds[at] == SLOT_INDEX && known->lead_has_index++)
            break;
        known->lead_slots++;
    }
    known->lead_written = 0;
    shape_place_payload(known);
    return known->size <= SHAPE_LITERALS;
}

SCAN_NOINLINE unsigned shape_write_number(unsigned char *out, unsigned long long value)
{
    unsigned char digits[SHAPE_DIGITS];
    unsigned count = 0, at;
    do {
        digits[count++] = (unsigned char)('0' + value % 10);
        value /= 10;
    } while (value);
    for (at = 0; at < count; at++)
        out[at] = digits[count - 1 - at];
    return count;
}

SCAN_NOINLINE void shape_write_lead(shape *known, unsigned long long seq, long long index)
{
    const unsigned char *literal = known->bytes;
    unsigned char *out = known->lead;
    int at;
    known->lead_seq_end = known->lead_seq_size = 0;
    for (at = 0; at <= known->lead_slots; at++) {
        memcpy(out, literal, known->lengths[at]);
        if (at == known->data_literal)
            known->lead_data = (unsigned)(out - known->lead) + known->data_offset;
        out += known->lengths[at];
        literal += known->lengths[at];
        if (at == known->lead_slots)
            break;
        if (known->kinds[at] == SLOT_SEQ) {
            known->lead_seq_size = shape_write_number(out, seq);
            out += known->lead_seq_size;
            known->lead_seq_end = (unsigned)(out - known->lead);
        } else {
            out += shape_write_number(out, (unsigned long long)index);
        }
    }
    known->lead_size = (unsigned)(out - known->lead);
    known->lead_literals = (unsigned)(literal - known->bytes);
    known->lead_seq = seq;
    known->lead_index = index;
    known->lead_written = 1;
}

/* Brings the lead up to date; mostly the sequence number is one more than before. */
SCAN_INLINE void shape_foretell(shape *known, unsigned long long seq)
{
    if (SCAN_LIKELY(known->lead_written)) {
        if (!known->lead_seq_end || known->lead_seq == seq)
            return;
        if (known->lead_seq + 1 == seq) {
            unsigned char *digit = known->lead + known->lead_seq_end;
            unsigned left = known->lead_seq_size;
            while (left--) {
                if (*--digit != '9') {
                    ++*digit;
                    known->lead_seq = seq;
                    return;
                }
                *digit = '0';
            }
        }
    }
    shape_write_lead(known, seq, known->lead_written ? known->lead_index : 0);
}

/* A number of at most 18 digits without a sign or a leading zero; its end, or NULL. */
SCAN_INLINE const unsigned char *shape_count(const unsigned char *p, const unsigned char *end, long long *value)
{
    const unsigned char *begin = p;
    long long found = 0;
    while (p < end && *p >= '0' && *p <= '9') {
        if (p - begin == 18)
            return NULL;
        found = found * 10 + (*p++ - '0');
    }
    *value = found;
    return p == begin || (*begin == '0' && p - begin > 1) ? NULL : p;
}

/* One slot that cannot be foretold: its end, or NULL. */
SCAN_INLINE const unsigned char *shape_slot(const shape *known, int kind, const unsigned char *begin,
                                            const unsigned char *p, const unsigned char *end, unsigned long long seq,
                                            shape_found *found)
{
    const unsigned char *stop;
    unsigned flags, size;
    unsigned char digits[SHAPE_DIGITS];
    long long number = 0;
    if (kind == SLOT_ANY_STRING || (kind >= SLOT_TEXT && kind <= SLOT_ARGUMENTS)) {
        if (scan_string_in(begin, p, end, &stop, &flags) != SCAN_STRING_OK)
            return NULL;
        if (SCAN_UNLIKELY(flags & (SCAN_LONE | SCAN_HIGH))) {
            if (flags & SCAN_LONE || !scan_utf8_valid(p, stop))
                return NULL;
        }
        if (kind != SLOT_ANY_STRING) {
            found->content = p;
            found->content_size = (size_t)(stop - p);
            found->content_flags = flags;
        }
        return stop;
    }
    switch (kind) {
    case SLOT_SEQ:
        size = shape_write_number(digits, seq);
        return (size_t)(end - p) >= size && memcmp(p, digits, size) == 0 ? p + size : NULL;
    case SLOT_ANY_NUMBER:
        return scan_number(p, end);
    case SLOT_SPACE:
        while (p < end && (*p == ' ' || *p == '\t'))
            p++;
        return p;
    case SLOT_ID:
        stop = scan_line_end(p, end);
        if (stop > p && (memchr(p, 0, (size_t)(stop - p)) || (!known->id_spaced && *p == ' ')))
            return NULL;
        found->id = p;
        found->id_size = (size_t)(stop - p);
        found->has_id = 1;
        return stop;
    default:
        p = shape_count(p, end, &number);
        if (kind == SLOT_INDEX)
            found->index = number;
        else if (kind == SLOT_CALL)
            found->call = number;
        else if (kind == SLOT_INPUT)
            found->input_tokens = number;
        else
            found->output_tokens = number;
        return p;
    }
}

/* Where the event that begins at p ends, if it has this shape; NULL says nothing about it. */
SCAN_INLINE const unsigned char *shape_apply(shape *known, const unsigned char *p, const unsigned char *end,
                                             unsigned long long seq, shape_found *found)
{
    const unsigned char *begin = p, *literal = known->bytes;
    unsigned length;
    int at = 0;
    found->has_id = 0;
    found->index = found->call = 0;
    found->input_tokens = found->output_tokens = -1;
    found->content_size = 0;
    shape_foretell(known, seq);
    if (SCAN_LIKELY((size_t)(end - p) >= known->lead_size && scan_same(p, known->lead, known->lead_size))) {
        at = known->lead_slots;
        literal += known->lead_literals;
        found->index = known->lead_has_index ? known->lead_index : 0;
        found->data = p + known->lead_data;
        p += known->lead_size;
        goto slot;
    }
    if (!known->lead_has_index)
        return NULL; /* nothing in the lead could be otherwise */
    for (;;) {
        length = known->lengths[at];
        if ((size_t)(end - p) < length || !scan_same(p, literal, length))
            return NULL;
        if (at == known->data_literal)
            found->data = p + known->data_offset;
        if (at == known->end_literal)
            found->data_end = p + known->end_offset;
        p += length;
        literal += length;
    slot:
        if (at == known->slot_count)
            break;
        p = shape_slot(known, known->kinds[at], begin, p, end, seq, found);
        if (!p)
            return NULL;
        at++;
    }
    if (known->lead_has_index && found->index != known->lead_index) {
        known->lead_index = found->index;
        shape_write_lead(known, seq, found->index);
    }
    return p;
}

/* Whether two events differ in values only, and not in those that count. */
static inline int shape_same_skeleton(const shape *mine, const shape *other)
{
    const unsigned char *a = mine->bytes, *b = other->bytes;
    size_t rest;
    int at;
    if (mine->form != other->form || mine->span_count != other->span_count || mine->id_spaced != other->id_spaced ||
        mine->bare != other->bare)
        return 0;
    for (at = 0; at < mine->span_count; at++) {
        const shape_span *left = &mine->spans[at], *right = &other->spans[at];
        if (left->kind != right->kind || left->gap != right->gap || memcmp(a, b, left->gap) != 0)
            return 0;
        a += left->gap + (left->fixed ? left->value : 0);
        b += right->gap + (right->fixed ? right->value : 0);
    }
    rest = mine->size - (size_t)(a - mine->bytes);
    return rest == other->size - (size_t)(b - other->bytes) && memcmp(a, b, rest) == 0;
}

/* Takes in another event of the same skeleton: what differs and is not wanted becomes a slot. 0: it does not fit. */
static inline int shape_widen(shape *known, const shape *other)
{
    unsigned char differs[SHAPE_SPANS];
    unsigned a = 0, b = 0;
    int at, slots = known->slot_count;
    if (!shape_same_skeleton(known, other))
        return 0;
    for (at = 0; at < known->span_count; at++) {
        const shape_span *mine = &known->spans[at], *right = &other->spans[at];
        a += mine->gap;
        b += right->gap;
        differs[at] = mine->fixed && !(right->fixed && mine->value == right->value &&
                                       memcmp(known->bytes + a, other->bytes + b, mine->value) == 0);
        slots += differs[at];
        a += mine->fixed ? mine->value : 0;
        b += right->fixed ? right->value : 0;
    }
    if (slots > SHAPE_SLOTS)
        return 0;
    a = 0;
    for (at = 0; at < known->span_count; at++) {
        shape_span *mine = &known->spans[at];
        a += mine->gap;
        if (differs[at]) {
            mine->fixed = 0;
            known->size -= mine->value;
            memmove(known->bytes + a, known->bytes + a + mine->value, known->size - a);
        } else if (mine->fixed) {
            a += mine->value;
        }
    }
    return shape_compile(known);
}

#endif
