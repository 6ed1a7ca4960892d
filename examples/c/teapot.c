/* teapot.c: a shaded, textured, antialiased picture on the CPU, by libfelloe alone.
 *
 *     cc teapot.c $(pkg-config --cflags --libs felloe) -lm -o teapot && ./teapot teapot.png
 *
 * The mesh is made here: a body and a lid turned on a lathe, a spout and a handle swept along curves. Then the calls in the order of
 * felloe/raster.h: rasterize, interpolate, texture with mipmaps, shading in plain C, antialias. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <felloe/asset.h>
#include <felloe/raster.h>

enum { AROUND = 96, ALONG = 64, SIZE = 512, CHECKS = 256, LEVELS = 8, PARTS = 3 };
enum { VERTICES = PARTS * (ALONG + 1) * (AROUND + 1), FACES = PARTS * ALONG * AROUND * 2 };

static const float PI = 3.14159265F;

static float positions[VERTICES][4], normals[VERTICES][3], coordinates[VERTICES][2];
static int32_t triangles[FACES][3];
static float checks[CHECKS][CHECKS][3], mips[CHECKS * CHECKS * 3]; /* the levels, one behind the other */
static float rast[SIZE][SIZE][4], rast_db[SIZE][SIZE][4], normal[SIZE][SIZE][3], uv[SIZE][SIZE][2],
    uv_da[SIZE][SIZE][4];
static float albedo[SIZE][SIZE][3], color[SIZE][SIZE][3], smooth[SIZE][SIZE][3];
static int32_t topology[FACES][3];
static uint8_t pixels[SIZE][SIZE][3];

static void must(fel_status status)
{
    if (status == FEL_OK)
        return;
    (void)fprintf(stderr, "teapot: %s\n", fel_last_error());
    exit(1);
}

/* ---- The mesh ---- */

struct point {
    float x, y, z;
};

/* The outline of body and lid, from the foot to the knob: radius and height. */
static struct point lathe(float s, float t)
{
    static const float OUTLINE[][2] = {{0, 0},       {.55F, 0},    {.8F, .1F},   {1, .4F},
                                       {.95F, .7F},  {.75F, .95F}, {.7F, 1.0F},  {.45F, 1.12F},
                                       {.12F, 1.2F}, {.16F, 1.3F}, {.1F, 1.38F}, {0, 1.4F}};
    const int last = (int)(sizeof OUTLINE / sizeof *OUTLINE) - 1;
    const float at = s * (float)last;
    const int k = at >= (float)last ? last - 1 : (int)at;
    const float f = at - (float)k;
    float p[2];
    for (int c = 0; c < 2; c++) { /* Catmull-Rom */
        const float a = OUTLINE[k > 0 ? k - 1 : 0][c], b = OUTLINE[k][c], d = OUTLINE[k + 1][c],
                    e = OUTLINE[k + 2 <= last ? k + 2 : last][c];
        p[c] = b + .5F * f * (d - a + f * (2 * a - 5 * b + 4 * d - e + f * (3 * (b - d) + e - a)));
    }
    const float radius = p[0] > 0 ? p[0] : 0;
    return (struct point){radius * cosf(2 * PI * t), p[1], radius * sinf(2 * PI * t)};
}

/* A tube in the plane z = 0 along a quadratic curve. */
static struct point tube(const float curve[3][2], float thick, float thin, float s, float t)
{
    const float a = (1 - s) * (1 - s), b = 2 * s * (1 - s), c = s * s;
    const float dx = 2 * ((1 - s) * (curve[1][0] - curve[0][0]) + s * (curve[2][0] - curve[1][0]));
    const float dy = 2 * ((1 - s) * (curve[1][1] - curve[0][1]) + s * (curve[2][1] - curve[1][1]));
    const float length = sqrtf(dx * dx + dy * dy), r = thick + s * (thin - thick);
    const float across = r * cosf(2 * PI * t);
    return (struct point){a * curve[0][0] + b * curve[1][0] + c * curve[2][0] - across * dy / length,
                          a * curve[0][1] + b * curve[1][1] + c * curve[2][1] + across * dx / length,
                          r * sinf(2 * PI * t)};
}

static struct point surface(int part, float s, float t)
{
    static const float SPOUT[3][2] = {{.8F, .35F}, {1.35F, .35F}, {1.5F, 1.05F}};
    static const float HANDLE[3][2] = {{-.8F, .85F}, {-2.1F, .9F}, {-.85F, .2F}};
    if (part == 0)
        return lathe(s, t);
    return part == 1 ? tube(SPOUT, .2F, .08F, s, t) : tube(HANDLE, .08F, .08F, s, t);
}

static struct point normal_at(int part, float s, float t)
{
    const float h = 1e-3F, s0 = s > h ? s - h : 0, s1 = s < 1 - h ? s + h : 1;
    const struct point a = surface(part, s0, t), b = surface(part, s1, t), c = surface(part, s, t - h),
                       d = surface(part, s, t + h);
    const float u[3] = {b.x - a.x, b.y - a.y, b.z - a.z}, v[3] = {d.x - c.x, d.y - c.y, d.z - c.z};
    struct point n = {u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]};
    if (part != 0) /* a tube's two directions turn the other way round */
        n = (struct point){-n.x, -n.y, -n.z};
    if (n.x * n.x + n.y * n.y + n.z * n.z < 1e-16F)
        return (struct point){0, s < .5F ? -1.0F : 1.0F, 0}; /* the poles */
    return n;
}

/* Turned about the vertical, seen from above, in perspective. */
static void project(struct point p, float clip[4])
{
    const float turn = .5F, tilt = .45F, distance = 4.2F, focal = 2.2F, near = 1, far = 10;
    const float x = cosf(turn) * p.x + sinf(turn) * p.z, z0 = -sinf(turn) * p.x + cosf(turn) * p.z,
                y0 = p.y - .65F;
    const float y = cosf(tilt) * y0 - sinf(tilt) * z0, z = sinf(tilt) * y0 + cosf(tilt) * z0 - distance;
    clip[0] = focal * x;
    clip[1] = focal * y;
    clip[2] = (far + near) / (near - far) * z + 2 * far * near / (near - far);
    clip[3] = -z;
}

static void make_mesh(void)
{
    int32_t v = 0, f = 0;
    for (int part = 0; part < PARTS; part++) {
        const int32_t first = v;
        for (int i = 0; i <= ALONG; i++)
            for (int j = 0; j <= AROUND; j++, v++) {
                const float s = (float)i / ALONG, t = (float)j / AROUND;
                const struct point n = normal_at(part, s, t);
                project(surface(part, s, t), positions[v]);
                normals[v][0] = n.x, normals[v][1] = n.y, normals[v][2] = n.z;
                coordinates[v][0] = t * (part == 0 ? 4.0F : 1.0F);
                coordinates[v][1] = s * 2.0F;
            }
        for (int32_t i = 0; i < ALONG; i++)
            for (int32_t j = 0; j < AROUND; j++) {
                const int32_t a = first + i * (AROUND + 1) + j, b = a + AROUND + 1;
                const int32_t two[2][3] = {{a, b, a + 1}, {a + 1, b, b + 1}};
                for (int k = 0; k < 2; k++, f++)
                    for (int c = 0; c < 3; c++)
                        triangles[f][c] = two[k][c];
            }
    }
}

/* ---- The picture ---- */

#define TENSOR(memory, code_, ...)                                                                           \
    (&(DLTensor){.data = (memory),                                                                           \
                 .device = {kDLCPU, 0},                                                                      \
                 .ndim = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                                 \
                 .dtype = {(code_), 32, 1},                                                                  \
                 .shape = (int64_t[]){__VA_ARGS__}})
#define FLOATS(memory, ...) TENSOR(memory, kDLFloat, __VA_ARGS__)
#define INTS(memory, ...) TENSOR(memory, kDLInt, __VA_ARGS__)

static void shade(void)
{
    static const float LIGHT[3] = {.42F, .74F, .53F};
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++) {
            const float *n = normal[i][j];
            const float length = sqrtf(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]),
                        backdrop = .82F + .15F * (float)i / SIZE;
            const float facing =
                length > 0 ? (n[0] * LIGHT[0] + n[1] * LIGHT[1] + n[2] * LIGHT[2]) / length : 0;
            const float diffuse = .25F + .75F * (facing > 0 ? facing : 0),
                        glint = .35F * powf(facing > 0 ? facing : 0, 60);
            for (int c = 0; c < 3; c++)
                color[i][j][c] = rast[i][j][3] > 0 ? albedo[i][j][c] * diffuse + glint : backdrop;
        }
}

static void write_png(const char *path)
{
    uint8_t *bytes;
    size_t size;
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++)
            for (int c = 0; c < 3; c++) { /* row 0 is the bottom one */
                const float v = smooth[SIZE - 1 - i][j][c];
                pixels[i][j][c] = (uint8_t)(255 * (v < 0 ? 0 : v > 1 ? 1 : v) + .5F);
            }
    must(fel_png_encode(&pixels[0][0][0], SIZE, SIZE, 3, 1, 0, &bytes, &size));
    must(fel_write_atomically(path, bytes, size));
    fel_png_free(bytes);
}

int main(int argc, char **argv)
{
    fel_context *ctx;
    int count;
    if (argc != 2) {
        (void)fprintf(stderr, "usage: teapot FILE.png\n");
        return 2;
    }
    make_mesh();
    for (int i = 0; i < CHECKS; i++)
        for (int j = 0; j < CHECKS; j++) {
            const int light = (i / 32 + j / 32) % 2;
            checks[i][j][0] = light ? .93F : .16F, checks[i][j][1] = light ? .9F : .36F,
            checks[i][j][2] = light ? .82F : .6F;
        }
    must(fel_context_create(NULL, &ctx));

    const DLTensor *clip = FLOATS(positions, 1, VERTICES, 4), *faces = INTS(triangles, FACES, 3);
    DLTensor *seen = FLOATS(rast, 1, SIZE, SIZE, 4), *seen_db = FLOATS(rast_db, 1, SIZE, SIZE, 4);
    must(fel_rasterize(ctx, clip, faces, NULL, NULL, seen, seen_db));

    DLTensor *at = FLOATS(uv, 1, SIZE, SIZE, 2), *at_da = FLOATS(uv_da, 1, SIZE, SIZE, 4);
    must(fel_interpolate(ctx, FLOATS(normals, VERTICES, 3), seen, faces, NULL, NULL,
                         FLOATS(normal, 1, SIZE, SIZE, 3), NULL));
    must(fel_interpolate(ctx, FLOATS(coordinates, VERTICES, 2), seen, faces, seen_db, NULL, at, at_da));

    const DLTensor *image = FLOATS(checks, 1, CHECKS, CHECKS, 3);
    DLTensor levels[LEVELS], *level[LEVELS];
    const DLTensor *read_level[LEVELS];
    int64_t shapes[LEVELS][4];
    float *memory = mips;
    must(fel_texture_level_count(CHECKS, CHECKS, LEVELS, &count));
    for (int k = 0; k < count; k++) {
        const int64_t side = CHECKS >> (k + 1);
        shapes[k][0] = 1, shapes[k][1] = shapes[k][2] = side, shapes[k][3] = 3;
        levels[k] = *image;
        levels[k].data = memory;
        levels[k].shape = shapes[k];
        read_level[k] = level[k] = &levels[k];
        memory += (side * side * 3 + 3) / 4 * 4;
    }
    must(fel_texture_mips(ctx, image, level, count));
    must(fel_texture(ctx, image, read_level, count, at, at_da, NULL, FEL_FILTER_LINEAR_MIPMAP_LINEAR,
                     FEL_BOUNDARY_WRAP, FLOATS(albedo, 1, SIZE, SIZE, 3)));
    shade();

    DLTensor *edges = INTS(topology, FACES, 3);
    must(fel_antialias_topology(ctx, faces, NULL, edges));
    must(fel_antialias(ctx, FLOATS(color, 1, SIZE, SIZE, 3), seen, clip, faces, edges,
                       FLOATS(smooth, 1, SIZE, SIZE, 3)));
    write_png(argv[1]);
    fel_context_free(ctx);
    return 0;
}
