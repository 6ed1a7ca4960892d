/* raster/rasterize.c: fel_rasterize and its gradient. On the CPU threads share the triangles and lower the same keys as the
 * kernels do; large triangles wait until the small ones are done and are then cut into rows. */
#include "raster.h"
#include "rasterize_math.h"

enum {
    KEY_BYTES = 32 << 20,     /* of keys at a time: they should stay in a GPU's L2 cache */
    QUEUE_CAPACITY = 1 << 18, /* pieces of large triangles */
    LARGE_SAMPLES = 1 << 14,  /* CPU: boxes above are drawn by all threads together */
    LARGE_CAPACITY = 1 << 12,
};

/* ---- CPU ---- */

struct large_face {
    long long face;
    int image;
};

struct cover_job {
    const struct rasterize_args *args;
    struct large_face *large;
    atomic_uint large_count;
    const struct large_face *now; /* the large face being drawn */
    struct raster_box box;
};

/* Lowers one key; keys of a row are near one another, so most loads hit the cache. */
static void cover_sample(const struct rasterize_args *a, long long pixel, unsigned depth, long long face)
{
    if (a->below && depth <= a->below[(long long)a->image_first * a->height * a->width + pixel])
        return;
    atomic_lower(a->keys + pixel, raster_key(depth, face));
}

static long long floor_div(long long a, long long b) /* b > 0 */ { return a / b - (a % b < 0); }

/* Columns of a row, counted from the one where e holds, at which every edge function is at least its least. */
static void covered_span(const long long e[3], const struct raster_edges *r, int *first, int *last)
{
    long long low = *first, high = *last;
    for (int k = 0; k < 3; k++) {
        const long long need = r->least[k] - e[k]; /* dj * column >= need */
        if (r->dj[k] > 0) {
            const long long from = -floor_div(-need, r->dj[k]);
            low = from > low ? from : low;
        } else if (r->dj[k] < 0) {
            const long long to = floor_div(-need, -r->dj[k]);
            high = to < high ? to : high;
        } else if (need > 0) {
            high = low - 1;
        }
    }
    *first = (int)(low < *last + 1LL ? low : *last + 1LL);
    *last = (int)(high > -1 ? high : -1);
}

static void cover_plain(const struct rasterize_args *a, int image, long long face,
                        const struct raster_triangle *t, const struct raster_box *box)
{
    struct raster_edges r;
    if (!raster_edges_at(t, a->width, a->height, box->j0, box->i0, &r))
        return;
    for (int i = box->i0; i <= box->i1; i++) {
        const long long row = ((long long)image * a->height + i) * a->width + box->j0;
        int first = 0, last = box->j1 - box->j0;
        const long long up = i - box->i0;
        const long long e[3] = {r.e[0] + up * r.di[0], r.e[1] + up * r.di[1], r.e[2] + up * r.di[2]};
        if (last >= 8) { /* three divisions are cheaper than testing the samples */
            covered_span(e, &r, &first, &last);
            for (int j = first; j <= last; j++) {
                unsigned depth;
                if (plain_depth((float)(e[0] + j * r.dj[0]), (float)(e[1] + j * r.dj[1]), r.inverse_area,
                                r.z2, r.z02, r.z12, t->clipped, &depth))
                    cover_sample(a, row + j, depth, face);
            }
            continue;
        }
        for (int j = 0; j <= last; j++) {
            const long long e0 = e[0] + j * r.dj[0], e1 = e[1] + j * r.dj[1], e2 = e[2] + j * r.dj[2];
            unsigned depth;
            if (e0 >= r.least[0] && e1 >= r.least[1] && e2 >= r.least[2] &&
                plain_depth((float)e0, (float)e1, r.inverse_area, r.z2, r.z02, r.z12, t->clipped, &depth))
                cover_sample(a, row + j, depth, face);
        }
    }
}

static void cover_wide(const struct rasterize_args *a, int image, long long face, const struct raster_wide *t,
                       const struct raster_box *box)
{
    for (int i = box->i0; i <= box->i1; i++) {
        const long long row = ((long long)image * a->height + i) * a->width;
        const int py = sample_place(i, a->height);
        for (int j = box->j0; j <= box->j1; j++) {
            unsigned depth;
            if (wide_sample(t, sample_place(j, a->width), py, &depth))
                cover_sample(a, row + j, depth, face);
        }
    }
}

/* Draws rows first .. last of a face's box; the whole box when the caller has not cut it. */
static void cover_face(struct cover_job *job, int image, long long face, int defer, int first_row,
                       int last_row)
{
    const struct rasterize_args *a = job->args;
    float p[3][4];
    struct raster_triangle t = {.clipped = 0};
    struct raster_wide wide = {.n0 = 0.0};
    if (!raster_load(a, a->image_first + image, face, p))
        return;
    const int kind = raster_setup(a, p, &t);
    if (kind == TRIANGLE_NONE || (kind == TRIANGLE_WIDE && !raster_wide_setup(a, p, &wide, &t.box)))
        return;
    const long long samples = (t.box.j1 - t.box.j0 + 1LL) * (t.box.i1 - t.box.i0 + 1LL);
    if (defer && samples > LARGE_SAMPLES) {
        const unsigned slot = atomic_fetch_add_explicit(&job->large_count, 1, memory_order_relaxed);
        if (slot < LARGE_CAPACITY) {
            job->large[slot] = (struct large_face){face, image};
            return;
        }
        atomic_store_explicit(&job->large_count, LARGE_CAPACITY,
                              memory_order_relaxed); /* full: drawn here and now */
    }
    if (!defer) {
        t.box.i0 = t.box.i0 > first_row ? t.box.i0 : first_row;
        t.box.i1 = t.box.i1 < last_row ? t.box.i1 : last_row;
    }
    if (kind == TRIANGLE_PLAIN)
        cover_plain(a, image, face, &t, &t.box);
    else
        cover_wide(a, image, face, &wide, &t.box);
}

static void cover_range(const void *arg, int64_t first, int64_t last)
{
    struct cover_job *job = (struct cover_job *)arg;
    const struct rasterize_args *a = job->args;
    for (int image = 0; image < a->image_count; image++) {
        const long long start = a->range_mode ? a->ranges[image][0] : 0;
        const long long count = a->range_mode ? a->ranges[image][1] : a->face_count;
        for (long long k = first; k < last && k < count; k++)
            cover_face(job, image, start + k, 1, 0, 0);
    }
}

static void cover_large_rows(const void *arg, int64_t first, int64_t last)
{
    struct cover_job *job = (struct cover_job *)arg;
    const unsigned count = atomic_load_explicit(&job->large_count, memory_order_relaxed);
    for (unsigned k = 0; k < count && k < LARGE_CAPACITY; k++)
        cover_face(job, job->large[k].image, job->large[k].face, 0, (int)first, (int)last - 1);
}

static void empty_keys(const void *arg, int64_t first, int64_t last)
{
    const struct rasterize_args *a = arg;
    for (int64_t k = first; k < last; k++)
        a->keys[k] = EMPTY_KEY;
}

static void resolve_rows(const void *arg, int64_t first, int64_t last)
{
    const struct rasterize_args *a = arg;
    for (int64_t row = first; row < last; row++) {
        const int image = (int)(row / a->height), i = (int)(row % a->height);
        for (int j = 0; j < a->width; j++)
            resolve_pixel(a, a->image_first + image, i, j, a->keys[row * a->width + j]);
    }
}

static fel_status rasterize_cpu(fel_context *ctx, const struct rasterize_args *args, struct large_face *large)
{
    struct cover_job job = {.args = args, .large = large};
    const int64_t rows = (int64_t)args->image_count * args->height;
    int64_t faces = args->range_mode ? 0 : args->face_count;
    for (int k = 0; args->range_mode && k < args->image_count; k++)
        faces = args->ranges[k][1] > faces ? args->ranges[k][1] : faces;
    fel_status status = pool_for(ctx, rows * args->width, 1 << 14, empty_keys, args);
    if (!status)
        status = pool_for(ctx, faces, 256, cover_range, &job);
    if (!status && atomic_load(&job.large_count))
        status = pool_for(ctx, args->height, 8, cover_large_rows, &job);
    if (!status)
        status = pool_for(ctx, rows, 4, resolve_rows, args);
    return status;
}

/* ---- CUDA ---- */

/* How faces are dealt to warps, by the pixels there are for each: small ones a lane each, which draws up to so many
 * samples alone; larger ones by whole warps, few a warp, or too few warps would be at work. Measured on an H200. */
static void deal_faces(struct rasterize_args *args, int64_t faces)
{
    const int64_t pixels = (int64_t)args->width * args->height;
    if (pixels < 20 * faces) {
        args->faces_per_warp = 32;
        args->small_samples = 160;
        return;
    }
    args->faces_per_warp = pixels < 100 * faces ? 4 : 1;
    args->small_samples = 4;
    while (args->faces_per_warp > 1 && faces * args->image_count / args->faces_per_warp < 4096)
        args->faces_per_warp /= 2;
}

static fel_status rasterize_cuda(fel_context *ctx, struct rasterize_args *args)
{
    int64_t faces = args->range_mode ? 0 : args->face_count;
    for (int k = 0; args->range_mode && k < args->image_count; k++)
        faces = args->ranges[k][1] > faces ? args->ranges[k][1] : faces;
    deal_faces(args, faces);
    const int64_t faces_per_block = (int64_t)args->faces_per_warp * (COVER_BLOCK / 32);
    const struct launch cover = {
        .grid = {(unsigned)((faces + faces_per_block - 1) / faces_per_block), (unsigned)args->image_count, 1},
        .block = {COVER_BLOCK, 1, 1}};
    const struct launch large = {.grid = {LARGE_GRID, 1, 1}, .block = {LARGE_BLOCK, 1, 1}};
    fel_status status = device_launch(ctx, &RASTER_MODULE, "raster_cover", cover, args, sizeof *args);
    if (!status)
        status = device_launch(ctx, &RASTER_MODULE, "raster_large", large, args, sizeof *args);
    if (!status)
        status =
            device_launch(ctx, &RASTER_MODULE, "raster_resolve",
                          pixel_launch(args->width, args->height, args->image_count), args, sizeof *args);
    return status;
}

/* ---- the call ---- */

static fel_status check_ranges(const DLTensor *ranges, int64_t n)
{
    const bool shaped = ranges->ndim == 2 && ranges->shape[0] == n && ranges->shape[1] == 2;
    if (ranges->dtype.code != kDLInt || ranges->dtype.bits != 32 || ranges->dtype.lanes != 1)
        return status_fail(FEL_INVALID_DTYPE, "ranges: expected int32 [n, 2]");
    if (ranges->device.device_type != kDLCPU)
        return status_fail(FEL_WRONG_DEVICE, "ranges: expected host memory");
    if (!shaped)
        return status_fail(FEL_INVALID_SHAPE,
                           "ranges: expected int32 [%lld, 2], one row for each image of rast", (long long)n);
    const int *r = tensor_data(ranges);
    for (int64_t k = 0; k < n; k++)
        if (r[2 * k] < 0 || r[2 * k + 1] < 0)
            return status_fail(FEL_INVALID_ARGUMENT,
                               "ranges: expected first and count of at least 0, got %d and %d in row %lld",
                               r[2 * k], r[2 * k + 1], (long long)k);
    return FEL_OK;
}

/* Everything but the keys and which images. */
static fel_status rasterize_read(fel_context *ctx, const DLTensor *positions, const DLTensor *triangles,
                                 const DLTensor *ranges, const fel_rasterize_options *options, DLTensor *rast,
                                 DLTensor *rast_db, struct rasterize_args *args, int64_t *images)
{
    struct tensor_rule rules[6] = {
        {"positions", positions, F32, ranges ? "v 4" : "n v 4"},
        {"triangles", triangles, I32, "f 3"},
        {"rast", rast, F32, "n h w 4"},
    };
    size_t count = 3;
    int bits = 8;
    if (rast_db)
        rules[count++] = (struct tensor_rule){"rast_db", rast_db, F32, "n h w 4"};
    if (options && options->size < sizeof *options)
        return status_fail(FEL_INVALID_ARGUMENT, "options: expected a size of %zu, got %zu", sizeof *options,
                           options->size);
    if (options) {
        if (options->below)
            rules[count++] = (struct tensor_rule){"below", options->below, I32, "n h w"};
        if (options->depth)
            rules[count++] = (struct tensor_rule){"depth", options->depth, I32, "n h w"};
        bits = options->subpixel_bits ? options->subpixel_bits : 8;
        if (bits != 8 && bits != 4)
            return status_fail(FEL_INVALID_ARGUMENT, "subpixel_bits: expected 8 or 4, got %d", bits);
    }
    struct dims n = {{0}};
    fel_status status = raster_expect(ctx, rules, count, &n);
    if (status)
        return status;
    if (n.of['h'] > MAX_SIDE || n.of['w'] > MAX_SIDE)
        return status_fail(FEL_INVALID_SHAPE, "rast: expected sides of at most %d, got %lld x %lld", MAX_SIDE,
                           (long long)n.of['h'], (long long)n.of['w']);
    if (n.of['f'] > ID_LAST)
        return status_fail(FEL_INVALID_SHAPE,
                           "triangles: expected at most %d, which is the last id a float can hold, got %lld",
                           ID_LAST, (long long)n.of['f']);
    if (ranges) {
        status = check_ranges(ranges, n.of['n']);
        if (status)
            return status;
    }
    const int step = 1 << (8 - bits), place_limit = GRID_LIMIT / step;
    const int64_t half_pixel = GRID / 2 / step;
    *images = n.of['n'];
    *args = (struct rasterize_args){
        .positions = tensor_data(positions),
        .triangles = tensor_data(triangles),
        .below = options && options->below ? tensor_data(options->below) : NULL,
        .depth = options && options->depth ? tensor_data(options->depth) : NULL,
        .rast = tensor_data(rast),
        .rast_db = rast_db ? tensor_data(rast_db) : NULL,
        .vertex_count = n.of['v'],
        .face_count = n.of['f'],
        .image_vertices = ranges ? 0 : n.of['v'],
        .width = (int)n.of['w'],
        .height = (int)n.of['h'],
        .scale_x = (float)(n.of['w'] * half_pixel),
        .scale_y = (float)(n.of['h'] * half_pixel),
        .place_limit = (float)place_limit,
        .step = step,
        .range_mode = ranges != NULL,
    };
    return FEL_OK;
}

fel_status fel_rasterize(fel_context *ctx, const DLTensor *positions, const DLTensor *triangles,
                         const DLTensor *ranges, const fel_rasterize_options *options, DLTensor *rast,
                         DLTensor *rast_db)
{
    struct rasterize_args args = {.width = 0};
    int64_t images = 0;
    fel_status status =
        rasterize_read(ctx, positions, triangles, ranges, options, rast, rast_db, &args, &images);
    if (status)
        return status;
    const int64_t pixels = (int64_t)args.width * args.height;
    if (!images || !pixels)
        return FEL_OK;
    int64_t group = KEY_BYTES / (pixels * (int64_t)sizeof *args.keys);
    group = group < 1 ? 1 : group;
    group = ranges && group > RANGES_PER_LAUNCH ? RANGES_PER_LAUNCH : group;
    group = group < images ? group : images;
    group = group < MAX_GRID_Y ? group : MAX_GRID_Y;

    const bool cuda = context_on_cuda(ctx);
    status = FEL_OUT_OF_MEMORY;
    struct scratch scratch = scratch_begin(ctx);
    struct large_face *large = NULL;
    if (cuda) { /* one piece, since an allocator may be a call into Python: queue, its count, keys */
        const size_t queue_words = 4 * (size_t)QUEUE_CAPACITY + 4;
        args.queue = scratch_array(&scratch, unsigned, queue_words + 2 * (size_t)(group * pixels));
        if (!args.queue)
            goto done;
        args.queue_count = args.queue + 4 * (size_t)QUEUE_CAPACITY;
        args.queue_capacity = QUEUE_CAPACITY;
        args.keys = (unsigned long long *)(void *)(args.queue + queue_words);
        const struct fill_args fill = {.words = (unsigned *)args.keys,
                                       .count = 2 * group * pixels,
                                       .value = 0xffffffffU,
                                       .zero = args.queue_count};
        status = device_launch(ctx, &RASTER_MODULE, "raster_fill",
                               grid_1d(group * pixels / 16 + 1, FLAT_BLOCK), &fill, sizeof fill);
        if (status)
            goto done;
    } else {
        args.keys = scratch_array(&scratch, unsigned long long, group *pixels);
        large = scratch_array(&scratch, struct large_face, LARGE_CAPACITY);
        if (!args.keys || !large)
            goto done;
    }
    const int *r = ranges ? tensor_data(ranges) : NULL;
    for (int64_t first = 0; first < images; first += group) {
        args.image_first = (int)first;
        args.image_count = (int)(images - first < group ? images - first : group);
        args.keep_keys_empty = first + group < images;
        for (int k = 0; r && k < args.image_count; k++) {
            args.ranges[k][0] = r[2 * (first + k)];
            args.ranges[k][1] = r[2 * (first + k) + 1];
        }
        status = cuda ? rasterize_cuda(ctx, &args) : rasterize_cpu(ctx, &args, large);
        if (status)
            goto done;
    }
done:
    scratch_end(&scratch);
    return status;
}

/* ---- gradients ---- */

static void backward_rows(const void *arg, int64_t first, int64_t last)
{
    const struct rasterize_backward_args *args = arg;
    for (int64_t pixel = first * args->width; pixel < last * args->width; pixel++) {
        const int64_t row = pixel / args->width;
        int v[3];
        long long base;
        float g[3][3];
        if (!rasterize_gradient(args, (int)(row / args->height), (int)(row % args->height),
                                (int)(pixel % args->width), v, &base, g))
            continue;
        for (int k = 0; k < 3; k++) {
            const long long at = 4 * (base + v[k]);
            sink_add(&args->grad, at, g[k][0]);
            sink_add(&args->grad, at + 1, g[k][1]);
            sink_add(&args->grad, at + 3, g[k][2]);
        }
    }
}

static fel_status backward_run(fel_context *ctx, const void *arg)
{
    const struct rasterize_backward_args *args = arg;
    if (!args->pixel_count)
        return FEL_OK;
    if (!context_on_cuda(ctx))
        return pool_for(ctx, args->pixel_count / args->width, 4, backward_rows, args);
    return device_launch(
        ctx, &RASTER_MODULE, "raster_rasterize_backward",
        tile_launch(args->width, args->height, args->pixel_count / ((int64_t)args->width * args->height)),
        args, sizeof *args);
}

fel_status fel_rasterize_backward(fel_context *ctx, const DLTensor *positions, const DLTensor *triangles,
                                  const DLTensor *rast, const DLTensor *grad_rast,
                                  const DLTensor *grad_rast_db, unsigned flags, DLTensor *grad_positions)
{
    const bool shared = positions && positions->ndim == 2;
    struct tensor_rule rules[6] = {
        {"positions", positions, F32, shared ? "v 4" : "n v 4"},
        {"triangles", triangles, I32, "f 3"},
        {"rast", rast, F32, "n h w 4"},
        {"grad_rast", grad_rast, F32, "n h w 4"},
        {"grad_positions", grad_positions, F32, shared ? "v 4" : "n v 4"},
        {"grad_rast_db", grad_rast_db, F32, "n h w 4"},
    };
    struct dims n = {{0}};
    fel_status status = raster_expect(ctx, rules, grad_rast_db ? 6 : 5, &n);
    if (status)
        return status;
    struct rasterize_backward_args args = {
        .positions = tensor_data(positions),
        .triangles = tensor_data(triangles),
        .rast = tensor_data(rast),
        .grad_rast = tensor_data(grad_rast),
        .grad_rast_db = grad_rast_db ? tensor_data(grad_rast_db) : NULL,
        .grad = {.sum = tensor_data(grad_positions)},
        .vertex_count = n.of['v'],
        .face_count = n.of['f'],
        .image_vertices = shared ? 0 : n.of['v'],
        .pixel_count = n.of['n'] * n.of['h'] * n.of['w'],
        .width = (int)n.of['w'],
        .height = (int)n.of['h'],
    };
    struct sink_list sinks = {
        .count = 1, .sink = {&args.grad}, .elements = {4 * n.of['v'] * (shared ? 1 : n.of['n'])}};
    return raster_accumulate(ctx, flags, &sinks, backward_run, &args);
}
