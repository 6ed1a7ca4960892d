/* What an app's folder shows to be wrong on a target. Each part looks at the facts once and adds findings; nothing here reads files. */
#include "plan/judge.h"

str major_minor(str version)
{
    size_t dots = 0;
    for (size_t i = 0; i < version.n; i++)
        if (version.p[i] == '.' && ++dots == 2)
            return str_slice(version, 0, i);
    return version;
}

/* "sm_90a": number 90, suffix 'a'. False when it is no architecture. */
static bool arch_parse(str arch, bool *ptx, uint64_t *number, char *suffix)
{
    str digits = arch;
    *ptx = str_starts(arch, S("compute_"));
    if (*ptx || str_starts(arch, S("sm_")))
        digits = str_from_index(arch, str_find_char(arch, '_') + 1);
    *suffix = 0;
    if (digits.n > 0 && (digits.p[digits.n - 1] == 'a' || digits.p[digits.n - 1] == 'f')) {
        *suffix = digits.p[digits.n - 1];
        digits.n--;
    }
    return str_to_u64(digits, number) && *number < 10000;
}

bool archs_run_on(const struct strs *archs, str arch)
{
    bool ptx = false;
    uint64_t device = 0;
    char suffix = 0;
    if (!arch_parse(arch, &ptx, &device, &suffix))
        return true; /* not a GPU that we can judge */
    for (size_t i = 0; i < archs->count; i++) {
        uint64_t number = 0;
        if (!arch_parse(archs->items[i], &ptx, &number, &suffix))
            continue;
        const bool same_major = number / 10 == device / 10;
        const bool runs = suffix == 'a'   ? number == device
                          : suffix == 'f' ? same_major && number <= device
                          : ptx           ? number <= device
                                          : same_major && number <= device;
        if (runs)
            return true;
    }
    return false;
}

const struct need *need_of_command(const struct judge *j, const struct install_command *command)
{
    for (size_t i = 0; i < j->needs->count; i++)
        for (size_t o = 0; o < j->needs->items[i].obtained.count; o++)
            if (j->needs->items[i].obtained.items[o].command == command)
                return &j->needs->items[i];
    return NULL;
}

static void find_torch(struct judge *j)
{
    const struct requirement_list *list = &j->space->requirements;
    for (size_t i = 0; i < list->count; i++) {
        const struct requirement_line *line = &list->items[i];
        struct version pin;
        if (line->kind != REQUIREMENT_NAMED || !line->applies || !str_eq(line->name, S("torch")))
            continue;
        j->torch = line;
        if (specs_pin(&line->requirement.specs, &pin))
            j->torch_pin = version_public(j->a, &pin);
    }
}

void judge_space(arena *a, const struct catalogue *c, const struct space *s, const struct need_list *needs,
                 const struct target *t, findings *f)
{
    struct judge j = {.a = a, .catalogue = c, .space = s, .needs = needs, .target = t, .f = f};
    str path;
    if (!data_yaml(a, "limits.yaml", &j.limits, &path, f))
        return;
    j.python = s->front.python_version.text.p ? major_minor(s->front.python_version.text) : (str){NULL, 0};
    find_torch(&j);
    judge_front(&j);
    judge_pins(&j);
    judge_wheels(&j);
    judge_builds(&j);
    judge_needs(&j);
    judge_calls(&j);
}
