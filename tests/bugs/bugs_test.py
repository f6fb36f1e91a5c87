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
# mistake: (what shows it, what is said then; None: it hangs)
CAUGHT = {
    "gid-index": ("RINGBOLT_LIKE=apple,gid=2", "RTR: Invalid argument"),
    "queue-pairs": ("RINGBOLT_LIKE=tn3205", "ibv_create_qp: Device or resource busy"),
    "late-region": ("RINGBOLT_LIKE=tn3205", "receive 0 ended with status 4"),
    "frames": ("RINGBOLT_LIKE=tn3205", "receive 0 ended with status 1"),
    "status": ("RINGBOLT_FAULTS=completion-error 100% status 12 count 3-3", "1 of 2 completions came within 2 s"),
    "deadline": ("RINGBOLT_FAULTS=completion-missing 100% count 3-3", None),
}
HANG_S = 3


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
        for mistake in ["right", *CAUGHT]:
            self.assertEqual(self.run_program(mistake), (0, "16 messages arrived\n"), mistake)

    def test_each_mistake_is_caught(self):
        for mistake, (setting, said) in CAUGHT.items():
            status, output = self.run_program(mistake, setting)
            self.assertEqual(status, None if said is None else 1, f"{mistake} with {setting}: {output}")
            self.assertIn(said or "", output)

    def test_a_program_without_mistakes_runs_or_says_what_happened(self):
        for setting, _ in CAUGHT.values():
            status, output = self.run_program("right", setting)
            if setting.startswith("RINGBOLT_LIKE"):
                self.assertEqual((status, output), (0, "16 messages arrived\n"), setting)
            else:
                self.assertEqual(status, 1, setting)
                self.assertRegex(output, r"ended with status 12|completions came within 2 s", setting)

    def test_the_document_has_the_table(self):
        page = (pathlib.Path(ROOT) / "docs/testing.md").read_text()
        for mistake, (setting, _) in CAUGHT.items():
            self.assertRegex(page, rf"\| `{mistake}` \|.*`{re.escape(setting)}`")


if __name__ == "__main__":
    PROGRAM, LIBRARIES, ROOT = sys.argv[1:4]
    unittest.main(argv=sys.argv[:1], verbosity=2)
