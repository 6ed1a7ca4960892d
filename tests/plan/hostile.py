"""Data files that are broken or hostile: python3 hostile.py FELLOE EXAMPLE. Judge: exit code 3 with the file and a line, or an answer;
never a crash, a hang or silence."""
import pathlib
import subprocess
import sys
import tempfile

EXTENSION = "extensions:\n  - {name: x, imports: [x], compiled: cuda, date: 2026-01-01, source: s%s}\n"
SOURCE = "sources:\n  - {name: s, kind: index, layout: simple, pages: [{url: 'https://example.org/'%s}]%s}\n"
TARGET = "targets:\n  - {name: zerogpu%s}\n"

BROKEN = [
    ("extensions.yaml", "extensions: [\n"),
    ("extensions.yaml", "extensions: 3\n"),
    ("extensions.yaml", ""),
    ("extensions.yaml", "\xff\xfe\x00"),
    ("extensions.yaml", "a: &a [*a]\n"),
    ("extensions.yaml", "extensions:\n  - just text\n"),
    ("extensions.yaml", EXTENSION % ", colour: red"),
    ("extensions.yaml", EXTENSION % ", pypi: maybe"),
    ("extensions.yaml", EXTENSION % ", builds: [{flags: [x]}]"),
    ("extensions.yaml", EXTENSION % ", forks: [{name: f, build: 7}], builds: [{url: u}]"),
    ("extensions.yaml", EXTENSION % ", archs: [{versions: '<<1'}]"),
    ("extensions.yaml", "extensions:\n  - {name: x, imports: [x]}\n  - {name: x, imports: [x]}\n"),
    ("extensions.yaml", "extensions:\n  - {imports: [x]}\n"),
    ("extensions.yaml", "x: " + "[" * 100000),
    ("sources.yaml", "sources:\n  - {name: s}\n"),
    ("sources.yaml", SOURCE % (", files: ['no wheel.whl']", "")),
    ("sources.yaml", SOURCE % (", files: ['x-1-cp{py}-cp{py}-linux_x86_64.whl']", "")),
    ("sources.yaml", SOURCE % (", extension: nothing", "")),
    ("sources.yaml", SOURCE % ("", ", extensions: [nothing]")),
    ("sources.yaml", SOURCE % ("", ", kind2: x")),
    ("targets.yaml", TARGET % ", glibc: new"),
    ("targets.yaml", TARGET % ", torch: [{version: x}]"),
    ("targets.yaml", TARGET % ", pythons: ['three']"),
    ("targets.yaml", "targets:\n  - {}\n"),
    ("limits.yaml", "pythons: {\n"),
]
HARMLESS = [
    ("extensions.yaml", EXTENSION % ""),
    ("targets.yaml", TARGET % ""),
    ("targets.yaml", TARGET % ", torch: [], sizes: 3"),
    ("limits.yaml", "x: 1\n"),
    ("limits.yaml", "pythons: [1, {distribution: numpy}]\ntorch_family: {a: b}\n"),
]


def run(program, example, name, text):
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, name).write_bytes(text.encode("latin-1"))
        if name == "extensions.yaml" and "name: x" in text: # the sources name other extensions
            pathlib.Path(folder, "sources.yaml").write_text("sources: []\n")
        return subprocess.run([program, "plan", "--offline", "--data", folder, example], capture_output=True, text=True, timeout=20)


def main():
    program, example = sys.argv[1:]
    bad = 0
    for name, text in BROKEN:
        done = run(program, example, name, text)
        if done.returncode != 3 or name not in done.stderr or "F005" not in done.stderr:
            bad += 1
            print(f"{name}: {text[:70]!r}: exit code {done.returncode}: {done.stderr[:300]}")
    for name, text in HARMLESS:
        done = run(program, example, name, text)
        if done.returncode not in (0, 1):
            bad += 1
            print(f"{name}: {text[:70]!r}: exit code {done.returncode}: {done.stderr[:300]}")
    print(f"{len(BROKEN)} broken and {len(HARMLESS)} odd data files, {bad} badly taken")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
