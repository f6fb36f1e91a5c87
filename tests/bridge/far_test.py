"""Services that know nothing of RDMA over two bridges back to back, each with bytes that are compared: here, over a network
that loses one packet in a hundred, and through a node in between; replication, and hundreds of clients that are killed."""

import getpass
import json
import pathlib
import shutil
import subprocess
import sys
import threading

import bridges
import namespaces
from bridges import Bridge, Target, command, connect, data, read_all, wait_until
from namespaces import NamespaceCase
from ports import free_port

bridges.need("redis-check-rdb", "redis-cli", "redis-benchmark", "iperf3", "ssh", "ssh-keygen")

SSHD = shutil.which("sshd", path="/usr/sbin:/sbin:/usr/bin")  # which wants to be called by its path
if SSHD is None:
    print("skip: sshd is not installed")
    sys.exit(77)


class Services(bridges.BridgeCase, NamespaceCase):
    """`way(target)` joins a port here to it, and returns the port; `near` and `far` are the words before programs that are
    to run at its ends."""

    def setUp(self):
        super().setUp()
        self.next_port = 7000

    def at(self, path, *words, **options):
        return self.run_words("redis-cli", "-s", path, "-e", *words, **options)

    def check_redis(self, way, near=(), far=()):
        """Values, many clients at once, and a replica here that gets what its master has, and then what it is told."""
        debug = ("--enable-debug-command", "yes")
        master = self.start_redis(*debug, name="master", enter=far)
        port = way(f"unix:{master}")
        here = (*near, "redis-cli", "-p", port, "-e")
        for size in (1, 1 << 20, (3 << 20) + 1):
            self.assertEqual(self.run_words(*here, "-x", "SET", f"value {size}", stdin=data(size, "value")), b"OK\n")
            self.assertEqual(self.run_words(*here, "GET", f"value {size}")[:-1], data(size, "value"))
        said = self.run_words(*near, "redis-benchmark", "-p", port, "-t", "set,get", "-n", 5000, "-c", 50, "-d", 512, "-q")
        self.assertEqual(said.count(b"requests per second"), 2, said)
        print(said.decode().replace("\r", "\n").strip().splitlines()[-1])
        self.at(master, "DEBUG", "POPULATE", 20000, "key", 100)
        replica = self.start_redis(*debug, "--replicaof", f"127.0.0.1 {port}", name="replica", enter=near)
        self.await_link(replica, "up")
        for i in range(20):
            self.at(master, "-x", "SET", f"later {i}", stdin=data(i << 13, i))
        self.assertEqual(self.at(master, "WAIT", 1, 20000), b"1\n")
        self.assertEqual(self.at(replica, "DEBUG", "DIGEST"), self.at(master, "DEBUG", "DIGEST"))
        self.assertEqual(self.at(replica, "DBSIZE"), self.at(master, "DBSIZE"))
        return master, replica

    def await_link(self, replica, state):
        wanted = f"master_link_status:{state}".encode()
        wait_until(lambda: wanted in self.at(replica, "INFO", "replication"), f"the link of the replica is {state}")

    def check_iperf3(self, way, near=(), far=()):
        port = free_port()
        server = subprocess.Popen([*far, "iperf3", "-s", "--forceflush", "-p", str(port)], env=self.environment,
                                  stdout=subprocess.PIPE)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.assertIn(b"---", server.stdout.readline())  # it listens
        entry = way(f"tcp:127.0.0.1:{port}")
        for words in ([], ["-R"]):
            client = ("iperf3", "-c", "127.0.0.1", "-p", entry, "-n", "32M", "-J")
            said = json.loads(self.run_words(*near, *client, *words))
            self.assertNotIn("error", said)
            print("iperf3", *words, round(said["end"]["sum_received"]["bits_per_second"] / 1e9, 2), "Gb/s")

    def check_ssh(self, way, near=(), far=()):
        """A session with a program there that gets data and answers with others, and one whose end is its exit status."""
        keys = self.folder / "ssh"
        keys.mkdir(mode=0o700)
        for key in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / key)], check=True)
        port = free_port()
        (keys / "sshd").write_text(f"HostKey {keys}/host\nAuthorizedKeysFile {keys}/user.pub\nStrictModes no\nPidFile none\n"
                                   f"UsePAM no\nPermitRootLogin yes\nListenAddress 127.0.0.1:{port}\n")
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)  # sshd insists on it
        server = subprocess.Popen([*far, SSHD, "-D", "-e", "-f", str(keys / "sshd")], env=self.environment, text=True,
                                  stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        self.assertIn("Server listening", server.stderr.readline())
        entry = way(f"tcp:127.0.0.1:{port}")
        session = (*near, "ssh", "-F", "none", "-p", entry, "-i", keys / "user", "-o", "IdentitiesOnly=yes",
                   "-o", "LogLevel=ERROR", "-o", "UserKnownHostsFile=/dev/null", "-o", "StrictHostKeyChecking=no", f"{getpass.getuser()}@127.0.0.1")
        there = data(8 << 20, "there")
        self.assertEqual(self.run_words(*session, "tr a-z A-Z; echo done", stdin=there), there.upper() + b"done\n")
        ended = subprocess.run([str(word) for word in (*session, "exit 17")], env=self.environment, timeout=bridges.LIMIT_S,
                               stdin=subprocess.DEVNULL, check=False)
        self.assertEqual(ended.returncode, 17)

    def check_bytes(self, way, size):
        """So much both ways at once, compared; then many short answers. By UNIX sockets, which reach every node."""
        def serve(client):
            writing = threading.Thread(target=client.sendall, args=(data(size, "back"),))
            writing.start()
            self.assertEqual(read_all(client, size), data(size, "there"))
            writing.join()
            while word := read_all(client, 7):
                client.sendall(word[::-1])

        target, entry = Target(self, serve, self.folder / "target"), self.folder / "entry"
        way(target.place, f"unix:{entry}")
        with connect(entry) as client:
            writing = threading.Thread(target=client.sendall, args=(data(size, "there"),))
            writing.start()
            self.assertEqual(read_all(client, size), data(size, "back"))
            writing.join()
            for i in range(50):
                client.sendall(b"%07d" % i)
                self.assertEqual(read_all(client, 7), (b"%07d" % i)[::-1])
        self.assertEqual(target.failures, [])

    def enter(self, node):
        return (command.RINGBOLT, "exec", "-c", self.name, str(node), "--")

    def chain(self, nodes, target, entry="tcp:127.0.0.1:0"):
        """Bridges on those nodes, each of which has a cable to the next, with pairs that meet in UNIX sockets in between.
        Returns the port of the first."""
        self.next_port += 1
        port, leads_to = self.next_port, target
        for before, node in reversed(list(zip(nodes, nodes[1:]))):
            address = self.on(before, "sh", "-c", f"echo $RINGBOLT_ADDR_{node}").strip()
            words = ["--listen", f"rdma:{address}:{port}", "--connect", leads_to]
            if node != nodes[-1]:
                words[3] = f"unix:{self.folder}/between-{node}-{port}"
                words += ["--listen", words[3], "--connect", leads_to]
            Bridge(self, *words, enter=self.enter(node))
            leads_to = f"rdma:{address}:{port}"
        first = Bridge(self, "--listen", entry, "--connect", leads_to, enter=self.enter(nodes[0]))
        return first.port if entry.startswith("tcp") else None

    def test_here(self):
        farther = []

        def way(target):
            near, far = self.back_to_back(target)
            farther.append(far)
            return near.port

        self.check_iperf3(way)
        master, replica = self.check_redis(way)
        # A bridge that ends is a link that is lost, and comes back with the next bridge.
        farther[-1].end()
        self.await_link(replica, "down")
        Bridge(self, "--listen", farther[-1].listens[0], "--connect", f"unix:{master}")
        self.await_link(replica, "up")

    def test_over_a_network_that_loses_one_packet_in_a_hundred(self):
        self.up("line:2")
        self.call("fault", "add", "loss", "1%", "seed", "11", "-c", self.name)

        def way(target, *entry):
            return self.chain([0, 1], target, *entry)

        self.check_bytes(way, 24 << 20)
        self.check_iperf3(way, self.enter(0), self.enter(1))
        self.check_ssh(way, self.enter(0), self.enter(1))
        self.check_redis(way, self.enter(0), self.enter(1))

    def test_through_a_node_in_between(self):
        """No cable joins nodes 0 and 2."""
        self.call("up", "--emulate", "line:3", "--name", self.name)
        self.addCleanup(self.down)

        def way(target, *entry):
            return self.chain([0, 1, 2], target, *entry)

        self.check_bytes(way, 24 << 20)
        self.check_iperf3(way)
        self.check_ssh(way)
        self.check_redis(way)


class Crowd(bridges.BridgeCase):
    def test_five_hundred_killed_clients_leave_nothing(self):
        self.kill_clients(500)


if __name__ == "__main__":
    namespaces.need()
    bridges.main()
