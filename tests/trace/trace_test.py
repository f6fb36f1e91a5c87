#!/usr/bin/env python3
"""Timelines of unmodified programs: what they post and poll is all there and adds up, at both ends; so it is of one that is
killed. Then what --explain, --sanitize and pages make of it.

    trace_test.py RINGBOLT EXPLAIN_FAILURES QUEUE_MISTAKES OVER_NETWORK"""

import collections
import html.parser
import json
import pathlib
import shutil
import signal
import subprocess
import unittest

import command
from command import CommandCase, wait_until
from ports import free_port, is_listening


HEAD = 233472  # of a file, before its ring


def needs(program):
    return unittest.skipUnless(shutil.which(program), f"skip: {program} is not installed")


def count(pair, kind, what=""):
    return sum(one["kind"] == kind and what in one["what"] for one in pair["events"])


def total(pair, kind, what=""):
    return sum(one["bytes"] for one in pair["events"] if one["kind"] == kind and what in one["what"])


class Programs(CommandCase):
    def pair(self, server, client, kills=False, **environment):
        """Both on a cluster of two nodes; the server, and whether it was killed at work."""
        environment = {"RINGBOLT_RECORD": "on", **environment}
        port = free_port()
        words = [*server.split(), "-p", str(port)]
        first = subprocess.Popen([command.RINGBOLT, "exec", "0", "--", *words], stdout=subprocess.PIPE, text=True,
                                 stderr=subprocess.STDOUT, env=command.sanitizer_first(self.environment) | environment)
        self.addCleanup(first.communicate)
        self.addCleanup(first.kill)
        wait_until(lambda: is_listening(port) or first.poll() is not None, "the server listens")
        second = subprocess.Popen([command.RINGBOLT, "exec", "1", "--", *client.split(), "-p", str(port), "127.0.0.1"],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  env=command.sanitizer_first(self.environment) | environment)
        self.addCleanup(second.communicate)
        self.addCleanup(second.kill)
        if kills:
            wait_until(lambda: self.has_completed(first.pid), "messages come")
            first.send_signal(signal.SIGKILL)
            first.wait(command.PATIENCE_S)
            second.send_signal(signal.SIGINT)
            second.wait(command.PATIENCE_S)
            return first
        for one in (second, first):
            said, _ = one.communicate(timeout=command.PATIENCE_S)
            self.assertEqual(one.returncode, 0, said)
        return first

    def trace(self, *words, **options):
        return self.call("trace", *words, **options).stdout

    def pairs(self, *words):
        return json.loads(self.trace("--json", *words))["queue_pairs"]

    def has_completed(self, pid):
        done = self.call("trace", "--json", "--process", pid, expect=None)
        found = json.loads(done.stdout)["queue_pairs"] if done.returncode == 0 else []
        return any(count(one, "completion_polled") > 100 for one in found)

    @needs("ibv_rc_pingpong")
    def test_pingpong_s_posts_have_their_completions(self):
        n, size = 300, 2048
        with self.cluster("line:2"):
            words = f"ibv_rc_pingpong -g 1 -n {n} -s {size} -r 50"
            self.pair(words, words)
            pairs = self.pairs()
            self.assertEqual(len(pairs), 2)
            for one, other in (pairs, pairs[::-1]):
                self.assertEqual(one["peer_number"], other["number"])
                self.assertEqual(one["peer_pid"], other["pid"])
                self.assertEqual(count(one, "post_send", "IBV_WR_SEND"), n)
                self.assertEqual(count(one, "completion_polled", "IBV_WC_SEND"), n)
                self.assertEqual(count(one, "completion_polled", "IBV_WC_RECV"), n)
                self.assertEqual(one["sends_under_way"], 0)
                self.assertGreaterEqual(count(one, "post_receive"), n)
                self.assertEqual(one["receives_posted"], 0, "it was destroyed")
                self.assertEqual(total(one, "post_send"), n * size)
                self.assertEqual(total(one, "completion_polled", "IBV_WC_RECV"), n * size)
                self.assertEqual([event["what"] for event in one["events"] if event["kind"] == "state"][:3],
                                 ["state INIT", "state RTR", "state RTS"])
                times = [event["us"] for event in one["events"]]
                self.assertEqual(times, sorted(times))
            self.check_messages(*pairs)
            text = self.trace("--last", "10")
            self.assertRegex(text, r"queue pair 0x\w+ of node 0 ibv_rc_pingpong \(\d+\), RC, destroyed, ended\n")
            self.assertRegex(text, r"\n +\d+\.\d{3}  [01]:\d+ +polled IBV_WC_RECV +wr_id 0x1, 2048 bytes +ibv_rc_pingpong\+0x")
            self.assertIn("0 sends under way", text)
        self.assertEqual(list(self.root.rglob("*.trace")), [], "`down` removes them")

    def check_messages(self, one, other):
        """No message comes before it was sent, by the clock that both ends share; each does within a second."""
        for sender, receiver in ((one, other), (other, one)):
            sent = [event["us"] for event in sender["events"] if event["kind"] == "post_send"]
            came = [event["us"] for event in receiver["events"] if "IBV_WC_RECV" in event["what"] and
                    event["kind"] == "completion_polled"]
            self.assertTrue(all(0 < b - a < 1e6 for a, b in zip(sent, came, strict=True)))

    @needs("ibv_rc_pingpong")
    def test_events_are_there(self):
        with self.cluster("line:2"):
            words = "ibv_rc_pingpong -g 1 -n 50 -e"
            self.pair(words, words)
            for one in self.pairs():
                taken = count(one, "event_taken")
                self.assertGreater(taken, 0)
                self.assertGreaterEqual(count(one, "armed"), taken)
                self.assertGreaterEqual(count(one, "event_raised"), taken)

    @needs("ibv_rc_pingpong")
    def test_packets_are_there(self):
        words = "ibv_rc_pingpong -g 1 -n 50 -s 4096 -m 1024 -p 18515"
        both = f"""{words} & server=$!
            tries=0
            until ss -ltn | grep -q :18515; do
              tries=$((tries + 1))
              [ $tries -lt 1000 ] || exit 1
              sleep 0.01
            done
            {words} 127.0.0.1 && wait $server"""
        library = pathlib.Path(command.RINGBOLT).resolve().parent.parent / "lib/ringbolt"
        environment = command.sanitizer_first(self.environment) | {"LD_LIBRARY_PATH": str(library), "RINGBOLT_RECORD": "on"}
        done = subprocess.run([command.EXTRA[2], "sh", "-c", both], capture_output=True, text=True, check=False,
                              timeout=60 * command.TIME_SCALE, env=environment)
        if done.returncode == 77:
            self.skipTest(done.stdout)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        pairs = self.pairs("local")
        self.assertEqual(len(pairs), 2)
        for one, other in (pairs, pairs[::-1]):
            self.assertGreaterEqual(count(one, "packet_sent", "SEND"), 200)  # 4 packets a message
            self.assertLessEqual(count(other, "packet_came", "SEND"), count(one, "packet_sent", "SEND"))
            self.assertGreater(count(one, "packet_came", "ACK"), 0)

    @needs("ib_write_bw")
    def test_bytes_of_writes_add_up(self):
        with self.cluster("line:2"):
            words = "ib_write_bw -F -x 1 -n 400 -s 65536 --report_gbits"
            self.pair(words, words)
            client = max(self.pairs(), key=lambda one: count(one, "post_send"))
            writes = [one for one in client["events"] if one["kind"] == "post_send" and "RDMA_WRITE" in one["what"]]
            self.assertEqual(sum(one["bytes"] for one in writes), len(writes) * 65536)
            self.assertGreaterEqual(len(writes), 400)
            self.assertEqual(client["sends_under_way"], 0)

    @needs("ibv_rc_pingpong")
    def test_one_that_is_killed_leaves_its_timeline(self):
        with self.cluster("line:2"):
            words = "ibv_rc_pingpong -g 1 -n 100000000 -r 50"
            server = self.pair(words, words, kills=True)
            done = json.loads(self.trace("--json"))
            state = {one["pid"]: one["state"] for one in done["processes"]}
            self.assertEqual(state[server.pid], "killed")
            (mine,) = [one for one in done["queue_pairs"] if one["pid"] == server.pid]
            self.assertGreater(count(mine, "completion_polled"), 100)
            self.assertIn("killed", self.trace("--process", server.pid))
            (file,) = [one["file"] for one in done["processes"] if one["pid"] == server.pid]
            self.assertEqual(pathlib.Path(file).stat().st_size, (4 << 20) + HEAD)
            self.assertEqual(len(json.loads(self.trace("--json", file))["queue_pairs"]), 1)
            small = pathlib.Path(file).read_bytes()[:300000]
            torn = self.root / "torn.trace"
            torn.write_bytes(small)
            self.call("trace", torn, expect=None)
            torn.write_bytes(small[:100])
            self.refused("trace", torn, says=["torn.trace: read the timeline", "give a file that a program has recorded"])

    @needs("ibv_rc_pingpong")
    def test_chrome_and_page(self):
        chrome, page = self.root / "chrome.json", self.root / "page.html"
        with self.cluster("line:2"):
            words = "ibv_rc_pingpong -g 1 -n 100 -r 20"
            self.pair(words, words)
            self.trace("--perfetto", chrome, "--html", page)
        phases = collections.Counter(one["ph"] for one in json.loads(chrome.read_text())["traceEvents"])
        self.assertEqual(phases["s"], 200)
        self.assertEqual(phases["f"], 200)
        self.assertGreaterEqual(phases["X"], 400)
        check_page(self, page.read_text())

    def test_a_small_ring_stays_small(self):
        with self.cluster("line:2"):
            done = self.call("run", "--record=512K", "--no-tag", "--node", "0", "--", command.EXTRA[0], "right", expect=None)
            self.assertNotIn("RINGBOLT_RECORD", done.stderr)
            files = list(self.root.rglob("*.trace"))
            self.assertEqual({file.stat().st_size for file in files}, {(512 << 10) + HEAD}, done.stderr)
            done = self.call("run", "--record=5", "--node", "0", "--", command.EXTRA[0], "right", expect=None)
            self.assertIn("RINGBOLT_RECORD=5: give on, off, the path of a folder", done.stderr)

    def test_nothing_recorded_is_said(self):
        self.assertIn("nothing was recorded there; start programs with `ringbolt run --record`",
                      self.call("trace", expect=1).stderr)
        self.refused("trace", "--queue-pair", "x", says=["--queue-pair x: give a number up to 0xffffff"])
        self.refused("trace", "/no/such/file", says=["/no/such/file"])


class Page(html.parser.HTMLParser):
    """Whether tags are closed in their order, and what would be loaded from elsewhere."""

    def __init__(self):
        super().__init__()
        self.open, self.bad, self.tags = [], [], collections.Counter()

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.bad += [value for name, value in attrs if name in ("src", "href", "onload")]
        if tag not in ("meta", "line", "path"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags[tag] += 1

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.bad.append(tag)


def check_page(case, text):
    page = Page()
    page.feed(text)
    case.assertEqual((page.open, page.bad), ([], []))
    case.assertGreater(page.tags["svg"], 0)
    case.assertEqual(page.tags["script"], 0)
    return page


class Told(CommandCase):
    """Findings and explanations come with what happened before."""

    def test_an_explanation_names_the_last_events(self):
        page = self.root / "page.html"
        log = self.root / "explained"
        with self.cluster("line:2"):
            done = self.call("run", "--explain", "--html", page, "--no-tag", "--node", "0", "--", command.EXTRA[0],
                             "rkey-unknown", expect=None)
            self.assertRegex(done.stderr, r"ringbolt: IBV_WR_RDMA_WRITE of queue pair 0x\w+")
            shown = self.call("trace", "--last", "0").stdout
            self.assertRegex(shown, r"told +ringbolt: IBV_WR_RDMA_WRITE of queue pair")
            self.assertRegex(shown, r"post IBV_WR_RDMA_WRITE +wr_id 0x7, \d+ bytes.* failures\.c:\d+ in \w+\(\)")
            self.assertGreater(check_page(self, page.read_text()).tags["h2"], 1)
            self.call("exec", "0", "--", command.EXTRA[0], "rkey-unknown", expect=None, env={"RINGBOLT_EXPLAIN": f"json:{log}"})
            lines = [json.loads(line) for line in log.read_text().splitlines()]
            write = next(one for one in lines if one["call"] == "IBV_WR_RDMA_WRITE")
            self.assertTrue(any(event.startswith("post IBV_WR_RDMA_WRITE: wr_id 0x7") for event in write["events"]), write)

    def test_a_finding_names_the_last_events(self):
        page, log = self.root / "page.html", self.root / "found"
        with self.cluster("line:2"):
            done = self.call("run", "--sanitize", "--html", page, "--report", f"json:{log}", "--no-tag", "--node", "0", "--",
                             command.EXTRA[1], "sends-after-failure", expect=66)
            (found,) = json.loads(log.read_text())
            self.assertTrue(any("post" in event for event in found["events"]), done.stderr)
            text = page.read_text()
            check_page(self, text)
            self.assertIn("<h2>Finding in node 0 queue_mistakes", text)

    def test_off_is_off(self):
        with self.cluster("line:2"):
            self.call("run", "--explain", "--node", "0", "--", command.EXTRA[0], "right", env={"RINGBOLT_RECORD": "off"},
                      expect=None)
            self.call("run", "--node", "0", "--", command.EXTRA[0], "right", expect=None)
            self.assertEqual(list(self.root.rglob("*.trace")), [])
            self.refused("run", "--html", self.root / "x", "--", "true", says=["--html takes --record, --explain or --sanitize"])


if __name__ == "__main__":
    command.main()
