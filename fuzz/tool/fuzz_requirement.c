/* Requirements and markers. A text is refused exactly with a place inside it and what was expected; what was read, written
 * out again, reads as the same; parts lie in the input; a marker's value does not depend on its spelling. */
#include <stdio.h>
#include <stdlib.h>

#include "wheel/wheel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct marker_env ENVIRONMENTS[] = {
    {.os_name = S_INIT("posix"),
     .sys_platform = S_INIT("linux"),
     .platform_machine = S_INIT("x86_64"),
     .platform_python_implementation = S_INIT("CPython"),
     .platform_release = S_INIT("6.1.0"),
     .platform_system = S_INIT("Linux"),
     .python_version = S_INIT("3.12"),
     .python_full_version = S_INIT("3.12.12"),
     .implementation_name = S_INIT("cpython"),
     .implementation_version = S_INIT("3.12.12")},
    {.sys_platform = S_INIT("win32"),
     .python_version = S_INIT("3.9"),
     .python_full_version = S_INIT("3.9.0a1+"),
     .extra = S_INIT("A_b")},
};

static void check(bool holds, const char *claim)
{
    if (holds)
        return;
    (void)fprintf(stderr, "does not hold: %s\n", claim);
    abort();
}

static void check_refusal(arena *a, str text, size_t at, const char *expected)
{
    check(expected && *expected && at <= text.n, "a refusal has a place and a reason");
    check(str_is_utf8(parse_error_text(a, text, at, expected)), "its text can be shown");
}

static bool lies_in(str part, str text) { return part.p >= text.p && part.p + part.n <= text.p + text.n; }

static void check_same_marker(arena *a, const struct marker *m, const struct marker *again)
{
    check(str_eq(marker_text(a, m), marker_text(a, again)), "a marker's text is its own text");
    for (size_t i = 0; i < COUNT(ENVIRONMENTS); i++)
        check(marker_holds(a, m, &ENVIRONMENTS[i]) == marker_holds(a, again, &ENVIRONMENTS[i]),
              "a marker's text means the same");
}

static void check_marker(arena *a, str text)
{
    const struct marker *m = NULL, *again = NULL;
    size_t at = SIZE_MAX;
    const char *expected = NULL;
    if (!marker_parse(a, text, &m, &at, &expected)) {
        check_refusal(a, text, at, expected);
        return;
    }
    check(m && !expected, "what is accepted has no reason to be refused");
    check(marker_parse(a, marker_text(a, m), &again, &at, &expected), "a marker's text is a marker");
    check_same_marker(a, m, again);
}

static void check_requirement(arena *a, str text)
{
    struct requirement r, again;
    size_t at = SIZE_MAX;
    const char *expected = NULL;
    if (!requirement_parse(a, text, &r, &at, &expected)) {
        check_refusal(a, text, at, expected);
        return;
    }
    check(!expected, "what is accepted has no reason to be refused");
    check(name_is_valid(r.name) && lies_in(r.name, text), "the name is one, from the input");
    check(!r.url.p || (r.url.n > 0 && lies_in(r.url, text) && r.specs.count == 0), "a URL stands alone");
    for (size_t i = 0; i < r.extras.count; i++)
        check(name_is_valid(r.extras.items[i]) && lies_in(r.extras.items[i], text), "extras are names");
    const str written = requirement_text(a, &r);
    check(requirement_parse(a, written, &again, &at, &expected), "a requirement's text is a requirement");
    check(str_eq(written, requirement_text(a, &again)), "a requirement's text is its own text");
    check(!r.marker == !again.marker, "a marker survives");
    if (r.marker)
        check_same_marker(a, r.marker, again.marker);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    arena *a = arena_new(64 << 20);
    const str text = str_from_span((span){data, size});
    check_requirement(a, text);
    check_marker(a, text);
    arena_free(a);
    return 0;
}
