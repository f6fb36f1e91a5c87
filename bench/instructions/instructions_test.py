#!/usr/bin/env python3
"""Tests of what is made of counts: dumps, figures, the budget, the table. No program is run."""

import json
import os
import tempfile
import unittest

import budget
from counting import CountError, Figure, Series, Valgrind, figures_of, series_of, total_of_dump
from instructions import recount, remarks, table

DUMP = """# callgrind format
version: 1
part: 2

desc: Timerange: Basic block 10 - 20
desc: Trigger: Client Request: {name}

positions: line
events: Ir
summary: {total}

fn=(1) ibv_post_send
16 {total}

totals: {total}
"""


class Counting(unittest.TestCase):
    def test_only_whole_lines_are_series(self):
        text = "hello\nseries nothing 100 100 0 - -\nseries a.sender 32 64 40 1234 5\nseries broken 1 2\nxseries a 1 1 1 1 1\n"
        self.assertEqual(series_of(text), [Series("nothing", 100, 100, 0), Series("a.sender", 32, 64, 40, 1234, 5)])

    def test_dump_has_name_and_total(self):
        self.assertEqual(total_of_dump(DUMP.format(name="read", total=77)), ("read", 77))
        self.assertEqual(total_of_dump("desc: Trigger: Client Request: read\n"), ("read", 0))
        with self.assertRaises(CountError):
            total_of_dump("desc: Trigger: Program termination\ntotals: 5\n")

    def fill(self, dumps, series):
        with tempfile.TemporaryDirectory() as folder:
            for number, (name, total) in enumerate(dumps, 1):
                with open(os.path.join(folder, f"dump.{number}"), "w", encoding="utf-8") as file:
                    file.write(DUMP.format(name=name, total=total))
            return Valgrind(folder).fill([Series(name, 1, 1, 0) for name in series])

    def test_dumps_are_taken_by_number_not_by_spelling(self):
        filled = self.fill([(f"s{i}", i) for i in range(12)], [f"s{i}" for i in range(12)])
        self.assertEqual([one.instructions for one in filled], list(range(12)))

    def test_missing_and_misplaced_dumps_are_said(self):
        with self.assertRaisesRegex(CountError, "1 dumps for 2 series"):
            self.fill([("a", 1)], ["a", "b"])
        with self.assertRaisesRegex(CountError, "is of b, not of a"):
            self.fill([("b", 1)], ["a"])

    def test_what_counting_takes_is_taken_off_for_each_start(self):
        figures = figures_of([Series("nothing", 100, 100, 0, 900, 200), Series("send", 10, 20, 11, 1180, 70)])
        self.assertEqual(figures, {"send": Figure(100.0, 1.1, 3.0, 100.0)})

    def test_what_nobody_counted_is_no_figure(self):
        figures = figures_of([Series("nothing", 100, 100, 0, None, 200), Series("send", 10, 20, 11, None, 70)])
        self.assertEqual(figures, {"send": Figure(None, 1.1, 3.0)})

    def test_of_calls_the_lower_quartile_stands_for_those_that_did_not_wait(self):
        calls = [Series("barrier", 1, 1, 0, total) for total in (512, 510, 90_000, 511, 70_000)]
        self.assertEqual(figures_of([Series("nothing", 1, 1, 0, 10), *calls]), {"barrier": Figure(501.0, 0.0, None, 89_990.0)})


class Budget(unittest.TestCase):
    def verdict(self, value, limit=1000.0):
        return [verdict for _, verdict, _ in budget.verdicts({"send": value}, {"send": limit})]

    def test_growth_beyond_five_per_cent_is_over(self):
        self.assertEqual([self.verdict(value) for value in (1000, 1050, 1051)], [[], [], ["over"]])

    def test_budget_is_stale_below_nine_tenths(self):
        self.assertEqual([self.verdict(value) for value in (950, 900, 899)], [[], [], ["stale"]])

    def test_what_has_no_budget_is_new(self):
        self.assertEqual(budget.verdicts({"write": 5.0}, {"send": 1000.0}), [("write", "new", "5.0 instructions, and no budget")])

    def test_words_have_both_numbers(self):
        self.assertEqual(budget.verdicts({"send": 1100.04}, {"send": 1000.0})[0][2],
                         "1100.0 instructions, +10.0% against 1000.0")

    def test_setting_keeps_what_was_not_counted(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "budget.json")
            budget.save({"send": 10.04, "read": 20.0}, "GNU 12 RelWithDebInfo", path)
            budget.save({"send": 9.0}, "GNU 12 RelWithDebInfo", path)
            self.assertEqual(budget.load(path), {"made_with": "GNU 12 RelWithDebInfo", "instructions": {"read": 20.0, "send": 9.0}})

    def test_every_series_of_the_budget_has_a_row(self):
        from instructions import ROWS  # pylint: disable=import-outside-toplevel
        with open(budget.PATH, encoding="utf-8") as file:
            self.assertEqual(set(json.load(file)["instructions"]) - set(ROWS), set())

    def test_compiler_and_flags_of_a_build(self):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(os.path.join(folder, "CMakeFiles", "3.25.1"))
            with open(os.path.join(folder, "CMakeCache.txt"), "w", encoding="utf-8") as file:
                file.write("//help\nCMAKE_BUILD_TYPE:STRING=RelWithDebInfo\nCMAKE_CACHE_MAJOR_VERSION:INTERNAL=3\n"
                           "CMAKE_CACHE_MINOR_VERSION:INTERNAL=25\nCMAKE_CACHE_PATCH_VERSION:INTERNAL=1\n"
                           "RINGBOLT_COVERAGE:BOOL=OFF\nRINGBOLT_SANITIZE:STRING=\n")
            with open(os.path.join(folder, "CMakeFiles", "3.25.1", "CMakeCXXCompiler.cmake"), "w", encoding="utf-8") as file:
                file.write('set(CMAKE_CXX_COMPILER_ID "GNU")\nset(CMAKE_CXX_COMPILER_VERSION "12.2.0")\n')
            self.assertEqual(budget.made_with(folder), "GNU 12 RelWithDebInfo")


class Waiting(unittest.TestCase):
    def test_polls_are_those_of_the_call_that_stands_for_all(self):
        calls = [Series("ping_pong", 10, 1, polls, total) for polls, total in ((15, 512), (14, 510), (90, 9_000), (13, 505), (80, 8_000))]
        self.assertEqual(figures_of([Series("nothing", 1, 1, 0, 10), *calls])["ping_pong"].polls, 1.4)


class FakePrograms:
    """Counts what it is told, and remembers what it was asked for."""

    def __init__(self, *counts):
        self._counts = list(counts)
        self.asked = []

    def figures(self, _, kinds):
        self.asked.append(kinds)
        return {kind: Figure(self._counts.pop(0), 0) for kind in kinds}


class Recounting(unittest.TestCase):
    limits = {"barrier": 1000, "write": 1000}

    def test_what_was_disturbed_is_counted_anew_until_it_is_within_the_budget(self):
        programs = FakePrograms(1200, 1010)
        figures = {"barrier": Figure(1100, 0), "write": Figure(2000, 1)}
        recount(programs, figures, self.limits)
        self.assertEqual(figures, {"barrier": Figure(1010, 0), "write": Figure(2000, 1)})
        self.assertEqual(programs.asked, [["barrier"], ["barrier"]])

    def test_growth_stays(self):
        programs = FakePrograms(1300, 1200)
        figures = {"barrier": Figure(1250, 0)}
        recount(programs, figures, self.limits)
        self.assertEqual(figures["barrier"], Figure(1200, 0))

    def test_what_is_within_the_budget_is_counted_once(self):
        programs = FakePrograms()
        recount(programs, {"barrier": Figure(1050, 0)}, self.limits)
        self.assertEqual(programs.asked, [])


class Table(unittest.TestCase):
    def test_rows_without_figures_are_left_out(self):
        figures = {"ours": {"send.sender": Figure(1234.4, 1), "send.receiver": Figure(7, 1)}, "ompi": {"barrier": Figure(8, 0)}}
        self.assertEqual(table(figures, {}), [["operation", "ours", "ompi"], ["8 B SEND: post, poll", "1,234", ""],
                                              ["its receive: post, poll", "7", ""], ["barrier, 2 ranks", "", "8"]])

    def test_polls_in_vain_are_remarked(self):
        self.assertEqual(remarks({"ours": {"read": Figure(10, 1.0), "write": Figure(10, 1.5)}}),
                         ["ours: write took 1.50 polls per operation: it has waited for something"])

    def test_system_calls_have_a_column_where_they_were_counted(self):
        figures = {"ours": {"send.sender": Figure(10, 1), "send.receiver": Figure(7, 1)}}
        self.assertEqual([line[-1] for line in table(figures, {"send.sender": 0.5})], ["system calls", "0.50", ""])


if __name__ == "__main__":
    unittest.main()
