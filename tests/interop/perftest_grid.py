"""perftest's grid as data: which program, transport and options are run together."""

from __future__ import annotations

import dataclasses
from typing import Iterator

_MTU = 4096
_ALL_SIZES = 23  # -a: 2 bytes to 8 MiB, doubling
_DATAGRAM_SIZES = 12  # -a over UD: 2 bytes to the MTU


@dataclasses.dataclass(frozen=True)
class Cell:
    """One run of a pair. `rows` is the number of lines its result table must have."""

    program: str
    transport: str
    variant: str
    options: tuple[str, ...]
    rows: int
    is_quick: bool

    @property
    def name(self) -> str:
        return f"{self.program} {self.transport} {self.variant}"

    @property
    def needs_patience(self) -> bool:
        """It sends more messages than receives are posted, on a transport that repeats none."""
        return self.variant == "-r 2" and self.transport == "UC" and not self.is_latency

    @property
    def is_latency(self) -> bool:
        return self.program.endswith("_lat")

    def command(self, device: str, gid_index: int) -> list[str]:
        """The command line of one side, without port and address."""
        return [self.program, "-d", device, "-x", str(gid_index), "-F", "-c", self.transport, *self.options]


@dataclasses.dataclass(frozen=True)
class Variant:
    """A set of options and the programs that take it: verbs x kinds x transports."""

    name: str
    options: tuple[str, ...]
    verbs: str = "send write read atomic"
    kinds: str = "lat bw"
    transports: str = "RC UC UD"
    is_quick: bool = False
    all_sizes: bool = False


_TRANSPORTS = {"send": "RC UC UD", "write": "RC UC", "read": "RC", "atomic": "RC"}

VARIANTS = (
    # Latency programs spin on memory: on a busy core every turn costs a time slice, so the counts are small.
    Variant("plain", ("-n", "300"), is_quick=True),
    # More messages than a receive queue holds: over UD nothing but the pace of the two programs keeps them from being lost.
    Variant("-n 5000", ("-n", "5000", "-s", "64"), verbs="send write read", kinds="bw", is_quick=True),
    Variant("-a", ("-a", "-n", "20"), verbs="send write read", all_sizes=True, is_quick=True),
    Variant("-b", ("-b", "-n", "300"), kinds="bw", is_quick=True),
    Variant("-b -a", ("-b", "-a", "-n", "20"), verbs="send write read", kinds="bw", all_sizes=True),
    Variant("-e", ("-e", "-n", "300"), verbs="send read atomic", is_quick=True),
    Variant("-e -a", ("-e", "-a", "-n", "20"), verbs="send read", all_sizes=True),
    Variant("-e -b", ("-e", "-b", "-n", "300"), verbs="send read atomic", kinds="bw"),
    Variant("-q 8", ("-q", "8", "-n", "200"), kinds="bw", is_quick=True),
    # Polls 16 completions at most, then sleeps with the queue armed and more lying in it: an event must come at once.
    Variant("-q 8 -b -e", ("-q", "8", "-b", "-e", "-n", "200"), verbs="send read", kinds="bw", is_quick=True),
    Variant("-I 64", ("-I", "64", "-s", "64", "-n", "300"), verbs="send write", is_quick=True),
    Variant("-I 256", ("-I", "256", "-s", "256", "-n", "300"), verbs="send write"),
    Variant("-I 0", ("-I", "0", "-s", "8", "-n", "300"), verbs="send write"),
    Variant("--use-srq", ("--use-srq", "-n", "300"), verbs="send", transports="RC UD", is_quick=True),
    Variant("--use-srq -q 8", ("--use-srq", "-q", "8", "-n", "200"), verbs="send", kinds="bw", transports="RC"),
    Variant("-t 1", ("-t", "1", "-n", "300"), kinds="bw", is_quick=True),
    Variant("-t 1 -q 8", ("-t", "1", "-q", "8", "-n", "200"), kinds="bw"),
    Variant("-n 5, 8 MiB", ("-n", "5", "-s", "8388608"), verbs="send write read", transports="RC UC", is_quick=True),
    Variant("-n 5, 8 MiB, -q 8", ("-n", "5", "-s", "8388608", "-q", "8"), verbs="send write read", kinds="bw",
            transports="RC UC"),
    Variant("-n 5", ("-n", "5")),
    Variant("-s 1", ("-s", "1", "-n", "300"), verbs="send write read"),
    Variant("-s 4097", ("-s", "4097", "-n", "300"), verbs="send write read", transports="RC UC"),
    Variant("-l 16", ("-l", "16", "-n", "512"), verbs="send write read", kinds="bw"),
    Variant("-Q 1", ("-Q", "1", "-n", "300"), kinds="bw"),
    Variant("-r 2", ("-r", "2", "-n", "200"), verbs="send", transports="RC UC"),
    Variant("-m 256", ("-m", "256", "-n", "200"), verbs="send write read", transports="RC UC"),
    Variant("old post", ("--use_old_post_send", "-n", "300"), is_quick=True),
    Variant("-D 2", ("-D", "2", "-f", "0"), verbs="send write", kinds="bw", transports="RC"),
)

_ATOMIC_TYPES = {"FAA": ("-A", "FETCH_AND_ADD"), "CAS": ("-A", "CMP_AND_SWAP")}


def cells() -> Iterator[Cell]:
    """Every cell of the grid; atomics once for each type."""
    for variant in VARIANTS:
        for verb in variant.verbs.split():
            for kind in variant.kinds.split():
                for transport in variant.transports.split():
                    if transport in _TRANSPORTS[verb].split():
                        yield from _cells_of(variant, verb, kind, transport)


def _cells_of(variant: Variant, verb: str, kind: str, transport: str) -> Iterator[Cell]:
    rows = 1
    if variant.all_sizes:
        rows = _DATAGRAM_SIZES if transport == "UD" else _ALL_SIZES
    program = f"ib_{verb}_{kind}"
    if verb != "atomic":
        yield Cell(program, transport, variant.name, variant.options, rows, variant.is_quick)
        return
    for label, extra in _ATOMIC_TYPES.items():
        yield Cell(program, transport, f"{label} {variant.name}", variant.options + extra, rows, variant.is_quick)


# What perftest offers and this grid leaves out, with the reason.
LEFT_OUT = {
    "-R, -z": "needs rdma_cm, which the stock librdmacm only finds in the kernel",
    "-c XRC": "the device has no XRC domains",
    "-c DC, -c SRD": "transports of single vendors",
    "--odp": "on-demand paging is not offered",
    "-O": "a device has one port",
    "-g": "multicast groups are not offered",
    "ib_write_* -e": "perftest has no event mode for a passive WRITE target",
    "ib_atomic_* -a, -s": "atomics have one size, 8 bytes",
    "ib_*_lat -q, -b, -t": "perftest offers these to its bandwidth programs only",
    "raw_ethernet_*": "raw packet queue pairs are not offered",
}
