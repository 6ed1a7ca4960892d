/* tests/raster/test_antialias.c. Judge: areas of pixels that straight edges cut, worked out by hand. */
#include "scene.h"

enum { SIZE = 8 };

static const int QUAD[] = {0, 1, 2, 3, 2, 1};

/* Corners of [x0, x1] x [y0, y1], given in pixels, with w = 1. */
static void quad(float *p, float x0, float y0, float x1, float y1, float z)
{
    for (int k = 0; k < 4; k++) {
        p[4 * k] = (k & 1 ? x1 : x0) / (SIZE / 2) - 1;
        p[4 * k + 1] = (k & 2 ? y1 : y0) / (SIZE / 2) - 1;
        p[4 * k + 2] = z;
        p[4 * k + 3] = 1;
    }
}

static int *topology_of(const struct scene *s, const int *weld)
{
    int *topology = NEW(int, 3 * s->f);
    assert_int_equal(FEL_OK, fel_antialias_topology(test_context(), I32(s->triangles, s->f, 3),
                                                    weld ? I32(weld, s->v) : NULL, I32(topology, s->f, 3)));
    return topology;
}

/* Colour by mask (1 on the mesh), or by face when by_face is set; result in out, rast in rast. */
static void render(const struct scene *s, int by_face, const int *weld, float *color, float *rast, float *out)
{
    float *drawn = draw(test_context(), s, NULL);
    int *topology = topology_of(s, weld);
    memcpy(rast, drawn, sizeof(float) * 4 * SIZE * SIZE);
    for (int k = 0; k < SIZE * SIZE; k++)
        color[k] = by_face ? rast[4 * k + 3] : rast[4 * k + 3] > 0;
    assert_int_equal(FEL_OK,
                     fel_antialias(test_context(), F32(color, 1, SIZE, SIZE, 1), F32(rast, 1, SIZE, SIZE, 4),
                                   F32(s->positions, 1, s->v, 4), I32(s->triangles, s->f, 3),
                                   I32(topology, s->f, 3), F32(out, 1, SIZE, SIZE, 1)));
    free(topology);
    free(drawn);
}

static struct scene quad_scene(float *p, int v, const int *triangles, int f)
{
    return (struct scene){p, (int *)(uintptr_t)triangles, 1, v, f, SIZE, SIZE};
}

static void mask_of_a_straight_edge_has_the_cut_area(void **state)
{
    (void)state;
    const float edges[] = {3.75F, 4.25F, 4.0F, 2.6F};
    for (size_t k = 0; k < COUNT_OF(edges); k++) {
        for (int vertical = 0; vertical < 2; vertical++) {
            float p[16], color[64], rast[256], out[64];
            if (vertical)
                quad(p, -12, -8, 12, edges[k], 0);
            else
                quad(p, -8, -12, edges[k], 12, 0);
            const struct scene s = quad_scene(p, 4, QUAD, 2);
            render(&s, 0, NULL, color, rast, out);
            for (int row = 0; row < SIZE; row++) {
                double sum = 0;
                for (int n = 0; n < SIZE; n++) {
                    const float value = vertical ? out[n * SIZE + row] : out[row * SIZE + n];
                    const double area = (double)edges[k] - n;
                    assert_near(area > 1 ? 1 : area < 0 ? 0 : area, value, 1e-5);
                    sum += (double)value;
                }
                assert_near(edges[k], sum, 1e-5);
            }
        }
    }
}

/* Gradients of the sum of all pixels. */
static void sum_gradients(const struct scene *s, float edge_boost, unsigned flags, float *grad_color,
                          float *grad_positions)
{
    float color[64], rast[256], out[64], ones[64];
    render(s, 0, NULL, color, rast, out);
    int *topology = topology_of(s, NULL);
    for (int k = 0; k < 64; k++)
        ones[k] = 1;
    assert_int_equal(FEL_OK, fel_antialias_backward(
                                 test_context(), F32(color, 1, SIZE, SIZE, 1), F32(rast, 1, SIZE, SIZE, 4),
                                 F32(s->positions, 1, s->v, 4), I32(s->triangles, s->f, 3),
                                 I32(topology, s->f, 3), F32(ones, 1, SIZE, SIZE, 1), edge_boost, flags,
                                 F32(grad_color, 1, SIZE, SIZE, 1), F32(grad_positions, 1, s->v, 4)));
    free(topology);
}

static void moving_an_edge_moves_the_area_also_midway_between_centres(void **state)
{
    (void)state;
    const float edges[] = {3.75F, 4.25F, 4.0F};
    for (size_t k = 0; k < COUNT_OF(edges); k++) {
        for (unsigned flags = 0; flags <= FEL_DETERMINISTIC; flags++) {
            float p[16], gc[64], gp[16], boosted[16];
            quad(p, -8, -8, edges[k], 16, 0);
            const struct scene s = quad_scene(p, 4, QUAD, 2);
            sum_gradients(&s, 1, flags, gc, gp);
            sum_gradients(&s, 3, flags, gc, boosted);
            for (int v = 0; v < 4; v++) {
                assert_near(v & 1 ? 16 : 0, gp[4 * v], 1e-4);
                assert_near(0, gp[4 * v + 1], 1e-4);
                assert_near(0, gp[4 * v + 2], 0);
                assert_near(3 * gp[4 * v], boosted[4 * v], 1e-4);
            }
        }
    }
}

static void color_gradient_is_the_transpose_of_the_blend(void **state)
{
    (void)state;
    struct scene s = random_scene(3, 1, 20, 15, SIZE, SIZE, 1.1F, .5F);
    float *rast = draw(test_context(), &s, NULL), out[64], unit[64], g[64], back[64];
    int *topology = topology_of(&s, NULL);
    struct random r = {8};
    random_fill(&r, g, 64, -1, 1);
    assert_int_equal(FEL_OK, fel_antialias_backward(
                                 test_context(), F32(g, 1, SIZE, SIZE, 1), F32(rast, 1, SIZE, SIZE, 4),
                                 F32(s.positions, 1, s.v, 4), I32(s.triangles, s.f, 3), I32(topology, s.f, 3),
                                 F32(g, 1, SIZE, SIZE, 1), 1, 0, F32(back, 1, SIZE, SIZE, 1), NULL));
    int changed = 0;
    for (int k = 0; k < 64; k++) { /* column k of the matrix, dotted with g */
        memset(unit, 0, sizeof unit);
        unit[k] = 1;
        assert_int_equal(FEL_OK, fel_antialias(test_context(), F32(unit, 1, SIZE, SIZE, 1),
                                               F32(rast, 1, SIZE, SIZE, 4), F32(s.positions, 1, s.v, 4),
                                               I32(s.triangles, s.f, 3), I32(topology, s.f, 3),
                                               F32(out, 1, SIZE, SIZE, 1)));
        double dot = 0;
        for (int n = 0; n < 64; n++)
            dot += (double)out[n] * (double)g[n];
        assert_near(dot, back[k], 1e-5);
        changed += fabs(dot - (double)g[k]) > 1e-3;
    }
    assert_true(changed > 10);
    free(topology);
    free(rast);
    scene_free(&s);
}

static void edge_inside_a_flat_mesh_is_left_alone_unless_its_vertices_are_doubled(void **state)
{
    (void)state;
    float p[24], color[64], rast[256], out[64];
    quad(p, -3, -5, 11, 12, 0);
    memcpy(p + 16, p + 4, 4 * sizeof *p); /* vertices 4 and 5 double 1 and 2 */
    memcpy(p + 20, p + 8, 4 * sizeof *p);
    const struct scene joined = quad_scene(p, 4, QUAD, 2);
    render(&joined, 1, NULL, color, rast, out);
    assert_memory_equal(color, out, sizeof out);
    const int doubled[] = {0, 1, 2, 3, 5, 4};
    const struct scene split = quad_scene(p, 6, doubled, 2);
    render(&split, 1, NULL, color, rast, out);
    assert_memory_not_equal(color, out, sizeof out);
    int weld[6];
    assert_int_equal(FEL_OK, fel_weld(test_context(), F32(p, 6, 4), I32(weld, 6)));
    assert_memory_equal(((int[]){0, 1, 2, 3, 1, 2}), weld, sizeof weld);
    render(&split, 1, weld, color, rast, out);
    assert_memory_equal(color, out, sizeof out);
}

/* Both pairs of a pixel blend when the line through the centres leaves the pixel's own triangle by a silhouette on both
 * sides: with one triangle whose apex is far off, and with a tiny one, which goes below 0 unless it is clamped. */
static void pixel_in_several_pairs_adds_them_and_is_not_clamped(void **state)
{
    (void)state;
    float color[64], rast[256], out[64];
    const float strip[] = {3.3F / 4 - 1, -3, 0, 1, 3.7F / 4 - 1, -3, 0, 1, 3.5F / 4 - 1, 1e5F, 0, 1};
    struct scene s = quad_scene((float *)(uintptr_t)strip, 3, QUAD, 1);
    render(&s, 0, NULL, color, rast, out);
    for (int i = 0; i < SIZE; i++)
        assert_near(.4, out[i * SIZE + 3], 1e-4);
    /* corners (-.1, -.1), (.1, -.1), (0, .1) about a centre: the line to the right and left leaves at .05, below at .1; the one
     * upwards leaves through the apex, by an edge that is too steep for a vertical pair */
    const float c = 3.5F / 4 - 1;
    const float tiny[] = {c - .1F / 4, c - .1F / 4, 0, 1,           c + .1F / 4, c - .1F / 4,
                          0,           1,           c, c + .1F / 4, 0,           1};
    s = quad_scene((float *)(uintptr_t)tiny, 3, QUAD, 1);
    render(&s, 0, NULL, color, rast, out);
    assert_near(1 - .45 - .45 - .4, out[3 * SIZE + 3], 1e-5);
}

static void near_mesh_blends_over_far_mesh_and_folds_blend(void **state)
{
    (void)state;
    float p[32], color[64], rast[256], out[64];
    quad(p, -8, -12, 3.75F, 12, -.5F);
    quad(p + 16, -8, -12, 20, 12, .5F);
    const int two[] = {0, 1, 2, 3, 2, 1, 4, 5, 6, 7, 6, 5};
    struct scene s = quad_scene(p, 8, two, 4);
    float *drawn = draw(test_context(), &s, NULL);
    int *topology = topology_of(&s, NULL);
    for (int k = 0; k < 64; k++)
        color[k] = drawn[4 * k + 3] <= 2;
    assert_int_equal(FEL_OK, fel_antialias(test_context(), F32(color, 1, SIZE, SIZE, 1),
                                           F32(drawn, 1, SIZE, SIZE, 4), F32(p, 1, 8, 4), I32(two, 4, 3),
                                           I32(topology, 4, 3), F32(out, 1, SIZE, SIZE, 1)));
    assert_near(.75, out[3 * SIZE + 3], 1e-5);
    free(topology);
    free(drawn);
    /* a strip folded along x = 3.75: both faces lie left of the fold */
    quad(p, -8, -12, 3.75F, 12, 0);
    quad(p + 16, -8, -12, 3.75F, 12, .4F);
    const int fold[] = {0, 1, 2, 3, 2, 1, 4, 1, 6, 3, 6, 1};
    s = quad_scene(p, 7, fold, 4);
    render(&s, 0, NULL, color, rast, out);
    assert_near(.75, out[4 * SIZE + 3], 1e-5);
}

static void three_faces_on_an_edge_are_a_silhouette_only_when_one_side_is_empty(void **state)
{
    (void)state;
    /* edge at x = 3.75 with two faces to its left, then one more to its right */
    float p[6 * 4] = {0}, color[64], rast[256], out[64];
    const float x[] = {3.75F, 3.75F, -30, -30, 40}, y[] = {-30, 38, 4, 4, 4};
    for (int k = 0; k < 5; k++) {
        p[4 * k] = x[k] / 4 - 1, p[4 * k + 1] = y[k] / 4 - 1, p[4 * k + 3] = 1;
        p[4 * k + 2] = k == 3 ? .3F : 0;
    }
    const int faces[] = {0, 1, 2, 1, 0, 3, 0, 1, 4};
    struct scene s = quad_scene(p, 5, faces, 2);
    render(&s, 0, NULL, color, rast, out);
    assert_near(.75, out[4 * SIZE + 3], 1e-4);
    s = quad_scene(p, 5, faces, 3);
    float *drawn = draw(test_context(), &s, NULL);
    int *topology = topology_of(&s, NULL);
    for (int k = 0; k < 64; k++)
        color[k] = drawn[4 * k + 3] < 3;
    assert_int_equal(FEL_OK, fel_antialias(test_context(), F32(color, 1, SIZE, SIZE, 1),
                                           F32(drawn, 1, SIZE, SIZE, 4), F32(p, 1, 5, 4), I32(faces, 3, 3),
                                           I32(topology, 3, 3), F32(out, 1, SIZE, SIZE, 1)));
    assert_memory_equal(color, out, sizeof out);
    free(topology);
    free(drawn);
}

/* Judge: all pairs of half-edges, compared by their vertices. */
static void topology_links_exactly_the_half_edges_of_an_edge(void **state)
{
    (void)state;
    struct scene s =
        random_scene(41, 1, 30, 200, 1, 1, 1, 1); /* few vertices: many edges of three and more faces */
    s.triangles[0] = s.triangles[1];
    s.triangles[5] = -1;
    int *topology = topology_of(&s, NULL);
    for (int h = 0; h < 3 * s.f; h++) {
        int ring = 1, want = 1;
        for (int k = topology[h]; k != h; k = topology[k], ring++)
            assert_true(k >= 0 && k < 3 * s.f && ring <= 3 * s.f);
        const int *t = s.triangles + h / 3 * 3;
        if (t[0] == t[1] || t[1] == t[2] || t[2] == t[0] || t[0] < 0 || t[1] < 0 || t[2] < 0) {
            assert_int_equal(1, ring);
            continue;
        }
        for (int k = 0; k < 3 * s.f; k++) {
            const int *u = s.triangles + k / 3 * 3, *v = s.triangles + h / 3 * 3;
            if (k == h || u[0] == u[1] || u[1] == u[2] || u[2] == u[0] || u[0] < 0 || u[1] < 0 || u[2] < 0)
                continue;
            const int p = u[(k % 3 + 1) % 3], q = u[(k % 3 + 2) % 3], x = v[(h % 3 + 1) % 3],
                      y = v[(h % 3 + 2) % 3];
            want += (p == x && q == y) || (p == y && q == x);
        }
        assert_int_equal(want, ring);
    }
    free(topology);
    scene_free(&s);
}

static void a_million_edges_at_one_vertex_are_linked_in_time(void **state)
{
    (void)state;
    enum { F = 1000000 };
    struct scene s = {NULL, NEW(int, 3LL * F), 1, F + 2, F, 1, 1};
    for (int k = 0; k < F; k++)
        memcpy(s.triangles + 3LL * k, (int[]){0, k + 1, k + 2}, 3 * sizeof(int));
    int *topology = topology_of(&s, NULL);
    for (int k = 1; k < F;
         k++) /* the edge 0 - (k + 1) is opposite corner 1 of face k and corner 2 of face k - 1 */
        assert_int_equal(3 * (k - 1) + 1, topology[3 * k + 2]);
    free(topology);
    free(s.triangles);
}

static void nothing_blends_with_vertices_behind_the_eye_or_not_finite(void **state)
{
    (void)state;
    float p[16], color[64], rast[256], out[64], gc[64], gp[16];
    const float bad[] = {-1, 0, NAN, INFINITY};
    quad(p, -8, -12, 3.75F, 12, 0);
    struct scene s = quad_scene(p, 4, QUAD, 2);
    render(&s, 0, NULL, color, rast, out);
    int *topology = topology_of(&s, NULL);
    for (int k = 0; k < 4; k++) {
        float q[16];
        memcpy(q, p, sizeof q);
        q[4 + 3] = q[12 + 3] = bad[k]; /* both ends of the right edge */
        assert_int_equal(FEL_OK, fel_antialias(test_context(), F32(color, 1, SIZE, SIZE, 1),
                                               F32(rast, 1, SIZE, SIZE, 4), F32(q, 1, 4, 4), I32(QUAD, 2, 3),
                                               I32(topology, 2, 3), F32(out, 1, SIZE, SIZE, 1)));
        assert_int_equal(FEL_OK,
                         fel_antialias_backward(test_context(), F32(color, 1, SIZE, SIZE, 1),
                                                F32(rast, 1, SIZE, SIZE, 4), F32(q, 1, 4, 4), I32(QUAD, 2, 3),
                                                I32(topology, 2, 3), F32(color, 1, SIZE, SIZE, 1), 1, 0,
                                                F32(gc, 1, SIZE, SIZE, 1), F32(gp, 1, 4, 4)));
        for (int n = 0; n < 64; n++)
            assert_true(isfinite(out[n]) && isfinite(gc[n]));
        for (int n = 0; n < 16; n++)
            assert_true(isfinite(gp[n]));
    }
    free(topology);
}

static void errors_name_argument_expected_and_got(void **state)
{
    (void)state;
    float p[16] = {0}, color[64] = {0}, rast[256] = {0}, out[64];
    int topology[6] = {0};
    assert_int_equal(FEL_INVALID_SHAPE,
                     fel_antialias(test_context(), F32(color, 1, SIZE, SIZE, 1), F32(rast, 1, SIZE, 4, 4),
                                   F32(p, 1, 4, 4), I32(QUAD, 2, 3), I32(topology, 2, 3),
                                   F32(out, 1, SIZE, SIZE, 1)));
    assert_non_null(strstr(fel_last_error(), "rast: expected float32 [n, h, w, 4]"));
    assert_int_equal(FEL_INVALID_SHAPE,
                     fel_antialias_topology(test_context(), I32(QUAD, 2, 3), NULL, I32(topology, 1, 3)));
    assert_non_null(strstr(fel_last_error(), "topology: expected int32 [f, 3]"));
    assert_int_equal(FEL_INVALID_ARGUMENT,
                     fel_antialias_backward(test_context(), F32(color, 1, SIZE, SIZE, 1),
                                            F32(rast, 1, SIZE, SIZE, 4), F32(p, 1, 4, 4), I32(QUAD, 2, 3),
                                            I32(topology, 2, 3), F32(color, 1, SIZE, SIZE, 1), 1, 6,
                                            F32(out, 1, SIZE, SIZE, 1), NULL));
    assert_non_null(strstr(fel_last_error(), "flags"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mask_of_a_straight_edge_has_the_cut_area),
        cmocka_unit_test(moving_an_edge_moves_the_area_also_midway_between_centres),
        cmocka_unit_test(color_gradient_is_the_transpose_of_the_blend),
        cmocka_unit_test(edge_inside_a_flat_mesh_is_left_alone_unless_its_vertices_are_doubled),
        cmocka_unit_test(pixel_in_several_pairs_adds_them_and_is_not_clamped),
        cmocka_unit_test(near_mesh_blends_over_far_mesh_and_folds_blend),
        cmocka_unit_test(three_faces_on_an_edge_are_a_silhouette_only_when_one_side_is_empty),
        cmocka_unit_test(topology_links_exactly_the_half_edges_of_an_edge),
        cmocka_unit_test(a_million_edges_at_one_vertex_are_linked_in_time),
        cmocka_unit_test(nothing_blends_with_vertices_behind_the_eye_or_not_finite),
        cmocka_unit_test(errors_name_argument_expected_and_got),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
