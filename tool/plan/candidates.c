/* The ways to get one extension in one setting: published wheels, what the app has already, a compile at start-up, libfelloe's
 * own module, the kernels hub, or doing without. */
#include "plan/choose.h"

#include "plan/judge.h"

enum { UNFIT_MOST = 128, CANDIDATES_MOST = 1024 }; /* a long index page must not make the choice slow */

static bool add(struct chooser *w, struct candidate_list *list, const struct candidate *candidate)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].strategy == candidate->strategy && str_eq(list->items[i].url, candidate->url)) {
            if (!list->items[i].obtained)
                list->items[i].obtained = candidate->obtained;
            return true; /* known already: the app names the very file that a source lists */
        }
    if (!arena_room(w->a, list))
        return false;
    list->items[list->count++] = *candidate;
    return true;
}

/* Some extensions can never run on the target's GPU, whatever the file. Absent when it can. */
static str cannot_run(struct chooser *w, const struct extension *e)
{
    const struct target *t = w->target;
    if (!e->runs_on.count || !t->archs.count)
        return (str){NULL, 0};
    for (size_t i = 0; i < t->archs.count; i++)
        if (!archs_run_on(&e->runs_on, t->archs.items[i]))
            return str_format(w->a, "%.*s runs on %.*s only; the target's GPU is %.*s", STR_ARG(e->name),
                              STR_ARG(str_join(w->a, &e->runs_on, S(", "))), STR_ARG(t->archs.items[i]));
    return (str){NULL, 0};
}

static const struct fork *fork_of(const struct need *need)
{
    return need->fork ? need->fork : need->extension ? extension_default_fork(need->extension) : NULL;
}

/* A wheel of another fork imports well and fails at the call. */
static bool same_fork(const struct need *need, str fork)
{
    const struct fork *wanted = fork_of(need);
    return !wanted || !fork.p || str_eq(wanted->name, fork);
}

static bool add_published(struct chooser *w, const struct setting *s, const struct need *need,
                          struct candidate_list *out)
{
    for (size_t i = 0; i < w->sources->count; i++) {
        const struct source *source = &w->sources->items[i];
        for (size_t k = 0; k < source->files.count; k++) {
            const struct source_file *file = &source->files.items[k];
            if (!file->extension.p || !str_eq(file->extension, need->extension->name) ||
                !same_fork(need, file->fork))
                continue;
            struct candidate c = {.strategy = STRATEGY_WHEEL,
                                  .source = source->kind,
                                  .url = file->url,
                                  .sha256 = file->sha256,
                                  .wheel = file,
                                  .python = file->python,
                                  .torch = file->torch};
            candidate_verify(w->a, s, need->extension, &c);
            const struct fork *fork = need->fork ? NULL : extension_default_fork(need->extension);
            if (fork && c.fit != FIT_NO && fork->interface.n)
                c.reason = str_format(w->a, "%.*s; it is the project %.*s, which %.*s", STR_ARG(c.reason),
                                      STR_ARG(fork->name), STR_ARG(fork->interface));
            const bool pure = strs_has(&file->name.tags.platform, S("any"));
            if (pure && need->extension->pypi == PYPI_JIT) {
                c.strategy = STRATEGY_JIT;
                c.reason = S("a wheel of Python only, which compiles its CUDA code at the first call");
                c.fit = s->target->compiler_at_run ? FIT_LIKELY : FIT_NO;
            }
            const bool room = out->count < (c.fit == FIT_NO ? UNFIT_MOST : CANDIDATES_MOST);
            if (room && !add(w, out, &c))
                return false;
        }
    }
    return true;
}

/* The wheels that the app names itself: by URL, committed, or in a start-up install. */
static bool add_own_wheels(struct chooser *w, const struct setting *s, const struct need *need,
                           struct candidate_list *out)
{
    for (size_t i = 0; i < need->obtained.count; i++) {
        const struct obtained *o = &need->obtained.items[i];
        struct candidate c = {.obtained = o, .source = SOURCE_FILE};
        if (o->wheel) {
            c.strategy = STRATEGY_COMMITTED;
            c.url = o->wheel->path;
        } else if (o->url.p && str_contains(o->url, S("://")) && str_contains(o->url, S(".whl"))) {
            c.strategy = STRATEGY_WHEEL;
            c.source = SOURCE_RELEASE;
            c.url = o->url;
            const size_t hash = str_find(o->url, S("#sha256="));
            if (hash != SIZE_MAX)
                c.sha256 = str_from_index(o->url, hash + 8);
        } else {
            continue;
        }
        if (need->extension) {
            const struct fork *theirs = o->wheel ? NULL : extension_fork(need->extension, o->url);
            candidate_verify(w->a, s, need->extension, &c);
            if (theirs && !same_fork(need, theirs->name)) {
                c.fit = FIT_NO;
                c.reason = str_format(w->a, "it is of the fork %.*s, which %.*s", STR_ARG(theirs->name),
                                      STR_ARG(theirs->interface));
            }
        } else {
            const struct extension unknown = {
                .name = need->name, .compiled = need->compiled, .torch_abi = true};
            candidate_verify(w->a, s, &unknown, &c);
        }
        if (o->wheel && o->wheel->is_pointer)
            c.reason = str_format(w->a, "%.*s; here only its Git LFS pointer is present", STR_ARG(c.reason));
        if (!add(w, out, &c))
            return false;
    }
    return true;
}

static const struct vendored_source *vendored_of(const struct need *need, const struct obtained **how)
{
    for (size_t i = 0; i < need->obtained.count; i++)
        if (need->obtained.items[i].vendored) {
            *how = &need->obtained.items[i];
            return need->obtained.items[i].vendored;
        }
    return NULL;
}

static bool add_build(struct chooser *w, const struct setting *s, const struct need *need,
                      struct candidate_list *out)
{
    const struct extension *e = need->extension;
    const struct fork *fork = fork_of(need);
    const struct obtained *how = NULL;
    const struct vendored_source *vendored = vendored_of(need, &how);
    struct candidate c = {.strategy = STRATEGY_JIT, .source = SOURCE_BUILD, .verified = VERIFIED_NO};
    const size_t index = fork ? fork->build_index : 0;
    if (e && index < e->build_count)
        c.recipe = &e->builds[index];
    if (vendored) {
        c.url = vendored->folder;
        c.obtained = how;
    } else if (c.recipe) {
        c.url = c.recipe->url;
    } else {
        return true;
    }
    const bool cuda = need->compiled != COMPILED_CPP && need->compiled != COMPILED_NONE;
    const bool links_torch = !e || e->torch_abi;
    const str source = vendored ? str_format(w->a, "its source is in %.*s", STR_ARG(vendored->folder))
                                : str_format(w->a, "from %.*s", STR_ARG(c.url));
    if (!cuda) {
        c.fit = FIT_LIKELY;
        c.reason =
            str_format(w->a, "C++ only: compiled in seconds when the app starts; %.*s", STR_ARG(source));
    } else if (!s->target->compiler_at_run) {
        c.fit = FIT_NO;
        c.reason = S("the target has no CUDA compiler at run time");
    } else if (links_torch && s->cuda.p && major_of(s->cuda) != major_of(s->target->cuda)) {
        c.fit = c.recipe && c.recipe->same_cuda_major ? FIT_NO : FIT_UNKNOWN;
        c.reason = str_format(
            w->a,
            "compiled when the app starts, with CUDA %.*s against torch's CUDA %.*s: torch's check "
            "refuses that pair unless it is silenced; %.*s",
            STR_ARG(s->target->cuda), STR_ARG(s->cuda), STR_ARG(source));
    } else if (links_torch && s->torch.p && version_less(w->a, s->torch, S("2.7")) &&
               s->target->archs.count && str_starts(s->target->archs.items[0], S("sm_12"))) {
        c.fit = FIT_NO;
        c.reason = str_format(w->a, "torch %.*s does not know the target's architecture", STR_ARG(s->torch));
    } else {
        c.fit = FIT_LIKELY;
        c.reason = str_format(w->a, "compiled when the app starts; %.*s", STR_ARG(source));
    }
    if (c.recipe && c.recipe->caveat.n && !vendored)
        c.reason = str_format(w->a, "%.*s; %.*s", STR_ARG(c.reason), STR_ARG(c.recipe->caveat));
    if (c.recipe && c.recipe->minutes > 10 && !vendored)
        c.reason =
            str_format(w->a, "%.*s; it takes about %.0f minutes", STR_ARG(c.reason), c.recipe->minutes);
    return add(w, out, &c);
}

static bool add_drop_in(struct chooser *w, const struct need *need, struct candidate_list *out)
{
    const struct extension *e = need->extension;
    const struct fork *fork = fork_of(need);
    const str module = fork && fork->drop_in.p ? fork->drop_in
                       : e && !e->fork_count   ? e->drop_in
                                               : (str){NULL, 0};
    if (!module.n)
        return true;
    const struct candidate c = {
        .strategy = STRATEGY_DROP_IN,
        .source = SOURCE_FELLOE,
        .url = str_format(w->a, "felloe.dropin:%.*s", STR_ARG(module)),
        .verified = VERIFIED_NAME,
        .fit = FIT_LIKELY,
        .reason = S("libfelloe's module of the same interface: one wheel for every Python, torch and "
                    "CUDA, and it runs on the CPU too")};
    return add(w, out, &c);
}

static bool add_kernels(struct chooser *w, const struct need *need, struct candidate_list *out)
{
    for (size_t i = 0; i < w->sources->count; i++) {
        const struct source *source = &w->sources->items[i];
        for (size_t k = 0; source->layout == LAYOUT_KERNELS && k < source->page_count; k++) {
            if (!str_eq(source->pages[k].extension, need->extension->name))
                continue;
            const struct candidate c = {.strategy = STRATEGY_KERNELS,
                                        .source = source->kind,
                                        .url = source->pages[k].url,
                                        .verified = VERIFIED_NO,
                                        .fit = FIT_UNKNOWN,
                                        .reason = S("loaded by the kernels package, which finds the build "
                                                    "for the running torch: the app's imports change")};
            if (!add(w, out, &c))
                return false;
        }
    }
    return true;
}

static bool is_obtained(const struct need *need)
{
    return need->obtained.count && need->obtained.items[0].how != OBTAINED_NONE;
}

/* Whether every import of it stands in a try that catches its absence: only then does the app run without it. */
static bool every_import_is_tried(const struct chooser *w, const struct need *need)
{
    bool any = false;
    for (size_t m = 0; m < w->space->modules.count; m++) {
        const struct py_module *module = &w->space->modules.items[m];
        for (size_t i = 0; module->reachable && i < module->imports.count; i++) {
            const struct py_import *import = &module->imports.items[i];
            const bool its = need->extension
                                 ? catalogue_by_import(w->catalogue, import->module) == need->extension
                                 : strs_has(&need->imports, import->text);
            if (!its || import->guard & GUARD_TYPE_CHECKING)
                continue;
            if (!(import->guard & GUARD_TRY))
                return false;
            any = true;
        }
    }
    return any;
}

static bool add_unneeded(struct chooser *w, const struct need *need, struct candidate_list *out)
{
    if (need->needed_at_start || !need->imported)
        return true;
    struct candidate c = {.strategy = STRATEGY_UNNEEDED,
                          .source = SOURCE_FILE,
                          .url = S(""),
                          .verified = VERIFIED_NO,
                          .fit = FIT_UNKNOWN};
    if (every_import_is_tried(w, need)) {
        c.fit = FIT_LIKELY;
        c.reason = S("every import of it is in a try: the app runs without it, perhaps with less");
    } else if (need->extension && need->extension->attention) {
        c.reason = S("imported only when its attention back end is chosen: another one can be set");
    } else {
        c.reason = S("not imported when the app starts: only the calls that reach it fail without it");
    }
    return add(w, out, &c);
}

unsigned candidate_cost(const struct need *need, const struct candidate *c)
{
    const bool own = c->obtained != NULL;
    if (c->fit == FIT_NO)
        return COST_NONE;
    switch (c->strategy) {
    case STRATEGY_WHEEL:
        return c->fit == FIT_YES ? 0 : c->fit == FIT_LIKELY ? 2 : own ? 30 : 42;
    case STRATEGY_COMMITTED:
        return c->fit == FIT_UNKNOWN ? 20 : 10;
    case STRATEGY_JIT:
        return c->fit == FIT_UNKNOWN ? 60 : 40;
    case STRATEGY_DROP_IN:
        return 50;
    case STRATEGY_KERNELS:
        return 70;
    case STRATEGY_UNNEEDED: /* what the app itself leaves out on purpose need not be compiled */
        return c->fit == FIT_LIKELY ? (is_obtained(need) ? 80 : 35) : is_obtained(need) ? 100 : 90;
    case STRATEGY_NONE:
        break;
    }
    return COST_NONE;
}

/* Better first: by cost; wheels by what the app pins, their source's place, how recent they are; else in the order found. */
static int compare(struct chooser *w, const struct need *need, const struct candidate *a,
                   const struct candidate *b)
{
    const unsigned ca = candidate_cost(need, a), cb = candidate_cost(need, b);
    if (ca != cb)
        return ca < cb ? -1 : 1;
    if (a->wheel && b->wheel) {
        struct specs asked = {0};
        for (size_t i = 0; i < need->obtained.count && !asked.count; i++)
            if (need->obtained.items[i].requirement)
                asked = need->obtained.items[i].requirement->requirement.specs;
        const bool pa = specs_contain(&asked, &a->wheel->name.version, false);
        const bool pb = specs_contain(&asked, &b->wheel->name.version, false);
        if (pa != pb)
            return pa ? -1 : 1;
        if (a->wheel->from != b->wheel->from)
            return a->wheel->from < b->wheel->from ? -1 : 1;
        if (a->wheel->page != b->wheel->page)
            return a->wheel->page < b->wheel->page ? -1 : 1;
        const int by_version = version_compare(&b->wheel->name.version, &a->wheel->name.version);
        if (by_version)
            return by_version;
    }
    (void)w;
    return str_cmp(a->url, b->url);
}

static void sort(struct chooser *w, const struct need *need, struct candidate_list *list)
{
    for (size_t i = 1; i < list->count; i++) { /* a few dozen at most matter; stable */
        const struct candidate item = list->items[i];
        size_t k = i;
        for (; k > 0 && compare(w, need, &item, &list->items[k - 1]) < 0; k--)
            list->items[k] = list->items[k - 1];
        list->items[k] = item;
    }
}

bool candidates_find(struct chooser *w, const struct setting *s, const struct need *need,
                     struct candidate_list *out)
{
    *out = (struct candidate_list){0};
    const struct extension *e = need->extension;
    const bool well = (!e || add_published(w, s, need, out)) && add_own_wheels(w, s, need, out) &&
                      add_build(w, s, need, out) && add_drop_in(w, need, out) &&
                      (!e || add_kernels(w, need, out));
    if (!well)
        return false;
    const str never = e ? cannot_run(w, e) : (str){NULL, 0};
    for (size_t i = 0; never.p && i < out->count; i++)
        if (out->items[i].strategy != STRATEGY_DROP_IN) {
            out->items[i].fit = FIT_NO;
            out->items[i].reason = never;
        }
    if (!add_unneeded(w, need, out))
        return false;
    sort(w, need, out);
    return true;
}
