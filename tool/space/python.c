/* One Python module as facts, in one walk over its syntax tree: imports with their guards, GPU functions, start-up installs,
 * environment settings, and smaller notes. What happens in which order, and in which module first, is for modules.c. */
#include "space/syntax.h"

#include <ctype.h>
#include <stdlib.h>

const TSLanguage *tree_sitter_python(void);

/* Of a module; beyond them it is generated, and the rest is left out. */
enum {
    EVENTS_MOST = 200000,
    INSTALLS_MOST = 1000,
    GPU_MOST = 1000,
    FUNCTIONS_MOST = 10000,
    UPDATES_MOST = 1000,
    WRAPPERS_MOST = 64,
    NAMED_CALLS_MOST = 5000,
    LOOP_MOST = 64,
};

/* An install whose command comes from a parameter of its function: def install(package): ... It is read once for each call. */
struct wrapper {
    TSNode node, parameters;
    size_t callee, function, gpu, event; /* event: how many there were when it was met */
    unsigned guard;
    str outer_name;
    bool used;
};
struct named_call { /* install("x.whl"), with what is needed to read the wrapper in its place */
    TSNode arguments;
    str name;
    size_t function, event;
    unsigned guard;
};
struct wrapper_list {
    struct wrapper *items;
    size_t count, capacity;
};
struct named_call_list {
    struct named_call *items;
    size_t count, capacity;
};
struct late_event { /* one that belongs before the event at `before` */
    struct event event;
    size_t before;
};
struct late_event_list {
    struct late_event *items;
    size_t count, capacity;
};

struct walk {
    struct reading r;
    TSTreeCursor cursor;
    unsigned guard;
    size_t function;   /* the innermost, SIZE_MAX at module level */
    size_t gpu;        /* the innermost decorated function around, SIZE_MAX: none */
    str outer_name;    /* of the innermost function, for people */
    TSNode decorators; /* the decorated_definition around the next definition */
    TSNode parameters; /* of the innermost function */
    str loop_name;     /* of the innermost `for` over constants, and what it goes through */
    TSNode loop_items;
    struct wrapper_list wrappers;
    struct named_call_list named_calls;
    struct late_event_list late;
    unsigned depth;
    bool well;
};

/* NOLINTBEGIN(misc-no-recursion): the walk down a tree ends at DEPTH_MOST, the rest at limits of its own */
static void visit(struct walk *w);

static void visit_children(struct walk *w)
{
    if (!ts_tree_cursor_goto_first_child(&w->cursor))
        return;
    do
        visit(w);
    while (ts_tree_cursor_goto_next_sibling(&w->cursor));
    (void)ts_tree_cursor_goto_parent(&w->cursor);
}

static void visit_children_as(struct walk *w, unsigned guard)
{
    const unsigned saved = w->guard;
    w->guard |= guard;
    visit_children(w);
    w->guard = saved;
}

static bool add_event(struct walk *w, enum event_kind kind, size_t index)
{
    struct event_list *events = &w->r.m->events;
    if (events->count >= EVENTS_MOST || !arena_room(w->r.a, events)) {
        w->well = w->well &&
                  events->count >= EVENTS_MOST; /* a huge module is cut, running out of memory is a failure */
        return false;
    }
    events->items[events->count++] = (struct event){kind, index, w->function, w->guard};
    return true;
}

static void add_note(struct walk *w, enum note_kind kind, TSNode node, str detail)
{
    struct note_list *notes = &w->r.m->notes;
    if (!arena_room(w->r.a, notes)) {
        w->well = false;
        return;
    }
    notes->items[notes->count++] = (struct note){.kind = kind,
                                                 .place = place_of(&w->r, node),
                                                 .detail = str_utf8(w->r.a, detail),
                                                 .text = folded_text(&w->r, node),
                                                 .function = w->outer_name,
                                                 .guard = w->guard};
    (void)add_event(w, EVENT_NOTE, notes->count - 1);
}

static void add_alias(struct walk *w, str name, str target)
{
    struct alias *alias = alias_entry(&w->r, name, &w->well);
    if (alias)
        alias->target = target;
}

/* ---- Imports ---- */

static struct py_import *add_import(struct walk *w, TSNode statement, str module)
{
    static _Thread_local struct py_import lost;
    struct py_import_list *list = &w->r.m->imports;
    if (!arena_room(w->r.a, list)) {
        w->well = false;
        return &lost;
    }
    list->items[list->count] = (struct py_import){.module = module,
                                                  .text = folded_text(&w->r, statement),
                                                  .place = place_of(&w->r, statement),
                                                  .guard = w->guard,
                                                  .function = w->outer_name,
                                                  .local = SIZE_MAX};
    (void)add_event(w, EVENT_IMPORT, list->count);
    return &list->items[list->count++];
}

static str without_blanks(const struct reading *r, TSNode node)
{
    const str text = text_of(r, node);
    if (str_find_char(text, ' ') == SIZE_MAX && str_find_char(text, '\\') == SIZE_MAX &&
        str_find_char(text, '\n') == SIZE_MAX)
        return text;
    struct buf b = {.a = r->a};
    for (size_t i = 0; i < text.n; i++)
        if (!strchr(" \t\r\n\\", text.p[i]))
            buf_char(&b, text.p[i]);
    return buf_str(&b);
}

static void note_cuda_import(struct walk *w, TSNode node, str module)
{
    static const str MODULES[] = {S_INIT("pycuda.autoinit"), S_INIT("numba.cuda")};
    for (size_t i = 0; i < COUNT(MODULES); i++)
        if (str_eq(module, MODULES[i]))
            add_note(w, NOTE_CUDA_AT_IMPORT, node, module);
}

static void take_import(struct walk *w, TSNode node)
{
    const size_t count = named_count(node);
    for (size_t i = 0; i < count; i++) {
        const TSNode child = named_child(node, i);
        const bool aliased = kind_of(child) == N_ALIASED_IMPORT;
        const str module = without_blanks(&w->r, aliased ? field(child, "name") : child);
        if (kind_of(child) != N_DOTTED_NAME && !aliased)
            continue;
        (void)add_import(w, node, module);
        note_cuda_import(w, node, module);
        if (str_eq(module, S("spaces")) && (w->guard & GUARD_TRY))
            add_note(w, NOTE_SPACES_SHIM, node, module);
        if (aliased)
            add_alias(w, text_of(&w->r, field(child, "alias")), module);
    }
}

/* The package that `from .` means in this file, as a dotted path from the app's folder, `up` levels above. */
static str package_of(struct walk *w, size_t up)
{
    str folder = path_dir(w->r.m->path);
    if (str_eq(folder, S(".")))
        folder = S("");
    for (size_t i = 1; i < up; i++) {
        const size_t slash = str_rfind_char(folder, '/');
        folder = slash == SIZE_MAX ? S("") : str_slice(folder, 0, slash);
    }
    return dotted_path(w->r.a, folder);
}

static str relative_module(struct walk *w, TSNode relative)
{
    str text = without_blanks(&w->r, relative);
    size_t dots = 0;
    while (dots < text.n && text.p[dots] == '.')
        dots++;
    const str package = package_of(w, dots), rest = str_from_index(text, dots);
    return package.n && rest.n ? str_format(w->r.a, "%.*s.%.*s", STR_ARG(package), STR_ARG(rest))
           : package.n         ? package
                               : rest;
}

static void take_import_from(struct walk *w, TSNode node)
{
    const TSNode name = field(node, "module_name");
    const str module =
        kind_of(name) == N_RELATIVE_IMPORT ? relative_module(w, name) : without_blanks(&w->r, name);
    struct strs names = {0};
    const size_t count = named_count(node);
    for (size_t i = 0; i < count; i++) {
        const TSNode child = named_child(node, i);
        if (ts_node_eq(child, name))
            continue;
        const enum node_kind kind = kind_of(child);
        const bool aliased = kind == N_ALIASED_IMPORT;
        if (kind == N_WILDCARD_IMPORT) {
            w->well = strs_add(w->r.a, &names, S("*")) && w->well;
        } else if (kind == N_DOTTED_NAME || aliased) {
            const str imported = text_of(&w->r, aliased ? field(child, "name") : child);
            const str target = str_format(w->r.a, "%.*s.%.*s", STR_ARG(module), STR_ARG(imported));
            w->well = strs_add(w->r.a, &names, imported) && w->well;
            add_alias(w, aliased ? text_of(&w->r, field(child, "alias")) : imported, target);
            note_cuda_import(w, node, target);
        }
    }
    add_import(w, node, module)->names = names;
    if (str_eq(module, S("spaces")) && (w->guard & GUARD_TRY))
        add_note(w, NOTE_SPACES_SHIM, node, module);
}

/* ---- Conditions and handlers ---- */

/* What a condition makes of the code under it; never or always, when constants decide it. */
static unsigned guard_of_condition(struct walk *w, TSNode condition, bool *never, bool *always)
{
    const str text = text_of(&w->r, unparenthesized(condition));
    const int truth = constant_truth(&w->r, condition, w->function);
    *never = truth == 0;
    *always = truth == 1;
    if (truth >= 0)
        return 0;
    if (str_contains(text, S("__name__")) && str_contains(text, S("__main__")))
        return GUARD_MAIN;
    if (str_eq(text, S("TYPE_CHECKING")) || str_ends(text, S(".TYPE_CHECKING")))
        return GUARD_TYPE_CHECKING;
    return GUARD_CONDITION;
}

static void visit_if(struct walk *w)
{
    const TSNode node = ts_tree_cursor_current_node(&w->cursor);
    bool decided = false; /* an earlier branch always runs: the rest never does */
    bool open = false;    /* an earlier branch may run */
    if (!ts_tree_cursor_goto_first_child(&w->cursor))
        return;
    do {
        const TSNode child = ts_tree_cursor_current_node(&w->cursor);
        const enum node_kind kind = kind_of(child);
        const bool consequence = kind == N_BLOCK;
        if (consequence || kind == N_ELIF) {
            bool never = false, always = false;
            const unsigned guard =
                guard_of_condition(w, field(consequence ? node : child, "condition"), &never, &always);
            if (!never && !decided)
                visit_children_as(w, guard | (open ? GUARD_CONDITION : 0));
            decided = decided || always;
            open = open || (!never && guard != GUARD_TYPE_CHECKING);
        } else if (kind == N_ELSE) {
            if (!decided)
                visit_children_as(w, open ? GUARD_CONDITION : 0);
        } else {
            visit(w); /* the condition itself may hold calls */
        }
    } while (ts_tree_cursor_goto_next_sibling(&w->cursor));
    (void)ts_tree_cursor_goto_parent(&w->cursor);
}

static bool names_import_error(str text)
{
    static const str NAMES[] = {S_INIT("ImportError"), S_INIT("ModuleNotFoundError"), S_INIT("Exception")};
    if (str_eq(text, S("except")) || text.n == 0)
        return true;
    for (size_t i = 0; i < COUNT(NAMES); i++)
        if (str_contains(text, NAMES[i]))
            return true;
    return false;
}

/* A handler that raises again, or ends the process, does not make what it guards optional. */
static bool handler_goes_on(const struct reading *r, TSNode clause)
{
    for (size_t i = 0; i < named_count(clause); i++) {
        const TSNode block = named_child(clause, i);
        if (kind_of(block) != N_BLOCK)
            continue;
        for (size_t s = 0; s < named_count(block); s++) {
            const TSNode statement = named_child(block, s);
            const str text = text_of(r, statement);
            if (kind_of(statement) == N_RAISE || str_starts(text, S("sys.exit")) ||
                str_starts(text, S("exit(")) || str_starts(text, S("os._exit")))
                return false;
        }
    }
    return true;
}

static bool try_guards_imports(const struct reading *r, TSNode node)
{
    for (size_t i = 0; i < named_count(node); i++) {
        const TSNode clause = named_child(node, i);
        const enum node_kind kind = kind_of(clause);
        if (kind != N_EXCEPT && kind != N_EXCEPT_GROUP)
            continue;
        str head, tail;
        (void)str_cut(text_of(r, clause), ':', &head, &tail);
        if (names_import_error(str_trim(head)) && handler_goes_on(r, clause))
            return true;
    }
    return false;
}

static void visit_try(struct walk *w)
{
    const unsigned guard = try_guards_imports(&w->r, ts_tree_cursor_current_node(&w->cursor)) ? GUARD_TRY : 0;
    if (!ts_tree_cursor_goto_first_child(&w->cursor))
        return;
    do {
        switch (kind_of(ts_tree_cursor_current_node(&w->cursor))) {
        case N_BLOCK:
        case N_ELSE:
            visit_children_as(w, guard);
            break;
        case N_EXCEPT:
        case N_EXCEPT_GROUP:
            visit_children_as(w, GUARD_CONDITION);
            break;
        default:
            visit_children_as(w, 0); /* finally runs in any case */
            break;
        }
    } while (ts_tree_cursor_goto_next_sibling(&w->cursor));
    (void)ts_tree_cursor_goto_parent(&w->cursor);
}

/* ---- Assignments ---- */

static void bind(struct walk *w, str name, TSNode value)
{
    const size_t count = w->r.bindings.count;
    if (w->r.class_name.p)
        name = str_format(w->r.a, "%.*s.%.*s", STR_ARG(w->r.class_name), STR_ARG(name));
    struct binding *binding = binding_entry(&w->r, name, w->function, &w->well);
    if (!binding)
        return;
    /* A second value under a condition leaves both possible; a plain one replaces the first. The only value inside a try is the one
     * that counts when it comes to be used. */
    const bool is_new = w->r.bindings.count > count;
    binding->value = value;
    binding->scope = w->function;
    binding->known = !is_absent(value) && (w->guard & (GUARD_CONDITION | (is_new ? 0u : GUARD_TRY))) == 0;
}

/* a, b = 1, 2 */
static void bind_each(struct walk *w, TSNode names, TSNode values)
{
    const enum node_kind kind = kind_of(values);
    const bool matches =
        (kind == N_EXPRESSION_LIST || kind == N_TUPLE) && named_count(values) == named_count(names);
    for (size_t i = 0; i < named_count(names) && i < 64; i++)
        if (kind_of(named_child(names, i)) == N_IDENTIFIER)
            bind(w, text_of(&w->r, named_child(names, i)), matches ? named_child(values, i) : (TSNode){0});
}

static void add_setting(struct walk *w, TSNode node, str name, str value, bool whole, bool is_default)
{
    struct env_setting_list *list = &w->r.m->environment;
    if (!arena_room(w->r.a, list)) {
        w->well = false;
        return;
    }
    list->items[list->count++] =
        (struct env_setting){.name = str_utf8(w->r.a, name),
                             .value = whole ? str_utf8(w->r.a, value) : (str){NULL, 0},
                             .place = place_of(&w->r, node),
                             .guard = w->guard,
                             .function = w->outer_name,
                             .is_default = is_default};
    (void)add_event(w, EVENT_ENV, list->count - 1);
}

static void take_assignment(struct walk *w, TSNode node)
{
    const TSNode left = field(node, "left"), right = field(node, "right");
    bool key_whole, value_whole;
    if (kind_of(left) == N_IDENTIFIER && !is_absent(right)) {
        bind(w, text_of(&w->r, left), right);
    } else if (kind_of(left) == N_SUBSCRIPT && !is_absent(right)) {
        const str owner = dotted_name(&w->r, field(left, "value"));
        const str key = constant_text(&w->r, field(left, "subscript"), w->function, &key_whole);
        const str value = constant_text(&w->r, right, w->function, &value_whole);
        if (!key_whole)
            return;
        if (str_eq(owner, S("os.environ"))) {
            add_setting(w, node, key, value, value_whole, false);
        } else if (owner.p && w->r.env_updates.count < UPDATES_MOST) {
            if (!arena_room(w->r.a, &w->r.env_updates))
                w->well = false;
            else
                w->r.env_updates.items[w->r.env_updates.count++] =
                    (struct env_update){owner, key, value_whole ? value : (str){NULL, 0}};
        }
    } else if (kind_of(left) == N_PATTERN_LIST || kind_of(left) == N_TUPLE_PATTERN) {
        bind_each(w, left, right);
    } else if (kind_of(left) == N_IDENTIFIER) {
        bind(w, text_of(&w->r, left), (TSNode){0}); /* x: int */
    }
}

/* ---- Environments of children ---- */

static void add_env(struct walk *w, struct install_call *call, str name, str value)
{
    for (size_t i = 0; i < call->env_count; i++)
        if (str_eq(call->env[i].name, name)) {
            call->env[i].value = value;
            return;
        }
    if (!arena_room_for(w->r.a, (void *)&call->env, call->env_count, &call->env_capacity, sizeof *call->env,
                        1)) {
        w->well = false;
        return;
    }
    call->env[call->env_count++] = (struct env_entry){name, value};
}

static bool is_environ(const struct reading *r, TSNode node)
{
    node = unparenthesized(node);
    if (str_eq(dotted_name(r, node), S("os.environ")))
        return true;
    if (kind_of(node) != N_CALL)
        return false;
    const str callee = dotted_name(r, field(node, "function"));
    const TSNode arguments = field(node, "arguments");
    if (str_eq(callee, S("os.environ.copy")))
        return true;
    if (!str_eq(callee, S("dict")) && !str_eq(callee, S("copy.copy")) && !str_eq(callee, S("copy.deepcopy")))
        return false;
    const TSNode first = positional(arguments, 0);
    return !is_absent(first) && str_eq(dotted_name(r, first), S("os.environ"));
}

static void take_env(struct walk *w, struct install_call *call, TSNode node, size_t function, unsigned depth);

static void take_env_dictionary(struct walk *w, struct install_call *call, TSNode node, size_t function,
                                unsigned depth)
{
    call->env_kind = ENV_REPLACED;
    for (size_t i = 0; i < named_count(node); i++) {
        const TSNode child = named_child(node, i);
        bool key_whole, value_whole;
        if (kind_of(child) == N_DICTIONARY_SPLAT) {
            struct install_call inner = {0};
            const TSNode spread = named_child(child, 0);
            if (is_environ(&w->r, spread)) {
                call->env_kind = ENV_EXTENDED;
                continue;
            }
            take_env(w, &inner, spread, function, depth + 1);
            if (inner.env_kind != ENV_REPLACED)
                call->env_kind = inner.env_kind == ENV_EXTENDED ? ENV_EXTENDED : ENV_UNKNOWN;
            for (size_t e = 0; e < inner.env_count; e++)
                add_env(w, call, inner.env[e].name, inner.env[e].value);
        } else if (kind_of(child) == N_PAIR) {
            const str key = constant_text(&w->r, field(child, "key"), function, &key_whole);
            const str value = constant_text(&w->r, field(child, "value"), function, &value_whole);
            if (key_whole)
                add_env(w, call, key, value_whole ? value : (str){NULL, 0});
        }
    }
}

static void take_env_keywords(struct walk *w, struct install_call *call, TSNode arguments, size_t function)
{
    for (size_t i = 0; i < named_count(arguments); i++) {
        const TSNode child = named_child(arguments, i);
        bool whole;
        if (kind_of(child) != N_KEYWORD)
            continue;
        const str value = constant_text(&w->r, field(child, "value"), function, &whole);
        add_env(w, call, text_of(&w->r, field(child, "name")), whole ? value : (str){NULL, 0});
    }
}

static void take_env(struct walk *w, struct install_call *call, TSNode node, size_t function, unsigned depth)
{
    node = unparenthesized(node);
    const enum node_kind kind = kind_of(node);
    call->env_kind = ENV_UNKNOWN;
    if (depth > 16)
        return;
    if (kind == N_NONE || str_eq(dotted_name(&w->r, node), S("os.environ"))) {
        call->env_kind = ENV_INHERITED;
    } else if (kind == N_DICTIONARY) {
        take_env_dictionary(w, call, node, function, depth);
    } else if (kind == N_CALL && is_environ(&w->r, node)) {
        call->env_kind = ENV_EXTENDED;
        take_env_keywords(w, call, field(node, "arguments"), function);
    } else if (kind == N_CALL && str_eq(dotted_name(&w->r, field(node, "function")), S("dict"))) {
        call->env_kind = ENV_REPLACED;
        take_env_keywords(w, call, field(node, "arguments"), function);
    } else if (kind == N_BINARY && str_eq(text_of(&w->r, field(node, "operator")), S("|"))) {
        struct install_call right = {0};
        take_env(w, call, field(node, "left"), function, depth + 1);
        take_env(w, &right, field(node, "right"), function, depth + 1);
        for (size_t i = 0; i < right.env_count; i++)
            add_env(w, call, right.env[i].name, right.env[i].value);
        if (call->env_kind == ENV_INHERITED || right.env_kind == ENV_INHERITED ||
            right.env_kind == ENV_EXTENDED)
            call->env_kind = ENV_EXTENDED;
    } else if (kind == N_IDENTIFIER) {
        const str name = text_of(&w->r, node);
        const struct binding *b = binding_find(&w->r, name, function);
        if (b && !is_absent(b->value))
            take_env(w, call, b->value, b->scope, depth + 1);
        for (size_t i = 0; i < w->r.env_updates.count; i++)
            if (str_eq(w->r.env_updates.items[i].name, name))
                add_env(w, call, w->r.env_updates.items[i].key, w->r.env_updates.items[i].value);
    }
}

/* ---- Start-up installs ---- */

enum callee_kind { CALLEE_NONE, CALLEE_SHELL, CALLEE_ARGV, CALLEE_PIP };

static const struct {
    str name;
    enum callee_kind kind;
    bool checks; /* raises when the command fails */
} CALLEES[] = {
    {S_INIT("os.system"), CALLEE_SHELL, false},
    {S_INIT("os.popen"), CALLEE_SHELL, false},
    {S_INIT("subprocess.getoutput"), CALLEE_SHELL, false},
    {S_INIT("subprocess.getstatusoutput"), CALLEE_SHELL, false},
    {S_INIT("subprocess.run"), CALLEE_ARGV, false},
    {S_INIT("subprocess.call"), CALLEE_ARGV, false},
    {S_INIT("subprocess.check_call"), CALLEE_ARGV, true},
    {S_INIT("subprocess.check_output"), CALLEE_ARGV, true},
    {S_INIT("subprocess.Popen"), CALLEE_ARGV, false},
    {S_INIT("pip.main"), CALLEE_PIP, false},
    {S_INIT("pip._internal.main"), CALLEE_PIP, false},
    {S_INIT("pip._internal.cli.main.main"), CALLEE_PIP, false},
};

/* Whether the source looks at what a name holds: NAME.returncode, NAME.check_returncode(), if NAME, NAME != 0 ... */
static bool looks_at(const struct reading *r, TSNode call, str name)
{
    enum { BEHIND = 16 << 10 }; /* bytes after the call in which a look is expected */
    static const char *const FORMS[] = {
        "%.*s.returncode", "%.*s.check_returncode", "if %.*s",    "%.*s != 0", "%.*s == 0", "not %.*s",
        "%.*s.wait",       "%.*s.communicate",      "assert %.*s"};
    const size_t end = ts_node_end_byte(call);
    const str near = str_slice(r->parsed, end, end + BEHIND);
    for (size_t i = 0; i < COUNT(FORMS); i++) {
        const char *slot = strstr(FORMS[i], "%.*s");
        const str text =
            str_format(r->a, "%.*s%.*s%s", (int)(slot - FORMS[i]), FORMS[i], STR_ARG(name), slot + 4);
        if (str_contains(near, text))
            return true;
    }
    return false;
}

static bool result_is_used(struct walk *w, TSNode call)
{
    TSNode node = ts_node_parent(call);
    for (unsigned depth = 0; depth < 8 && !is_absent(node); depth++, node = ts_node_parent(node)) {
        switch (kind_of(node)) {
        case N_EXPRESSION_STATEMENT:
            return false;
        case N_ASSIGNMENT:
            return kind_of(field(node, "left")) == N_IDENTIFIER
                       ? looks_at(&w->r, call, text_of(&w->r, field(node, "left")))
                       : true;
        case N_IF:
        case N_ELIF:
        case N_WHILE:
        case N_ASSERT:
        case N_COMPARISON:
        case N_NOT:
        case N_RETURN:
        case N_CONDITIONAL:
            return true;
        case N_ATTRIBUTE: { /* subprocess.run(...).check_returncode() */
            const str name = text_of(&w->r, field(node, "attribute"));
            if (str_eq(name, S("check_returncode")) || str_eq(name, S("returncode")))
                return true;
            break;
        }
        case N_MODULE:
        case N_BLOCK:
            return false;
        default:
            break;
        }
    }
    return false;
}

static str words_text(struct walk *w, const struct strs *words)
{
    struct buf b = {.a = w->r.a};
    for (size_t i = 0; i < words->count; i++) {
        const bool quote = str_find_char(words->items[i], ' ') != SIZE_MAX;
        buf_format(&b, "%s%s%.*s%s", i ? " " : "", quote ? "'" : "", STR_ARG(words->items[i]),
                   quote ? "'" : "");
    }
    return buf_str(&b);
}

/* shlex.split("..."), "...".split(): the argument; absent when the node is neither. */
static TSNode split_argument(const struct reading *r, TSNode node)
{
    node = unparenthesized(node);
    if (kind_of(node) != N_CALL)
        return (TSNode){0};
    const TSNode callee = field(node, "function");
    if (str_eq(dotted_name(r, callee), S("shlex.split")))
        return positional(field(node, "arguments"), 0);
    if (kind_of(callee) == N_ATTRIBUTE && str_eq(text_of(r, field(callee, "attribute")), S("split")) &&
        named_count(field(node, "arguments")) == 0)
        return field(callee, "object");
    return (TSNode){0};
}

static bool has_install(const struct install_command_list *commands)
{
    for (size_t i = 0; i < commands->count; i++)
        if (commands->items[i].kind != INSTALL_OTHER)
            return true;
    return false;
}

/* Reads the command of a call into call->commands and call->command. */
static void take_command(struct walk *w, struct install_call *call, enum callee_kind kind, TSNode command,
                         str directory)
{
    struct strs words = {0};
    struct env_entry *env = NULL;
    size_t env_count = 0;
    bool whole;
    const TSNode inner = split_argument(&w->r, command);
    if (kind == CALLEE_PIP) {
        struct strs all = {0};
        w->well = strs_add(w->r.a, &all, S("pip")) && w->well;
        if (constant_words(&w->r, command, w->function, &words))
            for (size_t i = 0; i < words.count; i++)
                w->well = strs_add(w->r.a, &all, words.items[i]) && w->well;
        call->command = words_text(w, &all);
        w->well = argv_command(w->r.a, &all, directory, &call->commands) && w->well;
        return;
    }
    if (is_absent(inner) && constant_words(&w->r, command, w->function, &words)) {
        call->command = words_text(w, &words);
        /* ["bash", "-c", "line"] is a shell line too */
        if (words.count >= 3 &&
            (str_eq(path_base(words.items[0]), S("bash")) || str_eq(path_base(words.items[0]), S("sh"))) &&
            str_ends(words.items[1], S("c")) && str_starts(words.items[1], S("-"))) {
            w->well = shell_commands(w->r.a, words.items[2], directory, &call->commands, &env, &env_count) &&
                      w->well;
        } else {
            w->well = argv_command(w->r.a, &words, directory, &call->commands) && w->well;
        }
    } else {
        call->command = constant_text(&w->r, is_absent(inner) ? command : inner, w->function, &whole);
        w->well =
            shell_commands(w->r.a, call->command, directory, &call->commands, &env, &env_count) && w->well;
    }
    for (size_t i = 0; i < env_count; i++)
        add_env(w, call, env[i].name, env[i].value);
    if (env_count > 0 && call->env_kind == ENV_INHERITED)
        call->env_kind = ENV_EXTENDED;
}

static bool mentions(const struct reading *r, TSNode node, str name)
{
    str text = text_of(r, node);
    for (size_t at = str_find(text, name); name.n > 0 && at != SIZE_MAX; at = str_find(text, name)) {
        const bool begins = at == 0 || !(isalnum((unsigned char)text.p[at - 1]) || text.p[at - 1] == '_');
        text = str_from_index(text, at + name.n);
        if (begins && !(text.n > 0 && (isalnum((unsigned char)text.p[0]) || text.p[0] == '_')))
            return true;
    }
    return false;
}

/* The name of a parameter: x, x: int, x=1, *x. */
static TSNode parameter_name(TSNode parameter)
{
    const TSNode name = field(parameter, "name");
    if (!is_absent(name))
        return name;
    return kind_of(parameter) != N_IDENTIFIER && named_count(parameter) > 0 ? named_child(parameter, 0)
                                                                            : parameter;
}

static bool mentions_parameter(struct walk *w, TSNode node)
{
    for (size_t i = 0; !is_absent(w->parameters) && i < named_count(w->parameters) && i < 64; i++)
        if (mentions(&w->r, node, text_of(&w->r, parameter_name(named_child(w->parameters, i)))))
            return true;
    return false;
}

/* The command, once for each value of the loop's name when it is one over constants. */
static void take_commands(struct walk *w, struct install_call *call, enum callee_kind kind, TSNode command,
                          str directory)
{
    struct binding *b = is_absent(w->loop_items) || !mentions(&w->r, command, w->loop_name)
                            ? NULL
                            : binding_entry(&w->r, w->loop_name, w->function, &w->well);
    if (!b) {
        take_command(w, call, kind, command, directory);
        return;
    }
    str first = {NULL, 0};
    for (size_t i = 0; i < named_count(w->loop_items) && i < LOOP_MOST; i++) {
        const TSNode item = named_child(w->loop_items, i);
        if (kind_of(item) == N_COMMENT)
            continue;
        *b = (struct binding){w->loop_name, w->function, item, w->function, true};
        take_command(w, call, kind, command, directory);
        first = first.p ? first : call->command;
    }
    call->command = first.p ? first : call->command;
    b->known = false;
}

/* The install at `node`, with its command and flags read in the scope of its function. Its event is left to the caller. */
static bool read_install(struct walk *w, TSNode node, size_t callee)
{
    const TSNode arguments = field(node, "arguments");
    TSNode command = positional(arguments, 0);
    if (is_absent(command))
        command = keyword(&w->r, arguments, "args");
    if (is_absent(command) || w->r.m->installs.count >= INSTALLS_MOST)
        return false;
    struct install_call call = {
        .text = folded_text(&w->r, node),
        .callee = CALLEES[callee].name,
        .place = place_of(&w->r, node),
        .guard = w->guard,
        .function = w->outer_name,
        .in_gpu_call = w->gpu != SIZE_MAX,
        .shell = CALLEES[callee].kind == CALLEE_SHELL ||
                 constant_truth(&w->r, keyword(&w->r, arguments, "shell"), w->function) == 1};
    bool whole;
    const TSNode cwd = keyword(&w->r, arguments, "cwd"), env = keyword(&w->r, arguments, "env");
    const str directory = is_absent(cwd) ? (str){NULL, 0} : constant_text(&w->r, cwd, w->function, &whole);
    if (!is_absent(env))
        take_env(w, &call, env, w->function, 0);
    take_commands(w, &call, CALLEES[callee].kind, command, directory);
    if (!has_install(&call.commands))
        return false;
    call.command = str_utf8(w->r.a, call.command);
    call.checked = CALLEES[callee].checks ||
                   constant_truth(&w->r, keyword(&w->r, arguments, "check"), w->function) == 1 ||
                   result_is_used(w, node);
    struct install_call_list *list = &w->r.m->installs;
    if (!arena_room(w->r.a, list)) {
        w->well = false;
        return false;
    }
    list->items[list->count++] = call;
    if (w->function != SIZE_MAX)
        w->r.m->functions.items[w->function].installs = true;
    return true;
}

static void take_install(struct walk *w, TSNode node, size_t callee)
{
    if (w->function != SIZE_MAX && w->wrappers.count < WRAPPERS_MOST &&
        mentions_parameter(w, field(node, "arguments"))) {
        if (arena_room(w->r.a, &w->wrappers))
            w->wrappers.items[w->wrappers.count++] = (struct wrapper){.node = node,
                                                                      .parameters = w->parameters,
                                                                      .callee = callee,
                                                                      .function = w->function,
                                                                      .gpu = w->gpu,
                                                                      .event = w->r.m->events.count,
                                                                      .guard = w->guard,
                                                                      .outer_name = w->outer_name};
        else
            w->well = false;
    } else if (read_install(w, node, callee)) {
        (void)add_event(w, EVENT_INSTALL, w->r.m->installs.count - 1);
    }
}

static void remember_call(struct walk *w, TSNode arguments, str name)
{
    if (w->named_calls.count >= NAMED_CALLS_MOST || named_count(arguments) == 0)
        return;
    if (!arena_room(w->r.a, &w->named_calls)) {
        w->well = false;
        return;
    }
    w->named_calls.items[w->named_calls.count++] =
        (struct named_call){arguments, name, w->function, w->r.m->events.count, w->guard};
}

/* What the parameters of a wrapper are in this call of it. */
static void bind_parameters(struct walk *w, const struct wrapper *wrapper, const struct named_call *call)
{
    size_t position = 0;
    for (size_t i = 0; i < named_count(wrapper->parameters) && i < 64; i++) {
        const TSNode parameter = named_child(wrapper->parameters, i);
        const str name = text_of(&w->r, parameter_name(parameter));
        const TSNode otherwise = field(parameter, "value");
        TSNode value = keyword(&w->r, call->arguments, str_c(w->r.a, name));
        if (kind_of(parameter) == N_COMMENT || (position == 0 && str_eq(name, S("self"))))
            continue;
        if (is_absent(value))
            value = positional(call->arguments, position);
        position++;
        struct binding *b = binding_entry(&w->r, name, wrapper->function, &w->well);
        if (b)
            *b = (struct binding){name, wrapper->function, is_absent(value) ? otherwise : value,
                                  is_absent(value) ? wrapper->function : call->function,
                                  !is_absent(value) || !is_absent(otherwise)};
    }
}

static void add_late(struct walk *w, struct event event, size_t before)
{
    if (!arena_room(w->r.a, &w->late))
        w->well = false;
    else
        w->late.items[w->late.count++] = (struct late_event){event, before};
}

/* Once all is walked: each wrapper for each of its calls; by itself when this module never calls it. */
static void read_wrappers(struct walk *w)
{
    for (size_t i = 0; i < w->wrappers.count && w->well; i++) {
        struct wrapper *wrapper = &w->wrappers.items[i];
        const str name = w->r.m->functions.items[wrapper->function].name;
        w->function = wrapper->function;
        w->gpu = wrapper->gpu;
        w->guard = wrapper->guard;
        w->outer_name = wrapper->outer_name;
        w->loop_items = (TSNode){0};
        for (size_t c = 0; c < w->named_calls.count; c++) {
            const struct named_call *call = &w->named_calls.items[c];
            if (!str_eq(call->name, name) || call->function == wrapper->function)
                continue;
            wrapper->used = true;
            bind_parameters(w, wrapper, call);
            if (read_install(w, wrapper->node, wrapper->callee))
                add_late(
                    w, (struct event){EVENT_INSTALL, w->r.m->installs.count - 1, call->function, call->guard},
                    call->event);
        }
        if (!wrapper->used && read_install(w, wrapper->node, wrapper->callee))
            add_late(w, (struct event){EVENT_INSTALL, w->r.m->installs.count - 1, w->function, w->guard},
                     wrapper->event);
    }
}

static int by_event(const void *left, const void *right)
{
    const struct late_event *l = left, *r = right;
    if (l->before != r->before)
        return l->before < r->before ? -1 : 1;
    return (l->event.index > r->event.index) - (l->event.index < r->event.index);
}

/* The late events, each at the place where it happens. */
static void place_late_events(struct walk *w)
{
    struct event_list *events = &w->r.m->events;
    const size_t count = events->count + w->late.count;
    struct event *all = w->late.count ? arena_array(w->r.a, struct event, count) : NULL;
    if (!all) {
        w->well = w->well && w->late.count == 0;
        return;
    }
    qsort(w->late.items, w->late.count, sizeof *w->late.items, by_event);
    size_t n = 0, late = 0;
    for (size_t i = 0; i <= events->count; i++) {
        while (late < w->late.count && w->late.items[late].before <= i)
            all[n++] = w->late.items[late++].event;
        if (i < events->count)
            all[n++] = events->items[i];
    }
    *events = (struct event_list){all, n, count};
}

/* ---- Calls ---- */

static const char *const EVENT_METHODS[] = {
    "click",   "submit", "change", "upload", "then",   "success", "failure", "select",      "input",
    "release", "load",   "clear",  "tick",   "blur",   "focus",   "edit",    "play",        "stop",
    "like",    "delete", "stream", "key_up", "render", "retry",   "undo",    "double_click"};

static bool one_of(str text, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(text, str_from(names[i])))
            return true;
    return false;
}

/* The function that an event call binds: its first argument or fn=. */
static TSNode bound_function(struct walk *w, TSNode call)
{
    static const char *const MAKERS[] = {"Interface", "ChatInterface", "on", "Examples", "api", "load"};
    const TSNode callee = field(call, "function"), arguments = field(call, "arguments");
    if (kind_of(callee) != N_ATTRIBUTE)
        return (TSNode){0};
    const str method = text_of(&w->r, field(callee, "attribute"));
    const str name = dotted_name(&w->r, callee);
    const TSNode fn = keyword(&w->r, arguments, "fn");
    if (str_starts(name, S("gradio.")) && one_of(method, MAKERS, COUNT(MAKERS)))
        return is_absent(fn) && (str_eq(method, S("Interface")) || str_eq(method, S("ChatInterface")) ||
                                 str_eq(method, S("api")))
                   ? positional(arguments, 0)
                   : fn;
    if (!one_of(method, EVENT_METHODS, COUNT(EVENT_METHODS)))
        return (TSNode){0};
    return is_absent(fn) ? positional(arguments, 0) : fn;
}

static void add_chain(struct walk *w, TSNode node, str first, str second)
{
    struct chain_list *list = &w->r.m->chains;
    if (!first.p || !second.p || str_eq(first, second))
        return;
    if (!arena_room(w->r.a, list)) {
        w->well = false;
        return;
    }
    list->items[list->count++] =
        (struct chain){first, second, place_of(&w->r, node), folded_text(&w->r, node)};
}

static void take_handler(struct walk *w, TSNode node)
{
    const TSNode fn = bound_function(w, node);
    if (is_absent(fn) || (kind_of(fn) != N_IDENTIFIER && kind_of(fn) != N_ATTRIBUTE))
        return;
    add_note(w, NOTE_HANDLER, node, text_of(&w->r, fn));
    /* .click(f).then(g): the object of `then` is the call that binds f */
    const TSNode callee = field(node, "function");
    const str method = text_of(&w->r, field(callee, "attribute"));
    const TSNode before = unparenthesized(field(callee, "object"));
    if ((str_eq(method, S("then")) || str_eq(method, S("success"))) && kind_of(before) == N_CALL) {
        const TSNode earlier = bound_function(w, before);
        if (kind_of(earlier) == N_IDENTIFIER)
            add_chain(w, node, text_of(&w->r, earlier), text_of(&w->r, fn));
    }
}

static bool mentions_cuda(str text) { return str_eq(text, S("cuda")) || str_starts(text, S("cuda:")); }

/* "cuda:0" and the like, from any constant argument. */
static void take_device_arguments(struct walk *w, TSNode node, TSNode arguments, str callee)
{
    bool cuda = str_ends(callee, S(".cuda"));
    for (size_t i = 0; i < named_count(arguments); i++) {
        TSNode child = named_child(arguments, i);
        str key = {NULL, 0};
        bool whole = false;
        if (kind_of(child) == N_KEYWORD) {
            key = text_of(&w->r, field(child, "name"));
            child = field(child, "value");
        }
        if (str_eq(key, S("device_map")) && kind_of(child) == N_DICTIONARY) {
            add_note(w, NOTE_CUDA_INDEX, node, folded_text(&w->r, child));
            continue;
        }
        if (str_eq(key, S("device")) && kind_of(child) == N_INTEGER)
            add_note(w, NOTE_CUDA_INDEX, node,
                     str_format(w->r.a, "device=%.*s", STR_ARG(text_of(&w->r, child))));
        if (kind_of(child) != N_STRING && kind_of(child) != N_IDENTIFIER)
            continue;
        const str text = constant_text(&w->r, child, w->function, &whole);
        uint64_t index;
        if (whole && str_starts(text, S("cuda:")) && str_to_u64(str_from_index(text, 5), &index))
            add_note(w, NOTE_CUDA_INDEX, node, text);
        cuda = cuda ||
               (whole && mentions_cuda(text) && (str_ends(callee, S(".to")) || str_eq(key, S("device"))));
    }
    if (cuda && w->function == SIZE_MAX)
        add_note(w, NOTE_CUDA_AT_IMPORT, node, folded_text(&w->r, node));
}

static bool is_output_path(str path)
{
    static const char *const ENDS[] = {".glb", ".gltf", ".obj",  ".ply",  ".stl", ".splat", ".usdz", ".fbx",
                                       ".png", ".jpg",  ".jpeg", ".webp", ".gif", ".mp4",   ".webm", ".wav",
                                       ".mp3", ".npz",  ".npy",  ".zip",  ".txt", ".json",  ".csv",  ".pt"};
    if (path.n < 5 || str_find_char(path, '?') != SIZE_MAX || str_find_char(path, ' ') != SIZE_MAX ||
        str_contains(path, S("://")) || str_find_char(path, '\n') != SIZE_MAX)
        return false;
    for (size_t i = 0; i < COUNT(ENDS); i++)
        if (str_ends(path, str_from(ENDS[i])))
            return true;
    return false;
}

static void take_written_path(struct walk *w, TSNode node, TSNode arguments, str callee)
{
    static const char *const WRITERS[] = {"export",      "save",
                                          "write",       "write_glb",
                                          "imwrite",     "save_ply",
                                          "save_obj",    "save_glb",
                                          "export_mesh", "to_file",
                                          "mimsave",     "imsave",
                                          "mimwrite",    "write_videofile",
                                          "savez",       "to_glb",
                                          "dump",        "write_triangle_mesh",
                                          "write_video", "save_image"};
    const size_t dot = str_rfind_char(callee, '.');
    const str method = dot == SIZE_MAX ? callee : str_from_index(callee, dot + 1);
    bool whole = false;
    if (w->function == SIZE_MAX)
        return;
    if (str_eq(callee, S("open"))) {
        const TSNode mode = positional(arguments, 1);
        const str how = is_absent(mode) ? S("r") : constant_text(&w->r, mode, w->function, &whole);
        if (str_find_char(how, 'w') == SIZE_MAX && str_find_char(how, 'a') == SIZE_MAX)
            return;
    } else if (!one_of(method, WRITERS, COUNT(WRITERS))) {
        return;
    }
    for (size_t i = 0; i < named_count(arguments) && i < 4; i++) {
        TSNode child = named_child(arguments, i);
        if (kind_of(child) == N_KEYWORD)
            child = field(child, "value");
        const enum node_kind kind = kind_of(child);
        if (kind != N_STRING && kind != N_IDENTIFIER && kind != N_BINARY && kind != N_CALL)
            continue;
        const str path = constant_text(&w->r, child, w->function, &whole);
        if (whole && is_output_path(path))
            add_note(w, NOTE_FIXED_OUTPUT, node, path);
    }
}

static void take_process(struct walk *w, TSNode node, str callee)
{
    static const char *const STARTERS[] = {"os.system",
                                           "os.popen",
                                           "os.fork",
                                           "os.spawnl",
                                           "multiprocessing.Process",
                                           "multiprocessing.Pool",
                                           "torch.multiprocessing.spawn",
                                           "concurrent.futures.ProcessPoolExecutor",
                                           "subprocess.run",
                                           "subprocess.call",
                                           "subprocess.check_call",
                                           "subprocess.check_output",
                                           "subprocess.Popen"};
    if (w->function == SIZE_MAX || !one_of(callee, STARTERS, COUNT(STARTERS)))
        return;
    struct py_function *function = &w->r.m->functions.items[w->function];
    if (!function->starts_process)
        function->process_place = place_of(&w->r, node);
    function->starts_process = true;
    if (w->gpu != SIZE_MAX)
        add_note(w, NOTE_CHILD_PROCESS, node, callee);
}

static void take_named_call(struct walk *w, TSNode node, TSNode arguments, str callee)
{
    static const char *const CUDA_STARTERS[] = {"torch.cuda.init",           "torch.cuda.set_device",
                                                "torch.cuda.current_device", "torch.cuda.synchronize",
                                                "torch.cuda.mem_get_info",   "torch.cuda.empty_cache",
                                                "numba.cuda.select_device",  "cupy.cuda.Device"};
    bool whole = false;
    if (w->function == SIZE_MAX && one_of(callee, CUDA_STARTERS, COUNT(CUDA_STARTERS)))
        add_note(w, NOTE_CUDA_AT_IMPORT, node, callee);
    if (str_eq(callee, S("torch.compile")))
        add_note(w, NOTE_TORCH_COMPILE, node, callee);
    if (str_eq(callee, S("torch.load")) && is_absent(keyword(&w->r, arguments, "weights_only")))
        add_note(w, NOTE_TORCH_LOAD, node, callee);
    if (str_ends(callee, S(".launch")) && !str_contains(callee, S("subprocess")))
        add_note(w, NOTE_LAUNCH, node, callee);
    if (str_ends(callee, S(".from_pretrained")) || str_ends(callee, S(".load_model")) ||
        str_eq(callee, S("load_model")))
        add_note(w, NOTE_PIPELINE_STAGE, node, callee);
    if (str_eq(callee, S("ctypes.CDLL")) || str_eq(callee, S("ctypes.cdll.LoadLibrary")))
        add_note(w, NOTE_PRELOAD, node, constant_text(&w->r, positional(arguments, 0), w->function, &whole));
    if (str_ends(callee, S("set_attention_backend")))
        add_note(w, NOTE_ATTENTION, node,
                 constant_text(&w->r, positional(arguments, 0), w->function, &whole));
    const TSNode attention = keyword(&w->r, arguments, "attn_implementation");
    if (!is_absent(attention))
        add_note(w, NOTE_ATTENTION, node, constant_text(&w->r, attention, w->function, &whole));
    if (constant_truth(&w->r, keyword(&w->r, arguments, "cache_examples"), w->function) == 1) {
        const TSNode mode = keyword(&w->r, arguments, "cache_mode");
        if (is_absent(mode) || !str_eq(constant_text(&w->r, mode, w->function, &whole), S("lazy")))
            add_note(w, NOTE_EAGER_EXAMPLES, node, S("cache_examples=True"));
    }
    if (str_eq(callee, S("sys.path.insert")) || str_eq(callee, S("sys.path.append"))) {
        const str folder = constant_text(&w->r, positional(arguments, str_ends(callee, S("insert")) ? 1 : 0),
                                         w->function, &whole);
        if (whole) {
            add_note(w, NOTE_SYS_PATH, node, folder);
            w->well = strs_add(w->r.a, &w->r.m->paths_added, folder) && w->well;
        }
    }
    if (str_eq(callee, S("os.environ.setdefault")) || str_eq(callee, S("os.putenv"))) {
        bool key_whole;
        const str key = constant_text(&w->r, positional(arguments, 0), w->function, &key_whole);
        const str value = constant_text(&w->r, positional(arguments, 1), w->function, &whole);
        if (key_whole)
            add_setting(w, node, key, value, whole, str_ends(callee, S("setdefault")));
    }
    if (str_eq(callee, S("os.environ.update"))) {
        struct install_call env = {0};
        take_env(w, &env, positional(arguments, 0), w->function, 0);
        take_env_keywords(w, &env, arguments, w->function);
        for (size_t i = 0; i < env.env_count; i++)
            add_setting(w, node, env.env[i].name, env.env[i].value, env.env[i].value.p != NULL, false);
    }
    if (str_eq(callee, S("torch.cuda.empty_cache")) && w->function != SIZE_MAX)
        w->r.m->functions.items[w->function].empties_cache = true;
}

/* ---- GPU functions ---- */

static struct gpu_record *add_gpu(struct walk *w, str name, TSNode definition, TSNode decorator)
{
    static _Thread_local struct gpu_record lost;
    struct gpu_record_list *list = &w->r.m->gpu;
    if (list->count >= GPU_MOST || !arena_room(w->r.a, list)) {
        w->well = w->well && list->count >= GPU_MOST;
        return &lost;
    }
    list->items[list->count] = (struct gpu_record){.gpu = {.name = name,
                                                           .place = place_of(&w->r, definition),
                                                           .decorator = place_of(&w->r, decorator),
                                                           .duration = 60},
                                                   .function = SIZE_MAX};
    return &list->items[list->count++];
}

static bool is_callable(const struct reading *r, TSNode node, size_t function)
{
    node = unparenthesized(node);
    if (kind_of(node) == N_LAMBDA)
        return true;
    if (kind_of(node) != N_IDENTIFIER)
        return false;
    const str name = text_of(r, node);
    for (size_t i = 0; i < r->m->functions.count; i++)
        if (str_eq(r->m->functions.items[i].name, name))
            return true;
    const struct binding *b = binding_find(r, name, function);
    if (b && kind_of(unparenthesized(b->value)) == N_LAMBDA)
        return true;
    return !b && alias_is_known(r, name); /* imported: a function far more often than a number */
}

static void take_gpu_arguments(struct walk *w, struct gpu_function *gpu, TSNode arguments)
{
    bool whole = false;
    TSNode duration = keyword(&w->r, arguments, "duration");
    const TSNode size = keyword(&w->r, arguments, "size");
    double seconds = 0;
    if (is_absent(duration)) {
        const TSNode first = positional(arguments, 0); /* spaces.GPU(120) */
        if (!is_absent(first) && constant_number(&w->r, first, w->function, &seconds))
            duration = first;
    }
    if (!is_absent(size)) {
        const str text = constant_text(&w->r, size, w->function, &whole);
        gpu->size = whole ? text : (str){NULL, 0};
        if (str_eq(gpu->size, S("xlarge")))
            add_note(w, NOTE_XLARGE, size, text);
    }
    if (is_absent(duration))
        return;
    gpu->duration_text = folded_text(&w->r, duration);
    if (constant_number(&w->r, duration, w->function, &seconds)) {
        gpu->duration_kind = DURATION_SECONDS;
        gpu->duration = seconds;
    } else if (kind_of(duration) == N_NONE) {
        gpu->duration_kind = DURATION_DEFAULT;
    } else {
        gpu->duration_kind = is_callable(&w->r, duration, w->function) ? DURATION_DYNAMIC : DURATION_UNKNOWN;
    }
}

static bool is_gpu_name(str name)
{
    return str_eq(name, S("spaces.GPU")) || str_eq(name, S("spaces.zero.GPU"));
}

/* The arguments of spaces.GPU(...) when the node is that call; *bare is set for spaces.GPU itself. */
static bool is_gpu_decorator(struct walk *w, TSNode node, TSNode *arguments)
{
    node = unparenthesized(node);
    *arguments = (TSNode){0};
    if (kind_of(node) == N_CALL) {
        if (!is_gpu_name(dotted_name(&w->r, field(node, "function"))))
            return false;
        *arguments = field(node, "arguments");
        return true;
    }
    if (kind_of(node) == N_IDENTIFIER) { /* gpu = spaces.GPU(duration=90); @gpu */
        const struct binding *b = binding_find(&w->r, text_of(&w->r, node), w->function);
        if (b && b->known && kind_of(unparenthesized(b->value)) != N_IDENTIFIER &&
            is_gpu_decorator(w, b->value, arguments))
            return true;
    }
    return is_gpu_name(dotted_name(&w->r, node));
}

/* spaces.GPU(f), spaces.GPU(duration=90)(f): wraps a function that has a name. */
static void take_gpu_call(struct walk *w, TSNode node)
{
    const TSNode callee = field(node, "function"), arguments = field(node, "arguments");
    TSNode options = {0}, inner;
    const TSNode wrapped = positional(arguments, 0);
    if (kind_of(unparenthesized(callee)) == N_CALL && is_gpu_decorator(w, callee, &inner))
        options = inner;
    else if (is_gpu_name(dotted_name(&w->r, callee)))
        options = arguments;
    else
        return;
    if (kind_of(wrapped) != N_IDENTIFIER && kind_of(wrapped) != N_ATTRIBUTE)
        return;
    const str name = text_of(&w->r, wrapped);
    size_t function = SIZE_MAX;
    for (size_t i = 0; i < w->r.m->functions.count; i++)
        if (str_eq(w->r.m->functions.items[i].name, name))
            function = i;
    struct gpu_record *record = add_gpu(w, name, node, node);
    record->gpu.is_method = kind_of(wrapped) == N_ATTRIBUTE;
    record->function = function;
    take_gpu_arguments(w, &record->gpu, options);
}

/* ---- What a GPU function returns ---- */

static bool leaves_gpu(str text)
{
    static const char *const WORDS[] = {".cpu(",         ".numpy(",     ".item(",   ".tolist(",
                                        ".detach().cpu", "to(\"cpu\")", "to('cpu')"};
    for (size_t i = 0; i < COUNT(WORDS); i++)
        if (str_contains(text, str_from(WORDS[i])))
            return true;
    return false;
}

static bool lives_on_gpu(str text)
{
    static const char *const WORDS[] = {".cuda()", "to(\"cuda\")", "to('cuda')", "device=\"cuda\"",
                                        "device='cuda'"};
    for (size_t i = 0; i < COUNT(WORDS); i++)
        if (str_contains(text, str_from(WORDS[i])))
            return true;
    return false;
}

static void judge_returned(struct walk *w, TSNode node, unsigned depth)
{
    bool whole = false;
    node = unparenthesized(node);
    const enum node_kind kind = kind_of(node);
    if (depth > 6 || is_absent(node))
        return;
    if (kind == N_TUPLE || kind == N_LIST || kind == N_EXPRESSION_LIST || kind == N_DICTIONARY) {
        for (size_t i = 0; i < named_count(node) && i < 64; i++) {
            const TSNode child = named_child(node, i);
            judge_returned(w, kind_of(child) == N_PAIR ? field(child, "value") : child, depth + 1);
        }
        return;
    }
    const str path = kind == N_STRING || kind == N_IDENTIFIER || kind == N_BINARY
                         ? constant_text(&w->r, node, w->function, &whole)
                         : S("");
    if (whole && is_output_path(path))
        add_note(w, NOTE_FIXED_OUTPUT, node, path);
    if (w->gpu == SIZE_MAX)
        return;
    if (kind == N_LAMBDA || kind == N_GENERATOR)
        add_note(w, NOTE_RETURNS_UNPICKLABLE, node, folded_text(&w->r, node));
    const struct binding *b =
        kind == N_IDENTIFIER ? binding_find(&w->r, text_of(&w->r, node), w->function) : NULL;
    const TSNode value =
        b && b->function == w->function && !is_absent(b->value) ? unparenthesized(b->value) : node;
    const str text = text_of(&w->r, value);
    if (kind_of(value) == N_CALL) {
        const str callee = dotted_name(&w->r, field(value, "function"));
        if (str_eq(callee, S("open")) || str_eq(callee, S("threading.Lock")) ||
            str_eq(callee, S("threading.RLock")))
            add_note(w, NOTE_RETURNS_UNPICKLABLE, node, folded_text(&w->r, value));
        /* The outermost call decides: x.cuda() is on the GPU, f(x.cuda()) may be anything. */
        const str method = kind_of(field(value, "function")) == N_ATTRIBUTE
                               ? text_of(&w->r, field(field(value, "function"), "attribute"))
                               : S("");
        const bool outermost =
            str_eq(method, S("cuda")) || str_eq(method, S("to")) || str_starts(callee, S("torch."));
        if (outermost && lives_on_gpu(text) && !leaves_gpu(text))
            add_note(w, NOTE_RETURNS_CUDA, node, folded_text(&w->r, node));
    }
}

/* ---- Definitions ---- */

static void take_parameters(struct walk *w, struct gpu_function *gpu, TSNode parameters)
{
    for (size_t i = 0; i < named_count(parameters) && i < 256; i++) {
        const TSNode name = parameter_name(named_child(parameters, i));
        w->well = strs_add(w->r.a, &gpu->parameters, text_of(&w->r, name)) && w->well;
    }
}

static bool is_async(const struct reading *r, TSNode definition)
{
    return str_starts(text_of(r, definition), S("async"));
}

static void visit_function(struct walk *w)
{
    const TSNode node = ts_tree_cursor_current_node(&w->cursor), decorated = w->decorators;
    const struct walk saved = *w;
    struct py_function_list *list = &w->r.m->functions;
    const str name = text_of(&w->r, field(node, "name"));
    const str full =
        w->r.class_name.p ? str_format(w->r.a, "%.*s.%.*s", STR_ARG(w->r.class_name), STR_ARG(name)) : name;
    w->decorators = (TSNode){0};
    if (list->count >= FUNCTIONS_MOST || !arena_room(w->r.a, list)) {
        w->well = w->well && list->count >= FUNCTIONS_MOST;
        return;
    }
    const size_t index = list->count++;
    list->items[index] =
        (struct py_function){.name = full, .outer = w->function, .in_class = w->r.class_name.p != NULL};
    for (size_t i = 0; !is_absent(decorated) && i < named_count(decorated); i++) {
        const TSNode decorator = named_child(decorated, i);
        TSNode arguments;
        if (kind_of(decorator) != N_DECORATOR || !is_gpu_decorator(w, named_child(decorator, 0), &arguments))
            continue;
        struct gpu_record *record = add_gpu(w, full, node, decorator);
        record->function = index;
        record->gpu.is_method = w->r.class_name.p != NULL;
        record->gpu.is_async = is_async(&w->r, node);
        if (!is_absent(arguments))
            take_gpu_arguments(w, &record->gpu, arguments);
        take_parameters(w, &record->gpu, field(node, "parameters"));
        w->gpu = w->r.m->gpu.count - 1;
        break;
    }
    w->function = index;
    w->parameters = field(node, "parameters");
    w->loop_items = (TSNode){0};
    w->guard = (saved.guard & GUARD_TYPE_CHECKING) |
               GUARD_FUNCTION; /* what guards the definition does not guard a call of it */
    w->guard |= saved.guard & (GUARD_CONDITION | GUARD_TRY);
    w->r.class_name = (str){NULL, 0};
    w->outer_name = full;
    visit_children(w);
    w->function = saved.function;
    w->parameters = saved.parameters;
    w->loop_items = saved.loop_items;
    w->loop_name = saved.loop_name;
    w->guard = saved.guard;
    w->r.class_name = saved.r.class_name;
    w->outer_name = saved.outer_name;
    w->gpu = saved.gpu;
}

static void visit_class(struct walk *w)
{
    const str saved = w->r.class_name;
    const TSNode node = ts_tree_cursor_current_node(&w->cursor);
    w->r.class_name = text_of(&w->r, field(node, "name"));
    w->decorators = (TSNode){0};
    visit_children(w);
    w->r.class_name = saved;
}

static void visit_lambda(struct walk *w)
{
    const unsigned saved = w->guard;
    w->guard |= GUARD_FUNCTION;
    visit_children(w);
    w->guard = saved;
}

static void take_call(struct walk *w, TSNode node)
{
    const TSNode callee_node = field(node, "function"), arguments = field(node, "arguments");
    const enum node_kind callee_kind = kind_of(callee_node);
    str callee = dotted_name(&w->r, callee_node);
    if (!callee.p && callee_kind == N_ATTRIBUTE) /* x(...).method(): only the method is known */
        callee = str_format(w->r.a, "?.%.*s", STR_ARG(text_of(&w->r, field(callee_node, "attribute"))));
    take_handler(w, node);
    take_gpu_call(w, node);
    if (!callee.p)
        return;
    for (size_t i = 0; i < COUNT(CALLEES); i++)
        if (str_eq(callee, CALLEES[i].name))
            take_install(w, node, i);
    take_process(w, node, callee);
    take_named_call(w, node, arguments, callee);
    take_device_arguments(w, node, arguments, callee);
    take_written_path(w, node, arguments, callee);
    struct py_call_list *calls = &w->r.m->calls;
    if (!arena_room(w->r.a, calls)) {
        w->well = false;
        return;
    }
    if (callee_kind == N_IDENTIFIER)
        remember_call(w, arguments, callee);
    calls->items[calls->count++] = (struct py_call){callee};
    (void)add_event(w, EVENT_CALL, calls->count - 1);
    if (w->gpu != SIZE_MAX) {
        struct strs *names = &w->r.m->gpu.items[w->gpu].gpu.calls;
        if (names->count < 500 && !strs_has(names, callee))
            w->well = strs_add(w->r.a, names, callee) && w->well;
    }
    if (callee_kind == N_IDENTIFIER) /* f(g(x)) */
        for (size_t i = 0; i < named_count(arguments) && i < 16; i++) {
            const TSNode inner = named_child(arguments, i);
            if (kind_of(inner) == N_CALL && kind_of(field(inner, "function")) == N_IDENTIFIER)
                add_chain(w, node, text_of(&w->r, field(inner, "function")), text_of(&w->r, callee_node));
        }
}

static void visit_with(struct walk *w)
{
    const TSNode node = ts_tree_cursor_current_node(&w->cursor);
    bool suppresses = false;
    for (size_t i = 0; i < named_count(node); i++)
        if (kind_of(named_child(node, i)) == N_WITH_CLAUSE) {
            const str clause = text_of(&w->r, named_child(node, i));
            suppresses = str_contains(clause, S("suppress(")) && names_import_error(clause);
        }
    visit_children_as(w, suppresses ? GUARD_TRY : 0);
}

/* A loop over a list that is written down runs for sure, and its name has values that are known. */
static void visit_for(struct walk *w, TSNode node)
{
    const TSNode left = field(node, "left"), saved_items = w->loop_items;
    const str saved_name = w->loop_name;
    TSNode items = unparenthesized(field(node, "right"));
    if (kind_of(items) == N_IDENTIFIER) {
        const struct binding *b = binding_find(&w->r, text_of(&w->r, items), w->function);
        items = b && b->known ? unparenthesized(b->value) : items;
    }
    const bool constant = kind_of(left) == N_IDENTIFIER &&
                          (kind_of(items) == N_LIST || kind_of(items) == N_TUPLE) && named_count(items) > 0;
    if (constant) {
        w->loop_name = text_of(&w->r, left);
        w->loop_items = items;
    }
    visit_children_as(w, constant ? 0 : GUARD_CONDITION);
    w->loop_name = saved_name;
    w->loop_items = saved_items;
}

static void visit(struct walk *w)
{
    const TSNode node = ts_tree_cursor_current_node(&w->cursor);
    if (!ts_node_is_named(node) || !w->well)
        return;
    if (w->depth >= DEPTH_MOST)
        return; /* what is nested deeper is no code that a person wrote */
    w->depth++;
    switch (kind_of(node)) {
    case N_IMPORT:
        take_import(w, node);
        break;
    case N_IMPORT_FROM:
        take_import_from(w, node);
        break;
    case N_IF:
        visit_if(w);
        break;
    case N_TRY:
        visit_try(w);
        break;
    case N_WITH:
        visit_with(w);
        break;
    case N_FOR:
        visit_for(w, node);
        break;
    case N_WHILE:
    case N_MATCH:
    case N_CONDITIONAL:
        visit_children_as(w, GUARD_CONDITION);
        break;
    case N_DECORATED:
        w->decorators = node;
        visit_children(w);
        w->decorators = (TSNode){0};
        break;
    case N_FUNCTION:
        visit_function(w);
        break;
    case N_CLASS:
        visit_class(w);
        break;
    case N_LAMBDA:
        visit_lambda(w);
        break;
    case N_ASSIGNMENT:
        take_assignment(w, node);
        visit_children(w);
        break;
    case N_AUGMENTED:
        if (kind_of(field(node, "left")) == N_IDENTIFIER)
            bind(w, text_of(&w->r, field(node, "left")), (TSNode){0});
        visit_children(w);
        break;
    case N_CALL:
        take_call(w, node);
        visit_children(w);
        break;
    case N_RETURN:
        if (w->function != SIZE_MAX)
            judge_returned(w, named_child(node, 0), 0);
        visit_children(w);
        break;
    case N_YIELD:
        if (w->gpu != SIZE_MAX && w->r.m->gpu.items[w->gpu].function == w->function)
            w->r.m->gpu.items[w->gpu].gpu.is_generator = true;
        visit_children(w);
        break;
    case N_GLOBAL:
        for (size_t i = 0; i < named_count(node); i++)
            add_note(w, NOTE_GLOBAL_WRITE, node, text_of(&w->r, named_child(node, i)));
        break;
    case N_STRING:
    case N_CONCATENATED:
    case N_COMMENT:
        break; /* nothing in them is run, but for f-strings, whose calls are of no interest */
    default:
        visit_children(w);
        break;
    }
    w->depth--;
}

/* NOLINTEND(misc-no-recursion) */

/* The first place where the grammar could not go on. */
static void find_error(struct walk *w, TSNode root)
{
    TSTreeCursor cursor = ts_tree_cursor_new(root);
    for (;;) {
        const TSNode node = ts_tree_cursor_current_node(&cursor);
        if (ts_node_is_missing(node) || kind_of(node) == N_ERROR) {
            w->r.m->first_error = place_of(&w->r, node);
            break;
        }
        if (ts_node_has_error(node) && ts_tree_cursor_goto_first_child(&cursor))
            continue;
        if (ts_tree_cursor_goto_next_sibling(&cursor))
            continue;
        bool up = true;
        while (up && !ts_tree_cursor_goto_next_sibling(&cursor))
            up = ts_tree_cursor_goto_parent(&cursor);
        if (!up)
            break;
    }
    ts_tree_cursor_delete(&cursor);
}

bool python_read(arena *a, str source, bool whole, struct module_facts *m)
{
    struct sketch sketch;
    TSParser *parser = ts_parser_new();
    m->source = source;
    if (!parser || !ts_parser_set_language(parser, tree_sitter_python()) ||
        !python_sketch(a, source, whole, &sketch)) {
        if (parser)
            ts_parser_delete(parser);
        return false;
    }
    ts_parser_set_timeout_micros(parser, 5000000); /* a source made to be slow is not read */
    TSTree *tree = ts_parser_parse_string(parser, NULL, sketch.text.p, (uint32_t)sketch.text.n);
    bool well = tree != NULL;
    m->sketched = !sketch.whole;
    if (tree) {
        const TSNode root = ts_tree_root_node(tree);
        struct walk w = {.r = {.a = a,
                               .m = m,
                               .parsed = sketch.text,
                               .binding_slots = arena_array(a, uint16_t, SLOTS),
                               .alias_slots = arena_array(a, uint16_t, SLOTS)},
                         .function = SIZE_MAX,
                         .gpu = SIZE_MAX,
                         .well = true};
        m->parsed_with_errors = ts_node_has_error(root);
        m->line_count = sketch.line_count;
        if (m->parsed_with_errors)
            find_error(&w, root);
        if (sketch.fault) {
            m->parsed_with_errors = true;
            m->first_error = (struct place){m->path, sketch.fault, 0};
        }
        w.cursor = ts_tree_cursor_new(root);
        if (w.r.binding_slots && w.r.alias_slots)
            visit(&w);
        else
            w.well = false;
        read_wrappers(&w);
        place_late_events(&w);
        ts_tree_cursor_delete(&w.cursor);
        ts_tree_delete(tree);
        well = w.well;
    }
    ts_parser_delete(parser);
    m->read = well;
    return well;
}
