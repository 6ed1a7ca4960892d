/* asset/io.c: files in by ranges or in order, files out through a temporary file and a rename. */
#include "asset/asset.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

bool reader_fail(struct reader *r, uint64_t offset, const char *format, ...)
{
    char what[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (!r->status)
        r->status = status_fail(FEL_MALFORMED, "%s: byte %" PRIu64 ": %s", r->source->name, offset, what);
    return false;
}

bool reader_out_of_memory(struct reader *r)
{
    if (!r->status)
        r->status = FEL_OUT_OF_MEMORY;
    return false;
}

/* pread until size bytes have come; false with the error recorded. The range lies inside the source. */
static bool read_range(struct reader *r, uint64_t offset, void *out, size_t size)
{
    const struct source *s = r->source;
    if (s->bytes) {
        if (size)
            memcpy(out, s->bytes + offset, size);
        return true;
    }
    for (size_t done = 0; done < size;) {
        const ssize_t got = pread(s->fd, (char *)out + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            if (!r->status)
                r->status =
                    status_fail(FEL_IO, "%s: byte %" PRIu64 ": %s", s->name, offset + done, strerror(errno));
            return false;
        }
        if (got == 0)
            return reader_fail(r, offset + done, "the file became shorter while it was read");
        done += (size_t)got;
    }
    return true;
}

bool source_read(struct reader *r, uint64_t offset, void *out, size_t size)
{
    if (offset > r->source->size || size > r->source->size - offset)
        return reader_fail(r, offset, "expected %zu bytes, the file ends at byte %" PRIu64, size,
                           r->source->size);
    return read_range(r, offset, out, size);
}

bool cursor_open(struct cursor *c, struct reader *r, uint64_t offset)
{
    *c = (struct cursor){.reader = r, .start = offset, .window = malloc(WINDOW_SIZE)};
    if (!c->window)
        r->status = status_fail(FEL_OUT_OF_MEMORY, "%d bytes could not be allocated", WINDOW_SIZE);
    return c->window != NULL;
}

void cursor_close(struct cursor *c)
{
    free(c->window);
    c->window = NULL;
}

uint64_t cursor_offset(const struct cursor *c) { return c->start + c->at; }

/* Moves what is left to the window's start and fills the rest; false on an error or when nothing more came. */
static bool cursor_fill(struct cursor *c)
{
    const uint64_t size = c->reader->source->size;
    memmove(c->window, c->window + c->at, c->filled - c->at);
    c->start += c->at;
    c->filled -= c->at;
    c->at = 0;
    const uint64_t left = size - (c->start + c->filled);
    const size_t room = WINDOW_SIZE - c->filled;
    const size_t want = left < room ? (size_t)left : room;
    if (!want || !read_range(c->reader, c->start + c->filled, c->window + c->filled, want))
        return false;
    c->filled += want;
    return true;
}

const uint8_t *cursor_take(struct cursor *c, size_t size)
{
    if (c->filled - c->at < size)
        (void)cursor_fill(c);
    if (c->filled - c->at < size) {
        (void)reader_fail(c->reader, cursor_offset(c), "expected %zu bytes, the file ends at byte %" PRIu64,
                          size, c->reader->source->size);
        return NULL;
    }
    const uint8_t *bytes = c->window + c->at;
    c->at += size;
    return bytes;
}

bool cursor_line(struct cursor *c, const char **line, size_t *size)
{
    size_t seen = 0;
    const uint8_t *end;
    while (!(end = c->filled > c->at + seen ? memchr(c->window + c->at + seen, '\n', c->filled - c->at - seen)
                                            : NULL)) {
        seen = c->filled - c->at;
        if (cursor_fill(c))
            continue;
        if (c->reader->status)
            return false;
        if (seen == WINDOW_SIZE)
            return reader_fail(c->reader, cursor_offset(c), "a line is longer than %d bytes", WINDOW_SIZE);
        break;
    }
    if (!end && !seen)
        return false;
    c->line++;
    c->line_offset = cursor_offset(c);
    *line = (const char *)c->window + c->at;
    *size = end ? (size_t)(end - (c->window + c->at)) : seen;
    c->at += *size + (end ? 1 : 0);
    if (*size && (*line)[*size - 1] == '\r')
        --*size;
    return true;
}

static bool is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool cursor_word(struct cursor *c, const char **word, size_t *size)
{
    do {
        while (c->at < c->filled && is_space(c->window[c->at]))
            c->at++;
    } while (c->at == c->filled && cursor_fill(c));
    if (c->at == c->filled)
        return false;
    size_t length = 0;
    for (;;) {
        while (c->at + length < c->filled && !is_space(c->window[c->at + length]))
            length++;
        if (c->at + length < c->filled || !cursor_fill(c))
            break;
    }
    if (c->reader->status)
        return false;
    if (length == WINDOW_SIZE)
        return reader_fail(c->reader, cursor_offset(c), "a word is longer than %d bytes", WINDOW_SIZE);
    *word = (const char *)c->window + c->at;
    *size = length;
    c->line_offset = cursor_offset(c);
    c->at += length;
    return true;
}

float get_f32le(const uint8_t *p)
{
    const uint32_t bits = get_u32le(p);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- output */

enum { OUTPUT_BUFFER = 1 << 18, OUTPUT_TEXT = 4096 };

/* Unlike mkstemp's 0600, the file gets the mode that the user's umask gives any new file. */
static int open_temporary(const char *target, char **temporary)
{
    const char *slash = strrchr(target, '/');
    const int folder = slash ? (int)(slash - target) + 1 : 0;
    const size_t room = strlen(target) + 32;
    *temporary = malloc(room);
    if (!*temporary)
        return -1;
    static _Atomic unsigned counter;
    for (int attempt = 0; attempt < 100; attempt++) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        const uint64_t mix =
            ((uint64_t)now.tv_nsec << 20 ^ (uint64_t)getpid()) * 0x9E3779B97F4A7C15u + counter++;
        snprintf(*temporary, room, "%.*s.%.200s.%08" PRIx32 ".tmp", folder, target, target + folder,
                 (uint32_t)(mix >> 16));
        const int fd = open(*temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

fel_status output_open(struct output *o, const char *path)
{
    *o = (struct output){.fd = -1, .target = malloc(strlen(path) + 1), .buffer = malloc(OUTPUT_BUFFER)};
    if (!o->target || !o->buffer) {
        o->status = status_fail(FEL_OUT_OF_MEMORY, "%d bytes could not be allocated", OUTPUT_BUFFER);
    } else {
        memcpy(o->target, path, strlen(path) + 1);
        o->fd = open_temporary(path, &o->temporary);
        if (o->fd < 0)
            o->status = status_fail(FEL_IO, "%s: %s", path, strerror(errno));
    }
    return o->status ? output_close(o, o->status) : FEL_OK;
}

static void output_flush(struct output *o)
{
    for (size_t done = 0; done < o->filled && !o->status;) {
        const ssize_t wrote = write(o->fd, o->buffer + done, o->filled - done);
        if (wrote > 0)
            done += (size_t)wrote;
        else if (errno != EINTR)
            o->status = status_fail(FEL_IO, "%s: %s", o->target, strerror(errno));
    }
    o->filled = 0;
}

void output_bytes(struct output *o, const void *bytes, size_t size)
{
    while (size && !o->status) {
        const size_t room = OUTPUT_BUFFER - o->filled;
        const size_t part = size < room ? size : room;
        memcpy(o->buffer + o->filled, bytes, part);
        o->filled += part;
        bytes = (const char *)bytes + part;
        size -= part;
        if (o->filled == OUTPUT_BUFFER)
            output_flush(o);
    }
}

void output_text(struct output *o, const char *format, ...)
{
    char text[OUTPUT_TEXT];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0 || length >= OUTPUT_TEXT)
        o->status =
            o->status ? o->status : status_fail(FEL_INVALID_ARGUMENT, "a name is longer than 4000 bytes");
    else
        output_bytes(o, text, (size_t)length);
}

void output_float(struct output *o, float value, char after)
{
    char text[40];
    const size_t length = float_print(text, value);
    text[length] = after;
    output_bytes(o, text, length + 1);
}

void output_u32le(struct output *o, uint32_t value)
{
    const uint8_t bytes[4] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
                              (uint8_t)(value >> 24)};
    output_bytes(o, bytes, 4);
}

void output_f32le(struct output *o, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    output_u32le(o, bits);
}

fel_status output_close(struct output *o, fel_status status)
{
    if (o->fd >= 0) {
        output_flush(o);
        if (!status)
            status = o->status;
        if (close(o->fd) && !status)
            status = status_fail(FEL_IO, "%s: %s", o->target, strerror(errno));
        if (!status && rename(o->temporary, o->target))
            status = status_fail(FEL_IO, "%s: %s", o->target, strerror(errno));
        if (status)
            unlink(o->temporary);
    }
    free(o->target);
    free(o->temporary);
    free(o->buffer);
    *o = (struct output){.fd = -1};
    return status;
}

fel_status fel_write_atomically(const char *path, const void *bytes, size_t size)
{
    if (!path || (!bytes && size))
        return status_fail(FEL_INVALID_ARGUMENT, "%s: expected a pointer, got NULL", path ? "bytes" : "path");
    struct output o;
    const fel_status status = output_open(&o, path);
    if (status)
        return status;
    output_bytes(&o, bytes, size);
    return output_close(&o, FEL_OK);
}
