"""`verify`: right libraries pass in every mode, and each thing that a wrong one does is found and named."""

import json
import os
import pathlib
import re
import signal
import time

import command
from command import CommandCase
from ports import free_port
from two_ends import TwoEndsCase


class VerifyCase(CommandCase):
    def up(self, spec="line:2", like=None):
        self.call("up", "--emulate", spec, *(["--like", like] if like else []))
        self.addCleanup(self.call, "down", "--force")

    def verify(self, *words, expect=0, **options):
        done = self.call("verify", *words, "--nodes", "0,1", "--json", expect=expect, timeout=60, **options)
        return json.loads(done.stdout)

    def check_clean(self, found, *titles):
        self.assertTrue(found["verified"], found)
        self.assertEqual(found["findings"]["count"], 0)
        self.assertEqual(sorted({row["what"] for row in found["results"]}), sorted(titles))
        for row in found["results"]:
            self.assertGreater(row["messages"], 0, row)
            self.assertGreater(row["verified_bytes"], 0, row)


class RightLibrary(VerifyCase):
    def test_every_mode_over_every_transport(self):
        self.up()
        for mode, transports in (("stream", ("RC", "UC", "UD")), ("write", ("RC", "UC")), ("read", ("RC",)),
                                 ("atomic", ("RC",)), ("churn", ("RC", "UC"))):
            for transport in transports:
                with self.subTest(f"{transport} {mode}"):
                    count = "8" if mode == "churn" else "300"
                    found = self.verify(mode, "-c", transport, "-n", count)
                    self.check_clean(found, f"{transport} {mode}")
                    if mode == "stream":
                        self.assertEqual(found["results"][0]["messages"], 4 * 300)
                    if mode == "churn":
                        self.assertEqual(found["results"][0]["rounds"], 8)

    def test_sizes_depths_orders_and_directions(self):
        self.up()
        for words in (["-s", "1"], ["-s", "4096", "-q", "1", "-t", "1", "-r", "1"], ["--min", "0", "--max", "20"],
                      ["--order", "any", "-b"], ["-c", "UC", "--allow-loss", "1"], ["--max", "3000000", "-q", "2"]):
            with self.subTest(words):
                found = self.verify("stream", *words, "-n", "40")
                self.assertEqual({row["by"] for row in found["results"]}, {"client", "server"} if "-b" in words else {"client"})
                self.assertEqual(found["findings"]["count"], 0)
        self.check_clean(self.verify("write", "-b", "-n", "40"), "RC write")
        self.check_clean(self.verify("stream", "-D", "0.2"), "RC stream")

    def test_same_seed_sends_the_same(self):
        self.up()
        first, second = (self.verify("stream", "-n", "200", "--seed", "7")["results"][0] for _ in range(2))
        self.assertEqual(first["verified_bytes"], second["verified_bytes"])

    def test_soak_shows_its_progress(self):
        self.up()
        done = self.call("verify", "soak", "--nodes", "0,1", "-D", 3 * command.TIME_SCALE, "--progress", "1")
        self.assertIn("all verified", done.stdout)
        self.assertRegex(done.stderr, r"\d s: \w+ \w+: [\d.]+ MB verified, \d+ messages, 0 errors, slowest gap")
        for what in ("RC stream", "UC stream", "UD stream", "RC write", "RC read", "RC atomic", "RC churn", "UC churn"):
            self.assertIn(what, done.stdout)

    def test_above_the_line_rate_is_invalid(self):
        self.up()
        done = self.call("verify", "--nodes", "0,1", "-n", "200", "--line-rate", "0.001", expect=1)
        self.assertIn("INVALID(above line rate)", done.stdout)


class Profiles(VerifyCase):
    def test_macs(self):
        for like in ("tn3205", "apple", "apple,gid=2,recv-from=rts"):
            with self.subTest(like):
                self.call("up", "--emulate", "line:2", "--like", like)
                self.check_clean(self.verify("stream", "-n", "60", "-q", "10"), "UC stream")
                self.check_clean(self.verify("churn", "-n", "8"), "UC churn")
                found = self.verify("soak", "-D", command.TIME_SCALE)
                self.check_clean(found, "UC stream", "UC churn")
                self.assertTrue(any("a WRITE goes nowhere" in one for one in found["not_checked"]))
                self.call("down")

    def test_write_into_the_stream_is_found_in_the_words_of_the_contract(self):
        self.up(like="apple")
        found = self.verify("write", "-n", "100", expect=1)
        self.assertGreater(found["findings"]["kinds"]["nowhere"], 1)
        self.assertIn("target memory unchanged after WRITE", found["findings"]["first"][0]["text"])
        self.assertIn("SEND only", found["findings"]["first"][0]["text"])
        self.assertEqual(found["results"][0]["verified_bytes"], 0)

    def test_what_a_device_has_not_is_refused_in_words(self):
        self.up(like="tn3205")
        for words, says in ((["write"], "refuses it"), (["stream", "-c", "RC"], "UC is on every device"),
                            (["stream", "-c", "UD"], "no address handles"), (["read"], "RC: one of the devices has none"),
                            (["stream", "-q", "12"], "12 queue pairs"), (["stream", "-s", "20000000"], "take")):
            with self.subTest(words):
                self.assertIn(says, self.verify(*words, expect=2)["refusal"])

    def test_slots_are_as_large_as_the_messages_of_their_queue_pair(self):
        """Where frames count, sizes are spread over the queue pairs: from one frame to the largest takes half of the memory."""
        self.up(like="tn3205")

        def refused_bytes(least):
            found = self.verify("stream", "-q", "10", "-t", "64", "-r", "64", "--min", least, "--max", "16000000", expect=2)
            return int(re.search(r"(\d+) bytes of buffers are too many", found["refusal"])[1])

        self.assertAlmostEqual(refused_bytes("1") / refused_bytes("16000000"), 0.5, delta=0.01)

    def test_mixed_cluster(self):
        path = self.root / "mixed.json"
        self.call("up", "--emulate", "line:2")
        model = json.loads((self.root / "clusters/line2/cluster.json").read_text())
        self.call("down")
        model["nodes"][0]["like"] = "tn3205"
        path.write_text(json.dumps(model | {"name": "mixed"}))
        self.up(str(path))
        self.check_clean(self.verify("soak", "-D", command.TIME_SCALE), "UC stream", "UC churn")


class WrongLibrary(VerifyCase):
    """tests/command/damaging_verbs.cpp does one thing badly to one message."""

    def setUp(self):
        super().setUp()
        self.up()
        self.shim = command.EXTRA[0]
        real = pathlib.Path(command.RINGBOLT).resolve().parent.parent / "lib/ringbolt/libibverbs.so.1"
        self.environment |= {"DAMAGE_REAL": str(real), "DAMAGE_AT": "50"}

    def damaged(self, damage, *words, expect=1, **env):
        # A shim is none of Ringbolt's libraries: its port is judged by the line rate that it claims, and memory is faster.
        found = self.verify(*words, "--verbs", self.shim, "--line-rate", "0", expect=expect, env={"DAMAGE": damage} | env)
        return found["findings"]

    def test_the_library_alone_is_right(self):
        self.assertEqual(self.damaged("nothing", "soak", "-D", "1", expect=0)["count"], 0)

    def test_streams(self):
        cases = [("flip", "damaged", r"first at byte \d+: expected 0x\w\w, found 0x\w\w; 1 byte and 1 bit differ"),
                 ("truncate", "length", r"message \d+ of \d+ bytes arrived as \d+"),
                 ("beyond", "outside", r"8 bytes were written, the first at offset \d+"),
                 ("before", "outside", r"8 bytes were written, the first at offset -8"),
                 ("late", "late", r"completed before its data was there"),
                 ("never", "no-data", r"not one of them was written"),
                 ("stale", "stale", r"holds data of message \d+"),
                 ("drop", "lost", r"1 of 400 messages never came; expected \d+, found \d+"),
                 ("double", "doubled", r"message \d+ came again: expected \d+, found \d+"),
                 ("swap", "order", r"came after message \d+: expected \d+, found \d+"),
                 ("misroute", "foreign", r"message \d+ of queue pair \d came where message \d+ was due"),
                 ("again", "unasked", r"send \d+ completed again"),
                 ("other-kind", "unasked", r"where message \d+ was due, a completion of kind 129 came")]
        # Of what went elsewhere its own queue pair has to say something too.
        also = {"misroute": {"lost": 1}}
        for transport in ("RC", "UC"):
            for damage, kind, says in cases:
                with self.subTest(f"{damage} {transport}"):
                    found = self.damaged(damage, "stream", "-c", transport, "-n", "400", "--min", "16")
                    self.assertEqual(found["kinds"], {kind: 1} | also.get(damage, {}), found)
                    texts = [one["text"] for one in found["first"] if one["kind"] == kind]
                    self.assertRegex(texts[0], r"queue pair \d+.*: .*" + says)

    def test_completions_that_nothing_was_posted_for(self):
        for words in (["stream"], ["stream", "-c", "UD"], ["write"]):
            with self.subTest(words):
                found = self.damaged("unposted", *words, "-n", "400", DAMAGE_AT="20")
                self.assertEqual(found["kinds"], {"unasked": 1}, found)
                self.assertIn("a receive completed that was not posted (id 0xffffffffffffffff)", found["first"][0]["text"])
        for mode in ("write", "read", "atomic", "churn"):
            with self.subTest(mode):
                found = self.damaged("again", mode, "-n", "8" if mode == "churn" else "400", DAMAGE_AT="10")
                self.assertEqual(found["kinds"], {"unasked": 2 if mode == "churn" else 1}, found)  # in churn both send
                self.assertRegex(found["first"][0]["text"], r"(send|operation) \d+ completed again|completion of no \w+ that was posted|not posted")

    def test_any_order_is_a_set(self):
        for damage, kind in (("drop", "lost"), ("double", "doubled"), ("flip", "damaged"), ("truncate", "length")):
            for words in (["-c", "UD"], ["--order", "any"]):
                with self.subTest(f"{damage} {words}"):
                    self.assertEqual(self.damaged(damage, "stream", *words, "-n", "400")["kinds"], {kind: 1})
        self.assertEqual(self.damaged("swap", "stream", "--order", "any", "-n", "400", expect=0)["count"], 0)

    def test_allowed_loss(self):
        found = self.damaged("drop", "stream", "-c", "UC", "-n", "400", "--allow-loss", "1", expect=0)
        self.assertEqual(found["count"], 0)
        self.damaged("drop", "stream", "-c", "UC", "-n", "400", "--allow-loss", "0.01", expect=1)

    def test_one_sided(self):
        for damage, words, kind in (("nowhere", ["write"], "nowhere"), ("nowhere-all", ["write"], "nowhere"),
                                    ("misplaced", ["write"], "damaged"), ("flip-read", ["write"], "damaged"),
                                    ("flip-read", ["read"], "damaged"), ("atomic", ["atomic"], "account"),
                                    ("nowhere", ["write", "-c", "UC"], "nowhere")):
            with self.subTest(f"{damage} {words}"):
                self.assertIn(kind, self.damaged(damage, *words, "-n", "400")["kinds"])

    def test_failed_completion_ends_it_with_its_status(self):
        for words in (["stream"], ["stream", "-c", "UD"], ["write"], ["read"], ["atomic"]):
            with self.subTest(words):
                found = self.damaged("fail", *words, "-n", "400")
                self.assertEqual(found["kinds"]["status"], 1, found)
                self.assertRegex(found["first"][0]["text"], r"ended with status 12 \(transport retry counter exceeded\)")

    def test_what_was_seen_before_stays_so(self):
        for damage, mode, says in (("count-back", "read", r"a READ saw the target's count at 0 after \d+ had been seen"),
                                   ("count-ahead", "read", r"a READ saw the target's count at \d{15}, which is only at \d+$"),
                                   ("atomic-order", "atomic", r"queue pair \d: fetch-and-add returned \d+ after \d+")):
            with self.subTest(damage):
                found = self.damaged(damage, mode, "-n", "400")
                self.assertEqual(set(found["kinds"]), {"backwards"}, found)
                self.assertRegex("\n".join(one["text"] for one in found["first"]), f"(?m){says}")

    def test_message_of_a_queue_pair_that_is_gone(self):
        found = self.damaged("ghost", "churn", "-n", "8", "--stall", "0.5", DAMAGE_AT="100")
        self.assertIn("foreign", found["kinds"])
        self.assertRegex(found["first"][0]["text"],
                         r"queue pair \d: message \d+ of a queue pair that is gone \(epoch \d+, this one is \d+\) came where")

    def test_leak(self):
        found = self.damaged("leak", "churn", "-n", "20", RINGBOLT_LIKE="tn3205")
        self.assertIn("leak", found["kinds"])
        texts = " ".join(one["text"] for one in found["first"])
        self.assertIn("on a device that has 11: its objects don't come back", texts)

    def test_damage_in_churn(self):
        self.assertIn("damaged", self.damaged("flip", "churn", "-n", "8", DAMAGE_AT="20")["kinds"])

    def test_stall_says_where_it_stood(self):
        begin = time.monotonic()
        done = self.call("verify", "--nodes", "0,1", "--stall", "0.7", "-n", "100000", "--verbs",
                         self.shim, expect=1, env={"DAMAGE": "stall"})
        self.assertRegex(done.stdout, r"nothing moved for 0\.\d s: awaited .*queue pair 0: \d+ (received|posted)")
        self.assertLess(time.monotonic() - begin, 15)


class OverTcp(TwoEndsCase):
    subcommand = "verify"

    def test_both_ends_print_the_result(self):
        self.check_both_print_the_result([], "-n", "200")

    def test_different_parameters_are_refused_at_both_ends(self):
        port = free_port()
        server = self.server(port, "stream", "-q", "2")
        done = self.call("verify", "stream", "127.0.0.1", "-p", port, "-q", "3", expect=2)
        self.assertIn("queue-pairs (-q) is 3 here and 2 at the other end", done.stderr)
        server.communicate(timeout=command.PATIENCE_S)
        self.assertEqual(server.returncode, 2)

    def broken_off(self, *words, end, stall_s=1.5):
        port = free_port()
        server = self.server(port, *words, "-D", "60", "--stall", stall_s)
        client = self.start("verify", *words, "127.0.0.1", "-p", port, "-D", "60", "--stall", stall_s)
        self.addCleanup(client.communicate)
        self.addCleanup(client.kill)
        # Somewhere in the middle: a client that has computed for so long is past its beginning, however slow the machine.
        command.wait_until(lambda: command.processor_time(client.pid) > 0.4 * command.TIME_SCALE, "the client is at work")
        server.send_signal(end)
        begin = time.monotonic()
        said, _ = client.communicate(timeout=command.PATIENCE_S)
        if end == signal.SIGSTOP:
            server.send_signal(signal.SIGCONT)
        return client.returncode, said, time.monotonic() - begin

    def test_killed_peer_is_named_with_how_far_it_got(self):
        for words in (["stream"], ["stream", "-c", "UC"], ["write"], ["read"], ["atomic"], ["churn"]):
            with self.subTest(words):
                code, said, seconds = self.broken_off(*words, end=signal.SIGKILL, stall_s=1.5 * command.TIME_SCALE)
                self.assertEqual(code, 1, said)
                self.assertRegex(said, r"FAILED  peer: 1\n +127\.0\.0\.1 is gone")
                self.assertRegex(said, r"queue pair 0: \d+ |round \d+")
                self.assertLess(seconds, 5)

    def test_frozen_peer_ends_at_the_deadline(self):
        code, said, seconds = self.broken_off("stream", "-c", "UC", end=signal.SIGSTOP)
        self.assertEqual(code, 1, said)
        self.assertRegex(said, r"nothing moved for 1\.\d s|retry counter|retry")
        self.assertLess(seconds, 15)

    def test_interrupt_ends_with_the_summary(self):
        for words in (["stream"], ["soak"]):
            code, said, _ = self.broken_off(*words, end=signal.SIGINT)
            self.assertEqual(code, 0, said)
            self.assertIn("ended early: it was interrupted", said)
            self.assertIn("all verified", said)

    def test_mistakes(self):
        port = free_port()
        for words, says in (
                (["dance", "--nodes", "0,1"], "none of stream"), (["read", "-c", "UC"], "RC only"),
                (["write", "-c", "UD"], "not over UD"), (["stream", "--min", "9", "--max", "8"], "--min 9"),
                (["stream", "-s", "8", "--min", "1"], "-s is"), (["stream", "-n", "5", "-D", "1"], "-n and -D"),
                (["stream", "--order", "some"], "none of strict, any"), (["stream", "-c", "XRC"], "none of RC, UC, UD"),
                (["soak", "-n", "4"], "leave out -n"), (["stream", "--hours", "1"], "--hours is of soak"),
                (["stream", "-c", "RC", "--allow-loss", "1"], "RC may lose nothing"),
                (["stream", "-c", "UD", "--order", "strict"], "keeps no order"), (["atomic", "-s", "8"], "8 bytes"),
                (["churn", "--order", "any"], "--order is of stream"), (["stream", "--verbs", "/no/lib"], "--verbs"),
                (["stream", "host", "--nodes", "0,1"], "HOST and --nodes"), (["stream", "--cluster", "x"], "--cluster")):
            with self.subTest(words):
                self.refused("verify", *words, says=[says])
        done = self.call("verify", "127.0.0.1", "-p", port, "--timeout", "0.3", expect=1)
        self.assertIn("is `ringbolt verify` waiting there", done.stderr)
        done = self.call("verify", "-p", port, "--timeout", "0.3", expect=1)
        self.assertIn("waited 0.3 s for a client", done.stderr)

    def test_wrong_device_and_library_are_refused(self):
        for words, says in ((["-d", "nix"], "there is no device nix"),
                            (["--verbs", os.path.realpath(command.RINGBOLT)], "dlopen|verbs library")):
            port = free_port()
            server = self.server(port, "-n", "10")
            done = self.call("verify", "127.0.0.1", "-p", port, "-n", "10", *words, expect=2)
            self.assertTrue(re.search(says, done.stderr), done.stderr)
            server.communicate(timeout=command.PATIENCE_S)
            self.assertIn(server.returncode, (1, 2))

    def test_system_without_device_says_so(self):
        if pathlib.Path("/sys/class/infiniband").is_dir() and os.listdir("/sys/class/infiniband"):
            self.skipTest("the system has a device")
        port = free_port()
        server = self.server(port, "-n", "10")
        done = self.call("verify", "127.0.0.1", "-p", port, "-n", "10", "--verbs", "system", expect=2)
        says = "no device" if pathlib.Path("/sys/class/infiniband").is_dir() else "this kernel has no RDMA: load ib_uverbs"
        self.assertIn(says, done.stderr)
        server.communicate(timeout=command.PATIENCE_S)


if __name__ == "__main__":
    command.main()
