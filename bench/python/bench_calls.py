"""What a call costs in Python beyond the work itself: one triangle on one pixel, so that nothing but the way there and back is left.

    python3 bench/python/bench_calls.py            (felloe installed, or FELLOE_LIBRARY and PYTHONPATH set)

Prints the median of 20 batches, microseconds a call.
"""

import statistics
import time

from felloe import raster


def measure(name, call, check, synchronize=lambda: None):
    assert check(call()), name
    batch, times = 200, []
    for _ in range(20):
        synchronize()
        start = time.perf_counter()
        for _ in range(batch):
            call()
        times.append((time.perf_counter() - start) / batch * 1e6)
        synchronize()
    print("%-34s %7.1f us   %.1f .. %.1f" % (name, statistics.median(times), min(times), max(times)))


def cases(title, pos, tri, attr, image, synchronize=lambda: None):
    rast, db = raster.rasterize(pos, tri, (1, 1))
    uv, da = raster.interpolate(attr, rast, tri, db)
    topology = raster.topology(tri)
    measure(title + " rasterize", lambda: raster.rasterize(pos, tri, (1, 1)), lambda r: r[0][0, 0, 0, 3] == 1, synchronize)
    measure(title + " interpolate", lambda: raster.interpolate(attr, rast, tri, db), lambda r: r[0].shape == uv.shape, synchronize)
    measure(title + " texture, linear", lambda: raster.texture(image, uv), lambda r: r.shape[-1] == 3, synchronize)
    color = raster.texture(image, uv)
    measure(title + " antialias", lambda: raster.antialias(color, rast, pos, tri, topology), lambda r: r.shape == color.shape, synchronize)


def with_numpy(np):
    pos, tri = np.array([[[-1, -1, 0, 1], [3, -1, 0, 1], [-1, 3, 0, 1]]], "f"), np.array([[0, 1, 2]], "int32")
    cases("numpy", pos, tri, np.ones((3, 2), "f"), np.ones((1, 4, 4, 3), "f"))


def with_torch(torch, device):
    pos = torch.tensor([[[-1.0, -1, 0, 1], [3, -1, 0, 1], [-1, 3, 0, 1]]], device=device)
    tri = torch.tensor([[0, 1, 2]], dtype=torch.int32, device=device)
    synchronize = torch.cuda.synchronize if device == "cuda" else (lambda: None)
    attr, image = torch.ones(3, 2, device=device), torch.ones(1, 4, 4, 3, device=device)
    cases("torch " + device, pos, tri, attr, image, synchronize)
    pos.requires_grad_()

    def both():
        pos.grad = None
        raster.rasterize(pos, tri, (1, 1))[0].sum().backward()
        return pos.grad

    measure("torch %s rasterize and backward" % device, both, lambda g: g is not None, synchronize)


if __name__ == "__main__":
    try:
        import numpy

        with_numpy(numpy)
    except ImportError:
        print("numpy is not installed")
    try:
        import torch

        with_torch(torch, "cpu")
        if torch.cuda.is_available():
            with_torch(torch, "cuda")
    except ImportError:
        print("torch is not installed")
