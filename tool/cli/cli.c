/* Option parsing, reports and exit codes that all commands share. */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { KEY_JSON = 0x1000, KEY_SARIF, KEY_COLOR, KEY_DATA, KEY_OFFLINE };

static const struct argp_option COMMON[] = {
    {"json", KEY_JSON, NULL, 0, "Print one JSON document on standard output", 10},
    {"sarif", KEY_SARIF, NULL, 0, "Print the findings as SARIF 2.1.0, for code-scanning pages", 10},
    {"offline", KEY_OFFLINE, NULL, 0, "Reach nothing over the network", 10},
    {"color", KEY_COLOR, "WHEN", 0, "auto, always or never; NO_COLOR is respected", 10},
    {"data", KEY_DATA, "DIR", 0, "Take targets, extensions and sources from DIR where it has them", 10},
    {"quiet", 'q', NULL, 0, "Say less; twice: only the exit code", 10},
    {"verbose", 'v', NULL, 0, "Say more; up to three times", 10},
    {"help", 'h', NULL, 0, "Print this help", 10},
    {0},
};

static bool common_applies(const struct command *command, int key)
{
    return (key != KEY_SARIF || command->has_sarif) && (key != KEY_OFFLINE || command->has_network);
}

/* All options of a command, its own first, in the arena. */
struct argp_option *cli_options(arena *a, const struct command *command)
{
    size_t own = 0, kept = 0;
    while (command->options && (command->options[own].name || command->options[own].key))
        own++;
    struct argp_option *all = arena_array(a, struct argp_option, own + COUNT(COMMON));
    for (size_t i = 0; all && i < own; i++)
        all[kept++] = command->options[i];
    for (size_t i = 0; all && i + 1 < COUNT(COMMON); i++)
        if (common_applies(command, COMMON[i].key))
            all[kept++] = COMMON[i];
    return all;
}

struct parsing {
    struct cli *cli;
    argp_parser_t parse;
    void *options;
};

static bool take_color(struct cli *cli, const char *when)
{
    static const char *const NAMES[] = {"auto", "always", "never"};
    for (size_t i = 0; i < COUNT(NAMES); i++)
        if (strcmp(when, NAMES[i]) == 0) {
            cli->color = (enum color_mode)i;
            return true;
        }
    return false;
}

static error_t parse_any(int key, char *argument, struct argp_state *state)
{
    struct parsing *p = state->input;
    struct cli *cli = p->cli;
    switch (key) {
    case ARGP_KEY_INIT:
        state->err_stream =
            NULL; /* argp's own hint names options that we do not have; getopt's message stays */
        break;
    case KEY_JSON:
        cli->json = true;
        return 0;
    case KEY_SARIF:
        cli->sarif = true;
        return 0;
    case KEY_OFFLINE:
        cli->offline = true;
        return 0;
    case KEY_DATA:
        if (!dir_exists(str_from(argument)))
            return cli_usage(state, "--data: %s is not a folder", argument);
        data_override(str_from(argument));
        return 0;
    case KEY_COLOR:
        return take_color(cli, argument)
                   ? 0
                   : cli_usage(state, "--color: expected auto, always or never, got %s", argument);
    case 'q':
        cli->quiet++;
        return 0;
    case 'v':
        cli->verbose++;
        return 0;
    case 'h':
        term_init(&cli->term, cli->color, 0, 0);
        help_print(cli, cli->command, false);
        exit(EXIT_WELL);
    default:
        break;
    }
    if (!p->parse)
        return key == ARGP_KEY_ARG ? cli_usage(state, "unexpected argument %s", argument) : ARGP_ERR_UNKNOWN;
    state->input = p->options;
    const error_t result = p->parse(key, argument, state);
    state->input = p;
    return result;
}

error_t cli_usage(struct argp_state *state, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)fprintf(stderr, "%s: ", state->name);
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    va_end(args);
    return EINVAL;
}

/* The nearest long option to one that getopt did not know; getopt has said which. */
static void suggest_option(const struct argp_option *options, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        str name, value;
        if (strncmp(argv[i], "--", 2) != 0 || argv[i][2] == 0)
            continue;
        (void)str_cut(str_from(argv[i] + 2), '=', &name, &value);
        const char *nearest = NULL;
        size_t least = 3; /* further away it is another word */
        bool known = false;
        for (const struct argp_option *o = options; o->name || o->key; o++) {
            const size_t distance = o->name ? str_distance(name, str_from(o->name)) : least;
            known = known || (o->name && str_starts(str_from(o->name), name));
            if (distance < least) {
                least = distance;
                nearest = o->name;
            }
        }
        if (!known && nearest)
            (void)fprintf(stderr, "hint: did you mean --%s?\n", nearest);
    }
}

bool cli_parse(struct cli *cli, argp_parser_t parse, int argc, char **argv, void *options)
{
    struct argp_option *all = cli_options(cli->arena, cli->command);
    struct parsing parsing = {.cli = cli, .parse = parse, .options = options};
    const str name = str_format(cli->arena, "felloe %s", cli->command->name);
    char *shown = unconst(str_c(cli->arena, name));
    char *saved = argv[0];
    const struct argp argp = {.options = all, .parser = parse_any};
    argv[0] = shown; /* what getopt and argp print before a message */
    const error_t error = argp_parse(&argp, argc, argv, ARGP_NO_HELP | ARGP_NO_EXIT, NULL, &parsing);
    argv[0] = saved;
    term_init(&cli->term, cli->color, cli->quiet, cli->verbose);
    if (!error)
        return true;
    suggest_option(all, argc, argv);
    (void)fprintf(stderr, "hint: felloe %s --help\n", cli->command->name);
    return false;
}

void cli_print(struct cli *cli, str text)
{
    if (cli->quiet > 1 || text.n == 0)
        return;
    if (fwrite(text.p, 1, text.n, stdout) != text.n || fflush(stdout) != 0) {
        const int error = errno;
        (void)finding_fatal(cli->findings, EXIT_INPUT, F004, (struct place){0},
                            "standard output cannot be written: %s", strerror(error));
    }
}

static void print_json(struct cli *cli, json_t *document)
{
    char *text = json_dumps(document, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    json_decref(document);
    if (!text) {
        (void)finding_fatal(cli->findings, EXIT_INPUT, F006, (struct place){0},
                            "the report does not fit the memory");
        return;
    }
    cli_print(cli, str_from(text));
    cli_print(cli, S("\n"));
    free(text);
}

void cli_report(struct cli *cli, const char *schema, const void *report,
                str (*text)(struct cli *cli, const void *report),
                json_t *(*json)(struct cli *cli, const void *report))
{
    findings_sort(cli->findings);
    if (cli->sarif) {
        print_json(cli, sarif_report(cli));
    } else if (cli->json) {
        json_t *document = json_object();
        json_object_set_new(document, "schema", json_string(schema));
        json_t *body = json(cli, report);
        json_object_update(document, body);
        json_decref(body);
        print_json(cli, document);
    } else {
        cli_print(cli, text(cli, report));
    }
}

int cli_finish(struct cli *cli)
{
    findings *f = cli->findings;
    const bool shown = (cli->json || cli->sarif) && f->exit_code == 0;
    findings_sort(f);
    if (!shown && cli->quiet < 2) {
        const str text = findings_text(cli->arena, f, &cli->term);
        (void)fwrite(text.p, 1, text.n, stderr);
    }
    if (interrupted())
        return EXIT_INTERRUPTED;
    if (f->exit_code)
        return f->exit_code;
    return findings_have_errors(f) ? EXIT_FINDINGS : EXIT_WELL;
}
