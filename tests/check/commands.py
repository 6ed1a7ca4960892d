#!/usr/bin/env python3
"""Whole `felloe check` commands on wheels made here from the fixtures of tests/elf/data, on disk and from a loopback server.

usage: commands.py FELLOE SOURCE_DIR. Judges: what each wheel was made to be; Python's zipfile and hashlib.
"""
import base64
import hashlib
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest
import zipfile

FELLOE, SOURCE = sys.argv[1], sys.argv[2]
DATA = os.path.join(SOURCE, "tests", "elf", "data")


def fixture(name):
    with open(os.path.join(DATA, name), "rb") as file:
        return file.read()


def make_wheel(folder, objects, name="thing-1.0-cp312-cp312-linux_x86_64.whl", requires=("torch",), metadata=None, record=None, tags=None,
               method=zipfile.ZIP_DEFLATED, extra=None):
    dist, version, *_, py, abi, plat = name[:-4].split("-")
    info = f"{dist}-{version}.dist-info"
    files = dict(objects)
    files.update(extra or {})
    files[f"{info}/METADATA"] = (metadata or f"Metadata-Version: 2.1\nName: {dist}\nVersion: {version}\n" + "".join(
        f"Requires-Dist: {r}\n" for r in requires)).encode()
    files[f"{info}/WHEEL"] = ("Wheel-Version: 1.0\nRoot-Is-Purelib: false\n" + "".join(f"Tag: {t}\n" for t in tags or [f"{py}-{abi}-{plat}"])).encode()
    lines = [f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip('=')},{len(data)}" for path, data in files.items()]
    files[f"{info}/RECORD"] = (record or "\n".join(lines) + f"\n{info}/RECORD,,\n").encode()
    path = os.path.join(folder, name)
    with zipfile.ZipFile(path, "w", method) as archive:
        for entry, data in files.items():
            archive.writestr(entry, data)
    return path


def check(*arguments, code=None):
    done = subprocess.run([FELLOE, "check", "--json", *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode >= 0 and done.returncode < 128, done.stderr
    answer = json.loads(done.stdout) if done.stdout else None
    if code is not None:
        assert done.returncode == code, (done.returncode, done.stdout[-2000:], done.stderr)
    return answer["files"] if answer else done


def codes(file):
    return [f["code"] for f in file["findings"]]


class Handler(http.server.BaseHTTPRequestHandler):
    folder, sent, mode = None, 0, "ranges"

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        mode, _, name = self.path.lstrip("/").partition("/")
        if mode == "moved":
            self.send_response(302)
            self.send_header("Location", f"/ranges/{name}")
            self.end_headers()
            return
        path = os.path.join(self.folder, name.replace("%2B", "+"))
        if not os.path.exists(path):
            self.send_error(404)
            return
        with open(path, "rb") as file:
            data = file.read()
        total, status = len(data), 200
        ask = self.headers.get("Range")
        if ask and mode != "plain":
            first, _, last = ask.split("=")[1].partition("-")
            first, last = (int(first), min(int(last or total - 1), total - 1)) if first else (max(total - int(last), 0), total - 1)
            data, status = data[first:last + 1], 206
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {first}-{last}/{total}")
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if mode == "cut" and len(data) > 3000:
            data = data[:len(data) // 2]
        Handler.sent += len(data)
        try:
            self.wfile.write(data)
        except OSError:
            pass


class Check(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hold = tempfile.TemporaryDirectory()
        cls.folder = Handler.folder = cls.hold.name
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.base = f"http://127.0.0.1:{cls.server.server_port}"

    @classmethod
    def tearDownClass(cls):
        cls.server.shutdown()
        cls.hold.cleanup()

    def test_code_for_the_gpu_fits(self):
        [file] = check(make_wheel(self.folder, {"thing/_C.so": fixture("suffixes.so")}), code=0)
        self.assertEqual(("fits", []), (file["verdict"], file["findings"]))
        self.assertEqual(["sm_100f", "sm_120a"], file["objects"][0]["archs"])
        self.assertEqual(3, file["hashes"]["good"])

    def test_code_for_another_gpu_is_no_kernel(self):
        [file] = check(make_wheel(self.folder, {"thing/_C.so": fixture("sm90.so")}), code=1)
        self.assertEqual(("no-kernel", ["F204"]), (file["verdict"], codes(file)))

    def test_one_source_file_without_code_is_no_kernel(self):
        [file] = check(make_wheel(self.folder, {"thing/_C.so": fixture("mixed.so")}), code=1)
        self.assertEqual("no-kernel", file["verdict"])
        self.assertIn("1 of 2 pieces", file["findings"][0]["what"])

    def test_ptx_alone_fits_by_ptx(self):
        [file] = check(make_wheel(self.folder, {"thing/_C.so": fixture("ptx80.so")}), code=0)
        self.assertEqual(("fits-by-ptx", ["F210"]), (file["verdict"], codes(file)))

    def test_another_cuda_major_is_an_import_error(self):
        [file] = check("--torch", "2.10.0", make_wheel(self.folder, {"thing/_C.so": fixture("suffixes.so")}), code=1)
        self.assertEqual("import-error", file["verdict"])
        self.assertIn("libcudart.so.13", file["findings"][0]["what"])

    def test_another_python_is_not_installable(self):
        path = make_wheel(self.folder, {"thing/_C.so": fixture("suffixes.so")}, name="thing-1.0-cp39-cp39-linux_x86_64.whl")
        [file] = check(path, code=1)
        self.assertEqual(("not-installable", ["F202"]), (file["verdict"], codes(file)))

    def test_another_torch_in_requires_dist_is_not_installable(self):
        [file] = check(make_wheel(self.folder, {"thing/_C.so": fixture("suffixes.so")}, requires=["torch==2.8.0"]), code=1)
        self.assertEqual(("not-installable", ["F213"]), (file["verdict"], codes(file)))

    def test_a_changed_file_is_broken(self):
        path = make_wheel(self.folder, {"thing/_C.so": fixture("suffixes.so")}, extra={"thing/a.py": b"1\n"})
        with zipfile.ZipFile(path) as archive:
            files = {n: archive.read(n) for n in archive.namelist()}
        files["thing/a.py"] = b"2\n"
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in files.items():
                archive.writestr(name, data)
        [file] = check(path, code=1)
        self.assertEqual("broken", file["verdict"])
        self.assertIn("thing/a.py", file["findings"][0]["what"])

    def test_a_file_that_record_lacks_is_broken(self):
        path = make_wheel(self.folder, {"thing/_C.so": fixture("suffixes.so")})
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("thing/new.py", b"")
        [file] = check(path, code=1)
        self.assertEqual(("broken", ["F201"]), (file["verdict"], codes(file)))

    def test_name_and_metadata_that_disagree(self):
        path = make_wheel(self.folder, {"thing/_C.so": fixture("suffixes.so")}, metadata="Metadata-Version: 2.1\nName: other\nVersion: 1.0\nRequires-Dist: torch\n",
                          tags=["cp311-cp311-linux_x86_64"])
        [file] = check(path, code=1)
        self.assertEqual({"F212", "F255"}, set(codes(file)))

    def test_variant_properties_are_read(self):
        variant = json.dumps({"variants": {"cu13": {"nvidia": {"cuda_version": ["13"]}}}}).encode()
        path = make_wheel(self.folder, {"thing/_C.so": fixture("suffixes.so")}, extra={"thing-1.0.dist-info/variant.json": variant})
        [file] = check(path, code=0)
        self.assertEqual(["nvidia :: cuda_version :: 13"], file["variant_properties"])

    def test_stand_ins_are_told_from_damage(self):
        for text, code in ((b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "F216"), (b"<!doctype html><html>", "F216"),
                           (b"\0" * 400, "F200")):
            path = os.path.join(self.folder, "thing-2.0-cp312-cp312-linux_x86_64.whl")
            with open(path, "wb") as out:
                out.write(text)
            [file] = check(path, code=3)
            self.assertEqual(("broken", [code]), (file["verdict"], codes(file)))

    def test_a_wheel_cut_anywhere_is_broken_with_the_place(self):
        with open(make_wheel(self.folder, {"thing/_C.so": fixture("mixed.so")}), "rb") as whole:
            data = whole.read()
        for part in range(64):
            path = os.path.join(self.folder, "thing-3.0-cp312-cp312-linux_x86_64.whl")
            with open(path, "wb") as out:
                out.write(data[:len(data) * part // 64])
            [file] = check(path, code=3)
            self.assertEqual("broken", file["verdict"])
            if part:
                self.assertIn("at byte", file["findings"][0]["what"])

    def test_damage_in_the_middle_is_named(self):
        path = make_wheel(self.folder, {"thing/_C.so": fixture("mixed.so")})
        with open(path, "r+b") as file:
            file.seek(2000)
            file.write(b"\xff" * 64)
        [file] = check(path, code=3)
        self.assertEqual("broken", file["verdict"])
        self.assertIn("thing/_C.so", file["findings"][0]["what"])

    def test_members_outside_their_folder_are_refused(self):
        for name in ("../evil.so", "/evil.so", "a/../../evil.so"):
            [file] = check(make_wheel(self.folder, {name: b"x"}), code=3)
            self.assertEqual("broken", file["verdict"])

    def test_an_address_gives_the_answer_of_the_file(self):
        path = make_wheel(self.folder, {"thing/_C.so": fixture("mixed.so")}, name="thing-1.0+cu130-cp312-cp312-linux_x86_64.whl",
                          extra={"thing/weights.bin": os.urandom(400000)})
        [local] = check(path)
        for mode in ("ranges", "plain", "moved"):
            Handler.sent = 0
            [file] = check(f"{self.base}/{mode}/thing-1.0%2Bcu130-cp312-cp312-linux_x86_64.whl", code=1)
            for key in ("objects", "verdict", "build", "version", "local", "tags"):
                self.assertEqual(local[key], file[key], (mode, key))
            if mode != "plain":
                self.assertLess(Handler.sent, 200000)
                self.assertLess(file["bytes_read"], 200000)

    def test_stored_members_are_read_alike(self):
        path = make_wheel(self.folder, {"thing/_C.so": fixture("mixed.so")}, method=zipfile.ZIP_STORED)
        for where in (path, f"{self.base}/ranges/{os.path.basename(path)}", f"{self.base}/plain/{os.path.basename(path)}"):
            self.assertEqual("no-kernel", check(where, code=1)[0]["verdict"])

    def test_what_a_server_refuses_is_a_network_failure(self):
        [file] = check(f"{self.base}/ranges/none-1.0-py3-none-any.whl", code=4)
        self.assertIn("404", file["findings"][0]["what"])
        [file] = check("--offline", f"{self.base}/ranges/none-1.0-py3-none-any.whl", code=4)
        self.assertEqual(["F007"], codes(file))

    def test_names_alone_need_no_file(self):
        files = check("--names", "flash_attn-2.8.3+cu130torch2.11-cp312-cp312-linux_x86_64.whl", "flash_attn-2.8.3-cp39-cp39-linux_x86_64.whl", "x.whl")
        self.assertEqual(["unknown", "not-installable", "broken"], [f["verdict"] for f in files])
        self.assertEqual("2.11", files[0]["build"]["torch"])
        self.assertEqual([[], [], []], [f["objects"] for f in files])

    def test_a_folder_is_all_that_is_in_it(self):
        with tempfile.TemporaryDirectory() as folder:
            make_wheel(folder, {"thing/_C.so": fixture("suffixes.so")})
            with open(os.path.join(folder, "one.so"), "wb") as out:
                out.write(fixture("sm90.so"))
            self.assertEqual({"fits", "no-kernel"}, {f["verdict"] for f in check(folder, code=1)})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
