/* surface/surface.cu: the kernels of marching cubes. Floor: one read of the volume and one write of the mesh.
 *
 *   surface_classify  reads the volume once: 16 bytes a lane, 8 loads in flight. Bound by memory.
 *   surface_count     a thread a word of the bitmap (1/32 of the volume's bytes, mostly in L2): popcounts and one
 *                     table entry per cell that the surface passes; counts before each word within its block.
 *   surface_scan      counts before each block, and the totals that the host waits for.
 *   surface_emit      a thread block a block of words that has something. Work is spread by vertex, cell and corner, not
 *                     by word, since a word may have none or 32. Only here the volume is read again, at the ends of
 *                     crossed edges.
 *   surface_gradient  a warp a word; each sample gathers from its at most six edges.
 */
#include "surface_math.h"

enum { EMIT_THREADS = 256, SCAN_THREADS = 1024, CLASSIFY_WORDS = 32 };

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

/* Words of the fast path: rows are whole words, so words and samples run side by side through the volume. A lane
 * loads 4 samples at once, 8 times; 8 lanes then put their bits together to a word. */
__device__ static void classify_plain(const struct surface_args &a, long long first, int lane)
{
    const float4 *volume = (const float4 *)a.volume + 8 * first + lane;
    float4 v[8];
#pragma unroll
    for (int k = 0; k < 8; k++)
        v[k] = first + 4 * k + (lane >> 3) < a.word_count ? __ldcs(volume + 32 * k) : make_float4(0, 0, 0, 0);
#pragma unroll
    for (int k = 0; k < 8; k++) {
        unsigned bits = (unsigned)surface_is_below(&a, v[k].x) | (unsigned)surface_is_below(&a, v[k].y) << 1 |
                        (unsigned)surface_is_below(&a, v[k].z) << 2 | (unsigned)surface_is_below(&a, v[k].w) << 3;
        bits <<= 4 * (lane & 7);
        bits |= __shfl_xor_sync(0xFFFFFFFFu, bits, 1);
        bits |= __shfl_xor_sync(0xFFFFFFFFu, bits, 2);
        bits |= __shfl_xor_sync(0xFFFFFFFFu, bits, 4);
        const long long word = first + 4 * k + (lane >> 3);
        if ((lane & 7) == 0 && word < a.word_count)
            a.bits[word] = bits;
    }
}

extern "C" __global__ void __launch_bounds__(256) surface_classify(const __grid_constant__ struct surface_args a)
{
    const int lane = threadIdx.x & 31;
    const long long warp = ((long long)blockIdx.x * blockDim.x + threadIdx.x) >> 5;
    const long long first = warp * CLASSIFY_WORDS;
    if (first >= a.word_count)
        return;
    if (!a.pad && !a.half && a.width % 32 == 0 && (unsigned long long)a.volume % 16 == 0) {
        classify_plain(a, first, lane);
        return;
    }
    long long row = first / a.words;
    int word = (int)(first - row * a.words);
    unsigned mine = 0;
#pragma unroll 8
    for (int k = 0; k < CLASSIFY_WORDS; k++) {
        const int x = 32 * word + lane;
        const bool exists = first + k < a.word_count && x < a.width;
        const float value = !exists ? 0.0f
                            : a.pad ? surface_sample(&a, x, (int)(row % a.height), (int)(row / a.height))
                                    : surface_load(&a, row * a.width + x);
        const unsigned bits = __ballot_sync(0xFFFFFFFFu, exists && surface_is_below(&a, value));
        mine = lane == k ? bits : mine;
        if (++word == a.words) {
            word = 0;
            row++;
        }
    }
    if (first + lane < a.word_count)
        a.bits[first + lane] = mine;
}

struct place { /* of a word */
    int y, z, word;
};

__device__ static unsigned divide(unsigned n, const struct surface_divisor &d)
{
    return (__umulhi(n, d.multiplier) + n) >> d.shift;
}

__device__ static place word_place(const struct surface_args &a, long long index)
{
    const unsigned row = divide((unsigned)index, a.by_words);
    place p;
    p.word = (int)((unsigned)index - row * (unsigned)a.words);
    p.z = (int)divide(row, a.by_height);
    p.y = (int)(row - (unsigned)p.z * (unsigned)a.height);
    return p;
}

/* True for most words: all samples of the word, and those beside them that its edges and cells reach, are on one side. */
__device__ static bool is_uniform(const struct surface_args &a, const place &p)
{
    const unsigned first = surface_bits(&a, p.y, p.z, p.word), side = first & 1u ? 0xFFFFFFFFu : 0;
    if (first != side || 32 * (p.word + 1) > a.width) /* a cut-off word has zeros after its samples */
        return false;
    unsigned other = 0;
    for (int r = 0; r < 4; r++) {
        const int y = p.y + (r & 1), z = p.z + (r >> 1);
        if (y < a.height && z < a.depth) {
            other |= surface_bits(&a, y, z, p.word) ^ side;
            if (p.word + 1 < a.words)
                other |= (surface_bits(&a, y, z, p.word + 1) ^ side) & 1u;
        }
    }
    return other == 0;
}

extern "C" __global__ void __launch_bounds__(SURFACE_BLOCK) surface_count(const __grid_constant__ struct surface_args a)
{
    __shared__ unsigned sums[32];
    const long long index = (long long)blockIdx.x * SURFACE_BLOCK + threadIdx.x;
    unsigned count = 0;
    if (index < a.word_count) {
        const place p = word_place(a, index);
        if (!is_uniform(a, p)) {
            const struct surface_edges edges = surface_word_edges(&a, p.y, p.z, p.word);
            struct surface_rows rows;
            count = surface_edge_count(&edges);
            for (unsigned cells = surface_word_cells(&a, p.y, p.z, p.word, &rows); cells; cells &= cells - 1)
                count += (unsigned)(surface_table[surface_case(&rows, __ffs((int)cells) - 1)] >> 60) << 16;
        }
    }
    unsigned total = 0, before = 0;
    if (__syncthreads_or((int)count)) /* most blocks have nothing to add up */
        before = block_scan(count, sums, &total);
    if (index < a.word_count)
        a.local[index] = before;
    if (threadIdx.x == 0)
        a.block_counts[blockIdx.x] = total;
}

/* A thread a block of words. What comes before a thread block's own entries it adds up by itself: reading all of them
 * again, from L2, takes less time than waiting for the thread block before. */
extern "C" __global__ void __launch_bounds__(SCAN_THREADS) surface_scan(const __grid_constant__ struct surface_args a)
{
    __shared__ long long sums[32];
    const long long tile = (long long)blockIdx.x * SCAN_THREADS, i = tile + threadIdx.x;
    long long vertices = 0, faces = 0, active = 0, all_vertices, all_faces, all_active;
#pragma unroll 4
    for (long long k = threadIdx.x; k < tile; k += SCAN_THREADS) {
        const unsigned count = a.block_counts[k];
        vertices += count & 0xFFFFu;
        faces += count >> 16;
        active += count != 0;
    }
    (void)block_scan(vertices, sums, &all_vertices);
    (void)block_scan(faces, sums, &all_faces);
    (void)block_scan(active, sums, &all_active);
    const unsigned count = i < a.block_count ? a.block_counts[i] : 0;
    /* under 1024 * 40960 of each here, so the three go through one sum: 26 bits, 26 bits, 11 bits */
    const long long mine = (long long)(count & 0xFFFFu) << 37 | (long long)(count >> 16) << 11 | (count != 0);
    long long here;
    const long long before = block_scan(mine, sums, &here);
    vertices = all_vertices + (before >> 37);
    faces = all_faces + (before >> 11 & 0x3FFFFFF);
    active = all_active + (before & 0x7FF);
    if (i < a.block_count) {
        *(longlong2 *)(a.block_base + i) = make_longlong2(vertices, faces);
        if (count)
            a.active[active] = (int)i;
        const long long plane = (long long)a.height * a.words, own = a.own_first * plane, next = a.next_plane * plane;
        if (own / SURFACE_BLOCK == i)
            a.totals[2] = vertices + (a.local[own] & 0xFFFFu);
        if (next / SURFACE_BLOCK == i)
            a.totals[3] = vertices + (a.local[next] & 0xFFFFu);
    }
    if (i == a.block_count - 1) {
        a.totals[0] = vertices + (count & 0xFFFFu);
        a.totals[1] = faces + (count >> 16);
        a.totals[4] = active + (count != 0);
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

/* The position of set bit number `within` of mask. */
__device__ static unsigned find_bit(unsigned mask, unsigned within)
{
    unsigned bit = 0;
#pragma unroll
    for (unsigned step = 16; step; step >>= 1)
        bit += (unsigned)__popc(mask & ((1u << (bit + step)) - 1)) <= within ? step : 0;
    return bit;
}

struct emit_shared {
    unsigned x[SURFACE_BLOCK], y[SURFACE_BLOCK], z[SURFACE_BLOCK], cells[SURFACE_BLOCK];
    place places[SURFACE_BLOCK];
    unsigned short vertices_before[SURFACE_BLOCK], cells_before[SURFACE_BLOCK];
    /* of up to EMIT_THREADS cells at a time */
    unsigned char word[EMIT_THREADS], bit[EMIT_THREADS], pattern[EMIT_THREADS];
    unsigned short faces_before[EMIT_THREADS];
    unsigned sums[32];
};

__device__ static void emit_vertices(const struct surface_args &a, const emit_shared &s, long long first, unsigned count)
{
    for (unsigned k = threadIdx.x; k < count; k += EMIT_THREADS) {
        const int w = find_word(s.vertices_before, k);
        const unsigned x = s.x[w], y = s.y[w], z = s.z[w];
        const unsigned within = k - s.vertices_before[w];
        unsigned bit = 0, before = 0;
#pragma unroll
        for (unsigned step = 16; step; step >>= 1) {
            const unsigned mask = (1u << (bit + step)) - 1;
            const unsigned passed = __popc(x & mask) + __popc(y & mask) + __popc(z & mask);
            if (passed <= within) {
                bit += step;
                before = passed;
            }
        }
        /* of the sample's edges, the one that has `left` others before it */
        const unsigned left = within - before, has_x = x >> bit & 1u, has_y = y >> bit & 1u;
        const int axis = left < has_x ? 0 : left < has_x + has_y ? 1 : 2;
        const place p = s.places[w];
        if (first + k >= 0)
            surface_put_vertex(&a, 32 * p.word + (int)bit, p.y, p.z, axis, first + k);
    }
}

/* A thread a cell to find the cells' patterns, then a thread a corner to look up its vertex: a cell has up to 15, and
 * one thread that did them all would wait for each. */
__device__ static void emit_faces(const struct surface_args &a, emit_shared &s, long long face, unsigned cell_count)
{
    const unsigned me = threadIdx.x;
    for (unsigned base = 0; base < cell_count; base += EMIT_THREADS) {
        unsigned faces = 0;
        if (base + me < cell_count) {
            const int w = find_word(s.cells_before, base + me);
            const unsigned bit = find_bit(s.cells[w], base + me - s.cells_before[w]);
            const place p = s.places[w];
            struct surface_rows rows;
            (void)surface_word_cells(&a, p.y, p.z, p.word, &rows);
            const unsigned pattern = surface_case(&rows, (int)bit);
            s.word[me] = (unsigned char)w;
            s.bit[me] = (unsigned char)bit;
            s.pattern[me] = (unsigned char)pattern;
            faces = (unsigned)(surface_table[pattern] >> 60);
        }
        unsigned total;
        s.faces_before[me] = (unsigned short)block_scan(faces, s.sums, &total);
        __syncthreads();
        for (unsigned corner = me; corner < 3 * total; corner += EMIT_THREADS) {
            const int cell = find_word(s.faces_before, corner / 3);
            const unsigned k = corner - 3u * s.faces_before[cell]; /* of the cell's corners */
            const unsigned side = k % 3, from = a.flip && side ? k - side + 3 - side : k;
            const unsigned edge = (unsigned)(surface_table[s.pattern[cell]] >> 4 * from) & 15u;
            const place p = s.places[s.word[cell]];
            const long long v =
                a.first_vertex + surface_corner_index(&a, 32 * p.word + s.bit[cell], p.y, p.z, edge);
            if (a.faces64)
                a.faces64[3 * face + corner] = v;
            else
                a.faces32[3 * face + corner] = (int)v;
        }
        face += total;
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(EMIT_THREADS, 6) surface_emit(const __grid_constant__ struct surface_args a)
{
    __shared__ emit_shared s;
    const int me = threadIdx.x, block = a.active[blockIdx.x];
    const unsigned counts = a.block_counts[block];
    const long long index = (long long)block * SURFACE_BLOCK + me;
    struct surface_edges e = {0, 0, 0};
    unsigned passed = 0;
    place p = {0, 0, 0};
    if (index < a.word_count) {
        struct surface_rows rows;
        p = word_place(a, index);
        e = surface_word_edges(&a, p.y, p.z, p.word);
        passed = surface_word_cells(&a, p.y, p.z, p.word, &rows);
    }
    s.x[me] = e.x;
    s.y[me] = e.y;
    s.z[me] = e.z;
    s.cells[me] = passed;
    s.places[me] = p;
    s.vertices_before[me] = (unsigned short)(index < a.word_count ? a.local[index] & 0xFFFFu : counts & 0xFFFFu);
    unsigned cell_count;
    s.cells_before[me] = (unsigned short)block_scan((unsigned)__popc(passed), s.sums, &cell_count);
    __syncthreads();
    const struct surface_base base = a.block_base[block];
    emit_vertices(a, s, base.vertices - a.skipped, counts & 0xFFFFu);
    emit_faces(a, s, base.faces, cell_count);
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
