/* Files, folders, YAML and child processes. Judge: the file system, and the shell's own exit codes. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"

static arena *a;
static findings *f;
static str folder;

static int set_up(void **state)
{
    (void)state;
    static char name[] = "/tmp/felloe-base-XXXXXX";
    static bool made;
    if (!made && !mkdtemp(name))
        return -1;
    made = true;
    a = arena_new(64 << 20);
    f = findings_new(a);
    folder = str_from(name);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_free(a);
    return 0;
}

static str in_folder(const char *name) { return path_join(a, folder, str_from(name)); }

static void a_written_file_reads_back_and_keeps_its_mode(void **state)
{
    (void)state;
    const str path = in_folder("app \xc3\xa9.txt");
    span got;
    assert_true(file_write(path, span_from_str(S("one")), f));
    assert_int_equal(0, chmod(str_c(a, path), 0640));
    assert_true(file_write(path, span_from_str(S("two, longer")), f));
    assert_true(file_read(a, path, 100, &got, f));
    assert_true(str_eq(S("two, longer"), str_from_span(got)));
    struct stat info;
    assert_int_equal(0, stat(str_c(a, path), &info));
    assert_int_equal(0640, info.st_mode & 07777);
    assert_int_equal(0, f->count);
}

static void a_failed_write_leaves_the_old_content_and_nothing_beside_it(void **state)
{
    (void)state;
    const str path = in_folder("none/x.txt");
    assert_false(file_write(path, span_from_str(S("new")), f));
    assert_int_equal(3, f->exit_code);
    assert_int_equal(F004, f->items[0].code);
    assert_false(dir_exists(in_folder("none")));
}

static void a_link_stays_a_link_when_its_file_is_written(void **state)
{
    (void)state;
    const str file = in_folder("real.txt"), link = in_folder("link.txt");
    assert_true(file_write(file, span_from_str(S("old")), f));
    assert_int_equal(0, symlink(str_c(a, file), str_c(a, link)));
    assert_true(file_write(link, span_from_str(S("new")), f));
    struct stat info;
    span got;
    assert_int_equal(0, lstat(str_c(a, link), &info));
    assert_true(S_ISLNK(info.st_mode));
    assert_true(file_read(a, file, 100, &got, f) && str_eq(S("new"), str_from_span(got)));
}

static void what_is_no_regular_file_of_bearable_size_is_refused(void **state)
{
    (void)state;
    const str pipe_path = in_folder("pipe");
    span got;
    assert_int_equal(0, mkfifo(str_c(a, pipe_path), 0600));
    assert_false(file_read(a, pipe_path, 100, &got, f)); /* and it does not hang */
    assert_int_equal(F002, f->items[f->count - 1].code);
    assert_false(file_read(a, folder, 100, &got, f));
    assert_int_equal(F002, f->items[f->count - 1].code);
    assert_false(file_read(a, in_folder("absent"), 100, &got, f));
    assert_int_equal(F001, f->items[f->count - 1].code);
    assert_true(file_write(in_folder("big"), span_from_str(S("12345678901")), f));
    assert_false(file_read(a, in_folder("big"), 10, &got, f));
    assert_int_equal(F003, f->items[f->count - 1].code);
    assert_false(file_read(a, (str){"a\0b", 3}, 10, &got, f));
    assert_int_equal(F001, f->items[f->count - 1].code);
}

static void a_walk_is_in_order_and_follows_no_link(void **state)
{
    (void)state;
    struct walk_list list;
    assert_true(dir_make(in_folder("walk/b/c"), f) && dir_make(in_folder("walk/.git"), f));
    assert_true(file_write(in_folder("walk/b/c/z.py"), span_from_str(S("")), f));
    assert_true(file_write(in_folder("walk/a.py"), span_from_str(S("x")), f));
    assert_int_equal(0, symlink(".", str_c(a, in_folder("walk/loop"))));
    assert_true(dir_walk(a, in_folder("walk"), 100, &list, f));
    const char *expected[] = {"a.py", "b", "b/c", "b/c/z.py", "loop"};
    assert_int_equal(COUNT(expected), list.count);
    for (size_t i = 0; i < COUNT(expected); i++)
        assert_string_equal(expected[i], str_c(a, list.items[i].path));
    assert_true(list.items[4].is_link && !list.truncated);
    assert_true(dir_walk(a, in_folder("walk"), 2, &list, f) && list.truncated && list.count == 2);
}

static void yaml_keeps_places_quotes_and_text(void **state)
{
    (void)state;
    struct yaml y;
    const str text = S("sdk: gradio\npython_version: 3.10\nquoted: \"3.10\"\nlist: [a, 'b']\nempty:\n");
    assert_true(yaml_parse(a, text, S("README.md"), 2, F005, &y, f));
    assert_int_equal(5, y.count);
    assert_string_equal("3.10", str_c(a, yaml_str(&y, "python_version")));
    assert_true(yaml_get(&y, "python_version")->plain && !yaml_get(&y, "quoted")->plain);
    assert_int_equal(3, yaml_get(&y, "python_version")->line);
    assert_int_equal(17, yaml_get(&y, "python_version")->column);
    assert_int_equal(2, yaml_strs(a, &y, "list").count);
    assert_int_equal(YAML_NULL, yaml_get(&y, "empty")->kind);
    assert_null(yaml_str(&y, "absent").p);
    assert_int_equal(0, f->count);
}

static void broken_yaml_is_named_with_its_place(void **state)
{
    (void)state;
    const char *broken[] = {
        "a: \"unclosed\nb: 1\n", "a: [1, 2\n", "a: &x 1\nb: *x\n", "a: 1\n---\nb: 2\n", "\tk: v\n",
        "? {a: b}\n: c\n",       "a: b: c\n"};
    struct yaml y;
    for (size_t i = 0; i < COUNT(broken); i++) {
        f = findings_new(a);
        assert_false(yaml_parse(a, str_from(broken[i]), S("x.yaml"), 1, F005, &y, f));
        assert_int_equal(1, f->count);
        assert_true(f->items[0].place.line > 0);
        assert_int_equal(3, f->exit_code);
    }
    struct buf deep = {.a = a};
    for (int i = 0; i < 5000; i++)
        buf_char(&deep, '[');
    f = findings_new(a);
    assert_false(yaml_parse(a, buf_str(&deep), S("x.yaml"), 1, F005, &y, f));
    f = findings_new(a);
    assert_false(yaml_parse(a, S("a: \xff\n"), S("x.yaml"), 1, F005, &y, f));
}

static void a_child_gives_both_streams_and_its_exit_code(void **state)
{
    (void)state;
    const char *const argv[] = {"sh", "-c", "echo out; echo err >&2; echo $FELLOE_T; exit 7", NULL};
    const char *const environment[] = {"FELLOE_T=v", NULL};
    struct proc_result r;
    assert_true(proc_run(a, &(struct proc_options){.argv = argv, .environment = environment}, &r, f));
    assert_int_equal(7, r.exit_code);
    assert_string_equal("out\nv\n", str_c(a, r.out));
    assert_string_equal("err\n", str_c(a, r.err));
    assert_false(r.timed_out);
}

static void a_late_child_and_its_children_are_ended(void **state)
{
    (void)state;
    const str mark = in_folder("still-alive");
    const str script = str_format(a, "trap '' TERM; (sleep 3; touch '%.*s') & sleep 60", STR_ARG(mark));
    const char *const argv[] = {"sh", "-c", str_c(a, script), NULL};
    struct proc_result r;
    const double started = seconds_now();
    assert_true(proc_run(a, &(struct proc_options){.argv = argv, .timeout_ms = 300, .grace_ms = 300}, &r, f));
    assert_true(r.timed_out);
    assert_true(seconds_now() - started < 2.5);
    (void)usleep(3200000);
    assert_false(file_exists(mark)); /* the grandchild went with the group */
}

static void a_flood_of_output_is_drained_and_bounded(void **state)
{
    (void)state;
    const char *const argv[] = {"sh", "-c", "head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2", NULL};
    struct proc_result r;
    assert_true(proc_run(a, &(struct proc_options){.argv = argv, .output_limit = 1000}, &r, f));
    assert_int_equal(0, r.exit_code);
    assert_int_equal(1000, r.out.n);
    assert_true(r.truncated);
}

static void a_program_that_is_not_there_is_a_finding(void **state)
{
    (void)state;
    const char *const argv[] = {"felloe-no-such-program", NULL};
    struct proc_result r;
    assert_false(proc_run(a, &(struct proc_options){.argv = argv}, &r, f));
    assert_int_equal(F008, f->items[0].code);
    assert_int_equal(5, f->exit_code);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_written_file_reads_back_and_keeps_its_mode, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_failed_write_leaves_the_old_content_and_nothing_beside_it, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_link_stays_a_link_when_its_file_is_written, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_no_regular_file_of_bearable_size_is_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_walk_is_in_order_and_follows_no_link, set_up, tear_down),
        cmocka_unit_test_setup_teardown(yaml_keeps_places_quotes_and_text, set_up, tear_down),
        cmocka_unit_test_setup_teardown(broken_yaml_is_named_with_its_place, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_child_gives_both_streams_and_its_exit_code, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_late_child_and_its_children_are_ended, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_flood_of_output_is_drained_and_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_program_that_is_not_there_is_a_finding, set_up, tear_down),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder.p);
    return system(command) == 0 ? failed : 1;
}
