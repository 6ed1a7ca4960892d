"""Times felloe.raster on a GPU beside nvdiffrast's recorded figures: the same meshes, sizes, batches and timing.

    python bench/gpu/raster.py --workloads .../workloads.py [--out raster.jsonl] [--quick] [--triangles N ...]

workloads.py makes the meshes and times a call (a pair of CUDA events round each of 30 to 40 queued calls, median); raster_baseline.json has
the other's figures and the floors. Stages are calls of the Python package as an application makes them, autograd included. For each case:
ms, how many times faster than the other, and how many times the floor (bytes that any version must move over the measured copy bandwidth).
"""

import argparse
import importlib.util
import json
import math
import os

import torch

from felloe import raster

FREQUENCIES = {9680: 22, 100820: 71, 1003520: 224, 5000000: 500}
STAGES = ["rast", "rast+interp", "rast+interp_db", "texture", "texture_pre", "antialias", "antialias_pre", "fwd", "fwd+bwd"]


def load(path):
    spec = importlib.util.spec_from_file_location("workloads", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Case:
    """The stages over one mesh, image size and batch. Textures are 2048 x 2048 RGB, as in the recorded figures."""

    def __init__(self, workloads, vertices, triangles, size, batch):
        self.tri, self.size = triangles, (size, size)
        self.uv = workloads.sphere_uv(vertices)
        self.pos = workloads.clip_positions(vertices, batch)
        self.tex = torch.rand(1, 2048, 2048, 3, device="cuda")
        self.topology = raster.topology(triangles)
        self.mips = raster.mips(self.tex)
        self.rast, self.db = raster.rasterize(self.pos, triangles, self.size)
        self.texc, self.texd = raster.interpolate(self.uv, self.rast, triangles, self.db)
        self.color = raster.texture(self.tex, self.texc, uv_da=self.texd)
        self.color = self.color * (self.rast[..., 3:] > 0)
        self.grad = torch.randn_like(self.color)

    def frame(self, pos, tex):
        rast, db = raster.rasterize(pos, self.tri, self.size)
        uv, uv_da = raster.interpolate(self.uv, rast, self.tri, db)
        color = raster.texture(tex, uv, uv_da=uv_da, filter="linear-mipmap-linear")
        color = color * (rast[..., 3:] > 0)
        return raster.antialias(color, rast, pos, self.tri, topology=self.topology)

    def rast_only(self):
        return raster.rasterize(self.pos, self.tri, self.size)

    def rast_interp(self):
        rast, _ = self.rast_only()
        return raster.interpolate(self.uv, rast, self.tri)

    def rast_interp_db(self):
        rast, db = self.rast_only()
        return raster.interpolate(self.uv, rast, self.tri, db)

    def texture(self):
        return raster.texture(self.tex, self.texc, uv_da=self.texd, filter="linear-mipmap-linear")

    def texture_pre(self):
        return raster.texture(self.tex, self.texc, uv_da=self.texd, mips=self.mips, filter="linear-mipmap-linear")

    def antialias(self):
        return raster.antialias(self.color, self.rast, self.pos, self.tri)

    def antialias_pre(self):
        return raster.antialias(self.color, self.rast, self.pos, self.tri, topology=self.topology)

    def fwd(self):
        return self.frame(self.pos, self.tex)

    def fwd_bwd(self):
        pos, tex = self.pos.detach().requires_grad_(), self.tex.detach().requires_grad_()
        return torch.autograd.grad(self.frame(pos, tex), (pos, tex), self.grad)

    def drop_inputs(self):
        """What only the single stages read must not count in the memory of a whole frame."""
        for name in ("mips", "rast", "db", "texc", "texd", "color"):
            delattr(self, name)

    def stages(self):
        return dict(zip(STAGES, (self.rast_only, self.rast_interp, self.rast_interp_db, self.texture, self.texture_pre,
                                 self.antialias, self.antialias_pre, self.fwd, self.fwd_bwd)))


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")


def summary(rows):
    """Geometric means, as the goals are stated, and what is slower than the other."""
    lines = []
    for stage in STAGES:
        small = [r["ratio"] for r in rows if r["stage"] == stage and r["triangles"] < 1000000]
        large = [r["ratio"] for r in rows if r["stage"] == stage and r["triangles"] >= 1000000]
        floors = [r["over_floor"] for r in rows if r["stage"] == stage and r["over_floor"]]
        worst = min((r for r in rows if r["stage"] == stage), key=lambda r: r["ratio"])
        lines.append("%-15s faster by %5.2f below 1M triangles, %5.2f from there on, %5.2f over all; least %.2f (%d, %d, %d)%s"
                     % (stage, mean(small), mean(large), mean(small + large), worst["ratio"], worst["triangles"], worst["size"],
                        worst["batch"], "; %.1f times the floor" % mean(floors) if floors else ""))
    for r in rows:
        if r["ratio"] < 1:
            lines.append("slower: %s at %d triangles, %d, batch %d: %.4f ms, other %.4f" %
                         (r["stage"], r["triangles"], r["size"], r["batch"], r["ms"], r["other_ms"]))
        if r["stage"] == "fwd+bwd" and r["peak_mb"] > r["other_peak_mb"]:
            lines.append("more memory: %d triangles, %d, batch %d: %.0f MB, other %.0f" %
                         (r["triangles"], r["size"], r["batch"], r["peak_mb"], r["other_peak_mb"]))
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--workloads", default=os.path.join(here, "../../../shared/bench/workloads.py"))
    parser.add_argument("--baseline", default=os.path.join(here, "raster_baseline.json"))
    parser.add_argument("--out", default="raster.jsonl")
    parser.add_argument("--quick", action="store_true", help="a few runs of each, to see that all works")
    parser.add_argument("--triangles", type=int, nargs="*", default=sorted(FREQUENCIES))
    args = parser.parse_args()
    workloads = load(args.workloads)
    with open(args.baseline) as f:
        baseline = {(c["triangles"], c["size"], c["batch"]): c for c in json.load(f)["cases"]}
    recorder = workloads.Recorder(args.out, quick=args.quick)
    source = torch.rand(2 ** 28, device="cuda")
    target = torch.empty_like(source)
    copy = recorder.measure("device", "copy", {}, lambda: target.copy_(source))
    gbps = 2 * source.numel() * 4 / copy["ms"] / 1e6
    del source, target
    print("%s, torch %s, copy %.0f GB/s" % (torch.cuda.get_device_name(), torch.__version__, gbps))
    print("%9s %5s %2s " % ("triangles", "size", "n") + " ".join("%21s" % s for s in STAGES) + "   peak MB (other)")
    rows = []
    for triangles in args.triangles:
        vertices, tri = workloads.noisy_sphere(FREQUENCIES[triangles])
        for size in (512, 1024, 2048):
            for batch in (1, 8):
                other = baseline[triangles, size, batch]
                case, cells = Case(workloads, vertices, tri, size, batch), []
                for stage, call in case.stages().items():
                    if stage == "fwd":
                        case.drop_inputs()
                    params = {"triangles": triangles, "size": size, "batch": batch}
                    r = recorder.measure("felloe", stage, params, call, max_s=1.0)
                    if not r:
                        cells.append("%21s" % "failed")
                        continue
                    ms, floor = other[stage]
                    over = r["ms"] / (floor * 4297 / gbps) if floor else None
                    rows.append(dict(params, stage=stage, ms=r["ms"], other_ms=ms, ratio=ms / r["ms"], over_floor=over,
                                     peak_mb=r["peak_torch_mb"] + r["other_mb"], other_peak_mb=other["peak_mb"]))
                    cells.append("%8.4f x%5.2f%s" % (r["ms"], ms / r["ms"], " /%4.1f" % over if over else "      "))
                print("%9d %5d %2d " % (triangles, size, batch) + " ".join("%21s" % c for c in cells) +
                      "   %.0f (%.0f)" % (rows[-1]["peak_mb"], other["peak_mb"]), flush=True)
                del case, call
        del vertices, tri
        torch.cuda.empty_cache()
    print("\n".join(summary(rows)))


if __name__ == "__main__":
    main()
