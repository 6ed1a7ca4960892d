/* Front matter, pins, and the names of wheels against the target's Python, torch and GPU. */
#include "plan/judge.h"

static const str ABSENT = {NULL, 0};

static str list_text(arena *a, const struct strs *list) { return str_join(a, list, S(", ")); }

static bool target_has_python(const struct target *t, str python)
{
    for (size_t i = 0; i < t->pythons.count; i++)
        if (str_eq(major_minor(t->pythons.items[i]), major_minor(python)))
            return true;
    return t->pythons.count == 0;
}

void judge_pythons(struct judge *j, const struct strs *pythons, struct place place, str subject)
{
    struct strs fit = {0};
    size_t offered = j->target->pythons.count;
    for (size_t i = 0; i < offered; i++) {
        const str python = major_minor(j->target->pythons.items[i]);
        if (strs_has(pythons, python))
            (void)strs_add(j->a, &fit, python);
    }
    if (pythons->count == 0 || fit.count == offered || (j->python.p && strs_has(pythons, j->python)))
        return;
    const str only = fit.count ? list_text(j->a, &fit) : list_text(j->a, pythons);
    struct finding *found =
        finding_at(j->f, F111, place, subject, "%.*s fits Python %.*s only%s", STR_ARG(subject),
                   STR_ARG(only), fit.count ? "" : ", which the target does not have");
    if (fit.count == 0 || j->python.p)
        found->severity = SEVERITY_ERROR;
    if (j->python.p)
        found->what = str_format(j->a, "%.*s fits Python %.*s only, and README.md declares %.*s",
                                 STR_ARG(subject), STR_ARG(only), STR_ARG(j->python));
    if (fit.count > 0)
        found->fix = str_format(
            j->a, "Set python_version: \"%.*s\" in README.md, or take a release for another Python.",
            STR_ARG(fit.items[0]));
}

static void judge_front_values(struct judge *j)
{
    const struct front_matter *front = &j->space->front;
    const struct front_value *const numbers[] = {&front->python_version, &front->sdk_version};
    const char *const names[] = {"python_version", "sdk_version"};
    for (size_t i = 0; i < COUNT(names); i++) {
        const struct front_value *v = numbers[i];
        str head, tail;
        const bool one_dot =
            str_cut(v->text.p ? v->text : S(""), '.', &head, &tail) && str_find_char(tail, '.') == SIZE_MAX;
        if (v->text.p && !v->quoted && one_dot && str_ends(tail, S("0")))
            (void)finding_at(j->f, F113, v->place, str_from(names[i]),
                             "%s: %.*s without quotes is a number that loses its zero", names[i],
                             STR_ARG(v->text));
    }
    const struct front_value *python = &front->python_version;
    if (python->text.p && !target_has_python(j->target, python->text)) {
        struct finding *found = finding_at(j->f, F112, python->place, S("python_version"),
                                           "the target has no Python %.*s", STR_ARG(python->text));
        found->fix = str_format(j->a, "Set python_version to one of: %.*s.",
                                STR_ARG(list_text(j->a, &j->target->pythons)));
    }
    if (!j->target->schedules_gpu)
        return;
    if (front->sdk.text.p && !str_eq(front->sdk.text, S("gradio")))
        (void)finding_at(j->f, F120, front->sdk.place, front->sdk.text,
                         "sdk: %.*s cannot be scheduled on this target", STR_ARG(front->sdk.text));
    if (front->hardware.text.p)
        (void)finding_at(j->f, F121, front->hardware.place, S("hardware"), "hardware: %.*s has no effect",
                         STR_ARG(front->hardware.text));
    if (front->short_description.text.p && term_columns(str_utf8(j->a, front->short_description.text)) > 60)
        (void)finding_at(j->f, F122, front->short_description.place, S("short_description"),
                         "short_description has %zu characters",
                         term_columns(str_utf8(j->a, front->short_description.text)));
}

/* Whether the file that we took for the app is one that a person would declare: it makes a Gradio page, or is named so. */
static bool looks_like_an_app(const struct space *s)
{
    static const str WORDS[] = {S_INIT("gradio"), S_INIT("demo"), S_INIT("app"), S_INIT("webui")};
    const str base = path_base(s->app_file);
    for (size_t i = 0; i < COUNT(WORDS); i++)
        if (str_contains(base, WORDS[i]))
            return true;
    for (size_t i = 0; s->modules.count > 0 && i < s->modules.items[0].imports.count; i++)
        if (str_starts(s->modules.items[0].imports.items[i].module, S("gradio")))
            return true;
    return false;
}

void judge_front(struct judge *j)
{
    const struct space *s = j->space;
    judge_front_values(j);
    if (s->app_file_declared && !s->app_file_exists)
        (void)finding_at(j->f, F118, s->front.app_file.place, s->app_file,
                         "app_file: %.*s is not in the folder", STR_ARG(s->app_file));
    else if (!s->app_file.p ||
             (!s->app_file_declared && !str_eq(s->app_file, S("app.py")) && !looks_like_an_app(s)))
        (void)finding_at(j->f, F118, (struct place){.file = ABSENT}, S("app.py"),
                         "there is no app.py, and README.md names no app_file%s%.*s",
                         s->app_file.p ? "; taken for the app here: " : "",
                         STR_ARG(s->app_file.p ? s->app_file : S("")));
    else if (!s->app_file_declared && !str_eq(s->app_file, S("app.py")))
        (void)finding_at(j->f, F126, (struct place){.file = s->app_file}, s->app_file,
                         "%.*s is taken for the app; README.md does not name it", STR_ARG(s->app_file));
    for (size_t i = 0; i < s->vendored_platform.count; i++) {
        const str file = s->vendored_platform.items[i];
        const str package = str_slice(file, 0, str_find_char(file, '/'));
        (void)finding_at(j->f, F115, (struct place){.file = file}, package,
                         "the folder %.*s hides the platform's package of that name", STR_ARG(package));
    }
    if (!s->has_requirements)
        for (size_t i = 0; i < s->other_requirements.count; i++)
            (void)finding_at(j->f, F123, (struct place){.file = s->other_requirements.items[i]},
                             s->other_requirements.items[i],
                             "%.*s is not installed: there is no requirements.txt at the root",
                             STR_ARG(s->other_requirements.items[i]));
}

static struct finding *at_line(struct judge *j, enum finding_code code, const struct requirement_line *line,
                               str subject, str what)
{
    struct finding *found = finding_at(j->f, code, line->place, subject, "%.*s", STR_ARG(what));
    found->excerpt = line->text;
    return found;
}

static str spec_text(struct judge *j, const struct requirement_line *line)
{
    str head, tail;
    (void)str_cut(line->text, ';', &head, &tail);
    (void)j;
    return str_trim(head);
}

/* The torch that a release of its family belongs to; absent when the table does not know. */
static str family_torch(struct judge *j, str distribution, const struct version *version)
{
    const struct yaml *rows = yaml_get(&j->limits, "torch_family");
    const char *name = str_c(j->a, distribution);
    const str wanted = version_public(j->a, version);
    for (size_t i = 0; rows && i < rows->count; i++) {
        const struct strs releases = yaml_strs(j->a, &rows->items[i], name);
        for (size_t r = 0; r < releases.count; r++) {
            struct version release;
            if (version_parse(j->a, releases.items[r], &release) &&
                str_eq(version_public(j->a, &release), wanted))
                return yaml_str(&rows->items[i], "torch");
        }
    }
    return ABSENT;
}

static str accepted_torch(struct judge *j)
{
    struct strs list = {0};
    for (size_t i = 0; i < j->target->torch_count; i++)
        (void)strs_add(j->a, &list, j->target->torch[i].version);
    return list_text(j->a, &list);
}

static void judge_torch_line(struct judge *j, const struct requirement_line *line)
{
    bool taken = j->target->torch_count == 0;
    for (size_t i = 0; i < j->target->torch_count && !taken; i++) {
        struct version offer;
        taken = version_parse(j->a, j->target->torch[i].version, &offer) &&
                specs_contain(&line->requirement.specs, &offer, true);
    }
    if (taken)
        return;
    struct finding *found = at_line(j, F110, line, spec_text(j, line),
                                    str_format(j->a, "%.*s is not among the versions that the target takes",
                                               STR_ARG(spec_text(j, line))));
    found->fix = str_format(j->a, "Pin one of %.*s, or leave torch out.", STR_ARG(accepted_torch(j)));
}

static void judge_family(struct judge *j, const struct requirement_line *line)
{
    struct version pin;
    const struct strs unpinned = yaml_strs(j->a, &j->limits, "unpinned_with_torch");
    if (j->torch_pin.p && strs_has(&unpinned, line->name) && line->requirement.specs.count == 0) {
        (void)at_line(j, F116, line, line->name,
                      str_format(j->a, "%.*s has no version beside torch==%.*s", STR_ARG(line->name),
                                 STR_ARG(j->torch_pin)));
        return;
    }
    if (!specs_pin(&line->requirement.specs, &pin))
        return;
    const str torch = family_torch(j, line->name, &pin);
    if (!torch.p)
        return;
    if (j->target->torch_count > 0 && !target_torch(j->target, torch)) {
        struct finding *found =
            at_line(j, F110, line, spec_text(j, line),
                    str_format(j->a, "%.*s is built for torch %.*s, which the target does not take",
                               STR_ARG(spec_text(j, line)), STR_ARG(torch)));
        found->fix = str_format(j->a, "Take the release for one of torch %.*s.", STR_ARG(accepted_torch(j)));
    } else if (j->torch_pin.p && !str_eq(j->torch_pin, torch)) {
        (void)at_line(j, F125, line, line->name,
                      str_format(j->a, "%.*s is built for torch %.*s, and torch is pinned to %.*s",
                                 STR_ARG(spec_text(j, line)), STR_ARG(torch), STR_ARG(j->torch_pin)));
    }
}

static void judge_platform_package(struct judge *j, const struct requirement_line *line)
{
    if (!strs_has(&j->target->pinned_by_platform, line->name) || line->requirement.specs.count == 0)
        return;
    struct version pin;
    const bool workaround =
        str_eq(line->name, S("huggingface-hub")) && specs_pin(&line->requirement.specs, &pin) &&
        str_eq(version_public(j->a, &pin), S("0.25.0")); /* known to be needed by old Gradio */
    if (!workaround)
        (void)at_line(j, F114, line, line->name,
                      str_format(j->a, "%.*s is the platform's own: the version given here loses or clashes",
                                 STR_ARG(line->name)));
}

static void judge_python_limit(struct judge *j, const struct requirement_line *line)
{
    const struct yaml *rows = yaml_get(&j->limits, "pythons");
    struct version pin;
    if (!specs_pin(&line->requirement.specs, &pin))
        return;
    for (size_t i = 0; rows && i < rows->count; i++) {
        struct specs versions = {0};
        size_t at;
        const char *expected;
        if (!str_eq(yaml_str(&rows->items[i], "distribution"), line->name) ||
            !specs_parse(j->a, yaml_str(&rows->items[i], "versions"), &versions, &at, &expected) ||
            !specs_contain(&versions, &pin, true))
            continue;
        const struct strs pythons = yaml_strs(j->a, &rows->items[i], "pythons");
        judge_pythons(j, &pythons, line->place, spec_text(j, line));
        return;
    }
}

/* Whether the versions that the line takes are known to lack code for the target's GPU. */
static bool lacks_arch(struct judge *j, const struct extension *e, const struct version *version, str *archs)
{
    if (j->target->archs.count == 0)
        return false;
    for (size_t i = 0; i < e->arch_count; i++) {
        const struct arch_fact *fact = &e->archs[i];
        if (fact->versions.n > 0 && !specs_contain(&fact->specs, version, true))
            continue;
        *archs = list_text(j->a, &fact->archs);
        return fact->archs.count > 0 && !archs_run_on(&fact->archs, j->target->archs.items[0]);
    }
    return false;
}

static void judge_arch_risk(struct judge *j, const struct extension *e, const struct version *version,
                            struct place place, str subject)
{
    str archs;
    if (lacks_arch(j, e, version, &archs))
        (void)finding_at(j->f, F272, place, subject, "%.*s is published for %.*s; the target has %.*s",
                         STR_ARG(subject), STR_ARG(archs), STR_ARG(j->target->archs.items[0]));
}

static void judge_extension_line(struct judge *j, const struct requirement_line *line)
{
    const struct fork *fork = NULL;
    const bool named = line->kind == REQUIREMENT_NAMED;
    const struct extension *e = named ? catalogue_by_distribution(j->catalogue, line->name)
                                      : catalogue_by_repository(j->catalogue, line->url, &fork);
    if (!e && line->name.p)
        e = catalogue_by_distribution(j->catalogue, line->name);
    if (!e)
        return;
    const bool source = line->kind == REQUIREMENT_VCS || line->kind == REQUIREMENT_PATH ||
                        (named && (e->pypi == PYPI_SDIST || e->pypi == PYPI_FETCHES)) ||
                        (line->kind == REQUIREMENT_URL && !str_contains(line->url, S(".whl")));
    if (source && e->compiled == COMPILED_CUDA && !j->target->compiler_at_build) {
        const str how = line->kind == REQUIREMENT_VCS ? S("from a repository")
                        : named                       ? S("from its sdist")
                                                      : S("from source");
        (void)at_line(
            j, F301, line, e->name,
            str_format(j->a,
                       "%.*s is compiled with CUDA %.*s when it is installed, and there is no nvcc then",
                       STR_ARG(e->name), STR_ARG(how)));
    } else if (named && (e->pypi == PYPI_JIT || e->jit_at_first_use) && j->target->schedules_gpu) {
        (void)at_line(j, F312, line, e->name,
                      str_format(j->a, "%.*s compiles itself at its first use", STR_ARG(e->name)));
    }
    struct version pin;
    if (named && specs_pin(&line->requirement.specs, &pin))
        judge_arch_risk(j, e, &pin, line->place, spec_text(j, line));
}

void judge_pins(struct judge *j)
{
    for (size_t i = 0; i < j->space->requirements.count; i++) {
        const struct requirement_line *line = &j->space->requirements.items[i];
        if (!line->applies || line->constraint)
            continue;
        if (line->kind == REQUIREMENT_PATH && !j->target->compiler_at_build && j->target->schedules_gpu)
            (void)at_line(j, F124, line, line->text,
                          str_format(j->a, "%.*s is not there when requirements.txt is installed",
                                     STR_ARG(line->text)));
        if (line->kind == REQUIREMENT_NAMED) {
            if (str_eq(line->name, S("torch")))
                judge_torch_line(j, line);
            else
                judge_family(j, line);
            judge_platform_package(j, line);
            judge_python_limit(j, line);
        }
        if (line->kind == REQUIREMENT_NAMED || line->kind == REQUIREMENT_VCS ||
            line->kind == REQUIREMENT_URL || line->kind == REQUIREMENT_PATH)
            judge_extension_line(j, line);
    }
}

/* ---- Wheels by their names ---- */

struct wheel_seen {
    const struct wheel_name *name;
    struct place place;
    str spec; /* the file's name or URL */
};

static void judge_wheel_python(struct judge *j, const struct wheel_seen *w, str subject)
{
    struct strs pythons = {0};
    for (size_t i = 0; i < w->name->tags.python.count; i++) {
        const str tag = w->name->tags.python.items[i];
        uint64_t minor = 0;
        if (!str_starts(tag, S("cp3")) || !str_to_u64(str_from_index(tag, 3), &minor) ||
            strs_has(&w->name->tags.abi, S("abi3")))
            return; /* py3, abi3: fits more than one */
        (void)strs_add(j->a, &pythons, str_format(j->a, "3.%llu", (unsigned long long)minor));
    }
    if (!j->python.p || strs_has(&pythons, j->python)) {
        judge_pythons(j, &pythons, w->place, w->name->file);
        return;
    }
    struct finding *found =
        finding_at(j->f, F270, w->place, subject, "%.*s is for Python %.*s, and README.md declares %.*s",
                   STR_ARG(w->name->file), STR_ARG(list_text(j->a, &pythons)), STR_ARG(j->python));
    found->excerpt = w->spec;
}

static bool fits_platform(struct judge *j, const struct wheel_name *name)
{
    for (size_t i = 0; i < name->tags.platform.count; i++) {
        const str platform = name->tags.platform.items[i];
        if (str_eq(platform, S("any")) ||
            (str_ends(platform, j->target->machine) && str_contains(platform, S("linux"))))
            return true;
    }
    return false;
}

static void judge_wheel_torch(struct judge *j, const struct wheel_seen *w, const struct extension *e)
{
    const struct wheel_build *build = &w->name->build;
    if (build->cxx11abi == 0 && j->target->torch_count > 0)
        (void)finding_at(j->f, F274, w->place, e->name, "%.*s uses the old std::string ABI (cxx11abiFALSE)",
                         STR_ARG(w->name->file));
    if (!e->torch_abi)
        return;
    if (!build->torch.p) {
        (void)finding_at(j->f, F271, w->place, e->name,
                         "the name of %.*s does not say which torch it was built for",
                         STR_ARG(w->name->file));
    } else if (j->torch_pin.p && !build->torch_is_minimum &&
               !str_eq(major_minor(build->torch), major_minor(j->torch_pin)) &&
               !(build->torch_other.p &&
                 str_eq(major_minor(build->torch_other), major_minor(j->torch_pin)))) {
        (void)finding_at(j->f, F275, w->place, e->name,
                         "%.*s is built for torch %.*s, and torch is pinned to %.*s", STR_ARG(w->name->file),
                         STR_ARG(build->torch), STR_ARG(j->torch_pin));
    }
    if (!j->torch_pin.p)
        (void)finding_at(j->f, F117, (struct place){.file = ABSENT}, e->name,
                         "%.*s comes as a compiled wheel, and torch is not pinned", STR_ARG(e->name));
}

static void judge_wheel(struct judge *j, const struct wheel_seen *w)
{
    const struct extension *e = catalogue_by_distribution(j->catalogue, w->name->distribution);
    const str subject = e ? e->name : w->name->name;
    judge_wheel_python(j, w, subject);
    if (!fits_platform(j, w->name))
        (void)finding_at(j->f, F273, w->place, subject, "%.*s is for %.*s; the target is Linux %.*s",
                         STR_ARG(w->name->file), STR_ARG(list_text(j->a, &w->name->tags.platform)),
                         STR_ARG(j->target->machine));
    if (!e)
        return;
    judge_wheel_torch(j, w, e);
    judge_arch_risk(j, e, &w->name->version, w->place, e->name);
}

void judge_wheels(struct judge *j)
{
    const struct space *s = j->space;
    struct strs seen = {
        0}; /* a committed wheel that a start-up command installs is judged there: that line is to be changed */
    for (size_t i = 0; i < s->installs.count; i++)
        for (size_t c = 0; c < s->installs.items[i].commands.count; c++) {
            const struct install_command *command = &s->installs.items[i].commands.items[c];
            for (size_t t = 0; command->kind == INSTALL_PIP && t < command->targets.count; t++) {
                struct wheel_name *name = arena_array(j->a, struct wheel_name, 1);
                str why;
                if (!name || !str_contains(command->targets.items[t], S(".whl")) ||
                    !wheel_name_parse(j->a, command->targets.items[t], name, &why))
                    continue;
                (void)strs_add(j->a, &seen, name->file);
                judge_wheel(
                    j, &(struct wheel_seen){name, s->installs.items[i].place, command->targets.items[t]});
            }
        }
    for (size_t i = 0; i < s->requirements.count; i++) {
        const struct requirement_line *line = &s->requirements.items[i];
        struct wheel_name name;
        str why;
        if ((line->kind != REQUIREMENT_URL && line->kind != REQUIREMENT_PATH) || !line->applies ||
            !str_contains(line->url, S(".whl")))
            continue;
        if (str_contains(line->url, S("/blob/")))
            (void)at_line(j, F276, line, line->name.p ? line->name : line->text,
                          S("the address is that of a page about the file: /blob/ has to be /resolve/"));
        if (wheel_name_parse(j->a, line->url, &name, &why))
            judge_wheel(j, &(struct wheel_seen){&name, line->place, line->text});
        else
            (void)at_line(j, F276, line, line->text,
                          str_format(j->a, "not a wheel's name: %.*s", STR_ARG(why)));
    }
    for (size_t i = 0; i < s->wheels.count; i++) {
        const struct committed_wheel *wheel = &s->wheels.items[i];
        const struct place place = {.file = wheel->path};
        if (!wheel->valid)
            (void)finding_at(j->f, F276, place, wheel->path, "not a wheel's name: %.*s", STR_ARG(wheel->why));
        else if (wheel->is_pointer)
            (void)finding_at(j->f, F276, place, wheel->name.name,
                             "is a Git LFS pointer of %llu bytes, not the wheel",
                             (unsigned long long)wheel->size);
        if (wheel->valid && !strs_has(&seen, wheel->name.file))
            judge_wheel(j, &(struct wheel_seen){&wheel->name, place, wheel->path});
    }
}
