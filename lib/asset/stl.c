/* asset/stl.c: STL, binary and text. The format repeats each corner; equal positions become one vertex, so that what
 * was closed is closed again. Facet normals are not kept: they follow from the corners. */
#include "asset/asset.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { STL_HEADER = 84, STL_FACET = 50 };

struct stl {
    struct reader *reader;
    struct welder welder;
    struct list faces; /* int32_t[3] */
};

static bool add_facet(struct stl *s, float (*corners)[3])
{
    int32_t *face = list_add(&s->faces);
    if (!face)
        return reader_out_of_memory(s->reader);
    for (int i = 0; i < 3; i++) {
        uint32_t key[3], index;
        for (int k = 0; k < 3; k++)
            corners[i][k] += 0.0F; /* -0 becomes 0, so that the two weld */
        memcpy(key, corners[i], sizeof key);
        if (!welder_add(&s->welder, key, &index))
            return reader_out_of_memory(s->reader);
        face[i] = (int32_t)index;
    }
    return true;
}

static bool read_binary(struct stl *s, struct cursor *c, uint32_t facets)
{
    if (!cursor_take(c, STL_HEADER))
        return false;
    for (uint32_t f = 0; f < facets; f++) {
        const uint8_t *bytes = cursor_take(c, STL_FACET);
        if (!bytes)
            return false;
        float corners[3][3];
        for (size_t i = 0; i < 9; i++)
            corners[i / 3][i % 3] = get_f32le(bytes + 12 + 4 * i);
        if (!add_facet(s, corners))
            return false;
    }
    return true;
}

static bool word_is(const char *word, size_t size, const char *text)
{
    return size == strlen(text) && memcmp(word, text, size) == 0;
}

static bool read_corner(struct stl *s, struct cursor *c, const char *line, const char *at, const char *end,
                        float *corner)
{
    for (int k = 0; k < 3; k++) {
        double value;
        while (at < end && (*at == ' ' || *at == '\t'))
            at++;
        if (!number_parse(&at, end, &value))
            return reader_fail(s->reader, c->line_offset + (uint64_t)(at - line),
                               "line %" PRIu64 ": expected a number", c->line);
        corner[k] = (float)value;
    }
    return true;
}

static bool read_text(struct stl *s, struct cursor *c)
{
    const char *line;
    float corners[3][3];
    int count = 0;
    for (size_t size; cursor_line(c, &line, &size);) {
        const char *at = line, *end = line + size;
        while (at < end && (*at == ' ' || *at == '\t'))
            at++;
        const char *word = at;
        while (at < end && *at != ' ' && *at != '\t')
            at++;
        const size_t length = (size_t)(at - word);
        if (word_is(word, length, "vertex")) {
            if (count == 3)
                return reader_fail(s->reader, c->line_offset, "line %" PRIu64 ": a fourth corner", c->line);
            if (!read_corner(s, c, line, at, end, corners[count++]))
                return false;
        } else if (word_is(word, length, "endloop")) {
            if (count != 3)
                return reader_fail(s->reader, c->line_offset,
                                   "line %" PRIu64 ": expected three corners, got %d", c->line, count);
            count = 0;
            if (!add_facet(s, corners))
                return false;
        } else if (length && !word_is(word, length, "facet") && !word_is(word, length, "outer") &&
                   !word_is(word, length, "endfacet") && !word_is(word, length, "solid") &&
                   !word_is(word, length, "endsolid")) {
            return reader_fail(s->reader, c->line_offset,
                               "line %" PRIu64 ": expected a word of the STL format", c->line);
        }
    }
    return !s->reader->status;
}

bool stl_read(struct reader *r, fel_asset *asset)
{
    struct stl s = {.reader = r, .faces = {.item_size = 3 * sizeof(int32_t), .memory = &r->memory}};
    struct cursor c;
    uint8_t head[STL_HEADER] = {0};
    const size_t head_size = r->source->size < STL_HEADER ? (size_t)r->source->size : STL_HEADER;
    if (!source_read(r, 0, head, head_size) || !welder_open(&s.welder, &r->memory, 3))
        return r->status ? false : reader_out_of_memory(r);
    const uint32_t facets = get_u32le(head + 80);
    const uint64_t expected = STL_HEADER + (uint64_t)STL_FACET * facets;
    /* binary files may begin with "solid" too; the size decides */
    const bool text = r->source->size != expected && !memcmp(head, "solid", 5);
    if (!text && (head_size < STL_HEADER || r->source->size < expected))
        return reader_fail(r, head_size < STL_HEADER ? 0 : 80,
                           "expected %" PRIu64 " bytes for %" PRIu32 " facets, the file has %" PRIu64,
                           expected, facets, r->source->size);
    if (!cursor_open(&c, r, 0))
        return false;
    const bool good = text ? read_text(&s, &c) : read_binary(&s, &c, facets);
    cursor_close(&c);
    if (!good)
        return false;
    struct fel_mesh *mesh = memory_array(&r->memory, 1, sizeof *mesh);
    asset->meshes = mesh;
    asset->mesh_count = 1;
    if (!mesh)
        return reader_out_of_memory(r);
    mesh->material = -1;
    mesh->vertex_count = (int64_t)s.welder.keys.count;
    mesh->face_count = (int64_t)s.faces.count;
    mesh->faces = list_take(&s.faces);
    mesh->positions = list_take(&s.welder.keys);
    welder_close(&s.welder);
    return mesh->faces && mesh->positions ? true : reader_out_of_memory(r);
}

fel_status stl_write(struct output *o, const fel_asset *asset)
{
    int64_t facets = 0;
    for (int64_t i = 0; i < asset->mesh_count; i++)
        facets += asset->meshes[i].face_count;
    if (facets > UINT32_MAX)
        return status_fail(FEL_INVALID_ARGUMENT, "expected at most 2^32 - 1 facets in an STL, got %" PRId64,
                           facets);
    static const char header[80] = "felloe, binary STL";
    output_bytes(o, header, sizeof header);
    output_u32le(o, (uint32_t)facets);
    for (int64_t i = 0; i < asset->mesh_count; i++) {
        const struct fel_mesh *m = asset->meshes + i;
        for (int64_t f = 0; f < m->face_count; f++) {
            const float *a = m->positions + 3 * (int64_t)m->faces[3 * f],
                        *b = m->positions + 3 * (int64_t)m->faces[3 * f + 1],
                        *c = m->positions + 3 * (int64_t)m->faces[3 * f + 2];
            float n[3];
            for (int k = 0; k < 3; k++) {
                const int u = (k + 1) % 3, v = (k + 2) % 3;
                n[k] = (b[u] - a[u]) * (c[v] - a[v]) - (b[v] - a[v]) * (c[u] - a[u]);
            }
            const float length = sqrtf(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
            for (int k = 0; k < 3; k++)
                output_f32le(o, length > 0 ? n[k] / length : 0.0F);
            const float *corners[3] = {a, b, c};
            for (int k = 0; k < 9; k++)
                output_f32le(o, corners[k / 3][k % 3]);
            output_bytes(o, "\0", 2);
        }
    }
    return FEL_OK;
}
