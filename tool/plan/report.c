/* A plan as JSON (felloe.plan/1), as text for people, and as felloe.lock (felloe.lock/1); and the writing of it. */
#include "plan/choose.h"

#include "plan/judge.h"

const char *strategy_name(enum strategy strategy)
{
    static const char *const NAMES[] = {
        [STRATEGY_WHEEL] = "wheel",     [STRATEGY_COMMITTED] = "committed", [STRATEGY_JIT] = "jit",
        [STRATEGY_DROP_IN] = "drop-in", [STRATEGY_KERNELS] = "kernels",     [STRATEGY_UNNEEDED] = "unneeded",
        [STRATEGY_NONE] = "none"};
    return NAMES[strategy];
}

const char *verified_name(enum verified verified)
{
    static const char *const NAMES[] = {
        [VERIFIED_NO] = "no", [VERIFIED_NAME] = "name", [VERIFIED_DEEP] = "deep"};
    return NAMES[verified];
}

/* What to install: the URL, or name==version when the index that pip uses has it. */
static str address(arena *a, const struct candidate *c)
{
    if (c->wheel && !str_contains(c->url, S("://")))
        return str_format(a, "%.*s==%.*s", STR_ARG(c->wheel->name.name), STR_ARG(c->version));
    if (c->recipe && c->recipe->subdirectory.n && str_eq(c->url, c->recipe->url))
        return str_format(a, "%.*s#subdirectory=%.*s", STR_ARG(c->url), STR_ARG(c->recipe->subdirectory));
    return c->url;
}

/* ---- JSON ---- */

static json_t *json_candidate(arena *a, str extension, const struct candidate *c)
{
    json_t *item = json_object(), *source = json_object();
    const bool has_source = c->url.n > 0;
    json_object_set_new(item, "extension", json_str(extension));
    json_object_set_new(item, "strategy", json_string(strategy_name(c->strategy)));
    if (has_source) {
        json_object_set_new(source, "kind", json_string(source_kind_name(c->source)));
        json_object_set_new(source, "url", json_str(address(a, c)));
        json_object_set_new(source, "sha256", json_str(c->sha256));
        json_object_set_new(item, "source", source);
    } else {
        json_decref(source);
        json_object_set_new(item, "source", json_null());
    }
    json_object_set_new(item, "verified", json_string(verified_name(c->verified)));
    json_object_set_new(item, "reason", json_str(c->reason));
    return item;
}

json_t *plan_json(arena *a, const struct plan *plan)
{
    const struct target *t = plan->target;
    json_t *root = json_object(), *target = json_object(), *items = json_array(), *pins = json_object(),
           *edits = json_array();
    json_object_set_new(target, "name", json_str(t->name));
    json_object_set_new(target, "python", json_str(plan->python));
    json_object_set_new(target, "torch", json_str(plan->torch));
    json_object_set_new(target, "cuda", json_str(plan->cuda.p ? plan->cuda : t->cuda));
    json_object_set_new(target, "arch", json_strs(&t->archs));
    json_object_set_new(target, "glibc", json_str(t->glibc));
    json_object_set_new(root, "target", target);
    for (size_t i = 0; i < plan->count; i++) {
        const struct plan_item *item = &plan->items[i];
        json_t *out = json_candidate(a, item->need->name, &item->chosen), *others = json_array();
        for (size_t k = 0; k < item->alternatives.count; k++) {
            json_t *other = json_candidate(a, item->need->name, &item->alternatives.items[k]);
            json_object_set_new(other, "alternatives", json_array());
            json_array_append_new(others, other);
        }
        json_object_set_new(out, "alternatives", others);
        json_array_append_new(items, out);
    }
    json_object_set_new(root, "items", items);
    json_object_set_new(pins, "python_version", json_str(plan->pin_python));
    json_object_set_new(pins, "torch", json_str(plan->pin_torch));
    json_object_set_new(root, "pins", pins);
    if (plan->attention.p) {
        json_t *attention = json_object();
        json_object_set_new(attention, "backend", json_str(plan->attention));
        json_object_set_new(attention, "reason", json_str(plan->attention_reason));
        json_object_set_new(root, "attention", attention);
    }
    for (size_t i = 0; i < plan->edits.count; i++) {
        json_t *edit = json_object();
        json_object_set_new(edit, "file", json_str(plan->edits.items[i].file));
        json_object_set_new(edit, "diff", json_str(plan->edits.items[i].diff));
        json_array_append_new(edits, edit);
    }
    json_object_set_new(root, "edits", edits);
    return root;
}

/* ---- Text ---- */

static enum style style_of(const struct candidate *c)
{
    switch (c->strategy) {
    case STRATEGY_WHEEL:
    case STRATEGY_COMMITTED:
        return c->fit == FIT_UNKNOWN ? STYLE_YELLOW : STYLE_GREEN;
    case STRATEGY_DROP_IN:
        return STYLE_GREEN;
    case STRATEGY_NONE:
        return STYLE_RED;
    default:
        return STYLE_YELLOW;
    }
}

/* The file's name is enough for a person: the whole address is in the edit. */
static str short_address(arena *a, const struct candidate *c)
{
    if (c->strategy == STRATEGY_DROP_IN)
        return S("felloe");
    if (c->strategy == STRATEGY_UNNEEDED || c->strategy == STRATEGY_NONE)
        return S("-");
    if (c->wheel && c->wheel->from)
        return c->wheel->from->name;
    if (c->strategy == STRATEGY_JIT && c->obtained && c->obtained->vendored)
        return c->url;
    return path_base(c->file.n ? c->file : address(a, c));
}

static void print_diff(struct buf *b, arena *a, str diff, bool color)
{
    str line;
    while (str_next_line(&diff, &line)) {
        const bool head = str_starts(line, S("---")) || str_starts(line, S("+++"));
        const enum style style = head                       ? STYLE_BOLD
                                 : str_starts(line, S("+")) ? STYLE_GREEN
                                 : str_starts(line, S("-")) ? STYLE_RED
                                 : str_starts(line, S("@")) ? STYLE_BLUE
                                                            : STYLE_NONE;
        buf_add(b, term_paint(a, color, style, term_safe(a, line)));
        buf_char(b, '\n');
    }
}

str plan_text(arena *a, const struct plan *plan, const struct term *t, bool color)
{
    static const char *const HEADINGS[] = {"extension", "strategy", "from", "why"};
    struct buf b = {.a = a};
    buf_format(&b, "%.*s: Python %.*s (%.*s)", STR_ARG(plan->target->name), STR_ARG(plan->python),
               STR_ARG(plan->python_reason));
    if (plan->torch.p)
        buf_format(&b, ", torch %.*s%s%.*s (%.*s)", STR_ARG(plan->torch), plan->cuda.p ? " with CUDA " : "",
                   STR_ARG(plan->cuda.p ? plan->cuda : S("")), STR_ARG(plan->torch_reason));
    buf_add(&b, S("\n\n"));
    struct table table = {.headings = HEADINGS, .columns = COUNT(HEADINGS)};
    enum style *styles = arena_array(a, enum style, plan->count * COUNT(HEADINGS));
    for (size_t i = 0; styles && i < plan->count; i++) {
        const struct plan_item *item = &plan->items[i];
        styles[table.cells.count] = STYLE_BOLD;
        (void)strs_add(a, &table.cells, term_safe(a, item->need->name));
        styles[table.cells.count] = style_of(&item->chosen);
        (void)strs_add(a, &table.cells, str_from(strategy_name(item->chosen.strategy)));
        styles[table.cells.count] = STYLE_NONE;
        (void)strs_add(a, &table.cells, term_safe(a, short_address(a, &item->chosen)));
        styles[table.cells.count] = STYLE_NONE;
        (void)strs_add(a, &table.cells, term_safe(a, item->chosen.reason));
    }
    table.styles = styles;
    if (plan->count)
        buf_add(&b, table_text(a, &table, t->width, color));
    else
        buf_add(&b, S("No native extension is needed.\n"));
    if (plan->attention.p)
        buf_format(&b, "\nattention: %.*s (%.*s)\n", STR_ARG(plan->attention),
                   STR_ARG(plan->attention_reason));
    if (plan->offline)
        buf_format(&b, "\nfile names as of %.*s (--offline)\n", STR_ARG(plan->snapshot_date));
    for (size_t i = 0; i < plan->edits.count; i++) {
        buf_char(&b, '\n');
        print_diff(&b, a, plan->edits.items[i].diff, color);
    }
    return buf_str(&b);
}

/* ---- felloe.lock ---- */

static void lock_line(struct buf *b, const char *key, str value)
{
    if (value.p) /* a name from the app's files can hold anything, but a line is a line */
        buf_format(b, "%s = %.*s\n", key, STR_ARG(term_safe(b->a, value)));
}

static void lock_item(struct buf *b, arena *a, const struct plan_item *item)
{
    const struct candidate *c = &item->chosen;
    buf_format(b, "\n[%.*s]\n", STR_ARG(term_safe(a, item->need->name)));
    lock_line(b, "strategy", str_from(strategy_name(c->strategy)));
    if (c->url.n) {
        lock_line(b, "kind", str_from(source_kind_name(c->source)));
        lock_line(
            b, c->strategy == STRATEGY_COMMITTED || (c->obtained && c->obtained->vendored) ? "path" : "url",
            address(a, c));
        lock_line(b, "sha256", c->sha256.p ? c->sha256 : S("null"));
    }
    lock_line(b, "verified", str_from(verified_name(c->verified)));
    if (item->need->fork)
        lock_line(b, "fork", item->need->fork->name);
    if (c->strategy != STRATEGY_JIT || c->wheel)
        return;
    const struct build_recipe *r = c->recipe;
    lock_line(b, "compiled", str_from(compiled_name(item->need->compiled)));
    for (size_t i = 0; r && i < r->flags.count; i++)
        lock_line(b, "flag", r->flags.items[i]);
    for (size_t i = 0; r && i < r->environment.count; i++)
        lock_line(b, "environment", r->environment.items[i]);
}

str lock_text(arena *a, const struct plan *plan)
{
    const struct target *t = plan->target;
    struct buf b = {.a = a};
    buf_add(&b, S("# felloe.lock/1\n# Made by `felloe plan --write`: what a machine needs to be ready for "
                  "the app. Lines are key = value.\n"));
    lock_line(&b, "target", t->name);
    lock_line(&b, "python", plan->python);
    lock_line(&b, "torch", plan->torch);
    lock_line(&b, "cuda", plan->cuda);
    for (size_t i = 0; i < t->archs.count; i++)
        lock_line(&b, "arch", t->archs.items[i]);
    lock_line(&b, "glibc", t->glibc);
    for (size_t i = 0; i < plan->count; i++)
        lock_item(&b, a, &plan->items[i]);
    return buf_str(&b);
}

bool plan_write(arena *a, const struct plan *plan, struct strs *written, findings *f)
{
    for (size_t i = 0; i < plan->edits.count; i++) {
        const struct edit *edit = &plan->edits.items[i];
        if (!file_write(path_join(a, plan->space->dir, edit->file), span_from_str(edit->after), f))
            return false;
        (void)strs_add(a, written, edit->file);
    }
    const str path = path_join(a, plan->space->dir, S("felloe.lock")), text = lock_text(a, plan);
    span old;
    if (file_exists(path) && file_read(a, path, FILE_LIMIT_TEXT, &old, findings_new(a)) &&
        str_eq(str_from_span(old), text))
        return true; /* nothing new: its time stays too */
    if (!file_write(path, span_from_str(text), f))
        return false;
    return strs_add(a, written, S("felloe.lock"));
}
