#!/usr/bin/env python3
"""Compares what `felloe check` says about a wheel beside a torch with what its import does, in virtual environments made here.

usage: pairs.py FELLOE CACHE [--markdown FILE]
Each pair's wheel is unpacked beside the torch by `pip install --no-deps --target`, and its module imported in a fresh process.
Prediction: `import-error` when that is the worst of its objects' verdicts; torch's own requirement line does not count, since
--no-deps passes it by. Needs about 12 GB under CACHE for the environments; CPython 3.12.
Exit code: 0 when all predictions hold, 1 when one does not, 77 when PyPI cannot be reached.
"""
import argparse
import glob
import json
import os
import subprocess
import sys

PAIRS = [  # package, version, module to import, torch
    ("torchvision", "0.23.0", "torchvision", "2.8.0"),
    ("torchvision", "0.24.1", "torchvision", "2.8.0"),
    ("torchvision", "0.25.0", "torchvision", "2.8.0"),
    ("torchvision", "0.26.0", "torchvision", "2.8.0"),
    ("torchvision", "0.23.0", "torchvision", "2.11.0"),
    ("torchvision", "0.24.1", "torchvision", "2.11.0"),
    ("torchvision", "0.25.0", "torchvision", "2.11.0"),
    ("torchvision", "0.26.0", "torchvision", "2.11.0"),
    ("torchaudio", "2.8.0", "torchaudio", "2.8.0"),
    ("torchaudio", "2.9.1", "torchaudio", "2.8.0"),
    ("torchaudio", "2.10.0", "torchaudio", "2.8.0"),
    ("torchaudio", "2.8.0", "torchaudio", "2.11.0"),
    ("torchaudio", "2.10.0", "torchaudio", "2.11.0"),
    ("torchaudio", "2.11.0", "torchaudio", "2.11.0"),
    ("xformers", "0.0.32.post2", "xformers._C", "2.8.0"),
    ("xformers", "0.0.34", "xformers._C", "2.8.0"),
    ("xformers", "0.0.34", "xformers._C", "2.11.0"),
]
# A package may load its library itself and only warn: then the library is loaded the same way and asked.
LOAD = {"xformers": "import torch, xformers, os; torch.ops.load_library(os.path.join(os.path.dirname(xformers.__file__), '_C.so'))",
        "torchaudio": "import torch, torchaudio, os, glob; "
                      "[torch.ops.load_library(p) for p in glob.glob(os.path.dirname(torchaudio.__file__) + '/lib/libtorchaudio.so')]",
        "torchvision": "import torchvision; from torchvision import ops; import torch; torch.ops.torchvision.nms"}
# What that load touches: the rest of the wheel (libraries for sox, ffmpeg) is loaded later or never.
OBJECTS = {"xformers": ["xformers/_C.so"], "torchaudio": ["torchaudio/lib/libtorchaudio.so"], "torchvision": ["torchvision/_C.so"]}


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, **options)


def environment(cache, torch):
    folder = os.path.join(cache, f"venv-torch-{torch}")
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(python):
        base = next((p for p in (sys.executable, "python3.12") if run(p, "-V").stdout.startswith("Python 3.12")), None)
        if not base:
            print("pairs: no CPython 3.12 here")
            sys.exit(77)
        run(base, "-m", "venv", folder, check=True)
        done = run(python, "-m", "pip", "install", "-q", f"torch=={torch}", "numpy", "pillow")
        if done.returncode:
            print("pairs: torch cannot be installed:", done.stderr.strip().splitlines()[-1])
            sys.exit(77)
    return python


def wheel(cache, package, version):
    folder = os.path.join(cache, "checkwheels")
    pattern = os.path.join(folder, f"{package}-{version}-*.whl")
    if not glob.glob(pattern):
        done = run(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "--python-version", "3.12",
                   "--platform", "manylinux_2_28_x86_64", f"{package}=={version}", "-d", folder)
        if done.returncode:
            print("pairs: not reachable:", package, version)
            sys.exit(77)
    return glob.glob(pattern)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("felloe")
    parser.add_argument("cache")
    parser.add_argument("--markdown")
    options = parser.parse_args()
    rows, wrong = [], 0
    for package, version, module, torch in PAIRS:
        python = environment(options.cache, torch)
        file = wheel(options.cache, package, version)
        target = os.path.join(options.cache, "pairs", f"{package}-{version}")
        if not os.path.isdir(target):
            run(python, "-m", "pip", "install", "-q", "--no-deps", "--target", target, file, check=True)
        answer = json.loads(run(options.felloe, "check", "--json", "--skip-hashes", "--target", "zerogpu", "--python", "3.12", "--torch",
                                torch, file).stdout)
        objects = [o for o in answer["files"][0]["objects"] if o["path"] in OBJECTS[package]]
        predicted = any(o["verdict"] == "import-error" for o in objects)
        reason = [f["what"] for f in answer["files"][0]["findings"]
                  if f["code"] in ("F203", "F209", "F250", "F256") and any(f["what"].startswith(o["path"]) for o in objects)]
        done = run(python, "-c", LOAD[package], env={**os.environ, "PYTHONPATH": target})
        failed = done.returncode != 0
        error = done.stderr.strip().splitlines()[-1] if failed and done.stderr.strip() else "imports"
        wrong += predicted != failed
        rows.append((f"{package} {version}", torch, "import-error" if predicted else "imports", error[:150], predicted == failed,
                     reason[0][:150] if reason else ""))
        print(("ok   " if predicted == failed else "WRONG"), *rows[-1][:4], "|", rows[-1][5], flush=True)
    print(f"{len(rows) - wrong} of {len(rows)} predictions hold; {sum(r[3] != 'imports' for r in rows)} imports fail")
    if options.markdown:
        with open(options.markdown, "w") as out:
            out.write("# Predicted and real imports\n\nCaveats: on one machine without a GPU, CPython 3.12.1, wheels and torch from PyPI; "
                      "`--no-deps`, so that pip does not undo the mismatch.\nWhat is loaded is the package's main library, the way "
                      "the package loads it.\n\n| wheel | torch | predicted | what the import does | holds |\n|---|---|---|---|---|\n")
            for name, torch, predicted, error, holds, _ in rows:
                out.write(f"| {name} | {torch} | {predicted} | {error.replace('|', '/')} | {'yes' if holds else '**no**'} |\n")
            out.write(f"\n{len(rows) - wrong} of {len(rows)} predictions hold.\n\nMade by: "
                      "`tests/check/pairs.py build/dev/tool/felloe CACHE --markdown docs/measurements/check-pairs.md`\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
