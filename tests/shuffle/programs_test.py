#!/usr/bin/env python3
"""Other people's programs under RINGBOLT_SHUFFLE: they work with every seed, but for the kinds of oddity that docs/interop.md
names for some.

    programs_test.py --lib FOLDER --ringbolt FILE [--seeds N] [--mpi FILE] [--only TEXT]"""

from __future__ import annotations

import argparse
import concurrent.futures
import copy
import dataclasses
import functools
import pathlib
import sys
from typing import Callable, Iterator, Union

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "interop"))

from harness.pair import PairResult, run_pair  # noqa: E402
from harness.report import Report, Skip  # noqa: E402
from harness.world import World, add_arguments  # noqa: E402
import mpi  # noqa: E402
import rdmacm  # noqa: E402

LIMIT_S = 60.0
KINDS = ("late", "events", "order", "pairs", "buffers", "fence", "acks", "rnr", "async")
# Programs that rely on what the specification does not promise, and the kinds that find it.
EXEMPT = {"ib_send_lat -F -n 50 -s 2048 -e": ("events", "acks", "rnr"), "ib_read_lat -F -n 50 -s 2048 -e": ("events", "acks")}
PINGPONGS = [f"ibv_{kind}_pingpong -n 50{mode}" for kind in ("rc", "uc", "ud", "srq") for mode in ("", " -e")]
PERFTEST = [f"{program} -F -n 50 {options}" for program, options in
            (("ib_send_lat", "-s 2048"), ("ib_send_lat", "-s 2048 -e"), ("ib_send_bw", "-s 2048"), ("ib_send_bw", "-s 2048 -e"),
             ("ib_send_bw", "-s 2048 -q 2 -c UC"), ("ib_write_bw", "-s 65536"), ("ib_write_bw", "-s 2048 -q 2"),
             ("ib_read_lat", "-s 2048"), ("ib_read_lat", "-s 2048 -e"), ("ib_atomic_bw", ""), ("ib_atomic_bw", "-e"),
             ("ib_write_lat", "-s 2048"), ("ib_send_lat", "-s 1024 -c UD"))]
CONNECTED = ("rping -v -V -S 1000", "ucmatose", "udaddy", "rdma_server", "rdma_xserver -c r", "ib_send_lat -R")
RSTREAM = rdmacm.Case("rstream", "rstream -b ADDRESS -p PORT -S 4096 -C 50 -T r", "rstream -s ADDRESS -p PORT -S 4096 -C 50 -T r")
UCX_TESTS = (("tag_lat", "rc_v", "4096"), ("ucp_am_bw", "rc_v", "8"), ("ucp_get", "rc_v", "4096"), ("tag_bw", "ud_v", "4096"))
# Where there are few seeds, one program of each manner.
FEW = ("ibv_rc_pingpong -n 50", "ibv_ud_pingpong -n 50 -e", "ib_send_bw -F -n 50 -s 2048 -e", "ib_write_bw -F -n 50 -s 65536",
       "ib_read_lat -F -n 50 -s 2048", "ib_atomic_bw -F -n 50 -e", "rping -v -V -S 1000", "rstream", "ucp rc_v tag_lat 4096")

Run = Callable[[World], PairResult]
AT_ONCE = 4  # programs wait most of their time; a stream belongs to one


def cases(world: World) -> Iterator[tuple[str, Run]]:
    for text in PINGPONGS + PERFTEST:
        words = [*text.split(), "-d", world.server.device, *(("-g", "1") if "pingpong" in text else ("-x", "1"))]
        yield text.strip(), functools.partial(run_pair, server=words, client=words, limit_s=LIMIT_S)
    for case in () if world.is_stream else (*rdmacm.CASES, RSTREAM):  # its ends are no addresses
        if case.name in (*CONNECTED, "rstream"):
            yield case.name, functools.partial(rdmacm.run_pair, case=case, address=world.server.address)
    for test, transport, size in () if world.is_network else UCX_TESTS:
        variables = [f"UCX_TLS={transport},self", f"UCX_NET_DEVICES={world.server.device}:1"]
        words = ["env", *variables, "ucx_perftest", "-t", test, "-s", size, "-n", "50", "-w", "10"]
        yield f"ucp {transport} {test} {size}", functools.partial(run_pair, server=words, client=words, limit_s=LIMIT_S)


def check(world: World, name: str, one: Run, seeds: int) -> Union[str, AssertionError]:
    exempt = EXEMPT.get(name, ())
    kinds = ":" + ",".join(kind for kind in KINDS if kind not in exempt) if exempt else ""
    for seed in range(1, seeds + 1):
        shuffled = copy.copy(world)  # others run beside it with seeds of their own
        shuffled.server, shuffled.client = (dataclasses.replace(place, env=place.env | {"RINGBOLT_SHUFFLE": f"{seed}{kinds}"})
                                            for place in (world.server, world.client))
        try:
            problems = one(shuffled).problems()
        except Skip as reason:
            return f"not run: {reason}"
        if problems:
            return AssertionError(f"RINGBOLT_SHUFFLE={seed}{kinds}\n" + "\n".join(problems))
    return f"{seeds} seeds" + (f", without {' and '.join(exempt)}" if exempt else "")


def check_mpi(world: World, transport: str, program: pathlib.Path, seeds: int) -> str:
    """Alone: it looks for what is left behind."""
    shuffled = copy.copy(world)
    for seed in range(1, seeds + 1):
        shuffled.base_env = world.base_env | {"RINGBOLT_SHUFFLE": str(seed)}
        try:
            mpi.run_ping_pong(shuffled, transport, program)
        except AssertionError as problem:
            raise AssertionError(f"RINGBOLT_SHUFFLE={seed}\n{problem}") from problem
    return f"{seeds} seeds"


def tell(ended: Union[str, AssertionError]) -> str:
    if isinstance(ended, AssertionError):
        raise ended
    return ended


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("--seeds", type=int, default=2, help="so many, from 1 on; more than a few: of all programs")
    parser.add_argument("--mpi", type=pathlib.Path, help="the built mpi_pingpong")
    options = parser.parse_args()
    is_short = options.seeds < 10
    report = Report(f"programs that are shuffled, {options.place}", options.only)
    with World(options.lib, options.ringbolt, options.place, with_sysfs=True) as world:
        chosen = [(name, one) for name, one in cases(world) if (options.only or "") in name and (not is_short or name in FEW)]
        with concurrent.futures.ThreadPoolExecutor(1 if world.is_stream else AT_ONCE) as pool:
            ends = pool.map(lambda case: check(world, *case, options.seeds), chosen)
            for (name, _), ended in zip(chosen, ends):
                report.case(name, functools.partial(tell, ended))
        for transport in ("rc_v", "ud_v") if options.mpi else ():
            report.case(f"mpi_pingpong {transport}",
                        functools.partial(check_mpi, world, transport, options.mpi.resolve(), max(1, options.seeds // 10)))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
