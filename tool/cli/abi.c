/* 'felloe abi': ABI profiles: which names which torch and which Python export. */
#include "check/check.h"
#include "cli/cli.h"

struct options {
    struct cli *cli;
    str action, output, base, release, library;
    struct strs inputs;
};

struct report {
    const struct abi *abi;
    str path;
    size_t bytes;
};

static json_t *abi_json(struct cli *cli, const void *data)
{
    const struct report *r = data;
    json_t *body = json_object(), *sources = json_array();
    (void)cli;
    for (size_t i = 0; i < abi_source_count(r->abi); i++) {
        const struct abi_source *s = abi_source_at(r->abi, i);
        json_t *object = json_object();
        json_object_set_new(object, "release", json_str(s->release));
        json_object_set_new(object, "library", json_str(s->library));
        json_object_set_new(object, "symbols", json_integer((json_int_t)s->symbols));
        json_object_set_new(object, "needs", json_strs(&s->needs));
        json_array_append_new(sources, object);
    }
    json_object_set_new(body, "profile", json_str(r->path));
    json_object_set_new(body, "names", json_integer((json_int_t)abi_name_count(r->abi)));
    json_object_set_new(body, "bytes", json_integer((json_int_t)r->bytes));
    json_object_set_new(body, "sources", sources);
    return body;
}

static str abi_text(struct cli *cli, const void *data)
{
    static const char *const HEADINGS[] = {"release", "library", "names", "needs"};
    const struct report *r = data;
    arena *a = cli->arena;
    struct buf b = {.a = a};
    struct table table = {.headings = HEADINGS, .columns = COUNT(HEADINGS)};
    for (size_t i = 0; i < abi_source_count(r->abi); i++) {
        const struct abi_source *s = abi_source_at(r->abi, i);
        (void)strs_add(a, &table.cells, s->release);
        (void)strs_add(a, &table.cells, s->library);
        (void)strs_add(a, &table.cells, str_format(a, "%zu", s->symbols));
        (void)strs_add(a, &table.cells, str_join(a, &s->needs, S(" ")));
    }
    buf_format(&b, "%.*s: %zu names in %zu bytes\n\n", STR_ARG(r->path), abi_name_count(r->abi), r->bytes);
    buf_add(&b, table_text(a, &table, cli->term.width, cli->term.color_out));
    return buf_str(&b);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct options *o = state->input;
    switch (key) {
    case 'o':
        o->output = str_from(argument);
        return 0;
    case 'b':
        o->base = str_from(argument);
        return 0;
    case 'r':
        o->release = str_from(argument);
        return 0;
    case 'l':
        o->library = str_from(argument);
        return 0;
    case ARGP_KEY_ARG:
        if (!o->action.p)
            o->action = str_from(argument);
        else if (!strs_add(o->cli->arena, &o->inputs, str_from(argument)))
            return ENOMEM;
        return 0;
    case ARGP_KEY_END:
        if (!o->action.p || (!str_eq(o->action, S("list")) && !str_eq(o->action, S("build"))))
            return cli_usage(state, "expected list or build");
        if (str_eq(o->action, S("build")) && (o->inputs.count != 1 || !o->output.p))
            return cli_usage(state, "build: one wheel and --output FILE were expected");
        if (o->release.p && !o->library.p)
            return cli_usage(state, "--release: --library was expected beside it");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* A text with a name a line: how an interpreter's exports come in. */
static bool names_input(struct cli *cli, const struct options *o, struct abi_input *out)
{
    arena *a = cli->arena;
    span file;
    str line;
    if (!file_read(a, o->inputs.items[0], FILE_LIMIT_TEXT, &file, cli->findings))
        return false;
    str rest = str_from_span(file);
    uint64_t *hashes = arena_array(a, uint64_t, file.n / 2 + 1);
    size_t count = 0;
    while (hashes && str_next_line(&rest, &line))
        if (str_trim(line).n > 0)
            hashes[count++] = abi_hash(str_trim(line));
    *out = (struct abi_input){
        .source = {.release = o->release, .library = o->library}, .hashes = hashes, .count = count};
    return hashes != NULL;
}

static bool build(struct cli *cli, const struct options *o, span *out)
{
    arena *a = cli->arena;
    findings *f = cli->findings;
    struct abi *base = NULL;
    struct abi_input named, *inputs = &named;
    size_t count = 1;
    span old;
    if (o->base.p &&
        (!file_read(a, o->base, FILE_LIMIT_TEXT, &old, f) || !abi_read(a, old, o->base, &base, f)))
        return false;
    if (o->release.p)
        return names_input(cli, o, &named) && abi_write(a, base, inputs, count, out, f);
    const struct check_options options = {
        .skip_hashes = true, .offline = cli->offline, .verbose = cli->verbose};
    const struct check_env env = {.options = &options};
    struct check_file file = {.file = o->inputs.items[0], .findings = f};
    str why;
    if (!wheel_name_parse(a, file.file, &file.name, &why))
        return finding_fatal(f, 3, F276, (struct place){.file = file.file}, "%.*s", STR_ARG(why));
    const str release = str_format(a, "torch %.*s", STR_ARG(version_public(a, &file.name.version)));
    return check_read(a, &env, file.file, 2, &file) &&
           check_profile_inputs(a, &file, release, &inputs, &count, f) &&
           abi_write(a, base, inputs, count, out, f);
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct options o = {.cli = cli};
    if (!cli_parse(cli, parse, argc, argv, &o))
        return EXIT_USAGE;
    struct report report = {0};
    struct abi *abi = NULL;
    span file = {0};
    findings *f = cli->findings;
    bool good;
    if (str_eq(o.action, S("build"))) {
        report.path = o.output;
        good = build(cli, &o, &file) && file_write(o.output, file, f) &&
               abi_read(cli->arena, file, o.output, &abi, f);
    } else if (o.inputs.count > 0) {
        report.path = o.inputs.items[0];
        good = file_read(cli->arena, report.path, FILE_LIMIT_TEXT, &file, f) &&
               abi_read(cli->arena, file, report.path, &abi, f);
    } else {
        good = data_file(cli->arena, "abi/profiles.abi", &file, &report.path, f) &&
               abi_read(cli->arena, file, report.path, &abi, f);
    }
    report.abi = abi;
    report.bytes = good ? file.n : 0;
    if (good)
        cli_report(cli, "felloe.abi/1", &report, abi_text, abi_json);
    return cli_finish(cli);
}

static const struct argp_option OPTIONS[] = {
    {"output", 'o', "FILE", 0, "Where to write the profile", 0},
    {"base", 'b', "FILE", 0, "Keep what this profile has; the same release is replaced", 0},
    {"release", 'r', "TEXT", 0, "The input is a text with a name a line, of this release: \"cpython 3.12\"",
     0},
    {"library", 'l', "TEXT", 0, "With --release: the library that exports them", 0},
    {0},
};

const struct command COMMAND_ABI = {
    .name = "abi",
    .summary = "List or make the profiles of what each torch and Python exports",
    .description = "'list' shows the sources of a profile: the one compiled in, or a file. 'build' makes one "
                   "from a torch "
                   "wheel, on disk or by URL, or from a list of names.",
    .arguments = "[list [FILE] | build WHEEL|URL|NAMES]",
    .options = OPTIONS,
    .examples = "felloe abi list\n"
                "felloe abi build --base data/abi/profiles.abi --output data/abi/profiles.abi "
                "torch-2.11.0-cp312-cp312-manylinux_2_28_x86_64.whl",
    .exit_codes = "0 done, 2 usage, 3 unreadable input, 4 network",
    .has_network = true,
    .run = run,
};
