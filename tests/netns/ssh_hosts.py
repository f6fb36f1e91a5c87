"""Machines that ssh reaches, played by network namespaces with an sshd each."""

import os
import pathlib
import shutil
import subprocess

import namespaces
from namespaces import NamespaceCase, command

namespaces.need("ssh", "sshd", "ssh-keygen")

SSHD = shutil.which("sshd", path="/usr/sbin:/sbin:" + os.environ.get("PATH", ""))
PORT = 2222  # in namespaces of our own every port is free


class HostCase(NamespaceCase):
    """Two machines `left` and `right` with two cables; ssh uses the first. We command from `left`."""

    def setUp(self):
        super().setUp()
        self.up("ring:2", "--no-management")
        self.keys = self.root / "ssh"
        self.keys.mkdir(mode=0o700)
        for key in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.keys / key)], check=True)
        self.write_configuration()
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)  # sshd insists on it
        self.daemons = [self.start_sshd(node) for node in (0, 1)]
        for node, address in ((0, "10.77.0.1"), (1, "10.77.0.2")):
            command.wait_until(lambda: self.listens(node), f"sshd on {address} listens")
        self.lab = dict(self.environment)
        folder = self.root / "control"
        folder.mkdir(mode=0o700)
        self.environment |= {"RINGBOLT_RUNTIME_DIR": str(folder), "RINGBOLT_SSH": f"ssh -F {self.keys}/config"}

    def tearDown(self):
        self.environment = self.lab
        for daemon in self.daemons:
            daemon.kill()
            daemon.communicate()
        super().tearDown()

    def write_configuration(self):
        shutil.copy(self.keys / "user.pub", self.keys / "authorized")
        (self.keys / "config").write_text(
            "Host left\nHostName 10.77.0.1\nHost right\nHostName 10.77.0.2\nHost nobody\nHostName 10.77.0.99\n"
            f"Host *\nPort {PORT}\nIdentityFile {self.keys}/user\nIdentitiesOnly yes\nUserKnownHostsFile /dev/null\n"
            "StrictHostKeyChecking no\nLogLevel ERROR\n")
        for node in (0, 1):
            (self.root / f"host{node}").mkdir(mode=0o700)
            (self.keys / f"sshd{node}").write_text(
                f"HostKey {self.keys}/host\nAuthorizedKeysFile {self.keys}/authorized\nStrictModes no\nPidFile none\n"
                "UsePAM no\nPermitRootLogin yes\nPasswordAuthentication no\n"
                f"SetEnv {self.host_environment(node)}\n")

    def host_environment(self, node):
        return f"RINGBOLT_RUNTIME_DIR={self.root}/host{node}"

    def start_sshd(self, node):
        return subprocess.Popen(["ip", "netns", "exec", f"rb-{self.name}-{node}", SSHD, "-D", "-e", "-f",
                                 str(self.keys / f"sshd{node}"), "-p", str(PORT)],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def listens(self, node):
        return f":{PORT}" in subprocess.run(["ip", "netns", "exec", f"rb-{self.name}-{node}", "ss", "-ltn"],
                                            capture_output=True, text=True, check=True).stdout

    # Everything below is typed on the machine `left`.
    def start(self, *words, **options):
        if not hasattr(self, "lab"):
            return super().start(*words, **options)
        return subprocess.Popen(self.there(words), env=self.environment, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, **options)

    def there(self, words):
        return ["ip", "netns", "exec", f"rb-{self.name}-0", command.RINGBOLT, *map(str, words)]

    def type(self, *words, expect=0, stdin=subprocess.DEVNULL, text_in=None):
        options = {"input": text_in} if text_in is not None else {"stdin": stdin}
        done = subprocess.run(self.there(words), env=self.environment, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=90, check=False, **options)
        self.assertEqual(done.returncode, expect, f"{words}\nstdout: {done.stdout}\nstderr: {done.stderr}")
        return done

    def up_hosts(self, *options):
        said = self.type("up", "--hosts", "left,right", *options).stdout
        self.addCleanup(subprocess.run, self.there(["down", "--force"]), env=dict(self.environment), check=False,
                        capture_output=True)
        return said

    def host_state(self):
        return [path for node in (0, 1) for path in (self.root / f"host{node}").glob("nodes/*/*")]
