/* Targets as data/targets.yaml describes them. The file can come from --data, so faults in it have their place. */
#include "target/target.h"

struct reader {
    arena *a;
    str path;
    findings *f;
};

static bool refuse(const struct reader *r, const struct yaml *at, const char *what, str value)
{
    const struct place place = {r->path, at->line, at->column};
    return finding_fatal(r->f, 3, F005, place, "%s: %.*s", what, STR_ARG(value));
}

static const struct yaml *list_of(const struct yaml *map, const char *key)
{
    static const struct yaml EMPTY = {.kind = YAML_LIST};
    const struct yaml *list = yaml_get(map, key);
    return list && list->kind == YAML_LIST ? list : &EMPTY;
}

/* "13.0" and the like, as every version in the file is compared. */
static bool dotted_number(str s)
{
    size_t digits = 0, dots = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '.' && digits) {
            dots++;
            digits = 0;
        } else if (s.p[i] >= '0' && s.p[i] <= '9') {
            digits++;
        } else {
            return false;
        }
    }
    return digits && dots >= 1 && dots <= 3;
}

static bool versions_sound(const struct reader *r, const struct yaml *at, const struct strs *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (!dotted_number(list->items[i]))
            return refuse(r, at, "expected a version such as 3.12.12, got", list->items[i]);
    return true;
}

static bool read_torch(const struct reader *r, const struct yaml *map, struct target *t)
{
    const struct yaml *list = list_of(map, "torch");
    t->torch = arena_array(r->a, struct torch_offer, list->count);
    for (size_t i = 0; t->torch && i < list->count; i++) {
        const struct yaml *item = &list->items[i];
        struct torch_offer *offer = &t->torch[t->torch_count++];
        *offer = (struct torch_offer){.version = yaml_str(item, "version"),
                                      .cuda = yaml_str(item, "cuda"),
                                      .archs = yaml_strs(r->a, item, "archs")};
        if (!dotted_number(offer->version))
            return refuse(r, item, "expected a torch version such as 2.11.0, got", offer->version);
        if (offer->cuda.p && !dotted_number(offer->cuda))
            return refuse(r, item, "expected a CUDA version such as 13.0, got", offer->cuda);
    }
    return true;
}

static bool read_sizes(const struct reader *r, const struct yaml *map, struct target *t)
{
    const struct yaml *list = list_of(map, "sizes");
    t->sizes = arena_array(r->a, struct gpu_size, list->count);
    for (size_t i = 0; t->sizes && i < list->count; i++) {
        const struct yaml *item = &list->items[i];
        struct gpu_size *size = &t->sizes[t->size_count++];
        *size = (struct gpu_size){.name = yaml_str(item, "name"),
                                  .memory_gb = yaml_number(item, "memory_gb", 0),
                                  .quota_factor = yaml_number(item, "quota_factor", 1)};
        if (!size->name.n)
            return refuse(r, item, "a size needs the key", S("name"));
    }
    return true;
}

static bool read_target(const struct reader *r, const struct yaml *map, struct target *t)
{
    const struct yaml *build = yaml_get(map, "build"), *run = yaml_get(map, "run");
    *t = (struct target){.name = yaml_str(map, "name"),
                         .description = yaml_str(map, "description"),
                         .date = yaml_str(map, "date"),
                         .source = yaml_str(map, "source"),
                         .pythons = yaml_strs(r->a, map, "pythons"),
                         .python_default = yaml_str(map, "python_default"),
                         .torch_default = yaml_str(map, "torch_default"),
                         .cuda = yaml_str(map, "cuda"),
                         .cuda_home = yaml_str(map, "cuda_home"),
                         .archs = yaml_strs(r->a, map, "archs"),
                         .driver_cuda = yaml_number(map, "driver_cuda", 0),
                         .glibc = yaml_str(map, "glibc"),
                         .glibcxx = yaml_str(map, "glibcxx"),
                         .cxxabi = yaml_str(map, "cxxabi"),
                         .machine = yaml_str(map, "machine"),
                         .compiler_at_build = yaml_bool(build, "cuda_compiler", false),
                         .gpu_at_build = yaml_bool(build, "gpu", false),
                         .compiler_at_run = yaml_bool(run, "cuda_compiler", false),
                         .gpu_at_import = yaml_bool(run, "gpu", false),
                         .preinstalled = yaml_strs(r->a, map, "preinstalled"),
                         .pinned_by_platform = yaml_strs(r->a, map, "pinned_by_platform"),
                         .size_default = yaml_str(map, "size_default"),
                         .duration_default = yaml_number(map, "duration_default", 0),
                         .duration_max = yaml_number(map, "duration_max", 0),
                         .app_dir = yaml_str(map, "app_dir"),
                         .libraries = yaml_strs(r->a, map, "libraries"),
                         .schedules_gpu = yaml_bool(map, "schedules_gpu", false),
                         .raw = map};
    if (!t->name.n)
        return refuse(r, map, "a target needs the key", S("name"));
    if (t->glibc.p && !dotted_number(t->glibc))
        return refuse(r, map, "expected a glibc version such as 2.36, got", t->glibc);
    if (t->cuda.p && !dotted_number(t->cuda))
        return refuse(r, map, "expected a CUDA version such as 13.0, got", t->cuda);
    return versions_sound(r, map, &t->pythons) && read_torch(r, map, t) && read_sizes(r, map, t);
}

bool targets_read(arena *a, struct target_list *out, findings *f)
{
    struct yaml *document = arena_array(a, struct yaml, 1); /* kept: each target's raw points into it */
    struct reader r = {.a = a, .f = f};
    if (!document || !data_yaml(a, "targets.yaml", document, &r.path, f))
        return false;
    const struct yaml *list = yaml_get(document, "targets");
    if (!list || list->kind != YAML_LIST)
        return refuse(&r, document, "expected a list under the key", S("targets"));
    struct target_list targets = {0};
    for (size_t i = 0; i < list->count; i++) {
        if (!arena_room(a, &targets))
            return refuse(&r, &list->items[i], "too many entries under", S("targets"));
        if (list->items[i].kind != YAML_MAP)
            return refuse(&r, &list->items[i], "expected a map of keys and values, got", list->items[i].text);
        if (!read_target(&r, &list->items[i], &targets.items[targets.count]))
            return false;
        targets.count++;
    }
    *out = targets;
    return true;
}

const struct target *target_find(arena *a, str name, findings *f)
{
    if (str_eq(name, S("this"))) {
        struct target *here = arena_array(a, struct target, 1);
        return here && target_detect(a, here, f) ? here : NULL;
    }
    struct target_list list = {0};
    if (!targets_read(a, &list, f))
        return NULL;
    const struct target *nearest = NULL;
    size_t distance = SIZE_MAX;
    for (size_t i = 0; i < list.count; i++) {
        if (str_eq_nocase(list.items[i].name, name))
            return list.items + i; /* in the arena, as the list itself is not */
        const size_t d = str_distance(list.items[i].name, name);
        if (d < distance) {
            distance = d;
            nearest = &list.items[i];
        }
    }
    const bool close = nearest && distance <= 2 + name.n / 3;
    (void)finding_at(f, F130, (struct place){0}, name, "there is no target '%.*s'%s%.*s%s", STR_ARG(name),
                     close ? "; did you mean '" : "", STR_ARG(close ? nearest->name : S("")),
                     close ? "'?" : "");
    return NULL;
}

/* 2.11 is 2.11.0: trailing zeros say nothing. */
static bool same_version(str a, str b)
{
    while (str_ends(a, S(".0")))
        a = str_slice(a, 0, a.n - 2);
    while (str_ends(b, S(".0")))
        b = str_slice(b, 0, b.n - 2);
    return str_eq(a, b);
}

const struct torch_offer *target_torch(const struct target *t, str version)
{
    str public, local;
    (void)str_cut(version, '+', &public, &local);
    for (size_t i = 0; i < t->torch_count; i++)
        if (same_version(t->torch[i].version, public))
            return &t->torch[i];
    return NULL;
}

bool target_tags(arena *a, const struct target *t, unsigned python_minor, struct tag_list *out)
{
    struct tag_env env = {.minor = python_minor, .machine = t->machine.n ? t->machine : S("x86_64")};
    str major, minor;
    uint64_t numbers[2] = {0, 0};
    if (t->glibc.n && str_cut(t->glibc, '.', &major, &minor) && str_to_u64(major, &numbers[0]) &&
        str_to_u64(minor, &numbers[1]) && numbers[0] < 100 && numbers[1] < 1000) {
        env.glibc_major = (unsigned)numbers[0];
        env.glibc_minor = (unsigned)numbers[1];
    }
    return tags_supported(a, &env, out);
}
