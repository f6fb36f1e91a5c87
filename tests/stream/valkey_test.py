#!/usr/bin/env python3
"""Stock Valkey over RDMA: our client against its server, its client and benchmark against our example.

    valkey_test.py SOURCE BUILD

Exit status 77 if Valkey can't be had here."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import servers

SOURCE, BUILD = map(pathlib.Path, sys.argv[1:3])
VALKEY = SOURCE / "build/valkey"
PORT = "6379"  # of the runtime folder's own: nobody else's is in the way
LIMIT_S = 120


class Valkey(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rbv-")
        self.addCleanup(folder.cleanup)
        self.environment = servers.environment(BUILD, folder.name)

    def start(self, *words):
        log = tempfile.TemporaryFile()
        self.addCleanup(log.close)
        process = subprocess.Popen(list(map(str, words)), env=self.environment, stdout=log, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

    def call(self, *words, stdin=b""):
        done = subprocess.run(list(map(str, words)), env=self.environment, input=stdin, capture_output=True,
                              timeout=LIMIT_S, check=False)
        self.assertEqual(done.returncode, 0, f"{words}\n{done.stdout[-2000:]!r}\n{done.stderr[-2000:]!r}")
        return done.stdout

    def test_our_client_and_its_server(self):
        self.start(VALKEY / "valkey-server", "--port", "0", "--save", "", "--rdma-bind", "127.0.0.1", "--rdma-port", PORT,
                   "--protected-mode", "no")
        print(self.call(BUILD / "bin/stream_resp_client", "127.0.0.1", PORT).decode())

    def test_its_clients_and_our_server(self):
        self.start(BUILD / "bin/key_value_server", "--bind", "127.0.0.1", "--rdma", PORT)
        self.call(BUILD / "bin/stream_resp_client", "127.0.0.1", PORT)  # waits until it listens
        cli = (VALKEY / "valkey-cli", "--rdma", "-h", "127.0.0.1", "-p", PORT, "-e")
        for size in (1, 4096, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20):
            value = bytes((i * 167 + (i >> 8) * 13 + size) & 0xff for i in range(size))
            self.assertEqual(self.call(*cli, "-x", "SET", "value", stdin=value), b"OK\n")
            self.assertEqual(self.call(*cli, "GET", "value")[:-1], value)
        said = self.call(VALKEY / "valkey-benchmark", "--rdma", "-h", "127.0.0.1", "-p", PORT, "-t", "set,get", "-n", "20000",
                         "-c", "20", "-d", "512", "-q").decode().replace("\r", "\n")
        figures = [line.strip() for line in said.splitlines() if "requests per second" in line]
        self.assertEqual(len(figures), 2, said)
        print("\n".join(figures))


if __name__ == "__main__":
    servers.need_valkey(SOURCE)
    unittest.main(argv=sys.argv[:1], verbosity=2)
