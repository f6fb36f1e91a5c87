"""Packages on bare releases of Debian: installed by each means, used by that release's own programs.

    distribution_test.py SOURCE BUILD_FOLDER SUITE ARCH [programs|built TREE]

Takes the packages of BUILD_FOLDER/packages (scripts/package makes them), and makes the release's root in BUILD_FOLDER/roots,
once. Without a fifth word: dpkg, tar and pip on a bare system. `programs`: that release's programs for RDMA, unmodified, on the
packages' libraries. `built`: a few of them, on what the build folder TREE installs, for releases whose C library is no older than
this system's. Exit status 77: skipped, with the reason.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import chroot

SOURCE, BUILD, SUITE, ARCH = (pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), *sys.argv[3:5])
MODE = sys.argv[5] if sys.argv[5:] else "bare"
TREE = pathlib.Path(sys.argv[6]) if MODE == "built" else None
MACHINE = {"amd64": "x86_64", "arm64": "aarch64"}[ARCH]
MOST_INSTALLED_MB, MOST_INSTALL_S = 25, 10
EMULATED = ARCH != chroot.own_arch()
# What installs and compiles; the rest of a bare system is what debootstrap gives.
BARE = ("python3", "python3-pip", "gcc", "libc6-dev", "pkg-config", "iproute2")
BASIC = ("ibverbs-utils", "rdmacm-utils", "perftest", "procps")
OTHERS = (*BASIC, "ucx-utils", "libfabric-bin", "python3-pyverbs", "openmpi-bin", "libopenmpi-dev", "libucx-dev")
# The libraries that packages carry in themselves and a build takes from the system.
SHARED = ("python3", "libsodium23", "libsmartcols1", "libuv1t64" if SUITE == "trixie" else "libuv1")
WITHIN = {"bare": BARE, "programs": BARE + OTHERS, "built": SHARED + BASIC}[MODE]
ROOTS = BUILD / "roots" / MODE

COMPILED = """
gcc /given/all_reduce.c $(PKG_CONFIG_PATH={prefix}/lib/pkgconfig pkg-config --cflags --libs ringbolt) -o /tmp/all_reduce
ringbolt up --emulate ring:3
ringbolt run --no-tag -- /tmp/all_reduce
ringbolt down
"""


def install_built(prefix):
    """What TREE has, all of it: a file that is not built ends cmake's script."""
    done = subprocess.run(("cmake", "--install", TREE, "--prefix", prefix), stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, check=False)
    missing = re.search(r'file INSTALL cannot find\s+"([^"]*)"', done.stderr)
    if missing:
        raise chroot.CannotBeHad(f"{missing[1]} is not built: build all of {TREE}")
    if done.returncode != 0:
        raise AssertionError(done.stderr)


def setUpModule():
    global EMULATION
    try:
        if TREE and not (TREE / "cmake_install.cmake").exists():
            raise chroot.CannotBeHad(f"nothing is built in {TREE}")
        if TREE:
            with tempfile.TemporaryDirectory(prefix="rbt-", dir="/tmp") as folder:
                install_built(folder)
        EMULATION = chroot.Emulation(ARCH)
        unittest.addModuleCleanup(EMULATION.end)
        chroot.base(ROOTS, SUITE, ARCH, WITHIN)
    except chroot.CannotBeHad as reason:
        print(f"skipped: {reason}")
        sys.exit(77)


# Cases of tests/interop that fail for a release's own reasons.
KNOWN = {
    ("bullseye", "rdmacm"): {
        "rping -q",  # posts a receive before its queue pair is INIT; rdma-core mended it later
        "fi_pingpong msg", "fi_pingpong rdm",  # libfabric 1.11: not looked into
    },
    ("bullseye", "fabric"): {f"fi_pingpong dgram {size}" for size in (1, 64, 1024, 4096)},  # likewise
}


class Distribution(unittest.TestCase):
    def setUp(self):
        self.root = ROOTS / f"{SUITE}-{ARCH}"
        folder = tempfile.TemporaryDirectory(prefix="rbt-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.given = pathlib.Path(folder.name) / "given"
        self.work = pathlib.Path(folder.name) / "work"
        self.given.mkdir()
        for file in ("examples/collectives/all_reduce.c", "examples/python/all_reduce.py"):
            shutil.copy2(SOURCE / file, self.given)
        if MODE == "built":
            install_built(self.given / "usr")
            return
        for file in (BUILD / "packages").iterdir():
            if f"_{ARCH}." in file.name or f"{MACHINE}." in file.name:
                if "dbgsym" not in file.name and "-debug" not in file.name:
                    shutil.copy2(file, self.given)

    def inside(self, script, timeout_s=300):
        status, output = chroot.run(self.root, self.given, self.work, script, EMULATED, timeout_s)
        self.assertEqual(status, 0, f"{script}\n{output[-4000:]}")
        return output

    def install(self):
        if MODE == "built":
            return "cp -R /given/usr/. /usr\n"
        return "dpkg -i --force-depends /given/*.deb > /dev/null\n" if EMULATED else "dpkg -i /given/*.deb > /dev/null\n"

    def used(self, driver, *words, before="", timeout_s=600):
        """Runs a driver of tests/interop, which runs that release's own programs, unmodified, on our libraries."""
        shutil.copytree(SOURCE / "tests/interop", self.given / "interop")
        script = (f"{self.install()}{before}\npython3 -B /given/interop/{driver}.py --lib /usr/lib/ringbolt "
                  f"--ringbolt /usr/bin/ringbolt --place default {' '.join(words)}")
        _, output = chroot.run(self.root, self.given, self.work, script, EMULATED, timeout_s)
        self.assertRegex(output, r"== .*: [1-9]\d* ok", script)
        failed = set(re.findall(r"^   failed: (.*)$", output, re.MULTILINE))
        self.assertEqual(failed, KNOWN.get((SUITE, driver), set()), output[-6000:])


@unittest.skipIf(MODE != "bare", "of a bare system")
class Bare(Distribution):
    def timed(self, install):
        """The same as installing, and says how long it took; an emulator's time is nobody's."""
        output = self.inside(f"a=$(date +%s%N)\n{install}\nb=$(date +%s%N)\necho took $(((b - a) / 1000000)) ms")
        took_ms = int(output.split("took ")[1].split()[0])
        if not EMULATED:
            self.assertLess(took_ms, MOST_INSTALL_S * 1000)
        return took_ms

    def test_deb(self):
        self.timed(self.install())
        output = self.inside(self.install() + COMPILED.format(prefix="/usr") +
                             "du -sk /usr/lib/ringbolt /usr/lib/libringbolt* /usr/lib/libnccl* /usr/bin/ringbolt | awk '{s += $1} END {print s, \"KB\"}'\n"
                             "dpkg -r libringbolt-dev ringbolt libringbolt0 > /dev/null; ! test -e /usr/lib/ringbolt")
        self.assertEqual(output.count("rank "), 3, output)
        self.assertLess(int(output.split(" KB")[0].split()[-1]), MOST_INSTALLED_MB * 1024)

    def test_tar(self):
        unpack = "mkdir /opt/there; tar -xf /given/ringbolt-*.tar.gz -C /opt/there --strip-components 1\nexport PATH=/opt/there/bin:$PATH\n"
        self.timed(unpack)
        output = self.inside(unpack + COMPILED.format(prefix="/opt/there"))
        self.assertEqual(output.count("rank "), 3, output)

    def test_container(self):
        """What docker/Dockerfile makes: the same unpacked package and variables, a user without rights, a read-only root."""
        page = (SOURCE / "docker/Dockerfile").read_text()
        variables = re.search(r"^ENV (.*)$", page, re.MULTILINE).group(1)
        user = re.search(r"--uid (\d+)", page).group(1)
        unpacked = self.given / "unpacked"
        unpacked.mkdir()
        (package,) = self.given.glob("ringbolt-*.tar.gz")
        shutil.unpack_archive(package, unpacked)
        next(unpacked.glob("ringbolt-*")).rename(unpacked / "ringbolt")
        script = f"export {variables.replace('/opt/', '/given/unpacked/')}\nid -u\nif touch /there 2> /dev/null; then exit 9; fi\n" \
                 "ringbolt run --emulate ring:3 --no-tag -- sh -c 'echo node $RINGBOLT_NODE; ringbolt devices > /dev/null'"
        status, output = chroot.run(self.root, self.given, self.work, script, EMULATED, 120, user)
        self.assertEqual(status, 0, output)
        self.assertEqual(sorted(output.split("\n")[1:4]), ["node 0", "node 1", "node 2"], output)
        self.assertEqual(output.split()[0], user)

    def test_wheel(self):
        install = ("python3 -m pip install --no-index --root-user-action=ignore --break-system-packages /given/*.whl > /dev/null 2>&1"
                   " || python3 -m pip install --no-index /given/*.whl > /dev/null\n")
        output = self.inside(install + "ringbolt up --emulate ring:4\nringbolt run --no-tag -- python3 /given/all_reduce.py\nringbolt down")
        self.assertEqual(output.count("every element is 10"), 4, output)


@unittest.skipIf(MODE == "bare", "of a system with programs for RDMA")
class Programs(Distribution):
    def test_devices(self):
        self.used("devices")

    def test_pingpong(self):
        self.used("pingpong", "--part 1/6")

    def test_perftest(self):
        self.used("perftest", "--grid quick", "--part 1/16")

    def test_rdma_cm(self):
        self.used("rdmacm")


@unittest.skipIf(MODE != "programs", "of a system with libraries over RDMA")
class Libraries(Distribution):
    def test_ucx(self):
        if SUITE == "trixie":
            self.skipTest("its ucx_perftest is a program for MPI unless its input is a terminal; test_mpi has UCX in it")
        self.used("ucx", "--layer uct")

    def test_libfabric(self):
        self.used("fabric")

    def test_mpi(self):
        compiled = "mpicc /given/interop/mpi_pingpong.c -o /tmp/mpi_pingpong"
        self.used("mpi", "--program /tmp/mpi_pingpong", before=compiled)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
