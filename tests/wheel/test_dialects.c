/* data/dialects.yaml, replaced by one with a fault. A program of its own: the file is read once per process. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "wheel/wheel.h"

static void a_fault_is_a_finding_each_time_and_names_are_still_read(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    char folder[] = "/tmp/felloe-dialects-XXXXXX";
    assert_non_null(mkdtemp(folder));
    findings *f = findings_new(a);
    const str path = path_join(a, str_from(folder), S("dialects.yaml"));
    assert_true(file_write(path,
                           span_from_str(S("words: {cuda: [cu], torch: [torch]}\n"
                                           "torch_releases: {\"2.8\": none}\n")),
                           f));
    data_override(str_from(folder));

    struct wheel_name name;
    str why;
    assert_true(wheel_name_parse(a, S("x-1+cu130torch2.8-py3-none-any.whl"), &name, &why));
    assert_null(name.build.cuda.p);
    for (size_t i = 1; i <= 2; i++) {
        assert_false(wheel_dialects_load(f));
        assert_int_equal(i, f->count);
        assert_int_equal(F005, f->items[i - 1].code);
        assert_true(str_eq(path, f->items[i - 1].place.file));
    }
    assert_int_equal(3, f->exit_code);
    assert_int_equal(0, unlink(str_c(a, path)));
    assert_int_equal(0, rmdir(folder));
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fault_is_a_finding_each_time_and_names_are_still_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
