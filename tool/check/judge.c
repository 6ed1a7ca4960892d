/* The verdict: what an object asks for, against what the target has. */
#include "check/check.h"

#include <stdlib.h>

enum {
    MISSING_MOST = 1000, /* symbols listed an object */
    SHOWN = 3            /* of them in a finding */
};

const char *check_verdict_name(enum check_verdict v)
{
    static const char *const NAMES[] = {"fits",         "fits-by-ptx",     "unknown", "no-kernel",
                                        "import-error", "not-installable", "broken"};
    return NAMES[v];
}

static void worsen(enum check_verdict *v, enum check_verdict to)
{
    if (to > *v)
        *v = to;
}

struct judging {
    arena *a;
    const struct check_env *env;
    const struct target *target;
    struct check_file *file;
    struct check_object *object;
    unsigned python_minor;
    struct abi_set torch, cpython; /* sources of the release; of the Python and its stable ABI */
    struct abi_set system;         /* the C and C++ libraries, for names that carry no version */
    bool has_cpython;
    struct strs torch_brings; /* what torch's libraries need beside each other: libcudart.so.13 ... */
};

static struct finding *say(struct judging *j, enum finding_code code, str subject, const char *format, ...)
    PRINTF_LIKE(4, 5);
static struct finding *say(struct judging *j, enum finding_code code, str subject, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const str text = str_vformat(j->a, format, args);
    va_end(args);
    return finding_at(j->file->findings, code, (struct place){.file = j->file->file}, subject, "%.*s",
                      STR_ARG(text));
}

/* ---- Which libraries there are ---- */
static bool is_one_of(str name, const char *const *names)
{
    for (; *names; names++)
        if (str_eq(name, str_from(*names)))
            return true;
    return false;
}

static bool is_libc(str name)
{
    static const char *const NAMES[] = {"libc.so.6",
                                        "libm.so.6",
                                        "libpthread.so.0",
                                        "libdl.so.2",
                                        "librt.so.1",
                                        "libutil.so.1",
                                        "libresolv.so.2",
                                        "libanl.so.1",
                                        "libmvec.so.1",
                                        "ld-linux-x86-64.so.2",
                                        "ld-linux-aarch64.so.1",
                                        NULL};
    return is_one_of(name, NAMES);
}

/* "libcudart" of "libcudart.so.12": libraries of the CUDA toolkit and beside it, which come in NVIDIA's own wheels. */
static bool is_cuda_library(str name, str *stem)
{
    static const char *const NAMES[] = {"libcudart",     "libcublas",     "libcublasLt",     "libcufft",
                                        "libcurand",     "libcusolver",   "libcusparse",     "libnvrtc",
                                        "libnvJitLink",  "libcudnn",      "libnccl",         "libcupti",
                                        "libnvToolsExt", "libcusparseLt", "libcufile",       "libnppc",
                                        "libnvjpeg",     "libcusolverMg", "libnvshmem_host", NULL};
    const size_t at = str_find(name, S(".so"));
    *stem = str_slice(name, 0, at == SIZE_MAX ? name.n : at);
    return at != SIZE_MAX && is_one_of(*stem, NAMES);
}

/* The file of this name in the wheel. A SONAME does not count: the loader looks for files. */
static const struct check_object *in_wheel(const struct judging *j, str name)
{
    for (size_t i = 0; i < j->file->object_count; i++)
        if (str_eq(path_base(j->file->objects[i].elf.path), name))
            return &j->file->objects[i];
    return NULL;
}

/* Where a member is once installed, below site-packages. */
static str installed_path(str path)
{
    static const str PLACES[] = {S_INIT(".data/platlib/"), S_INIT(".data/purelib/")};
    for (size_t i = 0; i < COUNT(PLACES); i++) {
        const size_t at = str_find(path, PLACES[i]);
        if (at != SIZE_MAX && str_find_char(path, '/') == at + 5)
            return str_from_index(path, at + PLACES[i].n);
    }
    return path;
}

/* Whether a search path of `from` leads to the folder of `to`. */
static bool leads_to(arena *a, const struct elf_object *from, const struct elf_object *to)
{
    const struct strs *const lists[2] = {&from->rpath, &from->runpath};
    const str origin = path_dir(installed_path(from->path));
    const str folder = path_normal(a, path_join(a, S("/"), path_dir(installed_path(to->path))));
    for (size_t l = 0; l < 2; l++) {
        for (size_t i = 0; i < lists[l]->count; i++) {
            str path = lists[l]->items[i];
            if (str_starts(path, S("$ORIGIN")))
                path = str_from_index(path, 7);
            else if (str_starts(path, S("${ORIGIN}")))
                path = str_from_index(path, 9);
            else
                continue;
            path = str_format(a, "/%.*s%.*s", STR_ARG(origin), STR_ARG(path));
            if (str_eq(path_normal(a, path), folder))
                return true;
        }
    }
    return false;
}

/* RPATHs hold for what an object's needs need in turn, so one of any object counts. */
static bool is_found(const struct judging *j, const struct check_object *wanted)
{
    for (size_t i = 0; i < j->file->object_count; i++)
        if (leads_to(j->a, &j->file->objects[i].elf, &wanted->elf))
            return true;
    return false;
}

static size_t torch_source(const struct judging *j, str library)
{
    for (size_t i = 0; i < abi_source_count(j->env->abi); i++)
        if (abi_set_has(&j->torch, i) && str_eq(abi_source_at(j->env->abi, i)->library, library))
            return i;
    return SIZE_MAX;
}

/* A search path that leaves the wheel's own folder: NVIDIA's wheels find each other so. */
static bool looks_elsewhere(const struct elf_object *elf, str part)
{
    const struct strs *const lists[2] = {&elf->rpath, &elf->runpath};
    for (size_t l = 0; l < 2; l++)
        for (size_t i = 0; i < lists[l]->count; i++)
            if (str_contains(lists[l]->items[i], part))
                return true;
    return false;
}

static bool requires(const struct check_file *file, str prefix)
{
    for (size_t i = 0; i < file->metadata.count; i++)
        if (file->metadata.items[i].valid && str_starts(file->metadata.items[i].requirement.name, prefix))
            return true;
    return false;
}

static bool uses_torch(const struct judging *j)
{
    for (size_t i = 0; i < j->file->object_count; i++)
        for (size_t n = 0; n < j->file->objects[i].elf.needs.count; n++) {
            const str need = j->file->objects[i].elf.needs.items[n];
            if (str_starts(need, S("libtorch")) || str_starts(need, S("libc10")))
                return true;
        }
    return requires(j->file, S("torch"));
}

enum library { LIBRARY_THERE, LIBRARY_MAYBE, LIBRARY_MISSING };

static enum library judge_library(struct judging *j, str name, str *why)
{
    const struct elf_object *elf = &j->object->elf;
    str stem;
    const struct check_object *own = in_wheel(j, name);
    if ((own && is_found(j, own)) || is_libc(name) || strs_has(&j->target->libraries, name) ||
        torch_source(j, name) != SIZE_MAX)
        return LIBRARY_THERE;
    if (own) {
        *why = S("it is in the wheel, but no search path leads to it: the package has to load it first");
        return LIBRARY_MAYBE;
    }
    if (str_eq(name, S("libstdc++.so.6")) || str_eq(name, S("libgcc_s.so.1")))
        return LIBRARY_THERE;
    if ((str_eq(name, S("libcuda.so.1")) || str_eq(name, S("libnvidia-ml.so.1"))) &&
        j->target->archs.count > 0)
        return LIBRARY_THERE; /* of the driver */
    if (strs_has(&j->torch_brings, name) && uses_torch(j))
        return LIBRARY_THERE;
    if (is_cuda_library(name, &stem)) {
        if (looks_elsewhere(elf, S("nvidia/")) || looks_elsewhere(elf, S("..")) ||
            requires(j->file, S("nvidia-"))) {
            *why = S("one of NVIDIA's wheels has to bring it");
            return requires(j->file, S("nvidia-")) ? LIBRARY_THERE : LIBRARY_MAYBE;
        }
        for (size_t i = 0; uses_torch(j) && i < j->torch_brings.count; i++) {
            str other;
            if (is_cuda_library(j->torch_brings.items[i], &other) && str_eq(other, stem)) {
                *why = str_format(j->a, "torch %.*s brings %.*s", STR_ARG(j->env->torch),
                                  STR_ARG(j->torch_brings.items[i]));
                return LIBRARY_MISSING;
            }
        }
        *why = S("CUDA's libraries are not part of the system");
        return LIBRARY_MAYBE;
    }
    if ((str_starts(name, S("libtorch")) || str_starts(name, S("libc10"))) && j->env->torch_known) {
        *why = str_format(j->a, "torch %.*s has no such library", STR_ARG(j->env->torch));
        return str_eq(name, S("libtorch_hip.so")) || str_eq(name, S("libc10_hip.so")) ||
                       torch_source(j, S("libtorch_cpu.so")) != SIZE_MAX
                   ? LIBRARY_MISSING
                   : LIBRARY_MAYBE;
    }
    *why = S("it is neither in the wheel nor known on the target");
    return LIBRARY_MAYBE;
}

static void judge_libraries(struct judging *j)
{
    const struct elf_object *elf = &j->object->elf;
    for (size_t i = 0; i < elf->needs.count; i++) {
        str why = {NULL, 0};
        const str name = elf->needs.items[i];
        const enum library there = judge_library(j, name, &why);
        if (there == LIBRARY_THERE)
            continue;
        (void)say(j, there == LIBRARY_MISSING ? F209 : F219, name, "%.*s needs %.*s: %.*s",
                  STR_ARG(elf->path), STR_ARG(name), STR_ARG(why));
        worsen(&j->object->verdict, there == LIBRARY_MISSING ? CHECK_IMPORT_ERROR : CHECK_UNKNOWN);
    }
}

/* ---- Versions of the C and C++ libraries ---- */
static void judge_versions(struct judging *j)
{
    const struct elf_object *elf = &j->object->elf;
    const bool own_cxx = in_wheel(j, S("libstdc++.so.6")) != NULL;
    const struct {
        str asked, has;
        enum finding_code code;
        const char *family;
        bool skipped;
    } rules[] = {{elf->glibc, j->target->glibc, F207, "GLIBC", false},
                 {elf->glibcxx, j->target->glibcxx, F208, "GLIBCXX", own_cxx},
                 {elf->cxxabi, j->target->cxxabi, F208, "CXXABI", own_cxx}};
    for (size_t i = 0; i < COUNT(rules); i++) {
        if (!rules[i].asked.p || !rules[i].has.p || rules[i].skipped ||
            elf_version_cmp(rules[i].asked, rules[i].has) <= 0)
            continue;
        (void)say(j, rules[i].code, elf->path, "%.*s needs %s_%.*s, the target has %.*s", STR_ARG(elf->path),
                  rules[i].family, STR_ARG(rules[i].asked), STR_ARG(rules[i].has));
        worsen(&j->object->verdict, CHECK_IMPORT_ERROR);
    }
}

/* ---- Symbols ---- */
/* The torch libraries that an object reaches: those that it names, and what these name in turn. */
static struct abi_set reachable(const struct judging *j)
{
    struct abi_set reached = {{0}};
    struct strs todo = {0};
    for (size_t i = 0; i < j->object->elf.needs.count; i++)
        (void)strs_add(j->a, &todo, j->object->elf.needs.items[i]);
    for (size_t i = 0; i < todo.count && i < ELF_NEEDS_MOST; i++) {
        const size_t source = torch_source(j, todo.items[i]);
        const struct check_object *own = in_wheel(j, todo.items[i]);
        const struct strs *needs = source != SIZE_MAX ? &abi_source_at(j->env->abi, source)->needs
                                   : own              ? &own->elf.needs
                                                      : NULL;
        if (source != SIZE_MAX)
            abi_set_add(&reached, source);
        for (size_t n = 0; needs && n < needs->count; n++)
            if (!strs_has(&todo, needs->items[n]))
                (void)strs_add(j->a, &todo, needs->items[n]);
    }
    return reached;
}

static bool sets_meet(const struct abi_set *a, const struct abi_set *b)
{
    for (size_t i = 0; i < COUNT(a->bits); i++)
        if (a->bits[i] & b->bits[i])
            return true;
    return false;
}

static int hash_cmp(const void *x, const void *y)
{
    const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

static bool wheel_defines(const struct judging *j, uint64_t hash)
{
    for (size_t i = 0; i < j->file->object_count; i++) {
        const struct elf_object *elf = &j->file->objects[i].elf;
        if (elf->defined_count && bsearch(&hash, elf->defined, elf->defined_count, sizeof hash, hash_cmp))
            return true;
    }
    return false;
}

/* Names in torch's own namespaces: nobody else defines them. */
static bool is_torch_name(str name)
{
    static const str PARTS[] = {S_INIT("N3c10"),   S_INIT("NK3c10"),   S_INIT("N2at"),    S_INIT("NK2at"),
                                S_INIT("N5torch"), S_INIT("NK5torch"), S_INIT("N6caffe2")};
    if (str_starts(name, S("aoti_torch_")) || str_starts(name, S("THPVariable")) ||
        str_starts(name, S("torch_")))
        return true;
    if (!str_starts(name, S("_Z")))
        return false;
    str rest = str_from_index(name, 2);
    if (str_starts(rest, S("TV")) || str_starts(rest, S("TI")) || str_starts(rest, S("TS")) ||
        str_starts(rest, S("GV")))
        rest = str_from_index(rest, 2); /* tables of a class, guards */
    for (size_t i = 0; i < COUNT(PARTS); i++)
        if (str_starts(rest, PARTS[i]))
            return true;
    return false;
}

static bool is_python_name(str name) { return str_starts(name, S("Py")) || str_starts(name, S("_Py")); }

static str releases_text(const struct judging *j, const struct abi_set *set)
{
    struct strs names = {0};
    for (size_t i = 0; i < abi_source_count(j->env->abi); i++) {
        const str release = abi_source_at(j->env->abi, i)->release;
        if (abi_set_has(set, i) && !strs_has(&names, release))
            (void)strs_add(j->a, &names, release);
    }
    return names.count ? str_join(j->a, &names, S(", ")) : (str){NULL, 0};
}

static bool of_other_string_abi(str name)
{
    return str_contains(name, S("Ss")) || str_contains(name, S("NSt7__cxx1112basic_string"));
}

enum absence { ABSENT_TORCH, ABSENT_LINK, ABSENT_PYTHON, ABSENT_ELSE, ABSENCES };

struct absences {
    size_t count[ABSENCES];
    size_t strings; /* of torch's, those that name a std::string */
    str first[ABSENCES][SHOWN];
    struct abi_set first_releases; /* that export the first of torch's */
    bool any_release;
};

static void note_absent(struct judging *j, struct absences *s, enum absence kind,
                        const struct elf_symbol *symbol, const struct abi_set *found)
{
    const str demangled = check_demangle(j->a, symbol->name);
    if (s->count[kind] < SHOWN)
        s->first[kind][s->count[kind]] = demangled;
    if (kind == ABSENT_TORCH && s->count[kind] == 0 && found) {
        s->first_releases = *found;
        s->any_release = true;
    }
    s->count[kind]++;
    if (kind == ABSENT_ELSE || j->object->missing.count == MISSING_MOST ||
        !arena_room(j->a, &j->object->missing))
        return;
    j->object->missing.items[j->object->missing.count++] =
        (struct check_missing){.name = symbol->name,
                               .demangled = demangled,
                               .exported_by = found ? releases_text(j, found) : (str){NULL, 0}};
}

static str first_text(struct judging *j, const struct absences *s, enum absence kind)
{
    struct strs list = {0};
    for (size_t i = 0; i < SHOWN && i < s->count[kind]; i++)
        (void)strs_add(j->a, &list, s->first[kind][i]);
    str text = str_join(j->a, &list, S(", "));
    if (s->count[kind] > SHOWN)
        text = str_format(j->a, "%.*s and %zu more", STR_ARG(text), s->count[kind] - SHOWN);
    return text;
}

static void say_absent(struct judging *j, const struct absences *s)
{
    const str path = j->object->elf.path, torch = j->env->torch;
    if (s->count[ABSENT_TORCH] > 0) {
        const bool strings = s->strings == s->count[ABSENT_TORCH] && !s->any_release;
        struct finding *f =
            say(j, strings ? F250 : F203, path, "%.*s uses what torch %.*s does not export: %.*s",
                STR_ARG(path), STR_ARG(torch), STR_ARG(first_text(j, s, ABSENT_TORCH)));
        if (s->any_release)
            f->fix = str_format(
                j->a, "The first is exported by %.*s: take the wheel for torch %.*s, or pin such a torch.",
                STR_ARG(releases_text(j, &s->first_releases)), STR_ARG(torch));
        worsen(&j->object->verdict, CHECK_IMPORT_ERROR);
    }
    if (s->count[ABSENT_LINK] > 0) {
        (void)say(j, F256, path, "%.*s uses names of torch libraries that it does not link: %.*s",
                  STR_ARG(path), STR_ARG(first_text(j, s, ABSENT_LINK)));
        worsen(&j->object->verdict, CHECK_IMPORT_ERROR);
    }
    if (s->count[ABSENT_PYTHON] > 0) {
        (void)say(j, F211, path, "%.*s uses what CPython %.*s does not export: %.*s", STR_ARG(path),
                  STR_ARG(j->file->python), STR_ARG(first_text(j, s, ABSENT_PYTHON)));
        worsen(&j->object->verdict, CHECK_IMPORT_ERROR);
    }
    if (s->count[ABSENT_ELSE] > 0) {
        (void)say(j, F257, path, "%.*s uses names that no library read here has: %.*s", STR_ARG(path),
                  STR_ARG(first_text(j, s, ABSENT_ELSE)));
        worsen(&j->object->verdict, CHECK_UNKNOWN);
    }
}

/* Libraries whose names are not known to us may have any symbol; those of libc and libstdc++ carry versions. */
static bool has_closed_needs(const struct judging *j)
{
    for (size_t i = 0; i < j->object->elf.needs.count; i++) {
        const str name = j->object->elf.needs.items[i];
        if (!in_wheel(j, name) && !is_libc(name) && torch_source(j, name) == SIZE_MAX &&
            !str_eq(name, S("libstdc++.so.6")) && !str_eq(name, S("libgcc_s.so.1")))
            return false;
    }
    return true;
}

static void judge_symbols(struct judging *j)
{
    const struct elf_object *elf = &j->object->elf;
    const struct abi_set reached = reachable(j);
    const bool closed = has_closed_needs(j);
    struct absences absences = {.count = {0}};
    bool torch_unknown = false;
    for (size_t i = 0; i < elf->undefined_count; i++) {
        const struct elf_symbol *s = &elf->undefined[i];
        struct abi_set found;
        if (s->weak || s->library.p)
            continue; /* a version ties the symbol to its library: judge_versions and judge_libraries have it */
        const uint64_t hash = abi_hash(s->name);
        const bool known = abi_find(j->env->abi, hash, &found);
        if ((known && (sets_meet(&found, &reached) || sets_meet(&found, &j->cpython) ||
                       sets_meet(&found, &j->system))) ||
            wheel_defines(j, hash))
            continue;
        if (is_python_name(s->name)) {
            if (j->has_cpython)
                note_absent(j, &absences, ABSENT_PYTHON, s, known ? &found : NULL);
            else
                torch_unknown = true;
        } else if (known && sets_meet(&found, &j->torch)) {
            note_absent(j, &absences, ABSENT_LINK, s, &found);
        } else if (is_torch_name(s->name)) {
            if (j->env->torch_known) {
                absences.strings += of_other_string_abi(s->name);
                note_absent(j, &absences, ABSENT_TORCH, s, known ? &found : NULL);
            } else {
                torch_unknown = true;
            }
        } else if (closed) {
            note_absent(j, &absences, ABSENT_ELSE, s, known ? &found : NULL);
        }
    }
    say_absent(j, &absences);
    if (torch_unknown) {
        (void)say(j, F251, elf->path, "%.*s: there is no profile of %s%.*s", STR_ARG(elf->path),
                  j->env->torch_known ? "CPython " : "torch ",
                  STR_ARG(j->env->torch_known ? j->file->python : j->env->torch));
        worsen(&j->object->verdict, CHECK_UNKNOWN);
    }
}

/* ---- GPU code ---- */
static void list_archs(struct judging *j)
{
    struct check_object *o = j->object;
    for (size_t c = 0; c < o->elf.fatbins.count; c++) {
        const struct fatbin_container *container = &o->elf.fatbins.items[c];
        o->containers_in_data += container->place == FATBIN_DATA;
        for (size_t i = 0; i < container->count; i++) {
            const struct fatbin_entry *e = &container->entries[i];
            if (e->kind != FATBIN_CUBIN && e->kind != FATBIN_PTX)
                continue;
            struct strs *list = e->kind == FATBIN_PTX ? &o->ptx : &o->archs;
            const str text = fatbin_arch_text(j->a, e);
            size_t at = 0;
            while (at < list->count) {
                struct arch there, new;
                (void)arch_parse(list->items[at], &there);
                (void)arch_parse(text, &new);
                if (there.number > new.number || (there.number == new.number &&there.suffix >= new.suffix))
                    break;
                at++;
            }
            if ((at < list->count && str_eq(list->items[at], text)) || !strs_add(j->a, list, text))
                continue;
            memmove(list->items + at + 1, list->items + at, (list->count - 1 - at) * sizeof *list->items);
            list->items[at] = text;
        }
    }
}

/* Code of a and f targets only was written for that GPU, beside other code for the rest: its absence elsewhere is meant. */
static bool is_special(const struct fatbin_container *c)
{
    for (size_t i = 0; i < c->count; i++)
        if (!c->entries[i].stub && c->entries[i].suffix == '\0')
            return false;
    return true;
}

/* Libraries that hold code of many GPUs side by side, file by file, and choose at run time: what lacks there was left out on
 * purpose. For all others, a source file without code for the GPU is a kernel that fails when it is launched. */
static bool chooses_itself(const struct judging *j)
{
    return j->file->name.build.is_torch || str_starts(j->file->name.name, S("nvidia-"));
}

struct coverage {
    size_t with_code, without, by_ptx, special_without, in_data_without;
    const struct fatbin_container *offender;
};

static struct coverage cover(const struct judging *j, unsigned device)
{
    struct coverage c = {0};
    const double driver = j->target->driver_cuda;
    const unsigned major = (unsigned)driver, minor = (unsigned)((driver - major) * 10 + 0.5);
    for (size_t i = 0; i < j->object->elf.fatbins.count; i++) {
        const struct fatbin_container *f = &j->object->elf.fatbins.items[i];
        if (f->place == FATBIN_RELOCATABLE || !fatbin_has_code(f))
            continue;
        const enum arch_verdict runs = arch_container_runs(f, device, major, minor);
        c.with_code++;
        c.by_ptx += runs == ARCH_BY_PTX;
        if (runs != ARCH_NO)
            continue;
        if (f->place == FATBIN_DATA)
            c.in_data_without++;
        else if (is_special(f))
            c.special_without++;
        else
            c.without++;
        if (!c.offender || (is_special(c.offender) && !is_special(f)))
            c.offender = f;
    }
    return c;
}

static str container_archs(struct judging *j, const struct fatbin_container *c)
{
    struct strs list = {0};
    for (size_t i = 0; i < c->count; i++) {
        const str text = fatbin_arch_text(j->a, &c->entries[i]);
        if (!c->entries[i].stub && !strs_has(&list, text))
            (void)strs_add(j->a, &list, text);
    }
    return str_join(j->a, &list, S(", "));
}

static void judge_kernels(struct judging *j)
{
    const struct elf_object *elf = &j->object->elf;
    list_archs(j);
    for (size_t d = 0; d < j->target->archs.count; d++) {
        struct arch device;
        if (!arch_parse(j->target->archs.items[d], &device))
            continue;
        const struct coverage c = cover(j, device.number);
        j->object->containers = c.with_code;
        if (c.with_code == 0)
            continue;
        /* Nothing runs, special or not: then no special case is meant. */
        const bool none = c.without + c.special_without + c.in_data_without == c.with_code;
        const bool chooses = chooses_itself(j);
        const size_t without = none ? c.with_code : chooses ? 0 : c.without;
        j->object->containers_without =
            without > j->object->containers_without ? without : j->object->containers_without;
        if (without > 0) {
            (void)say(j, F204, elf->path,
                      "%.*s: %zu of %zu pieces of GPU code have none for %.*s; the first has %.*s",
                      STR_ARG(elf->path), without, c.with_code, STR_ARG(j->target->archs.items[d]),
                      STR_ARG(container_archs(j, c.offender)));
            worsen(&j->object->verdict, CHECK_NO_KERNEL);
        } else if (c.in_data_without > 0 && !chooses) {
            struct finding *f =
                say(j, F204, elf->path, "%.*s: %zu pieces of GPU code outside .nv_fatbin have none for %.*s",
                    STR_ARG(elf->path), c.in_data_without, STR_ARG(j->target->archs.items[d]));
            f->severity = SEVERITY_WARNING;
            worsen(&j->object->verdict, CHECK_UNKNOWN);
        }
        if (without == 0 && c.by_ptx > 0 &&
            (!chooses || c.by_ptx + c.without + c.special_without + c.in_data_without == c.with_code)) {
            (void)say(j, F210, elf->path, "%.*s: %zu of %zu pieces of GPU code run on %.*s only from PTX",
                      STR_ARG(elf->path), c.by_ptx, c.with_code, STR_ARG(j->target->archs.items[d]));
            worsen(&j->object->verdict, CHECK_FITS_BY_PTX);
        }
    }
}

/* ---- One object ---- */
static void judge_module_name(struct judging *j)
{
    const str base = path_base(j->object->elf.path);
    const size_t at = str_find(base, S(".cpython-"));
    if (at == SIZE_MAX)
        return;
    const str rest = str_from_index(base, at + 9);
    const str wanted = str_format(j->a, "3%u", j->python_minor);
    size_t end = 0;
    while (end < rest.n && rest.p[end] >= '0' && rest.p[end] <= '9')
        end++;
    if (!str_eq(str_slice(rest, 0, end), wanted))
        (void)say(j, F217, j->object->elf.path, "%.*s is for CPython 3.%.*s, the target has 3.%u",
                  STR_ARG(j->object->elf.path), STR_ARG(str_slice(rest, 1, end)), j->python_minor);
}

static void judge_object(struct judging *j)
{
    const struct elf_object *elf = &j->object->elf;
    const uint16_t machine =
        str_eq(j->target->machine, S("aarch64")) ? ELF_MACHINE_AARCH64 : ELF_MACHINE_X86_64;
    j->object->verdict = CHECK_FITS;
    if (elf->machine != machine) {
        (void)say(j, F254, elf->path, "%.*s is for machine %u, the target is %.*s", STR_ARG(elf->path),
                  elf->machine, STR_ARG(j->target->machine));
        worsen(&j->object->verdict, CHECK_IMPORT_ERROR);
        return;
    }
    judge_module_name(j);
    judge_libraries(j);
    judge_versions(j);
    judge_symbols(j);
    judge_kernels(j);
    if (elf->executable_stack || elf->text_relocations)
        (void)say(j, F215, elf->path, "%.*s has %s", STR_ARG(elf->path),
                  elf->executable_stack ? "an executable stack" : "text relocations");
}

/* ---- Objects that stand in for each other ---- */
/* The name without its digits: libx_cuda118.so and libx_cuda130.so are one library for several runtimes, of which the package
 * loads one by name. Python's own modules and what another object needs are always loaded, and stand for themselves. */
static str family_name(arena *a, str path)
{
    struct buf b = {.a = a};
    for (size_t i = 0; i < path.n; i++)
        if (path.p[i] < '0' || path.p[i] > '9')
            buf_char(&b, path.p[i]);
    return buf_str(&b);
}

static bool is_loaded_by_name(const struct judging *j, const struct elf_object *elf)
{
    if (elf->init.p)
        return false;
    for (size_t i = 0; i < j->file->object_count; i++) {
        const struct strs *needs = &j->file->objects[i].elf.needs;
        if (strs_has(needs, path_base(elf->path)) || (elf->soname.p && strs_has(needs, elf->soname)))
            return false;
    }
    return true;
}

/* Whether one of the object's family does better, which the package can take in its place. */
static bool has_better_relative(const struct judging *j, size_t index)
{
    const struct check_object *objects = j->file->objects;
    const str family = family_name(j->a, objects[index].elf.path);
    if (!is_loaded_by_name(j, &objects[index].elf))
        return false;
    for (size_t i = 0; i < j->file->object_count; i++)
        if (i != index && objects[i].verdict < objects[index].verdict &&
            str_eq(family_name(j->a, objects[i].elf.path), family))
            return true;
    return false;
}

/* ---- The wheel around them ---- */
/* The Python that the file is judged for: as asked, else the target's best that its tags fit, else the target's default. */
static str choose_python(arena *a, const struct check_env *env, const struct check_file *file, bool *fits)
{
    const struct check_options *o = env->options;
    struct strs choices = {0};
    if (o->python.p)
        (void)strs_add(a, &choices, o->python);
    for (size_t i = 0; !o->python.p && i < o->target->pythons.count; i++)
        (void)strs_add(a, &choices, o->target->pythons.items[i]);
    if (choices.count == 0) /* any will do: the one that the wheel is for */
        for (unsigned minor = 14; minor >= 8; minor--)
            (void)strs_add(a, &choices, str_format(a, "3.%u", minor));
    *fits = true;
    for (size_t i = 0; file->named && i < choices.count; i++) {
        struct version v;
        struct tag_list tags = {0};
        if (version_parse(a, choices.items[i], &v) && v.release_count > 1 &&
            target_tags(a, o->target, (unsigned)v.release[1], &tags) &&
            tags_rank(&tags, &file->name.tags) != SIZE_MAX)
            return choices.items[i];
    }
    *fits = !file->named;
    for (size_t c = 0; !file->named && c < choices.count; c++) { /* a module's own name says it */
        for (size_t i = 0; i < file->object_count; i++) {
            struct version v;
            if (version_parse(a, choices.items[c], &v) && v.release_count > 1 &&
                str_contains(file->objects[i].elf.path,
                             str_format(a, ".cpython-3%u-", (unsigned)v.release[1])))
                return choices.items[c];
        }
    }
    return o->python.p                   ? o->python
           : o->target->python_default.p ? o->target->python_default
                                         : choices.items[0];
}

static str tags_text(arena *a, const struct tag_set *tags)
{
    return str_format(a, "%.*s-%.*s-%.*s", STR_ARG(str_join(a, &tags->python, S("."))),
                      STR_ARG(str_join(a, &tags->abi, S("."))),
                      STR_ARG(str_join(a, &tags->platform, S("."))));
}

static bool judge_tags(struct judging *j)
{
    arena *a = j->a;
    bool fits = true;
    struct version v;
    const str python = choose_python(a, j->env, j->file, &fits);
    if (!version_parse(a, python, &v) || v.release_count < 2)
        return false;
    j->python_minor = (unsigned)v.release[1];
    j->file->python = str_format(a, "3.%u", j->python_minor);
    if (fits)
        return true;
    (void)say(j, F202, j->file->name.distribution, "its tags %.*s are none that %.*s takes with Python %.*s",
              STR_ARG(tags_text(a, &j->file->name.tags)), STR_ARG(j->target->name), STR_ARG(j->file->python));
    worsen(&j->file->verdict, CHECK_NOT_INSTALLABLE);
    return true;
}

static void judge_metadata(struct judging *j)
{
    struct check_file *file = j->file;
    str odd;
    struct version torch, python;
    if (!file->metadata.name.p)
        return;
    if (file->named && (!name_same(file->metadata.name, file->name.distribution) ||
                        version_compare(&file->metadata.version, &file->name.version) != 0)) {
        (void)say(j, F255, file->name.distribution, "the name says %.*s %.*s, METADATA %.*s %.*s",
                  STR_ARG(file->name.distribution), STR_ARG(file->name.version.text),
                  STR_ARG(file->metadata.name), STR_ARG(file->metadata.version_text));
        worsen(&file->verdict, CHECK_NOT_INSTALLABLE);
    }
    if (file->named && file->has_facts && !wheel_tags_agree(j->a, &file->facts, &file->name.tags, &odd))
        (void)say(j, F212, file->name.distribution, "%.*s is only in one of the two",
                  STR_ARG(odd.p ? odd : S("a tag")));
    if (version_parse(j->a, file->python, &python) && file->metadata.python_valid) {
        const struct version full = python;
        if (file->metadata.python.count > 0 && !specs_contain(&file->metadata.python, &full, true)) {
            (void)say(j, F202, file->metadata.name, "it requires Python %.*s, the target has %.*s",
                      STR_ARG(file->metadata.requires_python), STR_ARG(file->python));
            worsen(&file->verdict, CHECK_NOT_INSTALLABLE);
        }
    }
    if (!version_parse(j->a, j->env->torch, &torch))
        return;
    const struct marker_env env = {.os_name = S("posix"),
                                   .sys_platform = S("linux"),
                                   .platform_machine = j->target->machine,
                                   .platform_python_implementation = S("CPython"),
                                   .platform_system = S("Linux"),
                                   .python_version = file->python,
                                   .python_full_version = str_format(j->a, "%.*s.0", STR_ARG(file->python)),
                                   .implementation_name = S("cpython"),
                                   .implementation_version =
                                       str_format(j->a, "%.*s.0", STR_ARG(file->python)),
                                   .extra = S("")};
    for (size_t i = 0; i < file->metadata.count; i++) {
        const struct wheel_need *need = &file->metadata.items[i];
        if (!need->valid || !name_same(need->requirement.name, S("torch")) ||
            (need->requirement.marker && !marker_holds(j->a, need->requirement.marker, &env)) ||
            specs_contain(&need->requirement.specs, &torch, true))
            continue;
        (void)say(j, F213, file->metadata.name, "it requires %.*s, the target has torch %.*s",
                  STR_ARG(str_trim(need->text)), STR_ARG(j->env->torch));
        worsen(&file->verdict, CHECK_NOT_INSTALLABLE);
    }
}

static bool same_minor(arena *a, str x, str y)
{
    struct version p, q;
    return version_parse(a, x, &p) && version_parse(a, y, &q) && p.release_count > 1 && q.release_count > 1 &&
           p.release[0] == q.release[0] && p.release[1] == q.release[1];
}

/* What the name promises against what was found. */
static void judge_promises(struct judging *j)
{
    const struct wheel_build *b = &j->file->name.build;
    bool has_code = false, has_torch = false;
    for (size_t i = 0; i < j->file->object_count; i++) {
        const struct check_object *o = &j->file->objects[i];
        has_code = has_code || o->elf.fatbins.count > 0;
        for (size_t n = 0; n < o->elf.needs.count; n++)
            has_torch = has_torch || str_starts(o->elf.needs.items[n], S("libtorch")) ||
                        str_starts(o->elf.needs.items[n], S("libc10"));
    }
    if (j->file->named && (b->cuda.p || b->cuda_in_name.p) && j->file->object_count > 0 && !has_code &&
        !b->is_torch && has_torch)
        (void)say(j, F214, j->file->name.distribution, "the name says CUDA %.*s, and no object has GPU code",
                  STR_ARG(b->cuda.p ? b->cuda : b->cuda_in_name));
    if (has_torch && b->torch.p && j->env->torch_known && !b->torch_is_minimum &&
        !same_minor(j->a, b->torch, j->env->torch) &&
        !(b->torch_other.p && same_minor(j->a, b->torch_other, j->env->torch)))
        (void)say(j, F218, j->file->name.distribution, "the name says torch %.*s, the target has %.*s",
                  STR_ARG(b->torch), STR_ARG(j->env->torch));
}

static void find_sources(struct judging *j)
{
    const struct abi *abi = j->env->abi;
    const str torch = str_format(j->a, "torch %.*s", STR_ARG(j->env->torch));
    const str python = str_format(j->a, "cpython %.*s", STR_ARG(j->file->python));
    for (size_t i = 0; i < abi_source_count(abi); i++) {
        const struct abi_source *s = abi_source_at(abi, i);
        if (str_eq(s->release, torch)) {
            abi_set_add(&j->torch, i);
        } else if (str_eq(s->release, python)) {
            abi_set_add(&j->cpython, i);
            j->has_cpython = j->has_cpython || !str_eq(s->library, S("abi3"));
        } else if (str_eq(s->release, S("system"))) {
            abi_set_add(&j->system, i);
        }
    }
    for (size_t i = 0; i < abi_source_count(abi); i++) {
        const struct abi_source *s = abi_source_at(abi, i);
        for (size_t n = 0; abi_set_has(&j->torch, i) && n < s->needs.count; n++)
            if (torch_source(j, s->needs.items[n]) == SIZE_MAX &&
                !strs_has(&j->torch_brings, s->needs.items[n]))
                (void)strs_add(j->a, &j->torch_brings, s->needs.items[n]);
    }
}

void check_judge(arena *a, const struct check_env *env, struct check_file *file)
{
    struct judging j = {.a = a, .env = env, .target = env->options->target, .file = file};
    file->torch = env->torch;
    if (!judge_tags(&j))
        return;
    find_sources(&j);
    size_t *first_finding = arena_array(a, size_t, file->object_count + 1);
    if (!first_finding)
        return;
    for (size_t i = 0; i < file->object_count; i++) {
        j.object = &file->objects[i];
        first_finding[i] = file->findings->count;
        judge_object(&j);
    }
    first_finding[file->object_count] = file->findings->count;
    for (size_t i = 0; i < file->object_count; i++) {
        if (!has_better_relative(&j, i)) {
            worsen(&file->verdict, file->objects[i].verdict);
            continue;
        }
        for (size_t k = first_finding[i]; k < first_finding[i + 1]; k++)
            file->findings->items[k].severity = SEVERITY_INFO;
    }
    judge_metadata(&j);
    judge_promises(&j);
}

void check_judge_name(arena *a, const struct check_env *env, struct check_file *file)
{
    struct judging j = {.a = a, .env = env, .target = env->options->target, .file = file};
    file->verdict = CHECK_UNKNOWN;
    (void)judge_tags(&j);
    file->torch = env->torch;
}
