/* raster/interpolate.c: fel_interpolate and its gradient. */
#include "interpolate_math.h"
#include "raster.h"

struct interpolate_tensors {
    const DLTensor *attributes, *rast, *triangles, *rast_db, *selected, *out, *out_da;
    const char *out_name, *out_da_name;
};

/* Adds the forward call's tensors to rules; returns how many there are. */
static size_t interpolate_rules(const struct interpolate_tensors *t, struct tensor_rule *rules)
{
    size_t count = 0;
    const int rank = t->attributes ? t->attributes->ndim : 3;
    const bool one = rank == 3 && t->attributes && t->attributes->shape[0] == 1;
    rules[count++] = (struct tensor_rule){"attributes", t->attributes, F32,
                                          rank == 2 ? "v a"
                                          : one     ? "1 v a"
                                                    : "n v a"};
    rules[count++] = (struct tensor_rule){"rast", t->rast, F32, "n h w 4"};
    rules[count++] = (struct tensor_rule){"triangles", t->triangles, I32, "f 3"};
    rules[count++] = (struct tensor_rule){t->out_name, t->out, F32, "n h w a"};
    if (t->selected)
        rules[count++] = (struct tensor_rule){"selected", t->selected, I32, "s"};
    if (t->rast_db)
        rules[count++] = (struct tensor_rule){"rast_db", t->rast_db, F32, "n h w 4"};
    if (t->out_da)
        rules[count++] = (struct tensor_rule){t->out_da_name, t->out_da, F32, "n h w d"};
    return count;
}

static fel_status interpolate_read(fel_context *ctx, const struct interpolate_tensors *t,
                                   struct tensor_rule *rules, size_t count, struct interpolate_args *args,
                                   struct dims *n)
{
    if (t->out_da && !t->rast_db)
        return status_fail(FEL_INVALID_ARGUMENT, "rast_db: expected a tensor, since %s is one, got NULL",
                           t->out_da_name);
    const fel_status status = raster_expect(ctx, rules, count, n);
    if (status)
        return status;
    const int64_t selected = !t->out_da ? 0 : t->selected ? n->of['s'] : n->of['a'];
    if (t->out_da && n->of['d'] != 2 * selected)
        return status_fail(FEL_INVALID_SHAPE,
                           "%s: expected float32 [n, h, w, %lld], two for each selected attribute, got %lld",
                           t->out_da_name, 2 * (long long)selected, (long long)n->of['d']);
    if (n->of['a'] > INT32_MAX / 2 || selected > INT32_MAX / 2)
        return status_fail(FEL_INVALID_SHAPE, "attributes: expected at most %d channels, got %lld",
                           INT32_MAX / 2, (long long)n->of['a']);
    const bool shared = t->attributes->ndim == 2 || t->attributes->shape[0] == 1;
    *args = (struct interpolate_args){
        .attributes = tensor_data(t->attributes),
        .rast = tensor_data(t->rast),
        .rast_db = t->rast_db ? tensor_data(t->rast_db) : NULL,
        .triangles = tensor_data(t->triangles),
        .selected = t->selected && t->out_da ? tensor_data(t->selected) : NULL,
        .vertex_count = n->of['v'],
        .face_count = n->of['f'],
        .pixel_count = n->of['n'] * n->of['h'] * n->of['w'],
        .image_pixels = n->of['h'] * n->of['w'],
        .image_attributes = shared ? 0 : n->of['v'] * n->of['a'],
        .attribute_count = (int)n->of['a'],
        .selected_count = (int)selected,
        .width = (int)n->of['w'],
    };
    return FEL_OK;
}

static void interpolate_range(const void *arg, int64_t first, int64_t last)
{
    const struct interpolate_args *args = arg;
    for (int64_t pixel = first; pixel < last; pixel++)
        interpolate_pixel(args, pixel);
}

fel_status fel_interpolate(fel_context *ctx, const DLTensor *attributes, const DLTensor *rast,
                           const DLTensor *triangles, const DLTensor *rast_db, const DLTensor *selected,
                           DLTensor *out, DLTensor *out_da)
{
    const struct interpolate_tensors t = {attributes, rast,   triangles, rast_db, selected,
                                          out,        out_da, "out",     "out_da"};
    struct tensor_rule rules[8];
    struct interpolate_args args = {.pixel_count = 0};
    struct dims n = {{0}};
    const fel_status status = interpolate_read(ctx, &t, rules, interpolate_rules(&t, rules), &args, &n);
    if (status)
        return status;
    args.out = tensor_data(out);
    args.out_da = out_da ? tensor_data(out_da) : NULL;
    if (!context_on_cuda(ctx))
        return pool_for(ctx, args.pixel_count, 1024, interpolate_range, &args);
    return device_launch(ctx, &RASTER_MODULE, "raster_interpolate", grid_1d(args.pixel_count, FLAT_BLOCK),
                         &args, sizeof args);
}

static void gradient_range(const void *arg, int64_t first, int64_t last)
{
    const struct interpolate_args *args = arg;
    for (int64_t pixel = first; pixel < last; pixel++)
        interpolate_gradient(args, pixel);
}

static fel_status gradient_run(fel_context *ctx, const void *arg)
{
    const struct interpolate_args *args = arg;
    if (!context_on_cuda(ctx))
        return pool_for(ctx, args->pixel_count, 1024, gradient_range, args);
    const bool few = args->attribute_count >= 1 && args->attribute_count <= 4 && !args->selected &&
                     args->grad.mode == SINK_SUM && args->image_pixels;
    if (few)
        return device_launch(ctx, &RASTER_MODULE, "raster_interpolate_backward_few",
                             tile_launch(args->width, (int)(args->image_pixels / args->width),
                                         args->pixel_count / args->image_pixels),
                             args, sizeof *args);
    return device_launch(ctx, &RASTER_MODULE, "raster_interpolate_backward",
                         grid_1d(args->pixel_count, FLAT_BLOCK), args, sizeof *args);
}

fel_status fel_interpolate_backward(fel_context *ctx, const DLTensor *attributes, const DLTensor *rast,
                                    const DLTensor *triangles, const DLTensor *rast_db,
                                    const DLTensor *selected, const DLTensor *grad_out,
                                    const DLTensor *grad_out_da, unsigned flags, DLTensor *grad_attributes,
                                    DLTensor *grad_rast, DLTensor *grad_rast_db)
{
    const struct interpolate_tensors t = {attributes, rast,        triangles,  rast_db,      selected,
                                          grad_out,   grad_out_da, "grad_out", "grad_out_da"};
    struct tensor_rule rules[12];
    struct interpolate_args args = {.pixel_count = 0};
    struct dims n = {{0}};
    size_t count = interpolate_rules(&t, rules);
    if (grad_attributes)
        rules[count++] = (struct tensor_rule){"grad_attributes", grad_attributes, F32, rules[0].shape};
    if (grad_rast)
        rules[count++] = (struct tensor_rule){"grad_rast", grad_rast, F32, "n h w 4"};
    if (grad_rast_db)
        rules[count++] = (struct tensor_rule){"grad_rast_db", grad_rast_db, F32, "n h w 4"};
    const fel_status status = interpolate_read(ctx, &t, rules, count, &args, &n);
    if (status)
        return status;
    args.grad_out = tensor_data(grad_out);
    args.grad_out_da = grad_out_da ? tensor_data(grad_out_da) : NULL;
    args.grad_rast = grad_rast ? tensor_data(grad_rast) : NULL;
    args.grad_rast_db = grad_rast_db ? tensor_data(grad_rast_db) : NULL;
    struct sink_list sinks = {.count = 0};
    if (grad_attributes) {
        args.grad.sum = tensor_data(grad_attributes);
        sinks.sink[0] = &args.grad;
        sinks.elements[0] = n.of['v'] * n.of['a'] * (args.image_attributes ? n.of['n'] : 1);
        sinks.count = 1;
    }
    return raster_accumulate(ctx, flags, &sinks, gradient_run, &args);
}
