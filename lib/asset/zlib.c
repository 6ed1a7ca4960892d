/* asset/zlib.c: zlib streams (RFC 1950, 1951) for the pictures inside GLB files. libfelloe links no compression
 * library, so that it builds anywhere; the whole need is one buffer in, one buffer out.
 *
 * Inflate decodes canonical codes by counts per length (after the RFC's own description) behind a table of 9 bits.
 * Deflate finds matches with hash chains and one step of lazy evaluation, and gives each block of 32,768 symbols its own
 * Huffman codes, whose lengths come from a heap and are limited to 15 bits as in JPEG's annex K.2. */
#include "asset/asset.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_BITS = 15, LITERALS = 288, DISTANCES = 32, FAST_BITS = 9, END_OF_BLOCK = 256 };

static const uint16_t length_base[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                         31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
static const uint8_t length_extra[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                         2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
static const uint16_t distance_base[30] = {1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                           33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                           1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
static const uint8_t distance_extra[30] = {0, 0, 0, 0, 1, 1, 2, 2,  3,  3,  4,  4,  5,  5,  6,
                                           6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13};
static const uint8_t code_order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};

static uint32_t adler32(const uint8_t *bytes, size_t size)
{
    uint32_t a = 1, b = 0;
    while (size) {
        size_t part = size < 5552 ? size : 5552; /* the most before b can pass 2^32 */
        size -= part;
        for (; part; part--) {
            a += *bytes++;
            b += a;
        }
        a %= 65521;
        b %= 65521;
    }
    return b << 16 | a;
}

/* ---- inflate */

struct bits {
    const uint8_t *in;
    size_t size, at;
    uint64_t hold;
    unsigned held;
    bool overrun; /* bits were asked for past the end; zeros were given */
};

static void bits_fill(struct bits *b, unsigned need)
{
    while (b->held < need) {
        if (b->at < b->size)
            b->hold |= (uint64_t)b->in[b->at++] << b->held;
        else
            b->overrun = true;
        b->held += 8;
    }
}

static uint32_t bits_get(struct bits *b, unsigned count)
{
    bits_fill(b, count);
    const uint32_t value = (uint32_t)(b->hold & ((UINT64_C(1) << count) - 1));
    b->hold >>= count;
    b->held -= count;
    return value;
}

struct code {
    uint16_t counts[MAX_BITS + 1]; /* symbols of each length */
    uint16_t symbols[LITERALS];    /* by length, then value */
    uint16_t fast[1 << FAST_BITS]; /* symbol << 4 | length; 0: longer, or no code */
};

/* False when the lengths are over-subscribed, or incomplete with more than one code. */
static bool code_build(struct code *c, const uint8_t *lengths, int count)
{
    memset(c, 0, sizeof *c);
    for (int i = 0; i < count; i++)
        c->counts[lengths[i]]++;
    const int used = count - c->counts[0];
    c->counts[0] = 0;
    int left = 1;
    uint16_t offsets[MAX_BITS + 2] = {0};
    for (int n = 1; n <= MAX_BITS; n++) {
        left = left * 2 - c->counts[n];
        if (left < 0)
            return false;
        offsets[n + 1] = (uint16_t)(offsets[n] + c->counts[n]);
    }
    if (left > 0 && used > 1)
        return false;
    for (int i = 0; i < count; i++)
        if (lengths[i])
            c->symbols[offsets[lengths[i]]++] = (uint16_t)i;
    unsigned code = 0, index = 0;
    for (unsigned n = 1; n <= FAST_BITS; n++, code <<= 1) {
        for (unsigned i = 0; i < c->counts[n]; i++, code++, index++) {
            unsigned reversed = 0;
            for (unsigned bit = 0; bit < n; bit++)
                reversed |= (code >> bit & 1) << (n - 1 - bit);
            for (unsigned at = reversed; at < 1u << FAST_BITS; at += 1u << n)
                c->fast[at] = (uint16_t)((unsigned)c->symbols[index] << 4 | n);
        }
    }
    return true;
}

/* The next symbol, or -1 when the bits are no code. */
static int code_get(const struct code *c, struct bits *b)
{
    bits_fill(b, MAX_BITS);
    const uint16_t fast = c->fast[b->hold & ((1u << FAST_BITS) - 1)];
    if (fast) {
        b->hold >>= fast & 15;
        b->held -= fast & 15;
        return fast >> 4;
    }
    int code = 0, first = 0, index = 0;
    for (int n = 1; n <= MAX_BITS; n++) {
        code |= (int)(b->hold >> (n - 1) & 1);
        const int count = c->counts[n];
        if (code - first < count) {
            b->hold >>= n;
            b->held -= (unsigned)n;
            return c->symbols[index + code - first];
        }
        index += count;
        first = (first + count) << 1;
        code <<= 1;
    }
    return -1;
}

struct inflater {
    struct bits bits;
    uint8_t *out;
    size_t size, at;
    struct code literals, distances;
};

static const char *read_codes(struct inflater *f)
{
    const int literals = (int)bits_get(&f->bits, 5) + 257;
    const int distances = (int)bits_get(&f->bits, 5) + 1;
    const int codes = (int)bits_get(&f->bits, 4) + 4;
    if (literals > 286 || distances > 30)
        return "more codes than there are symbols";
    uint8_t lengths[286 + 30] = {0};
    for (int i = 0; i < codes; i++)
        lengths[code_order[i]] = (uint8_t)bits_get(&f->bits, 3);
    if (!code_build(&f->literals, lengths, 19))
        return "code lengths that make no code";
    memset(lengths, 0, 19);
    for (int i = 0; i < literals + distances;) {
        const int symbol = code_get(&f->literals, &f->bits);
        if (symbol < 0 || f->bits.overrun)
            return "no code length";
        if (symbol < 16) {
            lengths[i++] = (uint8_t)symbol;
            continue;
        }
        if (symbol == 16 && i == 0)
            return "a repeat of nothing";
        const uint8_t value = symbol == 16 ? lengths[i - 1] : 0;
        int repeat = symbol == 16   ? 3 + (int)bits_get(&f->bits, 2)
                     : symbol == 17 ? 3 + (int)bits_get(&f->bits, 3)
                                    : 11 + (int)bits_get(&f->bits, 7);
        if (repeat > literals + distances - i)
            return "more code lengths than were announced";
        while (repeat--)
            lengths[i++] = value;
    }
    if (!lengths[END_OF_BLOCK])
        return "no code for the end of the block";
    if (!code_build(&f->literals, lengths, literals) ||
        !code_build(&f->distances, lengths + literals, distances))
        return "code lengths that make no code";
    return NULL;
}

static void fixed_codes(struct inflater *f)
{
    uint8_t lengths[LITERALS];
    for (int i = 0; i < LITERALS; i++)
        lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    (void)code_build(&f->literals, lengths, LITERALS);
    memset(lengths, 5, DISTANCES);
    (void)code_build(&f->distances, lengths, DISTANCES);
}

static const char *inflate_block(struct inflater *f)
{
    for (;;) {
        const int symbol = code_get(&f->literals, &f->bits);
        if (f->bits.overrun) /* never in a whole stream: four bytes of checksum follow */
            return "an end within a block";
        if (symbol < 0)
            return "bits that are no code";
        if (symbol == END_OF_BLOCK)
            return NULL;
        if (symbol < END_OF_BLOCK) {
            if (f->at == f->size)
                return "more data than expected";
            f->out[f->at++] = (uint8_t)symbol;
            continue;
        }
        if (symbol > 285)
            return "a length that does not exist";
        /* 257 at least: all that is less has been dealt with. */
        /* cppcheck-suppress negativeIndex */
        const size_t length = length_base[symbol - 257] + bits_get(&f->bits, length_extra[symbol - 257]);
        const int code = code_get(&f->distances, &f->bits);
        if (code < 0 || code > 29)
            return "a distance that does not exist";
        const size_t distance = distance_base[code] + bits_get(&f->bits, distance_extra[code]);
        if (distance > f->at)
            return "a distance before the start";
        if (length > f->size - f->at)
            return "more data than expected";
        uint8_t *to = f->out + f->at;
        const uint8_t *from = to - distance;
        for (size_t i = 0; i < length; i++)
            to[i] = from[i]; /* may overlap: a distance of 1 repeats a byte */
        f->at += length;
    }
}

static const char *inflate_stored(struct inflater *f)
{
    struct bits *b = &f->bits;
    (void)bits_get(b, b->held & 7);
    const uint32_t length = bits_get(b, 16), check = bits_get(b, 16);
    if (length != (~check & 0xFFFF))
        return "a stored block whose length is not confirmed";
    if (length > f->size - f->at)
        return "more data than expected";
    for (uint32_t i = 0; i < length; i++)
        f->out[f->at++] = (uint8_t)bits_get(b, 8);
    return b->overrun ? "an end within a block" : NULL;
}

const char *zlib_inflate(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size, size_t *in_at)
{
    *in_at = 0;
    if (in_size < 6 || (in[0] & 15) != 8 || in[0] >> 4 > 7 || (in[0] << 8 | in[1]) % 31 != 0 || (in[1] & 32))
        return "no zlib header";
    struct inflater *f = malloc(sizeof *f);
    if (!f)
        return "no memory for the decoder";
    f->bits = (struct bits){.in = in, .size = in_size, .at = 2};
    f->out = out;
    f->size = out_size;
    f->at = 0;
    const char *error = NULL;
    for (bool last = false; !last && !error;) {
        last = bits_get(&f->bits, 1);
        const uint32_t type = bits_get(&f->bits, 2);
        if (type == 0)
            error = inflate_stored(f);
        else if (type == 3)
            error = "a block of a type that does not exist";
        else if (type == 1)
            fixed_codes(f);
        else
            error = read_codes(f);
        if (!error && type)
            error = inflate_block(f);
    }
    *in_at = f->bits.at;
    if (!error) {
        (void)bits_get(&f->bits, f->bits.held & 7);
        uint32_t check = 0;
        for (int i = 0; i < 4; i++)
            check = check << 8 | bits_get(&f->bits, 8);
        if (f->at < out_size)
            error = "less data than expected";
        else if (f->bits.overrun || check != adler32(out, out_size))
            error = "a wrong checksum";
    }
    free(f);
    return error;
}

/* ---- deflate */

enum {
    HASH_BITS = 15,
    DEFLATE_WINDOW = 1 << 15,
    MIN_MATCH = 4, /* one of 3 seldom pays, and 4 bytes are one load */
    MAX_MATCH = 258,
    MAX_CHAIN = 24,
    GOOD_MATCH = 64, /* not looked for a longer one */
    BLOCK_SYMBOLS = 1 << 15
};

struct deflater {
    uint8_t *out;
    size_t at, room;
    uint64_t hold;
    unsigned held;
    bool failed;
    uint32_t *symbols; /* distance << 16 | length, or a literal below 256 with distance 0 */
    size_t count;
    uint32_t literal_uses[LITERALS], distance_uses[DISTANCES];
    int32_t head[1 << HASH_BITS], previous[DEFLATE_WINDOW];
};

static void put_byte(struct deflater *d, uint8_t byte)
{
    if (d->at == d->room) {
        uint8_t *larger = d->failed ? NULL : realloc(d->out, d->room * 2);
        if (!larger) {
            d->failed = true;
            d->at = 0;
        } else {
            d->out = larger;
            d->room *= 2;
        }
    }
    d->out[d->at++] = byte;
}

static void put_bits(struct deflater *d, uint32_t value, unsigned count)
{
    d->hold |= (uint64_t)value << d->held;
    d->held += count;
    while (d->held >= 8) {
        put_byte(d, (uint8_t)d->hold);
        d->hold >>= 8;
        d->held -= 8;
    }
}

static int length_code(unsigned length)
{
    int code = 28;
    while (length < length_base[code])
        code--;
    return code;
}

static int distance_code(unsigned distance)
{
    int code = 29;
    while (distance < distance_base[code])
        code--;
    return code;
}

/* Code lengths of at most `limit` bits for the symbols that are used; at least one symbol gets a code. */
static void code_lengths(const uint32_t *uses, int count, int limit, uint8_t *lengths)
{
    uint64_t heap[LITERALS]; /* weight << 16 | node */
    uint16_t parent[2 * LITERALS];
    int size = 0, nodes = count;
    memset(lengths, 0, (size_t)count);
    for (int i = 0; i < count; i++)
        if (uses[i])
            heap[size++] = (uint64_t)uses[i] << 16 | (uint64_t)i;
    if (size < 2) { /* one code of one bit */
        lengths[size ? heap[0] & 0xFFFF : 0] = 1;
        return;
    }
    for (int i = 1; i < size; i++) { /* sorted: already a heap */
        const uint64_t item = heap[i];
        int at = i;
        for (; at > 0 && heap[at - 1] > item; at--)
            heap[at] = heap[at - 1];
        heap[at] = item;
    }
    while (size > 1) {
        const uint64_t first = heap[0], second = heap[1];
        parent[first & 0xFFFF] = parent[second & 0xFFFF] = (uint16_t)nodes;
        const uint64_t joined = ((first >> 16) + (second >> 16)) << 16 | (uint64_t)nodes++;
        int at = 0;
        size--;
        for (; at + 2 <= size && heap[at + 2] < joined; at++)
            heap[at] = heap[at + 2];
        heap[at] = joined;
        for (at++; at < size; at++)
            heap[at] = heap[at + 1];
    }
    int counts[2 * LITERALS] = {0}; /* leaves at each depth, before the limit */
    uint16_t depth[2 * LITERALS];
    depth[nodes - 1] = 0;
    for (int i = nodes - 2; i >= count; i--)
        depth[i] = (uint16_t)(depth[parent[i]] + 1);
    for (int i = 0; i < count; i++)
        if (uses[i])
            counts[depth[parent[i]] + 1]++;
    for (int n = 2 * LITERALS - 1; n > limit; n--) {
        while (counts[n] >
               0) { /* a pair too deep: one takes its parent's place, one goes under a shallower leaf */
            int above = n - 2;
            while (!counts[above])
                above--;
            counts[n] -= 2;
            counts[n - 1]++;
            counts[above + 1] += 2;
            counts[above]--;
        }
    }
    /* the most used symbols get the shortest codes */
    uint64_t order[LITERALS];
    int used = 0;
    for (int i = 0; i < count; i++)
        if (uses[i])
            order[used++] = (uint64_t)uses[i] << 16 | (uint64_t)i;
    for (int i = 1; i < used; i++) {
        const uint64_t item = order[i];
        int at = i;
        for (; at > 0 && order[at - 1] < item; at--)
            order[at] = order[at - 1];
        order[at] = item;
    }
    for (int n = 1, i = 0; n <= limit; n++)
        for (int k = 0; k < counts[n]; k++)
            lengths[order[i++] & 0xFFFF] = (uint8_t)n;
}

static void code_values(const uint8_t *lengths, int count, uint16_t *values)
{
    uint16_t next[MAX_BITS + 2] = {0}, counts[MAX_BITS + 1] = {0};
    for (int i = 0; i < count; i++)
        counts[lengths[i]]++;
    counts[0] = 0;
    for (int n = 1; n <= MAX_BITS; n++)
        next[n + 1] = (uint16_t)((next[n] + counts[n]) << 1);
    for (int i = 0; i < count; i++) {
        const unsigned code = next[lengths[i]]++;
        unsigned reversed = 0;
        for (unsigned bit = 0; bit < lengths[i]; bit++)
            reversed |= (code >> bit & 1) << (lengths[i] - 1u - bit);
        values[i] = (uint16_t)reversed;
    }
}

/* The lengths of both codes, run-length coded: symbol | extra << 8 each; returns how many. */
static int pack_lengths(const uint8_t *lengths, int count, uint16_t *packed, uint32_t *uses)
{
    int out = 0;
    for (int i = 0; i < count;) {
        int run = 1;
        while (i + run < count && lengths[i + run] == lengths[i])
            run++;
        int symbol = lengths[i], extra = 0, taken = 1;
        if (lengths[i] == 0 && run >= 11) {
            taken = run < 138 ? run : 138;
            symbol = 18;
            extra = taken - 11;
        } else if (lengths[i] == 0 && run >= 3) {
            taken = run;
            symbol = 17;
            extra = taken - 3;
        } else if (i && lengths[i] == lengths[i - 1] && run >= 3) {
            taken = run < 6 ? run : 6;
            symbol = 16;
            extra = taken - 3;
        }
        uses[symbol]++;
        packed[out++] = (uint16_t)(symbol | extra << 8);
        i += taken;
    }
    return out;
}

static void put_block(struct deflater *d, bool last)
{
    uint8_t lengths[LITERALS + DISTANCES];
    uint16_t literals[LITERALS], distances[DISTANCES];
    d->literal_uses[END_OF_BLOCK]++;
    code_lengths(d->literal_uses, 286, MAX_BITS, lengths);
    code_lengths(d->distance_uses, 30, MAX_BITS, lengths + 286);
    code_values(lengths, 286, literals);
    code_values(lengths + 286, 30, distances);

    uint16_t packed[286 + 30], values[19];
    uint32_t uses[19] = {0};
    uint8_t code[19];
    const int count = pack_lengths(lengths, 286 + 30, packed, uses);
    code_lengths(uses, 19, 7, code);
    code_values(code, 19, values);
    int codes = 19;
    while (codes > 4 && !code[code_order[codes - 1]])
        codes--;
    put_bits(d, last, 1);
    put_bits(d, 2, 2);
    put_bits(d, 286 - 257, 5);
    put_bits(d, 30 - 1, 5);
    put_bits(d, (uint32_t)codes - 4, 4);
    for (int i = 0; i < codes; i++)
        put_bits(d, code[code_order[i]], 3);
    for (int i = 0; i < count; i++) {
        const int symbol = packed[i] & 0xFF;
        put_bits(d, values[symbol], code[symbol]);
        if (symbol >= 16)
            put_bits(d, packed[i] >> 8, symbol == 16 ? 2 : symbol == 17 ? 3 : 7);
    }
    for (size_t i = 0; i < d->count; i++) {
        const unsigned length = d->symbols[i] & 0xFFFF, distance = d->symbols[i] >> 16;
        if (!distance) {
            put_bits(d, literals[length], lengths[length]);
            continue;
        }
        const int l = length_code(length), s = distance_code(distance);
        put_bits(d, literals[257 + l], lengths[257 + l]);
        put_bits(d, length - length_base[l], length_extra[l]);
        put_bits(d, distances[s], lengths[286 + s]);
        put_bits(d, distance - distance_base[s], distance_extra[s]);
    }
    put_bits(d, literals[END_OF_BLOCK], lengths[END_OF_BLOCK]);
    d->count = 0;
    memset(d->literal_uses, 0, sizeof d->literal_uses);
    memset(d->distance_uses, 0, sizeof d->distance_uses);
}

static void add_symbol(struct deflater *d, unsigned length, unsigned distance)
{
    d->symbols[d->count++] = distance << 16 | length;
    if (distance) {
        d->literal_uses[257 + length_code(length)]++;
        d->distance_uses[distance_code(distance)]++;
    } else {
        d->literal_uses[length]++;
    }
    if (d->count == BLOCK_SYMBOLS)
        put_block(d, false);
}

static uint32_t load4(const uint8_t *p)
{
    uint32_t value;
    memcpy(&value, p, 4);
    return value;
}

/* The longest match of in[at] over `longer` bytes among the last MAX_CHAIN positions with its hash, and adds at to the
 * chain; 0 when there is none. */
static size_t find_match(struct deflater *d, const uint8_t *in, size_t size, size_t at, size_t longer,
                         size_t *distance)
{
    if (size - at < MIN_MATCH)
        return 0;
    const uint32_t hash = (load4(in + at) * 2654435761u) >> (32 - HASH_BITS);
    const size_t most = size - at < MAX_MATCH ? size - at : MAX_MATCH;
    size_t best = longer < MIN_MATCH ? MIN_MATCH - 1 : longer;
    int32_t candidate = d->head[hash];
    for (int chain = 0; best < most && candidate >= 0 && chain < MAX_CHAIN; chain++) {
        const size_t from = (size_t)candidate;
        if (at - from >= DEFLATE_WINDOW)
            break;
        if (in[from + best] == in[at + best] && load4(in + from) == load4(in + at)) {
            size_t length = 4;
            while (length < most && in[from + length] == in[at + length])
                length++;
            if (length > best) {
                best = length;
                *distance = at - from;
            }
        }
        candidate = d->previous[from & (DEFLATE_WINDOW - 1)];
        if ((size_t)candidate >= from)
            break; /* the slot was taken over by a later position */
    }
    d->previous[at & (DEFLATE_WINDOW - 1)] = d->head[hash];
    d->head[hash] = (int32_t)at;
    return best > longer && best >= MIN_MATCH ? best : 0;
}

static void find_symbols(struct deflater *d, const uint8_t *in, size_t size)
{
    size_t held = 0, held_distance = 0; /* the match of the byte before, not yet written */
    for (size_t at = 0; at < size; at++) {
        size_t distance = 0;
        const size_t length = held >= GOOD_MATCH ? find_match(d, in, size, at, MAX_MATCH, &distance)
                                                 : find_match(d, in, size, at, held, &distance);
        if (held && !length) {
            add_symbol(d, (unsigned)held, (unsigned)held_distance);
            for (const size_t end = at + held - 1; ++at < end;)
                (void)find_match(d, in, size, at, MAX_MATCH, &distance);
            at--;
            held = 0;
            continue;
        }
        if (held)
            add_symbol(d, in[at - 1], 0);
        if (!length)
            add_symbol(d, in[at], 0);
        held = length;
        held_distance = distance;
    }
    if (held)
        add_symbol(d, (unsigned)held, (unsigned)held_distance);
}

uint8_t *zlib_deflate(const uint8_t *in, size_t size, size_t *out_size)
{
    struct deflater *d = size < INT32_MAX ? calloc(1, sizeof *d) : NULL;
    if (!d)
        return NULL;
    d->room = size / 2 + 1024;
    d->out = malloc(d->room);
    d->symbols = malloc(BLOCK_SYMBOLS * sizeof *d->symbols);
    uint8_t *out = NULL;
    if (d->out && d->symbols) {
        memset(d->head, 0xFF, sizeof d->head);
        memset(d->previous, 0xFF, sizeof d->previous);
        put_byte(d, 0x78); /* deflate, window of 32 KiB */
        put_byte(d, 0x9C);
        find_symbols(d, in, size);
        put_block(d, true);
        put_bits(d, 0, (8 - d->held) & 7);
        const uint32_t check = adler32(in, size);
        for (int shift = 24; shift >= 0; shift -= 8)
            put_byte(d, (uint8_t)(check >> shift));
        if (!d->failed) {
            out = d->out;
            *out_size = d->at;
            d->out = NULL;
        }
    }
    free(d->out);
    free(d->symbols);
    free(d);
    return out;
}
