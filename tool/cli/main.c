/* The felloe program: a table of commands. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>

const struct command *const COMMANDS[] = {
    /* One a line, so that two changes do not collide. */
    /* clang-format off */
    &COMMAND_SCAN,
    &COMMAND_PLAN,
    &COMMAND_CHECK,
    &COMMAND_DOCTOR,
    &COMMAND_TARGET,
    &COMMAND_ABI,
    &COMMAND_ASSET,
    &COMMAND_RENDER,
    &COMMAND_EXTRACT,
    &COMMAND_EXPLAIN,
    &COMMAND_HELP,
    NULL,
    /* clang-format on */
};

/* Words that people bring from other tools. */
static const struct {
    const char *said, *meant;
} CONFUSIONS[] = {
    {"lint", "scan"},       {"analyze", "scan"}, {"analyse", "scan"},  {"resolve", "plan"},
    {"lock", "plan"},       {"verify", "check"}, {"inspect", "check"}, {"audit", "check"},
    {"compile", "build"},   {"wheel", "build"},  {"install", "up"},    {"sync", "up"},
    {"diagnose", "doctor"}, {"log", "doctor"},   {"logs", "doctor"},   {"targets", "target"},
    {"view", "render"},     {"server", "serve"},
};

static const struct command *find(str name)
{
    for (size_t i = 0; COMMANDS[i]; i++)
        if (str_eq(name, str_from(COMMANDS[i]->name)))
            return COMMANDS[i];
    return NULL;
}

static const char *nearest(str name)
{
    const char *best = NULL;
    size_t least = 3; /* further away it is another word */
    for (size_t i = 0; i < COUNT(CONFUSIONS); i++)
        if (str_eq(name, str_from(CONFUSIONS[i].said)) && find(str_from(CONFUSIONS[i].meant)))
            return CONFUSIONS[i].meant;
    for (size_t i = 0; COMMANDS[i]; i++) {
        const size_t distance = str_distance(name, str_from(COMMANDS[i]->name));
        if (!COMMANDS[i]->hidden && distance < least) {
            least = distance;
            best = COMMANDS[i]->name;
        }
    }
    return best;
}

static int unknown(struct cli *cli, str name)
{
    const char *meant = nearest(name);
    (void)fprintf(stderr, "felloe: there is no command %.*s\n", STR_ARG(term_safe(cli->arena, name)));
    if (meant)
        (void)fprintf(stderr, "hint: did you mean 'felloe %s'?\n", meant);
    else
        (void)fprintf(stderr, "hint: 'felloe help' lists the commands\n");
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    struct cli cli = {.arena = arena_new(0)};
    cli.findings = findings_new(cli.arena);
    term_init(&cli.term, COLOR_AUTO, 0, 0);
    interrupts_catch();
    const str first = str_from(argc > 1 ? argv[1] : NULL);
    int code = EXIT_WELL;
    if (!first.p) {
        help_print(&cli, NULL, true);
        code = EXIT_USAGE;
    } else if (str_eq(first, S("--help")) || str_eq(first, S("-h"))) {
        help_print(&cli, NULL, false);
    } else if (str_eq(first, S("--version")) || str_eq(first, S("-V"))) {
        cli_print(&cli, S("felloe " FELLOE_VERSION "\n"));
        code = cli_finish(&cli);
    } else {
        cli.command = find(first);
        code = cli.command ? cli.command->run(&cli, argc - 1, argv + 1) : unknown(&cli, first);
    }
    arena_free(cli.arena);
    return code;
}
