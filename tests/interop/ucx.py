"""UCX: ucx_info sees rc_verbs and ud_verbs on our ports, ucx_perftest runs over each, through UCP and UCT."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import re
import sys
from typing import Iterator

from harness.pair import PairResult, require, run_pair
from harness.processes import run
from harness.report import Report
from harness.world import World, add_arguments, check_parts

_LIMIT_S = 60.0


@dataclasses.dataclass(frozen=True)
class Case:
    """One ucx_perftest pair. `transport` is a UCX_TLS value for UCP tests, a transport name for UCT tests."""

    test: str
    transport: str
    options: tuple[str, ...]
    is_uct: bool

    @property
    def name(self) -> str:
        layer = "uct" if self.is_uct else "ucp"
        return f"{layer} {self.transport} {self.test} {' '.join(self.options)}"


_UCP_SIZED = ("tag_lat", "tag_bw", "tag_sync_lat", "stream_lat", "stream_bw", "ucp_put_lat", "ucp_put_bw", "ucp_get",
              "ucp_am_lat", "ucp_am_bw")
_UCP_ATOMIC = ("ucp_add", "ucp_fadd", "ucp_swap", "ucp_cswap")


def ucp_cases() -> Iterator[Case]:
    """Every UCP test over both transports: short, eager, and rendezvous sizes; polling and sleeping."""
    for transport in ("rc_v", "ud_v"):
        for test in _UCP_SIZED:
            for size, count in ((8, 1000), (4096, 500), (1 << 20, 30)):
                yield Case(test, transport, ("-s", str(size), "-n", str(count), "-w", "20"), False)
        for test in _UCP_ATOMIC:
            for size in (4, 8):
                yield Case(test, transport, ("-s", str(size), "-n", "500", "-w", "20"), False)
        yield Case("tag_lat", transport, ("-s", "8", "-n", "300", "-w", "10", "-E", "sleep"), False)
        yield Case("tag_lat", transport, ("-s", "65536", "-n", "100", "-w", "10", "-e"), False)
        yield Case("tag_bw", transport, ("-s", "0", "-n", "500", "-w", "10"), False)


def uct_cases() -> Iterator[Case]:
    """The transports themselves, by data layout."""
    for layout, size in (("short", 8), ("bcopy", 2000), ("zcopy", 4000)):
        for transport in ("rc_verbs", "ud_verbs"):
            for test in ("am_lat", "am_bw"):
                yield Case(test, transport, ("-D", layout, "-s", str(size), "-n", "1000", "-w", "20"), True)
        for test in ("put_lat", "put_bw") + (() if layout == "short" else ("get",)):
            yield Case(test, "rc_verbs", ("-D", layout, "-s", str(size), "-n", "1000", "-w", "20"), True)
    # put_lat polls the last byte of a big zero-copy write; the largest goes through every copy path.
    yield Case("put_bw", "rc_verbs", ("-D", "zcopy", "-s", str(1 << 20), "-n", "50", "-w", "5"), True)
    yield Case("get", "rc_verbs", ("-D", "zcopy", "-s", str(1 << 20), "-n", "50", "-w", "5"), True)
    for test in ("fadd", "cswap"):
        yield Case(test, "rc_verbs", ("-s", "8", "-n", "1000", "-w", "20"), True)


def show_transports(world: World) -> str:
    """ucx_info -d lists both verbs transports on every port of the place."""
    place = world.client
    ports = ["rdma_lo:1"] if world.place == "default" else ["rdma_en2:1"]
    ports += ["rdma_en3:1"] if world.place in ("mesh", "overlay") else []
    ports += ["ringbolt0:1"] if world.place == "overlay" else []
    require("ucx_info")
    done = run(place.command("ucx_info", "-d"), place.env, _LIMIT_S)
    assert done.ok, done.describe()
    found = re.findall(r"Transport: (\w+)\s*\n#\s+Device: (\S+)", done.output)
    for transport in ("rc_verbs", "ud_verbs"):
        for device in ports:
            assert (transport, device) in found, f"no {transport} on {device}; ucx_info shows {found}\n{done.output}"
    return f"rc_verbs and ud_verbs on {' '.join(ports)}"


def final_figures(result: PairResult) -> list[float]:
    """The numbers of the last result line that the client prints with -f; an average since a second ago, when it printed
    one too, is infinite if nothing has ended since."""
    found = [re.fullmatch(r"(?:Final:)?((?:\s+(?:[\d.]+|inf))+)", line) for line in result.client.output.splitlines()]  # UCX 1.10 says "Final:"
    lines = [line.group(1) for line in found if line]
    return [float(word) for word in lines[-1].split()] if lines else []


def run_case(world: World, case: Case) -> str:
    """Both sides end well and the client reports its figures."""
    sides = []
    for place in (world.server, world.client):
        if case.is_uct:
            chosen = ["-d", f"{place.device}:1", "-x", case.transport]
            command = ["ucx_perftest", "-f", "-t", case.test, *chosen, *case.options]
        else:
            variables = [f"UCX_TLS={case.transport},self", f"UCX_NET_DEVICES={place.device}:1", "UCX_WARN_UNUSED_ENV_VARS=n"]
            command = ["env", *variables, "ucx_perftest", "-f", "-t", case.test, *case.options]
        sides.append(command)
    result = run_pair(world, sides[0], sides[1], _LIMIT_S)
    problems = result.problems()
    figures = final_figures(result)
    if not problems and (len(figures) < 3 or max(figures) <= 0):
        problems.append(f"no figures:\n{result.client.describe()}")
    problems += world.leftovers()
    assert not problems, "\n".join(problems)
    return " ".join(f"{figure:g}" for figure in figures[:4])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("--layer", default="all", choices=["all", "ucp", "uct"])
    arguments = parser.parse_args()
    check_parts(arguments)
    report = Report(f"UCX, {arguments.place}", arguments.only)
    # UCX looks for device nodes and sysfs files, which the launcher shows.
    with World(arguments.lib, arguments.ringbolt, arguments.place, with_sysfs=True) as world:
        report.case("ucx_info -d", functools.partial(show_transports, world))
        if arguments.layer in ("all", "uct"):
            for case in uct_cases():
                report.case(case.name, functools.partial(run_case, world, case))
        if arguments.layer in ("all", "ucp"):
            for case in ucp_cases():
                report.case(case.name, functools.partial(run_case, world, case))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
