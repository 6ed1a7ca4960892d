/* Does a wheel fit? From its name, the place that lists it and the catalogue: the tags that pip asks for, the torch and CUDA it was
 * built with, the architectures it holds. What the file itself would show is not asked here. */
#include "plan/choose.h"

#include "plan/judge.h"

str torch_minor(str version)
{
    str public, local;
    (void)str_cut(version, '+', &public, &local);
    return major_minor(public);
}

unsigned major_of(str version)
{
    str head, tail;
    uint64_t n = 0;
    (void)str_cut(version, '.', &head, &tail);
    return str_to_u64(head, &n) && n < 1000 ? (unsigned)n : 0;
}

bool version_less(arena *a, str left, str right)
{
    struct version l, r;
    return version_parse(a, left, &l) && version_parse(a, right, &r) && version_compare(&l, &r) < 0;
}

struct verdict {
    enum fit fit;
    str why;
};

static struct verdict no(str why) { return (struct verdict){FIT_NO, why}; }

static struct verdict judge_tags(arena *a, const struct setting *s, const struct wheel_name *name)
{
    if (tags_rank(s->tags, &name->tags) != SIZE_MAX)
        return (struct verdict){FIT_YES, {NULL, 0}};
    struct tag_env env = {.minor = s->minor, .machine = s->target->machine};
    uint64_t major = 0, minor = 0;
    str head, tail;
    if (s->target->glibc.n && str_cut(s->target->glibc, '.', &head, &tail) && str_to_u64(head, &major) &&
        str_to_u64(tail, &minor)) {
        env.glibc_major = (unsigned)major;
        env.glibc_minor = (unsigned)minor;
    }
    return no(str_format(a, "its tags do not fit: %.*s", STR_ARG(tags_mismatch(a, &env, &name->tags))));
}

/* torch's minor version, for wheels that link its libraries. */
static struct verdict judge_torch(arena *a, const struct setting *s, const struct extension *e,
                                  const struct source_file *file, const struct wheel_name *name)
{
    const struct wheel_build *build = &name->build;
    if (!e->torch_abi || !s->torch.p)
        return (struct verdict){FIT_YES, {NULL, 0}};
    if (build->cxx11abi == 0 && !version_less(a, s->torch, S("2.7")))
        return no(str_format(a, "cxx11abiFALSE: torch %.*s has the new C++ ABI", STR_ARG(s->torch)));
    const str built = build->torch.p ? build->torch : file ? file->torch : (str){NULL, 0};
    if (!built.p)
        return (struct verdict){FIT_UNKNOWN,
                                S("neither its name nor its place says which torch it was built for")};
    const str minor = torch_minor(s->torch);
    if (str_eq(torch_minor(built), minor) ||
        (build->torch_other.p && str_eq(torch_minor(build->torch_other), minor)))
        return (struct verdict){FIT_YES, str_format(a, "built for torch %.*s", STR_ARG(minor))};
    if (build->torch_is_minimum && !version_less(a, s->torch, built))
        return (struct verdict){FIT_YES, str_format(a, "for torch %.*s and newer", STR_ARG(built))};
    const bool old_abi = version_less(a, built, S("2.7")) && !version_less(a, s->torch, S("2.7"));
    if (!build->torch.p && file && file->from && file->from->torch_tolerant && !old_abi)
        return (struct verdict){
            FIT_LIKELY, str_format(a, "built with torch %.*s; its publisher says that it runs on %.*s too",
                                   STR_ARG(torch_minor(built)), STR_ARG(minor))};
    return no(str_format(a, "built for torch %.*s, not %.*s", STR_ARG(torch_minor(built)), STR_ARG(minor)));
}

/* The CUDA runtime that it links comes from torch's wheels, of one major version. */
static struct verdict judge_cuda(arena *a, const struct setting *s, const struct extension *e,
                                 const struct source_file *file, const struct wheel_name *name)
{
    const struct wheel_build *build = &name->build;
    if (e->compiled != COMPILED_CUDA)
        return (struct verdict){FIT_YES, {NULL, 0}};
    if (build->rocm.p)
        return no(S("built for ROCm, not CUDA"));
    if (build->accelerator.p && str_eq(build->accelerator, S("cpu")) && s->target->archs.count)
        return no(S("built for the CPU only"));
    const str cuda = build->cuda.p           ? build->cuda
                     : build->cuda_in_name.p ? build->cuda_in_name
                     : file                  ? file->cuda
                                             : (str){NULL, 0};
    if (!cuda.p)
        return (struct verdict){FIT_UNKNOWN, S("nothing says which CUDA it was built with")};
    if (!s->cuda.p)
        return no(str_format(a, "built with CUDA %.*s, and the target has none", STR_ARG(cuda)));
    if (e->torch_abi && major_of(cuda) != major_of(s->cuda))
        return no(str_format(a, "built with CUDA %.*s; torch %.*s brings the runtime of CUDA %.*s",
                             STR_ARG(cuda), STR_ARG(s->torch), STR_ARG(s->cuda)));
    if (s->target->driver_cuda > 0 && (double)major_of(cuda) > s->target->driver_cuda)
        return no(str_format(a, "built with CUDA %.*s, newer than the target's driver", STR_ARG(cuda)));
    return (struct verdict){FIT_YES, {NULL, 0}};
}

/* CUDA 12.8 is the first that compiles for sm_100 and sm_120. */
static bool cuda_knows(arena *a, str cuda, str arch)
{
    const bool blackwell = str_starts(arch, S("sm_10")) || str_starts(arch, S("sm_12"));
    const bool exact = str_find_char(cuda, '.') != SIZE_MAX; /* "12" is any CUDA 12 */
    return !blackwell || !exact || !version_less(a, cuda, S("12.8"));
}

/* Machine code only: PTX is compiled by the driver at its first use, within the declared duration. */
static struct strs without_ptx(arena *a, const struct strs *archs)
{
    struct strs machine = {0};
    for (size_t i = 0; i < archs->count; i++)
        if (str_starts(archs->items[i], S("sm_")))
            (void)strs_add(a, &machine, archs->items[i]);
    return machine;
}

static struct verdict judge_archs(arena *a, const struct setting *s, const struct extension *e,
                                  const struct source_file *file, const struct wheel_name *name)
{
    const struct target *t = s->target;
    struct strs known = file ? file->archs : (struct strs){0};
    for (size_t i = 0; !known.count && i < e->arch_count; i++)
        if (specs_contain(&e->archs[i].specs, &name->version, true))
            known = e->archs[i].archs;
    if (e->compiled != COMPILED_CUDA)
        return (struct verdict){FIT_YES, {NULL, 0}};
    if (!t->archs.count) /* a target that names no GPU */
        return !known.count
                   ? (struct verdict){FIT_YES, {NULL, 0}}
                   : (struct verdict){FIT_LIKELY,
                                      str_format(a, "compiled for %.*s only, and the target names no GPU",
                                                 STR_ARG(str_join(a, &known, S(", "))))};
    const str cuda = name->build.cuda.p ? name->build.cuda : file ? file->cuda : (str){NULL, 0};
    const struct strs machine = without_ptx(a, &known);
    const str list = str_join(a, &known, S(", "));
    bool by_ptx = false;
    for (size_t i = 0; i < t->archs.count; i++) {
        const str arch = t->archs.items[i];
        if (known.count && !archs_run_on(&known, arch))
            return no(str_format(a, "compiled for %.*s, not for %.*s", STR_ARG(list), STR_ARG(arch)));
        by_ptx |= known.count && !archs_run_on(&machine, arch);
        if (!known.count && cuda.p && !cuda_knows(a, cuda, arch))
            return no(str_format(a, "CUDA %.*s cannot compile for %.*s", STR_ARG(cuda), STR_ARG(arch)));
    }
    if (by_ptx)
        return (struct verdict){
            FIT_LIKELY,
            str_format(a, "runs as PTX, which the driver compiles at the first use (%.*s)", STR_ARG(list))};
    if (known.count)
        return (struct verdict){FIT_YES, str_format(a, "compiled for %.*s", STR_ARG(list))};
    return (struct verdict){FIT_LIKELY, S("its architectures do not show in the name")};
}

static bool python_allows(arena *a, const struct setting *s, str requires_python)
{
    struct specs specs = {0};
    struct version python;
    size_t at = 0;
    const char *expected = NULL;
    return !requires_python.n || !specs_parse(a, requires_python, &specs, &at, &expected) ||
           !version_parse(a, str_format(a, "%.*s.99", STR_ARG(s->python)), &python) ||
           specs_contain(&specs, &python, true);
}

void candidate_verify(arena *a, const struct setting *s, const struct extension *e,
                      struct candidate *candidate)
{
    const struct source_file *file = candidate->wheel;
    struct wheel_name name;
    str why;
    candidate->verified = VERIFIED_NAME;
    candidate->fit = FIT_NO;
    if (file) {
        name = file->name;
    } else if (!wheel_name_parse(a, candidate->url, &name, &why)) {
        candidate->reason = str_format(a, "not a wheel that pip installs: %.*s", STR_ARG(why));
        return;
    }
    candidate->file = name.file;
    candidate->version = name.version_text;
    const bool pure = tags_rank(s->tags, &name.tags) != SIZE_MAX && strs_has(&name.tags.platform, S("any"));
    struct verdict verdicts[5] = {judge_tags(a, s, &name)};
    size_t count = 1;
    if (!pure) { /* Python only: nothing is linked */
        verdicts[count++] = judge_archs(a, s, e, file, &name);
        verdicts[count++] = judge_cuda(a, s, e, file, &name);
        verdicts[count++] = judge_torch(a, s, e, file, &name);
    }
    if (file && !python_allows(a, s, file->requires_python))
        verdicts[count++] = no(str_format(a, "asks for Python %.*s", STR_ARG(file->requires_python)));
    struct strs reasons = {0};
    enum fit fit = FIT_YES;
    for (size_t i = 0; i < count; i++)
        fit = verdicts[i].fit < fit ? verdicts[i].fit : fit;
    if (fit != FIT_NO)
        (void)strs_add(a, &reasons,
                       pure ? S("Python only: nothing in it is compiled")
                            : str_format(a, "tags fit Python %.*s", STR_ARG(s->python)));
    for (size_t i = 0; i < count; i++)
        if (verdicts[i].why.p && (verdicts[i].fit == FIT_NO) == (fit == FIT_NO))
            (void)strs_add(a, &reasons, verdicts[i].why);
    candidate->fit = fit;
    candidate->reason = str_join(a, &reasons, S("; "));
}
