/* Shared objects, whole and in pieces of a size that the input chooses. Refused exactly when there is a finding of severity
 * error; the pieces make no difference; names are inside of the limits and carry no NUL. The rest of the input is also read as
 * an ABI profile, which is refused or answers for every source. */
#include <stdio.h>
#include <stdlib.h>

#include "elf/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds, const char *claim)
{
    if (holds)
        return;
    (void)fprintf(stderr, "does not hold: %s\n", claim);
    abort();
}

static enum elf_state read_object(arena *a, span file, size_t piece, struct elf_object *out, findings *f)
{
    struct elf_scan *scan = elf_scan_new(a, S("x.so"), file.n);
    struct elf_object object = {0};
    enum elf_state state = ELF_WANTED;
    int passes = 0;
    while (state == ELF_WANTED) {
        check(passes++ < 8, "passes end");
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    arena *a = arena_new(512 << 20);
    findings *f = findings_new(a), *g = findings_new(a);
    struct elf_object whole, pieces;
    struct abi *abi;
    const span file = {data + 1, size - 1};
    const enum elf_state state = read_object(a, file, file.n, &whole, f);
    check((state == ELF_BROKEN) == findings_have_errors(f), "broken exactly when there is a finding");
    check(read_object(a, file, data[0] + 1U, &pieces, g) == state,
          "the size of the pieces makes no difference");
    if (state == ELF_READ) {
        check(whole.undefined_count == pieces.undefined_count &&
                  whole.defined_count == pieces.defined_count &&
                  whole.fatbins.count == pieces.fatbins.count && whole.needs.count == pieces.needs.count,
              "the size of the pieces makes no difference");
        for (size_t i = 0; i < whole.undefined_count; i++)
            check(str_find_char(whole.undefined[i].name, '\0') == SIZE_MAX, "a name has no NUL");
        for (size_t i = 1; i < whole.defined_count; i++)
            check(whole.defined[i - 1] <= whole.defined[i], "exported names are sorted");
        check(whole.needs.count <= ELF_NEEDS_MOST, "needs are inside their limit");
    }
    if (abi_read(a, file, S("x.abi"), &abi, g)) {
        struct abi_set set;
        (void)abi_find(abi, abi_hash(S("x")), &set);
        check(abi_source_count(abi) <= ABI_SOURCES_MOST, "a profile has its limits");
    }
    arena_free(a);
    return 0;
}
