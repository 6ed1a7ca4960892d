/* An app's folder: front matter, requirements, modules, the app file, vendored sources. Judge: pip's and Python's own rules, read by
 * hand for each folder. */
#include "folder.h"

#include <sys/stat.h>

/* ---- Front matter ---- */

static void front_matter_keeps_texts_quotes_and_places(void **state)
{
    (void)state;
    add_file("README.md",
             "---\ntitle: x\npython_version: 3.10\nsdk_version: \"5.0\"\napp_file: demo.py\n---\n# Title\n");
    add_file("demo.py", "");
    read_app();
    assert_text("3.10", app.front.python_version.text);
    assert_false(app.front.python_version.quoted);
    assert_true(app.front.sdk_version.quoted);
    assert_int_equal(3, app.front.python_version.place.line);
    assert_int_equal(6, app.front.last_line);
    assert_true(app.app_file_declared && app.app_file_exists);
}

static void broken_front_matter_is_an_error_with_a_place(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t line;
    } CASES[] = {{"---\nsdk: gradio\n", 1}, {"---\nsdk: [gradio\n---\n", 0}, {"---\n- a\n- b\n---\n", 2}};
    add_file("app.py", "import one\n");
    for (size_t i = 0; i < COUNT(CASES); i++) {
        f = findings_new(a);
        add_file("README.md", CASES[i].text);
        read_app();
        assert_int_equal(3, f->exit_code);
        assert_text("README.md", finding_of(F101)->place.file);
        assert_true(CASES[i].line == 0 || finding_of(F101)->place.line == CASES[i].line);
        (void)import_of("one"); /* the rest is still read */
    }
}

/* ---- Requirements ---- */

static const struct requirement_line *requirement(size_t i)
{
    if (i >= app.requirements.count)
        fail_msg("there are %zu lines", app.requirements.count);
    return &app.requirements.items[i];
}

static void every_line_that_pip_accepts_is_read(void **state)
{
    (void)state;
    add_file("requirements.txt",
             "--extra-index-url https://example.org/whl  # comment\n"
             "torch==2.8.0 \\\n    --hash=sha256:00 \\\n    --hash=sha256:11\n"
             "Flash_Attn @ https://example.org/flash_attn-2.8.3-cp312-cp312-linux_x86_64.whl ; "
             "python_version >= '3.12'\n"
             "git+https://example.org/a/nvdiffrast.git@v0.3#egg=nvdiffrast&subdirectory=py\n"
             "-e ./native\n"
             "dist/x-1.0-py3-none-any.whl\n"
             "https://example.org/y-2.0-py3-none-any.whl#sha256=22\n"
             "pywin32 ; sys_platform == 'win32'\n"
             "${NAME}==1\n"
             "-rmore.txt\n"
             "-c limits.txt\n");
    add_file("more.txt", "einops\n");
    add_file("limits.txt", "numpy<2\n");
    read_app();
    assert_int_equal(REQUIREMENT_OPTION, requirement(0)->kind);
    assert_text("https://example.org/whl", requirement(0)->value);
    assert_text("torch", requirement(1)->name);
    assert_int_equal(2, requirement(1)->hashes.count);
    assert_int_equal(2, requirement(1)->place.line);
    assert_int_equal(4, requirement(1)->last_line);
    assert_int_equal(REQUIREMENT_URL, requirement(2)->kind);
    assert_text("flash-attn", requirement(2)->name);
    assert_int_equal(REQUIREMENT_VCS, requirement(3)->kind);
    assert_text("v0.3", requirement(3)->revision);
    assert_text("py", requirement(3)->subdirectory);
    assert_text("https://example.org/a/nvdiffrast.git", requirement(3)->url);
    assert_int_equal(REQUIREMENT_PATH, requirement(4)->kind);
    assert_true(requirement(4)->editable);
    assert_text("x", requirement(5)->name);
    assert_text("y", requirement(6)->name);
    assert_false(requirement(7)->applies);
    assert_int_equal(1, findings_of(F102)); /* a name that only the environment knows */
    assert_int_equal(11, finding_of(F102)->place.line);
    bool einops = false, numpy = false;
    for (size_t i = 0; i < app.requirements.count; i++) {
        einops = einops || str_eq(app.requirements.items[i].name, S("einops"));
        numpy = numpy ||
                (str_eq(app.requirements.items[i].name, S("numpy")) && app.requirements.items[i].constraint);
    }
    assert_true(einops && numpy);
}

static void faults_of_requirements_name_their_line(void **state)
{
    (void)state;
    add_file("requirements.txt", "good\nbad ==\n--no-such-option\n-r missing.txt\n-r loop.txt\nlast\n");
    add_file("loop.txt", "-r requirements.txt\n");
    add_file("app.py", "");
    read_app();
    assert_int_equal(2, findings_of(F102));
    assert_int_equal(2, finding_of(F102)->place.line);
    assert_int_equal(4, finding_of(F105)->place.line);
    assert_text("loop.txt", finding_of(F104)->place.file);
    assert_text("last", requirement(app.requirements.count - 1)->name);
}

/* ---- Modules ---- */

static void modules_are_found_as_python_finds_them(void **state)
{
    (void)state;
    add_file("app.py",
             "import sys\nsys.path.insert(0, './hy3d')\nfrom pkg.sub import leaf\nfrom shape import thing\n"
             "try:\n    import guarded\nexcept ImportError:\n    pass\n");
    add_file("pkg/__init__.py", "from .star import *\n");
    add_file("pkg/star.py", "from ..outside import x\nfrom . import sibling\n");
    add_file("pkg/sibling.py", "");
    add_file("pkg/sub/__init__.py", "");
    add_file("pkg/sub/leaf.py", "from ..deep.one import two\n");
    add_file("pkg/deep/one.py", "import nvdiffrast.torch as dr\n");
    add_file("hy3d/shape.py", "import deepest\n");
    add_file("hy3d/deepest.py", "");
    add_file("guarded.py", "import torchmcubes\n");
    add_file("unreached.py", "import diso\n");
    read_app();
    static const char *const START[] = {"app.py",         "pkg/__init__.py", "pkg/star.py",
                                        "pkg/sibling.py", "pkg/sub/leaf.py", "pkg/deep/one.py",
                                        "hy3d/shape.py",  "hy3d/deepest.py"};
    for (size_t i = 0; i < COUNT(START); i++) {
        if (!module_of(START[i]))
            fail_msg("%s is not reached", START[i]);
        assert_true(module_of(START[i])->at_start);
    }
    assert_non_null(module_of("guarded.py"));
    assert_false(module_of("guarded.py")->at_start);
    assert_null(module_of("unreached.py"));
    assert_int_equal(SIZE_MAX, import_of("nvdiffrast.torch")->local);
    assert_int_not_equal(SIZE_MAX, import_of("shape")->local);
}

static void circular_imports_end(void **state)
{
    (void)state;
    add_file("app.py", "import one\n");
    add_file("one.py", "import two\nimport torch\n");
    add_file("two.py", "import one\nimport app\n");
    read_app();
    assert_int_equal(3, app.modules.count);
    assert_true(module_of("two.py")->at_start);
}

static void facts_do_not_depend_on_how_much_of_a_module_is_parsed(void **state)
{
    (void)state;
    add_file("app.py", "import model\nmodel.start()\n");
    add_file("model.py",
             "import torch\nimport helper\n\n\ndef start():\n    '''Long\n    import not_this\n    '''\n    "
             "values = [\n"
             "        1,\n    ]\n    helper.go()\n    return values\n\n\nclass Net:\n    def run(self):\n"
             "        x = 1; import lazy_one\n        if self.fast:\n            from lazy_two import y\n"
             "        else: y = 'def f(): import not_this'\n        return x\n");
    add_file("helper.py", "import os\ndef go():\n    os.system('pip install x')\n");
    read_app();
    assert_int_equal(1, app.installs.count);
    assert_true(app.installs.items[0].at_start);
    assert_int_equal(GUARD_FUNCTION, import_of("lazy_one")->guard);
    assert_int_equal(18, import_of("lazy_one")->place.line);
    assert_int_equal(16, import_of("lazy_one")->place.column);
    assert_int_equal(GUARD_FUNCTION | GUARD_CONDITION, import_of("lazy_two")->guard);
    assert_text("Net.run", import_of("lazy_two")->function);
    for (size_t i = 0; i < module_of("model.py")->imports.count; i++)
        assert_false(str_eq(module_of("model.py")->imports.items[i].module, S("not_this")));
}

/* ---- The app file ---- */

static void without_front_matter_the_file_that_looks_most_like_an_app_is_taken(void **state)
{
    (void)state;
    add_file("setup.py", "from setuptools import setup\nsetup()\n");
    add_file("utils.py", "import os\n");
    add_file("gradio_app.py", "import gradio as gr\ngr.Interface(f, 'text', 'text').launch()\n");
    read_app();
    assert_text("gradio_app.py", app.app_file);
    assert_false(app.app_file_declared);
}

static void a_folder_without_an_app_is_read_without_one(void **state)
{
    (void)state;
    add_file("requirements.txt", "torch\n");
    read_app();
    assert_null(app.app_file.p);
    assert_int_equal(0, app.modules.count);
}

/* ---- What lies in the folder ---- */

static void vendored_sources_tell_cuda_from_cpp(void **state)
{
    (void)state;
    add_file("a/setup.py",
             "import torch\nfrom torch.utils.cpp_extension import CUDAExtension\nsetup(name='ras', "
             "ext_modules=[CUDAExtension('ras_kernel', ['a.cu'])] if torch.cuda.is_available() else [])\n");
    add_file("b/compile.sh", "c++ -O3 -shared -std=c++11 -fPIC `python -m pybind11 --includes` b.cpp -o "
                             "painter`python3-config --extension-suffix`\n");
    add_file("c/setup.py", "from setuptools import setup\nsetup(name='plain', packages=['plain'])\n");
    add_file("app.py", "");
    read_app();
    assert_int_equal(3, app.vendored.count);
    assert_int_equal(COMPILED_CUDA, app.vendored.items[0].compiled);
    assert_text("ras", app.vendored.items[0].distribution);
    assert_true(app.vendored.items[0].asks_gpu && strs_has(&app.vendored.items[0].modules, S("ras_kernel")));
    assert_int_equal(COMPILED_CPP, app.vendored.items[1].compiled);
    assert_true(app.vendored.items[1].foreign_suffix &&
                strs_has(&app.vendored.items[1].modules, S("painter")));
    assert_int_equal(COMPILED_NONE, app.vendored.items[2].compiled);
}

static void committed_wheels_and_pointers_are_told_apart(void **state)
{
    (void)state;
    add_file("w/good-1.0-cp312-cp312-linux_x86_64.whl", "PK");
    add_file("w/pointer-1.0-cp312-cp312-linux_x86_64.whl",
             "version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
    add_file("w/wrong.whl", "PK");
    read_app();
    assert_int_equal(3, app.wheels.count);
    assert_true(app.wheels.items[0].valid && !app.wheels.items[0].is_pointer);
    assert_true(app.wheels.items[1].is_pointer);
    assert_false(app.wheels.items[2].valid);
    assert_non_null(app.wheels.items[2].why.p);
}

static void links_that_loop_and_huge_files_are_survived(void **state)
{
    (void)state;
    add_file("app.py", "import big\nimport one\n");
    add_file("big.py", "");
    assert_int_equal(0, symlink(".", str_c(a, path_join(a, folder, S("loop")))));
    assert_int_equal(0, truncate(str_c(a, path_join(a, folder, S("big.py"))), 100 << 20));
    add_file("README.md", "");
    assert_int_equal(0, truncate(str_c(a, path_join(a, folder, S("README.md"))), 100 << 20));
    read_app();
    (void)import_of("one");
    assert_text("big.py", finding_of(F103)->place.file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(front_matter_keeps_texts_quotes_and_places),
        TEST(broken_front_matter_is_an_error_with_a_place),
        TEST(every_line_that_pip_accepts_is_read),
        TEST(faults_of_requirements_name_their_line),
        TEST(modules_are_found_as_python_finds_them),
        TEST(circular_imports_end),
        TEST(facts_do_not_depend_on_how_much_of_a_module_is_parsed),
        TEST(without_front_matter_the_file_that_looks_most_like_an_app_is_taken),
        TEST(a_folder_without_an_app_is_read_without_one),
        TEST(vendored_sources_tell_cuda_from_cpp),
        TEST(committed_wheels_and_pointers_are_told_apart),
        TEST(links_that_loop_and_huge_files_are_survived),
    };
    return cmocka_run_group_tests_name("space/folder", tests, NULL, NULL);
}
