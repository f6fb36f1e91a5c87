"""Each command of docs/status.md that runs CTest selects something: each alternative of its -R and its --name matches the
name of a test, and each -L the label of one. Without that a row shows nothing, and CTest says so to nobody. The same of
the tests whose durations tests/costs.txt has: one that is not found begins when it may, and CTest says nothing either.

    status_test.py PAGE BUILD_FOLDER COSTS"""

import json
import re
import subprocess
import sys


def tests_of(build):
    """Name and labels of each test, those of a release build's soak as well."""
    listed = subprocess.run(("ctest", "--test-dir", build, "-C", "soak", "--show-only=json-v1"), capture_output=True, text=True, check=True)
    for test in json.loads(listed.stdout)["tests"]:
        labels = next((one["value"] for one in test.get("properties", []) if one["name"] == "LABELS"), [])
        yield test["name"], labels


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


def main():
    names, labels = [], set()
    for name, of_it in tests_of(sys.argv[2]):
        names.append(name)
        labels.update(of_it)
    has_benchmarks = any(name.startswith("bench") for name in names)  # which ./test leaves out
    bad = 0
    with open(sys.argv[1], encoding="utf-8") as page:
        for number, line in enumerate(page, 1):
            spans = [one for one in re.findall(r"`([^`]*)`", line.replace("\\|", "|")) if "--preset" not in one]  # of another build
            for option, quoted, bare in re.findall(r"(?<!\S)(-R|-L|--name|--label) (?:'([^']*)'|(\S+))", " ".join(spans)):
                among = names if option in ("-R", "--name") else labels
                for one in alternatives(quoted or bare):
                    if one.startswith("bench") and not has_benchmarks:
                        continue
                    if not any(re.search(one, each) for each in among):
                        bad += 1
                        print(f"{sys.argv[1]}:{number}: {option} {one}: no test has that {'name' if among is names else 'label'}")
    with open(sys.argv[3], encoding="utf-8") as costs:
        for number, line in enumerate(costs, 1):
            name = line.split()[0]
            if name not in (*names, "#", "---") and (has_benchmarks or not name.startswith("bench")):
                bad += 1
                print(f"{sys.argv[3]}:{number}: there is no test {name}")
    print(f"{len(names)} tests; {bad} names that none has")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
