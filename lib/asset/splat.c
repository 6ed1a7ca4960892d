/* asset/splat.c: the .splat format of web viewers: 32 bytes a gaussian (position 3 x float, scale 3 x float, colour and
 * opacity 4 x byte, rotation 4 x byte), no header. Bytes lose precision; scales and opacities are stored as they are
 * shown, so they go through log and logit. */
#include "asset/asset.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { SPLAT_SIZE = 32 };
static const float SH_C0 = 0.28209479177387814F; /* the constant spherical harmonic */

bool gaussians_alloc(struct reader *r, struct fel_gaussians *g, int64_t count, int32_t sh_degree)
{
    struct memory *m = &r->memory;
    const size_t n = (size_t)count, k = (size_t)(sh_degree + 1) * (size_t)(sh_degree + 1);
    g->count = count;
    g->sh_degree = sh_degree;
    g->positions = memory_array(m, n, 12);
    g->log_scales = memory_array(m, n, 12);
    g->rotations = memory_array(m, n, 16);
    g->logits = memory_array(m, n, 4);
    g->sh = memory_array(m, n, 12 * k);
    return g->positions && g->log_scales && g->rotations && g->logits && g->sh ? true
                                                                               : reader_out_of_memory(r);
}

bool splat_read(struct reader *r, fel_asset *asset)
{
    const uint64_t count = r->source->size / SPLAT_SIZE;
    if (r->source->size % SPLAT_SIZE || count > INT32_MAX)
        return reader_fail(r, count * SPLAT_SIZE,
                           "expected whole records of 32 bytes, the file ends at byte %" PRIu64,
                           r->source->size);
    struct fel_gaussians *g = memory_array(&r->memory, 1, sizeof *g);
    struct cursor c;
    if (!g)
        return reader_out_of_memory(r);
    asset->gaussians = g;
    if (!gaussians_alloc(r, g, (int64_t)count, 0) || !cursor_open(&c, r, 0))
        return false;
    bool good = true;
    for (uint64_t i = 0; i < count && good; i++) {
        const uint8_t *b = cursor_take(&c, SPLAT_SIZE);
        good = b != NULL;
        for (size_t k = 0; k < 3 && good; k++) {
            g->positions[3 * i + k] = get_f32le(b + 4 * k);
            g->log_scales[3 * i + k] = logf(get_f32le(b + 12 + 4 * k));
            g->sh[3 * i + k] = ((float)b[24 + k] / 255.0F - 0.5F) / SH_C0;
        }
        if (!good)
            break;
        /* 0 and 255 would be infinite: half a step inside */
        const float opacity = fminf(fmaxf((float)b[27], 0.5F), 254.5F) / 255.0F;
        g->logits[i] = logf(opacity / (1 - opacity));
        for (size_t k = 0; k < 4; k++)
            g->rotations[4 * i + k] = ((float)b[28 + k] - 128.0F) / 128.0F;
    }
    cursor_close(&c);
    return good;
}

static uint8_t to_byte(float value) { return value > 0 ? (uint8_t)lroundf(fminf(value, 255)) : 0; }

struct ranked {
    float score;
    int64_t index;
};

static int by_score(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->score > y->score || x->score < y->score)
        return x->score > y->score ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

fel_status splat_write(struct output *o, const fel_asset *asset)
{
    const struct fel_gaussians *g = asset->gaussians;
    const size_t k_count = (size_t)(g->sh_degree + 1) * (size_t)(g->sh_degree + 1);
    /* viewers draw what has arrived: the large and opaque ones first */
    struct ranked *order = malloc(((size_t)g->count + 1) * sizeof *order);
    if (!order)
        return status_fail(FEL_OUT_OF_MEMORY, "an order of %" PRId64 " gaussians could not be allocated",
                           g->count);
    for (int64_t i = 0; i < g->count; i++) {
        const float *s = g->log_scales + 3 * i;
        const float score = expf(s[0] + s[1] + s[2]) / (1 + expf(-g->logits[i]));
        order[i] = (struct ranked){isnan(score) ? -1 : score, i};
    }
    qsort(order, (size_t)g->count, sizeof *order, by_score);
    for (int64_t at = 0; at < g->count; at++) {
        const int64_t i = order[at].index;
        const float *sh = g->sh + 3 * k_count * (size_t)i, *q = g->rotations + 4 * i;
        for (int k = 0; k < 3; k++)
            output_f32le(o, g->positions[3 * i + k]);
        for (int k = 0; k < 3; k++)
            output_f32le(o, expf(g->log_scales[3 * i + k]));
        uint8_t b[8];
        for (int k = 0; k < 3; k++)
            b[k] = to_byte((0.5F + SH_C0 * sh[k]) * 255);
        b[3] = to_byte(255 / (1 + expf(-g->logits[i])));
        const float length = sqrtf(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
        for (int k = 0; k < 4; k++)
            b[4 + k] = to_byte((length > 0 ? q[k] / length : (float)(k == 0)) * 128 + 128);
        output_bytes(o, b, sizeof b);
    }
    free(order);
    return FEL_OK;
}
