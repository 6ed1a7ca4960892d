/* Containers of GPU code, found in a stream by their magic: section names may be stripped, and nvcc is not the only one that
 * embeds them. The layout was measured with the files of CUDA 13.0; no payload is decompressed, except those of a few KiB,
 * to tell the stubs that a device link leaves from code. */
#include "elf/elf.h"

#include <zstd.h>

enum {
    CONTAINER_MAGIC = (int)0xBA55ED50,
    CONTAINER_HEADER = 16,
    ENTRY_HEADER = 64,
    ENTRY_HEADER_MOST = 64 << 10, /* it may hold a source name and options */
    FLAG_LZ4 = 0x2000,
    FLAG_ZSTD = 0x8000,
    FLAG_ARCH_SPECIFIC = 0x100000,
    FLAG_FAMILY_SPECIFIC = 0x200000,
    STUB_MOST =
        4096, /* bytes of a payload that may be a stub; those of CUDA 13.0 have 1,500 to 1,700, the smallest kernel's cubin over 3,000 */
    PIECE_MOST = STUB_MOST
};

enum state { SEARCHING, AT_CONTAINER, AT_ENTRY, IN_PAYLOAD, SKIPPING };

struct fatbin_scan {
    arena *a;
    uint64_t file_size, at; /* `at` is the offset of the next byte to come */
    enum state state;
    uint64_t skip; /* SKIPPING: bytes to pass over, then the payload that is wanted, or the next entry */
    size_t payload_want;
    uint64_t entry_end, end;   /* of the entry and the container, in the file */
    uint8_t piece[PIECE_MOST]; /* what is collected over the ends of what comes */
    size_t piece_count, piece_want;
    struct fatbin_container current;
    struct fatbin_entry entries[ELF_ENTRIES_MOST];
    uint32_t compressed_size, flags;
    uint64_t plain_size;
    struct fatbins found;
    uint64_t broken_at;
    bool full;
};

struct fatbin_scan *fatbin_scan_new(arena *a, uint64_t file_size)
{
    struct fatbin_scan *s = arena_array(a, struct fatbin_scan, 1);
    if (s) {
        s->a = a;
        s->file_size = file_size;
        s->broken_at = UINT64_MAX;
    }
    return s;
}

/* LZ4's block format: a token, literals, a match. False when src ends early or dst is full; *n is what was written. */
static bool lz4_block(span src, uint8_t *dst, size_t room, size_t *n)
{
    size_t at = 0, out = 0;
    while (at < src.n) {
        const unsigned token = src.p[at++];
        size_t literals = token >> 4, match = (token & 15) + 4;
        for (unsigned more = literals == 15 ? 255 : 0; more == 255 && at < src.n; literals += more)
            more = src.p[at++];
        if (literals > src.n - at || literals > room - out)
            return false;
        memcpy(dst + out, src.p + at, literals);
        at += literals;
        out += literals;
        if (src.n - at < 2)
            break; /* the last sequence has no match */
        const size_t back = (size_t)src.p[at] | (size_t)src.p[at + 1] << 8;
        at += 2;
        for (unsigned more = (token & 15) == 15 ? 255 : 0; more == 255 && at < src.n; match += more)
            more = src.p[at++];
        if (back == 0 || back > out || match > room - out)
            return false;
        for (; match > 0; match--, out++)
            dst[out] = dst[out - back];
    }
    *n = out;
    return true;
}

/* A cubin without a .text section has no kernel: nvcc's shared link leaves such ones for every architecture of the link. */
static bool is_stub(span payload, const struct fatbin_scan *s)
{
    uint8_t plain[4 * STUB_MOST];
    span cubin = payload;
    if (s->flags & (FLAG_LZ4 | FLAG_ZSTD)) {
        size_t n = 0;
        const span packed = {payload.p, s->compressed_size < payload.n ? s->compressed_size : payload.n};
        if (s->plain_size > sizeof plain)
            return false;
        if (s->flags & FLAG_ZSTD) {
            n = ZSTD_decompress(plain, sizeof plain, packed.p, packed.n);
            if (ZSTD_isError(n))
                return false;
        } else if (!lz4_block(packed, plain, sizeof plain, &n)) {
            return false;
        }
        cubin = (span){plain, n};
    }
    return cubin.n >= ENTRY_HEADER && memcmp(cubin.p, "\177ELF", 4) == 0 &&
           !str_contains(str_from_span(cubin), S(".text."));
}

static void finish_container(struct fatbin_scan *s)
{
    s->state = SEARCHING;
    s->piece_count = 0;
    if (s->current.count == 0)
        return;
    if (s->found.count == ELF_CONTAINERS_MOST || !arena_room(s->a, &s->found)) {
        s->full = true;
        return;
    }
    s->current.entries = arena_array(s->a, struct fatbin_entry, s->current.count);
    if (!s->current.entries) {
        s->full = true;
        return;
    }
    memcpy(s->current.entries, s->entries, s->current.count * sizeof *s->entries);
    s->found.items[s->found.count++] = s->current;
}

static void break_container(struct fatbin_scan *s)
{
    if (s->broken_at == UINT64_MAX)
        s->broken_at = s->current.offset;
    finish_container(s);
}

static void next_entry(struct fatbin_scan *s)
{
    s->piece_count = 0;
    s->piece_want = ENTRY_HEADER;
    s->state = AT_ENTRY;
    if (s->at == s->end)
        finish_container(s);
    else if (s->at > s->end || s->end - s->at < ENTRY_HEADER)
        break_container(s);
}

static void after_skip(struct fatbin_scan *s)
{
    if (s->payload_want == 0) {
        next_entry(s);
        return;
    }
    s->state = IN_PAYLOAD;
    s->piece_count = 0;
    s->piece_want = s->payload_want;
}

static void read_container(struct fatbin_scan *s)
{
    const span h = {s->piece, CONTAINER_HEADER};
    const uint64_t size = span_u64le(h, 8);
    const uint64_t start = s->at - CONTAINER_HEADER;
    /* The same number occurs as a constant in programs that read fatbins; what follows it there is no such header. */
    if (span_u16le(h, 4) != 1 || span_u16le(h, 6) != CONTAINER_HEADER || size < ENTRY_HEADER ||
        start > s->file_size || size > s->file_size - start - CONTAINER_HEADER) {
        s->state = SEARCHING;
        s->piece_count = 0;
        return;
    }
    s->current =
        (struct fatbin_container){.offset = start, .size = size + CONTAINER_HEADER, .place = FATBIN_LOADED};
    s->end = s->at + size;
    next_entry(s);
}

static void read_entry(struct fatbin_scan *s)
{
    const span h = {s->piece, ENTRY_HEADER};
    const uint64_t header = span_u32le(h, 4), payload = span_u64le(h, 8);
    const uint64_t start = s->at - ENTRY_HEADER;
    const uint64_t flags = span_u64le(h, 40);
    if (header < ENTRY_HEADER || header > ENTRY_HEADER_MOST || header > s->end - start ||
        payload > s->end - start - header || s->current.count == ELF_ENTRIES_MOST) {
        break_container(s);
        return;
    }
    char suffix = 0;
    if (flags & FLAG_ARCH_SPECIFIC)
        suffix = 'a';
    else if (flags & FLAG_FAMILY_SPECIFIC)
        suffix = 'f';
    s->flags = (uint32_t)flags;
    s->compressed_size = span_u32le(h, 16);
    s->plain_size = span_u64le(h, 56);
    s->entry_end = start + header + payload;
    s->entries[s->current.count++] = (struct fatbin_entry){.kind = span_u16le(h, 0),
                                                           .arch = span_u32le(h, 28),
                                                           .suffix = suffix,
                                                           .compressed = flags & (FLAG_LZ4 | FLAG_ZSTD),
                                                           .isa_minor = span_u16le(h, 24),
                                                           .isa_major = span_u16le(h, 26)};
    const bool maybe_stub = span_u16le(h, 0) == FATBIN_CUBIN && payload > 0 && payload <= STUB_MOST;
    s->payload_want = maybe_stub ? (size_t)payload : 0;
    s->skip = (maybe_stub ? start + header : s->entry_end) - s->at;
    s->state = SKIPPING;
    if (s->skip == 0)
        after_skip(s);
}

/* Takes from bytes what the piece still wants; true when it is whole. */
static bool collect(struct fatbin_scan *s, span *bytes)
{
    const size_t want = s->piece_want - s->piece_count, n = want < bytes->n ? want : bytes->n;
    memcpy(s->piece + s->piece_count, bytes->p, n);
    s->piece_count += n;
    s->at += n;
    bytes->p += n;
    bytes->n -= n;
    return s->piece_count == s->piece_want;
}

/* Passes over bytes up to the next magic at a multiple of 8, and takes that. */
static void search(struct fatbin_scan *s, span *bytes)
{
    const uint8_t magic[4] = {0x50, 0xED, 0x55, 0xBA};
    size_t i = (size_t)(-s->at & 7);
    if (s->piece_count > 0) { /* a magic that the last bytes began */
        s->piece_want = sizeof magic;
        if (!collect(s, bytes))
            return;
        if (memcmp(s->piece, magic, sizeof magic) == 0)
            s->state = AT_CONTAINER;
        else
            s->piece_count = 0;
        s->piece_want = CONTAINER_HEADER;
        return;
    }
    for (; i + 4 <= bytes->n; i += 8) {
        uint32_t word;
        memcpy(&word, bytes->p + i, sizeof word);
        uint32_t wanted;
        memcpy(&wanted, magic, sizeof wanted);
        if (word == wanted)
            break;
    }
    i = i < bytes->n ? i : bytes->n;
    s->at += i;
    bytes->p += i;
    bytes->n -= i;
    if (bytes->n == 0)
        return;
    s->piece_count = 0;
    s->piece_want = sizeof magic;
    if (collect(s, bytes)) {
        s->state = AT_CONTAINER;
        s->piece_want = CONTAINER_HEADER;
    }
}

bool fatbin_scan_feed(struct fatbin_scan *s, span bytes)
{
    while (bytes.n > 0 && !s->full) {
        switch (s->state) {
        case SEARCHING:
            search(s, &bytes);
            break;
        case AT_CONTAINER:
            if (collect(s, &bytes))
                read_container(s);
            break;
        case AT_ENTRY:
            if (collect(s, &bytes))
                read_entry(s);
            break;
        case IN_PAYLOAD:
            if (collect(s, &bytes)) {
                s->entries[s->current.count - 1].stub = is_stub((span){s->piece, s->piece_count}, s);
                next_entry(s);
            }
            break;
        case SKIPPING: {
            const size_t n = s->skip < bytes.n ? (size_t)s->skip : bytes.n;
            s->at += n;
            s->skip -= n;
            bytes.p += n;
            bytes.n -= n;
            if (s->skip == 0)
                after_skip(s);
            break;
        }
        }
    }
    return !s->full;
}

void fatbin_scan_end(struct fatbin_scan *s, struct fatbins *out, uint64_t *broken_at)
{
    if (s->state != SEARCHING && s->state != AT_CONTAINER)
        break_container(s); /* the file ends inside it */
    *out = s->found;
    *broken_at = s->broken_at;
}

str fatbin_arch_text(arena *a, const struct fatbin_entry *e)
{
    return str_format(a, "%s_%u%.1s", e->kind == FATBIN_PTX ? "compute" : "sm", e->arch,
                      (char[2]){e->suffix, '\0'});
}

bool fatbin_has_code(const struct fatbin_container *c)
{
    size_t cubins = 0, stubs = 0, others = 0;
    for (size_t i = 0; i < c->count; i++) {
        cubins += c->entries[i].kind == FATBIN_CUBIN;
        stubs += c->entries[i].stub;
        others += c->entries[i].kind == FATBIN_PTX;
    }
    /* A source file without a kernel leaves empty cubins, and PTX that is as empty. */
    return cubins > 0 ? stubs < cubins : others > 0;
}
