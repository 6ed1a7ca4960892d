"""felloe: 3D operators that fit everywhere. One C library, called through ctypes: nothing here is tied to a version of Python, of torch or of
CUDA.

    felloe.raster    differentiable rasterization for torch tensors (CPU, CUDA) and numpy arrays
    felloe.surface   marching cubes, trilinear sampling
    felloe.bake      textures from meshes: coverage, attributes, gutters, inpainting
    felloe.asset     GLB, OBJ, PLY, STL, .splat and PNG files
    felloe.dropin    importing it lets 'import nvdiffrast.torch' work where that package is absent

torch and numpy are used when the caller brings their arrays, and never needed to import this package.
"""

from ._native import CudaError, FelloeError, InvalidArgument, InvalidType, OutOfMemory, library_path, set_log, version

__version__ = "0.1.0"
__all__ = [
    "CudaError",
    "FelloeError",
    "InvalidArgument",
    "InvalidType",
    "OutOfMemory",
    "library_path",
    "set_log",
    "version",
]
