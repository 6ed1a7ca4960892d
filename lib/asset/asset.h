/* asset/asset.h: what the readers and writers of lib/asset share. Private to the folder.
 *
 * A source is a file or a piece of memory, read by ranges; a cursor goes through one in order with a window, so a large
 * file is never whole in memory. A reader adds where errors go and what memory may be used. Every function that returns
 * bool has recorded its error with status_fail() when it returns false. */
#ifndef ASSET_ASSET_H
#define ASSET_ASSET_H

#include "device/device.h"

#include <felloe/asset.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "GLB arrays are written straight from memory: a big-endian host needs them swapped"
#endif

/* ---- memory: all of an asset, released at once */

struct memory_block;
struct memory {
    struct memory_block *blocks;
    size_t used, limit;
};

/* Zeroed; NULL past the limit, or when the product overflows. Its error is recorded. */
void *memory_array(struct memory *m, size_t count, size_t size);
char *memory_text(struct memory *m, const char *text, size_t size); /* a NUL-terminated copy */
void memory_free(struct memory *m);

/* An array that grows by doubling; the old block is released, so at most 1.5 times its size is in use. */
struct list {
    void *items;
    size_t count, room, item_size;
    struct memory *memory;
};
void *list_add(struct list *l); /* the new, zeroed item; NULL past the limit, with the error recorded */
void *list_take(
    struct list *l); /* the items cut to size; the list is empty then. Never NULL unless out of memory */
void list_free(struct list *l);

/* ---- input */

struct source {
    const char *name;     /* in messages */
    const char *folder;   /* of the file, with '/', for what it names; NULL when read from memory */
    const uint8_t *bytes; /* NULL: fd */
    int fd;
    uint64_t size;
};

struct reader {
    const struct source *source;
    struct memory memory;
    fel_status status; /* of the first error */
};

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
/* Records "NAME: byte OFFSET: ..." as FEL_MALFORMED; false. */
bool reader_fail(struct reader *r, uint64_t offset, const char *format, ...);
bool reader_out_of_memory(struct reader *r); /* for an error that memory_array has recorded; false */

/* Copies [offset, offset + size) to out; false (FEL_MALFORMED) when it does not lie inside the source. */
bool source_read(struct reader *r, uint64_t offset, void *out, size_t size);

enum { WINDOW_SIZE = 1 << 20 }; /* the longest line or record that a cursor gives in one piece */
struct cursor {
    struct reader *reader;
    uint8_t *window;
    uint64_t start;       /* of the window in the source */
    size_t at, filled;    /* next byte, and end, in the window */
    uint64_t line;        /* the line that was given last, from 1 */
    uint64_t line_offset; /* where it starts */
};
bool cursor_open(struct cursor *c, struct reader *r, uint64_t offset);
void cursor_close(struct cursor *c);
uint64_t cursor_offset(const struct cursor *c);
/* size bytes in one piece, valid until the next call; NULL when fewer are left, with the error. size <= WINDOW_SIZE */
const uint8_t *cursor_take(struct cursor *c, size_t size);
/* The next line without its end (LF or CRLF); false at the end of the source or on an error (see the status). */
bool cursor_line(struct cursor *c, const char **line, size_t *size);
/* The next word between white space; false as above. */
bool cursor_word(struct cursor *c, const char **word, size_t *size);

static inline uint16_t get_u16le(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }
static inline uint32_t get_u32le(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static inline uint32_t get_u32be(const uint8_t *p)
{
    return (uint32_t)p[3] | (uint32_t)p[2] << 8 | (uint32_t)p[1] << 16 | (uint32_t)p[0] << 24;
}
float get_f32le(const uint8_t *p);

/* ---- output */

struct output {
    int fd;
    char *target, *temporary; /* both owned */
    uint8_t *buffer;
    size_t filled;
    fel_status status; /* of the first error; later writes do nothing */
};
fel_status output_open(struct output *o, const char *path);
void output_bytes(struct output *o, const void *bytes, size_t size);
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void output_text(struct output *o, const char *format, ...); /* at most 4 KiB a call; no floating point: see below */
void output_float(struct output *o, float value,
                  char after); /* shortest of 6 to 9 digits that reads back, and after */
void output_u32le(struct output *o, uint32_t value);
void output_f32le(struct output *o, float value);
/* Renames on success; removes the temporary file on any error, which it returns. */
fel_status output_close(struct output *o, fel_status status);

/* ---- numbers in text, whatever the locale */

/* A decimal number at *at; moves *at past it. Also "nan", "inf", "-inf" in any case, as printf writes them. The result
 * is within one unit in the last place of a double, exact for up to 15 digits and exponents to 22. */
bool number_parse(const char **at, const char *end, double *value);
bool integer_parse(const char **at, const char *end, int64_t *value); /* with a sign; false on overflow */
/* At least 32 bytes; returns the length. JSON has no NaN: callers have refused those. */
size_t float_print(char *out, float value);

/* ---- JSON, strict (RFC 8259), as a flat array of nodes in document order */

enum json_kind { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };
struct json_node {
    enum json_kind kind;
    uint32_t start, size; /* of the text: a string's without quotes, still escaped */
    uint32_t count;       /* of items of an array, of members of an object */
    uint32_t next;        /* the node after this and all in it */
};
struct json {
    const char *text;
    struct json_node *nodes; /* the first is the document */
    size_t count;
    uint64_t offset; /* of text in the source, for messages */
};
/* Parses; text must outlive the result. Nesting over 64 and text over 2^31 bytes are refused. */
bool json_parse(struct reader *r, const char *text, size_t size, uint64_t offset, struct json *out);
/* A member's value, or NULL when there is none or n is NULL or no object. */
const struct json_node *json_member(const struct json *j, const struct json_node *n, const char *name);
const struct json_node *json_first(const struct json *j,
                                   const struct json_node *n); /* an array's first item */
const struct json_node *json_next(const struct json *j, const struct json_node *n);
bool json_is(const struct json *j, const struct json_node *n, const char *text); /* a string equal to text */
/* The number, or otherwise when n is NULL; false, with the error, when n is another kind. */
bool json_number(struct reader *r, const struct json *j, const struct json_node *n, const char *what,
                 double otherwise, double *value);
/* An integer in [0, limit); -1 when n is NULL. */
bool json_index(struct reader *r, const struct json *j, const struct json_node *n, const char *what,
                uint64_t limit, int64_t *value);
/* Unescaped and NUL-terminated; control characters become '?'. NULL when n is no string, or out of memory. */
char *json_text(struct reader *r, const struct json *j, const struct json_node *n);

/* ---- zlib and PNG */

/* Inflates the zlib stream in[in_size] (RFC 1950, 1951) into out[out_size], which it must fill exactly. NULL on
 * success, else what is wrong; *in_at is then the byte where. */
const char *zlib_inflate(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size, size_t *in_at);
/* A zlib stream of in[size], malloc'd; NULL when out of memory. LZ77 with hash chains, dynamic Huffman codes. */
uint8_t *zlib_deflate(const uint8_t *in, size_t size, size_t *out_size);

/* ---- formats: each fills asset from r's source, or writes it. Memory comes from r->memory. */

bool glb_read(struct reader *r, fel_asset *asset);
bool obj_read(struct reader *r, fel_asset *asset);
bool ply_read(struct reader *r, fel_asset *asset);
bool stl_read(struct reader *r, fel_asset *asset);
bool splat_read(struct reader *r, fel_asset *asset);

fel_status glb_write(struct output *o, const fel_asset *asset);
fel_status obj_write(struct output *o, const char *path, const fel_asset *asset);
fel_status ply_write(struct output *o, const fel_asset *asset, int32_t encoding);
fel_status stl_write(struct output *o, const fel_asset *asset);
fel_status splat_write(struct output *o, const fel_asset *asset);

bool gaussians_alloc(struct reader *r, struct fel_gaussians *g, int64_t count, int32_t sh_degree);

/* asset with its own positions, normals and gaussians, turned; the rest is shared. */
fel_status orient_copy(struct memory *m, const fel_asset *asset, int32_t orientation, fel_asset *out);

/* Vertices seen before, by their bits: finds the index of key[words], or gives it the next one. */
struct welder {
    uint32_t *slots; /* index + 1, 0 empty */
    size_t slot_count;
    struct list keys;
    size_t words;
};
bool welder_open(struct welder *w, struct memory *m, size_t words);
bool welder_add(struct welder *w, const uint32_t *key, uint32_t *index);
void welder_close(struct welder *w);

#endif
