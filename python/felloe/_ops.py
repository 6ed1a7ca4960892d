"""The calls of felloe/raster.h over arrays of one backend: shapes of results are known here, everything else is checked by the library."""

import ctypes

from . import _native
from ._native import InvalidArgument, check

_P, _I, _U, _F = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_float


class RasterizeOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("subpixel_bits", _I), ("below", _P), ("depth", _P)]


def _call(name, *types):
    function = getattr(_native.lib, name)
    function.argtypes = (_P,) + types
    function.restype = _I
    return function


_rasterize = _call("fel_rasterize", _P, _P, _P, _P, _P, _P)
_rasterize_backward = _call("fel_rasterize_backward", _P, _P, _P, _P, _P, _U, _P)
_interpolate = _call("fel_interpolate", _P, _P, _P, _P, _P, _P, _P)
_interpolate_backward = _call("fel_interpolate_backward", _P, _P, _P, _P, _P, _P, _P, _U, _P, _P, _P)
_texture_mips = _call("fel_texture_mips", _P, _P, _I)
_texture = _call("fel_texture", _P, _P, _I, _P, _P, _P, _I, _I, _P)
_texture_backward = _call("fel_texture_backward", _P, _P, _I, _P, _P, _P, _I, _I, _P, _U, _P, _P, _P, _P, _P)
_weld = _call("fel_weld", _P, _P)
_topology = _call("fel_antialias_topology", _P, _P, _P)
_antialias = _call("fel_antialias", _P, _P, _P, _P, _P, _P)
_antialias_backward = _call("fel_antialias_backward", _P, _P, _P, _P, _P, _P, _F, _U, _P, _P)
_level_count = _native.lib.fel_texture_level_count
_level_count.argtypes = [ctypes.c_int64, ctypes.c_int64, _I, ctypes.POINTER(_I)]

FILTERS = {"nearest": 0, "linear": 1, "linear-mipmap-nearest": 2, "linear-mipmap-linear": 3}
BOUNDARIES = {"wrap": 0, "clamp": 1, "zero": 2, "cube": 3}


def need_rank(name, array, ranks, text):
    if len(array.shape) not in ranks:
        raise InvalidArgument("%s: expected %s, got %s" % (name, text, list(array.shape)))


def _views(backend, *arrays):
    view = backend.view
    return [None if a is None else view(a) for a in arrays]


def _flags(backend):
    return 1 if backend.deterministic else 0


# ---- rasterize ----


def rasterize(backend, pos, tri, ranges, height, width, with_db=True, subpixel_bits=8, below=None, depth=None):
    need_rank("positions", pos, (3,) if ranges is None else (2,), "[n, v, 4], or [v, 4] with ranges")
    need_rank("triangles", tri, (2,), "[f, 3]")
    images = pos.shape[0] if ranges is None else ranges.shape[0]
    rast = backend.empty((images, height, width, 4))
    rast_db = backend.empty((images, height, width, 4)) if with_db else None
    options = None
    if below is not None or depth is not None or subpixel_bits != 8:
        views = _views(backend, below, depth)
        options = RasterizeOptions(
            ctypes.sizeof(RasterizeOptions),
            subpixel_bits,
            *[None if v is None else ctypes.addressof(v) for v in views],
        )
    p, t, r, d = _views(backend, pos, tri, rast, rast_db)
    host = None if ranges is None else backend.view_host(ranges)
    check(_rasterize(backend.context, p, t, host, None if options is None else ctypes.addressof(options), r, d))
    return rast, rast_db


def rasterize_backward(backend, pos, tri, rast, grad_rast, grad_db):
    grad = backend.empty(pos.shape)
    v = _views(backend, pos, tri, rast, grad_rast, grad_db)
    check(_rasterize_backward(backend.context, *v, _flags(backend), backend.view(grad)))
    return grad


# ---- interpolate ----


def interpolate(backend, attr, rast, tri, rast_db, selected):
    need_rank("attributes", attr, (2, 3), "[n, v, a], [1, v, a] or [v, a]")
    need_rank("rast", rast, (4,), "[n, h, w, 4]")
    shape = tuple(rast.shape[:3])
    out = backend.empty(shape + (attr.shape[-1],))
    out_da = None
    if rast_db is not None:
        out_da = backend.empty(shape + (2 * (attr.shape[-1] if selected is None else selected.shape[0]),))
    check(_interpolate(backend.context, *_views(backend, attr, rast, tri, rast_db, selected, out, out_da)))
    return out, out_da


def interpolate_backward(backend, attr, rast, tri, rast_db, selected, grad_out, grad_da, needs):
    grads = [backend.empty(a.shape) if need and a is not None else None for a, need in zip((attr, rast, rast_db), needs)]
    v = _views(backend, attr, rast, tri, rast_db, selected, grad_out, grad_da)
    check(_interpolate_backward(backend.context, *v, _flags(backend), *_views(backend, *grads)))
    return grads


# ---- texture ----


def level_count(height, width, limit=-1):
    """How many mip levels halving gives below the base."""
    count = _I()
    check(_level_count(height, width, limit, ctypes.byref(count)))
    return count.value


def _pointers(views):
    return (_P * len(views))(*[None if v is None else ctypes.addressof(v) for v in views]) if views else None


def level_shape(shape, level):
    """Of a texture's level: batch (and cube faces) and channels stay."""
    height, width = max(1, shape[-3] >> level), max(1, shape[-2] >> level)
    return tuple(shape[:-3]) + (height, width, shape[-1])


def texture_mips(backend, tex, count):
    levels = [backend.empty(level_shape(tex.shape, k + 1)) for k in range(count)]
    views = _views(backend, *levels)
    check(_texture_mips(backend.context, backend.view(tex), _pointers(views), count))
    return levels


def texture(backend, tex, levels, uv, uv_da, bias, filter_code, boundary):
    out = backend.empty(tuple(uv.shape[:3]) + (tex.shape[-1],))
    stack = _views(backend, *levels)
    t, u, d, b, o = _views(backend, tex, uv, uv_da, bias, out)
    check(_texture(backend.context, t, _pointers(stack), len(levels), u, d, b, filter_code, boundary, o))
    return out


def texture_backward(backend, tex, levels, own, uv, uv_da, bias, filter_code, boundary, grad_out, needs, level_needs):
    """own: the levels are the caller's and get gradients of their own."""
    grads = [backend.empty(a.shape) if need and a is not None else None for a, need in zip((tex, uv, uv_da, bias), needs)]
    level_grads = [backend.empty(a.shape) if need else None for a, need in zip(levels, level_needs)] if own else []
    stack, level_views = _views(backend, *levels), _views(backend, *level_grads)
    t, u, d, b, g = _views(backend, tex, uv, uv_da, bias, grad_out)
    gt, gu, gd, gb = _views(backend, *grads)
    check(
        _texture_backward(
            backend.context, t, _pointers(stack), len(levels), u, d, b, filter_code, boundary, g, _flags(backend),
            gt, _pointers(level_views), gu, gd, gb,
        )
    )
    return grads, level_grads


# ---- antialias ----


def weld(backend, pos):
    out = backend.empty((pos.shape[0],), integer=True)
    check(_weld(backend.context, backend.view(pos), backend.view(out)))
    return out


def topology(backend, tri, welded):
    need_rank("triangles", tri, (2,), "[f, 3]")
    out = backend.empty(tri.shape, integer=True)
    check(_topology(backend.context, *_views(backend, tri, welded, out)))
    return out


def antialias(backend, color, rast, pos, tri, topo):
    out = backend.empty(color.shape)
    check(_antialias(backend.context, *_views(backend, color, rast, pos, tri, topo, out)))
    return out


def antialias_backward(backend, color, rast, pos, tri, topo, grad_out, boost, needs):
    grads = [backend.empty(a.shape) if need else None for a, need in zip((color, pos), needs)]
    v = _views(backend, color, rast, pos, tri, topo, grad_out)
    check(_antialias_backward(backend.context, *v, boost, _flags(backend), *_views(backend, *grads)))
    return grads
