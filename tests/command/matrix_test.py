"""`matrix`: real figures over every cable, both ways; cut and broken ones are said to be so; always an end."""

import html.parser
import json
import os
import pathlib
import pty
import shutil
import subprocess

import command
from command import CommandCase

QUICK = ["--rounds", "50", "--messages", "8", "--size", "65536", "--seconds", "0.2"]


class Page(html.parser.HTMLParser):
    """Checks that tags close in order, and counts them."""

    VOID = {"meta", "br", "rect", "circle"}

    def __init__(self):
        super().__init__()
        self.open, self.counts, self.attributes = [], {}, []

    def handle_starttag(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


class Matrix(CommandCase):
    def directions(self, *words, **options):
        return json.loads(self.call("matrix", "--json", *QUICK, *words, timeout=90, **options).stdout)["directions"]

    def test_measures_every_cable_both_ways(self):
        for spec, count in (("ring:3", 6), ("ring:2", 4), ("loop", 1)):
            with self.subTest(spec), self.cluster(spec):
                found = self.directions()
                self.assertEqual(len(found), count)
                self.assertEqual(len({(one["from"], one["to"]) for one in found}), count)
                for one in found:
                    self.assertEqual(one["state"], "measured", one)
                    self.assertTrue(0 < one["latency_us"] <= one["latency_p99_us"] <= one["latency_max_us"], one)
                    self.assertGreater(one["bandwidth_gbps"], 0)
                    self.assertTrue(65536 <= one["verified_bytes"] <= 8 * 65536, one)
                    self.assertTrue(1 <= one["rounds"] <= 50, one)

    @staticmethod
    def both_ways(*pairs):
        return [ends for pair in pairs for ends in (tuple(pair.split()), tuple(reversed(pair.split())))]

    def test_relayed_pairs_are_marked_with_their_hops(self):
        with self.cluster("line:4"):
            launched = {"RANK": "0", "WORLD_SIZE": "1"}  # of the program that has started us
            found = [one for one in self.directions(env=launched) if one["cable"] is None]
            self.assertEqual({(one["from"], one["to"]): (one["hops"], one["through"]) for one in found},
                             {("n0", "n2"): (2, ["n1"]), ("n2", "n0"): (2, ["n1"]),
                              ("n1", "n3"): (2, ["n2"]), ("n3", "n1"): (2, ["n2"]),
                              ("n0", "n3"): (3, ["n1", "n2"]), ("n3", "n0"): (3, ["n2", "n1"])})
            for one in found:
                self.assertEqual(one["state"], "measured", one)
                self.assertTrue(0 < one["latency_us"] <= one["latency_p99_us"] <= one["latency_max_us"], one)
                self.assertTrue(65536 <= one["verified_bytes"] <= 8 * 65536, one)
            self.assertEqual(len(self.directions("--neighbours")), 6)
            self.call("cut", "0-1")
            said = self.call("matrix", *QUICK, expect=1, timeout=90)
            self.assertRegex(said.stdout, r"n1 +· +[0-9.]+ +[0-9.]+²|n1 +cut +· +[0-9.]+ +[0-9.]+²")
            self.assertNotIn("relayed:", said.stderr)

    def test_what_ails_the_group_is_told_once(self):
        with self.cluster("line:4"):
            said = self.call("matrix", *QUICK, env={"RINGBOLT_SECRET": ""}, expect=1, timeout=90).stderr
            self.assertEqual(said.count("relayed:"), 1, said)
            self.assertIn("n0 to n2 (and 5 more), relayed: the group that measures relayed pairs failed", said)

    def test_a_way_round_a_cut_cable(self):
        with self.cluster("ring:3"):
            self.call("cut", "0-2")
            found = [one for one in self.directions(expect=1) if one["cable"] is None]
            self.assertEqual([(one["from"], one["to"], one["through"]) for one in found],
                             [("n0", "n2", ["n1"]), ("n2", "n0", ["n1"])])

    def test_sizes_from_small_to_large(self):
        with self.cluster("line:2"):
            for size in (16, 17, 4096, 4097, 1 << 23):
                with self.subTest(size):
                    done = self.call("matrix", "--json", "--size", size, "--messages", "20", "--rounds", "10",
                                     "--seconds", "0.3", timeout=90)
                    for one in json.loads(done.stdout)["directions"]:
                        self.assertEqual(one["verified_bytes"] % size, 0)

    def test_a_cable_far_from_its_stated_speed_is_named(self):
        path = self.root / "slow.json"
        path.write_text(json.dumps({"ringbolt": 1, "nodes": [{"name": name, "ports": ["p0", "p1"]} for name in "abc"],
                                    "cables": [{"between": ["a:p1", "b:p0"], "speed_gbps": 2}, {"between": ["b:p1", "c:p0"]}]}))
        with self.cluster(path):
            words = ("matrix", "--neighbours", "--rounds", "20", "--messages", "2", "--seconds", "0.2")
            self.assertNotIn("stated", self.call(*words, timeout=90).stderr)
            self.call("fault", "add", "shape", "rate", "130Mbit", "cable", "a-b")
            done = self.call(*words, "--json", expect=1, timeout=90)
            far = [(one["from"], one["to"]) for one in json.loads(done.stdout)["directions"] if "far" in one]
            self.assertEqual(far, [("a:p1", "b:p0"), ("b:p0", "a:p1")])
            for ends in ("a:p1 to b:p0", "b:p0 to a:p1"):
                self.assertRegex(done.stderr, rf"cable 0, {ends}: 0\.1\d+ Gb/s, and its stated rate is 2\.00 Gb/s")
            self.assertNotIn("cable 1", done.stderr)

    def test_a_cable_far_from_its_like_ones_is_named(self):
        with self.cluster("ring:4"):
            self.call("fault", "add", "shape", "by", f"{5 * command.TIME_SCALE}ms", "cable", "1-2")
            done = self.call("matrix", "--neighbours", "--rounds", "20", "--messages", "4", "--seconds", "0.2", expect=1, timeout=90)
            # The longer delay for sanitizers makes it far from its stated rate as well, which is told first.
            like = "like cables have" if command.TIME_SCALE == 1 else "(like cables have|its stated rate is)"
            self.assertRegex(done.stderr, rf"cable 1, n1:rdma_en2 to n2:rdma_en3: (a latency of \d+ us|[\d.]+ Gb/s), and {like}")
            self.assertNotRegex(done.stderr, "cable [023]")

    def test_limits_for_ci(self):
        """--fail-if of the commands that measure: what is beyond is named with its place, and is exit code 1."""
        with self.cluster("line:2"):
            done = self.call("matrix", "--fail-if", "latency_us>0.0001", "--fail-if", "hops>1", expect=1)
            self.assertRegex(done.stderr, r"ringbolt matrix: directions\[0\].latency_us is [0-9.e-]+: --fail-if latency_us>0.0001")
            self.assertNotIn("hops", done.stderr)
            self.call("matrix", "--fail-if", "latency_us>1e9", "--json")
            self.refused("matrix", "--fail-if", "latency_us", says=["is no threshold", "KEY>NUMBER"])
            self.refused("matrix", "--fail-if", "speed>1", says=['nothing here is called "speed"', "bandwidth_gbps"])
            done = self.call("perf", "send", "--nodes", "0,1", "-n", "100", "--line-rate", "1e6", "--fail-if", "goodput_gbps<0.9*line_rate_gbps",
                             expect=1)
            self.assertIn("goodput_gbps is ", done.stderr)
            self.call("perf", "send", "--nodes", "0,1", "-n", "100", "--fail-if", "goodput_gbps<0")
            self.refused("perf", "send", "--nodes", "0,1", "-n", "100", "--fail-if", "goodput_gbps<0.9*line_rate_gbps",
                         says=["goodput_gbps<0.9*line_rate_gbps", "there is no line rate", "--line-rate GBPS"])
            done = self.call("bench", "all_reduce", "-e", "64", "--fail-if", "p99_us>0.001", expect=1)
            self.assertIn("out_of_place.p99_us is ", done.stderr)

    def test_cut_and_healed(self):
        with self.cluster("line:3"):
            self.call("cut", "0-1")
            done = self.call("matrix", *QUICK, expect=1, timeout=90)
            self.assertIn("cut", done.stdout)
            self.assertIn("ringbolt heal n0:rdma_en2-n1:rdma_en2", done.stderr)
            found = self.directions(expect=1)
            states = {(one["from"], one["to"]): one["state"] for one in found if one["cable"] is not None}
            self.assertEqual({(one["from"], one["to"]): one["state"] for one in found if one["cable"] is None},
                             dict.fromkeys(self.both_ways("n0 n1", "n0 n2"), "unreachable"))
            self.assertEqual(states, {("n0:rdma_en2", "n1:rdma_en2"): "cut", ("n1:rdma_en2", "n0:rdma_en2"): "cut",
                                      ("n1:rdma_en3", "n2:rdma_en2"): "measured",
                                      ("n2:rdma_en2", "n1:rdma_en3"): "measured"})
            self.call("heal", "0-1")
            self.assertEqual({one["state"] for one in self.directions()}, {"measured"})

    def test_page_is_whole_and_needs_nothing_else(self):
        with self.cluster("line:3"):
            self.call("cut", "0-1")
            path = self.root / "page.html"
            self.call("matrix", *QUICK, "--html", path, expect=1, timeout=90)
            text = path.read_text()
            page = Page()
            page.feed(text)
            self.assertEqual(page.open, [])
            self.assertEqual(page.counts["svg"], 3)
            self.assertEqual(page.counts["rect"], 2 * 9)
            self.assertNotIn("script", page.counts)
            self.assertEqual([name for name, _ in page.attributes if name in ("src", "href")], [])
            self.assertNotIn("http", text)
            self.assertTrue(self.call("matrix", *QUICK, "--html", "-", expect=1, timeout=90).stdout.startswith("<!DOC"))
            self.refused("matrix", "--json", "--html", "-", says=["both want stdout"])
            self.refused("matrix", "--html", self.root / "no/where.html", says=["no/where.html", "--html"])

    def on_terminal(self, **more):
        """What `matrix` prints on a terminal."""
        ours, theirs = pty.openpty()
        with subprocess.Popen([command.RINGBOLT, "matrix", *QUICK], env=self.environment | more, stdin=subprocess.DEVNULL,
                              stdout=theirs, stderr=subprocess.DEVNULL) as matrix:
            os.close(theirs)
            said = b""
            try:
                while piece := os.read(ours, 65536):
                    said += piece
            except OSError:
                pass  # how a terminal says that its last writer is gone
            os.close(ours)
            matrix.wait(timeout=command.PATIENCE_S)
        return said.decode()

    def test_colours_on_terminals_only(self):
        with self.cluster("line:2"):
            self.assertIn("\x1b[48;5;", self.on_terminal())
            self.assertNotIn("\x1b", self.on_terminal(NO_COLOR="1"))
            self.assertNotIn("\x1b", self.call("matrix", *QUICK, timeout=90).stdout)

    def test_wide_maps_become_lists(self):
        with self.cluster("star:14"):
            self.assertIn("LATENCY_US", self.call("matrix", "--neighbours", "--rounds", "2", "--messages", "1", "--seconds", "0.1",
                                                  timeout=120).stdout)

    def broken_install(self, library):
        built = pathlib.Path(command.RINGBOLT).resolve().parent.parent
        for folder in ("bin", "lib/ringbolt"):
            (self.root / "x" / folder).mkdir(parents=True, mode=0o700)
        shutil.copy(built / "bin/ringbolt", self.root / "x/bin")
        for other in (built / "lib/ringbolt").iterdir():
            (self.root / "x/lib/ringbolt" / other.name).symlink_to(other)
        (self.root / "x/lib/ringbolt/libibverbs.so.1").unlink()
        shutil.copy(library, self.root / "x/lib/ringbolt/libibverbs.so.1")
        return str(self.root / "x/bin/ringbolt")

    def test_wrong_library_is_named(self):
        shim = pathlib.Path(command.RINGBOLT).resolve().parent.parent / "lib/ringbolt/libringbolt-paths.so"
        with self.cluster("line:2"):
            built, command.RINGBOLT = command.RINGBOLT, self.broken_install(shim)
            try:
                done = self.call("matrix", expect=1)
            finally:
                command.RINGBOLT = built
            self.assertIn("FAILED", done.stdout)
            self.assertIn("libibverbs.so.1", done.stderr)
            self.assertIn("ibv_get_device_list", done.stderr)


if __name__ == "__main__":
    command.main()
