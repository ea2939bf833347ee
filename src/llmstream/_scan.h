/* Byte searches over borrowed memory: line ends, JSON strings, UTF-8, numbers.
   Nothing here allocates, recurses, or reads outside [p, end).
   SSE2 or NEON at compile time; LLMSTREAM_SCAN_PORTABLE forces plain C. */
#ifndef LLMSTREAM_SCAN_H
#define LLMSTREAM_SCAN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if !defined(LLMSTREAM_SCAN_PORTABLE)
#  if defined(__SSE2__) || defined(_M_X64) || (defined(_M_IX86_FP) && _M_IX86_FP >= 2)
#    define SCAN_SSE2 1
#    include <emmintrin.h>
#  elif (defined(__aarch64__) && defined(__ARM_NEON) && !defined(__AARCH64EB__)) || defined(_M_ARM64)
#    define SCAN_NEON 1
#    include <arm_neon.h>
#  endif
#endif

#if defined(_MSC_VER) && !defined(__clang__)
#  include <intrin.h>
#  define SCAN_INLINE static __forceinline
#  define SCAN_NOINLINE static __declspec(noinline)
#  define SCAN_LIKELY(condition) (condition)
#  define SCAN_UNLIKELY(condition) (condition)
#elif defined(__GNUC__) || defined(__clang__)
#  define SCAN_INLINE static inline __attribute__((always_inline))
#  define SCAN_NOINLINE static __attribute__((noinline, unused))
#  define SCAN_LIKELY(condition) __builtin_expect(!!(condition), 1)
#  define SCAN_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#else
#  define SCAN_INLINE static inline
#  define SCAN_NOINLINE static inline
#  define SCAN_LIKELY(condition) (condition)
#  define SCAN_UNLIKELY(condition) (condition)
#endif

enum { SCAN_STRING_OK = 0, SCAN_STRING_CUT, SCAN_STRING_BAD };
enum { SCAN_ESCAPE = 1, SCAN_HIGH = 2, SCAN_LONE = 4 };

/* ---- words ---- */

static inline unsigned scan_trailing_zeros(uint64_t word) /* word is not 0 */
{
#if defined(_MSC_VER) && !defined(__clang__)
    unsigned long at;
#  if defined(_M_X64) || defined(_M_ARM64)
    _BitScanForward64(&at, word);
#  else
    if (!_BitScanForward(&at, (unsigned long)word)) {
        _BitScanForward(&at, (unsigned long)(word >> 32));
        at += 32;
    }
#  endif
    return (unsigned)at;
#elif defined(__GNUC__) || defined(__clang__)
    return (unsigned)__builtin_ctzll(word);
#else
    unsigned at = 0;
    while (!(word & 1)) {
        word >>= 1;
        at++;
    }
    return at;
#endif
}

#if defined(_MSC_VER) || (defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
#  define SCAN_LITTLE_ENDIAN 1
#endif

/* Byte i of the text is bits 8i to 8i+7 on every machine. */
static inline uint64_t scan_word(const unsigned char *p)
{
#if defined(SCAN_LITTLE_ENDIAN)
    uint64_t word;
    memcpy(&word, p, 8);
    return word;
#else
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 |
           (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 | (uint64_t)p[7] << 56;
#endif
}

static inline uint64_t scan_half_word(const unsigned char *p)
{
#if defined(SCAN_LITTLE_ENDIAN)
    uint32_t word;
    memcpy(&word, p, 4);
    return word;
#else
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24;
#endif
}

/* 0 to 7 bytes, the rest of the word 0. */
static inline uint64_t scan_part_word(const unsigned char *p, size_t count)
{
    if (count >= 4)
        return scan_half_word(p) | scan_half_word(p + count - 4) << (8 * (count - 4));
    if (count == 0)
        return 0;
    return (uint64_t)p[0] | (uint64_t)p[count / 2] << (8 * (count / 2)) | (uint64_t)p[count - 1] << (8 * (count - 1));
}

/* ---- blocks: SCAN_WIDTH bytes, searched into a mask of SCAN_BITS bits a byte ---- */

#if defined(SCAN_SSE2)

enum { SCAN_WIDTH = 16, SCAN_BITS = 1 };
typedef __m128i scan_block;
typedef uint32_t scan_mask;

SCAN_INLINE scan_block scan_load(const unsigned char *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

SCAN_INLINE void scan_store(unsigned char *p, scan_block block)
{
    _mm_storeu_si128((__m128i *)(void *)p, block);
}

SCAN_INLINE scan_block scan_two_words(uint64_t low, uint64_t high)
{
    return _mm_set_epi32((int)(uint32_t)(high >> 32), (int)(uint32_t)high, (int)(uint32_t)(low >> 32),
                         (int)(uint32_t)low);
}

SCAN_INLINE scan_block scan_or(scan_block a, scan_block b)
{
    return _mm_or_si128(a, b);
}

SCAN_INLINE scan_block scan_fill(unsigned char byte)
{
    return _mm_set1_epi8((char)byte);
}

SCAN_INLINE scan_block scan_equal(scan_block block, unsigned char byte)
{
    return _mm_cmpeq_epi8(block, scan_fill(byte));
}

/* Quote, backslash, control. */
SCAN_INLINE scan_block scan_special(scan_block block)
{
    return scan_or(scan_or(scan_equal(block, '"'), scan_equal(block, '\\')),
                   _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(0x1F)), block));
}

/* Of a searched block (bytes 00 or FF) or of a text block's high bits. */
SCAN_INLINE scan_mask scan_to_mask(scan_block block)
{
    return (scan_mask)_mm_movemask_epi8(block);
}

SCAN_INLINE scan_mask scan_high_mask(scan_block block)
{
    return (scan_mask)_mm_movemask_epi8(block);
}

#elif defined(SCAN_NEON)

enum { SCAN_WIDTH = 16, SCAN_BITS = 4 };
typedef uint8x16_t scan_block;
typedef uint64_t scan_mask;

SCAN_INLINE scan_block scan_load(const unsigned char *p)
{
    return vld1q_u8(p);
}

SCAN_INLINE void scan_store(unsigned char *p, scan_block block)
{
    vst1q_u8(p, block);
}

SCAN_INLINE scan_block scan_two_words(uint64_t low, uint64_t high)
{
    return vreinterpretq_u8_u64(vcombine_u64(vcreate_u64(low), vcreate_u64(high)));
}

SCAN_INLINE scan_block scan_or(scan_block a, scan_block b)
{
    return vorrq_u8(a, b);
}

SCAN_INLINE scan_block scan_fill(unsigned char byte)
{
    return vdupq_n_u8(byte);
}

SCAN_INLINE scan_block scan_equal(scan_block block, unsigned char byte)
{
    return vceqq_u8(block, scan_fill(byte));
}

SCAN_INLINE scan_block scan_special(scan_block block)
{
    return scan_or(scan_or(scan_equal(block, '"'), scan_equal(block, '\\')), vcltq_u8(block, vdupq_n_u8(0x20)));
}

SCAN_INLINE scan_mask scan_to_mask(scan_block block)
{
    return vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(block), 4)), 0);
}

SCAN_INLINE scan_mask scan_high_mask(scan_block block)
{
    return scan_to_mask(vcgeq_u8(block, vdupq_n_u8(0x80)));
}

#else

enum { SCAN_WIDTH = 8, SCAN_BITS = 8 };
typedef uint64_t scan_block;
typedef uint64_t scan_mask;

#define SCAN_EACH(byte) ((uint64_t)0x0101010101010101u * (byte))

SCAN_INLINE scan_block scan_load(const unsigned char *p)
{
    return scan_word(p);
}

SCAN_INLINE void scan_store(unsigned char *p, scan_block block)
{
#if defined(SCAN_LITTLE_ENDIAN)
    memcpy(p, &block, 8);
#else
    int i;
    for (i = 0; i < 8; i++)
        p[i] = (unsigned char)(block >> (8 * i));
#endif
}

SCAN_INLINE scan_block scan_or(scan_block a, scan_block b)
{
    return a | b;
}

/* 80 in exactly the bytes that are 0: no borrow crosses a byte. */
SCAN_INLINE scan_block scan_zero_bytes(scan_block block)
{
    return ~(((block & SCAN_EACH(0x7Fu)) + SCAN_EACH(0x7Fu)) | block | SCAN_EACH(0x7Fu));
}

SCAN_INLINE scan_block scan_equal(scan_block block, unsigned char byte)
{
    return scan_zero_bytes(block ^ SCAN_EACH(byte));
}

SCAN_INLINE scan_block scan_special(scan_block block)
{
    return scan_equal(block, '"') | scan_equal(block, '\\') | scan_zero_bytes(block & SCAN_EACH(0xE0u));
}

SCAN_INLINE scan_mask scan_to_mask(scan_block block)
{
    return block;
}

SCAN_INLINE scan_mask scan_high_mask(scan_block block)
{
    return block & SCAN_EACH(0x80u);
}

#endif

#if defined(SCAN_SSE2) || defined(SCAN_NEON)
#  define SCAN_WIDE 1 /* has masks of 64 bytes, one bit each: for text full of escapes */

typedef struct {
    scan_block part[4];
} scan_wide_block;

SCAN_INLINE scan_wide_block scan_wide_load(const unsigned char *p)
{
    scan_wide_block wide;
    wide.part[0] = scan_load(p);
    wide.part[1] = scan_load(p + 16);
    wide.part[2] = scan_load(p + 32);
    wide.part[3] = scan_load(p + 48);
    return wide;
}

SCAN_INLINE uint64_t scan_wide_mask(scan_block a, scan_block b, scan_block c, scan_block d)
{
#  if defined(SCAN_SSE2)
    return (uint64_t)scan_to_mask(a) | (uint64_t)scan_to_mask(b) << 16 | (uint64_t)scan_to_mask(c) << 32 |
           (uint64_t)scan_to_mask(d) << 48;
#  else
    const uint8x16_t bits = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u));
    uint8x16_t low = vpaddq_u8(vandq_u8(a, bits), vandq_u8(b, bits));
    uint8x16_t high = vpaddq_u8(vandq_u8(c, bits), vandq_u8(d, bits));
    low = vpaddq_u8(low, high);
    low = vpaddq_u8(low, low);
    return vgetq_lane_u64(vreinterpretq_u64_u8(low), 0);
#  endif
}

#  define SCAN_WIDE_MASK(wide, search) \
    scan_wide_mask(search((wide).part[0]), search((wide).part[1]), search((wide).part[2]), search((wide).part[3]))

SCAN_INLINE scan_block scan_high(scan_block block)
{
#  if defined(SCAN_SSE2)
    return block; /* its masks are the high bits */
#  else
    return vcgeq_u8(block, vdupq_n_u8(0x80));
#  endif
}

SCAN_INLINE scan_block scan_backslash(scan_block block)
{
    return scan_equal(block, '\\');
}

SCAN_INLINE scan_block scan_letter_u(scan_block block)
{
    return scan_equal(block, 'u');
}

/* What may follow a backslash. */
SCAN_INLINE scan_block scan_escapable(scan_block block)
{
    scan_block b_or_f = scan_equal(scan_or(block, scan_fill(0x04)), 'f');
    scan_block t_or_u = scan_equal(scan_or(block, scan_fill(0x01)), 'u');
    return scan_or(scan_or(scan_or(b_or_f, t_or_u), scan_or(scan_equal(block, 'n'), scan_equal(block, 'r'))),
                   scan_or(scan_or(scan_equal(block, '"'), scan_equal(block, '/')), scan_equal(block, '\\')));
}

/* Which backslashes begin an escape: the odd ones of each run (simdjson's carry trick), the first byte not being
   escaped itself. *escaped: the bytes behind them. */
SCAN_INLINE uint64_t scan_escape_starts(uint64_t backslashes, uint64_t *escaped)
{
    const uint64_t odd = (uint64_t)0xAAAAAAAAAAAAAAAAu;
    uint64_t both = (((backslashes << 1) | odd) - backslashes) ^ odd;
    *escaped = both ^ backslashes;
    return both & backslashes;
}
#endif

/* The first count bytes (below SCAN_WIDTH), then zeros. */
SCAN_INLINE scan_block scan_load_part(const unsigned char *p, size_t count)
{
#if defined(SCAN_SSE2) || defined(SCAN_NEON)
    if (count >= 8) {
        uint64_t high = count == 8 ? 0 : scan_word(p + count - 8) >> (8 * (16 - count));
        return scan_two_words(scan_word(p), high);
    }
    return scan_two_words(scan_part_word(p, count), 0);
#else
    return scan_part_word(p, count);
#endif
}

SCAN_INLINE size_t scan_first(scan_mask mask) /* mask is not 0 */
{
    return scan_trailing_zeros(mask) / SCAN_BITS;
}

/* The bytes before `at`, and the bytes from it on; at is below SCAN_WIDTH. */
SCAN_INLINE scan_mask scan_before(size_t at)
{
    return ((scan_mask)1 << (at * SCAN_BITS)) - 1;
}

SCAN_INLINE scan_mask scan_from(size_t at)
{
    return ~scan_before(at);
}

/* ---- lines ---- */

/* Are these bytes the same? */
SCAN_INLINE int scan_same(const unsigned char *a, const unsigned char *b, size_t length)
{
    size_t at;
#if defined(SCAN_SSE2)
    if (length >= 16) {
        __m128i differ = _mm_xor_si128(_mm_loadu_si128((const __m128i *)(a + length - 16)),
                                       _mm_loadu_si128((const __m128i *)(b + length - 16)));
        for (at = 0; at + 16 < length; at += 16)
            differ = _mm_or_si128(differ, _mm_xor_si128(_mm_loadu_si128((const __m128i *)(a + at)),
                                                        _mm_loadu_si128((const __m128i *)(b + at))));
        return _mm_movemask_epi8(_mm_cmpeq_epi8(differ, _mm_setzero_si128())) == 0xFFFF;
    }
#endif
    if (length >= 8) {
        for (at = 0; at + 8 < length; at += 8)
            if (scan_word(a + at) != scan_word(b + at))
                return 0;
        return scan_word(a + length - 8) == scan_word(b + length - 8);
    }
    return scan_part_word(a, length) == scan_part_word(b, length);
}

/* First LF or CR, or end. */
static inline const unsigned char *scan_line_end(const unsigned char *p, const unsigned char *end)
{
    scan_block found;
    scan_mask mask;
    size_t left;
    for (;;) {
        left = (size_t)(end - p);
        if (left < SCAN_WIDTH)
            break;
        found = scan_load(p);
        mask = scan_to_mask(scan_or(scan_equal(found, '\n'), scan_equal(found, '\r')));
        if (mask)
            return p + scan_first(mask);
        p += SCAN_WIDTH;
        while ((size_t)(end - p) >= 4 * SCAN_WIDTH) {
            scan_block a = scan_load(p), b = scan_load(p + SCAN_WIDTH);
            scan_block c = scan_load(p + 2 * SCAN_WIDTH), d = scan_load(p + 3 * SCAN_WIDTH);
            found = scan_or(scan_or(scan_or(scan_equal(a, '\n'), scan_equal(a, '\r')),
                                    scan_or(scan_equal(b, '\n'), scan_equal(b, '\r'))),
                            scan_or(scan_or(scan_equal(c, '\n'), scan_equal(c, '\r')),
                                    scan_or(scan_equal(d, '\n'), scan_equal(d, '\r'))));
            if (scan_to_mask(found))
                break;
            p += 4 * SCAN_WIDTH;
        }
    }
    if (left == 0)
        return end;
    found = scan_load_part(p, left);
    mask = scan_to_mask(scan_or(scan_equal(found, '\n'), scan_equal(found, '\r')));
    return mask ? p + scan_first(mask) : end;
}

/* ---- escapes ---- */

/* The byte that a backslash and this byte stand for; 'u' for \u; 0: not an escape. */
static const unsigned char scan_escapes[256] = {
    ['"'] = '"', ['\\'] = '\\', ['/'] = '/', ['b'] = '\b', ['f'] = '\f',
    ['n'] = '\n', ['r'] = '\r', ['t'] = '\t', ['u'] = 'u'
};

/* One more than the digit's value, 0: not a digit. */
static const unsigned char scan_hex_digits[256] = {
    ['0'] = 1, ['1'] = 2, ['2'] = 3, ['3'] = 4, ['4'] = 5, ['5'] = 6, ['6'] = 7, ['7'] = 8, ['8'] = 9, ['9'] = 10,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
    ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16
};

/* Four hex digits, or a value above FFFF. */
SCAN_INLINE uint32_t scan_four_hex(const unsigned char *p)
{
    uint32_t a = scan_hex_digits[p[0]] - 1u, b = scan_hex_digits[p[1]] - 1u;
    uint32_t c = scan_hex_digits[p[2]] - 1u, d = scan_hex_digits[p[3]] - 1u;
    uint32_t bad = (a | b | c | d) & 0x80000000u;
    return (a << 12 | b << 8 | c << 4 | d) | bad;
}

/* p: after the backslash-u and hex digits of a high surrogate. Its partner, or 0. */
SCAN_INLINE uint32_t scan_low_surrogate(const unsigned char *p, const unsigned char *end)
{
    uint32_t low;
    if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
        return 0;
    low = scan_four_hex(p + 2);
    return low >= 0xDC00 && low <= 0xDFFF ? low : 0;
}

/* Checks a backslash-u at p. Returns what follows it and its partner; NULL: *stop and *result say why. */
SCAN_NOINLINE const unsigned char *scan_check_unicode_escape(const unsigned char *p, const unsigned char *end,
                                                             const unsigned char **stop, int *result, unsigned *flags)
{
    uint32_t value;
    if (end - p < 6 || (value = scan_four_hex(p + 2)) > 0xFFFF) {
        for (p += 2; p < end && scan_hex_digits[*p]; p++)
            ;
        *stop = p;
        *result = p == end ? SCAN_STRING_CUT : SCAN_STRING_BAD;
        return NULL;
    }
    p += 6;
    if ((value & 0xF800) == 0xD800) {
        if (value < 0xDC00 && scan_low_surrogate(p, end))
            return p + 6;
        *flags |= SCAN_LONE;
    }
    return p;
}

#if defined(SCAN_WIDE)
/* scan_string_rest's way through text full of escapes: no branch for each. 1: the string is done, *at is its closing
   quote. 0: *at is where the careful way must go on; *faulty says that it will find a fault. */
SCAN_NOINLINE int scan_string_escaped(const unsigned char **at, const unsigned char *end, unsigned *flags, int *faulty)
{
    const unsigned char *p = *at;
    const unsigned char *partner = p - 1; /* the last low surrogate that belongs to a high one; before p: none */
    unsigned seen = 0;
    int done = 0;
    *faulty = 0;
    while (end - p >= 64) {
        scan_wide_block wide = scan_wide_load(p);
        uint64_t special = SCAN_WIDE_MASK(wide, scan_special);
        uint64_t escaped, starts, stops, inside, unicode;
        unsigned width = 64;
        starts = scan_escape_starts(SCAN_WIDE_MASK(wide, scan_backslash), &escaped);
        /* what is special and neither begins an escape nor follows one; an escape cut here is left to the next round */
        stops = (special & ~starts & ~escaped) | (starts & (uint64_t)1 << 63);
        inside = ~(uint64_t)0;
        if (stops) {
            width = scan_trailing_zeros(stops);
            inside = ((uint64_t)1 << width) - 1;
        }
        unicode = 0;
        if (starts & inside) {
            if (escaped & inside & ~SCAN_WIDE_MASK(wide, scan_escapable)) {
                *faulty = 1;
                break;
            }
            unicode = SCAN_WIDE_MASK(wide, scan_letter_u) & escaped & inside;
            seen |= SCAN_ESCAPE;
        }
        while (unicode) {
            const unsigned char *digits = p + scan_trailing_zeros(unicode) + 1;
            uint32_t value = end - digits < 4 ? 0x10000u : scan_four_hex(digits);
            unicode &= unicode - 1;
            if (SCAN_UNLIKELY(value > 0xFFFF)) {
                *faulty = 1;
                break;
            }
            if (SCAN_UNLIKELY((value & 0xF800) == 0xD800)) {
                if (value < 0xDC00 && scan_low_surrogate(digits + 4, end))
                    partner = digits + 4;
                else if (value < 0xDC00 || digits - 2 != partner)
                    seen |= SCAN_LONE;
            }
        }
        if (*faulty)
            break;
        if (SCAN_WIDE_MASK(wide, scan_high) & inside)
            seen |= SCAN_HIGH;
        p += width;
        if (partner >= p) { /* checked already: go on behind it, lest it looks alone */
            p = partner + 6;
            partner = p - 1;
        } else if (stops && *p != '\\') {
            done = *p == '"';
            *faulty = !done;
            break;
        }
    }
    *at = p;
    *flags |= seen;
    return done;
}
#endif

SCAN_NOINLINE int scan_string_rest(const unsigned char *p, const unsigned char *end, const unsigned char **stop,
                                   unsigned *flags)
{
    unsigned seen = 0;
    int result = SCAN_STRING_BAD;
#if defined(SCAN_WIDE)
    int escapes_left = 3; /* then it pays to change the way; below 0: never again */
#endif
    for (;;) {
        scan_block block;
        scan_mask special, high;
        size_t left = (size_t)(end - p);
        if (SCAN_LIKELY(left >= SCAN_WIDTH)) {
            block = scan_load(p);
        } else {
            if (left == 0) {
                *stop = end;
                *flags = seen;
                return SCAN_STRING_CUT;
            }
            block = scan_load_part(p, left); /* the zeros behind it are special: they stop the search at end */
        }
        special = scan_to_mask(scan_special(block));
        high = scan_high_mask(block);
        if (special == 0) {
            p += SCAN_WIDTH;
            while ((size_t)(end - p) >= 4 * SCAN_WIDTH) {
                scan_block a = scan_load(p), b = scan_load(p + SCAN_WIDTH);
                scan_block c = scan_load(p + 2 * SCAN_WIDTH), d = scan_load(p + 3 * SCAN_WIDTH);
                if (scan_to_mask(scan_or(scan_or(scan_special(a), scan_special(b)),
                                         scan_or(scan_special(c), scan_special(d)))))
                    break;
                high |= scan_high_mask(scan_or(scan_or(a, b), scan_or(c, d)));
                p += 4 * SCAN_WIDTH;
            }
            seen |= high ? SCAN_HIGH : 0u;
            continue;
        }
        for (;;) { /* every special byte of this block, without loading it again */
            size_t at = scan_first(special);
            const unsigned char *here = p + at;
            const unsigned char *after;
            if (SCAN_UNLIKELY(here == end)) {
                result = SCAN_STRING_CUT;
            } else if (*here == '\\') {
                if (SCAN_UNLIKELY(end - here < 2)) {
                    result = SCAN_STRING_CUT;
                    here = end;
                } else if (SCAN_LIKELY(scan_escapes[here[1]] != 0)) {
                    seen |= SCAN_ESCAPE;
                    after = here + 2;
                    if (here[1] == 'u')
                        after = scan_check_unicode_escape(here, end, &here, &result, &seen);
                    if (SCAN_LIKELY(after != NULL)) {
                        size_t next = (size_t)(after - p);
#if defined(SCAN_WIDE)
                        if (escapes_left > 0)
                            escapes_left--;
                        if (escapes_left == 0 && end - after >= 64) {
                            int faulty;
                            high &= scan_before(at);
                            p = after;
                            if (scan_string_escaped(&p, end, &seen, &faulty)) {
                                *stop = p;
                                *flags = seen | (high ? SCAN_HIGH : 0u);
                                return SCAN_STRING_OK;
                            }
                            if (faulty)
                                escapes_left = -1;
                            break;
                        }
#endif
                        if (next >= SCAN_WIDTH) {
                            p = after;
                            break;
                        }
                        special &= scan_from(next);
                        if (special == 0) {
                            p += SCAN_WIDTH;
                            break;
                        }
                        continue;
                    }
                } else {
                    here++;
                }
            } else if (*here == '"') {
                result = SCAN_STRING_OK;
            }
            *stop = here;
            *flags = seen | ((high & scan_before(at)) ? SCAN_HIGH : 0u);
            return result;
        }
        seen |= high ? SCAN_HIGH : 0u;
    }
}

/* p: just after the opening quote. SCAN_STRING_OK: *stop is the closing quote; CUT: *stop is end;
   BAD: *stop is the byte at fault. *flags: SCAN_ESCAPE, SCAN_HIGH, SCAN_LONE. */
SCAN_INLINE int scan_string(const unsigned char *p, const unsigned char *end, const unsigned char **stop,
                            unsigned *flags)
{
    if (SCAN_LIKELY((size_t)(end - p) >= SCAN_WIDTH)) { /* most strings end here, without a call */
        scan_block block = scan_load(p);
        scan_mask special = scan_to_mask(scan_special(block));
        if (special) {
            size_t at = scan_first(special);
            if (SCAN_LIKELY(p[at] == '"')) {
                *stop = p + at;
                *flags = (scan_high_mask(block) & scan_before(at)) ? SCAN_HIGH : 0u;
                return SCAN_STRING_OK;
            }
        }
    }
    { /* own variables, so that the caller's can live in registers */
        const unsigned char *rest_stop;
        unsigned rest_flags;
        int result = scan_string_rest(p, end, &rest_stop, &rest_flags);
        *stop = rest_stop;
        *flags = rest_flags;
        return result;
    }
}

/* The special and the high bytes of the block at p; near the end, the last block of data, shifted. 0: data is
   shorter than a block. */
SCAN_INLINE int scan_masks(const unsigned char *data, const unsigned char *p, const unsigned char *end,
                           scan_mask *special, scan_mask *high)
{
    size_t left = (size_t)(end - p);
    scan_block block;
    if (SCAN_LIKELY(left >= SCAN_WIDTH)) {
        block = scan_load(p);
        *special = scan_to_mask(scan_special(block));
        *high = scan_high_mask(block);
        return 1;
    }
    if (SCAN_LIKELY(left != 0 && (size_t)(end - data) >= SCAN_WIDTH)) {
        unsigned shift = (unsigned)(SCAN_WIDTH - left) * SCAN_BITS;
        block = scan_load(end - SCAN_WIDTH);
        *special = scan_to_mask(scan_special(block)) >> shift;
        *high = scan_high_mask(block) >> shift;
        return 1;
    }
    return 0;
}

/* As scan_string, for a string in data. */
SCAN_INLINE int scan_string_in(const unsigned char *data, const unsigned char *p, const unsigned char *end,
                                 const unsigned char **stop, unsigned *flags)
{
    scan_mask special, high;
    const unsigned char *rest_stop;
    unsigned rest_flags;
    int result;
    if (SCAN_LIKELY(scan_masks(data, p, end, &special, &high) && special != 0)) {
        size_t at = scan_first(special);
        if (SCAN_LIKELY(p[at] == '"')) {
            *stop = p + at;
            *flags = (high & scan_before(at)) ? SCAN_HIGH : 0u;
            return SCAN_STRING_OK;
        }
    }
    result = scan_string_rest(p, end, &rest_stop, &rest_flags);
    *stop = rest_stop;
    *flags = rest_flags;
    return result;
}

/* ---- UTF-8 ---- */

/* p: a byte of 80 or more. 1: a whole character; 0: the longest invalid part that gets one U+FFFD. */
SCAN_INLINE int scan_utf8_character(const unsigned char *p, const unsigned char *end, size_t *size)
{
    size_t left = (size_t)(end - p);
    unsigned first = p[0];
    unsigned lowest = 0x80, highest = 0xBF; /* of the second byte: no overlong form, surrogate, or above 10FFFF */
    size_t length;
    *size = 1;
    if (first < 0xC2 || first > 0xF4)
        return 0;
    if (first < 0xE0) {
        length = 2;
    } else if (first < 0xF0) {
        length = 3;
        if (first == 0xE0)
            lowest = 0xA0;
        else if (first == 0xED)
            highest = 0x9F;
    } else {
        length = 4;
        if (first == 0xF0)
            lowest = 0x90;
        else if (first == 0xF4)
            highest = 0x8F;
    }
    if (left < 2 || p[1] < lowest || p[1] > highest)
        return 0;
    *size = 2;
    if (length == 2)
        return 1;
    if (left < 3 || (p[2] & 0xC0) != 0x80)
        return 0;
    *size = 3;
    if (length == 3)
        return 1;
    if (left < 4 || (p[3] & 0xC0) != 0x80)
        return 0;
    *size = 4;
    return 1;
}

/* First byte of the first invalid part, or end. */
SCAN_NOINLINE const unsigned char *scan_utf8_fault(const unsigned char *p, const unsigned char *end)
{
    size_t size;
    for (;;) {
        scan_mask high;
        if ((size_t)(end - p) >= SCAN_WIDTH) {
            high = scan_high_mask(scan_load(p));
            if (high == 0) {
                p += SCAN_WIDTH;
                continue;
            }
        } else {
            if (p == end)
                return end;
            high = scan_high_mask(scan_load_part(p, (size_t)(end - p)));
            if (high == 0)
                return end;
        }
        p += scan_first(high);
        do {
            if (!scan_utf8_character(p, end, &size))
                return p;
            p += size;
        } while (p < end && *p >= 0x80);
    }
}

static inline int scan_utf8_valid(const unsigned char *p, const unsigned char *end)
{
    return scan_utf8_fault(p, end) == end;
}

/* Replaces every invalid part as bytes.decode("utf-8", "replace") does. Returns the size, at most three
   times the input's; out may be NULL to count only. */
SCAN_NOINLINE size_t scan_utf8_replace(const unsigned char *p, const unsigned char *end, unsigned char *out)
{
    size_t written = 0;
    while (p < end) {
        const unsigned char *fault = scan_utf8_fault(p, end);
        size_t size = (size_t)(fault - p);
        if (out != NULL && size)
            memcpy(out + written, p, size);
        written += size;
        p = fault;
        while (p < end && *p >= 0x80 && !scan_utf8_character(p, end, &size)) {
            if (out != NULL) {
                out[written] = 0xEF;
                out[written + 1] = 0xBF;
                out[written + 2] = 0xBD;
            }
            written += 3;
            p += size;
        }
    }
    return written;
}

/* ---- strings to text ---- */

/* p: a backslash that scan_string accepted. Writes one to four bytes, moves *written, returns what follows. */
SCAN_INLINE const unsigned char *scan_unescape_one(const unsigned char *p, const unsigned char *end,
                                                   unsigned char *out, size_t *written)
{
    uint32_t value, low;
    if (p[1] != 'u') {
        out[(*written)++] = scan_escapes[p[1]];
        return p + 2;
    }
    value = scan_four_hex(p + 2);
    p += 6;
    if (value < 0x80) {
        out[(*written)++] = (unsigned char)value;
        return p;
    }
    if (value < 0x800) {
        out[(*written)++] = (unsigned char)(0xC0 | value >> 6);
        out[(*written)++] = (unsigned char)(0x80 | (value & 0x3F));
        return p;
    }
    if ((value & 0xF800) == 0xD800) {
        low = value < 0xDC00 ? scan_low_surrogate(p, end) : 0;
        if (low) {
            value = 0x10000 + ((value & 0x3FF) << 10) + (low & 0x3FF);
            out[(*written)++] = (unsigned char)(0xF0 | value >> 18);
            out[(*written)++] = (unsigned char)(0x80 | (value >> 12 & 0x3F));
            out[(*written)++] = (unsigned char)(0x80 | (value >> 6 & 0x3F));
            out[(*written)++] = (unsigned char)(0x80 | (value & 0x3F));
            return p + 6;
        }
        value = 0xFFFD;
    }
    out[(*written)++] = (unsigned char)(0xE0 | value >> 12);
    out[(*written)++] = (unsigned char)(0x80 | (value >> 6 & 0x3F));
    out[(*written)++] = (unsigned char)(0x80 | (value & 0x3F));
    return p;
}

/* The body of a string that scan_string accepted, as UTF-8; a lone surrogate becomes U+FFFD. Returns the
   size. Every escape is longer than its text, so the output is never ahead of the input: whole blocks may be
   stored and still end within out + (end - p). out must have that room and not overlap the input. */
SCAN_NOINLINE size_t scan_unescape(const unsigned char *p, const unsigned char *end, unsigned char *out)
{
    size_t written = 0;
#if defined(SCAN_WIDE)
    while (end - p >= 96) { /* the last piece below may begin 12 bytes behind these 64 and is stored as 16 */
        scan_wide_block wide = scan_wide_load(p);
        uint64_t escaped, starts = SCAN_WIDE_MASK(wide, scan_backslash);
        const unsigned char *from = p; /* what is not yet written */
        if (starts == 0) {
            scan_store(out + written, wide.part[0]);
            scan_store(out + written + 16, wide.part[1]);
            scan_store(out + written + 32, wide.part[2]);
            scan_store(out + written + 48, wide.part[3]);
            p += 64;
            written += 64;
            continue;
        }
        starts = scan_escape_starts(starts, &escaped);
        while (starts) {
            unsigned at = scan_trailing_zeros(starts);
            size_t size = (size_t)(p + at - from), copied;
            starts &= starts - 1;
            scan_store(out + written, scan_load(from));
            for (copied = 16; SCAN_UNLIKELY(copied < size); copied += 16)
                scan_store(out + written + copied, scan_load(from + copied));
            written += size;
            if (SCAN_LIKELY(p[at + 1] != 'u')) {
                out[written++] = scan_escapes[p[at + 1]];
                from = p + at + 2;
            } else {
                from = scan_unescape_one(p + at, end, out, &written);
                if (from - (p + at) == 12) /* the partner's backslash is done too */
                    starts &= starts - 1;
            }
        }
        for (p += 64; from < p;) {
            size_t size = (size_t)(p - from);
            scan_store(out + written, scan_load(from));
            size = size < 16 ? size : 16;
            written += size;
            from += size;
        }
        p = from;
    }
#endif
    while ((size_t)(end - p) >= SCAN_WIDTH) {
        scan_block block = scan_load(p);
        scan_mask escapes = scan_to_mask(scan_equal(block, '\\'));
        size_t at;
        scan_store(out + written, block);
        if (escapes == 0) {
            p += SCAN_WIDTH;
            written += SCAN_WIDTH;
            continue;
        }
        at = scan_first(escapes);
        p += at;
        written += at;
        do {
            p = scan_unescape_one(p, end, out, &written);
        } while (p < end && *p == '\\');
    }
    while (p < end) {
        if (*p == '\\')
            p = scan_unescape_one(p, end, out, &written);
        else
            out[written++] = *p++;
    }
    return written;
}

/* ---- UTF-8 that was found valid, as characters of 1, 2 or 4 bytes ---- */

/* How many characters; *greatest: the greatest byte, which tells how wide they have to be. */
SCAN_INLINE size_t scan_utf8_count(const unsigned char *p, const unsigned char *end, unsigned *greatest)
{
    size_t count = 0;
    unsigned most = 0;
    for (; p < end; p++) {
        count += (*p & 0xC0) != 0x80;
        most = *p > most ? *p : most;
    }
    *greatest = most;
    return count;
}

#define SCAN_UTF8_FILL(name, character) \
    SCAN_INLINE void name(const unsigned char *p, const unsigned char *end, character *out) \
    { \
        while (p < end) { \
            uint32_t value = *p++; \
            if (value >= 0xF0) { \
                value = (value & 0x07) << 18 | (uint32_t)(p[0] & 0x3F) << 12 | (uint32_t)(p[1] & 0x3F) << 6 | (p[2] & 0x3F); \
                p += 3; \
            } else if (value >= 0xE0) { \
                value = (value & 0x0F) << 12 | (uint32_t)(p[0] & 0x3F) << 6 | (p[1] & 0x3F); \
                p += 2; \
            } else if (value >= 0x80) { \
                value = (value & 0x1F) << 6 | (p[0] & 0x3F); \
                p += 1; \
            } \
            *out++ = (character)value; \
        } \
    }

SCAN_UTF8_FILL(scan_utf8_fill_1, uint8_t)
SCAN_UTF8_FILL(scan_utf8_fill_2, uint16_t)
SCAN_UTF8_FILL(scan_utf8_fill_4, uint32_t)

/* ---- numbers ---- */

/* End of the longest RFC 8259 number at p, or NULL. A point or exponent without digits makes it no number. */
SCAN_INLINE const unsigned char *scan_number(const unsigned char *p, const unsigned char *end)
{
    if (p < end && *p == '-')
        p++;
    if (p == end || (unsigned)(*p - '0') > 9)
        return NULL;
    if (*p == '0') {
        p++;
    } else {
        do
            p++;
        while (p < end && (unsigned)(*p - '0') <= 9);
    }
    if (SCAN_LIKELY(p == end || (*p != '.' && (*p | 0x20) != 'e')))
        return p;
    if (*p == '.') {
        p++;
        if (p == end || (unsigned)(*p - '0') > 9)
            return NULL;
        do
            p++;
        while (p < end && (unsigned)(*p - '0') <= 9);
    }
    if (p < end && (*p | 0x20) == 'e') {
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        if (p == end || (unsigned)(*p - '0') > 9)
            return NULL;
        do
            p++;
        while (p < end && (unsigned)(*p - '0') <= 9);
    }
    return p;
}

#endif
