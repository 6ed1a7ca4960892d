#!/usr/bin/env bash
# felloe scan of a typical app (40 modules) and of a tree of 2,000 modules, against Python's own parser on the same files, in one run.
# bench_scan.sh FELLOE. Prints the median of several runs, the ratio, and the peak memory.
set -euo pipefail
felloe=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 "$here/trees.py" app "$work/app"
python3 "$here/trees.py" tree "$work/tree" 2000
python3 - "$felloe" "$work" <<'PY'
import glob, os, resource, statistics, subprocess, sys, time

felloe, work = sys.argv[1:]
PARSE = "import ast,sys\nfor f in sys.argv[1:]:\n    ast.parse(open(f).read())"

def median(command, runs):
    walls, cpus = [], []
    for _ in range(runs):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        walls.append(time.perf_counter() - start)
        cpus.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(walls) * 1000, statistics.median(cpus) * 1000

for name, runs in (("app", 21), ("tree", 7)):
    files = sorted(glob.glob(f"{work}/{name}/**/*.py", recursive=True))
    size = sum(os.path.getsize(f) for f in files)
    scan, scan_cpu = median([felloe, "scan", "-qq", f"{work}/{name}"], runs)
    parse, parse_cpu = median([sys.executable, "-c", PARSE, *files], max(3, runs // 3))
    peak = subprocess.run(["/usr/bin/env", "python3", "-c",
        "import resource,subprocess,sys;subprocess.run(sys.argv[1:],stdout=-3,stderr=-3);print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)",
        felloe, "scan", "-qq", f"{work}/{name}"], capture_output=True, text=True).stdout.strip()
    print(f"space/scan {name}: {len(files)} files, {size / 1e6:.2f} MB: {scan:.1f} ms (CPU {scan_cpu:.1f}), Python's ast {parse:.1f} ms (CPU {parse_cpu:.1f}), "
          f"ratio {parse / scan:.1f} (CPU {parse_cpu / scan_cpu:.1f}), peak memory {int(peak) / 1024:.1f} MiB")
PY
