"""Says what machine a measurement was made on."""

import os
import platform
import subprocess


def _first_line(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "absent"
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0] if lines else "unknown"


def _cpu_field(name):
    with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
        for line in cpuinfo:
            if line.startswith(name):
                return line.split(":", 1)[1].strip()
    return "unknown"


def _text_of(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return "unknown"


def describe():
    """A flat dictionary of what decides the figures: processor, cores, kernel, huge pages, versions of the peers."""
    return {
        "processor": f"{_cpu_field('vendor_id')} family {_cpu_field('cpu family')} model {_cpu_field('model')}"
                     f" ({_cpu_field('model name')})",
        "cores": os.cpu_count(),
        "hypervisor": "hypervisor" in _cpu_field("flags").split(),
        "kernel": platform.release(),
        "shmem_huge_pages": _text_of("/sys/kernel/mm/transparent_hugepage/shmem_enabled"),
        "huge_pages": _text_of("/sys/kernel/mm/transparent_hugepage/enabled"),
        "ucx": _first_line(["ucx_info", "-v"]).lstrip("# "),
        "open_mpi": _first_line(["mpirun.openmpi", "--version"]),
        "load_at_start": os.getloadavg()[0],
    }
