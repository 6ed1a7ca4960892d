"""Stands in for custom_rasterizer where that is not installed: rasterize and interpolate, computed by felloe."""

import torch

from felloe import bake

__all__ = ["interpolate", "rasterize"]


def rasterize(pos, tri, resolution, clamp_depth=torch.zeros(0), use_depth_prior=0):
    """(findices int32 [h, w]: face + 1 or 0; barycentric float32 [h, w, 3]) of clip positions [1, n, 4]; only batch 0 is drawn."""
    assert pos.device == tri.device, "tri: expected a tensor on %s, got one on %s" % (pos.device, tri.device)
    behind = clamp_depth.detach() if use_depth_prior else None
    return bake.rasterize_view(pos[0].detach().contiguous(), tri, resolution, behind=behind)


def interpolate(col, findices, barycentric, tri):
    """[1, h, w, c]: corner values of col [1, n, c] weighted, 0 where no face is. With gradients for col and barycentric."""
    if torch.is_grad_enabled() and (col.requires_grad or barycentric.requires_grad):
        faces = findices.long() - 1
        corners = tri.long()[faces.clamp_min(0)] if len(tri) else torch.zeros(*faces.shape, 3, dtype=torch.long, device=faces.device)
        # zero weights, not zero products: what an empty texel multiplies may be NaN
        values = torch.where((faces >= 0)[..., None, None], col[0][corners], torch.zeros((), device=col.device, dtype=col.dtype))
        return (values * barycentric[..., None]).sum(-2)[None]
    return bake.interpolate(col[0].detach(), tri, indices=findices.to(torch.int32), weights=barycentric.detach())[None]
