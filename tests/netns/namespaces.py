"""What the tests of network namespaces share: rights, names of their own, and namespaces that go away."""

import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "command"))

import command  # noqa: E402  (after the path)
from command import CommandCase  # noqa: E402


KNOCK = [sys.executable, "-B", str(pathlib.Path(__file__).resolve().parent / "knock.py")]


def skip(reason):
    print(f"skip: {reason}")
    sys.exit(77)


def need(*programs):
    """Ends the test program with a skip unless this machine lets us make namespaces and has the programs."""
    for program in ("ip", "tc", *programs):
        if not shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
            skip(f"{program} is not installed")
    probe = f"rb-probe-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True, check=False)
    subprocess.run(["ip", "netns", "delete", probe], capture_output=True, check=False)
    if made.returncode != 0:
        skip(f"no network namespaces here: {made.stderr.strip()} (they take root)")


def namespaces(name):
    """The namespaces of cluster `name` that are there."""
    folder = pathlib.Path("/run/netns")
    return sorted(path.name for path in folder.glob(f"rb-{name}-*")) if folder.is_dir() else []


class NamespaceCase(CommandCase):
    """Names its clusters after this process, so that tests can run side by side, and leaves no namespace."""

    def setUp(self):
        super().setUp()
        self.name = f"t{os.getpid()}"
        self.addCleanup(self.check_gone)

    def check_gone(self):
        left = namespaces(self.name)
        if left:
            self.call("down", "--force", "--cluster", self.name)
        self.assertEqual(left, [])
        self.assertFalse(os.path.lexists(f"/run/ringbolt/{self.name}"))

    def up(self, spec, *options):
        done = self.call("up", "--netns", "--emulate", spec, "--name", self.name, *options)
        self.addCleanup(self.down)
        return done

    def down(self):
        """Also after a test that took the cluster down itself."""
        subprocess.run([command.RINGBOLT, "down", "--force", "--cluster", self.name], env=self.environment,
                       capture_output=True, check=False)

    def on(self, node, *words, expect=0, **options):
        return self.call("exec", "-c", self.name, node, "--", *words, expect=expect, **options).stdout

    def reaches(self, node, address):
        done = subprocess.run([command.RINGBOLT, "exec", "-c", self.name, str(node), "--", *KNOCK, address],
                              env=self.environment, capture_output=True, check=False)
        return done.returncode == 0

    def start_on(self, node, *words, **options):
        program = self.start("exec", "-c", self.name, node, "--", *words, **options)
        self.addCleanup(self.end, program)
        return program

    @staticmethod
    def end(program):
        program.kill()
        program.communicate()


def main():
    command.main()
