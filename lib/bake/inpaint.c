/* bake/inpaint.c: known texels spread over a mesh's vertices. On the CPU alone: the smooth method is Gauss-Seidel in
 * the order of the work list, and that order is part of the result. */
#include "device/device.h"

#include <felloe/bake.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct inpaint {
    const float *texture, *positions, *uvs;
    const uint8_t *mask;
    const int32_t *faces, *uv_faces;
    int64_t width, height, channels, vertices, face_count;
    /* the graph, by vertex: where its directed edges go, in the order of the faces, and their weights */
    int64_t *first; /* [vertices + 1] */
    int32_t *target;
    float *weight;
    float *colors;  /* [vertices, channels] */
    uint8_t *state; /* 1 known, 2 reached, 0 not */
    int32_t *work;  /* vertices to fill, once for each corner without a known texel */
    int64_t work_count;
};

/* The texel of a corner. */
static int64_t texel_of(const struct inpaint *p, int32_t uv)
{
    const float u = p->uvs[2 * (int64_t)uv], v = p->uvs[2 * (int64_t)uv + 1];
    const double x = (double)(u > 0 ? fminf(u, 1) : 0) * (double)(p->width - 1);
    const double y = (1 - (double)(v > 0 ? fminf(v, 1) : 0)) * (double)(p->height - 1);
    return llround(y) * p->width + llround(x);
}

static void find_known(struct inpaint *p)
{
    for (int64_t corner = 0; corner < 3 * p->face_count; corner++) {
        const int32_t vertex = p->faces[corner];
        const int64_t texel = texel_of(p, p->uv_faces[corner]);
        if (!p->mask[texel]) {
            p->work[p->work_count++] = vertex;
            continue;
        }
        p->state[vertex] = 1;
        memcpy(p->colors + vertex * p->channels, p->texture + texel * p->channels,
               (size_t)p->channels * sizeof(float));
    }
}

static float edge_weight(const struct inpaint *p, int32_t a, int32_t b)
{
    float square = 0;
    for (int k = 0; k < 3; k++) {
        const float d = p->positions[3 * (int64_t)a + k] - p->positions[3 * (int64_t)b + k];
        square += d * d;
    }
    const float length = fmaxf(sqrtf(square), 1e-4F);
    return 1 / (length * length);
}

static void make_graph(struct inpaint *p)
{
    /* counted one place on, so that filling moves each start to where it belongs */
    for (int64_t corner = 0; corner < 3 * p->face_count; corner++)
        p->first[p->faces[corner] + 1]++;
    for (int64_t v = 0; v < p->vertices; v++)
        p->first[v + 1] += p->first[v];
    for (int64_t corner = 0; corner < 3 * p->face_count; corner++) {
        const int32_t from = p->faces[corner], to = p->faces[corner % 3 == 2 ? corner - 2 : corner + 1];
        const int64_t at = p->first[from]++;
        p->target[at] = to;
        p->weight[at] = edge_weight(p, from, to);
    }
    for (int64_t v = p->vertices; v > 0; v--)
        p->first[v] = p->first[v - 1];
    p->first[0] = 0;
}

/* One vertex drawn from its coloured neighbours; false when there are none. sum has a float a channel. */
static bool draw(struct inpaint *p, int32_t vertex, float *sum)
{
    float total = 0;
    memset(sum, 0, (size_t)p->channels * sizeof *sum);
    for (int64_t e = p->first[vertex]; e < p->first[vertex + 1]; e++) {
        const int32_t other = p->target[e];
        if (!p->state[other])
            continue;
        const float weight = p->weight[e];
        const float *color = p->colors + other * p->channels;
        for (int64_t c = 0; c < p->channels; c++)
            sum[c] += color[c] * weight;
        total += weight;
    }
    if (!(total > 0))
        return false;
    for (int64_t c = 0; c < p->channels; c++)
        p->colors[vertex * p->channels + c] = sum[c] / total;
    if (!p->state[vertex])
        p->state[vertex] = 2;
    return true;
}

/* Two sweeps for each one that reached more vertices, and two: until reachability, not the colours, has settled. */
static void smooth(struct inpaint *p, float *sum)
{
    int64_t previous = 0;
    for (int64_t counter = 2; counter > 0;) {
        int64_t uncolored = 0;
        for (int64_t i = 0; i < p->work_count; i++)
            uncolored += !draw(p, p->work[i], sum);
        counter += uncolored == previous ? -1 : 1;
        previous = uncolored;
    }
}

/* Waves: what was coloured last adds to its uncoloured neighbours; each wave's sums become colours together. */
static void forward(struct inpaint *p, float *total, int32_t *active, int32_t *next)
{
    int64_t count = 0;
    for (int64_t v = 0; v < p->vertices; v++)
        if (p->state[v])
            active[count++] = (int32_t)v;
    while (count) {
        int64_t reached = 0;
        for (int64_t i = 0; i < count; i++) {
            const int32_t vertex = active[i];
            for (int64_t e = p->first[vertex]; e < p->first[vertex + 1]; e++) {
                const int32_t other = p->target[e];
                if (p->state[other])
                    continue;
                if (!(total[other] > 0))
                    next[reached++] = other;
                total[other] += p->weight[e];
                for (int64_t c = 0; c < p->channels; c++)
                    p->colors[other * p->channels + c] += p->colors[vertex * p->channels + c] * p->weight[e];
            }
        }
        for (int64_t i = 0; i < reached; i++) {
            const int32_t vertex = next[i];
            for (int64_t c = 0; c < p->channels; c++)
                p->colors[vertex * p->channels + c] /= total[vertex];
            p->state[vertex] = 2;
        }
        int32_t *const done = active;
        active = next;
        next = done;
        count = reached;
    }
}

static void write_texels(const struct inpaint *p, float *texture, uint8_t *mask)
{
    const size_t texels = (size_t)(p->width * p->height);
    if (texture != p->texture)
        memcpy(texture, p->texture, texels * (size_t)p->channels * sizeof *texture);
    if (mask != p->mask)
        memcpy(mask, p->mask, texels);
    for (int64_t corner = 0; corner < 3 * p->face_count; corner++) {
        const int32_t vertex = p->faces[corner];
        if (!p->state[vertex])
            continue;
        const int64_t texel = texel_of(p, p->uv_faces[corner]);
        memcpy(texture + texel * p->channels, p->colors + vertex * p->channels,
               (size_t)p->channels * sizeof *texture);
        mask[texel] = 255;
    }
}

static fel_status check_indices(const char *name, const int32_t *indices, int64_t count, int64_t limit)
{
    for (int64_t i = 0; i < count; i++)
        if (indices[i] < 0 || indices[i] >= limit)
            return status_fail(FEL_INVALID_ARGUMENT,
                               "%s: expected indices in [0, %" PRId64 "), got %d in face %" PRId64, name,
                               limit, indices[i], i / 3);
    return FEL_OK;
}

static fel_status run(fel_context *ctx, struct inpaint *p, int32_t method, float *colors, uint8_t *state)
{
    struct scratch scratch = scratch_begin(ctx);
    /* never of length 0, for which there is no memory */
    const size_t v = (size_t)p->vertices, corners = 3 * (size_t)p->face_count + 1;
    p->first = scratch_array(&scratch, int64_t, v + 1);
    p->target = scratch_array(&scratch, int32_t, corners);
    p->weight = scratch_array(&scratch, float, corners);
    p->work = scratch_array(&scratch, int32_t, corners);
    float *const sum = scratch_array(&scratch, float, (size_t)p->channels + 1);
    float *const total = scratch_array(&scratch, float, v + 1);
    int32_t *const waves = scratch_array(&scratch, int32_t, 2 * v + 1);
    fel_status status = FEL_OUT_OF_MEMORY;
    if (p->first && p->target && p->weight && p->work && sum && total && waves) {
        memset(p->first, 0, (v + 1) * sizeof *p->first);
        memset(total, 0, v * sizeof *total);
        memset(colors, 0, v * (size_t)p->channels * sizeof *colors);
        memset(state, 0, v);
        p->colors = colors;
        p->state = state;
        find_known(p);
        make_graph(p);
        if (method == FEL_INPAINT_FORWARD)
            forward(p, total, waves, waves + v);
        else
            smooth(p, sum);
        status = FEL_OK;
    }
    scratch_end(&scratch);
    return status;
}

fel_status fel_bake_inpaint(fel_context *ctx, const DLTensor *texture, const DLTensor *mask,
                            const DLTensor *positions, const DLTensor *uvs, const DLTensor *faces,
                            const DLTensor *uv_faces, int32_t method, DLTensor *colors, DLTensor *state,
                            DLTensor *new_texture, DLTensor *new_mask)
{
    struct tensor_rule rules[10] = {{"texture", texture, F32, "h w c"},   {"mask", mask, U8, "h w"},
                                    {"positions", positions, F32, "v 3"}, {"uvs", uvs, F32, "t 2"},
                                    {"faces", faces, I32, "f 3"},         {"uv_faces", uv_faces, I32, "f 3"}};
    size_t count = 6;
    if (colors)
        rules[count++] = (struct tensor_rule){"colors", colors, F32, "v c"};
    if (state)
        rules[count++] = (struct tensor_rule){"state", state, U8, "v"};
    if (new_texture)
        rules[count++] = (struct tensor_rule){"new_texture", new_texture, F32, "h w c"};
    if (new_mask)
        rules[count++] = (struct tensor_rule){"new_mask", new_mask, U8, "h w"};
    struct dims n = {{0}};
    fel_status status = tensors_expect(ctx, rules, count, &n);
    if (status)
        return status;
    if (context_on_cuda(ctx))
        return status_fail(FEL_WRONG_DEVICE, "context: expected one for the CPU: sweeps go in order");
    if (method != FEL_INPAINT_SMOOTH && method != FEL_INPAINT_FORWARD)
        return status_fail(FEL_INVALID_ARGUMENT, "method: expected enum fel_inpaint_method, got %d", method);
    if (!new_texture != !new_mask)
        return status_fail(FEL_INVALID_ARGUMENT, "new_texture, new_mask: expected both or neither");
    struct inpaint p = {.texture = tensor_data(texture),
                        .positions = tensor_data(positions),
                        .uvs = tensor_data(uvs),
                        .mask = tensor_data(mask),
                        .faces = tensor_data(faces),
                        .uv_faces = tensor_data(uv_faces),
                        .width = n.of['w'],
                        .height = n.of['h'],
                        .channels = n.of['c'],
                        .vertices = n.of['v'],
                        .face_count = n.of['f']};
    status = check_indices("faces", p.faces, 3 * p.face_count, p.vertices);
    if (!status)
        status = check_indices("uv_faces", p.uv_faces, 3 * p.face_count, n.of['t']);
    if (status)
        return status;
    if (p.face_count && (!p.width || !p.height))
        return status_fail(FEL_INVALID_SHAPE,
                           "texture: expected at least one texel, got [%" PRId64 ", %" PRId64 "]", p.height,
                           p.width);
    struct scratch scratch = scratch_begin(ctx);
    float *const own_colors =
        colors ? tensor_data(colors) : scratch_array(&scratch, float, (size_t)(p.vertices * p.channels) + 1);
    uint8_t *const own_state =
        state ? tensor_data(state) : scratch_array(&scratch, uint8_t, (size_t)p.vertices + 1);
    status = own_colors && own_state ? run(ctx, &p, method, own_colors, own_state) : FEL_OUT_OF_MEMORY;
    if (!status && new_texture)
        write_texels(&p, tensor_data(new_texture), tensor_data(new_mask));
    scratch_end(&scratch);
    return status;
}
