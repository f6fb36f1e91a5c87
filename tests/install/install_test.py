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
        self.cmake_finds_it(tree)
        self.ci_installs_it(tree)

    def cmake_finds_it(self, tree):
        """find_package() wherever the tree lies, and tests on clusters: one passes, one fails for its fault."""
        project = self.root / "project"
        project.mkdir()
        (project / "rank.c").write_text((self.source / "examples/collectives/all_reduce.c").read_text())
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.18)\nproject(p C)\nenable_testing()\nfind_package(Ringbolt 0.1 REQUIRED)\n"
            "add_executable(rank rank.c)\ntarget_link_libraries(rank Ringbolt::ringbolt)\n"
            "ringbolt_add_test(NAME ring TOPOLOGY ring:3 COMMAND rank)\n"
            "ringbolt_add_test(NAME three NODES 3 ON 0 1 COMMAND sh -c \"test $RINGBOLT_NODES = 3\")\n"
            "ringbolt_add_test(NAME faulty FAULTS \"completion-error 100% status 12\" \"rnr 1%\" OPTIONS --keep-going TIMEOUT 20 COMMAND rank)\n")
        self.sh("cmake", "-S", project, "-B", project / "b", f"-DCMAKE_PREFIX_PATH={tree}")
        self.sh("cmake", "--build", project / "b")
        self.sh("ctest", "--test-dir", project / "b", "-E", "faulty", "--output-on-failure")
        done = subprocess.run(("ctest", "--test-dir", project / "b", "-R", "faulty", "-V"), env=self.environment, capture_output=True,
                              text=True, timeout=120, check=False)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn("ringbolt run", done.stdout)

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

    def ci_job(self, package, *more, expect=0):
        """The action's step, as a runner runs it; returns (what it said, {what later steps have})."""
        files = {name: self.root / name.lower() for name in ("GITHUB_PATH", "GITHUB_ENV")}
        for file in files.values():
            file.write_text("")
        environment = self.environment | {name: str(file) for name, file in files.items()}
        environment |= {"GITHUB_ACTION_PATH": str(self.source), "RUNNER_TEMP": str(self.root / "runner"), "PACKAGE": str(package)}
        environment["SHA256"] = more[0] if more else ""
        step = re.search(r"run: '(.*)'", (self.source / "action.yml").read_text()).group(1)
        done = subprocess.run(("bash", "-e", "-c", step), env=environment, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        later = dict(line.split("=", 1) for line in files["GITHUB_ENV"].read_text().splitlines())
        return done.stdout + done.stderr, later | {"PATH": files["GITHUB_PATH"].read_text().strip()}

    def ci_installs_it(self, tree):
        package = self.root / "ringbolt-1-linux-x.tar.gz"
        self.sh("tar", "-czf", package, "-C", tree.parent, tree.name)
        said, later = self.ci_job(package)
        self.assertIn("ci-install: ", said)
        self.assertEqual(self.sh(pathlib.Path(later["PATH"]) / "ringbolt", "run", "--emulate", "line:2", "--no-tag", "--", "echo", "in CI"),
                         "in CI\n" * 2)
        self.assertTrue((pathlib.Path(later["RINGBOLT_PREFIX"]) / "lib/pkgconfig/ringbolt.pc").exists())
        self.assertIn("and should be 00", self.ci_job(package, "00", expect=1)[0])
        self.assertIn("there is no", self.ci_job(self.root / "elsewhere.tar.gz", expect=1)[0])
        package.write_text("nothing")
        self.assertIn("no package of Ringbolt", self.ci_job(package, expect=1)[0])

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
