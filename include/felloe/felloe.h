/* felloe/felloe.h: what all operator families of libfelloe share: status codes, messages, tensors, contexts.
 *
 *     fel_context *ctx;
 *     if (fel_context_create(NULL, &ctx) != FEL_OK)
 *         puts(fel_last_error());
 *     ... calls of felloe/raster.h and its kin ...
 *     fel_context_free(ctx);
 *
 * The library links libc, libm, libpthread and libdl. The CUDA driver is opened when the first CUDA context is made, never before: a
 * process that uses CPU contexts only may fork as it likes. */
#ifndef FELLOE_FELLOE_H
#define FELLOE_FELLOE_H

#include <stddef.h>
#include <stdint.h>

#include <felloe/dlpack.h>

#define FEL_VERSION_MAJOR 0
#define FEL_VERSION_MINOR 1
#define FEL_VERSION_PATCH 0

#if defined(__GNUC__)
#define FEL_API __attribute__((visibility("default")))
#define FEL_CHECKED __attribute__((warn_unused_result))
#else
#define FEL_API
#define FEL_CHECKED
#endif
#define FEL_PREVIEW /* may still change in the next release */

#ifdef __cplusplus
extern "C" {
#endif

/* Codes never change. New ones may come in the gaps. */
typedef enum fel_status {
    FEL_OK = 0,
    FEL_INVALID_ARGUMENT = 10, /* NULL, an unknown option, an index out of its range */
    FEL_INVALID_SHAPE = 11,
    FEL_INVALID_DTYPE = 12,
    FEL_WRONG_DEVICE = 13,  /* a tensor does not lie on the context's device */
    FEL_OUT_OF_MEMORY = 20, /* of the host or the device; the message says how much was asked for */
    FEL_OVERFLOW = 21,      /* a result has more elements than its index type holds */
    FEL_CUDA = 30,          /* the driver or the kernel compiler refused; the message has its words */
    FEL_NO_CUDA = 31,       /* there is no driver or no such GPU */
    FEL_IO = 40,            /* a file could not be read or written */
    FEL_MALFORMED = 41      /* a file breaks its format; the message has the offset */
} fel_status;

/* One line about the last failure of a call on this thread: argument, what was expected, what came. "" before the first one. The text
 * stays until the next failure on this thread. */
FEL_API const char *fel_last_error(void);
FEL_API const char *fel_status_name(fel_status status); /* "FEL_INVALID_SHAPE"; never NULL */
FEL_API const char *fel_version(void);                  /* "0.1.0" */

/* The library never prints. log(user, level, text) gets a line for what a developer may want to know (1: kernels compiled, caches that
 * cannot be used; 2: each module loaded); NULL turns it off. Set it before other threads make contexts. */
FEL_API void fel_set_log(void (*log)(void *user, int level, const char *text), void *user);

/* ---- Contexts ----
 * A context names a device, a stream, an allocator and a number of threads. Calls on one context are ordered, as on a stream; different
 * contexts are independent and may be used from different threads. CPU calls return when they are done. CUDA calls return when their
 * kernels are queued, unless a header says that a size has to reach the host. */
typedef struct fel_context fel_context;

typedef struct fel_context_options {
    size_t size; /* sizeof(fel_context_options): fields may be added at the end */

    DLDevice device; /* {kDLCPU, 0} or {kDLCUDA, ordinal} */
    void *stream;    /* a CUstream of the device's primary context; NULL: the legacy default stream */

    /* Memory for scratch and for results whose size is not known before. NULL: the library's own (malloc; on CUDA stream-ordered memory
     * of the driver). allocate returns NULL on failure; bytes > 0; both get `user` and the context's stream. */
    void *(*allocate)(void *user, size_t bytes, void *stream);
    void (*release)(void *user, void *memory, void *stream);
    void *user;

    int32_t threads; /* of CPU calls, this one included; 0: one a processor that the process may run on */
    int32_t kernels; /* FEL_KERNELS_AUTO or FEL_KERNELS_NVRTC */

    /* For NVRTC: the library to open (NULL: the usual names), and the folder for compiled kernels (NULL: $FELLOE_CACHE or
     * $XDG_CACHE_HOME/felloe or ~/.cache/felloe; "": none). Copied. */
    const char *nvrtc;
    const char *cache;
} fel_context_options;

#define FEL_KERNELS_AUTO                                                                                     \
    0 /* the embedded ones; compiled from the embedded source when the driver takes none of them */
#define FEL_KERNELS_NVRTC 1 /* always compiled; so does FELLOE_KERNELS=nvrtc in the environment */

#define FEL_CONTEXT_OPTIONS_INIT                                                                             \
    {                                                                                                        \
        sizeof(fel_context_options), {kDLCPU, 0}, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL                   \
    }

/* options may be NULL: a CPU context. *ctx is NULL on failure. The device's primary context is shared with whoever uses the runtime API
 * (torch), and kept until the process ends.
 * Errors: FEL_INVALID_ARGUMENT, FEL_OUT_OF_MEMORY, FEL_NO_CUDA, FEL_CUDA. */
FEL_API FEL_CHECKED fel_status fel_context_create(const fel_context_options *options, fel_context **ctx);
FEL_API void
fel_context_free(fel_context *ctx); /* NULL is fine; what was allocated through it must be gone before */

/* Later calls go to this stream. The caller orders the two streams where it matters. */
FEL_API void fel_context_set_stream(fel_context *ctx, void *stream);
/* Waits for the context's stream. Errors: FEL_CUDA. */
FEL_API FEL_CHECKED fel_status fel_context_synchronize(fel_context *ctx);

#ifdef __cplusplus
}
#endif

#endif
