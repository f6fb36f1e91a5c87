"""Faults in clusters of memory, set and cleared while unmodified programs run: what each program meets, and that all is
well afterwards."""

import ipaddress
import re
import subprocess
import time

import command
from command import CommandCase, wait_until
from ports import free_port, is_listening


class Faults(CommandCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.call, "down", "--force", "--all", expect=None)

    def fault(self, *words, expect=0):
        return self.call("fault", *words, expect=expect)

    def serve(self, node, *words):
        """Starts a server that will listen on a port of its own; the port."""
        port = free_port()
        server = self.start("exec", node, "--", *words, "-p", port)
        self.addCleanup(self.end, server)
        wait_until(lambda: is_listening(port) or server.poll() is not None, f"{words[0]} listens on port {port}")
        return server, port

    @staticmethod
    def end(program):
        program.kill()
        program.communicate()

    def between(self, server_device, client_node, client_device, *words, program="ibv_rc_pingpong"):
        """Runs a ping-pong from a node to node 0: the exit codes of both and what the client said."""
        server, port = self.serve(0, program, "-d", server_device, "-g", "1", *words)
        client = self.call("exec", client_node, "--", program, "-d", client_device, "-g", "1", *words, "-p", port,
                           f"127.77.0.{server_device[-1]}", expect=None, timeout=60)
        try:  # whose client failed waits for it, unless it was done before, and is about to end
            said, complaint = server.communicate(timeout=command.PATIENCE_S if client.returncode == 0 else command.TIME_SCALE)
        except subprocess.TimeoutExpired:
            server.kill()
            said, complaint = server.communicate()
        return server.returncode, client.returncode, said + complaint + client.stdout + client.stderr

    def pingpong(self, *words, **options):
        return self.between("rdma_en2", 1, "rdma_en2", *words, **options)

    def assert_well(self):
        self.fault("clear")
        server, client, said = self.pingpong("-n", "1000", "-c")
        self.assertEqual((server, client), (0, 0), said)

    def test_messages_suffer_and_rc_gets_through(self):
        self.call("up", "--emulate", "line:2")
        for text in ("message-loss 2%", "rnr 5%", "shape rate 1Gbit by 20us jitter 5us", "completion-late 2% by 1ms",
                     "flap by 20ms every 100ms", "shape preset mac-linux-40g"):
            self.fault("add", *text.split())
            server, client, said = self.pingpong("-n", "300", "-s", "20000", "-c")
            # The last acknowledgement may be what got lost: then one end is gone when the other asks again.
            self.assertIn(0, (server, client), f"{text}: {said}")
            self.assert_well()

    def test_who_leaves_at_his_last_completion_loses_his_last_message(self):
        self.call("up", "--emulate", "line:2")
        self.fault("add", "completion-early", "by", "50ms")
        server, port = self.serve(0, "ibv_rc_pingpong", "-d", "rdma_en2", "-g", "1", "-n", "5")
        waits = self.call("exec", 1, "--", "timeout", "4", "ibv_rc_pingpong", "-d", "rdma_en2", "-g", "1", "-n", "5", "-p",
                          port, "127.77.0.2", expect=None)
        self.assertNotEqual(waits.returncode, 0)
        self.assertEqual(server.wait(timeout=command.PATIENCE_S), 0)  # it takes its completions for arrivals
        self.assert_well()

    def test_damage_is_found_by_who_compares(self):
        self.call("up", "--emulate", "line:2")
        self.fault("add", "bitflip", "100%", "node", "n0")  # what the server writes to the client
        port = free_port()
        words = ("rping", "-a", "127.77.0.2", "-p", port, "-C", "5", "-V")
        server = self.start("exec", 0, "--", words[0], "-s", *words[1:])
        self.addCleanup(self.end, server)
        said = ""

        def has_connected():
            nonlocal said
            client = self.call("exec", 1, "--", words[0], "-c", *words[1:], expect=None)
            said = client.stdout + client.stderr
            return "connect error" not in said and "REJECTED" not in said

        wait_until(has_connected, "rping's server listens")
        self.assertIn("data mismatch", said)
        self.end(server)
        self.assert_well()

    def test_objects_run_out(self):
        self.call("up", "--emulate", "line:2")
        for kind, complaint in (("pd", "Couldn't allocate PD"), ("cq", "Couldn't create CQ"), ("mr", "Couldn't register MR"),
                                ("qp", "Couldn't create QP")):
            self.fault("add", "exhaust", "object", kind, "left", "0", "node", "n0")
            said = self.call("exec", 0, "--", "ibv_rc_pingpong", "-g", "1", expect=1).stderr
            self.assertIn(complaint, said)
            self.fault("clear")
        self.fault("add", "exhaust", "object", "dma", "left", "1000")
        self.assertIn("Failed to modify QP to RTR", self.pingpong()[2])
        self.assert_well()

    def test_receives_fail_with_the_status_that_is_said(self):
        self.call("up", "--emulate", "line:2")
        for text, status in (("frame-mismatch count 5-5 node 0", "local length error"),
                             ("receive-error status 4 count 5-5 node 0", "local protection error")):
            self.fault("add", *text.split())
            server, client, said = self.pingpong("-n", "100")
            self.assertNotEqual(server, 0)
            self.assertNotEqual(client, 0)
            self.assertIn(f"Failed status {status}", said)
            self.assert_well()

    def test_a_frozen_machine_is_reported_by_rc_and_thaws(self):
        self.call("up", "--emulate", "line:2")
        server, port = self.serve(0, "ib_send_bw", "-d", "rdma_en2", "-x", "1", "--run_infinitely", "-D", "1")
        client = self.start("exec", 1, "--", "stdbuf", "-oL", "ib_send_bw", "-d", "rdma_en2", "-x", "1", "--run_infinitely",
                            "-D", "1", "-p", port, "127.77.0.2")
        self.addCleanup(self.end, client)

        def next_rate():
            while line := client.stdout.readline():
                figures = line.split()
                if figures[:1] == ["65536"]:
                    return float(figures[3])
            raise AssertionError(f"the client ended: {client.communicate()}")

        whole = max(next_rate(), next_rate())
        told = self.fault("add", "frozen", "node", "n0", "time", "0s-300ms").stdout
        self.assertIn("2 running programs told", told)
        next_rate()
        self.fault("clear")
        next_rate()
        self.assertGreater(next_rate(), whole / 100)  # it went on
        began = time.monotonic()
        self.fault("add", "frozen", "node", "n0")
        said = client.communicate(timeout=20)
        self.assertIn("Completion with error", said[0] + said[1])  # and this time it ends, and says so
        self.assertLess(time.monotonic() - began, 10)
        server.kill()
        server.communicate()
        self.assert_well()

    def test_crossed_cables_reach_the_wrong_machine(self):
        self.call("up", "--emulate", "mesh:3")
        self.assertEqual(self.between("rdma_en2", 1, "rdma_en2")[:2], (0, 0))
        self.fault("add", "cross-cables", "node", "n0", "cable", "0-1", "with", "0-2")
        self.assertEqual(self.fault("list").stdout, "  1  cross-cables with 1 node 0 cable 0\n")
        self.assertIn("Failed to modify QP to RTR", self.between("rdma_en2", 1, "rdma_en2")[2])
        server, client, said = self.between("rdma_en2", 2, "rdma_en2")  # its cable to node 0 ends in rdma_en2 now
        self.assertEqual((server, client), (0, 0), said)
        self.assertEqual(self.between("rdma_en3", 1, "rdma_en2")[:2], (0, 0))
        self.fault("clear")
        self.assertEqual(self.between("rdma_en2", 1, "rdma_en2")[:2], (0, 0))
        self.assertIn("Failed to modify QP to RTR", self.between("rdma_en2", 2, "rdma_en2")[2])

    def test_a_flapping_cable_shows_in_the_state_of_its_port(self):
        self.call("up", "--emulate", "line:2")
        self.fault("add", "flap", "by", "900ms", "every", "1s")
        states = set()
        for _ in range(40):
            states.update(re.findall(r"state:\s+(PORT_\w+)", self.call("exec", 0, "--", "ibv_devinfo").stdout))
            if len(states) == 2:
                break
            time.sleep(0.03)
        self.assertEqual(states, {"PORT_DOWN", "PORT_ACTIVE"})

    def test_a_pulled_cable_ends_connections_in_the_way_that_is_said(self):
        self.call("up", "--emulate", "line:2")
        for mode, says in (("hang", "Failed status 12"), ("flush", "Failed status 5")):
            device = ("-d", "rdma_en2", "-x", "1", "--run_infinitely", "-D", "1")
            server, port = self.serve(0, "ib_send_bw", *device)
            client = self.start("exec", 1, "--", "stdbuf", "-oL", "ib_send_bw", *device, "-p", port, "127.77.0.2")
            self.addCleanup(self.end, client)
            for line in client.stdout:
                if line.split()[:1] == ["65536"]:
                    break  # it runs
            self.fault("add", "unplug", "mode", mode, "cable", "0-1")
            said = "".join(client.communicate(timeout=command.PATIENCE_S))
            self.assertIn(says, said)
            # Under a sanitizer, which makes exit() take so long, perftest's printing thread may die of what main() frees.
            self.assertIn(client.returncode, (1,) if command.TIME_SCALE == 1 else (1, 66), said)
            self.end(server)
            self.assert_well()
        self.fault("add", "unplug", "mode", "port-event", "restore", "30s", "node", "n0")
        for node in (0, 1):  # both ends
            self.assertIn("PORT_DOWN", self.call("exec", node, "--", "ibv_devinfo").stdout)
        self.assertEqual(self.fault("list").stdout, "  1  unplug mode port-event restore 30s node 0\n")
        self.assert_well()

    def look(self):
        """Names, GUIDs and GIDs of node 0, in verbs and in /sys."""
        said = self.call("exec", 0, "--", "ibv_devinfo", "-v").stdout
        verbs = {}
        for name, rest in re.findall(r"hca_id:\s+(\S+)\n(.*?)(?=hca_id:|\Z)", said, re.S):
            gids = {int(index): ipaddress.ip_address(gid.split(",")[0]).exploded if ":" in gid else gid
                    for index, gid in re.findall(r"GID\[\s*(\d+)\]:\s+(\S+)", rest)}
            verbs[name] = (re.search(r"node_guid:\s+(\S+)", rest)[1], gids)
        sys = {}
        listed = self.call("exec", 0, "--", "sh", "-c",
                           "grep . /sys/class/infiniband/*/node_guid /sys/class/infiniband/*/ports/1/gids/*").stdout
        for line in listed.splitlines():
            path, value = line.split(":", 1)
            name = path.split("/")[4]
            if path.endswith("node_guid"):
                sys[name] = (value, {})
        for line in listed.splitlines():
            path, value = line.split(":", 1)
            if "/gids/" in path and set(value) - set("0:"):
                sys[path.split("/")[4]][1][int(path.rsplit("/", 1)[1])] = ipaddress.ip_address(value).exploded
        return verbs, sys

    def test_devices_change_their_names_and_tables(self):
        self.call("up", "--emulate", "ring:3", "--like", "apple")
        plain, plain_sys = self.look()
        self.assertEqual(plain, plain_sys)
        self.fault("add", "rename-devices", "node", "n0")
        renamed, renamed_sys = self.look()
        self.assertEqual(renamed, renamed_sys)
        self.assertEqual({name: guid for name, (guid, _) in renamed.items()},
                         {"rdma_en2": plain["rdma_en3"][0], "rdma_en3": plain["rdma_en2"][0]})
        self.fault("clear")
        self.fault("add", "gid-shuffle", "seed", "3")
        shuffled, shuffled_sys = self.look()
        self.assertEqual(shuffled, shuffled_sys)
        for name, (_, gids) in shuffled.items():
            self.assertNotEqual(gids, plain[name][1])
            self.assertEqual(set(gids.values()), set(plain[name][1].values()))
        self.fault("clear")
        self.assertEqual(self.look(), (plain, plain_sys))

    def test_refusals_say_what_is_missing(self):
        self.call("up", "--emulate", "line:2")
        for words, says in ((["exhaust"], ["object qp left 4"]), (["shape"], ["rate 10Gbit by 5us"]),
                            (["shape", "preset", "mac"], ["mac-linux-40g"]), (["flap", "1%"], ["has no chance"]),
                            (["flap", "by", "1s"], ["by 200ms every 1s"]), (["unplug"], ["mode hang, port-event, flush"]),
                            (["cross-cables", "with", "0-1"], ["a node and its two cables"]),
                            (["frozen", "node", "n7"], ['no node "n7"'])):
            self.refused("fault", "add", *words, says=says)


if __name__ == "__main__":
    command.main()
