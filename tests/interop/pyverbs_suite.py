"""rdma-core's own pyverbs suite: what passes on the kernel's rdma_rxe must pass here, and nothing may crash or hang.

The suite comes from Debian's rdma-core package (its documentation folder) and the bindings from python3-pyverbs; both
run unmodified. pyverbs_expected.txt says which tests must pass and why others are skipped.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import gzip
import json
import pathlib
import re
import shutil
import sys
import tempfile
from typing import Optional

from harness.processes import Finished, run
from harness.report import SKIP_EXIT_CODE, Report
from harness.world import World, add_arguments, check_parts

_DEBIANS_SUITE = pathlib.Path("/usr/share/doc/rdma-core/tests")
_PYTHON = "/usr/bin/python3"
_MODULE_LIMIT_S = 90.0
_SUITE_SIZE = 273


@dataclasses.dataclass
class Expected:
    """The checked-in list: tests that must pass, and patterns of tests that may be skipped, each with its reason."""

    must_pass: set[str]
    may_skip: list[tuple[re.Pattern[str], str]]

    def skip_reason(self, test: str) -> str:
        return next((reason for pattern, reason in self.may_skip if pattern.search(test)), "")


def read_expected(path: pathlib.Path) -> Expected:
    """Lines `pass TEST` and `skip PATTERN REASON`; `#` begins a comment."""
    expected = Expected(set(), [])
    for number, line in enumerate(path.read_text().splitlines(), 1):
        words = line.split(None, 2)
        if not words or words[0].startswith("#"):
            continue
        if words[0] == "pass" and len(words) == 2:
            expected.must_pass.add(words[1])
        elif words[0] == "skip" and len(words) == 3:
            expected.may_skip.append((re.compile(words[1]), words[2]))
        else:
            raise SystemExit(f"{path}:{number}: expected `pass TEST` or `skip PATTERN REASON`, found: {line}")
    return expected


def unpack(suite: pathlib.Path, folder: pathlib.Path) -> list[str]:
    """Copies the suite into `folder`, unpacking what is compressed; returns the names of its test modules."""
    for source in sorted(suite.iterdir()):
        if source.suffix == ".gz":
            (folder / source.stem).write_bytes(gzip.decompress(source.read_bytes()))
        elif source.suffix == ".py":
            shutil.copy(source, folder)
    return sorted(path.stem for path in folder.glob("test_*.py"))


@dataclasses.dataclass
class Outcome:
    """How one test ended; `crash` or `hang` where its process did."""

    kind: str
    detail: str


def run_module(world: World, folder: pathlib.Path, module: str) -> tuple[dict[str, Outcome], Finished]:
    """Runs one module in a process of its own and reads what it wrote."""
    results = folder / f"{module}.results"
    runner = pathlib.Path(__file__).with_name("pyverbs_runner.py")
    place = world.server
    done = run([*place.prefix, _PYTHON, "-B", str(runner), str(folder), str(results), module], place.env, _MODULE_LIMIT_S)
    outcomes: dict[str, Outcome] = {}
    for line in results.read_text().splitlines() if results.exists() else []:
        entry = json.loads(line)
        outcomes[entry["test"].removeprefix("tests.")] = Outcome(entry["outcome"], entry["detail"])
    for outcome in outcomes.values():
        if outcome.kind == "started":
            outcome.kind = "hang" if done.timed_out else "crash"
            outcome.detail = done.describe()
    return outcomes, done


def module_findings(expected: Expected, module: str, outcomes: dict[str, Outcome], done: Finished) -> list[str]:
    """What is wrong in one module: a crash, a test that must pass and does not, a skip nobody explained."""
    findings = []
    if not done.ok:
        findings.append(f"the process of {module} did not end well:\n{done.describe()}")
    for test in sorted(name for name in expected.must_pass if name.startswith(module + ".")):
        if test not in outcomes:
            findings.append(f"{test} must pass, but did not run")
    for test, outcome in outcomes.items():
        if outcome.kind == "ok":
            continue
        if test in expected.must_pass:
            findings.append(f"{test} must pass, but: {outcome.kind}\n{outcome.detail}")
        elif outcome.kind != "skip":
            findings.append(f"{test}: {outcome.kind}\n{outcome.detail}")
        elif not expected.skip_reason(test):
            findings.append(f"{test} is skipped ({outcome.detail}), and pyverbs_expected.txt gives no reason")
    return findings


def check_module(world: World, folder: pathlib.Path, module: str, expected: Expected,
                 everything: dict[str, Outcome]) -> str:
    """Runs a module and raises AssertionError with all its findings."""
    outcomes, done = run_module(world, folder, module)
    everything.update(outcomes)
    # The ends of test_rdmacm are processes of Python's multiprocessing, which leave by _exit: others take over their slots.
    may_stay = not done.ok or module == "test_rdmacm"
    findings = module_findings(expected, module, outcomes, done) + world.leftovers(slots_may_stay=may_stay)
    assert not findings, "\n".join(findings)
    kinds = [outcome.kind for outcome in outcomes.values()]
    return f"{kinds.count('ok')} ok, {kinds.count('skip')} skipped"


def print_summary(everything: dict[str, Outcome], expected: Expected) -> None:
    """Counts, the skips by reason, and what passes beyond the list."""
    passed = {test for test, outcome in everything.items() if outcome.kind == "ok"}
    print(f"{len(everything)} tests: {len(passed)} ok, of them {len(passed & expected.must_pass)} of the "
          f"{len(expected.must_pass)} that pass on rdma_rxe")
    for test in sorted(passed - expected.must_pass):
        print(f"  passes beyond the list: {test}")
    reasons: dict[str, int] = {}
    for test, outcome in everything.items():
        if outcome.kind == "skip":
            reason = expected.skip_reason(test)
            reasons[reason] = reasons.get(reason, 0) + 1
    for reason, count in sorted(reasons.items()):
        print(f"  {count:4} skipped: {reason}")


def run_suite(arguments: argparse.Namespace, suite: pathlib.Path, expected: Expected, size: int, title: str,
              bindings: Optional[pathlib.Path] = None, programs: Optional[pathlib.Path] = None) -> int:
    """All modules of `suite`, of which `expected` knows `size` tests. `bindings`: where pyverbs lies, if not where Python looks.
    `programs`: a folder to look into before PATH; then they also see our files below /sys."""
    report = Report(title, arguments.only)
    everything: dict[str, Outcome] = {}
    world = World(arguments.lib, arguments.ringbolt, "default", with_sysfs=programs is not None)
    if bindings is not None:
        world.base_env["PYTHONPATH"] = str(bindings)
    if programs is not None:
        world.base_env["PATH"] = f"{programs}:{world.base_env['PATH']}"
    with world, tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "tests"
        folder.mkdir()
        for module in unpack(suite, folder):
            report.case(module, functools.partial(check_module, world, folder, module, expected, everything))
        print_summary(everything, expected)
        if arguments.only is None and len(everything) != size:
            print(f"note: this suite has {len(everything)} tests; the list was made for one of {size}")
    return report.finish()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    arguments = parser.parse_args()
    check_parts(arguments)
    has_bindings = run([_PYTHON, "-c", "import pyverbs.device"], {"LD_LIBRARY_PATH": str(arguments.lib)}, 30)
    if not _DEBIANS_SUITE.is_dir() or "No module named" in has_bindings.output:
        print(f"skip: needs Debian's rdma-core ({_DEBIANS_SUITE}) and python3-pyverbs for {_PYTHON}")
        return SKIP_EXIT_CODE
    expected = read_expected(pathlib.Path(__file__).with_name("pyverbs_expected.txt"))
    return run_suite(arguments, _DEBIANS_SUITE, expected, _SUITE_SIZE, "pyverbs, default device")


if __name__ == "__main__":
    sys.exit(main())
