/* Objects, GPU code and ABI profiles. Judges: readelf's and cuobjdump's listings of the fixtures (tests/elf/data, made by its
 * `make`), the rules of the CUDA C++ programming guide, and the definition of a set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "elf/elf.h"

static span fixture(arena *a, findings *f, const char *name)
{
    span file;
    assert_true(file_read(a, str_format(a, SOURCE_DIR "/tests/elf/data/%s", name), 1 << 20, &file, f));
    return file;
}

/* As the program reads a member: in pieces, again when the tables lie elsewhere. */
static enum elf_state read_in_pieces(arena *a, span file, uint64_t size, size_t piece, struct elf_object *out,
                                     findings *f)
{
    struct elf_scan *scan = elf_scan_new(a, S("x.so"), size);
    struct elf_object object = {0};
    enum elf_state state = ELF_WANTED;
    for (int pass = 0; pass < 4 && state == ELF_WANTED; pass++) {
        for (size_t at = 0; at < file.n; at += piece)
            if (!elf_scan_feed(scan, (span){file.p + at, file.n - at < piece ? file.n - at : piece}))
                break;
        state = elf_scan_end(scan, &object, f);
    }
    if (state == ELF_READ)
        *out = elf_object_copy(a, &object);
    elf_scan_free(scan);
    return state;
}

static void needs_versions_and_symbols_are_those_that_readelf_lists(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    findings *f = findings_new(a);
    struct elf_object o;
    const span file = fixture(a, f, "mixed.so");
    assert_int_equal(ELF_READ, read_in_pieces(a, file, file.n, file.n, &o, f));
    assert_int_equal(ELF_MACHINE_X86_64, o.machine);
    assert_int_equal(4, o.needs.count);
    assert_true(str_eq(o.needs.items[0], S("libcudart.so.13")));
    assert_true(str_eq(o.needs.items[3], S("libc.so.6")));
    assert_true(str_eq(o.glibc, S("2.2.5")));
    const uint64_t exported = abi_hash(S("run_scale")), other = abi_hash(S("run_nothing"));
    bool has = false, has_other = false;
    for (size_t i = 0; i < o.defined_count; i++) {
        has = has || o.defined[i] == exported;
        has_other = has_other || o.defined[i] == other;
    }
    assert_true(has);
    assert_false(has_other);
    bool launch = false;
    for (size_t i = 0; i < o.undefined_count; i++)
        launch = launch || (str_eq(o.undefined[i].name, S("__cudaLaunchKernel")) &&
                            str_eq(o.undefined[i].library, S("libcudart.so.13")));
    assert_true(launch);
    arena_free(a);
}

static void a_container_is_one_source_file_and_stubs_hold_no_code(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    findings *f = findings_new(a);
    struct elf_object o;
    const span file = fixture(a, f, "mixed.so");
    assert_int_equal(ELF_READ, read_in_pieces(a, file, file.n, 4096, &o, f));
    assert_int_equal(3, o.fatbins.count);
    assert_true(o.fatbins.sections_known);
    assert_false(fatbin_has_code(&o.fatbins.items[0])); /* the device link's */
    assert_int_equal(1, o.fatbins.items[1].count);
    assert_int_equal(120, o.fatbins.items[1].entries[0].arch);
    assert_int_equal(90, o.fatbins.items[2].entries[0].arch);
    assert_int_equal(ARCH_YES, arch_container_runs(&o.fatbins.items[1], 120, 13, 0));
    assert_int_equal(ARCH_NO, arch_container_runs(&o.fatbins.items[2], 120, 13, 0));
    arena_free(a);
}

static void suffixes_and_ptx_are_told_apart(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    findings *f = findings_new(a);
    struct elf_object o;
    span file = fixture(a, f, "suffixes.so");
    assert_int_equal(ELF_READ, read_in_pieces(a, file, file.n, file.n, &o, f));
    const struct fatbin_container *c = &o.fatbins.items[o.fatbins.count - 1];
    assert_int_equal(2, c->count);
    assert_int_equal('a', c->entries[0].suffix);
    assert_int_equal('f', c->entries[1].suffix);
    file = fixture(a, f, "ptx80.so");
    assert_int_equal(ELF_READ, read_in_pieces(a, file, file.n, file.n, &o, f));
    c = &o.fatbins.items[o.fatbins.count - 1];
    assert_int_equal(FATBIN_PTX, c->entries[0].kind);
    assert_int_equal(80, c->entries[0].arch);
    assert_true(c->entries[0].compressed);
    assert_int_equal(9, c->entries[0].isa_major);
    assert_int_equal(ARCH_BY_PTX, arch_container_runs(c, 120, 13, 0));
    assert_int_equal(ARCH_NO, arch_container_runs(c, 75, 13, 0));
    assert_int_equal(ARCH_NO, arch_container_runs(c, 120, 12, 8)); /* a driver of CUDA 12.8 reads PTX 8.7 */
    arena_free(a);
}

static void the_size_of_the_pieces_does_not_matter(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    findings *f = findings_new(a);
    const size_t sizes[] = {1, 7, 64, 333, 4096};
    struct elf_object whole, o;
    const span file = fixture(a, f, "mixed.so");
    assert_int_equal(ELF_READ, read_in_pieces(a, file, file.n, file.n, &whole, f));
    for (size_t i = 0; i < COUNT(sizes); i++) {
        assert_int_equal(ELF_READ, read_in_pieces(a, file, file.n, sizes[i], &o, f));
        assert_int_equal(whole.undefined_count, o.undefined_count);
        assert_int_equal(whole.defined_count, o.defined_count);
        assert_int_equal(whole.fatbins.count, o.fatbins.count);
        for (size_t c = 0; c < o.fatbins.count; c++)
            assert_int_equal(whole.fatbins.items[c].offset, o.fatbins.items[c].offset);
    }
    arena_free(a);
}

static void a_cut_object_is_broken_exactly_when_there_is_a_finding(void **state)
{
    (void)state;
    for (size_t cut = 0; cut < 64; cut++) {
        arena *a = arena_new(0);
        findings *f = findings_new(a);
        struct elf_object o;
        const span file = fixture(a, f, "mixed.so");
        const span part = {file.p, file.n * cut / 64};
        const enum elf_state got = read_in_pieces(a, part, part.n, 1000, &o, f);
        assert_int_not_equal(ELF_WANTED, got);
        assert_int_equal(got == ELF_BROKEN, findings_have_errors(f));
        if (cut < 40)
            assert_int_equal(ELF_BROKEN, got); /* its dynamic section stands behind the GPU code */
        arena_free(a);
    }
}

static void one_broken_field_is_named(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint8_t value;
        const char *part;
    } CASES[] = {{0, 'X', "first bytes"}, {4, 1, "first bytes"},       {5, 2, "first bytes"},
                 {16, 1, "type 1"},       {54, 57, "program headers"}, {39, 0x7f, "program headers"}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        arena *a = arena_new(0);
        findings *f = findings_new(a);
        struct elf_object o;
        const span file = fixture(a, f, "sm90.so");
        uint8_t *bytes = arena_array(a, uint8_t, file.n);
        memcpy(bytes, file.p, file.n);
        bytes[CASES[i].at] = CASES[i].value;
        assert_int_equal(ELF_BROKEN, read_in_pieces(a, (span){bytes, file.n}, file.n, file.n, &o, f));
        assert_int_equal(1, f->count);
        assert_true(str_contains(f->items[0].what, str_from(CASES[i].part)));
        arena_free(a);
    }
}

static void code_runs_where_the_programming_guide_says(void **state)
{
    (void)state;
    static const struct {
        uint16_t kind;
        uint32_t arch;
        char suffix;
        unsigned device;
        enum arch_verdict verdict;
    } CASES[] = {
        {FATBIN_CUBIN, 80, 0, 80, ARCH_YES},    {FATBIN_CUBIN, 80, 0, 86, ARCH_YES},
        {FATBIN_CUBIN, 80, 0, 89, ARCH_YES},    {FATBIN_CUBIN, 86, 0, 80, ARCH_NO},
        {FATBIN_CUBIN, 80, 0, 90, ARCH_NO},     {FATBIN_CUBIN, 90, 0, 120, ARCH_NO},
        {FATBIN_CUBIN, 100, 0, 120, ARCH_NO},   {FATBIN_CUBIN, 103, 0, 100, ARCH_NO},
        {FATBIN_CUBIN, 120, 0, 121, ARCH_YES},  {FATBIN_CUBIN, 90, 'a', 90, ARCH_YES},
        {FATBIN_CUBIN, 120, 'a', 121, ARCH_NO}, {FATBIN_CUBIN, 100, 'f', 103, ARCH_YES},
        {FATBIN_CUBIN, 100, 'f', 120, ARCH_NO}, {FATBIN_CUBIN, 87, 0, 89, ARCH_NO},
        {FATBIN_CUBIN, 87, 0, 87, ARCH_YES},    {FATBIN_PTX, 75, 0, 120, ARCH_BY_PTX},
        {FATBIN_PTX, 120, 0, 90, ARCH_NO},      {FATBIN_PTX, 90, 'a', 120, ARCH_NO},
        {FATBIN_PTX, 90, 'a', 90, ARCH_BY_PTX}, {FATBIN_PTX, 120, 'f', 121, ARCH_BY_PTX},
        {FATBIN_LTO, 120, 0, 120, ARCH_NO},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        const struct fatbin_entry e = {
            .kind = CASES[i].kind, .arch = CASES[i].arch, .suffix = CASES[i].suffix, .isa_major = 8};
        assert_int_equal(CASES[i].verdict, arch_entry_runs(&e, CASES[i].device, 13, 0));
    }
}

static void a_profile_has_every_name_of_its_inputs(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    findings *f = findings_new(a);
    enum { NAMES = 20000 };
    uint64_t *hashes = arena_array(a, uint64_t, NAMES);
    for (size_t i = 0; i < NAMES; i++)
        hashes[i] = abi_hash(str_format(a, "_ZN2at4_ops%zu4callE", i));
    struct abi_input inputs[] = {
        {.source = {.release = S("torch 1"), .library = S("a.so")}, .hashes = hashes, .count = NAMES / 2},
        {.source = {.release = S("torch 2"), .library = S("a.so")},
         .hashes = hashes + NAMES / 4,
         .count = 3 * NAMES / 4}};
    span file;
    struct abi *first, *abi;
    assert_true(abi_write(a, NULL, inputs, 1, &file, f));
    assert_true(abi_read(a, file, S("x.abi"), &first, f));
    assert_true(abi_write(a, first, inputs + 1, 1, &file, f));
    assert_true(abi_read(a, file, S("x.abi"), &abi, f));
    assert_int_equal(2, abi_source_count(abi));
    for (size_t i = 0; i < NAMES; i++) {
        struct abi_set set;
        assert_true(abi_find(abi, hashes[i], &set));
        assert_int_equal(i < NAMES / 2, abi_set_has(&set, 0));
        assert_int_equal(i >= NAMES / 4, abi_set_has(&set, 1));
    }
    for (size_t cut = 0; cut < file.n; cut += 97) { /* a cut profile is refused, never half read */
        struct abi *none;
        assert_false(abi_read(a, (span){file.p, cut}, S("x.abi"), &none, f));
    }
    arena_free(a);
}

static void the_profiles_tell_releases_apart_and_invent_no_names(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    findings *f = findings_new(a);
    struct abi *abi;
    struct abi_set set;
    assert_true(abi_data(a, &abi, f));
    static const struct {
        const char *release, *name;
        bool exported;
    } CASES[] = {
        {"torch 2.8.0", "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib", true},
        {"torch 2.8.0", "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb", false},
        {"torch 2.11.0", "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb", true},
        {"torch 2.11.0", "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib", false},
        {"torch 2.8.0", "_ZNK3c106SymInt22maybe_as_int_slow_pathEv", false},
        {"torch 2.15.0", "aoti_torch_delete_tensor_object", true},
        {"torch 2.11.0", "_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_RKSs", false},
        {"cpython 3.12", "PyUnicode_AsUTF8AndSize", true},
        {"cpython 3.12", "PyUnicode_READY_not_there", false},
        {"cpython 3.8", "PyObject_CallNoArgs", false}, /* new in 3.9 */
        {"cpython 3.9", "PyObject_CallNoArgs", true},
        {"cpython 3.13", "_PyUnicode_Ready", false},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        bool exported = false;
        if (abi_find(abi, abi_hash(str_from(CASES[i].name)), &set))
            for (size_t s = 0; s < abi_source_count(abi); s++)
                exported = exported || (abi_set_has(&set, s) &&
                                        str_eq(abi_source_at(abi, s)->release, str_from(CASES[i].release)));
        assert_int_equal(CASES[i].exported, exported);
    }
    /* Expected: 2,000,000 names times 1.4e5 / 2^48 = 0.001 false ones. */
    size_t invented = 0;
    for (unsigned i = 0; i < 2000000; i++) {
        char name[40];
        const int n = snprintf(name, sizeof name, "_ZN3c10%u_no_such_nameEv", i);
        invented += abi_find(abi, abi_hash((str){name, (size_t)n}), &set);
    }
    assert_int_equal(0, invented);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(needs_versions_and_symbols_are_those_that_readelf_lists),
        cmocka_unit_test(a_container_is_one_source_file_and_stubs_hold_no_code),
        cmocka_unit_test(suffixes_and_ptx_are_told_apart),
        cmocka_unit_test(the_size_of_the_pieces_does_not_matter),
        cmocka_unit_test(a_cut_object_is_broken_exactly_when_there_is_a_finding),
        cmocka_unit_test(one_broken_field_is_named),
        cmocka_unit_test(code_runs_where_the_programming_guide_says),
        cmocka_unit_test(a_profile_has_every_name_of_its_inputs),
        cmocka_unit_test(the_profiles_tell_releases_apart_and_invent_no_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
