#!/usr/bin/env python3
"""Packets of ours, judged by programs that are not.

    golden_test.py icrc GOLDEN_PCAP      every ICRC, computed with zlib from what lies in the capture file
    golden_test.py tshark GOLDEN_PCAP    tshark finds no packet malformed and the values that we put in

Exit status 0: all as it should be; 1: not; 77: tshark is missing.
"""

import ipaddress
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

TSHARK_TIMEOUT_S = 100
# Payloads are ours: nothing is to be guessed from them. rdma_rxe sends no UDP checksum over IPv6, and rightly so.
GUESSES = ["rpcordma", "smc", "smb_direct", "nvme-rdma", "lnet", "iser", "infiniband_sdp", "infiniband.eoib", "fcoib"]
SETTINGS = ["-o", "udp.ignore_ipv6_zero_checksum:TRUE"] + [
    part for name in GUESSES for part in ("--disable-protocol", name)]


def make_capture(program: str, folder: pathlib.Path) -> tuple[pathlib.Path, list[tuple[str, dict[str, str]]]]:
    """The file, and for each packet its name and what is in it."""
    file = folder / "golden.pcap"
    done = subprocess.run([program, str(file)], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        sys.exit(f"{program}: exit status {done.returncode}: {done.stderr.strip()}")
    packets = []
    for number, line in enumerate(done.stdout.splitlines(), 1):
        first, name, *fields = line.split("\t")
        assert int(first) == number, line
        packets.append((name, dict(field.split("=", 1) for field in fields)))
    return file, packets


def datagrams(file: pathlib.Path) -> list[bytes]:
    """What lies in a classic capture file of raw IP."""
    data = file.read_bytes()
    magic, _, _, _, _, link = struct.unpack("=IIIIII", data[:24])
    assert (magic, link) == (0xA1B2C3D4, 101), "no capture file of raw IP"
    found = []
    at = 24
    while at < len(data):
        _, _, length, original = struct.unpack("=IIII", data[at:at + 16])
        assert length == original
        found.append(data[at + 16:at + 16 + length])
        at += 16 + length
    return found


def icrc(datagram: bytes) -> int:
    """IBTA volume 1, annex A17.3: what changes on the way counts as ones."""
    covered = bytearray(datagram[:-4])
    if datagram[0] >> 4 == 4:
        udp, masked = 20, [1, 8, 10, 11]  # type of service, time to live, checksum
    else:
        udp, masked = 40, [1, 2, 3, 7]  # traffic class and flow label, hop limit
        covered[0] |= 0x0F
    masked += [udp + 6, udp + 7, udp + 8 + 4]  # UDP's checksum, the byte of FECN and BECN
    for at in masked:
        covered[at] = 0xFF
    return zlib.crc32(bytes(8 * [0xFF]) + bytes(covered))


def check_icrcs(program: str) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="ringbolt-golden.") as folder:
        file, packets = make_capture(program, pathlib.Path(folder))
        found = datagrams(file)
    complaints = [f"{len(found)} packets in the file, {len(packets)} announced"] if len(found) != len(packets) else []
    for datagram, (name, _) in zip(found, packets):
        carried = struct.unpack("<I", datagram[-4:])[0]
        if carried != icrc(datagram):
            complaints.append(f"{name}: ICRC {carried:08x}, by zlib {icrc(datagram):08x}")
    print(f"{len(found)} ICRCs compared with zlib's")
    return complaints


def plain(text: str) -> str:
    """A value in one form: numbers in decimal, addresses in full, bytes in hexadecimal without colons."""
    try:
        return ipaddress.ip_address(text).exploded
    except ValueError:
        pass
    try:
        return str(int(text, 0))
    except ValueError:
        return {"True": "1", "False": "0"}.get(text, text.replace(":", ""))


def dissect(file: pathlib.Path, fields: list[str]) -> list[dict[str, str]]:
    command = ["tshark", "-n", *SETTINGS, "-r", str(file), "-T", "fields", "-E", "separator=/t", "-E", "occurrence=f"]
    for field in fields:
        command += ["-e", field]
    own_settings = {**os.environ, "WIRESHARK_CONFIG_DIR": str(file.parent)}  # not those of whoever runs the test
    done = subprocess.run(command, capture_output=True, text=True, timeout=TSHARK_TIMEOUT_S, env=own_settings,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"tshark: exit status {done.returncode}: {done.stderr.strip()}")
    return [dict(zip(fields, line.split("\t"))) for line in done.stdout.splitlines()]


def check_with_tshark(program: str) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="ringbolt-golden.") as folder:
        file, packets = make_capture(program, pathlib.Path(folder))
        wanted = sorted({field for _, fields in packets for field in fields})
        rows = dissect(file, ["_ws.malformed", "_ws.expert.message", "infiniband.invariant.crc", *wanted])
        carried = [struct.unpack(">I", datagram[-4:])[0] for datagram in datagrams(file)]
    complaints = [f"tshark saw {len(rows)} of {len(packets)} packets"] if len(rows) != len(packets) else []
    compared = 0
    for row, (name, fields), crc in zip(rows, packets, carried):
        if row["_ws.malformed"] or row["_ws.expert.message"]:
            complaints.append(f"{name}: {row['_ws.malformed']} {row['_ws.expert.message']}")
        if int(fields["infiniband.bth.opcode"]) < 0x80:  # of others it shows the rest as one piece
            fields["infiniband.invariant.crc"] = str(crc)
        for field, value in fields.items():
            compared += 1
            # Bytes that look like a number are compared as bytes.
            if plain(row[field]) != plain(value) and row[field].replace(":", "") != value:
                complaints.append(f"{name}: {field} is {value}, by tshark {row[field] or 'not there'}")
    print(f"{len(rows)} packets dissected by tshark, {compared} fields compared")
    return complaints


def main() -> int:
    if len(sys.argv) != 3 or sys.argv[1] not in ("icrc", "tshark"):
        print(__doc__, file=sys.stderr)
        return 2
    if sys.argv[1] == "tshark" and shutil.which("tshark") is None:
        print("skip: tshark is not installed")
        return 77
    complaints = (check_icrcs if sys.argv[1] == "icrc" else check_with_tshark)(sys.argv[2])
    if complaints:
        print("\n".join(complaints[:40]))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
