/* Judge: real failures with their settled causes (shared cases, failures.jsonl), as they stand and inside long logs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "doctor/doctor.h"
#include "logs.h"

#define CASES SOURCE_DIR "/../shared/cases/failures.jsonl"

struct row {
    str id, label;
    struct strs accept, log;
};
struct rows {
    struct row *items;
    size_t count, capacity;
};

static arena *memory;
static struct knowledge *known;
static struct rows rows;

static struct strs strings(const json_t *list)
{
    struct strs out = {0};
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        (void)strs_add(memory, &out, str_copy(memory, str_from(json_string_value(item))));
    }
    return out;
}

static void read_rows(void)
{
    findings *f = findings_new(memory);
    span bytes;
    if (!file_read(memory, S(CASES), 64 << 20, &bytes, f))
        return;
    str rest = str_from_span(bytes), line;
    while (str_next_line(&rest, &line)) {
        json_t *object = json_loadb(line.p, line.n, 0, NULL);
        if (!object || !arena_room(memory, &rows))
            continue;
        rows.items[rows.count++] = (struct row){
            .id = str_copy(memory, str_from(json_string_value(json_object_get(object, "id")))),
            .label = str_copy(memory, str_from(json_string_value(json_object_get(object, "label")))),
            .accept = strings(json_object_get(object, "accept")),
            .log = strings(json_object_get(object, "log"))};
        json_decref(object);
    }
}

static struct cause first_cause(arena *a, str log)
{
    struct doctor *d = doctor_new(a, known, NULL);
    doctor_feed(d, span_from_str(log));
    findings *f = findings_new(a);
    assert_true(doctor_end(d, S("log"), f));
    struct cause_list causes;
    doctor_causes(a, d, &causes);
    doctor_free(d);
    return causes.count ? causes.items[0] : (struct cause){.label = S("none")};
}

struct score {
    size_t right, total, wrong_and_sure;
};

static bool is_right(const struct row *row, const struct cause *cause)
{
    return str_eq(cause->label, row->label) || strs_has(&row->accept, cause->label);
}

static void judge(const struct row *row, str log, struct score *score, const char *how)
{
    arena *a = arena_new(0);
    const struct cause cause = first_cause(a, log);
    const bool right = is_right(row, &cause);
    score->total++;
    score->right += right;
    score->wrong_and_sure += !right && cause.confidence > 0.8;
    if (!right)
        (void)printf("%s %.*s: expected %.*s, got %.*s (%.*s, %.2f)\n", how, STR_ARG(row->id),
                     STR_ARG(row->label), STR_ARG(cause.label), STR_ARG(cause.failure), cause.confidence);
    arena_free(a);
}

static void at_least_95_percent(const struct score *score, const char *how)
{
    (void)printf("%s: %zu of %zu right, %zu wrong above 0.8\n", how, score->right, score->total,
                 score->wrong_and_sure);
    assert_true(score->total > 0);
    assert_true(score->right * 100 >= score->total * 95);
    assert_int_equal(0, score->wrong_and_sure);
}

static void decisive_lines_give_the_settled_cause(void **state)
{
    (void)state;
    struct score score = {0};
    for (size_t i = 0; i < rows.count; i++) {
        arena *a = arena_new(0);
        judge(&rows.items[i], str_join(a, &rows.items[i].log, S("\n")), &score, "alone");
        arena_free(a);
    }
    at_least_95_percent(&score, "alone");
}

static void same_cause_inside(size_t lines, size_t every, const char *how)
{
    struct score score = {0};
    for (size_t i = 0; i < rows.count; i += every) {
        arena *a = arena_new(0);
        const size_t before = lines / 10 + (i * 7919) % (lines * 8 / 10);
        const str log =
            log_wrapped(a, 1000 + i, (unsigned)(i % STYLE_COUNT), lines, &rows.items[i].log, before);
        judge(&rows.items[i], log, &score, how);
        arena_free(a);
    }
    at_least_95_percent(&score, how);
}

static void same_cause_inside_200_lines(void **state)
{
    (void)state;
    same_cause_inside(200, 1, "200 lines");
}

static void same_cause_inside_20000_lines(void **state)
{
    (void)state;
    same_cause_inside(20000, 1, "20,000 lines");
}

static void same_cause_inside_200000_lines(void **state)
{
    (void)state;
    same_cause_inside(200000, 6, "200,000 lines");
}

static void noise_alone_has_no_cause(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        arena *a = arena_new(0);
        const struct strs nothing = {0};
        const struct cause cause =
            first_cause(a, log_wrapped(a, seed, (unsigned)(seed % STYLE_COUNT), 5000, &nothing, 5000));
        if (cause.label.p && cause.severity == SEVERITY_ERROR)
            (void)printf("%.*s: %.*s\n", STR_ARG(cause.label), STR_ARG(cause.excerpt));
        assert_true(cause.severity != SEVERITY_ERROR || str_eq(cause.label, S("none")) ||
                    str_eq(cause.label, S("unknown")));
        arena_free(a);
    }
}

static void line_number_and_excerpt_are_those_of_the_decisive_line(void **state)
{
    (void)state;
    struct strs lines = {0};
    const str decisive = S("nvcc fatal   : Unsupported gpu architecture 'compute_120'");
    (void)strs_add(memory, &lines, decisive);
    for (unsigned style = 0; style < STYLE_COUNT; style++) {
        arena *a = arena_new(0);
        const struct cause cause = first_cause(a, log_wrapped(a, 7 + style, style, 30000, &lines, 12345));
        assert_int_equal(12346, cause.line);
        assert_true(str_ends(cause.excerpt, decisive));
        assert_true(str_contains(cause.what, S("compute_120")));
        arena_free(a);
    }
}

int main(void)
{
    memory = arena_new(0);
    read_rows();
    findings *f = findings_new(memory);
    known = knowledge_load(memory, f);
    if (!known)
        return 1;
    if (rows.count == 0) {
        (void)printf("skipped: %s is not there\n", CASES);
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decisive_lines_give_the_settled_cause),
        cmocka_unit_test(same_cause_inside_200_lines),
        cmocka_unit_test(same_cause_inside_20000_lines),
        cmocka_unit_test(same_cause_inside_200000_lines),
        cmocka_unit_test(noise_alone_has_no_cause),
        cmocka_unit_test(line_number_and_excerpt_are_those_of_the_decisive_line),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    knowledge_free(known);
    arena_free(memory);
    return failed;
}
