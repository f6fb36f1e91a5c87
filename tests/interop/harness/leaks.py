"""What a test must not leave behind: processes, slots of the runtime folder, files in /dev/shm."""

from __future__ import annotations

import dataclasses
import fcntl
import os
import pathlib
import signal
import time


def processes_using(runtime: pathlib.Path) -> dict[int, str]:
    """Live processes whose environment names this runtime folder: pid -> command line."""
    marker = f"RINGBOLT_RUNTIME_DIR={runtime}\0".encode()
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                environment = file.read() + b"\0"
            if marker not in environment:
                continue
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                command = file.read().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
        if command:
            found[int(entry)] = command
    return found


def files_of_slots(runtime: pathlib.Path) -> list[pathlib.Path]:
    """What is in the slot folders. Processes may make, rename and remove folders meanwhile, at which glob() raises."""
    return [pathlib.Path(folder, name) for folder, _, names in os.walk(runtime)
            if os.path.basename(folder).startswith("slots") for name in names]


def slot_files(runtime: pathlib.Path) -> list[str]:
    """Everything that processes left in the slot folders, relative to the runtime folder. The order in which processes
    share a UDP port belongs to the network namespace, and what a port has counted to the port."""
    kept = (".order", ".counters")
    return sorted(str(path.relative_to(runtime)) for path in files_of_slots(runtime) if path.suffix not in kept)


def slots_in_use(runtime: pathlib.Path) -> list[str]:
    """Slots whose lock somebody holds: their owners are alive, whatever their environment says."""
    held = []
    for path in (path for path in files_of_slots(runtime) if path.suffix == ".lock"):
        try:
            with open(path, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.append(str(path.relative_to(runtime)))
        except FileNotFoundError:
            pass
    return sorted(held)


def shared_memory_files() -> set[str]:
    """Names in /dev/shm that are ours."""
    try:
        names = os.listdir("/dev/shm")
    except OSError:
        return set()
    return {name for name in names if "ringbolt" in name.lower()}


@dataclasses.dataclass(frozen=True)
class Residents:
    """What belongs to the cluster itself: its agents, and their slots."""

    processes: frozenset[int] = frozenset()
    slots: frozenset[str] = frozenset()


def residents(runtime: pathlib.Path) -> Residents:
    """What is there now, before any program."""
    return Residents(frozenset(processes_using(runtime)), frozenset(slot_files(runtime)))


def complaints(runtime: pathlib.Path, shm_before: set[str], slots_may_stay: bool = False,
               known: Residents = Residents()) -> list[str]:
    """One line for each thing left behind; kills left-over processes. Empty when clean.

    slots_may_stay: after a kill the slot of the dead process waits for the next owner of its number.
    """
    found = []
    for pid, command in _settled_processes(runtime, known.processes).items():
        found.append(f"process {pid} is still alive: {command}")
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    found += [f"slot still held by a live process: {name}" for name in slots_in_use(runtime) if name not in known.slots]
    if not slots_may_stay:
        found += [f"slot file left in the runtime folder: {name}" for name in slot_files(runtime) if name not in known.slots]
    found += [f"file left in /dev/shm: {name}" for name in sorted(shared_memory_files() - shm_before)]
    return found


def _settled_processes(runtime: pathlib.Path, known: frozenset[int], limit_s: float = 2.0) -> dict[int, str]:
    """Processes that are left once those in the middle of exiting had time to go."""
    deadline = time.monotonic() + limit_s
    while True:
        left = {pid: command for pid, command in processes_using(runtime).items() if pid not in known}
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.02)
