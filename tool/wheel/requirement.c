/* Requirements and markers: PEP 508's grammar (with PEP 440's specifiers and PEP 685's extras) by recursive descent, and
 * markers evaluated as the `packaging` library does. Where the two differ the PEP decides: a name or an extra ends with a
 * letter or a digit ("foo_" is refused), a quoted string holds no backslash, and a variable on both sides of a comparison
 * means its value. */
#include "wheel/reader.h"

enum {
    NESTING_MOST = 200
}; /* of parentheses; as in packaging and in CPython's own parser. Bounds the recursion */

struct parser {
    arena *a;
    struct reader r;
    size_t *at;
    const char **expected;
};

static bool fail(const struct parser *p, const char *expected)
{
    *p->at = p->r.at;
    *p->expected = expected;
    return false;
}

static bool fail_memory(const struct parser *p)
{
    return fail(p, "a shorter text: the memory limit is reached");
}

/* PEP 508's identifier: letters and digits, and "-_." inside. */
static str take_identifier(struct reader *r)
{
    const size_t first = r->at;
    size_t end = first;
    for (size_t i = first; i < r->text.n; i++) {
        const char c = r->text.p[i];
        if (is_alnum(c))
            end = i + 1;
        else if (i == first || (c != '-' && c != '_' && c != '.'))
            break;
    }
    r->at = end;
    return str_slice(r->text, first, end);
}

/* ---- Markers ---- */

static const struct variable {
    str spelling, name; /* some have an old spelling as well */
} VARIABLES[] = {
    {S_INIT("python_full_version"), S_INIT("python_full_version")},
    {S_INIT("python_version"), S_INIT("python_version")},
    {S_INIT("os_name"), S_INIT("os_name")},
    {S_INIT("os.name"), S_INIT("os_name")},
    {S_INIT("sys_platform"), S_INIT("sys_platform")},
    {S_INIT("sys.platform"), S_INIT("sys_platform")},
    {S_INIT("platform_release"), S_INIT("platform_release")},
    {S_INIT("platform_system"), S_INIT("platform_system")},
    {S_INIT("platform_version"), S_INIT("platform_version")},
    {S_INIT("platform.version"), S_INIT("platform_version")},
    {S_INIT("platform_machine"), S_INIT("platform_machine")},
    {S_INIT("platform.machine"), S_INIT("platform_machine")},
    {S_INIT("platform_python_implementation"), S_INIT("platform_python_implementation")},
    {S_INIT("platform.python_implementation"), S_INIT("platform_python_implementation")},
    {S_INIT("python_implementation"), S_INIT("platform_python_implementation")},
    {S_INIT("implementation_name"), S_INIT("implementation_name")},
    {S_INIT("implementation_version"), S_INIT("implementation_version")},
    {S_INIT("extra"), S_INIT("extra")},
    {S_INIT("extras"), S_INIT("extras")},                       /* of lock files: a set */
    {S_INIT("dependency_groups"), S_INIT("dependency_groups")}, /* the same */
};

static bool is_word(char c) { return is_alnum(c) || c == '_' || (unsigned char)c >= 0x80; }

/* The word, with no letter, digit or underscore behind it. */
static bool take_keyword(struct reader *r, str word)
{
    const str next = str_slice(r->text, r->at, r->at + word.n);
    if (!str_eq(next, word) || (r->at + word.n < r->text.n && is_word(r->text.p[r->at + word.n])))
        return false;
    r->at += word.n;
    return true;
}

static bool take_operand(struct parser *p, str *text, bool *is_name)
{
    struct reader *r = &p->r;
    for (size_t i = 0; i < COUNT(VARIABLES); i++)
        if (take_keyword(r, VARIABLES[i].spelling)) {
            *text = VARIABLES[i].name;
            *is_name = true;
            return true;
        }
    const char quote = reader_peek(r);
    if (quote != '"' && quote != '\'')
        return fail(p, "a marker variable (such as python_version or sys_platform) or a quoted string");
    const str rest = str_from_index(r->text, r->at + 1);
    const size_t length = str_find_char(rest, quote);
    if (length == SIZE_MAX)
        return fail(p, "a closing quote");
    *text = str_slice(rest, 0, length);
    *is_name = false;
    for (size_t i = 0; i < length; i++)
        if (rest.p[i] == '\\' || rest.p[i] == '\n' || rest.p[i] == '\r' || rest.p[i] == '\0') {
            r->at += 1 + i;
            return fail(p, "no backslash, line end or NUL in a quoted string");
        }
    r->at += length + 2;
    return true;
}

static bool take_operator(struct parser *p, str *op)
{
    static const str SYMBOLS[] = {S_INIT("==="), S_INIT("=="), S_INIT("~="), S_INIT("!="),
                                  S_INIT("<="),  S_INIT(">="), S_INIT("<"),  S_INIT(">")};
    struct reader *r = &p->r;
    for (size_t i = 0; i < COUNT(SYMBOLS); i++)
        if (reader_take_word(r, SYMBOLS[i])) {
            *op = SYMBOLS[i];
            return true;
        }
    if (take_keyword(r, S("in"))) {
        *op = S("in");
        return true;
    }
    if (!take_keyword(r, S("not")))
        return fail(p, "a comparison: one of == != <= >= < > ~= === in, not in");
    const size_t behind = r->at;
    reader_skip_blanks(r);
    if (r->at == behind || !take_keyword(r, S("in")))
        return fail(p, "'in' behind 'not'");
    *op = S("not in");
    return true;
}

static bool is_extra(str operand, bool is_name) { return is_name && str_eq(operand, S("extra")); }

/* Names of extras and groups are compared in normal form (PEP 685), so literals get it once, here. */
static void normalize_names(arena *a, struct marker *m)
{
    if (is_extra(m->a, m->a_is_name) && !m->b_is_name)
        m->b = name_normalize(a, m->b);
    else if (m->b_is_name && !m->a_is_name &&
             (str_eq(m->b, S("extra")) || str_eq(m->b, S("extras")) || str_eq(m->b, S("dependency_groups"))))
        m->a = name_normalize(a, m->a);
}

/* NOLINTBEGIN(misc-no-recursion): NESTING_MOST bounds it, and with it the depth of every marker's tree */
static bool parse_or(struct parser *p, unsigned depth, const struct marker **out);

static bool parse_atom(struct parser *p, unsigned depth, const struct marker **out)
{
    struct reader *r = &p->r;
    reader_skip_blanks(r);
    if (reader_peek(r) == '(') {
        if (depth == NESTING_MOST)
            return fail(p, "at most 200 nested parentheses");
        r->at++;
        if (!parse_or(p, depth + 1, out))
            return false;
        if (!reader_take(r, ')'))
            return fail(p, "'and', 'or' or a closing parenthesis");
        reader_skip_blanks(r);
        return true;
    }
    struct marker *m = arena_array(p->a, struct marker, 1);
    if (!m)
        return fail_memory(p);
    m->kind = MARKER_COMPARE;
    if (!take_operand(p, &m->a, &m->a_is_name))
        return false;
    reader_skip_blanks(r);
    if (!take_operator(p, &m->op))
        return false;
    reader_skip_blanks(r);
    if (!take_operand(p, &m->b, &m->b_is_name))
        return false;
    reader_skip_blanks(r);
    normalize_names(p->a, m);
    *out = m;
    return true;
}

/* A chain "a and b and c" leans to the right, so that evaluation recurses only where the text has parentheses. *slot is
 * where the chain's last operand hangs. */
static bool extend_chain(struct parser *p, enum marker_kind kind, const struct marker **slot,
                         const struct marker ***next)
{
    struct marker *m = arena_array(p->a, struct marker, 1);
    if (!m)
        return fail_memory(p);
    m->kind = kind;
    m->left = *slot;
    *slot = m;
    *next = &m->right;
    return true;
}

static bool parse_and(struct parser *p, unsigned depth, const struct marker **out)
{
    const struct marker **slot = out;
    for (;;) {
        if (!parse_atom(p, depth, slot))
            return false;
        if (!take_keyword(&p->r, S("and")))
            return true;
        if (!extend_chain(p, MARKER_AND, slot, &slot))
            return false;
    }
}

static bool parse_or(struct parser *p, unsigned depth, const struct marker **out)
{
    const struct marker **slot = out;
    for (;;) {
        if (!parse_and(p, depth, slot))
            return false;
        if (!take_keyword(&p->r, S("or")))
            return true;
        if (!extend_chain(p, MARKER_OR, slot, &slot))
            return false;
    }
}

/* NOLINTEND(misc-no-recursion) */

bool marker_parse(arena *a, str text, const struct marker **out, size_t *at, const char **expected)
{
    struct parser p = {.a = a, .r = {text, 0}, .at = at, .expected = expected};
    const struct marker *m = NULL;
    if (!parse_or(&p, 0, &m))
        return false;
    if (!reader_done(&p.r))
        return fail(&p, "'and', 'or' or the end");
    *out = m;
    return true;
}

static str variable_value(const struct marker_env *env, str name)
{
    const struct {
        str name, value;
    } values[] = {
        {S("python_version"), env->python_version},
        {S("python_full_version"), env->python_full_version},
        {S("os_name"), env->os_name},
        {S("sys_platform"), env->sys_platform},
        {S("platform_release"), env->platform_release},
        {S("platform_system"), env->platform_system},
        {S("platform_version"), env->platform_version},
        {S("platform_machine"), env->platform_machine},
        {S("platform_python_implementation"), env->platform_python_implementation},
        {S("implementation_name"), env->implementation_name},
        {S("implementation_version"), env->implementation_version},
        {S("extra"), env->extra},
        {S("extras"), env->extra},
    };
    for (size_t i = 0; i < COUNT(values); i++)
        if (str_eq(name, values[i].name))
            return values[i].value.p ? values[i].value : S("");
    return S("");
}

static str operand_value(arena *a, const struct marker_env *env, str text, bool is_name)
{
    if (!is_name)
        return text;
    const str value = variable_value(env, text);
    if (is_extra(text, is_name) || str_eq(text, S("extras")))
        return name_normalize(a, value);
    /* Python built from an untagged checkout says "3.13.0a1+": a local part makes that a version. */
    if (str_eq(text, S("python_full_version")) && str_ends(value, S("+")))
        return str_format(a, "%.*slocal", STR_ARG(value));
    return value;
}

static bool is_version_variable(str name)
{
    return str_eq(name, S("python_version")) || str_eq(name, S("python_full_version")) ||
           str_eq(name, S("implementation_version")) || str_eq(name, S("platform_release"));
}

/* As text: only equality and substrings have a meaning; an order of texts has none and does not hold. */
static bool texts_hold(str a, str op, str b)
{
    if (str_eq(op, S("in")))
        return str_contains(b, a);
    if (str_eq(op, S("not in")))
        return !str_contains(b, a);
    if (str_eq(op, S("!=")))
        return !str_eq(a, b);
    if (str_eq(op, S("==")) || str_eq(op, S("<=")) || str_eq(op, S(">=")))
        return str_eq(a, b);
    return false;
}

static bool comparison_holds(arena *a, const struct marker *m, const struct marker_env *env)
{
    const str left = operand_value(a, env, m->a, m->a_is_name);
    const str right = operand_value(a, env, m->b, m->b_is_name);
    if (m->b_is_name && (str_eq(m->b, S("extras")) || str_eq(m->b, S("dependency_groups")))) {
        const bool selected = right.n > 0 && str_eq(left, right);
        return str_eq(m->op, S("in")) ? selected : str_eq(m->op, S("not in")) && !selected;
    }
    struct spec spec;
    struct version version;
    size_t at = 0;
    const char *expected = NULL;
    const str variable = m->a_is_name ? m->a : m->b_is_name ? m->b : S("");
    const str clause = str_format(a, "%.*s%.*s", STR_ARG(m->op), STR_ARG(right));
    if (!is_version_variable(variable) || !spec_parse_clause(a, clause, &spec, &at, &expected))
        return texts_hold(left, m->op, right);
    if (spec.op == SPEC_ARBITRARY)
        return str_eq_nocase(left, spec.text);
    return version_parse(a, left, &version) && spec_contains(&spec, &version);
}

/* NOLINTNEXTLINE(misc-no-recursion): only where the text has parentheses */
bool marker_holds(arena *a, const struct marker *m, const struct marker_env *env)
{
    while (m && m->kind != MARKER_COMPARE) {
        const bool left = marker_holds(a, m->left, env);
        if (left == (m->kind == MARKER_OR))
            return left;
        m = m->right;
    }
    return !m || comparison_holds(a, m, env);
}

static void add_operand(struct buf *b, str text, bool is_name)
{
    const str quote = is_name ? S("") : str_find_char(text, '"') == SIZE_MAX ? S("\"") : S("'");
    buf_add(b, quote);
    buf_add(b, text);
    buf_add(b, quote);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tree */
static void add_marker(struct buf *b, const struct marker *m, enum marker_kind around)
{
    const bool parentheses = around == MARKER_AND && m->kind == MARKER_OR;
    if (parentheses)
        buf_char(b, '(');
    for (; m->kind != MARKER_COMPARE; m = m->right) {
        const enum marker_kind kind = m->kind;
        add_marker(b, m->left, kind);
        buf_add(b, kind == MARKER_AND ? S(" and ") : S(" or "));
        if (m->right->kind != kind) {
            add_marker(b, m->right, kind);
            break;
        }
    }
    if (m->kind == MARKER_COMPARE) {
        add_operand(b, m->a, m->a_is_name);
        buf_char(b, ' ');
        buf_add(b, m->op);
        buf_char(b, ' ');
        add_operand(b, m->b, m->b_is_name);
    }
    if (parentheses)
        buf_char(b, ')');
}

str marker_text(arena *a, const struct marker *m)
{
    struct buf b = {.a = a};
    if (m)
        add_marker(&b, m, MARKER_OR);
    return buf_str(&b);
}

/* ---- Requirements ---- */

static bool take_extras(struct parser *p, struct strs *out)
{
    struct reader *r = &p->r;
    if (!reader_take(r, '['))
        return true;
    reader_skip_blanks(r);
    if (reader_take(r, ']'))
        return true;
    for (;;) {
        const str extra = take_identifier(r);
        if (extra.n == 0)
            return fail(p, "the name of an extra");
        if (!strs_add(p->a, out, extra))
            return fail_memory(p);
        reader_skip_blanks(r);
        if (reader_take(r, ']'))
            return true;
        if (!reader_take(r, ','))
            return fail(p, "',' or ']' in the list of extras");
        reader_skip_blanks(r);
    }
}

/* A clause ends at a comma, semicolon or parenthesis, and at white space that does not stand behind its operator. */
static size_t clause_end(const struct reader *r)
{
    size_t i = r->at;
    while (i < r->text.n && strchr("=<>!~", r->text.p[i]) && r->text.p[i])
        i++;
    while (i < r->text.n && is_white(r->text.p[i]))
        i++;
    while (i < r->text.n && !is_white(r->text.p[i]) && r->text.p[i] != ',' && r->text.p[i] != ';' &&
           r->text.p[i] != ')')
        i++;
    return i;
}

/* Clauses joined by commas; one comma too many at the end is common and accepted. */
static bool take_clauses(struct parser *p, struct specs *out)
{
    struct reader *r = &p->r;
    while (reader_peek(r) && strchr("=<>!~", reader_peek(r))) {
        const size_t end = clause_end(r);
        if (!arena_room(p->a, out))
            return fail_memory(p);
        size_t at = 0;
        if (!spec_parse_clause(p->a, str_slice(r->text, r->at, end), &out->items[out->count], &at,
                               p->expected)) {
            *p->at = r->at + at;
            return false;
        }
        out->count++;
        r->at = end;
        reader_skip_blanks(r);
        if (!reader_take(r, ','))
            break;
        reader_skip_blanks(r);
    }
    return true;
}

static bool take_specs(struct parser *p, struct specs *out)
{
    struct reader *r = &p->r;
    if (!reader_take(r, '('))
        return take_clauses(p, out);
    reader_skip_blanks(r);
    if (!take_clauses(p, out))
        return false;
    reader_skip_blanks(r);
    if (!reader_take(r, ')'))
        return fail(p, "a version specifier or a closing parenthesis");
    reader_skip_blanks(r);
    return true;
}

/* Everything up to white space, as PEP 508 says: a ';' right behind a URL belongs to it. */
static bool take_url(struct parser *p, str *url)
{
    struct reader *r = &p->r;
    reader_skip_blanks(r);
    const size_t first = r->at;
    while (!reader_done(r) && !is_white(reader_peek(r)))
        r->at++;
    *url = str_slice(r->text, first, r->at);
    if (url->n == 0)
        return fail(p, "a URL behind '@'");
    if (!reader_done(r) && !is_blank(reader_peek(r)))
        return fail(p, "a space behind the URL");
    reader_skip_blanks(r);
    return true;
}

bool requirement_parse(arena *a, str text, struct requirement *out, size_t *at, const char **expected)
{
    struct parser p = {.a = a, .r = {text, 0}, .at = at, .expected = expected};
    struct requirement requirement = {.url = {NULL, 0}};
    reader_skip_blanks(&p.r);
    requirement.name = take_identifier(&p.r);
    if (requirement.name.n == 0)
        return fail(&p, "a package name, which starts and ends with a letter or a digit");
    reader_skip_blanks(&p.r);
    if (!take_extras(&p, &requirement.extras))
        return false;
    reader_skip_blanks(&p.r);
    const bool has_url = reader_take(&p.r, '@');
    if (has_url ? !take_url(&p, &requirement.url) : !take_specs(&p, &requirement.specs))
        return false;
    if (reader_take(&p.r, ';')) {
        if (!parse_or(&p, 0, &requirement.marker))
            return false;
        if (!reader_done(&p.r))
            return fail(&p, "'and', 'or' or the end of the marker");
    }
    if (!reader_done(&p.r))
        return fail(&p, has_url ? "';' and a marker behind the URL and a space, or the end"
                        : requirement.specs.count == 0
                            ? "a version specifier, '@' and a URL, ';' and a marker, or the end"
                            : "',' and a version specifier, ';' and a marker, or the end");
    *out = requirement;
    return true;
}

str requirement_text(arena *a, const struct requirement *r)
{
    struct buf b = {.a = a};
    buf_add(&b, r->name);
    for (size_t i = 0; i < r->extras.count; i++) {
        buf_char(&b, i == 0 ? '[' : ',');
        buf_add(&b, r->extras.items[i]);
    }
    if (r->extras.count > 0)
        buf_char(&b, ']');
    for (size_t i = 0; i < r->specs.count; i++) {
        if (i > 0)
            buf_char(&b, ',');
        buf_add(&b, spec_op_text(r->specs.items[i].op));
        buf_add(&b, r->specs.items[i].text);
    }
    if (r->url.p) {
        buf_add(&b, S(" @ "));
        buf_add(&b, r->url);
    }
    if (r->marker) {
        buf_add(&b, r->url.p ? S(" ; ") : S("; "));
        buf_add(&b, marker_text(a, r->marker));
    }
    return buf_str(&b);
}

str parse_error_text(arena *a, str text, size_t at, const char *expected)
{
    enum { SHOWN = 24 };
    const str rest = str_from_index(text, at);
    if (rest.n == 0)
        return str_format(a, "column %zu: expected %s, found the end", at + 1, expected);
    const str shown = term_safe(a, str_utf8(a, str_slice(rest, 0, SHOWN)));
    return str_format(a, "column %zu: expected %s, found '%.*s%s'", at + 1, expected, STR_ARG(shown),
                      rest.n > SHOWN ? "..." : "");
}
