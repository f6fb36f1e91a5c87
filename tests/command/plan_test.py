"""Plans of cablings: what is printed, in each form, and that what is planned can be made."""

import collections
import ipaddress
import json
import os
import re
import unittest
import xml.etree.ElementTree

import command
from command import CommandCase

COMPUTES_LONG = "computes for seconds, for minutes under a sanitizer"


class Plan(CommandCase):
    def plan(self, *words, **options):
        return json.loads(self.call("plan", *words, "--json", **options).stdout)

    def of(self, n_nodes, n_ports, *words, **options):
        return self.plan("--nodes", n_nodes, "--ports", n_ports, *words, **options)

    def test_ten_machines_of_three_ports_become_petersens_graph(self):
        plan = self.of(10, 3, "--speed", 80)
        self.assertEqual(plan["shape"], "Petersen graph")
        self.assertEqual(len(plan["cables"]), 15)
        self.assertEqual((plan["hops"]["diameter"], plan["hops"]["least_diameter"]), (2, 2))
        self.assertEqual(plan["rates"]["all_reduce"]["cables"], "5/3")
        self.assertAlmostEqual(plan["rates"]["all_reduce"]["gbps"], 80 * 5 / 3)
        self.assertEqual(plan["rates"]["all_gather"]["cables"], "10/3")
        self.assertEqual(plan["rates"]["broadcast"]["cables"], "3")
        self.assertEqual(plan["rates"]["all_to_all_pair"]["cables"], "1/5")
        self.assertEqual({cable["cut"]["diameter"] for cable in plan["cables"]}, {4})
        self.assertEqual({cable["cut"]["all_reduce"]["cables"] for cable in plan["cables"]}, {"14/9"})
        self.assertEqual({cable["cut"]["broadcast"]["cables"] for cable in plan["cables"]}, {"2"})
        self.assertTrue(plan["routes"]["is_free_of_deadlock"])
        self.assertEqual(plan["problems"], [])

    def test_cables_between_equal_ports_of_sparks_are_remarked_on(self):
        path = self.root / "triangle.json"
        ports = ["rocep1s0f0", "rocep1s0f1", "roceP2p1s0f0", "roceP2p1s0f1"]
        nodes = [{"name": f"s{k}", "ports": ports} for k in range(3)]

        def remarks(*cables, like=("--like", "spark")):
            text = {"ringbolt": 1, "nodes": nodes, "cables": [{"between": list(ends)} for ends in cables]}
            path.write_text(json.dumps(text))
            return [note for note in self.plan(path, *like)["notes"] if "Stock NCCL" in note]

        triangle = (("s0:rocep1s0f0", "s1:rocep1s0f0"), ("s1:rocep1s0f1", "s2:rocep1s0f1"), ("s2:rocep1s0f0", "s0:rocep1s0f1"))
        [remark] = remarks(*triangle)
        self.assertIn("0 (s0:rocep1s0f0-s1:rocep1s0f0), 1 (s1:rocep1s0f1-s2:rocep1s0f1). Stock NCCL pairs devices by index", remark)
        self.assertEqual(remarks(*triangle, like=()), [])
        self.assertEqual(remarks(("s0:rocep1s0f1", "s1:rocep1s0f0"), ("s1:rocep1s0f1", "s2:rocep1s0f0"),
                                 ("s2:rocep1s0f1", "s0:rocep1s0f0")), [])
        # A port has two devices.
        self.assertEqual(len(remarks(("s0:rocep1s0f0", "s1:roceP2p1s0f0"), ("s1:rocep1s0f1", "s2:rocep1s0f0"))), 1)
        # Our own plans have none, nor have two machines.
        for n_nodes, n_ports in ((3, 2), (7, 2), (4, 3), (8, 3), (10, 3), (5, 4), (16, 5)):
            plan = self.of(n_nodes, n_ports, "--like", "spark")
            ends = [end for cable in plan["cables"] for end in cable["between"]]
            self.assertEqual(len(set(ends)), 2 * len(plan["cables"]))
            self.assertNotIn("Stock NCCL", " ".join(plan["notes"]))
        self.assertNotIn("Stock NCCL", " ".join(self.of(2, 2, "--like", "spark")["notes"]))

    def test_people_read_the_same(self):
        text = self.call("plan", "--nodes", 4, "--ports", 3, "--explain").stdout
        for part in ("mesh: 4 nodes of 3 ports, 6 cables", "\u28c0", "n0:rdma_en2 n1:rdma_en2", "10.77.0.1/30",
                     "10.76.0.1 (n0)", "at most 1 hop apart", "With one cable cut, whichever, they are at most 2 apart",
                     "nothing of it is measured", "free of deadlock", "Edmonds 1973", "Moore's bound",
                     "How collectives would be done", "all_reduce in order"):
            self.assertIn(part, text)
        self.assertRegex(text, r"all_reduce +2 +80.0 +66.7\n")
        self.assertRegex(text, r"broadcast, reduce +3 +120.0 +80.0\n")
        self.assertRegex(text, r"1 GiB +107.41 ms direct ")

    def test_every_prediction_comes_from_the_schedules_as_they_are_run(self):
        for shape in ("hypercube:4", "mesh:12"):
            plan = self.plan(shape, "--explain")
            rows = {(one["operation"], one["in_order"], one["bytes"]): one for one in plan["explained"]}
            self.assertEqual(len(rows), 9 * 5 + 1)
            self.assertEqual({name for name, _, _ in rows},
                             {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "gather", "scatter",
                              "all_to_all", "barrier"})
            for one in rows.values():
                self.assertGreaterEqual(one["times_bound"], 0.999, one)
                self.assertAlmostEqual(one["time_us"], one["times_bound"] * one["bound_us"])
            for row in plan["predicted"]["times"]:
                for name in ("all_reduce", "all_gather", "broadcast", "all_to_all"):
                    one = rows[name, False, row["bytes"]]
                    self.assertEqual(row[name], {"us": one["time_us"], "by": one["algorithm"]})
                    self.assertLessEqual(one["time_us"], one.get("next_best", one)["time_us"])
            text = self.call("plan", shape, "--explain").stdout
            for name in ("reduce", "gather", "scatter"):
                self.assertRegex(text, rf"\n{name} +1 GiB +[a-z_]+ +[0-9.]+ ms")
            self.assertRegex(text, r"\nbarrier +0 B +[a-z_]+ +[0-9.]+ us")
        self.assertNotIn("explained", self.plan("mesh:4"))
        self.assertEqual(rows["all_reduce", False, 1048576]["algorithm"], "direct")

    @unittest.skipIf("SANITIZED" in os.environ, COMPUTES_LONG)
    def test_a_long_broadcast_on_a_large_mesh_is_near_its_bound(self):
        for row in self.plan("mesh:36", "--explain")["explained"]:
            if row["operation"] in ("broadcast", "reduce") and row["bytes"] == 1 << 30:
                self.assertLess(row["times_bound"], 1.2, row)

    def test_what_shortest_paths_reach_is_compared_with_the_bound(self):
        def says(*words):
            return re.search("all_to_all over .*", self.call("plan", *words).stdout)[0]

        self.assertEqual(says("--nodes", 10, "--ports", 3),
                         "all_to_all over shortest paths reaches its bound of 1/5 (8.0 Gb/s).")
        self.assertEqual(says("line:20"), "all_to_all over shortest paths reaches its bound of 1/100 (0.4 Gb/s).")
        self.assertEqual(says("--nodes", 9, "--ports", 3), "all_to_all over shortest paths reaches 2/11 (7.3 Gb/s) of "
                         "the 1/5 (8.0 Gb/s) that bounds it.")

    def test_a_shape_that_leaves_ports_free_is_far_from_the_bound(self):
        ring = self.of(10, 3, "--shape", "ring")
        self.assertEqual((ring["hops"]["diameter"], ring["hops"]["least_diameter"]), (5, 2))
        self.assertAlmostEqual(ring["hops"]["least_average"], 5 / 3)
        self.assertIn("10 nodes of 3 ports can be nearer: 2 hops at most and 1.667 on average, not 5 and 2.778; see "
                      "ringbolt plan --nodes 10 --ports 3", ring["notes"])
        text = self.call("plan", "--nodes", 10, "--ports", 3, "--shape", "ring", "--explain").stdout
        self.assertIn("no cabling of so many ports goes below 2 and 1.667", text)
        self.assertNotIn("none is better", text)
        self.assertNotIn("can be nearer", " ".join(self.of(10, 3)["notes"] + self.of(10, 3, "--shape", "petersen")["notes"]))

    def test_explains_how_far_a_cabling_is_from_the_bound(self):
        def explained(*words, **options):
            return re.search(r"\n  From a node .*", self.call("plan", *words, "--explain", **options).stdout)[0]

        self.assertIn("(Moore's bound). This cabling meets it: none is better.", explained("--nodes", 10, "--ports", 3))
        odd = explained("--nodes", 9, "--ports", 3)
        self.assertIn("; 9 x 3 is odd, so one node has a port free, and 2 others one hop away: for 9 nodes", odd)
        self.assertIn("This cabling has 1.694 on average, 1.7 % above.", odd)
        self.assertNotIn("odd", explained("--nodes", 5, "--ports", 5))
        self.assertIn("66.7 % above, and 3 hops more at most.", explained("--nodes", 10, "--ports", 3, "--shape", "ring"))
        self.assertIn("close a circle, as the check shows",
                      self.call("plan", "ring:5", "--routing", "shortest", "--explain", expect=1).stdout)
        self.assertIn("close no circle, as the check shows",
                      self.call("plan", "line:3", "--routing", "shortest", "--explain").stdout)

    def test_no_cabling_is_advised_that_machines_have_no_ports_for(self):
        for spec in ("line:3", "line:10", "star:5"):
            text = self.call("plan", spec).stdout
            self.assertNotIn("can be nearer", text)
            self.assertRegex(text, r"^.* nodes of up to \d ports, ")
        self.assertRegex(self.call("plan", "ring:10").stdout, r"^ring:10: 10 nodes of 2 ports, ")

    def test_the_least_between_two_halves(self):
        def judged(*words):
            rates = self.plan(*words)["rates"]["bisection"]
            return rates["cables"], rates["gbps"], rates["is_exact"]

        for words, known in ((("--nodes", 10, "--ports", 3), ("5", 200, True)),
                             (("ring:2", ), ("2", 80, True)), (("mesh:8", ), ("16", 640, True)),
                             (("torus:4x4", ), ("8", 320, True)), (("line:19", ), ("1", 40, False)),
                             (("hypercube:5", ), ("16", 640, False))):
            with self.subTest(words):
                self.assertEqual(judged(*words), known)
        self.assertIn("\nBisection: 5 cables (200.0 Gb/s each way).\n",
                      self.call("plan", "--nodes", 10, "--ports", 3).stdout)
        self.assertIn("\nBisection: at most 1 cable (40.0 Gb/s each way).\n", self.call("plan", "line:19").stdout)

    def test_nodes_too_far_apart_for_a_group_are_named(self):
        def judged(*words):
            plan = self.plan(*words)
            hops = plan["hops"]
            self.assertEqual(hops["most_of_group"], 13)
            return hops["can_be_group"], hops.get("can_be_group_after_cut"), " ".join(plan["notes"])

        for spec, can, after, says in (
                ("ring:14", True, True, ""),  # 7 hops, 13 after a cut
                ("ring:15", True, False, "a cut of one cable can leave nodes here 14 apart"),
                ("ring:27", True, False, "can leave nodes here 26 apart"),
                ("ring:28", False, False, "nodes here are 14 apart: these cannot form one"),
                ("line:14", True, False, ""), ("line:15", False, False, "nodes here are 14 apart"),
                ("mesh:4", True, True, ""), ("ring:100", False, None, "nodes here are 50 apart")):
            with self.subTest(spec):
                can_now, can_after, notes = judged(spec)
                self.assertEqual((can_now, can_after), (can, after))
                self.assertIn(says, notes)
                self.assertEqual("groups of libringbolt relay over at most 13 hops" in notes, says != "")
        self.assertIn("note: groups of libringbolt", self.call("plan", "--nodes", 16, "--ports", 2).stdout)

    def test_what_is_not_computed_of_many_nodes_is_said(self):
        self.assertIn("rates, times, cuts and routes are not computed above 64 nodes (routes with --check)",
                      self.plan("ring:65")["notes"])
        checked = self.plan("ring:65", "--check")
        self.assertIn("rates, times and cuts are not computed above 64 nodes", checked["notes"])
        self.assertIn("routes", checked)
        self.assertNotIn("not computed", " ".join(self.plan("ring:64")["notes"]))

    def test_nodes_that_only_relay(self):
        group = self.plan("star:4", "--relays", "0")["group"]
        self.assertEqual((group["relays"], group["nodes"]), (["n0"], ["n1", "n2", "n3"]))
        self.assertEqual((group["diameter"], group["average_hops"]), (2, 2))
        self.assertEqual({one["collective"] for one in group["times"]},
                         {"all_reduce", "all_gather", "broadcast", "all_to_all"})
        whole = self.plan("ring:6", "--relays", "n1,n3,n5")["group"]
        self.assertEqual((whole["diameter"], whole["nodes"]), (2, ["n0", "n2", "n4"]))
        self.assertIn("n0 only relays. The group of the other 3", self.call("plan", "star:4", "--relays", "n0").stdout)
        self.refused("plan", "ring:3", "--relays", "0,1", says=["leaves 1 of 3 nodes"])
        path = self.root / "relays.json"
        for relays, says in (("7", "7"), ("n99", "n99"), ("n0,n1", "leaves 1 of 3 nodes")):
            done = self.refused("plan", "ring:3", "--relays", relays, "--cluster-file", path, says=[says])
            self.assertEqual((done.stdout, path.exists()), ("", False))

    def test_addresses_are_two_in_a_subnet_of_each_cable(self):
        for length, n_hosts in ((30, 2), (24, 254)):
            plan = self.of(20, 4, "--prefix-length", length)
            nets = [ipaddress.ip_network(cable["subnet"]) for cable in plan["cables"]]
            for net, cable in zip(nets, plan["cables"]):
                hosts = list(net.hosts())
                self.assertEqual(len(hosts), n_hosts)
                self.assertEqual(cable["addresses"], [str(hosts[0]), str(hosts[1])])
            self.assertFalse(any(a.overlaps(b) for a in nets for b in nets if a is not b))
            nodes = [ipaddress.ip_interface(node["address"]) for node in plan["nodes"]]
            self.assertEqual(len(set(nodes)), 20)
            self.assertFalse(any(node.ip in net for node in nodes for net in nets))

    def test_every_port_has_one_plug(self):
        for n_nodes, n_ports in ((2, 4), (3, 5), (8, 3), (21, 3), (70, 4)):
            ends = [end for cable in self.of(n_nodes, n_ports)["cables"] for end in cable["between"]]
            self.assertEqual(len(ends), len(set(ends)))
            self.assertEqual(len(ends), n_nodes * n_ports // 2 * 2)

    def test_dense_cablings_lack_only_the_cables_that_they_must(self):
        for n_nodes, n_ports, *more in ((64, 62), (64, 58), (56, 51), (48, 45), (40, 38), (66, 63), (100, 98),
                                        (180, 178), (64, 125), (40, 38, "--shape", "random"),
                                        (65, 60, "--shape", "random")):
            with self.subTest((n_nodes, n_ports, *more)):
                if "SANITIZED" in os.environ and n_nodes > 40:
                    self.skipTest(COMPUTES_LONG)
                plan = self.of(n_nodes, n_ports, *more)
                self.assertEqual(plan["hops"]["diameter"], 1 if n_ports >= n_nodes else 2)
                self.assertEqual(plan["hops"]["average"], plan["hops"]["least_average"])
                self.assertEqual(len(plan["cables"]), n_nodes * n_ports // 2)
                counts = collections.Counter(end.split(":")[0] for one in plan["cables"] for end in one["between"])
                self.assertEqual(set(counts.values()), {n_ports})
                if (n_nodes, n_ports) == (64, 62):
                    self.assertIn("what a cut costs in rates is not computed: 1984 cables times 64 nodes", " ".join(plan["notes"]))
        path = self.root.parent / f"{self.root.name}-dense.json"
        self.addCleanup(path.unlink, missing_ok=True)
        path.write_text(json.dumps({"ringbolt": 1, "nodes": [
            {"name": f"m{k}", "ports": [f"p{other}" for other in range(40)]} for k in range(40)], "cables": [
                {"between": [f"m{a}:p{b}", f"m{b}:p{a}"]} for a in range(40) for b in range(a + 1, 40) if b != a ^ 1]}))
        self.assertEqual(self.plan(path)["hops"]["diameter"], 2)

    def test_the_same_question_has_the_same_answer(self):
        self.assertEqual(self.of(24, 3), self.of(24, 3))

    def test_a_plan_comes_up(self):
        path = self.root.parent / f"{self.root.name}-planned.json"
        self.addCleanup(path.unlink, missing_ok=True)
        planned = self.of(8, 3, "--cluster-file", path, "--like", "spark", "--speed", 200)
        with self.cluster(path, name="planned"):
            status = json.loads(self.call("status", "--json").stdout)["clusters"][0]
            self.assertEqual(len(status["cables"]), 12)
            devices = json.loads(self.call("devices", "--json").stdout)["devices"]
            self.assertEqual({one["device"] for one in devices}, {"rocep1s0f0", "rocep1s0f1", "roceP2p1s0f0", "roceP2p1s0f1"})
            out = self.call("run", "--nodes", "0,7", "--", "sh", "-c", "env | grep -c RINGBOLT_ADDR_").stdout
            self.assertEqual(re.findall(r"\| (\d+)", out), ["3", "3"])
        judged = self.plan(path)
        for name in ("cables", "hops", "rates", "routes"):
            self.assertEqual(judged[name], planned[name], name)
        self.assertEqual(judged["notes"], [])

    def test_cables_keep_their_numbers_when_one_is_pulled(self):
        path = self.root.parent / f"{self.root.name}-kept.json"
        self.addCleanup(path.unlink, missing_ok=True)
        before = self.of(10, 3, "--cluster-file", path)["cables"]
        file = json.loads(path.read_text())
        self.assertEqual([one["id"] for one in file["cables"]], list(range(15)))
        facts = ("id", "between", "rail", "subnet", "addresses")

        def judge():
            path.write_text(json.dumps(file))
            return [{name: cable[name] for name in facts} for cable in self.plan(path)["cables"]]

        before = [{name: cable[name] for name in facts} for cable in before]
        pulled = file["cables"].pop(4)
        self.assertEqual(judge(), [cable for cable in before if cable["id"] != 4])
        file["cables"].insert(0, {"between": pulled["between"]})  # another one, wherever it stands
        self.assertEqual([cable["id"] for cable in judge()], [0, 1, 2, 3, *range(5, 15), 15])
        self.assertEqual(judge()[-1]["subnet"], "10.77.0.60/30")
        file["cables"][0]["id"] = 3
        path.write_text(json.dumps(file))
        self.refused("plan", path, says=["cables[4].id: 3 is the number of cables[0]"])
        file["cables"][0]["id"] = 300
        path.write_text(json.dumps(file))
        self.assertEqual(self.plan(path)["cables"][-1]["subnet"], "10.77.4.176/30")
        self.refused("plan", path, "--prefix-length", 24, says=[
            "cable 300 (n1:rdma_en4-n6:rdma_en2) does not fit into one /16: subnets of /24 are enough for numbers up to "
            "255; give --prefix-length 30"])

    def test_shapes_that_are_asked_for(self):
        for shape, n_nodes, n_ports, n_cables in (("ring", 6, 3, 6), ("line", 5, 2, 4), ("star", 5, 4, 4),
                                                  ("torus", 12, 4, 24), ("torus:3x3", 9, 4, 18),
                                                  ("torus:2x2x3", 12, 4, 24), ("hypercube", 8, 3, 12),
                                                  ("petersen", 10, 3, 15), ("circulant:1,4", 8, 3, 12),
                                                  ("mesh", 4, 3, 6), ("random", 12, 3, 18)):
            plan = self.of(n_nodes, n_ports, "--shape", shape)
            self.assertEqual((plan["shape"], len(plan["cables"])), (shape, n_cables))
        self.assertIn("parts the nodes: add a cable between n0 and n4",
                      self.of(5, 2, "--shape", "line")["notes"][0])

    def test_pictures(self):
        dot = self.call("plan", "--nodes", 3, "--ports", 2, "--dot").stdout
        self.assertRegex(dot, r'^graph "mesh" \{')
        self.assertEqual(len(re.findall(r'"n\d" -- "n\d"', dot)), 3)
        path = self.root.parent / f"{self.root.name}-picture.svg"
        self.addCleanup(path.unlink, missing_ok=True)
        self.assertIn("Petersen", self.call("plan", "--nodes", 10, "--ports", 3, "--svg", path).stdout)
        tree = xml.etree.ElementTree.parse(path)
        svg = "{http://www.w3.org/2000/svg}"
        self.assertEqual(len(tree.findall(f".//{svg}path")), 15)
        self.assertEqual([one.text for one in tree.findall(f"./{svg}text")], [f"n{k}" for k in range(10)])
        alone = self.call("plan", "--nodes", 2, "--ports", 2, "--svg", "-").stdout
        self.assertEqual(len(xml.etree.ElementTree.fromstring(alone).findall(f".//{svg}path")), 2)
        made = json.loads(self.call("plan", "--nodes", 2, "--ports", 2, "--cluster-file", "-").stdout)
        self.assertEqual(len(made["cables"]), 2)

    def test_the_check_proves_or_shows_a_circle(self):
        routes = self.of(8, 2, "--check")["routes"]
        place = {tuple(channel): at for at, channel in enumerate(routes["order"])}
        self.assertEqual(len(place), 56)
        for source in range(8):
            for step in (1, -1):  # the longest routes: what is shorter is the beginning of one
                hops = [(f"n{(source + step * k) % 8}", f"n{(source + step * (k + 1)) % 8}", k) for k in range(3)]
                self.assertEqual(sorted(hops, key=place.get), hops)
        done = self.call("plan", "--nodes", 5, "--ports", 2, "--routing", "shortest", "--check", "--json", expect=1)
        self.assertIn("can wait for each other in a circle: n", done.stderr)
        cycle = json.loads(done.stdout)["routes"]["cycle"]
        self.assertEqual(len(cycle), 5)
        for one, after in zip(cycle, cycle[1:] + cycle[:1]):
            self.assertEqual(one[1], after[0])
        for way in ("hop-classes", "dateline", "up-down"):
            self.assertEqual(self.of(5, 2, "--routing", way, "--check")["problems"], [])
        self.assertIn("The order: n", self.call("plan", "--nodes", 66, "--ports", 3, "--check").stdout)

    def test_a_cabling_is_judged(self):
        path = self.root.parent / f"{self.root.name}-judged.json"
        self.addCleanup(path.unlink, missing_ok=True)
        nodes = [{"name": f"m{k}", "ports": ["p", "q", "r"]} for k in range(6)]

        def judge(*pairs, speed=40, **options):
            used = {}
            ends = []
            for pair in pairs:
                ends.append([f"m{node}:{'pqr'[used.setdefault(node, 0)]}" for node in pair])
                for node in pair:
                    used[node] += 1
            cables = [{"between": end, "speed_gbps": speed if index else 20} for index, end in enumerate(ends)]
            path.write_text(json.dumps({"ringbolt": 1, "nodes": nodes, "cables": cables}))
            return self.call("plan", path, "--json", **options)

        bridge = json.loads(judge((0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (4, 5), (3, 5)).stdout)
        self.assertEqual(bridge["unit_gbps"], 20)
        self.assertEqual([cable["id"] for cable in bridge["cables"] if not cable["cut"]["is_connected"]], [3])
        self.assertIn("cutting cable 3 (m2:r-m3:p) parts the nodes: add a cable between m0 and m4", bridge["notes"][0])
        self.assertIn("6 nodes of 3 ports can be nearer: 2 hops at most", bridge["notes"][1])
        parted = judge((0, 1), (1, 2), (0, 2), (3, 4), (4, 5), expect=1)
        self.assertIn("no path joins m0 with m3, m4, m5: add a cable between m0 and m3", parted.stderr)
        self.assertFalse(json.loads(parted.stdout)["is_connected"])
        self.call("plan", path, expect=1)  # for people, too
        path.write_text(json.dumps({"ringbolt": 1, "nodes": nodes[:2], "cables": [
            {"between": ["m0:p", "m1:p"]}, {"between": ["m0:q", "m0:q"]}]}))
        self.assertIn("cable 1 leads from m0:q back to the same node", self.plan(path)["notes"][0])

    def test_a_topology_is_judged(self):
        plan = self.plan("star:6")
        self.assertEqual((plan["hops"]["diameter"], plan["rates"]["all_reduce"]["cables"]), (2, "1"))
        self.assertIn("parts the nodes", plan["notes"][0])
        self.assertEqual(self.plan("torus:4x4")["rates"]["all_reduce"]["cables"], "32/15")

    def test_uneven_cables_keep_their_rates(self):
        path = str(self.root.parent / f"{self.root.name}-uneven.json")
        with open(path, "w", encoding="ascii") as file:
            json.dump({"ringbolt": 1, "nodes": [{"name": n, "ports": ["p", "q"]} for n in "abc"], "cables": [
                {"between": ["a:p", "b:p"], "speed_gbps": 40}, {"between": ["b:q", "c:p"], "speed_gbps": 10},
                {"between": ["a:q", "c:q"], "speed_gbps": 10}]}, file)
        self.addCleanup(command.pathlib.Path(path).unlink)
        plan = self.plan(path)
        self.assertEqual([cable["speed_gbps"] for cable in plan["cables"]], [40, 10, 10])
        self.assertEqual(plan["rates"]["all_reduce"], {"cables": "2", "gbps": 20.0})
        self.assertEqual(plan["rates"]["all_gather"]["cables"], "3")

    def test_what_cannot_be_planned_is_refused(self):
        for words, says in (
                ([], "--nodes and --ports are required, or a topology or cluster file"),
                (["--nodes", 4], "--ports is required"),
                (["--nodes", 1, "--ports", 3], "--nodes: give a whole number from 2 to 250, not \"1\""),
                (["--nodes", 0, "--ports", 3], "--nodes: give a whole number from 2 to 250, not \"0\""),
                (["--nodes", 10 ** 9, "--ports", 3], "--nodes: give a whole number from 2 to 250"),
                (["--nodes", 4, "--ports", 0], "--ports: give a whole number from 1 to 250, not \"0\""),
                (["--nodes", -4, "--ports", 2], "not \"-4\""),
                (["--nodes", "x", "--ports", 2], "--nodes"),
                (["--nodes", 3, "--ports", 1], "give 2 ports for a ring"),
                (["--nodes", 6, "--ports", 3, "--shape", "mesh"], "needs 5 ports on a node, but there are 3"),
                (["--nodes", 6, "--ports", 3, "--shape", "blob"], "known are mesh, ring"),
                (["--nodes", 8, "--ports", 3, "--like", "toaster"], "toaster"),
                (["--nodes", 8, "--ports", 3, "--routing", "dateline"], "rings of 5 nodes and more"),
                (["--nodes", 250, "--ports", 249],
                 "31125 cables do not fit into one /16: subnets of /30 are enough for 16384; give fewer nodes or ports\n"),
                (["--nodes", 30, "--ports", 29, "--prefix-length", 24],
                 "435 cables do not fit into one /16: subnets of /24 are enough for 256; give fewer nodes or ports, or "
                 "--prefix-length 30"),
                (["--nodes", 4, "--ports", 3, "--json", "--dot"], "want stdout"),
                (["--nodes", 4, "--ports", 3, "--speed", 0], "--speed"),
                (["--nodes", 4, "--ports", 3, "--speed", "40Gbit"], "--speed: give a whole number from 1 to 10000, not \"40Gbit\""),
                (["--nodes", 4, "--ports", 3, "--svg", "/no/such/folder/x.svg"], "give --svg another path"),
                (["no/such.json"], "no/such.json"),
                (["ring:1"], "whole number from 2 to 250"),
                (["loop"], "nothing to judge below 2"),
                (["x.json", "--nodes", 4], "exclude each other")):
            with self.subTest(words):
                self.refused("plan", *words, says=[says])


if __name__ == "__main__":
    command.main()
