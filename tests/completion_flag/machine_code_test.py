#!/usr/bin/env python3
"""The instructions that compilers make of completion flags, in their order: payload, barrier, flag, barrier.

    machine_code_test.py INCLUDE

For this machine's compilers, for AArch64 where a cross compiler is there, and for CUDA where nvcc is."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

INCLUDE = sys.argv.pop()

HOST = """
#include <ringbolt/completion_flag.h>
extern "C" int signal_it(ringbolt::CompletionFlag* flag, uint64_t* payload, uint64_t number) {
  flag->uses = USES;
  *payload = 0x5af3107a4000;
  return static_cast<int>(flag->signal(number));
}
"""
DEVICE = """
#include <ringbolt/completion_flag.cuh>
extern "C" __global__ void signal_it(ringbolt::CompletionFlag* flag, uint64_t* payload, uint64_t number) {
  *payload = number;
  ringbolt::device::signal(*flag, number);
}
extern "C" __global__ void wait_for_it(ringbolt::CompletionFlag* flag, uint64_t* payload, uint64_t number) {
  if (ringbolt::device::wait(*flag, number, {}) == ringbolt::FlagStatus::ready) payload[1] = payload[0];
}
"""


EXCHANGE = r"xchgq\s+.*\(%r\w+\)"  # with memory: a full fence


class MachineCode(unittest.TestCase):
    def code_of(self, text: str, suffix: str, *command: str) -> str:
        if shutil.which(command[0]) is None:
            self.skipTest(f"skip: there is no {command[0]}")
        with tempfile.TemporaryDirectory() as folder:
            source, made = pathlib.Path(folder, f"it.{suffix}"), pathlib.Path(folder, "it.s")
            source.write_text(text)
            done = subprocess.run([*command, "-std=c++17", f"-I{INCLUDE}", "-o", made, source], capture_output=True, text=True,
                                  timeout=120, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            return made.read_text()

    def function(self, code: str, name: str) -> str:
        return code[code.index(f"\n{name}:"):].split(".cfi_endproc")[0]

    def check_order(self, code: str, *patterns: str) -> None:
        at = 0
        for pattern in patterns:
            found = re.compile(pattern, re.MULTILINE).search(code, at)
            self.assertIsNotNone(found, f"{pattern} is not there, or not behind the one before it, in\n{code}")
            at = found.end()

    def test_x86_64_by_an_exchange(self):
        for compiler in ("g++", "clang++"):
            with self.subTest(compiler):
                code = self.code_of(HOST.replace("USES", "0"), "cpp", compiler, "-O2", "-S", "-m64")
                self.check_order(self.function(code, "signal_it"), r"movq\s+%\w+, \(%rsi\)", EXCHANGE, r"8\(%r", r"136\(%r")
                code = self.code_of(HOST.replace("USES", "1"), "cpp", compiler, "-O2", "-S", "-m64")
                self.check_order(self.function(code, "signal_it"), r"movq\s+%\w+, \(%rsi\)", r"sfence", EXCHANGE)

    def test_aarch64_by_barriers_around_stlr(self):
        code = self.code_of(HOST.replace("USES", "1"), "cpp", "aarch64-linux-gnu-g++", "-O2", "-S")
        self.check_order(self.function(code, "signal_it"), r"str\s+x\d+, \[x1\]", r"dmb\s+oshst", r"stlr\s+x", r"dsb\s+sy")
        code = self.code_of(HOST.replace("USES", "0"), "cpp", "aarch64-linux-gnu-g++", "-O2", "-S")
        self.check_order(self.function(code, "signal_it"), r"stlr\s+x", r"dmb\s+ish$", r"ldar\s+x")

    def test_cuda_by_fences_of_the_system(self):
        code = self.code_of(DEVICE, "cu", "nvcc", "-arch=sm_80", "-ptx")
        signal, wait = code.split(".entry wait_for_it")
        self.check_order(signal, r"st.(global.)?u64", r"membar\.sys|fence\.\w+\.sys", r"st\.release\.sys",
                         r"membar\.sys|fence\.\w+\.sys", r"ld\.acquire\.sys")
        self.check_order(wait, r"ld\.acquire\.sys", r"membar\.sys|fence\.\w+\.sys", r"ld.(global.)?u64")
        self.assertNotRegex(code, r"\batom\.|\bred\.")  # it never reads, modifies and writes


if __name__ == "__main__":
    unittest.main()
