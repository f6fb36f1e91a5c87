"""What `cmake --install` makes of the build: all of it documented, usable wherever it lies, and small.

    install_test.py RINGBOLT SOURCE BUILD
"""

import json
import pathlib
import re
import shlex
import subprocess

import command
from command import CommandCase

MOST_BYTES = 24 << 20  # without line tables; with them it is several times as much


class Install(CommandCase):
    def setUp(self):
        super().setUp()
        self.source, self.build = (pathlib.Path(word) for word in command.EXTRA)

    def sh(self, *words, **options):
        done = subprocess.run(list(map(str, words)), env=self.environment, capture_output=True, text=True, timeout=120,
                              check=False, **options)
        self.assertEqual(done.returncode, 0, f"{words}\n{done.stdout}{done.stderr}")
        return done.stdout

    def test_installed_moved_and_used(self):
        first, tree = self.root / "first", self.root / "moved"
        manifest = self.build / "install_manifest.txt"
        kept = manifest.read_bytes() if manifest.exists() else None
        self.sh("cmake", "--install", self.build, "--prefix", first)
        if kept is None:
            manifest.unlink()
        else:
            manifest.write_bytes(kept)
        first.rename(tree)
        files = [path for path in tree.rglob("*") if not path.is_dir()]
        self.assertLess(sum(path.lstat().st_size for path in files), MOST_BYTES)
        self.all_is_documented({str(path.relative_to(tree)) for path in files})
        self.program_is_built_and_run(tree)

    def all_is_documented(self, installed):
        table = (self.source / "docs/install.md").read_text().split("| installed |")[1].split("\n\n")[0]
        named = set(re.findall(r"`([a-z]+/[^`]+)`", table))
        folders = {name for name in named if name.endswith("/")}
        inside = {name for name in installed if any(name.startswith(folder) for folder in folders)}
        self.assertTrue(inside)
        self.assertEqual(installed - inside, named - folders)

    def program_is_built_and_run(self, tree):
        self.environment["PKG_CONFIG_PATH"] = str(tree / "lib/pkgconfig")
        flags = shlex.split(self.sh("pkg-config", "--cflags", "--libs", "ringbolt"))
        for flag in flags:
            if flag.startswith(("-I", "-L")):
                self.assertTrue(pathlib.Path(flag[2:]).resolve().is_relative_to(tree.resolve()), flags)
        programs = []
        for source, compiler in (("examples/collectives/all_reduce.c", "gcc"), ("examples/collectives/all_reduce.cpp", "g++ -std=c++20"),
                                 ("tests/group/outside_rank.c", "gcc"), ("tests/group/outside_rank.cpp", "g++ -std=c++20")):
            programs.append(self.root / pathlib.Path(source).name.replace(".", "_"))
            self.sh(*compiler.split(), self.source / source, *flags, "-o", programs[-1])
        flags = shlex.split(self.sh("pkg-config", "--cflags", "--libs", "ringbolt-stream"))
        self.sh("g++", "-std=c++20", self.source / "examples/key-value/server.cpp", *flags, "-o", self.root / "server")
        built, command.RINGBOLT = command.RINGBOLT, str(tree / "bin/ringbolt")
        self.addCleanup(setattr, command, "RINGBOLT", built)
        with self.cluster("ring:3"):
            for program in programs[:2]:
                self.assertEqual(len(self.call("run", "--no-tag", "--", program).stdout.splitlines()), 3)
            maps = self.call("exec", "0", "--", "sh", "-c", "ldd $0", programs[0]).stdout
            self.assertIn(f"libringbolt.so.0 => {tree}/lib/ringbolt/libringbolt.so.0", maps)
        with self.cluster("line:3"):
            for program in programs[2:]:
                meeting = self.root / (program.name + ".meeting")
                meeting.mkdir()
                self.assertEqual(self.call("run", "--no-tag", "--", program, meeting).stdout.split(), ["ok"] * 3)

    def test_who_names_no_build_type_gets_a_release_whose_warnings_are_no_errors(self):
        plain = self.root / "b"
        self.sh("cmake", "-S", self.source, "-B", plain, "-DRINGBOLT_TESTS=OFF", "-DRINGBOLT_BENCH=OFF")
        entries = json.loads((plain / "compile_commands.json").read_text())
        self.assertGreater(len(entries), 100)
        for entry in entries:
            self.assertRegex(entry["command"], r" -O[123] ", entry["file"])
            self.assertNotIn("-Werror", entry["command"], entry["file"])
        self.assertIn("-Werror", (self.build / "compile_commands.json").read_text())


if __name__ == "__main__":
    command.main()
