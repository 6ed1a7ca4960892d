"""Asks the driver and the `packaging` library the same questions and compares every answer.

packaging (the version and hash in packaging.txt) is fetched by pip into --cache and imported from the wheel itself;
without a network the test is skipped (exit code 77). Inputs are generated from a seed: valid ones by grammar, broken ones
by mutation. Where packaging departs from the standards we follow the standards, and the question is not asked:

  * a name or an extra that ends with '_' (packaging takes it, PEP 508 does not);
  * a backslash in a marker's string (packaging reads Python's escapes, PEP 508 has none);
  * clauses behind === with an empty one among them in a requirement (packaging's === swallows commas);
  * a variable or a literal on both sides of a marker's comparison (packaging takes the name of the right one for its
    value, or fails): only validity is compared;
  * a seventh field of a wheel's name, or a sixth that is no build tag (PEP 825, which packaging does not know).
"""
import argparse
import hashlib
import pathlib
import random
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
CASES = HERE.parent.parent.parent / "shared" / "cases" / "wheels.jsonl"


def fetch(cache):
    pinned = (HERE / "packaging.txt").read_text().split()
    wheel = cache / f"packaging-{pinned[0].split('==')[1]}-py3-none-any.whl"
    if not wheel.exists():
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps",
                   "--only-binary=:all:", "--require-hashes", "--dest", str(cache), "-r", str(HERE / "packaging.txt")]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0 and "DO NOT MATCH" in done.stderr:
            sys.exit(done.stderr)
        if done.returncode != 0 or not wheel.exists():
            print(f"skipped: pip could not fetch {pinned[0]}: {done.stderr.strip().splitlines()[-1:]}")
            sys.exit(77)
    if f"--hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}" != pinned[1]:
        sys.exit(f"{wheel}: not the file whose hash is pinned")
    sys.path.insert(0, str(wheel))


def escape(text):
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


class Driver:
    """Collects questions with the answers expected; asks all of them in one run."""

    def __init__(self, path):
        self.path = path
        self.questions, self.expected = [], []

    def ask(self, expected, *question):
        self.questions.append("\t".join(map(escape, question)))
        self.expected.append(escape(expected))

    def run(self, area):
        text = "\n".join(self.questions) + "\n"
        done = subprocess.run([self.path], input=text.encode(), capture_output=True)
        answers = done.stdout.decode().split("\n")[:-1]
        if done.returncode != 0 or len(answers) != len(self.questions):
            print(f"{area}: the driver ended with {done.returncode} after {len(answers)} answers\n"
                  f"{done.stderr.decode()[-2000:]}")
            return False
        wrong = [(q, e, a) for q, e, a in zip(self.questions, self.expected, answers) if e != a]
        for question, expected, answer in wrong[:10]:
            print(f"{area}: {question[:300]!r}\n  packaging: {expected[:300]!r}\n  felloe:    {answer[:300]!r}")
        refused = sum(e == "bad" for e in self.expected)
        print(f"{area}: {len(self.questions)} questions, {refused} of them to be refused, {len(wrong)} answers differ")
        return not wrong


# ---- Versions ----

SEPARATORS = ["", ".", "-", "_"]
PRE = ["a", "b", "c", "rc", "alpha", "beta", "pre", "preview"]
NUMBERS = ["0", "1", "2", "3", "9", "10", "11", "13", "00", "007", "20260318"]


def spelled(rng, word):
    return word if rng.random() < 0.8 else word.upper() if rng.random() < 0.5 else word.capitalize()


def make_version(rng, local=True, fancy=0.5):
    text = ".".join(rng.choice(NUMBERS[:7]) for _ in range(rng.choice([1, 2, 2, 3, 3, 3, 4, 6])))
    if rng.random() < 0.1:
        text = rng.choice(["0", "1", "2"]) + "!" + text
    if rng.random() < 0.1 * fancy:
        text = rng.choice("vV") + text
    def suffix(word, chance):
        if rng.random() > chance * fancy:
            return ""
        number = rng.choice(NUMBERS + [""])
        return rng.choice(SEPARATORS) + spelled(rng, word) + rng.choice(SEPARATORS) + number
    text += suffix(rng.choice(PRE), 0.5)
    text += suffix(rng.choice(["post", "rev", "r"]), 0.35)
    if rng.random() < 0.05:
        text += "-" + rng.choice(NUMBERS)
    text += suffix("dev", 0.35)
    if local and rng.random() < 0.4:
        text += "+" + make_local(rng)
    return text


def make_local(rng):
    parts = ["cu130", "torch2", "11", "0", "001", "cxx11abiFALSE", "abc", "ABC", "9", "10", "d20260528", "3da0fc92", "a1"]
    text = rng.choice(parts)
    for _ in range(rng.choice([0, 0, 1, 2, 3])):
        text += rng.choice(".-_") + rng.choice(parts)
    return text


def mutate(rng, text, alphabet):
    chars = list(text)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        at = rng.randrange(len(chars) + 1)
        kind = rng.random()
        if kind < 0.4:
            chars.insert(at, rng.choice(alphabet))
        elif kind < 0.7 and at < len(chars):
            del chars[at]
        elif kind < 0.85 and at < len(chars):
            chars[at] = rng.choice(alphabet)
        elif len(chars) > 1:
            k = rng.randrange(len(chars))
            at = min(at, len(chars) - 1)
            chars[at], chars[k] = chars[k], chars[at]
    return "".join(chars)


VERSION_ALPHABET = "0123456789.-_+!*abcdevrpostxV \t\n,=<>~"


def try_version(text):
    from packaging.version import InvalidVersion, Version
    try:
        return Version(text)
    except InvalidVersion:
        return None


def versions(driver, rng, count):
    pool = []
    for i in range(count):
        text = make_version(rng)
        if i % 3 == 0:
            text = mutate(rng, text, VERSION_ALPHABET)
        if rng.random() < 0.02:
            text = rng.choice([" ", "\t", "\n", "\v", "\f", ""]) + text + rng.choice([" ", "\r\n", ""])
        v = try_version(text)
        if v is not None:
            pool.append(text)
        driver.ask("bad" if v is None else
                   f"{v} {v.public} {v.local or ''} {'pre' if v.is_prerelease else 'final'}", "version", text)
    for _ in range(count):
        left = rng.choice(pool)
        right = rng.choice(pool) if rng.random() < 0.3 else near(rng, left)
        v, w = try_version(left), try_version(right)
        driver.ask("bad" if w is None else "<" if v < w else ">" if v > w else "=", "compare", left, right)


def near(rng, text):
    """A version that differs little from text, so that orders are decided by late fields."""
    kind = rng.random()
    public, _, local = text.partition("+")
    if kind < 0.2:
        return public
    if kind < 0.4:
        return public + "+" + make_local(rng)
    if kind < 0.6:
        return re.sub(r"^([vV]?[0-9!.]*[0-9]).*$", r"\1", public.strip()) + rng.choice(
            ["", ".0", ".dev0", "a0", "rc1", ".post0", ".post1", "a0.post1.dev2", ".1", ".post1.dev0", "a1", "rc1.dev3"])
    if kind < 0.8:
        return re.sub(r"[0-9]+", lambda m: rng.choice([m[0], m[0], m[0] + "0", "0", "1"]), text)
    return text


# ---- Specifiers ----

OPERATORS = ["==", "==", "!=", "~=", "<=", ">=", "<", ">", "==="]


def make_clause(rng):
    op = rng.choice(OPERATORS)
    version = make_version(rng, local=op in ("==", "!=", "===") and rng.random() < 0.5, fancy=rng.choice([0, 0.3, 1]))
    if op in ("==", "!=") and rng.random() < 0.3:
        version = re.sub(r"^([vV]?(?:[0-9]+!)?[0-9.]*[0-9]).*$", r"\1", version) + ".*"
    if op == "===" and rng.random() < 0.3:
        version = rng.choice(["foo", "2.11.0+cu130", "1.0.0", "any-thing!", "=1"])
    return op + rng.choice(["", "", " ", "  ", "\t"]) + version


def make_specs(rng):
    text = rng.choice([",", ",", ", ", " , "]).join(make_clause(rng) for _ in range(rng.choice([1, 1, 1, 2, 2, 3])))
    if rng.random() < 0.03:
        text += ","
    return text if rng.random() < 0.75 else mutate(rng, text, VERSION_ALPHABET)


def specifiers(driver, rng, count):
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    for _ in range(count):
        text = make_specs(rng)
        try:
            specs = SpecifierSet(text)
        except InvalidSpecifier:
            driver.ask("bad", "specs", text)
            continue
        clauses = [s.strip() for s in text.split(",") if s.strip()]
        shown = ",".join(str(type(next(iter(specs)))(c)) for c in clauses)
        candidates = []
        for clause in clauses:
            version = re.sub(r"\.\*$", "", clause.lstrip("=<>!~ \t"))
            if try_version(version) is not None:
                candidates += [version, near(rng, version), near(rng, version), near(rng, version)]
        candidates += [make_version(rng)]
        candidates = [c for c in dict.fromkeys(candidates) if c == c.strip() and try_version(c) is not None][:12]
        answer = "ok " + shown
        for candidate in candidates:
            named = specs.contains(candidate, prereleases=bool(specs.prereleases))
            always = specs.contains(candidate, prereleases=True)
            answer += " " + "FT"[named] + "FT"[always]
        driver.ask(answer, "specs", text, *candidates)


# ---- Names of wheels and distributions ----

PYTHONS = ["cp310", "cp311", "cp312", "cp313", "cp39", "py3", "py2", "py312", "cp314", "pp310", "cp38", "cp32"]
ABIS = ["cp310", "cp311", "cp312", "cp313", "cp313t", "abi3", "abi3t", "none", "cp39", "cp314t", "cp36m"]
PLATFORMS = ["linux_x86_64", "linux_aarch64", "manylinux2014_x86_64", "manylinux_2_17_x86_64", "manylinux_2_28_x86_64",
             "manylinux_2_34_aarch64", "manylinux1_x86_64", "manylinux2010_i686", "musllinux_1_1_x86_64",
             "musllinux_1_2_aarch64", "any", "win_amd64", "macosx_11_0_arm64", "manylinux_2_36_x86_64", "1",
             "manylinux_2_35_x86_64", "linux_i686"]
DISTRIBUTIONS = ["flash_attn", "torch", "nvdiffrast", "Flask", "zope.interface", "spconv_cu120", "diff_gaussian_rasterization",
                 "a", "A_b.C", "x1", "_x", "x_"]


def tag_text(rng):
    def some(choices):
        return ".".join(rng.choice(choices) for _ in range(rng.choice([1, 1, 1, 2, 3])))
    return f"{some(PYTHONS)}-{some(ABIS)}-{some(PLATFORMS)}"


def names(driver, rng, count):
    from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
    real = []
    if CASES.exists():
        real = re.findall(r'"file": "([^"]*)"', CASES.read_text())
    for i in range(count):
        build = f"-{rng.choice(['1', '0', '2abc', '1_x', '20'])}" if rng.random() < 0.15 else ""
        text = f"{rng.choice(DISTRIBUTIONS)}-{make_version(rng, fancy=0.3).replace('-', '_')}{build}-{tag_text(rng)}.whl"
        if i < len(real):
            text = real[i]
        elif i % 2 == 0:
            text = mutate(rng, text, "0123456789.-_+!abcdevrpostxVwhl~(),@[]")
        fields = text.removesuffix(".whl").split("-")
        if len(fields) == 7 or (len(fields) == 6 and not fields[2][:1].isdigit()):
            continue
        if "@" in text or "%" in text:
            continue
        try:
            name, version, tag, _ = parse_wheel_filename(text)
        except InvalidWheelFilename:
            driver.ask("bad", "name", text)
            continue
        tag = f"{fields[2]}" if tag else ""
        driver.ask(f"{name} {version} {tag} {' '.join(fields[-3:])}", "name", text)
    pattern = re.compile(r"[a-z0-9]|[a-z0-9][a-z0-9._-]*[a-z0-9]", re.I | re.A)
    for _ in range(count):
        name = "".join(rng.choice("abZ09-_.") for _ in range(rng.randrange(9)))
        other = name.replace("_", rng.choice("-_.")).swapcase() if rng.random() < 0.5 else name[:-1] + "-"
        driver.ask(f"{canonicalize_name(name)} {'valid' if pattern.fullmatch(name) else 'invalid'} "
                   f"{'same' if canonicalize_name(name) == canonicalize_name(other) else 'other'}",
                   "distribution", name, other)


# ---- Tags ----

def platforms_of(machine, glibc, musl):
    """packaging's own platform lists, with what it would find out about the machine given instead."""
    from packaging import _manylinux, _musllinux
    _manylinux._have_compatible_abi = lambda executable, archs: True
    _manylinux._get_manylinux_module = lambda: None
    _manylinux._get_glibc_version = lambda: _manylinux._GLibCVersion(*((2, glibc) if glibc else (-1, -1)))
    _musllinux._get_musl_version = lambda executable: _musllinux._MuslVersion(1, musl - 1) if musl else None
    return [f"linux_{machine}", *_manylinux.platform_tags([machine]), *_musllinux.platform_tags([machine])]


def supported(minor, threaded, platforms):
    from packaging import tags
    abi = f"cp3{minor}{'t' if threaded else ''}"
    return [*tags.cpython_tags((3, minor), [abi], platforms),
            *tags.compatible_tags((3, minor), f"cp3{minor}", platforms)]


def tags(driver, rng, count):
    from packaging.tags import parse_tag
    environments = [(3, minor) for minor in (2, 8, 9, 10, 11, 12, 13, 14, 15)]
    runs = []
    for _, minor in environments:
        for threaded in ([0, 1] if minor >= 13 else [0]):
            for machine, glibc, musl in [("x86_64", 36, 0), ("x86_64", 17, 0), ("aarch64", 39, 0), ("x86_64", 0, 3),
                                         ("i686", 12, 0), ("aarch64", 0, 2), ("x86_64", 4, 0), ("riscv64", 41, 0)]:
                if rng.random() < 0.6:
                    runs.append((minor, threaded, machine, glibc, musl))
    for minor, threaded, machine, glibc, musl in runs:
        listed = supported(minor, threaded, platforms_of(machine, glibc, musl))
        environment = [str(minor), str(threaded), machine, str(glibc), str(musl), "-"]
        driver.ask("".join(f"{t} " for t in listed), "tags", *environment)
        rank = {}
        for i, t in enumerate(listed):
            rank.setdefault(t, i)
        for _ in range(count // len(runs)):
            text = tag_text(rng)
            if rng.random() < 0.5:
                t = rng.choice(listed)
                text = f"{t.interpreter}.{rng.choice(PYTHONS)}-{t.abi}-{rng.choice(PLATFORMS)}.{t.platform}"
            best = min((rank[t] for t in parse_tag(text) if t in rank), default=None)
            driver.ask("none" if best is None else str(best), "rank", *environment, text)


# ---- Requirements and markers ----

VARIABLES = ["python_version", "python_version", "python_full_version", "os_name", "sys_platform", "platform_release",
             "platform_system", "platform_version", "platform_machine", "platform_python_implementation",
             "implementation_name", "implementation_version", "extra", "extra", "os.name", "sys.platform",
             "platform.version", "platform.machine", "platform.python_implementation", "python_implementation"]
ENVIRONMENT = ["os_name", "sys_platform", "platform_machine", "platform_python_implementation", "platform_release",
               "platform_system", "platform_version", "python_version", "python_full_version", "implementation_name",
               "implementation_version", "extra"]
ENVIRONMENTS = [
    ["posix", "linux", "x86_64", "CPython", "6.1.0-18-amd64", "Linux", "#1 SMP", "3.12", "3.12.12", "cpython", "3.12.12", ""],
    ["posix", "linux", "aarch64", "CPython", "5.15.0", "Linux", "#9", "3.10", "3.10.13", "cpython", "3.10.13", "Dev_Tools"],
    ["nt", "win32", "AMD64", "CPython", "10", "Windows", "10.0.19045", "3.9", "3.9.0", "cpython", "3.9.0", "gpu"],
    ["posix", "linux", "x86_64", "PyPy", "6.1", "Linux", "#1", "3.13", "3.13.0a1+", "pypy", "7.3.13", "test"],
]
LITERALS = ["3.10", "3.9", "3.12", "3", "3.8.*", "3.12.12", "3.10.13", "linux", "win32", "posix", "Linux", "x86_64", "CPython",
            "cpython", "gpu", "Dev.Tools", "dev-tools", "test", "3.8, 3.9, 3.12", "", "5.15.0", "6.1", "10", "3.13.0a1",
            "3.11.0rc1", "lin", "x86", "=3.12", " 3.9 ", "3.12.*", "7.3", "it's", 'a "b"', "nt;x", "é"]
COMPARISONS = ["==", "==", "!=", "<", "<=", ">", ">=", "~=", "===", "in", "not in", "not  in"]


def quoted(rng, text):
    quote = '"' if "'" in text else "'" if '"' in text else rng.choice("'\"")
    return quote + text + quote


def make_comparison(rng):
    left, right = rng.choice(VARIABLES), quoted(rng, rng.choice(LITERALS))
    if rng.random() < 0.2:
        left, right = right, left
    if rng.random() < 0.02:
        left = right
    op = rng.choice(COMPARISONS)
    space = rng.choice(["", " ", " ", " ", "  ", "\t"])
    if op[0] in "in" and not (left[-1] in "'\"" and right[0] in "'\""):
        space = space or " "
    return left + space + op + space + right


def make_marker(rng, depth=0):
    def atom():
        if depth < 3 and rng.random() < 0.2:
            return rng.choice(["(", "( "]) + make_marker(rng, depth + 1) + rng.choice([")", " )"])
        return make_comparison(rng)
    text = atom()
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2, 3])):
        text += rng.choice([" and ", " or ", " and ", " or  "]) + atom()
    return text


def normal_marker(markers):
    """What marker_text prints for packaging's parsed list: 'or' of 'and's, brackets only where they change the meaning."""
    def tree(item):
        if isinstance(item, tuple):
            return ("leaf", " ".join(part.serialize() for part in item))
        groups = [[]]
        for part in item:
            if part == "or":
                groups.append([])
            elif part != "and":
                groups[-1].append(tree(part))
        return join("or", [join("and", group) for group in groups])

    def join(kind, parts):
        if len(parts) == 1:
            return parts[0]
        flat = []
        for part in parts:
            flat += part[1] if part[0] == kind else [part]
        return (kind, flat)

    def show(node, inside_and=False):
        if node[0] == "leaf":
            return node[1]
        text = f" {node[0]} ".join(show(part, node[0] == "and") for part in node[1])
        return f"({text})" if node[0] == "or" and inside_and else text
    return show(tree(markers))


def one_variable_each(markers):
    from packaging._parser import Variable
    return all(one_variable_each(m) if isinstance(m, list) else
               not isinstance(m, tuple) or isinstance(m[0], Variable) != isinstance(m[2], Variable) for m in markers)


MARKER_ALPHABET = "()'\"<>=!~ \tandorinotpython_version3.10exa;,"


def markers(driver, rng, count):
    from packaging.markers import InvalidMarker, Marker, UndefinedComparison, UndefinedEnvironmentName
    for i in range(count):
        text = make_marker(rng)
        if i % 3 == 0:
            text = mutate(rng, text, MARKER_ALPHABET)
        if "\\" in text:
            continue
        environment = rng.choice(ENVIRONMENTS)
        try:
            marker = Marker(text)
        except InvalidMarker:
            driver.ask("bad", "marker", text, *environment)
            continue
        shown = normal_marker(marker._markers)
        if not one_variable_each(marker._markers):
            continue
        try:
            # Without the other comparisons of the marker: an undefined one ends packaging's evaluation, and not ours.
            holds = evaluate(marker._markers, dict(zip(ENVIRONMENT, environment)))
        except UndefinedEnvironmentName:
            continue
        driver.ask(f"{'T' if holds else 'F'} {shown}", "marker", text, *environment)


def evaluate(markers, environment):
    """packaging's evaluation, comparison by comparison; one that it leaves undefined does not hold."""
    from packaging.markers import Marker, UndefinedComparison
    groups = [[]]
    for m in markers:
        if isinstance(m, list):
            groups[-1].append(evaluate(m, environment))
        elif isinstance(m, tuple):
            try:
                groups[-1].append(Marker._from_markers([m]).evaluate(environment))
            except UndefinedComparison:
                groups[-1].append(False)
        elif m == "or":
            groups.append([])
    return any(all(group) for group in groups)


def make_requirement(rng):
    text = rng.choice(["torch", "Flask-SQLAlchemy", "zope.interface", "a", "x_y", "spconv-cu120", "A1"])
    text = rng.choice(["", "", "", " "]) + text + rng.choice(["", "", " "])
    if rng.random() < 0.3:
        extras = [rng.choice(["gpu", "dev", "test-x", "a.b", "X_1"]) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
        text += "[" + rng.choice(["", " "]) + rng.choice([",", " , ", ", "]).join(extras) + rng.choice(["", " "]) + "]"
        text += rng.choice(["", " "])
    kind = rng.random()
    if kind < 0.55:
        specs = ", ".join(make_clause(rng) for _ in range(rng.choice([1, 1, 2, 3])))
        text += f"({specs})" if rng.random() < 0.2 else specs
        if rng.random() < 0.03:
            text += ","
    elif kind < 0.75:
        text += "@" + rng.choice(["", " "]) + rng.choice([
            "https://example.org/x-1.0-py3-none-any.whl", "git+https://example.org/r.git@v1#egg=x&subdirectory=d",
            "file:///tmp/x.whl#sha256=abc", "https://example.org/a%2Bb;c", "./x"])
        text += rng.choice(["", " ", "  "])
    if rng.random() < 0.4:
        text += rng.choice([";", "; ", " ; "]) + make_marker(rng)
    return text


REQUIREMENT_ALPHABET = "[]()@;,<>=!~ \t.-_+*abtorch019'\"/:#\n"


def requirements(driver, rng, count):
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.specifiers import Specifier
    for i in range(count):
        text = make_requirement(rng)
        if i % 3 == 0:
            text = mutate(rng, text, REQUIREMENT_ALPHABET)
        try:
            r = Requirement(text)
        except InvalidRequirement:
            r = None
        if r is not None and (r.name.endswith("_") or any(e.endswith("_") for e in r.extras)):
            continue
        if "\\" in text or re.search(r"===[^;)]*,\s*,", text):
            continue
        if r is None:
            driver.ask("bad", "requirement", text)
            continue
        # In the order of the text, which packaging does not keep.
        listed = re.match(r"[^\[@;(<>=!~]*\[([^\]]*)\]", text)
        extras = [e.strip() for e in listed[1].split(",")] if listed and listed[1].strip() else []
        assert set(extras) == r.extras, text
        clauses = []
        if r.specifier:
            body = re.sub(r"^[^(<>=!~]*", "", text.split("]", 1)[-1] if listed else text)
            for clause in re.split(r"[;)]", body.lstrip("("))[0].split(","):
                if clause.strip():
                    clauses.append(str(Specifier(clause.strip())))
            assert set(clauses) == {str(s) for s in r.specifier}, text
        marker = normal_marker(r.marker._markers) if r.marker else ""
        driver.ask("|".join([r.name, ",".join(extras), ",".join(clauses), r.url or "", marker]), "requirement", text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True)
    parser.add_argument("--cache", type=pathlib.Path, required=True)
    parser.add_argument("--count", type=int, default=24000, help="questions per area, about")
    parser.add_argument("--seed", type=int, default=440)
    options = parser.parse_args()
    fetch(options.cache)
    well = True
    for area in (versions, specifiers, names, tags, requirements, markers):
        driver = Driver(options.driver)
        area(driver, random.Random(f"{area.__name__} {options.seed}"), options.count)
        well = driver.run(area.__name__) and well
    sys.exit(not well)


main()
