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

    # Cabled 0-2-1-3-0, as the second of two files in mlx#4283: MLX's launcher numbers the hosts as they stand.
    CROSSED = [[None, None, "rdma_en2", "rdma_en3"], [None, None, "rdma_en3", "rdma_en2"], ["rdma_en3", "rdma_en2", None, None],
               ["rdma_en2", "rdma_en3", None, None]]

    def crossed_hosts(self, backend):
        return {"backend": backend, "envs": [], "hosts": [{"ssh": f"me@mac{k}.local", "ips": [f"10.0.0.{k + 1}"], "rdma": row}
                                                          for k, row in enumerate(self.CROSSED)]}

    def test_a_ring_in_another_order_than_its_cables(self):
        for backend in ("jaccl-ring", "jaccl", ""):
            said, errors = self.check(json.dumps(self.crossed_hosts(backend)), expect=1)
            self.assertEqual((said["jaccl"], said["ring_order"], len(said["warnings"])), ("neither", [0, 2, 1, 3], 1))
            self.assertIn("no cable joins ranks 0 (me@mac0.local) and 1 (me@mac1.local), nor 2 (me@mac2.local) and 3", errors)
            self.assertIn("this order works: 0 (me@mac0.local), 2 (me@mac2.local), 1 (me@mac1.local), 3 (me@mac3.local)", errors)
        # So it does.
        order = said["ring_order"]
        hosts = self.crossed_hosts("jaccl-ring")
        hosts["hosts"] = [hosts["hosts"][k] | {"rdma": [self.CROSSED[k][j] for j in order]} for k in order]
        said, errors = self.check(json.dumps(hosts))
        self.assertEqual((said["jaccl"], errors), ("ring", ""))
        said, errors = self.check(json.dumps(self.CROSSED), expect=1)
        self.assertIn("no cable joins ranks 0 and 1, nor 2 and 3", errors)

    def test_a_ring_that_no_order_makes(self):
        line = '[[null, "a", null], ["a", null, "b"], [null, "a", null]]'
        self.assertEqual(self.check(line)[0]["jaccl"], "neither")  # ours relays
        path = self.root / "file.json"
        done = self.call("hostfile", "--check", path, "--backend", "jaccl-ring", expect=1)
        self.assertIn("no cable joins ranks 2 and 0", done.stderr)
        self.assertIn("no order works: rank 0 has cables to 1 other, and a ring needs two", done.stderr)

    def test_the_format_that_is_given_is_the_one_that_is_read(self):
        path = self.root / "file.json"
        path.write_text(json.dumps(self.crossed_hosts("ring")))
        self.call("hostfile", "--check", path, "--format", "mlx")
        for form, says in (("mlx-v1", "is an object, and mlx-v1 is the bare list"), ("jaccl", "--format jaccl"),
                           ("mlx-ring", "--format mlx-ring")):
            self.assertIn(says, self.call("hostfile", "--check", path, "--format", form, expect=1).stderr)
        path.write_text(json.dumps(self.crossed_hosts("")["hosts"]))
        self.assertIn("is a bare list", self.call("hostfile", "--check", path, "--format", "mlx", expect=1).stderr)

    def test_a_cluster_is_made_of_such_files_as_they_are(self):
        path = self.root / "hosts.json"
        for text in (self.crossed_hosts("jaccl-ring"), self.crossed_hosts("")["hosts"], self.CROSSED):
            path.write_text(json.dumps(text))
            self.assertIn("4 nodes", self.call("plan", path).stdout)
            self.call("up", "--emulate", path)
            try:
                self.assertEqual(self.write("--format", "jaccl"), self.CROSSED)
                names = [node["name"] for node in json.loads(self.call("status", "--json").stdout)["clusters"][0]["nodes"]]
                plain = text is self.CROSSED
                self.assertEqual(names, [f"n{k}" if plain else f"mac{k}.local" for k in range(4)])
            finally:
                self.call("down")
        two_rails = [[None, ["rdma_en2", "rdma_en10"]], [["rdma_en4", "rdma_en3"], None]]
        path.write_text(json.dumps(two_rails))
        with self.cluster(path):
            self.assertEqual(self.write("--format", "jaccl"), two_rails)

    def test_a_file_that_is_no_cabling_is_refused_as_one(self):
        path = self.root / "hosts.json"
        for text, says in (('[["10.0.0.1:32323"], ["10.0.0.2:32323"]]', "addresses of a ring of TCP"),
                           ('[{"ssh": "a", "ips": ["10.0.0.1"]}, {"ssh": "b"}]', "its hosts have no rdma"),
                           ('[[null, "a", "a"], ["a", null, "b"], ["a", "b", null]]', "a of rank 0 leads to two places"),
                           ('[[null, "a-b"], ["a", null]]', "is no name of a device"),
                           ('[[null, "a"], [["a", "b"], null]]', "[0][1]"),
                           ('{"hosts": [}', "hosts.json")):
            path.write_text(text)
            for words in (("up", "--emulate"), ("plan",)):
                self.refused(*words, path, says=["hosts.json", says])

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
