"""Runs one module of the unpacked pyverbs suite and writes a JSON line when each test starts and ends.

Usage: pyverbs_runner.py FOLDER RESULTS MODULE; run by pyverbs_suite.py with the Python that has the bindings. The suite itself
stays as it is; only its text output is replaced, so that a crash shows which test was running.
"""

import importlib.machinery
import importlib.util
import json
import os
import sys
import unittest


class LineResult(unittest.TestResult):
    """Writes outcomes as they come; the last started test of a crashed process has no outcome."""

    def __init__(self, file):
        super().__init__()
        self._file = file

    def _write(self, test, outcome, detail=""):
        self._file.write(json.dumps({"test": test.id(), "outcome": outcome, "detail": detail}) + "\n")
        self._file.flush()

    def startTest(self, test):
        super().startTest(test)
        self._write(test, "started")

    def addSuccess(self, test):
        self._write(test, "ok")

    def addSkip(self, test, reason):
        self._write(test, "skip", reason)

    def addError(self, test, err):
        self._write(test, "error", self._exc_info_to_string(err, test))

    def addFailure(self, test, err):
        self._write(test, "fail", self._exc_info_to_string(err, test))


class LineRunner:
    """The part of unittest's TextTestRunner that unittest.main() calls."""

    def __init__(self, file):
        self._file = file

    def run(self, suite):
        result = LineResult(self._file)
        suite(result)
        return result


def main():
    folder, results, module = sys.argv[1:4]
    sys.path.insert(0, folder)
    sys.argv = ["run_tests.py", f"tests.{module}"]
    from args_parser import parser

    loader = importlib.machinery.SourceFileLoader("tests", os.path.join(folder, "__init__.py"))
    spec = importlib.util.spec_from_file_location("tests", loader.path, loader=loader,
                                                  submodule_search_locations=[folder])
    tests = importlib.util.module_from_spec(spec)
    sys.modules["tests"] = tests
    loader.exec_module(tests)
    parser.parse_args()
    with open(results, "a", encoding="utf-8") as file:
        unittest.main(module=tests, testRunner=LineRunner(file), exit=False)


if __name__ == "__main__":
    main()
