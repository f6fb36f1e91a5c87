"""`ringbolt decode`: captures of every kind, frames as text, streams, and what is none of them."""

import pathlib
import struct

import command
from command import CommandCase

ETHERNET = 1
RAW_IP = 101
HELLO = ("0000000001030000130000107c2c8f1e5b4d4a019f3a2b8e6d4c1a0701000000544256310100010058000000443322110700000002000000"
         "0103000000000000010000000100000009000000000400000004000001000000")
NOT_READY = "545644310100300002000000020900000109000056341200000000000100000000000000000000000000000000000000"
STREAM = "524253310401280044332211050000000400000003000000400000000109000064059d1819559caf72696e67"


def captures():
    """The folder of golden captures: text, a frame a line."""
    return pathlib.Path(command.EXTRA[0])


def frames_of(path):
    """(microseconds, bytes from the Ethernet header on) of a golden capture."""
    lines = [line.split() for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
    return [(int(words[0]), bytes.fromhex(words[1])) for words in lines]


def classic(frames, link=ETHERNET, order="<", magic=0xa1b2c3d4, per_us=1):
    out = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, link)
    for us, frame in frames:
        out += struct.pack(order + "IIII", us // 1_000_000, us % 1_000_000 * per_us, len(frame), len(frame)) + frame
    return out


def block(kind, body, order="<"):
    body += bytes(-len(body) % 4)
    return struct.pack(order + "II", kind, len(body) + 12) + body + struct.pack(order + "I", len(body) + 12)


def pcapng(frames, order="<", resolution=9, per_us=1000):
    out = block(0x0a0d0d0a, struct.pack(order + "IHHq", 0x1a2b3c4d, 1, 0, -1), order)
    options = struct.pack(order + "HHB3xHH", 9, 1, resolution, 0, 0)  # 9: ticks of 10^-9 s; 0x80 | n: of 2^-n s
    out += block(1, struct.pack(order + "HHI", ETHERNET, 0, 65535) + options, order)
    for us, frame in frames:
        ticks = us * per_us
        head = struct.pack(order + "IIIII", 0, ticks >> 32, ticks & 0xffffffff, len(frame), len(frame))
        out += block(6, head + frame, order)
    return out


class Decode(CommandCase):
    def decode(self, content, expect=0, name="capture"):
        path = self.root / name
        path.write_bytes(content)
        return self.call("decode", path, expect=expect)

    def test_every_golden_capture_is_read_whole(self):
        found = sorted(captures().glob("*.txt"))
        self.assertGreater(len(found), 40)
        for capture in found:
            said = self.call("decode", capture).stdout.splitlines()
            self.assertEqual(len(said), len(frames_of(capture)), capture.name)
            self.assertFalse([line for line in said if "known" in line or "WRONG" in line], capture.name)

    def test_connection_and_data_are_told_in_words(self):
        said = self.call("decode", captures() / "rping-v4.txt").stdout
        for words in ("REQ id 0x7d633cb2 to TCP port ", "REP id 0x69f1576f to 0x7d633cb2", "RTU id", "DREQ id", "DREP id",
                      "10.77.0.2 > 10.77.0.1 RC SEND QP ", "RC READ request QP ", "RC READ response first", "RC WRITE first",
                      "RC ACK QP "):
            self.assertIn(words, said)

    def test_capture_files_of_all_kinds_say_the_same(self):
        frames = frames_of(captures() / "rping-v6.txt")
        first = self.decode(classic(frames)).stdout
        self.assertEqual(len(first.splitlines()), len(frames))
        self.assertRegex(first.splitlines()[0], r"^ +0\.000 us  ")
        raw = [(us, frame[14:]) for us, frame in frames]
        tagged = [(us, frame[:12] + bytes.fromhex("81000007") + frame[12:]) for us, frame in frames]
        for what, content in {"big-endian": classic(frames, order=">"), "raw IP": classic(raw, link=RAW_IP),
                              "VLAN": classic(tagged),
                              "nanoseconds": classic(frames, magic=0xa1b23c4d, per_us=1000), "pcapng": pcapng(frames),
                              "pcapng, big-endian": pcapng(frames, ">"),
                              "picoseconds": pcapng(frames, resolution=12, per_us=10 ** 6)}.items():
            self.assertEqual(self.decode(content).stdout, first, what)

    def test_packets_sent_as_one_by_the_kernel_are_told_apart(self):
        # Behind Ethernet, IP and the first half of the UDP header: its length. Then one packet behind the other.
        one = next(frame for _, frame in frames_of(captures() / "send-v4.txt") if len(frame) > 62)
        packet = one[42:]
        row = one[:38] + struct.pack(">H", 8 + 3 * len(packet)) + one[40:42] + 3 * packet
        said = self.decode(classic([(0, row)])).stdout.splitlines()
        self.assertEqual(len(said), 3)
        self.assertEqual(len(set(said)), 1)

    def test_damage_is_found(self):
        frames = frames_of(captures() / "rc-pingpong-v6.txt")
        us, frame = frames[3]
        spoilt = bytearray(frame)
        spoilt[-10] ^= 1
        frames[3] = (us, bytes(spoilt))
        done = self.decode(classic(frames), expect=1)
        self.assertEqual(done.stdout.count("WRONG ICRC"), 1)
        self.assertIn(f"1 of {len(frames)} are damaged", done.stderr)

    def test_capture_that_was_cut_short_is_no_damage(self):
        frames = frames_of(captures() / "rc-pingpong-v6.txt")[:2]
        content = classic([(0, frames[0][1])]) + struct.pack("<IIII", 1, 0, 96, 500) + frames[1][1][:96]
        self.assertIn("cut short", self.decode(content).stdout)
        self.assertEqual(len(self.decode(content[:-1]).stdout.splitlines()), 1)  # the file breaks off in a packet

    def test_frames_of_thunderbolt_and_streams(self):
        text = f"# frames\n{HELLO}\n17 {NOT_READY}   # an answer\n\n{STREAM}\n"
        said = self.decode(text.encode()).stdout.splitlines()
        self.assertIn("Thunderbolt HELLO sequence 0x11223344 route 0x301 rail 2", said[0])
        self.assertIn("Thunderbolt SEND answer QP 0x902 from 0x901 PSN 1193046 receiver not ready", said[1])
        self.assertIn("stream DATA epoch 0x11223344 sequence 5 expects 3 credit 64 QP 0x901 4 B last", said[2])

    def test_stream_with_rubbish_between_frames(self):
        frame = bytes.fromhex(STREAM)
        done = self.decode(b"\0\1\2" + frame + b"\xff" * 5 + frame[:-1] + b"?", expect=1)
        said = done.stdout.splitlines()
        self.assertEqual([said[0], said[2]], ["3 B between frames", "5 B between frames"])
        self.assertIn("DATA", said[1])
        self.assertIn("WRONG PAYLOAD", said[3])

    def test_what_is_no_capture_is_refused_in_words(self):
        frames = frames_of(captures() / "rc-pingpong-v6.txt")
        for content, words in ((b"", "is empty"), (b"xyz\n", "odd number"), (bytes(500), "no frame of a stream"), (b"zz\n", '"zz" is no hexadecimal byte'),
                               (classic(frames)[:20], "breaks off after 20 of the 24 bytes"),
                               (classic(frames, link=147), "links of type 147"),
                               (classic([(0, bytes(60))]), "none of its 0 IP datagrams"),
                               (pcapng(frames)[:28] + struct.pack("<II", 6, 3) + bytes(8), "says that it has 3 bytes")):
            self.assertIn(words, self.decode(content, expect=2).stderr)
        self.assertIn("/nowhere", self.call("decode", "/nowhere", expect=2).stderr)
        self.assertEqual(self.decode(b"deadbeef\n", expect=1).stdout, "4 B of no format that is known\n")


if __name__ == "__main__":
    command.main()
