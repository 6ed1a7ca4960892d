/* tests/raster/scene.h: what the raster tests share: tensors over plain arrays, random numbers, and a rasterizer by
 * definition, which asks every triangle at every pixel in double precision and knows no grid and no clipping. */
#ifndef RASTER_SCENE_H
#define RASTER_SCENE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "context.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
#define TENSOR(p, type_code, ...)                                                                            \
    (&(DLTensor){.data = (void *)(p),                                                                        \
                 .device = {kDLCPU, 0},                                                                      \
                 .ndim = (int)COUNT_OF(((int64_t[]){__VA_ARGS__})),                                          \
                 .dtype = {type_code, 32, 1},                                                                \
                 .shape = (int64_t[]){__VA_ARGS__}})
#define F32(p, ...) TENSOR(p, kDLFloat, __VA_ARGS__)
#define I32(p, ...) TENSOR(p, kDLInt, __VA_ARGS__)

/* Also fails for NaN. */
#define assert_near(want, got, tolerance)                                                                    \
    do {                                                                                                     \
        const double near_want = (double)(want), near_got = (double)(got);                                   \
        if (!(fabs(near_want - near_got) <= (double)(tolerance)))                                            \
            fail_msg(#got " is %.9g, expected %.9g", near_got, near_want);                                   \
    } while (0)

/* ---- random numbers: PCG (O'Neill 2014), so that a seed means the same scene everywhere ---- */

struct random {
    uint64_t state;
};

static inline uint32_t random_bits(struct random *r)
{
    r->state = r->state * 6364136223846793005ULL + 1442695040888963407ULL;
    const uint32_t shifted = (uint32_t)(((r->state >> 18) ^ r->state) >> 27),
                   rotation = (uint32_t)(r->state >> 59);
    return shifted >> rotation | shifted << (-rotation & 31);
}

static inline float random_in(struct random *r, float low, float high)
{
    return low + (high - low) * (float)(random_bits(r) >> 8) * 0x1p-24F;
}

static inline int random_below(struct random *r, int n) { return (int)(random_bits(r) % (uint32_t)n); }

static inline void random_fill(struct random *r, float *out, size_t n, float low, float high)
{
    for (size_t k = 0; k < n; k++)
        out[k] = random_in(r, low, high);
}

static inline void *array(size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size);
    assert_non_null(p);
    return p;
}
#define NEW(type, count) ((type *)array((size_t)(count), sizeof(type)))

/* ---- a scene and its image ---- */

struct scene {
    float *positions; /* [n, v, 4] */
    int *triangles;   /* [f, 3] */
    int n, v, f, h, w;
};

static inline int64_t pixel_count(const struct scene *s) { return (int64_t)s->n * s->h * s->w; }

/* Random triangles that share vertices; `spread` beyond 1 leaves the frustum, `nearest` below 0 reaches behind the eye. */
static inline struct scene random_scene(uint64_t seed, int n, int v, int f, int h, int w, float spread,
                                        float nearest)
{
    struct random r = {seed};
    struct scene s = {NEW(float, 4 * n * v), NEW(int, 3 * f), n, v, f, h, w};
    for (int k = 0; k < n * v; k++) {
        const float depth = random_in(&r, nearest, 4.0F);
        s.positions[4 * k] = random_in(&r, -spread, spread) * (depth > 0.5F ? depth : 0.5F);
        s.positions[4 * k + 1] = random_in(&r, -spread, spread) * (depth > 0.5F ? depth : 0.5F);
        s.positions[4 * k + 2] =
            1.05F * depth - 0.2F; /* a projection with its near plane at a depth of about 0.1 */
        s.positions[4 * k + 3] = depth;
    }
    for (int k = 0; k < f; k++)
        for (int c = 0; c < 3; c++)
            s.triangles[3 * k + c] = random_below(&r, v);
    return s;
}

static inline void scene_free(struct scene *s)
{
    free(s->positions);
    free(s->triangles);
}

/* rast [n, h, w, 4] (and db) of a scene, which the caller frees. */
static inline float *draw(fel_context *ctx, const struct scene *s, float *db)
{
    float *rast = NEW(float, 4 * pixel_count(s));
    memset(rast, 0x5a, 4 * (size_t)pixel_count(s) * sizeof *rast); /* every value must be written */
    const fel_status status =
        fel_rasterize(ctx, F32(s->positions, s->n, s->v, 4), I32(s->triangles, s->f, 3), NULL, NULL,
                      F32(rast, s->n, s->h, s->w, 4), db ? F32(db, s->n, s->h, s->w, 4) : NULL);
    if (status)
        fail_msg("%s", fel_last_error());
    return rast;
}

static inline int64_t face_at(const float *rast, int64_t pixel)
{
    const float id = rast[4 * pixel + 3];
    uint32_t bits;
    memcpy(&bits, &id, sizeof bits);
    return (id <= 16777216.0F ? (int64_t)id : (int64_t)bits - 0x4a800000) - 1;
}

/* ---- the definition ---- */

struct truth {
    double u, v, z;
    double du[2], dv[2]; /* per pixel */
    double margin;       /* least distance of the sample from an edge, in pixels; negative outside */
    double slope;        /* of z, per pixel */
    double
        thickness; /* twice the area over the squared longest side, in pixels: how well conditioned u and v are */
    int visible; /* in front of the eye and between near and far plane */
};

/* Of one triangle with clip positions p, at sample (i, j) of an h x w image. */
static inline struct truth truth_of(const double p[3][4], int h, int w, int i, int j)
{
    struct truth t = {.margin = -1e9};
    double px[3], py[3], a[3], ax[3], ay[3];
    const double x = (2.0 * j + 1) / w - 1, y = (2.0 * i + 1) / h - 1;
    for (int k = 0; k < 3; k++) {
        px[k] = p[k][0] - x * p[k][3];
        py[k] = p[k][1] - y * p[k][3];
    }
    double sum = 0, zs = 0, ws = 0, sx = 0, sy = 0;
    for (int k = 0; k < 3; k++) {
        const int m = (k + 1) % 3, n = (k + 2) % 3;
        a[k] = px[m] * py[n] - py[m] * px[n];
        ax[k] = p[m][1] * p[n][3] - p[m][3] * p[n][1];
        ay[k] = p[m][3] * p[n][0] - p[m][0] * p[n][3];
        sum += a[k], zs += a[k] * p[k][2], ws += a[k] * p[k][3], sx += ax[k], sy += ay[k];
    }
    if (sum == 0 || ws == 0)
        return t;
    t.u = a[0] / sum, t.v = a[1] / sum, t.z = zs / ws;
    t.visible = t.z >= -1 && t.z <= 1;
    const double kx = 2.0 / w, ky = 2.0 / h;
    t.du[0] = kx * (ax[0] - t.u * sx) / sum, t.du[1] = ky * (ay[0] - t.u * sy) / sum;
    t.dv[0] = kx * (ax[1] - t.v * sx) / sum, t.dv[1] = ky * (ay[1] - t.v * sy) / sum;
    double zx = 0, zy = 0, wx = 0, wy = 0;
    t.margin = 1e9;
    for (int k = 0; k < 3; k++) {
        const double steep = hypot(ax[k] * kx, ay[k] * ky);
        const double distance = steep > 0 ? a[k] / steep * (ws > 0 ? 1 : -1) : -1e9;
        t.margin = distance < t.margin ? distance : t.margin;
        zx += ax[k] * p[k][2], zy += ay[k] * p[k][2], wx += ax[k] * p[k][3], wy += ay[k] * p[k][3];
    }
    t.slope = hypot(kx * (zx - t.z * wx) / ws, ky * (zy - t.z * wy) / ws);
    double longest = 1e9, area = 0;
    if (p[0][3] > 0 && p[1][3] > 0 && p[2][3] > 0) {
        double qx[3], qy[3];
        longest = 0;
        for (int k = 0; k < 3; k++)
            qx[k] = p[k][0] / p[k][3] * w / 2, qy[k] = p[k][1] / p[k][3] * h / 2;
        for (int k = 0; k < 3; k++) {
            const double side = hypot(qx[k] - qx[(k + 1) % 3], qy[k] - qy[(k + 1) % 3]);
            longest = side > longest ? side : longest;
        }
        area = fabs((qx[1] - qx[0]) * (qy[2] - qy[0]) - (qx[2] - qx[0]) * (qy[1] - qy[0]));
    }
    t.thickness = longest > 0 ? area / (longest * longest) : 0;
    return t;
}

static inline struct truth truth_at(const struct scene *s, int image, int face, int i, int j)
{
    const struct truth none = {.margin = -1e9};
    double p[3][4];
    for (int k = 0; k < 3; k++) {
        const int v = s->triangles[3 * face + k];
        if (v < 0 || v >= s->v)
            return none;
        for (int c = 0; c < 4; c++) {
            p[k][c] = (double)s->positions[4 * ((int64_t)image * s->v + v) + c];
            if (!isfinite(p[k][c]))
                return none;
        }
    }
    return truth_of((const double(*)[4])p, s->h, s->w, i, j);
}

#endif
