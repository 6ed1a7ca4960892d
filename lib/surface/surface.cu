/* surface/surface.cu: the kernels of marching cubes. Floor: one read of the volume and one write of the mesh.
 *
 *   surface_classify  reads the volume once, a warp a word: 32 loads side by side, one ballot. Bound by memory.
 *   surface_count     a thread a word of the bitmap (1/32 of the volume's bytes, mostly in L2): popcounts and one
 *                     table entry per cell that the surface passes; counts before each word within its block.
 *   surface_scan      one thread block: counts before each block, and the totals that the host waits for.
 *   surface_emit      a thread block a block of words; most have nothing and leave at once. Work is spread by vertex
 *                     and by cell, not by word, since a word may have none or 32. Only here the volume is read again,
 *                     at the ends of crossed edges.
 *   surface_gradient  a warp a word; each sample gathers from its at most six edges.
 */
#include "surface_math.h"

enum { EMIT_THREADS = 256, SCAN_THREADS = 1024, CLASSIFY_WORDS = 8 };

/* Exclusive sum over the thread block; *total is the whole. sums has room for one entry a warp. */
template <class T> __device__ static T block_scan(T value, T *sums, T *total)
{
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    T sum = value;
    for (int step = 1; step < 32; step <<= 1) {
        const T other = __shfl_up_sync(0xFFFFFFFFu, sum, step);
        sum += lane >= step ? other : 0;
    }
    if (lane == 31)
        sums[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        T s = lane < warps ? sums[lane] : 0;
        for (int step = 1; step < 32; step <<= 1) {
            const T other = __shfl_up_sync(0xFFFFFFFFu, s, step);
            s += lane >= step ? other : 0;
        }
        sums[lane] = s;
    }
    __syncthreads();
    *total = sums[warps - 1];
    const T before = (warp ? sums[warp - 1] : 0) + sum - value;
    __syncthreads(); /* sums may be used again at once */
    return before;
}

extern "C" __global__ void __launch_bounds__(256) surface_classify(const __grid_constant__ struct surface_args a)
{
    const int lane = threadIdx.x & 31;
    const long long warp = ((long long)blockIdx.x * blockDim.x + threadIdx.x) >> 5;
    const long long first = warp * CLASSIFY_WORDS;
    if (first >= a.word_count)
        return;
    float value[CLASSIFY_WORDS];
    bool exists[CLASSIFY_WORDS];
    if (!a.pad && !a.half && a.width % 32 == 0) { /* words and samples run side by side through the whole volume */
        const float *volume = (const float *)a.volume + 32 * first + lane;
#pragma unroll
        for (int k = 0; k < CLASSIFY_WORDS; k++) {
            exists[k] = first + k < a.word_count;
            value[k] = exists[k] ? __ldcs(volume + 32 * k) : 0.0f;
        }
    } else {
        long long row = first / a.words;
        int word = (int)(first - row * a.words);
#pragma unroll
        for (int k = 0; k < CLASSIFY_WORDS; k++) {
            const int x = 32 * word + lane;
            exists[k] = first + k < a.word_count && x < a.width;
            value[k] = !exists[k] ? 0.0f
                       : a.pad    ? surface_sample(&a, x, (int)(row % a.height), (int)(row / a.height))
                                  : surface_load(&a, row * a.width + x);
            if (++word == a.words) {
                word = 0;
                row++;
            }
        }
    }
    unsigned mine = 0;
#pragma unroll
    for (int k = 0; k < CLASSIFY_WORDS; k++) {
        const unsigned bits = __ballot_sync(0xFFFFFFFFu, exists[k] && surface_is_below(&a, value[k]));
        mine = lane == k ? bits : mine;
    }
    if (lane < CLASSIFY_WORDS && first + lane < a.word_count)
        a.bits[first + lane] = mine;
}

struct place { /* of a word */
    int y, z, word;
};

__device__ static place word_place(const struct surface_args &a, long long index)
{
    const unsigned row = (unsigned)(index / a.words); /* rows are fewer than 2^32: surface.c checks */
    place p;
    p.word = (int)(index - (long long)row * a.words);
    p.z = (int)(row / (unsigned)a.height);
    p.y = (int)(row - (unsigned)p.z * (unsigned)a.height);
    return p;
}

extern "C" __global__ void __launch_bounds__(SURFACE_BLOCK) surface_count(const __grid_constant__ struct surface_args a)
{
    __shared__ unsigned sums[32];
    const long long index = (long long)blockIdx.x * SURFACE_BLOCK + threadIdx.x;
    unsigned count = 0;
    if (index < a.word_count) {
        const place p = word_place(a, index);
        const struct surface_edges edges = surface_word_edges(&a, p.y, p.z, p.word);
        struct surface_rows rows;
        count = surface_edge_count(&edges);
        for (unsigned cells = surface_word_cells(&a, p.y, p.z, p.word, &rows); cells; cells &= cells - 1)
            count += (unsigned)(surface_table[surface_case(&rows, __ffs((int)cells) - 1)] >> 60) << 16;
    }
    unsigned total;
    const unsigned before = block_scan(count, sums, &total);
    if (index < a.word_count)
        a.local[index] = before;
    if (threadIdx.x == 0)
        a.block_counts[blockIdx.x] = total;
}

extern "C" __global__ void __launch_bounds__(SCAN_THREADS) surface_scan(const __grid_constant__ struct surface_args a)
{
    __shared__ long long sums[32];
    const long long each = (a.block_count + SCAN_THREADS - 1) / SCAN_THREADS;
    const long long first = threadIdx.x * each, end = first + each < a.block_count ? first + each : a.block_count;
    long long vertices = 0, faces = 0, all_vertices, all_faces;
    for (long long i = first; i < end; i++) {
        const unsigned count = a.block_counts[i];
        vertices += count & 0xFFFFu;
        faces += count >> 16;
    }
    vertices = block_scan(vertices, sums, &all_vertices);
    faces = block_scan(faces, sums, &all_faces);
    for (long long i = first; i < end; i++) {
        const unsigned count = a.block_counts[i];
        a.block_vertices[i] = vertices;
        a.block_faces[i] = faces;
        vertices += count & 0xFFFFu;
        faces += count >> 16;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        const long long plane = (long long)a.height * a.words;
        a.totals[0] = all_vertices;
        a.totals[1] = all_faces;
        a.totals[2] = a.own_first ? surface_vertex_base(&a, a.own_first * plane) : 0;
        a.totals[3] = a.next_plane ? surface_vertex_base(&a, a.next_plane * plane) : 0;
    }
}

/* The last entry of before[SURFACE_BLOCK] that is at most k, where later equal entries win: the word that holds item k. */
__device__ static int find_word(const unsigned short *before, unsigned k)
{
    int word = 0;
#pragma unroll
    for (int step = SURFACE_BLOCK / 2; step; step >>= 1)
        word += before[word + step] <= k ? step : 0;
    return word;
}

extern "C" __global__ void __launch_bounds__(EMIT_THREADS) surface_emit(const __grid_constant__ struct surface_args a)
{
    const unsigned counts = a.block_counts[blockIdx.x];
    if (!counts)
        return;
    __shared__ unsigned edges_x[SURFACE_BLOCK], edges_y[SURFACE_BLOCK], edges_z[SURFACE_BLOCK], cells[SURFACE_BLOCK];
    __shared__ unsigned short vertices_before[SURFACE_BLOCK], cells_before[SURFACE_BLOCK];
    __shared__ unsigned sums[32];
    const int me = threadIdx.x;
    const long long block = (long long)blockIdx.x * SURFACE_BLOCK, index = block + me;
    struct surface_edges e = {0, 0, 0};
    unsigned passed = 0;
    if (index < a.word_count) {
        struct surface_rows rows;
        const place p = word_place(a, index);
        e = surface_word_edges(&a, p.y, p.z, p.word);
        passed = surface_word_cells(&a, p.y, p.z, p.word, &rows);
    }
    edges_x[me] = e.x;
    edges_y[me] = e.y;
    edges_z[me] = e.z;
    cells[me] = passed;
    vertices_before[me] = (unsigned short)(index < a.word_count ? a.local[index] & 0xFFFFu : counts & 0xFFFFu);
    unsigned cell_count;
    cells_before[me] = (unsigned short)block_scan((unsigned)__popc(passed), sums, &cell_count);
    __syncthreads();

    const unsigned vertex_count = counts & 0xFFFFu;
    for (unsigned k = me; k < vertex_count; k += EMIT_THREADS) {
        const int w = find_word(vertices_before, k);
        const unsigned x = edges_x[w], y = edges_y[w], z = edges_z[w];
        const unsigned within = k - vertices_before[w];
        unsigned bit = 0, before = 0;
#pragma unroll
        for (unsigned step = 16; step; step >>= 1) {
            const unsigned mask = (1u << (bit + step)) - 1;
            const unsigned count = __popc(x & mask) + __popc(y & mask) + __popc(z & mask);
            if (count <= within) {
                bit += step;
                before = count;
            }
        }
        /* of the sample's edges, the one that has `left` others before it */
        const unsigned left = within - before, has_x = x >> bit & 1u, has_y = y >> bit & 1u;
        const int axis = left < has_x ? 0 : left < has_x + has_y ? 1 : 2;
        const long long number = a.block_vertices[blockIdx.x] + k - a.skipped;
        if (number >= 0) {
            const place p = word_place(a, block + w);
            surface_put_vertex(&a, 32 * p.word + (int)bit, p.y, p.z, axis, number);
        }
    }

    long long face = a.block_faces[blockIdx.x];
    for (unsigned base = 0; base < cell_count; base += EMIT_THREADS) {
        const unsigned k = base + me;
        unsigned pattern = 0;
        int x = 0;
        place p = {0, 0, 0};
        if (k < cell_count) {
            const int w = find_word(cells_before, k);
            const unsigned mask = cells[w], within = k - cells_before[w];
            unsigned bit = 0;
#pragma unroll
            for (unsigned step = 16; step; step >>= 1)
                if (__popc(mask & ((1u << (bit + step)) - 1)) <= (int)within)
                    bit += step;
            struct surface_rows rows;
            p = word_place(a, block + w);
            (void)surface_word_cells(&a, p.y, p.z, p.word, &rows);
            pattern = surface_case(&rows, (int)bit);
            x = 32 * p.word + (int)bit;
        }
        unsigned total;
        const unsigned before = block_scan((unsigned)(surface_table[pattern] >> 60), sums, &total);
        if (pattern)
            (void)surface_put_faces(&a, x, p.y, p.z, pattern, face + before);
        face += total;
    }
}

extern "C" __global__ void __launch_bounds__(256) surface_gradient(const __grid_constant__ struct surface_args a)
{
    const long long index = ((long long)blockIdx.x * blockDim.x + threadIdx.x) >> 5;
    if (index >= a.word_count)
        return;
    const place p = word_place(a, index);
    const int x = 32 * p.word + (int)(threadIdx.x & 31), pad = a.pad;
    const int w = a.width - 2 * pad, h = a.height - 2 * pad, d = a.depth - 2 * pad;
    if (x >= pad && x < w + pad && p.y >= pad && p.y < h + pad && p.z >= pad && p.z < d + pad)
        a.grad_volume[((long long)(p.z - pad) * h + p.y - pad) * w + x - pad] = surface_sample_gradient(&a, x, p.y, p.z);
}

extern "C" __global__ void __launch_bounds__(256) surface_grid_sample(const __grid_constant__ struct grid_args a)
{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < a.point_count * a.channels)
        grid_element(&a, i);
}

extern "C" __global__ void __launch_bounds__(256) surface_grid_gradient(const __grid_constant__ struct grid_args a)
{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < a.point_count)
        grid_point_gradient(&a, i);
}
