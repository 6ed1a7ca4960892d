/* Start-up installs and compiles, vendored sources, and what nothing installs. */
#include "plan/judge.h"

static str strip_app_dir(const struct judge *j, str path)
{
    if (j->target->app_dir.n > 0 && str_starts(path, j->target->app_dir))
        path = str_from_index(path, j->target->app_dir.n + (path.n > j->target->app_dir.n));
    while (str_starts(path, S("./")))
        path = str_from_index(path, 2);
    while (path.n > 1 && str_ends(path, S("/")))
        path.n--;
    return path;
}

static bool has_folder(const struct space *s, str folder)
{
    if (folder.n == 0 || str_eq(folder, S(".")))
        return true;
    for (size_t i = 0; i < s->files.count; i++)
        if (str_starts(s->files.items[i], folder) && s->files.items[i].n > folder.n &&
            s->files.items[i].p[folder.n] == '/')
            return true;
    return false;
}

static bool is_url(str s) { return str_contains(s, S("://")); }
static bool is_constant(str s) { return !str_contains(s, S("?")); }

/* What the command is about, for people: the extension, else the name in its first target. */
static str subject_of(struct judge *j, const struct install_call *call, const struct install_command *command)
{
    const struct need *need = need_of_command(j, command);
    if (need)
        return need->name;
    if (command->targets.count == 0)
        return call->command.n ? call->command : call->text;
    str word = command->targets.items[0], rest;
    if (str_eq(path_base(word), word) && !is_url(word)) {
        struct requirement requirement;
        size_t at;
        const char *expected;
        if (requirement_parse(j->a, word, &requirement, &at, &expected))
            return requirement.name;
        return word;
    }
    (void)str_cut(word, '#', &word, &rest);
    while (str_ends(word, S("/")))
        word.n--;
    word = path_base(word);
    const size_t at = str_find_char(word, '@'); /* repo.git@revision */
    word = str_slice(word, 0, at);
    return str_ends(word, S(".git")) ? str_slice(word, 0, word.n - 4) : word;
}

static struct finding *at_call(struct judge *j, enum finding_code code, const struct install_call *call,
                               str subject, str what)
{
    struct finding *found = finding_at(j->f, code, call->place, subject, "%.*s", STR_ARG(what));
    found->excerpt = call->text;
    return found;
}

static bool builds_from_source(struct judge *j, const struct install_command *command)
{
    if (command->kind == INSTALL_SETUP_PY)
        return true;
    if (command->kind != INSTALL_PIP)
        return false;
    const struct need *need = need_of_command(j, command);
    for (size_t i = 0; i < command->targets.count; i++) {
        const str word = command->targets.items[i];
        if (str_contains(word, S(".whl")) || str_starts(word, S("-r")))
            continue;
        if (str_contains(word, S("git+")) || str_contains(word, S("/")) || str_starts(word, S(".")))
            return true;
        if (need && need->extension &&
            (need->extension->pypi == PYPI_SDIST || need->extension->pypi == PYPI_FETCHES))
            return true;
    }
    return false;
}

/* Known to compile CUDA, or built against the torch that is there, as --no-build-isolation shows. */
static bool builds_cuda(struct judge *j, const struct install_command *command)
{
    if (!builds_from_source(j, command))
        return false;
    const struct need *need = need_of_command(j, command);
    if (need)
        return need->compiled == COMPILED_CUDA;
    return strs_has(&command->flags, S("--no-build-isolation"));
}

static bool sets_variable(const struct judge *j, const struct install_call *call, str name)
{
    for (size_t i = 0; i < call->env_count; i++)
        if (str_eq(call->env[i].name, name))
            return true;
    for (size_t i = 0; call->env_kind != ENV_REPLACED && i < j->space->environment.count; i++)
        if (str_eq(j->space->environment.items[i].name, name))
            return true;
    return false;
}

static bool skips_cuda(const struct install_call *call)
{
    for (size_t i = 0; i < call->env_count; i++)
        if (str_contains(call->env[i].name, S("SKIP_CUDA_BUILD")))
            return true;
    return false;
}

static void judge_paths(struct judge *j, const struct install_call *call,
                        const struct install_command *command)
{
    const str directory = command->directory.p ? strip_app_dir(j, command->directory) : S("");
    if (!is_constant(directory) || str_starts(directory, S("/")) || str_starts(directory, S("~")))
        return; /* outside of the app: made by an earlier command, or the platform's */
    if (!has_folder(j->space, directory)) {
        (void)at_call(
            j, F304, call, directory,
            str_format(j->a, "the command runs in %.*s, which is not in the repository", STR_ARG(directory)));
        return;
    }
    for (size_t i = 0; i < command->targets.count; i++) {
        str word = command->targets.items[i];
        const bool file =
            command->kind == INSTALL_SCRIPT || (command->kind == INSTALL_PIP && str_ends(word, S(".whl")));
        const bool folder =
            command->kind == INSTALL_SETUP_PY || (command->kind == INSTALL_PIP && str_starts(word, S("./")));
        word = strip_app_dir(j, word);
        if (!is_constant(word) || is_url(word) || str_starts(word, S("/")) || str_starts(word, S("~")))
            continue;
        const str path = strip_app_dir(j, path_normal(j->a, path_join(j->a, directory, word)));
        if (file && !space_has_file(j->space, path))
            (void)at_call(j, F305, call, path_base(path),
                          str_format(j->a, "%.*s is not in the repository", STR_ARG(path)));
        else if (folder && !file && !has_folder(j->space, path))
            (void)at_call(j, F304, call, path,
                          str_format(j->a, "%.*s is not in the repository", STR_ARG(path)));
    }
}

static void judge_environment_of(struct judge *j, const struct install_call *call, str subject)
{
    bool has_path = false;
    for (size_t i = 0; i < call->env_count; i++)
        has_path = has_path || str_eq(call->env[i].name, S("PATH"));
    if (call->env_kind == ENV_REPLACED && !has_path)
        (void)at_call(j, F306, call, subject, S("env= holds only what is given: PATH and the rest are gone"));
}

static void judge_cuda_build(struct judge *j, const struct install_call *call,
                             const struct install_command *command, str subject)
{
    if (!builds_cuda(j, command) || skips_cuda(call) || !j->target->cuda.p)
        return;
    if (!call->in_gpu_call && !sets_variable(j, call, S("TORCH_CUDA_ARCH_LIST"))) {
        struct finding *found =
            at_call(j, F308, call, subject,
                    str_format(j->a, "%.*s is built with CUDA and TORCH_CUDA_ARCH_LIST is not set",
                               STR_ARG(subject)));
        if (j->target->archs.count > 0 && j->target->archs.items[0].n > 4) {
            const str digits = str_from_index(j->target->archs.items[0], 3);
            found->fix =
                str_format(j->a, "Set TORCH_CUDA_ARCH_LIST=\"%.*s.%c+PTX\" in the environment of the build.",
                           (int)digits.n - 1, digits.p, digits.p[digits.n - 1]);
        }
    }
    const struct torch_offer *torch = j->torch_pin.p ? target_torch(j->target, j->torch_pin) : NULL;
    str torch_major, toolkit_major, rest;
    if (!torch || !torch->cuda.p)
        return;
    (void)str_cut(torch->cuda, '.', &torch_major, &rest);
    (void)str_cut(j->target->cuda, '.', &toolkit_major, &rest);
    if (!str_eq(torch_major, toolkit_major))
        (void)at_call(j, F313, call, str_format(j->a, "torch==%.*s", STR_ARG(j->torch_pin)),
                      str_format(j->a, "torch %.*s is built with CUDA %.*s and the toolkit is %.*s",
                                 STR_ARG(j->torch_pin), STR_ARG(torch->cuda), STR_ARG(j->target->cuda)));
}

/* A setup script that looks for a GPU finds none in a child process: its own switch has to be set. */
static void judge_gpu_asking(struct judge *j, const struct install_call *call,
                             const struct install_command *command)
{
    const struct need *need = need_of_command(j, command);
    for (size_t i = 0; need && i < need->obtained.count; i++) {
        const struct vendored_source *v = need->obtained.items[i].vendored;
        if (!v || !v->asks_gpu || need->obtained.items[i].command != command)
            continue;
        if (sets_variable(j, call, S("USE_CUDA")) || sets_variable(j, call, S("FORCE_CUDA")))
            continue;
        (void)at_call(j, F311, call, need->name,
                      str_format(j->a,
                                 "%.*s builds without CUDA when torch sees no GPU, as in this child process",
                                 STR_ARG(v->place.file)));
    }
}

static void judge_command(struct judge *j, const struct install_call *call,
                          const struct install_command *command)
{
    if (command->kind == INSTALL_OTHER || command->kind == INSTALL_GIT_CLONE)
        return;
    const str subject = subject_of(j, call, command);
    const struct need *need = need_of_command(j, command);
    judge_paths(j, call, command);
    judge_environment_of(j, call, subject);
    if (!call->checked)
        (void)at_call(j, F302, call, subject,
                      str_format(j->a, "%s(\"%.*s\") may fail without stopping the app",
                                 str_c(j->a, call->callee),
                                 STR_ARG(call->command.n ? call->command : S("..."))));
    if (command->kind == INSTALL_PIP && !call->in_gpu_call && (call->after_torch || call->after_spaces)) {
        struct finding *found = at_call(j, F303, call, subject,
                                        str_format(j->a, "%.*s is installed after %s is imported",
                                                   STR_ARG(subject), call->after_torch ? "torch" : "spaces"));
        if (!call->after_torch)
            found->severity = SEVERITY_INFO;
    }
    if (builds_from_source(j, command) && need && need->compiled == COMPILED_CUDA &&
        command->kind == INSTALL_PIP && !strs_has(&command->flags, S("--no-build-isolation")))
        (void)at_call(j, F307, call, subject,
                      str_format(j->a, "%.*s is built without --no-build-isolation", STR_ARG(subject)));
    judge_cuda_build(j, call, command, subject);
    judge_gpu_asking(j, call, command);
}

void judge_builds(struct judge *j)
{
    const struct space *s = j->space;
    for (size_t i = 0; i < s->installs.count; i++)
        for (size_t c = 0; c < s->installs.items[i].commands.count; c++)
            judge_command(j, &s->installs.items[i], &s->installs.items[i].commands.items[c]);
    for (size_t i = 0; i < s->gpu_functions.count; i++) {
        const struct gpu_function *g = &s->gpu_functions.items[i];
        if (g->installs)
            (void)finding_at(j->f, F309, g->decorator, g->name, "%.*s compiles or installs inside a GPU call",
                             STR_ARG(g->name));
    }
    for (size_t i = 0; i < s->vendored.count; i++) {
        const struct vendored_source *v = &s->vendored.items[i];
        if (v->foreign_suffix)
            (void)finding_at(j->f, F310, v->place, path_base(v->place.file),
                             "%.*s names the object by python3-config's suffix",
                             STR_ARG(path_base(v->place.file)));
    }
}

/* ---- What is needed ---- */

static void judge_missing(struct judge *j, const struct need *need)
{
    if (need->obtained.count != 1 || need->obtained.items[0].how != OBTAINED_NONE)
        return;
    struct finding *found =
        finding_at(j->f, F300, need->place, need->name, "%.*s is imported%s and nothing installs it",
                   STR_ARG(need->name), need->needed_at_start ? " when the app starts" : "");
    if (!need->needed_at_start)
        found->severity = SEVERITY_WARNING;
    if (need->imports.count > 0)
        found->excerpt = need->imports.items[0];
    if (need->documented_in_script.count > 0)
        found->why =
            str_format(j->a, "A script of the folder documents it (%.*s), but the platform runs no script.",
                       STR_ARG(need->documented_in_script.items[0]));
}

static void judge_architecture(struct judge *j, const struct need *need)
{
    const struct extension *e = need->extension;
    if (!e || !e->attention || e->runs_on.count == 0 || j->target->archs.count == 0 ||
        archs_run_on(&e->runs_on, j->target->archs.items[0]))
        return;
    (void)finding_at(j->f, F413, need->place, e->name, "%.*s runs on %.*s; the target has %.*s",
                     STR_ARG(e->name), STR_ARG(str_join(j->a, &e->runs_on, S(", "))),
                     STR_ARG(j->target->archs.items[0]));
}

static void judge_fork(struct judge *j, const struct need *need)
{
    if (!need->fork || need->fork->has_wheels || need->fork->is_default)
        return;
    struct finding *found =
        finding_at(j->f, F314, need->place, need->name, "the app uses the %.*s fork of %.*s (%.*s)",
                   STR_ARG(need->fork->name), STR_ARG(need->name), STR_ARG(need->fork_reason));
    if (need->fork->interface.n > 0)
        found->why = str_format(
            j->a, "Nobody publishes a wheel of it, and one of the original does not do: the fork %.*s.",
            STR_ARG(need->fork->interface));
}

/* A module that imports one of several attention libraries by a switch that the app does not set. */
static void judge_attention_default(struct judge *j)
{
    const struct yaml *switches = yaml_get(&j->limits, "attention_switches");
    const struct strs variables = yaml_strs(j->a, switches, "variables");
    const str standard = yaml_str(switches, "default");
    for (size_t i = 0; i < j->space->environment.count; i++)
        if (strs_has(&variables, j->space->environment.items[i].name))
            return;
    for (size_t m = 0; m < j->space->modules.count; m++) {
        const struct py_module *module = &j->space->modules.items[m];
        const struct py_import *wanted = NULL;
        size_t choices = 0;
        for (size_t i = 0; i < module->imports.count; i++) {
            const struct py_import *import = &module->imports.items[i];
            const struct extension *e = catalogue_by_import(j->catalogue, import->module);
            if (!e || !e->attention || !(import->guard & GUARD_CONDITION))
                continue;
            choices++;
            if (str_eq(e->name, standard))
                wanted = import;
        }
        if (!wanted || choices < 2)
            continue;
        for (size_t n = 0; n < j->needs->count; n++)
            if (str_eq(j->needs->items[n].name, standard) &&
                j->needs->items[n].obtained.items[0].how == OBTAINED_NONE) {
                (void)finding_at(j->f, F414, wanted->place, standard,
                                 "%.*s is taken unless %.*s says otherwise, and nothing installs it",
                                 STR_ARG(standard), STR_ARG(str_join(j->a, &variables, S(" or "))));
                return;
            }
    }
}

void judge_needs(struct judge *j)
{
    for (size_t i = 0; i < j->needs->count; i++) {
        judge_missing(j, &j->needs->items[i]);
        judge_architecture(j, &j->needs->items[i]);
        judge_fork(j, &j->needs->items[i]);
    }
    judge_attention_default(j);
}
