#!/usr/bin/env python3
"""Runs the commands of one document in their order, as a reader would who types them.

    run_page.py ROOT BUILD PAGE

They run in one shell, in a network, a /dev/shm and a folder of their own; the folder looks like a clone that was built, with BUILD as its
build/release. `there$` is a second machine at the other end of eth0. Each must end within its time with exit status 0,
or with the one that the page tells of ("exit status N" in its remark).

Exit status 77: no namespace can be had here, or no command of the page can be run.
"""

import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import page as documents

PATIENCE_S = 60
LISTEN_S = 2  # for what is started with & to listen; not everything does
PR_SET_CHILD_SUBREAPER = 36
STAND_INS = {
    "my_program": "ibv_devices", "my_rank": "ibv_devices", "my_pair": "ibv_devices",
    "my_jaccl_program": "env JACCL_TEST_HOSTS=1 build/release/bin/jaccl_rank",
    "my_mpi_program": "build/release/bin/mpi_pingpong",
    "my_server": "ringbolt perf send -c UC -n 200", "my_client": "ringbolt perf send -c UC -n 200",
}


def sh(*words: str) -> None:
    subprocess.run(words, check=True)


def write_script(path: pathlib.Path, text: str) -> None:
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


def make_place(place: pathlib.Path, root: pathlib.Path, build: pathlib.Path) -> None:
    """A folder with all that a clone has, and what else the pages take for granted."""
    for entry in root.iterdir():
        if entry.name not in ("build", ".git"):
            (place / entry.name).symlink_to(entry)
    (place / "build").mkdir()
    (place / "build/release").symlink_to(build)
    for environment in (root / "build").glob("python-*/"):
        (place / "build" / environment.name).symlink_to(environment)
    for name, what in STAND_INS.items():
        write_script(place / name, f'exec {what} "$@" 2>&1\n')
    (place / ".bin").mkdir()
    write_script(place / ".bin/sudo", 'exec "$@"\n')  # in a namespace of ours we are root already
    if shutil.which("redis-check-rdb"):  # the same program by its other name; the package of that name starts a service
        (place / ".bin/redis-server").symlink_to(shutil.which("redis-check-rdb"))


def lay_cable() -> None:
    """eth0 here, 192.0.2.1, to eth0 there, 192.0.2.7."""
    sh("ip", "netns", "add", "there")
    sh("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", "there")
    for words, address in ((["ip"], "192.0.2.1"), (["ip", "-n", "there"], "192.0.2.7")):
        sh(*words, "link", "set", "lo", "up")
        sh(*words, "address", "add", f"{address}/24", "dev", "eth0")
        sh(*words, "link", "set", "eth0", "up", "addrgenmode", "none")
        sh(*words, "address", "add", f"fe80::{address[-1]}/64", "dev", "eth0", "nodad")
    # The kernel calls a cable up to a second after its other end came up, and our port is down until then.
    until = time.monotonic() + PATIENCE_S
    words = ["ip", "-o", "link", "show", "dev", "eth0"]
    while "state UP" not in subprocess.run(words, capture_output=True, text=True, check=True).stdout:
        if time.monotonic() > until:
            raise RuntimeError(f"eth0 did not come up in {PATIENCE_S} s")
        time.sleep(0.02)


class Shell:
    """A shell that is told one command after the other."""

    def __init__(self, place: pathlib.Path, name: str, enter: list[str]):
        self.place, self.name, self.count = place, name, 0
        runtime = place / f".{name}"
        runtime.mkdir(mode=0o700)
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("RINGBOLT_", "LD_", "XDG_"))}
        environment = kept | {
            "RINGBOLT_RUNTIME_DIR": str(runtime), "HOME": str(place), "TMPDIR": str(place),
            "PATH": f"{place}/.bin:{place}/build/release/bin:{kept['PATH']}:/usr/sbin:/sbin",
            "LD_LIBRARY_PATH": f"{place}/build/release/lib/ringbolt",
            # mpirun refuses to be root, and looks for a launcher for one machine as well.
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        }
        self.statuses, theirs = os.pipe()
        self.process = subprocess.Popen([*enter, "bash", "--noprofile", "--norc"], stdin=subprocess.PIPE, text=True,
                                        cwd=place, env=environment, pass_fds=[theirs])
        os.close(theirs)
        self.status_number = theirs
        os.set_blocking(self.statuses, False)

    def listeners(self) -> set[str]:
        found = set()
        for table in ("tcp", "tcp6"):
            with contextlib.suppress(OSError):
                for line in pathlib.Path(f"/proc/{self.process.pid}/net/{table}").read_text().splitlines():
                    fields = line.split()
                    if fields[3] == "0A":
                        found.add(fields[9])
        return found

    def run(self, command: documents.Command) -> tuple[int | None, str]:
        """Its exit status, None for one that does not end, and what it said until then."""
        self.count += 1
        script = self.place / f".{self.name}/command-{self.count}"
        output = self.place / f".{self.name}/output-{self.count}"
        script.write_text(command.text + "\n")
        before = self.listeners()
        self.process.stdin.write(f". {script} < /dev/null > {output} 2>&1\necho $? >&{self.status_number}\n")
        self.process.stdin.flush()
        status = self.await_status()
        if status == 0 and command.without_remark.endswith("&"):
            give_up = time.monotonic() + LISTEN_S
            while self.listeners() <= before and time.monotonic() < give_up:
                time.sleep(0.01)
        return status, output.read_text(errors="replace")

    def await_status(self) -> int | None:
        give_up = time.monotonic() + PATIENCE_S
        while time.monotonic() < give_up:
            with contextlib.suppress(BlockingIOError):
                return int(os.read(self.statuses, 16))
            time.sleep(0.005)
        return None


def end_all_children() -> None:
    """What the page has left in the background is ours, since we adopt orphans."""
    children = pathlib.Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    while found := children.read_text().split():
        for pid in map(int, found):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def run_all(place: pathlib.Path, found: list[documents.Command]) -> list[str]:
    enter = {False: [], True: ["nsenter", "--net=/run/netns/there"]}
    shells: dict[bool, Shell] = {}
    failures = []
    for command in found:
        if command.is_there not in shells:
            shells[command.is_there] = Shell(place, "there" if command.is_there else "here", enter[command.is_there])
        started = time.monotonic()
        status, output = shells[command.is_there].run(command)
        print(f"{'there' if command.is_there else ''}$ {command.text}\n{output}"
              f"[{time.monotonic() - started:.1f} s, exit status {status}]", flush=True)
        if status != command.status:
            failures.append(f"line {command.line}: exit status {status}, {command.status} wanted: {command.text}")
        if status is None:
            break
    return failures


def in_namespaces(root: pathlib.Path, build: pathlib.Path, page: pathlib.Path) -> int:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for folder in ("/dev/shm", "/run"):
        sh("mount", "-t", "tmpfs", "tmpfs", folder)
    pathlib.Path("/run/netns").mkdir()
    sh("ip", "link", "set", "lo", "up")
    name = str(page.relative_to(root))
    reasons = documents.not_run(root)
    found = []
    for command in documents.commands(page):
        reason = reasons.get((name, command.without_remark.splitlines()[0].rstrip(" \\")))
        if reason:
            print(f"not run: {command.text}: {reason}")
        else:
            found.append(command)
    if not found:
        print(f"skip: no command of this page can be run by a test: {documents.NOT_RUN} says why")
        return 77
    if "eth0" in page.read_text() or any(command.is_there for command in found):
        lay_cable()
    place = pathlib.Path(tempfile.mkdtemp(prefix="rbd", dir="/tmp"))  # short: sockets lie in it
    try:
        make_place(place, root, build)
        failures = run_all(place, found)
        for cluster in (place / ".here/clusters").glob("[!.]*"):
            subprocess.run([build / "bin/ringbolt", "down", "--force", "--cluster", cluster.name], check=False,
                           env=os.environ | {"RINGBOLT_RUNTIME_DIR": str(place / ".here")}, stdout=subprocess.DEVNULL)
    finally:
        end_all_children()
        shutil.rmtree(place, ignore_errors=True)
    print("".join(f"FAILED {name}: {line}\n" for line in failures) or f"{name}: {len(found)} commands work")
    return 1 if failures else 0


def refusal_of_packages(root: pathlib.Path, page: pathlib.Path) -> str:
    """Has made what scripts/setup-python of the page makes, while a network is there. Why not, if it can't be."""
    for command in documents.commands(page):
        words = command.without_remark.split()
        if words[0] == "scripts/setup-python":
            made = subprocess.run([root / words[0], *words[1:]], stderr=subprocess.PIPE, text=True, check=False)
            if made.returncode != 0:
                return (made.stderr.strip().splitlines() or [f"{command.text} gives no reason"])[-1]
    return ""


def main() -> int:
    if sys.argv[1] == "--in-namespaces":
        return in_namespaces(*(pathlib.Path(word).resolve() for word in sys.argv[2:5]))
    if refusal := documents.namespace_refusal():
        print(f"skip: no namespaces here: {refusal}")
        return 77
    root, build, page = sys.argv[1:4]
    if refusal := refusal_of_packages(pathlib.Path(root), pathlib.Path(root, page)):
        print(f"skip: {refusal}")
        return 77
    os.execvp("unshare", ["unshare", "--net", "--mount", *documents.map_root(), sys.executable, "-B", __file__,
                          "--in-namespaces", root, build, str(pathlib.Path(root, page))])
    return 1


if __name__ == "__main__":
    sys.exit(main())
