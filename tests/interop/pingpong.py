"""The ibv_*_pingpong programs of rdma-core: every transport, polling and sleeping, from 1 byte to 1 MiB."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import itertools
import sys

from harness.pair import run_pair
from harness.report import Report, Skip
from harness.world import World, add_arguments, check_parts

_LIMIT_S = 40.0
_STREAM_SIZES = (1, 255, 1024, 1025, 4096, 65536, 1 << 20)
_DATAGRAM_SIZES = (1, 255, 1024, 4096)


@dataclasses.dataclass(frozen=True)
class Case:
    """One pair of programs; `options` goes to both sides."""

    program: str
    options: tuple[str, ...]

    @property
    def name(self) -> str:
        return " ".join((self.program, *self.options))


def _iterations(size: int) -> str:
    """Enough rounds to wrap every queue, few enough for a busy machine."""
    return "1000" if size <= 4096 else "300" if size <= 65536 else "40"


def cases() -> list[Case]:
    """The grid: transport x mode x size x data check, then single options."""
    grid = []
    for kind in ("rc", "uc", "srq", "ud"):
        sizes = _DATAGRAM_SIZES if kind == "ud" else _STREAM_SIZES
        for mode, size in itertools.product(((), ("-e",)), sizes):
            grid.append(Case(f"ibv_{kind}_pingpong", ("-s", str(size), "-n", _iterations(size), "-c", *mode)))
    grid += [Case("ibv_rc_pingpong", ("-N", *mode, "-s", str(size), "-n", _iterations(size), "-c"))
             for mode in ((), ("-e",)) for size in (1, 4096, 1 << 20)]
    grid += [Case("ibv_rc_pingpong", ("-m", mtu)) for mtu in ("256", "4096")]
    grid += [Case("ibv_rc_pingpong", ("-r", "1")), Case("ibv_uc_pingpong", ("-r", "1")),
             Case("ibv_ud_pingpong", ("-r", "2")), Case("ibv_srq_pingpong", ("-q", "1")),
             Case("ibv_srq_pingpong", ("-q", "64", "-e"))]
    return grid


# Options for features the device does not offer: the programs must refuse them in words.
REFUSED = {
    ("ibv_rc_pingpong", "-o"): "on-demand paging is not offered",
    ("ibv_rc_pingpong", "-O"): "implicit on-demand paging is not offered",
    ("ibv_rc_pingpong", "-t"): "completion timestamps are not offered",
    ("ibv_rc_pingpong", "-j"): "device memory is not offered",
    ("ibv_srq_pingpong", "-o"): "on-demand paging is not offered",
    ("ibv_xsrq_pingpong", ""): "XRC is not offered",
}


def run_case(world: World, case: Case, gid_index: int) -> str:
    """Both sides must end well, count their bytes, and find no wrong byte."""
    common = [case.program, "-d", world.server.device, "-g", str(gid_index), *case.options]
    other = [case.program, "-d", world.client.device, "-g", str(gid_index), *case.options]
    result = run_pair(world, common, other, _LIMIT_S)
    problems = result.problems()
    for side in (result.server, result.client):
        if "invalid data" in side.output:
            problems.append(f"wrong data arrived:\n{side.describe()}")
        if side.ok and "bytes in" not in side.output:
            problems.append(f"no result line:\n{side.describe()}")
    problems += world.leftovers()
    assert not problems, "\n".join(problems)
    return result.client.output.strip().splitlines()[-1].partition(" = ")[2]


def run_refused(world: World, program: str, option: str, reason: str) -> str:
    """The program ends by itself with an error; where it runs after all, so much the better."""
    options = [option] if option else []
    result = run_pair(world, [program, "-d", world.server.device, "-g", "1", *options],
                      [program, "-d", world.client.device, "-g", "1", *options], _LIMIT_S)
    left = world.leftovers()
    assert not left, "\n".join(left)
    if result.server.ok and result.client.ok:
        return "offered after all"
    assert result.server.returncode > 0 and not result.server.timed_out, result.problems()[0]
    said = result.server.output.strip().splitlines()[-1:]
    raise Skip(f"{reason}; the program says: {said[0] if said else 'nothing'}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("--part", default="1/1", help="K/N: the K-th of N interleaved shares of the grid")
    arguments = parser.parse_args()
    check_parts(arguments)
    report = Report(f"pingpong, {arguments.place}", arguments.only)
    part, _, parts = arguments.part.partition("/")
    with World(arguments.lib, arguments.ringbolt, arguments.place) as world:
        for case in cases()[int(part) - 1::int(parts)]:
            report.case(case.name, functools.partial(run_case, world, case, world.server.gid_index))
        for kind in ("rc", "uc", "ud", "srq"):
            case = Case(f"ibv_{kind}_pingpong", ())
            report.case(f"{case.name} over GID 0", functools.partial(run_case, world, case, 0))
        for (program, option), reason in REFUSED.items():
            name = f"{program} {option}".strip()
            report.case(name, functools.partial(run_refused, world, program, option, reason))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
