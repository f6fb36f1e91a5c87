"""`ringbolt doctor`: recordings that are read back, clusters, machines that don't answer, mending, and the page of its checks."""

import json
import pathlib
import re
import subprocess
import time

import command
from command import CommandCase


class Doctor(CommandCase):
    def setUp(self):
        super().setUp()
        self.source = pathlib.Path(command.EXTRA[0])
        self.recordings = self.source / "tests/doctor/recordings"

    def look(self, *words, expect=0, **options):
        return json.loads(self.call("doctor", "--json", *words, expect=expect, **options).stdout)

    def ids(self, *words, **options):
        return [one["id"] for one in self.look(*words, **options)["findings"]]

    def tell(self, text, *words):
        return subprocess.run([command.RINGBOLT, "doctor", *map(str, words)], input=text, env=self.environment, text=True,
                              capture_output=True, timeout=command.PATIENCE_S, check=False)

    def sick(self):
        """Two Sparks of which one has another MTU."""
        path = self.root / "sick.txt"
        text = (self.recordings / "spark.txt").read_text()
        path.write_text(text.replace("enp1s0f0np0/mtu:9000", "enp1s0f0np0/mtu:1500", 1))
        return path

    def ssh(self, script):
        """In the place of ssh; $host is who is meant."""
        path = self.root / "ssh"
        path.write_text(f'#!/bin/sh\nfor word; do [ "$last" = -- ] && host=$word; last=$word; done\n{script}\n')
        path.chmod(0o755)
        self.environment["RINGBOLT_SSH"] = str(path)

    def test_the_page_has_all_checks(self):
        listed = json.loads(self.call("doctor", "--list", "--json").stdout)["checks"]
        text = (self.source / "docs/doctor.md").read_text()
        page = re.findall(r"^\| `([a-z0-9-]+)` \| (\w+) \| (\w+) \| (.+) \|$", text, re.MULTILINE)
        self.assertEqual(page, [(one["id"], one["severity"], one["platform"], one["what"]) for one in listed])
        self.assertGreaterEqual(len(listed), 60)
        self.assertEqual(len(self.call("doctor", "--list").stdout.splitlines()), len(listed) + 1)

    def test_recordings_are_read_back(self):
        for base in ("spark", "strix", "mac", "ring"):
            self.assertEqual(self.ids("--from", self.recordings / f"{base}.txt"), [])
        found = self.look("--from", self.sick(), expect=1)["findings"]
        self.assertEqual([(one["id"], one["severity"], one["host"], one["object"]) for one in found],
                         [("mtu-differs", "error", "spark1", "enp1s0f0np0"), ("mtu-small", "warning", "spark1", "enp1s0f0np0")])
        self.assertEqual(found[0]["evidence"][0], {"host": "spark1", "source": "/sys/class/net/enp1s0f0np0/mtu", "text": "1500"})
        self.assertEqual(found[0]["mend"], [{"host": "spark1", "command": "ip link set enp1s0f0np0 mtu 9000", "by": "root"}])
        self.assertEqual(found[0]["undo"], [{"host": "spark1", "command": "ip link set enp1s0f0np0 mtu 1500", "by": "root"}])
        self.assertEqual(found[1]["follows_from"], 0)
        said = self.call("doctor", "--from", self.sick(), expect=1).stdout
        self.assertIn("1. [ERROR] mtu-differs spark1 enp1s0f0np0: its MTU is 1500", said)
        self.assertIn("   mend: on spark1: sudo ip link set enp1s0f0np0 mtu 9000\n", said)
        self.assertIn("2 machines: 1 error, 1 warning, 0 notes; of ", said)

    def test_outputs_of_a_mac_are_read_as_they_are_pasted(self):
        text = ("ProductName:\tmacOS\nProductVersion:\t26.1\nBuildVersion:\t25B1\n"
                "hca_id:\trdma_en2\n\tstate:\t\tPORT_DOWN (1)\n\tGID[  0]:\tfe80::1\n")
        done = self.tell(text, "--json", "--from", "-")
        self.assertEqual([one["id"] for one in json.loads(done.stdout)["findings"]], ["mac-system-old", "mac-no-active-port"])
        folder = self.root / "macs"
        (folder / "mac2").mkdir(parents=True)
        (folder / "mac1.versions.txt").write_text(text.replace("26.1", "26.3").replace("DOWN (1)", "ACTIVE (4)"))
        (folder / "mac2/sw_vers").write_text("ProductName:\tmacOS\nProductVersion:\t26.3\nBuildVersion:\t25D9\n")
        found = self.look("--from", folder, expect=1)
        self.assertEqual((found["hosts"], [one["id"] for one in found["findings"]]), (["mac1", "mac2"], ["mac-systems-differ"]))

    def test_an_emulated_cluster(self):
        with self.cluster("ring:3"):
            self.assertEqual(self.ids("-c", "ring3"), [])
            states = {one["id"]: one["state"] for one in self.look("-c", "ring3")["checks"]}
            for check in ("faults-injected", "cable-cut", "rdma-port-down", "gid-missing", "gid-index-differs"):
                self.assertEqual(states[check], "healthy", check)
            self.call("fault", "add", "completion-error", "1%", "status", "12")
            self.call("cut", "0-1")
            self.assertEqual(self.ids("-c", "ring3", expect=1)[:2], ["faults-injected", "cable-cut"])
            self.call("doctor", "-c", "ring3", "--apply", "faults-injected", "--yes")
            self.call("doctor", "-c", "ring3", "--apply", "cable-cut", "--yes")
            self.assertEqual(self.ids("-c", "ring3"), [])
            self.call("fault", "add", "gid-empty", "node", "1")
            self.call("fault", "add", "gid-shuffle", "node", "2", "seed", "3")
            found = self.ids("-c", "ring3", expect=1)
            self.assertEqual(found[0], "faults-injected")
            self.assertIn("gid-table-empty", found)

    def test_mending_asks_first_and_does_nothing_without_an_answer(self):
        with self.cluster("line:2"):
            self.call("cut", "0-1")
            for answer, code in (("", 1), ("n\n", 1), ("y\n", 0)):
                done = self.tell(answer, "-c", "line2", "--apply", "cable-cut")
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertLess(done.stdout.index("mend: ringbolt heal"), done.stdout.index("Do this? [y/N]"))
                left = ["cable-cut", "rdma-port-down", "rdma-port-down"] if code else []
                self.assertEqual(self.ids("-c", "line2", expect=None), left)
            self.assertIn("nothing of that kind", self.call("doctor", "-c", "line2", "--apply", "cable-cut").stdout)

    def test_machines_that_hang_or_say_half_are_told(self):
        self.ssh('case $host in slow) printf "ringbolt-recording 1\\n== . uname\\nLinux\\n"; exec sleep 600 ;; '
                 "hangs) exec sleep 600 ;; away) echo no route >&2; exit 255 ;; esac\nexec sh -s -- environment")
        begin = time.monotonic()
        found = self.look("--hosts", "good,slow,hangs,away", "--timeout", "1.5", expect=1)["findings"]
        self.assertLess(time.monotonic() - begin, 15 * command.TIME_SCALE)
        self.assertEqual([(one["host"], one["evidence"][0]["text"]) for one in found],
                         [("slow", "no answer within 1.5 s"), ("hangs", "no answer within 1.5 s"), ("away", "no route")])
        self.assertEqual({one["id"] for one in found}, {"host-unreachable"})

    def test_the_script_changes_nothing_and_runs_by_itself(self):
        script = self.call("doctor", "--script").stdout
        self.assertEqual(script, (self.source / "tools/doctor/look.sh").read_text())
        for shell in ("dash", "bash"):
            done = subprocess.run([shell], input=script, text=True, capture_output=True, timeout=command.PATIENCE_S,
                                  check=False, env=self.environment | {"HOME": str(self.root)})
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertTrue(done.stdout.startswith("ringbolt-recording 1\n") and done.stdout.endswith("== . end\n"))
            path = self.root / "here.txt"
            path.write_text(done.stdout)
            self.look("--from", path, expect=None)
        self.assertEqual(sorted(path.name for path in self.root.iterdir()), ["here.txt"])
        self.environment["RINGBOLT_SECRET"] = "hunter2"
        self.assertNotIn("hunter2", self.tell("", "--json", "--bundle", "-").stdout)
        self.look(expect=None)  # this machine, whatever ails it

    def test_pages_and_bundles(self):
        page, bundle = self.root / "page.html", self.root / "bundle.txt"
        self.call("doctor", "--from", self.sick(), "--html", page, "--bundle", bundle, expect=1)
        html = page.read_text()
        self.assertIn("prefers-color-scheme:dark", html)
        self.assertNotRegex(html, r"(src|href)=\"[^#]")
        self.assertIn("mtu-differs", html)
        self.assertNotIn("spark1", bundle.read_text())
        self.assertEqual(self.ids("--from", bundle, expect=1), ["mtu-differs", "mtu-small"])

    def test_bad_usage(self):
        nothing = self.root / "nothing.txt"
        nothing.write_text("hello\n")
        for words, says in ((["--from", "/no/such"], "/no/such"), (["--from", nothing], "holds neither a recording"),
                            (["--hosts", "a,,b"], "is no host"), (["--hosts", nothing], "nothing.txt"),
                            (["--hosts", "a", "-c", "b"], "--hosts"), (["-c", "none"], "none"),
                            (["--apply", "mtu-difers"], "did you mean mtu-differs"),
                            (["--html", "/no/such/page"], "/no/such/page"), (["--timeout", "0"], "1 to 600")):
            with self.subTest(words):
                self.refused("doctor", *words, says=[says])


if __name__ == "__main__":
    command.main()
