/* bake/bake.c: rasterization into textures and views, attributes, gutters: validation, CPU loops, launches of bake.cu. */
#include "device/device.h"

#include <felloe/bake.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bake/bake_math.h"

extern const struct device_module BAKE_MODULE;

enum {
    TEXEL_BLOCK = 256,
    LARGE_GRID = 1056,
    /* eight blocks for each multiprocessor of the largest GPUs */ MAX_LEVELS = 32
};

/* ---- faces to texels */

struct cover_job {
    const struct bake_args *args;
    const struct bake_face *faces; /* in order of index; those that cover nothing are left out */
    const int *numbers;
    int64_t count;
};

static void cover_rows(const void *context, int64_t first, int64_t last)
{
    const struct cover_job *job = context;
    const struct bake_args *a = job->args;
    for (int64_t i = first * a->width; i < last * a->width; i++)
        a->keys[i] = BAKE_EMPTY;
    for (int64_t k = 0; k < job->count; k++) {
        const struct bake_face *f = job->faces + k;
        const int y0 = f->y0 > first ? f->y0 : (int)first, y1 = f->y1 < last ? f->y1 : (int)last;
        for (int y = y0; y < y1; y++) {
            unsigned long long *row = a->keys + (int64_t)y * a->width;
            for (int x = f->x0; x < f->x1; x++) {
                const unsigned long long key = bake_key(a, f, job->numbers[k], x, y);
                if (key < row[x])
                    row[x] = key;
            }
        }
    }
    struct bake_face f;
    long long set_up = -1; /* texels in a row mostly have the same face */
    for (int64_t y = first; y < last; y++)
        for (int x = 0; x < a->width; x++) {
            const long long face = bake_winner(a, y * a->width + x);
            if (face >= 0 && face != set_up)
                (void)bake_setup(a, set_up = face, &f);
            bake_write(a, x, (int)y, face, &f);
        }
}

static fel_status cover_on_cpu(fel_context *ctx, const struct bake_args *a)
{
    struct scratch scratch = scratch_begin(ctx);
    struct bake_face *faces = scratch_array(&scratch, struct bake_face, (size_t)a->face_count + 1);
    int *numbers = scratch_array(&scratch, int, (size_t)a->face_count + 1);
    fel_status status = FEL_OUT_OF_MEMORY;
    if (faces && numbers) {
        struct cover_job job = {.args = a, .faces = faces, .numbers = numbers};
        for (long long f = 0; f < a->face_count; f++) {
            if (!bake_setup(a, f, faces + job.count))
                continue;
            numbers[job.count++] = (int)f;
        }
        status = pool_for(ctx, a->height, 16, cover_rows, &job);
    }
    scratch_end(&scratch);
    return status;
}

static fel_status cover_on_cuda(fel_context *ctx, struct bake_args *a)
{
    const int64_t texels = (int64_t)a->width * a->height;
    fel_status status =
        device_launch(ctx, &BAKE_MODULE, "bake_clear", grid_1d(texels, TEXEL_BLOCK), a, sizeof *a);
    if (!status)
        status = device_launch(ctx, &BAKE_MODULE, "bake_cover", grid_1d(a->face_count * 32, TEXEL_BLOCK), a,
                               sizeof *a);
    if (!status && a->face_count)
        status = device_launch(ctx, &BAKE_MODULE, "bake_cover_large",
                               grid_1d((int64_t)LARGE_GRID * TEXEL_BLOCK, TEXEL_BLOCK), a, sizeof *a);
    if (!status)
        status =
            device_launch(ctx, &BAKE_MODULE, "bake_resolve_all", grid_1d(texels, TEXEL_BLOCK), a, sizeof *a);
    return status;
}

static fel_status cover(fel_context *ctx, struct bake_args *a, int64_t height, int64_t width)
{
    if (width > INT32_MAX || height > INT32_MAX || (width && height > INT64_MAX / 16 / width))
        return status_fail(FEL_INVALID_SHAPE,
                           "expected an image of less than 2^31 x 2^31, got [%" PRId64 ", %" PRId64 "]",
                           height, width);
    if (a->face_count >= INT32_MAX - 2)
        return status_fail(FEL_INVALID_SHAPE, "faces: expected fewer than 2^31 - 3, got %lld", a->face_count);
    a->width = (int)width;
    a->height = (int)height;
    if (!width || !height)
        return FEL_OK;
    struct scratch scratch = scratch_begin(ctx);
    a->keys = scratch_array(&scratch, unsigned long long, (size_t)(width * height));
    a->large = scratch_array(&scratch, int, (size_t)a->face_count + 1);
    fel_status status = FEL_OUT_OF_MEMORY;
    if (a->keys && a->large) {
        a->large_count = a->large + a->face_count;
        status = context_on_cuda(ctx) ? cover_on_cuda(ctx, a) : cover_on_cpu(ctx, a);
    }
    scratch_end(&scratch);
    return status;
}

fel_status fel_bake_uv(fel_context *ctx, const DLTensor *uvs, const DLTensor *faces, int32_t sample,
                       DLTensor *rast)
{
    const struct tensor_rule rules[] = {
        {"uvs", uvs, F32, "v 2"}, {"faces", faces, I32, "f 3"}, {"rast", rast, F32, "h w 4"}};
    struct dims n = {{0}};
    const fel_status status = tensors_expect(ctx, rules, COUNT(rules), &n);
    if (status)
        return status;
    if (sample < FEL_BAKE_CORNER || sample > FEL_BAKE_ENDS)
        return status_fail(FEL_INVALID_ARGUMENT, "sample: expected enum fel_bake_sample, got %d", sample);
    const int64_t h = n.of['h'], w = n.of['w'];
    const double shift = sample == FEL_BAKE_CENTER ? 0.5 : 0;
    const int less =
        sample == FEL_BAKE_ENDS; /* a single row or column samples the middle of nothing: the first */
    struct bake_args a = {.points = tensor_data(uvs),
                          .faces = tensor_data(faces),
                          .rast = tensor_data(rast),
                          .vertex_count = n.of['v'],
                          .face_count = n.of['f'],
                          .offset_x = shift,
                          .offset_y = shift,
                          .scale_x = (double)(w > 1 ? w - less : 1),
                          .scale_y = (double)(h > 1 ? h - less : 1)};
    return cover(ctx, &a, h, w);
}

fel_status fel_bake_view(fel_context *ctx, const DLTensor *positions, const DLTensor *faces,
                         const DLTensor *behind, DLTensor *indices, DLTensor *weights)
{
    struct tensor_rule rules[5] = {{"positions", positions, F32, "v 4"},
                                   {"faces", faces, I32, "f 3"},
                                   {"indices", indices, I32, "h w"},
                                   {"weights", weights, F32, "h w 3"}};
    if (behind)
        rules[4] = (struct tensor_rule){"behind", behind, F32, "h w"};
    struct dims n = {{0}};
    const fel_status status = tensors_expect(ctx, rules, behind ? 5 : 4, &n);
    if (status)
        return status;
    struct bake_args a = {.points = tensor_data(positions),
                          .faces = tensor_data(faces),
                          .behind = behind ? tensor_data(behind) : NULL,
                          .indices = tensor_data(indices),
                          .weights = tensor_data(weights),
                          .vertex_count = n.of['v'],
                          .face_count = n.of['f'],
                          .offset_x = 0.5,
                          .offset_y = 0.5,
                          .scale_x = (double)(n.of['w'] - 1),
                          .scale_y = (double)(n.of['h'] - 1),
                          .view = 1};
    return cover(ctx, &a, n.of['h'], n.of['w']);
}

static void interpolate_range(const void *context, int64_t first, int64_t last)
{
    const struct bake_interpolate_args *a = context;
    for (int64_t i = first; i < last; i++) {
        struct bake_corners corners;
        bake_corners_at(a, i, &corners);
        for (int64_t c = 0; c < a->channels; c++)
            a->out[i * a->channels + c] = bake_blend(&corners, c);
    }
}

fel_status fel_bake_interpolate(fel_context *ctx, const DLTensor *attributes, const DLTensor *faces,
                                const DLTensor *rast, const DLTensor *indices, const DLTensor *weights,
                                DLTensor *out)
{
    struct tensor_rule rules[5] = {
        {"attributes", attributes, F32, "v c"}, {"faces", faces, I32, "f 3"}, {"out", out, F32, "h w c"}};
    size_t count = 3;
    if (rast) {
        rules[count++] = (struct tensor_rule){"rast", rast, F32, "h w 4"};
    } else {
        rules[count++] = (struct tensor_rule){"indices", indices, I32, "h w"};
        rules[count++] = (struct tensor_rule){"weights", weights, F32, "h w 3"};
    }
    struct dims n = {{0}};
    const fel_status status = tensors_expect(ctx, rules, count, &n);
    if (status)
        return status;
    const struct bake_interpolate_args a = {.attributes = tensor_data(attributes),
                                            .rast = rast ? tensor_data(rast) : NULL,
                                            .weights = rast ? NULL : tensor_data(weights),
                                            .faces = tensor_data(faces),
                                            .indices = rast ? NULL : tensor_data(indices),
                                            .out = tensor_data(out),
                                            .vertex_count = n.of['v'],
                                            .face_count = n.of['f'],
                                            .texel_count = n.of['h'] * n.of['w'],
                                            .channels = n.of['c']};
    const int64_t elements = a.texel_count * a.channels;
    if (!context_on_cuda(ctx))
        return pool_for(ctx, a.texel_count, 4096, interpolate_range, &a);
    return device_launch(ctx, &BAKE_MODULE, "bake_interpolate", grid_1d(elements, TEXEL_BLOCK), &a, sizeof a);
}

/* ---- gutters */

#define TEXEL_RANGE(name, function)                                                                          \
    static void name(const void *context, int64_t first, int64_t last)                                       \
    {                                                                                                        \
        for (int64_t i = first; i < last; i++)                                                               \
            function(context, i);                                                                            \
    }

TEXEL_RANGE(flood_begin_range, bake_flood_begin)
TEXEL_RANGE(flood_step_range, bake_flood_step)
TEXEL_RANGE(flood_end_range, bake_flood_end)
TEXEL_RANGE(grow_range, bake_grow)
TEXEL_RANGE(pull_range, bake_pull)
TEXEL_RANGE(push_range, bake_push)
#undef TEXEL_RANGE

typedef void texel_range(const void *context, int64_t first, int64_t last);

static fel_status each_texel(fel_context *ctx, const char *kernel, texel_range *range, int64_t count,
                             const void *args, size_t size)
{
    if (!context_on_cuda(ctx))
        return pool_for(ctx, count, 4096, range, args);
    return device_launch(ctx, &BAKE_MODULE, kernel, grid_1d(count, TEXEL_BLOCK), args, size);
}

static fel_status gutter_begin(fel_context *ctx, const DLTensor *image, const DLTensor *mask,
                               struct bake_gutter_args *a)
{
    const struct tensor_rule rules[] = {{"image", image, F32, "h w c"}, {"mask", mask, U8, "h w"}};
    struct dims n = {{0}};
    const fel_status status = tensors_expect(ctx, rules, COUNT(rules), &n);
    if (status)
        return status;
    if (n.of['h'] > INT32_MAX || n.of['w'] > INT32_MAX)
        return status_fail(FEL_INVALID_SHAPE,
                           "image: expected sides below 2^31, got [%" PRId64 ", %" PRId64 "]", n.of['h'],
                           n.of['w']);
    *a = (struct bake_gutter_args){.image = tensor_data(image),
                                   .mask = tensor_data(mask),
                                   .next_mask = tensor_data(mask),
                                   .channels = n.of['c'],
                                   .width = (int)n.of['w'],
                                   .height = (int)n.of['h']};
    return FEL_OK;
}

fel_status fel_bake_gutter_nearest(fel_context *ctx, DLTensor *image, DLTensor *mask, int32_t reach)
{
    struct bake_gutter_args a = {0};
    fel_status status = gutter_begin(ctx, image, mask, &a);
    if (status)
        return status;
    if (reach < 0)
        return status_fail(FEL_INVALID_ARGUMENT, "reach: expected at least 0, got %d", reach);
    const int64_t texels = (int64_t)a.width * a.height;
    if (!texels || !reach)
        return FEL_OK;
    struct scratch scratch = scratch_begin(ctx);
    a.from = scratch_array(&scratch, long long, (size_t)texels);
    a.to = scratch_array(&scratch, long long, (size_t)texels);
    a.reach_squared = (long long)reach * reach;
    status = FEL_OUT_OF_MEMORY;
    if (a.from && a.to) {
        const int longest = a.width > a.height ? a.width : a.height;
        int step = 1; /* the first step reaches at least half as far as any known texel may be */
        while (step < reach && step < longest)
            step *= 2;
        status = each_texel(ctx, "bake_flood_begin_all", flood_begin_range, texels, &a, sizeof a);
        for (; step && !status; step /= 2) {
            long long *const heard = a.to;
            a.to = a.from;
            a.from = heard;
            a.step = step;
            status = each_texel(ctx, "bake_flood_step_all", flood_step_range, texels, &a, sizeof a);
        }
        a.from = a.to;
        if (!status)
            status = each_texel(ctx, "bake_flood_end_all", flood_end_range, texels, &a, sizeof a);
    }
    scratch_end(&scratch);
    return status;
}

struct copy_job {
    unsigned char *to;
    const unsigned char *from;
};

static void copy_range(const void *context, int64_t first, int64_t last)
{
    const struct copy_job *job = context;
    memcpy(job->to + first, job->from + first, (size_t)(last - first));
}

static fel_status copy_bytes(fel_context *ctx, void *to, const void *from, int64_t size)
{
    const struct copy_job job = {.to = to, .from = from};
    if (!context_on_cuda(ctx))
        return pool_for(ctx, size, 1 << 20, copy_range, &job);
    return device_copy(ctx, to, from, (size_t)size);
}

fel_status fel_bake_gutter_grow(fel_context *ctx, DLTensor *image, DLTensor *mask, int32_t iterations)
{
    struct bake_gutter_args a = {0};
    fel_status status = gutter_begin(ctx, image, mask, &a);
    if (status)
        return status;
    if (iterations < 0)
        return status_fail(FEL_INVALID_ARGUMENT, "iterations: expected at least 0, got %d", iterations);
    const int64_t texels = (int64_t)a.width * a.height, elements = texels * a.channels;
    if (!elements || !iterations)
        return FEL_OK;
    struct scratch scratch = scratch_begin(ctx);
    float *image_before = scratch_array(&scratch, float, (size_t)elements);
    unsigned char *mask_before = scratch_array(&scratch, unsigned char, (size_t)texels);
    status = image_before && mask_before ? FEL_OK : FEL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < iterations && !status; i++) {
        status = copy_bytes(ctx, image_before, tensor_data(image), elements * (int64_t)sizeof(float));
        if (!status)
            status = copy_bytes(ctx, mask_before, tensor_data(mask), texels);
        a.source = image_before;
        a.mask = mask_before;
        if (!status)
            status = each_texel(ctx, "bake_grow_all", grow_range, texels, &a, sizeof a);
    }
    scratch_end(&scratch);
    return status;
}

fel_status fel_bake_gutter_smooth(fel_context *ctx, DLTensor *image, const DLTensor *mask)
{
    struct bake_gutter_args g = {0};
    fel_status status = gutter_begin(ctx, image, mask, &g);
    if (status || !g.width || !g.height || !g.channels)
        return status;
    struct bake_pyramid_args levels[MAX_LEVELS];
    struct scratch scratch = scratch_begin(ctx);
    int count = 0;
    struct bake_pyramid_args level = {
        .image = g.image, .mask = g.mask, .channels = g.channels, .width = g.width, .height = g.height};
    for (;; count++) {
        level.coarse_width = (level.width + 1) / 2;
        level.coarse_height = (level.height + 1) / 2;
        const int64_t coarse = (int64_t)level.coarse_width * level.coarse_height;
        level.coarse = scratch_array(&scratch, float, (size_t)(coarse * (g.channels + 1)));
        status = level.coarse ? each_texel(ctx, "bake_pull_all", pull_range, coarse, &level, sizeof level)
                              : FEL_OUT_OF_MEMORY;
        levels[count] = level;
        if (status || coarse == 1)
            break;
        level = (struct bake_pyramid_args){.fine = level.coarse,
                                           .channels = g.channels,
                                           .width = level.coarse_width,
                                           .height = level.coarse_height};
    }
    for (; count >= 0 && !status; count--)
        status =
            each_texel(ctx, "bake_push_all", push_range, (int64_t)levels[count].width * levels[count].height,
                       levels + count, sizeof level);
    scratch_end(&scratch);
    return status;
}
