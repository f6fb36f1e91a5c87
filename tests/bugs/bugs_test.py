"""Deliberate mistakes that work on a network card, and the profile or fault that shows each: docs/testing.md has the table.

    bugs_test.py PROGRAM LIBRARY_FOLDER ROOT
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM = LIBRARIES = ROOT = None
ARRIVED = "16 messages arrived"
HANGS = "hangs"
CRASHES = "crashes"
UNHEARD = "of 2 completions came within 2 s"
# mistake, what shows it, what becomes of it then, what the program without mistakes says
CAUGHT = [
    ("gid-index", "RINGBOLT_LIKE=apple,gid=2", "RTR: Invalid argument", ARRIVED),
    ("queue-pairs", "RINGBOLT_LIKE=tn3205", "ibv_create_qp: Device or resource busy", ARRIVED),
    ("queue-pairs", "RINGBOLT_FAULTS=exhaust object qp left 4", "ibv_create_qp: Device or resource busy", ARRIVED),
    ("late-region", "RINGBOLT_LIKE=tn3205", "receive 0 ended with status 4", ARRIVED),
    ("frames", "RINGBOLT_LIKE=tn3205", "receive 0 ended with status 1", ARRIVED),
    ("status", "RINGBOLT_FAULTS=completion-error 100% status 12 count 3-3", f"1 {UNHEARD}", "send 3 ended with status 12"),
    ("deadline", "RINGBOLT_FAULTS=completion-missing 100% count 3-3", HANGS, f"1 {UNHEARD}"),
    ("deadline", "RINGBOLT_FAULTS=frozen", HANGS, f"0 {UNHEARD}"),
    ("idle", "RINGBOLT_FAULTS=qp-age after 500ms", UNHEARD, ARRIVED),
    ("destroy", "RINGBOLT_FAULTS=completion-early by 50ms", "0 of 1 completions came within 2 s", ARRIVED),
    ("trust", "RINGBOLT_FAULTS=bitflip 100% count 3-3", ARRIVED, "message 3 is wrong from byte"),
    ("null-domain", "RINGBOLT_FAULTS=pd-null", CRASHES, "ibv_alloc_pd: Cannot allocate memory"),
    ("device-name", "RINGBOLT_FAULTS=rename-devices", "no device rdma_lo", ARRIVED),
]
HANG_S = 5


class Bugs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rb-bugs-")
        self.addCleanup(folder.cleanup)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("RINGBOLT_")}
        self.environment = kept | {"LD_LIBRARY_PATH": LIBRARIES, "RINGBOLT_RUNTIME_DIR": folder.name}

    def run_program(self, mistake, setting=None):
        """Exit status and output; a status of None: it had to be killed."""
        environment = dict(self.environment)
        if setting:
            name, value = setting.split("=", 1)
            environment[name] = value
        try:
            done = subprocess.run([PROGRAM, mistake], env=environment, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, timeout=HANG_S, check=False)
            return done.returncode, done.stdout
        except subprocess.TimeoutExpired:
            return None, ""

    def test_mistakes_go_unseen_on_the_device_as_it_is(self):
        for mistake in ["right", *(entry[0] for entry in CAUGHT)]:
            self.assertEqual(self.run_program(mistake), (0, f"{ARRIVED}\n"), mistake)

    def assert_ends(self, mistake, setting, wanted):
        status, output = self.run_program(mistake, setting)
        what = f"{mistake} with {setting}: status {status}, {output}"
        if wanted == HANGS:
            self.assertIsNone(status, what)
        elif wanted == CRASHES:
            self.assertNotIn(status, (0, None), what)
            self.assertEqual(output, "", what)
        else:
            self.assertEqual(status, 0 if wanted == ARRIVED else 1, what)
            self.assertIn(wanted, output, what)

    def test_each_mistake_is_caught(self):
        for mistake, setting, wanted, _ in CAUGHT:
            self.assert_ends(mistake, setting, wanted)

    def test_a_program_without_mistakes_runs_or_says_what_happened(self):
        for _, setting, _, wanted in CAUGHT:
            self.assert_ends("right", setting, wanted)

    def test_the_document_has_the_table(self):
        page = (pathlib.Path(ROOT) / "docs/testing.md").read_text()
        for mistake, setting, _, _ in CAUGHT:
            self.assertRegex(page, rf"\| `{mistake}` \|.*`{re.escape(setting)}`")


if __name__ == "__main__":
    PROGRAM, LIBRARIES, ROOT = sys.argv[1:4]
    unittest.main(argv=sys.argv[:1], verbosity=2)
