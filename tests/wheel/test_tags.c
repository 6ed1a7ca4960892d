/* Tags: what an interpreter takes, in which order, and why a wheel does not fit. Judge: PEP 425, 384, 600, 656 and 803;
 * differential.py compares whole lists with packaging's. */
#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

#include "wheel/wheel.h"

static arena *memory;
static const struct tag_env DEBIAN = {
    .minor = 12, .machine = S_INIT("x86_64"), .glibc_major = 2, .glibc_minor = 36};

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

static struct tag_set set_of(const char *tags)
{
    struct wheel_name name;
    str why;
    if (!wheel_name_parse(memory, str_format(memory, "x-1-%s.whl", tags), &name, &why))
        fail_msg("'%s' was refused: %.*s", tags, STR_ARG(why));
    return name.tags;
}

static size_t rank_of(const struct tag_env *env, const char *tags)
{
    struct tag_list list;
    const struct tag_set set = set_of(tags);
    assert_true(tags_supported(memory, env, &list));
    return tags_rank(&list, &set);
}

static void the_closest_tag_comes_first(void **state)
{
    (void)state;
    static const char *const ORDER[] = {
        "cp312-cp312-linux_x86_64",
        "cp312-cp312-manylinux_2_36_x86_64",
        "cp312-cp312-manylinux_2_17_x86_64",
        "cp312-cp312-manylinux2014_x86_64",
        "cp312-cp312-manylinux_2_5_x86_64",
        "cp312-cp312-manylinux1_x86_64",
        "cp312-abi3-linux_x86_64",
        "cp312-none-linux_x86_64",
        "cp311-abi3-manylinux_2_28_x86_64",
        "cp39-abi3-linux_x86_64",
        "cp32-abi3-linux_x86_64",
        "py312-none-linux_x86_64",
        "py3-none-linux_x86_64",
        "py311-none-linux_x86_64",
        "cp312-none-any",
        "py312-none-any",
        "py3-none-any",
        "py311-none-any",
        "py30-none-any",
    };
    size_t last = 0;
    for (size_t i = 0; i < COUNT(ORDER); i++) {
        const size_t rank = rank_of(&DEBIAN, ORDER[i]);
        assert_true(rank != SIZE_MAX);
        assert_true(i == 0 ? rank == 0 : rank > last);
        last = rank;
    }
}

static void what_would_not_load_has_no_rank(void **state)
{
    (void)state;
    static const char *const OTHERS[] = {
        "cp311-cp311-linux_x86_64",
        "cp313-abi3-linux_x86_64",
        "cp312-cp312t-linux_x86_64",
        "py313-none-any",
        "py2-none-any",
        "cp312-cp312-win_amd64",
        "cp312-cp312-manylinux_2_37_x86_64",
        "cp312-cp312-linux_aarch64",
        "cp312-cp312-musllinux_1_2_x86_64",
        "cp39-abi3-any",
        "pp310-pypy310_pp73-linux_x86_64",
    };
    for (size_t i = 0; i < COUNT(OTHERS); i++)
        if (rank_of(&DEBIAN, OTHERS[i]) != SIZE_MAX)
            fail_msg("%s has a rank", OTHERS[i]);
}

static void one_member_of_a_set_is_enough_and_the_best_one_counts(void **state)
{
    (void)state;
    assert_int_equal(0, rank_of(&DEBIAN, "cp312-cp312-linux_x86_64.1"));
    assert_int_equal(rank_of(&DEBIAN, "cp312-cp312-manylinux_2_28_x86_64"),
                     rank_of(&DEBIAN, "cp310.cp312-cp312-manylinux2014_x86_64.manylinux_2_28_x86_64"));
    assert_int_equal(0, rank_of(&DEBIAN, "CP312-CP312-LINUX_X86_64"));
}

static void free_threaded_builds_take_abi3t_and_no_abi3(void **state)
{
    (void)state;
    const struct tag_env env = {
        .minor = 15, .free_threaded = true, .machine = S("aarch64"), .glibc_major = 2, .glibc_minor = 39};
    assert_int_equal(0, rank_of(&env, "cp315-cp315t-linux_aarch64"));
    assert_true(rank_of(&env, "cp315-abi3t-manylinux_2_17_aarch64") != SIZE_MAX);
    assert_true(rank_of(&env, "cp315-abi3-linux_aarch64") == SIZE_MAX);
    assert_true(rank_of(&env, "cp315-cp315-linux_aarch64") == SIZE_MAX);
    assert_true(rank_of(&env, "cp315-cp315t-manylinux_2_12_aarch64") ==
                SIZE_MAX); /* older than the machine */
}

static void a_claim_of_endless_versions_is_cut_or_refused(void **state)
{
    (void)state;
    struct tag_env env = DEBIAN;
    struct tag_list list;
    env.glibc_minor = UINT32_MAX;
    assert_true(tags_supported(memory, &env, &list));
    assert_true(list.count < 10000);
    env.minor = UINT32_MAX;
    assert_false(tags_supported(memory, &env, &list));
    env = DEBIAN;
    arena *small = arena_new(4096);
    assert_false(tags_supported(small, &env, &list));
    arena_free(small);
}

static void a_mismatch_is_said_in_words(void **state)
{
    (void)state;
    const struct tag_env musl = {.minor = 12, .machine = S("x86_64"), .musl_major = 1, .musl_minor = 1};
    const struct tag_env threaded = {
        .minor = 13, .free_threaded = true, .machine = S("x86_64"), .glibc_major = 2, .glibc_minor = 36};
    const struct {
        const struct tag_env *env;
        const char *tags, *why;
    } CASES[] = {
        {&DEBIAN, "cp310-cp310-linux_x86_64", "for CPython 3.10, the target has 3.12"},
        {&DEBIAN, "cp313-abi3-linux_x86_64", "for CPython 3.13 or later, the target has 3.12"},
        {&DEBIAN, "py2-none-any", "for Python 2, the target has 3.12"},
        {&DEBIAN, "pp310.pp311-pypy311_pp73-linux_x86_64", "for PyPy 3.10, PyPy 3.11, the target has 3.12"},
        {&DEBIAN, "cp312-cp312-win_amd64", "for Windows (win_amd64), the target is Linux on x86_64"},
        {&DEBIAN, "cp312-cp312-macosx_11_0_arm64",
         "for macOS (macosx_11_0_arm64), the target is Linux on x86_64"},
        {&DEBIAN, "cp312-cp312-linux_aarch64", "for linux_aarch64, the target is x86_64"},
        {&DEBIAN, "cp312-cp312-musllinux_1_2_x86_64",
         "for musl Linux (musllinux_1_2_x86_64), the target is Linux on x86_64"},
        {&DEBIAN, "cp312-cp312-manylinux_2_41_x86_64.manylinux_2_39_x86_64",
         "needs glibc 2.39, the target has 2.36"},
        {&musl, "cp312-cp312-musllinux_1_2_x86_64", "needs musl 1.2, the target has 1.1"},
        {&DEBIAN, "cp312-cp312t-linux_x86_64", "built for the ABI cp312t, the target's is cp312"},
        {&threaded, "cp313-cp313-linux_x86_64", "built for the ABI cp313, the target's is cp313t"},
        {&DEBIAN, "cp310-cp310-win_amd64",
         "for CPython 3.10, the target has 3.12; for Windows (win_amd64), the target is Linux on x86_64"},
        {&DEBIAN, "cp312-cp312-amiga", "for the platform 'amiga', which no installer of the target knows"},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        const struct tag_set set = set_of(CASES[i].tags);
        assert_int_equal(SIZE_MAX, rank_of(CASES[i].env, CASES[i].tags));
        assert_string_equal(CASES[i].why, str_c(memory, tags_mismatch(memory, CASES[i].env, &set)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_closest_tag_comes_first),
        cmocka_unit_test(what_would_not_load_has_no_rank),
        cmocka_unit_test(one_member_of_a_set_is_enough_and_the_best_one_counts),
        cmocka_unit_test(free_threaded_builds_take_abi3t_and_no_abi3),
        cmocka_unit_test(a_claim_of_endless_versions_is_cut_or_refused),
        cmocka_unit_test(a_mismatch_is_said_in_words),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
