"""What the tests of Python's package are told: pytest --ringbolt=PROGRAM --source=FOLDER --libraries=FOLDER [FILE].

A file whose tests are all skipped ends as other tests that skip: with the reason, and exit status 77."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "command"))
import command  # noqa: E402

WORDS = {}


def pytest_addoption(parser):
    for name in ("ringbolt", "source", "libraries"):
        parser.addoption(f"--{name}", required=True)


def pytest_configure(config):
    WORDS.update({name: config.getoption(name) for name in ("ringbolt", "source", "libraries")})
    command.RINGBOLT = WORDS["ringbolt"]


def pytest_terminal_summary(terminalreporter):
    for report in terminalreporter.stats.get("skipped", []):
        terminalreporter.write_line(f"skip: {report.longrepr[2].removeprefix('Skipped: ')}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter.stats.get("skipped") and not any(reporter.stats.get(what) for what in ("passed", "failed", "error")):
        session.exitstatus = 77
