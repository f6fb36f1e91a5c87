"""libringbolt.so from outside: programs in C and C++ that join without the environment, by an exchange of their own and at
a place that they name, and that wait for events."""

import tempfile

import command
from command import CommandCase


class Outside(CommandCase):
    def run_all(self, program, topology, n_ranks):
        with self.cluster(topology), tempfile.TemporaryDirectory() as folder:
            done = self.call("run", "--no-tag", "--", program, folder)
            self.assertEqual(done.stdout.split(), ["ok"] * n_ranks, done.stdout)

    def test_in_c(self):
        self.run_all(command.EXTRA[0], "line:3", 3)

    def test_in_cpp(self):
        self.run_all(command.EXTRA[1], "ring:3", 3)


if __name__ == "__main__":
    command.main()
