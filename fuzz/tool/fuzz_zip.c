/* Archives: by their directory, and in file order. An archive is refused exactly when there is a finding; a member that is read
 * whole has the size and place that the directory gave, inside the input; both ways of reading agree on what they both accept. */
#include <stdio.h>
#include <stdlib.h>

#include "wheel/archive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { UNPACKED_MOST = 8 << 20 /* bytes an input may unpack to: more only costs time */ };

struct sum {
    uint64_t bytes;
};

static void check(bool holds, const char *claim)
{
    if (holds)
        return;
    (void)fprintf(stderr, "does not hold: %s\n", claim);
    abort();
}

static bool add(void *context, span bytes)
{
    struct sum *s = context;
    volatile uint8_t seen = 0; /* a checker sees reads of what is passed on */
    for (size_t i = 0; i < bytes.n; i += 64)
        seen = (uint8_t)(seen ^ bytes.p[i]);
    s->bytes += bytes.n;
    return s->bytes < UNPACKED_MOST;
}

struct walk_state {
    struct sum sum;
    struct archive_job job;
};

static struct archive_job *begin(void *context, const struct archive_member *member, size_t index)
{
    struct walk_state *w = context;
    check(member->name.n > 0, "a member has a name");
    w->sum = (struct sum){0};
    w->job = (struct archive_job){.member = index, .sink = add, .context = &w->sum};
    return index % 3 == 2 ? NULL : &w->job;
}

static void done(void *context, struct archive_job *job)
{
    const struct walk_state *w = context;
    check(!(job->whole && job->error.p), "a member is whole or has an error");
    check(!job->whole || w->sum.bytes < UNPACKED_MOST, "what was stopped is not whole");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    arena *a = arena_new(256 << 20);
    findings *f = findings_new(a);
    struct archive archive;
    const bool opened = archive_open_bytes(a, S("x.whl"), (span){data, size}, &archive, f);
    check(opened == (f->count == 0), "an archive is refused exactly when there is a finding");
    for (size_t i = 0; opened && i < archive.count && i < 64; i++) {
        struct sum sum = {0};
        struct archive_job job = {.member = i, .sink = add, .context = &sum};
        const struct archive_member *m = &archive.items[i];
        archive_run(a, &archive, &job, 1);
        check(m->offset < m->end && m->end <= size, "members lie inside the archive");
        check(!job.whole || sum.bytes == m->size, "a whole member has its size");
        check(!(job.whole && job.error.p), "a member is whole or has an error");
    }
    struct archive in_order = {.where = S("x.whl"), .map = {data, size}, .size = size};
    struct walk_state w;
    findings *g = findings_new(a);
    const bool walked = archive_walk(a, &in_order, begin, done, &w, g);
    check(walked == (g->count == 0), "a walk fails exactly when there is a finding");
    arena_free(a);
    return 0;
}
