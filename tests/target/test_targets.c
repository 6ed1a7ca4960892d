/* tests/target/test_targets.c. Judge: the platform's published facts, and folders that look like installations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "target/target.h"

static arena *a;
static findings *f;

static int set_up(void **state)
{
    (void)state;
    a = arena_new(0);
    f = findings_new(a);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_free(a);
    return 0;
}

static void zerogpu_is_what_the_platform_documents(void **state)
{
    (void)state;
    const struct target *t = target_find(a, S("zerogpu"), f);
    assert_non_null(t);
    assert_int_equal(2, t->pythons.count);
    assert_string_equal("3.12.12", str_c(a, t->pythons.items[0]));
    assert_string_equal("3.10.13", str_c(a, t->pythons.items[1]));
    assert_string_equal("3.10", str_c(a, t->python_default));
    assert_false(t->compiler_at_build || t->gpu_at_build || t->gpu_at_import);
    assert_true(t->compiler_at_run);
    assert_string_equal("/cuda-image/usr/local/cuda-13.0", str_c(a, t->cuda_home));
    assert_true(strs_has(&t->archs, S("sm_120")));
    assert_int_equal(2, t->size_count);
    assert_true(t->sizes[0].memory_gb == 48 && t->sizes[1].memory_gb == 96 && t->sizes[1].quota_factor == 2);
    assert_true(t->duration_default == 60);
    assert_true(strs_has(&t->pinned_by_platform, S("spaces")));
}

static void torch_versions_are_taken_with_and_without_their_ends(void **state)
{
    (void)state;
    const struct target *t = target_find(a, S("zerogpu"), f);
    static const struct {
        const char *version, *cuda; /* NULL: not taken */
    } CASES[] = {
        {"2.11.0", "13.0"}, {"2.11", "13.0"}, {"2.11.0+cu130", "13.0"}, {"2.9.1", "12.8"}, {"2.8", "12.8"},
        {"2.9", NULL},      {"2.1", NULL},    {"2.4.0", NULL},          {"", NULL},        {"2.11.1", NULL}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        const struct torch_offer *offer = target_torch(t, str_from(CASES[i].version));
        if (!CASES[i].cuda)
            assert_null(offer);
        else
            assert_string_equal(CASES[i].cuda, str_c(a, offer->cuda));
    }
}

static void an_unknown_target_names_the_nearest(void **state)
{
    (void)state;
    assert_null(target_find(a, S("zerogpuu"), f));
    assert_int_equal(1, f->count);
    assert_int_equal(F130, f->items[0].code);
    assert_true(str_contains(f->items[0].what, S("did you mean 'zerogpu'")));
}

static void its_tags_end_at_its_glibc(void **state)
{
    (void)state;
    const struct target *t = target_find(a, S("zerogpu"), f);
    struct tag_list tags = {0};
    assert_true(target_tags(a, t, 12, &tags));
    static const struct {
        const char *file;
        bool fits;
    } CASES[] = {{"x-1-cp312-cp312-linux_x86_64.whl", true},
                 {"x-1-cp39-abi3-manylinux_2_28_x86_64.whl", true},
                 {"x-1-cp312-cp312-manylinux_2_36_x86_64.whl", true},
                 {"x-1-cp312-cp312-manylinux_2_39_x86_64.whl", false},
                 {"x-1-cp310-cp310-linux_x86_64.whl", false},
                 {"x-1-cp312-cp312-win_amd64.whl", false},
                 {"x-1-py3-none-any.whl", true}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct wheel_name name;
        str why;
        assert_true(wheel_name_parse(a, str_from(CASES[i].file), &name, &why));
        assert_int_equal(CASES[i].fits, tags_rank(&tags, &name.tags) != SIZE_MAX);
    }
}

static void put(const char *folder, const char *path, const char *text)
{
    const str file = str_format(a, "%s/%s", folder, path);
    assert_true(dir_make(path_dir(file), f));
    assert_true(file_write(file, span_from_str(str_from(text)), f));
}

/* A virtual environment with torch: all is read from its files, none of it is run. */
static void detection_reads_python_and_torch_from_files(void **state)
{
    (void)state;
    char folder[] = "/tmp/felloe-target-XXXXXX";
    assert_non_null(mkdtemp(folder));
    put(folder, "venv/bin/python3",
        "\x7f"
        "ELF would be here");
    put(folder, "venv/pyvenv.cfg",
        "home = /opt/none/bin\ninclude-system-site-packages = false\nversion = 3.12.4\n");
    put(folder, "venv/lib/python3.12/site-packages/torch-2.11.0+cu130.dist-info/METADATA",
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.11.0+cu130\n");
    put(folder, "venv/lib/python3.12/site-packages/torch/version.py",
        "__all__ = ['__version__', 'cuda']\n__version__ = '2.11.0+cu130'\ncuda: Optional[str] = '13.0'\n");
    put(folder, "cuda/bin/nvcc", "#!/bin/sh\nexit 1\n");
    put(folder, "cuda/version.json", "{\"cuda\": {\"name\": \"CUDA SDK\", \"version\": \"13.0.88\"}}");
    assert_int_equal(0, setenv("VIRTUAL_ENV", str_c(a, str_format(a, "%s/venv", folder)), 1));
    assert_int_equal(0, setenv("CUDA_HOME", str_c(a, str_format(a, "%s/cuda", folder)), 1));
    struct target t;
    assert_true(target_detect(a, &t, f));
    assert_string_equal("3.12.4", str_c(a, t.pythons.items[0]));
    assert_string_equal("3.12", str_c(a, t.python_default));
    assert_string_equal("2.11.0", str_c(a, t.torch[0].version));
    assert_string_equal("13.0", str_c(a, t.torch[0].cuda));
    assert_string_equal("13.0", str_c(a, t.cuda));
    assert_true(t.compiler_at_run);
    assert_true(str_starts(t.glibc, S("2.")));
    assert_true(str_starts(t.glibcxx, S("3.4.")));
    assert_non_null(t.raw);

    /* Damaged files say less, and break nothing. */
    put(folder, "venv/pyvenv.cfg", "version = 3.\n");
    put(folder, "venv/lib/python3.12/site-packages/torch-2.11.0+cu130.dist-info/METADATA", "Version:\n");
    put(folder, "cuda/version.json", "{\"cuda\": 13}");
    assert_true(target_detect(a, &t, f));
    assert_int_equal(0, t.pythons.count);
    assert_int_equal(0, t.torch_count);
    assert_null(t.cuda.p);
    (void)unsetenv("VIRTUAL_ENV");
    (void)unsetenv("CUDA_HOME");
    struct proc_result result;
    const char *clean[] = {"rm", "-r", folder, NULL};
    (void)proc_run(a, &(struct proc_options){.argv = clean}, &result, f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(zerogpu_is_what_the_platform_documents, set_up, tear_down),
        cmocka_unit_test_setup_teardown(torch_versions_are_taken_with_and_without_their_ends, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_unknown_target_names_the_nearest, set_up, tear_down),
        cmocka_unit_test_setup_teardown(its_tags_end_at_its_glibc, set_up, tear_down),
        cmocka_unit_test_setup_teardown(detection_reads_python_and_torch_from_files, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
