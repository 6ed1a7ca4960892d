/* raster/interpolate_math.h: vertex attributes at a pixel, their image-space derivatives, and the gradients of both. */
#ifndef FEL_INTERPOLATE_MATH_H
#define FEL_INTERPOLATE_MATH_H

#include "raster_math.h"

struct interpolate_args {
    const float *attributes; /* [n or 1, v, a] */
    const float *rast;       /* [n, h, w, 4] */
    const float *rast_db;    /* [n, h, w, 4]; NULL without derivatives */
    const int *triangles;    /* [f, 3] */
    const int *selected;     /* [selected_count] attributes that get derivatives; NULL: all, in order */
    float *out, *out_da;     /* [n, h, w, a], [n, h, w, 2 * selected_count] */
    const float *grad_out, *grad_out_da;
    struct grad_sink grad;           /* to attributes */
    float *grad_rast, *grad_rast_db; /* either may be NULL */
    long long vertex_count, face_count, pixel_count;
    long long image_pixels;     /* h * w */
    long long image_attributes; /* floats between two images' attributes: v * a, or 0 when shared */
    int attribute_count, selected_count, width;
};

/* A pixel's face and weights; false: background. */
struct interpolate_at {
    const float *corner[3];
    long long offset[3]; /* of each corner's attributes */
    float u, v, rest;
};

FEL_INLINE bool interpolate_find(const struct interpolate_args *args, long long pixel,
                                 struct interpolate_at *at)
{
    float r[4];
    int v[3];
    load4(args->rast + 4 * pixel, r);
    const long long face = id_face(r[3]);
    if (face < 0 || face >= args->face_count || !face_vertices(args->triangles, face, args->vertex_count, v))
        return false;
    const long long base =
        args->image_attributes ? divide(pixel, args->image_pixels) * args->image_attributes : 0;
    for (int k = 0; k < 3; k++) {
        at->offset[k] = base + (long long)v[k] * args->attribute_count;
        at->corner[k] = args->attributes + at->offset[k];
    }
    at->u = r[0], at->v = r[1], at->rest = 1.0F - r[0] - r[1];
    return true;
}

/* The k-th attribute with derivatives; -1: there is none of that number. */
FEL_INLINE int interpolate_selected(const struct interpolate_args *args, int k)
{
    const int s = args->selected ? args->selected[k] : k;
    return s < args->attribute_count ? s : -1;
}

FEL_INLINE void interpolate_pixel(const struct interpolate_args *args, long long pixel)
{
    struct interpolate_at at;
    float *out = args->out + pixel * args->attribute_count;
    float *da = args->selected_count ? args->out_da + 2 * pixel * args->selected_count : 0;
    if (!interpolate_find(args, pixel, &at)) {
        for (int k = 0; k < args->attribute_count; k++)
            out[k] = 0.0F;
        for (long long k = 0; k < 2LL * args->selected_count; k++)
            da[k] = 0.0F;
        return;
    }
    for (int k = 0; k < args->attribute_count; k++)
        out[k] = at.u * at.corner[0][k] + at.v * at.corner[1][k] + at.rest * at.corner[2][k];
    if (!args->selected_count)
        return;
    float db[4];
    load4(args->rast_db + 4 * pixel, db);
    for (int k = 0; k < args->selected_count; k++) {
        const int s = interpolate_selected(args, k);
        if (s < 0) {
            da[2LL * k] = da[2LL * k + 1] = 0.0F;
            continue;
        }
        const float d0 = at.corner[0][s] - at.corner[2][s], d1 = at.corner[1][s] - at.corner[2][s];
        da[2LL * k] = db[0] * d0 + db[2] * d1;
        da[2LL * k + 1] = db[1] * d0 + db[3] * d1;
    }
}

/* Gradients to rast and rast_db, and to the three corners' attributes through the sink. */
FEL_INLINE void interpolate_gradient(const struct interpolate_args *args, long long pixel)
{
    float gu = 0.0F, gv = 0.0F, gdb[4] = {0, 0, 0, 0};
    struct interpolate_at at;
    if (interpolate_find(args, pixel, &at)) {
        const float *g = args->grad_out + pixel * args->attribute_count;
        for (int k = 0; k < args->attribute_count; k++) {
            if (g[k] == 0.0F)
                continue; /* exactly nothing, even where attributes are not finite */
            gu += g[k] * (at.corner[0][k] - at.corner[2][k]);
            gv += g[k] * (at.corner[1][k] - at.corner[2][k]);
            if (args->grad.sum) {
                sink_add(&args->grad, at.offset[0] + k, at.u * g[k]);
                sink_add(&args->grad, at.offset[1] + k, at.v * g[k]);
                sink_add(&args->grad, at.offset[2] + k, at.rest * g[k]);
            }
        }
        if (args->grad_out_da) {
            float db[4];
            load4(args->rast_db + 4 * pixel, db);
            const float *gda = args->grad_out_da + 2 * pixel * args->selected_count;
            for (int k = 0; k < args->selected_count; k++) {
                const float gx = gda[2LL * k], gy = gda[2LL * k + 1];
                const int s = interpolate_selected(args, k);
                if (s < 0 || (gx == 0.0F && gy == 0.0F))
                    continue;
                const float d0 = at.corner[0][s] - at.corner[2][s], d1 = at.corner[1][s] - at.corner[2][s];
                gdb[0] += d0 * gx, gdb[1] += d0 * gy, gdb[2] += d1 * gx, gdb[3] += d1 * gy;
                if (args->grad.sum) {
                    const float du = gx * db[0] + gy * db[1], dv = gx * db[2] + gy * db[3];
                    sink_add(&args->grad, at.offset[0] + s, du);
                    sink_add(&args->grad, at.offset[1] + s, dv);
                    sink_add(&args->grad, at.offset[2] + s, -du - dv);
                }
            }
        }
    }
    if (args->grad_rast)
        store4(args->grad_rast + 4 * pixel, gu, gv, 0, 0);
    if (args->grad_rast_db)
        store4(args->grad_rast_db + 4 * pixel, gdb[0], gdb[1], gdb[2], gdb[3]);
}

#endif
