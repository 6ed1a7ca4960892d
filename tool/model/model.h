/* model/model.h: what is in a mesh or splat file, what is wrong with it, how it looks, and a file made from a volume.
 * Stands on libfelloe; base is all else that it knows. */
#ifndef FELLOE_MODEL_H
#define FELLOE_MODEL_H

#include "base/base.h"

#include <felloe/asset.h>

struct model_facts {
    str path, format;
    const fel_asset *asset; /* owned by the caller of model_open */
    int64_t vertices, faces, gaussians;
    float low[3], high[3]; /* bounds; 0 when there is nothing */
    bool has_normals, has_uvs, has_colors;
    int64_t border_edges,
        shared_edges; /* with one face; with more than two. Vertices at one place count as one */
    int64_t flat_faces;
    double area, volume; /* volume only means something without border edges */
};

/* Reads path; NULL with a finding and exit code 3 when it cannot. Free with fel_asset_free(). */
fel_asset *model_open(arena *a, str path, findings *f);

/* Facts about an asset, and findings F602 to F612. */
bool model_examine(arena *a, str path, const fel_asset *asset, struct model_facts *out, findings *f);

struct render_options {
    int width, height; /* pixels; of one picture */
    int frames;        /* 1: a still; more: once round */
    bool grid;         /* frames side by side in one picture, not an animation */
    double yaw, pitch; /* degrees: from where the camera looks */
    int delay_ms;      /* of an animation's frame */
};

/* Draws the asset into a PNG; bytes are the arena's. Findings F613. False with a finding when it cannot. */
bool model_render(arena *a, str path, const fel_asset *asset, const struct render_options *o, span *png,
                  findings *f);

struct extract_options {
    bool has_level;
    double level;
    int inside; /* 0: by the border, -1: below, 1: above */
    bool closed;
    bool keep_axes; /* not turned from Z up to Y up */
    double size;    /* the longest side afterwards; 0: in samples */
};

/* The volume in an .npy file to an asset with one mesh; NULL with a finding. *level is the one that was used. */
fel_asset *model_extract(arena *a, str path, const struct extract_options *o, double *level, findings *f);
void model_extract_free(fel_asset *asset);

#endif
