/* raster/antialias_math.h: analytic coverage along silhouettes, its gradients, and the topology that tells a silhouette.
 *
 * Pairs of neighbouring pixels with different ids are looked at once each, and a pixel then gathers from its four pairs:
 * no atomic touches the image, so it is the same on every run. Method: Laine et al., Modular Primitives for
 * High-Performance Differentiable Rendering, ACM TOG 39(6), 2020, section 3.5.
 *
 * Topology: half-edge 3*face + k is the edge opposite corner k. next[h] is another half-edge between the same two vertices,
 * in a ring over all of them; alone, it is its own next. */
#ifndef FEL_ANTIALIAS_MATH_H
#define FEL_ANTIALIAS_MATH_H

#include "raster_math.h"

struct antialias_args {
    const float *color; /* [n, h, w, c] */
    const float *rast;  /* [n, h, w, 4] */
    const float *positions;
    const int *triangles;
    const unsigned *next; /* [f, 3] */
    float *out;
    const float *grad_out; /* [n, h, w, c] */
    float *grad_color;     /* may be NULL */
    struct grad_sink grad; /* to positions */
    long long vertex_count, face_count, image_vertices, pixel_count;
    int width, height, channels;
    float boost;
};

/* What happens between a pixel (first) and its right or upper neighbour (second). */
struct antialias_pair {
    float
        blend; /* > 0: second += blend*(first - second); < 0: first += -blend*(second - first); 0: nothing */
    float distance; /* d: from the front pixel's centre to the edge, in [0, 1] */
    int front_is_second;
    int live; /* d was neither cut off at 0 nor at 1 */
    int v[2]; /* the edge's vertices */
    float along[2],
        across[2]; /* their places relative to the front pixel's centre, in pixels: along the pair, across */
};

struct antialias_corner {
    float x, y, w; /* pixels from the image centre; clip w */
    int usable;    /* in front of the eye, finite */
};

FEL_INLINE struct antialias_corner antialias_project(const struct antialias_args *a, const float p[4])
{
    struct antialias_corner c = {0, 0, p[3], 0};
    if (!(p[3] > 0.0F))
        return c;
    c.x = mul_rn(p[0] / p[3], 0.5F * (float)a->width);
    c.y = mul_rn(p[1] / p[3], 0.5F * (float)a->height);
    c.usable = is_finite(c.x) && is_finite(c.y);
    return c;
}

/* Sign of the side of line a-b on which the visible part of a face with third vertex p lies, as in clip space. */
FEL_INLINE int antialias_side(const float p[4], const struct antialias_corner *a,
                              const struct antialias_corner *b, float half_width, float half_height)
{
    const float px = mul_rn(p[0], half_width), py = mul_rn(p[1], half_height);
    const float qx = add_rn(px, -mul_rn(a->x, p[3])), qy = add_rn(py, -mul_rn(a->y, p[3]));
    const float side = cross2(add_rn(b->x, -a->x), qy, add_rn(b->y, -a->y), qx);
    return side > 0.0F ? 1 : side < 0.0F ? -1 : 0;
}

/* Whether an edge of a face is a silhouette: no other face continues it on the other side. */
FEL_INLINE bool antialias_silhouette(const struct antialias_args *args, const float *positions,
                                     long long face, int k, int own_side, const struct antialias_corner *a,
                                     const struct antialias_corner *b)
{
    const float half_width = 0.5F * (float)args->width, half_height = 0.5F * (float)args->height;
    const long long start = 3 * face + k, half_edges = 3 * args->face_count;
    long long h = args->next[start];
    for (long long steps = 0; h != start && h < half_edges && steps < half_edges; steps++) {
        const int v = args->triangles[h];
        if (v < 0 || v >= args->vertex_count)
            return true;
        float p[4];
        load4(positions + 4 * (long long)v, p);
        if (antialias_side(p, a, b, half_width, half_height) != own_side)
            return false;
        h = args->next[h];
    }
    return true;
}

/* first and second are pixel indices; vertical: second is above first, else right of it. */
FEL_INLINE struct antialias_pair antialias_examine(const struct antialias_args *args, long long first,
                                                   long long second, int i, int j, int image, int vertical)
{
    struct antialias_pair pair;
    pair.blend = pair.distance = 0.0F;
    pair.front_is_second = pair.live = 0;
    pair.v[0] = pair.v[1] = 0;
    pair.along[0] = pair.along[1] = pair.across[0] = pair.across[1] = 0.0F;
    const float id0 = args->rast[4 * first + 3], id1 = args->rast[4 * second + 3];
    if (id0 == id1 || !(id0 >= 0.0F && id1 >= 0.0F))
        return pair;
    const long long face0 = id_face(id0), face1 = id_face(id1);
    if (face0 < 0 || face1 < 0)
        pair.front_is_second = face0 < 0;
    else
        pair.front_is_second = args->rast[4 * second + 2] <= args->rast[4 * first + 2];
    const long long face = pair.front_is_second ? face1 : face0;
    int v[3];
    if (face < 0 || face >= args->face_count || !face_vertices(args->triangles, face, args->vertex_count, v))
        return pair;
    const float *positions = args->positions + 4 * args->image_vertices * image;
    const int fi = i + (vertical && pair.front_is_second), fj = j + (!vertical && pair.front_is_second);
    const float cx = (float)fj + 0.5F - 0.5F * (float)args->width;
    const float cy = (float)fi + 0.5F - 0.5F * (float)args->height;
    const float direction =
        pair.front_is_second ? -1.0F : 1.0F; /* from the front pixel to the other, along the axis */
    float p[3][4];
    struct antialias_corner corner[3];
    float along[3], across[3];
    for (int k = 0; k < 3; k++) {
        load4(positions + 4 * (long long)v[k], p[k]);
        corner[k] = antialias_project(args, p[k]);
        const float x = add_rn(corner[k].x, -cx), y = add_rn(corner[k].y, -cy);
        along[k] = vertical ? y : x;
        across[k] = vertical ? x : y;
    }
    /* what belongs to the edge by which the line leaves: copied, since an index that varies would put arrays into memory */
    int edge = -1;
    float farthest = 0.0F, third[4] = {0, 0, 0, 0};
    struct antialias_corner from = corner[0], to = corner[0];
    for (int k = 0; k < 3; k++) {
        const int m = k == 2 ? 0 : k + 1, n = k == 0 ? 2 : k - 1;
        if (!corner[m].usable || !corner[n].usable || (across[m] < 0.0F) == (across[n] < 0.0F))
            continue;
        const float height = add_rn(across[n], -across[m]);
        const float at = direction * (cross2(along[m], across[n], along[n], across[m]) / height);
        if (edge >= 0 && !(at > farthest))
            continue;
        edge = k, farthest = at;
        from = corner[m], to = corner[n];
        pair.v[0] = v[m], pair.v[1] = v[n];
        pair.along[0] = along[m], pair.along[1] = along[n];
        pair.across[0] = across[m], pair.across[1] = across[n];
        for (int c = 0; c < 4; c++)
            third[c] = p[k][c];
    }
    if (edge < 0 || !(farthest > -0.0625F && farthest < 1.0625F))
        return pair;
    const float length = add_rn(pair.along[1], -pair.along[0]),
                height = add_rn(pair.across[1], -pair.across[0]);
    if (fabsf(height) < fabsf(length))
        return pair;
    const int own = antialias_side(third, &from, &to, 0.5F * (float)args->width, 0.5F * (float)args->height);
    if (!antialias_silhouette(args, positions, face, edge, own, &from, &to))
        return pair;
    pair.live = farthest > 0.0F && farthest < 1.0F;
    pair.distance = farthest > 0.0F ? (farthest < 1.0F ? farthest : 1.0F) : 0.0F;
    /* d > 1/2: the front pixel spills over into the other; below, the other one into it */
    const float excess = pair.distance - 0.5F;
    pair.blend = pair.front_is_second ? -excess : excess;
    return pair;
}

/* ---- a pixel's colour from its four pairs: their blends, 0 at the image's border ---- */

struct antialias_shares {
    float left, right, lower, upper;
};

/* One channel: in points to it, row is a row's floats. */
FEL_INLINE float antialias_blend(const float *in, int channels, long long row, struct antialias_shares s)
{
    /* a pair adds to its first pixel when its blend is negative, to its second when positive */
    float sum = *in;
    if (s.left > 0.0F)
        sum += s.left * (in[-channels] - *in);
    if (s.right < 0.0F)
        sum -= s.right * (in[channels] - *in);
    if (s.lower > 0.0F)
        sum += s.lower * (in[-row] - *in);
    if (s.upper < 0.0F)
        sum -= s.upper * (in[row] - *in);
    return sum;
}

/* Its transpose: where the pixel is the target it keeps less of its own; else it gave to the target. */
FEL_INLINE float antialias_blend_gradient(const float *g, int channels, long long row,
                                          struct antialias_shares s)
{
    float sum = *g;
    if (s.left != 0.0F)
        sum -= s.left * (s.left > 0.0F ? *g : g[-channels]);
    if (s.right != 0.0F)
        sum += s.right * (s.right < 0.0F ? *g : g[channels]);
    if (s.lower != 0.0F)
        sum -= s.lower * (s.lower > 0.0F ? *g : g[-row]);
    if (s.upper != 0.0F)
        sum += s.upper * (s.upper < 0.0F ? *g : g[row]);
    return sum;
}

/* Gradient of a pair's distance, from the pixels' colours and upstream gradients. At d = 1/2, where nothing blends, it is
 * the mean of the two one-sided values: an edge just between two centres must not lose its gradient. */
FEL_INLINE float antialias_distance_gradient(const struct antialias_args *a,
                                             const struct antialias_pair *pair, long long first,
                                             long long second)
{
    const long long front = pair->front_is_second ? second : first,
                    other = pair->front_is_second ? first : second;
    const float *cf = a->color + front * a->channels, *co = a->color + other * a->channels;
    const float *gf = a->grad_out + front * a->channels, *go = a->grad_out + other * a->channels;
    const float to_front = pair->distance < 0.5F ? 1.0F : pair->distance > 0.5F ? 0.0F : 0.5F;
    float sum = 0.0F;
    for (int c = 0; c < a->channels; c++) {
        const float g = to_front * gf[c] + (1.0F - to_front) * go[c];
        if (g != 0.0F)
            sum += g * (cf[c] - co[c]);
    }
    return sum;
}

FEL_INLINE void antialias_position_gradient(const struct antialias_args *a, const struct antialias_pair *pair,
                                            long long first, long long second, int image, int vertical)
{
    if (!pair->live)
        return;
    const float g = antialias_distance_gradient(a, pair, first, second);
    const float h = pair->across[1] - pair->across[0];
    if (g == 0.0F || h == 0.0F)
        return;
    const float inverse = 1.0F / h, length = pair->along[1] - pair->along[0];
    const float sign = (pair->front_is_second ? -1.0F : 1.0F) * g * a->boost;
    const long long base = a->image_vertices * image;
    for (int k = 0; k < 2; k++) {
        const float weight = (k ? -pair->across[0] : pair->across[1]) * inverse; /* d x* / d along_k */
        const float g_along = sign * weight, g_across = -sign * weight * length * inverse;
        const float gx = (vertical ? g_across : g_along) * 0.5F * (float)a->width;
        const float gy = (vertical ? g_along : g_across) * 0.5F * (float)a->height;
        float p[4];
        const long long at = 4 * (base + pair->v[k]);
        load4(a->positions + at, p);
        const float iw = 1.0F / p[3];
        sink_add(&a->grad, at, gx * iw);
        sink_add(&a->grad, at + 1, gy * iw);
        sink_add(&a->grad, at + 3, -(gx * p[0] + gy * p[1]) * iw * iw);
    }
}

/* ---- topology ----
 *
 * A hash table of half-edge numbers. A slot's first entry stands for its edge; further half-edges of that edge swap
 * themselves in, so that next[] links them. A first window of slots lies near those of the edge's lower vertex, since
 * neighbouring faces are mostly near in memory as well; past it the place is random, so that a vertex with a million
 * edges costs no more than others. */

enum { TOPOLOGY_NEAR = 4 };
#define TOPOLOGY_NONE 0xffffffffU

struct topology_args {
    const int *triangles;
    const int *weld; /* [v] vertex that stands for each; NULL: itself */
    unsigned *next;  /* [f, 3] */
    unsigned *slots; /* [mask + 1], all TOPOLOGY_NONE at first */
    unsigned long long mask;
    long long face_count, weld_count;
};

/* The edge's two vertices, lower first; false for a face that adds no edges. */
FEL_INLINE bool topology_edge(const struct topology_args *t, long long half_edge, int *low, int *high)
{
    const long long face = half_edge / 3;
    const int k = (int)(half_edge - 3 * face);
    int v[3];
    for (int c = 0; c < 3; c++) {
        v[c] = t->triangles[3 * face + c];
        if (v[c] < 0)
            return false;
        if (t->weld && v[c] < t->weld_count)
            v[c] = t->weld[v[c]];
    }
    if (v[0] == v[1] || v[1] == v[2] || v[2] == v[0])
        return false;
    const int a = v[k == 2 ? 0 : k + 1], b = v[k == 0 ? 2 : k - 1];
    *low = a < b ? a : b;
    *high = a < b ? b : a;
    return true;
}

FEL_INLINE unsigned long long
topology_mix(unsigned long long x) /* SplitMix64's finaliser (Steele et al., 2014) */
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

FEL_INLINE unsigned long long topology_slot(const struct topology_args *t, int low, int high,
                                            unsigned long long probe)
{
    const unsigned long long mixed = topology_mix((unsigned long long)(unsigned)low << 32 | (unsigned)high);
    if (probe < TOPOLOGY_NEAR)
        return ((unsigned long long)(unsigned)low * 8 + ((mixed + probe) & 7)) & t->mask;
    return ((mixed >> 3) + (probe - TOPOLOGY_NEAR) * ((mixed >> 35) | 1)) &
           t->mask; /* odd step: visits every slot */
}

FEL_INLINE unsigned slot_claim(unsigned *slot, unsigned value) /* what was there; TOPOLOGY_NONE: claimed */
{
#ifdef __CUDACC__
    const unsigned seen = *(volatile unsigned *)slot;
    return seen != TOPOLOGY_NONE ? seen : atomicCAS(slot, TOPOLOGY_NONE, value);
#else
    unsigned expected = TOPOLOGY_NONE;
    atomic_compare_exchange_strong_explicit((_Atomic unsigned *)slot, &expected, value, memory_order_relaxed,
                                            memory_order_relaxed);
    return expected;
#endif
}

FEL_INLINE unsigned slot_swap(unsigned *slot, unsigned value)
{
#ifdef __CUDACC__
    return atomicExch(slot, value);
#else
    return atomic_exchange_explicit((_Atomic unsigned *)slot, value, memory_order_relaxed);
#endif
}

/* First pass: every half-edge enters its edge's slot; next becomes the one that was there, or TOPOLOGY_NONE. */
FEL_INLINE void topology_enter(const struct topology_args *t, long long half_edge)
{
    int low, high, other_low, other_high;
    t->next[half_edge] = (unsigned)half_edge;
    if (!topology_edge(t, half_edge, &low, &high))
        return;
    for (unsigned long long probe = 0; probe <= t->mask; probe++) {
        unsigned *slot = t->slots + topology_slot(t, low, high, probe);
        const unsigned seen = slot_claim(slot, (unsigned)half_edge);
        if (seen == TOPOLOGY_NONE) {
            t->next[half_edge] = TOPOLOGY_NONE;
            return;
        }
        if (topology_edge(t, seen, &other_low, &other_high) && other_low == low && other_high == high) {
            t->next[half_edge] = slot_swap(slot, (unsigned)half_edge);
            return;
        }
    }
}

/* Second pass: the half-edge that entered first closes the ring with the one that entered last. */
FEL_INLINE void topology_close(const struct topology_args *t, long long half_edge)
{
    int low, high, other_low, other_high;
    if (t->next[half_edge] != TOPOLOGY_NONE || !topology_edge(t, half_edge, &low, &high))
        return;
    for (unsigned long long probe = 0; probe <= t->mask; probe++) {
        const unsigned last = t->slots[topology_slot(t, low, high, probe)];
        if (last != TOPOLOGY_NONE && topology_edge(t, last, &other_low, &other_high) && other_low == low &&
            other_high == high) {
            t->next[half_edge] = last;
            return;
        }
    }
}

/* ---- welding: vertices with equal positions, -0 and +0 alike ---- */

struct weld_args {
    const float *positions; /* [v, 4] */
    int *weld;              /* [v] */
    unsigned *slots;        /* as above, of vertex numbers */
    unsigned long long mask;
    long long vertex_count;
};

FEL_INLINE unsigned weld_bits(float f) { return float_bits(f == 0.0F ? 0.0F : f); }

FEL_INLINE unsigned long long weld_slot(const struct weld_args *w, long long v, unsigned long long probe)
{
    const float *p = w->positions + 4 * v;
    unsigned long long hash = topology_mix((unsigned long long)weld_bits(p[0]) << 32 | weld_bits(p[1]));
    hash = topology_mix(hash ^ ((unsigned long long)weld_bits(p[2]) << 32 | weld_bits(p[3])));
    return (hash + probe * ((hash >> 35) | 1)) & w->mask;
}

FEL_INLINE bool weld_equal(const struct weld_args *w, long long a, long long b)
{
    const float *p = w->positions + 4 * a, *q = w->positions + 4 * b;
    return weld_bits(p[0]) == weld_bits(q[0]) && weld_bits(p[1]) == weld_bits(q[1]) &&
           weld_bits(p[2]) == weld_bits(q[2]) && weld_bits(p[3]) == weld_bits(q[3]);
}

/* First pass: the slot ends with the lowest of the equal vertices, whatever the order. */
FEL_INLINE void weld_enter(const struct weld_args *w, long long v)
{
    for (unsigned long long probe = 0; probe <= w->mask; probe++) {
        unsigned *slot = w->slots + weld_slot(w, v, probe);
        unsigned seen = slot_claim(slot, (unsigned)v);
        if (seen == TOPOLOGY_NONE)
            return;
        if (!weld_equal(w, v, seen))
            continue;
#ifdef __CUDACC__
        atomicMin(slot, (unsigned)v);
#else
        while ((unsigned)v < seen &&
               !atomic_compare_exchange_weak_explicit((_Atomic unsigned *)slot, &seen, (unsigned)v,
                                                      memory_order_relaxed, memory_order_relaxed)) {
        }
#endif
        return;
    }
}

FEL_INLINE void weld_read(const struct weld_args *w, long long v)
{
    w->weld[v] = (int)v;
    for (unsigned long long probe = 0; probe <= w->mask; probe++) {
        const unsigned seen = w->slots[weld_slot(w, v, probe)];
        if (seen == TOPOLOGY_NONE)
            return;
        if (weld_equal(w, v, seen)) {
            w->weld[v] = (int)seen;
            return;
        }
    }
}

#endif
