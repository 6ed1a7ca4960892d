/* cli/cli.h: what every command shares: its record, options, reports and exit codes. No logic of a command lives here. */
#ifndef FELLOE_CLI_H
#define FELLOE_CLI_H

#include <argp.h>

#include "base/base.h"

enum exit_code {
    EXIT_WELL = 0,
    EXIT_FINDINGS = 1, /* findings of severity error: the answer is 'it will not work' */
    EXIT_USAGE = 2,
    EXIT_INPUT = 3, /* could not be read, or is malformed */
    EXIT_NETWORK = 4,
    EXIT_CHILD = 5, /* a tool that we ran failed */
    EXIT_INTERRUPTED = 130
};

struct cli {
    arena *arena;
    findings *findings;
    struct term term;
    const struct command *command;
    bool json, sarif, offline;
    enum color_mode color;
    int quiet, verbose;
};

/* One record a command: help, man page, completions and the reference pages are made from it. */
struct command {
    const char *name;
    const char *summary;     /* one line, no full stop */
    const char *description; /* paragraphs apart by empty lines; what it reads, decides and prints */
    const char *arguments;   /* "FILE|URL..." */
    const struct argp_option *options; /* its own; the common ones are added. Ends with a zero entry */
    const char *examples;              /* one a line, at least two */
    const char *exit_codes;            /* "0 fits, 1 does not fit, ..." */
    bool has_sarif;                    /* --sarif makes sense */
    bool has_network;                  /* --offline makes sense */
    bool hidden;
    int (*run)(struct cli *cli, int argc, char **argv);
};

extern const struct command *const COMMANDS[]; /* in the order of help; ends with NULL */

/* Parses a command's own options with `parse` (argp's parser; state->input is `options`) and the common ones. False after a
 * message: the command must return EXIT_USAGE. After --help it prints and ends the process with 0. argv[0] is the name. */
bool cli_parse(struct cli *cli, argp_parser_t parse, int argc, char **argv, void *options);
/* In a parser: a wrong use, said in one line. Returns EINVAL. */
error_t cli_usage(struct argp_state *state, const char *format, ...) PRINTF_LIKE(2, 3);
/* Prints a report: as JSON ({"schema": ..., what `json` gives}) or SARIF on standard output, else by `text`. */
void cli_report(struct cli *cli, const char *schema, const void *report,
                str (*text)(struct cli *cli, const void *report),
                json_t *(*json)(struct cli *cli, const void *report));
/* Prints the findings for people (not with --json or --sarif, whose report holds them) and gives the exit code. */
int cli_finish(struct cli *cli);
/* Writes to standard output; a failure (closed pipe, full disk) is a finding and exit code 3. */
void cli_print(struct cli *cli, str text);

/* All options of a command, its own first, then the common ones that apply; ends with a zero entry. */
struct argp_option *cli_options(arena *a, const struct command *command);
void help_print(struct cli *cli, const struct command *command, bool to_stderr);
json_t *sarif_report(struct cli *cli);

extern const struct command COMMAND_SCAN, COMMAND_PLAN, COMMAND_CHECK, COMMAND_DOCTOR, COMMAND_TARGET,
    COMMAND_ABI, COMMAND_ASSET, COMMAND_RENDER, COMMAND_EXTRACT, COMMAND_EXPLAIN, COMMAND_HELP;

#endif
