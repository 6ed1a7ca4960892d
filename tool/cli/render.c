/* 'felloe render': a picture of a mesh or splat file. */
#include "model/model.h"

#include "cli/cli.h"

#include <stdlib.h>

struct options {
    str file, output;
    struct render_options render;
};

static bool number(const char *text, double low, double high, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end != text && !*end && *value >= low && *value <= high;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct options *o = state->input;
    double value;
    switch (key) {
    case 'o':
        o->output = str_from(argument);
        return 0;
    case 's':
        if (!number(argument, 16, 4096, &value))
            return cli_usage(state, "--size: expected 16 to 4096 pixels");
        o->render.width = o->render.height = (int)value;
        return 0;
    case 't':
        if (!number(argument, 2, 360, &value))
            return cli_usage(state, "--turntable: expected 2 to 360 frames");
        o->render.frames = (int)value;
        return 0;
    case 'g':
        o->render.grid = true;
        return 0;
    case 'y':
        return number(argument, -360, 360, &o->render.yaw)
                   ? 0
                   : cli_usage(state, "--yaw: expected -360 to 360 degrees");
    case 'p':
        return number(argument, -89, 89, &o->render.pitch)
                   ? 0
                   : cli_usage(state, "--pitch: expected -89 to 89 degrees");
    case ARGP_KEY_ARG:
        if (o->file.p)
            return cli_usage(state, "one file was expected");
        o->file = str_from(argument);
        return 0;
    case ARGP_KEY_END:
        if (!o->file.p || !o->output.p)
            return cli_usage(state, "a file and -o PICTURE were expected");
        return str_ends(o->output, S(".png")) ? 0 : cli_usage(state, "-o: expected a name ending in .png");
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct options o = {
        .render = {.width = 768, .height = 768, .frames = 1, .yaw = 30, .pitch = 20, .delay_ms = 60}};
    if (!cli_parse(cli, parse, argc, argv, &o))
        return EXIT_USAGE;
    if (o.render.grid && o.render.frames == 1)
        o.render.frames = 9;
    interrupts_catch();
    fel_asset *asset = model_open(cli->arena, o.file, cli->findings);
    struct model_facts facts;
    span png;
    if (asset && model_examine(cli->arena, o.file, asset, &facts, cli->findings) &&
        model_render(cli->arena, o.file, asset, &o.render, &png, cli->findings))
        (void)file_write(o.output, png, cli->findings);
    fel_asset_free(asset);
    findings_sort(cli->findings);
    return cli_finish(cli);
}

static const struct argp_option OPTIONS[] = {
    {"output", 'o', "PICTURE.png", 0, "Where the picture goes", 0},
    {"size", 's', "PIXELS", 0, "Width and height of a picture (768)", 0},
    {"turntable", 't', "N", 0, "N frames once round: an animated PNG", 0},
    {"grid", 'g', NULL, 0, "Frames side by side in one picture (9, or --turntable N)", 0},
    {"yaw", 'y', "DEGREES", 0, "From which side (30)", 0},
    {"pitch", 'p', "DEGREES", 0, "From how high (20)", 0},
    {0},
};

const struct command COMMAND_RENDER = {
    .name = "render",
    .summary = "Draw a mesh or splat file, to look at it before it ships",
    .description =
        "A lit picture with the material's colour and PNG texture, drawn on the CPU. Gaussians are drawn as "
        "round "
        "discs, which shows what is there, not how a viewer blends it. Findings are those of 'felloe asset'.",
    .arguments = "FILE",
    .options = OPTIONS,
    .examples = "felloe render result.glb -o result.png\nfelloe render result.glb -o round.png --turntable "
                "36 --size 384\n"
                "felloe render result.glb -o sheet.png --grid",
    .exit_codes =
        "0 drawn, 1 drawn with findings of severity error, 2 usage, 3 unreadable or malformed input",
    .run = run,
};
