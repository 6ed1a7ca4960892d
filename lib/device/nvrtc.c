/* Kernels compiled at run time by NVRTC, which torch and every toolkit bring along, and kept on disk under a key of everything that the
 * result depends on. A cache that cannot be used costs a compile, never an error. */
#include "device/internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADERS_MOST = 64, CUBIN_MOST = 256 << 20 };

typedef struct _nvrtcProgram *nvrtcProgram;

#define NVRTC_CALLS(X)                                                                                       \
    X(nvrtcVersion, (int *, int *))                                                                          \
    X(nvrtcCreateProgram,                                                                                    \
      (nvrtcProgram *, const char *, const char *, int, const char *const *, const char *const *))           \
    X(nvrtcCompileProgram, (nvrtcProgram, int, const char *const *))                                         \
    X(nvrtcGetCUBINSize, (nvrtcProgram, size_t *))                                                           \
    X(nvrtcGetCUBIN, (nvrtcProgram, char *))                                                                 \
    X(nvrtcGetProgramLogSize, (nvrtcProgram, size_t *))                                                      \
    X(nvrtcGetProgramLog, (nvrtcProgram, char *))                                                            \
    X(nvrtcDestroyProgram, (nvrtcProgram *))

struct nvrtc {
    void *library;
#define FIELD(name, arguments) int(*name) arguments; /* NOLINT(bugprone-macro-parentheses): declares */
    NVRTC_CALLS(FIELD)
#undef FIELD
    int major, minor;
};

static fel_status nvrtc_open(const fel_context *ctx, struct nvrtc *out)
{
    const char *const names[] = {ctx->nvrtc, getenv("FELLOE_NVRTC"), "libnvrtc.so.13", "libnvrtc.so.12",
                                 "libnvrtc.so"};
    *out = (struct nvrtc){0};
    for (size_t i = 0; i < COUNT(names) && !out->library; i++)
        out->library = names[i] && *names[i] ? dlopen(names[i], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!out->library)
        return status_fail(FEL_CUDA, "kernels have to be compiled and NVRTC is not there: expected "
                                     "libnvrtc.so.13 or .12 (torch installs it; "
                                     "FELLOE_NVRTC may name it)");
#define FIND(name, arguments)                                                                                \
    {                                                                                                        \
        void *found = dlsym(out->library, #name);                                                            \
        if (!found) {                                                                                        \
            (void)dlclose(out->library);                                                                     \
            return status_fail(FEL_CUDA, "NVRTC is too old: it has no " #name);                              \
        }                                                                                                    \
        memcpy(&out->name, &found, sizeof out->name);                                                        \
    }
    NVRTC_CALLS(FIND)
#undef FIND
    (void)out->nvrtcVersion(&out->major, &out->minor);
    return FEL_OK;
}

/* ---- The disk cache ---- */

static void hash_text(uint64_t hash[2], const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c;
         c++) { /* FNV-1a, twice from different starts */
        hash[0] = (hash[0] ^ *c) * 0x100000001b3;
        hash[1] = (hash[1] ^ (*c + 0x51U)) * 0x100000001b3;
    }
    hash[0] = (hash[0] ^ 0xff) * 0x100000001b3;
    hash[1] = (hash[1] ^ 0xfe) * 0x100000001b3;
}

/* The file of a compiled module; false when there is no folder for it. */
static bool cache_file(const fel_context *ctx, const struct device_module *module, int arch,
                       const char *options, const struct nvrtc *nvrtc, char *folder, char *path, size_t size)
{
    uint64_t hash[2] = {0xcbf29ce484222325, 0x84222325cbf29ce4};
    const char *own = getenv("FELLOE_CACHE"), *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char version[32];
    int n = -1;
    if (ctx->cache)
        n = *ctx->cache ? snprintf(folder, size, "%s", ctx->cache) : -1;
    else if (own && *own)
        n = snprintf(folder, size, "%s/kernels", own);
    else if (base && *base == '/')
        n = snprintf(folder, size, "%s/felloe/kernels", base);
    else if (home && *home == '/')
        n = snprintf(folder, size, "%s/.cache/felloe/kernels", home);
    if (n < 0 || (size_t)n >= size)
        return false;
    (void)snprintf(version, sizeof version, "%d.%d", nvrtc->major, nvrtc->minor);
    hash_text(hash, version);
    hash_text(hash, options);
    hash_text(hash, module->source);
    for (const struct device_source *h = module->headers; h->name; h++)
        hash_text(hash, h->text);
    n = snprintf(path, size, "%s/%s-sm_%d-%016llx%016llx.cubin", folder, module->name, arch,
                 (unsigned long long)hash[0], (unsigned long long)hash[1]);
    return n > 0 && (size_t)n < size;
}

static bool cache_read(const char *path, char **image, size_t *size)
{
    static const char ELF[] = "\177ELF";
    struct stat info;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool read_all = false;
    if (fd < 0)
        return false;
    if (fstat(fd, &info) == 0 && info.st_size > 64 && info.st_size < CUBIN_MOST) {
        *size = (size_t)info.st_size;
        *image = malloc(*size);
        read_all = *image && read(fd, *image, *size) == (ssize_t)*size && memcmp(*image, ELF, 4) == 0;
    }
    (void)close(fd);
    if (!read_all) {
        free(*image);
        *image = NULL;
    }
    return read_all;
}

static bool make_folders(const char *folder)
{
    char path[4096];
    if (strlen(folder) >= sizeof path)
        return false;
    for (size_t i = 0;; i++) {
        path[i] = folder[i];
        if (i > 0 && (folder[i] == '/' || !folder[i])) {
            path[i] = 0;
            if (mkdir(path, 0700) != 0 && errno != EEXIST && access(path, X_OK) != 0)
                return false;
            path[i] = folder[i];
        }
        if (!folder[i])
            return true;
    }
}

static void cache_write(const char *folder, const char *path, const char *image, size_t size)
{
    char temporary[4096];
    const int n = snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    if (n < 0 || (size_t)n >= sizeof temporary || !make_folders(folder))
        return;
    const int fd = mkstemp(temporary);
    if (fd < 0) {
        log_line(1, "the kernel cache %s cannot be written: %s", folder, strerror(errno));
        return;
    }
    const bool well = write(fd, image, size) == (ssize_t)size;
    if (close(fd) != 0 || !well || rename(temporary, path) != 0)
        (void)unlink(temporary);
}

/* ---- Compiling ---- */

static fel_status compile_error(const struct nvrtc *nvrtc, nvrtcProgram program, const char *name, int arch,
                                int result)
{
    size_t size = 0;
    char *log = NULL;
    if (program && nvrtc->nvrtcGetProgramLogSize(program, &size) == 0 && size > 1 && size < 1 << 20)
        log = malloc(size);
    if (log && nvrtc->nvrtcGetProgramLog(program, log) != 0)
        *log = 0;
    const fel_status status =
        status_fail(FEL_CUDA, "%s: NVRTC %d.%d cannot compile it for sm_%d (error %d): %.700s", name,
                    nvrtc->major, nvrtc->minor, arch, result, log ? log : "no log");
    free(log);
    return status;
}

static fel_status compile(const struct nvrtc *nvrtc, const struct device_module *module, int arch,
                          const char *arch_option, char **image, size_t *size)
{
    const char *names[HEADERS_MOST], *texts[HEADERS_MOST];
    const char *const options[] = {arch_option, "--std=c++17", "-default-device", "-DFEL_NVRTC=1"};
    nvrtcProgram program = NULL;
    int count = 0;
    for (const struct device_source *h = module->headers; h->name && count < HEADERS_MOST; h++) {
        names[count] = h->name;
        texts[count++] = h->text;
    }
    int result = nvrtc->nvrtcCreateProgram(&program, module->source, module->name, count, texts, names);
    if (!result)
        result = nvrtc->nvrtcCompileProgram(program, (int)COUNT(options), options);
    if (!result)
        result = nvrtc->nvrtcGetCUBINSize(program, size);
    if (!result) {
        *image = malloc(*size ? *size : 1);
        result = *image ? nvrtc->nvrtcGetCUBIN(program, *image) : 1;
    }
    const fel_status status = result ? compile_error(nvrtc, program, module->name, arch, result) : FEL_OK;
    if (program)
        (void)nvrtc->nvrtcDestroyProgram(&program);
    if (status) {
        free(*image);
        *image = NULL;
    }
    return status;
}

fel_status nvrtc_compile(const fel_context *ctx, const struct device_module *module, int arch, char **image,
                         size_t *size)
{
    struct nvrtc nvrtc;
    char option[64], folder[4096], path[4096];
    *image = NULL;
    fel_status status = nvrtc_open(ctx, &nvrtc);
    if (status)
        return status;
    (void)snprintf(option, sizeof option, "--gpu-architecture=sm_%d", arch);
    const bool cached = cache_file(ctx, module, arch, option, &nvrtc, folder, path, sizeof path);
    if (!cached || !cache_read(path, image, size)) {
        log_line(1, "%s: compiling kernels for sm_%d with NVRTC %d.%d", module->name, arch, nvrtc.major,
                 nvrtc.minor);
        status = compile(&nvrtc, module, arch, option, image, size);
        if (!status && cached)
            cache_write(folder, path, *image, *size);
    }
    (void)dlclose(nvrtc.library);
    return status;
}
