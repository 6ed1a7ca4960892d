"""Stands in for the native half of custom_rasterizer."""

from felloe import bake


def rasterize_image(V, F, D, width, height, occlusion_truncation, use_depth_prior):
    """[findices, barycentric] of clip positions V [n, 4]; occlusion_truncation is 1e-6 in every caller, and here."""
    return list(bake.rasterize_view(V, F, (height, width), behind=D if use_depth_prior else None))
