"""The names, signatures and results of nvdiffrast.torch, computed by felloe.raster: also on the CPU, also for non-contiguous and half-precision
tensors, and without the original's limits of size. Errors are the classes that callers of the original may catch, and ValueError or TypeError."""

import sys
import warnings

import torch

from felloe import InvalidArgument, InvalidType, raster, set_log

__all__ = [
    "DepthPeeler",
    "RasterizeCudaContext",
    "RasterizeGLContext",
    "antialias",
    "antialias_construct_topology_hash",
    "get_log_level",
    "interpolate",
    "rasterize",
    "set_log_level",
    "texture",
    "texture_construct_mip",
]


class _Value(InvalidArgument, AssertionError):
    pass


class _Type(InvalidType, AssertionError):
    pass


class _Name(InvalidArgument, KeyError):
    def __str__(self):  # KeyError's would quote the message
        return self.args[0]


def _tensor(name, value):
    if not isinstance(value, torch.Tensor):
        raise _Type("%s: expected a torch tensor, got %s" % (name, type(value).__name__))
    return value


def _flag(name, value):
    if value is not True and value is not False:
        raise _Type("%s: expected True or False, got %r" % (name, value))
    return value


_level = 1


def get_log_level():
    return _level


def set_log_level(level):
    """0 info, 1 warning, 2 error, 3 fatal. Only at 0 there is something to say: which kernels are loaded or compiled."""
    global _level
    _level = level
    set_log((lambda _, text: print("felloe: " + text, file=sys.stderr)) if level <= 0 else None)


class RasterizeCudaContext:
    """Holds nothing but the device it was made for: memory is torch's, for the time of a call. With None, or on a machine without a GPU, it
    serves tensors wherever they lie. CUDA is not touched before tensors on it come in."""

    def __init__(self, device=None):
        if device is not None:
            device = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
        self.device = device
        self.active_depth_peeler = None

    def _serve(self, tensor):
        index = None if self.device is None else self.device.index
        if tensor.is_cuda and index is not None and index != tensor.device.index:
            raise InvalidArgument("pos: expected a tensor on %s as the context, got one on %s" % (self.device, tensor.device))


class RasterizeGLContext(RasterizeCudaContext):
    """There is no OpenGL in this: the same as RasterizeCudaContext."""

    def __init__(self, output_db=True, mode="automatic", device=None):
        warnings.warn("RasterizeGLContext is RasterizeCudaContext under its old name", DeprecationWarning, stacklevel=2)
        super().__init__(device)

    def set_context(self):
        pass

    def release_context(self):
        pass


def _check_rasterize(glctx, pos, tri, ranges, grad_db):
    if not isinstance(glctx, RasterizeCudaContext):
        raise _Type("glctx: expected a RasterizeCudaContext, got %s" % type(glctx).__name__)
    _flag("grad_db", grad_db)
    _tensor("tri", tri)
    glctx._serve(_tensor("pos", pos))
    if pos.dim() not in (2, 3):
        raise InvalidArgument("pos: expected [N, V, 4], or [V, 4] with ranges, got %s" % list(pos.shape))
    if ranges is not None:
        _tensor("ranges", ranges)
        if ranges.is_cuda or ranges.dtype is not torch.int32:
            raise InvalidArgument("ranges: expected int32 on the CPU, got %s on %s" % (ranges.dtype, ranges.device))
    elif pos.dim() == 2:
        raise InvalidArgument("ranges: expected int32 [N, 2] on the CPU, as pos is [V, 4] (range mode), got None")


def rasterize(glctx, pos, tri, resolution, ranges=None, grad_db=True):
    _check_rasterize(glctx, pos, tri, ranges, grad_db)
    if glctx.active_depth_peeler is not None:
        raise RuntimeError("rasterize: a DepthPeeler is open on this context")
    return raster.rasterize(pos, tri, resolution, ranges if pos.dim() == 2 else None, db_gradient=grad_db)


class DepthPeeler:
    def __init__(self, glctx, pos, tri, resolution, ranges=None, grad_db=True):
        _check_rasterize(glctx, pos, tri, ranges, grad_db)
        self._context = glctx
        self._arguments = (pos, tri, resolution, ranges if pos.dim() == 2 else None)
        self._grad_db = grad_db
        self._depth = None
        self._layers = 0

    def __enter__(self):
        if self._context is None:
            raise RuntimeError("DepthPeeler: it was closed and cannot be entered again")
        if self._context.active_depth_peeler is not None:
            raise RuntimeError("DepthPeeler: another one is open on this context")
        self._context.active_depth_peeler = self
        return self

    def __exit__(self, *_):
        self._context.active_depth_peeler = None
        self._context = self._arguments = self._depth = None

    def rasterize_next_layer(self):
        if self._context is None or self._context.active_depth_peeler is not self:
            raise RuntimeError("rasterize_next_layer: call it inside of 'with DepthPeeler(...)'")
        pos, tri, resolution, ranges = self._arguments
        if self._depth is None:
            images = pos.shape[0] if ranges is None else ranges.shape[0]
            self._depth = torch.empty((images, *(int(side) for side in resolution)), dtype=torch.int32, device=pos.device)
        below = self._depth if self._layers else None
        self._layers += 1
        return raster.rasterize(pos, tri, resolution, ranges, below=below, depth=self._depth, db_gradient=self._grad_db)


def interpolate(attr, rast, tri, rast_db=None, diff_attrs=None):
    for name, value in (("attr", attr), ("rast", rast), ("tri", tri)):
        _tensor(name, value)
    every = isinstance(diff_attrs, str) and diff_attrs == "all"
    if not every and (diff_attrs is None or len(diff_attrs) == 0):
        out, _ = raster.interpolate(attr, rast, tri)
        return out, out.new_empty(tuple(out.shape[:3]) + (0,))
    if rast_db is None:
        raise _Value("rast_db: diff_attrs needs it, got None")
    return raster.interpolate(attr, rast, tri, _tensor("rast_db", rast_db), None if every else diff_attrs)


def _max_level(max_mip_level):
    if max_mip_level is None or max_mip_level == "max":
        return max_mip_level
    max_mip_level = int(max_mip_level)
    if max_mip_level < 0:
        raise _Value("max_mip_level: expected at least 0, got %d" % max_mip_level)
    return max_mip_level


_FILTERS = ("auto", "nearest", "linear", "linear-mipmap-nearest", "linear-mipmap-linear")
_BOUNDARIES = ("wrap", "clamp", "zero", "cube")


def texture(
    tex, uv, uv_da=None, mip_level_bias=None, mip=None, filter_mode="auto", boundary_mode="wrap", max_mip_level=None
):
    _tensor("tex", tex)
    _tensor("uv", uv)
    for name, value in (("uv_da", uv_da), ("mip_level_bias", mip_level_bias)):
        if value is not None:
            _tensor(name, value)
    for name, value, valid in (("filter_mode", filter_mode, _FILTERS), ("boundary_mode", boundary_mode, _BOUNDARIES)):
        if value not in valid:
            raise _Name("%s: expected one of %s, got %r" % (name, ", ".join(valid), value))
    if mip is not None and not isinstance(mip, (raster.Mips, list, tuple)):
        raise _Type("mip: expected what texture_construct_mip returned or a list of tensors, got %s" % type(mip).__name__)
    max_mip_level = _max_level(max_mip_level)
    if "mipmap" in filter_mode and max_mip_level != 0 and uv_da is None and mip_level_bias is None:
        raise _Value("filter_mode: %s needs uv_da or mip_level_bias" % filter_mode)
    return raster.texture(tex, uv, uv_da, mip_level_bias, mip, filter_mode, boundary_mode, max_mip_level)


def texture_construct_mip(tex, max_mip_level=None, cube_mode=False):
    _tensor("tex", tex)
    if tex.dim() != (5 if _flag("cube_mode", cube_mode) else 4):
        raise InvalidArgument("tex: expected %s, got %s" % ("[N, 6, S, S, C]" if cube_mode else "[N, H, W, C]", list(tex.shape)))
    return raster.mips(tex.detach(), _max_level(max_mip_level))


def antialias(color, rast, pos, tri, topology_hash=None, pos_gradient_boost=1.0):
    for name, value in (("color", color), ("rast", rast), ("pos", pos), ("tri", tri)):
        _tensor(name, value)
    if topology_hash is not None:
        _tensor("topology_hash", topology_hash)
    return raster.antialias(color, rast, pos, tri, topology_hash, pos_gradient_boost)


def antialias_construct_topology_hash(tri, pos=None):
    """pos [V, 4], which the original does not have: vertices at one place count as one."""
    return raster.topology(_tensor("tri", tri), pos)
