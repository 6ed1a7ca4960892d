/* 'felloe extract': from a volume to a mesh file. */
#include "model/model.h"

#include "cli/cli.h"

#include <felloe/felloe.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct options {
    str file, output;
    struct extract_options extract;
};

struct report {
    struct model_facts facts;
    double level;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct options *o = state->input;
    char *end;
    switch (key) {
    case 'o':
        o->output = str_from(argument);
        return 0;
    case 'l':
        o->extract.level = strtod(argument, &end);
        o->extract.has_level = true;
        return end != argument && !*end ? 0 : cli_usage(state, "--level: expected a number");
    case 'i':
        o->extract.inside = strcmp(argument, "above") == 0 ? 1 : -1;
        return !strcmp(argument, "above") || !strcmp(argument, "below")
                   ? 0
                   : cli_usage(state, "--inside: expected above or below");
    case 'c':
        o->extract.closed = true;
        return 0;
    case 'k':
        o->extract.keep_axes = true;
        return 0;
    case 'z':
        o->extract.size = strtod(argument, &end);
        return end != argument && !*end && o->extract.size >= 0
                   ? 0
                   : cli_usage(state, "--size: expected a length, 0 for samples");
    case ARGP_KEY_ARG:
        if (o->file.p)
            return cli_usage(state, "one volume was expected");
        o->file = str_from(argument);
        return 0;
    case ARGP_KEY_END:
        return o->file.p && o->output.p ? 0 : cli_usage(state, "a volume and -o MESH were expected");
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static str report_text(struct cli *cli, const void *report)
{
    const struct report *r = report;
    return str_format(cli->arena, "%.*s: %" PRId64 " triangles, %" PRId64 " vertices at level %g, %s\n",
                      STR_ARG(term_safe(cli->arena, r->facts.path)), r->facts.faces, r->facts.vertices,
                      r->level, r->facts.border_edges ? "open" : "closed");
}

static json_t *report_json(struct cli *cli, const void *report)
{
    const struct report *r = report;
    json_t *object = json_object();
    json_object_set_new(object, "file", json_str(r->facts.path));
    json_object_set_new(object, "level", json_real(r->level));
    json_object_set_new(object, "vertices", json_integer(r->facts.vertices));
    json_object_set_new(object, "faces", json_integer(r->facts.faces));
    json_object_set_new(object, "closed", json_boolean(!r->facts.border_edges));
    json_object_set_new(object, "findings", json_findings(cli->findings));
    return object;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct options o = {.extract = {.size = 2}};
    if (!cli_parse(cli, parse, argc, argv, &o))
        return EXIT_USAGE;
    struct report report = {0};
    fel_asset *asset = model_extract(cli->arena, o.file, &o.extract, &report.level, cli->findings);
    if (asset && model_examine(cli->arena, o.output, asset, &report.facts, cli->findings)) {
        if (fel_asset_write(str_c(cli->arena, o.output), asset, NULL))
            (void)finding_fatal(cli->findings, EXIT_INPUT, F004, (struct place){.file = o.output}, "%s",
                                fel_last_error());
        else
            cli_report(cli, "felloe.extract/1", &report, report_text, report_json);
    }
    model_extract_free(asset);
    return cli_finish(cli);
}

static const struct argp_option OPTIONS[] = {
    {"output", 'o', "MESH", 0, "Where the mesh goes: .glb, .obj, .ply or .stl", 0},
    {"level", 'l', "VALUE", 0, "The surface lies where the field has this value (0)", 0},
    {"inside", 'i', "SIDE", 0, "above or below the level; without it, whichever the volume's border is not",
     0},
    {"closed", 'c', NULL, 0, "Close the surface where it meets the volume's border", 0},
    {"keep-axes", 'k', NULL, 0, "Leave axis 0 as z; without it, what points along axis 0 points up (y)", 0},
    {"size", 'z', "LENGTH", 0, "The volume's longest side afterwards, centred (2); 0 for samples", 0},
    {0},
};

const struct command COMMAND_EXTRACT = {
    .name = "extract",
    .summary = "Make a mesh from a volume: marching cubes, normals, a file that opens",
    .description = "Reads a NumPy .npy file of three axes (z, y, x): a signed distance, a density, an "
                   "occupancy. The mesh is "
                   "closed and manifold where the surface does not leave the volume, has normals, and is "
                   "turned and scaled "
                   "for viewers.",
    .arguments = "VOLUME.npy",
    .options = OPTIONS,
    .examples = "felloe extract field.npy -o mesh.glb\nfelloe extract density.npy --level 25 --inside above "
                "-o mesh.ply",
    .exit_codes =
        "0 written, 1 written with findings of severity error, or no surface, 2 usage, 3 unreadable input",
    .run = run,
};
