/* base/base.h: what every folder of the tool stands on: memory, strings, findings, files, YAML, JSON, subprocesses, HTTP and
 * the terminal. It knows nothing of wheels, apps or GPUs. */
#ifndef FELLOE_BASE_H
#define FELLOE_BASE_H

#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <jansson.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

#if defined(__GNUC__)
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))
#else
#define PRINTF_LIKE(text, first)
#endif

/* ---- Memory ------------------------------------------------------------------------------------------------------------
 * One arena per command or request. Nothing in it is freed alone. Memory comes zeroed. Past the limit, or when a size
 * overflows, the result is NULL and the caller reports it; when the machine itself has none left, the process ends with a
 * message and exit code 3. In a sanitized build each piece is its own malloc, so that memory checkers see its ends. */
typedef struct arena arena;

arena *arena_new(size_t limit); /* limit in bytes; 0 for the default of 4 GiB */
void arena_free(arena *a);
size_t arena_used(const arena *a);
void arena_adopt(arena *a, arena *child); /* child is freed with a: for memory that a thread made */
void *arena_alloc(arena *a, size_t count, size_t size, size_t align);
#define arena_array(a, type, count) ((type *)arena_alloc((a), (count), sizeof(type), alignof(type)))

/* Makes room for one more item in a list, that is any struct with `items`, `count` and `capacity`. False past the limit. */
#define arena_room(a, list)                                                                                  \
    arena_room_for((a), (void *)&(list)->items, (list)->count, &(list)->capacity, sizeof *(list)->items, 1)
bool arena_room_for(arena *a, void *items, size_t count, size_t *capacity, size_t size, size_t more);

/* ---- Strings and bytes -------------------------------------------------------------------------------------------------
 * str: text by pointer and length, not NUL-terminated, any bytes. p is NULL only for 'absent'. */
typedef struct str {
    const char *p;
    size_t n;
} str;

#define S(literal) ((str){"" literal, sizeof(literal) - 1})
#define S_INIT(literal)                                                                                      \
    {                                                                                                        \
        "" literal, sizeof(literal) - 1                                                                      \
    }                                                                    /* for static initialisers */
#define STR_ARG(s) (int)((s).n > 0x7fffffff ? 0x7fffffff : (s).n), (s).p /* for "%.*s" */

struct strs { /* a growing list of strings; arena_room(a, list) then items[count++] */
    str *items;
    size_t count, capacity;
};

str str_from(const char *text); /* NULL gives an absent str */
bool str_eq(str a, str b);
bool str_eq_nocase(str a, str b); /* ASCII */
int str_cmp(str a, str b);        /* by bytes */
bool str_starts(str s, str prefix);
bool str_ends(str s, str suffix);
bool str_contains(str s, str part);
size_t str_find(str s, str part); /* SIZE_MAX when it is not there */
size_t str_find_char(str s, char c);
size_t str_rfind_char(str s, char c);
str str_slice(str s, size_t first, size_t last); /* both clamped */
str str_from_index(str s, size_t first);
str str_trim(str s); /* ASCII white space at both ends */
str str_trim_left(str s);
str str_trim_right(str s);
/* Cuts s at the first c: *head is before it, *tail after it. Without c, *head is all and *tail absent, and it is false. */
bool str_cut(str s, char c, str *head, str *tail);
/* The next line of *rest without its end (LF, CR LF or CR); false when nothing is left. */
bool str_next_line(str *rest, str *line);
bool str_to_u64(str s, uint64_t *value); /* decimal digits only; false on overflow or anything else */
uint64_t str_hash(str s);                /* FNV-1a; not for hostile keys without a bound on their number */
size_t str_distance(str a,
                    str b); /* edit distance with transpositions, for 'did you mean'; both cut at 64 bytes */

str str_copy(arena *a, str s); /* NUL follows the copy, so .p serves as a C string when s has no NUL itself */
const char *str_c(arena *a, str s);
str str_lower(arena *a, str s);
str str_format(arena *a, const char *format, ...) PRINTF_LIKE(2, 3);
str str_vformat(arena *a, const char *format, va_list args) PRINTF_LIKE(2, 0);
str str_join(arena *a, const struct strs *list, str separator);
bool strs_add(arena *a, struct strs *list, str s);
bool strs_has(const struct strs *list, str s);
/* Every byte that is not part of valid UTF-8, and NUL, becomes U+FFFD. s itself when there is none. */
str str_utf8(arena *a, str s);
bool str_is_utf8(str s);

/* span: bytes from outside. The readers check bounds: past the end they give 0 or false. */
typedef struct span {
    const uint8_t *p;
    size_t n;
} span;

bool span_slice(span s, uint64_t offset, uint64_t length, span *out);
uint8_t span_u8(span s, uint64_t offset);
uint16_t span_u16le(span s, uint64_t offset);
uint32_t span_u32le(span s, uint64_t offset);
uint64_t span_u64le(span s, uint64_t offset);
bool span_cstr(span s, uint64_t offset, str *out); /* false when no NUL follows inside */
str str_from_span(span s);
/* The same address without const, for interfaces of C libraries that do not write through it but do not say so. */
static inline void *unconst(const void *pointer)
{
    void *same;
    memcpy(&same, &pointer, sizeof same);
    return same;
}
span span_from_str(str s);

/* buf: text that grows in an arena. Errors are kept: check ok once at the end. */
struct buf {
    arena *a;
    char *items;
    size_t count, capacity;
    bool failed; /* past the arena's limit */
};

void buf_add(struct buf *b, str s);
void buf_char(struct buf *b, char c);
void buf_format(struct buf *b, const char *format, ...) PRINTF_LIKE(2, 3);
str buf_str(const struct buf *b);

/* ---- Findings ----------------------------------------------------------------------------------------------------------
 * All that the tool has to say to a person. The codes are in findings.def and never change their meaning. */
enum severity { SEVERITY_INFO, SEVERITY_WARNING, SEVERITY_ERROR };

enum finding_code {
#define FINDING(code, severity, title, why, fix) code,
#include "base/findings.def"
#undef FINDING
    FINDING_CODES
};

struct finding_kind {
    const char *code; /* "F203" */
    enum severity severity;
    const char *title; /* what it is, in a few words */
    const char *why;   /* why it matters, for any case of it */
    const char *fix;   /* what to do about it, for any case of it */
};

struct place {
    str file;            /* absent: no place */
    size_t line, column; /* from 1; 0: not known */
};

struct finding {
    enum finding_code code;
    enum severity severity;
    struct place place;
    str subject; /* what it is about: a distribution, an extension, a function; may be absent */
    str what;    /* this case of it, in one sentence, without a full stop */
    str why, fix;
    str excerpt; /* the source line it points at, for people; may be absent */
};

typedef struct findings {
    arena *a;
    struct finding *items;
    size_t count, capacity;
    int exit_code; /* what the command must end with at least: an input error (3), network (4), a child's failure (5) */
} findings;

findings *findings_new(arena *a);
const struct finding_kind *finding_kind(enum finding_code code);
bool finding_by_name(str name, enum finding_code *code); /* "F203", case ignored */
/* A finding about a file as a whole. Always false, so that a reader can `return finding_add(...)`. */
bool finding_add(findings *f, enum finding_code code, str file, const char *format, ...) PRINTF_LIKE(4, 5);
/* A finding at a place about a subject. severity, why and fix come from the table; the caller may change them in the
 * result, which stays valid until the next finding is added. Past the arena's limit it is a scratch finding that is lost. */
struct finding *finding_at(findings *f, enum finding_code code, struct place place, str subject,
                           const char *format, ...) PRINTF_LIKE(5, 6);
/* The same, for input that could not be read or is malformed (exit code 3), a failed transfer (4), a failed child (5). */
bool finding_fatal(findings *f, int exit_code, enum finding_code code, struct place place, const char *format,
                   ...) PRINTF_LIKE(5, 6);
/* Names the file of all findings from the first-th on: a reader below knows only the path that it opened. Always false. */
bool findings_relabel(findings *f, size_t first, str file);
bool findings_have_errors(const findings *f);
void findings_sort(
    findings *f); /* by file, line, column, code; those without a place last; exact repeats removed */

/* ---- Files -------------------------------------------------------------------------------------------------------------
 * Paths are UTF-8 or any bytes without NUL. */
enum { FILE_LIMIT_TEXT = 64 << 20 }; /* what a text file of an app may weigh at most, in bytes */

/* The whole file. Refused, with a finding F001..F004, when it is missing, not a regular file, or larger than the limit. */
bool file_read(arena *a, str path, uint64_t limit, span *out, findings *f);
bool file_map(str path, uint64_t limit, span *out, findings *f); /* read-only and mapped; file_unmap it */
void file_unmap(span s);
/* Writes beside the target, syncs, renames: the target is the old content or the new, never half. Keeps its mode. */
bool file_write(str path, span content, findings *f);
bool file_exists(str path);
bool dir_exists(str path);
bool dir_make(str path, findings *f);          /* with its parents, mode 0755 */
str path_join(arena *a, str folder, str name); /* name when it is absolute */
str path_base(str path);                       /* after the last '/' */
str path_dir(str path);                        /* before it; "." when there is none */
str path_normal(arena *a, str path);           /* without "//", "/./" and, by text alone, "x/.." */
str cache_dir(
    arena *a,
    findings
        *f); /* $FELLOE_CACHE, else $XDG_CACHE_HOME/felloe, else ~/.cache/felloe; absent without a HOME */

struct walk_entry {
    str path; /* relative to the root */
    uint64_t size;
    bool is_dir, is_link; /* a link is reported, never followed */
};
struct walk_list {
    struct walk_entry *items;
    size_t count, capacity;
    bool truncated; /* the limit on entries was reached */
};
/* All below root in name order, depth first; hidden folders (".git", ".venv"), "node_modules" and "__pycache__" are left out. */
bool dir_walk(arena *a, str root, size_t limit, struct walk_list *out, findings *f);

/* What the program carries from data/ (and what --data DIR overrides). */
struct embedded_file {
    const char *name;
    const uint8_t *bytes;
    size_t size;
};
extern const struct embedded_file EMBEDDED_FILES[]; /* ends with a NULL name */
void data_override(str folder);                     /* --data DIR; once, before the first data_file */
/* data/NAME: from the override folder when it holds one, else the compiled-in one. *path names it in messages. */
bool data_file(arena *a, const char *name, span *out, str *path, findings *f);

/* ---- YAML (libfyaml) ---------------------------------------------------------------------------------------------------
 * A document as a tree in the arena, each node with its place. Aliases and merge keys are refused: no file of ours or of a
 * Space needs them, and they are how small documents become huge. */
enum yaml_kind { YAML_NULL, YAML_SCALAR, YAML_LIST, YAML_MAP };

struct yaml {
    enum yaml_kind kind;
    bool plain;          /* a scalar without quotes: 3.10 is then a number to YAML */
    str text;            /* a scalar's value */
    size_t line, column; /* from 1 */
    struct yaml *keys;   /* of a map: count keys, beside count values */
    struct yaml *items;  /* a list's items, a map's values */
    size_t count;
};

/* first_line is what line 1 of the text is in the file (a README's front matter starts below its '---'). False with a
 * finding `code` at the place of the error. An empty document is YAML_NULL. */
bool yaml_parse(arena *a, str text, str path, size_t first_line, enum finding_code code, struct yaml *out,
                findings *f);
const struct yaml *yaml_get(const struct yaml *map, const char *key); /* NULL when absent or not a map */
str yaml_str(const struct yaml *map, const char *key); /* absent when there is none, or it is no scalar */
bool yaml_bool(const struct yaml *map, const char *key, bool otherwise);
double yaml_number(const struct yaml *map, const char *key, double otherwise);
struct strs yaml_strs(arena *a, const struct yaml *map,
                      const char *key); /* a list of scalars, or one scalar */
/* A data file of ours, parsed. A fault in it is a finding F005 (it can come from --data). */
bool data_yaml(arena *a, const char *name, struct yaml *out, str *path, findings *f);

/* ---- JSON (jansson) ----------------------------------------------------------------------------------------------------*/
json_t *json_str(str s); /* null when absent; bytes that are not UTF-8 become U+FFFD */
json_t *json_strs(const struct strs *list);
json_t *json_size(size_t n); /* null when 0, for lines and columns */
json_t *json_finding(const struct finding *finding);
json_t *json_findings(const findings *f);

/* ---- Subprocesses ------------------------------------------------------------------------------------------------------
 * No shell. The child gets its own process group, standard input from /dev/null; on a timeout or a stop the whole group
 * gets SIGTERM and, after grace_ms, SIGKILL. */
struct proc_options {
    const char *const *argv;        /* ends with NULL; argv[0] is looked up in PATH */
    const char *const *environment; /* "K=V" to add or replace, "K" to remove; ends with NULL; may be NULL */
    const char *directory;          /* NULL: this one */
    int timeout_ms;                 /* 0: none */
    int grace_ms;                   /* 0: 2,000 */
    size_t
        output_limit; /* kept bytes per stream; 0: 16 MiB. More is read and dropped, so the child never blocks */
    /* Called with each piece of output as it comes; stream is 1 or 2. May be NULL. */
    void (*on_output)(void *context, int stream, span bytes);
    void *context;
};
struct proc_result {
    int exit_code;  /* 0..255; 128 + signal when a signal ended it */
    bool timed_out; /* or stopped by proc_interrupt */
    str out, err;
    bool truncated; /* a stream was longer than the limit */
    double seconds;
};
/* False, with a finding, when it could not be started. A non-zero exit is not a failure here. */
bool proc_run(arena *a, const struct proc_options *options, struct proc_result *out, findings *f);
/* Set by SIGINT and SIGTERM once interrupts_catch was called; long work asks, and a second signal ends the process. */
void interrupts_catch(void);
bool interrupted(void);

/* ---- HTTP (libcurl) ----------------------------------------------------------------------------------------------------
 * http and https only, redirects followed (at most 10, never from https to http), proxies from the environment as curl
 * has them, 429/5xx and broken connections retried with back-off, Retry-After obeyed up to a bound. */
typedef struct http http;
struct http_options {
    bool offline;   /* every request fails at once with F007 */
    int retries;    /* after the first try; 0: 3, negative: none */
    int timeout_ms; /* without progress, per request; 0: 20,000 */
    int verbose;
};
struct http_request {
    str url;
    str accept, etag;     /* Accept and If-None-Match; may be absent */
    uint64_t first, last; /* with `ranged`: both included, from 0 */
    uint64_t limit;       /* a longer body is an error; 0: 64 MiB */
    /* When set, gets the body as it comes (status is known then); false stops the transfer without an error. */
    bool (*sink)(void *context, span bytes);
    void *context;
    bool ranged; /* bytes first..last */
    bool suffix; /* the last `last` bytes */
    bool head;
};
struct http_response {
    long status; /* 0 when there was none */
    str url;     /* after redirects */
    str etag, content_type;
    uint64_t length; /* of this body */
    uint64_t total;  /* of the whole, from Content-Range */
    uint64_t received;
    span body; /* without a sink */
    str error; /* absent when the transfer went well, whatever its status */
    bool has_length, accepts_ranges, has_total;
    bool stopped; /* by the sink */
};
http *http_new(const struct http_options *options);
void http_free(http *h);
/* True when a response with any status came. Otherwise the response's error says why; the caller makes it a finding. */
bool http_get(http *h, arena *a, const struct http_request *request, struct http_response *response);
/* Many at once, at most `parallel` at a time; each response is as http_get would give it. Sinks run on this thread. */
void http_get_many(http *h, arena *a, const struct http_request *requests, size_t count, size_t parallel,
                   struct http_response *responses);
str url_decode(arena *a, str s); /* %XX; broken escapes stay */
str url_host(str url);

/* SHA-256 (FIPS 180-4), by OpenSSL's libcrypto. */
struct sha256 {
    void *state;
};
void sha256_start(struct sha256 *h);
void sha256_add(struct sha256 *h, span bytes);
void sha256_end(struct sha256 *h,
                uint8_t digest[32]);  /* also when the digest is not wanted: it frees the state */
str sha256_hex(arena *a, span bytes); /* 64 lower-case digits */
str hex(arena *a, const uint8_t *bytes, size_t n);

/* ---- Terminal ----------------------------------------------------------------------------------------------------------
 * Results go to standard output, talk to standard error. */
enum color_mode { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };
enum style { STYLE_NONE, STYLE_BOLD, STYLE_DIM, STYLE_RED, STYLE_YELLOW, STYLE_GREEN, STYLE_BLUE };

struct term {
    bool color_out, color_err, err_is_terminal;
    int width;   /* of standard output's columns; 100 when it is no terminal, unless COLUMNS says */
    int quiet;   /* -q, -qq */
    int verbose; /* -v, -vv, -vvv */
};
void term_init(struct term *t, enum color_mode mode, int quiet, int verbose);
/* Control characters of s (all of hostile origin) are shown as escapes, so that a log cannot drive the terminal. */
str term_safe(arena *a, str s);
size_t term_columns(str s); /* of valid UTF-8; wide East Asian characters count as 2 */
str term_paint(arena *a, bool color, enum style style, str s);

struct
    table { /* rows of cells; the last column is wrapped to fit the width, the others are cut with an ellipsis if need be */
    const char *const *headings; /* columns of them */
    size_t columns;
    struct strs cells;        /* row after row */
    const enum style *styles; /* one a cell, or NULL */
};
str table_text(arena *a, const struct table *table, int width, bool color);
str text_wrap(arena *a, str text, size_t width, size_t indent); /* later lines are indented */

/* A progress line on standard error: only on a terminal, only after half a second, not with -q or -v. */
struct progress {
    const struct term *term;
    const char *label;
    uint64_t total; /* 0: not known */
    double started, shown;
    bool visible;
};
void progress_start(struct progress *p, const struct term *t, const char *label, uint64_t total);
void progress_at(struct progress *p, uint64_t done);
void progress_end(struct progress *p);
double seconds_now(void); /* of the monotonic clock */

/* The findings for people, on standard error: place, what, the line itself, the fix. */
str findings_text(arena *a, const findings *f, const struct term *t);

#endif
