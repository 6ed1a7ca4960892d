"""python3 bench_ast.py BENCH_SCAN: runs the benchmark, then parses the same files with Python's own ast module and prints the ratio."""
import ast
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

with tempfile.TemporaryDirectory() as folder:
    ours = subprocess.run([sys.argv[1], folder], capture_output=True, text=True, check=True).stdout
    print(ours, end="")
    for name, median in zip(("app", "tree"), re.findall(r": ([\d.]+) ms", ours)):
        files = sorted(pathlib.Path(folder, name).rglob("*.py"))
        rounds = []
        for _ in range(3):
            start = time.perf_counter()
            for file in files:
                ast.parse(file.read_bytes())
            rounds.append((time.perf_counter() - start) * 1e3)
        theirs = statistics.median(rounds)
        print(f"ast.parse of the same {len(files)} files: {theirs:.1f} ms, {theirs / float(median):.1f} times as long")
