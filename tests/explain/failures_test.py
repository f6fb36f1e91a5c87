#!/usr/bin/env python3
"""RINGBOLT_EXPLAIN of what fails later: error completions, lost messages, connections, programs that wait in vain. Each
mistake of failures.c, cm_failures.c, rsocket_failures.c and waits.c is explained with its line, a number and a remedy, and
the same programs without them (`right`) say nothing.

    failures_test.py RINGBOLT DOCUMENTS OVER_NETWORK MISTAKES FAILURES FAILURES_OPTIMIZED CM_FAILURES RSOCKET_FAILURES WAITS"""

import json
import os
import pathlib
import re
import subprocess

import command
from command import CommandCase

# Of each mistake: what is said of it. A and B stand for the lines of A's and B's post, or of what B did; L before it
# for shared memory alone, N for the network.
A, B = r"failures\.c:{a} in \w+\(\)", r"failures\.c:{b} in \w+\(\)"
WRITE, READ, SEND = "IBV_WR_RDMA_WRITE of queue pair", "IBV_WR_RDMA_READ of queue pair", "IBV_WR_SEND of queue pair"
ADD = "IBV_WR_ATOMIC_FETCH_AND_ADD of queue pair"
ACCESS, INVALID = "IBV_WC_REM_ACCESS_ERR", "IBV_WC_REM_INV_REQ_ERR"


def asked(opcode, status, words, place=A):
    return rf"ringbolt: {opcode} 0x\w+, wr_id 7: {status}, posted at {place}\n(?s:.*){words}"


def refused(status, words):
    return rf"ringbolt: request of the peer of queue pair 0x\w+, from queue pair 0x\w+ of process \d+: {status}\n(?s:.*){words}"


def both(opcode, status, words):
    return [asked(opcode, status, words), refused(status, words)]


def dropped(kind, words):
    return [rf"ringbolt: {kind} of queue pair 0x\w+, .*: (dropped|lost).*\n(?s:.*){words}"]


CASES = {
    "rkey-deregistered": both(WRITE, ACCESS, rf"its region of 8192 bytes at 0x\w+ was deregistered at {B}, \d+ [mu]s ago"),
    "rkey-bounds": both(WRITE, ACCESS, r"the region of rkey 0x\w+ is 8192 bytes at 0x\w+; 64 bytes from byte 8182 on were addressed"),
    "rkey-read-only": both(WRITE, ACCESS, r"allows IBV_ACCESS_LOCAL_WRITE \| IBV_ACCESS_REMOTE_READ, and lacks IBV_ACCESS_REMOTE_WRITE"),
    "rkey-other-domain": both(WRITE, ACCESS, r"is of another protection domain \(\d+\) than (the peer's|this) queue pair 0x\w+ \(\d+\)"),
    "rkey-offset": both(WRITE, ACCESS, r"64 bytes from 0x0 on were addressed"),
    "rkey-swapped": both(WRITE, ACCESS, r"has its bytes in reverse: .* has a region with 0x\w+"),
    "rkey-unknown": both(WRITE, ACCESS, r"is no key of (the peer's process \d+|this process), nor of one of the regions"),
    "flushed": [*both(WRITE, ACCESS, r"is no key of (the peer's process \d+|this process), nor of one of the regions"),
                asked(WRITE, "IBV_WC_WR_FLUSH_ERR", rf"  why: flushed: wr_id 7, an IBV_WR_RDMA_WRITE that was posted at {A}, has failed with {ACCESS}\n")],
    "atomic-address": both(ADD, INVALID, r"an atomic of 8 bytes at 0x\w+4, which is not a multiple of 8"),
    "read-bounds": both(READ, ACCESS, r"is 8192 bytes at 0x\w+; 64 bytes from byte 8192 on were addressed"),
    "qp-access-flags": both(WRITE, "IBV_WC_REM_(INV_REQ|ACCESS)_ERR", r"has qp_access_flags IBV_ACCESS_LOCAL_WRITE, without IBV_ACCESS_REMOTE_WRITE"),
    "receive-too-short": [
        asked(SEND, INVALID, r"peer: the message has (at least )?\d+ bytes, and the receive 4096 \(process \d+, "),
        rf"ringbolt: receive of queue pair 0x\w+, wr_id 9: IBV_WC_LOC_LEN_ERR, posted at {B}\n  why: the message has (8192|at least \d+) bytes, and the receive 4096\n"],
    "receive-key": [
        asked(SEND, "IBV_WC_REM_OP_ERR", r"peer: lkey 0x\w+ is no key of this process"),
        rf"ringbolt: receive of queue pair 0x\w+, wr_id 9: IBV_WC_LOC_PROT_ERR, posted at {B}\n  why: lkey 0x\w+ is no key of this process"],
    "send-key": [asked(SEND, "IBV_WC_LOC_PROT_ERR", r"lkey 0x\w+ is no key of this process")],
    "send-bounds": [asked(SEND, "IBV_WC_LOC_PROT_ERR", r"the region of lkey 0x\w+ is 8192 bytes at 0x\w+; 100 bytes from byte 8142 on")],
    "send-deregistered": [asked(SEND, "IBV_WC_LOC_PROT_ERR", r"its region of 8192 bytes at 0x\w+ was deregistered at failures\.c:\d+ in \w+\(\), \d+ [mu]s ago")],
    "no-receive": [asked(SEND, "IBV_WC_RNR_RETRY_EXC_ERR", r"had no receive for it.*\n  peer: no receive was ever posted \(process \d+, ")],
    "peer-destroyed": [asked(SEND, "IBV_WC_RETRY_EXC_ERR", rf"no answer of queue pair 0x\w+ of process \d+ for \d+ ms \(timeout 8, retry_cnt 1\).*\n  peer: it was destroyed at {B}, \d+")],
    "read-into-read-only": [asked(READ, "IBV_WC_LOC_PROT_ERR", r"the region of lkey 0x\w+ allows no access, and lacks IBV_ACCESS_LOCAL_WRITE")],
    "atomic-length": [asked(ADD, "IBV_WC_LOC_LEN_ERR", r"it has 4 bytes; .* atomics of 8")],
    "window-flags": [asked("IBV_WR_BIND_MW of queue pair", "IBV_WC_MW_BIND_ERR", r"lacks IBV_ACCESS_MW_BIND")],
    "window-bounds": [asked("IBV_WR_BIND_MW of queue pair", "IBV_WC_MW_BIND_ERR", r"is 8192 bytes at 0x\w+; 16384 at 0x\w+ are to be bound")],
    "window-key": [asked("IBV_WR_BIND_MW of queue pair", "IBV_WC_MW_BIND_ERR", r"bind_mw\.rkey is none of the window's: it may differ from mw->rkey in its low 8 bits")],
    "invalidate": [asked("IBV_WR_LOCAL_INV of queue pair", "IBV_WC_LOC_QP_OP_ERR", r"0x\w+ is no key of a memory window of type 2 that is bound")],
    "ud-key": dropped("datagram", r"it came with the Q_Key 0x78, and the queue pair has 0x77"),
    "ud-no-receive": dropped("datagram", r"no receive was ever posted"),
    "ud-too-short": [rf"ringbolt: receive of queue pair 0x\w+, wr_id 9: IBV_WC_LOC_LEN_ERR, posted at {B}\n  why: the message has 140 bytes, and the receive 100, of which a datagram's header takes 40\n"],
    "ud-nobody": dropped("(datagram|IBV_WR_SEND)", r"(no process has a UD queue pair of the number|process \d+ has no queue pair of the number) 0x\w+"),
    "ud-too-long": [asked(SEND, "IBV_WC_LOC_LEN_ERR", r"it has 8192 bytes; .* datagrams of \d+")],
    "uc-bounds": [r"ringbolt: (message|request of the peer) of queue pair 0x\w+, .*\n(?s:.*)is 8192 bytes at 0x\w+; 64 bytes from byte 8192 on were addressed"],
    "shared-receive": [
        asked(SEND, INVALID, r"peer: the message has (at least )?100 bytes, and the receive 10 \(process \d+, "),
        rf"ringbolt: receive of queue pair 0x\w+, wr_id 9: IBV_WC_LOC_LEN_ERR, posted at {B}\n"],
    "destroyed": [rf"ringbolt: ibv_{call}: EINVAL \(Invalid argument\), at failures\.c:\d+ in \w+\(\)\n  why: queue pair 0x\w+ was destroyed at {B}\n"
                  for call in ("modify_qp", "post_send", "query_qp")] +
                 [rf"ringbolt: ibv_wr_complete: EINVAL \(Invalid argument\), at failures\.c:\d+ in \w+\(\)\n  why: ibv_wr_start, at "
                  rf"failures\.c:\d+ in \w+\(\): queue pair 0x\w+ was destroyed at {B}\n"],
}
CM = {
    "port-space": r"there is no port space 0x999",
    "port-taken": r"port 7471 is taken at 127\.\d+\.\d+\.\d+:7471 in this port space",
    "foreign-address": r"192\.0\.2\.7:0 is no address of any of the devices",
    "family": r"the address is of family 1; there are AF_INET \(2\) and AF_INET6 \(10\)",
    "route-first": r"the identifier is new \(step 0\), and has to be resolved to an address",
    "connect-first": r"has to be resolved to a route",
    "qp-first": r"the identifier has 0 devices",
    "attributes-first": r"has to be resolved to an address, or that of a CONNECT_REQUEST",
    "disconnect-first": r"has to be connected",
    "accept-own": r"has to be that of a CONNECT_REQUEST",
    "reject-own": r"has to be that of a CONNECT_REQUEST",
    "resolve-twice": r"resolved to a route \(step 3\), and has to be new, or bound",
    "listen-late": r"has to be bound to an address",
    "second-qp": r"has queue pair 0x\w+ already",
    "too-much-data": r"200 bytes of private data, and there is room for 56",
    "too-many-reads": r"responder_resources 200 and initiator_depth 1; the device has 16 and 16",
    "nobody-listens": r"nobody listens at 127\.\d+\.\d+\.\d+:7472 \(reason 8, invalid service ID\)",
    "rejected": r"has called rdma_reject, or could not set its queue pair up \(reason 28\)",
    "nothing-to-connect": r"conn_param is NULL, and the identifier has 0 queue pairs",
}
WAITS = {
    "polls": r"ringbolt: ibv_poll_cq of the completion queue of queue pair 0x\w+: waits for a completion that can't come, at "
             r"waits\.c:{line} in main\(\)\n  why: for more than a second: RTS, 0 sends unfinished, 0 receives posted"
             r"(, .*)?\n  peer: queue pair 0x\w+ of process \d+: RTS, 0 sends unfinished, 0 receives posted\n",
    "unsignaled": r"RTS, 0 sends unfinished, 0 receives posted; the last send, wr_id 5, was posted at waits\.c:\d+ in main\(\) "
                  r"without IBV_SEND_SIGNALED",
    "sleeps": r"ringbolt: ibv_get_cq_event of the completion queue of .*: waits for a completion that can't come, at "
              r"waits\.c:{line} in main\(\)\n",
    "no-receive": r"ringbolt: IBV_WR_SEND of queue pair 0x\w+, wr_id 5: waits for a receive of the peer, posted at "
                  r"waits\.c:{line} in main\(\)\n(?s:.*)rnr_retry is 7(?s:.*)no receive was ever posted",
}
PARAGRAPH = re.compile(r"ringbolt: .+\n  why: .+\n(?:  peer: .+\n  fix: .+\n|  fix: .+\n(?:  before: ringbolt trace .+\n)?)")


LEAST_EXPLANATIONS = 50


def row_of(paragraph):
    """The line of the table in docs/errors.md: what, why, what to do."""
    head, *rest = (line.strip() for line in paragraph.splitlines())
    head = head.removeprefix("ringbolt: ")
    said = {line.split(": ", 1)[0]: line.split(": ", 1)[1] for line in rest}
    why = said["why"] + (f"; the peer: {said['peer']}" if "peer" in said else "")
    head = re.sub(r",( posted)? at \S+ in \w+\(\)$", "", head)
    return "| " + " | ".join(words.replace("|", "or").replace("`", "") for words in (head, why, said["fix"])) + " |"


def shape_of(row):
    """The same of every run."""
    row = re.sub(r"\d+(\.\d+)? ([um]s|s) ago", "ago", row)
    return re.sub(r"0x[0-9a-f]+|\d+", "N", row)


RSOCKETS = {
    "no-such-family": r"ringbolt: rsocket: EOPNOTSUPP .*\n  why: .* \(domain 1, type 1, protocol 0\)\n",
    "too-many": r"ringbolt: rselect: EINVAL .*\n  why: .* \(nfds -1\)\n",
    "no-descriptor": r"ringbolt: rsend of rsocket 900: EBADF .*\n  why: 900 is no descriptor that is open\n",
    "other-descriptor": r"ringbolt: rrecv of rsocket 0: EBADF .*\n  why: 0 is a descriptor of something else, and no rsocket\n",
    "closed": r"ringbolt: rclose of rsocket \d+: EBADF ",
    "short-address": r"ringbolt: rbind of rsocket \d+: EINVAL .*\n  why: .*; it is neither bound nor connected \(an address of 4 bytes\)\n",
    "odd-time": r"ringbolt: rsetsockopt of rsocket \d+: EDOM .*\n  why: .* \(level 1, option 20\)\n",
    "not-connected": r"ringbolt: rwrite of rsocket \d+: ENOTCONN .*\n  why: it is neither bound nor connected \(1 bytes, flags 0x0\)\n",
    "nobody-listens": r"ringbolt: RDMA_CM_EVENT_REJECTED of the connection to 127\.0\.0\.1:\d+: status 8",
    "port-taken": r"ringbolt: rdma_bind_addr: EADDRINUSE ",
    "connected-twice": r"ringbolt: rconnect of rsocket \d+: EISCONN .*\n  why: it is connected to 127\.0\.0\.1:\d+ already \(an address of 16 bytes\)\n",
    "option": r"ringbolt: rsetsockopt of rsocket \d+: ENOPROTOOPT .*\n  why: there is no such option \(level 99, option 1\)\n",
    "control-message": r"ringbolt: rsendmsg of rsocket \d+: EOPNOTSUPP .*\n  why: rsendmsg knows no such argument, flag",
    "no-room-for-address": r"ringbolt: rgetpeername of rsocket \d+: EFAULT ",
    "after-shutdown": r"ringbolt: rsend of rsocket \d+: EPIPE .*\n  why: it is connected to 127\.0\.0\.1:\d+; nothing more can be sent",
    "datagram-to-nobody": r"ringbolt: rsend of rsocket \d+: EDESTADDRREQ ",
    "datagram-too-long": r"ringbolt: rsendto of rsocket \d+: EMSGSIZE .*\n  why: .* \(65536 bytes, flags 0x0\)\n",
    "datagram-port-taken": r"ringbolt: rbind of rsocket \d+: EADDRINUSE .*\n  why: another socket has that address and port \(an address of 16 bytes\)\n",
    "datagram-address": r"ringbolt: rbind of rsocket \d+: EADDRNOTAVAIL ",
}


class Failures(CommandCase):
    waited = {}

    def setUp(self):
        super().setUp()
        self.documents, self.network, self.mistakes, self.failures, self.optimized, self.cm, self.rsockets, self.waits = command.EXTRA
        library = pathlib.Path(command.RINGBOLT).resolve().parent.parent / "lib/ringbolt"
        self.environment["LD_LIBRARY_PATH"] = str(library)

    def run_program(self, *words, explain="on", is_on_network=False, code=0, **more):
        """`code`: its exit status; None: any."""
        environment = command.sanitizer_first(self.environment) | {"RINGBOLT_EXPLAIN": explain} | more
        done = subprocess.run([*([self.network] if is_on_network else []), *words], env=environment, capture_output=True,
                              text=True, timeout=60 * command.TIME_SCALE, check=False)
        if is_on_network and done.returncode == 77:
            self.skipTest(done.stdout)
        self.assertIn(done.returncode, (done.returncode if code is None else code,), done.stdout + done.stderr)
        return done

    def parts(self, stderr):
        """The paragraphs of each case."""
        words = re.split(r"^== (.*)\n", stderr, flags=re.MULTILINE)
        self.assertEqual(words[0], "")
        parts = dict(zip(words[1::2], words[2::2]))
        self.assertEqual(parts.pop("end", ""), "")
        return parts

    def check_form(self, text, name):
        said = PARAGRAPH.findall(text)
        self.assertEqual(PARAGRAPH.sub("", text), "", f"{name}: nothing else, and nothing longer than four lines:\n{text}")
        for one in said:
            self.assertRegex(one, r"\d", name)
            self.assertLess(max(map(len, one.splitlines())), 330, one)
        return said

    def check(self, program, is_on_network):
        done = self.run_program(program, is_on_network=is_on_network)
        lines = {name: (a, b) for name, a, b in (line.split() for line in done.stdout.splitlines())}
        parts = self.parts(done.stderr)
        self.assertEqual(list(parts), list(CASES))
        for name, wanted in CASES.items():
            with self.subTest(name):
                said = self.check_form(parts[name], name)
                a, b = lines[name]
                for words in wanted:
                    words = words.replace("{a}", a).replace("{b}", b)
                    self.assertTrue(any(re.match(words, one) for one in said), f"{words}\n{parts[name]}")
                rest = [one for one in said if "\n  why: flushed: " not in one]
                self.assertEqual(len(rest), sum("flushed" not in words for words in wanted), parts[name])

    def test_each_failure_is_explained_in_memory(self):
        self.check(self.failures, False)
        self.check(self.optimized, False)

    def test_each_failure_is_explained_over_the_network(self):
        self.check(self.failures, True)

    def test_sanitized_programs_are_explained_with_the_same_places_and_numbers(self):
        """The sanitizer stands between the program and the device: its requests have other numbers there, and memory."""
        findings = str(self.root / "findings")
        for program in (self.failures, self.optimized):
            done = self.run_program(program, RINGBOLT_SANITIZE="on", RINGBOLT_SANITIZE_LOG=findings, code=None)
            self.assertIn(done.returncode, (0, 66), done.stderr)
            lines = {name: (a, b) for name, a, b in (line.split() for line in done.stdout.splitlines())}
            parts = self.parts(done.stderr)
            self.assertEqual(list(parts), list(CASES))
            for name, wanted in CASES.items():
                if name == "read-into-read-only":
                    continue  # what is read waits in memory of the sanitizer's, which can be written to
                for words in wanted:
                    if "posted at" in words or name == "destroyed":
                        head = words.split(r"\n")[0].replace("{a}", lines[name][0]).replace("{b}", lines[name][1])
                        with self.subTest(name):
                            self.assertRegex(parts[name], head)

    def test_nothing_is_said_where_nothing_is_wrong(self):
        for is_on_network in (False, True):
            self.assertEqual("".join(self.parts(self.run_program(self.failures, "right", is_on_network=is_on_network).stderr).values()), "")
        for program in (self.cm, self.rsockets):
            self.assertEqual(self.run_program(program, "right").stderr, "")
        self.assertEqual(self.wait_in_vain()["server"][1], "", "its receive is posted")

    def test_no_file_is_left(self):
        self.run_program(self.failures, "right")
        self.assertEqual(list(self.root.rglob("explanations")), [])

    def test_connections(self):
        self.check_calls(self.cm, CM, "wrong")

    def test_rsockets(self):
        self.check_calls(self.rsockets, RSOCKETS, r"\w+")

    def test_an_rsocket_whose_peer_is_killed(self):
        done = self.run_program(self.rsockets, "killed")  # says what became of its queue pair as well, when it likes
        line = done.stdout.split()[1]
        self.assertRegex(done.stderr, rf"rrecv of rsocket \d+: ECONNRESET .*, at rsocket_failures\.c:{line} in lose_peer\(\)\n"
                                      r"  why: the connection broke: .* \(1 bytes, flags 0x0\)\n")
        self.assertRegex(done.stderr, r"process \d+ was killed, or has crashed")
        self.assertNotIn("posted at librdmacm", done.stderr, "the program's line, not the library's")

    def test_what_rsockets_post_has_the_program_s_lines(self):
        folder = self.root / "recorded"
        folder.mkdir()
        self.run_program(self.rsockets, "right", RINGBOLT_RECORD=str(folder))
        pairs = json.loads(self.call("trace", "--json", folder, "--last", "0").stdout)["queue_pairs"]
        places = [one["place"] for pair in pairs for one in pair["events"] if one["what"].startswith("post ")]
        self.assertGreater(len(places), 4, pairs)
        for place in places:
            self.assertRegex(place, r"^rsocket_failures\.c:\d+ in (main|serve)\(\)$")

    def check_calls(self, program, cases, function):
        done = self.run_program(program)
        lines = dict(line.split() for line in done.stdout.splitlines())
        parts = self.parts(done.stderr)
        self.assertEqual(list(parts), list(cases))
        source = os.path.basename(program).removeprefix("explain_")
        for name, words in cases.items():
            with self.subTest(name):
                said = self.check_form(parts[name], name)
                self.assertEqual(len(said), 1, parts[name])
                self.assertRegex(said[0], words)
                self.assertRegex(said[0], rf"at {source}\.c:{lines[name]} in {function}\(\)")

    def wait_in_vain(self):
        if self.waited:
            return self.waited
        environment = command.sanitizer_first(self.environment) | {"RINGBOLT_EXPLAIN": "on"}
        running = {name: subprocess.Popen([self.waits, name], env=environment, stdout=subprocess.PIPE,
                                          stderr=subprocess.PIPE, text=True) for name in (*WAITS, "server")}
        for name, process in running.items():
            self.waited[name] = process.communicate(timeout=60 * command.TIME_SCALE)
        return self.waited

    def test_waiting_in_vain(self):
        for name, words in WAITS.items():
            out, said = self.wait_in_vain()[name]
            with self.subTest(name):
                self.assertEqual(len(self.check_form(said, name)), 2 if name == "no-receive" else 1, said)
                self.assertRegex(said, words.replace("{line}", out.split()[1]))

    def all_rows(self):
        texts = [self.run_program(program).stderr for program in (self.mistakes, self.failures, self.cm, self.rsockets)]
        rows = {}
        for text in (*texts, *(said for _, said in self.wait_in_vain().values())):
            for paragraph in PARAGRAPH.findall(text):
                row = row_of(paragraph)
                rows.setdefault(shape_of(row), row)
        return rows

    def test_documents_have_every_explanation(self):
        text = (pathlib.Path(self.documents) / "errors.md").read_text()
        section = text[text.index("### All explanations"):].split("\n## ", 1)[0]
        written = [line for line in section.splitlines() if line.startswith("| ")][1:]
        real = self.all_rows()
        self.assertGreaterEqual(len(written), LEAST_EXPLANATIONS)
        shapes = set(map(shape_of, written))
        self.assertEqual([row for shape, row in real.items() if shape not in shapes], [], "to be added to errors.md")
        self.assertEqual(sorted(shapes - set(real)), [], "in errors.md, and said by nobody")

    def test_json(self):
        file = self.root / "why.json"
        self.run_program(self.cm, explain=f"json:{file}")
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        self.assertEqual(len(lines), len(CM))
        for line in lines:
            self.assertLessEqual({"time", "pid", "thread", "program", "call", "why", "fix"}, set(line))
            self.assertTrue(("errno" in line or "status" in line) and "place" in line, line)
        self.assertEqual({line["program"] for line in lines}, {os.path.basename(self.cm)})


if __name__ == "__main__":
    command.main()
