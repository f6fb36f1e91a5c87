"""What the tests of the command share: a runtime folder of their own and bounded waits."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

RINGBOLT = None
EXTRA = []
# A sanitizer makes programs so many times slower: their start alone takes a fifth of a second of processor time.
TIME_SCALE = int(os.environ.get("RINGBOLT_TEST_TIME_SCALE", "1"))
PATIENCE_S = 30 * TIME_SCALE


def clean_environment(root):
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("RINGBOLT_", "LD_", "XDG_RUNTIME"))}
    return kept | {"RINGBOLT_RUNTIME_DIR": str(root)}


def sanitizer_first(environment):
    """`environment` for programs of others that load our libraries: a sanitizer's runtime that comes with those would not
    be the first to answer for malloc and its like."""
    runtime = os.environ.get("SANITIZER_RUNTIME")
    return environment | ({"LD_PRELOAD": runtime} if runtime else {})


def wait_until(condition, what):
    """Looks again and again until condition() holds; a test that waits in vain fails by name."""
    give_up = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > give_up:
            raise AssertionError(f"gave up waiting until {what}")
        time.sleep(0.005)


def is_alive(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def processor_time(pid):
    """Seconds that the process has computed."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class CommandCase(unittest.TestCase):
    """Every test has an empty runtime folder, which must be empty of clusters and processes of ours afterwards."""

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="rb", dir="/tmp"))
        self.environment = clean_environment(self.root)
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)

    def environment_of(self, words):
        return sanitizer_first(self.environment) if words[:1] in (("exec",), ("run",)) else self.environment

    def start(self, *words, **options):
        return subprocess.Popen([RINGBOLT, *map(str, words)], env=self.environment_of(words), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, **options)

    def call(self, *words, expect=0, timeout=30, env=None, **options):
        """`expect` None: any exit code. `timeout`: seconds, where no sanitizer makes it slower."""
        done = subprocess.run([RINGBOLT, *map(str, words)], env=self.environment_of(words) | (env or {}), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                              timeout=timeout * TIME_SCALE, check=False, **options)
        self.assertIn(done.returncode, (expect,) if expect is not None else (done.returncode,),
                      f"ringbolt {' '.join(map(str, words))}\nstdout: {done.stdout}\nstderr: {done.stderr}")
        return done

    def refused(self, *words, says, **options):
        """Exit code 2, a message on stderr alone that holds every one of `says`, and nothing left behind."""
        before = self.state_files()
        done = self.call(*words, expect=2, **options)
        for part in says:
            self.assertIn(part, done.stderr)
        self.assertEqual(self.state_files(), before)
        return done

    def state_files(self):
        """All but the lock and the trees of synthetic files, which are made when first needed and mean nothing."""
        paths = (path.relative_to(self.root) for path in self.root.rglob("*") if path.name != ".lock")
        return sorted(str(path) for path in paths if not any(part in ("default", "sys") or part.startswith("sys-") for part in path.parts))

    @contextlib.contextmanager
    def cluster(self, spec, name=None):
        self.call("up", "--emulate", spec, *(["--name", name] if name else []))
        try:
            yield
        finally:
            self.call("down", "--force", *(["--cluster", name] if name else []))


def main():
    """The command, what else the test needs, and the names of tests (Class or Class.test_...): without any, all of the
    file."""
    global RINGBOLT
    names = [word for word in sys.argv[2:] if ".test_" in word or word in vars(sys.modules["__main__"])]
    RINGBOLT = sys.argv[1]
    EXTRA.extend(word for word in sys.argv[2:] if word not in names)
    unittest.main(module="__main__", argv=sys.argv[:1] + names, verbosity=2)
