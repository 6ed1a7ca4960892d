/* The edits that make an app follow its plan. Files are changed by lines, so that comments, order, line ends and the formatting of
 * what is not touched stay as they are. In Python only what is safe is changed: a whole statement on a line of its own is added,
 * taken out or given check=True; the rest is said and left to the person. */
#include "plan/choose.h"

#include "plan/judge.h"

enum op_kind {
    OP_BEFORE,
    OP_REPLACE,
    OP_DELETE,
    OP_APPEND
}; /* in the order in which they apply to one line */

struct op {
    str file;
    enum op_kind kind;
    size_t line, last; /* from 1; APPEND has none */
    str text;          /* without a line end; may have several lines */
    size_t order;
};
struct op_list {
    struct op *items;
    size_t count, capacity;
};

struct editor {
    struct chooser *w;
    struct plan *plan;
    struct op_list ops;
    struct strs added;      /* distributions that an append brought */
    struct strs statements; /* what the app does first when it starts */
    bool failed;
};

static void add_op(struct editor *e, str file, enum op_kind kind, size_t line, size_t last, str text)
{
    for (size_t i = 0; i < e->ops.count; i++) { /* one line is replaced or deleted once */
        const struct op *other = &e->ops.items[i];
        if (kind != OP_BEFORE && kind != OP_APPEND && other->kind != OP_BEFORE && other->line == line &&
            other->kind != OP_APPEND && str_eq(other->file, file))
            return;
        if (kind == OP_APPEND && other->kind == OP_APPEND && str_eq(other->file, file) &&
            str_eq(other->text, text))
            return;
    }
    if (!arena_room(e->w->a, &e->ops)) {
        e->failed = true;
        return;
    }
    e->ops.items[e->ops.count] = (struct op){file, kind, line, last ? last : line, text, e->ops.count};
    e->ops.count++;
}

static void leave(struct editor *e, struct place place, str subject, str what)
{
    (void)finding_at(e->w->f, F226, place, subject, "%.*s", STR_ARG(what));
}

/* ---- Text of files ---- */

static bool read_app_file(struct editor *e, str file, str *text)
{
    span bytes;
    const str path = path_join(e->w->a, e->w->space->dir, file);
    *text = (str){NULL, 0};
    if (!file_exists(path))
        return true;
    if (!file_read(e->w->a, path, FILE_LIMIT_TEXT, &bytes, e->w->f))
        return false;
    *text = bytes.p ? str_from_span(bytes) : S("");
    return true;
}

/* Line `number` with its end. */
static str line_of(str text, size_t number)
{
    for (size_t at = 0, line = 1; at < text.n; line++) {
        const size_t end = str_find_char(str_from_index(text, at), '\n');
        const size_t next = end == SIZE_MAX ? text.n : at + end + 1;
        if (line == number)
            return str_slice(text, at, next);
        at = next;
    }
    return S("");
}

static bool op_less(const struct op *a, const struct op *b)
{
    const size_t la = a->kind == OP_APPEND ? SIZE_MAX : a->line,
                 lb = b->kind == OP_APPEND ? SIZE_MAX : b->line;
    if (la != lb)
        return la < lb;
    return a->kind != b->kind ? a->kind < b->kind : a->order < b->order;
}

static void add_lines(struct buf *b, str text, str line_end)
{
    str line;
    while (str_next_line(&text, &line)) {
        buf_add(b, line);
        buf_add(b, line_end);
    }
}

static str apply(struct editor *e, str text, const struct op *ops, size_t count)
{
    struct buf b = {.a = e->w->a};
    const size_t first_end = text.p ? str_find_char(text, '\n') : SIZE_MAX;
    const bool crlf = first_end != SIZE_MAX && first_end > 0 && text.p[first_end - 1] == '\r';
    const str line_end = crlf ? S("\r\n") : S("\n");
    size_t op = 0, number = 1;
    for (size_t at = 0; at < text.n; number++) {
        const size_t end = str_find_char(str_from_index(text, at), '\n');
        const size_t next = end == SIZE_MAX ? text.n : at + end + 1;
        const str line = str_slice(text, at, next);
        size_t skip_to = 0;
        for (; op < count && ops[op].kind != OP_APPEND && ops[op].line == number; op++) {
            if (ops[op].kind != OP_DELETE)
                add_lines(&b, ops[op].text, line_end);
            if (ops[op].kind != OP_BEFORE)
                skip_to = ops[op].last;
        }
        at = next;
        if (skip_to < number) {
            buf_add(&b, line);
            continue;
        }
        for (; number < skip_to && at < text.n; number++) { /* the rest of a continued line */
            const size_t more = str_find_char(str_from_index(text, at), '\n');
            at = more == SIZE_MAX ? text.n : at + more + 1;
        }
    }
    if (op < count && b.count && b.items[b.count - 1] != '\n')
        buf_add(&b, line_end);
    for (; op < count; op++)
        add_lines(&b, ops[op].text, line_end);
    e->failed |= b.failed;
    return buf_str(&b);
}

static bool finish_file(struct editor *e, str file, const struct op *ops, size_t count)
{
    struct edit edit = {.file = file};
    if (!read_app_file(e, file, &edit.before))
        return false;
    edit.after = apply(e, edit.before, ops, count);
    if (edit.before.p && str_eq(edit.before, edit.after))
        return true;
    edit.diff = diff_unified(e->w->a, file, edit.before, edit.after);
    if (!arena_room(e->w->a, &e->plan->edits))
        return false;
    e->plan->edits.items[e->plan->edits.count++] = edit;
    return true;
}

/* With one --hash in a requirements file pip asks for the hash of every line, and the plan has not seen the files. */
static bool is_hashed(const struct editor *e, str file)
{
    const struct requirement_list *list = &e->w->space->requirements;
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].hashes.count && str_eq(list->items[i].place.file, file))
            return true;
    return false;
}

static void leave_hashed(struct editor *e, str file, const struct op *ops, size_t count)
{
    struct buf b = {.a = e->w->a};
    for (size_t i = 0; i < count; i++)
        if (ops[i].text.n)
            buf_format(&b, "%s%.*s", b.count ? ", " : "", STR_ARG(ops[i].text));
    leave(e, (struct place){.file = file, .line = ops[0].line}, file,
          str_format(e->w->a, "its lines carry hashes, so write these with theirs: %.*s",
                     STR_ARG(buf_str(&b))));
}

static bool finish(struct editor *e)
{
    struct op *ops = e->ops.items;
    for (size_t i = 1; i < e->ops.count; i++) { /* by file, line, kind */
        const struct op item = ops[i];
        size_t k = i;
        for (; k > 0; k--) {
            const int by_file = str_cmp(item.file, ops[k - 1].file);
            if (by_file > 0 || (by_file == 0 && !op_less(&item, &ops[k - 1])))
                break;
            ops[k] = ops[k - 1];
        }
        ops[k] = item;
    }
    for (size_t i = 0; i < e->ops.count;) {
        size_t end = i;
        while (end < e->ops.count && str_eq(ops[end].file, ops[i].file))
            end++;
        if (is_hashed(e, ops[i].file))
            leave_hashed(e, ops[i].file, &ops[i], end - i);
        else if (!finish_file(e, ops[i].file, &ops[i], end - i))
            return false;
        i = end;
    }
    return !e->failed;
}

/* ---- README.md ---- */

static void edit_front(struct editor *e)
{
    const struct plan *plan = e->plan;
    const struct front_matter *front = &e->w->space->front;
    if (!plan->pin_python.p || !plan->target->pythons.count)
        return;
    if (!front->present) {
        leave(e, (struct place){0}, S("python_version"),
              str_format(e->w->a, "README.md has no front matter: declare python_version: \"%.*s\" there",
                         STR_ARG(plan->pin_python)));
        return;
    }
    const struct front_value *value = &front->python_version;
    const str wanted = str_format(e->w->a, "python_version: \"%.*s\"", STR_ARG(plan->pin_python));
    if (!value->text.p) {
        add_op(e, front->file, OP_BEFORE, front->last_line, 0, wanted);
        return;
    }
    const bool number = !value->quoted && str_eq(value->text, S("3.1"));
    if (str_eq(e->w->declared_python, plan->pin_python) &&
        (value->quoted || (!number && !str_ends(value->text, S("0")))))
        return;
    str text, key, rest;
    if (!read_app_file(e, front->file, &text))
        return;
    const str line = str_trim_right(line_of(text, value->place.line));
    if (!str_cut(line, ':', &key, &rest) || !str_eq(str_trim(key), S("python_version")) ||
        str_contains(rest, S("{")) || str_contains(line, S("\\"))) {
        leave(e, value->place, S("python_version"),
              str_format(e->w->a, "set it to \"%.*s\" by hand: the line is not a plain key and value",
                         STR_ARG(plan->pin_python)));
        return;
    }
    const str old = str_trim(rest);
    const str quote = str_starts(old, S("'")) ? S("'") : S("\"");
    const size_t comment = str_find(rest, S(" #"));
    const str kept = comment == SIZE_MAX ? S("") : str_from_index(rest, comment);
    const size_t gap = (size_t)(old.p - rest.p);
    /* A full version that begins with the wanted one stays: "3.12.12" is 3.12. */
    const bool same =
        str_eq(major_minor(value->text), plan->pin_python) && value->text.n > plan->pin_python.n;
    const str version = same ? value->text : plan->pin_python;
    size_t spaces = kept.n ? comment : 0; /* white space before the comment */
    while (spaces > 0 && rest.p[spaces - 1] == ' ')
        spaces--;
    add_op(e, front->file, OP_REPLACE, value->place.line, 0,
           str_format(e->w->a, "%.*s:%.*s%.*s%.*s%.*s%.*s%.*s", STR_ARG(key), (int)gap, rest.p,
                      STR_ARG(quote), STR_ARG(version), STR_ARG(quote), kept.n ? (int)(comment - spaces) : 0,
                      rest.p + spaces, STR_ARG(kept)));
}

/* ---- requirements.txt ---- */

static const str REQUIREMENTS = S_INIT("requirements.txt");

static bool is_listed(const struct editor *e, str name)
{
    const struct requirement_list *list = &e->w->space->requirements;
    for (size_t i = 0; i < list->count; i++)
        if (!list->items[i].constraint && list->items[i].name.p && list->items[i].applies &&
            name_same(list->items[i].name, name))
            return true;
    for (size_t i = 0; i < e->added.count; i++)
        if (name_same(e->added.items[i], name))
            return true;
    return false;
}

static void append_requirement(struct editor *e, str name, str text)
{
    if (is_listed(e, name))
        return;
    (void)strs_add(e->w->a, &e->added, name);
    add_op(e, REQUIREMENTS, OP_APPEND, 0, 0, text);
}

/* A line's own comment stays behind what takes the line's place. */
static str with_comment(struct editor *e, const struct requirement_line *line, str text)
{
    str file;
    if (line->last_line > line->place.line || !read_app_file(e, line->place.file, &file))
        return text;
    const str old = str_trim_right(line_of(file, line->place.line));
    const size_t comment = str_find(old, S(" #"));
    return comment == SIZE_MAX
               ? text
               : str_format(e->w->a, "%.*s %.*s", STR_ARG(text), STR_ARG(str_from_index(old, comment)));
}

static void replace_line(struct editor *e, const struct requirement_line *line, str text)
{
    if (!str_eq(line->text, text))
        add_op(e, line->place.file, OP_REPLACE, line->place.line, line->last_line,
               with_comment(e, line, text));
}

static void delete_line(struct editor *e, const struct requirement_line *line)
{
    add_op(e, line->place.file, OP_DELETE, line->place.line, line->last_line, S(""));
}

/* What a requirements file says for a chosen wheel: its URL, or name==version when the index has it. */
static str wheel_requirement(struct editor *e, const struct candidate *c)
{
    if (str_contains(c->url, S("://")))
        return c->url;
    return str_format(e->w->a, "%.*s==%.*s", STR_ARG(c->wheel->name.name), STR_ARG(c->version));
}

static bool same_url(arena *a, str left, str right)
{
    str l, r, fragment;
    (void)str_cut(left, '#', &l, &fragment);
    (void)str_cut(right, '#', &r, &fragment);
    return str_eq(url_decode(a, l), url_decode(a, r));
}

static void edit_for_wheel(struct editor *e, const struct plan_item *item)
{
    const struct candidate *c = &item->chosen;
    const str wanted = wheel_requirement(e, c);
    bool placed = c->obtained && c->obtained->install; /* the app installs this very file when it starts */
    for (size_t i = 0; i < item->need->obtained.count; i++) {
        const struct requirement_line *line = item->need->obtained.items[i].requirement;
        if (!line || line->constraint)
            continue;
        const bool by_index = !str_contains(c->url, S("://"));
        const bool keeps =
            by_index ? line->kind == REQUIREMENT_NAMED && name_same(line->name, c->wheel->name.name) &&
                           specs_contain(&line->requirement.specs, &c->wheel->name.version, true)
                     : line->kind == REQUIREMENT_URL && same_url(e->w->a, line->url, c->url);
        if (placed)
            delete_line(e, line);
        else if (!keeps)
            replace_line(e, line, wanted);
        placed = true;
    }
    if (!placed)
        append_requirement(e, c->wheel ? c->wheel->name.name : item->need->name, wanted);
}

static void drop_requirement_lines(struct editor *e, const struct plan_item *item)
{
    for (size_t i = 0; i < item->need->obtained.count; i++)
        if (item->need->obtained.items[i].requirement)
            delete_line(e, item->need->obtained.items[i].requirement);
}

/* Whether installing the line compiles CUDA in a container that cannot. */
static bool line_compiles(const struct editor *e, const struct plan_item *item,
                          const struct requirement_line *line)
{
    const struct extension *x = item->need->extension;
    if (e->plan->target->compiler_at_build || item->need->compiled != COMPILED_CUDA)
        return false;
    return line->kind == REQUIREMENT_VCS ||
           (line->kind == REQUIREMENT_NAMED && x && (x->pypi == PYPI_SDIST || x->pypi == PYPI_FETCHES));
}

static void edit_torch(struct editor *e)
{
    struct chooser *w = e->w;
    const str torch = e->plan->pin_torch;
    if (!torch.p)
        return;
    const str wanted = str_format(w->a, "torch==%.*s", STR_ARG(torch));
    struct version version;
    if (w->torch_line) {
        const bool pinned = w->declared_torch.p && version_parse(w->a, torch, &version) &&
                            specs_contain(&w->torch_line->requirement.specs, &version, true);
        if (!pinned && !w->torch_line->constraint)
            replace_line(e, w->torch_line, wanted);
    } else if (!is_listed(e, S("torch"))) {
        const struct requirement_list *list = &w->space->requirements;
        size_t first = 0;
        for (size_t i = 0; i < list->count && !first; i++)
            if (list->items[i].kind != REQUIREMENT_OPTION && str_eq(list->items[i].place.file, REQUIREMENTS))
                first = list->items[i].place.line;
        add_op(e, REQUIREMENTS, first ? OP_BEFORE : OP_APPEND, first, 0, wanted);
        (void)strs_add(w->a, &e->added, S("torch"));
    }
}

/* torchvision and torchaudio of another torch; an index of torch for another CUDA. */
static void edit_family(struct editor *e)
{
    struct chooser *w = e->w;
    if (!e->plan->pin_torch.p)
        return;
    const struct yaml *rows = yaml_get(&w->limits, "torch_family"), *row = NULL;
    for (size_t i = 0; rows && i < rows->count; i++)
        if (str_eq(yaml_str(&rows->items[i], "torch"), e->plan->pin_torch))
            row = &rows->items[i];
    static const char *const FAMILY[] = {"torchvision", "torchaudio"};
    for (size_t i = 0; i < w->space->requirements.count; i++) {
        const struct requirement_line *line = &w->space->requirements.items[i];
        struct version pin;
        for (size_t k = 0; row && k < COUNT(FAMILY); k++) {
            const struct strs fitting = yaml_strs(w->a, row, FAMILY[k]);
            if (line->kind == REQUIREMENT_NAMED && str_eq(line->name, str_from(FAMILY[k])) && fitting.count &&
                specs_pin(&line->requirement.specs, &pin) && !strs_has(&fitting, version_public(w->a, &pin)))
                replace_line(e, line, str_format(w->a, "%s==%.*s", FAMILY[k], STR_ARG(fitting.items[0])));
        }
        const size_t at = line->kind == REQUIREMENT_OPTION
                              ? str_find(line->value, S("download.pytorch.org/whl/cu"))
                              : SIZE_MAX;
        if (at == SIZE_MAX || !e->plan->cuda.p)
            continue;
        const str head = str_slice(line->value, 0, at + S("download.pytorch.org/whl/cu").n);
        str tail = str_from_index(line->value, head.n);
        while (tail.n && tail.p[0] >= '0' && tail.p[0] <= '9')
            tail = str_from_index(tail, 1);
        str major, minor;
        (void)str_cut(e->plan->cuda, '.', &major, &minor);
        const str value = str_format(w->a, "%.*s%.*s%.*s%.*s", STR_ARG(head), STR_ARG(major), STR_ARG(minor),
                                     STR_ARG(tail));
        if (!str_eq(value, line->value))
            replace_line(e, line, str_format(w->a, "%.*s %.*s", STR_ARG(line->option), STR_ARG(value)));
    }
}

static void edit_platform_packages(struct editor *e)
{
    const struct requirement_list *list = &e->w->space->requirements;
    for (size_t i = 0; i < list->count; i++) {
        const struct requirement_line *line = &list->items[i];
        if (line->kind != REQUIREMENT_NAMED || line->constraint ||
            !strs_has(&e->plan->target->pinned_by_platform, line->name))
            continue;
        if (str_eq(line->name, S("huggingface-hub")) &&
            str_contains(line->text, S("==0.25"))) /* for old Gradio */
            continue;
        delete_line(e, line);
    }
}

static void edit_runtime(struct editor *e, const struct plan_item *item)
{
    const struct extension *x = item->need->extension;
    for (size_t i = 0; x && i < x->runtime.count; i++) {
        const str name = x->runtime.items[i];
        /* triton comes with torch; an extension of the plan has its own source */
        bool planned = str_eq(name, S("triton")) || is_listed(e, name);
        for (size_t k = 0; k < e->plan->count && !planned; k++) {
            const struct extension *other = e->plan->items[k].need->extension;
            planned = other && catalogue_by_distribution(e->w->catalogue, name) == other;
        }
        if (planned)
            continue;
        append_requirement(e, name, name);
        (void)finding_at(e->w->f, F225, item->need->place, x->name,
                         "%.*s needs %.*s, which no requirement lists", STR_ARG(x->name), STR_ARG(name));
    }
}

/* ---- The app file ---- */

/* Before the first plain import of the app: nothing of the app has run there but what stands above. */
static size_t first_import(const struct editor *e)
{
    const struct py_module_list *modules = &e->w->space->modules;
    size_t line = 0;
    for (size_t i = 0; modules->count && i < modules->items[0].imports.count; i++) {
        const struct py_import *import = &modules->items[0].imports.items[i];
        if (import->guard == GUARD_NONE && !import->function.p && import->place.column <= 1 &&
            str_eq(import->place.file, e->w->space->app_file) && !str_eq(import->module, S("__future__")) &&
            (!line || import->place.line < line))
            line = import->place.line;
    }
    return line;
}

/* All start-up statements in one block, with what they import. */
static void insert_statements(struct editor *e)
{
    const struct chooser *w = e->w;
    if (!e->statements.count)
        return;
    struct buf b = {.a = w->a};
    buf_add(&b, S("# Before anything else is imported: the build container has no CUDA compiler.\n"
                  "import os\nimport subprocess\nimport sys\n\n"));
    for (size_t i = 0; i < e->statements.count; i++)
        buf_add(&b, e->statements.items[i]);
    buf_char(&b, '\n');
    const size_t line = first_import(e);
    if (line)
        add_op(e, w->space->app_file, OP_BEFORE, line, 0, buf_str(&b));
    else
        leave(e, (struct place){.file = w->space->app_file}, S("start-up"),
              str_format(w->a, "no plain import was found to put this before: %.*s", STR_ARG(buf_str(&b))));
}

/* "sm_120" as TORCH_CUDA_ARCH_LIST has it: "12.0". */
static str arch_number(arena *a, str arch)
{
    uint64_t n = 0;
    if (!str_starts(arch, S("sm_")) || !str_to_u64(str_from_index(arch, 3), &n))
        return S("");
    return str_format(a, "%u.%u", (unsigned)(n / 10), (unsigned)(n % 10));
}

static void add_environment(struct editor *e, struct buf *b, const struct plan_item *item)
{
    const struct target *t = e->plan->target;
    const struct build_recipe *r = item->chosen.recipe;
    buf_add(b, S("    env={**os.environ"));
    if (t->cuda_home.n && item->need->compiled != COMPILED_CPP)
        buf_format(b, ", \"CUDA_HOME\": \"%.*s\"", STR_ARG(t->cuda_home));
    if (t->archs.count && item->need->compiled != COMPILED_CPP) {
        buf_add(b, S(", \"TORCH_CUDA_ARCH_LIST\": \""));
        for (size_t i = 0; i < t->archs.count; i++)
            buf_format(b, "%s%.*s", i ? ";" : "", STR_ARG(arch_number(e->w->a, t->archs.items[i])));
        buf_add(b, S("+PTX\""));
    }
    for (size_t i = 0; r && i < r->environment.count; i++) {
        str name, value;
        (void)str_cut(r->environment.items[i], '=', &name, &value);
        buf_format(b, ", \"%.*s\": \"%.*s\"", STR_ARG(name), STR_ARG(value));
    }
    buf_add(b, S("},\n"));
}

static str build_statement(struct editor *e, const struct plan_item *item)
{
    const struct build_recipe *r = item->chosen.recipe;
    const struct obtained *o = item->chosen.obtained;
    struct buf b = {.a = e->w->a};
    buf_add(&b, S("subprocess.run(\n    [sys.executable, \"-m\", \"pip\", \"install\""));
    if (r && !(o && o->vendored)) {
        for (size_t i = 0; i < r->flags.count; i++)
            buf_format(&b, ", \"%.*s\"", STR_ARG(r->flags.items[i]));
        buf_format(&b, ", \"%.*s%s%.*s\"],\n", STR_ARG(r->url), r->subdirectory.n ? "#subdirectory=" : "",
                   STR_ARG(r->subdirectory));
    } else {
        buf_format(&b, ", \"--no-build-isolation\", \"--no-deps\", \"./%.*s\"],\n",
                   STR_ARG(item->chosen.url));
    }
    add_environment(e, &b, item);
    buf_add(&b, S("    check=True,\n)\n"));
    return buf_str(&b);
}

static bool installs_a_wheel(const struct obtained *o)
{
    for (size_t i = 0; o->command && i < o->command->targets.count; i++)
        if (str_contains(o->command->targets.items[i], S(".whl")))
            return true;
    return false;
}

/* Whether the app itself installs it when it starts, in the way that the plan means: a wheel, or a build. */
static bool installs_at_start(const struct need *need, bool a_wheel)
{
    for (size_t i = 0; i < need->obtained.count; i++)
        if (need->obtained.items[i].install && installs_a_wheel(&need->obtained.items[i]) == a_wheel)
            return true;
    return false;
}

static void edit_for_build(struct editor *e, const struct plan_item *item)
{
    const struct candidate *c = &item->chosen;
    if (c->wheel) { /* a wheel of Python only that compiles at its first call */
        edit_for_wheel(e, item);
        return;
    }
    for (size_t i = 0; i < item->need->obtained.count; i++) {
        const struct requirement_line *line = item->need->obtained.items[i].requirement;
        if (line && (line->kind == REQUIREMENT_URL || line_compiles(e, item, line)))
            delete_line(e, line); /* a wheel by URL did not fit, or it would have been taken */
    }
    for (size_t i = 0; c->recipe && i < c->recipe->needs.count; i++)
        append_requirement(e, c->recipe->needs.items[i], c->recipe->needs.items[i]);
    if (installs_at_start(item->need, false))
        return; /* the app does it; what is wrong with how it does it is said by the judgement of the app */
    if (c->fit == FIT_UNKNOWN)
        leave(e, item->need->place, item->need->name,
              str_format(e->w->a,
                         "%.*s has to be compiled at start-up with another CUDA major than torch's: take a "
                         "torch that is "
                         "built with the toolkit's CUDA, or silence torch's check for the build alone",
                         STR_ARG(item->need->name)));
    else if (c->obtained && c->obtained->vendored && c->obtained->vendored->build == BUILD_SCRIPT)
        leave(e, c->obtained->place, item->need->name,
              str_format(e->w->a, "run %.*s when the app starts, with check=True",
                         STR_ARG(c->obtained->place.file)));
    else
        (void)strs_add(e->w->a, &e->statements, build_statement(e, item));
}

static void edit_for_committed(struct editor *e, const struct plan_item *item)
{
    if (installs_at_start(item->need, true))
        return;
    (void)strs_add(
        e->w->a, &e->statements,
        str_format(e->w->a,
                   "subprocess.run([sys.executable, \"-m\", \"pip\", \"install\", \"--no-deps\", \"%.*s\"], "
                   "check=True)\n",
                   STR_ARG(item->chosen.url)));
}

/* No index has the wheel of libfelloe under a name that is ours for certain, so no requirement is added by itself. */
static void edit_for_drop_in(struct editor *e, const struct plan_item *item)
{
    for (size_t i = 0; i < item->need->obtained.count; i++) {
        const struct requirement_line *line = item->need->obtained.items[i].requirement;
        if (line && (line->kind == REQUIREMENT_URL || line_compiles(e, item, line)))
            delete_line(e, line);
    }
    leave(e, item->need->place, item->need->name,
          str_format(e->w->a,
                     "commit felloe's wheel, install it when the app starts, and put `import felloe.dropin` "
                     "before the "
                     "first import: it stands in for %.*s",
                     STR_ARG(item->need->name)));
}

/* Whether the app's own start-up install does what the plan means for the item. */
static bool is_meant(const struct plan_item *item, const struct obtained *o)
{
    switch (item->chosen.strategy) {
    case STRATEGY_NONE:
        return true; /* nothing better is known: it stays as it is */
    case STRATEGY_JIT:
        return !installs_a_wheel(o);
    case STRATEGY_COMMITTED:
        return installs_a_wheel(o);
    default:
        return item->chosen.obtained && item->chosen.obtained->install == o->install;
    }
}

/* A start-up install whose extension now comes from somewhere better. */
static void edit_old_installs(struct editor *e, const struct plan_item *item)
{
    for (size_t i = 0; i < item->need->obtained.count; i++) {
        const struct obtained *o = &item->need->obtained.items[i];
        const struct install_call *call = o->install;
        str text;
        if (!call || is_meant(item, o) || !read_app_file(e, call->place.file, &text))
            continue;
        const str line = str_trim_right(line_of(text, call->place.line));
        const bool alone = call->commands.count == 1 && call->commands.items[0].targets.count <= 1;
        if (call->guard == GUARD_NONE && !call->function.p && alone && str_eq(line, call->text))
            add_op(e, call->place.file, OP_DELETE, call->place.line, 0, S(""));
        else
            leave(e, call->place, item->need->name,
                  str_format(e->w->a, "take out this start-up install: %.*s comes from %.*s now",
                             STR_ARG(item->need->name),
                             STR_ARG(item->chosen.url.n ? item->chosen.url : S("nowhere, it is unneeded"))));
    }
}

static bool is_old(const struct plan *plan, const struct install_call *call)
{
    for (size_t i = 0; i < plan->count; i++)
        for (size_t k = 0; k < plan->items[i].need->obtained.count; k++) {
            const struct obtained *o = &plan->items[i].need->obtained.items[k];
            if (o->install == call && !is_meant(&plan->items[i], o))
                return true;
        }
    return false;
}

/* subprocess.run without check=True, on a line of its own: a failed install then stops the app. */
static void edit_unchecked(struct editor *e)
{
    const struct install_call_list *calls = &e->w->space->installs;
    for (size_t i = 0; i < calls->count; i++) {
        const struct install_call *call = &calls->items[i];
        str text;
        if (call->checked || is_old(e->plan, call) || !str_eq(call->callee, S("subprocess.run")) ||
            !read_app_file(e, call->place.file, &text))
            continue;
        const str line = str_trim_right(line_of(text, call->place.line));
        if (!str_eq(str_trim_left(line), call->text) || !str_ends(line, S(")")) || str_ends(line, S(",)")) ||
            str_contains(call->text, S("check=")))
            continue;
        add_op(e, call->place.file, OP_REPLACE, call->place.line, 0,
               str_format(e->w->a, "%.*s, check=True)", STR_ARG(str_slice(line, 0, line.n - 1))));
    }
}

/* os.environ["ATTN_BACKEND"] = "x" with a back end that the plan does not bring. */
static void edit_attention(struct editor *e)
{
    const struct env_setting_list *list = &e->w->space->environment;
    for (size_t i = 0; e->plan->attention.p && i < list->count; i++) {
        const struct env_setting *setting = &list->items[i];
        str text;
        if (!str_eq(setting->name, S("ATTN_BACKEND")) || !setting->value.n ||
            str_eq(setting->value, e->plan->attention) || !read_app_file(e, setting->place.file, &text))
            continue;
        const str line = str_trim_right(line_of(text, setting->place.line));
        const str tail = str_format(e->w->a, "= \"%.*s\"", STR_ARG(setting->value));
        if (str_ends(line, tail))
            add_op(e, setting->place.file, OP_REPLACE, setting->place.line, 0,
                   str_format(e->w->a, "%.*s= \"%.*s\"", (int)(line.n - tail.n), line.p,
                              STR_ARG(e->plan->attention)));
        else
            leave(e, setting->place, S("ATTN_BACKEND"),
                  str_format(e->w->a, "set ATTN_BACKEND to %.*s here: %.*s has no source on the target",
                             STR_ARG(e->plan->attention), STR_ARG(setting->value)));
    }
}

bool plan_edits(struct chooser *w, struct plan *plan)
{
    struct editor e = {.w = w, .plan = plan};
    edit_front(&e);
    edit_platform_packages(&e);
    edit_torch(&e);
    edit_family(&e);
    for (size_t i = 0; i < plan->count; i++) {
        const struct plan_item *item = &plan->items[i];
        switch (item->chosen.strategy) {
        case STRATEGY_WHEEL:
            edit_for_wheel(&e, item);
            break;
        case STRATEGY_COMMITTED:
            edit_for_committed(&e, item);
            break;
        case STRATEGY_JIT:
            edit_for_build(&e, item);
            break;
        case STRATEGY_DROP_IN:
            edit_for_drop_in(&e, item);
            break;
        case STRATEGY_KERNELS:
            drop_requirement_lines(&e, item);
            append_requirement(&e, S("kernels"), S("kernels"));
            leave(&e, item->need->place, item->need->name,
                  str_format(w->a, "load it with kernels.get_kernel(\"%.*s\") in place of the import",
                             STR_ARG(item->chosen.url)));
            break;
        case STRATEGY_UNNEEDED:
            for (size_t k = 0; k < item->need->obtained.count; k++) {
                const struct requirement_line *line = item->need->obtained.items[k].requirement;
                if (line && line_compiles(&e, item, line))
                    delete_line(&e, line);
            }
            break;
        case STRATEGY_NONE:
            break;
        }
        edit_old_installs(&e, item);
    }
    for (size_t i = 0; i < plan->count; i++) {
        const enum strategy s = plan->items[i].chosen.strategy;
        if (s == STRATEGY_WHEEL || s == STRATEGY_COMMITTED || s == STRATEGY_JIT)
            edit_runtime(&e, &plan->items[i]);
    }
    edit_attention(&e);
    insert_statements(&e);
    edit_unchecked(&e);
    return finish(&e);
}
