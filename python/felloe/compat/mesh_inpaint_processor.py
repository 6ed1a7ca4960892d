"""Stands in for Hunyuan3D-2.1's mesh_inpaint_processor, computed by felloe."""

from felloe import bake


def meshVerticeInpaint(texture, mask, vtx_pos, vtx_uv, pos_idx, uv_idx, method="smooth"):
    """(texture, mask): known texels spread over the vertices, "smooth" or "forward"."""
    return bake.inpaint(texture, mask, vtx_pos, vtx_uv, pos_idx, uv_idx, method=method)[:2]


def meshVerticeColor(texture, mask, vtx_pos, vtx_uv, pos_idx, uv_idx, method="smooth"):
    """(colour [v, c], state [v]: 1 known, 2 reached, 0 not). Only "smooth"."""
    if method != "smooth":
        raise ValueError("method: expected 'smooth', got %r" % (method,))
    return bake.inpaint(texture, mask, vtx_pos, vtx_uv, pos_idx, uv_idx)[2:]
