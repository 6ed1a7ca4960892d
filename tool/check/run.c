/* All files of one command: expanded, read at the same time, judged. */
#include "check/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS_MOST = 16, FILES_MOST = 20000, REMOTE_AT_ONCE = 8 };

static bool is_address(str file) { return str_starts(file, S("http://")) || str_starts(file, S("https://")); }

static bool is_checked(str name)
{
    return str_ends(name, S(".whl")) || str_ends(name, S(".so")) || str_contains(path_base(name), S(".so."));
}

static bool expand(arena *a, const struct check_options *o, const struct strs *files, struct strs *out,
                   findings *f)
{
    for (size_t i = 0; i < files->count; i++) {
        struct walk_list list = {0};
        const str file = files->items[i];
        if (o->names_only || is_address(file) || !dir_exists(file)) {
            if (!strs_add(a, out, file))
                return finding_add(f, F006, file, "there are too many files");
            continue;
        }
        if (!dir_walk(a, file, FILES_MOST, &list, f))
            return false;
        const size_t before = out->count;
        for (size_t k = 0; k < list.count; k++)
            if (!list.items[k].is_dir && !list.items[k].is_link && is_checked(list.items[k].path))
                (void)strs_add(a, out, path_join(a, file, list.items[k].path));
        if (out->count == before)
            return finding_fatal(f, 3, F001, (struct place){.file = file},
                                 "no wheel or shared object is in this folder");
    }
    return true;
}

struct pool {
    const struct check_env *env;
    const struct strs *files;
    struct check_report *report;
    size_t threads_each;
    atomic_size_t next;
};

static void check_one(const struct check_env *env, str file, size_t threads, arena *a, struct check_file *out)
{
    str why = {NULL, 0};
    out->file = file;
    out->findings = findings_new(a);
    const str base = path_base(file);
    const bool object = (str_ends(base, S(".so")) || str_contains(base, S(".so."))) && !is_address(file);
    out->named = !object && wheel_name_parse(a, file, &out->name, &why);
    if (!object && !out->named) {
        const bool other = !env->options->names_only && !is_address(file) && !str_ends(file, S(".whl"));
        (void)finding_fatal(out->findings, 3, other ? F001 : F276, (struct place){.file = file}, "%.*s",
                            STR_ARG(why.p ? why : S("it is no wheel")));
        out->verdict = CHECK_BROKEN;
        return;
    }
    if (env->options->names_only)
        check_judge_name(a, env, out);
    else if (check_read(a, env, file, threads, out))
        check_judge(a, env, out);
}

static void *work(void *context)
{
    struct pool *p = context;
    for (size_t i = atomic_fetch_add(&p->next, 1); i < p->files->count; i = atomic_fetch_add(&p->next, 1))
        check_one(p->env, p->files->items[i], p->threads_each, p->report->arenas[i], &p->report->files[i]);
    return NULL;
}

static void run_pool(struct pool *p, size_t threads)
{
    pthread_t ids[THREADS_MOST];
    size_t started = 0;
    while (started + 1 < threads && started < THREADS_MOST &&
           pthread_create(&ids[started], NULL, work, p) == 0)
        started++;
    (void)work(p);
    while (started > 0)
        (void)pthread_join(ids[--started], NULL);
}

static bool has_torch(const struct abi *abi, arena *a, str torch)
{
    const str release = str_format(a, "torch %.*s", STR_ARG(torch));
    for (size_t i = 0; i < abi_source_count(abi); i++)
        if (str_eq(abi_source_at(abi, i)->release, release))
            return true;
    return false;
}

/* "2.11" means the newest patch of it that there is a profile of. */
static str full_torch(arena *a, const struct abi *abi, str torch)
{
    struct version v;
    if (!version_parse(a, torch, &v) || v.release_count != 2)
        return torch;
    const str prefix = str_format(a, "torch %.*s.", STR_ARG(torch));
    str best = torch;
    for (size_t i = 0; i < abi_source_count(abi); i++) {
        const str release = abi_source_at(abi, i)->release;
        if (str_starts(release, prefix) &&
            (best.n == torch.n || elf_version_cmp(best, str_from_index(release, 6)) < 0))
            best = str_from_index(release, 6);
    }
    return best;
}

bool check_files(arena *a, const struct check_options *options, const struct strs *files,
                 struct check_report *out, findings *f)
{
    struct check_env env = {.options = options, .torch = options->torch};
    struct check_report report = {.target = options->target};
    struct strs all = {0};
    struct abi *abi = NULL;
    if (!wheel_dialects_load(f) || !expand(a, options, files, &all, f) || !abi_data(a, &abi, f))
        return false;
    env.abi = abi;
    if (!env.torch.p)
        env.torch = options->target->torch_default;
    if (options->against.p && !check_environment(a, options->against, abi, &env.abi, &env.torch, f))
        return false;
    env.torch = full_torch(a, env.abi, env.torch);
    env.torch_known = has_torch(env.abi, a, env.torch);
    report.files = arena_array(a, struct check_file, all.count);
    report.arenas = arena_array(a, struct arena *, all.count);
    if (!report.files || !report.arenas)
        return finding_add(f, F006, (str){NULL, 0}, "there are too many files");
    report.count = all.count;
    bool remote = false;
    for (size_t i = 0; i < all.count; i++) {
        report.arenas[i] = arena_new(0);
        remote = remote || is_address(all.items[i]);
    }
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const size_t threads = options->threads ? options->threads : processors > 0 ? (size_t)processors : 1;
    /* Remote files wait for the network; local ones share the processors. The handle kept open meanwhile is what makes
     * libcurl's global set-up happen once, on this thread. */
    const struct http_options none = {.offline = options->offline};
    http *keeper = remote ? http_new(&none) : NULL;
    struct pool pool = {.env = &env, .files = &all, .report = &report};
    const size_t at_once = remote ? REMOTE_AT_ONCE : all.count < threads ? all.count : threads;
    pool.threads_each = threads / (at_once ? at_once : 1) ? threads / (at_once ? at_once : 1) : 1;
    run_pool(&pool, at_once);
    http_free(keeper);
    for (size_t i = 0; i < report.count; i++) {
        const struct findings *own = report.files[i].findings;
        for (size_t k = 0; own && k < own->count; k++)
            if (arena_room(a, f))
                f->items[f->count++] = own->items[k];
        if (own && own->exit_code > f->exit_code)
            f->exit_code = own->exit_code;
    }
    *out = report;
    return true;
}

void check_report_free(struct check_report *report)
{
    for (size_t i = 0; i < report->count; i++)
        arena_free(report->arenas[i]);
    *report = (struct check_report){0};
}
