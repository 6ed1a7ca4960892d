/* Every row of cases/wheels.jsonl on every field. Judge: the rows, read from public wheel names by hand. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "wheel/wheel.h"

#define CASES SOURCE_DIR "/../shared/cases/wheels.jsonl"

static size_t mismatches;

static void differs(const char *id, const char *field, json_t *expected, str got)
{
    char *text = json_dumps(expected, JSON_ENCODE_ANY);
    print_error("%s: %s: expected %s, got '%.*s'\n", id, field, text, STR_ARG(got));
    free(text);
    mismatches++;
}

/* A JSON null, or a key that a row leaves out, is an absent text. */
static void expect_text(const char *id, const char *field, json_t *expected, str got)
{
    const str wanted = {json_string_value(expected), json_string_length(expected)};
    if (!str_eq(wanted, got) || (wanted.p != NULL) != (got.p != NULL))
        differs(id, field, expected, got);
}

static void expect_flag(const char *id, const char *field, json_t *expected, bool got)
{
    if (json_is_true(expected) != got)
        differs(id, field, expected, got ? S("true") : S("false"));
}

static void expect_set(const char *id, const char *field, json_t *expected, const struct strs *got)
{
    if (json_array_size(expected) != got->count)
        differs(id, field, expected, S("another number of members"));
    for (size_t i = 0; i < got->count && i < json_array_size(expected); i++)
        expect_text(id, field, json_array_get(expected, i), got->items[i]);
}

static void expect_build(const char *id, json_t *row, const struct wheel_build *got)
{
    json_t *build = json_object_get(row, "build"), *abi = json_object_get(build, "cxx11abi");
    expect_text(id, "cuda", json_object_get(build, "cuda"), got->cuda);
    json_t *torch = json_object_get(build, "torch");
    if (json_is_array(torch)) { /* both readings */
        expect_text(id, "torch", json_array_get(torch, 0), got->torch);
        expect_text(id, "torch", json_array_get(torch, 1), got->torch_other);
    } else {
        expect_text(id, "torch", torch, got->torch);
        expect_text(id, "torch_other", NULL, got->torch_other);
    }
    if ((json_is_true(abi) ? 1 : json_is_false(abi) ? 0 : -1) != got->cxx11abi)
        differs(id, "cxx11abi", abi, S("another"));
    expect_flag(id, "torch_is_minimum", json_object_get(row, "torch_is_minimum"), got->torch_is_minimum);
    expect_flag(id, "is_torch", json_object_get(row, "is_torch"), got->is_torch);
    expect_text(id, "cuda_in_name", json_object_get(row, "cuda_in_name"), got->cuda_in_name);
    expect_text(id, "rocm", json_object_get(row, "rocm"), got->rocm);
    expect_text(id, "accelerator", json_object_get(row, "accelerator"), got->accelerator);
}

static void expect_row(json_t *row)
{
    arena *a = arena_new(0);
    struct wheel_name name;
    str why = {NULL, 0};
    const char *id = json_string_value(json_object_get(row, "id"));
    const bool valid =
        wheel_name_parse(a, str_from(json_string_value(json_object_get(row, "url"))), &name, &why);
    expect_text(id, "file", json_object_get(row, "file"), name.file);
    expect_flag(id, "valid", json_object_get(row, "valid"), valid);
    if (valid && json_is_true(json_object_get(row, "valid"))) {
        json_t *tags = json_object_get(row, "tags");
        expect_text(id, "distribution", json_object_get(row, "distribution"), name.distribution);
        expect_text(id, "name", json_object_get(row, "name"), name.name);
        expect_text(id, "version", json_object_get(row, "version"), name.version_text);
        expect_text(id, "local", json_object_get(row, "local"), name.local);
        expect_text(id, "build_tag", json_object_get(row, "build_tag"), name.build_tag);
        expect_set(id, "python", json_object_get(tags, "python"), &name.tags.python);
        expect_set(id, "abi", json_object_get(tags, "abi"), &name.tags.abi);
        expect_set(id, "platform", json_object_get(tags, "platform"), &name.tags.platform);
        expect_text(id, "variant", NULL, name.variant);
        expect_build(id, row, &name.build);
    }
    arena_free(a);
}

static void every_row_is_right_on_every_field(void **state)
{
    (void)state;
    char *line = NULL;
    size_t capacity = 0, rows = 0;
    FILE *file = fopen(CASES, "r");
    assert_non_null(file);
    while (getline(&line, &capacity, file) > 0) {
        json_t *row = json_loads(line, 0, NULL);
        assert_non_null(row);
        expect_row(row);
        json_decref(row);
        rows++;
    }
    free(line);
    (void)fclose(file);
    assert_true(rows > 100);
    assert_int_equal(0, mismatches);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row_is_right_on_every_field)};
    if (!file_exists(S(CASES))) {
        print_message("skipped: %s is not there\n", CASES);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
