"""`metrics`, and the counters of the synthetic /sys: what programs moved, for every port, alive or not."""

import http.client
import json
import math
import os
import re
import signal
import socket
import subprocess
import sys

import command
from command import CommandCase

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
SAMPLE = re.compile(rf"^({NAME})\{{((?:{LABEL})(?:,{LABEL})*)\}} (\S+)$")
PORT = "/sys/class/infiniband/rdma_en2/ports/1"


def parse(text):
    """The text form as its specification has it, strictly: {name: {labels: value}}."""
    if not text.endswith("\n"):
        raise AssertionError("the last line has no end")
    found, types, current = {}, {}, None
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            name, words = re.fullmatch(rf"# HELP ({NAME}) (\S.*)", line).groups()
            if name in found or "\\" in words:
                raise AssertionError(f"again or odd: {line}")
            found[name], current = {}, name
        elif line.startswith("# TYPE "):
            name, kind = re.fullmatch(rf"# TYPE ({NAME}) (counter|gauge)", line).groups()
            if name != current or found[name] or name in types:
                raise AssertionError(f"not right behind its HELP: {line}")
            if (kind == "counter") != name.endswith("_total"):
                raise AssertionError(f"counters, and only they, end in _total: {line}")
            types[name] = kind
        else:
            sample = SAMPLE.fullmatch(line)
            if not sample or sample.group(1) != current or current not in types:
                raise AssertionError(f"no sample of {current}: {line!r}")
            labels = tuple(sorted(re.findall(LABEL, sample.group(2))))
            value = float(sample.groups()[-1])
            if labels in found[current] or math.isnan(value) or value < 0:
                raise AssertionError(f"again, or no count: {line}")
            found[current][labels] = value
    return found


def of(found, metric, **wanted):
    values = [value for labels, value in found["ringbolt_" + metric].items() if wanted.items() <= dict(labels).items()]
    if len(values) != 1:
        raise AssertionError(f"{len(values)} samples of {metric} {wanted}")
    return values[0]


class Traffic(CommandCase):
    def metrics(self, *words, **options):
        return parse(self.call("metrics", *words, **options).stdout)

    def send(self, **options):
        self.call("perf", "send", "--nodes", "0,1", "-s", "65536", "-n", "64", "--require-counters",
                  **options)

    def read(self, node, path):
        return int(self.call("exec", node, "--", "cat", path).stdout)


class OfAnEmulatedCluster(Traffic):
    def setUp(self):
        super().setUp()
        self.call("up", "--emulate", "ring:3")
        self.addCleanup(self.call, "down", "--force")

    def test_one_sample_of_every_port(self):
        found = self.metrics("--cluster", "ring3")
        ports = {tuple(dict(labels).items()) for labels in found["ringbolt_port_data_transmitted_bytes_total"]}
        self.assertEqual(len(ports), 6)
        for name, samples in found.items():
            if name != "ringbolt_build_info":
                self.assertEqual({tuple(dict(labels).items()) for labels in samples}, ports, name)
        self.assertEqual(of(found, "port_rate_bytes_per_second", node="n0", device="rdma_en2"), 40e9 / 8)

    def test_what_was_sent_shows_everywhere_and_on_the_right_ports(self):
        self.send()
        found = self.metrics("--cluster", "ring3")
        moved = {labels: value for labels, value in found["ringbolt_port_data_transmitted_bytes_total"].items() if value}
        self.assertEqual({(dict(one)["node"], dict(one)["device"]) for one in moved},
                         {("n0", "rdma_en2"), ("n1", "rdma_en3")})
        sent = of(found, "port_data_transmitted_bytes_total", node="n0", device="rdma_en2")
        self.assertGreater(sent, 64 * 65536)
        self.assertEqual(sent, of(found, "port_data_received_bytes_total", node="n1", device="rdma_en3"))
        self.assertEqual(sent, 4 * self.read(0, f"{PORT}/counters/port_xmit_data"))
        self.assertEqual(of(found, "rdma_receives_total", node="n1", device="rdma_en3"),
                         self.read(1, "/sys/class/infiniband/rdma_en3/ports/1/hw_counters/rdma_recvs"))
        one = [port for port in json.loads(self.call("metrics", "-c", "ring3", "--json").stdout)["ports"]
               if port["node"] == "n0" and port["device"] == "rdma_en2"]
        self.assertEqual(4 * one[0]["counters"]["port_xmit_data"], sent)
        self.assertEqual(one[0]["hw_counters"]["lifespan"], 0)
        self.send()
        self.assertGreaterEqual(of(self.metrics(), "port_data_transmitted_bytes_total", node="n0", device="rdma_en2"),
                                sent + 64 * 65536)

    def test_every_reader_sees_numbers(self):
        self.send()
        whole = f"import os,sys\nfor d in ('counters','hw_counters'):\n  for n in sorted(os.listdir('{PORT}/'+d)):\n" \
                f"    f=f'{PORT}/{{d}}/{{n}}'; s=open(f).read(); assert os.stat(f).st_size==4096 and s[-1]=='\\n', f\n" \
                f"    print(d, n, int(s))"
        rows = [row.split() for row in self.call("exec", "0", "--", sys.executable, "-c", whole).stdout.splitlines()]
        self.assertEqual(len([row for row in rows if row[0] == "counters"]), 21)
        self.assertGreater(len([row for row in rows if row[0] == "hw_counters"]), 30)
        xmit = dict((row[1], row[2]) for row in rows)["port_xmit_data"]
        file = f"{PORT}/counters/port_xmit_data"
        for words in (["cat", file], ["head", "-n1", file], ["sh", "-c", f"read x < {file}; echo $x"],
                      ["grep", "-rh", ".", "--include=port_xmit_data", f"{PORT}/counters"],
                      ["dd", f"if={file}", "bs=4096", "status=none"], ["awk", "{print $1}", file],
                      [sys.executable, "-c", f"import os; d=os.open('{PORT}/counters', os.O_RDONLY);"
                                             "print(os.read(os.open('port_xmit_data', os.O_RDONLY, dir_fd=d), 99).decode())"]):
            with self.subTest(words[0]):
                self.assertEqual(self.call("exec", "0", "--", *words).stdout.strip(), xmit)

    def test_the_verbs_library_reads_them_for_programs(self):
        self.send()
        script = "import ctypes; v=ctypes.CDLL('libibverbs.so.1'); b=ctypes.create_string_buffer(64);" \
                 f"n=v.ibv_read_sysfs_file(b'{PORT}', b'counters/port_xmit_packets', b, 64); print(n, int(b.value))"
        length, value = self.call("exec", "0", "--", sys.executable, "-c", script).stdout.split()
        self.assertEqual(int(length), len(value))
        self.assertEqual(int(value), self.read(0, f"{PORT}/counters/port_xmit_packets"))

    def test_counters_are_for_reading_and_other_files_stay_as_they_are(self):
        for words in (["sh", "-c", f"echo 0 > {PORT}/counters/port_xmit_data"],
                      ["sh", "-c", f"echo 0 >> {PORT}/counters/port_xmit_data"], ["cat", f"{PORT}/counters/no_such"],
                      ["cat", f"{PORT}/hw_counters/port_xmit_data"], ["cat", f"{PORT}/counters/"]):
            self.assertNotEqual(self.call("exec", "0", "--", *words, expect=None).returncode, 0, words)
        self.assertEqual(self.call("exec", "0", "--", "cat", f"{PORT}/state").stdout, "4: ACTIVE\n")
        # One open file stays as it was read; the next one is new.
        script = f"f=open('{PORT}/counters/link_downed'); a=f.read(); f.seek(0); assert f.read()==a; f.close(); print(a)"
        self.call("exec", "0", "--", sys.executable, "-c", script)

    def test_cuts_are_counted_once_at_both_ends(self):
        self.call("cut", "0-1")
        self.call("cut", "0-1")
        self.call("heal", "0-1")
        self.call("cut", "0-1")
        found = self.metrics("--cluster", "ring3")
        downs = {(dict(one)["node"], dict(one)["device"]): value for one, value in found["ringbolt_link_downed_total"].items()
                 if value}
        self.assertEqual(downs, {("n0", "rdma_en2"): 2, ("n1", "rdma_en3"): 2})
        self.assertEqual(self.read(0, f"{PORT}/counters/link_downed"), 2)
        self.assertEqual(self.read(0, f"{PORT}/hw_counters/link_downed"), 2)
        self.assertEqual(of(found, "port_up", node="n0", device="rdma_en2"), 0)
        self.assertEqual(of(found, "port_up", node="n2", device="rdma_en2"), 1)

    def test_a_damaged_file_is_named_and_the_rest_is_told(self):
        path = self.root / "clusters/ring3/0-rdma_en2.counters"
        path.write_bytes(b"x" * 9000)
        done = self.call("metrics", "--cluster", "ring3", expect=1)
        self.assertIn(str(path), done.stderr)
        self.assertIn("remove it", done.stderr)
        self.assertEqual(len(parse(done.stdout)["ringbolt_rdma_sends_total"]), 5)
        self.call("perf", "send", "--nodes", "0,1", "-n", "100")  # works, uncounted at one end
        path.unlink()
        self.send()

    def test_wrong_usage(self):
        self.refused("metrics", "--cluster", "nope", says=["nope"])
        self.refused("metrics", "--json", "--listen", "127.0.0.1:0", says=["--listen"])
        for address in ("9315", "127.0.0.1:", ":9315", "::1:9315", "127.0.0.1:x", "no.such.host.invalid:1", "[::1:5"):
            self.refused("metrics", "--listen", address, says=[address])
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            self.refused("metrics", "--listen", "127.0.0.1:%d" % taken.getsockname()[1], says=["in use"])

    def test_another_parser_agrees(self):
        try:
            from prometheus_client.parser import text_string_to_metric_families  # pylint: disable=import-outside-toplevel
        except ImportError:
            self.skipTest("python3-prometheus-client is not installed")
        self.send()
        text = self.call("metrics").stdout
        theirs = {(sample.name, tuple(sorted(sample.labels.items()))): sample.value
                  for family in text_string_to_metric_families(text) for sample in family.samples}
        ours = {(name, labels): value for name, samples in parse(text).items() for labels, value in samples.items()}
        self.assertEqual(theirs, ours)


class Listening(Traffic):
    def setUp(self):
        super().setUp()
        self.call("up", "--emulate", "line:2")
        self.addCleanup(self.call, "down", "--force")
        self.server = self.start("metrics", "--listen", "127.0.0.1:0")
        self.addCleanup(self.end)
        said = self.server.stdout.readline()
        self.port = int(re.fullmatch(r"http://127\.0\.0\.1:(\d+)/metrics\n", said).group(1))

    def end(self):
        if self.server.poll() is None:
            self.server.kill()
        self.server.wait()
        self.server.stdout.close()
        self.server.stderr.close()

    def get(self, path="/metrics", method="GET"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request(method, path)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer, text

    def test_every_request_is_answered_anew(self):
        answer, text = self.get()
        self.assertEqual(answer.status, 200)
        self.assertTrue(answer.getheader("Content-Type").startswith("text/plain; version=0.0.4"))
        self.assertEqual(of(parse(text), "rdma_sends_total", cluster="line2", node="n0"), 0)
        self.send()
        self.assertGreater(of(parse(self.get("/metrics?x=1")[1]), "rdma_sends_total", cluster="line2", node="n0"), 63)
        self.assertEqual(self.get("/")[0].status, 404)
        self.assertEqual(self.get(method="POST")[0].status, 405)
        self.assertEqual(self.get(method="HEAD")[1], "")

    def test_a_client_that_dawdles_or_goes_is_no_harm(self):
        with socket.create_connection(("127.0.0.1", self.port)) as slow:
            slow.sendall(b"GET /met")
            self.assertEqual(self.get()[0].status, 200)  # after the other's 3 s
        with socket.create_connection(("127.0.0.1", self.port)) as flood:
            flood.sendall(b"GET /" + b"x" * 20000)
        self.assertEqual(self.get()[0].status, 200)

    def test_signals_end_it(self):
        self.server.send_signal(signal.SIGTERM)
        self.assertEqual(self.server.wait(timeout=20), 0)

    def test_clusters_come_and_go(self):
        with self.cluster("mesh:3", "later"):
            self.assertIn('cluster="later"', self.get()[1])
        self.assertNotIn('cluster="later"', self.get()[1])


class OutsideClusters(Traffic):
    def test_the_default_device(self):
        found = self.metrics()
        self.assertEqual(of(found, "rdma_sends_total", node="local", device="rdma_lo"), 0)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        words = ["-p", port, "-s", "65536", "-n", "64", "--require-counters"]
        server = self.start("perf", "send", *words)
        done = None
        for _ in range(100):
            done = self.call("perf", "send", "127.0.0.1", *words, expect=None)
            if done.returncode == 0 or "refused" not in done.stderr:
                break
        out, err = server.communicate(timeout=30)
        self.assertEqual((done.returncode, server.returncode), (0, 0), done.stderr + out + err)
        self.assertRegex(done.stdout, r"port counters: [1-9]\d{6,} bytes out")
        sent = of(self.metrics(), "port_data_transmitted_bytes_total", node="local", device="rdma_lo")
        self.assertGreater(sent, 64 * 65536)
        file = "/sys/class/infiniband/rdma_lo/ports/1/counters/port_xmit_data"
        self.assertEqual(4 * self.read("local", file), sent)

    def test_a_tree_of_an_older_release_is_made_anew(self):
        (self.root / "default/sys/sys/class/infiniband").mkdir(parents=True, mode=0o700)
        os.chmod(self.root / "default", 0o700)
        self.assertEqual(self.read("local", "/sys/class/infiniband/rdma_lo/ports/1/counters/port_xmit_data"), 0)

    def test_profiles_have_them_too(self):
        file = "/sys/class/infiniband/rdma_lo/ports/1/counters/port_xmit_data"
        for profile in ("tn3205", "apple", "usb4-linux", "spark"):
            done = self.call("exec", "local", "--", "cat", file, env={"RINGBOLT_LIKE": profile})
            self.assertEqual(done.stdout, "0\n", profile)

    def test_a_folder_nobody_has_used(self):
        done = subprocess.run([command.RINGBOLT, "metrics"], env=self.environment, capture_output=True, text=True,
                              check=True)
        self.assertGreater(len(parse(done.stdout)), 40)


if __name__ == "__main__":
    command.main()
