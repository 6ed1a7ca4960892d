/* 'felloe plan': where each extension should come from on a target, and the edits that make it so. */
#include <errno.h>

#include "cli/cli.h"
#include "plan/plan.h"

struct report {
    struct plan plan;
    struct strs written;
};

static json_t *report_json(struct cli *cli, const void *data)
{
    const struct report *r = data;
    json_t *body = plan_json(cli->arena, &r->plan);
    json_object_set_new(body, "written", json_strs(&r->written));
    json_object_set_new(body, "findings", json_findings(cli->findings));
    return body;
}

static str report_text(struct cli *cli, const void *data)
{
    const struct report *r = data;
    struct buf b = {.a = cli->arena};
    buf_add(&b, plan_text(cli->arena, &r->plan, &cli->term, cli->term.color_out));
    for (size_t i = 0; i < r->written.count; i++)
        buf_format(&b, "wrote %.*s\n", STR_ARG(term_safe(cli->arena, r->written.items[i])));
    return buf_str(&b);
}

struct options {
    str dir, target, python, torch;
    bool write;
};

static bool is_version(struct cli *cli, const char *text)
{
    struct version version;
    return version_parse(cli->arena, str_from(text), &version);
}

struct input {
    struct cli *cli;
    struct options *o;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct input *input = state->input;
    struct options *o = input->o;
    switch (key) {
    case 't':
        o->target = str_from(argument);
        return 0;
    case 'p':
    case 'T':
        if (!is_version(input->cli, argument))
            return cli_usage(state, "--%s: expected a version such as %s, got %s",
                             key == 'p' ? "python" : "torch", key == 'p' ? "3.12" : "2.11.0", argument);
        *(key == 'p' ? &o->python : &o->torch) = str_from(argument);
        return 0;
    case 'w':
        o->write = true;
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

static bool make(struct cli *cli, const struct options *o, struct report *r)
{
    arena *a = cli->arena;
    findings *f = cli->findings;
    struct catalogue *catalogue = arena_array(a, struct catalogue, 1);
    struct sources *sources = arena_array(a, struct sources, 1);
    struct space *space = arena_array(a, struct space, 1);
    struct need_list *needs = arena_array(a, struct need_list, 1);
    if (!catalogue || !sources || !space || !needs)
        return finding_fatal(f, EXIT_INPUT, F006, (struct place){0},
                             "the plan does not fit the memory limit");
    const struct target *target = target_find(a, o->target, f);
    if (!target || !catalogue_read(a, catalogue, f) || !sources_read(a, catalogue, sources, f) ||
        !space_read(a, o->dir.p ? o->dir : S("."), space, f) ||
        !needs_from_space(a, catalogue, space, needs, f))
        return false;
    judge_space(a, catalogue, space, needs, target, f);
    http *h = http_new(&(struct http_options){.offline = cli->offline, .verbose = cli->verbose});
    const struct plan_options options = {
        .python = o->python, .torch = o->torch, .offline = cli->offline, .http = h};
    const bool made = plan_make(a, catalogue, sources, target, space, needs, &options, &r->plan, f);
    http_free(h);
    return made;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct options o = {.target = S("zerogpu")};
    struct input input = {cli, &o};
    struct report *r = arena_array(cli->arena, struct report, 1);
    if (!cli_parse(cli, parse, argc, argv, &input))
        return EXIT_USAGE;
    if (r && make(cli, &o, r) && !interrupted() &&
        (!o.write || plan_write(cli->arena, &r->plan, &r->written, cli->findings)))
        cli_report(cli, "felloe.plan/1", r, report_text, report_json);
    return cli_finish(cli);
}

static const struct argp_option OPTIONS[] = {
    {"target", 't', "NAME", 0, "Plan for this target (default: zerogpu; 'felloe target list' names them)", 0},
    {"python", 'p', "X.Y", 0, "Plan for this Python; else the one that lets most extensions fit", 0},
    {"torch", 'T', "X.Y.Z", 0, "Plan for this torch; else the one that lets most extensions fit", 0},
    {"write", 'w', NULL, 0, "Apply the edits and write felloe.lock; without it nothing is written", 0},
    {0},
};

const struct command COMMAND_PLAN = {
    .name = "plan",
    .summary = "Choose where each native extension comes from on a target, and show the edits",
    .description = "In this order of preference: a prebuilt wheel whose tags match the runtime, a wheel "
                   "committed to the repository, a compile when "
                   "the app starts. Each choice comes with its reason and the alternatives. Names of "
                   "published wheels are part of the program (with "
                   "their date) and are refreshed over the network unless --offline is given.",
    .arguments = "[DIR]",
    .options = OPTIONS,
    .examples = "felloe plan path/to/app --target zerogpu\nfelloe plan --offline --python 3.12 --torch "
                "2.11.0 .\nfelloe plan --write .",
    .exit_codes = "0 every extension has a source, 1 findings of severity error, 2 usage, 3 unreadable or "
                  "malformed input, 4 network failure",
    .has_sarif = true,
    .has_network = true,
    .run = run,
};
