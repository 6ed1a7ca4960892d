/* raster/rasterize_math.h: coverage, depth, barycentrics and their gradients.
 *
 * Visibility is a 64-bit key per pixel: depth above, face index (inverted, so that the higher one wins a tie) below. Every
 * triangle lowers the keys of the samples it covers; what is left names the visible face. A minimum does not depend on
 * the order, so the image is the same on every machine.
 *
 * Vertices in front of the eye are rounded to a grid of 1/256 pixel whose origin is the image centre, and edges between
 * them are exact 64-bit integers. A vertex that has no place on the grid (behind the eye, or farther than GRID_LIMIT)
 * keeps its homogeneous position; edges to it are computed from the end points in an order that does not depend on the
 * face (Olano & Greer, Triangle Scan Conversion Using 2D Homogeneous Coordinates, 1997). So two faces that share an
 * edge always agree on which side of it a sample lies, clipped or not, and no polygon is ever clipped: near and far
 * plane are a test of each sample's depth. */
#ifndef FEL_RASTERIZE_MATH_H
#define FEL_RASTERIZE_MATH_H

#include "raster_math.h"

enum {
    GRID = 256,             /* grid steps per pixel */
    GRID_LIMIT = 1 << 23,   /* farthest place on the grid from the image centre: 32,768 pixels */
    MAX_SIDE = 65536,       /* so that half an image is within GRID_LIMIT */
    RANGES_PER_LAUNCH = 64, /* range mode: images that one launch's arguments have room for */
    TILE = 64,              /* pixels: side of the piece of a large triangle that is one item of work */
};

#define EMPTY_KEY (~0ULL)
#define FLOAT_LARGEST 0x1.fffffep127F
#define STEEP_DEPTH 2.0F /* |z/w| of a vertex above which float depths would lose bits that matter */

struct rasterize_args {
    const float *positions;   /* [n or 1, v, 4] */
    const int *triangles;     /* [f, 3] */
    unsigned long long *keys; /* [image_count, height, width] */
    const unsigned *below; /* [n, height, width] or NULL: only depths above these are drawn (depth peeling) */
    unsigned *depth;       /* [n, height, width] or NULL: depths of what was drawn */
    float *rast, *rast_db; /* [n, height, width, 4] */
    unsigned *queue;       /* CUDA: [queue_capacity, 4] pieces of large triangles, see raster.cu */
    unsigned *queue_count; /* CUDA: entries claimed; whether there was too little room */
    long long vertex_count, face_count;
    long long image_vertices; /* vertices between two images' positions: v, or 0 in range mode */
    int width, height;
    int image_first, image_count; /* the images that this launch draws */
    float scale_x, scale_y;       /* NDC to grid steps, before rounding */
    float place_limit;            /* GRID_LIMIT, before the multiplication with step */
    int step;                     /* rounded places are multiples of it: 1, or 16 for a grid of 1/16 pixel */
    unsigned queue_capacity;
    int faces_per_warp;  /* CUDA: how many of a warp's lanes take a face of their own */
    int small_samples;   /* CUDA: a lane alone covers boxes of up to so many samples */
    int keep_keys_empty; /* CUDA: raster_resolve empties the keys it has read, for the next launch */
    int range_mode;
    int ranges[RANGES_PER_LAUNCH][2]; /* range mode: first face and count of each image of the launch */
};

enum point_kind {
    POINT_PLAIN, /* on the grid, depth moderate */
    POINT_STEEP, /* on the grid, but its depth needs more bits */
    POINT_WIDE,  /* not on the grid: x, y, z are meaningless */
    POINT_BAD,   /* NaN or infinity */
};

struct raster_point {
    int x, y; /* grid steps from the image centre */
    float z;  /* z/w */
    int kind;
};

FEL_INLINE struct raster_point raster_snap(const struct rasterize_args *a, const float p[4])
{
    const float reciprocal =
        1.0F / p[3]; /* one division a vertex; z*(1/w) never leaves [-1, 1] where z/w does not */
    const float x = mul_rn(mul_rn(p[0], reciprocal), a->scale_x),
                y = mul_rn(mul_rn(p[1], reciprocal), a->scale_y);
    const float z = mul_rn(p[2], reciprocal), limit = a->place_limit;
    struct raster_point r = {0, 0, 0.0F, POINT_PLAIN};
    const bool in_front = p[3] > 0.0F && p[3] <= FLOAT_LARGEST;
    const bool on_grid = in_front && x >= -limit && x <= limit && y >= -limit && y <= limit;
    if (!(on_grid && z >= -STEEP_DEPTH && z <= STEEP_DEPTH)) { /* rare: NaN and infinity end here as well */
        if (!is_finite(p[0]) || !is_finite(p[1]) || !is_finite(p[2]) || !is_finite(p[3])) {
            r.kind = POINT_BAD;
            return r;
        }
        r.kind = on_grid ? POINT_STEEP : POINT_WIDE;
        if (!on_grid)
            return r;
    }
    r.x = round_to_int(x) * a->step;
    r.y = round_to_int(y) * a->step;
    r.z = z;
    return r;
}

/* Grid place of a sample. */
FEL_INLINE int sample_place(int index, int size) { return (2 * index + 1 - size) * (GRID / 2); }

/* Floats in their order as unsigned integers; -0 is +0. */
FEL_INLINE unsigned depth_bits(float z)
{
    const unsigned bits = float_bits(z == 0.0F ? 0.0F : z);
    return bits & 0x80000000U ? ~bits : bits | 0x80000000U;
}

FEL_INLINE unsigned long long raster_key(unsigned depth, long long face)
{
    return (unsigned long long)depth << 32 | (0xffffffffU - (unsigned)face);
}

FEL_INLINE long long key_face(unsigned long long key)
{
    return 0xffffffffLL - (long long)(key & 0xffffffffU);
}

struct raster_box { /* pixels, all inclusive; empty when a last one is below its first */
    int j0, j1, i0, i1;
};

/* ---- triangles whose three vertices are plain ---- */

enum triangle_kind { TRIANGLE_NONE, TRIANGLE_PLAIN, TRIANGLE_WIDE };

struct raster_triangle {
    int x[3], y[3];
    float z[3];
    int clipped; /* a vertex is nearer than the near or farther than the far plane */
    struct raster_box box;
};

/* The samples from lowest to highest place, within the image. */
FEL_INLINE void sample_span(int lowest, int highest, int size, int *first, int *last)
{
    const int offset = GRID / 2 * size - GRID / 2; /* place of sample j is GRID*j - offset */
    const int a = (lowest + offset + GRID - 1) >> 8, b = (highest + offset) >> 8; /* shifts round down */
    *first = a > 0 ? a : 0;
    *last = b < size - 1 ? b : size - 1;
}

FEL_INLINE int min3(int a, int b, int c)
{
    const int m = a < b ? a : b;
    return m < c ? m : c;
}

FEL_INLINE int max3(int a, int b, int c)
{
    const int m = a > b ? a : b;
    return m > c ? m : c;
}

/* The vertices of a face in image `image` of the batch (counted from 0 over all launches). */
FEL_INLINE bool raster_load(const struct rasterize_args *a, int image, long long face, float p[3][4])
{
    int v[3];
    if (face >= a->face_count || !face_vertices(a->triangles, face, a->vertex_count, v))
        return false;
    const float *positions = a->positions + 4 * a->image_vertices * image;
    load4(positions + 4 * (long long)v[0], p[0]);
    load4(positions + 4 * (long long)v[1], p[1]);
    load4(positions + 4 * (long long)v[2], p[2]);
    return true;
}

FEL_INLINE int raster_setup(const struct rasterize_args *a, const float p[3][4], struct raster_triangle *t)
{
    int worst = POINT_PLAIN;
    for (int k = 0; k < 3; k++) {
        const struct raster_point r = raster_snap(a, p[k]);
        t->x[k] = r.x, t->y[k] = r.y, t->z[k] = r.z;
        worst = r.kind > worst ? r.kind : worst;
    }
    if (worst != POINT_PLAIN)
        return worst == POINT_BAD ? TRIANGLE_NONE : TRIANGLE_WIDE;
    const int above = (t->z[0] > 1.0F) + (t->z[1] > 1.0F) + (t->z[2] > 1.0F);
    const int under = (t->z[0] < -1.0F) + (t->z[1] < -1.0F) + (t->z[2] < -1.0F);
    if (above == 3 || under == 3)
        return TRIANGLE_NONE;
    t->clipped = above + under;
    sample_span(min3(t->x[0], t->x[1], t->x[2]), max3(t->x[0], t->x[1], t->x[2]), a->width, &t->box.j0,
                &t->box.j1);
    sample_span(min3(t->y[0], t->y[1], t->y[2]), max3(t->y[0], t->y[1], t->y[2]), a->height, &t->box.i0,
                &t->box.i1);
    return t->box.j0 <= t->box.j1 && t->box.i0 <= t->box.i1 ? TRIANGLE_PLAIN : TRIANGLE_NONE;
}

/* A sample on an edge belongs to the face for which it is a left or a bottom one. (dx, dy) runs with the face on its
 * left, rows upwards. */
FEL_INLINE int edge_owns(long long dx, long long dy) { return dy < 0 || (dy == 0 && dx > 0); }

/* Edge functions of a plain triangle: twice the area that a sample spans with the edge opposite each vertex, positive
 * inside. A sample is covered when every e[k] >= least[k]. */
struct raster_edges {
    long long e[3];         /* at the sample (j, i) that raster_edges_at was given */
    long long dj[3], di[3]; /* steps to the next column and row */
    int least[3];           /* 0 when the edge's own samples belong to the face, else 1 */
    float inverse_area;
    float z2, z02, z12;
};

FEL_INLINE bool raster_edges_at(const struct raster_triangle *t, int width, int height, int j, int i,
                                struct raster_edges *r)
{
    const long long area = ((long long)t->x[1] - t->x[0]) * (t->y[2] - t->y[0]) -
                           ((long long)t->x[2] - t->x[0]) * (t->y[1] - t->y[0]);
    if (area == 0)
        return false;
    const int sign = area > 0 ? 1 : -1;
    const int px = sample_place(j, width), py = sample_place(i, height);
    for (int k = 0; k < 3; k++) {
        const int from = k == 2 ? 0 : k + 1, to = k == 0 ? 2 : k - 1;
        const long long dx = (long long)sign * (t->x[to] - t->x[from]),
                        dy = (long long)sign * (t->y[to] - t->y[from]);
        r->e[k] = dx * (py - t->y[from]) - dy * (px - t->x[from]);
        r->dj[k] = -dy * GRID;
        r->di[k] = dx * GRID;
        r->least[k] = !edge_owns(dx, dy);
    }
    r->inverse_area = 1.0F / (float)(sign * area);
    r->z2 = t->z[2];
    r->z02 = add_rn(t->z[0], -t->z[2]);
    r->z12 = add_rn(t->z[1], -t->z[2]);
    return true;
}

/* The depth that decides: linear over the rounded triangle. False when near or far plane cuts the sample off. */
FEL_INLINE bool plain_depth(float e0, float e1, float inverse_area, float z2, float z02, float z12,
                            int clipped, unsigned *depth)
{
    const float b0 = mul_rn(e0, inverse_area), b1 = mul_rn(e1, inverse_area);
    float z = add_rn(z2, add_rn(mul_rn(b0, z02), mul_rn(b1, z12)));
    if (clipped && !(z >= -1.0F && z <= 1.0F))
        return false;
    z = z > 1.0F ? 1.0F : z < -1.0F ? -1.0F : z; /* by rounding alone */
    *depth = depth_bits(z);
    return true;
}

/* ---- triangles with a vertex that has no place on the grid, or whose depth is steep ---- */

struct raster_wide {
    double a[3], b[3],
        c[3]; /* edge k at a grid place: a*(px - ox) + b*(py - oy) + c, times the orientation */
    double ox[3], oy[3];
    int owns[3];
    double n0, n1, n2; /* depth at a grid place: n0*px + n1*py + n2 */
};

struct homogeneous {
    double x, y, w, z;  /* grid steps times w, not rounded; scaled by a positive number */
    int snapped;        /* has a place on the grid; then w is 1 */
    int grid_x, grid_y; /* that place */
};

FEL_INLINE struct homogeneous raster_homogeneous(const struct rasterize_args *a, const float p[4])
{
    const struct raster_point r = raster_snap(a, p);
    struct homogeneous h;
    h.grid_x = r.x, h.grid_y = r.y;
    if (r.kind == POINT_PLAIN || r.kind == POINT_STEEP) {
        h.x = dmul_rn((double)p[0] / (double)p[3], (double)a->scale_x * a->step);
        h.y = dmul_rn((double)p[1] / (double)p[3], (double)a->scale_y * a->step);
        h.z = (double)p[2] / (double)p[3];
        h.w = 1.0;
        h.snapped = 1;
        return h;
    }
    const float ax = p[0] < 0 ? -p[0] : p[0], ay = p[1] < 0 ? -p[1] : p[1], aw = p[3] < 0 ? -p[3] : p[3];
    float largest = ax > ay ? ax : ay;
    largest = largest > aw ? largest : aw;
    const double scale = largest > 0.0F ? 1.0 / (double)largest : 1.0; /* so that products stay in range */
    h.x = dmul_rn(dmul_rn(p[0], (double)a->scale_x * a->step), scale);
    h.y = dmul_rn(dmul_rn(p[1], (double)a->scale_y * a->step), scale);
    h.w = dmul_rn(p[3], scale);
    h.z = dmul_rn(p[2], scale);
    h.snapped = 0;
    return h;
}

FEL_INLINE double dcross(double a, double b, double c, double d) /* a*b - c*d, never fused */
{
    return dadd_rn(dmul_rn(a, b), -dmul_rn(c, d));
}

FEL_INLINE bool homogeneous_before(const struct homogeneous *p, const struct homogeneous *q)
{
    if (p->snapped != q->snapped)
        return p->snapped > q->snapped;
    if (p->x != q->x)
        return p->x < q->x;
    if (p->y != q->y)
        return p->y < q->y;
    return p->w < q->w;
}

/* The line through two vertices, the same whichever face asks. Where one of them is snapped, its grid place is the origin
 * and the direction is that of the exact edge, rounded to float: all edges of the vertex then meet in one point, products
 * with places are exact, so the side of every sample is certain, and no sample is farther off than the rounding moved the
 * vertex. (A line through the rounded vertex and one behind the eye would be: the latter's image is a pivot.) */
FEL_INLINE void wide_edge(const struct homogeneous *from, const struct homogeneous *to, int sign,
                          struct raster_wide *t, int k)
{
    if (!homogeneous_before(from, to)) {
        const struct homogeneous *swap = from;
        from = to;
        to = swap;
        sign = -sign;
    }
    double a, b, c = 0.0;
    t->ox[k] = t->oy[k] = 0.0;
    if (from->snapped) {
        t->ox[k] = from->grid_x, t->oy[k] = from->grid_y;
        if (to->snapped) {
            a = from->grid_y - to->grid_y;
            b = to->grid_x - from->grid_x;
        } else {
            a = -(double)(float)dadd_rn(to->y, -dmul_rn(from->y, to->w));
            b = (double)(float)dadd_rn(to->x, -dmul_rn(from->x, to->w));
        }
    } else {
        a = dcross(from->y, to->w, from->w, to->y);
        b = dcross(from->w, to->x, from->x, to->w);
        c = dcross(from->x, to->y, from->y, to->x);
    }
    t->a[k] = sign * a;
    t->b[k] = sign * b;
    t->c[k] = sign * c;
    t->owns[k] = t->a[k] > 0.0 || (t->a[k] == 0.0 && t->b[k] > 0.0);
}

/* Samples that the part of the triangle in front of the near plane can cover; the whole image when that is unclear. */
FEL_INLINE struct raster_box wide_box(const struct rasterize_args *a, const struct homogeneous h[3])
{
    double x0 = 1e30, x1 = -1e30, y0 = 1e30, y1 = -1e30;
    int clear = 1;
    for (int k = 0; k < 3; k++) {
        const struct homogeneous *p = &h[k], *q = &h[k == 2 ? 0 : k + 1];
        const double near_p = dadd_rn(p->z, p->w), near_q = dadd_rn(q->z, q->w);
        double x = p->x, y = p->y, w = p->w;
        for (int cut = 0; cut < 2; cut++) { /* the vertex itself, then where its edge meets the near plane */
            if (cut) {
                if ((near_p >= 0.0) == (near_q >= 0.0))
                    break;
                const double s = near_p / (near_p - near_q);
                x = dadd_rn(p->x, dmul_rn(s, q->x - p->x));
                y = dadd_rn(p->y, dmul_rn(s, q->y - p->y));
                w = dadd_rn(p->w, dmul_rn(s, q->w - p->w));
            } else if (near_p < 0.0) {
                continue;
            }
            if (!(w > 1e-9)) {
                clear = 0;
                continue;
            }
            const double px = x / w, py = y / w;
            x0 = px < x0 ? px : x0, x1 = px > x1 ? px : x1;
            y0 = py < y0 ? py : y0, y1 = py > y1 ? py : y1;
        }
    }
    struct raster_box box = {0, a->width - 1, 0, a->height - 1};
    if (!clear)
        return box;
    if (!(x0 <= x1)) { /* nothing in front of the near plane */
        box.j1 = -1;
        return box;
    }
    const double limit = GRID_LIMIT, slack = GRID; /* a pixel for the roundings above */
    x0 = x0 - slack < -limit ? -limit : x0 - slack > limit ? limit : x0 - slack;
    x1 = x1 + slack < -limit ? -limit : x1 + slack > limit ? limit : x1 + slack;
    y0 = y0 - slack < -limit ? -limit : y0 - slack > limit ? limit : y0 - slack;
    y1 = y1 + slack < -limit ? -limit : y1 + slack > limit ? limit : y1 + slack;
    sample_span((int)x0, (int)x1, a->width, &box.j0, &box.j1);
    sample_span((int)y0, (int)y1, a->height, &box.i0, &box.i1);
    return box;
}

/* False when the triangle covers no sample at all. */
FEL_INLINE bool raster_wide_setup(const struct rasterize_args *a, const float p[3][4], struct raster_wide *t,
                                  struct raster_box *box)
{
    int left = 0, right = 0, low = 0, high = 0, near = 0, far = 0, behind = 0;
    struct homogeneous h[3];
    for (int k = 0; k < 3; k++) {
        const float x = p[k][0], y = p[k][1], z = p[k][2], w = p[k][3];
        left += x<-w, right += x> w, low += y<-w, high += y> w, near += z<-w, far += z> w, behind += w <= 0;
        h[k] = raster_homogeneous(a, p[k]);
    }
    if (left == 3 || right == 3 || low == 3 || high == 3 || near == 3 || far == 3 || behind == 3)
        return false;
    const double l0 = dcross(h[1].y, h[2].w, h[1].w, h[2].y), m0 = dcross(h[1].w, h[2].x, h[1].x, h[2].w),
                 k0 = dcross(h[1].x, h[2].y, h[1].y, h[2].x);
    const double l1 = dcross(h[2].y, h[0].w, h[2].w, h[0].y), m1 = dcross(h[2].w, h[0].x, h[2].x, h[0].w),
                 k1 = dcross(h[2].x, h[0].y, h[2].y, h[0].x);
    const double l2 = dcross(h[0].y, h[1].w, h[0].w, h[1].y), m2 = dcross(h[0].w, h[1].x, h[0].x, h[1].w),
                 k2 = dcross(h[0].x, h[1].y, h[0].y, h[1].x);
    const double det = dadd_rn(dmul_rn(h[0].x, l0), dadd_rn(dmul_rn(h[0].y, m0), dmul_rn(h[0].w, k0)));
    if (!(det > 0.0 || det < 0.0))
        return false;
    t->n0 = dadd_rn(dmul_rn(h[0].z, l0), dadd_rn(dmul_rn(h[1].z, l1), dmul_rn(h[2].z, l2))) / det;
    t->n1 = dadd_rn(dmul_rn(h[0].z, m0), dadd_rn(dmul_rn(h[1].z, m1), dmul_rn(h[2].z, m2))) / det;
    t->n2 = dadd_rn(dmul_rn(h[0].z, k0), dadd_rn(dmul_rn(h[1].z, k1), dmul_rn(h[2].z, k2))) / det;
    int sign = det > 0.0 ? 1 : -1;
    if (h[0].snapped && h[1].snapped && h[2].snapped) { /* its neighbours see the rounded triangle */
        const long long area = (long long)(h[1].grid_x - h[0].grid_x) * (h[2].grid_y - h[0].grid_y) -
                               (long long)(h[2].grid_x - h[0].grid_x) * (h[1].grid_y - h[0].grid_y);
        if (area == 0)
            return false;
        sign = area > 0 ? 1 : -1;
    }
    wide_edge(&h[1], &h[2], sign, t, 0);
    wide_edge(&h[2], &h[0], sign, t, 1);
    wide_edge(&h[0], &h[1], sign, t, 2);
    *box = wide_box(a, h);
    return box->j0 <= box->j1 && box->i0 <= box->i1;
}

/* Whether a wide triangle covers a sample, and its depth there. */
FEL_INLINE bool wide_sample(const struct raster_wide *t, int px, int py, unsigned *depth)
{
    for (int k = 0; k < 3; k++) {
        const double e =
            dadd_rn(dadd_rn(dmul_rn(t->a[k], px - t->ox[k]), dmul_rn(t->b[k], py - t->oy[k])), t->c[k]);
        if (!(e > 0.0 || (e == 0.0 && t->owns[k])))
            return false;
    }
    const double z = dadd_rn(dadd_rn(dmul_rn(t->n0, px), dmul_rn(t->n1, py)), t->n2);
    if (!(z >= -1.0 && z <= 1.0))
        return false;
    *depth = depth_bits((float)z);
    return true;
}

/* False when no sample of a box can be covered: one edge has them all outside. */
FEL_INLINE bool wide_touches(const struct raster_wide *t, const struct rasterize_args *a,
                             const struct raster_box *box)
{
    const double x0 = sample_place(box->j0, a->width), x1 = sample_place(box->j1, a->width);
    const double y0 = sample_place(box->i0, a->height), y1 = sample_place(box->i1, a->height);
    for (int k = 0; k < 3; k++) {
        const double x = t->a[k] > 0.0 ? x1 : x0,
                     y = t->b[k] > 0.0 ? y1 : y0; /* the box's innermost corner */
        if (dadd_rn(dadd_rn(dmul_rn(t->a[k], x - t->ox[k]), dmul_rn(t->b[k], y - t->oy[k])), t->c[k]) < 0.0)
            return false;
    }
    return true;
}

/* ---- from keys to barycentrics ---- */

/* Homogeneous barycentrics at a sample: a[k]/S are the perspective-correct weights. */
struct barycentrics {
    float px[3], py[3]; /* x_k - X w_k, y_k - Y w_k */
    float a[3], s;
};

FEL_INLINE struct barycentrics barycentrics_at(const float p[3][4], struct ndc x, struct ndc y)
{
    struct barycentrics b;
    for (int k = 0; k < 3; k++) {
        b.px[k] = ndc_offset(p[k][0], p[k][3], x);
        b.py[k] = ndc_offset(p[k][1], p[k][3], y);
    }
    b.a[0] = cross2(b.px[1], b.py[2], b.py[1], b.px[2]);
    b.a[1] = cross2(b.px[2], b.py[0], b.py[2], b.px[0]);
    b.a[2] = cross2(b.px[0], b.py[1], b.py[0], b.px[1]);
    b.s = b.a[0] + b.a[1] + b.a[2];
    return b;
}

/* d a_k / dX and d a_k / dY, X and Y in NDC; they do not depend on the sample. */
FEL_INLINE void barycentric_slopes(const float p[3][4], float ax[3], float ay[3])
{
    for (int k = 0; k < 3; k++) {
        const float *q = p[k == 2 ? 0 : k + 1], *r = p[k == 0 ? 2 : k - 1];
        ax[k] = cross2(q[1], r[3], q[3], r[1]);
        ay[k] = cross2(q[3], r[0], q[0], r[3]);
    }
}

FEL_INLINE float clamp01(float v) { return v > 0.0F ? (v < 1.0F ? v : 1.0F) : 0.0F; /* NaN gives 0 */ }

FEL_INLINE void resolve_pixel(const struct rasterize_args *a, int image, int i, int j, unsigned long long key)
{
    const long long pixel = ((long long)image * a->height + i) * a->width + j;
    if (a->depth)
        a->depth[pixel] = (unsigned)(key >> 32);
    float p[3][4];
    const long long face = key_face(key);
    if (key == EMPTY_KEY || !raster_load(a, image, face, p)) {
        store4(a->rast + 4 * pixel, 0, 0, 0, 0);
        if (a->rast_db)
            store4(a->rast_db + 4 * pixel, 0, 0, 0, 0);
        return;
    }
    const struct barycentrics b = barycentrics_at(p, ndc_of(j, a->width), ndc_of(i, a->height));
    const float inverse = b.s != 0.0F ? 1.0F / b.s : 0.0F;
    const float exact_u = b.a[0] * inverse, exact_v = b.a[1] * inverse;
    float u = clamp01(exact_u), v = clamp01(exact_v); /* only the rounding can put a sample outside */
    if (u + v > 1.0F) {
        const float sum = u + v;
        u /= sum;
        v /= sum;
    }
    const float zs = b.a[0] * p[0][2] + b.a[1] * p[1][2] + b.a[2] * p[2][2];
    const float ws = b.a[0] * p[0][3] + b.a[1] * p[1][3] + b.a[2] * p[2][3];
    float z = ws != 0.0F ? zs / ws : 0.0F;
    z = z > 1.0F ? 1.0F : z < -1.0F ? -1.0F : z;
    store4(a->rast + 4 * pixel, u, v, z, id_encode((unsigned)face + 1));
    if (a->rast_db) {
        float ax[3], ay[3];
        barycentric_slopes(p, ax, ay);
        const float sx = ax[0] + ax[1] + ax[2], sy = ay[0] + ay[1] + ay[2];
        const float kx = inverse * 2.0F / (float)a->width, ky = inverse * 2.0F / (float)a->height;
        store4(a->rast_db + 4 * pixel, kx * (ax[0] - u * sx), ky * (ay[0] - u * sy), kx * (ax[1] - v * sx),
               ky * (ay[1] - v * sy));
    }
}

/* ---- gradients ---- */

struct rasterize_backward_args {
    const float *positions; /* [n or 1, v, 4] */
    const int *triangles;
    const float *rast, *grad_rast, *grad_rast_db; /* [n, height, width, 4]; the last may be NULL */
    struct grad_sink grad;                        /* to positions */
    long long vertex_count, face_count, image_vertices, pixel_count;
    int width, height;
};

/* What one pixel gives to x, y and w of its face's vertices. False: nothing. */
FEL_INLINE bool rasterize_gradient(const struct rasterize_backward_args *args, int image, int i, int j,
                                   int v[3], long long *first_vertex, float g[3][3])
{
    const long long pixel = ((long long)image * args->height + i) * args->width + j;
    float up[4], up_db[4] = {0, 0, 0, 0};
    load4(args->grad_rast + 4 * pixel, up);
    if (args->grad_rast_db)
        load4(args->grad_rast_db + 4 * pixel, up_db);
    if (up[0] == 0.0F && up[1] == 0.0F && up_db[0] == 0.0F && up_db[1] == 0.0F && up_db[2] == 0.0F &&
        up_db[3] == 0.0F)
        return false; /* even where positions are not finite */
    const long long face = id_face(args->rast[4 * pixel + 3]);
    if (face < 0 || face >= args->face_count || !face_vertices(args->triangles, face, args->vertex_count, v))
        return false;
    *first_vertex = image * args->image_vertices;
    float p[3][4];
    for (int k = 0; k < 3; k++)
        load4(args->positions + 4 * (*first_vertex + v[k]), p[k]);
    const struct ndc x = ndc_of(j, args->width), y = ndc_of(i, args->height);
    const struct barycentrics b = barycentrics_at(p, x, y);
    if (b.s == 0.0F)
        return false;
    const float inverse = 1.0F / b.s, u = b.a[0] * inverse, w = b.a[1] * inverse;
    float gu = up[0], gv = up[1], extra = 0.0F; /* extra: what the division by S adds for the derivatives */
    float alpha[3] = {0, 0, 0}, beta[3] = {0, 0, 0}; /* to d a_k / dX and d a_k / dY */
    if (args->grad_rast_db) {
        float ax[3], ay[3];
        barycentric_slopes(p, ax, ay);
        const float sx = ax[0] + ax[1] + ax[2], sy = ay[0] + ay[1] + ay[2];
        const float kx = inverse * 2.0F / (float)args->width, ky = inverse * 2.0F / (float)args->height;
        const float gux = up_db[0] * kx, guy = up_db[1] * ky, gvx = up_db[2] * kx, gvy = up_db[3] * ky;
        gu -= gux * sx + guy * sy;
        gv -= gvx * sx + gvy * sy;
        extra = (gux * (ax[0] - u * sx) + guy * (ay[0] - u * sy) + gvx * (ax[1] - w * sx) +
                 gvy * (ay[1] - w * sy)) *
                inverse;
        const float shared_x = gux * u + gvx * w, shared_y = guy * u + gvy * w;
        alpha[0] = gux - shared_x, alpha[1] = gvx - shared_x, alpha[2] = -shared_x;
        beta[0] = guy - shared_y, beta[1] = gvy - shared_y, beta[2] = -shared_y;
    }
    const float q = gu * u + gv * w;
    const float c[3] = {(gu - q) * inverse - extra, (gv - q) * inverse - extra, -q * inverse - extra};
    for (int k = 0; k < 3; k++) {
        const int m = k == 2 ? 0 : k + 1, n = k == 0 ? 2 : k - 1; /* the two vertices after k, in order */
        const float dx = c[n] * b.py[m] - c[m] * b.py[n], dy = c[m] * b.px[n] - c[n] * b.px[m];
        /* a_n's slopes have vertex k first, a_m's have it second */
        g[k][0] = dx + (beta[m] * p[n][3] - beta[n] * p[m][3]);
        g[k][1] = dy + (alpha[n] * p[m][3] - alpha[m] * p[n][3]);
        g[k][2] = -ndc_float(x) * dx - ndc_float(y) * dy +
                  (alpha[m] * p[n][1] - alpha[n] * p[m][1] + beta[n] * p[m][0] - beta[m] * p[n][0]);
    }
    return true;
}

#endif
