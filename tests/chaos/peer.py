"""One chaos_peer process, spoken to by lines."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from typing import Optional, Sequence

from harness import autopsy, processes
from harness.world import Place


class Peer:
    """A running chaos_peer. Every wait has a limit; what it said is kept for the report. Not thread-safe."""

    def __init__(self, place: Place, program: str, name: str) -> None:
        self.place = place
        self.name = name
        self.said: list[str] = []
        self._pending = b""
        self._process = subprocess.Popen(place.command(program, place.device, str(place.gid_index)), env=place.env,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                         start_new_session=True)
        # Started through a launcher, the program is not our child: its own word says which process to hit.
        self.pid = int(self.expect("hello", 20.0).split()[1])
        self.baseline: list[dict[str, int]] = []

    def tell(self, line: str) -> None:
        """Sends a command; a process that is gone does not get it."""
        assert self._process.stdin is not None
        self.said.append(f"> {line}")
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass

    def expect(self, prefixes: str, limit_s: float) -> str:
        """The next line that begins with one of the words, however late it was said; others are kept and passed by.

        Raises AssertionError with the story of this process when it ends, complains, or says nothing in time.
        """
        line = self.listen(prefixes, limit_s)
        if line is None:
            raise AssertionError(f"{self.name} (pid {self.pid}) did not say '{prefixes}' within {limit_s:.2f} s\n{self.story()}")
        return line

    def listen(self, prefixes: str, limit_s: float) -> Optional[str]:
        """As expect(), but silence until the limit is an answer: None."""
        wanted = tuple(prefixes.split("|"))
        deadline = time.monotonic() + limit_s
        while True:
            line = self._next_line(deadline)
            if line is None:
                return None
            self.said.append(line)
            word = line.split()[0] if line.split() else ""
            if word in wanted:
                return line
            if word == "broken" or (word == "lost" and "drained" in wanted):
                raise AssertionError(f"{self.name} (pid {self.pid}): {line}\n{self.story()}")

    def _next_line(self, deadline: float) -> Optional[str]:
        assert self._process.stdout is not None
        source = self._process.stdout.fileno()
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            if not select.select([source], [], [], max(0.0, left))[0]:
                return None
            piece = os.read(source, 65536)
            if not piece:
                raise AssertionError(f"{self.name} (pid {self.pid}) ended by itself: {self._how_ended()}\n{self.story()}")
            self._pending += piece
        line, _, self._pending = self._pending.partition(b"\n")
        return line.decode(errors="replace")

    def _how_ended(self) -> str:
        code = self._process.wait(10)
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"

    def story(self) -> str:
        """The last lines in both directions, and where the process is now."""
        lines = [f"    {self.name} | {line}" for line in self.said[-14:]]
        if self._process.poll() is None:
            lines.append(autopsy.process_report(self.pid))
        return "\n".join(lines)

    def hit(self, number: int) -> None:
        """Sends a signal to the program itself."""
        os.kill(self.pid, number)

    def reap(self, limit_s: float = 10.0) -> int:
        """Waits for the end of a process that was killed or told to leave; returns its exit code."""
        try:
            code = self._process.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} (pid {self.pid}) does not end\n{self.story()}") from None
        self._close_pipes()
        return code

    def put_down(self) -> None:
        """Kills the process and everything of its session, in whatever state it is."""
        for pid in processes.session_members(self._process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self._process.wait()
        self._close_pipes()

    def _close_pipes(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:
                pass


def fields_of(line: str) -> dict[str, int]:
    """The `key=number` words of a line."""
    pairs: Sequence[list[str]] = [word.split("=") for word in line.split() if "=" in word]
    return {key: int(value) for key, value in pairs}
