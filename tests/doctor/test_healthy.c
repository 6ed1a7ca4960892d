/* Judge: what a person says of these logs. Nothing is wrong in them, though each holds lines that look like errors: retries that
 * succeed, probes that fail by design, warnings, quoted sources. They are ours, written after what the tools print. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "doctor/doctor.h"

#define FOLDER SOURCE_DIR "/tests/doctor/healthy"

static void healthy_logs_give_no_cause_of_severity_error(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    findings *f = findings_new(a);
    struct knowledge *k = knowledge_load(a, f);
    struct walk_list files;
    assert_non_null(k);
    assert_true(dir_walk(a, S(FOLDER), 1000, &files, f));
    assert_true(files.count >= 20);
    size_t wrong = 0;
    for (size_t i = 0; i < files.count; i++) {
        span bytes;
        struct cause_list causes;
        assert_true(file_read(a, path_join(a, S(FOLDER), files.items[i].path), 1 << 20, &bytes, f));
        struct doctor *d = doctor_new(a, k, NULL);
        doctor_feed(d, bytes);
        assert_true(doctor_end(d, files.items[i].path, f));
        doctor_causes(a, d, &causes);
        for (size_t c = 0; c < causes.count; c++)
            if (causes.items[c].severity == SEVERITY_ERROR) {
                wrong++;
                (void)printf("%.*s:%zu: %.*s (%.*s): %.*s\n", STR_ARG(files.items[i].path),
                             causes.items[c].line, STR_ARG(causes.items[c].label),
                             STR_ARG(causes.items[c].failure), STR_ARG(causes.items[c].excerpt));
            }
        doctor_free(d);
    }
    assert_int_equal(0, wrong);
    knowledge_free(k);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(healthy_logs_give_no_cause_of_severity_error)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
