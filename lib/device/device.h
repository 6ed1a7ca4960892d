/* device/device.h: what operators are written with: checked tensors, threads, scratch memory, kernel launches. Private to the library. */
#ifndef FEL_DEVICE_H
#define FEL_DEVICE_H

#include <felloe/felloe.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Records one line for fel_last_error and returns the code. It stands where the fault is seen and nowhere above. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
fel_status
status_fail(fel_status code, const char *format, ...);
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void log_line(int level, const char *format, ...);

/* ---- Tensors ---- */
enum { /* element types, to be joined by | where several are taken */
       F32 = 1,
       F16 = 2,
       I32 = 4,
       I64 = 8,
       OPTIONAL = 16, /* the tensor may be NULL */
       U8 = 32,
};

struct tensor_rule {
    const char *name; /* as in the header's comment */
    const DLTensor *tensor;
    int types;
    const char *
        shape; /* "v 3": a letter stands for a length, the same one wherever it occurs; a number for itself */
};
struct dims {
    int64_t of[128]; /* by letter; 0 for one that no given tensor has */
};

/* All given tensors are compact, on the context's device, of a type that is taken, and agree on the letters.
 * Errors: FEL_INVALID_ARGUMENT, FEL_INVALID_DTYPE, FEL_INVALID_SHAPE, FEL_WRONG_DEVICE, with the text
 * "points: expected float32 [p, 3], got float32 [2, 2]". */
FEL_CHECKED fel_status tensors_expect(fel_context *ctx, const struct tensor_rule *rules, size_t count,
                                      struct dims *n);

static inline void *tensor_data(const DLTensor *tensor)
{
#ifdef __clang_analyzer__ /* it cannot see that tensors_expect refuses NULL for a tensor that is not optional */
    static char absent;
    return tensor ? (char *)tensor->data + tensor->byte_offset : &absent;
#else
    return tensor ? (char *)tensor->data + tensor->byte_offset : NULL;
#endif
}

/* ---- Memory ---- */
bool context_on_cuda(const fel_context *ctx);
/* From the context's allocator; bytes may be 0, which gives NULL. */
FEL_CHECKED fel_status context_alloc(fel_context *ctx, size_t bytes, void **memory);
void context_free(fel_context *ctx, void *memory);

enum { SCRATCH_PIECES = 64 };
struct scratch { /* memory of one call; on CUDA it is given back in stream order */
    fel_context *ctx;
    size_t count;
    void *pieces[SCRATCH_PIECES];
};
struct scratch scratch_begin(fel_context *ctx);
void scratch_end(struct scratch *scratch);
void *scratch_bytes(struct scratch *scratch, size_t count,
                    size_t size); /* NULL: the message has been recorded */
#define scratch_array(scratch, type, count) ((type *)scratch_bytes((scratch), (size_t)(count), sizeof(type)))

/* ---- CPU ---- */
/* Calls work(arg, first, last) over [0, n) in pieces of `grain`, on the context's threads and on this one. Inside of work it runs on the
 * same thread. Survives fork() on both sides. */
FEL_CHECKED fel_status pool_for(fel_context *ctx, int64_t n, int64_t grain,
                                void (*work)(const void *arg, int64_t first, int64_t last), const void *arg);

/* ---- CUDA ---- */
struct device_source {
    const char *name; /* "raster_math.h" */
    const char *text;
};
struct device_module { /* a family's kernels; made by the build from lib/FAMILY/FAMILY.cu */
    const char *name;
    const unsigned char *fatbin; /* NULL when nvcc was not there */
    const char *source;
    const struct device_source *headers; /* ends with a NULL name */
};

struct launch {
    unsigned grid[3], block[3];
    unsigned shared; /* bytes of dynamic shared memory */
};
static inline struct launch grid_1d(int64_t n, int block)
{
    const int64_t blocks = n > 0 ? (n - 1) / block + 1 : 0;
    return (struct launch){.grid = {blocks <= INT32_MAX ? (unsigned)blocks : UINT32_MAX, 1, 1},
                           .block = {(unsigned)block, 1, 1}};
}

/* Queues a kernel whose only parameter is *args. An empty grid is no launch. Errors: FEL_CUDA with the kernel's name. */
FEL_CHECKED fel_status device_launch(fel_context *ctx, const struct device_module *module, const char *kernel,
                                     struct launch launch, const void *args, size_t size);
FEL_CHECKED fel_status device_fill(fel_context *ctx, void *memory, int byte,
                                   size_t bytes); /* queued; on the CPU memset */
FEL_CHECKED fel_status device_copy(fel_context *ctx, void *to, const void *from,
                                   size_t bytes); /* device to device, queued */
FEL_CHECKED fel_status device_read(fel_context *ctx, void *host, const void *from,
                                   size_t bytes); /* waits for the stream */

#endif
