"""The wheel with all that is built (docs/install.md): the libraries and the command lie in ringbolt/native, as `cmake --install`
lays them out, with the libraries that these need and that a bare system may lack. Takes ../build/release as it is, and builds it
first if nothing is there. One wheel for every Python 3: nothing of it is compiled against one."""

import os
import pathlib
import platform
import re
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel  # from setuptools 70.1 on
except ImportError:
    from wheel.bdist_wheel import bdist_wheel

TOP = pathlib.Path(__file__).resolve().parents[1]
BUILD = TOP / "build/release"
# scripts/package: an installed tree that needs nothing else, the licences of what is inside, the C library that it is for.
TREE, LICENCES, GLIBC = (os.environ.get(f"RINGBOLT_WHEEL_{name}") for name in ("TREE", "LICENCES", "GLIBC"))
MACHINES = {62: "x86_64", 183: "aarch64"}  # e_machine of ELF
# Every system with this C library has these (PEP 600); all others travel along.
OF_THE_SYSTEM = re.compile(r"(lib(c|m|dl|rt|pthread|gcc_s)\.so\.\d|libstdc\+\+\.so\.6|ld-linux.*)$")
COMPILED_IN = ("libfmt-dev", "nlohmann-json3-dev", "libcli11-dev", "libexpected-dev", "libsodium-dev")  # as Debian calls them
LEFT_OUT = ("include", "share", "lib/pkgconfig", "lib/cmake")  # for compilers, people and shells: `cmake --install` has them


def run(*words):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))}: exit status {done.returncode}\n{done.stdout[-2000:]}{done.stderr}")
    return done.stdout


def machine_of(file):
    with open(file, "rb") as elf:
        head = elf.read(20)
    return MACHINES.get(int.from_bytes(head[18:20], "little")) if head[:4] == b"\x7fELF" else None


def build_all():
    """Unless it is built: somebody else's build folder is not brought up to date unasked."""
    if not (BUILD / "bin/ringbolt").exists():
        if not (TOP / "CMakePresets.json").exists():
            raise SystemExit(f"{TOP} is no clone of Ringbolt, and a wheel needs one: pip install PATH_OF_THE_CLONE/python")
        print("building Ringbolt: some minutes", flush=True)
        run("cmake", "-S", TOP, "--preset", "release", "-DRINGBOLT_TESTS=OFF", "-DRINGBOLT_BENCH=OFF")
        run("cmake", "--build", BUILD, "--target", "installed")


def stage(native):
    """Installs into the folder `native`. A wheel has no links: what they lead to takes their place, once."""
    manifest = BUILD / "install_manifest.txt"
    kept = manifest.read_bytes() if manifest.exists() else None
    shutil.rmtree(native, ignore_errors=True)
    if TREE:
        shutil.copytree(TREE, native, symlinks=True)
    else:
        run("cmake", "--install", BUILD, "--prefix", native)
        if kept is None:
            manifest.unlink()
        else:
            manifest.write_bytes(kept)  # of an installation that can still be removed by it
    for name in LEFT_OUT:
        shutil.rmtree(native / name)
    dropins = native / "lib/ringbolt"
    for name in ("libringbolt.so.0", "libringbolt-stream.so.0"):  # programs that the launcher starts look here, Python too
        real = (dropins / name).resolve()
        (dropins / name).unlink()
        real.rename(dropins / name)
    for path in list((native / "lib").rglob("*")):
        if path.is_symlink():
            if path.name == "librdma.dylib":  # programs of macOS open it by this name
                shutil.copy2(path.resolve(), dropins / "librdma.dylib.new")
                path.unlink()
                (dropins / "librdma.dylib.new").rename(path)
            else:  # names for linkers
                path.unlink()


def needed_by(file):
    """{soname: path} of what the loader finds for an ELF file."""
    return dict(re.findall(r"^\s*(\S+) => (/\S+)", run("ldd", file), re.MULTILINE))


def package_of(library):
    """Debian's, whose libraries these are."""
    return run("dpkg-query", "-S", f"*/{pathlib.Path(library).name}").split(":")[0]


def copy_licence(package, folder):
    licence = pathlib.Path("/usr/share/doc", package, "copyright")
    if not licence.exists():
        raise SystemExit(f"{package} can't travel along: there is no licence at {licence}")
    shutil.copy2(licence, folder / f"{package}.copyright")


def carry(native):
    """Copies the libraries that ours need into native/lib/needed, with their licences, and leads ours there."""
    needed, licences = native / "lib/needed", native / "licences"
    needed.mkdir()
    licences.mkdir()
    for file in [path for path in native.rglob("*") if path.is_file() and machine_of(path)]:
        others = {soname: path for soname, path in needed_by(file).items()
                  if not OF_THE_SYSTEM.match(soname) and not (native / "lib/ringbolt" / soname).exists()}
        for soname, path in others.items():
            if not (needed / soname).exists():
                shutil.copy2(os.path.realpath(path), needed / soname)
                copy_licence(package_of(os.path.realpath(path)), licences)
        if others:
            run("patchelf", "--set-rpath", f"$ORIGIN/{os.path.relpath(needed, file.parent)}", file)
    for package in COMPILED_IN:
        copy_licence(package, licences)
    shutil.copy2(TOP / "LICENSE", licences / "LICENSE")


class WithLibraries(build_py):
    def run(self):
        super().run()
        if not self.editable_mode:  # that one finds them in the clone
            native = pathlib.Path(self.build_lib).resolve() / "ringbolt/native"
            if TREE:
                stage(native)
                shutil.copytree(LICENCES, native / "licences")
            else:
                build_all()
                stage(native)
                carry(native)


class OfOneMachine(Distribution):
    def has_ext_modules(self):
        return True


class AnyPython(bdist_wheel):
    def get_tag(self):
        if not TREE:
            build_all()
        program = pathlib.Path(TREE or BUILD) / "bin/ringbolt"
        machine = machine_of(program)
        if machine is None:
            raise SystemExit(f"{program} is no program for {' or '.join(MACHINES.values())}")
        major, minor = (GLIBC or platform.libc_ver()[1]).split(".")[:2]
        return "py3", "none", f"manylinux_{major}_{minor}_{machine}"


setup(distclass=OfOneMachine, cmdclass={"build_py": WithLibraries, "bdist_wheel": AnyPython})
