/* One validating walk (RFC 8259) over a whole payload, noting the values on wanted paths.
   No allocation, no recursion, no digit converted; duplicate keys: the last wins. */
#ifndef LLMSTREAM_JSON_H
#define LLMSTREAM_JSON_H

#include <limits.h>
#include "_scan.h"

enum { JSON_ABSENT = 0, JSON_STRING, JSON_NUMBER, JSON_TRUE, JSON_FALSE, JSON_NULL, JSON_OBJECT, JSON_ARRAY };
enum { JSON_OK = 0, JSON_INVALID, JSON_TOO_DEEP, JSON_NOT_UTF8, JSON_NOT_OBJECT };
enum { JSON_INTEGER_NO = 0, JSON_INTEGER_EXACT, JSON_INTEGER_LENIENT };

#define JSON_LEAVES 64
#define JSON_SPANS 56
#define JSON_UNWANTED_SPANS 40 /* the rest is kept for wanted ones */
#define JSON_WANTED_DEPTH 16
#define JSON_CHAINS 32 /* of edges whose keys hash alike */
#define JSON_PLAIN_KEY (-2) /* optional `item` of an object node's edge: its key has no quote, backslash or control */

typedef struct {
    const unsigned char *key; /* unescaped; of an array node's edge: unused */
    unsigned short key_length;
    short item;  /* of an array node's edge; of an object node's JSON_PLAIN_KEY (faster) or anything else */
    short leaf;  /* wanted under this id, or -1 */
    short child; /* node of the value if it is a container of that kind, or -1 */
    unsigned char next; /* json_link's: one more than the place, in its node, of the next edge of the same chain */
    unsigned long long leaves_below; /* leaf ids at or below this edge */
    unsigned long long edges_below;  /* numbers of the edges strictly below this edge */
} json_edge;

typedef struct {
    unsigned short first_edge;
    unsigned short edge_count;
    unsigned char is_array;
    unsigned char chains[JSON_CHAINS]; /* json_link's: one more than the place of a chain's first edge, or 0 */
} json_node;

typedef struct {
    size_t start; /* strings: without the quotes; containers: with the brackets */
    size_t length;
    unsigned char kind;
    unsigned char flags; /* scan_string's */
} json_leaf;

typedef struct {
    size_t start;
    size_t length;
    short leaf; /* -1: on no wanted path */
    unsigned char kind;
} json_span;

typedef struct {
    json_leaf leaves[JSON_LEAVES]; /* only those in found are set */
    unsigned long long found;
    unsigned long long duplicates;
    json_span spans[JSON_SPANS]; /* strings and numbers in document order, never keys */
    int span_count;
    int spans_lost;
    unsigned flags; /* scan_string's, of every key and string that was searched */
    size_t fault;
} json_result;

/* One container on a wanted path. */
typedef struct {
    const json_node *node;
    const json_edge *edges, *edges_end;
    const json_edge *guess;  /* the edge after the last one matched: keys mostly keep their order */
    unsigned long long seen; /* edges whose key has come in this container */
    size_t item;
    short leaf; /* of the value under way */
} json_frame;

/* Is the escaped key [p, end), once unescaped, this one? Needs no buffer, so no key is too long. */
SCAN_NOINLINE int json_same_escaped(const unsigned char *p, const unsigned char *end, const unsigned char *key,
                                    size_t key_length)
{
    size_t at = 0;
    while (p < end) {
        unsigned char text[4];
        size_t size = 0;
        if (*p == '\\')
            p = scan_unescape_one(p, end, text, &size);
        else
            text[size++] = *p++;
        if (size > key_length - at || memcmp(key + at, text, size) != 0)
            return 0;
        at += size;
    }
    return at == key_length;
}

SCAN_INLINE unsigned json_chain(const unsigned char *key, size_t length)
{
    return length ? ((unsigned)length * 5 + key[0] + 2u * key[length - 1]) % JSON_CHAINS : 0;
}

/* Makes the edges of an object node findable by their keys. */
static inline void json_link(json_node *node, json_edge *edges)
{
    json_edge *own = edges + node->first_edge;
    unsigned at = node->edge_count;
    memset(node->chains, 0, sizeof(node->chains));
    while (at-- > 0) {
        unsigned char *chain = node->chains + json_chain(own[at].key, own[at].key_length);
        own[at].next = *chain;
        *chain = (unsigned char)(at + 1);
    }
}

/* The edge with this key, or NULL. */
SCAN_INLINE const json_edge *json_find_key(const json_frame *frame, const unsigned char *key, size_t length)
{
    unsigned place = frame->node->chains[json_chain(key, length)];
    while (place) {
        const json_edge *edge = frame->edges + place - 1;
        if (edge->key_length == length && (length == 0 || scan_same(edge->key, key, length)))
            return edge;
        place = edge->next;
    }
    return NULL;
}

SCAN_NOINLINE const json_edge *json_find_escaped_key(const json_frame *frame, const unsigned char *key, size_t length)
{
    const json_edge *edge;
    for (edge = frame->edges; edge < frame->edges_end; edge++)
        if (json_same_escaped(key, key + length, edge->key, edge->key_length))
            return edge;
    return NULL;
}

SCAN_INLINE const unsigned char *json_skip_space(const unsigned char *p, const unsigned char *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    return p;
}

/* Does the key that starts at p spell this one without escapes? Knowing its length beforehand, the walk goes on
   without waiting for a search. A wanted key is valid UTF-8. One with a special byte must not match here: its raw
   bytes are another string. */
SCAN_INLINE int json_is_key(const unsigned char *data, const unsigned char *p, const unsigned char *end,
                            const json_edge *edge)
{
    scan_mask special, high;
    size_t length = edge->key_length;
    return length < (size_t)(end - p) && p[length] == '"' && scan_same(p, edge->key, length) &&
           (SCAN_LIKELY(edge->item == JSON_PLAIN_KEY) ||
            (length < SCAN_WIDTH && scan_masks(data, p, end, &special, &high) &&
             (special & scan_before(length)) == 0));
}

/* Counters of the walk; in registers, not in json_result. */
typedef struct {
    unsigned long long found;
    int spans, unwanted, lost;
} json_counts;

/* No room: gives up the last unwanted span for a wanted one. 0: this one is lost. */
SCAN_NOINLINE int json_make_room(json_span *spans, int count, short leaf)
{
    int at = count - 1;
    if (leaf < 0)
        return 0;
    while (at >= 0 && spans[at].leaf >= 0)
        at--;
    if (at < 0)
        return 0;
    memmove(spans + at, spans + at + 1, (size_t)(count - 1 - at) * sizeof(json_span));
    return 1;
}

SCAN_INLINE void json_add_span(json_result *out, json_counts *counts, size_t start, size_t length, short leaf,
                               unsigned char kind)
{
    json_span *span;
    if (SCAN_UNLIKELY(counts->spans >= JSON_SPANS || (leaf < 0 && counts->unwanted >= JSON_UNWANTED_SPANS))) {
        counts->lost += counts->lost < INT_MAX;
        if (!json_make_room(out->spans, counts->spans, leaf))
            return;
        counts->spans--;
    }
    counts->unwanted += leaf < 0;
    span = out->spans + counts->spans++;
    span->start = start;
    span->length = length;
    span->leaf = leaf;
    span->kind = kind;
}

/* A wanted key came again: its first value's spans are no longer on a wanted path. */
SCAN_NOINLINE void json_forget_spans(json_span *spans, int count, unsigned long long leaves)
{
    int at;
    for (at = 0; at < count; at++)
        if (spans[at].leaf >= 0 && (leaves >> spans[at].leaf & 1))
            spans[at].leaf = -1;
}

SCAN_INLINE void json_add_leaf(json_result *out, json_counts *counts, short leaf, size_t start, size_t length,
                               unsigned char kind, unsigned flags)
{
    json_leaf *value = out->leaves + leaf;
    value->start = start;
    value->length = length;
    value->kind = kind;
    value->flags = (unsigned char)flags;
    counts->found |= 1ull << leaf;
}

/* levels: the caller's (max_depth / 8) + 1 bytes. nodes[0]: the top object. */
SCAN_NOINLINE int json_walk(const unsigned char *data, size_t length, const json_node *nodes, const json_edge *edges,
                            unsigned max_depth, unsigned char *levels, json_result *out)
{
    const unsigned char *p = data, *end = data + length;
    const unsigned char *stop;
    json_frame frames[JSON_WANTED_DEPTH + 1]; /* frames[0] stands for the text around the top value */
    json_frame *frame = frames;               /* that of the container at depth `wanted` */
    unsigned depth = 0, wanted = 0;           /* the container under way is on a wanted path if both are equal */
    int in_array = 0, top_is_object = 0;
    json_counts counts = {0, 0, 0, 0};
    int status;
    short leaf = -1, child = 0; /* of the value that comes next */
    unsigned flags, all_flags = 0;
    unsigned char kind;
    const json_edge *edge;

    out->duplicates = 0;
    frame->leaf = -1;

#define JSON_SPACE() \
    do { \
        if (SCAN_UNLIKELY(p == end)) \
            goto invalid; \
        if (SCAN_UNLIKELY(*p <= ' ')) { \
            p = json_skip_space(p, end); \
            if (p == end) \
                goto invalid; \
        } \
    } while (0)

    JSON_SPACE();
    top_is_object = *p == '{';

value: /* p < end, no whitespace */
    if (*p == '"') {
        p++;
        if (SCAN_UNLIKELY(scan_string_in(data, p, end, &stop, &flags) != SCAN_STRING_OK)) {
            p = stop;
            goto invalid;
        }
        all_flags |= flags;
        if (SCAN_UNLIKELY(flags & SCAN_HIGH)) {
            const unsigned char *fault = scan_utf8_fault(p, stop);
            if (fault != stop) {
                p = fault;
                goto not_utf8;
            }
        }
        if (leaf >= 0)
            json_add_leaf(out, &counts, leaf, (size_t)(p - data), (size_t)(stop - p), JSON_STRING, flags);
        json_add_span(out, &counts, (size_t)(p - data), (size_t)(stop - p), leaf, JSON_STRING);
        p = stop + 1;
        goto after_value;
    }
    if ((unsigned)(*p - '0') <= 9 || *p == '-') {
        stop = scan_number(p, end);
        if (SCAN_UNLIKELY(stop == NULL))
            goto invalid;
        if (leaf >= 0)
            json_add_leaf(out, &counts, leaf, (size_t)(p - data), (size_t)(stop - p), JSON_NUMBER, 0);
        json_add_span(out, &counts, (size_t)(p - data), (size_t)(stop - p), leaf, JSON_NUMBER);
        p = stop;
        goto after_value;
    }
    if (*p == '{') {
        in_array = 0;
        kind = JSON_OBJECT;
        goto open;
    }
    if (*p == '[') {
        in_array = 1;
        kind = JSON_ARRAY;
        goto open;
    }
    if (end - p >= 4 && memcmp(p, "null", 4) == 0) {
        stop = p + 4;
        kind = JSON_NULL;
    } else if (end - p >= 4 && memcmp(p, "true", 4) == 0) {
        stop = p + 4;
        kind = JSON_TRUE;
    } else if (end - p >= 5 && memcmp(p, "false", 5) == 0) {
        stop = p + 5;
        kind = JSON_FALSE;
    } else {
        goto invalid;
    }
    if (leaf >= 0)
        json_add_leaf(out, &counts, leaf, (size_t)(p - data), (size_t)(stop - p), kind, 0);
    p = stop;
    goto after_value;

open:
    if (SCAN_UNLIKELY(depth >= max_depth))
        goto too_deep;
    if (depth == wanted) {
        frame->leaf = leaf;
        if (leaf >= 0)
            json_add_leaf(out, &counts, leaf, (size_t)(p - data), 0, kind, 0); /* its length comes when it closes */
        if (child >= 0 && (nodes[child].is_array != 0) == in_array && nodes[child].edge_count &&
            depth < JSON_WANTED_DEPTH) {
            wanted++;
            frame++;
            frame->node = nodes + child;
            frame->edges = edges + nodes[child].first_edge;
            frame->edges_end = frame->edges + nodes[child].edge_count;
            frame->guess = frame->edges;
            frame->seen = 0;
            frame->item = 0;
            frame->leaf = -1;
        }
    }
    p++;
    depth++;
    if (in_array)
        levels[depth >> 3] = (unsigned char)(levels[depth >> 3] | 1u << (depth & 7));
    else
        levels[depth >> 3] = (unsigned char)(levels[depth >> 3] & ~(1u << (depth & 7)));
    JSON_SPACE();
    if (in_array) {
        if (*p == ']')
            goto close;
        goto item;
    }
    if (*p == '}')
        goto close;

key: /* p < end, no whitespace */
    if (SCAN_UNLIKELY(*p != '"'))
        goto invalid;
    p++;
    leaf = -1;
    child = -1;
    if (depth == wanted && SCAN_LIKELY(json_is_key(data, p, end, frame->guess))) {
        edge = frame->guess;
        p += edge->key_length;
    } else {
        if (SCAN_UNLIKELY(scan_string_in(data, p, end, &stop, &flags) != SCAN_STRING_OK)) {
            p = stop;
            goto invalid;
        }
        all_flags |= flags;
        if (SCAN_UNLIKELY(flags & SCAN_HIGH)) {
            const unsigned char *fault = scan_utf8_fault(p, stop);
            if (fault != stop) {
                p = fault;
                goto not_utf8;
            }
        }
        edge = NULL;
        if (depth == wanted) {
            if (SCAN_UNLIKELY(flags & SCAN_ESCAPE))
                edge = json_find_escaped_key(frame, p, (size_t)(stop - p));
            else
                edge = json_find_key(frame, p, (size_t)(stop - p));
        }
        p = stop;
    }
    if (edge != NULL) {
        unsigned edge_number = (unsigned)(edge - edges);
        leaf = edge->leaf;
        child = edge->child;
        frame->guess = edge + 1 == frame->edges_end ? frame->edges : edge + 1;
        if (SCAN_UNLIKELY(frame->seen >> edge_number & 1)) {
            out->duplicates |= 1ull << edge_number;
            counts.found &= ~edge->leaves_below;
            json_forget_spans(out->spans, counts.spans, edge->leaves_below);
        }
        frame->seen |= 1ull << edge_number;
    }
    p++;
    JSON_SPACE();
    if (SCAN_UNLIKELY(*p != ':'))
        goto invalid;
    p++;
    JSON_SPACE();
    goto value;

item: /* p < end, no whitespace */
    leaf = -1;
    child = -1;
    if (depth == wanted) {
        for (edge = frame->edges; edge < frame->edges_end; edge++) {
            if (edge->item >= 0 && (size_t)edge->item == frame->item) {
                leaf = edge->leaf;
                child = edge->child;
                break;
            }
        }
        frame->item++;
    }
    goto value;

close:
    p++;
    if (depth == wanted) {
        wanted--;
        frame--;
    }
    depth--;
    in_array = levels[depth >> 3] >> (depth & 7) & 1;
    if (depth == wanted && frame->leaf >= 0)
        out->leaves[frame->leaf].length = (size_t)(p - data) - out->leaves[frame->leaf].start;

after_value:
    if (SCAN_UNLIKELY(depth == 0))
        goto finish;
    JSON_SPACE();
    if (*p == ',') {
        p++;
        JSON_SPACE();
        if (in_array)
            goto item;
        goto key;
    }
    if (*p == (in_array ? ']' : '}'))
        goto close;

invalid:
    status = JSON_INVALID;
    goto done;

too_deep:
    status = JSON_TOO_DEEP;
    goto done;

not_utf8:
    status = JSON_NOT_UTF8;
    goto done;

finish:
    p = json_skip_space(p, end);
    if (p != end)
        goto invalid;
    status = JSON_OK;
    if (!top_is_object) {
        status = JSON_NOT_OBJECT;
        p = json_skip_space(data, end);
    }

done:
    out->found = counts.found;
    out->span_count = counts.spans;
    out->spans_lost = counts.lost;
    out->flags = all_flags;
    out->fault = (size_t)(p - data);
    return status;
#undef JSON_SPACE
}

/* p: a valid JSON number. EXACT: plain digits up to 2^63-1. LENIENT: another spelling of 0, or of a whole number up
   to 2^53 with a fraction or exponent. Never converts more digits than fit. */
SCAN_NOINLINE int json_integer(const unsigned char *p, size_t length, long long *value)
{
    const long long exponent_limit = 100000000000000000ll; /* beyond any length: it decides alone */
    const unsigned char *end = p + length, *q = p;
    unsigned long long number = 0;
    long long digits = 0, whole = 0;  /* digits so far, and those before the point */
    long long first = -1, last = -1;  /* the outermost digits that are not 0 */
    long long exponent = 0, power;
    int negative, exponent_negative;

    if (length == 0)
        return JSON_INTEGER_NO;
    if (length <= 19) { /* no leading zeros: 20 digits are over 2^63 */
        for (; q < end && (unsigned)(*q - '0') <= 9; q++)
            number = number * 10 + (unsigned)(*q - '0');
        if (q == end && number <= (unsigned long long)LLONG_MAX) { /* plain digits, the common case */
            *value = (long long)number;
            return JSON_INTEGER_EXACT;
        }
        number = 0;
    }

    negative = *p == '-';
    for (q = p + negative; q < end && (*q | 0x20) != 'e'; q++) {
        if (*q == '.') {
            whole = digits;
            continue;
        }
        if (*q != '0') {
            first = first < 0 ? digits : first;
            last = digits;
        }
        digits++;
    }
    if (memchr(p, '.', (size_t)(q - p)) == NULL)
        whole = digits;
    if (first < 0) {
        *value = 0;
        return JSON_INTEGER_LENIENT;
    }
    if (negative)
        return JSON_INTEGER_NO;
    if (q < end) {
        q++;
        exponent_negative = *q == '-';
        if (*q == '-' || *q == '+')
            q++;
        for (; q < end; q++)
            if (exponent < exponent_limit)
                exponent = exponent * 10 + (*q - '0');
        if (exponent_negative)
            exponent = -exponent;
    }
    power = exponent + (whole - 1 - last); /* of ten, of the last digit that is not 0 */
    if (power < 0 || power + (last - first + 1) > 16) /* 2^53 has 16 digits */
        return JSON_INTEGER_NO;
    digits = 0;
    for (q = p; digits <= last; q++) {
        if (*q == '.')
            continue;
        number = number * 10 + (unsigned)(*q - '0'); /* zeros before `first` add nothing */
        digits++;
    }
    for (; power > 0; power--)
        number *= 10;
    if (number > 1ull << 53)
        return JSON_INTEGER_NO;
    *value = (long long)number;
    return JSON_INTEGER_LENIENT;
}

#endif
