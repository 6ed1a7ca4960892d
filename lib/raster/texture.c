/* raster/texture.c: fel_texture, its mip levels, and their gradients. */
#include "raster.h"
#include "texture_math.h"

#include <stdio.h>

enum { MAX_TEXTURE_SIDE = 65536 };

static int64_t halved(int64_t side, int levels)
{
    side >>= levels;
    return side ? side : 1;
}

fel_status fel_texture_level_count(int64_t height, int64_t width, int max_levels, int *count)
{
    if (!count)
        return status_fail(FEL_INVALID_ARGUMENT, "count: expected a pointer, got NULL");
    if (height < 1 || width < 1 || height > MAX_TEXTURE_SIDE || width > MAX_TEXTURE_SIDE)
        return status_fail(FEL_INVALID_SHAPE, "texture: expected sides of 1 to %d, got %lld x %lld",
                           MAX_TEXTURE_SIDE, (long long)height, (long long)width);
    const int64_t base_height = height, base_width = width;
    int levels = 0;
    while ((height > 1 || width > 1) && (max_levels < 0 || levels < max_levels)) {
        if ((height > 1 && height % 2) || (width > 1 && width % 2))
            return status_fail(
                FEL_INVALID_SHAPE,
                "texture: expected sides that can be halved down to 1, got %lld x %lld, whose level %d is "
                "%lld x %lld; limit the levels to %d",
                (long long)base_height, (long long)base_width, levels, (long long)height, (long long)width,
                levels);
        height = height > 1 ? height / 2 : 1;
        width = width > 1 ? width / 2 : 1;
        levels++;
    }
    *count = levels;
    return FEL_OK;
}

/* ---- shapes ---- */

struct texture_shape {
    int64_t images; /* batch, times 6 for a cube */
    int64_t height, width, channels, batch;
    bool cube;
};

static fel_status read_shape(const DLTensor *texture, bool cube, struct texture_shape *shape)
{
    const int64_t *s = texture->shape;
    *shape = (struct texture_shape){.batch = s[0], .cube = cube};
    shape->images = cube ? 6 * s[0] : s[0];
    shape->height = s[cube ? 2 : 1];
    shape->width = s[cube ? 3 : 2];
    shape->channels = s[cube ? 4 : 3];
    if (shape->height < 1 || shape->width < 1 || shape->height > MAX_TEXTURE_SIDE ||
        shape->width > MAX_TEXTURE_SIDE)
        return status_fail(FEL_INVALID_SHAPE, "texture: expected sides of 1 to %d, got %lld x %lld",
                           MAX_TEXTURE_SIDE, (long long)shape->height, (long long)shape->width);
    if (shape->channels > INT32_MAX)
        return status_fail(FEL_INVALID_SHAPE, "texture: expected at most %d channels, got %lld", INT32_MAX,
                           (long long)shape->channels);
    return FEL_OK;
}

/* Level k (1 is the first below the base) of the expected shape, on the context's device; name appears in the message. */
static fel_status expect_level(fel_context *ctx, const struct texture_shape *shape, const DLTensor *level,
                               int k, const char *name)
{
    char label[32];
    snprintf(label, sizeof label, "%s[%d]", name, k - 1);
    const struct tensor_rule rule = {label, level, F32, shape->cube ? "n 6 h w c" : "n h w c"};
    struct dims n = {{0}};
    const fel_status status = raster_expect(ctx, &rule, 1, &n);
    if (status)
        return status;
    const int64_t height = halved(shape->height, k), width = halved(shape->width, k);
    if (n.of['n'] != shape->batch || n.of['h'] != height || n.of['w'] != width ||
        n.of['c'] != shape->channels)
        return status_fail(FEL_INVALID_SHAPE,
                           "%s: expected %lld x %lld texels of %lld channels, batch %lld, got %lld x %lld of "
                           "%lld, batch %lld",
                           label, (long long)height, (long long)width, (long long)shape->channels,
                           (long long)shape->batch, (long long)n.of['h'], (long long)n.of['w'],
                           (long long)n.of['c'], (long long)n.of['n']);
    return FEL_OK;
}

static fel_status expect_levels(fel_context *ctx, const struct texture_shape *shape,
                                const DLTensor *const *levels, int count, const char *name, bool may_be_null)
{
    int most = 0;
    while (halved(shape->height, most) > 1 || halved(shape->width, most) > 1)
        most++;
    if (count < 0 || count > most)
        return status_fail(FEL_INVALID_ARGUMENT,
                           "level_count: expected 0 to %d for a texture of %lld x %lld, got %d", most,
                           (long long)shape->height, (long long)shape->width, count);
    if (count && !levels)
        return status_fail(FEL_INVALID_ARGUMENT, "%s: expected %d tensors, got NULL", name, count);
    for (int k = 1; k <= count; k++) {
        if (may_be_null && !levels[k - 1])
            continue;
        const fel_status status = expect_level(ctx, shape, levels[k - 1], k, name);
        if (status)
            return status;
    }
    return FEL_OK;
}

/* ---- mip levels ---- */

static void mip_range(const void *arg, int64_t first, int64_t last)
{
    const struct mip_args *args = arg;
    for (int64_t texel = first; texel < last; texel++)
        mip_reduce(args, texel);
}

static fel_status build_mips(fel_context *ctx, const struct texture_shape *shape, const float *finest,
                             float *const *level, int level_count)
{
    fel_status status = FEL_OK;
    if (!shape->images || !shape->channels)
        return FEL_OK;
    if (!context_on_cuda(ctx)) {
        for (int k = 1; k <= level_count && !status; k++) {
            const struct mip_args args = {.finer = k == 1 ? finest : level[k - 2],
                                          .coarser = level[k - 1],
                                          .images = shape->images,
                                          .width = (int)halved(shape->width, k - 1),
                                          .height = (int)halved(shape->height, k - 1),
                                          .channels = (int)shape->channels};
            status = pool_for(ctx, shape->images * halved(shape->height, k) * halved(shape->width, k), 1024,
                              mip_range, &args);
        }
        return status;
    }
    const int64_t groups = (shape->channels + MIP_CHANNELS - 1) / MIP_CHANNELS;
    const int64_t together = MAX_GRID_Y / groups > 0 ? MAX_GRID_Y / groups : 1; /* images in one launch */
    if (groups > MAX_GRID_Y)
        return status_fail(FEL_INVALID_SHAPE,
                           "texture: expected at most %d channels for mip levels, got %lld",
                           MAX_GRID_Y * MIP_CHANNELS, (long long)shape->channels);
    for (int done = 0; done < level_count && !status; done += MIP_LEVELS) {
        const int count = level_count - done < MIP_LEVELS ? level_count - done : MIP_LEVELS;
        const int64_t width = halved(shape->width, done), height = halved(shape->height, done);
        for (int64_t image = 0; image < shape->images && !status; image += together) {
            const int64_t images = shape->images - image < together ? shape->images - image : together;
            struct mip_stack_args args = {.finest = (done ? level[done - 1] : finest) +
                                                    image * width * height * shape->channels,
                                          .images = images,
                                          .width = (int)width,
                                          .height = (int)height,
                                          .channels = (int)shape->channels,
                                          .channel_groups = (int)groups,
                                          .level_count = count};
            for (int k = 0; k < count; k++)
                args.level[k] = level[done + k] + image * halved(shape->width, done + k + 1) *
                                                      halved(shape->height, done + k + 1) * shape->channels;
            const struct launch launch = {.grid = {(unsigned)((width + 63) / 64),
                                                   (unsigned)((height + 63) / 64),
                                                   (unsigned)(images * groups)},
                                          .block = {MIP_BLOCK, 1, 1}};
            status = device_launch(ctx, &RASTER_MODULE, "raster_mips", launch, &args, sizeof args);
        }
    }
    return status;
}

fel_status fel_texture_mips(fel_context *ctx, const DLTensor *texture, DLTensor *const *levels,
                            int level_count)
{
    const bool cube = texture && texture->ndim == 5;
    const struct tensor_rule rule = {"texture", texture, F32, cube ? "n 6 h w c" : "n h w c"};
    struct dims n = {{0}};
    struct texture_shape shape = {.images = 0};
    fel_status status = raster_expect(ctx, &rule, 1, &n);
    if (!status)
        status = read_shape(texture, cube, &shape);
    if (status)
        return status;
    int count = 0;
    status = fel_texture_level_count(shape.height, shape.width, level_count, &count);
    if (!status)
        status = expect_levels(ctx, &shape, (const DLTensor *const *)levels, level_count, "levels", false);
    if (status)
        return status;
    float *level[FEL_TEXTURE_MAX_LEVELS];
    for (int k = 0; k < level_count; k++)
        level[k] = tensor_data(levels[k]);
    return build_mips(ctx, &shape, tensor_data(texture), level, level_count);
}

/* ---- lookups ---- */

struct texture_tensors {
    const DLTensor *texture;
    const DLTensor *const *levels;
    int level_count;
    const DLTensor *uv, *uv_da, *bias, *out;
    const char *out_name;
    fel_texture_filter filter;
    fel_texture_boundary boundary;
};

static size_t texture_rules(const struct texture_tensors *t, struct tensor_rule *rules)
{
    const bool cube = t->boundary == FEL_BOUNDARY_CUBE;
    const bool one = t->texture && t->texture->ndim > 0 && t->texture->shape[0] == 1;
    const bool mips = t->filter >= FEL_FILTER_LINEAR_MIPMAP_NEAREST;
    size_t count = 0;
    rules[count++] = (struct tensor_rule){
        "texture", t->texture, F32, cube ? (one ? "1 6 H W c" : "n 6 H W c") : (one ? "1 H W c" : "n H W c")};
    rules[count++] = (struct tensor_rule){"uv", t->uv, F32, cube ? "n h w 3" : "n h w 2"};
    rules[count++] = (struct tensor_rule){t->out_name, t->out, F32, "n h w c"};
    if (t->uv_da && mips)
        rules[count++] = (struct tensor_rule){"uv_da", t->uv_da, F32, cube ? "n h w 6" : "n h w 4"};
    if (t->bias && mips)
        rules[count++] = (struct tensor_rule){"bias", t->bias, F32, "n h w"};
    return count;
}

static fel_status texture_read(fel_context *ctx, const struct texture_tensors *t,
                               const struct tensor_rule *rules, size_t count, struct texture_args *args,
                               struct texture_shape *shape, struct dims *n)
{
    if ((unsigned)t->filter > FEL_FILTER_LINEAR_MIPMAP_LINEAR)
        return status_fail(FEL_INVALID_ARGUMENT, "filter: expected a fel_texture_filter, got %d",
                           (int)t->filter);
    if ((unsigned)t->boundary > FEL_BOUNDARY_CUBE)
        return status_fail(FEL_INVALID_ARGUMENT, "boundary: expected a fel_texture_boundary, got %d",
                           (int)t->boundary);
    const bool mips = t->filter >= FEL_FILTER_LINEAR_MIPMAP_NEAREST;
    if (mips && !t->uv_da && !t->bias)
        return status_fail(FEL_INVALID_ARGUMENT,
                           "uv_da: expected uv_da or bias, since the filter is a mipmap one, got NULL");
    fel_status status = raster_expect(ctx, rules, count, n);
    if (!status)
        status = read_shape(t->texture, t->boundary == FEL_BOUNDARY_CUBE, shape);
    if (status)
        return status;
    if (shape->cube && shape->height != shape->width)
        return status_fail(FEL_INVALID_SHAPE, "texture: expected square faces, got %lld x %lld",
                           (long long)shape->height, (long long)shape->width);
    status = expect_levels(ctx, shape, t->levels, t->level_count, "levels", false);
    if (status)
        return status;
    *args = (struct texture_args){
        .uv = tensor_data(t->uv),
        .uv_da = t->uv_da && mips ? tensor_data(t->uv_da) : NULL,
        .bias = t->bias && mips ? tensor_data(t->bias) : NULL,
        .pixel_count = n->of['n'] * n->of['h'] * n->of['w'],
        .image_pixels = n->of['h'] * n->of['w'],
        .level_count = mips ? t->level_count + 1 : 1,
        .channels = (int)shape->channels,
        .filter = (int)t->filter,
        .boundary = (int)t->boundary,
        .width = (int)n->of['w'],
        .shared = shape->batch == 1,
        .grad_stride = (int)shape->channels,
    };
    for (int k = 0; k < args->level_count; k++) {
        args->level[k].texels = tensor_data(k ? t->levels[k - 1] : t->texture);
        args->level[k].width = (int)halved(shape->width, k);
        args->level[k].height = (int)halved(shape->height, k);
    }
    return FEL_OK;
}

/* The kernel for any case, or the one for flat textures of up to four channels and 2^31 floats an image, linear filters,
 * and sums that need no order. */
static fel_status texture_launch(fel_context *ctx, const char *any, const char *flat,
                                 const struct texture_args *args)
{
    if (!args->pixel_count)
        return FEL_OK;
    const int64_t height = args->image_pixels / args->width;
    const bool common = args->channels <= 4 && args->boundary != BOUNDARY_CUBE &&
                        args->filter != FILTER_NEAREST && args->level[0].grad.mode == SINK_SUM &&
                        height <= INT32_MAX &&
                        (int64_t)args->level[0].width * args->level[0].height * args->channels <= INT32_MAX;
    if (!common)
        return device_launch(ctx, &RASTER_MODULE, any, grid_1d(args->pixel_count, FLAT_BLOCK), args,
                             sizeof *args);
    return device_launch(ctx, &RASTER_MODULE, flat,
                         tile_launch(args->width, (int)height, args->pixel_count / args->image_pixels), args,
                         sizeof *args);
}

static void texture_range(const void *arg, int64_t first, int64_t last)
{
    const struct texture_args *args = arg;
    for (int64_t pixel = first; pixel < last; pixel++)
        texture_pixel(args, pixel);
}

fel_status fel_texture(fel_context *ctx, const DLTensor *texture, const DLTensor *const *levels,
                       int level_count, const DLTensor *uv, const DLTensor *uv_da, const DLTensor *bias,
                       fel_texture_filter filter, fel_texture_boundary boundary, DLTensor *out)
{
    const struct texture_tensors t = {texture, levels, level_count, uv,     uv_da,
                                      bias,    out,    "out",       filter, boundary};
    struct tensor_rule rules[8];
    struct texture_args args = {.level_count = 0};
    struct texture_shape shape = {.images = 0};
    struct dims n = {{0}};
    const fel_status status = texture_read(ctx, &t, rules, texture_rules(&t, rules), &args, &shape, &n);
    if (status)
        return status;
    args.out = tensor_data(out);
    if (!context_on_cuda(ctx))
        return pool_for(ctx, args.pixel_count, 1024, texture_range, &args);
    return texture_launch(ctx, "raster_texture", "raster_texture_flat", &args);
}

/* ---- gradients ---- */

static void gradient_range(const void *arg, int64_t first, int64_t last)
{
    const struct texture_args *args = arg;
    for (int64_t pixel = first; pixel < last; pixel++)
        texture_gradient(args, pixel);
}

static fel_status gradient_run(fel_context *ctx, const void *arg)
{
    const struct texture_args *args = arg;
    if (!context_on_cuda(ctx))
        return pool_for(ctx, args->pixel_count, 512, gradient_range, args);
    return texture_launch(ctx, "raster_texture_backward", "raster_texture_backward_flat", args);
}

static void spread_range(const void *arg, int64_t first, int64_t last)
{
    const struct mip_gradient_args *args = arg;
    for (int64_t texel = first; texel < last; texel++)
        mip_spread(args, texel);
}

/* Gradients of all levels into the base's, once they are complete: out is [.., c]; the levels have stride floats a texel. */
static fel_status fold_levels(fel_context *ctx, const struct texture_shape *shape,
                              const struct texture_args *args, float *out)
{
    const int64_t texels = shape->images * shape->height * shape->width;
    if (!texels || !shape->channels)
        return FEL_OK;
    if (context_on_cuda(ctx)) {
        struct mip_fold_args fold = {.base = args->level[0].grad.sum,
                                     .out = out,
                                     .images = shape->images,
                                     .width = (int)shape->width,
                                     .height = (int)shape->height,
                                     .channels = (int)shape->channels,
                                     .stride = args->grad_stride,
                                     .level_count = args->level_count - 1};
        for (int k = 1; k < args->level_count; k++)
            fold.level[k - 1] = args->level[k].grad.sum;
        const int64_t quads = shape->images * ((shape->height + 1) / 2) * ((shape->width + 1) / 2);
        return device_launch(ctx, &RASTER_MODULE, "raster_mips_backward", grid_1d(quads, FLAT_BLOCK), &fold,
                             sizeof fold);
    }
    fel_status status = FEL_OK;
    for (int k = args->level_count - 1; k > 0 && !status; k--) {
        const struct mip_gradient_args spread = {.finer = args->level[k - 1].grad.sum,
                                                 .coarser = args->level[k].grad.sum,
                                                 .images = shape->images,
                                                 .width = (int)halved(shape->width, k - 1),
                                                 .height = (int)halved(shape->height, k - 1),
                                                 .channels = (int)shape->channels};
        status = pool_for(ctx, shape->images * spread.width * spread.height, 1024, spread_range, &spread);
    }
    return status;
}

static fel_status backward_own_levels(fel_context *ctx, struct texture_args *args,
                                      const struct texture_shape *shape, unsigned flags, float *grad_texture,
                                      DLTensor *const *grad_levels, int level_count)
{
    struct sink_list sinks = {.count = 0};
    for (int k = 0; k <= level_count; k++) {
        float *sum = k == 0                              ? grad_texture
                     : grad_levels && grad_levels[k - 1] ? tensor_data(grad_levels[k - 1])
                                                         : NULL;
        if (!sum)
            continue;
        args->level[k].grad.sum = sum;
        sinks.sink[sinks.count] = &args->level[k].grad;
        sinks.elements[sinks.count++] =
            shape->images * halved(shape->height, k) * halved(shape->width, k) * shape->channels;
    }
    return raster_accumulate(ctx, flags, &sinks, gradient_run, args);
}

/* The levels' gradients are scratch, and flow on into grad_texture. On CUDA three channels are padded to four, so that one
 * vector instruction adds a texel. */
static fel_status backward_mips(fel_context *ctx, struct texture_args *args,
                                const struct texture_shape *shape, unsigned flags, float *grad_texture)
{
    const bool padded = context_on_cuda(ctx) && shape->channels == 3 && !(flags & FEL_DETERMINISTIC);
    fel_status status = FEL_OUT_OF_MEMORY;
    struct scratch scratch = scratch_begin(ctx);
    struct sink_list sinks = {.count = 0};
    if (padded)
        args->grad_stride = 4;
    for (int k = 0; k < args->level_count; k++) {
        const int64_t elements =
            shape->images * halved(shape->height, k) * halved(shape->width, k) * args->grad_stride;
        float *sum = k || padded ? scratch_array(&scratch, float, (size_t)elements) : grad_texture;
        if (!sum && elements)
            goto done;
        args->level[k].grad.sum = sum;
        sinks.sink[sinks.count] = &args->level[k].grad;
        sinks.elements[sinks.count++] = elements;
    }
    status = raster_accumulate(ctx, flags, &sinks, gradient_run, args);
    if (!status)
        status = fold_levels(ctx, shape, args, grad_texture);
done:
    scratch_end(&scratch);
    return status;
}

fel_status fel_texture_backward(fel_context *ctx, const DLTensor *texture, const DLTensor *const *levels,
                                int level_count, const DLTensor *uv, const DLTensor *uv_da,
                                const DLTensor *bias, fel_texture_filter filter,
                                fel_texture_boundary boundary, const DLTensor *grad_out, unsigned flags,
                                DLTensor *grad_texture, DLTensor *const *grad_levels, DLTensor *grad_uv,
                                DLTensor *grad_uv_da, DLTensor *grad_bias)
{
    const struct texture_tensors t = {texture, levels,   level_count, uv,     uv_da,
                                      bias,    grad_out, "grad_out",  filter, boundary};
    const bool cube = boundary == FEL_BOUNDARY_CUBE;
    struct tensor_rule rules[12];
    struct texture_args args = {.level_count = 0};
    struct texture_shape shape = {.images = 0};
    struct dims n = {{0}};
    size_t count = texture_rules(&t, rules);
    if (grad_texture)
        rules[count++] = (struct tensor_rule){"grad_texture", grad_texture, F32, rules[0].shape};
    if (grad_uv)
        rules[count++] = (struct tensor_rule){"grad_uv", grad_uv, F32, cube ? "n h w 3" : "n h w 2"};
    if (grad_uv_da)
        rules[count++] = (struct tensor_rule){"grad_uv_da", grad_uv_da, F32, cube ? "n h w 6" : "n h w 4"};
    if (grad_bias)
        rules[count++] = (struct tensor_rule){"grad_bias", grad_bias, F32, "n h w"};
    fel_status status = texture_read(ctx, &t, rules, count, &args, &shape, &n);
    if (!status && grad_levels)
        status = expect_levels(ctx, &shape, (const DLTensor *const *)grad_levels, level_count, "grad_levels",
                               true);
    if (status)
        return status;
    args.grad_out = tensor_data(grad_out);
    args.grad_uv = grad_uv ? tensor_data(grad_uv) : NULL;
    args.grad_uv_da = grad_uv_da ? tensor_data(grad_uv_da) : NULL;
    args.grad_bias = grad_bias ? tensor_data(grad_bias) : NULL;
    float *grad = grad_texture ? tensor_data(grad_texture) : NULL;
    if (grad && !grad_levels && (args.level_count > 1 || shape.channels == 3))
        return backward_mips(ctx, &args, &shape, flags, grad);
    return backward_own_levels(ctx, &args, &shape, flags, grad, grad_levels, grad_levels ? level_count : 0);
}
