/* raster/antialias.c: fel_antialias, its gradient, and the topology that both read. */
#include "antialias_math.h"
#include "raster.h"

/* ---- topology ---- */

static unsigned long long slots_for(int64_t items, int64_t per_item)
{
    unsigned long long slots = 64;
    while (slots < (unsigned long long)items * (unsigned long long)per_item)
        slots *= 2;
    return slots;
}

static void weld_enter_range(const void *arg, int64_t first, int64_t last)
{
    const struct weld_args *args = arg;
    for (int64_t v = first; v < last; v++)
        weld_enter(args, v);
}

static void weld_read_range(const void *arg, int64_t first, int64_t last)
{
    const struct weld_args *args = arg;
    for (int64_t v = first; v < last; v++)
        weld_read(args, v);
}

static void topology_enter_range(const void *arg, int64_t first, int64_t last)
{
    const struct topology_args *args = arg;
    for (int64_t h = first; h < last; h++)
        topology_enter(args, h);
}

static void topology_close_range(const void *arg, int64_t first, int64_t last)
{
    const struct topology_args *args = arg;
    for (int64_t h = first; h < last; h++)
        topology_close(args, h);
}

static void none_range(const void *arg, int64_t first, int64_t last)
{
    const struct fill_args *args = arg;
    for (int64_t k = first; k < last; k++)
        args->words[k] = TOPOLOGY_NONE;
}

static fel_status fill_none(fel_context *ctx, unsigned *slots, unsigned long long count)
{
    const struct fill_args args = {.words = slots, .count = (long long)count, .value = TOPOLOGY_NONE};
    if (!context_on_cuda(ctx))
        return pool_for(ctx, (int64_t)count, 1 << 16, none_range, &args);
    return device_launch(ctx, &RASTER_MODULE, "raster_fill", grid_1d((int64_t)count / 16 + 1, FLAT_BLOCK),
                         &args, sizeof args);
}

/* Two passes over the same arguments, the second after all of the first. */
struct two_passes {
    int64_t items;
    void (*range[2])(const void *arg, int64_t first, int64_t last);
    const char *kernel[2];
};

static fel_status run_passes(fel_context *ctx, const struct two_passes *p, const void *args, size_t size)
{
    fel_status status = FEL_OK;
    for (int k = 0; k < 2 && !status; k++)
        status = context_on_cuda(ctx) ? device_launch(ctx, &RASTER_MODULE, p->kernel[k],
                                                      grid_1d(p->items, FLAT_BLOCK), args, size)
                                      : pool_for(ctx, p->items, 1024, p->range[k], args);
    return status;
}

fel_status fel_weld(fel_context *ctx, const DLTensor *positions, DLTensor *weld)
{
    const struct tensor_rule rules[] = {{"positions", positions, F32, "v 4"}, {"weld", weld, I32, "v"}};
    struct dims n = {{0}};
    fel_status status = raster_expect(ctx, rules, 2, &n);
    if (status)
        return status;
    if (n.of['v'] > INT32_MAX)
        return status_fail(FEL_INVALID_SHAPE, "positions: expected at most %d vertices, got %lld", INT32_MAX,
                           (long long)n.of['v']);
    const unsigned long long slots = slots_for(n.of['v'], 2);
    struct scratch scratch = scratch_begin(ctx);
    const struct weld_args args = {.positions = tensor_data(positions),
                                   .weld = tensor_data(weld),
                                   .slots = scratch_array(&scratch, unsigned, (size_t)slots),
                                   .mask = slots - 1,
                                   .vertex_count = n.of['v']};
    const struct two_passes passes = {
        n.of['v'], {weld_enter_range, weld_read_range}, {"raster_weld_enter", "raster_weld_read"}};
    status = args.slots ? fill_none(ctx, args.slots, slots) : FEL_OUT_OF_MEMORY;
    if (!status)
        status = run_passes(ctx, &passes, &args, sizeof args);
    scratch_end(&scratch);
    return status;
}

fel_status fel_antialias_topology(fel_context *ctx, const DLTensor *triangles, const DLTensor *weld,
                                  DLTensor *topology)
{
    const struct tensor_rule rules[] = {
        {"triangles", triangles, I32, "f 3"}, {"topology", topology, I32, "f 3"}, {"weld", weld, I32, "v"}};
    struct dims n = {{0}};
    fel_status status = raster_expect(ctx, rules, weld ? 3 : 2, &n);
    if (status)
        return status;
    if (n.of['f'] > ID_LAST)
        return status_fail(FEL_INVALID_SHAPE, "triangles: expected at most %d, got %lld", ID_LAST,
                           (long long)n.of['f']);
    const unsigned long long slots = slots_for(n.of['f'], 4);
    struct scratch scratch = scratch_begin(ctx);
    const struct topology_args args = {.triangles = tensor_data(triangles),
                                       .weld = weld ? tensor_data(weld) : NULL,
                                       .next = tensor_data(topology),
                                       .slots = scratch_array(&scratch, unsigned, (size_t)slots),
                                       .mask = slots - 1,
                                       .face_count = n.of['f'],
                                       .weld_count = weld ? n.of['v'] : 0};
    const struct two_passes passes = {3 * n.of['f'],
                                      {topology_enter_range, topology_close_range},
                                      {"raster_topology_enter", "raster_topology_close"}};
    status = args.slots ? fill_none(ctx, args.slots, slots) : FEL_OUT_OF_MEMORY;
    if (!status)
        status = run_passes(ctx, &passes, &args, sizeof args);
    scratch_end(&scratch);
    return status;
}

/* ---- blending ---- */

enum { STRIP = 256, ROWS = 16 /* columns and rows that a thread works on at a time */ };

static bool pixels_differ(const struct antialias_args *a, long long first, long long second)
{
    return a->rast[4 * first + 3] != a->rast[4 * second + 3];
}

/* Blend of a pixel with its right or upper neighbour; with gradients, the pair's share goes to the positions. */
static float examine(const struct antialias_args *a, int image, int i, int j, int vertical, bool gradients)
{
    if (i < 0 || i + vertical >= a->height || j + !vertical >= a->width)
        return 0.0F;
    const long long first = ((long long)image * a->height + i) * a->width + j;
    const long long second = first + (vertical ? a->width : 1);
    if (!pixels_differ(a, first, second)) /* nearly always */
        return 0.0F;
    const struct antialias_pair pair = antialias_examine(a, first, second, i, j, image, vertical);
    if (gradients)
        antialias_position_gradient(a, &pair, first, second, image, vertical);
    return pair.blend;
}

/* One image row of a strip. upper holds the blends with the row below, and then those with the row above. */
static void strip_row(const struct antialias_args *a, int image, int i, int j_first, int j_last,
                      bool backward, float *upper)
{
    const float *from = backward ? a->grad_out : a->color;
    float *to = backward ? a->grad_color : a->out;
    const bool gradients = backward && a->grad.sum;
    const long long row = (long long)a->width * a->channels;
    float left = j_first ? examine(a, image, i, j_first - 1, 0, false) : 0.0F;
    for (int j = j_first; j < j_last; j++) {
        const struct antialias_shares s = {left, examine(a, image, i, j, 0, gradients), upper[j - j_first],
                                           examine(a, image, i, j, 1, gradients)};
        const long long at = (((long long)image * a->height + i) * a->width + j) * a->channels;
        left = s.right;
        upper[j - j_first] = s.upper;
        if (!to)
            continue;
        if (s.left == 0.0F && s.right == 0.0F && s.lower == 0.0F && s.upper == 0.0F) {
            for (int c = 0; c < a->channels; c++)
                to[at + c] = from[at + c];
            continue;
        }
        for (int c = 0; c < a->channels; c++)
            to[at + c] = backward ? antialias_blend_gradient(from + at + c, a->channels, row, s)
                                  : antialias_blend(from + at + c, a->channels, row, s);
    }
}

/* Rows first .. last of all images, strip by strip, so that no vertical pair but the first of a strip is examined twice. */
static void strips(const struct antialias_args *a, int64_t first, int64_t last, bool backward)
{
    float upper[STRIP];
    for (int j = 0; j < a->width; j += STRIP) {
        const int j_last = a->width - j < STRIP ? a->width : j + STRIP;
        for (int64_t row = first; row < last; row++) {
            const int image = (int)(row / a->height), i = (int)(row % a->height);
            for (int k = j; (row == first || i == 0) && k < j_last; k++)
                upper[k - j] = examine(a, image, i - 1, k, 1, false);
            strip_row(a, image, i, j, j_last, backward, upper);
        }
    }
}

static void antialias_rows(const void *arg, int64_t first, int64_t last) { strips(arg, first, last, false); }

static void gradient_rows(const void *arg, int64_t first, int64_t last) { strips(arg, first, last, true); }

static fel_status antialias_read(fel_context *ctx, const struct tensor_rule *rules, size_t count, bool shared,
                                 struct antialias_args *args, struct dims *n)
{
    const fel_status status = raster_expect(ctx, rules, count, n);
    if (status)
        return status;
    if (n->of['h'] > INT32_MAX / 2 || n->of['w'] > INT32_MAX / 2 || n->of['c'] > INT32_MAX)
        return status_fail(FEL_INVALID_SHAPE,
                           "color: expected sides and channels below 2^30, got %lld x %lld x %lld",
                           (long long)n->of['h'], (long long)n->of['w'], (long long)n->of['c']);
    *args = (struct antialias_args){
        .color = tensor_data(rules[0].tensor),
        .rast = tensor_data(rules[1].tensor),
        .positions = tensor_data(rules[2].tensor),
        .triangles = tensor_data(rules[3].tensor),
        .next = tensor_data(rules[4].tensor),
        .vertex_count = n->of['v'],
        .face_count = n->of['f'],
        .image_vertices = shared ? 0 : n->of['v'],
        .pixel_count = n->of['n'] * n->of['h'] * n->of['w'],
        .width = (int)n->of['w'],
        .height = (int)n->of['h'],
        .channels = (int)n->of['c'],
        .boost = 1.0F,
    };
    return FEL_OK;
}

fel_status fel_antialias(fel_context *ctx, const DLTensor *color, const DLTensor *rast,
                         const DLTensor *positions, const DLTensor *triangles, const DLTensor *topology,
                         DLTensor *out)
{
    const bool shared = positions && positions->ndim == 2;
    const struct tensor_rule rules[] = {{"color", color, F32, "n h w c"},
                                        {"rast", rast, F32, "n h w 4"},
                                        {"positions", positions, F32, shared ? "v 4" : "n v 4"},
                                        {"triangles", triangles, I32, "f 3"},
                                        {"topology", topology, I32, "f 3"},
                                        {"out", out, F32, "n h w c"}};
    struct antialias_args args = {.pixel_count = 0};
    struct dims n = {{0}};
    const fel_status status = antialias_read(ctx, rules, 6, shared, &args, &n);
    if (status)
        return status;
    args.out = tensor_data(out);
    if (!args.pixel_count)
        return FEL_OK;
    if (!context_on_cuda(ctx))
        return pool_for(ctx, n.of['n'] * n.of['h'], ROWS, antialias_rows, &args);
    return device_launch(ctx, &RASTER_MODULE, "raster_antialias",
                         pair_launch(args.width, args.height, n.of['n']), &args, sizeof args);
}

static fel_status gradient_run(fel_context *ctx, const void *arg)
{
    const struct antialias_args *args = arg;
    if (!args->pixel_count)
        return FEL_OK;
    const int64_t rows = args->pixel_count / args->width;
    if (!context_on_cuda(ctx))
        return pool_for(ctx, rows, ROWS, gradient_rows, args);
    return device_launch(ctx, &RASTER_MODULE, "raster_antialias_backward",
                         pair_launch(args->width, args->height, rows / args->height), args, sizeof *args);
}

fel_status fel_antialias_backward(fel_context *ctx, const DLTensor *color, const DLTensor *rast,
                                  const DLTensor *positions, const DLTensor *triangles,
                                  const DLTensor *topology, const DLTensor *grad_out, float boost,
                                  unsigned flags, DLTensor *grad_color, DLTensor *grad_positions)
{
    const bool shared = positions && positions->ndim == 2;
    struct tensor_rule rules[8] = {{"color", color, F32, "n h w c"},
                                   {"rast", rast, F32, "n h w 4"},
                                   {"positions", positions, F32, shared ? "v 4" : "n v 4"},
                                   {"triangles", triangles, I32, "f 3"},
                                   {"topology", topology, I32, "f 3"},
                                   {"grad_out", grad_out, F32, "n h w c"}};
    size_t count = 6;
    struct antialias_args args = {.pixel_count = 0};
    struct dims n = {{0}};
    if (grad_color)
        rules[count++] = (struct tensor_rule){"grad_color", grad_color, F32, "n h w c"};
    if (grad_positions)
        rules[count++] =
            (struct tensor_rule){"grad_positions", grad_positions, F32, shared ? "v 4" : "n v 4"};
    const fel_status status = antialias_read(ctx, rules, count, shared, &args, &n);
    if (status)
        return status;
    args.grad_out = tensor_data(grad_out);
    args.grad_color = grad_color ? tensor_data(grad_color) : NULL;
    args.boost = boost;
    struct sink_list sinks = {.count = 0};
    if (grad_positions) {
        args.grad.sum = tensor_data(grad_positions);
        sinks.sink[0] = &args.grad;
        sinks.elements[0] = 4 * n.of['v'] * (shared ? 1 : n.of['n']);
        sinks.count = 1;
    }
    return raster_accumulate(ctx, flags, &sinks, gradient_run, &args);
}
