/* Index pages in all their forms. The first byte chooses the layout. Beside 'no crash': a page is refused exactly when it says why,
 * and every file that it gives has an absolute http address and a wheel's name. */
#include <stdlib.h>

#include "plan/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct {
        enum source_layout layout;
        const char *url, *type;
    } FORMS[] = {
        {LAYOUT_SIMPLE, "https://example.org/simple/x/", "text/html"},
        {LAYOUT_SIMPLE, "https://example.org/simple/x/", "application/vnd.pypi.simple.v1+json"},
        {LAYOUT_HUB_TREE, "https://example.org/api/datasets/o/n/tree/main/w", "application/json"},
        {LAYOUT_GITHUB_RELEASE, "https://example.org/repos/o/n/releases/tags/v1", "application/json"},
        {LAYOUT_FIND_LINKS, "https://example.org", ""},
    };
    if (!size)
        return 0;
    const size_t form = data[0] % COUNT(FORMS);
    arena *a = arena_new(64 << 20);
    struct source_file_list files = {0};
    str why = {NULL, 0};
    const bool well =
        index_page_read(a, FORMS[form].layout, str_from(FORMS[form].url), str_from(FORMS[form].type),
                        (str){(const char *)data + 1, size - 1}, &files, &why);
    if (!well && (!why.n || files.count))
        abort();
    for (size_t i = 0; i < files.count; i++) {
        const struct source_file *file = &files.items[i];
        if ((!str_starts(file->url, S("https://")) && !str_starts(file->url, S("http://"))) ||
            !file->name.name.n || (file->sha256.p && file->sha256.n != 64))
            abort();
    }
    arena_free(a);
    return 0;
}
