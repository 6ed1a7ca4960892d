/* tests/raster/test_gradients.c. Judge: central differences; of the definition in double precision where the operator is
 * not smooth enough for floats (rasterize), else of the operator's own forward. */
#include "scene.h"

/* A scene in view whose triangles are large enough for differences, and its image. */
struct rendered {
    struct scene scene;
    float *rast, *db;
};

static struct rendered render(uint64_t seed, int n, int v, int f, int h, int w)
{
    struct rendered r = {random_scene(seed, n, v, f, h, w, 1.1F, .7F), NULL, NULL};
    r.db = NEW(float, 4 * pixel_count(&r.scene));
    r.rast = draw(test_context(), &r.scene, r.db);
    return r;
}

static void rendered_free(struct rendered *r)
{
    free(r->rast);
    free(r->db);
    scene_free(&r->scene);
}

/* Sum over pixels of upstream gradients times u, v and their derivatives, the faces being those of rast, with one
 * coordinate moved. Thin triangles and pixels near edges are left out by zero upstream gradients. */
static double raster_loss(const struct rendered *r, const float *g, const float *gdb, int vertex,
                          int component, double step)
{
    const struct scene *s = &r->scene;
    double sum = 0;
    for (int64_t pixel = 0; pixel < pixel_count(s); pixel++) {
        const int64_t face = face_at(r->rast, pixel);
        if (face < 0)
            continue;
        const int image = (int)(pixel / s->w / s->h);
        double p[3][4];
        int moved = 0;
        for (int k = 0; k < 3; k++) {
            const int v = s->triangles[3 * face + k] + image * s->v;
            for (int c = 0; c < 4; c++)
                p[k][c] = (double)s->positions[4 * v + c] + (v == vertex && c == component ? step : 0);
            moved |= v == vertex;
        }
        if (!moved)
            continue;
        const struct truth t =
            truth_of((const double(*)[4])p, s->h, s->w, (int)(pixel / s->w % s->h), (int)(pixel % s->w));
        sum += (double)g[4 * pixel] * t.u + (double)g[4 * pixel + 1] * t.v;
        sum += (double)gdb[4 * pixel] * t.du[0] + (double)gdb[4 * pixel + 1] * t.du[1] +
               (double)gdb[4 * pixel + 2] * t.dv[0] + (double)gdb[4 * pixel + 3] * t.dv[1];
    }
    return sum;
}

static void rasterize_gradients_equal_differences_of_the_definition(void **state)
{
    (void)state;
    for (int with_db = 0; with_db < 2; with_db++) {
        for (unsigned flags = 0; flags <= FEL_DETERMINISTIC; flags++) {
            struct rendered r = render(51, 2, 24, 20, 30, 40);
            const struct scene *s = &r.scene;
            struct random random = {7};
            float *g = NEW(float, 4 * pixel_count(s)), *gdb = NEW(float, 4 * pixel_count(s)),
                  *out = NEW(float, 4 * s->n * s->v);
            random_fill(&random, g, (size_t)(4 * pixel_count(s)), -1, 1);
            if (with_db)
                random_fill(&random, gdb, (size_t)(4 * pixel_count(s)), -20, 20);
            for (int64_t k = 0; k < pixel_count(s); k++) {
                const int64_t face = face_at(r.rast, k);
                const struct truth t = face < 0 ? (struct truth){0}
                                                : truth_at(s, (int)(k / s->w / s->h), (int)face,
                                                           (int)(k / s->w % s->h), (int)(k % s->w));
                if (t.thickness < .1) {
                    memset(g + 4 * k, 0, 4 * sizeof *g);
                    memset(gdb + 4 * k, 0, 4 * sizeof *gdb);
                }
            }
            assert_int_equal(
                FEL_OK, fel_rasterize_backward(
                            test_context(), F32(s->positions, s->n, s->v, 4), I32(s->triangles, s->f, 3),
                            F32(r.rast, s->n, s->h, s->w, 4), F32(g, s->n, s->h, s->w, 4),
                            with_db ? F32(gdb, s->n, s->h, s->w, 4) : NULL, flags, F32(out, s->n, s->v, 4)));
            double error = 0, size = 0;
            for (int v = 0; v < s->n * s->v; v++) {
                assert_near(0, out[4 * v + 2], 0);
                for (int c = 0; c < 4; c++) {
                    if (c == 2)
                        continue;
                    const double h = 1e-6;
                    const double want =
                        (raster_loss(&r, g, gdb, v, c, h) - raster_loss(&r, g, gdb, v, c, -h)) / (2 * h);
                    const double off = (double)out[4 * v + c] - want;
                    error += off * off, size += want * want;
                    if (fabs(want) > 1e-2 * sqrt(size) && want * (double)out[4 * v + c] < 0)
                        fail_msg("vertex %d component %d: gradient %g, differences %g", v, c,
                                 (double)out[4 * v + c], want);
                }
            }
            assert_true(size > 1);
            assert_near(0, sqrt(error / size), 1e-4);
            free(g);
            free(gdb);
            free(out);
            rendered_free(&r);
        }
    }
}

static void without_db_gradient_nothing_flows_from_derivatives(void **state)
{
    (void)state;
    struct rendered r = render(52, 1, 20, 15, 20, 20);
    const struct scene *s = &r.scene;
    float *zero = NEW(float, 4 * pixel_count(s)), *out = NEW(float, 4 * s->v);
    memset(out, 1, 4 * (size_t)s->v * sizeof *out);
    assert_int_equal(FEL_OK,
                     fel_rasterize_backward(test_context(), F32(s->positions, 1, s->v, 4),
                                            I32(s->triangles, s->f, 3), F32(r.rast, 1, s->h, s->w, 4),
                                            F32(zero, 1, s->h, s->w, 4), NULL, 0, F32(out, 1, s->v, 4)));
    for (int k = 0; k < 4 * s->v; k++)
        assert_near(0, out[k], 0);
    free(zero);
    free(out);
    rendered_free(&r);
}

static void zero_upstream_gives_exact_zero_even_for_nan_positions(void **state)
{
    (void)state;
    struct rendered r = render(53, 1, 20, 15, 20, 20);
    struct scene *s = &r.scene;
    const int64_t pixels = pixel_count(s);
    float *zero = NEW(float, 4 * pixels), *out = NEW(float, 4 * s->v), *color = NEW(float, 3 * pixels),
          *gc = NEW(float, 3 * pixels);
    int *topology = NEW(int, 3 * s->f);
    assert_int_equal(FEL_OK, fel_antialias_topology(test_context(), I32(s->triangles, s->f, 3), NULL,
                                                    I32(topology, s->f, 3)));
    for (int k = 0; k < 4 * s->v; k++)
        s->positions[k] = k % 3 ? NAN : INFINITY;
    assert_int_equal(FEL_OK, fel_rasterize_backward(test_context(), F32(s->positions, 1, s->v, 4),
                                                    I32(s->triangles, s->f, 3), F32(r.rast, 1, s->h, s->w, 4),
                                                    F32(zero, 1, s->h, s->w, 4), F32(zero, 1, s->h, s->w, 4),
                                                    0, F32(out, 1, s->v, 4)));
    for (int k = 0; k < 4 * s->v; k++)
        assert_near(0, out[k], 0);
    assert_int_equal(FEL_OK, fel_antialias_backward(test_context(), F32(color, 1, s->h, s->w, 3),
                                                    F32(r.rast, 1, s->h, s->w, 4),
                                                    F32(s->positions, 1, s->v, 4), I32(s->triangles, s->f, 3),
                                                    I32(topology, s->f, 3), F32(color, 1, s->h, s->w, 3), 1,
                                                    0, F32(gc, 1, s->h, s->w, 3), F32(out, 1, s->v, 4)));
    for (int k = 0; k < 4 * s->v; k++)
        assert_near(0, out[k], 0);
    free(zero);
    free(out);
    free(color);
    free(gc);
    free(topology);
    rendered_free(&r);
}

static void deterministic_gradients_are_the_same_bits_every_time(void **state)
{
    (void)state;
    struct rendered r = render(54, 1, 12, 40, 150, 160);
    const struct scene *s = &r.scene;
    const size_t floats = 4 * (size_t)pixel_count(s);
    float *g = NEW(float, floats), *first = NEW(float, 4 * s->v), *again = NEW(float, 4 * s->v);
    struct random random = {1};
    random_fill(&random, g, floats, -1, 1);
    for (int k = 0; k < 5; k++) {
        assert_int_equal(FEL_OK,
                         fel_rasterize_backward(test_context(), F32(s->positions, 1, s->v, 4),
                                                I32(s->triangles, s->f, 3), F32(r.rast, 1, s->h, s->w, 4),
                                                F32(g, 1, s->h, s->w, 4), F32(g, 1, s->h, s->w, 4),
                                                FEL_DETERMINISTIC, F32(k ? again : first, 1, s->v, 4)));
        if (k)
            assert_memory_equal(first, again, 4 * (size_t)s->v * sizeof *first);
    }
    free(g);
    free(first);
    free(again);
    rendered_free(&r);
}

static void deterministic_sum_of_a_contribution_that_is_not_finite_is_nan(void **state)
{
    (void)state;
    const float attributes[] = {1, 2, 4, 8, 9, 10}, rast[] = {.25F, .5F, 0, 1, .25F, .5F, 0, 2},
                g[] = {INFINITY, 1};
    float out[6];
    assert_int_equal(FEL_OK, fel_interpolate_backward(
                                 test_context(), F32(attributes, 6, 1), F32(rast, 1, 1, 2, 4),
                                 I32(((int[]){0, 1, 2, 3, 4, 5}), 2, 3), NULL, NULL, F32(g, 1, 1, 2, 1), NULL,
                                 FEL_DETERMINISTIC, F32(out, 6, 1), NULL, NULL));
    for (int k = 0; k < 3; k++)
        assert_true(isnan(out[k]));
    assert_near(.25, out[3], 1e-6);
    assert_near(.5, out[4], 1e-6);
}

/* ---- texture: differences of its own forward, away from texel centres and integer levels ---- */

struct lookup {
    float *texture, *uv, *da, *bias, *g;
    int h, w, c, p;
    fel_texture_filter filter;
    fel_texture_boundary boundary;
};

enum { LEVELS = 3 };

static double texture_loss(const struct lookup *l)
{
    const int cube = l->boundary == FEL_BOUNDARY_CUBE, n = cube ? 3 : 2;
    float *out = NEW(float, l->p * l->c), *level[LEVELS];
    const DLTensor *texture =
        cube ? F32(l->texture, 1, 6, l->h, l->w, l->c) : F32(l->texture, 1, l->h, l->w, l->c);
    int64_t shapes[LEVELS][5];
    DLTensor tensors[LEVELS], *levels[LEVELS];
    for (int k = 0; k < LEVELS; k++) {
        tensors[k] = *texture;
        memcpy(shapes[k], texture->shape, sizeof(int64_t) * (size_t)texture->ndim);
        shapes[k][cube ? 2 : 1] >>= k + 1;
        shapes[k][cube ? 3 : 2] >>= k + 1;
        tensors[k].shape = shapes[k];
        tensors[k].data = level[k] = NEW(float, 6 * l->h * l->w * l->c);
        levels[k] = &tensors[k];
    }
    assert_int_equal(FEL_OK, fel_texture_mips(test_context(), texture, levels, LEVELS));
    if (fel_texture(test_context(), texture, (const DLTensor *const *)levels, LEVELS,
                    F32(l->uv, 1, 1, l->p, n), F32(l->da, 1, 1, l->p, 2 * n), F32(l->bias, 1, 1, l->p),
                    l->filter, l->boundary, F32(out, 1, 1, l->p, l->c)))
        fail_msg("%s", fel_last_error());
    double sum = 0;
    for (int k = 0; k < l->p * l->c; k++)
        sum += (double)out[k] * (double)l->g[k];
    free(out);
    for (int k = 0; k < LEVELS; k++)
        free(level[k]);
    return sum;
}

/* Relative L2 distance of `grad` from central differences of x's elements; elements whose one-sided differences
 * disagree (a kink between) are left out, but no more than a tenth of them. */
static void compare_with_differences(const struct lookup *l, float *x, const float *grad, int count,
                                     float step, const char *what)
{
    double error = 0, size = 0;
    int kinks = 0;
    const double middle = texture_loss(l);
    for (int k = 0; k < count; k++) {
        const float was = x[k];
        x[k] = was + step;
        const float above = x[k];
        const double upper = texture_loss(l);
        x[k] = was - step;
        const double lower = texture_loss(l), width = (double)above - (double)x[k];
        x[k] = was;
        const double want = (upper - lower) / width, left = (middle - lower) / (width / 2),
                     right = (upper - middle) / (width / 2);
        if (fabs(left - right) > .02 * (fabs(left) + fabs(right)) + .02) {
            kinks++;
            continue;
        }
        error += (want - (double)grad[k]) * (want - (double)grad[k]);
        size += want * want;
    }
    if (size == 0 && error == 0)
        return;
    if (sqrt(error) > 4e-3 * sqrt(size) + 1e-4 || kinks > count / 4)
        fail_msg("%s, filter %d, boundary %d: relative error %g, %d kinks of %d", what, (int)l->filter,
                 (int)l->boundary, sqrt(error / size), kinks, count);
}

static void texture_gradients_equal_differences(void **state)
{
    (void)state;
    enum { SIDE = 8, C = 2, P = 24 };
    for (int boundary = 0; boundary < 4; boundary++) {
        for (int filter = 0; filter < 4; filter++) {
            const int cube = boundary == FEL_BOUNDARY_CUBE, n = cube ? 3 : 2,
                      texels = (cube ? 6 : 1) * SIDE * SIDE * C;
            struct random r = {(uint64_t)(90 + boundary)};
            float texture[6 * SIDE * SIDE * C], uv[3 * P], da[6 * P], bias[P], g[C * P];
            float gt[6 * SIDE * SIDE * C], guv[3 * P], gda[6 * P], gbias[P];
            struct lookup l = {texture,
                               uv,
                               da,
                               bias,
                               g,
                               SIDE,
                               SIDE,
                               C,
                               P,
                               (fel_texture_filter)filter,
                               (fel_texture_boundary)boundary};
            random_fill(&r, texture, (size_t)texels, -1, 1);
            random_fill(&r, uv, COUNT_OF(uv), cube ? -1 : -.2F, cube ? 1 : 1.2F);
            random_fill(&r, da, COUNT_OF(da), -.25F, .25F);
            random_fill(&r, bias, COUNT_OF(bias), -.4F, .4F);
            random_fill(&r, g, COUNT_OF(g), -1, 1);
            float level[LEVELS][6 * SIDE * SIDE * C];
            const DLTensor *t = cube ? F32(texture, 1, 6, SIDE, SIDE, C) : F32(texture, 1, SIDE, SIDE, C);
            DLTensor *flat[] = {F32(level[0], 1, 4, 4, C), F32(level[1], 1, 2, 2, C),
                                F32(level[2], 1, 1, 1, C)};
            DLTensor *cubes[] = {F32(level[0], 1, 6, 4, 4, C), F32(level[1], 1, 6, 2, 2, C),
                                 F32(level[2], 1, 6, 1, 1, C)};
            DLTensor *const *levels = cube ? cubes : flat;
            DLTensor grad_texture = *t;
            grad_texture.data = gt;
            assert_int_equal(FEL_OK, fel_texture_mips(test_context(), t, levels, LEVELS));
            for (unsigned flags = 0; flags <= FEL_DETERMINISTIC; flags++) {
                assert_int_equal(
                    FEL_OK, fel_texture_backward(test_context(), t, (const DLTensor *const *)levels, LEVELS,
                                                 F32(uv, 1, 1, P, n), F32(da, 1, 1, P, 2 * n),
                                                 F32(bias, 1, 1, P), l.filter, l.boundary, F32(g, 1, 1, P, C),
                                                 flags, &grad_texture, NULL, F32(guv, 1, 1, P, n),
                                                 F32(gda, 1, 1, P, 2 * n), F32(gbias, 1, 1, P)));
                compare_with_differences(&l, texture, gt, texels, .05F, "texture");
                if (filter == FEL_FILTER_NEAREST)
                    for (int k = 0; k < n * P; k++)
                        assert_near(0, guv[k], 0);
                if (filter != FEL_FILTER_NEAREST)
                    compare_with_differences(&l, uv, guv, n * P, 4e-4F, "uv");
                if (filter < FEL_FILTER_LINEAR_MIPMAP_LINEAR) {
                    for (int k = 0; k < 2 * n * P; k++)
                        assert_near(0, gda[k], 0);
                    for (int k = 0; k < P; k++)
                        assert_near(0, gbias[k], 0);
                } else {
                    compare_with_differences(&l, da, gda, 2 * n * P, 4e-4F, "uv_da");
                    compare_with_differences(&l, bias, gbias, P, 2e-3F, "bias");
                }
                for (int k = 0; cube && filter == FEL_FILTER_LINEAR && k < P;
                     k++) { /* along the sphere only */
                    const double dot = (double)uv[3 * k] * (double)guv[3 * k] +
                                       (double)uv[3 * k + 1] * (double)guv[3 * k + 1] +
                                       (double)uv[3 * k + 2] * (double)guv[3 * k + 2];
                    assert_near(0, dot, 1e-4);
                }
            }
        }
    }
}

/* ---- antialias ---- */

static double antialias_loss(const struct rendered *r, const float *positions, const int *topology,
                             const float *color, const float *g)
{
    const struct scene *s = &r->scene;
    float *out = NEW(float, 2 * pixel_count(s));
    assert_int_equal(FEL_OK, fel_antialias(test_context(), F32(color, s->n, s->h, s->w, 2),
                                           F32(r->rast, s->n, s->h, s->w, 4), F32(positions, s->n, s->v, 4),
                                           I32(s->triangles, s->f, 3), I32(topology, s->f, 3),
                                           F32(out, s->n, s->h, s->w, 2)));
    double sum = 0;
    for (int64_t k = 0; k < 2 * pixel_count(s); k++)
        sum += (double)out[k] * (double)g[k];
    free(out);
    return sum;
}

static void antialias_position_gradients_equal_differences(void **state)
{
    (void)state;
    struct rendered r = render(61, 2, 30, 20, 40, 44);
    struct scene *s = &r.scene;
    const int64_t values = 2 * pixel_count(s);
    float *color = NEW(float, values), *g = NEW(float, values), *gp = NEW(float, 4 * s->n * s->v);
    int *topology = NEW(int, 3 * s->f);
    struct random random = {4};
    for (int64_t k = 0; k < values; k++) /* smooth within a face, so that pairs differ by more than noise */
        color[k] = (float)((face_at(r.rast, k / 2) * 7 + k % 2) % 5) * .3F;
    random_fill(&random, g, (size_t)values, -1, 1);
    assert_int_equal(FEL_OK, fel_antialias_topology(test_context(), I32(s->triangles, s->f, 3), NULL,
                                                    I32(topology, s->f, 3)));
    assert_int_equal(
        FEL_OK, fel_antialias_backward(test_context(), F32(color, s->n, s->h, s->w, 2),
                                       F32(r.rast, s->n, s->h, s->w, 4), F32(s->positions, s->n, s->v, 4),
                                       I32(s->triangles, s->f, 3), I32(topology, s->f, 3),
                                       F32(g, s->n, s->h, s->w, 2), 1, 0, NULL, F32(gp, s->n, s->v, 4)));
    double error = 0, size = 0;
    int kinks = 0;
    const double middle = antialias_loss(&r, s->positions, topology, color, g);
    for (int k = 0; k < 4 * s->n * s->v; k++) {
        if (k % 4 == 2) {
            assert_near(0, gp[k], 0);
            continue;
        }
        const float was = s->positions[k], step = 4e-4F;
        s->positions[k] = was + step;
        const float above = s->positions[k];
        const double upper = antialias_loss(&r, s->positions, topology, color, g);
        s->positions[k] = was - step;
        const double lower = antialias_loss(&r, s->positions, topology, color, g),
                     width = (double)above - (double)s->positions[k];
        s->positions[k] = was;
        const double want = (upper - lower) / width, left = 2 * (middle - lower) / width,
                     right = 2 * (upper - middle) / width;
        if (fabs(left - right) > .05 * (fabs(left) + fabs(right)) + .1) {
            kinks++; /* a distance passes 1/2, or a pair its limits */
            continue;
        }
        error += (want - (double)gp[k]) * (want - (double)gp[k]);
        size += want * want;
    }
    assert_true(size > 100 && kinks < 3 * s->n * s->v / 2);
    assert_near(0, sqrt(error / size), 1e-2);
    free(color);
    free(g);
    free(gp);
    free(topology);
    rendered_free(&r);
}

/* The whole chain as an optimiser uses it: a square is pulled to a target mask. */
static void square_is_pulled_to_a_target_mask(void **state)
{
    (void)state;
    enum { SIZE = 32 };
    int triangles[] = {0, 1, 2, 3, 2, 1};
    float p[16] = {0}, target[SIZE * SIZE], half = .45F, x = -.05F, y = .02F, first = 0, last = 0;
    for (int step = 0; step <= 50; step++) {
        const float a = step == 0 ? .6F : half, cx = step == 0 ? .1F : x, cy = step == 0 ? -.1F : y;
        for (int k = 0; k < 4; k++) {
            p[4 * k] = cx + (k & 1 ? a : -a), p[4 * k + 1] = cy + (k & 2 ? a : -a);
            p[4 * k + 3] = 1;
        }
        const struct scene s = {p, triangles, 1, 4, 2, SIZE, SIZE};
        float *rast = draw(test_context(), &s, NULL), mask[SIZE * SIZE], out[SIZE * SIZE], g[SIZE * SIZE],
              gp[16];
        int topology[6];
        for (int k = 0; k < SIZE * SIZE; k++)
            mask[k] = rast[4 * k + 3] > 0;
        assert_int_equal(
            FEL_OK, fel_antialias_topology(test_context(), I32(triangles, 2, 3), NULL, I32(topology, 2, 3)));
        assert_int_equal(FEL_OK,
                         fel_antialias(test_context(), F32(mask, 1, SIZE, SIZE, 1),
                                       F32(rast, 1, SIZE, SIZE, 4), F32(p, 1, 4, 4), I32(triangles, 2, 3),
                                       I32(topology, 2, 3), F32(out, 1, SIZE, SIZE, 1)));
        if (step == 0) {
            memcpy(target, out, sizeof target);
            free(rast);
            continue;
        }
        last = 0;
        for (int k = 0; k < SIZE * SIZE; k++) {
            const float off = out[k] - target[k];
            g[k] = off > 0   ? 1
                   : off < 0 ? -1
                             : 0; /* a squared loss would be flat wherever a pixel is just full */
            last += fabsf(off);
        }
        first = step == 1 ? last : first;
        assert_int_equal(FEL_OK, fel_antialias_backward(
                                     test_context(), F32(mask, 1, SIZE, SIZE, 1), F32(rast, 1, SIZE, SIZE, 4),
                                     F32(p, 1, 4, 4), I32(triangles, 2, 3), I32(topology, 2, 3),
                                     F32(g, 1, SIZE, SIZE, 1), 1, 0, NULL, F32(gp, 1, 4, 4)));
        float gx = 0, gy = 0, ga = 0;
        for (int k = 0; k < 4; k++) {
            gx += gp[4 * k], gy += gp[4 * k + 1];
            ga += (k & 1 ? 1 : -1) * gp[4 * k] + (k & 2 ? 1 : -1) * gp[4 * k + 1];
        }
        const float rate = 6e-5F * powf(.92F, (float)step);
        x -= rate * gx, y -= rate * gy, half -= rate * ga;
        free(rast);
    }
    if (!(last < first / 10))
        fail_msg("loss went from %g to %g", (double)first, (double)last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rasterize_gradients_equal_differences_of_the_definition),
        cmocka_unit_test(without_db_gradient_nothing_flows_from_derivatives),
        cmocka_unit_test(zero_upstream_gives_exact_zero_even_for_nan_positions),
        cmocka_unit_test(deterministic_gradients_are_the_same_bits_every_time),
        cmocka_unit_test(deterministic_sum_of_a_contribution_that_is_not_finite_is_nan),
        cmocka_unit_test(texture_gradients_equal_differences),
        cmocka_unit_test(antialias_position_gradients_equal_differences),
        cmocka_unit_test(square_is_pulled_to_a_target_mask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
