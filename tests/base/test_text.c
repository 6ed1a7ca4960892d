/* Strings, arenas, tables and findings. Judge: the definitions themselves. */
#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/base.h"

static arena *a;

static int set_up(void **state)
{
    (void)state;
    a = arena_new(0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_free(a);
    return 0;
}

static void assert_str(const char *expected, str got) { assert_string_equal(expected, str_c(a, got)); }

static void memory_past_the_limit_is_null_and_overflow_too(void **state)
{
    (void)state;
    arena *small = arena_new(1000);
    assert_non_null(arena_array(small, char, 900));
    assert_null(arena_array(small, char, 200));
    assert_null(arena_array(small, uint64_t, SIZE_MAX / 4));
    assert_non_null(arena_array(small, char, 50));
    arena_free(small);
}

static void pieces_are_zeroed_apart_and_aligned(void **state)
{
    (void)state;
    char *before = arena_array(a, char, 3);
    long double *wide = arena_array(a, long double, 2);
    char *large = arena_array(a, char, 5 << 20);
    assert_int_equal(0, (uintptr_t)wide % alignof(long double));
    assert_true(wide[1] == 0 && before[2] == 0 && large[(5 << 20) - 1] == 0);
    memset(before, 1, 3);
    memset(large, 2, 5 << 20);
    assert_true(wide[0] == 0 && wide[1] == 0);
}

static void a_list_keeps_its_items_while_it_grows(void **state)
{
    (void)state;
    struct strs list = {0};
    for (int i = 0; i < 1000; i++)
        assert_true(strs_add(a, &list, str_format(a, "%d", i)));
    assert_int_equal(1000, list.count);
    assert_str("0", list.items[0]);
    assert_str("999", list.items[999]);
    assert_true(strs_has(&list, S("500")) && !strs_has(&list, S("1000")));
}

static void lines_end_by_lf_crlf_or_cr(void **state)
{
    (void)state;
    str rest = S("one\r\ntwo\rthree\n\nlast"), line;
    const char *expected[] = {"one", "two", "three", "", "last"};
    for (size_t i = 0; i < COUNT(expected); i++) {
        assert_true(str_next_line(&rest, &line));
        assert_str(expected[i], line);
    }
    assert_false(str_next_line(&rest, &line));
}

static void cutting_and_searching_stay_inside(void **state)
{
    (void)state;
    str head, tail;
    assert_true(str_cut(S("a=b=c"), '=', &head, &tail));
    assert_str("a", head);
    assert_str("b=c", tail);
    assert_false(str_cut(S("abc"), '=', &head, &tail));
    assert_str("abc", head);
    assert_null(tail.p);
    assert_true(str_find(S("aab"), S("ab")) == 1);
    assert_true(str_find(S("ab"), S("abc")) == SIZE_MAX);
    assert_str("", str_slice(S("abc"), 5, 9));
    assert_str("bc", str_slice(S("abc"), 1, 99));
    assert_str("x y", str_trim(S("\t x y \r\n")));
    assert_true(str_starts(S("abc"), S("")) && str_ends(S("abc"), S("bc")) && !str_ends(S("c"), S("bc")));
}

static void numbers_refuse_signs_spaces_and_overflow(void **state)
{
    (void)state;
    uint64_t n = 7;
    assert_true(str_to_u64(S("18446744073709551615"), &n) && n == UINT64_MAX);
    assert_false(str_to_u64(S("18446744073709551616"), &n));
    assert_false(str_to_u64(S(""), &n) || str_to_u64(S("-1"), &n) || str_to_u64(S(" 1"), &n) ||
                 str_to_u64(S("1x"), &n));
}

static void the_edit_distance_counts_a_swap_as_one(void **state)
{
    (void)state;
    assert_int_equal(0, str_distance(S("scan"), S("scan")));
    assert_int_equal(1, str_distance(S("scna"), S("scan")));
    assert_int_equal(1, str_distance(S("scans"), S("scan")));
    assert_int_equal(4, str_distance(S(""), S("scan")));
    assert_int_equal(3, str_distance(S("kitten"), S("sitting")));
}

static void what_is_not_utf8_becomes_a_replacement_character(void **state)
{
    (void)state;
    assert_true(str_is_utf8(S("z\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80")));
    assert_false(str_is_utf8(S("\xc0\xaf")));         /* overlong */
    assert_false(str_is_utf8(S("\xed\xa0\x80")));     /* a surrogate */
    assert_false(str_is_utf8(S("\xf4\x90\x80\x80"))); /* beyond U+10FFFF */
    assert_false(str_is_utf8(S("\xe2\x82")));         /* cut short */
    assert_str("a\xef\xbf\xbd"
               "b\xef\xbf\xbd",
               str_utf8(a, (str){"a\xff"
                                 "b\0",
                                 4}));
}

static void readers_of_bytes_give_zero_past_the_end(void **state)
{
    (void)state;
    const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 'x', 0};
    const span s = {bytes, sizeof bytes};
    span piece;
    str text;
    assert_int_equal(0x0201, span_u16le(s, 0));
    assert_int_equal(0x08070605, span_u32le(s, 4));
    assert_true(span_u64le(s, 0) == 0x0807060504030201);
    assert_true(span_u64le(s, 3) == 0 && span_u32le(s, UINT64_MAX) == 0);
    assert_true(span_slice(s, 8, 2, &piece) && !span_slice(s, 8, 3, &piece) &&
                !span_slice(s, UINT64_MAX, 2, &piece));
    assert_true(span_cstr(s, 8, &text));
    assert_str("x", text);
    assert_false(span_cstr((span){bytes, 9}, 8, &text));
}

static void sha256_is_that_of_the_standard(void **state)
{
    (void)state;
    assert_str("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
               sha256_hex(a, span_from_str(S("abc"))));
    assert_str("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
               sha256_hex(a, (span){NULL, 0}));
}

static void codes_are_stable_and_found_by_name(void **state)
{
    (void)state;
    enum finding_code code;
    assert_true(finding_by_name(S("f001"), &code) && code == F001);
    assert_false(finding_by_name(S("F999"), &code));
    for (size_t i = 0; i < FINDING_CODES; i++) {
        const struct finding_kind *kind = finding_kind((enum finding_code)i);
        enum finding_code again;
        assert_true(finding_by_name(str_from(kind->code), &again)); /* no code stands twice */
        assert_int_equal(i, again);
        assert_true(strlen(kind->title) > 0 && strlen(kind->why) > 0 && strlen(kind->fix) > 0);
    }
}

static void findings_are_sorted_by_place_and_repeats_go(void **state)
{
    (void)state;
    findings *f = findings_new(a);
    (void)finding_at(f, F002, (struct place){0}, S("s"), "no place");
    (void)finding_at(f, F001, (struct place){S("b.py"), 9, 1}, S("s"), "x");
    (void)finding_at(f, F001, (struct place){S("b.py"), 10, 1}, S("s"), "x");
    (void)finding_at(f, F001, (struct place){S("b.py"), 9, 1}, S("s"), "x");
    (void)finding_at(f, F001, (struct place){S("a.py"), 99, 1}, S("s"), "x");
    findings_sort(f);
    assert_int_equal(4, f->count);
    assert_str("a.py", f->items[0].place.file);
    assert_int_equal(9, f->items[1].place.line);
    assert_int_equal(10, f->items[2].place.line);
    assert_null(f->items[3].place.file.p);
    assert_true(findings_have_errors(f));
}

static void a_fatal_finding_sets_the_exit_code_once(void **state)
{
    (void)state;
    findings *f = findings_new(a);
    assert_false(finding_fatal(f, 4, F007, (struct place){0}, "gone"));
    assert_false(finding_fatal(f, 3, F001, (struct place){0}, "gone"));
    assert_int_equal(4, f->exit_code);
}

static void control_characters_cannot_drive_the_terminal(void **state)
{
    (void)state;
    assert_str("\\x1b[31mred\\x07    tab\\x9b", term_safe(a, S("\033[31mred\a\ttab\xc2\x9b")));
    assert_int_equal(4, term_columns(S("\xe6\xbc\xa2"
                                       "ab"))); /* one wide character and two others */
}

static void a_table_fits_the_width_and_wraps_its_last_column(void **state)
{
    (void)state;
    static const char *const HEADINGS[] = {"name", "why"};
    struct table t = {.headings = HEADINGS, .columns = 2};
    (void)strs_add(a, &t.cells, S("an-extension-with-a-rather-long-name-that-must-be-cut"));
    (void)strs_add(a, &t.cells,
                   S("some reason that is long enough to need more than one line of a narrow terminal"));
    str rest = table_text(a, &t, 60, false), line;
    size_t lines = 0;
    for (; str_next_line(&rest, &line); lines++)
        assert_true(term_columns(line) <= 60);
    assert_true(lines > 2);
}

static void percent_escapes_are_decoded_and_broken_ones_stay(void **state)
{
    (void)state;
    assert_str("a+b", url_decode(a, S("a%2Bb")));
    assert_str("%zz%2", url_decode(a, S("%zz%2")));
    assert_str("example.org", url_host(S("https://user:pw@example.org:8080/x?y#z")));
}

static void paths_are_made_plain_by_text_alone(void **state)
{
    (void)state;
    assert_str("a/c", path_normal(a, S("./a//b/../c/")));
    assert_str("../x", path_normal(a, S("a/../../x")));
    assert_str("/x", path_normal(a, S("/../x")));
    assert_str(".", path_normal(a, S("a/..")));
    assert_str("d/f", path_join(a, S("d/"), S("f")));
    assert_str("/f", path_join(a, S("d"), S("/f")));
    assert_int_equal(
        5, path_join(a, S("d"), (str){"a\0b", 3}).n); /* a NUL stays, so that opening it is refused */
    assert_str("f.py", path_base(S("x/f.py")));
    assert_str("x", path_dir(S("x/f.py")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_past_the_limit_is_null_and_overflow_too),
        cmocka_unit_test(pieces_are_zeroed_apart_and_aligned),
        cmocka_unit_test(a_list_keeps_its_items_while_it_grows),
        cmocka_unit_test(lines_end_by_lf_crlf_or_cr),
        cmocka_unit_test(cutting_and_searching_stay_inside),
        cmocka_unit_test(numbers_refuse_signs_spaces_and_overflow),
        cmocka_unit_test(the_edit_distance_counts_a_swap_as_one),
        cmocka_unit_test(what_is_not_utf8_becomes_a_replacement_character),
        cmocka_unit_test(readers_of_bytes_give_zero_past_the_end),
        cmocka_unit_test(sha256_is_that_of_the_standard),
        cmocka_unit_test(codes_are_stable_and_found_by_name),
        cmocka_unit_test(findings_are_sorted_by_place_and_repeats_go),
        cmocka_unit_test(a_fatal_finding_sets_the_exit_code_once),
        cmocka_unit_test(control_characters_cannot_drive_the_terminal),
        cmocka_unit_test(a_table_fits_the_width_and_wraps_its_last_column),
        cmocka_unit_test(percent_escapes_are_decoded_and_broken_ones_stay),
        cmocka_unit_test(paths_are_made_plain_by_text_alone),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
