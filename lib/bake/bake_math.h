/* bake/bake_math.h: the arithmetic of baking, valid C17 and CUDA. No host headers: NVRTC takes it as it is.
 *
 * A face is three edge functions over the plane of texels (Olano & Greer 1997): with corners (x w, y w, w), the weight
 * of corner i at texel (px, py) is the cross product of the other two corners, times (px, py, 1). Corners behind the eye
 * need no clipping. The cross product of a and b is exactly the negative of that of b and a, so two faces agree about
 * their shared edge bit for bit. */
#ifndef BAKE_MATH_H
#define BAKE_MATH_H

#ifdef __CUDACC__
#define BAKE_INLINE __device__ __forceinline__
#define BAKE_MUL(x, y) __dmul_rn(x, y)
#define BAKE_ADD(x, y) __dadd_rn(x, y)
#define BAKE_MULF(x, y) __fmul_rn(x, y)
#define BAKE_ADDF(x, y) __fadd_rn(x, y)
#else
#define BAKE_INLINE static inline
#define BAKE_MUL(x, y) ((x) * (y))
#define BAKE_ADD(x, y) ((x) + (y))
#define BAKE_MULF(x, y) ((x) * (y))
#define BAKE_ADDF(x, y) ((x) + (y))
#endif

#define BAKE_EMPTY 0xFFFFFFFFFFFFFFFFULL

struct bake_args {       /* fel_bake_uv and fel_bake_view */
    const float *points; /* [v, 2] uvs, or [v, 4] clip positions when view is set */
    const int *faces;
    const float *behind;
    unsigned long long *keys; /* [h, w]: depth << 32 | face, least wins */
    int *large, *large_count; /* faces with large boxes, for a kernel of their own */
    float *rast;              /* [h, w, 4] */
    int *indices;
    float *weights;
    long long vertex_count, face_count;
    double offset_x, offset_y; /* of a texel's sample from its index */
    double scale_x, scale_y;   /* from uv, or clip x and y, to samples */
    int width, height, view;
};

struct bake_face {
    double edge[3][3];  /* e_i = edge[i][0] px + edge[i][1] py + edge[i][2], all of the sign of the area */
    double depth[3];    /* z of each corner, view only */
    int x0, y0, x1, y1; /* texels [x0, x1) x [y0, y1) that can be covered */
};

BAKE_INLINE int bake_is_finite(double v) { return v - v == 0; }

BAKE_INLINE int bake_floor(double v, int low, int high)
{
    if (!(v > (double)low))
        return low;
    if (v >= (double)high)
        return high;
    const int i = (int)v;
    return i - ((double)i > v);
}

/* False when the face covers nothing. */
BAKE_INLINE int bake_setup(const struct bake_args *a, long long face, struct bake_face *out)
{
    double x[3], y[3], w[3];
    double low_x = 1e300, low_y = 1e300, high_x = -1e300, high_y = -1e300;
    int in_front = 0;
    for (int i = 0; i < 3; i++) {
        const long long v = a->faces[3 * face + i];
        if (v < 0 || v >= a->vertex_count)
            return 0;
        if (a->view) {
            const float *p = a->points + 4 * v;
            w[i] = p[3];
            x[i] = BAKE_ADD(BAKE_MUL(BAKE_ADD(BAKE_MUL(p[0], 0.5), BAKE_MUL(w[i], 0.5)), a->scale_x),
                            BAKE_MUL(w[i], 0.5));
            y[i] = BAKE_ADD(BAKE_MUL(BAKE_ADD(BAKE_MUL(p[1], 0.5), BAKE_MUL(w[i], 0.5)), a->scale_y),
                            BAKE_MUL(w[i], 0.5));
            out->depth[i] = p[2];
            if (!bake_is_finite(out->depth[i]))
                return 0;
        } else {
            w[i] = 1;
            x[i] = BAKE_MUL(a->points[2 * v], a->scale_x);
            y[i] = BAKE_MUL(BAKE_ADD(1.0, -(double)a->points[2 * v + 1]), a->scale_y);
        }
        if (!bake_is_finite(x[i]) || !bake_is_finite(y[i]) || !bake_is_finite(w[i]))
            return 0;
        if (w[i] > 0) {
            const double sx = x[i] / w[i], sy = y[i] / w[i];
            low_x = sx < low_x ? sx : low_x;
            high_x = sx > high_x ? sx : high_x;
            low_y = sy < low_y ? sy : low_y;
            high_y = sy > high_y ? sy : high_y;
            in_front++;
        }
    }
    if (!in_front)
        return 0;
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        out->edge[i][0] = BAKE_ADD(BAKE_MUL(y[j], w[k]), -BAKE_MUL(w[j], y[k]));
        out->edge[i][1] = BAKE_ADD(BAKE_MUL(w[j], x[k]), -BAKE_MUL(x[j], w[k]));
        out->edge[i][2] = BAKE_ADD(BAKE_MUL(x[j], y[k]), -BAKE_MUL(y[j], x[k]));
    }
    const double area = BAKE_ADD(BAKE_ADD(BAKE_MUL(out->edge[0][0], x[0]), BAKE_MUL(out->edge[0][1], y[0])),
                                 BAKE_MUL(out->edge[0][2], w[0]));
    if (!(area > 0 || area < 0) || !bake_is_finite(area))
        return 0;
    for (int i = 0; i < 3 && area < 0; i++)
        for (int k = 0; k < 3; k++)
            out->edge[i][k] = -out->edge[i][k];
    out->x0 = out->y0 = 0;
    out->x1 = a->width;
    out->y1 = a->height;
    if (in_front == 3) { /* else the box may be unbounded: the whole image */
        out->x0 = bake_floor(low_x - a->offset_x, 0, a->width);
        out->y0 = bake_floor(low_y - a->offset_y, 0, a->height);
        out->x1 = bake_floor(high_x - a->offset_x, -1, a->width - 1) + 1;
        out->y1 = bake_floor(high_y - a->offset_y, -1, a->height - 1) + 1;
    }
    return out->x0 < out->x1 && out->y0 < out->y1;
}

/* The weights at texel (column, row), before division by their sum; false when it is outside. */
BAKE_INLINE int bake_weights(const struct bake_args *a, const struct bake_face *f, int column, int row,
                             double e[3])
{
    const double px = column + a->offset_x, py = row + a->offset_y;
    for (int i = 0; i < 3; i++) {
        e[i] = BAKE_ADD(BAKE_MUL(f->edge[i][0], px), BAKE_ADD(BAKE_MUL(f->edge[i][1], py), f->edge[i][2]));
        if (!(e[i] >= 0))
            return 0;
    }
    return e[0] + e[1] + e[2] > 0;
}

/* The key of face at a texel, BAKE_EMPTY when it does not cover it or is not seen there. */
BAKE_INLINE unsigned long long bake_key(const struct bake_args *a, const struct bake_face *f, long long face,
                                        int column, int row)
{
    double e[3];
    if (!bake_weights(a, f, column, row, e))
        return BAKE_EMPTY;
    if (!a->view)
        return (unsigned long long)face;
    /* the weights are of 1/w; depth z/w is linear in them: sum(e z) / sum(e w), and sum(e w) is the area */
    const double z = BAKE_ADD(BAKE_ADD(BAKE_MUL(e[0], f->depth[0]), BAKE_MUL(e[1], f->depth[1])),
                              BAKE_MUL(e[2], f->depth[2]));
    const long long at = (long long)row * a->width + column;
    double ew = 0;
    for (int i = 0; i < 3; i++)
        ew = BAKE_ADD(ew, BAKE_MUL(e[i], (double)a->points[4 * (long long)a->faces[3 * face + i] + 3]));
    if (!(ew > 0))
        return BAKE_EMPTY;
    const double depth = BAKE_ADD(BAKE_MUL(z / ew, 0.49999), 0.5);
    if (!(depth >= 0))
        return BAKE_EMPTY;
    if (a->behind && !(depth >= BAKE_ADD(BAKE_ADD(BAKE_MUL((double)a->behind[at], 0.49999), 0.5), 1e-6)))
        return BAKE_EMPTY;
    const double steps = depth * 262144.0;
    const unsigned long long quantized = steps < 2147483647.0 ? (unsigned long long)steps : 2147483647ULL;
    return quantized << 32 | (unsigned long long)face;
}

/* The face that won a texel, -1 for none. */
BAKE_INLINE long long bake_winner(const struct bake_args *a, long long at)
{
    return a->keys[at] == BAKE_EMPTY ? -1 : (long long)(a->keys[at] & 0xFFFFFFFFULL);
}

/* Writes a texel's result; f is the winner's setup, and not read when there is none. */
BAKE_INLINE void bake_write(const struct bake_args *a, int column, int row, long long face,
                            const struct bake_face *f)
{
    const long long at = (long long)row * a->width + column;
    float *weights = a->view ? a->weights + 3 * at : a->rast + 4 * at;
    double e[3] = {0, 0, 0}, sum = 1;
    if (face >= 0) {
        (void)bake_weights(a, f, column, row, e);
        sum = BAKE_ADD(BAKE_ADD(e[0], e[1]), e[2]);
    }
    for (int i = 0; i < 3; i++)
        weights[i] = (float)(e[i] / sum);
    if (a->view)
        a->indices[at] = (int)face + 1;
    else
        weights[3] = (float)face;
}

/* ---- attributes */

struct bake_interpolate_args {
    const float *attributes, *rast, *weights;
    const int *faces, *indices;
    float *out;
    long long vertex_count, face_count, texel_count, channels;
};

struct
    bake_corners { /* of the face at a texel: rows of attributes and their weights; all 0 where there is none */
    const float *row[3];
    float weight[3];
};

BAKE_INLINE void bake_corners_at(const struct bake_interpolate_args *a, long long texel,
                                 struct bake_corners *out)
{
    /* an index that a float can't hold, NaN among them, is no face */
    const float stored = a->rast ? a->rast[4 * texel + 3] : 0;
    const long long face = a->rast ? (stored >= 0 && stored < 2147483648.0f ? (long long)stored : -1)
                                   : (long long)a->indices[texel] - 1;
    for (int i = 0; i < 3; i++) {
        const long long v = face >= 0 && face < a->face_count ? a->faces[3 * face + i] : -1;
        out->row[i] = v >= 0 && v < a->vertex_count ? a->attributes + v * a->channels : 0;
        out->weight[i] = a->rast ? a->rast[4 * texel + i] : a->weights[3 * texel + i];
    }
}

BAKE_INLINE float bake_blend(const struct bake_corners *c, long long channel)
{
    float sum = 0;
    for (int i = 0; i < 3; i++)
        if (c->row[i])
            sum = BAKE_ADDF(sum, BAKE_MULF(c->weight[i], c->row[i][channel]));
    return sum;
}

/* ---- gutters */

struct bake_gutter_args {
    float *image;        /* [h, w, c] */
    const float *source; /* grow: the image before this iteration */
    unsigned char *mask, *next_mask;
    long long *from, *to; /* nearest: the known texel that each has heard of, or -1 */
    long long channels;
    int width, height, step;
    long long reach_squared;
};

BAKE_INLINE void bake_flood_begin(const struct bake_gutter_args *a, long long at)
{
    a->to[at] = a->mask[at] ? at : -1;
}

BAKE_INLINE void bake_flood_step(const struct bake_gutter_args *a, long long at)
{
    const int x = (int)(at % a->width), y = (int)(at / a->width);
    long long best = a->from[at], distance = -1;
    if (best >= 0) {
        const long long dx = best % a->width - x, dy = best / a->width - y;
        distance = dx * dx + dy * dy;
    }
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
            const long long nx = x + (long long)dx * a->step, ny = y + (long long)dy * a->step;
            if (nx < 0 || ny < 0 || nx >= a->width || ny >= a->height)
                continue;
            const long long seen = a->from[ny * a->width + nx];
            if (seen < 0)
                continue;
            const long long sx = seen % a->width - x, sy = seen / a->width - y, d = sx * sx + sy * sy;
            if (distance < 0 || d < distance || (d == distance && seen < best)) {
                best = seen;
                distance = d;
            }
        }
    a->to[at] = best;
}

BAKE_INLINE void bake_flood_end(const struct bake_gutter_args *a, long long at)
{
    const long long seen = a->from[at];
    if (a->mask[at] || seen < 0)
        return;
    const long long dx = seen % a->width - at % a->width, dy = seen / a->width - at / a->width;
    if (dx * dx + dy * dy > a->reach_squared)
        return;
    for (long long c = 0; c < a->channels; c++)
        a->image[at * a->channels + c] = a->image[seen * a->channels + c];
    a->next_mask[at] = 255;
}

/* Known texels in the 3 x 3 neighbourhood. */
BAKE_INLINE int bake_known_near(const struct bake_gutter_args *a, int x, int y)
{
    int count = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
            const int nx = x + dx, ny = y + dy;
            if (nx >= 0 && ny >= 0 && nx < a->width && ny < a->height)
                count += a->mask[(long long)ny * a->width + nx] != 0;
        }
    return count;
}

BAKE_INLINE float bake_mean_near(const struct bake_gutter_args *a, int x, int y, int known, long long channel)
{
    float sum = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
            const int nx = x + dx, ny = y + dy;
            if (nx < 0 || ny < 0 || nx >= a->width || ny >= a->height)
                continue;
            const long long at = (long long)ny * a->width + nx;
            if (a->mask[at])
                sum = BAKE_ADDF(sum, a->source[at * a->channels + channel]);
        }
    return sum / (float)known;
}

BAKE_INLINE void bake_grow(const struct bake_gutter_args *a, long long at)
{
    const int x = (int)(at % a->width), y = (int)(at / a->width);
    const int is_new = !a->mask[at] && bake_known_near(a, x, y);
    a->next_mask[at] = is_new ? 255 : a->mask[at];
    for (long long c = 0; c < a->channels; c++) {
        if (!is_new) {
            a->image[at * a->channels + c] = a->source[at * a->channels + c];
            continue;
        }
        float sum = 0;
        int count = 0;
        for (int dy = -1; dy <= 1; dy++)
            for (int dx = -1; dx <= 1; dx++) {
                const int nx = x + dx, ny = y + dy;
                if (nx < 0 || ny < 0 || nx >= a->width || ny >= a->height)
                    continue;
                const int known = bake_known_near(a, nx, ny); /* known or new: it has a known neighbour */
                if (!known)
                    continue;
                sum = BAKE_ADDF(sum, bake_mean_near(a, nx, ny, known, c));
                count++;
            }
        a->image[at * a->channels + c] = sum / (float)count;
    }
}

/* Push-pull. A level holds means premultiplied by nothing: values and a weight in 0..1, [h, w, c + 1]. */
struct bake_pyramid_args {
    float *image;              /* level 0: [h, w, c], with mask for weights */
    const unsigned char *mask; /* NULL on other levels */
    float *fine, *coarse;      /* [h, w, c + 1]; fine is NULL on level 0 */
    long long channels;
    int width, height;               /* of fine */
    int coarse_width, coarse_height; /* half, rounded up */
};

BAKE_INLINE float bake_fine_weight(const struct bake_pyramid_args *a, long long at)
{
    return a->mask ? (a->mask[at] ? 1.0f : 0.0f) : a->fine[at * (a->channels + 1) + a->channels];
}

BAKE_INLINE float *bake_fine_value(const struct bake_pyramid_args *a, long long at, long long c)
{
    return a->mask ? a->image + at * a->channels + c : a->fine + at * (a->channels + 1) + c;
}

BAKE_INLINE void bake_pull(const struct bake_pyramid_args *a, long long at)
{
    const int x = 2 * (int)(at % a->coarse_width), y = 2 * (int)(at / a->coarse_width);
    float *out = a->coarse + at * (a->channels + 1), total = 0;
    for (long long c = 0; c <= a->channels; c++)
        out[c] = 0;
    for (int k = 0; k < 4; k++) {
        const int fx = x + (k & 1), fy = y + (k >> 1);
        if (fx >= a->width || fy >= a->height)
            continue;
        const long long fine = (long long)fy * a->width + fx;
        const float weight = bake_fine_weight(a, fine);
        if (!(weight > 0)) /* what is unknown may be NaN */
            continue;
        total = BAKE_ADDF(total, weight);
        for (long long c = 0; c < a->channels; c++)
            out[c] = BAKE_ADDF(out[c], BAKE_MULF(weight, *bake_fine_value(a, fine, c)));
    }
    for (long long c = 0; c < a->channels && total > 0; c++)
        out[c] = out[c] / total;
    out[a->channels] = total < 1.0f ? total : 1.0f;
}

/* A fine texel that is not whole is filled up from the four nearest coarse ones, bilinearly. */
BAKE_INLINE void bake_push(const struct bake_pyramid_args *a, long long at)
{
    const float own = bake_fine_weight(a, at);
    if (own >= 1.0f)
        return;
    const int x = (int)(at % a->width), y = (int)(at / a->width);
    const int cx = x / 2, cy = y / 2, ox = x & 1 ? cx + 1 : cx - 1, oy = y & 1 ? cy + 1 : cy - 1;
    for (long long c = 0; c < a->channels; c++) {
        float sum = 0, total = 0;
        for (int k = 0; k < 4; k++) {
            const int px = k & 1 ? ox : cx, py = k >> 1 ? oy : cy;
            if (px < 0 || py < 0 || px >= a->coarse_width || py >= a->coarse_height)
                continue;
            const float *coarse = a->coarse + ((long long)py * a->coarse_width + px) * (a->channels + 1);
            if (!(coarse[a->channels] > 0))
                continue;
            const float weight = (k & 1 ? 0.25f : 0.75f) * (k >> 1 ? 0.25f : 0.75f);
            sum = BAKE_ADDF(sum, BAKE_MULF(weight, coarse[c]));
            total = BAKE_ADDF(total, weight);
        }
        float *value = bake_fine_value(a, at, c);
        if (total > 0)
            *value =
                own > 0 ? BAKE_ADDF(BAKE_MULF(own, *value), BAKE_MULF(1.0f - own, sum / total)) : sum / total;
    }
    if (!a->mask)
        a->fine[at * (a->channels + 1) + a->channels] = 1.0f;
}

#endif
