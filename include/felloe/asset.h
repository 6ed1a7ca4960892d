/* felloe/asset.h: meshes, materials, pictures and gaussians in and out of files.
 *
 * GLB (glTF 2.0 binary), OBJ with MTL, PLY (ascii and binary in both byte orders, meshes and 3D gaussians), STL and
 * .splat. One struct, fel_asset, is what every reader makes and every writer takes, so a conversion is a read and a
 * write. Nothing here needs a device or a context.
 *
 * Files are untrusted: a reader checks every count and offset against the bytes that exist, has a memory limit, and
 * refuses what is malformed with the place ("robot.glb: byte 1204: accessor 3 ends past its buffer view").
 * Writers go to a temporary file beside the target, then rename: the target is the old file or the whole new one. */
#ifndef FELLOE_ASSET_H
#define FELLOE_ASSET_H

#include <felloe/felloe.h>

#ifdef __cplusplus
extern "C" {
#endif

enum fel_asset_format {
    FEL_ASSET_UNKNOWN = 0, /* reading: by the file's first bytes, else its suffix; writing: by the suffix */
    FEL_ASSET_GLB = 1,
    FEL_ASSET_OBJ = 2,
    FEL_ASSET_PLY = 3, /* gaussians when the asset has them, else the meshes as one */
    FEL_ASSET_STL = 4,
    FEL_ASSET_SPLAT = 5
};

enum fel_asset_encoding { /* of a PLY that is written */
                          FEL_PLY_LITTLE_ENDIAN = 0,
                          FEL_PLY_BIG_ENDIAN = 1,
                          FEL_PLY_ASCII = 2
};

enum fel_orientation { /* proper rotations, so winding and handedness stay */
                       FEL_ORIENT_KEEP = 0,
                       FEL_ORIENT_Z_UP_TO_Y_UP =
                           1, /* (x, y, z) -> (x, z, -y): Blender, CAD and most volumes to glTF */
                       FEL_ORIENT_Y_UP_TO_Z_UP = 2, /* (x, y, z) -> (x, -z, y): the inverse */
                       FEL_ORIENT_X_FRONT_TO_GLTF =
                           3, /* (x, y, z) -> (y, z, x): Z up and looking along X, to Y up and looking along Z */
                       FEL_ORIENT_TURN_ROUND = 4 /* (x, y, z) -> (-x, y, -z): half a turn about Y */
};

/* A picture as its file holds it: PNG or JPEG bytes that pass through unchanged. fel_png_decode() gives pixels. */
struct fel_picture {
    const char *name; /* NULL when it has none; for a picture that could not be found, its path in the file */
    const char *mime; /* "image/png", "image/jpeg"; another type is kept as the file calls it */
    const uint8_t *bytes; /* NULL when the file names a picture that is not there */
    int64_t size;
};

/* Metallic-roughness material of glTF 2.0. A texture is an index into fel_asset.pictures, -1 for none. */
struct fel_material {
    const char *name;
    float base_color[4]; /* linear RGBA factor */
    float metallic, roughness;
    float emissive[3];
    int32_t base_color_texture, metallic_roughness_texture, normal_texture, occlusion_texture,
        emissive_texture;
    int32_t alpha_mode; /* 0 opaque, 1 mask, 2 blend */
    float alpha_cutoff; /* for mask */
    int32_t double_sided;
};

/* Triangles that share one material: a primitive of glTF. */
struct fel_mesh {
    const char *name;
    int64_t vertex_count; /* v <= 2^31 - 1 */
    int64_t face_count;   /* f <= 2^31 - 1 */
    float *positions;     /* [v, 3] */
    float *normals;       /* [v, 3] or NULL; unit length */
    float *uvs;           /* [v, 2] or NULL; origin at the picture's top left, v down, as in glTF */
    float *colors;        /* [v, 4] or NULL; RGBA in 0..1 as the file has them, no transfer curve applied */
    int32_t *faces;       /* [f, 3], counter-clockwise seen from outside, each in [0, v) */
    int32_t material;     /* index into fel_asset.materials, or -1 */
};

/* 3D gaussians as training writes them (Kerbl et al. 2023): scales are logarithms, opacities are logits. */
struct fel_gaussians {
    int64_t count;     /* n */
    int32_t sh_degree; /* 0..3: k = (sh_degree + 1)^2 coefficients a colour channel */
    float *positions;  /* [n, 3] */
    float *log_scales; /* [n, 3] */
    float *rotations;  /* [n, 4] quaternion w x y z, not always unit length */
    float *logits;     /* [n] */
    float *sh;         /* [n, k, 3]; the first is the constant term, colour = 0.5 + 0.28209479 * sh */
};

typedef struct fel_asset {
    int32_t format; /* enum fel_asset_format of the file that was read; writers ignore it */
    struct fel_mesh *meshes;
    int64_t mesh_count;
    struct fel_material *materials;
    int64_t material_count;
    struct fel_picture *pictures;
    int64_t picture_count;
    struct fel_gaussians *gaussians; /* NULL when there are none */
    int64_t skipped_primitives;      /* points and lines of the file, which are not kept */
} fel_asset;

struct fel_asset_options {
    size_t size;          /* sizeof(struct fel_asset_options) */
    int32_t format;       /* enum fel_asset_format */
    int32_t encoding;     /* enum fel_asset_encoding, writing only */
    int32_t orientation;  /* enum fel_orientation, applied after reading or before writing */
    int64_t memory_limit; /* bytes that a reader may allocate; 0: 16 GiB */
};

/* Reads path. On success *asset is whole and owned by the library: fel_asset_free() releases it, and its arrays may be
 * changed in place. Text formats: faces with more than three corners are cut into fans; vertices that differ in
 * position, normal or texture coordinate are split as glTF needs. glTF: node transforms are applied, so a mesh used by
 * two nodes is there twice; KHR_mesh_quantization is read; a required extension that is not known is refused by name.
 * Files are read through a window of 1 MiB, not loaded whole. options may be NULL.
 * Errors: FEL_IO (cannot be opened or read), FEL_MALFORMED (with the byte offset), FEL_OUT_OF_MEMORY (over the limit),
 * FEL_INVALID_ARGUMENT. */
FEL_API FEL_CHECKED fel_status fel_asset_read(const char *path, const struct fel_asset_options *options,
                                              fel_asset **asset);

/* The same from memory; name stands in messages. Pictures that an OBJ's MTL names in other files are not opened. */
FEL_API FEL_CHECKED fel_status fel_asset_read_memory(const char *name, const void *bytes, size_t size,
                                                     const struct fel_asset_options *options,
                                                     fel_asset **asset);

FEL_API void fel_asset_free(fel_asset *asset);

/* Writes asset to path; options may be NULL. asset need not come from fel_asset_read().
 * GLB: everything; normals are made unit length; empty meshes are left out. OBJ: also NAME.mtl and its pictures beside
 * it. PLY and STL: meshes joined; STL has no vertex attributes. PLY and .splat of gaussians: one record each; .splat
 * keeps 8 bits of colour, opacity and rotation, and no sh above degree 0.
 * Errors: FEL_INVALID_ARGUMENT (an index outside its array, a position that is not finite, gaussians to a mesh format
 * or the reverse, over a format's limit), FEL_IO. On an error the target is as it was. */
FEL_API FEL_CHECKED fel_status fel_asset_write(const char *path, const fel_asset *asset,
                                               const struct fel_asset_options *options);

/* Turns positions, normals and gaussians (with their spherical harmonics) in place. */
FEL_API FEL_CHECKED fel_status fel_asset_orient(fel_asset *asset, int32_t orientation);

/* PNG. Reads every colour type, bit depth and interlace of the specification to 8 bits a channel (16-bit samples are
 * rounded). pixels [height, width, channels], channels 1 to 4 as stored (a palette becomes 3 or 4), released with
 * fel_png_free(). Pictures over 2^28 pixels are refused. name stands in messages. */
FEL_API FEL_CHECKED fel_status fel_png_decode(const char *name, const void *bytes, size_t size,
                                              uint8_t **pixels, int32_t *width, int32_t *height,
                                              int32_t *channels);

/* pixels uint8 [frames, height, width, channels], channels 1 to 4. frames > 1 makes an animated PNG, each shown for
 * delay_ms, without end. *bytes is released with fel_png_free(). */
FEL_API FEL_CHECKED fel_status fel_png_encode(const uint8_t *pixels, int32_t width, int32_t height,
                                              int32_t channels, int32_t frames, int32_t delay_ms,
                                              uint8_t **bytes, size_t *size);
FEL_API void fel_png_free(uint8_t *bytes);

/* Writes size bytes to path through a temporary file beside it, then rename. FEL_IO. */
FEL_API FEL_CHECKED fel_status fel_write_atomically(const char *path, const void *bytes, size_t size);

/* A folder of one session's own (mode 0700, unguessable name) for the files that it hands out. root NULL: $TMPDIR, else
 * /tmp. Closing removes the files in it, then the folder. Names can't collide (each carries a count) and can't escape:
 * of `stem`, which may come from a user, only letters, digits, '-' and '_' are kept.
 * fel_session_path gives "ROOT/felloe-XXXXXX/STEM-N.SUFFIX" in path[size]; nothing is created. One session may be used
 * from several threads. */
typedef struct fel_session fel_session;
FEL_API FEL_CHECKED fel_status fel_session_open(const char *root, fel_session **session);
FEL_API FEL_CHECKED fel_status fel_session_path(fel_session *session, const char *stem, const char *suffix,
                                                char *path, size_t size);
FEL_API void fel_session_close(fel_session *session);

#ifdef __cplusplus
}
#endif

#endif
