/* YAML as front matter and data files are read. Beyond 'no crash': a refusal comes with exactly one finding that has a place, and a
 * value's place lies in the text. */
#include <stdlib.h>

#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);

/* libfyaml 0.7 forgets a buffer of its own on some syntax errors. */
const char *__lsan_default_suppressions(void) { return "leak:libfyaml"; }

static void check(const struct yaml *node, size_t lines, unsigned depth)
{
    if (depth > 70 || node->line == 0 || node->line > lines + 1)
        abort();
    for (size_t i = 0; i < node->count; i++) {
        if (node->kind == YAML_MAP)
            check(&node->keys[i], lines, depth + 1);
        check(&node->items[i], lines, depth + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    arena *a = arena_new(256 << 20);
    findings *f = findings_new(a);
    struct yaml y;
    size_t lines = 1;
    for (size_t i = 0; i < size; i++)
        lines += data[i] == '\n' || data[i] == '\r' ||
                 data[i] >= 0x80; /* YAML counts NEL, LS and PS as line ends too */
    const bool read = yaml_parse(a, (str){(const char *)data, size}, S("README.md"), 1, F101, &y, f);
    if (read ? f->count != 0 : f->count != 1 || f->items[0].place.line == 0)
        abort();
    if (read)
        check(&y, lines, 0);
    arena_free(a);
    return 0;
}
