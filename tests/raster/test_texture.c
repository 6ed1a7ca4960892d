/* tests/raster/test_texture.c. Judge: worked-out numbers, and the transposes and limits that the definitions imply. */
#include "scene.h"

static const float SMALL[] = {0, 1, 2, 3}; /* 2 x 2, row 0 first */
static const fel_texture_boundary FLAT[] = {FEL_BOUNDARY_WRAP, FEL_BOUNDARY_CLAMP, FEL_BOUNDARY_ZERO};

/* One channel, one image of p pixels in a row. */
static void sample(const float *texture, int h, int w, const float *uv, int p, fel_texture_filter filter,
                   fel_texture_boundary boundary, float *out)
{
    if (fel_texture(test_context(), F32(texture, 1, h, w, 1), NULL, 0, F32(uv, 1, 1, p, 2), NULL, NULL,
                    filter, boundary, F32(out, 1, 1, p, 1)))
        fail_msg("%s", fel_last_error());
}

static void bilinear_lookups_have_the_worked_out_values(void **state)
{
    (void)state;
    const float uv[] = {.5F, .5F, .25F, .25F, 0, 0, 1, 1, 1.25F, .75F, -.25F, .75F};
    const float want[3][6] = {{1.5F, 0, 1.5F, 1.5F, 2, 3}, {1.5F, 0, 0, 3, 3, 2}, {1.5F, 0, 0, .75F, 0, 0}};
    for (int b = 0; b < 3; b++) {
        float out[6];
        sample(SMALL, 2, 2, uv, 6, FEL_FILTER_LINEAR, FLAT[b], out);
        for (int k = 0; k < 6; k++)
            assert_near(want[b][k], out[k], 1e-6);
    }
}

static void nearest_lookups_have_the_worked_out_values(void **state)
{
    (void)state;
    const float uv[] = {.49F, .49F, .5F, .5F, 1, 1, -1e-9F, -1e-9F};
    const float want[3][4] = {{0, 3, 0, 3}, {0, 3, 3, 0}, {0, 3, 0, 0}};
    for (int b = 0; b < 3; b++) {
        float out[4];
        sample(SMALL, 2, 2, uv, 4, FEL_FILTER_NEAREST, FLAT[b], out);
        for (int k = 0; k < 4; k++)
            assert_near(want[b][k], out[k], 0);
    }
}

static void bilinear_gradients_have_the_worked_out_values(void **state)
{
    (void)state;
    const float uv[] = {.5F, .5F}, g = 1;
    for (unsigned flags = 0; flags <= FEL_DETERMINISTIC; flags++) {
        float gt[4], guv[2];
        assert_int_equal(FEL_OK, fel_texture_backward(
                                     test_context(), F32(SMALL, 1, 2, 2, 1), NULL, 0, F32(uv, 1, 1, 1, 2),
                                     NULL, NULL, FEL_FILTER_LINEAR, FEL_BOUNDARY_WRAP, F32(&g, 1, 1, 1, 1),
                                     flags, F32(gt, 1, 2, 2, 1), NULL, F32(guv, 1, 1, 1, 2), NULL, NULL));
        assert_near(2, guv[0], 1e-6);
        assert_near(4, guv[1], 1e-6);
        for (int k = 0; k < 4; k++)
            assert_near(.25, gt[k], 1e-6);
    }
}

static void levels_are_the_means_of_the_one_before(void **state)
{
    (void)state;
    float base[8], one[2], two[1];
    for (int k = 0; k < 8; k++)
        base[k] = (float)(k % 4 + 4 * (k / 4));
    DLTensor *levels[] = {F32(one, 1, 1, 2, 1), F32(two, 1, 1, 1, 1)};
    int count;
    assert_int_equal(FEL_OK, fel_texture_level_count(2, 4, -1, &count));
    assert_int_equal(2, count);
    assert_int_equal(FEL_OK, fel_texture_mips(test_context(), F32(base, 1, 2, 4, 1), levels, 2));
    assert_near(2.5, one[0], 0);
    assert_near(4.5, one[1], 0);
    assert_near(3.5, two[0], 0);
}

static void odd_sides_stop_the_levels_and_the_error_names_them(void **state)
{
    (void)state;
    int count = -1;
    assert_int_equal(FEL_INVALID_SHAPE, fel_texture_level_count(6, 6, -1, &count));
    assert_non_null(strstr(fel_last_error(), "level 1 is 3 x 3"));
    assert_int_equal(FEL_OK, fel_texture_level_count(6, 6, 1, &count));
    assert_int_equal(1, count);
    assert_int_equal(FEL_OK, fel_texture_level_count(6, 6, 0, &count));
    assert_int_equal(0, count);
    assert_int_equal(FEL_OK, fel_texture_level_count(65536, 1, -1, &count));
    assert_int_equal(16, count);
}

/* A 1-channel stack whose level k is constant k, so that a lookup returns its level. */
enum { STACK_SIDE = 16, STACK_LEVELS = 4 };
struct stack {
    float base[STACK_SIDE * STACK_SIDE], level[STACK_LEVELS][64];
};

static struct stack level_stack(void)
{
    struct stack s = {{0}, {{0}}};
    for (int k = 0; k < STACK_LEVELS; k++)
        for (int n = 0; n < 64; n++)
            s.level[k][n] = (float)(k + 1);
    return s;
}

#define STACK_TENSORS(s)                                                                                     \
    ((const DLTensor *[]){F32((s).level[0], 1, 8, 8, 1), F32((s).level[1], 1, 4, 4, 1),                      \
                          F32((s).level[2], 1, 2, 2, 1), F32((s).level[3], 1, 1, 1, 1)})

static float level_of(const float *jacobian, const float *bias, fel_texture_filter filter)
{
    const struct stack s = level_stack();
    float da[4], out;
    for (int k = 0; jacobian && k < 4; k++)
        da[k] = jacobian[k] / STACK_SIDE;
    const float uv[] = {.4F, .6F};
    if (fel_texture(test_context(), F32(s.base, 1, STACK_SIDE, STACK_SIDE, 1), STACK_TENSORS(s), STACK_LEVELS,
                    F32(uv, 1, 1, 1, 2), jacobian ? F32(da, 1, 1, 1, 4) : NULL,
                    bias ? F32(bias, 1, 1, 1) : NULL, filter, FEL_BOUNDARY_WRAP, F32(&out, 1, 1, 1, 1)))
        fail_msg("%s", fel_last_error());
    return out;
}

static void level_is_the_log_of_the_longer_axis(void **state)
{
    (void)state;
    const struct {
        float j[4];
        double level;
    } cases[] = {{{4, 0, 0, 1}, 2},        {{3, 3, 0, 0}, 2.084963}, {{2, 0, 0, 2}, 1},
                 {{1, 2, 3, 4}, 2.450218}, {{0, 0, 0, 0}, 0},        {{1e30F, 0, 0, 0}, 4},
                 {{NAN, 0, 0, 0}, 0},      {{INFINITY, 0, 0, 0}, 0}, {{.1F, 0, 0, .1F}, 0}};
    for (size_t k = 0; k < COUNT_OF(cases); k++)
        assert_near(cases[k].level, level_of(cases[k].j, NULL, FEL_FILTER_LINEAR_MIPMAP_LINEAR), 1e-5);
}

static void bias_alone_is_the_level_and_is_clamped(void **state)
{
    (void)state;
    const struct {
        float bias;
        fel_texture_filter filter;
        double level;
    } cases[] = {{1.5F, FEL_FILTER_LINEAR_MIPMAP_LINEAR, 1.5}, {1.9F, FEL_FILTER_LINEAR_MIPMAP_NEAREST, 1},
                 {-3, FEL_FILTER_LINEAR_MIPMAP_LINEAR, 0},     {99, FEL_FILTER_LINEAR_MIPMAP_LINEAR, 4},
                 {99, FEL_FILTER_LINEAR_MIPMAP_NEAREST, 4},    {NAN, FEL_FILTER_LINEAR_MIPMAP_LINEAR, 0}};
    for (size_t k = 0; k < COUNT_OF(cases); k++)
        assert_near(cases[k].level, level_of(NULL, &cases[k].bias, cases[k].filter), 1e-6);
    const float j[] = {4, 0, 0, 1}, bias = .25F;
    assert_near(2.25, level_of(j, &bias, FEL_FILTER_LINEAR_MIPMAP_LINEAR), 1e-5);
}

static void level_gradients_have_the_worked_out_values(void **state)
{
    (void)state;
    const struct stack s = level_stack();
    const float j[] = {1, 2, 3, 4}, want[] = {.061521F, .087298F, .139070F, .197342F}, uv[] = {.4F, .6F},
                g = 1;
    float da[4], gda[4], gbias, guv[2];
    for (int k = 0; k < 4; k++)
        da[k] = j[k] / STACK_SIDE;
    const float zero = 0;
    assert_int_equal(FEL_OK, fel_texture_backward(test_context(), F32(s.base, 1, STACK_SIDE, STACK_SIDE, 1),
                                                  STACK_TENSORS(s), STACK_LEVELS, F32(uv, 1, 1, 1, 2),
                                                  F32(da, 1, 1, 1, 4), F32(&zero, 1, 1, 1),
                                                  FEL_FILTER_LINEAR_MIPMAP_LINEAR, FEL_BOUNDARY_WRAP,
                                                  F32(&g, 1, 1, 1, 1), 0, NULL, NULL, F32(guv, 1, 1, 1, 2),
                                                  F32(gda, 1, 1, 1, 4), F32(&gbias, 1, 1, 1)));
    assert_near(1, gbias, 1e-6); /* the levels differ by one */
    for (int k = 0; k < 4; k++)
        assert_near((double)want[k] * STACK_SIDE, gda[k], 2e-5);
    /* a round footprint, between levels: the trace's half is the slope */
    const float round_da[] = {3.0F / STACK_SIDE, 0, 0, 3.0F / STACK_SIDE};
    assert_int_equal(FEL_OK, fel_texture_backward(
                                 test_context(), F32(s.base, 1, STACK_SIDE, STACK_SIDE, 1), STACK_TENSORS(s),
                                 STACK_LEVELS, F32(uv, 1, 1, 1, 2), F32(round_da, 1, 1, 1, 4), NULL,
                                 FEL_FILTER_LINEAR_MIPMAP_LINEAR, FEL_BOUNDARY_WRAP, F32(&g, 1, 1, 1, 1), 0,
                                 NULL, NULL, NULL, F32(gda, 1, 1, 1, 4), NULL));
    assert_near(STACK_SIDE * 3 / (2 * log(2) * 9), gda[0], 1e-4);
    assert_near(gda[0], gda[3], 1e-6);
    /* clamped at the last level: nothing */
    const float far_bias = 50;
    assert_int_equal(FEL_OK, fel_texture_backward(test_context(), F32(s.base, 1, STACK_SIDE, STACK_SIDE, 1),
                                                  STACK_TENSORS(s), STACK_LEVELS, F32(uv, 1, 1, 1, 2), NULL,
                                                  F32(&far_bias, 1, 1, 1), FEL_FILTER_LINEAR_MIPMAP_LINEAR,
                                                  FEL_BOUNDARY_WRAP, F32(&g, 1, 1, 1, 1), 0, NULL, NULL, NULL,
                                                  NULL, F32(&gbias, 1, 1, 1)));
    assert_near(0, gbias, 0);
}

static void custom_levels_take_their_own_gradients_and_built_ones_flow_to_the_base(void **state)
{
    (void)state;
    enum { P = 200, C = 3 };
    struct random r = {31};
    float base[16 * 8 * C], l1[8 * 4 * C], l2[4 * 2 * C], l3[2 * C], uv[2 * P], da[4 * P], g[C * P];
    float own[16 * 8 * C], g1[8 * 4 * C], g2[4 * 2 * C], g3[2 * C], whole[16 * 8 * C];
    random_fill(&r, base, COUNT_OF(base), -1, 1);
    random_fill(&r, uv, COUNT_OF(uv), -1, 2);
    random_fill(&r, da, COUNT_OF(da), -.4F, .4F);
    random_fill(&r, g, COUNT_OF(g), -1, 1);
    const DLTensor *texture = F32(base, 1, 16, 8, C);
    DLTensor *levels[] = {F32(l1, 1, 8, 4, C), F32(l2, 1, 4, 2, C), F32(l3, 1, 2, 1, C)};
    DLTensor *grads[] = {F32(g1, 1, 8, 4, C), F32(g2, 1, 4, 2, C), F32(g3, 1, 2, 1, C)};
    const DLTensor *const *stack = (const DLTensor *const *)levels;
    assert_int_equal(FEL_OK, fel_texture_mips(test_context(), texture, levels, 3));
    for (unsigned flags = 0; flags <= FEL_DETERMINISTIC; flags++) {
        assert_int_equal(FEL_OK,
                         fel_texture_backward(test_context(), texture, stack, 3, F32(uv, 1, 1, P, 2),
                                              F32(da, 1, 1, P, 4), NULL, FEL_FILTER_LINEAR_MIPMAP_LINEAR,
                                              FEL_BOUNDARY_CLAMP, F32(g, 1, 1, P, C), flags,
                                              F32(own, 1, 16, 8, C), grads, NULL, NULL, NULL));
        assert_int_equal(FEL_OK,
                         fel_texture_backward(test_context(), texture, stack, 3, F32(uv, 1, 1, P, 2),
                                              F32(da, 1, 1, P, 4), NULL, FEL_FILTER_LINEAR_MIPMAP_LINEAR,
                                              FEL_BOUNDARY_CLAMP, F32(g, 1, 1, P, C), flags,
                                              F32(whole, 1, 16, 8, C), NULL, NULL, NULL, NULL));
        double reached[4] = {0, 0, 0, 0};
        for (int y = 0; y < 16; y++) {
            for (int x = 0; x < 8; x++) {
                for (int c = 0; c < C; c++) {
                    const double a = (double)own[(y * 8 + x) * C + c],
                                 b = (double)g1[(y / 2 * 4 + x / 2) * C + c] / 4,
                                 d = (double)g2[(y / 4 * 2 + x / 4) * C + c] / 16,
                                 e = (double)g3[y / 8 * C + c] / 64;
                    assert_near(a + b + d + e, whole[(y * 8 + x) * C + c], 1e-5);
                    reached[0] += fabs(a), reached[1] += fabs(b), reached[2] += fabs(d),
                        reached[3] += fabs(e);
                }
            }
        }
        for (int k = 0; k < 4; k++)
            assert_true(reached[k] > 0.1);
    }
}

/* ---- cube ---- */

static void cube_sample(const float *texture, int side, const float *direction, int p,
                        fel_texture_filter filter, float *out)
{
    if (fel_texture(test_context(), F32(texture, 1, 6, side, side, 1), NULL, 0, F32(direction, 1, 1, p, 3),
                    NULL, NULL, filter, FEL_BOUNDARY_CUBE, F32(out, 1, 1, p, 1)))
        fail_msg("%s", fel_last_error());
}

static void cube_direction(int face, double s, double t, float v[3])
{
    const float a = (float)(2 * s - 1), b = (float)(2 * t - 1);
    const float table[6][3] = {{1, -b, -a}, {-1, -b, a}, {a, 1, b}, {a, -1, -b}, {a, -b, 1}, {-a, -b, -1}};
    memcpy(v, table[face], 3 * sizeof *v);
}

static void cube_texel_centres_return_their_texel(void **state)
{
    (void)state;
    enum { S = 5 };
    float texture[6 * S * S], v[6 * S * S][3], linear[6 * S * S], nearest[6 * S * S];
    for (int k = 0; k < 6 * S * S; k++) {
        texture[k] = (float)k;
        cube_direction(k / (S * S), (k % S + .5) / S, (k / S % S + .5) / S, v[k]);
        for (int c = 0; c < 3; c++)
            v[k][c] *= 7;
    }
    cube_sample(texture, S, v[0], 6 * S * S, FEL_FILTER_LINEAR, linear);
    cube_sample(texture, S, v[0], 6 * S * S, FEL_FILTER_NEAREST, nearest);
    for (int k = 0; k < 6 * S * S; k++) {
        assert_near(k, linear[k], 1e-3);
        assert_near(k, nearest[k], 0);
    }
}

static void equal_components_choose_x_before_y_before_z(void **state)
{
    (void)state;
    const float texture[] = {0, 1, 2, 3, 4, 5};
    const float v[] = {1, 0, 0, -1, 0, 0, 0, 1, 0, 0, -1, 0, 0, 0, 1, 0, 0, -1, 1, 0, 1, 1, 1, 1, 0, 1, 1};
    const float want[] = {0, 1, 2, 3, 4, 5, 0, 0, 2}; /* by face, with nearest */
    float out[9];
    cube_sample(texture, 1, v, 9, FEL_FILTER_NEAREST, out);
    for (int k = 0; k < 9; k++)
        assert_near(want[k], out[k], 0);
    const float edges[] = {1, 0, 1, 1, 1, 1};
    cube_sample(texture, 1, edges, 2, FEL_FILTER_LINEAR, out);
    assert_near(2, out[0], 1e-6); /* between faces 0 and 4 */
    assert_near(2, out[1], 1e-6); /* mean of faces 0, 2 and 4 */
}

static void cube_has_no_seam_at_edges_and_corners(void **state)
{
    (void)state;
    enum { S = 8, STEPS = 4000 };
    float texture[6 * S * S], v[3];
    for (int k = 0; k < 6 * S * S; k++) {
        cube_direction(k / (S * S), (k % S + .5) / S, (k / S % S + .5) / S, v);
        const float length = sqrtf(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
        texture[k] = v[0] / length + .7F * v[1] / length - .4F * v[2] * v[1] / (length * length);
    }
    struct random r = {77};
    float *v3 = NEW(float, 3 * STEPS), *out = NEW(float, STEPS);
    for (int path = 0; path < 60; path++) { /* great circles and circles that pass near corners */
        float a[3], b[3];
        random_fill(&r, a, 3, -1, 1);
        random_fill(&r, b, 3, -1, 1);
        for (int c = 0; path % 3 == 0 && c < 3; c++)
            a[c] = a[c] > 0 ? 1 : -1;
        for (int k = 0; k < STEPS; k++)
            for (int c = 0; c < 3; c++)
                v3[3 * k + c] =
                    a[c] * cosf(6.2831853F * (float)k / STEPS) + b[c] * sinf(6.2831853F * (float)k / STEPS);
        cube_sample(texture, S, v3, STEPS, FEL_FILTER_LINEAR, out);
        for (int k = 1; k < STEPS; k++) {
            const float *d = v3 + 3 * k;
            if (d[0] * d[0] + d[1] * d[1] + d[2] * d[2] > .1F && fabsf(out[k] - out[k - 1]) > .03F)
                fail_msg("a jump of %g at (%g, %g, %g)", (double)(out[k] - out[k - 1]), (double)d[0],
                         (double)d[1], (double)d[2]);
        }
    }
    free(v3);
    free(out);
}

static void directions_and_coordinates_without_meaning_give_zero(void **state)
{
    (void)state;
    const float texture[] = {9, 9, 9, 9, 9, 9}, g[] = {1, 1, 1, 1};
    const float v[] = {0, 0, 0, NAN, 1, 0, 1, INFINITY, 0, 0, 0, -0.0F};
    float out[4] = {7, 7, 7, 7}, guv[12], gt[6];
    cube_sample(texture, 1, v, 4, FEL_FILTER_LINEAR, out);
    assert_int_equal(
        FEL_OK, fel_texture_backward(test_context(), F32(texture, 1, 6, 1, 1, 1), NULL, 0, F32(v, 1, 1, 4, 3),
                                     NULL, NULL, FEL_FILTER_LINEAR, FEL_BOUNDARY_CUBE, F32(g, 1, 1, 4, 1), 0,
                                     F32(gt, 1, 6, 1, 1, 1), NULL, F32(guv, 1, 1, 4, 3), NULL, NULL));
    for (int k = 0; k < 4; k++)
        assert_near(0, out[k], 0);
    for (int k = 0; k < 12; k++)
        assert_near(0, guv[k], 0);
    for (int k = 0; k < 6; k++)
        assert_near(0, gt[k], 0);
    const float uv[] = {NAN, 0, 0, INFINITY, -INFINITY, 1, 3e38F, -3e38F};
    for (int b = 0; b < 3; b++) {
        sample(SMALL, 2, 2, uv, 4, FEL_FILTER_LINEAR, FLAT[b], out);
        for (int k = 0; k < 3; k++)
            assert_near(0, out[k], 0);
        sample(SMALL, 2, 2, uv, 4, FEL_FILTER_NEAREST, FLAT[b], out);
        assert_true(isfinite(out[3]));
    }
}

static void batch_of_one_serves_every_image(void **state)
{
    (void)state;
    struct random r = {5};
    float two[2 * 4 * 4], uv[2 * 10 * 2], out[2][20];
    random_fill(&r, two, 16, 0, 1);
    memcpy(two + 16, two, 16 * sizeof *two);
    random_fill(&r, uv, COUNT_OF(uv), 0, 1);
    for (int k = 0; k < 2; k++)
        assert_int_equal(FEL_OK, fel_texture(test_context(), k ? F32(two, 2, 4, 4, 1) : F32(two, 1, 4, 4, 1),
                                             NULL, 0, F32(uv, 2, 2, 5, 2), NULL, NULL, FEL_FILTER_LINEAR,
                                             FEL_BOUNDARY_WRAP, F32(out[k], 2, 2, 5, 1)));
    assert_memory_equal(out[0], out[1], sizeof out[0]);
}

static void errors_name_argument_expected_and_got(void **state)
{
    (void)state;
    const float uv[] = {0, 0};
    float out[1], level[4];
    assert_int_equal(FEL_INVALID_ARGUMENT,
                     fel_texture(test_context(), F32(SMALL, 1, 2, 2, 1), NULL, 0, F32(uv, 1, 1, 1, 2), NULL,
                                 NULL, FEL_FILTER_LINEAR_MIPMAP_LINEAR, FEL_BOUNDARY_WRAP,
                                 F32(out, 1, 1, 1, 1)));
    assert_non_null(strstr(fel_last_error(), "uv_da: expected uv_da or bias"));
    assert_int_equal(FEL_INVALID_SHAPE,
                     fel_texture(test_context(), F32(SMALL, 1, 2, 2, 1),
                                 (const DLTensor *[]){F32(level, 1, 2, 2, 1)}, 1, F32(uv, 1, 1, 1, 2), NULL,
                                 F32(uv, 1, 1, 1), FEL_FILTER_LINEAR_MIPMAP_LINEAR, FEL_BOUNDARY_WRAP,
                                 F32(out, 1, 1, 1, 1)));
    assert_string_equal("levels[0]: expected 1 x 1 texels of 1 channels, batch 1, got 2 x 2 of 1, batch 1",
                        fel_last_error());
    assert_int_equal(FEL_INVALID_ARGUMENT,
                     fel_texture(test_context(), F32(SMALL, 1, 2, 2, 1),
                                 (const DLTensor *[]){F32(level, 1, 1, 1, 1), F32(level, 1, 1, 1, 1)}, 2,
                                 F32(uv, 1, 1, 1, 2), NULL, F32(uv, 1, 1, 1), FEL_FILTER_LINEAR_MIPMAP_LINEAR,
                                 FEL_BOUNDARY_WRAP, F32(out, 1, 1, 1, 1)));
    assert_non_null(strstr(fel_last_error(), "level_count"));
    assert_int_equal(FEL_INVALID_ARGUMENT,
                     fel_texture(test_context(), F32(SMALL, 1, 2, 2, 1), NULL, 0, F32(uv, 1, 1, 1, 2), NULL,
                                 NULL, (fel_texture_filter)9, FEL_BOUNDARY_WRAP, F32(out, 1, 1, 1, 1)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bilinear_lookups_have_the_worked_out_values),
        cmocka_unit_test(nearest_lookups_have_the_worked_out_values),
        cmocka_unit_test(bilinear_gradients_have_the_worked_out_values),
        cmocka_unit_test(levels_are_the_means_of_the_one_before),
        cmocka_unit_test(odd_sides_stop_the_levels_and_the_error_names_them),
        cmocka_unit_test(level_is_the_log_of_the_longer_axis),
        cmocka_unit_test(bias_alone_is_the_level_and_is_clamped),
        cmocka_unit_test(level_gradients_have_the_worked_out_values),
        cmocka_unit_test(custom_levels_take_their_own_gradients_and_built_ones_flow_to_the_base),
        cmocka_unit_test(cube_texel_centres_return_their_texel),
        cmocka_unit_test(equal_components_choose_x_before_y_before_z),
        cmocka_unit_test(cube_has_no_seam_at_edges_and_corners),
        cmocka_unit_test(directions_and_coordinates_without_meaning_give_zero),
        cmocka_unit_test(batch_of_one_serves_every_image),
        cmocka_unit_test(errors_name_argument_expected_and_got),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
