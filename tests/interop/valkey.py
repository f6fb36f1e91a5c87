"""Valkey over RDMA, unmodified: the lines of docs/valkey.md, values of every size, a client that is killed."""

from __future__ import annotations

import argparse
import array
import functools
import os
import pathlib
import subprocess
import sys
import time

from harness.ports import wait_serving
from harness.processes import Child, run
from harness.report import SKIP_EXIT_CODE, Report
from harness.world import World, add_arguments, check_parts

sys.path.append(str(pathlib.Path(__file__).parents[1] / "docs"))
import page  # noqa: E402

_PAGE = pathlib.Path("docs/valkey.md")
_CLI = "build/valkey/valkey-cli"
_BENCHMARK = "build/valkey/valkey-benchmark"
_PORT = 6379  # of the runtime folder's own RDMA ports: nobody else's is in the way
_START_LIMIT_S = 20.0
_LIMIT_S = 60.0
_CLIENTS = 20
# Each side's buffer takes 1 MiB, then its place is agreed upon anew: sizes around that, and several of them.
_SIZES = (1, 2, 100, 4095, 4096, 65536, 65537, 524_288, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20)


def lines_of_page() -> list[str]:
    """What the page has to type with Valkey's programs, remarks and the & of the server left out."""
    lines = [command.without_remark.rstrip(" &") for command in page.commands(_PAGE)]
    found = [line for line in lines if "build/valkey/" in line]
    assert len(found) >= 3 and "valkey-server" in found[0], f"{_PAGE} shows no server and clients: {found}"
    return found


def value_of(size: int) -> bytes:
    """Numbers that count up from the size: shifted, doubled and foreign bytes all differ."""
    return array.array("I", range(size, size + size // 4 + 1)).tobytes()[:size]


class Session:
    """A server on one node and clients on its neighbour. Not thread-safe."""

    def __init__(self, world: World, server_line: str) -> None:
        self.world = world
        self.env = dict(world.base_env, PATH=f"{world.ringbolt.parent}:{os.environ['PATH']}")
        self.server = Child(["sh", "-c", f"exec {server_line}"], self.env)
        if not wait_serving(world.runtime, self.server, _PORT, _START_LIMIT_S):
            raise SystemExit(f"the server does not listen:\n{self.server.wait(0.0).describe()}")

    def ask(self, *words: str, stdin: bytes = b"") -> bytes:
        """One command by a client of its own; the answer without the newline that ends it."""
        argv = self.world.client.command(_CLI, "--rdma", "-h", self.world.server.address, "-e", *words)
        try:
            done = subprocess.run(argv, env=self.env, input=stdin, capture_output=True, timeout=_LIMIT_S, check=False)
        except subprocess.TimeoutExpired as late:
            raise AssertionError(f"{late}\n{self.server.output()}") from late
        assert done.returncode == 0, f"{argv}: exit status {done.returncode}\n{done.stderr!r}\n{self.server.output()}"
        return done.stdout[:-1]

    def clients(self) -> int:
        """How many connections the server has, the asking one left out."""
        return len(self.ask("CLIENT", "LIST").strip().splitlines()) - 1

    def await_clients(self, wanted: range) -> float:
        """Waits until the server has so many; the seconds it took."""
        started = time.monotonic()
        while (count := self.clients()) not in wanted:
            assert time.monotonic() < started + _LIMIT_S, f"{count} clients, {wanted} expected\n{self.server.output()}"
            self.server.pause(0.05)
        return time.monotonic() - started


def type_line(session: Session, line: str) -> str:
    done = run(["sh", "-c", line], session.env, _LIMIT_S)
    wanted = "requests per second" if "valkey-benchmark" in line else "OK" if " SET " in line else "hello"
    assert done.ok and wanted in done.output, f"no '{wanted}':\n{done.describe()}\n{session.server.output()}"
    return done.output.replace("\r", "\n").strip().splitlines()[-1]


def store(session: Session, size: int) -> str:
    assert session.ask("-x", "SET", f"value:{size}", stdin=value_of(size)) == b"OK"
    return fetch(session, size)


def fetch(session: Session, size: int) -> str:
    found, wanted = session.ask("GET", f"value:{size}"), value_of(size)
    if found != wanted:
        place = next((i for i, pair in enumerate(zip(found, wanted)) if pair[0] != pair[1]), min(len(found), size))
        raise AssertionError(f"{len(found)} bytes instead of {size}, they differ from byte {place} on")
    return "every byte"


def kill_clients(session: Session) -> str:
    """Many connections that end in the middle of their data: the server lets go of them, and keeps its values."""
    load = Child(session.world.client.command(_BENCHMARK, "--rdma", "-h", session.world.server.address, "-c", str(_CLIENTS),
                                              "-n", "1000000000", "-d", "65536", "-t", "set", "-q"), session.env)
    try:
        session.await_clients(range(_CLIENTS, _CLIENTS + 2))
    finally:
        load.kill()
    took = session.await_clients(range(1))
    for size in _SIZES:
        fetch(session, size)
    return f"{_CLIENTS} connections gone after {took:.1f} s"


def shut_down(session: Session) -> str:
    """The server ends by itself, and nothing but slots of those who were killed stays behind."""
    subprocess.run(session.world.client.command(_CLI, "--rdma", "-h", session.world.server.address, "SHUTDOWN", "NOSAVE"),
                   env=session.env, capture_output=True, timeout=_LIMIT_S, check=False)  # the server ends before it answers
    ended = session.server.wait(_LIMIT_S)
    problems = ([] if ended.ok else [ended.describe()]) + session.world.leftovers(slots_may_stay=True)
    assert not problems, "\n".join(problems)
    return "nothing left behind"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("--root", required=True, type=pathlib.Path, help="the repository: what the page's lines are typed in")
    arguments = parser.parse_args()
    check_parts(arguments)
    lib, ringbolt = arguments.lib.resolve(), arguments.ringbolt.resolve()
    os.chdir(arguments.root)
    setup = subprocess.run(["scripts/setup-valkey"], stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True, check=False)
    print(setup.stdout, end="")
    if setup.returncode != 0:
        print(f"skip: no Valkey: {setup.stdout.strip().splitlines()[-1]}")
        return SKIP_EXIT_CODE
    report = Report("Valkey", arguments.only)
    server_line, *client_lines = lines_of_page()
    with World(lib, ringbolt, arguments.place) as world:
        session = Session(world, server_line)
        try:
            for line in client_lines:
                report.case(line.rpartition("/")[2][:58], functools.partial(type_line, session, line))
            for size in _SIZES:
                report.case(f"SET and GET of {size} bytes", functools.partial(store, session, size))
            report.case("clients are killed", functools.partial(kill_clients, session))
            report.case("shutdown", functools.partial(shut_down, session))
        finally:
            session.server.kill()  # still there if the last case is not among the chosen ones, or failed
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
