"""A guest under QEMU: the kernel, an initramfs made on the spot, the host's files read-only, network cards on taps."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time
from types import TracebackType
from typing import Optional, Sequence

from harness.processes import Finished
from harness.report import Skip
from referee.channel import Channel, GuestCommand, GuestLost
from referee.cpio import Archive
from referee.kernel import Kernel

QEMU = "qemu-system-x86_64"
_UP_LIMIT_S = 150.0
# Emulated in software: a machine for tests can't count on /dev/kvm.
_MACHINE = ("-M", "pc", "-accel", "tcg,tb-size=256", "-cpu", "max,la57=off", "-m", "768", "-nodefaults",
            "-no-user-config", "-display", "none", "-no-reboot")
# no_timer_check: on a busy host the emulated timer may look broken for the moment in which the kernel tests it.
_COMMAND_LINE = "console=ttyS0 quiet nokaslr mitigations=off tsc=reliable no_timer_check panic=-1"
# Without offloads the host computes UDP checksums before the tap, so that captures have them.
_CARD = "virtio-net-pci,guest_csum=off,guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off,csum=off,gso=off"


def check() -> None:
    """Raises Skip where there can be no guest."""
    if shutil.which(QEMU) is None:
        raise Skip(f"no {QEMU} (Debian: qemu-system-x86), so there is no guest to talk to")


@dataclasses.dataclass(frozen=True)
class Card:
    """The guest's network card: the tap it is plugged into, and its addresses with their prefix lengths."""

    tap: str
    mac: str
    mtu: int
    ipv4: str
    ipv6: str

    @property
    def address(self) -> str:
        return self.ipv4.partition("/")[0]

    @property
    def address6(self) -> str:
        return self.ipv6.partition("/")[0]


class Guest:
    """A running guest; a context manager that ends it. Not thread-safe, the commands are."""

    def __init__(self, kernel: Kernel, agent: pathlib.Path, card: Card, folder: pathlib.Path) -> None:
        self.card = card
        self._console = folder / f"console-{card.tap}.txt"
        self._initramfs = folder / f"initramfs-{card.tap}"
        self._initramfs.write_bytes(_initramfs(kernel, agent))
        self._kernel = kernel
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._channel: Channel
        self.seconds_to_boot = 0.0

    def __enter__(self) -> Guest:
        started = time.monotonic()
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(self._command(theirs.fileno()), pass_fds=[theirs.fileno()],
                                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self._channel = Channel(ours, self.last_words)
        try:
            self._channel.wait_until_up(_UP_LIMIT_S)
            self.must("sh", "-ec", _network_script(self.card))
        except BaseException:
            self._end()
            raise
        self.seconds_to_boot = time.monotonic() - started
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self._end()

    def start(self, *argv: str) -> GuestCommand:
        """Starts a program of the host's files in the guest."""
        return self._channel.start(argv)

    def run(self, argv: Sequence[str], limit_s: float) -> Finished:
        """Runs a program in the guest to its end or the limit; its stdin is closed."""
        command = self.start(*argv)
        command.feed(b"")
        return command.wait(limit_s)

    def must(self, *argv: str, limit_s: float = 60.0) -> str:
        """Runs a program that has to succeed, and returns what it printed."""
        done = self.run(argv, limit_s)
        if not done.ok:
            raise GuestLost(f"in the guest:\n{done.describe()}\n{self.last_words()}")
        return done.output

    def impair(self, what: str) -> None:
        """Does to all packets of the card, in both directions, what netem is told ("loss 1%"), until told otherwise."""
        self.must("sh", "-ec", f"""
            if ! tc qdisc show dev eth0 | grep -q ingress; then
              ip link set ifb0 up
              tc qdisc add dev eth0 ingress
              tc filter add dev eth0 parent ffff: matchall action mirred egress redirect dev ifb0
            fi
            tc qdisc replace dev eth0 root netem limit 10000 {what}
            tc qdisc replace dev ifb0 root netem limit 10000 {what}
            """)

    def last_words(self) -> str:
        """The end of the console's text, for messages."""
        try:
            lines = self._console.read_text(errors="replace").splitlines()[-15:]
        except OSError:
            lines = []
        return "the guest's console says:\n" + "\n".join("    | " + line for line in lines or ["(nothing)"])

    def _command(self, port: int) -> list[str]:
        card = self.card
        return [QEMU, *_MACHINE, "-kernel", str(self._kernel.image), "-initrd", str(self._initramfs),
                "-append", _COMMAND_LINE,
                "-chardev", f"file,id=console,path={self._console}", "-serial", "chardev:console",
                "-chardev", f"socket,id=port,fd={port}", "-device", "virtio-serial-pci",
                "-device", "virtserialport,chardev=port",
                "-fsdev", "local,id=host,path=/,readonly=on,security_model=none,multidevs=remap",
                "-device", "virtio-9p-pci,fsdev=host,mount_tag=host",
                "-netdev", f"tap,id=net,ifname={card.tap},script=no,downscript=no",
                "-device", f"{_CARD},netdev=net,mac={card.mac}"]

    def _end(self) -> None:
        if self._process is None:
            return
        self._process.send_signal(signal.SIGKILL)  # it has nothing to save
        complaint = self._process.communicate()[0].decode(errors="replace").strip()
        self._channel.close()
        self._process = None
        for path in (self._initramfs, self._console):
            path.unlink(missing_ok=True)
        if complaint:
            print(f"{QEMU} said: {complaint}")


def _initramfs(kernel: Kernel, agent: pathlib.Path) -> bytes:
    archive = Archive()
    archive.add_folder("dev")
    archive.add_character_device("dev/console", 5, 1)
    archive.add_folder("modules")
    for module in kernel.modules:
        archive.add_file(f"modules/{module.name}", module.read_bytes())
    archive.add_file("modules/order", "".join(f"{module.name}\n" for module in kernel.modules).encode())
    archive.add_file("init", agent.read_bytes(), 0o755)
    return archive.finished()


def _network_script(card: Card) -> str:
    # Without duplicate address detection, addresses are usable at once.
    return f"""
        hostname guest
        ulimit -l unlimited
        echo 0 > /proc/sys/net/ipv6/conf/eth0/accept_dad
        ip link set lo up
        ip link set eth0 mtu {card.mtu} up
        ip address add {card.ipv4} dev eth0
        ip address add {card.ipv6} dev eth0 nodad
        rdma link add rxe0 type rxe netdev eth0
        """
