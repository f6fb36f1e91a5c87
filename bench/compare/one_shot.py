"""Peers that cannot stay resident: Debian's ucx_perftest and fi_pingpong, run anew for every block.

Start-up is outside of what they time, and they warm up by themselves; the block is just longer to get."""

import os
import socket
import subprocess
import time

from resident import PeerError

LISTEN_STATE = "0A"


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_listening(port):
    """Whether somebody listens on the TCP port, without connecting to it (these servers accept only once)."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="ascii") as rows:
            for row in list(rows)[1:]:
                fields = row.split()
                if fields[3] == LISTEN_STATE and int(fields[1].rsplit(":", 1)[1], 16) == port:
                    return True
    return False


class _Pair:
    """A server on core 0 and a client on core 1; both end by themselves. Not thread-safe."""

    START_TIMEOUT_S = 10
    RUN_TIMEOUT_S = 60

    def __init__(self, name, environment):
        self.name = name
        self.description = name
        self._environment = dict(os.environ, **environment)

    def start(self):
        """Nothing is resident."""

    def close(self):
        """Nothing is resident."""

    def _last_line(self, server_command, client_command, port):
        server = subprocess.Popen(["taskset", "-c", "0"] + server_command, env=self._environment,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + self.START_TIMEOUT_S
            while not is_listening(port):
                if time.monotonic() > deadline or server.poll() is not None:
                    raise PeerError(f"{self.name}: the server does not listen on port {port}")
                time.sleep(0.01)
            client = subprocess.run(["taskset", "-c", "1"] + client_command, env=self._environment,
                                    capture_output=True, text=True, timeout=self.RUN_TIMEOUT_S, check=False)
            if client.returncode != 0 or not client.stdout.strip():
                raise PeerError(f"{self.name}: exit code {client.returncode}: {client.stderr.strip()}")
            return client.stdout.strip().splitlines()[-1].split()
        except subprocess.TimeoutExpired as late:
            raise PeerError(f"{self.name}: no result within {self.RUN_TIMEOUT_S} s") from late
        finally:
            try:
                server.wait(timeout=2)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


class UcxPerftest(_Pair):
    """ucx_perftest -t `test`. It neither rewrites nor reads its payload."""

    P50_COLUMN, RATE_COLUMN = 1, 7

    def __init__(self, name, test, transports):
        super().__init__(name, {"UCX_TLS": transports, "UCX_LOG_LEVEL": "error"})
        self.description = f"ucx_perftest -t {test}, UCX_TLS={transports}"
        self._test = test

    def run(self, operation, size, iterations, _is_touched, timeout_s=60):
        del timeout_s
        port = free_port()
        client = ["ucx_perftest", "127.0.0.1", "-p", str(port), "-t", self._test, "-s", str(size), "-n",
                  str(iterations), "-w", str(max(10, iterations // 10)), "-f"]
        words = self._last_line(["ucx_perftest", "-p", str(port), "-f"], client, port)
        if operation.startswith("rate"):
            return [{"rate": float(words[self.RATE_COLUMN]), "seconds": iterations / float(words[self.RATE_COLUMN])}]
        p50_ns = float(words[self.P50_COLUMN]) * 1e3
        return [{"p50_ns": p50_ns, "seconds": 2e-9 * p50_ns * iterations}]


class FabricPingpong(_Pair):
    """fi_pingpong over libfabric's shm provider: a mean, not a median, since it prints no other."""

    USEC_COLUMN = 6

    def __init__(self, name):
        super().__init__(name, {})
        self.description = "fi_pingpong -p shm -e rdm"

    def run(self, _operation, size, iterations, _is_touched, timeout_s=60):
        del timeout_s
        port = free_port()
        common = ["fi_pingpong", "-p", "shm", "-e", "rdm", "-I", str(iterations), "-S", str(size)]
        words = self._last_line(common + ["-B", str(port)], common + ["-P", str(port), "127.0.0.1"], port)
        p50_ns = float(words[self.USEC_COLUMN]) * 1e3
        return [{"p50_ns": p50_ns, "seconds": 2e-9 * p50_ns * iterations}]
