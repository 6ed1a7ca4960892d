/* Compatibility tags: what a CPython on Linux accepts, in the order of packaging's sys_tags (26.3 and later: native
 * linux_* before manylinux_*), and why a wheel fits none of it. PEP 425, 600 (manylinux and its three old aliases), 656
 * (musllinux), 384 and 803 (abi3 and, for free-threaded builds, abi3t). */
#include "wheel/reader.h"

enum {
    ABI3_FIRST_MINOR = 2,        /* Python 3.2, by PEP 384 */
    GLIBC_LAST_MINOR_KNOWN = 99, /* what a hostile target description may claim at most */
};

static const struct manylinux_alias {
    unsigned minor; /* of glibc 2 */
    const char *name;
} MANYLINUX_ALIASES[] = {{17, "manylinux2014"}, {12, "manylinux2010"}, {5, "manylinux1"}};

static bool add_platforms(arena *a, const struct tag_env *env, struct strs *out)
{
    const bool is_x86 = str_eq(env->machine, S("x86_64")) || str_eq(env->machine, S("i686"));
    bool well = strs_add(a, out, str_format(a, "linux_%.*s", STR_ARG(env->machine)));
    const unsigned oldest =
        is_x86 ? 5 : 17; /* manylinux1 and manylinux2014: nothing older was ever defined */
    const unsigned newest =
        env->glibc_minor < GLIBC_LAST_MINOR_KNOWN ? env->glibc_minor : GLIBC_LAST_MINOR_KNOWN;
    for (unsigned minor = newest; env->glibc_major == 2 && minor >= oldest && well; minor--) {
        well = strs_add(a, out, str_format(a, "manylinux_2_%u_%.*s", minor, STR_ARG(env->machine)));
        for (size_t i = 0; i < COUNT(MANYLINUX_ALIASES); i++)
            if (MANYLINUX_ALIASES[i].minor == minor)
                well = well &&
                       strs_add(a, out,
                                str_format(a, "%s_%.*s", MANYLINUX_ALIASES[i].name, STR_ARG(env->machine)));
    }
    for (unsigned minor = env->musl_minor + 1; env->musl_major > 0 && minor > 0 && well; minor--)
        well = strs_add(
            a, out, str_format(a, "musllinux_%u_%u_%.*s", env->musl_major, minor - 1, STR_ARG(env->machine)));
    return well;
}

static bool add_tag(arena *a, struct tag_list *list, str python, str abi, str platform)
{
    if (!arena_room(a, list))
        return false;
    list->items[list->count++] = (struct tag){python, abi, platform};
    return true;
}

static bool add_tags(arena *a, struct tag_list *list, str python, str abi, const struct strs *platforms)
{
    for (size_t i = 0; i < platforms->count; i++)
        if (!add_tag(a, list, python, abi, platforms->items[i]))
            return false;
    return true;
}

/* py312, py3, py311 ... py30: a wheel for an older Python 3 is expected to work, one for a newer is not. */
static bool add_pure(arena *a, struct tag_list *list, unsigned minor, const struct strs *platforms)
{
    bool well = add_tags(a, list, str_format(a, "py3%u", minor), S("none"), platforms) &&
                add_tags(a, list, S("py3"), S("none"), platforms);
    for (unsigned older = minor; older > 0 && well; older--)
        well = add_tags(a, list, str_format(a, "py3%u", older - 1), S("none"), platforms);
    return well;
}

bool tags_supported(arena *a, const struct tag_env *env, struct tag_list *out)
{
    str any_item = S("any");
    const struct strs any = {.items = &any_item, .count = 1};
    struct strs platforms = {0};
    struct tag_list list = {0};
    if (env->minor > 99 || env->musl_minor > 99 || !add_platforms(a, env, &platforms))
        return false;
    const str python = str_format(a, "cp3%u", env->minor);
    const str abi = str_format(a, "cp3%u%s", env->minor, env->free_threaded ? "t" : "");
    const str stable = env->free_threaded ? S("abi3t") : S("abi3");
    const bool has_stable = env->minor >= ABI3_FIRST_MINOR;
    bool well = add_tags(a, &list, python, abi, &platforms);
    if (has_stable)
        well = well && add_tags(a, &list, python, stable, &platforms);
    well = well && add_tags(a, &list, python, S("none"), &platforms);
    for (unsigned minor = env->minor; has_stable && minor > ABI3_FIRST_MINOR && well; minor--)
        well = add_tags(a, &list, str_format(a, "cp3%u", minor - 1), stable, &platforms);
    if (!well || !add_pure(a, &list, env->minor, &platforms) ||
        !add_tag(a, &list, python, S("none"), any_item) || !add_pure(a, &list, env->minor, &any))
        return false;
    *out = list;
    return true;
}

/* Tags are compared in lower case, as installers do. */
static bool has_member(const struct strs *set, str member)
{
    for (size_t i = 0; i < set->count; i++)
        if (str_eq_nocase(set->items[i], member))
            return true;
    return false;
}

size_t tags_rank(const struct tag_list *supported, const struct tag_set *wheel)
{
    for (size_t i = 0; i < supported->count; i++)
        if (has_member(&wheel->platform, supported->items[i].platform) &&
            has_member(&wheel->abi, supported->items[i].abi) &&
            has_member(&wheel->python, supported->items[i].python))
            return i;
    return SIZE_MAX;
}

/* ---- Why a wheel does not fit ---- */

/* "cp312" is CPython 3.12, "py3" is any Python 3. */
struct python_tag {
    str implementation; /* "cp" */
    bool has_minor;
    uint64_t major, minor;
};

static bool python_tag_read(str tag, struct python_tag *out)
{
    size_t letters = 0;
    while (letters < tag.n && is_letter(tag.p[letters]))
        letters++;
    uint64_t number;
    const str digits = str_from_index(tag, letters);
    *out = (struct python_tag){.implementation = str_slice(tag, 0, letters)};
    if (!str_to_u64(str_slice(digits, 0, 1), &out->major))
        return false;
    out->has_minor = str_to_u64(str_from_index(digits, 1), &number);
    out->minor = out->has_minor ? number : 0;
    return out->has_minor || digits.n == 1;
}

static str implementation_name(str tag)
{
    static const struct {
        str tag, name;
    } NAMES[] = {{S_INIT("cp"), S_INIT("CPython")},    {S_INIT("py"), S_INIT("Python")},
                 {S_INIT("pp"), S_INIT("PyPy")},       {S_INIT("graalpy"), S_INIT("GraalPy")},
                 {S_INIT("ip"), S_INIT("IronPython")}, {S_INIT("jy"), S_INIT("Jython")}};
    for (size_t i = 0; i < COUNT(NAMES); i++)
        if (str_eq_nocase(tag, NAMES[i].tag))
            return NAMES[i].name;
    return tag;
}

static bool platform_is_any(const struct tag_set *wheel) { return has_member(&wheel->platform, S("any")); }

static bool python_fits(const struct tag_env *env, const struct tag_set *wheel)
{
    for (size_t i = 0; i < wheel->python.count; i++) {
        struct python_tag tag;
        if (!python_tag_read(wheel->python.items[i], &tag) || tag.major != 3)
            continue;
        const bool same = !tag.has_minor || tag.minor == env->minor;
        const bool older = tag.has_minor && tag.minor < env->minor;
        const bool stable =
            has_member(&wheel->abi, env->free_threaded ? S("abi3t") : S("abi3")) && !platform_is_any(wheel);
        const bool none = has_member(&wheel->abi, S("none"));
        if (str_eq_nocase(tag.implementation, S("py")) && (same || older))
            return none;
        if (str_eq_nocase(tag.implementation, S("cp")) && tag.has_minor && (same || (older && stable)))
            return true;
    }
    return false;
}

/* "CPython 3.10, 3.11": the sets of real wheels have one or two members, so the text stays short; the rest is counted. */
static str pythons_text(arena *a, const struct strs *set)
{
    enum { SHOWN = 3 };
    struct buf b = {.a = a};
    for (size_t i = 0; i < set->count && i < SHOWN; i++) {
        struct python_tag tag;
        if (i > 0)
            buf_add(&b, S(", "));
        if (!python_tag_read(set->items[i], &tag)) {
            buf_format(&b, "'%.*s'", STR_ARG(set->items[i]));
            continue;
        }
        const str name = implementation_name(tag.implementation);
        buf_format(&b, "%.*s %llu", STR_ARG(name), (unsigned long long)tag.major);
        if (tag.has_minor)
            buf_format(&b, ".%llu", (unsigned long long)tag.minor);
    }
    if (set->count > SHOWN)
        buf_format(&b, " and %zu more", set->count - SHOWN);
    return buf_str(&b);
}

/* The least glibc (or musl) minor that one of the set's tags for this machine asks for; false when there is none. */
static bool least_libc(const struct tag_env *env, const struct tag_set *wheel, str family, uint64_t *major,
                       uint64_t *minor)
{
    bool found = false;
    for (size_t i = 0; i < wheel->platform.count; i++) {
        const str tag = wheel->platform.items[i];
        if (!str_starts(tag, family) || !str_ends(tag, env->machine) || tag.n <= family.n + env->machine.n)
            continue;
        struct reader r = {str_slice(tag, 0, tag.n - env->machine.n), family.n};
        uint64_t numbers[2];
        bool well = reader_take(&r, '_') && str_to_u64(reader_take_digits(&r), &numbers[0]);
        well = well && reader_take(&r, '_') && str_to_u64(reader_take_digits(&r), &numbers[1]);
        if (!well || (found && (numbers[0] > *major || (numbers[0] == *major && numbers[1] >= *minor))))
            continue;
        *major = numbers[0];
        *minor = numbers[1];
        found = true;
    }
    return found;
}

static str system_of(str platform)
{
    static const struct {
        str start, name;
    } SYSTEMS[] = {{S_INIT("win"), S_INIT("Windows")},
                   {S_INIT("macosx_"), S_INIT("macOS")},
                   {S_INIT("ios_"), S_INIT("iOS")},
                   {S_INIT("android_"), S_INIT("Android")},
                   {S_INIT("musllinux_"), S_INIT("musl Linux")},
                   {S_INIT("manylinux"), S_INIT("Linux")},
                   {S_INIT("linux_"), S_INIT("Linux")}};
    for (size_t i = 0; i < COUNT(SYSTEMS); i++)
        if (str_starts(platform, SYSTEMS[i].start))
            return SYSTEMS[i].name;
    return (str){NULL, 0};
}

/* Absent when a platform of the set fits. */
static str platform_mismatch(arena *a, const struct tag_env *env, const struct tag_set *wheel)
{
    struct strs platforms = {0};
    uint64_t major, minor;
    if (!add_platforms(a, env, &platforms))
        return (str){NULL, 0};
    for (size_t i = 0; i < wheel->platform.count; i++)
        if (str_eq_nocase(wheel->platform.items[i], S("any")) ||
            has_member(&platforms, wheel->platform.items[i]))
            return (str){NULL, 0};
    if (env->glibc_major > 0 && least_libc(env, wheel, S("manylinux"), &major, &minor))
        return str_format(a, "needs glibc %llu.%llu, the target has %u.%u", (unsigned long long)major,
                          (unsigned long long)minor, env->glibc_major, env->glibc_minor);
    if (env->musl_major > 0 && least_libc(env, wheel, S("musllinux"), &major, &minor))
        return str_format(a, "needs musl %llu.%llu, the target has %u.%u", (unsigned long long)major,
                          (unsigned long long)minor, env->musl_major, env->musl_minor);
    const str first = wheel->platform.count > 0 ? wheel->platform.items[0] : S("");
    const str system = system_of(first);
    const str own = env->musl_major > 0 ? S("musl Linux") : S("Linux");
    if (system.p && str_eq(system, own))
        return str_format(a, "for %.*s, the target is %.*s", STR_ARG(first), STR_ARG(env->machine));
    if (system.p)
        return str_format(a, "for %.*s (%.*s), the target is %.*s on %.*s", STR_ARG(system), STR_ARG(first),
                          STR_ARG(own), STR_ARG(env->machine));
    return str_format(a, "for the platform '%.*s', which no installer of the target knows", STR_ARG(first));
}

str tags_mismatch(arena *a, const struct tag_env *env, const struct tag_set *wheel)
{
    const str platform = platform_mismatch(a, env, wheel);
    struct buf b = {.a = a};
    if (!python_fits(env, wheel)) {
        const str pythons = pythons_text(a, &wheel->python);
        buf_format(&b, "for %.*s%s, the target has 3.%u", STR_ARG(pythons),
                   has_member(&wheel->abi, S("abi3")) ? " or later" : "", env->minor);
        if (env->free_threaded)
            buf_add(&b, S(" (free-threaded)"));
    }
    if (platform.p) {
        if (b.count > 0)
            buf_add(&b, S("; "));
        buf_add(&b, platform);
    }
    if (b.count == 0) { /* the ABI is what is left */
        const str abis = str_join(a, &wheel->abi, S(", "));
        buf_format(&b, "built for the ABI %.*s, the target's is cp3%u%s", STR_ARG(abis), env->minor,
                   env->free_threaded ? "t" : "");
    }
    return buf_str(&b);
}
