"""Collectives are measured: the table, the JSON, and that wrong results are counted."""

import json
import re

import command
from command import CommandCase

QUICK = ["-b", "8", "-e", "16K", "-f", "64", "-n", "4", "-w", "1"]
LONG_S = 120
STATISTICS = {"time", "alg_bw", "bus_bw", "nwrong", "min_us", "max_us", "avg_us", "p50_us", "p95_us", "p99_us",
              "stdev_us", "cv_pct", "skew_us"}
# What algbw is multiplied by, for four ranks.
FACTORS = {"all_reduce": 1.5, "reduce_scatter": 0.75, "all_gather": 0.75, "broadcast": 1, "reduce": 1,
           "all_to_all": 0.75, "gather": 0.75, "scatter": 0.75, "send_recv": 1}


class Bench(CommandCase):
    def bench(self, *words, **options):
        return json.loads(self.call("bench", *words, "--json", timeout=LONG_S, **options).stdout)

    def figures(self, result):
        found = [row[place] for row in result["results"] for place in ("out_of_place", "in_place") if row[place]]
        self.assertTrue(found)
        return found

    def test_every_collective(self):
        with self.cluster("ring:4"):
            for name, factor in FACTORS.items():
                with self.subTest(name):
                    result = self.bench(name, *QUICK)
                    self.assertEqual((result["version"], result["config"]["nranks"]), (3, 4))
                    self.assertEqual(len(result["results"]), 2)
                    for figure in self.figures(result):
                        self.assertEqual(set(figure), STATISTICS)
                        self.assertEqual(figure["nwrong"], 0)
                        self.assertAlmostEqual(figure["bus_bw"], figure["alg_bw"] * factor)
                        self.assertLessEqual(figure["min_us"], figure["p50_us"])
                        self.assertLessEqual(figure["p50_us"], figure["p95_us"])
                        self.assertLessEqual(figure["p95_us"], figure["p99_us"])
                        self.assertLessEqual(figure["p99_us"], figure["max_us"])
                    last = result["results"][-1]
                    parts = 4 if name in ("reduce_scatter", "all_gather", "all_to_all", "gather", "scatter") else 1
                    self.assertEqual(last["size"], last["count"] * 4 * parts)
            barrier = self.bench("barrier", "-n", "4")
            self.assertEqual([row["size"] for row in barrier["results"]], [0])

    def test_other_clusters(self):
        for spec in ("ring:2", "line:3", "mesh:4", "star:5", "petersen"):
            with self.subTest(spec), self.cluster(spec):
                for name in ("all_reduce", "all_to_all"):
                    self.bench(name, *QUICK)
        self.call("up", "--emulate", "ring:3", "--like", "tn3205")
        self.bench("all_gather", *QUICK)
        self.call("down", "--force")

    def test_byte_streams(self):
        done = self.call("bench", "stream", "-b", "4K", "-N", "2", "--block-ms", "5", "--verbs", "soft", "--json", timeout=LONG_S)
        result = json.loads(done.stdout)
        self.assertEqual((result["bytes"], result["rounds"], result["block_ms"]), (4096, 2, 5))
        ways = [f"{carrier}, {waits}" for waits in ("spinning", "sleeping") for carrier in ("stream", "UNIX socket", "TCP")]
        self.assertEqual([line["way"] for line in result["ping_pong"]], [*ways, "eventfd, sleeping"])
        self.assertEqual([line["way"] for line in result["bandwidth"]], [*ways, "stream without copies, sleeping"])
        for line in result["ping_pong"]:
            self.assertLess(0, line["p50_us"])
            self.assertLessEqual(line["p50_us"], line["p99_us"])
            by_way = {other["way"]: other["p50_us"] for other in result["ping_pong"]}
            unix = by_way["UNIX socket, " + line["way"].split(", ")[1]]
            self.assertAlmostEqual(line["times_unix"], unix / line["p50_us"])
        for line in result["bandwidth"]:
            self.assertGreater(line["gbytes_per_s"], 0)
        text = self.call("bench", "stream", "-N", "1", "--block-ms", "1", "--verbs", "soft", timeout=LONG_S).stdout
        self.assertEqual(len(re.findall(r"^  \w.*, s(?:pinning|leeping) +[\d.]+ +[\d.]+ +[\d.]+", text, re.MULTILINE)), 14)

    def test_byte_streams_that_cant_be_measured(self):
        for words, wanted in ((("-e", "4K"), "it takes -b"), (("-r", "1"), "--root: bench stream"), (("-c", "0"), "--check: "),
                              (("-b", "0"), "from 1 to 16M"), (("-b", "17M"), "from 1 to 16M")):
            self.refused("bench", "stream", *words, says=[wanted])
        self.assertIn("/nowhere", self.call("bench", "stream", "--verbs", "/nowhere", expect=1).stderr)

    def test_table_of_nccl_tests(self):
        with self.cluster("ring:2"):
            path = self.root.parent / f"{self.root.name}-bench.json"
            self.addCleanup(path.unlink, missing_ok=True)
            done = self.call("bench", "all_reduce", *QUICK, "-J", path, "-t", "2", "-I", timeout=LONG_S)
            self.assertIn("-t, -g, -m and -I are ignored", done.stderr)
            self.assertRegex(done.stdout, r"# +size +count +type +redop +root +time +algbw +busbw +#wrong +time +algbw")
            rows = re.findall(r"^ +(\d+) +(\d+) +float32 +sum +-1 +([\d.]+) +[\d.]+ +[\d.]+ +0 +([\d.]+) +[\d.]+ +[\d.]+ +0$",
                              done.stdout, re.MULTILINE)
            self.assertEqual([row[:2] for row in rows], [("8", "2"), ("512", "128")])
            self.assertIn("# Out of bounds values : 0 OK", done.stdout)
            self.assertRegex(done.stdout, r"# Avg bus bandwidth    : [\d.]+ GB/s")
            result = json.loads(path.read_text())
            self.assertEqual([f"{row['out_of_place']['time']:.1f}" for row in result["results"]], [row[2] for row in rows])

    def test_letters_of_nccl_tests(self):
        with self.cluster("line:3"):
            result = self.bench("reduce", "-b", "100", "-e", "300", "-i", "100", "-n", "2", "-w", "0", "-d", "double",
                                "-o", "max", "-r", "all", "-N", "2", "-T", "20", "-g", "1", "-c", "0")
            rows = result["results"]
            self.assertEqual(len(rows), 3 * 3 * 2)
            self.assertEqual({(row["type"], row["redop"]) for row in rows}, {("float64", "max")})
            self.assertEqual({row["root"] for row in rows}, {0, 1, 2})
            self.assertEqual({row["size"] for row in rows}, {96, 200, 296})
            self.assertEqual({figure["nwrong"] for figure in self.figures(result)}, {None})
            kinds = self.bench("all_reduce", "-b", "64", "-e", "64", "-n", "1", "-d", "all", "-o", "all", "-c")["results"]
            self.assertEqual(len(kinds), 67)
            self.assertEqual(sum(row["in_place"]["nwrong"] for row in kinds), 0)

    def test_algorithms(self):
        with self.cluster("ring:4"):
            self.bench("all_reduce", *QUICK, "--fast", "--algorithm", "two_way_ring")
            self.bench("all_reduce", *QUICK, "--in-order", "--algorithm", "direct")
            # Any order is right, and gives another zero.
            words = ["all_reduce", *QUICK, "-d", "complex64", "-o", "prod"]
            for figure in self.figures(self.bench(*words, "--fast", "--algorithm", "two_way_ring")):
                self.assertIsNone(figure["nwrong"])
            said = self.call("bench", *words, "--fast", timeout=LONG_S).stdout
            self.assertRegex(said, r" prod +-1 .* N/A .* N/A\n# Out of bounds values : not measured \(products of complex64")
            self.assertEqual({figure["nwrong"] for figure in self.figures(self.bench(*words))}, {0})
            refused = self.call("bench", "all_reduce", *QUICK, "--algorithm", "ring", expect=1)
            self.assertIn('no algorithm "ring" does', refused.stdout + refused.stderr)

    def test_json_to_standard_output(self):
        with self.cluster("ring:2"):
            said = self.call("bench", "barrier", "-n", "1", "-w", "0", "-J", "-", cwd=self.root).stdout
            self.assertIn("results", json.loads(said))
            self.assertFalse((self.root / "-").exists())
            refused = self.call("bench", "barrier", "-n", "1", "-w", "0", "-J", self.root / "no/where", expect=None)
            self.assertIn("no/where", refused.stderr)
            self.assertNotIn("barrier", refused.stdout)

    def test_bad_usage(self):
        for words, says in ([["sum"], "all_to_all"], [[], "COLLECTIVE is missing"], [["reduce", "-b", "1T"], "-b 1T"],
                            [["reduce", "-b", "2K", "-e", "1K"], "above"], [["reduce", "-d", "int7"], "bfloat16"],
                            [["reduce", "-o", "xor"], "-o xor"], [["reduce", "-r", "x"], "-r x"],
                            [["reduce", "-f", "1"], "--stepfactor"],
                            [["reduce", "-b", "8", "-e", "64M", "-i", "8"], "that makes 8388608 sizes, and 4096 are the most"],
                            [["reduce", "-b", "0", "-e", "1M"], "-b 0: times 4 it stays 0"], [["reduce", "-n", "0"], "--iters"],
                            [["reduce", "--fast", "--in-order"], "--in-order"],
                            [["reduce", "--algorithm", "magic"], "direct"], [["reduce", "-J", ""], "empty"], [["reduce"], "ringbolt up"]):
            with self.subTest(words):
                self.refused("bench", *words, says=[says])
        with self.cluster("ring:2"):
            done = self.call("bench", "reduce", *QUICK, "-r", "2", expect=2)
            self.assertIn("there are ranks 0 to 1", done.stderr)


if __name__ == "__main__":
    command.main()
