"""What the tests of bridges share: bridges and servers that are started and ended, and programs that send and compare."""

import hashlib
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import urllib.request

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER.parent / "command"), str(FOLDER.parent / "netns")]

import command  # noqa: E402  (after the path)
from command import CommandCase, wait_until  # noqa: E402

LIMIT_S = 60 * command.TIME_SCALE


def data(size, seed):
    """Bytes that depend on their place."""
    block = b"".join(hashlib.sha256(f"{seed} {i}".encode()).digest() for i in range(2048))
    return (block * (size // len(block) + 1))[:size]


class Bridge:
    """`ringbolt bridge`, which has said where it listens. `enter`: the words before it."""

    def __init__(self, case, *words, enter=(), environment=None):
        self.process = subprocess.Popen([*enter, command.RINGBOLT, "bridge", *map(str, words)], text=True,
                                        env=environment or case.environment, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        case.addCleanup(self.kill)
        count = words.count("--listen") + words.count("--stats")
        self.lines = [self.process.stdout.readline() for _ in range(count)]
        if not all(self.lines):
            raise AssertionError(f"ringbolt bridge {words}: {self.process.communicate()}")
        self.listens = [line.split(" -> ")[0] for line in self.lines if " -> " in line]
        self.page = next((line.split()[1] for line in self.lines if line.startswith("statistics: ")), None)

    @property
    def port(self):
        return int(self.listens[0].rsplit(":", 1)[1])

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def end(self, number=signal.SIGTERM):
        """Its exit status, and what it said until then."""
        self.process.send_signal(number)
        said, complaint = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, said, complaint

    def counts(self):
        """{metric: its value, of all pairs together}; of closed_total by reason."""
        try:
            with urllib.request.urlopen(self.page, timeout=LIMIT_S) as page:
                text = page.read().decode()
        except OSError as problem:
            status = self.process.poll()
            self.process.kill()
            said = self.process.communicate()[1]
            raise AssertionError(f"{self.page}: {problem}; exit status of the bridge: {status}; it said: {said}") from problem
        found = {}
        for name, labels, value in re.findall(r"^ringbolt_bridge_(\w+)(\{.*\})? (\d+)$", text, re.MULTILINE):
            reason = re.search(r'reason="(.*?)"', labels)
            key = reason.group(1) if reason else name
            found[key] = found.get(key, 0) + int(value)
        return found

    def descriptors(self):
        return len(list(pathlib.Path(f"/proc/{self.process.pid}/fd").iterdir()))


class BridgeCase(CommandCase):
    def setUp(self):
        super().setUp()
        self.environment |= {"RINGBOLT_VERBS": "soft"}
        self.folder = self.root / "here"
        self.folder.mkdir()

    def run_words(self, *words, stdin=None, timeout=LIMIT_S, expect=0):
        done = subprocess.run(list(map(str, words)), input=stdin, capture_output=True, timeout=timeout, check=False,
                              env=self.environment)
        self.assertEqual(done.returncode, expect, f"{words}\n{done.stdout[-2000:]!r}\n{done.stderr[-2000:]!r}")
        return done.stdout

    def back_to_back(self, target, *words, far_words=()):
        """Two bridges that join a port of TCP here to `target`."""
        far = Bridge(self, "--listen", "rdma:127.0.0.1:0", "--connect", target, "--stats", "127.0.0.1:0", *far_words)
        near = Bridge(self, "--listen", "tcp:127.0.0.1:0", "--connect", far.listens[0], "--stats", "127.0.0.1:0", *words)
        return near, far

    def start_redis(self, *words, enter=(), port=0, name="redis"):
        """A redis-server at a UNIX socket, and at a port if one is given. Debian's redis-tools has it under the name of a tool
        that is the same program, which looks at its own name; the package redis-server would start one on this machine."""
        path = self.folder / f"{name}.sock"
        folder = self.folder / name
        folder.mkdir()
        log = open(folder / "log", "wb")
        self.addCleanup(log.close)
        program = folder / "redis-server"
        program.symlink_to(shutil.which("redis-check-rdb"))
        server = subprocess.Popen([*enter, str(program), "--port", str(port), "--unixsocket", str(path), "--save", "",
                                   "--dir", str(folder), *map(str, words)], stdout=log, stderr=log, env=self.environment)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        wait_until(lambda: path.exists() or server.poll() is not None, "redis-server listens")
        self.assertIsNone(server.poll(), (folder / "log").read_text())
        return path


    def kill_clients(self, count):
        """So many at once: the bridges then have neither connections, memory nor descriptors of theirs."""
        near, far = self.back_to_back(Target(self, echo).place, "--linger", "200", far_words=("--linger", "200"))
        with connect(near.port) as client:  # what stays for good is there
            client.sendall(b"x")
            self.assertEqual(read_all(client, 1), b"x")
        wait_until(lambda: near.counts()["connections"] + far.counts()["connections"] == 0, "the first has ended")
        before = near.descriptors(), far.descriptors()
        script = ("import socket,sys\nall=[]\nfor i in range(int(sys.argv[2])):\n"
                  "  s=socket.create_connection(('127.0.0.1',int(sys.argv[1])),60); s.sendall(b'%d'%i); all.append(s)\n"
                  "print(sum(len(s.recv(9)) > 0 for s in all), flush=True)\nall[0].recv(1)\n")
        clients = subprocess.Popen(["python3", "-c", script, str(near.port), str(count)], stdout=subprocess.PIPE,
                                   text=True)
        self.addCleanup(clients.communicate)
        self.addCleanup(clients.kill)
        self.assertEqual(clients.stdout.readline(), f"{count}\n")
        self.assertEqual((near.counts()["connections"], far.counts()["connections"]), (count, count))
        clients.kill()
        wait_until(lambda: near.counts()["connections"] + far.counts()["connections"] == 0, "all have ended")
        for bridge in (near, far):
            wait_until(lambda one=bridge: one.counts()["memory_bytes"] == 0, "their memory is given back")
        # Descriptors of peers' lanes go when the service thread has noticed.
        wait_until(lambda: near.descriptors() <= before[0] + 8 and far.descriptors() <= before[1] + 8,
                   "descriptors are closed")
        self.assertEqual(near.counts()["accepted_total"], count + 1)
        self.assertEqual(near.counts()["socket-closed"] + near.counts().get("socket-reset", 0), count + 1)


class Target:
    """Listens on a port of TCP, or at a path, and gives each connection to `serve`, in a thread of its own."""

    def __init__(self, case, serve, path=None):
        self.serve, self.failures, self.threads = serve, [], []
        if path is None:
            self.socket = socket.create_server(("127.0.0.1", 0), backlog=1024)
            self.place = f"tcp:127.0.0.1:{self.socket.getsockname()[1]}"
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.bind(str(path))
            self.socket.listen(1024)
            self.place = f"unix:{path}"
        accepting = threading.Thread(target=self.accept)
        accepting.start()
        case.addCleanup(accepting.join)
        case.addCleanup(self.end)

    def end(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def accept(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                break
            self.threads.append(threading.Thread(target=self.run, args=(client,)))
            self.threads[-1].start()
        for thread in self.threads:
            thread.join(LIMIT_S)

    def run(self, client):
        with client:
            client.settimeout(LIMIT_S)
            try:
                self.serve(client)
            except Exception as problem:  # pylint: disable=broad-except  (told to the test)
                self.failures.append(problem)


def echo(client):
    while piece := client.recv(1 << 20):
        client.sendall(piece)


def connect(where):
    """To a port here, or to a UNIX socket."""
    client = socket.socket(socket.AF_INET if isinstance(where, int) else socket.AF_UNIX)
    client.settimeout(LIMIT_S)
    try:
        client.connect(("127.0.0.1", where) if isinstance(where, int) else str(where))
    except OSError:
        client.close()
        raise
    return client


def read_all(client, size=None):
    """Until the end, or so many bytes."""
    pieces, left = [], size
    while left is None or left > 0:
        piece = client.recv(1 << 20 if left is None else min(left, 1 << 20))
        if not piece:
            break
        pieces.append(piece)
        left = None if left is None else left - len(piece)
    return b"".join(pieces)


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            print(f"skip: {program} is not installed")
            sys.exit(77)


def main():
    command.main()
