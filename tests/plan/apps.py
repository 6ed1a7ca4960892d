"""Plans of whole apps: python3 apps.py FELLOE EXAMPLES CASES.jsonl. Every folder of EXAMPLES and every row of CASES is planned for every
target, offline. Judge: the contract (each extension that scan finds has an item; an item has a source, or an error finding with a way
out), `patch` (each diff applies and gives what --write writes), and a second run, which says and changes nothing."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

STRATEGIES = {"wheel", "committed", "jit", "drop-in", "kernels", "unneeded", "none"}
KINDS = {"dataset", "release", "official-app", "index", "file", "build", "felloe"}
TARGETS = ["zerogpu", "cuda-local", "cpu-local"]


def felloe(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def check_items(plan, scan, faults):
    items = {item["extension"]: item for item in plan["items"]}
    for extension in scan["extensions"]:
        if extension["name"] not in items:
            faults.append(f"{extension['name']} has no item")
    errors = {finding["subject"]: finding for finding in plan["findings"] if finding["code"] == "F221"}
    for name, item in items.items():
        for shape in [item, *item["alternatives"]]:
            if shape["strategy"] not in STRATEGIES or not shape["reason"] or shape["verified"] not in ("deep", "name", "no"):
                faults.append(f"{name}: not the contract's shape: {shape}")
            source = shape["source"]
            if source and (source["kind"] not in KINDS or not source["url"]):
                faults.append(f"{name}: not a source: {source}")
        if item["strategy"] == "none":
            if name not in errors or len(errors[name]["fix"]) < 20:
                faults.append(f"{name}: no source and no way out")
        elif item["strategy"] != "unneeded" and not item["source"]:
            faults.append(f"{name}: {item['strategy']} without a source")


def tree(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def check_write(program, folder, target, plan, faults):
    with tempfile.TemporaryDirectory() as name:
        written, patched = pathlib.Path(name, "written"), pathlib.Path(name, "patched")
        shutil.copytree(folder, written)
        shutil.copytree(folder, patched)
        for edit in plan["edits"]:
            done = subprocess.run(["patch", "--quiet", "--force", "-p1"], input=edit["diff"].encode(), cwd=patched, capture_output=True)
            if done.returncode:
                faults.append(f"{edit['file']}: patch says {done.stdout.decode(errors='replace')}")
        felloe(program, "plan", "--offline", "--write", "--target", target, str(written))
        first = tree(written)
        lock = first.get("felloe.lock", b"")
        if not lock.startswith(b"# felloe.lock/1\n"):
            faults.append("no felloe.lock")
        for path, content in tree(patched).items():
            if path != "felloe.lock" and first.get(path) != content:
                faults.append(f"{path}: --write and the diff disagree")
        code, text, _ = felloe(program, "plan", "--offline", "--write", "--json", "--target", target, str(written))
        again = json.loads(text)
        if again["edits"] or again["written"] or tree(written) != first:
            faults.append(f"a second --write changes {again['written']}: {''.join(edit['diff'] for edit in again['edits'])}")


def check_app(program, folder, label):
    bad = 0
    before = tree(folder)
    _, text, _ = felloe(program, "scan", "--json", str(folder))
    scan = json.loads(text)
    for target in TARGETS:
        faults = []
        code, text, errors = felloe(program, "plan", "--offline", "--json", "--target", target, str(folder))
        if code not in (0, 1):
            faults.append(f"exit code {code}: {errors}")
        else:
            plan = json.loads(text)
            if plan["schema"] != "felloe.plan/1":
                faults.append("schema")
            check_items(plan, scan, faults)
            if felloe(program, "plan", "--offline", "--json", "--target", target, str(folder))[1] != text:
                faults.append("two runs differ")
            if tree(folder) != before:
                faults.append("files changed without --write")
            check_write(program, folder, target, plan, faults)
        for fault in faults:
            print(f"{label} for {target}: {fault}")
        bad += bool(faults)
    return bad


def main():
    program, examples, cases = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    bad = apps = 0
    for folder in sorted(examples.iterdir()):
        if (folder / "app.py").exists():
            bad += check_app(program, folder, folder.name)
            apps += 1
    rows = cases.read_text().splitlines() if cases.exists() else []
    for line in rows:
        row = json.loads(line)
        with tempfile.TemporaryDirectory() as name:
            for path, content in row["files"].items():
                file = pathlib.Path(name, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(content)
            bad += check_app(program, pathlib.Path(name), row["id"])
            apps += 1
    if not rows:
        print(f"{cases} is not there: only the examples were planned")
    print(f"{apps} apps for {len(TARGETS)} targets, {bad} with faults")
    return bad > 0 or apps == 0


if __name__ == "__main__":
    sys.exit(main())
