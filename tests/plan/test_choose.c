/* tests/plan/test_choose.c. Judge: the order of preference and the platform's facts, on apps built as structs. */
#include "fixture.h"

#include "plan/choose.h"

static void a_wheel_of_the_dataset_is_taken_for_the_declared_python(void **state)
{
    (void)state;
    struct app *app = app_new("zerogpu");
    app_readme(app, "python_version: \"3.12\"");
    app_requirements(app, "torch==2.11.0\nnumpy\ngit+https://github.com/NVlabs/nvdiffrast.git\n");
    app_import(app, "nvdiffrast.torch", 3, 0);
    app_plan(app, NULL);
    const struct candidate *c = &app_item(app, "nvdiffrast")->chosen;
    assert_int_equal(STRATEGY_WHEEL, c->strategy);
    assert_int_equal(FIT_YES, c->fit);
    assert_true(str_contains(c->url, S("/pt211-cu130-cp312/nvdiffrast-0.4.0-cp312-cp312-linux_x86_64.whl")));
    assert_int_equal(VERIFIED_NAME, c->verified);
    app_free(app);
}

static void python_follows_the_wheels_when_nothing_declares_it(void **state)
{
    (void)state;
    struct app *app = app_new("zerogpu");
    app_requirements(app, "numpy\n");
    app_import(app, "torchmcubes", 1, 0);
    app_plan(app, NULL);
    assert_string_equal("3.12", str_c(app->a, app->plan.python));
    assert_string_equal("2.11.0", str_c(app->a, app->plan.torch));
    assert_string_equal("3.12", str_c(app->a, app->plan.pin_python));
    app_free(app);
}

static void a_declared_python_stays_when_a_weaker_source_is_still_one(void **state)
{
    (void)state;
    struct app *app = app_new("zerogpu");
    app_readme(app, "python_version: \"3.10\"");
    app_requirements(app, "numpy\n");
    app_import(app, "nvdiffrast.torch", 1, 0);
    app_plan(app, NULL);
    assert_string_equal("3.10", str_c(app->a, app->plan.python));
    assert_true(str_contains(app_item(app, "nvdiffrast")->chosen.url, S("-cp310-cp310-")));
    assert_int_equal(0, app_findings(app, F134));
    app_free(app);
}

static void a_torch_that_the_target_refuses_is_replaced_and_said(void **state)
{
    (void)state;
    struct app *app = app_new("zerogpu");
    app_readme(app, "python_version: \"3.12\"");
    app_requirements(app, "torch==2.4.0\nnumpy\n");
    app_import(app, "nvdiffrast.torch", 1, 0);
    app_plan(app, NULL);
    assert_string_equal("3.12", str_c(app->a, app->plan.python));
    assert_string_equal("2.11.0", str_c(app->a, app->plan.pin_torch));
    assert_int_equal(1, app_findings(app, F135));
    app_free(app);
}

static void a_committed_wheel_decides_the_python_that_is_declared_wrongly(void **state)
{
    (void)state;
    struct app *app = app_new("zerogpu");
    app_readme(app, "python_version: \"3.12\"");
    app_requirements(app, "numpy\n");
    assert_true(arena_room(app->a, &app->space.wheels));
    struct committed_wheel *wheel = &app->space.wheels.items[app->space.wheels.count++];
    str why;
    *wheel = (struct committed_wheel){.path = S("custom_rasterizer-0.1-cp310-cp310-linux_x86_64.whl"),
                                      .valid = true};
    assert_true(wheel_name_parse(app->a, wheel->path, &wheel->name, &why));
    app_import(app, "custom_rasterizer", 1, 0);
    app_plan(app, NULL);
    assert_string_equal("3.10", str_c(app->a, app->plan.python));
    assert_int_equal(STRATEGY_COMMITTED, app_item(app, "custom_rasterizer")->chosen.strategy);
    assert_int_equal(1, app_findings(app, F134));
    app_free(app);
}

static void the_wheel_of_another_fork_is_never_taken(void **state)
{
    (void)state;
    struct app *app = app_new("zerogpu");
    app_readme(app, "python_version: \"3.10\"");
    app_requirements(app, "git+https://github.com/ashawkey/diff-gaussian-rasterization.git\n");
    app_import(app, "diff_gaussian_rasterization", 1, 0);
    app_plan(app, NULL);
    const struct candidate *c = &app_item(app, "diff_gaussian_rasterization")->chosen;
    assert_int_equal(STRATEGY_JIT, c->strategy);
    assert_true(str_contains(c->url, S("ashawkey")));
    app_free(app);
}

static void flash_attention_3_on_blackwell_is_no_source(void **state)
{
    (void)state;
    struct app *app = app_new("zerogpu");
    app_requirements(app, "https://github.com/JeffreyXiang/Storages/releases/download/Space_Wheels_251210/"
                          "flash_attn_3-3.0.0b1-cp39-abi3-linux_x86_64.whl\n");
    app_import(app, "flash_attn_interface", 1, 0);
    app_plan(app, NULL);
    assert_int_equal(STRATEGY_NONE, app_item(app, "flash_attn_3")->chosen.strategy);
    assert_int_equal(1, app_findings(app, F221));
    for (size_t i = 0; i < app->f->count; i++)
        if (app->f->items[i].code == F221) {
            assert_true(str_contains(app->f->items[i].what, S("sm_90a")));
            assert_true(str_contains(app->f->items[i].fix, S("flash_attn"))); /* the way out */
        }
    app_free(app);
}

static void wheels_for_another_cuda_or_the_old_abi_do_not_fit(void **state)
{
    (void)state;
    struct app *app = app_new("zerogpu");
    app_readme(app, "python_version: \"3.10\"");
    app_requirements(
        app,
        "https://example.org/nvdiffrast-0.4.0+cu124torch2.6-cp310-cp310-linux_x86_64.whl\n"
        "https://example.org/flash_attn-2.8.3+cu130torch2.11cxx11abiFALSE-cp310-cp310-linux_x86_64.whl\n");
    app_import(app, "nvdiffrast.torch", 1, 0);
    app_import(app, "flash_attn", 2, 0);
    app_plan(app, NULL);
    assert_true(str_contains(app_item(app, "nvdiffrast")->chosen.url, S("zerogpu-blackwell-wheels")));
    assert_true(str_contains(app_item(app, "flash_attn")->chosen.url, S("zerogpu-blackwell-wheels")));
    app_free(app);
}

static void an_import_in_a_try_that_nobody_installs_is_unneeded(void **state)
{
    (void)state;
    struct app *app = app_new("zerogpu");
    app_import(app, "cubvh", 1, GUARD_TRY);
    app_plan(app, NULL);
    assert_int_equal(STRATEGY_UNNEEDED, app_item(app, "cubvh")->chosen.strategy);
    app_free(app);
}

static void a_cpu_target_gets_the_drop_in(void **state)
{
    (void)state;
    struct app *app = app_new("cpu-local");
    app_import(app, "torchmcubes", 1, 0);
    app_plan(app, NULL);
    assert_int_equal(STRATEGY_DROP_IN, app_item(app, "torchmcubes")->chosen.strategy);
    app_free(app);
}

static void a_target_without_a_named_gpu_gets_a_warning(void **state)
{
    (void)state;
    struct app *app = app_new("cuda-local");
    app_requirements(app, "numpy\n");
    app_import(app, "nvdiffrast.torch", 1, 0);
    app_plan(app, NULL);
    assert_int_equal(FIT_LIKELY, app_item(app, "nvdiffrast")->chosen.fit);
    assert_int_equal(1, app_findings(app, F222));
    app_free(app);
}

static void ptx_runs_on_newer_gpus_and_machine_code_does_not(void **state)
{
    (void)state;
    struct app *app = app_new("zerogpu");
    app_requirements(app, "numpy\n");
    static const struct {
        const char *archs[2];
        enum fit fit;
    } CASES[] = {{{"sm_90", NULL}, FIT_NO},
                 {{"sm_90", "compute_90"}, FIT_LIKELY},
                 {{"sm_120", NULL}, FIT_YES},
                 {{"sm_120a", NULL}, FIT_YES}};
    struct tag_list tags = {0};
    assert_true(target_tags(app->a, app->target, 12, &tags));
    const struct setting setting = {app->target, S("3.12"), 12, S("2.11.0"), S("13.0"), &tags};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct source_file file = {
            .torch = S("2.11.0"),
            .cuda = S("13.0"),
            .url = S("https://example.org/nvdiffrast-0.4.0-cp312-cp312-linux_x86_64.whl")};
        str why;
        assert_true(wheel_name_parse(app->a, file.url, &file.name, &why));
        for (size_t k = 0; k < 2 && CASES[i].archs[k]; k++)
            assert_true(strs_add(app->a, &file.archs, str_from(CASES[i].archs[k])));
        struct candidate c = {.strategy = STRATEGY_WHEEL, .url = file.url, .wheel = &file};
        candidate_verify(app->a, &setting, catalogue_by_name(&app->catalogue, S("nvdiffrast")), &c);
        assert_int_equal(CASES[i].fit, c.fit);
    }
    app_free(app);
}

static void an_asked_python_that_the_target_lacks_is_refused(void **state)
{
    (void)state;
    struct app *app = app_new("zerogpu");
    app_import(app, "nvdiffrast.torch", 1, 0);
    const struct plan_options options = {.offline = true, .python = S("3.11"), .torch = S("2.4.1")};
    app_plan(app, &options);
    assert_int_equal(1, app_findings(app, F132));
    assert_int_equal(1, app_findings(app, F133));
    app_free(app);
}

static void a_pin_without_wheels_for_the_newer_python_decides(void **state)
{
    (void)state;
    struct app *app = app_new("zerogpu");
    app_requirements(app, "numpy==1.24.4\n");
    app_import(app, "nvdiffrast.torch", 1, 0);
    app_plan(app, NULL);
    assert_string_equal("3.10", str_c(app->a, app->plan.python));
    app_free(app);
}

/* Every extension of the catalogue, on every target: an item with a source, or an error with a way out. */
static void every_extension_has_a_source_or_a_way_out(void **state)
{
    (void)state;
    static const char *const TARGETS[] = {"zerogpu", "cuda-local", "cpu-local"};
    for (size_t t = 0; t < COUNT(TARGETS); t++) {
        struct app *app = app_new(TARGETS[t]);
        app_requirements(app, "numpy\n");
        for (size_t i = 0; i < app->catalogue.count; i++)
            app_import(app, str_c(app->a, app->catalogue.items[i].imports.items[0]), i + 1, 0);
        app_plan(app, NULL);
        assert_int_equal(app->catalogue.count, app->plan.count);
        size_t none = 0;
        for (size_t i = 0; i < app->plan.count; i++) {
            const struct candidate *c = &app->plan.items[i].chosen;
            assert_true(c->reason.n > 0);
            none += c->strategy == STRATEGY_NONE;
            if (c->strategy != STRATEGY_NONE && c->strategy != STRATEGY_UNNEEDED)
                assert_true(c->url.n > 0);
        }
        assert_int_equal(none, app_findings(app, F221));
        for (size_t i = 0; i < app->f->count; i++)
            if (app->f->items[i].code == F221)
                assert_true(app->f->items[i].fix.n > 20);
        app_free(app);
    }
}

static void the_same_app_gives_the_same_plan(void **state)
{
    (void)state;
    str texts[2][2];
    struct app *apps[2];
    for (size_t i = 0; i < 2; i++) {
        struct app *app = apps[i] = app_new("zerogpu");
        app_readme(app, NULL);
        app_requirements(app, "xformers\ntorch_scatter\ngsplat==1.5.3\nspconv-cu120\n");
        static const char *const MODULES[] = {"xformers.ops", "torch_scatter", "gsplat", "spconv.pytorch",
                                              "nvdiffrast.torch"};
        for (size_t k = 0; k < COUNT(MODULES); k++)
            app_import(app, MODULES[k], k + 1, 0);
        app_plan(app, NULL);
        json_t *json = plan_json(app->a, &app->plan);
        char *text = json_dumps(json, JSON_INDENT(1));
        texts[i][0] = str_copy(app->a, str_from(text));
        texts[i][1] = lock_text(app->a, &app->plan);
        free(text);
        json_decref(json);
    }
    for (size_t k = 0; k < 2; k++)
        assert_true(str_eq(texts[0][k], texts[1][k]));
    assert_true(str_starts(texts[0][1], S("# felloe.lock/1\n")));
    app_free(apps[0]);
    app_free(apps[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wheel_of_the_dataset_is_taken_for_the_declared_python),
        cmocka_unit_test(python_follows_the_wheels_when_nothing_declares_it),
        cmocka_unit_test(a_declared_python_stays_when_a_weaker_source_is_still_one),
        cmocka_unit_test(a_torch_that_the_target_refuses_is_replaced_and_said),
        cmocka_unit_test(a_committed_wheel_decides_the_python_that_is_declared_wrongly),
        cmocka_unit_test(the_wheel_of_another_fork_is_never_taken),
        cmocka_unit_test(flash_attention_3_on_blackwell_is_no_source),
        cmocka_unit_test(wheels_for_another_cuda_or_the_old_abi_do_not_fit),
        cmocka_unit_test(an_import_in_a_try_that_nobody_installs_is_unneeded),
        cmocka_unit_test(a_cpu_target_gets_the_drop_in),
        cmocka_unit_test(a_target_without_a_named_gpu_gets_a_warning),
        cmocka_unit_test(ptx_runs_on_newer_gpus_and_machine_code_does_not),
        cmocka_unit_test(an_asked_python_that_the_target_lacks_is_refused),
        cmocka_unit_test(a_pin_without_wheels_for_the_newer_python_decides),
        cmocka_unit_test(every_extension_has_a_source_or_a_way_out),
        cmocka_unit_test(the_same_app_gives_the_same_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
