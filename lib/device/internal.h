/* device/internal.h: a context from the inside. Private to the folder. */
#ifndef FEL_DEVICE_INTERNAL_H
#define FEL_DEVICE_INTERNAL_H

#include "device/device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

struct pool_job {
    void (*work)(const void *arg, int64_t first, int64_t last);
    const void *arg;
    int64_t n, grain;
    atomic_llong next;
};
struct pool {
    pthread_mutex_t lock;
    pthread_cond_t wake, idle;
    pthread_t *threads;
    int wanted, started; /* beside the calling thread */
    int busy;
    unsigned long generation;
    bool stop;
    struct pool_job *job;
    atomic_int owner; /* the process whose threads these are; negative while that one takes them over */
};
struct cuda_device; /* cuda.c */

struct fel_context {
    DLDevice device;
    void *stream;
    void *(*allocate)(void *user, size_t bytes, void *stream);
    void (*release)(void *user, void *memory, void *stream);
    void *user;
    int kernels;
    char *nvrtc, *cache;
    struct pool pool;
    struct cuda_device *cuda; /* NULL on the CPU */
    pid_t owner;
};

void pool_init(struct pool *pool, int threads);
void pool_close(struct pool *pool);

fel_status cuda_open(fel_context *ctx, int ordinal); /* sets ctx->cuda */
fel_status cuda_alloc(fel_context *ctx, size_t bytes, void **memory);
void cuda_release(fel_context *ctx, void *memory);
fel_status cuda_synchronize(fel_context *ctx);

/* Compiles module for sm_XY by NVRTC, or takes what the disk cache holds. *image is the caller's to free. */
fel_status nvrtc_compile(const fel_context *ctx, const struct device_module *module, int arch, char **image,
                         size_t *size);

#endif
