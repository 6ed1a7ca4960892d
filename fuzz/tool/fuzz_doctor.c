/* Any bytes as a log. The first byte cuts them into pieces; one piece and many must give the same causes, every line lies in the log
 * and every excerpt is UTF-8. */
#include <stdlib.h>

#include "doctor/doctor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static arena *kept; /* for the life of the process */
static struct knowledge *known;

/* The patterns are compiled once, outside the time of any input. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    kept = arena_new(0);
    known = knowledge_load(kept, findings_new(kept));
    return 0;
}

static bool look(arena *a, span bytes, size_t piece, struct cause_list *out, size_t *lines)
{
    struct doctor *d = doctor_new(a, known, NULL);
    for (size_t at = 0; at < bytes.n; at += piece)
        doctor_feed(d, (span){bytes.p + at, bytes.n - at < piece ? bytes.n - at : piece});
    const bool good = doctor_end(d, S("log"), findings_new(a));
    *lines = doctor_lines(d);
    doctor_causes(a, d, out);
    doctor_free(d);
    return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!known)
        (void)LLVMFuzzerInitialize(NULL, NULL);
    if (!known || size == 0)
        return 0;
    arena *a = arena_new(0);
    struct cause_list whole, pieces;
    size_t whole_lines, pieces_lines;
    const span bytes = {data + 1, size - 1};
    const bool good = look(a, bytes, size, &whole, &whole_lines);
    if (look(a, bytes, 1 + data[0] % 61, &pieces, &pieces_lines) != good)
        abort();
    if (!good) { /* how much of a damaged gzip stream comes out before the damage depends on the pieces */
        arena_free(a);
        return 0;
    }
    if (whole.count != pieces.count || whole_lines != pieces_lines)
        abort();
    for (size_t i = 0; i < whole.count; i++) {
        const struct cause *c = &whole.items[i];
        if (!str_eq(c->label, pieces.items[i].label) || c->line != pieces.items[i].line)
            abort();
        if (c->line == 0 || c->line > whole_lines || !str_is_utf8(c->excerpt) || !str_is_utf8(c->what))
            abort();
    }
    arena_free(a);
    return 0;
}
