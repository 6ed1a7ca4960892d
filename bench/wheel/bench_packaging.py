"""The cases of bench_wheel.c with the `packaging` library: python3 bench/wheel/bench_packaging.py WHEEL-OF-PACKAGING."""
import re
import statistics
import sys
import time
import pathlib

sys.path.insert(0, sys.argv[1])
from packaging.requirements import Requirement
from packaging.utils import parse_wheel_filename
from packaging.version import Version

source = (pathlib.Path(__file__).parent / "bench_wheel.c").read_text()


def texts(array):
    return re.findall(r'S_INIT\("([^"]*)"\)', re.search(array + r"\[\] = \{(.*?)\};", source, re.S)[1])


def run(name, call, items, calls=2000):
    rates = []
    for _ in range(7):
        first = time.perf_counter()
        for i in range(calls):
            call(items[i % len(items)])
        rates.append(calls / (time.perf_counter() - first))
    print(f"{name:24} {statistics.median(rates):10.0f} a second  ({min(rates):.0f} to {max(rates):.0f})")


names = [n.rsplit("/", 1)[-1].replace("%2B", "+") for n in texts("NAMES")]
versions = [Version(v) for v in texts("VERSIONS")]
run("packaging/name", parse_wheel_filename, names)
run("packaging/version-parse", Version, texts("VERSIONS"))
run("packaging/version-compare", lambda pair: pair[0] < pair[1], [(v, w) for v in versions for w in versions])
run("packaging/requirement", Requirement, texts("REQUIREMENTS"))
