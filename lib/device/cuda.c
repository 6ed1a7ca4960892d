/* The CUDA driver, opened at run time: libcuda.so.1 by the names of its stable API. Each device's primary context is retained once and
 * kept, with the modules loaded in it, until the process ends: it is the one that the runtime API (torch) uses. */
#include "device/internal.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int CUresult; /* 0: success */
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef unsigned long long CUdeviceptr;

enum {
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    ATTRIBUTE_MAJOR = 75,
    ATTRIBUTE_MINOR = 76,
    ATTRIBUTE_POOLS = 115,
    FUNCTION_SHARED_BYTES = 8
};

#define DRIVER_CALLS(X)                                                                                      \
    X(cuInit, "cuInit", (unsigned))                                                                          \
    X(cuDeviceGet, "cuDeviceGet", (CUdevice *, int))                                                         \
    X(cuDeviceGetCount, "cuDeviceGetCount", (int *))                                                         \
    X(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int *, int, CUdevice))                                  \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice))                         \
    X(cuCtxGetCurrent, "cuCtxGetCurrent", (CUcontext *))                                                     \
    X(cuCtxPushCurrent, "cuCtxPushCurrent_v2", (CUcontext))                                                  \
    X(cuCtxPopCurrent, "cuCtxPopCurrent_v2", (CUcontext *))                                                  \
    X(cuModuleLoadData, "cuModuleLoadData", (CUmodule *, const void *))                                      \
    X(cuModuleGetFunction, "cuModuleGetFunction", (CUfunction *, CUmodule, const char *))                    \
    X(cuFuncSetAttribute, "cuFuncSetAttribute", (CUfunction, int, int))                                      \
    X(cuLaunchKernel, "cuLaunchKernel",                                                                      \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,    \
       void **))                                                                                             \
    X(cuMemAlloc, "cuMemAlloc_v2", (CUdeviceptr *, size_t))                                                  \
    X(cuMemFree, "cuMemFree_v2", (CUdeviceptr))                                                              \
    X(cuMemsetD8Async, "cuMemsetD8Async", (CUdeviceptr, unsigned char, size_t, void *))                      \
    X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void *, CUdeviceptr, size_t, void *))                      \
    X(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", (CUdeviceptr, CUdeviceptr, size_t, void *))                 \
    X(cuStreamSynchronize, "cuStreamSynchronize", (void *))                                                  \
    X(cuGetErrorName, "cuGetErrorName", (CUresult, const char **))                                           \
    X(cuGetErrorString, "cuGetErrorString", (CUresult, const char **))

/* Only drivers from CUDA 11.2 on have them. */
#define OPTIONAL_CALLS(X)                                                                                    \
    X(cuMemAllocAsync, "cuMemAllocAsync", (CUdeviceptr *, size_t, void *))                                   \
    X(cuMemFreeAsync, "cuMemFreeAsync", (CUdeviceptr, void *))

static struct {
#define FIELD(name, symbol, arguments)                                                                       \
    CUresult(*name) arguments; /* NOLINT(bugprone-macro-parentheses): declares */
    DRIVER_CALLS(FIELD)
    OPTIONAL_CALLS(FIELD)
#undef FIELD
    char problem[256]; /* why it could not be opened; "": it is open */
    CUresult started;
} driver;

enum { DEVICES_MOST = 64, MODULES_MOST = 32, KERNELS_MOST = 256 };

struct kernel {
    const char *name;
    CUfunction function;
    unsigned shared; /* dynamic shared memory that it has been allowed */
};
struct loaded {
    const struct device_module *module;
    CUmodule handle;
    struct kernel kernels[KERNELS_MOST];
    int kernel_count;
};
struct cuda_device {
    CUcontext context;
    struct loaded *modules[MODULES_MOST];
    int module_count;
    int arch; /* 90 of sm_90 */
    bool open, pools;
};

_Static_assert(sizeof(CUdeviceptr) == sizeof(void *), "addresses of the driver are pointers");

static struct cuda_device devices[DEVICES_MOST];
static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t driver_once = PTHREAD_ONCE_INIT;

/* Data and function pointers differ to the standard; POSIX's dlsym says that this is how to get one from the other. */
static bool find_symbol(void *library, const char *symbol, void *field, size_t size)
{
    void *found = dlsym(library, symbol);
    if (found)
        memcpy(field, &found, size);
    return found != NULL;
}

static void open_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    const char *missing = NULL;
    if (!library) {
        const char *why = dlerror();
        (void)snprintf(driver.problem, sizeof driver.problem, "there is no CUDA driver: %s",
                       why ? why : "libcuda.so.1 was not found");
        return;
    }
#define FIND(name, symbol, arguments)                                                                        \
    if (!find_symbol(library, symbol, &driver.name, sizeof driver.name))                                     \
        missing = symbol;
    DRIVER_CALLS(FIND)
    if (missing) {
        (void)snprintf(driver.problem, sizeof driver.problem, "the CUDA driver is too old: it has no %s",
                       missing);
        return;
    }
    OPTIONAL_CALLS(FIND)
#undef FIND
    driver.started = driver.cuInit(0);
    if (driver.started)
        (void)snprintf(driver.problem, sizeof driver.problem, "the CUDA driver does not start: error %d%s",
                       driver.started, driver.started == 100 ? ", no GPU is visible" : "");
}

static fel_status cuda_fail(CUresult result, const char *what)
{
    const char *name = "unknown error", *text = "";
    if (driver.cuGetErrorName)
        (void)driver.cuGetErrorName(result, &name);
    if (driver.cuGetErrorString)
        (void)driver.cuGetErrorString(result, &text);
    return status_fail(result == CUDA_ERROR_OUT_OF_MEMORY ? FEL_OUT_OF_MEMORY : FEL_CUDA, "%s: %s (%d): %s",
                       what, name ? name : "error", result, text ? text : "");
}

static fel_status open_device(int ordinal, struct cuda_device *device)
{
    CUdevice handle;
    int major = 0, minor = 0, pools = 0;
    CUresult result = driver.cuDeviceGet(&handle, ordinal);
    if (result)
        return status_fail(FEL_NO_CUDA, "options.device: there is no GPU number %d", ordinal);
    result = driver.cuDevicePrimaryCtxRetain(&device->context, handle);
    if (!result)
        result = driver.cuDeviceGetAttribute(&major, ATTRIBUTE_MAJOR, handle);
    if (!result)
        result = driver.cuDeviceGetAttribute(&minor, ATTRIBUTE_MINOR, handle);
    if (result)
        return cuda_fail(result, "the GPU's primary context");
    (void)driver.cuDeviceGetAttribute(&pools, ATTRIBUTE_POOLS, handle);
    device->arch = 10 * major + minor;
    device->pools = pools && driver.cuMemAllocAsync && driver.cuMemFreeAsync;
    device->open = true;
    return FEL_OK;
}

fel_status cuda_open(fel_context *ctx, int ordinal)
{
    (void)pthread_once(&driver_once, open_driver);
    if (*driver.problem)
        return status_fail(FEL_NO_CUDA, "%s", driver.problem);
    if (ordinal < 0 || ordinal >= DEVICES_MOST)
        return status_fail(FEL_INVALID_ARGUMENT,
                           "options.device: expected a GPU's number from 0 to %d, got %d",
                           (int)DEVICES_MOST - 1, ordinal);
    (void)pthread_mutex_lock(&devices_lock);
    struct cuda_device *device = &devices[ordinal];
    const fel_status status = device->open ? FEL_OK : open_device(ordinal, device);
    (void)pthread_mutex_unlock(&devices_lock);
    if (!status)
        ctx->cuda = device;
    return status;
}

/* Makes the primary context current for a few calls; *pushed tells whether it has to be taken off again. */
static fel_status enter(fel_context *ctx, bool *pushed)
{
    CUcontext current = NULL;
    *pushed = false;
    if (ctx->owner != getpid())
        return status_fail(
            FEL_CUDA,
            "the context was made before fork(): CUDA does not survive it, make a context in the child");
    CUresult result = driver.cuCtxGetCurrent(&current);
    if (!result && current != ctx->cuda->context) {
        result = driver.cuCtxPushCurrent(ctx->cuda->context);
        *pushed = !result;
    }
    return result ? cuda_fail(result, "making the GPU's context current") : FEL_OK;
}

static void leave(bool pushed)
{
    CUcontext old;
    if (pushed)
        (void)driver.cuCtxPopCurrent(&old);
}

fel_status cuda_alloc(fel_context *ctx, size_t bytes, void **memory)
{
    CUdeviceptr pointer = 0;
    bool pushed;
    fel_status status = enter(ctx, &pushed);
    if (status)
        return status;
    const CUresult result = ctx->cuda->pools ? driver.cuMemAllocAsync(&pointer, bytes, ctx->stream)
                                             : driver.cuMemAlloc(&pointer, bytes);
    leave(pushed);
    if (result) {
        char what[64];
        (void)snprintf(what, sizeof what, "%zu bytes on the GPU", bytes);
        return cuda_fail(result, what);
    }
    memcpy(memory, &pointer,
           sizeof pointer); /* an address as the driver writes it: a number of a pointer's size */
    return FEL_OK;
}

void cuda_release(fel_context *ctx, void *memory)
{
    bool pushed;
    if (enter(ctx, &pushed) != FEL_OK)
        return;
    const CUdeviceptr pointer = (CUdeviceptr)(uintptr_t)memory;
    (void)(ctx->cuda->pools ? driver.cuMemFreeAsync(pointer, ctx->stream) : driver.cuMemFree(pointer));
    leave(pushed);
}

fel_status cuda_synchronize(fel_context *ctx)
{
    bool pushed;
    fel_status status = enter(ctx, &pushed);
    if (status)
        return status;
    const CUresult result = driver.cuStreamSynchronize(ctx->stream);
    leave(pushed);
    return result ? cuda_fail(result, "the stream") : FEL_OK;
}

/* ---- Modules ---- */

static fel_status load_compiled(fel_context *ctx, const struct device_module *module, CUmodule *handle)
{
    char *image = NULL;
    size_t size = 0;
    fel_status status = nvrtc_compile(ctx, module, ctx->cuda->arch, &image, &size);
    if (status)
        return status;
    const CUresult result = driver.cuModuleLoadData(handle, image);
    free(image);
    return result ? cuda_fail(result, module->name) : FEL_OK;
}

static fel_status load_module(fel_context *ctx, const struct device_module *module, struct loaded *out)
{
    CUresult result = 1;
    if (module->fatbin && ctx->kernels == FEL_KERNELS_AUTO) {
        result = driver.cuModuleLoadData(&out->handle, module->fatbin);
        if (result)
            log_line(1, "%s: the driver takes none of the embedded kernels (error %d); compiling them",
                     module->name, result);
    }
    if (result) {
        const fel_status status = load_compiled(ctx, module, &out->handle);
        if (status)
            return status;
    }
    log_line(2, "%s: kernels loaded for sm_%d", module->name, ctx->cuda->arch);
    out->module = module;
    return FEL_OK;
}

static fel_status find_module(fel_context *ctx, const struct device_module *module, struct loaded **out)
{
    struct cuda_device *device = ctx->cuda;
    for (int i = 0; i < device->module_count; i++)
        if (device->modules[i]->module == module) {
            *out = device->modules[i];
            return FEL_OK;
        }
    if (device->module_count == MODULES_MOST)
        return status_fail(FEL_CUDA, "%s: more than %d modules", module->name, (int)MODULES_MOST);
    struct loaded *loaded = calloc(1, sizeof *loaded);
    if (!loaded)
        return status_fail(FEL_OUT_OF_MEMORY, "%s: %zu bytes were refused", module->name, sizeof *loaded);
    const fel_status status = load_module(ctx, module, loaded);
    if (status) {
        free(loaded);
        return status;
    }
    device->modules[device->module_count++] = *out = loaded;
    return FEL_OK;
}

static fel_status find_kernel(struct loaded *loaded, const char *name, struct kernel **out)
{
    for (int i = 0; i < loaded->kernel_count; i++)
        if (loaded->kernels[i].name == name || strcmp(loaded->kernels[i].name, name) == 0) {
            *out = &loaded->kernels[i];
            return FEL_OK;
        }
    if (loaded->kernel_count == KERNELS_MOST)
        return status_fail(FEL_CUDA, "%s: more than %d kernels", name, (int)KERNELS_MOST);
    struct kernel *kernel = &loaded->kernels[loaded->kernel_count];
    const CUresult result = driver.cuModuleGetFunction(&kernel->function, loaded->handle, name);
    if (result)
        return cuda_fail(result, name);
    kernel->name = name;
    loaded->kernel_count++;
    *out = kernel;
    return FEL_OK;
}

/* A kernel may use more than 48 KiB of dynamic shared memory only once it was told so. */
static fel_status allow_shared(struct kernel *kernel, unsigned bytes)
{
    if (bytes <= 48U << 10 || bytes <= kernel->shared)
        return FEL_OK;
    const CUresult result = driver.cuFuncSetAttribute(kernel->function, FUNCTION_SHARED_BYTES, (int)bytes);
    if (result)
        return cuda_fail(result, kernel->name);
    kernel->shared = bytes;
    return FEL_OK;
}

fel_status device_launch(fel_context *ctx, const struct device_module *module, const char *name,
                         struct launch l, const void *args, size_t size)
{
    bool pushed;
    struct loaded *loaded = NULL;
    struct kernel *kernel = NULL;
    (void)size; /* kernels take one parameter, whose size the driver knows */
    if (!ctx->cuda)
        return status_fail(FEL_WRONG_DEVICE, "%s: the context is on the CPU", name);
    if (!l.grid[0] || !l.grid[1] || !l.grid[2])
        return FEL_OK;
    fel_status status = enter(ctx, &pushed);
    if (status)
        return status;
    (void)pthread_mutex_lock(&devices_lock);
    status = find_module(ctx, module, &loaded);
    if (!status && loaded)
        status = find_kernel(loaded, name, &kernel);
    if (!status && kernel)
        status = allow_shared(kernel, l.shared);
    (void)pthread_mutex_unlock(&devices_lock);
    if (!status && kernel) {
        void *parameters[1];
        memcpy(parameters, &args, sizeof args); /* the driver's signature has no const */
        const CUresult result =
            driver.cuLaunchKernel(kernel->function, l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1],
                                  l.block[2], l.shared, ctx->stream, parameters, NULL);
        if (result)
            status = cuda_fail(result, name);
    }
    leave(pushed);
    return status;
}

fel_status device_fill(fel_context *ctx, void *memory, int byte, size_t bytes)
{
    bool pushed;
    if (!bytes)
        return FEL_OK;
    if (!ctx->cuda) {
        memset(memory, byte, bytes);
        return FEL_OK;
    }
    fel_status status = enter(ctx, &pushed);
    if (status)
        return status;
    const CUresult result =
        driver.cuMemsetD8Async((CUdeviceptr)(uintptr_t)memory, (unsigned char)byte, bytes, ctx->stream);
    leave(pushed);
    return result ? cuda_fail(result, "filling memory") : FEL_OK;
}

fel_status device_copy(fel_context *ctx, void *to, const void *from, size_t bytes)
{
    bool pushed;
    if (!bytes)
        return FEL_OK;
    if (!ctx->cuda) {
        memcpy(to, from, bytes);
        return FEL_OK;
    }
    fel_status status = enter(ctx, &pushed);
    if (status)
        return status;
    const CUresult result = driver.cuMemcpyDtoDAsync((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from,
                                                     bytes, ctx->stream);
    leave(pushed);
    return result ? cuda_fail(result, "copying memory") : FEL_OK;
}

fel_status device_read(fel_context *ctx, void *host, const void *from, size_t bytes)
{
    bool pushed;
    if (!bytes)
        return FEL_OK;
    if (!ctx->cuda) {
        memcpy(host, from, bytes);
        return FEL_OK;
    }
    fel_status status = enter(ctx, &pushed);
    if (status)
        return status;
    CUresult result = driver.cuMemcpyDtoHAsync(host, (CUdeviceptr)(uintptr_t)from, bytes, ctx->stream);
    if (!result)
        result = driver.cuStreamSynchronize(ctx->stream);
    leave(pushed);
    return result ? cuda_fail(result, "reading from the GPU") : FEL_OK;
}
