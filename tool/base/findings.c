/* The table of findings, and the list that a command fills. */
#include "base/base.h"

#include <stdlib.h>

static const struct finding_kind KINDS[] = {
#define FINDING(code, severity, title, why, fix) {#code, SEVERITY_##severity, title, why, fix},
#include "base/findings.def"
#undef FINDING
};

_Static_assert(COUNT(KINDS) == FINDING_CODES, "one kind a code");

const struct finding_kind *finding_kind(enum finding_code code) { return &KINDS[code]; }

bool finding_by_name(str name, enum finding_code *code)
{
    for (size_t i = 0; i < COUNT(KINDS); i++)
        if (str_eq_nocase(str_from(KINDS[i].code), name)) {
            *code = (enum finding_code)i;
            return true;
        }
    return false;
}

findings *findings_new(arena *a)
{
    findings *f = arena_array(a, findings, 1);
    if (f)
        f->a = a;
    return f;
}

PRINTF_LIKE(5, 0)
static struct finding *add(findings *f, enum finding_code code, struct place place, str subject,
                           const char *format, va_list args)
{
    static _Thread_local struct finding
        lost; /* past the arena's limit: the caller still gets something to write to */
    struct finding *item = &lost;
    if (arena_room(f->a, f))
        item = &f->items[f->count++];
    else
        f->exit_code = 3;
    *item = (struct finding){.code = code,
                             .severity = KINDS[code].severity,
                             .place = place,
                             .subject = subject,
                             .what = str_vformat(f->a, format, args),
                             .why = str_from(KINDS[code].why),
                             .fix = str_from(KINDS[code].fix)};
    return item;
}

bool finding_add(findings *f, enum finding_code code, str file, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)add(f, code, (struct place){.file = file}, (str){NULL, 0}, format, args);
    va_end(args);
    return false;
}

struct finding *finding_at(findings *f, enum finding_code code, struct place place, str subject,
                           const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct finding *item = add(f, code, place, subject, format, args);
    va_end(args);
    return item;
}

bool finding_fatal(findings *f, int exit_code, enum finding_code code, struct place place, const char *format,
                   ...)
{
    va_list args;
    va_start(args, format);
    (void)add(f, code, place, (str){NULL, 0}, format, args);
    va_end(args);
    if (f->exit_code == 0)
        f->exit_code = exit_code;
    return false;
}

bool findings_relabel(findings *f, size_t first, str file)
{
    for (size_t i = first; i < f->count; i++)
        f->items[i].place.file = file;
    return false;
}

bool findings_have_errors(const findings *f)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->items[i].severity == SEVERITY_ERROR)
            return true;
    return false;
}

static int by_place(const void *left, const void *right)
{
    const struct finding *a = left, *b = right;
    const int has_place = (a->place.file.p == NULL) - (b->place.file.p == NULL);
    if (has_place)
        return has_place;
    const int file = str_cmp(a->place.file, b->place.file);
    if (file)
        return file;
    if (a->place.line != b->place.line)
        return a->place.line < b->place.line ? -1 : 1;
    if (a->place.column != b->place.column)
        return a->place.column < b->place.column ? -1 : 1;
    if (a->code != b->code)
        return a->code < b->code ? -1 : 1;
    const int subject = str_cmp(a->subject, b->subject);
    return subject ? subject : str_cmp(a->what, b->what);
}

void findings_sort(findings *f)
{
    if (f->count == 0)
        return;
    qsort(f->items, f->count, sizeof *f->items, by_place);
    size_t kept = 1;
    for (size_t i = 1; i < f->count; i++)
        if (by_place(&f->items[kept - 1], &f->items[i]) != 0)
            f->items[kept++] = f->items[i];
    f->count = kept;
}
