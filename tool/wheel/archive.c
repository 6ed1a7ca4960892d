/* Reads zip archives: the central directory from the end, members by range; or all of it in order. */
#include "wheel/archive.h"

#include <stdlib.h>
#include <sys/mman.h>

#include <isa-l.h>

enum {
    LOCAL_MAGIC = 0x04034b50,
    CENTRAL_MAGIC = 0x02014b50,
    END_MAGIC = 0x06054b50,
    END64_MAGIC = 0x06064b50,
    LOCATOR_MAGIC = 0x07064b50,
    DESCRIPTOR_MAGIC = 0x08074b50,
    LOCAL_SIZE = 30,
    CENTRAL_SIZE = 46,
    END_SIZE = 22,
    END64_SIZE = 56,
    LOCATOR_SIZE = 20,
    TAIL = 66 << 10, /* a zip comment has at most 65,535 bytes; most directories fit as well */
    FLAG_ENCRYPTED = 1,
    FLAG_DESCRIPTOR = 8,
    STORED = 0,
    DEFLATED = 8,
    OUT = 256 << 10,   /* unpacked at a time */
    IN = 256 << 10,    /* read of a file at a time, so that the pages of a map stay few */
    RATIO_MOST = 1032, /* of deflate: one that claims more is a bomb or damaged */
    PARALLEL = 4,
    FORGET = 8 << 20, /* bytes of a mapped file after which its pages are given back */
    PAGE = 64 << 10   /* a multiple of every page size */
};

/* ---- Unpacking a member that is pushed in pieces ---- */
enum reader_state { READING, STOPPED, FAILED, FINISHED };
struct reader {
    arena *a;
    const struct archive_member *member;
    struct archive_job *job;
    uint64_t packed, size; /* passed so far */
    uint32_t crc;
    struct inflate_state *inflate; /* NULL for stored */
    uint8_t *out;
    bool sink_stopped;
};

static bool reader_start(struct reader *r, arena *a, const struct archive_member *m, struct archive_job *job)
{
    *r = (struct reader){.a = a, .member = m, .job = job};
    job->whole = false;
    job->error = (str){NULL, 0};
    if (m->method == DEFLATED) {
        r->inflate = malloc(sizeof *r->inflate);
        r->out = malloc(OUT);
        if (!r->inflate || !r->out) {
            job->error = S("no memory to unpack it");
            return false;
        }
        isal_inflate_init(r->inflate);
        r->inflate->crc_flag = ISAL_DEFLATE;
    }
    return true;
}

static void reader_free(struct reader *r)
{
    free(r->inflate);
    free(r->out);
    r->inflate = NULL;
    r->out = NULL;
}

static enum reader_state reader_fail(struct reader *r, const char *what)
{
    r->job->error =
        str_format(r->a, "%s at byte %llu of its packed data", what, (unsigned long long)r->packed);
    return FAILED;
}

static bool reader_pass(struct reader *r, span bytes)
{
    r->crc = crc32_gzip_refl(r->crc, bytes.p, bytes.n);
    r->size += bytes.n;
    return r->job->sink(r->job->context, bytes);
}

/* Takes bytes of the member's packed data; *taken of them belonged to it. */
static enum reader_state reader_feed(struct reader *r, span bytes, size_t *taken)
{
    const bool known = r->member->sizes_known;
    *taken = 0;
    if (known && bytes.n > r->member->packed - r->packed)
        bytes.n = (size_t)(r->member->packed - r->packed);
    if (!r->inflate) {
        r->packed += bytes.n;
        *taken = bytes.n;
        if (bytes.n > 0 && !reader_pass(r, bytes))
            return STOPPED;
        return known && r->packed == r->member->packed ? FINISHED : READING;
    }
    r->inflate->next_in = unconst(bytes.p); /* igzip only reads it */
    r->inflate->avail_in = (uint32_t)bytes.n;
    for (;;) {
        r->inflate->next_out = r->out;
        r->inflate->avail_out = OUT;
        const uint32_t before = r->inflate->avail_in;
        const int code = isal_inflate(r->inflate);
        const size_t n = OUT - r->inflate->avail_out;
        r->packed += before - r->inflate->avail_in;
        *taken += before - r->inflate->avail_in;
        if (code != ISAL_DECOMP_OK && code != ISAL_END_INPUT)
            return reader_fail(r, "its deflate data is damaged");
        if (known ? n > r->member->size - r->size : n > ARCHIVE_SIZE_MOST - r->size)
            return reader_fail(r, "it unpacks to more than it claims");
        if (n > 0 && !reader_pass(r, (span){r->out, n}))
            return STOPPED;
        if (r->inflate->block_state == ISAL_BLOCK_FINISH) {
            /* igzip reads ahead into its bit buffer; whole bytes of it were not the member's. */
            const size_t ahead = (size_t)r->inflate->read_in_length / 8;
            const size_t back = r->inflate->read_in_length <= 0 ? 0 : ahead < *taken ? ahead : *taken;
            *taken -= back;
            r->packed -= back;
            return FINISHED;
        }
        if (n == 0 && r->inflate->avail_in == 0)
            return READING;
        if (n == 0 && before == r->inflate->avail_in)
            return reader_fail(r, "its deflate data is damaged");
    }
}

static void reader_judge(struct reader *r, uint64_t size, uint32_t crc)
{
    if (r->size != size)
        r->job->error = str_format(r->a, "it unpacks to %llu bytes, expected %llu",
                                   (unsigned long long)r->size, (unsigned long long)size);
    else if (r->crc != crc)
        r->job->error = str_format(r->a, "its CRC is %08x, expected %08x", (unsigned)r->crc, (unsigned)crc);
    else
        r->job->whole = true;
}

/* The end of the member's bytes has come. */
static void reader_end(struct reader *r, enum reader_state state)
{
    if (state == FINISHED || (state == READING && r->member->sizes_known && r->packed == r->member->packed))
        reader_judge(r, r->member->size, r->member->crc);
    else if (state == READING)
        r->job->error = str_format(r->a, "the archive ends at byte %llu of its %llu packed bytes",
                                   (unsigned long long)r->packed, (unsigned long long)r->member->packed);
    reader_free(r);
}

/* ---- The central directory ---- */
static bool damaged(const struct archive *archive, findings *f, const char *what, uint64_t at)
{
    return finding_fatal(f, 3, F200, (struct place){.file = archive->where}, "%s, at byte %llu of %llu", what,
                         (unsigned long long)at, (unsigned long long)archive->size);
}

/* What stands where an archive was meant: the text says so. */
static const char *stand_in(span start)
{
    const str text = str_trim_left(str_from_span((span){start.p, start.n < 512 ? start.n : 512}));
    if (str_starts(text, S("version https://git-lfs.github.com/spec/")))
        return "it is a pointer of Git LFS";
    if (text.n > 0 && text.p[0] == '<' &&
        (str_eq_nocase(str_slice(text, 0, 9), S("<!doctype")) ||
         str_eq_nocase(str_slice(text, 0, 5), S("<html"))))
        return "it is an HTML page";
    return NULL;
}

static bool is_stand_in(const struct archive *archive, span start, findings *f)
{
    const char *what = stand_in(start);
    if (!what)
        return false;
    (void)finding_fatal(f, 3, F216, (struct place){.file = archive->where}, "%s, not a wheel", what);
    return true;
}

/* Names of members are paths below the folder that they are unpacked to. */
static bool name_is_safe(str name)
{
    str rest = name, part;
    if (name.n == 0 || name.p[0] == '/' || str_find_char(name, '\0') != SIZE_MAX ||
        str_find_char(name, '\\') != SIZE_MAX)
        return false;
    while (rest.p) {
        (void)str_cut(rest, '/', &part, &rest);
        if (str_eq(part, S("..")))
            return false;
    }
    return true;
}

/* In zip64's extra field stand, in this order, only those values whose 32 bits are all ones. */
static bool read_zip64(span extra, struct archive_member *m)
{
    for (uint64_t at = 0; at + 4 <= extra.n;) {
        const uint16_t id = span_u16le(extra, at), size = span_u16le(extra, at + 2);
        span field;
        if (!span_slice(extra, at + 4, size, &field))
            return false;
        at += 4 + (uint64_t)size;
        if (id != 1)
            continue;
        uint64_t *const values[] = {&m->size, &m->packed, &m->offset};
        uint64_t next = 0;
        for (size_t i = 0; i < COUNT(values); i++) {
            if (*values[i] != UINT32_MAX)
                continue;
            if (next + 8 > field.n)
                return false;
            *values[i] = span_u64le(field, next);
            next += 8;
        }
    }
    return true;
}

struct by_offset {
    uint64_t offset;
    size_t index;
};

static int by_offset_cmp(const void *x, const void *y)
{
    const struct by_offset *a = x, *b = y;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* Where each member's bytes end, at the latest; members that share bytes are how a small archive unpacks to a huge one. */
static bool bound_members(arena *a, struct archive *archive, uint64_t directory, findings *f)
{
    struct by_offset *order = arena_array(a, struct by_offset, archive->count);
    if (!order && archive->count > 0)
        return damaged(archive, f, "its directory is over the limit on memory", directory);
    for (size_t i = 0; i < archive->count; i++)
        order[i] = (struct by_offset){archive->items[i].offset, i};
    if (archive->count > 1)
        qsort(order, archive->count, sizeof *order, by_offset_cmp);
    for (size_t i = 0; i < archive->count; i++) {
        struct archive_member *m = &archive->items[order[i].index];
        m->end = i + 1 < archive->count ? order[i + 1].offset : directory;
        if (m->end < m->offset || m->end - m->offset < LOCAL_SIZE ||
            m->packed > m->end - m->offset - LOCAL_SIZE)
            return damaged(archive, f, "two members share bytes, or one goes past the directory", m->offset);
    }
    return true;
}

static bool read_directory(arena *a, struct archive *archive, span bytes, uint64_t at, uint64_t claimed,
                           findings *f)
{
    uint64_t p = 0;
    while (p + CENTRAL_SIZE <= bytes.n && span_u32le(bytes, p) == CENTRAL_MAGIC) {
        const size_t name = span_u16le(bytes, p + 28), extra = span_u16le(bytes, p + 30),
                     comment = span_u16le(bytes, p + 32);
        struct archive_member m = {.method = span_u16le(bytes, p + 10),
                                   .crc = span_u32le(bytes, p + 16),
                                   .packed = span_u32le(bytes, p + 20),
                                   .size = span_u32le(bytes, p + 24),
                                   .offset = span_u32le(bytes, p + 42),
                                   .sizes_known = true};
        span text, extras;
        if (!span_slice(bytes, p + CENTRAL_SIZE, name, &text) ||
            !span_slice(bytes, p + CENTRAL_SIZE + name, extra, &extras) || !read_zip64(extras, &m))
            return damaged(archive, f, "a directory entry goes past the directory", at + p);
        m.name = str_copy(a, str_from_span(text)); /* findings keep it when the archive is closed */
        if (!name_is_safe(m.name))
            return damaged(archive, f, "a member's name is no path below its folder", at + p);
        if (span_u16le(bytes, p + 8) & FLAG_ENCRYPTED)
            return damaged(archive, f, "a member is encrypted", at + p);
        if (m.method != STORED && m.method != DEFLATED)
            return damaged(archive, f, "a member is packed by a method other than deflate", at + p);
        if (m.size > ARCHIVE_SIZE_MOST || (m.method == STORED && m.size != m.packed) ||
            m.packed > archive->size || m.size / RATIO_MOST > m.packed + 1)
            return damaged(archive, f, "a member's sizes contradict each other", at + p);
        if (archive->count == ARCHIVE_MEMBERS_MOST || !arena_room(a, archive))
            return damaged(archive, f, "there are too many members", at + p);
        archive->items[archive->count++] = m;
        p += CENTRAL_SIZE + name + extra + comment;
    }
    if (archive->count != claimed)
        return damaged(archive, f, "the directory ends before its last entry", at + p);
    return bound_members(a, archive, at, f);
}

/* Finds the end record in the tail of the archive, and the directory. */
static bool find_directory(const struct archive *archive, span tail, uint64_t *at, uint64_t *size,
                           uint64_t *entries, findings *f)
{
    const uint64_t tail_at = archive->size - tail.n;
    size_t end = tail.n;
    for (size_t i = tail.n >= END_SIZE ? tail.n - END_SIZE + 1 : 0; i-- > 0;) {
        if (span_u32le(tail, i) == END_MAGIC && i + END_SIZE + span_u16le(tail, i + 20) <= tail.n) {
            end = i;
            break;
        }
    }
    if (end == tail.n)
        return damaged(archive, f, "the record at the end of a zip archive is missing", archive->size);
    *entries = span_u16le(tail, end + 10);
    *size = span_u32le(tail, end + 12);
    *at = span_u32le(tail, end + 16);
    if (end >= LOCATOR_SIZE && span_u32le(tail, end - LOCATOR_SIZE) == LOCATOR_MAGIC) {
        const uint64_t end64 = span_u64le(tail, end - LOCATOR_SIZE + 8);
        span record;
        if (end64 < tail_at || !span_slice(tail, end64 - tail_at, END64_SIZE, &record) ||
            span_u32le(record, 0) != END64_MAGIC)
            return damaged(archive, f, "the zip64 record is not where its locator says",
                           tail_at + end - LOCATOR_SIZE);
        *entries = span_u64le(record, 32);
        *size = span_u64le(record, 40);
        *at = span_u64le(record, 48);
    }
    if (*size > ARCHIVE_DIRECTORY_MOST || *at > tail_at + end || *size > tail_at + end - *at)
        return damaged(archive, f, "the directory lies outside the archive", *at);
    return true;
}

bool archive_open_bytes(arena *a, str where, span bytes, struct archive *out, findings *f)
{
    struct archive archive = {.where = where, .map = bytes, .size = bytes.n, .by_range = true};
    uint64_t at = 0, size = 0, entries = 0;
    if (is_stand_in(&archive, bytes, f) || !find_directory(&archive, bytes, &at, &size, &entries, f) ||
        !read_directory(a, &archive, (span){bytes.p + at, (size_t)size}, at, entries, f))
        return false;
    archive.bytes_read = bytes.n - at;
    *out = archive;
    return true;
}

/* ---- Over HTTP ---- */
struct tail_sink {
    const struct http_response *response;
    struct buf start; /* the tail; or the first bytes when the server sends all */
};

static bool take_tail(void *context, span bytes)
{
    struct tail_sink *t = context;
    buf_add(&t->start, str_from_span(bytes));
    return t->response->has_total || t->start.count < 512;
}

static bool http_failed(const struct archive *archive, const struct http_response *r, findings *f)
{
    const struct place place = {.file = archive->where};
    if (r->error.p)
        return finding_fatal(f, 4, F007, place, "%.*s", STR_ARG(r->error));
    return finding_fatal(f, 4, F007, place, "the server answered %ld%s", r->status,
                         r->status == 404                       ? ": there is no such file"
                         : r->status == 401 || r->status == 403 ? ": it wants to know who asks"
                                                                : "");
}

static bool get_span(arena *a, struct archive *archive, uint64_t first, uint64_t size, span *out, findings *f)
{
    struct http_response response;
    const struct http_request request = {
        .url = archive->url, .ranged = true, .first = first, .last = first + size - 1, .limit = size};
    if (size == 0) {
        *out = (span){NULL, 0};
        return true;
    }
    if (!http_get(archive->http, a, &request, &response) || response.status != 206)
        return http_failed(archive, &response, f);
    archive->bytes_read += response.received;
    if (response.body.n != size)
        return finding_fatal(f, 4, F007, (struct place){.file = archive->where},
                             "the server sent %zu bytes, asked for %llu", response.body.n,
                             (unsigned long long)size);
    *out = response.body;
    return true;
}

static bool open_url(arena *a, struct archive *archive, findings *f)
{
    struct http_response response = {0};
    struct tail_sink tail = {.response = &response, .start = {.a = a}};
    const struct http_request request = {.url = archive->where,
                                         .suffix = true,
                                         .last = TAIL,
                                         .limit = ARCHIVE_SIZE_MOST,
                                         .sink = take_tail,
                                         .context = &tail};
    if (!http_get(archive->http, a, &request, &response) ||
        (response.status != 206 && response.status != 200))
        return http_failed(archive, &response, f);
    archive->url = response.url;
    archive->etag = response.etag;
    archive->bytes_read += response.received;
    span bytes = span_from_str(buf_str(&tail.start));
    if (is_stand_in(archive, bytes, f))
        return false;
    archive->by_range = response.status == 206 && response.has_total;
    archive->size = archive->by_range ? response.total : response.length;
    if (!archive->by_range)
        return true;
    uint64_t at = 0, size = 0, entries = 0;
    if (archive->size > ARCHIVE_SIZE_MOST || bytes.n > archive->size)
        return damaged(archive, f, "the server's sizes contradict each other", archive->size);
    if (!find_directory(archive, bytes, &at, &size, &entries, f))
        return false;
    const uint64_t tail_at = archive->size - bytes.n;
    span directory = {0};
    if (at >= tail_at)
        (void)span_slice(bytes, at - tail_at, size, &directory);
    else if (!get_span(a, archive, at, size, &directory, f))
        return false;
    return read_directory(a, archive, directory, at, entries, f);
}

bool archive_open(arena *a, http *h, str where, struct archive *out, findings *f)
{
    if (str_starts(where, S("http://")) || str_starts(where, S("https://"))) {
        struct archive archive = {.where = where, .http = h};
        if (!h)
            return finding_fatal(f, 4, F007, (struct place){.file = where}, "no address is read here");
        if (!open_url(a, &archive, f))
            return false;
        *out = archive;
        return true;
    }
    span map;
    if (!file_map(where, ARCHIVE_SIZE_MOST, &map, f))
        return false;
    if (archive_open_bytes(a, where, map, out, f)) {
        out->mapped = true;
        return true;
    }
    file_unmap(map);
    return false;
}

void archive_close(struct archive *archive)
{
    if (archive->map.p && !archive->http)
        file_unmap(archive->map);
    archive->map = (span){NULL, 0};
}

size_t archive_find(const struct archive *archive, str name)
{
    for (size_t i = 0; i < archive->count; i++)
        if (str_eq(archive->items[i].name, name))
            return i;
    return SIZE_MAX;
}

/* ---- Members ---- */
/* The local header's own name and extra field come before the data; their lengths may differ from the directory's. */
static size_t local_header(span start)
{
    return LOCAL_SIZE + (size_t)span_u16le(start, 26) + span_u16le(start, 28);
}

void archive_forget(span bytes)
{
    const size_t skip = (PAGE - (uintptr_t)bytes.p % PAGE) % PAGE;
    void *first;
    if (bytes.n < skip + PAGE)
        return;
    const uint8_t *start = bytes.p + skip;
    memcpy(&first, &start, sizeof first); /* madvise takes no const */
    (void)madvise(first, (bytes.n - skip) / PAGE * PAGE, MADV_DONTNEED);
}

static void run_from_map(arena *a, struct archive *archive, struct archive_job *job)
{
    const struct archive_member *m = &archive->items[job->member];
    struct reader r;
    span local, data;
    enum reader_state state = READING;
    if (!span_slice(archive->map, m->offset, m->end - m->offset, &local) ||
        span_u32le(local, 0) != LOCAL_MAGIC || !span_slice(local, local_header(local), m->packed, &data)) {
        job->error = str_format(a, "expected its local header at byte %llu", (unsigned long long)m->offset);
        return;
    }
    if (!reader_start(&r, a, m, job)) {
        reader_free(&r);
        return;
    }
    for (size_t at = 0, taken = 0; state == READING && at < data.n; at += taken) {
        const size_t n = data.n - at < IN ? data.n - at : IN;
        state = reader_feed(&r, (span){data.p + at, n}, &taken);
        if (archive->mapped && at / FORGET != (at + taken) / FORGET)
            archive_forget((span){data.p + at / FORGET * FORGET, FORGET < data.n - at / FORGET * FORGET
                                                                     ? FORGET
                                                                     : data.n - at / FORGET * FORGET});
    }
    reader_end(&r, state);
}

struct pushed { /* a member that arrives by HTTP */
    const struct http_response *response;
    struct reader reader;
    uint8_t header[LOCAL_SIZE];
    size_t header_count;
    uint64_t skip; /* of the local header */
    bool started;
    enum reader_state state;
};

static bool take_member(void *context, span bytes)
{
    struct pushed *p = context;
    if (p->response->status != 206) { /* it would be the archive's start, which looks like a member */
        p->state = STOPPED;
        return false;
    }
    while (p->header_count < LOCAL_SIZE && bytes.n > 0) {
        p->header[p->header_count++] = *bytes.p++;
        bytes.n--;
        if (p->header_count == LOCAL_SIZE) {
            const span header = {p->header, LOCAL_SIZE};
            if (span_u32le(header, 0) != LOCAL_MAGIC) {
                p->state = FAILED;
                p->reader.job->error = str_format(p->reader.a, "expected its local header at byte %llu",
                                                  (unsigned long long)p->reader.member->offset);
                return false;
            }
            p->skip = local_header(header) - LOCAL_SIZE;
        }
    }
    const size_t skip = p->skip < bytes.n ? (size_t)p->skip : bytes.n;
    p->skip -= skip;
    bytes.p += skip;
    bytes.n -= skip;
    if (bytes.n == 0)
        return true;
    size_t taken = 0;
    p->state = reader_feed(&p->reader, bytes, &taken);
    return p->state == READING;
}

static void run_by_range(arena *a, struct archive *archive, struct archive_job *jobs, size_t count)
{
    struct pushed *pushed = arena_array(a, struct pushed, count);
    struct http_request *requests = arena_array(a, struct http_request, count);
    struct http_response *responses = arena_array(a, struct http_response, count);
    for (size_t i = 0; i < count; i++) {
        const struct archive_member *m = &archive->items[jobs[i].member];
        jobs[i].error = S("no memory to fetch it");
        if (!pushed || !requests || !responses)
            continue;
        pushed[i].response = &responses[i];
        pushed[i].started = reader_start(&pushed[i].reader, a, m, &jobs[i]);
        requests[i] = (struct http_request){.url = archive->url,
                                            .ranged = true,
                                            .first = m->offset,
                                            .last = m->end - 1,
                                            .limit = m->end - m->offset,
                                            .sink = take_member,
                                            .context = &pushed[i]};
    }
    if (!pushed || !requests || !responses)
        return;
    http_get_many(archive->http, a, requests, count, PARALLEL, responses);
    for (size_t i = 0; i < count; i++) {
        archive->bytes_read += responses[i].received;
        if (responses[i].error.p && !jobs[i].error.p)
            jobs[i].error = responses[i].error;
        else if (responses[i].status != 206 && !jobs[i].error.p)
            jobs[i].error = str_format(a, "the server answered %ld to a range of it", responses[i].status);
        if (jobs[i].error.p)
            reader_free(&pushed[i].reader);
        else
            reader_end(&pushed[i].reader, pushed[i].state);
    }
}

void archive_run(arena *a, struct archive *archive, struct archive_job *jobs, size_t count)
{
    if (archive->http) {
        run_by_range(a, archive, jobs, count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        run_from_map(a, archive, &jobs[i]);
}

/* ---- In file order ---- */
enum walk_state { AT_HEADER, AT_NAME, IN_MEMBER, AT_DESCRIPTOR, AT_END };
struct walk {
    arena *a;
    struct archive *archive;
    archive_begin begin;
    archive_done done;
    void *context;
    findings *f;
    enum walk_state state;
    struct buf piece; /* a header that is not whole yet */
    uint64_t at;
    size_t index;
    struct archive_member member;
    bool has_descriptor, failed;
    struct reader reader;
    struct archive_job *job; /* NULL: nobody wants the member */
    struct archive_job dropped;
    bool sink_stopped;
};

static bool walk_fail(struct walk *w, const char *what)
{
    w->failed = true;
    return damaged(w->archive, w->f, what, w->at);
}

static bool drop(void *context, span bytes)
{
    (void)context, (void)bytes;
    return true;
}

/* A sink that has stopped must not stop the walk: the rest of the member passes by. */
static bool pass_on(void *context, span bytes)
{
    struct walk *w = context;
    if (w->job && !w->sink_stopped && !w->job->sink(w->job->context, bytes))
        w->sink_stopped = true;
    return true;
}

static bool walk_piece(struct walk *w, span *bytes, size_t want)
{
    const size_t n = want - w->piece.count < bytes->n ? want - w->piece.count : bytes->n;
    buf_add(&w->piece, str_from_span((span){bytes->p, n}));
    bytes->p += n;
    bytes->n -= n;
    w->at += n;
    return w->piece.count == want && !w->piece.failed;
}

static bool walk_begin(struct walk *w, span header)
{
    const size_t name = span_u16le(header, 26), extra = span_u16le(header, 28);
    const uint16_t flags = span_u16le(header, 6);
    struct archive_member m = {.method = span_u16le(header, 8),
                               .crc = span_u32le(header, 14),
                               .packed = span_u32le(header, 18),
                               .size = span_u32le(header, 22)};
    span extras;
    m.name = str_copy(w->a, str_slice(str_from_span(header), LOCAL_SIZE, LOCAL_SIZE + name));
    if (!name_is_safe(m.name) || !span_slice(header, LOCAL_SIZE + name, extra, &extras) ||
        !read_zip64(extras, &m))
        return walk_fail(w, "a member's name is no path below its folder");
    w->has_descriptor = flags & FLAG_DESCRIPTOR;
    m.sizes_known = !w->has_descriptor;
    if (flags & FLAG_ENCRYPTED || (m.method != STORED && m.method != DEFLATED) ||
        (m.method == STORED && w->has_descriptor))
        return walk_fail(w, "a member is encrypted, or packed in a way that has no end");
    if (m.sizes_known && (m.size > ARCHIVE_SIZE_MOST || m.packed > ARCHIVE_SIZE_MOST ||
                          (m.method == STORED && m.size != m.packed)))
        return walk_fail(w, "a member's sizes contradict each other");
    w->member = m;
    if (w->index == w->archive->count) {
        if (w->archive->count == ARCHIVE_MEMBERS_MOST || !arena_room(w->a, w->archive))
            return walk_fail(w, "there are too many members");
        w->archive->items[w->archive->count++] = m;
    }
    w->sink_stopped = false;
    w->job = w->begin(w->context, &w->member, w->index++);
    w->dropped = (struct archive_job){.sink = w->job ? pass_on : drop, .context = w};
    w->state = IN_MEMBER;
    if (!reader_start(&w->reader, w->a, &w->member, &w->dropped))
        return walk_fail(w, "no memory to unpack a member");
    return true;
}

static bool walk_end_member(struct walk *w, uint64_t size, uint32_t crc)
{
    reader_judge(&w->reader, size, crc);
    reader_free(&w->reader);
    w->archive->items[w->index - 1].size = size;
    if (w->job) {
        w->job->whole = w->dropped.whole && !w->sink_stopped;
        w->job->error = w->dropped.error;
        w->done(w->context, w->job);
    }
    w->piece = (struct buf){.a = w->a};
    w->state = AT_HEADER;
    return true;
}

static bool walk_in_member(struct walk *w, span *bytes)
{
    size_t taken = 0;
    const enum reader_state state = reader_feed(&w->reader, *bytes, &taken);
    bytes->p += taken;
    bytes->n -= taken;
    w->at += taken;
    if (state == FAILED)
        return walk_fail(w, str_c(w->a, w->dropped.error));
    if (state != FINISHED && !(w->member.sizes_known && w->reader.packed == w->member.packed))
        return true;
    w->piece = (struct buf){.a = w->a};
    if (w->has_descriptor) {
        w->state = AT_DESCRIPTOR;
        return true;
    }
    return walk_end_member(w, w->member.size, w->member.crc);
}

static bool walk_feed(void *context, span bytes)
{
    struct walk *w = context;
    while (bytes.n > 0 && !w->failed) {
        switch (w->state) {
        case AT_HEADER: {
            if (!walk_piece(w, &bytes, LOCAL_SIZE))
                break;
            const uint32_t magic = span_u32le(span_from_str(buf_str(&w->piece)), 0);
            w->state = magic == LOCAL_MAGIC ? AT_NAME : AT_END;
            if (magic != LOCAL_MAGIC && magic != CENTRAL_MAGIC && magic != END_MAGIC && magic != END64_MAGIC)
                return walk_fail(w, "expected a member's header or the directory");
            break;
        }
        case AT_NAME: {
            const span header = span_from_str(buf_str(&w->piece));
            if (local_header(header) == LOCAL_SIZE)
                return walk_fail(w, "a member has no name");
            if (walk_piece(w, &bytes, local_header(header)) &&
                !walk_begin(w, span_from_str(buf_str(&w->piece))))
                return false;
            /* An empty stored member has no byte that would move it on. */
            if (w->state == IN_MEMBER && w->member.sizes_known && w->member.packed == 0 &&
                !walk_end_member(w, w->member.size, w->member.crc))
                return false;
            break;
        }
        case IN_MEMBER:
            if (!walk_in_member(w, &bytes))
                return false;
            break;
        case AT_DESCRIPTOR: {
            /* CRC and sizes, with or without a magic before them; zip64 writers use 64-bit sizes: both sizes tell. */
            if (!walk_piece(w, &bytes, w->piece.count < 16 ? 16 : 24))
                break;
            const span d = span_from_str(buf_str(&w->piece));
            if (span_u32le(d, 0) != DESCRIPTOR_MAGIC)
                return walk_fail(w, "expected a member's descriptor");
            if (d.n == 16 && span_u32le(d, 8) == (uint32_t)w->reader.packed &&
                span_u32le(d, 12) == (uint32_t)w->reader.size && w->reader.size <= UINT32_MAX) {
                if (!walk_end_member(w, w->reader.size, span_u32le(d, 4)))
                    return false;
            } else if (d.n == 24) {
                if (!walk_end_member(w, span_u64le(d, 16), span_u32le(d, 4)))
                    return false;
            }
            break;
        }
        case AT_END:
            w->at += bytes.n;
            return true;
        }
    }
    return !w->failed;
}

bool archive_walk(arena *a, struct archive *archive, archive_begin begin, archive_done done, void *context,
                  findings *f)
{
    struct walk w = {.a = a,
                     .archive = archive,
                     .begin = begin,
                     .done = done,
                     .context = context,
                     .f = f,
                     .piece = {.a = a}};
    struct http_response response = {0};
    const struct http_request request = {
        .url = archive->url, .limit = ARCHIVE_SIZE_MOST, .sink = walk_feed, .context = &w};
    bool good = true;
    if (archive->http) {
        good = http_get(archive->http, a, &request, &response) && response.status == 200;
        archive->bytes_read += response.received;
        archive->size = response.received > archive->size ? response.received : archive->size;
        if (!good && !w.failed)
            (void)http_failed(archive, &response, f);
    } else {
        (void)walk_feed(&w, archive->map);
    }
    if (good && !w.failed && w.state != AT_END)
        (void)walk_fail(&w, "the archive ends before its directory");
    reader_free(&w.reader);
    return good && !w.failed && w.state == AT_END;
}
