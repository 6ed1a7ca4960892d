/* gzip by ISA-L, UTF-16 by hand, escape sequences as ECMA-48 has them. */
#include "doctor/decode.h"

#include <isa-l/igzip_lib.h>
#include <stdlib.h>

enum decoding { DECODE_UNKNOWN, DECODE_PLAIN, DECODE_UTF16LE, DECODE_UTF16BE };
enum { MARK = 4, INFLATED = 64 << 10 };

struct decoder {
    decoder_sink sink;
    void *context;
    enum decoding decoding;
    bool gzip, opened, damaged, member_ended;
    uint8_t first[MARK]; /* of the stream, until there are four of them */
    size_t first_count;
    uint8_t text_first[MARK]; /* of the text, the same */
    size_t text_first_count;
    uint8_t odd; /* the first half of a UTF-16 unit */
    bool has_odd;
    uint32_t high; /* a high surrogate that waits for its low one */
    struct inflate_state inflate;
    uint8_t inflated[INFLATED];
};

struct decoder *decoder_new(decoder_sink sink, void *context)
{
    struct decoder *d = calloc(1, sizeof *d);
    if (!d)
        abort(); /* as the arena does: there is no memory for 100 KiB */
    d->sink = sink;
    d->context = context;
    return d;
}

void decoder_free(struct decoder *d) { free(d); }
bool decoder_is_plain(const struct decoder *d)
{
    return d->opened && !d->gzip && d->decoding == DECODE_PLAIN;
}

static size_t utf8_put(uint32_t c, uint8_t *out)
{
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (uint8_t)(0xC0 | c >> 6);
        out[1] = (uint8_t)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (uint8_t)(0xE0 | c >> 12);
        out[1] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
        out[2] = (uint8_t)(0x80 | (c & 0x3F));
        return 3;
    }
    out[0] = (uint8_t)(0xF0 | c >> 18);
    out[1] = (uint8_t)(0x80 | (c >> 12 & 0x3F));
    out[2] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
    out[3] = (uint8_t)(0x80 | (c & 0x3F));
    return 4;
}

static void utf16_feed(struct decoder *d, span bytes)
{
    uint8_t out[4096];
    size_t n = 0;
    for (size_t i = 0; i < bytes.n; i++) {
        if (!d->has_odd) {
            d->odd = bytes.p[i];
            d->has_odd = true;
            continue;
        }
        d->has_odd = false;
        const uint32_t unit = d->decoding == DECODE_UTF16LE ? (uint32_t)(d->odd | bytes.p[i] << 8)
                                                            : (uint32_t)(d->odd << 8 | bytes.p[i]);
        if (n + 8 > sizeof out) {
            d->sink(d->context, (span){out, n});
            n = 0;
        }
        const bool low = unit >= 0xDC00 && unit < 0xE000;
        if (d->high && low)
            n += utf8_put(0x10000 + ((d->high - 0xD800) << 10) + (unit - 0xDC00), out + n);
        else {
            if (d->high)
                n += utf8_put(0xFFFD, out + n);
            if (unit < 0xD800 || unit >= 0xE000)
                n += utf8_put(unit, out + n);
            else if (low)
                n += utf8_put(0xFFFD, out + n);
        }
        d->high = unit >= 0xD800 && unit < 0xDC00 ? unit : 0;
    }
    if (n)
        d->sink(d->context, (span){out, n});
}

/* By the mark; without one, ASCII in UTF-16 has a NUL in every other byte. */
static void choose_encoding(struct decoder *d)
{
    const uint8_t *b = d->text_first;
    const size_t n = d->text_first_count;
    size_t skip = 0;
    d->decoding = DECODE_PLAIN;
    if (n >= 2 && b[0] == 0xFF && b[1] == 0xFE) {
        d->decoding = DECODE_UTF16LE;
        skip = 2;
    } else if (n >= 2 && b[0] == 0xFE && b[1] == 0xFF) {
        d->decoding = DECODE_UTF16BE;
        skip = 2;
    } else if (n == MARK && b[0] && !b[1] && b[2] && !b[3]) {
        d->decoding = DECODE_UTF16LE;
    } else if (n == MARK && !b[0] && b[1] && !b[2] && b[3]) {
        d->decoding = DECODE_UTF16BE;
    } else if (n >= 3 && b[0] == 0xEF && b[1] == 0xBB && b[2] == 0xBF) {
        skip = 3;
    }
    const span rest = {b + skip, n - skip};
    if (d->decoding == DECODE_PLAIN)
        d->sink(d->context, rest);
    else
        utf16_feed(d, rest);
}

static void text_feed(struct decoder *d, span bytes)
{
    while (d->decoding == DECODE_UNKNOWN && bytes.n) {
        d->text_first[d->text_first_count++] = *bytes.p;
        bytes = (span){bytes.p + 1, bytes.n - 1};
        if (d->text_first_count == MARK)
            choose_encoding(d);
    }
    if (!bytes.n)
        return;
    if (d->decoding == DECODE_PLAIN)
        d->sink(d->context, bytes);
    else
        utf16_feed(d, bytes);
}

static void gzip_start(struct decoder *d)
{
    isal_inflate_init(&d->inflate);
    d->inflate.crc_flag = ISAL_GZIP;
    d->member_ended = false;
}

static void gzip_feed(struct decoder *d, span bytes)
{
    memcpy(&d->inflate.next_in, &bytes.p, sizeof bytes.p); /* ISA-L reads it only, but takes no const */
    d->inflate.avail_in = (uint32_t)bytes.n;
    while (!d->damaged) {
        if (d->member_ended) { /* another member, or padding after the last one */
            while (d->inflate.avail_in && *d->inflate.next_in == 0) {
                d->inflate.next_in++;
                d->inflate.avail_in--;
            }
            if (!d->inflate.avail_in)
                return;
            uint8_t *next = d->inflate.next_in;
            const uint32_t left = d->inflate.avail_in;
            gzip_start(d);
            d->inflate.next_in = next;
            d->inflate.avail_in = left;
        }
        d->inflate.next_out = d->inflated;
        d->inflate.avail_out = INFLATED;
        const uint32_t before = d->inflate.avail_in;
        const int status = isal_inflate(&d->inflate);
        const size_t got = INFLATED - d->inflate.avail_out;
        if (got)
            text_feed(d, (span){d->inflated, got});
        d->damaged = status < 0 || status == ISAL_NEED_DICT;
        d->member_ended = d->inflate.block_state == ISAL_BLOCK_FINISH;
        if (!d->member_ended && got == 0 && d->inflate.avail_in == before)
            return; /* it wants more input */
        if (!d->member_ended && d->inflate.avail_in == 0 && d->inflate.avail_out)
            return;
    }
}

static void open_stream(struct decoder *d)
{
    d->opened = true;
    d->gzip = d->first_count >= 3 && d->first[0] == 0x1F && d->first[1] == 0x8B && d->first[2] == 8;
    if (d->gzip) {
        gzip_start(d);
        gzip_feed(d, (span){d->first, d->first_count});
    } else {
        text_feed(d, (span){d->first, d->first_count});
    }
}

void decoder_feed(struct decoder *d, span bytes)
{
    while (!d->opened && bytes.n) {
        d->first[d->first_count++] = *bytes.p;
        bytes = (span){bytes.p + 1, bytes.n - 1};
        if (d->first_count == MARK)
            open_stream(d);
    }
    while (bytes.n) { /* ISA-L counts in 32 bits */
        const size_t part = bytes.n < 1 << 30 ? bytes.n : 1 << 30;
        if (d->gzip)
            gzip_feed(d, (span){bytes.p, part});
        else
            text_feed(d, (span){bytes.p, part});
        bytes = (span){bytes.p + part, bytes.n - part};
    }
}

bool decoder_end(struct decoder *d)
{
    if (!d->opened)
        open_stream(d);
    if (d->decoding == DECODE_UNKNOWN)
        choose_encoding(d);
    return !d->gzip || (d->member_ended && !d->damaged);
}

/* The byte after an escape sequence that starts at i: CSI, OSC and strings to their end, else two bytes. */
static size_t escape_end(span t, size_t i)
{
    if (i + 1 >= t.n)
        return t.n;
    const uint8_t kind = t.p[i + 1];
    size_t j = i + 2;
    if (kind == '[') {
        while (j < t.n && t.p[j] >= 0x20 && t.p[j] < 0x40)
            j++;
        return j < t.n && t.p[j] != '\n' ? j + 1 : j;
    }
    if (kind == ']' || kind == 'P' || kind == '_' || kind == '^') {
        while (j < t.n && t.p[j] != 7 && t.p[j] != 0x1B && t.p[j] != '\n')
            j++;
        if (j < t.n && t.p[j] == 7)
            return j + 1;
        return j + 1 < t.n && t.p[j] == 0x1B && t.p[j + 1] == '\\' ? j + 2 : j;
    }
    return kind == '\n' ? i + 1 : kind == '(' || kind == ')' ? (i + 3 < t.n ? i + 3 : t.n) : j;
}

size_t clean_text(span text, char *out, uint32_t *extra, size_t *extra_count)
{
    size_t n = 0, i = 0;
    *extra_count = 0;
    while (i < text.n) {
        size_t plain = i;
        while (plain < text.n && text.p[plain] != 0x1B && text.p[plain] != '\r')
            plain++;
        memcpy(out + n, text.p + i, plain - i);
        n += plain - i;
        i = plain;
        if (i == text.n)
            break;
        if (text.p[i] == 0x1B) {
            i = escape_end(text, i);
            continue;
        }
        while (i < text.n && text.p[i] == '\r')
            i++;
        if (i < text.n && text.p[i] == '\n')
            continue;
        extra[(*extra_count)++] = (uint32_t)n;
        out[n++] = '\n';
    }
    return n;
}
