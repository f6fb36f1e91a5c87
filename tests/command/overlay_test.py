"""`up --overlay`: every node reaches every other by ringbolt0, through agents; what becomes of it when one dies."""

import contextlib
import json
import os
import pathlib
import signal
import socket

import command
from command import CommandCase, is_alive, wait_until


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def is_listened_at(port):
    """Programs of rdma-core listen once they have their device open."""
    lines = [line.split() for name in ("tcp", "tcp6") for line in pathlib.Path("/proc/net", name).read_text().splitlines()]
    return any(words[1].endswith(f":{port:04X}") and words[3] == "0A" for words in lines[1:])


class OverlayCase(CommandCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.call, "down", "--force", expect=None)

    def up(self, spec="ring:4"):
        done = self.call("up", "--emulate", spec, "--overlay", "--name", "o")
        self.assertIn("overlay: ringbolt0", done.stdout)
        return self.agents()

    def agents(self):
        """node -> pid, of those that live."""
        found = {}
        for path in (self.root / "clusters/o").glob("agent-*.pid"):
            words = path.read_text().split()  # none: it has just begun
            if words and is_alive(int(words[0])):
                found[int(path.stem.removeprefix("agent-"))] = int(words[0])
        return found

    def seen(self):
        """The agents by node, as `status` sees them: of one that is dying some thread may hold its place for a while."""
        return json.loads(self.call("status", "--json", expect=None).stdout)["clusters"][0]["agents"]

    def log(self, node):
        return (self.root / f"clusters/o/agent-{node}.log").read_text()

    def pingpong(self, server, client, program="ibv_rc_pingpong", *words):
        """Runs the pair; both end well."""
        port = free_port()
        words = [program, "-d", "ringbolt0", "-g", "0", "-n", "100", "-p", str(port), *words]
        with self.start("exec", server, "--", *words) as first:
            try:
                wait_until(lambda: is_listened_at(port) or first.poll() is not None, "the server listens")
                self.call("exec", client, "--", *words, "127.0.0.1")
                self.assertEqual(first.wait(command.PATIENCE_S), 0, first.stderr.read())
            finally:
                first.kill()


class Overlay(OverlayCase):
    def test_programs_see_one_device_more_and_down_leaves_nothing(self):
        agents = self.up()
        self.assertEqual(sorted(agents), [0, 1, 2, 3])
        for node in range(4):
            listed = self.call("exec", node, "--", "ibv_devices").stdout
            self.assertRegex(listed, rf"ringbolt0\s+025242f00000000{node + 1}")
        names = self.call("exec", 2, "--", "ls", "/sys/class/infiniband").stdout.split()
        self.assertEqual(names, ["rdma_en2", "rdma_en3", "ringbolt0"])
        self.call("down")
        self.assertFalse(any(is_alive(pid) for pid in agents.values()))
        self.assertEqual(self.state_files(), ["clusters"])

    def test_nodes_without_a_cable_talk(self):
        self.up("line:3")
        for program in ("ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong"):
            with self.subTest(program):
                self.pingpong(0, 2, program)
        self.pingpong(0, 1)

    def test_a_launcher_of_the_user_says_nothing_about_agents(self):
        self.environment |= {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "192.0.2.1", "MASTER_PORT": "1",
                             "RINGBOLT_GROUP": "other", "RINGBOLT_JOIN_TIMEOUT_MS": "1"}
        self.up("line:3")
        self.assertIn("node 2 of 3 serves", self.log(2))
        self.pingpong(0, 2)

    def test_an_agent_that_dies_takes_its_own_node_away_alone(self):
        agents = self.up()
        os.kill(agents[1], signal.SIGKILL)
        wait_until(lambda: "node 1 is gone" in self.log(0) and "node 1 is gone" in self.log(2), "the others know")
        self.pingpong(0, 2)
        self.assertEqual(sorted(self.agents()), [0, 2, 3])

    def test_an_agent_comes_back(self):
        agents = self.up("ring:3")
        os.kill(agents[1], signal.SIGKILL)
        wait_until(lambda: "node 1 is gone" in self.log(0) and "node 1 is gone" in self.log(2), "the others know")
        self.assertIn("1 agent of 3 started", self.call("agent", "--start", timeout=60).stdout)
        self.assertEqual(sorted(self.agents()), [0, 1, 2])
        self.pingpong(1, 2)
        self.pingpong(0, 2)
        self.assertIn("0 agents of 3 started", self.call("agent", "--start").stdout)

    def test_two_who_start_what_is_missing_do_not_end_each_other_s(self):
        for _ in range(3):
            agents = self.up("ring:3")
            for pid in agents.values():
                os.kill(pid, signal.SIGKILL)
            wait_until(lambda: {one["state"] for one in self.seen()} == {"none"}, "all agents have ended")
            both = [self.start("agent", "--start") for _ in range(2)]
            said = [one.communicate(timeout=60) for one in both]
            self.assertEqual([one.returncode for one in both], [0, 0], said)
            self.assertEqual(sum(int(out.split()[0]) for out, _ in said), 3, said)
            self.assertEqual(sorted(self.agents()), [0, 1, 2])
            self.call("down")

    def test_agents_that_are_missing_are_told(self):
        agents = self.up("ring:3")
        self.assertIn("overlay: all 3 agents run\n", self.call("status").stdout)
        os.kill(agents[1], signal.SIGKILL)
        wait_until(lambda: [one["state"] for one in self.seen()].count("none") == 1, "it has ended")
        told = self.call("status", expect=1)
        self.assertIn("overlay: 2 of 3 agents run: on n0, n2\n", told.stdout)
        self.assertIn("ringbolt status: overlay of o: no agent runs on n1; start what is missing: ringbolt agent --start --cluster o",
                      told.stderr)
        os.kill(agents[2], signal.SIGSTOP)  # which takes effect later, if it runs on another core just now
        wait_until(lambda: "stopped" in [one["state"] for one in self.seen()], "it stands still")
        ended = (self.root / "clusters/o/agent-2.log").open()
        self.addCleanup(ended.close)
        told = self.call("status", "--json", expect=1)
        self.assertIn("the agent of n2 stands still", told.stderr)
        running = json.loads(told.stdout)["clusters"][0]["running"]
        self.assertEqual({one["node"]: one["pid"] for one in running}, {"n0": agents[0], "n2": agents[2]})
        seen = json.loads(told.stdout)["clusters"][0]["agents"]
        self.assertEqual([one["state"] for one in seen], ["runs", "none", "stopped"])
        self.assertEqual((seen[0]["node"], seen[0]["pid"], seen[2]["pid"]), ("n0", agents[0], agents[2]))
        self.assertEqual(seen[0]["meeting"], seen[2]["meeting"])
        self.call("down")  # politely: who is stopped goes on for that
        self.assertIn("ends: ", ended.read())

    def test_while_agents_start_other_clusters_can_be_changed(self):
        self.call("up", "--emulate", "line:2", "--name", "other")
        starting = self.start("up", "--emulate", "ring:12", "--overlay", "--name", "o")
        try:
            wait_until(lambda: self.agents() or starting.poll() is not None, "there is an agent")
            os.kill(starting.pid, signal.SIGSTOP)
            self.call("cut", "--cluster", "other", "0-1", timeout=5)
            os.kill(starting.pid, signal.SIGCONT)
            self.assertEqual(starting.wait(command.PATIENCE_S), 0)
        finally:
            starting.kill()
            starting.communicate()
            self.call("down", "--cluster", "other", "--force")

    def test_a_cut_cable_is_gone_around(self):
        self.up()
        self.call("cut", "0-1")
        self.pingpong(0, 1)
        self.call("heal", "0-1")
        self.pingpong(0, 1)

    def gone(self, node, others):
        wait_until(lambda: all(f"node {node} is gone" in self.log(other) for other in others), f"{others} give up {node}")

    def serves(self, node):
        return self.log(node).count(" serves")

    def test_a_node_that_is_cut_off_is_away_alone_until_it_is_plugged_in_again(self):
        agents = self.up("line:3")
        self.call("cut", "1-2")
        self.gone(2, [0, 1])
        for _ in range(4):
            self.pingpong(0, 1)
        self.assertEqual([self.serves(node) for node in range(3)], [1, 1, 1], self.log(0))
        self.assertLess(self.log(0).count("\n"), 10)
        self.call("heal", "1-2")
        wait_until(lambda: all(self.serves(node) == 2 for node in range(3)), "all have met anew")
        self.pingpong(0, 2)
        self.assertEqual(self.agents(), agents)

    def test_a_node_behind_a_fault_is_away_alone_until_that_is_cleared(self):
        for fault in ("unplug mode hang cable 1-2", "unplug mode port-event cable 1-2", "unplug mode flush cable 1-2",
                      "frozen node 2"):
            with self.subTest(fault):
                self.up("line:3")
                self.call("fault", "add", *fault.split())
                self.gone(2, [0, 1])
                for _ in range(4):
                    self.pingpong(0, 1)
                self.assertEqual([self.serves(node) for node in range(3)], [1, 1, 1], self.log(0))
                self.assertNotIn("meet anew", self.log(0))
                self.call("fault", "clear")
                wait_until(lambda: all(self.serves(node) == 2 for node in range(3)), "all have met anew")
                self.pingpong(0, 2)
            self.call("down", "--force")

    def restart(self, *nodes):
        """Kills agents, and starts others in their place: they serve within this test's patience."""
        agents = self.agents()
        for node in nodes:
            os.kill(agents[node], signal.SIGKILL)
        wait_until(lambda: all(self.seen()[node]["state"] == "none" for node in nodes), "they have ended")
        told = self.call("agent", "--start").stdout
        self.assertIn(f"{len(nodes)} agent", told)
        return told

    def cluster_file(self, n_nodes, *cables):
        """Nodes n0, n1, ..., and between which of them there is a cable."""
        ports = [[] for _ in range(n_nodes)]
        between = []
        for cable in cables:
            for node in cable:
                ports[node].append(f"p{len(ports[node])}")
            between.append({"between": [f"n{node}:{ports[node][-1]}" for node in cable]})
        path = self.root / "o.json"
        path.write_text(json.dumps({"ringbolt": 1, "nodes": [{"name": f"n{node}", "ports": names}
                                                             for node, names in enumerate(ports)], "cables": between}))
        self.addCleanup(path.unlink)
        return path

    def all_meet(self, nodes=None):
        def is_one():
            seen = self.seen()
            found = {seen[node].get("meeting") for node in nodes or range(len(seen))}
            return None not in found and len(found) == 1
        wait_until(is_one, "all are in one meeting")

    def test_an_agent_that_is_restarted_meets_the_others_while_one_is_cut_off(self):
        # A ring of four with a fifth node at one of them.
        self.up(self.cluster_file(5, (0, 1), (1, 2), (2, 3), (3, 0), (0, 4)))
        self.call("cut", "0-4")
        self.gone(4, range(4))
        for node in (2, 0):  # the other one is the first of all, and it has the fifth's cable
            with self.subTest(node):
                told = self.restart(node)
                self.assertIn("overlay: node n4 has no cable that is up: ringbolt0 reaches nobody from there", told)
                self.assertIn("node 4 (n4) has no cable that is up", self.log(node).splitlines()[-1])
                self.pingpong(node, 1)
                self.pingpong(3, 1)
        self.assertIn("overlay: all 5 agents run\noverlay: node n4 has no cable that is up", self.call("status").stdout)
        self.call("heal", "0-4")
        self.all_meet()
        self.pingpong(2, 4)

    def test_an_agent_that_is_restarted_meets_the_others_while_one_has_none(self):
        agents = self.up("ring:4")
        os.kill(agents[3], signal.SIGKILL)
        self.gone(3, [0, 1, 2])
        os.kill(agents[1], signal.SIGKILL)
        self.gone(1, [0, 2])
        one = self.start("exec", 1, "--", command.RINGBOLT, "agent", "--cluster", "o")  # by hand: that of node 3 stays away
        try:
            self.all_meet([0, 1, 2])
            wait_until(lambda: "serves; node 3 (n3) has no agent that runs" in self.log(0), "it says who is away")
            self.pingpong(1, 0)
            self.pingpong(1, 2)
            self.assertIn("1 agent of 4 started", self.call("agent", "--start").stdout)
            self.all_meet()
            self.pingpong(1, 3)
        finally:
            one.kill()
            one.communicate()

    def test_both_parts_of_a_cluster_meet_each_by_itself_and_then_together(self):
        self.up("line:4")
        self.call("cut", "1-2")
        self.gone(2, [0, 1])
        self.gone(1, [2, 3])
        told = self.restart(0, 3)
        self.assertIn("overlay: no cable that is up joins n0, n1 with n2, n3\n", told)
        self.pingpong(0, 1)
        self.pingpong(2, 3)
        self.call("heal", "1-2")
        self.all_meet()
        self.pingpong(0, 3)

    def test_a_node_without_a_cable_is_said_to_have_none(self):
        done = self.call("up", "--emulate", self.cluster_file(3, (0, 1)), "--overlay", "--name", "o")
        self.assertIn("overlay: node n2 has no cable: ringbolt0 reaches nobody from there\n", done.stdout)
        self.assertIn("overlay: node n2 has no cable: ", self.call("status").stdout)
        self.assertIn("node 2 (n2) has no cable", self.log(0).splitlines()[-1])
        self.pingpong(0, 1)
        told = self.call("check", "--scale", "ci", expect=None, timeout=60)
        self.assertNotEqual(told.returncode, 0)
        self.assertIn("no cable leads to this node", told.stdout + told.stderr)

    def test_a_frozen_agent_is_away_alone_until_it_runs_again(self):
        self.environment["RINGBOLT_FROZEN_MS"] = str(1000 * command.TIME_SCALE)
        agents = self.up()
        os.kill(agents[1], signal.SIGSTOP)
        self.gone(1, [0, 2, 3])
        self.pingpong(0, 2)
        self.call("cut", "2-3")  # which may bring somebody back, but not who stands still
        self.call("heal", "2-3")
        self.pingpong(0, 2)
        self.assertEqual([self.serves(node) for node in range(4)], [1] * 4, self.log(0))
        os.kill(agents[1], signal.SIGCONT)
        wait_until(lambda: all(self.serves(node) == 2 for node in range(4)), "all have met anew")
        self.pingpong(0, 1)
        self.pingpong(1, 3)

    def test_nobody_waits_for_an_agent_that_stands_still(self):
        agents = self.up()
        os.kill(agents[1], signal.SIGSTOP)  # for less than RINGBOLT_FROZEN_MS: nobody has given it up
        self.restart(2)
        self.assertIn("node 1 (n1) has an agent that stands still", self.log(2).splitlines()[-1])
        self.pingpong(0, 2)
        self.assertEqual(self.serves(1), 1)
        os.kill(agents[1], signal.SIGCONT)
        self.all_meet()
        self.pingpong(1, 2)

    def test_down_asks_about_programs_and_not_about_agents(self):
        agents = self.up("line:2")
        port = free_port()
        program = self.start("exec", 0, "--", "ibv_rc_pingpong", "-d", "ringbolt0", "-g", "0", "-p", port)
        wait_until(lambda: is_listened_at(port), "the program has the device open")
        refused = self.call("down", expect=2)
        self.assertIn("ibv_rc_pingpong", refused.stderr)
        self.assertNotIn("agent", refused.stderr)
        self.assertEqual(self.agents(), agents)
        program.kill()
        program.communicate()
        self.call("down")

    def test_groups_pass_it_over(self):
        self.up("ring:3")
        told = json.loads(self.call("check", "--scale", "ci", "--json", timeout=120).stdout)
        self.assertNotIn("ringbolt0", json.dumps(told))

    def test_bad_usage(self):
        self.refused("up", "--hosts", "a,b", "--overlay", says=["--overlay", "ringbolt agent"])
        self.refused("up", "--emulate", "ring:100", "--overlay", says=["--overlay", "64"])
        self.call("up", "--emulate", "line:2", "--name", "plain")
        self.refused("agent", "--cluster", "plain", "--node", 0, says=["no overlay", "up --overlay"])
        self.call("down", "--cluster", "plain")
        agents = self.up("line:2")
        self.refused("agent", "--node", 0, says=["has an agent already", str(agents[0])])
        self.refused("agent", "--node", 7, says=["no node"])


class Interrupted(OverlayCase):
    def setUp(self):
        super().setUp()
        for what in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # whoever runs the tests may ignore some of them
            self.addCleanup(signal.signal, what, signal.signal(what, signal.SIG_DFL))

    def test_an_interrupted_up_leaves_no_cluster(self):
        for what in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(what):
                interrupted = self.start("up", "--emulate", "ring:12", "--overlay", "--name", "o")
                wait_until(lambda: self.agents() or interrupted.poll() is not None, "there is an agent")
                interrupted.send_signal(what)
                out, said = interrupted.communicate(timeout=command.PATIENCE_S)
                self.assertEqual(interrupted.returncode, -what, out + said)
                self.assertEqual(self.state_files(), ["clusters"])

    def test_down_while_agents_start_leaves_none(self):
        for _ in range(3):
            starting = self.start("up", "--emulate", "ring:12", "--overlay", "--name", "o")
            wait_until(lambda: self.agents() or starting.poll() is not None, "there is an agent")
            self.call("down", "--force")
            starting.communicate(timeout=command.PATIENCE_S)
            mine = f"RINGBOLT_RUNTIME_DIR={self.root}".encode()
            wait_until(lambda: not any(mine in variables for variables in self.environments_of_agents()), "all have ended")
            self.assertEqual(self.state_files(), ["clusters"])

    @staticmethod
    def environments_of_agents():
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if b"\0agent\0" in (process / "cmdline").read_bytes():
                    yield (process / "environ").read_bytes().split(b"\0")


if __name__ == "__main__":
    command.main()
