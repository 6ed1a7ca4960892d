/* Versions and specifiers. Judge: PEP 440's own examples and rules; differential.py compares many more with `packaging`. */
#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

#include "wheel/wheel.h"

static arena *memory;

static int start(void **state)
{
    (void)state;
    memory = arena_new(0);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    arena_free(memory);
    return 0;
}

static struct version version_of(const char *text)
{
    struct version v = {.epoch = 0};
    if (!version_parse(memory, str_from(text), &v))
        fail_msg("'%s' was refused", text);
    return v;
}

static struct specs specs_of(const char *text)
{
    struct specs specs = {.count = 0};
    size_t at = 0;
    const char *expected = "";
    if (!specs_parse(memory, str_from(text), &specs, &at, &expected))
        fail_msg("'%s' was refused: expected %s", text, expected);
    return specs;
}

#define assert_text(expected, got)                                                                           \
    do {                                                                                                     \
        const str got_text = (got);                                                                          \
        assert_string_equal(expected, str_c(memory, got_text));                                              \
    } while (0)

static void spellings_have_one_normal_form(void **state)
{
    (void)state;
    static const char *const FORMS[][2] = {
        {"1.0", "1.0"},
        {" v1.0\n", "1.0"},
        {"1.0-ALPHA.1", "1.0a1"},
        {"1.0preview", "1.0rc0"},
        {"1.0c.2", "1.0rc2"},
        {"1.0-1", "1.0.post1"},
        {"1.0-r_4", "1.0.post4"},
        {"1.0DEV", "1.0.dev0"},
        {"2!1.02.dev3", "2!1.2.dev3"},
        {"1.0a.post.1.dev-2", "1.0a0.post1.dev2"},
        {"2.11.0+CU130-torch_2", "2.11.0+cu130.torch.2"},
        {"1+007", "1+7"},
        {"1+99999999999999999999999999", "1+99999999999999999999999999"},
    };
    for (size_t i = 0; i < COUNT(FORMS); i++) {
        const struct version v = version_of(FORMS[i][0]);
        assert_text(FORMS[i][1], version_normal(memory, &v));
    }
}

static void public_and_local_parts_come_apart(void **state)
{
    (void)state;
    const struct version with = version_of("1!2.8.0rc1+cu12torch2.6cxx11abiFALSE"),
                         without = version_of("2.8");
    assert_text("1!2.8.0rc1", version_public(memory, &with));
    assert_text("cu12torch2.6cxx11abifalse", version_local(memory, &with));
    assert_null(version_local(memory, &without).p);
}

static void what_is_no_version_is_refused_and_leaves_the_result_alone(void **state)
{
    (void)state;
    static const char *const BROKEN[] = {
        "",
        "v",
        "1.",
        ".1",
        "1..2",
        "1.0+",
        "1.0+a..b",
        "1.0+a.",
        "1.0+\xc3\xa9",
        "!1",
        "1!",
        "1.0 a",
        "1.0a1b2",
        "1-",
        "1.0++a",
        "1.0%2Bcu1",
        "latest",
        "1.0post1post2",
        "1.0*",
        "1.0.dev1a1",
        "99999999999999999999",
        "1.0.dev99999999999999999999",
    };
    for (size_t i = 0; i < COUNT(BROKEN); i++) {
        struct version v = {.epoch = 7};
        assert_false(version_parse(memory, str_from(BROKEN[i]), &v));
        assert_int_equal(7, v.epoch);
    }
    struct version v = {.epoch = 7};
    assert_false(version_parse(memory, S("1.0\0"), &v));
    assert_false(version_parse(memory, (str){NULL, 0}, &v));
}

/* PEP 440, "Summary of permitted suffixes and relative ordering", and the order of local versions. */
static void the_order_is_that_of_the_pep(void **state)
{
    (void)state;
    static const char *const ORDER[] = {
        "1.dev0",
        "1.0.dev456",
        "1.0a1",
        "1.0a2.dev456",
        "1.0a12.dev456",
        "1.0a12",
        "1.0b1.dev456",
        "1.0b2",
        "1.0b2.post345.dev456",
        "1.0b2.post345",
        "1.0rc1.dev456",
        "1.0rc1",
        "1.0",
        "1.0+abc.5",
        "1.0+abc.7",
        "1.0+abc.7.1",
        "1.0+5",
        "1.0+10",
        "1.0.post456.dev34",
        "1.0.post456",
        "1.0.15",
        "1.1.dev1",
        "2.9",
        "2.10",
        "1!0.1",
    };
    for (size_t i = 0; i < COUNT(ORDER); i++)
        for (size_t k = 0; k < COUNT(ORDER); k++) {
            const struct version v = version_of(ORDER[i]), w = version_of(ORDER[k]);
            const int order = version_compare(&v, &w);
            if ((order > 0) - (order < 0) != (i > k) - (i < k))
                fail_msg("%s against %s: %d", ORDER[i], ORDER[k], order);
        }
}

static void trailing_zeros_and_spelling_do_not_matter_to_equality(void **state)
{
    (void)state;
    static const char *const SAME[][2] = {
        {"2.8", "2.8.0.0"}, {"1.0a", "1.0.alpha-0"}, {"1.0+Ab_1", "1+ab.01"}, {"1.0-0", "1.post"}};
    for (size_t i = 0; i < COUNT(SAME); i++) {
        const struct version v = version_of(SAME[i][0]), w = version_of(SAME[i][1]);
        assert_int_equal(0, version_compare(&v, &w));
    }
}

static void clauses_mean_what_the_pep_says(void **state)
{
    (void)state;
    static const struct {
        const char *specs, *version;
        bool in;
    } CASES[] = {
        {"==2.11.0", "2.11.0+cu130", true}, /* a local version is ignored when the clause has none */
        {"==2.11.0+cu130", "2.11.0", false},
        {"==2.11.0+cu130", "2.11.0+CU130", true},
        {"!=2.11.0", "2.11.0+cu130", false},
        {"<=2.11.0", "2.11.0+cu130", true},
        {">=2.11.0", "2.11.0+cu130", true},
        {">2.11.0", "2.11.0+cu130", false},
        {">1.7", "1.7.0.post1", false},
        {">1.7", "1.7.1", true},
        {">1.7.post2", "1.7.post3", true},
        {">1.7.post2", "1.7.0", false},
        {"<1.7", "1.7.dev0", false}, /* pre-releases of the bound are not below it */
        {"<1.7rc1", "1.7b1", true},
        {"==2.8", "2.8.1", false}, /* users mean ==2.8.* */
        {"==2.8", "2.8.0", true},
        {"==2.8.*", "2.8.1", true},
        {"==2.8.*", "2.80", false},
        {"==2.8.*", "2.8+cu128", true},
        {"!=2.8.*", "2.9", true},
        {"==1!2.*", "2.0", false},
        {"~=2.10", "2.11", true},
        {"~=2.10", "3.0", false},
        {"~=2.10.1", "2.10.0", false},
        {"~=2.10.1", "2.11", false},
        {"~=2.2.post3", "2.2.post4", true},
        {"===2.11.0+cu130", "2.11.0+CU130", true}, /* text, its case ignored */
        {"===2.11", "2.11.0", false},
        {">=2.8,<2.12,!=2.10.*", "2.11.0", true},
        {">=2.8,<2.12,!=2.10.*", "2.10.1", false},
        {"", "0", true},
        {">=3.8,", "3.12", true},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        const struct specs specs = specs_of(CASES[i].specs);
        const struct version v = version_of(CASES[i].version);
        if (specs_contain(&specs, &v, true) != CASES[i].in)
            fail_msg("%s in %s: expected %d", CASES[i].version, CASES[i].specs, CASES[i].in);
    }
}

static void pre_releases_count_when_asked_for_or_named(void **state)
{
    (void)state;
    const struct version pre = version_of("2.0.dev1");
    const struct specs plain = specs_of(">=1.0"), named = specs_of(">=1.0a1"), excluded = specs_of("!=1.0a1"),
                       none = specs_of("");
    assert_false(specs_contain(&plain, &pre, false));
    assert_true(specs_contain(&plain, &pre, true));
    assert_true(specs_contain(&named, &pre, false));
    assert_false(specs_contain(&excluded, &pre, false));
    assert_false(specs_contain(&none, &pre, false));
}

static void a_pin_is_one_version_and_no_range(void **state)
{
    (void)state;
    struct version v;
    const struct specs pin = specs_of(">=2.0,==2.11.0"), arbitrary = specs_of("===2.11.0+cu130"),
                       prefix = specs_of("==2.11.*"), text = specs_of("===nightly");
    assert_true(specs_pin(&pin, &v));
    assert_text("2.11.0", v.text);
    assert_true(specs_pin(&arbitrary, &v));
    assert_text("2.11.0+cu130", v.text);
    assert_false(specs_pin(&prefix, &v));
    assert_false(specs_pin(&text, &v));
}

static void a_broken_clause_is_placed_and_says_what_was_expected(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error;
    } CASES[] = {
        {"2.11", "column 1: expected one of == != ~= <= >= < > ===, found '2.11'"},
        {">=2.8, 2.12", "column 8: expected one of == != ~= <= >= < > ===, found '2.12'"},
        {">= 2.8.x", "column 4: expected a PEP 440 version, found '2.8.x'"},
        {">=2.*", "column 4: expected a version without '.*', which only == and != take, found '.*'"},
        {"==2.0a1.*", "column 8: expected '.*' only after release numbers, found '.*'"},
        {"<2.0+cu130",
         "column 5: expected a version without a local part, which only == and != take, found '+cu130'"},
        {"~=2", "column 3: expected at least two release numbers after ~=, found '2'"},
        {"==", "column 3: expected a PEP 440 version, found the end"},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct specs specs;
        size_t at = 0;
        const char *expected = "";
        assert_false(specs_parse(memory, str_from(CASES[i].text), &specs, &at, &expected));
        assert_text(CASES[i].error, parse_error_text(memory, str_from(CASES[i].text), at, expected));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spellings_have_one_normal_form),
        cmocka_unit_test(public_and_local_parts_come_apart),
        cmocka_unit_test(what_is_no_version_is_refused_and_leaves_the_result_alone),
        cmocka_unit_test(the_order_is_that_of_the_pep),
        cmocka_unit_test(trailing_zeros_and_spelling_do_not_matter_to_equality),
        cmocka_unit_test(clauses_mean_what_the_pep_says),
        cmocka_unit_test(pre_releases_count_when_asked_for_or_named),
        cmocka_unit_test(a_pin_is_one_version_and_no_range),
        cmocka_unit_test(a_broken_clause_is_placed_and_says_what_was_expected),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
