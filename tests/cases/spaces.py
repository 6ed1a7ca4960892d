"""Real apps with right answers: python3 spaces.py FELLOE CASES.jsonl. Each row's files become a folder; `felloe scan` has to find its
extensions, how each is obtained, its GPU functions, and every expected problem at its place. Exit code 77 when there are no cases.

Judge: the rows' own `expect`. Where a row contradicts the definitions of the format's description, EXCEPTIONS says so and why."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

# What a finding of each kind is called in the table of findings.
CODES = {
    "extension-not-obtained": "F300", "source-cuda-in-requirements": "F301", "silent-install": "F302",
    "install-after-import": "F303", "startup-path-missing": "F304", "startup-file-missing": "F305", "env-replaced": "F306",
    "missing-no-build-isolation": "F307", "missing-arch-list": "F308", "jit-in-gpu-call": "F309", "extension-suffix-risk": "F310",
    "cpu-only-build-risk": "F311", "jit-at-first-use": "F312", "cuda-major-mismatch": "F313", "fork-without-wheel": "F314",
    "torch-not-accepted": "F110", "python-limit": "F111", "platform-package-pinned": "F114", "vendored-platform-package": "F115",
    "unpinned-with-torch-pin": "F116", "torch-unpinned-with-wheel": "F117", "no-app-file": "F118", "no-gpu-decorator": "F119",
    "requirements-not-at-root": "F123", "local-path-in-requirements": "F124", "dependency-conflict": "F125",
    "wheel-python-mismatch": "F270", "wheel-torch-unknown": "F271", "missing-arch-risk": "F272", "no-matching-wheel": "F277",
    "fixed-output-path": "F400", "eager-example-cache": "F401", "duration-short": "F402", "work-in-child-process": "F412",
    "attention-fa3": "F413", "attention-backend-default": "F414",
}

# (row, fact): why the row's own text cannot be right.
EXCEPTIONS = {
    # "On an equally plain path": LHM.models is imported only inside a function that nothing calls, engine.SegmentAPI.SAM only inside a
    # try that catches ImportError.
    ("lhm", "diff_gaussian_rasterization: needed_at_start True"),
    ("lhm", "pytorch3d: needed_at_start True"),
}


def plain(text):
    return re.sub(r"[-_.]+", "-", text or "").strip("-").lower()


def same_way(expected, got):
    if expected["how"] != got["how"]:
        return False
    if expected["how"] == "none":
        return True
    return (expected.get("file") in (None, got["file"])) and (expected.get("line") in (None, got["line"]))


def compare_extensions(row, scan, faults):
    got = {extension["name"]: extension for extension in scan["extensions"]}
    for expected in row["expect"]["extensions"]:
        name = expected["name"]
        if name not in got:
            faults.append(f"extension {name} was not found")
            continue
        found = got.pop(name)
        if expected["compiled"] != found["compiled"]:
            faults.append(f"{name}: compiled {expected['compiled']}, got {found['compiled']}")
        for text in expected["imports"]:
            if text not in found["imports"]:
                faults.append(f"{name}: import '{text}' is not among {found['imports']}")
        if expected["needed_at_start"] != found["needed_at_start"]:
            faults.append(f"{name}: needed_at_start {expected['needed_at_start']}, got {found['needed_at_start']}")
        for way in expected["obtained"]:
            if not any(same_way(way, other) for other in found["obtained"]):
                faults.append(f"{name}: obtained {way}, got {found['obtained']}")
        if len(expected["obtained"]) != len(found["obtained"]):
            faults.append(f"{name}: {len(expected['obtained'])} ways to obtain it, got {found['obtained']}")
        for text in expected.get("documented_in_script", []):
            if text not in found["documented_in_script"]:
                faults.append(f"{name}: script line '{text}' is not among {found['documented_in_script']}")
    for name in got:
        faults.append(f"extension {name} is not expected")


def compare_functions(row, scan, faults):
    got = [(g["name"], g["file"], g["duration"], g["duration_dynamic"]) for g in scan["gpu_functions"]]
    expected = [(g["name"], g["file"], g["duration"], g["duration_dynamic"]) for g in row["expect"]["gpu_functions"]]
    if sorted(map(str, got)) != sorted(map(str, expected)):
        faults.append(f"GPU functions {expected}, got {got}")


def is_problem(expected, finding):
    if finding["code"] != CODES[expected["kind"]]:
        return False
    subject = plain(expected["subject"])
    if subject != plain(finding["subject"]) and subject not in plain(finding["what"]):
        return False
    if expected.get("file") and expected["file"] != finding["file"]:
        return False
    if expected.get("line") and expected["line"] != finding["line"]:
        return False
    return not expected.get("python") or expected["python"] in finding["what"]


def compare_problems(row, scan, faults, remarks):
    for expected in row["expect"]["problems"]:
        matching = [finding for finding in scan["findings"] if is_problem(expected, finding)]
        if not matching:
            near = [(f["file"], f["line"], f["subject"], f["what"]) for f in scan["findings"] if f["code"] == CODES[expected["kind"]]]
            faults.append(f"problem {expected} is not among {near}")
        elif expected["severity"] not in [finding["severity"] for finding in matching]:
            remarks.append(f"{row['id']}: {expected['kind']} {expected['subject']}: {expected['severity']}, ours {matching[0]['severity']}")


def main():
    felloe, cases = sys.argv[1], pathlib.Path(sys.argv[2])
    if not cases.exists():
        print(f"skipped: there is no {cases}")
        return 77
    wrong, remarks, extra, rows = 0, [], 0, [json.loads(line) for line in cases.read_text().splitlines()]
    for row in rows:
        faults = []
        with tempfile.TemporaryDirectory() as folder:
            for name, text in row["files"].items():
                file = pathlib.Path(folder) / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            run = subprocess.run([felloe, "scan", "--json", "--target", "zerogpu", folder], capture_output=True, text=True, timeout=60)
        if run.returncode not in (0, 1):
            faults.append(f"exit code {run.returncode}: {run.stderr}")
        else:
            scan = json.loads(run.stdout)
            for key in ("sdk", "app_file"):
                if row["expect"]["app"][key] != scan["app"][key]:
                    faults.append(f"app.{key}: {row['expect']['app'][key]}, got {scan['app'][key]}")
            compare_extensions(row, scan, faults)
            compare_functions(row, scan, faults)
            compare_problems(row, scan, faults, remarks)
            codes = {CODES[p["kind"]] for p in row["expect"]["problems"]}
            extra += sum(f["severity"] == "error" and f["code"] not in codes for f in scan["findings"])
        known = [fault for fault in faults if any(row["id"] == r and text in fault for r, text in EXCEPTIONS)]
        faults = [fault for fault in faults if fault not in known]
        wrong += bool(faults)
        print(f"{row['id']}: {'ok' if not faults else 'WRONG'}{f' ({len(known)} known exceptions)' if known else ''}")
        for fault in faults:
            print(f"    {fault}")
    for remark in remarks:
        print(f"severity: {remark}")
    print(f"{len(rows) - wrong} of {len(rows)} rows right; {len(remarks)} severities differ; {extra} errors beyond the expected kinds")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
