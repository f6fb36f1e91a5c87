"""`ringbolt bridge`, two of them back to back on one machine: redis, bytes in both directions, ends, limits, drain."""

import contextlib
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import struct
import threading

import bridges
import command
from bridges import Bridge, BridgeCase, Target, connect, data, echo, read_all, wait_until

SHORT = ("--linger", "200")
bridges.need("redis-check-rdb", "redis-cli", "redis-benchmark", "curl")


class Redis(BridgeCase):
    def test_stock_programs_and_values_of_every_size(self):
        near, far = self.back_to_back(f"unix:{self.start_redis()}", *SHORT, far_words=SHORT)
        cli = ("redis-cli", "-p", near.port, "-e")
        self.assertEqual(self.run_words(*cli, "PING"), b"PONG\n")
        for size in (0, 1, 4096, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5 << 20):
            value = data(size, "value")
            self.assertEqual(self.run_words(*cli, "-x", "SET", "value", stdin=value), b"OK\n")
            self.assertEqual(self.run_words(*cli, "GET", "value")[:-1], value)
        said = self.run_words("redis-benchmark", "-p", near.port, "-t", "set,get", "-n", "5000", "-c", "20", "-P", "4", "-q")
        self.assertEqual(said.count(b"requests per second"), 2, said)
        self.assertGreater(far.counts()["announcements_sent_total"], 20)  # 5 MiB through buffers of 1 MiB
        self.assertEqual(near.counts()["to_fabric_bytes_total"], far.counts()["to_socket_bytes_total"])
        wait_until(lambda: near.counts()["connections"] + far.counts()["connections"] == 0, "all have ended")
        for bridge in (near, far):
            status, said, complaint = bridge.end()
            self.assertEqual((status, complaint), (0, ""))
            self.assertRegex(said, r"^\S+ -> \S+: \d+ connections, \d+ bytes there, \d+ back; \S+ \d+")


class Bytes(BridgeCase):
    def test_both_directions_are_full_at_once(self):
        there, back = data(20 << 20, "there"), data(20 << 20, "back")

        def serve(client):
            writing = threading.Thread(target=client.sendall, args=(back,))
            writing.start()
            self.assertEqual(read_all(client, len(there)), there)
            writing.join()
            self.assertEqual(client.recv(1), b"")

        target = Target(self, serve)
        near, _ = self.back_to_back(target.place, *SHORT, "--receive-bytes", "64K", far_words=("--receive-bytes", "64K"))
        with connect(near.port) as client:
            writing = threading.Thread(target=client.sendall, args=(there,))
            writing.start()
            self.assertEqual(read_all(client, len(back)), back)
            writing.join()
        wait_until(lambda: target.threads and not any(one.is_alive() for one in target.threads), "the target has ended")
        self.assertEqual(target.failures, [])

    def test_a_reader_that_sleeps_holds_up_its_writer_and_nothing_is_kept_in_between(self):
        go = threading.Event()

        def serve(client):
            go.wait(bridges.LIMIT_S)
            client.sendall(len(read_all(client, 128 << 20)).to_bytes(8, "big"))

        near, far = self.back_to_back(Target(self, serve).place)
        self.addCleanup(go.set)
        sent = []

        def send(client):
            block = data(1 << 20, "block")
            while sum(sent) < 128 << 20:
                sent.append(client.send(block))

        with connect(near.port) as client:
            writing = threading.Thread(target=send, args=(client,))
            writing.start()
            wait_until(lambda: far.counts()["socket_stalls_total"] > 0 and near.counts()["fabric_stalls_total"] > 0,
                       "all is full")
            self.assertLess(sum(sent), 64 << 20)  # the kernel's buffers at both ends, and two of ours
            memory = int(pathlib.Path(f"/proc/{far.process.pid}/statm").read_text().split()[1]) * 4096
            self.assertLess(memory, 64 << 20)
            go.set()
            self.assertEqual(int.from_bytes(read_all(client, 8), "big"), 128 << 20)
            writing.join()

    def test_half_close_lingers_for_the_answer(self):
        done = threading.Event()

        def serve(client):
            client.sendall(b"begin ")
            self.assertEqual(read_all(client, 5), b"hello")
            self.assertEqual(read_all(client), b"")  # the end, behind the last byte
            done.set()

        target = Target(self, serve)
        near, far = self.back_to_back(target.place, "--linger", "500")
        with connect(near.port) as client:
            client.sendall(b"hello")
            client.shutdown(socket.SHUT_WR)
            self.assertEqual(read_all(client), b"begin ")
        self.assertTrue(done.wait(bridges.LIMIT_S))
        wait_until(lambda: near.counts()["connections"] + far.counts()["connections"] == 0, "both have ended")
        self.assertEqual(target.failures, [])
        self.assertEqual(near.counts()["socket-closed"], 1)
        self.assertEqual(far.counts()["peer-closed"], 1)

    def test_answers_go_on_long_after_a_half_close(self):
        answer = data(8 << 20, "answer")
        go = threading.Event()

        def serve(client):
            for at in range(0, len(answer), 1 << 20):
                client.sendall(answer[at:at + (1 << 20)])
                go.wait(0.2)  # all of it takes longer than the linger time

        near, _ = self.back_to_back(Target(self, serve).place, "--linger", "900")
        with connect(near.port) as client:
            client.shutdown(socket.SHUT_WR)
            self.assertEqual(read_all(client), answer)


class Ends(BridgeCase):
    def test_killed_clients_leave_nothing(self):
        self.kill_clients(60)

    def test_resets_and_killed_bridges_are_passed_on(self):
        near, far = self.back_to_back(Target(self, echo).place)
        client = connect(near.port)
        client.sendall(b"x")
        self.assertEqual(read_all(client, 1), b"x")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        wait_until(lambda: near.counts().get("socket-reset") == 1 and far.counts()["connections"] == 0, "it is passed on")
        with connect(near.port) as client:
            client.sendall(b"x")
            self.assertEqual(read_all(client, 1), b"x")
            far.kill()
            with contextlib.suppress(ConnectionResetError):  # as the connection manager tells it
                self.assertEqual(client.recv(1), b"")
        wait_until(lambda: near.counts()["connections"] == 0, "it has ended")

    def test_targets_that_are_not_there(self):
        far = Bridge(self, "--listen", "rdma:127.0.0.1:0", "--connect", f"unix:{self.folder}/none", "--stats",
                     "127.0.0.1:0")
        near = Bridge(self, "--listen", "tcp:127.0.0.1:0", "--connect", far.listens[0], "--stats", "127.0.0.1:0")
        with connect(near.port) as client, contextlib.suppress(ConnectionResetError):  # before or after it was connected
            self.assertEqual(read_all(client), b"")
        self.assertEqual(far.counts()["target-refused"], 1)
        self.assertEqual(far.end()[0], 0)
        with connect(near.port) as client, self.assertRaises(ConnectionResetError):
            client.sendall(b"x")
            read_all(client)
        self.assertEqual(near.counts()["refused"], 1)
        _, _, complaint = near.end()
        self.assertIn("nobody listens there over RDMA", complaint)
        self.assertIn("no listener has this address and port", complaint)

    def test_sigterm_drains_and_a_second_one_ends_at_once(self):
        near, far = self.back_to_back(Target(self, echo).place, *SHORT, far_words=SHORT)
        with connect(near.port) as client:
            client.sendall(b"x")
            self.assertEqual(read_all(client, 1), b"x")
            near.process.send_signal(signal.SIGTERM)
            wait_until(lambda: near.counts()["draining"] == 1, "it drains")
            with self.assertRaises(ConnectionRefusedError):
                connect(near.port)
            value = data(3 << 20, "drain")
            writing = threading.Thread(target=client.sendall, args=(value,))
            writing.start()
            self.assertEqual(read_all(client, len(value)), value)
            writing.join()
        said, complaint = near.process.communicate(timeout=bridges.LIMIT_S)
        self.assertEqual(near.process.returncode, 0, complaint)
        self.assertIn("the 1 that are open", complaint)
        self.assertIn("socket-closed 1", said)
        other = Bridge(self, "--listen", "tcp:127.0.0.1:0", "--connect", far.listens[0])
        with connect(other.port) as client:
            client.sendall(b"y")
            self.assertEqual(read_all(client, 1), b"y")
            far.process.send_signal(signal.SIGTERM)
            wait_until(lambda: far.counts()["draining"] == 1, "it drains")
            self.assertEqual(far.end()[0], 128 + signal.SIGTERM)

    def test_what_is_under_way_arrives_when_the_time_to_drain_is_over(self):
        near, _ = self.back_to_back(Target(self, echo).place, "--drain", "100")
        with connect(near.port) as client:
            client.sendall(b"hello")
            self.assertEqual(read_all(client, 5), b"hello")
            near.process.send_signal(signal.SIGTERM)
            self.assertEqual(read_all(client), b"")
        said, _ = near.process.communicate(timeout=bridges.LIMIT_S)
        self.assertEqual(near.process.returncode, 0)
        self.assertIn("drained 1", said)


class Limits(BridgeCase):
    def test_connections_memory_and_addresses(self):
        near, far = self.back_to_back(Target(self, echo).place, "--max-connections", "2", far_words=("--memory", "6M"))
        with connect(near.port) as one, connect(near.port) as two:
            for client in (one, two):
                client.sendall(b"x")
                self.assertEqual(read_all(client, 1), b"x")
            with connect(near.port) as three:
                self.assertEqual(read_all(three), b"")
            self.assertEqual(near.counts()["too-many"], 1)
            # Each takes 1 MiB to receive and as much to send.
            other = Bridge(self, "--listen", "tcp:127.0.0.1:0", "--connect", far.listens[0], "--allow", "127.0.0.0/8")
            with connect(other.port) as three:
                three.sendall(b"x")
                self.assertEqual(read_all(three, 1), b"x")
                with connect(other.port) as four, self.assertRaises(ConnectionResetError):
                    four.sendall(b"x")
                    read_all(four)
            self.assertEqual(far.counts()["over-budget"], 1)
        for words in (["--listen", "tcp:127.0.0.1:0", "--connect", far.listens[0]],
                      ["--listen", "rdma:127.0.0.1:0", "--connect", f"tcp:127.0.0.1:{near.port}"]):
            strict = Bridge(self, *words, "--allow", "192.0.2.0/24", "--stats", f"{self.folder}/stats")
            client = strict
            if words[1].startswith("rdma"):
                client = Bridge(self, "--listen", "tcp:127.0.0.1:0", "--connect", strict.listens[0])
            with connect(client.port) as refused:
                with contextlib.suppress(ConnectionResetError):
                    self.assertEqual(read_all(refused), b"")
            said = self.run_words("curl", "-s", "--unix-socket", self.folder / "stats", "http://bridge/metrics").decode()
            self.assertRegex(said, r'closed_total\{.*reason="not-allowed"\} 1')
            strict.end()

    def test_out_of_descriptors_some_are_refused_and_later_ones_served(self):
        far = Bridge(self, "--listen", "rdma:127.0.0.1:0", "--connect", Target(self, echo).place)
        near = Bridge(self, "--listen", "tcp:127.0.0.1:0", "--connect", far.listens[0], "--stats", "127.0.0.1:0", *SHORT,
                      enter=("prlimit", "--nofile=100:100"))

        def is_served(kept):
            with contextlib.suppress(ConnectionError):  # of connect() as well, where the reset comes before it returns
                client = kept.enter_context(connect(near.port))
                client.sendall(b"x")
                return read_all(client, 1) == b"x"
            return False

        with contextlib.ExitStack() as kept:
            served = 0
            while is_served(kept):
                served += 1
            self.assertGreater(served, 5)
        wait_until(lambda: near.counts()["connections"] == 0, "all have ended")
        self.assertEqual(near.counts()["accepted_total"], served + 1)
        self.assertEqual(near.counts()["socket-closed"], served)  # the other one's reason is what the device lacked
        with contextlib.ExitStack() as kept:
            self.assertTrue(is_served(kept))

    def test_usage(self):
        for words, says in (
                ([], "0 times --listen"),
                (["--listen", "tcp:127.0.0.1:0"], "1 times --listen and 0 times --connect"),
                (["--listen", "tcp:127.0.0.1:0", "--connect", "unix:/x"], "joins one of rdma with one of tcp or unix"),
                (["--listen", "rdma:127.0.0.1:0", "--connect", "rdma:127.0.0.1:1"], "joins one of rdma"),
                (["--listen", "tcp:127.0.0.1:0", "--connect", "rdma:127.0.0.1:0"], "nobody listens at port 0"),
                (["--listen", "tcp:0.0.0.0:0", "--connect", "rdma:127.0.0.1:1"], "--listen-anywhere"),
                (["--listen", "tcp:[::]:0", "--connect", "rdma:127.0.0.1:1"], "--listen-anywhere"),
                (["--listen", "rdma:0.0.0.0:0", "--connect", "unix:/x"], "name the address of one"),
                (["--listen", "unix:/nowhere/x", "--connect", "rdma:127.0.0.1:1"], "No such file"),
                (["--listen", "rdma:192.0.2.1:0", "--connect", "unix:/x"], "192.0.2.1"),
                (["--listen", "tcp:127.0.0.1:0", "--connect", "rdma:127.0.0.1:1",  # the first pair has begun
                  "--listen", "rdma:192.0.2.1:0", "--connect", "unix:/x"], "192.0.2.1"),
                (["--listen", "tcp:127.0.0.1:0", "--connect", "rdma:127.0.0.1:1", "--allow", "all"], '"all"'),
                (["--listen", "tcp:127.0.0.1:0", "--connect", "rdma:127.0.0.1:1", "--stats", "x"], "--stats"),
                (["--listen", "tcp:127.0.0.1:0", "--connect", "rdma:127.0.0.1:1", "--stats", "/" + 108 * "x"],
                 "has 107 bytes at most"),
                (["--listen", "sctp:127.0.0.1:0", "--connect", "rdma:127.0.0.1:1"], "tcp:HOST:PORT")):
            with self.subTest(words=words):
                self.assertIn(says, self.call("bridge", *words, expect=2).stderr)
        anywhere = Bridge(self, "--listen", "tcp:0.0.0.0:0", "--connect", "rdma:127.0.0.1:1", "--listen-anywhere")
        self.assertEqual(anywhere.end(signal.SIGINT)[0], 0)

    def test_unix_sockets_are_for_their_owner_and_go_with_the_bridge(self):
        path = self.folder / "s"
        words = ("--listen", f"unix:{path}", "--connect", "rdma:127.0.0.1:1")
        first = Bridge(self, *words)
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        self.assertIn("another program listens there", self.call("bridge", *words, expect=2).stderr)
        first.kill()
        self.assertTrue(path.exists())
        self.assertEqual(Bridge(self, *words).end()[0], 0)  # takes the place of the stale file
        self.assertFalse(path.exists())
        path.write_text("precious")
        self.assertIn("no socket", self.call("bridge", *words, expect=2).stderr)
        self.assertEqual(path.read_text(), "precious")
        self.assertEqual(os.listdir(self.folder), ["s"])


class Service(BridgeCase):
    def test_systemd_takes_the_unit_and_what_it_starts_joins_and_drains(self):
        unit = (bridges.FOLDER.parent.parent / "examples/bridge/ringbolt-bridge@.service").read_text()
        made = self.folder / "ringbolt-bridge@test.service"
        made.write_text(unit.replace("/usr/local/bin/ringbolt", command.RINGBOLT))
        if shutil.which("systemd-analyze"):
            self.assertEqual(self.run_words("systemd-analyze", "verify", "--man=no", made), b"")
        target = Target(self, echo)
        far = Bridge(self, "--listen", "rdma:127.0.0.1:0", "--connect", target.place)
        [line] = re.findall(r"^ExecStart=(.*)$", made.read_text(), re.MULTILINE)
        line = line.replace("$PLACES", f"--listen tcp:127.0.0.1:0 --connect {far.listens[0]}")
        line = line.replace("${RUNTIME_DIRECTORY}", str(self.folder))
        program, command_name, *words = shlex.split(line)
        self.assertEqual((program, command_name), (command.RINGBOLT, "bridge"))
        near = Bridge(self, *words)
        with connect(near.port) as client:
            client.sendall(b"there and back")
            self.assertEqual(read_all(client, 14), b"there and back")
            client.shutdown(socket.SHUT_WR)
        self.assertEqual(near.end()[0], 0)


if __name__ == "__main__":
    bridges.main()
