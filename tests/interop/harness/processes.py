"""Child processes that always end: each in a session of its own, with a deadline, killed by id."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import tempfile
import time
from typing import IO, Optional, Sequence

from harness import autopsy


@dataclasses.dataclass
class Finished:
    """How one process ended. `output` is stdout and stderr in the order written."""

    argv: Sequence[str]
    returncode: int
    output: str
    timed_out: bool
    seconds: float
    autopsy: str = ""

    @property
    def ok(self) -> bool:
        return self.returncode == 0 and not self.timed_out

    def describe(self) -> str:
        """Says in a few lines how the process ended, with the tail of what it printed."""
        if self.timed_out:
            end = f"was killed after {self.seconds:.1f} s (time limit)"
        elif self.returncode < 0:
            end = f"died of {signal.Signals(-self.returncode).name} after {self.seconds:.2f} s"
        else:
            end = f"exited with {self.returncode} after {self.seconds:.2f} s"
        tail = "\n".join("    | " + line for line in self.output.splitlines()[-25:])
        text = f"  $ {' '.join(self.argv)}\n  {end}\n{tail}"
        return text + (f"\n{self.autopsy}" if self.autopsy else "")


class Child:
    """One running process and everything it starts. Not thread-safe.

    The process leads a session of its own, so that kill() reaches its descendants too. Its output goes to an unnamed
    file: nobody has to drain a pipe, and it can be read while the process runs.
    """

    def __init__(self, argv: Sequence[str], env: dict[str, str], stdin: Optional[int] = subprocess.DEVNULL) -> None:
        self.argv = list(argv)
        self._file: IO[bytes] = tempfile.TemporaryFile()
        self._text = ""
        self._started = time.monotonic()
        self.process = subprocess.Popen(self.argv, env=env, stdin=stdin, stdout=self._file, stderr=subprocess.STDOUT,
                                        start_new_session=True)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def output(self) -> str:
        """All that the process printed so far."""
        if self._file.closed:
            return self._text
        size = os.fstat(self._file.fileno()).st_size
        return os.pread(self._file.fileno(), size, 0).decode(errors="replace")

    def pause(self, seconds: float) -> None:
        """Waits until the process ends, at most `seconds`: the step of a loop that watches for a condition."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass

    def wait(self, limit_s: float, partner: Optional["Child"] = None) -> Finished:
        """Waits for the end; at the limit takes backtraces, the partner's as well, then kills the whole session."""
        timed_out = False
        post_mortem = ""
        try:
            self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            timed_out = True
            post_mortem = autopsy.session_report(self.pid)
            if partner is not None and not partner.has_ended:
                post_mortem += "\n" + autopsy.session_report(partner.pid)
        self.kill()
        return Finished(self.argv, self.process.returncode, self.output(), timed_out,
                        time.monotonic() - self._started, post_mortem)

    def signal_session(self, number: int) -> None:
        """Sends a signal to every process of the session; a session that has ended is no error."""
        for pid in session_members(self.pid):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def kill(self) -> None:
        """Kills what is left of the session and reaps the leader."""
        for _ in range(20):
            if not session_members(self.pid):
                break
            self.signal_session(signal.SIGKILL)
            self.pause(0.05)
        self.process.wait()
        self._text = self.output()
        self._file.close()


def session_members(session: int) -> list[int]:
    """The live processes (zombies left out) whose session id is `session`."""
    members = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] not in "ZX" and int(fields[3]) == session:
            members.append(int(entry))
    return members


def run(argv: Sequence[str], env: dict[str, str], limit_s: float) -> Finished:
    """Runs one program to its end or the limit."""
    return Child(argv, env).wait(limit_s)
