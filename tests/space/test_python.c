/* What one Python source says. Judge: Python's own rules, read by hand for each source. */
#include "folder.h"

/* ---- Imports and their guards ---- */

static void guards_tell_whether_an_import_must_succeed(void **state)
{
    (void)state;
    read_source("from typing import TYPE_CHECKING\n"
                "import plain\n"
                "try:\n    import tried\nexcept ImportError:\n    import instead\n"
                "try:\n    import unhandled\nexcept KeyError:\n    pass\n"
                "try:\n    import rethrown\nexcept ImportError:\n    raise\n"
                "if unknown():\n    import conditional\n"
                "if TYPE_CHECKING:\n    import typed\n"
                "ENV = 'Huggingface'\n"
                "if ENV == 'Huggingface':\n    import decided\nelse:\n    import never\n"
                "def f():\n    import lazy\n"
                "if __name__ == '__main__':\n    import main_only\n");
    assert_int_equal(GUARD_NONE, import_of("plain")->guard);
    assert_int_equal(GUARD_TRY, import_of("tried")->guard);
    assert_int_equal(GUARD_CONDITION, import_of("instead")->guard);
    assert_int_equal(GUARD_NONE, import_of("unhandled")->guard);
    assert_int_equal(GUARD_NONE, import_of("rethrown")->guard);
    assert_int_equal(GUARD_CONDITION, import_of("conditional")->guard);
    assert_int_equal(GUARD_TYPE_CHECKING, import_of("typed")->guard);
    assert_int_equal(GUARD_NONE, import_of("decided")->guard);
    assert_int_equal(GUARD_FUNCTION, import_of("lazy")->guard);
    assert_text("f", import_of("lazy")->function);
    assert_int_equal(GUARD_MAIN, import_of("main_only")->guard);
    for (size_t i = 0; i < app.modules.items[0].imports.count; i++)
        assert_false(str_eq(app.modules.items[0].imports.items[i].module, S("never")));
}

static void an_import_keeps_its_statement_and_place(void **state)
{
    (void)state;
    read_source("import os\nfrom diso import (\n    DiffDMC,\n    DiffMC as MC,\n)\n");
    const struct py_import *import = import_of("diso");
    assert_text("from diso import ( DiffDMC, DiffMC as MC, )", import->text);
    assert_int_equal(2, import->place.line);
    assert_int_equal(2, import->names.count);
    assert_text("DiffMC", import->names.items[1]);
}

/* ---- GPU functions ---- */

static const struct gpu_function *gpu(const char *name)
{
    for (size_t i = 0; i < app.gpu_functions.count; i++)
        if (str_eq(app.gpu_functions.items[i].name, str_from(name)))
            return &app.gpu_functions.items[i];
    fail_msg("%s is not decorated", name);
    return NULL;
}

static void every_form_of_the_decorator_is_found(void **state)
{
    (void)state;
    read_source(
        "import spaces\nimport spaces as sp\nfrom spaces import GPU\nfrom spaces import GPU as on_gpu\n"
        "from datetime import timedelta\n"
        "TIME = 60 * 2\n"
        "def estimate(x):\n    return 3\n"
        "@spaces.GPU\ndef bare(): pass\n"
        "@GPU()\ndef empty(): pass\n"
        "@sp.GPU(duration=TIME)\ndef constant(): pass\n"
        "@on_gpu(90)\ndef by_position(): pass\n"
        "@spaces.GPU(duration=estimate, size='xlarge')\ndef dynamic(): pass\n"
        "@spaces.GPU(duration=lambda x: 5)\nasync def with_lambda(): yield 1\n"
        "@spaces.GPU(duration=timedelta(minutes=2))\ndef delta(): pass\n"
        "@spaces.GPU(duration=read())\ndef unknown(): pass\n"
        "class Model:\n    LONG = 75\n    @spaces.GPU(duration=LONG)\n    def run(self, image, *rest, "
        "steps=3): pass\n"
        "class Settings:\n    TIME = 33\n"
        "@spaces.GPU(duration=Settings.TIME)\ndef of_class(): pass\n"
        "def plain(): pass\nwrapped = spaces.GPU(duration=45)(plain)\n"
        "A, B = 10, 20\n@spaces.GPU(duration=B)\ndef unpacked(): pass\n");
    assert_int_equal(DURATION_DEFAULT, gpu("bare")->duration_kind);
    assert_float_equal(60, gpu("bare")->duration, 0);
    assert_int_equal(DURATION_DEFAULT, gpu("empty")->duration_kind);
    assert_float_equal(120, gpu("constant")->duration, 0);
    assert_float_equal(90, gpu("by_position")->duration, 0);
    assert_int_equal(DURATION_DYNAMIC, gpu("dynamic")->duration_kind);
    assert_text("xlarge", gpu("dynamic")->size);
    assert_int_equal(DURATION_DYNAMIC, gpu("with_lambda")->duration_kind);
    assert_true(gpu("with_lambda")->is_async && gpu("with_lambda")->is_generator);
    assert_float_equal(120, gpu("delta")->duration, 0);
    assert_int_equal(DURATION_UNKNOWN, gpu("unknown")->duration_kind);
    assert_text("read()", gpu("unknown")->duration_text);
    assert_true(gpu("Model.run")->is_method);
    assert_float_equal(75, gpu("Model.run")->duration, 0);
    assert_int_equal(4, gpu("Model.run")->parameters.count);
    assert_float_equal(33, gpu("of_class")->duration, 0);
    assert_float_equal(45, gpu("plain")->duration, 0);
    assert_float_equal(20, gpu("unpacked")->duration, 0);
    assert_int_equal(12, app.gpu_functions.count);
}

static void a_class_constant_is_not_the_modules(void **state)
{
    (void)state;
    read_source("import spaces\nTIME = 90\nclass Settings:\n    TIME = 5\n"
                "@spaces.GPU(duration=TIME)\ndef f(): pass\n");
    assert_float_equal(90, gpu("f")->duration, 0);
}

/* ---- Start-up installs ---- */

static const struct install_call *install(size_t i)
{
    if (i >= app.installs.count)
        fail_msg("there are %zu installs", app.installs.count);
    return &app.installs.items[i];
}

static void every_form_of_an_install_is_read(void **state)
{
    (void)state;
    read_source("import os, shlex, subprocess, sys\nfrom subprocess import check_call as cc\n"
                "WHEEL = 'dist/' + 'x.whl'\n"
                "os.system('pip install one')\n"
                "subprocess.run(shlex.split('pip install two --no-deps'), check=True)\n"
                "subprocess.run([sys.executable, '-m', 'pip', 'install', WHEEL])\n"
                "subprocess.run(f'{sys.executable} -m pip install \"{WHEEL}\"', shell=True)\n"
                "cc(['pip3', 'install', '-r', 'more.txt', '--extra-index-url', 'https://example.org'])\n"
                "os.system('cd native && FORCE_CUDA=1 python setup.py install')\n"
                "os.system('bash build.sh; git clone --depth 1 https://example.org/r.git /tmp/r')\n"
                "subprocess.check_output('g++ -shared a.cpp -o a.so', shell=True, cwd='src')\n"
                "os.system('nvidia-smi')\n");
    assert_int_equal(8, app.installs.count);
    assert_text("one", install(0)->commands.items[0].targets.items[0]);
    assert_false(install(0)->checked);
    assert_true(install(1)->checked);
    assert_text("--no-deps", install(1)->commands.items[0].flags.items[0]);
    assert_text("dist/x.whl", install(2)->commands.items[0].targets.items[0]);
    assert_text("dist/x.whl", install(3)->commands.items[0].targets.items[0]);
    assert_true(install(4)->checked);
    assert_text("-r more.txt", install(4)->commands.items[0].targets.items[0]);
    assert_text("native", install(5)->commands.items[0].directory);
    assert_int_equal(INSTALL_SETUP_PY, install(5)->commands.items[0].kind);
    assert_int_equal(ENV_EXTENDED, install(5)->env_kind);
    assert_text("FORCE_CUDA", install(5)->env[0].name);
    assert_int_equal(INSTALL_SCRIPT, install(6)->commands.items[0].kind);
    assert_int_equal(INSTALL_GIT_CLONE, install(6)->commands.items[1].kind);
    assert_text("/tmp/r", install(6)->commands.items[1].targets.items[1]);
    assert_int_equal(INSTALL_COMPILER, install(7)->commands.items[0].kind);
    assert_text("src", install(7)->commands.items[0].directory);
    assert_true(install(7)->shell && install(7)->checked);
}

static void the_environment_of_an_install_is_inherited_extended_or_replaced(void **state)
{
    (void)state;
    read_source("import os, subprocess\n"
                "env = os.environ.copy()\nenv['TORCH_CUDA_ARCH_LIST'] = '12.0'\n"
                "subprocess.run(['pip', 'install', 'a'])\n"
                "subprocess.run(['pip', 'install', 'b'], env=env)\n"
                "subprocess.run(['pip', 'install', 'c'], env={**os.environ, 'K': '1'})\n"
                "subprocess.run(['pip', 'install', 'd'], env=dict(os.environ, K='2'))\n"
                "subprocess.run(['pip', 'install', 'e'], env={'K': '3'})\n"
                "subprocess.run(['pip', 'install', 'f'], env=make())\n"
                "subprocess.run(['pip', 'install', 'g'], env=os.environ | {'K': '4'})\n");
    const enum env_kind expected[] = {ENV_INHERITED, ENV_EXTENDED, ENV_EXTENDED, ENV_EXTENDED,
                                      ENV_REPLACED,  ENV_UNKNOWN,  ENV_EXTENDED};
    for (size_t i = 0; i < COUNT(expected); i++)
        assert_int_equal(expected[i], install(i)->env_kind);
    assert_text("TORCH_CUDA_ARCH_LIST", install(1)->env[0].name);
    assert_text("12.0", install(1)->env[0].value);
    assert_text("2", install(3)->env[0].value);
}

static void what_a_function_installs_runs_at_start_when_module_level_calls_it(void **state)
{
    (void)state;
    add_file("tools/setup_env.py", "import os\ndef install():\n    os.system('pip install far')\n");
    add_file("tools/__init__.py", "");
    read_source("import os\nfrom tools import setup_env\nimport torch\n"
                "def outer():\n    inner()\ndef inner():\n    os.system('pip install near')\n"
                "def unused():\n    os.system('pip install never')\n"
                "outer()\nsetup_env.install()\n");
    assert_int_equal(3, app.installs.count);
    assert_true(install(0)->at_start && install(0)->after_torch);
    assert_text("inner", install(0)->function);
    assert_false(install(1)->at_start);
    assert_true(install(2)->at_start);
    assert_text("tools/setup_env.py", install(2)->place.file);
}

static void a_wrapper_installs_what_its_callers_give_it(void **state)
{
    (void)state;
    read_source("import subprocess, sys\n"
                "def install(package, *, quiet=True):\n"
                "    subprocess.check_call([sys.executable, '-m', 'pip', 'install', package])\n"
                "def sh(line):\n    subprocess.run(line, shell=True)\n"
                "install('wheels/a.whl')\n"
                "install(package='b')\n"
                "sh('cd native && pip install .')\n"
                "sh('ls')\n");
    assert_int_equal(3, app.installs.count);
    assert_text("wheels/a.whl", install(0)->commands.items[0].targets.items[0]);
    assert_text("b", install(1)->commands.items[0].targets.items[0]);
    assert_text("native", install(2)->commands.items[0].directory);
    assert_true(install(0)->at_start && install(0)->checked && install(2)->at_start);
    assert_false(install(2)->checked);
}

static void a_loop_over_constants_installs_each_of_them(void **state)
{
    (void)state;
    read_source("import os\nfor wheel in ['a.whl', 'b.whl']:\n    os.system(f'pip install {wheel}')\n");
    assert_int_equal(1, app.installs.count);
    assert_int_equal(2, install(0)->commands.count);
    assert_text("b.whl", install(0)->commands.items[1].targets.items[0]);
}

/* ---- Environment settings, order, notes ---- */

static void settings_know_whether_torch_and_spaces_came_before(void **state)
{
    (void)state;
    read_source("import os\nos.environ['A'] = '1'\nimport spaces\nos.environ.setdefault('B', '2')\n"
                "import torch\nos.environ.update({'C': '3'})\nos.putenv('D', value())\n");
    const struct env_setting *e = app.environment.items;
    assert_int_equal(4, app.environment.count);
    assert_false(e[0].after_spaces || e[0].after_torch);
    assert_true(e[1].after_spaces && !e[1].after_torch && e[1].is_default);
    assert_true(e[2].after_spaces && e[2].after_torch);
    assert_text("3", e[2].value);
    assert_null(e[3].value.p);
    assert_int_equal(3, app.spaces_import.line);
    assert_int_equal(5, app.torch_import.line);
}

static size_t notes_of(enum note_kind kind, const char *detail)
{
    size_t count = 0;
    for (size_t i = 0; i < app.notes.count; i++)
        count += app.notes.items[i].kind == kind &&
                 (!detail || str_eq(app.notes.items[i].detail, str_from(detail)));
    return count;
}

static void notes_show_how_a_gpu_function_is_used(void **state)
{
    (void)state;
    read_source("import spaces, torch\nimport gradio as gr\n"
                "@spaces.GPU\ndef shape(image):\n    mesh.export('out.glb')\n    return 'out.glb'\n"
                "@spaces.GPU\ndef paint(mesh):\n    return model(mesh).to('cuda')\n"
                "def helper():\n    mesh.export('unserved.glb')\n"
                "with gr.Blocks() as demo:\n"
                "    button.click(shape, a, b).then(paint, b, c)\n"
                "    gr.Examples([], fn=shape, cache_examples=True)\n"
                "model = model.to('cuda:0')\n"
                "demo.launch()\n");
    assert_int_equal(1, notes_of(NOTE_FIXED_OUTPUT, "out.glb"));
    assert_int_equal(0, notes_of(NOTE_FIXED_OUTPUT, "unserved.glb"));
    assert_int_equal(1, notes_of(NOTE_RETURNS_CUDA, NULL));
    assert_int_equal(1, notes_of(NOTE_GPU_CHAIN, "shape, paint"));
    assert_int_equal(1, notes_of(NOTE_EAGER_EXAMPLES, NULL));
    assert_int_equal(1, notes_of(NOTE_CUDA_INDEX, "cuda:0"));
    assert_int_equal(1, notes_of(NOTE_LAUNCH, NULL));
}

/* ---- Odd sources ---- */

static void a_source_with_faults_says_where_and_the_rest_is_read(void **state)
{
    (void)state;
    read_source("import one\ndef broken(:\n    pass\nimport two\n");
    assert_true(app.modules.items[0].parsed_with_errors);
    assert_int_equal(2, finding_of(F103)->place.line);
    assert_int_equal(GUARD_NONE, import_of("two")->guard);
}

static void odd_bytes_and_nesting_end_in_findings_not_in_crashes(void **state)
{
    (void)state;
    struct buf b = {.a = a};
    buf_add(&b, S("import one\nx = '\xff\xfe'\0\n"));
    for (size_t i = 0; i < 100000; i++)
        buf_char(&b, '(');
    add_bytes("app.py", buf_str(&b));
    read_app();
    assert_int_equal(1, findings_of(F103));
    (void)import_of("one");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(guards_tell_whether_an_import_must_succeed),
        TEST(an_import_keeps_its_statement_and_place),
        TEST(every_form_of_the_decorator_is_found),
        TEST(a_class_constant_is_not_the_modules),
        TEST(every_form_of_an_install_is_read),
        TEST(the_environment_of_an_install_is_inherited_extended_or_replaced),
        TEST(what_a_function_installs_runs_at_start_when_module_level_calls_it),
        TEST(a_wrapper_installs_what_its_callers_give_it),
        TEST(a_loop_over_constants_installs_each_of_them),
        TEST(settings_know_whether_torch_and_spaces_came_before),
        TEST(notes_show_how_a_gpu_function_is_used),
        TEST(a_source_with_faults_says_where_and_the_rest_is_read),
        TEST(odd_bytes_and_nesting_end_in_findings_not_in_crashes),
    };
    return cmocka_run_group_tests_name("space/python", tests, NULL, NULL);
}
