"""Records what crosses the wire in short exchanges: the golden captures in tests/golden/captures.

    record.py --agent FILE --cache FOLDER --out FOLDER [--lib FOLDER] [--only TEXT]

Without --lib between rdma_rxe of two guests on a bridge; with it between our device, built in that folder, and rdma_rxe
of one guest, each exchange in both directions (the files' names then start with ringbolt-asks or ringbolt-answers).
Needs what the referee needs (see README.md).
"""

from __future__ import annotations

import argparse
import functools
import pathlib
import sys

_HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parent / "interop")]

from harness.report import Report  # noqa: E402
from referee import kernel, machine, packets, place  # noqa: E402
from referee.capture import Capture, write_text  # noqa: E402
from referee.exchange import Exchange, ask_in_vain, perftest, pingpong, rdmacm, rping  # noqa: E402
from referee.machine import Card, Guest  # noqa: E402
from referee.sides import GuestSide, HostSide, Side  # noqa: E402

_TAP, _OTHER_TAP, _BRIDGE = "rbt1", "rbt2", "rbbr"
_MTU = 1500
_FRAMES = 60
_FIRST_PORT = 20000


def exchanges() -> dict[str, Exchange]:
    """Short exchanges that show every kind of packet the kernel's peers send, by the name of their file."""
    few, reads = ("-n", "5", "-s"), ("-o", "16")
    found = {}
    for family, mark in (("IPv4", "v4"), ("IPv6", "v6")):
        found[f"rc-pingpong-{mark}"] = pingpong("rc", family, 2501, 2)
        found[f"rping-{mark}"] = rping(family, "-C", "2", "-S", "1500")
    for program in ("ucmatose", "udaddy", "rstream"):
        found[f"{program}-v4"] = rdmacm(program, "IPv4", "-C", "3", "-S", "100")
    found["uc-pingpong-v4"] = pingpong("uc", "IPv4", 2501, 2)
    found["ud-pingpong-v6"] = pingpong("ud", "IPv6", 1021, 3)
    found["send-v4"] = perftest("ib_send_lat", "IPv4", *few, "7")
    found["write-v6"] = perftest("ib_write_lat", "IPv6", *few, "1027")
    found["read-v4"] = perftest("ib_read_lat", "IPv4", *few, "2050", *reads)
    found["fetch-add-v4"] = perftest("ib_atomic_lat", "IPv4", "-n", "5", "-A", "FETCH_AND_ADD", *reads)
    found["compare-swap-v6"] = perftest("ib_atomic_lat", "IPv6", "-n", "5", "-A", "CMP_AND_SWAP", *reads)
    found["rnr-v4"] = perftest("ib_send_bw", "IPv4", "-n", "20", "-s", "64", "-r", "1", "-t", "16")
    found["link-local-v6"] = pingpong("rc", "link-local", 100, 3)
    return found


class Recorder:
    """Runs exchanges and writes what crossed the wire. Not thread-safe."""

    def __init__(self, out: pathlib.Path, about: str) -> None:
        self._out = out
        self._about = about
        self._port = _FIRST_PORT

    def record(self, name: str, exchange: Exchange, server: Side, client: Side) -> str:
        """One exchange, both ends of which have to end well; every frame has to be sound."""
        self._port += 1
        with Capture(_TAP, _FRAMES) as capture:
            result = exchange.run(server, client, self._port)
        if result.problems():
            raise AssertionError("\n".join(result.problems()))
        self._write(name, f"{' '.join(exchange.client)} ({exchange.family})", capture)
        opcodes = sorted({packets.parse(frame.data).opcode for frame in capture.frames})
        return f"{len(capture.frames)} frames, opcodes {' '.join(f'{opcode:02x}' for opcode in opcodes)}"

    def record_refusal(self, name: str, server: Side, client: Side) -> str:
        """A REQ and a SIDR_REQ that nobody waits for."""
        with Capture(_TAP, _FRAMES) as capture:
            problems = ask_in_vain(server, client)
        if problems:
            raise AssertionError("\n".join(problems))
        self._write(name, "rping -c and udaddy -s towards ports at which nobody listens (IPv4)", capture)
        return f"{len(capture.frames)} frames"

    def _write(self, name: str, what: str, capture: Capture) -> None:
        write_text(self._out / f"{name}.txt", [what, self._about], capture.frames)


def record_kernels(arguments: argparse.Namespace, found: kernel.Kernel, report: Report) -> None:
    """Two guests on a bridge."""
    cards = [Card(tap, f"52:54:00:77:00:0{number}", _MTU, f"10.77.0.{number}/24", f"fd77::{number}/64")
             for number, tap in ((1, _TAP), (2, _OTHER_TAP))]
    for card in cards:
        place.add_tap(card.tap, _MTU)
    place.add_bridge(_BRIDGE, _TAP, _OTHER_TAP)
    recorder = Recorder(arguments.out, f"between rdma_rxe of two kernels: Debian 12, Linux {found.version}")
    with Guest(found, arguments.agent, cards[0], place.SCRATCH) as one, \
            Guest(found, arguments.agent, cards[1], place.SCRATCH) as two:
        sides = GuestSide(one), GuestSide(two)
        for name, exchange in exchanges().items():
            report.case(name, functools.partial(recorder.record, name, exchange, *sides))
        report.case("cm-refused-v4", functools.partial(recorder.record_refusal, "cm-refused-v4", *sides))


def record_ours(arguments: argparse.Namespace, found: kernel.Kernel, report: Report) -> None:
    """Our device on the host, one guest."""
    host = HostSide.on_tap(_TAP, _MTU, arguments.lib)
    card = Card(_TAP, "52:54:00:77:00:02", _MTU, "10.77.0.2/24", "fd77::2/64")
    recorder = Recorder(arguments.out, "between our device (10.77.0.1, fd77::1) and rdma_rxe of Debian 12, Linux "
                        + found.version)
    with Guest(found, arguments.agent, card, place.SCRATCH) as guest:
        other = GuestSide(guest)
        for role, server, client in (("asks", other, host), ("answers", host, other)):
            for name, exchange in exchanges().items():
                name = f"ringbolt-{role}-{name}"
                report.case(name, functools.partial(recorder.record, name, exchange, server, client))
            name = f"ringbolt-{role}-cm-refused-v4"
            report.case(name, functools.partial(recorder.record_refusal, name, server, client))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--agent", "--cache", "--out"):
        parser.add_argument(name, type=pathlib.Path, required=True)
    parser.add_argument("--lib", type=pathlib.Path)
    parser.add_argument("--only")
    arguments = parser.parse_args()
    place.check()
    machine.check()
    found = kernel.prepared(arguments.cache)  # before there is no way to the network any more
    place.enter()
    report = Report("recording", arguments.only)
    (record_ours if arguments.lib else record_kernels)(arguments, found, report)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
