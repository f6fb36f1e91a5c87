"""`ringbolt up --hosts` over Thunderbolt streams, whose driver is played (see thunderbolt.py)."""

import json
import os
import shutil
import signal
import subprocess

import namespaces
import thunderbolt
from namespaces import command
from ssh_hosts import HostCase

COMMANDS = """\
# on left, as root:
mkdir -p {left}/0-1.1/ringbolt
[ "$(cat {left}/0-1.1/ringbolt/in_hopid)" -gt 0 ] || echo -1 > {left}/0-1.1/ringbolt/in_hopid
[ "$(cat {left}/0-1.1/ringbolt/out_hopid)" -gt 0 ] || echo -1 > {left}/0-1.1/ringbolt/out_hopid

# then, on right, as root:
mkdir -p {right}/0-3.1/ringbolt
for i in $(seq 40); do sleep 0.5; [ "$(cat {right}/0-3.1/ringbolt/in_hopid)" -gt 0 ] && break; \
flock {right}/0-3.1 sh -c 'rmdir {right}/0-3.1/ringbolt && mkdir {right}/0-3.1/ringbolt'; done
"""


class Streams(HostCase):
    def setUp(self):
        self.driver = None
        super().setUp()
        self.addCleanup(self.driver.stop)
        self.driver.start()
        self.left, self.right = self.driver.machines

    def host_environment(self, node):
        if self.driver is None:
            self.driver = thunderbolt.two_machines(self.root)
        root = self.driver.machines[node].root
        return (super().host_environment(node) + f" RINGBOLT_THUNDERBOLT_ROOT={root}"
                f" PATH={root}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")

    def make_two_rails(self):
        """Their numbers are crossed."""
        for machine, xdomain, x, y in ((self.left, "0-1", 0, 1), (self.right, "0-3", 1, 0)):
            for name, index, ids in (("x", x, (8, 9)), ("y", y, (10, 11))):
                self.driver.make(machine, xdomain, name, index, ids if machine is self.left else ids[::-1])

    def made(self):
        return [machine.streams() for machine in self.driver.machines]

    def records(self):
        return sorted(path.name for path in (self.root / "control").glob("streams/*"))

    def pingpong(self):
        if not shutil.which("ibv_rc_pingpong"):
            return
        words = ["ibv_rc_pingpong", "-g", "1", "-c", "-n", "100"]
        server = self.start("exec", "left", "--", *words)
        self.addCleanup(self.end, server)
        command.wait_until(lambda: ":18515" in subprocess.run(
            ["ip", "netns", "exec", f"rb-{self.name}-0", "ss", "-ltn"], capture_output=True, text=True,
            check=True).stdout, "the server listens")
        self.assertIn("100 iters", self.type("exec", "right", "--", *words, "10.77.0.1").stdout)
        self.assertEqual(server.wait(timeout=command.PATIENCE_S), 0)

    def test_two_rails_are_found_whatever_their_numbers(self):
        self.make_two_rails()
        self.assertIn("cluster hosts is up: 2 nodes on hosts, 1 cable", self.up_hosts())
        model = json.loads((self.root / "control/clusters/hosts/cluster.json").read_text())
        dev = [f"{machine.root}/dev/tbstream" for machine in self.driver.machines]
        self.assertEqual([node["ports"][0]["stream"] for node in model["nodes"]],
                         [f"{dev[0]}0+{dev[0]}1", f"{dev[1]}1+{dev[1]}0"])
        listed = json.loads(self.type("devices", "--json").stdout)["devices"]
        self.assertEqual([(one["node"], one["device"], one["leads_to"]) for one in listed],
                         [("left", "rdma_tbstream0", "right:rdma_tbstream1"),
                          ("right", "rdma_tbstream1", "left:rdma_tbstream0")])
        self.pingpong()
        self.type("cut", "left-right")
        self.assertIn("PORT_DOWN", self.type("exec", "left", "--", "ibv_devinfo").stdout)
        self.type("down")
        self.assertEqual(self.made(), [["0-1.1/x", "0-1.1/y"], ["0-3.1/x", "0-3.1/y"]], "of somebody else")

    def test_commands_are_printed_and_nothing_is_done(self):
        done = self.type("up", "--hosts", "left,right", expect=1)
        self.assertEqual(done.stdout, COMMANDS.format(left=self.left.config, right=self.right.config))
        self.assertIn("--apply", done.stderr)
        self.assertEqual(self.made(), [[], []])
        self.assertEqual(list(self.left.config.iterdir()), [])
        self.assertEqual(self.host_state(), [])
        # As printed they do what they should, twice too.
        for _ in range(2):
            for node, part in enumerate(done.stdout.split("\n\n")):
                machine = self.driver.machines[node]
                subprocess.run(["sh", "-e"], input=part, text=True, check=True, capture_output=True, timeout=60,
                               env=os.environ | {"PATH": f"{machine.root}/bin:{os.environ['PATH']}"})
        self.assertIn("1 cable", self.up_hosts())
        self.type("down")
        self.assertEqual(self.made(), [["0-1.1/ringbolt"], ["0-3.1/ringbolt"]], "made by hand")

    def test_apply_makes_what_down_takes_away(self):
        said = self.up_hosts("--apply")
        self.assertIn("cluster hosts is up: 2 nodes on hosts, 1 cable", said)
        self.assertEqual(self.made(), [["0-1.1/ringbolt"], ["0-3.1/ringbolt"]])
        self.assertEqual(self.records(), ["hosts.json"])
        self.pingpong()
        self.assertIn("is up already", self.type("up", "--hosts", "left,right", "--apply", expect=2).stderr)
        self.type("down")
        self.assertEqual(self.made(), [[], []])
        self.assertEqual([list(machine.config.iterdir()) for machine in self.driver.machines], [[], []])
        self.assertEqual(self.records(), [])
        self.assertEqual(self.host_state(), [])

    def test_apply_asks_sudo_where_ssh_logs_in_as_somebody_else(self):
        for machine in self.driver.machines:
            machine.put("bin/id", "#!/bin/sh\necho 1000\n").chmod(0o755)
        sudo = self.right.put("bin/sudo", "#!/bin/sh\necho sudo: a password is required >&2; exit 1\n")
        sudo.chmod(0o755)
        self.left.put("bin/sudo", f'#!/bin/sh\nprintf "%s " "$@" > {self.left.root}/asked; shift; exec "$@"\n').chmod(0o755)
        said = self.type("up", "--hosts", "left,right", "--apply", expect=2).stderr
        self.assertIn("right: could not set up streams: ", said)
        self.assertIn("sudo: a password is required; log in as root", said)
        self.assertEqual((self.left.root / "asked").read_text(), "-n sh -e ")
        self.assertEqual(self.made(), [[], []])
        shutil.copy(self.left.root / "bin/sudo", sudo)
        self.up_hosts("--apply")
        self.type("down")
        self.assertEqual(self.made(), [[], []])

    def test_apply_makes_the_missing_end_alone(self):
        self.driver.make(self.right, "0-3", "ringbolt", 4, (12, 13))
        self.up_hosts("--apply")
        self.assertEqual(self.driver.streams[self.left.stream("0-1", "ringbolt")].ids(), (13, 12))
        self.type("down")
        self.assertEqual(self.made(), [[], ["0-3.1/ringbolt"]])
        self.up_hosts("--apply")
        self.type("down")

    def test_an_interrupted_apply_is_cleaned(self):
        self.driver.announcement_s = 1e9
        group = self.right.stream("0-3", "ringbolt").parent
        group.mkdir()  # it stays, so that what is made too late would too
        commander = self.start("up", "--hosts", "left,right", "--apply")
        command.wait_until(lambda: self.made()[1], "the second end is made")
        (self.right.root / "slow").touch()
        os.kill(commander.pid, signal.SIGKILL)
        commander.communicate()
        command.wait_until(lambda: not self.made()[1], "what the dead command has left is making the second end anew")
        self.assertEqual(self.records(), ["hosts.json"])
        self.assertIn("took away the Thunderbolt streams that a dead cluster hosts has left", self.type("down", "--force").stdout)
        command.wait_until((self.right.root / "done").exists, "it has gone on")
        self.assertEqual(list(group.iterdir()), [])
        self.assertEqual(self.made(), [[], []])
        self.assertEqual(self.records(), [])

    def test_an_apply_that_fails_leaves_nothing(self):
        (self.right.root / "refuse").touch()
        said = self.type("up", "--hosts", "left,right", "--apply", expect=2).stderr
        self.assertIn("right: could not set up streams: mkdir: Device or resource busy; a program has the stream open", said)
        self.assertEqual(self.made(), [[], []])
        self.assertEqual(self.records(), [])
        self.assertIn("no cluster is up", self.type("status").stdout)

    def test_streams_of_a_machine_that_is_gone_are_remembered(self):
        self.up_hosts("--apply")
        self.daemons[1].kill()
        self.daemons[1].wait()
        self.assertIn("ssh can't reach right", self.type("down", expect=2).stderr)
        self.assertIn("is not taken away yet: ", self.type("down", "--force").stderr)
        self.assertEqual(self.records(), ["hosts.json"])
        self.assertIn("ssh can't reach right", self.type("down", "--force", "--cluster", "hosts", expect=2).stderr)
        self.daemons[1] = self.start_sshd(1)
        command.wait_until(lambda: self.listens(1), "sshd listens again")
        self.type("down", "--force", "--cluster", "hosts")
        self.assertEqual(self.made(), [[], []])
        self.assertEqual(self.records(), [])

    def test_refusals_name_machine_path_and_remedy(self):
        up = ("up", "--hosts", "left,right", "--over", "streams")
        right = self.right
        right.put("proc/sys/kernel/osrelease", "6.12.0\n")
        self.assertIn("right: its kernel is 6.12.0", self.type(*up, expect=2).stderr)
        right.put("proc/sys/kernel/osrelease", "7.2.0\n")
        right.put("proc/mounts", "proc /proc proc rw 0 0\n")
        self.assertIn("right: ConfigFS is not mounted", self.type(*up, expect=2).stderr)
        right.put("proc/mounts", "configfs /sys/kernel/config configfs rw 0 0\n")
        right.config.rmdir()
        said = self.type(*up[:3], expect=2).stderr  # left has its driver
        self.assertIn(f"right: there is no {right.config}: the driver of streams is not loaded; modprobe", said)
        self.assertIn("--over network", said)
        self.assertIn("2 cables", self.up_hosts("--over", "network"), "of network interfaces")
        self.type("down")
        right.config.mkdir()
        shutil.rmtree(self.left.devices / "0-1.1")
        self.assertIn("modprobe thunderbolt-stream on right", self.type(*up, expect=2).stderr)
        thunderbolt.unplug(self.left, "0-1")
        self.left.plug("0-5", thunderbolt.router(7), "stranger")
        said = self.type(*up, expect=2).stderr
        self.assertIn('0-5 leads to "stranger"', said)
        self.assertIn("which is none of the hosts", said)
        self.assertEqual(self.made(), [[], []])
        self.assertEqual(self.host_state(), [])

    def test_a_stream_that_is_open_is_busy(self):
        self.make_two_rails()
        with open(self.left.root / "dev/tbstream1", "rb+", buffering=0):
            self.assertIn(f"left: {self.left.root}/dev/tbstream1 is busy: python3 (pid {os.getpid()})",
                          self.type("up", "--hosts", "left,right", expect=2).stderr)
        self.up_hosts()

    def test_options_that_do_not_fit_are_refused(self):
        self.assertIn("for --hosts", self.type("up", "--emulate", "ring:3", "--apply", expect=2).stderr)
        self.assertIn("--over network", self.type("up", "--hosts", "left,right", "--apply", "--over", "network",
                                                  expect=2).stderr)
        self.assertIn("--over", self.type("up", "--hosts", "left,right", "--over", "air", expect=2).stderr)
        path = self.root / "one.json"
        path.write_text(json.dumps({"ringbolt": 1, "nodes": [{"name": "left", "ports": ["x"]}, {"name": "right", "ports": ["x"]}],
                                    "cables": [{"between": ["left:x", "right:x"]}]}))
        self.assertIn("name them (a,b,c)", self.type("up", "--hosts", path, "--apply", expect=2).stderr)


if __name__ == "__main__":
    namespaces.main()
