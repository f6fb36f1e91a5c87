"""Where a process hangs: state, kernel wait channel and, where gdb is installed, the stack of each thread."""

from __future__ import annotations

import os
import shutil
import subprocess


def session_report(session: int) -> str:
    """Describes each process of a session that ran into its time limit."""
    from harness import processes

    return "\n".join(process_report(pid) for pid in processes.session_members(session)[:4])


def process_report(pid: int) -> str:
    """State and stacks of one process, as indented text."""
    lines = [f"  process {pid}: {_command(pid)}"]
    for thread in _threads(pid):
        lines.append(f"    thread {thread}: state {_state(pid, thread)}, waits in {_wait_channel(pid, thread)}")
    lines += ["    " + line for line in _backtrace(pid)]
    return "\n".join(lines)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return "?"


def _command(pid: int) -> str:
    return _read(f"/proc/{pid}/cmdline").replace("\0", " ").strip()


def _threads(pid: int) -> list[str]:
    try:
        return sorted(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return []


def _state(pid: int, thread: str) -> str:
    fields = _read(f"/proc/{pid}/task/{thread}/stat").rpartition(")")[2].split()
    return fields[0] if fields else "?"


def _wait_channel(pid: int, thread: str) -> str:
    return _read(f"/proc/{pid}/task/{thread}/wchan") or "user space"


def _backtrace(pid: int) -> list[str]:
    if shutil.which("gdb") is None:
        return []
    command = ["gdb", "-p", str(pid), "-batch", "-nx", "-ex", "set pagination off", "-ex", "thread apply all bt 12"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ["(gdb gave no answer)"]
    return [line for line in done.stdout.splitlines() if line.startswith(("#", "Thread"))][:60]
