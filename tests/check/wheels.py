#!/usr/bin/env python3
"""Compares `felloe check` on real wheels of PyPI with readelf, cuobjdump, auditwheel and packaging, fact by fact.

usage: wheels.py FELLOE CACHE [--all] [--markdown FILE]
Per shared object: DT_NEEDED and the highest GLIBC and GLIBCXX against readelf; per object with GPU code: the architectures against
cuobjdump --list-elf and --list-ptx; per wheel: tags against packaging, the libraries that auditwheel finds outside the wheel.
Judges that are not installed are named and left out (pip install auditwheel packaging nvidia-cuda-cuobjdump).
Without --all (or FELLOE_LARGE_WHEELS=1) only wheels of under 11 MB. Exit code 77 when PyPI cannot be reached.
"""
import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

SMALL = [("torchvision", "0.23.0", "3.12"), ("torchvision", "0.26.0", "3.12"), ("torchaudio", "2.8.0", "3.12"), ("torchaudio", "2.11.0", "3.12"),
         ("nvidia-cuda-runtime", "13.5.37", "3.12"), ("nvidia-cuda-runtime-cu12", "12.9.79", "3.12"), ("sentencepiece", "0.2.3", "3.12"),
         ("torchao", "0.18.0", "3.12")]
LARGE = [("torchvision", "0.24.1", "3.12"), ("torchvision", "0.25.0", "3.12"), ("torchaudio", "2.9.1", "3.12"), ("torchaudio", "2.10.0", "3.12"),
         ("spconv-cu118", "2.3.8", "3.12"), ("spconv-cu120", "2.3.6", "3.11"), ("spconv-cu126", "2.3.8", "3.10"), ("spconv-cu126", "2.3.8", "3.12"),
         ("cumm-cu126", "0.8.2", "3.12"), ("cupy-cuda12x", "14.2.0", "3.12"), ("cupy-cuda13x", "14.2.0", "3.12"), ("xformers", "0.0.32.post2", "3.12"),
         ("xformers", "0.0.34", "3.12"), ("triton", "3.9.0", "3.12"), ("bitsandbytes", "0.50.2", "3.12"), ("nvidia-nvjitlink", "13.5.37", "3.12"),
         ("nvidia-curand", "10.4.5.25", "3.12"), ("torchcodec", "0.17.0", "3.12"), ("numpy", "2.5.5", "3.12")]


def run(*command):
    return subprocess.run(command, capture_output=True, text=True)


def wheel(cache, package, version, python):
    folder = os.path.join(cache, "checkwheels")
    tag = "cp" + python.replace(".", "")
    found = glob.glob(os.path.join(folder, f"{package.replace('-', '_')}-{version}-*.whl"))
    found = [f for f in found if tag in f] or [f for f in found if "abi3" in f or "py3" in f]
    if found:
        return found[0]
    platforms = [part for p in ("manylinux_2_28", "manylinux2014", "manylinux_2_17", "manylinux_2_24", "manylinux_2_27") for part in ("--platform", p + "_x86_64")]
    done = run(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "--python-version", python, *platforms,
               f"{package}=={version}", "-d", folder)
    if done.returncode:
        print("wheels: not reachable:", package, version, done.stderr.strip().splitlines()[-1:])
        return None
    return wheel(cache, package, version, python)


def highest(text, prefix):
    found = re.findall(r"Name: " + prefix + r"_([0-9.]+)", text)
    return max(found, key=lambda v: [int(x) for x in v.split(".")]) if found else None


def judge_object(cuobjdump, path, ours, wrong):
    dynamic, versions = run("readelf", "-dW", path).stdout, run("readelf", "-VW", path).stdout
    needs = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    if needs != ours["needs"]:
        wrong.append(f"{ours['path']}: needs {ours['needs']}, readelf {needs}")
    for key, prefix in (("glibc", "GLIBC"), ("glibcxx", "GLIBCXX")):
        theirs = highest(versions.split("needs section")[-1] if "needs section" in versions else "", prefix)
        if theirs != ours[key]:
            wrong.append(f"{ours['path']}: {key} {ours[key]}, readelf {theirs}")
    if not cuobjdump or not (ours["archs"] or ours["ptx"]):
        return 0
    if ours["gpu_code"]["in_data"]: # cuobjdump looks into .nv_fatbin alone
        return 0
    listed = run(cuobjdump, "--list-elf", path)
    if "fatal" in listed.stderr: # it stops at cubins of toolkits that it no longer knows
        print(f"      {ours['path']}: not compared, {listed.stderr.strip().splitlines()[-1]}")
        return 0
    # cuobjdump's file names have the 'a' of an architecture, not its 'f'
    elf = sorted(set(re.findall(r"\.(sm_\d+a?)\.cubin", listed.stdout)))
    ptx = sorted(set(re.findall(r"\.sm_(\d+a?)\.ptx", run(cuobjdump, "--list-ptx", path).stdout)))
    ours = {**ours, "archs": sorted({a.rstrip("f") for a in ours["archs"]}), "ptx": sorted({a.rstrip("f") for a in ours["ptx"]})}
    if elf != sorted(ours["archs"]):
        wrong.append(f"{ours['path']}: SASS {sorted(ours['archs'])}, cuobjdump {elf}")
    if ptx != sorted(p[len("compute_"):] for p in ours["ptx"]):
        wrong.append(f"{ours['path']}: PTX {ours['ptx']}, cuobjdump {ptx}")
    return 1


def judge(felloe, cuobjdump, auditwheel, file):
    from packaging.utils import parse_wheel_filename
    wrong, compared = [], 0
    done = run(felloe, "check", "--json", "--target", "zerogpu", file)
    ours = json.loads(done.stdout)["files"][0]
    _, _, _, tags = parse_wheel_filename(os.path.basename(file))
    if {str(t) for t in tags} != {f"{p}-{a}-{l}" for p in ours["tags"]["python"] for a in ours["tags"]["abi"] for l in ours["tags"]["platform"]}:
        wrong.append("tags differ from packaging's")
    if any(f["code"] == "F201" for f in ours["findings"]):
        wrong.append("a hash of RECORD differs")
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(file) as archive:
        theirs = sorted(n for n in archive.namelist() if re.search(r"\.so(\.|$)", os.path.basename(n)))
        if theirs != sorted(o["path"] for o in ours["objects"]):
            wrong.append(f"objects {[o['path'] for o in ours['objects']]}, the archive has {theirs}")
        for o in ours["objects"]:
            compared += judge_object(cuobjdump, archive.extract(o["path"], folder), o, wrong)
    audit = "-"
    if auditwheel:
        shown = re.sub(r"\s+", " ", run(auditwheel, "show", file).stdout)
        audit = (re.findall(r'consistent with the following platform tag: "([^"]*)"', shown) or ["none"])[0]
    archs = sorted({a for o in ours["objects"] for a in o["archs"] + o["ptx"]}, key=lambda a: int(re.sub(r"\D", "", a)))
    return ours["verdict"], len(ours["objects"]), compared, archs, audit, wrong


def write_table(path, rows, bad):
    with open(path, "w") as out:
        out.write("# Real wheels: facts against other tools\n\nCaveats: what agrees are facts (tags, needs, version maxima, architectures), not "
                  "verdicts; 'compared' counts objects whose GPU code\ncuobjdump listed too. Judged for zerogpu (torch 2.11.0).\n\n"
                  "| wheel | verdict | objects | compared with cuobjdump | GPU code | auditwheel's tag | agrees |\n|---|---|---|---|---|---|---|\n")
        for row in rows:
            out.write("| " + " | ".join(str(x) for x in row[:6]) + f" | {'yes' if row[6] else '**no**'} |\n")
        out.write(f"\n{len(rows) - bad} of {len(rows)} wheels agree.\n\nMade by: `tests/check/wheels.py build/dev/tool/felloe CACHE --all "
                  "--markdown docs/measurements/check-wheels.md`\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("felloe")
    parser.add_argument("cache")
    parser.add_argument("--all", action="store_true", default=bool(os.environ.get("FELLOE_LARGE_WHEELS")))
    parser.add_argument("--markdown")
    options = parser.parse_args()
    try:
        import packaging  # noqa: F401
    except ImportError:
        print("wheels: the packaging library is not installed")
        sys.exit(77)
    beside = os.path.dirname(sys.executable)
    cuobjdump = shutil.which("cuobjdump") or next(iter(glob.glob(os.path.join(sys.prefix, "lib/python3*/site-packages/nvidia/*/bin/cuobjdump"))), None)
    auditwheel = shutil.which("auditwheel") or (os.path.join(beside, "auditwheel") if os.path.exists(os.path.join(beside, "auditwheel")) else None)
    for name, tool in (("cuobjdump", cuobjdump), ("auditwheel", auditwheel)):
        if not tool:
            print(f"wheels: {name} is not installed: not compared with it")
    rows, bad, missing = [], 0, 0
    for package, version, python in SMALL + (LARGE if options.all else []):
        file = wheel(options.cache, package, version, python)
        if not file:
            missing += 1
            continue
        verdict, objects, compared, archs, audit, wrong = judge(options.felloe, cuobjdump, auditwheel, file)
        bad += bool(wrong)
        rows.append((os.path.basename(file), verdict, objects, compared, " ".join(archs) or "-", audit, not wrong))
        print(("ok   " if not wrong else "WRONG"), *rows[-1][:6], flush=True)
        if options.markdown: # row by row: the large wheels take minutes
            write_table(options.markdown, rows, bad)
        for line in wrong[:5]:
            print("      ", line)
    if missing and not rows:
        sys.exit(77)
    print(f"{len(rows) - bad} of {len(rows)} wheels agree in every fact")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
