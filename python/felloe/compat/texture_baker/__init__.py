"""Stands in for texture_baker where that is not installed: TextureBaker, computed by felloe."""

import torch

from felloe import bake

__all__ = ["TextureBaker"]


class TextureBaker(torch.nn.Module):
    """Stateless. A texel's sample lies at its top left corner, as the original has it."""

    def rasterize(self, uv, face_indices, bake_resolution):
        """float32 [r, r, 4]: weights of the corners and the face's index, (0, 0, 0, -1) where there is none."""
        return bake.rasterize_uv(uv.detach(), face_indices, bake_resolution)

    def get_mask(self, rast):
        return rast[..., -1] >= 0

    def interpolate(self, attr, rast, face_indices):
        """float32 [r, r, c]; with a gradient for attr."""
        if torch.is_grad_enabled() and attr.requires_grad:
            face = rast[..., 3].long()
            values = attr[face_indices.long()[face.clamp_min(0)]] * rast[..., :3, None]
            return torch.where((face >= 0)[..., None], values.sum(-2), torch.zeros((), device=attr.device, dtype=attr.dtype))
        return bake.interpolate(attr.detach(), face_indices, rast)

    def forward(self, attr, uv, face_indices, bake_resolution):
        return self.interpolate(attr, self.rasterize(uv, face_indices, bake_resolution), face_indices)
