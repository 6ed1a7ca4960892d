/* asset/glb_write.c: an asset as one GLB. The JSON is made first, since the header needs its length; then the arrays
 * go straight from the caller's memory to the file. One buffer view and one accessor an array: what a viewer streams
 * fastest, and what keeps every offset a multiple of four. */
#include "asset/asset.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
    char *bytes;
    size_t size, room;
    bool failed;
};

static void add_bytes(struct text *t, const char *bytes, size_t size)
{
    if (t->failed)
        return;
    if (size > t->room - t->size) {
        const size_t room = (t->room + size) * 2;
        char *larger = realloc(t->bytes, room);
        if (!larger) {
            t->failed = true;
            return;
        }
        t->bytes = larger;
        t->room = room;
    }
    memcpy(t->bytes + t->size, bytes, size);
    t->size += size;
}

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
add(struct text *t, const char *format, ...)
{
    char piece[512]; /* the longest format below, with its numbers, is under 300 */
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(piece, sizeof piece, format, arguments);
    va_end(arguments);
    add_bytes(t, piece, length < 0 ? 0 : (size_t)length);
}

static void add_float(struct text *t, float value)
{
    char number[40];
    add_bytes(t, number, float_print(number, value));
}

static void add_floats(struct text *t, const char *name, const float *values, int count)
{
    add(t, "\"%s\":[", name);
    for (int i = 0; i < count; i++) {
        if (i)
            add(t, ",");
        add_float(t, values[i]);
    }
    add(t, "]");
}

static void add_quoted(struct text *t, const char *text)
{
    add(t, "\"");
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            add(t, "\\%c", c);
        else if (c < 0x20)
            add(t, "\\u%04x", (unsigned)c);
        else
            add_bytes(t, text, 1);
    }
    add(t, "\"");
}

struct part { /* of the BIN chunk: one array, padded to four bytes */
    const void *bytes;
    uint64_t size;
    int kind;
    int64_t count;
};
enum { PART_RAW, PART_NORMALS, PART_COLOR_BYTES };

struct glb_out {
    const fel_asset *asset;
    struct text views, accessors, meshes, nodes;
    struct part *parts;
    size_t part_count;
    uint64_t at; /* of the next part in the BIN chunk */
    int64_t accessor_count, mesh_count;
};

static int64_t add_part(struct glb_out *g, const void *bytes, uint64_t size, int kind, int64_t count,
                        int target)
{
    add(&g->views, "%s{\"buffer\":0,\"byteOffset\":%" PRIu64 ",\"byteLength\":%" PRIu64,
        g->part_count ? "," : "", g->at, size);
    if (target)
        add(&g->views, ",\"target\":%d", target);
    add(&g->views, "}");
    g->parts[g->part_count] = (struct part){bytes, size, kind, count};
    g->at += (size + 3) & ~UINT64_C(3);
    return (int64_t)g->part_count++;
}

static int64_t add_accessor(struct glb_out *g, int64_t view, int component, bool normalized, int64_t count,
                            const char *type)
{
    add(&g->accessors,
        "%s{\"bufferView\":%" PRId64 ",\"componentType\":%d,\"count\":%" PRId64 ",\"type\":\"%s\"%s",
        g->accessor_count ? "," : "", view, component, count, type, normalized ? ",\"normalized\":true" : "");
    return g->accessor_count++;
}

/* Colours that came from 8 bits go back to 8 bits. */
static bool colors_fit_bytes(const struct fel_mesh *m)
{
    for (int64_t i = 0; i < 4 * m->vertex_count; i++) {
        const float scaled = roundf(m->colors[i] * 255.0F);
        if (!(scaled >= 0 && scaled <= 255) ||
            scaled / 255.0F != m->colors[i]) // NOLINT: exactness is the question
            return false;
    }
    return true;
}

static void add_mesh(struct glb_out *g, const struct fel_mesh *m)
{
    const uint64_t v = (uint64_t)m->vertex_count;
    float low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (int64_t i = 0; i < m->vertex_count; i++)
        for (int k = 0; k < 3; k++) {
            low[k] = fminf(low[k], m->positions[3 * i + k]);
            high[k] = fmaxf(high[k], m->positions[3 * i + k]);
        }
    int64_t view = add_part(g, m->positions, v * 12, PART_RAW, 0, 34962);
    const int64_t position = add_accessor(g, view, 5126, false, m->vertex_count, "VEC3");
    add(&g->accessors, ",");
    add_floats(&g->accessors, "min", low, 3);
    add(&g->accessors, ",");
    add_floats(&g->accessors, "max", high, 3);
    add(&g->accessors, "}");
    add(&g->meshes, "%s{", g->mesh_count ? "," : "");
    if (m->name) {
        add(&g->meshes, "\"name\":");
        add_quoted(&g->meshes, m->name);
        add(&g->meshes, ",");
    }
    add(&g->meshes, "\"primitives\":[{\"attributes\":{\"POSITION\":%" PRId64, position);
    if (m->normals) {
        view = add_part(g, m->normals, v * 12, PART_NORMALS, m->vertex_count, 34962);
        add(&g->meshes, ",\"NORMAL\":%" PRId64, add_accessor(g, view, 5126, false, m->vertex_count, "VEC3"));
        add(&g->accessors, "}");
    }
    if (m->uvs) {
        view = add_part(g, m->uvs, v * 8, PART_RAW, 0, 34962);
        add(&g->meshes, ",\"TEXCOORD_0\":%" PRId64,
            add_accessor(g, view, 5126, false, m->vertex_count, "VEC2"));
        add(&g->accessors, "}");
    }
    if (m->colors) {
        const bool bytes = colors_fit_bytes(m);
        view = add_part(g, m->colors, v * (bytes ? 4 : 16), bytes ? PART_COLOR_BYTES : PART_RAW,
                        m->vertex_count, 34962);
        add(&g->meshes, ",\"COLOR_0\":%" PRId64,
            add_accessor(g, view, bytes ? 5121 : 5126, bytes, m->vertex_count, "VEC4"));
        add(&g->accessors, "}");
    }
    view = add_part(g, m->faces, (uint64_t)m->face_count * 12, PART_RAW, 0, 34963);
    add(&g->meshes, "},\"indices\":%" PRId64,
        add_accessor(g, view, 5125, false, 3 * m->face_count, "SCALAR"));
    add(&g->accessors, "}");
    if (m->material >= 0)
        add(&g->meshes, ",\"material\":%d", m->material);
    add(&g->meshes, "}]}");
    add(&g->nodes, "%s{\"mesh\":%" PRId64 "}", g->mesh_count ? "," : "", g->mesh_count);
    g->mesh_count++;
}

/* Textures are numbered as their pictures; pictures that are not there are left out, so they are renumbered. */
static int64_t texture_number(const fel_asset *asset, int32_t picture)
{
    if (picture < 0 || !asset->pictures[picture].bytes)
        return -1;
    int64_t number = 0;
    for (int32_t i = 0; i < picture; i++)
        number += asset->pictures[i].bytes != NULL;
    return number;
}

static void add_texture(struct text *t, const fel_asset *asset, const char *name, int32_t picture)
{
    const int64_t number = texture_number(asset, picture);
    if (number >= 0)
        add(t, ",\"%s\":{\"index\":%" PRId64 "}", name, number);
}

static void add_material(struct text *t, const fel_asset *asset, const struct fel_material *m)
{
    static const char *const modes[] = {"OPAQUE", "MASK", "BLEND"};
    add(t, "{");
    if (m->name) {
        add(t, "\"name\":");
        add_quoted(t, m->name);
        add(t, ",");
    }
    add(t, "\"pbrMetallicRoughness\":{");
    add_floats(t, "baseColorFactor", m->base_color, 4);
    add(t, ",\"metallicFactor\":");
    add_float(t, m->metallic);
    add(t, ",\"roughnessFactor\":");
    add_float(t, m->roughness);
    add_texture(t, asset, "baseColorTexture", m->base_color_texture);
    add_texture(t, asset, "metallicRoughnessTexture", m->metallic_roughness_texture);
    add(t, "}");
    if (m->emissive[0] > 0 || m->emissive[1] > 0 || m->emissive[2] > 0) {
        add(t, ",");
        add_floats(t, "emissiveFactor", m->emissive, 3);
    }
    add_texture(t, asset, "normalTexture", m->normal_texture);
    add_texture(t, asset, "occlusionTexture", m->occlusion_texture);
    add_texture(t, asset, "emissiveTexture", m->emissive_texture);
    if (m->alpha_mode)
        add(t, ",\"alphaMode\":\"%s\"", modes[m->alpha_mode]);
    if (m->alpha_mode == 1) { /* glTF allows a cutoff only with MASK */
        add(t, ",\"alphaCutoff\":");
        add_float(t, m->alpha_cutoff);
    }
    add(t, "%s}", m->double_sided ? ",\"doubleSided\":true" : "");
}

static void add_list(struct text *t, const char *name, struct text *items)
{
    if (items->size) {
        add(t, ",\"%s\":[", name);
        add_bytes(t, items->bytes, items->size);
        add(t, "]");
    }
    t->failed = t->failed || items->failed;
    free(items->bytes);
    *items = (struct text){0};
}

static void add_pictures(struct glb_out *g, struct text *images, struct text *textures)
{
    for (int64_t i = 0, number = 0; i < g->asset->picture_count; i++) {
        const struct fel_picture *p = g->asset->pictures + i;
        if (!p->bytes)
            continue;
        const int64_t view = add_part(g, p->bytes, (uint64_t)p->size, PART_RAW, 0, 0);
        const bool jpeg = p->size > 2 && p->bytes[0] == 0xFF && p->bytes[1] == 0xD8;
        add(images, "%s{\"bufferView\":%" PRId64 ",\"mimeType\":", number ? "," : "", view);
        add_quoted(images, p->mime ? p->mime : jpeg ? "image/jpeg" : "image/png");
        if (p->name) {
            add(images, ",\"name\":");
            add_quoted(images, p->name);
        }
        add(images, "}");
        add(textures, "%s{\"sampler\":0,\"source\":%" PRId64 "}", number ? "," : "", number);
        number++;
    }
}

static struct text make_json(struct glb_out *g)
{
    const fel_asset *asset = g->asset;
    struct text images = {0}, textures = {0}, materials = {0}, json = {0};
    for (int64_t i = 0; i < asset->mesh_count; i++)
        if (asset->meshes[i].vertex_count && asset->meshes[i].face_count)
            add_mesh(g, asset->meshes + i);
    add_pictures(g, &images, &textures);
    for (int64_t i = 0; i < asset->material_count; i++) {
        if (i)
            add(&materials, ",");
        add_material(&materials, asset, asset->materials + i);
    }
    const bool pictures = images.size > 0;
    add(&json, "{\"asset\":{\"version\":\"2.0\",\"generator\":\"felloe\"},\"scene\":0,\"scenes\":[{");
    if (g->mesh_count) {
        add(&json, "\"nodes\":[");
        for (int64_t i = 0; i < g->mesh_count; i++)
            add(&json, "%s%" PRId64, i ? "," : "", i);
        add(&json, "]");
    }
    add(&json, "}]");
    add_list(&json, "nodes", &g->nodes);
    add_list(&json, "meshes", &g->meshes);
    add_list(&json, "materials", &materials);
    add_list(&json, "textures", &textures);
    add_list(&json, "images", &images);
    if (pictures) /* trilinear, repeating: what a viewer does by itself, said so that all do the same */
        add(&json, ",\"samplers\":[{\"magFilter\":9729,\"minFilter\":9987,\"wrapS\":10497,\"wrapT\":10497}]");
    add_list(&json, "accessors", &g->accessors);
    add_list(&json, "bufferViews", &g->views);
    if (g->at)
        add(&json, ",\"buffers\":[{\"byteLength\":%" PRIu64 "}]", g->at);
    add(&json, "}");
    while (json.size % 4 && !json.failed)
        add(&json, " ");
    return json;
}

static void put_normals(struct output *o, const float *normals, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const float *n = normals + 3 * i;
        const float square = n[0] * n[0] + n[1] * n[1] + n[2] * n[2];
        if (square > 0.999F && square < 1.001F) { /* as it is, so that it comes back bit for bit */
            for (int k = 0; k < 3; k++)
                output_f32le(o, n[k]);
            continue;
        }
        const bool usable = square > 0 && square < INFINITY;
        const float scale = usable ? 1.0F / sqrtf(square) : 0.0F;
        for (int k = 0; k < 3; k++)
            output_f32le(o, usable ? n[k] * scale : k == 2 ? 1.0F : 0.0F);
    }
}

static void put_part(struct output *o, const struct part *p)
{
    static const uint8_t zeros[4] = {0};
    if (p->kind == PART_NORMALS) {
        put_normals(o, p->bytes, p->count);
    } else if (p->kind == PART_COLOR_BYTES) {
        const float *colors = p->bytes;
        for (int64_t i = 0; i < 4 * p->count; i++)
            output_bytes(o, &(uint8_t){(uint8_t)lroundf(colors[i] * 255.0F)}, 1);
    } else {
        output_bytes(o, p->bytes, (size_t)p->size); /* the host is little-endian: see asset.h */
    }
    output_bytes(o, zeros, (size_t)((4 - p->size % 4) % 4));
}

fel_status glb_write(struct output *o, const fel_asset *asset)
{
    struct glb_out g = {.asset = asset};
    g.parts = calloc((size_t)(5 * asset->mesh_count + asset->picture_count) + 1, sizeof *g.parts);
    if (!g.parts)
        return status_fail(FEL_OUT_OF_MEMORY, "a list of %" PRId64 " meshes could not be allocated",
                           asset->mesh_count);
    struct text json = make_json(&g);
    fel_status status = FEL_OK;
    const uint64_t total = 12 + 8 + (uint64_t)json.size + (g.at ? 8 + g.at : 0);
    if (json.failed) {
        status = status_fail(FEL_OUT_OF_MEMORY, "the JSON chunk could not be allocated");
    } else if (total > UINT32_MAX) {
        status = status_fail(FEL_INVALID_ARGUMENT, "expected at most 2^32 - 1 bytes in a GLB, got %" PRIu64,
                             total);
    } else {
        output_u32le(o, 0x46546C67);
        output_u32le(o, 2);
        output_u32le(o, (uint32_t)total);
        output_u32le(o, (uint32_t)json.size);
        output_u32le(o, 0x4E4F534A);
        output_bytes(o, json.bytes, json.size);
        if (g.at) {
            output_u32le(o, (uint32_t)g.at);
            output_u32le(o, 0x004E4942);
        }
        for (size_t i = 0; i < g.part_count; i++)
            put_part(o, g.parts + i);
    }
    free(json.bytes);
    free(g.parts);
    return status;
}
