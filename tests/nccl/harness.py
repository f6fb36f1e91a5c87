"""What the tests of the NCCL plugin on clusters share: nccl_harness with a rank on each node, and what ports have counted."""

import json
import os
import pathlib
import re
import subprocess
import sys
import time

for folder in ("command", "netns"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / folder))

import command  # noqa: E402  (after the path)

PROCESSORS = os.cpu_count()
# Cases that want to be told of a lost peer in time.
JUDGE_SILENCE = {"killed_connect", "killed_receive", "killed_send", "severed", "severed_one_way", "stopped"}
RATES = re.compile(r"(\d+)>(\d+) ([0-9.]+)")


class Cluster:
    """Of a test (a CommandCase) whose further words are nccl_harness and the plugin: a cluster that is up."""

    def __init__(self, test, name, prefix=None):
        self.test = test
        self.name = name
        self.prefix = prefix
        ports = [one for one in self.metrics() if one["cluster"] == name]
        self.nodes = list(dict.fromkeys(one["node"] for one in ports))

    def metrics(self):
        return json.loads(self.test.call("metrics", "--cluster", self.name, "--json").stdout)["ports"]

    def counted(self):
        """Of each port, (node, device): bytes that it has sent and received."""
        return {(one["node"], one["device"]): (4 * one["counters"]["port_xmit_data"], 4 * one["counters"]["port_rcv_data"])
                for one in self.metrics() if one["cluster"] == self.name}

    def writes(self):
        """Of each port, (node, device): RDMA WRITEs that it has received."""
        return {(one["node"], one["device"]): one["hw_counters"]["rx_write_requests"]
                for one in self.metrics() if one["cluster"] == self.name}

    def moved(self, work):
        """What `work()` returns, and what ports have counted meanwhile."""
        before = self.counted()
        result = work()
        after = self.counted()
        return result, {port: tuple(late - early for late, early in zip(after[port], before[port])) for port in after}

    def words(self, cases, *options):
        words = command.EXTRA[:2] + ["--ranks", len(self.nodes), "--nodes", len(self.nodes), "--cluster", self.name,
                                     "--channels", 1, "--json"]
        # Calls of more ranks than there are processors take as long as the others let them.
        words += ["--slow"] if len(self.nodes) > PROCESSORS or command.TIME_SCALE > 1 else []
        words += ["--netns-prefix", self.prefix] if self.prefix else []
        return [str(word) for word in [*words, *options]] + [word for case in cases for word in ("--case", case)]

    def start(self, cases, *options):
        environment = self.test.environment | {"RINGBOLT_VERBS": "soft"}
        if "RINGBOLT_NCCL_WAY" in os.environ:  # all other variables were taken away
            environment |= {"RINGBOLT_NCCL_WAY": os.environ["RINGBOLT_NCCL_WAY"]}
        if not self.prefix and not JUDGE_SILENCE.intersection(cases):
            # Many ranks that all poll may leave one of them without a processor for longer than the 800 ms that are usual.
            environment |= {"RINGBOLT_FROZEN_MS": str(5000 * command.TIME_SCALE)}
        program = subprocess.Popen(self.words(cases, *options), env=environment, text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)

        def end():
            program.kill()
            program.communicate()

        self.test.addCleanup(end)
        return program

    def play(self, *cases, options=(), timeout=100):
        """All of them must pass. Of the last: its rows."""
        program = self.start(cases, *options)
        said, errors = program.communicate(timeout=timeout * command.TIME_SCALE)
        return self.passed(program, said, errors)["rows"]

    def passed(self, program, said, errors=""):
        outcomes = [json.loads(line) for line in said.splitlines()]
        for one in outcomes:
            self.test.assertTrue(one["ok"], f"{one['case']} on {self.name}: {one['failure']} {one['notes']}")
        self.test.assertEqual(program.returncode, 0, said + errors)
        return outcomes[-1]

    def stream(self, *options, seconds=2):
        """Bytes of each ordered pair of nodes that had any."""
        rows = self.play("stream", options=("--seconds", seconds, *options))
        found = [re.match(r"(\d+)>(\d+) \d+ messages, ([0-9.]+) GB", row) for row in rows]
        return {(self.nodes[int(one[1])], self.nodes[int(one[2])]): float(one[3]) * 1e9 for one in found}

    def bandwidth(self, a, b, seconds):
        """GB/s one way."""
        [row] = self.play("bandwidth", options=("--pair", f"{a},{b}", "--seconds", seconds))
        return float(re.search(r"([0-9.]+) GB/s", row)[1])

    def ways(self):
        """Of each pair of nodes, both ways round: the relaying nodes of each of its ways. A cable between them relays nothing."""
        ways = {}
        for pair in json.loads(self.test.call("nccl", "--cluster", self.name, "--json").stdout)["pairs"]:
            there = [re.sub("^by ", "", way).split(", ") if way.startswith("by ") else [] for way in pair["ways"].split("; ")]
            ways[pair["a"], pair["b"]] = there
            ways[pair["b"], pair["a"]] = [way[::-1] for way in there]
        return ways

    def sever(self, cable, case="severed"):
        """Cuts the last way to the last rank. Seconds until both its ends were told and had ended, and what they were told."""
        program = self.start([case], "--seconds", 4)
        # Both ends of a cable with data on it have connected.
        before = self.counted()
        command.wait_until(lambda: max(sum(late) - sum(before[port]) for port, late in self.counted().items()) > 16 << 20,
                           "messages are under way")
        begin = time.monotonic()
        self.test.call("cut", cable, "--cluster", self.name)
        said, errors = program.communicate(timeout=60 * command.TIME_SCALE)
        taken_s = time.monotonic() - begin
        told = self.passed(program, said, errors)["notes"]
        print(f"{taken_s:.1f} s after the cut: {told}")
        return taken_s, told

    def stream_through(self, deeds, seconds, *options):
        """Does deeds[s] after second s of a stream, between all pairs if no option says otherwise, which must be right to its
        last byte. Of each second: GB/s of every pair, (a, b)."""
        program = self.start(["stream"], "--seconds", seconds, *options)
        rates = []
        while len(rates) < seconds and (line := program.stderr.readline()):
            if line.startswith("stream "):
                rates.append({(int(a), int(b)): float(rate) for a, b, rate in RATES.findall(line)})
                for deed in deeds.get(len(rates), ()):
                    deed()
        said, errors = program.communicate(timeout=100 * command.TIME_SCALE)
        self.passed(program, said, errors)
        self.test.assertEqual(len(rates), seconds, errors)
        return rates


def main():
    command.main()
