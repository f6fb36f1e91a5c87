"""Wireshark's opinion of captured frames (tshark)."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import tempfile
from typing import Sequence

from harness.report import Skip
from referee import packets
from referee.capture import Frame, write_pcap

_FIELDS = ("frame.protocols", "infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.bth.psn",
           "infiniband.invariant.crc", "infiniband.aeth.syndrome", "_ws.malformed", "_ws.expert.message")
_LIMIT_S = 120


def objections(frames: Sequence[Frame]) -> list[str]:
    """A line for each frame that tshark finds malformed or reads differently from packets.py.

    Raises Skip without tshark. This tshark shows the ICRC and does not check it; packets.py does.
    """
    rows = _dissect(frames)
    if len(rows) != len(frames):
        return [f"tshark shows {len(rows)} frames of {len(frames)}"]
    found = []
    for number, (frame, row) in enumerate(zip(frames, rows), 1):
        complaint = _objection(frame, row)
        if complaint:
            found.append(f"frame {number} at {frame.time_us} us: {complaint}: {frame.data.hex()}")
    return found


def _objection(frame: Frame, row: dict[str, str]) -> str:
    if row["_ws.malformed"] or row["_ws.expert.message"]:
        return f"tshark says {row['_ws.malformed']} {row['_ws.expert.message']}"
    if "infiniband" not in row["frame.protocols"].split(":"):
        return f"tshark takes it for {row['frame.protocols']}"
    packet = packets.parse(frame.data)
    if packet.is_vendor:
        return ""
    theirs = tuple(int(row[f"infiniband.{name}"], 0) for name in ("bth.opcode", "bth.destqp", "bth.psn"))
    ours = (packet.opcode, packet.destination_qp, packet.psn)
    if theirs != ours:
        return f"tshark reads opcode, QP, PSN {theirs}, we read {ours}"
    if packet.is_vendor_mad and not row["infiniband.invariant.crc"]:
        return ""  # it reads no further than the class
    # tshark prints the ICRC in the order of the wire.
    if int(row["infiniband.invariant.crc"], 0) != int.from_bytes(packet.icrc.to_bytes(4, "little"), "big"):
        return f"tshark reads the ICRC {row['infiniband.invariant.crc']}, we read {packet.icrc:#010x}"
    return ""


def _dissect(frames: Sequence[Frame]) -> list[dict[str, str]]:
    if shutil.which("tshark") is None:
        raise Skip("no tshark")
    with tempfile.TemporaryDirectory(prefix="rb-") as folder:
        path = pathlib.Path(folder) / "frames.pcap"
        write_pcap(path, frames)
        command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-o", "udp.ignore_ipv6_zero_checksum:TRUE"]
        command += _without_guessers()
        for field in _FIELDS:
            command += ["-e", field]
        return [dict(zip(_FIELDS, line.split("\t"))) for line in _call(command).splitlines()]


def _without_guessers() -> list[str]:
    """Turns off all that guesses at what a payload might be: it finds malformed what was never meant for it."""
    options = ["--disable-heuristic", "eth_over_ib"]
    for line in _call(["tshark", "-G", "heuristic-decodes"]).splitlines():
        layer, protocol = line.split("\t")[:2]
        if layer.startswith("infiniband.") and protocol != "ethertype":
            options += ["--disable-protocol", protocol]
    return options


def _call(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{command[0]}: exit status {done.returncode}: {done.stderr.strip()}")
    return done.stdout
