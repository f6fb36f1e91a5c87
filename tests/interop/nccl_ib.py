"""NCCL's IB transport, its sources unmodified, without a GPU: driven as NCCL drives it, between two nodes."""

from __future__ import annotations

import argparse
import functools
import pathlib
import signal
import subprocess
import sys
import time

from harness.processes import Child, run
from harness.report import SKIP_EXIT_CODE, Report
from harness.world import Place, World, add_arguments, check_parts

_PROGRAM = "build/nccl/nccl_ib"
_LIMIT_S = 100.0
# A packet is repeated after 4.096 us << 14 = 67 ms, 7 times. NCCL's own choice is 20: half a minute.
_CUT_SETTINGS = ("NCCL_IB_TIMEOUT=14", "NCCL_IB_RETRY_CNT=7")
_CUT_LIMIT_S = 20.0
_LOST = (2, 6)  # ncclSystemError, ncclRemoteError
_SETTINGS = {  # what users set, each with every size of message
    "as it is": (),
    "four queue pairs, data split": ("NCCL_IB_QPS_PER_CONNECTION=4", "NCCL_IB_SPLIT_DATA_ON_QPS=1"),
    "GID by its index, inline data": ("NCCL_IB_GID_INDEX=1", "NCCL_IB_USE_INLINE=1"),
}


def start(world: World, place: Place, root: pathlib.Path, *words: str, settings: tuple[str, ...] = ()) -> Child:
    """The transport on one node, confined to the device that leads to the other. Its handshakes go over TCP: nodes of one network
    have the loopback interface for it."""
    loopback = () if world.is_network else ("NCCL_SOCKET_IFNAME==lo",)
    variables = (f"NCCL_IB_HCA=={place.device}", *loopback, "NCCL_DEBUG=WARN", *settings)
    return Child(place.command("env", *variables, str(root / _PROGRAM), *words), world.base_env)


def await_line(child: Child, wanted: str) -> str:
    """The first line that begins so."""
    deadline = time.monotonic() + _LIMIT_S
    while True:
        found = [line for line in child.output().splitlines() if line.startswith(wanted)]
        if found:
            return found[0]
        assert not child.has_ended and time.monotonic() < deadline, f"no '{wanted}'\n{child.wait(0.0).describe()}"
        child.pause(0.01)


def start_pair(world: World, root: pathlib.Path, *options: str, settings: tuple[str, ...]) -> tuple[Child, Child]:
    receiver = start(world, world.server, root, "receive", *options, settings=settings)
    handle = await_line(receiver, "handle ").split()[1]
    return receiver, start(world, world.client, root, "send", handle, *options, settings=settings)


def exchange(world: World, root: pathlib.Path, settings: tuple[str, ...]) -> str:
    receiver, sender = start_pair(world, root, settings=settings)
    ends = [child.wait(_LIMIT_S) for child in (sender, receiver)]
    problems = [end.describe() for end in ends if not end.ok or "closed" not in end.output]
    for end, place in zip(ends, (world.client, world.server)):
        if f"device {place.device}," not in end.output:
            problems.append(f"not the device {place.device}:\n{end.describe()}")
    problems += world.leftovers()
    assert not problems, "\n".join(problems)
    return next(line for line in ends[1].output.splitlines() if line.startswith("ok"))


def error_of(child: Child) -> int:
    """The code that the transport gave up with; 0 for none."""
    return next((int(line.split()[1]) for line in child.output().splitlines() if line.startswith("error ")), 0)


def cut(world: World, root: pathlib.Path) -> str:
    """A cable that is pulled out under traffic. An end with work under way gets an error. One without notices nothing, for NCCL
    asks nobody whether he lives: its communicator is aborted, and it closes with its receives still posted."""
    ends = start_pair(world, root, "--until-error", settings=_CUT_SETTINGS)
    try:
        for end in ends:
            await_line(end, "running")
        done = run([str(world.ringbolt), "cut", "0-1"], world.base_env, 10.0)
        assert done.ok, done.describe()
        started = time.monotonic()
        while not any(error_of(end) for end in ends) and time.monotonic() < started + _CUT_LIMIT_S:
            ends[0].pause(0.01)
        took = time.monotonic() - started
        told = any(error_of(end) in _LOST for end in ends)
        for end in ends:
            end.signal_session(signal.SIGTERM)
        finished = [end.wait(_CUT_LIMIT_S) for end in ends]
    finally:
        for end in ends:
            end.kill()
    problems = [] if told else [f"no end got an error within {_CUT_LIMIT_S} s"]
    problems += [end.describe() for end in finished if not told or end.returncode not in (3, 4) or "closed" not in end.output]
    problems += world.leftovers()
    assert not problems, "\n".join(problems)
    return f"said after {took:.1f} s, both closed"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("--root", required=True, type=pathlib.Path, help="the repository")
    arguments = parser.parse_args()
    check_parts(arguments)
    root = arguments.root.resolve()
    setup = subprocess.run([root / "scripts/setup-nccl"], stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True, check=False)
    print(setup.stdout, end="")
    if setup.returncode != 0:
        print(f"skip: no NCCL: {setup.stdout.strip().splitlines()[-1]}")
        return SKIP_EXIT_CODE
    report = Report("NCCL's IB transport", arguments.only)
    with World(arguments.lib, arguments.ringbolt, arguments.place, with_sysfs=True) as world:
        for name, settings in _SETTINGS.items():
            report.case(name, functools.partial(exchange, world, root, settings))
        if arguments.place != "overlay":  # there is a way round
            report.case("a cable is cut", functools.partial(cut, world, root))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
