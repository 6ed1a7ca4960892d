"""Stands in for PyMCubes where that is not installed: marching_cubes and marching_cubes_func, computed by felloe."""

import numpy as np

from felloe import surface

__all__ = ["marching_cubes", "marching_cubes_func"]


def marching_cubes(volume, isovalue):
    """(vertices float64 [v, 3] along axes 0, 1, 2; triangles uint64 [f, 3]). A sample equal to isovalue is below."""
    volume = np.asarray(volume)
    if volume.ndim != 3:
        raise ValueError("expected a volume with 3 dimensions, got %d" % volume.ndim)
    volume = np.asarray(volume, np.float32)
    vertices, faces = surface.marching_cubes(volume, float(np.float32(isovalue)), inside="above", axis_order="xyz", equal_is_below=True)
    return vertices.astype(np.float64), faces.astype(np.uint64)


def marching_cubes_func(lower, upper, numx, numy, numz, f, isovalue):
    """marching_cubes of f(x, y, z) on a grid of numx x numy x numz samples from lower to upper, in the coordinates of f."""
    counts = (numx, numy, numz)
    if any(l >= u for l, u in zip(lower, upper)):
        raise ValueError("lower: expected each bound below its upper one, got %r and %r" % (tuple(lower), tuple(upper)))
    if any(n < 2 for n in counts):
        raise ValueError("expected at least 2 samples along each axis, got %r" % (counts,))
    axes = [np.linspace(l, u, n) for l, u, n in zip(lower, upper, counts)]
    volume = np.empty(counts, np.float32)
    for i, x in enumerate(axes[0]):
        for j, y in enumerate(axes[1]):
            for k, z in enumerate(axes[2]):
                volume[i, j, k] = f(x, y, z)
    vertices, faces = marching_cubes(volume, isovalue)
    step = [(u - l) / (n - 1) for l, u, n in zip(lower, upper, counts)]
    return vertices * step + np.asarray(lower, float), faces
