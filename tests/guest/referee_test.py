"""Our device against another kernel's rdma_rxe: unmodified programs at both ends, every frame between them looked at.

    referee_test.py --lib FOLDER --agent FILE --check FILE --cache FOLDER [--only TEXT] [--mtu BYTES] [--keep FOLDER]

Boots one guest and runs each exchange of the list with either side as the server. The first frames of each exchange are
checked by an independent parser (lengths, padding, ICRC), by our codecs (parse and write again, byte for byte) and by
tshark. See README.md. Exit status 0: all well; 1: something failed; 77: nothing could run, and why.
"""

from __future__ import annotations

import argparse
import functools
import pathlib
import subprocess
import sys
from typing import Callable

_HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parent / "interop")]

from harness.report import SKIP_EXIT_CODE, Report, Skip  # noqa: E402
from referee import dissector, kernel, machine, packets, place  # noqa: E402
from referee.capture import Capture, Frame, write_text  # noqa: E402
from referee.channel import GuestLost  # noqa: E402
from referee.exchange import Exchange, ask_in_vain, perftest, pingpong, probes, rdmacm, rping  # noqa: E402
from referee.machine import Card, Guest  # noqa: E402
from referee.sides import GuestSide, HostSide, Side  # noqa: E402

_TAP = "rbt0"
_FRAMES_LOOKED_AT = 600
_FIRST_PORT = 20000
# In words of netem. Packets out of order are no part of it: rdma_rxe asks for all outstanding READs again for each.
_IMPAIRMENTS = ("loss 1%", "duplicate 1%")
# perftest sets its own depth of READs to what the peer can do at most (rdma_rxe: 128), which a device need not accept.
_READS = ("-o", "16")


def exchanges() -> list[Exchange]:
    """What is run in both directions."""
    found = []
    for family in ("IPv4", "IPv6"):
        found += [pingpong("rc", family, size, rounds) for size, rounds in ((1, 50), (4096, 50), (1 << 20, 4))]
        found += [pingpong("uc", family, size, 50) for size in (1, 2500)]
        found += [pingpong("ud", family, size, 50) for size in (1, 1024)]
        for operation, options in (("send", ()), ("write", ()), ("read", _READS)):
            found.append(perftest(f"ib_{operation}_lat", family, "-n", "50", "-s", "1500", *options))
            found.append(perftest(f"ib_{operation}_bw", family, "-n", "50", "-s", "65536", *options))
        for kind in ("FETCH_AND_ADD", "CMP_AND_SWAP"):
            found.append(perftest("ib_atomic_lat", family, "-n", "50", "-A", kind, *_READS))
        found += [perftest("ib_atomic_bw", family, "-n", "200", *_READS)]
        found += [rping(family, "-C", "10", "-S", size) for size in ("100", "65535")]
    found += [pingpong("rc", "IPv4", size, 20) for size in (1023, 1024, 1025, 65537)]
    found += [pingpong("rc", "link-local", 3000, 20)]
    found += [perftest("ib_send_bw", "IPv4", "-n", "64", "-s", "64", "-r", "1", "-t", "16")]  # runs into RNR NAKs
    found += [probes("IPv4")]
    found += [rdmacm(program, "IPv4", "-C", "5", "-S", "1000") for program in ("ucmatose", "udaddy", "rstream")]
    return found


def rough_exchanges() -> list[Exchange]:
    """What is run over a network with losses: programs whose ends wait for each other before they go."""
    found = [rping("IPv4", "-C", "5", "-S", "20000"), perftest("ib_atomic_bw", "IPv4", "-n", "200", *_READS)]
    for operation, options in (("send", ()), ("write", ()), ("read", _READS)):
        found.append(perftest(f"ib_{operation}_bw", "IPv4", "-n", "20", "-s", "65536", *options))
    return found


class Referee:
    """The sides, and the frames seen so far. Not thread-safe."""

    def __init__(self, check: pathlib.Path, keep: pathlib.Path | None) -> None:
        self._check = check
        self._keep = keep
        self._port = _FIRST_PORT
        self.frames: list[Frame] = []

    def play(self, exchange: Exchange, server: Side, client: Side) -> str:
        """Runs one exchange; both programs have to end well and every frame has to be sound."""
        self._port += 1
        with Capture(_TAP, _FRAMES_LOOKED_AT) as capture:
            result = exchange.run(server, client, self._port)
        return self._judge(f"{exchange.name}-{exchange.family}-{server.name}-serves", result.problems(), capture)

    def refuse(self, server: Side, client: Side) -> str:
        """Connections that nobody waits for have to be refused, with the right reasons."""
        with Capture(_TAP, _FRAMES_LOOKED_AT) as capture:
            problems = ask_in_vain(server, client)
        return self._judge(f"refusal-{server.name}-serves", problems, capture)

    def _judge(self, name: str, problems: list[str], capture: Capture) -> str:
        if self._keep:
            write_text(self._keep / f"{name.replace(' ', '-')}.txt", [name], capture.frames)
        problems = problems + self._unsound(capture.frames)
        if not capture.frames:
            problems.append("no RoCEv2 frame crossed the tap")
        if problems:
            raise AssertionError("\n".join(problems + _story(capture.frames)))
        self.frames += capture.frames
        return f"{len(capture.frames)} frames"

    def _unsound(self, frames: list[Frame]) -> list[str]:
        found = []
        for frame in frames:
            try:
                packets.parse(frame.data)
            except packets.Malformed as complaint:
                found.append(f"unsound frame: {complaint}: {frame.data.hex()}")
        return found[:5]

    def ask_codecs(self) -> str:
        """Our codecs have to read all frames of all exchanges and write them again, byte for byte."""
        text = "".join(f"{frame.time_us} {frame.data.hex()}\n" for frame in self.frames)
        done = subprocess.run([str(self._check), "-"], input=text, capture_output=True, text=True, timeout=60,
                              check=False)
        if done.returncode != 0:
            raise AssertionError("\n".join(done.stdout.splitlines()[-12:]))
        return done.stdout.strip()

    def ask_wireshark(self) -> str:
        """tshark has to find no frame malformed and to read what we read."""
        objections = dissector.objections(self.frames)
        if objections:
            raise AssertionError("\n".join(objections[:10]))
        return f"{len(self.frames)} frames"


def _story(frames: list[Frame]) -> list[str]:
    """The first frames in words, for a failed exchange."""
    lines = []
    for frame in frames[:40]:
        try:
            lines.append(f"    {frame.time_us:>9} us {packets.parse(frame.data).describe()}")
        except packets.Malformed as complaint:
            lines.append(f"    {frame.time_us:>9} us malformed: {complaint}")
    return lines


def play_all(arguments: argparse.Namespace, found: kernel.Kernel, report: Report) -> None:
    """Sets the place up, boots the guest and runs everything."""
    if not (arguments.lib / "libibverbs.so.1").exists():
        raise SystemExit(f"{arguments.lib}/libibverbs.so.1 does not exist: build the project first")

    def play(name: str, body: Callable[..., str], *words: object) -> None:
        if arguments.only is None or arguments.only in name:
            report.case(name, functools.partial(body, *words))

    host = HostSide.on_tap(_TAP, arguments.mtu, arguments.lib)
    card = Card(_TAP, "52:54:00:77:00:02", arguments.mtu, "10.77.0.2/24", "fd77::2/64")
    with Guest(found, arguments.agent, card, place.SCRATCH) as guest:
        print(f"guest with Linux {found.version} is up after {guest.seconds_to_boot:.1f} s", flush=True)
        referee = Referee(arguments.check, arguments.keep)
        other = GuestSide(guest)
        both = ((other, host), (host, other))
        for exchange in exchanges():
            for server, client in both:
                play(f"{exchange.name} {exchange.family}, {server.name} serves", referee.play, exchange, server, client)
        for server, client in both:
            play(f"rping and udaddy towards nobody, {server.name} refuses", referee.refuse, server, client)
        for impairment in _IMPAIRMENTS:
            guest.impair(impairment)
            for exchange in rough_exchanges():
                for server, client in both:
                    play(f"{impairment}: {exchange.name}, {server.name} serves", referee.play, exchange, server, client)
    if referee.frames:
        report.case("our codecs on all frames", referee.ask_codecs)
        report.case("Wireshark on all frames", referee.ask_wireshark)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--lib", "--agent", "--check", "--cache"):
        parser.add_argument(name, type=pathlib.Path, required=True)
    parser.add_argument("--only", help="run only the exchanges whose name contains this text")
    parser.add_argument("--mtu", type=int, default=1500, help="of the tap and of the guest's card (default 1500)")
    parser.add_argument("--keep", type=pathlib.Path, help="keep each exchange's frames as text in this folder")
    arguments = parser.parse_args()
    try:
        place.check()
        machine.check()
        found = kernel.prepared(arguments.cache)  # before there is no way to the network any more
        place.enter()
        report = Report("rdma_rxe of another kernel as the peer")
        play_all(arguments, found, report)
    except Skip as reason:
        print(f"skip: {reason}")
        return SKIP_EXIT_CODE
    except GuestLost as loss:
        print(f"the guest is lost: {loss}")
        return 1
    except KeyboardInterrupt:
        print("interrupted")
        return 130
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
