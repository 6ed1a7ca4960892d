/* tests/plan/test_diff.c. Judge: `patch`, which has to turn the old text into the new one, on pairs made at random. */
#include "fixture.h"

static arena *a;

static int open_arena(void **state)
{
    (void)state;
    a = arena_new(0);
    return 0;
}

static int close_arena(void **state)
{
    (void)state;
    arena_free(a);
    return 0;
}

static uint64_t random_state = 88172645463325252u;

static unsigned random_below(unsigned n)
{
    random_state ^= random_state << 13; /* xorshift64, Marsaglia 2003 */
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state % n);
}

static str random_text(str like)
{
    struct buf b = {.a = a};
    if (!like.p) {
        for (unsigned i = random_below(30); i > 0; i--)
            buf_format(&b, "line %u\n", random_below(9));
    } else {
        str line;
        while (str_next_line(&like, &line)) {
            const unsigned what = random_below(8);
            if (what == 0)
                continue;
            if (what == 1)
                buf_format(&b, "new %u\n", random_below(9));
            buf_add(&b, line);
            buf_char(&b, '\n');
        }
    }
    str text = buf_str(&b);
    if (text.n && random_below(4) == 0)
        text.n--; /* no newline at the end */
    return text.p ? text : S("");
}

static void patch_makes_the_new_text(void **state)
{
    (void)state;
    findings *f = findings_new(a);
    char folder[] = "/tmp/felloe-diff-XXXXXX";
    assert_non_null(mkdtemp(folder));
    const str file = str_format(a, "%s/file", folder), diff_file = str_format(a, "%s/diff", folder);
    const char *argv[] = {"patch", "--quiet", "--force", "-p1", "-i", str_c(a, diff_file), NULL};
    struct proc_result result;
    for (int round = 0; round < 150; round++) {
        const str before = random_text((str){NULL, 0}), after = random_text(before);
        const str diff = diff_unified(a, S("file"), before, after);
        if (str_eq(before, after)) {
            assert_int_equal(0, diff.n);
            continue;
        }
        assert_true(file_write(file, span_from_str(before), f));
        assert_true(file_write(diff_file, span_from_str(diff), f));
        if (!proc_run(a, &(struct proc_options){.argv = argv, .directory = folder, .timeout_ms = 10000},
                      &result, f))
            skip(); /* no `patch` on this machine */
        if (result.exit_code)
            fail_msg("patch said %.*s to\n%.*s", STR_ARG(result.out), STR_ARG(diff));
        span got = {NULL, 0};
        if (after.n || file_exists(file))
            assert_true(file_read(a, file, 1 << 20, &got, f));
        assert_true(str_eq(after, str_from_span(got)));
    }
    const char *clean[] = {"rm", "-r", folder, NULL};
    (void)proc_run(a, &(struct proc_options){.argv = clean}, &result, f);
}

static void a_new_file_starts_from_dev_null(void **state)
{
    (void)state;
    assert_string_equal("--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+one\n+two\n",
                        str_c(a, diff_unified(a, S("x"), (str){NULL, 0}, S("one\ntwo\n"))));
}

static void far_changes_get_hunks_of_their_own(void **state)
{
    (void)state;
    assert_string_equal(
        "--- a/x\n+++ b/x\n@@ -1,4 +1,4 @@\n-1\n+one\n 2\n 3\n 4\n@@ -8,4 +8,3 @@\n 8\n 9\n 10\n-11\n",
        str_c(a, diff_unified(a, S("x"), S("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n"),
                              S("one\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"))));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patch_makes_the_new_text),
        cmocka_unit_test(a_new_file_starts_from_dev_null),
        cmocka_unit_test(far_changes_get_hunks_of_their_own),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
