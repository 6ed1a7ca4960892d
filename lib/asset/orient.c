/* asset/orient.c: turning an asset between the conventions for "up" and "front".
 *
 * Every preset is a signed permutation of the axes, so meshes lose no bit. Gaussians also carry a quaternion, which is
 * multiplied, and spherical harmonics: in each band the new coefficients are the unique ones whose function is the old
 * one seen along the turned direction, found from 2l + 1 directions. */
#include "asset/asset.h"

#include <math.h>
#include <string.h>

struct turn {
    int8_t m[3][3]; /* new = m * old */
    float q[4];     /* the same as a quaternion, w x y z */
};

#define HALF 0.70710678118654752F
static const struct turn turns[] = {
    [FEL_ORIENT_KEEP] = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, {1, 0, 0, 0}},
    [FEL_ORIENT_Z_UP_TO_Y_UP] = {{{1, 0, 0}, {0, 0, 1}, {0, -1, 0}}, {HALF, -HALF, 0, 0}},
    [FEL_ORIENT_Y_UP_TO_Z_UP] = {{{1, 0, 0}, {0, 0, -1}, {0, 1, 0}}, {HALF, HALF, 0, 0}},
    [FEL_ORIENT_X_FRONT_TO_GLTF] = {{{0, 1, 0}, {0, 0, 1}, {1, 0, 0}}, {0.5F, -0.5F, -0.5F, -0.5F}},
    [FEL_ORIENT_TURN_ROUND] = {{{-1, 0, 0}, {0, 1, 0}, {0, 0, -1}}, {0, 0, 1, 0}},
};
#undef HALF

static void turn_vectors(const struct turn *t, float *vectors, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        float *v = vectors + 3 * i, old[3];
        memcpy(old, v, sizeof old);
        for (int row = 0; row < 3; row++)
            for (int k = 0; k < 3; k++)
                if (t->m[row][k])
                    v[row] = t->m[row][k] > 0 ? old[k] : -old[k];
    }
}

/* Real spherical harmonics of one band, in the order and sign of 3D gaussian files (the usual ones with the
 * Condon-Shortley phase). */
static void harmonics(int band, const double d[3], double *out)
{
    const double x = d[0], y = d[1], z = d[2];
    if (band == 1) {
        out[0] = -y;
        out[1] = z;
        out[2] = -x;
    } else if (band == 2) {
        out[0] = 1.0925484305920792 * x * y;
        out[1] = -1.0925484305920792 * y * z;
        out[2] = 0.31539156525252005 * (2 * z * z - x * x - y * y);
        out[3] = -1.0925484305920792 * x * z;
        out[4] = 0.5462742152960396 * (x * x - y * y);
    } else {
        out[0] = -0.5900435899266435 * y * (3 * x * x - y * y);
        out[1] = 2.890611442640554 * x * y * z;
        out[2] = -0.4570457994644658 * y * (4 * z * z - x * x - y * y);
        out[3] = 0.3731763325901154 * z * (2 * z * z - 3 * x * x - 3 * y * y);
        out[4] = -0.4570457994644658 * x * (4 * z * z - x * x - y * y);
        out[5] = 1.445305721320277 * z * (x * x - y * y);
        out[6] = -0.5900435899266435 * x * (x * x - 3 * y * y);
    }
}

enum { MOST = 7 }; /* coefficients of band 3 */

/* m[row][column] of the band, so that new = m * old: solves A m = B by elimination. */
static void band_matrix(const struct turn *t, int band, double m[MOST][MOST])
{
    const int n = 2 * band + 1;
    double a[MOST][2 * MOST] = {{0}};
    for (int j = 0; j < n; j++) { /* directions in general position: a spiral on the sphere */
        const double z = 1 - (2 * j + 1) / (double)n, angle = 2.399963229728653 * j + 0.4,
                     r = sqrt(1 - z * z);
        const double d[3] = {r * cos(angle), r * sin(angle), z};
        double back[3] = {0, 0, 0};
        for (int k = 0; k < 3; k++)
            for (int row = 0; row < 3; row++)
                back[k] += t->m[row][k] * d[row];
        harmonics(band, d, a[j]);
        harmonics(band, back, a[j] + n);
    }
    for (int column = 0; column < n; column++) {
        int pivot = column;
        for (int row = column + 1; row < n; row++)
            if (fabs(a[row][column]) > fabs(a[pivot][column]))
                pivot = row;
        for (int k = 0; k < 2 * n; k++) {
            const double swapped = a[column][k];
            a[column][k] = a[pivot][k];
            a[pivot][k] = swapped;
        }
        for (int row = 0; row < n; row++) {
            const double factor = row == column ? 0 : a[row][column] / a[column][column];
            for (int k = column; k < 2 * n; k++)
                a[row][k] -= factor * a[column][k];
        }
    }
    for (int row = 0; row < n; row++)
        for (int k = 0; k < n; k++)
            m[row][k] = a[row][n + k] / a[row][row];
}

static void turn_gaussians(const struct turn *t, struct fel_gaussians *g)
{
    const size_t coefficients = (size_t)(g->sh_degree + 1) * (size_t)(g->sh_degree + 1);
    turn_vectors(t, g->positions, g->count);
    for (int64_t i = 0; i < g->count; i++) {
        float *q = g->rotations + 4 * i;
        const float *a = t->q, b[4] = {q[0], q[1], q[2], q[3]};
        q[0] = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3];
        q[1] = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2];
        q[2] = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1];
        q[3] = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0];
    }
    for (int band = 1; band <= g->sh_degree; band++) {
        double m[MOST][MOST];
        band_matrix(t, band, m);
        const int n = 2 * band + 1;
        for (int64_t i = 0; i < g->count; i++) {
            float *sh = g->sh + 3 * (coefficients * (size_t)i + (size_t)(band * band));
            for (int channel = 0; channel < 3; channel++) {
                double old[MOST];
                for (int k = 0; k < n; k++)
                    old[k] = (double)sh[3 * k + channel];
                for (int row = 0; row < n; row++) {
                    double sum = 0;
                    for (int k = 0; k < n; k++)
                        sum += m[row][k] * old[k];
                    sh[3 * row + channel] = (float)sum;
                }
            }
        }
    }
}

fel_status fel_asset_orient(fel_asset *asset, int32_t orientation)
{
    if (!asset)
        return status_fail(FEL_INVALID_ARGUMENT, "asset: expected a pointer, got NULL");
    if (orientation < 0 || orientation > FEL_ORIENT_TURN_ROUND)
        return status_fail(FEL_INVALID_ARGUMENT, "orientation: expected enum fel_orientation, got %d",
                           orientation);
    if (orientation == FEL_ORIENT_KEEP)
        return FEL_OK;
    const struct turn *t = turns + orientation;
    for (int64_t i = 0; i < asset->mesh_count; i++) {
        struct fel_mesh *m = asset->meshes + i;
        turn_vectors(t, m->positions, m->vertex_count);
        if (m->normals)
            turn_vectors(t, m->normals, m->vertex_count);
    }
    if (asset->gaussians)
        turn_gaussians(t, asset->gaussians);
    return FEL_OK;
}

static float *copy_floats(struct memory *m, const float *values, size_t count)
{
    float *copy = memory_array(m, count, sizeof *copy);
    if (copy && count)
        memcpy(copy, values, count * sizeof *copy);
    return copy;
}

fel_status orient_copy(struct memory *m, const fel_asset *asset, int32_t orientation, fel_asset *out)
{
    *out = *asset;
    out->meshes = memory_array(m, (size_t)asset->mesh_count, sizeof *out->meshes);
    bool good = out->meshes != NULL;
    for (int64_t i = 0; i < asset->mesh_count && good; i++) {
        const struct fel_mesh *from = asset->meshes + i;
        struct fel_mesh *to = out->meshes + i;
        *to = *from;
        to->positions = copy_floats(m, from->positions, 3 * (size_t)from->vertex_count);
        to->normals = from->normals ? copy_floats(m, from->normals, 3 * (size_t)from->vertex_count) : NULL;
        good = to->positions && (!from->normals || to->normals);
    }
    if (good && asset->gaussians) {
        const struct fel_gaussians *g = asset->gaussians;
        const size_t n = (size_t)g->count, k = (size_t)(g->sh_degree + 1) * (size_t)(g->sh_degree + 1);
        struct fel_gaussians *to = out->gaussians = memory_array(m, 1, sizeof *to);
        if (to) {
            *to = *g;
            to->positions = copy_floats(m, g->positions, 3 * n);
            to->rotations = copy_floats(m, g->rotations, 4 * n);
            to->sh = copy_floats(m, g->sh, 3 * k * n);
        }
        good = to && to->positions && to->rotations && to->sh;
    }
    return good ? fel_asset_orient(out, orientation) : FEL_OUT_OF_MEMORY;
}
