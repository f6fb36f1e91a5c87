"""Open MPI over UCX over our ports: the ranks run on neighbouring nodes, every byte is checked by the program."""

from __future__ import annotations

import argparse
import functools
import pathlib
import re
import sys

from harness.pair import require
from harness.processes import run
from harness.report import Report
from harness.world import Place, World, add_arguments, check_parts

_LIMIT_S = 90.0
_MPIRUN = "mpirun.openmpi"


def rank_command(place: Place, transport: str, program: pathlib.Path) -> list[str]:
    """A rank on one node, confined to the port that leads to the other."""
    variables = [f"UCX_TLS={transport},self", f"UCX_NET_DEVICES={place.device}:1", "UCX_LOG_LEVEL=info"]
    return place.command("env", *variables, str(program))


def run_ping_pong(world: World, transport: str, program: pathlib.Path) -> str:
    """Both ranks end well, the program has checked its data, and UCX says that it used our device."""
    require(_MPIRUN)
    # Open MPI prefers UCX only on devices whose names it knows, so both checks are opened to any device.
    choice = ["--mca", "pml", "ucx", "--mca", "osc", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any",
              "--mca", "btl", "^openib"]
    ranks = [rank_command(place, transport, program) for place in (world.server, world.client)]
    # Open MPI 5.0.7's mpirun dies of SIGSEGV where a line has two programs.
    programs = ["-np", "2", *ranks[0]] if ranks[0] == ranks[1] else ["-np", "1", *ranks[0], ":", "-np", "1", *ranks[1]]
    argv = [_MPIRUN, "--allow-run-as-root", "--oversubscribe", *choice, *programs]
    done = run(argv, world.base_env, _LIMIT_S)
    problems = [] if done.ok else [done.describe()]
    if "every byte checked" not in done.output:
        problems.append(f"the program did not reach its end:\n{done.describe()}")
    used = set(re.findall(r"((?:rc|ud)_verbs)/(rdma_\w+):1", done.output))
    if not used:
        problems.append(f"UCX does not say that it used our device:\n{done.describe()}")
    problems += world.leftovers()
    assert not problems, "\n".join(problems)
    return ", ".join(sorted("/".join(pair) for pair in used))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("--program", required=True, type=pathlib.Path, help="the built mpi_pingpong")
    arguments = parser.parse_args()
    check_parts(arguments)
    report = Report(f"Open MPI, {arguments.place}", arguments.only)
    with World(arguments.lib, arguments.ringbolt, arguments.place, with_sysfs=True) as world:
        for transport in ("rc_v", "ud_v"):
            report.case(f"mpi_pingpong {transport}",
                        functools.partial(run_ping_pong, world, transport, arguments.program.resolve()))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
