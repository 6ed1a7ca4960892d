/* Where an object's tables are. Everything is found through program headers and the dynamic section, as the loader does:
 * section headers may be stripped, and stand at the end, where a stream comes last. */
#include "elf/elf.h"

enum {
    HEADER_SIZE = 64,
    PROGRAM_SIZE = 56,
    DYN_SIZE = 16,
    SYMBOL_SIZE = 24,
    PROGRAMS_MOST = 256,
    DYNAMIC_MOST = 64 << 10, /* bytes; 4,096 entries */
    TABLE_MOST = 256 << 20,  /* bytes a table; libtorch_cpu's .dynstr has 50 million */
    NEEDS_BYTES_MOST =
        1 << 20 /* .gnu.version_r has no size of its own but the string table follows or precedes it */
};

enum { /* of elf.h, which is not used so that the code builds where there is none */
       PT_LOAD = 1,
       PT_DYNAMIC = 2,
       PT_GNU_STACK = 0x6474e551,
       PF_X = 1,
       ET_DYN = 3,
       DT_NULL = 0,
       DT_HASH = 4,
       DT_STRTAB = 5,
       DT_SYMTAB = 6,
       DT_RELA = 7,
       DT_STRSZ = 10,
       DT_SYMENT = 11,
       DT_INIT = 12,
       DT_TEXTREL = 22,
       DT_JMPREL = 23,
       DT_FLAGS = 30,
       DF_TEXTREL = 4,
       DT_GNU_HASH = 0x6ffffef5,
       DT_VERSYM = 0x6ffffff0,
       DT_VERDEF = 0x6ffffffc,
       DT_VERNEED = 0x6ffffffe,
       DT_VERNEEDNUM = 0x6fffffff
};

struct opener {
    const struct elf_view *view;
    str path;
    span programs;
    size_t program_count;
    struct elf_range *wanted;
    size_t *wanted_count;
    uint64_t starts[16]; /* file offsets at which some table begins: one table ends where the next begins */
    size_t start_count;
    findings *f;
};

static bool view_slice(const struct elf_view *view, uint64_t offset, uint64_t size, span *out)
{
    for (size_t i = 0; i < view->count; i++) {
        const struct elf_piece *p = &view->pieces[i];
        if (offset >= p->offset && offset - p->offset <= p->bytes.n &&
            span_slice(p->bytes, offset - p->offset, size, out))
            return true;
    }
    return false;
}

/* A part of the file: true when it is here, else it is noted as wanted. *broken when it lies outside the file. */
static bool want(struct opener *o, uint64_t offset, uint64_t size, span *out, bool *broken)
{
    if (offset > o->view->size || size > o->view->size - offset) {
        *broken = true;
        return false;
    }
    if (view_slice(o->view, offset, size, out))
        return true;
    if (*o->wanted_count < ELF_WANTED_MOST)
        o->wanted[(*o->wanted_count)++] = (struct elf_range){offset, size};
    return false;
}

static span program_at(const struct opener *o, size_t i)
{
    return (span){o->programs.p + i * PROGRAM_SIZE, PROGRAM_SIZE};
}

/* The file offset of a link-time address, and how many bytes of the file follow it in its segment. */
static bool address_to_offset(const struct opener *o, uint64_t address, uint64_t *offset, uint64_t *rest)
{
    for (size_t i = 0; i < o->program_count; i++) {
        const span p = program_at(o, i);
        const uint64_t start = span_u64le(p, 16), file_size = span_u64le(p, 32), at = span_u64le(p, 8);
        if (span_u32le(p, 0) == PT_LOAD && address >= start && address - start < file_size &&
            at <= UINT64_MAX - (address - start)) {
            *offset = at + (address - start);
            *rest = file_size - (address - start);
            return true;
        }
    }
    return false;
}

/* From offset to where the next table starts, and no further than its segment goes. */
static uint64_t table_size(const struct opener *o, uint64_t offset, uint64_t rest)
{
    uint64_t size = rest;
    for (size_t i = 0; i < o->start_count; i++)
        if (o->starts[i] > offset && o->starts[i] - offset < size)
            size = o->starts[i] - offset;
    return size;
}

struct dynamic { /* addresses; 0: not there */
    uint64_t strings, strings_size, symbols, symbol_size, hash, gnu_hash, versions, needs, needs_count;
    bool text_relocations;
};

static void read_dynamic(struct opener *o, span bytes, struct dynamic *d)
{
    for (size_t at = 0; at + DYN_SIZE <= bytes.n; at += DYN_SIZE) {
        const uint64_t tag = span_u64le(bytes, at), value = span_u64le(bytes, at + 8);
        uint64_t offset = 0, rest = 0;
        switch (tag) {
        case DT_NULL:
            return;
        case DT_STRTAB:
            d->strings = value;
            break;
        case DT_STRSZ:
            d->strings_size = value;
            break;
        case DT_SYMTAB:
            d->symbols = value;
            break;
        case DT_SYMENT:
            d->symbol_size = value;
            break;
        case DT_HASH:
            d->hash = value;
            break;
        case DT_GNU_HASH:
            d->gnu_hash = value;
            break;
        case DT_VERSYM:
            d->versions = value;
            break;
        case DT_VERNEED:
            d->needs = value;
            break;
        case DT_VERNEEDNUM:
            d->needs_count = value;
            break;
        case DT_TEXTREL:
            d->text_relocations = true;
            break;
        case DT_FLAGS:
            d->text_relocations = d->text_relocations || (value & DF_TEXTREL);
            break;
        case DT_RELA:
        case DT_JMPREL:
        case DT_INIT:
        case DT_VERDEF:
            break;
        default:
            continue;
        }
        const bool is_address = tag != DT_STRSZ && tag != DT_SYMENT && tag != DT_VERNEEDNUM &&
                                tag != DT_TEXTREL && tag != DT_FLAGS;
        if (is_address && o->start_count < COUNT(o->starts) && address_to_offset(o, value, &offset, &rest))
            o->starts[o->start_count++] = offset;
    }
}

/* How many symbols there are: nothing says so directly. DT_HASH counts them; DT_GNU_HASH has a chain whose last word is
 * marked; an object that exports nothing has neither, and then the table ends where the next one begins. */
static bool count_symbols(struct opener *o, const struct dynamic *d, uint64_t room, size_t *count,
                          bool *broken)
{
    uint64_t offset = 0, rest = 0;
    span table;
    if (d->hash && address_to_offset(o, d->hash, &offset, &rest)) {
        if (!want(o, offset, 8, &table, broken))
            return false;
        *count = span_u32le(table, 4);
        return true;
    }
    *count = (size_t)(room / SYMBOL_SIZE);
    if (!d->gnu_hash || !address_to_offset(o, d->gnu_hash, &offset, &rest))
        return true;
    const uint64_t size = table_size(o, offset, rest);
    if (!want(o, offset, size < TABLE_MOST ? size : TABLE_MOST, &table, broken))
        return false;
    const uint64_t buckets = span_u32le(table, 0), first = span_u32le(table, 4), bloom = span_u32le(table, 8);
    const uint64_t bucket_at = 16 + bloom * 8, chain_at = bucket_at + buckets * 4;
    uint64_t last = 0;
    for (uint64_t i = 0; i < buckets && bucket_at + i * 4 + 4 <= table.n; i++) {
        const uint32_t symbol = span_u32le(table, bucket_at + i * 4);
        last = symbol > last ? symbol : last;
    }
    if (last < first || last == 0)
        return true; /* nothing is exported */
    while (chain_at + (last - first) * 4 + 4 <= table.n &&
           !(span_u32le(table, chain_at + (last - first) * 4) & 1))
        last++;
    *count = (size_t)(last + 1);
    return true;
}

static enum elf_state open_tables(struct opener *o, struct elf_image *image, bool *broken)
{
    struct dynamic d = {.symbol_size = SYMBOL_SIZE};
    uint64_t offset = 0, rest = 0, symbol_offset = 0, symbol_rest = 0;
    read_dynamic(o, image->dynamic, &d);
    image->text_relocations = d.text_relocations;
    if (d.strings_size > TABLE_MOST || d.needs_count > ELF_NEEDS_MOST || d.symbol_size != SYMBOL_SIZE) {
        (void)finding_add(
            o->f, F205, o->path,
            "its dynamic section claims %llu bytes of names, %llu version needs and symbols of %llu bytes",
            (unsigned long long)d.strings_size, (unsigned long long)d.needs_count,
            (unsigned long long)d.symbol_size);
        return ELF_BROKEN;
    }
    if (d.strings && !address_to_offset(o, d.strings, &offset, &rest))
        *broken = true;
    else if (d.strings &&
             (d.strings_size > rest || !want(o, offset, d.strings_size, &image->strings, broken)))
        *broken = *broken || d.strings_size > rest;

    size_t count = 0;
    if (d.symbols && !address_to_offset(o, d.symbols, &symbol_offset, &symbol_rest)) {
        *broken = true;
    } else if (d.symbols) {
        const uint64_t room = table_size(o, symbol_offset, symbol_rest);
        if (count_symbols(o, &d, room, &count, broken)) {
            /* The loader trusts the hash table; a copy of the table that patchelf moved may be shorter than its room. */
            if (count > symbol_rest / SYMBOL_SIZE)
                *broken = true;
            else if (count > ELF_SYMBOLS_MOST)
                count = ELF_SYMBOLS_MOST;
            if (!*broken)
                (void)want(o, symbol_offset, count * SYMBOL_SIZE, &image->symbols, broken);
        } else if (!*broken) {
            (void)want(o, symbol_offset, room < TABLE_MOST ? room : TABLE_MOST, &image->symbols, broken);
        }
        image->symbol_count = count;
        if (d.versions && address_to_offset(o, d.versions, &offset, &rest)) {
            const uint64_t size = count ? count * 2 : table_size(o, offset, rest);
            (void)want(o, offset, size < rest ? size : rest, &image->versions, broken);
        }
    }
    if (d.needs && d.needs_count && !address_to_offset(o, d.needs, &offset, &rest)) {
        *broken = true;
    } else if (d.needs && d.needs_count) {
        const uint64_t size = table_size(o, offset, rest);
        (void)want(o, offset, size < NEEDS_BYTES_MOST ? size : NEEDS_BYTES_MOST, &image->needs, broken);
        image->need_count = (size_t)d.needs_count;
    }
    if (*broken) {
        (void)finding_add(o->f, F206, o->path, "its dynamic section points outside the file");
        return ELF_BROKEN;
    }
    return *o->wanted_count > 0 ? ELF_WANTED : ELF_READ;
}

enum elf_state elf_open(str path, const struct elf_view *view, struct elf_image *out,
                        struct elf_range wanted[ELF_WANTED_MOST], size_t *wanted_count, findings *f)
{
    struct opener o = {.view = view, .path = path, .wanted = wanted, .wanted_count = wanted_count, .f = f};
    struct elf_image image = {.path = path};
    bool broken = false;
    span header;
    *wanted_count = 0;
    if (!want(&o, 0, HEADER_SIZE, &header, &broken)) {
        if (!broken)
            return ELF_WANTED;
        (void)finding_add(f, F206, path, "the file ends inside its ELF header, at byte %llu of 64",
                          (unsigned long long)view->size);
        return ELF_BROKEN;
    }
    if (span_u32le(header, 0) != 0x464c457f || span_u8(header, 4) != 2 || span_u8(header, 5) != 1) {
        (void)finding_add(f, F206, path, "its first bytes are not those of a 64-bit little-endian ELF file");
        return ELF_BROKEN;
    }
    if (span_u16le(header, 16) != ET_DYN) {
        (void)finding_add(f, F206, path, "ELF type %u is not that of a shared object (3)",
                          span_u16le(header, 16));
        return ELF_BROKEN;
    }
    image.machine = span_u16le(header, 18);
    o.program_count = span_u16le(header, 56);
    const uint64_t program_offset = span_u64le(header, 32);
    if (span_u16le(header, 54) != PROGRAM_SIZE || o.program_count > PROGRAMS_MOST) {
        (void)finding_add(f, F206, path,
                          "expected program headers of 56 bytes, at most %d, got %zu of %u bytes",
                          PROGRAMS_MOST, o.program_count, span_u16le(header, 54));
        return ELF_BROKEN;
    }
    if (!want(&o, program_offset, o.program_count * PROGRAM_SIZE, &o.programs, &broken)) {
        if (!broken)
            return ELF_WANTED;
        (void)finding_add(f, F206, path, "its program headers, at byte %llu, lie outside the file",
                          (unsigned long long)program_offset);
        return ELF_BROKEN;
    }
    for (size_t i = 0; i < o.program_count; i++) {
        const span p = program_at(&o, i);
        const uint32_t type = span_u32le(p, 0);
        if (type == PT_GNU_STACK)
            image.executable_stack = span_u32le(p, 4) & PF_X;
        if (type != PT_DYNAMIC)
            continue;
        const uint64_t offset = span_u64le(p, 8), size = span_u64le(p, 32);
        if (size > DYNAMIC_MOST) {
            (void)finding_add(f, F205, path, "a dynamic section of %llu bytes is over the limit of %d",
                              (unsigned long long)size, DYNAMIC_MOST);
            return ELF_BROKEN;
        }
        if (!want(&o, offset, size, &image.dynamic, &broken)) {
            if (!broken)
                return ELF_WANTED;
            (void)finding_add(f, F206, path, "its dynamic section, at byte %llu, lies outside the file",
                              (unsigned long long)offset);
            return ELF_BROKEN;
        }
    }
    const enum elf_state state = open_tables(&o, &image, &broken);
    if (state == ELF_READ)
        *out = image;
    return state;
}
