/* tests/surface/field.h: volumes by formula, their meshes, and what can be counted on a mesh. */
#ifndef FIELD_H
#define FIELD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <felloe/surface.h>

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"

struct volume {
    int64_t shape[3]; /* d, h, w */
    float *values;
};

static inline struct volume volume_of(int d, int h, int w)
{
    struct volume v = {.shape = {d, h, w}};
    v.values = calloc((size_t)d * (size_t)h * (size_t)w + 1, sizeof *v.values);
    assert_non_null(v.values);
    return v;
}

/* Index coordinates, as doubles, to a value. */
typedef double field(double x, double y, double z, const double *numbers);

static inline struct volume sample_field(int d, int h, int w, field *f, const double *numbers)
{
    struct volume v = volume_of(d, h, w);
    for (int z = 0, i = 0; z < d; z++)
        for (int y = 0; y < h; y++)
            for (int x = 0; x < w; x++, i++)
                v.values[i] = (float)f(x, y, z, numbers);
    return v;
}

struct mesh {
    int64_t vertex_count, face_count;
    float *vertices, *normals;
    int32_t *faces;
    struct fel_surface_size size;
};

static inline DLTensor tensor_of(void *data, DLDataType type, int rank, int64_t *shape)
{
    return (DLTensor){.data = data, .device = {kDLCPU, 0}, .ndim = rank, .dtype = type, .shape = shape};
}

#define FLOAT32 ((DLDataType){kDLFloat, 32, 1})
#define INT32 ((DLDataType){kDLInt, 32, 1})

static inline struct mesh mesh_of(const struct volume *v, double level,
                                  const struct fel_surface_options *options)
{
    struct mesh m = {0};
    int64_t shape[3] = {v->shape[0], v->shape[1], v->shape[2]};
    DLTensor volume = tensor_of(v->values, FLOAT32, 3, shape);
    fel_surface *s = NULL;
    assert_int_equal(FEL_OK, fel_surface_begin(test_context(), &volume, level, options, &s, &m.size));
    m.vertex_count = m.size.vertices;
    m.face_count = m.size.faces;
    /* one more of each, which must stay as it is */
    m.vertices = malloc(((size_t)m.vertex_count + 1) * 12);
    m.normals = malloc(((size_t)m.vertex_count + 1) * 12);
    m.faces = malloc(((size_t)m.face_count + 1) * 12);
    assert_true(m.vertices && m.normals && m.faces);
    memset(m.vertices, 0xFF, ((size_t)m.vertex_count + 1) * 12);
    memset(m.normals, 0xFF, ((size_t)m.vertex_count + 1) * 12);
    memset(m.faces, 0xFF, ((size_t)m.face_count + 1) * 12);
    int64_t vertex_shape[2] = {m.vertex_count, 3}, face_shape[2] = {m.face_count, 3};
    DLTensor vertices = tensor_of(m.vertices, FLOAT32, 2, vertex_shape),
             normals = tensor_of(m.normals, FLOAT32, 2, vertex_shape),
             faces = tensor_of(m.faces, INT32, 2, face_shape);
    assert_int_equal(FEL_OK, fel_surface_emit(s, &vertices, &faces, &normals));
    fel_surface_end(s);
    for (int k = 0; k < 3; k++) {
        assert_true(isnan(m.vertices[3 * m.vertex_count + k]));
        assert_int_equal(-1, m.faces[3 * m.face_count + k]);
    }
    for (int64_t i = 0; i < 3 * m.vertex_count; i++)
        assert_true(isfinite(m.vertices[i]) && isfinite(m.normals[i]));
    return m;
}

static inline void mesh_free(struct mesh *m)
{
    free(m->vertices);
    free(m->normals);
    free(m->faces);
}

static inline int by_key(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

struct counts {
    int64_t euler;
    int64_t border;   /* edges with one face */
    bool oriented;    /* no directed edge twice: with border 0, every one has exactly one opposite */
    bool whole_faces; /* no face names a vertex twice */
};

static inline struct counts count_mesh(const struct mesh *m)
{
    struct counts c = {.oriented = true, .whole_faces = true};
    const size_t n = 3 * (size_t)m->face_count;
    uint64_t *directed = malloc((n + 1) * 8), *either = malloc((n + 1) * 8);
    assert_true(directed && either);
    for (size_t i = 0; i < n; i++) {
        const uint32_t a = (uint32_t)m->faces[i], b = (uint32_t)m->faces[i % 3 == 2 ? i - 2 : i + 1];
        assert_true(a < (uint64_t)m->vertex_count && b < (uint64_t)m->vertex_count);
        c.whole_faces = c.whole_faces && a != b;
        directed[i] = (uint64_t)a << 32 | b;
        either[i] = a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a;
    }
    qsort(directed, n, 8, by_key);
    qsort(either, n, 8, by_key);
    int64_t edges = 0;
    for (size_t i = 0; i < n; i++) {
        c.oriented = c.oriented && (i == 0 || directed[i] != directed[i - 1]);
        if (i && either[i] == either[i - 1])
            continue;
        edges++;
        size_t same = 1;
        while (i + same < n && either[i + same] == either[i])
            same++;
        c.border += same == 1;
        c.oriented = c.oriented && same <= 2;
    }
    c.euler = m->vertex_count - edges + m->face_count;
    free(directed);
    free(either);
    return c;
}

static inline void measure(const struct mesh *m, double *area, double *volume)
{
    *area = *volume = 0;
    for (int64_t f = 0; f < m->face_count; f++) {
        double p[3][3], n[3];
        for (int i = 0; i < 9; i++)
            p[i / 3][i % 3] = (double)m->vertices[3 * (int64_t)m->faces[3 * f + i / 3] + i % 3];
        for (int k = 0; k < 3; k++) {
            const int u = (k + 1) % 3, v = (k + 2) % 3;
            n[k] = (p[1][u] - p[0][u]) * (p[2][v] - p[0][v]) - (p[1][v] - p[0][v]) * (p[2][u] - p[0][u]);
        }
        *area += sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]) / 2;
        *volume += (p[0][0] * n[0] + p[0][1] * n[1] + p[0][2] * n[2]) / 6;
    }
}

#endif
