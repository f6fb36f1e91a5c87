"""`verify`, `perf` and `metrics` on a cluster of `up --hosts`: what one machine's command says of two machines."""

import json
import os
import re
import signal
import subprocess
import time

import namespaces
from namespaces import command
from metrics_test import of, parse
from ssh_hosts import HostCase

QUICK = ["--nodes", "left,right"]


class Instruments(HostCase):
    def setUp(self):
        super().setUp()
        self.up_hosts()

    def ask(self, *words, expect=0):
        return json.loads(self.type(*words, "--json", expect=expect).stdout)

    def measuring(self):
        """By node, the pids of the instruments that have their device open there."""
        running = [one for one in self.ask("status")["clusters"][0]["running"] if one["command"] == "ringbolt"]
        return {node: [one["pid"] for one in running if one["node"] == node] for node in ("left", "right")}

    def start_long(self, *words):
        """A run of a minute, once both of its ends are at it, and what measuring() said of them."""
        run = self.start(*words, *QUICK, "-D", "60")
        self.addCleanup(self.end, run)
        seen = {}

        def both_measure():
            seen.update(self.measuring())
            return all(seen.values()) or run.poll() is not None

        command.wait_until(both_measure, "both ends measure")
        self.assertIsNone(run.poll(), f"{words} has ended already")
        return run, seen

    def test_verify_finds_nothing_wrong(self):
        for words in (["stream"], ["stream", "-c", "UC"], ["write"], ["atomic"], ["churn", "-n", "4"]):
            with self.subTest(words):
                found = self.ask("verify", *words, *QUICK, *([] if "-n" in words else ["-n", "200"]))
                self.assertTrue(found["verified"], found)
                self.assertEqual([end["device"] for end in found["ends"]], ["rdma_en2", "rdma_en3"])
                self.assertGreater(found["results"][0]["verified_bytes"], 0)

    def test_soak_shows_its_progress(self):
        done = self.type("verify", "soak", *QUICK, "-D", "2", "--progress", "1")
        self.assertIn("all verified", done.stdout)
        self.assertRegex(done.stderr, r"^ringbolt verify: \d s: \w+ \w+: [\d.]+ MB verified")
        self.assertNotIn("pid", done.stderr)

    def test_verify_finds_what_a_cable_loses(self):
        self.type("fault", "add", "loss", "2%", "cable", "left:rdma_en2-right")
        found = self.ask("verify", "stream", "-c", "UC", "--max", "1000", "-n", "500", *QUICK, expect=1)
        self.assertEqual(list(found["findings"]["kinds"]), ["lost"])

    def test_interrupt_ends_with_the_summary(self):
        run, _ = self.start_long("verify", "soak")
        run.send_signal(signal.SIGINT)
        said, problems = run.communicate(timeout=command.PATIENCE_S)
        self.assertEqual(run.returncode, 130, problems)
        self.assertIn("ended early: it was interrupted", said)
        self.assertIn("all verified", said)
        command.wait_until(lambda: not any(self.measuring().values()), "both ends are gone")

    def test_end_that_is_killed_is_named(self):
        for words, says in ((["verify", "stream"], "node right is gone: its control connection closed"),
                            (["perf", "send"], "node right: it was killed there, or ssh has lost the connection")):
            with self.subTest(words):
                run, ends = self.start_long(*words)
                os.kill(ends["right"][0], signal.SIGKILL)
                begin = time.monotonic()
                said, problems = run.communicate(timeout=command.PATIENCE_S)
                self.assertEqual(run.returncode, 1)
                self.assertIn(says, said + problems)
                self.assertLess(time.monotonic() - begin, 5)

    def test_metrics_show_what_moved_on_every_machine(self):
        self.type("perf", "send", *QUICK, "-n", "64", "--require-counters")
        found = parse(self.type("metrics", "--cluster", "hosts").stdout)
        sent = of(found, "port_data_transmitted_bytes_total", node="left", device="rdma_en2")
        self.assertGreater(sent, 64 * 65536)
        self.assertGreater(of(found, "port_data_received_bytes_total", node="right", device="rdma_en3"), 64 * 65536)
        self.assertEqual(sent, 4 * int(self.type("exec", "left", "--", "cat",
                                                 "/sys/class/infiniband/rdma_en2/ports/1/counters/port_xmit_data").stdout))
        self.assertEqual(of(found, "port_data_transmitted_bytes_total", node="left", device="rdma_en3"), 0)
        self.type("cut", "left:rdma_en3-right")
        found = parse(self.type("metrics").stdout)
        for node, device, is_up in (("left", "rdma_en2", 1), ("left", "rdma_en3", 0), ("right", "rdma_en2", 0)):
            self.assertEqual(of(found, "port_up", node=node, device=device), is_up)
            self.assertEqual(of(found, "link_downed_total", node=node, device=device), 1 - is_up)
        self.assertEqual(of(found, "port_up", node="local", device="rdma_lo"), 1)

    def test_metrics_of_a_machine_that_is_gone(self):
        self.daemons[1].kill()
        done = self.type("metrics", expect=1)
        self.assertIn("ssh can't reach right", done.stderr)
        self.assertEqual({dict(labels)["node"] for labels in parse(done.stdout)["ringbolt_port_up"]}, {"local", "left"})

    def test_listener_asks_both_machines(self):
        listener = self.start("metrics", "--listen", "127.0.0.1:0")
        self.addCleanup(self.end, listener)
        address = re.match(r"http://(\S+)/metrics\n", listener.stdout.readline())[1]
        fetch = f"import urllib.request; print(urllib.request.urlopen('http://{address}/metrics', timeout=20).read().decode(), end='')"
        page = subprocess.run(["ip", "netns", "exec", f"rb-{self.name}-0", "python3", "-c", fetch], capture_output=True,
                              text=True, timeout=command.PATIENCE_S, check=True).stdout
        nodes = {dict(labels)["node"] for labels in parse(page)["ringbolt_port_up"]}
        self.assertEqual(nodes, {"local", "left", "right"})


if __name__ == "__main__":
    namespaces.main()
