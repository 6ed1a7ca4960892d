/* From an app's facts to the native extensions that it needs, and how each is obtained. An extension is needed when a reachable
 * module imports it, when a start-up command installs it, or when its wheel is committed. A requirements line alone is no need: it
 * is judged by judge.c, and listed here as the way to get what something imports. */
#include "plan/plan.h"

#include <stdlib.h>

struct finder {
    arena *a;
    const struct catalogue *catalogue;
    const struct space *space;
    struct need_list *needs;
    bool well; /* false past the arena's limit */
};

static str last_part(str dotted)
{
    const size_t dot = str_rfind_char(dotted, '.');
    return dot == SIZE_MAX ? dotted : str_from_index(dotted, dot + 1);
}

static str first_part(str dotted)
{
    str head, tail;
    (void)str_cut(dotted, '.', &head, &tail);
    return head;
}

static struct need *need_of(struct finder *w, str name, const struct extension *extension,
                            enum compiled_kind compiled)
{
    for (size_t i = 0; i < w->needs->count; i++)
        if (str_eq(w->needs->items[i].name, name))
            return &w->needs->items[i];
    static struct need lost;
    if (!arena_room(w->a, w->needs)) {
        w->well = false;
        return &lost;
    }
    struct need *need = &w->needs->items[w->needs->count++];
    *need = (struct need){.name = name, .extension = extension, .compiled = compiled};
    return need;
}

static struct need *need_of_extension(struct finder *w, const struct extension *e)
{
    return need_of(w, e->name, e, e->compiled == COMPILED_UNKNOWN ? COMPILED_CUDA : e->compiled);
}

static struct need *existing(struct finder *w, const struct extension *e)
{
    for (size_t i = 0; e && i < w->needs->count; i++)
        if (w->needs->items[i].extension == e)
            return &w->needs->items[i];
    return NULL;
}

static bool is_in_folder(str path, str folder)
{
    return folder.n == 0 || str_eq(folder, S(".")) || str_eq(path, folder) ||
           (str_starts(path, folder) && path.n > folder.n && path.p[folder.n] == '/');
}

/* The vendored source that makes the module (a last or a first part of a dotted name). */
static const struct vendored_source *vendored_by_module(const struct space *s, str module)
{
    for (size_t i = 0; i < s->vendored.count; i++) {
        const struct vendored_source *v = &s->vendored.items[i];
        for (size_t j = 0; v->compiled != COMPILED_NONE && j < v->modules.count; j++) {
            const str made = v->modules.items[j];
            if (str_eq(made, module) || str_eq(first_part(made), module) || str_eq(last_part(made), module))
                return v;
        }
    }
    return NULL;
}

static bool is_relative(const struct py_import *i) { return str_starts(i->text, S("from .")); }

/* A local module is the extension all the same when it is the Python side of a vendored compiled package. */
static bool is_shadowed(const struct finder *w, const struct py_import *i)
{
    if (i->local == SIZE_MAX)
        return false;
    const str path = w->space->modules.items[i->local].path;
    for (size_t v = 0; v < w->space->vendored.count; v++) {
        const struct vendored_source *source = &w->space->vendored.items[v];
        if (source->compiled != COMPILED_NONE && source->build != BUILD_SCRIPT && source->folder.n > 0 &&
            is_in_folder(path, source->folder))
            return false;
    }
    return true;
}

/* The need that an import statement shows, or NULL. */
static struct need *need_of_import(struct finder *w, const struct py_import *i)
{
    const struct vendored_source *v = NULL;
    if (is_shadowed(w, i)) {
        /* from . import compiled_module: the package is local, the name in it is not */
        for (size_t n = 0; n < i->names.count && !v; n++) {
            v = vendored_by_module(w->space, i->names.items[n]);
            if (v) {
                const struct extension *e = catalogue_by_import(w->catalogue, i->names.items[n]);
                return e ? need_of_extension(w, e) : need_of(w, i->names.items[n], NULL, v->compiled);
            }
        }
        return NULL;
    }
    const struct extension *e = catalogue_by_import(w->catalogue, i->module);
    const str part = is_relative(i) ? last_part(i->module) : first_part(i->module);
    if (is_relative(i))
        e = catalogue_by_import(w->catalogue, part);
    if (e)
        return need_of_extension(w, e);
    v = vendored_by_module(w->space, part);
    return v ? need_of(w, part, NULL, v->compiled) : NULL;
}

static void add_once(struct finder *w, struct strs *list, str s)
{
    if (!strs_has(list, s) && !strs_add(w->a, list, s))
        w->well = false;
}

/* `if __name__ == "__main__":` runs in the file that the platform starts, and in no other. */
static bool runs_at_import(const struct space *s, size_t module, const struct py_import *i)
{
    const unsigned guard = module == 0 ? i->guard & ~(unsigned)GUARD_MAIN : i->guard;
    return guard == GUARD_NONE && s->modules.items[module].at_start;
}

static void take_imports(struct finder *w)
{
    const struct space *s = w->space;
    for (size_t m = 0; m < s->modules.count; m++) {
        const struct py_module *module = &s->modules.items[m];
        for (size_t i = 0; module->reachable && i < module->imports.count; i++) {
            const struct py_import *import = &module->imports.items[i];
            struct need *need = import->guard & GUARD_TYPE_CHECKING ? NULL : need_of_import(w, import);
            if (!need)
                continue;
            const bool guarded = (import->guard & (GUARD_TRY | GUARD_CONDITION)) != 0;
            need->optional = need->imported ? need->optional && guarded : guarded;
            if (!need->imported)
                need->place = import->place;
            need->imported = true;
            need->needed_at_start = need->needed_at_start || runs_at_import(s, m, import);
            add_once(w, &need->imports, import->text);
        }
    }
}

static void add_obtained(struct finder *w, struct need *need, struct obtained obtained)
{
    for (size_t i = 0; i < need->obtained.count; i++) {
        const struct obtained *have = &need->obtained.items[i];
        if (have->how == obtained.how && str_eq(have->spec, obtained.spec) &&
            str_eq(have->place.file, obtained.place.file) && have->place.line == obtained.place.line)
            return;
    }
    if (!arena_room(w->a, &need->obtained)) {
        w->well = false;
        return;
    }
    need->obtained.items[need->obtained.count++] = obtained;
    if (!need->place.file.p)
        need->place = obtained.place;
}

static void take_fork(struct finder *w, struct need *need, const struct fork *fork, str url)
{
    if (!fork || need->fork)
        return;
    need->fork = fork;
    need->fork_reason = str_format(w->a, "installed from %.*s", STR_ARG(url));
}

/* What a word of an install command, or a requirements line's URL or path, stands for. */
struct target_of {
    const struct extension *extension;
    const struct fork *fork;
    const struct vendored_source *vendored;
};

static str strip_app_dir(str path)
{
    static const str ROOTS[] = {S_INIT("/home/user/app/"), S_INIT("./")};
    for (size_t i = 0; i < COUNT(ROOTS); i++)
        if (str_starts(path, ROOTS[i]))
            path = str_from_index(path, ROOTS[i].n);
    while (path.n > 1 && str_ends(path, S("/")))
        path.n--;
    return path;
}

static bool is_wheel(str s)
{
    str path, rest;
    (void)str_cut(s, '#', &path, &rest);
    (void)str_cut(path, '?', &path, &rest);
    return str_ends(path, S(".whl"));
}

static bool is_url(str s) { return str_contains(s, S("://")); }

/* "name" of "...#egg=name&subdirectory=x"; empty without one. */
static str egg_of(str url)
{
    const size_t at = str_find(url, S("egg="));
    str egg = at == SIZE_MAX ? S("") : str_from_index(url, at + 4);
    for (size_t i = 0; i < egg.n; i++)
        if (egg.p[i] == '&' || egg.p[i] == '[')
            return str_slice(egg, 0, i);
    return egg;
}

static struct target_of target_of_word(struct finder *w, str word, str directory)
{
    struct target_of result = {0};
    struct wheel_name name;
    str why;
    if (is_wheel(word)) {
        if (wheel_name_parse(w->a, word, &name, &why)) {
            result.extension = catalogue_by_distribution(w->catalogue, name.distribution);
            if (result.extension)
                result.fork = extension_fork(result.extension, word);
        }
        return result;
    }
    if (is_url(word)) {
        result.extension = catalogue_by_repository(w->catalogue, word, &result.fork);
        if (!result.extension)
            result.extension = catalogue_by_distribution(w->catalogue, egg_of(word));
        return result;
    }
    const bool is_path = str_starts(word, S(".")) || str_contains(word, S("/"));
    if (is_path) {
        const str path = strip_app_dir(
            path_normal(w->a, path_join(w->a, strip_app_dir(directory.p ? directory : S("")), word)));
        for (size_t i = 0; i < w->space->vendored.count; i++)
            if (str_eq(w->space->vendored.items[i].folder, path))
                result.vendored = &w->space->vendored.items[i];
        if (result.vendored && result.vendored->distribution.p)
            result.extension = catalogue_by_distribution(w->catalogue, result.vendored->distribution);
        if (!result.extension)
            result.extension = catalogue_by_distribution(w->catalogue, path_base(path));
        if (result.extension)
            result.fork = extension_fork(result.extension, word);
        return result;
    }
    struct requirement requirement;
    size_t at;
    const char *expected;
    if (requirement_parse(w->a, word, &requirement, &at, &expected))
        result.extension = catalogue_by_distribution(w->catalogue, requirement.name);
    return result;
}

/* The need that is meant, made when there was none; NULL when it is nothing of ours. */
static struct need *need_of_target(struct finder *w, const struct target_of *t)
{
    if (t->extension)
        return t->extension->only_if_imported ? existing(w, t->extension)
                                              : need_of_extension(w, t->extension);
    if (t->vendored && t->vendored->modules.count > 0) {
        const str module = first_part(t->vendored->modules.items[0]);
        const struct extension *e = catalogue_by_import(w->catalogue, module);
        return e ? need_of_extension(w, e) : need_of(w, module, NULL, t->vendored->compiled);
    }
    return NULL;
}

static const struct vendored_source *vendored_by_file(struct finder *w, str file, str directory)
{
    const str path = strip_app_dir(path_normal(
        w->a, path_join(w->a, strip_app_dir(directory.p ? directory : S("")), strip_app_dir(file))));
    for (size_t i = 0; i < w->space->vendored.count; i++)
        if (str_eq(w->space->vendored.items[i].place.file, path) ||
            str_eq(w->space->vendored.items[i].folder, path))
            return &w->space->vendored.items[i];
    return NULL;
}

static void take_install(struct finder *w, const struct install_call *call,
                         const struct install_command *command)
{
    struct obtained obtained = {.how = OBTAINED_STARTUP_INSTALL,
                                .spec = call->command.n ? call->command : call->text,
                                .place = call->place,
                                .install = call,
                                .command = command};
    for (size_t i = 0; i < command->targets.count; i++) {
        const str word = command->targets.items[i];
        struct target_of target = {0};
        if (command->kind == INSTALL_PIP)
            target = target_of_word(w, word, command->directory);
        else if (command->kind == INSTALL_SCRIPT || command->kind == INSTALL_SETUP_PY)
            target.vendored = vendored_by_file(w, word, command->directory);
        else if (command->kind == INSTALL_COMPILER)
            target.extension = catalogue_by_import(w->catalogue, first_part(path_base(word)));
        struct need *need = need_of_target(w, &target);
        if (!need)
            continue;
        obtained.url = is_url(word) ? word : (str){NULL, 0};
        obtained.vendored = target.vendored;
        add_obtained(w, need, obtained);
        take_fork(w, need, target.fork, word);
    }
}

static void take_installs(struct finder *w)
{
    for (size_t i = 0; i < w->space->installs.count; i++) {
        const struct install_call *call = &w->space->installs.items[i];
        for (size_t c = 0; c < call->commands.count; c++)
            take_install(w, call, &call->commands.items[c]);
    }
}

static void take_wheels(struct finder *w)
{
    for (size_t i = 0; i < w->space->wheels.count; i++) {
        const struct committed_wheel *wheel = &w->space->wheels.items[i];
        const struct extension *e =
            wheel->valid ? catalogue_by_distribution(w->catalogue, wheel->name.distribution) : NULL;
        if (!e)
            continue;
        struct need *need = need_of_extension(w, e);
        add_obtained(w, need,
                     (struct obtained){.how = OBTAINED_COMMITTED_WHEEL,
                                       .spec = wheel->path,
                                       .place = {.file = wheel->path},
                                       .wheel = wheel});
        take_fork(w, need, extension_fork(e, wheel->path), wheel->path);
    }
}

static void take_requirements(struct finder *w)
{
    for (size_t i = 0; i < w->space->requirements.count; i++) {
        const struct requirement_line *line = &w->space->requirements.items[i];
        struct target_of target = {0};
        if (line->constraint || !line->applies)
            continue;
        if (line->kind == REQUIREMENT_NAMED)
            target.extension = catalogue_by_distribution(w->catalogue, line->name);
        else if (line->kind == REQUIREMENT_URL || line->kind == REQUIREMENT_VCS ||
                 line->kind == REQUIREMENT_PATH)
            target = target_of_word(w, line->url, (str){NULL, 0});
        if (!target.extension && line->name.p)
            target.extension = catalogue_by_distribution(w->catalogue, line->name);
        struct need *need = existing(w, target.extension);
        if (!need)
            continue;
        const enum obtained_how how = line->kind == REQUIREMENT_VCS   ? OBTAINED_GIT
                                      : line->kind == REQUIREMENT_URL ? OBTAINED_URL
                                                                      : OBTAINED_REQUIREMENT;
        add_obtained(
            w, need,
            (struct obtained){
                .how = how, .spec = line->text, .place = line->place, .url = line->url, .requirement = line});
        take_fork(w, need, target.fork, line->text);
    }
}

static void take_vendored(struct finder *w)
{
    for (size_t i = 0; i < w->space->vendored.count; i++) {
        const struct vendored_source *v = &w->space->vendored.items[i];
        if (v->compiled == COMPILED_NONE)
            continue;
        const struct target_of target = {
            .extension = v->distribution.p ? catalogue_by_distribution(w->catalogue, v->distribution) : NULL,
            .vendored = v};
        struct need *need = existing(w, target.extension);
        for (size_t m = 0; !need && m < v->modules.count; m++) {
            const str names[] = {first_part(v->modules.items[m]), last_part(v->modules.items[m])};
            for (size_t n = 0; !need && n < COUNT(names); n++) {
                need = existing(w, catalogue_by_import(w->catalogue, names[n]));
                for (size_t k = 0; !need && k < w->needs->count; k++)
                    if (str_eq(w->needs->items[k].name, names[n]))
                        need = &w->needs->items[k];
            }
        }
        if (!need)
            continue;
        add_obtained(
            w, need,
            (struct obtained){
                .how = OBTAINED_VENDORED_SOURCE, .spec = v->folder, .place = v->place, .vendored = v});
        if (need->extension)
            take_fork(w, need, extension_fork(need->extension, v->folder), v->folder);
    }
}

static void take_scripts(struct finder *w)
{
    for (size_t i = 0; i < w->space->scripts.count; i++) {
        const struct script_command *script = &w->space->scripts.items[i];
        const struct install_command *command = &script->command;
        for (size_t t = 0; t < command->targets.count; t++) {
            if (command->kind != INSTALL_PIP && command->kind != INSTALL_GIT_CLONE)
                continue;
            const struct target_of target = target_of_word(w, command->targets.items[t], command->directory);
            struct need *need = existing(w, target.extension);
            if (need) {
                add_once(w, &need->documented_in_script, script->text);
                take_fork(w, need, target.fork, script->text);
            }
        }
    }
}

static int by_name(const void *left, const void *right)
{
    const struct need *a = left, *b = right;
    return str_cmp(a->name, b->name);
}

static int by_bytes(const void *left, const void *right)
{
    const str *a = left, *b = right;
    return str_cmp(*a, *b);
}

const char *obtained_name(enum obtained_how how)
{
    static const char *const NAMES[] = {
        "none", "requirement", "url", "git", "startup-install", "committed-wheel", "vendored-source"};
    return NAMES[how];
}

bool needs_from_space(arena *a, const struct catalogue *c, const struct space *s, struct need_list *out,
                      findings *f)
{
    *out = (struct need_list){0};
    struct finder w = {.a = a, .catalogue = c, .space = s, .needs = out, .well = true};
    take_imports(&w);
    take_installs(&w);
    take_wheels(&w);
    take_requirements(&w);
    take_vendored(&w);
    take_scripts(&w);
    for (size_t i = 0; i < out->count; i++) {
        struct need *need = &out->items[i];
        if (need->obtained.count == 0)
            add_obtained(&w, need, (struct obtained){.how = OBTAINED_NONE});
        if (need->imports.count > 0)
            qsort(need->imports.items, need->imports.count, sizeof *need->imports.items, by_bytes);
    }
    if (out->count > 0)
        qsort(out->items, out->count, sizeof *out->items, by_name);
    if (!w.well)
        return finding_fatal(f, 3, F006, (struct place){.file = s->dir},
                             "the app's facts do not fit the memory limit");
    return true;
}
