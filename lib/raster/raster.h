/* raster/raster.h: what the four operators share on the host: launches over pixels, and gradients that many pixels add to.
 * Private to the folder, as no other one needs it. */
#ifndef FEL_RASTER_RASTER_H
#define FEL_RASTER_RASTER_H

#include <felloe/raster.h>

#include "device/device.h"
#include "raster_kernels.h"

enum {
    MAX_GRID_Y = 65535,
    LARGE_GRID = 528, /* blocks of raster_large: four for each multiprocessor of the largest GPUs */
    MAX_SINKS = 18,
};

extern const struct device_module RASTER_MODULE;

/* tensors_expect, and on CUDA also that what kernels load 16 bytes at a time is aligned to them. */
fel_status raster_expect(fel_context *ctx, const struct tensor_rule *rules, size_t count, struct dims *n);

/* Sets bytes on the context's device to 0. */
fel_status raster_zero(fel_context *ctx, void *at, int64_t bytes);

/* Blocks of 32 x 8 pixels, one a thread; 32 x 32, four a thread; 16 x 16, one a thread. Images follow one another along
 * grid x. */
struct launch pixel_launch(int width, int height, int64_t images);
struct launch pair_launch(int width, int height, int64_t images);
struct launch tile_launch(int width, int height, int64_t images);

/* Gradients of one call that many items add to. */
struct sink_list {
    int count;
    struct grad_sink *sink[MAX_SINKS]; /* in the arguments that run() gets; sum is set */
    int64_t elements[MAX_SINKS];
};

/* Zeroes the sums and runs the operator's gradient over them: once, or twice when flags ask for a deterministic sum. */
fel_status raster_accumulate(fel_context *ctx, unsigned flags, const struct sink_list *sinks,
                             fel_status (*run)(fel_context *ctx, const void *args), const void *args);

#endif
