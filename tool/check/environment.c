/* An installed environment as a profile: what --against compares with, and what 'felloe abi build' makes of a wheel. */
#include "check/check.h"

#include <dirent.h>

enum { FILES_MOST = 20000, LIBRARIES_MOST = 256 };

static bool add_input(arena *a, struct abi_input *inputs, size_t *count, str release,
                      const struct elf_object *object)
{
    struct abi_input *in = &inputs[*count];
    if (*count == LIBRARIES_MOST)
        return false;
    *in = (struct abi_input){.source = {.release = release, .library = str_copy(a, path_base(object->path))},
                             .hashes = object->defined,
                             .count = object->defined_count};
    for (size_t i = 0; i < object->needs.count; i++)
        if (!strs_add(a, &in->source.needs, object->needs.items[i]))
            return false;
    (*count)++;
    return true;
}

bool check_profile_inputs(arena *a, struct check_file *file, str release, struct abi_input **inputs,
                          size_t *count, findings *f)
{
    struct abi_input *items = arena_array(a, struct abi_input, LIBRARIES_MOST);
    size_t n = 0;
    for (size_t i = 0; items && i < file->object_count; i++) {
        const struct elf_object *elf = &file->objects[i].elf;
        if (!str_starts(elf->path, S("torch/lib/")))
            continue;
        if (!add_input(a, items, &n, release, elf))
            return finding_add(f, F006, file->file, "it has more than %d libraries", LIBRARIES_MOST);
    }
    if (n == 0)
        return finding_fatal(f, 3, F001, (struct place){.file = file->file},
                             "there is no torch/lib/*.so in it");
    *inputs = items;
    *count = n;
    return true;
}

/* "2.11.0" of "torch-2.11.0+cu130.dist-info" in a site-packages folder; absent without one. */
static str torch_release(arena *a, str packages)
{
    DIR *dir = opendir(str_c(a, packages));
    str release = {NULL, 0};
    for (const struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        const str name = str_from(e->d_name);
        struct version v;
        if (str_starts(name, S("torch-")) && str_ends(name, S(".dist-info")) &&
            version_parse(a, str_slice(name, 6, name.n - 10), &v))
            release = version_public(a, &v);
    }
    if (dir)
        (void)closedir(dir);
    return release;
}

/* site-packages of a venv, a prefix, or the folder itself. */
static str find_packages(arena *a, str folder)
{
    const str lib = path_join(a, folder, S("lib"));
    if (dir_exists(path_join(a, folder, S("torch/lib"))))
        return folder;
    DIR *dir = opendir(str_c(a, lib));
    str found = {NULL, 0};
    for (const struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        const str packages = path_join(a, path_join(a, lib, str_from(e->d_name)), S("site-packages"));
        if (str_starts(str_from(e->d_name), S("python3")) &&
            dir_exists(path_join(a, packages, S("torch/lib"))))
            found = str_copy(a, packages);
    }
    if (dir)
        (void)closedir(dir);
    return found;
}

bool check_environment(arena *a, str folder, const struct abi *base, const struct abi **out, str *torch,
                       findings *f)
{
    const str packages = find_packages(a, folder);
    struct abi_input *inputs = arena_array(a, struct abi_input, LIBRARIES_MOST);
    struct walk_list libraries = {0};
    size_t count = 0;
    span file;
    struct abi *abi;
    if (!packages.p)
        return finding_fatal(
            f, 3, F001, (struct place){.file = folder},
            "there is no torch/lib in it: expected a virtual environment or a site-packages folder");
    *torch = torch_release(a, packages);
    if (!torch->p)
        return finding_fatal(f, 3, F001, (struct place){.file = packages}, "there is no torch-*.dist-info");
    const str release = str_format(a, "torch %.*s", STR_ARG(*torch)),
              root = path_join(a, packages, S("torch/lib"));
    if (!inputs || !dir_walk(a, root, FILES_MOST, &libraries, f))
        return false;
    for (size_t i = 0; i < libraries.count; i++) {
        struct elf_object object;
        uint64_t size;
        const str name = libraries.items[i].path;
        if (libraries.items[i].is_dir || libraries.items[i].is_link || !str_contains(name, S(".so")))
            continue;
        if (check_read_object(a, path_join(a, root, name), &object, &size, f) &&
            !add_input(a, inputs, &count, release, &object))
            return finding_add(f, F006, root, "it has more than %d libraries", LIBRARIES_MOST);
    }
    if (!abi_write(a, base, inputs, count, &file, f) || !abi_read(a, file, root, &abi, f))
        return false;
    *out = abi;
    return true;
}
