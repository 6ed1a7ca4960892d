/* The files of a wheel's *.dist-info: METADATA and WHEEL, which are header lines as in e-mail (core metadata
 * specification, PEP 427), and RECORD, which is CSV (PEP 376, 427). */
#include "wheel/reader.h"

/* ---- Header lines ---- */

struct headers {
    arena *a;
    str rest;
    size_t line; /* of the header that was read last */
    size_t next; /* of what follows it */
    str key, value;
};

static struct headers headers_of(arena *a, span file)
{
    str text = str_from_span(file);
    if (str_starts(text, S("\xef\xbb\xbf")))
        text = str_from_index(text, 3);
    return (struct headers){.a = a, .rest = text, .line = 1, .next = 1};
}

/* The next header; false at the empty line before the description, at the end, and at a line that is none (*why). A line
 * that starts with a blank goes on with the value before it. */
static bool headers_next(struct headers *h, str *why)
{
    str line;
    h->line = h->next;
    if (!str_next_line(&h->rest, &line) || line.n == 0)
        return false;
    h->next++;
    if (!str_cut(line, ':', &h->key, &h->value) || h->key.n == 0 || is_blank(h->key.p[0])) {
        *why = S("expected a header, 'Name: value'");
        return false;
    }
    h->value = str_trim(h->value);
    struct buf folded = {.a = h->a};
    while (h->rest.n > 0 && is_blank(h->rest.p[0])) {
        (void)str_next_line(&h->rest, &line);
        h->next++;
        if (folded.count == 0)
            buf_add(&folded, h->value);
        buf_char(&folded, '\n');
        buf_add(&folded, str_trim(line));
    }
    if (folded.count > 0)
        h->value = buf_str(&folded);
    return true;
}

static bool key_is(const struct headers *h, str name) { return str_eq_nocase(h->key, name); }

/* Readers of core metadata take the first of a header that may stand only once. */
static void take_first(str *field, str value)
{
    if (!field->p)
        *field = value;
}

static bool fail_at(size_t *line, size_t where, str *why, str reason)
{
    *line = where;
    *why = reason;
    return false;
}

static bool add_need(const struct headers *h, struct wheel_metadata *out)
{
    size_t at;
    const char *expected;
    if (!arena_room(h->a, out))
        return false;
    struct wheel_need *need = &out->items[out->count++];
    *need = (struct wheel_need){.text = h->value, .line = h->line};
    need->valid = requirement_parse(h->a, h->value, &need->requirement, &at, &expected);
    return true;
}

bool metadata_parse(arena *a, span file, struct wheel_metadata *out, size_t *line, str *why)
{
    struct wheel_metadata m = {.count = 0};
    struct headers h = headers_of(a, file);
    bool fits = true;
    size_t at, version_line = 1;
    const char *expected;
    *why = (str){NULL, 0};
    while (fits && headers_next(&h, why)) {
        if (key_is(&h, S("Metadata-Version"))) {
            take_first(&m.metadata_version, h.value);
        } else if (key_is(&h, S("Name"))) {
            take_first(&m.name, h.value);
        } else if (key_is(&h, S("Version"))) {
            version_line = m.version_text.p ? version_line : h.line;
            take_first(&m.version_text, h.value);
        } else if (key_is(&h, S("Summary"))) {
            take_first(&m.summary, h.value);
        } else if (key_is(&h, S("Requires-Python"))) {
            take_first(&m.requires_python, h.value);
        } else if (key_is(&h, S("Requires-Dist"))) {
            fits = add_need(&h, &m);
        } else if (key_is(&h, S("Provides-Extra"))) {
            fits = strs_add(a, &m.extras, h.value);
        }
    }
    if (!fits)
        return fail_at(line, h.line, why, S("the file is too large to hold"));
    if (why->p)
        return fail_at(line, h.line, why, *why);
    if (!m.name.p || !m.version_text.p)
        return fail_at(line, h.line, why, m.name.p ? S("a Version is missing") : S("a Name is missing"));
    if (!version_parse(a, m.version_text, &m.version))
        return fail_at(line, version_line, why, S("Version: expected a PEP 440 version"));
    m.python_valid = !m.requires_python.p || specs_parse(a, m.requires_python, &m.python, &at, &expected);
    *out = m;
    return true;
}

bool wheel_facts_parse(arena *a, span file, struct wheel_facts *out, size_t *line, str *why)
{
    struct wheel_facts facts = {.is_pure = false};
    struct headers h = headers_of(a, file);
    str pure = {NULL, 0};
    bool fits = true;
    *why = (str){NULL, 0};
    while (fits && headers_next(&h, why)) {
        if (key_is(&h, S("Wheel-Version")))
            take_first(&facts.wheel_version, h.value);
        else if (key_is(&h, S("Generator")))
            take_first(&facts.generator, h.value);
        else if (key_is(&h, S("Build")))
            take_first(&facts.build, h.value);
        else if (key_is(&h, S("Root-Is-Purelib")))
            take_first(&pure, h.value);
        else if (key_is(&h, S("Tag")))
            fits = strs_add(a, &facts.tags, h.value);
    }
    if (!fits)
        return fail_at(line, h.line, why, S("the file is too large to hold"));
    if (why->p)
        return fail_at(line, h.line, why, *why);
    if (!facts.wheel_version.p || facts.tags.count == 0)
        return fail_at(line, h.line, why,
                       facts.wheel_version.p ? S("a Tag is missing") : S("a Wheel-Version is missing"));
    facts.is_pure = str_eq_nocase(pure, S("true"));
    *out = facts;
    return true;
}

/* ---- Tags ---- */

static str tag_at(arena *a, const struct tag_set *set, size_t i)
{
    const size_t platforms = set->platform.count, abis = set->abi.count;
    return str_format(a, "%.*s-%.*s-%.*s", STR_ARG(set->python.items[i / platforms / abis]),
                      STR_ARG(set->abi.items[i / platforms % abis]),
                      STR_ARG(set->platform.items[i % platforms]));
}

static bool has_tag(const struct strs *list, str tag)
{
    for (size_t i = 0; i < list->count; i++)
        if (str_eq_nocase(list->items[i], tag))
            return true;
    return false;
}

bool wheel_tags_agree(arena *a, const struct wheel_facts *facts, const struct tag_set *name, str *odd)
{
    enum {
        TAGS_MOST = 4096
    }; /* of a name; real ones have at most a few dozen, and the comparison is quadratic */
    struct strs product = {.count = 0};
    const size_t count = name->python.count * name->abi.count * name->platform.count;
    *odd = (str){NULL, 0};
    if (count > TAGS_MOST || facts->tags.count > TAGS_MOST)
        return false;
    for (size_t i = 0; i < count; i++) {
        const str tag = tag_at(a, name, i);
        if (!has_tag(&facts->tags, tag) || !strs_add(a, &product, tag)) {
            *odd = tag;
            return false;
        }
    }
    for (size_t i = 0; i < facts->tags.count; i++)
        if (!has_tag(&product, facts->tags.items[i])) {
            *odd = facts->tags.items[i];
            return false;
        }
    return true;
}

/* ---- RECORD ---- */

/* One CSV field. A quoted one ends in its line: no path of a wheel holds a line end. */
static bool take_field(arena *a, struct reader *r, str *field)
{
    if (!reader_take(r, '"')) {
        const size_t first = r->at;
        while (!reader_done(r) && reader_peek(r) != ',')
            r->at++;
        *field = str_slice(r->text, first, r->at);
        return str_find_char(*field, '"') == SIZE_MAX;
    }
    struct buf b = {.a = a};
    const size_t first = r->at;
    bool doubled = false;
    for (; !reader_done(r); r->at++) {
        const bool quote = reader_peek(r) == '"';
        if (quote && r->at + 1 < r->text.n && r->text.p[r->at + 1] == '"') {
            r->at++;
            doubled = true;
        } else if (quote) {
            break;
        }
        buf_char(&b, reader_peek(r));
    }
    *field = doubled ? buf_str(&b) : str_slice(r->text, first, r->at);
    return reader_take(r, '"') && !b.failed;
}

static bool read_entry(arena *a, str text, struct record_entry *out, str *why)
{
    struct reader r = {text, 0};
    str hash, size;
    *out = (struct record_entry){.size = 0};
    if (!take_field(a, &r, &out->path) || !reader_take(&r, ',') || !take_field(a, &r, &hash) ||
        !reader_take(&r, ',') || !take_field(a, &r, &size) || !reader_done(&r)) {
        *why = S("expected three fields: path,algorithm=digest,size");
        return false;
    }
    if (out->path.n == 0) {
        *why = S("expected a path");
        return false;
    }
    if (hash.n > 0 && !str_cut(hash, '=', &out->algorithm, &out->digest)) {
        *why = S("expected a hash as algorithm=digest");
        return false;
    }
    out->has_size = size.n > 0;
    if (out->has_size && !str_to_u64(size, &out->size)) {
        *why = S("expected a size in bytes");
        return false;
    }
    return true;
}

bool record_parse(arena *a, span file, struct record *out, size_t *line, str *why)
{
    struct record record = {.count = 0};
    str text, rest = str_from_span(file);
    for (*line = 1; str_next_line(&rest, &text); ++*line) {
        if (text.n == 0)
            continue;
        if (!arena_room(a, &record))
            return fail_at(line, *line, why, S("the file is too large to hold"));
        if (!read_entry(a, text, &record.items[record.count++], why))
            return false;
    }
    *out = record;
    return true;
}

static int base64_value(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : is_digit(c)          ? c - '0' + 52
           : c == '-'             ? 62
           : c == '_'             ? 63
                                  : -1;
}

bool record_sha256(const struct record_entry *entry, uint8_t digest[32])
{
    enum { DIGITS = 43, BYTES = 32 }; /* 43 digits are 258 bits: the last two must be 0 */
    uint8_t bytes[BYTES];
    uint32_t bits = 0;
    size_t held = 0, n = 0;
    if (!str_eq(entry->algorithm, S("sha256")) || entry->digest.n != DIGITS)
        return false;
    for (size_t i = 0; i < DIGITS; i++) {
        const int value = base64_value(entry->digest.p[i]);
        if (value < 0)
            return false;
        bits = (bits << 6 | (uint32_t)value) & 0xfff;
        held += 6;
        if (held >= 8 && n < BYTES) {
            held -= 8;
            bytes[n++] = (uint8_t)(bits >> held);
        }
    }
    if (bits & 3)
        return false;
    memcpy(digest, bytes, BYTES);
    return true;
}
