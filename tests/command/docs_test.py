"""The documents name every command and option that the command has, and the examples are good."""

import json
import pathlib
import re
import subprocess
import shutil

import command
from command import CommandCase

COMMANDS = ["up", "down", "reboot", "status", "devices", "run", "exec", "env", "hostfile", "matrix", "map", "perf", "verify", "metrics", "cut",
            "heal", "doctor", "fault", "decode", "trace", "plan", "check", "bench", "agent", "bridge", "help"]
NESTED = [("fault", "add"), ("fault", "list"), ("fault", "clear")]


class Docs(CommandCase):
    def setUp(self):
        super().setUp()
        self.source = pathlib.Path(command.EXTRA[0])

    def options(self):
        found = set()
        for words in [(name,) for name in COMMANDS] + NESTED:
            found |= set(re.findall(r"--[a-z][a-z-]+", self.call(*words, "--help").stdout.split("Example")[0]))
        return found

    def test_document_and_manual_name_everything(self):
        document = (self.source / "docs/command.md").read_text()
        manual = (self.source / "docs/man/ringbolt.1").read_text().replace("\\-", "-")
        for option in self.options():
            self.assertIn(option, manual)
            if option not in ("--help", "--node"):
                self.assertIn(option, document)
        for name in COMMANDS:
            self.assertRegex(document, rf"`{name}`")
            self.assertRegex(manual, rf"\b{name}\b")

    def test_document_has_no_options_that_are_not_there(self):
        document = (self.source / "docs/command.md").read_text()
        known = self.options() | {"--version", "--install"}  # the latter is CMake's
        self.assertEqual({option for option in re.findall(r"--[a-z][a-z-]+", document)} - known, set())

    def test_manual_page_is_well_formed(self):
        if not shutil.which("man"):
            self.skipTest("no man here")
        done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z",
                               str(self.source / "docs/man/ringbolt.1")], capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")

    def test_examples_come_up(self):
        examples = sorted((self.source / "examples/clusters").glob("*.json"))
        self.assertTrue(examples)
        for path in examples:
            with self.cluster(str(path)):
                status = json.loads(self.call("status", "--json").stdout)["clusters"][0]
                self.assertEqual(status["cluster"], path.stem)
                self.assertEqual(len(status["cables"]), len(json.loads(path.read_text())["cables"]))

    def test_example_in_the_document_comes_up(self):
        document = (self.source / "docs/cluster.md").read_text()
        path = self.root / "x.json"
        path.write_text(re.search(r"```json\n(.*?)```", document, re.DOTALL).group(1))
        with self.cluster(str(path)):
            pass


if __name__ == "__main__":
    command.main()
