"""Records what two kernels' rdma_rxe say to each other: the golden captures in tests/golden/captures.

    record.py --agent FILE --cache FOLDER --out FOLDER [--only TEXT]

Needs what the referee needs (see README.md), and runs two guests on a bridge. Each exchange becomes one text file.
"""

from __future__ import annotations

import argparse
import pathlib
import sys

_HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parent / "interop")]

from harness.report import Report  # noqa: E402
from referee import kernel, machine, packets, place  # noqa: E402
from referee.capture import Capture, write_text  # noqa: E402
from referee.exchange import Exchange, perftest, pingpong, rdmacm, rping  # noqa: E402
from referee.machine import Card, Guest  # noqa: E402
from referee.sides import GuestSide  # noqa: E402

_MTU = 1500
_FRAMES = 60


def exchanges() -> dict[str, Exchange]:
    """Short exchanges that show every kind of packet the kernel's peers send, by the name of their file."""
    small = ("-n", "5", "-s")
    found = {}
    for family, mark in (("IPv4", "v4"), ("IPv6", "v6")):
        found[f"rc-pingpong-{mark}"] = pingpong("rc", family, 2501, 3)
        found[f"uc-pingpong-{mark}"] = pingpong("uc", family, 2501, 3)
        found[f"ud-pingpong-{mark}"] = pingpong("ud", family, 1021, 4)
        found[f"write-{mark}"] = perftest("ib_write_lat", family, *small, "2050")
        found[f"read-{mark}"] = perftest("ib_read_lat", family, *small, "3003")
        found[f"rping-{mark}"] = rping(family, "-C", "2", "-S", "1500")
    found["send-lat-v4"] = perftest("ib_send_lat", "IPv4", *small, "7")
    found["fetch-add-v4"] = perftest("ib_atomic_lat", "IPv4", "-n", "5", "-A", "FETCH_AND_ADD")
    found["compare-swap-v4"] = perftest("ib_atomic_lat", "IPv4", "-n", "5", "-A", "CMP_AND_SWAP")
    found["rnr-v4"] = perftest("ib_send_bw", "IPv4", "-n", "20", "-s", "64", "-r", "1", "-t", "16")
    for program in ("ucmatose", "udaddy", "rstream"):
        found[f"{program}-v4"] = rdmacm(program, "IPv4", "-C", "3", "-S", "100")
    found["link-local-v6"] = pingpong("rc", "link-local", 100, 3)
    return found


def record(exchange: Exchange, server: GuestSide, client: GuestSide, port: int, file: pathlib.Path,
           version: str) -> str:
    """Runs one exchange and writes what crossed the wire; every frame has to be sound."""
    with Capture("rbt1", _FRAMES) as capture:
        result = exchange.run(server, client, port)
    if result.problems():
        raise AssertionError("\n".join(result.problems()))
    opcodes = sorted({packets.parse(frame.data).opcode for frame in capture.frames})
    write_text(file, [f"{' '.join(exchange.client)} ({exchange.family})",
                      _between(version)], capture.frames)
    return f"{len(capture.frames)} frames, opcodes {' '.join(f'{opcode:02x}' for opcode in opcodes)}"


def record_refusal(server: GuestSide, client: GuestSide, file: pathlib.Path, version: str) -> str:
    """A REQ and a SIDR_REQ that nobody waits for."""
    with Capture("rbt1", _FRAMES) as capture:
        tcp = client.run(["rping", "-c", "-a", server.ipv4, "-C", "1"], 20)
        udp = client.run(["udaddy", "-s", server.ipv4], 20)
    if "REJECTED, error 8" not in tcp.output or "UNREACHABLE, error: 1" not in udp.output:
        raise AssertionError(f"{tcp.describe()}\n{udp.describe()}")
    write_text(file, ["rping -c and udaddy -s towards ports at which nobody listens (IPv4)", _between(version)],
               capture.frames)
    return f"{len(capture.frames)} frames"


def _between(version: str) -> str:
    return f"between rdma_rxe of two kernels: Debian 12, Linux {version}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--agent", "--cache", "--out"):
        parser.add_argument(name, type=pathlib.Path, required=True)
    parser.add_argument("--only")
    arguments = parser.parse_args()
    place.check()
    machine.check()
    found = kernel.prepared(arguments.cache)  # before there is no way to the network any more
    place.enter()
    cards = [Card(f"rbt{number}", f"52:54:00:77:00:0{number}", _MTU, f"10.77.0.{number}/24", f"fd77::{number}/64")
             for number in (1, 2)]
    for card in cards:
        place.add_tap(card.tap, _MTU)
    place.add_bridge("rbbr", *(card.tap for card in cards))
    report = Report("recording two guests", arguments.only)
    with Guest(found, arguments.agent, cards[0], place.SCRATCH) as one, \
            Guest(found, arguments.agent, cards[1], place.SCRATCH) as two:
        sides = GuestSide(one), GuestSide(two)
        for number, (name, exchange) in enumerate(exchanges().items()):
            report.case(name, lambda: record(exchange, *sides, 20000 + number, arguments.out / f"{name}.txt",
                                             found.version))
        report.case("cm-refused-v4",
                    lambda: record_refusal(*sides, arguments.out / "cm-refused-v4.txt", found.version))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
