"""Roots of other releases of Debian, made by debootstrap, kept in a folder, and entered with whatever is written to them gone
afterwards. Needs root, and overlayfs."""

import os
import pathlib
import shutil
import subprocess
import sys

EMULATORS = {"arm64": ("qemu-aarch64-static", "qemu-aarch64",
                       r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00",
                       r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff")}
BINFMT = pathlib.Path("/proc/sys/fs/binfmt_misc")
KEYRING = pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg")


class CannotBeHad(Exception):
    """Why there is no such root here: a reason to skip."""


def own_arch():
    return subprocess.run(("dpkg", "--print-architecture"), capture_output=True, text=True, check=True).stdout.strip()


def mirror():
    said = subprocess.run(("apt-get", "indextargets", "--format", "$(REPO_URI)", "ORIGIN: Debian", "IDENTIFIER: Packages"),
                          capture_output=True, text=True, check=False).stdout.split()
    return next((uri for uri in said if "security" not in uri), "http://deb.debian.org/debian")


class Emulation:
    """Programs of `arch` start as if they were this machine's, until the end; another's registration is used and left."""

    def __init__(self, arch):
        self.name = None
        if arch == own_arch():
            return
        program, name, magic, mask = EMULATORS[arch]
        path = shutil.which(program)
        if path is None:
            raise CannotBeHad(f"no {program} (Debian: qemu-user-static)")
        if not (BINFMT / "register").exists():
            if subprocess.run(("mount", "-t", "binfmt_misc", "binfmt_misc", BINFMT), check=False, stderr=subprocess.DEVNULL).returncode != 0:
                raise CannotBeHad("the kernel has no binfmt_misc to start another machine's programs with")
        if not (BINFMT / name).exists():
            # F: the emulator is opened now, and need not lie within the root.
            (BINFMT / "register").write_text(f":{name}:M::{magic}:{mask}:{path}:F")
            self.name = name

    def end(self):
        if self.name is not None:
            (BINFMT / self.name).write_text("-1")
            self.name = None


def base(folder, suite, arch, packages):
    """The path of a root with `packages`; made once, some minutes."""
    if os.geteuid() != 0:
        raise CannotBeHad("a root of another release needs to be made and entered by root")
    for program in ("debootstrap", "unshare"):
        if shutil.which(program) is None:
            raise CannotBeHad(f"no {program}")
    root = folder / f"{suite}-{arch}"
    done = root / "ringbolt-has"
    wanted = " ".join(packages)
    if done.exists() and done.read_text() == wanted:
        return root
    shutil.rmtree(root, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"{suite}-{arch}.log"
    print(f"making {root}, with {wanted or 'nothing more'}", file=sys.stderr, flush=True)
    steps = [("debootstrap", "--variant=minbase", f"--arch={arch}", f"--keyring={KEYRING}", suite, str(root), mirror())]
    if packages:
        inside = f"export DEBIAN_FRONTEND=noninteractive; apt-get -q -y install --no-install-recommends {wanted} && apt-get clean"
        steps.append(("chroot", str(root), "/bin/sh", "-c", inside))
    with log.open("w") as out:
        for step in steps:
            if subprocess.run(step, stdout=out, stderr=out, stdin=subprocess.DEVNULL, check=False).returncode != 0:
                tail = log.read_text()[-600:]
                raise CannotBeHad(f"{' '.join(step[:4])} failed: {tail}; all of it is in {log}")
    shutil.rmtree(root / "var/lib/apt/lists", ignore_errors=True)
    done.write_text(wanted)
    return root


# In a mount namespace and a process namespace of its own: both, and all that was started, end with this script.
ENTER = """set -e
mkdir -p {work}/upper {work}/work {work}/root
mount -t tmpfs -o size=2g tmpfs {work}
mkdir {work}/upper {work}/work {work}/root
mount -t overlay overlay -o lowerdir={base},upperdir={work}/upper,workdir={work}/work {work}/root
mount -t proc proc {work}/root/proc
mount -t sysfs -o ro sysfs {work}/root/sys
mount --rbind /dev {work}/root/dev
mount -t tmpfs tmpfs {work}/root/dev/shm
mkdir -p {work}/root/given
mount --bind {given} {work}/root/given
ip link set lo up 2> /dev/null || :
if [ -n "{user}" ]; then
  mount -t tmpfs -o mode=1777 tmpfs {work}/root/tmp
  mount -o remount,ro {work}/root
fi
exec chroot {how} {work}/root /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \\
  RINGBOLT_TEST_EMULATED={emulated} /bin/sh -e -c "$1"
"""


def run(root, given, work, script, emulated, timeout_s, user=""):
    """Runs a shell script in a copy of the root that is thrown away, without a network but its own loopback; the folder `given`
    is /given there. Returns (exit status, output); 124: it took longer than `timeout_s`, and was ended with all it had started. `user`: a
    number that is nobody's there: it runs as that, without rights, and finds the root read-only, but for /tmp."""
    work.mkdir(parents=True, exist_ok=True)
    enter = ENTER.format(work=work, base=root, given=given, emulated=int(emulated), user=user,
                         how=f"--userspec={user}:{user} --groups=" if user else "")
    words = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--net", "--propagation", "private",
             "/bin/sh", "-c", enter, "enter", script)
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)
    try:
        output, _ = process.communicate(timeout=timeout_s)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
        return 124, output
