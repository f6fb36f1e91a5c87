"""The servers that clients over streams are tried with: stock Valkey, and the example of a key-value server."""

import os
import pathlib
import subprocess
import sys

PORT = 6379  # of the runtime folder's own: nobody else's is in the way


def environment(build, runtime):
    """For programs that meet over the software device in the folder `runtime`."""
    made = dict(os.environ, RINGBOLT_RUNTIME_DIR=str(runtime), RINGBOLT_VERBS="soft",
                LD_LIBRARY_PATH=f"{build}/lib:{build}/lib/ringbolt")
    for name in ("RINGBOLT_CLUSTER", "RINGBOLT_NODE", "RINGBOLT_LIKE", "RINGBOLT_FAULTS"):
        made.pop(name, None)
    return made


class Server:
    """`kind` example or valkey, listening on 127.0.0.1:PORT over RDMA when this is made."""

    def __init__(self, kind, source, build, runtime, port=PORT):
        if kind == "valkey":
            words = [pathlib.Path(source, "build/valkey/valkey-server"), "--port", 0, "--save", "", "--rdma-bind", "127.0.0.1",
                     "--rdma-port", port, "--protected-mode", "no"]
            sign = "Ready to accept connections"
        else:
            words = [pathlib.Path(build, "bin/key_value_server"), "--bind", "127.0.0.1", "--rdma", port]
            sign = "rdma "
        self.process = subprocess.Popen(list(map(str, words)), env=environment(build, runtime), text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for line in self.process.stdout:
            if sign in line:
                return
        raise RuntimeError(f"{words[0]} ended before it listened: exit status {self.process.wait()}")

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def need_valkey(source):
    """Builds it the first time. Skips the test, exit status 77, where it can't be had."""
    setup = subprocess.run([pathlib.Path(source, "scripts/setup-valkey")], stderr=subprocess.STDOUT, stdout=subprocess.PIPE,
                           text=True, check=False)
    if setup.returncode != 0:
        print(f"skip: no Valkey: {(setup.stdout.strip().splitlines() or ['no word of why'])[-1]}")
        sys.exit(77)


def need_clients(source):
    """A Python with the clients that PyPI has, made the first time: its path. Skips the test likewise."""
    setup = subprocess.run([pathlib.Path(source, "scripts/setup-python"), "clients"], stderr=subprocess.STDOUT,
                           stdout=subprocess.PIPE, text=True, check=False)
    if setup.returncode != 0:
        print(f"skip: {(setup.stdout.strip().splitlines() or ['no word of why'])[-1]}")
        sys.exit(77)
    return str(pathlib.Path(source, "build/python-clients/bin/python3"))
