#!/usr/bin/env python3
"""RINGBOLT_EXPLAIN: every refused call of mistakes.c is explained, at its line, with a number or a name and a remedy.

    explain_test.py RINGBOLT MISTAKES OPTIMIZED"""

import pathlib
import re
import subprocess

import command
from command import CommandCase

WORDS = {
    "skipped-init": r"no such thing as the step of a queue pair of type RC from RESET to RTR",
    "missing-attribute": r"from INIT to RTR needs IBV_QP_MIN_RNR_TIMER, which the mask lacks",
    "excess-attribute": r"does not take IBV_QP_TIMEOUT$",
    "wrong-current-state": r"cur_qp_state says RTS, and the queue pair is in INIT",
    "empty-gid": r"GID index 5 is (empty|beyond the table): \w+ has \d GIDs, and ::ffff:127\.\d+\.\d+\.\d+ is at index 1",
    "no-grh": r"is_global is 0",
    "unreachable": r"does not reach ::ffff:127\.\d+\.\d+\.\d+",
    "mtu-in-bytes": r"path_mtu is 4096; \w+ takes 1 to 5",
    "read-atomic": r"max_dest_rd_atomic is 200; \w+ takes 0 to 16",
    "send-before-rts": r"in the state INIT; it takes sends from RTS on",
    "receive-pieces": r"num_sge is 2; the queue was made for 1",
    "receive-queue-full": r"the receive queue is full: it holds 4",
    "receive-in-reset": r"in the state RESET; it takes receives from INIT on",
    "send-pieces": r"num_sge is 2; the queue pair was made with max_send_sge 1",
    "inline-too-long": r"100 bytes inline; the queue pair was made with max_inline_data 64",
    "inline-read": r"IBV_WR_RDMA_READ carries no data that could be inline",
    "send-queue-full": r"the send queue is full: 4 of 4 requests are unfinished",
    "write-on-ud": r"IBV_WR_RDMA_WRITE on a queue pair of type UD",
    "datagram-to-nobody": r"wr\.ud\.ah is null",
    "remote-write-alone": r"access 0x2 lets peers write without IBV_ACCESS_LOCAL_WRITE",
    "not-mapped": r"4096 bytes at 0x1000 are not all mapped",
    "read-only": r"4096 bytes at 0x\w+ are read-only",
    "on-demand": r"no paging on demand",
    "no-entries": r"cqe is 1073741824; the device takes 1 to 1048576",
    "deep-queue": r"cap\.max_send_wr is 1048576; the device has 16384 at most",
    "no-receive-cq": r"send_cq or recv_cq is null",
    "empty-srq": r"max_wr is 0",
    "ah-empty-gid": r"GID index 6 is",
    "gid-beyond-table": r"no index 99 with these flags: the table has \d",
    "port-zero": r"there is no port 0: each device has port 1",
    "time-stamps": r"wc_flags 0x\w+; the device has 0x\w+: no time stamps",
    "cq-mask": r"comp_mask 0x40000000, flags 0x0: some of their bits mean nothing",
    "ops-of-ud": r"send_ops_flags 0x\w+: a queue pair of type 4 does not have 0x\w+ of it",
    "no-domain": r"comp_mask is 0x\w+, and pd is set",
    "create-flags": r"create_flags is 0x1; the device has none",
    "nothing-begun": r"ibv_wr_set_sge_list, at mistakes\.c:\d+ in main\(\): no request is begun: 0 since ibv_wr_start",
    "not-asked-for": r"ibv_wr_\*, at mistakes\.c:\d+ in main\(\): send_ops_flags of ibv_create_qp_ex did not name this",
    "builder-pieces": r"ibv_wr_set_sge_list, at mistakes\.c:\d+ in main\(\): num_sge is 2; .* max_send_sge 1",
    "builder-inline": r"ibv_wr_set_inline_data_list, at mistakes\.c:\d+ in main\(\): 100 bytes inline; .* max_inline_data 64",
    "builder-full": r"ibv_wr_\*, at mistakes\.c:\d+ in main\(\): the batch has 4 requests, as many as the send queue",
    "xrc-srq": r"srq_type is 1; the device has IBV_SRQT_BASIC \(0\) alone",
    "pd-in-use": r"the protection domain is in use, by \d+ objects",
    "cq-in-use": r"the completion queue is in use",
}
PARAGRAPH = re.compile(r"ringbolt: (\w+): (E\w+) \(([^)]+)\), at (.*)\n  why: (.+)\n  fix: (.+)\n")


class Explanations(CommandCase):
    def run_mistakes(self, wanted, program=0):
        environment = command.sanitizer_first(self.environment) | {"RINGBOLT_EXPLAIN": str(wanted)} | self.device()
        return subprocess.run([command.EXTRA[program]], env=environment, capture_output=True, text=True, timeout=60, check=True)

    def device(self):
        library = pathlib.Path(command.RINGBOLT).resolve().parent.parent / "lib/ringbolt"
        return {"LD_LIBRARY_PATH": str(library)}

    def test_every_refusal_is_explained_where_it_was_made(self):
        for program in range(len(command.EXTRA)):
            with self.subTest(command.EXTRA[program]):
                self.check_each(program)

    def check_each(self, program):
        file = self.root / f"why{program}"
        done = self.run_mistakes(file, program)
        self.assertEqual(done.stderr, "")
        made = [line.split() for line in done.stdout.splitlines()]
        self.assertEqual([name for name, _, refused in made if refused != "1"], [])
        self.assertEqual([name for name, *_ in made], list(WORDS))
        text = file.read_text()
        said = PARAGRAPH.findall(text)
        self.assertEqual(PARAGRAPH.sub("", text), "", "nothing else, and nothing longer")
        self.assertEqual(len(said), len(made), text)
        for (name, line, _), (_, _, _, place, why, fix) in zip(made, said):
            self.assertRegex(why, WORDS[name])
            self.assertEqual(place, f"mistakes.c:{line} in main()", name)
            self.assertLess(max(len(why), len(fix)), 200, name)

    def test_on_is_standard_error_and_off_is_nothing(self):
        self.assertEqual(len(PARAGRAPH.findall(self.run_mistakes("on").stderr)), len(WORDS))
        self.assertEqual(self.run_mistakes("off").stderr, "")

    def test_a_file_that_can_t_be_opened_is_told(self):
        said = self.run_mistakes(self.root / "no/such/folder").stderr
        self.assertIn("no/such/folder: open: No such file or directory; explanations come here instead\n", said)
        self.assertEqual(len(PARAGRAPH.findall(said)), len(WORDS))


if __name__ == "__main__":
    command.main()
