"""Hostfiles of MLX and device files of JACCL: written of a cluster, judged, and joined with."""

import json

import command
from command import CommandCase


class Hostfile(CommandCase):
    def write(self, *words):
        return json.loads(self.call("hostfile", *words).stdout)

    def check(self, text, expect=0):
        """The judgement and what stands on standard error."""
        path = self.root / "file.json"
        path.write_text(text)
        done = self.call("hostfile", "--check", path, "--json", expect=expect)
        return json.loads(done.stdout or "null"), done.stderr

    def test_of_a_ring_in_every_format(self):
        with self.cluster("ring:3"):
            matrix = [[None, "rdma_en2", "rdma_en3"], ["rdma_en3", None, "rdma_en2"], ["rdma_en2", "rdma_en3", None]]
            devices = {(row["node"], row["leads_to"].split(":")[0]): row["device"]
                       for row in json.loads(self.call("devices", "--json").stdout)["devices"]}
            for i, row in enumerate(matrix):
                for j, cell in enumerate(row):
                    self.assertEqual(cell, devices.get((f"n{i}", f"n{j}")))
            self.assertEqual(self.write("--format", "jaccl"), matrix)
            mlx = self.write()
            self.assertEqual(list(mlx), ["backend", "envs", "hosts"])
            self.assertEqual((mlx["backend"], mlx["envs"]), ("jaccl", []))
            self.assertEqual([host["rdma"] for host in mlx["hosts"]], matrix)
            self.assertEqual(mlx["hosts"][1]["ips"], ["127.77.1.2", "127.77.1.3"])
            self.assertEqual(self.write("--format", "mlx-v1"), mlx["hosts"])
            self.assertEqual(self.write("--format", "mlx-ring"),
                             [["127.77.0.2:32323"], ["127.77.1.2:32324"], ["127.77.2.2:32325"]])
            plain = self.write("--backend", "ring")
            self.assertEqual([set(host) for host in plain["hosts"]], [{"ssh", "ips"}] * 3)
            for form, n_pairs in (("mlx", 3), ("mlx-v1", 3), ("mlx-ring", 0), ("jaccl", 3)):
                said, errors = self.check(self.call("hostfile", "--format", form).stdout)
                self.assertEqual((said["format"], len(said["ranks"]), len(said["pairs"]), errors),
                                 (form, 3, n_pairs, ""))

    def test_of_a_ring_leaves_out_what_it_does_not_use(self):
        with self.cluster("mesh:4"):
            rows = self.write("--format", "jaccl", "--backend", "jaccl-ring")
            self.assertEqual([(i, j) for i in range(4) for j in range(4) if rows[i][j] is None and i != j],
                             [(0, 2), (1, 3), (2, 0), (3, 1)])
            said, _ = self.check(json.dumps(rows))
            self.assertEqual(said["jaccl"], "ring")
            self.assertEqual(self.check(self.call("hostfile").stdout)[0]["jaccl"], "mesh, ring")
        with self.cluster("line:3"):
            self.refused("hostfile", "--backend", "jaccl-ring", says=["no cable joins node 2 to node 0"])
            self.assertEqual(self.check(self.call("hostfile").stdout)[0]["jaccl"], "neither")

    def test_a_group_joins_with_the_file(self):
        path = self.root / "devices.json"
        with self.cluster("ring:4"):
            self.call("hostfile", "--format", "jaccl", "-o", path)
            words = ("bench", "all_reduce", "-b", "1K", "-e", "1K", "-n", "1", "-w", "0")
            done = self.call(*words, env={"JACCL_IBV_DEVICES": str(path)})
            self.assertNotIn("devices.json", done.stderr)
            # It is read, and what looks wrong in it is told once; what JACCL would heed and we don't, as well.
            rows = json.loads(path.read_text())
            rows[1][2] = rows[1][0]
            path.write_text(json.dumps(rows))
            failed = self.call(*words, expect=None, env={"JACCL_IBV_DEVICES": str(path), "JACCL_RING": "0"})
            self.assertNotEqual(failed.returncode, 0)
            self.assertEqual(failed.stderr.count("occurs twice among the devices of rank 1"), 1, failed.stderr)
            self.assertEqual(failed.stderr.count("JACCL_RING=0 is ignored"), 1, failed.stderr)

    def test_where_no_cable_leads_an_overlay_does(self):
        self.call("up", "--emulate", "line:3", "--overlay")
        self.addCleanup(self.call, "down", "--force")
        matrix = [[None, "rdma_en2", "ringbolt0"], ["rdma_en2", None, "rdma_en3"], ["ringbolt0", "rdma_en2", None]]
        text = self.call("hostfile", "--format", "jaccl").stdout
        self.assertEqual(json.loads(text), matrix)
        self.assertEqual(self.write("--format", "jaccl", "--backend", "jaccl-ring"), matrix)
        for node, row in enumerate(matrix):
            there = self.call("exec", node, "--", "ibv_devices").stdout.split()
            self.assertLessEqual({cell for cell in row if cell}, set(there))
        said, errors = self.check(text)
        self.assertEqual((said["jaccl"], errors), ("mesh, ring", ""))
        # A device that leads everywhere occurs more than once, and our groups relay by themselves.
        self.call("down")
        self.call("up", "--emulate", "line:4", "--overlay")
        path = self.root / "devices.json"
        self.call("hostfile", "--format", "jaccl", "-o", path)
        self.assertEqual(json.loads(path.read_text())[0], [None, "rdma_en2", "ringbolt0", "ringbolt0"])
        self.assertEqual(self.check(path.read_text())[1], "")
        self.call("bench", "all_reduce", "-b", "1K", "-e", "1K", "-n", "1", "-w", "0",
                  env={"JACCL_IBV_DEVICES": str(path)})

    def test_one_rank_needs_no_devices(self):
        path = self.root / "alone.json"
        path.write_text("[[null]]")
        self.assertEqual(self.check("[[null]]")[0]["pairs"], [])
        with self.cluster("line:2"):
            self.call("exec", "0", "--", command.RINGBOLT, "bench", "all_reduce", "-b", "8", "-e", "8", "-n", "1", "-w", "0",
                      "--as-rank", env={"RINGBOLT_RANK": "0", "RINGBOLT_WORLD_SIZE": "1",
                                        "JACCL_IBV_DEVICES": str(path)})

    def test_judges_files_of_others(self):
        said, errors = self.check('{"backend": "", "envs": ["A=1"], "hosts": [{"ssh": "m1", "ips": ["10.0.0.1"], "rdma": []},'
                                  ' {"ssh": "m2", "ips": ["10.0.0.2"], "rdma": []}]}')
        self.assertEqual((said["format"], said["envs"], said["pairs"], said["jaccl"], errors),
                         ("mlx", ["A=1"], [], None, ""))
        self.assertEqual(said["ranks"][1], {"rank": 1, "ssh": "m2", "ips": ["10.0.0.2"]})
        said, errors = self.check('[[null, "a", "a"], ["a", null, "b"], ["a", "b", null]]', expect=1)
        self.assertIn("[0][2]: a occurs twice among the devices of rank 0", errors)
        self.assertEqual(len(said["warnings"]), 1)
        said, errors = self.check('[[null, ["a", "b"], "c"], [["a", "b"], null, "c"], ["a", "b", null]]', expect=1)
        self.assertIn("ranks 0 and 1 have 2 rails, ranks 1 and 2 have 1", errors)
        self.assertIn("hosts[0] has no ips", self.check('[{"ssh": "a"}, {"ssh": "b"}]', expect=1)[1])
        said, errors = self.check('[[null, "a"], [["a", "b"], null]]', expect=1)
        self.assertIsNone(said)
        self.assertIn("[0][1]: has 1 devices, and [1][0] has 2", errors)
        self.check("", expect=1)
        people = self.call("hostfile", "--check", self.root / "file.json", expect=1)
        self.assertEqual(people.stdout, "")

    def test_a_table_for_people(self):
        with self.cluster("ring:3"):
            path = self.root / "hosts.json"
            self.call("hostfile", "--output", path)
            said = self.call("hostfile", "--check", path).stdout
            self.assertIn("mlx: 3 ranks, backend jaccl", said)
            self.assertIn("JACCL takes it as: mesh, ring", said)
            self.assertRegex(said, r"1-2 +1 rdma_en2 +rdma_en3")
            self.assertRegex(said, r"2 n2 +127.77.2.2 127.77.2.3")

    def test_wrong_usage(self):
        self.refused("hostfile", says=["ringbolt up"])
        self.refused("hostfile", "--check", self.root / "none.json", says=["none.json"])
        self.refused("hostfile", "--format", "yaml", says=["--format"])
        with self.cluster("line:2"):
            self.refused("hostfile", "--format", "jaccl", "--backend", "ring", says=["mlx-ring"])
            self.refused("hostfile", "--json", says=["--check"])
            self.refused("hostfile", "-o", "/none/x", says=["/none/x"])


if __name__ == "__main__":
    command.main()
