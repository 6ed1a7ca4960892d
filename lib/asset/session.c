/* asset/session.c: a private folder for the files that one session hands out. */
#include "asset/asset.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fel_session {
    char *folder;
    atomic_uint_least64_t count;
};

fel_status fel_session_open(const char *root, fel_session **session)
{
    if (!session)
        return status_fail(FEL_INVALID_ARGUMENT, "session: expected a pointer, got NULL");
    if (!root)
        root = getenv("TMPDIR");
    if (!root || !*root)
        root = "/tmp";
    const size_t room = strlen(root) + sizeof "/felloe-XXXXXX";
    fel_session *s = calloc(1, sizeof *s);
    char *folder = malloc(room);
    if (!s || !folder) {
        free(s);
        free(folder);
        return status_fail(FEL_OUT_OF_MEMORY, "%zu bytes could not be allocated", room);
    }
    snprintf(folder, room, "%s/felloe-XXXXXX", root);
    if (!mkdtemp(folder)) { /* mode 0700, and fails rather than follow or share what is there */
        const fel_status status = status_fail(FEL_IO, "%s: %s", root, strerror(errno));
        free(s);
        free(folder);
        return status;
    }
    s->folder = folder;
    *session = s;
    return FEL_OK;
}

/* Copies what is harmless in a file name, at most `most` bytes; returns how many. */
static size_t keep_harmless(const char *text, size_t most, char *out)
{
    size_t length = 0;
    for (; text && *text && length < most; text++) {
        const char c = *text;
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
            c == '_')
            out[length++] = c;
    }
    out[length] = '\0';
    return length;
}

fel_status fel_session_path(fel_session *session, const char *stem, const char *suffix, char *path,
                            size_t size)
{
    if (!session || !path)
        return status_fail(FEL_INVALID_ARGUMENT, "expected pointers, got NULL");
    char name[65], ending[17];
    if (!keep_harmless(stem, sizeof name - 1, name))
        memcpy(name, "file", sizeof "file");
    const size_t dotted = keep_harmless(suffix, sizeof ending - 1, ending);
    const unsigned long long number = atomic_fetch_add(&session->count, 1) + 1;
    const int length =
        snprintf(path, size, "%s/%s-%llu%s%s", session->folder, name, number, dotted ? "." : "", ending);
    if (length < 0 || (size_t)length >= size)
        return status_fail(FEL_INVALID_ARGUMENT, "path: expected room for %d bytes, got %zu", length + 1,
                           size);
    return FEL_OK;
}

void fel_session_close(fel_session *session)
{
    if (!session)
        return;
    DIR *folder = opendir(session->folder);
    if (folder) {
        /* by name inside the open folder: a link is removed, not followed */
        for (const struct dirent *entry; (entry = readdir(folder));)
            if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                (void)unlinkat(dirfd(folder), entry->d_name, 0);
        closedir(folder);
        (void)rmdir(session->folder);
    }
    free(session->folder);
    free(session);
}
