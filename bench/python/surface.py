#!/usr/bin/env python3
"""Marching cubes on the CPU, beside PyMCubes and scikit-image in the same run.

    FELLOE_LIBRARY=build/release/lib/libfelloe.so PYTHONPATH=python python3 bench/python/surface.py [n]

Each time is the smallest of 5 (scikit-image: of 1), arrays allocated inside. The field is a sphere pushed in and out by waves.
"""

import sys
import time

import numpy as np

from felloe import surface


def field(n):
    g = np.linspace(-1, 1, n, dtype=np.float32)
    z, y, x = np.meshgrid(g, g, g, indexing="ij")
    return np.sqrt(x * x + y * y + z * z) - 0.65 + 0.05 * np.sin(9 * x) * np.sin(8 * y) * np.sin(7 * z)


def least(call, runs=5):
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3, result


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    volume = field(n)
    ours, (vertices, faces) = least(lambda: surface.marching_cubes(volume))
    print("felloe        %8.1f ms  %d vertices, %d faces" % (ours, len(vertices), len(faces)))
    try:
        import mcubes

        ms, (v, f) = least(lambda: mcubes.marching_cubes(volume, 0))
        print("PyMCubes      %8.1f ms  %d vertices, %d faces: %.1fx" % (ms, len(v), len(f), ms / ours))
    except ImportError:
        print("PyMCubes is not installed")
    try:
        from skimage.measure import marching_cubes

        ms, (v, f, *_) = least(lambda: marching_cubes(volume, 0), 1)
        print("scikit-image  %8.1f ms  %d vertices, %d faces: %.1fx" % (ms, len(v), len(f), ms / ours))
    except ImportError:
        print("scikit-image is not installed")


if __name__ == "__main__":
    main()
