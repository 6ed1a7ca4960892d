"""From attributes on a mesh to pixels of a texture, for torch tensors (CPU, CUDA) and numpy arrays.

    rast = rasterize_uv(uvs, faces, 1024)                     # [h, w, 4]: barycentric weights, face or -1
    image = interpolate(colors, faces, rast)                  # [h, w, c]
    image, known = gutter(image, rast[..., 3] >= 0)           # so that filtering doesn't bleed between islands

Row 0 of images is the top; v of texture coordinates points up. What each call does to the last bit is in felloe/bake.h.
"""

import ctypes

from . import _native
from ._native import InvalidArgument, check
from ._tensors import Torch, backend_of, slot

__all__ = ["gutter", "inpaint", "interpolate", "rasterize_uv", "rasterize_view"]

_P, _I = ctypes.c_void_p, ctypes.c_int32


def _call(name, *types):
    function = getattr(_native.lib, name)
    function.argtypes, function.restype = (_P,) + types, ctypes.c_int
    return function


_uv = _call("fel_bake_uv", _P, _P, _I, _P)
_view_faces = _call("fel_bake_view", _P, _P, _P, _P, _P)
_interpolate = _call("fel_bake_interpolate", _P, _P, _P, _P, _P, _P)
_nearest = _call("fel_bake_gutter_nearest", _P, _P, _I)
_smooth = _call("fel_bake_gutter_smooth", _P, _P)
_grow = _call("fel_bake_gutter_grow", _P, _P, _I)
_inpaint = _call("fel_bake_inpaint", _P, _P, _P, _P, _P, _P, _I, _P, _P, _P, _P)

SAMPLES = {"corner": 0, "center": 1, "ends": 2}


def _sides(size):
    try:
        height, width = (int(size), int(size)) if not hasattr(size, "__len__") else (int(n) for n in size)
    except (TypeError, ValueError):
        raise InvalidArgument("size: expected a number or (height, width), got %r" % (size,)) from None
    if height < 1 or width < 1:
        raise InvalidArgument("size: expected at least 1, got %r" % (size,))
    return height, width


def _bytes_view(backend, array):
    if isinstance(backend, Torch):
        return slot(array.data_ptr(), backend.kind, backend.index, (1, 8), array.shape)
    return slot(array.__array_interface__["data"][0], _native.CPU, 0, (1, 8), array.shape)


def rasterize_uv(uvs, faces, size, *, sample="corner"):
    """float32 [h, w, 4]: the weights of the corners of the face that covers each texel, and its index; (0, 0, 0, -1) for none.

    sample: where a texel lies: "corner" u = c / w, "center" u = (c + 0.5) / w as viewers sample, "ends" u = c / (w - 1).
    Of overlapping faces the lowest index wins.
    """
    backend = backend_of(uvs, "uvs")
    height, width = _sides(size)
    if sample not in SAMPLES:
        raise InvalidArgument("sample: expected one of %s, got %r" % (", ".join(sorted(SAMPLES)), sample))
    uvs, faces = backend.take(uvs, "uvs"), backend.take(faces, "faces", integer=True)
    rast = backend.empty((height, width, 4))
    check(_uv(backend.context, backend.view(uvs), backend.view(faces), SAMPLES[sample], backend.view(rast)))
    return rast


def rasterize_view(positions, faces, size, *, behind=None):
    """(int32 [h, w]: face + 1 or 0; float32 [h, w, 3]: perspective-correct weights) of clip-space positions [v, 4]."""
    backend = backend_of(positions, "positions")
    height, width = _sides(size)
    positions, faces = backend.take(positions, "positions"), backend.take(faces, "faces", integer=True)
    behind = None if behind is None else backend.take(behind, "behind")
    indices, weights = backend.empty((height, width), integer=True), backend.empty((height, width, 3))
    view = backend.view
    check(
        _view_faces(
            backend.context, view(positions), view(faces), None if behind is None else view(behind), view(indices), view(weights)
        )
    )
    return indices, weights


def interpolate(attributes, faces, rast=None, *, indices=None, weights=None):
    """float32 [h, w, c] of attributes [v, c] at the texels of rasterize_uv (rast) or rasterize_view (indices, weights); 0 where no face is."""
    backend = backend_of(attributes, "attributes")
    if (rast is None) == (indices is None) or (indices is None) != (weights is None):
        raise InvalidArgument("expected rast, or indices and weights")
    attributes, faces = backend.take(attributes, "attributes"), backend.take(faces, "faces", integer=True)
    given = [None if a is None else backend.take(a, n) for a, n in ((rast, "rast"), (weights, "weights"))]
    found = None if indices is None else backend.take(indices, "indices", integer=True)
    shape = (rast if rast is not None else indices).shape
    out = backend.empty((shape[0], shape[1], attributes.shape[-1]))
    view = lambda a: None if a is None else backend.view(a)  # noqa: E731
    check(
        _interpolate(backend.context, view(attributes), view(faces), view(given[0]), view(found), view(given[1]), view(out))
    )
    return out


def _copies(backend, image, mask):
    if isinstance(backend, Torch):
        torch = backend.torch
        image = backend.take(image, "image").clone()
        return image, (mask > 0).to(torch.uint8).mul_(255).contiguous()
    np = backend.numpy
    return np.array(image, np.float32, order="C"), np.ascontiguousarray(np.where(np.asarray(mask) > 0, 255, 0).astype(np.uint8))


def gutter(image, mask, *, method="nearest", reach=None):
    """(image, mask): copies in which texels round the known ones (mask > 0) are filled.

    "nearest": up to reach texels away (default max(4, side / 128)), each the nearest known one. "smooth": all of them, by a pyramid of
    averages. "grow": reach rings (default side // 150), each a mean of its neighbourhood.
    """
    backend = backend_of(image, "image")
    image, mask = _copies(backend, image, mask)
    if len(image.shape) != 3 or tuple(mask.shape) != tuple(image.shape[:2]):
        raise InvalidArgument(
            "image, mask: expected [h, w, c] and [h, w], got %s and %s" % (list(image.shape), list(mask.shape))
        )
    side = max(image.shape[0], image.shape[1])
    views = backend.view(image), _bytes_view(backend, mask)
    if method == "nearest":
        check(_nearest(backend.context, *views, max(4, side // 128) if reach is None else int(reach)))
    elif method == "grow":
        check(_grow(backend.context, *views, side // 150 if reach is None else int(reach)))
    elif method == "smooth":
        check(_smooth(backend.context, *views))
        mask[...] = 255
    else:
        raise InvalidArgument("method: expected nearest, smooth or grow, got %r" % (method,))
    return image, mask


def inpaint(texture, mask, positions, uvs, faces, uv_faces, *, method="smooth"):
    """Known texels (mask > 0) spread over the mesh's vertices: (texture, mask, colors [v, c], state [v]: 1 known, 2 reached, 0 not).

    numpy arrays: the sweeps go in order, on the CPU. method "smooth" or "forward". Indices that do not exist are an IndexError.
    """
    import numpy as np

    if method not in ("smooth", "forward"):
        raise InvalidArgument("method: expected 'smooth' or 'forward', got %r" % (method,))
    texture = np.ascontiguousarray(texture, np.float32)
    mask = np.ascontiguousarray(mask, np.uint8)
    backend = backend_of(texture, "texture")
    positions, uvs = (backend.take(np.asarray(a, np.float32), n) for a, n in ((positions, "positions"), (uvs, "uvs")))
    faces, uv_faces = (backend.take(np.asarray(a), n, integer=True) for a, n in ((faces, "faces"), (uv_faces, "uv_faces")))
    for indices, count, name in ((faces, len(positions), "faces"), (uv_faces, len(uvs), "uv_faces")):
        if indices.size and (indices.min() < 0 or indices.max() >= count):
            raise IndexError("%s: expected indices in [0, %d), got %d to %d" % (name, count, indices.min(), indices.max()))
    new_texture, new_mask = np.empty_like(texture), np.empty_like(mask)
    colors, state = np.empty((len(positions), texture.shape[-1]), np.float32), np.empty(len(positions), np.uint8)
    view, bytes_view = backend.view, lambda a: _bytes_view(backend, a)
    check(
        _inpaint(
            backend.context, view(texture), bytes_view(mask), view(positions), view(uvs), view(faces), view(uv_faces),
            int(method == "forward"), view(colors), bytes_view(state), view(new_texture), bytes_view(new_mask),
        )
    )
    return new_texture, new_mask, colors, state
