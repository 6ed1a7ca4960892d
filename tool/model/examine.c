/* model/examine.c: facts about an asset and what is suspicious about them. */
#include "model/model.h"

#include <felloe/felloe.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* The library's message without the path that it begins with: findings show the place themselves. */
static str message_without(str path)
{
    str message = str_from(fel_last_error());
    if (str_starts(message, path) && message.n > path.n + 1)
        message = str_trim(str_from_index(message, path.n + 1));
    return message;
}

static bool looks_like(str path, const uint8_t *head, size_t size, const char **what)
{
    static const struct {
        const char *suffix, *magic;
    } magics[] = {{".glb", "glTF"}, {".ply", "ply"}};
    static const struct {
        const char *start, *what;
    } others[] = {{"<!DOCTYPE", "an HTML page"},
                  {"<html", "an HTML page"},
                  {"version https://git-lfs", "a pointer of Git LFS"},
                  {"PK\x03\x04", "a zip archive"},
                  {"glTF", "a GLB"},
                  {"ply\n", "a PLY"},
                  {"{", "JSON text"}};
    *what = "something else";
    bool wrong = false;
    for (size_t i = 0; i < COUNT(magics); i++) {
        const size_t n = strlen(magics[i].magic);
        if (str_ends(path, str_from(magics[i].suffix)))
            wrong = size < n || memcmp(head, magics[i].magic, n) != 0;
    }
    for (size_t i = 0; i < COUNT(others); i++) {
        const size_t n = strlen(others[i].start);
        if (size < n || memcmp(head, others[i].start, n) != 0)
            continue;
        *what = others[i].what;
        wrong = wrong || i < 4;
    }
    return !wrong;
}

fel_asset *model_open(arena *a, str path, findings *f)
{
    fel_asset *asset = NULL;
    const fel_status status = fel_asset_read(str_c(a, path), NULL, &asset);
    if (!status)
        return asset;
    const struct place place = {.file = path};
    const str message = message_without(path);
    span bytes;
    const char *what;
    if (status == FEL_IO) {
        (void)finding_fatal(f, 3, F001, place, "%.*s", STR_ARG(message));
    } else if (file_map(path, UINT64_MAX, &bytes, f)) {
        const bool fits = looks_like(path, bytes.p, bytes.n, &what);
        file_unmap(bytes);
        if (fits)
            (void)finding_fatal(f, 3, F601, place, "%.*s", STR_ARG(message));
        else
            (void)finding_fatal(f, 3, F611, place, "the file is %s", what);
    }
    return NULL;
}

/* ---- facts */

struct edge {
    uint32_t low, high;
};

static int by_edge(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    if (x->low != y->low)
        return x->low < y->low ? -1 : 1;
    return (x->high > y->high) - (x->high < y->high);
}

struct corner {
    float p[3];
    uint32_t index;
};

static int by_position(const void *a, const void *b)
{
    const struct corner *x = a, *y = b;
    for (int k = 0; k < 3; k++)
        if (x->p[k] < y->p[k] || x->p[k] > y->p[k])
            return x->p[k] < y->p[k] ? -1 : 1;
    return 0;
}

/* One number for all vertices at one place, over all meshes: a texture's seam is no border. */
static bool weld(arena *a, const fel_asset *asset, int64_t count, uint32_t **places)
{
    struct corner *corners = arena_array(a, struct corner, (size_t)count + 1);
    *places = arena_array(a, uint32_t, (size_t)count + 1);
    if (!corners || !*places)
        return false;
    uint32_t next = 0;
    for (int64_t m = 0; m < asset->mesh_count; m++)
        for (int64_t v = 0; v < asset->meshes[m].vertex_count; v++, next++) {
            memcpy(corners[next].p, asset->meshes[m].positions + 3 * v, sizeof corners[next].p);
            corners[next].index = next;
        }
    qsort(corners, next, sizeof *corners, by_position);
    for (uint32_t i = 0, place = 0; i < next; i++) {
        if (i && by_position(corners + i - 1, corners + i) != 0)
            place = i;
        (*places)[corners[i].index] = place;
    }
    return true;
}

static bool count_edges(arena *a, const fel_asset *asset, struct model_facts *out)
{
    uint32_t *places;
    struct edge *edges = arena_array(a, struct edge, 3 * (size_t)out->faces + 1);
    if (!edges || !weld(a, asset, out->vertices, &places))
        return false;
    size_t count = 0;
    uint32_t first = 0;
    for (int64_t m = 0; m < asset->mesh_count; first += (uint32_t)asset->meshes[m].vertex_count, m++) {
        const struct fel_mesh *mesh = asset->meshes + m;
        for (int64_t f = 0; f < mesh->face_count; f++) {
            uint32_t p[3];
            for (int k = 0; k < 3; k++)
                p[k] = places[first + (uint32_t)mesh->faces[3 * f + k]];
            if (p[0] == p[1] || p[1] == p[2] || p[2] == p[0])
                continue; /* counted as flat, and no neighbour of anything */
            for (int k = 0; k < 3; k++) {
                const uint32_t u = p[k], w = p[(k + 1) % 3];
                edges[count++] = (struct edge){u < w ? u : w, u < w ? w : u};
            }
        }
    }
    qsort(edges, count, sizeof *edges, by_edge);
    for (size_t i = 0; i < count;) {
        size_t same = 1;
        while (i + same < count && by_edge(edges + i, edges + i + same) == 0)
            same++;
        out->border_edges += same == 1;
        out->shared_edges += same > 2;
        i += same;
    }
    return true;
}

static void measure(const fel_asset *asset, struct model_facts *out)
{
    const double shift[3] = {(double)out->low[0], (double)out->low[1], (double)out->low[2]};
    for (int64_t m = 0; m < asset->mesh_count; m++) {
        const struct fel_mesh *mesh = asset->meshes + m;
        for (int64_t f = 0; f < mesh->face_count; f++) {
            double p[3][3], n[3];
            for (int i = 0; i < 9; i++)
                p[i / 3][i % 3] =
                    (double)mesh->positions[3 * (int64_t)mesh->faces[3 * f + i / 3] + i % 3] - shift[i % 3];
            for (int k = 0; k < 3; k++) {
                const int u = (k + 1) % 3, v = (k + 2) % 3;
                n[k] = (p[1][u] - p[0][u]) * (p[2][v] - p[0][v]) - (p[1][v] - p[0][v]) * (p[2][u] - p[0][u]);
            }
            const double twice = sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
            out->flat_faces += !(twice > 0);
            out->area += twice / 2;
            out->volume += (p[0][0] * n[0] + p[0][1] * n[1] + p[0][2] * n[2]) / 6;
        }
    }
}

static void grow_bounds(struct model_facts *out, const float *positions, int64_t count, int64_t *bad)
{
    for (int64_t i = 0; i < count; i++) {
        const float *p = positions + 3 * i;
        if (!isfinite(p[0]) || !isfinite(p[1]) || !isfinite(p[2])) {
            ++*bad;
            continue;
        }
        for (int k = 0; k < 3; k++) {
            out->low[k] = fminf(out->low[k], p[k]);
            out->high[k] = fmaxf(out->high[k], p[k]);
        }
    }
}

/* ---- findings */

static double percent(int64_t part, int64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void check_textures(const fel_asset *asset, struct place place, findings *f)
{
    for (int64_t i = 0; i < asset->picture_count; i++)
        if (!asset->pictures[i].bytes)
            (void)finding_at(f, F609, place, str_from(asset->pictures[i].name),
                             "picture %" PRId64 " is not there", i + 1);
}

static void check_uvs(const fel_asset *asset, struct place place, findings *f)
{
    int64_t outside = 0, count = 0;
    for (int64_t m = 0; m < asset->mesh_count; m++) {
        const struct fel_mesh *mesh = asset->meshes + m;
        for (int64_t i = 0; mesh->uvs && i < mesh->vertex_count; i++, count++) {
            const float u = mesh->uvs[2 * i], v = mesh->uvs[2 * i + 1];
            outside += !(u >= -1e-4F && u <= 1.0001F && v >= -1e-4F && v <= 1.0001F);
        }
    }
    if (outside)
        (void)finding_at(f, F606, place, (str){0},
                         "%" PRId64 " of %" PRId64 " texture coordinates (%.1f %%) lie outside 0..1", outside,
                         count, percent(outside, count));
}

/* Standing on z = 0, centred along y, and taller than deep: how an object with z up looks. */
static bool lies_on_its_side(const struct model_facts *x)
{
    const double height = (double)(x->high[2] - x->low[2]), depth = (double)(x->high[1] - x->low[1]);
    const double middle = (double)(x->high[1] + x->low[1]) / 2;
    return height > 1.2 * depth && fabs((double)x->low[2]) < 0.02 * height && fabs(middle) < 0.05 * depth;
}

static void check_mesh(const struct model_facts *x, struct place place, findings *f)
{
    const fel_asset *asset = x->asset;
    if (x->flat_faces)
        (void)finding_at(f, F612, place, (str){0}, "%" PRId64 " of %" PRId64 " faces (%.1f %%) have no area",
                         x->flat_faces, x->faces, percent(x->flat_faces, x->faces));
    if (x->shared_edges)
        (void)finding_at(f, F607, place, (str){0}, "%" PRId64 " edges (%.2f %%) have more than two faces",
                         x->shared_edges, percent(2 * x->shared_edges, 3 * x->faces));
    if (!x->border_edges && x->volume < 0)
        (void)finding_at(f, F604, place, (str){0}, "the volume inside the closed surface is %g", x->volume);
    if (!x->has_normals && asset->format != FEL_ASSET_STL)
        (void)finding_at(f, F605, place, (str){0}, "no mesh has vertex normals");
    if (asset->format == FEL_ASSET_GLB && lies_on_its_side(x))
        (void)finding_at(f, F608, place, (str){0}, "it stands on z = 0, %.3g along z, %.3g along y",
                         (double)(x->high[2] - x->low[2]), (double)(x->high[1] - x->low[1]));
    check_uvs(asset, place, f);
}

bool model_examine(arena *a, str path, const fel_asset *asset, struct model_facts *out, findings *f)
{
    static const char *const names[] = {"unknown", "GLB", "OBJ", "PLY", "STL", "splat"};
    const struct place place = {.file = path};
    struct model_facts x = {.path = path,
                            .asset = asset,
                            .format = str_from(names[asset->format]),
                            .low = {INFINITY, INFINITY, INFINITY},
                            .high = {-INFINITY, -INFINITY, -INFINITY}};
    int64_t bad = 0;
    for (int64_t m = 0; m < asset->mesh_count; m++) {
        const struct fel_mesh *mesh = asset->meshes + m;
        x.vertices += mesh->vertex_count;
        x.faces += mesh->face_count;
        x.has_normals = x.has_normals || mesh->normals;
        x.has_uvs = x.has_uvs || mesh->uvs;
        x.has_colors = x.has_colors || mesh->colors;
        grow_bounds(&x, mesh->positions, mesh->vertex_count, &bad);
    }
    if (asset->gaussians) {
        x.gaussians = asset->gaussians->count;
        grow_bounds(&x, asset->gaussians->positions, x.gaussians, &bad);
    }
    if (!(x.low[0] <= x.high[0]))
        memset(x.low, 0, sizeof x.low), memset(x.high, 0, sizeof x.high);
    if (!x.faces && !x.gaussians)
        (void)finding_at(f, F602, place, (str){0}, "no triangles and no gaussians in it");
    if (bad)
        (void)finding_at(f, F603, place, (str){0}, "%" PRId64 " positions are NaN or infinite", bad);
    if (asset->gaussians && x.gaussians && x.gaussians < 1000)
        (void)finding_at(f, F610, place, (str){0}, "only %" PRId64 " gaussians", x.gaussians);
    check_textures(asset, place, f);
    if (x.faces && !bad) {
        if (x.vertices > UINT32_MAX || !count_edges(a, asset, &x))
            return finding_fatal(f, 3, F006, place, "the mesh is too large to examine");
        measure(asset, &x);
        check_mesh(&x, place, f);
    }
    *out = x;
    return true;
}
