#!/usr/bin/env python3
"""Stock hiredis over streams (include/ringbolt/hiredis.h), to the example of a key-value server and to stock Valkey.

    hiredis_test.py SOURCE BUILD COMPILER

Debian 12's hiredis is older than 1.1, so this takes the one that is in the sources of Python's package hiredis. Exit
status 77 if those can't be had here."""

import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

import servers

SOURCE, BUILD = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
COMPILER = sys.argv[3]
FOLDER = SOURCE / "build/hiredis"
LIMIT_S = 120


def need_hiredis():
    """Its sources in FOLDER/hiredis and its library, made the first time."""
    if (FOLDER / "libhiredis.a").exists():
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    pip = [servers.need_clients(SOURCE), "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--timeout", "10",
           "--retries", "1", "-d", FOLDER, "hiredis"]
    done = subprocess.run(pip, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    archives = sorted(FOLDER.glob("hiredis-*.tar.gz"))
    if done.returncode != 0 or not archives:
        print(f"skip: no hiredis of PyPI: {(done.stdout.strip().splitlines() or ['no word of why'])[-1]}")
        sys.exit(77)
    (FOLDER / "hiredis").mkdir(exist_ok=True)
    with tarfile.open(archives[-1]) as archive:
        for member in archive.getmembers():
            path = pathlib.PurePath(member.name)
            if path.parts[1:3] == ("vendor", "hiredis") and path.suffix in (".c", ".h"):
                (FOLDER / "hiredis" / path.name).write_bytes(archive.extractfile(member).read())
    objects = []
    for name in ("alloc", "async", "hiredis", "net", "read", "sds", "sockcompat"):
        objects.append(FOLDER / f"{name}.o")
        subprocess.run([COMPILER, "-std=gnu11", "-O2", "-c", FOLDER / f"hiredis/{name}.c", "-o", objects[-1]], check=True)
    subprocess.run(["ar", "rcs", FOLDER / "libhiredis.a", *objects], check=True)


class Hiredis(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rbh-")
        self.addCleanup(folder.cleanup)
        self.runtime = pathlib.Path(folder.name)

    def built(self, source, language):
        program = self.runtime / "program"
        subprocess.run([COMPILER, "-O2", "-Wall", "-Wextra", "-Werror", f"-I{SOURCE}/include", f"-isystem{FOLDER}", "-x", language,
                        SOURCE / source, "-x", "none", FOLDER / "libhiredis.a", f"-L{BUILD}/lib", "-lringbolt-stream",
                        "-o", program], check=True)
        return program

    def call(self, *words, status=0):
        done = subprocess.run(list(map(str, words)), env=servers.environment(BUILD, self.runtime), text=True,
                              capture_output=True, timeout=LIMIT_S, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_its_calls(self):
        program = self.built("tests/stream/hiredis_program.c", "c")
        for kind in ("example", "valkey"):
            with self.subTest(server=kind):
                server = servers.Server(kind, SOURCE, BUILD, self.runtime)
                self.addCleanup(server.end)
                self.assertEqual(self.call(program, server.process.pid), "ok\n")

    def test_the_example_in_both_languages(self):
        for language in ("c", "c++"):
            program = self.built("examples/key-value/hiredis_client.c", language)
            self.assertIn("refused: nobody listens there over RDMA", self.call(program, "127.0.0.1", status=1))
            server = servers.Server("example", SOURCE, BUILD, self.runtime)
            self.assertEqual(self.call(program, "127.0.0.1"), "hello, over rdma_lo\n")
            server.end()


if __name__ == "__main__":
    need_hiredis()
    servers.need_valkey(SOURCE)
    unittest.main(argv=sys.argv[:1], verbosity=2)
