/* tests/raster/test_interpolate.c. Judge: the formulas on worked-out numbers, and copies of shared attributes. */
#include "scene.h"

static const float ATTRIBUTE[] = {1, 2, 4}, RAST[] = {.25F, .5F, 0, 1}, DB[] = {.1F, .2F, .3F, .4F};
static int FACE[] = {0, 1, 2};

static void one_pixel_has_the_worked_out_value_and_derivatives(void **state)
{
    (void)state;
    float out[1], da[2];
    assert_int_equal(FEL_OK, fel_interpolate(test_context(), F32(ATTRIBUTE, 3, 1), F32(RAST, 1, 1, 1, 4),
                                             I32(FACE, 1, 3), F32(DB, 1, 1, 1, 4), NULL, F32(out, 1, 1, 1, 1),
                                             F32(da, 1, 1, 1, 2)));
    assert_near(2.25, out[0], 1e-6);
    assert_near(-.9, da[0], 1e-6);
    assert_near(-1.4, da[1], 1e-6);
}

static void one_pixel_has_the_worked_out_gradients(void **state)
{
    (void)state;
    const float g = 1, none = 0, gda[] = {1, 0};
    for (unsigned flags = 0; flags <= FEL_DETERMINISTIC; flags++) {
        float ga[3], gr[4], gdb[4];
        assert_int_equal(FEL_OK,
                         fel_interpolate_backward(test_context(), F32(ATTRIBUTE, 3, 1), F32(RAST, 1, 1, 1, 4),
                                                  I32(FACE, 1, 3), NULL, NULL, F32(&g, 1, 1, 1, 1), NULL,
                                                  flags, F32(ga, 3, 1), F32(gr, 1, 1, 1, 4), NULL));
        const float want[] = {.25F, .5F, .25F}, want_rast[] = {-3, -2, 0, 0};
        for (int k = 0; k < 3; k++)
            assert_near(want[k], ga[k], 1e-6);
        for (int k = 0; k < 4; k++)
            assert_near(want_rast[k], gr[k], 1e-6);
        assert_int_equal(FEL_OK, fel_interpolate_backward(
                                     test_context(), F32(ATTRIBUTE, 3, 1), F32(RAST, 1, 1, 1, 4),
                                     I32(FACE, 1, 3), F32(DB, 1, 1, 1, 4), NULL, F32(&none, 1, 1, 1, 1),
                                     F32(gda, 1, 1, 1, 2), flags, F32(ga, 3, 1), NULL, F32(gdb, 1, 1, 1, 4)));
        const float want_da[] = {.1F, .3F, -.4F}, want_db[] = {-3, 0, -2, 0};
        for (int k = 0; k < 3; k++)
            assert_near(want_da[k], ga[k], 1e-6);
        for (int k = 0; k < 4; k++)
            assert_near(want_db[k], gdb[k], 1e-6);
    }
}

static void selected_attributes_keep_their_order(void **state)
{
    (void)state;
    const float attributes[] = {1, 10, 100, 2, 20, 200, 4, 40, 400};
    const int picks[][3] = {{2, 0, 0}, {2, 2, 1}, {0, 7, -1}};
    for (size_t k = 0; k < COUNT_OF(picks); k++) {
        float out[3], da[6];
        assert_int_equal(FEL_OK, fel_interpolate(test_context(), F32(attributes, 3, 3), F32(RAST, 1, 1, 1, 4),
                                                 I32(FACE, 1, 3), F32(DB, 1, 1, 1, 4), I32(picks[k], 3),
                                                 F32(out, 1, 1, 1, 3), F32(da, 1, 1, 1, 6)));
        for (int s = 0; s < 3; s++) {
            const float scale = picks[k][s] == 0 ? 1 : picks[k][s] == 1 ? 10 : picks[k][s] == 2 ? 100 : 0;
            assert_near(-.9 * (double)scale, da[2 * s], 1e-4);
            assert_near(-1.4 * (double)scale, da[2 * s + 1], 1e-4);
        }
    }
}

static void shared_attributes_equal_copies_and_their_gradient_is_the_sum(void **state)
{
    (void)state;
    enum { N = 3, A = 5 };
    struct scene s = random_scene(4, N, 40, 60, 20, 30, 1.2F, .2F);
    float *db = NEW(float, 4 * pixel_count(&s)), *rast = draw(test_context(), &s, db);
    float *attributes = NEW(float, N *s.v *A), *g = NEW(float, A *pixel_count(&s)),
          *gda = NEW(float, 2 * A * pixel_count(&s));
    float *out[3], *da[3], *grad[3];
    struct random r = {9};
    random_fill(&r, attributes, (size_t)(s.v * A), -1, 1);
    random_fill(&r, g, (size_t)(A * pixel_count(&s)), -1, 1);
    random_fill(&r, gda, (size_t)(2 * A * pixel_count(&s)), -1, 1);
    for (int n = 1; n < N; n++)
        memcpy(attributes + n * s.v * A, attributes, (size_t)(s.v * A) * sizeof(float));
    for (int k = 0; k < 3; k++) {
        const DLTensor *a = k == 0   ? F32(attributes, N, s.v, A)
                            : k == 1 ? F32(attributes, 1, s.v, A)
                                     : F32(attributes, s.v, A);
        DLTensor like = *a;
        out[k] = NEW(float, A *pixel_count(&s));
        da[k] = NEW(float, 2 * A * pixel_count(&s));
        like.data = grad[k] = NEW(float, N *s.v *A);
        assert_int_equal(FEL_OK,
                         fel_interpolate(test_context(), a, F32(rast, N, s.h, s.w, 4),
                                         I32(s.triangles, s.f, 3), F32(db, N, s.h, s.w, 4), NULL,
                                         F32(out[k], N, s.h, s.w, A), F32(da[k], N, s.h, s.w, 2 * A)));
        assert_int_equal(FEL_OK, fel_interpolate_backward(
                                     test_context(), a, F32(rast, N, s.h, s.w, 4), I32(s.triangles, s.f, 3),
                                     F32(db, N, s.h, s.w, 4), NULL, F32(g, N, s.h, s.w, A),
                                     F32(gda, N, s.h, s.w, 2 * A), 0, &like, NULL, NULL));
    }
    assert_memory_equal(out[0], out[1], (size_t)(A * pixel_count(&s)) * sizeof(float));
    assert_memory_equal(out[0], out[2], (size_t)(A * pixel_count(&s)) * sizeof(float));
    assert_memory_equal(da[0], da[2], (size_t)(2 * A * pixel_count(&s)) * sizeof(float));
    for (int k = 0; k < s.v * A; k++) {
        const double sum =
            (double)grad[0][k] + (double)grad[0][s.v * A + k] + (double)grad[0][2 * s.v * A + k];
        assert_near(sum, grad[1][k], 1e-4 * (1 + fabs(sum)));
        assert_near(sum, grad[2][k], 1e-4 * (1 + fabs(sum)));
    }
    for (int k = 0; k < 3; k++) {
        free(out[k]);
        free(da[k]);
        free(grad[k]);
    }
    free(attributes);
    free(g);
    free(gda);
    free(db);
    free(rast);
    scene_free(&s);
}

static void no_triangle_means_zero_and_no_gradient(void **state)
{
    (void)state;
    const float rast[] = {.3F, .3F, 0,   0,   .3F, .3F, 0,   6,   .3F, .3F,
                          0,   NAN, .3F, .3F, 0,   -2,  .3F, .3F, 0,   INFINITY};
    const float g[] = {1, 1, 1, 1, 1};
    float out[5] = {7, 7, 7, 7, 7}, ga[3], gr[20];
    assert_int_equal(FEL_OK, fel_interpolate(test_context(), F32(ATTRIBUTE, 3, 1), F32(rast, 1, 1, 5, 4),
                                             I32(FACE, 1, 3), NULL, NULL, F32(out, 1, 1, 5, 1), NULL));
    assert_int_equal(FEL_OK,
                     fel_interpolate_backward(test_context(), F32(ATTRIBUTE, 3, 1), F32(rast, 1, 1, 5, 4),
                                              I32(FACE, 1, 3), NULL, NULL, F32(g, 1, 1, 5, 1), NULL, 0,
                                              F32(ga, 3, 1), F32(gr, 1, 1, 5, 4), NULL));
    for (int k = 0; k < 5; k++)
        assert_near(0, out[k], 0);
    for (int k = 0; k < 20; k++)
        assert_near(0, gr[k], 0);
    for (int k = 0; k < 3; k++)
        assert_near(0, ga[k], 0);
}

static void zero_upstream_gradient_gives_zero_even_with_nan_attributes(void **state)
{
    (void)state;
    const float attributes[] = {NAN, INFINITY, 1}, g = 0;
    float ga[3], gr[4];
    assert_int_equal(FEL_OK,
                     fel_interpolate_backward(test_context(), F32(attributes, 3, 1), F32(RAST, 1, 1, 1, 4),
                                              I32(FACE, 1, 3), NULL, NULL, F32(&g, 1, 1, 1, 1), NULL, 0,
                                              F32(ga, 3, 1), F32(gr, 1, 1, 1, 4), NULL));
    for (int k = 0; k < 3; k++)
        assert_near(0, ga[k], 0);
    for (int k = 0; k < 4; k++)
        assert_near(0, gr[k], 0);
}

static void errors_name_argument_expected_and_got(void **state)
{
    (void)state;
    float out[2], da[4];
    assert_int_equal(FEL_INVALID_ARGUMENT,
                     fel_interpolate(test_context(), F32(ATTRIBUTE, 3, 1), F32(RAST, 1, 1, 1, 4),
                                     I32(FACE, 1, 3), NULL, NULL, F32(out, 1, 1, 1, 1), F32(da, 1, 1, 1, 2)));
    assert_string_equal("rast_db: expected a tensor, since out_da is one, got NULL", fel_last_error());
    assert_int_equal(FEL_INVALID_SHAPE,
                     fel_interpolate(test_context(), F32(ATTRIBUTE, 3, 1), F32(RAST, 1, 1, 1, 4),
                                     I32(FACE, 1, 3), F32(DB, 1, 1, 1, 4), NULL, F32(out, 1, 1, 1, 1),
                                     F32(da, 1, 1, 1, 4)));
    assert_non_null(strstr(fel_last_error(), "out_da: expected float32 [n, h, w, 2]"));
    assert_int_equal(FEL_INVALID_SHAPE,
                     fel_interpolate(test_context(), F32(ATTRIBUTE, 3, 1), F32(RAST, 1, 1, 1, 4),
                                     I32(FACE, 1, 3), NULL, NULL, F32(out, 1, 1, 1, 2), NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_pixel_has_the_worked_out_value_and_derivatives),
        cmocka_unit_test(one_pixel_has_the_worked_out_gradients),
        cmocka_unit_test(selected_attributes_keep_their_order),
        cmocka_unit_test(shared_attributes_equal_copies_and_their_gradient_is_the_sum),
        cmocka_unit_test(no_triangle_means_zero_and_no_gradient),
        cmocka_unit_test(zero_upstream_gradient_gives_zero_even_with_nan_attributes),
        cmocka_unit_test(errors_name_argument_expected_and_got),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
