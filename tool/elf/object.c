/* From an image's tables to what is said about an object: names, needs, versions. */
#include "elf/elf.h"

#include <stdlib.h>

enum {
    DYN_SIZE = 16,
    SYMBOL_SIZE = 24,
    VERSIONS_MOST = 4096,
    DT_NULL = 0,
    DT_NEEDED = 1,
    DT_SONAME = 14,
    DT_RPATH = 15,
    DT_RUNPATH = 29,
    STB_WEAK = 2,
    STB_LOCAL = 0,
    VERSION_HIDDEN = 0x8000
};

int elf_version_cmp(str a, str b)
{
    while (a.n > 0 || b.n > 0) {
        str x, y;
        uint64_t p = 0, q = 0;
        (void)str_cut(a, '.', &x, &a);
        (void)str_cut(b, '.', &y, &b);
        (void)str_to_u64(x, &p);
        (void)str_to_u64(y, &q);
        if (p != q)
            return p < q ? -1 : 1;
    }
    return 0;
}

static bool name_at(const struct elf_image *image, uint64_t offset, str *out)
{
    return span_cstr(image->strings, offset, out);
}

/* RPATH and RUNPATH are lists joined by ':'. */
static bool add_paths(arena *a, struct strs *list, str text)
{
    str head;
    while (text.p && text.n > 0) {
        (void)str_cut(text, ':', &head, &text);
        if (!strs_add(a, list, head))
            return false;
    }
    return true;
}

static bool read_dynamic(arena *a, const struct elf_image *image, struct elf_object *out, findings *f)
{
    const size_t entries = image->dynamic.n / DYN_SIZE; /* from bytes that exist, not a claimed count */
    for (size_t i = 0; i < entries; i++) {
        const uint64_t tag = span_u64le(image->dynamic, i * DYN_SIZE);
        str name;
        if (tag == DT_NULL)
            break;
        if (tag != DT_NEEDED && tag != DT_SONAME && tag != DT_RPATH && tag != DT_RUNPATH)
            continue;
        if (!name_at(image, span_u64le(image->dynamic, i * DYN_SIZE + 8), &name))
            return finding_add(f, F206, image->path, "dynamic entry %zu points outside the string table", i);
        bool kept = true;
        if (tag == DT_SONAME)
            out->soname = name;
        else if (tag == DT_NEEDED)
            kept = strs_add(a, &out->needs, name);
        else
            kept = add_paths(a, tag == DT_RPATH ? &out->rpath : &out->runpath, name);
        if (!kept)
            return finding_add(f, F205, image->path, "its dynamic section is over the limit on memory");
    }
    return true;
}

/* .gnu.version_r: for each library a chain of versions, each with the index that .gnu.version uses. */
struct version_index {
    uint16_t index;
    size_t version; /* into the object's versions */
};
struct version_table {
    struct version_index items[VERSIONS_MOST];
    size_t count;
};

static void note_version(struct elf_object *out, str version)
{
    static const struct {
        str prefix;
        size_t field;
    } KINDS[] = {
        {S_INIT("GLIBC_"), offsetof(struct elf_object, glibc)},
        {S_INIT("GLIBCXX_"), offsetof(struct elf_object, glibcxx)},
        {S_INIT("CXXABI_"), offsetof(struct elf_object, cxxabi)},
        {S_INIT("GCC_"), offsetof(struct elf_object, gcc)},
    };
    for (size_t i = 0; i < COUNT(KINDS); i++) {
        if (!str_starts(version, KINDS[i].prefix))
            continue;
        str *best = (str *)(void *)((char *)out + KINDS[i].field);
        const str number = str_from_index(version, KINDS[i].prefix.n);
        if (number.n == 0 || number.p[0] < '0' || number.p[0] > '9')
            return; /* GLIBC_PRIVATE, CXXABI_FLOAT128 */
        if (!best->p || elf_version_cmp(*best, number) < 0)
            *best = number;
    }
}

static bool read_versions(arena *a, const struct elf_image *image, struct elf_object *out,
                          struct version_table *t, findings *f)
{
    uint64_t at = 0;
    size_t capacity = image->needs.n / 16;
    capacity = capacity < VERSIONS_MOST ? capacity : VERSIONS_MOST;
    out->versions = arena_array(a, struct elf_version, capacity);
    if (!out->versions && capacity > 0)
        return finding_add(f, F205, image->path, "its symbol versions are over the limit on memory");
    for (size_t i = 0; i < image->need_count; i++) {
        str library;
        span need;
        if (!span_slice(image->needs, at, 16, &need) || !name_at(image, span_u32le(need, 4), &library))
            return finding_add(f, F206, image->path, "version need %zu points outside its table", i);
        uint64_t aux = at + span_u32le(need, 8);
        for (size_t k = span_u16le(need, 2); k > 0 && out->version_count < capacity; k--) {
            span entry;
            str version;
            if (!span_slice(image->needs, aux, 16, &entry) || !name_at(image, span_u32le(entry, 8), &version))
                return finding_add(f, F206, image->path, "a version of %.*s points outside its table",
                                   STR_ARG(library));
            t->items[t->count++] = (struct version_index){span_u16le(entry, 6), out->version_count};
            out->versions[out->version_count++] = (struct elf_version){library, version};
            note_version(out, version);
            if (span_u32le(entry, 12) == 0)
                break;
            aux += span_u32le(entry, 12);
        }
        if (span_u32le(need, 12) == 0)
            break;
        at += span_u32le(need, 12);
    }
    return true;
}

static int by_value(const void *x, const void *y)
{
    const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

static bool read_symbols(arena *a, const struct elf_image *image, struct elf_object *out,
                         const struct version_table *t, findings *f)
{
    const size_t count = image->symbols.n / SYMBOL_SIZE;
    size_t undefined = 0;
    for (size_t i = 1; i < count; i++)
        undefined += span_u16le(image->symbols, i * SYMBOL_SIZE + 6) == 0;
    out->undefined = arena_array(a, struct elf_symbol, undefined);
    out->defined = arena_array(a, uint64_t, count - undefined);
    if (count > 0 && (!out->undefined || !out->defined))
        return finding_add(f, F205, image->path, "%zu symbols are over the limit on memory", count);
    for (size_t i = 1; i < count; i++) {
        const span s = {image->symbols.p + i * SYMBOL_SIZE, SYMBOL_SIZE};
        const unsigned binding = span_u8(s, 4) >> 4, visibility = span_u8(s, 5) & 3;
        str name;
        if (!name_at(image, span_u32le(s, 0), &name))
            return finding_add(f, F206, image->path,
                               "the name of dynamic symbol %zu lies outside the string table", i);
        if (name.n == 0 || binding == STB_LOCAL)
            continue;
        if (span_u16le(s, 6) != 0) {
            if (visibility == 0 || visibility == 3)
                out->defined[out->defined_count++] = abi_hash(name);
            if (str_starts(name, S("PyInit_")) && !out->init.p)
                out->init = str_from_index(name, 7);
            continue;
        }
        struct elf_symbol symbol = {.name = name, .weak = binding == STB_WEAK};
        const uint16_t index = span_u16le(image->versions, i * 2) & (uint16_t)~VERSION_HIDDEN;
        for (size_t k = 0; index > 1 && k < t->count; k++) {
            if (t->items[k].index == index) {
                symbol.version = out->versions[t->items[k].version].version;
                symbol.library = out->versions[t->items[k].version].library;
                break;
            }
        }
        out->undefined[out->undefined_count++] = symbol;
    }
    qsort(out->defined, out->defined_count, sizeof *out->defined, by_value);
    return true;
}

bool elf_read(arena *a, const struct elf_image *image, struct elf_object *out, findings *f)
{
    struct elf_object object = {.path = image->path,
                                .machine = image->machine,
                                .executable_stack = image->executable_stack,
                                .text_relocations = image->text_relocations};
    struct version_table *table = arena_array(a, struct version_table, 1);
    if (!table)
        return finding_add(f, F205, image->path, "its tables are over the limit on memory");
    if (!read_dynamic(a, image, &object, f) || !read_versions(a, image, &object, table, f) ||
        !read_symbols(a, image, &object, table, f))
        return false;
    *out = object;
    return true;
}

static struct strs copy_strs(arena *a, const struct strs *list)
{
    struct strs copy = {0};
    for (size_t i = 0; i < list->count; i++)
        (void)strs_add(a, &copy, str_copy(a, list->items[i]));
    return copy;
}

static str copy_or_absent(arena *a, str s) { return s.p ? str_copy(a, s) : s; }

static void *copy_items(arena *a, const void *items, size_t count, size_t size)
{
    void *copy = count > 0 ? arena_alloc(a, count, size, alignof(max_align_t)) : NULL;
    if (copy)
        memcpy(copy, items, count * size);
    return copy;
}

struct elf_object elf_object_copy(arena *a, const struct elf_object *object)
{
    struct elf_object c = *object;
    c.path = str_copy(a, c.path);
    c.soname = copy_or_absent(a, c.soname);
    c.needs = copy_strs(a, &object->needs);
    c.rpath = copy_strs(a, &object->rpath);
    c.runpath = copy_strs(a, &object->runpath);
    c.versions = copy_items(a, c.versions, c.version_count, sizeof *c.versions);
    for (size_t i = 0; c.versions && i < c.version_count; i++) {
        c.versions[i].library = str_copy(a, c.versions[i].library);
        c.versions[i].version = str_copy(a, c.versions[i].version);
    }
    c.undefined = copy_items(a, c.undefined, c.undefined_count, sizeof *c.undefined);
    for (size_t i = 0; c.undefined && i < c.undefined_count; i++) {
        struct elf_symbol *s = &c.undefined[i];
        s->name = str_copy(a, s->name);
        for (size_t k = 0; c.versions && s->version.p && k < c.version_count; k++) {
            if (str_eq(c.versions[k].version, s->version) && str_eq(c.versions[k].library, s->library)) {
                s->version = c.versions[k].version; /* shared: thousands of symbols have the same */
                s->library = c.versions[k].library;
                break;
            }
        }
    }
    c.undefined_count = c.undefined ? c.undefined_count : 0;
    c.version_count = c.versions ? c.version_count : 0;
    c.defined = copy_items(a, c.defined, c.defined_count, sizeof *c.defined);
    c.defined_count = c.defined ? c.defined_count : 0;
    c.glibc = copy_or_absent(a, c.glibc);
    c.glibcxx = copy_or_absent(a, c.glibcxx);
    c.cxxabi = copy_or_absent(a, c.cxxabi);
    c.gcc = copy_or_absent(a, c.gcc);
    c.init = copy_or_absent(a, c.init);
    c.fatbins.items = copy_items(a, c.fatbins.items, c.fatbins.count, sizeof *c.fatbins.items);
    c.fatbins.count = c.fatbins.items ? c.fatbins.count : 0;
    c.fatbins.capacity = c.fatbins.count;
    for (size_t i = 0; i < c.fatbins.count; i++) {
        struct fatbin_container *container = &c.fatbins.items[i];
        container->entries = copy_items(a, container->entries, container->count, sizeof *container->entries);
        container->count = container->entries ? container->count : 0;
    }
    return c;
}
