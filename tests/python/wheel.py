"""python3 tests/python/wheel.py WHEEL PYTHON...: installs a wheel into a fresh environment of each Python, and imports and runs it there.

Without numpy the library is called by itself; FELLOE_WHEEL_WITH='numpy pytest' installs these first, and then all tests of this folder run.
"""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

ALONE = """
import sys, felloe, felloe.dropin, felloe._native as native
assert felloe.version() == felloe.__version__, felloe.version()
assert native.cpu_context() is native.cpu_context()
assert "site-packages" in felloe.library_path(), felloe.library_path()
try:
    native.check(native.lib.fel_weld(native.cpu_context(), None, None))
    raise SystemExit("NULL was taken")
except ValueError as error:
    assert "positions" in str(error), error
import nvdiffrast
assert felloe.dropin.provided("nvdiffrast")
print("alone: Python %d.%d.%d" % sys.version_info[:3])
"""


def main(wheel, pythons):
    extra = os.environ.get("FELLOE_WHEEL_WITH", "").split()
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "FELLOE_LIBRARY")}
    for python in pythons:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([python, "-m", "venv", folder], check=True)
            inside = os.path.join(folder, "bin", "python")
            subprocess.run([inside, "-m", "pip", "install", "-q", "--no-index", "--no-deps", wheel], check=True, env=environment)
            subprocess.run([inside, "-c", ALONE], check=True, env=environment, cwd=folder)
            if extra:
                subprocess.run([inside, "-m", "pip", "install", "-q", *extra], check=True, env=environment)
                subprocess.run([inside, "-m", "pytest", "-q", "-p", "no:cacheprovider", HERE], check=True, env=environment, cwd=folder)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(os.path.abspath(sys.argv[1]), sys.argv[2:])
