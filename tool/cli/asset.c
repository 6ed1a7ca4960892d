/* 'felloe asset': what is in a mesh or splat file, and what is wrong with it. */
#include "model/model.h"

#include "cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

struct options {
    struct strs files;
    str output;
    int32_t orientation;
    struct cli *cli;
};

struct report {
    struct model_facts *files;
    fel_asset **assets; /* of the files */
    size_t count;
};

static str facts_text(arena *a, const struct model_facts *x)
{
    struct buf b = {.a = a};
    const fel_asset *asset = x->asset;
    buf_format(&b, "%.*s: %.*s", STR_ARG(term_safe(a, x->path)), STR_ARG(x->format));
    if (x->gaussians)
        buf_format(&b, ", %" PRId64 " gaussians of degree %d", x->gaussians, asset->gaussians->sh_degree);
    else
        buf_format(&b, ", %" PRId64 " triangles, %" PRId64 " vertices, %" PRId64 " mesh%s", x->faces,
                   x->vertices, asset->mesh_count, asset->mesh_count == 1 ? "" : "es");
    buf_format(&b, "\n  bounds    %.6g %.6g %.6g to %.6g %.6g %.6g\n", (double)x->low[0], (double)x->low[1],
               (double)x->low[2], (double)x->high[0], (double)x->high[1], (double)x->high[2]);
    if (x->gaussians)
        return buf_str(&b);
    buf_format(&b, "  has       %s%s%s%s\n", x->has_normals ? "normals " : "",
               x->has_uvs ? "texture coordinates " : "", x->has_colors ? "colours " : "",
               x->has_normals || x->has_uvs || x->has_colors ? "" : "positions only");
    if (asset->material_count || asset->picture_count)
        buf_format(&b, "  materials %" PRId64 ", pictures %" PRId64 "\n", asset->material_count,
                   asset->picture_count);
    if (x->border_edges)
        buf_format(&b, "  surface   area %.6g, open: %" PRId64 " border edges\n", x->area, x->border_edges);
    else
        buf_format(&b, "  surface   area %.6g, closed: volume %.6g\n", x->area, x->volume);
    return buf_str(&b);
}

static str report_text(struct cli *cli, const void *report)
{
    const struct report *r = report;
    struct buf b = {.a = cli->arena};
    for (size_t i = 0; i < r->count; i++)
        buf_add(&b, facts_text(cli->arena, r->files + i));
    return buf_str(&b);
}

static json_t *facts_json(const struct model_facts *x)
{
    json_t *object = json_object();
    json_object_set_new(object, "file", json_str(x->path));
    json_object_set_new(object, "format", json_str(x->format));
    json_object_set_new(object, "meshes", json_integer(x->asset->mesh_count));
    json_object_set_new(object, "vertices", json_integer(x->vertices));
    json_object_set_new(object, "faces", json_integer(x->faces));
    json_object_set_new(object, "gaussians", json_integer(x->gaussians));
    json_object_set_new(object, "materials", json_integer(x->asset->material_count));
    json_object_set_new(object, "pictures", json_integer(x->asset->picture_count));
    json_object_set_new(object, "normals", json_boolean(x->has_normals));
    json_object_set_new(object, "uvs", json_boolean(x->has_uvs));
    json_object_set_new(object, "colors", json_boolean(x->has_colors));
    json_object_set_new(object, "low",
                        json_pack("[f,f,f]", (double)x->low[0], (double)x->low[1], (double)x->low[2]));
    json_object_set_new(object, "high",
                        json_pack("[f,f,f]", (double)x->high[0], (double)x->high[1], (double)x->high[2]));
    json_object_set_new(object, "border_edges", json_integer(x->border_edges));
    json_object_set_new(object, "shared_edges", json_integer(x->shared_edges));
    json_object_set_new(object, "flat_faces", json_integer(x->flat_faces));
    json_object_set_new(object, "area", json_real(x->area));
    json_object_set_new(object, "volume", x->border_edges ? json_null() : json_real(x->volume));
    return object;
}

static json_t *report_json(struct cli *cli, const void *report)
{
    const struct report *r = report;
    json_t *object = json_object(), *files = json_array();
    for (size_t i = 0; i < r->count; i++)
        json_array_append_new(files, facts_json(r->files + i));
    json_object_set_new(object, "files", files);
    json_object_set_new(object, "findings", json_findings(cli->findings));
    return object;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    static const char *const turns[] = {"keep", "z-up-to-y-up", "y-up-to-z-up", "x-front-to-gltf",
                                        "turn-round"};
    struct options *o = state->input;
    switch (key) {
    case 'o':
        o->output = str_from(argument);
        return 0;
    case 'T':
        for (size_t i = 0; i < COUNT(turns); i++) {
            if (!strcmp(argument, turns[i])) {
                o->orientation = (int32_t)i;
                return 0;
            }
        }
        return cli_usage(state, "--turn: expected z-up-to-y-up, y-up-to-z-up, x-front-to-gltf or turn-round");
    case ARGP_KEY_ARG:
        return strs_add(o->cli->arena, &o->files, str_from(argument)) ? 0 : ENOMEM;
    case ARGP_KEY_END:
        if (!o->files.count)
            return cli_usage(state, "a file was expected");
        return o->output.p && o->files.count > 1 ? cli_usage(state, "-o takes one file") : 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct options o = {.cli = cli};
    if (!cli_parse(cli, parse, argc, argv, &o))
        return EXIT_USAGE;
    struct report report = {.files = arena_array(cli->arena, struct model_facts, o.files.count),
                            .assets = arena_array(cli->arena, fel_asset *, o.files.count)};
    for (size_t i = 0; i < o.files.count && report.files && report.assets; i++) {
        fel_asset *asset = model_open(cli->arena, o.files.items[i], cli->findings);
        if (!asset ||
            !model_examine(cli->arena, o.files.items[i], asset, report.files + report.count, cli->findings)) {
            fel_asset_free(asset);
            continue;
        }
        report.assets[report.count++] = asset;
        const struct fel_asset_options write = {.size = sizeof write, .orientation = o.orientation};
        if (o.output.p && fel_asset_write(str_c(cli->arena, o.output), asset, &write))
            (void)finding_fatal(cli->findings, EXIT_INPUT, F004, (struct place){.file = o.output}, "%s",
                                fel_last_error());
    }
    findings_sort(cli->findings);
    cli_report(cli, "felloe.asset/1", &report, report_text, report_json);
    for (size_t i = 0; i < report.count; i++)
        fel_asset_free(report.assets[i]);
    return cli_finish(cli);
}

static const struct argp_option OPTIONS[] = {
    {"output", 'o', "FILE", 0, "Write it again in FILE's format: .glb, .obj, .ply, .stl or .splat", 0},
    {"turn", 'T', "HOW", 0, "With -o: z-up-to-y-up, y-up-to-z-up, x-front-to-gltf or turn-round", 0},
    {0},
};

const struct command COMMAND_ASSET = {
    .name = "asset",
    .summary = "Say what is in a mesh or splat file, and what is wrong with it",
    .description =
        "Reads GLB, OBJ, PLY (meshes and gaussians), STL and .splat, counts what is in them, and looks for "
        "what "
        "goes wrong between a model and a viewer: nothing in it, NaN, surfaces inside out, no normals, "
        "missing textures, edges with too many faces, objects lying on their side.\n\n"
        "With -o the asset is written again, in another format or turned.",
    .arguments = "FILE...",
    .options = OPTIONS,
    .examples = "felloe asset result.glb\nfelloe asset scan.ply -o scan.glb --turn z-up-to-y-up",
    .exit_codes = "0 no errors found, 1 findings of severity error, 2 usage, 3 unreadable or malformed input",
    .run = run,
};
