"""Stands in for torchmcubes where that is not installed: the interface of its version 0.1.0, computed by felloe. Vertices are shared and
the surface has no holes, on CPU and CUDA alike; see felloe.surface for more."""

from felloe import CudaError, surface

__version__ = "0.1.0"
__all__ = ["grid_interp", "marching_cubes"]


class _NoKernels(CudaError, AttributeError):
    """Callers of the original catch AttributeError when it was built without CUDA, and go on with vol.cpu()."""


def _or_attribute_error(call, *args, **options):
    try:
        return call(*args, **options)
    except CudaError as error:
        raise _NoKernels(str(error)) from None


def marching_cubes(vol, thresh):
    """[vertices, faces]: float32 [v, 3] as (x, y, z) in samples, int32 [f, 3] that wind from below thresh to above."""
    return list(_or_attribute_error(surface.marching_cubes, vol.detach(), thresh))


def grid_interp(vol, points):
    """float32 [p, c]: vol [c, d, h, w] at points (x, y, z) in samples."""
    if vol.device != points.device:
        raise ValueError("points: expected a tensor on %s, got one on %s" % (vol.device, points.device))
    return _or_attribute_error(surface.grid_sample, vol.detach(), points.detach())
