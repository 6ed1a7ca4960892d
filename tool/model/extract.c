/* model/extract.c: from a volume in an .npy file (NumPy's format, versions 1 to 3) to a mesh with normals. */
#include "model/model.h"

#include <felloe/felloe.h>
#include <felloe/surface.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

struct npy {
    str descr;
    bool fortran;
    int64_t shape[3];
    int rank;
    span data;
};

/* The value of 'key' in the header, which is a Python dictionary of literals, from its first character on. */
static str header_value(str header, const char *key)
{
    for (size_t at = 0; at + strlen(key) + 2 < header.n; at++) {
        const size_t n = strlen(key);
        if ((header.p[at] == '\'' || header.p[at] == '"') && !memcmp(header.p + at + 1, key, n) &&
            header.p[at + 1 + n] == header.p[at]) {
            const str rest = str_trim_left(str_from_index(header, at + n + 2));
            return rest.n && rest.p[0] == ':' ? str_trim_left(str_from_index(rest, 1)) : (str){0};
        }
    }
    return (str){0};
}

static bool read_shape(str text, struct npy *out)
{
    if (!text.n || text.p[0] != '(')
        return false;
    for (size_t i = 1; i < text.n && text.p[i] != ')'; i++) {
        if (text.p[i] == ' ' || text.p[i] == ',')
            continue;
        uint64_t value;
        size_t end = i;
        while (end < text.n && text.p[end] >= '0' && text.p[end] <= '9')
            end++;
        if (out->rank == 3 || !str_to_u64(str_slice(text, i, end), &value) || value > INT32_MAX / 2)
            return false;
        out->shape[out->rank++] = (int64_t)value;
        i = end - 1;
    }
    return out->rank == 3;
}

static bool parse_npy(span file, struct npy *out)
{
    *out = (struct npy){0};
    if (file.n < 10 || memcmp(file.p, "\x93NUMPY", 6) != 0 || file.p[6] < 1 || file.p[6] > 3)
        return false;
    const size_t start = file.p[6] == 1 ? 10 : 12;
    const uint64_t length = file.p[6] == 1 ? span_u16le(file, 8) : span_u32le(file, 8);
    span header;
    if (!span_slice(file, start, length, &header))
        return false;
    const str text = str_from_span(header), descr = header_value(text, "descr");
    if (descr.n < 2 || (descr.p[0] != '\'' && descr.p[0] != '"'))
        return false;
    const size_t end = str_find_char(str_from_index(descr, 1), descr.p[0]);
    if (end == SIZE_MAX || !read_shape(header_value(text, "shape"), out))
        return false;
    out->descr = str_slice(descr, 1, 1 + end);
    out->fortran = str_starts(header_value(text, "fortran_order"), S("True"));
    return span_slice(file, start + length, file.n - start - length, &out->data);
}

static double number_at(const uint8_t *p, char kind, int size)
{
    union {
        float f;
        double d;
        int16_t i16;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
    } v;
    memcpy(&v, p, (size_t)size);
    if (kind == 'f')
        return size == 4 ? (double)v.f : v.d;
    if (kind == 'i')
        return size == 1 ? (double)(int8_t)*p : size == 2 ? v.i16 : size == 4 ? v.i32 : (double)v.i64;
    return size == 1 ? *p : size == 2 ? v.u16 : size == 4 ? v.u32 : (double)v.u64;
}

/* The array as a tensor: float32 and float16 as they are, anything else rounded to float32. */
static bool as_volume(arena *a, str path, const struct npy *n, DLTensor *out, findings *f)
{
    const struct place place = {.file = path};
    const str d = n->descr;
    const char kind = (char)(d.n == 3 ? d.p[1] : '\0');
    const int size = d.n == 3 ? d.p[2] - '0' : 0;
    const bool known = (kind == 'f' && (size == 2 || size == 4 || size == 8)) ||
                       ((kind == 'i' || kind == 'u') && (size == 1 || size == 2 || size == 4 || size == 8)) ||
                       (kind == 'b' && size == 1);
    if (!known || (d.p[0] == '>' && size > 1))
        return finding_fatal(f, 3, F615, place, "elements of type '%.*s' are not read",
                             STR_ARG(term_safe(a, d)));
    if (n->fortran)
        return finding_fatal(f, 3, F615, place, "the array is in Fortran order");
    const uint64_t count = (uint64_t)n->shape[0] * (uint64_t)n->shape[1];
    if (n->shape[2] && count > UINT64_MAX / 8 / (uint64_t)n->shape[2])
        return finding_fatal(f, 3, F615, place, "the array is too large");
    const uint64_t samples = count * (uint64_t)n->shape[2];
    if (n->data.n < samples * (uint64_t)size)
        return finding_fatal(f, 3, F615, place,
                             "%" PRIu64 " samples of %d bytes are expected, the file has %zu bytes of them",
                             samples, size, n->data.n);
    const bool direct = kind == 'f' && size <= 4 && (uintptr_t)n->data.p % 4 == 0;
    const void *bytes = n->data.p; /* only read, though a tensor's pointer is not const */
    void *values = NULL;
    if (direct)
        memcpy(&values, &bytes, sizeof values);
    else
        values = arena_array(a, float, (size_t)samples + 1);
    if (!values)
        return finding_fatal(f, 3, F006, place, "%" PRIu64 " samples are too many", samples);
    if (!direct && kind == 'f' && size == 2)
        memcpy(values, n->data.p, (size_t)samples * 2);
    for (uint64_t i = 0; i < samples && !direct && !(kind == 'f' && size == 2); i++)
        ((float *)values)[i] = (float)number_at(n->data.p + i * (uint64_t)size, kind, size);
    *out = (DLTensor){.data = values,
                      .device = {kDLCPU, 0},
                      .ndim = 3,
                      .dtype = {kDLFloat, kind == 'f' && size == 2 ? 16 : 32, 1}};
    return true;
}

/* ---- the mesh */

struct extracted { /* what model_extract gives out */
    fel_asset asset;
    struct fel_mesh mesh;
};

static fel_status make_surface(const DLTensor *volume, double level, const struct fel_surface_options *o,
                               struct fel_mesh *m)
{
    fel_context *ctx = NULL;
    fel_surface *surface = NULL;
    struct fel_surface_size size = {0};
    fel_status status = fel_context_create(NULL, &ctx);
    if (!status)
        status = fel_surface_begin(ctx, volume, level, o, &surface, &size);
    if (!status) {
        m->positions = malloc((size_t)size.vertices * 12 + 1);
        m->normals = malloc((size_t)size.vertices * 12 + 1);
        m->faces = malloc((size_t)size.faces * 12 + 1);
        m->vertex_count = size.vertices;
        m->face_count = size.faces;
        int64_t vertex_shape[2] = {size.vertices, 3}, face_shape[2] = {size.faces, 3};
        const DLTensor base = {
            .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat, 32, 1}, .shape = vertex_shape};
        DLTensor vertices = base, normals = base, faces = base;
        vertices.data = m->positions;
        normals.data = m->normals;
        faces.data = m->faces;
        faces.dtype.code = kDLInt;
        faces.shape = face_shape;
        status = m->positions && m->normals && m->faces
                     ? fel_surface_emit(surface, &vertices, &faces, &normals)
                     : FEL_OUT_OF_MEMORY;
    }
    fel_surface_end(surface);
    fel_context_free(ctx);
    return status;
}

static float half_value(uint16_t h)
{
    const float fraction = (float)(h & 1023) / 1024, sign = h >> 15 ? -1.0F : 1.0F;
    const int exponent = h >> 10 & 31;
    if (exponent == 31)
        return fraction > 0 ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexpf(1 + fraction, exponent - 15) : ldexpf(fraction, -14));
}

static float value_at(const DLTensor *v, int64_t i)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a volume that is not empty has data */
    return v->dtype.bits == 16 ? half_value(((const uint16_t *)v->data)[i]) : ((const float *)v->data)[i];
}

/* The field's range, and whether most of the volume's border is below the level. */
static bool border_is_below(const DLTensor *v, double level, float *low, float *high)
{
    int64_t below = 0, border = 0, i = 0;
    *low = INFINITY;
    *high = -INFINITY;
    for (int64_t z = 0; z < v->shape[0]; z++)
        for (int64_t y = 0; y < v->shape[1]; y++)
            for (int64_t x = 0; x < v->shape[2]; x++, i++) {
                const float value = value_at(v, i);
                *low = value < *low ? value : *low;
                *high = value > *high ? value : *high;
                if (z && y && x && z + 1 < v->shape[0] && y + 1 < v->shape[1] && x + 1 < v->shape[2])
                    continue;
                border++;
                below += (double)value < level;
            }
    return 2 * below > border;
}

static bool no_surface(struct place place, double level, float low, float high, findings *f)
{
    (void)finding_at(f, F614, place, (str){0}, "level %g, and the samples lie between %g and %g", level,
                     (double)low, (double)high);
    return false;
}

static void scale_mesh(struct fel_mesh *m, const DLTensor *v, double size)
{
    int64_t longest = 1;
    for (int k = 0; k < 3; k++)
        longest = v->shape[k] - 1 > longest ? v->shape[k] - 1 : longest;
    const double scale = size > 0 ? size / (double)longest : 1;
    for (int64_t i = 0; i < 3 * m->vertex_count; i++) {
        const double middle = size > 0 ? (double)(v->shape[2 - i % 3] - 1) / 2 : 0;
        /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): the emit wrote all of them */
        m->positions[i] = (float)(((double)m->positions[i] - middle) * scale);
    }
}

fel_asset *model_extract(arena *a, str path, const struct extract_options *o, double *level, findings *f)
{
    const struct place place = {.file = path};
    span file;
    if (!file_map(path, UINT64_MAX, &file, f))
        return NULL;
    struct npy n = {0};
    DLTensor volume = {0};
    struct extracted *x = calloc(1, sizeof *x);
    bool good = x && parse_npy(file, &n);
    if (!good)
        (void)finding_fatal(f, 3, F615, place, "expected an .npy file of three axes");
    good = good && as_volume(a, path, &n, &volume, f);
    if (good) {
        volume.shape = n.shape;
        *level = o->has_level ? o->level : 0;
        float low, high;
        const bool dense = border_is_below(&volume, *level, &low, &high);
        const struct fel_surface_options options = {
            .size = sizeof options, .inside_above = o->inside ? o->inside > 0 : dense, .closed = o->closed};
        x->mesh.material = -1;
        if (make_surface(&volume, *level, &options, &x->mesh))
            good = finding_fatal(f, 3, F615, place, "%s", fel_last_error());
        else if (!x->mesh.face_count)
            good = no_surface(place, *level, low, high, f);
    }
    file_unmap(file);
    if (good) {
        x->asset.meshes = &x->mesh;
        x->asset.mesh_count = 1;
        scale_mesh(&x->mesh, &volume, o->size);
        if (!o->keep_axes && fel_asset_orient(&x->asset, FEL_ORIENT_Z_UP_TO_Y_UP))
            good = false;
    }
    if (!good && x)
        model_extract_free(&x->asset);
    return good ? &x->asset : NULL;
}

void model_extract_free(fel_asset *asset)
{
    if (!asset)
        return;
    struct extracted *x = (struct extracted *)asset; /* its first member */
    free(x->mesh.positions);
    free(x->mesh.normals);
    free(x->mesh.faces);
    free(x);
}
