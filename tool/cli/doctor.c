/* 'felloe doctor': from a log to its cause. What failures look like is data/failures.yaml, how they are found is doctor/. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "doctor/doctor.h"

enum { KEY_DIR = 0x2000 };

struct options {
    const char *log, *dir, *target;
    bool follow;
    char *const *command; /* after "--"; NULL without one */
};

struct report {
    const struct doctor *doctor;
    struct cause_list causes;
};

static const char *const SEVERITIES[] = {"info", "warning", "error"};
static const enum style STYLES[] = {STYLE_DIM, STYLE_YELLOW, STYLE_RED};

static json_t *cause_json(const struct cause *c)
{
    json_t *object = json_object();
    json_object_set_new(object, "label", json_str(c->label));
    json_object_set_new(object, "code", json_string(finding_kind(c->code)->code));
    json_object_set_new(object, "severity", json_string(SEVERITIES[c->severity]));
    json_object_set_new(object, "confidence", json_real((double)(long)(c->confidence * 100 + 0.5) / 100));
    json_object_set_new(object, "line", json_size(c->line));
    json_object_set_new(object, "excerpt", json_str(c->excerpt));
    json_object_set_new(object, "subject", json_str(c->subject));
    json_object_set_new(object, "what", json_str(c->what));
    json_object_set_new(object, "why", json_str(c->why));
    json_object_set_new(object, "fix", json_str(c->fix));
    json_object_set_new(object, "failure", json_str(c->failure));
    return object;
}

static json_t *report_json(struct cli *cli, const void *data)
{
    const struct report *r = data;
    json_t *object = json_object(), *causes = json_array();
    for (size_t i = 0; i < r->causes.count; i++)
        json_array_append_new(causes, cause_json(&r->causes.items[i]));
    json_object_set_new(object, "lines", json_integer((json_int_t)doctor_lines(r->doctor)));
    json_object_set_new(object, "causes", causes);
    json_object_set_new(object, "findings", json_findings(cli->findings));
    return object;
}

static void add_cause(struct cli *cli, struct buf *b, const struct cause *c)
{
    arena *a = cli->arena;
    const size_t width = (size_t)cli->term.width;
    const bool color = cli->term.color_out;
    buf_add(b, term_paint(a, color, STYLES[c->severity], term_safe(a, c->label)));
    buf_format(b, " (%s, %.0f %%) at line %zu: %.*s\n", finding_kind(c->code)->code, 100 * c->confidence,
               c->line, STR_ARG(term_safe(a, c->what)));
    str rest = c->excerpt, line;
    for (size_t i = 0; i < 8 && str_next_line(&rest, &line); i++)
        buf_format(b, "  | %.*s\n", STR_ARG(term_safe(a, str_slice(line, 0, 300))));
    buf_format(b, "  why: %.*s\n", STR_ARG(text_wrap(a, term_safe(a, c->why), width, 7)));
    buf_format(b, "  fix: %.*s\n", STR_ARG(text_wrap(a, term_safe(a, c->fix), width, 7)));
}

static str report_text(struct cli *cli, const void *data)
{
    const struct report *r = data;
    struct buf b = {.a = cli->arena};
    for (size_t i = 0; i < r->causes.count; i++)
        if (i == 0 || r->causes.items[i].severity > SEVERITY_INFO || cli->verbose)
            add_cause(cli, &b, &r->causes.items[i]);
    if (r->causes.count == 0)
        buf_format(&b, "nothing in the log's %zu lines looks like a failure\n", doctor_lines(r->doctor));
    return buf_str(&b);
}

/* One cause as soon as it is known: text, or one JSON object a line. */
static void print_found(void *context, const struct cause *c)
{
    struct cli *cli = context;
    if (cli->json) {
        json_t *object = cause_json(c);
        char *text = json_dumps(object, JSON_COMPACT);
        if (text)
            cli_print(cli, str_format(cli->arena, "%s\n", text));
        free(text);
        json_decref(object);
    } else {
        struct buf b = {.a = cli->arena};
        add_cause(cli, &b, c);
        cli_print(cli, buf_str(&b));
    }
    (void)fflush(stdout);
}

static bool read_log(struct cli *cli, struct doctor *d, const struct options *o)
{
    const bool from_stdin = strcmp(o->log, "-") == 0;
    const str path = from_stdin ? S("standard input") : str_from(o->log);
    const int fd = from_stdin ? STDIN_FILENO : open(o->log, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return finding_fatal(cli->findings, EXIT_INPUT, F001, (struct place){.file = path},
                             "cannot be opened: %s", strerror(errno));
    const bool read = doctor_read(d, fd, path, cli->findings);
    if (!from_stdin)
        (void)close(fd);
    return read && doctor_end(d, path, cli->findings);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct options *o = state->input;
    switch (key) {
    case 'f':
        o->follow = true;
        return 0;
    case 't':
        o->target = argument;
        return 0;
    case KEY_DIR:
        o->dir = argument;
        return 0;
    case ARGP_KEY_ARG:
        if (o->log)
            return cli_usage(state, "one log at a time; a command follows '--'");
        o->log = argument;
        return 0;
    case ARGP_KEY_END:
        if (o->command && (o->log || o->follow))
            return cli_usage(state, "either a log or a command, not both");
        if (!o->command && !o->log && isatty(STDIN_FILENO))
            return cli_usage(state, "a log was expected, '-' for standard input, or '-- COMMAND'");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int exit_code_of(const struct report *r)
{
    for (size_t i = 0; i < r->causes.count; i++)
        if (r->causes.items[i].severity == SEVERITY_ERROR)
            return EXIT_FINDINGS;
    return EXIT_WELL;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct options o = {0};
    int own = 0; /* arguments before "--" */
    while (own < argc && strcmp(argv[own], "--") != 0)
        own++;
    if (own + 1 < argc)
        o.command = argv + own + 1;
    if (!cli_parse(cli, parse, own, argv, &o))
        return EXIT_USAGE;
    o.log = o.log ? o.log : "-";
    struct knowledge *k = knowledge_load(cli->arena, cli->findings);
    const struct doctor_options options = {.target = o.target};
    struct doctor *d = k ? doctor_new(cli->arena, k, &options) : NULL;
    int child = 0, code = EXIT_WELL;
    if (d) {
        struct report report = {.doctor = d};
        bool read;
        if (o.command)
            read = doctor_run(d, o.command, &child, cli->findings);
        else if (o.follow)
            read = doctor_follow(d, str_from(o.log), print_found, cli, cli->findings);
        else
            read = read_log(cli, d, &o);
        doctor_causes(cli->arena, d, &report.causes);
        if (o.dir)
            (void)doctor_locate(cli->arena, str_from(o.dir), &report.causes, cli->findings);
        code = exit_code_of(&report);
        if (o.command ? read && child != 0 : !o.follow)
            cli_report(cli, "felloe.doctor/1", &report, report_text, report_json);
    }
    doctor_free(d);
    knowledge_free(k);
    const int own_code = cli_finish(cli);
    if (o.command && own_code == EXIT_WELL)
        return child;
    return own_code > code ? own_code : code;
}

static const struct argp_option OPTIONS[] = {
    {"follow", 'f', NULL, 0, "Read on as the log grows, and report each cause once", 0},
    {"dir", KEY_DIR, "APP", 0, "The app's folder: name the line there that is to be changed", 0},
    {"target", 't', "NAME", 0, "The runtime that the log is from", 0},
    {0},
};

const struct command COMMAND_DOCTOR = {
    .name = "doctor",
    .summary = "Name the cause of a failed build or run from its log, and the fix",
    .description = "Reads a build or run log (plain, gzip or UTF-16; '-' or nothing: standard input) and "
                   "names the most probable root "
                   "cause first. An error that only follows from an earlier one is left out. Confidence says "
                   "how often such evidence "
                   "is right; an error that is not known is shown as such.\n\n"
                   "After '--' it runs a command, passes its output through and keeps its exit code; when "
                   "the command fails it "
                   "diagnoses what it printed.",
    .arguments = "[LOG|-] | -- COMMAND...",
    .options = OPTIONS,
    .examples = "felloe doctor build.log\n"
                "docker logs -f app 2>&1 | felloe doctor --follow -\n"
                "felloe doctor -- pip install ./custom_rasterizer",
    .exit_codes = "0 no cause of severity error, 1 there is one, 2 usage, 3 unreadable or damaged log; with "
                  "a command: its own",
    .run = run,
};
