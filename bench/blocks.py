"""Blocks of a benchmark's program, each a process of its own that prints pairs of a name and a number."""

import statistics
import subprocess


class BenchError(Exception):
    """A block gave no figures."""


class Blocks:
    """Runs blocks of the program, and keeps their figures by series."""

    def __init__(self, program, block_ms, environment):
        self._program = program
        self._environment = environment
        self._block_ms = str(block_ms)
        self.figures = {}

    def run(self, *words, series=None):
        """`series`: None: the words."""
        command = [self._program, *map(str, words), self._block_ms]
        try:
            done = subprocess.run(command, env=self._environment, text=True, capture_output=True, check=False, timeout=60)
        except subprocess.TimeoutExpired as late:
            raise BenchError(f"{' '.join(command)}: no figures within {late.timeout:.0f} s") from late
        if done.returncode != 0:
            raise BenchError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()}")
        fields = done.stdout.split()
        self.figures.setdefault(series or words, []).append(dict(zip(fields[::2], map(float, fields[1::2]))))

    def median(self, key, *series):
        return statistics.median(one[key] for one in self.figures[series])
