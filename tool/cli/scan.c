/* 'felloe scan': an app's folder as facts and findings. What an app is lives in space/, what is wrong with it in plan/. */
#include <errno.h>

#include "cli/cli.h"
#include "plan/plan.h"

struct report {
    struct space space;
    struct need_list needs;
    const struct target *target;
};

static json_t *json_front(str value) { return json_str(value); }

static json_t *app_json(const struct space *s)
{
    json_t *app = json_object();
    json_object_set_new(app, "sdk", json_front(s->front.sdk.text));
    json_object_set_new(app, "sdk_version", json_front(s->front.sdk_version.text));
    json_object_set_new(app, "python_version", json_front(s->front.python_version.text));
    json_object_set_new(app, "app_file", json_str(s->app_file));
    json_object_set_new(app, "hardware", json_front(s->front.suggested_hardware.text));
    json_object_set_new(app, "startup_duration_timeout", json_front(s->front.startup_duration_timeout.text));
    return app;
}

static json_t *need_json(const struct need *need)
{
    json_t *object = json_object(), *obtained = json_array();
    for (size_t i = 0; i < need->obtained.count; i++) {
        const struct obtained *o = &need->obtained.items[i];
        json_t *way = json_object();
        json_object_set_new(way, "how", json_string(obtained_name(o->how)));
        if (o->how != OBTAINED_NONE) {
            json_object_set_new(way, "spec", json_str(o->spec));
            json_object_set_new(way, "file", json_str(o->place.file));
            json_object_set_new(way, "line", json_size(o->place.line));
        }
        json_array_append_new(obtained, way);
    }
    json_object_set_new(object, "name", json_str(need->name));
    json_object_set_new(object, "fork", json_str(need->fork ? need->fork->name : (str){NULL, 0}));
    json_object_set_new(object, "imports", json_strs(&need->imports));
    json_object_set_new(object, "compiled", json_string(compiled_name(need->compiled)));
    json_object_set_new(object, "needed_at_start", json_boolean(need->needed_at_start));
    json_object_set_new(object, "obtained", obtained);
    json_object_set_new(object, "documented_in_script", json_strs(&need->documented_in_script));
    return object;
}

static json_t *gpu_json(const struct gpu_function *g)
{
    json_t *object = json_object();
    const bool known = g->duration_kind == DURATION_DEFAULT || g->duration_kind == DURATION_SECONDS;
    const double seconds = g->duration_kind == DURATION_DEFAULT ? 60 : g->duration;
    json_object_set_new(object, "name", json_str(g->name));
    json_object_set_new(object, "file", json_str(g->place.file));
    json_object_set_new(object, "line", json_size(g->place.line));
    json_t *duration = json_null();
    if (known && seconds == (double)(long long)seconds)
        duration = json_integer((json_int_t)seconds);
    else if (known)
        duration = json_real(seconds);
    json_object_set_new(object, "duration", duration);
    json_object_set_new(object, "duration_dynamic", json_boolean(g->duration_kind == DURATION_DYNAMIC));
    json_object_set_new(object, "size", json_str(g->size.p ? g->size : S("large")));
    return object;
}

static json_t *setting_json(const struct env_setting *e)
{
    json_t *object = json_object();
    json_object_set_new(object, "name", json_str(e->name));
    json_object_set_new(object, "value", json_str(e->value));
    json_object_set_new(object, "file", json_str(e->place.file));
    json_object_set_new(object, "line", json_size(e->place.line));
    return object;
}

static json_t *scan_json(struct cli *cli, const void *data)
{
    const struct report *r = data;
    json_t *body = json_object(), *extensions = json_array(), *functions = json_array(),
           *environment = json_array();
    for (size_t i = 0; i < r->needs.count; i++)
        json_array_append_new(extensions, need_json(&r->needs.items[i]));
    for (size_t i = 0; i < r->space.gpu_functions.count; i++)
        json_array_append_new(functions, gpu_json(&r->space.gpu_functions.items[i]));
    for (size_t i = 0; i < r->space.environment.count; i++)
        json_array_append_new(environment, setting_json(&r->space.environment.items[i]));
    json_object_set_new(body, "dir", json_str(r->space.dir));
    json_object_set_new(body, "target", json_str(r->target->name));
    json_object_set_new(body, "app", app_json(&r->space));
    json_object_set_new(body, "extensions", extensions);
    json_object_set_new(body, "gpu_functions", functions);
    json_object_set_new(body, "environment", environment);
    json_object_set_new(body, "findings", json_findings(cli->findings));
    return body;
}

static str place_text(arena *a, const struct place *place)
{
    if (!place->file.p)
        return S("");
    return place->line ? str_format(a, "%.*s:%zu", STR_ARG(place->file), place->line) : place->file;
}

static void add_extensions(struct cli *cli, struct buf *b, const struct report *r)
{
    static const char *const HEADINGS[] = {"extension", "compiled", "imported at", "obtained by"};
    arena *a = cli->arena;
    struct table table = {.headings = HEADINGS, .columns = COUNT(HEADINGS)};
    enum style *styles = arena_array(a, enum style, r->needs.count * COUNT(HEADINGS));
    for (size_t i = 0; styles && i < r->needs.count; i++) {
        const struct need *need = &r->needs.items[i];
        struct strs ways = {0};
        for (size_t o = 0; o < need->obtained.count; o++) {
            const struct obtained *way = &need->obtained.items[o];
            (void)strs_add(a, &ways,
                           way->how == OBTAINED_NONE ? S("nothing")
                                                     : str_format(a, "%s (%.*s)", obtained_name(way->how),
                                                                  STR_ARG(place_text(a, &way->place))));
        }
        const bool none = need->obtained.items[0].how == OBTAINED_NONE;
        const str where = !need->imported ? S("not imported")
                          : need->needed_at_start
                              ? str_format(a, "%.*s, at start", STR_ARG(place_text(a, &need->place)))
                              : place_text(a, &need->place);
        styles[i * COUNT(HEADINGS)] = STYLE_BOLD;
        styles[i * COUNT(HEADINGS) + 3] = !none                   ? STYLE_NONE
                                          : need->needed_at_start ? STYLE_RED
                                                                  : STYLE_YELLOW;
        (void)strs_add(a, &table.cells,
                       need->fork
                           ? str_format(a, "%.*s (%.*s)", STR_ARG(need->name), STR_ARG(need->fork->name))
                           : need->name);
        (void)strs_add(a, &table.cells, str_from(compiled_name(need->compiled)));
        (void)strs_add(a, &table.cells, where);
        (void)strs_add(a, &table.cells, str_join(a, &ways, S("; ")));
    }
    table.styles = styles;
    if (r->needs.count > 0)
        buf_add(b, table_text(a, &table, cli->term.width, cli->term.color_out));
    else
        buf_add(b, S("no native extensions\n"));
}

static void add_functions(struct cli *cli, struct buf *b, const struct report *r)
{
    static const char *const HEADINGS[] = {"GPU function", "at", "duration", "size"};
    arena *a = cli->arena;
    struct table table = {.headings = HEADINGS, .columns = COUNT(HEADINGS)};
    if (r->space.gpu_functions.count == 0)
        return;
    for (size_t i = 0; i < r->space.gpu_functions.count; i++) {
        const struct gpu_function *g = &r->space.gpu_functions.items[i];
        const str duration = g->duration_kind == DURATION_DEFAULT   ? S("60 s (default)")
                             : g->duration_kind == DURATION_SECONDS ? str_format(a, "%g s", g->duration)
                             : g->duration_kind == DURATION_DYNAMIC
                                 ? str_format(a, "dynamic (%.*s)", STR_ARG(g->duration_text))
                                 : S("not known");
        (void)strs_add(a, &table.cells, g->name);
        (void)strs_add(a, &table.cells, place_text(a, &g->place));
        (void)strs_add(a, &table.cells, duration);
        (void)strs_add(a, &table.cells, g->size.p ? g->size : S("large"));
    }
    buf_char(b, '\n');
    buf_add(b, table_text(a, &table, cli->term.width, cli->term.color_out));
}

static str scan_text(struct cli *cli, const void *data)
{
    const struct report *r = data;
    arena *a = cli->arena;
    struct buf b = {.a = a};
    size_t counts[3] = {0};
    const struct space *s = &r->space;
    buf_format(&b, "%.*s", STR_ARG(term_safe(a, s->dir)));
    if (s->front.sdk.text.p)
        buf_format(&b, ": %.*s %.*s", STR_ARG(term_safe(a, s->front.sdk.text)),
                   STR_ARG(term_safe(a, s->front.sdk_version.text.p ? s->front.sdk_version.text : S(""))));
    if (s->front.python_version.text.p)
        buf_format(&b, ", Python %.*s", STR_ARG(term_safe(a, s->front.python_version.text)));
    buf_format(&b, ", app file %.*s, judged for %.*s\n\n",
               STR_ARG(term_safe(a, s->app_file.p ? s->app_file : S("none"))), STR_ARG(r->target->name));
    add_extensions(cli, &b, r);
    add_functions(cli, &b, r);
    for (size_t i = 0; i < cli->findings->count; i++)
        counts[cli->findings->items[i].severity]++;
    buf_format(&b, "\n%zu error%s, %zu warning%s, %zu note%s\n", counts[SEVERITY_ERROR],
               counts[SEVERITY_ERROR] == 1 ? "" : "s", counts[SEVERITY_WARNING],
               counts[SEVERITY_WARNING] == 1 ? "" : "s", counts[SEVERITY_INFO],
               counts[SEVERITY_INFO] == 1 ? "" : "s");
    return buf_str(&b);
}

struct options {
    str dir, target;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct options *o = state->input;
    switch (key) {
    case 't':
        o->target = str_from(argument);
        return 0;
    case ARGP_KEY_ARG:
        if (o->dir.p)
            return cli_usage(state, "one folder was expected, got also %s", argument);
        o->dir = str_from(argument);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct options o = {.target = S("zerogpu")};
    if (!cli_parse(cli, parse, argc, argv, &o))
        return EXIT_USAGE;
    struct report r = {0};
    struct catalogue catalogue;
    arena *a = cli->arena;
    findings *f = cli->findings;
    r.target = target_find(a, o.target, f);
    if (r.target && catalogue_read(a, &catalogue, f) &&
        space_read(a, o.dir.p ? o.dir : S("."), &r.space, f) &&
        needs_from_space(a, &catalogue, &r.space, &r.needs, f)) {
        judge_space(a, &catalogue, &r.space, &r.needs, r.target, f);
        cli_report(cli, "felloe.scan/1", &r, scan_text, scan_json);
    }
    return cli_finish(cli);
}

static const struct argp_option OPTIONS[] = {
    {"target", 't', "NAME", 0, "Judge for this target (default: zerogpu; 'felloe target list' names them)",
     0},
    {0},
};

const struct command COMMAND_SCAN = {
    .name = "scan",
    .summary =
        "Read an app's folder: its native extensions, how it gets them, its GPU functions, and what is wrong",
    .description = "Reads README.md's front matter, requirements files, every local Python module that the "
                   "app file reaches, committed "
                   "wheels and vendored sources. Nothing of the app is run and nothing is fetched.",
    .arguments = "[DIR]",
    .options = OPTIONS,
    .examples = "felloe scan path/to/app\nfelloe scan --json path/to/app | jq '.extensions[].name'\nfelloe "
                "scan --sarif . > felloe.sarif",
    .exit_codes = "0 nothing wrong, 1 findings of severity error, 2 usage, 3 the folder or a file in it "
                  "could not be read or is malformed",
    .has_sarif = true,
    .run = run,
};
