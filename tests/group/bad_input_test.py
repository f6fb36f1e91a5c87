"""Ranks that call different things, or don't belong together: an error on every rank that says so, and nobody waits."""

import errno
import json
import time

import ranks

JOINS_WITHIN = 4000


class Calls(ranks.GroupCase):
    def differ(self, group, lines, says):
        for rank, line in zip(group, lines):
            rank.say(f"call {line} timeout=8000")
        for rank in group:
            failed = rank.expect("failed", timeout=15)
            self.assertEqual(failed["code"], errno.EPROTO, failed)
            for part in says:
                self.assertIn(part, failed["text"])
        self.all_run(group, "call all_reduce")  # the group goes on

    def test_that_differ(self):
        group = self.join("ring:3", 3)
        same = "all_reduce count=1000"
        for other, says in (("all_reduce count=1001", ["1000", "1001"]),
                            ("all_reduce count=1000000", ["1000000"]),
                            ("all_reduce count=1000 type=float32", ["int32", "float32"]),
                            ("all_reduce count=1000 reduction=max", ["sum", "max"]),
                            ("all_gather count=1000", ["all_gather"]),
                            ("barrier", ["barrier"]),
                            ("all_to_all count=1000", ["all_to_all"])):
            with self.subTest(other=other):
                self.differ(group, [same, other, same], ["1", *says])

    def test_whose_roots_differ(self):
        group = self.join("line:2", 2)
        self.differ(group, ["all_reduce count=10", "reduce root=1 count=10"], ["all_reduce", "root 1"])

    def test_that_make_no_sense(self):
        group = self.join("line:2", 2)
        group[0].say("call send peer=5")
        self.assertIn("rank 5", group[0].expect("failed")["text"])
        # The other rank's call makes sense: it hears at once that this one's does not.
        for line, says in (("broadcast root=2", "root 2"), ("all_reduce algorithm=magic", "magic")):
            with self.subTest(line=line):
                group[0].say(f"call {line}")
                failed = group[0].expect("failed")
                self.assertEqual(failed["code"], errno.EINVAL)
                self.assertIn(says, failed["text"])
                group[1].say("call all_reduce timeout=60000")
                failed = group[1].expect("failed")
                self.assertEqual(failed["code"], errno.EPROTO)
                self.assertIn("rank 0 refused its own", failed["text"])
                self.assertIn(says, failed["text"])
        self.all_run(group, "call all_reduce")

    def test_that_differ_from_one_that_has_ended(self):
        group = self.join("line:2", 2)
        group[0].say("call broadcast count=10 root=0")
        group[0].expect("done")
        group[1].say("call broadcast count=11 root=0 timeout=60000")
        failed = group[1].expect("failed")
        self.assertEqual(failed["code"], errno.EPROTO)
        self.assertIn("has ended", failed["text"])
        self.all_run(group, "call all_reduce")

    def test_that_differ_from_one_that_has_ended_beyond_a_neighbour(self):
        group = self.join("line:3", 3)
        group[0].say("call reduce count=1000 root=2 algorithm=chain")
        group[0].expect("done")
        self.all_say(group[1:], "call reduce count=1001 root=2 algorithm=chain timeout=60000")
        for rank in group[1:]:
            failed = rank.expect("failed", timeout=15)
            self.assertEqual(failed["code"], errno.EPROTO)
            self.assertIn("has ended", failed["text"])
        self.all_run(group, "call all_reduce")

    def test_that_one_rank_never_makes(self):
        group = self.join("line:2", 2)
        group[0].say("call all_reduce timeout=500")
        failed = group[0].expect("failed")
        self.assertEqual(failed["code"], errno.ETIMEDOUT)
        self.assertIn("waits for rank 1", failed["text"])


class Joining(ranks.GroupCase):
    def refuse(self, spec, words, says):
        """Ranks that can't join, each with its words."""
        self.up(spec)
        group = self.start_ranks(len(words), RINGBOLT_JOIN_TIMEOUT_MS=str(JOINS_WITHIN))
        for rank, word in zip(group, words):
            rank.say(f"join {word}")
        for rank in group:
            refused = rank.expect("refused", timeout=JOINS_WITHIN / 1000 + ranks.SLACK_S)
            self.assertRegex(refused["text"], says)

    def test_with_a_rank_missing(self):
        self.refuse("line:3", ["", ""], "rank 2")

    def test_with_a_wrong_secret(self):
        self.refuse("line:2", ["RINGBOLT_SECRET=alpha", "RINGBOLT_SECRET=beta"], "secret|rank 1")

    def test_with_a_rank_twice(self):
        self.up("line:2")
        group = self.start_ranks(2, RINGBOLT_JOIN_TIMEOUT_MS=str(JOINS_WITHIN))
        again = self.start_ranks(2, RINGBOLT_JOIN_TIMEOUT_MS=str(JOINS_WITHIN))[1]
        group[0].say("join")
        group[1].say("join RINGBOLT_GROUP=")
        for rank in group:
            rank.expect("joined")
        again.say("join")
        self.assertIn("rank", again.expect("refused", timeout=JOINS_WITHIN / 1000 + ranks.SLACK_S)["text"])
        self.all_run(group, "call all_reduce")

    def test_with_other_checksums(self):
        self.refuse("line:2", ["", "crc=off"], "RINGBOLT_CRC")

    def test_with_checksums_off_everywhere(self):
        group = self.join("line:2", 2, words="crc=off")
        self.all_run(group, "call all_reduce count=100000")

    def test_with_checksums_of_what_is_read_in_place(self):
        group = self.join("line:2", 2, words="RINGBOLT_CRC=every")
        self.all_run(group, "call all_reduce count=100000")

    def test_with_a_word_for_checksums_that_is_none(self):
        self.refuse("line:2", ["RINGBOLT_CRC=yes"] * 2, 'RINGBOLT_CRC is "yes": it must be on, off or every')

    def test_in_a_shell_that_srun_has_started(self):
        group = self.join("line:2", 2, SLURM_PROCID="0", SLURM_NTASKS="1", SLURM_STEP_NUM_TASKS="1", SLURM_JOB_ID="17",
                          SLURM_STEP_ID="0", SLURM_JOB_NODELIST="nowhere", SLURM_STEP_NODELIST="nowhere", PMIX_RANK="0")
        self.all_run(group, "call all_reduce")

    def test_at_an_address_of_one_link_without_interface(self):
        self.refuse("line:2", ["RINGBOLT_COORDINATOR=[fe80::1]:4000"] * 2, "append this machine's interface")

    def test_at_an_address_that_rank_0_does_not_have(self):
        self.refuse("line:2", ["RINGBOLT_BIND=192.0.2.1"] * 2,
                    "no such address .* correct RINGBOLT_BIND|Connection refused; .* start the first rank")

    def test_with_a_cable_cut_before(self):
        self.up("line:3")
        self.call("cut", "1-2")
        group = self.start_ranks(3, RINGBOLT_JOIN_TIMEOUT_MS="8000")
        self.all_say(group, "join")
        for rank in group:
            refused = rank.expect("refused", timeout=8 + ranks.SLACK_S)
            self.assertRegex(refused["text"], "rank")

    def test_as_one_of_too_many_ranks(self):
        self.refuse("line:2", [f"RINGBOLT_RANK={rank} RINGBOLT_WORLD_SIZE=65" for rank in range(2)],
                    r"^65 ranks \(RINGBOLT_RANK=\d, RINGBOLT_WORLD_SIZE=65.*\): groups have 64 ranks at most")

    def test_with_too_many_ports(self):
        self.up("star:66")
        group = self.start_ranks(2)
        for node, rank in enumerate(group):
            rank.say(f"join RINGBOLT_RANK={node} RINGBOLT_WORLD_SIZE=2")
        for rank in group:
            self.assertRegex(rank.expect("refused")["text"], "rank 0: 65 ports are usable .* 64 of a rank at most")

    def test_over_too_many_hops(self):
        self.up("line:15")
        group = self.start_ranks(15)
        self.all_say(group, "join")
        for rank in group:
            self.assertRegex(rank.expect("refused")["text"], "14 hops.*fewer machines, or more ports")


class Stuck(ranks.GroupCase):
    """Calls of a driver that don't return: all ranks hear which, in time, and the process ends as any other."""

    def give_up(self, spec, n, fault, says, starts_after=0.0):
        self.up(spec)
        self.call("fault", "add", *fault.split())
        group = self.start_ranks(n, RINGBOLT_JOIN_TIMEOUT_MS=str(JOINS_WITHIN))
        group[0].say("join")
        time.sleep(starts_after)
        self.all_say(group[1:], "join")
        for rank in group:
            refused = rank.expect("refused", timeout=JOINS_WITHIN / 1000 + ranks.SLACK_S)
            self.assertRegex(refused["text"], says)
            self.assertLess(refused["ms"], JOINS_WITHIN + 1000)
        for rank in group:
            begin = time.monotonic()
            self.assertEqual(rank.end(), 0, rank.errors)
            self.assertLess(time.monotonic() - begin, 4)

    def test_in_a_trial(self):
        self.give_up("line:2", 2, "rtr-block by 60s node n1",
                     r"rank 1's rdma_en2 towards rank 0's rdma_en2: ibv_modify_qp to RTR has not returned: .*the other end")

    def test_in_rtr(self):
        self.give_up("line:2", 2, "rtr-block by 60s node n1 count 1-1",
                     r"rank 1: rdma_en2, .*cable 0-1 \(rdma_en\d to rdma_en2\): ibv_modify_qp to RTR has not returned "
                     r"for .*the other end")

    def test_when_a_device_is_asked(self):
        self.give_up("line:2", 2, "query-hang by 60s node n1",
                     r"rank 1: no port is usable; rdma_en2: ibv_query_device has not returned for .*reboot")

    def test_when_a_device_is_destroyed(self):
        self.give_up("line:2", 2, "destroy-hang by 60s node n1",
                     r"rank 1: no port is usable; rdma_en2.*: ibv_destroy_qp has not returned for ")

    def test_in_rtr_of_a_rank_that_comes_late(self):
        """One deadline for all of joining, that of the first rank."""
        self.give_up("line:2", 2, "rtr-block by 60s node n1 count 1-1",
                     "rank 1: rdma_en2.* ibv_modify_qp to RTR has not returned", 2.0)

    def test_on_one_of_three_devices(self):
        """The others go on."""
        self.up("mesh:3")
        self.call("fault", "add", *"query-hang by 60s node n1 port rdma_en2".split())
        group = self.start_ranks(3, RINGBOLT_JOIN_TIMEOUT_MS="6000")
        self.all_say(group, "join")
        for rank in group:
            rank.expect("joined")
        self.all_run(group, "call all_reduce count=10000")


class Settings(ranks.GroupCase):
    """What all ranks must have alike."""

    def refuse_both(self, joins, says):
        group = self.start_ranks(2, RINGBOLT_JOIN_TIMEOUT_MS=str(JOINS_WITHIN))
        for rank, words in zip(group, joins):
            rank.say(f"join {words}")
        for rank in group:
            self.assertRegex(rank.expect("refused")["text"], says)

    def device_file(self, name, device):
        path = self.root / name
        path.write_text(json.dumps([[None, device], [device, None]]))
        return f"JACCL_IBV_DEVICES={path}"

    def test_a_device_file_of_one_rank_alone(self):
        self.up("line:2")
        self.refuse_both(["", self.device_file("devices.json", "rdma_en2")],
                         r"rank [01] has (no|a) device file \(JACCL_IBV_DEVICES\), and this rank (one|none): give all")

    def test_device_files_that_differ(self):
        self.up("ring:2")
        self.refuse_both([self.device_file("one.json", "rdma_en2"), self.device_file("other.json", "rdma_en3")],
                         r"rank [01] has another device file \(JACCL_IBV_DEVICES\): give all ranks the same")

    def test_the_same_device_file_in_two_places(self):
        self.up("line:2")
        group = self.start_ranks(2)
        for rank, name in zip(group, ("one.json", "other.json")):
            rank.say(f"join {self.device_file(name, 'rdma_en2')}")
        for rank in group:
            rank.expect("joined")

    def test_a_verbs_library_that_is_not_there(self):
        self.up("line:2")
        self.refuse_both(["", "RINGBOLT_VERBS=/nowhere/libibverbs.so.1"], "rank 1: .*/nowhere/libibverbs.so.1")


if __name__ == "__main__":
    ranks.main()
