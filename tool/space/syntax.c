/* Nodes and constants of Python sources. Nothing is run: what is not plain text or a number by its syntax is not known. */
#include "space/syntax.h"

#include <pthread.h>
#include <stdlib.h>

const TSLanguage *tree_sitter_python(void);

enum { FOLD_MOST = 300, LOOKUPS_MOST = 40, CHILDREN_MOST = 1000 };

static uint8_t kinds[1024]; /* by the grammar's symbol */
static struct {
    const char *name;
    TSFieldId id;
} fields[] = {{"name", 0},       {"value", 0},     {"function", 0}, {"arguments", 0}, {"object", 0},
              {"attribute", 0},  {"left", 0},      {"right", 0},    {"operator", 0},  {"operators", 0},
              {"subscript", 0},  {"condition", 0}, {"argument", 0}, {"alias", 0},     {"module_name", 0},
              {"parameters", 0}, {"key", 0}};
static pthread_once_t kinds_once = PTHREAD_ONCE_INIT;

static void kinds_fill(void)
{
    static const struct {
        enum node_kind kind;
        const char *name;
    } NAMES[] = {
#define NODE(kind, name) {kind, name},
#include "space/syntax.def"
#undef NODE
    };
    const TSLanguage *language = tree_sitter_python();
    const uint32_t count = ts_language_symbol_count(language);
    for (size_t i = 0; i < COUNT(fields); i++)
        fields[i].id =
            ts_language_field_id_for_name(language, fields[i].name, (uint32_t)strlen(fields[i].name));
    for (uint32_t symbol = 0; symbol < count && symbol < COUNT(kinds); symbol++) {
        const char *name = ts_language_symbol_name(language, (TSSymbol)symbol);
        if (ts_language_symbol_type(language, (TSSymbol)symbol) != TSSymbolTypeRegular || !name)
            continue;
        for (size_t i = 0; i < COUNT(NAMES); i++)
            if (strcmp(NAMES[i].name, name) == 0)
                kinds[symbol] = (uint8_t)NAMES[i].kind;
    }
}

enum node_kind kind_of(TSNode node)
{
    (void)pthread_once(&kinds_once, kinds_fill);
    if (ts_node_is_null(node))
        return N_OTHER;
    const TSSymbol symbol = ts_node_symbol(node);
    return symbol < COUNT(kinds) ? (enum node_kind)kinds[symbol]
                                 : N_ERROR; /* the error symbol is the largest number */
}

bool is_absent(TSNode node) { return ts_node_is_null(node); }

TSNode field(TSNode node, const char *name)
{
    return ts_node_child_by_field_name(node, name, (uint32_t)strlen(name));
}

TSNode named_child(TSNode node, size_t i) { return ts_node_named_child(node, (uint32_t)i); }

size_t named_count(TSNode node)
{
    const size_t count = ts_node_named_child_count(node);
    return count < CHILDREN_MOST ? count : CHILDREN_MOST;
}

str text_of(const struct reading *r, TSNode node)
{
    return ts_node_is_null(node) ? (str){NULL, 0}
                                 : str_slice(r->parsed, ts_node_start_byte(node), ts_node_end_byte(node));
}

str folded_text(const struct reading *r, TSNode node)
{
    const str text = text_of(r, node);
    struct buf b = {.a = r->a};
    bool space = false;
    for (size_t i = 0; i < text.n && b.count < FOLD_MOST; i++) {
        const char c = text.p[i];
        const bool white = c == ' ' || c == '\t' || c == '\n' || c == '\r' ||
                           (c == '\\' && i + 1 < text.n && text.p[i + 1] == '\n');
        if (!white) {
            if (space && b.count > 0)
                buf_char(&b, ' ');
            buf_char(&b, c);
        }
        space = white;
    }
    str folded = str_utf8(r->a, buf_str(&b));
    return folded;
}

struct place place_of(const struct reading *r, TSNode node)
{
    const TSPoint start = ts_node_start_point(node);
    return (struct place){r->m->path, start.row + (size_t)1, start.column + (size_t)1};
}

TSNode unparenthesized(TSNode node)
{
    for (unsigned depth = 0; depth < DEPTH_MOST && kind_of(node) == N_PARENTHESES && named_count(node) == 1;
         depth++)
        node = named_child(node, 0);
    return node;
}

static size_t slot_of(str name, size_t function) { return (str_hash(name) + function * 31) % SLOTS; }

/* The slot of the name's binding, or the free one where it would be. The tables are never more than half full. */
static size_t binding_slot(const struct reading *r, str name, size_t function)
{
    size_t slot = slot_of(name, function);
    for (; r->binding_slots[slot]; slot = (slot + 1) % SLOTS) {
        const struct binding *b = &r->bindings.items[r->binding_slots[slot] - 1];
        if (b->function == function && str_eq(b->name, name))
            break;
    }
    return slot;
}

static size_t alias_slot(const struct reading *r, str name)
{
    size_t slot = slot_of(name, 0);
    while (r->alias_slots[slot] && !str_eq(r->aliases.items[r->alias_slots[slot] - 1].name, name))
        slot = (slot + 1) % SLOTS;
    return slot;
}

struct binding *binding_entry(struct reading *r, str name, size_t function, bool *well)
{
    const size_t slot = binding_slot(r, name, function);
    if (r->binding_slots[slot])
        return &r->bindings.items[r->binding_slots[slot] - 1];
    if (r->bindings.count >= NAMES_MOST)
        return NULL;
    if (!arena_room(r->a, &r->bindings)) {
        *well = false;
        return NULL;
    }
    r->bindings.items[r->bindings.count] = (struct binding){.name = name, .function = function};
    r->binding_slots[slot] = (uint16_t)++r->bindings.count;
    return &r->bindings.items[r->bindings.count - 1];
}

struct alias *alias_entry(struct reading *r, str name, bool *well)
{
    const size_t slot = alias_slot(r, name);
    if (r->alias_slots[slot])
        return &r->aliases.items[r->alias_slots[slot] - 1];
    if (r->aliases.count >= NAMES_MOST)
        return NULL;
    if (!arena_room(r->a, &r->aliases)) {
        *well = false;
        return NULL;
    }
    r->aliases.items[r->aliases.count] = (struct alias){.name = name};
    r->alias_slots[slot] = (uint16_t)++r->aliases.count;
    return &r->aliases.items[r->aliases.count - 1];
}

bool alias_is_known(const struct reading *r, str name) { return r->alias_slots[alias_slot(r, name)] != 0; }

static str resolve_alias(const struct reading *r, str name)
{
    const size_t slot = alias_slot(r, name);
    return r->alias_slots[slot] ? r->aliases.items[r->alias_slots[slot] - 1].target : name;
}

str dotted_name(const struct reading *r, TSNode node)
{
    struct strs parts = {0};
    node = unparenthesized(node);
    for (unsigned depth = 0; depth < 32; depth++) {
        const enum node_kind kind = kind_of(node);
        if (kind == N_ATTRIBUTE) {
            if (!strs_add(r->a, &parts, text_of(r, field(node, "attribute"))))
                break;
            node = unparenthesized(field(node, "object"));
            continue;
        }
        if (kind != N_IDENTIFIER)
            break;
        struct buf b = {.a = r->a};
        buf_add(&b, resolve_alias(r, text_of(r, node)));
        for (size_t i = parts.count; i > 0; i--) {
            buf_char(&b, '.');
            buf_add(&b, parts.items[i - 1]);
        }
        return buf_str(&b);
    }
    return (str){NULL, 0};
}

const struct binding *binding_find(const struct reading *r, str name, size_t function)
{
    if (r->class_name.p && str_find_char(name, '.') == SIZE_MAX) {
        const str full = str_format(r->a, "%.*s.%.*s", STR_ARG(r->class_name), STR_ARG(name));
        const size_t slot = binding_slot(r, full, function);
        if (r->binding_slots[slot])
            return &r->bindings.items[r->binding_slots[slot] - 1];
    }
    for (;;) {
        const size_t slot = binding_slot(r, name, function);
        if (r->binding_slots[slot])
            return &r->bindings.items[r->binding_slots[slot] - 1];
        if (function == SIZE_MAX)
            return NULL;
        function = r->m->functions.items[function].outer;
    }
}

TSNode positional(TSNode arguments, size_t index)
{
    const size_t count = named_count(arguments);
    for (size_t i = 0, seen = 0; i < count; i++) {
        const TSNode child = named_child(arguments, i);
        const enum node_kind kind = kind_of(child);
        if (kind == N_KEYWORD || kind == N_COMMENT || kind == N_DICTIONARY_SPLAT)
            continue;
        if (seen++ == index)
            return child;
    }
    return (TSNode){0};
}

TSNode keyword(const struct reading *r, TSNode arguments, const char *name)
{
    const size_t count = named_count(arguments);
    for (size_t i = 0; i < count; i++) {
        const TSNode child = named_child(arguments, i);
        if (kind_of(child) == N_KEYWORD && str_eq(text_of(r, field(child, "name")), str_from(name)))
            return field(child, "value");
    }
    return (TSNode){0};
}

/* ---- Constant text ---- */

struct constant {
    const struct reading *r;
    struct buf b;
    bool whole;
    unsigned lookups, depth; /* of names, so that a = b; b = a ends; of nesting */
};

static void add_unknown(struct constant *c)
{
    c->whole = false;
    if (c->b.count == 0 || c->b.items[c->b.count - 1] != '?')
        buf_char(&c->b, '?');
}

/* NOLINTBEGIN(misc-no-recursion): constants are followed DEPTH_MOST deep, numbers and truth 64 */
static void add_text(struct constant *c, TSNode node, size_t function);

static void add_escape(struct constant *c, str escape)
{
    static const char FROM[] = "ntr\\'\"0ab", TO[] = "\n\t\r\\'\"\0\a\b";
    const char *at = escape.n == 2 && escape.p[1] ? strchr(FROM, escape.p[1]) : NULL;
    if (escape.n >= 2 && (escape.p[1] == '\n' || escape.p[1] == '\r'))
        return;
    if (at)
        buf_char(&c->b, TO[at - FROM]);
    else
        buf_add(&c->b, escape);
}

static void add_content(struct constant *c, TSNode content, bool raw)
{
    const str text = text_of(c->r, content);
    size_t done = ts_node_start_byte(content);
    const size_t base = done, count = named_count(content);
    for (size_t i = 0; !raw && i < count; i++) {
        const TSNode child = named_child(content, i);
        if (kind_of(child) != N_ESCAPE)
            continue;
        buf_add(&c->b, str_slice(text, done - base, ts_node_start_byte(child) - base));
        add_escape(c, text_of(c->r, child));
        done = ts_node_end_byte(child);
    }
    buf_add(&c->b, str_from_index(text, done - base));
}

static void add_string(struct constant *c, TSNode node, size_t function)
{
    const size_t count = named_count(node);
    bool raw = false;
    for (size_t i = 0; i < count; i++) {
        const TSNode child = named_child(node, i);
        switch (kind_of(child)) {
        case N_STRING_START: {
            const str start = text_of(c->r, child);
            raw = str_find_char(start, 'r') != SIZE_MAX || str_find_char(start, 'R') != SIZE_MAX;
            break;
        }
        case N_STRING_CONTENT:
            add_content(c, child, raw);
            break;
        case N_INTERPOLATION:
            add_text(c, named_child(child, 0), function);
            break;
        default:
            break;
        }
    }
}

static void add_joined(struct constant *c, TSNode arguments, size_t function, char separator)
{
    bool first = true;
    const size_t count = named_count(arguments);
    for (size_t i = 0; i < count; i++) {
        const TSNode child = named_child(arguments, i);
        if (kind_of(child) == N_KEYWORD || kind_of(child) == N_COMMENT)
            continue;
        if (!first && c->b.count > 0 && c->b.items[c->b.count - 1] != separator)
            buf_char(&c->b, separator);
        add_text(c, child, function);
        first = false;
    }
}

static void add_call(struct constant *c, TSNode node, size_t function)
{
    static const str SAME[] = {S_INIT("str"),
                               S_INIT("os.path.abspath"),
                               S_INIT("os.path.realpath"),
                               S_INIT("os.path.normpath"),
                               S_INIT("os.path.expanduser"),
                               S_INIT("pathlib.Path"),
                               S_INIT("Path"),
                               S_INIT("os.fspath"),
                               S_INIT("shlex.quote"),
                               S_INIT("textwrap.dedent")};
    const TSNode callee = field(node, "function"), arguments = field(node, "arguments");
    const str name = dotted_name(c->r, callee);
    if (str_eq(name, S("os.path.join"))) {
        add_joined(c, arguments, function, '/');
        return;
    }
    if (str_eq(name, S("os.path.dirname")) || str_eq(name, S("os.getcwd"))) {
        const TSNode argument = positional(arguments, 0);
        if (is_absent(argument) || str_contains(text_of(c->r, argument), S("__file__"))) {
            buf_char(
                &c->b,
                '.'); /* the folder of the app or of the module: near enough for 'does that path exist' */
            return;
        }
    }
    for (size_t i = 0; i < COUNT(SAME); i++)
        if (str_eq(name, SAME[i]) && named_count(arguments) == 1) {
            add_text(c, positional(arguments, 0), function);
            return;
        }
    if (kind_of(callee) == N_ATTRIBUTE && named_count(arguments) == 0) {
        static const str KEEPS[] = {S_INIT("strip"),    S_INIT("rstrip"),   S_INIT("lstrip"),
                                    S_INIT("as_posix"), S_INIT("absolute"), S_INIT("resolve")};
        for (size_t i = 0; i < COUNT(KEEPS); i++)
            if (str_eq(text_of(c->r, field(callee, "attribute")), KEEPS[i])) {
                add_text(c, field(callee, "object"), function);
                return;
            }
    }
    add_unknown(c);
}

static void add_binary(struct constant *c, TSNode node, size_t function)
{
    const str op = text_of(c->r, field(node, "operator"));
    const bool sum = str_eq(op, S("+")), path = str_eq(op, S("/"));
    if (!sum && !path) {
        add_unknown(c);
        return;
    }
    add_text(c, field(node, "left"), function);
    if (path && c->b.count > 0 && c->b.items[c->b.count - 1] != '/')
        buf_char(&c->b, '/');
    add_text(c, field(node, "right"), function);
}

static void add_identifier(struct constant *c, TSNode node, size_t function)
{
    const str name = text_of(c->r, node);
    const struct binding *b = binding_find(c->r, name, function);
    if (str_eq(name, S("__file__"))) {
        buf_add(&c->b, c->r->m->path);
    } else if (!b || !b->known || c->lookups >= LOOKUPS_MOST) {
        add_unknown(c);
    } else {
        c->lookups++;
        add_text(c, b->value, b->scope);
    }
}

static void add_text(struct constant *c, TSNode node, size_t function)
{
    if (is_absent(node) || c->depth >= DEPTH_MOST || c->b.count > 65536) {
        add_unknown(c);
        return;
    }
    c->depth++;
    node = unparenthesized(node);
    switch (kind_of(node)) {
    case N_STRING:
        add_string(c, node, function);
        break;
    case N_CONCATENATED:
        for (size_t i = 0; i < named_count(node); i++)
            add_text(c, named_child(node, i), function);
        break;
    case N_BINARY:
        add_binary(c, node, function);
        break;
    case N_IDENTIFIER:
        add_identifier(c, node, function);
        break;
    case N_CALL:
        add_call(c, node, function);
        break;
    case N_ATTRIBUTE:
        if (str_eq(dotted_name(c->r, node), S("sys.executable")))
            buf_add(&c->b, S("python"));
        else
            add_identifier(c, node, function); /* Settings.FOLDER */
        break;
    case N_INTEGER:
        buf_add(&c->b, text_of(c->r, node));
        break;
    default:
        add_unknown(c);
        break;
    }
    c->depth--;
}

str constant_text(const struct reading *r, TSNode node, size_t function, bool *whole)
{
    struct constant c = {.r = r, .b = {.a = r->a}, .whole = true};
    add_text(&c, node, function);
    *whole = c.whole && !c.b.failed;
    return buf_str(&c.b);
}

/* ---- Numbers and truth ---- */

static bool number_at(const struct reading *r, TSNode node, size_t function, double *value, unsigned depth)
{
    double left, right;
    if (depth > 64)
        return false;
    node = unparenthesized(node);
    switch (kind_of(node)) {
    case N_INTEGER:
    case N_FLOAT: {
        char text[64];
        size_t n = 0;
        const str source = text_of(r, node);
        for (size_t i = 0; i < source.n && n + 1 < sizeof text; i++)
            if (source.p[i] != '_')
                text[n++] = source.p[i];
        text[n] = 0;
        char *end = NULL;
        *value = strtod(text, &end);
        return end != text && *end == 0;
    }
    case N_UNARY:
        if (!str_eq(text_of(r, field(node, "operator")), S("-")) ||
            !number_at(r, field(node, "argument"), function, value, depth + 1))
            return false;
        *value = -*value;
        return true;
    case N_BINARY: {
        const str op = text_of(r, field(node, "operator"));
        if (!number_at(r, field(node, "left"), function, &left, depth + 1) ||
            !number_at(r, field(node, "right"), function, &right, depth + 1))
            return false;
        if (str_eq(op, S("+")))
            *value = left + right;
        else if (str_eq(op, S("-")))
            *value = left - right;
        else if (str_eq(op, S("*")))
            *value = left * right;
        else if (str_eq(op, S("/")) && right != 0)
            *value = left / right;
        else if (str_eq(op, S("//")) && right > 0 && left >= 0)
            *value = (double)(long long)(left / right);
        else
            return false;
        return true;
    }
    case N_ATTRIBUTE: /* Settings.DURATION */
    case N_IDENTIFIER: {
        const struct binding *b = binding_find(r, text_of(r, node), function);
        return b && b->known && number_at(r, b->value, b->scope, value, depth + 8);
    }
    case N_CALL: {
        const str name = dotted_name(r, field(node, "function"));
        const TSNode arguments = field(node, "arguments");
        if (str_eq(name, S("int")) || str_eq(name, S("float")))
            return number_at(r, positional(arguments, 0), function, value, depth + 1);
        if (!str_eq(name, S("datetime.timedelta")) && !str_eq(name, S("timedelta")))
            return false;
        static const struct {
            const char *name;
            double seconds;
        } UNITS[] = {
            {"days", 86400}, {"hours", 3600}, {"minutes", 60}, {"seconds", 1}, {"milliseconds", 0.001}};
        double sum = 0, part;
        for (size_t i = 0; i < named_count(arguments); i++)
            if (kind_of(named_child(arguments, i)) != N_KEYWORD)
                return false; /* positional: days first; nobody writes that */
        for (size_t i = 0; i < COUNT(UNITS); i++) {
            const TSNode argument = keyword(r, arguments, UNITS[i].name);
            if (is_absent(argument))
                continue;
            if (!number_at(r, argument, function, &part, depth + 1))
                return false;
            sum += part * UNITS[i].seconds;
        }
        *value = sum;
        return true;
    }
    default:
        return false;
    }
}

bool constant_number(const struct reading *r, TSNode node, size_t function, double *value)
{
    return !is_absent(node) && number_at(r, node, function, value, 0);
}

static int compare(const struct reading *r, TSNode node, size_t function)
{
    bool left_whole, right_whole;
    double left_number, right_number;
    if (named_count(node) != 2)
        return -1;
    const TSNode left = named_child(node, 0), right = named_child(node, 1);
    const str op = text_of(r, field(node, "operators"));
    const bool equal = str_eq(op, S("==")), differs = str_eq(op, S("!="));
    if (!equal && !differs)
        return -1;
    if (constant_number(r, left, function, &left_number) &&
        constant_number(r, right, function, &right_number))
        return (left_number == right_number) == equal;
    const str a = constant_text(r, left, function, &left_whole),
              b = constant_text(r, right, function, &right_whole);
    return left_whole && right_whole ? str_eq(a, b) == equal : -1;
}

static int truth_at(const struct reading *r, TSNode node, size_t function, unsigned depth)
{
    bool whole;
    if (depth > 64)
        return -1;
    node = unparenthesized(node);
    switch (kind_of(node)) {
    case N_TRUE:
        return 1;
    case N_FALSE:
    case N_NONE:
        return 0;
    case N_COMPARISON:
        return compare(r, node, function);
    case N_NOT: {
        const int truth = truth_at(r, field(node, "argument"), function, depth + 1);
        return truth < 0 ? -1 : !truth;
    }
    case N_BOOLEAN: {
        const int left = truth_at(r, field(node, "left"), function, depth + 1);
        const int right = truth_at(r, field(node, "right"), function, depth + 1);
        if (str_eq(text_of(r, field(node, "operator")), S("and")))
            return left == 0 || right == 0 ? 0 : left == 1 && right == 1 ? 1 : -1;
        return left == 1 || right == 1 ? 1 : left == 0 && right == 0 ? 0 : -1;
    }
    case N_ATTRIBUTE:
    case N_IDENTIFIER: {
        const struct binding *b = binding_find(r, text_of(r, node), function);
        return b && b->known ? truth_at(r, b->value, b->scope, depth + 8) : -1;
    }
    case N_STRING: {
        const str text = constant_text(r, node, function, &whole);
        return whole ? text.n > 0 : -1;
    }
    case N_INTEGER: {
        double value;
        return constant_number(r, node, function, &value) ? value != 0 : -1;
    }
    default:
        return -1;
    }
}

int constant_truth(const struct reading *r, TSNode node, size_t function)
{
    return truth_at(r, node, function, 0);
}

/* NOLINTEND(misc-no-recursion) */

bool constant_words(const struct reading *r, TSNode node, size_t function, struct strs *words)
{
    for (unsigned lookups = 0; lookups < LOOKUPS_MOST; lookups++) {
        node = unparenthesized(node);
        const enum node_kind kind = kind_of(node);
        if (kind == N_LIST || kind == N_TUPLE) {
            bool whole;
            for (size_t i = 0; i < named_count(node); i++)
                if (kind_of(named_child(node, i)) != N_COMMENT &&
                    !strs_add(r->a, words, constant_text(r, named_child(node, i), function, &whole)))
                    return false;
            return true;
        }
        const struct binding *b = kind == N_IDENTIFIER ? binding_find(r, text_of(r, node), function) : NULL;
        if (!b || !b->known)
            return false;
        node = b->value;
        function = b->scope;
    }
    return false;
}
