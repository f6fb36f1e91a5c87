"""The rsocket programs of rdma-core (rstream, riostream, rcopy, udpong) and our own peer, on one device and between nodes."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import pathlib
import random
import signal
import sys
import tempfile
import time
from typing import Callable, Sequence

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "interop"))

from harness.pair import PairResult, require  # noqa: E402
from harness.ports import free_port  # noqa: E402
from harness.processes import Child, Finished  # noqa: E402
from harness.report import Report  # noqa: E402
from harness.world import World, add_arguments, check_parts  # noqa: E402

_LIMIT_S = 60.0
_SERIES_LIMIT_S = 240.0  # of a program's own series: 200,000 round trips, which a loaded machine schedules one by one
_START_LIMIT_S = 20.0
# What a client says while its server does not listen yet: there is no file to look a listener up in. The second is how
# rstream reports that, with an errno of long ago, when it does not block.
_NOT_YET = ("Connection refused", "rpoll: ")


@dataclasses.dataclass(frozen=True)
class Case:
    """One pair of rstream or riostream; `options` goes to both sides, the rest to one."""

    program: str
    options: tuple[str, ...] = ()
    binds: bool = False

    @property
    def name(self) -> str:
        return " ".join((self.program, *self.options, *(("-b ADDRESS",) if self.binds else ())))


def cases() -> list[Case]:
    """Modes x sizes with data check; then single options; then each program's own series."""
    grid = []
    for program in ("rstream", "riostream"):
        for mode in ((), ("-T", "b"), ("-T", "a")):
            for size in (1, 64, 4000, 65536, 1 << 20):
                count = "100" if size <= 4000 else "5"
                grid.append(Case(program, (*mode, "-T", "v", "-S", str(size), "-C", count, "-I", "3")))
        grid += [Case(program, ("-S", "20000", "-C", "20", "-I", "3", *options))
                 for options in (("-B", "4096"), ("-B", "3000000"), ("-f", "ip"))]
        grid += [Case(program, ("-S", "1000", "-C", "10", "-I", "10"), binds=True), Case(program)]
    grid += [Case("rstream", ("-S", "1000", "-C", "100", "-I", "10", *options))
             for options in (("-i", "0"), ("-i", "256"), ("-T", "r"), ("-T", "b", "-T", "r"))]
    grid.append(Case("rstream", ("-S", "1000", "-C", "100", "-I", "10", "-k", "1")))
    return grid


def run_until_connected(make: Callable[[], Child], server: Child, limit_s: float = _LIMIT_S) -> Finished:
    """Runs a client anew until its server listens; at most _START_LIMIT_S."""
    deadline = time.monotonic() + _START_LIMIT_S
    while True:
        done = make().wait(limit_s)
        too_early = not done.ok and any(text in done.output for text in _NOT_YET)
        if not too_early or server.has_ended or time.monotonic() > deadline:
            return done
        server.pause(0.05)


def run_case(world: World, case: Case) -> str:
    """Both sides must end well, and the client must print its figures."""
    require(case.program)
    port = str(free_port())
    common = [case.program, "-p", port, *case.options]
    # A server that is not told otherwise takes IPv4 only.
    bind_server = ["-b", world.server.address] if case.binds or world.server.is_ipv6 else []
    # The program binds to the server's port there too, which is free at another address only.
    bind_client = ["-b", world.client.address] if case.binds and world.client != world.server else []
    server = Child(world.server.command(*common, *bind_server), world.server.env)

    def client() -> Child:
        command = world.client.command(*common, *bind_client, "-s", world.server.address)
        return Child(command, world.client.env)

    ended_client = run_until_connected(client, server, _LIMIT_S if case.options else _SERIES_LIMIT_S)
    ended_server = server.wait(10.0 if ended_client.ok else 1.0)
    problems = PairResult(ended_server, ended_client).problems() + world.leftovers()
    for side in (ended_client, ended_server):
        if "data verification failed" in side.output or "failed" in side.output:
            problems.append(f"the program found something wrong:\n{side.describe()}")
    assert not problems, "\n".join(problems)
    lines = ended_client.output.strip().splitlines()
    assert len(lines) >= 2, f"no result line:\n{ended_client.describe()}"
    return " ".join(lines[-1].split()[-2:]) + " (Gb/s, us)"


def copy_files(world: World, sizes: Sequence[int]) -> str:
    """rcopy's server takes one file after the other; each must arrive as it was."""
    require("rcopy")
    port = str(free_port())
    with tempfile.TemporaryDirectory() as folder:
        server = Child(world.server.command("rcopy", "-p", port), world.server.env)
        try:
            for size in sizes:
                source = pathlib.Path(folder, f"source{size}")
                target = pathlib.Path(folder, f"target{size}")
                source.write_bytes(random.Random(size).randbytes(size))
                command = world.client.command("rcopy", str(source), f"{world.server.address}:{target}", "-p", port)
                done = run_until_connected(lambda command=command: Child(command, world.client.env), server)
                assert done.ok, f"{done.describe()}\nserver:\n{server.output()}"
                assert target.read_bytes() == source.read_bytes(), f"{size} bytes arrived changed"
        finally:
            server.kill()
    left = world.leftovers(slots_may_stay=True)
    assert not left, "\n".join(left)
    return f"{len(sizes)} files compared"


def udp_ping_pong(world: World, options: Sequence[str]) -> str:
    """udpong's client counts what comes back. It never ends once an answer takes longer than its millisecond: it then
    sends the old number again and again. So a loaded machine gets several tries."""
    require("udpong")
    last = ""
    for _ in range(5):
        port = str(free_port())
        server = Child(world.server.command("udpong", "-b", world.server.address, "-p", port), world.server.env)
        try:
            command = world.client.command("udpong", "-s", world.server.address, "-p", port, *options)
            done = Child(command, world.client.env).wait(8.0)
        finally:
            server.kill()
        if done.ok and "custom" in done.output:
            left = world.leftovers(slots_may_stay=True)
            assert not left, "\n".join(left)
            return " ".join(done.output.strip().splitlines()[-1].split()[-2:]) + " (Gb/s, us)"
        last = done.describe()
    raise AssertionError(last)


def start_peer(world: World, peer: pathlib.Path) -> tuple[Child, str]:
    """Our own server, and the port it says."""
    server = Child(world.server.command(str(peer), "serve", world.server.address), world.server.env)
    deadline = time.monotonic() + _START_LIMIT_S
    while "port " not in server.output() and not server.has_ended and time.monotonic() < deadline:
        server.pause(0.02)
    words = server.output().split()
    assert words[:1] == ["port"], server.wait(0.0).describe()
    return server, words[1]


def exchange(world: World, peer: pathlib.Path) -> str:
    """30 MB each way at once, every byte by its place, half close at the end."""
    server, port = start_peer(world, peer)
    client = Child(world.client.command(str(peer), "connect", world.server.address, port), world.client.env)
    ended_client = client.wait(_LIMIT_S)
    ended_server = server.wait(10.0)
    problems = PairResult(ended_server, ended_client).problems() + world.leftovers()
    assert not problems, "\n".join(problems)
    return "every byte checked"


def lose_the_peer(world: World, peer: pathlib.Path) -> str:
    """A peer that is killed ends the calls that wait for it, with an error: nothing is taken for an orderly end."""
    server, port = start_peer(world, peer)
    client = Child(world.client.command(str(peer), "hold", world.server.address, port), world.client.env)
    deadline = time.monotonic() + _START_LIMIT_S
    while "connected" not in client.output() and not client.has_ended and time.monotonic() < deadline:
        client.pause(0.02)
    client.signal_session(signal.SIGKILL)
    client.wait(10.0)
    ended = server.wait(_LIMIT_S)
    assert not ended.timed_out and ended.returncode == 1, ended.describe()
    assert "Connection reset" in ended.output, ended.describe()
    left = world.leftovers(slots_may_stay=True)
    assert not left, "\n".join(left)
    return "the survivor was told"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("--quick", action="store_true", help="every eighth of the pairs, and no program's own series")
    parser.add_argument("--one-series", action="store_true", help="riostream's own series alone, the shorter one")
    parser.add_argument("--peer", required=True, type=pathlib.Path, help="our own program, rsocket_peer")
    arguments = parser.parse_args()
    check_parts(arguments)
    report = Report(f"rsockets, {arguments.place}", arguments.only)
    with World(arguments.lib, arguments.ringbolt, arguments.place) as world:
        peer = arguments.peer.resolve()
        report.case("exchange", functools.partial(exchange, world, peer))
        if world.is_network:
            report.skip("lose the peer", "who only receives learns nothing of a peer's death over a network, as with a card")
        else:
            report.case("lose the peer", functools.partial(lose_the_peer, world, peer))
        if world.server.is_ipv6:
            report.skip("rcopy", "it takes what follows the first colon for the name of the file")
        else:
            report.case("rcopy", functools.partial(copy_files, world, (1, 4096, 1_000_003, 30_000_000)))
        for options in (("-C", "1000", "-S", "100"), ("-C", "1000", "-S", "1500", "-T", "b"),
                        ("-C", "200", "-S", "100", "-T", "e"), ("-C", "200", "-S", "1000", "-T", "e", "-T", "a")):
            report.case("udpong " + " ".join(options), functools.partial(udp_ping_pong, world, options))
        chosen = [case for case in cases() if case.options and case.options[-1] != "ip"][::8] if arguments.quick else cases()
        if arguments.one_series:
            chosen.remove(Case("rstream"))
        for case in chosen:
            report.case(case.name, functools.partial(run_case, world, case))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
