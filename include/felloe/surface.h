/* felloe/surface.h: marching cubes, trilinear sampling, and their gradients.
 *
 * Marching cubes (Lorensen & Cline 1987) with shared vertices. On an ambiguous face the samples below the level are
 * kept apart, by a rule that both cells of the face see alike, and no triangle's edge lies across a face of a cell: the
 * surface is a manifold for every input, and closed unless it meets the border of the volume. The result has a fixed
 * order, the same bits on CPU and GPU, in every run and with every cut into slabs.
 *
 * A call has two halves, so that the caller allocates the mesh in its own memory:
 *
 *     fel_surface *s;
 *     fel_surface_begin(ctx, volume, level, NULL, &s, &size);     counts, waits once for the device
 *     ... allocate vertices [size.vertices, 3] and faces [size.faces, 3] ...
 *     fel_surface_emit(s, vertices, faces, NULL);
 *     fel_surface_end(s);
 */
#ifndef FELLOE_SURFACE_H
#define FELLOE_SURFACE_H

#include <felloe/felloe.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fel_surface fel_surface;

struct fel_surface_options {
    size_t size; /* sizeof(struct fel_surface_options) */
    int32_t
        inside_above; /* 0: inside is below the level (distance), normals point up the field; 1: the reverse
                                (density), so that normals point out of the solid again */
    int32_t equal_is_below; /* 0: a sample equal to the level is not below; 1: it is, as in PyMCubes */
    int32_t closed;         /* 1: as if a layer of outside lay round the volume; caps lie on its border */
    int32_t
        reverse_columns; /* 0: vertices are (x, y, z), index along axes 2, 1, 0; 1: along axes 0, 1, 2, with the
                                winding turned so that normals still point the same way */
    /* One slab of a larger volume: see fel_surface_size. All 0 for a whole volume. */
    int32_t continued;    /* 1: the slab begins inside the volume, where the one before said */
    int32_t open;         /* 1: the volume goes on after the slab's last plane */
    int64_t first_plane;  /* index of the slab's first plane along axis 0 of the whole volume */
    int64_t first_vertex; /* what the slab before gave as next_vertex */
};

struct fel_surface_size {
    int64_t vertices, faces; /* that this call emits */
    /* A slab that is open emits the vertices of all planes but the last two, and the cells whose vertices are known.
     * The next slab begins at plane first_plane + planes - 3 (three planes are given twice; 4 at least a slab), is
     * continued, and has first_vertex = next_vertex. Put behind each other, the slabs' arrays are those of the whole
     * volume, bit for bit: indices already count from the first vertex of all. */
    int64_t next_vertex;
};

/* Counts the surface of volume at level.
 *
 * volume    float32 or float16 [d, h, w]; last axis is x; stays alive and unchanged until fel_surface_end()
 * level     finite
 * options   NULL for the defaults
 * surface   out, released with fel_surface_end(); untouched on error
 * size      out
 *
 * A sample is below when value < level; NaN is not below. Axes may be of any length; one below 2 has no cells. No
 * sample is read more than once before fel_surface_emit(). Scratch: a little over 1/4 byte a sample, in words of 32.
 * Waits for the device, once. Errors: FEL_INVALID_ARGUMENT, FEL_INVALID_SHAPE, FEL_INVALID_DTYPE, FEL_WRONG_DEVICE,
 * FEL_OUT_OF_MEMORY, FEL_CUDA. */
FEL_API FEL_CHECKED fel_status fel_surface_begin(fel_context *ctx, const DLTensor *volume, double level,
                                                 const struct fel_surface_options *options,
                                                 fel_surface **surface, struct fel_surface_size *size);

/* Writes the mesh.
 *
 * vertices  out, float32 [v, 3], in samples: 0 .. n - 1 along each axis, ascending by (z, y, x) of the edge's lower end,
 *           then edge axis x, y, z
 * faces     out, int32 or int64 [f, 3], ascending by cell (z, y, x); the right-hand normal points out of the inside.
 *           int32 is refused when an index needs more
 * normals   out, float32 [v, 3] or NULL: unit gradient of the field by central differences, pointing out of the
 *           inside; (0, 0, 0) where the gradient is zero or not finite
 *
 * v and f are those of fel_surface_begin(). A vertex lies at p1 + t, t = (level - v1) / (v2 - v1) rounded as written, in
 * float32; where one end is not finite it lies at the other, where both are not, in the middle. So vertices are always
 * finite. May be called again. Does not wait. Errors as above, and FEL_OVERFLOW for int32. */
FEL_API FEL_CHECKED fel_status fel_surface_emit(fel_surface *surface, DLTensor *vertices, DLTensor *faces,
                                                DLTensor *normals);

/* Gradient of a sum over vertices with respect to the volume.
 *
 * grad_vertices  float32 [v, 3]
 * grad_volume    out, float32 [d, h, w], written whole
 *
 * dp/dv1 = (level - v2) / (v2 - v1)^2 along the edge, dp/dv2 = (v1 - level) / (v2 - v1)^2. Each sample gathers from its
 * edges in a fixed order: deterministic. Vertices at ends that are not finite pass no gradient. Not for slabs. */
FEL_API FEL_CHECKED fel_status fel_surface_backward(fel_surface *surface, const DLTensor *grad_vertices,
                                                    DLTensor *grad_volume);

FEL_API void fel_surface_end(fel_surface *surface);

/* Trilinear samples of a grid.
 *
 * volume   float32 or float16 [c, d, h, w]
 * points   float32 [p, 3], (x, y, z) in samples, as marching cubes gives them
 * out      float32 [p, c]
 * extrapolate_below  0: coordinates are clamped to the grid, so values are constant outside; 1: between -1 and 0 along
 *          an axis the first two samples are extrapolated, as older extensions do
 *
 * Blended along x, then y, then z. A point with a NaN gives NaN in all c. An axis of length 0 is FEL_INVALID_SHAPE
 * unless p is 0. */
FEL_API FEL_CHECKED fel_status fel_grid_sample(fel_context *ctx, const DLTensor *volume,
                                               const DLTensor *points, int32_t extrapolate_below,
                                               DLTensor *out);

/* Gradient of fel_grid_sample with respect to points (clamped coordinates pass none).
 * grad_out float32 [p, c]; grad_points out, float32 [p, 3]. */
FEL_API FEL_CHECKED fel_status fel_grid_sample_backward(fel_context *ctx, const DLTensor *volume,
                                                        const DLTensor *points, const DLTensor *grad_out,
                                                        DLTensor *grad_points);

#ifdef __cplusplus
}
#endif

#endif
