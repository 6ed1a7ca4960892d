/* raster/raster_kernels.h: what raster.cu and the code that launches it agree on: block sizes, and arguments that no CPU
 * loop takes. No host headers. */
#ifndef FEL_RASTER_KERNELS_H
#define FEL_RASTER_KERNELS_H

#include "raster_math.h"

enum {
    FLAT_BLOCK = 256, /* one thread an item */
    COVER_BLOCK = 128,
    COVER_BLOCKS = 8, /* of them on a multiprocessor, which caps registers; likewise below */
    LARGE_BLOCK = 128,
    PIXEL_BLOCK = 256, /* 32 x 8 threads, a pixel each; four in antialiasing, 32 x 32 pixels */
    TILE_BLOCK = 256,  /* 16 x 16 pixels, 8 x 4 a warp */
    TEXTURE_BLOCKS = 8,
    TEXTURE_BACKWARD_BLOCKS = 4,
    RASTERIZE_BACKWARD_BLOCKS = 5,
    MIP_BLOCK = 256,
    MIP_CHANNELS = 4, /* channels that a block of raster_mips takes */
    MIP_LEVELS = 6,   /* and levels */
    GROUP_LEAST = 3,  /* lanes with the same face from which summing them first pays */
};

struct fill_args {
    unsigned *words;
    long long count;
    unsigned value;
    unsigned *zero; /* four more words that become 0; NULL: none */
};

struct mip_stack_args {
    const float *finest; /* [images, height, width, channels] */
    float *level[MIP_LEVELS];
    long long images;
    int width, height, channels, channel_groups, level_count;
};

struct mip_fold_args {
    const float *base; /* [images, height, width, stride]: level 0's own gradient */
    float *out;        /* [images, height, width, channels]; may be base when stride is channels */
    const float *level[16];
    long long images;
    int width, height, channels, stride, level_count;
};

struct sink_args {
    struct grad_sink grad;
    long long count;
};

#endif
