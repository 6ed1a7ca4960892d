"""On a GPU: torch's streams and memory, kernels compiled at run time, processes that fork. Judge: the CPU, and torch's own books."""

import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)

from felloe import raster  # noqa: E402


def soup(device, faces=2000, seed=0):
    generator = torch.Generator().manual_seed(seed)
    pos = torch.randn(2, 3 * faces, 4, generator=generator)
    return pos.to(device), torch.arange(3 * faces, dtype=torch.int32).view(-1, 3).to(device)


def chain(pos, tri, image, weights):
    """All four operators and their gradients."""
    pos, image = pos.clone().requires_grad_(), image.clone().requires_grad_()
    rast, db = raster.rasterize(pos, tri, (96, 80))
    uv, da = raster.interpolate(pos[0, :, :2].contiguous(), rast, tri, db)
    out = raster.antialias(raster.texture(image, uv, uv_da=da), rast, pos, tri)
    (out * weights).sum().backward()
    return rast.detach(), out.detach(), pos.grad, image.grad


def arguments(device):
    generator = torch.Generator().manual_seed(7)
    image, weights = torch.rand(1, 32, 32, 3, generator=generator), torch.randn(2, 96, 80, 3, generator=generator)
    return (*soup(device), image.to(device), weights.to(device))


def test_results_and_gradients_are_those_of_the_cpu():
    for name, a, b in zip(("rast", "out", "pos", "image"), chain(*arguments("cpu")), chain(*arguments("cuda"))):
        b = b.cpu()
        if name == "rast":
            assert torch.equal(a[..., 3], b[..., 3])
        error = (a - b).norm() / a.norm()
        assert error < 1e-4, (name, error.item())


def test_work_goes_to_the_current_stream():
    pos, tri = soup("cuda")
    expected, _ = raster.rasterize(pos, tri, (256, 256))
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    late = torch.zeros_like(pos)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        late.copy_(pos)
        rast, _ = raster.rasterize(late, tri, (256, 256))
        busy = not stream.query()
    assert busy, "the call waited for the GPU"
    stream.synchronize()
    assert torch.equal(rast, expected)


def test_scratch_memory_is_torchs_and_goes_back():
    pos, tri = soup("cuda")
    raster.rasterize(pos, tri, (512, 512))
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    results = raster.rasterize(pos, tri, (512, 512))
    peak = torch.cuda.max_memory_allocated() - before
    kept = sum(r.numel() * 4 for r in results)
    assert peak > kept, "scratch did not come from torch"
    del results
    assert torch.cuda.memory_allocated() == before


SCRIPT = """
import torch
from felloe import raster, set_log
lines = []
set_log(lambda level, text: lines.append(text))
pos = torch.tensor([[[-1., -1, 0, 1], [3, -1, 0, 1], [-1, 3, 0, 1]]], device='cuda')
rast, _ = raster.rasterize(pos, torch.tensor([[0, 1, 2]], dtype=torch.int32, device='cuda'), (8, 8))
print(int(rast[..., 3].sum()), sum('compiling' in line for line in lines))
"""


def script(**environment):
    path = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env={**os.environ, "PYTHONPATH": path, **environment}, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_kernels_compile_at_run_time_and_are_kept(tmp_path):
    environment = {"FELLOE_KERNELS": "nvrtc", "FELLOE_CACHE": str(tmp_path)}
    assert script(**environment) == ["64", "1"]
    assert script(**environment) == ["64", "0"]
    assert any(name.suffix == ".cubin" for name in tmp_path.rglob("*"))


def test_embedded_kernels_are_not_compiled():
    assert script()[0] == "64"
    assert script()[1] == "0"


FORK = """
import os, sys, numpy as np, torch
from felloe import raster
pos = np.array([[[-1., -1, 0, 1], [3, -1, 0, 1], [-1, 3, 0, 1]]], 'f'); tri = np.array([[0, 1, 2]], 'int32')
raster.rasterize(pos, tri, (300, 300))
child = os.fork()
if child == 0:
    rast, _ = raster.rasterize(torch.tensor(pos, device='cuda'), torch.tensor(tri, device='cuda'), (8, 8))
    os._exit(0 if int(rast[..., 3].sum()) == 64 else 1)
assert os.waitpid(child, 0)[1] == 0
print("forked")
"""


def test_a_parent_that_stays_on_the_cpu_may_fork_children_that_use_the_gpu():
    path = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run([sys.executable, "-c", FORK], env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True)
    assert done.stdout.strip() == "forked"


def test_torch_compile_takes_the_operators_as_graph_breaks():
    pos, tri = soup("cuda")

    def shade(p):
        rast, _ = raster.rasterize(p * 1.0, tri, (32, 32))
        return rast[..., :2].sum()

    assert torch.compile(shade)(pos).item() == pytest.approx(shade(pos).item(), rel=1e-4)
