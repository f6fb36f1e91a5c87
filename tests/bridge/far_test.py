"""Services that know nothing of RDMA over two bridges back to back: replication of redis, iperf3, hundreds of clients; over
a network that loses packets, and through a node in between."""

import json
import subprocess
import threading

import bridges
import namespaces
from bridges import Bridge, Target, command, connect, data, read_all, wait_until
from bridge_test import Ends as LocalEnds
from namespaces import NamespaceCase
from ports import free_port

bridges.need("redis-server", "redis-cli", "iperf3")


class Services(bridges.BridgeCase):
    def cli(self, path, *words, **options):
        return self.run_words("redis-cli", "-s", path, "-e", *words, **options)

    def test_replication(self):
        """The replica connects to a port here, and gets what its master has and what it is told then."""
        master = self.start_redis("--enable-debug-command", "yes", name="master")
        self.cli(master, "DEBUG", "POPULATE", 20000, "key", 100)
        self.cli(master, "-x", "SET", "large", stdin=data(24 << 20, "large"))
        near, far = self.back_to_back(f"unix:{master}")
        replica = self.start_redis("--enable-debug-command", "yes", "--replicaof", f"127.0.0.1 {near.port}", name="replica")
        wait_until(lambda: b"master_link_status:up" in self.cli(replica, "INFO", "replication"), "the replica has met its master")
        for i in range(50):
            self.cli(master, "-x", "SET", f"later {i}", stdin=data(i << 12, i))
        self.assertEqual(self.cli(master, "WAIT", 1, 20000), b"1\n")
        digest = self.cli(master, "DEBUG", "DIGEST")
        self.assertEqual(self.cli(replica, "DEBUG", "DIGEST"), digest)
        self.assertEqual(self.cli(replica, "DBSIZE"), b"20051\n")
        # A bridge that ends is a link that is lost, and comes back with the next bridge.
        far.end()
        wait_until(lambda: b"master_link_status:down" in self.cli(replica, "INFO", "replication"), "the link is down")
        Bridge(self, "--listen", far.listens[0], "--connect", f"unix:{master}")
        wait_until(lambda: b"master_link_status:up" in self.cli(replica, "INFO", "replication"), "the link is up again")

    def test_iperf3_both_ways(self):
        port = free_port()
        server = subprocess.Popen(["iperf3", "-s", "-p", str(port)], stdout=subprocess.DEVNULL, env=self.environment)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        near, _ = self.back_to_back(f"tcp:127.0.0.1:{port}", "--linger", "500")
        for words in ([], ["-R"], ["--bidir", "-P", "4"]):
            said = json.loads(self.run_words("iperf3", "-c", "127.0.0.1", "-p", near.port, "-t", "2", "-J", *words))
            self.assertNotIn("error", said)
            sums = said["end"]
            print(words, round(sums["sum_received"]["bits_per_second"] / 1e9, 2), "Gb/s")
            self.assertGreater(sums["sum_received"]["bytes"], 1 << 20)


class Crowd(LocalEnds):
    def test_killed_clients_leave_nothing(self):
        self.kill_clients(500)


class Places(NamespaceCase):
    """Bridges on nodes of a cluster; programs here reach them by UNIX sockets."""

    def setUp(self):
        super().setUp()
        self.environment |= {"RINGBOLT_VERBS": "soft"}
        self.folder = self.root / "here"
        self.folder.mkdir()

    def bridge_on(self, node, *words):
        return Bridge(self, *words, enter=[command.RINGBOLT, "exec", "-c", self.name, str(node), "--"])

    def serve(self, size):
        """Listens at a UNIX socket; sends and takes so much at once, then answers short words."""
        def run(client):
            writing = threading.Thread(target=client.sendall, args=(data(size, "back"),))
            writing.start()
            self.assertEqual(read_all(client, size), data(size, "there"))
            writing.join()
            while word := read_all(client, 7):
                client.sendall(word[::-1])
        return Target(self, run, self.folder / "target")

    def exchange(self, path, size):
        with connect(path) as client:
            writing = threading.Thread(target=client.sendall, args=(data(size, "there"),))
            writing.start()
            self.assertEqual(read_all(client, size), data(size, "back"))
            writing.join()
            for i in range(50):
                word = b"%07d" % i
                client.sendall(word)
                self.assertEqual(read_all(client, 7), word[::-1])

    def test_a_network_that_loses_one_packet_in_a_hundred(self):
        self.up("line:2")
        self.call("fault", "add", "loss", "1%", "seed", "11", "-c", self.name)
        target = self.serve(8 << 20)
        self.bridge_on(1, "--listen", "rdma:10.77.0.2:6379", "--connect", target.place)
        near = self.folder / "near"
        self.bridge_on(0, "--listen", f"unix:{near}", "--connect", "rdma:10.77.0.2:6379")
        self.exchange(near, 8 << 20)
        self.assertEqual(target.failures, [])

    def test_through_a_node_in_between(self):
        """No cable joins nodes 0 and 2: the bridge of node 1 has two pairs, which meet in a UNIX socket."""
        self.call("up", "--emulate", "line:3", "--name", self.name)
        self.addCleanup(self.down)
        target = self.serve(32 << 20)
        near, between = self.folder / "near", self.folder / "between"
        address = {(a, b): self.on(a, "sh", "-c", f"echo $RINGBOLT_ADDR_{b}").strip() for a, b in ((0, 1), (1, 2))}
        far = self.bridge_on(2, "--listen", f"rdma:{address[1, 2]}:6379", "--connect", target.place)
        relay = self.bridge_on(1, "--listen", f"rdma:{address[0, 1]}:6379", "--connect", f"unix:{between}",
                               "--listen", f"unix:{between}", "--connect", f"rdma:{address[1, 2]}:6379")
        first = self.bridge_on(0, "--listen", f"unix:{near}", "--connect", f"rdma:{address[0, 1]}:6379")
        for _ in range(3):
            self.exchange(near, 32 << 20)
        self.assertEqual(target.failures, [])
        for bridge in (first, relay, far):
            self.assertEqual(bridge.end()[0], 0)


if __name__ == "__main__":
    bridges.main()
