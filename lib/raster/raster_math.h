/* raster/raster_math.h: what all raster operators share, valid C17 and CUDA. No host headers on the device: NVRTC takes
 * it as it is. The four *_math.h files hold one item of work each (a triangle, a pixel, a texel, a half-edge), so that the
 * CPU's loops and the kernels can't drift apart.
 *
 * What decides something (coverage, depth, which pixel is in front) is computed in operations that round the same
 * everywhere (mul_rn, add_rn, integers), so that the CPU and the GPU take the same decision; plain values may differ in
 * their last bits, since the GPU fuses multiply and add. */
#ifndef FEL_RASTER_MATH_H
#define FEL_RASTER_MATH_H

#ifdef __CUDACC__
#ifndef FEL_INLINE
#define FEL_INLINE static __device__ __forceinline__
#endif
#else
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#ifndef FEL_INLINE
#define FEL_INLINE static inline
#endif
#endif

/* ---- numbers ---- */

FEL_INLINE unsigned float_bits(float value)
{
#ifdef __CUDACC__
    return __float_as_uint(value);
#else
    unsigned bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
#endif
}

FEL_INLINE float bits_float(unsigned bits)
{
#ifdef __CUDACC__
    return __uint_as_float(bits);
#else
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
#endif
}

FEL_INLINE bool is_finite(float value) { return (float_bits(value) & 0x7f800000U) != 0x7f800000U; }

/* A product and a sum that no compiler may fuse. */
FEL_INLINE float mul_rn(float a, float b)
{
#ifdef __CUDACC__
    return __fmul_rn(a, b);
#else
    return a * b;
#endif
}

FEL_INLINE float add_rn(float a, float b)
{
#ifdef __CUDACC__
    return __fadd_rn(a, b);
#else
    return a + b;
#endif
}

FEL_INLINE double dmul_rn(double a, double b)
{
#ifdef __CUDACC__
    return __dmul_rn(a, b);
#else
    return a * b;
#endif
}

FEL_INLINE double dadd_rn(double a, double b)
{
#ifdef __CUDACC__
    return __dadd_rn(a, b);
#else
    return a + b;
#endif
}

/* a*b - c*d, right to the last bit or two although both products may be almost equal. */
FEL_INLINE float cross2(float a, float b, float c, float d)
{
#ifdef __CUDACC__
    const float cd = __fmul_rn(c, d);
    return __fadd_rn(__fmaf_rn(a, b, -cd), __fmaf_rn(-c, d, cd));
#else
    return (float)((double)a * (double)b - (double)c * (double)d);
#endif
}

FEL_INLINE int round_to_int(float value)
{
#ifdef __CUDACC__
    return __float2int_rn(value);
#else
    return (int)lrintf(value);
#endif
}

/* ---- triangle ids in a float channel: the face index plus one; above 2^24 the bits go on counting ---- */

enum {
    ID_EXACT = 1 << 24,   /* up to here a float holds every integer */
    ID_BITS = 0x4a800000, /* bits of 2^24 as float, less 2^24, so that id 2^24 has both codings alike */
    ID_LAST = 889192447   /* the id whose bits are those of the largest finite float */
};

FEL_INLINE float id_encode(unsigned id)
{
    return id <= ID_EXACT ? (float)id : bits_float((unsigned)ID_BITS + id);
}

/* The face index, or -1 for background, NaN and what is no id. */
FEL_INLINE long long id_face(float channel)
{
    if (!(channel >= 1.0F))
        return -1;
    return (channel <= (float)ID_EXACT ? (long long)channel : (long long)float_bits(channel) - ID_BITS) - 1;
}

/* ---- atomics ---- */

FEL_INLINE void atomic_lower(unsigned long long *at, unsigned long long value)
{
#ifdef __CUDACC__
    atomicMin(at, value);
#else
    _Atomic unsigned long long *target = (_Atomic unsigned long long *)at;
    unsigned long long seen = atomic_load_explicit(target, memory_order_relaxed);
    while (value < seen && !atomic_compare_exchange_weak_explicit(target, &seen, value, memory_order_relaxed,
                                                                  memory_order_relaxed)) {
    }
#endif
}

FEL_INLINE void atomic_raise(unsigned *at, unsigned value)
{
#ifdef __CUDACC__
    if (*(volatile unsigned *)at < value) /* nearly always false after the first few, and a load is cheap */
        atomicMax(at, value);
#else
    _Atomic unsigned *target = (_Atomic unsigned *)at;
    unsigned seen = atomic_load_explicit(target, memory_order_relaxed);
    while (value > seen && !atomic_compare_exchange_weak_explicit(target, &seen, value, memory_order_relaxed,
                                                                  memory_order_relaxed)) {
    }
#endif
}

FEL_INLINE void atomic_add_float(float *at, float value)
{
#ifdef __CUDACC__
    atomicAdd(at, value);
#else
    _Atomic float *target = (_Atomic float *)at;
    float seen = atomic_load_explicit(target, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(target, &seen, seen + value, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
#endif
}

FEL_INLINE void atomic_add_fixed(long long *at, long long value)
{
#ifdef __CUDACC__
    atomicAdd((unsigned long long *)at, (unsigned long long)value);
#else
    atomic_fetch_add_explicit((_Atomic long long *)at, value, memory_order_relaxed);
#endif
}

FEL_INLINE void atomic_set_float(float *at, float value)
{
#ifdef __CUDACC__
    *(volatile float *)at = value;
#else
    atomic_store_explicit((_Atomic float *)at, value, memory_order_relaxed);
#endif
}

/* ---- gradients that many pixels add to ----
 *
 * SINK_SUM adds floats in whatever order they come. The deterministic mode runs an operator twice: SINK_PEAK finds the
 * largest contribution, SINK_FIXED adds all of them as 64-bit integers in units of 2^-30 of it, whose sum does not depend
 * on the order; sink_finish turns them into floats. 2^32 contributions to one element can't overflow. A contribution
 * that is not finite makes its element NaN. */

enum sink_mode { SINK_SUM, SINK_PEAK, SINK_FIXED };

struct grad_sink {
    float *sum;       /* the gradient itself; NULL: not wanted */
    long long *fixed; /* as many integers, in SINK_FIXED */
    unsigned *peak;   /* bits of the largest finite magnitude, shared by all sinks of a call */
    int mode;
};

FEL_INLINE double sink_unit(const struct grad_sink *sink)
{
    const int exponent = (int)(*sink->peak >> 23) - 127; /* peak < 2^(exponent+1) */
    return ldexp(1.0, 30 - exponent);
}

FEL_INLINE void sink_add(const struct grad_sink *sink, long long i, float value)
{
    if (value == 0.0F)
        return;
    if (sink->mode == SINK_SUM) {
        atomic_add_float(sink->sum + i, value);
    } else if (!is_finite(value)) {
        atomic_set_float(sink->sum + i, bits_float(0x7fc00000U));
    } else if (sink->mode == SINK_PEAK) {
        atomic_raise(sink->peak, float_bits(value) & 0x7fffffffU);
    } else {
        atomic_add_fixed(sink->fixed + i, (long long)rint((double)value * sink_unit(sink)));
    }
}

FEL_INLINE void sink_finish(const struct grad_sink *sink, long long i)
{
    if (sink->fixed[i] && sink->sum[i] == 0.0F) /* NaN stays */
        sink->sum[i] = (float)((double)sink->fixed[i] / sink_unit(sink));
}

/* ---- where a sample lies ---- */

/* The middle of a pixel in normalised device coordinates, to more bits than a float has: offsets from it to a vertex
 * lose most of theirs by cancellation. */
struct ndc {
#ifdef __CUDACC__
    float value, rest;
#else
    double value;
#endif
};

FEL_INLINE struct ndc ndc_of(int index, int size)
{
    struct ndc c;
#ifdef __CUDACC__
    const float numerator = (float)(2 * index + 1 - size), denominator = (float)size,
                inverse = 1.0F / denominator;
    c.value = numerator * inverse; /* need not be rounded right: the rest makes up for it */
    c.rest = __fmaf_rn(-c.value, denominator, numerator) * inverse;
#else
    c.value = (double)(2 * index + 1 - size) / (double)size;
#endif
    return c;
}

/* coordinate - c*w, rounded once */
FEL_INLINE float ndc_offset(float coordinate, float w, struct ndc c)
{
#ifdef __CUDACC__
    return __fmaf_rn(-c.rest, w, __fmaf_rn(-c.value, w, coordinate));
#else
    return (float)((double)coordinate - c.value * (double)w);
#endif
}

FEL_INLINE float ndc_float(struct ndc c) { return (float)c.value; }

/* a / b for 0 <= a, 0 < b: 32-bit division where it will do, as GPUs take some 70 instructions for a 64-bit one. */
FEL_INLINE long long divide(long long a, long long b)
{
    return (a | b) >> 32 ? a / b : (long long)((unsigned)a / (unsigned)b);
}

/* Vertex indices of a face; false when one lies outside [0, vertex_count). */
FEL_INLINE bool face_vertices(const int *triangles, long long face, long long vertex_count, int v[3])
{
    v[0] = triangles[3 * face];
    v[1] = triangles[3 * face + 1];
    v[2] = triangles[3 * face + 2];
    return v[0] >= 0 && v[0] < vertex_count && v[1] >= 0 && v[1] < vertex_count && v[2] >= 0 &&
           v[2] < vertex_count;
}

FEL_INLINE void load4(const float *at, float out[4])
{
#ifdef __CUDACC__
    const float4 v = *(const float4 *)at; /* the launcher has checked the alignment */
    out[0] = v.x, out[1] = v.y, out[2] = v.z, out[3] = v.w;
#else
    memcpy(out, at, 4 * sizeof *out);
#endif
}

FEL_INLINE void store4(float *at, float x, float y, float z, float w)
{
#ifdef __CUDACC__
    *(float4 *)at = make_float4(x, y, z, w);
#else
    at[0] = x, at[1] = y, at[2] = z, at[3] = w;
#endif
}

#endif
