/* Contexts and their memory. */
#include "device/internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALIGNMENT = 64 }; /* of host memory: a cache line, and the widest vector */

static fel_status check_options(const fel_context_options *o)
{
    if (o->size < sizeof *o)
        return status_fail(FEL_INVALID_ARGUMENT, "options.size: expected at least %zu, got %zu", sizeof *o,
                           o->size);
    if (o->device.device_type != kDLCPU && o->device.device_type != kDLCUDA)
        return status_fail(FEL_INVALID_ARGUMENT,
                           "options.device: expected kDLCPU or kDLCUDA, got device type %d",
                           (int)o->device.device_type);
    if (!o->allocate != !o->release)
        return status_fail(FEL_INVALID_ARGUMENT,
                           "options: expected allocate and release together, or neither");
    if (o->threads < 0)
        return status_fail(FEL_INVALID_ARGUMENT, "options.threads: expected 0 or more, got %d",
                           (int)o->threads);
    if (o->kernels != FEL_KERNELS_AUTO && o->kernels != FEL_KERNELS_NVRTC)
        return status_fail(FEL_INVALID_ARGUMENT,
                           "options.kernels: expected FEL_KERNELS_AUTO or FEL_KERNELS_NVRTC, got %d",
                           (int)o->kernels);
    return FEL_OK;
}

static bool copy_text(const char *text, char **copy)
{
    *copy = text ? strdup(text) : NULL;
    return !text || *copy;
}

fel_status fel_context_create(const fel_context_options *options, fel_context **out)
{
    static const fel_context_options DEFAULTS = FEL_CONTEXT_OPTIONS_INIT;
    const fel_context_options *o = options ? options : &DEFAULTS;
    if (!out)
        return status_fail(FEL_INVALID_ARGUMENT, "ctx: expected where to put the context, got NULL");
    *out = NULL;
    fel_status status = check_options(o);
    if (status)
        return status;
    fel_context *ctx = calloc(1, sizeof *ctx);
    if (!ctx)
        return status_fail(FEL_OUT_OF_MEMORY, "a context of %zu bytes was refused", sizeof *ctx);
    const char *forced = getenv("FELLOE_KERNELS");
    ctx->device = o->device;
    ctx->stream = o->stream;
    ctx->allocate = o->allocate;
    ctx->release = o->release;
    ctx->user = o->user;
    ctx->kernels = forced && strcmp(forced, "nvrtc") == 0 ? FEL_KERNELS_NVRTC : o->kernels;
    ctx->owner = getpid();
    pool_init(&ctx->pool, o->threads);
    if (!copy_text(o->nvrtc, &ctx->nvrtc) || !copy_text(o->cache, &ctx->cache))
        status = status_fail(FEL_OUT_OF_MEMORY, "a copy of the options was refused");
    if (!status && o->device.device_type == kDLCUDA)
        status = cuda_open(ctx, o->device.device_id);
    if (status) {
        fel_context_free(ctx);
        return status;
    }
    *out = ctx;
    return FEL_OK;
}

void fel_context_free(fel_context *ctx)
{
    if (!ctx)
        return;
    pool_close(&ctx->pool);
    free(ctx->nvrtc);
    free(ctx->cache);
    free(ctx);
}

void fel_context_set_stream(fel_context *ctx, void *stream)
{
    if (ctx)
        ctx->stream = stream;
}

fel_status fel_context_synchronize(fel_context *ctx)
{
    if (!ctx)
        return status_fail(FEL_INVALID_ARGUMENT, "ctx: expected a context, got NULL");
    return ctx->cuda ? cuda_synchronize(ctx) : FEL_OK;
}

bool context_on_cuda(const fel_context *ctx) { return ctx->cuda != NULL; }

fel_status context_alloc(fel_context *ctx, size_t bytes, void **memory)
{
    *memory = NULL;
    if (bytes == 0)
        return FEL_OK;
    if (bytes > SIZE_MAX - ALIGNMENT)
        return status_fail(FEL_OUT_OF_MEMORY, "%zu bytes are more than there are", bytes);
    if (ctx->allocate)
        *memory = ctx->allocate(ctx->user, bytes, ctx->stream);
    else if (ctx->cuda)
        return cuda_alloc(ctx, bytes, memory);
    else
        *memory = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    return *memory ? FEL_OK : status_fail(FEL_OUT_OF_MEMORY, "the allocator refused %zu bytes", bytes);
}

void context_free(fel_context *ctx, void *memory)
{
    if (!memory)
        return;
    if (ctx->release)
        ctx->release(ctx->user, memory, ctx->stream);
    else if (ctx->cuda)
        cuda_release(ctx, memory);
    else
        free(memory);
}

struct scratch scratch_begin(fel_context *ctx) { return (struct scratch){.ctx = ctx}; }

void *scratch_bytes(struct scratch *scratch, size_t count, size_t size)
{
    if (scratch->count == SCRATCH_PIECES) {
        (void)status_fail(FEL_OUT_OF_MEMORY, "more than %d pieces of scratch memory", (int)SCRATCH_PIECES);
        return NULL;
    }
    if (size && count > SIZE_MAX / 2 / size) {
        (void)status_fail(FEL_OUT_OF_MEMORY, "%zu elements of %zu bytes are more than there are", count,
                          size);
        return NULL;
    }
    void *memory = NULL;
    const size_t bytes = count * size;
    if (context_alloc(scratch->ctx, bytes > 0 ? bytes : 1, &memory) != FEL_OK)
        return NULL;
    scratch->pieces[scratch->count++] = memory;
    return memory;
}

void scratch_end(struct scratch *scratch)
{
    while (scratch->count > 0)
        context_free(scratch->ctx, scratch->pieces[--scratch->count]);
}
