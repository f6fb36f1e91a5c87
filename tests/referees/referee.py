"""What the drivers of tests/referees share: an environment of Python with the referee in it, and the harness of tests/interop."""

from __future__ import annotations

import argparse
import functools
import pathlib
import subprocess
import sys
from typing import Callable

_ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(_ROOT / "tests" / "interop"))

from harness.pair import PairResult, run_pair  # noqa: E402  (their folder comes by the line above)
from harness.processes import run  # noqa: E402
from harness.report import SKIP_EXIT_CODE, Report, Skip  # noqa: E402
from harness.world import Place, World, add_arguments, check_parts  # noqa: E402

__all__ = ["SKIP_EXIT_CODE", "add_arguments", "check_parts", "PairResult", "Place", "Report", "Skip", "World", "main", "parse", "peer", "prepared", "run", "run_peers"]


def prepared(script: str, *arguments: str) -> pathlib.Path:
    """The folder of build/ that a script of scripts/ fills for the referee; ends the driver as skipped where it can't."""
    done = subprocess.run([str(_ROOT / "scripts" / script), *arguments], capture_output=True, text=True, check=False)
    print(done.stderr, end="", flush=True)
    if done.returncode != 0:
        print(f"skip: {done.stderr.strip().splitlines()[-1]}")
        raise SystemExit(SKIP_EXIT_CODE)
    return _ROOT / "build" / "-".join([script.removeprefix("setup-"), *arguments])


def peer(name: str) -> str:
    """The path of a program that both sides run."""
    return str(pathlib.Path(__file__).with_name(name))


def parse(description: str) -> argparse.Namespace:
    """The options that every driver has."""
    parser = argparse.ArgumentParser(description=description)
    add_arguments(parser)
    arguments = parser.parse_args()
    check_parts(arguments)
    return arguments


def run_peers(world: World, limit_s: float, side: Callable[[Place], list[str]], evidence: str) -> str:
    """Both ends of a transfer whose bytes the ends check; `side` is the command of an end, `evidence` what it prints if the
    data went through our device, with DEVICE for its name. Returns what the client said last."""
    result = run_pair(world, side(world.server), side(world.client), limit_s)
    problems = result.problems()
    for place, end in ((world.server, result.server), (world.client, result.client)):
        if evidence.replace("DEVICE", place.device) not in end.output:
            problems.append(f"{end.argv} does not say '{evidence}' of {place.device}:\n{end.describe()}")
    said = [line for line in result.client.output.splitlines() if "every byte checked" in line]
    if not said and not problems:
        problems.append(f"the client did not reach its end:\n{result.client.describe()}")
    problems += world.leftovers()
    assert not problems, "\n".join(problems)
    return said[-1]


def main(description: str, title: str, body: Callable[[World, Report, argparse.Namespace], None]) -> int:
    """Runs `body` in a world at the place that the command line names, and counts."""
    arguments = parse(description)
    report = Report(f"{title}, {arguments.place}", arguments.only)
    with World(arguments.lib, arguments.ringbolt, arguments.place, with_sysfs=True) as world:
        functools.partial(body, world, report, arguments)()
    return report.finish()
