/* GPU functions: durations, sizes, what crosses the process boundary, CUDA in the wrong process, allocator settings. */
#include "plan/judge.h"

struct duration_family {
    str family;
    double least, most;
};

static bool imports_module(const struct space *s, const struct strs *names)
{
    for (size_t m = 0; m < s->modules.count; m++)
        for (size_t i = 0; i < s->modules.items[m].imports.count; i++) {
            str head, tail;
            (void)str_cut(s->modules.items[m].imports.items[i].module, '.', &head, &tail);
            if (strs_has(names, head))
                return true;
        }
    return false;
}

static bool duration_family_of(struct judge *j, str function, struct duration_family *out)
{
    const struct yaml *rows = yaml_get(&j->limits, "durations");
    const str name = str_lower(j->a, function);
    for (size_t i = 0; rows && i < rows->count; i++) {
        const struct strs modules = yaml_strs(j->a, &rows->items[i], "modules");
        const struct strs words = yaml_strs(j->a, &rows->items[i], "words");
        bool named = false;
        for (size_t w = 0; w < words.count && !named; w++)
            named = str_contains(name, words.items[w]);
        if (!named || !imports_module(j->space, &modules))
            continue;
        *out = (struct duration_family){yaml_str(&rows->items[i], "family"),
                                        yaml_number(&rows->items[i], "least", 0),
                                        yaml_number(&rows->items[i], "most", 0)};
        return true;
    }
    return false;
}

static void judge_duration(struct judge *j, const struct gpu_function *g)
{
    struct duration_family family;
    if (g->duration_kind == DURATION_DYNAMIC || g->duration_kind == DURATION_UNKNOWN || g->installs)
        return;
    const double seconds = g->duration_kind == DURATION_DEFAULT && j->target->duration_default > 0
                               ? j->target->duration_default
                               : g->duration;
    if (j->target->duration_max > 0 && seconds > j->target->duration_max)
        (void)finding_at(j->f, F419, g->decorator, g->name, "%.*s asks for %g s; the target's cap is %g s",
                         STR_ARG(g->name), seconds, j->target->duration_max);
    if (!duration_family_of(j, g->name, &family))
        return;
    if (seconds < family.least)
        (void)finding_at(j->f, F402, g->decorator, g->name,
                         "%.*s declares %g s; %.*s usually takes %g to %g s", STR_ARG(g->name), seconds,
                         STR_ARG(family.family), family.least, family.most);
    else if (seconds > 2 * family.most)
        (void)finding_at(j->f, F403, g->decorator, g->name,
                         "%.*s declares %g s; %.*s usually takes up to %g s", STR_ARG(g->name), seconds,
                         STR_ARG(family.family), family.most);
}

static void judge_function(struct judge *j, const struct gpu_function *g)
{
    judge_duration(j, g);
    if (g->is_method)
        (void)finding_at(j->f, F404, g->decorator, g->name,
                         "%.*s is a method: its object is pickled at each call", STR_ARG(g->name));
    if (g->is_async)
        (void)finding_at(j->f, F417, g->decorator, g->name, "%.*s is a coroutine function", STR_ARG(g->name));
    if (str_eq(g->size, S("xlarge")))
        (void)finding_at(j->f, F409, g->decorator, g->name, "%.*s asks for a whole card (xlarge)",
                         STR_ARG(g->name));
    if (g->starts_process && !g->installs)
        (void)finding_at(j->f, F412, g->decorator, g->name, "%.*s starts a child process", STR_ARG(g->name));
    if (!g->calls_empty_cache && !g->installs && j->space->imports_torch && j->needs->count > 0)
        (void)finding_at(j->f, F407, g->place, g->name, "%.*s does not call torch.cuda.empty_cache()",
                         STR_ARG(g->name));
}

/* What a note becomes; those that need more than themselves are judged below. */
static const struct {
    enum note_kind kind;
    enum finding_code code;
    const char *what; /* with the note's detail as its subject */
    bool only_zero;   /* only where the target runs calls in another process */
} NOTES[] = {
    {NOTE_CUDA_INDEX, F411, "names a GPU by its number: %.*s", true},
    {NOTE_FIXED_OUTPUT, F400, "every call writes or returns the same file: %.*s", false},
    {NOTE_EAGER_EXAMPLES, F401, "%.*s calls the function at start-up, where there is no GPU", true},
    {NOTE_RETURNS_CUDA, F405, "returns what lives on the GPU: %.*s", true},
    {NOTE_RETURNS_UNPICKLABLE, F406, "returns what cannot be pickled: %.*s", true},
    {NOTE_TORCH_COMPILE, F415, "torch.compile is used: %.*s", true},
    {NOTE_SPACES_SHIM, F416, "the import of spaces has a stand-in: %.*s", true},
    {NOTE_GLOBAL_WRITE, F418, "a handler writes the global %.*s", false},
};

static void judge_note(struct judge *j, const struct note *note)
{
    for (size_t i = 0; i < COUNT(NOTES); i++) {
        if (NOTES[i].kind != note->kind || (NOTES[i].only_zero && !j->target->schedules_gpu))
            continue;
        const str subject = note->kind == NOTE_EAGER_EXAMPLES ? S("cache_examples=True") : note->detail;
        const char *what = NOTES[i].what;
        const char *slot = strstr(what, "%.*s");
        const str text = str_format(j->a, "%.*s%.*s%s", (int)(slot - what), what, STR_ARG(subject), slot + 4);
        finding_at(j->f, NOTES[i].code, note->place, subject, "%.*s", STR_ARG(text))->excerpt = note->text;
    }
    if (note->kind == NOTE_CUDA_AT_IMPORT && !note->after_spaces && !note->function.p &&
        j->target->schedules_gpu)
        finding_at(j->f, F410, note->place, note->detail, "%.*s touches CUDA before spaces is imported",
                   STR_ARG(note->detail))
            ->excerpt = note->text;
    if (note->kind == NOTE_ATTENTION) {
        const struct extension *e = NULL;
        for (size_t i = 0; i < j->catalogue->count && !e; i++)
            if (j->catalogue->items[i].attention && (str_eq(j->catalogue->items[i].backend, note->detail) ||
                                                     str_eq(j->catalogue->items[i].name, note->detail)))
                e = &j->catalogue->items[i];
        const bool third = str_eq(note->detail, S("flash_attention_3"));
        if ((third || (e && e->runs_on.count > 0 && j->target->archs.count > 0 &&
                       !archs_run_on(&e->runs_on, j->target->archs.items[0]))) &&
            j->target->archs.count > 0)
            finding_at(j->f, F413, note->place, note->detail, "%.*s cannot run on %.*s",
                       STR_ARG(note->detail), STR_ARG(j->target->archs.items[0]))
                ->excerpt = note->text;
    }
}

static bool is_allocator_setting(str name)
{
    return str_eq(name, S("PYTORCH_CUDA_ALLOC_CONF")) || str_eq(name, S("PYTORCH_ALLOC_CONF"));
}

static void judge_settings(struct judge *j)
{
    const struct space *s = j->space;
    bool expandable = false;
    size_t stages = 0;
    struct place stage = {0};
    for (size_t i = 0; i < s->environment.count; i++) {
        const struct env_setting *e = &s->environment.items[i];
        if (is_allocator_setting(e->name)) {
            expandable = expandable || (e->value.p && str_contains(e->value, S("expandable_segments:True")));
            if (e->after_torch)
                (void)finding_at(j->f, F500, e->place, e->name, "%.*s is set after torch is imported",
                                 STR_ARG(e->name));
        }
        for (size_t c = 0; e->value.p && j->target->archs.count > 0 && c < j->catalogue->count; c++) {
            const struct extension *x = &j->catalogue->items[c];
            if (x->attention && x->runs_on.count > 0 && str_eq(x->backend, e->value) &&
                !archs_run_on(&x->runs_on, j->target->archs.items[0]))
                (void)finding_at(j->f, F413, e->place, x->name, "%.*s=%.*s cannot run on %.*s",
                                 STR_ARG(e->name), STR_ARG(e->value), STR_ARG(j->target->archs.items[0]));
        }
    }
    for (size_t i = 0; i < s->notes.count; i++)
        if (s->notes.items[i].kind == NOTE_PIPELINE_STAGE && !s->notes.items[i].function.p && stages++ == 0)
            stage = s->notes.items[i].place;
    if (stages >= 2 && !expandable)
        (void)finding_at(j->f, F501, stage, S("PYTORCH_CUDA_ALLOC_CONF"),
                         "%zu models are loaded at module level without expandable segments", stages);
}

/* GPU functions that one event runs one after the other: the visitor cannot act in between. */
static void judge_chains(struct judge *j)
{
    for (size_t i = 0; i < j->space->notes.count; i++) {
        const struct note *note = &j->space->notes.items[i];
        if (note->kind == NOTE_GPU_CHAIN)
            finding_at(j->f, F408, note->place, note->detail, "one event runs %.*s one after the other",
                       STR_ARG(note->detail))
                ->excerpt = note->text;
    }
}

void judge_calls(struct judge *j)
{
    const struct space *s = j->space;
    for (size_t i = 0; i < s->notes.count; i++)
        judge_note(j, &s->notes.items[i]);
    judge_settings(j);
    if (!j->target->schedules_gpu)
        return;
    judge_chains(j);
    for (size_t i = 0; i < s->gpu_functions.count; i++)
        judge_function(j, &s->gpu_functions.items[i]);
    if (s->gpu_functions.count == 0 && s->app_file.p && s->app_file_exists)
        (void)finding_at(j->f, F119, (struct place){.file = s->app_file}, s->app_file,
                         "no function of the app is decorated with @spaces.GPU");
}
