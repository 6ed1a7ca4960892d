/* Versions and specifiers, one a line. A version's normal form reads back as the same version and is its own normal form;
 * the order is total; a set of clauses is refused exactly with a place inside the text and a word on what was expected; a
 * version satisfies == of itself, never != of itself, and asking for pre-releases only ever adds. */
#include <stdio.h>
#include <stdlib.h>

#include "wheel/wheel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINES_MOST = 4 };

static void check(bool holds, const char *claim)
{
    if (holds)
        return;
    (void)fprintf(stderr, "does not hold: %s\n", claim);
    abort();
}

static void check_normal_form(arena *a, const struct version *v)
{
    struct version again;
    const str normal = version_normal(a, v), local = version_local(a, v);
    check(version_parse(a, normal, &again), "the normal form is a version");
    check(version_compare(v, &again) == 0, "the normal form is the same version");
    check(str_eq(normal, version_normal(a, &again)), "the normal form is its own normal form");
    const str joined = local.p ? str_format(a, "%.*s+%.*s", STR_ARG(version_public(a, v)), STR_ARG(local))
                               : version_public(a, v);
    check(str_eq(normal, joined), "public and local part make up the normal form");
    check(version_is_pre(v) == version_is_pre(&again), "being a pre-release survives");
}

static int sign(int order) { return (order > 0) - (order < 0); }

static void check_order(const struct version *v, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++) {
            check(sign(version_compare(&v[i], &v[k])) == -sign(version_compare(&v[k], &v[i])),
                  "antisymmetry");
            for (size_t m = 0; m < count; m++)
                check(version_compare(&v[i], &v[k]) > 0 || version_compare(&v[k], &v[m]) > 0 ||
                          version_compare(&v[i], &v[m]) <= 0,
                      "transitivity");
        }
}

static void check_own_clauses(arena *a, const struct version *v)
{
    static const struct {
        const char *op;
        bool holds;
    } OPS[] = {{"==", true}, {"!=", false}, {"===", true}};
    for (size_t i = 0; i < COUNT(OPS); i++) {
        struct specs specs;
        size_t at;
        const char *expected;
        const str text = str_format(a, "%s%.*s", OPS[i].op, STR_ARG(v->text));
        check(specs_parse(a, text, &specs, &at, &expected), "a version makes a clause");
        check(specs_contain(&specs, v, true) == OPS[i].holds, "a version equals itself");
    }
}

static void check_specs(arena *a, str text, const struct version *v, size_t count)
{
    struct specs specs;
    size_t at = SIZE_MAX;
    const char *expected = NULL;
    if (!specs_parse(a, text, &specs, &at, &expected)) {
        check(expected && *expected && at <= text.n, "a refusal has a place and a reason");
        (void)parse_error_text(a, text, at, expected);
        return;
    }
    check(!expected, "what is accepted has no reason to be refused");
    for (size_t i = 0; i < specs.count; i++) {
        const str part = specs.items[i].text;
        check(part.p >= text.p && part.p + part.n <= text.p + text.n, "a clause's text lies in the input");
    }
    for (size_t i = 0; i < count; i++)
        check(!specs_contain(&specs, &v[i], false) || specs_contain(&specs, &v[i], true),
              "asking for pre-releases takes nothing away");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    arena *a = arena_new(64 << 20);
    struct version versions[LINES_MOST];
    size_t count = 0;
    str rest = str_from_span((span){data, size}), line;
    while (count < LINES_MOST && str_next_line(&rest, &line))
        if (version_parse(a, line, &versions[count])) {
            check_normal_form(a, &versions[count]);
            check_own_clauses(a, &versions[count]);
            count++;
        }
    check_order(versions, count);
    rest = str_from_span((span){data, size});
    for (size_t i = 0; i < LINES_MOST && str_next_line(&rest, &line); i++)
        check_specs(a, line, versions, count);
    arena_free(a);
    return 0;
}
