/* tests/bake/test_bake.c. Judge: answers worked out by hand on a square of two triangles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <felloe/bake.h>

#include <math.h>
#include <string.h>

#include "context.h"

static float square[8] = {0, 0, 1, 0, 1, 1, 0, 1};
static float positions[12] = {0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0};
static int32_t faces[6] = {0, 1, 2, 0, 2, 3};

static DLTensor tensor(void *data, uint8_t code, uint8_t bits, int rank, int64_t *shape)
{
    return (DLTensor){
        .data = data, .device = {kDLCPU, 0}, .ndim = rank, .dtype = {code, bits, 1}, .shape = shape};
}
#define F(data, rank, ...) tensor(data, kDLFloat, 32, rank, (int64_t[]){__VA_ARGS__})
#define I(data, rank, ...) tensor(data, kDLInt, 32, rank, (int64_t[]){__VA_ARGS__})
#define B(data, rank, ...) tensor(data, kDLUInt, 8, rank, (int64_t[]){__VA_ARGS__})

static void every_texel_of_a_square_is_covered(void **state)
{
    (void)state;
    static float rast[16 * 16 * 4 + 1];
    rast[16 * 16 * 4] = 7;
    DLTensor uvs = F(square, 2, 4, 2), f = I(faces, 2, 2, 3), out = F(rast, 3, 16, 16, 4);
    assert_int_equal(FEL_OK, fel_bake_uv(test_context(), &uvs, &f, FEL_BAKE_CORNER, &out));
    for (int i = 0; i < 256; i++)
        assert_true(rast[4 * i + 3] >= 0);
    const float expected[4] = {0.25F, 0.25F, 0.5F, 0};
    assert_memory_equal(expected, rast + 4 * (8 * 16 + 12), sizeof expected);
    assert_float_equal(7, rast[16 * 16 * 4], 0); /* the guard behind the image */
}

static void no_faces_cover_nothing(void **state)
{
    (void)state;
    float rast[2 * 3 * 4], values[2 * 3 * 2];
    DLTensor uvs = F(square, 2, 4, 2), f = I(faces, 2, 0, 3), out = F(rast, 3, 2, 3, 4),
             v = F(values, 3, 2, 3, 2);
    assert_int_equal(FEL_OK, fel_bake_uv(test_context(), &uvs, &f, FEL_BAKE_CENTER, &out));
    assert_int_equal(FEL_OK, fel_bake_interpolate(test_context(), &uvs, &f, &out, NULL, NULL, &v));
    for (int i = 0; i < 6; i++) {
        assert_float_equal(-1, rast[4 * i + 3], 0);
        assert_float_equal(0, values[2 * i], 0);
    }
}

static void what_lies_behind_the_eye_is_cut_away(void **state)
{
    (void)state;
    /* the third corner is behind the eye, below the view as it projects: what is in front widens upward from the other
     * two and fills the view, whereas the mirror image of the corner would leave it empty */
    float clip[12] = {-1, -1, 0, 1, 1, -1, 0, 1, 0, 3, 0, -1};
    int32_t face[3] = {0, 1, 2}, found[64];
    float weights[64 * 3];
    DLTensor p = F(clip, 2, 3, 4), f = I(face, 2, 1, 3), i = I(found, 2, 8, 8), w = F(weights, 3, 8, 8, 3);
    assert_int_equal(FEL_OK, fel_bake_view(test_context(), &p, &f, NULL, &i, &w));
    for (int k = 0; k < 64; k++) {
        assert_int_equal(1, found[k]);
        assert_true(weights[3 * k] >= 0 && weights[3 * k + 1] >= 0 && weights[3 * k + 2] >= 0);
    }
}

static void a_growing_gutter_averages_its_neighbours(void **state)
{
    (void)state;
    float image[49] = {0};
    uint8_t mask[49] = {0};
    image[3 * 7 + 4] = 1;
    mask[3 * 7 + 2] = mask[3 * 7 + 4] = 1;
    DLTensor im = F(image, 3, 7, 7, 1), m = B(mask, 2, 7, 7);
    assert_int_equal(FEL_OK, fel_bake_gutter_grow(test_context(), &im, &m, 1));
    assert_float_equal(0.5F, image[3 * 7 + 3], 1e-6);
    assert_float_equal(0, image[2 * 7 + 1], 1e-6);
    assert_float_equal(1.0F / 6, image[2 * 7 + 2], 1e-6);
    assert_float_equal(5.0F / 6, image[2 * 7 + 4], 1e-6);
    assert_int_equal(255, mask[2 * 7 + 5]);
    assert_int_equal(0, mask[2 * 7 + 6]);
}

static void the_nearest_gutter_stops_at_its_reach(void **state)
{
    (void)state;
    float image[25] = {3};
    uint8_t mask[25] = {1};
    DLTensor im = F(image, 3, 1, 25, 1), m = B(mask, 2, 1, 25);
    assert_int_equal(FEL_OK, fel_bake_gutter_nearest(test_context(), &im, &m, 9));
    for (int x = 0; x < 25; x++)
        assert_float_equal(x <= 9 ? 3 : 0, image[x], 0);
}

static void known_texels_spread_over_the_mesh(void **state)
{
    (void)state;
    float texture[27] = {0}, out[27], colors[12];
    uint8_t mask[9] = {0}, out_mask[9], reached[4];
    texture[2] = 1;     /* row 0, column 0: blue; vertex 3 */
    texture[3 * 6] = 1; /* row 2, column 0: red; vertex 0 */
    mask[0] = mask[6] = 255;
    DLTensor t = F(texture, 3, 3, 3, 3), m = B(mask, 2, 3, 3), p = F(positions, 2, 4, 3),
             uvs = F(square, 2, 4, 2), f = I(faces, 2, 2, 3), c = F(colors, 2, 4, 3), s = B(reached, 1, 4),
             o = F(out, 3, 3, 3, 3), om = B(out_mask, 2, 3, 3);
    assert_int_equal(FEL_OK, fel_bake_inpaint(test_context(), &t, &m, &p, &uvs, &f, &f, FEL_INPAINT_SMOOTH,
                                              &c, &s, &o, &om));
    const uint8_t states[4] = {1, 2, 2, 1}, known[9] = {255, 0, 255, 0, 0, 0, 255, 0, 255};
    assert_memory_equal(states, reached, sizeof states);
    assert_memory_equal(known, out_mask, sizeof known);
    assert_float_equal(1.0F / 3, out[3 * 2], 1e-6);
    assert_float_equal(2.0F / 3, out[3 * 2 + 2], 1e-6);
    int32_t outside[6] = {0, 1, 2, 0, 2, 4};
    DLTensor bad = I(outside, 2, 2, 3);
    assert_int_equal(FEL_INVALID_ARGUMENT, fel_bake_inpaint(test_context(), &t, &m, &p, &uvs, &bad, &f,
                                                            FEL_INPAINT_SMOOTH, &c, &s, &o, &om));
    assert_string_equal("faces: expected indices in [0, 4), got 4 in face 1", fel_last_error());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_texel_of_a_square_is_covered),
        cmocka_unit_test(no_faces_cover_nothing),
        cmocka_unit_test(what_lies_behind_the_eye_is_cut_away),
        cmocka_unit_test(a_growing_gutter_averages_its_neighbours),
        cmocka_unit_test(the_nearest_gutter_stops_at_its_reach),
        cmocka_unit_test(known_texels_spread_over_the_mesh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
