/* model/render.c: a lit picture of an asset, to look at before it is shipped. Meshes are drawn by libfelloe's rasterizer
 * on the CPU at twice the size and averaged down; gaussians as blended discs, far ones first. */
#include "model/model.h"

#include <felloe/bake.h>
#include <felloe/felloe.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { OVERSAMPLE = 2, OVERSAMPLE_AREA = OVERSAMPLE * OVERSAMPLE };

struct texture {
    uint8_t *pixels;
    int32_t width, height, channels;
};

struct scene {
    arena *a;
    const fel_asset *asset;
    float *positions, *attributes; /* [v, 3]; [v, ATTRIBUTES]: normal, colour, uv */
    int32_t *faces, *face_mesh;
    int64_t vertices, face_count;
    struct texture *textures; /* one a picture */
    float center[3], radius;
};
enum { ATTRIBUTES = 8 };

static float to_linear(float c) { return c <= 0.04045F ? c / 12.92F : powf((c + 0.055F) / 1.055F, 2.4F); }

static uint8_t to_srgb(float c)
{
    c = c > 0 ? fminf(c, 1) : 0;
    return (uint8_t)lroundf(255 * (c <= 0.0031308F ? 12.92F * c : 1.055F * powf(c, 1 / 2.4F) - 0.055F));
}

/* Area-weighted vertex normals, for meshes that have none. */
static void add_normals(const struct fel_mesh *m, float *attributes)
{
    for (int64_t f = 0; f < m->face_count; f++) {
        const float *p[3];
        float n[3];
        for (int i = 0; i < 3; i++)
            p[i] = m->positions + 3 * (int64_t)m->faces[3 * f + i];
        for (int k = 0; k < 3; k++) {
            const int u = (k + 1) % 3, v = (k + 2) % 3;
            n[k] = (p[1][u] - p[0][u]) * (p[2][v] - p[0][v]) - (p[1][v] - p[0][v]) * (p[2][u] - p[0][u]);
        }
        for (int i = 0; i < 9; i++)
            attributes[ATTRIBUTES * (int64_t)m->faces[3 * f + i / 3] + i % 3] += n[i % 3];
    }
}

static bool gather(struct scene *s)
{
    const fel_asset *asset = s->asset;
    for (int64_t m = 0; m < asset->mesh_count; m++) {
        s->vertices += asset->meshes[m].vertex_count;
        s->face_count += asset->meshes[m].face_count;
    }
    s->positions = arena_array(s->a, float, 3 * (size_t)s->vertices + 1);
    s->attributes = arena_array(s->a, float, ATTRIBUTES *(size_t)s->vertices + 1);
    s->faces = arena_array(s->a, int32_t, 3 * (size_t)s->face_count + 1);
    s->face_mesh = arena_array(s->a, int32_t, (size_t)s->face_count + 1);
    if (s->vertices > INT32_MAX || !s->positions || !s->attributes || !s->faces || !s->face_mesh)
        return false;
    int64_t first = 0, face = 0;
    for (int64_t m = 0; m < asset->mesh_count; first += asset->meshes[m].vertex_count, m++) {
        const struct fel_mesh *mesh = asset->meshes + m;
        float *attributes = s->attributes + ATTRIBUTES * first;
        if (mesh->vertex_count)
            memcpy(s->positions + 3 * first, mesh->positions, (size_t)mesh->vertex_count * 12);
        for (int64_t i = 0; i < mesh->vertex_count; i++) {
            float *to = attributes + ATTRIBUTES * i;
            for (int k = 0; k < 3; k++) {
                to[k] = mesh->normals ? mesh->normals[3 * i + k] : 0;
                to[3 + k] = mesh->colors ? mesh->colors[4 * i + k] : 1;
                /* bytes of PLY and OBJ are meant for the screen; glTF's colours are linear already */
                if (mesh->colors && asset->format != FEL_ASSET_GLB)
                    to[3 + k] = to_linear(to[3 + k]);
            }
            to[6] = mesh->uvs ? mesh->uvs[2 * i] : 0;
            to[7] = mesh->uvs ? mesh->uvs[2 * i + 1] : 0;
        }
        if (!mesh->normals)
            add_normals(mesh, attributes);
        for (int64_t i = 0; i < mesh->face_count; i++, face++) {
            s->face_mesh[face] = (int32_t)m;
            for (int k = 0; k < 3; k++)
                s->faces[3 * face + k] = (int32_t)(first + mesh->faces[3 * i + k]);
        }
    }
    return true;
}

static void find_bounds(struct scene *s)
{
    float low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    const struct fel_gaussians *g = s->asset->gaussians;
    const float *positions = g ? g->positions : s->positions;
    const int64_t count = g ? g->count : s->vertices;
    for (int64_t i = 0; i < 3 * count; i++) {
        if (!isfinite(positions[i]))
            continue;
        low[i % 3] = fminf(low[i % 3], positions[i]);
        high[i % 3] = fmaxf(high[i % 3], positions[i]);
    }
    float square = 0;
    for (int k = 0; k < 3; k++) {
        const bool any = low[k] <= high[k];
        s->center[k] = any ? low[k] / 2 + high[k] / 2 : 0;
        square += any ? (high[k] - low[k]) * (high[k] - low[k]) / 4 : 0;
    }
    s->radius = square > 0 && isfinite(square) ? sqrtf(square) : 1;
}

static bool decode_textures(struct scene *s, str path, findings *f)
{
    const fel_asset *asset = s->asset;
    s->textures = arena_array(s->a, struct texture, (size_t)asset->picture_count + 1);
    for (int64_t i = 0; s->textures && i < asset->picture_count; i++) {
        const struct fel_picture *p = asset->pictures + i;
        struct texture *t = s->textures + i;
        if (p->bytes && fel_png_decode(p->name, p->bytes, (size_t)p->size, &t->pixels, &t->width, &t->height,
                                       &t->channels))
            (void)finding_at(f, F613, (struct place){.file = path}, str_from(p->name), "%s",
                             fel_last_error());
    }
    return s->textures != NULL;
}

struct camera {
    float right[3], up[3], back[3];
    float distance, scale; /* scale: of the view's half height at distance 1 */
};

static struct camera camera_at(const struct scene *s, double yaw, double pitch)
{
    const double a = yaw * 3.14159265358979 / 180, b = pitch * 3.14159265358979 / 180;
    const struct camera c = {.right = {(float)cos(a), 0, (float)-sin(a)},
                             .up = {(float)(-sin(a) * sin(b)), (float)cos(b), (float)(-cos(a) * sin(b))},
                             .back = {(float)(sin(a) * cos(b)), (float)sin(b), (float)(cos(a) * cos(b))},
                             .scale = 0.3153F, /* tangent of half of 35 degrees */
                             .distance = s->radius / 0.3007F * 1.05F};
    return c;
}

/* Coordinates seen from the camera: x right, y up, z the distance in front of it. */
static void see(const struct scene *s, const struct camera *c, const float *p, float out[3])
{
    float d[3];
    out[0] = out[1] = 0;
    out[2] = c->distance;
    for (int k = 0; k < 3; k++) {
        d[k] = p[k] - s->center[k];
        out[0] += d[k] * c->right[k];
        out[1] += d[k] * c->up[k];
        out[2] -= d[k] * c->back[k];
    }
}

static void sample_texture(const struct texture *t, float u, float v, float color[3])
{
    if (!isfinite(u) || !isfinite(v))
        return;
    const float x = (u - floorf(u)) * (float)t->width - 0.5F, y = (v - floorf(v)) * (float)t->height - 0.5F;
    const float fx = x - floorf(x), fy = y - floorf(y);
    float sum[3] = {0, 0, 0};
    for (int k = 0; k < 4; k++) {
        const int px = ((int)floorf(x) + (k & 1) + t->width) % t->width,
                  py = ((int)floorf(y) + (k >> 1) + t->height) % t->height;
        const uint8_t *p = t->pixels + ((int64_t)py * t->width + px) * t->channels;
        const float weight = (k & 1 ? fx : 1 - fx) * (k >> 1 ? fy : 1 - fy);
        for (int c = 0; c < 3; c++)
            sum[c] += weight * to_linear((float)p[t->channels >= 3 ? c : 0] / 255);
    }
    for (int c = 0; c < 3; c++)
        color[c] *= sum[c];
}

static void backdrop(int y, int height, float color[3])
{
    const float t = (float)y / (float)height;
    color[0] = 0.86F - 0.34F * t;
    color[1] = 0.88F - 0.34F * t;
    color[2] = 0.91F - 0.34F * t;
}

/* A key light from the upper left beside the camera, a dim one from behind, and light from the sky and the ground. */
static void shade(const struct scene *s, const struct camera *c, int32_t face, const float *at,
                  float color[3])
{
    const fel_asset *asset = s->asset;
    const struct fel_mesh *mesh = asset->meshes + s->face_mesh[face];
    const struct fel_material *m = mesh->material >= 0 ? asset->materials + mesh->material : NULL;
    float n[3] = {at[0], at[1], at[2]}, length = sqrtf(at[0] * at[0] + at[1] * at[1] + at[2] * at[2]),
          facing = 0, key = 0, rim = 0;
    for (int k = 0; k < 3; k++) {
        n[k] = length > 0 ? n[k] / length : c->back[k];
        facing += n[k] * c->back[k];
    }
    for (int k = 0; k < 3; k++) {
        n[k] = facing < 0 ? -n[k] : n[k]; /* both sides are lit: what is inside out should still be seen */
        key += n[k] * (0.70F * c->back[k] + 0.55F * c->up[k] - 0.45F * c->right[k]);
        rim += n[k] * (-0.55F * c->back[k] + 0.3F * c->up[k] + 0.78F * c->right[k]);
        color[k] = at[3 + k] * (m ? m->base_color[k] : 0.8F);
    }
    if (m && m->base_color_texture >= 0 && s->textures[m->base_color_texture].pixels && mesh->uvs)
        sample_texture(s->textures + m->base_color_texture, at[6], at[7], color);
    const float sky = 0.5F + 0.5F * n[1],
                light = 0.16F + 0.22F * sky + 0.72F * fmaxf(key, 0) + 0.18F * fmaxf(rim, 0);
    const float shine = 0.10F * powf(fmaxf(key, 0), 24) * (m ? 1 - fminf(fmaxf(m->roughness, 0), 1) : 0.5F);
    for (int k = 0; k < 3; k++)
        color[k] = color[k] * light + shine + (m ? m->emissive[k] : 0);
}

static DLTensor tensor(void *data, uint8_t code, int rank, int64_t *shape)
{
    return (DLTensor){
        .data = data, .device = {kDLCPU, 0}, .ndim = rank, .dtype = {code, 32, 1}, .shape = shape};
}

struct frame {
    int width, height;                  /* oversampled */
    float *clip, *weights, *at, *color; /* [v, 4]; [h, w, 3]; [h, w, ATTRIBUTES]; [h, w, 3] */
    int32_t *indices;
};

static bool draw_mesh(const struct scene *s, fel_context *ctx, const struct camera *c, struct frame *fr)
{
    const float aspect = (float)fr->width / (float)fr->height,
                near = fmaxf(c->distance - 1.2F * s->radius, 1e-3F * s->radius),
                far = c->distance + 1.2F * s->radius;
    const float fit = aspect < 1 ? 1 / aspect : 1; /* a narrow picture must hold the sphere too */
    for (int64_t i = 0; i < s->vertices; i++) {
        float p[3];
        see(s, c, s->positions + 3 * i, p);
        float *clip = fr->clip + 4 * i;
        clip[0] = p[0] / (c->scale * aspect * fit);
        clip[1] = -p[1] / (c->scale * fit); /* row 0 is on top */
        clip[2] = (p[2] * (far + near) - 2 * far * near) / (far - near);
        clip[3] = p[2];
    }
    int64_t vertex_shape[2] = {s->vertices, 4}, face_shape[2] = {s->face_count, 3},
            image[2] = {fr->height, fr->width}, weight_shape[3] = {fr->height, fr->width, 3},
            attribute_shape[2] = {s->vertices, ATTRIBUTES}, at_shape[3] = {fr->height, fr->width, ATTRIBUTES};
    DLTensor clip = tensor(fr->clip, kDLFloat, 2, vertex_shape),
             faces = tensor(s->faces, kDLInt, 2, face_shape), indices = tensor(fr->indices, kDLInt, 2, image),
             weights = tensor(fr->weights, kDLFloat, 3, weight_shape),
             attributes = tensor(s->attributes, kDLFloat, 2, attribute_shape),
             at = tensor(fr->at, kDLFloat, 3, at_shape);
    return !fel_bake_view(ctx, &clip, &faces, NULL, &indices, &weights) &&
           !fel_bake_interpolate(ctx, &attributes, &faces, NULL, &indices, &weights, &at);
}

static void color_pixels(const struct scene *s, const struct camera *c, struct frame *fr)
{
    for (int y = 0; y < fr->height; y++)
        for (int x = 0; x < fr->width; x++) {
            const int64_t i = (int64_t)y * fr->width + x;
            float *color = fr->color + 3 * i;
            if (fr->indices[i])
                shade(s, c, fr->indices[i] - 1, fr->at + ATTRIBUTES * i, color);
            else
                backdrop(y, fr->height, color);
        }
}

struct disc {
    float x, y, depth, radius; /* pixels */
    int64_t index;
};

static int by_depth(const void *a, const void *b)
{
    const struct disc *x = a, *y = b;
    if (x->depth > y->depth || x->depth < y->depth)
        return x->depth > y->depth ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static void blend_disc(struct frame *fr, const struct disc *d, const float color[3], float opacity)
{
    const float reach = 3 * d->radius;
    const int x0 = (int)fmaxf(0, floorf(d->x - reach)),
              x1 = (int)fminf((float)fr->width - 1, ceilf(d->x + reach)),
              y0 = (int)fmaxf(0, floorf(d->y - reach)),
              y1 = (int)fminf((float)fr->height - 1, ceilf(d->y + reach));
    for (int y = y0; y <= y1; y++)
        for (int x = x0; x <= x1; x++) {
            const float dx = ((float)x - d->x) / d->radius, dy = ((float)y - d->y) / d->radius;
            const float alpha = opacity * expf(-0.5F * (dx * dx + dy * dy));
            float *to = fr->color + 3 * ((int64_t)y * fr->width + x);
            for (int k = 0; k < 3 && alpha > 1.0F / 255; k++)
                to[k] += alpha * (color[k] - to[k]);
        }
}

/* Each gaussian as a round disc of the mean of its three scales: enough to see what is there. */
static bool draw_gaussians(const struct scene *s, const struct camera *c, struct frame *fr)
{
    const struct fel_gaussians *g = s->asset->gaussians;
    const int64_t k_count = (int64_t)(g->sh_degree + 1) * (g->sh_degree + 1);
    struct disc *discs = arena_array(s->a, struct disc, (size_t)g->count + 1);
    if (!discs)
        return false;
    for (int y = 0; y < fr->height; y++)
        for (int x = 0; x < fr->width; x++)
            backdrop(y, fr->height, fr->color + 3 * ((int64_t)y * fr->width + x));
    const float focal = (float)(fr->width < fr->height ? fr->width : fr->height) / (2 * c->scale);
    size_t count = 0;
    for (int64_t i = 0; i < g->count; i++) {
        float p[3];
        see(s, c, g->positions + 3 * i, p);
        const float *l = g->log_scales + 3 * i, size = expf((l[0] + l[1] + l[2]) / 3);
        if (!(p[2] > 0.05F * c->distance) || !isfinite(p[0] + p[1] + p[2] + size))
            continue;
        discs[count++] = (struct disc){.x = (float)fr->width / 2 + focal * p[0] / p[2],
                                       .y = (float)fr->height / 2 - focal * p[1] / p[2],
                                       .depth = p[2],
                                       .radius = fminf(fmaxf(focal * size / p[2], 0.5F), (float)fr->height),
                                       .index = i};
    }
    qsort(discs, count, sizeof *discs, by_depth);
    for (size_t i = 0; i < count; i++) {
        float color[3];
        for (int k = 0; k < 3; k++)
            color[k] =
                to_linear(fminf(fmaxf(0.5F + 0.28209479F * g->sh[3 * k_count * discs[i].index + k], 0), 1));
        blend_disc(fr, discs + i, color, 1 / (1 + expf(-g->logits[discs[i].index])));
    }
    return true;
}

/* Averages the oversampled frame into its place in the picture. */
static void average(const struct frame *fr, uint8_t *out, int stride)
{
    for (int64_t y = 0; y < fr->height / OVERSAMPLE; y++)
        for (int64_t x = 0; x < fr->width / OVERSAMPLE; x++)
            for (int k = 0; k < 3; k++) {
                float sum = 0;
                for (int64_t i = 0; i < OVERSAMPLE_AREA; i++) {
                    const int64_t row = y * OVERSAMPLE + i / OVERSAMPLE,
                                  column = x * OVERSAMPLE + i % OVERSAMPLE;
                    sum += fr->color[3 * (row * fr->width + column) + k];
                }
                out[y * stride + 3 * x + k] = to_srgb(sum / OVERSAMPLE_AREA);
            }
}

static bool draw_frames(struct scene *s, const struct render_options *o, uint8_t *pixels, int columns)
{
    const size_t area = (size_t)o->width * (size_t)o->height * OVERSAMPLE * OVERSAMPLE;
    struct frame fr = {.width = o->width * OVERSAMPLE,
                       .height = o->height * OVERSAMPLE,
                       .clip = arena_array(s->a, float, 4 * (size_t)s->vertices + 1),
                       .weights = arena_array(s->a, float, 3 * area),
                       .at = arena_array(s->a, float, ATTRIBUTES *area),
                       .color = arena_array(s->a, float, 3 * area),
                       .indices = arena_array(s->a, int32_t, area)};
    fel_context *ctx = NULL;
    bool good = fr.clip && fr.weights && fr.at && fr.color && fr.indices && !fel_context_create(NULL, &ctx);
    for (int i = 0; i < o->frames && good && !interrupted(); i++) {
        const struct camera c = camera_at(s, o->yaw + 360.0 * i / o->frames, o->pitch);
        if (s->asset->gaussians) {
            good = draw_gaussians(s, &c, &fr);
        } else {
            good = draw_mesh(s, ctx, &c, &fr);
            if (good)
                color_pixels(s, &c, &fr);
        }
        const int64_t frame_size = 3 * (int64_t)o->width * o->height;
        if (o->grid)
            average(&fr, pixels + i / columns * frame_size * columns + (int64_t)(i % columns) * 3 * o->width,
                    3 * o->width * columns);
        else
            average(&fr, pixels + i * frame_size, 3 * o->width);
    }
    fel_context_free(ctx);
    return good;
}

bool model_render(arena *a, str path, const fel_asset *asset, const struct render_options *o, span *png,
                  findings *f)
{
    struct scene s = {.a = a, .asset = asset};
    const struct place place = {.file = path};
    const int columns = o->grid ? (int)ceil(sqrt(o->frames)) : 1,
              rows = o->grid ? (o->frames + columns - 1) / columns : 1;
    const int cells = o->grid ? columns * rows : o->frames;
    uint8_t *pixels = arena_array(a, uint8_t, (size_t)cells * 3 * (size_t)o->width * (size_t)o->height);
    if (!pixels || !gather(&s) || !decode_textures(&s, path, f))
        return finding_fatal(f, 3, F006, place, "%d pictures of %d x %d are too much", o->frames, o->width,
                             o->height);
    find_bounds(&s);
    const bool drawn = draw_frames(&s, o, pixels, columns);
    for (int64_t i = 0; i < asset->picture_count; i++)
        fel_png_free(s.textures[i].pixels);
    uint8_t *bytes = NULL;
    size_t size = 0;
    if (!drawn || fel_png_encode(pixels, o->width * columns, o->height * rows, 3, o->grid ? 1 : o->frames,
                                 o->delay_ms, &bytes, &size))
        return finding_fatal(f, 3, F006, place, "the picture could not be made: %s", fel_last_error());
    uint8_t *copy = arena_array(a, uint8_t, size);
    if (copy)
        memcpy(copy, bytes, size);
    fel_png_free(bytes);
    *png = (span){copy, size};
    return copy || finding_fatal(f, 3, F006, place, "the picture is too large");
}
