#!/usr/bin/env python3
"""`felloe check` against `auditwheel show` plus `cuobjdump --list-elf` plus `--list-ptx` on the same wheels, and the share of a wheel
that is read over HTTP ranges.

usage: wheels.py FELLOE WHEEL... [--markdown FILE]
The others' time is that of auditwheel on the wheel, and of cuobjdump on its shared objects that hold GPU code, already unpacked: what a
person needs to unpack them is not counted. Each runs once after a run of felloe that brings the file into the page cache; felloe's
time is the median of three. Peak memory is the resident maximum, mapped pages of the wheel included.
"""
import argparse
import glob
import http.server
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import zipfile


def timed(*command):
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return time.monotonic() - start, usage.ru_maxrss / 1024, out


class Ranges(http.server.BaseHTTPRequestHandler):
    path_of = {}

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        path = self.path_of[self.path]
        total = os.path.getsize(path)
        first, _, last = self.headers["Range"].split("=")[1].partition("-")
        first, last = (int(first), min(int(last or total - 1), total - 1)) if first else (max(0, total - int(last)), total - 1)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{total}")
        self.send_header("Content-Length", str(last - first + 1))
        self.end_headers()
        with open(path, "rb") as file:
            file.seek(first)
            left = last - first + 1
            try:
                while left > 0:
                    part = file.read(min(left, 1 << 20))
                    self.wfile.write(part)
                    left -= len(part)
            except OSError:
                pass


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("felloe")
    parser.add_argument("wheels", nargs="+")
    parser.add_argument("--markdown")
    options = parser.parse_args()
    cuobjdump = shutil.which("cuobjdump") or next(iter(glob.glob(os.path.join(sys.prefix, "lib/python3*/site-packages/nvidia/*/bin/cuobjdump"))), None)
    auditwheel = shutil.which("auditwheel") or os.path.join(os.path.dirname(sys.executable), "auditwheel")
    if not cuobjdump or not os.path.exists(auditwheel):
        print("bench: auditwheel and cuobjdump are needed: pip install auditwheel nvidia-cuda-cuobjdump")
        sys.exit(77)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Ranges)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    rows = []
    for wheel in options.wheels:
        size, name = os.path.getsize(wheel), os.path.basename(wheel)
        _, _, out = timed(options.felloe, "check", "--json", wheel)
        objects = [o["path"] for o in json.loads(out)["files"][0]["objects"] if o["archs"] or o["ptx"]]
        runs = [timed(options.felloe, "check", "--json", wheel) for _ in range(3)]
        fast = [timed(options.felloe, "check", "--json", "--skip-hashes", wheel) for _ in range(3)]
        Ranges.path_of["/" + name.replace("+", "%2B")] = wheel
        remote = timed(options.felloe, "check", "--json", f"http://127.0.0.1:{server.server_port}/{name.replace('+', '%2B')}")
        read = json.loads(remote[2])["files"][0]["bytes_read"]
        audit, _, _ = timed(auditwheel, "show", wheel)
        listing = 0
        with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
            for path in objects:
                archive.extract(path, folder)
                for option in ("--list-elf", "--list-ptx"):
                    listing += timed(cuobjdump, option, os.path.join(folder, path))[0]
        ours, bare = statistics.median(r[0] for r in runs), statistics.median(r[0] for r in fast)
        rows.append((name, f"{size / 1e6:.0f}", f"{ours:.2f}", f"{bare:.2f}", f"{audit:.2f}", f"{listing:.2f}", f"{(audit + listing) / ours:.1f}",
                     f"{(audit + listing) / bare:.1f}", f"{max(r[1] for r in runs):.0f}", f"{remote[1]:.0f}", f"{100 * read / size:.1f}"))
        print(*rows[-1], flush=True)
    if options.markdown:
        with open(options.markdown, "w") as out:
            out.write("# `felloe check` against auditwheel and cuobjdump\n\nCaveats: " + __doc__.split("usage")[1].split("\n", 2)[2].strip().replace("\n", "\n")
                      + f"\nMachine: {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} while it ran (shared with other work), so read the "
                      "ratios, not the seconds.\n\n| wheel | MB | check, s | without hashes, s | auditwheel show, s | cuobjdump twice, s | times faster | "
                      "without hashes | peak MB, file | peak MB, HTTP | % read by ranges |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
            for row in rows:
                out.write("| " + " | ".join(row) + " |\n")
            out.write("\nWhat bounds the share: a deflated member can only be read from its start, and the dynamic section stands behind the GPU "
                      "code; so every shared object\nis fetched up to the end of what is loaded, and only other members, symbol tables for "
                      "debuggers and the like are left out.\nWheels with weights or several packages beside their objects save more.\n\nMade by: `bench/check/wheels.py build/release/tool/felloe WHEEL... --markdown "
                      "docs/measurements/check-speed.md`\n")


if __name__ == "__main__":
    main()
