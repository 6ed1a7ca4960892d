/* felloe/bake.h: from attributes on a mesh to pixels of a texture.
 *
 *     fel_bake_uv            which face covers each texel, and where on it
 *     fel_bake_view          the same for a view of the mesh, with visibility
 *     fel_bake_interpolate   vertex attributes there
 *     fel_bake_gutter_*      colours for texels round the islands, so that filtering does not bleed
 *     fel_bake_inpaint       known texels spread over the mesh's vertices to unknown ones
 *
 * Coverage is inclusive: a texel on an edge belongs to both faces, and the lower face index wins, so neighbouring faces
 * leave no gap: both see the same value of the shared edge's function, with opposite sign. It is computed in double
 * precision without fused operations: the same faces on CPU and GPU. Both windings are drawn; a face without area or with
 * a coordinate that is not finite never is. Time is bounded by faces plus the texels that their boxes cover.
 *
 * Images are [h, w, ...], row 0 on top. Tensors are contiguous and on the context's device; any dimension may be 0. On a
 * CUDA context no call waits for the device unless it says so. Errors of all calls: FEL_INVALID_ARGUMENT,
 * FEL_INVALID_SHAPE, FEL_INVALID_DTYPE, FEL_WRONG_DEVICE, FEL_OUT_OF_MEMORY, FEL_CUDA. */
#ifndef FELLOE_BAKE_H
#define FELLOE_BAKE_H

#include <felloe/felloe.h>

#ifdef __cplusplus
extern "C" {
#endif

enum fel_bake_sample {                      /* where in the texture the texel of row r and column c lies */
                       FEL_BAKE_CORNER = 0, /* u = c / w, v = 1 - r / h */
                       FEL_BAKE_CENTER =
                           1, /* u = (c + 0.5) / w, v = 1 - (r + 0.5) / h: what samplers of glTF read */
                       FEL_BAKE_ENDS =
                           2 /* u = c / (w - 1), v = 1 - r / (h - 1): 0..1 spans the texels' centres */
};

/* The face of each texel.
 *
 * uvs    float32 [v, 2], v upwards; faces  int32 [f, 3]; a face with an index outside [0, v) is not drawn
 * rast   out, float32 [h, w, 4]: barycentric weights of the three corners, and the face's index (exact below 2^24);
 *        (0, 0, 0, -1) where there is none. Where faces overlap, the lowest index.
 * Scratch: 8 bytes a texel. */
FEL_API FEL_CHECKED fel_status fel_bake_uv(fel_context *ctx, const DLTensor *uvs, const DLTensor *faces,
                                           int32_t sample, DLTensor *rast);

/* The nearest face at each pixel.
 *
 * positions   float32 [v, 4]: clip space; x and y of -1 and 1 are the centres of the first and last pixel, y not flipped
 * faces       int32 [f, 3]
 * behind      float32 [h, w] or NULL: draw only what is farther than this NDC depth, by 1e-6 of the stored depth (peeling)
 * indices     out, int32 [h, w]: face index + 1, 0 where there is none
 * weights     out, float32 [h, w, 3]: perspective-correct barycentric weights, (0, 0, 0) where there is none
 *
 * Depth is z/w * 0.49999 + 0.5, linear on the screen, compared in steps of 2^-18; of equal ones the lowest face wins;
 * below 0 nothing is drawn, beyond 1 it is. What lies behind the eye (w <= 0) is cut away exactly. Scratch: 8 bytes a
 * pixel. */
FEL_API FEL_CHECKED fel_status fel_bake_view(fel_context *ctx, const DLTensor *positions,
                                             const DLTensor *faces, const DLTensor *behind, DLTensor *indices,
                                             DLTensor *weights);

/* Attributes at texels: the weighted sum of the three corners' values, exactly 0 where there is no face.
 *
 * attributes  float32 [v, c]; faces int32 [f, 3]
 * rast        float32 [h, w, 4] of fel_bake_uv(), or NULL: then
 * indices     int32 [h, w] and weights float32 [h, w, 3] of fel_bake_view()
 * out         out, float32 [h, w, c]
 * A face index that does not exist gives 0. */
FEL_API FEL_CHECKED fel_status fel_bake_interpolate(fel_context *ctx, const DLTensor *attributes,
                                                    const DLTensor *faces, const DLTensor *rast,
                                                    const DLTensor *indices, const DLTensor *weights,
                                                    DLTensor *out);

/* Each unknown texel gets the value of the nearest known one within `reach` texels (jump flooding, Rong & Tan 2006: a
 * few texels get one that is slightly farther).
 *
 * image  float32 [h, w, c], in place; mask  uint8 [h, w], in place: > 0 known; filled texels become 255
 * Scratch: 16 bytes a texel. */
FEL_API FEL_CHECKED fel_status fel_bake_gutter_nearest(fel_context *ctx, DLTensor *image, DLTensor *mask,
                                                       int32_t reach);

/* Every unknown texel gets a smooth continuation: averages of known texels down a pyramid, then back up where nothing
 * was known (Gortler et al. 1996). mask is not changed. Scratch: 4 (c + 1) / 3 bytes a texel. */
FEL_API FEL_CHECKED fel_status fel_bake_gutter_smooth(fel_context *ctx, DLTensor *image,
                                                      const DLTensor *mask);

/* Grows the known texels by one ring per iteration: a new texel gets the mean, over the texels q of its 3 x 3
 * neighbourhood that are known or new, of the mean of the known texels in q's neighbourhood. Unlike older
 * implementations the image's border is not darkened. image and mask as in fel_bake_gutter_nearest(). */
FEL_API FEL_CHECKED fel_status fel_bake_gutter_grow(fel_context *ctx, DLTensor *image, DLTensor *mask,
                                                    int32_t iterations);

enum fel_inpaint_method {
    FEL_INPAINT_SMOOTH = 0, /* sweeps of weighted means until what can be reached has been */
    FEL_INPAINT_FORWARD = 1 /* breadth-first waves from what is known */
};

/* Spreads known texels over the mesh to the texels of vertices that have none.
 *
 * texture        float32 [h, w, c]; mask  uint8 [h, w], > 0 known
 * positions      float32 [v, 3]; uvs  float32 [t, 2], v upwards, clamped to 0..1; texels by FEL_BAKE_ENDS, rounded half
 *                away from zero
 * faces          int32 [f, 3] into positions; uv_faces  int32 [f, 3] into uvs, corner by corner
 * colors, state  out, float32 [v, c] and uint8 [v]: 1 known, 2 reached, 0 not; either may be NULL
 * new_texture, new_mask  out, float32 [h, w, c] and uint8 [h, w]; both may be NULL. May be texture and mask themselves
 *
 * Only the texels at corners change. The graph has the directed edges 0-1, 1-2, 2-0 of each face; a vertex draws from
 * where its edges go, with weight 1 / max(length, 1e-4)^2. For CPU contexts. Indices outside their arrays are
 * FEL_INVALID_ARGUMENT. Scratch: 12 bytes an edge, 4 (c + 4) a vertex. */
FEL_API FEL_CHECKED fel_status fel_bake_inpaint(fel_context *ctx, const DLTensor *texture,
                                                const DLTensor *mask, const DLTensor *positions,
                                                const DLTensor *uvs, const DLTensor *faces,
                                                const DLTensor *uv_faces, int32_t method, DLTensor *colors,
                                                DLTensor *state, DLTensor *new_texture, DLTensor *new_mask);

#ifdef __cplusplus
}
#endif

#endif
