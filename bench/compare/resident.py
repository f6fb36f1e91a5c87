"""Resident peers: worker processes that stay connected and run one block of work whenever they are told to."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

START_TIMEOUT_S = 30
PAGE_BYTES = os.sysconf("SC_PAGESIZE")


class PeerError(Exception):
    """A worker refused, failed or fell silent. The message says which peer, which rank and why."""


class _Line:
    """One worker's control connection: text lines with a deadline. Not thread-safe."""

    def __init__(self, connection):
        self._connection = connection
        self._pending = b""

    def receive(self, timeout_s):
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._pending:
            self._connection.settimeout(max(0.001, deadline - time.monotonic()))
            chunk = self._connection.recv(65536)
            if not chunk:
                raise ConnectionError("the worker closed its control connection")
            self._pending += chunk
        line, self._pending = self._pending.split(b"\n", 1)
        return line.decode()

    def send(self, text):
        self._connection.sendall(text.encode() + b"\n")

    def close(self):
        self._connection.close()


class ResidentPeer:
    """The ranks of one peer. start() connects them; run() orders a block; close() ends them and removes their traces.

    `commands` is a list of command lines (one per process to start); {control}, {page} and {tmp} are filled in.
    Not thread-safe."""

    def __init__(self, name, commands, ranks=2, environment=None):
        self.name = name
        self.description = ""
        self._commands = commands
        self._ranks = ranks
        self._environment = environment or {}
        self._processes = []
        self._lines = []
        self._tmp = None
        self._page = -1

    def start(self):
        self._tmp = tempfile.mkdtemp(prefix="rbbench-")
        self._page = os.memfd_create("turn-page", 0)
        os.ftruncate(self._page, PAGE_BYTES)
        try:
            self._start_processes()
        except (OSError, PeerError) as problem:
            stderr = self._stderr_tail()
            self.close()
            raise PeerError(f"{self.name}: {problem}{stderr}") from problem
        except BaseException:  # told to end: who would close us does not know us yet
            self.close()
            raise

    def runtime_dir(self):
        """Where the peer's programs keep what they share. Goes with the peer."""
        return os.path.join(self._tmp, "rb")

    def _clear(self):
        """What to do when the processes have ended, before their folder is removed."""

    def _start_processes(self):
        path = os.path.join(self._tmp, "control")
        places = {"control": path, "page": f"/proc/{os.getpid()}/fd/{self._page}", "tmp": self._tmp}
        environment = dict(os.environ, TMPDIR=self._tmp, RINGBOLT_RUNTIME_DIR=self.runtime_dir())
        environment.update(self._environment)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(path)
            listener.listen(self._ranks)
            listener.settimeout(START_TIMEOUT_S)
            for index, command in enumerate(self._commands):
                with open(os.path.join(self._tmp, f"stderr-{index}"), "wb") as stderr:
                    self._processes.append(subprocess.Popen(
                        [word.format(**places) for word in command], env=environment, stdin=subprocess.DEVNULL,
                        stdout=stderr, stderr=stderr, start_new_session=True))
            lines = {}
            while len(lines) < self._ranks:
                line = _Line(listener.accept()[0])
                verb, rank = self._words(line, START_TIMEOUT_S)
                assert verb == "hello", verb
                lines[int(rank)] = line
        self._lines = [lines[rank] for rank in range(self._ranks)]
        blobs = [self._words(line, START_TIMEOUT_S)[1] for line in self._lines]
        for line in self._lines:
            line.send("peers " + " ".join(blobs))
        for line in self._lines:
            self.description = self._answer(line, START_TIMEOUT_S).split(" ", 1)[1]

    def _words(self, line, timeout_s):
        return self._answer(line, timeout_s).split(" ")

    def _answer(self, line, timeout_s):
        try:
            text = line.receive(timeout_s)
        except TimeoutError as late:
            raise PeerError(f"no answer from a worker within {timeout_s} s") from late
        except OSError as gone:
            raise PeerError(str(gone)) from gone
        if text.startswith("error "):
            raise PeerError(text[len("error "):])
        return text

    def run(self, operation, size, iterations, is_touched, timeout_s=60):
        """Runs one block on all ranks; returns one dictionary of figures per rank."""
        order = f"run {operation} {size} {iterations} {'touch' if is_touched else 'still'}"
        try:
            for line in self._lines:
                line.send(order)
        except OSError as problem:
            raise PeerError(f"{self.name}: {order}: {problem}{self._stderr_tail()}") from problem
        answers = []
        problems = []
        for rank, line in enumerate(self._lines):
            try:  # one rank's failure is often another's fault: ask all
                answers.append(self._answer(line, 2 if problems else timeout_s))
            except PeerError as problem:
                problems.append(f"rank {rank}: {problem}")
        if problems:
            raise PeerError(f"{self.name}: {order}: {'; '.join(problems)}{self._stderr_tail()}")
        return [{key: float(value) for key, value in (word.split("=") for word in answer.split(" ")[1:])}
                for answer in answers]

    def _stderr_tail(self):
        tail = ""
        for index in range(len(self._commands)):
            path = os.path.join(self._tmp, f"stderr-{index}")
            if os.path.exists(path):
                with open(path, encoding="utf-8", errors="replace") as file:
                    tail += "".join("\n    " + line.rstrip() for line in file.readlines()[-8:])
        return tail

    def close(self):
        for line in self._lines:
            try:
                line.send("quit")
            except OSError:
                pass
            line.close()
        self._lines = []
        for process in self._processes:
            self._end(process)
        self._processes = []
        if self._page >= 0:
            os.close(self._page)
            self._page = -1
        if self._tmp is not None:
            self._clear()
            shutil.rmtree(self._tmp, ignore_errors=True)

    @staticmethod
    def _end(process):
        """Waits for an orderly end; kills the process group that we made if it does not come."""
        for end in (None, signal.SIGTERM, signal.SIGKILL):
            if end is not None:
                try:
                    os.killpg(process.pid, end)
                except ProcessLookupError:
                    pass
            try:
                process.wait(timeout=5)
                return
            except subprocess.TimeoutExpired:
                continue
