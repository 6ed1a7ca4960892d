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

enum { CLASSIFY_THREADS = 256, CLASSIFY_WORDS = 8, SCAN_THREADS = 1024 };

struct fel_surface {
    fel_context *ctx;
    struct surface_args args;
    struct fel_surface_size size;
    void *scratch; /* bits, counts and totals in one piece */
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
    int64_t vertices = 0, faces = 0;
    for (int64_t block = 0; block < a->block_count; block++) {
        a->block_vertices[block] = vertices;
        a->block_faces[block] = faces;
        vertices += a->block_counts[block] & 0xFFFFu;
        faces += a->block_counts[block] >> 16;
    }
    const int64_t plane = (int64_t)a->height * a->words;
    a->totals[0] = vertices;
    a->totals[1] = faces;
    a->totals[2] = a->own_first ? surface_vertex_base(a, a->own_first * plane) : 0;
    a->totals[3] = a->next_plane ? surface_vertex_base(a, a->next_plane * plane) : 0;
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
    for (int64_t block = first; block < last; block++) {
        if (!a->block_counts[block])
            continue;
        const int64_t begin = block * SURFACE_BLOCK;
        const int64_t end = begin + SURFACE_BLOCK < a->word_count ? begin + SURFACE_BLOCK : a->word_count;
        int64_t vertex = a->block_vertices[block] - a->skipped, face = a->block_faces[block];
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
