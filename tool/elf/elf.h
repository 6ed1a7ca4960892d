/* elf/elf.h: what a shared object asks of the machine that loads it. ELF64 little-endian, as in the System V gABI and the
 * GNU extensions for symbol versions and hashes; and the containers of GPU code ("fatbins") that nvcc puts into it. Reads
 * bytes, runs nothing. Objects come as a stream, since in a wheel they are deflated: only what the answer needs is kept. */
#ifndef FELLOE_ELF_H
#define FELLOE_ELF_H

#include "base/base.h"

enum {
    ELF_MACHINE_X86_64 = 62,
    ELF_MACHINE_AARCH64 = 183,
    ELF_NEEDS_MOST = 4096,          /* DT_NEEDED entries; real objects have under 100 */
    ELF_SYMBOLS_MOST = 4 << 20,     /* libtorch_cpu has 0.3 million */
    ELF_CONTAINERS_MOST = 64 << 10, /* fatbin containers an object; libtorch_cuda has under 2,000 */
    ELF_ENTRIES_MOST = 256          /* entries a container: one an architecture */
};

/* ---- Pieces of a file ---- */
struct elf_range { /* of a file, in bytes */
    uint64_t offset, size;
};
struct elf_piece {
    uint64_t offset;
    span bytes;
};
struct elf_view { /* what is at hand of a file: all of it, or what a stream kept */
    uint64_t size;
    const struct elf_piece *pieces;
    size_t count;
};

/* ---- The image: tables found, nothing decoded ---- */
struct elf_image {
    str path;
    uint16_t machine;
    span dynamic, strings, symbols, versions,
        needs; /* .dynamic .dynstr .dynsym .gnu.version .gnu.version_r */
    size_t symbol_count;
    size_t need_count; /* of .gnu.version_r */
    bool executable_stack, text_relocations;
};
enum elf_state {
    ELF_READ,   /* *out is whole */
    ELF_WANTED, /* wanted[0..*wanted_count) are parts of the file that the view lacks */
    ELF_BROKEN  /* a finding says where and how */
};
enum { ELF_WANTED_MOST = 8 };
/* Finds the tables. Every span and str of the result points into the view's pieces, which must outlive it. */
enum elf_state elf_open(str path, const struct elf_view *view, struct elf_image *out,
                        struct elf_range wanted[ELF_WANTED_MOST], size_t *wanted_count, findings *f);

/* ---- The object: all that is said about one ---- */
struct elf_symbol { /* undefined: another library has to have it */
    str name;
    str version, library; /* "GLIBC_2.34" of "libc.so.6"; absent without a version */
    bool weak;            /* may stay undefined */
};
struct elf_version { /* a version that a library has to have */
    str library, version;
};

enum fatbin_kind { FATBIN_PTX = 1, FATBIN_CUBIN = 2, FATBIN_LTO = 8 };
struct fatbin_entry {
    uint16_t kind; /* of enum fatbin_kind; others are passed over */
    uint32_t arch; /* 75, 120 */
    char suffix;   /* 'a': that exact GPU; 'f': its family; 0 */
    bool compressed, stub;
    uint16_t isa_major, isa_minor; /* of PTX */
};
enum fatbin_place { FATBIN_LOADED, FATBIN_RELOCATABLE, FATBIN_DATA };
struct fatbin_container {
    uint64_t offset, size;
    struct fatbin_entry *entries;
    size_t count;
    enum fatbin_place place; /* FATBIN_DATA: found outside .nv_fatbin by its magic */
};
struct fatbins {
    struct fatbin_container *items;
    size_t count, capacity;
    bool sections_known; /* else every container counts as loaded */
};

struct elf_object {
    str path;
    uint16_t machine;
    str soname; /* absent without one */
    struct strs needs, rpath, runpath;
    struct elf_symbol *undefined;
    size_t undefined_count;
    uint64_t *defined; /* sorted abi_hash of every exported name */
    size_t defined_count;
    struct elf_version *versions;
    size_t version_count;
    str glibc, glibcxx, cxxabi, gcc; /* the highest versions asked for, "2.34"; absent when none */
    str init;                        /* "_C" for PyInit__C; absent when it is no Python module */
    bool executable_stack, text_relocations;
    struct fatbins fatbins;
};
/* False when a table points outside another: f says where. The result points into the image's pieces and into a. */
bool elf_read(arena *a, const struct elf_image *image, struct elf_object *out, findings *f);
/* A copy that needs only a. NULL pointers in the result when a is full. */
struct elf_object elf_object_copy(arena *a, const struct elf_object *object);
/* Dotted numbers compared as such: "2.9" before "2.34". */
int elf_version_cmp(str a, str b);

/* ---- Fatbins ---- */
struct fatbin_scan;
/* file_size bounds what a container may claim. */
struct fatbin_scan *fatbin_scan_new(arena *a, uint64_t file_size);
/* The next bytes of the file, in order. False past the limits on containers. */
bool fatbin_scan_feed(struct fatbin_scan *scan, span bytes);
/* What was found. A container that breaks its format ends with its last whole entry, and *broken_at is its offset in the
 * file (UINT64_MAX when none does). */
void fatbin_scan_end(struct fatbin_scan *scan, struct fatbins *out, uint64_t *broken_at);
/* "sm_120a" or "compute_90" */
str fatbin_arch_text(arena *a, const struct fatbin_entry *entry);

/* ---- GPU code on a GPU ---- */
enum arch_verdict { ARCH_NO, ARCH_BY_PTX, ARCH_YES };
struct arch { /* 12.0, with its suffix */
    unsigned number;
    char suffix;
};
bool arch_parse(str text, struct arch *out); /* "sm_120", "compute_90a" */
/* Whether one entry runs on the GPU `device`, for a driver of CUDA driver_major.driver_minor (0.0: not known). */
enum arch_verdict arch_entry_runs(const struct fatbin_entry *entry, unsigned device, unsigned driver_major,
                                  unsigned driver_minor);
/* The best of a container's entries. A container without kernels (stubs alone) gives ARCH_YES. */
enum arch_verdict arch_container_runs(const struct fatbin_container *c, unsigned device,
                                      unsigned driver_major, unsigned driver_minor);
bool fatbin_has_code(const struct fatbin_container *c); /* a kernel, as far as its cubins show */

/* ---- A stream of one object ----
 * Feed it the file in order, then end it. When the end answers ELF_WANTED, feed the same file once more from its start:
 * the tables lie where no first pass can know. */
struct elf_scan;
struct elf_scan *elf_scan_new(arena *a, str path, uint64_t size);
/* False when no more bytes are needed (or the file is none): the caller may stop. */
bool elf_scan_feed(struct elf_scan *scan, span bytes);
/* What follows this offset is not needed: sections that nobody loads. UINT64_MAX while it is not known. */
uint64_t elf_scan_enough(const struct elf_scan *scan);
enum elf_state elf_scan_end(struct elf_scan *scan, struct elf_object *out, findings *f);
void elf_scan_free(struct elf_scan *scan); /* after the result was copied; its tables go with it */

/* ---- ABI profiles: which library of which torch, and which CPython, exports a name ----
 * A set of 48-bit hashes of names, sorted, each with the set of (release, library) pairs that export it. A name that was never
 * exported is said to be present with a chance of count / 2^48 (3e-9 for 0.8 million names); one that was is never missed. */
struct abi;
enum { ABI_SOURCES_MOST = 512 };
struct abi_source { /* one library of one release */
    str release;    /* "torch 2.11.0", "cpython 3.12" */
    str library;    /* "libc10.so" */
    struct strs needs;
    size_t symbols;
};
uint64_t abi_hash(str name); /* 64 bits, of which profiles keep the upper 48 */

bool abi_read(arena *a, span file, str path, struct abi **out, findings *f);
bool abi_data(arena *a, struct abi **out, findings *f); /* data/abi/profiles.abi, compiled in */
size_t abi_source_count(const struct abi *abi);
const struct abi_source *abi_source_at(const struct abi *abi, size_t i);
size_t abi_name_count(const struct abi *abi);
/* The sources that export the name, as bits of set (ABI_SOURCES_MOST of them); false when none does. */
struct abi_set {
    uint64_t bits[ABI_SOURCES_MOST / 64];
};
bool abi_find(const struct abi *abi, uint64_t hash, struct abi_set *set);
static inline bool abi_set_has(const struct abi_set *set, size_t i)
{
    return (set->bits[i / 64] >> (i % 64)) & 1;
}
static inline void abi_set_add(struct abi_set *set, size_t i) { set->bits[i / 64] |= 1ULL << (i % 64); }

struct abi_input { /* for abi_write */
    struct abi_source source;
    const uint64_t *hashes;
    size_t count;
};
/* A profile of the inputs, on top of `base` (may be NULL); a source of base with the same release and library is replaced. */
bool abi_write(arena *a, const struct abi *base, const struct abi_input *inputs, size_t count, span *out,
               findings *f);

#endif
