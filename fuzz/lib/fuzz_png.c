/* Any bytes as a PNG; what decodes is encoded and decoded again to the same pixels. The checksums of chunks and data
 * are made right first, else nearly every input would end there: bytes at a chunk's end are replaced. */
#include "asset_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t crc32_of(const uint8_t *bytes, size_t size)
{
    uint32_t crc = 0xFFFFFFFFu;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return ~crc;
}

static void mend(uint8_t *png, size_t size)
{
    for (size_t at = 8; size >= 12 && at <= size - 12;) {
        const uint32_t length = (uint32_t)png[at] << 24 | (uint32_t)png[at + 1] << 16 |
                                (uint32_t)png[at + 2] << 8 | (uint32_t)png[at + 3];
        if (length > size - at - 12)
            return;
        const uint32_t crc = crc32_of(png + at + 4, length + 4u);
        for (int k = 0; k < 4; k++)
            png[at + 8 + length + (size_t)k] = (uint8_t)(crc >> (24 - 8 * k));
        at += (size_t)length + 12;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *png = malloc(size + 1), *pixels = NULL, *again = NULL, *bytes = NULL;
    require(png != NULL);
    if (size)
        memcpy(png, data, size);
    mend(png, size);
    int32_t width = 0, height = 0, channels = 0, w, h, c;
    size_t count;
    if (!fel_png_decode("fuzz", png, size, &pixels, &width, &height, &channels) &&
        (int64_t)width * height < 1 << 16) {
        require(!fel_png_encode(pixels, width, height, channels, 1, 0, &bytes, &count));
        require(!fel_png_decode("again", bytes, count, &again, &w, &h, &c));
        require(w == width && h == height && c == channels);
        require(!memcmp(pixels, again, (size_t)w * (size_t)h * (size_t)c));
    }
    fel_png_free(pixels);
    fel_png_free(again);
    fel_png_free(bytes);
    free(png);
    return 0;
}
