/* raster/raster.c: see raster.h. */
#include "raster.h"

#include <string.h>

fel_status raster_expect(fel_context *ctx, const struct tensor_rule *rules, size_t count, struct dims *n)
{
    const fel_status status = tensors_expect(ctx, rules, count, n);
    if (status || !context_on_cuda(ctx))
        return status;
    for (size_t k = 0; k < count; k++)
        if ((uintptr_t)tensor_data(rules[k].tensor) % 16)
            return status_fail(FEL_INVALID_ARGUMENT, "%s: expected data aligned to 16 bytes", rules[k].name);
    return FEL_OK;
}

static struct launch image_launch(int width, int height, int64_t images, int columns, int rows)
{
    const int64_t across = (width + columns - 1) / columns, up = (height + rows - 1) / rows;
    return (struct launch){.grid = {(unsigned)(across * images), (unsigned)up, 1}};
}

struct launch pixel_launch(int width, int height, int64_t images)
{
    struct launch launch = image_launch(width, height, images, 32, 8);
    launch.block[0] = 32, launch.block[1] = 8, launch.block[2] = 1;
    return launch;
}

struct launch pair_launch(int width, int height, int64_t images)
{
    struct launch launch = image_launch(width, height, images, 32, 32);
    launch.block[0] = 32, launch.block[1] = 8, launch.block[2] = 1;
    return launch;
}

struct launch tile_launch(int width, int height, int64_t images)
{
    struct launch launch = image_launch(width, height, images, 16, 16);
    launch.block[0] = TILE_BLOCK, launch.block[1] = 1, launch.block[2] = 1;
    return launch;
}

struct zero_job {
    unsigned char *at;
};

static void zero_range(const void *arg, int64_t first, int64_t last)
{
    const struct zero_job *job = arg;
    memset(job->at + first, 0, (size_t)(last - first));
}

fel_status raster_zero(fel_context *ctx, void *at, int64_t bytes)
{
    if (!bytes)
        return FEL_OK;
    if (context_on_cuda(ctx))
        return device_fill(ctx, at, 0, (size_t)bytes);
    const struct zero_job job = {at};
    return pool_for(ctx, bytes, 1 << 20, zero_range, &job);
}

static void finish_range(const void *arg, int64_t first, int64_t last)
{
    const struct sink_args *args = arg;
    for (int64_t k = first; k < last; k++)
        sink_finish(&args->grad, k);
}

static fel_status finish_sink(fel_context *ctx, const struct sink_args *args)
{
    if (!context_on_cuda(ctx))
        return pool_for(ctx, args->count, 1 << 14, finish_range, args);
    return device_launch(ctx, &RASTER_MODULE, "raster_sink_finish", grid_1d(args->count, FLAT_BLOCK), args,
                         sizeof *args);
}

fel_status raster_accumulate(fel_context *ctx, unsigned flags, const struct sink_list *sinks,
                             fel_status (*run)(fel_context *ctx, const void *args), const void *args)
{
    if (flags & ~FEL_DETERMINISTIC)
        return status_fail(FEL_INVALID_ARGUMENT, "flags: expected 0 or FEL_DETERMINISTIC, got %u", flags);
    fel_status status = FEL_OK;
    for (int k = 0; k < sinks->count && !status; k++)
        status = raster_zero(ctx, sinks->sink[k]->sum, sinks->elements[k] * (int64_t)sizeof(float));
    if (status)
        return status;
    if (!(flags & FEL_DETERMINISTIC) || !sinks->count)
        return run(ctx, args);

    struct scratch scratch = scratch_begin(ctx);
    unsigned *peak = scratch_array(&scratch, unsigned, 1);
    status = peak ? raster_zero(ctx, peak, sizeof *peak) : FEL_OUT_OF_MEMORY;
    for (int k = 0; k < sinks->count && !status; k++) {
        struct grad_sink *sink = sinks->sink[k];
        sink->mode = SINK_PEAK;
        sink->peak = peak;
        sink->fixed = scratch_array(&scratch, long long, (size_t)sinks->elements[k]);
        status = sink->fixed || !sinks->elements[k]
                     ? raster_zero(ctx, sink->fixed, sinks->elements[k] * (int64_t)sizeof *sink->fixed)
                     : FEL_OUT_OF_MEMORY;
    }
    if (!status)
        status = run(ctx, args);
    for (int k = 0; k < sinks->count; k++)
        sinks->sink[k]->mode = SINK_FIXED;
    if (!status)
        status = run(ctx, args);
    for (int k = 0; k < sinks->count && !status; k++) {
        const struct sink_args finish = {.grad = *sinks->sink[k], .count = sinks->elements[k]};
        status = finish_sink(ctx, &finish);
    }
    scratch_end(&scratch);
    return status;
}
