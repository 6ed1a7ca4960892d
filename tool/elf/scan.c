/* One object as a stream. Kept are: the start of the file, where linkers put the tables; the dynamic section, whose place
 * the program headers give; the last loaded segment when it is small, since patchelf moves tables there; and the section
 * headers, for the names of the sections that hold GPU code. */
#include "elf/elf.h"

#include <stdlib.h>

enum {
    PREFIX_MOST = 16 << 20,        /* of the file's start */
    LAST_SEGMENT_MOST = 16 << 20,  /* bytes; an auditwheel'ed object's has what patchelf rewrote */
    KEPT_MOST = 512 << 20,         /* of all together */
    SECTION_NAMES_NEAR = 64 << 10, /* .shstrtab stands right before the section headers */
    RANGES_MOST = 4 + 3 * ELF_WANTED_MOST,
    PASSES_MOST = 4,
    PT_LOAD = 1,
    PT_DYNAMIC = 2
};

struct range {
    struct elf_range range;
    uint8_t *bytes;
    size_t count, capacity;
};

struct elf_scan {
    arena *a;
    str path;
    uint64_t size, at, enough;
    struct range ranges[RANGES_MOST];
    size_t range_count;
    uint64_t sections_at;
    size_t section_count, section_names;
    struct fatbin_scan *fatbins;
    bool planned, foreign, out_of_memory, fatbins_whole;
    int pass;
};

struct elf_scan *elf_scan_new(arena *a, str path, uint64_t size)
{
    struct elf_scan *s = calloc(1, sizeof *s);
    struct fatbin_scan *fatbins = fatbin_scan_new(a, size);
    if (!s || !fatbins) {
        free(s);
        return NULL;
    }
    *s = (struct elf_scan){.a = a, .path = path, .size = size, .enough = UINT64_MAX, .fatbins = fatbins};
    s->ranges[s->range_count++].range = (struct elf_range){0, size < PREFIX_MOST ? size : PREFIX_MOST};
    s->fatbins_whole = true;
    return s;
}

void elf_scan_free(struct elf_scan *s)
{
    for (size_t i = 0; s && i < s->range_count; i++)
        free(s->ranges[i].bytes);
    free(s);
}

static bool grow(struct range *r, size_t more)
{
    if (more <= r->capacity - r->count)
        return true;
    size_t capacity = r->capacity ? r->capacity : 64 << 10;
    while (capacity < r->count + more)
        capacity *= 2;
    capacity = capacity < r->range.size ? capacity : (size_t)r->range.size;
    uint8_t *bytes = realloc(r->bytes, capacity);
    if (!bytes)
        return false;
    r->bytes = bytes;
    r->capacity = capacity;
    return true;
}

/* Adds what of bytes, which stand at `at`, belongs to the range. */
static bool keep(struct range *r, uint64_t at, span bytes)
{
    const uint64_t next = r->range.offset + r->count, end = r->range.offset + r->range.size;
    if (next < at || next >= at + bytes.n || next >= end)
        return true;
    const uint64_t last = end < at + bytes.n ? end : at + bytes.n;
    const size_t n = (size_t)(last - next);
    if (n == 0)
        return true;
    if (!grow(r, n))
        return false;
    memcpy(r->bytes + r->count, bytes.p + (next - at), n);
    r->count += n;
    return true;
}

/* The file's start holds what has already passed. */
static void add_range(struct elf_scan *s, uint64_t offset, uint64_t size)
{
    uint64_t total = size;
    for (size_t i = 0; i < s->range_count; i++)
        total += s->ranges[i].range.size;
    if (s->range_count == RANGES_MOST || size == 0 || offset > s->size || size > s->size - offset ||
        total > KEPT_MOST)
        return;
    struct range *r = &s->ranges[s->range_count++];
    *r = (struct range){.range = {offset, size}};
    if (s->pass == 0 && !keep(r, 0, (span){s->ranges[0].bytes, s->ranges[0].count}))
        s->out_of_memory = true;
}

/* Once the program headers are there: what else to keep, and where the loaded part ends. */
static void plan(struct elf_scan *s)
{
    const span start = {s->ranges[0].bytes, s->ranges[0].count};
    span programs;
    if (start.n < 64 && start.n < s->size)
        return;
    const uint64_t offset = span_u64le(start, 32), count = span_u16le(start, 56);
    if (start.n < 64 || span_u32le(start, 0) != 0x464c457f || offset + count * 56 > PREFIX_MOST ||
        span_u16le(start, 54) != 56) {
        s->foreign = true; /* elf_open says what is wrong */
        return;
    }
    if (!span_slice(start, offset, count * 56, &programs))
        return;
    s->planned = true;
    uint64_t enough = 0;
    struct elf_range last = {0, 0};
    for (size_t i = 0; i < count; i++) {
        const uint32_t type = span_u32le(programs, i * 56);
        const struct elf_range r = {span_u64le(programs, i * 56 + 8), span_u64le(programs, i * 56 + 32)};
        if ((type != PT_LOAD && type != PT_DYNAMIC) || r.offset > s->size || r.size > s->size - r.offset)
            continue;
        enough = r.offset + r.size > enough ? r.offset + r.size : enough;
        if (type == PT_DYNAMIC)
            add_range(s, r.offset, r.size < 64 << 10 ? r.size : 64 << 10);
        else if (r.offset >= last.offset)
            last = r;
    }
    s->enough = enough;
    if (last.offset > 0 && last.size <= LAST_SEGMENT_MOST)
        add_range(s, last.offset, last.size);
    s->sections_at = span_u64le(start, 40);
    s->section_count = span_u16le(start, 60);
    s->section_names = span_u16le(start, 62);
    if (s->section_count > 0 && s->sections_at < s->size) {
        const uint64_t near = s->sections_at < SECTION_NAMES_NEAR ? s->sections_at : SECTION_NAMES_NEAR;
        const uint64_t rest = s->size - (s->sections_at - near);
        add_range(s, s->sections_at - near,
                  rest < 2ULL * SECTION_NAMES_NEAR ? rest : 2ULL * SECTION_NAMES_NEAR);
    }
}

bool elf_scan_feed(struct elf_scan *s, span bytes)
{
    bool wanted = s->pass == 0;
    if (s->foreign || s->out_of_memory)
        return false;
    for (size_t i = 0; i < s->range_count; i++) {
        struct range *r = &s->ranges[i];
        if (!keep(r, s->at, bytes)) {
            s->out_of_memory = true;
            return false;
        }
        wanted = wanted || r->count < r->range.size;
    }
    s->at += bytes.n;
    if (s->pass == 0 && !fatbin_scan_feed(s->fatbins, bytes))
        s->fatbins_whole = false;
    if (!s->planned && s->pass == 0)
        plan(s);
    return wanted && !s->foreign;
}

uint64_t elf_scan_enough(const struct elf_scan *s) { return s->enough; }

/* Which containers the loader's start-up code registers: those of .nv_fatbin. Relocatable device code lies beside it and was
 * linked into it; a container elsewhere is data that a program may load itself. */
static void name_places(const struct elf_scan *s, const struct elf_view *view, struct fatbins *fatbins)
{
    span headers = {NULL, 0}, names = {NULL, 0};
    for (size_t i = 0; i < view->count && !headers.p; i++) {
        const struct elf_piece *p = &view->pieces[i];
        if (s->sections_at >= p->offset)
            (void)span_slice(p->bytes, s->sections_at - p->offset, s->section_count * 64ULL, &headers);
    }
    if (!headers.p || s->section_names >= s->section_count)
        return;
    const uint64_t names_at = span_u64le(headers, s->section_names * 64 + 24);
    const uint64_t names_size = span_u64le(headers, s->section_names * 64 + 32);
    for (size_t i = 0; i < view->count && !names.p; i++) {
        const struct elf_piece *p = &view->pieces[i];
        if (names_at >= p->offset)
            (void)span_slice(p->bytes, names_at - p->offset, names_size, &names);
    }
    if (!names.p)
        return;
    fatbins->sections_known = true;
    for (size_t c = 0; c < fatbins->count; c++)
        fatbins->items[c].place = FATBIN_DATA;
    for (size_t i = 0; i < s->section_count; i++) {
        const span h = {headers.p + i * 64, 64};
        str name;
        if (!span_cstr(names, span_u32le(h, 0), &name))
            continue;
        const bool loaded = str_eq(name, S(".nv_fatbin")), relocatable = str_eq(name, S("__nv_relfatbin"));
        for (size_t c = 0; (loaded || relocatable) && c < fatbins->count; c++)
            if (fatbins->items[c].offset - span_u64le(h, 24) < span_u64le(h, 32))
                fatbins->items[c].place = loaded ? FATBIN_LOADED : FATBIN_RELOCATABLE;
    }
}

enum elf_state elf_scan_end(struct elf_scan *s, struct elf_object *out, findings *f)
{
    struct elf_piece pieces[RANGES_MOST];
    struct elf_view view = {.size = s->size, .pieces = pieces};
    struct elf_range wanted[ELF_WANTED_MOST];
    size_t wanted_count = 0;
    struct elf_image image;
    if (s->out_of_memory) {
        (void)finding_add(f, F205, s->path, "its tables do not fit this machine's memory");
        return ELF_BROKEN;
    }
    for (size_t i = 0; i < s->range_count; i++)
        pieces[view.count++] =
            (struct elf_piece){s->ranges[i].range.offset, {s->ranges[i].bytes, s->ranges[i].count}};
    const enum elf_state state = elf_open(s->path, &view, &image, wanted, &wanted_count, f);
    if (state == ELF_BROKEN)
        return state;
    if (state == ELF_WANTED) {
        if (++s->pass == PASSES_MOST || s->foreign) {
            (void)finding_add(f, F206, s->path, "the file ends at byte %llu, before its tables do",
                              (unsigned long long)s->at);
            return ELF_BROKEN;
        }
        const size_t before = s->range_count;
        s->at = 0;
        for (size_t i = 0; i < wanted_count; i++)
            add_range(s, wanted[i].offset, wanted[i].size);
        if (s->range_count == before) {
            (void)finding_add(f, F205, s->path, "its tables are over the limit of %d bytes", KEPT_MOST);
            return ELF_BROKEN;
        }
        return state;
    }
    struct elf_object object;
    uint64_t broken_at = UINT64_MAX;
    if (!elf_read(s->a, &image, &object, f))
        return ELF_BROKEN;
    fatbin_scan_end(s->fatbins, &object.fatbins, &broken_at);
    if (object.fatbins.count > 0)
        name_places(s, &view, &object.fatbins);
    if (!s->fatbins_whole)
        (void)finding_add(f, F205, s->path, "its fatbin containers are over the limit of %d",
                          ELF_CONTAINERS_MOST);
    if (broken_at != UINT64_MAX)
        (void)finding_add(f, F252, s->path, "the fatbin container at byte %llu breaks its format",
                          (unsigned long long)broken_at);
    *out = object;
    return ELF_READ;
}
