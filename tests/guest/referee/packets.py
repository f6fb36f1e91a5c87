"""RoCEv2 packets as the standard describes them, read with nothing of the code under test: a second opinion.

IB Architecture Specification 1.2.1, annex 17 (RoCEv2); the ICRC is that of section 7.8.1.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import struct
import zlib

ROCE_PORT = 4791
_MAD_BYTES = 256
# Extension headers in bytes after the 12 of the BTH; the opcodes of RC, UC and UD are built from the same operations.
_RETH, _AETH, _IMMEDIATE, _ATOMIC, _ATOMIC_ACK, _DETH = 16, 4, 4, 28, 8, 8
_RC_EXTENSIONS = {0x03: _IMMEDIATE, 0x05: _IMMEDIATE, 0x06: _RETH, 0x09: _IMMEDIATE, 0x0A: _RETH,
                  0x0B: _RETH + _IMMEDIATE, 0x0C: _RETH, 0x0D: _AETH, 0x0F: _AETH, 0x10: _AETH, 0x11: _AETH,
                  0x12: _AETH + _ATOMIC_ACK, 0x13: _ATOMIC, 0x14: _ATOMIC, 0x16: _IMMEDIATE, 0x17: _IMMEDIATE}
_UC_EXTENSIONS = {0x23: 4, 0x25: 4, 0x26: _RETH, 0x29: 4, 0x2A: _RETH, 0x2B: _RETH + 4}
_UD_EXTENSIONS = {0x64: _DETH, 0x65: _DETH + _IMMEDIATE}
_CNP = 0x81
_WITH_AETH = (0x0D, 0x0F, 0x10, 0x11, 0x12)
_EXTENSIONS = _RC_EXTENSIONS | _UC_EXTENSIONS | _UD_EXTENSIONS
_OPCODES = set(_EXTENSIONS) | set(range(0x00, 0x15)) | set(range(0x20, 0x2C)) | {_CNP}
_NAMES = {0x04: "SEND", 0x0A: "WRITE", 0x0C: "READ", 0x10: "READ response", 0x11: "ACK", 0x12: "ATOMIC ACK",
          0x13: "CMP SWAP", 0x14: "FETCH ADD", 0x24: "UC SEND", 0x64: "UD SEND"}


class Malformed(Exception):
    """A frame that is no well-formed RoCEv2 packet; the text says why."""


@dataclasses.dataclass(frozen=True)
class Packet:
    """What all packets have, and the AETH's syndrome where there is one."""

    source: str
    destination: str
    opcode: int
    destination_qp: int
    psn: int
    pad_bytes: int
    asks_for_ack: bool
    syndrome: int | None
    payload: bytes
    icrc: int

    @property
    def is_vendor(self) -> bool:
        """From the range of opcodes that the standard leaves to manufacturers."""
        return self.opcode >= 0xC0

    @property
    def is_vendor_mad(self) -> bool:
        """A management datagram of a class that the standard leaves to manufacturers, with their OUI: 0x30 to 0x4f."""
        return self.destination_qp == 1 and len(self.payload) == _MAD_BYTES and 0x30 <= self.payload[1] <= 0x4F

    def describe(self) -> str:
        name = _NAMES.get(self.opcode, f"opcode {self.opcode:02x}")
        syndrome = "" if self.syndrome is None else f" syndrome {self.syndrome:02x}"
        return (f"{self.source} -> {self.destination} {name} QP {self.destination_qp:#x} PSN {self.psn:#x}{syndrome} "
                f"{len(self.payload)} bytes")


def parse(frame: bytes) -> Packet:
    """Reads an Ethernet frame; raises Malformed for a wrong length, an unknown opcode or a bad ICRC."""
    source, destination, masked, udp = _network_layers(frame)
    bth = udp[8:]
    if len(bth) < 16:
        raise Malformed(f"{len(bth)} bytes after the UDP header: no room for BTH and ICRC")
    opcode, flags = bth[0], bth[1]
    if flags & 0x0F:
        raise Malformed(f"BTH version {flags & 0x0F}")
    if opcode < 0xC0 and opcode not in _OPCODES:
        raise Malformed(f"opcode {opcode:#x} is not one of RC, UC or UD")
    start = 12 + _EXTENSIONS.get(opcode, 0)
    pad = flags >> 4 & 3
    end = len(bth) - 4 - pad
    if end < start:
        raise Malformed(f"opcode {opcode:#x} with {len(bth)} bytes: shorter than its headers")
    if opcode < 0xC0 and len(bth) % 4:
        raise Malformed(f"{len(bth)} bytes from BTH to ICRC: no multiple of 4")
    if any(bth[end:end + pad]):
        raise Malformed(f"the padding is {bth[end:end + pad].hex()}, not zero")
    icrc = int.from_bytes(bth[-4:], "little")
    expected = zlib.crc32(masked + bth[:4] + b"\xff" + bth[5:-4])
    if icrc != expected:
        raise Malformed(f"ICRC {icrc:#010x}, computed {expected:#010x}")
    return Packet(source, destination, opcode, int.from_bytes(bth[5:8], "big"), int.from_bytes(bth[9:12], "big"), pad,
                  bool(bth[8] & 0x80), bth[12] if opcode in _WITH_AETH else None, bth[start:end], icrc)


def _network_layers(frame: bytes) -> tuple[str, str, bytes, bytes]:
    """Source, destination, the bytes that the ICRC covers up to the UDP header, and the UDP datagram."""
    kind = int.from_bytes(frame[12:14], "big")
    if len(frame) < 14 + (20 if kind == 0x0800 else 40) + 8:
        raise Malformed(f"{len(frame)} bytes: no room for the headers of IP and UDP")
    if kind == 0x0800:
        header = bytearray(frame[14:34])
        if header[0] != 0x45:
            raise Malformed(f"IPv4 with version and header length {header[0]:#x}")
        datagram = frame[34:14 + int.from_bytes(header[2:4], "big")]
        source, destination = ipaddress.IPv4Address(bytes(header[12:16])), ipaddress.IPv4Address(bytes(header[16:20]))
        header[1] = header[8] = header[10] = header[11] = 0xFF
    elif kind == 0x86DD:
        header = bytearray(frame[14:54])
        datagram = frame[54:54 + int.from_bytes(header[4:6], "big")]
        source, destination = ipaddress.IPv6Address(bytes(header[8:24])), ipaddress.IPv6Address(bytes(header[24:40]))
        header[0] |= 0x0F
        header[1:4] = b"\xff\xff\xff"
        header[7] = 0xFF
    else:
        raise Malformed(f"EtherType {kind:#06x}")
    if len(datagram) < 8:
        raise Malformed("an IP length without room for UDP")
    _, port, length, _ = struct.unpack_from(">HHHH", datagram)
    if port != ROCE_PORT or length != len(datagram):
        raise Malformed(f"UDP to port {port}, length {length} of {len(datagram)} bytes")
    return str(source), str(destination), b"\xff" * 8 + bytes(header) + datagram[:6] + b"\xff\xff", datagram
