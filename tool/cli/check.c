/* 'felloe check': whether a wheel will import and run. Options in, one call, report out; the verdict is made in check/. */
#include "check/check.h"
#include "cli/cli.h"

static json_t *build_json(const struct check_file *file)
{
    const struct wheel_build *b = &file->name.build;
    json_t *object = json_object();
    json_object_set_new(object, "cuda", json_str(b->cuda));
    json_object_set_new(object, "torch", json_str(b->torch));
    json_object_set_new(object, "cxx11abi", b->cxx11abi < 0 ? json_null() : json_boolean(b->cxx11abi));
    json_object_set_new(object, "torch_other", json_str(b->torch_other));
    json_object_set_new(object, "torch_is_minimum", json_boolean(b->torch_is_minimum));
    json_object_set_new(object, "cuda_in_name", json_str(b->cuda_in_name));
    json_object_set_new(object, "rocm", json_str(b->rocm));
    json_object_set_new(object, "accelerator", json_str(b->accelerator));
    json_object_set_new(object, "is_torch", json_boolean(b->is_torch));
    return object;
}

static json_t *missing_json(const struct check_missing *m)
{
    json_t *object = json_object();
    json_object_set_new(object, "name", json_str(m->name));
    json_object_set_new(object, "demangled", json_str(m->demangled));
    json_object_set_new(object, "exported_by", json_str(m->exported_by));
    return object;
}

static json_t *object_json(const struct check_object *o)
{
    json_t *object = json_object(), *names = json_array(), *details = json_array();
    for (size_t i = 0; i < o->missing.count; i++) {
        json_array_append_new(names, json_str(o->missing.items[i].name));
        json_array_append_new(details, missing_json(&o->missing.items[i]));
    }
    json_object_set_new(object, "path", json_str(o->elf.path));
    json_object_set_new(object, "needs", json_strs(&o->elf.needs));
    json_object_set_new(object, "soname", json_str(o->elf.soname));
    json_object_set_new(object, "rpath", json_strs(o->elf.runpath.count ? &o->elf.runpath : &o->elf.rpath));
    json_object_set_new(object, "glibc", json_str(o->elf.glibc));
    json_object_set_new(object, "glibcxx", json_str(o->elf.glibcxx));
    json_object_set_new(object, "cxxabi", json_str(o->elf.cxxabi));
    json_object_set_new(object, "missing_symbols", names);
    json_object_set_new(object, "missing", details);
    json_object_set_new(object, "archs", json_strs(&o->archs));
    json_object_set_new(object, "ptx", json_strs(&o->ptx));
    json_object_set_new(object, "gpu_code",
                        json_pack("{s:I, s:I, s:I}", "pieces", (json_int_t)o->containers, "without_target",
                                  (json_int_t)o->containers_without, "in_data",
                                  (json_int_t)o->containers_in_data));
    json_object_set_new(object, "verdict", json_string(check_verdict_name(o->verdict)));
    return object;
}

static json_t *file_json(const struct check_file *file)
{
    json_t *object = json_object(), *tags = json_object(), *objects = json_array();
    const struct wheel_name *n = &file->name;
    json_object_set_new(tags, "python", json_strs(&n->tags.python));
    json_object_set_new(tags, "abi", json_strs(&n->tags.abi));
    json_object_set_new(tags, "platform", json_strs(&n->tags.platform));
    for (size_t i = 0; i < file->object_count; i++)
        json_array_append_new(objects, object_json(&file->objects[i]));
    json_object_set_new(object, "file", json_str(file->file));
    json_object_set_new(object, "distribution", json_str(n->distribution));
    json_object_set_new(object, "name", json_str(n->name));
    json_object_set_new(object, "version", json_str(n->version_text));
    json_object_set_new(object, "local", json_str(n->local));
    json_object_set_new(object, "build_tag", json_str(n->build_tag));
    json_object_set_new(object, "variant", json_str(n->variant));
    json_object_set_new(object, "variant_properties", json_strs(&file->variant));
    json_object_set_new(object, "build", build_json(file));
    json_object_set_new(object, "tags", tags);
    json_object_set_new(object, "python", json_str(file->python));
    json_object_set_new(object, "torch", json_str(file->torch));
    json_object_set_new(object, "objects", objects);
    json_object_set_new(object, "bytes_read", json_integer((json_int_t)file->bytes_read));
    json_object_set_new(object, "bytes_total", json_integer((json_int_t)file->bytes_total));
    json_object_set_new(object, "hashes",
                        json_pack("{s:I, s:I}", "good", (json_int_t)file->hashes_good, "not_read",
                                  (json_int_t)file->hashes_unread));
    json_object_set_new(object, "verdict", json_string(check_verdict_name(file->verdict)));
    json_object_set_new(object, "findings", json_findings(file->findings));
    return object;
}

static json_t *check_json(struct cli *cli, const void *data)
{
    const struct check_report *r = data;
    json_t *body = json_object(), *files = json_array();
    (void)cli;
    for (size_t i = 0; i < r->count; i++)
        json_array_append_new(files, file_json(&r->files[i]));
    json_object_set_new(body, "target", json_str(r->target->name));
    json_object_set_new(body, "files", files);
    return body;
}

static enum style verdict_style(enum check_verdict v)
{
    return v == CHECK_FITS                                ? STYLE_GREEN
           : v == CHECK_FITS_BY_PTX || v == CHECK_UNKNOWN ? STYLE_YELLOW
                                                          : STYLE_RED;
}

static str check_text(struct cli *cli, const void *data)
{
    static const char *const HEADINGS[] = {"object", "verdict", "GPU code", "glibc", "needs"};
    const struct check_report *r = data;
    arena *a = cli->arena;
    struct buf b = {.a = a};
    for (size_t i = 0; i < r->count; i++) {
        const struct check_file *file = &r->files[i];
        const str verdict = term_paint(a, cli->term.color_out, verdict_style(file->verdict),
                                       str_from(check_verdict_name(file->verdict)));
        buf_format(&b, "%s%.*s: %.*s", i > 0 ? "\n" : "", STR_ARG(term_safe(a, file->file)),
                   STR_ARG(verdict));
        buf_format(&b, " (%.*s", STR_ARG(r->target->name));
        if (file->python.p)
            buf_format(&b, ", Python %.*s", STR_ARG(file->python));
        if (file->torch.p)
            buf_format(&b, ", torch %.*s", STR_ARG(file->torch));
        buf_add(&b, S(")\n"));
        if (file->bytes_total > 0)
            buf_format(&b, "  read %.1f of %.1f MB, %zu hashes of RECORD agree\n",
                       (double)file->bytes_read / 1e6, (double)file->bytes_total / 1e6, file->hashes_good);
        struct table table = {.headings = HEADINGS, .columns = COUNT(HEADINGS)};
        enum style *styles = arena_array(a, enum style, file->object_count * COUNT(HEADINGS));
        for (size_t k = 0; styles && k < file->object_count; k++) {
            const struct check_object *o = &file->objects[k];
            struct strs code = {0};
            for (size_t n = 0; n < o->archs.count; n++)
                (void)strs_add(a, &code, o->archs.items[n]);
            for (size_t n = 0; n < o->ptx.count; n++)
                (void)strs_add(a, &code, o->ptx.items[n]);
            styles[k * COUNT(HEADINGS) + 1] = verdict_style(o->verdict);
            (void)strs_add(a, &table.cells, o->elf.path);
            (void)strs_add(a, &table.cells, str_from(check_verdict_name(o->verdict)));
            (void)strs_add(a, &table.cells, code.count ? str_join(a, &code, S(" ")) : S("-"));
            (void)strs_add(a, &table.cells, o->elf.glibc.p ? o->elf.glibc : S("-"));
            (void)strs_add(a, &table.cells, str_join(a, &o->elf.needs, S(" ")));
        }
        table.styles = styles;
        if (file->object_count > 0)
            buf_add(&b, table_text(a, &table, cli->term.width, cli->term.color_out));
    }
    return buf_str(&b);
}

struct options {
    struct cli *cli;
    str target;
    struct strs files;
    struct check_options check;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct options *o = state->input;
    switch (key) {
    case 't':
        o->target = str_from(argument);
        return 0;
    case 'p':
        o->check.python = str_from(argument);
        return 0;
    case 'T':
        o->check.torch = str_from(argument);
        return 0;
    case 'a':
        o->check.against = str_from(argument);
        return 0;
    case 'n':
        o->check.names_only = true;
        return 0;
    case 's':
        o->check.skip_hashes = true;
        return 0;
    case ARGP_KEY_ARG:
        return strs_add(o->cli->arena, &o->files, str_from(argument)) ? 0 : ENOMEM;
    case ARGP_KEY_END:
        if (o->files.count == 0)
            return cli_usage(state, "a wheel, a shared object, a folder or an address was expected");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct options o = {.cli = cli, .target = S("zerogpu")};
    if (!cli_parse(cli, parse, argc, argv, &o))
        return EXIT_USAGE;
    struct check_report report = {0};
    o.check.target = target_find(cli->arena, o.target, cli->findings);
    o.check.offline = cli->offline;
    o.check.verbose = cli->verbose;
    if (o.check.target && check_files(cli->arena, &o.check, &o.files, &report, cli->findings))
        cli_report(cli, "felloe.check/1", &report, check_text, check_json);
    const int code = cli_finish(cli);
    check_report_free(&report);
    return code;
}

static const struct argp_option OPTIONS[] = {
    {"target", 't', "NAME", 0, "Judge for this target (default: zerogpu; 'felloe target list' names them)",
     0},
    {"python", 'p', "X.Y", 0, "The target's Python (default: its best that the file's tags fit)", 0},
    {"torch", 'T', "X.Y.Z", 0, "The torch beside it (default: the target's preinstalled one)", 0},
    {"against", 'a', "DIR", 0,
     "Compare with the torch installed in this virtual environment, not with a profile", 0},
    {"names", 'n', NULL, 0, "Answer from the names alone: nothing is read or fetched", 0},
    {"skip-hashes", 's', NULL, 0, "Do not compare the files with RECORD's hashes", 0},
    {0},
};

const struct command COMMAND_CHECK = {
    .name = "check",
    .summary = "Say whether a compiled wheel will import and launch on a target, before it is installed",
    .description =
        "Reads tags and metadata, the hashes of RECORD, and of every shared object what it needs: libraries, "
        "symbols and their versions, compared with what the target's torch, Python and C library export; and "
        "its GPU code, compared with the target's GPU. A URL is read by ranges: no copy of the archive is "
        "made. "
        "Nothing of the wheel is run.",
    .arguments = "FILE|DIR|URL...",
    .options = OPTIONS,
    .examples = "felloe check dist/*.whl\n"
                "felloe check -t zerogpu --torch 2.10.0 "
                "https://example.org/torchmcubes-0.1.0-cp312-cp312-linux_x86_64.whl\n"
                "felloe check --names flash_attn-2.8.3+cu12torch2.8cxx11abiTRUE-cp312-cp312-linux_x86_64.whl",
    .exit_codes = "0 fits, 1 does not fit, 2 usage, 3 unreadable input, 4 network",
    .has_sarif = true,
    .has_network = true,
    .run = run,
};
