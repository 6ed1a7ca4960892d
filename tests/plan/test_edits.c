/* tests/plan/test_edits.c. Judge: the texts that a careful person would write, and a second run that finds nothing to do. */
#include "fixture.h"

static const str *edit_of(const struct app *app, const char *file)
{
    for (size_t i = 0; i < app->plan.edits.count; i++)
        if (str_eq(app->plan.edits.items[i].file, str_from(file)))
            return &app->plan.edits.items[i].after;
    return NULL;
}

#define CELL                                                                                                 \
    "https://huggingface.co/datasets/multimodalart/zerogpu-blackwell-wheels/resolve/main/wheels/"            \
    "pt211-cu130-cp312/"

static void requirements_keep_comments_order_and_line_ends(void **state)
{
    (void)state;
    struct app *app = app_new("zerogpu");
    app_readme(app, "python_version: \"3.12\"");
    app_requirements(app, "# ours\r\n"
                          "torch==2.11.0\r\n"
                          "gradio==6.1.0\r\n"
                          "\r\n"
                          "git+https://github.com/NVlabs/nvdiffrast.git  # the rasterizer\r\n"
                          "numpy");
    app_import(app, "nvdiffrast.torch", 1, 0);
    app_plan(app, NULL);
    assert_string_equal("# ours\r\n"
                        "torch==2.11.0\r\n"
                        "\r\n" CELL "nvdiffrast-0.4.0-cp312-cp312-linux_x86_64.whl  # the rasterizer\r\n"
                        "numpy",
                        str_c(app->a, *edit_of(app, "requirements.txt")));
    assert_null(edit_of(app, "README.md"));
    app_free(app);
}

static void front_matter_keeps_its_formatting(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after;
    } CASES[] = {
        {"python_version:   '3.10'   # old", "python_version:   '3.12'   # old"},
        {"python_version: 3.11", "python_version: \"3.12\""},
        {NULL, "sdk: gradio\npython_version: \"3.12\"\n---"},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct app *app = app_new("zerogpu");
        app_readme(app, CASES[i].before);
        app_requirements(app, "numpy\n");
        app_import(app, "nvdiffrast.torch", 1, 0);
        const struct plan_options options = {.offline = true, .python = S("3.12")};
        app_plan(app, &options);
        const str *text = edit_of(app, "README.md");
        assert_non_null(text);
        assert_true(str_contains(*text, str_from(CASES[i].after)));
        assert_true(str_starts(*text, S("---\ntitle: An app\n")));
        assert_true(str_ends(*text, S("\n\nText.\n")));
        app_free(app);
    }
}

static void a_number_that_yaml_would_shorten_gets_quotes(void **state)
{
    (void)state;
    struct app *app = app_new("zerogpu");
    app_readme(app, "python_version: 3.10");
    app_requirements(app, "numpy\n");
    app_import(app, "nvdiffrast.torch", 1, 0);
    app_plan(app, NULL);
    assert_true(str_contains(*edit_of(app, "README.md"), S("python_version: \"3.10\"\n")));
    app_free(app);
}

static void an_index_of_torch_follows_its_cuda(void **state)
{
    (void)state;
    struct app *app = app_new("zerogpu");
    app_requirements(
        app, "--extra-index-url https://download.pytorch.org/whl/cu128\ntorch\ntorchvision==0.23.0\nnumpy\n");
    app_import(app, "nvdiffrast.torch", 1, 0);
    app_plan(app, NULL);
    assert_true(
        str_starts(*edit_of(app, "requirements.txt"),
                   S("--extra-index-url "
                     "https://download.pytorch.org/whl/cu130\ntorch==2.11.0\ntorchvision==0.26.0\nnumpy\n")));
    app_free(app);
}

static void a_build_is_put_before_the_first_import(void **state)
{
    (void)state;
    struct app *app = app_new("zerogpu");
    app_readme(app, "python_version: \"3.12\"");
    app_requirements(
        app, "torch==2.11.0\nnumpy\ngit+https://github.com/ashawkey/diff-gaussian-rasterization.git\n");
    app_file(app, "app.py", "\"\"\"An app.\"\"\"\nfrom __future__ import annotations\n\nimport spaces\n");
    app_import(app, "__future__", 2, 0);
    app_import(app, "spaces", 4, 0);
    app_import(app, "diff_gaussian_rasterization", 5, 0);
    app_plan(app, NULL);
    const str after = *edit_of(app, "app.py");
    const size_t future = str_find(after, S("__future__")), build = str_find(after, S("subprocess.run(")),
                 first = str_find(after, S("import spaces"));
    assert_true(future < build && build < first && first < after.n);
    assert_true(str_contains(after, S("\"TORCH_CUDA_ARCH_LIST\": \"12.0+PTX\"")));
    assert_true(str_contains(after, S("check=True")));
    assert_true(str_contains(after, S("**os.environ")));
    assert_false(str_contains(*edit_of(app, "requirements.txt"), S("git+")));
    assert_true(str_contains(*edit_of(app, "requirements.txt"), S("\nninja\n")));
    app_free(app);
}

static void an_unchecked_run_is_checked(void **state)
{
    (void)state;
    struct app *app = app_new("zerogpu");
    app_file(app, "app.py",
             "import subprocess\n\nsubprocess.run([\"pip\", \"install\", \"./x\"])\nos.system(\"pip install "
             "y\")\n");
    app_import(app, "subprocess", 1, 0);
    static const struct {
        const char *callee, *text;
        size_t line;
    } CALLS[] = {{"subprocess.run", "subprocess.run([\"pip\", \"install\", \"./x\"])", 3},
                 {"os.system", "os.system(\"pip install y\")", 4}};
    for (size_t i = 0; i < COUNT(CALLS); i++) {
        assert_true(arena_room(app->a, &app->space.installs));
        app->space.installs.items[app->space.installs.count++] =
            (struct install_call){.callee = str_from(CALLS[i].callee),
                                  .text = str_from(CALLS[i].text),
                                  .place = {S("app.py"), CALLS[i].line, 1},
                                  .at_start = true};
    }
    app_plan(app, NULL);
    assert_string_equal("import subprocess\n\nsubprocess.run([\"pip\", \"install\", \"./x\"], "
                        "check=True)\nos.system(\"pip install y\")\n",
                        str_c(app->a, *edit_of(app, "app.py")));
    app_free(app);
}

static void a_file_with_hashes_is_left_to_the_person(void **state)
{
    (void)state;
    struct app *app = app_new("zerogpu");
    app_readme(app, "python_version: \"3.12\"");
    app_requirements(app, "numpy\n");
    assert_true(strs_add(app->a, &app->space.requirements.items[0].hashes, S("sha256:00")));
    app_import(app, "nvdiffrast.torch", 1, 0);
    app_plan(app, NULL);
    assert_null(edit_of(app, "requirements.txt"));
    assert_int_equal(1, app_findings(app, F226));
    app_free(app);
}

static void a_second_run_changes_nothing(void **state)
{
    (void)state;
    struct app *app = app_new("zerogpu");
    app_readme(app, "python_version: \"3.12\"");
    app_requirements(
        app, "--extra-index-url "
             "https://download.pytorch.org/whl/cu128\ntorch==2.8.0\ngradio\nxformers\nflash-attn==2.5.9\n"
             "torch_scatter # reductions\ngit+https://github.com/tatsy/torchmcubes.git\n");
    static const char *const MODULES[] = {"xformers.ops", "flash_attn", "torch_scatter", "torchmcubes"};
    for (size_t i = 0; i < COUNT(MODULES); i++)
        app_import(app, MODULES[i], i + 1, 0);
    app_plan(app, NULL);
    assert_true(app->plan.edits.count > 0);
    struct strs written = {0};
    assert_true(plan_write(app->a, &app->plan, &written, app->f));
    assert_true(strs_has(&written, S("requirements.txt")));
    assert_true(strs_has(&written, S("felloe.lock")));

    app_requirements(app, str_c(app->a, str_copy(app->a, app_read(app, "requirements.txt"))));
    app_plan(app, NULL);
    for (size_t i = 0; i < app->plan.edits.count; i++)
        print_message("%.*s", STR_ARG(app->plan.edits.items[i].diff));
    assert_int_equal(0, app->plan.edits.count);
    written = (struct strs){0};
    assert_true(plan_write(app->a, &app->plan, &written, app->f));
    assert_int_equal(0, written.count);
    app_free(app);
}

static void without_write_nothing_is_written(void **state)
{
    (void)state;
    struct app *app = app_new("zerogpu");
    app_requirements(app, "git+https://github.com/NVlabs/nvdiffrast.git\n");
    app_import(app, "nvdiffrast.torch", 1, 0);
    app_plan(app, NULL);
    assert_true(str_starts(app_read(app, "requirements.txt"), S("git+")));
    assert_false(file_exists(path_join(app->a, app->space.dir, S("felloe.lock"))));
    app_free(app);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requirements_keep_comments_order_and_line_ends),
        cmocka_unit_test(front_matter_keeps_its_formatting),
        cmocka_unit_test(a_number_that_yaml_would_shorten_gets_quotes),
        cmocka_unit_test(an_index_of_torch_follows_its_cuda),
        cmocka_unit_test(a_build_is_put_before_the_first_import),
        cmocka_unit_test(an_unchecked_run_is_checked),
        cmocka_unit_test(a_file_with_hashes_is_left_to_the_person),
        cmocka_unit_test(a_second_run_changes_nothing),
        cmocka_unit_test(without_write_nothing_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
