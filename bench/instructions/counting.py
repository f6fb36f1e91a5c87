"""Runs a program that counts its own instructions, and reads what was counted."""

import dataclasses
import glob
import os
import re
import signal
import subprocess
import tempfile

TIMEOUT_S = 200
# memcpy by "rep movsb" is one instruction, and callgrind counts one for each byte: all sides copy by vectors instead.
TUNABLES = "glibc.cpu.x86_rep_movsb_threshold=1073741824:glibc.cpu.x86_rep_stosb_threshold=1073741824"
CALIBRATION = "nothing"


class CountError(Exception):
    """A program could not be run or has failed; the message says which and what it said."""


@dataclasses.dataclass(frozen=True)
class Series:
    """What a program says of a series, and what was counted in it."""
    name: str
    operations: int
    starts: int  #: how often counting was switched on
    polls: int  #: that its completions took; 0 where nothing is polled for
    instructions: int | None = None  #: None: nobody counted
    calls: int | None = None  #: to the system


@dataclasses.dataclass(frozen=True)
class Figure:
    """Of one operation; of calls that are a series each, see figures_of()."""
    instructions: float | None
    polls: float  #: of that call, likewise
    calls: float | None = None
    most: float | None = None  #: instructions of the call that took most of them


def series_of(output: str) -> list[Series]:
    """The lines "series NAME OPERATIONS STARTS POLLS INSTRUCTIONS CALLS" of a program's output."""
    found = []
    for name, *numbers in re.findall(r"^series (\S+) (\d+) (\d+) (\d+) (\d+|-) (\d+|-)$", output, re.M):
        found.append(Series(name, *[None if number == "-" else int(number) for number in numbers]))
    return found


def total_of_dump(text: str) -> tuple[str, int]:
    """The name of the series and its instructions, of a file that callgrind has written."""
    name = re.search(r"^desc: Trigger: Client Request: (\S+)$", text, re.M)
    total = re.search(r"^totals: (\d+)$", text, re.M)
    if name is None:
        raise CountError("a callgrind dump without the name of a series")
    return name[1], int(total[1]) if total else 0


def figures_of(series: list[Series]) -> dict[str, Figure]:
    """By name. Of calls that are a series each, the lower quartile: those that found at once what others waited for, and
    took thousands of instructions meanwhile, but not the one that had least to do besides."""
    calibration = next(one for one in series if one.name == CALIBRATION)

    def per_operation(one, counted):
        total, overhead = counted(one), counted(calibration)
        if total is None or overhead is None:
            return None
        return (total - one.starts * overhead / calibration.starts) / one.operations

    found = {}
    for name in dict.fromkeys(one.name for one in series if one.name != CALIBRATION):
        alike = [one for one in series if one.name == name]
        costs = [per_operation(one, lambda one: one.instructions) for one in alike]
        calls = [per_operation(one, lambda one: one.calls) for one in alike]
        chosen = sorted(alike, key=lambda one: one.instructions or 0)[len(alike) // 4]
        found[name] = Figure(_quartile(costs), chosen.polls / chosen.operations, _quartile(calls),
                             None if None in costs else max(costs))
    return found


def _quartile(values):
    return None if None in values else sorted(values)[len(values) // 4]


class Valgrind:
    """The command line that counts by callgrind, and the dumps in its folder."""

    def __init__(self, folder):
        self._folder = folder
        self.words = ["valgrind", "--tool=callgrind", "--collect-atstart=no", "--quiet",
                      f"--callgrind-out-file={folder}/dump"]

    def fill(self, series: list[Series]) -> list[Series]:
        """The same series with the totals of the dumps, which come in the same order."""
        files = sorted(glob.glob(f"{self._folder}/dump.*"), key=lambda name: int(name.rsplit(".", 1)[1]))
        filled = []
        for one, file in zip(series, files):
            with open(file, encoding="utf-8", errors="replace") as dump:
                name, total = total_of_dump(dump.read())
            if name != one.name:
                raise CountError(f"{file} is of {name}, not of {one.name}")
            filled.append(dataclasses.replace(one, instructions=total))
        if len(filled) < len(series):
            raise CountError(f"callgrind has written {len(files)} dumps for {len(series)} series"
                             + ("" if files else ": the program was built where <valgrind/callgrind.h> was missing"))
        return filled


def run(name, command, environment, timeout_s=TIMEOUT_S):
    """Standard output of a command that must not fail, nor outlive its time."""
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True)
    try:
        output, errors = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired as late:
        raise CountError(f"{name}: no end after {timeout_s} s: {' '.join(command)}") from late
    finally:  # also when we are told to end
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode != 0:
        raise CountError(f"{name}: exit status {process.returncode}: {' '.join(command)}\n{errors.strip()[-2000:]}")
    return output
