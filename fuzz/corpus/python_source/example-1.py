import numpy as np
import torch
import trimesh

import texture_baker


def bake_mesh(image):
    baker = texture_baker.TextureBaker()
    uv = torch.rand(64, 2, device="cuda")
    faces = torch.randint(0, 64, (32, 3), device="cuda", dtype=torch.int32)
    rast = baker.rasterize(uv, faces, 256)
    baker.get_mask(rast)
    return trimesh.Trimesh(np.random.rand(64, 3), faces.cpu().numpy())
