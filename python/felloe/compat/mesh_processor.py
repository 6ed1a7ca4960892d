"""Stands in for Hunyuan3D-2.0's mesh_processor, computed by felloe."""

from felloe import bake


def meshVerticeInpaint(texture, mask, vtx_pos, vtx_uv, pos_idx, uv_idx, method="smooth"):
    """(texture, mask): known texels spread over the vertices. Only "smooth"."""
    if method != "smooth":
        raise ValueError("method: expected 'smooth', got %r" % (method,))
    return bake.inpaint(texture, mask, vtx_pos, vtx_uv, pos_idx, uv_idx)[:2]
