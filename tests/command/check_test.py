"""Collectives give the right bits: the 54, the matrix, and what is said when they do not."""

import contextlib
import json
import subprocess

import command
from command import CommandCase

# CRC-32C of 13,107 elements, round 0: sums, then gathers, of ones, sequential and random data.
PUBLISHED = {
    2: "1491965c a5bceffe e4beff2f 80f46ac5 3a7b15bd 7ff60068",
    3: "b988cff2 6716a945 ab11731d 7d46c4a4 3bdea700 dec5c280",
    4: "4b4f53f1 40262620 0984b7c2 46c82ca8 d119d5cd 35337484",
    5: "1dc3ff26 f2fb2651 4a90dc8b 204e26e5 83d39810 7da0cd90",
}
LONG_S = 120


class CheckCase(CommandCase):
    def check(self, *words, **options):
        return json.loads(self.call("check", "--json", *words, timeout=LONG_S, **options).stdout)

    @contextlib.contextmanager
    def made_like(self, spec, profile):
        self.call("up", "--emulate", spec, "--like", profile)
        try:
            yield
        finally:
            self.call("down", "--force")


class FiftyFour(CheckCase):
    def judge(self, *words):
        result = self.check(*words)
        self.assertTrue(result["verified"])
        self.assertEqual([(one["rank"], one["done"], one["bad"]) for one in result["ranks"]],
                         [(rank, 54, 0) for rank in range(result["n_ranks"])])
        self.assertEqual(len(result["collectives"]), 54)
        published = [one["crc32c"] for one in result["collectives"] if one["size"] == 13107 and one["round"] == 0]
        if result["n_ranks"] in PUBLISHED:
            self.assertEqual(" ".join(published), PUBLISHED[result["n_ranks"]])
        return result

    def test_topologies(self):
        for spec, n_ranks in (("ring:2", 2), ("line:3", 3), ("ring:4", 4), ("mesh:4", 4), ("star:5", 5),
                              ("petersen", 10)):
            with self.subTest(spec), self.cluster(spec):
                self.assertEqual(self.judge()["n_ranks"], n_ranks)

    def test_devices_like_those_of_thunderbolt_machines(self):
        with self.made_like("ring:3", "tn3205"):
            self.judge()

    def test_in_place_fast_and_by_name(self):
        with self.cluster("ring:4"):
            plain = self.judge()["crc32c"]
            for words in (["--in-place"], ["--fast"], ["--fast", "--algorithm", "ring"], ["--algorithm", "direct"],
                          ["--library", "soft"]):
                with self.subTest(words):
                    self.assertEqual(self.judge(*words)["crc32c"], plain)

    def test_people_read_the_same(self):
        with self.cluster("ring:2"):
            done = self.call("check", timeout=LONG_S)
            self.assertEqual(done.stderr, "")
            self.assertRegex(done.stdout, r"RANK +DONE +BAD +FIRST BAD\n +0 +54 +0 +-\n +1 +54 +0 +-\n")
            self.assertRegex(done.stdout, r"all right on all ranks: 54 calls in [\d.]+ s, CRC-32C of all outputs [\da-f]{8}\n")

    def test_other_sizes_and_repetitions(self):
        with self.cluster("line:2"):
            result = self.check("--scale", "0.00001", "--repeat", 3)
            self.assertEqual({one["size"] for one in result["collectives"]}, {2, 262, 1342})
            self.assertEqual([one["done"] for one in result["ranks"]], [162, 162])

    def test_a_launcher_s_ranks(self):
        with self.cluster("ring:3"):
            done = self.call("run", "--no-tag", "--", command.RINGBOLT, "check", "--json", timeout=LONG_S)
            self.assertEqual(json.loads(done.stdout)["n_ranks"], 3)


class Meeting(CheckCase):
    def test_what_a_launcher_says_of_the_starter_is_not_said_of_the_ranks(self):
        alone = {"RANK": "0", "WORLD_SIZE": "1", "OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1", "PMI_RANK": "0",
                 "PMI_SIZE": "1", "RINGBOLT_RANK": "0", "RINGBOLT_WORLD_SIZE": "1", "MASTER_ADDR": "192.0.2.1", "MASTER_PORT": "1"}
        with self.cluster("ring:3", "c"):
            self.assertEqual(self.check("--cluster", "c", "--scale", "0.001", env=alone)["n_ranks"], 3)

    def test_a_rank_that_finds_itself_alone_says_so(self):
        with self.cluster("ring:3"):
            alone = {"RINGBOLT_RANK": "0", "RINGBOLT_WORLD_SIZE": "1"}
            done = self.call("exec", 0, "--", command.RINGBOLT, "check", "--as-rank", "--of", 3, env=alone, expect=1)
            self.assertIn("this group has 1 ranks instead of 3", done.stderr)

    def test_two_at_once_on_one_cluster(self):
        with self.cluster("ring:4"):
            both = [self.start("check", "--scale", "0.001") for _ in range(2)]
            for one in both:
                out, said = one.communicate(timeout=LONG_S)
                self.assertEqual(one.returncode, 0, out + said)
                self.assertIn("all right on all ranks", out)

    def test_a_rank_that_does_not_come_is_a_finding_and_nonsense_is_wrong_usage(self):
        with self.cluster("ring:2"):
            words = ("exec", 0, "--", command.RINGBOLT, "check", "--as-rank")
            self.call(*words, env={"RINGBOLT_JOIN_TIMEOUT_MS": "200"}, expect=1)
            self.call(*words, env={"RINGBOLT_JOIN_TIMEOUT_MS": "soon"}, expect=2)


class Matrix(CheckCase):
    def judge(self, *words, **options):
        result = self.check("--matrix", *words, **options)
        self.assertTrue(result["verified"], result["problems"])
        self.assertEqual(result["problems"], [])
        return result

    def test_one_hash_whatever_the_cables(self):
        hashes = set()
        for spec in ("ring:4", "mesh:4", "line:4", "star:4"):
            with self.cluster(spec):
                hashes.add(self.judge("--largest", 5000)["crc32c"])
        self.assertEqual(len(hashes), 1)

    def test_one_hash_whatever_the_rails_and_the_algorithm(self):
        words = ["--only", "all_reduce,reduce_scatter", "--largest", 5000]
        hashes = set()
        for spec in ("line:2", "ring:2"):  # one cable, two
            with self.cluster(spec):
                hashes.add(self.judge(*words)["crc32c"])
                hashes.add(self.judge(*words, "--algorithm", "direct")["crc32c"])
        self.assertEqual(len(hashes), 1)

    def test_one_hash_whatever_the_order_of_ranks(self):
        words = ["--only", "gather,all_to_allv", "--largest", 100, "--algorithm", "direct"]
        with self.cluster("star:4"):
            plain = self.judge(*words)["crc32c"]
            for order in range(2):
                self.assertEqual(self.judge(*words, "--rank-order", order)["crc32c"], plain)

    def test_a_hundred_runs_have_one_hash(self):
        with self.cluster("ring:4"):
            result = self.judge("--only", "all_reduce,all_to_allv", "--largest", 100, "--repeat", 100,
                                "--algorithm", "direct")
            self.assertEqual(result["repeats"], 100)

    def test_a_rank_alone_gives_what_others_give(self):
        alone = {"RINGBOLT_RANK": "0", "RINGBOLT_WORLD_SIZE": "1"}
        for words in ([], ["--only", "all_reduce,reduce,reduce_scatter"]):
            result = self.judge("--largest", 64, *words, env=alone)
            self.assertEqual(result["n_ranks"], 1)

    def test_larger_messages_and_more_ranks(self):
        with self.cluster("petersen"):
            self.judge("--only", "all_reduce,broadcast,all_to_allv,send_recv,barrier", "--largest", 64,
                       "--timeout", LONG_S)
        with self.made_like("ring:3", "tn3205"):
            self.judge("--only", "reduce_scatter,all_gatherv,gather,scatter", "--largest", 300_000)

    def test_every_combination(self):
        with self.cluster("line:3"):
            self.assertGreater(self.judge("--only", "reduce,gather", "--largest", 64, "--thorough")["cases"], 1000)


class Trouble(CheckCase):
    def test_bad_usage(self):
        for words, says in ([["--scale", "huge"], "--scale huge"], [["--scale", "0"], "--scale 0"],
                            [["--algorithm", "magic"], "direct"], [["--matrix", "--only", "sum"], "all_to_allv"],
                            [["--matrix", "--in-place"], "--in-place"], [["--matrix", "--scale", "1"], "--scale"],
                            [["--deadline", "nan"], "--deadline"], [["--only", "barrier"], "--matrix"],
                            [["--thorough"], "--matrix"], [["--repeat", "0"], "--repeat"],
                            [["--matrix", "--largest", "0"], "--largest"], [["--deadline", "0"], "--deadline"],
                            [["--rank-order", "x"], "--rank-order"],
                            [["--", "ls"], "takes no command"], [[], "ringbolt up"]):
            with self.subTest(words):
                self.refused("check", *words, says=[says])

    def test_half_a_rank_is_named_where_there_is_no_cluster(self):
        for variables, says in (({"RANK": ""}, "RANK="), ({"WORLD_SIZE": "2"}, "WORLD_SIZE=2")):
            self.refused("check", env=variables, says=[says])
            with self.cluster("ring:2"):
                self.call("check", "--scale", "0.001", env=variables)

    def test_an_order_of_ranks_that_somebody_else_gives(self):
        with self.cluster("ring:2"):
            done = self.call("check", "--rank-order", 1, env={"RINGBOLT_COORDINATOR": "127.0.0.1:1"}, expect=2)
            self.assertIn("RINGBOLT_COORDINATOR", done.stderr)

    def test_algorithm_that_does_none_of_it(self):
        with self.cluster("ring:2"):
            result = self.check("--matrix", "--only", "gather", "--algorithm", "ring", expect=1)
            self.assertFalse(result["verified"])
            self.assertIn("no call was made", result["problems"][0])

    def test_a_rank_that_goes_away(self):
        with self.cluster("line:3"):
            running = self.start("check", "--scale", "1", "--timeout", 60)
            self.addCleanup(running.communicate)
            self.addCleanup(running.kill)
            pids = []
            command.wait_until(lambda: pids.extend(self.ranks_of(running.pid)) or len(pids) >= 3, "ranks run")
            subprocess.run(["kill", "-KILL", str(pids[2])], check=True)
            out, said = running.communicate(timeout=LONG_S)
            self.assertNotEqual(running.returncode, 0)
            self.assertNotIn("all right", out)
            self.assertIn("n", said)

    @staticmethod
    def ranks_of(pid):
        listed = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout.split()
        return [int(one) for one in listed] if len(listed) >= 3 else []


if __name__ == "__main__":
    command.main()
