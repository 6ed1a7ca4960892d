#!/usr/bin/env python3
"""Marching cubes and baking on a GPU: equal to the CPU's results first, then time, the share of the measured copy bandwidth, and the ratio to what
the extension that felloe stands in for took on the same kind of card (torchmcubes 0.1.0 on an H200).

    FELLOE_LIBRARY=build/cuda/lib/libfelloe.so PYTHONPATH=python python3 bench/gpu/surface.py [--quick]

A time is the median of one pair of CUDA events round each of 40 calls, results allocated by torch inside. The floor is one read of the volume and
one write of vertices and faces at the bandwidth of a large copy in the same run.
"""

import sys

import torch

from felloe import bake, surface

PEER_MS = {128: 0.302, 256: 1.123, 512: 7.795}


def sdf_volume(n, seed=0):
    """Signed distance of a sphere plus smooth seeded noise."""
    low = torch.randn(1, 1, 17, 17, 17, generator=torch.Generator().manual_seed(7 + seed)).cuda()
    volume = torch.nn.functional.interpolate(low, size=(n, n, n), mode="trilinear", align_corners=True)[0, 0]
    ax = torch.linspace(-1, 1, n, device="cuda")
    r = torch.sqrt(ax[:, None, None] ** 2 + ax[None, :, None] ** 2 + ax[None, None, :] ** 2)
    return (r - 0.65 + 0.05 * volume).contiguous()


def median_ms(call, n=40, warm=6):
    for _ in range(warm):
        call()
    torch.cuda.synchronize()
    events = [(torch.cuda.Event(True), torch.cuda.Event(True)) for _ in range(n)]
    for a, b in events:
        a.record()
        call()
        b.record()
    torch.cuda.synchronize()
    ms = sorted(a.elapsed_time(b) for a, b in events)
    return ms[n // 2], ms[n // 10], ms[n * 9 // 10]


def same(gpu, cpu):
    bits = lambda t: t.cpu().contiguous().view(torch.int32) if t.dtype is torch.float32 else t.cpu()
    return all(a.shape == b.shape and torch.equal(bits(a), bits(b)) for a, b in zip(gpu, cpu))


def square_mesh(n):
    """A jittered grid of 2 n^2 faces over the whole texture."""
    u = torch.linspace(0, 1, n + 1)
    uv = torch.stack(torch.meshgrid(u, u, indexing="ij"), -1).reshape(-1, 2)
    uv = (uv + 0.2 / n * torch.randn(uv.shape, generator=torch.Generator().manual_seed(0))).contiguous()
    at = (torch.arange(n)[:, None] * (n + 1) + torch.arange(n)[None]).reshape(-1)
    faces = torch.cat([torch.stack([at, at + 1, at + n + 2], 1), torch.stack([at, at + n + 2, at + n + 1], 1)])
    return uv, faces.int().contiguous()


def check():
    torch.manual_seed(0)
    odd = torch.randn(20, 37, 70)
    bad = torch.randn(30, 31, 64)
    bad[bad > 1.5], bad[bad < -1.5] = float("nan"), float("-inf")
    volumes = {"sphere": sdf_volume(96).cpu(), "odd": odd, "not finite": bad, "half": odd.half(), "thin": torch.randn(1, 5, 300)}
    failed = 0
    for name, volume in volumes.items():
        for options in ({}, {"closed": True}, {"inside": "above", "axis_order": "xyz", "index_dtype": "int64"}):
            results = [surface.marching_cubes(v, 0.1, return_normals=True, **options) for v in (volume.cuda(), volume)]
            if not same(*results):
                failed += 1
                print("DIFFERS", name, options)
    v = odd.clone().requires_grad_()
    w = odd.cuda().requires_grad_()
    for t in (v, w):
        (surface.marching_cubes(t)[0].sin()).sum().backward()
    failed += not torch.allclose(v.grad, w.grad.cpu(), rtol=1e-4, atol=1e-4)
    slabs = list(surface.marching_cubes_slabs(lambda a, b: odd[a:b].cuda(), odd.shape, 0.1, slab=8))
    failed += not same([torch.cat([s[k] for s in slabs]) for k in range(2)], surface.marching_cubes(odd, 0.1))
    features, points = torch.randn(5, 9, 10, 11), torch.rand(3000, 3) * 14 - 2
    failed += not same([surface.grid_sample(features.cuda(), points.cuda())], [surface.grid_sample(features, points)])
    uv, faces = square_mesh(40)
    for sample in ("corner", "center", "ends"):
        rasts = [bake.rasterize_uv(uv.to(d), faces.to(d), (300, 257), sample=sample) for d in ("cuda", "cpu")]
        failed += not same(rasts[:1], rasts[1:])
    image, mask = torch.rand(200, 150, 3), torch.rand(200, 150) < 0.01
    for method in ("nearest", "grow", "smooth"):
        a, b = (bake.gutter(image.to(d), mask.to(d), method=method, reach=9) for d in ("cuda", "cpu"))
        failed += not same(a, b)
    print("results equal the CPU's" if not failed else "%d comparisons DIFFER" % failed, flush=True)
    return failed


def main():
    failed = check()
    copies = torch.empty(2**29, device="cuda").normal_()
    target = torch.empty_like(copies)
    bandwidth = 2 * copies.numel() * 4 / median_ms(lambda: target.copy_(copies))[0] / 1e6
    del copies, target
    print("copy %.0f GB/s" % bandwidth)
    print("%-28s %9s %9s %9s %8s %7s %9s %9s" % ("case", "ms", "p10", "p90", "floor", "share", "of peer", "scratch"))
    for n in (128, 256, 512) if "--quick" in sys.argv else (128, 256, 512, 1024):
        volume = sdf_volume(n)
        v, f = surface.marching_cubes(volume)
        floor = (volume.numel() + v.numel() + f.numel()) * 4 / bandwidth / 1e6
        del v, f
        ms = median_ms(lambda: surface.marching_cubes(volume))
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        v, f = surface.marching_cubes(volume)
        scratch = torch.cuda.max_memory_allocated() - before - (v.numel() + f.numel()) * 4
        peer = "%8.1fx" % (PEER_MS[n] / ms[0]) if n in PEER_MS else "        -"
        row = (ms[0], ms[1], ms[2], floor, 100 * floor / ms[0], peer, scratch / volume.numel())
        print("surface n=%-4d f=%-10d %11.4f %9.4f %9.4f %8.4f %6.1f%% %s %7.3f B/voxel" % ((n, len(f)) + row), flush=True)
        del volume, v, f
        torch.cuda.empty_cache()
    uv, faces = (t.cuda() for t in square_mesh(316))
    colors = torch.rand(len(uv), 6, device="cuda")
    rast = bake.rasterize_uv(uv, faces, 4096)
    for name, call in (
        ("bake/uv 4096 f=200k", lambda: bake.rasterize_uv(uv, faces, 4096)),
        ("bake/uv 4096 f=2", lambda: bake.rasterize_uv(*(t.cuda() for t in square_mesh(1)), 4096)),
        ("bake/interpolate 4096 c=6", lambda: bake.interpolate(colors, faces, rast)),
    ):
        print("%-28s %9.3f %9.3f %9.3f" % ((name,) + median_ms(call, 20, 3)), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
