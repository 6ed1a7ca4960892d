/* METADATA, WHEEL and RECORD, all three from the same bytes. Each is refused exactly with a line of the file and a reason;
 * RECORD's entries, written out again, read as the same; a wheel's tags agree with the set that they are the product of. */
#include <stdio.h>
#include <stdlib.h>

#include "wheel/wheel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds, const char *claim)
{
    if (holds)
        return;
    (void)fprintf(stderr, "does not hold: %s\n", claim);
    abort();
}

static void check_refusal(span file, size_t line, str why)
{
    str rest = str_from_span(file), text;
    size_t lines = 1; /* a fault may lie behind the last line */
    while (str_next_line(&rest, &text))
        lines++;
    check(why.n > 0 && line >= 1 && line <= lines, "a refusal has a line and a reason");
}

static void check_metadata(arena *a, span file)
{
    struct wheel_metadata m;
    size_t line = 0;
    str why = {NULL, 0};
    if (!metadata_parse(a, file, &m, &line, &why)) {
        check_refusal(file, line, why);
        return;
    }
    check(m.name.p && m.version.release_count > 0, "there is a name and a version");
    for (size_t i = 0; i < m.count; i++)
        check(m.items[i].valid == (m.items[i].requirement.name.n > 0), "what is valid has a name");
}

static void check_facts(arena *a, span file)
{
    struct wheel_facts facts;
    size_t line = 0;
    str why = {NULL, 0}, odd;
    if (!wheel_facts_parse(a, file, &facts, &line, &why)) {
        check_refusal(file, line, why);
        return;
    }
    str one[3] = {S("py3"), S("none"), S("any")};
    const struct tag_set set = {{&one[0], 1, 1}, {&one[1], 1, 1}, {&one[2], 1, 1}};
    const bool agree = wheel_tags_agree(a, &facts, &set, &odd);
    for (size_t i = 0; i < facts.tags.count; i++)
        check(!agree || str_eq_nocase(facts.tags.items[i], S("py3-none-any")),
              "tags agree only when they are the same");
}

static void add_field(struct buf *b, str field)
{
    buf_char(b, '"');
    for (size_t i = 0; i < field.n; i++) {
        if (field.p[i] == '"')
            buf_char(b, '"');
        buf_char(b, field.p[i]);
    }
    buf_char(b, '"');
}

static void check_record(arena *a, span file)
{
    struct record record, again;
    struct buf b = {.a = a};
    size_t line = 0;
    str why = {NULL, 0};
    uint8_t digest[32];
    if (!record_parse(a, file, &record, &line, &why)) {
        check_refusal(file, line, why);
        return;
    }
    for (size_t i = 0; i < record.count; i++) {
        const struct record_entry *e = &record.items[i];
        check(!record_sha256(e, digest) || e->digest.n == 43, "32 bytes are 43 digits");
        add_field(&b, e->path);
        buf_char(&b, ',');
        if (e->algorithm.p) {
            struct strs parts = {0};
            check(strs_add(a, &parts, e->algorithm) && strs_add(a, &parts, e->digest),
                  "the hash fits the limit");
            add_field(&b, str_join(a, &parts, S("=")));
        }
        buf_char(&b, ',');
        if (e->has_size)
            buf_format(&b, "%llu", (unsigned long long)e->size);
        buf_char(&b, '\n');
    }
    check(record_parse(a, span_from_str(buf_str(&b)), &again, &line, &why), "what was read can be written");
    check(again.count == record.count, "and has as many entries");
    for (size_t i = 0; i < record.count; i++)
        check(str_eq(record.items[i].path, again.items[i].path) &&
                  record.items[i].size == again.items[i].size &&
                  str_eq(record.items[i].digest, again.items[i].digest),
              "and the same ones");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    arena *a = arena_new(256 << 20);
    const span file = {data, size};
    check_metadata(a, file);
    check_facts(a, file);
    check_record(a, file);
    arena_free(a);
    return 0;
}
