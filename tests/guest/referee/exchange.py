"""Pairs of unmodified programs that talk RDMA to each other, and how to run one of them between two sides."""

from __future__ import annotations

import base64
import dataclasses
import pathlib
import time
import zlib

from harness.pair import PairResult
from harness.processes import Finished
from referee.sides import GID_INDEX, Running, Side

_LISTEN_LIMIT_S = 60.0
_REFUSAL_LIMIT_S = 30.0
_ELSEWHERE = 19999
_PROBES = pathlib.Path(__file__).resolve().parents[1] / "probes.py"
# What a client of rdma_cm prints when nobody listens yet (REJ reason 8).
_NOT_YET = ("REJECTED", "rdma_connect: Connection refused", "event 8")


@dataclasses.dataclass(frozen=True)
class Exchange:
    """A server and a client. In their words {device}, {gid}, {port} and {address} (the server's) are filled in."""

    name: str
    family: str
    server: tuple[str, ...]
    client: tuple[str, ...]
    connects_by_cm: bool = False
    limit_s: float = 40.0

    def run(self, server: Side, client: Side, port: int) -> PairResult:
        """Starts the server, waits until it can be reached, runs the client, and waits for both."""
        first = server.start(*self._words(self.server, server, server, port))
        try:
            if not self._wait_until_reachable(server, first, port):
                return PairResult(first.wait(0.0), _not_started(self.client, "the server does not listen"))
            ended = self._run_client(server, client, port)
            # A server outlives its client by no more than the tear-down; a failed client leaves it waiting for nothing.
            return PairResult(first.wait(10.0 if ended.ok else 2.0), ended)
        finally:
            if not first.has_ended:
                first.kill()

    def _run_client(self, server: Side, client: Side, port: int) -> Finished:
        give_up = time.monotonic() + _LISTEN_LIMIT_S
        while True:
            ended = client.start(*self._words(self.client, client, server, port)).wait(self.limit_s)
            is_early = self.connects_by_cm and not ended.ok and any(text in ended.output for text in _NOT_YET)
            if not is_early or time.monotonic() > give_up:
                return ended

    def _words(self, words: tuple[str, ...], place: Side, server: Side, port: int) -> list[str]:
        address = server.ipv4 if self.family == "IPv4" or not self.connects_by_cm else server.ipv6
        values = {"device": place.device, "gid": GID_INDEX[self.family], "port": port, "address": address}
        return [word.format(**values) for word in words]

    def _wait_until_reachable(self, server: Side, first: Running, port: int) -> bool:
        if self.connects_by_cm:
            if server.name == "host":
                return True  # the client tries again
            script = "until rdma resource show cm_id | grep -q LISTEN; do sleep 0.05; done"
        else:
            script = f"until grep -qi ':{port:04X} [0-9A-F:]* 0A' /proc/net/tcp /proc/net/tcp6; do sleep 0.02; done"
        probe = server.start("sh", "-c", script)
        give_up = time.monotonic() + _LISTEN_LIMIT_S
        while not (probe.has_ended or first.has_ended) and time.monotonic() < give_up:
            probe.pause(0.01)
        is_reachable = probe.has_ended
        probe.kill()
        return is_reachable


def _not_started(argv: tuple[str, ...], why: str) -> Finished:
    return Finished(list(argv), -1, f"(not started: {why})", False, 0.0)


def pingpong(kind: str, family: str, size: int, rounds: int) -> Exchange:
    """ibv_rc_pingpong and its like; they find each other over TCP and check their data."""
    words = (f"ibv_{kind}_pingpong", "-d", "{device}", "-g", "{gid}", "-p", "{port}", "-s", str(size),
             "-n", str(rounds), "-c")
    return Exchange(f"ibv_{kind}_pingpong {size} B", family, words, (*words, "{address}"))


def perftest(program: str, family: str, *options: str) -> Exchange:
    """ib_send_lat and its like; they find each other over TCP."""
    words = (program, "-d", "{device}", "-x", "{gid}", "-p", "{port}", "-F", *options)
    return Exchange(" ".join((program, *options)), family, words, (*words, "{address}"))


def _carried(script: pathlib.Path) -> str:
    """The script as one word: the guest sees the host's root, but for /tmp, where the checkout may lie."""
    packed = base64.b64encode(zlib.compress(script.read_bytes(), 9)).decode()
    return f"import base64, zlib; exec(zlib.decompress(base64.b64decode('{packed}')))"


def probes(family: str) -> Exchange:
    """probes.py: what no ready-made program asks."""
    words = ("/usr/bin/python3", "-B", "-c", _carried(_PROBES), "{device}", "{gid}", "{port}")
    return Exchange("probes", family, words, (*words, "{address}"), limit_s=90.0)


def rping(family: str, *options: str) -> Exchange:
    """rping: rdma_cm, SEND, READ and WRITE; -V compares what comes back."""
    words = ("-a", "{address}", "-p", "{port}", "-V", *options)
    return Exchange(" ".join(("rping", *options)), family, ("rping", "-s", *words), ("rping", "-c", *words),
                    connects_by_cm=True)


def rdmacm(program: str, family: str, *options: str) -> Exchange:
    """udaddy, ucmatose, rstream: rdma_cm with UD, with RC, and sockets over WRITE with immediate data."""
    port = () if program == "udaddy" else ("-p", "{port}")  # -p is something else to udaddy, whose port is fixed
    words = (program, *port, *options)
    return Exchange(" ".join((program, *options)), family, (*words, "-b", "{address}"), (*words, "-s", "{address}"),
                    connects_by_cm=True)


def ask_in_vain(server: Side, client: Side) -> list[str]:
    """Connects to ports at which nobody listens, over RC and over UD; a text per answer that is no refusal.

    On a host whose kernel knows nothing of rdma_cm somebody has to be there to refuse: a server at another port.
    """
    bystander = server.start("rping", "-s", "-a", server.ipv4, "-p", str(_ELSEWHERE))
    try:
        server.run(["sh", "-c", "until grep -qi ':12B7 ' /proc/net/udp /proc/net/udp6; do sleep 0.02; done"],
                   _LISTEN_LIMIT_S)
        tcp = client.run(["rping", "-c", "-a", server.ipv4, "-C", "1"], _REFUSAL_LIMIT_S)
        udp = client.run(["udaddy", "-s", server.ipv4], _REFUSAL_LIMIT_S)
    finally:
        bystander.kill()
    return [ended.describe() for ended, words in ((tcp, "REJECTED, error 8"), (udp, "UNREACHABLE, error: 1"))
            if words not in ended.output]
