"""The stream driver of Thunderbolt, played: folders that look like a machine's sysfs, ConfigFS and /dev, and a thread that
does to them what the driver does, with pseudo terminals for the streams."""

import contextlib
import os
import pathlib
import pty
import shutil
import tempfile
import threading
import time
import tty

ANNOUNCEMENT_S = 0.7  # until a stream is known at the other end
FIRST_HOPID = 8


def router(node):
    return f"{node + 1:08x}-0000-4000-ffff-ffffffffffff"


class Machine:
    """One machine's tree below `root`; `peers` maps an XDomain to the identifier at its other end."""

    def __init__(self, root, node):
        self.root, self.node = root, node
        self.config = root / "sys/kernel/config/thunderbolt/stream"
        self.devices = root / "sys/bus/thunderbolt/devices"
        self.config.mkdir(parents=True)
        (root / "dev").mkdir()
        self.put("proc/sys/kernel/osrelease", "7.2.0-test\n")
        self.put("proc/mounts", "configfs /sys/kernel/config configfs rw 0 0\n")
        self.put("sys/bus/thunderbolt/devices/0-0/unique_id", router(node) + "\n")
        # A folder of ConfigFS comes and goes with its attributes, in one step.
        for name, body in (("rmdir", f'for d; do if [ -e "$d/index" ]; then mv -T "$d" {root}/gone.$$ && rm -rf {root}/gone.$$; '
                                     'else /bin/rmdir "$d" || exit 1; fi; done'),
                           # Refuses to make streams, or is slow at it, where there is a file of that name.
                           ("mkdir", f'case "$(ls {root}) $*" in *refuse*/stream/*) echo "mkdir: Device or resource busy" >&2; '
                                     'exit 1;; *slow*/stream/*) is_slow=1; sleep 2;; esac\n'
                                     '/bin/mkdir "$@" || exit\n'
                                     'for made; do :; done\n'
                                     'case "$made" in */stream/*/*) for i in $(seq 500); do '
                                     '[ ! -e "$made" ] || [ -e "$made/out_hopid" ] && break; sleep 0.01; done;; esac\n'
                                     f'[ -z "$is_slow" ] || mv {root}/slow {root}/done')):
            self.put(f"bin/{name}", f"#!/bin/sh\n{body}\n").chmod(0o755)

    def put(self, path, text):
        whole = self.root / path
        whole.parent.mkdir(parents=True, exist_ok=True)
        whole.write_text(text)
        return whole

    def plug(self, xdomain, identifier, name, service=".1"):
        folder = f"sys/bus/thunderbolt/devices/{xdomain}"
        self.put(f"{folder}/uevent", "DEVTYPE=thunderbolt_xdomain\n")
        self.put(f"{folder}/unique_id", identifier + "\n")
        self.put(f"{folder}/device_name", name + "\n")
        self.put(f"{folder}.0/key", "network\n")
        self.put(f"{folder}{service}/key", "stream\n")

    def stream(self, xdomain, name):
        return self.config / f"{xdomain}.1" / name

    def folders(self):
        """Of streams, which may come and go meanwhile."""
        return [pathlib.Path(group, name) for group, names, _ in os.walk(self.config) for name in names
                if pathlib.Path(group).parent == self.config]

    def streams(self):
        return sorted(str(folder.relative_to(self.config)) for folder in self.folders() if (folder / "index").exists())


class Stream:
    """A stream of one machine as the driver knows it."""

    def __init__(self, machine, folder, index):
        self.machine, self.folder, self.index = machine, folder, index
        self.master, slave = pty.openpty()
        tty.setraw(slave)
        self.link = machine.root / f"dev/tbstream{index}"
        self.link.symlink_to(os.ttyname(slave))
        os.close(slave)  # whoever has it open holds the stream
        os.set_blocking(self.master, False)
        self.waiting = b""  # to be written here
        self.ids_since = None
        (folder / "index").write_text(f"{index}\n")

    def ids(self):
        try:
            return tuple(int((self.folder / name).read_text()) for name in ("in_hopid", "out_hopid"))
        except (OSError, ValueError):
            return (0, 0)

    def set_ids(self, *ids):
        for name, value in zip(("in_hopid", "out_hopid"), ids):
            (self.folder / name).write_text(f"{value}\n")

    def close(self):
        self.link.unlink(missing_ok=True)
        os.close(self.master)


class Driver(threading.Thread):
    """`cables`: pairs of (machine, XDomain)."""

    def __init__(self, machines, cables):
        super().__init__(daemon=True)
        self.machines, self.cables = machines, cables
        self.streams = {}
        self.is_over = threading.Event()
        self.announcement_s = ANNOUNCEMENT_S
        self.lock = threading.Lock()

    def plug_all(self):
        for (one, here), (other, there) in self.cables:
            one.plug(here, router(other.node), f"box{other.node}")
            other.plug(there, router(one.node), f"box{one.node}")

    def run(self):
        while not self.is_over.is_set():
            with self.lock:
                self.look()
                moved = self.relay()
            time.sleep(0.0002 if moved else 0.003)

    def stop(self):
        self.is_over.set()
        self.join()
        for stream in self.streams.values():
            stream.close()

    def make(self, machine, xdomain, name, index, ids):
        """A stream that somebody has set up before."""
        folder = machine.stream(xdomain, name)
        with self.lock:
            folder.mkdir(parents=True)
            self.add(machine, folder, index).set_ids(*ids)

    def add(self, machine, folder, index=None):
        if index is None:
            taken = {stream.index for stream in self.streams.values() if stream.machine is machine}
            index = next(number for number in range(99) if number not in taken)
        stream = self.streams[folder] = Stream(machine, folder, index)
        return stream

    def look(self):
        for folder, stream in list(self.streams.items()):
            if not (folder / "index").exists():  # or it has been made anew since
                self.streams.pop(folder).close()
        for machine in self.machines:
            for folder in machine.folders():
                with contextlib.suppress(OSError):  # it went away meanwhile
                    self.look_at(machine, folder)

    def look_at(self, machine, folder):
        if folder not in self.streams:
            stream = self.add(machine, folder)
            for name in ("in_hopid", "out_hopid"):
                self.show(folder / name)
            self.adopt(stream)
        stream = self.streams[folder]
        for name in ("in_hopid", "out_hopid"):
            if (folder / name).read_text().strip() == "-1":
                (folder / name).write_text(f"{FIRST_HOPID + stream.index * 2 + (name == 'out_hopid')}\n")
        if min(stream.ids()) > 0 and stream.ids_since is None:
            stream.ids_since = time.monotonic()

    @staticmethod
    def show(attribute):
        """In one step, and not if somebody has written to it already: folders of ConfigFS are never seen without theirs."""
        with tempfile.NamedTemporaryFile("w", dir=attribute.parents[7]) as new:
            new.write("0\n")
            new.flush()
            with contextlib.suppress(FileExistsError):
                os.link(new.name, attribute)

    def adopt(self, stream):
        other = self.facing(stream)
        if other and other.ids_since and time.monotonic() - other.ids_since > self.announcement_s:
            stream.set_ids(*reversed(other.ids()))

    def facing(self, stream):
        """The stream of that name at the other end of the cable."""
        for ends in self.cables:
            for (one, here), (other, there) in (ends, ends[::-1]):
                if one is stream.machine and stream.folder.parent.name == f"{here}.1":
                    return self.streams.get(other.stream(there, stream.folder.name))
        return None

    def relay(self):
        moved = False
        for stream in self.streams.values():
            other = self.facing(stream)
            try:
                if other and not other.waiting and stream.ids() == tuple(reversed(other.ids())):
                    other.waiting = os.read(stream.master, 4096)
            except OSError:
                pass  # nothing there, or nobody has it open
            try:
                if stream.waiting:
                    stream.waiting = stream.waiting[os.write(stream.master, stream.waiting):]
                    moved = True
            except OSError:
                pass
        return moved


def two_machines(root):
    """Two machines with one cable, 0-1 of the first to 0-3 of the second."""
    machines = [Machine(pathlib.Path(root) / f"tb{node}", node) for node in (0, 1)]
    driver = Driver(machines, [((machines[0], "0-1"), (machines[1], "0-3"))])
    driver.plug_all()
    return driver


def unplug(machine, xdomain):
    for path in machine.devices.glob(f"{xdomain}*"):
        shutil.rmtree(path)
