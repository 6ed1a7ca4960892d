/* Python sources as space/ reads them. Beyond 'no crash': facts lie inside the source, guards are known bits, and every event names
 * something that exists. */
#include <stdlib.h>

#include "space/private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_place(const struct place *place, const struct module_facts *m)
{
    if (place->line == 0 || place->line > m->line_count + 1)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    arena *a = arena_new(512 << 20);
    struct module_facts m = {.path = S("app.py"), .name = S("app")};
    const str source = {(const char *)data, size};
    if (python_read(a, source, size % 2 == 0, &m)) {
        const unsigned known =
            GUARD_TRY | GUARD_CONDITION | GUARD_FUNCTION | GUARD_TYPE_CHECKING | GUARD_MAIN;
        const size_t counts[] = {m.imports.count, m.installs.count, m.environment.count, m.notes.count,
                                 m.calls.count};
        for (size_t i = 0; i < m.imports.count; i++) {
            check_place(&m.imports.items[i].place, &m);
            if (m.imports.items[i].guard & ~known)
                abort();
        }
        for (size_t i = 0; i < m.events.count; i++)
            if (m.events.items[i].index >= counts[m.events.items[i].kind] ||
                (m.events.items[i].function != SIZE_MAX && m.events.items[i].function >= m.functions.count))
                abort();
        for (size_t i = 0; i < m.functions.count; i++)
            if (m.functions.items[i].outer != SIZE_MAX && m.functions.items[i].outer >= i)
                abort();
        for (size_t i = 0; i < m.gpu.count; i++)
            check_place(&m.gpu.items[i].gpu.place, &m);
    }
    arena_free(a);
    return 0;
}
