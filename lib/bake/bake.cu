/* bake/bake.cu: the kernels of baking.
 *
 *   bake_cover        a warp a face: its lanes go through the texels of the face's box. A box over LARGE_BOX texels is
 *                     put on a list instead, so that no warp runs long after the others.
 *   bake_cover_large  all blocks share each face of the list, 16 x 16 texels at a time.
 *   bake_resolve_all  a thread a texel: weights of the face that won, recomputed from its corners.
 * Floor: the result written once. The keys (8 bytes a texel) are written, met by atomics and read once more.
 * The rest is a thread a texel or an element.
 */
#include "bake_math.h"

enum { LARGE_BOX = 4096 };

extern "C" __global__ void __launch_bounds__(256) bake_clear(const __grid_constant__ struct bake_args a)
{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < (long long)a.width * a.height)
        a.keys[i] = BAKE_EMPTY;
    if (i == 0)
        *a.large_count = 0;
}

__device__ static void cover_texel(const struct bake_args &a, const struct bake_face &f, long long face, int x, int y)
{
    const unsigned long long key = bake_key(&a, &f, face, x, y);
    if (key != BAKE_EMPTY)
        atomicMin(a.keys + (long long)y * a.width + x, key);
}

extern "C" __global__ void __launch_bounds__(256) bake_cover(const __grid_constant__ struct bake_args a)
{
    const long long face = ((long long)blockIdx.x * blockDim.x + threadIdx.x) >> 5;
    const int lane = threadIdx.x & 31;
    struct bake_face f;
    if (face >= a.face_count || !bake_setup(&a, face, &f))
        return;
    const int width = f.x1 - f.x0, height = f.y1 - f.y0;
    if ((long long)width * height > LARGE_BOX) {
        if (lane == 0)
            a.large[atomicAdd(a.large_count, 1)] = (int)face;
        return;
    }
    for (int i = lane; i < width * height; i += 32)
        cover_texel(a, f, face, f.x0 + i % width, f.y0 + i / width);
}

extern "C" __global__ void __launch_bounds__(256) bake_cover_large(const __grid_constant__ struct bake_args a)
{
    const int count = *a.large_count;
    for (int k = 0; k < count; k++) {
        const long long face = a.large[k];
        struct bake_face f;
        if (!bake_setup(&a, face, &f))
            continue;
        const int columns = (f.x1 - f.x0 + 15) / 16, rows = (f.y1 - f.y0 + 15) / 16;
        for (int tile = blockIdx.x; tile < columns * rows; tile += gridDim.x) {
            const int x = f.x0 + tile % columns * 16 + (int)(threadIdx.x & 15), y = f.y0 + tile / columns * 16 + (int)(threadIdx.x >> 4);
            if (x < f.x1 && y < f.y1)
                cover_texel(a, f, face, x, y);
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) bake_resolve_all(const __grid_constant__ struct bake_args a)
{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (long long)a.width * a.height)
        return;
    struct bake_face f;
    const long long face = bake_winner(&a, i);
    if (face >= 0)
        (void)bake_setup(&a, face, &f);
    bake_write(&a, (int)(i % a.width), (int)(i / a.width), face, &f);
}

extern "C" __global__ void __launch_bounds__(256) bake_interpolate(const __grid_constant__ struct bake_interpolate_args a)
{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.texel_count * a.channels)
        return;
    struct bake_corners corners;
    bake_corners_at(&a, i / a.channels, &corners);
    a.out[i] = bake_blend(&corners, i % a.channels);
}

#define TEXEL_KERNEL(name, function)                                                                         \
    extern "C" __global__ void __launch_bounds__(256) name(const __grid_constant__ struct bake_gutter_args a) \
    {                                                                                                        \
        const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;                                \
        if (i < (long long)a.width * a.height)                                                               \
            function(&a, i);                                                                                 \
    }

TEXEL_KERNEL(bake_flood_begin_all, bake_flood_begin)
TEXEL_KERNEL(bake_flood_step_all, bake_flood_step)
TEXEL_KERNEL(bake_flood_end_all, bake_flood_end)
TEXEL_KERNEL(bake_grow_all, bake_grow)

extern "C" __global__ void __launch_bounds__(256) bake_pull_all(const __grid_constant__ struct bake_pyramid_args a)
{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < (long long)a.coarse_width * a.coarse_height)
        bake_pull(&a, i);
}

extern "C" __global__ void __launch_bounds__(256) bake_push_all(const __grid_constant__ struct bake_pyramid_args a)
{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < (long long)a.width * a.height)
        bake_push(&a, i);
}
