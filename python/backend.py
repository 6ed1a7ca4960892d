"""Builds the Python package (PEP 517): the shared library through cmake, and a wheel around it.

The wheel is tagged py3-none-manylinux_2_N: N is the newest version of glibc that a symbol of the library asks for, read from the library
itself. FELLOE_CUDA=ON, OFF or AUTO in the environment is passed on to cmake. Equal inputs give equal bytes.
"""

import base64
import hashlib
import io
import os
import platform
import re
import shutil
import struct
import subprocess
import tarfile
import tempfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCES = ["CHANGELOG.md", "CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "cmake", "include", "lib", "pyproject.toml", "python"]
EPOCH = (1980, 1, 1, 0, 0, 0)


def _version():
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
        return re.search(r"project\(felloe VERSION ([0-9.]+)", file.read()).group(1)


def _metadata():
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        readme = file.read()
    return (
        "Metadata-Version: 2.1\nName: felloe\nVersion: %s\nSummary: 3D operators that fit every Python, torch and CUDA\n"
        "License: Apache-2.0\nRequires-Python: >=3.8\nClassifier: Operating System :: POSIX :: Linux\n"
        "Provides-Extra: numpy\nRequires-Dist: numpy; extra == 'numpy'\n"
        "Provides-Extra: torch\nRequires-Dist: torch; extra == 'torch'\n"
        "Description-Content-Type: text/markdown\n\n%s" % (_version(), readme)
    )


def _build_library():
    """Compiles the library and returns its path. The build folder is kept, so that a second wheel is quick."""
    folder = os.path.join(ROOT, "build", "wheel")
    configure = ["cmake", "-S", ROOT, "-B", folder, "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_SHARED_LINKER_FLAGS=-s"]
    configure += ["-DFELLOE_%s=OFF" % name for name in ("TOOL", "TESTS", "BENCH", "FUZZ", "WERROR")]
    configure += ["-DFELLOE_CUDA=" + os.environ.get("FELLOE_CUDA", "AUTO")]
    if shutil.which("ninja") and not os.path.exists(os.path.join(folder, "CMakeCache.txt")):
        configure += ["-G", "Ninja"]
    subprocess.run(configure, check=True)
    subprocess.run(["cmake", "--build", folder, "--target", "felloe_shared", "--parallel", str(os.cpu_count() or 1)], check=True)
    return os.path.join(folder, "lib", "libfelloe.so")


def _glibc_needed(path):
    """The newest glibc version, as (major, minor), that a symbol of an ELF64 little-endian library asks for (its .gnu.version_r)."""
    with open(path, "rb") as file:
        image = file.read()
    offset, size, count = struct.unpack_from("<Q", image, 40)[0], *struct.unpack_from("<HH", image, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", image, offset + k * size) for k in range(count)]
    newest = (2, 5)
    for _, kind, _, _, start, _, link, needs, _, _ in sections:
        if kind != 0x6FFFFFFE:  # SHT_GNU_verneed
            continue
        strings = sections[link][4]
        for _ in range(needs):
            _, versions, _, first, following = struct.unpack_from("<HHIII", image, start)
            at = start + first
            for _ in range(versions):
                name, step = struct.unpack_from("<II", image, at + 8)
                text = image[strings + name : image.index(b"\0", strings + name)].decode()
                match = re.match(r"GLIBC_(\d+)\.(\d+)", text)
                if match:
                    newest = max(newest, (int(match.group(1)), int(match.group(2))))
                at += step
            start += following
    return newest


def _package_files():
    base = os.path.join(ROOT, "python")
    for folder, folders, names in os.walk(os.path.join(base, "felloe")):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            if name.endswith(".py"):
                yield os.path.join(folder, name), os.path.relpath(os.path.join(folder, name), base)


def get_requires_for_build_wheel(config_settings=None):
    return [] if shutil.which("cmake") else ["cmake>=3.25"]


def get_requires_for_build_sdist(config_settings=None):
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    library = _build_library()
    version = _version()
    tag = "py3-none-manylinux_%d_%d_%s" % (*_glibc_needed(library), platform.machine())
    info = "felloe-%s.dist-info" % version
    with open(os.path.join(ROOT, "LICENSE"), "rb") as file:
        licence = file.read()
    files = {}
    for source, target in _package_files():
        with open(source, "rb") as file:
            files[target] = file.read()
    with open(library, "rb") as file:
        files["felloe/libfelloe.so"] = file.read()
    files[info + "/METADATA"] = _metadata().encode()
    files[info + "/WHEEL"] = ("Wheel-Version: 1.0\nGenerator: felloe\nRoot-Is-Purelib: false\nTag: %s\n" % tag).encode()
    files[info + "/LICENSE"] = licence
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += "%s,sha256=%s,%d\n" % (name, digest, len(data))
    files[info + "/RECORD"] = (record + info + "/RECORD,,\n").encode()
    wheel = "felloe-%s-%s.whl" % (version, tag)
    path = os.path.join(wheel_directory, wheel)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    base = "felloe-%s" % _version()
    path = os.path.join(sdist_directory, base + ".tar.gz")

    def clean(entry):
        if "__pycache__" in entry.name or entry.name.endswith((".so", ".pyc")):
            return None
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mtime = 315532800  # EPOCH
        return entry

    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name in SOURCES:
            archive.add(os.path.join(ROOT, name), base + "/" + name, filter=clean)
        info = _metadata().encode()
        entry = tarfile.TarInfo(base + "/PKG-INFO")
        entry.size, entry.mtime = len(info), 315532800
        archive.addfile(entry, io.BytesIO(info))
    return os.path.basename(path)


if __name__ == "__main__":
    # python3 python/backend.py [FOLDER]: a wheel without pip, moved into place when it is whole.
    import sys

    target = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "dist")
    os.makedirs(target, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target) as work:
        made = build_wheel(work)
        os.replace(os.path.join(work, made), os.path.join(target, made))
    print(os.path.join(target, made))
