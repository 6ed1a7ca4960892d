/* raster/raster.cu: the kernels of fel_rasterize, fel_interpolate, fel_texture and fel_antialias.
 *
 * Rasterization is three launches for each group of images whose keys stay in the L2 cache:
 *   raster_cover    faces to keys by 64-bit atomic minimum: a lane alone for a few samples, a warp together for more;
 *                   pieces of large triangles, and all of those without a place on the grid, go to a queue
 *   raster_large    the queue, a warp a piece
 *   raster_resolve  keys to barycentrics; bound by the 32 bytes it writes a pixel
 * Gradients to vertices are summed over the lanes of a warp that see the same face before they go to memory.
 * Texture gradients go out as 16-byte vector reductions where the GPU has them (sm_90). Antialiasing examines each pair
 * of pixels once, in shared memory, and every pixel gathers from its four pairs.
 *
 * Everything else is in the *_math.h files, which the CPU uses as well. */
#include "antialias_math.h"
#include "interpolate_math.h"
#include "raster_kernels.h"
#include "rasterize_math.h"
#include "texture_math.h"

#define FULL_WARP 0xffffffffu

static __device__ __forceinline__ int lane_index(void) { return threadIdx.x & 31; }

/* Blocks of `side` columns lie along grid x, image after image: that dimension alone has no limit that a batch reaches. */
struct block_place {
    int image, column;
};

static __device__ __forceinline__ block_place block_place_of(int width, int side)
{
    const unsigned across = (unsigned)(width + side - 1) / side;
    block_place p;
    p.image = (int)(blockIdx.x / across);
    p.column = (int)(blockIdx.x - p.image * across) * side;
    return p;
}

/* ---- rasterization ---- */

/* A covered sample: peeling, then the key. */
static __device__ __forceinline__ void cover_sample(const rasterize_args &a, int image, int i, int j,
                                                    unsigned depth, long long face)
{
    const long long pixel = ((long long)image * a.height + i) * a.width + j; /* within the launch */
    if (a.below) {
        const long long first = (long long)a.image_first * a.height * a.width;
        if (depth <= a.below[first + pixel])
            return;
    }
    atomicMin(a.keys + pixel,
              raster_key(depth, face)); /* its result unused: nothing waits. Reading first would */
}

/* Edge functions in 32 bits: enough when no side of the triangle is longer than 127 pixels. */
struct edges32 {
    int e[3], dj[3], di[3], least[3];
    float inverse_area, z2, z02, z12;
};

static __device__ __forceinline__ bool fits32(const raster_triangle &t)
{
    return max3(t.x[0], t.x[1], t.x[2]) - min3(t.x[0], t.x[1], t.x[2]) < 32768 - GRID &&
           max3(t.y[0], t.y[1], t.y[2]) - min3(t.y[0], t.y[1], t.y[2]) < 32768 - GRID;
}

static __device__ __forceinline__ bool edges32_at(const raster_triangle &t, int width, int height, int j,
                                                  int i, edges32 &r)
{
    const int area = (t.x[1] - t.x[0]) * (t.y[2] - t.y[0]) - (t.x[2] - t.x[0]) * (t.y[1] - t.y[0]);
    if (area == 0)
        return false;
    const int sign = area > 0 ? 1 : -1, px = sample_place(j, width), py = sample_place(i, height);
#pragma unroll
    for (int k = 0; k < 3; k++) {
        const int from = k == 2 ? 0 : k + 1, to = k == 0 ? 2 : k - 1;
        const int dx = sign * (t.x[to] - t.x[from]), dy = sign * (t.y[to] - t.y[from]);
        r.e[k] = dx * (py - t.y[from]) - dy * (px - t.x[from]);
        r.dj[k] = -dy * GRID;
        r.di[k] = dx * GRID;
        r.least[k] = !edge_owns(dx, dy);
    }
    r.inverse_area = 1.0f / (float)(sign * area);
    r.z2 = t.z[2];
    r.z02 = add_rn(t.z[0], -t.z[2]);
    r.z12 = add_rn(t.z[1], -t.z[2]);
    return true;
}

/* One lane, a few samples. */
static __device__ __forceinline__ void cover_small(const rasterize_args &a, int image, long long face,
                                                   const raster_triangle &t)
{
    edges32 r;
    if (!edges32_at(t, a.width, a.height, t.box.j0, t.box.i0, r))
        return;
    for (int i = t.box.i0; i <= t.box.i1; i++) {
        int e0 = r.e[0], e1 = r.e[1], e2 = r.e[2];
        for (int j = t.box.j0; j <= t.box.j1; j++) {
            unsigned depth;
            if (e0 >= r.least[0] && e1 >= r.least[1] && e2 >= r.least[2] &&
                plain_depth((float)e0, (float)e1, r.inverse_area, r.z2, r.z02, r.z12, t.clipped, &depth))
                cover_sample(a, image, i, j, depth, face);
            e0 += r.dj[0], e1 += r.dj[1], e2 += r.dj[2];
        }
        r.e[0] += r.di[0], r.e[1] += r.di[1], r.e[2] += r.di[2];
    }
}

/* A warp, 32 samples at a time: 8 x 4, or narrower for narrow boxes. */
static __device__ __forceinline__ void cover_medium(const rasterize_args &a, int image, long long face,
                                                    const raster_triangle &t)
{
    const int lane = lane_index(), w = t.box.j1 - t.box.j0 + 1, h = t.box.i1 - t.box.i0 + 1;
    const int shift = w > 4 ? 3 : w > 2 ? 2 : 1, across = 1 << shift, up = 32 >> shift;
    edges32 r;
    if (!edges32_at(t, a.width, a.height, t.box.j0, t.box.i0, r))
        return;
    const int lane_j = lane & (across - 1), lane_i = lane >> shift;
#pragma unroll 1
    for (int i = lane_i; i < h; i += up) {
#pragma unroll 2
        for (int j = lane_j; j < w; j += across) {
            const int e0 = r.e[0] + r.dj[0] * j + r.di[0] * i, e1 = r.e[1] + r.dj[1] * j + r.di[1] * i,
                      e2 = r.e[2] + r.dj[2] * j + r.di[2] * i;
            unsigned depth;
            if (e0 >= r.least[0] && e1 >= r.least[1] && e2 >= r.least[2] &&
                plain_depth((float)e0, (float)e1, r.inverse_area, r.z2, r.z02, r.z12, t.clipped, &depth))
                cover_sample(a, image, t.box.i0 + i, t.box.j0 + j, depth, face);
        }
    }
}

static __device__ __forceinline__ raster_box box_cut(const raster_box &a, const raster_box &b)
{
    raster_box r;
    r.j0 = a.j0 > b.j0 ? a.j0 : b.j0, r.j1 = a.j1 < b.j1 ? a.j1 : b.j1;
    r.i0 = a.i0 > b.i0 ? a.i0 : b.i0, r.i1 = a.i1 < b.i1 ? a.i1 : b.i1;
    return r;
}

/* A warp covers one tile of a triangle that is large or wide. Never inlined: raster_cover must not carry its doubles. */
static __device__ __noinline__ void cover_tile(const rasterize_args &a, int image, long long face, int tile_j,
                                               int tile_i)
{
    float p[3][4];
    raster_triangle t;
    if (!raster_load(&a, a.image_first + image, face, p))
        return;
    const int lane = lane_index(), kind = raster_setup(&a, p, &t);
    raster_box tile = {tile_j * TILE, tile_j * TILE + TILE - 1, tile_i * TILE, tile_i * TILE + TILE - 1};
    if (kind == TRIANGLE_PLAIN) {
        tile = box_cut(tile, t.box);
        raster_edges r;
        if (tile.j0 > tile.j1 || tile.i0 > tile.i1 ||
            !raster_edges_at(&t, a.width, a.height, tile.j0, tile.i0, &r))
            return;
        for (int k = 0; k < 3;
             k++) { /* the corner farthest inside decides whether any sample can be covered */
            const long long dj = r.dj[k] * (tile.j1 - tile.j0), di = r.di[k] * (tile.i1 - tile.i0);
            if (r.e[k] + (dj > 0 ? dj : 0) + (di > 0 ? di : 0) < r.least[k])
                return;
        }
        for (int i = tile.i0 + (lane >> 3); i <= tile.i1; i += 4) {
            for (int j = tile.j0 + (lane & 7); j <= tile.j1; j += 8) {
                const long long e0 = r.e[0] + r.dj[0] * (j - tile.j0) + r.di[0] * (i - tile.i0);
                const long long e1 = r.e[1] + r.dj[1] * (j - tile.j0) + r.di[1] * (i - tile.i0);
                const long long e2 = r.e[2] + r.dj[2] * (j - tile.j0) + r.di[2] * (i - tile.i0);
                unsigned depth;
                if (e0 >= r.least[0] && e1 >= r.least[1] && e2 >= r.least[2] &&
                    plain_depth((float)e0, (float)e1, r.inverse_area, r.z2, r.z02, r.z12, t.clipped, &depth))
                    cover_sample(a, image, i, j, depth, face);
            }
        }
    } else if (kind == TRIANGLE_WIDE) {
        raster_wide wide;
        raster_box box;
        if (!raster_wide_setup(&a, p, &wide, &box))
            return;
        tile = box_cut(tile, box);
        if (tile.j0 > tile.j1 || tile.i0 > tile.i1 || !wide_touches(&wide, &a, &tile))
            return;
        for (int i = tile.i0 + (lane >> 3); i <= tile.i1; i += 4) {
            for (int j = tile.j0 + (lane & 7); j <= tile.j1; j += 8) {
                unsigned depth;
                if (wide_sample(&wide, sample_place(j, a.width), sample_place(i, a.height), &depth))
                    cover_sample(a, image, i, j, depth, face);
            }
        }
    }
}

/* The samples that a wide triangle may cover. */
static __device__ __noinline__ raster_box find_wide_box(const rasterize_args &a, int image, long long face)
{
    float p[3][4];
    raster_wide wide;
    raster_box box = {0, -1, 0, -1};
    if (!raster_load(&a, a.image_first + image, face, p) || !raster_wide_setup(&a, p, &wide, &box))
        box.j1 = -1, box.j0 = 0;
    return box;
}

/* A warp hands a triangle's tiles to the queue. A full queue is marked, and raster_large then looks for all large faces
 * itself: drawing one twice changes nothing. */
static __device__ __forceinline__ void queue_tiles(const rasterize_args &a, int image, long long face,
                                                   const raster_box &box)
{
    const int lane = lane_index();
    const int tj0 = box.j0 / TILE, ti0 = box.i0 / TILE, across = box.j1 / TILE - tj0 + 1,
              up = box.i1 / TILE - ti0 + 1;
    const unsigned tiles = (unsigned)across * (unsigned)up;
    unsigned base = 0;
    if (lane == 0) { /* no claim on a full queue: the count must not wrap round */
        const bool full = tiles > a.queue_capacity || *(volatile unsigned *)a.queue_count >= a.queue_capacity;
        base = full ? a.queue_capacity : atomicAdd(a.queue_count, tiles);
        if (base > a.queue_capacity - (full ? 0 : tiles) || full)
            a.queue_count[1] = 1;
    }
    base = __shfl_sync(FULL_WARP, base, 0);
    for (unsigned k = lane; k < tiles && base + k < a.queue_capacity; k += 32)
        reinterpret_cast<uint4 *>(a.queue)[base + k] =
            make_uint4((unsigned)face, (unsigned)image, tj0 + k % across, ti0 + k / across);
}

extern "C" __global__ void __launch_bounds__(COVER_BLOCK, COVER_BLOCKS)
    raster_cover(const __grid_constant__ rasterize_args args)
{
    const int lane = lane_index(), image = blockIdx.y, per_warp = args.faces_per_warp;
    const long long warp = (long long)blockIdx.x * (COVER_BLOCK / 32) + (threadIdx.x >> 5);
    long long first = 0, count = args.face_count;
    if (args.range_mode) {
        first = args.ranges[image][0];
        count = args.ranges[image][1];
    }
    const long long index = warp * per_warp + lane;
    if (warp * per_warp >= count)
        return;
    const long long face = first + index;
    int kind = TRIANGLE_NONE;
    raster_triangle t = {};
    if (lane < per_warp && index < count) {
        float p[3][4];
        if (raster_load(&args, args.image_first + image, face, p))
            kind = raster_setup(&args, p, &t);
    }
    bool medium = false, large = kind == TRIANGLE_WIDE;
    if (kind == TRIANGLE_PLAIN) {
        const int w = t.box.j1 - t.box.j0 + 1, h = t.box.i1 - t.box.i0 + 1;
        if (!fits32(t))
            large = true;
        else if (w * h <= args.small_samples)
            cover_small(args, image, face, t);
        else
            medium = true;
    }
    for (unsigned waiting = __ballot_sync(FULL_WARP, medium); waiting; waiting &= waiting - 1) {
        const int source = __ffs(waiting) - 1;
        raster_triangle s;
#pragma unroll
        for (int k = 0; k < 3; k++) {
            s.x[k] = __shfl_sync(FULL_WARP, t.x[k], source);
            s.y[k] = __shfl_sync(FULL_WARP, t.y[k], source);
            s.z[k] = __shfl_sync(FULL_WARP, t.z[k], source);
        }
        s.clipped = __shfl_sync(FULL_WARP, t.clipped, source);
        s.box.j0 = __shfl_sync(FULL_WARP, t.box.j0, source);
        s.box.j1 = __shfl_sync(FULL_WARP, t.box.j1, source);
        s.box.i0 = __shfl_sync(FULL_WARP, t.box.i0, source);
        s.box.i1 = __shfl_sync(FULL_WARP, t.box.i1, source);
        cover_medium(args, image, first + warp * per_warp + source, s);
        __syncwarp();
    }
    for (unsigned waiting = __ballot_sync(FULL_WARP, large); waiting; waiting &= waiting - 1) {
        const int source = __ffs(waiting) - 1;
        const long long large_face = first + warp * per_warp + source;
        raster_box box;
        if (__shfl_sync(FULL_WARP, kind, source) == TRIANGLE_WIDE) {
            box = find_wide_box(args, image, large_face);
        } else {
            box.j0 = __shfl_sync(FULL_WARP, t.box.j0, source);
            box.j1 = __shfl_sync(FULL_WARP, t.box.j1, source);
            box.i0 = __shfl_sync(FULL_WARP, t.box.i0, source);
            box.i1 = __shfl_sync(FULL_WARP, t.box.i1, source);
        }
        if (box.j0 <= box.j1 && box.i0 <= box.i1)
            queue_tiles(args, image, large_face, box);
        __syncwarp();
    }
}

extern "C" __global__ void __launch_bounds__(LARGE_BLOCK)
    raster_large(const __grid_constant__ rasterize_args args)
{
    const unsigned warps = gridDim.x * (LARGE_BLOCK / 32),
                   warp = blockIdx.x * (LARGE_BLOCK / 32) + (threadIdx.x >> 5);
    const unsigned claimed = args.queue_count[0];
    const unsigned count = claimed < args.queue_capacity ? claimed : args.queue_capacity;
    if (!args.queue_count[1]) {
        for (unsigned k = warp; k < count; k += warps) {
            const uint4 entry = reinterpret_cast<const uint4 *>(args.queue)[k];
            cover_tile(args, (int)entry.y, entry.x, (int)entry.z, (int)entry.w);
            __syncwarp();
        }
        return;
    }
    for (int image = 0; image < args.image_count; image++) {
        const long long first = args.range_mode ? args.ranges[image][0] : 0;
        const long long faces = args.range_mode ? args.ranges[image][1] : args.face_count;
        for (long long k = warp; k < faces; k += warps) {
            float p[3][4];
            raster_triangle t;
            if (!raster_load(&args, args.image_first + image, first + k, p))
                continue;
            const int kind = raster_setup(&args, p, &t);
            if (kind == TRIANGLE_NONE || (kind == TRIANGLE_PLAIN && fits32(t)))
                continue;
            const raster_box box = kind == TRIANGLE_PLAIN ? t.box : find_wide_box(args, image, first + k);
            for (int i = box.i0 / TILE; box.j0 <= box.j1 && i <= box.i1 / TILE; i++)
                for (int j = box.j0 / TILE; j <= box.j1 / TILE; j++)
                    cover_tile(args, image, first + k, j, i);
        }
    }
}

extern "C" __global__ void __launch_bounds__(PIXEL_BLOCK)
    raster_resolve(const __grid_constant__ rasterize_args args)
{
    const block_place at_block = block_place_of(args.width, 32);
    const int j = at_block.column + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y, image = at_block.image;
    if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0 && threadIdx.y == 0)
        args.queue_count[0] = args.queue_count[1] = 0; /* for the next group of images */
    if (j >= args.width || i >= args.height)
        return;
    unsigned long long *at = args.keys + ((long long)image * args.height + i) * args.width + j;
    const unsigned long long key = *at;
    if (args.keep_keys_empty && key != EMPTY_KEY)
        *at = EMPTY_KEY;
    resolve_pixel(&args, args.image_first + image, i, j, key);
}

/* Sets `count` 32-bit words. */
extern "C" __global__ void __launch_bounds__(FLAT_BLOCK) raster_fill(const __grid_constant__ fill_args args)
{
    const long long stride = (long long)gridDim.x * FLAT_BLOCK;
    const uint4 four = make_uint4(args.value, args.value, args.value, args.value);
    const long long quads = args.count / 4;
    for (long long k = (long long)blockIdx.x * FLAT_BLOCK + threadIdx.x; k < quads; k += stride)
        reinterpret_cast<uint4 *>(args.words)[k] = four;
    if (blockIdx.x == 0 && threadIdx.x < args.count - 4 * quads)
        args.words[4 * quads + threadIdx.x] = args.value;
    if (blockIdx.x == 0 && threadIdx.x < 4 && args.zero)
        args.zero[threadIdx.x] = 0;
}

/* ---- sums over the lanes that see the same face ---- */

static __device__ __forceinline__ float warp_sum(float v)
{
#pragma unroll
    for (int step = 16; step; step >>= 1)
        v += __shfl_xor_sync(FULL_WARP, v, step);
    return v;
}

/* Eight sums at once in nine shuffles: lane l ends with the sum of v[l >> 2]. */
static __device__ __forceinline__ float warp_sum8(const float v[8])
{
    const int lane = lane_index();
    float r[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const bool upper = lane & 16;
        r[k] = (upper ? v[k + 4] : v[k]) + __shfl_xor_sync(FULL_WARP, upper ? v[k] : v[k + 4], 16);
    }
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const bool upper = lane & 8;
        r[k] = (upper ? r[k + 2] : r[k]) + __shfl_xor_sync(FULL_WARP, upper ? r[k] : r[k + 2], 8);
    }
    const bool upper = lane & 4;
    float s = (upper ? r[1] : r[0]) + __shfl_xor_sync(FULL_WARP, upper ? r[0] : r[1], 4);
    s += __shfl_xor_sync(FULL_WARP, s, 2);
    return s + __shfl_xor_sync(FULL_WARP, s, 1);
}

/* Adds x, y, z, w to four floats at a 16-byte boundary. */
static __device__ __forceinline__ void add4(float *at, float x, float y, float z, float w)
{
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(at)),
        "f"(x), "f"(y), "f"(z), "f"(w)
        : "memory");
#else
    if (x != 0.0f)
        atomicAdd(at, x);
    if (y != 0.0f)
        atomicAdd(at + 1, y);
    if (z != 0.0f)
        atomicAdd(at + 2, z);
    if (w != 0.0f)
        atomicAdd(at + 3, w);
#endif
}

static __device__ __forceinline__ void add2(float *at, float x, float y)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("red.relaxed.gpu.global.add.v2.f32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(at)),
                 "f"(x), "f"(y)
                 : "memory");
#else
    atomicAdd(at, x);
    atomicAdd(at + 1, y);
#endif
}

/* The pixel of a thread in kernels whose warps are 8 x 4 pixels: neighbours mostly see the same face. */
struct tiled_pixel {
    int i, j, image;
    long long pixel;
    bool inside;
};

static __device__ __forceinline__ tiled_pixel tiled_pixel_of(int width, int height)
{
    const int lane = lane_index(), warp = threadIdx.x >> 5;
    const block_place block = block_place_of(width, 16);
    tiled_pixel p;
    p.j = block.column + (warp & 1) * 8 + (lane & 7);
    p.i = blockIdx.y * 16 + (warp >> 1) * 4 + (lane >> 3);
    p.image = block.image;
    p.inside = p.j < width && p.i < height;
    p.pixel = ((long long)p.image * height + p.i) * width + p.j;
    return p;
}

extern "C" __global__ void __launch_bounds__(TILE_BLOCK, RASTERIZE_BACKWARD_BLOCKS)
    raster_rasterize_backward(const __grid_constant__ rasterize_backward_args args)
{
    const tiled_pixel at = tiled_pixel_of(args.width, args.height);
    int v[3] = {0, 0, 0};
    long long first = 0;
    float g[3][3];
#pragma unroll
    for (int k = 0; k < 3; k++)
        g[k][0] = g[k][1] = g[k][2] = 0.0f;
    const bool some = at.inside && rasterize_gradient(&args, at.image, at.i, at.j, v, &first, g);
    if (args.grad.mode != SINK_SUM) {
        for (int k = 0; some && k < 3; k++) {
            sink_add(&args.grad, 4 * (first + v[k]), g[k][0]);
            sink_add(&args.grad, 4 * (first + v[k]) + 1, g[k][1]);
            sink_add(&args.grad, 4 * (first + v[k]) + 3, g[k][2]);
        }
        return;
    }
    const unsigned any = __ballot_sync(FULL_WARP, some);
    if (!any)
        return;
    /* a face is known by its vertices; background lanes form a group of their own that is left out */
    const unsigned long long name =
        ((unsigned long long)(unsigned)v[0] << 32 | (unsigned)v[1]) * 3 + (unsigned)v[2];
    const unsigned group = __match_any_sync(FULL_WARP, some ? name : ~0ULL) & any;
    const bool alone = some && __popc(group) < GROUP_LEAST;
    if (alone)
        for (int k = 0; k < 3; k++)
            add4(args.grad.sum + 4 * (first + v[k]), g[k][0], g[k][1], 0.0f, g[k][2]);
    for (unsigned waiting = __ballot_sync(FULL_WARP, some && !alone); waiting;) {
        const int source = __ffs(waiting) - 1;
        const unsigned members = __shfl_sync(FULL_WARP, group, source);
        waiting &= ~members;
        const bool member = members >> lane_index() & 1;
        float eight[8];
#pragma unroll
        for (int k = 0; k < 8; k++)
            eight[k] = member ? g[k / 3][k % 3] : 0.0f;
        const float sum = warp_sum8(eight), last = warp_sum(member ? g[2][2] : 0.0f);
        const int lane = lane_index();
        const int value =
            lane & 3 ? 8 : lane >> 2; /* lanes 0, 4, 8 ... have one sum each, lane 1 the ninth */
        const int corner = value / 3, component = value % 3;
        const int v0 = __shfl_sync(FULL_WARP, v[0], source), v1 = __shfl_sync(FULL_WARP, v[1], source),
                  v2 = __shfl_sync(FULL_WARP, v[2], source);
        const long long base = __shfl_sync(FULL_WARP, first, source);
        if ((lane & 3) == 0 || lane == 1) {
            const int vertex = corner == 0 ? v0 : corner == 1 ? v1 : v2;
            atomicAdd(args.grad.sum + 4 * (base + vertex) + (component == 2 ? 3 : component),
                      lane == 1 ? last : sum);
        }
    }
}

/* ---- interpolation ---- */

/* Up to four attributes, a row of them in one load where it is aligned. */
template <int A> static __device__ __forceinline__ void load_row(const float *at, float v[A])
{
    if (A == 2) {
        const float2 r = *reinterpret_cast<const float2 *>(at);
        v[0] = r.x, v[A - 1] = r.y;
    } else if (A == 4) {
        load4(at, v);
    } else {
#pragma unroll
        for (int k = 0; k < A; k++)
            v[k] = at[k];
    }
}

template <int A> static __device__ __forceinline__ void store_row(float *at, const float v[A])
{
    if (A == 2)
        *reinterpret_cast<float2 *>(at) = make_float2(v[0], v[A - 1]);
    else if (A == 4)
        store4(at, v[0], v[A > 1 ? 1 : 0], v[A > 2 ? 2 : 0], v[A - 1]);
    else
#pragma unroll
        for (int k = 0; k < A; k++)
            at[k] = v[k];
}

/* All attributes, and derivatives of all or none. */
template <int A>
static __device__ __forceinline__ void interpolate_few(const interpolate_args &args, long long pixel)
{
    interpolate_at at;
    float out[A];
#pragma unroll
    for (int k = 0; k < A; k++)
        out[k] = 0.0f;
    const bool some = interpolate_find(&args, pixel, &at);
    float a[3][A];
    if (some) {
#pragma unroll
        for (int k = 0; k < 3; k++)
            load_row<A>(at.corner[k], a[k]);
#pragma unroll
        for (int k = 0; k < A; k++)
            out[k] = at.u * a[0][k] + at.v * a[1][k] + at.rest * a[2][k];
    }
    store_row<A>(args.out + pixel * A, out);
    if (!args.selected_count)
        return;
    float da[2 * A];
#pragma unroll
    for (int k = 0; k < 2 * A; k++)
        da[k] = 0.0f;
    if (some) {
        float db[4];
        load4(args.rast_db + 4 * pixel, db);
#pragma unroll
        for (int k = 0; k < A; k++) {
            const float d0 = a[0][k] - a[2][k], d1 = a[1][k] - a[2][k];
            da[2 * k] = db[0] * d0 + db[2] * d1;
            da[2 * k + 1] = db[1] * d0 + db[3] * d1;
        }
    }
    if (A % 2 == 0) {
#pragma unroll
        for (int k = 0; k < A; k += 2)
            store4(args.out_da + pixel * 2 * A + 2 * k, da[2 * k], da[2 * k + 1], da[(2 * k + 2) % (2 * A)],
                   da[(2 * k + 3) % (2 * A)]);
    } else {
#pragma unroll
        for (int k = 0; k < A; k++)
            *reinterpret_cast<float2 *>(args.out_da + pixel * 2 * A + 2 * k) =
                make_float2(da[2 * k], da[2 * k + 1]);
    }
}

extern "C" __global__ void __launch_bounds__(FLAT_BLOCK)
    raster_interpolate(const __grid_constant__ interpolate_args args)
{
    const long long pixel = (long long)blockIdx.x * FLAT_BLOCK + threadIdx.x;
    if (pixel >= args.pixel_count)
        return;
    const bool plain =
        !args.selected && (args.selected_count == 0 || args.selected_count == args.attribute_count);
    switch (plain ? args.attribute_count : 0) {
    case 1:
        interpolate_few<1>(args, pixel);
        break;
    case 2:
        interpolate_few<2>(args, pixel);
        break;
    case 3:
        interpolate_few<3>(args, pixel);
        break;
    case 4:
        interpolate_few<4>(args, pixel);
        break;
    default:
        interpolate_pixel(&args, pixel);
    }
}

extern "C" __global__ void __launch_bounds__(FLAT_BLOCK)
    raster_interpolate_backward(const __grid_constant__ interpolate_args args)
{
    const long long pixel = (long long)blockIdx.x * FLAT_BLOCK + threadIdx.x;
    if (pixel < args.pixel_count)
        interpolate_gradient(&args, pixel);
}

/* Gradients to A attributes (derivatives of all or none), with sums over the lanes that see the same face. */
template <int A>
static __device__ __forceinline__ void interpolate_backward_few(const interpolate_args &args,
                                                                const tiled_pixel &p)
{
    interpolate_at at;
    float share[3][A], gu = 0.0f, gv = 0.0f, gdb[4] = {0, 0, 0, 0};
    bool some = p.inside && interpolate_find(&args, p.pixel, &at), gives = false;
#pragma unroll
    for (int k = 0; k < A; k++)
        share[0][k] = share[1][k] = share[2][k] = 0.0f;
    if (some) {
        float a[3][A], g[A];
#pragma unroll
        for (int k = 0; k < 3; k++)
            load_row<A>(at.corner[k], a[k]);
        load_row<A>(args.grad_out + p.pixel * A, g);
#pragma unroll
        for (int k = 0; k < A; k++) {
            if (g[k] == 0.0f)
                continue;
            gu += g[k] * (a[0][k] - a[2][k]);
            gv += g[k] * (a[1][k] - a[2][k]);
            share[0][k] = at.u * g[k], share[1][k] = at.v * g[k], share[2][k] = at.rest * g[k];
            gives = true;
        }
        if (args.grad_out_da) {
            float db[4];
            load4(args.rast_db + 4 * p.pixel, db);
#pragma unroll
            for (int k = 0; k < A; k++) {
                const float2 d =
                    *reinterpret_cast<const float2 *>(args.grad_out_da + p.pixel * 2 * A + 2 * k);
                if (d.x == 0.0f && d.y == 0.0f)
                    continue;
                const float d0 = a[0][k] - a[2][k], d1 = a[1][k] - a[2][k];
                gdb[0] += d0 * d.x, gdb[1] += d0 * d.y, gdb[2] += d1 * d.x, gdb[3] += d1 * d.y;
                const float du = d.x * db[0] + d.y * db[1], dv = d.x * db[2] + d.y * db[3];
                share[0][k] += du, share[1][k] += dv, share[2][k] -= du + dv;
                gives = true;
            }
        }
    }
    if (p.inside && args.grad_rast)
        store4(args.grad_rast + 4 * p.pixel, gu, gv, 0, 0);
    if (p.inside && args.grad_rast_db)
        store4(args.grad_rast_db + 4 * p.pixel, gdb[0], gdb[1], gdb[2], gdb[3]);
    if (!args.grad.sum)
        return;
    some = some && gives;
    const unsigned any = __ballot_sync(FULL_WARP, some);
    if (!any)
        return;
    const long long o0 = some ? at.offset[0] : -1, o1 = some ? at.offset[1] : -1,
                    o2 = some ? at.offset[2] : -1;
    const unsigned group = __match_any_sync(FULL_WARP, o0) & __match_any_sync(FULL_WARP, o1) &
                           __match_any_sync(FULL_WARP, o2) & any;
    const bool alone = some && __popc(group) < GROUP_LEAST;
    if (alone) {
#pragma unroll
        for (int k = 0; k < A; k++) {
            atomicAdd(args.grad.sum + o0 + k, share[0][k]);
            atomicAdd(args.grad.sum + o1 + k, share[1][k]);
            atomicAdd(args.grad.sum + o2 + k, share[2][k]);
        }
    }
    for (unsigned waiting = __ballot_sync(FULL_WARP, some && !alone); waiting;) {
        const int source = __ffs(waiting) - 1, lane = lane_index();
        const unsigned members = __shfl_sync(FULL_WARP, group, source);
        waiting &= ~members;
        const bool member = members >> lane & 1;
        const long long s0 = __shfl_sync(FULL_WARP, o0, source), s1 = __shfl_sync(FULL_WARP, o1, source),
                        s2 = __shfl_sync(FULL_WARP, o2, source);
#pragma unroll
        for (int batch = 0; batch < 3 * A; batch += 8) {
            float eight[8];
#pragma unroll
            for (int k = 0; k < 8; k++)
                eight[k] = member && batch + k < 3 * A ? share[(batch + k) / A % 3][(batch + k) % A] : 0.0f;
            const float sum = warp_sum8(eight);
            const int value = batch + (lane >> 2), corner = value / A;
            if ((lane & 3) == 0 && value < 3 * A)
                atomicAdd(args.grad.sum + (corner == 0 ? s0 : corner == 1 ? s1 : s2) + value % A, sum);
        }
    }
}

extern "C" __global__ void __launch_bounds__(TILE_BLOCK)
    raster_interpolate_backward_few(const __grid_constant__ interpolate_args args)
{
    const int width = args.width;
    const tiled_pixel p = tiled_pixel_of(width, (int)(args.image_pixels / width));
    switch (args.attribute_count) {
    case 1:
        interpolate_backward_few<1>(args, p);
        break;
    case 2:
        interpolate_backward_few<2>(args, p);
        break;
    case 3:
        interpolate_backward_few<3>(args, p);
        break;
    default:
        interpolate_backward_few<4>(args, p);
    }
}

/* ---- texture ---- */

template <int C> static __device__ __forceinline__ void load_texel(const float *at, float v[C])
{
    if (C == 4) {
        const float4 r = __ldg(reinterpret_cast<const float4 *>(at));
        v[0] = r.x, v[C > 1 ? 1 : 0] = r.y, v[C > 2 ? 2 : 0] = r.z, v[C - 1] = r.w;
    } else if (C == 2) {
        const float2 r = __ldg(reinterpret_cast<const float2 *>(at));
        v[0] = r.x, v[C - 1] = r.y;
    } else {
#pragma unroll
        for (int k = 0; k < C; k++)
            v[k] = __ldg(at + k);
    }
}

/* texture_linear for flat textures whose levels have under 2^31 floats each: 32-bit offsets, no cube. */
struct flat_taps {
    int at[4]; /* first float of each texel, -1: reads 0 */
    float weight[4], fx, fy, slope_x, slope_y;
};

template <int C>
static __device__ __forceinline__ flat_taps flat_taps_at(const texture_args &args, float s, float t, int w,
                                                         int h)
{
    flat_taps taps;
    taps.slope_x = (float)w, taps.slope_y = (float)h;
    if (args.boundary == BOUNDARY_WRAP)
        s = fraction_part(s), t = fraction_part(t);
    float x = add_rn(mul_rn(s, (float)w), -0.5f), y = add_rn(mul_rn(t, (float)h), -0.5f);
    if (args.boundary == BOUNDARY_CLAMP) {
        if (!(x >= 0.0f && x < (float)(w - 1)))
            taps.slope_x = 0.0f;
        if (!(y >= 0.0f && y < (float)(h - 1)))
            taps.slope_y = 0.0f;
        x = fminf(fmaxf(x, 0.0f), (float)(w - 1));
        y = fminf(fmaxf(y, 0.0f), (float)(h - 1));
    }
    x = fminf(fmaxf(x, -2.0f), (float)w + 1.0f);
    y = fminf(fmaxf(y, -2.0f), (float)h + 1.0f);
    const float bx = floorf(x), by = floorf(y);
    taps.fx = x - bx, taps.fy = y - by;
    int x0 = (int)bx, y0 = (int)by, x1 = x0 + 1, y1 = y0 + 1;
    taps.weight[0] = (1.0f - taps.fx) * (1.0f - taps.fy);
    taps.weight[1] = taps.fx * (1.0f - taps.fy);
    taps.weight[2] = (1.0f - taps.fx) * taps.fy;
    taps.weight[3] = taps.fx * taps.fy;
    bool left = true, right = true, lower = true, upper = true;
    if (args.boundary == BOUNDARY_WRAP) { /* x0 is in -1 .. w - 1 */
        x0 = x0 < 0 ? w - 1 : x0 >= w ? 0 : x0, y0 = y0 < 0 ? h - 1 : y0 >= h ? 0 : y0;
        x1 = x1 >= w ? 0 : x1, y1 = y1 >= h ? 0 : y1;
    } else if (args.boundary == BOUNDARY_CLAMP) {
        x1 = min(x1, w - 1), y1 = min(y1, h - 1);
    } else {
        left = (unsigned)x0 < (unsigned)w, right = (unsigned)x1 < (unsigned)w;
        lower = (unsigned)y0 < (unsigned)h, upper = (unsigned)y1 < (unsigned)h;
    }
    const int row0 = y0 * w, row1 = y1 * w;
    taps.at[0] = left && lower ? (row0 + x0) * C : -1;
    taps.at[1] = right && lower ? (row0 + x1) * C : -1;
    taps.at[2] = left && upper ? (row1 + x0) * C : -1;
    taps.at[3] = right && upper ? (row1 + x1) * C : -1;
    return taps;
}

template <int C>
static __device__ __forceinline__ void fetch_taps(const flat_taps &taps, const float *texels, float tap[4][C])
{
#pragma unroll
    for (int k = 0; k < 4; k++) {
#pragma unroll
        for (int c = 0; c < C; c++)
            tap[k][c] = 0.0f;
        if (taps.at[k] >= 0)
            load_texel<C>(texels + taps.at[k], tap[k]);
    }
}

template <int C>
static __device__ __forceinline__ float tap_sum(const flat_taps &taps, const float tap[4][C], int c)
{
    return taps.weight[0] * tap[0][c] + taps.weight[1] * tap[1][c] + taps.weight[2] * tap[2][c] +
           taps.weight[3] * tap[3][c];
}

/* The image's texels in a level. */
template <int C>
static __device__ __forceinline__ long long flat_image(const texture_args &args, int image, int level)
{
    return args.shared ? 0 : (long long)image * args.level[level].width * args.level[level].height * C;
}

template <int C>
static __device__ __forceinline__ void texture_few(const texture_args &args, const tiled_pixel &pixel)
{
    const float2 uv = *reinterpret_cast<const float2 *>(args.uv + 2 * pixel.pixel);
    const texture_place p = {uv.x, uv.y, 0, 0.0f, 0.0f, 0.0f};
    float tap[4][C], out[C];
#pragma unroll
    for (int c = 0; c < C; c++)
        out[c] = 0.0f;
    if (is_finite(uv.x) && is_finite(uv.y)) {
        texture_lod lod = {0, 0, 0.0f, {0, 0, 0, 0}, 0.0f};
        if (args.filter >= FILTER_MIP_NEAREST)
            lod = texture_lod_of(&args, &p, pixel.pixel, 0);
        const texture_level &l0 = args.level[lod.level0];
        const flat_taps t0 = flat_taps_at<C>(args, uv.x, uv.y, l0.width, l0.height);
        fetch_taps<C>(t0, l0.texels + flat_image<C>(args, pixel.image, lod.level0), tap);
#pragma unroll
        for (int c = 0; c < C; c++)
            out[c] = tap_sum<C>(t0, tap, c);
        if (lod.level1 != lod.level0) {
            const texture_level &l1 = args.level[lod.level1];
            const flat_taps t1 = flat_taps_at<C>(args, uv.x, uv.y, l1.width, l1.height);
            fetch_taps<C>(t1, l1.texels + flat_image<C>(args, pixel.image, lod.level1), tap);
#pragma unroll
            for (int c = 0; c < C; c++)
                out[c] += lod.fraction * (tap_sum<C>(t1, tap, c) - out[c]);
        }
    }
    store_row<C>(args.out + pixel.pixel * C, out);
}

extern "C" __global__ void __launch_bounds__(FLAT_BLOCK)
    raster_texture(const __grid_constant__ texture_args args)
{
    const long long pixel = (long long)blockIdx.x * FLAT_BLOCK + threadIdx.x;
    if (pixel < args.pixel_count)
        texture_pixel(&args, pixel);
}

extern "C" __global__ void __launch_bounds__(TILE_BLOCK, TEXTURE_BLOCKS)
    raster_texture_flat(const __grid_constant__ texture_args args)
{
    const tiled_pixel at = tiled_pixel_of(args.width, (int)(args.image_pixels / args.width));
    if (!at.inside)
        return;
    switch (args.channels) {
    case 1:
        texture_few<1>(args, at);
        break;
    case 2:
        texture_few<2>(args, at);
        break;
    case 3:
        texture_few<3>(args, at);
        break;
    case 4:
        texture_few<4>(args, at);
        break;
    }
}

/* Adds C channels to a texel's gradient. */
template <int C> static __device__ __forceinline__ void add_texel(float *at, int stride, const float v[C])
{
    if (C == 1)
        atomicAdd(at, v[0]);
    else if (C == 2)
        add2(at, v[0], v[C - 1]);
    else if (C == 4)
        add4(at, v[0], v[C > 1 ? 1 : 0], v[C > 2 ? 2 : 0], v[C - 1]);
    else if (stride == 4)
        add4(at, v[0], v[C > 1 ? 1 : 0], v[C - 1], 0.0f);
    else
#pragma unroll
        for (int c = 0; c < C; c++)
            atomicAdd(at + c, v[c]);
}

/* Adds a level's share of g to the texels, and its slopes and value to what goes to uv and level. All lanes of the warp
 * come here; `live` are those that have a pixel. Neighbouring pixels mostly share texels: a lane hands its right two on
 * to the lane on its right, and its upper two to the lane above, where those have the same ones as left or lower two.
 * That leaves one addition a pixel instead of four where texels and pixels are of a size. */
template <int C>
static __device__ __forceinline__ float taps_backward(const texture_args &args, const flat_taps &taps,
                                                      int level, long long image, const float g[C],
                                                      float share, bool live, float *gs, float *gt)
{
    const texture_level &l = args.level[level];
    float tap[4][C], value = 0.0f;
    if (live) {
        fetch_taps<C>(taps, l.texels + image, tap);
#pragma unroll
        for (int c = 0; c < C; c++) {
            value += g[c] * tap_sum<C>(taps, tap, c);
            *gs += g[c] * share * taps.slope_x *
                   ((1.0f - taps.fy) * (tap[1][c] - tap[0][c]) + taps.fy * (tap[3][c] - tap[2][c]));
            *gt += g[c] * share * taps.slope_y *
                   ((1.0f - taps.fx) * (tap[2][c] - tap[0][c]) + taps.fx * (tap[3][c] - tap[1][c]));
        }
    }
    if (!__any_sync(FULL_WARP,
                    live && l.grad.sum)) /* lanes can be at different levels, some without a gradient */
        return value;
    const int lane = lane_index();
    live = live && l.grad.sum;
    float sum[4][C];
    int at[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        at[k] = live ? taps.at[k] : -1;
#pragma unroll
        for (int c = 0; c < C; c++)
            sum[k][c] = live ? share * taps.weight[k] * g[c] : 0.0f;
    }
    const int mine = live ? level : -1;
    const unsigned lives = __ballot_sync(FULL_WARP, live);
    const int source = __ffs(lives) - 1;
    const int first0 = __shfl_sync(FULL_WARP, at[0], source), first3 = __shfl_sync(FULL_WARP, at[3], source);
    const int first_level = __shfl_sync(FULL_WARP, mine, source);
    const bool same = at[0] == first0 && at[3] == first3 && mine == first_level;
    if (__all_sync(FULL_WARP,
                   same ||
                       !live)) { /* background, or a texture seen large: or all would wait for one address */
#pragma unroll
        for (int k = 0; k < 4; k++) {
#pragma unroll
            for (int c = 0; c < C; c++)
                sum[k][c] = warp_sum(sum[k][c]);
            if (lane == source && at[k] >= 0)
                add_texel<C>(l.grad.sum + (image + at[k]) / C * args.grad_stride, args.grad_stride, sum[k]);
        }
        return value;
    }
#pragma unroll
    for (int axis = 0; axis < 2; axis++) { /* right, then up */
        const int distance = axis ? 8 : 1, far0 = axis ? 2 : 1, near0 = 0, far1 = 3, near1 = axis ? 1 : 2;
        const bool edge = axis ? lane >= 24 : (lane & 7) == 7;
        const int next0 = __shfl_down_sync(FULL_WARP, at[near0], distance);
        const int next1 = __shfl_down_sync(FULL_WARP, at[near1], distance);
        const int next_level = __shfl_down_sync(FULL_WARP, mine, distance);
        const bool gives = !edge && mine >= 0 && next_level == mine && next0 == at[far0] && next1 == at[far1];
        const bool takes = __shfl_up_sync(FULL_WARP, gives, distance) && (axis ? lane >= 8 : (lane & 7) != 0);
#pragma unroll
        for (int c = 0; c < C; c++) {
            const float from0 = __shfl_up_sync(FULL_WARP, sum[far0][c], distance);
            const float from1 = __shfl_up_sync(FULL_WARP, sum[far1][c], distance);
            if (takes)
                sum[near0][c] += from0, sum[near1][c] += from1;
        }
        if (gives)
            at[far0] = at[far1] = -1;
    }
#pragma unroll
    for (int k = 0; k < 4; k++)
        if (at[k] >= 0)
            add_texel<C>(l.grad.sum + (image + at[k]) / C * args.grad_stride, args.grad_stride, sum[k]);
    return value;
}

template <int C>
static __device__ __forceinline__ void texture_backward_few(const texture_args &args,
                                                            const tiled_pixel &pixel)
{
    float g[C];
    texture_place p = {0.0f, 0.0f, 0, 0.0f, 0.0f, 0.0f};
    bool live = false;
    if (pixel.inside) {
        load_row<C>(args.grad_out + pixel.pixel * C, g);
#pragma unroll
        for (int c = 0; c < C; c++)
            live |= g[c] != 0.0f;
        live = live && texture_find(&args, pixel.pixel, 0, &p);
    }
    texture_lod lod = {0, 0, 0.0f, {0, 0, 0, 0}, 0.0f};
    float gs = 0.0f, gt = 0.0f, glevel = 0.0f;
    if (__any_sync(FULL_WARP, live)) {
        if (live && args.filter >= FILTER_MIP_NEAREST)
            lod = texture_lod_of(&args, &p, pixel.pixel, 0);
        const flat_taps t0 =
            flat_taps_at<C>(args, p.s, p.t, args.level[lod.level0].width, args.level[lod.level0].height);
        const float v0 = taps_backward<C>(args, t0, lod.level0, flat_image<C>(args, pixel.image, lod.level0),
                                          g, 1.0f - lod.fraction, live, &gs, &gt);
        const bool two = live && lod.level1 != lod.level0;
        if (__any_sync(FULL_WARP, two)) {
            const flat_taps t1 =
                flat_taps_at<C>(args, p.s, p.t, args.level[lod.level1].width, args.level[lod.level1].height);
            const float v1 =
                taps_backward<C>(args, t1, lod.level1, flat_image<C>(args, pixel.image, lod.level1), g,
                                 lod.fraction, two, &gs, &gt);
            glevel = two ? v1 - v0 : 0.0f;
        }
    }
    if (!pixel.inside)
        return;
    if (!live)
        lod.footprint = 0.0f;
    texture_gradient_finish(&args, &p, &lod, pixel.pixel, gs, gt, glevel, 0);
}

extern "C" __global__ void __launch_bounds__(FLAT_BLOCK)
    raster_texture_backward(const __grid_constant__ texture_args args)
{
    const long long pixel = (long long)blockIdx.x * FLAT_BLOCK + threadIdx.x;
    if (pixel < args.pixel_count)
        texture_gradient(&args, pixel);
}

extern "C" __global__ void __launch_bounds__(TILE_BLOCK, TEXTURE_BACKWARD_BLOCKS)
    raster_texture_backward_flat(const __grid_constant__ texture_args args)
{
    const tiled_pixel at = tiled_pixel_of(args.width, (int)(args.image_pixels / args.width));
    switch (args.channels) {
    case 1:
        texture_backward_few<1>(args, at);
        break;
    case 2:
        texture_backward_few<2>(args, at);
        break;
    case 3:
        texture_backward_few<3>(args, at);
        break;
    case 4:
        texture_backward_few<4>(args, at);
        break;
    }
}

/* Up to six mip levels at once: a block takes 64 x 64 texels of the finest and keeps what lies between in shared memory. */
extern "C" __global__ void __launch_bounds__(MIP_BLOCK)
    raster_mips(const __grid_constant__ mip_stack_args args)
{
    __shared__ float tile[2][32 * 32 * MIP_CHANNELS];
    const int c0 = (int)(blockIdx.z % args.channel_groups) * MIP_CHANNELS;
    const long long image = blockIdx.z / args.channel_groups;
    const int channels = args.channels - c0 < MIP_CHANNELS ? args.channels - c0 : MIP_CHANNELS;
    int w = args.width, h = args.height; /* of the finer level */
    for (int k = 0; k < args.level_count; k++) {
        const int cw = w > 1 ? w / 2 : 1, ch = h > 1 ? h / 2 : 1, side = 32 >> k;
        const int x_first = blockIdx.x * side, y_first = blockIdx.y * side;
        float *coarser = tile[k & 1];
        const float *finer = tile[(k & 1) ^ 1];
        for (int n = threadIdx.x; n < side * side; n += MIP_BLOCK) {
            const int x = n & (side - 1), y = n >> (5 - k);
            if (x_first + x >= cw || y_first + y >= ch)
                continue;
            const int x0 = w > 1 ? 2 * x : 0, x1 = w > 1 ? x0 + 1 : 0, y0 = h > 1 ? 2 * y : 0,
                      y1 = h > 1 ? y0 + 1 : 0;
            const float *corner[4];
            if (k == 0) {
                const int bx = blockIdx.x * 64, by = blockIdx.y * 64;
                const float *row0 = args.finest + ((image * h + by + y0) * w + bx) * args.channels + c0;
                const float *row1 = args.finest + ((image * h + by + y1) * w + bx) * args.channels + c0;
                corner[0] = row0 + x0 * args.channels, corner[1] = row0 + x1 * args.channels;
                corner[2] = row1 + x0 * args.channels, corner[3] = row1 + x1 * args.channels;
            } else {
                const int stride = 2 * side;
                corner[0] = finer + (y0 * stride + x0) * MIP_CHANNELS,
                corner[1] = finer + (y0 * stride + x1) * MIP_CHANNELS;
                corner[2] = finer + (y1 * stride + x0) * MIP_CHANNELS,
                corner[3] = finer + (y1 * stride + x1) * MIP_CHANNELS;
            }
            float *out = args.level[k] + ((image * ch + y_first + y) * cw + x_first + x) * args.channels + c0;
#pragma unroll
            for (int c = 0; c < MIP_CHANNELS; c++) {
                if (c >= channels)
                    break;
                const float mean = 0.25f * ((corner[0][c] + corner[1][c]) + (corner[2][c] + corner[3][c]));
                coarser[n * MIP_CHANNELS + c] = mean;
                out[c] = mean;
            }
        }
        __syncthreads();
        w = cw, h = ch;
    }
}

/* Gradients of all levels into the base's: a thread takes 2 x 2 texels, whose coarser texels are the same. */
extern "C" __global__ void __launch_bounds__(FLAT_BLOCK)
    raster_mips_backward(const __grid_constant__ mip_fold_args args)
{
    const int cw = (args.width + 1) / 2, ch = (args.height + 1) / 2;
    const long long n = (long long)blockIdx.x * FLAT_BLOCK + threadIdx.x;
    if (n >= args.images * cw * ch)
        return;
    const long long row = divide(n, cw), image = divide(row, ch);
    const int x = (int)(n - row * cw), y = (int)(row - image * ch);
    for (int c = 0; c < args.channels; c += 4) {
        float shared[4] = {0, 0, 0, 0};
        float share = 1.0f;
        int w = args.width, h = args.height;
        for (int k = 0; k < args.level_count; k++) {
            share *= (w > 1 ? 0.5f : 1.0f) * (h > 1 ? 0.5f : 1.0f);
            w = w > 1 ? w / 2 : 1, h = h > 1 ? h / 2 : 1;
            const int kx = x >> k, ky = y >> k; /* a side that has reached 1 has index 0 from there on */
            const float *from =
                args.level[k] +
                ((image * h + (ky < h ? ky : h - 1)) * w + (kx < w ? kx : w - 1)) * args.stride + c;
            if (args.stride == 4) {
                float v[4];
                load4(from, v);
                shared[0] += share * v[0], shared[1] += share * v[1], shared[2] += share * v[2],
                    shared[3] += share * v[3];
            } else {
                for (int m = 0; m < 4 && c + m < args.channels; m++)
                    shared[m] += share * from[m];
            }
        }
        if (args.channels == 3 && args.stride == 4 &&
            args.width % 2 == 0) { /* two texels' six floats in three stores */
            for (int by = 2 * y; by < 2 * y + 2 && by < args.height; by++) {
                const long long texel = (image * args.height + by) * args.width + 2 * x;
                float p[4], q[4];
                load4(args.base + texel * 4, p);
                load4(args.base + texel * 4 + 4, q);
                float2 *out = reinterpret_cast<float2 *>(args.out + texel * 3);
                out[0] = make_float2(p[0] + shared[0], p[1] + shared[1]);
                out[1] = make_float2(p[2] + shared[2], q[0] + shared[0]);
                out[2] = make_float2(q[1] + shared[1], q[2] + shared[2]);
            }
            return;
        }
        for (int q = 0; q < 4; q++) {
            const int bx = 2 * x + (q & 1), by = 2 * y + (q >> 1);
            if (bx >= args.width || by >= args.height)
                continue;
            const long long texel = (image * args.height + by) * args.width + bx;
            for (int m = 0; m < 4 && c + m < args.channels; m++)
                args.out[texel * args.channels + c + m] = args.base[texel * args.stride + c + m] + shared[m];
        }
    }
}

/* ---- antialiasing ---- */

/* A block has 32 x 32 pixels, four a thread. Few pairs have different ids, and examining one waits for memory five times
 * over; the block lists them first, so that its threads wait together, once. */
enum { PAIR_SIDE = 32 };

struct pair_tile {
    float id[PAIR_SIDE + 2][PAIR_SIDE + 3]; /* rows and columns -1 .. 32 of the block's pixels */
    float right[PAIR_SIDE][PAIR_SIDE + 1];  /* blend of (row, column - 1) and (row, column) */
    float upper[PAIR_SIDE + 1][PAIR_SIDE];  /* blend of (row - 1, column) and (row, column) */
    unsigned short list[2 * PAIR_SIDE *
                        (PAIR_SIDE + 1)]; /* (row + 1) << 8 | (column + 1) << 1 | vertical, of the first */
    unsigned listed;
};

static __device__ __forceinline__ void list_pair(pair_tile &tile, int row, int column, int vertical)
{
    const float id = tile.id[row + 1][column + 1];
    const float other = tile.id[row + 1 + vertical][column + 2 - vertical];
    if (vertical)
        tile.upper[row + 1][column] = 0.0f;
    else
        tile.right[row][column + 1] = 0.0f;
    if (id != other && id >= 0.0f && other >= 0.0f)
        tile.list[atomicAdd(&tile.listed, 1u)] =
            (unsigned short)((unsigned)(row + 1) << 8 | (unsigned)(column + 1) << 1 | (unsigned)vertical);
}

/* The blends around every pixel of the block. With `gradients`, pairs that the block owns add theirs to the positions. */
static __device__ __forceinline__ void examine_tile(const antialias_args &a, pair_tile &tile,
                                                    const block_place &block, bool gradients)
{
    const int tx = threadIdx.x, ty = threadIdx.y, n = ty * 32 + tx;
    const int image = block.image, j_first = block.column, i_first = blockIdx.y * PAIR_SIDE;
    const long long base = (long long)image * a.height * a.width;
    if (n == 0)
        tile.listed = 0;
    for (int k = n; k < (PAIR_SIDE + 2) * (PAIR_SIDE + 2); k += PIXEL_BLOCK) {
        const int row = k / (PAIR_SIDE + 2), column = k - row * (PAIR_SIDE + 2), i = i_first + row - 1,
                  j = j_first + column - 1;
        const bool inside = i >= 0 && i < a.height && j >= 0 && j < a.width;
        tile.id[row][column] = inside ? a.rast[4 * (base + (long long)i * a.width + j) + 3] : -1.0f;
    }
    __syncthreads();
#pragma unroll
    for (int row = ty; row < PAIR_SIDE; row += PIXEL_BLOCK / 32) {
        list_pair(tile, row, tx, 0);
        list_pair(tile, row, tx, 1);
    }
    if (n < PAIR_SIDE)
        list_pair(tile, n, -1, 0);
    else if (n < 2 * PAIR_SIDE)
        list_pair(tile, -1, n - PAIR_SIDE, 1);
    __syncthreads();
    const unsigned listed = tile.listed;
    for (unsigned k = n; k < listed; k += PIXEL_BLOCK) {
        const unsigned entry = tile.list[k];
        const int row = (int)(entry >> 8) - 1, column = (int)(entry >> 1 & 127) - 1,
                  vertical = (int)(entry & 1);
        const int i = i_first + row, j = j_first + column;
        const long long first = base + (long long)i * a.width + j, second = first + (vertical ? a.width : 1);
        const antialias_pair pair = antialias_examine(&a, first, second, i, j, image, vertical);
        if (vertical)
            tile.upper[row + 1][column] = pair.blend;
        else
            tile.right[row][column + 1] = pair.blend;
        if (gradients && row >= 0 && column >= 0)
            antialias_position_gradient(&a, &pair, first, second, image, vertical);
    }
    __syncthreads();
}

static __device__ __forceinline__ antialias_shares shares_at(const pair_tile &tile, int row, int column)
{
    const antialias_shares shares = {tile.right[row][column], tile.right[row][column + 1],
                                     tile.upper[row][column], tile.upper[row + 1][column]};
    return shares;
}

static __device__ __forceinline__ float blend_one(const float *from, int channels, long long row,
                                                  antialias_shares shares, bool gradient)
{
    return gradient ? antialias_blend_gradient(from, channels, row, shares)
                    : antialias_blend(from, channels, row, shares);
}

/* Four pixels of a row a thread, as C vectors of 16 bytes: most of them are copied as they are. The width is a multiple of
 * four. */
template <int C>
static __device__ __forceinline__ void blend_quads(const antialias_args &a, const pair_tile &tile,
                                                   const block_place &block, const float *from, float *to,
                                                   bool gradient)
{
    const int n = threadIdx.y * 32 + threadIdx.x, row = n >> 3, column = (n & 7) * 4;
    const int i = blockIdx.y * PAIR_SIDE + row, j = block.column + column;
    if (i >= a.height || j >= a.width)
        return;
    const long long floats = (long long)a.width * C;
    const long long start = (((long long)block.image * a.height + i) * a.width + j) * C;
    float v[4 * C];
#pragma unroll
    for (int k = 0; k < C; k++)
        load4(from + start + 4 * k, v + 4 * k);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const antialias_shares shares = shares_at(tile, row, column + k);
        if (shares.left != 0.0f || shares.right != 0.0f || shares.lower != 0.0f || shares.upper != 0.0f)
#pragma unroll
            for (int c = 0; c < C; c++)
                v[k * C + c] = blend_one(from + start + k * C + c, C, floats, shares, gradient);
    }
#pragma unroll
    for (int k = 0; k < C; k++)
        store4(to + start + 4 * k, v[4 * k], v[4 * k + 1], v[4 * k + 2], v[4 * k + 3]);
}

static __device__ __forceinline__ void blend_tile(const antialias_args &a, const pair_tile &tile,
                                                  const block_place &block, const float *from, float *to,
                                                  bool gradient)
{
    switch (a.width % 4 ? 0 : a.channels) {
    case 1:
        blend_quads<1>(a, tile, block, from, to, gradient);
        return;
    case 2:
        blend_quads<2>(a, tile, block, from, to, gradient);
        return;
    case 3:
        blend_quads<3>(a, tile, block, from, to, gradient);
        return;
    case 4:
        blend_quads<4>(a, tile, block, from, to, gradient);
        return;
    }
    const int j = block.column + threadIdx.x;
    for (int row = threadIdx.y; row < PAIR_SIDE && j < a.width; row += PIXEL_BLOCK / 32) {
        const int i = blockIdx.y * PAIR_SIDE + row;
        if (i >= a.height)
            return;
        const antialias_shares shares = shares_at(tile, row, threadIdx.x);
        const long long start = (((long long)block.image * a.height + i) * a.width + j) * a.channels;
        for (int c = 0; c < a.channels; c++)
            to[start + c] =
                blend_one(from + start + c, a.channels, (long long)a.width * a.channels, shares, gradient);
    }
}

extern "C" __global__ void __launch_bounds__(PIXEL_BLOCK, 4)
    raster_antialias(const __grid_constant__ antialias_args args)
{
    __shared__ pair_tile tile;
    const block_place block = block_place_of(args.width, PAIR_SIDE);
    examine_tile(args, tile, block, false);
    blend_tile(args, tile, block, args.color, args.out, false);
}

extern "C" __global__ void __launch_bounds__(PIXEL_BLOCK, 4)
    raster_antialias_backward(const __grid_constant__ antialias_args args)
{
    __shared__ pair_tile tile;
    const block_place block = block_place_of(args.width, PAIR_SIDE);
    examine_tile(args, tile, block, args.grad.sum != 0);
    if (args.grad_color)
        blend_tile(args, tile, block, args.grad_out, args.grad_color, true);
}

extern "C" __global__ void __launch_bounds__(FLAT_BLOCK)
    raster_topology_enter(const __grid_constant__ topology_args args)
{
    const long long h = (long long)blockIdx.x * FLAT_BLOCK + threadIdx.x;
    if (h < 3 * args.face_count)
        topology_enter(&args, h);
}

extern "C" __global__ void __launch_bounds__(FLAT_BLOCK)
    raster_topology_close(const __grid_constant__ topology_args args)
{
    const long long h = (long long)blockIdx.x * FLAT_BLOCK + threadIdx.x;
    if (h < 3 * args.face_count)
        topology_close(&args, h);
}

extern "C" __global__ void __launch_bounds__(FLAT_BLOCK)
    raster_weld_enter(const __grid_constant__ weld_args args)
{
    const long long v = (long long)blockIdx.x * FLAT_BLOCK + threadIdx.x;
    if (v < args.vertex_count)
        weld_enter(&args, v);
}

extern "C" __global__ void __launch_bounds__(FLAT_BLOCK)
    raster_weld_read(const __grid_constant__ weld_args args)
{
    const long long v = (long long)blockIdx.x * FLAT_BLOCK + threadIdx.x;
    if (v < args.vertex_count)
        weld_read(&args, v);
}

/* ---- deterministic sums ---- */

extern "C" __global__ void __launch_bounds__(FLAT_BLOCK)
    raster_sink_finish(const __grid_constant__ sink_args args)
{
    const long long k = (long long)blockIdx.x * FLAT_BLOCK + threadIdx.x;
    if (k < args.count)
        sink_finish(&args.grad, k);
}
