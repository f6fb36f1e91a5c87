"""Stock Valkey, which speaks RDMA by itself, on one side of a bridge: its server behind the one that programs of TCP use,
and its clients before the one that leads to a Redis.

    valkey_test.py RINGBOLT SOURCE        exit status 77 if Valkey can't be had here"""

import pathlib
import subprocess
import sys

import bridges
from bridges import Bridge, data, wait_until

bridges.need("redis-check-rdb", "redis-cli", "redis-benchmark")
SOURCE = pathlib.Path(sys.argv.pop(2))
VALKEY = SOURCE / "build/valkey"
SIZES = (1, 65536, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20)


class Valkey(bridges.BridgeCase):
    def setUp(self):
        super().setUp()
        self.environment["LD_LIBRARY_PATH"] = str(pathlib.Path(bridges.command.RINGBOLT).parents[1] / "lib/ringbolt")

    def check_values(self, *cli):
        for size in SIZES:
            self.assertEqual(self.run_words(*cli, "-x", "SET", "value", stdin=data(size, "value")), b"OK\n")
            self.assertEqual(self.run_words(*cli, "GET", "value")[:-1], data(size, "value"))

    def test_its_server_for_programs_of_tcp(self):
        words = "--port 0 --rdma-bind 127.0.0.1 --rdma-port 6379 --protected-mode no --save"
        server = subprocess.Popen([VALKEY / "valkey-server", *words.split(), ""], env=self.environment,
                                  stdout=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        bridge = Bridge(self, "--listen", "tcp:127.0.0.1:0", "--connect", "rdma:127.0.0.1:6379", "--linger", "200",
                        "--stats", "127.0.0.1:0")
        cli = ("redis-cli", "-p", bridge.port, "-e")
        wait_until(lambda: subprocess.run([*map(str, cli), "PING"], capture_output=True, check=False).stdout == b"PONG\n",
                   "the server answers")
        self.check_values(*cli)
        said = self.run_words("redis-benchmark", "-p", bridge.port, "-t", "set,get", "-n", 20000, "-c", 20, "-q").decode()
        print(said.replace("\r", "\n").strip().splitlines()[-1])
        wait_until(lambda: bridge.counts()["connections"] == 0, "all have ended")

    def test_its_clients_for_a_server_of_tcp(self):
        bridge = Bridge(self, "--listen", "rdma:127.0.0.1:0", "--connect", f"unix:{self.start_redis()}", "--stats",
                        "127.0.0.1:0")
        there = ("--rdma", "-h", "127.0.0.1", "-p", bridge.port)
        self.check_values(VALKEY / "valkey-cli", *there, "-e")
        said = self.run_words(VALKEY / "valkey-benchmark", *there, "-t", "set,get", "-n", 20000, "-c", 20, "-q").decode()
        print(said.replace("\r", "\n").strip().splitlines()[-1])
        wait_until(lambda: bridge.counts()["connections"] == 0, "all have ended")
        self.assertEqual(bridge.counts()["peer-closed"], bridge.counts()["accepted_total"])


if __name__ == "__main__":
    setup = subprocess.run([SOURCE / "scripts/setup-valkey"], stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True,
                           check=False)
    if setup.returncode != 0:
        print(f"skip: no Valkey: {(setup.stdout.strip().splitlines() or ['no word of why'])[-1]}")
        sys.exit(77)
    bridges.main()
