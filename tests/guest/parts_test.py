"""The parts of the referee that need no guest."""

import pathlib
import sys
import tempfile
import unittest

_HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parent / "interop")]

from harness.report import Skip  # noqa: E402
from referee import capture, cpio, dissector, kernel, packets  # noqa: E402

# A congestion notification of a ConnectX-4 Lx, from the public tests of scapy.
CNP = bytes.fromhex("45c2003c718c4000401191610a0011010a001201000012b7002800008100ffff40000118"
                    "000000000000000000000000000000000000000082fd002a")
# SEND only over IPv6 with payload "ringbolt", of a user-space peer whose packets rdma_rxe took.
SEND = bytes.fromhex("6000000000201140fe800000000000000000000000000001fe800000000000000000000000000002"
                     "12b712b7002000000440ffff0000001180000abc72696e67626f6c741fcfa750")
ETHERNET_V4, ETHERNET_V6 = bytes(12) + b"\x08\x00", bytes(12) + b"\x86\xdd"


class Packets(unittest.TestCase):
    def test_reads_what_others_sent(self):
        packet = packets.parse(ETHERNET_V6 + SEND)
        self.assertEqual((packet.opcode, packet.destination_qp, packet.psn), (4, 0x11, 0xABC))
        self.assertEqual(packet.payload, b"ringbolt")
        self.assertTrue(packet.asks_for_ack)
        self.assertEqual((packet.source, packet.destination), ("fe80::1", "fe80::2"))

    def test_checks_the_icrc_of_a_nic(self):
        self.assertEqual(packets.parse(ETHERNET_V4 + CNP).icrc, 0x2A00FD82)

    def test_finds_every_bit_that_the_icrc_covers(self):
        masked = {0, 1, 2, 3, 7, 46, 47, 52}  # version aside: class, flow label, hop limit, UDP checksum, BTH byte 4
        for index in range(len(SEND)):
            if index in masked:
                continue
            spoilt = bytearray(ETHERNET_V6 + SEND)
            spoilt[14 + index] ^= 1
            with self.assertRaises(packets.Malformed, msg=f"byte {index}"):
                packets.parse(bytes(spoilt))

    def test_refuses_every_beginning(self):
        frame = ETHERNET_V6 + SEND
        for length in range(14, len(frame)):
            with self.assertRaises(packets.Malformed, msg=f"{length} bytes"):
                packets.parse(frame[:length])


class Captures(unittest.TestCase):
    def test_text_comes_back(self):
        frames = [capture.Frame(0, SEND), capture.Frame(1234567, CNP)]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "one.txt"
            capture.write_text(path, ["about it", ""], frames)
            self.assertEqual(capture.read_text(path), frames)

    def test_pcap_has_a_header_and_a_record_per_frame(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "one.pcap"
            capture.write_pcap(path, [capture.Frame(1000001, CNP)])
            content = path.read_bytes()
        self.assertEqual(len(content), 24 + 16 + len(CNP))
        self.assertEqual(content[24:32], bytes.fromhex("0100000001000000"))


class Golden(unittest.TestCase):
    """What kernels, and our device and a kernel, have said to each other."""

    def setUp(self):
        self.files = sorted((_HERE.parent / "golden" / "captures").glob("*.txt"))

    def test_every_frame_is_sound(self):
        self.assertGreater(len(self.files), 10)
        for file in self.files:
            for number, frame in enumerate(capture.read_text(file), 1):
                with self.subTest(file=file.name, frame=number):
                    packets.parse(frame.data)

    def test_wireshark_agrees(self):
        frames = [frame for file in self.files for frame in capture.read_text(file)]
        try:
            self.assertEqual(dissector.objections(frames), [])
        except Skip as reason:
            self.skipTest(str(reason))


class Archives(unittest.TestCase):
    def test_members_are_aligned_and_the_end_is_marked(self):
        archive = cpio.Archive()
        archive.add_file("init", b"12345", 0o755)
        content = archive.finished()
        self.assertEqual(len(content) % 4, 0)
        self.assertEqual(content[:6], b"070701")
        self.assertEqual(int(content[54:62], 16), 5)
        self.assertEqual(content[110:115], b"init\0")
        self.assertEqual(content[116:124], b"12345\0\0\0")
        self.assertIn(b"TRAILER!!!\0", content)


class Modules(unittest.TestCase):
    def test_come_after_what_they_need(self):
        depends = {"a": ["b", "c"], "b": ["c"], "c": [], "d": []}
        self.assertEqual(kernel.load_order(["a", "c"], depends), ["c", "b", "a"])

    def test_that_is_missing_is_named(self):
        with self.assertRaisesRegex(RuntimeError, "no module gone"):
            kernel.load_order(["a"], {"a": ["gone"]})

    def test_tell_their_dependencies(self):
        self.assertEqual(kernel.dependencies(b"\x7fELF\0alias=x\0depends=ib_core,udp-tunnel\0retpoline=Y\0"),
                         ["ib_core", "udp_tunnel"])
        self.assertEqual(kernel.dependencies(b"\0depends=\0"), [])


if __name__ == "__main__":
    unittest.main(verbosity=1)
