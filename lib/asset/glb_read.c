/* asset/glb_read.c: glTF 2.0 in its binary container (Khronos glTF 2.0, sections 3 and 4).
 *
 * Buffer views and accessors are parsed and checked once, up front; then the scene's nodes are walked and every
 * triangle primitive becomes a mesh in world space. Data outside the file (other buffers) and sparse accessors are
 * refused; a picture outside the file is kept by name. */
#include "asset/asset.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    MAGIC_GLTF = 0x46546C67,
    CHUNK_JSON = 0x4E4F534A,
    CHUNK_BIN = 0x004E4942,
    COMPONENT_BYTE = 5120,
    COMPONENT_UBYTE = 5121,
    COMPONENT_SHORT = 5122,
    COMPONENT_USHORT = 5123,
    COMPONENT_UINT = 5125,
    COMPONENT_FLOAT = 5126,
    MODE_TRIANGLES = 4,
    MODE_STRIP = 5,
    MODE_FAN = 6,
    MAX_NODE_DEPTH = 64,
    MAX_PRIMITIVES = 1 << 20 /* that a scene may show, meshes used several times counted as often */
};

struct view {
    uint64_t offset, size; /* in the file */
    uint32_t stride;       /* 0: packed */
};

struct accessor {
    uint64_t offset, count, stride; /* in the file */
    int32_t type;                   /* COMPONENT_ */
    uint32_t components;
    bool normalized, has_data;
    uint64_t place; /* of its JSON, for messages */
};

struct glb {
    struct reader *reader;
    struct json json;
    uint64_t bin_offset, bin_size;
    struct view *views;
    struct accessor *accessors;
    const struct json_node **meshes, **nodes;
    size_t view_count, accessor_count, mesh_count, node_count;
    struct list out; /* struct fel_mesh */
    int64_t material_count, shown, skipped;
};

static uint64_t place(const struct glb *g, const struct json_node *n)
{
    return g->json.offset + (n ? n->start : 0);
}

static const struct json_node *member(const struct glb *g, const struct json_node *n, const char *name)
{
    return json_member(&g->json, n, name);
}

static bool index_of(struct glb *g, const struct json_node *n, const char *name, uint64_t limit,
                     int64_t *value)
{
    return json_index(g->reader, &g->json, member(g, n, name), name, limit, value);
}

/* ---- container */

static bool read_container(struct glb *g)
{
    struct reader *r = g->reader;
    uint8_t header[20];
    if (!source_read(r, 0, header, sizeof header))
        return false;
    if (get_u32le(header) != MAGIC_GLTF)
        return reader_fail(r, 0, "expected the magic 'glTF'");
    if (get_u32le(header + 4) != 2)
        return reader_fail(r, 4, "expected glTF version 2, got %" PRIu32, get_u32le(header + 4));
    const uint64_t length = get_u32le(header + 8);
    if (length > r->source->size)
        return reader_fail(r, 8, "the header says %" PRIu64 " bytes, the file has %" PRIu64, length,
                           r->source->size);
    const uint32_t json_size = get_u32le(header + 12);
    if (get_u32le(header + 16) != CHUNK_JSON)
        return reader_fail(r, 16, "expected a JSON chunk first");
    if (length < sizeof header || json_size > length - sizeof header)
        return reader_fail(r, 12, "the JSON chunk ends past the file");
    char *text = memory_array(&r->memory, (size_t)json_size + 1, 1);
    if (!text)
        return reader_out_of_memory(r);
    if (!source_read(r, sizeof header, text, json_size) ||
        !json_parse(r, text, json_size, sizeof header, &g->json))
        return false;
    uint64_t at = sizeof header + (uint64_t)json_size;
    at = (at + 3) & ~UINT64_C(3);
    if (at + 8 <= length) {
        uint8_t chunk[8];
        if (!source_read(r, at, chunk, sizeof chunk))
            return false;
        if (get_u32le(chunk + 4) == CHUNK_BIN) {
            g->bin_offset = at + 8;
            g->bin_size = get_u32le(chunk);
            if (g->bin_size > length - g->bin_offset)
                return reader_fail(r, at, "the BIN chunk ends past the file");
        }
    }
    return true;
}

static bool check_required(struct glb *g)
{
    static const char *const known[] = {"KHR_mesh_quantization",           "KHR_materials_unlit",
                                        "KHR_materials_emissive_strength", "KHR_materials_ior",
                                        "KHR_materials_specular",          "KHR_materials_clearcoat"};
    const struct json_node *list = member(g, g->json.nodes, "extensionsRequired");
    const struct json_node *n = json_first(&g->json, list);
    for (uint32_t i = 0; n && i < list->count; i++, n = json_next(&g->json, n)) {
        bool found = false;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            found = found || json_is(&g->json, n, known[k]);
        if (!found)
            return reader_fail(g->reader, place(g, n), "the file needs the extension %.*s, which is not read",
                               n->size > 80 ? 80 : (int)n->size, g->json.text + n->start);
    }
    return true;
}

/* The items of a top-level array, for access by index; each must be an object. */
static bool list_objects(struct glb *g, const char *name, const struct json_node ***items, size_t *count)
{
    const struct json_node *list = member(g, g->json.nodes, name);
    *count = list && list->kind == JSON_ARRAY ? list->count : 0;
    *items = memory_array(&g->reader->memory, *count, sizeof(const struct json_node *));
    if (!*items)
        return reader_out_of_memory(g->reader);
    const struct json_node *n = json_first(&g->json, list);
    for (size_t i = 0; i < *count; i++, n = json_next(&g->json, n)) {
        if (n->kind != JSON_OBJECT)
            return reader_fail(g->reader, place(g, n), "%s[%zu]: expected an object", name, i);
        (*items)[i] = n;
    }
    return true;
}

/* ---- buffer views and accessors */

static bool read_view(struct glb *g, const struct json_node *n, struct view *view)
{
    int64_t buffer, offset, size, stride;
    if (!index_of(g, n, "buffer", UINT32_MAX, &buffer) ||
        !index_of(g, n, "byteOffset", UINT32_MAX, &offset) ||
        !index_of(g, n, "byteLength", UINT32_MAX, &size) || !index_of(g, n, "byteStride", 253, &stride))
        return false;
    if (buffer != 0)
        return reader_fail(g->reader, place(g, n), "a buffer view of a buffer outside the file");
    const uint64_t from = offset < 0 ? 0 : (uint64_t)offset, length = size < 0 ? 0 : (uint64_t)size;
    if (from > g->bin_size || length > g->bin_size - from)
        return reader_fail(g->reader, place(g, n),
                           "a buffer view of bytes %" PRIu64 " to %" PRIu64 ", the BIN chunk has %" PRIu64,
                           from, from + length, g->bin_size);
    *view = (struct view){g->bin_offset + from, length, stride < 0 ? 0 : (uint32_t)stride};
    return true;
}

static uint32_t component_size(int64_t type)
{
    switch (type) {
    case COMPONENT_BYTE:
    case COMPONENT_UBYTE:
        return 1;
    case COMPONENT_SHORT:
    case COMPONENT_USHORT:
        return 2;
    case COMPONENT_UINT:
    case COMPONENT_FLOAT:
        return 4;
    default:
        return 0;
    }
}

static bool read_accessor(struct glb *g, const struct json_node *n, struct accessor *a)
{
    struct reader *r = g->reader;
    int64_t view, offset, count, type;
    if (!index_of(g, n, "bufferView", g->view_count, &view) ||
        !index_of(g, n, "byteOffset", UINT32_MAX, &offset) || !index_of(g, n, "count", INT32_MAX, &count) ||
        !index_of(g, n, "componentType", 65536, &type))
        return false;
    static const char *const types[] = {"", "SCALAR", "VEC2", "VEC3", "VEC4"};
    *a = (struct accessor){
        .place = place(g, n), .type = (int32_t)type, .count = count < 0 ? 0 : (uint64_t)count};
    for (uint32_t i = 1; i <= 4; i++)
        if (json_is(&g->json, member(g, n, "type"), types[i]))
            a->components = i;
    const struct json_node *normalized = member(g, n, "normalized");
    a->normalized = normalized && normalized->kind == JSON_TRUE;
    if (member(g, n, "sparse") || view < 0 || !a->components)
        return true; /* refused only where it is used: matrices of a skin are no concern of ours */
    const uint32_t size = component_size(type) * a->components;
    if (!size)
        return reader_fail(r, a->place, "an accessor of component type %" PRId64, type);
    const struct view *v = g->views + view;
    a->stride = v->stride ? v->stride : size;
    const uint64_t from = offset < 0 ? 0 : (uint64_t)offset;
    const uint64_t need = a->count ? from + (a->count - 1) * a->stride + size : from;
    if (a->stride < size || need > v->size)
        return reader_fail(r, a->place,
                           "accessor %zu ends past its buffer view (%" PRIu64 " of %" PRIu64 " bytes)",
                           (size_t)(a - g->accessors), need, v->size);
    a->offset = v->offset + from;
    a->has_data = true;
    return true;
}

static float component(const uint8_t *p, int32_t type, bool normalized)
{
    switch (type) {
    case COMPONENT_BYTE: {
        const float value = (float)(int8_t)*p;
        return normalized ? fmaxf(value / 127.0F, -1.0F) : value;
    }
    case COMPONENT_UBYTE:
        return normalized ? (float)*p / 255.0F : (float)*p;
    case COMPONENT_SHORT: {
        const float value = (float)(int16_t)get_u16le(p);
        return normalized ? fmaxf(value / 32767.0F, -1.0F) : value;
    }
    case COMPONENT_USHORT:
        return normalized ? (float)get_u16le(p) / 65535.0F : (float)get_u16le(p);
    case COMPONENT_UINT:
        return (float)get_u32le(p);
    default:
        return get_f32le(p);
    }
}

/* Elements [0, count) through a window, each given to put. */
typedef bool element_put(void *context, uint64_t index, const uint8_t *bytes);
static bool each_element(struct glb *g, const struct accessor *a, element_put *put, void *context)
{
    struct cursor c;
    if (!cursor_open(&c, g->reader, a->offset))
        return false;
    const uint32_t size = component_size(a->type) * a->components;
    bool good = true;
    for (uint64_t i = 0; i < a->count && good; i++) {
        const uint64_t step = i + 1 < a->count ? a->stride : size;
        const uint8_t *bytes = cursor_take(&c, (size_t)step);
        good = bytes && put(context, i, bytes);
    }
    cursor_close(&c);
    return good;
}

struct floats {
    const struct accessor *accessor;
    float *out;
    uint32_t width; /* components of out; those that the accessor lacks are 1 */
};

static bool put_floats(void *context, uint64_t index, const uint8_t *bytes)
{
    const struct floats *f = context;
    const uint32_t size = component_size(f->accessor->type);
    for (uint32_t k = 0; k < f->width; k++)
        f->out[index * f->width + k] =
            k < f->accessor->components
                ? component(bytes + (size_t)k * size, f->accessor->type, f->accessor->normalized)
                : 1.0F;
    return true;
}

/* The attribute as float [count, width]; *out NULL when there is none. */
static bool read_attribute(struct glb *g, const struct json_node *attributes, const char *name,
                           uint64_t count, uint32_t least, uint32_t width, float **out)
{
    int64_t index;
    *out = NULL;
    if (!index_of(g, attributes, name, g->accessor_count, &index))
        return false;
    if (index < 0)
        return true;
    const struct accessor *a = g->accessors + index;
    if (!a->has_data)
        return reader_fail(g->reader, a->place, "%s: sparse or empty accessors are not read", name);
    if (a->components < least || a->components > width)
        return reader_fail(g->reader, a->place, "%s: expected %u components, got %u", name, width,
                           a->components);
    if (a->count != count)
        return reader_fail(g->reader, a->place, "%s: expected %" PRIu64 " elements, got %" PRIu64, name,
                           count, a->count);
    *out = memory_array(&g->reader->memory, (size_t)count * width, sizeof **out);
    if (!*out)
        return reader_out_of_memory(g->reader);
    struct floats f = {.accessor = a, .out = *out, .width = width};
    return each_element(g, a, put_floats, &f);
}

/* ---- primitives */

struct indices {
    struct glb *glb;
    const struct accessor *accessor;
    int32_t *out;
    uint64_t limit;
};

static bool put_index(void *context, uint64_t index, const uint8_t *bytes)
{
    const struct indices *x = context;
    const uint32_t value = x->accessor->type == COMPONENT_UBYTE    ? *bytes
                           : x->accessor->type == COMPONENT_USHORT ? get_u16le(bytes)
                                                                   : get_u32le(bytes);
    if (value >= x->limit)
        return reader_fail(x->glb->reader, x->accessor->offset + index * x->accessor->stride,
                           "index %" PRIu32 " of a mesh with %" PRIu64 " vertices", value, x->limit);
    x->out[index] = (int32_t)value;
    return true;
}

/* Triangles of the index list, by the primitive's mode. */
static bool make_faces(struct glb *g, const int32_t *list, uint64_t count, int64_t mode,
                       struct fel_mesh *mesh)
{
    const uint64_t faces = mode == MODE_TRIANGLES ? count / 3 : count < 3 ? 0 : count - 2;
    mesh->faces = memory_array(&g->reader->memory, (size_t)faces * 3, sizeof *mesh->faces);
    if (!mesh->faces)
        return reader_out_of_memory(g->reader);
    mesh->face_count = (int64_t)faces;
    for (uint64_t f = 0; f < faces; f++) {
        int32_t *out = mesh->faces + 3 * f;
        if (mode == MODE_TRIANGLES) {
            memcpy(out, list + 3 * f, 3 * sizeof *out);
        } else if (mode == MODE_FAN) {
            out[0] = list[f + 1];
            out[1] = list[f + 2];
            out[2] = list[0];
        } else {
            out[0] = list[f];
            out[1] = list[f + 1 + f % 2];
            out[2] = list[f + 2 - f % 2];
        }
    }
    return true;
}

static bool read_faces(struct glb *g, const struct json_node *primitive, int64_t mode, struct fel_mesh *mesh)
{
    int64_t index;
    if (!index_of(g, primitive, "indices", g->accessor_count, &index))
        return false;
    const uint64_t vertices = (uint64_t)mesh->vertex_count;
    const struct accessor *a = index < 0 ? NULL : g->accessors + index;
    if (a && (!a->has_data || a->components != 1 ||
              (a->type != COMPONENT_UBYTE && a->type != COMPONENT_USHORT && a->type != COMPONENT_UINT)))
        return reader_fail(g->reader, a->place, "indices: expected unsigned scalars");
    const uint64_t count = a ? a->count : vertices;
    int32_t *list = memory_array(&g->reader->memory, (size_t)count, sizeof *list);
    if (!list)
        return reader_out_of_memory(g->reader);
    struct indices x = {.glb = g, .accessor = a, .out = list, .limit = vertices};
    if (a && !each_element(g, a, put_index, &x))
        return false;
    for (uint64_t i = 0; i < count && !a; i++)
        list[i] = (int32_t)i;
    if (mode == MODE_TRIANGLES && count % 3 == 0) {
        mesh->faces = list;
        mesh->face_count = (int64_t)(count / 3);
        return true;
    }
    return make_faces(g, list, count, mode, mesh);
}

struct transform { /* columns, as glTF writes them */
    double m[16];
};

static const struct transform identity = {{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}};

static struct transform multiply(const struct transform *a, const struct transform *b)
{
    struct transform c;
    for (int column = 0; column < 4; column++)
        for (int row = 0; row < 4; row++) {
            double sum = 0;
            for (int k = 0; k < 4; k++)
                sum += a->m[4 * k + row] * b->m[4 * column + k];
            c.m[4 * column + row] = sum;
        }
    return c;
}

static bool is_identity(const struct transform *t)
{
    for (int i = 0; i < 16; i++)
        if (t->m[i] < identity.m[i] || t->m[i] > identity.m[i] || isnan(t->m[i]))
            return false;
    return true;
}

static void apply_transform(const struct transform *t, struct fel_mesh *mesh)
{
    const double *m = t->m;
    if (is_identity(t))
        return; /* so that a plain file comes back bit for bit */
    /* normals go by the cofactors, which are the inverse transpose times the determinant */
    double cofactor[9];
    for (int column = 0; column < 3; column++)
        for (int row = 0; row < 3; row++) {
            const int c1 = (column + 1) % 3, c2 = (column + 2) % 3, r1 = (row + 1) % 3, r2 = (row + 2) % 3;
            cofactor[3 * column + row] = m[4 * c1 + r1] * m[4 * c2 + r2] - m[4 * c1 + r2] * m[4 * c2 + r1];
        }
    const double determinant = m[0] * cofactor[0] + m[1] * cofactor[1] + m[2] * cofactor[2];
    const double sign = determinant < 0 ? -1 : 1;
    for (int64_t i = 0; i < mesh->vertex_count; i++) {
        float *p = mesh->positions + 3 * i;
        const double x = p[0], y = p[1], z = p[2];
        for (int row = 0; row < 3; row++)
            p[row] = (float)(m[row] * x + m[4 + row] * y + m[8 + row] * z + m[12 + row]);
        if (!mesh->normals)
            continue;
        float *n = mesh->normals + 3 * i;
        double turned[3], length = 0;
        for (int row = 0; row < 3; row++) {
            turned[row] = sign * (cofactor[row] * (double)n[0] + cofactor[3 + row] * (double)n[1] +
                                  cofactor[6 + row] * (double)n[2]);
            length += turned[row] * turned[row];
        }
        for (int row = 0; row < 3 && length > 0; row++)
            n[row] = (float)(turned[row] / sqrt(length));
    }
    for (int64_t f = 0; f < mesh->face_count && sign < 0; f++) { /* a mirror turns the winding round */
        int32_t *corner = mesh->faces + 3 * f;
        const int32_t second = corner[1];
        corner[1] = corner[2];
        corner[2] = second;
    }
}

static bool read_primitive(struct glb *g, const struct json_node *primitive, const struct json_node *owner,
                           const struct transform *t)
{
    struct reader *r = g->reader;
    int64_t mode, position;
    if (++g->shown > MAX_PRIMITIVES)
        return reader_fail(r, place(g, primitive), "the scene shows more than %d primitives", MAX_PRIMITIVES);
    const struct json_node *attributes = member(g, primitive, "attributes");
    if (!index_of(g, primitive, "mode", 7, &mode) ||
        !index_of(g, attributes, "POSITION", g->accessor_count, &position))
        return false;
    mode = mode < 0 ? MODE_TRIANGLES : mode;
    if (mode < MODE_TRIANGLES || position < 0) {
        g->skipped++;
        return true;
    }
    struct fel_mesh *mesh = list_add(&g->out);
    if (!mesh)
        return reader_out_of_memory(r);
    const uint64_t count = g->accessors[position].count;
    int64_t material;
    if (!read_attribute(g, attributes, "POSITION", count, 3, 3, &mesh->positions) ||
        !read_attribute(g, attributes, "NORMAL", count, 3, 3, &mesh->normals) ||
        !read_attribute(g, attributes, "TEXCOORD_0", count, 2, 2, &mesh->uvs) ||
        !read_attribute(g, attributes, "COLOR_0", count, 3, 4, &mesh->colors) ||
        !index_of(g, primitive, "material", (uint64_t)g->material_count, &material))
        return false;
    mesh->vertex_count = (int64_t)count;
    mesh->material = (int32_t)material;
    mesh->name = json_text(r, &g->json, member(g, owner, "name"));
    if (r->status || !read_faces(g, primitive, mode, mesh))
        return false;
    apply_transform(t, mesh);
    return true;
}

static bool read_mesh(struct glb *g, int64_t index, const struct transform *t)
{
    const struct json_node *list = member(g, g->meshes[index], "primitives");
    const struct json_node *n = json_first(&g->json, list);
    for (uint32_t i = 0; n && i < list->count; i++, n = json_next(&g->json, n))
        if (!read_primitive(g, n, g->meshes[index], t))
            return false;
    return true;
}

/* ---- nodes */

static bool read_numbers(struct glb *g, const struct json_node *n, const char *name, double *out,
                         uint32_t count)
{
    const struct json_node *list = member(g, n, name);
    if (!list)
        return true;
    if (list->kind != JSON_ARRAY || list->count != count)
        return reader_fail(g->reader, place(g, list), "%s: expected %u numbers", name, count);
    const struct json_node *item = json_first(&g->json, list);
    for (uint32_t i = 0; i < count; i++, item = json_next(&g->json, item))
        if (!json_number(g->reader, &g->json, item, name, 0, out + i))
            return false;
    return true;
}

static bool read_transform(struct glb *g, const struct json_node *n, struct transform *t)
{
    *t = identity;
    if (member(g, n, "matrix"))
        return read_numbers(g, n, "matrix", t->m, 16);
    double move[3] = {0, 0, 0}, q[4] = {0, 0, 0, 1}, scale[3] = {1, 1, 1};
    if (!read_numbers(g, n, "translation", move, 3) || !read_numbers(g, n, "rotation", q, 4) ||
        !read_numbers(g, n, "scale", scale, 3))
        return false;
    const double x = q[0], y = q[1], z = q[2], w = q[3];
    const double turn[9] = {1 - 2 * (y * y + z * z), 2 * (x * y + z * w),     2 * (x * z - y * w),
                            2 * (x * y - z * w),     1 - 2 * (x * x + z * z), 2 * (y * z + x * w),
                            2 * (x * z + y * w),     2 * (y * z - x * w),     1 - 2 * (x * x + y * y)};
    for (int column = 0; column < 3; column++)
        for (int row = 0; row < 3; row++)
            t->m[4 * column + row] = turn[3 * column + row] * scale[column];
    for (int row = 0; row < 3; row++)
        t->m[12 + row] = move[row];
    return true;
}

struct visit {
    const struct json_node *child, *list; /* the next child to go to, of this list */
    uint32_t left;
    struct transform world;
};

static bool enter_node(struct glb *g, int64_t index, const struct transform *above, struct visit *v,
                       int64_t *visits)
{
    struct transform local;
    int64_t mesh;
    const struct json_node *n = g->nodes[index];
    /* glTF forbids sharing a child, so more visits than nodes is a loop or a blow-up */
    if (++*visits > (int64_t)g->node_count)
        return reader_fail(g->reader, place(g, n), "node %" PRId64 " is reached twice", index);
    if (!read_transform(g, n, &local) || !index_of(g, n, "mesh", g->mesh_count, &mesh))
        return false;
    *v = (struct visit){.list = member(g, n, "children"), .world = multiply(above, &local)};
    v->child = json_first(&g->json, v->list);
    v->left = v->child ? v->list->count : 0;
    return mesh < 0 || read_mesh(g, mesh, &v->world);
}

static bool walk_from(struct glb *g, int64_t root, int64_t *visits)
{
    struct visit stack[MAX_NODE_DEPTH] = {{0}};
    int depth = 0;
    if (!enter_node(g, root, &identity, stack, visits))
        return false;
    while (depth >= 0) {
        struct visit *v = stack + depth;
        if (!v->left) {
            depth--;
            continue;
        }
        int64_t child;
        if (!json_index(g->reader, &g->json, v->child, "children", g->node_count, &child))
            return false;
        if (--v->left)
            v->child = json_next(&g->json, v->child);
        if (++depth == MAX_NODE_DEPTH)
            return reader_fail(g->reader, place(g, v->list), "nodes nest deeper than %d", MAX_NODE_DEPTH);
        if (!enter_node(g, child, &v->world, stack + depth, visits))
            return false;
    }
    return true;
}

static bool walk_scene(struct glb *g)
{
    int64_t chosen, visits = 0;
    const struct json_node *scenes = member(g, g->json.nodes, "scenes");
    const uint32_t count = scenes && scenes->kind == JSON_ARRAY ? scenes->count : 0;
    if (!index_of(g, g->json.nodes, "scene", count, &chosen))
        return false;
    const struct json_node *scene = json_first(&g->json, scenes);
    for (int64_t i = 0; i < chosen; i++)
        scene = json_next(&g->json, scene);
    if (!scene) { /* no scene: a library of meshes, shown as they are */
        for (size_t i = 0; i < g->mesh_count; i++)
            if (!read_mesh(g, (int64_t)i, &identity))
                return false;
        return true;
    }
    const struct json_node *roots = member(g, scene, "nodes");
    const struct json_node *n = json_first(&g->json, roots);
    for (uint32_t i = 0; n && i < roots->count; i++, n = json_next(&g->json, n)) {
        int64_t root;
        if (!json_index(g->reader, &g->json, n, "nodes", g->node_count, &root) ||
            !walk_from(g, root, &visits))
            return false;
    }
    return true;
}

/* ---- materials and pictures */

static bool read_data_uri(struct glb *g, const struct json_node *uri, struct fel_picture *picture)
{
    const char *text = g->json.text + uri->start, *end = text + uri->size;
    const char *comma = memchr(text, ',', uri->size);
    const char *semicolon = memchr(text, ';', uri->size);
    if (!comma || !semicolon || semicolon > comma || comma - semicolon != 7 ||
        memcmp(semicolon, ";base64", 7) != 0)
        return reader_fail(g->reader, place(g, uri), "expected a data URI in base64");
    picture->mime = memory_text(&g->reader->memory, text + 5, (size_t)(semicolon - text) - 5);
    uint8_t *out = memory_array(&g->reader->memory, (size_t)(end - comma) * 3 / 4 + 3, 1);
    if (!picture->mime || !out)
        return reader_out_of_memory(g->reader);
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t hold = 0;
    int held = 0;
    size_t size = 0;
    for (const char *p = comma + 1; p < end && *p != '='; p++) {
        const char *digit = *p == '\\' || !*p ? NULL : strchr(digits, *p);
        if (*p == '\\' && p + 1 < end && p[1] == '/')
            continue; /* JSON may escape the slash: the next character is the digit */
        if (!digit)
            return reader_fail(g->reader, g->json.offset + (uint64_t)(p - g->json.text), "expected base64");
        hold = hold << 6 | (uint32_t)(digit - digits);
        held += 6;
        if (held >= 8) {
            held -= 8;
            out[size++] = (uint8_t)(hold >> held);
        }
    }
    picture->bytes = out;
    picture->size = (int64_t)size;
    return true;
}

static bool read_picture(struct glb *g, const struct json_node *n, struct fel_picture *picture)
{
    struct reader *r = g->reader;
    int64_t view;
    if (!index_of(g, n, "bufferView", g->view_count, &view))
        return false;
    picture->name = json_text(r, &g->json, member(g, n, "name"));
    picture->mime = json_text(r, &g->json, member(g, n, "mimeType"));
    if (view >= 0) {
        const struct view *v = g->views + view;
        uint8_t *bytes = memory_array(&r->memory, (size_t)v->size, 1);
        if (!bytes)
            return reader_out_of_memory(r);
        picture->bytes = bytes;
        picture->size = (int64_t)v->size;
        return source_read(r, v->offset, bytes, (size_t)v->size);
    }
    const struct json_node *uri = member(g, n, "uri");
    if (uri && uri->kind == JSON_STRING && uri->size > 5 && !memcmp(g->json.text + uri->start, "data:", 5))
        return read_data_uri(g, uri, picture);
    if (uri)
        picture->name = json_text(r, &g->json, uri);
    return !r->status;
}

static bool read_pictures(struct glb *g, fel_asset *asset)
{
    const struct json_node **images;
    size_t count;
    if (!list_objects(g, "images", &images, &count))
        return false;
    asset->pictures = memory_array(&g->reader->memory, count, sizeof *asset->pictures);
    if (!asset->pictures)
        return reader_out_of_memory(g->reader);
    for (size_t i = 0; i < count; i++)
        if (!read_picture(g, images[i], asset->pictures + i))
            return false;
    asset->picture_count = (int64_t)count;
    return true;
}

/* A textureInfo to the index of its picture. */
static bool read_texture(struct glb *g, const struct json_node *owner, const char *name,
                         const struct json_node **textures, size_t texture_count, int64_t pictures,
                         int32_t *picture)
{
    int64_t index, source = -1;
    if (!index_of(g, member(g, owner, name), "index", texture_count, &index) ||
        (index >= 0 && !index_of(g, textures[index], "source", (uint64_t)pictures, &source)))
        return false;
    *picture = (int32_t)source;
    return true;
}

static bool read_floats(struct glb *g, const struct json_node *n, const char *name, float *out,
                        uint32_t count)
{
    double numbers[4] = {(double)out[0], count > 1 ? (double)out[1] : 0, count > 2 ? (double)out[2] : 0,
                         count > 3 ? (double)out[3] : 0};
    if (!read_numbers(g, n, name, numbers, count))
        return false;
    for (uint32_t i = 0; i < count; i++)
        out[i] = (float)numbers[i];
    return true;
}

static bool read_material(struct glb *g, const struct json_node *n, const struct json_node **textures,
                          size_t count, int64_t pictures, struct fel_material *m)
{
    struct reader *r = g->reader;
    const struct json *j = &g->json;
    const struct json_node *pbr = member(g, n, "pbrMetallicRoughness"), *mode = member(g, n, "alphaMode");
    *m = (struct fel_material){.base_color = {1, 1, 1, 1},
                               .alpha_mode = json_is(j, mode, "MASK") + 2 * json_is(j, mode, "BLEND")};
    double metallic, roughness, cutoff;
    if (!read_floats(g, pbr, "baseColorFactor", m->base_color, 4) ||
        !read_floats(g, n, "emissiveFactor", m->emissive, 3) ||
        !json_number(r, j, member(g, pbr, "metallicFactor"), "metallicFactor", 1, &metallic) ||
        !json_number(r, j, member(g, pbr, "roughnessFactor"), "roughnessFactor", 1, &roughness) ||
        !json_number(r, j, member(g, n, "alphaCutoff"), "alphaCutoff", 0.5, &cutoff) ||
        !read_texture(g, pbr, "baseColorTexture", textures, count, pictures, &m->base_color_texture) ||
        !read_texture(g, pbr, "metallicRoughnessTexture", textures, count, pictures,
                      &m->metallic_roughness_texture) ||
        !read_texture(g, n, "normalTexture", textures, count, pictures, &m->normal_texture) ||
        !read_texture(g, n, "occlusionTexture", textures, count, pictures, &m->occlusion_texture) ||
        !read_texture(g, n, "emissiveTexture", textures, count, pictures, &m->emissive_texture))
        return false;
    m->metallic = (float)metallic;
    m->roughness = (float)roughness;
    m->alpha_cutoff = (float)cutoff;
    const struct json_node *sides = member(g, n, "doubleSided");
    m->double_sided = sides && sides->kind == JSON_TRUE;
    m->name = json_text(r, j, member(g, n, "name"));
    return !r->status;
}

static bool read_materials(struct glb *g, fel_asset *asset)
{
    const struct json_node **materials, **textures;
    size_t count, texture_count;
    if (!list_objects(g, "materials", &materials, &count) ||
        !list_objects(g, "textures", &textures, &texture_count))
        return false;
    asset->materials = memory_array(&g->reader->memory, count, sizeof *asset->materials);
    if (!asset->materials)
        return reader_out_of_memory(g->reader);
    for (size_t i = 0; i < count; i++)
        if (!read_material(g, materials[i], textures, texture_count, asset->picture_count,
                           asset->materials + i))
            return false;
    asset->material_count = (int64_t)count;
    g->material_count = (int64_t)count;
    return true;
}

static bool read_views(struct glb *g)
{
    struct memory *m = &g->reader->memory;
    const struct json_node **views, **accessors;
    if (!list_objects(g, "bufferViews", &views, &g->view_count) ||
        !list_objects(g, "accessors", &accessors, &g->accessor_count) ||
        !list_objects(g, "meshes", &g->meshes, &g->mesh_count) ||
        !list_objects(g, "nodes", &g->nodes, &g->node_count))
        return false;
    g->views = memory_array(m, g->view_count, sizeof *g->views);
    g->accessors = memory_array(m, g->accessor_count, sizeof *g->accessors);
    if (!g->views || !g->accessors)
        return reader_out_of_memory(g->reader);
    for (size_t i = 0; i < g->view_count; i++)
        if (!read_view(g, views[i], g->views + i))
            return false;
    for (size_t i = 0; i < g->accessor_count; i++)
        if (!read_accessor(g, accessors[i], g->accessors + i))
            return false;
    return true;
}

bool glb_read(struct reader *r, fel_asset *asset)
{
    struct glb g = {.reader = r, .out = {.item_size = sizeof(struct fel_mesh), .memory = &r->memory}};
    if (!read_container(&g))
        return false;
    if (!g.json.nodes || g.json.nodes->kind != JSON_OBJECT)
        return reader_fail(r, g.json.offset, "expected a JSON object");
    if (!check_required(&g) || !read_views(&g) || !read_pictures(&g, asset) || !read_materials(&g, asset) ||
        !walk_scene(&g))
        return false;
    asset->mesh_count = (int64_t)g.out.count;
    asset->meshes = list_take(&g.out);
    asset->skipped_primitives = g.skipped;
    return asset->meshes ? true : reader_out_of_memory(r);
}
