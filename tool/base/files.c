/* Files and folders: bounded reads, atomic writes, walks that follow no link. */
#include "base/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static struct place at_file(str path) { return (struct place){.file = path}; }

/* A NUL in a path would silently name another file. */
static bool path_is_sound(str path, findings *f)
{
    if (path.n > 0 && !str_contains(path, (str){"", 1}))
        return true;
    return finding_fatal(f, 3, F001, at_file(path),
                         path.n ? "the path contains a NUL byte" : "the path is empty");
}

/* An open descriptor of a regular file within the limit, or -1 with a finding. */
static int open_regular(str path, uint64_t limit, struct stat *info, findings *f)
{
    if (!path_is_sound(path, f))
        return -1;
    /* O_NONBLOCK: opening a pipe that nobody writes to must not hang; regular files ignore it. */
    const int fd = open(str_c(f->a, path), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, info) != 0) {
        (void)finding_fatal(f, 3, F001, at_file(path), "cannot be read: %s", strerror(errno));
        if (fd >= 0)
            (void)close(fd);
        return -1;
    }
    if (!S_ISREG(info->st_mode)) {
        (void)finding_fatal(f, 3, F002, at_file(path), "is a %s, a regular file was expected",
                            S_ISDIR(info->st_mode) ? "folder" : "special file");
    } else if ((uint64_t)info->st_size > limit) {
        (void)finding_fatal(f, 3, F003, at_file(path), "has %lld bytes, the limit here is %llu",
                            (long long)info->st_size, (unsigned long long)limit);
    } else {
        return fd;
    }
    (void)close(fd);
    return -1;
}

bool file_read(arena *a, str path, uint64_t limit, span *out, findings *f)
{
    struct stat info;
    const int fd = open_regular(path, limit, &info, f);
    if (fd < 0)
        return false;
    /* Files in /proc claim size 0, and any file may grow while it is read: read to the end, within the limit. */
    struct buf b = {.a = a};
    if (!arena_room_for(a, (void *)&b.items, 0, &b.capacity, 1, (size_t)info.st_size + 1)) {
        (void)close(fd);
        return finding_fatal(f, 3, F006, at_file(path), "does not fit the memory limit");
    }
    ssize_t got = 0;
    do {
        if (b.count + 1 >= b.capacity &&
            !arena_room_for(a, (void *)&b.items, b.count, &b.capacity, 1, 65536)) {
            b.failed = true;
            break;
        }
        got = read(fd, b.items + b.count, b.capacity - b.count - 1);
        if (got > 0)
            b.count += (size_t)got;
    } while ((got > 0 || (got < 0 && errno == EINTR)) && b.count <= limit);
    const int error = errno;
    (void)close(fd);
    if (b.failed)
        return finding_fatal(f, 3, F006, at_file(path), "does not fit the memory limit");
    if (got < 0)
        return finding_fatal(f, 3, F001, at_file(path), "cannot be read: %s", strerror(error));
    if (b.count > limit)
        return finding_fatal(f, 3, F003, at_file(path), "grew past the limit of %llu bytes",
                             (unsigned long long)limit);
    b.items[b.count] = 0;
    *out = (span){(const uint8_t *)b.items, b.count};
    return true;
}

bool file_map(str path, uint64_t limit, span *out, findings *f)
{
    struct stat info;
    const int fd = open_regular(path, limit, &info, f);
    if (fd < 0)
        return false;
    void *bytes = NULL;
    if (info.st_size > 0)
        bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    const int error = errno;
    (void)close(fd);
    if (bytes == MAP_FAILED)
        return finding_fatal(f, 3, F001, at_file(path), "cannot be mapped: %s", strerror(error));
    *out = (span){bytes, (size_t)info.st_size};
    return true;
}

void file_unmap(span s)
{
    if (s.p)
        (void)munmap(unconst(s.p), s.n);
}

static bool write_all(int fd, span content)
{
    for (size_t done = 0; done < content.n;) {
        const ssize_t put = write(fd, content.p + done, content.n - done);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        done += (size_t)put;
    }
    return true;
}

bool file_write(str path, span content, findings *f)
{
    if (!path_is_sound(path, f))
        return false;
    /* Through a link the file that it names is replaced, not the link. */
    char *real = realpath(str_c(f->a, path), NULL);
    const str target = real ? str_copy(f->a, str_from(real)) : path;
    free(real);
    const char *name = str_c(f->a, target);
    const str temporary =
        str_format(f->a, "%.*s/.%.*s.XXXXXX", STR_ARG(path_dir(target)), STR_ARG(path_base(target)));
    char *beside = arena_array(f->a, char, temporary.n + 1);
    if (!beside)
        return finding_fatal(f, 3, F004, at_file(path), "cannot be written: the path is too long");
    memcpy(beside, temporary.p, temporary.n);
    struct stat old;
    const bool replaces = stat(name, &old) == 0;
    const int fd = mkostemp(beside, O_CLOEXEC);
    if (fd < 0)
        return finding_fatal(f, 3, F004, at_file(path), "cannot be written: %s", strerror(errno));
    const mode_t mask = umask(0);
    (void)umask(mask);
    bool well = fchmod(fd, replaces ? old.st_mode & 07777 : 0666 & ~mask) == 0;
    well = write_all(fd, content) && well;
    well = fsync(fd) == 0 && well;
    int error = errno;
    if (close(fd) != 0 && well) {
        error = errno;
        well = false;
    }
    if (well && rename(beside, name) != 0) {
        error = errno;
        well = false;
    }
    if (well)
        return true;
    (void)unlink(beside);
    return finding_fatal(f, 3, F004, at_file(path), "cannot be written: %s", strerror(error));
}

static bool stat_path(str path, struct stat *info)
{
    char name[4096];
    if (path.n == 0 || path.n >= sizeof name || memchr(path.p, 0, path.n))
        return false;
    memcpy(name, path.p, path.n);
    name[path.n] = 0;
    return stat(name, info) == 0;
}

bool file_exists(str path)
{
    struct stat info;
    return stat_path(path, &info) && S_ISREG(info.st_mode);
}

bool dir_exists(str path)
{
    struct stat info;
    return stat_path(path, &info) && S_ISDIR(info.st_mode);
}

bool dir_make(str path, findings *f)
{
    if (!path_is_sound(path, f))
        return false;
    for (size_t end = 1; end <= path.n; end++) {
        if (end < path.n && path.p[end] != '/')
            continue;
        const char *folder = str_c(f->a, str_slice(path, 0, end));
        if (mkdir(folder, 0755) != 0 && errno != EEXIST) {
            const int error = errno;
            if (!dir_exists(str_from(folder))) /* a read-only parent that exists answers EROFS, not EEXIST */
                return finding_fatal(f, 3, F004, at_file(path), "cannot be made: %s", strerror(error));
        }
    }
    if (!dir_exists(path))
        return finding_fatal(f, 3, F004, at_file(path), "cannot be made: a file is in the way");
    return true;
}

str path_join(arena *a, str folder, str name)
{
    if (folder.n == 0 || str_starts(name, S("/")))
        return name;
    struct buf b = {.a = a}; /* not by printf: that would end at a NUL and name another file */
    buf_add(&b, folder);
    if (!str_ends(folder, S("/")))
        buf_char(&b, '/');
    buf_add(&b, name);
    return buf_str(&b);
}

str path_base(str path)
{
    const size_t slash = str_rfind_char(path, '/');
    return slash == SIZE_MAX ? path : str_from_index(path, slash + 1);
}

str path_dir(str path)
{
    const size_t slash = str_rfind_char(path, '/');
    return slash == SIZE_MAX ? S(".") : slash == 0 ? S("/") : str_slice(path, 0, slash);
}

str path_normal(arena *a, str path)
{
    const bool absolute = str_starts(path, S("/"));
    struct strs parts = {0};
    str rest = path, part;
    for (bool more = path.n > 0; more;) {
        more = str_cut(rest, '/', &part, &rest);
        if (part.n == 0 || str_eq(part, S(".")))
            continue;
        const bool up = str_eq(part, S(".."));
        if (up && parts.count > 0 && !str_eq(parts.items[parts.count - 1], S("..")))
            parts.count--;
        else if (!(up && absolute) && !strs_add(a, &parts, part))
            return path;
    }
    const str joined = str_join(a, &parts, S("/"));
    if (absolute)
        return str_format(a, "/%.*s", STR_ARG(joined));
    return joined.n ? joined : S(".");
}

str cache_dir(arena *a, findings *f)
{
    (void)f;
    const char *own = getenv("FELLOE_CACHE");
    if (own && *own)
        return str_from(own);
    const char *base = getenv("XDG_CACHE_HOME");
    if (base && *base == '/') /* the specification: a relative path is invalid and ignored */
        return path_join(a, str_from(base), S("felloe"));
    const char *home = getenv("HOME");
    if (home && *home == '/')
        return path_join(a, str_from(home), S(".cache/felloe"));
    return (str){NULL, 0};
}

static bool left_out(const char *name)
{
    return name[0] == '.' || strcmp(name, "node_modules") == 0 || strcmp(name, "__pycache__") == 0;
}

static int by_name(const void *left, const void *right)
{
    const struct walk_entry *a = left, *b = right;
    return str_cmp(a->path, b->path);
}

static bool read_folder(arena *a, const char *root, str relative, struct walk_list *found)
{
    const str path = relative.n ? path_join(a, str_from(root), relative) : str_from(root);
    DIR *folder = opendir(str_c(a, path));
    if (!folder)
        return false;
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        struct stat info;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(dirfd(folder), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        const bool is_dir = S_ISDIR(info.st_mode);
        if ((is_dir && left_out(entry->d_name)) ||
            !(is_dir || S_ISREG(info.st_mode) || S_ISLNK(info.st_mode)))
            continue;
        if (!arena_room(a, found))
            break;
        const str name = str_from(entry->d_name);
        found->items[found->count++] = (struct walk_entry){
            .path = relative.n ? path_join(a, relative, name) : str_copy(a, name),
            .size = (uint64_t)info.st_size,
            .is_dir = is_dir,
            .is_link = S_ISLNK(info.st_mode),
        };
    }
    (void)closedir(folder);
    if (found->count > 0)
        qsort(found->items, found->count, sizeof *found->items, by_name);
    return true;
}

bool dir_walk(arena *a, str root, size_t limit, struct walk_list *out, findings *f)
{
    const char *top = str_c(a, root);
    struct walk_list pending = {0}; /* a stack of what is still to be listed, next one last */
    struct walk_list found = {0};
    *out = (struct walk_list){0};
    if (!path_is_sound(root, f))
        return false;
    if (!read_folder(a, top, S(""), &found))
        return finding_fatal(f, 3, F001, at_file(root), "cannot be read as a folder: %s", strerror(errno));
    for (;;) {
        for (size_t i = found.count; i > 0; i--) {
            if (!arena_room(a, &pending))
                return finding_fatal(f, 3, F006, at_file(root),
                                     "the folder has too many files for the memory limit");
            pending.items[pending.count++] = found.items[i - 1];
        }
        if (pending.count == 0)
            return true;
        if (out->count >= limit) {
            out->truncated = true;
            return true;
        }
        if (!arena_room(a, out))
            return finding_fatal(f, 3, F006, at_file(root),
                                 "the folder has too many files for the memory limit");
        const struct walk_entry entry = pending.items[--pending.count];
        out->items[out->count++] = entry;
        found = (struct walk_list){0};
        if (entry.is_dir)
            (void)read_folder(a, top, entry.path,
                              &found); /* one that can't be opened is listed and stays closed */
    }
}

static str override_folder;

void data_override(str folder) { override_folder = folder; }

bool data_file(arena *a, const char *name, span *out, str *path, findings *f)
{
    if (override_folder.p) {
        *path = path_join(a, override_folder, str_from(name));
        if (file_exists(*path))
            return file_read(a, *path, FILE_LIMIT_TEXT, out, f);
    }
    *path = str_format(a, "data/%s", name);
    for (const struct embedded_file *file = EMBEDDED_FILES; file->name; file++)
        if (strcmp(file->name, name) == 0) {
            *out = (span){file->bytes, file->size};
            return true;
        }
    return finding_fatal(f, 3, F005, at_file(*path), "is not part of this build");
}
