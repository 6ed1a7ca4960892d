/* asset/ply.c: PLY (Turk 1994): a header that describes elements and their properties, then rows as text or as binary
 * in either byte order. A file whose vertices have f_dc_0, opacity, scale_0 and rot_0 holds 3D gaussians; any other is
 * a mesh. Properties and elements without meaning here are passed over. */
#include "asset/asset.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PROPERTIES = 256, MAX_ELEMENTS = 64 };

enum ply_type { PLY_NONE, PLY_I8, PLY_U8, PLY_I16, PLY_U16, PLY_I32, PLY_U32, PLY_F32, PLY_F64 };

/* Where a vertex property goes in a row of numbers. */
enum slot {
    SLOT_X = 0,
    SLOT_NX = 3,
    SLOT_RED = 6,
    SLOT_U = 10,
    SLOT_DC = 12,
    SLOT_REST = 15,
    SLOT_OPACITY = 60,
    SLOT_SCALE = 61,
    SLOT_ROTATION = 64,
    SLOT_COUNT = 68,
    SLOT_NONE = -1
};

struct property {
    enum ply_type count_type; /* of a list, else PLY_NONE */
    enum ply_type type;
    int slot;
    bool is_faces; /* the list of a face's corners */
};

struct element {
    struct property *properties;
    size_t property_count;
    uint64_t count, offset; /* rows; place in the header */
    bool is_vertex, is_face;
};

struct ply {
    struct reader *reader;
    struct cursor cursor;
    struct element elements[MAX_ELEMENTS];
    size_t element_count;
    bool ascii, big_endian;
    bool has[SLOT_COUNT];
    uint64_t vertex_count;
    struct list faces; /* int32_t[3] */
    struct fel_mesh *mesh;
    struct fel_gaussians *gaussians;
};

static const uint8_t type_sizes[] = {0, 1, 1, 2, 2, 4, 4, 4, 8};

static enum ply_type type_named(const char *word, size_t size)
{
    static const struct {
        const char *name;
        enum ply_type type;
    } names[] = {{"char", PLY_I8},   {"int8", PLY_I8},     {"uchar", PLY_U8},   {"uint8", PLY_U8},
                 {"short", PLY_I16}, {"int16", PLY_I16},   {"ushort", PLY_U16}, {"uint16", PLY_U16},
                 {"int", PLY_I32},   {"int32", PLY_I32},   {"uint", PLY_U32},   {"uint32", PLY_U32},
                 {"float", PLY_F32}, {"float32", PLY_F32}, {"double", PLY_F64}, {"float64", PLY_F64}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (size == strlen(names[i].name) && !memcmp(word, names[i].name, size))
            return names[i].type;
    return PLY_NONE;
}

static int slot_named(const char *word, size_t size)
{
    static const struct {
        const char *name;
        int slot;
    } names[] = {{"x", 0},           {"y", 1},           {"z", 2},       {"nx", 3},         {"ny", 4},
                 {"nz", 5},          {"red", 6},         {"green", 7},   {"blue", 8},       {"alpha", 9},
                 {"r", 6},           {"g", 7},           {"b", 8},       {"a", 9},          {"u", 10},
                 {"v", 11},          {"s", 10},          {"t", 11},      {"texture_u", 10}, {"texture_v", 11},
                 {"texcoord_u", 10}, {"texcoord_v", 11}, {"opacity", 60}};
    static const struct {
        const char *prefix;
        int slot, count;
    } series[] = {{"f_dc_", SLOT_DC, 3},
                  {"f_rest_", SLOT_REST, 45},
                  {"scale_", SLOT_SCALE, 3},
                  {"rot_", SLOT_ROTATION, 4}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (size == strlen(names[i].name) && !memcmp(word, names[i].name, size))
            return names[i].slot;
    for (size_t i = 0; i < sizeof series / sizeof *series; i++) {
        const size_t length = strlen(series[i].prefix);
        const char *at = word + length;
        int64_t number;
        if (size > length && !memcmp(word, series[i].prefix, length) &&
            integer_parse(&at, word + size, &number) && at == word + size && number >= 0 &&
            number < series[i].count)
            return series[i].slot + (int)number;
    }
    return SLOT_NONE;
}

/* ---- header */

struct words {
    const char *text[8];
    size_t sizes[8];
    size_t count;
};

static void split(const char *line, size_t size, struct words *w)
{
    const char *at = line, *end = line + size;
    w->count = 0;
    while (w->count < 8) {
        while (at < end && (*at == ' ' || *at == '\t'))
            at++;
        if (at == end)
            return;
        w->text[w->count] = at;
        while (at < end && *at != ' ' && *at != '\t')
            at++;
        w->sizes[w->count] = (size_t)(at - w->text[w->count]);
        w->count++;
    }
}

static bool is(const struct words *w, size_t i, const char *text)
{
    return i < w->count && w->sizes[i] == strlen(text) && !memcmp(w->text[i], text, w->sizes[i]);
}

static bool header_fail(struct ply *p, const char *what)
{
    return reader_fail(p->reader, p->cursor.line_offset, "line %" PRIu64 ": %s", p->cursor.line, what);
}

static bool read_format(struct ply *p, const struct words *w)
{
    p->ascii = is(w, 1, "ascii");
    p->big_endian = is(w, 1, "binary_big_endian");
    if ((!p->ascii && !p->big_endian && !is(w, 1, "binary_little_endian")) || !is(w, 2, "1.0"))
        return header_fail(p, "expected 'format ascii|binary_little_endian|binary_big_endian 1.0'");
    return true;
}

static bool add_element(struct ply *p, const struct words *w)
{
    int64_t count;
    const char *at = w->count == 3 ? w->text[2] : NULL;
    if (!at || !integer_parse(&at, at + w->sizes[2], &count) || count < 0 || count > UINT32_MAX)
        return header_fail(p, "expected 'element NAME COUNT' with a count below 2^32");
    if (p->element_count == MAX_ELEMENTS)
        return header_fail(p, "more than 64 elements");
    struct element *e = p->elements + p->element_count++;
    *e = (struct element){.count = (uint64_t)count,
                          .offset = p->cursor.line_offset,
                          .is_vertex = is(w, 1, "vertex"),
                          .is_face = is(w, 1, "face")};
    if (e->is_vertex && p->vertex_count)
        return header_fail(p, "a second vertex element");
    if (e->is_vertex)
        p->vertex_count = (uint64_t)count;
    if (e->count > INT32_MAX && (e->is_vertex || e->is_face))
        return header_fail(p, "more than 2^31 - 1 vertices or faces");
    e->properties = memory_array(&p->reader->memory, MAX_PROPERTIES, sizeof *e->properties);
    return e->properties ? true : reader_out_of_memory(p->reader);
}

static bool add_property(struct ply *p, const struct words *w)
{
    if (!p->element_count)
        return header_fail(p, "a property before the first element");
    struct element *e = p->elements + p->element_count - 1;
    if (e->property_count == MAX_PROPERTIES)
        return header_fail(p, "more than 256 properties");
    struct property *q = e->properties + e->property_count++;
    const bool list = is(w, 1, "list");
    const size_t at = list ? 3 : 1;
    *q = (struct property){.slot = SLOT_NONE};
    if (w->count != at + 2)
        return header_fail(p, "expected 'property TYPE NAME' or 'property list TYPE TYPE NAME'");
    q->type = type_named(w->text[at], w->sizes[at]);
    if (list)
        q->count_type = type_named(w->text[2], w->sizes[2]);
    if (!q->type || (list && (!q->count_type || q->count_type >= PLY_F32)))
        return header_fail(p, "an unknown type");
    if (list)
        q->is_faces = e->is_face && (is(w, 4, "vertex_indices") || is(w, 4, "vertex_index"));
    else if (e->is_vertex)
        q->slot = slot_named(w->text[2], w->sizes[2]);
    if (q->slot >= 0)
        p->has[q->slot] = true;
    return true;
}

static bool read_header(struct ply *p)
{
    const char *line;
    size_t size;
    struct words w;
    bool format = false;
    if (!cursor_line(&p->cursor, &line, &size) || size != 3 || memcmp(line, "ply", 3) != 0)
        return p->reader->status ? false : reader_fail(p->reader, 0, "expected 'ply'");
    while (cursor_line(&p->cursor, &line, &size)) {
        split(line, size, &w);
        if (is(&w, 0, "end_header"))
            return format || header_fail(p, "no format before the end of the header");
        if (is(&w, 0, "format") && !format) {
            if (!read_format(p, &w))
                return false;
            format = true;
        } else if (is(&w, 0, "element")) {
            if (!add_element(p, &w))
                return false;
        } else if (is(&w, 0, "property")) {
            if (!add_property(p, &w))
                return false;
        } else if (w.count && !is(&w, 0, "comment") && !is(&w, 0, "obj_info")) {
            return header_fail(p, "expected a line of a PLY header");
        }
    }
    return p->reader->status ? false
                             : reader_fail(p->reader, cursor_offset(&p->cursor), "expected 'end_header'");
}

/* Counts are claims: each row takes at least this many bytes, so the file bounds them. */
static bool check_counts(struct ply *p)
{
    uint64_t left = p->reader->source->size - cursor_offset(&p->cursor);
    for (size_t i = 0; i < p->element_count; i++) {
        const struct element *e = p->elements + i;
        uint64_t row = 0;
        for (size_t k = 0; k < e->property_count; k++) {
            const struct property *q = e->properties + k;
            row += p->ascii ? 1 : type_sizes[q->count_type ? q->count_type : q->type];
        }
        if (row && e->count > left / row)
            return reader_fail(p->reader, e->offset,
                               "%" PRIu64 " rows of at least %" PRIu64 " bytes, %" PRIu64 " are left",
                               e->count, row, left);
        left -= row * e->count;
    }
    return true;
}

/* ---- rows */

static double decode(const uint8_t *b, enum ply_type type, bool big)
{
    if (type == PLY_I8)
        return (int8_t)b[0];
    if (type == PLY_U8)
        return b[0];
    if (type == PLY_I16 || type == PLY_U16) {
        const uint8_t swapped[2] = {b[1], b[0]};
        const uint16_t value = get_u16le(big ? swapped : b);
        return type == PLY_I16 ? (double)(int16_t)value : (double)value;
    }
    if (type == PLY_F64) {
        const uint32_t low = big ? get_u32be(b + 4) : get_u32le(b),
                       high = big ? get_u32be(b) : get_u32le(b + 4);
        const uint64_t bits = (uint64_t)high << 32 | low;
        double value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    const uint32_t bits = big ? get_u32be(b) : get_u32le(b);
    float value;
    memcpy(&value, &bits, sizeof value);
    return type == PLY_F32 ? (double)value : type == PLY_I32 ? (double)(int32_t)bits : (double)bits;
}

static bool read_value(struct ply *p, enum ply_type type, double *value)
{
    if (!p->ascii) {
        const uint8_t *bytes = cursor_take(&p->cursor, type_sizes[type]);
        if (bytes)
            *value = decode(bytes, type, p->big_endian);
        return bytes != NULL;
    }
    const char *word;
    size_t size;
    if (!cursor_word(&p->cursor, &word, &size))
        return p->reader->status
                   ? false
                   : reader_fail(p->reader, cursor_offset(&p->cursor), "expected a number, the file ends");
    const char *at = word;
    if (!number_parse(&at, word + size, value) || at != word + size)
        return reader_fail(p->reader, p->cursor.line_offset, "expected a number");
    return true;
}

/* Where the value that was read last stands. */
static uint64_t value_offset(const struct ply *p, enum ply_type type)
{
    return p->ascii ? p->cursor.line_offset : cursor_offset(&p->cursor) - type_sizes[type];
}

static bool read_list(struct ply *p, const struct property *q)
{
    double count = 0, index = 0;
    if (!read_value(p, q->count_type, &count))
        return false;
    if (!(count >= 0 && count <= INT32_MAX))
        return reader_fail(p->reader, value_offset(p, q->count_type), "a list of %.0f items", count);
    int32_t first = 0, previous = 0;
    for (int32_t i = 0; i < (int32_t)count; i++) {
        if (!read_value(p, q->type, &index))
            return false;
        if (!q->is_faces)
            continue;
        if (!(index >= 0 && index < (double)p->vertex_count))
            return reader_fail(p->reader, value_offset(p, q->type), "vertex %.0f of %" PRIu64, index,
                               p->vertex_count);
        const int32_t vertex = (int32_t)index;
        if (i == 0)
            first = vertex;
        if (i >= 2) {
            int32_t *face = list_add(&p->faces);
            if (!face)
                return reader_out_of_memory(p->reader);
            face[0] = first;
            face[1] = previous;
            face[2] = vertex;
        }
        previous = vertex;
    }
    return true;
}

static void store_mesh_vertex(const struct ply *p, uint64_t i, const double *row)
{
    const struct fel_mesh *m = p->mesh;
    for (size_t k = 0; k < 3; k++)
        m->positions[3 * i + k] = (float)row[SLOT_X + k];
    for (size_t k = 0; k < 3 && m->normals; k++)
        m->normals[3 * i + k] = (float)row[SLOT_NX + k];
    for (size_t k = 0; k < 4 && m->colors; k++)
        m->colors[4 * i + k] = p->has[SLOT_RED + k] ? (float)row[SLOT_RED + k] : 1.0F;
    if (m->uvs) {
        m->uvs[2 * i] = (float)row[SLOT_U];
        m->uvs[2 * i + 1] = (float)(1 - row[SLOT_U + 1]);
    }
}

static void store_gaussian(const struct ply *p, uint64_t i, const double *row)
{
    const struct fel_gaussians *g = p->gaussians;
    const size_t k_count = (size_t)(g->sh_degree + 1) * (size_t)(g->sh_degree + 1);
    for (size_t k = 0; k < 3; k++) {
        g->positions[3 * i + k] = (float)row[SLOT_X + k];
        g->log_scales[3 * i + k] = (float)row[SLOT_SCALE + k];
        g->sh[3 * k_count * i + k] = (float)row[SLOT_DC + k];
        for (size_t c = 1; c < k_count; c++) /* the file has all of red, then green, then blue */
            g->sh[3 * k_count * i + 3 * c + k] = (float)row[SLOT_REST + (size_t)k * (k_count - 1) + c - 1];
    }
    for (size_t k = 0; k < 4; k++)
        g->rotations[4 * i + k] = (float)row[SLOT_ROTATION + k];
    g->logits[i] = (float)row[SLOT_OPACITY];
}

static bool read_element(struct ply *p, const struct element *e)
{
    double row[SLOT_COUNT] = {0};
    if (!e->property_count)
        return true; /* rows of nothing, however many */
    for (uint64_t i = 0; i < e->count; i++) {
        for (size_t k = 0; k < e->property_count; k++) {
            const struct property *q = e->properties + k;
            double value = 0;
            if (q->count_type) {
                if (!read_list(p, q))
                    return false;
                continue;
            }
            if (!read_value(p, q->type, &value))
                return false;
            if (q->slot < 0)
                continue;
            const bool color = q->slot >= SLOT_RED && q->slot < SLOT_RED + 4;
            row[q->slot] = color && q->type == PLY_U8    ? value / 255
                           : color && q->type == PLY_U16 ? value / 65535
                                                         : value;
        }
        if (e->is_vertex && p->gaussians)
            store_gaussian(p, i, row);
        else if (e->is_vertex)
            store_mesh_vertex(p, i, row);
    }
    return true;
}

static bool make_gaussians(struct ply *p, fel_asset *asset)
{
    int rest = 0;
    while (rest < 45 && p->has[SLOT_REST + rest])
        rest++;
    const int degree = rest == 0 ? 0 : rest == 9 ? 1 : rest == 24 ? 2 : rest == 45 ? 3 : -1;
    if (degree < 0)
        return reader_fail(p->reader, 0, "expected 0, 9, 24 or 45 properties f_rest_*, got %d", rest);
    p->gaussians = memory_array(&p->reader->memory, 1, sizeof *p->gaussians);
    if (!p->gaussians)
        return reader_out_of_memory(p->reader);
    asset->gaussians = p->gaussians;
    return gaussians_alloc(p->reader, p->gaussians, (int64_t)p->vertex_count, degree);
}

static bool make_mesh(struct ply *p, fel_asset *asset)
{
    struct memory *m = &p->reader->memory;
    const size_t v = (size_t)p->vertex_count;
    const bool normals = p->has[3] && p->has[4] && p->has[5], colors = p->has[6] && p->has[7] && p->has[8],
               uvs = p->has[10] && p->has[11];
    if (v && (!p->has[0] || !p->has[1] || !p->has[2]))
        return reader_fail(p->reader, 0, "expected the vertex properties x, y and z");
    asset->meshes = p->mesh = memory_array(m, 1, sizeof *p->mesh);
    if (!p->mesh)
        return reader_out_of_memory(p->reader);
    asset->mesh_count = 1;
    p->mesh->material = -1;
    p->mesh->vertex_count = (int64_t)v;
    p->mesh->positions = memory_array(m, v, 12);
    p->mesh->normals = normals ? memory_array(m, v, 12) : NULL;
    p->mesh->colors = colors ? memory_array(m, v, 16) : NULL;
    p->mesh->uvs = uvs ? memory_array(m, v, 8) : NULL;
    const bool good = p->mesh->positions && (!normals || p->mesh->normals) && (!colors || p->mesh->colors) &&
                      (!uvs || p->mesh->uvs);
    return good ? true : reader_out_of_memory(p->reader);
}

bool ply_read(struct reader *r, fel_asset *asset)
{
    struct ply p = {.reader = r, .faces = {.item_size = 3 * sizeof(int32_t), .memory = &r->memory}};
    if (!cursor_open(&p.cursor, r, 0))
        return false;
    bool good = read_header(&p) && check_counts(&p);
    const bool gaussians = p.has[SLOT_DC] && p.has[SLOT_OPACITY] && p.has[SLOT_SCALE] && p.has[SLOT_ROTATION];
    good = good && (gaussians ? make_gaussians(&p, asset) : make_mesh(&p, asset));
    for (size_t i = 0; i < p.element_count && good; i++)
        good = read_element(&p, p.elements + i);
    cursor_close(&p.cursor);
    if (good && p.mesh) {
        p.mesh->face_count = (int64_t)p.faces.count;
        p.mesh->faces = list_take(&p.faces);
        good = p.mesh->faces ? true : reader_out_of_memory(r);
    }
    return good;
}

/* ---- writing */

struct ply_out {
    struct output *output;
    int32_t encoding;
};

static void put_u32(const struct ply_out *w, uint32_t value)
{
    if (w->encoding == FEL_PLY_BIG_ENDIAN)
        value = value >> 24 | (value >> 8 & 0xFF00) | (value << 8 & 0xFF0000) | value << 24;
    output_u32le(w->output, value);
}

static void put_float(const struct ply_out *w, float value)
{
    if (w->encoding == FEL_PLY_ASCII) {
        output_float(w->output, value, ' ');
        return;
    }
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_u32(w, bits);
}

static void put_byte(const struct ply_out *w, unsigned value)
{
    if (w->encoding == FEL_PLY_ASCII)
        output_text(w->output, "%u ", value);
    else
        output_bytes(w->output, &(uint8_t){(uint8_t)value}, 1);
}

static void end_row(const struct ply_out *w)
{
    if (w->encoding == FEL_PLY_ASCII)
        output_bytes(w->output, "\n", 1);
}

static void put_head(struct output *o, int32_t encoding)
{
    static const char *const names[] = {"binary_little_endian", "binary_big_endian", "ascii"};
    output_text(o, "ply\nformat %s 1.0\ncomment felloe\n", names[encoding]);
}

static void put_gaussians(const struct ply_out *w, const struct fel_gaussians *g)
{
    struct output *o = w->output;
    const size_t k = (size_t)(g->sh_degree + 1) * (size_t)(g->sh_degree + 1);
    put_head(o, w->encoding);
    output_text(o, "element vertex %" PRId64 "\n", g->count);
    static const char *const before[] = {"x", "y", "z", "nx", "ny", "nz", "f_dc_0", "f_dc_1", "f_dc_2"};
    static const char *const after[] = {"opacity", "scale_0", "scale_1", "scale_2",
                                        "rot_0",   "rot_1",   "rot_2",   "rot_3"};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        output_text(o, "property float %s\n", before[i]);
    for (size_t i = 0; i < 3 * (k - 1); i++)
        output_text(o, "property float f_rest_%zu\n", i);
    for (size_t i = 0; i < sizeof after / sizeof *after; i++)
        output_text(o, "property float %s\n", after[i]);
    output_text(o, "end_header\n");
    for (int64_t i = 0; i < g->count; i++) {
        const float *sh = g->sh + 3 * k * (size_t)i;
        for (int c = 0; c < 3; c++)
            put_float(w, g->positions[3 * i + c]);
        for (int c = 0; c < 3; c++)
            put_float(w, 0); /* normals, which viewers expect and nobody reads */
        for (size_t c = 0; c < 3; c++)
            put_float(w, sh[c]);
        for (size_t c = 0; c < 3; c++)
            for (size_t j = 1; j < k; j++)
                put_float(w, sh[3 * j + c]);
        put_float(w, g->logits[i]);
        for (int c = 0; c < 3; c++)
            put_float(w, g->log_scales[3 * i + c]);
        for (int c = 0; c < 4; c++)
            put_float(w, g->rotations[4 * i + c]);
        end_row(w);
    }
}

static unsigned to_byte(float value) { return value > 0 ? (unsigned)lroundf(fminf(value, 1) * 255) : 0; }

static void put_mesh_vertices(const struct ply_out *w, const struct fel_mesh *m, bool normals, bool uvs,
                              bool colors)
{
    for (int64_t i = 0; i < m->vertex_count; i++) {
        for (int k = 0; k < 3; k++)
            put_float(w, m->positions[3 * i + k]);
        for (int k = 0; k < 3 && normals; k++)
            put_float(w, m->normals[3 * i + k]);
        if (uvs) {
            put_float(w, m->uvs ? m->uvs[2 * i] : 0);
            put_float(w, m->uvs ? 1 - m->uvs[2 * i + 1] : 0);
        }
        for (int k = 0; k < 4 && colors; k++)
            put_byte(w, m->colors ? to_byte(m->colors[4 * i + k]) : 255);
        end_row(w);
    }
}

static fel_status put_meshes(const struct ply_out *w, const fel_asset *asset)
{
    struct output *o = w->output;
    int64_t vertices = 0, faces = 0, first = 0;
    bool normals = asset->mesh_count > 0, uvs = false, colors = false;
    for (int64_t i = 0; i < asset->mesh_count; i++) {
        const struct fel_mesh *m = asset->meshes + i;
        vertices += m->vertex_count;
        faces += m->face_count;
        normals = normals && m->normals;
        uvs = uvs || m->uvs;
        colors = colors || m->colors;
    }
    if (vertices > INT32_MAX)
        return status_fail(FEL_INVALID_ARGUMENT, "expected at most 2^31 - 1 vertices in a PLY, got %" PRId64,
                           vertices);
    put_head(o, w->encoding);
    output_text(o, "element vertex %" PRId64 "\nproperty float x\nproperty float y\nproperty float z\n",
                vertices);
    if (normals)
        output_text(o, "property float nx\nproperty float ny\nproperty float nz\n");
    if (uvs)
        output_text(o, "property float s\nproperty float t\n");
    if (colors)
        output_text(o,
                    "property uchar red\nproperty uchar green\nproperty uchar blue\nproperty uchar alpha\n");
    output_text(o, "element face %" PRId64 "\nproperty list uchar int vertex_indices\nend_header\n", faces);
    for (int64_t i = 0; i < asset->mesh_count; i++)
        put_mesh_vertices(w, asset->meshes + i, normals, uvs, colors);
    for (int64_t i = 0; i < asset->mesh_count; i++) {
        const struct fel_mesh *m = asset->meshes + i;
        for (int64_t f = 0; f < m->face_count; f++) {
            put_byte(w, 3);
            for (int k = 0; k < 3; k++) {
                const uint32_t corner = (uint32_t)(first + m->faces[3 * f + k]);
                if (w->encoding == FEL_PLY_ASCII)
                    output_text(o, "%" PRIu32 " ", corner);
                else
                    put_u32(w, corner);
            }
            end_row(w);
        }
        first += m->vertex_count;
    }
    return FEL_OK;
}

fel_status ply_write(struct output *o, const fel_asset *asset, int32_t encoding)
{
    const struct ply_out w = {.output = o, .encoding = encoding};
    if (!asset->gaussians)
        return put_meshes(&w, asset);
    put_gaussians(&w, asset->gaussians);
    return FEL_OK;
}
