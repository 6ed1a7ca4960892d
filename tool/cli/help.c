/* 'felloe help', and what is made from the commands' records: help texts, man pages, reference pages, completions. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>

enum help_form { HELP_TEXT, HELP_MAN, HELP_MARKDOWN };

static const struct command *command_find(str name)
{
    for (size_t i = 0; COMMANDS[i]; i++)
        if (str_eq(name, str_from(COMMANDS[i]->name)))
            return COMMANDS[i];
    return NULL;
}

static str option_name(arena *a, const struct argp_option *o)
{
    struct buf b = {.a = a};
    if (o->key > ' ' && o->key < 127)
        buf_format(&b, "-%c%s", (char)o->key, o->name ? ", " : "");
    else
        buf_add(&b, S("    "));
    if (o->name)
        buf_format(&b, "--%s", o->name);
    if (o->arg)
        buf_format(&b, "%s%s", o->name ? "=" : " ", o->arg);
    return buf_str(&b);
}

static str overview(struct cli *cli)
{
    struct buf b = {.a = cli->arena};
    const bool color = cli->term.color_out;
    buf_add(&b, S("felloe " FELLOE_VERSION ": compiled extensions that fit their runtime\n\n"
                  "Usage: felloe COMMAND [OPTION...] [ARGUMENT...]\n\nCommands:\n"));
    for (size_t i = 0; COMMANDS[i]; i++)
        if (!COMMANDS[i]->hidden) {
            const str name = str_format(cli->arena, "%-10s", COMMANDS[i]->name);
            buf_format(&b, "  %.*s  %s\n", STR_ARG(term_paint(cli->arena, color, STYLE_BOLD, name)),
                       COMMANDS[i]->summary);
        }
    buf_add(&b, S("\nStart with:\n"
                  "  felloe scan path/to/app                     what it needs and what is wrong with it\n"
                  "  felloe plan path/to/app --target zerogpu    where each extension should come from\n\n"
                  "'felloe COMMAND --help' tells more; 'felloe --version' which version this is.\n"));
    return buf_str(&b);
}

static str help_text(struct cli *cli, const struct command *c)
{
    arena *a = cli->arena;
    struct buf b = {.a = a};
    const size_t width = (size_t)cli->term.width;
    buf_format(&b, "%s.\n\nUsage: felloe %s [OPTION...]%s%s\n", c->summary, c->name, *c->arguments ? " " : "",
               c->arguments);
    if (c->description)
        buf_format(&b, "\n%.*s\n", STR_ARG(text_wrap(a, str_from(c->description), width, 0)));
    buf_add(&b, S("\nOptions:\n"));
    for (const struct argp_option *o = cli_options(a, c); o && (o->name || o->key); o++)
        buf_format(&b, "  %-24.*s %.*s\n", STR_ARG(option_name(a, o)),
                   STR_ARG(text_wrap(a, str_from(o->doc), width, 27)));
    buf_add(&b, S("\nExamples:\n"));
    str rest = str_from(c->examples), line;
    while (str_next_line(&rest, &line))
        buf_format(&b, "  %.*s\n", STR_ARG(line));
    buf_format(&b, "\nExit codes: %.*s\n", STR_ARG(text_wrap(a, str_from(c->exit_codes), width, 12)));
    return buf_str(&b);
}

/* roff takes '-' for a hyphen, and a line's first '.' or "'" for a request. */
static void roff(struct buf *b, str text)
{
    bool line_start = true;
    for (size_t i = 0; i < text.n; i++) {
        const char c = text.p[i];
        if (line_start && (c == '.' || c == '\''))
            buf_add(b, S("\\&"));
        if (c == '-' || c == '\\')
            buf_char(b, '\\');
        buf_char(b, c);
        line_start = c == '\n';
    }
}

static void roff_paragraphs(struct buf *b, const char *text)
{
    str rest = str_from(text), line;
    while (str_next_line(&rest, &line)) {
        if (line.n == 0)
            buf_add(b, S(".PP"));
        else
            roff(b, line);
        buf_char(b, '\n');
    }
}

static str man_page(struct cli *cli, const struct command *c)
{
    arena *a = cli->arena;
    struct buf b = {.a = a};
    buf_format(&b, ".TH \"FELLOE\\-%s\" 1 \"\" \"felloe %s\" \"felloe manual\"\n.SH NAME\nfelloe\\-%s \\- ",
               c->name, FELLOE_VERSION, c->name);
    roff(&b, str_from(c->summary));
    buf_format(&b, "\n.SH SYNOPSIS\n.B felloe %s\n[\\fIOPTION\\fR...] ", c->name);
    roff(&b, str_from(c->arguments));
    buf_add(&b, S("\n.SH DESCRIPTION\n"));
    roff_paragraphs(&b, c->description ? c->description : c->summary);
    buf_add(&b, S(".SH OPTIONS\n"));
    for (const struct argp_option *o = cli_options(a, c); o && (o->name || o->key); o++) {
        buf_add(&b, S(".TP\n.B "));
        roff(&b, str_trim(option_name(a, o)));
        buf_char(&b, '\n');
        roff_paragraphs(&b, o->doc);
    }
    buf_add(&b, S(".SH EXAMPLES\n.nf\n"));
    roff(&b, str_from(c->examples));
    buf_add(&b, S("\n.fi\n.SH EXIT STATUS\n"));
    roff_paragraphs(&b, c->exit_codes);
    buf_add(&b, S(".SH SEE ALSO\n.BR felloe (1)\n"));
    return buf_str(&b);
}

static str man_overview(struct cli *cli)
{
    struct buf b = {.a = cli->arena};
    buf_format(&b,
               ".TH FELLOE 1 \"\" \"felloe %s\" \"felloe manual\"\n.SH NAME\nfelloe \\- compiled extensions "
               "that fit their "
               "runtime\n.SH SYNOPSIS\n.B felloe\n\\fICOMMAND\\fR [\\fIOPTION\\fR...] "
               "[\\fIARGUMENT\\fR...]\n.SH COMMANDS\n",
               FELLOE_VERSION);
    for (size_t i = 0; COMMANDS[i]; i++)
        if (!COMMANDS[i]->hidden) {
            buf_format(&b, ".TP\n.BR felloe\\-%s (1)\n", COMMANDS[i]->name);
            roff_paragraphs(&b, COMMANDS[i]->summary);
        }
    buf_add(
        &b,
        S(".SH ENVIRONMENT\n.TP\n.B FELLOE_CACHE\nFolder of the cache, in place of $XDG_CACHE_HOME/felloe.\n"
          ".TP\n.B NO_COLOR\nNo colours, whatever its value.\n.TP\n.B https_proxy, http_proxy, no_proxy\n"
          "Proxies, as curl reads them.\n"));
    return buf_str(&b);
}

static str reference_page(struct cli *cli, const struct command *c)
{
    arena *a = cli->arena;
    struct buf b = {.a = a};
    buf_format(&b, "# felloe %s\n\n%s.\n\n```\nfelloe %s [OPTION...]%s%s\n```\n", c->name, c->summary,
               c->name, *c->arguments ? " " : "", c->arguments);
    if (c->description)
        buf_format(&b, "\n%s\n", c->description);
    buf_add(&b, S("\n## Options\n\n| option | meaning |\n|---|---|\n"));
    for (const struct argp_option *o = cli_options(a, c); o && (o->name || o->key); o++)
        buf_format(&b, "| `%.*s` | %s |\n", STR_ARG(str_trim(option_name(a, o))), o->doc);
    buf_format(&b, "\n## Examples\n\n```\n%s\n```\n\n## Exit codes\n\n%s.\n", c->examples, c->exit_codes);
    return buf_str(&b);
}

static str completion_bash(struct cli *cli)
{
    struct buf b = {.a = cli->arena};
    struct buf names = {.a = cli->arena};
    buf_add(&b, S("# bash completion for felloe\n_felloe()\n{\n    local word=${COMP_WORDS[COMP_CWORD]} "
                  "command=${COMP_WORDS[1]} "
                  "options=\n    case $command in\n"));
    for (size_t i = 0; COMMANDS[i]; i++) {
        if (COMMANDS[i]->hidden)
            continue;
        buf_format(&names, "%s%s", names.count ? " " : "", COMMANDS[i]->name);
        buf_format(&b, "    %s) options='", COMMANDS[i]->name);
        for (const struct argp_option *o = cli_options(cli->arena, COMMANDS[i]); o && (o->name || o->key);
             o++)
            if (o->name)
                buf_format(&b, "--%s ", o->name);
        buf_add(&b, S("' ;;\n"));
    }
    buf_format(&b,
               "    esac\n    if [ \"$COMP_CWORD\" = 1 ]; then\n        COMPREPLY=($(compgen -W '%.*s' -- "
               "\"$word\"))\n"
               "    elif [ \"${word#-}\" != \"$word\" ]; then\n        COMPREPLY=($(compgen -W \"$options\" "
               "-- \"$word\"))\n"
               "    else\n        COMPREPLY=($(compgen -f -- \"$word\"))\n    fi\n}\ncomplete -o filenames "
               "-F _felloe felloe\n",
               STR_ARG(buf_str(&names)));
    return buf_str(&b);
}

void help_print(struct cli *cli, const struct command *command, bool to_stderr)
{
    const str text = command ? help_text(cli, command) : overview(cli);
    (void)fwrite(text.p, 1, text.n, to_stderr ? stderr : stdout);
}

struct options {
    enum help_form form;
    bool completion;
    str command;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct options *o = state->input;
    switch (key) {
    case 'm':
        o->form = HELP_MAN;
        return 0;
    case 'M':
        o->form = HELP_MARKDOWN;
        return 0;
    case 'c':
        o->completion = true;
        return 0;
    case ARGP_KEY_ARG:
        if (o->command.p)
            return cli_usage(state, "one command was expected, got also %s", argument);
        o->command = str_from(argument);
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
    const struct command *command = o.command.p ? command_find(o.command) : NULL;
    if (o.command.p && !command) {
        (void)fprintf(stderr, "felloe help: there is no command %.*s\nhint: felloe help\n",
                      STR_ARG(o.command));
        return EXIT_USAGE;
    }
    if (o.completion)
        cli_print(cli, completion_bash(cli));
    else if (o.form == HELP_MAN)
        cli_print(cli, command ? man_page(cli, command) : man_overview(cli));
    else if (o.form == HELP_MARKDOWN && command)
        cli_print(cli, reference_page(cli, command));
    else
        cli_print(cli, command ? help_text(cli, command) : overview(cli));
    return cli_finish(cli);
}

static const struct argp_option OPTIONS[] = {
    {"man", 'm', NULL, 0, "Print the man page (roff)", 0},
    {"markdown", 'M', NULL, 0, "Print the reference page (Markdown)", 0},
    {"completion", 'c', NULL, 0, "Print the completion script for bash", 0},
    {0},
};

const struct command COMMAND_HELP = {
    .name = "help",
    .summary = "Tell what the commands do and how they are used",
    .description = "Without a command it lists them all.",
    .arguments = "[COMMAND]",
    .options = OPTIONS,
    .examples = "felloe help scan\nfelloe help --man plan | man -l -",
    .exit_codes = "0 printed, 2 usage",
    .run = run,
};
