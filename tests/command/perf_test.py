"""`perf`: every operation over every transport measures and verifies; what is wrong is said in words, in time."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time

import command
from command import CommandCase, wait_until
from matrix_test import Page
from ports import free_port
from two_ends import TwoEndsCase

QUICK = ["-n", "100", "--timeout", "20"]


class OnNodes(CommandCase):
    def setUp(self):
        super().setUp()
        self.call("up", "--emulate", "line:2")
        self.addCleanup(self.call, "down", "--force")

    def perf(self, *words, **options):
        done = self.call("perf", *words, "--nodes", "0,1", *QUICK, "--json", timeout=90, **options)
        return json.loads(done.stdout)

    def check_latency(self, row):
        one = row["latency"]
        self.assertGreaterEqual(one["rounds"], 100)
        self.assertEqual(one["lost"], 0)
        self.assertTrue(0 < one["min_us"] <= one["p50_us"] <= one["p99_us"] <= one["p99_9_us"] <= one["max_us"], one)
        self.assertEqual(sum(bar["count"] for bar in one["histogram"]), one["rounds"])

    def check_bandwidth(self, row, by=("client",)):
        self.assertEqual([one["by"] for one in row["bandwidth"]], list(by))
        for one in row["bandwidth"]:
            self.assertTrue(one["verified"])
            self.assertEqual(one["lost"], 0)
            self.assertEqual(one["verified_bytes"], one["messages"] * row["size_bytes"])
            self.assertGreaterEqual(one["messages"], 100)
            self.assertGreaterEqual(one["duration_ns"], 10_000_000)

    def test_every_operation_over_every_transport(self):
        cases = [(operation, "RC") for operation in ("send", "write", "read", "atomic")]
        cases += [("send", "UC"), ("write", "UC"), ("send", "UD")]
        for operation, transport in cases:
            with self.subTest(f"{operation} {transport}"):
                found = self.perf(operation, "-c", transport, "--report-both")
                self.assertEqual(found["problems"], [])
                self.check_counters(found)
                self.check_latency(found["results"][0])
                self.check_bandwidth(found["results"][0])

    def test_both_directions(self):
        for words in (["send"], ["write"], ["read"], ["atomic"], ["send", "-c", "UC"], ["send", "-c", "UD"]):
            with self.subTest(words):
                self.check_bandwidth(self.perf(*words, "-b")["results"][0], ("client", "server"))

    def test_all_sizes(self):
        for operation in ("send", "write", "read"):
            with self.subTest(operation):
                rows = self.perf(operation, "-a", "-s", "65536")["results"]
                self.assertEqual([row["size_bytes"] for row in rows], [2 << k for k in range(16)])
                for row in rows:
                    self.check_bandwidth(row)

    def test_sizes_depths_lists_and_events(self):
        for words in (["send", "-s", "1"], ["send", "-s", "13", "-r", "1", "-t", "1"],
                      ["write", "-s", "4097", "-r", "2"], ["write", "-q", "3", "-l", "4", "-t", "8", "-Q", "2"],
                      ["send", "-q", "2", "-l", "4", "-I", "64", "-s", "64"], ["read", "-t", "3"], ["send", "-e"],
                      ["atomic", "-q", "2", "-b", "--atomic_type", "cmp_swap"], ["send", "-s", "3000000"],
                      ["read", "-e", "-m", "256"]):
            with self.subTest(words):
                found = self.perf(*words)
                both = "-b" in words
                self.check_bandwidth(found["results"][0], ("client", "server") if both else ("client",))

    def test_latency_of_small_and_large(self):
        for words in (["send", "-s", "1"], ["write", "-s", "1"], ["write", "-s", "100000"], ["read", "-s", "5"],
                      ["send", "-c", "UD", "-s", "1"], ["send", "-e"]):
            with self.subTest(words):
                self.check_latency(self.perf(*words, "--lat")["results"][0])

    def test_lost_messages_are_counted_where_they_may_be_lost(self):
        """One in twenty never arrives; each costs a round trip its 50 ms."""
        self.call("fault", "add", "message-loss", "5%", "seed", "3")
        for words in (["send", "-c", "UC"], ["write", "-c", "UC"], ["send", "-c", "UD"], ["send", "-c", "UC", "-b", "-q", "2"],
                      ["send", "-c", "UC", "--lat"], ["write", "-c", "UC", "--lat"]):
            with self.subTest(words):
                row = self.perf(*words, "-s", "512")["results"][0]
                for one in [row["latency"]] if "--lat" in words else row["bandwidth"]:
                    self.assertGreater(one["lost"], 0)
                    self.assertGreater(one["rounds"] if "--lat" in words else one["verified_bytes"], 0)
        row = self.perf("send", "-s", "512")["results"][0]
        self.assertEqual(row["bandwidth"][0]["lost"], 0, "RC sends them again")

    def test_duration_and_checks(self):
        done = self.call("perf", "send", "--nodes", "n1,n0", "-D", "0.05", "--check", "none",
                         "--report_gbits", "-F")
        self.assertIn("not verified", done.stdout)
        self.assertIn("GOODPUT_Gb/s", done.stdout)

    def test_above_the_line_rate_is_invalid(self):
        done = self.call("perf", "send", "--nodes", "0,1", "-n", "100", "--line-rate", "0.001", expect=1)
        self.assertIn("goodput INVALID(above line rate)", done.stdout)
        self.assertIn("is above the line rate of 0.001 Gb/s", done.stderr)

    def check_counters(self, found):
        """Each end's port has carried what was verified, and what warmed up or was too short to count."""
        verified = sum(one["verified_bytes"] for row in found["results"] for one in row["bandwidth"])
        for end in found["ends"]:
            self.assertGreaterEqual(sum(end["port_counters"].values()), verified)
        client, server = (end["port_counters"] for end in found["ends"])
        self.assertEqual(client["transmitted_bytes"], server["received_bytes"])
        self.assertEqual(client["received_bytes"], server["transmitted_bytes"])

    def test_counters_say_what_was_moved(self):
        """A run long enough to be measured at once: what is beyond the verified bytes are headers and warming up."""
        for operation in ("send", "write", "read"):
            done = self.call("perf", operation, "--nodes", "0,1", "-s", "65536", "-n", "6000", "--json")
            found = json.loads(done.stdout)
            self.check_counters(found)
            verified = found["results"][0]["bandwidth"][0]["verified_bytes"]
            for end in found["ends"]:
                self.assertLess(sum(end["port_counters"].values()), 1.1 * verified, operation)

    def test_required_counters(self):
        done = self.call("perf", "send", "--nodes", "0,1", *QUICK, "--require-counters")
        self.assertRegex(done.stdout, r"client: .*; port counters: [1-9]\d* bytes out, [1-9]\d* bytes in")
        for path in self.root.rglob("*.counters"):
            path.unlink()
            path.mkdir()  # a library that can't count
        done = self.call("perf", "send", "--nodes", "0,1", *QUICK, "--require-counters", expect=1)
        self.assertIn("no port counters", done.stderr)

    def test_counters_that_stand_still(self):
        """A tree that shows counters which never move."""
        self.call("exec", "0", "--", "true")
        self.call("exec", "1", "--", "true")
        for counters in [path / "counters" for path in self.root.rglob("ports/1")]:
            counters.mkdir(parents=True, exist_ok=True)
            for name in ("port_xmit_data", "port_rcv_data"):
                (counters / name).write_text("5\n")
        done = self.call("perf", "send", "--nodes", "0,1", *QUICK, expect=1)
        self.assertIn("did not move", done.stderr)

    def test_page_is_whole_and_needs_nothing_else(self):
        path = self.root / "perf.html"
        self.call("perf", "send", "--nodes", "0,1", *QUICK, "--report-both", "-a", "-s", "64", "--html", path)
        page = Page()
        page.feed(path.read_text())
        self.assertEqual(page.open, [])
        self.assertEqual(page.counts["svg"], 2 + 6)
        self.assertNotIn("script", page.counts)
        self.assertEqual([name for name, _ in page.attributes if name in ("src", "href")], [])
        self.refused("perf", "send", "--nodes", "0,1", "--html", self.root / "no/where.html", says=["no/where.html"])

    def test_histogram(self):
        done = self.call("perf", "send", "--nodes", "0,1", *QUICK, "--lat", "--histogram")
        self.assertIn("half of each round trip", done.stdout)
        self.assertIn("Histogram of 8 bytes", done.stdout)

    def test_cut_cable_is_named(self):
        self.call("cut", "0-1")
        done = self.call("perf", "send", "--nodes", "0,1", *QUICK, expect=1)
        self.assertIn("is its cable plugged in?", done.stderr)

    def test_wrong_usage(self):
        nodes = ["--nodes", "0,1"]
        for words, says in [
                (["dance"], "none of send, write, read, atomic"), (["read", "-c", "UC"], "RC only"),
                (["write", "-c", "UD"], "UD has no WRITE"), (["atomic", "-s", "16"], "8 bytes"),
                (["send", "-s", "0"], "from 1 to"), (["send", "-c", "UD", "-s", "5000"], "one packet"),
                (["send", "--lat", "-b"], "-b is for bandwidth"), (["send", "--lat", "-q", "2"], "-q is for bandwidth"),
                (["send", "-n", "5", "-D", "1"], "-n and -D"), (["send", "-t", "4", "-Q", "8"], "-Q 8"),
                (["write", "--lat", "-e"], "-e"), (["read", "-I", "8"], "-I"), (["read", "-r", "8"], "-r"),
                (["send", "--histogram"], "--histogram"), (["send", "host", *nodes], "HOST and --nodes"),
                (["send", *nodes, "-d", "x"], "leave out -d"), (["send", "--nodes", "0"], "two"),
                (["send", "--verbs", "/no/lib"], "--verbs"), (["send", "--check", "some"], "--check")]:
            with self.subTest(words):
                self.refused("perf", *words, says=[says])
        self.refused("perf", "send", "-n", "0", says=[])
        self.refused("perf", "send", "--nodes", "0,0", says=["no cable between"])


class WrongLibrary(CommandCase):
    """tests/command/damaging_verbs.cpp does one thing badly to one message, or looks closely."""

    def setUp(self):
        super().setUp()
        self.call("up", "--emulate", "line:2")
        self.addCleanup(self.call, "down", "--force")
        self.shim = command.EXTRA[0]
        real = pathlib.Path(command.RINGBOLT).resolve().parent.parent / "lib/ringbolt/libibverbs.so.1"
        self.environment |= {"DAMAGE_REAL": str(real), "DAMAGE_AT": "20"}

    def damaged(self, damage, *words, expect=1):
        return self.call("perf", *words, "--nodes", "0,1", "--timeout", "20", "--json", "--verbs", self.shim, expect=expect,
                         timeout=60, env={"DAMAGE": damage})

    def test_the_last_64_notices_of_a_queue_pair_lie_apart(self):
        for words in (["-q", "1"], ["-q", "2"], ["-q", "3", "-b"]):
            with self.subTest(words):
                self.damaged("words", "write", *words, "-r", "4", "-n", "1000", expect=0)

    def test_completions_that_nothing_was_posted_for(self):
        for words in (["send"], ["send", "--lat"], ["write", "-r", "4"]):
            with self.subTest(words):
                said = self.damaged("unposted", *words, "-n", "100").stderr
                self.assertRegex(said, r"has the id 0xf{16}, which no request had|was not posted \(id 0xf{16}\)")
                said = self.damaged("unposted-slot", *words, "-n", "100").stderr
                self.assertIn("completed that was not posted (id 0xffffffff)", said)

    def test_damaged_notice_is_not_counted_up_to(self):
        """Of unreliable WRITEs any number may be lost; 2^62 of them, one after the other, would take years."""
        said = self.damaged("word-high", "write", "-c", "UC", "-r", "4", "-n", "1000").stderr
        self.assertRegex(said, r"message \d+ of \d+ bytes on queue pair 0 is damaged")  # and not that nothing came for 20 s


class OverTcp(TwoEndsCase):
    subcommand = "perf"

    def test_both_ends_print_the_result(self):
        self.check_both_print_the_result(["send"], *QUICK)

    def test_different_parameters_are_refused_at_both_ends(self):
        port = free_port()
        server = self.server(port, "send", *QUICK, "-s", "64")
        done = self.call("perf", "send", "127.0.0.1", "-p", port, *QUICK, "-s", "65", expect=2)
        self.assertIn("sizes (-s or -a) is 65 here and 64 at the other end", done.stderr)
        _, said = server.communicate(timeout=command.PATIENCE_S)
        self.assertIn("sizes (-s or -a) is 64 here and 65 at the other end", said)
        self.assertEqual(server.returncode, 2)

    def test_nobody_there(self):
        port = free_port()
        done = self.call("perf", "send", "127.0.0.1", "-p", port, "--timeout", "0.3", expect=1)
        self.assertIn(f"no connection to 127.0.0.1 on TCP port {port}", done.stderr)
        done = self.call("perf", "send", "-p", port, "--timeout", "0.3", expect=1)
        self.assertIn("waited 0.3 s for a client", done.stderr)
        done = self.call("perf", "send", "no.such.host.invalid", "--timeout", "5", expect=1)
        self.assertIn("no.such.host.invalid", done.stderr)
        done = self.call("perf", "send", "127.0.0.1", "-p", port, "--timeout", "0.3", "-d", "nix", expect=1)

    def test_wrong_device(self):
        port = free_port()
        server = self.server(port, "send", *QUICK)
        done = self.call("perf", "send", "127.0.0.1", "-p", port, *QUICK, "-d", "nix", expect=1)
        self.assertRegex(done.stderr, r"there is no device nix; there are: rdma_")
        _, said = server.communicate(timeout=command.PATIENCE_S)
        self.assertIn("failed: there is no device nix", said)
        self.assertEqual(server.returncode, 1)

    def broken_off(self, *words, end):
        """What the client says, and after how long, when `end` is done to the server amid a long run."""
        port = free_port()
        server = self.server(port, *words, "-D", "60", "--timeout", "1.5")
        client = self.start("perf", *words, "127.0.0.1", "-p", port, "-D", "60", "--timeout", "1.5")
        self.addCleanup(client.communicate)
        self.addCleanup(client.kill)
        # Until it measures: both use the processor, of which a start takes a hundredth of a second, or 30 with a sanitizer.
        enough = 100 if "SANITIZED" in os.environ else 5
        wait_until(lambda: self.cpu_ticks(client.pid) > enough or client.poll() is not None, "the client measures")
        server.send_signal(end)
        begin = time.monotonic()
        _, said = client.communicate(timeout=command.PATIENCE_S)
        if end == signal.SIGSTOP:
            server.send_signal(signal.SIGCONT)
        self.assertEqual(client.returncode, 1, said)
        return said, time.monotonic() - begin

    @staticmethod
    def cpu_ticks(pid):
        try:
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        except OSError:
            return 0
        return int(fields[11]) + int(fields[12])

    def test_killed_peer_is_named_at_once(self):
        for words in (["send"], ["send", "-c", "UC"], ["send", "-c", "UD"], ["write"], ["read"], ["send", "--lat"],
                      ["write", "--lat"], ["read", "--lat"]):
            with self.subTest(words):
                said, seconds = self.broken_off(*words, end=signal.SIGKILL)
                self.assertIn("127.0.0.1 is gone", said)
                self.assertLess(seconds, 10)

    def test_frozen_peer_ends_at_the_deadline(self):
        said, seconds = self.broken_off("send", "--lat", end=signal.SIGSTOP)
        self.assertRegex(said, r"waited [\d.]+ s for .*127\.0\.0\.1 is connected and silent|retry counter")
        self.assertLess(seconds, 20)

    def test_library_that_is_none(self):
        port = free_port()
        done = self.call("perf", "send", "127.0.0.1", "-p", port, "--verbs", os.path.realpath(command.RINGBOLT),
                         "--timeout", "0.3", expect=1)
        self.assertTrue(re.search(r"no connection|dlopen", done.stderr))


class BesidePerftest(CommandCase):
    def test_completions_are_faster_than_the_cable_and_arrivals_are_not(self):
        """perftest may be right by chance, when its burst was off the processor for a while; we may never be wrong. The burst
        is a short one, which a busy machine does not interrupt each time, and the cable a slow one, which each machine can fill."""
        gbps = round(2 / command.TIME_SCALE, 2)
        example = pathlib.Path(__file__).parents[2] / "examples/false-bandwidth"
        said = 0
        for _ in range(10):
            done = subprocess.run([example, command.RINGBOLT, "50", str(gbps)], capture_output=True, text=True, timeout=90, check=False,
                                  env=command.sanitizer_first(self.environment))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            said, arrived = (float(re.search(rf"{name} ([\d.]+) Gb/s", done.stdout)[1])
                             for name in ("ib_send_bw   ", "ringbolt perf"))
            self.assertLessEqual(arrived, gbps, done.stdout)
            if said > gbps:
                break
        self.assertGreater(said, gbps, "no run showed more than the cable carries")


if __name__ == "__main__":
    command.main()
