/* surface/surface_math.h: the arithmetic of marching cubes, valid C17 and CUDA. No host headers: NVRTC takes it as it is.
 *
 * Everything after the first pass works on a bitmap: one bit a sample, set when it is below the level, in rows of
 * 32-bit words. The edges that carry a vertex are exclusive ors of neighbouring rows, so the index of a vertex is a
 * count of bits before it: a stored count per word, and a popcount inside the word. No map from edges to indices is
 * kept, which is what makes the scratch 1/4 byte a sample instead of tens. */
#ifndef SURFACE_MATH_H
#define SURFACE_MATH_H

#ifdef __CUDACC__
#define SURFACE_INLINE __device__ __forceinline__
#define SURFACE_TABLE __device__ static const
#define SURFACE_POPCOUNT(x) ((unsigned)__popc(x))
#else
#define SURFACE_INLINE static inline
#define SURFACE_TABLE static const
SURFACE_INLINE unsigned surface_popcount(unsigned x)
{
    x -= x >> 1 & 0x55555555u;
    x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
    return ((x + (x >> 4)) & 0x0F0F0F0Fu) * 0x01010101u >> 24;
}
#define SURFACE_POPCOUNT(x) surface_popcount(x)
#endif

#include "surface_table.h"

enum {
    SURFACE_BLOCK = 256
}; /* words that share one entry of block_base: 256 * 32 * 5 faces still fit 16 bits */

struct surface_divisor { /* exact n / d for n below 2^31: (high half of n * multiplier, plus n) >> shift */
    unsigned multiplier;
    int shift;
};

struct surface_base {
    long long vertices, faces;
};

enum { SURFACE_TOTALS = 5 };

struct surface_args { /* what the CPU loops and the kernels both get */
    const void *volume;
    float *vertices, *normals;
    int *faces32;
    long long *faces64;
    const float *grad_vertices;
    float *grad_volume;
    unsigned *bits;                  /* [depth, height, words] */
    unsigned *local;                 /* per word: vertices before it in its block, faces before it << 16 */
    unsigned *block_counts;          /* of each block: vertices, faces << 16 */
    struct surface_base *block_base; /* before each block */
    int *active;                     /* blocks that have something, in order */
    long long
        *totals; /* vertices; faces; vertices before own_first; vertices before next_plane; active blocks */
    long long block_count, word_count;
    long long first_vertex; /* of the whole volume's numbering */
    long long skipped;      /* vertices of planes before own_first: numbered, not written */
    struct surface_divisor by_words, by_height;
    float level;
    float pad_value;                           /* of the layer round a closed volume */
    int pad;                                   /* 1 when closed: all sizes below count the layer */
    int half;                                  /* the volume is float16 */
    int equal_is_below, reverse_columns, flip; /* flip: corners 1 and 2 of a face change places */
    float normal_sign;
    int depth, height, width, words; /* samples along axes 0, 1, 2; words a row */
    int own_first,
        own_end;    /* planes whose vertices are numbered here are [0, own_end); written from own_first */
    int cell_end;   /* layers of cells that are written: [0, cell_end) */
    int next_plane; /* where the next slab begins */
    long long first_plane;
};

SURFACE_INLINE float surface_half(unsigned short h)
{
    const unsigned sign = (unsigned)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3FFu;
    union {
        unsigned bits;
        float value;
    } u;
    if (exponent == 0) { /* zero or subnormal: fraction * 2^-24 */
        u.value = (float)fraction * 5.9604644775390625e-8f;
        u.bits |= sign;
    } else {
        u.bits = sign | (exponent == 31 ? 0x7F800000u : (exponent + 112) << 23) | fraction << 13;
    }
    return u.value;
}

SURFACE_INLINE float surface_load(const struct surface_args *a, long long index)
{
    return a->half ? surface_half(((const unsigned short *)a->volume)[index])
                   : ((const float *)a->volume)[index];
}

SURFACE_INLINE float surface_sample(const struct surface_args *a, int x, int y, int z)
{
    const int pad = a->pad;
    x -= pad;
    y -= pad;
    z -= pad;
    const int w = a->width - 2 * pad, h = a->height - 2 * pad, d = a->depth - 2 * pad;
    if (pad && (x < 0 || y < 0 || z < 0 || x >= w || y >= h || z >= d))
        return a->pad_value;
    return surface_load(a, ((long long)z * h + y) * w + x);
}

SURFACE_INLINE int surface_is_below(const struct surface_args *a, float value)
{
    return value < a->level || (a->equal_is_below && value == a->level);
}

/* A row's word of the bitmap; rows and words outside the volume are empty. */
SURFACE_INLINE unsigned surface_bits(const struct surface_args *a, int y, int z, int word)
{
    if (y >= a->height || z >= a->depth || word >= a->words)
        return 0;
    return a->bits[((long long)z * a->height + y) * a->words + word];
}

struct surface_edges {
    unsigned x, y, z; /* bit i: the edge from sample i of the word along the axis carries a vertex */
};

/* Bits of the samples whose neighbour along x exists. */
SURFACE_INLINE unsigned surface_inner(const struct surface_args *a, int word)
{
    const int left = a->width - 1 - 32 * word;
    return left >= 32 ? 0xFFFFFFFFu : left <= 0 ? 0 : (1u << left) - 1;
}

SURFACE_INLINE unsigned surface_present(const struct surface_args *a, int word)
{
    const int left = a->width - 32 * word;
    return left >= 32 ? 0xFFFFFFFFu : (1u << left) - 1;
}

SURFACE_INLINE struct surface_edges surface_word_edges(const struct surface_args *a, int y, int z, int word)
{
    struct surface_edges e = {0, 0, 0};
    const unsigned b = surface_bits(a, y, z, word);
    if (z >= a->own_end)
        return e;
    const unsigned next = surface_inner(a, word) >> 31 ? surface_bits(a, y, z, word + 1) : 0;
    e.x = (b ^ (b >> 1 | next << 31)) & surface_inner(a, word);
    if (y + 1 < a->height)
        e.y = b ^ surface_bits(a, y + 1, z, word);
    if (z + 1 < a->depth)
        e.z = b ^ surface_bits(a, y, z + 1, word);
    return e;
}

SURFACE_INLINE unsigned surface_edge_count(const struct surface_edges *e)
{
    return SURFACE_POPCOUNT(e->x) + SURFACE_POPCOUNT(e->y) + SURFACE_POPCOUNT(e->z);
}

/* The four rows of a layer of cells, and the same one sample on. */
struct surface_rows {
    unsigned here[4], next[4]; /* (y, z), (y + 1, z), (y, z + 1), (y + 1, z + 1) */
};

/* Bits of the cells that the surface passes; 0 where there are no cells. */
SURFACE_INLINE unsigned surface_word_cells(const struct surface_args *a, int y, int z, int word,
                                           struct surface_rows *rows)
{
    const unsigned inner = surface_inner(a, word);
    if (z >= a->cell_end || y + 1 >= a->height || !inner)
        return 0;
    unsigned any = 0, all = 0xFFFFFFFFu;
    for (int r = 0; r < 4; r++) {
        const unsigned b = surface_bits(a, y + (r & 1), z + (r >> 1), word);
        const unsigned carry = inner >> 31 ? surface_bits(a, y + (r & 1), z + (r >> 1), word + 1) << 31 : 0;
        rows->here[r] = b;
        rows->next[r] = b >> 1 | carry;
        any |= b | rows->next[r];
        all &= b & rows->next[r];
    }
    return any & ~all & inner;
}

SURFACE_INLINE unsigned surface_case(const struct surface_rows *rows, int bit)
{
    unsigned pattern = 0;
    for (int r = 0; r < 4; r++)
        pattern |= (rows->here[r] >> bit & 1u) << (2 * r) | (rows->next[r] >> bit & 1u) << (2 * r + 1);
    return pattern;
}

SURFACE_INLINE long long surface_vertex_base(const struct surface_args *a, long long word)
{
    return a->block_base[word / SURFACE_BLOCK].vertices + (a->local[word] & 0xFFFFu);
}

/* The number of the vertex on the edge from sample (x, y, z) along axis, which carries one. */
SURFACE_INLINE long long surface_vertex_index(const struct surface_args *a, int x, int y, int z, int axis)
{
    const int word = x >> 5, bit = x & 31;
    const struct surface_edges e = surface_word_edges(a, y, z, word);
    const unsigned before = (1u << bit) - 1;
    unsigned count =
        SURFACE_POPCOUNT(e.x & before) + SURFACE_POPCOUNT(e.y & before) + SURFACE_POPCOUNT(e.z & before);
    count += axis > 0 ? e.x >> bit & 1u : 0;
    count += axis > 1 ? e.y >> bit & 1u : 0;
    return surface_vertex_base(a, ((long long)z * a->height + y) * a->words + word) + count;
}

/* The number of the vertex on edge `edge` of the cell at (x, y, z); edges as in make_table.py. */
SURFACE_INLINE long long surface_corner_index(const struct surface_args *a, int x, int y, int z,
                                              unsigned edge)
{
    const int axis = (int)(edge >> 2), first = (int)(edge & 1), second = (int)(edge >> 1 & 1);
    return surface_vertex_index(a, x + (axis == 0 ? 0 : first),
                                y + (axis == 0   ? first
                                     : axis == 1 ? 0
                                                 : second),
                                z + (axis == 2 ? 0 : second), axis);
}

SURFACE_INLINE int surface_is_finite(float v) { return v - v == 0.0f; }

/* Where the level is crossed between v1 and v2, in 0..1. */
SURFACE_INLINE float surface_crossing(float level, float v1, float v2)
{
    const float t = (level - v1) / (v2 - v1);
    if (t >= 0.0f && t <= 1.0f)
        return t;
    const int finite1 = surface_is_finite(v1), finite2 = surface_is_finite(v2);
    return finite1 == finite2 ? 0.5f : finite1 ? 0.0f : 1.0f;
}

/* Central difference along one axis, one-sided at the border. */
SURFACE_INLINE float surface_slope(const struct surface_args *a, int x, int y, int z, int axis)
{
    const int size = axis == 0 ? a->width : axis == 1 ? a->height : a->depth;
    const int at = axis == 0 ? x : axis == 1 ? y : z;
    const int low = at > a->pad ? at - 1 : at, high = at + 1 < size - a->pad ? at + 1 : at;
    const float below = surface_sample(a, axis == 0 ? low : x, axis == 1 ? low : y, axis == 2 ? low : z);
    const float above = surface_sample(a, axis == 0 ? high : x, axis == 1 ? high : y, axis == 2 ? high : z);
    return high - low == 2 ? (above - below) * 0.5f : above - below;
}

#ifdef __CUDACC__
#define SURFACE_ADD(x, y) __fadd_rn(x, y)
#define SURFACE_MULTIPLY(x, y) __fmul_rn(x, y)
#define SURFACE_SQRT(x) __fsqrt_rn(x)
#else
#define SURFACE_ADD(x, y) ((x) + (y))
#define SURFACE_MULTIPLY(x, y) ((x) * (y))
#define SURFACE_SQRT(x) sqrtf(x)
#endif

SURFACE_INLINE void surface_put_normal(const struct surface_args *a, int x, int y, int z, int axis, float t,
                                       float *out)
{
    float n[3], square = 0;
    const int at = axis == 0 ? x : axis == 1 ? y : z;
    const int size = axis == 0 ? a->width : axis == 1 ? a->height : a->depth;
    if (a->pad && (at == 0 || at == size - 2)) { /* a cap: it faces along the edge */
        for (int k = 0; k < 3; k++)
            out[a->reverse_columns ? 2 - k : k] = k != axis ? 0.0f : at == 0 ? -1.0f : 1.0f;
        return;
    }
    for (int k = 0; k < 3; k++) {
        const float g1 = surface_slope(a, x, y, z, k);
        const float g2 = surface_slope(a, x + (axis == 0), y + (axis == 1), z + (axis == 2), k);
        n[k] = SURFACE_ADD(g1, SURFACE_MULTIPLY(t, SURFACE_ADD(g2, -g1)));
        square = SURFACE_ADD(square, SURFACE_MULTIPLY(n[k], n[k]));
    }
    /* a square that is too small or large, or no number at all: as if there were no gradient */
    const int usable = square > 1e-30f && square < 1e30f;
    const float length = usable ? SURFACE_SQRT(square) : 1.0f;
    for (int k = 0; k < 3; k++)
        out[a->reverse_columns ? 2 - k : k] = usable ? SURFACE_MULTIPLY(a->normal_sign, n[k] / length) : 0.0f;
}

/* Writes the vertex on the edge from (x, y, z) along axis, whose number is `index`. */
SURFACE_INLINE void surface_put_vertex(const struct surface_args *a, int x, int y, int z, int axis,
                                       long long index)
{
    const float v1 = surface_sample(a, x, y, z);
    const float v2 = surface_sample(a, x + (axis == 0), y + (axis == 1), z + (axis == 2));
    const float t = surface_crossing(a->level, v1, v2);
    float p[3] = {(float)(x - a->pad), (float)(y - a->pad), (float)(z - a->pad + a->first_plane)};
    p[axis] = SURFACE_ADD(p[axis], t);
    float *out = a->vertices + 3 * index;
    out[0] = p[a->reverse_columns ? 2 : 0];
    out[1] = p[1];
    out[2] = p[a->reverse_columns ? 0 : 2];
    if (a->normals)
        surface_put_normal(a, x, y, z, axis, t, a->normals + 3 * index);
}

/* Writes the triangles of the cell at (x, y, z) from number `face` on; returns how many. */
SURFACE_INLINE unsigned surface_put_faces(const struct surface_args *a, int x, int y, int z, unsigned pattern,
                                          long long face)
{
    unsigned long long row = surface_table[pattern];
    const unsigned count = (unsigned)(row >> 60);
    for (unsigned f = 0; f < count; f++, face++) {
        for (unsigned k = 0; k < 3; k++, row >>= 4) {
            const long long v = a->first_vertex + surface_corner_index(a, x, y, z, (unsigned)row & 15u);
            const long long at = 3 * face + (k && a->flip ? 3 - k : k);
            if (a->faces64)
                a->faces64[at] = v;
            else
                a->faces32[at] = (int)v;
        }
    }
    return count;
}

/* What sample (x, y, z) gets from the vertex on one edge; is_high when it is the edge's higher end. */
SURFACE_INLINE float surface_edge_gradient(const struct surface_args *a, int x, int y, int z, int axis,
                                           int is_high)
{
    const float v1 = surface_sample(a, x, y, z);
    const float v2 = surface_sample(a, x + (axis == 0), y + (axis == 1), z + (axis == 2));
    const float d = SURFACE_ADD(v2, -v1);
    if (!surface_is_finite(v1) || !surface_is_finite(v2) || !surface_is_finite(d))
        return 0;
    const int column = a->reverse_columns ? 2 - axis : axis;
    const float g = a->grad_vertices[3 * surface_vertex_index(a, x, y, z, axis) + column];
    /* divided twice: the square of a small difference would be zero */
    const float slope = is_high ? SURFACE_ADD(v1, -a->level) / d : SURFACE_ADD(a->level, -v2) / d;
    return SURFACE_MULTIPLY(slope / d, g);
}

SURFACE_INLINE float surface_sample_gradient(const struct surface_args *a, int x, int y, int z)
{
    float sum = 0;
    const int me = (int)(surface_bits(a, y, z, x >> 5) >> (x & 31) & 1u);
    for (int axis = 0; axis < 3; axis++) {
        const int at = axis == 0   ? x
                       : axis == 1 ? y
                                   : z,
                  size = axis == 0   ? a->width
                         : axis == 1 ? a->height
                                     : a->depth;
        for (int side = 0; side < 2; side++) { /* the edge that ends here, then the one that begins here */
            const int step = side ? 1 : -1;
            if (at + step < 0 || at + step >= size)
                continue;
            const int nx = x + (axis == 0 ? step : 0), ny = y + (axis == 1 ? step : 0),
                      nz = z + (axis == 2 ? step : 0);
            if ((int)(surface_bits(a, ny, nz, nx >> 5) >> (nx & 31) & 1u) == me)
                continue;
            sum = SURFACE_ADD(sum, side ? surface_edge_gradient(a, x, y, z, axis, 0)
                                        : surface_edge_gradient(a, nx, ny, nz, axis, 1));
        }
    }
    return sum;
}

/* ---- trilinear sampling */

struct grid_args {
    const void *volume;
    const float *points, *grad_out;
    float *out, *grad_points;
    long long channels, point_count;
    int half, extrapolate_below, depth, height, width;
};

SURFACE_INLINE float grid_load(const struct grid_args *a, long long index)
{
    return a->half ? surface_half(((const unsigned short *)a->volume)[index])
                   : ((const float *)a->volume)[index];
}

/* The two samples along one axis and the weight of the second. */
SURFACE_INLINE void grid_axis(const struct grid_args *a, float p, int size, int *low, int *high, float *f)
{
    if (!a->extrapolate_below)
        p = p < 0.0f ? 0.0f : p;
    /* far outside both clamp to one end: no need to convert what an int can't hold */
    const float held = p < -2.0f ? -2.0f : p > (float)size ? (float)size : p;
    const int i = (int)held;
    *f = SURFACE_ADD(held, -(float)i);
    *low = i < 0 ? 0 : i > size - 1 ? size - 1 : i;
    *high = i + 1 < 0 ? 0 : i + 1 > size - 1 ? size - 1 : i + 1;
}

SURFACE_INLINE float grid_blend(float a, float b, float f)
{
    return SURFACE_ADD(a, SURFACE_MULTIPLY(f, SURFACE_ADD(b, -a)));
}

struct grid_place {
    int x[2], y[2], z[2];
    float fx, fy, fz;
};

SURFACE_INLINE int grid_find(const struct grid_args *a, const float *p, struct grid_place *g)
{
    if (p[0] != p[0] || p[1] != p[1] || p[2] != p[2])
        return 0;
    grid_axis(a, p[0], a->width, &g->x[0], &g->x[1], &g->fx);
    grid_axis(a, p[1], a->height, &g->y[0], &g->y[1], &g->fy);
    grid_axis(a, p[2], a->depth, &g->z[0], &g->z[1], &g->fz);
    return 1;
}

SURFACE_INLINE float grid_corner(const struct grid_args *a, const struct grid_place *g, long long c, int i,
                                 int j, int k)
{
    return grid_load(a, ((c * a->depth + g->z[k]) * a->height + g->y[j]) * a->width + g->x[i]);
}

SURFACE_INLINE float grid_value(const struct grid_args *a, const struct grid_place *g, long long c)
{
    float v[2];
    for (int k = 0; k < 2; k++)
        v[k] = grid_blend(grid_blend(grid_corner(a, g, c, 0, 0, k), grid_corner(a, g, c, 1, 0, k), g->fx),
                          grid_blend(grid_corner(a, g, c, 0, 1, k), grid_corner(a, g, c, 1, 1, k), g->fx),
                          g->fy);
    return grid_blend(v[0], v[1], g->fz);
}

/* Element i of out: point i / channels, channel i % channels. */
SURFACE_INLINE void grid_element(const struct grid_args *a, long long i)
{
    struct grid_place g;
    const float *p = a->points + 3 * (i / a->channels);
    /* without a place one coordinate is NaN, and so is the sum */
    a->out[i] = grid_find(a, p, &g) ? grid_value(a, &g, i % a->channels) : p[0] + p[1] + p[2];
}

SURFACE_INLINE void grid_point_gradient(const struct grid_args *a, long long i)
{
    struct grid_place g;
    float sum[3] = {0, 0, 0};
    const float *p = a->points + 3 * i;
    if (grid_find(a, p, &g)) {
        for (long long c = 0; c < a->channels; c++) {
            float v[2][2][2];
            for (int n = 0; n < 8; n++)
                v[n & 1][n >> 1 & 1][n >> 2] = grid_corner(a, &g, c, n & 1, n >> 1 & 1, n >> 2);
            float dx[2], dy[2], m[2];
            for (int k = 0; k < 2; k++) {
                const float r0 = grid_blend(v[0][0][k], v[1][0][k], g.fx),
                            r1 = grid_blend(v[0][1][k], v[1][1][k], g.fx);
                dx[k] = grid_blend(v[1][0][k] - v[0][0][k], v[1][1][k] - v[0][1][k], g.fy);
                dy[k] = r1 - r0;
                m[k] = grid_blend(r0, r1, g.fy);
            }
            const float go = a->grad_out[i * a->channels + c];
            sum[0] = SURFACE_ADD(sum[0], SURFACE_MULTIPLY(go, grid_blend(dx[0], dx[1], g.fz)));
            sum[1] = SURFACE_ADD(sum[1], SURFACE_MULTIPLY(go, grid_blend(dy[0], dy[1], g.fz)));
            sum[2] = SURFACE_ADD(sum[2], SURFACE_MULTIPLY(go, m[1] - m[0]));
        }
    }
    const int sizes[3] = {a->width, a->height, a->depth};
    for (int k = 0; k < 3; k++) /* outside the value is constant */
        a->grad_points[3 * i + k] = p[k] < 0.0f || p[k] > (float)(sizes[k] - 1) ? 0.0f : sum[k];
}

#endif
