/* asset/png.c: PNG in and out (W3C PNG, third edition, with APNG for animations), so that a baked texture gets into a
 * GLB and a rendered picture gets to the user without another library. */
#include "asset/asset.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

static uint32_t crc_update(uint32_t crc, const uint8_t *bytes, size_t size)
{
    /* four bits at a time: the table is small enough to write down, and the data is compressed by then */
    static const uint32_t table[16] = {0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4,
                                       0x4DB26158, 0x5005713C, 0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C,
                                       0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C};
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc = table[(crc ^ bytes[i]) & 15] ^ crc >> 4;
        crc = table[(crc ^ (uint32_t)(bytes[i] >> 4)) & 15] ^ crc >> 4;
    }
    return ~crc;
}

/* ---- reading */

struct png {
    const char *name;
    const uint8_t *bytes;
    size_t size;
    uint32_t width, height;
    unsigned depth, type, interlaced, samples; /* samples a pixel in the file */
    uint8_t palette[256][4];
    unsigned palette_count;
    bool transparent; /* a tRNS chunk */
    uint16_t key[3];  /* the transparent colour of types 0 and 2 */
    uint8_t *packed;  /* all IDAT data */
    size_t packed_size;
};

static fel_status png_fail(const struct png *p, size_t offset, const char *what)
{
    return status_fail(FEL_MALFORMED, "%s: byte %zu: %s", p->name, offset, what);
}

static fel_status read_header(struct png *p, size_t at, const uint8_t *data, uint32_t size)
{
    static const uint8_t samples[7] = {1, 0, 3, 1, 2, 0, 4};
    if (size != 13)
        return png_fail(p, at, "expected an IHDR of 13 bytes");
    p->width = get_u32be(data);
    p->height = get_u32be(data + 4);
    p->depth = data[8];
    p->type = data[9];
    p->interlaced = data[12];
    if (!p->width || !p->height || p->width > INT32_MAX || p->height > INT32_MAX ||
        (uint64_t)p->width * p->height > UINT64_C(1) << 28)
        return png_fail(p, at, "expected between 1 and 2^28 pixels");
    const bool power = p->depth && p->depth <= 16 && !(p->depth & (p->depth - 1));
    if (p->type > 6 || !samples[p->type] || !power || (p->type == 3 && p->depth == 16) ||
        (p->type != 0 && p->type != 3 && p->depth < 8))
        return png_fail(p, at, "a colour type and bit depth that do not go together");
    if (data[10] || data[11] || p->interlaced > 1)
        return png_fail(p, at, "an unknown compression, filter or interlace method");
    p->samples = samples[p->type];
    return FEL_OK;
}

static fel_status read_palette(struct png *p, size_t at, const uint8_t *data, uint32_t size)
{
    if (!size || size % 3 || size > 768)
        return png_fail(p, at, "expected 1 to 256 palette entries");
    p->palette_count = size / 3;
    for (unsigned i = 0; i < p->palette_count; i++) {
        memcpy(p->palette[i], data + 3 * (size_t)i, 3);
        p->palette[i][3] = 255;
    }
    return FEL_OK;
}

static fel_status read_transparency(struct png *p, size_t at, const uint8_t *data, uint32_t size)
{
    if (p->type == 3) {
        if (size > p->palette_count)
            return png_fail(p, at, "more transparent entries than the palette has");
        for (uint32_t i = 0; i < size; i++)
            p->palette[i][3] = data[i];
    } else if ((p->type == 0 && size == 2) || (p->type == 2 && size == 6)) {
        for (uint32_t i = 0; i < size / 2; i++)
            p->key[i] = (uint16_t)(data[2 * (size_t)i] << 8 | data[2 * (size_t)i + 1]);
    } else {
        return png_fail(p, at, "a tRNS chunk that does not fit the colour type");
    }
    p->transparent = true;
    return FEL_OK;
}

static fel_status read_chunks(struct png *p)
{
    size_t at = sizeof signature;
    if (p->size < at || memcmp(p->bytes, signature, at) != 0)
        return png_fail(p, 0, "expected the PNG signature");
    p->packed = malloc(p->size);
    if (!p->packed)
        return status_fail(FEL_OUT_OF_MEMORY, "%zu bytes could not be allocated", p->size);
    for (bool end = false; !end;) {
        if (p->size - at < 12)
            return png_fail(p, at, "expected a chunk, the file ends");
        const uint32_t size = get_u32be(p->bytes + at);
        const uint8_t *type = p->bytes + at + 4, *data = type + 4;
        if (size > p->size - at - 12)
            return png_fail(p, at, "a chunk that ends past the file");
        if (get_u32be(data + size) != crc_update(0, type, size + 4u))
            return png_fail(p, at, "a chunk with a wrong checksum");
        const bool first = at == sizeof signature;
        if (first != !memcmp(type, "IHDR", 4))
            return png_fail(p, at, first ? "expected IHDR as the first chunk" : "a second IHDR");
        fel_status status = FEL_OK;
        if (first) {
            status = read_header(p, at, data, size);
        } else if (!memcmp(type, "PLTE", 4)) {
            status = read_palette(p, at, data, size);
        } else if (!memcmp(type, "tRNS", 4)) {
            status = read_transparency(p, at, data, size);
        } else if (!memcmp(type, "IDAT", 4)) {
            memcpy(p->packed + p->packed_size, data, size);
            p->packed_size += size;
        } else if (!memcmp(type, "IEND", 4)) {
            end = true;
        } else if (!(type[0] & 0x20)) {
            status = png_fail(p, at, "an unknown chunk that may not be ignored");
        }
        if (status)
            return status;
        at += (size_t)size + 12;
    }
    if (p->type == 3 && !p->palette_count)
        return png_fail(p, at, "expected a palette");
    return FEL_OK;
}

static int paeth(int a, int b, int c)
{
    const int pa = abs(b - c), pb = abs(a - c), pc = abs(a + b - 2 * c);
    return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

/* Undoes the filter of one row in place; above is the row before, or NULL. */
static bool unfilter(uint8_t filter, uint8_t *row, const uint8_t *above, size_t size, size_t step)
{
    if (filter > 4)
        return false;
    for (size_t i = 0; i < size && filter; i++) {
        const int left = i >= step ? row[i - step] : 0;
        const int up = above ? above[i] : 0;
        const int corner = above && i >= step ? above[i - step] : 0;
        const int add = filter == 1   ? left
                        : filter == 2 ? up
                        : filter == 3 ? (left + up) / 2
                                      : paeth(left, up, corner);
        row[i] = (uint8_t)(row[i] + add);
    }
    return true;
}

static unsigned sample_at(const struct png *p, const uint8_t *row, size_t index)
{
    if (p->depth == 16)
        return (unsigned)row[2 * index] << 8 | row[2 * index + 1];
    if (p->depth == 8)
        return row[index];
    const size_t bit = index * p->depth;
    return (unsigned)row[bit / 8] >> (8 - p->depth - bit % 8) & ((1u << p->depth) - 1);
}

/* One pixel to 8 bits a channel. */
static bool put_pixel(const struct png *p, const uint8_t *row, size_t x, uint8_t *out)
{
    if (p->type == 3) {
        const unsigned index = sample_at(p, row, x);
        if (index >= p->palette_count)
            return false;
        memcpy(out, p->palette[index], p->transparent ? 4 : 3);
        return true;
    }
    const unsigned most = (1u << p->depth) - 1;
    bool is_key = p->transparent;
    for (unsigned s = 0; s < p->samples; s++) {
        const unsigned value = sample_at(p, row, x * p->samples + s);
        out[s] = (uint8_t)((value * 255 + most / 2) / most);
        is_key = is_key && value == p->key[s];
    }
    if (p->transparent)
        out[p->samples] = is_key ? 0 : 255;
    return true;
}

struct pass { /* of the Adam7 interlace: first pixel and step */
    uint8_t x, y, dx, dy;
};
static const struct pass adam7[7] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                     {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
static const struct pass whole = {0, 0, 1, 1};

static size_t pass_width(const struct png *p, const struct pass *s)
{
    return p->width > s->x ? ((size_t)p->width - s->x + s->dx - 1) / s->dx : 0;
}

static size_t pass_height(const struct png *p, const struct pass *s)
{
    return p->height > s->y ? ((size_t)p->height - s->y + s->dy - 1) / s->dy : 0;
}

static size_t row_size(const struct png *p, size_t width) { return (width * p->samples * p->depth + 7) / 8; }

static fel_status read_pixels(const struct png *p, uint8_t *raw, unsigned channels, uint8_t *pixels)
{
    const struct pass *passes = p->interlaced ? adam7 : &whole;
    const size_t step = p->samples * p->depth < 8 ? 1 : p->samples * p->depth / 8;
    for (int i = 0; i < (p->interlaced ? 7 : 1); i++) {
        const struct pass *s = passes + i;
        const size_t width = pass_width(p, s), height = pass_height(p, s), size = row_size(p, width);
        const uint8_t *above = NULL;
        for (size_t y = 0; y < height && width; y++, raw += size + 1) {
            if (!unfilter(raw[0], raw + 1, above, size, step))
                return png_fail(p, 0, "a row with an unknown filter");
            above = raw + 1;
            for (size_t x = 0; x < width; x++) {
                const size_t at = (s->y + y * s->dy) * p->width + s->x + x * s->dx;
                if (!put_pixel(p, raw + 1, x, pixels + at * channels))
                    return png_fail(p, 0, "a pixel outside the palette");
            }
        }
    }
    return FEL_OK;
}

fel_status fel_png_decode(const char *name, const void *bytes, size_t size, uint8_t **pixels, int32_t *width,
                          int32_t *height, int32_t *channels)
{
    if (!bytes || !pixels || !width || !height || !channels)
        return status_fail(FEL_INVALID_ARGUMENT, "expected pointers, got NULL");
    struct png p = {.name = name ? name : "picture", .bytes = bytes, .size = size};
    uint8_t *raw = NULL, *out = NULL;
    fel_status status = read_chunks(&p);
    if (status)
        goto done;
    size_t raw_size = 0;
    for (int i = 0; i < (p.interlaced ? 7 : 1); i++) {
        const struct pass *s = p.interlaced ? adam7 + i : &whole;
        const size_t w = pass_width(&p, s);
        raw_size += w ? pass_height(&p, s) * (row_size(&p, w) + 1) : 0;
    }
    /* deflate makes at most 1032 bytes of one, so a small file cannot ask for a large picture */
    if (raw_size / 1032 > p.packed_size) {
        status = png_fail(&p, 0, "less picture data than its size needs");
        goto done;
    }
    const unsigned out_channels = (p.type == 3 ? 3 : p.samples) + p.transparent;
    raw = malloc(raw_size + 1);
    out = malloc((size_t)p.width * p.height * out_channels + 1);
    if (!raw || !out) {
        status = status_fail(FEL_OUT_OF_MEMORY, "%zu bytes could not be allocated", raw_size);
        goto done;
    }
    size_t at;
    const char *error = zlib_inflate(p.packed, p.packed_size, raw, raw_size, &at);
    if (error)
        status = status_fail(FEL_MALFORMED, "%s: byte %zu of the compressed data: %s", p.name, at, error);
    else
        status = read_pixels(&p, raw, out_channels, out);
    if (!status) {
        *pixels = out;
        *width = (int32_t)p.width;
        *height = (int32_t)p.height;
        *channels = (int32_t)out_channels;
        out = NULL;
    }
done:
    free(p.packed);
    free(raw);
    free(out);
    return status;
}

void fel_png_free(uint8_t *bytes) { free(bytes); }

/* ---- writing */

struct writer {
    uint8_t *bytes;
    size_t size, room;
    bool failed;
};

static void put(struct writer *w, const void *bytes, size_t size)
{
    if (w->failed)
        return;
    if (size > w->room - w->size) {
        const size_t room = w->room + w->room / 2 + size;
        uint8_t *larger = realloc(w->bytes, room);
        if (!larger) {
            w->failed = true;
            return;
        }
        w->bytes = larger;
        w->room = room;
    }
    if (size)
        memcpy(w->bytes + w->size, bytes, size);
    w->size += size;
}

static void put_u32be(struct writer *w, uint32_t value)
{
    const uint8_t bytes[4] = {(uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8),
                              (uint8_t)value};
    put(w, bytes, 4);
}

/* head goes before data inside the chunk; both may be empty. */
static void put_chunk(struct writer *w, const char *type, const void *head, size_t head_size,
                      const void *data, size_t size)
{
    put_u32be(w, (uint32_t)(head_size + size));
    const size_t start = w->size;
    put(w, type, 4);
    put(w, head, head_size);
    put(w, data, size);
    put_u32be(w, w->failed ? 0 : crc_update(0, w->bytes + start, w->size - start));
}

static void store_u32be(uint8_t *p, uint32_t value)
{
    p[0] = (uint8_t)(value >> 24);
    p[1] = (uint8_t)(value >> 16);
    p[2] = (uint8_t)(value >> 8);
    p[3] = (uint8_t)value;
}

/* The filtered row into out[1..size], its filter into out[0]; returns the sum of the bytes as signed magnitudes: the
 * smaller, the better it compresses (the specification's own heuristic). */
static uint64_t filter_row(uint8_t filter, const uint8_t *row, const uint8_t *above, size_t size, size_t step,
                           uint8_t *out)
{
    uint64_t sum = 0;
    out[0] = filter;
    for (size_t i = 0; i < size; i++) {
        const int left = i >= step ? row[i - step] : 0;
        const int up = above ? above[i] : 0;
        const int corner = above && i >= step ? above[i - step] : 0;
        const int guess = filter == 0   ? 0
                          : filter == 1 ? left
                          : filter == 2 ? up
                          : filter == 3 ? (left + up) / 2
                                        : paeth(left, up, corner);
        const uint8_t byte = (uint8_t)(row[i] - guess);
        out[1 + i] = byte;
        sum += byte < 128 ? byte : 256u - byte;
    }
    return sum;
}

/* The zlib stream of one frame; NULL when out of memory. */
static uint8_t *pack_frame(const uint8_t *pixels, size_t row, size_t height, size_t step, size_t *packed_size)
{
    uint8_t *filtered = malloc((row + 1) * height);
    uint8_t *trial = malloc(row + 1);
    uint8_t *packed = NULL;
    if (filtered && trial) {
        for (size_t y = 0; y < height; y++) {
            const uint8_t *line = pixels + y * row, *above = y ? line - row : NULL;
            uint8_t *best = filtered + y * (row + 1);
            uint64_t least = filter_row(0, line, above, row, step, best);
            for (uint8_t filter = 1; filter <= 4; filter++) {
                const uint64_t sum = filter_row(filter, line, above, row, step, trial);
                if (sum < least) {
                    least = sum;
                    memcpy(best, trial, row + 1);
                }
            }
        }
        packed = zlib_deflate(filtered, (row + 1) * height, packed_size);
    }
    free(filtered);
    free(trial);
    return packed;
}

fel_status fel_png_encode(const uint8_t *pixels, int32_t width, int32_t height, int32_t channels,
                          int32_t frames, int32_t delay_ms, uint8_t **bytes, size_t *size)
{
    static const uint8_t types[5] = {0, 0, 4, 2, 6};
    if (!pixels || !bytes || !size)
        return status_fail(FEL_INVALID_ARGUMENT, "expected pointers, got NULL");
    if (width < 1 || height < 1 || channels < 1 || channels > 4 || frames < 1 || delay_ms < 0 ||
        delay_ms > 65535 || (uint64_t)width * (uint64_t)height > UINT64_C(1) << 28)
        return status_fail(
            FEL_INVALID_ARGUMENT,
            "pixels: expected uint8 [frames, height, width, 1 to 4] of at most 2^28 pixels a frame, got "
            "[%d, %d, %d, %d]",
            frames, height, width, channels);
    const size_t row = (size_t)width * (size_t)channels;
    struct writer w = {0};
    put(&w, signature, sizeof signature);
    uint8_t header[13] = {0};
    store_u32be(header, (uint32_t)width);
    store_u32be(header + 4, (uint32_t)height);
    header[8] = 8;
    header[9] = types[channels];
    put_chunk(&w, "IHDR", header, sizeof header, NULL, 0);
    uint8_t number[4], animation[8] = {0};
    if (frames > 1) {
        store_u32be(animation, (uint32_t)frames);
        put_chunk(&w, "acTL", animation, sizeof animation, NULL, 0);
    }
    uint32_t sequence = 0;
    for (int32_t frame = 0; frame < frames && !w.failed; frame++) {
        if (frames > 1) {
            uint8_t control[26] = {0};
            store_u32be(control, sequence++);
            store_u32be(control + 4, (uint32_t)width);
            store_u32be(control + 8, (uint32_t)height);
            control[20] = (uint8_t)(delay_ms >> 8);
            control[21] = (uint8_t)delay_ms;
            control[22] = 1000 >> 8;
            control[23] = 1000 & 255;
            put_chunk(&w, "fcTL", control, sizeof control, NULL, 0);
        }
        size_t packed_size = 0;
        uint8_t *packed = pack_frame(pixels + (size_t)frame * row * (size_t)height, row, (size_t)height,
                                     (size_t)channels, &packed_size);
        if (!packed)
            w.failed = true;
        else if (frame == 0)
            put_chunk(&w, "IDAT", NULL, 0, packed, packed_size);
        else {
            store_u32be(number, sequence++);
            put_chunk(&w, "fdAT", number, sizeof number, packed, packed_size);
        }
        free(packed);
    }
    put_chunk(&w, "IEND", NULL, 0, NULL, 0);
    if (w.failed) {
        free(w.bytes);
        return status_fail(FEL_OUT_OF_MEMORY, "a picture of %d x %d could not be allocated", width, height);
    }
    *bytes = w.bytes;
    *size = w.size;
    return FEL_OK;
}
