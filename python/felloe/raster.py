"""Differentiable rasterization for torch tensors, on the CPU or a CUDA device, and for numpy arrays.

    rast, rast_db = rasterize(positions, triangles, (height, width))
    uv, uv_da = interpolate(attributes, rast, triangles, rast_db)
    color = texture(image, uv, uv_da=uv_da)
    color = antialias(color, rast, positions, triangles)

Clip-space positions [n, v, 4], index buffers [f, 3]; row 0 of images and textures is the bottom one. rast is (u, v, z/w, triangle + 1) and an
ordinary array: it may be edited, merged and masked between calls. What each call does to the last bit is in felloe/raster.h.

torch: results carry gradients; float16 and bfloat16 attributes, textures and colors are computed in float32 and come back as they were.
torch.use_deterministic_algorithms(True) makes gradients the same on every run. numpy: forward calls only; gradients are the *_backward
functions of this module, which take and give arrays.
"""

from . import _ops
from ._native import InvalidArgument, InvalidType
from ._tensors import Torch, backend_of

__all__ = [
    "Mips",
    "antialias",
    "antialias_backward",
    "interpolate",
    "interpolate_backward",
    "mips",
    "peel",
    "rasterize",
    "rasterize_backward",
    "texture",
    "texture_backward",
    "topology",
]


def _resolution(resolution):
    try:
        height, width = (int(side) for side in resolution)
    except (TypeError, ValueError):
        raise InvalidArgument("resolution: expected (height, width), got %r" % (resolution,)) from None
    if height < 1 or width < 1:
        raise InvalidArgument("resolution: expected sides of at least 1, got (%d, %d)" % (height, width))
    return height, width


def _like(backend, result, array):
    """A result in half precision when the array had it; numpy's stay float32."""
    return result.to(array.dtype) if isinstance(backend, Torch) and result.dtype != array.dtype else result


def _given(take, array, name):
    return None if array is None else take(array, name)


def rasterize(
    positions, triangles, resolution, ranges=None, derivatives=True, subpixel_bits=8, below=None, depth=None, db_gradient=True
):
    """Which triangle is seen at each pixel, and where on it: (rast, rast_db), [n, h, w, 4] each.

    positions    [n, v, 4], or [v, 4] with ranges
    ranges       int32 [n, 2] in host memory: image i draws triangles first .. first + count - 1
    derivatives  False: rast_db is None
    below/depth  int32 [n, h, w]; see peel()
    db_gradient  False: gradients of rast_db are dropped
    """
    height, width = _resolution(resolution)
    backend = backend_of(positions, "positions")
    if ranges is not None:
        ranges = backend.host(ranges, "ranges", integer=True)
        _ops.need_rank("ranges", ranges, (2,), "int32 [n, 2]")
    positions, triangles = backend.track(positions, "positions"), backend.take(triangles, "triangles", integer=True)
    settings = (height, width, derivatives, subpixel_bits, below, depth)
    if backend.records(positions):
        from ._autograd import Rasterize

        return Rasterize.apply(positions, triangles, backend, ranges, db_gradient, settings)
    return _ops.rasterize(backend, positions, triangles, ranges, *settings)


def rasterize_backward(positions, triangles, rast, grad_rast, grad_rast_db=None):
    """The gradient with respect to positions; numpy."""
    backend = backend_of(positions, "positions")
    arrays = [backend.take(a, n) for a, n in ((positions, "positions"), (rast, "rast"), (grad_rast, "grad_rast"))]
    grad_rast_db = None if grad_rast_db is None else backend.take(grad_rast_db, "grad_rast_db")
    triangles = backend.take(triangles, "triangles", integer=True)
    return _ops.rasterize_backward(backend, arrays[0], triangles, arrays[1], arrays[2], grad_rast_db)


def peel(positions, triangles, resolution, layers, ranges=None, derivatives=True):
    """Yields (rast, rast_db) of the nearest surface, then of the next one behind, and so on; background after the last."""
    height, width = _resolution(resolution)
    backend = backend_of(positions, "positions")
    images = positions.shape[0] if ranges is None else ranges.shape[0]
    depth = backend.empty((images, height, width), integer=True)
    below = None
    for _ in range(layers):
        yield rasterize(positions, triangles, (height, width), ranges, derivatives, below=below, depth=depth)
        below = depth


def interpolate(attributes, rast, triangles, rast_db=None, selected=None):
    """Vertex attributes at each pixel: (out, out_da), out_da being None without rast_db.

    attributes  [n, v, a], [1, v, a] or [v, a]
    selected    None: all attributes get derivatives; else a list of attribute numbers
    """
    backend = backend_of(attributes, "attributes")
    if selected is not None:
        selected = _selection(backend, selected, attributes.shape[-1])
    taken, rast = backend.track(attributes, "attributes"), backend.track(rast, "rast")
    triangles = backend.take(triangles, "triangles", integer=True)
    rast_db = _given(backend.track, rast_db, "rast_db")
    if backend.records(taken, rast, rast_db):
        from ._autograd import Interpolate

        out, out_da = Interpolate.apply(taken, rast, rast_db, triangles, backend, selected)
    else:
        out, out_da = _ops.interpolate(backend, taken, rast, triangles, rast_db, selected)
    return _like(backend, out, attributes), None if out_da is None else _like(backend, out_da, attributes)


_selections = {}  # (device, numbers) -> tensor: sending a list to a GPU would wait for it on every call


def _selection(backend, selected, count):
    numbers = [int(k) for k in selected]
    for k in numbers:
        if not -count <= k < count:
            raise InvalidArgument("selected: expected attribute numbers from %d to %d, got %d" % (-count, count - 1, k))
    numbers = [k % count for k in numbers]
    if isinstance(backend, Torch):
        key = (backend.kind, backend.index, *numbers)
        if key not in _selections:
            if len(_selections) >= 64:
                _selections.clear()
            _selections[key] = backend.torch.tensor(numbers, dtype=backend.torch.int32, device=backend.device)
        return _selections[key]
    return backend.take(backend.numpy.array(numbers, dtype="int32"), "selected", integer=True)


def interpolate_backward(attributes, rast, triangles, grad_out, rast_db=None, selected=None, grad_out_da=None):
    """(gradient to attributes, to rast, to rast_db or None); numpy."""
    backend = backend_of(attributes, "attributes")
    attributes, rast, grad_out = (
        backend.take(a, n) for a, n in ((attributes, "attributes"), (rast, "rast"), (grad_out, "grad_out"))
    )
    rast_db = _given(backend.take, rast_db, "rast_db")
    grad_out_da = None if grad_out_da is None else backend.take(grad_out_da, "grad_out_da")
    selected = None if selected is None else _selection(backend, selected, attributes.shape[-1])
    triangles = backend.take(triangles, "triangles", integer=True)
    needs = (True, True, grad_out_da is not None)
    return tuple(_ops.interpolate_backward(backend, attributes, rast, triangles, rast_db, selected, grad_out, grad_out_da, needs))


# ---- texture ----


class Mips:
    """A texture's mip levels, made once and used for many lookups. Gradients flow on to the texture that is looked up. The levels are those
    of the texture when mips() was called."""

    def __init__(self, levels, shape):
        self.levels, self.shape = levels, tuple(shape)


def mips(image, max_level=None):
    """The mip levels of a texture [n, h, w, c] or of a cube [n, 6, s, s, c], below it. max_level: None, down to 1 x 1; 'max', as far as sides
    can be halved; a number, at most so many."""
    backend = backend_of(image, "texture")
    _ops.need_rank("texture", image, (4, 5), "[n, h, w, c] or [n, 6, s, s, c]")
    levels = _ops.texture_mips(backend, backend.take(image, "texture"), _level_limit(image, max_level))
    return Mips(levels, image.shape)


def _level_limit(image, max_level):
    height, width = image.shape[-3], image.shape[-2]
    if max_level == "max":
        count = 0
        while (height > 1 or width > 1) and not (height > 1 and height % 2) and not (width > 1 and width % 2):
            height, width, count = max(1, height // 2), max(1, width // 2), count + 1
        return count
    if max_level is not None and (isinstance(max_level, bool) or not isinstance(max_level, int) or max_level < 0):
        raise InvalidArgument("max_level: expected None, 'max' or a number of at least 0, got %r" % (max_level,))
    return _ops.level_count(height, width, -1 if max_level is None else max_level)


def _code(name, value, table):
    if value not in table:
        raise InvalidArgument("%s: expected one of %s, got %r" % (name, ", ".join(repr(k) for k in table), value))
    return table[value]


def texture(image, uv, uv_da=None, bias=None, mips=None, filter="auto", boundary="wrap", max_level=None):
    """Texture lookups, [n, h, w, c].

    image     [n or 1, h, w, c]; with boundary 'cube' [n or 1, 6, s, s, c]
    uv        [n, h, w, 2]; cube: directions, [n, h, w, 3]
    uv_da     [n, h, w, 4 or 6], as interpolate() gives it
    bias      [n, h, w], added to the level; without uv_da it is the level
    mips      Mips, or a list of levels of the caller's own, the base not among them; None makes them where they are needed
    filter    'auto' (mipmaps when uv_da or bias are given), 'nearest', 'linear', 'linear-mipmap-nearest', 'linear-mipmap-linear'
    boundary  'wrap', 'clamp', 'zero', 'cube'
    """
    if filter == "auto":
        filter = "linear" if uv_da is None and bias is None else "linear-mipmap-linear"
    codes = (_code("filter", filter, _ops.FILTERS), _code("boundary", boundary, _ops.BOUNDARIES))
    backend = backend_of(image, "texture")
    _ops.need_rank("texture", image, (5,) if boundary == "cube" else (4,), "[n, 6, s, s, c]" if boundary == "cube" else "[n, h, w, c]")
    _ops.need_rank("uv", uv, (4,), "[n, h, w, 3]" if boundary == "cube" else "[n, h, w, 2]")
    levels, own = (), False
    if codes[0] < 2 or max_level == 0:
        uv_da = bias = None
        codes = (min(codes[0], 1), codes[1])
    else:
        if uv_da is None and bias is None:
            raise InvalidArgument("filter: %r needs uv_da or bias" % filter)
        levels, own = _stack(backend, image, mips, max_level)
    taken, uv = backend.track(image, "texture"), backend.track(uv, "uv")
    uv_da, bias = _given(backend.track, uv_da, "uv_da"), _given(backend.track, bias, "bias")
    levels = [backend.track(level, "mips[%d]" % k) for k, level in enumerate(levels)]
    if backend.records(taken, uv, uv_da, bias, *levels):
        from ._autograd import Texture

        out = Texture.apply(taken, uv, uv_da, bias, backend, codes, own, *levels)
    else:
        out = _ops.texture(backend, taken, levels, uv, uv_da, bias, *codes)
    return _like(backend, out, image)


def _stack(backend, image, given, max_level):
    """The levels below the base, and whether they are the caller's own."""
    if given is None:
        count = _level_limit(image, max_level)
        return _ops.texture_mips(backend, backend.take(image, "texture"), count), False
    if isinstance(given, Mips):
        if given.shape != tuple(image.shape):
            raise InvalidArgument("mips: made for a texture %s, got a texture %s" % (list(given.shape), list(image.shape)))
        return given.levels, False
    if not isinstance(given, (list, tuple)):
        raise InvalidType("mips: expected Mips or a list of levels, got %s" % type(given).__name__)
    if not given:
        raise InvalidArgument("mips: expected at least one level, got an empty list")
    for k, level in enumerate(given):
        previous = _ops.level_shape(image.shape, k)
        if previous[-3] == previous[-2] == 1:
            raise InvalidArgument("mips[%d]: expected no level after 1 x 1" % k)
        expected = _ops.level_shape(image.shape, k + 1)
        if tuple(level.shape) != expected:
            raise InvalidArgument("mips[%d]: expected %s, got %s" % (k, list(expected), list(level.shape)))
    return given, True


def texture_backward(image, uv, grad_out, uv_da=None, bias=None, mips=None, filter="linear", boundary="wrap", max_level=None):
    """(gradients to image, uv, uv_da, bias; None where there is none), [gradients of mips, if these were a list]; numpy."""
    codes = (_code("filter", filter, _ops.FILTERS), _code("boundary", boundary, _ops.BOUNDARIES))
    backend = backend_of(image, "texture")
    image, uv, grad_out = (backend.take(a, n) for a, n in ((image, "texture"), (uv, "uv"), (grad_out, "grad_out")))
    uv_da, bias = _given(backend.take, uv_da, "uv_da"), _given(backend.take, bias, "bias")
    levels, own = ((), False) if codes[0] < 2 else _stack(backend, image, mips, max_level)
    levels = [backend.take(level, "mips[%d]" % k) for k, level in enumerate(levels)]
    grads, level_grads = _ops.texture_backward(
        backend, image, levels, own, uv, uv_da, bias, *codes, grad_out, (True,) * 4, (True,) * len(levels)
    )
    return tuple(grads), level_grads


# ---- antialias ----


def topology(triangles, weld_positions=None):
    """Which triangles share an edge; may be kept for any number of calls with these triangles. weld_positions [v, 4]: vertices at one place
    count as one, for meshes whose seams duplicate them."""
    backend = backend_of(triangles, "triangles")
    welded = None
    if weld_positions is not None:
        _ops.need_rank("weld_positions", weld_positions, (2,), "[v, 4]")
        welded = _ops.weld(backend, backend.take(weld_positions, "weld_positions"))
    return _ops.topology(backend, backend.take(triangles, "triangles", integer=True), welded)


def antialias(color, rast, positions, triangles, topology=None, boost=1.0):
    """color [n, h, w, c] with the coverage of pixels that silhouettes cut. topology: of topology(), made here when None. boost multiplies the
    gradient to positions. The result is not clamped."""
    backend = backend_of(color, "color")
    triangles = backend.take(triangles, "triangles", integer=True)
    topology = _ops.topology(backend, triangles, None) if topology is None else backend.take(topology, "topology", integer=True)
    taken, positions = backend.track(color, "color"), backend.track(positions, "positions")
    rast = backend.take(rast, "rast")
    if backend.records(taken, positions):
        from ._autograd import Antialias

        out = Antialias.apply(taken, positions, rast, triangles, topology, backend, float(boost))
    else:
        out = _ops.antialias(backend, taken, rast, positions, triangles, topology)
    return _like(backend, out, color)


def antialias_backward(color, rast, positions, triangles, grad_out, topology=None, boost=1.0):
    """(gradient to color, to positions); numpy."""
    backend = backend_of(color, "color")
    color, rast, positions, grad_out = (
        backend.take(a, n)
        for a, n in ((color, "color"), (rast, "rast"), (positions, "positions"), (grad_out, "grad_out"))
    )
    triangles = backend.take(triangles, "triangles", integer=True)
    topology = _ops.topology(backend, triangles, None) if topology is None else backend.take(topology, "topology", integer=True)
    return tuple(
        _ops.antialias_backward(backend, color, rast, positions, triangles, topology, grad_out, float(boost), (True, True))
    )
