"""`ringbolt up --hosts`: machines played by network namespaces, each with an sshd of its own."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import namespaces
from namespaces import command
from ssh_hosts import HostCase

NAP = str(10_000 + os.getpid())  # a program that no other test runs


class Hosts(HostCase):
    def test_cables_are_found_and_everything_goes_away_again(self):
        self.assertIn("cluster hosts is up: 2 nodes on hosts, 2 cables", self.up_hosts())
        listed = json.loads(self.type("devices", "--json").stdout)["devices"]
        self.assertEqual([(one["node"], one["device"], one["leads_to"]) for one in listed],
                         [("left", "rdma_en2", "right:rdma_en3"), ("left", "rdma_en3", "right:rdma_en2"),
                          ("right", "rdma_en3", "left:rdma_en2"), ("right", "rdma_en2", "left:rdma_en3")])
        self.assertEqual(len(self.host_state()), 2)
        self.type("down")
        self.assertEqual(self.host_state(), [])
        self.assertIn("no cluster is up", self.type("status").stdout)

    def test_programs_run_on_their_machines_with_their_environment(self):
        self.up_hosts()
        script = "echo $RINGBOLT_NODE of $RINGBOLT_NODES; ls /sys/class/infiniband"
        said = self.type("run", "--", "sh", "-c", script).stdout
        self.assertEqual(sorted(said.splitlines()),
                         ["left  | 0 of 2", "left  | rdma_en2", "left  | rdma_en3", "right | 1 of 2", "right | rdma_en2",
                          "right | rdma_en3"])
        # Words reach the program as they were typed, whatever the shells on the way think of them.
        odd = "a  b'c\"d $HOME `id` \\ *"
        self.assertEqual(self.type("exec", "right", "--", "printf", "%s", odd).stdout, odd)
        self.assertEqual(self.type("exec", "1", "--", "cat", text_in="input\n").stdout, "input\n")

    def test_hostfiles_name_them_as_they_were_named(self):
        """Addresses of ports lead to the neighbours alone."""
        self.up_hosts()
        text = self.type("hostfile").stdout
        hosts = json.loads(text)["hosts"]
        self.assertEqual([host["ips"] for host in hosts],
                         [["left", "10.77.0.1", "10.77.1.2"], ["right", "10.77.0.2", "10.77.1.1"]])
        self.assertEqual(json.loads(self.type("hostfile", "--format", "mlx-ring").stdout),
                         [["left:32323"], ["right:32324"]])
        path = self.root / "hosts.json"
        path.write_text(text)
        self.type("hostfile", "--check", path)

    def test_exit_codes_and_time_limits(self):
        self.up_hosts()
        self.type("exec", "right", "--", "sh", "-c", "exit 7", expect=7)
        self.type("exec", "right", "--", "sh", "-c", "kill -9 $$", expect=137)
        done = self.type("run", "--", "sh", "-c", "[ $RINGBOLT_NODE = 0 ] || exit 3", expect=3)
        self.assertIn("node right", done.stderr)
        script = "trap 'echo bye; exit 0' TERM; while :; do sleep .05; done"
        done = self.type("run", "--timeout", "1", "--", "sh", "-c", script, expect=124)
        self.assertEqual(sorted(line for line in done.stdout.splitlines()), ["left  | bye", "right | bye"])
        self.type("run", "--", "./no-such-program", expect=2)

    def test_programs_end_with_the_machine_that_commands(self):
        self.up_hosts()
        for words in (["run", "--", "sleep", NAP], ["exec", "right", "--", "sleep", NAP]):
            commander = self.start(*words)
            command.wait_until(lambda: len(self.sleepers()) == (2 if words[0] == "run" else 1), "the programs run")
            os.kill(commander.pid, signal.SIGKILL)
            commander.communicate()
            command.wait_until(lambda: not self.sleepers(), "the programs have ended")

    @staticmethod
    def sleepers():
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if path.read_bytes() == f"sleep\0{NAP}\0".encode():
                    found.append(path)
            except OSError:
                pass
        return found

    def test_interrupt_is_passed_on(self):
        self.up_hosts()
        script = "trap 'echo interrupted; exit 0' INT; echo ready; while :; do sleep .05; done"
        commander = self.start("run", "--node", "1", "--", "sh", "-c", script)
        self.assertEqual(commander.stdout.readline(), "ready\n")
        commander.send_signal(signal.SIGINT)
        said, _ = commander.communicate(timeout=command.PATIENCE_S)
        self.assertEqual(said, "interrupted\n")
        self.assertEqual(commander.returncode, 130)

    def test_cut_and_heal_reach_both_machines(self):
        self.up_hosts()
        before = self.type("exec", "right", "--", "ip", "-br", "address", "show", "en2").stdout.split()[2:]
        self.type("cut", "left:rdma_en3-right")
        for node, device in (("left", "en3"), ("right", "en2")):
            self.assertEqual(self.type("exec", node, "--", "cat", f"/sys/class/net/{device}/operstate").stdout, "down\n")
        status = json.loads(self.type("status", "--json").stdout)["clusters"][0]
        self.assertEqual([one["state"] for one in status["cables"]], ["up", "cut"])
        self.type("heal", "left:rdma_en3-right")
        after = self.type("exec", "right", "--", "ip", "-br", "address", "show", "en2").stdout.split()[2:]
        self.assertEqual(sorted(after), sorted(before))

    def test_faults_reach_every_machine(self):
        self.up_hosts()
        self.type("fault", "add", "loss", "1%", "cable", "left:rdma_en3-right")
        copies = [path for path in self.root.rglob("faults") if path.is_file()]
        self.assertEqual(len(copies), 3, "of the machine that commands and of both nodes")
        self.assertEqual({path.read_text() for path in copies}, {"loss 1% cable 1\n"})
        self.type("fault", "clear")
        self.assertEqual([path for path in self.root.rglob("faults") if path.is_file()], [])

    def test_matrix_measures_both_cables(self):
        self.up_hosts()
        found = json.loads(self.type("matrix", "--json", "--seconds", "0.2").stdout)
        self.assertEqual(found["kind"], "hosts")
        self.assertEqual([one["state"] for one in found["directions"]], ["measured"] * 4)

    def test_running_programs_are_named_with_their_node(self):
        self.up_hosts()
        server = self.start("exec", "right", "--", "ib_send_lat", "-d", "rdma_en2")
        self.addCleanup(self.end, server)

        def running():
            clusters = json.loads(self.type("status", "--json").stdout)["clusters"]
            return [(one["command"], one["node"]) for one in clusters[0]["running"]]

        if shutil.which("ib_send_lat"):
            command.wait_until(lambda: running() == [("ib_send_lat", "right")], "the program has its device open")
            self.assertIn("ib_send_lat (pid", self.type("down", expect=2).stderr)

    def test_file_names_hosts_and_interfaces(self):
        path = self.root / "real.json"
        path.write_text(json.dumps({
            "ringbolt": 1, "nodes": [{"name": "a", "host": "left", "ports": [{"name": "tb", "netdev": "en3"}]},
                                     {"name": "b", "host": "root@right", "ports": [{"name": "tb", "netdev": "en2"}]}],
            "cables": [{"between": ["a:tb", "b:tb"], "speed_gbps": 20}]}))
        self.assertIn("cluster real is up", self.type("up", "--hosts", path).stdout)
        self.assertEqual(self.type("exec", "b", "--", "sh", "-c", "echo $RINGBOLT_ADDR_0 $RINGBOLT_DEVICE_0").stdout,
                         "10.77.1.2 tb\n")
        self.type("down")

    def stream_file(self, near="tcp-listen::7801+tcp-listen::7802", far="tcp:10.77.0.1:7801+tcp:10.77.1.1:7802", **more):
        path = self.root / "streams.json"
        path.write_text(json.dumps({
            "ringbolt": 1, "nodes": [{"name": "a", "host": "left", "ports": [{"name": "tb", "stream": near}]},
                                     {"name": "b", "host": "right", "ports": [{"name": "tb", "stream": far, **more}]}],
            "cables": [{"between": ["a:tb", "b:tb"], "speed_gbps": 20}]}))
        return path

    def test_cables_of_a_file_may_be_streams(self):
        self.assertIn("cluster streams is up: 2 nodes on hosts, 1 cable", self.type("up", "--hosts", self.stream_file()).stdout)
        listed = json.loads(self.type("devices", "--json").stdout)["devices"]
        self.assertEqual([(one["node"], one["device"], one["leads_to"]) for one in listed],
                         [("a", "tb", "b:tb"), ("b", "tb", "a:tb")])
        self.type("exec", "a", "--", "sh", "-c", 'ls /sys/class/infiniband && test -z "$RINGBOLT_ADDR_1"')
        if shutil.which("ibv_rc_pingpong"):
            server = self.start("exec", "a", "--", "ibv_rc_pingpong", "-d", "tb", "-g", "1", "-c")
            self.addCleanup(self.end, server)
            command.wait_until(lambda: ":18515" in subprocess.run(
                ["ip", "netns", "exec", f"rb-{self.name}-0", "ss", "-ltn"], capture_output=True, text=True,
                check=True).stdout, "the server listens")
            said = self.type("exec", "b", "--", "ibv_rc_pingpong", "-d", "tb", "-g", "1", "-c", "10.77.0.1").stdout
            self.assertIn("1000 iters", said)
            self.assertEqual(server.wait(timeout=command.PATIENCE_S), 0)
        self.type("cut", "a:tb-b")
        self.assertIn("PORT_DOWN", self.type("exec", "a", "--", "ibv_devinfo").stdout)
        self.type("heal", "a:tb-b")
        self.assertIn("PORT_ACTIVE", self.type("exec", "a", "--", "ibv_devinfo").stdout)
        self.type("down")
        self.assertEqual(self.host_state(), [])

    def test_a_file_of_streams_that_cannot_be_is_refused(self):
        for wrong, reason in (({"far": "a b"}, "printable letters"), ({"netdev": "en3"}, "beside a netdev")):
            path = self.stream_file(**wrong)
            self.assertIn(reason, self.type("up", "--hosts", path, expect=2).stderr)
        path = self.stream_file()
        path.write_text(path.read_text().replace('"stream": "tcp-listen::7801+tcp-listen::7802"', '"netdev": "en2"'))
        self.assertIn("not both at streams", self.type("up", "--hosts", path, expect=2).stderr)
        self.assertEqual(self.host_state(), [])

    def test_refusals_name_host_and_remedy_and_change_nothing(self):
        started = time.monotonic()
        said = self.type("up", "--hosts", "left,right,nobody", expect=2).stderr
        self.assertIn("ssh can't reach nobody", said)
        self.assertLess(time.monotonic() - started, command.PATIENCE_S)
        said = self.type("up", "--hosts", "left,right", "--prefix", "/nowhere", expect=2).stderr
        self.assertIn("right has no /nowhere/bin/ringbolt", said)
        path = self.root / "real.json"
        path.write_text(json.dumps({"ringbolt": 1, "nodes": [{"name": "left", "ports": ["x"]},
                                                             {"name": "right", "ports": ["x"]}],
                                    "cables": [{"between": ["left:x", "right:x"]}]}))
        self.assertIn("left:x names no interface", self.type("up", "--hosts", path, expect=2).stderr)
        self.assertEqual(self.host_state(), [])
        self.assertIn("no cluster is up", self.type("status").stdout)

    def test_down_of_a_machine_that_is_gone(self):
        self.up_hosts()
        self.daemons[1].kill()
        self.assertIn("ssh can't reach right", self.type("status", expect=1).stderr)
        self.assertIn("--force", self.type("down", expect=2).stderr)
        self.assertIn("ssh can't reach right", self.type("down", "--force").stderr)
        self.assertIn("no cluster is up", self.type("status").stdout)


if __name__ == "__main__":
    namespaces.main()
