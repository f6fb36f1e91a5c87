"""A network and process namespace of the test's own. All in it ends with the test, however that ends."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

from harness.report import Skip

_MARK = "RINGBOLT_GUEST_TEST_INSIDE"
# Files of the run: a memory file system that only the run sees, over a folder that every Debian has and no test needs.
SCRATCH = pathlib.Path("/mnt")


def enter() -> None:
    """Runs this program once more in namespaces of its own, in place of this run; returns in the second one.

    The second run is process 1 of its process namespace, so that with its end the kernel kills all that it has started.
    """
    if os.environ.pop(_MARK, None):
        _settle()
        return
    command = _unshare()
    sys.stdout.flush()
    # unshare takes this process' place: who ends it, even by SIGKILL, ends everything.
    os.execvpe(command[0], [*command, sys.executable, "-B", *sys.argv], dict(os.environ, **{_MARK: "1"}))


def check() -> None:
    """Raises Skip where there can be no such place."""
    if _MARK in os.environ:
        return
    if shutil.which("unshare") is None or subprocess.call([*_unshare(), "true"], stderr=subprocess.DEVNULL) != 0:
        raise Skip("this user may not make namespaces (unshare --net --pid), so there is no place for a tap")
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        raise Skip("no /dev/net/tun, so there is no tap for the guest's network card")


def _unshare() -> list[str]:
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *user, "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]


def _settle() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    call("mount", "-t", "sysfs", "sysfs", "/sys")  # that of the new network namespace
    call("mount", "-t", "tmpfs", "tmpfs", str(SCRATCH))
    tempfile.tempdir = str(SCRATCH)
    call("ip", "link", "set", "lo", "up")


def call(*argv: str) -> None:
    """Runs a program of the set-up, which has to succeed."""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: exit status {done.returncode}: {done.stderr.strip()}")


def add_tap(name: str, mtu: int) -> None:
    """A tap device, up, whose addresses are usable at once."""
    call("ip", "tuntap", "add", name, "mode", "tap")
    pathlib.Path(f"/proc/sys/net/ipv6/conf/{name}/accept_dad").write_text("0")
    call("ip", "link", "set", name, "mtu", str(mtu), "up")


def add_address(name: str, *addresses: str) -> None:
    """Adds IPv4 and IPv6 addresses with prefix lengths to a device."""
    for address in addresses:
        call("ip", "address", "add", address, "dev", name, *(["nodad"] if ":" in address else []))


def add_bridge(name: str, *members: str) -> None:
    """A bridge that forwards at once."""
    call("ip", "link", "add", name, "type", "bridge", "forward_delay", "0", "stp_state", "0", "mcast_snooping", "0")
    for member in members:
        call("ip", "link", "set", member, "master", name)
    call("ip", "link", "set", name, "up")
