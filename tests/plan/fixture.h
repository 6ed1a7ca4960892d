/* Apps as plain structs, for tests of the plan: a folder with files, and the facts that a reader of it would give. */
#ifndef FELLOE_TEST_PLAN_FIXTURE_H
#define FELLOE_TEST_PLAN_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "plan/plan.h"

struct app {
    arena *a;
    findings *f;
    struct catalogue catalogue;
    struct sources sources;
    struct space space;
    struct need_list needs;
    const struct target *target;
    struct plan plan;
};

static inline struct app *app_new(const char *target)
{
    arena *a = arena_new(0);
    struct app *app = arena_array(a, struct app, 1);
    app->a = a;
    app->f = findings_new(a);
    assert_true(catalogue_read(a, &app->catalogue, app->f));
    assert_true(sources_read(a, &app->catalogue, &app->sources, app->f));
    app->target = target_find(a, str_from(target), app->f);
    assert_non_null(app->target);
    char folder[] = "/tmp/felloe-plan-XXXXXX";
    assert_non_null(mkdtemp(folder));
    app->space.dir = str_copy(a, str_from(folder));
    app->space.app_file = S("app.py");
    app->space.app_file_exists = true;
    app->space.imports_torch = true;
    assert_true(arena_room(a, &app->space.modules));
    app->space.modules.items[app->space.modules.count++] =
        (struct py_module){.path = S("app.py"), .name = S("app"), .reachable = true, .at_start = true};
    return app;
}

static inline void app_file(struct app *app, const char *name, const char *text)
{
    assert_true(
        file_write(path_join(app->a, app->space.dir, str_from(name)), span_from_str(str_from(text)), app->f));
}

/* Plain lines only: names, URLs, git URLs, options, comments. */
static inline void app_requirements(struct app *app, const char *text)
{
    app_file(app, "requirements.txt", text);
    app->space.has_requirements = true;
    app->space.requirements = (struct requirement_list){0};
    str rest = str_copy(app->a, str_from(text)), line;
    for (size_t number = 1; str_next_line(&rest, &line); number++) {
        const size_t comment = str_find(line, S("#"));
        if (comment == 0 || (comment != SIZE_MAX && line.p[comment - 1] == ' '))
            line = str_slice(line, 0, comment);
        line = str_trim(line);
        if (!line.n)
            continue;
        struct requirement_line r = {
            .place = {S("requirements.txt"), number, 1}, .last_line = number, .text = line, .applies = true};
        str why;
        size_t at;
        const char *expected;
        struct wheel_name wheel;
        if (line.p[0] == '-') {
            r.kind = REQUIREMENT_OPTION;
            (void)str_cut(line, ' ', &r.option, &r.value);
        } else if (str_starts(line, S("git+"))) {
            r.kind = REQUIREMENT_VCS;
            r.url = str_from_index(line, 4);
            const str base = path_base(r.url);
            r.name =
                name_normalize(app->a, str_ends(base, S(".git")) ? str_slice(base, 0, base.n - 4) : base);
        } else if (str_contains(line, S("://"))) {
            r.kind = REQUIREMENT_URL;
            r.url = line;
            if (wheel_name_parse(app->a, line, &wheel, &why))
                r.name = wheel.name;
        } else {
            assert_true(requirement_parse(app->a, line, &r.requirement, &at, &expected));
            r.kind = REQUIREMENT_NAMED;
            r.name = name_normalize(app->a, r.requirement.name);
        }
        assert_true(arena_room(app->a, &app->space.requirements));
        app->space.requirements.items[app->space.requirements.count++] = r;
    }
}

/* README.md with a front matter that declares the Python; NULL: without the key. */
static inline void app_readme(struct app *app, const char *line)
{
    struct buf b = {.a = app->a};
    buf_add(&b, S("---\ntitle: An app\n"));
    if (line)
        buf_format(&b, "%s\n", line);
    buf_add(&b, S("sdk: gradio\n---\n\nText.\n"));
    app_file(app, "README.md", str_c(app->a, buf_str(&b)));
    struct front_matter *front = &app->space.front;
    *front = (struct front_matter){
        .present = true, .file = S("README.md"), .first_line = 1, .last_line = line ? 5 : 4};
    if (line) {
        str key, value, comment;
        (void)str_cut(str_copy(app->a, str_from(line)), ':', &key, &value);
        (void)str_cut(value, '#', &value, &comment);
        value = str_trim(value);
        const bool quoted = value.p[0] == '"' || value.p[0] == '\'';
        front->python_version =
            (struct front_value){.text = quoted ? str_slice(value, 1, value.n - 1) : value,
                                 .quoted = quoted,
                                 .place = {S("README.md"), 3, 1}};
    }
}

static inline void app_import(struct app *app, const char *module, size_t line, unsigned guard)
{
    struct py_module *m = &app->space.modules.items[0];
    assert_true(arena_room(app->a, &m->imports));
    m->imports.items[m->imports.count++] = (struct py_import){.module = str_from(module),
                                                              .text = str_format(app->a, "import %s", module),
                                                              .place = {S("app.py"), line, guard ? 5 : 1},
                                                              .guard = guard,
                                                              .local = SIZE_MAX};
}

static inline void app_plan(struct app *app, const struct plan_options *options)
{
    static const struct plan_options OFFLINE = {.offline = true};
    app->needs = (struct need_list){0};
    assert_true(needs_from_space(app->a, &app->catalogue, &app->space, &app->needs, app->f));
    assert_true(plan_make(app->a, &app->catalogue, &app->sources, app->target, &app->space, &app->needs,
                          options ? options : &OFFLINE, &app->plan, app->f));
}

static inline const struct plan_item *app_item(const struct app *app, const char *extension)
{
    for (size_t i = 0; i < app->plan.count; i++)
        if (str_eq(app->plan.items[i].need->name, str_from(extension)))
            return &app->plan.items[i];
    fail_msg("the plan has no %s", extension);
    return NULL;
}

static inline size_t app_findings(const struct app *app, enum finding_code code)
{
    size_t n = 0;
    for (size_t i = 0; i < app->f->count; i++)
        n += app->f->items[i].code == code;
    return n;
}

static inline str app_read(struct app *app, const char *name)
{
    span bytes;
    assert_true(file_read(app->a, path_join(app->a, app->space.dir, str_from(name)), FILE_LIMIT_TEXT, &bytes,
                          app->f));
    return str_from_span(bytes);
}

static inline void app_free(struct app *app)
{
    struct proc_result result;
    const char *argv[] = {"rm", "-r", str_c(app->a, app->space.dir), NULL};
    (void)proc_run(app->a, &(struct proc_options){.argv = argv}, &result, app->f);
    arena_free(app->a);
}

#endif
