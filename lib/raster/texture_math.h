/* raster/texture_math.h: texture lookups with mipmaps, 2-D and cube, and their gradients. */
#ifndef FEL_TEXTURE_MATH_H
#define FEL_TEXTURE_MATH_H

#include "raster_math.h"

enum texture_filter { FILTER_NEAREST, FILTER_LINEAR, FILTER_MIP_NEAREST, FILTER_MIP_LINEAR };
enum texture_boundary { BOUNDARY_WRAP, BOUNDARY_CLAMP, BOUNDARY_ZERO, BOUNDARY_CUBE };
enum { MAX_LEVELS = 17 /* 65,536 down to 1 */ };

struct texture_level {
    const float *texels;   /* [n or 1, (6,) height, width, c] */
    struct grad_sink grad; /* to them */
    int width, height;
};

struct texture_args {
    struct texture_level level[MAX_LEVELS];
    const float *uv, *uv_da, *bias; /* [p, 2 or 3], [p, 4 or 6] or NULL, [p] or NULL */
    float *out;                     /* [p, c] */
    const float *grad_out;
    float *grad_uv, *grad_uv_da, *grad_bias; /* any may be NULL */
    long long pixel_count, image_pixels;
    int level_count, channels, filter, boundary;
    int width;  /* of an output image, by which kernels tile it */
    int shared; /* the texture's batch is 1: it serves every image */
    int grad_stride; /* floats between two texels' gradients: channels, or more where the kernel wants them aligned */
};

/* The four texels of one bilinear lookup. */
struct texture_taps {
    long long at[4]; /* texel index within the level, -1: reads 0 */
    float weight[4];
    float fx, fy;           /* fractions */
    float slope_x, slope_y; /* d(texel coordinate)/d(s, t): the level's size, or 0 where clamped */
    int corner; /* the tap that a cube corner lacks and whose value is the others' mean, else -1 */
};

struct texture_place { /* where a pixel looks */
    float s, t;
    int face;
    float m, sc, tc; /* cube: |major component| and the two others of the table, signs applied */
};

/* ---- cube map: faces +x -x +y -y +z -z, OpenGL's table ---- */

/* For each face which component is the major one, and which one with which sign gives s and t. */
FEL_INLINE void cube_axes(int face, int *major, int *sc, int *sc_sign, int *tc, int *tc_sign)
{
    *major = face >> 1;
    *sc = face < 2 ? 2 : 0;
    *sc_sign = face == 0 || face == 5 ? -1 : 1;
    *tc = face == 2 || face == 3 ? 2 : 1;
    *tc_sign = face == 2 ? 1 : -1;
}

FEL_INLINE bool cube_place(const float v[3], struct texture_place *p)
{
    const float ax = v[0] < 0 ? -v[0] : v[0], ay = v[1] < 0 ? -v[1] : v[1], az = v[2] < 0 ? -v[2] : v[2];
    if (!is_finite(v[0]) || !is_finite(v[1]) || !is_finite(v[2]))
        return false;
    int axis = 0;
    float m = ax;
    if (ay > m)
        axis = 1, m = ay;
    if (az > m)
        axis = 2, m = az;
    if (m == 0.0F)
        return false;
    const int face = 2 * axis + (v[axis] < 0);
    int major, sc, sc_sign, tc, tc_sign;
    cube_axes(face, &major, &sc, &sc_sign, &tc, &tc_sign);
    p->face = face;
    p->m = m;
    p->sc = (float)sc_sign * v[sc];
    p->tc = (float)tc_sign * v[tc];
    p->s = (p->sc / m + 1.0F) * 0.5F;
    p->t = (p->tc / m + 1.0F) * 0.5F;
    return true;
}

/* The texel next to a face's border, in 3-D: x or y is -1 or size. In units of half a texel the cube spans -size to
 * size; the neighbour lies half a texel below the border of the face that it belongs to. */
FEL_INLINE long long cube_neighbour(int face, int x, int y, int size)
{
    int major, sc, sc_sign, tc, tc_sign;
    cube_axes(face, &major, &sc, &sc_sign, &tc, &tc_sign);
    const int out_x = x < 0 || x >= size;
    const int beyond = out_x ? x : y;
    int v[3];
    v[major] = (face & 1 ? -1 : 1) * (size - 1);
    v[sc] = sc_sign * (out_x ? (beyond < 0 ? -size : size) : 2 * x + 1 - size);
    v[tc] = tc_sign * (out_x ? 2 * y + 1 - size : (beyond < 0 ? -size : size));
    const int axis = out_x ? sc : tc;
    const int next = 2 * axis + (v[axis] < 0);
    cube_axes(next, &major, &sc, &sc_sign, &tc, &tc_sign);
    const int nx = (sc_sign * v[sc] + size - 1) / 2, ny = (tc_sign * v[tc] + size - 1) / 2;
    return ((long long)next * size + ny) * size + nx;
}

/* ---- footprints ---- */

FEL_INLINE int clamp_int(int v, int low, int high) { return v < low ? low : v > high ? high : v; }

/* floorf, which is a library call on processors without SSE4.1. */
FEL_INLINE float floor_of(float v)
{
#ifdef __CUDACC__
    return floorf(v);
#else
    if (!(v > -8388608.0F && v < 8388608.0F)) /* an integer already, or NaN */
        return v;
    const float whole = (float)(int)v;
    return whole > v ? whole - 1.0F : whole;
#endif
}

FEL_INLINE float fraction_part(float v) { return v - floor_of(v); }

FEL_INLINE long long texture_nearest(const struct texture_args *args, const struct texture_place *p)
{
    const int w = args->level[0].width, h = args->level[0].height;
    float s = p->s, t = p->t;
    if (args->boundary == BOUNDARY_WRAP)
        s = fraction_part(s), t = fraction_part(t);
    const float fx = floor_of(s * (float)w), fy = floor_of(t * (float)h);
    if (args->boundary == BOUNDARY_ZERO && !(fx >= 0.0F && fx < (float)w && fy >= 0.0F && fy < (float)h))
        return -1;
    const int x = fx <= 0.0F ? 0 : fx >= (float)w ? w - 1 : (int)fx;
    const int y = fy <= 0.0F ? 0 : fy >= (float)h ? h - 1 : (int)fy;
    return ((long long)p->face * h + y) * w + x;
}

/* Functions below that take `cube` want args->boundary == BOUNDARY_CUBE there; kernels pass a constant, so that code for
 * flat textures carries nothing of the cube's. */
FEL_INLINE struct texture_taps texture_linear(const struct texture_args *args, const struct texture_place *p,
                                              int level, int cube)
{
    const int w = args->level[level].width, h = args->level[level].height;
    float s = p->s, t = p->t;
    struct texture_taps taps;
    taps.corner = -1;
    taps.slope_x = (float)w, taps.slope_y = (float)h;
    if (!cube && args->boundary == BOUNDARY_WRAP)
        s = fraction_part(s), t = fraction_part(t);
    float x = s * (float)w - 0.5F, y = t * (float)h - 0.5F;
    if (!cube && args->boundary == BOUNDARY_CLAMP) {
        if (!(x >= 0.0F && x < (float)(w - 1)))
            taps.slope_x = 0.0F;
        if (!(y >= 0.0F && y < (float)(h - 1)))
            taps.slope_y = 0.0F;
        x = x > 0.0F ? (x < (float)(w - 1) ? x : (float)(w - 1)) : 0.0F;
        y = y > 0.0F ? (y < (float)(h - 1) ? y : (float)(h - 1)) : 0.0F;
    }
    x = x > -2.0F ? (x < (float)w + 1.0F ? x : (float)w + 1.0F)
                  : -2.0F; /* so that the conversions are defined */
    y = y > -2.0F ? (y < (float)h + 1.0F ? y : (float)h + 1.0F) : -2.0F;
    const float bx = floor_of(x), by = floor_of(y);
    taps.fx = x - bx, taps.fy = y - by;
    int x0 = (int)bx, y0 = (int)by, x1 = x0 + 1, y1 = y0 + 1;
    taps.weight[0] = (1.0F - taps.fx) * (1.0F - taps.fy);
    taps.weight[1] = taps.fx * (1.0F - taps.fy);
    taps.weight[2] = (1.0F - taps.fx) * taps.fy;
    taps.weight[3] = taps.fx * taps.fy;
    const long long base = cube ? (long long)p->face * h : 0;
    if (!cube && args->boundary == BOUNDARY_WRAP) {
        x0 = x0 < 0 ? w - 1 : x0 >= w ? 0 : x0, x1 = x1 >= w ? x1 - w : x1;
        y0 = y0 < 0 ? h - 1 : y0 >= h ? 0 : y0, y1 = y1 >= h ? y1 - h : y1;
        x1 = clamp_int(x1, 0, w - 1), y1 = clamp_int(y1, 0, h - 1); /* a side of 1 */
    } else if (!cube && args->boundary == BOUNDARY_CLAMP) {
        x0 = clamp_int(x0, 0, w - 1), x1 = clamp_int(x1, 0, w - 1);
        y0 = clamp_int(y0, 0, h - 1), y1 = clamp_int(y1, 0, h - 1);
    } else if (x0 < 0 || y0 < 0 || x1 >= w || y1 >= h) {
        int lost = -1;
        for (int k = 0; k < 4; k++) {
            const int tx = k & 1 ? x1 : x0, ty = k & 2 ? y1 : y0;
            const int out_x = tx < 0 || tx >= w, out_y = ty < 0 || ty >= h;
            taps.at[k] = (base + ty) * w + tx;
            if (!cube && (out_x || out_y)) { /* BOUNDARY_ZERO */
                taps.at[k] = -1;
            } else if (out_x && out_y) {
                taps.at[k] = -1;
                lost = k;
            } else if (out_x || out_y) {
                taps.at[k] = cube_neighbour(p->face, tx, ty, w);
            }
        }
        if (cube && lost >= 0) {
            const float third = taps.weight[lost] / 3.0F;
            for (int k = 0; k < 4; k++)
                taps.weight[k] = k == lost ? 0.0F : taps.weight[k] + third;
            taps.corner = lost;
        }
        return taps;
    }
    taps.at[0] = (base + y0) * w + x0;
    taps.at[1] = (base + y0) * w + x1;
    taps.at[2] = (base + y1) * w + x0;
    taps.at[3] = (base + y1) * w + x1;
    return taps;
}

/* ---- level of detail ---- */

struct texture_lod {
    int level0, level1; /* equal when one level serves */
    float fraction;     /* of level1 */
    float jx[4];        /* ds/dX, ds/dY, dt/dX, dt/dY in texels of level 0 */
    float footprint;    /* squared major axis m; 0 when there is none */
};

/* Derivatives of s or t of a cube face: f(c, m, dc, dm) = (dc*m - c*dm)/(2 m^2), with m = |major| and its derivative. */
FEL_INLINE float cube_derivative(float c, float m, float dc, float dm)
{
    return (dc * m - c * dm) / (2.0F * m * m);
}

FEL_INLINE void texture_jacobian(const struct texture_args *args, const struct texture_place *p,
                                 const float *da, int cube, float jx[4])
{
    const float w = (float)args->level[0].width, h = (float)args->level[0].height;
    if (!cube) {
        jx[0] = da[0] * w, jx[1] = da[1] * w, jx[2] = da[2] * h, jx[3] = da[3] * h;
        return;
    }
    int major, sc, sc_sign, tc, tc_sign;
    cube_axes(p->face, &major, &sc, &sc_sign, &tc, &tc_sign);
    const float sign = p->face & 1 ? -1.0F : 1.0F;
    for (int k = 0; k < 2; k++) {
        const float dm = sign * da[2 * major + k];
        jx[k] = w * cube_derivative(p->sc, p->m, (float)sc_sign * da[2 * sc + k], dm);
        jx[2 + k] = w * cube_derivative(p->tc, p->m, (float)tc_sign * da[2 * tc + k], dm);
    }
}

FEL_INLINE struct texture_lod texture_lod_of(const struct texture_args *args, const struct texture_place *p,
                                             long long pixel, int cube)
{
    struct texture_lod lod = {0, 0, 0.0F, {0, 0, 0, 0}, 0.0F};
    float level = 0.0F;
    if (args->uv_da) {
        texture_jacobian(args, p, args->uv_da + pixel * (cube ? 6 : 4), cube, lod.jx);
        const float a = lod.jx[0] * lod.jx[0] + lod.jx[2] * lod.jx[2];
        const float b = lod.jx[1] * lod.jx[1] + lod.jx[3] * lod.jx[3];
        const float c = lod.jx[0] * lod.jx[1] + lod.jx[2] * lod.jx[3];
        const float half = 0.5F * (a - b);
        const float m = 0.5F * (a + b) + sqrtf(half * half + c * c);
        if (m > 0.0F) { /* not for NaN either */
            lod.footprint = m;
            level = 0.5F * log2f(m);
        }
    }
    if (args->bias && (lod.footprint > 0.0F || !args->uv_da))
        level += args->bias[pixel];
    const float last = (float)(args->level_count - 1);
    level = level > 0.0F ? (level < last ? level : last) : 0.0F; /* NaN gives 0 */
    const float base = floor_of(level);
    lod.level0 = lod.level1 = (int)base;
    if (args->filter == FILTER_MIP_LINEAR && level > base) {
        lod.level1 = lod.level0 + 1;
        lod.fraction = level - base;
    }
    return lod;
}

/* False: the pixel reads 0 and has no gradient. */
FEL_INLINE bool texture_find(const struct texture_args *args, long long pixel, int cube,
                             struct texture_place *p)
{
    p->face = 0;
    p->m = p->sc = p->tc = 0.0F;
    if (cube)
        return cube_place(args->uv + 3 * pixel, p);
    p->s = args->uv[2 * pixel];
    p->t = args->uv[2 * pixel + 1];
    return is_finite(p->s) && is_finite(p->t);
}

FEL_INLINE long long texture_image(const struct texture_args *args, long long pixel, int level, int cube)
{
    if (args->shared)
        return 0;
    const long long texels = (long long)args->level[level].width * args->level[level].height * (cube ? 6 : 1);
    return divide(pixel, args->image_pixels) * texels;
}

/* All channels of a lookup, times `share`, added to out. */
FEL_INLINE void taps_add(const struct texture_taps *taps, const float *texels, int channels, float share,
                         float *out)
{
    if (taps->at[0] >= 0 && taps->at[1] >= 0 && taps->at[2] >= 0 && taps->at[3] >= 0) {
        const float *p0 = texels + taps->at[0] * channels, *p1 = texels + taps->at[1] * channels;
        const float *p2 = texels + taps->at[2] * channels, *p3 = texels + taps->at[3] * channels;
        const float w0 = share * taps->weight[0], w1 = share * taps->weight[1], w2 = share * taps->weight[2],
                    w3 = share * taps->weight[3];
        for (int c = 0; c < channels; c++)
            out[c] += w0 * p0[c] + w1 * p1[c] + w2 * p2[c] + w3 * p3[c];
        return;
    }
    for (int k = 0; k < 4; k++)
        for (int c = 0; taps->at[k] >= 0 && c < channels; c++)
            out[c] += share * taps->weight[k] * texels[taps->at[k] * channels + c];
}

FEL_INLINE void texture_pixel(const struct texture_args *args, long long pixel)
{
    float *out = args->out + pixel * args->channels;
    const int channels = args->channels, cube = args->boundary == BOUNDARY_CUBE;
    struct texture_place p;
    if (!texture_find(args, pixel, cube, &p)) {
        for (int c = 0; c < channels; c++)
            out[c] = 0.0F;
        return;
    }
    if (args->filter == FILTER_NEAREST) {
        const long long at = texture_nearest(args, &p);
        const float *texel = args->level[0].texels + (texture_image(args, pixel, 0, cube) + at) * channels;
        for (int c = 0; c < channels; c++)
            out[c] = at < 0 ? 0.0F : texel[c];
        return;
    }
    struct texture_lod lod = {0, 0, 0.0F, {0, 0, 0, 0}, 0.0F};
    if (args->filter >= FILTER_MIP_NEAREST)
        lod = texture_lod_of(args, &p, pixel, cube);
    for (int c = 0; c < channels; c++)
        out[c] = 0.0F;
    for (int k = 0; k < 1 + (lod.level1 != lod.level0); k++) {
        const int level = k ? lod.level1 : lod.level0;
        const struct texture_taps taps = texture_linear(args, &p, level, cube);
        taps_add(&taps, args->level[level].texels + texture_image(args, pixel, level, cube) * channels,
                 channels, k ? lod.fraction : 1.0F - lod.fraction, out);
    }
}

/* ---- gradients ---- */

/* Adds a pixel's share of g to a level's texels; returns through gs and gt the gradient to s and t, and the lookup's
 * value, for the level's gradient. */
FEL_INLINE float taps_gradient(const struct texture_args *args, const struct texture_taps *taps, int level,
                               long long image, int c, float g, float share, float *gs, float *gt)
{
    const struct texture_level *l = &args->level[level];
    float value[4], sum = 0.0F;
    for (int k = 0; k < 4; k++) {
        value[k] = 0.0F;
        if (taps->at[k] < 0)
            continue;
        value[k] = l->texels[(image + taps->at[k]) * args->channels + c];
        sum += taps->weight[k] * value[k];
        if (l->grad.sum)
            sink_add(&l->grad, (image + taps->at[k]) * args->grad_stride + c, g * share * taps->weight[k]);
    }
    if (taps->corner >= 0)
        value[taps->corner] =
            (value[0] + value[1] + value[2] + value[3]) / 3.0F; /* its own value is 0 till here */
    *gs += g * share * taps->slope_x *
           ((1.0F - taps->fy) * (value[1] - value[0]) + taps->fy * (value[3] - value[2]));
    *gt += g * share * taps->slope_y *
           ((1.0F - taps->fx) * (value[2] - value[0]) + taps->fx * (value[3] - value[1]));
    return sum;
}

/* d level / d(ds/dX, ds/dY, dt/dX, dt/dY), in texels. Where the footprint is round its axis has no derivative; half of
 * the one of its trace is then a descent direction. */
FEL_INLINE void lod_slopes(const struct texture_lod *lod, float slope[4])
{
    const float *j = lod->jx;
    const float a = j[0] * j[0] + j[2] * j[2], b = j[1] * j[1] + j[3] * j[3], c = j[0] * j[1] + j[2] * j[3];
    const float half = 0.5F * (a - b), r = sqrtf(half * half + c * c);
    const float skew = r > 0.0F ? half / (2.0F * r) : 0.0F;
    const float da = 0.5F + skew, db = 0.5F - skew, dc = r > 0.0F ? c / r : 0.0F;
    const float dm = 0.72134752044448170F / lod->footprint; /* 1 / (2 ln 2 m) */
    slope[0] = dm * (2.0F * da * j[0] + dc * j[1]);
    slope[1] = dm * (2.0F * db * j[1] + dc * j[0]);
    slope[2] = dm * (2.0F * da * j[2] + dc * j[3]);
    slope[3] = dm * (2.0F * db * j[3] + dc * j[2]);
}

/* From gradients to s, t and to their four derivatives (per unit of s and t) to those of a cube's vector and its six. */
FEL_INLINE void cube_chain(const struct texture_place *p, float gs, float gt, const float gj[4],
                           const float *da, float guv[3], float gda[6])
{
    int major, sc, sc_sign, tc, tc_sign;
    cube_axes(p->face, &major, &sc, &sc_sign, &tc, &tc_sign);
    const float sign = p->face & 1 ? -1.0F : 1.0F, m = p->m, m2 = 1.0F / (2.0F * m * m);
    float gsc = gs / (2.0F * m), gtc = gt / (2.0F * m), gm = -(gs * p->sc + gt * p->tc) * m2;
    if (da) {
        for (int k = 0; k < 2; k++) {
            const float dm = sign * da[2 * major + k];
            const float dsc = (float)sc_sign * da[2 * sc + k], dtc = (float)tc_sign * da[2 * tc + k];
            const float g_s = gj[k], g_t = gj[2 + k];
            gsc -= g_s * dm * m2;
            gtc -= g_t * dm * m2;
            gm +=
                g_s * (p->sc * dm / m - dsc * 0.5F) / (m * m) + g_t * (p->tc * dm / m - dtc * 0.5F) / (m * m);
            gda[2 * sc + k] = (float)sc_sign * g_s / (2.0F * m);
            gda[2 * tc + k] = (float)tc_sign * g_t / (2.0F * m);
            gda[2 * major + k] = -sign * (g_s * p->sc + g_t * p->tc) * m2;
        }
    }
    guv[sc] = (float)sc_sign * gsc;
    guv[tc] = (float)tc_sign * gtc;
    guv[major] = sign * gm;
}

FEL_INLINE void texture_gradient_store(const struct texture_args *args, long long pixel, const float guv[3],
                                       const float gda[6], float gbias, int cube)
{
    const int n = cube ? 3 : 2;
    if (args->grad_uv)
        for (int k = 0; k < n; k++)
            args->grad_uv[pixel * n + k] = guv[k];
    if (args->grad_uv_da)
        for (int k = 0; k < 2 * n; k++)
            args->grad_uv_da[pixel * 2 * n + k] = gda[k];
    if (args->grad_bias)
        args->grad_bias[pixel] = gbias;
}

/* What is left once the gradients to s, t and level are known. */
FEL_INLINE void texture_gradient_finish(const struct texture_args *args, const struct texture_place *p,
                                        const struct texture_lod *lod, long long pixel, float gs, float gt,
                                        float glevel, int cube)
{
    float guv[3] = {gs, gt, 0}, gda[6] = {0, 0, 0, 0, 0, 0}, gj[4] = {0, 0, 0, 0};
    if (glevel != 0.0F && lod->footprint > 0.0F && is_finite(lod->footprint)) {
        lod_slopes(lod, gj);
        for (int k = 0; k < 4; k++) /* from texels to units of s and t */
            gj[k] *= glevel * (float)(k < 2 ? args->level[0].width : args->level[0].height);
    }
    if (cube)
        cube_chain(p, gs, gt, gj, args->uv_da ? args->uv_da + 6 * pixel : 0, guv, gda);
    else
        gda[0] = gj[0], gda[1] = gj[1], gda[2] = gj[2], gda[3] = gj[3];
    texture_gradient_store(args, pixel, guv, gda, glevel, cube);
}

FEL_INLINE void texture_gradient(const struct texture_args *args, long long pixel)
{
    const float none[6] = {0, 0, 0, 0, 0, 0};
    const float *g = args->grad_out + pixel * args->channels;
    const int cube = args->boundary == BOUNDARY_CUBE;
    struct texture_place p;
    int some = 0;
    for (int c = 0; c < args->channels; c++)
        some |= g[c] != 0.0F;
    if (!some || !texture_find(args, pixel, cube, &p)) {
        texture_gradient_store(args, pixel, none, none, 0.0F, cube);
        return;
    }
    if (args->filter == FILTER_NEAREST) {
        const long long at = texture_nearest(args, &p), image = texture_image(args, pixel, 0, cube);
        if (at >= 0 && args->level[0].grad.sum)
            for (int c = 0; c < args->channels; c++)
                sink_add(&args->level[0].grad, (image + at) * args->grad_stride + c, g[c]);
        texture_gradient_store(args, pixel, none, none, 0.0F, cube);
        return;
    }
    struct texture_lod lod = {0, 0, 0.0F, {0, 0, 0, 0}, 0.0F};
    if (args->filter >= FILTER_MIP_NEAREST)
        lod = texture_lod_of(args, &p, pixel, cube);
    const int two = lod.level1 != lod.level0;
    const struct texture_taps t0 = texture_linear(args, &p, lod.level0, cube);
    const struct texture_taps t1 = two ? texture_linear(args, &p, lod.level1, cube) : t0;
    const long long image0 = texture_image(args, pixel, lod.level0, cube),
                    image1 = texture_image(args, pixel, lod.level1, cube);
    float gs = 0.0F, gt = 0.0F, glevel = 0.0F;
    for (int c = 0; c < args->channels; c++) {
        if (g[c] == 0.0F)
            continue;
        const float v0 = taps_gradient(args, &t0, lod.level0, image0, c, g[c], 1.0F - lod.fraction, &gs, &gt);
        if (two)
            glevel +=
                g[c] * (taps_gradient(args, &t1, lod.level1, image1, c, g[c], lod.fraction, &gs, &gt) - v0);
    }
    texture_gradient_finish(args, &p, &lod, pixel, gs, gt, glevel, cube);
}

/* ---- mip levels ---- */

struct mip_args {
    const float *finer; /* [images, height, width, c] of the finer level */
    float *coarser;     /* the one below, [images, max(1, height / 2), max(1, width / 2), c] */
    long long images;   /* batch, times 6 for a cube */
    int width, height;  /* of the finer level */
    int channels;
};

FEL_INLINE void mip_reduce(const struct mip_args *m, long long texel)
{
    const int w = m->width > 1 ? m->width / 2 : 1, h = m->height > 1 ? m->height / 2 : 1;
    const long long row = texel / w, image = row / h;
    const int x = (int)(texel - row * w), y = (int)(row - image * h);
    const int x0 = m->width > 1 ? 2 * x : 0, x1 = m->width > 1 ? x0 + 1 : 0;
    const int y0 = m->height > 1 ? 2 * y : 0, y1 = m->height > 1 ? y0 + 1 : 0;
    const long long base = image * m->height;
    const float *a = m->finer + ((base + y0) * m->width + x0) * m->channels;
    const float *b = m->finer + ((base + y0) * m->width + x1) * m->channels;
    const float *c = m->finer + ((base + y1) * m->width + x0) * m->channels;
    const float *d = m->finer + ((base + y1) * m->width + x1) * m->channels;
    for (int k = 0; k < m->channels; k++)
        m->coarser[texel * m->channels + k] = 0.25F * ((a[k] + b[k]) + (c[k] + d[k]));
}

/* The transpose: a texel of the finer gradient takes its share of the coarser one. */
struct mip_gradient_args {
    float *finer;         /* gradient to the finer level; the coarser level's share is added */
    const float *coarser; /* complete already */
    long long images;
    int width, height; /* of the finer level */
    int channels;
};

FEL_INLINE void mip_spread(const struct mip_gradient_args *m, long long texel)
{
    const int w = m->width > 1 ? m->width / 2 : 1, h = m->height > 1 ? m->height / 2 : 1;
    const long long row = texel / m->width, image = row / m->height;
    const int x = (int)(texel - row * m->width), y = (int)(row - image * m->height);
    const float share = (m->width > 1 ? 0.5F : 1.0F) * (m->height > 1 ? 0.5F : 1.0F);
    const long long from = (image * h + y / 2) * w + x / 2;
    for (int k = 0; k < m->channels; k++)
        m->finer[texel * m->channels + k] += share * m->coarser[from * m->channels + k];
}

#endif
