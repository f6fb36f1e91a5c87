#!/usr/bin/env python3
"""The package ringbolt of python/: redis-py and valkey-py over RDMA.

    python_client_test.py SOURCE BUILD debian         Debian's redis-py and the example of a key-value server
    python_client_test.py SOURCE BUILD valkey         Debian's redis-py and stock Valkey
    python_client_test.py SOURCE BUILD pip            what PyPI has of redis-py and valkey-py today, and both servers

Exit status 77: something of that can't be had here."""

import asyncio
import importlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import servers

if len(sys.argv) == 5:
    from ringbolt import asyncio_stream
    from ringbolt import stream as streams

SOURCE, BUILD = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
PACKAGE, SERVER, RUNTIME = *sys.argv[3:5], *[""] * (5 - len(sys.argv)), os.environ.get("RINGBOLT_RUNTIME_DIR", "")
SHORT_S = 0.3
HANG_S = 30  # what is not over by then never will be


BLOCK = bytes((i * 167 + (i >> 8) * 13) & 0xff for i in range(1 << 16))


def pattern(size):
    """Bytes that depend on where they lie, and on how many they are."""
    block = BLOCK[size % 256:]
    return (block * (size // len(block) + 1))[:size]


class Client(unittest.TestCase):
    def setUp(self):
        self.server = servers.Server(SERVER, SOURCE, BUILD, RUNTIME)
        self.addCleanup(lambda: self.server.end())
        self.package = importlib.import_module(PACKAGE)
        self.connection_class = importlib.import_module(f"ringbolt.{PACKAGE}").RdmaConnection
        self.client = self.made()

    def made(self, port=servers.PORT, **options):
        if SERVER == "example" and int(self.package.__version__.split(".", maxsplit=1)[0]) >= 5:
            options["protocol"] = 2  # the example knows no HELLO
        pool = self.package.ConnectionPool(connection_class=self.connection_class, host="127.0.0.1", port=port, **options)
        self.addCleanup(pool.disconnect)
        kind = self.package.Valkey if PACKAGE == "valkey" else self.package.Redis
        return kind(connection_pool=pool)

    def connected(self):
        connection = self.client.connection_pool.get_connection("PING")
        connection.connect()
        self.addCleanup(connection.disconnect)
        return connection

    def in_threads(self, count, act):
        """Errors of the threads, of which none may hang."""
        problems = []

        def run(number):
            try:
                act(number)
            except Exception as problem:  # pylint: disable=broad-except
                problems.append(problem)
        threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(count)]
        for thread in threads:
            thread.start()
        return lambda: [thread.join(HANG_S) for thread in threads] and (any(t.is_alive() for t in threads), problems)

    def test_values_of_all_sizes(self):
        for size in (0, 1, 65536, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 16 << 20):
            with self.subTest(size=size):
                value = pattern(size)
                self.assertTrue(self.client.set(b"\x00\r\n\xff", value))
                self.assertEqual(self.client.get(b"\x00\r\n\xff"), value)

    def test_pipeline_of_ten_thousand(self):
        pipeline = self.client.pipeline(transaction=False)
        for i in range(10_000):
            pipeline.set(f"key{i}", i) if i % 2 else pipeline.get(f"key{i - 1}")
        answers = pipeline.execute()
        wanted = [None, *(True if i % 2 else b"%d" % (i - 1) for i in range(1, 10_000))]
        self.assertTrue(answers == wanted, "answers are missing, or not in their order")  # a difference takes minutes to show

    def test_fifty_threads(self):
        def work(number):
            for i in range(20):
                value = pattern(1000 + 50 * number + i)
                self.client.set(f"key{number}", value)
                self.assertEqual(self.client.get(f"key{number}"), value)
        self.assertEqual(self.in_threads(50, work)(), (False, []))

    @unittest.skipIf(SERVER == "example", "the example knows no channels")
    def test_channels(self):
        channels = self.client.pubsub()
        channels.subscribe("news")
        self.assertEqual(channels.get_message(timeout=HANG_S)["type"], "subscribe")
        began = time.monotonic()
        # Longer than the server's keepalives are apart, which are no message.
        self.assertIsNone(channels.get_message(timeout=3.5))
        self.assertGreater(time.monotonic() - began, 3.4)
        for size in (1, 3 << 20):
            self.client.publish("news", pattern(size))
            self.assertEqual(channels.get_message(timeout=HANG_S)["data"], pattern(size))
        channels.close()

    def test_a_server_that_does_not_answer(self):
        client = self.made(socket_timeout=SHORT_S)
        client.set("key", "value")
        self.server.process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        with self.assertRaises(self.package.TimeoutError):
            client.get("key")
        self.assertGreaterEqual(time.monotonic() - began, SHORT_S)
        self.assertLess(time.monotonic() - began, HANG_S)
        # Nor does it complete a connection, and a value that fits nowhere is not sent.
        with self.assertRaises((self.package.TimeoutError, self.package.ConnectionError)):
            self.made(socket_timeout=SHORT_S, socket_connect_timeout=SHORT_S).set("key", pattern(40 << 20))
        self.server.process.send_signal(signal.SIGCONT)
        self.assertEqual(self.made(health_check_interval=1).get("key"), b"value")

    def test_a_server_that_ends_and_comes_back(self):
        waiting = self.made()  # without a limit
        waiting.set("key", "value")
        retry = importlib.import_module(f"{PACKAGE}.retry").Retry(importlib.import_module(f"{PACKAGE}.backoff").NoBackoff(), 3)
        patient = self.made(retry=retry, retry_on_error=[self.package.ConnectionError])
        patient.ping()
        self.server.process.send_signal(signal.SIGSTOP)
        join = self.in_threads(1, lambda _: waiting.get("key"))
        self.server.end()
        is_hanging, problems = join()
        self.assertFalse(is_hanging)
        self.assertIsInstance(problems[0], self.package.ConnectionError)
        with self.assertRaisesRegex(self.package.ConnectionError, "127.0.0.1:6379.*refused: nobody listens there over RDMA"):
            waiting.get("key")
        self.server = servers.Server(SERVER, SOURCE, BUILD, RUNTIME)
        self.assertIsNone(waiting.get("key"))
        self.assertIsNone(patient.get("key"))  # of its connection, which is dead, nothing is seen

    def test_a_stream_that_another_thread_closes(self):
        stream = self.connected()._sock.stream  # pylint: disable=protected-access
        ends = []
        join = self.in_threads(4, lambda _: ends.append(stream.read(1)))
        stream.end(0.1)
        stream.close()
        is_hanging, problems = join()
        self.assertFalse(is_hanging)
        self.assertEqual(len(ends) + len(problems), 4)
        self.assertEqual({type(problem) for problem in problems} - {OSError, ConnectionAbortedError, ConnectionResetError}, set())
        with self.assertRaisesRegex(OSError, "was closed"):
            stream.read(1)

    def test_a_signal_ends_what_waits(self):
        class Interrupted(Exception):
            pass

        def interrupt(*_):
            raise Interrupted
        before = signal.signal(signal.SIGALRM, interrupt)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        connection = self.connected()
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with self.assertRaises(Interrupted):
            connection.read_response()

    def test_a_child_of_fork(self):
        self.client.set("key", "value")
        child = os.fork()
        if child == 0:
            os._exit(0 if self.client.get("key") == b"value" else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(self.client.get("key"), b"value")

    def test_it_says_what_carries_it_or_why_nothing_does(self):
        connection = self.connected()
        self.assertIn(f"rdma={connection.device}", repr(connection))
        self.assertIn("rdma", connection.device)
        with self.assertRaisesRegex(self.package.ConnectionError, "127.0.0.1:7.*nobody listens there over RDMA"):
            self.made(port=7).ping()
        # A copy that finds neither a clone nor an installation around it.
        shutil.copytree(SOURCE / "python", f"{RUNTIME}/python", dirs_exist_ok=True)
        program = (f"import {PACKAGE} as p, ringbolt.{PACKAGE} as r\n"
                   "try: r.RdmaConnection(host='127.0.0.1').connect()\n"
                   "except p.ConnectionError as problem: print(problem)\n")
        for change, word in (({"RINGBOLT_VERBS": "/nowhere"}, "/nowhere"), ({"LD_LIBRARY_PATH": ""}, "LD_LIBRARY_PATH")):
            environment = os.environ | {"PYTHONPATH": f"{RUNTIME}/python"} | change
            said = subprocess.run([sys.executable, "-B", "-c", program], env=environment, text=True, capture_output=True,
                                  check=True, timeout=HANG_S).stdout
            self.assertIn(word, said)


class Asynchronous(unittest.TestCase):
    def setUp(self):
        self.server = servers.Server(SERVER, SOURCE, BUILD, RUNTIME)
        self.addCleanup(lambda: self.server.end())
        self.package = importlib.import_module(PACKAGE)
        self.asyncio = importlib.import_module(f"{PACKAGE}.asyncio")
        self.connection_class = importlib.import_module(f"ringbolt.{PACKAGE}_asyncio").RdmaConnection

    def made(self, port=servers.PORT, **options):
        if SERVER == "example" and int(self.package.__version__.split(".", maxsplit=1)[0]) >= 5:
            options["protocol"] = 2
        pool = self.asyncio.ConnectionPool(connection_class=self.connection_class, host="127.0.0.1", port=port, **options)
        return (self.asyncio.Valkey if PACKAGE == "valkey" else self.asyncio.Redis)(connection_pool=pool)

    def test_all_at_once(self):
        asyncio.run(asyncio.wait_for(self.all_at_once(), HANG_S))

    async def all_at_once(self):
        client = self.made()
        for size in (0, 1, (1 << 20) + 1, 16 << 20):
            await client.set("key", pattern(size))
            self.assertTrue(await client.get("key") == pattern(size))
        pipeline = client.pipeline(transaction=False)
        for i in range(10_000):
            pipeline.set(f"key{i}", i)
        self.assertEqual(await pipeline.execute(), [True] * 10_000)

        async def work(number):
            for i in range(20):
                await client.set(f"key{number}", pattern(1000 + 50 * number + i))
                self.assertEqual(await client.get(f"key{number}"), pattern(1000 + 50 * number + i))
        await asyncio.gather(*(work(i) for i in range(50)))

        with self.assertRaisesRegex(self.package.ConnectionError, "nobody listens there over RDMA"):
            await self.made(port=7).ping()
        hurried = self.made(socket_timeout=SHORT_S)
        await hurried.ping()
        waiting = self.made()
        await waiting.ping()
        self.server.process.send_signal(signal.SIGSTOP)
        with self.assertRaises(self.package.TimeoutError):
            await hurried.get("key")
        question = asyncio.ensure_future(waiting.get("key"))
        await asyncio.sleep(0)
        self.server.end()
        with self.assertRaises(self.package.ConnectionError):
            await question
        self.server = servers.Server(SERVER, SOURCE, BUILD, RUNTIME)
        self.assertIsNone(await waiting.get("key"))
        for one in (client, hurried, waiting):
            await one.connection_pool.disconnect()


class Binding(unittest.TestCase):
    def test_both_ends_in_one_process(self):
        service = streams.Service(verbs="soft", memory_budget_bytes=64 << 20)
        listener = service.listen("127.0.0.1", receive_buffers=2)
        with self.assertRaises(BlockingIOError):
            listener.accept(0)
        with service.connect("127.0.0.1", listener.port, 0) as there, listener.accept(HANG_S) as here:
            listener.close()
            with self.assertRaises(BlockingIOError):
                here.read(1, 0)
            with self.assertRaises(TimeoutError):
                here.read(1, 0.01)
            for data in (b"bytes", bytearray(b"bytes"), memoryview(b"some bytes")[5:]):
                there.write_all(data, HANG_S)
                self.assertTrue(here.wait(streams.READABLE, HANG_S) & streams.READABLE)
                self.assertEqual(here.peek(3, HANG_S), b"byt")
                self.assertEqual(here.read(100, HANG_S), b"bytes")
            with self.assertRaisesRegex(TimeoutError, "."):  # nobody reads
                there.write_all(bytes(8 << 20), 0.05)
            self.assertGreaterEqual(there.statistics()["stalls"], 1)
            self.assertGreaterEqual(there.statistics()["bytes_sent"], 1 << 20)
            with self.assertRaises(ValueError):
                here.read(1, -1)
            there.close()
            while here.read(1 << 20, HANG_S):
                pass
            self.assertEqual((here.ended, here.words != ""), ("peer-closed", True))
        with self.assertRaises(OSError) as over:  # the budget of memory
            service.connect("127.0.0.1", 7, HANG_S, receive_bytes=16 << 20, receive_buffers=16)
        self.assertIn("budget", str(over.exception))
        service.close()

    def test_a_transport_whose_peer_has_gone_ends_with_the_reason(self):
        service = streams.Service(verbs="soft", memory_budget_bytes=64 << 20)
        listener = service.listen("127.0.0.1", receive_buffers=2)
        there, here = service.connect("127.0.0.1", listener.port, 0), listener.accept(HANG_S)
        there.wait(streams.CONNECTED, HANG_S)
        loop = asyncio.new_event_loop()
        lost = loop.create_future()

        class Protocol(asyncio.Protocol):
            def connection_lost(self, exc):
                lost.set_result(exc)

        transport = asyncio_stream.StreamTransport(loop, there, Protocol())
        here.close()
        there.wait(streams.ENDED, HANG_S)
        transport.write(b"too late")
        self.assertTrue(transport.is_closing())
        self.assertRegex(str(loop.run_until_complete(asyncio.wait_for(lost, HANG_S))), "peer has closed")
        loop.close()
        listener.close()
        service.close()


def run(python, package, server):
    """In a process that finds the libraries from its beginning on."""
    with tempfile.TemporaryDirectory(prefix="rbp-") as runtime:
        environment = servers.environment(BUILD, runtime) | {"PYTHONPATH": f"{SOURCE}/python"}
        return subprocess.run([python, "-B", __file__, SOURCE, BUILD, package, server], env=environment, check=False).returncode


def main():
    if len(sys.argv) == 5:
        print(f"{PACKAGE} {importlib.import_module(PACKAGE).__version__}, {SERVER}", flush=True)
        unittest.main(argv=sys.argv[:1], verbosity=2)
    if PACKAGE == "pip":
        python = servers.need_clients(SOURCE)
        cases = [(python, package, server) for package in ("redis", "valkey") for server in ("example", "valkey")]
    else:
        cases = [("/usr/bin/python3", "redis", "valkey" if PACKAGE == "valkey" else "example")]
        if subprocess.run([cases[0][0], "-c", "import redis"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
            print("skip: /usr/bin/python3 has no redis (Debian: python3-redis)")
            return 77
    if any("valkey" in case for case in cases):
        servers.need_valkey(SOURCE)
    return max(run(*case) for case in cases)


if __name__ == "__main__":
    sys.exit(main())
