/* asset/asset.c: the public calls: which format, what is allowed in, orientation. */
#include "asset/asset.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const int64_t DEFAULT_MEMORY_LIMIT = INT64_C(16) << 30;

struct owned { /* what fel_asset_read gives out */
    fel_asset asset;
    struct memory memory;
};

static int32_t format_by_suffix(const char *path)
{
    static const struct {
        const char *suffix;
        int32_t format;
    } suffixes[] = {{".glb", FEL_ASSET_GLB},
                    {".obj", FEL_ASSET_OBJ},
                    {".ply", FEL_ASSET_PLY},
                    {".stl", FEL_ASSET_STL},
                    {".splat", FEL_ASSET_SPLAT}};
    const size_t length = strlen(path);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        const size_t size = strlen(suffixes[i].suffix);
        size_t same = 0;
        while (length >= size && same < size &&
               (path[length - size + same] | 0x20) == (suffixes[i].suffix[same] | 0x20))
            same++;
        if (same == size)
            return suffixes[i].format;
    }
    return FEL_ASSET_UNKNOWN;
}

/* The first bytes win over the suffix where they are sure; OBJ, STL and .splat have no magic. */
static int32_t format_of(struct reader *r)
{
    uint8_t head[6] = {0};
    const int32_t named = format_by_suffix(r->source->name);
    const size_t size = r->source->size < sizeof head ? (size_t)r->source->size : sizeof head;
    if (!source_read(r, 0, head, size))
        return FEL_ASSET_UNKNOWN;
    if (!memcmp(head, "glTF", 4))
        return FEL_ASSET_GLB;
    if (!memcmp(head, "ply\n", 4) || !memcmp(head, "ply\r", 4))
        return FEL_ASSET_PLY;
    if (!memcmp(head, "solid ", 6) && named == FEL_ASSET_UNKNOWN)
        return FEL_ASSET_STL;
    return named;
}

static fel_status options_copy(const struct fel_asset_options *given, struct fel_asset_options *out)
{
    *out = (struct fel_asset_options){.size = sizeof *out};
    if (given) {
        if (given->size < offsetof(struct fel_asset_options, memory_limit))
            return status_fail(FEL_INVALID_ARGUMENT,
                               "options: expected size to be sizeof(struct fel_asset_options), got %zu",
                               given->size);
        memcpy(out, given, given->size < sizeof *out ? given->size : sizeof *out);
    }
    if (out->format < FEL_ASSET_UNKNOWN || out->format > FEL_ASSET_SPLAT || out->encoding < 0 ||
        out->encoding > FEL_PLY_ASCII || out->orientation < 0 || out->orientation > FEL_ORIENT_TURN_ROUND ||
        out->memory_limit < 0)
        return status_fail(FEL_INVALID_ARGUMENT,
                           "options: a format, encoding, orientation or limit that does not exist");
    if (!out->memory_limit)
        out->memory_limit = DEFAULT_MEMORY_LIMIT;
    return FEL_OK;
}

static fel_status read_source(const struct source *source, const struct fel_asset_options *options,
                              fel_asset **out)
{
    static bool (*const readers[])(struct reader *, fel_asset *) = {
        [FEL_ASSET_GLB] = glb_read, [FEL_ASSET_OBJ] = obj_read,     [FEL_ASSET_PLY] = ply_read,
        [FEL_ASSET_STL] = stl_read, [FEL_ASSET_SPLAT] = splat_read,
    };
    struct reader r = {.source = source, .memory = {.limit = (size_t)options->memory_limit}};
    const int32_t format = options->format ? options->format : format_of(&r);
    if (r.status)
        return r.status;
    if (format == FEL_ASSET_UNKNOWN)
        return status_fail(FEL_MALFORMED, "%s: byte 0: expected a GLB, OBJ, PLY, STL or .splat file",
                           source->name);
    struct owned *owned = calloc(1, sizeof *owned);
    if (!owned)
        return status_fail(FEL_OUT_OF_MEMORY, "%zu bytes could not be allocated", sizeof *owned);
    owned->asset.format = format;
    const bool good = readers[format](&r, &owned->asset);
    owned->memory = r.memory;
    fel_status status = good ? fel_asset_orient(&owned->asset, options->orientation) : r.status;
    if (status)
        fel_asset_free(&owned->asset);
    else
        *out = &owned->asset;
    return status;
}

fel_status fel_asset_read_memory(const char *name, const void *bytes, size_t size,
                                 const struct fel_asset_options *options, fel_asset **asset)
{
    struct fel_asset_options o;
    if (!asset || (!bytes && size))
        return status_fail(FEL_INVALID_ARGUMENT, "%s: expected a pointer, got NULL",
                           asset ? "bytes" : "asset");
    const fel_status status = options_copy(options, &o);
    if (status)
        return status;
    const struct source source = {
        .name = name ? name : "memory", .bytes = size ? bytes : (const void *)"", .size = size, .fd = -1};
    return read_source(&source, &o, asset);
}

fel_status fel_asset_read(const char *path, const struct fel_asset_options *options, fel_asset **asset)
{
    struct fel_asset_options o;
    if (!asset || !path)
        return status_fail(FEL_INVALID_ARGUMENT, "%s: expected a pointer, got NULL",
                           asset ? "path" : "asset");
    fel_status status = options_copy(options, &o);
    if (status)
        return status;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat info;
    if (fd < 0 || fstat(fd, &info)) {
        status = status_fail(FEL_IO, "%s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return status;
    }
    const char *slash = strrchr(path, '/');
    const size_t length = slash ? (size_t)(slash - path) + 1 : 2;
    char *folder = malloc(length + 1);
    if (!folder) {
        status = status_fail(FEL_OUT_OF_MEMORY, "%zu bytes could not be allocated", length);
    } else if (!S_ISREG(info.st_mode)) {
        status = status_fail(FEL_IO, "%s: expected a regular file", path);
    } else {
        memcpy(folder, slash ? path : "./", length);
        folder[length] = '\0';
        const struct source source = {
            .name = path, .folder = folder, .fd = fd, .size = (uint64_t)info.st_size};
        status = read_source(&source, &o, asset);
    }
    free(folder);
    close(fd);
    return status;
}

void fel_asset_free(fel_asset *asset)
{
    if (!asset)
        return;
    struct owned *owned = (struct owned *)asset; /* its first member */
    memory_free(&owned->memory);
    free(owned);
}

/* ---- writing */

static fel_status check_mesh(const fel_asset *asset, int64_t index)
{
    const struct fel_mesh *m = asset->meshes + index;
    if (m->vertex_count < 0 || m->face_count < 0 || m->vertex_count > INT32_MAX ||
        m->face_count > INT32_MAX || (m->vertex_count && !m->positions) || (m->face_count && !m->faces))
        return status_fail(FEL_INVALID_ARGUMENT,
                           "mesh %" PRId64 ": expected up to 2^31 - 1 vertices and faces", index);
    if (m->material < -1 || m->material >= asset->material_count)
        return status_fail(FEL_INVALID_ARGUMENT, "mesh %" PRId64 ": material %d of %" PRId64, index,
                           m->material, asset->material_count);
    for (int64_t i = 0; i < 3 * m->vertex_count; i++)
        if (!isfinite(m->positions[i]))
            return status_fail(FEL_INVALID_ARGUMENT, "mesh %" PRId64 ": position %" PRId64 " is not finite",
                               index, i / 3);
    for (int64_t i = 0; i < 3 * m->face_count; i++)
        if (m->faces[i] < 0 || m->faces[i] >= m->vertex_count)
            return status_fail(FEL_INVALID_ARGUMENT,
                               "mesh %" PRId64 ": face %" PRId64 " has index %d of %" PRId64 " vertices",
                               index, i / 3, m->faces[i], m->vertex_count);
    return FEL_OK;
}

static fel_status check_material(const fel_asset *asset, int64_t index)
{
    const struct fel_material *m = asset->materials + index;
    const int32_t textures[5] = {m->base_color_texture, m->metallic_roughness_texture, m->normal_texture,
                                 m->occlusion_texture, m->emissive_texture};
    for (int i = 0; i < 5; i++)
        if (textures[i] < -1 || textures[i] >= asset->picture_count)
            return status_fail(FEL_INVALID_ARGUMENT,
                               "material %" PRId64 ": texture %d of %" PRId64 " pictures", index, textures[i],
                               asset->picture_count);
    const float numbers[10] = {m->base_color[0], m->base_color[1], m->base_color[2], m->base_color[3],
                               m->metallic,      m->roughness,     m->emissive[0],   m->emissive[1],
                               m->emissive[2],   m->alpha_cutoff};
    for (int i = 0; i < 10; i++)
        if (!isfinite(numbers[i]))
            return status_fail(FEL_INVALID_ARGUMENT, "material %" PRId64 ": a factor is not finite", index);
    if (m->alpha_mode < 0 || m->alpha_mode > 2)
        return status_fail(FEL_INVALID_ARGUMENT, "material %" PRId64 ": alpha mode %d", index, m->alpha_mode);
    return FEL_OK;
}

static fel_status check_asset(const fel_asset *asset, int32_t format)
{
    const struct fel_gaussians *g = asset->gaussians;
    if (format == FEL_ASSET_SPLAT && !g)
        return status_fail(FEL_INVALID_ARGUMENT, "expected gaussians for a .splat file");
    if (g && format != FEL_ASSET_SPLAT && format != FEL_ASSET_PLY)
        return status_fail(FEL_INVALID_ARGUMENT, "gaussians: expected a .ply or .splat file");
    if (g && (g->count < 0 || g->count > INT32_MAX || g->sh_degree < 0 || g->sh_degree > 3 || !g->positions ||
              !g->log_scales || !g->rotations || !g->logits || !g->sh))
        return status_fail(FEL_INVALID_ARGUMENT,
                           "gaussians: expected up to 2^31 - 1 with five arrays and sh_degree 0 to 3");
    fel_status status = FEL_OK;
    for (int64_t i = 0; i < asset->material_count && !status; i++)
        status = check_material(asset, i);
    for (int64_t i = 0; i < asset->mesh_count && !status; i++)
        status = check_mesh(asset, i);
    return status;
}

static fel_status write_format(struct output *o, const char *path, const fel_asset *asset, int32_t format,
                               int32_t encoding)
{
    switch (format) {
    case FEL_ASSET_GLB:
        return glb_write(o, asset);
    case FEL_ASSET_OBJ:
        return obj_write(o, path, asset);
    case FEL_ASSET_PLY:
        return ply_write(o, asset, encoding);
    case FEL_ASSET_STL:
        return stl_write(o, asset);
    default:
        return splat_write(o, asset);
    }
}

fel_status fel_asset_write(const char *path, const fel_asset *asset, const struct fel_asset_options *options)
{
    struct fel_asset_options o;
    if (!path || !asset)
        return status_fail(FEL_INVALID_ARGUMENT, "%s: expected a pointer, got NULL", path ? "asset" : "path");
    fel_status status = options_copy(options, &o);
    if (status)
        return status;
    const int32_t format = o.format ? o.format : format_by_suffix(path);
    if (format == FEL_ASSET_UNKNOWN)
        return status_fail(FEL_INVALID_ARGUMENT,
                           "%s: expected a name ending in .glb, .obj, .ply, .stl or .splat", path);
    status = check_asset(asset, format);
    if (status)
        return status;
    struct memory memory = {.limit = SIZE_MAX};
    fel_asset turned = *asset;
    if (o.orientation != FEL_ORIENT_KEEP)
        status = orient_copy(&memory, asset, o.orientation, &turned);
    struct output output;
    if (!status)
        status = output_open(&output, path);
    if (!status)
        status = output_close(&output, write_format(&output, path, &turned, format, o.encoding));
    memory_free(&memory);
    return status;
}
