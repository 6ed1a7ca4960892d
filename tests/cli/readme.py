"""The README's console blocks against what the program prints: python3 readme.py README.md FELLOE. UPDATE=1 rewrites them."""
import os
import pathlib
import re
import shlex
import subprocess
import sys


def main():
    readme, felloe = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
    stale = []

    def fresh(block):
        command = block.group(1)
        words = [str(felloe) if word == "felloe" else word for word in shlex.split(command)]
        run = subprocess.run(words, cwd=readme.parent, env=environment, capture_output=True, text=True, timeout=60)
        if run.stdout != block.group(2):
            stale.append(command)
        return f"```console\n$ {command}\n{run.stdout}```\n"

    text = readme.read_text()
    new, blocks = re.subn(r"```console\n\$ (.*)\n((?:.*\n)*?)```\n", fresh, text)
    if os.environ.get("UPDATE"):
        readme.write_text(new)
        return 0
    print(f"{blocks} blocks, stale: {stale or 'none'}")
    return 1 if stale or not blocks else 0


if __name__ == "__main__":
    sys.exit(main())
