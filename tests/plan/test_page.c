/* tests/plan/test_page.c. Judge: PEP 503, PEP 691, and pages as publishers serve them. */
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

static struct source_file_list read_page(enum source_layout layout, const char *url, const char *type,
                                         const char *body)
{
    struct source_file_list files = {0};
    str why = {NULL, 0};
    if (!index_page_read(a, layout, str_from(url), str_from(type), str_from(body), &files, &why))
        fail_msg("%.*s", STR_ARG(why));
    return files;
}

static void simple_pages_give_links_hashes_and_limits(void **state)
{
    (void)state;
    const struct source_file_list files =
        read_page(LAYOUT_SIMPLE, "https://example.org/simple/x/", "text/html",
                  "<!DOCTYPE html><html><body>\n"
                  "<!-- b > a <a href=\"no-1-py3-none-any.whl\">no</a> -->\n"
                  "<a href=\"../../files/x-1.0%2Bcu130-cp312-cp312-linux_x86_64.whl"
                  "#sha256=01E1FD63DC69C9945E70158C818C3BB07FEDF4AABCF020E6608D264CF27CC5DD\" "
                  "data-requires-python=\"&gt;=3.9\">x</a>\n"
                  "<A HREF='/y-2-py3-none-any.whl' data-yanked>y</A><a "
                  "href=//cdn.example.org/z-3-py3-none-any.whl>z</a>\n"
                  "<a href=\"readme.html\">no</a><a>no</a><a href=\"broken.whl\">no</a>\n");
    assert_int_equal(3, files.count);
    assert_string_equal("https://example.org/files/x-1.0%2Bcu130-cp312-cp312-linux_x86_64.whl",
                        str_c(a, files.items[0].url));
    assert_string_equal("01e1fd63dc69c9945e70158c818c3bb07fedf4aabcf020e6608d264cf27cc5dd",
                        str_c(a, files.items[0].sha256));
    assert_string_equal(">=3.9", str_c(a, files.items[0].requires_python));
    assert_string_equal("13.0", str_c(a, files.items[0].name.build.cuda));
    assert_true(files.items[1].yanked);
    assert_string_equal("https://example.org/y-2-py3-none-any.whl", str_c(a, files.items[1].url));
    assert_string_equal("https://cdn.example.org/z-3-py3-none-any.whl", str_c(a, files.items[2].url));
}

static void a_base_element_moves_relative_links(void **state)
{
    (void)state;
    const struct source_file_list files =
        read_page(LAYOUT_FIND_LINKS, "https://example.org/a/b.html", "text/html",
                  "<base href=\"https://other.example.org/c/d\"><a href=\"x-1-py3-none-any.whl\">");
    assert_int_equal(1, files.count);
    assert_string_equal("https://other.example.org/c/x-1-py3-none-any.whl", str_c(a, files.items[0].url));
}

static void json_pages_say_the_same(void **state)
{
    (void)state;
    const struct source_file_list files = read_page(
        LAYOUT_SIMPLE, "https://example.org/simple/x/", "application/vnd.pypi.simple.v1+json",
        "{\"meta\":{\"api-version\":\"1.1\"},\"files\":[{\"filename\":\"x-1-py3-none-any.whl\",\"url\":\"x-1-"
        "py3-none-any.whl\","
        "\"hashes\":{\"sha256\":\"01e1fd63dc69c9945e70158c818c3bb07fedf4aabcf020e6608d264cf27cc5dd\"},"
        "\"requires-python\":\">=3.10\",\"yanked\":\"broken\"},{\"filename\":\"x-1.tar.gz\",\"url\":\"x-1."
        "tar.gz\"}]}");
    assert_int_equal(1, files.count);
    assert_string_equal("https://example.org/simple/x/x-1-py3-none-any.whl", str_c(a, files.items[0].url));
    assert_true(files.items[0].yanked);
    assert_int_equal(64, files.items[0].sha256.n);
}

static void the_hubs_listing_gives_addresses_and_hashes(void **state)
{
    (void)state;
    const struct source_file_list files = read_page(
        LAYOUT_HUB_TREE, "https://huggingface.co/api/datasets/o/n/tree/main/wheels/c", "application/json",
        "[{\"type\":\"directory\",\"path\":\"wheels/c/d\"},{\"type\":\"file\",\"path\":\"wheels/c/"
        "x-1+cu130-cp312-cp312-linux_x86_64.whl\","
        "\"lfs\":{\"oid\":\"01e1fd63dc69c9945e70158c818c3bb07fedf4aabcf020e6608d264cf27cc5dd\"}}]");
    assert_int_equal(1, files.count);
    assert_string_equal(
        "https://huggingface.co/datasets/o/n/resolve/main/wheels/c/x-1%2Bcu130-cp312-cp312-linux_x86_64.whl",
        str_c(a, files.items[0].url));
    assert_int_equal(64, files.items[0].sha256.n);
}

static void a_release_lists_its_assets(void **state)
{
    (void)state;
    const struct source_file_list files = read_page(
        LAYOUT_GITHUB_RELEASE, "https://api.github.com/repos/o/n/releases/tags/v1", "application/json",
        "{\"assets\":[{\"browser_download_url\":\"https://github.com/o/n/releases/download/v1/"
        "x-1-py3-none-any.whl\","
        "\"digest\":\"sha256:01e1fd63dc69c9945e70158c818c3bb07fedf4aabcf020e6608d264cf27cc5dd\"},"
        "{\"browser_download_url\":\"https://github.com/o/n/releases/download/v1/notes.txt\"}]}");
    assert_int_equal(1, files.count);
    assert_int_equal(64, files.items[0].sha256.n);
}

static void what_is_no_page_is_refused_with_what_was_expected(void **state)
{
    (void)state;
    struct source_file_list files = {0};
    str why = {NULL, 0};
    assert_false(index_page_read(a, LAYOUT_HUB_TREE, S("https://h/api/models/o/n/tree/main"),
                                 S("application/json"), S("{\"error\":\"gone\"}"), &files, &why));
    assert_true(str_contains(why, S("list of files")));
    assert_false(index_page_read(a, LAYOUT_GITHUB_RELEASE, S("https://h/x"), S("application/json"), S("[1,"),
                                 &files, &why));
    assert_true(str_contains(why, S("expected JSON")));
    assert_false(
        index_page_read(a, LAYOUT_SIMPLE, S("https://h/x"), S("text/html"), S("not found"), &files, &why));
    assert_true(str_contains(why, S("HTML")));
    assert_int_equal(0, files.count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simple_pages_give_links_hashes_and_limits),
        cmocka_unit_test(a_base_element_moves_relative_links),
        cmocka_unit_test(json_pages_say_the_same),
        cmocka_unit_test(the_hubs_listing_gives_addresses_and_hashes),
        cmocka_unit_test(a_release_lists_its_assets),
        cmocka_unit_test(what_is_no_page_is_refused_with_what_was_expected),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
