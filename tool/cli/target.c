/* 'felloe target': the runtimes that the program knows, and this machine. */
#include <errno.h>

#include "cli/cli.h"
#include "target/target.h"

static str or_none(str s) { return s.p && s.n > 0 ? s : S("none"); }

static str torch_text(arena *a, const struct target *t)
{
    struct strs list = {0};
    for (size_t i = 0; i < t->torch_count; i++)
        (void)strs_add(a, &list,
                       t->torch[i].cuda.p ? str_format(a, "%.*s (CUDA %.*s)", STR_ARG(t->torch[i].version),
                                                       STR_ARG(t->torch[i].cuda))
                                          : t->torch[i].version);
    return list.count ? str_join(a, &list, S(", ")) : S("any");
}

static json_t *target_json(const struct target *t)
{
    json_t *object = json_object(), *torch = json_array(), *sizes = json_array(), *glibc = json_object();
    for (size_t i = 0; i < t->torch_count; i++) {
        json_t *offer = json_object();
        json_object_set_new(offer, "version", json_str(t->torch[i].version));
        json_object_set_new(offer, "cuda", json_str(t->torch[i].cuda));
        json_object_set_new(offer, "arch", json_strs(&t->torch[i].archs));
        json_array_append_new(torch, offer);
    }
    for (size_t i = 0; i < t->size_count; i++) {
        json_t *size = json_object();
        json_object_set_new(size, "name", json_str(t->sizes[i].name));
        json_object_set_new(size, "memory_gb", json_real(t->sizes[i].memory_gb));
        json_object_set_new(size, "quota_factor", json_real(t->sizes[i].quota_factor));
        json_array_append_new(sizes, size);
    }
    json_object_set_new(object, "name", json_str(t->name));
    json_object_set_new(object, "description", json_str(t->description));
    json_object_set_new(object, "date", json_str(t->date));
    json_object_set_new(object, "python", json_strs(&t->pythons));
    json_object_set_new(object, "python_default", json_str(t->python_default));
    json_object_set_new(object, "torch", torch);
    json_object_set_new(object, "torch_default", json_str(t->torch_default));
    json_object_set_new(object, "cuda", json_str(t->cuda));
    json_object_set_new(object, "cuda_home", json_str(t->cuda_home));
    json_object_set_new(object, "arch", json_strs(&t->archs));
    json_object_set_new(object, "driver_cuda", t->driver_cuda > 0 ? json_real(t->driver_cuda) : json_null());
    json_object_set_new(glibc, "glibc", json_str(t->glibc));
    json_object_set_new(glibc, "glibcxx", json_str(t->glibcxx));
    json_object_set_new(glibc, "cxxabi", json_str(t->cxxabi));
    json_object_set_new(object, "symbols", glibc);
    json_object_set_new(object, "machine", json_str(t->machine));
    json_object_set_new(object, "compiler_at_build", json_boolean(t->compiler_at_build));
    json_object_set_new(object, "compiler_at_run", json_boolean(t->compiler_at_run));
    json_object_set_new(object, "preinstalled", json_strs(&t->preinstalled));
    json_object_set_new(object, "sizes", sizes);
    return object;
}

static void add_line(struct buf *b, const char *name, str value)
{
    buf_format(b, "  %-14s %.*s\n", name, STR_ARG(value));
}

static str one_text(struct cli *cli, const void *report)
{
    const struct target *t = report;
    arena *a = cli->arena;
    struct buf b = {.a = a};
    const str wrapped = text_wrap(a, torch_text(a, t), (size_t)cli->term.width, 17);
    buf_format(&b, "%.*s: %.*s\n", STR_ARG(term_paint(a, cli->term.color_out, STYLE_BOLD, t->name)),
               STR_ARG(t->description));
    add_line(&b, "Python", t->pythons.count ? str_join(a, &t->pythons, S(", ")) : S("any"));
    add_line(&b, "torch", wrapped);
    add_line(
        &b, "CUDA toolkit",
        t->cuda.p
            ? str_format(a, "%.*s%s%.*s%s", STR_ARG(t->cuda), t->cuda_home.p ? " at " : "",
                         STR_ARG(t->cuda_home.p ? t->cuda_home : S("")),
                         t->compiler_at_build ? "" : ", not in the container that installs requirements.txt")
            : S("none"));
    add_line(&b, "GPU", t->archs.count ? str_join(a, &t->archs, S(", ")) : S("none, or not known"));
    if (t->driver_cuda > 0)
        add_line(&b, "driver", str_format(a, "up to CUDA %.1f", t->driver_cuda));
    add_line(&b, "glibc", or_none(t->glibc));
    add_line(&b, "libstdc++",
             t->glibcxx.p ? str_format(a, "GLIBCXX_%.*s, CXXABI_%.*s", STR_ARG(t->glibcxx),
                                       STR_ARG(or_none(t->cxxabi)))
                          : S("none"));
    add_line(&b, "machine", or_none(t->machine));
    for (size_t i = 0; i < t->size_count; i++)
        add_line(&b, i ? "" : "sizes",
                 str_format(a, "%.*s: %g GB, quota x%g", STR_ARG(t->sizes[i].name), t->sizes[i].memory_gb,
                            t->sizes[i].quota_factor));
    if (t->preinstalled.count)
        add_line(&b, "preinstalled", str_join(a, &t->preinstalled, S(", ")));
    if (t->date.p)
        add_line(&b, "read", str_format(a, "%.*s: %.*s", STR_ARG(t->date), STR_ARG(or_none(t->source))));
    return buf_str(&b);
}

static json_t *one_json(struct cli *cli, const void *report)
{
    json_t *body = json_object();
    json_object_set_new(body, "target", target_json(report));
    json_object_set_new(body, "findings", json_findings(cli->findings));
    return body;
}

static str list_text(struct cli *cli, const void *report)
{
    static const char *const HEADINGS[] = {"name", "GPU", "CUDA", "description"};
    const struct target_list *list = report;
    arena *a = cli->arena;
    struct table table = {.headings = HEADINGS, .columns = COUNT(HEADINGS)};
    for (size_t i = 0; i < list->count; i++) {
        const struct target *t = &list->items[i];
        (void)strs_add(a, &table.cells, t->name);
        (void)strs_add(a, &table.cells, t->archs.count ? str_join(a, &t->archs, S(", ")) : S("any"));
        (void)strs_add(a, &table.cells, or_none(t->cuda));
        (void)strs_add(a, &table.cells, t->description);
    }
    return table_text(a, &table, cli->term.width, cli->term.color_out);
}

static json_t *list_json(struct cli *cli, const void *report)
{
    const struct target_list *list = report;
    json_t *body = json_object(), *targets = json_array();
    for (size_t i = 0; i < list->count; i++)
        json_array_append_new(targets, target_json(&list->items[i]));
    json_object_set_new(body, "targets", targets);
    json_object_set_new(body, "findings", json_findings(cli->findings));
    return body;
}

struct options {
    str action, name;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct options *o = state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        if (!o->action.p)
            o->action = str_from(argument);
        else if (!o->name.p && str_eq(o->action, S("show")))
            o->name = str_from(argument);
        else
            return cli_usage(state, "unexpected argument %s", argument);
        return 0;
    case ARGP_KEY_END:
        if (!o->action.p)
            o->action = S("list");
        if (!str_eq(o->action, S("list")) && !str_eq(o->action, S("show")) && !str_eq(o->action, S("detect")))
            return cli_usage(state, "expected list, show NAME or detect, got %.*s", STR_ARG(o->action));
        if (str_eq(o->action, S("show")) && !o->name.p)
            return cli_usage(state, "show: a target's name was expected");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct options o = {0};
    if (!cli_parse(cli, parse, argc, argv, &o))
        return EXIT_USAGE;
    struct target_list list = {0};
    if (str_eq(o.action, S("list"))) {
        if (targets_read(cli->arena, &list, cli->findings))
            cli_report(cli, "felloe.target/1", &list, list_text, list_json);
        return cli_finish(cli);
    }
    const struct target *target = target_find(cli->arena, o.name.p ? o.name : S("this"), cli->findings);
    if (target)
        cli_report(cli, "felloe.target/1", target, one_text, one_json);
    return cli_finish(cli);
}

const struct command COMMAND_TARGET = {
    .name = "target",
    .summary = "List the runtimes that apps are judged for, show one, or describe this machine",
    .description =
        "'list' names them, 'show NAME' tells what one offers, 'detect' describes this machine: its Python "
        "and torch from their files, "
        "toolkit, driver and GPUs through the driver's library, glibc and libstdc++. Nothing is run.",
    .arguments = "[list | show NAME | detect]",
    .options = NULL,
    .examples = "felloe target list\nfelloe target show zerogpu\nfelloe target detect --json",
    .exit_codes = "0 printed, 1 no such target, 2 usage, 3 data files malformed",
    .run = run,
};
