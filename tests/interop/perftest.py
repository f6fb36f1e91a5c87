"""perftest's ib_{send,write,read,atomic}_{lat,bw}: the grid of perftest_grid.py, optionally with core 0 kept busy."""

from __future__ import annotations

import argparse
import contextlib
import functools
import math
import re
import sys
from typing import Iterator

from perftest_grid import LEFT_OUT, Cell, cells

from harness.pair import run_pair
from harness.processes import Child
from harness.report import Report
from harness.world import World, add_arguments, check_parts

_LIMIT_S = 60.0
_BUSY_LOOP = "while :; do :; done"


def table(output: str) -> list[list[float]]:
    """The numbers below the ` #bytes` header of perftest's report, one list per row."""
    rows: list[list[float]] = []
    is_inside = False
    # It complains of the clock on its error output, which may come in the middle of a row.
    for line in re.sub(r"Correlation coefficient r\^2: [\d.]+ < [\d.]+", "", output).splitlines():
        if line.lstrip().startswith("#bytes"):
            is_inside = True
        elif is_inside and re.fullmatch(r"\s*\d+\s+\d+(\s+([0-9.]+|inf|-?nan))+\s*", line):
            rows.append([float(word) for word in line.split()])
        elif is_inside and line.startswith("---"):
            is_inside = False
    return rows


def clocks_missed(output: str) -> int:
    """How often perftest gave up its comparison of the cycle counter with the clock, as it does on a busy machine
    (get_cpu_mhz in its get_clock.c). It makes one before each row; the figures of that row are then inf, nan or 0."""
    return output.count("Correlation coefficient r^2")


def table_problems(cell: Cell, rows: list[list[float]], without_clock: int) -> list[str]:
    """Empty when the report has all its rows and every figure that must not be zero is above it and a number.
    `without_clock`: how many rows perftest itself could not compute."""
    if len(rows) != cell.rows:
        return [f"the result table has {len(rows)} rows, expected {cell.rows}"]
    # Latency: typical is column 4. Bandwidth: average is column 3; the peak (column 2) may be 0 without -N.
    column = 4 if cell.is_latency else 3
    short = [row for row in rows if len(row) <= column]
    if short:
        return [f"a row has too few columns: {short[0]}"]
    # Two decimals of MiB/s read 0.00 for a few bytes on a loaded machine: then the message rate has to tell.
    dead = [row for row in rows if not 0 < row[column] < math.inf and not (not cell.is_latency and row[4:] and row[4] > 0)]
    return [f"no figure above zero for {row[0]:.0f} bytes" for row in dead] if len(dead) > without_clock else []


def run_cell(world: World, cell: Cell) -> str:
    """Both sides must end well and the client must report a figure for each size."""
    result = run_pair(world, cell.command(world.server.device, world.server.gid_index),
                      cell.command(world.client.device, world.client.gid_index), _LIMIT_S)
    problems = result.problems()
    rows = table(result.client.output)
    if not problems:
        wrong = table_problems(cell, rows, clocks_missed(result.client.output))
        problems = [f"{text}\n{result.client.describe()}" for text in wrong]
    problems += world.leftovers()
    assert not problems, "\n".join(problems)
    last = rows[-1]
    return f"{last[4]:.2f} us" if cell.is_latency else f"{last[3]:.1f} MiB/s"


@contextlib.contextmanager
def core_0_busy(is_wanted: bool) -> Iterator[None]:
    """Keeps core 0 busy with other work while the block runs."""
    if not is_wanted:
        yield
        return
    load = Child(["taskset", "-c", "0", "sh", "-c", _BUSY_LOOP], {"PATH": "/usr/bin:/bin"})
    try:
        yield
        assert not load.has_ended, f"the load on core 0 ended early:\n{load.output()}"
    finally:
        load.kill()


def chosen(arguments: argparse.Namespace) -> list[Cell]:
    """The cells of this run: all, the quick ones, or every n-th beginning with the k-th."""
    grid = [cell for cell in cells() if cell.is_quick or arguments.grid == "full"]
    if arguments.loaded:
        grid = [cell for cell in grid if cell.variant.split()[-1] in ("plain", "-e") or cell.variant == "-n 5, 8 MiB"]
    part, _, parts = arguments.part.partition("/")
    return grid[int(part) - 1::int(parts)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("--grid", default="quick", choices=["quick", "full"])
    parser.add_argument("--loaded", action="store_true", help="keep core 0 busy with other work")
    parser.add_argument("--part", default="1/1", help="K/N: the K-th of N interleaved shares of the grid")
    arguments = parser.parse_args()
    check_parts(arguments)
    title = f"perftest {arguments.grid} grid, {arguments.place}" + (", core 0 busy" if arguments.loaded else "")
    report = Report(title, arguments.only)
    with World(arguments.lib, arguments.ringbolt, arguments.place) as world, core_0_busy(arguments.loaded):
        for cell in chosen(arguments):
            if world.is_network and cell.needs_patience:
                report.skip(cell.name, "a message that finds no receive is lost on a network, and perftest waits for it")
            else:
                report.case(cell.name, functools.partial(run_cell, world, cell))
        for what, reason in LEFT_OUT.items():
            report.skip(what, reason)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
