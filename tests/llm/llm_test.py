#!/usr/bin/env python3
"""examples/llm, scaled down: each of its three commands judges itself, and this looks at what it says.

    llm_test.py RINGBOLT [CASES...] ROOT PYTHON

Exit status 77: that Python has no torch."""

import json
import pathlib
import subprocess
import sys

import command
from command import CommandCase

python, root = sys.argv.pop(), pathlib.Path(sys.argv.pop())


class OnARing(CommandCase):
    def setUp(self):
        super().setUp()
        build = pathlib.Path(command.RINGBOLT).resolve().parent.parent
        self.environment |= {"PYTHONPATH": str(root / "python"), "LD_LIBRARY_PATH": str(build / "lib")}
        self.environment["PATH"] = f"{build / 'bin'}:{self.environment['PATH']}"
        self.out = pathlib.Path(self.environment["RINGBOLT_RUNTIME_DIR"]) / "llm"

    def ring(self, what, *words):
        done = subprocess.run([python, "-B", str(root / "examples/llm/ring.py"), what, "--size", "tiny", "--out", self.out, *words],
                              capture_output=True, text=True, timeout=300, env=self.environment, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_training_gives_the_same_bits_on_every_cabling_and_by_one_process(self):
        said = self.ring("train", "--steps", "4")
        self.assertIn("the same bits each time, losses and parameters", said)
        self.assertEqual(said.count("all parameters "), 5)
        losses = json.loads((self.out / "train.json").read_text())["losses"]
        self.assertLess(losses[-1], losses[0])
        self.assertIn("<polyline", (self.out / "loss.svg").read_text())

    def test_shards_even_and_uneven_give_the_logits_of_one_process(self):
        said = self.ring("generate", "--tokens", "40")  # more than the context: its window moves on
        self.assertRegex(said, r"(?s)2 ranks: logits within .*3 ranks: logits within .*4 ranks: logits within .*gloo \d+ tokens/s")

    def test_text_survives_a_cut_and_a_kill(self):
        said = self.ring("failures", "--tokens", "60")
        self.assertRegex(said, r"cable 1-2 cut after 20 tokens: it went on, and wrote the same 75 bytes")
        self.assertRegex(said, r"rank 0 after 0\.\d\d s: rank 2 is dead")
        self.assertRegex(said, r"started again: it went on at byte \d+, and finished the same text")


if __name__ == "__main__":
    if subprocess.run([python, "-c", "import torch.distributed"], capture_output=True, check=False).returncode != 0:
        print(f"skip: {python} has no torch (apt install python3-torch)")
        sys.exit(77)
    command.main()
