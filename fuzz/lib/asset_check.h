/* What every fuzz target of a reader checks: refused exactly when there is a message; what was read is consistent. */
#ifndef ASSET_CHECK_H
#define ASSET_CHECK_H

#include <felloe/asset.h>

#include <stdlib.h>
#include <string.h>

static inline void require(int condition)
{
    if (!condition)
        abort();
}

/* Reads every element, so that a sanitizer sees an array that is shorter than it says. */
static inline float sum_floats(const float *values, int64_t count)
{
    float sum = 0;
    for (int64_t i = 0; values && i < count; i++)
        sum += values[i];
    return sum;
}

static inline void check_asset(const fel_asset *asset)
{
    volatile float sum = 0;
    require(asset->mesh_count >= 0 && asset->material_count >= 0 && asset->picture_count >= 0);
    for (int64_t i = 0; i < asset->mesh_count; i++) {
        const struct fel_mesh *m = asset->meshes + i;
        require(m->material >= -1 && m->material < asset->material_count);
        for (int64_t k = 0; k < 3 * m->face_count; k++)
            require(m->faces[k] >= 0 && m->faces[k] < m->vertex_count);
        sum += sum_floats(m->positions, 3 * m->vertex_count) + sum_floats(m->normals, 3 * m->vertex_count) +
               sum_floats(m->uvs, 2 * m->vertex_count) + sum_floats(m->colors, 4 * m->vertex_count);
        require(!m->name || strlen(m->name) < SIZE_MAX);
    }
    for (int64_t i = 0; i < asset->material_count; i++) {
        const struct fel_material *m = asset->materials + i;
        const int32_t textures[5] = {m->base_color_texture, m->metallic_roughness_texture, m->normal_texture,
                                     m->occlusion_texture, m->emissive_texture};
        for (int k = 0; k < 5; k++)
            require(textures[k] >= -1 && textures[k] < asset->picture_count);
    }
    for (int64_t i = 0; i < asset->picture_count; i++)
        for (int64_t k = 0; k < asset->pictures[i].size; k++)
            sum += asset->pictures[i].bytes[k];
    const struct fel_gaussians *g = asset->gaussians;
    if (g) {
        const int64_t k = (int64_t)(g->sh_degree + 1) * (g->sh_degree + 1);
        require(g->sh_degree >= 0 && g->sh_degree <= 3);
        sum += sum_floats(g->positions, 3 * g->count) + sum_floats(g->log_scales, 3 * g->count) +
               sum_floats(g->rotations, 4 * g->count) + sum_floats(g->logits, g->count) +
               sum_floats(g->sh, 3 * k * g->count);
    }
    (void)sum;
}

static inline int check_reader(int32_t format, const uint8_t *data, size_t size)
{
    const struct fel_asset_options o = {
        .size = sizeof o, .format = format, .memory_limit = 64 << 20, .orientation = FEL_ORIENT_Z_UP_TO_Y_UP};
    fel_asset *asset = NULL;
    if (fel_asset_read_memory("fuzz", data, size, &o, &asset)) {
        require(!asset && fel_last_error() && *fel_last_error());
    } else {
        require(asset != NULL);
        check_asset(asset);
        fel_asset_free(asset);
    }
    return 0;
}

#endif
