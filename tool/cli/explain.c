/* 'felloe explain': one finding code, or all of them as docs/findings.md. */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>

static const char *const SEVERITIES[] = {"info", "warning", "error"};

struct options {
    bool markdown;
    struct strs codes;
    struct cli *cli;
};

static str all_markdown(struct cli *cli)
{
    struct buf b = {.a = cli->arena};
    buf_add(&b, S("# Findings\n\nEvery finding has a stable code. `felloe explain CODE` prints one of them. "
                  "This page is made by\n"
                  "`felloe explain --markdown`.\n\n| code | severity | what | why it matters | what to do "
                  "|\n|---|---|---|---|---|\n"));
    for (size_t i = 0; i < FINDING_CODES; i++) {
        const struct finding_kind *kind = finding_kind((enum finding_code)i);
        buf_format(&b, "| %s | %s | %s | %s | %s |\n", kind->code, SEVERITIES[kind->severity], kind->title,
                   kind->why, kind->fix);
    }
    return buf_str(&b);
}

static str one_text(struct cli *cli, const void *report)
{
    const struct finding_kind *kind = report;
    arena *a = cli->arena;
    const size_t width = (size_t)cli->term.width;
    return str_format(a, "%s (%s): %s\n\n  why: %.*s\n  fix: %.*s\n", kind->code, SEVERITIES[kind->severity],
                      kind->title, STR_ARG(text_wrap(a, str_from(kind->why), width, 7)),
                      STR_ARG(text_wrap(a, str_from(kind->fix), width, 7)));
}

static json_t *one_json(struct cli *cli, const void *report)
{
    (void)cli;
    const struct finding_kind *kind = report;
    json_t *object = json_object();
    json_object_set_new(object, "code", json_string(kind->code));
    json_object_set_new(object, "severity", json_string(SEVERITIES[kind->severity]));
    json_object_set_new(object, "title", json_string(kind->title));
    json_object_set_new(object, "why", json_string(kind->why));
    json_object_set_new(object, "fix", json_string(kind->fix));
    return object;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct options *o = state->input;
    switch (key) {
    case 'M':
        o->markdown = true;
        return 0;
    case ARGP_KEY_ARG:
        return strs_add(o->cli->arena, &o->codes, str_from(argument)) ? 0 : ENOMEM;
    case ARGP_KEY_END:
        return o->markdown || o->codes.count ? 0 : cli_usage(state, "a code was expected, such as F203");
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct options o = {.cli = cli};
    if (!cli_parse(cli, parse, argc, argv, &o))
        return EXIT_USAGE;
    if (o.markdown)
        cli_print(cli, all_markdown(cli));
    for (size_t i = 0; i < o.codes.count; i++) {
        enum finding_code code;
        if (!finding_by_name(o.codes.items[i], &code)) {
            (void)fprintf(stderr,
                          "felloe explain: there is no finding %.*s\nhint: felloe explain --markdown lists "
                          "all of them\n",
                          STR_ARG(term_safe(cli->arena, o.codes.items[i])));
            return EXIT_USAGE;
        }
        cli_report(cli, "felloe.explain/1", finding_kind(code), one_text, one_json);
    }
    return cli_finish(cli);
}

static const struct argp_option OPTIONS[] = {
    {"markdown", 'M', NULL, 0, "Print all of them as a Markdown page", 0},
    {0},
};

const struct command COMMAND_EXPLAIN = {
    .name = "explain",
    .summary = "Tell what a finding's code means, why it matters and what to do",
    .description = "Codes are stable: F0xx input, F1xx target and pins, F2xx wheels, F3xx builds, F4xx GPU "
                   "calls, F5xx memory, "
                   "F6xx assets.",
    .arguments = "CODE...",
    .options = OPTIONS,
    .examples = "felloe explain F203\nfelloe explain --markdown > docs/findings.md",
    .exit_codes = "0 printed, 2 usage or no such code",
    .run = run,
};
