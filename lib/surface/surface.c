/* surface/surface.c: marching cubes on the CPU, and the launches of surface.cu. Both go through the same passes over
 * the same bitmap (surface_math.h): classify, count, scan, emit. */
#include "device/device.h"

#include <felloe/surface.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "surface/surface_math.h"

extern const struct device_module SURFACE_MODULE;

enum { CLASSIFY_THREADS = 256, CLASSIFY_WORDS = 32, SCAN_THREADS = 1024 }; /* as in surface.cu */

struct fel_surface {
    fel_context *ctx;
    struct surface_args args;
    struct fel_surface_size size;
    void *scratch;        /* bits, counts and totals in one piece */
    int64_t active_count; /* blocks that emit something */
    int slab;
    int64_t shape[3]; /* of the volume, without the closing layer */
};

/* ---- classify */

static unsigned pack_word(const struct surface_args *a, const float *values, int count)
{
    unsigned bits = 0;
    int i = 0;
#if defined(__SSE2__)
    const __m128 level = _mm_set1_ps(a->level);
    for (; i + 4 <= count; i += 4) {
        const __m128 v = _mm_loadu_ps(values + i);
        const __m128 below = a->equal_is_below ? _mm_cmple_ps(v, level) : _mm_cmplt_ps(v, level);
        bits |= (unsigned)_mm_movemask_ps(below) << i;
    }
#endif
    for (; i < count; i++)
        bits |= (unsigned)surface_is_below(a, values[i]) << i;
    return bits;
}

static void classify_rows(const void *context, int64_t first, int64_t last)
{
    const struct surface_args *a = context;
    for (int64_t row = first; row < last; row++) {
        const int z = (int)(row / a->height), y = (int)(row % a->height);
        for (int word = 0; word < a->words; word++) {
            const int x = 32 * word, count = a->width - x < 32 ? a->width - x : 32;
            float values[32];
            const float *from = values;
            if (!a->pad && !a->half)
                from = (const float *)a->volume + row * a->width + x;
            else
                for (int i = 0; i < count; i++)
                    values[i] = surface_sample(a, x + i, y, z);
            a->bits[row * a->words + word] = pack_word(a, from, count);
        }
    }
}

/* ---- count and scan */

struct word_place {
    int y, z, word;
};

static struct word_place place_of(const struct surface_args *a, int64_t index)
{
    const int64_t row = index / a->words;
    return (struct word_place){(int)(row % a->height), (int)(row / a->height), (int)(index % a->words)};
}

static void advance(const struct surface_args *a, struct word_place *p)
{
    if (++p->word < a->words)
        return;
    p->word = 0;
    if (++p->y < a->height)
        return;
    p->y = 0;
    p->z++;
}

/* The position of the lowest set bit. */
static int lowest(unsigned mask) { return (int)SURFACE_POPCOUNT((mask & (0u - mask)) - 1); }

static void count_blocks(const void *context, int64_t first, int64_t last)
{
    const struct surface_args *a = context;
    for (int64_t block = first; block < last; block++) {
        const int64_t begin = block * SURFACE_BLOCK;
        const int64_t end = begin + SURFACE_BLOCK < a->word_count ? begin + SURFACE_BLOCK : a->word_count;
        unsigned count = 0;
        struct word_place p = place_of(a, begin);
        for (int64_t index = begin; index < end; index++, advance(a, &p)) {
            struct surface_rows rows;
            a->local[index] = count;
            const struct surface_edges e = surface_word_edges(a, p.y, p.z, p.word);
            if (e.x | e.y | e.z)
                count += surface_edge_count(&e);
            for (unsigned cells = surface_word_cells(a, p.y, p.z, p.word, &rows); cells; cells &= cells - 1)
                count += (unsigned)(surface_table[surface_case(&rows, lowest(cells))] >> 60) << 16;
        }
        a->block_counts[block] = count;
    }
}

static void scan_blocks(const struct surface_args *a)
{
    int64_t vertices = 0, faces = 0, active = 0;
    for (int64_t block = 0; block < a->block_count; block++) {
        a->block_base[block] = (struct surface_base){vertices, faces};
        if (a->block_counts[block])
            a->active[active++] = (int)block;
        vertices += a->block_counts[block] & 0xFFFFu;
        faces += a->block_counts[block] >> 16;
    }
    const int64_t plane = (int64_t)a->height * a->words;
    a->totals[0] = vertices;
    a->totals[1] = faces;
    a->totals[2] = a->own_first ? surface_vertex_base(a, a->own_first * plane) : 0;
    a->totals[3] = a->next_plane ? surface_vertex_base(a, a->next_plane * plane) : 0;
    a->totals[4] = active;
}

/* ---- emit */

static void emit_word(const struct surface_args *a, const struct word_place *p, int64_t *vertex,
                      int64_t *face)
{
    const struct surface_edges e = surface_word_edges(a, p->y, p->z, p->word);
    for (unsigned left = e.x | e.y | e.z; left; left &= left - 1) {
        const int bit = lowest(left), x = 32 * p->word + bit;
        const unsigned has[3] = {e.x >> bit & 1u, e.y >> bit & 1u, e.z >> bit & 1u};
        for (int axis = 0; axis < 3; axis++) {
            if (!has[axis])
                continue;
            if (*vertex >= 0)
                surface_put_vertex(a, x, p->y, p->z, axis, *vertex);
            ++*vertex;
        }
    }
    struct surface_rows rows;
    for (unsigned cells = surface_word_cells(a, p->y, p->z, p->word, &rows); cells; cells &= cells - 1) {
        const int bit = lowest(cells);
        *face += surface_put_faces(a, 32 * p->word + bit, p->y, p->z, surface_case(&rows, bit), *face);
    }
}

static void emit_blocks(const void *context, int64_t first, int64_t last)
{
    const struct surface_args *a = context;
    for (int64_t i = first; i < last; i++) {
        const int64_t block = a->active[i];
        const int64_t begin = block * SURFACE_BLOCK;
        const int64_t end = begin + SURFACE_BLOCK < a->word_count ? begin + SURFACE_BLOCK : a->word_count;
        int64_t vertex = a->block_base[block].vertices - a->skipped, face = a->block_base[block].faces;
        struct word_place p = place_of(a, begin);
        for (int64_t index = begin; index < end; index++, advance(a, &p))
            emit_word(a, &p, &vertex, &face);
    }
}

static void gradient_rows(const void *context, int64_t first, int64_t last)
{
    const struct surface_args *a = context;
    const int w = a->width - 2 * a->pad, h = a->height - 2 * a->pad;
    for (int64_t row = first; row < last; row++)
        for (int x = 0; x < w; x++)
            a->grad_volume[row * w + x] =
                surface_sample_gradient(a, x + a->pad, (int)(row % h) + a->pad, (int)(row / h) + a->pad);
}

/* ---- begin */

static fel_status check_options(const struct fel_surface_options *given, struct fel_surface_options *o)
{
    *o = (struct fel_surface_options){.size = sizeof *o};
    if (!given)
        return FEL_OK;
    if (given->size < offsetof(struct fel_surface_options, first_vertex))
        return status_fail(FEL_INVALID_ARGUMENT,
                           "options: expected size to be sizeof(struct fel_surface_options), got %zu",
                           given->size);
    memcpy(o, given, given->size < sizeof *o ? given->size : sizeof *o);
    if (o->first_plane < 0 || o->first_vertex < 0)
        return status_fail(FEL_INVALID_ARGUMENT,
                           "options: expected first_plane and first_vertex of at least 0");
    if (o->closed && (o->continued || o->open))
        return status_fail(FEL_INVALID_ARGUMENT, "options: closed is for whole volumes, not for slabs");
    return FEL_OK;
}

/* Granlund & Montgomery 1994. d of 0 divides nothing, as there are no words then. */
static struct surface_divisor divisor_of(unsigned d)
{
    struct surface_divisor out = {0, 0};
    while ((UINT64_C(1) << out.shift) < d)
        out.shift++;
    if (d)
        out.multiplier = (unsigned)((((UINT64_C(1) << out.shift) - d) << 32) / d + 1);
    return out;
}

/* Sizes, ranges of planes, signs: all of args but the pointers to scratch. */
static fel_status fill_args(const DLTensor *volume, double level, const struct fel_surface_options *o,
                            struct fel_surface *s)
{
    struct surface_args *a = &s->args;
    const int pad = o->closed ? 1 : 0;
    for (int k = 0; k < 3; k++) {
        s->shape[k] = volume->shape[k];
        if (s->shape[k] > INT32_MAX / 2)
            return status_fail(FEL_INVALID_SHAPE, "volume: expected axes below 2^30, got %" PRId64,
                               s->shape[k]);
    }
    const int flip = (o->inside_above != 0) != (o->reverse_columns != 0);
    *a = (struct surface_args){.volume = tensor_data(volume),
                               .first_vertex = o->first_vertex,
                               .level = (float)level,
                               .pad_value = o->inside_above ? -INFINITY : INFINITY,
                               .pad = pad,
                               .half = volume->dtype.bits == 16,
                               .equal_is_below = o->equal_is_below != 0,
                               .reverse_columns = o->reverse_columns != 0,
                               .flip = flip,
                               .normal_sign = o->inside_above ? -1.0F : 1.0F,
                               .depth = (int)s->shape[0] + 2 * pad,
                               .height = (int)s->shape[1] + 2 * pad,
                               .width = (int)s->shape[2] + 2 * pad,
                               .first_plane = o->first_plane};
    a->words = (a->width + 31) / 32;
    a->own_first = o->continued ? 1 : 0;
    a->own_end = o->open ? a->depth - 2 : a->depth;
    a->cell_end = o->open ? a->depth - 3 : a->depth - 1;
    a->next_plane = o->open ? a->depth - 3 : 0;
    a->word_count = (long long)a->depth * a->height * a->words;
    a->block_count = (a->word_count + SURFACE_BLOCK - 1) / SURFACE_BLOCK;
    s->slab = o->continued || o->open;
    if (a->word_count > INT32_MAX) /* 2^36 samples: kernels find a word's row in 32 bits */
        return status_fail(FEL_INVALID_SHAPE,
                           "volume: expected fewer than 2^31 words of 32 samples, got %lld", a->word_count);
    a->by_words = divisor_of((unsigned)a->words);
    a->by_height = divisor_of((unsigned)a->height);
    if (o->open && a->depth < 4)
        return status_fail(FEL_INVALID_SHAPE, "volume: expected at least 4 planes in an open slab, got %d",
                           a->depth);
    return FEL_OK;
}

/* Takes size bytes, rounded up to 16, from a piece of scratch; at is NULL while only the size is asked for. */
static void *take(unsigned char *at, size_t *used, size_t size)
{
    void *piece = at ? at + *used : NULL;
    *used += (size + 15) & ~(size_t)15;
    return piece;
}

static size_t place_scratch(struct surface_args *a, unsigned char *at)
{
    const size_t blocks = (size_t)a->block_count, words = (size_t)a->word_count;
    size_t used = 0;
    a->totals = take(at, &used, SURFACE_TOTALS * sizeof *a->totals);
    a->block_base = take(at, &used, blocks * sizeof *a->block_base);
    a->block_counts = take(at, &used, blocks * sizeof *a->block_counts);
    a->active = take(at, &used, blocks * sizeof *a->active);
    a->bits = take(at, &used, words * sizeof *a->bits);
    a->local = take(at, &used, words * sizeof *a->local);
    return used;
}

static fel_status count_surface(struct fel_surface *s, long long totals[SURFACE_TOTALS])
{
    const struct surface_args *a = &s->args;
    fel_status status;
    if (!context_on_cuda(s->ctx)) {
        status = pool_for(s->ctx, (int64_t)a->depth * a->height, 64, classify_rows, a);
        if (!status)
            status = pool_for(s->ctx, a->block_count, 4, count_blocks, a);
        if (!status) {
            scan_blocks(a);
            memcpy(totals, a->totals, SURFACE_TOTALS * sizeof *totals);
        }
        return status;
    }
    const int64_t classify_threads = (a->word_count + CLASSIFY_WORDS - 1) / CLASSIFY_WORDS * 32;
    status = device_launch(s->ctx, &SURFACE_MODULE, "surface_classify",
                           grid_1d(classify_threads, CLASSIFY_THREADS), a, sizeof *a);
    if (!status)
        status = device_launch(s->ctx, &SURFACE_MODULE, "surface_count",
                               grid_1d(a->block_count * SURFACE_BLOCK, SURFACE_BLOCK), a, sizeof *a);
    if (!status)
        status = device_launch(s->ctx, &SURFACE_MODULE, "surface_scan", grid_1d(a->block_count, SCAN_THREADS),
                               a, sizeof *a);
    if (!status)
        status = device_read(s->ctx, totals, a->totals, SURFACE_TOTALS * sizeof *totals);
    return status;
}

fel_status fel_surface_begin(fel_context *ctx, const DLTensor *volume, double level,
                             const struct fel_surface_options *options, fel_surface **surface,
                             struct fel_surface_size *size)
{
    struct fel_surface_options o;
    if (!surface || !size)
        return status_fail(FEL_INVALID_ARGUMENT, "%s: expected a pointer, got NULL",
                           surface ? "size" : "surface");
    const struct tensor_rule rules[] = {{"volume", volume, F32 | F16, "d h w"}};
    struct dims n = {{0}};
    fel_status status = tensors_expect(ctx, rules, COUNT(rules), &n);
    if (!status)
        status = check_options(options, &o);
    if (status)
        return status;
    if (!isfinite(level) || !isfinite((float)level))
        return status_fail(FEL_INVALID_ARGUMENT, "level: expected a finite float32, got %g", level);
    struct fel_surface *s = calloc(1, sizeof *s);
    if (!s)
        return status_fail(FEL_OUT_OF_MEMORY, "%zu bytes could not be allocated", sizeof *s);
    s->ctx = ctx;
    status = fill_args(volume, level, &o, s);
    long long totals[SURFACE_TOTALS] = {0};
    if (!status && s->args.word_count) {
        status = context_alloc(ctx, place_scratch(&s->args, NULL), &s->scratch);
        if (!status) {
            (void)place_scratch(&s->args, s->scratch);
            status = count_surface(s, totals);
        }
    }
    if (status) {
        fel_surface_end(s);
        return status;
    }
    s->args.skipped = totals[2];
    s->active_count = totals[4];
    s->size = (struct fel_surface_size){.vertices = totals[0] - totals[2],
                                        .faces = totals[1],
                                        .next_vertex = o.first_vertex + (o.open ? totals[3] : totals[0])};
    *size = s->size;
    *surface = s;
    return FEL_OK;
}

void fel_surface_end(fel_surface *surface)
{
    if (!surface)
        return;
    context_free(surface->ctx, surface->scratch);
    free(surface);
}

/* ---- emit and backward */

static fel_status expect_count(const char *name, const DLTensor *t, int64_t expected)
{
    if (!t || t->shape[0] == expected)
        return FEL_OK;
    return status_fail(FEL_INVALID_SHAPE,
                       "%s: expected [%" PRId64 ", 3], as fel_surface_begin() counted, got [%" PRId64 ", 3]",
                       name, expected, t->shape[0]);
}

fel_status fel_surface_emit(fel_surface *surface, DLTensor *vertices, DLTensor *faces, DLTensor *normals)
{
    if (!surface)
        return status_fail(FEL_INVALID_ARGUMENT, "surface: expected a pointer, got NULL");
    const struct tensor_rule rules[] = {{"vertices", vertices, F32, "v 3"},
                                        {"faces", faces, I32 | I64, "f 3"},
                                        {"normals", normals, F32 | OPTIONAL, "v 3"}};
    struct dims n = {{0}};
    fel_status status = tensors_expect(surface->ctx, rules, COUNT(rules), &n);
    if (!status)
        status = expect_count("vertices", vertices, surface->size.vertices);
    if (!status)
        status = expect_count("faces", faces, surface->size.faces);
    if (status)
        return status;
    struct surface_args a = surface->args;
    const int64_t last = a.first_vertex + a.skipped + surface->size.vertices;
    if (faces->dtype.bits == 32 && last > INT32_MAX)
        return status_fail(FEL_OVERFLOW,
                           "faces: expected int64, an index up to %" PRId64 " needs more than int32", last);
    a.vertices = tensor_data(vertices);
    a.normals = normals ? tensor_data(normals) : NULL;
    a.faces32 = faces->dtype.bits == 32 ? tensor_data(faces) : NULL;
    a.faces64 = faces->dtype.bits == 64 ? tensor_data(faces) : NULL;
    if (!surface->size.vertices && !surface->size.faces)
        return FEL_OK;
    if (!context_on_cuda(surface->ctx))
        return pool_for(surface->ctx, surface->active_count, 4, emit_blocks, &a);
    return device_launch(surface->ctx, &SURFACE_MODULE, "surface_emit",
                         grid_1d(surface->active_count * SURFACE_BLOCK, SURFACE_BLOCK), &a, sizeof a);
}

fel_status fel_surface_backward(fel_surface *surface, const DLTensor *grad_vertices, DLTensor *grad_volume)
{
    if (!surface)
        return status_fail(FEL_INVALID_ARGUMENT, "surface: expected a pointer, got NULL");
    const struct tensor_rule rules[] = {{"grad_vertices", grad_vertices, F32, "v 3"},
                                        {"grad_volume", grad_volume, F32, "d h w"}};
    struct dims n = {{0}};
    fel_status status = tensors_expect(surface->ctx, rules, COUNT(rules), &n);
    if (!status)
        status = expect_count("grad_vertices", grad_vertices, surface->size.vertices);
    if (status)
        return status;
    if (surface->slab)
        return status_fail(FEL_INVALID_ARGUMENT, "surface: expected a whole volume, got a slab");
    for (int k = 0; k < 3; k++)
        if (grad_volume->shape[k] != surface->shape[k])
            return status_fail(FEL_INVALID_SHAPE,
                               "grad_volume: expected the volume's shape [%" PRId64 ", %" PRId64 ", %" PRId64
                               "]",
                               surface->shape[0], surface->shape[1], surface->shape[2]);
    struct surface_args a = surface->args;
    a.grad_vertices = tensor_data(grad_vertices);
    a.grad_volume = tensor_data(grad_volume);
    if (!context_on_cuda(surface->ctx))
        return pool_for(surface->ctx, surface->shape[0] * surface->shape[1], 64, gradient_rows, &a);
    return device_launch(surface->ctx, &SURFACE_MODULE, "surface_gradient", grid_1d(a.word_count * 32, 256),
                         &a, sizeof a);
}

/* ---- grid sampling */

static void grid_elements(const void *context, int64_t first, int64_t last)
{
    for (int64_t i = first; i < last; i++)
        grid_element(context, i);
}

static void grid_gradients(const void *context, int64_t first, int64_t last)
{
    for (int64_t i = first; i < last; i++)
        grid_point_gradient(context, i);
}

static fel_status grid_args_of(const DLTensor *volume, const DLTensor *points, struct grid_args *a)
{
    *a = (struct grid_args){.volume = tensor_data(volume),
                            .points = tensor_data(points),
                            .channels = volume->shape[0],
                            .point_count = points->shape[0],
                            .half = volume->dtype.bits == 16,
                            .depth = (int)volume->shape[1],
                            .height = (int)volume->shape[2],
                            .width = (int)volume->shape[3]};
    for (int k = 1; k < 4; k++)
        if (volume->shape[k] > INT32_MAX || (volume->shape[k] == 0 && a->point_count && a->channels))
            return status_fail(FEL_INVALID_SHAPE, "volume: expected axes of 1 to 2^31 - 1, got %" PRId64,
                               volume->shape[k]);
    return FEL_OK;
}

fel_status fel_grid_sample(fel_context *ctx, const DLTensor *volume, const DLTensor *points,
                           int32_t extrapolate_below, DLTensor *out)
{
    const struct tensor_rule rules[] = {
        {"volume", volume, F32 | F16, "c d h w"}, {"points", points, F32, "p 3"}, {"out", out, F32, "p c"}};
    struct dims n = {{0}};
    struct grid_args a;
    fel_status status = tensors_expect(ctx, rules, COUNT(rules), &n);
    if (!status)
        status = grid_args_of(volume, points, &a);
    if (status)
        return status;
    a.extrapolate_below = extrapolate_below != 0;
    a.out = tensor_data(out);
    const int64_t elements = a.point_count * a.channels;
    if (!context_on_cuda(ctx))
        return pool_for(ctx, elements, 4096, grid_elements, &a);
    return device_launch(ctx, &SURFACE_MODULE, "surface_grid_sample", grid_1d(elements, 256), &a, sizeof a);
}

fel_status fel_grid_sample_backward(fel_context *ctx, const DLTensor *volume, const DLTensor *points,
                                    const DLTensor *grad_out, DLTensor *grad_points)
{
    const struct tensor_rule rules[] = {{"volume", volume, F32 | F16, "c d h w"},
                                        {"points", points, F32, "p 3"},
                                        {"grad_out", grad_out, F32, "p c"},
                                        {"grad_points", grad_points, F32, "p 3"}};
    struct dims n = {{0}};
    struct grid_args a;
    fel_status status = tensors_expect(ctx, rules, COUNT(rules), &n);
    if (!status)
        status = grid_args_of(volume, points, &a);
    if (status)
        return status;
    a.grad_out = tensor_data(grad_out);
    a.grad_points = tensor_data(grad_points);
    if (!context_on_cuda(ctx))
        return pool_for(ctx, a.point_count, 1024, grid_gradients, &a);
    return device_launch(ctx, &SURFACE_MODULE, "surface_grid_gradient", grid_1d(a.point_count, 256), &a,
                         sizeof a);
}
