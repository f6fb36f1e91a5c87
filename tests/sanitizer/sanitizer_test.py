#!/usr/bin/env python3
"""RINGBOLT_SANITIZE: every mistake of the corpus is found, by its rule and at its lines, and its corrected twin is silent.

    sanitizer_test.py RINGBOLT DATA QUEUES DATA_OPTIMIZED QUEUES_OPTIMIZED

SANITIZER_TIMES: each so many times."""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import unittest

import command
from command import CommandCase

MISTAKES = {
    "send-changed": ("buffers", "send-buffer-changed",
                     r"2048 bytes on queue pair 0x\w+, wr_id 0x7: byte 100 of 2048 at 0x\w+ was 0xbc when .* is 0xbd"),
    "send-changed-uc": ("buffers", "send-buffer-changed", r"byte 100 of 2048"),
    "write-changed-ex": ("buffers", "send-buffer-changed", r"IBV_WR_RDMA_WRITE of 64 .* byte 63 of 64"),
    "datagram-changed": ("buffers", "send-buffer-changed", r"byte 0 of 64"),
    "unmapped-in-use": ("buffers", "memory-unmapped-in-use", r"its 2048 bytes at 0x\w+ are not mapped"),
    "receive-unmapped": ("buffers", "memory-unmapped-in-use", r"a receive of 2048"),
    "posted-unmapped": ("buffers", "posted-memory-unmapped", r"2048 bytes at 0x\w+, of the region with lkey"),
    "send-deregistered": ("buffers", "region-gone-in-use", r"ibv_dereg_mr of lkey 0x\w+, 4096 bytes"),
    "receive-deregistered": ("buffers", "region-gone-in-use", r"a receive of 2048"),
    "receive-twice": ("buffers", "receive-buffers-overlap", r"a receive of 2048 .* a receive of 2048"),
    "shared-receives-overlap": ("buffers", "receive-buffers-overlap", r"on a shared receive queue"),
    "reads-overlap": ("buffers", "receive-buffers-overlap", r"IBV_WR_RDMA_READ of 2048"),
    "sent-while-received": ("buffers", "sent-and-received", r"a receive of 2048 bytes .* is not complete"),
    "sent-behind-read": ("buffers", "sent-and-received", r"IBV_WR_RDMA_READ of 2048 bytes .* is not complete"),
    "read-unwritable": ("buffers", "region-not-writable",
                        r"IBV_WR_RDMA_READ of 2048 .*: the region with lkey 0x\w+ has no IBV_ACCESS_LOCAL_WRITE"),
    "receive-unwritable": ("buffers", "region-not-writable", r"a receive of 2048 .* lkey 0x\w+ has no IBV_ACCESS_LOCAL_WRITE"),
    "inline-behind-read": ("buffers", "sent-and-received", r"IBV_WR_RDMA_READ of 2048 bytes .* is not complete"),
    "echoed-early": ("early", "sent-before-received", r"from byte \d+ of 64"),
    "read-early": ("early", "sent-before-received", r"from byte \d+ of 64"),
    "receive-changed": ("early", "receive-buffer-changed", r"byte 0 of it"),
    "shared-receive-changed": ("early", "receive-buffer-changed", r"byte 2000 of it"),
    "too-many-receives": ("queues", "completion-queue-overrun", r"3 requests under way complete to the queue of 2"),
    "too-many-shared-receives": ("queues", "completion-queue-overrun", r"3 requests under way"),
    "never-signaled": ("queues", "send-queue-never-drains", r"4 requests before this one, max_send_wr is 4"),
    "never-signaled-ex": ("queues", "send-queue-never-drains", r"4 requests before this one, max_send_wr is 4"),
    "sends-unpolled": ("queues", "send-queue-overrun",
                       r"5 requests without a polled completion behind them, max_send_wr is 4"),
    "sends-unpolled-ex": ("queues", "send-queue-overrun", r"5 requests without a polled completion behind them"),
    "armed-unpolled": ("queues", "wake-up-lost", r"awaited 1 completions"),
    "armed-unpolled-shared": ("queues", "wake-up-lost", r"of 16 entries"),
    "unacknowledged": ("queues", "events-unacknowledged", r"ibv_destroy_cq has waited a second for 1 events"),
    "sends-after-failure": ("queues", "posted-after-failure", r"sends on .* with status 10 "),
    "receives-after-failure": ("queues", "posted-after-failure", r"receives on .* with status 1 "),
    "queue-left": ("objects", "object-left", r"1 completion queue left"),
    "channel-left": ("objects", "object-left", r"1 completion channel left"),
    "busy-domain": ("objects", "destroy-failed", r"1 protection domain left"),
    "busy-queue": ("objects", "destroy-failed", r"1 completion queue left"),
    "deep-queue": ("portable", "not-everywhere", r"fails on tn3205, apple, usb4-linux: 4096 entries at most, not 5000"),
    "inline-data": ("portable", "not-everywhere", r"fails on tn3205, apple, usb4-linux: no inline data"),
    "guessed-index": ("portable", "gid-index-guessed", r"grh.sgid_index is 1"),
    "guessed-index-of-handle": ("portable", "gid-index-guessed", r"grh.sgid_index is 1"),
    "writes-race": ("races", "remote-accesses-unordered", r"IBV_WR_RDMA_WRITE of 2048 .* IBV_WR_RDMA_WRITE"),
    "atomic-and-write-race": ("races", "remote-accesses-unordered", r"IBV_WR_RDMA_WRITE of 8 .*FETCH_AND_ADD"),
    "processes-race": ("races", "remote-accesses-unordered", r"meanwhile process \d+ writes 2048 bytes at 0x\w+ by"),
    "write-passes-read": ("races", "write-may-pass-read", r"IBV_WR_RDMA_READ of 2048"),
    "atomic-passes-read": ("races", "write-may-pass-read", r"IBV_WR_ATOMIC_FETCH_AND_ADD of 8 .* IBV_WR_RDMA_READ of 8"),
}
PARAGRAPH = re.compile(r"==(\d+)==RINGBOLT: (\w+): (.+) \(([\w-]+)\)\n  what: (.+)\n((?:  [\w -]+ at: .+\n)+)  fix: (.+)\n")
SUMMARY = re.compile(r"SUMMARY: ringbolt-sanitizer: (\d+) findings? in process (\d+): (.+)\n")
OF_DATA = ("buffers", "early")
TIMES = int(os.environ.get("SANITIZER_TIMES", "2"))


class Corpus(CommandCase):
    def device(self):
        return {"LD_LIBRARY_PATH": str(pathlib.Path(command.RINGBOLT).resolve().parent.parent / "lib/ringbolt")}

    def run_case(self, name, program=0, **more):
        kind = MISTAKES.get(name.removesuffix("-fixed"), ("objects",))[0]
        of_queues = 0 if kind in OF_DATA else 1
        environment = command.sanitizer_first(self.environment) | self.device() | {"RINGBOLT_SANITIZE": "all"} | more
        return subprocess.run([command.EXTRA[2 * program + of_queues], name], env=environment, capture_output=True, text=True,
                              timeout=60 * command.TIME_SCALE, check=False)

    def kind_of(self, name):
        """Of what works on any card `portable` says nothing; of RC queue pairs it does."""
        kind = MISTAKES[name][0]
        return {"RINGBOLT_SANITIZE": kind if kind == "portable" else "on"}

    def runs(self, names):
        """Each name with how it ended and its findings as lines of JSON, TIMES times, without optimization and with it."""
        def run(job):
            name, time = job
            log = self.root / f"{name}.{time}"
            of = self.kind_of(name.removesuffix("-fixed"))
            done = self.run_case(name, time % 2, RINGBOLT_SANITIZE_JSON=str(log), **of)
            return name, done, log.read_text().splitlines() if log.exists() else []

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            yield from pool.map(run, [(name, time) for time in range(TIMES) for name in names])

    def check(self, name, done, lines):
        kind, rule, numbers = MISTAKES[name]
        said = done.stdout + done.stderr
        self.assertEqual(done.returncode, 66, said)
        marked = {}
        for line in done.stdout.splitlines():
            did, number = line.rsplit(" ", 1)
            marked.setdefault(did, set()).add(int(number))
        found = PARAGRAPH.findall(done.stderr)
        processes = 2 if name == "processes-race" else 1  # which say it both
        self.assertEqual([one[1:2] + one[3:4] for one in found], [(kind, rule)] * processes, said)
        self.assertRegex(found[0][4], numbers)
        self.assertEqual(SUMMARY.search(done.stderr)[3], f"{kind} 1", said)
        self.assertEqual(SUMMARY.sub("", PARAGRAPH.sub("", done.stderr)), "", "and nothing else")
        lines = [json.loads(line) for line in lines]
        self.assertEqual([(line["kind"], line["rule"], line["numbers"]) for line in lines],
                         [(kind, rule, one[4]) for one in found])
        source = "data_mistakes.c" if kind in OF_DATA else "queue_mistakes.c"
        for line in lines:
            self.assertTrue(line["places"] and line["fix"])
            for place in line["places"]:
                is_shared = re.search("polled|queue made", place["done"]) and place["file"] == "corpus.h"
                self.assertTrue(is_shared or place["file"] == source, said)
                self.assertIn(place["line"], marked[place["done"]], said)

    def test_each_mistake_is_found_at_its_lines(self):
        for name, done, lines in self.runs(MISTAKES):
            with self.subTest(name):
                self.check(name, done, lines)

    def test_each_corrected_twin_is_silent(self):
        for name, done, lines in self.runs([f"{name}-fixed" for name in MISTAKES]):
            with self.subTest(name):
                self.assertEqual((done.returncode, done.stderr, lines), (0, "", []), done.stdout)

    def test_the_corpus_is_the_list(self):
        listed = [name for program in command.EXTRA[:2] for name in subprocess.run(
            [program], env=command.sanitizer_first(self.environment) | self.device(), capture_output=True, text=True,
            check=True).stdout.split()]
        self.assertEqual(listed, list(MISTAKES))


class Reports(Corpus):
    def setUp(self):
        super().setUp()
        self.log = self.root / "log"

    test_each_mistake_is_found_at_its_lines = test_each_corrected_twin_is_silent = test_the_corpus_is_the_list = None

    def test_off_is_off(self):
        for value in ("", "off"):
            done = self.run_case("queue-left", RINGBOLT_SANITIZE=value)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_only_what_is_asked_for_is_found(self):
        self.assertEqual(self.run_case("queue-left", RINGBOLT_SANITIZE="buffers,early").returncode, 0)
        self.assertEqual(self.run_case("queue-left", RINGBOLT_SANITIZE="early,objects").returncode, 66)

    def test_a_slip_is_told(self):
        self.assertIn("RINGBOLT_SANITIZE=bufers: bufers is nothing that it finds; give on, all, off",
                      self.run_case("queue-left-fixed", RINGBOLT_SANITIZE="bufers").stderr)

    def test_a_file_takes_it(self):
        done = self.run_case("queue-left", RINGBOLT_SANITIZE="on", RINGBOLT_SANITIZE_LOG=str(self.log))
        self.assertEqual((done.returncode, done.stderr), (66, ""))
        self.assertRegex(self.log.read_text(), PARAGRAPH)
        self.assertRegex(self.log.read_text(), SUMMARY)

    def test_a_file_that_can_t_be_opened_is_told(self):
        done = self.run_case("queue-left", RINGBOLT_SANITIZE="on", RINGBOLT_SANITIZE_LOG=str(self.root / "no/such"))
        self.assertIn("no/such: open: No such file or directory; findings come here", done.stderr)
        self.assertRegex(done.stderr, PARAGRAPH)

    def test_the_program_s_own_status_stands(self):
        done = self.run_case("no-such-name", RINGBOLT_SANITIZE="on")
        self.assertEqual(done.returncode, 2)

    def test_suppressions(self):
        file = self.root / "known"
        for line, expected in (("objects:queue_mistakes.c", 0), ("objects:queue_*", 0), ("*:object-left", 0),
                               ("queues:queue_mistakes.c", 66), ("objects:other.c # queue_mistakes.c", 66)):
            file.write_text(f"# what we know of\n{line}\n")
            done = self.run_case("queue-left", RINGBOLT_SANITIZE="on", RINGBOLT_SANITIZE_SUPPRESSIONS=str(file))
            self.assertEqual(done.returncode, expected, line)
        file.write_text("corpus.c\n")
        done = self.run_case("queue-left", RINGBOLT_SANITIZE="on", RINGBOLT_SANITIZE_SUPPRESSIONS=str(file))
        self.assertIn('line 1: "corpus.c" is not KIND:GLOB', done.stderr)


class Run(CommandCase):
    def test_run_asks_for_it_and_reports(self):
        files = {kind: self.root / f"findings.{kind}" for kind in ("sarif", "junit", "json")}
        reports = [word for kind, file in files.items() for word in ("--report", f"{kind}:{file}")]
        with self.cluster("line:2"):
            program = pathlib.Path(command.EXTRA[1]).resolve()
            done = self.call("run", "--sanitize=objects", *reports, "--", program, "queue-left", expect=66)
            self.assertEqual(len(re.findall(r"n\d \| ==\d+==RINGBOLT: objects: completion queue was never", done.stderr)), 2)
            (run,) = json.loads(files["sarif"].read_text())["runs"]
            self.assertEqual([one["ruleId"] for one in run["results"]], ["object-left"] * 2)
            place = run["results"][0]["locations"][0]["physicalLocation"]
            self.assertEqual(place["artifactLocation"]["uri"], "queue_mistakes.c")
            self.assertEqual(len(json.loads(files["json"].read_text())), 2)
            self.assertIn('tests="2" failures="2"', files["junit"].read_text())
            self.call("run", "--sanitize", *reports, "--", program, "queue-left-fixed")
            self.assertIn('failures="0"', files["junit"].read_text())
            self.assertEqual(json.loads(files["json"].read_text()), [])
            self.refused("run", "--report", "html:x", "--", "true", says=["--report html:x: give sarif:FILE"])


if __name__ == "__main__":
    command.main()
