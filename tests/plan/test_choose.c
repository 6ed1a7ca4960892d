/* tests/plan/test_choose.c. Judge: the order of preference and the platform's facts, on apps built as structs. */
#include "fixture.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wheel_of_the_dataset_is_taken_for_the_declared_python),
        cmocka_unit_test(python_follows_the_wheels_when_nothing_declares_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
