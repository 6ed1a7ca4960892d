/* wheel/archive.h: zip archives (APPNOTE 6.3) on disk or behind HTTP, of which only the asked-for members are read, as streams.
 * Own code rather than libzip: members are pushed through as their bytes arrive, several at once, or in file order when a
 * server knows no ranges; libzip pulls, one member at a time, and needs the end of the file first. Stored and deflated
 * members, zip64; no encryption, no other method, no multi-part archives. */
#ifndef FELLOE_WHEEL_ARCHIVE_H
#define FELLOE_WHEEL_ARCHIVE_H

#include "base/base.h"

enum {
    ARCHIVE_MEMBERS_MOST = 1 << 20,
    ARCHIVE_DIRECTORY_MOST = 256 << 20, /* bytes of central directory */
    ARCHIVE_TEXT_MOST = 32 << 20        /* bytes of a member read whole: RECORD of torch has 2 million */
};
#define ARCHIVE_SIZE_MOST (1ULL << 40) /* bytes of an archive, and of one member unpacked */

struct archive_member {
    str name;
    uint64_t offset, end; /* of its local header, and where the next thing starts */
    uint64_t packed, size;
    uint32_t crc;
    uint16_t method;  /* 0 stored, 8 deflated */
    bool sizes_known; /* false only in a walk, until the member has passed */
};

struct archive {
    str where;   /* path or URL, for messages */
    str url;     /* after redirects; absent for a file */
    str etag;    /* absent without one */
    span map;    /* of a file */
    bool mapped; /* map is of a file: what has been read is forgotten again */
    http *http;
    uint64_t size;
    uint64_t bytes_read;          /* over the network, or of the file: what was looked at */
    bool by_range;                /* else only archive_walk reads it, and members are not known before */
    struct archive_member *items; /* in the central directory's order */
    size_t count, capacity;
};

/* Gets a member's bytes, unpacked, in order. False stops the member without an error. */
typedef bool (*archive_sink)(void *context, span bytes);
struct archive_job {
    size_t member; /* index in archive.items */
    archive_sink sink;
    void *context;
    bool whole; /* out: every byte has passed, size and CRC agree */
    str error;  /* out: what is wrong with the member, with its place; absent when nothing is */
};

/* A path, or an http(s) URL when h is not NULL. A stand-in (LFS pointer, HTML page) is F216, a damaged archive F200, with the
 * place; 404 and what else the server says F007. On false, the archive needs no closing. */
bool archive_open(arena *a, http *h, str where, struct archive *out, findings *f);
/* The same of bytes at hand, which must outlive it. */
bool archive_open_bytes(arena *a, str where, span bytes, struct archive *out, findings *f);
void archive_close(struct archive *archive);
/* Tells the kernel that bytes of a mapped file will not be read again soon, so that a large file does not fill the memory. Only
 * for mappings of files: other memory would lose its content. */
void archive_forget(span bytes);
/* SIZE_MAX when there is none. */
size_t archive_find(const struct archive *archive, str name);
/* Runs the jobs: of a file one after the other, over HTTP several at once. Several threads may run jobs of one file; then each
 * gives its own arena. */
void archive_run(arena *a, struct archive *archive, struct archive_job *jobs, size_t count);
/* Reads all of an archive that comes without ranges, in file order. begin gives a job for each member that is wanted, else NULL;
 * done is called after each wanted one. Fills archive.items in the first walk. False after a finding. */
typedef struct archive_job *(*archive_begin)(void *context, const struct archive_member *member,
                                             size_t index);
typedef void (*archive_done)(void *context, struct archive_job *job);
bool archive_walk(arena *a, struct archive *archive, archive_begin begin, archive_done done, void *context,
                  findings *f);

#endif
