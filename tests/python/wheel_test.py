"""The wheel of python/setup.py: made of the build that is there, installed into an empty environment, and used from a folder
elsewhere, without a word about where anything lies."""

import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

from command import CommandCase
from conftest import WORDS

MOST_BYTES = 12 << 20
SOURCE = pathlib.Path(WORDS["source"])


class Wheel(CommandCase):
    def sh(self, *words, expect=0):
        done = subprocess.run(list(map(str, words)), env=self.environment, capture_output=True, text=True, timeout=120,
                              check=False, stdin=subprocess.DEVNULL, cwd=self.elsewhere)
        self.assertEqual(done.returncode, expect, f"{words}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def pip(self, *words, **options):
        return self.sh("/usr/bin/python3" if pathlib.Path("/usr/bin/python3").exists() else sys.executable, "-m", "pip",
                       "--disable-pip-version-check", *words, **options)

    def made(self):
        """In a folder that looks like the clone: nothing is left in the real one."""
        clone = self.root / "clone"
        shutil.copytree(SOURCE / "python", clone / "python", ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
        (clone / "build").mkdir()
        (clone / "build/release").symlink_to(pathlib.Path(WORDS["libraries"]).parent)
        shutil.copy2(SOURCE / "LICENSE", clone / "LICENSE")
        self.pip("wheel", "--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", self.root, clone / "python")
        (wheel,) = self.root.glob("*.whl")
        return wheel

    def test_made_installed_and_used(self):
        self.elsewhere = self.root / "elsewhere"
        self.elsewhere.mkdir()
        wheel = self.made()
        self.assertRegex(wheel.name, r"^ringbolt-[0-9.]+-py3-none-manylinux_2_\d+_(x86_64|aarch64)\.whl$")
        self.assertLess(wheel.stat().st_size, MOST_BYTES)
        with zipfile.ZipFile(wheel) as file:
            names = file.namelist()
        needed = [name.rsplit("/", 1)[1].split(".so")[0] for name in names if name.startswith("ringbolt/native/lib/needed/")]
        for name in [*needed, "LICENSE", "libfmt"]:
            self.assertTrue(any(one.startswith(f"ringbolt/native/licences/{name}") for one in names), name)
        place = self.root / "environment"
        self.sh("/usr/bin/python3", "-m", "venv", "--without-pip", place)
        self.pip("--python", place / "bin/python3", "install", "--no-index", wheel)
        self.environment["PATH"] = f"{place}/bin:/usr/bin:/bin"
        native = next(place.glob("lib/python3*/site-packages")) / "ringbolt/native"
        self.is_complete(native)
        self.is_used()
        self.elsewhere_is_refused(wheel, place, native)

    def is_complete(self, native):
        """All that any of its programs and libraries loads is the system's, or its own."""
        for path in native.rglob("*"):
            if path.is_file() and path.read_bytes()[:4] == b"\x7fELF":
                loaded = self.sh("ldd", path)
                self.assertNotIn("not found", loaded)
                for soname, found in re.findall(r"(\S+) => (\S+)", loaded):
                    if not re.match(r"lib(c|m|stdc\+\+|gcc_s)\.so", soname):
                        self.assertTrue(pathlib.Path(found).resolve().is_relative_to(native), f"{path}: {soname}: {found}")

    def is_used(self):
        shutil.copy2(SOURCE / "examples/python/all_reduce.py", self.elsewhere)
        self.sh("ringbolt", "up", "--emulate", "ring:4")
        try:
            lines = self.sh("ringbolt", "run", "--no-tag", "--", "python3", "all_reduce.py").splitlines()
            self.assertEqual(sorted(lines), [f"rank {r} of 4: every element is 10, to the last 10" for r in range(4)])
            self.assertIn("rdma_en2", self.sh("python3", "-m", "ringbolt", "exec", "0", "--", "ibv_devices"))
        finally:
            self.sh("ringbolt", "down")
        script = "import ringbolt, ringbolt.stream; print(ringbolt.version(), ringbolt.Group.__module__)"
        version = self.sh("python3", "-c", script)
        self.assertRegex(version, r"^\d+\.\d+\.\d+ ringbolt$")
        self.assertIn("rank 0 of 1", self.sh("env", "RANK=0", "WORLD_SIZE=1", "python3", "all_reduce.py"))

    def elsewhere_is_refused(self, wheel, place, native):
        """By pip, and by the package if it got there in another way."""
        other, number = ("aarch64", 183) if "x86_64" in wheel.name else ("x86_64", 62)
        foreign = self.root / re.sub(r"x86_64|aarch64", other, wheel.name)
        shutil.copy2(wheel, foreign)
        said = self.pip("--python", place / "bin/python3", "install", "--no-index", foreign, expect=1)
        self.assertIn("not a supported wheel on this platform", said)
        library = native / "lib/ringbolt/libringbolt.so.0"
        bytes_ = bytearray(library.read_bytes())
        bytes_[18:20] = number.to_bytes(2, "little")
        library.write_bytes(bytes_)
        said = self.sh("python3", "-c", "import ringbolt; ringbolt.version()", expect=1)
        self.assertIn(f"it is for {other}, and this is", said)
        (native / "bin/ringbolt").unlink()
        self.assertIn("build/release/bin/ringbolt", self.sh("ringbolt", "--version", expect=1))
