"""Runs one case of the command line: python3 run.py CASE FELLOE.

A case is a folder: `cmd` (a shell script that finds the program as $FELLOE and the sources as $SOURCE), `exit` (the code), `stdout`
and `stderr` (whole texts; absent: not looked at), and `input/` (copied; the script starts there). In the texts '[..]' stands for
any run of characters of a line and a line '...' for any number of lines. UPDATE=1 writes what came instead of comparing."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


def matches(expected, got):
    pattern = ""
    for line in expected.splitlines(keepends=True):
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(re.escape(part) for part in line.split("[..]"))
    return re.fullmatch(pattern, got) is not None


def main():
    case, felloe = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    failures = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "work"
        if (case / "input").is_dir():
            shutil.copytree(case / "input", folder, symlinks=True)
        else:
            folder.mkdir()
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("FELLOE", "LC_", "NO_COLOR", "COLUMNS"))}
        environment.update(FELLOE=str(felloe), SOURCE=str(case.parent.parent.parent), HOME=scratch, COLUMNS="100",
                           XDG_CACHE_HOME=scratch + "/cache", TMPDIR=scratch, LC_ALL="C.UTF-8")
        run = subprocess.run(["sh", "-c", (case / "cmd").read_text()], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                             capture_output=True, timeout=120)
    texts = {"exit": f"{run.returncode}\n", "stdout": run.stdout.decode("utf-8", "replace"),
             "stderr": run.stderr.decode("utf-8", "replace")}
    for name, got in texts.items():
        got = got.replace(scratch, "$SCRATCH").replace(str(felloe), "felloe")
        file = case / name
        if os.environ.get("UPDATE"):
            file.write_text(got)
        elif file.exists() and not matches(file.read_text(), got):
            failures.append(f"--- {name}: expected\n{file.read_text()}--- {name}: got\n{got}")
    print("\n".join(failures) or "as expected")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
