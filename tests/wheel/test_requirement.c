/* Requirements and markers. Judge: PEP 508 and 685, and the examples in PEP 508; differential.py compares many more with
 * `packaging`. */
#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

#include "wheel/wheel.h"

static arena *memory;
static const struct marker_env LINUX = {
    .os_name = S_INIT("posix"),
    .sys_platform = S_INIT("linux"),
    .platform_machine = S_INIT("x86_64"),
    .platform_python_implementation = S_INIT("CPython"),
    .platform_release = S_INIT("6.1.0-18-amd64"),
    .platform_system = S_INIT("Linux"),
    .python_version = S_INIT("3.10"),
    .python_full_version = S_INIT("3.10.13"),
    .implementation_name = S_INIT("cpython"),
    .implementation_version = S_INIT("3.10.13"),
};

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

static void a_requirement_reads_back_as_it_was_meant(void **state)
{
    (void)state;
    static const char *const LINES[][2] = {
        {"A", "A"},
        {"A.B-C_D", "A.B-C_D"},
        {"name>=3", "name>=3"},
        {"name<=1 , != 2", "name<=1,!=2"},
        {" torch ( ==2.11.* ) ", "torch==2.11.*"},
        {"name [ fred , bar ] @ http://foo.com ; python_version=='2.7'",
         "name[fred,bar] @ http://foo.com ; python_version == \"2.7\""},
        {"name[quux,strange];python_version<'2.7' and platform.version=='2'",
         "name[quux,strange]; python_version < \"2.7\" and platform_version == \"2\""},
        {"name; os_name=='a' or (os_name=='b') and extra=='X_Y'",
         "name; os_name == \"a\" or os_name == \"b\" and extra == \"x-y\""},
        {"name;(os_name=='a' or os_name=='b') and 'c' not   in sys.platform",
         "name; (os_name == \"a\" or os_name == \"b\") and \"c\" not in sys_platform"},
        {"pip @ git+https://example.org/pip.git@v1#egg=pip",
         "pip @ git+https://example.org/pip.git@v1#egg=pip"},
        {"x===any-thing!,>1", "x===any-thing!,>1"},
        {"x[]", "x"},
        {"x>=1,", "x>=1"},
    };
    for (size_t i = 0; i < COUNT(LINES); i++) {
        struct requirement r;
        size_t at = 0;
        const char *expected = "";
        if (!requirement_parse(memory, str_from(LINES[i][0]), &r, &at, &expected))
            fail_msg("'%s': %zu: expected %s", LINES[i][0], at, expected);
        assert_string_equal(LINES[i][1], str_c(memory, requirement_text(memory, &r)));
    }
}

static void a_broken_requirement_is_placed_and_says_what_was_expected(void **state)
{
    (void)state;
    static const char *const LINES[][2] = {
        {"",
         "column 1: expected a package name, which starts and ends with a letter or a digit, found the end"},
        {"-e .",
         "column 1: expected a package name, which starts and ends with a letter or a digit, found '-e .'"},
        {"torch 2.11",
         "column 7: expected a version specifier, '@' and a URL, ';' and a marker, or the end, found '2.11'"},
        {"torch=2.11", "column 6: expected one of == != ~= <= >= < > ===, found '=2.11'"},
        {"torch==2.11 cu130",
         "column 13: expected ',' and a version specifier, ';' and a marker, or the end, found 'cu130'"},
        {"torch>=2.8.x", "column 8: expected a PEP 440 version, found '2.8.x'"},
        {"torch(>=2.8", "column 12: expected a version specifier or a closing parenthesis, found the end"},
        {"torch[gpu", "column 10: expected ',' or ']' in the list of extras, found the end"},
        {"torch[gpu,]", "column 11: expected the name of an extra, found ']'"},
        {"torch @", "column 8: expected a URL behind '@', found the end"},
        {"torch @ https://x.org/t.whl; os_name=='nt'", "column 30: expected ';' and a marker behind the URL "
                                                       "and a space, or the end, found 'os_name=='nt''"},
        {"torch; python == '3'",
         "column 8: expected a marker variable (such as python_version or sys_platform) or a "
         "quoted string, found 'python == '3''"},
        {"torch; python_version 3",
         "column 23: expected a comparison: one of == != <= >= < > ~= === in, not in, found '3'"},
        {"torch; python_version not '3'", "column 27: expected 'in' behind 'not', found ''3''"},
        {"torch; python_version < '3", "column 25: expected a closing quote, found ''3'"},
        {"torch; os_name == 'a\\'",
         "column 21: expected no backslash, line end or NUL in a quoted string, found '\\''"},
        {"torch; (os_name == 'a'", "column 23: expected 'and', 'or' or a closing parenthesis, found the end"},
        {"torch; os_name == 'a' xor",
         "column 23: expected 'and', 'or' or the end of the marker, found 'xor'"},
        {"torch_",
         "column 6: expected a version specifier, '@' and a URL, ';' and a marker, or the end, found '_'"},
    };
    for (size_t i = 0; i < COUNT(LINES); i++) {
        struct requirement r;
        size_t at = 0;
        const char *expected = "";
        assert_false(requirement_parse(memory, str_from(LINES[i][0]), &r, &at, &expected));
        assert_string_equal(LINES[i][1],
                            str_c(memory, parse_error_text(memory, str_from(LINES[i][0]), at, expected)));
    }
}

static const struct marker *marker_of(const char *text)
{
    const struct marker *m = NULL;
    size_t at = 0;
    const char *expected = "";
    if (!marker_parse(memory, str_from(text), &m, &at, &expected))
        fail_msg("'%s': %zu: expected %s", text, at, expected);
    return m;
}

static void a_marker_holds_as_the_pep_says(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool holds;
    } CASES[] = {
        {"python_version >= '3.9'", true}, /* as versions: as text it would not hold */
        {"'3.9' <= python_version", true},
        {"python_version < '3.10.1'", true},
        {"python_version == '3.10.*'", true},
        {"python_version ~= '3.9'", true},
        {"python_full_version > '3.10'", true},
        {"python_version in '3.9, 3.10'", true},
        {"python_version not in '3.9, 3.11'", true},
        {"platform_release >= '5'",
         false}, /* 6.1.0-18-amd64 is no version, and an order of texts does not hold */
        {"platform_machine == 'x86_64' and sys_platform == 'linux'", true},
        {"platform_machine == 'arm64' or sys_platform == 'linux'", true},
        {"os_name == 'nt' or os_name == 'posix' and sys_platform == 'win32'", false}, /* and binds tighter */
        {"(os_name == 'posix' or os_name == 'nt') and sys_platform == 'linux'", true},
        {"'linu' in sys_platform", true},
        {"sys_platform > 'a'", false},
        {"sys_platform ~= 'linux'", false},
        {"sys_platform === 'linux'", false},
        {"extra == 'gpu'", false},
        {"extra != 'gpu'", true},
        {"'gpu' in extras", false},
        {"platform_version == ''", true}, /* absent is "" */
        {"python_implementation == 'CPython'", true},
    };
    for (size_t i = 0; i < COUNT(CASES); i++)
        if (marker_holds(memory, marker_of(CASES[i].text), &LINUX) != CASES[i].holds)
            fail_msg("%s: expected %d", CASES[i].text, CASES[i].holds);
    assert_true(marker_holds(memory, NULL, &LINUX));
}

static void extras_compare_in_normal_form(void **state)
{
    (void)state;
    struct marker_env env = LINUX;
    env.extra = S("Dev_Tools");
    assert_true(marker_holds(memory, marker_of("extra == 'dev.tools'"), &env));
    assert_true(marker_holds(memory, marker_of("'DEV-tools' == extra"), &env));
    assert_true(marker_holds(memory, marker_of("'dev_tools' in extras"), &env));
}

static void a_python_from_an_untagged_checkout_has_a_version(void **state)
{
    (void)state;
    struct marker_env env = LINUX;
    env.python_full_version = S("3.13.0a1+");
    assert_true(marker_holds(memory, marker_of("python_full_version >= '3.13.0a1'"), &env));
}

static void depth_is_bounded_and_length_is_not(void **state)
{
    (void)state;
    struct buf deep = {.a = memory}, chain = {.a = memory};
    const struct marker *m = NULL;
    size_t at = 0;
    const char *expected = "";
    for (size_t i = 0; i < 201; i++)
        buf_char(&deep, '(');
    assert_false(marker_parse(memory, buf_str(&deep), &m, &at, &expected));
    assert_int_equal(200, at);
    assert_string_equal("at most 200 nested parentheses", expected);
    for (size_t i = 0; i < 100000; i++) /* a chain is evaluated by a loop, so this needs no stack */
        buf_add(&chain, i % 2 ? S("os_name=='nt' or ") : S("os_name=='posix' and "));
    buf_add(&chain, S("os_name=='posix'"));
    assert_true(marker_parse(memory, buf_str(&chain), &m, &at, &expected));
    assert_true(marker_holds(memory, m, &LINUX));
    assert_true(marker_text(memory, m).n > 100000);
}

static void reaching_the_memory_limit_is_said_and_not_fatal(void **state)
{
    (void)state;
    const str text = S("name[a,b,c,d,e,f,g,h,i]>=1,<2,!=3; os_name=='a' and (os_name=='b' or os_name=='c')");
    bool refused = false, accepted = false;
    for (size_t limit = 1; limit < 8192; limit += 37) {
        arena *small = arena_new(limit);
        struct requirement r;
        size_t at = SIZE_MAX;
        const char *expected = NULL;
        if (requirement_parse(small, text, &r, &at, &expected)) {
            accepted = true;
        } else {
            refused = true;
            assert_true(expected && at <= text.n);
        }
        arena_free(small);
    }
    assert_true(refused && accepted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_requirement_reads_back_as_it_was_meant),
        cmocka_unit_test(a_broken_requirement_is_placed_and_says_what_was_expected),
        cmocka_unit_test(a_marker_holds_as_the_pep_says),
        cmocka_unit_test(extras_compare_in_normal_form),
        cmocka_unit_test(a_python_from_an_untagged_checkout_has_a_version),
        cmocka_unit_test(depth_is_bounded_and_length_is_not),
        cmocka_unit_test(reaching_the_memory_limit_is_said_and_not_fatal),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
