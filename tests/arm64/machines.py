"""Servers and clients, each on a machine of some kind: this one's own programs, or ARM64's under QEMU."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

PATIENCE_S = 60


def skip(reason):
    print(f"skip: {reason}")
    sys.exit(77)


class Kind:
    """Of a machine: how its programs are started, where they lie, and which of our libraries they load."""

    def __init__(self, name, start, folder, libraries):
        self.name = name
        self._start = start
        self._folder = folder
        self.libraries = libraries

    def words(self, program, *options):
        path = shutil.which(program, path=str(self._folder))
        if path is None:
            skip(f"{program} is not in {self._folder}")
        return [*self._start, path, *map(str, options)]


def arm64(run, sysroot, libraries):
    return Kind("ARM64", [run], pathlib.Path(sysroot) / "usr/bin", libraries)


def own(libraries):
    return Kind("x86-64", [], "/usr/bin:/bin", libraries)


class Place:
    """Where programs run: a network namespace (None: ours), with a runtime folder of its own, and what is set there."""

    def __init__(self, namespace=None, **environment):
        self._namespace = namespace
        self._folder = tempfile.mkdtemp(prefix="rba-")
        self._environment = dict(os.environ, RINGBOLT_RUNTIME_DIR=self._folder, **environment)

    def remove(self):
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self, kind, program, *options):
        words = kind.words(program, *options)
        if self._namespace is not None:
            words = ["ip", "netns", "exec", self._namespace, *words]
        environment = dict(self._environment, LD_LIBRARY_PATH=str(kind.libraries))
        return subprocess.Popen(words, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def listens(self, port):
        words = ["ip", "netns", "exec", self._namespace] if self._namespace is not None else []
        tables = subprocess.run([*words, "cat", "/proc/net/tcp", "/proc/net/tcp6"], capture_output=True, text=True,
                                check=False).stdout
        return re.search(f":{port:04X} [0:]+ 0A", tables) is not None


def end(process):
    if process.poll() is None:
        process.kill()
    process.communicate()


def hear(process):
    """What it says until it ends; or until it has been killed, having said too little for too long."""
    try:
        return process.communicate(timeout=PATIENCE_S)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0] + f"\n(killed: it had not ended within {PATIENCE_S} s)"


def between(server_place, server_kind, client_place, client_kind, program, *options, port, address, port_option="-p",
            server_options=(), client_options=None, waits_for_port=True):
    """Runs `program` as a server and as its client; what they said. Raises unless both end well."""
    client_words = [address] if client_options is None else client_options
    server = server_place.start(server_kind, program, *options, port_option, port, *server_options)
    try:
        until = time.monotonic() + PATIENCE_S
        while waits_for_port and not server_place.listens(port) and server.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        while True:
            client = client_place.start(client_kind, program, *options, port_option, port, *client_words)
            said = hear(client)
            # Whether a connection manager listens is to be seen by asking it alone.
            if client.returncode == 0 or waits_for_port or server.poll() is not None or time.monotonic() > until:
                break
            time.sleep(0.1)
        if client.returncode != 0:
            server.kill()  # it may wait for a client for ever: what both said is what is of use
        heard = hear(server)
    finally:
        end(server)
    if client.returncode != 0 or server.returncode != 0:
        raise AssertionError(f"{program}: server ({server_kind.name}) {server.returncode}:\n{heard}\n"
                             f"client ({client_kind.name}) {client.returncode}:\n{said}")
    return heard, said
