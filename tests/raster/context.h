/* tests/raster/context.h: the context that the raster tests run on: several CPU threads, or the first GPU when the
 * environment says FELLOE_TEST_DEVICE=cuda. Test data stays in host memory: on a GPU each call of the library goes through
 * a function here that copies its tensors there and back, so that every case judges both back ends. */
#ifndef RASTER_CONTEXT_H
#define RASTER_CONTEXT_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <felloe/raster.h>

enum {
    SKIPPED = 77,
    MOST_STAGED = 32,
    GUARD = 256 /* bytes before and behind each tensor that must stay as they are */
};

/* The few calls of the CUDA driver that staging needs. */
struct driver {
    int (*init)(unsigned flags);
    int (*retain)(void **context, int device);
    int (*current)(void *context);
    int (*alloc)(uint64_t *memory, size_t bytes);
    int (*release)(uint64_t memory);
    int (*up)(uint64_t to, const void *from, size_t bytes);
    int (*down)(void *to, uint64_t from, size_t bytes);
};

static inline bool on_cuda(void)
{
    const char *device = getenv("FELLOE_TEST_DEVICE");
    return device && !strcmp(device, "cuda");
}

/* Exits with a message and 77 when a GPU was asked for and there is none. */
static inline fel_context *test_context(void)
{
    static fel_context *ctx;
    if (ctx)
        return ctx;
    fel_context_options options = FEL_CONTEXT_OPTIONS_INIT;
    options.threads = 3;
    if (on_cuda())
        options.device.device_type = kDLCUDA;
    if (fel_context_create(&options, &ctx)) {
        fprintf(stderr, "skipped: %s\n", fel_last_error());
        exit(on_cuda() ? SKIPPED : 1);
    }
    return ctx;
}

static inline void resolve(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    if (!symbol)
        abort();
    memcpy(function, &symbol, sizeof symbol);
}

static inline const struct driver *driver(void)
{
    static struct driver d;
    if (!d.alloc) {
        void *library = dlopen("libcuda.so.1", RTLD_NOW);
        if (!library)
            abort();
        resolve(library, "cuMemFree_v2", &d.release);
        resolve(library, "cuMemcpyHtoD_v2", &d.up);
        resolve(library, "cuMemcpyDtoH_v2", &d.down);
        resolve(library, "cuInit", &d.init);
        resolve(library, "cuDevicePrimaryCtxRetain", &d.retain);
        resolve(library, "cuCtxSetCurrent", &d.current);
        resolve(library, "cuMemAlloc_v2", &d.alloc);
        void *context;
        if (d.init(0) || d.retain(&context, 0) || d.current(context)) /* device 0 is ordinal 0 */
            abort();
    }
    return &d;
}

struct stage {
    DLTensor tensor[MOST_STAGED];
    void *host[MOST_STAGED];
    uint64_t memory[MOST_STAGED];
    size_t bytes[MOST_STAGED];
    int count;
};

/* A copy on the GPU, guards around it. One tensor given twice is staged once: calls may rely on it being the same. */
static inline DLTensor *put(struct stage *s, const DLTensor *t)
{
    if (!t)
        return NULL;
    size_t bytes = 4;
    for (int k = 0; k < t->ndim; k++)
        bytes *= (size_t)t->shape[k];
    for (int k = 0; k < s->count; k++)
        if (s->host[k] == t->data && s->bytes[k] == bytes)
            return &s->tensor[k];
    const int k = s->count++;
    if (k >= MOST_STAGED)
        abort();
    s->tensor[k] = *t;
    s->tensor[k].device = (DLDevice){kDLCUDA, 0};
    s->host[k] = t->data;
    s->bytes[k] = bytes;
    if (bytes >> 32) /* only a test of what is refused has so large a tensor, and not the data */
        return &s->tensor[k];
    unsigned char guard[GUARD];
    memset(guard, 0xa5, sizeof guard);
    if (driver()->alloc(&s->memory[k], bytes + 2 * GUARD) || driver()->up(s->memory[k], guard, GUARD) ||
        driver()->up(s->memory[k] + GUARD + bytes, guard, GUARD) ||
        (bytes && driver()->up(s->memory[k] + GUARD, t->data, bytes)))
        abort();
    s->tensor[k].data = (void *)(uintptr_t)(s->memory[k] + GUARD);
    return &s->tensor[k];
}

/* Back to the host; fails the program when a guard was written to. */
static inline fel_status finish(struct stage *s, fel_status status)
{
    if (fel_context_synchronize(test_context())) {
        fprintf(stderr, "%s\n", fel_last_error());
        abort();
    }
    for (int k = 0; k < s->count; k++) {
        unsigned char guard[2 * GUARD];
        if (!s->memory[k])
            continue;
        unsigned char *copy = malloc(s->bytes[k] + 1);
        if (!copy || driver()->down(guard, s->memory[k], GUARD) ||
            driver()->down(guard + GUARD, s->memory[k] + GUARD + s->bytes[k], GUARD) ||
            (s->bytes[k] && driver()->down(copy, s->memory[k] + GUARD, s->bytes[k])))
            abort();
        for (int n = 0; n < 2 * GUARD; n++)
            if (guard[n] != 0xa5)
                abort();
        if (s->bytes[k] && memcmp(copy, s->host[k], s->bytes[k])) /* what did not change may be constant */
            memcpy(s->host[k], copy, s->bytes[k]);
        free(copy);
        driver()->release(s->memory[k]);
    }
    return status;
}

static inline fel_status staged_rasterize(fel_context *ctx, const DLTensor *positions,
                                          const DLTensor *triangles, const DLTensor *ranges,
                                          const fel_rasterize_options *options, DLTensor *rast,
                                          DLTensor *rast_db)
{
    if (!on_cuda())
        return fel_rasterize(ctx, positions, triangles, ranges, options, rast, rast_db);
    struct stage s = {.count = 0};
    fel_rasterize_options staged = {.size = 0};
    if (options) {
        staged = *options;
        staged.below = put(&s, options->below);
        staged.depth = put(&s, options->depth);
    }
    return finish(&s, fel_rasterize(ctx, put(&s, positions), put(&s, triangles), ranges,
                                    options ? &staged : NULL, put(&s, rast), put(&s, rast_db)));
}

static inline fel_status staged_rasterize_backward(fel_context *ctx, const DLTensor *positions,
                                                   const DLTensor *triangles, const DLTensor *rast,
                                                   const DLTensor *grad_rast, const DLTensor *grad_rast_db,
                                                   unsigned flags, DLTensor *grad_positions)
{
    if (!on_cuda())
        return fel_rasterize_backward(ctx, positions, triangles, rast, grad_rast, grad_rast_db, flags,
                                      grad_positions);
    struct stage s = {.count = 0};
    return finish(&s, fel_rasterize_backward(ctx, put(&s, positions), put(&s, triangles), put(&s, rast),
                                             put(&s, grad_rast), put(&s, grad_rast_db), flags,
                                             put(&s, grad_positions)));
}

static inline fel_status staged_interpolate(fel_context *ctx, const DLTensor *attributes,
                                            const DLTensor *rast, const DLTensor *triangles,
                                            const DLTensor *rast_db, const DLTensor *selected, DLTensor *out,
                                            DLTensor *out_da)
{
    if (!on_cuda())
        return fel_interpolate(ctx, attributes, rast, triangles, rast_db, selected, out, out_da);
    struct stage s = {.count = 0};
    return finish(&s, fel_interpolate(ctx, put(&s, attributes), put(&s, rast), put(&s, triangles),
                                      put(&s, rast_db), put(&s, selected), put(&s, out), put(&s, out_da)));
}

static inline fel_status staged_interpolate_backward(fel_context *ctx, const DLTensor *attributes,
                                                     const DLTensor *rast, const DLTensor *triangles,
                                                     const DLTensor *rast_db, const DLTensor *selected,
                                                     const DLTensor *grad_out, const DLTensor *grad_out_da,
                                                     unsigned flags, DLTensor *grad_attributes,
                                                     DLTensor *grad_rast, DLTensor *grad_rast_db)
{
    if (!on_cuda())
        return fel_interpolate_backward(ctx, attributes, rast, triangles, rast_db, selected, grad_out,
                                        grad_out_da, flags, grad_attributes, grad_rast, grad_rast_db);
    struct stage s = {.count = 0};
    return finish(&s, fel_interpolate_backward(ctx, put(&s, attributes), put(&s, rast), put(&s, triangles),
                                               put(&s, rast_db), put(&s, selected), put(&s, grad_out),
                                               put(&s, grad_out_da), flags, put(&s, grad_attributes),
                                               put(&s, grad_rast), put(&s, grad_rast_db)));
}

static inline fel_status staged_texture_mips(fel_context *ctx, const DLTensor *texture,
                                             DLTensor *const *levels, int count)
{
    if (!on_cuda())
        return fel_texture_mips(ctx, texture, levels, count);
    struct stage s = {.count = 0};
    DLTensor *staged[FEL_TEXTURE_MAX_LEVELS];
    for (int k = 0; k < count; k++)
        staged[k] = put(&s, levels[k]);
    return finish(&s, fel_texture_mips(ctx, put(&s, texture), staged, count));
}

static inline fel_status staged_texture(fel_context *ctx, const DLTensor *texture,
                                        const DLTensor *const *levels, int count, const DLTensor *uv,
                                        const DLTensor *uv_da, const DLTensor *bias,
                                        fel_texture_filter filter, fel_texture_boundary boundary,
                                        DLTensor *out)
{
    if (!on_cuda())
        return fel_texture(ctx, texture, levels, count, uv, uv_da, bias, filter, boundary, out);
    struct stage s = {.count = 0};
    const DLTensor *staged[FEL_TEXTURE_MAX_LEVELS];
    for (int k = 0; k < count; k++)
        staged[k] = put(&s, levels[k]);
    return finish(&s, fel_texture(ctx, put(&s, texture), staged, count, put(&s, uv), put(&s, uv_da),
                                  put(&s, bias), filter, boundary, put(&s, out)));
}

static inline fel_status staged_texture_backward(fel_context *ctx, const DLTensor *texture,
                                                 const DLTensor *const *levels, int count, const DLTensor *uv,
                                                 const DLTensor *uv_da, const DLTensor *bias,
                                                 fel_texture_filter filter, fel_texture_boundary boundary,
                                                 const DLTensor *grad_out, unsigned flags,
                                                 DLTensor *grad_texture, DLTensor *const *grad_levels,
                                                 DLTensor *grad_uv, DLTensor *grad_uv_da, DLTensor *grad_bias)
{
    if (!on_cuda())
        return fel_texture_backward(ctx, texture, levels, count, uv, uv_da, bias, filter, boundary, grad_out,
                                    flags, grad_texture, grad_levels, grad_uv, grad_uv_da, grad_bias);
    struct stage s = {.count = 0};
    const DLTensor *staged[FEL_TEXTURE_MAX_LEVELS];
    DLTensor *grads[FEL_TEXTURE_MAX_LEVELS];
    for (int k = 0; k < count; k++) {
        staged[k] = put(&s, levels[k]);
        grads[k] = grad_levels ? put(&s, grad_levels[k]) : NULL;
    }
    return finish(&s, fel_texture_backward(ctx, put(&s, texture), staged, count, put(&s, uv), put(&s, uv_da),
                                           put(&s, bias), filter, boundary, put(&s, grad_out), flags,
                                           put(&s, grad_texture), grad_levels ? grads : NULL,
                                           put(&s, grad_uv), put(&s, grad_uv_da), put(&s, grad_bias)));
}

static inline fel_status staged_weld(fel_context *ctx, const DLTensor *positions, DLTensor *weld)
{
    if (!on_cuda())
        return fel_weld(ctx, positions, weld);
    struct stage s = {.count = 0};
    return finish(&s, fel_weld(ctx, put(&s, positions), put(&s, weld)));
}

static inline fel_status staged_antialias_topology(fel_context *ctx, const DLTensor *triangles,
                                                   const DLTensor *weld, DLTensor *topology)
{
    if (!on_cuda())
        return fel_antialias_topology(ctx, triangles, weld, topology);
    struct stage s = {.count = 0};
    return finish(&s, fel_antialias_topology(ctx, put(&s, triangles), put(&s, weld), put(&s, topology)));
}

static inline fel_status staged_antialias(fel_context *ctx, const DLTensor *color, const DLTensor *rast,
                                          const DLTensor *positions, const DLTensor *triangles,
                                          const DLTensor *topology, DLTensor *out)
{
    if (!on_cuda())
        return fel_antialias(ctx, color, rast, positions, triangles, topology, out);
    struct stage s = {.count = 0};
    return finish(&s, fel_antialias(ctx, put(&s, color), put(&s, rast), put(&s, positions),
                                    put(&s, triangles), put(&s, topology), put(&s, out)));
}

static inline fel_status staged_antialias_backward(fel_context *ctx, const DLTensor *color,
                                                   const DLTensor *rast, const DLTensor *positions,
                                                   const DLTensor *triangles, const DLTensor *topology,
                                                   const DLTensor *grad_out, float boost, unsigned flags,
                                                   DLTensor *grad_color, DLTensor *grad_positions)
{
    if (!on_cuda())
        return fel_antialias_backward(ctx, color, rast, positions, triangles, topology, grad_out, boost,
                                      flags, grad_color, grad_positions);
    struct stage s = {.count = 0};
    return finish(&s, fel_antialias_backward(ctx, put(&s, color), put(&s, rast), put(&s, positions),
                                             put(&s, triangles), put(&s, topology), put(&s, grad_out), boost,
                                             flags, put(&s, grad_color), put(&s, grad_positions)));
}

#define fel_rasterize staged_rasterize
#define fel_rasterize_backward staged_rasterize_backward
#define fel_interpolate staged_interpolate
#define fel_interpolate_backward staged_interpolate_backward
#define fel_texture_mips staged_texture_mips
#define fel_texture staged_texture
#define fel_texture_backward staged_texture_backward
#define fel_weld staged_weld
#define fel_antialias_topology staged_antialias_topology
#define fel_antialias staged_antialias
#define fel_antialias_backward staged_antialias_backward

#endif
