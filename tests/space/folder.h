/* A folder made of texts, read as an app: what the tests of space/ share. */
#ifndef FELLOE_TEST_FOLDER_H
#define FELLOE_TEST_FOLDER_H

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "space/space.h"

struct text_file {
    const char *path, *text;
};

static arena *a;
static findings *f;
static struct space app;
static str folder;

static int set_up(void **state)
{
    static char name[] = "/tmp/felloe-space-XXXXXX";
    (void)state;
    memcpy(name + sizeof name - 7, "XXXXXX", 6);
    if (!mkdtemp(name))
        return -1;
    a = arena_new(1u << 30);
    f = findings_new(a);
    folder = str_from(name);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    const char *const argv[] = {"rm", "-rf", str_c(a, folder), NULL};
    struct proc_result result;
    const bool removed = proc_run(a, &(struct proc_options){.argv = argv}, &result, f);
    arena_free(a);
    return removed ? 0 : -1;
}

static inline void add_bytes(const char *path, str bytes)
{
    const str full = path_join(a, folder, str_from(path));
    assert_true(dir_make(path_dir(full), f));
    assert_true(file_write(full, span_from_str(bytes), f));
}

static inline void add_file(const char *path, const char *text) { add_bytes(path, str_from(text)); }

static inline void read_app(void) { assert_true(space_read(a, folder, &app, f)); }

/* app.py is all there is. */
static inline void read_source(const char *source)
{
    add_file("app.py", source);
    read_app();
}

static inline void assert_text(const char *expected, str got)
{
    assert_non_null(got.p);
    assert_string_equal(expected, str_c(a, got));
}

static inline size_t findings_of(enum finding_code code)
{
    size_t count = 0;
    for (size_t i = 0; i < f->count; i++)
        count += f->items[i].code == code;
    return count;
}

static inline const struct finding *finding_of(enum finding_code code)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->items[i].code == code)
            return &f->items[i];
    fail_msg("no such finding");
    return NULL;
}

static inline const struct py_import *import_of(const char *module)
{
    for (size_t m = 0; m < app.modules.count; m++)
        for (size_t i = 0; i < app.modules.items[m].imports.count; i++)
            if (str_eq(app.modules.items[m].imports.items[i].module, str_from(module)))
                return &app.modules.items[m].imports.items[i];
    fail_msg("no import of %s", module);
    return NULL;
}

static inline const struct py_module *module_of(const char *path)
{
    for (size_t m = 0; m < app.modules.count; m++)
        if (str_eq(app.modules.items[m].path, str_from(path)))
            return &app.modules.items[m];
    return NULL;
}

#endif
