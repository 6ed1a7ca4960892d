/* bench/raster/bench_rasterize.c: the forward stages on the CPU: 100,352 triangles of a wavy sphere at 1024 x 1024, a
 * 2048 x 2048 RGB texture. Prints median and spread of each stage and of the whole frame; before that, a check that what is
 * timed is right: coverage between two bounds, colours in [0, 1].
 *
 *     bench_rasterize [THREADS]     (0 or none: all processors)
 *
 * On a machine that others use as well, the processor time says more than the wall's. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <felloe/raster.h>

enum { RINGS = 224, SEGMENTS = 224, SIZE = 1024, TEXTURE = 2048, RUNS = 15, STAGES = 7 };

#define SHAPE(...) ((int64_t[]){__VA_ARGS__})
static DLTensor tensor(void *data, uint8_t code, int ndim, int64_t *shape)
{
    return (DLTensor){
        .data = data, .device = {kDLCPU, 0}, .ndim = ndim, .dtype = {code, 32, 1}, .shape = shape};
}

static void *reserve(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!p) {
        fprintf(stderr, "bench_rasterize: no %zu bytes\n", bytes);
        exit(1);
    }
    memset(p, 0, bytes);
    return p;
}

static double now_ms(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void must(fel_status status)
{
    if (status) {
        fprintf(stderr, "bench_rasterize: %s\n", fel_last_error());
        exit(1);
    }
}

/* A sphere pushed by waves, seen from outside: clip positions, uv and triangles. */
static void wavy_sphere(float *positions, float *uv, int *triangles)
{
    for (int i = 0; i <= RINGS; i++) {
        for (int k = 0; k <= SEGMENTS; k++) {
            const double theta = 3.14159265358979 * i / RINGS, phi = 6.28318530717959 * k / SEGMENTS;
            const double r = 1 + .03 * sin(7 * phi) * sin(theta) + .02 * cos(11 * theta);
            const double x = r * sin(theta) * cos(phi), y = r * cos(theta),
                         z = r * sin(theta) * sin(phi) + 2.9;
            const int v = i * (SEGMENTS + 1) + k;
            const double f = 2.414213562, n = .1, far = 10;
            positions[4 * v] = (float)(f * x), positions[4 * v + 1] = (float)(f * y);
            positions[4 * v + 2] = (float)((far + n) / (far - n) * z - 2 * far * n / (far - n));
            positions[4 * v + 3] = (float)z;
            uv[2 * v] = (float)k / SEGMENTS, uv[2 * v + 1] = (float)i / RINGS;
        }
    }
    for (int i = 0; i < RINGS; i++)
        for (int k = 0; k < SEGMENTS; k++, triangles += 6) {
            const int a = i * (SEGMENTS + 1) + k, b = a + 1, c = a + SEGMENTS + 1;
            memcpy(triangles, (int[]){a, b, c, b, c + 1, c}, 6 * sizeof *triangles);
        }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    enum { V = (RINGS + 1) * (SEGMENTS + 1), F = 2 * RINGS * SEGMENTS };
    const size_t pixels = (size_t)SIZE * SIZE;
    float *positions = reserve(sizeof(float) * 4 * V), *uv = reserve(sizeof(float) * 2 * V);
    float *rast = reserve(pixels * 16), *db = reserve(pixels * 16), *st = reserve(pixels * 8),
          *da = reserve(pixels * 16);
    float *image = reserve(sizeof(float) * 3 * TEXTURE * TEXTURE), *color = reserve(pixels * 12),
          *out = reserve(pixels * 12);
    int *triangles = reserve(sizeof(int) * 3 * F), *topology = reserve(sizeof(int) * 3 * F);
    wavy_sphere(positions, uv, triangles);
    for (size_t k = 0; k < (size_t)3 * TEXTURE * TEXTURE; k++)
        image[k] = (float)((k * 2654435761U >> 7) & 1023) / 1023;

    DLTensor tp = tensor(positions, kDLFloat, 3, SHAPE(1, V, 4)),
             tt = tensor(triangles, kDLInt, 2, SHAPE(F, 3));
    DLTensor tr = tensor(rast, kDLFloat, 4, SHAPE(1, SIZE, SIZE, 4)),
             td = tensor(db, kDLFloat, 4, SHAPE(1, SIZE, SIZE, 4));
    DLTensor tu = tensor(uv, kDLFloat, 2, SHAPE(V, 2)), ts = tensor(st, kDLFloat, 4, SHAPE(1, SIZE, SIZE, 2));
    DLTensor ta = tensor(da, kDLFloat, 4, SHAPE(1, SIZE, SIZE, 4)),
             to = tensor(topology, kDLInt, 2, SHAPE(F, 3));
    DLTensor ti = tensor(image, kDLFloat, 4, SHAPE(1, TEXTURE, TEXTURE, 3));
    DLTensor tc = tensor(color, kDLFloat, 4, SHAPE(1, SIZE, SIZE, 3)),
             tx = tensor(out, kDLFloat, 4, SHAPE(1, SIZE, SIZE, 3));
    int levels = 0;
    must(fel_texture_level_count(TEXTURE, TEXTURE, -1, &levels));
    DLTensor level[FEL_TEXTURE_MAX_LEVELS], *stack[FEL_TEXTURE_MAX_LEVELS];
    int64_t shapes[FEL_TEXTURE_MAX_LEVELS][4];
    for (int k = 0; k < levels; k++) {
        const int64_t side = TEXTURE >> (k + 1);
        memcpy(shapes[k], SHAPE(1, side, side, 3), sizeof shapes[k]);
        level[k] = tensor(reserve(sizeof(float) * 3 * (size_t)(side * side)), kDLFloat, 4, shapes[k]);
        stack[k] = &level[k];
    }

    fel_context_options options = FEL_CONTEXT_OPTIONS_INIT;
    options.threads = argc > 1 ? atoi(argv[1]) : 0;
    fel_context *ctx;
    must(fel_context_create(&options, &ctx));
    static const char *const name[STAGES] = {"rasterize", "interpolate", "mips", "texture",
                                             "topology",  "antialias",   "frame"};
    double times[STAGES][RUNS];
    clock_t spent = 0;
    for (int run = -1; run < RUNS; run++) {
        double mark[STAGES + 1];
        const clock_t before = clock();
        mark[0] = now_ms();
        must(fel_rasterize(ctx, &tp, &tt, NULL, NULL, &tr, &td));
        mark[1] = now_ms();
        must(fel_interpolate(ctx, &tu, &tr, &tt, &td, NULL, &ts, &ta));
        mark[2] = now_ms();
        must(fel_texture_mips(ctx, &ti, stack, levels));
        mark[3] = now_ms();
        must(fel_texture(ctx, &ti, (const DLTensor *const *)stack, levels, &ts, &ta, NULL,
                         FEL_FILTER_LINEAR_MIPMAP_LINEAR, FEL_BOUNDARY_WRAP, &tc));
        mark[4] = now_ms();
        must(fel_antialias_topology(ctx, &tt, NULL, &to));
        mark[5] = now_ms();
        must(fel_antialias(ctx, &tc, &tr, &tp, &tt, &to, &tx));
        mark[6] = now_ms();
        for (int k = 0; run >= 0 && k < STAGES - 1; k++)
            times[k][run] = mark[k + 1] - mark[k];
        if (run >= 0) /* mips and topology are made once for a texture and a mesh */
            times[STAGES - 1][run] = mark[6] - mark[0] - times[2][run] - times[4][run];
        spent += run >= 0 ? clock() - before : 0;
    }
    size_t covered = 0;
    for (size_t k = 0; k < pixels; k++) {
        covered += rast[4 * k + 3] > 0;
        for (int c = 0; c < 3; c++)
            if (!(color[3 * k + (size_t)c] >= 0 && color[3 * k + (size_t)c] <= 1)) {
                fprintf(stderr, "bench_rasterize: a colour of %g\n", (double)color[3 * k + (size_t)c]);
                return 1;
            }
    }
    const double share = (double)covered / (double)pixels;
    if (share < .5 || share > .9) {
        fprintf(stderr, "bench_rasterize: %g of the pixels are covered\n", share);
        return 1;
    }
    printf("raster f=%d %dx%d, %.0f %% covered, texture %d: ms, median (least to most) of %d\n", F, SIZE,
           SIZE, 100 * share, TEXTURE, RUNS);
    for (int k = 0; k < STAGES; k++) {
        qsort(times[k], RUNS, sizeof times[k][0], by_value);
        printf("  %-12s %8.2f (%.2f to %.2f)%s\n", name[k], times[k][RUNS / 2], times[k][0],
               times[k][RUNS - 1], k == STAGES - 1 ? "   without mips and topology" : "");
    }
    printf("  processor time of all stages, all threads: %.2f a run\n",
           1e3 * (double)spent / CLOCKS_PER_SEC / RUNS);
    fel_context_free(ctx);
    return 0;
}
