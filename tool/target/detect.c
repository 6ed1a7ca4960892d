/* This machine as a target. Nothing is run: Python and torch are read from their files, the toolkit from its version file,
 * the GPUs are asked through NVML or, without it, through libcuda, both opened at run time. */
#include "target/target.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include <gnu/libc-version.h>

enum { DEVICES_MOST = 64 };

static str env_str(arena *a, const char *name)
{
    const char *value = getenv(name);
    return value && *value ? str_copy(a, str_from(value)) : (str){NULL, 0};
}

static str read_text(arena *a, str path, uint64_t limit)
{
    /* Findings about files that need not exist are of no interest. */
    span bytes;
    return file_exists(path) && file_read(a, path, limit, &bytes, findings_new(a)) ? str_from_span(bytes)
                                                                                   : (str){NULL, 0};
}

/* The value of a "key = value" line, or of a "Key: value" one. */
static str line_value(str text, str key, char separator)
{
    str line, head, tail;
    while (str_next_line(&text, &line))
        if (str_cut(line, separator, &head, &tail) && str_eq_nocase(str_trim(head), key))
            return str_trim(tail);
    return (str){NULL, 0};
}

/* ---- Python ---- */

struct python {
    str prefix;           /* of the environment: where its lib/pythonX.Y is */
    str base;             /* of the installation behind a virtual environment; else the same */
    str version;          /* "3.12.3", "3.12"; absent: none found */
    str minor;            /* "3.12" */
    bool system_packages; /* a virtual environment that sees its base's packages */
};

static bool is_minor(str s)
{
    uint64_t n;
    return str_starts(s, S("3.")) && str_to_u64(str_from_index(s, 2), &n) && n < 100;
}

static str minor_of(str version)
{
    str major, rest, minor, patch;
    if (!str_cut(version, '.', &major, &rest))
        return (str){NULL, 0};
    (void)str_cut(rest, '.', &minor, &patch);
    const str both = str_slice(version, 0, major.n + 1 + minor.n);
    return is_minor(both) ? both : (str){NULL, 0};
}

/* "3.12" from the one lib/python3.12 below prefix; the newest when there are several. */
static str minor_below(arena *a, str prefix)
{
    DIR *folder = opendir(str_c(a, path_join(a, prefix, S("lib"))));
    uint64_t best = 0;
    if (!folder)
        return (str){NULL, 0};
    for (const struct dirent *entry;
         (entry = readdir(folder));) { /* NOLINT(concurrency-mt-unsafe): its own stream */
        const str name = str_from(entry->d_name);
        uint64_t n = 0;
        if (str_starts(name, S("python3.")) && str_to_u64(str_from_index(name, 8), &n) && n < 100 &&
            n > best && file_exists(str_format(a, "%.*s/lib/%s/os.py", STR_ARG(prefix), entry->d_name)))
            best = n;
    }
    (void)closedir(folder);
    return best ? str_format(a, "3.%u", (unsigned)best) : (str){NULL, 0};
}

/* 3.12.3 from the headers, when they are installed. */
static str patch_level(arena *a, str prefix, str minor)
{
    str text = read_text(
        a, str_format(a, "%.*s/include/python%.*s/patchlevel.h", STR_ARG(prefix), STR_ARG(minor)), 1 << 20);
    str line;
    while (str_next_line(&text, &line)) {
        str head, value;
        if (str_contains(line, S("define PY_VERSION ")) && str_cut(line, '"', &head, &value) &&
            str_cut(value, '"', &value, &head))
            return value;
    }
    return minor;
}

/* A script in the interpreter's place (pyenv's shims): the interpreter that it would start, by the file that it reads; absent
 * for any other script. */
static str behind_shim(arena *a, str path)
{
    const str text = read_text(a, path, 1 << 20);
    const str root = path_dir(path_dir(path));
    if (!str_starts(text, S("#!")) || !str_ends(path_dir(path), S("/shims")))
        return (str){NULL, 0};
    str version = env_str(a, "PYENV_VERSION"), ignored;
    if (!version.p)
        version = read_text(a, path_join(a, root, S("version")), 4096);
    (void)str_cut(version, '\n', &version, &ignored);
    (void)str_cut(version, ':', &version, &ignored); /* several: the first */
    return str_format(a, "%.*s/versions/%.*s/bin/python3", STR_ARG(root), STR_ARG(str_trim(version)));
}

static bool is_script(arena *a, str path)
{
    span start;
    if (!file_map(path, UINT64_MAX, &start, findings_new(a)))
        return false;
    const bool script = start.n > 2 && start.p[0] == '#' && start.p[1] == '!';
    file_unmap(start);
    return script;
}

/* The program as PATH finds it; scripts in place of a binary are looked through or passed over. */
static str on_path(arena *a, str program, bool binary)
{
    str rest = env_str(a, "PATH"), folder;
    for (bool more = rest.p != NULL; more;) {
        str tail;
        more = str_cut(rest, ':', &folder, &tail);
        rest = tail;
        str path = path_join(a, folder, program);
        if (binary && folder.n && file_exists(path) && is_script(a, path))
            path = behind_shim(a, path);
        if (folder.n && path.n && file_exists(path))
            return path;
    }
    return (str){NULL, 0};
}

static str real_path(arena *a, str path)
{
    char *resolved = realpath(str_c(a, path), NULL);
    const str result = resolved ? str_copy(a, str_from(resolved)) : path;
    free(resolved);
    return result;
}

static void find_python(arena *a, struct python *out)
{
    str executable;
    const str venv = env_str(a, "VIRTUAL_ENV");
    if (venv.p)
        executable = path_join(a, venv, S("bin/python3"));
    else
        executable = on_path(a, S("python3"), true);
    if (!executable.p || !file_exists(executable))
        return;
    out->prefix = path_dir(path_dir(executable));
    const str config = read_text(a, path_join(a, out->prefix, S("pyvenv.cfg")), 1 << 20);
    if (config.p) {
        str version = line_value(config, S("version"), '=');
        if (!version.p)
            version = line_value(config, S("version_info"), '=');
        out->minor = minor_of(version);
        out->version = version;
        const str home = line_value(config, S("home"), '=');
        out->base = home.p ? path_dir(home) : out->prefix;
        out->system_packages =
            str_eq_nocase(line_value(config, S("include-system-site-packages"), '='), S("true"));
    } else {
        const str real = real_path(a, executable);
        const str name = path_base(real); /* "python3.12" */
        out->prefix = out->base = path_dir(path_dir(real));
        if (str_starts(name, S("python")) && is_minor(str_from_index(name, 6)))
            out->minor = str_from_index(name, 6);
        else
            out->minor = minor_below(a, out->prefix);
        out->version = out->minor.p ? patch_level(a, out->base, out->minor) : out->minor;
    }
    if (!out->minor.p)
        out->version = (str){NULL, 0};
}

/* ---- torch ---- */

static void package_folders(arena *a, const struct python *python, struct strs *out)
{
    const str m = python->minor;
    (void)strs_add(a, out,
                   str_format(a, "%.*s/lib/python%.*s/site-packages", STR_ARG(python->prefix), STR_ARG(m)));
    const bool shared = str_eq(python->prefix, python->base) || python->system_packages;
    if (!shared)
        return;
    const str home = env_str(a, "HOME");
    if (home.p)
        (void)strs_add(a, out,
                       str_format(a, "%.*s/.local/lib/python%.*s/site-packages", STR_ARG(home), STR_ARG(m)));
    (void)strs_add(a, out,
                   str_format(a, "%.*s/lib/python%.*s/site-packages", STR_ARG(python->base), STR_ARG(m)));
    (void)strs_add(
        a, out, str_format(a, "%.*s/local/lib/python%.*s/dist-packages", STR_ARG(python->base), STR_ARG(m)));
    (void)strs_add(a, out, str_format(a, "%.*s/lib/python3/dist-packages", STR_ARG(python->base)));
}

/* "cuda: Optional[str] = '13.0'" of torch/version.py; the file is read, not run. */
static str torch_cuda(arena *a, str folder)
{
    str text = read_text(a, path_join(a, folder, S("torch/version.py")), 1 << 20), line;
    while (str_next_line(&text, &line)) {
        str head, value, rest;
        if (!str_starts(line, S("cuda")) || !str_cut(line, '=', &head, &value))
            continue;
        value = str_trim(value);
        if (value.n >= 2 && (value.p[0] == '\'' || value.p[0] == '"') &&
            str_cut(str_from_index(value, 1), value.p[0], &value, &rest))
            return value;
    }
    return (str){NULL, 0};
}

static bool find_torch(arena *a, const struct python *python, struct torch_offer *out)
{
    struct strs folders = {0};
    package_folders(a, python, &folders);
    for (size_t i = 0; i < folders.count; i++) {
        DIR *folder = opendir(str_c(a, folders.items[i]));
        if (!folder)
            continue;
        bool found = false;
        for (const struct dirent *entry;
             !found && (entry = readdir(folder));) { /* NOLINT(concurrency-mt-unsafe) */
            const str name = str_from(entry->d_name);
            if (!str_starts(name, S("torch-")) || !str_ends(name, S(".dist-info")))
                continue;
            const str file = str_format(a, "%.*s/%s/METADATA", STR_ARG(folders.items[i]), entry->d_name);
            const str version = line_value(read_text(a, file, 4 << 20), S("Version"), ':');
            str local;
            found = version.n > 0;
            if (found)
                (void)str_cut(str_copy(a, version), '+', &out->version, &local);
        }
        (void)closedir(folder);
        if (found) {
            out->cuda = torch_cuda(a, folders.items[i]);
            return true;
        }
    }
    return false;
}

/* ---- the toolkit ---- */

static str toolkit_version(arena *a, str home)
{
    const str json = read_text(a, path_join(a, home, S("version.json")), 1 << 20);
    json_t *root = json.p ? json_loadb(json.p, json.n, 0, NULL) : NULL;
    const char *text = json_string_value(json_object_get(json_object_get(root, "cuda"), "version"));
    str version = text ? str_copy(a, str_from(text)) : (str){NULL, 0};
    json_decref(root);
    str header = version.p ? version : read_text(a, path_join(a, home, S("include/cuda.h")), 8 << 20), line;
    while (!version.p && str_next_line(&header, &line)) {
        uint64_t number = 0;
        if (str_starts(line, S("#define CUDA_VERSION")) &&
            str_to_u64(str_trim(str_from_index(line, S("#define CUDA_VERSION").n)), &number))
            version = str_format(a, "%u.%u", (unsigned)(number / 1000), (unsigned)(number % 1000 / 10));
    }
    str major, rest, minor, patch;
    if (!version.p || !str_cut(version, '.', &major, &rest))
        return (str){NULL, 0};
    (void)str_cut(rest, '.', &minor, &patch);
    return str_slice(version, 0, major.n + 1 + minor.n);
}

static void find_toolkit(arena *a, struct target *t)
{
    const char *const names[] = {"CUDA_HOME", "CUDA_PATH"};
    struct strs homes = {0};
    for (size_t i = 0; i < COUNT(names); i++)
        if (env_str(a, names[i]).p)
            (void)strs_add(a, &homes, env_str(a, names[i]));
    const str nvcc = on_path(a, S("nvcc"), false);
    if (nvcc.p)
        (void)strs_add(a, &homes, path_dir(path_dir(real_path(a, nvcc))));
    (void)strs_add(a, &homes, S("/usr/local/cuda"));
    for (size_t i = 0; i < homes.count; i++) {
        if (!file_exists(path_join(a, homes.items[i], S("bin/nvcc"))))
            continue;
        t->cuda_home = homes.items[i];
        t->cuda = toolkit_version(a, homes.items[i]);
        t->compiler_at_build = t->compiler_at_run = true;
        return;
    }
}

/* ---- GPUs ---- */

/* dlsym gives a data pointer; POSIX says that it converts to a function pointer by its bytes. */
static bool resolve(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static void add_device(arena *a, struct target *t, str name, int major, int minor, double gigabytes)
{
    const str arch = str_format(a, "sm_%d%d", major, minor);
    if (!strs_has(&t->archs, arch))
        (void)strs_add(a, &t->archs, arch);
    if (t->size_count < DEVICES_MOST)
        t->sizes[t->size_count++] =
            (struct gpu_size){.name = name, .memory_gb = gigabytes, .quota_factor = 1};
}

static double cuda_version_of(int number)
{
    return number / 1000 + number % 1000 / 10 / 10.0; /* NOLINT(bugprone-integer-division): 13020 is 13.2 */
}

struct nvml_memory {
    unsigned long long total, free, used;
};

static bool ask_nvml(arena *a, struct target *t)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*start)(void), (*stop)(void), (*cuda)(int *), (*count)(unsigned *), (*handle)(unsigned, void **);
    int (*name)(void *, char *, unsigned), (*capability)(void *, int *, int *);
    int (*memory)(void *, struct nvml_memory *);
    if (!library)
        return false;
    bool well = resolve(library, "nvmlInit_v2", &start) && resolve(library, "nvmlShutdown", &stop) &&
                resolve(library, "nvmlSystemGetCudaDriverVersion_v2", &cuda) &&
                resolve(library, "nvmlDeviceGetCount_v2", &count) &&
                resolve(library, "nvmlDeviceGetHandleByIndex_v2", &handle) &&
                resolve(library, "nvmlDeviceGetName", &name) &&
                resolve(library, "nvmlDeviceGetCudaComputeCapability", &capability) &&
                resolve(library, "nvmlDeviceGetMemoryInfo", &memory) && start() == 0;
    if (well) {
        int version = 0;
        unsigned devices = 0;
        if (cuda(&version) == 0)
            t->driver_cuda = cuda_version_of(version);
        (void)count(&devices);
        for (unsigned i = 0; i < devices && i < DEVICES_MOST; i++) {
            void *device = NULL;
            char text[128] = "";
            int major = 0, minor = 0;
            struct nvml_memory bytes = {0};
            if (handle(i, &device) != 0 || capability(device, &major, &minor) != 0)
                continue;
            (void)name(device, text, sizeof text);
            text[sizeof text - 1] = 0;
            (void)memory(device, &bytes);
            add_device(a, t, str_copy(a, str_from(text)), major, minor, (double)bytes.total / 1e9);
        }
        (void)stop();
    }
    (void)dlclose(library);
    return well;
}

static bool ask_driver(arena *a, struct target *t)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*version)(int *), (*init)(unsigned), (*count)(int *), (*device)(int *, int),
        (*name)(char *, int, int);
    int (*attribute)(int *, int, int), (*memory)(size_t *, int);
    enum { CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76 }; /* of CUdevice_attribute */
    if (!library)
        return false;
    bool well = resolve(library, "cuDriverGetVersion", &version) && resolve(library, "cuInit", &init) &&
                resolve(library, "cuDeviceGetCount", &count) && resolve(library, "cuDeviceGet", &device) &&
                resolve(library, "cuDeviceGetName", &name) &&
                resolve(library, "cuDeviceGetAttribute", &attribute) &&
                resolve(library, "cuDeviceTotalMem_v2", &memory);
    int number = 0, devices = 0;
    if (well && version(&number) == 0)
        t->driver_cuda = cuda_version_of(number);
    if (well && init(0) == 0 && count(&devices) == 0)
        for (int i = 0; i < devices && i < DEVICES_MOST; i++) {
            int handle = 0, major = 0, minor = 0;
            char text[128] = "";
            size_t bytes = 0;
            if (device(&handle, i) != 0 || attribute(&major, CAPABILITY_MAJOR, handle) != 0 ||
                attribute(&minor, CAPABILITY_MINOR, handle) != 0)
                continue;
            (void)name(text, (int)sizeof text - 1, handle);
            (void)memory(&bytes, handle);
            add_device(a, t, str_copy(a, str_from(text)), major, minor, (double)bytes / 1e9);
        }
    return well; /* the library stays open: after cuInit it cannot be unloaded safely */
}

/* ---- C and C++ libraries ---- */

/* The highest PREFIX.N.N among the texts of a library: they stand in its table of version names. */
static str highest_version(arena *a, span bytes, str prefix)
{
    uint64_t best[3] = {0, 0, 0};
    bool found = false;
    const uint8_t *end = bytes.p + bytes.n;
    for (const uint8_t *p = bytes.p; (p = memmem(p, (size_t)(end - p), prefix.p, prefix.n));) {
        p += prefix.n;
        uint64_t parts[3] = {0, 0, 0};
        size_t k = 0;
        const uint8_t *q = p;
        for (; q < end && k < 3; q++) {
            if (*q >= '0' && *q <= '9' && parts[k] < 100000)
                parts[k] = parts[k] * 10 + (uint64_t)(*q - '0');
            else if (*q == '.')
                k++;
            else
                break;
        }
        if (q == end || *q != 0 || q == p)
            continue;
        size_t i = 0;
        while (i < 2 && parts[i] == best[i])
            i++;
        if (!found || parts[i] > best[i]) {
            memcpy(best, parts, sizeof best);
            found = true;
        }
    }
    return found ? str_format(a, "%u.%u.%u", (unsigned)best[0], (unsigned)best[1], (unsigned)best[2])
                 : (str){NULL, 0};
}

static void find_libraries(arena *a, struct target *t, findings *f)
{
    static const char *const FOLDERS[] = {"/lib/x86_64-linux-gnu",
                                          "/usr/lib/x86_64-linux-gnu",
                                          "/lib/aarch64-linux-gnu",
                                          "/usr/lib/aarch64-linux-gnu",
                                          "/lib64",
                                          "/usr/lib64",
                                          "/usr/lib",
                                          "/lib"};
    static const char *const SONAMES[] = {
        "libstdc++.so.6", "libgcc_s.so.1", "libz.so.1",    "libexpat.so.1", "libGL.so.1",  "libEGL.so.1",
        "libSM.so.6",     "libXext.so.6",  "libgomp.so.1", "libX11.so.6",   "libGLX.so.0", "libXrender.so.1"};
    for (size_t i = 0; i < COUNT(SONAMES); i++)
        for (size_t k = 0; k < COUNT(FOLDERS); k++) {
            const str path = str_format(a, "%s/%s", FOLDERS[k], SONAMES[i]);
            if (!file_exists(path))
                continue;
            (void)strs_add(a, &t->libraries, str_from(SONAMES[i]));
            span bytes;
            if (i == 0 && file_map(path, 256 << 20, &bytes, f)) {
                t->glibcxx = highest_version(a, bytes, S("GLIBCXX_"));
                t->cxxabi = highest_version(a, bytes, S("CXXABI_"));
                file_unmap(bytes);
            }
            break;
        }
}

bool target_detect(arena *a, struct target *out, findings *f)
{
    struct target t = {
        .name = S("this"), .description = S("this machine"), .source = S("read from its files")};
    t.sizes = arena_array(a, struct gpu_size, DEVICES_MOST);
    t.torch = arena_array(a, struct torch_offer, 1);
    struct yaml *raw = arena_array(a, struct yaml, 1);
    if (!t.sizes || !t.torch || !raw)
        return finding_fatal(f, 3, F006, (struct place){0}, "no room to describe this machine");
    raw->kind = YAML_MAP; /* an entry without further keys */
    t.raw = raw;

    struct utsname system;
    t.machine = uname(&system) == 0 ? str_copy(a, str_from(system.machine)) : S("x86_64");
    t.glibc = str_copy(a, str_from(gnu_get_libc_version()));
    find_libraries(a, &t, f);

    struct python python = {0};
    find_python(a, &python);
    if (python.version.p) {
        (void)strs_add(a, &t.pythons, python.version);
        t.python_default = python.minor;
        if (find_torch(a, &python, &t.torch[0])) {
            t.torch_count = 1;
            t.torch_default = t.torch[0].version;
        }
    } else {
        (void)finding_at(f, F131, (struct place){0}, S("python3"),
                         "no python3 on PATH or in VIRTUAL_ENV whose version its files tell");
    }
    find_toolkit(a, &t);
    if (!ask_nvml(a, &t) || !t.size_count)
        (void)ask_driver(a, &t);
    t.gpu_at_build = t.gpu_at_import = t.size_count > 0;
    if (t.size_count)
        t.size_default = t.sizes[0].name;
    *out = t;
    return true;
}
