"""Each command of docs/status.md that runs CTest selects something: each alternative of its -R and its --name matches the
name of a test that the command would run, and each -L the label of one. Without that a row shows nothing, and CTest says
so to nobody. The same of the tests whose durations tests/costs.txt has: one that is not found begins when it may, and
CTest says nothing either.

    status_test.py PAGE BUILD_FOLDER COSTS"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

HEAVY = "^(heavy|bench)$"  # what scripts/heavy-tests runs


def tests_of(build, *options):
    """The labels of each test, by its name. Asked for in another folder: even a list makes CTest empty the log of the folder
    that it is asked in, which is that of the CTest that runs this."""
    with tempfile.TemporaryDirectory() as folder:
        quoted = str(pathlib.Path(build).resolve()).replace("\\", "\\\\").replace('"', '\\"')
        pathlib.Path(folder, "CTestTestfile.cmake").write_text(f'subdirs("{quoted}")\n', encoding="utf-8")
        command = ("ctest", "--test-dir", folder, *options, "--show-only=json-v1")
        listed = subprocess.run(command, capture_output=True, text=True, check=True)
    return {
        test["name"]: next((one["value"] for one in test.get("properties", []) if one["name"] == "LABELS"), [])
        for test in json.loads(listed.stdout)["tests"]
    }


def alternatives(expression):
    """Those at the top: a bar between parentheses belongs to them."""
    depth, parts = 0, [""]
    for letter in expression:
        depth += (letter == "(") - (letter == ")")
        if letter == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def with_label(tests, expression):
    """Of `tests` those that have a label which the expression matches."""
    return {name: labels for name, labels in tests.items() if any(re.search(expression, label) for label in labels)}


def faults_of(span, tests):
    """What the command `span` asks for in vain. `tests`: all that it could run."""
    wanted = [(option, quoted or bare)
              for option, quoted, bare in re.findall(r"(?<!\S)(-R|-L|--name|--label) (?:'([^']*)'|(\S+))", span)]
    if "scripts/heavy-tests" in span:
        tests = with_label(tests, HEAVY)
    for option, expression in wanted:
        if option in ("-L", "--label"):
            for one in alternatives(expression):
                if not with_label(tests, one):
                    yield f"{option} {one}: no test has that label"
            tests = with_label(tests, expression)
    for option, expression in wanted:
        if option in ("-R", "--name"):
            for one in alternatives(expression):
                if not any(re.search(one, name) for name in tests):
                    yield f"{option} {one}: no test that it would run has that name"


def is_left_out(fault, names):
    """Benchmarks are, of the builds of ./test."""
    return fault.split(" ")[1].startswith("bench") and not any(name.startswith("bench") for name in names)


def is_missing(name, names):
    """Of a family of tests that this build has none of, as of a tool that isn't there, none is missing."""
    family = name.rpartition(".")[0]
    return name not in names and (not family or any(one.startswith(family + ".") for one in names))


def main():
    usual = tests_of(sys.argv[2])
    soak = tests_of(sys.argv[2], "-C", "soak")
    faults = []
    with open(sys.argv[1], encoding="utf-8") as page:
        for number, line in enumerate(page, 1):
            for span in re.findall(r"`([^`]*)`", line.replace("\\|", "|")):
                if "--preset" not in span:  # which is of another build
                    found = faults_of(span, soak if "-C soak" in span else usual)
                    faults += [f"{sys.argv[1]}:{number}: {one}" for one in found if not is_left_out(one, soak)]
    with open(sys.argv[3], encoding="utf-8") as costs:
        for number, line in enumerate(costs, 1):
            name = line.split()[0]
            fault = f"costs {name}: there is no such test"
            if name not in ("#", "---") and is_missing(name, soak) and not is_left_out(fault, soak):
                faults.append(f"{sys.argv[3]}:{number}: {fault}")
    print("\n".join([*faults, f"{len(soak)} tests; {len(faults)} names that none has"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
