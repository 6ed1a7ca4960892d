"""Surfaces of volumes: marching cubes with shared vertices, and trilinear sampling, for torch tensors (CPU, CUDA) and numpy arrays.

    vertices, faces = marching_cubes(volume, 0.0)                        # signed distance: negative inside
    vertices, faces = marching_cubes(density, 25.0, inside="above")      # density: large inside
    colors = grid_sample(features, vertices)                             # features [c, d, h, w]

Volumes are [d, h, w], last axis x; vertices are (x, y, z) in samples. The mesh is a manifold for every input, closed unless it meets the
border (closed=True closes it there), and the same to the last bit on CPU and GPU. torch: vertices carry gradients to the volume.
"""

import ctypes

from . import _native
from ._native import InvalidArgument, check
from ._tensors import Torch, backend_of, slot

__all__ = ["grid_sample", "marching_cubes", "marching_cubes_slabs"]

_P, _I32, _I64 = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64
_F16, _F32, _INT32, _INT64 = (2, 16), (2, 32), (0, 32), (0, 64)


class _Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t)]
    _fields_ += [(name, _I32) for name in ("inside_above", "equal_is_below", "closed", "reverse_columns", "continued", "open")]
    _fields_ += [("first_plane", _I64), ("first_vertex", _I64)]


class _Size(ctypes.Structure):
    _fields_ = [("vertices", _I64), ("faces", _I64), ("next_vertex", _I64)]


def _call(name, *types):
    function = getattr(_native.lib, name)
    function.argtypes, function.restype = types, ctypes.c_int
    return function


_begin = _call("fel_surface_begin", _P, _P, ctypes.c_double, _P, _P, _P)
_emit = _call("fel_surface_emit", _P, _P, _P, _P)
_backward = _call("fel_surface_backward", _P, _P, _P)
_end = _native.lib.fel_surface_end
_end.argtypes, _end.restype = [_P], None
_sample = _call("fel_grid_sample", _P, _P, _P, _I32, _P)
_sample_backward = _call("fel_grid_sample_backward", _P, _P, _P, _P, _P)


def _take_volume(backend, volume, name):
    """float16 as it is, everything else in float32."""
    if isinstance(backend, Torch):
        torch = backend.torch
        if volume.dtype is torch.float16:
            return volume.detach().contiguous(), _F16
        return volume.detach().to(torch.float32).contiguous(), _F32
    np = backend.numpy
    if volume.dtype == np.float16:
        return np.ascontiguousarray(volume), _F16
    return backend.take(np.asarray(volume, np.float32), name), _F32


def _view(backend, array, dtype):
    if isinstance(backend, Torch):
        return slot(array.data_ptr(), backend.kind, backend.index, dtype, array.shape)
    return slot(array.__array_interface__["data"][0], _native.CPU, 0, dtype, array.shape)


def _empty_indices(backend, count, wide):
    if isinstance(backend, Torch):
        torch = backend.torch
        return torch.empty((count, 3), dtype=torch.int64 if wide else torch.int32, device=backend.device)
    np = backend.numpy
    return np.empty((count, 3), np.int64 if wide else np.int32)


class _Surface:
    """A counted surface: the C handle, and the volume that it reads from."""

    def __init__(self, backend, volume, level, options):
        self.backend, self.handle, self.size = backend, _P(), _Size()
        self.volume, dtype = _take_volume(backend, volume, "volume")
        view = _view(backend, self.volume, dtype)
        check(_begin(backend.context, view, level, ctypes.byref(options), ctypes.byref(self.handle), ctypes.byref(self.size)))

    def emit(self, wide, with_normals):
        if not wide and self.size.next_vertex > 2**31 - 1:
            raise OverflowError("faces: an index needs more than int32: ask for index_dtype='int64'")
        backend = self.backend
        vertices = backend.empty((self.size.vertices, 3))
        faces = _empty_indices(backend, self.size.faces, wide)
        normals = backend.empty((self.size.vertices, 3)) if with_normals else None
        check(
            _emit(
                self.handle,
                _view(backend, vertices, _F32),
                _view(backend, faces, _INT64 if wide else _INT32),
                None if normals is None else _view(backend, normals, _F32),
            )
        )
        return vertices, faces, normals

    def backward(self, grad_vertices):
        grad = self.backend.empty(tuple(self.volume.shape))
        check(_backward(self.handle, _view(self.backend, grad_vertices, _F32), _view(self.backend, grad, _F32)))
        return grad

    def __del__(self):
        if self.handle:
            _end(self.handle)
            self.handle = None


def _options(inside, equal_is_below, closed, axis_order):
    if inside not in ("below", "above"):
        raise InvalidArgument("inside: expected 'below' or 'above', got %r" % (inside,))
    if axis_order not in ("zyx", "xyz"):
        raise InvalidArgument("axis_order: expected 'zyx' (last axis is x) or 'xyz' (first axis is x), got %r" % (axis_order,))
    return _Options(
        size=ctypes.sizeof(_Options),
        inside_above=inside == "above",
        equal_is_below=bool(equal_is_below),
        closed=bool(closed),
        reverse_columns=axis_order == "xyz",
    )


def _wide(index_dtype):
    name = str(index_dtype).replace("torch.", "")
    name = getattr(index_dtype, "__name__", name)
    if name not in ("int32", "int64"):
        raise InvalidArgument("index_dtype: expected int32 or int64, got %r" % (index_dtype,))
    return name == "int64"


def _need_three(volume):
    if len(volume.shape) != 3:
        raise InvalidArgument("volume: expected 3 dimensions [d, h, w], got %s" % list(volume.shape))


_functions = {}


def _differentiable(torch):
    """torch.autograd's function, made when torch is there and a gradient is asked for."""
    if "surface" in _functions:
        return _functions["surface"]

    class MarchingCubes(torch.autograd.Function):
        @staticmethod
        def forward(ctx, volume, level, options, wide, with_normals):
            surface = _Surface(Torch(torch, volume.device), volume, level, options)
            vertices, faces, normals = surface.emit(wide, with_normals)
            ctx.surface, ctx.dtype = surface, volume.dtype
            ctx.mark_non_differentiable(faces, *([] if normals is None else [normals]))
            return vertices, faces, normals

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, grad, *_):
            return ctx.surface.backward(grad.to(torch.float32).contiguous()).to(ctx.dtype), None, None, None, None

    _functions["surface"] = MarchingCubes
    return MarchingCubes


def marching_cubes(
    volume,
    level=0.0,
    *,
    inside="below",
    closed=False,
    axis_order="zyx",
    equal_is_below=False,
    index_dtype="int32",
    return_normals=False,
    spacing=None,
    origin=None,
):
    """Vertices float32 [v, 3], faces [f, 3], and unit normals [v, 3] with return_normals.

    volume          [d, h, w]: float32 or float16 as it is, other numbers rounded to float32
    level           finite
    inside          which side is solid; normals and winding point out of it
    closed          close the surface where it meets the volume's border
    axis_order      "zyx": vertices are (x, y, z), x along the last axis; "xyz": columns in the order of the axes
    equal_is_below  a sample equal to the level counts as below
    index_dtype     int64 when more than 2^31 - 1 vertices are expected
    spacing, origin of the samples, three numbers in the order of the columns; vertices are origin + spacing * index
    """
    backend = backend_of(volume, "volume")
    _need_three(volume)
    options, wide, level = _options(inside, equal_is_below, closed, axis_order), _wide(index_dtype), float(level)
    if isinstance(backend, Torch) and volume.requires_grad and backend.torch.is_grad_enabled():
        vertices, faces, normals = _differentiable(backend.torch).apply(volume, level, options, wide, return_normals)
    else:
        vertices, faces, normals = _Surface(backend, volume, level, options).emit(wide, return_normals)
    vertices = _placed(backend, vertices, spacing, origin)
    return (vertices, faces, normals) if return_normals else (vertices, faces)


def _placed(backend, vertices, spacing, origin):
    for numbers, name in ((spacing, "spacing"), (origin, "origin")):
        if numbers is None:
            continue
        numbers = [float(n) for n in numbers]
        if len(numbers) != 3:
            raise InvalidArgument("%s: expected three numbers, got %d" % (name, len(numbers)))
        if isinstance(backend, Torch):
            numbers = backend.torch.tensor(numbers, dtype=vertices.dtype, device=vertices.device)
        else:
            numbers = backend.numpy.array(numbers, backend.float32)
        vertices = vertices * numbers if name == "spacing" else vertices + numbers
    return vertices


def marching_cubes_slabs(get_slab, shape, level=0.0, *, slab=64, inside="below", equal_is_below=False, index_dtype="int32"):
    """As marching_cubes, for a volume that is never whole: yields (vertices, faces) of one slab after the other.

    get_slab(first, last) gives the planes [first, last) along axis 0; three planes are asked for twice. What is yielded, put behind each
    other, is the whole volume's mesh bit for bit: indices count from the first vertex of all. Memory: one slab of `slab` planes, and
    1/4 byte for each of its samples.
    """
    depth, slab, wide = int(shape[0]), int(slab), _wide(index_dtype)
    if slab < 4:
        raise InvalidArgument("slab: expected at least 4 planes, got %d" % slab)
    options = _options(inside, equal_is_below, False, "zyx")
    first, next_vertex = 0, 0
    while True:
        last = min(first + slab, depth)
        planes = get_slab(first, last)
        if tuple(planes.shape) != (last - first,) + tuple(shape[1:]):
            raise InvalidArgument("get_slab: expected %s, got %s" % ([last - first] + list(shape[1:]), list(planes.shape)))
        options.continued, options.open = int(first > 0), int(last < depth)
        options.first_plane, options.first_vertex = first, next_vertex
        surface = _Surface(backend_of(planes, "slab"), planes, float(level), options)
        next_vertex = surface.size.next_vertex
        yield surface.emit(wide, False)[:2]
        if last == depth:
            return
        first = last - 3


def _grid_function(torch):
    if "grid" in _functions:
        return _functions["grid"]

    class GridSample(torch.autograd.Function):
        @staticmethod
        def forward(ctx, volume, points, extrapolate_below):
            ctx.save_for_backward(volume, points)
            ctx.extrapolate = extrapolate_below
            return _grid_sample(Torch(torch, volume.device), volume, points, extrapolate_below)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, grad):
            volume, points = ctx.saved_tensors
            grad = grad.to(torch.float32).contiguous()
            backend, grad_volume, grad_points = Torch(torch, volume.device), None, None
            if ctx.needs_input_grad[0]:
                grad_volume = _scatter(torch, volume, points, grad).to(volume.dtype)
            if ctx.needs_input_grad[1]:
                taken, dtype = _take_volume(backend, volume, "volume")
                p = backend.take(points, "points")
                out = backend.empty(tuple(p.shape))
                views = [_view(backend, a, d) for a, d in ((taken, dtype), (p, _F32), (grad, _F32), (out, _F32))]
                check(_sample_backward(backend.context, *views))
                grad_points = out.to(points.dtype)
            return grad_volume, grad_points, None

    _functions["grid"] = GridSample
    return GridSample


def _scatter(torch, volume, points, grad):
    """The gradient of grid_sample with respect to the volume: each point's eight weights, added where they came from."""
    sizes = torch.tensor(volume.shape[:0:-1], device=volume.device)
    p = torch.minimum(points.float().clamp_min(0), (sizes - 1).float())
    good = ~torch.isnan(p).any(1)
    low = torch.where(good[:, None], p, torch.zeros_like(p)).floor().long()
    fraction = torch.where(good[:, None], p - low, torch.zeros_like(p))
    out = torch.zeros((volume[0].numel(), volume.shape[0]), dtype=torch.float32, device=volume.device)
    for corner in range(8):
        bits = torch.tensor([corner & 1, corner >> 1 & 1, corner >> 2], device=volume.device)
        at = torch.minimum(low + bits, sizes - 1)
        weight = torch.where(bits.bool(), fraction, 1 - fraction).prod(1) * good
        out.index_add_(0, (at[:, 2] * sizes[1] + at[:, 1]) * sizes[0] + at[:, 0], grad.nan_to_num() * weight[:, None])
    return out.T.reshape(volume.shape)


def _grid_sample(backend, volume, points, extrapolate_below):
    taken, dtype = _take_volume(backend, volume, "volume")
    p = backend.take(points, "points")
    out = backend.empty((p.shape[0], taken.shape[0]))
    views = [_view(backend, a, d) for a, d in ((taken, dtype), (p, _F32), (out, _F32))]
    check(_sample(backend.context, views[0], views[1], int(bool(extrapolate_below)), views[2]))
    return out


def grid_sample(volume, points, *, extrapolate_below=False):
    """Trilinear samples float32 [p, c] of volume [c, d, h, w] at points [p, 3], (x, y, z) in samples.

    Outside the grid values are constant. extrapolate_below continues them linearly between -1 and 0, as older extensions do. torch: with
    gradients for points, and for the volume.
    """
    backend = backend_of(volume, "volume")
    if len(volume.shape) != 4 or len(points.shape) != 2 or points.shape[1] != 3:
        raise InvalidArgument(
            "volume, points: expected [c, d, h, w] and [p, 3], got %s and %s" % (list(volume.shape), list(points.shape))
        )
    if isinstance(backend, Torch) and backend.torch.is_grad_enabled() and (volume.requires_grad or points.requires_grad):
        return _grid_function(backend.torch).apply(volume, points, bool(extrapolate_below))
    return _grid_sample(backend, volume, points, extrapolate_below)
