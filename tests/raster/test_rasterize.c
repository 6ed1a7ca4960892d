/* tests/raster/test_rasterize.c. Judge: the definition in double precision (scene.h), and answers worked out by hand. */
#include "scene.h"

static const float TRIANGLE_FULL[] = {-1, -1, 0, 1, 3, -1, 0, 1, -1, 3, 0, 1};

static struct scene scene_of(const float *positions, const int *triangles, int v, int f, int h, int w)
{
    return (struct scene){(float *)(uintptr_t)positions, (int *)(uintptr_t)triangles, 1, v, f, h, w};
}

static int64_t hits(const struct scene *s)
{
    float *rast = draw(test_context(), s, NULL);
    int64_t count = 0;
    for (int64_t k = 0; k < pixel_count(s); k++)
        count += rast[4 * k + 3] > 0;
    free(rast);
    return count;
}

static void one_triangle_over_all_has_the_documented_channels(void **state)
{
    (void)state;
    const struct scene s = scene_of(TRIANGLE_FULL, (int[]){0, 1, 2}, 3, 1, 8, 8);
    float db[4 * 64], *rast = draw(test_context(), &s, db);
    for (int k = 0; k < 64; k++) {
        assert_near(1, rast[4 * k + 3], 0);
        assert_near(-0.0625, db[4 * k], 1e-6);
        assert_near(-0.0625, db[4 * k + 1], 1e-6);
        assert_near(0.0625, db[4 * k + 2], 1e-6);
        assert_near(0, db[4 * k + 3], 1e-6);
    }
    assert_near(0.9375, rast[0], 1e-6);
    assert_near(0.03125, rast[1], 1e-6);
    assert_near(0.5, rast[4 * 56], 1e-6);
    free(rast);
}

static void swapped_winding_hits_the_same_and_swaps_weights(void **state)
{
    (void)state;
    const struct scene s = scene_of(TRIANGLE_FULL, (int[]){0, 2, 1}, 3, 1, 8, 8);
    float *rast = draw(test_context(), &s, NULL);
    for (int k = 0; k < 64; k++)
        assert_near(1, rast[4 * k + 3], 0);
    assert_near(0.03125, 1 - rast[0] - rast[1], 1e-6);
    free(rast);
}

static void samples_on_a_diagonal_belong_to_one_of_its_two_triangles(void **state)
{
    (void)state;
    const float p[] = {-1, -1, 0, 1, 1, -1, 0, 1, -1, 1, 0, 1, 1, 1, 0, 1};
    const int both[] = {0, 1, 2, 3, 2, 1};
    struct scene s = scene_of(p, both, 4, 1, 4, 4);
    assert_int_equal(6, hits(&s));
    s.triangles = (int[]){3, 2, 1};
    assert_int_equal(10, hits(&s));
    s = scene_of(p, both, 4, 2, 4, 4);
    assert_int_equal(16, hits(&s));
    float *rast = draw(test_context(), &s, NULL);
    for (int k = 0; k < 16; k++) {
        assert_true(rast[4 * k] >= 0 && rast[4 * k + 1] >= 0 && rast[4 * k] + rast[4 * k + 1] <= 1);
    }
    free(rast);
}

static void square_with_corners_on_centres_owns_left_and_bottom(void **state)
{
    (void)state;
    const float q = 0.875F;
    const float p[] = {-q, -q, 0, 1, q, -q, 0, 1, -q, q, 0, 1, q, q, 0, 1};
    const struct scene s = scene_of(p, (int[]){0, 1, 2, 3, 2, 1}, 4, 2, 8, 8);
    float *rast = draw(test_context(), &s, NULL);
    int count[3] = {0, 0, 0};
    for (int i = 0; i < 8; i++) {
        for (int j = 0; j < 8; j++) {
            const int id = (int)rast[4 * (8 * i + j) + 3];
            count[id]++;
            assert_int_equal(i < 7 && j<7, id> 0);
        }
    }
    assert_int_equal(49, count[1] + count[2]);
    assert_true(count[1] == 21 || count[1] == 28);
    free(rast);
}

static void perspective_triangle_has_the_worked_out_values(void **state)
{
    (void)state;
    const float p[] = {-1, -1, -.5F, 1, 6, -2, 0, 2, -4, 12, 2, 4};
    const struct scene s = scene_of(p, (int[]){0, 1, 2}, 3, 1, 1, 1);
    float db[4], *rast = draw(test_context(), &s, db);
    const float want[] = {8 / 11.0F, 2 / 11.0F, -0.125F, 1},
                want_db[] = {-.462810F, -.330579F, .429752F, .099174F};
    for (int k = 0; k < 4; k++) {
        assert_near(want[k], rast[k], 1e-6);
        assert_near(want_db[k], db[k], 2e-6);
    }
    free(rast);
    const struct scene swapped = scene_of(p, (int[]){0, 2, 1}, 3, 1, 1, 1);
    rast = draw(test_context(), &swapped, NULL);
    assert_near(want[0], rast[0], 1e-6);
    assert_near(1 - want[0] - want[1], rast[1], 1e-6);
    free(rast);
}

static void six_triangles_round_a_centre_hit_it_once(void **state)
{
    (void)state;
    float p[7 * 4] = {0};
    int t[18], count = 0;
    p[0] = p[1] = -0.125F, p[3] = 1; /* the centre of pixel (3, 3) */
    for (int k = 0; k < 6; k++) {
        p[4 * (k + 1)] = p[0] + 0.5F * cosf((float)k * 1.0471976F);
        p[4 * (k + 1) + 1] = p[1] + 0.5F * sinf((float)k * 1.0471976F);
        p[4 * (k + 1) + 3] = 1;
        t[3 * k] = 0, t[3 * k + 1] = k + 1, t[3 * k + 2] = k == 5 ? 1 : k + 2;
    }
    for (int k = 0; k < 6; k++) {
        const struct scene s = scene_of(p, t + 3 * k, 7, 1, 8, 8);
        float *rast = draw(test_context(), &s, NULL);
        count += rast[4 * (3 * 8 + 3) + 3] > 0;
        free(rast);
    }
    assert_int_equal(1, count);
}

/* Draws every face alone and adds. */
static int *cover_counts(const struct scene *s)
{
    int *counts = NEW(int, pixel_count(s));
    for (int f = 0; f < s->f; f++) {
        struct scene one = *s;
        one.triangles = s->triangles + 3 * f;
        one.f = 1;
        float *rast = draw(test_context(), &one, NULL);
        for (int64_t k = 0; k < pixel_count(s); k++)
            counts[k] += rast[4 * k + 3] > 0;
        free(rast);
    }
    return counts;
}

static void fan_of_1000_triangles_covers_every_pixel_once(void **state)
{
    (void)state;
    enum { N = 1000 };
    struct random r = {6};
    struct scene s = {NEW(float, 4 * (N + 1)), NEW(int, 3 * N), 1, N + 1, N, 37, 53};
    float angle[N];
    random_fill(&r, angle, N, 0, 6.2831853F);
    for (int k = 1; k < N; k++)
        for (int m = k; m > 0 && angle[m] < angle[m - 1]; m--) {
            const float swap = angle[m];
            angle[m] = angle[m - 1];
            angle[m - 1] = swap;
        }
    s.positions[0] = 0.1F, s.positions[1] = -0.3F, s.positions[3] = 1;
    for (int k = 0; k < N; k++) {
        float *p = s.positions + 4 * (k + 1);
        p[0] = 3 * cosf(angle[k]), p[1] = 3 * sinf(angle[k]), p[3] = 1;
        s.triangles[3 * k] = 0, s.triangles[3 * k + 1] = k + 1,
                        s.triangles[3 * k + 2] = k == N - 1 ? 1 : k + 2;
    }
    int *counts = cover_counts(&s);
    for (int64_t k = 0; k < pixel_count(&s); k++)
        assert_int_equal(1, counts[k]);
    free(counts);
    scene_free(&s);
}

/* A plane through the space in front of and behind the eye, cut into random triangles: wherever the plane is within near
 * and far, exactly one of them covers a sample. */
static void plane_across_the_eye_has_no_hole_and_no_double_hit(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        enum { SIDE = 9 };
        struct random r = {seed};
        struct scene s = {NEW(float, 4 * SIDE * SIDE),
                          NEW(int, 6 * (SIDE - 1) * (SIDE - 1)),
                          1,
                          SIDE * SIDE,
                          2 * (SIDE - 1) * (SIDE - 1),
                          64,
                          48};
        const float reach = seed % 3 == 0 ? 1e4F : seed % 3 == 1 ? 3.0F : 40.0F;
        const float tilt = random_in(&r, -.3F, .3F), roll = random_in(&r, -.5F, .5F);
        for (int i = 0; i < SIDE; i++) {
            for (int j = 0; j < SIDE; j++) {
                const int inner = i > 0 && j > 0 && i < SIDE - 1 && j < SIDE - 1;
                const float a = ((float)i + (inner ? random_in(&r, -.4F, .4F) : 0)) / (SIDE - 1) * 2 - 1;
                const float b = ((float)j + (inner ? random_in(&r, -.4F, .4F) : 0)) / (SIDE - 1) * 2 - 1;
                const float z = a * reach, x = b * reach,
                            y = -1 + tilt * z + roll * x; /* eye at 0, looks along z */
                float *p = s.positions + 4 * (i * SIDE + j);
                p[0] = x, p[1] = y, p[2] = 1.02F * z - 0.202F, p[3] = z;
            }
        }
        int *t = s.triangles;
        for (int i = 0; i < SIDE - 1; i++) {
            for (int j = 0; j < SIDE - 1; j++, t += 6) {
                const int a = i * SIDE + j, b = a + 1, c = a + SIDE, d = c + 1;
                memcpy(t, random_below(&r, 2) ? (int[]){a, b, c, d, c, b} : (int[]){a, b, d, a, d, c},
                       6 * sizeof *t);
            }
        }
        int *counts = cover_counts(&s);
        int64_t covered = 0;
        for (int i = 0; i < s.h; i++) {
            for (int j = 0; j < s.w; j++) {
                const double x = (2.0 * j + 1) / s.w - 1, y = (2.0 * i + 1) / s.h - 1;
                const double lambda =
                    -1 / (y - (double)tilt - (double)roll * x); /* w of the plane at the sample */
                const double z = lambda, depth = (1.02 * z - 0.202) / z;
                const double a = z / (double)reach, b = x * lambda / (double)reach;
                const double edge = 0.02;
                const int count = counts[i * s.w + j];
                if (count > 1)
                    fail_msg("seed %d: pixel (%d, %d) is hit %d times", (int)seed, i, j, count);
                if (lambda > 0 && depth > -0.999 && depth < 0.9999 && fabs(a) < 1 - edge &&
                    fabs(b) < 1 - edge) {
                    covered++;
                    if (count != 1)
                        fail_msg("seed %d: pixel (%d, %d) is a hole (depth %g)", (int)seed, i, j, depth);
                } else if (!(lambda > 0 && depth > -1.001 && depth < 1.0001 && fabs(a) < 1 + edge &&
                             fabs(b) < 1 + edge) &&
                           count) {
                    fail_msg("seed %d: pixel (%d, %d) is hit outside the plane (depth %g)", (int)seed, i, j,
                             depth);
                }
            }
        }
        assert_true(covered > 100);
        free(counts);
        scene_free(&s);
    }
}

static void camera_inside_a_closed_mesh_sees_no_background(void **state)
{
    (void)state;
    enum { RINGS = 24, SEGMENTS = 48 };
    struct scene s = {NEW(float, 4 * (RINGS + 1) * SEGMENTS),
                      NEW(int, 6 * RINGS * SEGMENTS),
                      1,
                      (RINGS + 1) * SEGMENTS,
                      2 * RINGS * SEGMENTS,
                      512,
                      512};
    struct random r = {12};
    for (int i = 0; i <= RINGS; i++) {
        for (int k = 0; k < SEGMENTS; k++) {
            const float theta = 3.14159265F * (float)i / RINGS, phi = 6.2831853F * (float)k / SEGMENTS;
            const float radius = i == 0 || i == RINGS ? 3 : 3 + random_in(&r, -.6F, .6F);
            const float x = radius * sinf(theta) * cosf(phi), y = radius * cosf(theta),
                        z = radius * sinf(theta) * sinf(phi) + .4F;
            float *p = s.positions + 4 * (i * SEGMENTS + k);
            p[0] = 1.3F * x, p[1] = 1.3F * y, p[2] = 1.02F * z - 0.202F, p[3] = z;
        }
    }
    int *t = s.triangles;
    for (int i = 0; i < RINGS; i++) {
        for (int k = 0; k < SEGMENTS; k++, t += 6) {
            const int a = i * SEGMENTS + k, b = i * SEGMENTS + (k + 1) % SEGMENTS;
            memcpy(t, (int[]){a, b, a + SEGMENTS, b, b + SEGMENTS, a + SEGMENTS}, 6 * sizeof *t);
        }
    }
    assert_int_equal(512 * 512, hits(&s));
    scene_free(&s);
}

/* A face is right at a pixel when it covers the sample (within 1/256 pixel) and no other is surely nearer. */
static void compare_with_definition(const struct scene *s, const float *rast, const float *db,
                                    const char *what)
{
    int64_t checked = 0;
    for (int64_t pixel = 0; pixel < pixel_count(s); pixel++) {
        const int j = (int)(pixel % s->w), i = (int)(pixel / s->w % s->h), image = (int)(pixel / s->w / s->h);
        const int64_t face = face_at(rast, pixel);
        const double edge = 1 / 256.0;
        double nearest = 2;
        for (int f = 0; f < s->f; f++) {
            const struct truth t = truth_at(s, image, f, i, j);
            const double unsure = 1e-6 + t.slope * edge;
            if (t.margin > edge && t.visible && t.z > -1 + unsure && t.z < 1 - unsure &&
                t.z + unsure < nearest)
                nearest = t.z + unsure;
        }
        if (face < 0) {
            if (nearest < 2)
                fail_msg("%s: image %d pixel (%d, %d) is background, depth %g expected", what, image, i, j,
                         nearest);
            for (int c = 0; c < 4; c++)
                assert_true(rast[4 * pixel + c] == 0 && db[4 * pixel + c] == 0);
            continue;
        }
        assert_true(face < s->f);
        const struct truth t = truth_at(s, image, (int)face, i, j);
        const double unsure = 1e-6 + t.slope * edge;
        if (t.margin < -edge || t.z < -1 - unsure || t.z > 1 + unsure || t.z - unsure > nearest)
            fail_msg("%s: image %d pixel (%d, %d) shows face %d, %g pixels inside at depth %g; nearest %g",
                     what, image, i, j, (int)face, t.margin, t.z, nearest);
        if (t.margin < edge || t.thickness < 0.05)
            continue;
        checked++;
        const float *r = rast + 4 * pixel, *d = db + 4 * pixel;
        const double got[] = {(double)r[0], (double)r[1], (double)r[2]}, want[] = {t.u, t.v, t.z};
        for (int c = 0; c < 3; c++)
            if (!(fabs(got[c] - want[c]) <= 2e-6))
                fail_msg("%s: image %d pixel (%d, %d) channel %d is %.9g, expected %.9g", what, image, i, j,
                         c, got[c], want[c]);
        const double scale = fabs(t.du[0]) + fabs(t.du[1]) + fabs(t.dv[0]) + fabs(t.dv[1]);
        const double want_db[] = {t.du[0], t.du[1], t.dv[0], t.dv[1]};
        for (int c = 0; c < 4; c++)
            if (!(fabs((double)d[c] - want_db[c]) <= 1e-4 * scale))
                fail_msg("%s: image %d pixel (%d, %d) derivative %d is %.9g, expected %.9g", what, image, i,
                         j, c, (double)d[c], want_db[c]);
    }
    assert_true(checked > pixel_count(s) / 100);
}

static void random_scenes_equal_the_definition(void **state)
{
    (void)state;
    const struct {
        const char *what;
        int v, f, h, w;
        float spread, nearest;
    } kinds[] = {
        {"few large triangles", 30, 12, 41, 37, 1.2F, 0.3F},
        {"many small ones", 900, 2000, 33, 47, 1.1F, 0.5F},
        {"across the frustum", 60, 60, 32, 32, 4.0F, 0.15F},
        {"across the near plane and the eye", 60, 80, 40, 24, 1.5F, -2.0F},
        {"thousands across the eye", 3000, 2500, 24, 24, 1.0F, -1.0F},
    };
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        struct scene s = random_scene(100 + k, 2, kinds[k].v, kinds[k].f, kinds[k].h, kinds[k].w,
                                      kinds[k].spread, kinds[k].nearest);
        if (k == 1) /* make the triangles small: neighbouring vertices only */
            for (int f = 0; f < s.f; f++)
                for (int c = 1; c < 3; c++) {
                    const int a = s.triangles[3 * f];
                    int best = a;
                    double least = 1e9;
                    for (int tries = 0; tries < 30; tries++) {
                        const int b = (a * 7 + f + 31 * tries + 17 * c) % s.v;
                        const float *p = s.positions + 4 * a, *q = s.positions + 4 * b;
                        const double d =
                            hypot((double)(p[0] / p[3] - q[0] / q[3]), (double)(p[1] / p[3] - q[1] / q[3]));
                        if (b != a && d < least)
                            least = d, best = b;
                    }
                    s.triangles[3 * f + c] = best;
                }
        float *db = NEW(float, 4 * pixel_count(&s));
        float *rast = draw(test_context(), &s, db);
        compare_with_definition(&s, rast, db, kinds[k].what);
        free(db);
        free(rast);
        scene_free(&s);
    }
}

static void nearer_wins_whatever_the_order(void **state)
{
    (void)state;
    float p[24];
    for (int k = 0; k < 2; k++)
        for (int c = 0; c < 12; c++)
            p[12 * k + c] = c % 4 == 2 ? (k ? .5F : -.5F) : TRIANGLE_FULL[c];
    for (int order = 0; order < 2; order++) {
        const struct scene s =
            scene_of(p, order ? (int[]){3, 4, 5, 0, 1, 2} : (int[]){0, 1, 2, 3, 4, 5}, 6, 2, 5, 5);
        float *rast = draw(test_context(), &s, NULL);
        for (int k = 0; k < 25; k++) {
            assert_near(order ? 2 : 1, rast[4 * k + 3], 0);
            assert_near(-.5, rast[4 * k + 2], 1e-6);
        }
        free(rast);
    }
}

/* One more layer, given the depths of the last; the same array holds the new ones. */
static float *peel(const struct scene *s, int *depth, int first)
{
    float *rast = NEW(float, 4 * pixel_count(s));
    const fel_rasterize_options options = {.size = sizeof options,
                                           .below = first ? NULL : I32(depth, s->n, s->h, s->w),
                                           .depth = I32(depth, s->n, s->h, s->w)};
    assert_int_equal(FEL_OK, fel_rasterize(test_context(), F32(s->positions, s->n, s->v, 4),
                                           I32(s->triangles, s->f, 3), NULL, &options,
                                           F32(rast, s->n, s->h, s->w, 4), NULL));
    return rast;
}

static void equal_triangles_show_the_later_one_and_are_one_layer(void **state)
{
    (void)state;
    const struct scene s = scene_of(TRIANGLE_FULL, (int[]){0, 1, 2, 0, 1, 2}, 3, 2, 4, 4);
    int depth[16];
    float *first = peel(&s, depth, 1), *second = peel(&s, depth, 0);
    for (int k = 0; k < 16; k++) {
        assert_near(2, first[4 * k + 3], 0);
        assert_near(0, second[4 * k + 3], 0);
    }
    free(first);
    free(second);
}

static void peeling_gives_layers_from_near_to_far_then_nothing(void **state)
{
    (void)state;
    float p[36];
    const float z[] = {.4F, -.3F, .1F};
    for (int c = 0; c < 36; c++)
        p[c] = c % 4 == 2 ? z[c / 12] : TRIANGLE_FULL[c % 12];
    const struct scene s = scene_of(p, (int[]){0, 1, 2, 3, 4, 5, 6, 7, 8}, 9, 3, 6, 7);
    int depth[42];
    const int ids[] = {2, 3, 1, 0, 0};
    float *plain = draw(test_context(), &s, NULL);
    for (int layer = 0; layer < 5; layer++) {
        float *rast = peel(&s, depth, layer == 0);
        for (int k = 0; k < 42; k++)
            assert_near(ids[layer], rast[4 * k + 3], 0);
        if (layer == 0)
            assert_memory_equal(plain, rast, sizeof(float) * 4 * 42);
        free(rast);
    }
    free(plain);
}

static void depth_outside_near_and_far_is_not_drawn(void **state)
{
    (void)state;
    const struct {
        float z, w;
        int hits;
    } cases[] = {{1.001F, 1, 0}, {-1.001F, 1, 0}, {.999F, 1, 16}, {1, 1, 16}, {-1, 1, 16}, {0, -1, 0}};
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        float p[12];
        memcpy(p, TRIANGLE_FULL, sizeof p);
        for (int v = 0; v < 3; v++)
            p[4 * v + 2] = cases[k].z, p[4 * v + 3] = cases[k].w;
        const struct scene s = scene_of(p, (int[]){0, 1, 2}, 3, 1, 4, 4);
        assert_int_equal(cases[k].hits, hits(&s));
    }
}

static void ranges_draw_their_triangles_and_keep_global_ids(void **state)
{
    (void)state;
    float p[24];
    for (int c = 0; c < 24; c++)
        p[c] = c % 4 == 2 ? (c < 12 ? .5F : -.5F) : TRIANGLE_FULL[c % 12];
    const int ranges[] = {0, 1, 1, 1, 0, 0, 0, 2, 1, 7}, want[] = {1, 2, 0, 2, 2};
    float rast[5 * 6 * 4];
    assert_int_equal(FEL_OK,
                     fel_rasterize(test_context(), F32(p, 6, 4), I32(((int[]){0, 1, 2, 3, 4, 5}), 2, 3),
                                   I32(ranges, 5, 2), NULL, F32(rast, 5, 2, 3, 4), NULL));
    for (int k = 0; k < 30; k++)
        assert_near(want[k / 6], rast[4 * k + 3], 0);
}

static void image_does_not_depend_on_its_batch(void **state)
{
    (void)state;
    struct scene s = random_scene(16, 8, 50, 70, 45, 33, 1.5F, -.5F);
    float *db = NEW(float, 4 * pixel_count(&s)), *one_db = NEW(float, 4 * pixel_count(&s) / 8);
    float *all = draw(test_context(), &s, db);
    const int64_t floats = 4 * pixel_count(&s) / 8;
    for (int n = 0; n < 8; n++) {
        struct scene one = s;
        one.n = 1;
        one.positions += 4 * s.v * n;
        float *rast = draw(test_context(), &one, one_db);
        assert_memory_equal(all + n * floats, rast, (size_t)floats * sizeof *rast);
        assert_memory_equal(db + n * floats, one_db, (size_t)floats * sizeof *rast);
        free(rast);
    }
    free(all);
    free(db);
    free(one_db);
    scene_free(&s);
}

static void any_size_is_drawn(void **state)
{
    (void)state;
    const int sizes[][2] = {{1, 1}, {1, 4097}, {4097, 1}, {37, 53}, {2051, 17}};
    for (size_t k = 0; k < COUNT_OF(sizes); k++) {
        const struct scene s = scene_of(TRIANGLE_FULL, (int[]){0, 1, 2}, 3, 1, sizes[k][0], sizes[k][1]);
        assert_int_equal((int64_t)sizes[k][0] * sizes[k][1], hits(&s));
    }
}

static void half_a_million_faces_on_4096_square_tile_it(void **state)
{
    (void)state;
    enum { SIDE = 501, SIZE = 4096 };
    struct scene s = {NEW(float, 4 * SIDE * SIDE),
                      NEW(int, 6 * (SIDE - 1) * (SIDE - 1)),
                      1,
                      SIDE * SIDE,
                      2 * (SIDE - 1) * (SIDE - 1),
                      SIZE,
                      SIZE};
    for (int k = 0; k < SIDE * SIDE; k++) {
        float *p = s.positions + 4 * k;
        p[0] = (float)(k % SIDE) / (SIDE - 1) * 2 - 1, p[1] = (float)(k / SIDE) / (SIDE - 1) * 2 - 1;
        p[3] = 1;
    }
    for (int k = 0; k < (SIDE - 1) * (SIDE - 1); k++) {
        const int a = k / (SIDE - 1) * SIDE + k % (SIDE - 1);
        memcpy(s.triangles + 6 * k, (int[]){a, a + 1, a + SIDE, a + 1, a + SIDE + 1, a + SIDE},
               6 * sizeof(int));
    }
    float *rast = draw(test_context(), &s, NULL);
    for (int64_t k = 0; k < pixel_count(&s); k += 7) {
        const int cell = (int)((face_at(rast, k)) / 2), row = cell / (SIDE - 1), column = cell % (SIDE - 1);
        assert_true(face_at(rast, k) >= 0);
        assert_true(abs((int)(k / SIZE * (SIDE - 1) / SIZE) - row) <= 1);
        assert_true(abs((int)(k % SIZE * (SIDE - 1) / SIZE) - column) <= 1);
    }
    free(rast);
    scene_free(&s);
}

static void ids_above_2_to_the_24_are_stored_and_read_back(void **state)
{
    (void)state;
    const struct {
        int64_t id;
        uint32_t bits;
    } cases[] = {{1, 0x3f800000}, {1 << 24, 0x4b800000}, {(1 << 24) + 1, 0x4b800001}};
    enum { F = (1 << 24) + 10 };
    int *t = NEW(int, 3LL * F);
    t[0] = 1; /* all but three are degenerate */
    float p[12];
    memcpy(p, TRIANGLE_FULL, sizeof p);
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        int *face = t + 3 * (cases[k].id - 1);
        face[0] = 0, face[1] = 1, face[2] = 2;
        const struct scene s = {p, t, 1, 3, F, 3, 3};
        float *rast = draw(test_context(), &s, NULL), out[9], attribute[] = {2, 4, 8};
        uint32_t bits;
        memcpy(&bits, rast + 3, sizeof bits);
        assert_int_equal(cases[k].bits, bits);
        assert_int_equal(cases[k].id - 1, face_at(rast, 0));
        assert_int_equal(FEL_OK, fel_interpolate(test_context(), F32(attribute, 3, 1), F32(rast, 1, 3, 3, 4),
                                                 I32(t, F, 3), NULL, NULL, F32(out, 1, 3, 3, 1), NULL));
        assert_near(2 * rast[0] + 4 * rast[1] + 8 * (1 - rast[0] - rast[1]), out[0], 1e-5);
        face[0] = face[1] = face[2] = 0;
        free(rast);
    }
    free(t);
}

static void more_faces_than_ids_are_refused(void **state)
{
    (void)state;
    float rast[4];
    int one[3] = {0, 0, 0};
    assert_int_equal(FEL_INVALID_SHAPE,
                     fel_rasterize(test_context(), F32(TRIANGLE_FULL, 1, 3, 4), I32(one, 889192448, 3), NULL,
                                   NULL, F32(rast, 1, 1, 1, 4), NULL));
    assert_non_null(strstr(fel_last_error(), "889192447"));
}

static void bad_vertices_lose_only_their_triangles(void **state)
{
    (void)state;
    float p[7 * 4];
    memcpy(p, TRIANGLE_FULL, sizeof TRIANGLE_FULL);
    memcpy(p + 12, TRIANGLE_FULL, sizeof TRIANGLE_FULL);
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int k = 0; k < 12; k++) {
        memcpy(p + 24, TRIANGLE_FULL, 4 * sizeof *p);
        p[24 + k % 4] = bad[k / 4];
        const struct scene s = scene_of(p, (int[]){0, 1, 2, 3, 4, 6, 0, 1, 7, 0, -1, 2}, 7, 4, 4, 4);
        float *rast = draw(test_context(), &s, NULL);
        for (int n = 0; n < 16; n++)
            assert_near(1, rast[4 * n + 3], 0);
        free(rast);
    }
}

static void empty_inputs_give_background(void **state)
{
    (void)state;
    float rast[16], db[16];
    int t[3] = {0, 1, 2};
    const int64_t faces[] = {0, 1};
    for (int k = 0; k < 2; k++) {
        memset(rast, 1, sizeof rast);
        memset(db, 1, sizeof db);
        assert_int_equal(FEL_OK, fel_rasterize(test_context(), F32(TRIANGLE_FULL, 1, k ? 0 : 3, 4),
                                               I32(t, faces[k], 3), NULL, NULL, F32(rast, 1, 2, 2, 4),
                                               F32(db, 1, 2, 2, 4)));
        for (int n = 0; n < 16; n++)
            assert_true(rast[n] == 0 && db[n] == 0);
    }
    assert_int_equal(FEL_OK, fel_rasterize(test_context(), F32(TRIANGLE_FULL, 0, 3, 4), I32(t, 1, 3), NULL,
                                           NULL, F32(rast, 0, 2, 2, 4), NULL));
}

static void coarse_grid_moves_vertices_to_sixteenths(void **state)
{
    (void)state;
    /* an edge at 2.53 pixels is rounded to 2.5625 of 16ths in x: right of the centre of column 2 either way, but at 2.52 the
     * coarse grid puts it on the centre itself, which a right edge does not own */
    const float x = 2.52F / 4 - 1;
    const float p[] = {-1, -3, 0, 1, x, -3, 0, 1, -1, 3, 0, 1, x, 3, 0, 1};
    float rast[8 * 8 * 4];
    for (int coarse = 0; coarse < 2; coarse++) {
        const fel_rasterize_options options = {.size = sizeof options, .subpixel_bits = coarse ? 4 : 8};
        assert_int_equal(FEL_OK, fel_rasterize(test_context(), F32(p, 1, 4, 4),
                                               I32(((int[]){0, 1, 2, 3, 2, 1}), 2, 3), NULL, &options,
                                               F32(rast, 1, 8, 8, 4), NULL));
        assert_int_equal(!coarse, rast[4 * 2 + 3] > 0);
    }
}

static void errors_name_argument_expected_and_got(void **state)
{
    (void)state;
    float rast[64];
    int t[3] = {0, 1, 2};
    memset(rast, 0x7f, sizeof rast);
    assert_int_equal(FEL_INVALID_SHAPE, fel_rasterize(test_context(), F32(TRIANGLE_FULL, 1, 4, 3),
                                                      I32(t, 1, 3), NULL, NULL, F32(rast, 1, 2, 2, 4), NULL));
    assert_string_equal("positions: expected float32 [n, v, 4], got float32 [1, 4, 3]", fel_last_error());
    assert_int_equal(FEL_INVALID_DTYPE,
                     fel_rasterize(test_context(), F32(TRIANGLE_FULL, 1, 3, 4), F32(rast, 1, 3), NULL, NULL,
                                   F32(rast, 1, 2, 2, 4), NULL));
    assert_non_null(strstr(fel_last_error(), "triangles: expected int32"));
    assert_int_equal(FEL_INVALID_ARGUMENT, fel_rasterize(test_context(), NULL, I32(t, 1, 3), NULL, NULL,
                                                         F32(rast, 1, 2, 2, 4), NULL));
    assert_non_null(strstr(fel_last_error(), "positions"));
    assert_int_equal(FEL_INVALID_SHAPE, fel_rasterize(test_context(), F32(TRIANGLE_FULL, 2, 3, 4),
                                                      I32(t, 1, 3), NULL, NULL, F32(rast, 1, 2, 2, 4), NULL));
    const fel_rasterize_options seven = {.size = sizeof seven, .subpixel_bits = 7};
    assert_int_equal(FEL_INVALID_ARGUMENT,
                     fel_rasterize(test_context(), F32(TRIANGLE_FULL, 1, 3, 4), I32(t, 1, 3), NULL, &seven,
                                   F32(rast, 1, 2, 2, 4), NULL));
    assert_string_equal("subpixel_bits: expected 8 or 4, got 7", fel_last_error());
    assert_int_equal(FEL_INVALID_ARGUMENT,
                     fel_rasterize(test_context(), F32(TRIANGLE_FULL, 3, 4), I32(t, 1, 3),
                                   I32(((int[]){-1, 1}), 1, 2), NULL, F32(rast, 1, 2, 2, 4), NULL));
    assert_non_null(strstr(fel_last_error(), "ranges"));
    for (int k = 0; k < 64; k++) { /* outputs are untouched on error */
        uint32_t bits;
        memcpy(&bits, rast + k, sizeof bits);
        assert_int_equal(0x7f7f7f7f, bits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_triangle_over_all_has_the_documented_channels),
        cmocka_unit_test(swapped_winding_hits_the_same_and_swaps_weights),
        cmocka_unit_test(samples_on_a_diagonal_belong_to_one_of_its_two_triangles),
        cmocka_unit_test(square_with_corners_on_centres_owns_left_and_bottom),
        cmocka_unit_test(perspective_triangle_has_the_worked_out_values),
        cmocka_unit_test(six_triangles_round_a_centre_hit_it_once),
        cmocka_unit_test(fan_of_1000_triangles_covers_every_pixel_once),
        cmocka_unit_test(plane_across_the_eye_has_no_hole_and_no_double_hit),
        cmocka_unit_test(camera_inside_a_closed_mesh_sees_no_background),
        cmocka_unit_test(random_scenes_equal_the_definition),
        cmocka_unit_test(nearer_wins_whatever_the_order),
        cmocka_unit_test(equal_triangles_show_the_later_one_and_are_one_layer),
        cmocka_unit_test(peeling_gives_layers_from_near_to_far_then_nothing),
        cmocka_unit_test(depth_outside_near_and_far_is_not_drawn),
        cmocka_unit_test(ranges_draw_their_triangles_and_keep_global_ids),
        cmocka_unit_test(image_does_not_depend_on_its_batch),
        cmocka_unit_test(any_size_is_drawn),
        cmocka_unit_test(half_a_million_faces_on_4096_square_tile_it),
        cmocka_unit_test(ids_above_2_to_the_24_are_stored_and_read_back),
        cmocka_unit_test(more_faces_than_ids_are_refused),
        cmocka_unit_test(bad_vertices_lose_only_their_triangles),
        cmocka_unit_test(empty_inputs_give_background),
        cmocka_unit_test(coarse_grid_moves_vertices_to_sixteenths),
        cmocka_unit_test(errors_name_argument_expected_and_got),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
