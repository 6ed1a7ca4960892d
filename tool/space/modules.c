/* From the app file to every local module that its imports reach, and what happens in which order when the app starts.
 *
 * Modules are found as Python would: the app's folder and that of the app file are on the path, with what sys.path.insert adds.
 * Each level of imports is read at once by a few threads, each with an arena of its own; results stand in the order of the imports, so
 * the answer does not depend on timing. */
#include "space/private.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS_MOST = 8, MODULES_MOST = 20000, CHAIN_MOST = 400, FEW_FILES = 4 };

struct grouped { /* a module's events by function, in source order */
    struct event *events;
    size_t *ranges; /* those of function i begin at ranges[i + 1], those of the module level at ranges[0] */
};

struct graph {
    arena *a;
    struct space *s;
    findings *f;
    struct strs roots; /* folders on the import path, "" for the app's own */
    struct module_facts *modules;
    size_t count, capacity;
    size_t *by_file;         /* index of s->files -> module + 1; 0: not read */
    struct grouped *grouped; /* by module, once all are read */
    uint64_t bytes;
    bool well;
};

/* ---- Names to files ---- */

static size_t file_index(const struct space *s, str path)
{
    size_t first = 0, last = s->files.count;
    while (first < last) {
        const size_t middle = first + (last - first) / 2;
        const int order = str_cmp(s->files.items[middle], path);
        if (order == 0)
            return middle;
        if (order < 0)
            first = middle + 1;
        else
            last = middle;
    }
    return SIZE_MAX;
}

static void replace(char *text, size_t n, char from, char to)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] == from)
            text[i] = to;
}

str dotted_path(arena *a, str path)
{
    char *dotted = arena_array(a, char, path.n + 1);
    if (!dotted)
        return path;
    if (path.n > 0)
        memcpy(dotted, path.p, path.n);
    replace(dotted, path.n, '/', '.');
    return (str){dotted, path.n};
}

/* root/a/b/c followed by `end`. */
static size_t find_file(const struct graph *g, str root, str dotted, const char *end)
{
    char path[1024];
    const size_t tail = strlen(end);
    size_t n = 0;
    if (root.n + dotted.n + tail + 2 > sizeof path)
        return SIZE_MAX;
    if (root.n > 0) {
        memcpy(path, root.p, root.n);
        n = root.n;
        path[n++] = '/';
    }
    memcpy(path + n, dotted.p, dotted.n);
    replace(path + n, dotted.n, '.', '/');
    n += dotted.n;
    memcpy(path + n, end, tail + 1);
    return file_index(g->s, (str){path, n + tail});
}

static size_t module_file(const struct graph *g, str root, str dotted)
{
    const size_t package = find_file(g, root, dotted, "/__init__.py");
    return package != SIZE_MAX ? package : find_file(g, root, dotted, ".py");
}

struct found { /* files that an import runs, packages first */
    size_t files[32];
    size_t count;
    bool local;
};

static void found_add(struct found *found, size_t file)
{
    for (size_t i = 0; i < found->count; i++)
        if (found->files[i] == file)
            return;
    if (file != SIZE_MAX && found->count < COUNT(found->files))
        found->files[found->count++] = file;
}

/* The module is local when one of its packages, or itself, is a file below the root. A folder without __init__.py that holds none of
 * them is not: an installed package of its name wins over it. */
static bool find_below(const struct graph *g, str root, str dotted, struct found *found)
{
    for (size_t end = 0; end <= dotted.n; end++)
        if (end == dotted.n || dotted.p[end] == '.')
            found_add(found, module_file(g, root, str_slice(dotted, 0, end)));
    found->local = found->count > 0;
    return found->local;
}

static void find_import(const struct graph *g, const struct py_import *import, struct found *found)
{
    const bool relative = str_starts(import->text, S("from ."));
    *found = (struct found){0};
    for (size_t r = 0; r < g->roots.count; r++) {
        const str root = g->roots.items[r];
        const bool known = import->module.n > 0 && find_below(g, root, import->module, found);
        /* from package import module */
        for (size_t n = 0; n < import->names.count && n < 64; n++) {
            char dotted[512];
            const str name = import->names.items[n];
            if (import->module.n + name.n + 1 >= sizeof dotted || str_eq(name, S("*")))
                continue;
            size_t length = import->module.n;
            memcpy(dotted, import->module.p, length);
            if (length > 0)
                dotted[length++] = '.';
            memcpy(dotted + length, name.p, name.n);
            const size_t file = module_file(g, root, (str){dotted, length + name.n});
            if (file != SIZE_MAX && (known || relative || str_find_char(import->module, '.') != SIZE_MAX ||
                                     import->module.n > 0)) {
                found_add(found, file);
                found->local = true;
            }
        }
        if (found->local || relative)
            return; /* a relative import is written from the app's own folder, which is the first root */
    }
}

static bool add_root(struct graph *g, str folder)
{
    folder = path_normal(g->a, folder);
    if (str_eq(folder, S(".")))
        folder = S("");
    if (str_starts(folder, S("/home/user/app/")))
        folder = str_from_index(folder, 15);
    if (str_starts(folder, S("/")) || str_starts(folder, S("..")) || g->roots.count >= 16)
        return true;
    for (size_t i = 0; i < g->roots.count; i++)
        if (str_eq(g->roots.items[i], folder))
            return true;
    return strs_add(g->a, &g->roots, folder);
}

/* ---- Reading ---- */

struct job {
    struct graph *g;
    size_t first, last;
    atomic_size_t next;
};

static void read_one(arena *a, const struct space *s, bool whole, struct module_facts *m)
{
    span bytes;
    findings *own = findings_new(a);
    if (!own || !file_read(a, path_join(a, s->dir, m->path), PYTHON_FILE_LIMIT, &bytes, own))
        return;
    str source = str_from_span(bytes);
    if (str_starts(source, S("\xef\xbb\xbf")))
        source = str_from_index(source, 3);
    (void)python_read(a, source, whole, m);
}

static void *read_jobs(void *context)
{
    struct job *job = context;
    arena *a = arena_new(0);
    for (;;) {
        const size_t i = atomic_fetch_add(&job->next, 1);
        if (i >= job->last)
            break;
        read_one(a, job->g->s, i == 0, &job->g->modules[i]);
    }
    return a;
}

static void read_level(struct graph *g, size_t first)
{
    pthread_t threads[THREADS_MOST];
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t wanted = processors > 1 ? (size_t)processors : 1, started = 0;
    struct job job = {.g = g, .first = first, .last = g->count, .next = first};
    if (wanted > THREADS_MOST)
        wanted = THREADS_MOST;
    if (g->count - first < FEW_FILES)
        wanted = 1;
    while (started + 1 < wanted && pthread_create(&threads[started], NULL, read_jobs, &job) == 0)
        started++;
    arena_adopt(g->a, read_jobs(&job));
    for (size_t i = 0; i < started; i++) {
        void *child = NULL;
        (void)pthread_join(threads[i], &child);
        arena_adopt(g->a, child);
    }
}

static void report_module(struct graph *g, const struct module_facts *m)
{
    const struct place place = {.file = m->path};
    if (!m->read)
        (void)finding_at(g->f, F103, place, m->path,
                         "%.*s could not be read as Python: it is too large, too slow to parse or unreadable",
                         STR_ARG(m->path));
    else if (m->parsed_with_errors)
        (void)finding_at(g->f, F103, m->first_error.file.p ? m->first_error : place, m->path,
                         "%.*s is not valid Python here", STR_ARG(m->path));
    else if (!str_is_utf8(m->source))
        (void)finding_at(g->f, F009, place, m->path, "%.*s is not UTF-8", STR_ARG(m->path));
}

static str dotted_of(struct graph *g, str path)
{
    str stem =
        str_ends(path, S("/__init__.py")) ? str_slice(path, 0, path.n - 12) : str_slice(path, 0, path.n - 3);
    return dotted_path(g->a, stem);
}

static void add_module(struct graph *g, size_t file)
{
    if (file == SIZE_MAX || g->by_file[file] || g->count >= MODULES_MOST)
        return;
    if (!arena_room_for(g->a, (void *)&g->modules, g->count, &g->capacity, sizeof *g->modules, 1)) {
        g->well = false;
        return;
    }
    g->modules[g->count] =
        (struct module_facts){.path = g->s->files.items[file], .name = dotted_of(g, g->s->files.items[file])};
    g->by_file[file] = ++g->count;
}

static bool never_runs(const struct py_import *import, size_t module)
{
    return (import->guard & GUARD_TYPE_CHECKING) != 0 || ((import->guard & GUARD_MAIN) != 0 && module != 0);
}

static void reach(struct graph *g)
{
    for (size_t first = 0; first < g->count && g->well;) {
        const size_t last = g->count;
        read_level(g, first);
        for (size_t m = first; m < last; m++) {
            struct module_facts *facts = &g->modules[m];
            report_module(g, facts);
            g->bytes += facts->source.n;
            for (size_t i = 0; i < facts->paths_added.count; i++)
                g->well = add_root(g, facts->paths_added.items[i]) && g->well;
        }
        for (size_t m = first; m < last && g->bytes <= PYTHON_TOTAL_LIMIT; m++)
            for (size_t i = 0; i < g->modules[m].imports.count; i++) {
                struct py_import *import = &g->modules[m].imports.items[i];
                struct found found;
                find_import(g, import, &found);
                for (size_t k = 0; k < found.count; k++)
                    if (!never_runs(import, m))
                        add_module(g, found.files[k]);
            }
        first = last;
    }
    if (g->bytes > PYTHON_TOTAL_LIMIT)
        finding_at(g->f, F003, (struct place){.file = g->s->app_file}, g->s->app_file,
                   "more than %d MiB of Python are reached; the rest was not read",
                   (int)(PYTHON_TOTAL_LIMIT >> 20))
            ->severity = SEVERITY_WARNING;
}

static bool acts_in_functions(const struct module_facts *m)
{
    for (size_t i = 0; i < m->events.count; i++)
        if ((m->events.items[i].kind == EVENT_INSTALL || m->events.items[i].kind == EVENT_ENV) &&
            m->events.items[i].function != SIZE_MAX)
            return true;
    return false;
}

static bool imports_one_of(const struct graph *g, const struct module_facts *m, const bool *wanted)
{
    for (size_t i = 0; i < m->imports.count; i++) {
        struct found found;
        find_import(g, &m->imports.items[i], &found);
        for (size_t k = 0; k < found.count; k++)
            if (g->by_file[found.files[k]] && wanted[g->by_file[found.files[k]] - 1])
                return true;
    }
    return false;
}

/* A sketch leaves out who calls whom. Where a function that installs something could be called from one, the callers are read whole,
 * and their callers. */
static void read_callers(struct graph *g)
{
    bool *acts = arena_array(g->a, bool, g->count);
    bool any = false;
    for (size_t i = 1; acts && i < g->count; i++) {
        acts[i] = acts_in_functions(&g->modules[i]);
        any = any || acts[i];
    }
    while (any) {
        any = false;
        for (size_t i = 1; i < g->count; i++) {
            struct module_facts *m = &g->modules[i];
            if (acts[i] || !imports_one_of(g, m, acts))
                continue;
            acts[i] = any = true;
            if (m->sketched) {
                *m = (struct module_facts){.path = m->path, .name = m->name};
                read_one(g->a, g->s, true, m);
            }
        }
    }
}

/* ---- What runs when the app starts ---- */

struct start {
    struct graph *g;
    bool *ran;           /* by module */
    bool **ran_function; /* by module and function */
    bool spaces, torch;
    unsigned depth;
};

static bool group_events(arena *a, const struct module_facts *m, struct grouped *out)
{
    const size_t groups = m->functions.count + 1;
    size_t *ranges = arena_array(a, size_t, groups + 1);
    size_t *at = arena_array(a, size_t, groups);
    struct event *events = arena_array(a, struct event, m->events.count);
    if (!ranges || !at || !events)
        return false;
    for (size_t i = 0; i < m->events.count; i++)
        ranges[m->events.items[i].function + 2]++; /* SIZE_MAX, the module level, is group 0: it wraps to 1 */
    for (size_t i = 1; i <= groups; i++)
        ranges[i] += ranges[i - 1];
    memcpy(at, ranges, groups * sizeof *at);
    for (size_t i = 0; i < m->events.count; i++)
        events[at[m->events.items[i].function + 1]++] = m->events.items[i];
    *out = (struct grouped){events, ranges};
    return true;
}

/* NOLINTBEGIN(misc-no-recursion): CHAIN_MOST bounds it, and each module and function runs once */
static void run_events(struct start *st, size_t module, size_t group);

static size_t function_named(const struct module_facts *m, str name)
{
    for (size_t i = m->functions.count; i > 0; i--)
        if (str_eq(m->functions.items[i - 1].name, name))
            return i - 1;
    return SIZE_MAX;
}

static void run_function(struct start *st, size_t module, size_t function)
{
    if (st->ran_function[module][function] || st->depth >= CHAIN_MOST)
        return;
    st->ran_function[module][function] = true;
    st->depth++;
    run_events(st, module, function + 1);
    st->depth--;
}

/* "install" in the same module; "setup_env.install" in the module of that name. */
static void run_call(struct start *st, size_t module, str name)
{
    const size_t dot = str_rfind_char(name, '.');
    if (dot == SIZE_MAX) {
        const size_t function = function_named(&st->g->modules[module], name);
        if (function != SIZE_MAX)
            run_function(st, module, function);
        return;
    }
    const str owner = str_slice(name, 0, dot);
    for (size_t r = 0; r < st->g->roots.count; r++) {
        const size_t file = module_file(st->g, st->g->roots.items[r], owner);
        if (file == SIZE_MAX || !st->g->by_file[file])
            continue;
        const size_t other = st->g->by_file[file] - 1;
        const size_t function = function_named(&st->g->modules[other], str_from_index(name, dot + 1));
        if (function != SIZE_MAX)
            run_function(st, other, function);
        return;
    }
}

static void run_module(struct start *st, size_t module)
{
    if (st->ran[module] || st->depth >= CHAIN_MOST)
        return;
    st->ran[module] = true;
    st->depth++;
    run_events(st, module, 0);
    st->depth--;
}

static bool is_package(str module, str package)
{
    return str_eq(module, package) ||
           (str_starts(module, package) && module.n > package.n && module.p[package.n] == '.');
}

static void run_import(struct start *st, const struct py_import *import)
{
    struct found found;
    find_import(st->g, import, &found);
    struct space *s = st->g->s;
    if (is_package(import->module, S("torch")) && !found.local) {
        if (!st->torch)
            s->torch_import = import->place;
        st->torch = true;
    }
    if (is_package(import->module, S("spaces"))) {
        if (!st->spaces)
            s->spaces_import = import->place;
        st->spaces = true;
    }
    for (size_t i = 0; i < found.count; i++)
        if (st->g->by_file[found.files[i]])
            run_module(st, st->g->by_file[found.files[i]] - 1);
}

static void run_events(struct start *st, size_t module, size_t group)
{
    struct module_facts *m = &st->g->modules[module];
    const struct grouped *grouped = &st->g->grouped[module];
    for (size_t e = grouped->ranges[group]; e < grouped->ranges[group + 1]; e++) {
        const struct event *event = &grouped->events[e];
        if ((event->guard & GUARD_TYPE_CHECKING) || ((event->guard & GUARD_MAIN) && module != 0))
            continue;
        switch (event->kind) {
        case EVENT_IMPORT:
            run_import(st, &m->imports.items[event->index]);
            break;
        case EVENT_CALL:
            run_call(st, module, m->calls.items[event->index].name);
            break;
        case EVENT_INSTALL: {
            struct install_call *call = &m->installs.items[event->index];
            call->at_start = true;
            call->after_spaces = st->spaces;
            call->after_torch = st->torch;
            break;
        }
        case EVENT_ENV:
            m->environment.items[event->index].after_spaces = st->spaces;
            m->environment.items[event->index].after_torch = st->torch;
            break;
        case EVENT_NOTE:
            m->notes.items[event->index].after_spaces = st->spaces;
            m->notes.items[event->index].after_torch = st->torch;
            break;
        }
    }
}

/* NOLINTEND(misc-no-recursion) */

/* What is not reached at start comes after all that is. */
static void set_rest(struct start *st)
{
    for (size_t module = 0; module < st->g->count; module++) {
        struct module_facts *m = &st->g->modules[module];
        for (size_t i = 0; i < m->events.count; i++) {
            const struct event *event = &m->events.items[i];
            const bool ran =
                event->function == SIZE_MAX ? st->ran[module] : st->ran_function[module][event->function];
            if (ran)
                continue;
            if (event->kind == EVENT_ENV)
                m->environment.items[event->index].after_spaces =
                    m->environment.items[event->index].after_torch = true;
            else if (event->kind == EVENT_NOTE)
                m->notes.items[event->index].after_spaces = m->notes.items[event->index].after_torch = true;
            else if (event->kind == EVENT_INSTALL)
                m->installs.items[event->index].after_spaces = m->installs.items[event->index].after_torch =
                    true;
        }
    }
}

static bool run_start(struct graph *g)
{
    struct start st = {.g = g,
                       .ran = arena_array(g->a, bool, g->count),
                       .ran_function = arena_array(g->a, bool *, g->count)};
    g->grouped = arena_array(g->a, struct grouped, g->count);
    if (!st.ran || !st.ran_function || !g->grouped)
        return false;
    for (size_t i = 0; i < g->count; i++) {
        st.ran_function[i] = arena_array(g->a, bool, g->modules[i].functions.count);
        if (!st.ran_function[i] || !group_events(g->a, &g->modules[i], &g->grouped[i]))
            return false;
    }
    if (g->count > 0)
        run_module(&st, 0);
    set_rest(&st);
    return true;
}

/* ---- Functions that call each other by name ---- */

/* NOLINTBEGIN(misc-no-recursion): CHAIN_MOST bounds it, and each function is marked once */
/* Marks what `function` calls by name in its module, itself included. */
static void mark_called(const struct module_facts *m, const struct grouped *grouped, size_t function,
                        bool *marked, unsigned depth)
{
    if (marked[function] || depth > CHAIN_MOST)
        return;
    marked[function] = true;
    for (size_t e = grouped->ranges[function + 1]; e < grouped->ranges[function + 2]; e++) {
        const struct event *event = &grouped->events[e];
        if (event->kind != EVENT_CALL)
            continue;
        const str name = m->calls.items[event->index].name;
        const size_t called = str_find_char(name, '.') == SIZE_MAX ? function_named(m, name) : SIZE_MAX;
        if (called != SIZE_MAX)
            mark_called(m, grouped, called, marked, depth + 1);
    }
    /* Functions defined inside it follow it in the list; they run when it calls them, mostly. */
    for (size_t i = function + 1; i < m->functions.count && m->functions.items[i].outer != SIZE_MAX &&
                                  m->functions.items[i].outer >= function;
         i++)
        if (m->functions.items[i].outer == function)
            mark_called(m, grouped, i, marked, depth + 1);
}

/* NOLINTEND(misc-no-recursion) */

static void finish_gpu_functions(struct graph *g, struct module_facts *m, const struct grouped *grouped)
{
    for (size_t i = 0; i < m->gpu.count; i++) {
        struct gpu_record *record = &m->gpu.items[i];
        bool *marked = arena_array(g->a, bool, m->functions.count);
        if (record->function == SIZE_MAX || !marked)
            continue;
        mark_called(m, grouped, record->function, marked, 0);
        for (size_t k = 0; k < m->functions.count; k++) {
            if (!marked[k])
                continue;
            record->gpu.installs = record->gpu.installs || m->functions.items[k].installs;
            record->gpu.starts_process = record->gpu.starts_process || m->functions.items[k].starts_process;
            record->gpu.calls_empty_cache =
                record->gpu.calls_empty_cache || m->functions.items[k].empties_cache;
        }
        for (size_t e = 0; e < m->events.count; e++)
            if (m->events.items[e].kind == EVENT_INSTALL && m->events.items[e].function != SIZE_MAX &&
                marked[m->events.items[e].function])
                m->installs.items[m->events.items[e].index].in_gpu_call = true;
    }
}

static str last_part(str name)
{
    const size_t dot = str_rfind_char(name, '.');
    return dot == SIZE_MAX ? name : str_from_index(name, dot + 1);
}

static bool is_gpu(const struct module_facts *m, str name)
{
    for (size_t i = 0; i < m->gpu.count; i++)
        if (str_eq(last_part(m->gpu.items[i].gpu.name), last_part(name)))
            return true;
    return false;
}

/* Functions that serve a visitor: decorated ones, those bound to events, and what they call. */
static bool *served_functions(struct graph *g, const struct module_facts *m, const struct grouped *grouped)
{
    bool *served = arena_array(g->a, bool, m->functions.count);
    for (size_t i = 0; served && i < m->functions.count; i++) {
        bool bound = is_gpu(m, m->functions.items[i].name);
        for (size_t n = 0; n < m->notes.count && !bound; n++)
            bound = m->notes.items[n].kind == NOTE_HANDLER &&
                    str_eq(last_part(m->notes.items[n].detail), last_part(m->functions.items[i].name));
        if (bound)
            mark_called(m, grouped, i, served, 0);
    }
    return served;
}

/* Notes that matter only in functions that serve a visitor, and each of them once a function. */
static void keep_notes(struct graph *g, const struct module_facts *m, const struct grouped *grouped)
{
    const bool *served = served_functions(g, m, grouped);
    for (size_t e = 0; served && e < m->events.count; e++) {
        const struct event *event = &m->events.items[e];
        if (event->kind != EVENT_NOTE)
            continue;
        const struct note *note = &m->notes.items[event->index];
        const bool of_calls = note->kind == NOTE_FIXED_OUTPUT || note->kind == NOTE_GLOBAL_WRITE;
        if (of_calls && (event->function == SIZE_MAX || !served[event->function]))
            continue;
        bool repeated = false;
        for (size_t i = g->s->notes.count; of_calls && i > 0 && !repeated; i--) {
            const struct note *kept = &g->s->notes.items[i - 1];
            repeated = kept->kind == note->kind && str_eq(kept->detail, note->detail) &&
                       str_eq(kept->function, note->function) && str_eq(kept->place.file, note->place.file);
        }
        if (repeated)
            continue;
        if (!arena_room(g->a, &g->s->notes)) {
            g->well = false;
            return;
        }
        g->s->notes.items[g->s->notes.count++] = *note;
    }
    for (size_t i = 0; i < m->chains.count; i++) {
        const struct chain *chain = &m->chains.items[i];
        if (!is_gpu(m, chain->first) || !is_gpu(m, chain->second))
            continue;
        if (!arena_room(g->a, &g->s->notes)) {
            g->well = false;
            return;
        }
        g->s->notes.items[g->s->notes.count++] = (struct note){
            .kind = NOTE_GPU_CHAIN,
            .place = chain->place,
            .detail = str_format(g->a, "%.*s, %.*s", STR_ARG(chain->first), STR_ARG(chain->second)),
            .text = chain->text};
    }
}

/* ---- Putting together ---- */

/* NOLINTBEGIN(misc-no-recursion): CHAIN_MOST bounds it, and each module is marked once */
static void mark_at_start(struct graph *g, struct py_module *modules, size_t module, unsigned depth)
{
    if (modules[module].at_start || depth > CHAIN_MOST)
        return;
    modules[module].at_start = true;
    for (size_t i = 0; i < modules[module].imports.count; i++) {
        const struct py_import *import = &modules[module].imports.items[i];
        const unsigned guard = module == 0 ? import->guard & ~(unsigned)GUARD_MAIN : import->guard;
        struct found found;
        if (guard != GUARD_NONE)
            continue;
        find_import(g, import, &found);
        for (size_t k = 0; k < found.count; k++)
            if (g->by_file[found.files[k]])
                mark_at_start(g, modules, g->by_file[found.files[k]] - 1, depth + 1);
    }
}

/* NOLINTEND(misc-no-recursion) */

/* The module that an import names, SIZE_MAX when it is none of the app's. `from .x import y` names no local module when there is no
 * file x, though its package is local: x may be compiled. `import package.x` stays with the package, which hides an installed one. */
static size_t local_module(const struct graph *g, const struct py_import *import, const struct found *found,
                           size_t importer)
{
    const size_t file = found->count > 0 ? found->files[found->count - 1] : SIZE_MAX;
    if (!found->local || file == SIZE_MAX)
        return SIZE_MAX;
    if (str_starts(import->text, S("from .")) && import->module.n > 0) {
        const str path = g->s->files.items[file], last = last_part(import->module);
        const str stem =
            path_base(str_ends(path, S("/__init__.py")) ? path_dir(path) : str_slice(path, 0, path.n - 3));
        const bool is_module = str_eq(stem, last), is_name = strs_has(&import->names, stem);
        if (!is_module && !is_name && !strs_has(&import->names, S("*")))
            return SIZE_MAX;
    }
    return g->by_file[file] ? g->by_file[file] - 1
                            : importer; /* local, but nothing of it is reached: it never runs */
}

static bool put_together(struct graph *g)
{
    struct space *s = g->s;
    for (size_t i = 0; i < g->count; i++) {
        struct module_facts *m = &g->modules[i];
        for (size_t k = 0; k < m->imports.count; k++) {
            struct found found;
            find_import(g, &m->imports.items[k], &found);
            m->imports.items[k].local = local_module(g, &m->imports.items[k], &found, i);
            s->imports_torch =
                s->imports_torch || (is_package(m->imports.items[k].module, S("torch")) && !found.local);
            s->imports_spaces = s->imports_spaces || is_package(m->imports.items[k].module, S("spaces"));
        }
        finish_gpu_functions(g, m, &g->grouped[i]);
        if (!arena_room(g->a, &s->modules) ||
            !arena_room_for(g->a, (void *)&s->gpu_functions.items, s->gpu_functions.count,
                            &s->gpu_functions.capacity, sizeof *s->gpu_functions.items, m->gpu.count) ||
            !arena_room_for(g->a, (void *)&s->installs.items, s->installs.count, &s->installs.capacity,
                            sizeof *s->installs.items, m->installs.count) ||
            !arena_room_for(g->a, (void *)&s->environment.items, s->environment.count,
                            &s->environment.capacity, sizeof *s->environment.items, m->environment.count))
            return false;
        s->modules.items[s->modules.count++] = (struct py_module){.path = m->path,
                                                                  .name = m->name,
                                                                  .reachable = true,
                                                                  .parsed_with_errors = m->parsed_with_errors,
                                                                  .first_error = m->first_error,
                                                                  .imports = m->imports,
                                                                  .line_count = m->line_count};
        for (size_t k = 0; k < m->gpu.count; k++)
            s->gpu_functions.items[s->gpu_functions.count++] = m->gpu.items[k].gpu;
        for (size_t k = 0; k < m->installs.count; k++)
            s->installs.items[s->installs.count++] = m->installs.items[k];
        for (size_t k = 0; k < m->environment.count; k++)
            s->environment.items[s->environment.count++] = m->environment.items[k];
        keep_notes(g, m, &g->grouped[i]);
    }
    if (g->count > 0)
        mark_at_start(g, s->modules.items, 0, 0);
    return g->well;
}

bool modules_read(arena *a, struct space *s, findings *f)
{
    struct graph g = {
        .a = a, .s = s, .f = f, .well = true, .by_file = arena_array(a, size_t, s->files.count)};
    if (!s->app_file_exists)
        return true;
    const size_t app = file_index(s, s->app_file);
    bool well = g.by_file != NULL && add_root(&g, S("")) && add_root(&g, path_dir(s->app_file));
    for (size_t i = 0; well && i < s->files.count; i++)
        if (str_starts(s->files.items[i],
                       S("src/"))) { /* a src layout is installed, or run with it on the path */
            well = add_root(&g, S("src"));
            break;
        }
    if (well) {
        add_module(&g, app);
        reach(&g);
        read_callers(&g);
        well = g.well && run_start(&g) && put_together(&g);
    }
    if (!well)
        return finding_fatal(f, 3, F006, (struct place){.file = s->dir},
                             "the app's modules do not fit the memory limit");
    return true;
}
