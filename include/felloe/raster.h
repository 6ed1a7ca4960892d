/* felloe/raster.h: differentiable mesh rasterization: rasterize, interpolate, texture, antialias, and their gradients.
 *
 * In the order in which a renderer calls them:
 *
 *     fel_rasterize            which triangle is seen at each pixel, and where on it
 *     fel_interpolate          vertex attributes there, and their image-space derivatives
 *     fel_texture_mips         mip levels of a texture, once per texture
 *     fel_texture              lookups at interpolated coordinates
 *     fel_antialias_topology   which triangles share an edge, once per index buffer
 *     fel_antialias            the coverage of pixels that silhouettes cut
 *
 * Each fel_X has a fel_X_backward that takes the gradient of a scalar with respect to fel_X's outputs and writes the one
 * with respect to its inputs. A gradient output that is NULL is not computed. Every output is overwritten, never added
 * to. A pixel whose incoming gradients are all zero adds exactly 0, even where inputs are not finite.
 *
 * Conventions. OpenGL clip space: visible is -w <= x, y, z <= w, larger z/w is farther. Row 0 of images and textures is
 * the bottom one. Pixel (row i, column j) of a height x width image has its one sample at NDC x = (2j + 1)/width - 1,
 * y = (2i + 1)/height - 1. Both windings are drawn.
 *
 * Tensors are float32 unless a comment says otherwise, contiguous, on the context's device, aligned to 16 bytes where
 * their last dimension is 4, and any dimension but a fixed one may be 0. Letters: n images, h x w pixels each, v vertices,
 * f triangles, a attributes, c channels.
 *
 * On a CUDA context every call only queues work on the context's stream; none waits. Scratch comes from the context's
 * allocator and goes back before the call returns. On the CPU all threads of the context's pool take part.
 * Contexts may be used from different threads at once.
 *
 * Errors of all calls: FEL_INVALID_ARGUMENT (NULL, an unknown option), FEL_INVALID_SHAPE, FEL_INVALID_DTYPE,
 * FEL_WRONG_DEVICE, FEL_OUT_OF_MEMORY, FEL_CUDA; fel_last_error() names the argument, what was expected and what came.
 * Outputs are untouched except after the last two.
 *
 * Method: Laine, Hellsten, Karras, Seol, Lehtinen & Aila, Modular Primitives for High-Performance Differentiable
 * Rendering, ACM TOG 39(6), 2020; coverage of triangles across the eye plane after Olano & Greer 1997. */
#ifndef FELLOE_RASTER_H
#define FELLOE_RASTER_H

#include <felloe/felloe.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bits for the `flags` of gradient calls.
 *
 * FEL_DETERMINISTIC  same bits on every run. Gradients that many pixels add to are then summed as 64-bit integers, in
 *                    units of 2^-30 of the call's largest contribution; without it floats are added in whatever order
 *                    threads arrive. Cost: the call's work twice, 8 bytes of scratch for each such gradient's element.
 *                    A contribution that is not finite makes its element NaN. */
#define FEL_DETERMINISTIC 1u

/* ---- Rasterization -------------------------------------------------------------------------------------------- */

typedef struct fel_rasterize_options {
    size_t size;       /* sizeof(fel_rasterize_options) */
    int subpixel_bits; /* vertices are rounded to 2^-8 pixel (8, also for 0) or to 2^-4 (4) */
    const DLTensor
        *below; /* NULL, or int32 [n, h, w]: draw only what is farther than these depths (peeling) */
    DLTensor
        *depth; /* NULL, or out, int32 [n, h, w]: depths of what was drawn, opaque; may be `below` itself */
} fel_rasterize_options;

/* Which triangle is seen at each pixel, and where on it.
 *
 * positions  [n, v, 4] clip-space x, y, z, w, one set for each image; or [v, 4], shared, with `ranges`
 * triangles  int32 [f, 3]; one with an index outside [0, v), or with a vertex that is NaN or infinite, is not drawn
 * ranges     NULL with [n, v, 4]; else int32 [n, 2] in host memory: image i draws triangles
 *            first .. first + count - 1; ranges may overlap, repeat, be empty; triangle ids stay those of `triangles`
 * options    NULL: defaults
 * rast       out, [n, h, w, 4]: u, v, z/w, id. u and v are the perspective-correct weights of vertices 0 and 1, in [0, 1],
 *            u + v <= 1. id is the triangle's index plus 1, as float to 2^24; above it the float's bits are
 *            0x4a800000 + id. Background: all 0
 * rast_db    out or NULL, [n, h, w, 4]: du/dX, du/dY, dv/dX, dv/dY per pixel; background 0
 *
 * h and w are at most 65,536, f at most 889,192,447 (the last id). Shared edges are watertight, also across the near
 * plane and the frustum's sides: coverage is exact, on a grid of 2^-subpixel_bits pixel; a sample on an edge belongs to
 * the triangle for which it is a left or a bottom edge. The nearest wins; at equal depth the higher index. Depth is
 * tested as linear over the rounded triangle, good to 1e-7. An image does not depend on its batch, and CPU and CUDA give
 * the same ids.
 *
 * Peeling: pass a `depth` tensor to the first call; pass it as `below` and as `depth` to the next ones. Each call then gives
 * the next layer behind; two surfaces at one depth are one layer. After the last layer all is background.
 *
 * Cost: f setups and the covered samples, then 32 bytes written a pixel. Scratch: 8 bytes a pixel of as many images as fit
 * in 32 MB (at least one), and on CUDA 4 MB for large triangles. */
FEL_API FEL_CHECKED fel_status fel_rasterize(fel_context *ctx, const DLTensor *positions,
                                             const DLTensor *triangles, const DLTensor *ranges,
                                             const fel_rasterize_options *options, DLTensor *rast,
                                             DLTensor *rast_db);

/* Gradients of u, v and, when grad_rast_db is not NULL, of their derivatives, to clip x, y and w.
 *
 * rast            [n, h, w, 4], of which only the ids are read
 * grad_rast       [n, h, w, 4], of which channels 0 and 1 are read: z/w and id have no gradient
 * grad_rast_db    [n, h, w, 4] or NULL
 * grad_positions  out, shape of positions; z gets exactly 0. Visibility has no gradient here: that is fel_antialias's
 *
 * Exact formulas, no guard against small triangles; a triangle without area adds 0. */
FEL_API FEL_CHECKED fel_status fel_rasterize_backward(fel_context *ctx, const DLTensor *positions,
                                                      const DLTensor *triangles, const DLTensor *rast,
                                                      const DLTensor *grad_rast, const DLTensor *grad_rast_db,
                                                      unsigned flags, DLTensor *grad_positions);

/* ---- Interpolation -------------------------------------------------------------------------------------------- */

/* Vertex attributes at each pixel: u a0 + v a1 + (1 - u - v) a2, with u and v as rast has them.
 *
 * attributes  [n, v, a], [1, v, a] or [v, a]; the latter two are shared by all images
 * rast        [n, h, w, 4]; an id of no triangle is background
 * triangles   int32 [f, 3]; need not be the index buffer that was rasterized, as per-face or seam attributes need
 * rast_db     [n, h, w, 4], or NULL when out_da is
 * selected    NULL: all attributes get derivatives, in order; else int32 [s], attribute numbers in any order, repeats
 *             allowed; one outside [0, a) gives derivatives of 0
 * out         out, [n, h, w, a]; background 0
 * out_da      out or NULL, [n, h, w, 2s]: d/dX and d/dY of each selected attribute (s = a without `selected`) */
FEL_API FEL_CHECKED fel_status fel_interpolate(fel_context *ctx, const DLTensor *attributes,
                                               const DLTensor *rast, const DLTensor *triangles,
                                               const DLTensor *rast_db, const DLTensor *selected,
                                               DLTensor *out, DLTensor *out_da);

/* grad_out         [n, h, w, a]
 * grad_out_da      [n, h, w, 2s] or NULL; needs rast_db
 * grad_attributes  out or NULL, shape of attributes; summed over images where those share it
 * grad_rast        out or NULL, [n, h, w, 4]; channels 2 and 3 are 0
 * grad_rast_db     out or NULL, [n, h, w, 4] */
FEL_API FEL_CHECKED fel_status fel_interpolate_backward(fel_context *ctx, const DLTensor *attributes,
                                                        const DLTensor *rast, const DLTensor *triangles,
                                                        const DLTensor *rast_db, const DLTensor *selected,
                                                        const DLTensor *grad_out, const DLTensor *grad_out_da,
                                                        unsigned flags, DLTensor *grad_attributes,
                                                        DLTensor *grad_rast, DLTensor *grad_rast_db);

/* ---- Texture -------------------------------------------------------------------------------------------------- */

typedef enum fel_texture_filter {
    FEL_FILTER_NEAREST = 0,
    FEL_FILTER_LINEAR = 1,
    FEL_FILTER_LINEAR_MIPMAP_NEAREST = 2, /* bilinear on level floor(level) */
    FEL_FILTER_LINEAR_MIPMAP_LINEAR = 3,  /* blends floor(level) and the next by the fraction */
} fel_texture_filter;

typedef enum fel_texture_boundary {
    FEL_BOUNDARY_WRAP = 0,
    FEL_BOUNDARY_CLAMP = 1,
    FEL_BOUNDARY_ZERO = 2, /* texels outside read 0, each on its own, on every level */
    FEL_BOUNDARY_CUBE = 3,
} fel_texture_boundary;

#define FEL_TEXTURE_MAX_LEVELS 17 /* of a 65,536 texture, itself included */

/* How many levels below the base halving gives, in *count (0 for 1 x 1). A side of 1 stays 1; an odd side above 1 can't be
 * halved: FEL_INVALID_SHAPE that names the level, unless max_levels levels (negative: no limit) are reached before. */
FEL_API FEL_CHECKED fel_status fel_texture_level_count(int64_t height, int64_t width, int max_levels,
                                                       int *count);

/* Mip levels: each the 2 x 2 means of the one before.
 *
 * texture  [n, h, w, c], or a cube, [n, 6, h, h, c], faces +x -x +y -y +z -z
 * levels   out, level_count tensors of the texture's rank, batch and channels, sides max(1, floor(side / 2^k)), k = 1, 2, ...
 *
 * Cost: the texture read once, a third as much written; two launches to 2,048. */
FEL_API FEL_CHECKED fel_status fel_texture_mips(fel_context *ctx, const DLTensor *texture,
                                                DLTensor *const *levels, int level_count);

/* Texture lookups.
 *
 * texture  [n, H, W, c], or [n, 6, S, S, c] with FEL_BOUNDARY_CUBE; a batch of 1 serves every image. Texel (row i,
 *          column j) has its centre at s = (j + 0.5)/W, t = (i + 0.5)/H
 * levels   level_count tensors below the base, from fel_texture_mips or the caller's own; read by the two mipmap filters
 * uv       [n, h, w, 2]: s, t; cube: [n, h, w, 3], a direction of any length
 * uv_da    NULL, or [n, h, w, 4 or 6]: d/dX and d/dY of each coordinate; read by the mipmap filters
 * bias     NULL, or [n, h, w]: added to the level that uv_da gives; without uv_da it is the level
 * out      out, [n, h, w, c]. Where uv is not finite, or a zero vector: 0, and no gradient
 *
 * Level: log2 of the longer axis of the pixel's footprint in texels, clamped to the levels there are; a NaN or empty
 * footprint is level 0. A mipmap filter needs uv_da or bias. Cube lookups blend across face borders without a seam; at a
 * cube's corner the missing fourth texel is the mean of the other three. */
FEL_API FEL_CHECKED fel_status fel_texture(fel_context *ctx, const DLTensor *texture,
                                           const DLTensor *const *levels, int level_count, const DLTensor *uv,
                                           const DLTensor *uv_da, const DLTensor *bias,
                                           fel_texture_filter filter, fel_texture_boundary boundary,
                                           DLTensor *out);

/* grad_out      [n, h, w, c]
 * grad_texture  out or NULL, shape of texture
 * grad_levels   NULL: the levels are fel_texture_mips's, and their gradients flow on into grad_texture. Else
 *               level_count outputs (each may be NULL) of the levels' shapes; grad_texture is then level 0's alone
 * grad_uv       out or NULL, shape of uv. At a texel's centre the right-hand slope; 0 where clamped; for a cube at right
 *               angles to the direction, except through the level
 * grad_uv_da    out or NULL; 0 except with FEL_FILTER_LINEAR_MIPMAP_LINEAR between two levels
 * grad_bias     out or NULL, likewise */
FEL_API FEL_CHECKED fel_status fel_texture_backward(
    fel_context *ctx, const DLTensor *texture, const DLTensor *const *levels, int level_count,
    const DLTensor *uv, const DLTensor *uv_da, const DLTensor *bias, fel_texture_filter filter,
    fel_texture_boundary boundary, const DLTensor *grad_out, unsigned flags, DLTensor *grad_texture,
    DLTensor *const *grad_levels, DLTensor *grad_uv, DLTensor *grad_uv_da, DLTensor *grad_bias);

/* ---- Antialiasing --------------------------------------------------------------------------------------------- */

/* For each vertex the lowest one at the same place (all four coordinates equal), for meshes whose seams duplicate
 * vertices.
 *
 * positions  [v, 4]
 * weld       out, int32 [v] */
FEL_API FEL_CHECKED fel_status fel_weld(fel_context *ctx, const DLTensor *positions, DLTensor *weld);

/* Which triangles share an edge. Depends on the index buffer alone; may be kept for any number of images and poses.
 *
 * triangles  int32 [f, 3], f at most 889,192,447; one with a repeated or negative index has no neighbours
 * weld       NULL, or int32 [v] from fel_weld: vertices that count as one. Without it duplicated vertices make every edge
 *            along a seam a silhouette
 * topology   out, int32 [f, 3], opaque: for each half-edge another one of the same edge
 *
 * Scratch: 16 to 32 bytes a triangle. */
FEL_API FEL_CHECKED fel_status fel_antialias_topology(fel_context *ctx, const DLTensor *triangles,
                                                      const DLTensor *weld, DLTensor *topology);

/* Coverage along silhouettes: blends each pair of neighbouring pixels with different ids where an edge of the nearer
 * triangle ends the surface between their centres.
 *
 * color      [n, h, w, c]
 * rast       [n, h, w, 4]
 * positions  [n, v, 4], or [v, 4] as in range mode: those that were rasterized
 * triangles  int32 [f, 3]
 * topology   int32 [f, 3] from fel_antialias_topology
 * out        out, [n, h, w, c]; must not overlap color. Not clamped: a pixel in several pairs can leave [0, 1]
 *
 * An edge is a silhouette when no other of its triangles lies on the other side of it in the image, whatever their
 * winding. Edges of triangles that no sample hit, edges where surfaces intersect, and edges with a vertex behind the eye
 * are not found. */
FEL_API FEL_CHECKED fel_status fel_antialias(fel_context *ctx, const DLTensor *color, const DLTensor *rast,
                                             const DLTensor *positions, const DLTensor *triangles,
                                             const DLTensor *topology, DLTensor *out);

/* grad_out        [n, h, w, c]
 * boost           multiplies grad_positions alone
 * grad_color      out or NULL, [n, h, w, c]
 * grad_positions  out or NULL, shape of positions; z gets exactly 0. An edge midway between two centres, where nothing is
 *                 blended, gets the mean of the two one-sided gradients */
FEL_API FEL_CHECKED fel_status fel_antialias_backward(fel_context *ctx, const DLTensor *color,
                                                      const DLTensor *rast, const DLTensor *positions,
                                                      const DLTensor *triangles, const DLTensor *topology,
                                                      const DLTensor *grad_out, float boost, unsigned flags,
                                                      DLTensor *grad_color, DLTensor *grad_positions);

#ifdef __cplusplus
}
#endif

#endif
