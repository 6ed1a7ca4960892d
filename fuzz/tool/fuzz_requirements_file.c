/* A requirements file with whatever bytes. Beyond 'no crash': every line is of a known kind, an invalid one has its finding, and
 * places go forward. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "space/space.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char folder[] = "/tmp/felloe-fuzz-XXXXXX";
    static bool made;
    if (!made && !mkdtemp(folder))
        return 0;
    made = true;
    arena *a = arena_new(256 << 20);
    findings *f = findings_new(a);
    const str path = path_join(a, str_from(folder), S("requirements.txt"));
    FILE *file = fopen(str_c(a, path), "wb");
    if (file) {
        (void)fwrite(data, 1, size, file);
        (void)fclose(file);
        struct requirement_list list = {0};
        (void)requirements_read(a, str_from(folder), S("requirements.txt"), &list, f);
        size_t invalid = 0, refused = 0;
        for (size_t i = 0; i < list.count; i++) {
            invalid += list.items[i].kind == REQUIREMENT_INVALID;
            if (list.items[i].kind > REQUIREMENT_INVALID || list.items[i].place.line == 0 ||
                list.items[i].last_line < list.items[i].place.line)
                abort();
            if (i > 0 && str_eq(list.items[i].place.file, list.items[i - 1].place.file) &&
                list.items[i].place.line < list.items[i - 1].place.line)
                abort();
        }
        for (size_t i = 0; i < f->count; i++)
            refused += f->items[i].code == F102;
        if (invalid != refused)
            abort();
    }
    arena_free(a);
    return 0;
}
