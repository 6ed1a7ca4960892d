/* Version specifiers of PEP 440: clauses, and whether a version is in a set of them. */
#include "wheel/reader.h"

static const struct op_word {
    str word;
    enum spec_op op;
} OPS[] = {
    /* longer ones before their beginnings */
    {S_INIT("==="), SPEC_ARBITRARY}, {S_INIT("=="), SPEC_EQUAL},      {S_INIT("~="), SPEC_COMPATIBLE},
    {S_INIT("!="), SPEC_NOT_EQUAL},  {S_INIT("<="), SPEC_LESS_EQUAL}, {S_INIT(">="), SPEC_GREATER_EQUAL},
    {S_INIT("<"), SPEC_LESS},        {S_INIT(">"), SPEC_GREATER},
};

str spec_op_text(enum spec_op op)
{
    for (size_t i = 0; i < COUNT(OPS); i++)
        if (OPS[i].op == op)
            return OPS[i].word;
    return S("");
}

static bool fault(size_t *at, size_t where, const char **expected, const char *what)
{
    *at = where;
    *expected = what;
    return false;
}

/* What PEP 440 lets stand behind ===: anything without white space, parenthesis or semicolon. */
static bool is_arbitrary(str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (is_white(text.p[i]) || text.p[i] == ';' || text.p[i] == ')')
            return false;
    return text.n > 0;
}

bool spec_parse_clause(arena *a, str clause, struct spec *out, size_t *at, const char **expected)
{
    struct reader r = {clause, 0};
    struct spec spec = {.op = SPEC_ARBITRARY};
    size_t i = 0;
    while (i < COUNT(OPS) && !reader_take_word(&r, OPS[i].word))
        i++;
    if (i == COUNT(OPS))
        return fault(at, 0, expected, "one of == != ~= <= >= < > ===");
    spec.op = OPS[i].op;
    while (is_white(reader_peek(&r)))
        r.at++;
    spec.text = str_trim_right(str_from_index(clause, r.at));
    if (spec.op == SPEC_ARBITRARY) {
        if (!is_arbitrary(spec.text))
            return fault(at, r.at, expected, "text without white space, ')' or ';' after ===");
        spec.has_version = version_parse(a, spec.text, &spec.version);
        spec.names_pre = spec.has_version && version_is_pre(&spec.version);
        *out = spec;
        return true;
    }
    const bool takes_more = spec.op == SPEC_EQUAL || spec.op == SPEC_NOT_EQUAL; /* ".*" and local versions */
    str version = spec.text;
    spec.wildcard = str_ends(version, S(".*"));
    if (spec.wildcard && !takes_more)
        return fault(at, r.at + version.n - 2, expected, "a version without '.*', which only == and != take");
    if (spec.wildcard)
        version.n -= 2;
    if (version.n > 0 && is_white(version.p[version.n - 1]))
        return fault(at, r.at + version.n - 1, expected, "'.*' right behind the version");
    if (!version_parse(a, version, &spec.version))
        return fault(at, r.at, expected, "a PEP 440 version");
    const struct version *v = &spec.version;
    if (spec.wildcard && (v->pre != PRE_NONE || v->has_post || v->has_dev || v->local_count > 0))
        return fault(at, r.at + version.n, expected, "'.*' only after release numbers");
    if (v->local_count > 0 && !takes_more)
        return fault(at, r.at + str_find_char(version, '+'), expected,
                     "a version without a local part, which only == and != take");
    if (spec.op == SPEC_COMPATIBLE && v->release_count < 2)
        return fault(at, r.at, expected, "at least two release numbers after ~=");
    spec.has_version = true;
    spec.names_pre = spec.op != SPEC_NOT_EQUAL && version_is_pre(v);
    *out = spec;
    return true;
}

bool specs_parse(arena *a, str text, struct specs *out, size_t *at, const char **expected)
{
    struct specs specs = {0};
    for (size_t first = 0; first <= text.n;) {
        const size_t comma = str_find_char(str_from_index(text, first), ',');
        const size_t last = comma == SIZE_MAX ? text.n : first + comma;
        const str padded = str_slice(text, first, last);
        const str clause = str_trim(padded);
        const size_t start = first + (padded.n - str_trim_left(padded).n);
        first = last + 1;
        if (clause.n == 0) /* ">=3.8," is common, and harmless */
            continue;
        if (!arena_room(a, &specs))
            return fault(at, start, expected, "fewer clauses: the memory limit is reached");
        if (!spec_parse_clause(a, clause, &specs.items[specs.count], at, expected))
            return fault(at, start + *at, expected, *expected);
        specs.count++;
    }
    *out = specs;
    return true;
}

/* Whether v starts with the release numbers of prefix, less `without` of them at its end. */
static bool has_prefix(const struct version *v, const struct version *prefix, size_t without)
{
    struct version head = *v, wanted = *prefix;
    wanted.release_count -= without;
    if (head.release_count > wanted.release_count)
        head.release_count = wanted.release_count;
    return version_compare_release(&head, &wanted) == 0;
}

static bool equals(const struct spec *s, const struct version *v)
{
    if (s->wildcard)
        return has_prefix(v, &s->version, 0);
    /* Without a local part in the clause, the candidate's is ignored: ==2.11.0 takes 2.11.0+cu130. */
    return s->version.local_count > 0 ? version_compare(v, &s->version) == 0
                                      : version_compare_public(v, &s->version) == 0;
}

/* <V leaves out the pre-releases of V, unless V is one itself. */
static bool less(const struct spec *s, const struct version *v)
{
    struct version bound = s->version;
    if (!version_is_pre(&bound)) {
        bound.has_dev = true;
        bound.dev = 0;
    }
    return version_compare(v, &bound) < 0;
}

/* >V leaves out local versions of V and, unless V is one itself, its post-releases. */
static bool greater(const struct spec *s, const struct version *v)
{
    const struct version *bound = &s->version;
    if (version_compare_public(v, bound) <= 0)
        return false;
    if (bound->has_post || bound->has_dev)
        return true;
    return !(v->has_post && v->pre == bound->pre && v->pre_number == bound->pre_number &&
             version_compare_release(v, bound) == 0);
}

bool spec_contains(const struct spec *s, const struct version *v)
{
    switch (s->op) {
    case SPEC_COMPATIBLE:
        return version_compare(v, &s->version) >= 0 && has_prefix(v, &s->version, 1);
    case SPEC_EQUAL:
        return equals(s, v);
    case SPEC_NOT_EQUAL:
        return !equals(s, v);
    case SPEC_LESS_EQUAL:
        return version_compare_public(v, &s->version) <= 0;
    case SPEC_GREATER_EQUAL:
        return version_compare_public(v, &s->version) >= 0;
    case SPEC_LESS:
        return less(s, v);
    case SPEC_GREATER:
        return greater(s, v);
    case SPEC_ARBITRARY:
        break;
    }
    return str_eq_nocase(s->text, v->text);
}

bool specs_contain(const struct specs *s, const struct version *v, bool pre)
{
    bool named = false;
    for (size_t i = 0; i < s->count; i++) {
        if (!spec_contains(&s->items[i], v))
            return false;
        named = named || s->items[i].names_pre;
    }
    return pre || named || !version_is_pre(v);
}

bool specs_pin(const struct specs *s, struct version *out)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct spec *spec = &s->items[i];
        if (spec->has_version && !spec->wildcard && (spec->op == SPEC_EQUAL || spec->op == SPEC_ARBITRARY)) {
            *out = spec->version;
            return true;
        }
    }
    return false;
}
