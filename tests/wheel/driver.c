/* Answers questions about versions, specifiers, tags, names and requirements, one a line: an operation and its arguments,
 * separated by tabs, on standard input; one line of answer each. In both, a backslash stands before what would be a tab
 * (\t), a line end (\n, \r) or a backslash. differential.py asks the same of the `packaging` library. */
#include <stdio.h>
#include <stdlib.h>

#include "wheel/wheel.h"

enum { ARGUMENTS_MOST = 16 };

struct question {
    arena *a;
    str arguments[ARGUMENTS_MOST];
    size_t count;
    struct buf answer;
};

static str unescape(arena *a, str s)
{
    struct buf b = {.a = a};
    for (size_t i = 0; i < s.n; i++) {
        static const char CODES[] = "tnr", MEANT[] = "\t\n\r";
        if (s.p[i] != '\\' || i + 1 == s.n) {
            buf_char(&b, s.p[i]);
            continue;
        }
        char code = s.p[++i];
        const char *known = code ? strchr(CODES, code) : NULL;
        if (known)
            code = MEANT[known - CODES];
        buf_char(&b, code);
    }
    return buf_str(&b);
}

static void print_escaped(str s)
{
    for (size_t i = 0; i < s.n; i++) {
        static const char CODES[] = "tnr\\", MEANT[] = "\t\n\r\\";
        const char *special = s.p[i] ? strchr(MEANT, s.p[i]) : NULL;
        if (special)
            (void)printf("\\%c", CODES[special - MEANT]);
        else
            (void)putchar(s.p[i]);
    }
    (void)putchar('\n');
}

static void add_strs(struct buf *b, const struct strs *list, const char *separator)
{
    for (size_t i = 0; i < list->count; i++) {
        buf_add(b, i > 0 ? str_from(separator) : S(""));
        buf_add(b, list->items[i]);
    }
}

/* What a parser refuses must be placed inside the text, with what was expected; all else is a defect of its own. */
static void add_refusal(struct question *q, str text, size_t at, const char *expected)
{
    buf_add(&q->answer, expected && *expected && at <= text.n ? S("bad") : S("refused without a place"));
}

static void answer_version(struct question *q)
{
    struct version v;
    if (!version_parse(q->a, q->arguments[1], &v)) {
        buf_add(&q->answer, S("bad"));
        return;
    }
    buf_add(&q->answer, version_normal(q->a, &v));
    buf_char(&q->answer, ' ');
    buf_add(&q->answer, version_public(q->a, &v));
    buf_char(&q->answer, ' ');
    buf_add(&q->answer, version_local(q->a, &v));
    buf_add(&q->answer, version_is_pre(&v) ? S(" pre") : S(" final"));
}

static void answer_compare(struct question *q)
{
    struct version v, w;
    if (!version_parse(q->a, q->arguments[1], &v) || !version_parse(q->a, q->arguments[2], &w)) {
        buf_add(&q->answer, S("bad"));
        return;
    }
    const int order = version_compare(&v, &w);
    buf_add(&q->answer, order < 0 ? S("<") : order > 0 ? S(">") : S("="));
}

static void add_specs(struct buf *b, const struct specs *specs)
{
    for (size_t i = 0; i < specs->count; i++) {
        buf_add(b, i > 0 ? S(",") : S(""));
        buf_add(b, spec_op_text(specs->items[i].op));
        buf_add(b, specs->items[i].text);
    }
}

static void answer_specs(struct question *q)
{
    struct specs specs;
    size_t at = SIZE_MAX;
    const char *expected = NULL;
    if (!specs_parse(q->a, q->arguments[1], &specs, &at, &expected)) {
        add_refusal(q, q->arguments[1], at, expected);
        return;
    }
    buf_add(&q->answer, S("ok "));
    add_specs(&q->answer, &specs);
    for (size_t i = 2; i < q->count; i++) { /* for each candidate: pre-releases only when named, and always */
        struct version v;
        const bool valid = version_parse(q->a, q->arguments[i], &v);
        buf_char(&q->answer, ' ');
        buf_char(&q->answer, valid && specs_contain(&specs, &v, false) ? 'T' : 'F');
        buf_char(&q->answer, valid && specs_contain(&specs, &v, true) ? 'T' : 'F');
    }
}

static void answer_name(struct question *q)
{
    struct wheel_name name;
    str why = {NULL, 0};
    if (!wheel_name_parse(q->a, q->arguments[1], &name, &why)) {
        buf_add(&q->answer, why.n > 0 ? S("bad") : S("refused without a reason"));
        return;
    }
    buf_add(&q->answer, name.name);
    buf_char(&q->answer, ' ');
    buf_add(&q->answer, version_normal(q->a, &name.version));
    buf_char(&q->answer, ' ');
    buf_add(&q->answer, name.build_tag);
    buf_char(&q->answer, ' ');
    add_strs(&q->answer, &name.tags.python, ".");
    buf_char(&q->answer, ' ');
    add_strs(&q->answer, &name.tags.abi, ".");
    buf_char(&q->answer, ' ');
    add_strs(&q->answer, &name.tags.platform, ".");
}

static void answer_distribution(struct question *q)
{
    buf_add(&q->answer, name_normalize(q->a, q->arguments[1]));
    buf_add(&q->answer, name_is_valid(q->arguments[1]) ? S(" valid") : S(" invalid"));
    buf_add(&q->answer, name_same(q->arguments[1], q->arguments[2]) ? S(" same") : S(" other"));
}

/* The list of one interpreter is asked about many times in a row, so it is kept between lines. */
static const struct tag_list *tags_of(const struct question *q)
{
    static arena *kept;
    static str key;
    static struct tag_list list;
    const char *first = q->arguments[1].p;
    const str wanted = {first, (size_t)(q->arguments[6].p + q->arguments[6].n - first)};
    if (kept && str_eq(key, wanted))
        return &list;
    uint64_t n[6];
    for (size_t i = 1; i <= 6; i++)
        if (!str_to_u64(q->arguments[i], &n[i - 1]))
            n[i - 1] = 0;
    const struct tag_env env = {.minor = (unsigned)n[0],
                                .free_threaded = n[1] == 1,
                                .machine = q->arguments[3],
                                .glibc_major = n[3] > 0 ? 2 : 0,
                                .glibc_minor = (unsigned)n[3],
                                .musl_major = n[4] > 0 ? 1 : 0,
                                .musl_minor = n[4] > 0 ? (unsigned)n[4] - 1 : 0};
    arena_free(kept);
    kept = arena_new(0);
    key = str_copy(kept, wanted);
    return tags_supported(kept, &env, &list) ? &list : NULL;
}

static void answer_tags(struct question *q)
{
    const struct tag_list *list = tags_of(q);
    for (size_t i = 0; list && i < list->count; i++)
        buf_format(&q->answer, "%.*s-%.*s-%.*s ", STR_ARG(list->items[i].python), STR_ARG(list->items[i].abi),
                   STR_ARG(list->items[i].platform));
}

static void answer_rank(struct question *q)
{
    const struct tag_list *list = tags_of(q);
    struct wheel_name name;
    str why;
    const str file = str_format(q->a, "x-1-%.*s.whl", STR_ARG(q->arguments[7]));
    if (!list || !wheel_name_parse(q->a, file, &name, &why)) {
        buf_add(&q->answer, S("bad"));
        return;
    }
    const size_t rank = tags_rank(list, &name.tags);
    if (rank == SIZE_MAX)
        buf_add(&q->answer, S("none"));
    else
        buf_format(&q->answer, "%zu", rank);
}

static struct marker_env env_of(const struct question *q, size_t first)
{
    const str *v = &q->arguments[first];
    return (struct marker_env){.os_name = v[0],
                               .sys_platform = v[1],
                               .platform_machine = v[2],
                               .platform_python_implementation = v[3],
                               .platform_release = v[4],
                               .platform_system = v[5],
                               .platform_version = v[6],
                               .python_version = v[7],
                               .python_full_version = v[8],
                               .implementation_name = v[9],
                               .implementation_version = v[10],
                               .extra = v[11]};
}

static void answer_requirement(struct question *q)
{
    struct requirement r;
    size_t at = SIZE_MAX;
    const char *expected = NULL;
    if (!requirement_parse(q->a, q->arguments[1], &r, &at, &expected)) {
        add_refusal(q, q->arguments[1], at, expected);
        return;
    }
    buf_add(&q->answer, r.name);
    buf_add(&q->answer, S("|"));
    add_strs(&q->answer, &r.extras, ",");
    buf_add(&q->answer, S("|"));
    add_specs(&q->answer, &r.specs);
    buf_add(&q->answer, S("|"));
    buf_add(&q->answer, r.url);
    buf_add(&q->answer, S("|"));
    buf_add(&q->answer, marker_text(q->a, r.marker));
}

static void answer_marker(struct question *q)
{
    const struct marker *m = NULL;
    size_t at = SIZE_MAX;
    const char *expected = NULL;
    if (!marker_parse(q->a, q->arguments[1], &m, &at, &expected)) {
        add_refusal(q, q->arguments[1], at, expected);
        return;
    }
    const struct marker_env env = env_of(q, 2);
    buf_add(&q->answer, marker_holds(q->a, m, &env) ? S("T ") : S("F "));
    buf_add(&q->answer, marker_text(q->a, m));
}

static const struct operation {
    str name;
    void (*answer)(struct question *q);
} OPERATIONS[] = {
    {S_INIT("version"), answer_version},
    {S_INIT("compare"), answer_compare},
    {S_INIT("specs"), answer_specs},
    {S_INIT("name"), answer_name},
    {S_INIT("distribution"), answer_distribution},
    {S_INIT("tags"), answer_tags},
    {S_INIT("rank"), answer_rank},
    {S_INIT("requirement"), answer_requirement},
    {S_INIT("marker"), answer_marker},
};

static void answer(str line)
{
    arena *a = arena_new(0);
    struct question q = {.a = a, .answer = {.a = a}};
    str rest = line, argument;
    while (rest.p && q.count < ARGUMENTS_MOST) {
        (void)str_cut(rest, '\t', &argument, &rest);
        q.arguments[q.count++] = str_find_char(argument, '\\') == SIZE_MAX ? argument : unescape(a, argument);
    }
    for (size_t i = 0; i < COUNT(OPERATIONS); i++)
        if (str_eq(q.arguments[0], OPERATIONS[i].name))
            OPERATIONS[i].answer(&q);
    print_escaped(buf_str(&q.answer));
    arena_free(a);
}

int main(void)
{
    char *line = NULL;
    size_t capacity = 0;
    for (ssize_t n = getline(&line, &capacity, stdin); n > 0; n = getline(&line, &capacity, stdin))
        answer((str){line, (size_t)n - (line[n - 1] == '\n')});
    free(line);
    return 0;
}
