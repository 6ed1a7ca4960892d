/* Containers of GPU code in any bytes, whole and in pieces. Containers lie inside the input, in order and apart; the pieces make no
 * difference; code for a GPU that is said to run has an entry that says so. */
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

static struct fatbins scan_pieces(arena *a, span file, size_t piece, uint64_t *broken_at)
{
    struct fatbins found;
    struct fatbin_scan *scan = fatbin_scan_new(a, file.n);
    for (size_t at = 0; at < file.n; at += piece)
        if (!fatbin_scan_feed(scan, (span){file.p + at, file.n - at < piece ? file.n - at : piece}))
            break;
    fatbin_scan_end(scan, &found, broken_at);
    return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    arena *a = arena_new(256 << 20);
    const span file = {data + 1, size - 1};
    uint64_t broken, broken_too;
    const struct fatbins whole = scan_pieces(a, file, file.n, &broken);
    const struct fatbins pieces = scan_pieces(a, file, data[0] + 1U, &broken_too);
    check(whole.count == pieces.count && broken == broken_too, "the size of the pieces makes no difference");
    uint64_t end = 0;
    for (size_t i = 0; i < whole.count; i++) {
        const struct fatbin_container *c = &whole.items[i];
        check(c->offset >= end && c->offset % 8 == 0, "containers are in order and aligned");
        check(c->offset + c->size <= file.n, "containers lie inside the file");
        check(c->count > 0 && c->count <= ELF_ENTRIES_MOST, "a container has entries");
        check(c->offset == pieces.items[i].offset && c->count == pieces.items[i].count,
              "the pieces make no difference");
        end = c->offset + 16; /* a broken one may hold the next */
        const enum arch_verdict runs = arch_container_runs(c, 120, 13, 0);
        bool one = !fatbin_has_code(c);
        for (size_t k = 0; k < c->count; k++) {
            one = one || arch_entry_runs(&c->entries[k], 120, 13, 0) == runs;
            (void)fatbin_arch_text(a, &c->entries[k]);
        }
        check(one || runs == ARCH_NO, "a container runs as its best entry does");
    }
    arena_free(a);
    return 0;
}
