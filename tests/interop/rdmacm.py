"""Programs that connect through rdma_cm: rdma-core's own, perftest -R, libfabric's message endpoints, UCX's rdmacm."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import pathlib
import re
import sys
import time
from typing import Sequence

from harness.pair import PairResult, require
from harness.ports import free_port, wait_serving
from harness.processes import Child, Finished
from harness.report import Report
from harness.world import World, add_arguments, check_parts

_LIMIT_S = 30.0
_START_LIMIT_S = 20.0


@dataclasses.dataclass(frozen=True)
class Case:
    """A server and a client. PORT and ADDRESS are filled in; `stays`: the server serves on until it is killed.

    fixed_port: the program has no option for it. clients: how many come, one after the other.
    """

    name: str
    server: str
    client: str
    stays: bool = False
    fixed_port: int = 0
    clients: int = 1
    ipv4_only: str = ""  # why, if the program cannot do otherwise, whoever made the library


def perftest(program: str, options: str, name: str = "") -> Case:
    """One program of perftest with -R."""
    words = f"{program} -R -F -p PORT -n 100 {options}"
    return Case(name or f"{program} -R {options}".strip(), words, f"{words} ADDRESS",
                ipv4_only="this perftest looks up IPv4 addresses only")


def rping(size: int, count: int = 20) -> Case:
    """rping with its data shown and checked: -v prints every message, -V compares it at either end."""
    options = f"-a ADDRESS -p PORT -v -V -C {count} -S {size}"
    return Case(f"rping -v -V -S {size}", f"rping -s {options}", f"rping -c {options}")


CASES = [
    *(rping(size) for size in (23, 64, 1000, 4096, 4097, 65535)),
    Case("rping -q", "rping -s -q -a ADDRESS -p PORT -V -C 20", "rping -c -q -a ADDRESS -p PORT -V -C 20"),
    Case("rping persistent", "rping -s -P -a ADDRESS -p PORT", "rping -c -a ADDRESS -p PORT -V -C 20", stays=True, clients=3),
    Case("ucmatose", "ucmatose -b ADDRESS -p PORT -c 8 -C 20 -S 1000", "ucmatose -p PORT -s ADDRESS -c 8 -C 20 -S 1000"),
    Case("ucmatose -m", "ucmatose -b ADDRESS -p PORT -c 8 -C 20 -m", "ucmatose -p PORT -s ADDRESS -c 8 -C 20 -m"),
    Case("udaddy", "udaddy -b ADDRESS -c 4 -C 20", "udaddy -s ADDRESS -c 4 -C 20", fixed_port=7174),
    Case("rdma_server", "rdma_server -s ADDRESS -p PORT", "rdma_client -s ADDRESS -p PORT"),
    Case("rdma_xserver -c r", "rdma_xserver -p PORT -c r", "rdma_xclient -s ADDRESS -p PORT -c r",
         ipv4_only="it listens at 0.0.0.0, and has no option to say otherwise"),
    Case("cmtime", "cmtime -b ADDRESS -p PORT -c 200", "cmtime -s ADDRESS -p PORT -c 200", stays=True),
    perftest("ib_send_lat", ""),
    perftest("ib_write_lat", "-T 96", "ib_write_lat -R, type of service"),
    perftest("ib_read_bw", "-q 4"),
    perftest("ib_write_bw", "-q 4 -s 65536"),
    perftest("ib_atomic_lat", ""),
    perftest("ib_send_bw", "-c UD -s 1024"),
]


def words_of(text: str, port: int, address: str) -> list[str]:
    return [str(port) if word == "PORT" else address if word == "ADDRESS" else word for word in text.split()]


def run_pair(world: World, case: Case, address: str) -> PairResult:
    """Starts the server, waits for its listener, runs the client against it."""
    port = case.fixed_port or free_port()
    server: Sequence[str] = words_of(case.server, port, address)
    client: Sequence[str] = words_of(case.client, port, address)
    require(server[0])
    first = Child(world.server.command(*server), world.server.env)
    if not wait_serving(world.runtime, first, port, _START_LIMIT_S):
        ended = first.wait(0.0)
        return PairResult(ended, Finished(list(client), -1, "(not started: the server does not listen)", False, 0.0))
    for _ in range(case.clients):
        ended_client = Child(world.client.command(*client), world.client.env).wait(_LIMIT_S)
        if not ended_client.ok:
            break
    if case.stays and ended_client.ok:
        first.kill()
        return PairResult(Finished(list(server), 0, first.output(), False, 0.0), ended_client)
    return PairResult(first.wait(20.0 if ended_client.ok else 2.0), ended_client)


def run_case(world: World, case: Case, address: str) -> str:
    """Both sides end well and leave nothing behind; a killed server may leave its slot."""
    result = run_pair(world, case, address)
    problems = result.problems() + world.leftovers(slots_may_stay=True)
    assert not problems, "\n".join(problems)
    return f"{result.client.seconds:.2f} s"


def run_refused(world: World, words: str, wanted: str) -> str:
    """A client that nobody listens for, or an option that the device does not have: it ends and says why."""
    command = words_of(words, free_port(), world.server.address)
    require(command[0])
    done = Child(world.client.command(*command), world.client.env).wait(_LIMIT_S)
    assert not done.timed_out and done.returncode != 0 and wanted in done.output, done.describe()
    return wanted


def run_unserved(world: World) -> str:
    """Nobody listens at the port, though somebody does at another one: a host whose programs all sleep cannot refuse."""
    port = free_port()
    other = Child(world.server.command(*words_of("rping -s -P -a ADDRESS -p PORT", port, world.server.address)), world.server.env)
    try:
        assert wait_serving(world.runtime, other, port, _START_LIMIT_S), other.output()
        remark = run_refused(world, "ucmatose -s ADDRESS -p PORT", "RDMA_CM_EVENT_REJECTED, error: 8")
    finally:
        other.kill()
    left = world.leftovers(slots_may_stay=True)
    assert not left, "\n".join(left)
    return remark


def run_fabric(world: World, endpoint: str) -> str:
    """fi_pingpong with data check; it agrees on addresses over TCP, at a port that is told."""
    require("fi_pingpong")
    port = free_port()
    options = ["fi_pingpong", "-p", "verbs", "-e", endpoint, "-c", "-I", "50", *(["-6"] if world.server.is_ipv6 else [])]
    server = Child(world.server.command(*options, "-B", str(port)), world.server.env)
    client: Finished
    deadline = time.monotonic() + _START_LIMIT_S
    while True:  # its TCP side may not listen yet
        client = Child(world.client.command(*options, "-P", str(port), world.server.address), world.client.env).wait(_LIMIT_S)
        if "onnection refused" not in client.output or time.monotonic() > deadline:
            break
    problems = PairResult(server.wait(10.0 if client.ok else 2.0), client).problems() + world.leftovers(slots_may_stay=True)
    assert not problems, "\n".join(problems)
    return client.output.strip().splitlines()[-1]


def run_ucx(world: World, program: pathlib.Path, kind: str, size: int, clients: int, messages: int) -> str:
    """UCX's own example, unmodified: its endpoints are wired up by rdma_cm alone, its data goes over rc_verbs alone.
    With a second client the example's "am" hangs over any transport."""
    port = str(free_port())
    # A client that flushes when the server's queue pair has gone waits for all its retries: with UCX's own second, 9 s.
    variables = ["UCX_SOCKADDR_TLS_PRIORITY=rdmacm", "UCX_TLS=rc_v", f"UCX_NET_DEVICES={world.server.device}:1",
                 "UCX_RC_TIMEOUT=200ms"]
    options = [str(program), "-p", port, "-c", kind, "-s", str(size), "-i", str(messages),
               *(["-6"] if world.server.is_ipv6 else [])]
    server = Child(world.server.command("env", *variables, *options, "-l", world.server.address), world.server.env)
    try:
        assert wait_serving(world.runtime, server, int(port), _START_LIMIT_S), server.output()
        for _ in range(clients):
            client = Child(world.client.command("env", *variables, *options, "-a", world.server.address), world.client.env)
            done = client.wait(_LIMIT_S)
            assert done.ok, f"{done.describe()}\nserver:\n{server.output()}"
            assert re.search("UCX data message was|Client: iteration", done.output), done.describe()
    finally:
        server.kill()
    assert "server failed" not in server.output(), server.output()
    left = world.leftovers(slots_may_stay=True)
    assert not left, "\n".join(left)
    return f"{clients} clients, {messages} messages each"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("--ucx", type=pathlib.Path, help="UCX's example ucp_client_server, built")
    arguments = parser.parse_args()
    check_parts(arguments)
    report = Report(f"rdma_cm, {arguments.place}", arguments.only)
    with World(arguments.lib, arguments.ringbolt, arguments.place) as world:
        for case in CASES:
            if world.server.is_ipv6 and case.ipv4_only:
                report.skip(case.name, case.ipv4_only)
                continue
            report.case(case.name, functools.partial(run_case, world, case, world.server.address))
        if arguments.place == "default":
            for case in CASES[:2]:
                report.case(f"{case.name}, IPv6", functools.partial(run_case, world, case, "::1"))
        report.case("no listener", functools.partial(run_unserved, world))
        report.case("XRC is refused", functools.partial(run_refused, world, "rdma_xclient -s ADDRESS -p PORT -c x",
                                                        "Operation not supported"))
        for endpoint in ("msg", "rdm"):
            report.case(f"fi_pingpong {endpoint}", functools.partial(run_fabric, world, endpoint))
    if arguments.ucx is None:
        report.skip("UCX over rdma_cm", "its example is not there (Debian: libucx-dev)")
    else:
        # UCX looks for device nodes and sysfs files, which the launcher shows.
        with World(arguments.lib, arguments.ringbolt, arguments.place, with_sysfs=True) as world:
            for kind, size, clients, messages in (("am", 16, 1, 50), ("tag", 2000, 1, 50), ("stream", 300_000, 1, 50),
                                                  ("stream", 300_000, 3, 1), ("tag", 3_000_000, 1, 50)):
                report.case(f"UCX over rdma_cm {kind} {size} x {messages}, {clients} clients",
                            functools.partial(run_ucx, world, arguments.ucx.resolve(), kind, size, clients, messages))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
